/* Steps to streams: any order that the answers allow gives every step what program order gives it. */
#include <string.h>

#include "base/os.h"
#include "harness.h"
#include "runtime/streams.h"

enum { MOST_STEPS = 120, MOST_TOUCHES = 5, ROOM = 64 };

typedef struct access {
    int at, n;
    bool write;
} access;

typedef struct steps {
    access touch[MOST_STEPS][MOST_TOUCHES];
    int n_touch[MOST_STEPS], n;
} steps;

static bool order_matters(const steps *p, int i, int j)
{
    for (int k = 0; k < p->n_touch[i]; k++)
        for (int l = 0; l < p->n_touch[j]; l++) {
            const access *a = &p->touch[i][k], *b = &p->touch[j][l];
            if (a->n && b->n && (a->write || b->write) && a->at < b->at + b->n && b->at < a->at + a->n) return true;
        }
    return false;
}

static void draw(steps *p, hn_rng *r)
{
    p->n = 2 + (int)hn_rng_below(r, MOST_STEPS - 2);
    const int room = 4 + (int)hn_rng_below(r, ROOM - 4), longest = 1 + (int)hn_rng_below(r, 8);
    for (int i = 0; i < p->n; i++) {
        p->n_touch[i] = (int)hn_rng_below(r, MOST_TOUCHES + 1);
        for (int k = 0; k < p->n_touch[i]; k++)
            p->touch[i][k] = (access){ (int)hn_rng_below(r, room), (int)hn_rng_below(r, longest + 1), hn_rng_below(r, 3) == 0 };
    }
}

/* after[i][j]: step i waits for j, if only by way of others. */
typedef struct waits {
    bool after[MOST_STEPS][MOST_STEPS];
} waits;

static void add_all(const steps *p, hn_streams *s, waits *w, int *ret_edges)
{
    static const char room[ROOM + 16];

    memset(w, 0, sizeof(*w));
    *ret_edges = 0;
    for (int i = 0; i < p->n; i++) {
        uint32_t wait[HN_MOST_STREAMS], n;
        for (int k = 0; k < p->n_touch[i]; k++)
            hn_streams_touch(s, room + p->touch[i][k].at, p->touch[i][k].n, p->touch[i][k].write);
        hn_streams_add(s, s->n_stream > s->n_open && i % 3 == 0, wait, &n);
        CHECK(n <= s->n_stream);
        *ret_edges += (int)n;
        for (uint32_t k = 0; k < n; k++) {
            CHECK(wait[k] < (uint32_t)i);
            CHECK(!w->after[i][wait[k]]); /* another wait implies it */
            w->after[i][wait[k]] = true;
            for (int j = 0; j < i; j++)
                w->after[i][j] |= w->after[wait[k]][j];
        }
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t l = 0; l < n; l++)
                CHECK(k == l || !w->after[wait[k]][wait[l]]);
    }
}

/* Steps that run at once are on streams of their own, so never more than there are. */
static void check_streams(const steps *p, const hn_streams *s, const waits *w)
{
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < i; j++) {
            CHECK(w->after[i][j] || !order_matters(p, i, j));
            CHECK(w->after[i][j] || s->step.at[i].stream != s->step.at[j].stream);
            CHECK(s->step.at[i].stream < s->n_stream);
            CHECK((s->step.at[i].stream == s->n_open) == (s->n_stream > s->n_open && i % 3 == 0));
        }
}

TEST(streams_keep_the_order_that_matters)
{
    static steps p;
    static waits w;
    hn_rng r;
    int edges;

    hn_rng_init(&r, 11);
    for (int turn = 0; turn < 300; turn++) {
        const uint32_t n = 1 + (uint32_t)(turn % HN_PLAN_MAX_STREAMS);
        hn_streams s;
        hn_test_note("turn %d, %u streams", turn, n);
        draw(&p, &r);
        hn_arena *a = hn_arena_create();
        hn_streams_init(&s, a, n, /* apart= */ turn % 5 == 0);
        add_all(&p, &s, &w, &edges);
        check_streams(&p, &s, &w);
        CHECK(s.n_stream > 1 || edges == p.n - 1);
        CHECK(!hn_arena_oom(a));
        hn_arena_destroy(a);
    }
}

/* What need not wait does not, while there are streams. */
static bool waits_of(int n_stream, const access *one_each, int n, uint32_t ret[][HN_MOST_STREAMS], uint32_t *ret_n)
{
    static const char room[ROOM];
    hn_arena *a = hn_arena_create();
    hn_streams s;

    hn_streams_init(&s, a, (uint32_t)n_stream, /* apart= */ false);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++)
            hn_streams_touch(&s, room + one_each[3 * i + k].at, one_each[3 * i + k].n, one_each[3 * i + k].write);
        hn_streams_add(&s, /* apart= */ false, ret[i], &ret_n[i]);
    }
    const bool ok = !hn_arena_oom(a);
    hn_arena_destroy(a);
    return ok;
}

TEST(streams_let_branches_go)
{
    enum { N = 4 };
    /* a writes [0,8); b and c read it and write apart; d reads both */
    static const access diamond[3 * N] = { { 0, 8, true }, { 0 }, { 0 }, { 0, 8, false }, { 8, 8, true }, { 0 },
                                           { 0, 8, false }, { 16, 8, true }, { 0 }, { 8, 16, false }, { 24, 8, true }, { 0 } };
    uint32_t wait[N][HN_MOST_STREAMS], n[N];

    CHECK(waits_of(2, diamond, N, wait, n));
    CHECK(n[0] == 0 && n[1] == 1 && n[2] == 1 && n[3] == 2);
    CHECK(wait[1][0] == 0 && wait[2][0] == 0);
    CHECK(waits_of(1, diamond, N, wait, n));
    CHECK(n[2] == 1 && wait[2][0] == 1 && n[3] == 1 && wait[3][0] == 2);
    /* writes of the same bytes keep their order, though nobody reads between them */
    static const access twice[3 * 2] = { { 0, 8, true }, { 0 }, { 0 }, { 7, 1, true }, { 0 }, { 0 } };
    CHECK(waits_of(8, twice, 2, wait, n));
    CHECK(n[1] == 1 && wait[1][0] == 0);
}
