/* Region forming, first half: which nodes run together.
 *
 * One forward walk. A pointwise node joins the group of an operand when both share an iteration space and no path leads from
 * that group through others back into the node; views with one reader join that reader; reductions and normalisations take
 * the pointwise work before them as prologue. Anything else starts a group. Groups then get a topological order.
 */
#include "build/build_int.h"
#include "tactic/lower.h"

#include <stdlib.h>
#include <string.h>

typedef struct former {
    hn_job *b;
    hn_graph *g;
    hn_group **of;  /* node id -> group */
    int *index;     /* node id -> place in graph order */
    uint32_t *mark; /* group id -> last search that saw it */
    uint32_t search;
    HN_VEC(hn_group *) all;
} former;

/* ---- what may be fused with what ---- */
typedef enum role {
    ROLE_POINTWISE,
    ROLE_VIEW,     /* index rewrites that lowering folds */
    ROLE_EPILOGUE, /* a root that lets pointwise work follow on its result */
    ROLE_BOTH,     /* ... and precede on its operand */
    ROLE_OPAQUE,
    ROLE_CONTROL,
    ROLE_HOST,
} role;

/* Axes longer than one, in storage order; false for blocked layouts. */
static bool storage_order(const hn_value *v, int *ret, int *ret_n)
{
    *ret_n = 0;
    for (int i = 0; i < v->type.rank; i++) {
        const int axis = v->layout.n ? v->layout.at[i].axis : i;
        if (v->layout.n && v->layout.at[i].block) return false;
        if (v->type.dim[axis] != 1) ret[(*ret_n)++] = axis;
    }
    return !v->layout.n || v->layout.n == v->type.rank;
}

/* A reorder or transpose whose result is the operand's bytes as they lie. */
static bool same_bytes(const hn_node *n)
{
    int x[HN_MAX_RANK], y[HN_MAX_RANK], nx, ny;
    if (!storage_order(hn_in(n, 0), x, &nx) || !storage_order(n->out[0], y, &ny) || nx != ny) return false;
    int rank = 0;
    const int64_t *perm = n->op == HN_OP_transpose ? hn_attr_is(n, "perm", &rank) : NULL;
    for (int i = 0; i < nx; i++)
        if (x[i] != (perm ? (int)perm[y[i]] : y[i])) return false;
    return true;
}

/* One whole piece of the columns. */
static bool is_piece(const hn_node *slice, hn_dim *ret_elems)
{
    const hn_value *x = hn_in(slice, 0), *y = slice->out[0];
    const int64_t width = hn_layout_piece(&x->layout, x->type.rank);
    const int last = x->type.rank - 1;
    int rank;
    const hn_dim *start = hn_attr_is(slice, "start", &rank);
    if (!width || !hn_layout_is_plain(&y->layout) || y->type.dim[last] != width || start[last] % width) return false;
    int64_t rows = 1;
    for (int a = 0; a < last; a++) {
        if (x->type.dim[a] != y->type.dim[a]) return false;
        rows *= x->type.dim[a];
    }
    *ret_elems = start[last] * rows;
    return true;
}

/* Kernels for a GPU rely on where their buffers start. */
static bool may_start_at(const hn_job *b, hn_dim offset)
{
    enum { GPU_ALIGN = 16 };
    return b->t->arch != HN_ARCH_SM || (hn_dim_is_const(offset) && offset % GPU_ALIGN == 0);
}

bool hn_group_alias_offset(const hn_job *b, hn_graph *g, const hn_node *n, hn_dim *ret_bytes)
{
    *ret_bytes = 0;
    if (n->op == HN_OP_reshape || n->op == HN_OP_identity)
        return hn_layout_is_plain(&hn_in(n, 0)->layout) && hn_layout_is_plain(&n->out[0]->layout);
    if (n->op == HN_OP_reorder || n->op == HN_OP_transpose) return same_bytes(n);
    if (n->op != HN_OP_slice) return false;
    const hn_value *x = hn_in(n, 0), *y = n->out[0];
    const int64_t bits = hn_dtype_bits(x->type.dtype);
    if (bits % 8 == 0 && is_piece(n, ret_bytes)) {
        *ret_bytes = hn_dim_mul(g->syms, *ret_bytes, hn_dim_const(g->syms, bits / 8));
        return may_start_at(b, *ret_bytes);
    }
    if (!hn_layout_is_plain(&x->layout) || !hn_layout_is_plain(&y->layout) || bits % 8) return false;
    int rank, cut = -1;
    const hn_dim *start = hn_attr_is(n, "start", &rank);
    const int64_t *step = hn_attr_is(n, "step", &rank);
    for (int a = 0; a < rank; a++) {
        if (x->type.dim[a] != 1 && step[a] != 1) return false; /* a reversed axis keeps its extent */
        if (x->type.dim[a] == y->type.dim[a]) continue;
        if (cut >= 0) return false;
        cut = a;
    }
    for (int a = 0; a < cut; a++)
        if (x->type.dim[a] != 1) return false;
    if (cut < 0) return true;
    hn_dim offset = hn_dim_mul(g->syms, start[cut], hn_dim_const(g->syms, bits / 8));
    for (int a = cut + 1; a < rank; a++) offset = hn_dim_mul(g->syms, offset, x->type.dim[a]);
    *ret_bytes = offset;
    return may_start_at(b, offset);
}

