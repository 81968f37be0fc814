/* The plan: buffers for values, steps for groups, outputs. */
#include "build/build_int.h"

#include "memplan/memplan.h"

#include <string.h>

hn_groups *hn_build_groups(hn_job *b, const hn_graph *g)
{
    for (int i = 0; i < b->formed.n; i++)
        if (b->formed.at[i]->g == g) return &b->formed.at[i]->groups;
    return NULL;
}

/* ---- buffers ---- */
static uint32_t constant_buf(hn_planner *p, hn_value *v, hn_diag *dg)
{
    uint32_t weight;
    if (hn_engine_writer_weight(p->b->writer, hn_data_digest(v->data), "", v->data->at, v->data->bytes, &weight, dg) != HONE_OK)
        return HN_NO;
    return hn_pb_weight_buf(p->pb, v->name, weight, v->data->bytes);
}

uint32_t hn_plan_value(hn_planner *p, hn_value *v, hn_diag *dg)
{
    if (p->buf[v->id] == HN_NO && v->data) p->buf[v->id] = constant_buf(p, v, dg);
    if (p->buf[v->id] == HN_NO && !dg->code)
        HN_RAISE(dg, HONE_E_INTERNAL, "value \"%s\" is read before it is computed", v->name);
    return p->buf[v->id];
}

uint32_t hn_plan_new_buf(hn_planner *p, hn_value *v, uint32_t size)
{
    if (hn_pb_in_prefix(p->pb, size)) {
        const hn_node *n = v->def;
        const int64_t align = n ? hn_knob_read_node(p->b->knobs, HN_KNOB_plan_align, n->origin, n->n_origin) : HN_MP_ALIGN;
        return p->buf[v->id] = hn_pb_arena_buf(p->pb, v->name, size, (uint32_t)align);
    }
    p->buf[v->id] = hn_pb_heap_buf(p->pb, v->name, size);
    hn_pb_step_alloc(p->pb, &p->buf[v->id], 1);
    return p->buf[v->id];
}

static hone_status size_unknown(const hn_value *v, hn_diag *dg)
{
    return HN_RAISE(dg, HONE_E_UNSUPPORTED, "the size of \"%s\" is not known when its memory is needed", v->name);
}

/* Upper bounds of data-dependent results: as many elements as the operand has. */
static hn_dim upper_numel(hn_symtab *t, const hn_node *n, int out)
{
    const hn_tdesc *x = &hn_in(n, 0)->type;
    hn_dim count = hn_tdesc_numel(t, x);
    if (n->op == HN_OP_nms) { /* [count, 3]: every box of every class of every batch */
        const hn_tdesc *s = &hn_in(n, 1)->type;
        return hn_dim_mul(t, hn_tdesc_numel(t, s), 3);
    }
    if (n->op == HN_OP_nonzero && out == 0) return hn_dim_mul(t, count, x->rank ? x->rank : 1);
    return count;
}

static uint32_t result_bytes(hn_planner *p, const hn_group *group, const hn_value *v)
{
    const hn_node *n = v->def;
    if (!(hn_op_of(n)->traits & HN_TRAIT_DYNAMIC) || group->kind != HN_GROUP_REGION) return hn_plan_bytes(p, v);
    if (hn_tdesc_is_static(&v->type)) return hn_plan_bytes(p, v);
    const uint32_t elems = hn_plan_dim(p, upper_numel(p->b->g->syms, n, v->def_index));
    if (elems == HN_NO) return HN_NO;
    return hn_plan_calc(p, HN_S_MUL, elems, hn_pb_const(p->pb, HN_MAX(1, hn_dtype_bits(v->type.dtype) / 8)));
}

/* ---- results over operands ---- */
static bool only_read_by(const hn_planner *p, const hn_value *v, const hn_group *group)
{
    HN_FOR_USES (u, v) {
        bool inside = false;
        for (int i = 0; i < group->nodes.n && !inside; i++) inside = u->node == group->nodes.at[i];
        if (!inside) return false;
    }
    return hn_pb_is_arena(p->pb, p->buf[v->id]);
}

/* An operand whose storage result `out` may take: as large, read by this region alone, not a part of another buffer. */
static hn_value *replaced_by(const hn_planner *p, const hn_group *group, int out)
{
    const hn_emission *e = group->choice->emission;
    for (int i = 0; i < e->inplace.n; i++) {
        hn_value *v = group->in[e->inplace.at[i].in];
        if (e->inplace.at[i].out != out || v->data || !v->def || v->def->graph != group->root->graph) continue;
        bool taken = p->buf[v->id] == HN_NO;
        for (int k = 0; k < group->n_out; k++) taken |= p->buf[group->out[k]->id] == p->buf[v->id];
        if (!taken && only_read_by(p, v, group)) return v;
    }
    return NULL;
}

