#include "ir/graphs.h"

#include <stdio.h>
#include <string.h>

hn_graph *hn_test_graph(hn_test *t, const char *text)
{
    hn_graph *g = NULL;
    hn_diag dg = {0};
    CHECK_OK(hn_parse(t->arena, text, &g, &dg), &dg);
    return g;
}

const char *hn_test_text(hn_test *t, const hn_graph *g)
{
    hn_str s = {0};
    hn_print(g, &s);
    CHECK(!s.oom);
    const char *text = hn_arena_strdup(t->arena, hn_str_get(&s));
    hn_str_done(&s);
    return text;
}

void hn_test_valid(const hn_graph *g)
{
    hn_diags list = {0};
    char text[1024];
    if (!hn_validate(g, true, &list))
        FAIL("%d problems: %s", list.n, hn_diag_format(&list.at[0], text, sizeof text));
    hn_diags_done(&list);
}

/* ---- random graphs ---- */

typedef struct maker {
    hn_test *t;
    hn_rng rng;
    hn_graph *g;
    hn_builder b;
    hn_diag dg;
    hn_value *pool[512]; /* f32 [n, 4] or [3, 4] values visible in the body being made */
    int n_pool, n_name, depth;
} maker;

static const char *odd_name(maker *m, char dst[64])
{
    static const char *const stem[] = {"x",         "/enc/layer.0/out",  "a b", "in", "q\"uote\\",
                                       "tab\there", "\xc3\xa9t\xc3\xa9", "7"};
    const int k = (int)hn_rng_below(&m->rng, HN_COUNT(stem) + 3);
    if (k >= HN_COUNT(stem)) return NULL; /* generated */
    snprintf(dst, 64, "%s%s%d", stem[k], k == 3 ? "" : ":", m->n_name++);
    return k == 3 && m->n_name == 1 ? "in" : dst;
}

static hn_value *pick(maker *m)
{
    return m->pool[hn_rng_below(&m->rng, m->n_pool)];
}

static hn_value *pick_like(maker *m, const hn_value *v)
{
    for (int tries = 0; tries < 50; tries++) {
        hn_value *w = pick(m);
        if (hn_tdesc_eq(&w->type, &v->type)) return w;
    }
    return NULL;
}

static void keep(maker *m, hn_value *v)
{
    char text[64];
    hn_diag *dg = &m->dg;
    CHECK_OK(m->b.status, dg);
    CHECK(v != NULL);
    const char *name = odd_name(m, text);
    if (name) hn_value_rename(v, name);
    if (hn_rng_below(&m->rng, 8) == 0) v->layout = hn_layout_blocked(v->type.rank, 1, 4);
    if (m->n_pool < HN_COUNT(m->pool)) m->pool[m->n_pool++] = v;
}

static void make_const(maker *m)
{
    static float data[12];
    const int64_t dim[2] = {3, 4};
    char text[64];
    hn_tdesc d = {.dtype = HN_F32, .rank = 2, .dim = {dim[0], dim[1]}};
    float *at = hn_arena_memdup(m->t->arena, data, sizeof data);
    for (int i = 0; i < 12; i++)
        at[i] = (float)hn_rng_normal(&m->rng);
    if (hn_rng_below(&m->rng, 2)) at[3] = __builtin_inff();
    hn_value *v = hn_graph_const(m->g, odd_name(m, text), &d, at, sizeof data);
    CHECK(v);
    m->pool[m->n_pool++] = v;
}

static void make_nodes(maker *m, int n_node);

static hn_graph *branch(maker *m, hn_graph *outer, const hn_tdesc *type)
{
    const int n_pool = m->n_pool;
    const hn_builder saved = m->b;
    hn_graph *body = hn_subgraph_new(outer, NULL);
    hn_builder_init(&m->b, body, &m->dg);
    m->g = body;
    m->depth++;
    make_nodes(m, 3);
    hn_value *v = NULL;
    for (int i = m->n_pool - 1; i >= 0 && !v; i--)
        if (hn_tdesc_eq(&m->pool[i]->type, type)) v = m->pool[i];
    hn_graph_output(body, v, NULL);
    m->depth--;
    m->g = outer;
    m->b = saved;
    m->n_pool = n_pool;
    return body;
}

