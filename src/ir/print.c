/* Graph to text; docs/ir.md has the grammar. What is printed parses back to a graph that prints the same. */
#include "ir/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct printer {
    hn_str *out;
    const hn_graph *root;
    int indent;
    uint8_t *seen; /* constants already listed, by value id */
} printer;

static void start_line(const printer *p)
{
    for (int i = 0; i < p->indent; i++)
        hn_str_add(p->out, "  ");
}

static void print_quoted(hn_str *out, const char *s)
{
    hn_str_add(out, "\"");
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            hn_str_addf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7F)
            hn_str_addf(out, "\\x%02x", c);
        else
            hn_str_add_n(out, s, 1);
    }
    hn_str_add(out, "\"");
}

static void print_name(hn_str *out, const char *name)
{
    if (hn_text_is_plain(name))
        hn_str_add(out, name);
    else
        print_quoted(out, name);
}

static void print_type(const printer *p, const hn_value *v)
{
    static const char *const wrap[] = {[HN_TENSOR] = "", [HN_SEQUENCE] = "seq(", [HN_OPTIONAL] = "opt("};
    hn_str_add(p->out, wrap[v->kind]);
    hn_tdesc_print(p->root->syms, &v->type, p->out);
    if (v->kind != HN_TENSOR) hn_str_add(p->out, ")");
    if (v->layout.n == 0) return;
    hn_str_add(p->out, "@");
    hn_layout_print(&v->layout, v->type.rank, p->out);
}

/* ---- symbols ---- */

static void print_bound(hn_str *out, int64_t v)
{
    if (v == INT64_MAX)
        hn_str_add(out, "inf");
    else if (v == INT64_MIN)
        hn_str_add(out, "-inf");
    else
        hn_str_addf(out, "%lld", (long long)v);
}

static void print_bounds(hn_str *out, const hn_sym *s)
{
    const int64_t min = s->kind == HN_SYM_INPUT ? 0 : INT64_MIN;
    if (s->min == min && s->opt == 1 && s->max == INT64_MAX) return;
    hn_str_add(out, " [");
    print_bound(out, s->min);
    hn_str_add(out, ",");
    print_bound(out, s->opt);
    hn_str_add(out, ",");
    print_bound(out, s->max);
    hn_str_add(out, "]");
}

static const hn_value_dim *definer(const hn_graph *root, hn_dim sym)
{
    HN_FOR_DIMS_OF_SYM (d, root, sym)
        if (hn_value_is_live(d->value)) return d;
    return NULL;
}

static void print_symbol(const printer *p, hn_dim sym)
{
    const hn_sym *s = hn_sym_get(p->root->syms, sym);
    const hn_value_dim *d = s->kind == HN_SYM_VALUE ? definer(p->root, sym) : NULL;
    const bool any = strcmp(s->name, HN_SYM_ANY) == 0;
    if (s->kind == HN_SYM_VALUE && !d && !any) return; /* its definer is gone, and so is what it bounded */
    hn_str_add(p->out, "sym ");
    print_name(p->out, s->name);
    if (d) {
        hn_str_add(p->out, " = ");
        print_name(p->out, d->value->name);
        hn_str_addf(p->out, d->elem < 0 ? "#%d" : "[%d]", d->elem < 0 ? -1 - d->elem : d->elem);
    }
    if (any && !d) hn_str_add(p->out, " = _");
    print_bounds(p->out, s);
    hn_str_add(p->out, "\n");
}

/* ---- constants ---- */

static bool follows_from_name(const hn_value *v, int64_t n)
{
    enum { PROBE = 64 };
    uint8_t probe[PROBE * 8];
    const int64_t bytes = hn_dtype_bytes(v->type.dtype, n), k = HN_MIN(n, (int64_t)PROBE);
    const int64_t head = hn_dtype_bytes(v->type.dtype, k);
    memset(probe, 0, sizeof probe);
    hn_text_fill(v->name, v->type.dtype, k, probe);
    if (memcmp(probe, v->data->at, (size_t)head) != 0) return false;
    if (k == n) return true;
    uint8_t *all = calloc(1, (size_t)bytes + 1);
    if (!all) return false;
    hn_text_fill(v->name, v->type.dtype, n, all);
    const bool same = memcmp(all, v->data->at, (size_t)bytes) == 0;
    free(all);
    return same;
}

static void print_element(const printer *p, hn_dtype t, double f, int64_t i)
{
    char text[40];
    if (hn_dtype_is_float(t)) {
        hn_text_float(t, f, text);
        hn_str_add(p->out, text);
    } else if (t == HN_U64)
        hn_str_addf(p->out, "%llu", (unsigned long long)i);
    else
        hn_str_addf(p->out, "%lld", (long long)i);
}

