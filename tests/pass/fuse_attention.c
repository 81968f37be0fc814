#include "pass/pass_test.h"

#define QKV "in q f32[2,3,5,4]  in k f32[2,3,6,4]  in v f32[2,3,6,7]  in m f32[2,1,1,6]  in bias f32[3,5,6]  in c bool[5,6]\n" \
            "const a f32[] = {0.5}  const two f32[] = {2}  const zero f32[] = {0}  const far f32[] = {-1e9}  const inf f32[] = {-inf}\n"
#define TURN "kt = transpose(k) {perm=[0,1,3,2]}\n"
#define SOFT(z_) "w = softmax(" z_ ") {axis=3}\ny = matmul(w, v)\nout y"

static hn_node *fires(hn_test *t, const char *text)
{
    hn_graph *g;
    hn_test_note("%s", text);
    CHECK_EQ(hn_test_pass(t, "fuse_attention", text, &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_attention), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_matmul) + hn_test_count_ops(g, HN_OP_softmax), 0);
    HN_FOR_NODES (n, g)
        if (n->op == HN_OP_attention) return n;
    return NULL;
}

TEST(fuse_attention_fires_wherever_the_scale_stands)
{
    static const char *const text[] = {
        QKV TURN "s = matmul(q, kt)\nz = mul(s, a)\n" SOFT("z"),
        QKV TURN "s = matmul(q, kt)\nz = div(s, two)\n" SOFT("z"),
        QKV TURN "qa = mul(a, q)\ns = matmul(qa, kt)\n" SOFT("s"),
        QKV TURN "qa = div(q, two)\ns = matmul(qa, kt)\n" SOFT("s"),
        QKV "ka = mul(k, a)\nkt = transpose(ka) {perm=[0,1,3,2]}\ns = matmul(q, kt)\n" SOFT("s"),
        QKV TURN "ka = mul(kt, a)\ns = matmul(q, ka)\n" SOFT("s"),
        QKV "s = matmul(q, k) {trans_b=1}\nz = mul(s, a)\n" SOFT("z"),
    };
    for (int i = 0; i < HN_COUNT(text); i++) {
        const hn_node *n = fires(t, text[i]);
        CHECK_EQ(n->graph->n_node, 1);
        CHECK_EQ(hn_attr_f(n, "scale"), 0.5);
    }
    CHECK_EQ(hn_attr_f(fires(t, QKV TURN "qa = mul(q, a)\nka = mul(kt, a)\ns = matmul(qa, ka)\n" SOFT("s")), "scale"), 0.25);
    CHECK_EQ(hn_attr_f(fires(t, QKV TURN "s = matmul(q, kt)\n" SOFT("s")), "scale"), 1);
}

TEST(fuse_attention_fires_on_every_turn_of_the_keys)
{
    /* the one transpose from [b,t,h,d] */
    const hn_node *n = fires(t, "in q f32[2,3,5,4]  in x f32[2,6,3,4]  in v f32[2,3,6,7]\n"
                                "kt = transpose(x) {perm=[0,2,3,1]}\ns = matmul(q, kt)\n" SOFT("s"));
    CHECK_EQ(n->graph->n_node, 3);
    /* heads merged into the batch meanwhile, scaled behind, guarded */
    n = fires(t, QKV "kf = reshape(k) {dim=[6,6,4]}\nkft = transpose(kf) {perm=[0,2,1]}\nkt = reshape(kft) {dim=[2,3,4,6]}\n"
                     "ka = mul(kt, a)\nqa = mul(q, a)\ns = matmul(qa, ka)\nz = add(s, m)\nw = softmax(z) {axis=3}\nn = is_nan(w)\n"
                     "g = select(n, zero, w)\ny = matmul(g, v)\nout y");
    CHECK_EQ(n->graph->n_node, 1);
    CHECK_EQ(hn_attr_i(n, "rows"), 2);
    fires(t, "in q f32[5,4]  in k f32[6,4]  in v f32[6,7]\nkt = transpose(k) {perm=[1,0]}\ns = matmul(q, kt)\nw = softmax(s)\n"
             "y = matmul(w, v)\nout y");
    fires(t, "in q f32[3,5,4]  in k f32[3,4,6]  in v f32[3,6,7]  in m f32[3,5,6]\ns = matmul(q, k)\nz = add(m, s)\n"
             "w = softmax(z) {axis=2}\ny = matmul(w, v)\nout y");
    /* one key head for all queries */
    fires(t, "in q f32[2,3,5,4]  in k f32[2,1,6,4]  in v f32[2,1,6,7]\ns = matmul(q, k) {trans_b=1}\n" SOFT("s"));
}

