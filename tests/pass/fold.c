/* Folding and merging of what the model says outright, and expansion. */
#include "pass/pass_test.h"

typedef struct row {
    const char *pass, *text;
    hn_op op; /* of which `left` must be left */
    int left;
    bool fires;
} row;

static void check(hn_test *t, const row *r, int n)
{
    for (int i = 0; i < n; i++) {
        hn_graph *g;
        hn_test_note("%s, row %d", r[i].pass, i);
        CHECK_EQ(hn_test_pass(t, r[i].pass, r[i].text, &g) > 0, r[i].fires);
        CHECK_EQ(hn_test_count_ops(g, r[i].op), r[i].left);
    }
}

TEST(constants)
{
    static const row rows[] = {
        { "fold_constants", "const a f32[2] = {1,2}  const b f32[2] = {3,4}  in x f32[2]\nc = add(a, b)\ny = mul(x, c)\nout y", HN_OP_add, 0, true },
        { "fold_constants", "in x f32[2,3]\nd = dims(x) {dim=[2,3]}\nout d", HN_OP_dims, 0, true },
        { "fold_constants", "const s f32[2] = {1,-2}\nm, i = topk(s) {axis=0, dim=1}\nout m\nout i", HN_OP_topk, 0, true },
        { "fold_constants", "sym n\nin x f32[n,3]\nd = dims(x) {dim=[n,3]}\nout d", HN_OP_dims, 1, false },
        { "fold_constants", "const a f32[1] = {2}\nb = broadcast(a) {dim=[100000]}\nout b", HN_OP_broadcast, 1, false },   /* would only grow */
        { "fold_constants", "r = random_uniform() {dtype=f32, dim=[3], seed=1}\ns = reduce_sum(r) {axes=[0]}\nconst z f32[1] = {0}\ny = mul(s, z)\nout y",
          HN_OP_random_uniform, 1, false },
    };
    check(t, rows, HN_COUNT(rows));
}

TEST(identities)
{
    static const row rows[] = {
        { "fold_identity", "in x f32[2,3]\na = reshape(x) {dim=[2,3]}\nb = transpose(a) {perm=[0,1]}\nc = cast(b) {to=f32}\ny = neg(c)\nout y", HN_OP_cast, 0, true },
        { "fold_identity", "in x f32[3]\na = slice(x) {start=[0], step=[1], dim=[3]}\nb = pad(a) {before=[0], after=[0]}\nc = concat(b) {axis=0}\ny = neg(c)\nout y",
          HN_OP_concat, 0, true },
        { "fold_identity", "in x f32[3]\ny = slice(x) {start=[2], step=[-1], dim=[3]}\nout y", HN_OP_slice, 1, false },
        { "fold_identity", "in x f32[3]\ny = pad(x) {before=[1], after=[-1]}\nout y", HN_OP_pad, 1, false },
        { "fold_identity", "in x f32[2,2]\ny = transpose(x) {perm=[1,0]}\nout y", HN_OP_transpose, 1, false },
        { "fold_identity", "in x f32[2,3]\ny = cast(x) {to=f16}\nout y", HN_OP_cast, 1, false },
    };
    check(t, rows, HN_COUNT(rows));
}

TEST(equals)
{
    static const row rows[] = {
        { "merge_equal", "in x f32[2]\na = exp(x)\nb = exp(x)\ny = add(a, b)\nout y", HN_OP_exp, 1, true },
        { "merge_equal", "in x f32[2]  const p f32[2] = {1,2}  const q f32[2] = {1,2}\na = mul(x, p)\nb = mul(x, q)\ny = add(a, b)\nout y", HN_OP_mul, 1, true },
        { "merge_equal", "in x f32[2,2]\na = transpose(x) {perm=[1,0]}\nb = reshape(x) {dim=[4]}\nout a\nout b", HN_OP_transpose, 1, false },
        { "merge_equal", "in x f32[2]  const p f32[2] = {1,2}  in q i32[2]\na = mul(x, p)\nb = cast(q) {to=f32}\ny = add(a, b)\nout y", HN_OP_mul, 1, false },
        { "merge_equal", "a = random_uniform() {dtype=f32, dim=[3], seed=1}\nb = random_uniform() {dtype=f32, dim=[3], seed=1}\ny = sub(a, b)\nout y",
          HN_OP_random_uniform, 2, false },
    };
    check(t, rows, HN_COUNT(rows));
}

TEST(branches)
{
    static const row rows[] = {
        { "fold_if", "in x f32[4]  const c bool = {1}\ny = if(c) { a = relu(x)  out a } { out x }\nz = neg(y)\nout z", HN_OP_if, 0, true },
        { "fold_if", "in x f32[4]  const c bool = {0}\ny = if(c) { a = relu(x)  out a } { const k f32 = {2}  b = mul(x, k)  out b }\nout y", HN_OP_mul, 1, true },
        { "fold_if", "in c bool  in x f32[4]\ny = if(c) { a = relu(x)  out a } { out x }\nout y", HN_OP_if, 1, false },
    };
    check(t, rows, HN_COUNT(rows));
}

TEST(expansions)
{
    static const row rows[] = {
        { "expand_composites", "in x f32[4]\ny = silu(x)\nout y", HN_OP_silu, 0, true },
        { "expand_composites", "in x f32[2,3,4]\ny = reduce_mean(x) {axes=[1]}\nz = softmax(y) {axis=2}\nout z", HN_OP_softmax, 0, true },
        { "expand_composites", "in x f32[4]\ny = sigmoid(x)\nout y", HN_OP_sigmoid, 1, false },
    };
    check(t, rows, HN_COUNT(rows));
}

TEST(unread_results)
{
    static const row rows[] = {
        { "drop_outputs", "in x f32[1,1,4]\ny, i = max_pool(x) {kernel=[2], stride=[2], dim=[2]}\nout y", HN_OP_max_pool, 1, true },
        { "drop_outputs", "in x f32[3,4]\ny, m, s = layer_norm(x) {axis=1}\nz = add(y, m)\nout z", HN_OP_layer_norm, 1, true },
        { "drop_outputs", "in x f32[1,1,4]\ny, i = max_pool(x) {kernel=[2], stride=[2], dim=[2]}\nout y\nout i", HN_OP_max_pool, 1, false },
        { "drop_outputs", "in x f32[3,4]\ny, m, s = layer_norm(x) {axis=1}\nz = add(y, s)\nout z", HN_OP_layer_norm, 1, false }, /* the last is read */
        { "drop_outputs", "in x f32[6]\nv, i = topk(x) {axis=0, dim=2}\nout v", HN_OP_topk, 1, false },
    };
    check(t, rows, HN_COUNT(rows));
}
