/* Rewrites of one or two nodes, as tables: where each fires and what is left, and where it must not. */
#include "pass/pass_test.h"

typedef struct fires {
    const char *pass, *text;
    hn_op op; /* of which `left` nodes must be left */
    int left;
} fires;

static void check_fires(hn_test *t, const fires *row, int n)
{
    for (int i = 0; i < n; i++) {
        hn_graph *g;
        hn_test_note("%s, row %d", row[i].pass, i);
        CHECK(hn_test_pass(t, row[i].pass, row[i].text, &g) > 0);
        CHECK_EQ(hn_test_count_ops(g, row[i].op), row[i].left);
    }
}

typedef struct refuses {
    const char *pass, *text;
} refuses;

static void check_refuses(hn_test *t, const refuses *row, int n)
{
    for (int i = 0; i < n; i++) {
        hn_graph *g;
        hn_test_note("%s, row %d", row[i].pass, i);
        CHECK_EQ(hn_test_pass(t, row[i].pass, row[i].text, &g), 0);
    }
}

TEST(views_fire)
{
    static const fires rows[] = {
        { "merge_reshape", "in x f32[2,6]\na = reshape(x) {dim=[3,4]}\ny = reshape(a) {dim=[12]}\nout y", HN_OP_reshape, 1 },
        { "merge_reshape", "in x f32[2,6]\na = reshape(x) {dim=[3,4]}\ny = reshape(a) {dim=[2,6]}\nz = neg(y)\nout z", HN_OP_reshape, 0 },
        { "merge_reshape", "sym n\nin x f32[n,1,4]\ny = transpose(x) {perm=[1,0,2]}\nout y", HN_OP_transpose, 0 },
        { "merge_cast", "in x i32[5]\na = cast(x) {to=i64}\ny = cast(a) {to=f32}\nout y", HN_OP_cast, 1 },
        { "merge_cast", "in x f16[5]\na = cast(x) {to=f32}\ny = cast(a) {to=f16}\nz = neg(y)\nout z", HN_OP_cast, 0 },
        { "merge_cast", "in x i8[5]\na = cast(x) {to=i64}\ny = cast(a) {to=u8}\nout y", HN_OP_cast, 1 },
        { "merge_slice", "in x f32[20,3]\na = slice(x) {start=[3,0], step=[2,1], dim=[8,3]}\n"
                         "y = slice(a) {start=[6,1], step=[-3,1], dim=[3,2]}\nout y", HN_OP_slice, 1 },
        { "merge_slice", "sym n [8,8,9]\nin x f32[n]\na = slice(x) {start=[n-5], step=[1], dim=[5]}\n"
                         "y = slice(a) {start=[1], step=[2], dim=[2]}\nout y", HN_OP_slice, 1 },
        { "slice_gather", "in x f32[3,9]\nconst i i64[3] = {2,4,6}\ny = gather(x, i) {axis=1}\nout y", HN_OP_gather, 0 },
        { "slice_gather", "in x f32[3,9]\nconst i i64[] = {-1}\ny = gather(x, i) {axis=1}\nout y", HN_OP_gather, 0 },
        { "slice_gather", "in x f32[9]\nconst i i64[2,2] = {3,2,1,0}\ny = gather(x, i) {axis=0}\nout y", HN_OP_gather, 0 },
        { "slice_gather", "sym n [2,3,9]\nin x f32[n,2]\nconst i i64[2] = {-2,-1}\ny = gather(x, i) {axis=0}\nout y", HN_OP_gather, 0 },
        { "merge_concat", "in a f32[2]  in b f32[3]  in c f32[1]\nd = concat(a, b) {axis=0}\ny = concat(d, c) {axis=0}\nout y", HN_OP_concat, 1 },
        { "merge_concat", "in a f32[2,3]  in e f32[2,0]\ny = concat(a, e) {axis=1}\nz = neg(y)\nout z", HN_OP_concat, 0 },
        { "merge_concat", "sym n\nin x f32[n,5]\na = slice(x) {start=[0,0], step=[1,1], dim=[n,2]}\n"
                          "b = slice(x) {start=[0,2], step=[1,1], dim=[n,3]}\ny = concat(a, b) {axis=1}\nz = neg(y)\nout z", HN_OP_concat, 0 },
        { "slice_concat", "in a f32[2,2]  in b f32[2,3]\nc = concat(a, b) {axis=1}\n"
                          "y = slice(c) {start=[0,3], step=[1,1], dim=[2,2]}\nout y", HN_OP_concat, 0 },
        { "slice_concat", "sym n\nin a f32[n]  in b f32[n]\nc = concat(a, b) {axis=0}\n"
                          "y = slice(c) {start=[n], step=[1], dim=[n]}\nz = neg(y)\nout z", HN_OP_slice, 0 },
        { "copy_sizes", "sym n\nin x f32[3,n]  in z f32[2,n]\nd = dims() {dim=[n]}\nk = cast(d) {to=f32}\na = reduce_sum(x) {axes=[1]}\nb = reduce_sum(z) {axes=[1]}\n"
                        "p = div(a, k)\nq = div(b, k)\nout p\nout q", HN_OP_cast, 2 },
        { "swap_concat", "in a f32[2,1]  in b f32[2,2]  in c f32[2,1]  in d f32[2,2]  in e f32[2,1]\n"
                         "p = concat(a, b) {axis=1}\nq = concat(c, d) {axis=1}\nr = concat(e, b) {axis=1}\ny = concat(p, q, r) {axis=0}\nout y", HN_OP_concat, 3 },
        { "hoist_reshape", "sym n\nin x f32[1,n]  const w f32[2,1,1,1]\np = pad(x) {before=[0,1], after=[0,2]}\nr = reshape(p) {dim=[1,1,1,n+3]}\n"
                           "y = conv(r, w) {stride=[1,1], dilation=[1,1], pad_begin=[0,0], pad_end=[0,0]}\nout y", HN_OP_pad, 1 },
        { "hoist_reshape", "in x f32[2,1,3,4]  const w f32[2,3,1]\np = pad(x) {before=[0,0,0,1], after=[0,0,0,0]}\nr = reshape(p) {dim=[2,3,5]}\n"
                           "y = conv(r, w) {stride=[1], dilation=[1], pad_begin=[0], pad_end=[0]}\nout y", HN_OP_reshape, 1 },
        { "merge_broadcast", "in x f32[1,3]\nb = broadcast(x) {dim=[2,6,3]}\ny = slice(b) {start=[1,4,0], step=[1,-1,1], dim=[1,4,3]}\nout y", HN_OP_slice, 0 },
        { "merge_broadcast", "sym n\nin x f32[1,3]  in z f32[n]\nb = broadcast(x) {dim=[n,3]}\ny = broadcast(b) {dim=[2,n,3]}\nout y", HN_OP_broadcast, 1 },
        { "merge_broadcast", "in x f32[1]\nb = broadcast(x) {dim=[2,6]}\nr = reshape(b) {dim=[3,4]}\ny = transpose(r) {perm=[1,0]}\nout y", HN_OP_transpose, 0 },
        { "drop_zero_state", "sym n [1,2,4]\nin x f32[3,n,2]  const w f32[1,8,2]  const r f32[1,8,2]  const z f32[] = {0}\n"
                             "h = broadcast(z) {dim=[1,n,2]}\ny, yh, yc = lstm(x, w, r, _, _, h, h) {hidden=2}\nout y", HN_OP_broadcast, 0 },
        { "regroup_transpose", "sym s\nsym b\nin x f32[s,2,b,3]\nt = transpose(x) {perm=[0,2,1,3]}\nr = reshape(t) {dim=[s,b,6]}\ny = transpose(r) {perm=[1,0,2]}\nout y",
          HN_OP_transpose, 1 },
        { "regroup_transpose", "in x f32[4,6,3]\nt = transpose(x) {perm=[2,0,1]}\nr = reshape(t) {dim=[3,2,2,6]}\ny = transpose(r) {perm=[2,3,1,0]}\nout y", HN_OP_transpose, 1 },
        { "regroup_transpose", "in x f32[6,4,3]\nt = transpose(x) {perm=[1,0,2]}\nr = reshape(t) {dim=[2,2,18]}\ny = transpose(r) {perm=[2,0,1]}\nz = neg(y)\nout z", HN_OP_transpose, 1 },
        { "fold_unit_axes", "in x f32[3,1,2]\ny = reduce_max(x) {axes=[1], keepdims=0}\nout y", HN_OP_reduce_max, 0 },
        { "fold_unit_axes", "in x f32[3,1,2]\ny = reduce_sum(x) {axes=[1], keepdims=1}\nz = neg(y)\nout z", HN_OP_reduce_sum, 0 },
        { "drop_broadcast", "in x f32[4]  in z f32[3,4]\nb = broadcast(x) {dim=[3,4]}\ny = add(b, z)\nout y", HN_OP_broadcast, 0 },
        { "drop_broadcast", "sym n\nin x f32[1]  in z f32[n]\nb = reshape(x) {dim=[]}\ny = mul(z, b)\nout y", HN_OP_reshape, 0 },
        { "drop_broadcast", "in a f32[2,3,4]  in w f32[4,5]\nb = broadcast(w) {dim=[2,4,5]}\ny = matmul(a, b)\nout y", HN_OP_broadcast, 0 },
        { "fold_dims", "sym n\nin x f32[n,3]\nd = dims(x) {dim=[n,3]}\nconst i i64[1] = {0}\ne = gather(d, i) {axis=0}\nc = concat(e, i) {axis=0}\nout c", HN_OP_concat, 0 },
    };
    check_fires(t, rows, HN_COUNT(rows));
}