/* As numbers, unless some NaN's payload would be lost. */
static bool print_values(const printer *p, const hn_value *v, int64_t n)
{
    double f[HN_TEXT_VALUES_MAX] = {0};
    int64_t i[HN_TEXT_VALUES_MAX] = {0};
    uint8_t back[HN_TEXT_VALUES_MAX * 8] = {0};
    const hn_dtype t = v->type.dtype;
    if (hn_dtype_is_float(t)) {
        hn_widen_f64(t, v->data->at, 0, n, f);
        for (int64_t k = 0; k < n; k++)
            if (f[k] != f[k]) f[k] = (double)NAN;
        hn_narrow_f64(t, f, n, back, 0, true);
    } else {
        hn_widen_i64(t, v->data->at, 0, n, i);
        hn_narrow_i64(t, i, n, back, 0);
    }
    if (memcmp(back, v->data->at, (size_t)hn_dtype_bytes(t, n)) != 0) return false;
    hn_str_add(p->out, " = {");
    for (int64_t k = 0; k < n; k++) {
        if (k) hn_str_add(p->out, ", ");
        print_element(p, t, f[k], i[k]);
    }
    hn_str_add(p->out, "}");
    return true;
}

static void print_data(const printer *p, const hn_value *v)
{
    char text[HN_DIGEST_TEXT];
    const int64_t n = hn_tdesc_numel_static(&v->type), bytes = n < 0 ? -1 : hn_dtype_bytes(v->type.dtype, n);
    if (bytes < 0 || (uint64_t)bytes > v->data->bytes || follows_from_name(v, n)) return;
    if (n <= HN_TEXT_VALUES_MAX && print_values(p, v, n)) return;
    if (bytes > HN_TEXT_HEX_MAX) {
        hn_str_addf(p->out, " = #%s", hn_digest_text(hn_data_digest(v->data), text));
        return;
    }
    hn_str_add(p->out, " = 0x");
    for (int64_t i = 0; i < bytes; i++)
        hn_str_addf(p->out, "%02x", ((const uint8_t *)v->data->at)[i]);
}

static void print_const(const printer *p, const hn_value *v)
{
    start_line(p);
    hn_str_add(p->out, "const ");
    print_name(p->out, v->name);
    hn_str_add(p->out, " ");
    print_type(p, v);
    print_data(p, v);
    hn_str_add(p->out, "\n");
}

static void print_const_once(const printer *p, const hn_graph *g, const hn_value *v)
{
    if (!v || !v->data || v->graph != g || p->seen[v->id]) return;
    p->seen[v->id] = 1;
    print_const(p, v);
}

/* Those of g that something reads, in the order of reading: edits that leave strays behind print alike. */
static void print_consts(const printer *p, const hn_graph *g, const hn_graph *reader)
{
    HN_FOR_NODES (n, reader) {
        for (int i = 0; i < n->n_in; i++)
            print_const_once(p, g, n->in[i].value);
        for (int i = 0; i < n->n_body; i++)
            if (n->body[i]) print_consts(p, g, n->body[i]);
    }
    for (int i = 0; i < reader->n_out; i++)
        print_const_once(p, g, reader->out[i].value);
}

/* ---- nodes ---- */

static bool is_default(const hn_attr_schema *s, const hn_attr *a)
{
    if (!a->set) return true;
    switch (s->kind) {
    case HN_ATTR_INT:
    case HN_ATTR_DIM:
    case HN_ATTR_DTYPE:
        return !s->required && a->i == s->dflt_i;
    case HN_ATTR_FLOAT:
        return !s->required && memcmp(&a->f, &s->dflt_f, sizeof a->f) == 0;
    case HN_ATTR_STR:
        return !s->required && strcmp(a->s, s->dflt_s ? s->dflt_s : "") == 0;
    case HN_ATTR_INTS:
    case HN_ATTR_DIMS:
    case HN_ATTR_FLOATS:
        break;
    }
    return false;
}

static void print_number(hn_str *out, double v)
{
    char text[40];
    hn_text_float(HN_F64, v, text);
    hn_str_add(out, text);
}

static void print_list(const printer *p, hn_attr_kind kind, const hn_attr *a)
{
    hn_str_add(p->out, "[");
    for (int i = 0; i < a->n; i++) {
        if (i) hn_str_add(p->out, ",");
        if (kind == HN_ATTR_FLOATS)
            print_number(p->out, a->fs[i]);
        else if (kind == HN_ATTR_DIMS)
            hn_dim_print(p->root->syms, a->is[i], p->out);
        else
            hn_str_addf(p->out, "%lld", (long long)a->is[i]);
    }
    hn_str_add(p->out, "]");
}

