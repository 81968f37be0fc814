/* What graphs come out: names, order, symbols, constants, bodies, functions. */
#include <stdio.h>
#include <string.h>

#include "make.h"

TEST(node_becomes_op_with_name_and_origin)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "2,3");
    g_node_named(&g, "/enc/act", "Relu", "x", "y", "", NULL);
    g_node_named(&g, NULL, "Neg", "y", "z", "", NULL);
    g_output(&g, "z", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, NULL);
    CHECK_EQ(r->n_node, 2);
    CHECK_EQ(r->first->op, HN_OP_relu);
    CHECK_STR(r->first->out[0]->name, "y");
    CHECK_STR(r->first->origin[0], "/enc/act");
    CHECK_STR(r->last->origin[0], "/Neg_1");
    CHECK_STR(r->out_name[0], "z");
}

TEST(nodes_out_of_order_are_sorted)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "2");
    g_node(&g, "Neg", "c", "d", "");
    g_node(&g, "Relu", "b", "c", "");
    g_node(&g, "Abs", "x", "b", "");
    g_output(&g, "d", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, NULL);
    CHECK_EQ(r->first->op, HN_OP_abs);
    CHECK_EQ(r->last->op, HN_OP_neg);
}

TEST(body_reads_later_outer_node)
{
    hn_str g = { 0 }, yes = { 0 }, no = { 0 }, more = { 0 };
    g_node(&yes, "Neg", "late", "a", "");
    g_output(&yes, "a", F32, NULL);
    g_node(&no, "Abs", "late", "b", "");
    g_output(&no, "b", F32, NULL);
    a_graph(&more, "then_branch", &yes);
    a_graph(&more, "else_branch", &no);
    g_input(&g, "c", BOOL, "");
    g_input(&g, "x", F32, "2");
    g_node_named(&g, "choose", "If", "c", "y", "", &more);
    g_node(&g, "Relu", "x", "late", "");
    g_output(&g, "y", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, NULL);
    CHECK_EQ(r->first->op, HN_OP_relu);
    CHECK_EQ(r->last->op, HN_OP_if);
    CHECK_STR(r->last->body[0]->first->origin[0], "/choose/then_branch/Neg_0");
}

TEST(known_condition_inlines_one_branch)
{
    hn_str g = { 0 }, yes = { 0 }, no = { 0 }, more = { 0 };
    g_node(&yes, "Neg", "x", "a", "");
    g_output(&yes, "a", F32, NULL);
    g_node(&no, "NoSuchOp", "x", "b", ""); /* not taken: never looked at */
    g_output(&no, "b", F32, NULL);
    a_graph(&more, "then_branch", &yes);
    a_graph(&more, "else_branch", &no);
    g_input(&g, "x", F32, "2,3");
    g_ints(&g, "three", "", "3");
    g_ints(&g, "one", "", "1");
    g_node(&g, "Shape", "x", "s", "");
    g_node(&g, "Gather", "s,one", "d", "axis=i:0");
    g_node(&g, "Equal", "d,three", "c", "");
    g_node_named(&g, NULL, "If", "c", "y", "", &more);
    g_output(&g, "y", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, NULL);
    CHECK_EQ(r->n_node, 1);
    CHECK_EQ(r->first->op, HN_OP_neg);
}

TEST(squeeze_branch_is_chosen_when_the_rank_depends_on_it)
{
    hn_str g = { 0 }, yes = { 0 }, no = { 0 }, more = { 0 };
    g_ints(&g, "one", "", "1");
    g_ints(&g, "axes", "1", "1");
    g_node(&yes, "Squeeze", "x,axes", "a", "");
    g_output(&yes, "a", F32, NULL);
    g_node(&no, "Identity", "x", "b", "");
    g_output(&no, "b", F32, NULL);
    a_graph(&more, "then_branch", &yes);
    a_graph(&more, "else_branch", &no);
    g_input(&g, "x", F32, "2,n");
    g_node(&g, "Shape", "x", "s", "");
    g_node(&g, "Gather", "s,one", "d", "axis=i:0");
    g_node(&g, "Equal", "d,one", "c", "");
    g_node_named(&g, NULL, "If", "c", "y", "", &more);
    g_output(&g, "y", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, NULL);
    CHECK_EQ(r->out[0].value->type.rank, 1);
}

/* ---- symbols ---- */