TEST(indices_are_proved)
{
    static const char table[] = "const t f32[9,4]\n";
    static const struct {
        const char *text;
        bool fires;
    } rows[] = {
        { "in x f32[2,9]\ni = arg_max(x) {axis=1, keepdims=0}\ny = gather(t, i)\nout y", true },
        { "in x f32[2,10]\ni = arg_max(x) {axis=1, keepdims=0}\ny = gather(t, i)\nout y", false },
        { "in x f32[2,9]\nv, i = topk(x) {axis=1, dim=3}\ny = gather(t, i)\nout y", true },
        { "in x f32[2,9]\nv, i = topk(x) {axis=0, dim=1}\nj = cast(i) {to=i32}  k = reshape(j) {dim=[3,3]}\ny = gather(t, k)\nout y", true },
        { "in i i64[2]\ny = gather(t, i)\nout y", false },
        { "in b bool[2]\ni = cast(b) {to=i64}\ny = gather(t, i)\nout y", true },
        { "in i i64[2]\nconst lo i64[] = {-9}  const hi i64[] = {8}\nj = clip(i, lo, hi)\ny = gather(t, j)\nout y", true },
        { "in i i64[2]\nconst lo i64[] = {-10}  const hi i64[] = {8}\nj = clip(i, lo, hi)\ny = gather(t, j)\nout y", false },
        { "in i i64[2]\nconst lo i64[] = {0}  const hi i64[] = {9}\nj = clip(i, lo, hi)\ny = gather(t, j)\nout y", false },
        { "in i i64[2]\nconst m i64[] = {9}\nj = mod(i, m)\ny = gather(t, j)\nout y", true },
        { "in i i64[2]\nconst m i64[] = {9}\nj = mod(i, m) {fmod=1}\ny = gather(t, j)\nout y", false },
        { "in i i64[2]\nconst m i64[] = {-9}\nj = mod(i, m)\ny = gather(t, j)\nout y", false },
        { "const i i64[3] = {8,-9,5}\ny = gather(t, i)\nout y", true },
        { "const a i64[] = {2}  const d i64[] = {3}\ni = range(a, d) {dim=3}\ny = gather(t, i)\nout y", true },
        { "const a i64[] = {3}  const d i64[] = {3}\ni = range(a, d) {dim=3}\ny = gather(t, i)\nout y", false },
        { "i = iota() {dtype=i64, dim=[4], axis=0}  const k i64[] = {2}  const o i64[] = {2}\nj = mul(i, k)  l = add(j, o)\ny = gather(t, l)\nout y", true },
        { "i = iota() {dtype=i64, dim=[4], axis=0}  const k i64[] = {2}  const o i64[] = {3}\nj = mul(i, k)  l = add(j, o)\ny = gather(t, l)\nout y", false },
        { "i = iota() {dtype=i64, dim=[4], axis=0}  const o i64[] = {-4}\nl = sub(o, i)\ny = gather(t, l)\nout y", true },
        { "in x f32[2,4]\nconst o i64[] = {5}  const p i64[] = {13}\ni = arg_max(x) {axis=1}  j = add(i, o)  k = sub(j, p)\ny = gather(t, k)\nout y", false }, /* j is never 0 */
        { "in i i64[4]\nc = cast(i) {to=u8}  j = cast(c) {to=i64}\ny = gather(t, j)\nout y", false },
        { "sym n [1,4,64]\nin x f32[n,5]\ni = arg_max(x) {axis=0, keepdims=0}\ny = gather(x, i)\nout y", true },
        { "sym n [1,4,64]\nsym m [1,4,64]\nin x f32[n,5]  in z f32[m,5]\ni = arg_max(x) {axis=0, keepdims=0}\ny = gather(z, i)\nout y", false },
        { "in x f32[3,4]\nz, n = nonzero(x)  i = transpose(z) {perm=[1,0]}\ny = gather_nd(x, i)\nout y", true },
        { "in x f32[3,4]\nz, n = nonzero(x)  i = transpose(z) {perm=[1,0]}\ny = gather_nd(t, i)\nout y", false },
        { "in x f32[2,9]\na = arg_max(x) {axis=1, keepdims=1}  const b i64[2,1] = {3,-4}  i = concat(a, b) {axis=1}\ny = gather_nd(t, i)\nout y", true },
        { "in x f32[2,9]\na = arg_max(x) {axis=1, keepdims=1}  const b i64[2,1] = {3,-4}  i = concat(b, a) {axis=1}\ny = gather_nd(t, i)\nout y", false },
        { "in x f32[1,4]  in w f32[9,4]\ni = arg_max(w) {axis=0, keepdims=1}\ny = scatter_elements(t, i, x) {axis=0}\nout y", true },
        { "in x f32[1,4]  in w f32[9,4]\ni = arg_max(w) {axis=0, keepdims=1}\ny = scatter_elements(t, i, x) {axis=1}\nout y", false },
    };
    for (int i = 0; i < HN_COUNT(rows); i++) {
        hn_graph *g = NULL;
        hn_str text = { 0 };
        hn_str_addf(&text, "%s%s", table, rows[i].text);
        hn_test_note("%s", rows[i].text);
        CHECK_EQ(hn_test_fires(t, "prove_index", hn_str_get(&text), &g), rows[i].fires);
        hn_str_done(&text);
    }
}

