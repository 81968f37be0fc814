/* Errors, statuses, versions, strings. */
#include "api/api_int.h"

#include <stdlib.h>
#include <string.h>

#define STR_(x) #x
#define STR(x)  STR_(x)

struct hone_error {
    hn_diag dg;
    char *text;
    char **item;
    int n_item;
};

#define X(name, number, text) _Static_assert((int)HONE_E_##name == (number), "hone.h and status.def agree");
#include "base/status.def"
#undef X
#define X(name, number, text, bits, cls) _Static_assert((int)HONE_DTYPE_##name == (number), "hone.h and dtypes.def agree");
#include "core/dtypes.def"
#undef X
_Static_assert((int)HONE_MAX_RANK == (int)HN_MAX_RANK, "hone.h and core.h agree");

static char *format(const hn_diag *dg)
{
    char buf[4096];
    return strdup(hn_diag_format(dg, buf, sizeof buf));
}

/* Used when no memory is left for a real one. */
static hone_error no_memory = { .dg = { .code = HONE_E_NOMEM, .message = "out of memory" } };

static void add_items(hone_error *e, const hn_diags *problems)
{
    e->item = calloc((size_t)problems->n, sizeof *e->item);
    for (int i = 0; e->item && i < problems->n; i++)
        if ((e->item[e->n_item] = format(&problems->at[i]))) e->n_item++;
}

hone_status hn_api_fail(hone_error **err, const hn_diag *dg, const hn_diags *problems)
{
    if (!err) return dg->code;
    hone_error *e = calloc(1, sizeof *e);
    if (e) {
        e->dg = *dg;
        e->text = format(dg);
        if (problems && problems->n) add_items(e, problems);
    }
    *err = e ? e : &no_memory;
    return dg->code;
}

hone_error *hone_error_create(hone_status status, const char *message)
{
    hn_diag dg = { 0 };
    hone_error *e = NULL;
    HN_RAISE(&dg, status == HONE_OK ? HONE_E_INTERNAL : status, "%s", message ? message : "");
    hn_api_fail(&e, &dg, NULL);
    return e;
}

const char *hone_error_message(const hone_error *err)
{
    return err ? err->dg.message : "";
}

const char *hone_error_hint(const hone_error *err)
{
    return err ? err->dg.hint : "";
}

const char *hone_error_text(const hone_error *err)
{
    if (!err) return "";
    return err->text ? err->text : err->dg.message;
}

hone_status hone_error_status(const hone_error *err)
{
    return err ? err->dg.code : HONE_OK;
}

int hone_error_count(const hone_error *err)
{
    if (!err) return 0;
    return err->n_item ? err->n_item : 1;
}

const char *hone_error_item(const hone_error *err, int i)
{
    if (!err || i < 0 || i >= hone_error_count(err)) return "";
    return err->n_item ? err->item[i] : hone_error_text(err);
}

void hone_error_free(hone_error *err)
{
    if (!err || err == &no_memory) return;
    for (int i = 0; i < err->n_item; i++) free(err->item[i]);
    free(err->item);
    free(err->text);
    free(err);
}

const char *hone_status_text(hone_status s)
{
    return hn_status_text(s);
}

const char *hone_version(void)
{
    return STR(HONE_VERSION_MAJOR) "." STR(HONE_VERSION_MINOR) "." STR(HONE_VERSION_PATCH);
}

const char *hone_dtype_name(hone_dtype t)
{
    return t > 0 && (int)t < HN_NDTYPES ? hn_dtype_name((hn_dtype)t) : "none";
}

int hone_dtype_bits(hone_dtype t)
{
    return hn_dtype_bits((hn_dtype)t);
}

void hone_string_free(char *s)
{
    free(s);
}

char *hn_api_string(const hn_str *s)
{
    return s->oom ? NULL : strdup(hn_str_get(s));
}

void hone_set_log(hone_log_fn fn, void *user, hone_log_level max_level)
{
    hn_log_set((hn_log_fn)fn, user, (hn_log_level)max_level);
}

bool hn_api_step(void *progress, const char *phase, int64_t done, int64_t total)
{
    const hn_api_progress *p = progress;
    if (!p->fn) return true;
    const double gone = (double)(hn_now_ns() - p->start_ns) * 1e-9;
    const double left = done > 0 && total > 0 ? gone * (double)(total - done) / (double)done : -1;
    return p->fn(p->user, phase, done, total, gone, left);
}

hone_status hn_api_report(const hn_str *json, hone_report **ret, hn_diag *dg)
{
    if (!ret) return HONE_OK;
    hone_report *r = calloc(1, sizeof *r);
    if (r) r->json = hn_api_string(json);
    if (!r || !r->json) {
        free(r);
        return HN_NOMEM(dg);
    }
    *ret = r;
    return HONE_OK;
}

const char *hone_report_json(const hone_report *r)
{
    return r ? r->json : "";
}

void hone_report_free(hone_report *r)
{
    if (!r) return;
    free(r->json);
    free(r);
}