static role role_of(const hn_node *n)
{
    if (hn_op_of(n)->traits & HN_TRAIT_CONTROL) return ROLE_CONTROL;
    if (hn_op_of(n)->traits & HN_TRAIT_HOST) return ROLE_HOST;
    if (hn_lower_is_pointwise(n)) return ROLE_POINTWISE;
    if (hn_lower_is_view(n)) return ROLE_VIEW;
    switch (n->op) {
    case HN_OP_matmul: case HN_OP_matmul_int: case HN_OP_matmul_f8: case HN_OP_conv: case HN_OP_conv_int: case HN_OP_conv_transpose:
    case HN_OP_max_pool: case HN_OP_avg_pool: case HN_OP_lp_pool: case HN_OP_attention: case HN_OP_rotary:
        return ROLE_EPILOGUE;
    case HN_OP_reduce_sum: case HN_OP_reduce_prod: case HN_OP_reduce_max: case HN_OP_reduce_min:
    case HN_OP_softmax: case HN_OP_log_softmax: case HN_OP_layer_norm: case HN_OP_rms_norm:
        return ROLE_BOTH;
    default:
        return ROLE_OPAQUE;
    }
}

bool hn_group_takes_prologue(const hn_node *n)
{
    return role_of(n) == ROLE_BOTH;
}

static bool knob(former *f, hn_knob id, const hn_node *n)
{
    return hn_knob_read_node(f->b->knobs, id, n->origin, n->n_origin) != 0;
}

/* ---- groups ---- */
static hn_group *group_new(former *f, hn_group_kind kind, hn_node *n)
{
    hn_group *g = HN_NEW(f->b->a, hn_group);
    if (!g) return NULL;
    g->kind = kind;
    g->root = n;
    g->id = f->all.n;
    hn_vec_push(f->b->a, &g->nodes, n);
    hn_vec_push(f->b->a, &f->all, g);
    f->of[n->id] = g;
    return g;
}

static hn_group *group_of(former *f, const hn_value *v)
{
    return v && v->def && v->def->graph == f->g ? f->of[v->def->id] : NULL;
}

static void group_add(former *f, hn_group *g, hn_node *n)
{
    hn_vec_push(f->b->a, &g->nodes, n);
    f->of[n->id] = g;
}

/* Keep graph order after a merge. */
static void sort_nodes(former *f, hn_group *g)
{
    for (int i = 1; i < g->nodes.n; i++)
        for (int k = i; k > 0 && f->index[g->nodes.at[k]->id] < f->index[g->nodes.at[k - 1]->id]; k--) {
            hn_node *x = g->nodes.at[k];
            g->nodes.at[k] = g->nodes.at[k - 1];
            g->nodes.at[k - 1] = x;
        }
}

static void group_merge(former *f, hn_group *into, hn_group *from)
{
    for (int i = 0; i < from->nodes.n; i++) group_add(f, into, from->nodes.at[i]);
    from->dead = true;
    sort_nodes(f, into);
}

/* ---- dependencies ---- */
typedef bool (*dep_fn)(former *f, const hn_value *v, void *user); /* false stops */

static bool dim_uses(const hn_symtab *t, hn_dim d, hn_dim sym)
{
    if (d == sym) return true;
    if (hn_dim_is_const(d) || hn_dim_known(t, d, &(int64_t){ 0 })) return false;
    hn_dim x[3] = { 0 };
    if (hn_dim_expr(t, d, x) == HN_EX_SYM) return false;
    return dim_uses(t, x[0], sym) || dim_uses(t, x[1], sym) || dim_uses(t, x[2], sym);
}

