/* Where NVIDIA's libraries may be. */
#include "base/cuda_find.h"

#include <stdio.h>

#include "base/os.h"

static void add(hn_cuda_paths *p, int *n, const char *folder, const char *stem, const char *tail)
{
    if (*n == HN_CUDA_N_PATH) return;
    snprintf(p->text[*n], sizeof(p->text[*n]), "%.400s%s%.60s%.30s", folder, *folder ? "/" : "", stem, tail);
    p->path[*n] = p->text[*n];
    (*n)++;
}

/* Wheels keep their libraries beside the interpreter's packages, a folder a library or a folder a toolkit. */
static void add_wheels(hn_cuda_paths *p, int *n, const char *root, const char *stem)
{
    char folder[480];
    snprintf(folder, sizeof(folder), "%.300s/lib/python3*/site-packages/nvidia/*/lib", root);
    add(p, n, folder, stem, ".so*");
}

void hn_cuda_find(const char *stem, const char *env, int newest, int oldest, hn_cuda_paths *ret)
{
    char tail[16], toolkit[480];
    const char *home = hn_env("CUDA_HOME"), *venv = hn_env("VIRTUAL_ENV");
    int n = 0;

    *ret = (hn_cuda_paths){ 0 };
    if (hn_env(env)) { /* outright: nothing else is looked for */
        ret->path[0] = hn_env(env);
        return;
    }
    for (int v = newest; v >= oldest; v--) { /* first, so that a library which this process has already is used again */
        snprintf(tail, sizeof(tail), ".so.%d", v);
        add(ret, &n, "", stem, tail);
    }
    snprintf(toolkit, sizeof(toolkit), "%.400s/lib64", home ? home : "/usr/local/cuda");
    add(ret, &n, toolkit, stem, ".so");
    add(ret, &n, "/usr/local/cuda-1*/lib64", stem, ".so");
    if (venv) add_wheels(ret, &n, venv, stem);
    add_wheels(ret, &n, "/usr", stem);
    add(ret, &n, "/usr/local/lib/python3*/dist-packages/nvidia/*/lib", stem, ".so*");
    add_wheels(ret, &n, "/opt/*/.venv", stem);
    add_wheels(ret, &n, "/opt/*", stem);
}

void hn_cuda_find_nvrtc(hn_cuda_paths *ret)
{
    hn_cuda_find("libnvrtc", "HONE_NVRTC", 13, 12, ret);
}
