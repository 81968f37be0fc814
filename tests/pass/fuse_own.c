/* What passes recognise, in the model's own types: fused and spelled-out graphs agree on ordinary and on hostile elements. */
#include "eval/eval.h"
#include "pass/pass_test.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 6 };

/* Odd rounds put zeros, infinities, NaN and subnormals in. Large finite elements are left out: squares of theirs overflow in
 * f16 where the op, which computes in f32, does not. */
static void fill(hn_rng *r, hn_tensor *x, int round)
{
    static const double odd[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-7 };
    for (int64_t i = 0; i < hn_tensor_numel(x); i++) {
        double v = (double)hn_rng_below(r, 4001) / 1000 - 2;
        if (round % 2 && hn_rng_below(r, 16) == 0) v = odd[hn_rng_below(r, HN_COUNT(odd))];
        if (hn_dtype_is_float(x->type.dtype)) hn_narrow_f64(x->type.dtype, &v, 1, x->data, i, false);
        else hn_narrow_i64(x->type.dtype, &(int64_t){ v > 0 }, 1, x->data, i);
    }
}

/* Spelled out, each of some ten ops rounds by u, and sums of a line by a few more; results stand within [-8, 8]. */
static double bound(hn_dtype t)
{
    const double u = t == HN_F32 ? 0x1p-24 : t == HN_F16 ? 0x1p-11 : 0x1p-8;
    return 64 * u;
}

static void compare(const hn_tensor *a, const hn_tensor *b, hn_arena *arena)
{
    const int64_t n = hn_tensor_numel(a);
    double *x = hn_arena_alloc(arena, (size_t)n + 1, sizeof *x), *y = hn_arena_alloc(arena, (size_t)n + 1, sizeof *y);
    hn_tensor_to_f64(a, x);
    hn_tensor_to_f64(b, y);
    for (int64_t i = 0; i < n; i++) CHECK_NEAR(x[i], y[i], isfinite(x[i]) ? bound(a->type.dtype) : 0);
}

static void agree(hn_test *t, const char *pass, const char *text)
{
    hn_graph *fused;
    const hn_graph *plain = hn_test_graph(t, text);
    hn_diag dg = { 0 };
    hn_rng r;
    hn_test_note("%s", text);
    CHECK(hn_test_fires(t, pass, text, &fused) > 0);
    hn_rng_init(&r, 99);
    for (int round = 0; round < ROUNDS; round++) {
        hn_tensor in[8] = { 0 }, x = { 0 }, y = { 0 };
        for (int i = 0; i < plain->n_in; i++) {
            CHECK_OK(hn_tensor_init(&in[i], &plain->in[i]->type, &dg), &dg);
            fill(&r, &in[i], round);
        }
        const hn_eval_opts o = { .mode = HN_EVAL_OWN };
        CHECK_OK(hn_eval_run(plain, &o, in, &x, &dg), &dg);
        CHECK_OK(hn_eval_run(fused, &o, in, &y, &dg), &dg);
        compare(&x, &y, t->arena);
        for (int i = 0; i < 8; i++) hn_tensor_done(&in[i]);
        hn_tensor_done(&x);
        hn_tensor_done(&y);
    }
}

/* The text once per dtype, which stands in it as $. */
static void in_every_type(hn_test *t, const char *pass, const char *text)
{
    static const char *const type[] = { "f32", "f16", "bf16" };
    for (int i = 0; i < HN_COUNT(type); i++) {
        char *s = hn_arena_alloc(t->arena, 4 * strlen(text) + 1, 1), *to = s;
        for (const char *c = text; *c; c++) {
            if (*c == '$') to = stpcpy(to, type[i]);
            else *to++ = *c;
        }
        *to = 0;
        agree(t, pass, s);
    }
}

TEST(fused_norms_agree_in_every_type)
{
    in_every_type(t, "fuse_layer_norm", "in x $[6,16]  in w $[16]  in b $[16]  const two f32[] = {2}  const e $[] = {0.1}\n"
                  "m = reduce_mean(x) {axes=[1]}\nd = sub(x, m)\nq = pow(d, two)\nv = reduce_mean(q) {axes=[1]}\nve = add(v, e)\n"
                  "s = sqrt(ve)\ny = div(d, s)\nz = mul(y, w)\no = add(z, b)\nout o");
    in_every_type(t, "fuse_rms_norm", "in x $[6,16]  in w $[16]  const e $[] = {0.1}\n"
                  "q = mul(x, x)\nv = reduce_mean(q) {axes=[1]}\nve = add(v, e)\ns = sqrt(ve)\ni = reciprocal(s)\ny = mul(x, i)\nz = mul(w, y)\nout z");
    /* an eps that drowns the mean */
    in_every_type(t, "fuse_rms_norm", "in x $[6,16]  const e $[] = {30000}\n"
                  "q = mul(x, x)\nv = reduce_mean(q) {axes=[1]}\nve = add(v, e)\ns = sqrt(ve)\ny = div(x, s)\nout y");
}

