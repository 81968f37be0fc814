/* Layout assignment: image-like values get the layout that convolutions want, and keep it as long as readers understand it.
 *
 *     x plain -> conv -> relu -> conv -> reshape      =>      x -> reorder -> conv -> relu -> conv -> reorder -> reshape
 *
 * One forward walk: convolutions and pools ask for the layout of the knob layout:image, pointwise work and spatial views
 * carry it on, whoever cannot read it gets a reorder in front. Readers through lazy lowering take any layout.
 */
#include "build/build_int.h"
#include "tactic/lower.h"

#include <string.h>

typedef enum image_layout { IMAGE_PLAIN, IMAGE_CHANNELS_LAST, IMAGE_BLOCKED } image_layout;

enum { CHANNEL_AXIS = 1 };

static bool is_image_op(const hn_node *n)
{
    switch (n->op) {
    case HN_OP_conv: case HN_OP_conv_int: case HN_OP_conv_transpose: case HN_OP_max_pool: case HN_OP_avg_pool: case HN_OP_lp_pool:
        return true;
    default:
        return false;
    }
}

/* Full-size operands move with the result; smaller ones are broadcast. */
static bool full_size(const hn_node *n, int i)
{
    return hn_in(n, i) && hn_tdesc_same_dims(&hn_in(n, i)->type, &n->out[0]->type);
}

static bool has_layout(const hn_value *v)
{
    return v && v->layout.n != 0;
}

/* Channels that a blocked layout would pad make copies of concat and slice awkward: those values stay channels-last. So do
 * bytes: four neighbours meet in one instruction, and a kernel row of them is one run. */
static hn_layout wanted(const hn_value *v, image_layout kind, int block)
{
    const hn_dim c = v->type.dim[CHANNEL_AXIS];
    if (kind == IMAGE_BLOCKED && v->type.dtype == HN_F32 && hn_dim_is_const(c) && c % block == 0)
        return hn_layout_blocked(v->type.rank, CHANNEL_AXIS, block);
    return hn_layout_channels_last(v->type.rank);
}

static int64_t ask(const hn_job *b, hn_knob k, const hn_node *n)
{
    return hn_knob_read_node(b->knobs, k, n->origin, n->n_origin);
}

/* Channels of a block: a vector of them, or what the route says. */
static int block_of(const hn_job *b, const hn_node *n)
{
    int64_t block = b->t->vec_bytes / 4;
    hn_knob_pin(hn_knob_get(HN_KNOB_layout_block), ask(b, HN_KNOB_layout_block, n), &block);
    return (int)block;
}

/* What image op n reads or writes v in. */
static hn_layout wanted_by(const hn_job *b, const hn_node *n, const hn_value *v)
{
    const image_layout kind = (image_layout)ask(b, HN_KNOB_layout_image, n);
    const hn_layout plain = { 0 };
    if (kind == IMAGE_PLAIN) return plain;
    return wanted(v, kind, kind == IMAGE_BLOCKED ? block_of(b, n) : 0);
}

static hn_value *reorder(hn_builder *b, hn_node *before, hn_value *x, const hn_layout *l)
{
    hn_at(b, before);
    hn_value *y = hn_b1(b, HN_OP_reorder, x, HN_NO_ATTRS);
    if (y) y->layout = *l;
    return y;
}

static void give_operand(hn_builder *b, hn_node *n, int i, const hn_layout *l)
{
    hn_value *x = hn_in(n, i);
    if (hn_layout_eq(&x->layout, l)) return;
    /* A neighbour may have asked for the same copy. */
    HN_FOR_USES (u, x)
        if (u->node && u->node->op == HN_OP_reorder && u->node->graph == n->graph &&
            hn_layout_eq(&u->node->out[0]->layout, l)) {
            hn_node *r = u->node;
            for (hn_node *p = n->prev; p; p = p->prev)
                if (p == r) {
                    hn_set_in(n, i, r->out[0]);
                    return;
                }
        }
    hn_value *y = reorder(b, n, x, l);
    if (y) hn_set_in(n, i, y);
}

static void give_plain(hn_builder *b, hn_node *n)
{
    static const hn_layout plain = { 0 };
    for (int i = 0; i < n->n_in; i++)
        if (has_layout(hn_in(n, i))) give_operand(b, n, i, &plain);
}

/* First layers read few channels: their kernel takes rows of the plain image directly. A pool alone may stay as it is. */
static bool reads_plain(const hn_job *job, const hn_node *n)
{
    const hn_dim c = hn_in(n, 0)->type.dim[CHANNEL_AXIS];
    if ((n->op != HN_OP_conv && n->op != HN_OP_conv_int) || !hn_dim_is_const(c) || has_layout(hn_in(n, 0))) return false;
    return c <= hn_knob_get(HN_KNOB_layout_plain_channels)->hi && c <= ask(job, HN_KNOB_layout_plain_channels, n);
}

