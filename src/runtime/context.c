/* Contexts: making, shapes, bindings, what callers ask. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "runtime/runtime_int.h"

static const char *io_name(const hn_context *c, uint32_t io)
{
    return hn_plan_str(c->plan, c->plan->io[io].name);
}

const char *hn_buf_name(const hn_context *c, uint32_t buf)
{
    return hn_plan_str(c->plan, c->plan->buf[buf].name);
}

static bool reg_is_const(const hn_context *c, uint32_t r)
{
    const hn_plan *p = c->plan;

    for (uint32_t i = 0; i < p->n_prefix; i++)
        if (p->inst[i].op < HN_S_CHECK_EQ && p->inst[i].dst == r) return false;
    return !c->engine->reg_late[r];
}

/* Index of the symbol a register holds, -1 when it is none's. */
static int sym_of(const hn_context *c, uint32_t reg)
{
    for (uint32_t i = 0; i < c->plan->n_sym; i++)
        if (c->plan->sym[i].reg == reg) return (int)i;
    return -1;
}

/* ---- making ---- */
/* Fixed extents, and the optimum of symbols where a profile has one. */
static void default_shape(hn_context *c, uint32_t i)
{
    const hn_plan_io *io = &c->plan->io[i];
    hn_io_state *const st = &c->io[i];

    st->has_shape = true;
    for (uint32_t k = 0; k < io->rank; k++) {
        const int s = sym_of(c, io->dim[k]);
        if (reg_is_const(c, io->dim[k]))
            st->dim[k] = c->plan->reg_init[io->dim[k]];
        else if (s >= 0 && c->plan->n_profile > 0)
            st->dim[k] = c->plan->bound[(size_t)HN_MAX(c->profile, 0) * c->plan->n_sym + (size_t)s].opt;
        else
            st->has_shape = false;
    }
}

static hone_status alloc_tables(hn_context *c, hn_diag *dg)
{
    const hn_plan *p = c->plan;

    for (uint32_t i = 0; i < p->n_buf; i++)
        c->n_item += p->buf[i].kind == HN_BUF_ARENA;
    if (p->flags & HN_PLAN_STATIC) c->n_item = 0;
    c->reg = calloc(p->n_reg + (size_t)1, sizeof(*c->reg));
    c->reg0 = calloc(p->n_reg + (size_t)1, sizeof(*c->reg0));
    c->io = calloc(p->n_io + (size_t)1, sizeof(*c->io));
    c->buf = calloc(p->n_buf + (size_t)1, sizeof(*c->buf));
    c->item = calloc((size_t)c->n_item + 1, sizeof(*c->item));
    c->item_work = malloc(hn_memplan_work_bytes(c->n_item));
    c->replay_at = calloc(p->n_io + (size_t)1, sizeof(*c->replay_at));
    c->replay = calloc(c->engine->n_segment + (size_t)1, sizeof(*c->replay));
    return c->replay && c->replay_at && c->reg && c->reg0 && c->io && c->buf && c->item && c->item_work ? HONE_OK : HN_NOMEM(dg);
}

static bool shapes_known(const hn_context *c)
{
    for (uint32_t i = 0; i < c->plan->n_io; i++)
        if (c->plan->io[i].flags == HN_IO_INPUT && !c->io[i].has_shape) return false;
    return true;
}

