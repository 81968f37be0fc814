/* What models compute once imported, where versions, formats or habits of exporters make it easy to get
 * wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/eval.h"
#include "make.h"

static void expect(hn_test *t, const hn_graph *g, const double *const *in, int n, const double *want)
{
    int have;
    const double *got = eval_floats(t, g, in, 0, &have);
    CHECK_EQ(have, n);
    for (int i = 0; i < n; i++) {
        hn_test_note("element %d", i);
        CHECK_NEAR(got[i], want[i], 1e-5);
    }
}

#define ROWS(...)                                                                                            \
    (const double *const[])                                                                                  \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define ROW(...)                                                                                             \
    (const double[])                                                                                         \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

/* One op of float inputs named x, y, z. */
static hn_graph *op(hn_test *t, int opset, const char *name, const char *shape, const char *in,
                    const char *attrs, hn_str *consts)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, shape);
    if (consts) {
        hn_str_add_n(&g, hn_str_get(consts), consts->n);
        hn_str_done(consts);
        memset(consts, 0, sizeof *consts);
    }
    g_node(&g, name, in, "out", attrs);
    g_output(&g, "out", 0, NULL);
    return import_ok(t, &g, opset, NULL);
}

TEST(softmax_before_opset_13_is_over_all_later_axes)
{
    const double x[] = { 0, 0, 0, 0, 1, 1, 1, 1 };
    const double e = exp(1), s = 4 + 4 * e;
    const hn_graph *g = op(t, 11, "Softmax", "1,2,4", "x", "", NULL);
    expect(t, g, ROWS(x), 8, ROW(1 / s, 1 / s, 1 / s, 1 / s, e / s, e / s, e / s, e / s));
    g = op(t, 13, "Softmax", "1,2,4", "x", "", NULL);
    expect(t, g, ROWS(x), 8, ROW(.25, .25, .25, .25, .25, .25, .25, .25));
}

TEST(reductions_with_axes_as_attribute)
{
    const double x[] = { 1, -2, 3, 4 };
    expect(t, op(t, 13, "ReduceL1", "1,1,2,2", "x", "axes=is:3", NULL), ROWS(x), 2, ROW(3, 7));
    expect(t, op(t, 13, "ReduceSumSquare", "1,1,2,2", "x", "axes=is:-1 keepdims=i:0", NULL), ROWS(x), 2,
           ROW(5, 25));
}

TEST(reductions_with_empty_axes)
{
    const double x[] = { 1, -2, 3, 4 };
    hn_str c = { 0 };
    expect(t, op(t, 18, "ReduceSum", "2,2", "x", "", NULL), ROWS(x), 1, ROW(6));
    expect(t, op(t, 18, "ReduceSum", "2,2", "x", "noop_with_empty_axes=i:1", NULL), ROWS(x), 4, x);
    g_ints(&c, "a", "0", "");
    expect(t, op(t, 18, "ReduceSum", "2,2", "x,a", "", &c), ROWS(x), 1, ROW(6));
    g_ints(&c, "a", "0", "");
    expect(t, op(t, 18, "ReduceSumSquare", "2,2", "x,a", "noop_with_empty_axes=i:1", &c), ROWS(x), 4,
           ROW(1, 4, 9, 16));
}

/* x[5] sliced by starts, ends, steps on axis 0 */
static void slice(hn_test *t, const char *start, const char *end, const char *step, int n, const double *want)
{
    hn_str c = { 0 };
    g_ints(&c, "s", "1", start);
    g_ints(&c, "e", "1", end);
    g_ints(&c, "a", "1", "0");
    g_ints(&c, "d", "1", step);
    expect(t, op(t, 13, "Slice", "5", "x,s,e,a,d", "", &c), ROWS(ROW(0, 1, 2, 3, 4)), n, want);
}

