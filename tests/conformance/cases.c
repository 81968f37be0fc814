/*
 * ONNX backend cases through the public API. Reads one case folder a line on stdin; answers one line each:
 *
 *     pass | fail<TAB>reason | skip<TAB>reason        skip: refused as unsupported
 *
 * --eval compares the evaluator's outputs (the model's own types) instead of an engine's; --self wants what the evaluator yields
 * instead of what the files hold; --loose is the tolerance for random graphs, by what rounding does to the very model;
 * --opt-level N (default 0), --route TEXT and --target NAME are those of building. --open makes every fixed extent of an input a symbol where the
 * model's ops allow it, and says after "pass" how many of how many, and why not the first of the others.
 * --write judges nothing: outputs go to folder/got_<i>.bin, and after "pass" stands for each its dtype, extents and noise (what the
 * model's own rounding does to it; 0 without --loose), "f32 2,3 1e-7;".
 * --numbers N takes the outputs of up to N sets of inputs as another runtime's, and says after "pass" how far both lie from float64 (numbers.h).
 * A line "folder<TAB>twin" wants what an engine of the twin's model yields on the folder's inputs, by the tolerance of --loose.
 * tests/conformance/run.py and tests/fuzz/graphs.py drive it.
 */
#include <hone/hone.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api_int.h"
#include "base/arena.h"
#include "codegen/codegen.h"
#include "import/tensor_file.h"
#include "judge.h"
#include "numbers.h"
#include "open_dims.h"

static struct {
    bool eval, self, loose, open, write;
    int opt_level;
    int n_set; /* --numbers; 0: one set, judged */
    const char *route, *target;
    char engine[256]; /* scratch file */
} opt;

static int set; /* of the case's inputs and outputs */
static hn_compile_pool *pool; /* stays for the next case: starting a compiler takes longer than building a small model */

/* ---- the files of a case ---- */
static bool read_value(hn_arena *a, const char *folder, const char *what, int i, hn_vkind kind, hn_file_value *ret, result *r)
{
    char path[1200];
    hn_diag dg = { 0 };
    snprintf(path, sizeof path, "%s/test_data_set_%d/%s_%d.pb", folder, set, what, i);
    if (access(path, R_OK) != 0) return false;
    const hone_status s = hn_import_value_file(a, path, kind, ret, &dg);
    if (s == HONE_OK && (kind != HN_TENSOR || ret->n == 1)) return true;
    say(r, s == HONE_E_UNSUPPORTED ? "skip" : "fail", "%s_%d.pb: %s", what, i, dg.message);
    return false;
}

static void to_tensor(const hn_file_tensor *f, hone_tensor *ret)
{
    *ret = (hone_tensor){ .dtype = (hone_dtype)f->type.dtype, .rank = f->type.rank, .data = (void *)(uintptr_t)f->at,
                          .bytes = f->bytes };
    for (int i = 0; i < f->type.rank; i++) ret->dim[i] = f->type.dim[i];
}

/* Files carry the name of what they are for, or stand in the model's order; -1: for an input whose value the model has already. */
static int place_of(const io_set *s, bool output, const char *name, int otherwise)
{
    const int end = output ? s->n : s->n_in;
    int at = output ? s->n_in : 0;
    for (int i = at; i < end; i++)
        if (name[0] && strcmp(s->io[i].name, name) == 0) return i;
    if (s->given) return -1;
    for (int k = 0; k < otherwise && at < end; k++) at += s->is_list[at] ? 2 : 1;
    return at < end ? at : -1;
}

static int64_t count_of(const hone_io *io)
{
    int64_t n = 1;
    for (int i = 0; i < io->rank; i++) n *= io->dim[i];
    return n;
}

