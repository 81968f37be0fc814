/* Evaluation and comparison through the public API. */
#include "api/api_int.h"
#include "eval/eval.h"

#include <stdio.h>
#include <stdlib.h>

hone_status hn_api_tensor_check(const hone_tensor *t, const char *what, hn_diag *dg)
{
    int64_t n = 1;
    bool fits = t && t->dtype > 0 && (int)t->dtype < HN_NDTYPES && t->rank >= 0 && t->rank <= HN_MAX_RANK;
    for (int i = 0; fits && i < t->rank; i++) fits = t->dim[i] >= 0 && !__builtin_mul_overflow(n, t->dim[i], &n);
    if (!fits) return HN_RAISE(dg, HONE_E_INVALID, "%s is no tensor: its type, rank or extents make no sense", what);
    if (hn_dtype_bytes((hn_dtype)t->dtype, n) != (int64_t)t->bytes)
        return HN_RAISE(dg, HONE_E_INVALID, "%s has %zu bytes, its shape takes %lld", what, t->bytes,
                        (long long)hn_dtype_bytes((hn_dtype)t->dtype, n));
    if (!t->data && t->bytes) return HN_RAISE(dg, HONE_E_INVALID, "%s has no data", what);
    return HONE_OK;
}

void hn_api_tensor(const hone_tensor *t, hn_tensor *ret)
{
    *ret = (hn_tensor){ .kind = HN_TENSOR, .data = t->data, .bytes = t->bytes };
    ret->type.dtype = (hn_dtype)t->dtype;
    ret->type.rank = t->rank;
    for (int i = 0; i < t->rank && i < HN_MAX_RANK; i++) ret->type.dim[i] = t->dim[i];
}

static void to_public(hn_tensor *t, hone_tensor *ret)
{
    *ret = (hone_tensor){ .dtype = (hone_dtype)t->type.dtype, .rank = t->type.rank, .data = t->data, .bytes = t->bytes };
    for (int i = 0; i < t->type.rank; i++) ret->dim[i] = t->type.dim[i];
    t->owned = false; /* the caller's now */
}

static bool eval_step(void *user, int done, int total)
{
    return hn_api_step(user, "evaluate", done, total);
}

static hone_status evaluate(hone_model *m, bool f64, const hone_tensor *in, hone_tensor *out, hn_api_progress *p, hn_diag *dg)
{
    hn_tensor *x = calloc((size_t)m->g->n_in + 1, sizeof *x), *y = calloc((size_t)m->g->n_out + 1, sizeof *y);
    hone_status s = x && y ? HONE_OK : HN_NOMEM(dg);
    for (int i = 0; s == HONE_OK && i < m->g->n_in; i++) {
        char what[512];
        snprintf(what, sizeof what, "input \"%s\"", m->g->in[i]->name);
        s = hn_api_tensor_check(&in[i], what, dg);
        hn_api_tensor(&in[i], &x[i]);
    }
    for (int i = 0; s == HONE_OK && i < m->g->n_out; i++)
        if (m->g->out[i].value->kind != HN_TENSOR)
            s = HN_RAISE(dg, HONE_E_UNSUPPORTED, "output \"%s\" is no tensor", m->g->out_name[i]);
    const hn_eval_opts o = { .mode = f64 ? HN_EVAL_F64 : HN_EVAL_OWN, .progress = eval_step, .user = p };
    if (s == HONE_OK) s = hn_eval_run(m->g, &o, x, y, dg);
    for (int i = 0; s == HONE_OK && i < m->g->n_out; i++) to_public(&y[i], &out[i]);
    free(x);
    free(y);
    return s;
}

hone_status hone_model_evaluate(hone_model *m, bool f64, const hone_tensor *in, hone_tensor *out, hone_progress_fn progress,
                                void *user, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!m || (!in && m->g->n_in) || !out) return hn_api_misuse(err, "a model, its inputs and room for its outputs are needed");
    hn_api_progress p = { progress, user, hn_now_ns() };
    const hone_status s = evaluate(m, f64, in, out, &p, &dg);
    return s == HONE_OK ? s : hn_api_fail(err, &dg, NULL);
}

hone_status hone_compare(const hone_tensor *got, const hone_tensor *want, double atol, double rtol, hone_difference *ret,
                         hone_error **err)
{
    hn_diag dg = { 0 };
    hn_tensor g, w;
    hn_metric m;
    if (!got || !want || !ret) return hn_api_misuse(err, "two tensors and a place for the result are needed");
    if (hn_api_tensor_check(got, "the first tensor", &dg) || hn_api_tensor_check(want, "the second tensor", &dg))
        return hn_api_fail(err, &dg, NULL);
    hn_api_tensor(got, &g);
    hn_api_tensor(want, &w);
    if (hn_metric_compare(&g, &w, NULL, atol, rtol, &m, &dg) != HONE_OK) return hn_api_fail(err, &dg, NULL);
    *ret = (hone_difference){ .l0 = m.l0, .l1 = m.l1, .l2 = m.l2, .linf = m.linf, .cosine = m.cosine, .snr_db = m.snr_db,
                              .rel_l2 = m.rel_l2, .n = m.n, .n_nonfinite = m.n_nonfinite };
    return HONE_OK;
}
