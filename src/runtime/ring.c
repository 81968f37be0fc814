/* Weights that pass through: copied from the host ahead of the steps that read them, into a ring. */
#include <stdlib.h>

#include "runtime/runtime_int.h"

hone_status hn_ring_create(hn_context *c, hn_diag *dg)
{
    void *at;

    if (c->engine->ring_bytes == 0) return HONE_OK;
    if (!(c->ring.place = malloc((size_t)c->plan->n_weight * sizeof(*c->ring.place)))) return HN_NOMEM(dg);
    HN_TRY_IN(dg, hn_device_alloc(c->engine->device, (size_t)c->engine->ring_bytes, 256, &at, dg), "making room for passing weights");
    c->ring.at = at;
    return HONE_OK;
}

void hn_ring_destroy(hn_context *c)
{
    hn_device_free(c->engine->device, c->ring.at, (size_t)c->engine->ring_bytes);
    free(c->ring.place);
}

void hn_ring_reset(hn_context *c)
{
    c->ring.next = 0;
    for (uint32_t w = 0; c->ring.place && w < c->plan->n_weight; w++)
        c->ring.place[w] = -1;
}

/* The weight that entry k of what a step reads waits for, HN_NO where that is none. */
static uint32_t passing(const hn_context *c, uint32_t buf)
{
    const hn_plan_buf *x = &c->plan->buf[buf];
    return x->kind == HN_BUF_WEIGHT && hn_weight_waits(c->engine, x->ref) ? x->ref : HN_NO;
}

/* In a recording this copy is apart: it waits for the last that read or brought what lay there, and runs beside what does not read it. */
static hone_status bring(hn_context *c, uint32_t w, int64_t at, hn_diag *dg)
{
    const hn_engine *e = c->engine;
    const uint64_t n = c->plan->weight[w].bytes;

    c->ring.place[w] = at;
    if (c->branching) hn_streams_touch(&c->branching->streams, c->ring.at + at, hn_weight_room(c->plan, w), true);
    HN_TRY(hn_branch_begin(c, /* apart= */ true, dg));
    HN_TRY(hn_queue_write(c->queue, c->ring.at + at, e->waiting + e->waiting_at[w], (size_t)n, dg));
    return hn_branch_end(c, dg);
}

/* Room for `bytes` in one piece; what lies there is forgotten. */
static int64_t take_room(hn_context *c, int64_t bytes)
{
    hn_ring *r = &c->ring;
    const int64_t at = bytes <= c->engine->ring_bytes - r->next ? r->next : 0;

    for (uint32_t w = 0; w < c->plan->n_weight; w++)
        if (r->place[w] >= 0 && r->place[w] < at + bytes && at < r->place[w] + hn_weight_room(c->plan, w)) r->place[w] = -1;
    r->next = at + bytes;
    return at;
}

hone_status hn_ring_fetch(hn_context *c, const hn_step *s, hn_diag *dg)
{
    int64_t bytes = 0;
    bool here = true;

    for (uint32_t k = 0, buf; (buf = hn_step_reads(c->plan, s, k)) != HN_NO; k++) {
        const uint32_t w = passing(c, buf);
        if (w == HN_NO) continue;
        bytes += hn_weight_room(c->plan, w);
        here &= c->ring.place[w] >= 0;
    }
    int64_t at = here ? 0 : take_room(c, bytes);
    const int64_t first = at, end = at + bytes;
    for (uint32_t k = 0, buf; (buf = hn_step_reads(c->plan, s, k)) != HN_NO; k++) {
        const uint32_t w = passing(c, buf);
        if (w == HN_NO) continue;
        if (!here && !(c->ring.place[w] >= first && c->ring.place[w] < end)) { /* else an operand before brought it */
            HN_TRY(bring(c, w, at, dg));
            at += hn_weight_room(c->plan, w);
        }
        c->buf[buf].ptr = c->ring.at + c->ring.place[w];
    }
    return HONE_OK;
}
