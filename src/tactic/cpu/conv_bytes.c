/* Images of bytes for convolutions in integers. */
#include "tactic/cpu/conv_bytes.h"

/* Past the last row: whole vectors are written over ends of rows, and quads read past ends of runs. */
enum { SLACK = 64 };

/* The only spatial axis of rank 3 becomes columns: runs lie along it. */
static void turn(hn_conv *c)
{
    c->xw = c->xh, c->ow = c->oh, c->ow_opt = c->oh_opt;
    c->kw = c->kh, c->sw = c->sh, c->dw = c->dh, c->pw = c->ph;
    c->xh = c->oh = 1, c->oh_opt = 1;
    c->kh = c->sh = c->dh = 1, c->ph = 0;
}

/* Taps of one place, strides of one: rows and columns make no difference. */
static void flatten(const hn_region *r, hn_conv *c)
{
    c->xh = c->oh = hn_dim_mul(r->g->syms, c->oh, c->ow);
    c->oh_opt *= c->ow_opt;
    c->xw = c->ow = 1, c->ow_opt = 1;
}

hn_fit hn_conv_bytes_of(const hn_region *r, hn_conv_bytes *ret)
{
    hn_conv *c = &ret->c;
    *ret = (hn_conv_bytes){ 0 };
    hn_fit fit = hn_conv_int_of(r, c);
    if (fit == HN_FIT_YES) fit = hn_int8_of(r, c->oc, &ret->q);
    if (fit != HN_FIT_YES) return fit;
    if (c->xi.block) return HN_FIT_LAYOUT;
    if (!c->has_columns) turn(c);
    ret->width = c->ow;
    ret->linear = !c->padded && c->kh == 1 && c->kw == 1 && c->sh == 1 && c->sw == 1 && c->xi.planes == 1;
    if (ret->linear) flatten(r, c);
    const bool merged = c->group == 1 && c->dw == 1;
    ret->run = merged ? c->kw * c->c : c->cg;
    ret->runs_row = merged ? 1 : c->kw;
    return HN_FIT_YES;
}

bool hn_conv_bytes_must_copy(const hn_conv_bytes *s)
{
    return s->c.padded || s->c.xi.planes > 1 || s->run % HN_INT8_QUAD != 0;
}

void hn_conv_bytes_index(hn_lower *l, const hn_conv_bytes *s, hn_kv n, hn_kv ch, hn_kv row, hn_kv col, hn_kidx *ret)
{
    hn_kb *b = hn_lower_kb(l);
    if (s->linear) {
        const hn_kv width = hn_lower_dim(l, s->width);
        col = hn_kb_imod(b, row, width);
        row = hn_kb_idiv(b, row, width);
    }
    if (s->c.has_columns)
        hn_kidx_init(ret, 4, (hn_kv[]){ n, ch, row, col });
    else
        hn_kidx_init(ret, 3, (hn_kv[]){ n, ch, col });
}

/* ---- scratch ---- */
/* Columns beyond what the outputs reach: those of the window less a stride. */
static int64_t more_columns(const hn_conv *c)
{
    return (c->kw - 1) * c->dw + 1 - c->sw;
}

/* Unpadded rows are copied as they lie, unreached columns included. */
hn_kv hn_conv_bytes_row(hn_lower *l, const hn_conv_bytes *s)
{
    hn_kb *b = hn_lower_kb(l);
    const hn_conv *c = &s->c;
    if (!c->padded) return hn_kb_muli(b, hn_lower_dim(l, c->xw), c->c);
    return hn_kb_muli(b, hn_kb_addi(b, hn_kb_muli(b, hn_lower_dim(l, c->ow), c->sw), more_columns(c)), c->c);
}

int64_t hn_conv_bytes_row_opt(const hn_conv_bytes *s)
{
    return (s->c.ow_opt * s->c.sw + HN_MAX(more_columns(&s->c), 0)) * s->c.c;
}

