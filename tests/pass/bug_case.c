#include "pass/bug_case.h"
#include "build/run_graph.h"
#include "import/make.h"
#include "pass/pass.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IO = 8, MAX_VALUES = 1024 };

/* ---- models ---- */
static int type_of(const char *name)
{
    static const struct {
        const char *name;
        int type;
    } types[] = { { "f32", F32 }, { "i64", I64 }, { "i32", I32 }, { "u8", U8 }, { "i8", I8 }, { "bool", BOOL }, { "f64", F64 } };
    for (int i = 0; i < HN_COUNT(types); i++)
        if (strcmp(types[i].name, name) == 0) return types[i].type;
    FAIL("type \"%s\"", name);
}

static char *word(char **text)
{
    char *s = *text + strspn(*text, " \n");
    char *end = s + strcspn(s, " \n");
    *text = end + (*end != '\0');
    *end = '\0';
    return s;
}

static const char *dims_of(const char *text)
{
    return strcmp(text, "-") == 0 ? "" : text;
}

static void add_const(hn_str *g, char *rest)
{
    const char *name = word(&rest), *type = word(&rest), *dims = dims_of(word(&rest)), *values = word(&rest);
    if (strcmp(type, "f32") == 0) g_floats(g, name, dims, values);
    else if (strcmp(type, "i64") == 0) g_ints(g, name, dims, values);
    else {
        hn_str t = { 0 };
        t_begin(&t, name, type_of(type), dims);
        for (const char *v = values; *v; v += strcspn(v, ","), v += *v == ',') pb_int(&t, 5, strtoll(v, NULL, 10));
        pb_msg(g, 5, &t);
    }
}

static void add_input(hn_str *g, char *rest)
{
    const char *name = word(&rest), *type = word(&rest);
    g_input(g, name, type_of(type), dims_of(word(&rest)));
}

static void add_output(hn_str *g, char *rest)
{
    const char *name = word(&rest), *type = word(&rest);
    g_output(g, name, *type ? type_of(type) : 0, NULL);
}

/* Graphs open at the moment: the model's and bodies; finished bodies wait as attributes for the next node. */
typedef struct maker {
    hn_str graph[4], attrs[4];
    char body[4][32];
    int depth;
} maker;

static void statement(maker *m, char *s)
{
    hn_str *g = &m->graph[m->depth];
    const char *what = word(&s);
    if (strcmp(what, "in") == 0) add_input(g, s);
    else if (strcmp(what, "const") == 0) add_const(g, s);
    else if (strcmp(what, "out") == 0) add_output(g, s);
    else if (strcmp(what, "body") == 0) snprintf(m->body[++m->depth], sizeof m->body[0], "%s", word(&s));
    else if (strcmp(what, "end") == 0) {
        a_graph(&m->attrs[m->depth - 1], m->body[m->depth], g);
        m->depth--;
    } else if (strcmp(what, "node") == 0) {
        const char *op = word(&s), *in = dims_of(word(&s)), *out = word(&s);
        g_node_named(g, "", op, in, out, s + strspn(s, " \n"), &m->attrs[m->depth]);
    } else FAIL("statement \"%s\"", what);
}

static void write_model(hn_test *t, const hn_bug *b, hn_str *ret)
{
    maker m = { .depth = 0 };
    char *text = hn_arena_strdup(t->arena, b->model);
    CHECK(text);
    for (char *s = text, *next; s; s = next) {
        next = strchr(s, ';');
        if (next) *next++ = '\0';
        if (s[strspn(s, " \n")]) statement(&m, s);
    }
    m_model(ret, &m.graph[0], b->opset);
}

/* ---- values ---- */
typedef struct values {
    double at[MAX_VALUES];
    int n, rank; /* rank -1: no shape said */
    int64_t dim[HN_MAX_RANK];
} values;

/* The next "|"-parted list of text; false at the end. */
static bool next_values(const char **text, values *v)
{
    const char *s = *text;
    char *end;
    if (!s) return false;
    *v = (values){ .rank = -1 };
    s += strspn(s, " \n");
    if (*s == '[') {
        v->rank = 0;
        for (s++; *s && *s != ']'; s = end + (*end == ',')) v->dim[v->rank++] = strtoll(s, &end, 10);
        s++;
    }
    for (;;) {
        const double x = strtod(s, &end);
        if (end == s) break;
        CHECK(v->n < MAX_VALUES);
        v->at[v->n++] = x;
        s = end + (*end == ',');
    }
    s += strspn(s, " \n");
    CHECK(*s == '|' || *s == '\0');
    *text = *s == '|' ? s + 1 : NULL;
    return true;
}