static bool write_over(hn_planner *p, const hn_group *group, int out)
{
    hn_value *x = replaced_by(p, group, out), *v = group->out[out];
    if (!x || !hn_knob_read_node(p->b->knobs, HN_KNOB_plan_inplace, group->root->origin, group->root->n_origin)) return false;
    p->buf[v->id] = p->buf[x->id];
    return true;
}

static hone_status make_results(hn_planner *p, const hn_group *group, hn_diag *dg)
{
    for (int i = 0; i < group->n_out; i++) {
        hn_value *v = group->out[i];
        if (p->buf[v->id] != HN_NO) continue; /* an output's or a carry's buffer */
        const uint32_t size = result_bytes(p, group, v);
        if (size == HN_NO) return size_unknown(v, dg);
        if (!write_over(p, group, i)) hn_plan_new_buf(p, v, size);
    }
    return HONE_OK;
}

/* A reshape between symbolic shapes holds only where both have one element count. */
static hone_status check_same_bytes(hn_planner *p, const hn_node *n, uint32_t size, hn_diag *dg)
{
    if (n->op != HN_OP_reshape) return HONE_OK;
    const uint32_t from = hn_plan_bytes(p, hn_in(n, 0));
    if (from == HN_NO) return size_unknown(hn_in(n, 0), dg);
    if (from == size) return HONE_OK;
    hn_str what = { 0 };
    hn_str_addf(&what, "node \"%s\": elements before and after the reshape", n->n_origin ? n->origin[0] : n->name);
    hn_pb_check(p->pb, HN_S_CHECK_EQ, from, size, hn_str_get(&what));
    hn_str_done(&what);
    return HONE_OK;
}

static hone_status plan_alias(hn_planner *p, hn_node *n, hn_diag *dg)
{
    hn_dim offset;
    hn_value *v = n->out[0];
    hn_group_alias_offset(p->b, n->graph, n, &offset);
    const uint32_t parent = hn_plan_value(p, hn_in(n, 0), dg);
    if (parent == HN_NO) return dg->code;
    const uint32_t size = hn_plan_bytes(p, v), at = offset ? hn_plan_dim(p, offset) : HN_NO;
    if (size == HN_NO) return size_unknown(v, dg);
    HN_TRY(check_same_bytes(p, n, size, dg));
    if (p->buf[v->id] == HN_NO) p->buf[v->id] = hn_pb_part(p->pb, v->name, parent, at, size);
    else hn_pb_step_copy(p->pb, p->buf[v->id], HN_NO, parent, at, size);
    return HONE_OK;
}

hone_status hn_plan_graph(hn_planner *p, hn_graph *g, hn_diag *dg)
{
    hn_groups *groups = hn_build_groups(p->b, g);
    if (HN_NEVER(!groups)) return HN_RAISE(dg, HONE_E_INTERNAL, "a body was not grouped");
    for (int i = 0; i < groups->all.n; i++) {
        hn_group *group = groups->all.at[i];
        switch (group->kind) {
        case HN_GROUP_ALIAS:
            HN_TRY(hn_plan_check_promises(p, group->root, dg));
            HN_TRY(plan_alias(p, group->root, dg));
            break;
        case HN_GROUP_CONTROL: HN_TRY_IN(dg, hn_plan_control(p, group->root, dg), "node \"%s\"", group->root->name); break;
        case HN_GROUP_HOST: HN_TRY_IN(dg, hn_plan_host(p, group->root, dg), "node \"%s\"", group->root->name); break;
        case HN_GROUP_REGION:
            HN_TRY(make_results(p, group, dg));
            HN_TRY(hn_plan_region(p, group, dg));
            break;
        }
    }
    return HONE_OK;
}

/* ---- outputs ---- */
typedef struct output {
    uint32_t io, dim[HN_MAX_RANK], size;
    bool direct; /* the producing step writes the output's own buffer */
    bool grows;
} output;

static bool known_ahead(const hn_graph *root, const hn_symtab *t, hn_dim d)
{
    if (hn_dim_is_const(d) || hn_dim_known(t, d, &(int64_t){ 0 })) return true;
    hn_dim x[3] = { 0 };
    if (hn_dim_expr(t, d, x) == HN_EX_SYM) return !hn_sym_definer(root, d);
    return known_ahead(root, t, x[0]) && known_ahead(root, t, x[1]) && known_ahead(root, t, x[2]);
}

static bool shape_known_ahead(const hn_graph *g, const hn_tdesc *d)
{
    for (int a = 0; a < d->rank; a++)
        if (!known_ahead(g, g->syms, d->dim[a])) return false;
    return true;
}