TEST(named_dims_are_shared_and_odd_names_are_not)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "batch,?,?");
    g_input(&g, "y", F32, "batch,floor(h/2),0");
    g_node(&g, "Relu", "x", "a", "");
    g_node(&g, "Relu", "y", "b", "");
    g_output(&g, "a", F32, NULL);
    g_output(&g, "b", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, NULL);
    const hn_dim *x = r->in[0]->type.dim, *y = r->in[1]->type.dim;
    CHECK_EQ(x[0], y[0]);
    CHECK_STR(hn_sym_get(r->syms, x[0])->name, "batch");
    CHECK(x[1] != x[2]);
    CHECK_STR(hn_sym_get(r->syms, x[1])->name, "x_1");
    CHECK_STR(hn_sym_get(r->syms, y[1])->name, "y_1");
    CHECK_STR(hn_sym_get(r->syms, y[2])->name, "y_2");
}

TEST(dims_given_by_name_or_axis_are_fixed)
{
    const hn_import_dim dim[] = { { "batch", 4 }, { "x.1", 7 } };
    const hn_import_opts opts = { .dim = dim, .n_dim = 2 };
    hn_str g = { 0 };
    g_input(&g, "x", F32, "batch,?");
    g_node(&g, "Relu", "x", "a", "");
    g_output(&g, "a", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, &opts);
    CHECK_EQ(r->in[0]->type.dim[0], 4);
    CHECK_EQ(r->in[0]->type.dim[1], 7);
}

TEST(profiles_bound_symbols_and_fix_them_when_equal)
{
    const int64_t lo[] = { 1, 8 }, opt[] = { 4, 8 }, hi[] = { 16, 8 };
    const hn_import_profile p = { "x", 2, lo, opt, hi };
    const hn_import_opts opts = { .profile = &p, .n_profile = 1 };
    hn_str g = { 0 };
    g_input(&g, "x", F32, "n,seq");
    g_input(&g, "y", F32, "seq");
    g_node(&g, "Add", "x,y", "a", "");
    g_output(&g, "a", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, &opts);
    const hn_sym *n = hn_sym_get(r->syms, r->in[0]->type.dim[0]);
    CHECK_EQ(n->min, 1);
    CHECK_EQ(n->opt, 4);
    CHECK_EQ(n->max, 16);
    CHECK_EQ(r->in[0]->type.dim[1], 8);
    CHECK_EQ(r->in[1]->type.dim[0], 8); /* shares the symbol */
}

TEST(profiles_that_do_not_fit_are_refused)
{
    const int64_t lo[] = { 4 }, hi[] = { 2 }, three[] = { 3 };
    const hn_import_profile down = { "x", 1, lo, lo, hi }, rank = { "x", 1, three, three, three };
    hn_import_opts opts = { .profile = &down, .n_profile = 1 };
    hn_str g = { 0 };
    g_input(&g, "x", F32, "n");
    g_node(&g, "Relu", "x", "a", "");
    g_output(&g, "a", F32, NULL);
    import_bad(t, &g, 13, &opts, HONE_E_INVALID, "has bounds 4, 4, 2");
    opts.profile = &rank;
    g_input(&g, "x", F32, "n,2");
    g_node(&g, "Relu", "x", "a", "");
    g_output(&g, "a", F32, NULL);
    import_bad(t, &g, 13, &opts, HONE_E_INVALID, "has rank 1, the input 2");
}

/* ---- constants ---- */

TEST(default_inputs_are_constants_unless_kept)
{
    const char *const keep[] = { "w" };
    const hn_import_opts opts = { .keep_input = keep, .n_keep_input = 1 };
    for (int k = 0; k < 2; k++) {
        hn_str g = { 0 };
        g_input(&g, "x", F32, "2");
        g_input(&g, "w", F32, "2");
        g_floats(&g, "w", "2", "1,2");
        g_node(&g, "Add", "x,w", "a", "");
        g_output(&g, "a", F32, NULL);
        hn_graph *r = import_ok(t, &g, 13, k ? &opts : NULL);
        CHECK_EQ(r->n_in, k ? 2 : 1);
    }
}

TEST(a_given_value_is_no_input_any_more)
{
    static const int64_t axes[] = { 1 };
    const hn_import_value v = { "axes", { .dtype = HN_I64, .rank = 1, .dim = { 1 } }, axes };
    const hn_import_opts opts = { .value = &v, .n_value = 1 };
    hn_str g = { 0 };
    g_input(&g, "x", F32, "2,3");
    g_input(&g, "axes", I64, "1");
    g_node(&g, "ReduceSum", "x,axes", "y", "keepdims=i:0");
    g_output(&g, "y", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, &opts);
    CHECK_EQ(r->n_in, 1);
    CHECK_EQ(r->out[0].value->type.rank, 1);
    CHECK_EQ(r->out[0].value->type.dim[0], 2);
}

