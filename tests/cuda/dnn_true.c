/* What the true cuDNN says of our graphs for an H200, where it is installed: asked about a GPU's stated properties, it needs none. Without
 * a GPU this is the one check that the graphs have the form which its engines know; the simulator has that form from here. */
#include <string.h>

#include "base/dl.h"
#include "core/core.h"
#include "core/libcall.h"
#include "dev/cuda/dnn_int.h"
#include "harness.h"

/* A descriptor of a GPU, its attribute, and heuristics'. */
enum { DESC_PROPERTIES = 38, PROPERTIES_TEXT = 2702, HEURISTICS_PROPERTIES = 204, PROPERTIES_SINCE = 90800 };

static const char h200[] =
    "{\"deviceName\":\"NVIDIA H200\",\"cudaDeviceId\":0,\"deviceVer\":900,\"driverVer\":13000,\"multiProcessorCount\":132,"
    "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"
    "\"maxCtasPerSM\":32,\"warpSize\":32,\"regsPerBlock\":65536,\"maxRegistersPerSM\":65536,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,\"l2CacheSize\":62914560,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":3201000,\"memoryBusWidth\":6144,\"totalGlobalMem\":150000000000,\"pciDeviceId\":0,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1}";

void __lsan_disable(void) __attribute__((weak)); /* of sanitized builds */

/* Engines that are compiled want the driver to be there, though nothing is launched; the toolkit's stub will do. */
static void open_driver(void)
{
    static const char *const path[] = { "libcuda.so.1", "/usr/local/cuda*/lib64/stubs/libcuda.so" };
    hn_diag dg = { 0 };
    void *lib;

    if (hn_dl_open("the CUDA driver", path, HN_COUNT(path), &lib, NULL, &dg) != HONE_OK) SKIP("no CUDA driver, not even the toolkit's stub");
}

static void open_library(void)
{
    hn_diag dg = { 0 };

    if (__lsan_disable) __lsan_disable(); /* cuDNN keeps memory that the sanitizer calls lost */
    if (hn_dnn_open(&dg) != HONE_OK) SKIP("no cuDNN");
    if (hn_dnn.version() < PROPERTIES_SINCE) SKIP("cuDNN before 9.8 cannot be asked without a GPU");
    open_driver();
}

/* How many engines the library has for it, looked at one by one; the maker has what went wrong. */
static int64_t proposals(dnn_maker *m, const hn_libcall *c)
{
    enum { MOST = 64 };
    dnn_desc *op[HN_DNN_MOST_OPS], *config[MOST], *gpu = hn_dnn_new(m, DESC_PROPERTIES), *graph, *h;
    const int n = hn_dnn_operations(m, c, op);

    hn_dnn_set(m, gpu, PROPERTIES_TEXT, DNN_OF_CHAR, (int64_t)strlen(h200), h200);
    hn_dnn_finish(m, gpu, "stating a GPU's properties");
    graph = hn_dnn_new(m, DNN_GRAPH);
    hn_dnn_set(m, graph, DNN_GRAPH_OPS, DNN_OF_DESC, n, op);
    hn_dnn_finish(m, graph, "describing a graph of operations");
    h = hn_dnn_new(m, DNN_HEURISTICS);
    hn_dnn_set_desc(m, h, DNN_HEURISTICS_GRAPH, graph);
    hn_dnn_set_int(m, h, DNN_HEURISTICS_MODE, DNN_OF_HEURISTICS_MODE, DNN_BY_TREE);
    hn_dnn_set_desc(m, h, HEURISTICS_PROPERTIES, gpu);
    hn_dnn_finish(m, h, "asking for engines");
    const int64_t guessed = hn_dnn_get(m, h, DNN_HEURISTICS_CONFIGS, DNN_OF_DESC, 0, NULL);
    for (int64_t i = 0; i < guessed && i < MOST; i++) config[i] = hn_dnn_new(m, DNN_CONFIG);
    return guessed <= 0 ? guessed : hn_dnn_get(m, h, DNN_HEURISTICS_CONFIGS, DNN_OF_DESC, HN_MIN(guessed, MOST), config);
}

static void check(const hn_libcall *c, const char *note)
{
    hn_diag dg = { 0 };
    dnn_maker m = { .dg = &dg };

    hn_test_note("%s", note);
    const int64_t n = proposals(&m, c);
    CHECK_OK(m.status, &dg);
    CHECK(n > 0);
    hn_dnn_drop_all(&m);
}

