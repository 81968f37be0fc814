/* What convolution tactics share: shapes, images in memory, padded copies. */
#include "tactic/cpu/conv.h"

#include "tactic/cpu/loops.h"

hn_conv_image hn_conv_image_of(const hn_value *v)
{
    const hn_layout last = hn_layout_channels_last(v->type.rank);
    const int64_t c = v->type.dim[1];
    hn_conv_image im = { .ok = true, .planes = 1, .elems = 1 };
    if (hn_layout_is_plain(&v->layout)) {
        im.planes = c;
        return im;
    }
    if (hn_layout_eq(&v->layout, &last)) {
        im.elems = c;
        return im;
    }
    const int block = v->layout.n ? v->layout.at[v->layout.n - 1].block : 0;
    const hn_layout blocked = hn_layout_blocked(v->type.rank, 1, block);
    im.ok = block > 0 && c % block == 0 && hn_layout_eq(&v->layout, &blocked);
    if (!im.ok) return im;
    im.planes = c / block;
    im.elems = im.block = block;
    return im;
}

static bool known_zero(const hn_region *r, hn_dim d)
{
    int64_t v;
    return hn_dim_known(r->g->syms, d, &v) && v == 0;
}

static hn_dim entry(const hn_node *n, const char *attr, int i, hn_dim dflt)
{
    int have;
    const int64_t *list = hn_attr_is(n, attr, &have);
    return i < have ? list[i] : dflt;
}

static void window_of(const hn_region *r, hn_conv *c)
{
    const hn_node *n = r->root;
    c->kh = c->w->type.dim[2];
    c->kw = c->has_columns ? c->w->type.dim[3] : 1;
    c->sh = entry(n, "stride", 0, 1);
    c->sw = c->has_columns ? entry(n, "stride", 1, 1) : 1;
    c->dh = c->kh > 1 ? entry(n, "dilation", 0, 1) : 1;
    c->dw = c->kw > 1 ? entry(n, "dilation", 1, 1) : 1;
    c->ph = entry(n, "pad_begin", 0, 0);
    c->pw = c->has_columns ? entry(n, "pad_begin", 1, 0) : 0;
    c->padded = false;
    for (int i = 0; i < c->x->type.rank - 2; i++)
        if (!known_zero(r, entry(n, "pad_begin", i, 0)) || !known_zero(r, entry(n, "pad_end", i, 0)))
            c->padded = true;
}

/* A symbol that nobody gave a usual value stands at 1: not what images are. */
enum { USUAL_EXTENT = 32 };

static int64_t usual(const hn_region *r, hn_dim d)
{
    const int64_t v = hn_region_opt(r, d);
    int64_t lo, hi;
    if (hn_dim_is_const(d) || v > 1) return HN_MAX(1, v);
    hn_dim_bounds(r->g->syms, d, &lo, &hi);
    return HN_MAX(1, HN_MIN(hi, USUAL_EXTENT));
}

static void extents_of(const hn_region *r, hn_conv *c)
{
    c->n = c->x->type.dim[0];
    c->xh = c->x->type.dim[2];
    c->oh = c->y->type.dim[2];
    c->xw = c->has_columns ? c->x->type.dim[3] : 1;
    c->ow = c->has_columns ? c->y->type.dim[3] : 1;
    c->n_opt = HN_MAX(1, hn_region_opt(r, c->n));
    c->oh_opt = usual(r, c->oh);
    c->ow_opt = usual(r, c->ow);
}

