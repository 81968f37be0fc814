/* Timing candidates: interleaved, on operands that were not just touched, the median of a few rounds.
 *
 * Operands rotate through a pool of memory larger than the last-level cache share, so that a candidate meets its weights as
 * it would inside a network: not hot from its own previous call. On a GPU eight small sets stay in the second-level cache:
 * HN_HEAT_COLD empties it, and keeps what is no constant in place, as a network's neighbours leave it there.
 */
#include "build/heat.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROTATE_BYTES = 48 << 20, /* beyond the last-level share of the machines we know (32 MiB) */
    GPU_ROTATE_BYTES = 256 << 20, /* beyond the second-level caches of GPUs (50 MiB) */
    MAX_SETS = 8,
    ROUNDS = 9,
    CLEAN_BYTES = 64 << 20,
    FLUSH_BYTES = 128 << 20, /* read and written once, leave nothing else in them */
    LEAST_TURNS = MAX_SETS, MOST_TURNS = 64, /* of one recorded run: starting it and waiting for it cost ten microseconds, give or */
    RUN_NS = 200000,                         /* take some, which is little of a run that takes as long as this */
};

struct hn_heater {
    hn_device *dev;
    hn_queue *queue;
    uint8_t *pool; /* of the device: values near 1, shared by all operands */
    size_t pool_bytes;
    void *clean; /* of a GPU: CLEAN_BYTES that the pool is made of before each heat; NULL until then */
    void *flush; /* of FLUSH_BYTES; NULL until first wanted */
};

hone_status hn_heater_create(hn_arch arch, int n_core, hn_heater **ret, hn_diag *dg)
{
    hn_heater *m = calloc(1, sizeof *m);
    if (!m) return HN_NOMEM(dg);
    hone_status s = hn_device_for(arch, &m->dev, dg);
    if (s == HONE_OK) s = hn_queue_create(m->dev, &(hn_queue_opts){ .max_threads = n_core }, &m->queue, dg);
    if (s != HONE_OK) {
        free(m);
        return s;
    }
    *ret = m;
    return HONE_OK;
}

void hn_heater_destroy(hn_heater *m)
{
    if (!m) return;
    hn_queue_destroy(m->queue);
    hn_device_free(m->dev, m->pool, m->pool_bytes);
    if (m->clean) hn_device_free(m->dev, m->clean, CLEAN_BYTES);
    if (m->flush) hn_device_free(m->dev, m->flush, FLUSH_BYTES);
    free(m);
}

/* ---- memory ---- */
/* f32 values in [0.5, 1.5): no denormals, and to processors all other numbers are alike. */
static void fill(uint8_t *p, size_t n)
{
    hn_rng r;
    hn_rng_init(&r, 7);
    float *f = (float *)(void *)p;
    for (size_t i = 0; i < n / 4; i++) f[i] = 0.5f + (float)(hn_rng_u64(&r) >> 40) * 0x1p-24f;
}

/* Words of 16 bits that are +-0.5 to 2 as f16; bytes would be NaN with bit 6, and without bit 0. */
void hn_heat_fill(uint8_t *p, size_t n)
{
    const uint64_t random = 0x87be87be87be87be, fixed = 0x3801380138013801;
    hn_rng r;
    hn_rng_init(&r, 7);
    for (size_t i = 0; i + 8 <= n; i += 8) {
        const uint64_t v = (hn_rng_u64(&r) & random) | fixed;
        memcpy(p + i, &v, sizeof v);
    }
}

static hone_status put(hn_heater *m, int64_t at, const void *from, size_t bytes, hn_diag *dg)
{
    if (m->dev->vt->host_memory) {
        memcpy(m->pool + at, from, bytes);
        return HONE_OK;
    }
    hn_queue_begin(m->queue);
    hone_status s = hn_queue_write(m->queue, m->pool + at, from, bytes, dg);
    if (s == HONE_OK) s = hn_queue_sync(m->queue, dg);
    hn_queue_end(m->queue);
    return s;
}

