/* Candidates of a region as a heat: where their operands lie, what indices hold, and who runs it. */
#include <stdlib.h>
#include <string.h>

#include "build/build_int.h"
#include "build/heat.h"

struct hn_measure {
    hn_job *b;
    hn_heater *heater;      /* in this process; NULL: the worker does it */
    hn_heat_worker *worker; /* on a GPU */
};

static hone_status start_worker(hn_job *b, hn_heat_worker **ret, hn_diag *dg)
{
    char *program;
    HN_TRY(hn_worker_find(b->o->worker, &program, dg));
    const hone_status s = hn_heat_worker_create(program, b->o->candidate_timeout_ns, ret, dg);
    free(program);
    return s;
}

hone_status hn_measure_create(hn_job *b, hn_measure **ret, hn_diag *dg)
{
    hn_measure *m = HN_NEW(b->a, hn_measure);
    hn_device *d;
    if (!m) return HN_NOMEM(dg);
    m->b = b;
    HN_TRY(hn_device_for(b->t->arch, &d, dg));
    if (d->vt->host_memory) HN_TRY(hn_heater_create(b->t->arch, b->t->n_core, &m->heater, dg));
    else if (b->o->heat) m->worker = b->o->heat;
    else HN_TRY(start_worker(b, &m->worker, dg));
    *ret = m;
    return HONE_OK;
}

void hn_measure_destroy(hn_measure *m)
{
    if (!m) return;
    hn_heater_destroy(m->heater);
    if (m->worker != m->b->o->heat) hn_heat_worker_destroy(m->worker);
}

/* ---- a set of operands ---- */
static int64_t ref_bytes(const hn_region *r, const hn_emission *e, hn_ref ref)
{
    switch (ref.kind) {
    case HN_REF_TEMP: return hn_region_opt(r, e->temp_bytes.at[ref.index]);
    case HN_REF_BLOB: return (int64_t)e->blobs.at[ref.index].bytes;
    case HN_REF_FAULT: return HN_FAULT_BYTES;
    default: break;
    }
    const hn_value *v = ref.kind == HN_REF_IN ? r->g->in[ref.index] : r->g->out[ref.index].value;
    hn_tdesc stored;
    hn_layout_dims(r->g->syms, &v->layout, &v->type, &stored);
    int64_t n = 1;
    for (int a = 0; a < stored.rank; a++) n *= hn_region_opt(r, stored.dim[a]);
    return hn_dtype_bytes(v->type.dtype, n);
}

enum { GAP = 4096 + 64 }; /* between operands: a page for over-reads, a line against 4 KiB aliasing */

static bool is_constant(const hn_region *r, hn_ref ref)
{
    return ref.kind == HN_REF_BLOB || (ref.kind == HN_REF_IN && r->data && r->data[ref.index]);
}

/* Of the first that are constants or are not, behind `at`; found: where `want` lies. */
static int64_t lay_out(const hn_region *r, const hn_emission *e, bool constant, int64_t at, const hn_ref *want, int64_t *found)
{
    const struct {
        hn_ref_kind kind;
        int n;
    } order[] = { { HN_REF_IN, r->g->n_in }, { HN_REF_OUT, r->g->n_out }, { HN_REF_TEMP, e->temp_bytes.n },
                  { HN_REF_BLOB, e->blobs.n }, { HN_REF_FAULT, 1 } };
    for (int k = 0; k < HN_COUNT(order); k++)
        for (int i = 0; i < order[k].n; i++) {
            const hn_ref ref = { order[k].kind, i };
            if (is_constant(r, ref) != constant) continue;
            if (want && ref.kind == want->kind && ref.index == want->index) *found = at;
            at += (ref_bytes(r, e, ref) + GAP + 63) / 64 * 64;
        }
    return at;
}

/* Constants lie behind all others. */
static int64_t constant_at(const hn_region *r, const hn_emission *e)
{
    return lay_out(r, e, /* constant= */ false, 0, NULL, NULL);
}

static int64_t set_bytes(const hn_region *r, const hn_emission *e)
{
    const int64_t n = lay_out(r, e, /* constant= */ true, constant_at(r, e), NULL, NULL);
    return (n + 4095) / 4096 * 4096;
}

