/* Whole graphs: sweeping, cloning, extracting, hashing. */
#include "ir/graphs.h"

#include <string.h>

/* ---- dead nodes ---- */

TEST(sweep_removes_chains)
{
    hn_graph *g = hn_test_graph(
        t, "in x f32[4]  const w f32[4]  a = neg(x)  b = add(a, w)  c = abs(b)  y = relu(x)  out y");
    CHECK_EQ(hn_sweep_dead(g), 3);
    CHECK_EQ(g->n_node, 1);
    CHECK_EQ(g->consts.n, 0);
    CHECK_EQ(g->n_in, 1);
    hn_test_valid(g);
    CHECK_EQ(hn_sweep_dead(g), 0);
}

TEST(sweep_looks_into_bodies)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]  in c bool  a = neg(x)  b = abs(x)\n"
                                   "y = if(c) { d = add(a, x)  e = mul(b, b)  out d } { out x }  out y");
    CHECK_EQ(hn_sweep_dead(g), 2); /* e, and b with it */
    CHECK_EQ(g->n_node, 2);
    hn_test_valid(g);
}

TEST(sweep_keeps_what_symbols_need)
{
    /* nothing reads c or i, but the extent of z is c's element */
    hn_graph *g = hn_test_graph(
        t, "sym k = c[0]\nin x f32[3]  i, c = nonzero(x)  z = iota() {dtype=i64, dim=[k], axis=0}  out z");
    CHECK_EQ(hn_sweep_dead(g), 0);
    CHECK_EQ(g->n_node, 2);
    hn_test_valid(g);
    g = hn_test_graph(
        t, "sym k = c[0]\nin x f32[3]  i, c = nonzero(x)  z = iota() {dtype=i64, dim=[k], axis=0}  out x");
    CHECK_EQ(hn_sweep_dead(g), 2);
    CHECK_EQ(g->value_dims.n, 0);
}

TEST(sweep_random_graphs)
{
    for (uint64_t seed = 100; seed < 130; seed++) {
        hn_graph *g = hn_test_random_graph(t, seed, 40);
        const hn_digest before = hn_graph_digest(g);
        hn_sweep_dead(g);
        hn_test_valid(g);
        CHECK(hn_digest_eq(before, hn_graph_digest(g)));
    }
}

/* ---- clones ---- */

TEST(clone_is_equal_and_apart)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        hn_test_note("seed %d", (int)seed);
        hn_graph *g = hn_test_random_graph(t, seed, 30), *h;
        const char *text = hn_test_text(t, g);
        const hn_digest digest = hn_graph_digest(g);
        hn_arena *a = hn_arena_create();
        hn_value **map;
        h = hn_clone(a, g, &map);
        CHECK(h && h->arena == a && h->syms != g->syms);
        hn_test_valid(h);
        CHECK_STR(hn_test_text(t, h), text);
        CHECK(hn_digest_eq(digest, hn_graph_digest(h)));
        for (int i = 0; i < g->n_out; i++)
            CHECK(map[g->out[i].value->id] == h->out[i].value);
        hn_arena_destroy(a);
        CHECK_STR(hn_test_text(t, g), text);
    }
}

TEST(clone_keeps_symbols)
{
    hn_graph *g =
        hn_test_graph(t, "sym n [1,4,64]\nin x f32[n,2*n+1]  i, c = nonzero(x)  y = cast(i) {to=f32}  out y");
    hn_graph *h = hn_clone(t->arena, g, NULL);
    CHECK_STR(hn_test_text(t, h), hn_test_text(t, g));
    CHECK(h->value_dims.at[0].value->graph == h);
}

TEST(clone_of_many_shared_dims_is_quick)
{
    /* every extent is used twice by the next: 2^60 paths */
    hn_graph *g = hn_graph_new(t->arena, "");
    hn_dim d = hn_sym_add(g->syms, "n", HN_SYM_INPUT), e = hn_sym_add(g->syms, "m", HN_SYM_INPUT);
    for (int i = 0; i < 60; i++)
        d = hn_dim_select(g->syms, hn_dim_lt(g->syms, d, e), hn_dim_floordiv(g->syms, d, 3),
                          hn_dim_max(g->syms, d, e));
    hn_graph_output(g, hn_graph_input(g, "x", &(hn_tdesc){.dtype = HN_F32, .rank = 1, .dim = {d}}), NULL);
    CHECK(hn_clone(t->arena, g, NULL) != NULL);
    CHECK(hn_validate(g, true, NULL));
    const hn_digest h = hn_graph_digest(g);
    CHECK(h.lo || h.hi);
    CHECK_EQ(hn_sweep_dead(g), 0);
}