TEST(views_do_not_fire)
{
    static const refuses rows[] = {
        { "merge_reshape", "in x f32[2,6]\na = reshape(x) {dim=[3,4]}\nb = neg(a)\ny = reshape(b) {dim=[12]}\nout y" },
        { "merge_reshape", "in x f32[2,1,6]\ny = transpose(x) {perm=[2,1,0]}\nout y" },
        { "merge_cast", "in x f32[5]\na = cast(x) {to=i32}\ny = cast(a) {to=bool}\nout y" },  /* 0.5 is false */
        { "merge_cast", "in x i32[5]\na = cast(x) {to=bool}\ny = cast(a) {to=i32}\nout y" },  /* -1 becomes 1 */
        { "merge_cast", "in x i32[5]\na = cast(x) {to=f32}\ny = cast(a) {to=i32}\nout y" },   /* 24 bits */
        { "merge_cast", "in x i32[5]\na = cast(x) {to=u64}\ny = cast(a) {to=f32}\nout y" },   /* the sign */
        { "merge_cast", "in x f32[5]\na = cast(x) {to=f16}\ny = cast(a) {to=f32}\nout y" },
        { "slice_gather", "in x f32[9]\nconst i i64[3] = {2,4,7}\ny = gather(x, i) {axis=0}\nout y" },
        { "slice_gather", "in x f32[9]\nconst i i64[2] = {2,2}\ny = gather(x, i) {axis=0}\nout y" },
        { "slice_gather", "sym n [1,8,9]\nin x f32[n]\nconst i i64[1] = {1}\ny = gather(x, i) {axis=0}\nout y" }, /* may be out of range */
        { "merge_concat", "in a f32[2]  in b f32[3]\nd = concat(a, b) {axis=0}\ny = concat(d, a) {axis=0}\nout y\nout d" },
        { "merge_concat", "in a f32[2,2]  in b f32[2,2]\nd = concat(a, b) {axis=0}\ny = concat(d, d) {axis=1}\nout y" },
        { "merge_concat", "in x f32[6]\na = slice(x) {start=[0], step=[1], dim=[2]}\nb = slice(x) {start=[3], step=[1], dim=[3]}\ny = concat(a, b) {axis=0}\nout y" },
        { "slice_concat", "in a f32[3]  in b f32[3]\nc = concat(a, b) {axis=0}\ny = slice(c) {start=[2], step=[1], dim=[2]}\nout y" },
        { "copy_sizes", "sym n\nin x f32[3,n]\nd = dims() {dim=[n]}\nk = cast(d) {to=f32}\na = reduce_sum(x) {axes=[1]}\np = div(a, k)\nout p" },
        { "copy_sizes", "sym n\nin x f32[3,n]  in z f32[2,n]\nd = dims() {dim=[n]}\nk = cast(d) {to=f32}\np = div(x, k)\nq = div(z, k)\nout p\nout q" },
        { "swap_concat", "in a f32[2,1]  in b f32[2,2]\np = concat(a, b) {axis=1}\nq = concat(b, a) {axis=1}\ny = concat(p, q, q) {axis=0}\nout y" },
        { "swap_concat", "in a f32[2,1]  in b f32[2,1]\np = concat(a, b) {axis=1}\nq = concat(b, a) {axis=1}\ny = concat(p, q) {axis=0}\nout y" },
        { "hoist_reshape", "in x f32[1,6]  const w f32[2,1,1]\np = pad(x) {before=[0,1], after=[0,1]}\nr = reshape(p) {dim=[1,2,4]}\n" /* splits */
                           "c = reduce_sum(r) {axes=[1]}\ny = conv(c, w) {stride=[1], dilation=[1], pad_begin=[0], pad_end=[0]}\nout y" },
        { "hoist_reshape", "in x f32[4]  const w f32[2,2,1]\np = pad(x) {before=[2], after=[2]}\nr = reshape(p) {dim=[1,2,4]}\n"
                           "y = conv(r, w) {stride=[1], dilation=[1], pad_begin=[0], pad_end=[0]}\nout y" },
        { "merge_broadcast", "in x f32[1,3]\nb = broadcast(x) {dim=[6,3]}\ny = slice(b) {start=[1,1], step=[1,1], dim=[4,2]}\nout y" },
        { "merge_broadcast", "in x f32[1,3]\nb = broadcast(x) {dim=[6,3]}\ny = reshape(b) {dim=[9,2]}\nout y" },
        { "drop_zero_state", "in x f32[3,1,2]  const w f32[1,8,2]  const r f32[1,8,2]  const h f32[1,1,2] = {0,1}\n"
                             "y, yh, yc = lstm(x, w, r, _, _, h, h) {hidden=2}\nout y" },
        { "regroup_transpose", "in x f32[4,6]\nt = transpose(x) {perm=[1,0]}\nr = reshape(t) {dim=[8,3]}\ny = transpose(r) {perm=[1,0]}\nout y" }, /* across axes */
        { "regroup_transpose", "in x f32[2,3,4]\nt = transpose(x) {perm=[1,0,2]}\nr = reshape(t) {dim=[3,8]}\ny = transpose(r) {perm=[1,0]}\nout y\nout t" },
        { "fold_unit_axes", "in x f32[3,1,2]\ny = reduce_max(x) {axes=[0,1]}\nout y" },
        { "drop_broadcast", "in x f32[4]  in z f32[1,4]\nb = broadcast(x) {dim=[3,4]}\ny = add(b, z)\nout y" },
        { "drop_broadcast", "in a f32[2,3,4]  in w f32[1,5]\nb = broadcast(w) {dim=[2,4,5]}\ny = matmul(a, b)\nout y" },
    };
    check_refuses(t, rows, HN_COUNT(rows));
}

