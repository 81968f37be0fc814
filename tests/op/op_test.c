#include "op_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/eval.h"

enum { MAX_OUT = 16 };

static void format(const hn_diag *dg, char dst[2048])
{
    hn_diag_format(dg, dst, 2048);
}

static hn_graph *parse(const char *file, int line, hn_test *t, const char *text)
{
    hn_diag dg = { 0 };
    hn_graph *g = NULL;
    char why[2048];

    if (hn_parse(t->arena, text, &g, &dg) == HONE_OK) return g;
    format(&dg, why);
    hn_test_fail(file, line, "%s\n%s", text, why);
}

static hone_status run(const hn_graph *g, hn_tensor *out, hn_diag *dg)
{
    if (g->n_in) return HN_RAISE(dg, HONE_E_INVALID, "the test's graph has inputs");
    return hn_eval_run(g, NULL, NULL, out, dg);
}

/* A constant of the expectation as a tensor that borrows its bytes. */
static hn_tensor wanted(const hn_value *v)
{
    return (hn_tensor){ .type = v->type, .data = (void *)(uintptr_t)v->data->at, .bytes = v->data->bytes };
}

static bool near(double a, double b, double tol)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= tol * (1 + fabs(b));
}

static void compare(const char *file, int line, const char *text, int i, const hn_tensor *got,
                    const hn_value *want, double tol)
{
    const hn_tensor w = wanted(want);
    hn_str a = { 0 }, b = { 0 };
    const hn_symtab *none = NULL;

    hn_tdesc_print(none, &got->type, &a);
    hn_tdesc_print(none, &w.type, &b);
    if (!hn_tdesc_eq(&got->type, &w.type))
        hn_test_fail(file, line, "%s\noutput %d is %s, not %s", text, i, hn_str_get(&a), hn_str_get(&b));
    const int64_t n = hn_tensor_numel(got);
    double *x = calloc((size_t)n + 1, sizeof(*x)), *y = calloc((size_t)n + 1, sizeof(*y));
    CHECK(x && y);
    hn_tensor_to_f64(got, x);
    hn_tensor_to_f64(&w, y);
    for (int64_t k = 0; k < n; k++)
        if (!near(x[k], y[k], tol))
            hn_test_fail(file, line, "%s\noutput %d, element %lld is %.17g, not %.17g", text, i, (long long)k,
                         x[k], y[k]);
    free(x);
    free(y);
    hn_str_done(&a);
    hn_str_done(&b);
}

void op_expect_at(const char *file, int line, hn_test *t, const char *text, const char *want, double tol)
{
    const hn_graph *g = parse(file, line, t, text), *w = parse(file, line, t, want);
    hn_tensor out[MAX_OUT] = { 0 };
    hn_diag dg = { 0 };
    char why[2048];

    if (g->n_out != w->consts.n || g->n_out > MAX_OUT)
        hn_test_fail(file, line, "%s\n%d outputs, %d expected", text, g->n_out, w->consts.n);
    if (run(g, out, &dg) != HONE_OK) {
        format(&dg, why);
        hn_test_fail(file, line, "%s\n%s", text, why);
    }
    for (int i = 0; i < g->n_out; i++) {
        compare(file, line, text, i, &out[i], w->consts.at[i], tol);
        hn_tensor_done(&out[i]);
    }
}

static void holds(const char *file, int line, const char *text, const hn_diag *dg, const char *part)
{
    char why[2048];

    format(dg, why);
    if (!strstr(why, part)) hn_test_fail(file, line, "%s\nsays: %s\nnot: %s", text, why, part);
}

void op_refuses_at(const char *file, int line, hn_test *t, const char *text, const char *part)
{
    hn_diag dg = { 0 };
    hn_graph *g;

    if (hn_parse(t->arena, text, &g, &dg) == HONE_OK) hn_test_fail(file, line, "%s\nis accepted", text);
    holds(file, line, text, &dg, part);
}

void op_fails_at(const char *file, int line, hn_test *t, const char *text, const char *part)
{
    const hn_graph *g = parse(file, line, t, text);
    hn_tensor out[MAX_OUT] = { 0 };
    hn_diag dg = { 0 };

    if (run(g, out, &dg) == HONE_OK) hn_test_fail(file, line, "%s\nruns", text);
    holds(file, line, text, &dg, part);
}

void op_infers_at(const char *file, int line, hn_test *t, const char *text, const char *types)
{
    const hn_graph *g = parse(file, line, t, text);
    hn_str s = { 0 };

    for (int i = 0; i < g->n_out; i++) {
        if (i) hn_str_add(&s, " ");
        hn_tdesc_print(g->syms, &g->out[i].value->type, &s);
    }
    if (strcmp(hn_str_get(&s), types) != 0)
        hn_test_fail(file, line, "%s\nis %s, not %s", text, hn_str_get(&s), types);
    hn_str_done(&s);
}

void op_content_at(const char *file, int line, hn_test *t, const char *text, const char *content)
{
    const hn_graph *g = parse(file, line, t, text);
    const hn_value *v = g->out[0].value;
    hn_str s = { 0 };

    if (!v->content) hn_str_add(&s, "?");
    for (int i = 0; v->content && i < v->n_content; i++) {
        if (i) hn_str_add(&s, " ");
        hn_dim_print(g->syms, v->content[i], &s);
    }
    if (strcmp(hn_str_get(&s), content) != 0)
        hn_test_fail(file, line, "%s\nholds %s, not %s", text, hn_str_get(&s), content);
    hn_str_done(&s);
}