/* The first output of a computed value is written in place; constants, inputs, repeats and views are copied at the end. */
static bool writes_direct(hn_planner *p, hn_graph *g, const hn_value *v)
{
    if (!v->def || v->data || p->buf[v->id] != HN_NO || !hn_layout_is_plain(&v->layout)) return false;
    hn_dim offset;
    return v->def->graph == g && !(hn_op_of(v->def)->traits & HN_TRAIT_CONTROL) &&
           !hn_group_alias_offset(p->b, g, v->def, &offset);
}

static void declare_output(hn_planner *p, hn_graph *g, int i, output *o)
{
    hn_value *v = g->out[i].value;
    const hn_tdesc *d = &v->type;
    o->grows = !shape_known_ahead(g, d);
    for (int a = 0; a < d->rank; a++)
        o->dim[a] = known_ahead(g, g->syms, d->dim[a]) ? hn_plan_dim(p, d->dim[a]) : hn_pb_var(p->pb, 0);
    const char *name = g->out_name[i];
    if (o->grows) {
        o->size = hn_pb_var(p->pb, 0);
        o->io = hn_pb_output_grows(p->pb, name, d->dtype, (uint32_t)d->rank, o->dim, o->size);
        return;
    }
    o->io = hn_pb_output(p->pb, name, d->dtype, (uint32_t)d->rank, o->dim);
    if (!writes_direct(p, g, v)) return;
    o->direct = true;
    p->buf[v->id] = hn_pb_io_buf(p->pb, o->io);
}

static hone_status finish_output(hn_planner *p, hn_graph *g, int i, const output *o, hn_diag *dg)
{
    if (o->direct) return HONE_OK;
    hn_value *v = g->out[i].value;
    const uint32_t src = hn_plan_value(p, v, dg), bytes = hn_plan_bytes(p, v);
    uint32_t dst = hn_pb_io_buf(p->pb, o->io);
    if (src == HN_NO) return dg->code;
    if (bytes == HN_NO) return size_unknown(v, dg);
    if (o->grows) {
        for (int a = 0; a < v->type.rank; a++)
            if (!known_ahead(g, g->syms, v->type.dim[a]))
                hn_pb_calc_to(p->pb, o->dim[a], HN_S_MOVE, hn_plan_dim(p, v->type.dim[a]), 0, 0);
        hn_pb_calc_to(p->pb, o->size, HN_S_MOVE, bytes, 0, 0);
        hn_pb_step_alloc(p->pb, &dst, 1);
    }
    hn_pb_step_copy(p->pb, dst, HN_NO, src, HN_NO, bytes);
    return HONE_OK;
}

static void add_profile(hn_planner *p, hn_graph *g)
{
    HN_VEC(hn_plan_bound) bound = { 0 };
    bool any = false;
    for (int i = 0; i < p->regs.n; i++) {
        const hn_sym *s = hn_sym_get(g->syms, p->regs.at[i].dim);
        if (!s || s->kind != HN_SYM_INPUT) continue;
        any |= s->max != INT64_MAX;
        hn_vec_push(p->b->a, &bound, ((hn_plan_bound){ s->min, s->opt, s->max }));
    }
    if (any) hn_pb_profile(p->pb, bound.at);
}

enum { SPARE_IDS = 4096 }; /* constants that planning adds: one a loop without a first condition */

hone_status hn_plan_make(hn_job *b, hn_plan *ret, hn_diag *dg)
{
    hn_graph *g = b->g;
    hn_planner p = { .b = b, .pb = hn_pb_new(b->a) };
    const uint32_t n_id = g->next_id + SPARE_IDS;
    p.buf = HN_NEW_N(b->a, uint32_t, n_id);
    output *out = HN_NEW_N(b->a, output, g->n_out + 1);
    if (!p.pb || !p.buf || !out) return HN_NOMEM(dg);
    memset(p.buf, 0xff, n_id * sizeof *p.buf);
    hn_pb_target(p.pb, b->t->arch, b->t->feat);
    hn_plan_bind_inputs(&p, g);
    add_profile(&p, g);
    for (int i = 0; i < g->n_out; i++) declare_output(&p, g, i, &out[i]);
    HN_TRY(hn_plan_graph(&p, g, dg));
    for (int i = 0; i < g->n_out; i++) HN_TRY(finish_output(&p, g, i, &out[i], dg));
    if (b->t->arch == HN_ARCH_SM && hn_pb_branches(p.pb))
        hn_pb_streams(p.pb, (uint32_t)hn_knob_read_model(b->knobs, HN_KNOB_plan_streams));
    if (hn_pb_places(p.pb)) {
        const int64_t order = hn_knob_read_model(b->knobs, HN_KNOB_plan_order);
        if (order) hn_pb_place_orders(p.pb, 1u << (order - 1)); /* the names are those of hn_mp_order */
    }
    return hn_pb_finish(p.pb, ret, dg);
}
