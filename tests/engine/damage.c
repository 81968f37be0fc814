/* Damaged engines end as one clear error, never otherwise. Built with AddressSanitizer and UBSan as well. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../api/models.h"
#include "../runtime/handmade.h"
#include "base/os.h"
#include "core/core.h"
#include "engine/format.h"

static bool expected(hone_status s)
{
    return s == HONE_E_FORMAT || s == HONE_E_VERSION;
}

/* Try a copy of exactly n bytes, so that a read past the end is seen. */
static hone_status open_copy(const void *data, size_t n, hn_engine_file **ret, hn_diag *dg)
{
    void *const copy = aligned_alloc(64, n ? (n + 63) & ~(size_t)63 : 64);
    hn_engine_file *f = NULL;

    memcpy(copy, data, n);
    const hone_status s = hn_engine_file_open_memory(copy, n, NULL, &f, dg);
    if (!s) hn_engine_file_close(f);
    *ret = f;
    free(copy);
    return s;
}

static void make(hn_test *t, int which, void **ret, size_t *ret_bytes)
{
    hn_engine_writer *w;
    hn_diag dg = { 0 };
    uint32_t i;

    CHECK_OK(hn_engine_writer_create(NULL, NULL, &w, &dg), &dg);
    CHECK_OK(hn_engine_writer_weight(w, (hn_digest){ 1, 2 }, "a", "some weight", 11, &i, &dg), &dg);
    CHECK_OK(hn_engine_writer_weight(w, (hn_digest){ 1, 2 }, "b", "other", 5, &i, &dg), &dg);
    hm_image(t, which == 0 ? hm_add_scale(t) : which == 1 ? hm_compact(t) : hm_loop(t), w, ret, ret_bytes);
}

/* Engines of models, as hone_build writes them: open shapes, masks and indices, sizes that depend on data, a chain of kernels. */
enum { N_HANDMADE = 3, N_BUILT = 4, N_ENGINE = N_HANDMADE + N_BUILT };

static void make_built(int which, void **ret, size_t *ret_bytes)
{
    hn_bytes b = { 0 };
    hn_diag dg = { 0 };
    const char *model = which == 0 ? relu_model() : which == 1 ? lookup_model() : which == 2 ? nonzero_model() : deep_model(16, 4);
    hone_engine_free(engine_of(model, NULL));
    CHECK_OK(hn_map_file(scratch("engine.hone"), &b, &dg), &dg);
    *ret = aligned_alloc(64, (b.n + 63) & ~(size_t)63);
    CHECK(*ret);
    memcpy(*ret, b.at, b.n);
    *ret_bytes = b.n;
    hn_unmap(&b);
}

static void make_any(hn_test *t, int which, void **ret, size_t *ret_bytes)
{
    if (which < N_HANDMADE) make(t, which, ret, ret_bytes);
    else make_built(which - N_HANDMADE, ret, ret_bytes);
}

static void flip_every_byte(uint8_t *data, size_t n, const uint8_t *flip, int n_flip, int which)
{
    hn_engine_file *f;
    hn_diag dg = { 0 };

    CHECK_OK(open_copy(data, n, &f, &dg), &dg);
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < n_flip; k++) {
            data[i] ^= flip[k];
            hn_test_note("engine %d of %zu bytes: byte %zu ^ %#x", which, n, i, flip[k]);
            const hone_status s = hn_engine_file_open_memory(data, n, NULL, &f, &dg);
            CHECK(expected(s));
            CHECK(dg.message[0]);
            hn_diag_clear(&dg);
            data[i] ^= flip[k];
        }
    }
}

TEST(damage_every_byte)
{
    static const uint8_t flip[] = { 0xff, 1, 0x80 };
    for (int which = 0; which < N_ENGINE; which++) {
        uint8_t *data;
        size_t n;

        make_any(t, which, (void **)&data, &n);
        flip_every_byte(data, n, flip, which < N_HANDMADE ? HN_COUNT(flip) : 1, which);
        free(data);
    }
}

/* At and around the edge of every section. */
TEST(damage_cut_at_section_edges)
{
    for (int which = 0; which < N_ENGINE; which++) {
        hn_engine_file *f;
        hn_diag dg = { 0 };
        uint8_t *data;
        size_t n;

        make_any(t, which, (void **)&data, &n);
        const hn_file_header h = *(const hn_file_header *)(const void *)data;
        for (int i = 0; i < 2 * HN_N_SECTION; i++) {
            const hn_file_section *s = &h.section[i / 2];
            const uint64_t edge = s->offset + (i % 2 ? s->count * s->item_bytes : 0);
            for (int64_t at = (int64_t)edge - 1; at <= (int64_t)edge + 1; at++) {
                if (at < 0 || (size_t)at >= n) continue;
                hn_test_note("engine %d of %zu bytes cut to %lld", which, n, (long long)at);
                CHECK(expected(open_copy(data, (size_t)at, &f, &dg)));
                hn_diag_clear(&dg);
            }
        }
        free(data);
    }
}

