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

/* One byte; while it does not come, whoever watches may stop the search. */
static hone_status read_byte(hn_tuner *t, hn_proc *p, int64_t until, char *ret, hn_diag *dg)
{
    enum { PULSE_NS = 100000000 };
    for (;;) {
        const int64_t now = hn_now_ns(), pulse = now + PULSE_NS;
        hn_diag why = { 0 };
        const hone_status s = hn_proc_read(p, ret, 1, HN_MIN(until, pulse), &why);
        if (s == HONE_OK) return s;
        if (s == HONE_E_TIMEOUT && !hn_tune_pulse(t)) return HN_RAISE(dg, HONE_E_CANCELLED, "stopped");
        if (s == HONE_E_TIMEOUT && pulse < until) continue;
        *dg = why;
        return s;
    }
}

/* One line, without its end; HONE_E_CRASH when the process ends first. */
static hone_status read_line(hn_tuner *t, hn_proc *p, int64_t until, hn_str *line, hn_diag *dg)
{
    hn_str_clear(line);
    for (;;) {
        char c;
        HN_TRY(read_byte(t, p, until, &c, dg));
        if (c == '\n') return line->oom ? HN_NOMEM(dg) : HONE_OK;
        hn_str_add_n(line, &c, 1);
    }
}

/* The text of a JSON string member; of escapes those that our programs write: \" \\ and \n. */
static bool member(const char *line, const char *key, char *ret, size_t n)
{
    char pattern[64];
    size_t len = 0;
    snprintf(pattern, sizeof pattern, "\"%s\":\"", key);
    const char *at = strstr(line, pattern);
    for (at = at ? at + strlen(pattern) : NULL; at && *at && *at != '"' && len + 1 < n; at++) {
        if (*at == '\\' && at[1]) at++;
        ret[len++] = at[-1] == '\\' && *at == 'n' ? ' ' : *at;
    }
    if (n) ret[at ? len : 0] = 0;
    return at && *at == '"';
}

/* The value of a JSON number member; 0 when there is none. */
static double number(const char *line, const char *key)
{
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\"%s\":", key);
    const char *at = strstr(line, pattern);
    return at ? strtod(at + strlen(pattern), NULL) : 0;
}

static void take_costs(const char *line, hn_trial_cost *ret)
{
    ret->compile_s = number(line, "compile_s");
    ret->timing_s = number(line, "race_s");
    ret->library_s = number(line, "library_s");
    ret->write_s = number(line, "plan_s");
    ret->n_compiled = (int)number(line, "kernels_compiled");
    ret->n_timed = (int)number(line, "timings_measured");
}

/* "knobs":["a","b"] as "a b"; names need no escapes. */
static const char *knobs_of(hn_arena *a, const char *line)
{
    static const char key[] = "\"knobs\":[";
    const char *at = strstr(line, key);
    hn_str s = { 0 };
    for (at = at ? at + sizeof key - 1 : NULL; at && *at == '"'; at += *at == ',') {
        const size_t n = strcspn(++at, "\"");
        hn_str_addf(&s, "%s%.*s", s.n ? " " : "", (int)n, at);
        at += n;
        at += *at == '"';
    }
    const char *text = hn_arena_strdup(a, hn_str_get(&s));
    hn_str_done(&s);
    return text ? text : "";
}

/* The text of a JSON object member of numbers and arrays. */
static const char *object_of(hn_arena *a, const char *line, const char *key)
{
    const char *at = strstr(line, key), *end = at ? strchr(at, '}') : NULL;
    const char *text = end ? hn_arena_strndup(a, at + strlen(key), (size_t)(end - at) - strlen(key)) : NULL;
    return text ? text : "";
}

/* ---- building ---- */
/* How a build that gave no engine ended: exit codes are statuses. Before a deadline only the system's memory killer sends SIGKILL. */
static hn_outcome outcome_of(const hn_diag *why, const char *how, const char *message)
{
    int status = 0;
    if (why->code == HONE_E_TIMEOUT) return HN_OUT_TIMED_OUT;
    sscanf(how, "exit status %d", &status);
    if (status == HONE_E_NOMEM || strstr(message, "out of memory") || strstr(how, "SIGKILL")) return HN_OUT_OUT_OF_MEMORY;
    return status == HONE_E_CRASH || strstr(how, "signal") ? HN_OUT_CRASHED : HN_OUT_BUILD_FAILED;
}

static void failed(hn_tuner *t, hn_trial *trial, const hn_diag *why, const char *how, const char *line)
{
    char message[256] = "", limit[64] = "";
    member(line, "message", message, sizeof message);
    trial->outcome = outcome_of(why, how, message);
    if (trial->outcome == HN_OUT_OUT_OF_MEMORY && !*message) snprintf(message, sizeof message, "out of memory");
    if (trial->outcome != HN_OUT_TIMED_OUT && t->o->trial_memory_bytes > 0)
        snprintf(limit, sizeof limit, " (memory limit %lld MB)", (long long)(t->o->trial_memory_bytes >> 20));
    trial->reason = hn_arena_printf(t->a, "%s%s%s%s", trial->outcome == HN_OUT_TIMED_OUT ? "time limit passed" : how,
                                    *message ? ": " : "", message, limit);
}