static hone_status init(hn_context *c, const hn_context_opts *o, hn_diag *dg)
{
    const hn_plan *p = c->plan;
    const hn_queue_opts qo = { .max_threads = o->max_threads };

    if (o->profile < -1 || (o->profile > 0 && (uint32_t)o->profile >= p->n_profile))
        return HN_RAISE(dg, HONE_E_INVALID, "profile %d of %u", o->profile, p->n_profile);
    if (o->max_threads < 0 || o->memory_ceiling < 0)
        return HN_RAISE(dg, HONE_E_INVALID, "%d threads, %lld bytes", o->max_threads,
                        (long long)o->memory_ceiling);
    c->profile = o->profile;
    c->poison = o->poison && c->engine->device->vt->host_memory;
    c->ceiling = o->memory_ceiling > 0 ? o->memory_ceiling : INT64_MAX;
    HN_TRY(alloc_tables(c, dg));
    HN_TRY(hn_queue_create(c->engine->device, &qo, &c->queue, dg));
    HN_TRY(hn_faults_create(c, dg));
    HN_TRY(hn_ring_create(c, dg));
    memcpy(c->reg, p->reg_init, p->n_reg * sizeof(*c->reg));
    for (uint32_t i = 0; i < p->n_buf; i++)
        if (p->buf[i].kind == HN_BUF_WEIGHT)
            c->buf[i] = (hn_buf_state){ .ptr = c->engine->weight[i], .bytes = p->reg_init[p->buf[i].size] };
    for (uint32_t i = 0; i < p->n_io; i++)
        if (p->io[i].flags == HN_IO_INPUT) default_shape(c, i);
    return shapes_known(c) ? hn_context_prepare(c, dg) : HONE_OK;
}

hone_status hn_context_create(hn_engine *e, const hn_context_opts *o, hn_context **ret, hn_diag *dg)
{
    static const hn_context_opts none = { 0 };
    if (!e->device) return HN_RAISE(dg, HONE_E_INVALID, "the engine was opened to be inspected, not to run");
    hn_context *const c = calloc(1, sizeof(*c));
    if (!c) return HN_NOMEM(dg);
    c->engine = hn_engine_ref(e);
    c->plan = e->plan;
    const hone_status s = init(c, o ? o : &none, dg);
    if (s) {
        hn_context_destroy(c);
        return s;
    }
    *ret = c;
    return HONE_OK;
}

void hn_context_destroy(hn_context *c)
{
    if (!c) return;
    hn_device *const d = c->engine->device;
    for (uint32_t i = 0; c->buf && i < c->plan->n_buf; i++)
        hn_device_free(d, c->buf[i].own, (size_t)c->buf[i].own_bytes);
    for (uint32_t i = 0; c->io && i < c->plan->n_io; i++)
        hn_device_host_free(d, c->io[i].staging);
    hn_device_free(d, c->arena, (size_t)c->arena_room);
    hn_faults_destroy(c);
    hn_ring_destroy(c);
    hn_recordings_drop(c);
    hn_queue_destroy(c->queue);
    free(c->reg), free(c->reg0), free(c->io), free(c->buf), free(c->item), free(c->item_work), free(c->time),
        free(c->replay_at), free(c->replay);
    hn_engine_unref(c->engine);
    free(c);
}

hn_engine *hn_context_engine(const hn_context *c)
{
    return c->engine;
}

/* ---- shapes ---- */
static hone_status check_io(const hn_context *c, int io, hn_diag *dg)
{
    if (io >= 0 && (uint32_t)io < c->plan->n_io) return HONE_OK;
    return HN_RAISE(dg, HONE_E_INVALID, "input or output %d of %u", io, c->plan->n_io);
}

/* Does the profile (or, for -1, any) allow this value of a symbol? Yields the bounds to show. */
static bool in_profile(const hn_context *c, int sym, int64_t v, hn_plan_bound *ret)
{
    const hn_plan *p = c->plan;
    const uint32_t first = c->profile < 0 ? 0 : (uint32_t)c->profile;
    const uint32_t end = c->profile < 0 ? p->n_profile : HN_MIN(first + 1, p->n_profile);

    *ret = (hn_plan_bound){ INT64_MAX, 0, INT64_MIN };
    for (uint32_t k = first; k < end; k++) {
        const hn_plan_bound *b = &p->bound[(size_t)k * p->n_sym + (size_t)sym];
        if (b->min <= v && v <= b->max) return true;
        ret->min = HN_MIN(ret->min, b->min), ret->max = HN_MAX(ret->max, b->max);
    }
    return p->n_profile == 0;
}

