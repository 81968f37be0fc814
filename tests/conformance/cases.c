/*
 * ONNX backend cases through the public API. Reads one case folder a line on stdin; answers one line each:
 *
 *     pass | fail<TAB>reason | skip<TAB>reason        skip: refused as unsupported, or of a kind the API does not carry
 *
 * --eval compares the evaluator's outputs (the model's own types) instead of an engine's; --opt-level N (default 0).
 * tests/conformance/run.py drives it.
 */
#include <hone/hone.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api_int.h"
#include "base/arena.h"
#include "import/tensor_file.h"

enum { MAX_IO = 64 };

/* The ONNX backend runner's tolerances. */
static const double abs_tol = 1e-7, rel_tol = 1e-3;

static struct {
    bool eval;
    int opt_level;
    char engine[256]; /* scratch file */
} opt;

typedef struct result {
    const char *verdict; /* NULL while all is well */
    char reason[400];
} result;

static HN_PRINTF(3, 4) void say(result *r, const char *verdict, const char *fmt, ...)
{
    va_list ap;
    if (r->verdict) return;
    r->verdict = verdict;
    va_start(ap, fmt);
    vsnprintf(r->reason, sizeof r->reason, fmt, ap);
    va_end(ap);
    for (char *c = r->reason; *c; c++)
        if (*c == '\n' || *c == '\t') *c = ' ';
}

/* A refusal as unsupported is a skip, anything else a failure. Frees the error. */
static void say_error(result *r, const char *what, hone_error *err)
{
    const bool refused = hone_error_status(err) == HONE_E_UNSUPPORTED;
    say(r, refused ? "skip" : "fail", "%s: %s", what,
        hone_error_count(err) > 0 ? hone_error_item(err, 0) : hone_error_message(err));
    hone_error_free(err);
}

/* ---- the files of a case ---- */
static bool read_value(hn_arena *a, const char *folder, const char *what, int i, hn_file_value *ret, result *r)
{
    char path[1200];
    hn_diag dg = { 0 };
    snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, what, i);
    if (access(path, R_OK) != 0) return false;
    const hone_status s = hn_import_value_file(a, path, HN_TENSOR, ret, &dg);
    if (s == HONE_OK && ret->n == 1) return true;
    say(r, s == HONE_E_UNSUPPORTED ? "skip" : "fail", "%s_%d.pb: %s", what, i, dg.message);
    return false;
}

static void to_tensor(const hn_file_tensor *f, hone_tensor *ret)
{
    *ret = (hone_tensor){ .dtype = (hone_dtype)f->type.dtype, .rank = f->type.rank, .data = (void *)(uintptr_t)f->at,
                          .bytes = f->bytes };
    for (int i = 0; i < f->type.rank; i++)
        ret->dim[i] = f->type.dim[i];
}

typedef struct io_set {
    hone_io io[MAX_IO];
    hone_tensor file[MAX_IO]; /* inputs: what to feed; outputs: what is wanted */
    bool has_file[MAX_IO];
    int n, n_in;
    bool given; /* some of the model's inputs got their values when it was read */
} io_set;

/* Files carry the name of what they are for, or stand in the model's order; -1: for an input whose value the model has already. */
static int place_of(const io_set *s, bool output, const char *name, int otherwise)
{
    for (int i = output ? s->n_in : 0; i < (output ? s->n : s->n_in); i++)
        if (name[0] && strcmp(s->io[i].name, name) == 0) return i;
    if (s->given) return -1;
    return (output ? s->n_in : 0) + otherwise;
}

/* The suite's files hold bfloat16 as its bits in uint16, flattened. */
static void as_bfloat16(const hone_io *io, hone_tensor *t)
{
    int64_t n = 1;
    t->dtype = HONE_DTYPE_BF16;
    for (int i = 0; i < io->rank; i++)
        n *= io->dim[i];
    if (n * 2 != (int64_t)t->bytes) return;
    t->rank = io->rank;
    memcpy(t->dim, io->dim, sizeof t->dim);
}

static void load_file(hn_arena *a, const char *folder, io_set *s, bool output, int i, result *r)
{
    hn_file_value v = { 0 };
    if (!read_value(a, folder, output ? "output" : "input", i, &v, r)) return;
    const int at = place_of(s, output, v.name ? v.name : "", i);
    if (at < 0 || at >= s->n) return;
    to_tensor(&v.at[0], &s->file[at]);
    s->has_file[at] = true;
    if (s->io[at].dtype == HONE_DTYPE_BF16 && s->file[at].dtype == HONE_DTYPE_U16)
        as_bfloat16(&s->io[at], &s->file[at]);
    if (!output && s->file[at].rank != s->io[at].rank)
        say(r, "skip", "the suite's file for \"%s\" has rank %d where the model says %d", s->io[at].name, s->file[at].rank,
            s->io[at].rank);
}