TEST(fused_pointwise_work_agrees_in_every_type)
{
    in_every_type(t, "fuse_gelu", "in x $[90]  const r $[] = {1.41421356}  const h $[] = {0.5}  const one $[] = {1}\n"
                  "d = div(x, r)\ne = erf(d)\na = add(e, one)\nm = mul(x, a)\ny = mul(m, h)\nout y");
    in_every_type(t, "fuse_gelu", "in x $[90]  const c $[] = {0.79788456}  const k $[] = {0.044715}  const h $[] = {0.5}  const one $[] = {1}\n"
                  "p2 = mul(x, x)\np = mul(x, p2)\nq = mul(k, p)\ns = add(q, x)\nu = mul(c, s)\ne = tanh(u)\na = add(one, e)\nm = mul(h, a)\ny = mul(x, m)\nout y");
    in_every_type(t, "fuse_silu", "in x $[90]\ns = sigmoid(x)\ny = mul(x, s)\nout y");
    in_every_type(t, "fuse_silu", "in x $[90]\np = softplus(x)\ns = tanh(p)\ny = mul(x, s)\nout y");
}

TEST(fused_rotary_agrees_in_every_type)
{
    in_every_type(t, "fuse_rotary", "in x $[2,3,4,6]  in f $[2,1,4,3]\na = concat(f, f) {axis=3}  c = cos(a)  s = sin(a)\n"
                  "h = slice(x) {start=[0,0,0,3], step=[1,1,1,1], dim=[2,3,4,3]}  g = neg(h)\n"
                  "l = slice(x) {start=[0,0,0,0], step=[1,1,1,1], dim=[2,3,4,3]}  j = concat(g, l) {axis=3}\n"
                  "p = mul(x, c)  q = mul(j, s)  y = add(p, q)\nout y");
}

TEST(fused_softmax_agrees_in_every_type)
{
    in_every_type(t, "fuse_softmax", "in x $[9,5]\nm = reduce_max(x) {axes=[1]}\nd = sub(x, m)\ne = exp(d)\ns = reduce_sum(e) {axes=[1]}\n"
                  "y = div(e, s)\nout y");
    in_every_type(t, "fuse_softmax", "in x $[9,5]\nm = reduce_max(x) {axes=[1]}\nd = sub(x, m)\ne = exp(d)\ns = reduce_sum(e) {axes=[1]}\n"
                  "l = log(s)\ny = sub(d, l)\nout y");
}

TEST(fused_attention_agrees_in_every_type)
{
#define QKV "in q $[2,3,5,4]  in k $[2,3,6,4]  in v $[2,3,6,7]  const a $[] = {0.5}\n"
    in_every_type(t, "fuse_attention", QKV "in m $[5,6]\ns = matmul(q, k) {trans_b=1}\nsa = mul(s, a)\nz = add(sa, m)\nw = softmax(z)\n"
                  "y = matmul(w, v)\nout y");
    in_every_type(t, "fuse_attention", QKV "const low $[] = {-inf}\nin c bool[5,6]\ns = matmul(q, k) {trans_b=1}\nz = select(c, s, low)\n"
                  "w = softmax(z)\ny = matmul(w, v)\nout y");
    /* every key hidden, in one row, and by a finite number */
    in_every_type(t, "fuse_attention", QKV "const zero $[] = {0}\nconst m $[2,6] = {-inf,-inf,-inf,-inf,-inf,-inf,0,0,0,0,0,0}\n"
                  "in x $[2,3,2,4]\ns = matmul(x, k) {trans_b=1}\nz = add(s, m)\nw = softmax(z)\nn = is_nan(w)\ng = select(n, zero, w)\n"
                  "y = matmul(g, v)\nout y");
    in_every_type(t, "fuse_attention", QKV "const low $[] = {-60000}\nconst c bool[5,6] = {0,0,0,0,0,0,1,0,0,0,0,0,1,1,1,1,1,1,0,0,0,0,0,0,0,1,0,1,0,1}\n"
                  "s = matmul(q, k) {trans_b=1}\nz = select(c, s, low)\nw = softmax(z)\ny = matmul(w, v)\nout y");
}
