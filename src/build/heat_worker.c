/* Heats in a worker process: what the two sides say to each other, and what becomes of a lane that takes its process along.
 *
 * The parent sends a heat; the worker says before each run of a lane which one it is (news), and at the end how each did (results).
 * A lane that was running when the worker went silent, died or lost its device is out, and the heat is run again without it.
 */
#include "build/heat.h"
#include "codegen/codegen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0x31544848, ALIGN = 64 };

/* Both sides come from one build; the sizes of what they exchange tell builds apart. */
enum { REVISION = (int)(sizeof(hn_diag) ^ sizeof(hn_launch) << 12 ^ 2u << 24) };

typedef struct head {
    uint32_t magic, revision;
    uint64_t n; /* bytes that follow */
} head;

typedef enum news_kind { NEWS_LANE, NEWS_DEAD, NEWS_DONE } news_kind;
typedef struct news { /* after NEWS_DEAD an hn_diag follows: what the device said; after NEWS_DONE a result a lane */
    int32_t kind, lane;
} news;

typedef struct result {
    double ns;
    hn_diag why;
} result;

/* ---- a heat as bytes: words, and pieces that start at multiples of ALIGN ---- */
static void add_word(hn_str *s, int64_t v)
{
    hn_str_add_n(s, (const char *)&v, sizeof v);
}

static void add_piece(hn_str *s, const void *p, size_t n)
{
    static const char zero[ALIGN] = { 0 };
    add_word(s, (int64_t)n);
    hn_str_add_n(s, zero, (ALIGN - s->n % ALIGN) % ALIGN);
    hn_str_add_n(s, p, n);
    hn_str_add_n(s, zero, (ALIGN - s->n % ALIGN) % ALIGN);
}

static void add_call(hn_str *s, const hn_heat_call *c)
{
    const int64_t word[] = { (int64_t)c->l.entry, c->l.n_buf, c->l.n_arg, c->l.extent, c->l.grain, c->l.trip_ps, c->l.scratch_bytes };
    for (int i = 0; i < HN_COUNT(word); i++) add_word(s, word[i]);
    add_piece(s, c->code, c->n_code);
    add_piece(s, c->at, c->l.n_buf * sizeof *c->at);
    add_piece(s, c->l.arg, c->l.n_arg * sizeof *c->l.arg);
}

static void add_heat(hn_str *s, const hn_heat *h)
{
    const int64_t word[] = { h->arch, h->n_core, h->memory, h->set_bytes, h->n_put, h->n_lane };
    for (int i = 0; i < HN_COUNT(word); i++) add_word(s, word[i]);
    for (int i = 0; i < h->n_put; i++) {
        add_word(s, h->put[i].at);
        add_piece(s, h->put[i].data, (size_t)h->put[i].bytes);
    }
    for (int i = 0; i < h->n_lane; i++) {
        add_word(s, h->lane[i].why.code);
        add_word(s, h->lane[i].constant_at);
        add_piece(s, h->lane[i].name, strlen(h->lane[i].name) + 1);
        add_word(s, h->lane[i].n_call);
        for (int k = 0; k < h->lane[i].n_call; k++) add_call(s, &h->lane[i].call[k]);
    }
}

typedef struct reader {
    const uint8_t *base;
    size_t n, at;
    bool bad;
} reader;

static int64_t take_word(reader *r)
{
    int64_t v = 0;
    if (r->bad || r->n - r->at < sizeof v) {
        r->bad = true;
        return 0;
    }
    memcpy(&v, r->base + r->at, sizeof v);
    r->at += sizeof v;
    return v;
}

static const void *take_piece(reader *r, size_t *ret_n)
{
    const size_t n = (size_t)take_word(r), from = (r->at + ALIGN - 1) / ALIGN * ALIGN;
    if (r->bad || from > r->n || r->n - from < n) {
        r->bad = true;
        return NULL;
    }
    r->at = HN_MIN(r->n, (from + n + ALIGN - 1) / ALIGN * ALIGN);
    if (ret_n) *ret_n = n;
    return r->base + from;
}

static int take_count(reader *r)
{
    enum { MOST = 1 << 16 };
    const int64_t n = take_word(r);
    if (n < 0 || n > MOST) r->bad = true;
    return r->bad ? 0 : (int)n;
}

static void take_call(reader *r, hn_heat_call *c)
{
    c->l.entry = (uint64_t)take_word(r);
    c->l.n_buf = (uint32_t)take_count(r);
    c->l.n_arg = (uint32_t)take_count(r);
    c->l.extent = take_word(r);
    c->l.grain = take_word(r);
    c->l.trip_ps = take_word(r);
    c->l.scratch_bytes = take_word(r);
    c->code = take_piece(r, &c->n_code);
    c->at = take_piece(r, NULL);
    c->l.arg = take_piece(r, NULL);
}

