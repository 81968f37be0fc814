/* Engines and contexts through the public API. */
#include "api/api_int.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

struct hone_engine {
    hn_engine *e;
    char payload[HN_DIGEST_TEXT];
};

struct hone_context {
    hn_context *c;
};

hone_status hn_api_misuse(hone_error **err, const char *what)
{
    hn_diag dg = { 0 };
    HN_RAISE(&dg, HONE_E_INVALID, "%s", what);
    return hn_api_fail(err, &dg, NULL);
}

hone_status hn_api_options(void *ret, const void *dflt, size_t bytes, const void *given, hn_diag *dg)
{
    size_t size;
    memcpy(ret, dflt, bytes);
    if (!given) return HONE_OK;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size) {
        hn_hint(dg, "Start from the struct's INIT macro.");
        return HN_RAISE(dg, HONE_E_INVALID, "options have no size");
    }
    memcpy(ret, given, size < bytes ? size : bytes); /* a caller compiled against an older or a newer header */
    return HONE_OK;
}

static hone_status open_engine(const char *path, const hone_engine_options *given, hone_engine *e, hn_diag *dg)
{
    static const hone_engine_options dflt = HONE_ENGINE_OPTIONS_INIT;
    hone_engine_options opts;
    HN_TRY(hn_api_options(&opts, &dflt, sizeof opts, given, dg));
    if (opts.weight_budget < 0) return HN_RAISE(dg, HONE_E_INVALID, "a budget of %lld bytes for weights", (long long)opts.weight_budget);
    const hn_engine_opts o = { .trust_weights = opts.trust_weights, .inspect = opts.inspect, .weight_budget = opts.weight_budget };
    HN_TRY(hn_engine_open(path, &o, &e->e, dg));
    hn_digest_text(hn_engine_file_payload(hn_engine_get_file(e->e)), e->payload);
    return HONE_OK;
}

hone_status hone_engine_open(const char *path, const hone_engine_options *opts, hone_engine **ret, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!path || !ret) return hn_api_misuse(err, "a path and a place for the engine are needed");
    hone_engine *e = calloc(1, sizeof *e);
    const hone_status s = e ? open_engine(path, opts, e, &dg) : HN_NOMEM(&dg);
    if (s != HONE_OK) {
        free(e);
        return hn_api_fail(err, &dg, NULL);
    }
    *ret = e;
    return HONE_OK;
}

void hone_engine_free(hone_engine *e)
{
    if (!e) return;
    hn_engine_unref(e->e);
    free(e);
}

int hone_engine_io_count(const hone_engine *e)
{
    return !e ? 0 : (int)hn_engine_get_plan(e->e)->n_io;
}

/* The symbol that an extent's register belongs to. */
static const char *symbol_of(const hn_plan *p, uint32_t reg)
{
    for (uint32_t i = 0; i < p->n_sym; i++)
        if (p->sym[i].reg == reg) return hn_plan_str(p, p->sym[i].name);
    return "";
}

static bool is_constant(const hn_plan *p, uint32_t reg)
{
    for (uint32_t i = 0; i < p->n_inst; i++)
        if (p->inst[i].dst == reg && p->inst[i].op < HN_S_CHECK_EQ) return false;
    for (uint32_t i = 0; i < p->n_step; i++)
        if (p->step[i].kind == HN_STEP_READ && p->step[i].u.read.reg == reg) return false;
    return true;
}

hone_status hone_engine_io(const hone_engine *e, int i, hone_io *ret, hone_error **err)
{
    if (!e || !ret) return hn_api_misuse(err, "an engine and a place for the description are needed");
    const hn_plan *p = hn_engine_get_plan(e->e);
    if (i < 0 || (uint32_t)i >= p->n_io) return hn_api_misuse(err, "there is no such input or output");
    const hn_plan_io *io = &p->io[i];
    memset(ret, 0, sizeof *ret);
    ret->name = hn_plan_str(p, io->name);
    ret->is_output = io->flags & HN_IO_OUTPUT;
    ret->dtype = (hone_dtype)io->dtype;
    ret->rank = (int)io->rank;
    for (uint32_t a = 0; a < io->rank; a++) {
        const bool fixed = is_constant(p, io->dim[a]);
        ret->dim[a] = fixed ? p->reg_init[io->dim[a]] : -1;
        ret->symbol[a] = fixed ? "" : symbol_of(p, io->dim[a]);
    }
    return HONE_OK;
}

