/* What this machine offers, and what is wrong with it: every finding says what, why it matters and what to do. */
#include "api/api_int.h"
#include "base/cuda_find.h"
#include "base/dl.h"
#include "dev/dev.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum grade {
    BROKEN, /* models cannot be built or run */
    SLOW,   /* they can, but slowly or with times that mislead */
} grade;

typedef struct findings {
    hn_json *j;
    int n_broken;
} findings;

/* The GPU, or why there is none to run on; engines for one are built without it. */
static void put_cuda(hn_json *j)
{
    hn_str s = { 0 };
    hn_diag dg = { 0 };
    hn_device *d;
    if (hn_device_cuda(&d, &dg) == HONE_OK) hn_device_cuda_print(d, &s);
    else hn_str_addf(&s, "off: %s%s%s%s", dg.message, dg.hint[0] ? " (" : "", dg.hint, dg.hint[0] ? ")" : "");
    hn_json_put_str(j, "cuda", hn_str_get(&s));
    hn_str_clear(&s);
    hn_cuda_paths p;
    hn_cuda_find_nvrtc(&p);
    hn_dl_find(p.path, HN_CUDA_N_PATH, &s);
    hn_json_put_str(j, "nvrtc", s.n ? hn_str_get(&s) : "not found in the usual folders; $HONE_NVRTC names one");
    hn_str_done(&s);
}

/* Libraries that engines may call, where there is a GPU to call them on. */
static void put_libraries(hn_json *j)
{
    static const struct {
        const char *key;
        hn_library which;
    } all[] = { { "cublaslt", HN_LIB_CUBLASLT }, { "cudnn", HN_LIB_CUDNN } };
    hn_device *d;
    if (hn_device_cuda(&d, NULL) != HONE_OK) return;
    for (int i = 0; i < HN_COUNT(all); i++) {
        hn_str s = { 0 };
        hn_diag dg = { 0 };
        if (hn_device_library(d, all[i].which, &s, &dg) != HONE_OK) hn_str_addf(&s, "off: %s", dg.message);
        hn_json_put_str(j, all[i].key, hn_str_get(&s));
        hn_str_done(&s);
    }
}

static void find(findings *f, grade g, const char *what, const char *why, const char *todo)
{
    hn_json_object(f->j);
    hn_json_put_str(f->j, "grade", g == BROKEN ? "broken" : "slow");
    hn_json_put_str(f->j, "what", what);
    hn_json_put_str(f->j, "why", why);
    hn_json_put_str(f->j, "todo", todo);
    hn_json_object_end(f->j);
    f->n_broken += g == BROKEN;
}

/* The first line of a file of the kernel's, "" when there is none. */
static const char *first_line(const char *path, char *buf, size_t n)
{
    FILE *f = fopen(path, "r");
    buf[0] = 0;
    if (f && !fgets(buf, (int)n, f)) buf[0] = 0;
    if (f) fclose(f);
    buf[strcspn(buf, "\n")] = 0;
    return buf;
}

/* Build an engine of one operation, without caches: what every build needs. */
static hone_status try_build(hn_arena *a, const hn_target *t, hn_diag *dg)
{
    const hn_build_opts o = { .target = t, .threads = 1, .frozen = true };
    hn_build_report r;
    hn_graph *g = NULL;
    void *engine = NULL;
    size_t n = 0;
    HN_TRY(hn_parse(a, "in x f32[64]\ny = relu(x)\nout y\n", &g, dg));
    const hone_status s = hn_build_engine(a, g, &o, &engine, &n, &r, dg);
    free(engine);
    return s;
}

/* A GPU's compiler is another one than the processor's, and either may be missing. */
static bool check_gpu_compiler(findings *f, hn_arena *a)
{
    hn_diag dg = { 0 };
    hn_target gpu;
    if (hn_api_target("gpu", &gpu, NULL) != HONE_OK) return false;
    if (try_build(a, &gpu, &dg) == HONE_OK) return true;
    find(f, BROKEN, hn_arena_printf(a, "the GPU's compiler does not work: %s", dg.message),
         "no model can be built for the GPU; engines still run on it",
         dg.hint[0] ? dg.hint : "Install NVRTC, or name it in HONE_NVRTC.");
    return false;
}

static void check_compiler(findings *f, hn_arena *a, const hn_target *t)
{
    hn_diag dg = { 0 };
    const bool for_gpu = check_gpu_compiler(f, a);
    if (try_build(a, t, &dg) == HONE_OK) return;
    if (for_gpu && dg.code == HONE_E_UNSUPPORTED) {
        find(f, SLOW, "this build makes engines for GPUs alone: LLVM was left out", "no model can be built for the processor",
             "Build hone with LLVM where that is wanted.");
        return;
    }
    find(f, BROKEN, hn_arena_printf(a, "the compiler does not work: %s", dg.message), "no model can be built for this processor; engines still run",
         dg.hint[0] ? dg.hint : "Build hone with LLVM, and keep hone-worker beside the program or name it in HONE_WORKER.");
}