static hn_heat *take_heat(hn_arena *a, reader *r)
{
    hn_heat *h = HN_NEW(a, hn_heat);
    if (!h) return NULL;
    h->arch = (hn_arch)take_word(r);
    h->n_core = take_count(r);
    h->memory = (hn_heat_memory)take_word(r);
    h->set_bytes = take_word(r);
    h->n_put = take_count(r);
    h->n_lane = take_count(r);
    h->put = HN_NEW_N(a, hn_heat_put, h->n_put + 1);
    h->lane = HN_NEW_N(a, hn_heat_lane, h->n_lane + 1);
    for (int i = 0; i < h->n_put && h->put; i++) {
        size_t n = 0;
        h->put[i].at = take_word(r);
        h->put[i].data = take_piece(r, &n);
        h->put[i].bytes = (int64_t)n;
    }
    for (int i = 0; i < h->n_lane && h->lane; i++) {
        hn_heat_lane *l = &h->lane[i];
        l->why.code = (hone_status)take_word(r);
        l->constant_at = take_word(r);
        l->name = take_piece(r, NULL);
        l->n_call = take_count(r);
        l->call = HN_NEW_N(a, hn_heat_call, l->n_call + 1);
        if (!l->call) return NULL;
        for (int k = 0; k < l->n_call; k++) take_call(r, &l->call[k]);
    }
    return h->put && h->lane && !r->bad ? h : NULL;
}

/* ---- the worker ---- */
typedef struct server {
    hn_proc self; /* the other side, seen from here */
    hn_heater *heater;
} server;

static bool say(server *s, const void *data, size_t n)
{
    return hn_proc_write(&s->self, data, n, /* deadline_ns= */ 0, NULL) == HONE_OK;
}

static void tell_lane(void *user, int lane)
{
    const news n = { .kind = NEWS_LANE, .lane = lane };
    (void)say(user, &n, sizeof n); /* nobody listens any more: the next read ends */
}

static bool answer(server *s, hn_heat *h)
{
    news n = { .kind = NEWS_DONE };
    hn_diag dg = { 0 };
    hone_status r = s->heater ? HONE_OK : hn_heater_create(h->arch, h->n_core, &s->heater, &dg);
    if (r == HONE_OK) r = hn_heat_run(s->heater, h, tell_lane, s, &dg);
    if (r != HONE_OK) n.kind = NEWS_DEAD;
    dg.file = NULL; /* means nothing in another process */
    if (!say(s, &n, sizeof n) || (r != HONE_OK && !say(s, &dg, sizeof dg))) return false;
    for (int i = 0; i < h->n_lane && r == HONE_OK; i++) {
        result x = { .ns = h->lane[i].ns, .why = h->lane[i].why };
        x.why.file = NULL;
        if (!say(s, &x, sizeof x)) return false;
    }
    return true;
}

static bool serve_one(server *s, size_t n)
{
    hn_arena *a = hn_arena_create();
    uint8_t *bytes = a ? hn_arena_alloc_aligned(a, n + 1, ALIGN) : NULL;
    reader r = { .base = bytes, .n = n };
    bool ok = bytes && hn_proc_read(&s->self, bytes, n, 0, NULL) == HONE_OK;
    hn_heat *h = ok ? take_heat(a, &r) : NULL;
    ok = h && answer(s, h);
    hn_arena_destroy(a);
    return ok;
}

int hn_heat_serve(int in_fd, int out_fd)
{
    server s = { .self = { .in_fd = out_fd, .out_fd = in_fd } };
    head h;
    while (hn_proc_read(&s.self, &h, sizeof h, 0, NULL) == HONE_OK) {
        if (h.magic != MAGIC || h.revision != (uint32_t)REVISION) return HN_WORKER_FOREIGN;
        if (!serve_one(&s, h.n)) break;
    }
    hn_heater_destroy(s.heater);
    return 0;
}

/* ---- the parent ---- */
struct hn_heat_worker {
    char *program;
    int64_t timeout_ns;
    hn_proc proc; /* pid 0: not running */
};

hone_status hn_heat_worker_create(const char *program, int64_t timeout_ns, hn_heat_worker **ret, hn_diag *dg)
{
    const int64_t usual_ns = 30ll * 1000000000;
    hn_heat_worker *w = calloc(1, sizeof *w);
    if (w) w->program = strdup(program);
    if (!w || !w->program) {
        free(w);
        return HN_NOMEM(dg);
    }
    w->timeout_ns = timeout_ns > 0 ? timeout_ns : usual_ns;
    *ret = w;
    return HONE_OK;
}

void hn_heat_worker_destroy(hn_heat_worker *w)
{
    if (!w) return;
    if (w->proc.pid) hn_proc_end(&w->proc, NULL, 0);
    free(w->program);
    free(w);
}

