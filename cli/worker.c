/* hone bench --worker: JSON lines in, JSON lines out. docs/benchmarking.md is the protocol. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct worker {
    hone_engine *e;
    hone_context *c;
    hone_tensor in[CLI_MAX_IO];
} worker;

static const char *text(const cJSON *j, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItem(j, key));
}

static cJSON *refuse(hone_error *err, const char *why)
{
    cJSON *j = cJSON_CreateObject();
    cJSON_AddBoolToObject(j, "ok", false);
    cJSON_AddStringToObject(j, "error", err ? hone_error_text(err) : why);
    hone_error_free(err);
    return j;
}

static cJSON *agree(void)
{
    cJSON *j = cJSON_CreateObject();
    cJSON_AddBoolToObject(j, "ok", true);
    return j;
}

static void unload(worker *w)
{
    hone_context_free(w->c);
    hone_engine_free(w->e);
    cli_free_tensors(w->in, CLI_MAX_IO);
    *w = (worker){ 0 };
}

static void add_io(cJSON *list, const hone_io *io)
{
    cJSON *j = cJSON_CreateObject(), *dims = cJSON_AddArrayToObject(j, "dims");
    cJSON_AddStringToObject(j, "name", io->name);
    cJSON_AddStringToObject(j, "dtype", hone_dtype_name(io->dtype));
    for (int a = 0; a < io->rank; a++) cJSON_AddItemToArray(dims, cJSON_CreateNumber((double)io->dim[a]));
    cJSON_AddItemToArray(list, j);
}

static hone_status open_engine(const char *path, int threads, worker *ret, hone_error **err)
{
    const hone_context_options o = { sizeof o, threads, 0 };
    hone_status s = hone_engine_open(path, NULL, &ret->e, err);
    if (s == HONE_OK) s = hone_context_create(ret->e, &o, &ret->c, err);
    if (s) unload(ret);
    return s;
}

/* "beside": what is loaded goes only when the next stands, which then lies elsewhere in memory; earlier where there is no room for both. */
static cJSON *load(worker *w, const cJSON *cmd)
{
    hone_error *err = NULL;
    worker next = { 0 };
    const char *path = text(cmd, "engine");
    const int threads = (int)cJSON_GetNumberValue(cJSON_GetObjectItem(cmd, "threads"));
    if (!path) return refuse(NULL, "load needs \"engine\"");
    if (!cJSON_IsTrue(cJSON_GetObjectItem(cmd, "beside"))) unload(w);
    const double t0 = cli_now();
    hone_status s = open_engine(path, threads, &next, &err);
    const bool crowded = s == HONE_E_NOMEM && w->e;
    unload(w);
    if (crowded) {
        hone_error_free(err);
        err = NULL;
        s = open_engine(path, threads, &next, &err);
    }
    if (s) return refuse(err, NULL);
    *w = next;
    const double ns = 1e9 * (cli_now() - t0);
    cJSON *j = agree();
    cJSON_AddNumberToObject(j, "load_ns", ns);
    cJSON_AddStringToObject(j, "version", hone_version());
    cJSON *in = cJSON_AddArrayToObject(j, "inputs"), *out = cJSON_AddArrayToObject(j, "outputs");
    for (int i = 0; i < hone_engine_io_count(w->e); i++) {
        hone_io io;
        if (hone_engine_io(w->e, i, &io, NULL) == HONE_OK) add_io(io.is_output ? out : in, &io);
    }
    return j;
}

static hone_status bind_file(worker *w, const char *name, const char *path, hone_error **err)
{
    const int i = hone_engine_find_io(w->e, name);
    hone_tensor t;
    const char *why = i < 0 || i >= CLI_MAX_IO ? "the engine has no such input" : cli_npy_read(path, &t);
    if (why) {
        *err = cli_error("input \"%s\": %s", name, why);
        return HONE_E_INVALID;
    }
    hone_tensor_free(&w->in[i]);
    w->in[i] = t;
    const hone_status s = hone_context_set_shape(w->c, i, t.rank, t.dim, err);
    return s ? s : hone_context_bind(w->c, i, t.data, t.bytes, err);
}

