#include "eval/eval_test.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* By way of a constant's text: the parser is tested on its own. */
hn_tensor hn_test_tensor(hn_test *t, const char *text)
{
    const char *end = strchr(text, ']');
    CHECK(end != NULL);
    hn_str s = {0};
    hn_str_add(&s, "const c ");
    hn_str_add_n(&s, text, (size_t)(end - text) + 1);
    hn_str_add(&s, " = {");
    for (const char *p = end + 1 + (end[1] == ' '); *p; p++)
        hn_str_add_n(&s, *p == ' ' ? "," : p, 1);
    hn_str_add(&s, "}  out c");
    const hn_value *v = hn_test_graph(t, hn_str_get(&s))->out[0].value;
    hn_str_done(&s);
    return (hn_tensor){.type = v->type, .data = (void *)(uintptr_t)v->data->at, .bytes = v->data->bytes};
}

const char *hn_test_tensor_text(hn_test *t, const hn_tensor *x)
{
    hn_str s = {0};
    if (x->kind != HN_TENSOR) {
        hn_str_addf(&s, "(%d", x->n_item);
        for (int i = 0; i < x->n_item; i++)
            hn_str_addf(&s, "; %s", hn_test_tensor_text(t, &x->item[i]));
        hn_str_add(&s, ")");
    } else {
        const int64_t n = hn_tensor_numel(x);
        double *v = hn_arena_alloc(t->arena, (size_t)n + 1, sizeof *v);
        hn_tensor_to_f64(x, v);
        hn_str_addf(&s, "%s[", hn_dtype_name(x->type.dtype));
        for (int i = 0; i < x->type.rank; i++)
            hn_str_addf(&s, "%s%lld", i ? "," : "", (long long)x->type.dim[i]);
        hn_str_add(&s, "]");
        for (int64_t i = 0; i < n; i++)
            hn_str_addf(&s, " %.9g", v[i]);
    }
    const char *text = hn_arena_strdup(t->arena, hn_str_get(&s));
    hn_str_done(&s);
    return text;
}

/* Results outlive the heap that they came on. */
static void to_arena(hn_test *t, hn_tensor *x)
{
    hn_tensor y = *x;
    y.owned = false;
    y.data = x->data ? hn_arena_memdup(t->arena, x->data, x->bytes + 1) : NULL;
    y.item = x->item ? hn_arena_alloc(t->arena, (size_t)x->n_item + 1, sizeof *x->item) : NULL;
    for (int i = 0; i < x->n_item; i++) {
        y.item[i] = x->item[i];
        x->item[i] = (hn_tensor){0};
        to_arena(t, &y.item[i]);
    }
    hn_tensor_done(x);
    *x = y;
}

hn_evaluated hn_test_eval_n(hn_test *t, const char *graph, hn_eval_mode mode, const char *const *in)
{
    hn_graph *g = hn_test_graph(t, graph);
    hn_tensor x[16];
    hn_diag dg = {0};
    const hn_eval_opts o = {.mode = mode};
    int n = 0;
    for (; in[n]; n++)
        x[n] = hn_test_tensor(t, in[n]);
    CHECK_EQ(n, g->n_in);
    hn_evaluated e = {.out = hn_arena_alloc(t->arena, (size_t)g->n_out + 1, sizeof(hn_tensor))};
    CHECK_OK(hn_eval_run(g, &o, x, e.out, &dg), &dg);
    hn_str s = {0};
    for (int i = 0; i < g->n_out; i++)
        to_arena(t, &e.out[i]);
    for (int i = 0; i < g->n_out; i++)
        hn_str_addf(&s, "%s\n", hn_test_tensor_text(t, &e.out[i]));
    e.text = hn_arena_strdup(t->arena, hn_str_get(&s));
    hn_str_done(&s);
    return e;
}

void hn_test_eval_fails(hn_test *t, const char *graph, const hn_eval_opts *opts, hone_status want,
                        const char *part, ...)
{
    hn_graph *g = hn_test_graph(t, graph);
    hn_tensor x[16], out[16] = {0};
    hn_diag dg = {0};
    char full[2048];
    va_list ap;
    va_start(ap, part);
    const char *text;
    for (int n = 0; n < 16 && (text = va_arg(ap, const char *)); n++)
        x[n] = hn_test_tensor(t, text);
    va_end(ap);
    const hone_status st = hn_eval_run(g, opts, x, out, &dg);
    hn_diag_format(&dg, full, sizeof full);
    if (st != want || !strstr(full, part)) FAIL("status %d, \"%s\" where \"%s\" is wanted", st, full, part);
    CHECK(out[0].data == NULL);
}
