/* Kernel calls: from a region's emission to plan steps. */
#include "build/build_int.h"

#include <stdlib.h>

/* ceil((mul * arg[a] * arg[b] + add) / div) as a register. */
static uint32_t extent_reg(hn_planner *p, const hn_kext *e, const uint32_t *arg)
{
    uint32_t r = hn_pb_const(p->pb, e->mul);
    if (e->a >= 0) r = hn_plan_calc(p, HN_S_MUL, r, arg[e->a]);
    if (e->b >= 0) r = hn_plan_calc(p, HN_S_MUL, r, arg[e->b]);
    if (e->add) r = hn_plan_calc(p, HN_S_ADD, r, hn_pb_const(p->pb, e->add));
    return e->div > 1 ? hn_plan_calc(p, HN_S_CEILDIV, r, hn_pb_const(p->pb, e->div)) : r;
}

/* Trips of the parallel loop, or a gpu's blocks. */
static uint32_t trips_reg(hn_planner *p, const hn_kcall *k, const uint32_t *arg)
{
    const hn_kfunc *f = &k->func;
    if (k->call) return hn_pb_const(p->pb, 1);
    if (!hn_kfunc_is_gpu(f)) return extent_reg(p, &f->parallel, arg);
    uint32_t r = extent_reg(p, &f->grid[0], arg);
    for (int i = 1; i < 3; i++) r = hn_plan_calc(p, HN_S_MUL, r, extent_reg(p, &f->grid[i], arg));
    return r;
}

/* As hn_kfunc_scratch_bytes: each array rounded up to 64. */
static uint32_t scratch_reg(hn_planner *p, const hn_kfunc *f, const uint32_t *arg)
{
    uint32_t sum = HN_NO;
    const uint32_t line = hn_pb_const(p->pb, 64);
    for (int i = 0; i < f->n_buf; i++) {
        if (f->buf[i].kind != HN_KBUF_SCRATCH) continue;
        const int64_t size = hn_dtype_bits((hn_dtype)f->buf[i].dtype) / 8;
        uint32_t r = hn_plan_calc(p, HN_S_MUL, extent_reg(p, &f->buf[i].elems, arg), hn_pb_const(p->pb, size));
        r = hn_plan_calc(p, HN_S_MUL, hn_plan_calc(p, HN_S_CEILDIV, r, line), line);
        sum = sum == HN_NO ? r : hn_plan_calc(p, HN_S_ADD, sum, r);
    }
    return sum;
}

static hone_status pack_blob(hn_planner *p, const hn_group *group, int i, uint32_t *ret_buf, hn_diag *dg)
{
    hn_job *b = p->b;
    const hn_choice *c = group->choice;
    const hn_blob *blob = &c->emission->blobs.at[i];
    hn_digest source = { 0, 0 };
    if (blob->operand >= 0) source = hn_data_digest(group->region.data[blob->operand]);
    uint32_t weight = HN_NO;
    if (!hn_engine_writer_has_weight(b->writer, source, blob->recipe, blob->bytes, &weight)) {
        void *bytes = aligned_alloc(64, (blob->bytes + 63) / 64 * 64 + 64);
        if (!bytes) return HN_NOMEM(dg);
        hone_status s = c->tactic->pack(&group->region, c->t, c->p, i, bytes, dg);
        if (s == HONE_OK)
            s = hn_engine_writer_weight(b->writer, source, blob->recipe, bytes, blob->bytes, &weight, dg);
        free(bytes);
        HN_TRY(s);
    }
    *ret_buf = hn_pb_weight_buf(p->pb, blob->recipe, weight, blob->bytes);
    return HONE_OK;
}

static uint32_t region_dim(hn_planner *p, const hn_group *group, hn_dim d)
{
    return hn_plan_dim(p, hn_plan_translate(p->b->g->syms, group->choice->syms, d));
}

typedef struct call_bufs {
    uint32_t *temp, *blob;
} call_bufs;

