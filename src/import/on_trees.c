/*
 * ai.onnx.ml TreeEnsemble: all trees of all rows walk down together, one level a step, by gathers from the tables of nodes.
 *
 *     at [rows, trees] = roots
 *     depth times:  at = select(x[feature[at]] <= split[at], yes[at], no[at])
 *     y = sum over trees of weight[at]
 *
 * Leaves stand behind the nodes in the tables and lead to themselves. A node that tests for membership becomes a chain of
 * equalities.
 */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, N_MODE };
enum { MAX_NODES = 1 << 24, MAX_DEPTH = 1024 };

/* What nodes_* and leaf_* say; nodes first, leaves behind them. */
typedef struct forest {
    hn_im_call *c;
    int n_node, n_leaf, n_root, n_target, depth;
    hn_dtype dtype;
    int64_t *feature, *yes, *no, *mode, *tracks; /* n_node + n_leaf */
    double *split;
    const int64_t *root, *target;
    const double *weight; /* of leaves */
} forest;

/* ---- attributes ---- */
static hone_status numbers(hn_im_call *c, const char *name, hn_dtype want, int *ret_n, double **ret)
{
    const Onnx__AttributeProto *a = hn_im_attr(c, name);
    hn_tdesc type;
    const void *at;
    size_t bytes;
    *ret_n = 0;
    *ret = NULL;
    if (!a || !a->t) return HONE_OK;
    HN_TRY(hn_im_tensor(c->m, a->t, &type, &at, &bytes, c->dg));
    if (want != HN_NONE && type.dtype != want)
        return HN_IM_RAISE(c, HONE_E_TYPE, "%s are %s where the input is %s", name, hn_dtype_name(type.dtype), hn_dtype_name(want));
    const int64_t n = hn_tdesc_numel_static(&type);
    if (n < 0 || n > MAX_NODES) return HN_IM_RAISE(c, HONE_E_LIMIT, "%" PRId64 " %s", n, name);
    *ret = HN_NEW_N(c->m->scratch, double, n + 1);
    if (!*ret) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    hn_widen_f64(type.dtype, at, 0, n, *ret);
    *ret_n = (int)n;
    return HONE_OK;
}

static hone_status ints(hn_im_call *c, const char *name, int want, const int64_t **ret)
{
    int n;
    *ret = hn_im_is(c, name, &n);
    if (n != want) return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"%s\" has %d entries where %d are needed", name, n, want);
    return HONE_OK;
}

static hone_status tables(forest *f, int n_more)
{
    const int n = f->n_node + f->n_leaf + n_more + 1;
    int64_t *at = HN_NEW_N(f->c->m->scratch, int64_t, (int64_t)n * 5);
    f->split = HN_NEW_N(f->c->m->scratch, double, n);
    if (!at || !f->split) return HN_IM_RAISE(f->c, HONE_E_NOMEM, "out of memory");
    f->feature = at, f->yes = at + n, f->no = at + 2 * n, f->mode = at + 3 * n, f->tracks = at + 4 * n;
    return HONE_OK;
}

static hone_status read_nodes(forest *f, const double *split, int n_node, const double *mode)
{
    hn_im_call *c = f->c;
    const int64_t *feature, *yes, *no, *yes_leaf, *no_leaf, *tracks = NULL;
    int n_tracks;
    f->n_node = n_node;
    HN_TRY(ints(c, "nodes_featureids", n_node, &feature));
    HN_TRY(ints(c, "nodes_truenodeids", n_node, &yes));
    HN_TRY(ints(c, "nodes_falsenodeids", n_node, &no));
    HN_TRY(ints(c, "nodes_trueleafs", n_node, &yes_leaf));
    HN_TRY(ints(c, "nodes_falseleafs", n_node, &no_leaf));
    tracks = hn_im_is(c, "nodes_missing_value_tracks_true", &n_tracks);
    if (n_tracks && n_tracks != n_node) return HN_IM_RAISE(c, HONE_E_MODEL, "%d flags for missing values", n_tracks);
    for (int i = 0; i < n_node; i++) {
        if (!(mode[i] >= 0 && mode[i] < N_MODE)) return HN_IM_RAISE(c, HONE_E_MODEL, "node %d has the mode %g", i, mode[i]);
        if (feature[i] < 0) return HN_IM_RAISE(c, HONE_E_MODEL, "node %d looks at feature %" PRId64, i, feature[i]);
        for (int k = 0; k < 2; k++) {
            const bool leaf = (k ? no_leaf : yes_leaf)[i] != 0;
            const int64_t to = (k ? no : yes)[i];
            if (to < 0 || to >= (leaf ? f->n_leaf : n_node))
                return HN_IM_RAISE(c, HONE_E_MODEL, "node %d leads to %s %" PRId64 " of %d", i, leaf ? "leaf" : "node", to,
                                   leaf ? f->n_leaf : n_node);
            (k ? f->no : f->yes)[i] = leaf ? -1 - to : to; /* leaves find their places once all nodes are there */
        }
        f->feature[i] = feature[i], f->mode[i] = (int64_t)mode[i], f->split[i] = split[i];
        f->tracks[i] = n_tracks ? tracks[i] != 0 : 0;
    }
    return HONE_OK;
}