static void make_if(maker *m)
{
    hn_value *x = pick(m);
    hn_graph *body[2] = {branch(m, m->g, &x->type), branch(m, m->g, &x->type)};
    hn_value *cond = hn_const_i(&m->b, HN_BOOL, hn_rng_below(&m->rng, 2));
    hn_node *n = hn_build_bodies(&m->b, HN_OP_if, 1, &cond, HN_NO_ATTRS, 1, 2, body);
    CHECK_OK(m->b.status, &m->dg);
    keep(m, n->out[0]);
}

static void make_topk(maker *m)
{
    hn_value *x = pick(m);
    hn_node *n = hn_build(&m->b, HN_OP_topk, 1, &x, HN_ATTRS_ARG(HN_A_I("axis", 1), HN_A_DIM("dim", 4)), 2);
    CHECK_OK(m->b.status, &m->dg);
    keep(m, n->out[0]);
}

static void make_node(maker *m)
{
    hn_value *x = pick(m), *y = pick_like(m, x);
    static const hn_op unary[] = {HN_OP_relu, HN_OP_tanh, HN_OP_neg, HN_OP_sigmoid, HN_OP_abs};
    switch (hn_rng_below(&m->rng, 8)) {
    case 0:
    case 1:
        keep(m, hn_b1(&m->b, unary[hn_rng_below(&m->rng, HN_COUNT(unary))], x, HN_NO_ATTRS));
        return;
    case 2:
        if (y) keep(m, hn_b2(&m->b, HN_OP_add, x, y, HN_NO_ATTRS));
        return;
    case 3:
        if (y) keep(m, hn_b2(&m->b, HN_OP_mul, x, y, HN_NO_ATTRS));
        return;
    case 4:
        make_const(m);
        return;
    case 5:
        keep(m, hn_b3(&m->b, HN_OP_clip, x, NULL, hn_const_f(&m->b, HN_F32, 0.7), HN_NO_ATTRS));
        return;
    case 6:
        if (m->depth < 3) make_if(m);
        return;
    default:
        make_topk(m);
    }
}

static void make_nodes(maker *m, int n_node)
{
    static const char *const origin[] = {"/a/b", "/a/c d"};
    for (int i = 0; i < n_node; i++) {
        m->b.origin = origin;
        m->b.n_origin = (int)hn_rng_below(&m->rng, 3);
        make_node(m);
    }
}

hn_graph *hn_test_random_graph(hn_test *t, uint64_t seed, int n_node)
{
    maker *m = hn_arena_alloc(t->arena, 1, sizeof *m);
    m->t = t;
    hn_rng_init(&m->rng, seed);
    hn_graph *g = m->g = hn_graph_new(t->arena, "random \"graph\"");
    const hn_dim n = hn_sym_add(g->syms, "n", HN_SYM_INPUT);
    hn_sym_set_bounds(g->syms, n, 1, 4, 64);
    hn_builder_init(&m->b, g, &m->dg);
    m->pool[m->n_pool++] = hn_graph_input(g, "x", &(hn_tdesc){.dtype = HN_F32, .rank = 2, .dim = {n, 4}});
    m->pool[m->n_pool++] = hn_graph_input(g, "const", &(hn_tdesc){.dtype = HN_F32, .rank = 2, .dim = {3, 4}});
    make_nodes(m, n_node);
    for (int i = 0; i < 3; i++)
        hn_graph_output(g, pick(m), i == 1 ? "an output" : NULL);
    CHECK_OK(m->b.status, &m->dg);
    return g;
}