TEST(unused_initializers_are_not_kept)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "2");
    g_floats(&g, "unused", "2", "1,2");
    g_node(&g, "Relu", "x", "a", "");
    g_output(&g, "a", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, NULL);
    CHECK_EQ(r->consts.n, 0);
}

TEST(initializer_or_input_as_output)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "2");
    g_floats(&g, "w", "2", "1,2");
    g_node(&g, "Add", "x,w", "a", "");
    g_output(&g, "a", F32, NULL);
    g_output(&g, "w", F32, NULL);
    g_output(&g, "x", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, NULL);
    CHECK_EQ(r->n_out, 3);
    CHECK(hn_is_const(r->out[1].value));
    CHECK(r->out[2].value == r->in[0]);
}

TEST(typed_fields_and_packed_types)
{
    static const int32_t half[] = { 0x3C00, 0xC000 };
    hn_str g = { 0 }, a = { 0 }, b = { 0 }, c = { 0 };
    t_begin(&a, "h", 10, "2"); /* float16 in int32_data */
    pb_int(&a, 5, half[0]);
    pb_int(&a, 5, half[1]);
    pb_msg(&g, 5, &a);
    t_begin(&b, "n", U4, "3");
    pb_bytes(&b, 9, "\x21\x03", 2);
    pb_msg(&g, 5, &b);
    t_begin(&c, "f", BOOL, "2");
    pb_bytes(&c, 9, "\x07\x00", 2);
    pb_msg(&g, 5, &c);
    g_output(&g, "h", 10, NULL);
    g_output(&g, "n", U4, NULL);
    g_output(&g, "f", BOOL, NULL);
    hn_graph *r = import_ok(t, &g, 21, NULL);
    double h[2];
    int64_t n[3];
    hn_widen_f64(HN_F16, r->out[0].value->data->at, 0, 2, h);
    CHECK_NEAR(h[0], 1, 0);
    CHECK_NEAR(h[1], -2, 0);
    hn_widen_i64(HN_U4, r->out[1].value->data->at, 0, 3, n);
    CHECK_EQ(n[0], 1);
    CHECK_EQ(n[1], 2);
    CHECK_EQ(n[2], 3);
    CHECK_EQ(((const uint8_t *)r->out[2].value->data->at)[0], 1);
}

TEST(pads_made_by_shape_arithmetic_are_folded)
{
    /* What torch.onnx writes for a reflect pad: pairs from the back, turned round by slice and transpose. */
    hn_str g = { 0 };
    g_input(&g, "x", F32, "1,8");
    g_ints(&g, "pads", "2", "2,3");
    g_ints(&g, "two", "1", "2");
    g_ints(&g, "rows", "2", "-1,2");
    g_ints(&g, "from", "1", "-1");
    g_ints(&g, "to", "1", "-9223372036854775807");
    g_ints(&g, "axis", "1", "0");
    g_ints(&g, "flat", "1", "-1");
    g_node(&g, "ConstantOfShape", "two", "zero_f", "");
    g_node(&g, "Cast", "zero_f", "zero", "to=i:7");
    g_node(&g, "Concat", "pads,zero", "all", "axis=i:0");
    g_node(&g, "Reshape", "all,rows", "pairs", "");
    g_node(&g, "Slice", "pairs,from,to,axis,from", "back", "");
    g_node(&g, "Transpose", "back", "cols", "perm=is:1,0");
    g_node(&g, "Reshape", "cols,flat", "p", "");
    g_node(&g, "Pad", "x,p", "y", "mode=s:reflect");
    g_output(&g, "y", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, NULL);
    CHECK_EQ(r->n_node, 1);
    CHECK_EQ(r->out[0].value->type.dim[1], 13);
}

TEST(an_arange_of_floats_over_an_extent_keeps_the_symbol)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "n,2");
    g_ints(&g, "i", "", "0");
    g_floats(&g, "zero", "", "0");
    g_floats(&g, "one", "", "1");
    g_node(&g, "Shape", "x", "s", "");
    g_node(&g, "Gather", "s,i", "d", "axis=i:0");
    g_node(&g, "Cast", "d", "f", "to=i:1");
    g_node(&g, "Range", "zero,f,one", "y", "");
    g_output(&g, "y", F32, NULL);
    hn_graph *r = import_ok(t, &g, 13, NULL);
    CHECK_EQ(r->out[0].value->type.dim[0], r->in[0]->type.dim[0]);
}

/* ---- functions ---- */