static bool has_image_kernels(const hn_job *job, const hn_node *n)
{
    const hn_dtype t = n->out[0]->type.dtype;
    if ((t == HN_F16 || t == HN_BF16) && job->t->arch == HN_ARCH_SM) return true;
    return t == HN_F32 || n->op == HN_OP_conv_int || (n->op == HN_OP_max_pool && (t == HN_U8 || t == HN_I8));
}

static bool stays_plain(const hn_job *job, const hn_node *n)
{
    const bool pools = n->op == HN_OP_max_pool || n->op == HN_OP_avg_pool || n->op == HN_OP_lp_pool;
    return pools && !has_layout(hn_in(n, 0)) && !ask(job, HN_KNOB_layout_pools, n);
}

static void place_image_op(hn_job *job, hn_builder *b, hn_node *n)
{
    hn_value *x = hn_in(n, 0);
    if (x->type.rank < 3 || x->type.rank > 4 || !has_image_kernels(job, n)) {
        give_plain(b, n);
        return;
    }
    const hn_layout lx = wanted_by(job, n, x);
    if (lx.n == 0 || stays_plain(job, n)) {
        give_plain(b, n);
        return;
    }
    if (!reads_plain(job, n)) give_operand(b, n, 0, &lx);
    if (n->n_out == 1) n->out[0]->layout = wanted_by(job, n, n->out[0]);
}

/* The layout that full-size operands bring along; the first one wins. */
static const hn_layout *carried(const hn_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (has_layout(hn_in(n, i)) && full_size(n, i)) return &hn_in(n, i)->layout;
    return NULL;
}

static void place_pointwise(hn_builder *b, hn_node *n)
{
    const hn_layout *l = carried(n);
    if (!l) return; /* small operands are read in whatever layout they have */
    const hn_layout keep = *l;
    for (int i = 0; i < n->n_in; i++)
        if (full_size(n, i) && !hn_in(n, i)->data) give_operand(b, n, i, &keep);
    for (int i = 0; i < n->n_out; i++) n->out[i]->layout = keep;
}

static bool blocked(const hn_layout *l)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i].block) return true;
    return false;
}

/* Concat, pad and slice along space, or along whole channels when they are not blocked. */
static void place_spatial(hn_builder *b, hn_node *n)
{
    hn_value *x = hn_in(n, 0), *y = n->out[0];
    hn_layout keep = { 0 };
    for (int i = 0; i < n->n_in; i++)
        if (has_layout(hn_in(n, i)) && hn_in(n, i)->type.rank == y->type.rank) keep = hn_in(n, i)->layout;
    if (!keep.n || x->type.rank != y->type.rank) {
        give_plain(b, n);
        return;
    }
    if (blocked(&keep) && x->type.dim[CHANNEL_AXIS] != y->type.dim[CHANNEL_AXIS]) keep = hn_layout_channels_last(y->type.rank);
    const int n_full = n->op == HN_OP_concat ? n->n_in : 1;
    for (int i = 0; i < n_full; i++)
        if (n->op == HN_OP_concat || has_layout(hn_in(n, i))) give_operand(b, n, i, &keep);
    y->layout = keep;
}

/* ---- transposes that move channels behind or before the image ---- */
enum { READERS_DEEP = 8 };

/* Does an image op of this graph read v, or what pointwise work makes of it? */
static const hn_node *image_reader(const hn_job *job, const hn_value *v, int depth)
{
    HN_FOR_USES (u, v) {
        if (!u->node || u->node->graph != v->graph) continue;
        if (is_image_op(u->node) && u->index == 0 && has_image_kernels(job, u->node) && !reads_plain(job, u->node)) return u->node;
        const bool carries = hn_lower_is_pointwise(u->node) && full_size(u->node, u->index) && depth > 0;
        const hn_node *found = carries ? image_reader(job, u->node->out[0], depth - 1) : NULL;
        if (found) return found;
    }
    return NULL;
}

/*     y = transpose(x [n,h,w,c], [0,3,1,2])   conv(y, ..)
 *
 * Stored channels last, y is x as it lies. */
static void place_transpose(hn_job *job, hn_node *n)
{
    hn_value *y = n->out[0];
    int rank;
    const int64_t *perm = hn_attr_is(n, "perm", &rank);
    if (has_layout(hn_in(n, 0)) || rank < 3 || rank > 4 || perm[0] != 0 || perm[CHANNEL_AXIS] != rank - 1) return;
    for (int a = CHANNEL_AXIS + 1; a < rank; a++)
        if (perm[a] != a - 1) return;
    const hn_node *reader = image_reader(job, y, READERS_DEEP);
    if (!reader || stays_plain(job, reader)) return;
    const hn_layout last = hn_layout_channels_last(rank), want = wanted_by(job, reader, y);
    if (hn_layout_eq(&want, &last)) y->layout = last;
}

