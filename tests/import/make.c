#include "make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/eval.h"
#include "ir/op.h"

/* ---- the wire ---- */

static void varint(hn_str *m, uint64_t v)
{
    char b[10];
    size_t n = 0;
    do {
        b[n++] = (char)((v & 0x7F) | (v > 0x7F ? 0x80 : 0));
        v >>= 7;
    } while (v);
    hn_str_add_n(m, b, n);
}

void pb_int(hn_str *m, int field, int64_t v)
{
    varint(m, (uint64_t)field << 3);
    varint(m, (uint64_t)v);
}

void pb_bytes(hn_str *m, int field, const void *p, size_t n)
{
    varint(m, (uint64_t)field << 3 | 2);
    varint(m, n);
    hn_str_add_n(m, p, n);
}

void pb_str(hn_str *m, int field, const char *s)
{
    pb_bytes(m, field, s, strlen(s));
}

void pb_msg(hn_str *m, int field, hn_str *part)
{
    pb_bytes(m, field, hn_str_get(part), part->n);
    hn_str_done(part);
    memset(part, 0, sizeof *part);
}

static void pb_float(hn_str *m, int field, float v)
{
    varint(m, (uint64_t)field << 3 | 5);
    hn_str_add_n(m, (const char *)&v, 4);
}

/* ---- lists ---- */

/* The next entry of a comma list, cut off in place; false at the end. "" is an empty list. */
static bool next(char **at, char **ret)
{
    if (!*at) return false;
    *ret = *at;
    char *comma = strchr(*at, ',');
    if (comma) *comma++ = '\0';
    *at = comma;
    return true;
}