static hone_status make_clean(hn_heater *m, hn_diag *dg)
{
    uint8_t *host = malloc(CLEAN_BYTES);
    hone_status s = host ? hn_device_alloc(m->dev, CLEAN_BYTES, 4096, &m->clean, dg) : HN_NOMEM(dg);
    if (s == HONE_OK) {
        hn_heat_fill(host, CLEAN_BYTES);
        hn_queue_begin(m->queue);
        s = hn_queue_write(m->queue, m->clean, host, CLEAN_BYTES, dg);
        if (s == HONE_OK) s = hn_queue_sync(m->queue, dg);
        hn_queue_end(m->queue);
    }
    free(host);
    return s;
}

/* Results of earlier heats lie in the pool, and may be anything as another type. */
static hone_status clean_pool(hn_heater *m, size_t used, hn_diag *dg)
{
    if (m->dev->vt->host_memory) return HONE_OK;
    if (!m->clean) HN_TRY(make_clean(m, dg));
    hn_queue_begin(m->queue);
    hone_status s = HONE_OK;
    for (size_t at = 0; at < used && s == HONE_OK; at += CLEAN_BYTES)
        s = hn_queue_copy(m->queue, m->pool + at, m->clean, HN_MIN(used - at, (size_t)CLEAN_BYTES), dg);
    if (s == HONE_OK) s = hn_queue_sync(m->queue, dg);
    hn_queue_end(m->queue);
    return s;
}

static hone_status grow_pool(hn_heater *m, int64_t need, hn_diag *dg)
{
    const int64_t least = m->dev->vt->host_memory ? ROTATE_BYTES : GPU_ROTATE_BYTES;
    const size_t want = (size_t)(HN_MAX(need, least) + 4095) / 4096 * 4096;
    void *p;
    if (m->pool_bytes >= want) return HONE_OK;
    hn_device_free(m->dev, m->pool, m->pool_bytes);
    m->pool = NULL, m->pool_bytes = 0;
    HN_TRY(hn_device_alloc(m->dev, want, 4096, &p, dg));
    m->pool = p, m->pool_bytes = want;
    if (m->dev->vt->host_memory) fill(m->pool, m->pool_bytes);
    return HONE_OK;
}

/* Queues a copy after which the caches hold nothing that ran before. */
static hone_status flush(hn_heater *m, hn_diag *dg)
{
    _Static_assert((int)FLUSH_BYTES <= (int)GPU_ROTATE_BYTES, "the pool is what is copied");
    if (!m->flush) HN_TRY(hn_device_alloc(m->dev, FLUSH_BYTES, 4096, &m->flush, dg));
    return hn_queue_copy(m->queue, m->flush, m->pool, FLUSH_BYTES, dg);
}

/* ---- one heat ---- */
typedef struct racer {
    hn_module **module; /* one a call */
    void **buf;         /* of all calls */
    int n_loaded;
    hn_replay *turns; /* a recording; NULL: none */
    double sample[ROUNDS];
} racer;

typedef struct course {
    hn_heater *m;
    hn_heat *h;
    racer *x;
    int sets, at; /* sets of operands in the pool, and the next one */
    int turns;    /* of a recorded run */
} course;

static hone_status put_all(course *o, bool real, hn_diag *dg)
{
    if (!real && !o->m->dev->vt->host_memory) return HONE_OK; /* the next heat makes its pool clean */
    for (int i = 0; i < o->h->n_put; i++) {
        const hn_heat_put *p = &o->h->put[i];
        uint8_t *harmless = malloc((size_t)p->bytes + 4);
        if (!harmless) return HN_NOMEM(dg);
        fill(harmless, (size_t)p->bytes + 3);
        hone_status s = HONE_OK;
        for (int k = 0; k < o->sets && s == HONE_OK; k++)
            s = put(o->m, k * o->h->set_bytes + p->at, real ? p->data : harmless, (size_t)p->bytes, dg);
        free(harmless);
        HN_TRY(s);
    }
    return HONE_OK;
}

