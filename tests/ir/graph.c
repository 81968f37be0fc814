/* Values, nodes, builders, changes. */
#include "ir/graphs.h"

#include <stdio.h>
#include <string.h>

static hn_graph *empty(hn_test *t, hn_builder *b, hn_diag *dg)
{
    hn_graph *g = hn_graph_new(t->arena, "g");
    hn_builder_init(b, g, dg);
    return g;
}

static const hn_tdesc f32x4 = {.dtype = HN_F32, .rank = 1, .dim = {4}};

TEST(graph_names_are_unique)
{
    hn_graph *g = hn_graph_new(t->arena, "g"), *body = hn_subgraph_new(g, NULL);
    hn_value *a = hn_graph_input(g, "x", &f32x4), *b = hn_graph_input(g, "x", &f32x4),
             *c = hn_graph_input(body, "x", &f32x4);
    CHECK_STR(a->name, "x");
    CHECK(strcmp(b->name, "x") != 0 && strcmp(c->name, "x") != 0 && strcmp(b->name, c->name) != 0);
    CHECK(hn_graph_find(g, "x") == a);
    CHECK(hn_graph_find(body, b->name) == b);
    hn_value_rename(a, "y");
    CHECK(hn_graph_find(g, "x") == NULL);
    CHECK(hn_graph_find(g, "y") == a);
    hn_value_rename(b, "y");
    CHECK(strcmp(b->name, "y") != 0);
    hn_value_rename(a, "y");
    CHECK_STR(a->name, "y");
}

TEST(graph_many_names)
{
    hn_graph *g = hn_graph_new(t->arena, "g");
    char name[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "v%d", i);
        hn_graph_input(g, name, &f32x4);
    }
    for (int i = 0; i < 5000; i += 3) {
        snprintf(name, sizeof name, "w%d", i);
        hn_value_rename(g->in[i], name);
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, i % 3 ? "v%d" : "w%d", i);
        CHECK(hn_graph_find(g, name) == g->in[i]);
    }
}

TEST(graph_uses_are_kept)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]  y = add(x, x)  z = mul(y, x)  out z  out x");
    hn_value *x = g->in[0], *y = g->first->out[0];
    CHECK_EQ(x->n_uses, 4);
    CHECK_EQ(y->n_uses, 1);
    CHECK(hn_has_one_use(y) && !hn_has_one_use(x));
    hn_set_in(g->last, 1, y);
    CHECK_EQ(x->n_uses, 3);
    CHECK_EQ(y->n_uses, 2);
    hn_graph_set_output(g, 1, y);
    CHECK_EQ(x->n_uses, 2);
    int n = 0;
    HN_FOR_USES (u, y) {
        CHECK(u->value == y);
        n += u->node == NULL;
    }
    CHECK_EQ(n, 1);
    hn_test_valid(g);
}

TEST(graph_outputs_may_grow_and_repeat)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]");
    for (int i = 0; i < 100; i++)
        hn_graph_output(g, g->in[0], NULL);
    CHECK_EQ(g->n_out, 100);
    CHECK_EQ(g->in[0]->n_uses, 100);
    hn_test_valid(g);
}

TEST(graph_replace_moves_every_reader)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]  in c bool  y = neg(x) from \"/a\"  z = relu(y)\n"
                                   "w = if(c) { out y } { q = abs(y)  out q }  out y as k  out z  out w");
    hn_builder b;
    hn_diag dg = {0};
    hn_value *y = g->first->out[0];
    hn_builder_init(&b, g, &dg);
    hn_at(&b, g->first);
    static const char *const origin[] = {"/b"};
    b.origin = origin;
    b.n_origin = 1;
    hn_value *n = hn_b1(&b, HN_OP_tanh, g->in[0], HN_NO_ATTRS);
    hn_replace(&b, y, n);
    CHECK_EQ(y->n_uses, 0);
    CHECK_EQ(n->n_uses, 4);
    CHECK_STR(n->name, "y"); /* a generated name gives way */
    CHECK_STR(g->out_name[0], "k");
    CHECK_EQ(n->def->n_origin, 2);
    CHECK_STR(n->def->origin[0], "/a");
    hn_unlink(y->def);
    CHECK(!hn_value_is_live(y));
    hn_test_valid(g);
}

