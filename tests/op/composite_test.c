#include "composite_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "eval/eval.h"

enum { MAX_IO = 16 };
typedef enum fill { UNIFORM_A, UNIFORM_B, CONSTANT, ONE_HOT, HOSTILE, N_FILL } fill;

/* What a run is about, for messages. */
typedef struct job {
    const char *file, *text, *spec;
    int line;
    hn_test *t;
    fill how;
} job;

HN_NORETURN static void fail(const job *j, const char *what, const hn_diag *dg)
{
    char why[2048] = "";
    if (dg) hn_diag_format(dg, why, sizeof(why));
    hn_test_fail(j->file, j->line, "%s\n(%s, fill %d) %s\n%s", j->text, j->spec, (int)j->how, what, why);
}

/* ---- operands ---- */

/* "name=a" or "name=a..b" in the spec. strtod would take the first dot of "0..4" for its own. */
static bool spec_range(const char *spec, const char *name, double *lo, double *hi)
{
    const size_t n = strlen(name);

    for (const char *s = spec; s; s = strchr(s, ' ')) {
        char first[32] = "";
        s += strspn(s, " ");
        if (strncmp(s, name, n) != 0 || s[n] != '=') continue;
        const char *from = s + n + 1, *dots = strstr(from, ".."), *end = from + strcspn(from, " ");
        const bool range = dots && dots < end;
        memcpy(first, from, HN_MIN((size_t)((range ? dots : end) - from), sizeof(first) - 1));
        *lo = *hi = strtod(first, NULL);
        if (range) *hi = strtod(dots + 2, NULL);
        return true;
    }
    return false;
}

static void bind_symbols(const job *j, const hn_graph *g, int64_t *ret)
{
    for (int i = 0; i < hn_sym_count(g->syms); i++) {
        const hn_sym *s = hn_sym_get(g->syms, hn_sym_at(g->syms, i));
        double v = 1, hi;
        spec_range(j->spec, s->name, &v, &hi);
        ret[i] = (int64_t)v;
    }
}

static double float_value(const job *j, hn_rng *rng, int64_t i, int64_t n, double lo, double hi)
{
    static const double specials[] = { 0.0,       -0.0, 1e-310, -1e-42, 3e38, -3e38, INFINITY,
                                       -INFINITY, NAN,  1,      -1,     88.8, -104 };

    if (j->how == CONSTANT) return lo + (hi - lo) * 0.75;
    if (j->how == ONE_HOT) return i == n / 2 ? hi : lo > 0 ? lo : 0;
    if (j->how == HOSTILE && hn_rng_below(rng, 3) == 0)
        return specials[hn_rng_below(rng, HN_COUNT(specials))];
    return lo + (hi - lo) * hn_rng_unit(rng);
}

static int64_t int_value(const job *j, hn_rng *rng, double lo, double hi)
{
    const int64_t span = (int64_t)(hi - lo) + 1;
    return (int64_t)lo + (j->how == CONSTANT ? span / 2 : hn_rng_below(rng, span));
}

static void fill_tensor(const job *j, hn_rng *rng, hn_tensor *x, const char *name)
{
    const hn_dtype t = x->type.dtype;
    const bool is_float = hn_dtype_is_float(t);
    double lo = is_float ? -1 : hn_dtype_is_signed(t) ? -8 : 0, hi = is_float ? 1 : t == HN_BOOL ? 1 : 8;
    const int64_t n = hn_tensor_numel(x);

    spec_range(j->spec, name, &lo, &hi);
    for (int64_t i = 0; i < n; i++) {
        const double f = is_float ? float_value(j, rng, i, n, lo, hi) : 0;
        const int64_t v = is_float ? 0 : int_value(j, rng, lo, hi);
        if (is_float)
            hn_narrow_f64(t, &f, 1, x->data, i, false);
        else
            hn_narrow_i64(t, &v, 1, x->data, i);
    }
}

static void make_inputs(const job *j, const hn_graph *g, hn_tensor *in)
{
    int64_t sym[64];
    hn_rng rng;
    hn_diag dg = { 0 };

    hn_rng_init(&rng, 1 + (uint64_t)j->how);
    bind_symbols(j, g, sym);
    for (int i = 0; i < g->n_in; i++) {
        hn_tdesc d = g->in[i]->type;
        for (int a = 0; a < d.rank; a++)
            if (!hn_dim_eval(g->syms, d.dim[a], sym, &d.dim[a])) fail(j, "an extent has no value", NULL);
        if (hn_tensor_init(&in[i], &d, &dg) != HONE_OK) fail(j, "no memory", &dg);
        fill_tensor(j, &rng, &in[i], g->in[i]->name);
    }
}

/* ---- expanding ---- */

static bool types_agree(const hn_tdesc *a, const hn_tdesc *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (hn_dim_is_const(a->dim[i]) && hn_dim_is_const(b->dim[i]) && a->dim[i] != b->dim[i]) return false;
    return true;
}

static void expand_node(const job *j, hn_node *n)
{
    hn_diag dg = { 0 };
    hn_value *out[MAX_IO] = { 0 };
    hn_builder b;

    hn_builder_init(&b, n->graph, &dg);
    hn_at(&b, n);
    if (hn_op_of(n)->expand(&b, n, out) != HONE_OK || b.status != HONE_OK) fail(j, "does not expand", &dg);
    for (int i = 0; i < n->n_out; i++) {
        if (!out[i]) fail(j, "an output is missing after expansion", NULL);
        if (!types_agree(&out[i]->type, &n->out[i]->type)) fail(j, "the expansion's type differs", NULL);
        hn_replace(&b, n->out[i], out[i]);
    }
    hn_unlink(n);
}

