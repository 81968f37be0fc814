/* Weights on their way to the kernels: in place, uploaded once, or, where a budget leaves no room, waiting with the host. */
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime_int.h"

enum { ALIGN = 256, LEAST_WAITING = 64 << 10 /* bytes: smaller ones are not worth a copy of their own */ };

/* Where the file is mapped, if kernels can read there. */
static void find_weights(hn_engine *e)
{
    for (uint32_t i = 0; i < e->plan->n_buf; i++)
        if (e->plan->buf[i].kind == HN_BUF_WEIGHT)
            e->weight[i] = (void *)hn_engine_file_weight(e->file, e->plan->buf[i].ref);
}

int64_t hn_weight_room(const hn_plan *p, uint32_t weight)
{
    return (int64_t)(p->weight[weight].bytes + HN_TAIL_BYTES + ALIGN - 1) / ALIGN * ALIGN;
}

uint32_t hn_step_reads(const hn_plan *p, const hn_step *s, uint32_t k)
{
    uint32_t buf = HN_NO;

    if (s->kind == HN_STEP_KERNEL && k < s->u.kernel.n_buf) buf = HN_ARG_BUF(p->list[s->u.kernel.buf + k]);
    if (s->kind == HN_STEP_COPY && k == 0) buf = s->u.copy.src;
    return buf != HN_NO && p->buf[buf].kind == HN_BUF_PART ? p->buf[buf].ref : buf;
}

/* ---- which of them wait ---- */
typedef struct choice {
    const hn_plan *p;
    bool *used, *fixed, *waits; /* by weight: used at all; by other steps than kernels and copies; the answer */
    int64_t stay, most; /* bytes of those that stay; of those that wait, what one step reads */
} choice;

static uint32_t weight_of(const hn_plan *p, uint32_t buf)
{
    if (p->buf[buf].kind == HN_BUF_PART) buf = p->buf[buf].ref;
    return p->buf[buf].kind == HN_BUF_WEIGHT ? p->buf[buf].ref : HN_NO;
}

static void fix(choice *c, uint32_t buf)
{
    const uint32_t w = weight_of(c->p, buf);
    if (w != HN_NO) c->fixed[w] = true;
}

/* Steps that wait for their operand themselves find it where it always is. */
static void find_uses(choice *c)
{
    const hn_plan *p = c->p;

    for (uint32_t i = 0; i < p->n_buf; i++)
        if (p->buf[i].kind == HN_BUF_WEIGHT) c->used[p->buf[i].ref] = true;
    for (uint32_t i = 0; i < p->n_step; i++) {
        const hn_step *s = &p->step[i];
        if (s->kind == HN_STEP_READ) fix(c, s->u.read.buf);
        if (s->kind == HN_STEP_APPEND) fix(c, s->u.append.src);
        if (s->kind == HN_STEP_IMAGE) fix(c, s->u.image.src);
    }
    for (uint32_t w = 0; w < p->n_weight; w++) {
        if (c->used[w]) c->stay += hn_weight_room(p, w);
        c->fixed[w] |= !c->used[w] || p->weight[w].bytes < LEAST_WAITING;
    }
}

static int64_t waiting_of_step(const choice *c, const hn_step *s)
{
    int64_t sum = 0;

    for (uint32_t k = 0, buf; (buf = hn_step_reads(c->p, s, k)) != HN_NO; k++) {
        const uint32_t w = weight_of(c->p, buf);
        if (w != HN_NO && c->waits[w]) sum += hn_weight_room(c->p, w);
    }
    return sum;
}

/* The largest that may wait, of equals the first. */
static uint32_t next_to_wait(const choice *c)
{
    uint32_t best = HN_NO;

    for (uint32_t w = 0; w < c->p->n_weight; w++)
        if (!c->fixed[w] && !c->waits[w] && (best == HN_NO || c->p->weight[w].bytes > c->p->weight[best].bytes)) best = w;
    return best;
}

static bool fits(const choice *c, int64_t budget, int steps_ahead)
{
    return c->stay + steps_ahead * c->most <= budget;
}

/* The largest wait first, until what stays and a ring of so many steps' weights fit. */
static bool choose(choice *c, int64_t budget, int steps_ahead)
{
    uint32_t w = 0;

    while (!fits(c, budget, steps_ahead) && (w = next_to_wait(c)) != HN_NO) {
        c->waits[w] = true;
        c->stay -= hn_weight_room(c->p, w);
        for (uint32_t i = 0; i < c->p->n_step; i++)
            c->most = HN_MAX(c->most, waiting_of_step(c, &c->p->step[i]));
    }
    return fits(c, budget, steps_ahead);
}

