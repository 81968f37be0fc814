/* The programs a trial runs: `hone build` for the engine, `hone bench --worker` to run and judge it. */
#include "tune/tune_int.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- finding the program ---- */
static char *beside(const char *file, const char *relative)
{
    const char *slash = strrchr(file, '/');
    char path[PATH_MAX];
    if (!slash) return NULL;
    snprintf(path, sizeof path, "%.*s/%s", (int)(slash - file), file, relative);
    return access(path, X_OK) == 0 ? strdup(path) : NULL;
}

char *hn_find_program(const char *given)
{
    static const char *const places[] = { "hone", "../cli/hone", "../../cli/hone", "../bin/hone", "../../bin/hone" };
    char self[PATH_MAX];
    Dl_info lib;
    char *found = NULL;
    if (given) return strdup(given);
    if (hn_env("HONE_PROGRAM")) return strdup(hn_env("HONE_PROGRAM"));
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    const bool have_lib = dladdr((void *)(uintptr_t)hn_find_program, &lib) != 0;
    for (int i = 0; !found && i < HN_COUNT(places); i++) {
        found = beside(self, places[i]);
        if (!found && have_lib) found = beside(lib.dli_fname, places[i]);
    }
    return found;
}

static hn_proc_limits limits(const hn_tuner *t)
{
    return (hn_proc_limits){ .memory_bytes = t->o->trial_memory_bytes };
}

static int64_t deadline(const hn_tuner *t)
{
    const double s = t->o->trial_timeout_s > 0 ? t->o->trial_timeout_s : 60;
    const int64_t trial = hn_now_ns() + (int64_t)(s * 1e9) * HN_MAX(t->patience, 1);
    return t->deadline_ns && t->deadline_ns < trial ? t->deadline_ns : trial;
}

/* One line, without its end; HONE_E_CRASH when the process ends first. */
static hone_status read_line(hn_proc *p, int64_t until, hn_str *line, hn_diag *dg)
{
    hn_str_clear(line);
    for (;;) {
        char c;
        HN_TRY(hn_proc_read(p, &c, 1, until, dg));
        if (c == '\n') return line->oom ? HN_NOMEM(dg) : HONE_OK;
        hn_str_add_n(line, &c, 1);
    }
}

/* The text of a JSON string member. */
static bool member(const char *line, const char *key, char *ret, size_t n)
{
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\"%s\":\"", key);
    const char *at = strstr(line, pattern);
    if (!at) return false;
    at += strlen(pattern);
    const char *end = strchr(at, '"');
    if (!end || (size_t)(end - at) >= n) return false;
    memcpy(ret, at, (size_t)(end - at));
    ret[end - at] = 0;
    return true;
}

/* ---- building ---- */
static hone_status failed(hn_tuner *t, hn_trial *trial, const hn_diag *why, const char *how, const char *line)
{
    char message[256] = "";
    member(line, "message", message, sizeof message);
    /* Exit codes are statuses. Before a deadline only the system's memory killer sends SIGKILL. */
    const bool memory = strcmp(how, "exit status 1") == 0 || strstr(message, "out of memory") || strstr(how, "SIGKILL");
    trial->outcome = why->code == HONE_E_TIMEOUT ? HN_OUT_TIMED_OUT : memory ? HN_OUT_OUT_OF_MEMORY
                     : strstr(how, "signal") ? HN_OUT_CRASHED : HN_OUT_BUILD_FAILED;
    if (memory && why->code != HONE_E_TIMEOUT && !*message) snprintf(message, sizeof message, "out of memory");
    trial->reason = hn_arena_printf(t->a, "%s%s%s", why->code == HONE_E_TIMEOUT ? "time limit passed" : how,
                                    message[0] ? ": " : "", message);
    return HONE_OK;
}