TEST(subst_specialises)
{
    hn_graph *g =
        hn_test_graph(t, "sym n  sym m\nin x f32[n,m]  in c bool  y = reshape(x) {dim=[n*m]}\n"
                         "z = if(c) { a = neg(y)  out a } { out y }  d = dims(x) {dim=[n,m]}  out z  out d");
    hn_diag dg = {0};
    const hn_dim sub[2] = {3, hn_sym_at(g->syms, 1)};
    CHECK_OK(hn_graph_subst(g, sub, &dg), &dg);
    hn_test_valid(g);
    CHECK_STR(hn_test_text(t, g),
              "sym n\nsym m\nin x f32[3,m]\nin c bool[]\ny f32[3*m] = reshape(x) {dim=[3*m]}\n"
              "z f32[3*m] = if(c) {\n  a f32[3*m] = neg(y)\n  out a\n} {\n  out y\n}\n"
              "d i64[2] = dims(x) {dim=[3,m]}\nout z\nout d\n");
    CHECK_EQ(g->out[1].value->content[0], 3);
}

TEST(subst_that_contradicts_is_refused)
{
    hn_graph *g = hn_test_graph(t, "sym n  sym m\nin x f32[n]  in y f32[m]  z = add(x, y)  out z");
    hn_diag dg = {0};
    CHECK_ERR(hn_graph_subst(g, (hn_dim[]){3, 4}, &dg), HONE_E_SHAPE, &dg, "(add)");
}

/* ---- extraction ---- */

TEST(extract_a_region)
{
    hn_graph *g = hn_test_graph(
        t, "sym n\nin x f32[n,4]  const w f32[4,4]  const s f32 = {2}\n"
           "p = neg(x)  a = matmul(p, w)  b = mul(a, s)  c = add(b, p)  q = abs(c)  out q  out a");
    hn_node *node[3];
    int k = 0;
    for (hn_node *n = g->first->next; k < 3; n = n->next)
        node[2 - k++] = n; /* any order will do */
    hn_value *out[2] = {node[0]->out[0], node[2]->out[0]}, **in;
    hn_graph *h = hn_extract(t->arena, node, 3, out, 2, &in);
    CHECK(h != NULL);
    hn_test_valid(h);
    CHECK_EQ(h->n_in, 2);
    CHECK(in[0] == g->first->out[0] && in[1] == g->consts.at[0]);
    CHECK_EQ(h->consts.n, 1);
    CHECK_EQ(h->n_out, 2);
    CHECK_STR(hn_test_text(t, h),
              "sym n\nin p f32[n,4]\nin w f32[4,4]\nconst s f32[] = {2}\na f32[n,4] = matmul(p, w)\n"
              "b f32[n,4] = mul(a, s)\nc f32[n,4] = add(b, p)\nout c\nout a\n");
}

TEST(extract_takes_captures_and_outside_symbols)
{
    hn_graph *g = hn_test_graph(t, "in x f32[3,5]  in c bool  i, m = nonzero(x)  j = neg(i)  z = if(c) { a = "
                                   "add(i, j)  out a } { out i }  out z");
    hn_node *node[1] = {g->last};
    hn_value *out[1] = {g->last->out[0]}, **in;
    hn_graph *h = hn_extract(t->arena, node, 1, out, 1, &in);
    CHECK(h != NULL);
    hn_test_valid(h);
    CHECK_EQ(h->n_in, 3);
    CHECK_STR(in[1]->name, "i");
    CHECK_EQ(hn_sym_get(h->syms, h->in[1]->type.dim[1])->kind, HN_SYM_INPUT);
}

TEST(extract_of_everything_is_the_graph)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]  a = neg(x)  b = abs(a)  c = add(a, b)  out c");
    hn_node *node[3] = {g->first, g->first->next, g->last};
    hn_graph *h = hn_extract(t->arena, node, 3, &g->last->out[0], 1, NULL);
    CHECK(hn_digest_eq(hn_graph_digest(g), hn_graph_digest(h)));
}