/* The suite's older files hold bfloat16 as its bits in uint16, flattened and cut off. */
static void as_bfloat16(io_set *s, int at)
{
    hone_tensor *t = &s->file[at];
    if (s->io[at].dtype != HONE_DTYPE_BF16 || t->dtype != HONE_DTYPE_U16) return;
    t->dtype = HONE_DTYPE_BF16;
    s->cut_off[at] = true;
    if (count_of(&s->io[at]) * 2 != (int64_t)t->bytes) return;
    t->rank = s->io[at].rank;
    memcpy(t->dim, s->io[at].dim, sizeof t->dim);
}

/* Some files for "like", of which only the dtype is read, have another rank than the model says: zeros of the right one do. */
static void as_declared(hn_arena *a, io_set *s, const hone_model *m, int at, result *r)
{
    const hone_io *io = &s->io[at];
    hone_tensor *t = &s->file[at];
    const int64_t n = count_of(io);
    if (t->rank == io->rank) return;
    if (m->g->in[at]->n_uses > 0 || n < 0)
        say(r, "fail", "the suite's file for \"%s\" has rank %d where the model says %d", io->name, t->rank, io->rank);
    *t = (hone_tensor){ .dtype = io->dtype, .rank = io->rank, .bytes = (size_t)hn_dtype_bytes((hn_dtype)io->dtype, n) };
    memcpy(t->dim, io->dim, sizeof t->dim);
    t->data = hn_arena_alloc(a, t->bytes + 1, 1);
}

/* What the list at an entry is: an optional has files of its own form. */
static hn_vkind kind_at(const hone_model *m, const io_set *s, int at)
{
    if (!s->is_list[at]) return HN_TENSOR;
    if (at >= s->n_in) return hn_in(m->g->out[at - s->n_in].value->def, 0)->kind;
    HN_FOR_USES (u, m->g->in[at])
        if (u->node && u->node->op == HN_OP_list_unpack) return u->node->out[0]->kind;
    return HN_SEQUENCE;
}

static void take_list(hn_arena *a, io_set *s, int at, const hn_file_value *v, result *r)
{
    hone_tensor *item = HN_NEW_N(a, hone_tensor, v->n + 1);
    hone_error *err = NULL;
    for (int i = 0; i < v->n; i++) to_tensor(&v->at[i], &item[i]);
    if (hone_list_pack(item, v->absent ? -1 : v->n, s->io[at].dtype, &s->file[at], &err) != HONE_OK) say_error(r, "list", err);
    s->has_file[at] = s->has_file[at + 1] = true;
}

static void load_file(hn_arena *a, const char *folder, const hone_model *m, io_set *s, bool output, int i, result *r)
{
    hn_file_value v = { 0 };
    const char *what = output ? "output" : "input";
    const int guess = place_of(s, output, "", i);
    if (!read_value(a, folder, what, i, guess < 0 ? HN_TENSOR : kind_at(m, s, guess), &v, r)) return;
    const int at = place_of(s, output, v.name ? v.name : "", i);
    if (at < 0 || at >= s->n) return;
    if (at != guess && guess >= 0 && !read_value(a, folder, what, i, kind_at(m, s, at), &v, r)) return;
    if (s->is_list[at]) {
        take_list(a, s, at, &v, r);
        return;
    }
    to_tensor(&v.at[0], &s->file[at]);
    s->has_file[at] = true;
    as_bfloat16(s, at);
    if (!output) as_declared(a, s, m, at, r);
}

static void load_files(hn_arena *a, const char *folder, const hone_model *m, io_set *s, result *r)
{
    for (int i = 0; i < MAX_IO && !r->verdict; i++) load_file(a, folder, m, s, false, i, r);
    for (int i = 0; i < s->n - s->n_in && !r->verdict && !opt.self; i++) load_file(a, folder, m, s, true, i, r);
    for (int i = 0; i < (opt.self ? s->n_in : s->n); i++)
        if (!s->has_file[i]) say(r, "fail", "no file for \"%s\"", s->io[i].name);
}

static bool part_of_list(const io_set *s, int i)
{
    return s->is_list[i] || (i && s->is_list[i - 1]);
}

