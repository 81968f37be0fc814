/* Ops of com.microsoft against the same sums spelled out in standard ops. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "make.h"

typedef struct spec {
    const char *domain, *op, *in, *attrs;
} spec;

/* Nodes in a row over shared inputs x, y (floats) and constants; the i-th yields t<i>, the last one is the
 * output. */
static const double *run(hn_test *t, const spec *nodes, int n, const char *const shape[2],
                         void (*consts)(hn_str *), int *ret_n)
{
    hn_str g = { 0 };
    char out[8];
    double data[2][256];
    for (int i = 0; i < 2; i++) {
        g_input(&g, i ? "y" : "x", F32, shape[i]);
        for (int k = 0; k < 256; k++)
            data[i][k] = ((k * 37 + i * 11) % 29) / 14.5 - 1;
    }
    if (consts) consts(&g);
    for (int i = 0; i < n; i++) {
        snprintf(out, sizeof out, "t%d", i);
        g_node_in(&g, nodes[i].domain, nodes[i].op, nodes[i].in, out, nodes[i].attrs);
    }
    g_output(&g, out, 0, NULL);
    const hn_graph *r = import_ok(t, &g, 23, NULL);
    return eval_floats(t, r, (const double *const[]){ data[0], data[1] }, 0, ret_n);
}

static void same(hn_test *t, const spec *fused, const spec *plain, int n_plain, const char *x, const char *y,
                 void (*consts)(hn_str *))
{
    const char *const shape[2] = { x, y };
    int n0, n1;
    hn_test_note("%s", fused->op);
    const double *a = run(t, fused, 1, shape, consts, &n0), *b = run(t, plain, n_plain, shape, consts, &n1);
    CHECK_EQ(n0, n1);
    for (int i = 0; i < n0; i++)
        CHECK_NEAR(a[i], b[i], 2e-6);
}

#define MS         "com.microsoft"
#define SAME(...)  same(t, __VA_ARGS__)
#define PLAIN(...) (const spec[]){ __VA_ARGS__ }, HN_COUNT(((const spec[]){ __VA_ARGS__ }))

static void k15(hn_str *g)
{
    g_floats(g, "k", "", "1.5");
}

TEST(fused_activations)
{
    SAME(&(spec){ MS, "BiasGelu", "x,y", "" }, PLAIN({ "", "Add", "x,y", "" }, { "", "Gelu", "t0", "" }),
         "2,3,4", "4", NULL);
    SAME(&(spec){ MS, "FastGelu", "x,y", "" },
         PLAIN({ "", "Add", "x,y", "" }, { "", "Gelu", "t0", "approximate=s:tanh" }), "2,3,4", "4", NULL);
    SAME(&(spec){ MS, "QuickGelu", "x", "alpha=f:1.5" },
         PLAIN({ "", "Mul", "x,k", "" }, { "", "Sigmoid", "t0", "" }, { "", "Mul", "x,t1", "" }), "2,3,4",
         "4", k15);
}

TEST(fused_products)
{
    SAME(&(spec){ MS, "FusedMatMul", "x,y", "transB=i:1 alpha=f:1.5" },
         PLAIN({ "", "Transpose", "y", "perm=is:0,2,1" }, { "", "MatMul", "x,t0", "" },
               { "", "Mul", "t1,k", "" }),
         "2,3,4", "2,5,4", k15);
    SAME(&(spec){ MS, "FusedConv", "x,y", "activation=s:Relu pads=is:1,1" },
         PLAIN({ "", "Conv", "x,y", "pads=is:1,1" }, { "", "Relu", "t0", "" }), "1,3,8", "4,3,3", NULL);
    SAME(&(spec){ MS, "FusedGemm", "x,y,", "activation=s:LeakyRelu activation_alpha=f:0.25" },
         PLAIN({ "", "Gemm", "x,y", "" }, { "", "LeakyRelu", "t0", "alpha=f:0.25" }), "3,4", "4,5", NULL);
}

static void norm(hn_str *g)
{
    g_floats(g, "s", "4", "1,2,3,4");
    g_floats(g, "b", "4", "0.5,0.25,0,-1");
}

