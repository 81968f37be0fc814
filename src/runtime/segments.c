/* Which runs of steps are the same launches with the same arguments every time, so that the device can record and repeat them. */
#include <stdlib.h>

#include "runtime/runtime_int.h"

enum { WORTH = 4 }; /* launches that a recording beside others saves at least: fewer start as fast by themselves */

static bool reg_stays(const hn_engine *e, uint32_t r)
{
    return r == HN_NO || !e->reg_late[r];
}

static bool trades_places(const hn_engine *e, uint32_t buf)
{
    for (uint32_t k = 0; k < 2 * e->n_carried; k++)
        if (e->carried[k] == buf) return true;
    return false;
}

/* Its address and size are known when shapes are set. */
static bool buf_stays(const hn_engine *e, uint32_t buf)
{
    const hn_plan_buf *x = &e->plan->buf[buf];

    if (x->kind == HN_BUF_PART) {
        if (!reg_stays(e, x->offset_reg) || !reg_stays(e, x->size)) return false;
        x = &e->plan->buf[buf = x->ref];
    }
    return x->kind != HN_BUF_HEAP && !(x->flags & HN_BUF_GROWS) && !trades_places(e, buf);
}

static bool kernel_stays(const hn_engine *e, const hn_step *s)
{
    const uint32_t *list = e->plan->list;

    for (uint32_t k = 0; k < s->u.kernel.n_buf; k++)
        if (!buf_stays(e, HN_ARG_BUF(list[s->u.kernel.buf + k]))) return false;
    for (uint32_t k = 0; k < s->u.kernel.n_arg; k++)
        if (!reg_stays(e, list[s->u.kernel.arg + k])) return false;
    return reg_stays(e, s->u.kernel.extent) && reg_stays(e, s->u.kernel.scratch);
}

/* Checks of what stays hold ever after; what is computed changes. */
static bool shape_stays(const hn_engine *e, const hn_step *s)
{
    for (uint32_t i = s->u.shape.first; i < s->u.shape.first + s->u.shape.n; i++) {
        const hn_sinst *x = &e->plan->inst[i];
        if (x->op < HN_S_CHECK_EQ || !reg_stays(e, x->a) || !reg_stays(e, x->b)) return false;
    }
    return true;
}

/* The step at i with all inside it; its launches are added up. */
static bool stays(const hn_engine *e, uint32_t i, uint32_t *launches)
{
    const hn_step *s = &e->plan->step[i];

    switch (s->kind) {
    case HN_STEP_KERNEL: ++*launches; return kernel_stays(e, s);
    case HN_STEP_COPY:
        ++*launches;
        return buf_stays(e, s->u.copy.dst) && buf_stays(e, s->u.copy.src) && reg_stays(e, s->u.copy.dst_off) &&
               reg_stays(e, s->u.copy.src_off) && reg_stays(e, s->u.copy.bytes);
    case HN_STEP_SHAPE: return shape_stays(e, s);
    case HN_STEP_IF:
        if (!reg_stays(e, s->u.branch.cond)) return false;
        for (uint32_t k = i + 1; k <= i + hn_steps_inside(s); k += 1 + hn_steps_inside(&e->plan->step[k]))
            if (!stays(e, k, launches)) return false;
        return true;
    default: return false;
    }
}

static void add(hn_engine *e, uint32_t first, uint32_t end, bool recorded)
{
    hn_segment *const last = e->n_segment ? &e->segment[e->n_segment - 1] : NULL;

    if (first == end) return;
    if (last && !recorded && !last->recorded) last->end = end;
    else e->segment[e->n_segment++] = (hn_segment){ first, end, recorded };
}

/* Runs of steps that stay, cut where one does not; all of the plan is one where there is no cut, however short. */
static void cut(hn_engine *e)
{
    const uint32_t n = e->plan->n_step;

    for (uint32_t i = 0, next; i < n; i = next) {
        uint32_t launches = 0, ignored = 0;
        for (next = i; next < n && stays(e, next, &launches);)
            next += 1 + hn_steps_inside(&e->plan->step[next]);
        add(e, i, next, launches >= WORTH || next - i == n);
        for (i = next; next < n && !stays(e, next, &ignored);)
            next += 1 + hn_steps_inside(&e->plan->step[next]);
        add(e, i, next, false);
    }
}

hone_status hn_segments_find(hn_engine *e, hn_diag *dg)
{
    e->segment = calloc((size_t)e->plan->n_step + 1, sizeof(*e->segment));
    if (!e->segment) return HN_NOMEM(dg);
    if (hn_device_records(e->device)) cut(e);
    else add(e, 0, e->plan->n_step, false);
    return HONE_OK;
}
