/* Copies compute what the original computes. */
#include "eval/eval_test.h"

#include <string.h>

static void fill(hn_test *t, hn_tensor *x, const hn_value *v, int64_t n, uint64_t seed)
{
    hn_tdesc d = v->type;
    hn_rng rng;
    hn_diag dg = {0};
    hn_rng_init(&rng, seed);
    for (int i = 0; i < d.rank; i++)
        if (d.dim[i] < 0) d.dim[i] = n;
    CHECK_OK(hn_tensor_init(x, &d, &dg), &dg);
    float *at = x->data;
    for (int64_t i = 0; i < hn_tensor_numel(x); i++)
        at[i] = (float)hn_rng_normal(&rng);
    (void)t;
}

static const char *evaluate(hn_test *t, const hn_graph *g, const hn_tensor *in)
{
    hn_tensor out[16];
    hn_diag dg = {0};
    hn_str s = {0};
    const hn_eval_opts o = {.mode = HN_EVAL_OWN};
    CHECK_OK(hn_eval_run(g, &o, in, out, &dg), &dg);
    for (int i = 0; i < g->n_out; i++) {
        hn_str_addf(&s, "%s\n", hn_test_tensor_text(t, &out[i]));
        hn_tensor_done(&out[i]);
    }
    const char *text = hn_arena_strdup(t->arena, hn_str_get(&s));
    hn_str_done(&s);
    return text;
}

TEST(eval_of_clones_texts_and_sweeps)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        hn_test_note("seed %d", (int)seed);
        hn_graph *g = hn_test_random_graph(t, seed, 25), *h = hn_clone(t->arena, g, NULL), *p = NULL;
        hn_diag dg = {0};
        hn_tensor in[2];
        fill(t, &in[0], g->in[0], 3, seed);
        fill(t, &in[1], g->in[1], 3, seed + 1000);
        const char *want = evaluate(t, g, in);
        CHECK_STR(evaluate(t, h, in), want);
        CHECK_OK(hn_parse_like(t->arena, hn_test_text(t, g), g, &p, &dg), &dg);
        CHECK_STR(evaluate(t, p, in), want);
        hn_sweep_dead(h);
        CHECK_STR(evaluate(t, h, in), want);
        hn_tensor_done(&in[0]);
        hn_tensor_done(&in[1]);
    }
}

TEST(eval_of_an_extracted_graph)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        hn_graph *g = hn_test_random_graph(t, seed, 15), *h;
        hn_node **node = hn_arena_alloc(t->arena, (size_t)g->n_node + 1, sizeof *node);
        hn_value *out[3], **outside;
        hn_tensor in[2], x[64];
        int k = 0, n_out = 0;
        HN_FOR_NODES (n, g)
            node[k++] = n;
        for (int i = 0; i < g->n_out; i++)
            if (g->out[i].value->def) out[n_out++] = g->out[i].value;
        if (!n_out) continue;
        h = hn_extract(t->arena, node, k, out, n_out, &outside);
        CHECK(h && h->n_in <= 64);
        fill(t, &in[0], g->in[0], 3, seed);
        fill(t, &in[1], g->in[1], 3, seed + 1000);
        for (int i = 0; i < h->n_in; i++) {
            const hn_value *v = outside[i];
            x[i] = v->data ? (hn_tensor){.type = v->type,
                                         .data = (void *)(uintptr_t)v->data->at,
                                         .bytes = v->data->bytes}
                           : in[v->def_index];
        }
        const char *all = evaluate(t, g, in), *some = evaluate(t, h, x);
        for (const char *line = some; *line; line = strchr(line, '\n') + 1) {
            const char *one = hn_arena_strndup(t->arena, line, strcspn(line, "\n") + 1);
            CHECK(strstr(all, one));
        }
        hn_tensor_done(&in[0]);
        hn_tensor_done(&in[1]);
    }
}

TEST(eval_f64_and_own_agree_roughly)
{
    for (uint64_t seed = 0; seed < 10; seed++) {
        hn_graph *g = hn_test_random_graph(t, seed, 20);
        hn_tensor in[2], own[3], exact[3];
        hn_diag dg = {0};
        fill(t, &in[0], g->in[0], 3, seed);
        fill(t, &in[1], g->in[1], 3, seed + 1000);
        CHECK_OK(hn_eval_run(g, &(hn_eval_opts){.mode = HN_EVAL_OWN}, in, own, &dg), &dg);
        CHECK_OK(hn_eval_run(g, &(hn_eval_opts){.mode = HN_EVAL_F64}, in, exact, &dg), &dg);
        for (int i = 0; i < 3; i++) {
            hn_metric m;
            CHECK_OK(hn_metric_compare(&own[i], &exact[i], &own[i], 1e-5, 1e-4, &m, &dg), &dg);
            CHECK(m.n_nonfinite == 0 && m.l0 == 0);
            hn_tensor_done(&own[i]);
            hn_tensor_done(&exact[i]);
        }
        hn_tensor_done(&in[0]);
        hn_tensor_done(&in[1]);
    }
}
