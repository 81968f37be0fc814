/*
 * Division, comparison and choice over symbolic dims. A rewrite may make an expression defined where the
 * plain reading fails (n*m / m at m = 0); it never changes a value. Rewrites use the symbols' bounds, so
 * bounds may be tightened after an expression was built, never widened.
 */
#include "core/dim_int.h"

static int64_t floordiv_i64(int64_t a, int64_t b) /* b > 0 */
{
    return a / b - (a % b < 0);
}

static int64_t mod_i64(int64_t a, int64_t b) /* b > 0 */
{
    const int64_t r = a % b;
    return r < 0 ? r + b : r;
}

static hn_dim negate(hn_symtab *t, hn_dim d)
{
    return hn_dim_sub(t, 0, d);
}

static int64_t gcd(int64_t a, int64_t b)
{
    a = a < 0 ? -a : a;
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static bool finite(int64_t lo, int64_t hi)
{
    return lo != INT64_MIN && hi != INT64_MAX;
}

/* p = k*quotient + rest, coefficients rounded toward zero so that no sign turns; the constant term is not
 * there. */
static void split_multiples(hn_symtab *t, struct dim_poly *p, int64_t k, struct dim_poly *quotient)
{
    struct dim_poly rest = { .ok = true };
    for (int i = 0; i < p->n; i++) {
        hn_poly_add_(t, quotient, p->at[i].coef / k, p->at[i].mono);
        hn_poly_add_(t, &rest, p->at[i].coef % k, p->at[i].mono);
    }
    *p = rest;
}

/* Common divisor of k and every coefficient. */
static int64_t content(const struct dim_poly *p, int64_t k)
{
    for (int i = 0; i < p->n; i++)
        k = gcd(p->at[i].coef, k);
    return k;
}

static void divide_coefs(struct dim_poly *p, int64_t g)
{
    for (int i = 0; i < p->n; i++)
        p->at[i].coef /= g;
}

static hn_dim div_const(hn_symtab *t, hn_dim a, int64_t k);

/* floor((floor(x/m) + c) / k) is floor((x + m*c) / (m*k)). */
static bool div_of_div(hn_symtab *t, const struct dim_poly *p, int64_t c, int64_t k, hn_dim *ret)
{
    int64_t m, mk, mc;
    if (p->n != 1 || p->at[0].coef != 1 || hn_dim_op_(t, p->at[0].mono) != HN_EX_FLOORDIV) return false;
    const struct dim_node *inner = hn_dim_node_(t, p->at[0].mono);
    const hn_dim x = inner->arg[0];
    if (!hn_dim_known(t, inner->arg[1], &m) || m <= 0) return false;
    if (__builtin_mul_overflow(m, k, &mk) || __builtin_mul_overflow(m, c, &mc)) return false;
    *ret = div_const(t, hn_dim_add(t, x, hn_dim_const(t, mc)), mk);
    return true;
}

/* floor((p + c) / k) with p free of multiples of k and of a constant, 0 <= c < k. */
static hn_dim div_rest(hn_symtab *t, struct dim_poly *p, int64_t c, int64_t k)
{
    int64_t lo, hi;
    hn_dim d;
    if (p->n == 0) return 0;
    if (p->at[0].coef < 0) { /* floor(-x / k) is -floor((x + k - 1) / k) */
        struct dim_poly flipped = { .ok = true };
        hn_poly_add_scaled_(t, &flipped, p, -1);
        if (flipped.ok) return negate(t, div_rest(t, &flipped, k - 1 - c, k));
    }
    const int64_t g = content(p, k);
    if (g > 1) {
        divide_coefs(p, g);
        c /= g;
        k /= g;
    }
    if (div_of_div(t, p, c, k, &d)) return d;
    hn_poly_add_(t, p, c, 1);
    d = hn_poly_dim_(t, p);
    hn_dim_bounds(t, d, &lo, &hi);
    if (finite(lo, hi) && floordiv_i64(lo, k) == floordiv_i64(hi, k))
        return hn_dim_const(t, floordiv_i64(lo, k));
    return hn_dim_intern_(t, HN_EX_FLOORDIV, false, d, k, 0);
}

static hn_dim div_const(hn_symtab *t, hn_dim a, int64_t k)
{
    struct dim_poly p, quotient = { .ok = true };
    if (k < 0 && k != INT64_MIN) return div_const(t, negate(t, a), -k);
    if (k == 1) return a;
    hn_poly_of_(t, a, &p);
    if (k <= 0 || !p.ok) return hn_dim_intern_(t, HN_EX_FLOORDIV, false, a, hn_dim_const(t, k), 0);
    const int64_t c = hn_poly_take_const_(&p);
    split_multiples(t, &p, k, &quotient);
    hn_poly_add_(t, &quotient, floordiv_i64(c, k), 1);
    const hn_dim rest = div_rest(t, &p, mod_i64(c, k), k);
    return hn_dim_add(t, hn_poly_dim_(t, &quotient), rest);
}

/* a = quotient*b + rest by polynomial division; false when it does not fit. */
static bool long_divide(hn_symtab *t, hn_dim a, hn_dim b, struct dim_poly *quotient, struct dim_poly *rest)
{
    struct dim_poly q;
    *quotient = (struct dim_poly){ .ok = true };
    hn_poly_of_(t, a, rest);
    hn_poly_of_(t, b, &q);
    if (!rest->ok || !q.ok || q.n == 0) return false;
    for (int i = 0, step = 0; i < rest->n && step < DIM_MAX_TERMS; step++) {
        hn_dim mono;
        const int64_t coef = rest->at[i].coef;
        const bool whole = q.at[0].coef != -1 ? coef % q.at[0].coef == 0 : coef != INT64_MIN;
        if (!whole || !hn_mono_div_(t, rest->at[i].mono, q.at[0].mono, &mono)) {
            i++;
            continue;
        }
        const int64_t by = coef / q.at[0].coef;
        struct dim_poly product = { .ok = true };
        for (int j = 0; j < q.n && product.ok; j++) {
            const hn_dim m = hn_mono_mul_(t, q.at[j].mono, mono);
            product.ok = m != 0;
            hn_poly_add_(t, &product, q.at[j].coef, m);
        }
        hn_poly_add_(t, quotient, by, mono);
        if (by == INT64_MIN) return false;
        hn_poly_add_scaled_(t, rest, &product, -by);
        if (!rest->ok || !quotient->ok) return false;
    }
    return true;
}

hn_dim hn_dim_floordiv(hn_symtab *t, hn_dim a, hn_dim b)
{
    struct dim_poly quotient, rest;
    int64_t k;
    if (hn_dim_known(t, b, &k)) return div_const(t, a, k);
    if (!long_divide(t, a, b, &quotient, &rest)) return hn_dim_intern_(t, HN_EX_FLOORDIV, false, a, b, 0);
    const hn_dim whole = hn_poly_dim_(t, &quotient), left = hn_poly_dim_(t, &rest);
    if (left == 0) return whole;
    return hn_dim_add(t, whole, hn_dim_intern_(t, HN_EX_FLOORDIV, false, left, b, 0));
}

hn_dim hn_dim_ceildiv(hn_symtab *t, hn_dim a, hn_dim b)
{
    int64_t lo, hi;
    hn_dim_bounds(t, b, &lo, &hi);
    if (lo < 0) return negate(t, hn_dim_floordiv(t, negate(t, a), b));
    return hn_dim_floordiv(t, hn_dim_add(t, a, hn_dim_sub(t, b, 1)), b); /* b == 0 fails either way */
}

static hn_dim mod_const(hn_symtab *t, hn_dim a, int64_t k)
{
    struct dim_poly p, rest = { .ok = true };
    int64_t lo, hi;
    if (k < 0 && k != INT64_MIN) return negate(t, mod_const(t, negate(t, a), -k));
    hn_poly_of_(t, a, &p);
    if (k <= 0 || !p.ok) return hn_dim_intern_(t, HN_EX_MOD, false, a, hn_dim_const(t, k), 0);
    for (int i = 0; i < p.n; i++)
        hn_poly_add_(t, &rest, mod_i64(p.at[i].coef, k), p.at[i].mono);
    const int64_t c = hn_poly_take_const_(&rest);
    if (rest.n == 0) return c;
    const int64_t g = content(&rest, k); /* (g*x + c) mod (g*k) is g*((x + c/g) mod k) + c mod g */
    divide_coefs(&rest, g);
    hn_poly_add_(t, &rest, c / g, 1);
    const hn_dim d = hn_poly_dim_(t, &rest);
    hn_dim_bounds(t, d, &lo, &hi);
    const hn_dim m = lo >= 0 && hi < k / g ? d : hn_dim_intern_(t, HN_EX_MOD, false, d, k / g, 0);
    return hn_dim_add(t, hn_dim_mul(t, m, g), c % g);
}

hn_dim hn_dim_mod(hn_symtab *t, hn_dim a, hn_dim b)
{
    struct dim_poly quotient, rest;
    int64_t k;
    if (hn_dim_known(t, b, &k)) return mod_const(t, a, k);
    if (!long_divide(t, a, b, &quotient, &rest)) return hn_dim_intern_(t, HN_EX_MOD, false, a, b, 0);
    const hn_dim left = hn_poly_dim_(t, &rest);
    return left == 0 ? 0 : hn_dim_intern_(t, HN_EX_MOD, false, left, b, 0);
}

/* ---- min and max ---- */
enum { MAX_CHOICES = 16 };

/* 1: a >= b always; -1: a <= b always; 0: not known. */
static int dominates(hn_symtab *t, hn_dim a, hn_dim b)
{
    int64_t lo, hi;
    hn_dim_bounds(t, hn_dim_sub(t, a, b), &lo, &hi);
    return lo >= 0 ? 1 : hi <= 0 ? -1 : 0;
}

/* Adds d to the choices unless one of them already covers it; drops the ones it covers. */
static int add_choice(hn_symtab *t, int op, hn_dim *choice, int n, hn_dim d)
{
    const int better = op == HN_EX_MAX ? 1 : -1;
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (choice[i] == d || dominates(t, choice[i], d) == better) return n;
    for (int i = 0; i < n; i++)
        if (dominates(t, d, choice[i]) != better) choice[kept++] = choice[i];
    int at = kept;
    while (at > 0 && hn_dim_compare_(t, choice[at - 1], d) > 0) {
        choice[at] = choice[at - 1];
        at--;
    }
    choice[at] = d;
    return kept + 1;
}

static bool add_all(hn_symtab *t, int op, hn_dim *choice, int *n, hn_dim d)
{
    while (hn_dim_op_(t, d) == op) {
        if (*n == MAX_CHOICES) return false;
        *n = add_choice(t, op, choice, *n, hn_dim_node_(t, d)->arg[1]);
        d = hn_dim_node_(t, d)->arg[0];
    }
    if (*n == MAX_CHOICES) return false;
    *n = add_choice(t, op, choice, *n, d);
    return true;
}

static hn_dim min_max(hn_symtab *t, int op, hn_dim a, hn_dim b)
{
    hn_dim choice[MAX_CHOICES];
    int n = 0;
    if (a == b) return a;
    if (!add_all(t, op, choice, &n, a) || !add_all(t, op, choice, &n, b))
        return hn_dim_intern_(t, op, true, a, b, 0);
    hn_dim d = choice[0];
    for (int i = 1; i < n; i++)
        d = hn_dim_intern_(t, op, false, d, choice[i], 0);
    return d;
}

hn_dim hn_dim_min(hn_symtab *t, hn_dim a, hn_dim b)
{
    return min_max(t, HN_EX_MIN, a, b);
}

hn_dim hn_dim_max(hn_symtab *t, hn_dim a, hn_dim b)
{
    return min_max(t, HN_EX_MAX, a, b);
}

/* ---- comparison and choice ---- */

/* a op b with what both sides share cancelled: positive terms left, the others right. */
static hn_dim compare_sides(hn_symtab *t, int op, const struct dim_poly *difference)
{
    struct dim_poly left = { .ok = true }, right = { .ok = true };
    for (int i = 0; i < difference->n; i++) {
        const struct dim_term x = difference->at[i];
        if (x.coef > 0)
            hn_poly_add_(t, &left, x.coef, x.mono);
        else if (x.coef != INT64_MIN)
            hn_poly_add_(t, &right, -x.coef, x.mono);
        else
            right.ok = false;
    }
    if (!right.ok) return 0;
    const hn_dim l = hn_poly_dim_(t, &left), r = hn_poly_dim_(t, &right);
    return hn_dim_intern_(t, op, false, l, r, 0);
}

static hn_dim compare(hn_symtab *t, int op, hn_dim a, hn_dim b)
{
    struct dim_poly p;
    hn_dim d = hn_dim_sub(t, a, b);
    hn_poly_of_(t, d, &p);
    if (op == HN_EX_EQ && p.ok && p.n && p.at[0].coef < 0) { /* x == 0 and -x == 0 are one question */
        d = hn_dim_sub(t, b, a);
        hn_poly_of_(t, d, &p);
    }
    if (p.ok) d = compare_sides(t, op, &p);
    return p.ok && d ? d : hn_dim_intern_(t, op, true, a, b, 0);
}

hn_dim hn_dim_eq(hn_symtab *t, hn_dim a, hn_dim b)
{
    int64_t lo, hi;
    if (a == b) return 1;
    hn_dim_bounds(t, hn_dim_sub(t, a, b), &lo, &hi);
    if (lo > 0 || hi < 0) return 0;
    if (lo == 0 && hi == 0) return 1;
    return compare(t, HN_EX_EQ, a, b);
}

hn_dim hn_dim_lt(hn_symtab *t, hn_dim a, hn_dim b)
{
    int64_t lo, hi;
    if (a == b) return 0;
    hn_dim_bounds(t, hn_dim_sub(t, a, b), &lo, &hi);
    if (hi < 0) return 1;
    if (lo >= 0) return 0;
    return compare(t, HN_EX_LT, a, b);
}

hn_dim hn_dim_build_(hn_symtab *t, int op, hn_dim a, hn_dim b, hn_dim c)
{
    switch (op) {
    case HN_EX_ADD: return hn_dim_add(t, a, b);
    case HN_EX_MUL: return hn_dim_mul(t, a, b);
    case HN_EX_FLOORDIV: return hn_dim_floordiv(t, a, b);
    case HN_EX_MOD: return hn_dim_mod(t, a, b);
    case HN_EX_MIN: return hn_dim_min(t, a, b);
    case HN_EX_MAX: return hn_dim_max(t, a, b);
    case HN_EX_EQ: return hn_dim_eq(t, a, b);
    case HN_EX_LT: return hn_dim_lt(t, a, b);
    default: return hn_dim_select(t, a, b, c);
    }
}

/* d where x has the value v; *budget counts down the nodes that may be looked at, and below zero the answer means nothing. */
static hn_dim where_equal(hn_symtab *t, hn_dim d, hn_dim x, hn_dim v, int *budget)
{
    if (d == x) return v;
    const int op = hn_dim_op_(t, d);
    if (op == DIM_CONST || op == HN_EX_SYM || --*budget < 0) return d;
    const struct dim_node n = *hn_dim_node_(t, d); /* a copy: building moves the nodes */
    const hn_dim a = where_equal(t, n.arg[0], x, v, budget), b = where_equal(t, n.arg[1], x, v, budget);
    return hn_dim_build_(t, op, a, b, op == HN_EX_SELECT ? where_equal(t, n.arg[2], x, v, budget) : 0);
}

/* select(eq(n,1), min(512,n), n) is n: where n is 1 both are 1. Broadcasting makes such choices. */
static bool same_where_equal(hn_symtab *t, hn_dim cond, hn_dim a, hn_dim b)
{
    int budget = 32;
    if (hn_dim_op_(t, cond) != HN_EX_EQ) return false;
    const hn_dim l = hn_dim_node_(t, cond)->arg[0], r = hn_dim_node_(t, cond)->arg[1];
    const bool left = hn_dim_op_(t, l) == DIM_CONST;
    if (!left && hn_dim_op_(t, r) != DIM_CONST) return false;
    const hn_dim x = left ? r : l, v = left ? l : r;
    return where_equal(t, a, x, v, &budget) == where_equal(t, b, x, v, &budget) && budget >= 0;
}

hn_dim hn_dim_select(hn_symtab *t, hn_dim cond, hn_dim a, hn_dim b)
{
    int64_t lo, hi;
    if (a == b) return a;
    hn_dim_bounds(t, cond, &lo, &hi);
    if (lo > 0 || hi < 0) return a;
    if (lo == 0 && hi == 0) return b;
    if (same_where_equal(t, cond, a, b)) return b;
    return hn_dim_intern_(t, HN_EX_SELECT, false, cond, a, b);
}