/* Sets stand in the order of their nodes, with a NaN behind each: a node for each value. */
static hone_status spread_members(forest *f, const double *value, int n_value)
{
    const int n = f->n_node;
    int at = 0;
    for (int i = 0; i < n; i++) {
        if (f->mode[i] != MEMBER) continue;
        const int64_t yes = f->yes[i], no = f->no[i];
        int node = i;
        if (at >= n_value || isnan(value[at])) return HN_IM_RAISE(f->c, HONE_E_MODEL, "node %d has no membership values", i);
        for (;; node = f->n_node++) {
            f->feature[node] = f->feature[i], f->tracks[node] = f->tracks[i];
            f->mode[node] = EQ, f->split[node] = value[at++], f->yes[node] = yes;
            if (at >= n_value || isnan(value[at])) break;
            f->no[node] = f->n_node;
        }
        f->no[node] = no;
        at++;
    }
    return HONE_OK;
}

static void place_leaves(forest *f)
{
    for (int i = 0; i < f->n_node; i++) {
        if (f->yes[i] < 0) f->yes[i] = f->n_node - 1 - f->yes[i];
        if (f->no[i] < 0) f->no[i] = f->n_node - 1 - f->no[i];
    }
    for (int i = f->n_node; i < f->n_node + f->n_leaf; i++) {
        f->yes[i] = f->no[i] = i;
        f->feature[i] = f->tracks[i] = 0, f->split[i] = 0;
        f->mode[i] = f->n_node ? f->mode[0] : LEQ;
    }
}

/* Steps until every path from the roots has reached a leaf; a path longer than there are nodes runs in a circle. */
static hone_status find_depth(forest *f)
{
    const int n = f->n_node + f->n_leaf;
    bool *at = HN_NEW_N(f->c->m->scratch, bool, n + 1), *next = HN_NEW_N(f->c->m->scratch, bool, n + 1);
    if (!at || !next) return HN_IM_RAISE(f->c, HONE_E_NOMEM, "out of memory");
    for (int i = 0; i < f->n_root; i++) at[f->root[i]] = true;
    for (f->depth = 0;; f->depth++) {
        bool inside = false;
        memset(next, 0, (size_t)n * sizeof *next);
        for (int i = 0; i < f->n_node; i++)
            if (at[i]) next[f->yes[i]] = next[f->no[i]] = inside = true;
        if (!inside) return HONE_OK;
        if (f->depth == HN_MIN(f->n_node, MAX_DEPTH))
            return HN_IM_RAISE(f->c, HONE_E_MODEL, "a tree is deeper than %d levels or runs in a circle", f->depth);
        bool *swap = at;
        at = next, next = swap;
    }
}

