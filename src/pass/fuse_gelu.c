/**
 * Make one op of the spelled-out Gaussian error linear unit.
 *
 *     x/2 * (1 + erf(x / sqrt 2))                                =>   gelu(x)
 *     x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))        =>   gelu(x) {tanh=1}
 *
 * Constants may stand anywhere: what is around the erf or tanh is read as p(x) + q(x) t, its argument as a polynomial, and
 * only the coefficients count.
 */
#include "pass/found.h"

#include <math.h>

enum { DEGREE = 3, DEPTH = 6, MAX_GUESSES = 8 };

typedef struct poly {
    double c[DEGREE + 1];
} poly;

/* p + q t */
typedef struct expr {
    poly p, q;
} expr;

typedef struct reader {
    hn_found *f;
    const hn_value *x, *t; /* the variables */
    const hn_tdesc *type;  /* of the result: nothing on the way broadcasts */
} reader;

static bool is_zero(const poly *p)
{
    for (int i = 0; i <= DEGREE; i++)
        if (p->c[i] != 0) return false;
    return true;
}

static bool poly_mul(const poly *a, const poly *b, poly *ret)
{
    poly r = { { 0 } };
    for (int i = 0; i <= DEGREE; i++)
        for (int j = 0; j <= DEGREE; j++) {
            const double c = a->c[i] * b->c[j];
            if (c != 0 && i + j > DEGREE) return false;
            if (c != 0) r.c[i + j] += c;
        }
    *ret = r;
    return true;
}

static bool expr_mul(const expr *a, const expr *b, expr *ret)
{
    if (!is_zero(&a->q) && !is_zero(&b->q)) return false;
    const expr *with_t = is_zero(&a->q) ? b : a, *other = is_zero(&a->q) ? a : b;
    return poly_mul(&with_t->q, &other->p, &ret->q) && poly_mul(&a->p, &b->p, &ret->p);
}

static void expr_add(const expr *a, const expr *b, double sign, expr *ret)
{
    for (int i = 0; i <= DEGREE; i++) {
        ret->p.c[i] = a->p.c[i] + sign * b->p.c[i];
        ret->q.c[i] = a->q.c[i] + sign * b->q.c[i];
    }
}

static bool is_number(const expr *e, double *ret)
{
    expr zero = *e;
    *ret = e->p.c[0];
    zero.p.c[0] = 0;
    return is_zero(&zero.p) && is_zero(&zero.q);
}

static bool expr_pow(const expr *a, double n, expr *ret)
{
    *ret = *a;
    if (n != 2 && n != 3) return false;
    for (int i = 1; i < (int)n; i++) {
        const expr r = *ret;
        if (!expr_mul(&r, a, ret)) return false;
    }
    return true;
}

static bool expr_div(const expr *a, double by, expr *ret)
{
    const expr inverse = { .p = { { 1 / by } } };
    return by != 0 && expr_mul(a, &inverse, ret);
}

static bool combine(hn_op op, const expr *a, const expr *b, expr *ret)
{
    double k;
    switch (op) {
    case HN_OP_add: return expr_add(a, b, 1, ret), true;
    case HN_OP_sub: return expr_add(a, b, -1, ret), true;
    case HN_OP_mul: return expr_mul(a, b, ret);
    case HN_OP_div: return is_number(b, &k) && expr_div(a, k, ret);
    case HN_OP_pow: return is_number(b, &k) && expr_pow(a, k, ret);
    default: return false;
    }
}

static bool read(reader *r, const hn_value *v, int depth, expr *ret)
{
    double k;
    expr in[2];
    *ret = (expr){ 0 };
    if (v == r->x) return ret->p.c[1] = 1, true;
    if (v == r->t) return ret->q.c[0] = 1, true;
    if (hn_const_scalar(v, &k)) return ret->p.c[0] = k, isfinite(k);
    const hn_node *n = depth && hn_tdesc_eq(&v->type, r->type) ? hn_found_any(r->f, v) : NULL;
    if (!n || n->n_in != 2) return false;
    return read(r, hn_in(n, 0), depth - 1, &in[0]) && read(r, hn_in(n, 1), depth - 1, &in[1]) && combine(n->op, &in[0], &in[1], ret);
}

