/* cuDNN's backend (graph) interface, opened at run time and declared here. Values are from NVIDIA's documentation of the library,
 * version 9. */
#ifndef HN_DEV_CUDA_DNN_H
#define HN_DEV_CUDA_DNN_H

#include "dev/cuda/driver.h"

typedef struct dnn_handle dnn_handle;
typedef struct dnn_desc dnn_desc;

enum {
    DNN_POINTWISE = 0, /* cudnnBackendDescriptorType_t: kinds of descriptors */
    DNN_CONVOLUTION = 1,
    DNN_ENGINE = 2,
    DNN_CONFIG = 3,
    DNN_HEURISTICS = 4,
    DNN_PLAN = 5,
    DNN_CHOICE = 7,
    DNN_OP_CONVOLUTION = 10,
    DNN_OP_POINTWISE = 13,
    DNN_GRAPH = 15,
    DNN_PACK = 16,
    DNN_TENSOR = 17,
    DNN_MATMUL = 18,
    DNN_OP_MATMUL = 19,
    DNN_REDUCTION = 21,
    DNN_OP_REDUCTION = 22,
};

enum {
    DNN_OF_HANDLE = 0, /* cudnnBackendAttributeType_t: types of attributes */
    DNN_OF_DTYPE = 1,
    DNN_OF_BOOL = 2,
    DNN_OF_INT64 = 3,
    DNN_OF_FLOAT = 4,
    DNN_OF_POINTER = 6,
    DNN_OF_CONVOLUTION_MODE = 7,
    DNN_OF_HEURISTICS_MODE = 8,
    DNN_OF_KNOB = 9,
    DNN_OF_NAN = 10,
    DNN_OF_NUMERIC_NOTE = 11,
    DNN_OF_POINTWISE_MODE = 14,
    DNN_OF_DESC = 15,
    DNN_OF_REDUCTION = 18,
    DNN_OF_BEHAVIOUR_NOTE = 19,
    DNN_OF_CHAR = 24,
};

enum {
    DNN_POINTWISE_MODE = 0, /* cudnnBackendAttributeName_t */
    DNN_POINTWISE_COMPUTE = 1,
    DNN_POINTWISE_NAN = 2,
    DNN_POINTWISE_AXIS = 9,
    DNN_CONVOLUTION_COMPUTE = 100,
    DNN_CONVOLUTION_MODE = 101,
    DNN_CONVOLUTION_DILATION = 102,
    DNN_CONVOLUTION_STRIDE = 103,
    DNN_CONVOLUTION_AFTER = 104,
    DNN_CONVOLUTION_BEFORE = 105,
    DNN_CONVOLUTION_AXES = 106,
    DNN_HEURISTICS_MODE = 200,
    DNN_HEURISTICS_GRAPH = 201,
    DNN_HEURISTICS_CONFIGS = 202,
    DNN_CONFIG_ENGINE = 300,
    DNN_CONFIG_CHOICES = 302,
    DNN_PLAN_HANDLE = 400,
    DNN_PLAN_CONFIG = 401,
    DNN_PLAN_WORKSPACE = 402,
    DNN_PLAN_TEXT = 405,
    DNN_CHOICE_KNOB = 600,
    DNN_CHOICE_VALUE = 601,
    DNN_CONVOLVE_ALPHA = 700,
    DNN_CONVOLVE_BETA = 701,
    DNN_CONVOLVE_BY = 702,
    DNN_CONVOLVE_W = 703,
    DNN_CONVOLVE_X = 704,
    DNN_CONVOLVE_Y = 705,
    DNN_APPLY_BY = 750,
    DNN_APPLY_X = 751,
    DNN_APPLY_B = 752,
    DNN_APPLY_Y = 753,
    DNN_APPLY_T = 758,
    DNN_GRAPH_HANDLE = 800,
    DNN_GRAPH_OPS = 801,
    DNN_TENSOR_ALIGN = 900,
    DNN_TENSOR_DTYPE = 901,
    DNN_TENSOR_DIMS = 902,
    DNN_TENSOR_STRIDES = 903,
    DNN_TENSOR_ID = 906,
    DNN_TENSOR_VIRTUAL = 907,
    DNN_TENSOR_BY_VALUE = 908,
    DNN_PACK_IDS = 1000,
    DNN_PACK_POINTERS = 1001,
    DNN_PACK_WORKSPACE = 1003,
    DNN_ENGINE_GRAPH = 1300,
    DNN_ENGINE_INDEX = 1301,
    DNN_ENGINE_NUMERIC_NOTES = 1303,
    DNN_ENGINE_BEHAVIOUR_NOTES = 1305,
    DNN_MATMUL_COMPUTE = 1500,
    DNN_MULTIPLY_A = 1520,
    DNN_MULTIPLY_B = 1521,
    DNN_MULTIPLY_C = 1522,
    DNN_MULTIPLY_BY = 1523,
    DNN_REDUCTION_OPERATOR = 1600,
    DNN_REDUCTION_COMPUTE = 1601,
    DNN_REDUCE_X = 1610,
    DNN_REDUCE_Y = 1611,
    DNN_REDUCE_BY = 1612,
};

enum {
    DNN_FLOAT = 0, /* cudnnDataType_t */
    DNN_HALF = 2,
    DNN_INT32 = 4,
    DNN_BFLOAT16 = 9,
    DNN_BOOLEAN = 11,
    DNN_CROSS_CORRELATION = 1, /* cudnnConvolutionMode_t: what networks call a convolution */
    DNN_ADD = 0,               /* cudnnPointwiseMode_t */
    DNN_MULTIPLY = 1,
    DNN_DIVIDE = 6,
    DNN_SUBTRACT = 9,
    DNN_EXPONENTIAL = 13,
    DNN_LOGARITHM = 15,
    DNN_RELU = 100,
    DNN_NOT_LESS = 303,
    DNN_INDEX = 501, /* of an element along an axis */
    DNN_SELECT = 601, /* x where t, else b */
    DNN_SUM = 0,     /* cudnnReduceTensorOp_t */
    DNN_MOST = 3,
    DNN_NAN_GOES_ON = 1,     /* cudnnNanPropagation_t */
    DNN_BY_TREE = 3,         /* cudnnBackendHeurMode_t: mode A */
    DNN_BY_FALLBACK = 2,     /* engines that are no match for the others, and nearly always run */
    DNN_NOTE_MATRIX_UNITS = 0, /* cudnnBackendNumericalNote_t; of f32 operands, as tf32 */
    DNN_NOTE_NARROWER_INPUTS = 1,
    DNN_NOTE_NARROWER_SUMS = 2,
    DNN_NOTE_FFT = 3,
    DNN_NOTE_NOT_REPEATABLE = 4,
    DNN_NOTE_WINOGRAD = 5,
    DNN_NOTE_WINOGRAD_LAST = 8,
    DNN_NOTE_MOST = 32,      /* room for them */
    DNN_NOTE_COMPILES = 0,   /* cudnnBackendBehaviorNote_t: while a plan is made */
    DNN_KNOB_MOST = 64,      /* room for choices of one configuration */
};

#endif