static void free_lists(io_set *s)
{
    for (int i = s->n_in; s->owned && i < s->n; i++)
        if (!part_of_list(s, i)) hone_tensor_free(&s->file[i]);
    for (int i = s->n_in; opt.self && i < s->n; i++) hone_tensor_free(&s->file[i]);
    if (opt.self) s->n = s->n_in;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; s->is_list[i] && k < 2; k++) hone_tensor_free(&s->file[i + k]);
}

static void list_io(hone_model *m, io_set *s, result *r)
{
    s->n = hone_model_io_count(m);
    if (s->n > MAX_IO) say(r, "fail", "%d inputs and outputs", s->n);
    for (int i = 0; i < s->n && !r->verdict; i++) {
        hone_error *err = NULL;
        if (hone_model_io(m, i, &s->io[i], &err) != HONE_OK) say_error(r, "model", err);
        else s->n_in += !s->io[i].is_output;
        char shapes[300];
        snprintf(shapes, sizeof shapes, "%s.shapes", i ? s->io[i - 1].name : "");
        if (i && !r->verdict && strcmp(s->io[i].name, shapes) == 0) s->is_list[i - 1] = true;
    }
}

/* ---- the two ways of running ---- */
typedef struct way {
    hone_model *m;
    hone_engine *e;
    hone_context *c;
} way;

static bool by_evaluation(void *user, const io_set *s, hone_tensor *got, result *r)
{
    way *w = user;
    hone_error *err = NULL;
    if (hone_model_evaluate(w->m, false, s->file, got + s->n_in, NULL, NULL, &err) != HONE_OK) say_error(r, "evaluate", err);
    return !r->verdict;
}

/* What the evaluator yields, where that is wanted, and how far its rounding lies from double. */
static void evaluate(way *w, io_set *s, result *r)
{
    hone_tensor own[MAX_IO] = { 0 }, exact[MAX_IO] = { 0 };
    hone_error *err = NULL;
    if (hone_model_evaluate(w->m, false, s->file, own, NULL, NULL, &err) != HONE_OK ||
        (s->loose && hone_model_evaluate(w->m, true, s->file, exact, NULL, NULL, &err) != HONE_OK))
        say_error(r, "evaluate", err);
    for (int i = s->n_in; i < s->n && !r->verdict; i++) {
        hone_difference d;
        const int k = i - s->n_in;
        if (s->loose && hone_compare(&own[k], &exact[k], 0, 0, &d, NULL) == HONE_OK && d.n_nonfinite == 0) s->noise[i] = d.linf;
        hone_tensor_free(&exact[k]);
        if (opt.self) s->file[i] = own[k];
        else hone_tensor_free(&own[k]);
    }
}

/* A file "narrowest" beside the model names the narrowest float type that it computes in. */
static hone_dtype narrowest_float(const char *folder)
{
    static const hone_dtype all[] = { HONE_DTYPE_F32, HONE_DTYPE_F16, HONE_DTYPE_BF16 };
    char path[2100], name[16] = "";
    snprintf(path, sizeof path, "%s/narrowest", folder);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%15s", name) != 1) name[0] = 0;
    if (f) fclose(f);
    for (int i = 0; i < HN_COUNT(all); i++)
        if (strcmp(name, hone_dtype_name(all[i])) == 0) return all[i];
    return HONE_DTYPE_NONE;
}

static void feed(way *w, const io_set *s, result *r)
{
    for (int i = 0; i < s->n_in && !r->verdict; i++) {
        hone_error *err = NULL;
        const int io = hone_engine_find_io(w->e, s->io[i].name);
        const hone_tensor *t = &s->file[i];
        if (io < 0) continue; /* an input that nothing reads may be gone */
        if (hone_context_set_shape(w->c, io, t->rank, t->dim, &err) != HONE_OK ||
            hone_context_bind(w->c, io, t->data, t->bytes, &err) != HONE_OK)
            say_error(r, "bind", err);
    }
}