static void load_files(hn_arena *a, const char *folder, io_set *s, result *r)
{
    for (int i = 0; i < MAX_IO && !r->verdict; i++) load_file(a, folder, s, false, i, r);
    for (int i = 0; i < s->n - s->n_in && !r->verdict; i++) load_file(a, folder, s, true, i, r);
    for (int i = 0; i < s->n; i++)
        if (!s->has_file[i]) say(r, "fail", "no file for \"%s\"", s->io[i].name);
}

static hn_vkind kind_of(const hone_model *m, int i)
{
    const hn_graph *g = m->g;
    return i < g->n_in ? g->in[i]->kind : g->out[i - g->n_in].value->kind;
}

static void list_io(hone_model *m, io_set *s, result *r)
{
    s->n = hone_model_io_count(m);
    if (s->n > MAX_IO) {
        say(r, "fail", "%d inputs and outputs", s->n);
        return;
    }
    for (int i = 0; i < s->n && !r->verdict; i++) {
        hone_error *err = NULL;
        if (hone_model_io(m, i, &s->io[i], &err) != HONE_OK) say_error(r, "model", err);
        else if (kind_of(m, i) != HN_TENSOR)
            say(r, "skip", "%s %s as %s: the API carries tensors", kind_of(m, i) == HN_SEQUENCE ? "a" : "an",
                kind_of(m, i) == HN_SEQUENCE ? "sequence" : "optional", s->io[i].is_output ? "output" : "input");
        else s->n_in += !s->io[i].is_output;
    }
}

/* ---- comparing ---- */
static void compare(const io_set *s, int at, const hone_tensor *got, result *r)
{
    const hone_tensor *want = &s->file[at];
    hone_difference d;
    hone_error *err = NULL;
    if (!want->data && want->bytes > 0) return;
    if (got->dtype != want->dtype)
        say(r, "fail", "output \"%s\" is %s, want %s", s->io[at].name, hone_dtype_name(got->dtype),
            hone_dtype_name(want->dtype));
    bool same = got->rank == want->rank;
    for (int i = 0; same && i < want->rank; i++)
        same = got->dim[i] == want->dim[i];
    if (!same) say(r, "fail", "output \"%s\" has another shape than wanted", s->io[at].name);
    if (r->verdict) return;
    if (hone_compare(got, want, abs_tol, rel_tol, &d, &err) != HONE_OK) say_error(r, "compare", err);
    else if (d.l0 > 0 || d.n_nonfinite > 0)
        say(r, "fail", "output \"%s\": %.3g of %lld elements are off, worst by %.3g", s->io[at].name, d.l0,
            (long long)d.n, d.linf);
}

/* ---- the two ways of running ---- */
static void by_evaluation(hone_model *m, io_set *s, result *r)
{
    hone_tensor out[MAX_IO] = { 0 };
    hone_error *err = NULL;
    if (hone_model_evaluate(m, false, s->file, out, NULL, NULL, &err) != HONE_OK) {
        say_error(r, "evaluate", err);
        return;
    }
    for (int i = s->n_in; i < s->n; i++) {
        compare(s, i, &out[i - s->n_in], r);
        hone_tensor_free(&out[i - s->n_in]);
    }
}

static void feed(hone_context *c, hone_engine *e, const io_set *s, result *r)
{
    for (int i = 0; i < s->n_in && !r->verdict; i++) {
        hone_error *err = NULL;
        const int io = hone_engine_find_io(e, s->io[i].name);
        const hone_tensor *t = &s->file[i];
        if (io < 0) continue; /* an input that nothing reads may be gone */
        if (hone_context_set_shape(c, io, t->rank, t->dim, &err) != HONE_OK ||
            hone_context_bind(c, io, t->data, t->bytes, &err) != HONE_OK)
            say_error(r, "bind", err);
    }
}

