/* Evaluation and comparison through the public API. */
#include "api/api_int.h"
#include "eval/eval.h"

#include <stdlib.h>
#include <string.h>

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

void hone_tensor_free(hone_tensor *t)
{
    if (!t) return;
    free(t->data);
    t->data = NULL;
}

static bool eval_step(void *user, int done, int total)
{
    return hn_api_step(user, "evaluate", done, total);
}

static hone_status evaluate(hone_model *m, bool f64, const hone_tensor *in, hone_tensor *out, hn_api_progress *p, hn_diag *dg)
{
    hn_tensor *x = calloc((size_t)m->g->n_in + 1, sizeof *x), *y = calloc((size_t)m->g->n_out + 1, sizeof *y);
    hone_status s = x && y ? HONE_OK : HN_NOMEM(dg);
    for (int i = 0; s == HONE_OK && i < m->g->n_in; i++) hn_api_tensor(&in[i], &x[i]);
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
    hn_api_tensor(got, &g);
    hn_api_tensor(want, &w);
    if (hn_metric_compare(&g, &w, NULL, atol, rtol, &m, &dg) != HONE_OK) return hn_api_fail(err, &dg, NULL);
    *ret = (hone_difference){ .l0 = m.l0, .l1 = m.l1, .l2 = m.l2, .linf = m.linf, .cosine = m.cosine, .snr_db = m.snr_db,
                              .rel_l2 = m.rel_l2, .n = m.n, .n_nonfinite = m.n_nonfinite };
    return HONE_OK;
}