static int64_t offset_of(const hn_region *r, const hn_emission *e, hn_ref want)
{
    int64_t at = 0;
    const int64_t behind = lay_out(r, e, /* constant= */ false, 0, &want, &at);
    (void)lay_out(r, e, /* constant= */ true, behind, &want, &at);
    return at;
}

/* ---- one candidate ---- */
static hone_status describe_call(hn_measure *m, const hn_region *r, const hn_emission *e, const hn_kcall *k, hn_heat_call *c, hn_diag *dg)
{
    const hn_code *code;
    HN_TRY(hn_code_get(m->b, k, &code, dg));
    const int n_buf = hn_kcall_n_buf(k);
    int64_t *arg = HN_NEW_N(m->b->a, int64_t, k->func.n_arg + 1), *at = HN_NEW_N(m->b->a, int64_t, n_buf + 1);
    if (!arg || !at) return HN_NOMEM(dg);
    for (int i = 0; i < k->func.n_arg; i++) arg[i] = hn_region_opt(r, k->arg[i]);
    for (int i = 0; i < n_buf; i++) at[i] = offset_of(r, e, k->buf[i]);
    const int64_t extent = k->call ? 1 : hn_kfunc_is_gpu(&k->func) ? hn_kfunc_blocks(&k->func, arg) : hn_kfunc_parallel(&k->func, arg);
    const double ns = hn_roofline_ns(m->b->t, k->flops, k->bytes, 0.5, 0.5);
    *c = (hn_heat_call){ .code = code->at, .n_code = code->n, .at = at,
                         .l = { .entry = code->entry, .arg = arg, .n_buf = (uint32_t)n_buf, .n_arg = (uint32_t)k->func.n_arg,
                                .extent = extent, .grain = 1, .scratch_bytes = hn_kfunc_scratch_bytes(&k->func, arg),
                                .trip_ps = (int64_t)(1000 * ns / (double)HN_MAX(extent, 1)) + 1 } };
    return HONE_OK;
}

static hone_status describe(hn_measure *m, const hn_region *r, const hn_contender *c, hn_heat_lane *ret, hn_diag *dg)
{
    const int n = c->e->launches.n;
    *ret = (hn_heat_lane){ .name = c->name, .constant_at = constant_at(r, c->e), .call = HN_NEW_N(m->b->a, hn_heat_call, n + 1) };
    if (!ret->call) return HN_NOMEM(dg);
    for (; ret->n_call < n; ret->n_call++)
        if (describe_call(m, r, c->e, &c->e->launches.at[ret->n_call], &ret->call[ret->n_call], &ret->why) != HONE_OK) break;
    return HONE_OK;
}

/* ---- indices ---- */
static bool is_indexed(const hn_node *n)
{
    switch (n->op) {
    case HN_OP_gather: case HN_OP_gather_elements: case HN_OP_gather_nd: case HN_OP_scatter_elements: case HN_OP_scatter_nd:
        return true;
    default: return false;
    }
}

/* Integers of a region that reads or writes by index: kernels do not look at those that building found to be in range. */
static bool is_index(const hn_region *r, int in)
{
    if (hn_dtype_is_float(r->g->in[in]->type.dtype)) return false;
    if (r->data && r->data[in]) return true;
    HN_FOR_NODES (n, r->g)
        if (is_indexed(n)) return true;
    return false;
}

/* Least extent of the axes that a node reads by operand 1. */
static int64_t least_extent(const hn_region *r, const hn_node *n)
{
    const hn_value *x = hn_in(n, 0);
    int axis = 0;
    if (n->op != HN_OP_gather_nd && n->op != HN_OP_scatter_nd && hn_axis_resolve(hn_attr_i(n, "axis"), x->type.rank, &axis))
        return hn_region_opt(r, x->type.dim[axis]);
    int64_t least = INT64_MAX;
    for (int a = 0; a < x->type.rank; a++) least = HN_MIN(least, hn_region_opt(r, x->type.dim[a]));
    return least;
}

/* Numbers that operand `in` may hold lie below this: 1 where it is more than an index, as every range that was proved holds 0. */
static int64_t index_limit(const hn_region *r, int in)
{
    int64_t limit = INT64_MAX;
    HN_FOR_USES (u, r->g->in[in]) {
        if (!u->node || !is_indexed(u->node) || u->index != 1) return 1;
        limit = HN_MIN(limit, least_extent(r, u->node));
    }
    return HN_MAX(1, HN_MIN(limit, 127)); /* of any dtype */
}

