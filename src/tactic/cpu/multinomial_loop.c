/* Draws by unnormalised log-probabilities: the first class whose cumulated weight exceeds a uniform share of
 * the total. In f64, as the definition is: a draw near an edge must not depend on the kernel. */
#include "tactic/cpu/loops.h"

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_multinomial) return HN_FIT_OP;
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_DTYPE;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)t;
    (void)p;
    const hn_value *x = hn_in(r->root, 0), *y = r->root->out[0];
    double n = (double)hn_region_opt(r, x->type.dim[1]);
    for (int a = 0; a < 2; a++)
        n *= (double)hn_region_opt(r, y->type.dim[a]);
    return 20 * n + 200;
}

typedef struct draw {
    hn_lower *l;
    const hn_value *x;
    hn_kv row, n;
} draw;

static hn_kv logit(draw *d, hn_kv k)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv at[2] = { d->row, k };
    hn_kidx idx;
    hn_kidx_init(&idx, 2, at);
    hn_lower_forget(d->l);
    const hn_kv x = hn_kb_cast(b, hn_lower_value(d->l, d->x, &idx, HN_KV_NONE), HN_F64);
    hn_lower_forget(d->l);
    return x;
}

static hn_kv weight(draw *d, hn_kv k, hn_kv top)
{
    hn_kb *b = hn_lower_kb(d->l);
    return hn_kb_math(b, HN_KMATH_EXP, hn_kb_sub(b, logit(d, k), top));
}

static hn_kv chosen(draw *d, hn_kv u)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kvar max = hn_kb_var(b, hn_kb_float(b, HN_F64, 1, -__builtin_inf()));
    const hn_kvar total = hn_kb_var(b, hn_kb_float(b, HN_F64, 1, 0)),
                  sum = hn_kb_var(b, hn_kb_float(b, HN_F64, 1, 0));
    const hn_kvar at = hn_kb_var(b, hn_kb_addi(b, d->n, -1));
    hn_kv k = hn_kb_forn(b, d->n);
    hn_kb_set(b, max, hn_kb_bin(b, HN_KOP_MAXR, logit(d, k), hn_kb_get(b, max))); /* fmax: NaN loses */
    hn_kb_end(b);
    const hn_kv top = hn_kb_get(b, max);
    k = hn_kb_forn(b, d->n);
    hn_kb_set(b, total, hn_kb_add(b, hn_kb_get(b, total), weight(d, k, top)));
    hn_kb_end(b);
    const hn_kv want = hn_kb_mul(b, u, hn_kb_get(b, total));
    k = hn_kb_forn(b, d->n);
    const hn_kv s = hn_kb_add(b, hn_kb_get(b, sum), weight(d, k, top)), hit = hn_kb_gt(b, s, want);
    hn_kb_set(b, sum, s);
    hn_kb_set(b, at, hn_kb_select(b, hit, k, hn_kb_get(b, at)));
    hn_kb_break_if(b, hit);
    hn_kb_end(b);
    return hn_kb_get(b, at);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    (void)p;
    hn_kb *b = hn_kb_new(ret->arena, "multinomial_any_loop__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    const hn_value *y = r->root->out[0];
    draw d = { .l = l, .x = hn_in(r->root, 0), .n = hn_lower_dim(l, hn_in(r->root, 0)->type.dim[1]) };
    hn_kv at[2];
    const hn_kv all = hn_lower_dim(l, hn_loops_extent(r, y, 3)), i = hn_kb_parallel(b, hn_kb_ext(b, all, 1));
    hn_loops_split(l, y, 3, i, at);
    d.row = at[0];
    const hn_kv u = hn_lower_uniform(l, hn_attr_i(r->root, "seed"), i, HN_F64);
    const hn_kv k = hn_kb_cast(b, chosen(&d, u), y->type.dtype);
    hn_kidx idx;
    hn_kidx_init(&idx, 2, at);
    hn_lower_seed(l, y, k);
    hn_lower_store(l, &idx, HN_KV_NONE);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_multinomial_any_loop__cpu = {
    .name = "multinomial_any_loop__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .portable = true,
    .fits = fits,
    .cost = cost,
    .emit = emit,
};