static hone_status read_forest(forest *f)
{
    hn_im_call *c = f->c;
    double *split, *mode, *member, *weight;
    int n_split, n_mode, n_member;
    f->dtype = c->in[0]->type.dtype;
    HN_TRY(numbers(c, "nodes_splits", f->dtype, &n_split, &split));
    HN_TRY(numbers(c, "nodes_modes", HN_NONE, &n_mode, &mode));
    HN_TRY(numbers(c, "membership_values", f->dtype, &n_member, &member));
    HN_TRY(numbers(c, "leaf_weights", f->dtype, &f->n_leaf, &weight));
    f->weight = weight;
    if (n_mode != n_split) return HN_IM_RAISE(c, HONE_E_MODEL, "%d modes for %d nodes", n_mode, n_split);
    HN_TRY(ints(c, "leaf_targetids", f->n_leaf, &f->target));
    f->n_target = (int)HN_MIN(HN_MAX(hn_im_i(c, "n_targets", 1), 0), MAX_NODES);
    for (int i = 0; i < f->n_leaf; i++)
        if (f->target[i] < 0 || f->target[i] >= f->n_target)
            return HN_IM_RAISE(c, HONE_E_MODEL, "leaf %d has the target %" PRId64 " of %d", i, f->target[i], f->n_target);
    HN_TRY(tables(f, n_split + n_member));
    HN_TRY(read_nodes(f, split, n_split, mode));
    f->root = hn_im_is(c, "tree_roots", &f->n_root);
    for (int i = 0; i < f->n_root; i++)
        if (f->root[i] < 0 || f->root[i] >= n_split) return HN_IM_RAISE(c, HONE_E_MODEL, "tree %d begins at node %" PRId64, i, f->root[i]);
    if (!f->n_root || (int64_t)f->n_target * f->n_leaf > MAX_NODES)
        return HN_IM_RAISE(c, HONE_E_MODEL, "%d trees with %d leaves for %d targets", f->n_root, f->n_leaf, f->n_target);
    HN_TRY(spread_members(f, member, n_member));
    place_leaves(f);
    return find_depth(f);
}

/* ---- the walk ---- */
static hn_value *table(const forest *f, const int64_t *v)
{
    return hn_const_is(f->c->b, f->n_node + f->n_leaf, v);
}

static bool same_mode(const forest *f)
{
    for (int i = 1; i < f->n_node; i++)
        if (f->mode[i] != f->mode[0]) return false;
    return true;
}

static hn_value *test(const forest *f, int mode, hn_value *x, hn_value *split)
{
    static const hn_op op[] = { [LEQ] = HN_OP_le, [LT] = HN_OP_lt, [GTE] = HN_OP_ge, [GT] = HN_OP_gt, [EQ] = HN_OP_eq, [NEQ] = HN_OP_eq };
    hn_value *yes = hn_im_binary(f->c, op[mode], x, split);
    return mode == NEQ ? hn_im_unary(f->c, HN_OP_not, yes) : yes;
}

/* Which way each row goes in each tree. */
static hn_value *decide(const forest *f, hn_value *x, hn_value *at)
{
    hn_im_call *c = f->c;
    const int64_t n = f->n_node + f->n_leaf;
    hn_value *split = hn_im_gather(c, hn_const_fs(c->b, f->dtype, 1, &n, f->split), at, 0);
    hn_value *yes = test(f, f->n_node ? (int)f->mode[0] : LEQ, x, split);
    if (!same_mode(f)) {
        hn_value *mode = hn_im_gather(c, table(f, f->mode), at, 0);
        for (int k = 0; k < MEMBER; k++) {
            hn_value *is = hn_im_binary(c, HN_OP_eq, mode, hn_const_i(c->b, HN_I64, k));
            yes = hn_im_select(c, is, test(f, k, x, split), yes);
        }
    }
    for (int i = 0; i < f->n_node; i++) {
        if (!f->tracks[i]) continue;
        hn_value *tracks = hn_im_binary(c, HN_OP_gt, hn_im_gather(c, table(f, f->tracks), at, 0), hn_const_i(c->b, HN_I64, 0));
        return hn_im_binary(c, HN_OP_or, yes, hn_im_binary(c, HN_OP_and, hn_im_unary(c, HN_OP_is_nan, x), tracks));
    }
    return yes;
}