/* A symbol read from a value while running orders the node behind that value. */
static bool deps_of_dims(former *f, const hn_dim *dim, int n, dep_fn fn, void *user)
{
    const hn_graph *root = f->g->root;
    for (int a = 0; a < n; a++) {
        if (hn_dim_is_const(dim[a])) continue;
        for (int i = 0; i < root->value_dims.n; i++) {
            const hn_value *v = root->value_dims.at[i].value;
            if (v->graph == f->g && dim_uses(root->syms, dim[a], root->value_dims.at[i].sym) && !fn(f, v, user)) return false;
        }
    }
    return true;
}

/* What a node needs besides its operands: symbols in its attributes, and in extents that it does not find itself. */
static bool deps_of_symbols(former *f, const hn_node *n, dep_fn fn, void *user)
{
    const hn_op_def *op = hn_op_of(n);
    for (int i = 0; i < op->n_attr; i++) {
        const hn_attr *a = &n->attr[i];
        if (a->set && op->attrs[i].kind == HN_ATTR_DIMS && !deps_of_dims(f, a->is, a->n, fn, user)) return false;
        if (a->set && op->attrs[i].kind == HN_ATTR_DIM && !deps_of_dims(f, &a->i, 1, fn, user)) return false;
    }
    if (op->traits & HN_TRAIT_DYNAMIC) return true;
    for (int i = 0; i < n->n_out; i++)
        if (!deps_of_dims(f, n->out[i]->type.dim, n->out[i]->type.rank, fn, user)) return false;
    return true;
}

static bool deps_of_body(former *f, const hn_graph *body, dep_fn fn, void *user)
{
    HN_FOR_NODES (n, body) {
        for (int i = 0; i < n->n_in; i++) {
            const hn_value *v = hn_in(n, i);
            if (v && v->graph == f->g && !fn(f, v, user)) return false;
        }
        if (!deps_of_symbols(f, n, fn, user)) return false;
        for (int i = 0; i < n->n_body; i++)
            if (!deps_of_body(f, n->body[i], fn, user)) return false;
    }
    for (int i = 0; i < body->n_out; i++)
        if (body->out[i].value && body->out[i].value->graph == f->g && !fn(f, body->out[i].value, user)) return false;
    return true;
}

static bool deps_of_node(former *f, const hn_node *n, dep_fn fn, void *user)
{
    for (int i = 0; i < n->n_in; i++) {
        const hn_value *v = hn_in(n, i);
        if (v && !fn(f, v, user)) return false;
    }
    if (!deps_of_symbols(f, n, fn, user)) return false;
    for (int i = 0; i < n->n_body; i++)
        if (!deps_of_body(f, n->body[i], fn, user)) return false;
    return true;
}

static bool reaches(former *f, hn_group *from, const hn_group *target);

static bool dep_avoids(former *f, const hn_value *v, void *user)
{
    hn_group *g = group_of(f, v);
    return !g || !reaches(f, g, user);
}

/* Does `from` need, directly or not, what `target` computes? */
static bool reaches(former *f, hn_group *from, const hn_group *target)
{
    if (from == target) return true;
    if (f->mark[from->id] == f->search) return false;
    f->mark[from->id] = f->search;
    for (int i = 0; i < from->nodes.n; i++)
        if (!deps_of_node(f, from->nodes.at[i], dep_avoids, (void *)target)) return true;
    return false;
}

typedef struct join {
    hn_group *g;
} join;

static bool dep_joins(former *f, const hn_value *v, void *user)
{
    const join *j = user;
    hn_group *g = group_of(f, v);
    if (!g || g == j->g) return true;
    return !reaches(f, g, j->g);
}

/* Joining is legal when no operand from outside the group depends on the group. */
static bool may_join(former *f, const hn_node *n, hn_group *g)
{
    f->search++;
    return deps_of_node(f, n, dep_joins, &(join){ g });
}

/* ---- fusion decisions ---- */
static bool used_outside(former *f, const hn_value *v, const hn_group *g)
{
    HN_FOR_USES (u, v)
        if (!u->node || u->node->graph != f->g || f->of[u->node->id] != g) return true;
    return false;
}

