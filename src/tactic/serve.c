/* One tactic, several architectures: plain loops in the form that the target runs. */
#include "tactic/tactic.h"

/* Copies of scratch: a few blocks of 64 threads for each multiprocessor. */
enum { SCRATCH_THREADS_A_CORE = 256 };

bool hn_tactic_knows(const hn_tactic_def *td, hn_arch arch)
{
    return td->arch == arch || (td->portable && arch == HN_ARCH_SM);
}

bool hn_tactic_serves(const hn_tactic_def *td, const hn_target *t)
{
    return hn_tactic_knows(td, t->arch) && hn_target_has(t, td->needs);
}

int hn_kcall_n_buf(const hn_kcall *k)
{
    return k->call ? (int)k->call->n_buf : hn_kfunc_n_params(&k->func);
}

/* ceil((mul * arg[a] * arg[b] + add) / div) over the region's dims. */
static hn_dim extent_dim(const hn_region *r, const hn_kcall *k, const hn_kext *e)
{
    hn_symtab *t = r->g->syms;
    hn_dim d = hn_dim_const(t, e->mul);

    if (e->a >= 0) d = hn_dim_mul(t, d, k->arg[e->a]);
    if (e->b >= 0) d = hn_dim_mul(t, d, k->arg[e->b]);
    d = hn_dim_add(t, d, hn_dim_const(t, e->add));
    return e->div > 1 ? hn_dim_ceildiv(t, d, e->div) : d;
}

/* Add a temporary a scratch buffer, and name it behind the call's own operands. */
static hone_status add_temps(const hn_region *r, hn_emission *e, hn_kcall *k, const hn_kgrid *g, hn_diag *dg)
{
    const int n = hn_kfunc_n_params(&k->func);
    hn_ref *buf = HN_NEW_N(e->arena, hn_ref, n + g->n_scratch + 1);

    if (!buf) return HN_NOMEM(dg);
    for (int i = 0; i < n; i++)
        buf[i] = k->buf[i];
    for (int i = 0; i < g->n_scratch; i++) {
        const hn_kgrid_scratch *s = &g->scratch[i];
        const int64_t bytes = s->copies * (hn_dtype_bits(s->dtype) / 8);
        hn_symtab *t = r->g->syms;
        const hn_dim size = hn_dim_mul(t, extent_dim(r, k, &s->elems), hn_dim_const(t, bytes));
        buf[n + i] = (hn_ref){ HN_REF_TEMP, e->temp_bytes.n };
        if (!hn_vec_push(e->arena, &e->temp_bytes, size)) return HN_NOMEM(dg);
    }
    k->buf = buf;
    return HONE_OK;
}

hone_status hn_tactic_emit(const hn_tactic_def *td, const hn_region *r, const hn_target *t, const int64_t *p,
                           hn_emission *ret, hn_diag *dg)
{
    HN_TRY(td->emit(r, t, p, ret, dg));
    if (t->arch != HN_ARCH_SM) return HONE_OK;
    for (int i = 0; i < ret->launches.n; i++) {
        hn_kcall *k = &ret->launches.at[i];
        hn_kgrid g;
        if (k->call || hn_kfunc_is_gpu(&k->func)) continue;
        HN_TRY(hn_kfunc_to_grid(ret->arena, &k->func, (int64_t)t->n_core * SCRATCH_THREADS_A_CORE, &g, dg));
        HN_TRY(add_temps(r, ret, k, &g, dg));
        k->func = g.func;
    }
    return HONE_OK;
}