static hn_value *walk(const forest *f, hn_value *x)
{
    hn_im_call *c = f->c;
    const hn_dim shape[] = { x->type.dim[0], f->n_root };
    hn_value *at = hn_broadcast_to(c->b, hn_const_is(c->b, f->n_root, f->root), 2, shape);
    for (int i = 0; i < f->depth && at; i++) {
        hn_value *feature = hn_im_gather(c, table(f, f->feature), at, 0);
        hn_value *seen = hn_b2(c->b, HN_OP_gather_elements, x, feature, HN_ATTRS_ARG(HN_A_I("axis", 1)));
        hn_value *yes = decide(f, seen, at);
        at = hn_im_select(c, yes, hn_im_gather(c, table(f, f->yes), at, 0), hn_im_gather(c, table(f, f->no), at, 0));
    }
    return at;
}

/* ---- what the leaves give ---- */
enum { AVERAGE, SUM, MIN, MAX };
enum { NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT };

/* [nodes and leaves, targets]; what says nothing of a target gives `idle`. */
static hn_value *leaf_table(const forest *f, double idle)
{
    hn_im_call *c = f->c;
    const int64_t dim[] = { f->n_node + f->n_leaf, f->n_target }, n = dim[0] * dim[1];
    double *w = HN_NEW_N(c->m->scratch, double, n + 1);
    if (!w) return NULL;
    for (int64_t i = 0; i < n; i++) w[i] = idle;
    for (int i = 0; i < f->n_leaf; i++) w[(f->n_node + i) * dim[1] + f->target[i]] = f->weight[i];
    return hn_const_fs(c->b, f->dtype, 2, dim, w);
}

static hn_value *join(const forest *f, hn_value *at, int64_t how)
{
    static const hn_op op[] = { HN_OP_reduce_sum, HN_OP_reduce_sum, HN_OP_reduce_min, HN_OP_reduce_max };
    static const double idle[] = { 0, 0, INFINITY, -INFINITY };
    hn_im_call *c = f->c;
    hn_value *y = hn_im_gather(c, leaf_table(f, idle[how]), at, 0);
    y = y ? hn_im_reduce(c, op[how], y, 1, (int64_t[]){ 1 }, false) : NULL;
    if (how == AVERAGE) return hn_im_scale(c, y, 1.0 / f->n_root);
    if (how == SUM || !y) return y;
    return hn_im_select(c, hn_im_unary(c, HN_OP_is_inf, y), hn_im_like_f(c, y, 0), y);
}

hone_status hn_im_on_tree_ensemble(hn_im_call *c)
{
    forest f = { .c = c };
    const int64_t how = hn_im_i(c, "aggregate_function", SUM), after = hn_im_i(c, "post_transform", NONE);
    hn_im_ignore(c, "nodes_hitrates");
    if (c->in[0]->type.rank != 2 || !hn_dtype_is_float(c->in[0]->type.dtype))
        return HN_IM_RAISE(c, HONE_E_TYPE, "the input is no matrix of floats");
    if (how < AVERAGE || how > MAX) return HN_IM_RAISE(c, HONE_E_MODEL, "aggregate_function is %" PRId64, how);
    if (after == SOFTMAX_ZERO || after == PROBIT)
        return hn_im_refuse(c, "post_transform %s is not supported", after == PROBIT ? "PROBIT" : "SOFTMAX_ZERO");
    if (after < NONE || after > PROBIT) return HN_IM_RAISE(c, HONE_E_MODEL, "post_transform is %" PRId64, after);
    HN_TRY(read_forest(&f));
    for (int i = 0; i < f.n_node; i++)
        if (hn_dim_is_const(c->in[0]->type.dim[1]) && f.feature[i] >= c->in[0]->type.dim[1])
            return HN_IM_RAISE(c, HONE_E_SHAPE, "node %d looks at feature %" PRId64 " of %" PRId64, i, f.feature[i], c->in[0]->type.dim[1]);
    hn_value *at = walk(&f, c->in[0]);
    hn_value *y = at ? join(&f, at, how) : NULL;
    if (after == LOGISTIC && y) y = hn_im_unary(c, HN_OP_sigmoid, y);
    if (after == SOFTMAX && y) y = hn_b1(c->b, HN_OP_softmax, y, HN_ATTRS_ARG(HN_A_I("axis", 1)));
    return hn_im_ret(c, y);
}