static void function(hn_str *m, const char *name, hn_str *body, const char *attr)
{
    hn_str f = { 0 }, o = { 0 };
    pb_str(&f, 1, name);
    pb_str(&f, 10, "mine");
    pb_str(&f, 4, "a");
    pb_str(&f, 5, "b");
    if (attr) pb_str(&f, 6, attr);
    pb_str(&o, 1, "");
    pb_int(&o, 2, 13);
    pb_msg(&f, 9, &o);
    hn_str_add_n(&f, hn_str_get(body), body->n);
    hn_str_done(body);
    memset(body, 0, sizeof *body);
    pb_msg(m, 25, &f);
}

/* A function's nodes stand in field 7, a graph's in field 1: the same bytes under another tag. */
static void function_node(hn_str *f, const char *domain, const char *op, const char *in, const char *out,
                          const char *attrs)
{
    hn_str g = { 0 };
    g_node_in(&g, domain, op, in, out, attrs);
    g.s[0] = 7 << 3 | 2;
    hn_str_add_n(f, hn_str_get(&g), g.n);
    hn_str_done(&g);
}

/* A model of one call of a function, without that. */
static void calling(hn_str *m, const char *name, const char *attrs)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "2,3,4");
    g_node_in(&g, "mine", name, "x", "y", attrs);
    g_output(&g, "y", F32, NULL);
    m_model(m, &g, 13);
}

TEST(functions_are_inlined_with_their_attributes)
{
    hn_str m = { 0 }, f = { 0 };
    hn_graph *r = NULL;
    hn_diag dg = { 0 };
    calling(&m, "Soft", "where=i:1");
    function_node(&f, "", "Softmax", "a", "t", "axis=ref:where");
    function_node(&f, "", "Neg", "t", "b", "");
    function(&m, "Soft", &f, "where");
    CHECK_OK(hn_import_mem(t->arena, hn_str_get(&m), m.n, NULL, NULL, &r, NULL, &dg), &dg);
    CHECK_EQ(r->n_node, 2);
    CHECK_EQ(hn_attr_i(r->first, "axis"), 1);
    CHECK_STR(r->first->origin[0], "/Soft_0/Softmax_0");
    hn_str_done(&m);
}

TEST(a_function_that_calls_itself_is_refused)
{
    hn_str m = { 0 }, f = { 0 };
    hn_graph *r = NULL;
    hn_diag dg = { 0 };
    calling(&m, "Again", "");
    function_node(&f, "mine", "Again", "a", "b", "");
    function(&m, "Again", &f, NULL);
    CHECK_ERR(hn_import_mem(t->arena, hn_str_get(&m), m.n, NULL, NULL, &r, NULL, &dg), HONE_E_MODEL, &dg,
              "calls itself");
    hn_str_done(&m);
}

/* n functions, each calling the next so many times; the last is a node. */
static void chain(hn_test *t, int n, int times, const char *op, const char *in, const char *attrs, const char *part)
{
    hn_str m = { 0 }, f = { 0 };
    hn_graph *r = NULL;
    hn_diag dg = { 0 };
    calling(&m, "F0", "");
    for (int i = 0; i < n; i++) {
        char name[16], next[16];
        snprintf(name, sizeof name, "F%d", i);
        snprintf(next, sizeof next, "F%d", i + 1);
        for (int k = 0; k < times; k++)
            function_node(&f, i + 1 < n ? "mine" : "", i + 1 < n ? next : op, i + 1 < n ? "a" : in, k ? "c" : "b",
                          i + 1 < n ? "" : attrs);
        function(&m, name, &f, NULL);
    }
    CHECK_ERR(hn_import_mem(t->arena, hn_str_get(&m), m.n, NULL, NULL, &r, NULL, &dg), HONE_E_LIMIT, &dg, part);
    CHECK(hn_arena_used(t->arena) < (size_t)1 << 30);
    hn_str_done(&m);
}

TEST(functions_that_spell_out_to_too_much_are_refused)
{
    chain(t, 70, 1, "Neg", "a", "", "deeper than 64 levels");
    chain(t, 40, 2, "Neg", "a", "", "nodes once they are spelled out");
}

/* 2^12 calls alone are few enough; what each of them takes counts too. */
TEST(functions_that_spell_out_to_too_many_operands_and_numbers_are_refused)
{
    enum { N = 500 };
    hn_str in = { 0 }, numbers = { 0 };
    for (int i = 0; i < N; i++) {
        hn_str_add(&in, i ? ",a" : "a");
        hn_str_add(&numbers, i ? ",1" : "value_ints=is:1");
    }
    chain(t, 12, 2, "Sum", hn_str_get(&in), "", "nodes once they are spelled out");
    chain(t, 15, 2, "Constant", "", hn_str_get(&numbers), "nodes once they are spelled out");
    hn_str_done(&in);
    hn_str_done(&numbers);
}