static int count_outputs(former *f, const hn_group *g)
{
    int n = 0;
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->n_out; k++) n += used_outside(f, g->nodes.at[i]->out[k], g);
    return n;
}

/* Nodes and results of a group: what the route allows, which is asked only once there are more than the least it may say. */
static bool has_room(former *f, const hn_group *g, const hn_node *n)
{
    const hn_knob_def *nodes = hn_knob_get(HN_KNOB_region_chain_max), *outs = hn_knob_get(HN_KNOB_region_outputs);
    const int n_out = count_outputs(f, g);
    if (g->nodes.n >= nodes->lo && g->nodes.n >= hn_knob_read_node(f->b->knobs, nodes->id, n->origin, n->n_origin)) return false;
    return n_out <= outs->lo || n_out <= hn_knob_read_node(f->b->knobs, outs->id, n->origin, n->n_origin);
}

/* Results that others read must share the space of the new node: views inside a group have another one. */
static bool results_share_space(former *f, const hn_group *g, const hn_node *n)
{
    for (int i = 0; i < g->nodes.n; i++) {
        hn_value *v = g->nodes.at[i]->out[0];
        HN_FOR_USES (u, v)
            if (u->node != n && (!u->node || u->node->graph != f->g || f->of[u->node->id] != g) &&
                !hn_tdesc_same_dims(&v->type, &n->out[0]->type))
                return false;
    }
    return true;
}

static bool takes_epilogue(former *f, hn_group *g, hn_node *n)
{
    const role r = role_of(g->root);
    if (r == ROLE_POINTWISE) return knob(f, HN_KNOB_region_chain, n);
    if (g->root->n_out != 1) return false;
    if (r == ROLE_EPILOGUE) return knob(f, HN_KNOB_region_epilogue, g->root);
    return r == ROLE_BOTH && knob(f, HN_KNOB_region_reduce_epilogue, g->root);
}

static bool can_follow(former *f, hn_group *g, hn_node *n)
{
    if (g->kind != HN_GROUP_REGION || g->dead || g->closed) return false;
    const hn_value *space = role_of(g->root) == ROLE_POINTWISE ? g->nodes.at[g->nodes.n - 1]->out[0] : g->root->out[0];
    if (!hn_tdesc_same_dims(&space->type, &n->out[0]->type)) return false;
    return results_share_space(f, g, n) && takes_epilogue(f, g, n) && has_room(f, g, n) && may_join(f, n, g);
}

/* A group of views with one result and one reader. */
static bool is_foldable_view(const hn_group *g, const hn_node *reader)
{
    if (!g || g->dead || g->kind != HN_GROUP_REGION) return false;
    for (int i = 0; i < g->nodes.n; i++)
        if (role_of(g->nodes.at[i]) != ROLE_VIEW) return false;
    const hn_value *v = g->nodes.at[g->nodes.n - 1]->out[0];
    return v->n_uses == 1 && v->uses->node == reader;
}

static void absorb_views(former *f, hn_group *g, hn_node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        hn_group *v = group_of(f, hn_in(n, i));
        if (!v || v == g || !is_foldable_view(v, n)) continue;
        if (!knob(f, HN_KNOB_region_views, v->root)) continue;
        group_merge(f, g, v);
    }
}

/* Pointwise work whose only reader is the root's operand 0: computed as the root reads it. */
static void absorb_prologue(former *f, hn_group *g, hn_node *n)
{
    hn_group *p = group_of(f, hn_in(n, 0));
    if (!p || p->dead || p->kind != HN_GROUP_REGION || role_of(p->root) != ROLE_POINTWISE) return;
    const hn_value *v = hn_in(n, 0);
    if (v->n_uses != 1 || count_outputs(f, p) != 1 || !knob(f, HN_KNOB_region_prologue, n)) return;
    group_merge(f, g, p);
}

/* Of the groups that n could follow: a heavy root before pointwise work, since its results are hot in registers; of two alike
 * the one that the route names. */
static hn_group *group_to_follow(former *f, hn_node *n)
{
    hn_group *best = NULL;
    for (int i = 0; i < n->n_in; i++) {
        hn_group *g = group_of(f, hn_in(n, i));
        if (!g || g == best || !can_follow(f, g, n)) continue;
        const bool light = role_of(g->root) == ROLE_POINTWISE;
        const bool best_light = best && role_of(best->root) == ROLE_POINTWISE;
        if (!best || (best_light && !light) || (best_light == light && knob(f, HN_KNOB_region_follow, n))) best = g;
    }
    return best;
}