static hone_status load(course *o, int lane, hn_diag *dg)
{
    const hn_heat_lane *l = &o->h->lane[lane];
    racer *x = &o->x[lane];
    int n_buf = 0;
    for (int i = 0; i < l->n_call; i++) n_buf += (int)l->call[i].l.n_buf;
    x->module = calloc((size_t)l->n_call + 1, sizeof *x->module);
    x->buf = calloc((size_t)n_buf + 1, sizeof *x->buf);
    if (!x->module || !x->buf) return HN_NOMEM(dg);
    n_buf = 0;
    for (int i = 0; i < l->n_call; i++) {
        hn_heat_call *c = &l->call[i];
        c->l.name = l->name;
        c->l.buf = &x->buf[n_buf];
        n_buf += (int)c->l.n_buf;
        HN_TRY(hn_device_load_code(o->m->dev, c->code, c->n_code, &x->module[i], dg));
        x->n_loaded++;
        HN_TRY(hn_queue_reserve(o->m->queue, (size_t)c->l.scratch_bytes, dg));
    }
    return HONE_OK;
}

static void unload(course *o)
{
    for (int i = 0; i < o->h->n_lane; i++) {
        hn_device_replay_destroy(o->m->dev, o->x[i].turns);
        for (int k = 0; k < o->x[i].n_loaded; k++) hn_device_unload(o->m->dev, o->x[i].module[k]);
        free(o->x[i].module);
        free(o->x[i].buf);
    }
}

static hone_status launch_all(course *o, int lane, hn_diag *dg)
{
    const hn_heat_lane *l = &o->h->lane[lane];
    racer *x = &o->x[lane];
    const hn_heat_memory memory = o->h->memory;
    uint8_t *first = o->m->pool, *next = first + o->at++ % o->sets * o->h->set_bytes;
    uint8_t *constants = memory == HN_HEAT_WARM ? first : next, *others = memory == HN_HEAT_ROTATING ? next : first;
    void **buf = x->buf;
    for (int i = 0; i < l->n_call; i++) {
        const hn_heat_call *c = &l->call[i];
        for (uint32_t k = 0; k < c->l.n_buf; k++) *buf++ = (c->at[k] < l->constant_at ? others : constants) + c->at[k];
        if (c->l.extent > 0) HN_TRY(hn_queue_launch(o->m->queue, x->module[i], &c->l, dg));
    }
    return HONE_OK;
}

static hone_status run_once(course *o, int lane, double *ret_ns, hn_diag *dg)
{
    const int64_t t0 = hn_now_ns();
    hn_queue_begin(o->m->queue);
    hone_status s = launch_all(o, lane, dg);
    if (s == HONE_OK) s = hn_queue_sync(o->m->queue, dg);
    hn_queue_end(o->m->queue);
    *ret_ns = (double)(hn_now_ns() - t0);
    return s;
}

static hone_status record_turns(course *o, int lane, hn_diag *dg)
{
    hone_status s = HONE_OK;
    hn_diag ended = { 0 };
    hn_replay **turns = &o->x[lane].turns;
    hn_device_replay_destroy(o->m->dev, *turns);
    *turns = NULL;
    HN_TRY(hn_queue_record(o->m->queue, dg));
    for (int k = 0; k < o->turns && s == HONE_OK; k++) s = launch_all(o, lane, dg);
    const hone_status end = hn_queue_record_end(o->m->queue, turns, s ? &ended : dg);
    return s ? s : end;
}

/* The second of two runs: the first brings the recording to the device, and what it reads to the caches. */
static hone_status run_recorded(course *o, int lane, double *ret_ns, hn_diag *dg)
{
    hone_status s = HONE_OK;
    int64_t t0 = 0;
    hn_queue_begin(o->m->queue);
    if (!o->x[lane].turns) s = record_turns(o, lane, dg);
    for (int k = 0; k < 2 && s == HONE_OK; k++) {
        if (k && o->h->memory == HN_HEAT_COLD) s = flush(o->m, dg);
        if (s == HONE_OK) s = hn_queue_sync(o->m->queue, dg);
        if (s != HONE_OK) break;
        t0 = hn_now_ns();
        s = hn_queue_replay(o->m->queue, o->x[lane].turns, dg);
        if (s == HONE_OK) s = hn_queue_sync(o->m->queue, dg);
    }
    *ret_ns = (double)(hn_now_ns() - t0) / o->turns;
    hn_queue_end(o->m->queue);
    return s;
}

