/* Where NVRTC may be. */
#include "codegen/cuda/find.h"

#include <stdio.h>

#include "base/os.h"

#define WHEEL "/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1*"

void hn_nvrtc_paths(const char *ret[HN_NVRTC_N_PATH])
{
    static char home[512], venv[512];
    const char *cuda = hn_env("CUDA_HOME"), *env = hn_env("VIRTUAL_ENV");
    int n = 0;

    snprintf(home, sizeof(home), "%.400s/lib64/libnvrtc.so", cuda ? cuda : "/usr/local/cuda");
    snprintf(venv, sizeof(venv), "%.400s" WHEEL, env ? env : "/usr");
    ret[n++] = hn_env("HONE_NVRTC");
    ret[n++] = home;
    ret[n++] = "/usr/local/cuda-1*/lib64/libnvrtc.so";
    ret[n++] = "libnvrtc.so.13";
    ret[n++] = "libnvrtc.so.12";
    ret[n++] = venv;
    ret[n++] = "/usr/local/lib/python3*/dist-packages/nvidia/*/lib/libnvrtc.so.1*";
    ret[n++] = "/opt/*/.venv" WHEEL;
    ret[n++] = "/opt/*" WHEEL;
}
