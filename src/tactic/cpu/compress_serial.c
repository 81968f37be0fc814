/* The slices of x where a condition holds: count, then copy one after the other. A short condition drops the
 * rest. */
#include "tactic/cpu/slices.h"

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_compress) return HN_FIT_OP;
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_DTYPE;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)p;
    hn_work w;
    hn_region_work(r, &w);
    return hn_roofline_ns(t, 0, w.bytes, 1, 0.1) + 200;
}

static hn_kv holds(hn_lower *l, const hn_value *cond, hn_kv i)
{
    hn_kidx idx;
    hn_kidx_init(&idx, 1, &i);
    hn_lower_forget(l);
    const hn_kv c = hn_lower_value(l, cond, &idx, HN_KV_NONE);
    hn_lower_forget(l);
    return c;
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    (void)p;
    hn_kb *b = hn_kb_new(ret->arena, "compress_any_serial__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    hn_slices s;
    hn_slices_init(&s, l, r);
    const hn_value *cond = hn_in(r->root, 1);
    const int y = hn_loops_result(r, 0), total = hn_loops_result(r, 1);
    const hn_kv n = hn_kb_min(b, hn_lower_dim(l, cond->type.dim[0]), s.n);
    const hn_kvar count = hn_kb_var(b, hn_kb_i(b, 0)), k = hn_kb_var(b, hn_kb_i(b, 0));
    hn_kv i = hn_kb_forn(b, n);
    hn_kb_set(b, count, hn_kb_add(b, hn_kb_get(b, count), hn_kb_cast(b, holds(l, cond, i), HN_I64)));
    hn_kb_end(b);
    const hn_kv all = hn_kb_get(b, count);
    if (total >= 0) hn_kb_store(b, hn_lower_out(l, total), hn_kb_i(b, 0), all);
    if (y >= 0) {
        const int buf = hn_lower_out(l, y);
        i = hn_kb_forn(b, n);
        hn_kb_if(b, holds(l, cond, i));
        const hn_kv to = hn_kb_get(b, k);
        hn_slices_copy(&s, buf, all, i, to);
        hn_kb_set(b, k, hn_kb_addi(b, to, 1));
        hn_kb_end(b);
        hn_kb_end(b);
    }
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_compress_any_serial__cpu = {
    .name = "compress_any_serial__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .portable = true,
    .fits = fits,
    .cost = cost,
    .emit = emit,
};