TEST(arithmetic_fires)
{
    static const fires rows[] = {
        { "fold_neutral", "in x f32[3]\nconst k f32[1] = {1}\ny = mul(k, x)\nz = neg(y)\nout z", HN_OP_mul, 0 },
        { "fold_neutral", "in x f32[3]\nconst k f32[] = {0}\ny = sub(x, k)\nz = neg(y)\nout z", HN_OP_sub, 0 },
        { "fold_neutral", "in x i32[3]\nconst k i32[3] = {0,0,0}\ny = add(x, k)\nz = neg(y)\nout z", HN_OP_add, 0 },
        { "fold_neutral", "in x f32[3]\nconst k f32[] = {-0}\ny = add(x, k)\nz = neg(y)\nout z", HN_OP_add, 0 },
        { "fold_neutral", "in x f32[3]\na = neg(x)\nb = neg(a)\ny = exp(b)\nout y", HN_OP_neg, 0 },
        { "fold_neutral", "in a f32[3]  in b f32[2,3]\nconst c bool[2,1] = {1,1}\ny = select(c, a, b)\nz = neg(y)\nout z", HN_OP_select, 0 },
        { "fold_neutral", "in c bool[3]  in a f32[3]  in b f32[3]\nd = not(c)\ny = select(d, a, b)\nout y", HN_OP_not, 0 },
        { "merge_clip", "in x f32[5]\nconst lo f32[] = {-1}  const hi f32[] = {0.5}\na = relu(x)\ny = clip(a, lo, hi)\nout y", HN_OP_relu, 0 },
        { "merge_clip", "in x f32[5]\nconst lo f32[] = {0.25}\na = relu(x)\ny = clip(a, lo)\nout y", HN_OP_relu, 0 },
        { "merge_clip", "in x i32[5]\nconst lo i32[] = {1}  const hi i32[] = {3}\na = relu(x)\ny = clip(a, lo, hi)\nout y", HN_OP_relu, 0 },
        { "merge_clip", "in x f32[5]\nconst hi f32[] = {-0.5}\na = clip(x, _, hi)\ny = relu(a)\nout y", HN_OP_relu, 0 },
        { "merge_clip", "in x f32[5]\nconst lo f32[1] = {0}  const hi f32[] = {0.5}\na = max(x, lo)\ny = min(hi, a)\nout y", HN_OP_clip, 1 },
        { "merge_clip", "in x f32[5]\na = relu(x)\ny = relu(a)\nout y", HN_OP_relu, 1 },
        { "merge_clip", "in x f32[5]\nconst lo f32[] = {2}  const hi f32[] = {-2}\na = clip(x, lo, hi)\ny = relu(a)\nout y", HN_OP_relu, 0 },
        { "cheaper_math", "in x f32[5]\nconst e f32[] = {2}\ny = pow(x, e)\nout y", HN_OP_pow, 0 },
        { "cheaper_math", "in x f32[5]\nconst e i64[] = {5}\ny = pow(x, e)\nout y", HN_OP_pow, 0 },
        { "cheaper_math", "in x f32[5]\nconst e f32[] = {0.5}\na = exp(x)\ny = pow(a, e)\nout y", HN_OP_sqrt, 1 },
        { "cheaper_math", "in x f32[5]\nconst e f32[] = {-0.5}  const k f32[] = {1e-5}\na = mul(x, x)\ns = add(a, k)\ny = pow(s, e)\nout y", HN_OP_pow, 0 },
        { "cheaper_math", "in x f32[5]\nconst e f32[] = {-1}\ny = pow(x, e)\nout y", HN_OP_reciprocal, 1 },
        { "cheaper_math", "in x f32[5]\nconst e f32[] = {3}\ny = div(x, e)\nout y", HN_OP_div, 0 },
        { "cheaper_math", "in x f32[3]\nconst e f32[3] = {1,2,-5}\ny = div(x, e)\nout y", HN_OP_div, 0 },
    };
    check_fires(t, rows, HN_COUNT(rows));
}