static void check_cache(findings *f, hn_arena *a, const char *dir)
{
    hn_diag dg = { 0 };
    const char *why = dir ? NULL : "no folder is known for it";
    if (dir && hn_make_dirs(dir, &dg) != HONE_OK) why = dg.message;
    else if (dir && access(dir, W_OK) != 0) why = "it cannot be written";
    if (!why) return;
    find(f, BROKEN, hn_arena_printf(a, "the cache folder \"%s\" is no use: %s", dir ? dir : "", why),
         "compiled kernels and their times are kept there; hone build fails without it",
         "Name a folder that can be written in HONE_CACHE_DIR, or build with --cache-dir=.");
}

static void check_target(findings *f, hn_arena *a, const hn_target *t)
{
    if (!(t->feat & HN_FEAT_AVX2) && t->arch == HN_ARCH_X86_64)
        find(f, SLOW, "the processor lacks AVX2, or it is masked", "kernels run in vectors of 128 bits: about half as fast",
             "Look whether HONE_CPU_FEATURES or the virtual machine hides it.");
    if (t->n_core > 0 && hn_cpu_count() < t->n_core)
        find(f, SLOW, hn_arena_printf(a, "%d of %d processors may be used", hn_cpu_count(), t->n_core),
             "a control group or an affinity mask takes the rest", "Raise the limit where more threads are wanted.");
}

static void check_clock(findings *f, hn_arena *a)
{
    char text[128];
    double load[3] = { 0 };
    first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, sizeof text);
    if (text[0] && strcmp(text, "performance") != 0)
        find(f, SLOW, hn_arena_printf(a, "the clock governor is \"%s\"", text),
             "measured times wander while the clock does, and so may the choice of kernels",
             "cpupower frequency-set -g performance, while tuning.");
    if (getloadavg(load, 1) == 1 && load[0] > 0.5 * hn_cpu_count() + 0.5)
        find(f, SLOW, hn_arena_printf(a, "the machine is busy: load %.1f on %d processors", load[0], hn_cpu_count()),
             "kernels are timed against what else runs", "Build and tune when it is idle, or with --frozen.");
}

static void describe(hn_arena *a, const hn_target *t, hn_str *out)
{
    hn_json j;
    hn_str feat = { 0 };
    char *cache = hn_cache_dir();
    findings f = { .j = &j };
    hn_feat_print(t->feat, &feat);
    hn_json_init(&j, out, true);
    hn_json_object(&j);
    hn_json_put_str(&j, "version", hone_version());
    hn_json_put_str(&j, "processor", t->cpu_name);
    hn_json_put_str(&j, "features", hn_str_get(&feat));
    hn_json_put_i64(&j, "cores", t->n_core);
    hn_json_put_i64(&j, "usable_cores", hn_cpu_count());
    hn_json_put_i64(&j, "l1d_bytes", t->l1d_bytes);
    hn_json_put_i64(&j, "l2_bytes", t->l2_bytes);
    hn_json_put_i64(&j, "l3_bytes", t->l3_bytes);
    hn_json_put_f64(&j, "peak_gflops", t->peak_gflops);
    hn_json_put_f64(&j, "bandwidth_gbs", t->bandwidth_gbs);
    hn_json_put_str(&j, "cache_dir", cache);
    put_cuda(&j);
    put_libraries(&j);
    hn_json_key(&j, "targets");
    hn_json_array(&j);
    for (int i = 0; i < hn_target_n_named(); i++) hn_json_str(&j, hn_target_named(i)->name);
    hn_json_array_end(&j);
    hn_json_key(&j, "findings");
    hn_json_array(&j);
    check_compiler(&f, a, t);
    check_cache(&f, a, cache);
    check_target(&f, a, t);
    check_clock(&f, a);
    hn_json_array_end(&j);
    hn_json_put_i64(&j, "broken", f.n_broken);
    hn_json_object_end(&j);
    free(cache);
    hn_str_done(&feat);
}

static hone_status doctor(hn_arena *a, char **ret, hn_diag *dg)
{
    hn_target t;
    hn_str s = { 0 };
    hn_target_detect(&t, true);
    describe(a, &t, &s);
    *ret = hn_api_string(&s);
    hn_str_done(&s);
    return *ret && !hn_arena_oom(a) ? HONE_OK : HN_NOMEM(dg);
}

hone_status hone_doctor_json(char **ret, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!ret) return hn_api_misuse(err, "a place for the text is needed");
    hn_arena *a = hn_arena_create();
    const hone_status s = a ? doctor(a, ret, &dg) : HN_NOMEM(&dg);
    if (a) hn_arena_destroy(a);
    return s == HONE_OK ? s : hn_api_fail(err, &dg, NULL);
}