TEST(slice_bounds_far_out)
{
    slice(t, "-1", "9223372036854775807", "-1", 0, NULL);
    slice(t, "-1", "2147483647", "-1", 0, NULL);
    slice(t, "-1", "-9223372036854775808", "-1", 5, ROW(4, 3, 2, 1, 0));
    slice(t, "-1", "-2147483648", "-2", 3, ROW(4, 2, 0));
    slice(t, "0", "9223372036854775807", "2", 3, ROW(0, 2, 4));
    slice(t, "0", "5", "-1", 0, NULL);
    slice(t, "-2", "100", "1", 2, ROW(3, 4));
    slice(t, "3", "1", "1", 0, NULL);
    slice(t, "10", "-10", "-1", 5, ROW(4, 3, 2, 1, 0));
}

TEST(slice_backwards_through_nothing)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "n");
    g_ints(&g, "s", "1", "-1");
    g_ints(&g, "e", "1", "-9223372036854775808");
    g_ints(&g, "a", "1", "0");
    g_node(&g, "Slice", "x,s,e,a,s", "y", "");
    g_output(&g, "y", F32, NULL);
    const hn_graph *r = import_ok(t, &g, 13, NULL);
    const double none[] = { 0 }, x[] = { 3, 7, 8, 9 };
    expect(t, r, ROWS(none), 0, NULL);
    expect(t, r, ROWS(x), 3, ROW(9, 8, 7));
}

TEST(slice_whose_bounds_a_run_gives)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "n");
    g_input(&g, "s", I64, "1");
    g_input(&g, "e", I64, "1");
    g_node(&g, "Slice", "x,s,e", "y", "");
    g_output(&g, "y", F32, NULL);
    const hn_graph *r = import_ok(t, &g, 13, NULL);
    const double x[] = { 5, 0, 1, 2, 3, 4 };
    expect(t, r, ROWS(x, ROW(-2), ROW(100)), 2, ROW(3, 4));
    expect(t, r, ROWS(x, ROW(1), ROW(-1)), 3, ROW(1, 2, 3));
    expect(t, r, ROWS(x, ROW(3), ROW(1)), 0, NULL);
}

TEST(reshape_whose_shape_a_run_gives)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "2,3");
    g_input(&g, "s", I64, "2");
    g_node(&g, "Reshape", "x,s", "y", "");
    g_node(&g, "Shape", "y", "shape", "");
    g_output(&g, "shape", I64, NULL);
    const hn_graph *r = import_ok(t, &g, 13, NULL);
    const double x[] = { 0, 1, 2, 3, 4, 5 };
    expect(t, r, ROWS(x, ROW(3, 2)), 2, ROW(3, 2));
    expect(t, r, ROWS(x, ROW(-1, 1)), 2, ROW(6, 1));
    expect(t, r, ROWS(x, ROW(0, -1)), 2, ROW(2, 3));
}

TEST(reshape_keeps_symbols)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "b,s,12");
    g_ints(&g, "i0", "1", "0");
    g_ints(&g, "i1", "1", "1");
    g_ints(&g, "heads", "1", "3");
    g_ints(&g, "rest", "1", "-1");
    g_node(&g, "Shape", "x", "shape", "");
    g_node(&g, "Gather", "shape,i0", "b", "axis=i:0");
    g_node(&g, "Gather", "shape,i1", "s", "axis=i:0");
    g_node(&g, "Concat", "b,s,heads,rest", "to", "axis=i:0");
    g_node(&g, "Reshape", "x,to", "y", "");
    g_output(&g, "y", F32, NULL);
    const hn_graph *r = import_ok(t, &g, 13, NULL);
    const hn_dim *d = r->out[0].value->type.dim;
    CHECK_EQ(r->n_node, 1);
    CHECK_EQ(d[0], r->in[0]->type.dim[0]);
    CHECK_EQ(d[1], r->in[0]->type.dim[1]);
    CHECK_EQ(d[2], 3);
    CHECK_EQ(d[3], 4);
}