TEST(arithmetic_does_not_fire)
{
    static const refuses rows[] = {
        { "fold_neutral", "in x f32[3]\nconst k f32[] = {0}\ny = add(x, k)\nout y" },             /* -0 + 0 */
        { "fold_neutral", "in x f32[3]\nconst k f32[2,1] = {1,1}\ny = mul(x, k)\nout y" },         /* grows */
        { "fold_neutral", "in x f32[3]\nconst k f32[] = {1}\ny = div(k, x)\nout y" },
        { "merge_clip", "in x f32[5]\na = relu(x)\ny = relu(a)\nout y\nout a" },
        { "merge_clip", "in x f32[5]\nconst lo f32[5] = {1,2,3,4,5}\na = max(x, lo)\ny = relu(a)\nout y" },
        { "merge_clip", "in x f32[5]\nconst lo f32[] = {nan}\na = max(x, lo)\ny = relu(a)\nout y" },
        { "cheaper_math", "in x f32[5]\nconst e f32[] = {0.5}\ny = pow(x, e)\nout y" },           /* of a negative number */
        { "cheaper_math", "in x f32[5]\nconst e f32[] = {0}\ny = div(x, e)\nout y" },
        { "cheaper_math", "in x f32[5]\nconst e f32[] = {1e-39}\ny = div(x, e)\nout y" },         /* 1/e is infinite */
        { "cheaper_math", "in x f16[5]\nconst e f16[] = {3}\ny = div(x, e)\nout y" },
        { "cheaper_math", "in x i32[5]\nconst e i32[] = {4}\ny = div(x, e)\nout y" },
    };
    check_refuses(t, rows, HN_COUNT(rows));
}