/* ---- attention reads and writes rows where transposes leave them ---- */
static bool keeps_rows(const hn_node *transpose)
{
    int rank;
    const int64_t *perm = hn_attr_is(transpose, "perm", &rank);
    return rank == 4 && perm[3] == 3;
}

/* Queries and keys; on a GPU values too. */
static int n_rows_operands(const hn_job *job)
{
    return job->t->arch == HN_ARCH_SM ? 3 : 2;
}

/* Nothing but attentions of this graph read v, as queries, keys and perhaps values. */
static bool only_attention_reads(const hn_job *job, const hn_value *v)
{
    HN_FOR_USES (u, v)
        if (!u->node || u->node->op != HN_OP_attention || u->node->graph != v->graph || u->index >= n_rows_operands(job)) return false;
    return true;
}

/*     q = transpose(x [b,s,h,d], [0,2,1,3])   y = attention(q, ..)   z = transpose(y, [0,2,1,3])
 *
 * With q stored as x is, and y as z is, both transposes move nothing. On a CPU values stay as they are: every query reads all of
 * them, and rows of one head that lie apart collide in the cache. */
static bool comes_in_rows(const hn_job *job, const hn_node *n, int i)
{
    const hn_node *t = i < n_rows_operands(job) ? hn_producer(hn_in(n, i)) : NULL;
    return t && t->op == HN_OP_transpose && t->graph == n->graph && keeps_rows(t) && !has_layout(hn_in(t, 0)) &&
           only_attention_reads(job, hn_in(n, i));
}

static void as_transposed(hn_value *q)
{
    const int64_t *perm = hn_attr_is(hn_producer(q), "perm", &q->layout.n);
    for (int a = 0; a < q->layout.n; a++) q->layout.at[perm[a]].axis = (int8_t)a;
}

static void as_read(hn_value *y)
{
    const hn_node *t = hn_has_one_use(y) ? y->uses->node : NULL;
    if (!t || t->op != HN_OP_transpose || t->graph != y->graph || !keeps_rows(t)) return;
    const int64_t *perm = hn_attr_is(t, "perm", &y->layout.n);
    for (int a = 0; a < y->layout.n; a++) y->layout.at[a].axis = (int8_t)perm[a];
}

static void place_attention(hn_job *job, hn_builder *b, hn_node *n)
{
    static const hn_layout plain = { 0 };
    for (int i = 0; i < n->n_in; i++)
        if (has_layout(hn_in(n, i)) && !comes_in_rows(job, n, i)) give_operand(b, n, i, &plain);
    if (!ask(job, HN_KNOB_layout_heads, n)) return;
    for (int i = 0; i < n_rows_operands(job); i++)
        if (comes_in_rows(job, n, i) && !has_layout(hn_in(n, i))) as_transposed(hn_in(n, i));
    as_read(n->out[0]);
    if (hn_takes_whole(job, n)) return;
    for (int i = 0; i < n_rows_operands(job); i++)
        if (comes_in_rows(job, n, i)) hn_in(n, i)->layout = plain;
    n->out[0]->layout = plain;
}

/* ---- columns that are cut apart ----
 *
 *     y [.., 3w] = ..   q, k, v = slices of w columns each
 *
 * With y stored as three pieces of w columns, each slice is one of them as it lies (hn_group_alias_offset). A GPU's kernels store
 * whole rows of a piece as well as whole rows; on a CPU operands packed by columns are dearer. */
static int64_t width_of_cut(const hn_value *y, const hn_node *slice)
{
    int rank;
    const int64_t *step = hn_attr_is(slice, "step", &rank), *start = hn_attr_is(slice, "start", &rank);
    const hn_value *v = slice->out[0];
    for (int a = 0; a < rank - 1; a++)
        if (v->type.dim[a] != y->type.dim[a] || step[a] != 1) return 0;
    const hn_dim width = v->type.dim[rank - 1];
    if (!hn_dim_is_const(width) || !hn_dim_is_const(start[rank - 1]) || step[rank - 1] != 1) return 0;
    return width > 0 && start[rank - 1] % width == 0 ? width : 0;
}