TEST(squeeze_attribute_takes_the_named_axis_alone)
{
    const hn_graph *g = op(t, 11, "Squeeze", "1,3,1,4", "x", "axes=is:2", NULL);
    CHECK_EQ(g->out[0].value->type.rank, 3);
    CHECK_EQ(g->out[0].value->type.dim[0], 1);
}

TEST(old_broadcasting_lies_along_an_axis)
{
    hn_str c = { 0 };
    g_floats(&c, "y", "2", "10,20");
    expect(t, op(t, 6, "Add", "1,2,2", "x,y", "broadcast=i:1 axis=i:1", &c), ROWS(ROW(1, 2, 3, 4)), 4,
           ROW(11, 12, 23, 24));
}

TEST(resize_vectors)
{
    const double x[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    hn_str c = { 0 };
    g_floats(&c, "s", "4", "1,1,0.6,0.6");
    expect(t, op(t, 13, "Resize", "1,1,2,4", "x,,s", "mode=s:linear", &c), ROWS(x), 2,
           ROW(2.6666665, 4.3333331));
    g_floats(&c, "s", "4", "1,1,0.6,0.6");
    expect(t,
           op(t, 13, "Resize", "1,1,2,4", "x,,s",
              "mode=s:linear coordinate_transformation_mode=s:align_corners", &c),
           ROWS(x), 2, ROW(1, 3.142857));
    g_ints(&c, "z", "4", "1,1,1,3");
    expect(t, op(t, 13, "Resize", "1,1,2,4", "x,,,z", "", &c), ROWS(x), 3, ROW(1, 2, 4));
}

TEST(conv_transpose_extents)
{
    hn_str c = { 0 };
    g_floats(&c, "w", "2,1,3,3", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1");
    const hn_graph *g = op(t, 11, "ConvTranspose", "1,2,3,3", "x,w",
                           "strides=is:2,2 auto_pad=s:SAME_UPPER output_padding=is:1,1", &c);
    CHECK_EQ(g->out[0].value->type.dim[2], 6);
    CHECK_EQ(g->out[0].value->type.dim[3], 6);
    g_floats(&c, "w", "2,1,3,3", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1");
    g = op(t, 11, "ConvTranspose", "1,2,3,3", "x,w", "strides=is:3,2 output_shape=is:10,8", &c);
    CHECK_EQ(g->out[0].value->type.dim[2], 10);
    CHECK_EQ(g->out[0].value->type.dim[3], 8);
}

/* The kernel's size comes out of a run: compress keeps as many columns of the weights as the mask says. */
static hn_graph *open_kernel(hn_test *t, const char *name, const char *x, const char *w, const char *attrs)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, x);
    g_input(&g, "w", F32, w);
    g_input(&g, "keep", F32, "3");
    g_node(&g, "Cast", "keep", "mask", "to=i:9");
    g_node(&g, "Compress", "w,mask", "k", "axis=i:2");
    g_node(&g, name, "x,k", "out", attrs);
    g_output(&g, "out", F32, NULL);
    return import_ok(t, &g, 17, NULL);
}

TEST(kernels_whose_size_only_a_run_shows)
{
    const double x[] = { 1, 2, 3, 4 }, w[] = { 1, 10, 100 }, one[] = { 0, 1, 0 }, two[] = { 1, 0, 1 }, three[] = { 1, 1, 1 };
    const hn_graph *g = open_kernel(t, "Conv", "1,1,4", "1,1,3", "auto_pad=s:SAME_LOWER");
    expect(t, g, ROWS(x, w, one), 4, ROW(10, 20, 30, 40));
    expect(t, g, ROWS(x, w, two), 4, ROW(100, 201, 302, 403));
    expect(t, g, ROWS(x, w, three), 4, ROW(210, 321, 432, 43));
    g = open_kernel(t, "Conv", "1,1,4", "1,1,3", "strides=is:2 pads=is:1,0");
    expect(t, g, ROWS(x, w, one), 3, ROW(0, 20, 40));
    expect(t, g, ROWS(x, w, two), 2, ROW(100, 302));
    g = open_kernel(t, "Conv", "1,1,4", "1,1,3", "kernel_shape=is:2"); /* the attribute knows */
    CHECK_EQ(g->out[0].value->type.dim[2], 3);
    expect(t, g, ROWS(x, w, two), 3, ROW(201, 302, 403));
    g = open_kernel(t, "ConvTranspose", "1,1,2", "1,1,3", "strides=is:3");
    expect(t, g, ROWS(x, w, one), 4, ROW(10, 0, 0, 20));
    expect(t, g, ROWS(x, w, three), 6, ROW(1, 10, 100, 2, 20, 200));
    g = open_kernel(t, "ConvTranspose", "1,1,2", "1,1,3", "strides=is:2 auto_pad=s:SAME_UPPER");
    expect(t, g, ROWS(x, w, one), 4, ROW(10, 0, 20, 0)); /* what the kernel lacks is at the end */
    expect(t, g, ROWS(x, w, two), 4, ROW(1, 100, 2, 200));
    expect(t, g, ROWS(x, w, three), 4, ROW(1, 10, 102, 20));
    g = open_kernel(t, "ConvTranspose", "1,1,2", "1,1,3", "output_shape=is:4");
    expect(t, g, ROWS(x, w, one), 4, ROW(10, 20, 0, 0));
    expect(t, g, ROWS(x, w, three), 4, ROW(1, 12, 120, 200));
}

TEST(scales_over_extents_that_only_a_run_shows)
{
    const double x[] = { 0, 10, 20, 30, 40 }, all[] = { 1, 1, 1, 1, 1 }, few[] = { 1, 0, 1, 1, 0 };
    hn_str g = { 0 };
    g_input(&g, "x", F32, "1,1,5");
    g_input(&g, "keep", F32, "5");
    g_node(&g, "Cast", "keep", "mask", "to=i:9");
    g_node(&g, "Compress", "x,mask", "k", "axis=i:2");
    g_floats(&g, "s", "3", "1,1,0.7071"); /* no small fraction */
    g_node(&g, "Resize", "k,,s", "out", "mode=s:linear coordinate_transformation_mode=s:asymmetric");
    g_output(&g, "out", F32, NULL);
    const hn_graph *r = import_ok(t, &g, 17, NULL);
    expect(t, r, ROWS(x, all), 3, ROW(0, 10 / 0.7071f, 20 / 0.7071f));
    expect(t, r, ROWS(x, few), 2, ROW(0, 20 + 10 * (1 / 0.7071f - 1)));
}

TEST(pool_extents)
{
    static const struct {
        const char *attrs;
        int64_t extent;
    } want[] = {
        { "kernel_shape=is:3 strides=is:3 auto_pad=s:SAME_LOWER", 4 },
        { "kernel_shape=is:3 strides=is:3 auto_pad=s:VALID ceil_mode=i:1", 3 },
        { "kernel_shape=is:3 strides=is:3 ceil_mode=i:1", 4 },
        { "kernel_shape=is:2 strides=is:4 ceil_mode=i:1 pads=is:0,1", 3 },
        { "kernel_shape=is:1 strides=is:5 ceil_mode=i:1 pads=is:0,1",
          2 }, /* a window wholly in padding is dropped */
    };
    for (int i = 0; i < HN_COUNT(want); i++) {
        hn_test_note("%s", want[i].attrs);
        const hn_graph *g = op(t, 12, "MaxPool", "1,1,10", "x", want[i].attrs, NULL);
        CHECK_EQ(g->out[0].value->type.dim[2], want[i].extent);
    }
}

TEST(a_branch_that_shapes_contradict_fails_only_when_taken)
{
    hn_str g = { 0 }, yes = { 0 }, no = { 0 }, more = { 0 };
    hn_diag dg = { 0 };
    g_node(&yes, "Neg", "x", "a", "");
    g_output(&yes, "a", F32, NULL);
    g_node(&no, "Transpose", "x", "b", "perm=is:0,1,2");
    g_output(&no, "b", F32, NULL);
    a_graph(&more, "then_branch", &yes);
    a_graph(&more, "else_branch", &no);
    g_input(&g, "c", BOOL, "");
    g_input(&g, "x", F32, "2");
    g_node_named(&g, NULL, "If", "c", "y", "", &more);
    g_output(&g, "y", F32, NULL);
    const hn_graph *r = import_ok(t, &g, 13, NULL);
    expect(t, r, ROWS(ROW(1), ROW(3, -4)), 2, ROW(-3, 4));
    hn_tensor in[2] = { 0 }, out[1] = { 0 };
    for (int i = 0; i < 2; i++)
        CHECK_OK(hn_tensor_init(&in[i], &r->in[i]->type, &dg), &dg);
    CHECK(hn_eval_run(r, &(hn_eval_opts){ .mode = HN_EVAL_OWN }, in, out, &dg) != HONE_OK);
    for (int i = 0; i < 2; i++)
        hn_tensor_done(&in[i]);
}

/* y and t are also what the If and a node after it are called: in a body they mean the body's own, two bodies down too. */
TEST(bodies_may_use_the_names_of_nodes_outside)
{
    hn_str g = { 0 }, yes = { 0 }, no = { 0 }, in_yes = { 0 }, in_no = { 0 }, more = { 0 };
    g_node(&in_yes, "Neg", "x", "t", "");
    g_node(&in_yes, "Abs", "t", "y", "");
    g_output(&in_yes, "y", F32, NULL);
    g_node(&in_no, "Identity", "t", "z", ""); /* the t of the branch around it */
    g_output(&in_no, "z", F32, NULL);
    a_graph(&more, "then_branch", &in_yes);
    a_graph(&more, "else_branch", &in_no);
    g_node(&yes, "Add", "x,late", "t", "");
    g_node_named(&yes, NULL, "If", "d", "y", "", &more);
    g_output(&yes, "y", F32, NULL);
    g_node(&no, "Neg", "x", "t", "");
    g_node(&no, "Identity", "t", "y", "");
    g_output(&no, "y", F32, NULL);
    a_graph(&more, "then_branch", &yes);
    a_graph(&more, "else_branch", &no);
    g_input(&g, "c", BOOL, "");
    g_input(&g, "d", BOOL, "");
    g_input(&g, "x", F32, "2");
    g_node_named(&g, NULL, "If", "c", "y", "", &more);
    g_node(&g, "Mul", "y,x", "t", "");
    g_node(&g, "Mul", "x,x", "late", "");
    g_output(&g, "t", F32, NULL);
    const hn_graph *r = import_ok(t, &g, 13, NULL);
    expect(t, r, ROWS(ROW(1), ROW(1), ROW(3, -4)), 2, ROW(9, -16));
    expect(t, r, ROWS(ROW(1), ROW(0), ROW(3, -4)), 2, ROW(36, -48));
    expect(t, r, ROWS(ROW(0), ROW(0), ROW(3, -4)), 2, ROW(-9, -16));
}

TEST(loop_as_while_runs_as_often_as_its_condition_holds)
{
    /* while (sum(x) < 10) { x += 1; n++ } from x = [2.2, 3.3] runs three times */
    hn_str g = { 0 }, body = { 0 }, more = { 0 };
    g_input(&body, "i", I64, "");
    g_input(&body, "go", BOOL, "");
    g_input(&body, "x_in", F32, "2");
    g_input(&body, "n_in", F32, "");
    g_node(&body, "Add", "x_in,one", "x_out", "");
    g_node(&body, "Add", "n_in,one", "n_out", "");
    g_node(&body, "ReduceSum", "x_out", "sum", "keepdims=i:0");
    g_node(&body, "Less", "sum,ten", "more", "");
    g_output(&body, "more", BOOL, NULL);
    g_output(&body, "x_out", F32, NULL);
    g_output(&body, "n_out", F32, NULL);
    a_graph(&more, "body", &body);
    g_input(&g, "x", F32, "2");
    g_floats(&g, "one", "", "1");
    g_floats(&g, "ten", "", "10");
    g_floats(&g, "zero", "", "0");
    g_node(&g, "ReduceSum", "x", "sum0", "keepdims=i:0");
    g_node(&g, "Less", "sum0,ten", "go0", "");
    g_node_named(&g, NULL, "Loop", ",go0,x,zero", "x_end,n_end", "", &more);
    g_output(&g, "n_end", F32, NULL);
    expect(t, import_ok(t, &g, 13, NULL), ROWS(ROW(2.2, 3.3)), 1, ROW(3));
}

TEST(loop_with_scan_outputs_alone)
{
    hn_str g = { 0 }, body = { 0 }, more = { 0 };
    g_input(&body, "i", I64, "");
    g_input(&body, "go", BOOL, "");
    g_node(&body, "Identity", "go", "go_on", "");
    g_node(&body, "Cast", "i", "f", "to=i:1");
    g_node(&body, "Add", "f,x", "row", "");
    g_output(&body, "go_on", BOOL, NULL);
    g_output(&body, "row", F32, NULL);
    a_graph(&more, "body", &body);
    g_input(&g, "x", F32, "1");
    g_ints(&g, "trip", "", "3");
    g_node_named(&g, NULL, "Loop", "trip,", "rows", "", &more);
    g_output(&g, "rows", F32, NULL);
    expect(t, import_ok(t, &g, 13, NULL), ROWS(ROW(10)), 3, ROW(10, 11, 12));
}

TEST(loop_carry_that_grows)
{
    hn_str g = { 0 }, body = { 0 }, more = { 0 };
    g_input(&body, "i", I64, "");
    g_input(&body, "go", BOOL, "");
    g_input(&body, "v", F32, "?");
    g_node(&body, "Concat", "v,x", "w", "axis=i:0");
    g_output(&body, "go", BOOL, NULL);
    g_output(&body, "w", F32, NULL);
    a_graph(&more, "body", &body);
    g_input(&g, "x", F32, "1");
    g_ints(&g, "trip", "", "3");
    g_node_named(&g, NULL, "Loop", "trip,,x", "y", "", &more);
    g_output(&g, "y", F32, NULL);
    expect(t, import_ok(t, &g, 13, NULL), ROWS(ROW(7)), 4, ROW(7, 7, 7, 7));
}

/* The body is made twice, as its carry turns out to grow: what the first one's inner body read must not count it as a reader. */
TEST(loop_carry_that_grows_around_a_loop)
{
    hn_str g = { 0 }, inner = { 0 }, body = { 0 }, more = { 0 };
    g_input(&inner, "j", I64, "");
    g_input(&inner, "on", BOOL, "");
    g_node(&inner, "Identity", "on", "stay_on", "");
    g_node(&inner, "Identity", "x", "row", "");
    g_output(&inner, "stay_on", BOOL, NULL);
    g_output(&inner, "row", F32, NULL);
    a_graph(&more, "body", &inner);
    g_input(&body, "i", I64, "");
    g_input(&body, "go", BOOL, "");
    g_input(&body, "v", F32, "?");
    g_node_named(&body, NULL, "Loop", "two,", "rows", "", &more);
    g_node(&body, "ReduceSum", "rows", "sum", "keepdims=i:0");
    g_node(&body, "Add", "v,sum", "v2", "");
    g_node(&body, "Concat", "v2,x", "w", "axis=i:0");
    g_output(&body, "go", BOOL, NULL);
    g_output(&body, "w", F32, NULL);
    a_graph(&more, "body", &body);
    g_input(&g, "x", F32, "1");
    g_ints(&g, "two", "", "2");
    g_node_named(&g, NULL, "Loop", "two,,x", "y", "", &more);
    g_output(&g, "y", F32, NULL);
    expect(t, import_ok(t, &g, 13, NULL), ROWS(ROW(7)), 3, ROW(35, 21, 7));
}

/* A body for Scan: the sum so far of vectors, as its state and as what it yields at each step. */
static void prefix_sums(hn_str *ret, const char *dims)
{
    hn_str body = { 0 };
    g_input(&body, "s", F32, dims);
    g_input(&body, "c", F32, dims);
    g_node(&body, "Add", "s,c", "s2", "");
    g_node(&body, "Identity", "s2", "o", "");
    g_output(&body, "s2", F32, NULL);
    g_output(&body, "o", F32, NULL);
    a_graph(ret, "body", &body);
}

TEST(scan_backwards_along_an_inner_axis)
{
    /* prefix sums of the columns of x[2,3] from the right, results put back on axis 1 from the left */
    hn_str g = { 0 }, more = { 0 };
    prefix_sums(&more, "2");
    g_input(&g, "x", F32, "2,3");
    g_floats(&g, "zero", "2", "0,0");
    g_node_named(&g, NULL, "Scan", "zero,x", "last,all",
                 "num_scan_inputs=i:1 scan_input_axes=is:1 scan_input_directions=is:1 scan_output_axes=is:1",
                 &more);
    g_output(&g, "all", F32, NULL);
    expect(t, import_ok(t, &g, 13, NULL), ROWS(ROW(1, 2, 3, 10, 20, 30)), 6, ROW(3, 5, 6, 30, 50, 60));
}

/* Per sample of [batch,3,1]: the sum from a start, then its prefixes from the end. repeats: along the batch, seen by the run alone. */
static const hn_graph *scan8(hn_test *t, bool repeats)
{
    hn_str g = { 0 }, more = { 0 };
    prefix_sums(&more, "1");
    g_input(&g, "start", F32, "2,1");
    g_input(&g, "x", F32, "2,3,1");
    if (repeats) {
        g_input(&g, "times", F32, "3");
        g_node(&g, "Cast", "times", "each", "to=i:7");
        g_node(&g, "Tile", "x,each", "seq", "");
        g_node(&g, "Slice", "each", "two", "starts=is:0 ends=is:2");
        g_node(&g, "Tile", "start,two", "s0", "");
    }
    g_node_named(&g, NULL, "Scan", repeats ? ",s0,seq" : ",start,x", "last,all", "num_scan_inputs=i:1 directions=is:1", &more);
    g_node(&g, "Squeeze", "all", "flat", "axes=is:2");
    g_node(&g, "Concat", "last,flat", "y", "axis=i:1");
    g_output(&g, "y", F32, NULL);
    return import_ok(t, &g, 8, NULL);
}

TEST(scan_of_opset_8_over_a_batch)
{
    const double x[] = { 1, 2, 3, 10, 20, 30 }, start[] = { 0, 5 }, once[] = { 1, 1, 1 }, twice[] = { 2, 1, 1 };
    const double want[] = { 6, 3, 5, 6, 65, 35, 55, 65, 6, 3, 5, 6, 65, 35, 55, 65 };
    expect(t, scan8(t, false), ROWS(start, x), 8, want);
    const hn_graph *open = scan8(t, true);
    expect(t, open, ROWS(start, x, once), 8, want);
    expect(t, open, ROWS(start, x, twice), 16, want);
}

TEST(batch_first_recurrence_is_the_other_transposed)
{
    int n0, n1;
    for (int k = 0; k < 3; k++) {
        static const char *const ops[] = { "LSTM", "GRU", "RNN" };
        static const int gates[] = { 4, 3, 1 };
        char w[32], r[32], wv[512] = "", rv[512] = "";
        snprintf(w, sizeof w, "1,%d,2", 2 * gates[k]);
        for (int i = 0; i < 4 * gates[k]; i++) {
            snprintf(wv + strlen(wv), sizeof wv - strlen(wv), "%s%g", i ? "," : "", 0.1 * (i % 7) - 0.2);
            snprintf(rv + strlen(rv), sizeof rv - strlen(rv), "%s%g", i ? "," : "", 0.3 - 0.1 * (i % 5));
        }
        snprintf(r, sizeof r, "%s", w);
        hn_str c = { 0 };
        g_floats(&c, "w", w, wv);
        g_floats(&c, "r", r, rv);
        /* x[s=2,b=2,i=2] against the same data as [b,s,i] */
        const hn_graph *a = op(t, 14, ops[k], "2,2,2", "x,w,r", "hidden_size=i:2", &c);
        g_floats(&c, "w", w, wv);
        g_floats(&c, "r", r, rv);
        const hn_graph *b = op(t, 14, ops[k], "2,2,2", "x,w,r", "hidden_size=i:2 layout=i:1", &c);
        const double *p = eval_floats(t, a, ROWS(ROW(1, 2, 3, 4, 5, 6, 7, 8)), 0, &n0); /* [s,d,b,h] */
        const double *q = eval_floats(t, b, ROWS(ROW(1, 2, 5, 6, 3, 4, 7, 8)), 0, &n1); /* [b,s,d,h] */
        CHECK_EQ(n0, n1);
        for (int s = 0; s < 2; s++)
            for (int i = 0; i < 2; i++)
                for (int h = 0; h < 2; h++)
                    CHECK_NEAR(p[(s * 2 + i) * 2 + h], q[(i * 2 + s) * 2 + h], 1e-6);
    }
}

TEST(matmul_of_vectors)
{
    hn_str c = { 0 };
    g_floats(&c, "w", "3", "1,2,3");
    expect(t, op(t, 13, "MatMul", "3", "x,w", "", &c), ROWS(ROW(1, 1, 2)), 1, ROW(9));
    g_floats(&c, "w", "2,2,3", "1,2,3,4,5,6,1,0,0,0,1,0");
    expect(t, op(t, 13, "MatMul", "2", "x,w", "", &c), ROWS(ROW(1, 2)), 6, ROW(9, 12, 15, 1, 2, 0));
}

TEST(matmul_nbits_unpacks_low_nibbles_first)
{
    hn_str g = { 0 }, w = { 0 };
    t_begin(&w, "w", U8, "1,1,8"); /* one row of 16 weights */
    pb_bytes(&w, 9, "\x98\x8A\x88\x88\x88\x88\x88\x88", 8);
    g_input(&g, "x", F32, "1,16");
    pb_msg(&g, 5, &w);
    g_floats(&g, "s", "1", "0.5");
    g_node_in(&g, "com.microsoft", "MatMulNBits", "x,w,s", "y", "K=i:16 N=i:1 bits=i:4 block_size=i:16");
    g_output(&g, "y", F32, NULL);
    const double x[16] = { 1, 10, 100, 1000 };
    expect(t, import_ok(t, &g, 17, NULL), ROWS(x), 1, ROW(0.5 * (0 + 10 * 1 + 100 * 2)));
}

TEST(quantised_constants_stay_small)
{
    hn_str g = { 0 }, w = { 0 };
    char bytes[128];
    memset(bytes, 3, sizeof bytes);
    t_begin(&w, "w", I8, "128");
    pb_bytes(&w, 9, bytes, sizeof bytes);
    pb_msg(&g, 5, &w);
    g_input(&g, "x", F32, "128");
    g_floats(&g, "s", "", "0.5");
    g_node(&g, "DequantizeLinear", "w,s", "f", "");
    g_node(&g, "Add", "x,f", "y", "");
    g_output(&g, "y", F32, NULL);
    CHECK_EQ(count_op(import_ok(t, &g, 13, NULL), HN_OP_dequantize), 1);
}