static void fetch(way *w, const io_set *s, int i, hone_tensor *got, result *r)
{
    hone_error *err = NULL;
    hone_io io;
    const int at = hone_engine_find_io(w->e, s->io[i].name);
    if (at < 0) {
        say(r, "fail", "the engine has no output \"%s\"", s->io[i].name);
        return;
    }
    if (hone_engine_io(w->e, at, &io, &err) != HONE_OK || hone_context_shape(w->c, at, &got->rank, got->dim, &err) != HONE_OK) {
        say_error(r, "output", err);
        return;
    }
    const void *data = hone_context_output(w->c, at, &got->bytes);
    got->dtype = io.dtype;
    got->data = malloc(got->bytes + 1);
    if (got->data && data) memcpy(got->data, data, got->bytes);
}

static bool by_engine(void *user, const io_set *s, hone_tensor *got, result *r)
{
    way *w = user;
    hone_error *err = NULL;
    feed(w, s, r);
    if (!r->verdict && hone_context_run(w->c, &err) != HONE_OK) say_error(r, "run", err);
    for (int i = s->n_in; i < s->n && !r->verdict; i++) fetch(w, s, i, &got[i], r);
    return !r->verdict;
}

/* As hone_build(), by the pool. */
static hone_status build_engine(hone_model *m, const hone_build_options *opts, hone_error **err)
{
    hn_diag dg = { 0 };
    hn_build_report report;
    hn_api_build b;
    hn_arena *a = hn_arena_create();
    hone_status s = hn_api_build_options(a, opts, &b, &dg);
    const hn_compile_options c = { .n_worker = 1, .cache = { .dir = s == HONE_OK ? b.o.cache_dir : NULL } };
    if (s == HONE_OK && !pool) s = hn_compile_pool_create(&c, &pool, &dg);
    b.o.pool = pool;
    if (s == HONE_OK) s = hn_api_build_model(a, &b, m, opt.engine, &report, &dg);
    hn_arena_destroy(a);
    return s == HONE_OK ? s : hn_api_fail(err, &dg, NULL);
}

static void build(way *w, result *r)
{
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    hone_context_options co = HONE_CONTEXT_OPTIONS_INIT;
    hone_error *err = NULL;
    b.opt_level = opt.opt_level;
    b.route = opt.route;
    b.target = opt.target;
    b.threads = co.threads = 1;
    if (build_engine(w->m, &b, &err) != HONE_OK) say_error(r, "build", err);
    else if (hone_engine_open(opt.engine, NULL, &w->e, &err) != HONE_OK) say_error(r, "open", err);
    else if (hone_context_create(w->e, &co, &w->c, &err) != HONE_OK) say_error(r, "context", err);
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
        if (!read_value(a, folder, "input", i, HN_TENSOR, &v, &ignored) || v.at[0].type.rank > (i > 0) || !v.name) continue;
        ret[n].input = v.name;
        to_tensor(&v.at[0], &ret[n++].value);
    }
    return n;
}

/* o: as m was read. The model is another one then, so names of inputs and outputs are copied. */
static void open_model(hn_arena *a, hone_model *m, const hone_model_options *o, io_set *s, open_dims *ret)
{
    for (int i = 0; i < s->n; i++) s->io[i].name = hn_arena_strdup(a, s->io[i].name);
    hn_import_value *v = HN_NEW_N(a, hn_import_value, o->n_value + 1);
    for (int i = 0; v && i < o->n_value; i++) {
        const hone_tensor *t = &o->value[i].value;
        v[i] = (hn_import_value){ .input = o->value[i].input, .data = t->data,
                                  .type = { .dtype = (hn_dtype)t->dtype, .rank = t->rank } };
        for (int k = 0; k < t->rank; k++) v[i].type.dim[k] = t->dim[k];
    }
    open_all_dims(m, &(hn_import_opts){ .value = v, .n_value = o->n_value }, ret);
}