/* The words of a `hone build`; standing: of one that builds one engine after another. */
static const char **build_words(const hn_tuner *t, const char *route, const char *engine)
{
    HN_VEC(const char *) argv = { 0 };
    const char *const head[] = { t->program, "build", t->o->model_path, engine ? "-o" : "--worker", engine ? engine : "--json" };
    for (int i = 0; i < HN_COUNT(head); i++) hn_vec_push(t->a, &argv, head[i]);
    if (engine) hn_vec_push(t->a, &argv, "--json");
    for (int i = 0; t->o->build_arg && t->o->build_arg[i]; i++) hn_vec_push(t->a, &argv, t->o->build_arg[i]);
    if (*route) {
        hn_vec_push(t->a, &argv, "--set");
        hn_vec_push(t->a, &argv, route);
    }
    return hn_vec_push(t->a, &argv, (const char *)NULL) ? argv.at : NULL;
}

static hone_status ask_builder(hn_tuner *t, const char *route, const char *engine, hn_str *line, hn_diag *dg)
{
    hn_str cmd = { 0 };
    hn_json j;
    const int64_t until = deadline(t);
    hn_json_init(&j, &cmd, false);
    hn_json_object(&j);
    hn_json_key(&j, "engine");
    hn_json_str(&j, engine);
    hn_json_key(&j, "route");
    hn_json_str(&j, route);
    hn_json_key(&j, "draft");
    hn_json_bool(&j, true);
    hn_json_object_end(&j);
    hn_str_add(&cmd, "\n");
    hone_status s = cmd.oom ? HN_NOMEM(dg) : hn_proc_write(&t->builder.proc, hn_str_get(&cmd), cmd.n, until, dg);
    hn_str_done(&cmd);
    return s == HONE_OK ? read_line(t, &t->builder.proc, until, line, dg) : s;
}

static bool has_payload(const hn_str *line, hn_trial *trial)
{
    return member(hn_str_get(line), "payload", trial->payload, sizeof trial->payload);
}

/* One that made no engine is not asked again: what went wrong in it ends with it. how: as if it had been for this route alone. */
static hone_status build_standing(hn_tuner *t, const char *route, const char *engine, hn_str *line, char how[128], hn_diag *dg)
{
    const hn_proc_limits lim = limits(t);
    if (!t->builder.alive) {
        const char **argv = build_words(t, "", NULL);
        t->builder = (hn_runner){ 0 };
        if (!argv) return HN_NOMEM(dg);
        HN_TRY(hn_proc_spawn(argv, &lim, &t->builder.proc, dg));
        t->builder.alive = true;
    }
    const hone_status s = ask_builder(t, route, engine, line, dg);
    if (s != HONE_OK || !strstr(hn_str_get(line), "\"payload\":")) hn_runner_stop(&t->builder);
    if (s != HONE_OK) snprintf(how, 128, "%s", t->builder.how);
    else snprintf(how, 128, "exit status %.0f", number(hn_str_get(line), "status"));
    return s;
}

static hone_status build_alone(hn_tuner *t, const char *route, const char *engine, hn_str *line, char how[128], hn_diag *dg)
{
    const hn_proc_limits lim = limits(t);
    const char **argv = build_words(t, route, engine);
    hn_proc p;
    if (!argv) return HN_NOMEM(dg);
    HN_TRY(hn_proc_spawn(argv, &lim, &p, dg));
    const hone_status s = read_line(t, &p, deadline(t), line, dg);
    hn_proc_end(&p, how, 128);
    return s;
}

hone_status hn_drive_build(hn_tuner *t, const char *route, const char *engine, hn_trial *trial, hn_diag *dg)
{
    hn_str line = { 0 };
    hn_diag why = { 0 };
    char how[128] = "";
    const int64_t t0 = hn_now_ns();
    const hone_status s = (t->o->standing ? build_standing : build_alone)(t, route, engine, &line, how, &why);
    const bool ended = s == HONE_E_TIMEOUT || s == HONE_E_CRASH; /* an outcome, like an answer without an engine */
    if (s != HONE_OK && !ended) {
        hn_str_done(&line);
        *dg = why;
        return s;
    }
    trial->knobs = knobs_of(t->a, hn_str_get(&line));
    trial->runners_up = object_of(t->a, hn_str_get(&line), "\"runners_up\":{");
    take_costs(hn_str_get(&line), &trial->cost);
    trial->cost.build_s = (double)(hn_now_ns() - t0) * 1e-9;
    if (s != HONE_OK || !has_payload(&line, trial)) failed(t, trial, &why, how, hn_str_get(&line));
    hn_str_done(&line);
    return HONE_OK;
}

/* ---- running ---- */
static hone_status answered(hn_tuner *t, hn_runner *r, int64_t until, hn_str *answer, hn_diag *dg)
{
    HN_TRY(read_line(t, &r->proc, until, answer, dg));
    if (strstr(hn_str_get(answer), "\"ok\":true")) return HONE_OK;
    return HN_RAISE(dg, HONE_E_DEVICE, "the engine refused: %.300s", hn_str_get(answer));
}