static cJSON *inputs(worker *w, const cJSON *cmd)
{
    hone_error *err = NULL;
    const cJSON *f;
    if (!w->c) return refuse(NULL, "load an engine first");
    cJSON_ArrayForEach(f, cJSON_GetObjectItem(cmd, "files"))
        if (bind_file(w, f->string, cJSON_GetStringValue(f), &err)) return refuse(err, NULL);
    const double t0 = cli_now();
    if (hone_context_run(w->c, &err)) return refuse(err, NULL);
    cJSON *j = agree();
    cJSON_AddNumberToObject(j, "first_call_ns", 1e9 * (cli_now() - t0));
    return j;
}

static cJSON *block(worker *w, const cJSON *cmd)
{
    hone_error *err = NULL;
    const double seconds = cJSON_GetNumberValue(cJSON_GetObjectItem(cmd, "seconds"));
    if (!w->c) return refuse(NULL, "load an engine first");
    const bool transfers = !cJSON_IsFalse(cJSON_GetObjectItem(cmd, "transfers"));
    if (hone_context_set_transfers(w->c, transfers, &err) || hone_context_run(w->c, &err)) return refuse(err, NULL);
    cJSON *j = agree(), *times = cJSON_AddArrayToObject(j, "times_ns");
    const double start = cli_now();
    double now = start;
    do {
        if (hone_context_run(w->c, &err)) {
            cJSON_Delete(j);
            return refuse(err, NULL);
        }
        const double t = cli_now();
        cJSON_AddItemToArray(times, cJSON_CreateNumber((double)(int64_t)(1e9 * (t - now))));
        now = cli_now();
    } while (now - start < seconds);
    return j;
}

/* The folder and those above it; what cannot be made shows when a file is written there. */
static void make_folders(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", dir);
    for (char *at = path + 1; *at; at++)
        if (*at == '/') {
            *at = 0;
            mkdir(path, 0777);
            *at = '/';
        }
    mkdir(path, 0777);
}

static cJSON *outputs(worker *w, const cJSON *cmd)
{
    hone_error *err = NULL;
    const char *dir = text(cmd, "dir");
    if (!w->c || !dir) return refuse(NULL, "outputs needs a loaded engine and \"dir\"");
    if (hone_context_set_transfers(w->c, true, &err) || hone_context_run(w->c, &err)) return refuse(err, NULL);
    make_folders(dir);
    cJSON *j = agree(), *files = cJSON_AddObjectToObject(j, "files");
    for (int i = 0; i < hone_engine_io_count(w->e); i++) {
        hone_io io;
        hone_tensor t;
        char path[4096];
        if (hone_engine_io(w->e, i, &io, NULL) || !io.is_output) continue;
        snprintf(path, sizeof path, "%s/output_%d.npy", dir, i);
        const char *why = cli_output(w->e, w->c, i, &t, &err) ? NULL : cli_npy_write(path, &t);
        if (err || why) {
            cJSON_Delete(j);
            return refuse(err, why);
        }
        cJSON_AddStringToObject(files, io.name, path);
    }
    return j;
}

static cJSON *answer(worker *w, const cJSON *cmd)
{
    const char *what = text(cmd, "cmd");
    if (!what) return refuse(NULL, "a command needs \"cmd\"");
    if (strcmp(what, "load") == 0) return load(w, cmd);
    if (strcmp(what, "inputs") == 0) return inputs(w, cmd);
    if (strcmp(what, "block") == 0) return block(w, cmd);
    if (strcmp(what, "outputs") == 0) return outputs(w, cmd);
    return refuse(NULL, "there is no such command");
}

int cli_bench_worker(void)
{
    worker w = { 0 };
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0) {
        cJSON *cmd = cJSON_Parse(line);
        const char *what = text(cmd, "cmd");
        if (what && strcmp(what, "quit") == 0) {
            cJSON_Delete(cmd);
            break;
        }
        cli_print_json(cmd ? answer(&w, cmd) : refuse(NULL, "that is no JSON"));
        cJSON_Delete(cmd);
    }
    free(line);
    unload(&w);
    return 0;
}