hone_status hn_drive_build(hn_tuner *t, const char *route, const char *engine, hn_trial *trial, hn_diag *dg)
{
    HN_VEC(const char *) argv = { 0 };
    const char *const fixed[] = { t->program, "build", t->o->model_path, "-o", engine, "--json" };
    for (int i = 0; i < HN_COUNT(fixed); i++) hn_vec_push(t->a, &argv, fixed[i]);
    for (int i = 0; t->o->build_arg && t->o->build_arg[i]; i++) hn_vec_push(t->a, &argv, t->o->build_arg[i]);
    if (t->o->base_route && *t->o->base_route) {
        hn_vec_push(t->a, &argv, "--set");
        hn_vec_push(t->a, &argv, t->o->base_route);
    }
    if (*route) {
        hn_vec_push(t->a, &argv, "--set");
        hn_vec_push(t->a, &argv, route);
    }
    if (!hn_vec_push(t->a, &argv, (const char *)NULL)) return HN_NOMEM(dg);
    const hn_proc_limits lim = limits(t);
    hn_proc p;
    hn_str line = { 0 };
    hn_diag why = { 0 };
    char how[128] = "";
    HN_TRY(hn_proc_spawn(argv.at, &lim, &p, dg));
    const hone_status s = read_line(&p, deadline(t), &line, &why);
    hn_proc_end(&p, how, sizeof how);
    if (s != HONE_OK || !member(hn_str_get(&line), "payload", trial->payload, sizeof trial->payload))
        failed(t, trial, &why, how, hn_str_get(&line));
    hn_str_done(&line);
    return HONE_OK;
}

/* ---- running ---- */
static hone_status ask(hn_tuner *t, hn_runner *r, const char *command, hn_str *answer, hn_diag *dg)
{
    const int64_t until = deadline(t);
    HN_TRY(hn_proc_write(&r->proc, command, strlen(command), until, dg));
    HN_TRY(read_line(&r->proc, until, answer, dg));
    if (strstr(hn_str_get(answer), "\"ok\":true")) return HONE_OK;
    return HN_RAISE(dg, HONE_E_DEVICE, "the engine refused: %.300s", hn_str_get(answer));
}

static hone_status prepare(hn_tuner *t, hn_runner *r, const char *engine, hn_diag *dg)
{
    hn_str cmd = { 0 }, answer = { 0 };
    hn_json j;
    hn_str_addf(&cmd, "{\"cmd\":\"load\",\"engine\":\"%s\",\"threads\":%d}\n", engine, t->o->threads);
    hone_status s = ask(t, r, hn_str_get(&cmd), &answer, dg);
    hn_str_clear(&cmd);
    hn_json_init(&j, &cmd, false);
    hn_json_object(&j);
    hn_json_key(&j, "cmd");
    hn_json_str(&j, "inputs");
    hn_json_key(&j, "files");
    hn_json_object(&j);
    for (int i = 0; i < t->g->n_in; i++) {
        hn_json_key(&j, t->g->in[i]->name);
        hn_json_str(&j, t->input[i]);
    }
    hn_json_object_end(&j);
    hn_json_object_end(&j);
    hn_str_add(&cmd, "\n");
    if (s == HONE_OK) s = cmd.oom ? HN_NOMEM(dg) : ask(t, r, hn_str_get(&cmd), &answer, dg);
    hn_str_done(&cmd);
    hn_str_done(&answer);
    return s;
}

hone_status hn_runner_start(hn_tuner *t, const char *engine, hn_runner *ret, hn_diag *dg)
{
    const char *argv[] = { t->program, "bench", "--worker", NULL };
    const hn_proc_limits lim = limits(t);
    HN_TRY(hn_proc_spawn(argv, &lim, &ret->proc, dg));
    ret->alive = true;
    const hone_status s = prepare(t, ret, engine, dg);
    if (s != HONE_OK) hn_runner_stop(ret);
    return s;
}

void hn_runner_stop(hn_runner *r)
{
    if (r->alive) hn_proc_end(&r->proc, r->how, sizeof r->how);
    r->alive = false;
}

static double median_of(const char *at)
{
    double *v = NULL, m = 0;
    int n = 0, cap = 0;
    for (char *end; *at && *at != ']'; at = *end == ',' ? end + 1 : end) {
        const double x = strtod(at, &end);
        if (end == at) break;
        if (n == cap) {
            double *p = realloc(v, sizeof *v * (size_t)(cap = cap ? 2 * cap : 64));
            if (!p) break;
            v = p;
        }
        v[n++] = x;
    }
    m = hn_median(v, n);
    free(v);
    return m;
}

hone_status hn_runner_block(hn_tuner *t, hn_runner *r, double seconds, double *ret_ns, hn_diag *dg)
{
    char cmd[64];
    hn_str answer = { 0 };
    snprintf(cmd, sizeof cmd, "{\"cmd\":\"block\",\"seconds\":%.3f}\n", seconds);
    hone_status s = ask(t, r, cmd, &answer, dg);
    const char *at = s == HONE_OK ? strstr(hn_str_get(&answer), "\"times_ns\":[") : NULL;
    if (s == HONE_OK) *ret_ns = at ? median_of(at + strlen("\"times_ns\":[")) : 0;
    hn_str_done(&answer);
    if (s == HONE_OK && !(*ret_ns > 0)) return HN_RAISE(dg, HONE_E_DEVICE, "the engine reported no times");
    return s;
}