#define CONV2 "in x f32[2,4,5,5]  const w f32[6,2,3,3]  const b f32[6]\n"

TEST(weights_fire)
{
    static const fires rows[] = {
        { "absorb_pad", CONV2 "p = pad(x) {before=[0,0,1,2], after=[0,0,2,0]}\n"
                        "y = conv(p, w, b) {stride=[1,1], dilation=[1,1], pad_begin=[1,0], pad_end=[0,1], group=2}\nout y", HN_OP_pad, 0 },
        { "absorb_pad", "sym n\nin z f32[n]  in x f32[1,2,n+1]  const w f32[3,2,2]\np = pad(x) {before=[0,0,1], after=[0,0,n]}\n"
                        "y = conv(p, w) {stride=[1], dilation=[1], pad_begin=[0], pad_end=[0]}\nout y", HN_OP_pad, 0 },
        { "absorb_pad", "in x f32[1,2,6]  const v f32[] = {-inf}\np = pad(x, v) {before=[0,0,1], after=[0,0,1]}\n"
                        "y = max_pool(p) {kernel=[3], stride=[1], dilation=[1], pad_begin=[0], pad_end=[0], dim=[6]}\nout y", HN_OP_pad, 0 },
        { "absorb_input", CONV2 "const s f32[4,1,1] = {1,-2,3,0.5}\nm = mul(x, s)\n"
                          "y = conv(m, w, b) {stride=[1,1], dilation=[1,1], pad_begin=[1,1], pad_end=[1,1], group=2}\nout y", HN_OP_mul, 0 },
        { "absorb_input", "in x f32[1,3,4]  const w f32[6,1,3]  const s f32[3,1] = {1,-2,3}\nm = add(x, s)\n"
                          "y = conv(m, w) {stride=[1], dilation=[1], pad_begin=[0], pad_end=[0], group=3}\nout y", HN_OP_add, 0 },
        { "absorb_input", CONV2 "const s f32[] = {2}\nm = sub(x, s)\n"
                          "y = conv(m, w, b) {stride=[1,1], dilation=[1,1], pad_begin=[0,0], pad_end=[0,0], group=2}\nout y", HN_OP_sub, 0 },
        { "absorb_input", "in x f32[2,3,4]  const w f32[4,5]  const s f32[4] = {1,2,3,4}\nm = mul(x, s)\ny = matmul(m, w)\nout y", HN_OP_mul, 0 },
        { "absorb_input", "in x f32[3,4]  const w f32[5,4]  const s f32[1] = {2}\nm = mul(s, x)\ny = matmul(m, w) {trans_b=1}\nout y", HN_OP_mul, 0 },
        { "absorb_input", "in x f32[2,3,4]  const w f32[4,5]  const s f32[4] = {1,2,3,4}\nm = add(x, s)\ny = matmul(m, w)\nout y", HN_OP_matmul, 1 },
        { "flatten_matmul", "sym n\nin x f32[2,n,4]  in w f32[4,5]\ny = matmul(x, w)\nout y", HN_OP_reshape, 2 },
        { "flatten_matmul", "in x f32[2,3,2,4]  in w f32[5,4]\ny = matmul(x, w) {trans_b=1}\nout y", HN_OP_reshape, 2 },
    };
    check_fires(t, rows, HN_COUNT(rows));
}

