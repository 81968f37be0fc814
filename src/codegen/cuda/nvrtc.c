/* NVRTC: found at run time, declared here. */
#include "codegen/cuda/cuda_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cuda_find.h"
#include "base/dl.h"

typedef struct program program; /* nvrtcProgram is a pointer to it */

/* nvrtcResult is an int, 0 is success. */
static struct {
    int (*version)(int *major, int *minor);
    int (*create)(program **p, const char *src, const char *name, int n, const char *const *head, const char *const *as);
    int (*destroy)(program **p);
    int (*compile)(program *p, int n, const char *const *option);
    int (*cubin_size)(program *p, size_t *n);
    int (*cubin)(program *p, char *dst);
    int (*log_size)(program *p, size_t *n);
    int (*log)(program *p, char *dst);
    const char *(*error_text)(int result);
} api;

static char version[16];

#define FN(field, symbol) { symbol, (void (**)(void))(void *)&api.field, false }

static hone_status load(hn_diag *dg)
{
    static const hn_dl_fn fn[] = {
        FN(version, "nvrtcVersion"),        FN(create, "nvrtcCreateProgram"),
        FN(destroy, "nvrtcDestroyProgram"), FN(compile, "nvrtcCompileProgram"),
        FN(cubin_size, "nvrtcGetCUBINSize"), FN(cubin, "nvrtcGetCUBIN"),
        FN(log_size, "nvrtcGetProgramLogSize"), FN(log, "nvrtcGetProgramLog"),
        FN(error_text, "nvrtcGetErrorString"),
    };
    hn_cuda_paths p;
    int major, minor;
    void *lib;

    if (version[0]) return HONE_OK;
    hn_cuda_find_nvrtc(&p);
    HN_TRY(hn_dl_open("NVRTC, which compiles kernels for NVIDIA GPUs,", p.path, HN_CUDA_N_PATH, &lib, NULL, dg));
    HN_TRY(hn_dl_bind("NVRTC", lib, fn, HN_COUNT(fn), dg));
    if (api.version(&major, &minor) != 0 || major < 12)
        return HN_RAISE(dg, HONE_E_VERSION, "NVRTC %d.%d is too old: 12.0 or newer is needed", major, minor);
    snprintf(version, sizeof(version), "%d.%d", major, minor);
    return HONE_OK;
}

const char *hn_nvrtc_version(void)
{
    hn_diag dg = { 0 };
    return load(&dg) == HONE_OK ? version : "";
}

static char *log_of(program *p, hn_arena *a)
{
    size_t n = 0;

    if (api.log_size(p, &n) != 0 || n < 1) return NULL;
    char *text = hn_arena_alloc(a, n + 1, 1);
    if (text && api.log(p, text) != 0) text[0] = 0;
    return text;
}

/* The number in front of `what`: "Used 32 registers", "256 bytes stack frame". */
static int number_before(const char *log, const char *what)
{
    const char *at = log ? strstr(log, what) : NULL;

    if (!at) return 0;
    while (at > log && at[-1] == ' ')
        at--;
    while (at > log && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return (int)strtol(at, NULL, 10);
}

static hn_nvrtc_log read_log(const char *log)
{
    return (hn_nvrtc_log){ .n_reg = number_before(log, " registers"),
                           .stack_bytes = number_before(log, " bytes stack frame"),
                           .spill_bytes = number_before(log, " bytes spill stores") +
                                          number_before(log, " bytes spill loads"),
                           .shared_bytes = number_before(log, " bytes smem") };
}

static hone_status take_cubin(program *p, const char *name, hn_arena *a, hn_bytes *ret, hn_diag *dg)
{
    size_t n = 0;

    if (api.cubin_size(p, &n) != 0 || n == 0)
        return HN_RAISE(dg, HONE_E_INTERNAL, "NVRTC made no code for kernel \"%s\"", name);
    char *at = hn_arena_alloc_aligned(a, n, 64);
    if (!at) return HN_NOMEM(dg);
    if (api.cubin(p, at) != 0)
        return HN_RAISE(dg, HONE_E_INTERNAL, "NVRTC gave no code for kernel \"%s\"", name);
    *ret = (hn_bytes){ .at = (const uint8_t *)at, .n = n };
    return HONE_OK;
}

static hone_status compile(program *p, const char *name, const char *arch, hn_arena *a, hn_bytes *ret,
                           hn_nvrtc_log *ret_log, hn_diag *dg)
{
    /* a*b+c is what it says: a fused form is written as such */
    const char *option[] = { hn_arena_printf(a, "--gpu-architecture=%s", arch), "--fmad=false",
                             "--ptxas-options=-v", "--std=c++17", "--device-as-default-execution-space" };
    const int r = api.compile(p, HN_COUNT(option), option);
    const char *log = log_of(p, a);

    if (r != 0) {
        if (log && strstr(log, "gpu-architecture"))
            return HN_RAISE(dg, HONE_E_VERSION, "NVRTC %s does not know \"%s\"", version, arch);
        return HN_RAISE(dg, HONE_E_INTERNAL, "NVRTC on kernel \"%s\": %s: %.300s", name, api.error_text(r), log ? log : "");
    }
    *ret_log = read_log(log);
    return take_cubin(p, name, a, ret, dg);
}

hone_status hn_nvrtc_compile(const char *source, const char *name, const char *arch, hn_arena *a, hn_bytes *ret,
                             hn_nvrtc_log *ret_log, hn_diag *dg)
{
    program *p = NULL;

    HN_TRY(load(dg));
    if (api.create(&p, source, "kernel.cu", 0, NULL, NULL) != 0)
        return HN_RAISE(dg, HONE_E_INTERNAL, "NVRTC does not take kernel \"%s\"", name);
    const hone_status s = compile(p, name, arch, a, ret, ret_log, dg);
    api.destroy(&p);
    return s;
}
