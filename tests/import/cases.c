/*
 * import_cases [--eval] [--print] [--no-fork] [-v] [--dim NAME=N]... PATH...: each PATH is a model, or a
 * folder that holds model.onnx (and, for --eval, test_data_set_0/input_<i>.pb and output_<i>.pb). One line a
 * failure, a count at the end; exit status 1 when any failed.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "eval/eval.h"
#include "import/import.h"
#include "import/tensor_file.h"

static bool want_eval, want_print, verbose, want_fork = true;

static hn_import_dim dims[64];
static int n_dims;

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void to_tensor(const hn_file_value *v, hn_tensor *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->kind = v->kind;
    if (v->kind == HN_TENSOR) {
        ret->type = v->at->type;
        ret->data = (void *)(uintptr_t)v->at->at;
        ret->bytes = v->at->bytes;
        return;
    }
    ret->n_item = v->n;
    ret->item = calloc((size_t)v->n + 1, sizeof *ret->item);
    for (int i = 0; i < v->n; i++) {
        const hn_file_value one = { .name = "", .n = 1, .at = &v->at[i] };
        to_tensor(&one, &ret->item[i]);
        ret->type.dtype = ret->item[i].type.dtype;
    }
}

static bool report(const char *path, const char *what, const hn_diag *dg)
{
    char text[2048];
    hn_diag_format(dg, text, sizeof text);
    printf("FAIL %s: %s: %s\n", path, what, text);
    return false;
}

static bool close_enough(const hn_tensor *got, const hn_tensor *want, char *why, size_t n)
{
    hn_metric m;
    hn_diag dg = { 0 };
    if (got->kind != HN_TENSOR) {
        if (got->n_item != want->n_item) {
            snprintf(why, n, "%d items, expected %d", got->n_item, want->n_item);
            return false;
        }
        for (int i = 0; i < got->n_item; i++)
            if (!close_enough(&got->item[i], &want->item[i], why, n)) return false;
        return true;
    }
    if (hn_metric_compare(got, want, NULL, 1e-7, 1e-3, &m, &dg) != HONE_OK) {
        snprintf(why, n, "%s", dg.message);
        return false;
    }
    if (m.l0 == 0 && m.n_nonfinite == 0) return true;
    snprintf(why, n, "%.3g of elements off, at %lld got %.9g want %.9g (linf %.3g)", m.l0, (long long)m.worst,
             m.worst_got, m.worst_want, m.linf);
    return false;
}

/* Old test data store bfloat16 as its bits. */
static void relabel(hn_tensor *t, hn_dtype want)
{
    if (want == HN_BF16 && t->type.dtype == HN_U16) t->type.dtype = HN_BF16;
    if (t->kind != HN_TENSOR && t->type.dtype == HN_NONE) t->type.dtype = want;
}

/* Which of the model's inputs are left, when some were given their values on import. */
typedef struct inputs {
    int n;
    hn_file_value at[64];
    bool baked[64];
} inputs;

static bool eval_case(const char *dir, hn_arena *a, const hn_graph *g, const inputs *given)
{
    char path[4096], why[512];
    hn_diag dg = { 0 };
    hn_tensor *in = calloc((size_t)g->n_in + 1, sizeof *in), *out = calloc((size_t)g->n_out + 1, sizeof *out);
    const hn_eval_opts opts = { .mode = HN_EVAL_OWN };
    for (int i = 0, k = 0; i < g->n_in; i++, k++) {
        hn_file_value v;
        while (given && k < given->n && given->baked[k])
            k++;
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%d.pb", dir, k);
        if (hn_import_value_file(a, path, g->in[i]->kind, &v, &dg) != HONE_OK)
            return report(dir, "reading an input", &dg);
        to_tensor(&v, &in[i]);
        relabel(&in[i], g->in[i]->type.dtype);
    }
    if (hn_eval_run(g, &opts, in, out, &dg) != HONE_OK) return report(dir, "evaluation", &dg);
    for (int i = 0; i < g->n_out; i++) {
        hn_file_value v;
        hn_tensor want;
        snprintf(path, sizeof path, "%s/test_data_set_0/output_%d.pb", dir, i);
        if (hn_import_value_file(a, path, g->out[i].value->kind, &v, &dg) != HONE_OK)
            return report(dir, "reading an output", &dg);
        to_tensor(&v, &want);
        relabel(&want, g->out[i].value->type.dtype);
        if (!close_enough(&out[i], &want, why, sizeof why)) {
            printf("FAIL %s: output %d (%s): %s\n", dir, i, g->out_name[i], why);
            return false;
        }
    }
    return true;
}