int hn_conv_bytes_scratch(hn_lower *l, const hn_conv_bytes *s, int64_t rows)
{
    hn_kb *b = hn_lower_kb(l);
    const hn_conv *c = &s->c;
    const int64_t one = hn_conv_rows_in(c, rows) * c->c;
    hn_kext e = hn_kb_ext(b, hn_lower_dim(l, c->padded ? c->ow : c->xw), 1);
    const int64_t stride = c->padded ? c->sw : 1, more = c->padded ? more_columns(c) : 0;
    e.mul *= one * stride;
    e.add = e.add * one * stride + one * more + 2 * SLACK;
    return hn_kb_scratch(b, "rows", HN_U8, e);
}

typedef struct copying {
    hn_lower *l;
    hn_kb *b;
    const hn_conv_bytes *s;
    int src, dst, lanes;
    hn_kv zero; /* u8 vector of `lanes` */
} copying;

static hn_kv unsigned_of(const copying *m, hn_kv x)
{
    if (!m->s->q.a_signed) return hn_kb_bitcast(m->b, x, HN_U8, hn_kb_lanes(m->b, x));
    const int lanes = hn_kb_lanes(m->b, x);
    return hn_kb_bin(m->b, HN_KOP_XOR, hn_kb_bitcast(m->b, x, HN_U8, lanes), hn_kb_int(m->b, HN_U8, lanes, 0x80));
}

static void move_vectors(const copying *m, hn_kv to, hn_kv from, hn_kv n)
{
    hn_kb *b = m->b;
    const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), n, m->lanes), at = hn_kb_min(b, i, hn_kb_addi(b, n, -m->lanes));
    hn_kb_store(b, m->dst, hn_kb_add(b, to, at),
                unsigned_of(m, hn_kb_load(b, m->src, hn_kb_add(b, from, at), m->lanes)));
    hn_kb_end(b);
}

static void move_bytes(const copying *m, hn_kv to, hn_kv from, hn_kv n)
{
    hn_kb *b = m->b;
    const hn_kv i = hn_kb_forn(b, n);
    hn_kb_store(b, m->dst, hn_kb_add(b, to, i), unsigned_of(m, hn_kb_load(b, m->src, hn_kb_add(b, from, i), 1)));
    hn_kb_end(b);
}

/* n bytes that lie side by side; the last vector moves back over copied ones. */
static void move(const copying *m, hn_kv to, hn_kv from, hn_kv n)
{
    hn_kb *b = m->b;
    int64_t known;
    if (hn_kb_is_const(b, n, &known)) {
        if (known >= m->lanes)
            move_vectors(m, to, from, n);
        else
            move_bytes(m, to, from, n);
        return;
    }
    hn_kb_if(b, hn_kb_ge(b, n, hn_kb_i(b, m->lanes)));
    move_vectors(m, to, from, n);
    hn_kb_else(b);
    move_bytes(m, to, from, n);
    hn_kb_end(b);
}

/* At least n zeros at `to`: up to a vector more, over what is written later. */
static void pad(const copying *m, hn_kv to, hn_kv n)
{
    hn_kb *b = m->b;
    int64_t none;
    if (hn_kb_is_const(b, n, &none) && none == 0) return;
    const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), n, m->lanes);
    hn_kb_store(b, m->dst, hn_kb_add(b, to, i), m->zero);
    hn_kb_end(b);
}

typedef struct turning {
    const copying *m;
    hn_kv from, to;
} turning;

static void turn_body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    const turning *u = user;
    const int64_t c = u->m->s->c.c;
    const hn_kv x = unsigned_of(u->m, hn_kb_loadm(b, u->m->src, hn_kb_add(b, u->from, i), lanes, mask));
    hn_kb_store_strided(b, u->m->dst, hn_kb_add(b, u->to, hn_kb_muli(b, i, c)), hn_kb_i(b, c), x, mask);
}

/* Columns of one row of a plain image, channels brought together. `from`: of plane 0. */
static void turn_row(const copying *m, hn_kv to, hn_kv from, hn_kv plane, hn_kv columns)
{
    hn_kb *b = m->b;
    enum { LANES = 16 };
    const hn_kv ch = hn_kb_fori(b, m->s->c.c);
    turning u = { m, hn_kb_add(b, from, hn_kb_mul(b, ch, plane)), hn_kb_add(b, to, ch) };
    hn_kb_vector_loop(b, hn_kb_i(b, 0), columns, LANES, HN_KTAIL_SCALAR, turn_body, &u);
    hn_kb_end(b);
}

