/* Constant masks that attention's own rule says as well. */
#include <math.h>

#include "pass/pass_test.h"

#define QKV "in q f32[2,2,3,4]  in k f32[2,2,3,4]  in v f32[2,2,3,5]\n"
#define LONG "in q f32[1,2,2,4]  in k f32[1,2,4,4]  in v f32[1,2,4,5]\n"
#define CAUSAL "const m f32[3,3] = {0,-inf,-inf,0,0,-inf,-0,0,0}\n"

/* Wherever the model's numbers are finite, ours are the same: a NaN at a hidden key may reach fewer rows. */
static void same_finite(hn_test *t, const hn_graph *a, const hn_graph *b, bool hostile, uint64_t seed)
{
    hn_rng r;
    hn_diag dg = { 0 };
    hn_tensor in[5] = { 0 }, x = { 0 }, y = { 0 };
    const hn_eval_opts opts = { .mode = HN_EVAL_F64 };
    hn_rng_init(&r, seed);
    for (int i = 0; i < a->n_in; i++) {
        const hn_tdesc d = hn_test_input_type(t, a, i, 1 + (int64_t)seed % 4);
        CHECK_OK(hn_tensor_init(&in[i], &d, &dg), &dg);
        hn_test_fill(&r, &in[i], hostile);
    }
    CHECK_OK(hn_eval_run(a, &opts, in, &x, &dg), &dg);
    CHECK_OK(hn_eval_run(b, &opts, in, &y, &dg), &dg);
    const int64_t n = hn_tensor_numel(&x);
    double *want = hn_arena_alloc(t->arena, (size_t)n, sizeof *want), *got = hn_arena_alloc(t->arena, (size_t)n, sizeof *got);
    hn_tensor_to_f64(&x, want);
    hn_tensor_to_f64(&y, got);
    for (int64_t i = 0; i < n; i++)
        if (!hostile || isfinite(want[i])) CHECK_NEAR(want[i], got[i], 1e-12 * (1 + fabs(want[i])));
    for (int i = 0; i < 5; i++) hn_tensor_done(&in[i]);
    hn_tensor_done(&x);
    hn_tensor_done(&y);
}

/* Fires, leaves attention with so many operands and that rule, and agrees on ordinary elements, or on hostile ones as well. */
static void agrees(hn_test *t, const char *text, int n_in, int64_t causal, bool hostile)
{
    hn_graph *g;
    const hn_node *found = NULL;
    hn_test_note("%s", text);
    const hn_graph *before = hn_test_graph(t, text);
    CHECK_EQ(hn_test_fires(t, "fold_mask", text, &g), 1);
    HN_FOR_NODES (n, g)
        if (n->op == HN_OP_attention) found = n;
    CHECK(found != NULL);
    CHECK_EQ(found->n_in, n_in);
    CHECK_EQ(hn_attr_i(found, "causal"), causal);
    for (uint64_t seed = 0; seed < 6; seed++) same_finite(t, before, g, hostile && seed % 2, seed);
}

static void folds(hn_test *t, const char *text, int n_in, int64_t causal)
{
    agrees(t, text, n_in, causal, /* hostile= */ true);
}

/* What hides by a finite number shows where scores are infinite, a guard where they are NaN. */
static void folds_ordinary(hn_test *t, const char *text, int n_in, int64_t causal)
{
    agrees(t, text, n_in, causal, /* hostile= */ false);
}

enum { NO_CAUSAL, UPPER_LEFT, LOWER_RIGHT };

TEST(masks_become_the_causal_rule)
{
    folds(t, QKV CAUSAL "y = attention(q, k, v, m)\nout y", 3, UPPER_LEFT);
    folds(t, QKV CAUSAL "y = attention(q, k, v, m) {causal=upper_left, rows=nan, softcap=2}\nout y", 3, UPPER_LEFT);
    folds_ordinary(t, QKV "const m f32[1,2,3,3] = {0,-1e4,-3e38,0,0,-inf,0,0,0, 0,-2e4,-1e9,0,0,-1e9,0,0,0}\ny = attention(q, k, v, m)\nout y", 3, UPPER_LEFT);
    folds(t, QKV "const m bool[3,3] = {1,0,0,1,1,0,1,1,1}\ny = attention(q, k, v, m)\nout y", 3, UPPER_LEFT);
    folds_ordinary(t, QKV "const m bool[3,3] = {1,0,0,1,1,0,1,1,1}\ny = attention(q, k, v, m) {hide=-65504}\nout y", 3, UPPER_LEFT);
    folds(t, LONG "const m f32[2,4] = {0,-inf,-inf,-inf,0,0,-inf,-inf}\ny = attention(q, k, v, m)\nout y", 3, UPPER_LEFT);
    folds(t, LONG "const m f32[2,4] = {0,0,0,-inf,0,0,0,0}\ny = attention(q, k, v, m)\nout y", 3, LOWER_RIGHT);
    folds(t, "in q f16[1,1,3,4]  in k f16[1,1,2,4]  in v f16[1,1,2,5]  const m f16[3,2] = {0,-inf,0,0,0,0}\ny = attention(q, k, v, m)\nout y", 3,
          UPPER_LEFT);
}