TEST(skip_norms)
{
    SAME(&(spec){ MS, "SkipLayerNormalization", "x,y,s,b", "epsilon=f:0.001" },
         PLAIN({ "", "Add", "x,y", "" }, { "", "LayerNormalization", "t0,s,b", "epsilon=f:0.001" }), "2,3,4",
         "2,3,4", norm);
    SAME(&(spec){ MS, "SkipSimplifiedLayerNormalization", "x,y,s,b", "epsilon=f:0.001" },
         PLAIN({ "", "Add", "x,y", "" }, { "", "Add", "t0,b", "" },
               { "", "RMSNormalization", "t1,s", "epsilon=f:0.001" }),
         "2,3,4", "2,3,4", norm);
}

static void seqlens(hn_str *g)
{
    hn_str n = { 0 }, all = { 0 };
    t_begin(&n, "n", I32, "1"); /* index of the last key */
    pb_int(&n, 5, 4);
    pb_msg(g, 5, &n);
    t_begin(&all, "all", I32, "1");
    pb_int(&all, 5, 5);
    pb_msg(g, 5, &all);
}

TEST(grouped_and_multi_head_attention)
{
    SAME(&(spec){ MS, "GroupQueryAttention", "x,y,y,,,n,all", "num_heads=i:4 kv_num_heads=i:2" },
         PLAIN({ "", "Attention", "x,y,y", "q_num_heads=i:4 kv_num_heads=i:2 is_causal=i:1" }), "1,5,16",
         "1,5,8", seqlens);
    SAME(&(spec){ MS, "MultiHeadAttention", "x,y,y", "num_heads=i:2" },
         PLAIN({ "", "Attention", "x,y,y", "q_num_heads=i:2 kv_num_heads=i:2" }), "2,3,8", "2,5,8", NULL);
    SAME(&(spec){ MS, "MultiHeadAttention", "x,y,y", "num_heads=i:2 unidirectional=i:1 scale=f:0.25" },
         PLAIN({ "", "Attention", "x,y,y", "q_num_heads=i:2 kv_num_heads=i:2 is_causal=i:1 scale=f:0.25" }),
         "2,5,8", "2,5,8", NULL);
}

static void scales(hn_str *g)
{
    hn_str z = { 0 };
    g_floats(g, "s", "", "0.0625");
    t_begin(&z, "z", U8, "");
    pb_bytes(&z, 9, "\x80", 1);
    pb_msg(g, 5, &z);
}

TEST(quantised_elementwise)
{
    /* x and y are quantised by both sides first; QLinearAdd is one node behind them */
    const spec add[] = { { "", "QuantizeLinear", "x,s,z", "" },
                         { "", "QuantizeLinear", "y,s,z", "" },
                         { MS, "QLinearAdd", "t0,s,z,t1,s,z,s,z", "" } };
    const spec plain[] = { { "", "QuantizeLinear", "x,s,z", "" },
                           { "", "QuantizeLinear", "y,s,z", "" },
                           { "", "DequantizeLinear", "t0,s,z", "" },
                           { "", "DequantizeLinear", "t1,s,z", "" },
                           { "", "Add", "t2,t3", "" },
                           { "", "QuantizeLinear", "t4,s,z", "" } };
    const char *const shape[2] = { "2,3,4", "4" };
    int n0, n1;
    const double *a = run(t, add, 3, shape, scales, &n0), *b = run(t, plain, 6, shape, scales, &n1);
    CHECK_EQ(n0, n1);
    for (int i = 0; i < n0; i++)
        CHECK_NEAR(a[i], b[i], 0);
}

static void product_scales(hn_str *g)
{
    hn_str z = { 0 };
    scales(g);
    g_floats(g, "u", "3", "0.5,0.25,0.125");
    t_begin(&z, "w", I8, "3,4");
    pb_bytes(&z, 9, "\x01\xfe\x7f\x04\x05\x80\x07\x08\x09\x0a\xf5\x0c", 12);
    pb_msg(g, 5, &z);
    t_begin(&z, "c", I32, "3");
    pb_bytes(&z, 9, "\x05\0\0\0\xff\xff\xff\xff\x00\x01\0\0", 12);
    pb_msg(g, 5, &z);
    t_begin(&z, "v", I8, "3");
    pb_bytes(&z, 9, "\0\0\0", 3);
    pb_msg(g, 5, &z);
}

