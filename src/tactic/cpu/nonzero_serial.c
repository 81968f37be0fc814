/* Where elements are not zero: count them, then write their indices, axis by axis [rank, count]. One walk
 * each, serial. */
#include "tactic/cpu/loops.h"

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_nonzero) return HN_FIT_OP;
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_DTYPE;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)p;
    hn_work w;
    hn_region_work(r, &w);
    return hn_roofline_ns(t, 0, w.bytes, 1, 0.1) + 200;
}

static hn_kv is_set(hn_lower *l, const hn_value *x, const hn_kv *at)
{
    hn_kb *b = hn_lower_kb(l);
    hn_kidx idx;
    hn_kidx_init(&idx, x->type.rank, at);
    hn_lower_forget(l);
    const hn_kv v = hn_lower_value(l, x, &idx, HN_KV_NONE);
    hn_lower_forget(l);
    return hn_kb_dtype(b, v) == HN_BOOL ? v : hn_kb_ne(b, v, hn_kb_like(b, v, 0));
}

static hn_kvar count(hn_lower *l, const hn_value *x)
{
    hn_kb *b = hn_lower_kb(l);
    hn_kv at[HN_MAX_RANK];
    const hn_kvar n = hn_kb_var(b, hn_kb_i(b, 0));
    const int open = hn_loops_open(l, x, hn_loops_all(x), at);
    hn_kb_set(b, n, hn_kb_add(b, hn_kb_get(b, n), hn_kb_cast(b, is_set(l, x, at), HN_I64)));
    hn_loops_close(l, open);
    return n;
}

static void write(hn_lower *l, const hn_value *x, int buf, hn_kv n)
{
    hn_kb *b = hn_lower_kb(l);
    hn_kv at[HN_MAX_RANK];
    const hn_kvar k = hn_kb_var(b, hn_kb_i(b, 0));
    const int open = hn_loops_open(l, x, hn_loops_all(x), at);
    hn_kb_if(b, is_set(l, x, at));
    const hn_kv now = hn_kb_get(b, k);
    for (int a = 0; a < x->type.rank; a++)
        hn_kb_store(b, buf, hn_kb_add(b, hn_kb_muli(b, n, a), now), at[a]);
    hn_kb_set(b, k, hn_kb_addi(b, now, 1));
    hn_kb_end(b);
    hn_loops_close(l, open);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    (void)p;
    hn_kb *b = hn_kb_new(ret->arena, "nonzero_any_serial__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    const hn_value *x = hn_in(r->root, 0);
    const int index = hn_loops_result(r, 0), total = hn_loops_result(r, 1);
    const hn_kv n = hn_kb_get(b, count(l, x));
    if (total >= 0) hn_kb_store(b, hn_lower_out(l, total), hn_kb_i(b, 0), n);
    if (index >= 0 && x->type.rank > 0) write(l, x, hn_lower_out(l, index), n);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_nonzero_any_serial__cpu = {
    .name = "nonzero_any_serial__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .portable = true,
    .fits = fits,
    .cost = cost,
    .emit = emit,
};
