/* Shapes to sizes to places: everything that may allocate, before a run. */
#include <string.h>

#include "runtime/runtime_int.h"

static const char *io_name(const hn_context *c, uint32_t io)
{
    return hn_plan_str(c->plan, c->plan->io[io].name);
}

/* ---- shapes ---- */
static hone_status check_inputs(const hn_context *c, hn_diag *dg)
{
    for (uint32_t i = 0; i < c->plan->n_io; i++)
        if (c->plan->io[i].flags == HN_IO_INPUT && !c->io[i].has_shape)
            return HN_RAISE(dg, HONE_E_SHAPE, "input \"%s\" has no shape", io_name(c, i));
    return HONE_OK;
}

/* Where a symbol's value came from, for messages. */
static const hn_plan_sym *sym_of(const hn_context *c, uint32_t reg)
{
    for (uint32_t i = 0; i < c->plan->n_sym; i++)
        if (c->plan->sym[i].reg == reg) return &c->plan->sym[i];
    return NULL;
}

/* Two axes of one symbol must agree, and computed extents must be what they are computed to be. */
static hone_status check_axis(const hn_context *c, uint32_t io, uint32_t axis, hn_diag *dg)
{
    const uint32_t reg = c->plan->io[io].dim[axis];
    const int64_t got = c->io[io].dim[axis], want = c->reg[reg];

    if (got == want) return HONE_OK;
    const hn_plan_sym *s = sym_of(c, reg);
    if (!s)
        return HN_RAISE(dg, HONE_E_SHAPE, "input \"%s\" axis %u is %lld and must be %lld", io_name(c, io),
                        axis, (long long)got, (long long)want);
    return HN_RAISE(dg, HONE_E_SHAPE,
                    "input \"%s\" axis %u is %lld but \"%s\" is %lld (input \"%s\" axis %u)", io_name(c, io),
                    axis, (long long)got, hn_plan_str(c->plan, s->name), (long long)want, io_name(c, s->io),
                    s->axis);
}

static hone_status check_agreement(const hn_context *c, hn_diag *dg)
{
    for (uint32_t i = 0; i < c->plan->n_io; i++)
        for (uint32_t k = 0; c->plan->io[i].flags == HN_IO_INPUT && k < c->plan->io[i].rank; k++)
            HN_TRY(check_axis(c, i, k, dg));
    return HONE_OK;
}

/* First symbol that profile k does not allow, -1 when it allows all. */
static int outside(const hn_context *c, uint32_t k)
{
    const hn_plan *p = c->plan;

    for (uint32_t i = 0; i < p->n_sym; i++) {
        const hn_plan_bound *b = &p->bound[(size_t)k * p->n_sym + i];
        const int64_t v = c->reg[p->sym[i].reg];
        if (v < b->min || v > b->max) return (int)i;
    }
    return -1;
}

static hone_status check_profile(const hn_context *c, hn_diag *dg)
{
    const hn_plan *p = c->plan;
    const uint32_t first = c->profile < 0 ? 0 : (uint32_t)c->profile;
    const uint32_t end = c->profile < 0 ? p->n_profile : HN_MIN(first + 1, p->n_profile);
    int bad = -1;

    for (uint32_t k = first; k < end; k++) {
        const int s = outside(c, k);
        if (s < 0) return HONE_OK;
        if (bad < 0) bad = s;
    }
    if (bad < 0) return HONE_OK; /* no profiles */
    const hn_plan_sym *s = &p->sym[bad];
    const hn_plan_bound *b = &p->bound[(size_t)first * p->n_sym + (size_t)bad];
    return HN_RAISE(dg, HONE_E_SHAPE, "input \"%s\" axis %u is %lld, profile %u allows %lld to %lld",
                    io_name(c, s->io), s->axis, (long long)c->reg[s->reg], first, (long long)b->min,
                    (long long)b->max);
}

static hone_status run_prefix(hn_context *c, hn_diag *dg)
{
    memcpy(c->reg, c->plan->reg_init, c->plan->n_reg * sizeof(*c->reg));
    HN_TRY(hn_shape_run(c, 0, c->plan->n_prefix, dg));
    HN_TRY(check_agreement(c, dg));
    return check_profile(c, dg);
}

