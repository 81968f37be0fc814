/* Files whose import must take time by their size: nothing is read again at every level, and nothing looked up one by one. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ir/ir.h"
#include "make.h"

/* Enough for a slow machine under sanitizers; what grows with the square takes minutes. */
enum { SECONDS = 20 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static hn_graph *import_soon(hn_test *t, hn_str *g, int opset)
{
    const double start = now();
    hn_graph *r = import_ok(t, g, opset, NULL);
    const double took = now() - start;
    if (took > SECONDS) FAIL("took %.1f s", took);
    return r;
}

/* A list of which nothing is known, whose elements are scalars. */
static void g_list(hn_str *g, int field, const char *name)
{
    hn_str v = { 0 }, type = { 0 }, seq = { 0 }, elem = { 0 }, tensor = { 0 };
    pb_str(&v, 1, name);
    pb_int(&tensor, 1, F32);
    pb_msg(&elem, 1, &tensor);
    pb_msg(&seq, 1, &elem);
    pb_msg(&type, 4, &seq);
    pb_msg(&v, 2, &type);
    pb_msg(g, field, &v);
}

/* Every level yields a list that starts empty, so that each needs two tries: at once within one another they are 2^28 imports. */
TEST(nested_tries_add_up)
{
    enum { DEPTH = 28 };
    hn_str g = { 0 };
    g_input(&g, "e", F32, "");
    g_node(&g, "Relu", "e", "o", "");
    g_output(&g, "o", F32, "");
    for (int i = 0; i < DEPTH; i++) {
        hn_str outer = { 0 }, more = { 0 };
        char in[32], out[32];
        snprintf(in, sizeof in, "e%d", i);
        snprintf(out, sizeof out, "o%d", i);
        a_graph(&more, "body", &g);
        g_node_named(&outer, NULL, "SequenceMap", "q", "r", "", &more);
        g_node(&outer, "SequenceAt", "r,zero", out, "");
        if (i + 1 < DEPTH) g_input(&outer, in, F32, "");
        g_output(&outer, out, F32, "");
        g = outer;
    }
    g_list(&g, 11, "q");
    g_ints(&g, "zero", "", "0");
    const hn_graph *r = import_soon(t, &g, 17);
    if (r->next_id > 10 * DEPTH * DEPTH) FAIL("%u values were made on the way", (unsigned)r->next_id);
}

/* Loops whose carried extents grow, each around the next. */
TEST(nested_loops_that_grow_add_up)
{
    enum { DEPTH = 28 };
    hn_str g = { 0 };
    for (int i = 0; i < DEPTH; i++) {
        hn_str body = { 0 }, outer = { 0 }, more = { 0 };
        char v[16], twice[16], w[16], c[16], d[16], k[16], pair[40];
        snprintf(v, sizeof v, "v%d", i);
        snprintf(w, sizeof w, "w%d", i);
        snprintf(twice, sizeof twice, "t%d", i);
        snprintf(c, sizeof c, "c%d", i);
        snprintf(d, sizeof d, "d%d", i);
        snprintf(k, sizeof k, "k%d", i);
        g_input(&body, k, I64, "");
        g_input(&body, c, BOOL, "");
        g_input(&body, v, F32, "?");
        snprintf(pair, sizeof pair, "%s,%s", v, v);
        g_node(&body, "Concat", pair, twice, "axis=i:0");
        g_node(&body, "Identity", c, d, "");
        if (g.n) {
            hn_str inner = { 0 };
            snprintf(pair, sizeof pair, "n,,%s", twice);
            a_graph(&inner, "body", &g);
            g_node_named(&body, NULL, "Loop", pair, w, "", &inner);
        } else {
            g_node(&body, "Relu", twice, w, "");
        }
        g_output(&body, d, BOOL, "");
        g_output(&body, w, F32, "?");
        g = body;
        if (i + 1 < DEPTH) continue;
        a_graph(&more, "body", &g);
        g_node_named(&outer, NULL, "Loop", "n,,x", "y", "", &more);
        g_input(&outer, "n", I64, "");
        g_input(&outer, "x", F32, "2");
        g_output(&outer, "y", F32, NULL);
        g = outer;
    }
    const hn_graph *r = import_soon(t, &g, 17);
    if (r->next_id > 10 * DEPTH * DEPTH) FAIL("%u values were made on the way", (unsigned)r->next_id);
}

TEST(many_open_extents)
{
    enum { N = 20000 };
    hn_str g = { 0 };
    g_input(&g, "x", F32, "n,m");
    for (int i = 0; i < N; i++) {
        char y[16];
        snprintf(y, sizeof y, "y%d", i);
        g_node(&g, "NonZero", "x", y, "");
        g_output(&g, y, I64, NULL);
    }
    const hn_graph *r = import_soon(t, &g, 17);
    CHECK_EQ(hn_sym_count(r->syms), 2 + N);
}
