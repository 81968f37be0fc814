#include "simulate.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static const sim_counts *(*counts_get)(void);
static void (*fail_next_wait)(int);

void hn_simulate(bool libraries)
{
    static const char *const replaced[] = { "HONE_CUDA_DRIVER", "HONE_NVRTC", "HONE_NVML", "HONE_CUBLASLT", "HONE_CUDNN" };

    if (system("command -v g++ >/dev/null") != 0) SKIP("no C++ compiler: the simulated GPU has none");
    unsetenv("HONE_WORKER"); /* a sanitized simulator loads into the worker of its own build alone */
    for (int i = 0; i < HN_COUNT(replaced); i++)
        CHECK(setenv(replaced[i], i < 3 || libraries ? CUDA_SIM : "/nonexistent/library.so", 1) == 0);
    void *lib = dlopen(CUDA_SIM, RTLD_NOW | RTLD_LOCAL);
    if (!lib) FAIL("%s", dlerror());
    void *at = dlsym(lib, "sim_counts_get");
    memcpy(&counts_get, &at, sizeof(at));
    at = dlsym(lib, "sim_fail_next_wait");
    memcpy(&fail_next_wait, &at, sizeof(at));
    CHECK(counts_get && fail_next_wait);
}

const sim_counts *hn_sim_counts(void)
{
    return counts_get();
}

void hn_sim_fail_next_wait(int result)
{
    fail_next_wait(result);
}