static void make_up(const hn_region *r, int in, uint8_t *dst, int64_t bytes)
{
    const hn_dtype t = r->g->in[in]->type.dtype;
    const int64_t limit = index_limit(r, in), n = bytes * 8 / hn_dtype_bits(t);
    memset(dst, 0, (size_t)bytes);
    for (int64_t i = 0; i < n && limit > 1; i++) {
        const int64_t v = i * 61 % limit;
        hn_narrow_i64(t, &v, 1, dst, i);
    }
}

/* Constants that are indices are what they are. Operands lie alike for all candidates. */
static hone_status describe_indices(hn_measure *m, const hn_region *r, const hn_emission *e, hn_heat *h, hn_diag *dg)
{
    h->put = HN_NEW_N(m->b->a, hn_heat_put, r->g->n_in + 1);
    if (!h->put) return HN_NOMEM(dg);
    for (int i = 0; i < r->g->n_in; i++) {
        const hn_ref in = { HN_REF_IN, i };
        if (!is_index(r, i)) continue;
        const hn_data *own = r->data ? r->data[i] : NULL;
        const int64_t room = ref_bytes(r, e, in), bytes = own ? HN_MIN(room, (int64_t)own->bytes) : room;
        uint8_t *made = own ? NULL : hn_arena_alloc(m->b->a, 1, (size_t)bytes + 4);
        if (!own && !made) return HN_NOMEM(dg);
        if (!own) make_up(r, i, made, bytes);
        h->put[h->n_put++] = (hn_heat_put){ offset_of(r, e, in), own ? own->at : made, bytes };
    }
    return HONE_OK;
}

static void take_result(const hn_region *r, const hn_heat_lane *l, hn_arena *a, hn_contender *c)
{
    c->ns = l->ns;
    c->failed = l->why.code != HONE_OK;
    if (!c->failed) return;
    c->reason = hn_arena_strdup(a, l->why.message);
    hn_log(HN_LOG_WARN, "%s is out for %s: %s%s%s", l->name, r->name, l->why.message, l->why.hint[0] ? "; " : "", l->why.hint);
}

/* A GPU that takes one process alone, or has no memory for another one, is raced on from here: a fault then ends the build. */
static hone_status run_heat(hn_measure *m, hn_heat *h, hn_diag *dg)
{
    hn_diag why = { 0 };
    if (m->heater) return hn_heat_run(m->heater, h, NULL, NULL, dg);
    const hone_status s = hn_heat_worker_run(m->worker, h, &why);
    if (s != HONE_E_DEVICE && s != HONE_E_NOMEM) {
        if (dg && s != HONE_OK) *dg = why;
        return s;
    }
    hn_log(HN_LOG_WARN, "candidates are timed in this process, where a fault ends it all: a worker cannot: %s", why.message);
    HN_TRY(hn_heater_create(h->arch, h->n_core, &m->heater, dg));
    return hn_heat_run(m->heater, h, NULL, NULL, dg);
}

hone_status hn_measure_race(hn_measure *m, const hn_region *r, hn_heat_memory memory, hn_contender *c, int n, hn_diag *dg)
{
    hn_heat h = { .arch = m->b->t->arch, .n_core = m->b->t->n_core, .memory = memory, .n_lane = n, .lane = HN_NEW_N(m->b->a, hn_heat_lane, n + 1) };
    if (!h.lane) return HN_NOMEM(dg);
    for (int i = 0; i < n; i++) {
        h.set_bytes = HN_MAX(h.set_bytes, set_bytes(r, c[i].e));
        HN_TRY(describe(m, r, &c[i], &h.lane[i], dg));
    }
    HN_TRY(describe_indices(m, r, c[0].e, &h, dg));
    const int64_t t0 = hn_now_ns();
    HN_TRY(run_heat(m, &h, dg));
    m->b->report->race_ns += hn_now_ns() - t0;
    for (int i = 0; i < n; i++) take_result(r, &h.lane[i], m->b->a, &c[i]);
    return HONE_OK;
}