/* Columns of a piece, if all that reads y are slices of so many; 0: no. */
static int64_t columns_apart(const hn_value *y)
{
    enum { LINE = 64, MOST = INT16_MAX }; /* elements: pieces begin at whole lines */
    const int rank = y->type.rank;
    int64_t width = 0;
    for (int a = 0; a < rank; a++)
        if (!hn_dim_is_const(y->type.dim[a])) return 0;
    HN_FOR_USES (u, y) {
        if (!u->node || u->node->op != HN_OP_slice || u->node->graph != y->graph || u->index != 0) return 0;
        const int64_t w = width_of_cut(y, u->node);
        if (w == 0 || (width && w != width)) return 0;
        width = w;
    }
    if (!width || width > MOST || width % LINE || y->type.dim[rank - 1] % width || y->type.dim[rank - 1] == width) return 0;
    return width;
}

static void place_columns(hn_job *job, hn_node *n)
{
    hn_value *y = n->out[0];
    const int rank = y->type.rank;
    if (job->t->arch != HN_ARCH_SM || has_layout(y) || rank < 2 || rank + 1 > HN_MAX_RANK || hn_dtype_bits(y->type.dtype) < 16) return;
    const int64_t width = columns_apart(y);
    if (!width || !ask(job, HN_KNOB_layout_columns, n)) return;
    y->layout = hn_layout_in_pieces(rank, (int)width);
}

static bool reads_any_layout(const hn_node *n)
{
    switch (n->op) {
    case HN_OP_transpose: case HN_OP_reorder: case HN_OP_reduce_sum: case HN_OP_reduce_max: case HN_OP_reduce_min:
    case HN_OP_reduce_prod:
        return true;
    default:
        return false;
    }
}

static void place(hn_job *job, hn_builder *b, hn_node *n)
{
    if (n->op == HN_OP_slice && hn_layout_piece(&hn_in(n, 0)->layout, hn_in(n, 0)->type.rank)) return;
    if (is_image_op(n)) {
        place_image_op(job, b, n);
    } else if (hn_lower_is_pointwise(n)) {
        place_pointwise(b, n);
    } else if (n->op == HN_OP_concat || n->op == HN_OP_pad || n->op == HN_OP_slice ||
               (n->op == HN_OP_gather && n->out[0]->type.rank == hn_in(n, 0)->type.rank && hn_attr_i(n, "axis") > CHANNEL_AXIS)) {
        place_spatial(b, n);
    } else if (n->op == HN_OP_attention) {
        place_attention(job, b, n);
    } else if (n->op == HN_OP_transpose) {
        place_transpose(job, n);
    } else if (!reads_any_layout(n)) {
        give_plain(b, n);
    }
    if (n->op == HN_OP_matmul || hn_lower_is_pointwise(n)) place_columns(job, n);
}

/* Outputs, and what bodies capture, are plain. */
static void plain_outputs(hn_builder *b, hn_graph *g)
{
    static const hn_layout plain = { 0 };
    for (int i = 0; i < g->n_out; i++) {
        hn_value *v = g->out[i].value;
        if (!has_layout(v) || v->graph != g) continue;
        hn_builder_init(b, g, b->dg);
        hn_value *y = hn_b1(b, HN_OP_reorder, v, HN_NO_ATTRS);
        if (!y) return;
        y->layout = plain;
        hn_graph_set_output(g, i, y);
    }
}

static bool captured(const hn_graph *g, const hn_value *v)
{
    HN_FOR_USES (u, v)
        if (u->node ? u->node->graph != g : u->graph != g) return true;
    return false;
}

static void plain_captures(hn_builder *b, hn_graph *g)
{
    static const hn_layout plain = { 0 };
    HN_FOR_NODES (n, g)
        for (int i = 0; i < n->n_out; i++) {
            hn_value *v = n->out[i];
            if (!has_layout(v) || !captured(g, v)) continue;
            hn_at(b, n->next ? n->next : n);
            if (!n->next) hn_builder_init(b, g, b->dg);
            hn_value *y = hn_b1(b, HN_OP_reorder, v, HN_NO_ATTRS);
            if (!y) return;
            y->layout = plain;
            HN_FOR_USES (u, v)
                if (u->node && u->node->graph != g) hn_set_in(u->node, u->index, y);
                else if (!u->node && u->graph != g) hn_graph_set_output(u->graph, u->index, y);
        }
}

hone_status hn_layout_assign(hn_job *job, hn_graph *g, hn_diag *dg)
{
    hn_builder b;
    hn_builder_init(&b, g, dg);
    HN_FOR_NODES (n, g) {
        place(job, &b, n);
        for (int i = 0; i < n->n_body; i++) HN_TRY(hn_layout_assign(job, n->body[i], dg));
    }
    plain_captures(&b, g);
    plain_outputs(&b, g);
    hn_sweep_dead(g);
    return b.status;
}