/* The bias is on the scale of the sums. */
TEST(quantised_products)
{
    const spec one[] = { { "", "QuantizeLinear", "x,s,z", "" },
                         { MS, "QGemm", "t0,s,z,w,u,v,c", "transB=i:1 alpha=f:2" } };
    const spec plain[] = { { "", "QuantizeLinear", "x,s,z", "" },      { "", "DequantizeLinear", "t0,s,z", "" },
                           { "", "DequantizeLinear", "w,u,v", "axis=i:0" }, { "", "Mul", "s,u", "" },
                           { "", "DequantizeLinear", "c,t3", "axis=i:0" },  { "", "Gemm", "t1,t2,t4", "transB=i:1" },
                           { "", "Add", "t5,t5", "" } };
    const char *const shape[2] = { "2,4", "4" };
    int n0, n1;
    const double *a = run(t, one, 2, shape, product_scales, &n0), *b = run(t, plain, 7, shape, product_scales, &n1);
    CHECK_EQ(n0, n1);
    for (int i = 0; i < n0; i++)
        CHECK_NEAR(a[i], b[i], 1e-6 * (1 + fabs(b[i])));
}

TEST(contrib_ops_of_unknown_use_are_refused)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "1,3,8");
    g_input(&g, "w", F32, "4,3,3");
    g_node_in(&g, MS, "FusedConv", "x,w", "y", "activation=s:Mystery");
    g_output(&g, "y", F32, NULL);
    import_bad(t, &g, 17, NULL, HONE_E_UNSUPPORTED, "\"Mystery\" is not known here");
}

static void image_weights(hn_str *g)
{
    g_floats(g, "w", "2,2,1,1", "0.5,-1,2,0.25");
    g_floats(g, "b", "2", "0.125,-0.5");
}

TEST(images_with_channels_last)
{
    SAME(&(spec){ MS, "NhwcFusedConv", "x,w,b,y", "activation=s:Relu pads=is:0,1,1,0 kernel_shape=is:1,1" },
         PLAIN({ "", "Transpose", "x", "perm=is:0,3,1,2" }, { "", "Conv", "t0,w,b", "pads=is:0,1,1,0" },
               { "", "Transpose", "t1", "perm=is:0,2,3,1" }, { "", "Add", "t2,y", "" }, { "", "Relu", "t3", "" }),
         "1,3,4,2", "1,4,5,2", image_weights);
    SAME(&(spec){ MS, "NhwcMaxPool", "x", "kernel_shape=is:2,3 strides=is:1,2" },
         PLAIN({ "", "Transpose", "x", "perm=is:0,3,1,2" }, { "", "MaxPool", "t0", "kernel_shape=is:2,3 strides=is:1,2" },
               { "", "Transpose", "t1", "perm=is:0,2,3,1" }),
         "2,3,5,3", "1", NULL);
}

static void embedding(hn_str *g)
{
    g_ints(g, "ids", "1,3", "2,0,1");
    g_ints(g, "kinds", "1,3", "0,1,1");
    g_ints(g, "places", "1,3", "0,1,2");
    g_floats(g, "scale", "4", "1,2,-1,0.5");
    g_floats(g, "shift", "4", "0,0.25,1,-1");
    g_floats(g, "kind", "2,4", "0.5,1,-1,2,0,0.25,3,-2");
}

TEST(embeddings_and_their_norm)
{
    SAME(&(spec){ MS, "EmbedLayerNormalization", "ids,kinds,x,y,kind,scale,shift", "epsilon=f:0.01" },
         PLAIN({ "", "Gather", "x,ids", "" }, { "", "Gather", "y,places", "" }, { "", "Add", "t0,t1", "" },
               { "", "Gather", "kind,kinds", "" }, { "", "Add", "t2,t3", "" },
               { "", "LayerNormalization", "t4,scale,shift", "epsilon=f:0.01" }),
         "5,4", "6,4", embedding);
    SAME(&(spec){ MS, "TransposeMatMul", "x,y", "transA=i:1 alpha=f:0.5" },
         PLAIN({ "", "Gemm", "x,y", "transA=i:1 alpha=f:0.5" }), "3,4", "3,2", NULL);
}