/* ---- judging ---- */
static bool npy_body(const hn_bytes *file, hn_tensor *x)
{
    if (file->n < 10) return false;
    const size_t head = 10 + file->at[8] + ((size_t)file->at[9] << 8);
    if (head > file->n || file->n - head < x->bytes) return false;
    x->data = (void *)(uintptr_t)(file->at + head);
    return true;
}

static hone_status judge_output(hn_tuner *t, int i, const char *dir, double *worst, hn_diag *dg)
{
    char path[PATH_MAX + 32];
    hn_bytes file = { 0 };
    hn_metric m;
    hn_tensor got = t->own[i];
    got.owned = false;
    snprintf(path, sizeof path, "%s/output_%d.npy", dir, t->g->n_in + i);
    HN_TRY(hn_map_file(path, &file, dg));
    hone_status s = HONE_OK;
    if (!npy_body(&file, &got)) *worst = HUGE_VAL; /* another size than promised */
    else s = hn_metric_compare(&got, &t->want[i], &t->own[i], 0, 0, &m, dg);
    if (s == HONE_OK && got.data) {
        const bool exact = !hn_dtype_is_float(got.type.dtype);
        const double e = m.n_nonfinite || (exact && m.linf != 0) || isnan(m.rel_l2) ? HUGE_VAL : m.rel_l2;
        *worst = fmax(*worst, e);
    }
    hn_unmap(&file);
    return s;
}

hone_status hn_runner_judge(hn_tuner *t, hn_runner *r, double *ret_err, hn_diag *dg)
{
    char dir[PATH_MAX], cmd[PATH_MAX + 64];
    hn_str answer = { 0 };
    snprintf(dir, sizeof dir, "%s/out", t->dir);
    snprintf(cmd, sizeof cmd, "{\"cmd\":\"outputs\",\"dir\":\"%s\"}\n", dir);
    const hone_status s = ask(t, r, cmd, &answer, dg);
    hn_str_done(&answer);
    HN_TRY(s);
    *ret_err = 0;
    for (int i = 0; i < t->g->n_out; i++) HN_TRY(judge_output(t, i, dir, ret_err, dg));
    return HONE_OK;
}

static const char *descr_of(hn_dtype d)
{
    static const struct {
        hn_dtype d;
        const char *s;
    } k[] = { { HN_F32, "<f4" }, { HN_F64, "<f8" }, { HN_F16, "<f2" }, { HN_I64, "<i8" }, { HN_I32, "<i4" }, { HN_I16, "<i2" },
              { HN_I8, "|i1" },  { HN_U64, "<u8" }, { HN_U32, "<u4" }, { HN_U16, "<u2" }, { HN_U8, "|u1" },  { HN_BOOL, "|b1" } };
    for (int i = 0; i < HN_COUNT(k); i++)
        if (k[i].d == d) return k[i].s;
    return NULL;
}

hone_status hn_write_npy(const char *path, const hn_tensor *x, hn_diag *dg)
{
    hn_str s = { 0 }, body = { 0 };
    const char *descr = descr_of(x->type.dtype);
    if (!descr) return HN_RAISE(dg, HONE_E_UNSUPPORTED, "inputs of type %s cannot be handed to trials", hn_dtype_name(x->type.dtype));
    hn_str_addf(&s, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < x->type.rank; i++) hn_str_addf(&s, "%lld,", (long long)x->type.dim[i]);
    hn_str_add(&s, "), }");
    while ((10 + s.n + 1) % 64) hn_str_add(&s, " ");
    hn_str_add(&s, "\n");
    const char head[10] = { (char)0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(s.n & 255), (char)(s.n >> 8) };
    hn_str_add_n(&body, head, 10);
    hn_str_add_n(&body, hn_str_get(&s), s.n);
    hn_str_add_n(&body, x->data, x->bytes);
    const hone_status r = s.oom || body.oom ? HN_NOMEM(dg) : hn_write_file_atomic(path, body.s, body.n, dg);
    hn_str_done(&s);
    hn_str_done(&body);
    return r;
}