/* What all kinds need: images of known channels, constant filters in an operand. */
static hn_fit operands_of(const hn_region *r, hn_conv *c)
{
    const bool bytes = r->root->op == HN_OP_conv_int;
    *c = (hn_conv){ .x = hn_in(r->root, 0), .w = hn_in(r->root, 1), .y = r->root->out[0] };
    if (!bytes) c->bias = hn_in(r->root, 2);
    const int rank = c->x->type.rank;
    if (!bytes && c->x->type.dtype != HN_F32) return HN_FIT_DTYPE;
    if (rank < 3 || rank > 4) return HN_FIT_SHAPE;
    c->has_columns = rank == 4;
    c->x_operand = hn_region_operand(r, c->x);
    c->w_operand = hn_region_operand(r, c->w);
    if (c->x_operand < 0) return HN_FIT_EPILOGUE;
    if (c->w_operand < 0 || !r->data[c->w_operand] || !hn_layout_is_plain(&c->w->layout))
        return HN_FIT_NOT_CONST;
    if (!hn_dim_is_const(c->x->type.dim[1]) || !hn_dim_is_const(c->y->type.dim[1])) return HN_FIT_SYMBOLIC;
    for (int i = 0; i < rank; i++)
        if (c->w->type.dim[i] <= 0) return HN_FIT_SHAPE;
    c->c = c->x->type.dim[1];
    c->oc = c->y->type.dim[1];
    c->xi = hn_conv_image_of(c->x);
    c->yi = hn_conv_image_of(c->y);
    if (!c->xi.ok || !c->yi.ok) return HN_FIT_LAYOUT;
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_EPILOGUE;
}

static hn_fit windowed(const hn_region *r, hn_conv *c)
{
    const hn_fit fit = operands_of(r, c);
    if (fit != HN_FIT_YES) return fit;
    c->group = hn_attr_i(r->root, "group");
    c->cg = c->c / c->group;
    c->og = c->oc / c->group;
    window_of(r, c);
    extents_of(r, c);
    return HN_FIT_YES;
}

hn_fit hn_conv_of(const hn_region *r, hn_conv *c)
{
    return r->root->op == HN_OP_conv ? windowed(r, c) : HN_FIT_OP;
}

hn_fit hn_conv_int_of(const hn_region *r, hn_conv *c)
{
    return r->root->op == HN_OP_conv_int ? windowed(r, c) : HN_FIT_OP;
}

/*
 * y[o], o + pad = place * s + p: the taps k = p + s*t meet x[place - t]. With the T = ceil(k / s) taps of a
 * phase turned round this is a convolution of stride 1 whose window ends at the place itself; phases with
 * fewer taps get zeros.
 */
static hn_fit phases_of(const hn_region *r, hn_conv *c)
{
    hn_symtab *t = r->g->syms;
    int64_t pad[2] = { 0, 0 };
    for (int i = 0; i < (c->has_columns ? 2 : 1); i++) {
        if (!hn_dim_known(t, entry(r->root, "pad_begin", i, 0), &pad[i])) return HN_FIT_SYMBOLIC;
        if (entry(r->root, "dilation", i, 1) != 1 || pad[i] < 0) return HN_FIT_ATTRIBUTE;
    }
    c->transposed = true;
    c->up_h = entry(r->root, "stride", 0, 1);
    c->up_w = c->has_columns ? entry(r->root, "stride", 1, 1) : 1;
    c->crop_h = pad[0];
    c->crop_w = pad[1];
    c->full_kh = c->w->type.dim[2];
    c->full_kw = c->has_columns ? c->w->type.dim[3] : 1;
    c->kh = (c->full_kh + c->up_h - 1) / c->up_h;
    c->kw = (c->full_kw + c->up_w - 1) / c->up_w;
    c->sh = c->sw = c->dh = c->dw = 1;
    c->ph = c->kh - 1;
    c->pw = c->kw - 1;
    /* One tap a phase and as many places as inputs: nothing reaches outside. */
    c->padded = c->kh > 1 || c->kw > 1;
    return HN_FIT_YES;
}

static hn_dim places_of(hn_symtab *t, hn_dim out, int64_t crop, int64_t up)
{
    return hn_dim_add(t, hn_dim_floordiv(t, hn_dim_add(t, hn_dim_sub(t, out, 1), crop), up), 1);
}

hn_fit hn_conv_transpose_of(const hn_region *r, hn_conv *c)
{
    if (r->root->op != HN_OP_conv_transpose) return HN_FIT_OP;
    hn_fit fit = operands_of(r, c);
    if (fit != HN_FIT_YES) return fit;
    if (hn_attr_i(r->root, "group") != 1) return HN_FIT_ATTRIBUTE;
    fit = phases_of(r, c);
    if (fit != HN_FIT_YES) return fit;
    c->group = c->up_h * c->up_w;
    c->cg = c->c;
    c->og = c->oc;
    extents_of(r, c);
    hn_symtab *t = r->g->syms;
    c->oh = places_of(t, c->oh, c->crop_h, c->up_h);
    if (c->has_columns) c->ow = places_of(t, c->ow, c->crop_w, c->up_w);
    c->oh_opt = usual(r, c->oh);
    c->ow_opt = usual(r, c->ow);
    if (c->oh != c->xh || c->ow != c->xw) c->padded = true;
    return HN_FIT_YES;
}