static void fetch(hone_context *c, hone_engine *e, const io_set *s, result *r)
{
    for (int i = s->n_in; i < s->n && !r->verdict; i++) {
        hone_error *err = NULL;
        hone_io io;
        hone_tensor got = { 0 };
        const int at = hone_engine_find_io(e, s->io[i].name);
        if (at < 0) {
            say(r, "fail", "the engine has no output \"%s\"", s->io[i].name);
            return;
        }
        if (hone_engine_io(e, at, &io, &err) != HONE_OK ||
            hone_context_shape(c, at, &got.rank, got.dim, &err) != HONE_OK) {
            say_error(r, "output", err);
            return;
        }
        got.dtype = io.dtype;
        got.data = (void *)(uintptr_t)hone_context_output(c, at, &got.bytes);
        compare(s, i, &got, r);
    }
}

static void by_engine(hone_model *m, io_set *s, result *r)
{
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    hone_context_options co = HONE_CONTEXT_OPTIONS_INIT;
    hone_error *err = NULL;
    hone_engine *e = NULL;
    hone_context *c = NULL;
    b.opt_level = opt.opt_level;
    b.threads = co.threads = 1;
    if (hone_build(m, &b, opt.engine, NULL, &err) != HONE_OK) say_error(r, "build", err);
    else if (hone_engine_open(opt.engine, NULL, &e, &err) != HONE_OK) say_error(r, "open", err);
    else if (hone_context_create(e, &co, &c, &err) != HONE_OK) say_error(r, "context", err);
    if (!r->verdict) feed(c, e, s, r);
    if (!r->verdict && hone_context_run(c, &err) != HONE_OK) say_error(r, "run", err);
    if (!r->verdict) fetch(c, e, s, r);
    hone_context_free(c);
    hone_engine_free(e);
    unlink(opt.engine);
}

/*
 * Cases give axes, scales and flags as inputs, which a compiler has to know: where the model is refused without them, scalars and
 * vectors (of the first input scalars alone) get their values when the model is read.
 */
static int given_values(hn_arena *a, const char *folder, hone_input_value *ret)
{
    int n = 0;
    for (int i = 0; i < MAX_IO; i++) {
        hn_file_value v = { 0 };
        result ignored = { 0 };
        if (!read_value(a, folder, "input", i, &v, &ignored) || v.at[0].type.rank > (i > 0) || !v.name) continue;
        ret[n].input = v.name;
        to_tensor(&v.at[0], &ret[n++].value);
    }
    return n;
}

static hone_model *load_model(hn_arena *a, const char *folder, bool *ret_given, result *r)
{
    char path[1200];
    hone_error *err = NULL, *again = NULL;
    hone_model *m = NULL;
    hone_input_value value[MAX_IO];
    hone_model_options o = HONE_MODEL_OPTIONS_INIT;
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    if (hone_model_load(path, NULL, &m, &err) == HONE_OK) return m;
    o.value = value;
    o.n_value = given_values(a, folder, value);
    if (o.n_value > 0 && hone_model_load(path, &o, &m, &again) == HONE_OK) {
        hone_error_free(err);
        *ret_given = true;
        return m;
    }
    say_error(r, "import", again ? again : err);
    if (again) hone_error_free(err);
    return NULL;
}

static void run_case(const char *folder, result *r)
{
    hn_arena *a = hn_arena_create();
    io_set s = { 0 };
    hone_model *m = load_model(a, folder, &s.given, r);
    if (!r->verdict) list_io(m, &s, r);
    if (!r->verdict) load_files(a, folder, &s, r);
    if (!r->verdict) (opt.eval ? by_evaluation : by_engine)(m, &s, r);
    hone_model_free(m);
    hn_arena_destroy(a);
}

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [--eval] [--opt-level N]  (case folders on stdin)\n", program);
    return 2;
}

int main(int argc, char **argv)
{
    static char line[1024];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--eval") == 0) opt.eval = true;
        else if (strcmp(argv[i], "--opt-level") == 0 && i + 1 < argc) opt.opt_level = atoi(argv[++i]);
        else return usage(argv[0]);
    }
    const char *tmp = getenv("TMPDIR");
    snprintf(opt.engine, sizeof opt.engine, "%s/hone-conformance-%ld.hone", tmp && *tmp ? tmp : "/tmp", (long)getpid());
    while (fgets(line, sizeof line, stdin)) {
        result r = { 0 };
        line[strcspn(line, "\n")] = 0;
        if (!line[0]) continue;
        run_case(line, &r);
        if (r.verdict) printf("%s\t%s\n", r.verdict, r.reason);
        else printf("pass\n");
        fflush(stdout);
    }
    return 0;
}