TEST(graph_replace_by_a_reader_of_the_value)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]  y = neg(x)  out x  out y");
    hn_builder b;
    hn_diag dg = {0};
    hn_builder_init(&b, g, &dg);
    hn_replace(&b, g->in[0], g->first->out[0]);
    CHECK(hn_in(g->first, 0) == g->in[0]);
    CHECK(g->out[0].value == g->first->out[0]);
    CHECK_STR(g->first->out[0]->name, "y");
    hn_test_valid(g);
}

TEST(graph_replace_moves_symbols)
{
    hn_graph *g = hn_test_graph(
        t, "in x f32[3,5]  i, c = nonzero(x)  y = cast(i) {to=f32}  d = dims() {dim=[7]}  out y");
    hn_builder b;
    hn_diag dg = {0};
    hn_value *c = g->first->out[1];
    hn_builder_init(&b, g, &dg);
    hn_at(&b, g->first->next);
    hn_value *w = hn_b1(&b, HN_OP_identity, c, HN_NO_ATTRS);
    hn_replace(&b, c, w);
    CHECK(g->value_dims.at[0].value == w);
}

/* ---- builders ---- */

TEST(builder_failure_is_sticky)
{
    hn_builder b;
    hn_diag dg = {0};
    hn_graph *g = empty(t, &b, &dg);
    hn_value *x = hn_graph_input(g, "x", &f32x4);
    const hn_tdesc d5 = {.dtype = HN_F32, .rank = 1, .dim = {5}};
    hn_value *y = hn_b2(&b, HN_OP_add, x, hn_graph_input(g, "y", &d5), HN_NO_ATTRS);
    CHECK(!y && b.status == HONE_E_SHAPE && dg.code == HONE_E_SHAPE);
    CHECK(strstr(dg.frames, "(add)"));
    CHECK(!hn_b1(&b, HN_OP_neg, y, HN_NO_ATTRS) && !hn_b1(&b, HN_OP_neg, x, HN_NO_ATTRS) &&
          !hn_const_f(&b, HN_F32, 1));
    CHECK_EQ(g->n_node, 0);
    CHECK_EQ(x->n_uses, 0); /* what failed reads nothing */
}

static void refuses(hn_test *t, hn_op op, int n_in, const hn_attr_set *attrs, int n_out, const char *part)
{
    hn_builder b;
    hn_diag dg = {0};
    hn_graph *g = empty(t, &b, &dg);
    hn_value *x = hn_graph_input(g, "x", &f32x4);
    CHECK(!hn_build(&b, op, n_in, (hn_value *[]){x, x, x}, attrs, n_out));
    if (!strstr(dg.message, part)) FAIL("\"%s\" lacks \"%s\"", dg.message, part);
}

TEST(builder_refuses_malformed_uses)
{
    static const int64_t two = 2;
    refuses(t, HN_OP_relu, 2, HN_NO_ATTRS, 0, "operands");
    refuses(t, HN_OP_add, 1, HN_NO_ATTRS, 0, "operands");
    refuses(t, HN_OP_relu, 1, HN_NO_ATTRS, 2, "results");
    refuses(t, HN_OP_relu, 1, HN_ATTRS_ARG(HN_A_I("axis", 1)), 0, "no attribute \"axis\"");
    refuses(t, HN_OP_softmax, 1, HN_ATTRS_ARG(HN_A_F("axis", 1)), 0, "another kind");
    refuses(t, HN_OP_cast, 1, HN_NO_ATTRS, 0, "needs the attribute \"to\"");
    refuses(t, HN_OP_cast, 1, HN_ATTRS_ARG(HN_A_T("to", 99)), 0, "no dtype");
    refuses(t, HN_OP_pad, 1,
            HN_ATTRS_ARG(HN_A_I("mode", 17), HN_A_DIMS("before", 1, &two), HN_A_DIMS("after", 1, &two)), 0,
            "none of");
    refuses(t, (hn_op)65, 1, HN_NO_ATTRS, 0, "not known");
}

TEST(builder_refuses_absent_operands)
{
    hn_builder b;
    hn_diag dg = {0};
    empty(t, &b, &dg);
    CHECK(!hn_b1(&b, HN_OP_relu, NULL, HN_NO_ATTRS));
    CHECK(strstr(dg.message, "operand 0 of relu is missing"));
}