TEST(fuse_attention_fires_on_grouped_queries)
{
    const hn_node *n = fires(t, "in q f32[2,6,5,4]  in k f32[2,3,7,4]  in v f32[2,3,7,8]\n"
                                "k1 = reshape(k) {dim=[2,3,1,7,4]}\nk2 = broadcast(k1) {dim=[2,3,2,7,4]}\nk3 = reshape(k2) {dim=[2,6,7,4]}\n"
                                "v1 = reshape(v) {dim=[2,3,1,7,8]}\nv2 = broadcast(v1) {dim=[2,3,2,7,8]}\nv3 = reshape(v2) {dim=[2,6,7,8]}\n"
                                "kt = transpose(k3) {perm=[0,1,3,2]}\ns = matmul(q, kt)\nw = softmax(s) {axis=3}\ny = matmul(w, v3)\nout y");
    CHECK_EQ(n->graph->n_node, 1);
    CHECK_EQ(hn_in(n, 1)->type.dim[1], 3);
    /* repeated the other way round: key heads 0 1 2 0 1 2 */
    n = fires(t, "in q f32[2,6,5,4]  in k f32[2,3,7,4]  in v f32[2,3,7,8]\n"
                 "k1 = reshape(k) {dim=[2,1,3,7,4]}\nk2 = broadcast(k1) {dim=[2,2,3,7,4]}\nk3 = reshape(k2) {dim=[2,6,7,4]}\n"
                 "v1 = reshape(v) {dim=[2,1,3,7,8]}\nv2 = broadcast(v1) {dim=[2,2,3,7,8]}\nv3 = reshape(v2) {dim=[2,6,7,8]}\n"
                 "s = matmul(q, k3) {trans_b=1}\nw = softmax(s) {axis=3}\ny = matmul(w, v3)\nout y");
    CHECK_EQ(hn_in(n, 1)->type.dim[1], 6);
}

TEST(fuse_attention_fires_on_masks)
{
#define SCORES "s = matmul(q, k) {trans_b=1}\nsa = mul(s, a)\n"
    static const char *const text[] = {
        QKV SCORES "z = add(sa, m)\n" SOFT("z"),
        QKV SCORES "z = add(bias, sa)\n" SOFT("z"),
        QKV SCORES "x = add(sa, bias)\nz = add(x, m)\n" SOFT("z"),
        QKV SCORES "z = select(c, sa, inf)\n" SOFT("z"),
        QKV SCORES "z = select(c, sa, far)\n" SOFT("z"), /* a row that hides all keys weighs them alike */
        QKV SCORES "z = select(c, far, sa)\n" SOFT("z"),
        QKV SCORES "x = div(sa, two)\nth = tanh(x)\ncap = mul(th, two)\nz = add(cap, m)\n" SOFT("z"),
        QKV SCORES "x = mul(sa, a)\nth = tanh(x)\ncap = mul(th, two)\nz = select(c, cap, inf)\n" SOFT("z"),
        /* causal, as a constant */
        "in q f32[1,2,3,4]  in k f32[1,2,3,4]  in v f32[1,2,3,5]  const m f32[3,3] = {0,-inf,-inf,0,0,-inf,0,0,0}\n"
        "s = matmul(q, k) {trans_b=1}\nz = add(s, m)\n" SOFT("z"),
    };
    for (int i = 0; i < HN_COUNT(text); i++) fires(t, text[i]);
    CHECK_EQ(hn_attr_f(fires(t, text[4]), "hide"), -1e9);
}

/* Operands with heads merged into the batch, scores split for the mask alone: [b*h,s,t] -> [b,h,s,t] -> [b*h,s,t]. */
TEST(fuse_attention_fires_on_merged_heads)
{
#define MERGED "in q f32[6,5,4]  in k f32[6,7,4]  in v f32[6,7,3]  in m f32[2,1,1,7]  in m3 f32[3,5,7]  in c bool[2,1,5,7]\n" \
               "const low f32[] = {-inf}  const a f32[] = {0.5}\nqa = mul(q, a)\nkt = transpose(k) {perm=[0,2,1]}\ns = matmul(qa, kt)\n" \
               "s4 = reshape(s) {dim=[2,3,5,7]}\n"
#define MERGE "z = reshape(z4) {dim=[6,5,7]}\nw = softmax(z)\ny = matmul(w, v)\nout y"
    const hn_node *n = fires(t, MERGED "z4 = add(s4, m)\n" MERGE);
    CHECK_EQ(hn_in(n, 0)->type.dim[1], 3);
    CHECK_EQ(hn_attr_f(n, "scale"), 0.5);
    fires(t, MERGED "x4 = add(s4, m)\nz4 = add(x4, m3)\n" MERGE);
    fires(t, MERGED "z4 = select(c, s4, low)\n" MERGE);
    hn_graph *g;
    CHECK_EQ(hn_test_pass(t, "fuse_attention", MERGED "z4 = add(s4, m)\n" MERGE "\nout z4", &g), 0);
    /* split elsewhere */
    CHECK_EQ(hn_test_pass(t, "fuse_attention", MERGED "in m4 f32[7,5]\nsx = reshape(s) {dim=[2,3,7,5]}\nz4 = add(sx, m4)\nz = reshape(z4) {dim=[6,5,7]}\n"
                          "w = softmax(z)\ny = matmul(w, v)\nout y", &g), 0);
}