static hone_status check_axis(const hn_context *c, uint32_t io, uint32_t axis, int64_t v, hn_diag *dg)
{
    const uint32_t reg = c->plan->io[io].dim[axis];
    const int sym = sym_of(c, reg);
    hn_plan_bound b;

    if (v < 0)
        return HN_RAISE(dg, HONE_E_SHAPE, "input \"%s\" axis %u is %lld", io_name(c, io), axis, (long long)v);
    if (reg_is_const(c, reg) && v != c->plan->reg_init[reg])
        return HN_RAISE(dg, HONE_E_SHAPE, "input \"%s\" axis %u is %lld, the engine has it fixed at %lld",
                        io_name(c, io), axis, (long long)v, (long long)c->plan->reg_init[reg]);
    if (sym < 0 || in_profile(c, sym, v, &b)) return HONE_OK;
    hn_hint(dg, "Build the engine with wider bounds for \"%s\".",
            hn_plan_str(c->plan, c->plan->sym[sym].name));
    return HN_RAISE(dg, HONE_E_SHAPE, "input \"%s\" axis %u is %lld, the profile allows %lld to %lld",
                    io_name(c, io), axis, (long long)v, (long long)b.min, (long long)b.max);
}

hone_status hn_context_set_input_shape(hn_context *c, int io, int rank, const int64_t *dim, hn_diag *dg)
{
    HN_TRY(check_io(c, io, dg));
    const hn_plan_io *x = &c->plan->io[io];
    hn_io_state *const st = &c->io[io];

    if (x->flags != HN_IO_INPUT)
        return HN_RAISE(dg, HONE_E_INVALID, "\"%s\" is an output", io_name(c, (uint32_t)io));
    if (rank < 0 || (uint32_t)rank != x->rank)
        return HN_RAISE(dg, HONE_E_SHAPE, "input \"%s\" has rank %u, not %d", io_name(c, (uint32_t)io),
                        x->rank, rank);
    for (int k = 0; k < rank; k++)
        HN_TRY(check_axis(c, (uint32_t)io, (uint32_t)k, dim[k], dg));
    const size_t bytes = (size_t)rank * sizeof(*dim);
    if (st->has_shape && (rank == 0 || memcmp(st->dim, dim, bytes) == 0)) return HONE_OK;
    if (rank > 0) memcpy(st->dim, dim, bytes);
    st->has_shape = true;
    st->sent = NULL;
    c->prepared = false;
    return HONE_OK;
}

static bool dims_known(const hn_context *c, int io)
{
    const hn_plan_io *x = &c->plan->io[io];

    if (c->ran) return true;
    if (!c->prepared) return false;
    for (uint32_t k = 0; k < x->rank; k++)
        if (c->engine->reg_late[x->dim[k]]) return false;
    return true;
}

hone_status hn_context_shape(const hn_context *c, int io, int *ret_rank, int64_t *ret_dim, hn_diag *dg)
{
    HN_TRY(check_io(c, io, dg));
    const hn_plan_io *x = &c->plan->io[io];
    const bool input = x->flags == HN_IO_INPUT;

    if (input ? !c->io[io].has_shape : !dims_known(c, io)) {
        hn_hint(dg, "Set the inputs' shapes; sizes that depend on data are known after a run.");
        return HN_RAISE(dg, HONE_E_INVALID, "the shape of \"%s\" is not known yet", io_name(c, (uint32_t)io));
    }
    for (uint32_t k = 0; k < x->rank; k++)
        ret_dim[k] = input ? c->io[io].dim[k] : c->reg[x->dim[k]];
    *ret_rank = (int)x->rank;
    return HONE_OK;
}