TEST(builder_constants)
{
    hn_builder b;
    hn_diag dg = {0};
    hn_graph *g = empty(t, &b, &dg);
    double f;
    int64_t i;
    CHECK(hn_const_scalar(hn_const_f(&b, HN_F16, 0.1), &f));
    CHECK_NEAR(f, hn_round_f64(HN_F16, 0.1, true), 0);
    CHECK(hn_const_i64(hn_const_f(&b, HN_I8, 3.9), 0, &i));
    CHECK_EQ(i, 3);
    CHECK(hn_const_scalar(hn_const_i(&b, HN_F32, -7), &f));
    CHECK_NEAR(f, -7, 0);
    CHECK(hn_const_scalar(hn_const_f(&b, HN_BOOL, 0.5), &f));
    CHECK_NEAR(f, 1, 0);
    CHECK(hn_const_scalar(hn_const_i(&b, HN_U64, -1), &f));
    CHECK_NEAR(f, 18446744073709551616.0, 0);
    const int64_t dim[2] = {2, 2};
    hn_value *m = hn_const_fs(&b, HN_F32, 2, dim, (double[]){5, 5, 5, 5});
    CHECK(hn_const_scalar(m, &f) && f == 5);
    CHECK(!hn_const_scalar(hn_const_fs(&b, HN_F32, 2, dim, (double[]){5, 5, 5, 6}), &f));
    hn_value *v = hn_const_is(&b, 3, (int64_t[]){4, -1, 6});
    CHECK_EQ(v->n_content, 3);
    CHECK(hn_dim_known(g->syms, v->content[1], &i) && i == -1);
    CHECK(hn_const_i64(v, 2, &i) && i == 6);
    CHECK(!hn_const_i64(v, 3, &i) && !hn_const_i64(v, -1, &i));
    CHECK_OK(b.status, &dg);
}

TEST(builder_dims)
{
    hn_builder b;
    hn_diag dg = {0};
    hn_graph *g = empty(t, &b, &dg);
    const hn_dim n = hn_sym_add(g->syms, "n", HN_SYM_INPUT);
    CHECK(hn_is_const(hn_const_dims(&b, 2, (hn_dim[]){3, hn_dim_const(g->syms, -1)})));
    hn_value *d = hn_const_dims(&b, 2, (hn_dim[]){3, n});
    CHECK(hn_is_op(d, HN_OP_dims));
    CHECK_EQ(d->n_content, 2);
    CHECK(d->content[1] == n);
}

TEST(builder_shorthands)
{
    hn_builder b;
    hn_diag dg = {0};
    hn_graph *g = empty(t, &b, &dg);
    const hn_dim n = hn_sym_add(g->syms, "n", HN_SYM_INPUT);
    hn_value *x = hn_graph_input(g, "x", &(hn_tdesc){.dtype = HN_F32, .rank = 2, .dim = {n, 6}});
    CHECK(hn_reshape(&b, x, 2, x->type.dim) == x);
    CHECK(hn_transpose(&b, x, (int64_t[]){0, 1}) == x);
    CHECK(hn_cast(&b, x, HN_F32) == x);
    CHECK(hn_broadcast_to(&b, x, 2, x->type.dim) == x);
    CHECK(hn_slice(&b, x, 0, 0, n) == x);
    CHECK(hn_slice(&b, x, 1, 2, 3)->type.dim[1] == 3);
    CHECK(hn_transpose(&b, x, (int64_t[]){1, 0})->type.dim[1] == n);
    CHECK(hn_reshape(&b, x, 3, (hn_dim[]){n, 2, 3})->type.rank == 3);
    CHECK(hn_cast(&b, x, HN_F16)->type.dtype == HN_F16);
    CHECK(hn_broadcast_to(&b, x, 3, (hn_dim[]){5, n, 6})->type.dim[0] == 5);
    CHECK_OK(b.status, &dg);
    hn_test_valid(g);
}

TEST(builder_cursor_and_origins)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]  y = neg(x) from \"/a\"  z = abs(y) from \"/b\"  out z");
    hn_builder b;
    hn_diag dg = {0};
    hn_builder_init(&b, g, &dg);
    hn_at(&b, g->last);
    hn_builder_origin_of(&b, g->first);
    hn_value *v = hn_b1(&b, HN_OP_relu, g->first->out[0], HN_NO_ATTRS);
    CHECK(g->first->next == v->def && v->def->next == g->last);
    CHECK_EQ(v->def->n_origin, 2);
    CHECK_STR(v->def->origin[1], "/b");
}

