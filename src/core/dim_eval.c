/* Bounds, evaluation and substitution: walks over the shared nodes, each answer kept for the length of one
 * question. */
#include "core/dim_int.h"

/* ---- bounds: INT64_MIN and INT64_MAX stand for "no bound" and stay so ---- */
struct range {
    int64_t lo, hi;
};

static int64_t saturate(hn_i128 v)
{
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

static struct range add_ranges(struct range a, struct range b)
{
    const bool no_lo = a.lo == INT64_MIN || b.lo == INT64_MIN, no_hi = a.hi == INT64_MAX || b.hi == INT64_MAX;
    return (struct range){ no_lo ? INT64_MIN : saturate((hn_i128)a.lo + b.lo),
                           no_hi ? INT64_MAX : saturate((hn_i128)a.hi + b.hi) };
}

static bool unbounded(int64_t v)
{
    return v == INT64_MIN || v == INT64_MAX;
}

static int64_t times(int64_t a, int64_t b)
{
    if (a == 0 || b == 0) return 0;
    if (unbounded(a) || unbounded(b)) return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return saturate((hn_i128)a * b);
}

static struct range hull(const int64_t *v, int n)
{
    struct range r = { v[0], v[0] };
    for (int i = 1; i < n; i++) {
        r.lo = HN_MIN(r.lo, v[i]);
        r.hi = HN_MAX(r.hi, v[i]);
    }
    return r;
}

static struct range mul_ranges(struct range a, struct range b)
{
    const int64_t corner[4] = { times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi) };
    return hull(corner, 4);
}

static hn_i128 floordiv(hn_i128 a, hn_i128 b)
{
    const hn_i128 q = a / b, r = a % b;
    return q - (r != 0 && (r < 0) != (b < 0));
}

static int64_t quotient(int64_t a, int64_t b)
{
    if (unbounded(b)) return a == 0 || (a < 0) == (b < 0) ? 0 : unbounded(a) ? a : -1;
    if (unbounded(a)) return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return saturate(floordiv(a, b));
}

static struct range div_ranges(struct range a, struct range b)
{
    if (b.lo == 0) b.lo = 1; /* dividing by zero yields no value to bound */
    if (b.hi == 0) b.hi = -1;
    if (b.lo > b.hi) return (struct range){ INT64_MIN, INT64_MAX };
    if (b.lo < 0 && b.hi > 0) {
        const struct range neg = div_ranges(a, (struct range){ b.lo, -1 });
        const struct range pos = div_ranges(a, (struct range){ 1, b.hi });
        return (struct range){ HN_MIN(neg.lo, pos.lo), HN_MAX(neg.hi, pos.hi) };
    }
    const int64_t corner[4] = { quotient(a.lo, b.lo), quotient(a.lo, b.hi), quotient(a.hi, b.lo),
                                quotient(a.hi, b.hi) };
    return hull(corner, 4);
}

static struct range mod_ranges(struct range a, struct range b)
{
    const int64_t lo = b.lo == INT64_MIN ? INT64_MIN : b.lo + 1,
                  hi = b.hi == INT64_MAX ? INT64_MAX : b.hi - 1;
    struct range r = { HN_MIN(lo, 0), HN_MAX(hi, 0) };
    if (b.lo >= 0 && a.lo >= 0) r.hi = HN_MIN(r.hi, a.hi);
    return r;
}

static struct range bounds_of(const hn_symtab *t, hn_dim d);

static struct range compute_bounds(const hn_symtab *t, const struct dim_node *x)
{
    if (x->op == DIM_CONST) return (struct range){ x->arg[0], x->arg[0] };
    if (x->op == HN_EX_SYM) return (struct range){ t->sym.at[x->arg[0]]->min, t->sym.at[x->arg[0]]->max };
    const struct range a = bounds_of(t, x->arg[0]), b = bounds_of(t, x->arg[1]);
    switch ((hn_expr_op)x->op) {
    case HN_EX_ADD:
        return add_ranges(a, b);
    case HN_EX_MUL:
        if (x->arg[0] == x->arg[1]) { /* a square is not negative */
            const struct range r = mul_ranges(a, b);
            return (struct range){ HN_MAX(r.lo, 0), r.hi };
        }
        return mul_ranges(a, b);
    case HN_EX_FLOORDIV:
        return div_ranges(a, b);
    case HN_EX_MOD:
        return mod_ranges(a, b);
    case HN_EX_MIN:
        return (struct range){ HN_MIN(a.lo, b.lo), HN_MIN(a.hi, b.hi) };
    case HN_EX_MAX:
        return (struct range){ HN_MAX(a.lo, b.lo), HN_MAX(a.hi, b.hi) };
    case HN_EX_EQ:
    case HN_EX_LT:
        return (struct range){ 0, 1 };
    case HN_EX_SELECT: {
        const struct range c = bounds_of(t, x->arg[2]);
        return (struct range){ HN_MIN(b.lo, c.lo), HN_MAX(b.hi, c.hi) };
    }
    case HN_EX_SYM:
        break;
    }
    return (struct range){ INT64_MIN, INT64_MAX };
}