int64_t hn_context_io_bytes(const hn_context *c, int io)
{
    if (io < 0 || (uint32_t)io >= c->plan->n_io) return -1;
    const hn_plan_buf *b = &c->plan->buf[c->plan->io[io].buf];
    if (c->ran || (c->prepared && !(b->flags & HN_BUF_GROWS))) return c->buf[c->plan->io[io].buf].bytes;
    return -1;
}

/* ---- bindings ---- */
hone_status hn_context_bind(hn_context *c, int io, void *data, size_t capacity_bytes, hn_diag *dg)
{
    HN_TRY(check_io(c, io, dg));
    const int bits = hn_dtype_bits((hn_dtype)c->plan->io[io].dtype);
    enum { DEVICE_ALIGN = 16 }; /* kernels of devices with memory of their own read and copy in such pieces */
    const bool remote = data && !hn_device_owns(c->engine->device, data);
    uintptr_t align = bits > 8 ? (uintptr_t)bits / 8 : 1;

    if (data && !remote && !c->engine->device->vt->host_memory) align = DEVICE_ALIGN;
    if ((uintptr_t)data % align)
        return HN_RAISE(dg, HONE_E_INVALID, "the memory for \"%s\" must be aligned to %d bytes",
                        io_name(c, (uint32_t)io), (int)align);
    c->io[io].bound = data;
    c->io[io].sent = NULL;
    c->io[io].remote = remote;
    c->io[io].capacity = data ? (int64_t)HN_MIN(capacity_bytes, (size_t)INT64_MAX) : 0;
    return HONE_OK;
}

void *hn_context_output_data(const hn_context *c, int io)
{
    if (!c->ran || io < 0 || (uint32_t)io >= c->plan->n_io) return NULL;
    const hn_io_state *st = &c->io[io];
    if (c->engine->device->vt->host_memory || (st->bound && !st->remote)) return c->buf[c->plan->io[io].buf].ptr;
    return st->bound ? st->bound : st->staging;
}

/* ---- measurement ---- */
void hn_context_set_transfers(hn_context *c, bool on)
{
    c->without_transfers = !on;
}

hone_status hn_context_set_profiling(hn_context *c, bool on, hn_diag *dg)
{
    if (on && !c->time && !(c->time = calloc(c->plan->n_step + (size_t)1, sizeof(*c->time))))
        return HN_NOMEM(dg);
    c->profiling = on;
    for (uint32_t i = 0; on && i < c->plan->n_step; i++)
        c->time[i] = (hn_step_time){ .step = i, .min_ns = INT64_MAX };
    return HONE_OK;
}

int hn_context_n_step_time(const hn_context *c)
{
    return c->time ? (int)c->plan->n_step : 0;
}

hn_step_time hn_context_step_time(const hn_context *c, int i)
{
    return c->time[i];
}

/* As the planner's: the largest total live at some buffer's first step. Static plans were planned elsewhere.
 */
static int64_t static_bound(const hn_context *c)
{
    const hn_plan *p = c->plan;
    int64_t peak = 0;

    for (uint32_t i = 0; i < p->n_buf; i++) {
        int64_t live = 0;
        for (uint32_t k = 0; p->buf[i].kind == HN_BUF_ARENA && k < p->n_buf; k++)
            if (p->buf[k].kind == HN_BUF_ARENA && p->buf[k].first <= p->buf[i].first &&
                p->buf[i].first <= p->buf[k].last)
                live += (c->buf[k].bytes + HN_MP_ALIGN - 1) / HN_MP_ALIGN * HN_MP_ALIGN;
        peak = HN_MAX(peak, live);
    }
    return peak;
}

hn_context_memory hn_context_get_memory(const hn_context *c)
{
    const bool fixed = c->plan->flags & HN_PLAN_STATIC;
    return (hn_context_memory){ .arena_bytes = c->arena_bytes,
                                .arena_bound_bytes = fixed ? static_bound(c) : c->arena_bound,
                                .heap_bytes = c->heap_bytes,
                                .output_bytes = c->output_bytes,
                                .scratch_bytes = c->scratch_bytes };
}