TEST(masks_that_hide_nothing_go)
{
    folds(t, QKV "const m f32[2,1,1,3] = {0,0,0,-0,0,0}\ny = attention(q, k, v, m)\nout y", 3, NO_CAUSAL);
    folds(t, QKV "const m f32[] = {0}\ny = attention(q, k, v, m) {causal=upper_left}\nout y", 3, UPPER_LEFT);
    folds(t, "sym s [1,3,64]\nin q f32[1,1,s,4]  in k f32[1,1,s,4]  in v f32[1,1,s,4]  const m bool[1] = {1}\ny = attention(q, k, v, m) {hide=5}\nout y", 3,
          NO_CAUSAL);
    folds(t, "in q f32[1,2,1,4]  in k f32[1,2,3,4]  in v f32[1,2,3,5]  const m f32[1,3] = {0,0,0}\ny = attention(q, k, v, m)\nout y", 3, NO_CAUSAL);
}

TEST(masks_keep_what_is_no_rule)
{
    folds(t, QKV CAUSAL "in x f32[2,1,1,3]\nz = add(m, x)\ny = attention(q, k, v, z)\nout y", 4, UPPER_LEFT);
    folds_ordinary(t, QKV CAUSAL "in x f32[3]\nz = add(x, m)\ny = attention(q, k, v, z) {rows=guard}\nout y", 4, UPPER_LEFT);
    folds(t, QKV "const m bool[3,3] = {1,0,0,1,1,0,1,1,1}\nin x bool[2,1,1,3]\nz = and(x, m)\ny = attention(q, k, v, z)\nout y", 4, UPPER_LEFT);
}

TEST(masks_stay)
{
    static const char *const text[] = {
        QKV "const m f32[3,3] = {0,-inf,-inf,0,0,-inf,0,0,0.5}\ny = attention(q, k, v, m)\nout y",
        QKV "const m f32[3,3] = {0,-inf,-inf,0,0,-9,0,0,0}\ny = attention(q, k, v, m)\nout y",
        QKV "const m f32[3,3] = {0,-inf,-inf,0,0,-inf,0,nan,0}\ny = attention(q, k, v, m)\nout y",
        QKV "const m f32[3,3] = {0,-inf,-inf,-inf,0,-inf,0,0,0}\ny = attention(q, k, v, m)\nout y",     /* a window */
        QKV "const m f32[3,3] = {-inf,-inf,-inf,0,-inf,-inf,0,0,-inf}\ny = attention(q, k, v, m)\nout y", /* the diagonal, too */
        QKV "const m f32[2,1,3,3] = {0,-inf,-inf,0,0,-inf,0,0,0, 0,-inf,-inf,0,0,-inf,0,0,-inf}\ny = attention(q, k, v, m)\nout y",
        QKV "const m bool[3,3] = {1,0,0,1,1,0,1,1,1}\ny = attention(q, k, v, m) {hide=-3}\nout y",
        /* what follows could hide all that this part shows */
        QKV "const m f32[3,3] = {0,-1e9,-1e9,0,0,-1e9,0,0,0}\nin x f32[3]\nz = add(m, x)\ny = attention(q, k, v, z)\nout y",
        QKV "const m bool[3,3] = {1,0,0,1,1,0,1,1,1}\nin x bool[3]\nz = and(m, x)\ny = attention(q, k, v, z) {hide=-1e9}\nout y",
        QKV CAUSAL "in x f32[3,3]\nz = mul(m, x)\ny = attention(q, k, v, z)\nout y",
        LONG "const m f32[2,4] = {0,0,0,-inf,0,0,0,0}\ny = attention(q, k, v, m) {causal=upper_left}\nout y",
        "in q f32[1,1,3,4]  in k f32[1,1,2,4]  in v f32[1,1,2,5]  const m f32[3,2] = {-inf,-inf,0,-inf,0,0}\ny = attention(q, k, v, m)\nout y",
        "in q f32[1,1,3,4]  in k f32[1,1,1,4]  in v f32[1,1,1,5]  const m f32[3,1] = {0,-inf,0}\ny = attention(q, k, v, m)\nout y",
    };
    hn_test_none_fires(t, "fold_mask", text, HN_COUNT(text));
}
