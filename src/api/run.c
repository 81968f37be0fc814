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

static hone_status misuse(hone_error **err, const char *what)
{
    hn_diag dg = { 0 };
    HN_RAISE(&dg, HONE_E_INVALID, "%s", what);
    return hn_api_fail(err, &dg, NULL);
}

hone_status hone_engine_open(const char *path, const hone_engine_options *opts, hone_engine **ret, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!path || !ret) return misuse(err, "a path and a place for the engine are needed");
    hone_engine *e = calloc(1, sizeof *e);
    if (!e) {
        HN_NOMEM(&dg);
        return hn_api_fail(err, &dg, NULL);
    }
    const hn_engine_opts o = { .trust_weights = opts && opts->trust_weights };
    if (hn_engine_open(path, &o, &e->e, &dg) != HONE_OK) {
        free(e);
        return hn_api_fail(err, &dg, NULL);
    }
    hn_digest_text(hn_engine_file_payload(hn_engine_get_file(e->e)), e->payload);
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
    return (int)hn_engine_get_plan(e->e)->n_io;
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
    const hn_plan *p = hn_engine_get_plan(e->e);
    if (i < 0 || (uint32_t)i >= p->n_io) return misuse(err, "there is no such input or output");
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
    return hn_engine_find_io(e->e, name);
}

const char *hone_engine_manifest(const hone_engine *e)
{
    return hn_engine_file_manifest(hn_engine_get_file(e->e));
}

const char *hone_engine_payload(const hone_engine *e)
{
    return e->payload;
}

int64_t hone_engine_bytes(const hone_engine *e)
{
    return (int64_t)hn_engine_file_bytes(hn_engine_get_file(e->e));
}

/* ---- contexts ---- */
hone_status hone_context_create(hone_engine *e, const hone_context_options *opts, hone_context **ret, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!e || !ret) return misuse(err, "an engine and a place for the context are needed");
    hone_context *c = calloc(1, sizeof *c);
    if (!c) {
        HN_NOMEM(&dg);
        return hn_api_fail(err, &dg, NULL);
    }
    const hn_context_opts o = { .max_threads = opts ? opts->threads : 0, .profile = 0,
                                .memory_ceiling = opts ? opts->memory_ceiling : 0 };
    if (hn_context_create(e->e, &o, &c->c, &dg) != HONE_OK) {
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
    return hn_context_set_input_shape(c->c, io, rank, dim, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

hone_status hone_context_prepare(hone_context *c, hone_error **err)
{
    hn_diag dg = { 0 };
    return hn_context_prepare(c->c, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

hone_status hone_context_shape(const hone_context *c, int io, int *ret_rank, int64_t *ret_dim, hone_error **err)
{
    hn_diag dg = { 0 };
    return hn_context_shape(c->c, io, ret_rank, ret_dim, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

hone_status hone_context_bind(hone_context *c, int io, void *data, size_t capacity_bytes, hone_error **err)
{
    hn_diag dg = { 0 };
    return hn_context_bind(c->c, io, data, capacity_bytes, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

const void *hone_context_output(const hone_context *c, int io, size_t *ret_bytes)
{
    const int64_t n = hn_context_io_bytes(c->c, io);
    if (ret_bytes) *ret_bytes = n < 0 ? 0 : (size_t)n;
    return hn_context_output_data(c->c, io);
}

hone_status hone_context_run(hone_context *c, hone_error **err)
{
    hn_diag dg = { 0 };
    return hn_context_run(c->c, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

void hone_context_cancel(hone_context *c)
{
    hn_context_cancel(c->c);
}

hone_status hone_context_set_profiling(hone_context *c, bool on, hone_error **err)
{
    hn_diag dg = { 0 };
    return hn_context_set_profiling(c->c, on, &dg) ? hn_api_fail(err, &dg, NULL) : HONE_OK;
}

static void put_step(hn_json *j, const hn_plan *p, const hn_step_time *t)
{
    const hn_step *s = &p->step[t->step];
    hn_json_object(j);
    hn_json_key(j, "step");
    hn_json_i64(j, t->step);
    hn_json_key(j, "kind");
    hn_json_str(j, hn_step_kind_name(s->kind));
    if (s->kind == HN_STEP_KERNEL) {
        hn_json_key(j, "kernel");
        hn_json_str(j, hn_plan_str(p, p->kernel[s->u.kernel.kernel].name));
    }
    hn_json_key(j, "origin");
    hn_json_str(j, hn_plan_str(p, s->origin));
    hn_json_key(j, "runs");
    hn_json_i64(j, t->n_run);
    hn_json_key(j, "mean_us");
    hn_json_f64(j, t->n_run ? (double)t->sum_ns / (double)t->n_run * 1e-3 : 0);
    hn_json_key(j, "min_us");
    hn_json_f64(j, (double)t->min_ns * 1e-3);
    hn_json_key(j, "threads");
    hn_json_i64(j, t->threads);
    hn_json_object_end(j);
}

hone_status hone_context_profile_json(const hone_context *c, char **ret, hone_error **err)
{
    hn_str s = { 0 };
    hn_json j;
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