static void print_int(const printer *p, const hn_attr_schema *s, int64_t v)
{
    int n = 0;
    const char *name = s->values ? hn_text_enum_name(s->values, v, &n) : NULL;
    if (name)
        hn_str_add_n(p->out, name, (size_t)n);
    else
        hn_str_addf(p->out, "%lld", (long long)v);
}

static void print_attr(const printer *p, const hn_attr_schema *s, const hn_attr *a)
{
    hn_str_addf(p->out, "%s=", s->name);
    switch (s->kind) {
    case HN_ATTR_INT:
        print_int(p, s, a->i);
        break;
    case HN_ATTR_FLOAT:
        print_number(p->out, a->f);
        break;
    case HN_ATTR_DIM:
        hn_dim_print(p->root->syms, a->i, p->out);
        break;
    case HN_ATTR_DTYPE:
        hn_str_add(p->out, hn_dtype_name((hn_dtype)a->i));
        break;
    case HN_ATTR_STR:
        print_quoted(p->out, a->s);
        break;
    case HN_ATTR_INTS:
    case HN_ATTR_DIMS:
    case HN_ATTR_FLOATS:
        print_list(p, s->kind, a);
        break;
    }
}

static void print_attrs(const printer *p, const hn_node *n, const hn_op_def *op)
{
    int k = 0;
    for (int i = 0; i < op->n_attr; i++) {
        if (is_default(&op->attrs[i], &n->attr[i])) continue;
        hn_str_add(p->out, k++ ? ", " : " {");
        print_attr(p, &op->attrs[i], &n->attr[i]);
    }
    if (k) hn_str_add(p->out, "}");
}

static void print_graph(printer *p, const hn_graph *g);

static void print_bodies(printer *p, const hn_node *n)
{
    for (int i = 0; i < n->n_body; i++) {
        hn_str_add(p->out, " {\n");
        p->indent++;
        if (n->body[i]) print_graph(p, n->body[i]);
        p->indent--;
        start_line(p);
        hn_str_add(p->out, "}");
    }
}

static void print_node(printer *p, const hn_node *n)
{
    const hn_op_def *op = hn_op_of(n);
    start_line(p);
    for (int i = 0; i < n->n_out; i++) {
        if (i) hn_str_add(p->out, ", ");
        print_name(p->out, n->out[i]->name);
        hn_str_add(p->out, " ");
        print_type(p, n->out[i]);
    }
    hn_str_addf(p->out, " = %s(", op ? op->name : "?");
    for (int i = 0; i < n->n_in; i++) {
        if (i) hn_str_add(p->out, ", ");
        if (n->in[i].value)
            print_name(p->out, n->in[i].value->name);
        else
            hn_str_add(p->out, "_");
    }
    hn_str_add(p->out, ")");
    if (op) print_attrs(p, n, op);
    print_bodies(p, n);
    for (int i = 0; i < n->n_origin; i++) {
        hn_str_add(p->out, i ? ", " : " from ");
        print_quoted(p->out, n->origin[i]);
    }
    hn_str_add(p->out, "\n");
}

static void print_graph(printer *p, const hn_graph *g)
{
    for (int i = 0; i < g->n_in; i++) {
        start_line(p);
        hn_str_add(p->out, "in ");
        print_name(p->out, g->in[i]->name);
        hn_str_add(p->out, " ");
        print_type(p, g->in[i]);
        hn_str_add(p->out, "\n");
    }
    print_consts(p, g, g);
    HN_FOR_NODES (n, g)
        print_node(p, n);
    for (int i = 0; i < g->n_out; i++) {
        const hn_value *v = g->out[i].value;
        start_line(p);
        hn_str_add(p->out, "out ");
        print_name(p->out, v ? v->name : "_");
        if (v && strcmp(v->name, g->out_name[i]) != 0) {
            hn_str_add(p->out, " as ");
            print_name(p->out, g->out_name[i]);
        }
        hn_str_add(p->out, "\n");
    }
}

void hn_print(const hn_graph *g, hn_str *out)
{
    printer p = {.out = out, .root = g->root, .seen = calloc(g->root->next_id + 1, 1)};
    if (!p.seen) {
        out->oom = true;
        return;
    }
    if (g->name && *g->name) {
        hn_str_add(out, "graph ");
        print_quoted(out, g->name);
        hn_str_add(out, "\n");
    }
    for (int i = 0; i < hn_sym_count(g->root->syms); i++)
        print_symbol(&p, hn_sym_at(g->root->syms, i));
    print_graph(&p, g);
    free(p.seen);
}