static void channels(hn_str *g)
{
    g_floats(g, "s", "4", "1,2,-1,0.5");
    g_floats(g, "b", "4", "0.5,0.25,0,-1");
}

TEST(blocks_of_diffusion_models)
{
    SAME(&(spec){ MS, "GroupNorm", "x,s,b", "groups=i:2 activation=i:1 epsilon=f:0.01" },
         PLAIN({ "", "Transpose", "x", "perm=is:0,3,1,2" }, { "", "GroupNormalization", "t0,s,b", "num_groups=i:2 epsilon=f:0.01" },
               { "", "Transpose", "t1", "perm=is:0,2,3,1" }, { "", "Sigmoid", "t2", "" }, { "", "Mul", "t2,t3", "" }),
         "2,3,2,4", "1", channels);
    SAME(&(spec){ MS, "BiasAdd", "x,b,y", "" }, PLAIN({ "", "Add", "x,b", "" }, { "", "Add", "t0,y", "" }), "2,3,4", "2,3,4", channels);
    SAME(&(spec){ MS, "GemmFastGelu", "x,y,b", "" },
         PLAIN({ "", "MatMul", "x,y", "" }, { "", "Add", "t0,b", "" }, { "", "Gelu", "t1", "approximate=s:tanh" }), "2,3", "3,4", channels);
}

/* Two experts of one matrix each way, both chosen: their shares are the router's softmax. */
static void experts(hn_str *g)
{
    g_floats(g, "w1", "2,3,2", "1,2,-1,0.5,0.25,-2,3,1,-0.5,1,2,-1");
    g_floats(g, "w2", "2,2,3", "0.5,1,-1,2,0.25,1,-2,1,0.5,1,-1,2");
    g_floats(g, "a1", "3,2", "1,2,-1,0.5,0.25,-2");
    g_floats(g, "a2", "2,3", "0.5,1,-1,2,0.25,1");
    g_floats(g, "b1", "3,2", "3,1,-0.5,1,2,-1");
    g_floats(g, "b2", "2,3", "-2,1,0.5,1,-1,2");
    g_ints(g, "first", "1", "0");
    g_ints(g, "second", "1", "1");
}

TEST(mixtures_of_experts)
{
    SAME(&(spec){ MS, "MoE", "x,y,w1,,w2", "activation_type=s:relu k=i:2" },
         PLAIN({ "", "Gemm", "x,a1", "transB=i:1" }, { "", "Relu", "t0", "" }, { "", "Gemm", "t1,a2", "transB=i:1" },
               { "", "Gemm", "x,b1", "transB=i:1" }, { "", "Relu", "t3", "" }, { "", "Gemm", "t4,b2", "transB=i:1" },
               { "", "Softmax", "y", "" }, { "", "Gather", "t6,first", "axis=i:1" }, { "", "Gather", "t6,second", "axis=i:1" },
               { "", "Mul", "t2,t7", "" }, { "", "Mul", "t5,t8", "" }, { "", "Add", "t9,t10", "" }),
         "5,2", "5,2", experts);
}

static void refused(hn_test *t, const char *op, const char *in, const char *attrs, const char *why)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "5,2");
    g_input(&g, "y", F32, "5,2");
    experts(&g);
    g_node_in(&g, MS, op, in, "z", attrs);
    g_output(&g, "z", F32, NULL);
    import_bad(t, &g, 21, NULL, HONE_E_UNSUPPORTED, why);
}

TEST(experts_of_unknown_use_are_refused)
{
    refused(t, "MoE", "x,y,w1,,w2", "use_sparse_mixer=i:1 k=i:2", "sparse mixer");
    refused(t, "MoE", "x,y,w1,,w2", "activation_type=s:swiglu k=i:2", "layer of the experts is missing");
    refused(t, "QMoE", "x,y,w1,a1,,w2,a2", "quant_type=s:fp4 k=i:2", "weights of type \"fp4\"");
    refused(t, "QMoE", "x,y,w1,a1,,w2,a2", "expert_weight_bits=i:3 k=i:2", "weights of 3 bits");
}