/* Concatenation copies each operand anyway, and rotary embedding its first: views of it, and pointwise work that nobody else reads,
 * happen on the way. Angles are read for each head, and so are not computed on the way. */
static void absorb_pieces(former *f, hn_group *g, hn_node *n)
{
    absorb_views(f, g, n);
    for (int i = 0; i < (n->op == HN_OP_concat ? n->n_in : 1); i++) {
        const hn_value *v = hn_in(n, i);
        hn_group *p = group_of(f, v);
        if (!p || p == g || p->dead || p->kind != HN_GROUP_REGION || role_of(p->root) != ROLE_POINTWISE) continue;
        if (v->n_uses != 1 || count_outputs(f, p) != 1) continue;
        if (knob(f, HN_KNOB_region_prologue, n)) group_merge(f, g, p);
    }
}

/* A single number made of extents alone, such as the divisor of a mean: it costs nothing to make it where it is read. */
static bool is_size(const hn_group *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        const hn_node *n = g->nodes.at[i];
        if (n->op == HN_OP_dims && n->out[0]->type.dim[0] == 1) continue;
        if (role_of(n) != ROLE_POINTWISE || n->n_in != 1 || hn_tdesc_numel_static(&n->out[0]->type) != 1) return false;
    }
    return g->nodes.at[0]->op == HN_OP_dims;
}

static void absorb_sizes(former *f, hn_group *g, hn_node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        hn_group *s = group_of(f, hn_in(n, i));
        if (!s || s == g || s->dead || s->kind != HN_GROUP_REGION || !is_size(s) || hn_in(n, i)->n_uses != 1) continue;
        if (knob(f, HN_KNOB_region_views, n)) group_merge(f, g, s);
    }
}

enum { MAX_WIDENING = 4 }; /* operations: a cast, a zero point, a scale, and one to spare */

/* The chain of pointwise operations with constants that makes v of bytes, last one first; 0: there is none, or others read
 * parts of it. */
static int widening_of(former *f, const hn_value *v, hn_node **ret)
{
    for (int n = 0; n < MAX_WIDENING; n++) {
        hn_node *m = hn_producer(v);
        if (!m || m->graph != f->g || !hn_has_one_use(v) || role_of(m) != ROLE_POINTWISE) return 0;
        for (int i = 1; i < m->n_in; i++)
            if (hn_in(m, i) && !hn_is_const(hn_in(m, i))) return 0;
        ret[n] = m;
        v = hn_in(m, 0);
        if (m->op == HN_OP_cast && hn_dtype_is_int(v->type.dtype) && hn_dtype_bits(v->type.dtype) == 8) return n + 1;
    }
    return 0;
}

static void take_from(former *f, hn_group *g, hn_node *n)
{
    int at = 0;
    for (int i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i] != n) g->nodes.at[at++] = g->nodes.at[i];
    g->nodes.n = at;
    f->of[n->id] = NULL;
    if (at == 0) g->dead = true;
    else if (g->root == n) g->root = g->nodes.at[at - 1];
}

/* Bytes stay bytes in memory: what widens operand i of n moves from the kernel that made the bytes to the one that reads
 * them. A float would go to memory and back at four times the size. */
static void absorb_widening(former *f, hn_group *into, hn_node *n, int i)
{
    hn_node *chain[MAX_WIDENING];
    hn_group *from = group_of(f, hn_in(n, i));
    const int length = from && from != into ? widening_of(f, hn_in(n, i), chain) : 0;
    if (!length || from->kind != HN_GROUP_REGION || !knob(f, HN_KNOB_region_widen, n)) return;
    for (int k = 0; k < length; k++) {
        take_from(f, f->of[chain[k]->id], chain[k]);
        group_add(f, into, chain[k]);
    }
    sort_nodes(f, into);
    absorb_views(f, into, chain[length - 1]);
}

/* Every element is read by one window at most. */
static bool windows_apart(const hn_node *n)
{
    int ns, nk;
    const int64_t *stride = hn_attr_is(n, "stride", &ns), *kernel = hn_attr_is(n, "kernel", &nk);
    if (n->n_out != 1) return false;
    for (int i = 0; i < nk; i++)
        if ((i < ns ? stride[i] : 1) < kernel[i]) return false;
    return true;
}