static hone_status make_bufs(hn_planner *p, const hn_group *group, call_bufs *ret, hn_diag *dg)
{
    const hn_emission *e = group->choice->emission;
    ret->temp = HN_NEW_N(p->b->a, uint32_t, e->temp_bytes.n + 1);
    ret->blob = HN_NEW_N(p->b->a, uint32_t, e->blobs.n + 1);
    if (!ret->temp || !ret->blob) return HN_NOMEM(dg);
    for (int i = 0; i < e->temp_bytes.n; i++) {
        const uint32_t size = region_dim(p, group, e->temp_bytes.at[i]);
        if (hn_pb_in_prefix(p->pb, size)) {
            ret->temp[i] = hn_pb_arena_buf(p->pb, "temporary", size, 64);
        } else {
            ret->temp[i] = hn_pb_heap_buf(p->pb, "temporary", size);
            hn_pb_step_alloc(p->pb, &ret->temp[i], 1);
        }
    }
    for (int i = 0; i < e->blobs.n; i++) HN_TRY(pack_blob(p, group, i, &ret->blob[i], dg));
    return HONE_OK;
}

static hone_status ref_buf(hn_planner *p, const hn_group *group, const call_bufs *cb, hn_ref r, bool write,
                           uint32_t *ret, hn_diag *dg)
{
    uint32_t buf = HN_NO;
    switch (r.kind) {
    case HN_REF_IN: buf = hn_plan_value(p, group->in[r.index], dg); break;
    case HN_REF_OUT: buf = hn_plan_value(p, group->out[r.index], dg); break;
    case HN_REF_TEMP: buf = cb->temp[r.index]; break;
    case HN_REF_BLOB: buf = cb->blob[r.index]; break;
    case HN_REF_FAULT: buf = hn_pb_fault_buf(p->pb); break;
    }
    if (buf == HN_NO) return dg->code ? dg->code : HN_RAISE(dg, HONE_E_INTERNAL, "a kernel operand has no buffer");
    /* What a launch writes it may also have read before: temporaries and results are both. */
    *ret = buf | (write ? HN_ARG_WRITE | (r.kind == HN_REF_TEMP ? HN_ARG_READ : 0) : HN_ARG_READ);
    return HONE_OK;
}

static const char *origin_text(hn_job *b, const hn_group *group)
{
    hn_str s = { 0 };
    int n = 0;
    for (int i = 0; i < group->nodes.n; i++)
        for (int k = 0; k < group->nodes.at[i]->n_origin && n < 8; k++, n++)
            hn_str_addf(&s, "%s%s", n ? "," : "", group->nodes.at[i]->origin[k]);
    const char *text = hn_arena_strdup(b->a, hn_str_get(&s));
    hn_str_done(&s);
    return text;
}

/* Arguments are dims of the region that the choice was made for, which may be an equal one with symbols of its own. */
static int64_t opt_extent(const hn_choice *c, const hn_kcall *k)
{
    int64_t arg[64];
    if (k->call) return 1;
    hn_graph g = { .syms = c->syms };
    const hn_region r = { .g = &g };
    for (int i = 0; i < k->func.n_arg && i < 64; i++) arg[i] = hn_region_opt(&r, k->arg[i]);
    return HN_MAX(1, hn_kfunc_parallel(&k->func, arg));
}

/* The launch's share of the choice's time, by work, spread over its trips. */
static int64_t trip_ps(const hn_group *group, const hn_kcall *k)
{
    const hn_emission *e = group->choice->emission;
    double all = 0;
    for (int i = 0; i < e->launches.n; i++) all += e->launches.at[i].flops + e->launches.at[i].bytes;
    const double share = all > 0 ? (k->flops + k->bytes) / all : 1.0 / e->launches.n;
    const double ps = group->choice->ns * 1000 * share / (double)opt_extent(group->choice, k);
    return ps < 1 ? 1 : ps > 1e15 ? (int64_t)1e15 : (int64_t)ps;
}

/* ---- threads ---- */
typedef struct sharing {
    uint32_t max_threads, grain;
    int64_t trip_ps;
} sharing;

static int64_t ask(const hn_planner *p, const hn_group *group, hn_knob k)
{
    return hn_knob_read_node(p->b->knobs, k, group->root->origin, group->root->n_origin);
}