int hone_engine_find_io(const hone_engine *e, const char *name)
{
    return e && name ? hn_engine_find_io(e->e, name) : -1;
}

const char *hone_engine_manifest(const hone_engine *e)
{
    return !e ? "" : hn_engine_file_manifest(hn_engine_get_file(e->e));
}

const char *hone_engine_payload(const hone_engine *e)
{
    return !e ? "" : e->payload;
}

int64_t hone_engine_bytes(const hone_engine *e)
{
    return !e ? 0 : (int64_t)hn_engine_file_bytes(hn_engine_get_file(e->e));
}

/* ---- contexts ---- */
static const char no_context[] = "a context is needed";

static hone_status create(hone_engine *e, const hone_context_options *given, hone_context *c, hn_diag *dg)
{
    static const hone_context_options dflt = HONE_CONTEXT_OPTIONS_INIT;
    hone_context_options opts;
    HN_TRY(hn_api_options(&opts, &dflt, sizeof opts, given, dg));
    const hn_context_opts o = { .max_threads = opts.threads, .profile = 0, .memory_ceiling = opts.memory_ceiling };
    return hn_context_create(e->e, &o, &c->c, dg);
}

hone_status hone_context_create(hone_engine *e, const hone_context_options *opts, hone_context **ret, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!e || !ret) return hn_api_misuse(err, "an engine and a place for the context are needed");
    hone_context *c = calloc(1, sizeof *c);
    const hone_status s = c ? create(e, opts, c, &dg) : HN_NOMEM(&dg);
    if (s != HONE_OK) {
        free(c);
        return hn_api_fail(err, &dg, NULL);
    }
    *ret = c;
    return HONE_OK;
}

void hone_context_free(hone_context *c)
{
    if (!c) return;
    hn_context_destroy(c->c);
    free(c);
}