/* Extents [b h s d] as rows of all heads behind one another, as projections leave them. */
static void heads_in_rows(const int64_t *dim, int64_t *ret)
{
    ret[3] = 1, ret[1] = dim[3], ret[2] = dim[1] * dim[3], ret[0] = dim[2] * ret[2];
}

TEST(dnn_true_attention)
{
    static const struct {
        const char *name;
        hn_dtype type;
        uint32_t flags;
        int64_t b, h, key_heads, queries, keys, d, dv;
    } all[] = { { "plain", HN_F16, 0, 32, 12, 12, 197, 197, 64, 64 },
                { "causal", HN_F16, HN_CALL_CAUSAL, 32, 12, 12, 512, 512, 64, 64 },
                { "of bf16", HN_BF16, HN_CALL_CAUSAL, 32, 12, 12, 512, 512, 64, 64 },
                { "grouped heads", HN_BF16, HN_CALL_CAUSAL, 8, 32, 8, 300, 300, 128, 128 },
                { "counted from the last query", HN_F16, HN_CALL_CAUSAL | HN_CALL_CAUSAL_LATE, 8, 12, 12, 100, 333, 64, 64 },
                { "more queries than keys", HN_F16, HN_CALL_CAUSAL, 8, 12, 12, 333, 100, 64, 64 },
                { "one query", HN_F16, 0, 32, 12, 12, 1, 512, 64, 64 },
                { "widths of no whole 16", HN_F16, HN_CALL_CAUSAL, 2, 4, 4, 77, 77, 40, 24 },
                { "wide heads", HN_F16, HN_CALL_CAUSAL, 2, 8, 8, 300, 300, 256, 256 } };
    open_library();
    for (int i = 0; i < HN_COUNT(all); i++) {
        const int64_t q[4] = { all[i].b, all[i].h, all[i].queries, all[i].d }, k[4] = { all[i].b, all[i].key_heads, all[i].keys, all[i].d };
        hn_libcall c = { .kind = HN_CALL_ATTENTION, .library = HN_LIB_CUDNN, .dtype = all[i].type, .flags = all[i].flags, .n_buf = 5 };
        hn_libcall_attention *a = &c.u.attention;
        memcpy(a->q, q, sizeof(q)), memcpy(a->k, k, sizeof(k)), memcpy(a->v, k, sizeof(k)), memcpy(a->y, q, sizeof(q));
        a->v[3] = a->y[3] = all[i].dv;
        heads_in_rows(a->q, a->q_stride), heads_in_rows(a->k, a->k_stride), heads_in_rows(a->v, a->v_stride), heads_in_rows(a->y, a->y_stride);
        check(&c, all[i].name);
    }
}

TEST(dnn_true_convolutions)
{
    static const struct {
        const char *name;
        hn_dtype type;
        uint32_t flags;
    } all[] = { { "alone", HN_F16, 0 }, { "of bf16", HN_BF16, HN_CALL_BIAS }, { "bias and relu", HN_F16, HN_CALL_BIAS | HN_CALL_RELU },
                { "addend, bias and relu", HN_F16, HN_CALL_ADD | HN_CALL_BIAS | HN_CALL_RELU }, { "of f32", HN_F32, HN_CALL_BIAS } };
    open_library();
    for (int i = 0; i < HN_COUNT(all); i++) {
        const hn_libcall c = { .kind = HN_CALL_CONV, .library = HN_LIB_CUDNN, .dtype = all[i].type, .flags = all[i].flags,
                               .n_buf = 4 + !!(all[i].flags & HN_CALL_BIAS) + !!(all[i].flags & HN_CALL_ADD),
                               .u.conv = { .x = { 8, 64, 56, 56 }, .w = { 64, 64, 3, 3 }, .y = { 8, 64, 56, 56 }, .group = 1,
                                           .x_stride = { 64 * 56 * 56, 1, 64 * 56, 64 }, .w_stride = { 64 * 9, 1, 64 * 3, 64 },
                                           .y_stride = { 64 * 56 * 56, 1, 64 * 56, 64 }, .stride = { 1, 1 }, .dilation = { 1, 1 },
                                           .before = { 1, 1 }, .after = { 1, 1 } } };
        check(&c, all[i].name);
    }
}