/* ret_opts: what it was read with. */
static hone_model *load_model(hn_arena *a, const char *folder, hone_model_options *ret_opts, result *r)
{
    char path[1200];
    hone_error *err = NULL, *again = NULL;
    hone_model *m = NULL;
    hone_input_value *value = HN_NEW_N(a, hone_input_value, MAX_IO);
    hone_model_options o = HONE_MODEL_OPTIONS_INIT;
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    if (hone_model_load(path, NULL, &m, &err) == HONE_OK) return m;
    o.value = value;
    o.n_value = given_values(a, folder, value);
    if (o.n_value > 0 && hone_model_load(path, &o, &m, &again) == HONE_OK) {
        hone_error_free(err);
        *ret_opts = o;
        return m;
    }
    say_error(r, "import", again ? again : err);
    if (again) hone_error_free(err);
    return NULL;
}

/* What another model with the same inputs and outputs makes of the inputs. */
static void want_of_twin(hn_arena *a, const char *twin, io_set *s, result *r)
{
    hone_tensor got[MAX_IO] = { 0 };
    hone_model_options o = HONE_MODEL_OPTIONS_INIT;
    way w = { .m = load_model(a, twin, &o, r) };
    if (!r->verdict && s->given && o.n_value == 0) say(r, "skip", "the twin takes values that the other needs when it is read");
    if (!r->verdict) build(&w, r);
    if (!r->verdict) by_engine(&w, s, got, r);
    for (int i = s->n_in; i < s->n && !r->verdict; i++) {
        if (part_of_list(s, i)) hone_tensor_free(&s->file[i]);
        s->file[i] = got[i];
        got[i] = (hone_tensor){ 0 };
    }
    s->owned = !r->verdict;
    for (int i = 0; i < s->n; i++) hone_tensor_free(&got[i]);
    hone_context_free(w.c);
    hone_engine_free(w.e);
    hone_model_free(w.m);
}

/* ---- outputs for others to compare ---- */
static void write_output(const char *folder, const io_set *s, int i, const hone_tensor *t, hn_str *said, result *r)
{
    char path[2100];
    snprintf(path, sizeof path, "%s/got_%d.bin", folder, i - s->n_in);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(t->data, 1, t->bytes, f) != t->bytes) say(r, "fail", "cannot write %s", path);
    if (f) fclose(f);
    hn_str_addf(said, "%s ", hone_dtype_name(t->dtype));
    for (int a = 0; a < t->rank; a++) hn_str_addf(said, "%s%lld", a ? "," : "", (long long)t->dim[a]);
    hn_str_addf(said, " %g;", s->noise[i]);
}

static void write_outputs(const char *folder, way *w, const io_set *s, hn_str *said, result *r)
{
    hone_tensor got[MAX_IO] = { 0 };
    if (by_engine(w, s, got, r))
        for (int i = s->n_in; i < s->n && !r->verdict; i++) write_output(folder, s, i, &got[i], said, r);
    for (int i = 0; i < s->n; i++) hone_tensor_free(&got[i]);
}

/* ---- how far from float64 ---- */
static bool has_set(const char *folder)
{
    char path[2100];
    snprintf(path, sizeof path, "%s/test_data_set_%d", folder, set);
    return access(path, R_OK) == 0;
}

/* The sets of inputs one after another: an engine's outputs, the files' and float64's. */
static void measure(hn_arena *a, const char *folder, way *w, io_set *s, result *r)
{
    static error_sums sums[MAX_IO];
    memset(sums, 0, sizeof sums);
    for (set = 0; set < opt.n_set && !r->verdict && has_set(folder); set++) {
        hone_tensor got[MAX_IO] = { 0 }, exact[MAX_IO] = { 0 };
        hone_error *err = NULL;
        load_files(a, folder, w->m, s, r);
        if (!r->verdict && by_engine(w, s, got, r) && hone_model_evaluate(w->m, true, s->file, exact, NULL, NULL, &err) != HONE_OK)
            say_error(r, "evaluate", err);
        for (int i = s->n_in; i < s->n; i++) {
            if (!r->verdict && got[i].dtype == HONE_DTYPE_F32) add_errors(&sums[i], &got[i], &s->file[i], &exact[i - s->n_in]);
            hone_tensor_free(&got[i]);
            hone_tensor_free(&exact[i - s->n_in]);
        }
    }
    set = 0;
    if (!r->verdict) say_errors(sums, s, r);
}