/* ---- sizes ---- */
static hone_status set_sizes(hn_context *c, hn_diag *dg)
{
    const hn_plan *p = c->plan;

    for (uint32_t i = 0; i < p->n_buf; i++) {
        const uint32_t kind = p->buf[i].kind;
        if (kind == HN_BUF_HEAP || kind == HN_BUF_PART || kind == HN_BUF_WEIGHT ||
            (p->buf[i].flags & HN_BUF_GROWS))
            continue;
        const int64_t bytes = c->reg[p->buf[i].size];
        if (bytes < 0 && kind != HN_BUF_ARENA) /* else an error where a step uses it: branches not taken do not matter */
            return hn_negative_size(c, i, bytes, dg);
        c->buf[i].bytes = bytes;
    }
    for (uint32_t k = 0; k < c->engine->n_carried; k++) {
        const uint32_t in = c->engine->carried[2 * k], out = c->engine->carried[2 * k + 1];
        if (c->buf[in].bytes != c->buf[out].bytes)
            return HN_RAISE(dg, HONE_E_SHAPE, "a loop carries \"%s\" of %lld bytes as \"%s\" of %lld",
                            hn_buf_name(c, out), (long long)c->buf[out].bytes, hn_buf_name(c, in),
                            (long long)c->buf[in].bytes);
    }
    return HONE_OK;
}

/* ---- the arena ---- */
enum {
    MANY_ITEMS = 256
}; /* above it the quadratic planner gets two orders instead of five, to stay near 1 ms */

static hone_status plan_dynamic(hn_context *c, hn_diag *dg)
{
    const hn_plan *p = c->plan;
    hn_mp_result r;
    int n = 0;

    for (uint32_t i = 0; i < p->n_buf; i++)
        if (p->buf[i].kind == HN_BUF_ARENA)
            c->item[n++] = (hn_mp_item){ .bytes = HN_MAX(c->buf[i].bytes, 0),
                                         .first = (int32_t)p->buf[i].first,
                                         .last = (int32_t)p->buf[i].last,
                                         .root = -1,
                                         .align = (int32_t)HN_MAX(p->buf[i].align, (uint32_t)HN_MP_ALIGN) };
    if (!hn_memplan(c->item, n, n > MANY_ITEMS ? HN_MP_QUICK : HN_MP_ALL, c->item_work, &r) ||
        r.arena_bytes > INT64_MAX - HN_TAIL_BYTES)
        return HN_RAISE(dg, HONE_E_LIMIT, "activations need more bytes than there are");
    c->arena_bytes = r.arena_bytes ? r.arena_bytes + HN_TAIL_BYTES : 0;
    c->arena_bound = r.bound_bytes;
    return HONE_OK;
}

static hone_status over_ceiling(const hn_context *c, int64_t need, hn_diag *dg)
{
    uint32_t largest = HN_NO;

    for (uint32_t i = 0; i < c->plan->n_buf; i++)
        if (c->plan->buf[i].kind == HN_BUF_ARENA &&
            (largest == HN_NO || c->buf[i].bytes > c->buf[largest].bytes))
            largest = i;
    if (largest == HN_NO)
        return HN_RAISE(dg, HONE_E_LIMIT, "%lld bytes are needed, %lld allowed", (long long)need,
                        (long long)c->ceiling);
    return HN_RAISE(dg, HONE_E_LIMIT,
                    "activations need %lld bytes, %lld are allowed; the largest tensor is \"%s\" with %lld",
                    (long long)need, (long long)c->ceiling, hn_buf_name(c, largest),
                    (long long)c->buf[largest].bytes);
}

static hone_status make_arena(hn_context *c, hn_diag *dg)
{
    hn_device *const d = c->engine->device;
    void *p;
    const int64_t other = c->heap_bytes + c->output_bytes;

    if (other > c->ceiling || c->arena_bytes > c->ceiling - other) return over_ceiling(c, c->arena_bytes, dg);
    if (c->arena_bytes <= c->arena_room) return HONE_OK;
    hn_device_free(d, c->arena, (size_t)c->arena_room); /* first, so that the peak is the new one alone */
    c->arena = NULL, c->arena_room = 0;
    HN_TRY(hn_device_alloc(d, (size_t)c->arena_bytes, 4096, &p, dg));
    c->arena = p, c->arena_room = c->arena_bytes;
    return HONE_OK;
}

