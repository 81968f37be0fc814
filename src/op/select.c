/* select and clip. */
#include "op/op_int.h"

/* ---- select(cond, a, b): cond ? a : b, broadcast ---- */
static hone_status infer_select(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_dtype(c, 0, HN_BOOL, dg));
    HN_TRY(hn_op_want_same(c, 1, 2, dg));
    c->out[0].dtype = c->in[1].dtype;
    return hn_op_want_broadcast(c, 3, &c->out[0], dg);
}

static hone_status ref_select(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    hn_walk w;
    (void)c, (void)dg;

    hn_walk_init(&w, &out[0].type);
    for (int k = 0; k < 3; k++)
        hn_walk_add(&w, &in[k].type);
    while (hn_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            const int k = in[0].i[w.at[0] + i * w.step[0]] ? 1 : 2;
            out[0].i[w.pos + i] = in[k].i[w.at[k] + i * w.step[k]]; /* bits move: floats too */
        }
    return HONE_OK;
}

static bool content_select(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    hn_dim v[3][64];
    int n[3], most = -1;

    if (out != 0 || c->out[0].rank > 1) return false;
    for (int k = 0; k < 3; k++) {
        if (!hn_op_content(c, k, v[k], &n[k])) return false;
        if (most < 0 || most == 1)
            most = n[k];
        else if (n[k] != 1 && n[k] != most)
            return false;
    }
    *ret_n = most;
    for (int i = 0; i < most; i++)
        ret[i] =
            hn_dim_select(c->syms, v[0][n[0] == 1 ? 0 : i], v[1][n[1] == 1 ? 0 : i], v[2][n[2] == 1 ? 0 : i]);
    return true;
}

const hn_op_def hn_op_select = {
    HN_OP_ID(select, 3, 3, 1, 1), .doc = "cond ? a : b",     .traits = HN_TRAIT_PURE | HN_TRAIT_POINTWISE,
    .infer = infer_select,        .content = content_select, .ref = ref_select,
    .work = hn_op_work_pointwise,
};

/* ---- clip(x, lo?, hi?) ---- */
static hone_status infer_clip(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_number(c, 0, dg));
    for (int k = 1; k < 3; k++) {
        if (!hn_op_has(c, k)) continue;
        HN_TRY(hn_op_want_same(c, 0, k, dg));
        HN_TRY(hn_op_want_scalar(c, k, dg));
    }
    c->out[0] = c->in[0];
    return HONE_OK;
}

static double clip_f(double x, const double *lo, const double *hi)
{
    if (isnan(x)) return x;
    if (lo && (x < *lo || isnan(*lo))) x = *lo;
    if (hi && (x > *hi || isnan(*hi))) x = *hi;
    return x;
}

static int64_t clip_i(hn_dtype t, int64_t x, const int64_t *lo, const int64_t *hi)
{
    if (lo && hn_op_cmp_i(t, x, *lo) < 0) x = *lo;
    if (hi && hn_op_cmp_i(t, x, *hi) > 0) x = *hi;
    return x;
}

static hone_status ref_clip(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_dtype t = in[0].type.dtype;
    const bool lo = hn_op_has(c, 1), hi = hn_op_has(c, 2);
    (void)dg;

    if (hn_dtype_is_float(t))
        for (int64_t i = 0; i < out[0].numel; i++)
            out[0].f[i] = clip_f(in[0].f[i], lo ? in[1].f : NULL, hi ? in[2].f : NULL);
    else
        for (int64_t i = 0; i < out[0].numel; i++)
            out[0].i[i] = clip_i(t, in[0].i[i], lo ? in[1].i : NULL, hi ? in[2].i : NULL);
    return HONE_OK;
}

const hn_op_def hn_op_clip = {
    HN_OP_ID(clip, 1, 3, 1, 1),
    .doc = "min(max(x, lo), hi); NaN propagates, lo > hi gives hi",
    .traits = HN_TRAIT_PURE | HN_TRAIT_POINTWISE | HN_TRAIT_INPLACE,
    .infer = infer_clip,
    .ref = ref_clip,
    .work = hn_op_work_pointwise,
};