/* False once nothing is left to expand. */
static bool expand_one(const job *j, hn_graph *g)
{
    HN_FOR_NODES (n, g) {
        for (int i = 0; i < n->n_body; i++)
            if (expand_one(j, n->body[i])) return true;
        if (!hn_op_of(n)->expand) continue;
        expand_node(j, n);
        return true;
    }
    return false;
}

static hn_graph *parse(const job *j, const char *text)
{
    hn_diag dg = { 0 };
    hn_graph *g;

    if (hn_parse(j->t->arena, text, &g, &dg) != HONE_OK) fail(j, "does not parse", &dg);
    return g;
}

static hn_graph *expanded(const job *j, const char *text)
{
    hn_graph *g = parse(j, text);
    hn_diags list = { 0 };

    for (int i = 0; expand_one(j, g); i++)
        if (i > 2000) fail(j, "expands without end", NULL);
    hn_sweep_dead(g);
    if (!hn_validate(g, true, &list)) fail(j, "is invalid once expanded", &list.at[0]);
    hn_diags_done(&list);
    return g;
}

/* ---- comparing ---- */

/* The loosest tolerance for the dtype among the graph's composites. */
static hn_tol tolerance(const hn_graph *g, hn_dtype t)
{
    hn_tol tol = { 0 };

    HN_FOR_NODES (n, g) {
        const hn_op_def *op = hn_op_of(n);
        if (!op->expand) continue;
        tol.rel = fmax(tol.rel, op->tol[t].rel);
        tol.abs = fmax(tol.abs, op->tol[t].abs);
    }
    return tol;
}

static bool near(double got, double want, hn_tol tol)
{
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want)) return got == want;
    return fabs(got - want) <= tol.abs + tol.rel * fabs(want);
}

static void compare(const job *j, int output, const hn_tensor *got, const hn_tensor *want, hn_tol tol)
{
    char what[256];
    const int64_t n = hn_tensor_numel(want);
    double *x = calloc((size_t)n + 1, sizeof(*x)), *y = calloc((size_t)n + 1, sizeof(*y));

    CHECK(x && y);
    if (!hn_tdesc_eq(&got->type, &want->type)) fail(j, "the shapes that come out differ", NULL);
    hn_tensor_to_f64(got, x);
    hn_tensor_to_f64(want, y);
    for (int64_t i = 0; i < n; i++) {
        if (near(x[i], y[i], tol)) continue;
        snprintf(what, sizeof(what),
                 "output %d, element %lld: expansion %.17g, reference %.17g, tolerance %g + %g rel", output,
                 (long long)i, x[i], y[i], tol.abs, tol.rel);
        fail(j, what, NULL);
    }
    free(x);
    free(y);
}

static void one_fill(const job *j, const hn_graph *whole, const hn_graph *simple)
{
    hn_tensor in[MAX_IO] = { 0 }, want[MAX_IO] = { 0 }, got[MAX_IO] = { 0 };
    const hn_eval_opts opts = { .mode = HN_EVAL_OWN };
    hn_diag dg = { 0 };

    make_inputs(j, whole, in);
    if (hn_eval_run(whole, &opts, in, want, &dg) != HONE_OK) fail(j, "the reference fails", &dg);
    if (hn_eval_run(simple, &opts, in, got, &dg) != HONE_OK) fail(j, "the expansion fails", &dg);
    for (int i = 0; i < whole->n_out; i++) {
        compare(j, i, &got[i], &want[i], tolerance(whole, whole->out[i].value->type.dtype));
        hn_tensor_done(&want[i]);
        hn_tensor_done(&got[i]);
    }
    for (int i = 0; i < whole->n_in; i++)
        hn_tensor_done(&in[i]);
}

/* The text with `to` for every "f32" that stands as a word. */
static char *retyped(hn_arena *a, const char *text, const char *to)
{
    hn_str s = { 0 };

    for (const char *p = text; *p;) {
        if (strncmp(p, "f32", 3) == 0) {
            hn_str_add(&s, to);
            p += 3;
        } else {
            hn_str_add_n(&s, p++, 1);
        }
    }
    char *copy = hn_arena_strdup(a, hn_str_get(&s));
    hn_str_done(&s);
    return copy;
}

void composite_expands_at(const char *file, int line, hn_test *t, const char *text, const char *spec,
                          int flags)
{
    static const char *const types[] = { "f32", "f64", "f16", "bf16" };
    const int n_type = flags & E_AS_IS ? 1 : flags & E_HALF ? 4 : 2;

    for (int k = 0; k < n_type; k++) {
        job j = {
            .file = file, .line = line, .t = t, .spec = spec, .text = retyped(t->arena, text, types[k])
        };
        const hn_graph *whole = parse(&j, j.text), *simple = expanded(&j, j.text);
        if (whole->n_in > MAX_IO || whole->n_out > MAX_IO) fail(&j, "has too many inputs or outputs", NULL);
        for (int how = 0; how < N_FILL; how++) {
            j.how = (fill)how;
            if (how == HOSTILE && !(flags & E_HOSTILE)) continue;
            one_fill(&j, whole, simple);
        }
    }
}
