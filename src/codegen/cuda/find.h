/* Where NVRTC may be; the parent asks too, because what it compiles depends on which one it is. */
#ifndef HN_CODEGEN_CUDA_FIND_H
#define HN_CODEGEN_CUDA_FIND_H

enum { HN_NVRTC_N_PATH = 9 };
/** Names and patterns for hn_dl_open, in order: $HONE_NVRTC, the loader's own, CUDA's folders, Python wheels. */
void hn_nvrtc_paths(const char *ret[HN_NVRTC_N_PATH]);

#endif