#define EACH(entry, list)                                                                                    \
    char list_##entry[1024], *at_##entry = list_##entry, *entry;                                             \
    snprintf(list_##entry, sizeof list_##entry, "%s", list);                                                 \
    if (!list_##entry[0]) at_##entry = NULL;                                                                 \
    while (next(&at_##entry, &entry))

/* ---- graphs ---- */

static void value_info(hn_str *g, int field, const char *name, int type, const char *dims)
{
    hn_str vi = { 0 }, tp = { 0 }, tensor = { 0 }, shape = { 0 }, dim = { 0 };
    pb_int(&tensor, 1, type);
    if (dims) {
        EACH(d, dims)
        {
            if (*d >= '0' && *d <= '9')
                pb_int(&dim, 1, strtoll(d, NULL, 10));
            else if (*d)
                pb_str(&dim, 2, d);
            pb_msg(&shape, 1, &dim);
        }
        pb_msg(&tensor, 2, &shape);
    }
    pb_msg(&tp, 1, &tensor);
    pb_str(&vi, 1, name);
    pb_msg(&vi, 2, &tp);
    pb_msg(g, field, &vi);
}

void g_input(hn_str *g, const char *name, int type, const char *dims)
{
    value_info(g, 11, name, type, dims);
}

void g_output(hn_str *g, const char *name, int type, const char *dims)
{
    value_info(g, 12, name, type, dims);
}

static void attribute(hn_str *node, char *text)
{
    hn_str a = { 0 };
    char *kind = strchr(text, '='), *value = strchr(text, ':');
    if (!kind || !value) FAIL("attribute \"%s\"", text);
    *kind++ = '\0';
    *value++ = '\0';
    pb_str(&a, 1, text);
    if (strcmp(kind, "i") == 0) {
        pb_int(&a, 3, strtoll(value, NULL, 10));
        pb_int(&a, 20, 2);
    } else if (strcmp(kind, "f") == 0) {
        pb_float(&a, 2, strtof(value, NULL));
        pb_int(&a, 20, 1);
    } else if (strcmp(kind, "s") == 0) {
        pb_str(&a, 4, value);
        pb_int(&a, 20, 3);
    } else if (strcmp(kind, "is") == 0) {
        EACH(v, value) pb_int(&a, 8, strtoll(v, NULL, 10));
        pb_int(&a, 20, 7);
    } else if (strcmp(kind, "fs") == 0) {
        EACH(v, value) pb_float(&a, 7, strtof(v, NULL));
        pb_int(&a, 20, 6);
    } else if (strcmp(kind, "ref") == 0) {
        pb_str(&a, 21, value);
        pb_int(&a, 20, 2);
    } else {
        FAIL("attribute kind \"%s\"", kind);
    }
    pb_msg(node, 5, &a);
}

static void node(hn_str *g, int field, const char *name, const char *domain, const char *op, const char *in,
                 const char *out, const char *attrs, hn_str *more)
{
    hn_str n = { 0 };
    EACH(x, in) pb_str(&n, 1, x);
    EACH(y, out) pb_str(&n, 2, y);
    if (name) pb_str(&n, 3, name);
    pb_str(&n, 4, op);
    if (domain) pb_str(&n, 7, domain);
    char text[1024];
    snprintf(text, sizeof text, "%s", attrs);
    for (char *a = strtok(text, " "); a; a = strtok(NULL, " "))
        attribute(&n, a);
    if (more) {
        hn_str_add_n(&n, hn_str_get(more), more->n);
        hn_str_done(more);
        memset(more, 0, sizeof *more);
    }
    pb_msg(g, field, &n);
}

void g_node_named(hn_str *g, const char *name, const char *op, const char *in, const char *out,
                  const char *attrs, hn_str *more)
{
    node(g, 1, name, NULL, op, in, out, attrs, more);
}

void g_node(hn_str *g, const char *op, const char *in, const char *out, const char *attrs)
{
    node(g, 1, NULL, NULL, op, in, out, attrs, NULL);
}

void g_node_in(hn_str *g, const char *domain, const char *op, const char *in, const char *out,
               const char *attrs)
{
    node(g, 1, NULL, domain, op, in, out, attrs, NULL);
}

void t_begin(hn_str *t, const char *name, int type, const char *dims)
{
    EACH(d, dims) pb_int(t, 1, strtoll(d, NULL, 10));
    pb_int(t, 2, type);
    pb_str(t, 8, name);
}

void g_ints(hn_str *g, const char *name, const char *dims, const char *values)
{
    hn_str t = { 0 }, raw = { 0 };
    t_begin(&t, name, I64, dims);
    EACH(v, values)
    {
        const int64_t x = strtoll(v, NULL, 10);
        hn_str_add_n(&raw, (const char *)&x, 8);
    }
    pb_msg(&t, 9, &raw);
    pb_msg(g, 5, &t);
}

void g_floats(hn_str *g, const char *name, const char *dims, const char *values)
{
    hn_str t = { 0 }, raw = { 0 };
    t_begin(&t, name, F32, dims);
    EACH(v, values)
    {
        const float x = strtof(v, NULL);
        hn_str_add_n(&raw, (const char *)&x, 4);
    }
    pb_msg(&t, 9, &raw);
    pb_msg(g, 5, &t);
}

void a_graph(hn_str *more, const char *name, hn_str *graph)
{
    hn_str a = { 0 };
    pb_str(&a, 1, name);
    pb_msg(&a, 6, graph);
    pb_int(&a, 20, 5);
    pb_msg(more, 5, &a);
}

static void opset_import(hn_str *m, int field, const char *domain, int version)
{
    hn_str o = { 0 };
    pb_str(&o, 1, domain);
    pb_int(&o, 2, version);
    pb_msg(m, field, &o);
}

void m_model(hn_str *m, hn_str *graph, int opset)
{
    pb_int(m, 1, 8);
    opset_import(m, 8, "", opset);
    opset_import(m, 8, "com.microsoft", 1);
    pb_msg(m, 7, graph);
}

/* ---- importing ---- */

hn_graph *import_ok(hn_test *t, hn_str *graph, int opset, const hn_import_opts *opts)
{
    hn_str m = { 0 };
    hn_graph *g = NULL;
    hn_diag dg = { 0 };
    hn_diags bad = { 0 };
    m_model(&m, graph, opset);
    CHECK_OK(hn_import_mem(t->arena, hn_str_get(&m), m.n, NULL, opts, &g, NULL, &dg), &dg);
    if (!hn_validate(g, true, &bad)) FAIL("not valid: %s", bad.at[0].message);
    hn_str_done(&m);
    return g;
}

int import_bad(hn_test *t, hn_str *graph, int opset, const hn_import_opts *opts, hone_status want,
               const char *part)
{
    hn_str m = { 0 };
    hn_graph *g = NULL;
    hn_diag dg = { 0 };
    hn_diags all = { 0 };
    m_model(&m, graph, opset);
    const hone_status s = hn_import_mem(t->arena, hn_str_get(&m), m.n, NULL, opts, &g, &all, &dg);
    CHECK(g == NULL);
    CHECK_ERR(s, want, &dg, part);
    const int n = all.n;
    hn_diags_done(&all);
    hn_str_done(&m);
    return n;
}

double *eval_floats(hn_test *t, const hn_graph *g, const double *const *in, int k, int *ret_n)
{
    hn_tensor x[16] = { 0 }, y[16] = { 0 };
    hn_diag dg = { 0 };
    const hn_eval_opts opts = { .mode = HN_EVAL_OWN };
    CHECK(g->n_in <= 16 && g->n_out <= 16);
    for (int i = 0; i < g->n_in; i++) {
        hn_tdesc type = g->in[i]->type;
        /* Symbolic extents take the length that the row starts with. */
        const double *row = in[i];
        for (int d = 0; d < type.rank; d++)
            if (type.dim[d] < 0) type.dim[d] = (int64_t)*row++;
        CHECK_OK(hn_tensor_init(&x[i], &type, &dg), &dg);
        hn_narrow_f64(type.dtype, row, hn_tdesc_numel_static(&type), x[i].data, 0, true);
    }
    CHECK_OK(hn_eval_run(g, &opts, x, y, &dg), &dg);
    const int64_t n = hn_tensor_numel(&y[k]);
    double *r = HN_NEW_N(t->arena, double, n + 1);
    CHECK(r != NULL);
    hn_tensor_to_f64(&y[k], r);
    *ret_n = (int)n;
    for (int i = 0; i < g->n_in; i++)
        hn_tensor_done(&x[i]);
    for (int i = 0; i < g->n_out; i++)
        hn_tensor_done(&y[i]);
    return r;
}

const char *text_of(hn_test *t, const hn_graph *g)
{
    hn_str s = { 0 };
    hn_print(g, &s);
    const char *text = hn_arena_strdup(t->arena, hn_str_get(&s));
    hn_str_done(&s);
    return text ? text : "";
}

int count_op(const hn_graph *g, hn_op op)
{
    int n = 0;
    HN_FOR_NODES (x, g)
        n += x->op == op;
    return n;
}