static hone_status too_small(const choice *c, int64_t budget, hn_diag *dg)
{
    hn_hint(dg, "What one step reads has to be there at once, and so have weights under %d KiB.", LEAST_WAITING >> 10);
    return HN_RAISE(dg, HONE_E_LIMIT, "the weights need at least %lld bytes on the device, the budget is %lld",
                    (long long)(c->stay + c->most), (long long)budget);
}

/* Two steps' weights, so that one is copied while the other is read; else one's. What the budget leaves makes copies start earlier. */
static hone_status choose_waiting(hn_engine *e, choice *c, int64_t budget, hn_diag *dg)
{
    int64_t waiting = 0;

    find_uses(c);
    if (budget <= 0 || c->stay <= budget) return HONE_OK;
    if (!choose(c, budget, 2) && !choose(c, budget, 1)) return too_small(c, budget, dg);
    if (!(e->waiting_at = malloc((size_t)c->p->n_weight * sizeof(*e->waiting_at)))) return HN_NOMEM(dg);
    for (uint32_t w = 0; w < c->p->n_weight; w++) {
        e->waiting_at[w] = c->waits[w] ? (uint64_t)waiting : UINT64_MAX;
        if (c->waits[w]) waiting += hn_weight_room(c->p, w);
    }
    e->ring_bytes = HN_MAX(c->most, HN_MIN(budget - c->stay, waiting));
    HN_TRY(hn_device_host_alloc(e->device, (size_t)waiting, (void **)&e->waiting, dg));
    for (uint32_t w = 0; w < c->p->n_weight; w++)
        if (c->waits[w]) memcpy(e->waiting + e->waiting_at[w], hn_engine_file_weight(e->file, w), c->p->weight[w].bytes);
    return HONE_OK;
}

bool hn_weight_waits(const hn_engine *e, uint32_t weight)
{
    return e->waiting_at && e->waiting_at[weight] != UINT64_MAX;
}

/* ---- those that stay ---- */
/* Each weight once, behind one another in one block of the device's memory. */
static hone_status upload(hn_engine *e, hn_queue *q, const uint64_t *at, hn_diag *dg)
{
    const hn_plan *p = e->plan;

    for (uint32_t i = 0; i < p->n_weight; i++) {
        if (at[i] == UINT64_MAX) continue;
        HN_TRY(hn_queue_write(q, (uint8_t *)e->uploaded + at[i], hn_engine_file_weight(e->file, i), p->weight[i].bytes, dg));
    }
    return hn_queue_sync(q, dg);
}

static hone_status place_in_block(hn_engine *e, const choice *c, uint64_t *at, hn_diag *dg)
{
    const hn_plan *p = e->plan;
    uint64_t total = 0;
    hn_queue *q;

    for (uint32_t i = 0; i < p->n_weight; i++) {
        const bool stays = c->used[i] && !c->waits[i];
        at[i] = stays ? total : UINT64_MAX;
        if (stays) total += (uint64_t)hn_weight_room(p, i);
    }
    if (total == 0) return HONE_OK;
    e->uploaded_bytes = (size_t)total;
    HN_TRY_IN(dg, hn_device_alloc(e->device, e->uploaded_bytes, ALIGN, &e->uploaded, dg), "placing weights on device \"%s\"",
              e->device->vt->name);
    for (uint32_t i = 0; i < p->n_buf; i++)
        if (p->buf[i].kind == HN_BUF_WEIGHT && at[p->buf[i].ref] != UINT64_MAX) e->weight[i] = (uint8_t *)e->uploaded + at[p->buf[i].ref];
    HN_TRY(hn_queue_create(e->device, NULL, &q, dg));
    hn_queue_begin(q);
    const hone_status s = upload(e, q, at, dg);
    hn_queue_end(q);
    hn_queue_destroy(q);
    return s;
}

hone_status hn_weights_place(hn_engine *e, int64_t budget, hn_diag *dg)
{
    const size_t n = e->plan->n_weight + (size_t)1;

    if (e->device->vt->host_memory) {
        find_weights(e);
        return HONE_OK;
    }
    uint64_t *at = calloc(n, sizeof(*at));
    bool *flags = calloc(n, 3 * sizeof(*flags));
    choice c = { .p = e->plan, .used = flags, .fixed = flags + n, .waits = flags + 2 * n };
    hone_status s = at && flags ? choose_waiting(e, &c, budget, dg) : HN_NOMEM(dg);
    if (s == HONE_OK) s = place_in_block(e, &c, at, dg);
    free(flags);
    free(at);
    return s;
}

void hn_weights_drop(hn_engine *e)
{
    if (e->device) {
        hn_device_free(e->device, e->uploaded, e->uploaded_bytes);
        if (e->waiting) hn_device_host_free(e->device, e->waiting);
    }
    free(e->waiting_at);
}
