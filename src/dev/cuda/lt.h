/* cuBLASLt, opened at run time and declared here. Values are from NVIDIA's documentation of the library. */
#ifndef HN_DEV_CUDA_LT_H
#define HN_DEV_CUDA_LT_H

#include "dev/cuda/driver.h"

typedef struct lt_handle lt_handle;
typedef struct lt_desc lt_desc;
typedef struct lt_layout lt_layout;
typedef struct lt_wish lt_wish;

typedef struct lt_algo {
    uint64_t data[8]; /* opaque; holds for the library's version and the device */
} lt_algo;

typedef struct lt_proposal {
    lt_algo algo;
    size_t workspace_bytes;
    int state; /* 0: usable */
    float waves;
    int reserved[4];
} lt_proposal;

_Static_assert(sizeof(lt_proposal) == 96, "cublasLtMatmulHeuristicResult_t");

enum {
    LT_R_32F = 0, /* cudaDataType */
    LT_R_16F = 2,
    LT_R_16BF = 14,
    LT_R_8F_E4M3 = 28,
    LT_R_8F_E5M2 = 29,
    LT_COMPUTE_32F = 68,
    LT_COMPUTE_32F_TF32 = 77,
    LT_DESC_TRANS_A = 3, /* cublasLtMatmulDescAttributes_t */
    LT_DESC_TRANS_B = 4,
    LT_DESC_EPILOGUE = 7,
    LT_DESC_BIAS = 8,
    LT_DESC_BIAS_STEP = 10,
    LT_DESC_BIAS_TYPE = 26,
    LT_LAYOUT_GROUPS = 5, /* cublasLtMatrixLayoutAttribute_t */
    LT_LAYOUT_STEP = 6,
    LT_WISH_WORKSPACE = 1, /* cublasLtMatmulPreferenceAttributes_t */
    LT_WISH_REDUCTION = 3,
    LT_WISH_ALIGN_A = 5,
    LT_WISH_ALIGN_D = 8,
    LT_EPILOGUE_NONE = 1, /* cublasLtEpilogue_t: bits */
    LT_EPILOGUE_RELU = 2,
    LT_EPILOGUE_BIAS = 4,
    LT_EPILOGUE_GELU = 32, /* the formula with tanh, not the one with erf */
    LT_OP_T = 1, /* cublasOperation_t */
    LT_REDUCE_AS_COMPUTED = 2, /* cublasLtReductionScheme_t: bits */
};

#endif