TEST(fuse_attention_takes_softmax_in_f32)
{
    hn_graph *g;
    CHECK_EQ(hn_test_fires(t, "fuse_attention", "in q f16[2,3,5,4]  in k f16[2,3,6,4]  in v f16[2,3,6,7]  in m f16[6]\n"
                           "s = matmul(q, k) {trans_b=1}\nz = add(s, m)\nzw = cast(z) {to=f32}\nww = softmax(zw) {axis=3}\n"
                           "w = cast(ww) {to=f16}\ny = matmul(w, v)\nout y", &g), 1);
    CHECK_EQ(g->n_node, 1);
    /* a mask that f16 cannot hold */
    CHECK_EQ(hn_test_fires(t, "fuse_attention", "in q f16[2,3,5,4]  in k f16[2,3,6,4]  in v f16[2,3,6,7]  in m f32[6]\n"
                           "s = matmul(q, k) {trans_b=1}\nsw = cast(s) {to=f32}\nz = add(sw, m)\nww = softmax(z) {axis=3}\n"
                           "w = cast(ww) {to=f16}\ny = matmul(w, v)\nout y", &g), 0);
}

TEST(fuse_attention_fires_with_open_extents)
{
    hn_graph *g;
    CHECK_EQ(hn_test_fires(t, "fuse_attention", "sym b\nsym s\nin q f32[b,s,12]  in k f32[b,s,12]  in v f32[b,s,12]  in m f32[b,1,1,s]\n"
                           "q4 = reshape(q) {dim=[b,s,3,4]}\nqt = transpose(q4) {perm=[0,2,1,3]}\nk4 = reshape(k) {dim=[b,s,3,4]}\n"
                           "kt = transpose(k4) {perm=[0,2,3,1]}\nv4 = reshape(v) {dim=[b,s,3,4]}\nvt = transpose(v4) {perm=[0,2,1,3]}\n"
                           "p = matmul(qt, kt)\nz = add(p, m)\nw = softmax(z)\ny = matmul(w, vt)\nout y", &g), 1);
}

TEST(fuse_attention_does_not_fire)
{
    static const char *const text[] = {
        QKV SCORES "w = softmax(sa) {axis=3}\ny = matmul(w, v)\nout y\nout w",                    /* other readers */
        QKV SCORES SOFT("sa") "\nout s",
        QKV SCORES "w = softmax(sa) {axis=2}\ny = matmul(w, v)\nout y",                           /* over queries */
        QKV SCORES "z = mul(sa, bias)\n" SOFT("z"),                                               /* neither scale nor mask */
        QKV SCORES "z = sub(m, sa)\n" SOFT("z"),
        QKV SCORES "in far2 f32[6]\nz = select(c, sa, far2)\n" SOFT("z"),                         /* not one number */
        QKV SCORES "x = add(sa, bias)\nz1 = add(x, m)\nz = add(z1, bias)\n" SOFT("z"),            /* three masks */
        QKV SCORES "x = div(sa, two)\nth = tanh(x)\ncap = mul(th, a)\n" SOFT("cap"),              /* another cap */
        QKV SCORES "w = softmax(sa) {axis=3}\nn = is_nan(sa)\ng = select(n, zero, w)\ny = matmul(g, v)\nout y",
        QKV SCORES "w = softmax(sa) {axis=3}\nn = is_nan(w)\ng = select(n, two, w)\ny = matmul(g, v)\nout y",
        "in q f32[1,3,5,4]  in k f32[2,3,6,4]  in v f32[2,3,6,7]\ns = matmul(q, k) {trans_b=1}\n" SOFT("s"), /* queries spread */
        "in q f32[2,3,5,4]  in k f32[2,3,6,4]  in v f32[6,7]\ns = matmul(q, k) {trans_b=1}\n" SOFT("s"),
        "in q f32[2,3,5,4]  in k f32[2,3,6,4]  in v f32[2,3,6,7]  in m f32[4,1,1,1,6]\ns = matmul(q, k) {trans_b=1}\nz = add(s, m)\n"
        "w = softmax(z) {axis=4}\ny = matmul(w, v)\nout y",                                       /* the mask adds an axis */
        "in q f32[5,4]  in k f32[6,4]  in v f32[6,7]\ns = matmul(q, k) {trans_b=1}\ne = exp(s)\nz = reduce_sum(e) {axes=[1]}\n"
        "w = div(e, z)\ny = matmul(w, v)\nout y",                                                 /* no softmax */
        QKV SCORES "w = softmax(sa) {axis=3}\nvt = transpose(v) {perm=[0,1,3,2]}\ny = matmul(w, vt) {trans_b=1}\nout y",
    };
    hn_test_none_fires(t, "fuse_attention", text, HN_COUNT(text));
}