static hone_status start(hn_heat_worker *w, hn_diag *dg)
{
    const char *argv[] = { w->program, "race", NULL };
    return w->proc.pid ? HONE_OK : hn_proc_spawn(argv, NULL, &w->proc, dg);
}

static hone_status send(hn_heat_worker *w, const hn_heat *h, hn_diag *dg)
{
    hn_str s = { 0 };
    add_heat(&s, h);
    const head top = { MAGIC, (uint32_t)REVISION, s.n };
    const int64_t deadline_ns = hn_now_ns() + w->timeout_ns;
    hone_status r = s.oom ? HN_NOMEM(dg) : hn_proc_write(&w->proc, &top, sizeof top, deadline_ns, dg);
    if (r == HONE_OK) r = hn_proc_write(&w->proc, s.s, s.n, deadline_ns, dg);
    hn_str_done(&s);
    return r;
}

static hone_status take_results(hn_heat_worker *w, hn_heat *h, hn_diag *dg)
{
    result x;
    for (int i = 0; i < h->n_lane; i++) {
        HN_TRY(hn_proc_read(&w->proc, &x, sizeof x, hn_now_ns() + w->timeout_ns, dg));
        if (h->lane[i].why.code != HONE_OK) continue;
        h->lane[i].ns = x.ns;
        h->lane[i].why = x.why;
    }
    return HONE_OK;
}

static hone_status take_death(hn_heat_worker *w, hn_diag *dg)
{
    hn_diag why;
    HN_TRY(hn_proc_read(&w->proc, &why, sizeof why, hn_now_ns() + w->timeout_ns, dg));
    if (dg) *dg = why;
    return why.code ? why.code : HN_RAISE(dg, HONE_E_CRASH, "the timing worker speaks nonsense");
}

/* Until the results are in, or the worker is lost; *ret_lane: the one that ran last, -1 before the first. The device is opened and
 * memory filled before any lane is told of, which takes longer than a run. */
static hone_status listen(hn_heat_worker *w, hn_heat *h, int *ret_lane, hn_diag *dg)
{
    const int64_t opening_ns = 60ll * 1000000000;
    news n;
    *ret_lane = -1;
    for (;;) {
        const int64_t limit_ns = *ret_lane < 0 ? HN_MAX(opening_ns, w->timeout_ns) : w->timeout_ns;
        HN_TRY(hn_proc_read(&w->proc, &n, sizeof n, hn_now_ns() + limit_ns, dg));
        if (n.kind == NEWS_DONE) return take_results(w, h, dg);
        if (n.kind != NEWS_LANE || n.lane < 0 || n.lane >= h->n_lane) return take_death(w, dg);
        *ret_lane = n.lane;
    }
}

/* The lane's outcome: how its process ended, or what its device said. */
static void blame(hn_heat_lane *l, hone_status s, const hn_diag *why, const char *how)
{
    hn_diag_clear(&l->why);
    if (why->hint[0]) hn_hint(&l->why, "%s", why->hint);
    if (s == HONE_E_TIMEOUT) (void)HN_RAISE(&l->why, HONE_E_TIMEOUT, "timed out: it did not end in time");
    else if (s == HONE_E_CRASH) (void)HN_RAISE(&l->why, HONE_E_CRASH, "crashed: its process ended, %s", how);
    else (void)HN_RAISE(&l->why, HONE_E_CRASH, "crashed: %s", why->message);
}

/* A worker that is lost before any lane ran is nobody's fault. */
static hone_status lost(hn_heat_worker *w, hn_heat *h, int lane, hone_status s, hn_diag *why, hn_diag *dg)
{
    char how[64] = "";
    hn_proc_end(&w->proc, how, sizeof how);
    w->proc = (hn_proc){ 0 };
    if (lane >= 0) {
        blame(&h->lane[lane], s, why, how);
        return HONE_OK;
    }
    HN_TRY(hn_worker_check_build(w->program, how, dg));
    if (dg) *dg = *why;
    return s;
}

static bool any_left(const hn_heat *h)
{
    for (int i = 0; i < h->n_lane; i++)
        if (h->lane[i].why.code == HONE_OK) return true;
    return false;
}

hone_status hn_heat_worker_run(hn_heat_worker *w, hn_heat *h, hn_diag *dg)
{
    while (any_left(h)) {
        hn_diag why = { 0 };
        int lane = -1;
        HN_TRY(start(w, dg));
        hone_status s = send(w, h, &why);
        if (s == HONE_OK) s = listen(w, h, &lane, &why);
        if (s == HONE_OK) return HONE_OK;
        HN_TRY(lost(w, h, lane, s, &why, dg));
    }
    return HONE_OK;
}