hone_status hone_context_set_shape(hone_context *c, int io, int rank, const int64_t *dim, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!c || (rank > 0 && !dim)) return hn_api_misuse(err, "a context and a shape are needed");
    return hn_context_set_input_shape(c->c, io, rank, dim, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

hone_status hone_context_choose_shapes(hone_context *c, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!c) return hn_api_misuse(err, no_context);
    return hn_context_choose_shapes(c->c, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

hone_status hone_context_prepare(hone_context *c, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!c) return hn_api_misuse(err, no_context);
    return hn_context_prepare(c->c, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

hone_status hone_context_shape(const hone_context *c, int io, int *ret_rank, int64_t *ret_dim, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!c || !ret_rank || !ret_dim) return hn_api_misuse(err, "a context and places for rank and extents are needed");
    return hn_context_shape(c->c, io, ret_rank, ret_dim, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

hone_status hone_context_bind(hone_context *c, int io, void *data, size_t capacity_bytes, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!c) return hn_api_misuse(err, no_context);
    return hn_context_bind(c->c, io, data, capacity_bytes, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

const void *hone_context_output(const hone_context *c, int io, size_t *ret_bytes)
{
    const int64_t n = c ? hn_context_io_bytes(c->c, io) : -1;
    if (ret_bytes) *ret_bytes = n < 0 ? 0 : (size_t)n;
    return c ? hn_context_output_data(c->c, io) : NULL;
}

static hone_status make_input(const hone_context *c, int io, uint64_t seed, hone_tensor *ret, hn_str *note, hn_diag *dg)
{
    const hn_plan *p = hn_engine_get_plan(hn_context_engine(c->c));
    hone_tensor t = { 0 };
    int64_t n = 1;
    HN_TRY(hn_context_shape(c->c, io, &t.rank, t.dim, dg));
    const hn_plan_io *x = &p->io[io];
    if (x->flags != HN_IO_INPUT) return HN_RAISE(dg, HONE_E_INVALID, "\"%s\" is an output", hn_plan_str(p, x->name));
    bool fits = true;
    for (int a = 0; a < t.rank; a++) fits &= !__builtin_mul_overflow(n, t.dim[a], &n);
    const int64_t bytes = fits ? hn_dtype_bytes((hn_dtype)x->dtype, n) : -1;
    if (bytes < 0)
        return HN_RAISE(dg, HONE_E_LIMIT, "input \"%s\" has more bytes than there are", hn_plan_str(p, x->name));
    t.dtype = (hone_dtype)x->dtype;
    t.bytes = (size_t)bytes;
    t.data = calloc(1, t.bytes + 1);
    if (!t.data) return HN_NOMEM(dg);
    hn_api_fill(hn_plan_str(p, x->name), io, (hn_dtype)x->dtype, n, x->hint, seed, t.data, note);
    *ret = t;
    return HONE_OK;
}

hone_status hone_context_make_input(const hone_context *c, int io, uint64_t seed, hone_tensor *ret, char **ret_note,
                                    hone_error **err)
{
    hn_diag dg = { 0 };
    hn_str note = { 0 };
    if (!c || !ret) return hn_api_misuse(err, "a context and a place for the tensor are needed");
    hone_status s = make_input(c, io, seed, ret, &note, &dg);
    if (s == HONE_OK && ret_note && !(*ret_note = hn_api_string(&note))) {
        hone_tensor_free(ret);
        s = HN_NOMEM(&dg);
    }
    hn_str_done(&note);
    return s == HONE_OK ? s : hn_api_fail(err, &dg, NULL);
}

hone_status hone_context_run(hone_context *c, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!c) return hn_api_misuse(err, no_context);
    return hn_context_run(c->c, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

void hone_context_cancel(hone_context *c)
{
    if (c) hn_context_cancel(c->c);
}

hone_status hone_context_set_transfers(hone_context *c, bool on, hone_error **err)
{
    if (!c) return hn_api_misuse(err, no_context);
    hn_context_set_transfers(c->c, on);
    return HONE_OK;
}

hone_status hone_context_set_profiling(hone_context *c, bool on, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!c) return hn_api_misuse(err, no_context);
    return hn_context_set_profiling(c->c, on, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

static void put_step(hn_json *j, const hn_plan *p, const hn_step_time *t)
{
    const hn_step *s = &p->step[t->step];
    hn_json_object(j);
    hn_json_put_i64(j, "step", t->step);
    hn_json_put_str(j, "kind", hn_step_kind_name(s->kind));
    if (s->kind == HN_STEP_KERNEL) {
        hn_json_put_str(j, "kernel", hn_plan_str(p, p->kernel[s->u.kernel.kernel].name));
    }
    hn_json_put_str(j, "origin", hn_plan_str(p, s->origin));
    hn_json_put_i64(j, "runs", t->n_run);
    hn_json_put_f64(j, "mean_us", t->n_run ? (double)t->sum_ns / (double)t->n_run * 1e-3 : 0);
    hn_json_put_f64(j, "min_us", (double)t->min_ns * 1e-3);
    hn_json_put_i64(j, "threads", t->threads);
    hn_json_object_end(j);
}

hone_status hone_context_profile_json(const hone_context *c, char **ret, hone_error **err)
{
    hn_str s = { 0 };
    hn_json j;
    if (!c || !ret) return hn_api_misuse(err, "a context and a place for the text are needed");
    const hn_plan *p = hn_engine_get_plan(hn_context_engine(c->c));
    hn_json_init(&j, &s, true);
    hn_json_array(&j);
    for (int i = 0; i < hn_context_n_step_time(c->c); i++) {
        const hn_step_time t = hn_context_step_time(c->c, i);
        if (t.n_run) put_step(&j, p, &t);
    }
    hn_json_array_end(&j);
    *ret = hn_api_string(&s);
    hn_str_done(&s);
    if (*ret) return HONE_OK;
    hn_diag dg = { 0 };
    HN_NOMEM(&dg);
    return hn_api_fail(err, &dg, NULL);
}