static void run_case(const char *folder, const char *twin, open_dims *open, hn_str *said, result *r)
{
    hn_arena *a = hn_arena_create();
    io_set s = { .name = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder };
    hone_model_options o = HONE_MODEL_OPTIONS_INIT;
    way w = { .m = load_model(a, folder, &o, r) };
    s.given = o.n_value > 0;
    if (!r->verdict) list_io(w.m, &s, r);
    if (!r->verdict && opt.open) open_model(a, w.m, &o, &s, open);
    if (!r->verdict) load_files(a, folder, w.m, &s, r);
    s.loose = opt.loose || twin;
    if (s.loose) s.narrowest = narrowest_float(folder);
    s.foreign = !opt.self;
    if (!r->verdict && (opt.write ? s.loose : opt.self || s.loose)) evaluate(&w, &s, r);
    if (!r->verdict && twin) want_of_twin(a, twin, &s, r);
    if (!r->verdict && !opt.eval) build(&w, r);
    if (!r->verdict && opt.n_set) measure(a, folder, &w, &s, r);
    else if (!r->verdict && opt.write) write_outputs(folder, &w, &s, said, r);
    else if (!r->verdict) judge(&s, opt.eval ? by_evaluation : by_engine, &w, r);
    free_lists(&s);
    hone_context_free(w.c);
    hone_engine_free(w.e);
    unlink(opt.engine);
    hone_model_free(w.m);
    hn_arena_destroy(a);
}

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [--eval] [--self] [--loose] [--open] [--write] [--numbers N] [--opt-level N] [--route TEXT] [--target NAME]  (case folders on stdin)\n",
            program);
    return 2;
}

int main(int argc, char **argv)
{
    static char line[2048];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--eval") == 0) opt.eval = true;
        else if (strcmp(argv[i], "--self") == 0) opt.self = true;
        else if (strcmp(argv[i], "--loose") == 0) opt.loose = true;
        else if (strcmp(argv[i], "--open") == 0) opt.open = true;
        else if (strcmp(argv[i], "--write") == 0) opt.write = opt.self = true;
        else if (strcmp(argv[i], "--opt-level") == 0 && i + 1 < argc) opt.opt_level = atoi(argv[++i]);
        else if (strcmp(argv[i], "--numbers") == 0 && i + 1 < argc) opt.n_set = atoi(argv[++i]);
        else if (strcmp(argv[i], "--route") == 0 && i + 1 < argc) opt.route = argv[++i];
        else if (strcmp(argv[i], "--target") == 0 && i + 1 < argc) opt.target = argv[++i];
        else return usage(argv[0]);
    }
    const char *tmp = getenv("TMPDIR");
    snprintf(opt.engine, sizeof opt.engine, "%s/hone-conformance-%ld.hone", tmp && *tmp ? tmp : "/tmp", (long)getpid());
    while (fgets(line, sizeof line, stdin)) {
        result r = { 0 };
        line[strcspn(line, "\n")] = 0;
        if (!line[0]) continue;
        open_dims open = { 0 };
        char *twin = strchr(line, '\t');
        if (twin) *twin++ = 0;
        hn_str said = { 0 };
        run_case(line, twin, &open, &said, &r);
        if (r.verdict) printf("%s\t%s\n", r.verdict, r.reason);
        else if (opt.open) printf("pass\t%d of %d open%s%s\n", open.n_open, open.n, open.refusal[0] ? ": " : "", open.refusal);
        else if (opt.write) printf("pass\t%s\n", hn_str_get(&said));
        else printf(opt.n_set ? "pass\t%s\n" : "pass%s\n", r.reason);
        fflush(stdout);
        hn_str_done(&said);
    }
    hn_compile_pool_destroy(pool);
    return 0;
}
