/* Steps recorded once and repeated: in order, or in branches where the plan says so. */
#include "runtime/runtime_int.h"

/* What grows is touched by no recorded step. */
static void *place_of(const hn_context *c, uint32_t io)
{
    const uint32_t buf = c->plan->io[io].buf;
    return c->plan->buf[buf].flags & HN_BUF_GROWS ? NULL : c->buf[buf].ptr;
}

void hn_recordings_drop(hn_context *c)
{
    for (uint32_t k = 0; c->replay && k < c->engine->n_segment; k++) {
        hn_device_replay_destroy(c->engine->device, c->replay[k]);
        c->replay[k] = NULL;
    }
}

void hn_recordings_check(hn_context *c)
{
    bool same = true;

    for (uint32_t i = 0; i < c->plan->n_io; i++) {
        same &= c->replay_at[i] == place_of(c, i);
        c->replay_at[i] = place_of(c, i);
    }
    if (!same) hn_recordings_drop(c);
}

/* ---- branches ---- */
hone_status hn_branch_begin(hn_context *c, bool apart, hn_diag *dg)
{
    uint32_t wait[HN_MOST_STREAMS], n;
    void *mark[HN_MOST_STREAMS];

    if (HN_LIKELY(!c->branching)) return HONE_OK;
    hn_streams_add(&c->branching->streams, apart, wait, &n);
    if (hn_arena_oom(c->branching->streams.arena)) return HN_NOMEM(dg);
    for (uint32_t i = 0; i < n; i++)
        mark[i] = c->branching->mark.at[wait[i]];
    return hn_queue_after(c->queue, mark, n, dg);
}

hone_status hn_branch_end(hn_context *c, hn_diag *dg)
{
    void *mark;

    if (HN_LIKELY(!c->branching)) return HONE_OK;
    HN_TRY(hn_queue_mark(c->queue, &mark, dg));
    return hn_vec_push(c->branching->streams.arena, &c->branching->mark, mark) ? HONE_OK : HN_NOMEM(dg);
}

/* The recording ends when every stream has. */
static hone_status join(hn_context *c, hn_diag *dg)
{
    const hn_branching *b = c->branching;
    void *mark[HN_MOST_STREAMS];
    size_t n = 0;

    for (uint32_t i = 0; i < b->streams.n_stream; i++)
        if (b->streams.last[i] >= 0) mark[n++] = b->mark.at[b->streams.last[i]];
    return hn_queue_after(c->queue, mark, n, dg);
}

static hone_status branch_out(hn_context *c, uint32_t k, hn_diag *dg)
{
    hn_branching b = { 0 };
    hn_arena *a = hn_arena_create();

    if (!a) return HN_NOMEM(dg);
    hn_streams_init(&b.streams, a, hn_plan_streams(c->plan), c->engine->ring_bytes > 0);
    c->branching = &b;
    hone_status s = hn_segment_run(c, k, dg);
    if (s == HONE_OK) s = join(c, dg);
    c->branching = NULL;
    hn_arena_destroy(a);
    return s;
}

/* ---- a recording ---- */
static hone_status record(hn_context *c, uint32_t k, hn_diag *dg)
{
    const bool branches = hn_plan_streams(c->plan) > 1 || c->engine->ring_bytes > 0;
    hn_replay *made = NULL;
    hn_diag ended = { 0 };

    HN_TRY(hn_queue_record(c->queue, dg));
    const hone_status s = branches ? branch_out(c, k, dg) : hn_segment_run(c, k, dg);
    const hone_status e = hn_queue_record_end(c->queue, &made, s ? &ended : dg);
    if (s || e) {
        hn_device_replay_destroy(c->engine->device, made);
        return s ? s : e;
    }
    c->replay[k] = made;
    return HONE_OK;
}

hone_status hn_segment_replay(hn_context *c, uint32_t k, hn_diag *dg)
{
    if (!c->replay[k]) HN_TRY(record(c, k, dg));
    return hn_queue_replay(c->queue, c->replay[k], dg);
}