/* What the route says about sharing the launch; nothing is asked where there is nothing to share. */
static sharing share(const hn_planner *p, const hn_group *group, const hn_kcall *k)
{
    enum { STEP = 4 };
    sharing s = { .grain = 1, .trip_ps = trip_ps(group, k) };
    const int64_t extent = opt_extent(group->choice, k);
    if (extent <= 1 || p->b->o->threads == 1) return s;
    const int64_t most = ask(p, group, HN_KNOB_thread_max), grain = ask(p, group, HN_KNOB_thread_grain);
    s.max_threads = most < p->b->o->threads ? (uint32_t)most : 0;
    s.grain = (uint32_t)HN_MIN(grain, extent);
    switch (ask(p, group, HN_KNOB_thread_cost)) {
    case 1: s.trip_ps *= STEP; break;
    case 2: s.trip_ps = HN_MAX(1, s.trip_ps / STEP); break;
    default: break;
    }
    return s;
}

/* Buffers in calling order, each with what the call does to it. */
static hone_status operand_bufs(hn_planner *p, const hn_group *group, const call_bufs *cb, const hn_kcall *k, uint32_t *ret,
                                hn_diag *dg)
{
    const hn_kfunc *f = &k->func;
    for (uint32_t i = 0; k->call && i < k->call->n_buf; i++)
        HN_TRY(ref_buf(p, group, cb, k->buf[i], hn_libcall_writes(k->call, i), &ret[i], dg));
    for (int i = 0, at = 0; i < f->n_buf; i++) {
        if (f->buf[i].kind != HN_KBUF_PARAM) continue;
        HN_TRY(ref_buf(p, group, cb, k->buf[at], f->buf[i].flags & HN_KBUF_WRITE, &ret[at], dg));
        at++;
    }
    return HONE_OK;
}

static hone_status add_call(hn_planner *p, const hn_group *group, const call_bufs *cb, const hn_kcall *k, hn_diag *dg)
{
    hn_job *b = p->b;
    const hn_kfunc *f = &k->func;
    const int n_buf = hn_kcall_n_buf(k);
    uint64_t entry;
    HN_TRY(hn_code_place(b, k, group->choice->early, &entry, dg));
    uint32_t *buf = HN_NEW_N(b->a, uint32_t, n_buf + 1), *arg = HN_NEW_N(b->a, uint32_t, f->n_arg + 1);
    if (!buf || !arg) return HN_NOMEM(dg);
    for (int i = 0; i < f->n_arg; i++) {
        arg[i] = region_dim(p, group, k->arg[i]);
        if (arg[i] == HN_NO) return HN_RAISE(dg, HONE_E_INTERNAL, "a size that kernel \"%s\" needs is not known yet", f->name);
    }
    HN_TRY(operand_bufs(p, group, cb, k, buf, dg));
    const sharing s = share(p, group, k);
    hn_pb_step_kernel(p->pb, &(hn_pb_call){
        .kernel = hn_pb_kernel(p->pb, group->choice->name, entry, (uint32_t)n_buf, (uint32_t)f->n_arg),
        .buf = buf, .n_buf = (uint32_t)n_buf, .arg = arg, .n_arg = (uint32_t)f->n_arg,
        .extent = trips_reg(p, k, arg), .grain = s.grain, .max_threads = s.max_threads,
        .trip_ps = hn_pb_const(p->pb, s.trip_ps),
        .scratch = scratch_reg(p, f, arg),
        .origin = origin_text(b, group) });
    return HONE_OK;
}

hone_status hn_plan_region(hn_planner *p, hn_group *group, hn_diag *dg)
{
    call_bufs cb;
    hn_plan_check_extents(p, group);
    for (int i = 0; i < group->nodes.n; i++) HN_TRY(hn_plan_check_promises(p, group->nodes.at[i], dg));
    HN_TRY(make_bufs(p, group, &cb, dg));
    const hn_emission *e = group->choice->emission;
    for (int i = 0; i < e->launches.n; i++)
        HN_TRY_IN(dg, add_call(p, group, &cb, &e->launches.at[i], dg), "region \"%s\" (%s)", group->region.name,
                  group->region.ops);
    return HONE_OK;
}