/* ---- hashes ---- */

static bool same(hn_test *t, const char *a, const char *b)
{
    return hn_digest_eq(hn_graph_digest(hn_test_graph(t, a)), hn_graph_digest(hn_test_graph(t, b)));
}

TEST(digest_ignores_names_order_and_dead_nodes)
{
    CHECK(same(t, "in x f32[4]  a = neg(x)  b = abs(x)  c = add(a, b)  out c",
               "in z f32[4]  q = abs(z)  p = neg(z)  dead = exp(z)  r = add(p, q) from \"/o\"  out r as y"));
    CHECK(same(t, "sym n  sym m  in x f32[n,m,n+m]  out x", "sym k  sym b  in y f32[k,b,b+k]  out y"));
    CHECK(
        same(t, "in x f32[4]  const w f32[2] = {1,2}  out w", "in x f32[4]  const v f32[2] = {1,2}  out v"));
    CHECK(same(t, "in x f32[4]  y = softmax(x) {axis=-1}  out y", "in x f32[4]  y = softmax(x)  out y"));
}

TEST(digest_sees_what_counts)
{
    static const char *const different[] = {
        "in x f32[4]  in y f32[4]  z = sub(x, y)  out z",
        "in x f32[4]  in y f32[4]  z = sub(y, x)  out z",
        "in x f32[4]  in y f32[4]  z = sub(x, x)  out z",
        "in x f32[5]  in y f32[5]  z = sub(x, y)  out z",
        "in x f16[4]  in y f16[4]  z = sub(x, y)  out z",
        "in x f32[4]  in y f32[4]  z = add(x, y)  out z",
        "in x f32[4]  in y f32[4]  z = sub(x, y)  out z  out z",
        "in x f32[4]  in y f32[4]  z = sub(x, y)  out x",
        "in x f32[4]  in y f32[4]  in u f32[4]  z = sub(x, y)  out z",
        "in x f32[4]@a4a  in y f32[4]  z = sub(x, y)  out z",
        "sym n  in x f32[n]  in y f32[n]  z = sub(x, y)  out z",
        "sym n [1,2,4]  in x f32[n]  in y f32[n]  z = sub(x, y)  out z",
        "in x f32[4]  y = neg(x)  z = sub(x, y)  out z",
        "in x f32[4]  const y f32[4]  z = sub(x, y)  out z",
        "in x f32[4]  const w f32[4]  z = sub(x, w)  out z",
        "in x f32[4]  y = softmax(x) {axis=0}  out y",
        "in x f32[4]  y = layer_norm(x) {axis=0}  out y",
        "in x f32[4]  y = layer_norm(x) {axis=0, eps=0.5}  out y",
        "in x f32[4]  a = exp(x)  y = mul(a, a)  out y",
        "in x f32[4]  a = exp(x)  b = exp(x)  y = mul(a, b)  out y",
        "in c bool  in x f32[4]  y = if(c) { a = exp(x)  out a } { out x }  out y",
        "in c bool  in x f32[4]  y = if(c) { out x } { a = exp(x)  out a }  out y",
        "in c bool  in x f32[4]  a = exp(x)  y = if(c) { out a } { out x }  out y",
    };
    for (int i = 0; i < HN_COUNT(different); i++)
        for (int k = 0; k < i; k++) {
            hn_test_note("%s\n%s", different[i], different[k]);
            CHECK(!same(t, different[i], different[k]));
        }
}

TEST(digest_of_deep_graphs)
{
    hn_graph *g = hn_graph_new(t->arena, "");
    hn_builder b;
    hn_diag dg = {0};
    hn_builder_init(&b, g, &dg);
    hn_value *v = hn_graph_input(g, "x", &(hn_tdesc){.dtype = HN_F32, .rank = 1, .dim = {4}});
    for (int i = 0; i < 20000; i++)
        v = hn_b1(&b, HN_OP_neg, v, HN_NO_ATTRS);
    hn_graph_output(g, v, NULL);
    const hn_digest d = hn_graph_digest(g);
    CHECK(d.lo || d.hi);
    CHECK(hn_validate(g, false, NULL));
    CHECK_EQ(hn_sweep_dead(g), 0);
}