TEST(weights_do_not_fire)
{
    static const refuses rows[] = {
        { "absorb_pad", CONV2 "const v f32[] = {1}\np = pad(x, v) {before=[0,0,1,2], after=[0,0,2,0]}\n"
                        "y = conv(p, w) {stride=[1,1], dilation=[1,1], pad_begin=[0,0], pad_end=[0,0], group=2}\nout y" },
        { "absorb_pad", CONV2 "p = pad(x) {before=[0,0,1,-1], after=[0,0,2,0]}\n"
                        "y = conv(p, w) {stride=[1,1], dilation=[1,1], pad_begin=[0,0], pad_end=[0,0], group=2}\nout y" },
        { "absorb_pad", CONV2 "p = pad(x) {before=[1,0,0,0], after=[0,0,0,0]}\n"
                        "y = conv(p, w) {stride=[1,1], dilation=[1,1], pad_begin=[0,0], pad_end=[0,0], group=2}\nout y" },
        { "absorb_pad", CONV2 "p = pad(x) {mode=reflect, before=[0,0,1,1], after=[0,0,1,1]}\n"
                        "y = conv(p, w) {stride=[1,1], dilation=[1,1], pad_begin=[0,0], pad_end=[0,0], group=2}\nout y" },
        { "absorb_pad", "in x f32[1,2,6]\np = pad(x) {before=[0,0,1], after=[0,0,1]}\n"
                        "y = max_pool(p) {kernel=[3], stride=[1], dilation=[1], pad_begin=[0], pad_end=[0], dim=[6]}\nout y" },
        { "absorb_input", CONV2 "const s f32[4,1,1] = {1,-2,3,0.5}\nm = add(x, s)\n"   /* padding would have to hold -s */
                          "y = conv(m, w, b) {stride=[1,1], dilation=[1,1], pad_begin=[1,1], pad_end=[1,1], group=2}\nout y" },
        { "absorb_input", CONV2 "const s f32[5] = {1,-2,3,0.5,1}\nm = mul(x, s)\n"     /* along a spatial axis */
                          "y = conv(m, w, b) {stride=[1,1], dilation=[1,1], pad_begin=[0,0], pad_end=[0,0], group=2}\nout y" },
        { "absorb_input", "in x f32[3,4]  const w f32[4,5]  const s f32[4] = {1,2,3,4}\nm = mul(x, s)\ny = matmul(m, w)\nout y\nout m" },
        { "absorb_input", "in x f32[3,4]  in w f32[4,5]  const s f32[4] = {1,2,3,4}\nm = mul(x, s)\ny = matmul(m, w)\nout y" },
        { "absorb_input", "in x f32[3,4]  const w f32[4,5]  const s f32[4] = {1,2,3,4}\nm = sub(s, x)\ny = matmul(m, w)\nout y" },
        { "flatten_matmul", "in x f32[2,3,4]  const w f32[4,5]\ny = matmul(x, w)\nout y" },
        { "flatten_matmul", "in x f32[2,3,4]  in w f32[2,4,5]\ny = matmul(x, w)\nout y" },
    };
    check_refuses(t, rows, HN_COUNT(rows));
}

TEST(sinking_fires)
{
    static const fires rows[] = {
        { "sink_reshape", "in a f32[2,3]  const w f32[3,4]\nm = matmul(a, w)\nr = reshape(m) {dim=[2,2,2]}\ny = relu(r)\nz = exp(y)\nout z", HN_OP_reshape, 1 },
        { "sink_reshape", "in a f32[6,3]  const w f32[3,4]  const c f32[1,4] = {1,2,3,4}\nm = matmul(a, w)\nr = reshape(m) {dim=[2,3,4]}\ny = add(r, c)\nout y", HN_OP_reshape, 1 },
        { "sink_reshape", "in a f32[6]  in b f32[6]\np = reshape(a) {dim=[2,3]}\nq = reshape(b) {dim=[2,3]}\ny = mul(p, q)\nout y", HN_OP_reshape, 1 },
        { "sink_transpose", "in a f32[2,3]  in b f32[2,3]\np = transpose(a) {perm=[1,0]}\nq = transpose(b) {perm=[1,0]}\ny = sub(p, q)\nout y", HN_OP_transpose, 1 },
        { "sink_transpose", "in a f32[2,3,4]\np = transpose(a) {perm=[1,2,0]}\nconst k f32[4,1] = {1,2,3,4}\nq = mul(p, k)\n"
                            "r = relu(q)\ny = transpose(r) {perm=[1,0,2]}\nout y", HN_OP_transpose, 2 },
        { "sink_transpose", "in a f32[2,3,4]\np = transpose(a) {perm=[2,0,1]}\ny = reduce_sum(p) {axes=[0,2], keepdims=1}\nout y", HN_OP_transpose, 1 },
        { "sink_transpose", "in a f32[2,3,4]\np = transpose(a) {perm=[2,0,1]}\ny = reduce_max(p) {axes=[0], keepdims=0}\nout y", HN_OP_transpose, 0 },
        { "sink_transpose", "in a f32[2,3,4]\np = transpose(a) {perm=[2,1,0]}\ny = reduce_max(p) {axes=[1], keepdims=0}\nout y", HN_OP_transpose, 1 },
        { "sink_transpose", "in x f32[1,2,3,3]  const w f32[3,2,1,1]\nc = conv(x, w) {stride=[1,1], dilation=[1,1], pad_begin=[0,0], pad_end=[0,0]}\n"
                            "p = transpose(c) {perm=[0,2,3,1]}\ny = tanh(p)\nout y", HN_OP_transpose, 1 },
        { "sink_transpose", "in a f32[2,3,4]  const w f32[4,5]  const b f32[5] = {1,2,3,4,5}  const s f32[5,1] = {1,2,3,4,5}\n"
                            "m = matmul(a, w)\nn = add(m, b)\np = transpose(n) {perm=[0,2,1]}\ny = mul(p, s)\nout y", HN_OP_transpose, 1 },
        { "sink_transpose", "in a f32[2,3,4]  in r f32[2,3,5]  const w f32[4,5]\nm = matmul(a, w)\np = transpose(m) {perm=[0,2,1]}\n"
                            "q = transpose(r) {perm=[0,2,1]}\ny = add(p, q)\nout y\nout q", HN_OP_transpose, 2 }, /* a residual that others read, too */
        { "sink_transpose", "in a f32[1,3,3,4]  in x f32[1,2,3,3]  const w f32[4,5]  const k f32[5,2,1,1]\n"
                            "c = conv(x, k) {stride=[1,1], dilation=[1,1], pad_begin=[0,0], pad_end=[0,0]}\n"
                            "m = matmul(a, w)\np = transpose(m) {perm=[0,3,1,2]}\ny = add(p, c)\nout y", HN_OP_transpose, 2 },
        { "sink_transpose", "in a f32[2,3,4]  in k f32[2,5,4]  in s f32[1]\np = transpose(k) {perm=[0,2,1]}\nq = mul(p, s)\ny = matmul(a, q)\nout y", HN_OP_transpose, 1 },
    };
    check_fires(t, rows, HN_COUNT(rows));
}