/* Equal but for the rounding of three constants. */
static bool near(double got, double want, hn_dtype t)
{
    const double u = t == HN_BF16 ? 0x1p-8 : t == HN_F16 ? 0x1p-11 : t == HN_F32 ? 0x1p-24 : 0x1p-53;
    return fabs(got - want) <= 4 * u * fabs(want);
}

static bool has_coefs(const poly *p, const double want[DEGREE + 1], hn_dtype t)
{
    for (int i = 0; i <= DEGREE; i++)
        if (!near(p->c[i], want[i], t)) return false;
    return true;
}

/* n = x/2 + x/2 t, and t of the right argument? */
static bool is_gelu_of(hn_found *f, const hn_node *n, const hn_node *t, const hn_value *x)
{
    static const double half[] = { 0, 0.5, 0, 0 }, erf_arg[] = { 0, 0.70710678118654752, 0, 0 },
                        tanh_arg[] = { 0, 0.79788456080286536, 0, 0.79788456080286536 * 0.044715 };
    const hn_dtype d = n->out[0]->type.dtype;
    reader r = { .f = f, .x = x, .t = t->out[0], .type = &n->out[0]->type };
    expr whole, arg;
    f->n = 1;
    if (!read(&r, n->out[0], DEPTH, &whole) || !has_coefs(&whole.p, half, d) || !has_coefs(&whole.q, half, d)) return false;
    r.t = NULL;
    if (!hn_found_any(f, t->out[0]) || !read(&r, hn_in(t, 0), DEPTH, &arg) || !is_zero(&arg.q)) return false;
    return has_coefs(&arg.p, t->op == HN_OP_erf ? erf_arg : tanh_arg, d);
}

static bool is_arithmetic(const hn_node *n)
{
    return n->op == HN_OP_add || n->op == HN_OP_sub || n->op == HN_OP_mul || n->op == HN_OP_div || n->op == HN_OP_pow;
}

/* The erf or tanh that v is made of by arithmetic. */
static const hn_node *curve(const hn_graph *g, const hn_value *v, int depth)
{
    const hn_node *n = hn_producer(v);
    if (!n || n->graph != g) return NULL;
    if (n->op == HN_OP_erf || n->op == HN_OP_tanh) return n;
    for (int i = 0; depth && is_arithmetic(n) && i < n->n_in; i++) {
        const hn_node *found = curve(g, hn_in(n, i), depth - 1);
        if (found) return found;
    }
    return NULL;
}

/* Values that the argument is made of, nearest last: x is one of them. */
static void guesses(const hn_graph *g, const hn_value *v, int depth, const hn_value **ret, int *n)
{
    const hn_node *p = hn_producer(v);
    if (hn_is_const(v) || *n == MAX_GUESSES) return;
    ret[(*n)++] = v;
    for (int i = 0; depth && p && p->graph == g && is_arithmetic(p) && i < p->n_in; i++) guesses(g, hn_in(p, i), depth - 1, ret, n);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    if ((n->op != HN_OP_mul && n->op != HN_OP_add && n->op != HN_OP_div) || !n->out[0]->n_uses) return false;
    const hn_node *t = hn_dtype_is_float(n->out[0]->type.dtype) ? curve(n->graph, n->out[0], DEPTH) : NULL;
    if (!t) return false;
    const hn_value *guess[MAX_GUESSES];
    int n_guess = 0;
    guesses(n->graph, hn_in(t, 0), DEPTH, guess, &n_guess);
    for (int i = 0; i < n_guess; i++) {
        hn_found f;
        hn_found_init(&f, n);
        if (!hn_tdesc_eq(&guess[i]->type, &n->out[0]->type) || !is_gelu_of(&f, n, t, guess[i]) || !hn_found_is_closed(&f)) continue;
        if (!hn_pass_knob(c, HN_KNOB_fuse_gelu, n)) return false;
        hn_found_origins(&f, b);
        hn_value *y = hn_b1(b, HN_OP_gelu, (hn_value *)(uintptr_t)guess[i], HN_ATTRS_ARG(HN_A_I("tanh", t->op == HN_OP_tanh)));
        if (y) hn_replace(b, n->out[0], y);
        return y != NULL;
    }
    return false;
}

const hn_pass_def hn_pass_fuse_gelu = {
    .name = "fuse_gelu", .summary = "recognise Gaussian error linear units",
    .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
