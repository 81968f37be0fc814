/* Distinct slices or elements: a stable sort of their numbers brings equals together, the first of each run
 * stands for it. */
#include "tactic/cpu/order.h"
#include "tactic/cpu/slices.h"

#include <math.h>

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_unique) return HN_FIT_OP;
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_DTYPE;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)t;
    (void)p;
    double n = 1;
    const hn_value *x = hn_in(r->root, 0);
    for (int a = 0; a < x->type.rank; a++)
        n *= (double)hn_region_opt(r, x->type.dim[a]);
    return 6 * n * (1 + log2(n + 1)) + 200;
}

typedef struct uniq {
    hn_slices s;
    const hn_region *r;
    int order, spare, first_of, firsts, rank; /* scratch, i64 */
} uniq;

/* -1, 0, 1 in a variable: slice y against slice x, element by element. */
static hn_kvar compare(const uniq *u, hn_kv y, hn_kv x)
{
    hn_kb *b = hn_lower_kb(u->s.l);
    const hn_kvar r = hn_kb_var(b, hn_kb_i(b, 0));
    const hn_kv m = hn_kb_forn(b, hn_kb_mul(b, u->s.outer, u->s.inner));
    hn_kb_break_if(b, hn_kb_ne(b, hn_kb_get(b, r), hn_kb_i(b, 0)));
    const hn_kv o = hn_kb_idiv(b, m, u->s.inner), i = hn_kb_imod(b, m, u->s.inner);
    const hn_kv ky = hn_order_key(b, hn_slices_at(&u->s, y, o, i)),
                kx = hn_order_key(b, hn_slices_at(&u->s, x, o, i));
    hn_kb_set(
        b, r,
        hn_kb_sub(b, hn_kb_cast(b, hn_kb_gt(b, ky, kx), HN_I64), hn_kb_cast(b, hn_kb_lt(b, ky, kx), HN_I64)));
    hn_kb_end(b);
    return r;
}

static hn_kv before(hn_kb *b, hn_kv y, hn_kv x, void *user)
{
    return hn_kb_lt(b, hn_kb_get(b, compare(user, y, x)), hn_kb_i(b, 0));
}

/* first_of[e] for every slice e, firsts in sorted order; yields how many. */
static hn_kvar mark_first(uniq *u)
{
    hn_kb *b = hn_lower_kb(u->s.l);
    hn_kv i = hn_kb_forn(b, u->s.n);
    hn_kb_store(b, u->order, i, i);
    hn_kb_end(b);
    const hn_kvar which = hn_order_sort(b, u->order, u->spare, u->s.n, before, u);
    const hn_kvar count = hn_kb_var(b, hn_kb_i(b, 0)), first = hn_kb_var(b, hn_kb_i(b, 0));
    i = hn_kb_forn(b, u->s.n);
    const hn_kv e = hn_order_at(b, u->order, u->spare, which, i);
    const hn_kvar fresh = hn_kb_var(b, hn_kb_int(b, HN_BOOL, 1, 1));
    hn_kb_if(b, hn_kb_gt(b, i, hn_kb_i(b, 0)));
    const hn_kvar c = compare(u, e, hn_kb_get(b, first));
    hn_kb_set(b, fresh, hn_kb_ne(b, hn_kb_get(b, c), hn_kb_i(b, 0)));
    hn_kb_end(b);
    hn_kb_if(b, hn_kb_get(b, fresh));
    hn_kb_set(b, first, e);
    const hn_kv k = hn_kb_get(b, count);
    hn_kb_store(b, u->firsts, k, e);
    hn_kb_set(b, count, hn_kb_addi(b, k, 1));
    hn_kb_end(b);
    hn_kb_store(b, u->first_of, e, hn_kb_get(b, first));
    hn_kb_end(b);
    return count;
}

/* In order of appearance instead: a slice that is the first of its run. */
static void sort_by_place(uniq *u)
{
    hn_kb *b = hn_lower_kb(u->s.l);
    const hn_kvar k = hn_kb_var(b, hn_kb_i(b, 0));
    const hn_kv i = hn_kb_forn(b, u->s.n);
    hn_kb_if(b, hn_kb_eq(b, hn_kb_load(b, u->first_of, i, 1), i));
    hn_kb_store(b, u->firsts, hn_kb_get(b, k), i);
    hn_kb_set(b, k, hn_kb_addi(b, hn_kb_get(b, k), 1));
    hn_kb_end(b);
    hn_kb_end(b);
}

static void write_distinct(uniq *u, hn_kv count)
{
    hn_kb *b = hn_lower_kb(u->s.l);
    const int y = hn_loops_result(u->r, 0), first = hn_loops_result(u->r, 1),
              counts = hn_loops_result(u->r, 3);
    const int ybuf = y >= 0 ? hn_lower_out(u->s.l, y) : -1,
              fbuf = first >= 0 ? hn_lower_out(u->s.l, first) : -1;
    const int cbuf = counts >= 0 ? hn_lower_out(u->s.l, counts) : -1;
    const hn_kv k = hn_kb_forn(b, count), e = hn_kb_load(b, u->firsts, k, 1);
    hn_kb_store(b, u->rank, e, k);
    if (y >= 0) hn_slices_copy(&u->s, ybuf, count, e, k);
    if (first >= 0) hn_kb_store(b, fbuf, k, e);
    if (counts >= 0) hn_kb_store(b, cbuf, k, hn_kb_i(b, 0));
    hn_kb_end(b);
}

static void write_inverse(uniq *u)
{
    hn_kb *b = hn_lower_kb(u->s.l);
    const int inverse = hn_loops_result(u->r, 2), counts = hn_loops_result(u->r, 3);
    const int ibuf = inverse >= 0 ? hn_lower_out(u->s.l, inverse) : -1;
    const int cbuf = counts >= 0 ? hn_lower_out(u->s.l, counts) : -1;
    const hn_kv i = hn_kb_forn(b, u->s.n), k = hn_kb_load(b, u->rank, hn_kb_load(b, u->first_of, i, 1), 1);
    if (inverse >= 0) hn_kb_store(b, ibuf, i, k);
    if (counts >= 0) hn_kb_store(b, cbuf, k, hn_kb_addi(b, hn_kb_load(b, cbuf, k, 1), 1));
    hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    (void)p;
    hn_kb *b = hn_kb_new(ret->arena, "unique_any_sort__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    uniq u = { .r = r };
    hn_slices_init(&u.s, l, r);
    int *const list[] = { &u.order, &u.spare, &u.first_of, &u.firsts, &u.rank };
    for (int i = 0; i < HN_COUNT(list); i++)
        *list[i] = hn_kb_scratch(b, "list", HN_I64, hn_kb_ext(b, u.s.n, 1));
    const hn_kv count = hn_kb_get(b, mark_first(&u));
    if (!hn_attr_i(r->root, "sorted")) sort_by_place(&u);
    const int total = hn_loops_result(r, 4);
    if (total >= 0) hn_kb_store(b, hn_lower_out(l, total), hn_kb_i(b, 0), count);
    write_distinct(&u, count);
    write_inverse(&u);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_unique_any_sort__cpu = {
    .name = "unique_any_sort__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .portable = true,
    .fits = fits,
    .cost = cost,
    .emit = emit,
};