static hone_status ask(hn_tuner *t, hn_runner *r, const char *command, hn_str *answer, hn_diag *dg)
{
    const int64_t until = deadline(t);
    HN_TRY(hn_proc_write(&r->proc, command, strlen(command), until, dg));
    return answered(t, r, until, answer, dg);
}

/* Two lines: the engine, and the files of its inputs. */
static void print_load(const hn_tuner *t, const char *engine, bool beside, hn_str *cmd)
{
    hn_json j;
    hn_str_addf(cmd, "{\"cmd\":\"load\",\"engine\":\"%s\",\"threads\":%d%s}\n", engine, t->o->threads, beside ? ",\"beside\":true" : "");
    hn_json_init(&j, cmd, false);
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
    hn_str_add(cmd, "\n");
}

hone_status hn_runner_load(hn_tuner *t, const char *engine, hn_runner *r, hn_diag *dg)
{
    const char *argv[] = { t->program, "bench", "--worker", NULL };
    const hn_proc_limits lim = limits(t);
    hn_str cmd = { 0 };
    print_load(t, engine, r->alive, &cmd);
    if (!r->alive) {
        *r = (hn_runner){ 0 };
        HN_TRY(hn_proc_spawn(argv, &lim, &r->proc, dg));
        r->alive = true;
    }
    const hone_status s = cmd.oom ? HN_NOMEM(dg) : hn_proc_write(&r->proc, hn_str_get(&cmd), cmd.n, deadline(t), dg);
    hn_str_done(&cmd);
    if (s != HONE_OK) hn_runner_stop(r);
    return s;
}

hone_status hn_runner_loaded(hn_tuner *t, hn_runner *r, hn_diag *dg)
{
    hn_str answer = { 0 };
    hone_status s = answered(t, r, deadline(t), &answer, dg);
    if (s == HONE_OK) s = answered(t, r, deadline(t), &answer, dg);
    hn_str_done(&answer);
    if (s != HONE_OK) hn_runner_stop(r);
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
    snprintf(cmd, sizeof cmd, "{\"cmd\":\"block\",\"seconds\":%.3f,\"transfers\":false}\n", seconds);
    hone_status s = ask(t, r, cmd, &answer, dg);
    const char *at = s == HONE_OK ? strstr(hn_str_get(&answer), "\"times_ns\":[") : NULL;
    if (s == HONE_OK) *ret_ns = at ? median_of(at + strlen("\"times_ns\":[")) : 0;
    hn_str_done(&answer);
    if (s == HONE_OK && !(*ret_ns > 0)) return HN_RAISE(dg, HONE_E_DEVICE, "the engine reported no times");
    return s;
}

/* ---- outputs ---- */
hone_status hn_runner_outputs(hn_tuner *t, hn_runner *r, const char *dir, hn_diag *dg)
{
    hn_str cmd = { 0 }, answer = { 0 };
    hn_json j;
    hn_json_init(&j, &cmd, false);
    hn_json_object(&j);
    hn_json_key(&j, "cmd");
    hn_json_str(&j, "outputs");
    hn_json_key(&j, "dir");
    hn_json_str(&j, dir);
    hn_json_object_end(&j);
    hn_str_add(&cmd, "\n");
    const hone_status s = cmd.oom ? HN_NOMEM(dg) : ask(t, r, hn_str_get(&cmd), &answer, dg);
    hn_str_done(&cmd);
    hn_str_done(&answer);
    return s;
}

/* The last line that is a number: tools like to talk before they answer. */
static bool last_number(const char *text, double *ret)
{
    bool found = false;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char *end;
        const double v = strtod(line, &end);
        if (end == line || !(*end == '\n' || *end == 0 || *end == '\r')) continue;
        *ret = v;
        found = true;
    }
    return found;
}

hone_status hn_drive_judge(hn_tuner *t, const char *dir, double *ret, char how[64], hn_diag *dg)
{
    const char *script = hn_arena_printf(t->a, "%s \"$1\"", t->o->judge);
    const char *const argv[] = { "/bin/sh", "-c", script, "hone-judge", dir, NULL };
    hn_proc p;
    hn_str text = { 0 };
    hn_diag end = { 0 };
    char c;
    if (!script) return HN_NOMEM(dg);
    const hn_proc_limits lim = limits(t);
    HN_TRY(hn_proc_spawn(argv, &lim, &p, dg));
    const int64_t until = deadline(t);
    while (read_byte(t, &p, until, &c, &end) == HONE_OK) hn_str_add_n(&text, &c, 1);
    hn_proc_end(&p, how, 64);
    *ret = NAN;
    if (end.code == HONE_E_CRASH && strcmp(how, "exit status 0") == 0) last_number(hn_str_get(&text), ret);
    hn_str_done(&text);
    if (end.code == HONE_E_CRASH) return HONE_OK; /* it closed its output, as programs do when they end */
    *dg = end;
    return end.code;
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