TEST(damage_every_length)
{
    hn_engine_file *f;
    hn_diag dg = { 0 };
    uint8_t *data;
    size_t n;

    make(t, 2, (void **)&data, &n);
    for (size_t len = 0; len < n; len += len < 8 || len + 1 >= n || len % 64 > 61 || len % 64 < 3 ? 1 : 7) {
        hn_test_note("cut to %zu of %zu", len, n);
        CHECK(expected(open_copy(data, len, &f, &dg)));
        hn_diag_clear(&dg);
    }
    uint8_t *const longer = aligned_alloc(64, (n + 127) & ~(size_t)63);
    memcpy(longer, data, n);
    memset(longer + n, 0, 64);
    CHECK_ERR(hn_engine_file_open_memory(longer, n + 1, NULL, &f, &dg), HONE_E_FORMAT, &dg, "long");
    CHECK_ERR(hn_engine_file_open_memory(longer + 8, n, NULL, &f, &dg), HONE_E_INVALID, &dg, "aligned");
    free(longer);
    free(data);
}

TEST(damage_is_told_apart)
{
    hn_file_header *h;
    hn_engine_file *f;
    hn_diag dg = { 0 };
    uint8_t *data;
    size_t n;

    make(t, 0, (void **)&data, &n);
    h = (hn_file_header *)(void *)data;
    h->version = HN_ENGINE_VERSION - 1;
    CHECK_ERR(hn_engine_file_open_memory(data, n, NULL, &f, &dg), HONE_E_VERSION, &dg,
              hn_arena_printf(t->arena, "engine format %d, this program reads format %d", HN_ENGINE_VERSION - 1,
                              HN_ENGINE_VERSION));
    h->version = HN_ENGINE_VERSION;
    data[1] = 'h';
    CHECK_ERR(hn_engine_file_open_memory(data, n, NULL, &f, &dg), HONE_E_FORMAT, &dg, "not an engine file");
    CHECK_ERR(hn_engine_file_open_memory(data, 3, NULL, &f, &dg), HONE_E_FORMAT, &dg, "not an engine file");
    data[1] = 'H';
    CHECK_ERR(hn_engine_file_open_memory(data, 100, NULL, &f, &dg), HONE_E_FORMAT, &dg,
              "cut off after 100 bytes");
    free(data);
}

/* ---- damage under right checksums ---- */
static void repair(uint8_t *data, size_t n)
{
    hn_file_header *const h = (hn_file_header *)(void *)data;

    for (int i = 1; i < HN_N_SECTION; i++) {
        hn_file_section *const s = &h->section[i];
        if (s->item_bytes && s->offset <= n && s->count <= (n - s->offset) / s->item_bytes)
            s->sum = hn_hash64(data + s->offset, s->count * s->item_bytes, s->kind);
    }
    h->sum = 0;
    h->sum = hn_hash64(h, sizeof(*h), 0);
}

/* $FUZZ_ROUNDS and $FUZZ_SEED lengthen and move a run; a failure prints what repeats it. */
static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

/* A sanitizer ends the process before the harness can say which seed it was. */
void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static long long seed_now;

static void say_where(void)
{
    fprintf(stderr, "    repeat with FUZZ_SEED=%lld FUZZ_ROUNDS=1\n", seed_now);
}

/* Ends runs that a damaged loop would make endless. */
typedef struct watch {
    _Atomic(hn_context *) running;
    atomic_bool stop;
} watch;

static void *watchdog(void *user)
{
    watch *const w = user;
    hn_context *last = NULL;

    while (!w->stop) {
        hn_sleep_ns(2 * 1000 * 1000);
        hn_context *const now = w->running;
        if (now && now == last) {
            /* The runner clears `running` before it destroys, and waits while we hold it as NULL. */
            hn_context *mine = now;
            if (atomic_compare_exchange_strong(&w->running, &mine, NULL)) {
                hn_context_cancel(now);
                w->running = now;
            }
        }
        last = now;
    }
    return NULL;
}

static void take_back(watch *w, hn_context *c)
{
    hn_context *mine = c;
    while (!atomic_compare_exchange_weak(&w->running, &mine, NULL))
        mine = c; /* the watchdog is cancelling it just now */
}