hn_fit hn_conv_any_of(const hn_region *r, hn_conv *c)
{
    return r->root->op == HN_OP_conv_transpose ? hn_conv_transpose_of(r, c) : hn_conv_of(r, c);
}

float hn_conv_weight(const hn_conv *c, const float *w, int64_t g, int64_t o, int64_t ic, int64_t i, int64_t j)
{
    if (!c->transposed) return w[(((g * c->og + o) * c->cg + ic) * c->kh + i) * c->kw + j];
    const int64_t kh = g / c->up_w + c->up_h * (c->kh - 1 - i), kw = g % c->up_w + c->up_w * (c->kw - 1 - j);
    return kh < c->full_kh && kw < c->full_kw ? w[((ic * c->og + o) * c->full_kh + kh) * c->full_kw + kw] : 0;
}

void hn_conv_index(const hn_conv *c, hn_kv n, hn_kv ch, hn_kv row, hn_kv col, hn_kidx *ret)
{
    hn_kv at[4] = { n, ch, row, col };
    hn_kidx_init(ret, c->has_columns ? 4 : 3, at);
}

/* ---- where taps are read ---- */
void hn_conv_direct(hn_lower *l, const hn_conv *c, hn_kv n, hn_kv row0, hn_conv_source *ret)
{
    hn_kb *b = hn_lower_kb(l);
    ret->buf = hn_lower_in(l, c->x_operand);
    ret->column = c->xi.elems;
    ret->row = hn_kb_muli(b, hn_lower_dim(l, c->xw), c->xi.elems);
    ret->plane = hn_kb_mul(b, hn_lower_dim(l, c->xh), ret->row);
    const hn_kv image = hn_kb_muli(b, hn_kb_mul(b, n, ret->plane), c->xi.planes);
    ret->base = hn_kb_add(b, image, hn_kb_mul(b, hn_kb_muli(b, row0, c->sh), ret->row));
}

int64_t hn_conv_rows_in(const hn_conv *c, int64_t rows)
{
    return (rows - 1) * c->sh + (c->kh - 1) * c->dh + 1;
}

/* Columns of a padded row: what OW outputs reach. */
static hn_kv columns_in(hn_lower *l, const hn_conv *c)
{
    hn_kb *b = hn_lower_kb(l);
    return hn_kb_addi(b, hn_kb_muli(b, hn_lower_dim(l, c->ow), c->sw), (c->kw - 1) * c->dw + 1 - c->sw);
}

int hn_conv_scratch(hn_lower *l, const hn_conv *c, int64_t rows, int64_t column)
{
    hn_kb *b = hn_lower_kb(l);
    const int64_t one = c->xi.planes * hn_conv_rows_in(c, rows) * column,
                  more = (c->kw - 1) * c->dw + 1 - c->sw;
    hn_kext e = hn_kb_ext(b, hn_lower_dim(l, c->ow), 1);
    e.mul *= one * c->sw;
    e.add = e.add * one * c->sw + one * more;
    return hn_kb_scratch(b, "image", HN_F32, e);
}

void hn_conv_copied(hn_lower *l, const hn_conv *c, int scratch, int64_t column, int64_t rows,
                    hn_conv_source *ret)
{
    hn_kb *b = hn_lower_kb(l);
    ret->buf = scratch;
    ret->base = hn_kb_i(b, 0);
    ret->column = column;
    ret->row = hn_kb_muli(b, columns_in(l, c), column);
    ret->plane = hn_kb_muli(b, ret->row, hn_conv_rows_in(c, rows));
}

typedef struct copying {
    int src, dst;
    hn_kv from, to; /* elements; from unused when zeroing */
} copying;

static void copy_body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    const copying *m = user;
    hn_kb_storem(b, m->dst, hn_kb_add(b, m->to, i),
                 hn_kb_loadm(b, m->src, hn_kb_add(b, m->from, i), lanes, mask), mask);
}