static hone_status place(hn_context *c, hn_diag *dg)
{
    const hn_plan *p = c->plan;
    const bool fixed = p->flags & HN_PLAN_STATIC;
    int n = 0;

    if (fixed)
        c->arena_bytes = (int64_t)p->arena_bytes;
    else
        HN_TRY(plan_dynamic(c, dg));
    HN_TRY(make_arena(c, dg));
    for (uint32_t i = 0; i < p->n_buf; i++) {
        if (p->buf[i].kind != HN_BUF_ARENA) continue;
        const int64_t at = fixed ? (int64_t)p->buf[i].offset : c->item[n++].offset;
        c->buf[i].ptr = c->arena ? c->arena + at : NULL;
    }
    return HONE_OK;
}

/* ---- scratch ---- */
static hone_status reserve(hn_context *c, hn_diag *dg)
{
    const hn_plan *p = c->plan;
    int64_t most = 0;

    for (uint32_t i = 0; i < p->n_step; i++) {
        const hn_step *s = &p->step[i];
        if (s->kind != HN_STEP_KERNEL || s->u.kernel.scratch == HN_NO) continue;
        most = HN_MAX(most, c->reg[s->u.kernel.scratch]); /* negative in a branch that is not taken */
    }
    HN_TRY(hn_queue_reserve(c->queue, (size_t)most, dg));
    c->scratch_bytes = most;
    return HONE_OK;
}

/* ---- memory of the context's own ---- */
hone_status hn_heap_resize(hn_context *c, uint32_t buf, int64_t bytes, int64_t keep, hn_diag *dg)
{
    hn_buf_state *const st = &c->buf[buf];
    int64_t *const total = c->plan->buf[buf].kind == HN_BUF_HEAP ? &c->heap_bytes : &c->output_bytes;
    void *p;

    if (bytes <= st->own_bytes - HN_TAIL_BYTES) {
        st->ptr = st->own;
        return HONE_OK;
    }
    const int64_t want = HN_MAX(bytes, keep > 0 ? keep + keep / 2 : 0);
    if (want > INT64_MAX - HN_TAIL_BYTES)
        return HN_RAISE(dg, HONE_E_LIMIT, "tensor \"%s\" needs more bytes than there are",
                        hn_buf_name(c, buf));
    const int64_t room = want + HN_TAIL_BYTES;
    const int64_t left = c->ceiling - (c->arena_bytes + c->heap_bytes + c->output_bytes - st->own_bytes);
    if (room > left)
        return HN_RAISE(dg, HONE_E_LIMIT, "tensor \"%s\" needs %lld bytes, %lld are left of %lld allowed",
                        hn_buf_name(c, buf), (long long)room, (long long)left, (long long)c->ceiling);
    HN_TRY(hn_device_alloc(c->engine->device, (size_t)room, 64, &p, dg));
    hone_status s = HONE_OK;
    if (keep > 0) s = hn_queue_copy(c->queue, p, st->own, (size_t)keep, dg);
    if (!s) s = hn_queue_sync(c->queue, dg);
    if (s) {
        hn_device_free(c->engine->device, p, (size_t)room);
        return s;
    }
    hn_device_free(c->engine->device, st->own, (size_t)st->own_bytes);
    *total += room - st->own_bytes;
    st->own = p, st->own_bytes = room, st->ptr = p;
    return HONE_OK;
}

hone_status hn_context_prepare(hn_context *c, hn_diag *dg)
{
    if (c->prepared) return HONE_OK;
    c->ran = false;
    hn_recordings_drop(c);
    HN_TRY(check_inputs(c, dg));
    HN_TRY(run_prefix(c, dg));
    HN_TRY(set_sizes(c, dg));
    HN_TRY(place(c, dg));
    HN_TRY(reserve(c, dg));
    memcpy(c->reg0, c->reg, c->plan->n_reg * sizeof(*c->reg));
    c->prepared = true;
    return HONE_OK;
}
