/* Where NVIDIA's libraries may be: the loader's own places, the toolkit's folder, PyPI's wheels. */
#ifndef HN_BASE_CUDA_FIND_H
#define HN_BASE_CUDA_FIND_H

#include "base/str.h"

enum { HN_CUDA_N_PATH = 12 };

/** Names of a library as files and sonames to look for. */
typedef struct hn_cuda_paths {
    const char *path[HN_CUDA_N_PATH]; /* for hn_dl_open and hn_dl_find; entries may be NULL */
    char text[HN_CUDA_N_PATH][640];
} hn_cuda_paths;

/**
 * stem: "libcublasLt"; env: the variable that names the file outright; newest and oldest: major versions to accept.
 */
void hn_cuda_find(const char *stem, const char *env, int newest, int oldest, hn_cuda_paths *ret);
void hn_cuda_find_nvrtc(hn_cuda_paths *ret);

#endif