TEST(builder_attributes_read_back)
{
    hn_graph *g = hn_test_graph(
        t,
        "in x f32[4,4]  y = transpose(x) {perm=[1,0]}  z = softmax(y)  w = layer_norm(z) {axis=1, eps=0.5}\n"
        "c = cast(w) {to=f16}  out c");
    int n;
    CHECK(hn_attr_is(g->first, "perm", &n)[0] == 1 && n == 2);
    CHECK_EQ(hn_attr_i(g->first->next, "axis"), hn_op_find("softmax", 7)->attrs[0].dflt_i);
    CHECK_NEAR(hn_attr_f(g->last->prev, "eps"), 0.5, 0);
    CHECK_EQ(hn_attr_i(g->last, "to"), HN_F16);
    hn_set_attr(g->last, "to", (hn_attr){.set = true, .i = HN_F64});
    hn_diag dg = {0};
    CHECK_OK(hn_reinfer(g, &dg), &dg);
    CHECK_EQ(g->out[0].value->type.dtype, HN_F64);
}

TEST(builder_like)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]  in c bool  in v f32[4]\n"
                                   "y = if(c) { a = mul(x, v)  out a } { i, k = nonzero(x)  f = cast(k) "
                                   "{to=f32}  d = mul(f, x)  out d }\n"
                                   "out y");
    hn_builder b;
    hn_diag dg = {0};
    hn_builder_init(&b, g, &dg);
    hn_node *n = hn_build_like(&b, g->last, 1, (hn_value *[]){g->in[1]});
    CHECK_OK(b.status, &dg);
    CHECK(n->body[0] != g->first->body[0] && n->body[0]->owner == n);
    hn_graph_output(g, n->out[0], "again");
    CHECK_EQ(g->in[0]->n_uses, 6);
    CHECK_EQ(g->value_dims.n, 2);
    CHECK(g->value_dims.at[0].sym != g->value_dims.at[1].sym);
    hn_test_valid(g);
}

TEST(body_is_set_later)
{
    hn_builder b;
    hn_diag dg = {0};
    hn_graph *g = empty(t, &b, &dg);
    hn_value *c = hn_graph_input(g, "c", &(hn_tdesc){.dtype = HN_BOOL}), *x = hn_graph_input(g, "x", &f32x4);
    hn_node *n = hn_build(&b, HN_OP_if, 1, &c, HN_NO_ATTRS, 1);
    CHECK_OK(b.status, &dg);
    for (int i = 0; i < 2; i++) {
        hn_graph *body = hn_subgraph_new(g, NULL);
        hn_graph_output(body, x, NULL);
        CHECK_EQ(hn_node_set_body(n, i, body), HONE_OK);
        CHECK_EQ(hn_node_set_body(n, i, body), HONE_E_INVALID); /* taken */
    }
    CHECK_EQ(n->out[0]->type.rank, 1);
    hn_graph_output(g, n->out[0], NULL);
    hn_test_valid(g);
}

/* ---- inference ---- */

TEST(content_flows)
{
    hn_graph *g = hn_test_graph(
        t, "sym n\nin x f32[n,6]  d = dims(x) {dim=[n,6]}  const i i64 = {0}  const two i64 = {2}\n"
           "a = gather(d, i) {axis=0}  b = mul(a, two)  out b");
    const hn_value *b = g->out[0].value;
    CHECK_EQ(b->n_content, 1);
    hn_str s = {0};
    hn_dim_print(g->syms, b->content[0], &s);
    CHECK_STR(hn_str_get(&s), "2*n");
    hn_str_done(&s);
}

TEST(reinfer_follows_changed_operands)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]  in w f32[7]  in c bool\n"
                                   "y = neg(x)  z = if(c) { a = abs(y)  out a } { out y }  out z");
    hn_diag dg = {0};
    hn_set_in(g->first, 0, g->in[1]);
    CHECK_OK(hn_reinfer(g, &dg), &dg);
    CHECK_EQ(g->out[0].value->type.dim[0], 7);
    hn_test_valid(g);
}

TEST(reinfer_raises)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]  in w f32[7]  y = add(x, x)  out y");
    hn_diag dg = {0};
    hn_set_in(g->first, 0, g->in[1]);
    CHECK_ERR(hn_reinfer(g, &dg), HONE_E_SHAPE, &dg, "\"y\" (add)");
}