static struct range bounds_of(const hn_symtab *t, hn_dim d)
{
    if (d >= 0) return (struct range){ d, d };
    struct dim_node *x = hn_dim_node_(t, d);
    if (x->bounds_epoch != t->cache->bounds_epoch) {
        const struct range r = compute_bounds(t, x);
        x->bounds_epoch = t->cache->bounds_epoch;
        x->lo = r.lo;
        x->hi = r.hi;
    }
    return (struct range){ x->lo, x->hi };
}

void hn_dim_bounds(const hn_symtab *t, hn_dim d, int64_t *ret_lo, int64_t *ret_hi)
{
    const struct range r = bounds_of(t, d);
    *ret_lo = r.lo;
    *ret_hi = r.hi;
}

/* ---- evaluation: in 128 bits, so that cancelling terms may pass int64 on the way ---- */
static bool eval(const hn_symtab *t, hn_dim d, const int64_t *sym_value, hn_i128 *ret);

static bool eval_select(const hn_symtab *t, const struct dim_node *x, const int64_t *sym_value, hn_i128 *ret)
{
    hn_i128 cond;
    return eval(t, x->arg[0], sym_value, &cond) && eval(t, x->arg[cond ? 1 : 2], sym_value, ret);
}

static bool compute(const hn_symtab *t, const struct dim_node *x, const int64_t *sym_value, hn_i128 *ret)
{
    hn_i128 a, b;
    if (x->op == DIM_CONST || x->op == HN_EX_SYM) {
        *ret = x->op == DIM_CONST ? x->arg[0] : sym_value[x->arg[0]];
        return true;
    }
    if (x->op == HN_EX_SELECT) return eval_select(t, x, sym_value, ret);
    if (!eval(t, x->arg[0], sym_value, &a) || !eval(t, x->arg[1], sym_value, &b)) return false;
    switch ((hn_expr_op)x->op) {
    case HN_EX_ADD:
        return !__builtin_add_overflow(a, b, ret);
    case HN_EX_MUL:
        return !__builtin_mul_overflow(a, b, ret);
    case HN_EX_FLOORDIV:
        if (b == 0) return false;
        *ret = floordiv(a, b);
        return true;
    case HN_EX_MOD:
        if (b == 0) return false;
        *ret = a % b;
        if (*ret != 0 && (*ret < 0) != (b < 0)) *ret += b;
        return true;
    case HN_EX_MIN:
        *ret = HN_MIN(a, b);
        return true;
    case HN_EX_MAX:
        *ret = HN_MAX(a, b);
        return true;
    case HN_EX_EQ:
        *ret = a == b;
        return true;
    case HN_EX_LT:
        *ret = a < b;
        return true;
    case HN_EX_SYM:
    case HN_EX_SELECT:
        break;
    }
    return false;
}

static bool eval(const hn_symtab *t, hn_dim d, const int64_t *sym_value, hn_i128 *ret)
{
    if (d >= 0) {
        *ret = d;
        return true;
    }
    struct dim_node *x = hn_dim_node_(t, d);
    if (x->eval_epoch != t->cache->eval_epoch) {
        hn_i128 v = 0;
        x->eval_ok = compute(t, x, sym_value, &v);
        x->eval_epoch = t->cache->eval_epoch;
        x->value = v;
    }
    *ret = x->value;
    return x->eval_ok;
}

bool hn_dim_eval(const hn_symtab *t, hn_dim d, const int64_t *sym_value, int64_t *ret)
{
    hn_i128 v;
    t->cache->eval_epoch++;
    if (!eval(t, d, sym_value, &v) || v > INT64_MAX || v < INT64_MIN) return false;
    *ret = (int64_t)v;
    return true;
}

/* ---- substitution ---- */
static hn_dim subst(hn_symtab *t, hn_dim d, const hn_dim *sub)
{
    if (d >= 0) return d;
    const struct dim_node x = *hn_dim_node_(t, d); /* a copy: building moves the nodes */
    if (x.op == DIM_CONST) return d;
    if (x.op == HN_EX_SYM) return sub[x.arg[0]];
    if (x.subst_epoch == t->cache->subst_epoch) return x.subst;
    const hn_dim a = subst(t, x.arg[0], sub), b = subst(t, x.arg[1], sub);
    const hn_dim r = hn_dim_build_(t, x.op, a, b, x.op == HN_EX_SELECT ? subst(t, x.arg[2], sub) : 0);
    struct dim_node *at = hn_dim_node_(t, d);
    at->subst_epoch = t->cache->subst_epoch;
    at->subst = r;
    return r;
}

hn_dim hn_dim_subst(hn_symtab *t, hn_dim d, const hn_dim *sub)
{
    t->cache->subst_epoch++;
    return subst(t, d, sub);
}