/* One padded row at `to`; `from` is column 0 of the input row. */
static void copy_row(const copying *m, hn_kv to, hn_kv from, hn_kv plane)
{
    hn_kb *b = m->b;
    const hn_conv *c = &m->s->c;
    const hn_kv columns = c->padded ? hn_kb_addi(b, hn_kb_muli(b, hn_lower_dim(m->l, c->ow), c->sw), more_columns(c))
                                    : hn_lower_dim(m->l, c->xw);
    const hn_kv left = hn_kb_min(b, hn_lower_dim(m->l, c->pw), columns);
    const hn_kv end = hn_kb_min(b, hn_kb_add(b, hn_lower_dim(m->l, c->xw), hn_lower_dim(m->l, c->pw)), columns);
    const hn_kv start = hn_kb_add(b, to, hn_kb_muli(b, left, c->c)), inside = hn_kb_sub(b, end, left);
    pad(m, to, hn_kb_muli(b, left, c->c));
    if (c->xi.planes > 1)
        turn_row(m, start, from, plane, inside);
    else
        move(m, start, from, hn_kb_muli(b, inside, c->c));
    pad(m, hn_kb_add(b, to, hn_kb_muli(b, end, c->c)), hn_kb_muli(b, hn_kb_sub(b, columns, end), c->c));
}

static void copy_rows(const copying *m, const hn_conv_source *from, hn_kv first, hn_kv need, hn_kv row_bytes)
{
    hn_kb *b = m->b;
    const hn_conv *c = &m->s->c;
    const hn_kv r = hn_kb_forn(b, need), row = hn_kb_add(b, first, r), to = hn_kb_mul(b, r, row_bytes);
    const hn_kv at = hn_kb_add(b, from->base, hn_kb_mul(b, row, from->row));
    if (!c->padded) {
        copy_row(m, to, at, from->plane);
    } else {
        const hn_kv in = hn_kb_and(b, hn_kb_ge(b, row, hn_kb_i(b, 0)), hn_kb_lt(b, row, hn_lower_dim(m->l, c->xh)));
        hn_kb_if(b, in);
        copy_row(m, to, at, from->plane);
        hn_kb_else(b);
        pad(m, to, row_bytes);
        hn_kb_end(b);
    }
    hn_kb_end(b);
}

/* Widest vector that most rows fill. */
static int lanes_of(const hn_conv_bytes *s, const hn_target *t)
{
    int lanes = HN_MIN(t->vec_bytes, SLACK);
    const int64_t row = s->c.ow_opt * s->c.sw * s->c.c;
    while (lanes > 4 && lanes > row)
        lanes /= 2;
    return lanes;
}

void hn_conv_bytes_copy(hn_lower *l, const hn_conv_bytes *s, const hn_target *t, int scratch, hn_kv n, hn_kv row0,
                        hn_kv count, hn_kv zero)
{
    hn_kb *b = hn_lower_kb(l);
    const hn_conv *c = &s->c;
    hn_conv_source from;
    copying m = { .l = l, .b = b, .s = s, .dst = scratch, .lanes = lanes_of(s, t) };
    m.zero = hn_kb_splat(b, hn_kb_cast(b, zero, HN_U8), m.lanes);
    hn_conv_direct(l, c, n, hn_kb_i(b, 0), &from);
    m.src = from.buf;
    const hn_kv need = hn_kb_addi(b, hn_kb_muli(b, count, c->sh), (c->kh - 1) * c->dh + 1 - c->sh);
    const hn_kv first = hn_kb_sub(b, hn_kb_muli(b, row0, c->sh), c->padded ? hn_lower_dim(l, c->ph) : hn_kb_i(b, 0));
    const hn_kv row_bytes = hn_conv_bytes_row(l, s), all = hn_kb_mul(b, need, row_bytes);
    if (!c->padded && c->xi.planes == 1)
        move(&m, hn_kb_i(b, 0), hn_kb_add(b, from.base, hn_kb_mul(b, first, from.row)), all);
    else
        copy_rows(&m, &from, first, need, row_bytes);
    pad(&m, all, hn_kb_i(b, SLACK));
}