static void zero_body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    const copying *m = user;
    hn_kb_storem(b, m->dst, hn_kb_add(b, m->to, i), hn_kb_float(b, HN_F32, lanes, 0), mask);
}

static void zero(hn_kb *b, int dst, hn_kv to, hn_kv n, int lanes)
{
    copying m = { .dst = dst, .to = to };
    hn_kb_vector_loop(b, hn_kb_i(b, 0), n, lanes, HN_KTAIL_MASK, zero_body, &m);
}

static void move(hn_kb *b, copying m, hn_kv n, int lanes)
{
    hn_kb_vector_loop(b, hn_kb_i(b, 0), n, lanes, HN_KTAIL_MASK, copy_body, &m);
}

/* `count` places of x->elems elements, to places `column` apart. */
static void copy_places(hn_kb *b, const hn_conv *c, copying m, hn_kv count, int64_t column, int lanes)
{
    if (column == c->xi.elems) {
        move(b, m, hn_kb_muli(b, count, column), lanes);
        return;
    }
    const hn_kv j = hn_kb_forn(b, count);
    m.from = hn_kb_add(b, m.from, hn_kb_muli(b, j, c->xi.elems));
    m.to = hn_kb_add(b, m.to, hn_kb_muli(b, j, column));
    move(b, m, hn_kb_i(b, c->xi.elems), lanes);
    hn_kb_end(b);
}

/* One padded row at `to`; `from` is column 0 of the input row. */
static void copy_row(hn_lower *l, const hn_conv *c, copying m, int64_t column, int lanes)
{
    hn_kb *b = hn_lower_kb(l);
    const hn_kv all = columns_in(l, c), left = hn_kb_min(b, hn_lower_dim(l, c->pw), all);
    const hn_kv end = hn_kb_min(b, hn_kb_add(b, hn_lower_dim(l, c->xw), hn_lower_dim(l, c->pw)), all);
    int64_t none;
    const hn_kv to = m.to;
    if (!hn_kb_is_const(b, left, &none) || none != 0) zero(b, m.dst, to, hn_kb_muli(b, left, column), lanes);
    m.to = hn_kb_add(b, to, hn_kb_muli(b, left, column));
    copy_places(b, c, m, hn_kb_sub(b, end, left), column, lanes);
    zero(b, m.dst, hn_kb_add(b, to, hn_kb_muli(b, end, column)),
         hn_kb_muli(b, hn_kb_sub(b, all, end), column), lanes);
}

void hn_conv_copy(hn_lower *l, const hn_conv *c, int scratch, int64_t column, int64_t rows, hn_kv n,
                  hn_kv row0, hn_kv count)
{
    hn_kb *b = hn_lower_kb(l);
    hn_conv_source from, to;
    hn_conv_direct(l, c, n, hn_kb_i(b, 0), &from);
    hn_conv_copied(l, c, scratch, column, rows, &to);
    int lanes = 16;
    while (lanes > 4 && lanes > c->xi.elems * 2)
        lanes /= 2;
    const hn_kv need = hn_kb_addi(b, hn_kb_muli(b, count, c->sh), (c->kh - 1) * c->dh + 1 - c->sh);
    const hn_kv first = hn_kb_sub(b, hn_kb_muli(b, row0, c->sh), hn_lower_dim(l, c->ph));
    const hn_kv plane = hn_kb_fori(b, c->xi.planes);
    const hn_kv r = hn_kb_forn(b, need);
    const hn_kv row = hn_kb_add(b, first, r);
    copying m = { .src = from.buf, .dst = scratch };
    m.to = hn_kb_add(b, hn_kb_mul(b, plane, to.plane), hn_kb_mul(b, r, to.row));
    const hn_kv inside =
        hn_kb_and(b, hn_kb_ge(b, row, hn_kb_i(b, 0)), hn_kb_lt(b, row, hn_lower_dim(l, c->xh)));
    hn_kb_if(b, inside);
    m.from =
        hn_kb_add(b, from.base, hn_kb_add(b, hn_kb_mul(b, plane, from.plane), hn_kb_mul(b, row, from.row)));
    copy_row(l, c, m, column, lanes);
    hn_kb_else(b);
    zero(b, scratch, m.to, to.row, lanes);
    hn_kb_end(b);
    hn_kb_end(b);
    hn_kb_end(b);
}