static void try_to_run(hn_engine_file *f, watch *w)
{
    static int64_t memory[4096];
    const hn_engine_opts o = { .device = hn_device_null(), .fn = hm_kernels, .n_fn = HM_N };
    hn_diag dg = { 0 };
    hn_engine *e;
    hn_context *c;

    if (hn_engine_from_file(f, &o, &e, &dg)) {
        hn_engine_file_close(f);
        return;
    }
    if (!hn_context_create(e, &(hn_context_opts){ .memory_ceiling = 1 << 20, .max_threads = 1 }, &c, &dg)) {
        for (uint32_t i = 0; i < hn_engine_get_plan(e)->n_io; i++) {
            const int64_t dim[HN_PLAN_MAX_RANK] = { 3, 3, 3, 3, 3, 3, 3, 3, 3, 3 };
            hn_diag_clear(&dg);
            hn_context_set_input_shape(c, (int)i, (int)hn_engine_get_plan(e)->io[i].rank, dim, &dg);
            hn_diag_clear(&dg);
            hn_context_bind(c, (int)i, memory, sizeof(memory), &dg);
        }
        hn_diag_clear(&dg);
        hn_context_choose_shapes(c, &dg); /* for those that do not take 3 */
        hn_diag_clear(&dg);
        memory[0] = 3;
        w->running = c;
        hn_context_run(c, &dg);
        take_back(w, c);
        hn_context_destroy(c);
    }
    hn_engine_unref(e);
}

static void mutate(uint8_t *data, const hn_file_header *h, hn_rng *r)
{
    static const uint32_t interesting[] = { 0,          1,          2,          3,          7,  8,
                                            0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 64, 4096 };
    const int kind = 2 + (int)hn_rng_below(r, HN_N_SECTION - 1);
    const hn_file_section *s = &h->section[kind - 1];
    const uint64_t bytes = s->count * s->item_bytes;

    if (hn_rng_below(r, 20) == 0) { /* the header itself, behind the version */
        data[16 + hn_rng_below(r, (int64_t)sizeof(*h) - 16)] = (uint8_t)hn_rng_u64(r);
    } else if (bytes >= 4 && hn_rng_below(r, 4)) {
        const uint32_t v = hn_rng_below(r, 2) ? interesting[hn_rng_below(r, HN_COUNT(interesting))]
                                              : (uint32_t)hn_rng_below(r, 40);
        memcpy(data + s->offset + 4 * hn_rng_below(r, (int64_t)(bytes / 4)), &v, 4);
    } else if (bytes > 0) {
        data[s->offset + (uint64_t)hn_rng_below(r, (int64_t)bytes)] ^= (uint8_t)(1u << hn_rng_below(r, 8));
    }
}

TEST(damage_with_repaired_checksums)
{
    const int64_t first = setting("FUZZ_SEED", 42), rounds = setting("FUZZ_ROUNDS", 10000);
    watch w = { 0 };
    pthread_t dog;
    hn_rng r;
    int opened = 0;

    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(say_where);
    CHECK(pthread_create(&dog, NULL, watchdog, &w) == 0);
    uint8_t *good[N_ENGINE];
    size_t n[N_ENGINE];
    for (int which = 0; which < N_ENGINE; which++)
        make_any(t, which, (void **)&good[which], &n[which]);
    for (int64_t k = first; k < first + rounds; k++) {
        const int which = (int)((uint64_t)k % N_ENGINE);
        uint8_t *const data = aligned_alloc(64, (n[which] + 63) & ~(size_t)63);
        hn_engine_file *f;
        hn_diag dg = { 0 };
        seed_now = k;
        hn_rng_init(&r, (uint64_t)k);
        hn_test_note("FUZZ_SEED=%lld FUZZ_ROUNDS=1", (long long)k);
        memcpy(data, good[which], n[which]);
        for (int64_t m = 1 + hn_rng_below(&r, 3); m > 0; m--)
            mutate(data, (const hn_file_header *)(const void *)good[which], &r);
        repair(data, n[which]);
        const hone_status s = hn_engine_file_open_memory(data, n[which], NULL, &f, &dg);
        CHECK(s == HONE_OK || expected(s) || s == HONE_E_NOTFOUND);
        CHECK(s == HONE_OK || dg.message[0]);
        if (!s) {
            opened++;
            try_to_run(f, &w);
        }
        free(data);
    }
    for (int which = 0; which < N_ENGINE; which++)
        free(good[which]);
    w.stop = true;
    pthread_join(dog, NULL);
    /* Names, costs and the like may change freely; most else may not. */
    CHECK(rounds < 1000 || (opened > rounds / 100 && opened < rounds));
}