TEST(sinking_does_not_fire)
{
    static const refuses rows[] = {
        { "sink_reshape", "in a f32[2,6]\nr = reshape(a) {dim=[3,4]}\ny = relu(r)\nout y" },                        /* nothing before it */
        { "sink_reshape", "in a f32[6,3]  const w f32[3,4]  const c f32[3,1] = {1,2,3}\nm = matmul(a, w)\nr = reshape(m) {dim=[2,3,4]}\ny = add(r, c)\nout y" },
        { "sink_reshape", "in a f32[2,3]  const w f32[3,4]\nm = matmul(a, w)\nr = reshape(m) {dim=[8]}\ny = relu(r)\nout y\nout r" },
        { "sink_reshape", "in a f32[6]  in b f32[3,2]\np = reshape(a) {dim=[2,3]}\nq = reshape(b) {dim=[2,3]}\ny = mul(p, q)\nout y" },
        { "sink_transpose", "in a f32[2,3]\np = transpose(a) {perm=[1,0]}\ny = relu(p)\nout y" },                   /* meets nothing */
        { "sink_transpose", "in a f32[2,3]  in b f32[3,2]\np = transpose(a) {perm=[1,0]}\ny = add(p, b)\nz = transpose(y) {perm=[1,0]}\nout z" },
        { "sink_transpose", "in a f32[2,3]\np = transpose(a) {perm=[1,0]}\nq = relu(p)\nz = transpose(q) {perm=[1,0]}\nout z\nout p" },
        { "sink_transpose", "in a f32[2,3]  in b f32[2,3]\np = transpose(a) {perm=[1,0]}\nq = transpose(b) {perm=[1,0]}\ny = add(p, q)\nout y\nout q" },
        { "sink_transpose", "in a f32[1,3,3,5]  in x f32[1,2,3,3]  const k f32[5,2,1,1]\n"
                            "c = conv(x, k) {stride=[1,1], dilation=[1,1], pad_begin=[0,0], pad_end=[0,0]}\n"
                            "p = transpose(a) {perm=[0,3,1,2]}\ny = add(p, c)\nout y" },
        { "sink_transpose", "in a f32[2,2,2]  in b f32[2,2,2]\np = transpose(a) {perm=[1,0,2]}\nq = transpose(b) {perm=[2,1,0]}\ny = sub(p, q)\nout y" },
        { "sink_transpose", "in a f32[3,1]\np = transpose(a) {perm=[1,0]}\nconst k f32[2,1,1] = {1,2}\nq = mul(p, k)\ny = transpose(q) {perm=[0,2,1]}\nout y" }, /* grows */
    };
    check_refuses(t, rows, HN_COUNT(rows));
}

#define BODY "{\n  in i i64  in go bool  in p f32[3]\n  f = cast(i) {to=f32}\n  a = mul(p, x)\n  q = add(a, f)\n"

TEST(loops_that_run_a_few_times)
{
    static const fires rows[] = {
        { "unroll_loop", "in x f32[3]  const n i64 = {3}\nv, s, trips = loop(n, _, x) " BODY "  out go  out q  out p\n}\nout v\nout s\nout trips", HN_OP_loop, 0 },
        { "unroll_loop", "in x f32[3]  const n i64 = {1}  const yes bool = {1}\nv, s, trips = loop(n, yes, x) " BODY "  out go  out q  out a\n}\nout v\nout s", HN_OP_concat, 0 },
    };
    static const refuses no[] = {
        { "unroll_loop", "in x f32[3]  const n i64 = {9}\nv, trips = loop(n, _, x) " BODY "  out go  out q\n}\nout v" },
        { "unroll_loop", "in x f32[3]  const n i64 = {0}\nv, trips = loop(n, _, x) " BODY "  out go  out q\n}\nout v" },
        { "unroll_loop", "in x f32[3]  in n i64\nv, trips = loop(n, _, x) " BODY "  out go  out q\n}\nout v" },
        { "unroll_loop", "in x f32[3]  const n i64 = {3}\nv, trips = loop(n, _, x) " BODY
                         "  const k f32[] = {0}\n  m = reduce_max(q) {axes=[0], keepdims=0}\n  c = lt(m, k)\n  out c  out q\n}\nout v" },
    };
    check_fires(t, rows, HN_COUNT(rows));
    check_refuses(t, no, HN_COUNT(no));
}