static void read_inputs(const hn_graph *g, const char *text, hn_tensor *in)
{
    hn_diag dg = { 0 };
    values *v = malloc(sizeof *v);
    CHECK(v && g->n_in <= MAX_IO);
    for (int i = 0; i < g->n_in; i++) {
        hn_tdesc d = g->in[i]->type;
        CHECK(next_values(&text, v));
        for (int a = 0; a < d.rank && v->rank >= 0; a++) d.dim[a] = v->dim[a];
        CHECK_OK(hn_tensor_init(&in[i], &d, &dg), &dg);
        CHECK_EQ(v->n, hn_tensor_numel(&in[i]));
        hn_narrow_f64(d.dtype, v->at, v->n, in[i].data, 0, true);
    }
    free(v);
}

/* Beyond rounding; a NaN must be one. */
static bool differs(double got, double want)
{
    if (isnan(want)) return !isnan(got);
    return got != want && !(fabs(got - want) <= 1e-5 * (1 + fabs(want)));
}

static void check_output(const hn_tensor *got, const values *want, const char *how)
{
    const int64_t n = hn_tensor_numel(got);
    double *x = malloc(((size_t)n + 1) * sizeof *x);
    CHECK(x);
    if (want->rank >= 0) CHECK_EQ(got->type.rank, want->rank);
    for (int a = 0; a < want->rank; a++) CHECK_EQ(got->type.dim[a], want->dim[a]);
    CHECK_EQ(n, want->n);
    hn_tensor_to_f64(got, x);
    for (int64_t i = 0; i < n; i++)
        if (differs(x[i], want->at[i])) FAIL("%s: element %lld is %g, not %g", how, (long long)i, x[i], want->at[i]);
    free(x);
}

/* ---- one bug ---- */
static const char *error_of(const hn_bug *b)
{
    return strncmp(b->want, "error: ", 7) == 0 ? b->want + 7 : NULL;
}

static hn_graph *imported(hn_test *t, const hn_bug *b, hn_diag *dg)
{
    hn_str m = { 0 };
    hn_graph *g = NULL;
    write_model(t, b, &m);
    const hone_status s = hn_import_mem(t->arena, m.s, m.n, NULL, NULL, &g, NULL, dg);
    hn_str_done(&m);
    if (!error_of(b)) CHECK_OK(s, dg);
    return s == HONE_OK ? g : NULL;
}

static void optimise(hn_test *t, hn_graph *g, const char *pipeline)
{
    hn_diag dg = { 0 };
    const hn_pass_debug debug = { .validate = true };
    hn_pass_ctx c = { .knobs = hn_knobs_new(t->arena, NULL), .scratch = hn_arena_create(), .allow_inexact = true };
    CHECK_OK(hn_pipeline_run(g, hn_pipeline_find(pipeline), &c, &debug, NULL, NULL, &dg), &dg);
    hn_arena_destroy(c.scratch);
}

static void check_error(const hn_diag *dg, const char *part)
{
    char text[2048];
    if (!strstr(hn_diag_format(dg, text, sizeof text), part)) FAIL("the error does not say \"%s\": %s", part, text);
}

static void check_evaluation(hn_test *t, const hn_bug *b, const char *pipeline)
{
    hn_diag dg = { 0 };
    hn_tensor in[MAX_IO] = { 0 }, out[MAX_IO] = { 0 };
    hn_graph *g = imported(t, b, &dg);
    if (!g) {
        check_error(&dg, error_of(b));
        return;
    }
    optimise(t, g, pipeline);
    read_inputs(g, b->in, in);
    const hone_status s = hn_eval_run(g, &(hn_eval_opts){ .mode = HN_EVAL_OWN }, in, out, &dg);
    if (error_of(b)) {
        CHECK(s != HONE_OK);
        check_error(&dg, error_of(b));
    } else {
        CHECK_OK(s, &dg);
        const char *text = b->want;
        values *v = malloc(sizeof *v);
        for (int i = 0; i < g->n_out; i++) {
            CHECK(v && next_values(&text, v));
            check_output(&out[i], v, pipeline);
        }
        free(v);
    }
    for (int i = 0; i < MAX_IO; i++) hn_tensor_done(&in[i]), hn_tensor_done(&out[i]);
}

/* The engine against evaluation, which was just compared with the right values. */
static void check_engine(hn_test *t, const hn_bug *b)
{
    hn_diag dg = { 0 };
    hn_tensor in[MAX_IO] = { 0 };
    hn_graph *g = imported(t, b, &dg);
    if (!g) return;
    read_inputs(g, b->in, in);
    hn_check_graph_of(t->arena, g, &(hn_run_opts){ .in = in, .fails = error_of(b) });
    for (int i = 0; i < MAX_IO; i++) hn_tensor_done(&in[i]);
}

void hn_check_bugs(hn_test *t, const hn_bug *bug, int n)
{
    for (int i = 0; i < n; i++) {
        hn_test_note("%s", bug[i].from);
        check_evaluation(t, &bug[i], "none");
        check_evaluation(t, &bug[i], "default");
        check_engine(t, &bug[i]);
    }
}