/* After a first round: as many turns for all as keep the fastest busy for long enough. Cold sets of operands are as many as there are. */
static void settle_turns(course *o, double fastest_ns)
{
    int turns = o->turns;
    while (turns < MOST_TURNS && turns * fastest_ns < RUN_NS) turns *= 2;
    if (o->h->memory == HN_HEAT_COLD || turns == o->turns) return;
    o->turns = turns;
    for (int i = 0; i < o->h->n_lane; i++) {
        hn_device_replay_destroy(o->m->dev, o->x[i].turns);
        o->x[i].turns = NULL;
    }
}

static bool is_out(const hn_heat_lane *l)
{
    return l->why.code != HONE_OK;
}

/* A lane that the device refuses is out; a device that is of no use afterwards ends the heat. */
static hone_status drop(course *o, int lane, const hn_diag *why, hn_diag *dg)
{
    hn_queue_begin(o->m->queue);
    const hone_status s = hn_queue_sync(o->m->queue, &(hn_diag){ 0 });
    hn_queue_end(o->m->queue);
    *(s == HONE_OK ? &o->h->lane[lane].why : dg) = *why;
    return s;
}

static hone_status run_round(course *o, int round, void (*tell)(void *user, int lane), void *user, hn_diag *dg)
{
    const int n = o->h->n_lane;
    const bool records = hn_device_records(o->m->dev);
    for (int k = 0; k < n; k++) {
        const int i = (k + round + n) % n; /* another order each round */
        double *ns = &o->x[i].sample[HN_MAX(round, 0)];
        hn_diag why = { 0 };
        if (is_out(&o->h->lane[i])) continue;
        o->at = k + round + 1;
        if (tell) tell(user, i);
        if ((records ? run_recorded : run_once)(o, i, ns, &why) != HONE_OK) HN_TRY(drop(o, i, &why, dg));
    }
    return HONE_OK;
}

/* The times of the first round, to get warm, are overwritten. */
static hone_status run_rounds(course *o, void (*tell)(void *user, int lane), void *user, hn_diag *dg)
{
    double fastest = RUN_NS;
    HN_TRY(run_round(o, -1, tell, user, dg));
    for (int i = 0; i < o->h->n_lane; i++)
        if (!is_out(&o->h->lane[i])) fastest = HN_MIN(fastest, o->x[i].sample[0]);
    settle_turns(o, fastest);
    for (int round = 0; round < ROUNDS; round++) HN_TRY(run_round(o, round, tell, user, dg));
    return HONE_OK;
}

static hone_status run_course(course *o, void (*tell)(void *user, int lane), void *user, hn_diag *dg)
{
    for (int i = 0; i < o->h->n_lane; i++) {
        hn_diag why = { 0 };
        if (is_out(&o->h->lane[i])) continue;
        if (tell) tell(user, i);
        if (load(o, i, &why) != HONE_OK) HN_TRY(drop(o, i, &why, dg));
    }
    HN_TRY(put_all(o, /* real= */ true, dg));
    HN_TRY(run_rounds(o, tell, user, dg));
    HN_TRY(put_all(o, /* real= */ false, dg));
    for (int i = 0; i < o->h->n_lane; i++)
        if (!is_out(&o->h->lane[i])) o->h->lane[i].ns = hn_median(o->x[i].sample, ROUNDS);
    return HONE_OK;
}

hone_status hn_heat_run(hn_heater *m, hn_heat *h, void (*tell)(void *user, int lane), void *user, hn_diag *dg)
{
    HN_TRY(grow_pool(m, h->set_bytes, dg));
    const int sets = (int)HN_MAX(1, HN_MIN(MAX_SETS, (int64_t)m->pool_bytes / HN_MAX(h->set_bytes, 1)));
    course o = { .m = m, .h = h, .sets = sets, .turns = LEAST_TURNS, .x = calloc((size_t)h->n_lane + 1, sizeof *o.x) };
    if (!o.x) return HN_NOMEM(dg);
    hone_status s = clean_pool(m, (size_t)HN_MIN((int64_t)m->pool_bytes, sets * h->set_bytes + 4096), dg); /* and what is read past them */
    if (s == HONE_OK) s = run_course(&o, tell, user, dg);
    unload(&o);
    free(o.x);
    return s;
}