static hone_status place_pointwise(former *f, hn_node *n, hn_diag *dg)
{
    hn_group *best = group_to_follow(f, n);
    if (best) {
        group_add(f, best, n);
        sort_nodes(f, best);
        if (role_of(best->root) == ROLE_POINTWISE) best->root = n;
    } else {
        best = group_new(f, HN_GROUP_REGION, n);
        if (!best) return HN_NOMEM(dg);
    }
    absorb_views(f, best, n);
    if (role_of(best->root) != ROLE_POINTWISE) absorb_sizes(f, best, n);
    for (int i = 0; i < n->n_in; i++)
        if (hn_in(n, i)) absorb_widening(f, best, n, i);
    return HONE_OK;
}

static hone_status place(former *f, hn_node *n, hn_diag *dg)
{
    hn_dim offset;
    const role r = role_of(n);
    if (hn_group_alias_offset(f->b, f->g, n, &offset)) return group_new(f, HN_GROUP_ALIAS, n) ? HONE_OK : HN_NOMEM(dg);
    if (r == ROLE_CONTROL) return group_new(f, HN_GROUP_CONTROL, n) ? HONE_OK : HN_NOMEM(dg);
    if (r == ROLE_HOST) return group_new(f, HN_GROUP_HOST, n) ? HONE_OK : HN_NOMEM(dg);
    if (r == ROLE_POINTWISE) return place_pointwise(f, n, dg);
    hn_group *g = group_new(f, HN_GROUP_REGION, n);
    if (!g) return HN_NOMEM(dg);
    if (r == ROLE_VIEW) absorb_views(f, g, n);
    if (r == ROLE_BOTH) absorb_prologue(f, g, n);
    if (r == ROLE_BOTH || ((n->op == HN_OP_avg_pool || n->op == HN_OP_max_pool) && windows_apart(n)))
        absorb_widening(f, g, n, 0);
    if (n->op == HN_OP_concat || n->op == HN_OP_rotary) absorb_pieces(f, g, n);
    return HONE_OK;
}

/* ---- order ---- */
typedef struct orderer {
    int *state; /* 0 new, 1 open, 2 done */
    hn_groups *out;
    hn_group *now;
} orderer;

static bool visit_group(former *f, orderer *o, hn_group *g);

static bool dep_first(former *f, const hn_value *v, void *user)
{
    orderer *o = user;
    hn_group *g = group_of(f, v);
    if (!g || g == o->now) return true;
    hn_group *now = o->now;
    const bool ok = visit_group(f, o, g);
    o->now = now;
    return ok;
}

static bool visit_group(former *f, orderer *o, hn_group *g)
{
    if (o->state[g->id] == 2) return true;
    if (HN_NEVER(o->state[g->id] == 1)) return false;
    o->state[g->id] = 1;
    o->now = g;
    for (int i = 0; i < g->nodes.n; i++) {
        o->now = g;
        if (!deps_of_node(f, g->nodes.at[i], dep_first, o)) return false;
    }
    o->state[g->id] = 2;
    g->order = o->out->all.n;
    return hn_vec_push(f->b->a, &o->out->all, g);
}

static hone_status order_groups(former *f, hn_groups *ret, hn_diag *dg)
{
    orderer o = { .state = HN_NEW_N(f->b->a, int, f->all.n + 1), .out = ret };
    if (!o.state) return HN_NOMEM(dg);
    for (int i = 0; i < f->all.n; i++)
        if (!f->all.at[i]->dead && !visit_group(f, &o, f->all.at[i]))
            return HN_RAISE(dg, HONE_E_INTERNAL, "region forming made a cycle at node \"%s\"", f->all.at[i]->root->name);
    return HONE_OK;
}

hone_status hn_group_form(hn_job *b, hn_graph *g, hn_groups *ret, hn_diag *dg)
{
    const uint32_t n_id = g->root->next_id + 1;
    former f = { .b = b, .g = g };
    f.of = HN_NEW_N(b->a, hn_group *, n_id);
    f.index = HN_NEW_N(b->a, int, n_id);
    f.mark = HN_NEW_N(b->a, uint32_t, n_id);
    if (!f.of || !f.index || !f.mark) return HN_NOMEM(dg);
    int at = 0;
    HN_FOR_NODES (n, g) f.index[n->id] = at++;
    HN_FOR_NODES (n, g) HN_TRY(place(&f, n, dg));
    return order_groups(&f, ret, dg);
}
