/*
 * Changes of form that must not change results, engine against engine: a sample of what tests/fuzz/metamorphic.py does with models.
 * Random graphs get values inside as further outputs, pairs of views that cancel, other names, and extents that are known.
 */
#include "codegen/codegen.h"
#include "core/core.h"
#include "harness.h"
#include "pass/random_graph.h"
#include "run_graph.h"

#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 10, NODES = 9, MOST_OUT = 12 };

static hn_graph *copy_of(hn_test *t, const hn_graph *g)
{
    hn_graph *c = hn_clone(t->arena, g, NULL);
    CHECK(c);
    return c;
}

static hn_graph *with_outputs(hn_test *t, const hn_graph *g, hn_rng *r)
{
    hn_graph *c = copy_of(t, g);
    HN_FOR_NODES (n, c)
        if (c->n_out < MOST_OUT && hn_rng_below(r, 2)) hn_graph_output(c, n->out[0], hn_arena_printf(t->arena, "more_%d", c->n_out));
    return c;
}

/* Two nodes that yield what v holds: transposes, or a reshape and its way back. */
static hn_value *there_and_back(hn_builder *b, hn_value *v, hn_rng *r)
{
    int64_t perm[HN_MAX_RANK], back[HN_MAX_RANK];
    const int rank = v->type.rank;
    const hn_tdesc type = v->type;
    if (hn_rng_below(r, 2)) {
        hn_dim all = 1;
        for (int i = 0; i < rank; i++) all = hn_dim_mul(b->g->syms, all, type.dim[i]);
        return hn_reshape(b, hn_reshape(b, v, 1, &all), rank, type.dim);
    }
    for (int i = 0; i < rank; i++) perm[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        const int k = (int)hn_rng_below(r, (uint64_t)i + 1);
        const int64_t p = perm[i];
        perm[i] = perm[k], perm[k] = p;
    }
    for (int i = 0; i < rank; i++) back[perm[i]] = i;
    return hn_transpose(b, hn_transpose(b, v, perm), back);
}

static hn_graph *with_pairs(hn_test *t, const hn_graph *g, hn_rng *r)
{
    hn_graph *c = copy_of(t, g);
    hn_diag dg = { 0 };
    hn_builder b;
    hn_builder_init(&b, c, &dg);
    HN_FOR_NODES (n, c)
        for (int i = 0; i < n->n_in; i++) {
            hn_value *v = hn_in(n, i);
            if (!v || !v->def || v->data || v->type.dtype != HN_F32 || v->type.rank < 2 || hn_rng_below(r, 2)) continue;
            hn_at(&b, n);
            hn_value *same = there_and_back(&b, v, r);
            CHECK_OK(b.status, &dg);
            hn_set_in(n, i, same);
        }
    return c;
}

static hn_graph *renamed(hn_test *t, const hn_graph *g, hn_rng *r)
{
    hn_graph *c = copy_of(t, g);
    int k = 0;
    for (int i = 0; i < c->n_in; i++) c->in[i]->name = hn_arena_printf(t->arena, "in_%d_%d", (int)hn_rng_below(r, 99), i);
    for (int i = 0; i < c->n_out; i++) c->out_name[i] = hn_arena_printf(t->arena, "z%d", c->n_out - i);
    HN_FOR_NODES (n, c) {
        n->name = hn_arena_printf(t->arena, "/%d/node", k++);
        for (int i = 0; i < n->n_out; i++) n->out[i]->name = hn_arena_printf(t->arena, "v%d_%d", 1000 - k, i);
    }
    return c;
}

typedef hn_graph *(*change_fn)(hn_test *t, const hn_graph *g, hn_rng *r);

static void same_after(hn_test *t, change_fn change)
{
    hn_compile_pool *pool;
    hn_diag dg = { 0 };
    CHECK_OK(hn_compile_pool_create(&(hn_compile_options){ .n_worker = 1 }, &pool, &dg), &dg);
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        hn_test_note("seed %d", (int)seed);
        hn_rng r;
        hn_rng_init(&r, seed);
        const hn_graph *g = hn_random_float_graph(t, seed, NODES, true);
        hn_check_same(t->arena, g, change(t, g, &r), &(hn_run_opts){ .sym = 3, .seed = seed, .tol = 1e-4, .pool = pool });
    }
    hn_compile_pool_destroy(pool);
}

TEST(more_outputs_change_nothing)
{
    same_after(t, with_outputs);
}

TEST(pairs_that_cancel_change_nothing)
{
    same_after(t, with_pairs);
}

TEST(names_change_nothing)
{
    same_after(t, renamed);
}