/* Cases give axes, scales and the like as inputs, which a compiler wants to know: small vectors get their
 * values now. */
static bool bake(const char *dir, hn_arena *a, hn_graph **ret, inputs *in, hn_diag *dg)
{
    hn_import_value value[64];
    int n = 0;
    for (int i = 0; i < 64; i++) {
        char path[4096];
        hn_diag quiet = { 0 };
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%d.pb", dir, i);
        if (access(path, R_OK) != 0) break;
        in->n = i + 1;
        hn_file_value *v = &in->at[i];
        if (hn_import_value_file(a, path, HN_TENSOR, v, &quiet) != HONE_OK || v->n != 1 ||
            v->at->type.rank > (i > 0))
            continue;
        in->baked[i] = true;
        value[n++] = (hn_import_value){ v->name, v->at->type, v->at->at };
    }
    const hn_import_opts opts = { .value = value, .n_value = n };
    char model[4096];
    snprintf(model, sizeof model, "%s/model.onnx", dir);
    return n > 0 && hn_import_file(a, model, &opts, ret, NULL, dg) == HONE_OK;
}

static bool run_path(const char *path)
{
    char model[4096];
    static inputs given;
    hn_diag dg = { 0 };
    hn_diags all = { 0 };
    hn_graph *g = NULL;
    hn_arena *a = hn_arena_create();
    bool baked = false;
    snprintf(model, sizeof model, is_dir(path) ? "%s/model.onnx" : "%s", path);
    const hn_import_opts opts = { .dim = dims, .n_dim = n_dims };
    if (hn_import_file(a, model, &opts, &g, &all, &dg) != HONE_OK) {
        hn_diag second = { 0 };
        baked = is_dir(path) && bake(path, a, &g, &given, &second);
        if (!baked) {
            report(path, "import", second.code ? &second : &dg);
            for (int i = 1; i < all.n && verbose; i++)
                report(path, "also", &all.at[i]);
            return false;
        }
    }
    hn_diags bad = { 0 };
    if (!hn_validate(g, true, &bad)) return report(path, "validation", &bad.at[0]);
    if (want_print) {
        hn_str text = { 0 };
        hn_print(g, &text);
        fputs(hn_str_get(&text), stdout);
    }
    if (want_eval && is_dir(path) && !eval_case(path, a, g, baked ? &given : NULL)) return false;
    if (verbose) printf("ok %s: %d nodes\n", path, g->n_node);
    hn_arena_destroy(a);
    return true;
}

/* A child each, so that a crash is one case's failure. */
static bool run_isolated(const char *path)
{
    int status;
    fflush(stdout);
    const pid_t pid = want_fork ? fork() : -1;
    if (pid < 0) return run_path(path);
    if (pid == 0) {
        alarm(60);
        const bool ok = run_path(path);
        fflush(stdout);
        _exit(ok ? 0 : 1);
    }
    if (waitpid(pid, &status, 0) < 0) return false;
    if (WIFSIGNALED(status)) printf("FAIL %s: signal %d\n", path, WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    int n = 0, good = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--eval") == 0)
            want_eval = true;
        else if (strcmp(argv[i], "--print") == 0)
            want_print = true;
        else if (strcmp(argv[i], "--no-fork") == 0)
            want_fork = false;
        else if (strcmp(argv[i], "--dim") == 0 && i + 1 < argc && n_dims < HN_COUNT(dims)) {
            char *eq = strchr(argv[++i], '=');
            if (!eq) return 2;
            *eq = '\0';
            dims[n_dims++] = (hn_import_dim){ argv[i], strtoll(eq + 1, NULL, 10) };
        } else if (strcmp(argv[i], "-v") == 0)
            verbose = true;
        else {
            n++;
            good += run_isolated(argv[i]);
        }
    }
    printf("%d of %d pass\n", good, n);
    return good == n ? 0 : 1;
}
