#include "sim_int.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "codegen/cuda/cuda_text.h"
#include "sim_prelude.h"

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, DEVICE_UNAVAILABLE = 46, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

#define BUS_ID "0000:1B:00.0"

static sim_counts counts;
static int next_wait, dead;

API const sim_counts *sim_counts_get(void);
API void sim_fail_next_wait(int result);

const sim_counts *sim_counts_get(void)
{
    return &counts;
}

sim_counts *sim_counted(void)
{
    return &counts;
}

void sim_fail_next_wait(int result)
{
    next_wait = result;
}

/* What callers hold: reachable, so that a context that died with it is no leak to a sanitizer. */
static void *held[1 << 14];

static void *hold(void *p)
{
    for (int i = 0; p && i < HN_COUNT(held); i++)
        if (!held[i]) return held[i] = p;
    return p;
}

static void let_go(void *p)
{
    for (int i = 0; p && i < HN_COUNT(held); i++)
        if (held[i] == p) {
            held[i] = NULL;
            break;
        }
    free(p);
}

static void *host_of(uint64_t address)
{
    return (void *)(uintptr_t)(address & ~MARK);
}

/* ---- the driver: what is there ---- */
DRIVER(cuInit, unsigned flags)
{
    return flags ? INVALID : OK;
}

DRIVER(cuDriverGetVersion, int *ret)
{
    *ret = 13000;
    return OK;
}

DRIVER(cuDeviceGetCount, int *ret)
{
    *ret = 1;
    return OK;
}

DRIVER(cuDeviceGet, int *ret, int ordinal)
{
    *ret = ordinal;
    return ordinal == 0 ? OK : INVALID;
}

DRIVER(cuDeviceGetName, char *dst, int n, int device)
{
    (void)device;
    snprintf(dst, (size_t)n, "simulated GPU");
    return OK;
}

DRIVER(cuDeviceGetAttribute, int *ret, int attribute, int device)
{
    static const int known[][2] = { { 16, 132 }, { 38, 50 << 20 }, { 75, 9 }, { 76, 0 }, { 97, 227 << 10 } };

    (void)device;
    for (int i = 0; i < HN_COUNT(known); i++)
        if (known[i][0] == attribute) {
            *ret = known[i][1];
            return OK;
        }
    return INVALID;
}

DRIVER(cuDeviceGetPCIBusId, char *dst, int n, int device)
{
    (void)device;
    return snprintf(dst, (size_t)n, BUS_ID) < n ? OK : INVALID;
}

DRIVER(cuDeviceTotalMem_v2, size_t *ret, int device)
{
    (void)device;
    *ret = (size_t)1 << 30;
    return OK;
}

DRIVER(cuDevicePrimaryCtxRetain, void **ret, int device)
{
    static int context;
    const char *only = getenv("HONE_SIM_ACCIDENT");
    (void)device;
    if (only && strncmp(only, "exclusive:", 10) == 0 && atoi(only + 10) != getpid()) return DEVICE_UNAVAILABLE;
    *ret = &context;
    return OK;
}

DRIVER(cuCtxSetCurrent, void *c)
{
    (void)c;
    return dead;
}

/* ---- memory ---- */
DRIVER(cuMemAlloc_v2, uint64_t *ret, size_t bytes)
{
    void *p = bytes < (size_t)1 << 30 ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;

    if (!p) return NO_MEMORY;
    memset(hold(p), 0xab, bytes);
    counts.live_allocations++;
    *ret = (uint64_t)(uintptr_t)p | MARK;
    return OK;
}

DRIVER(cuMemFree_v2, uint64_t p)
{
    if (!(p & MARK)) return INVALID;
    counts.live_allocations--;
    let_go(host_of(p));
    return OK;
}

DRIVER(cuMemHostAlloc, void **ret, size_t bytes, unsigned flags)
{
    (void)flags;
    *ret = hold(malloc(bytes));
    return *ret ? OK : NO_MEMORY;
}

DRIVER(cuMemFreeHost, void *p)
{
    let_go(p);
    return OK;
}

DRIVER(cuPointerGetAttributes, unsigned n, const int *attribute, void **ret, uint64_t p)
{
    if (n != 1 || attribute[0] != 2) return INVALID;
    *(unsigned *)ret[0] = p & MARK ? 2 : 0; /* of memory that is not the driver's: nothing */
    return OK;
}

/* ---- recordings ---- */
typedef struct sim_kernel {
    void (*go)(uint32_t grid, const uint32_t *threads, void **param);
    int n_param;
} sim_kernel;

enum { MOST_WAITS = 16 };

typedef struct sim_op {
    const sim_kernel *kernel; /* NULL: a copy, or a library's work */
    void (*library)(const void *arg);
    uint32_t grid, threads[3];
    uint64_t param[512];
    void *dst;
    const void *src;
    size_t bytes;
    int wait[MOST_WAITS], n_wait; /* operations of the graph */
} sim_op;

typedef struct sim_graph {
    sim_op *op;
    int n;
    int here[MOST_WAITS], n_here; /* while recording: what comes next waits for */
} sim_graph;

static sim_graph *recording;

/* $HONE_SIM_ACCIDENT, "fault:128": what becomes of kernels of so many threads a block. */
static bool meets_accident(const sim_op *o)
{
    const char *what = getenv("HONE_SIM_ACCIDENT"), *of = what ? strchr(what, ':') : NULL;
    if (!of || atoi(of + 1) != (int)(o->threads[0] * o->threads[1] * o->threads[2])) return false;
    if (strncmp(what, "hang", 4) == 0)
        for (;;) pause();
    if (strncmp(what, "crash", 5) == 0) abort();
    next_wait = ILLEGAL_ADDRESS;
    return true;
}

static void run(sim_op *o)
{
    void *param[512];

    if (o->library) {
        o->library(o->param);
        return;
    }
    if (!o->kernel) {
        if (o->bytes) memcpy(o->dst, o->src, o->bytes); /* else a join */
        return;
    }
    if (meets_accident(o)) return;
    for (int i = 0; i < o->kernel->n_param; i++)
        param[i] = &o->param[i];
    o->kernel->go(o->grid, o->threads, param);
}

static int take(const sim_op *o)
{
    if (dead) return dead;
    if (!recording) {
        run((sim_op *)(uintptr_t)o);
        return OK;
    }
    sim_op *grown = realloc(recording->op, sizeof(*grown) * (size_t)(recording->n + 1));
    if (!grown) return NO_MEMORY;
    recording->op = grown;
    sim_op *const mine = &recording->op[recording->n];
    *mine = *o;
    mine->n_wait = recording->n_here;
    memcpy(mine->wait, recording->here, sizeof(mine->wait));
    recording->here[0] = recording->n++;
    recording->n_here = 1;
    counts.captured++;
    return OK;
}

int sim_take_library(void (*work)(const void *arg), const void *arg, size_t n)
{
    static sim_op o;
    o = (sim_op){ .library = work };
    memcpy(o.param, arg, n);
    counts.library_calls++;
    return take(&o);
}

int sim_refuse(int result)
{
    counts.library_refusals++;
    return result;
}

static int copy(void *dst, const void *src, size_t bytes)
{
    static sim_op o;
    o = (sim_op){ .dst = dst, .src = src, .bytes = bytes };
    return take(&o);
}

DRIVER(cuMemcpyHtoDAsync_v2, uint64_t dst, const void *src, size_t bytes, void *s)
{
    (void)s;
    counts.to_device++;
    return dst & MARK ? copy(host_of(dst), src, bytes) : INVALID;
}

DRIVER(cuMemcpyDtoHAsync_v2, void *dst, uint64_t src, size_t bytes, void *s)
{
    (void)s;
    counts.to_host++;
    return src & MARK ? copy(dst, host_of(src), bytes) : INVALID;
}

DRIVER(cuMemcpyDtoDAsync_v2, uint64_t dst, uint64_t src, size_t bytes, void *s)
{
    (void)s;
    return dst & src & MARK ? copy(host_of(dst), host_of(src), bytes) : INVALID;
}

DRIVER(cuStreamBeginCapture_v2, void *s, int mode)
{
    (void)s, (void)mode;
    if (recording) return INVALID;
    recording = calloc(1, sizeof(*recording));
    return recording ? OK : NO_MEMORY;
}

DRIVER(cuStreamEndCapture, void *s, sim_graph **ret)
{
    (void)s;
    if (!recording) return INVALID;
    *ret = recording;
    recording = NULL;
    counts.graphs++;
    return OK;
}

/* A node is its number, from 1. */
static void *node_of(int op)
{
    return (void *)(uintptr_t)(op + 1);
}

DRIVER(cuStreamGetCaptureInfo_v2, void *s, int *state, uint64_t *id, sim_graph **ret, void *const **ret_node, size_t *ret_n)
{
    static void *node[MOST_WAITS];

    (void)s;
    if (!state || !recording) return INVALID;
    for (int i = 0; i < recording->n_here; i++)
        node[i] = node_of(recording->here[i]);
    *state = 1;
    if (id) *id = 1;
    *ret = recording;
    *ret_node = node;
    *ret_n = (size_t)recording->n_here;
    return OK;
}

DRIVER(cuStreamUpdateCaptureDependencies, void *s, void *const *node, size_t n, unsigned flags)
{
    (void)s;
    if (!recording || flags != 1 || n > MOST_WAITS) return INVALID;
    for (size_t i = 0; i < n; i++) {
        const int op = (int)(uintptr_t)node[i] - 1;
        if (op < 0 || op >= recording->n) return INVALID;
        recording->here[i] = op;
    }
    recording->n_here = (int)n;
    counts.branchings++;
    return OK;
}

DRIVER(cuGraphAddEmptyNode, void **ret, sim_graph *g, void *const *node, size_t n)
{
    static const sim_op nothing;
    sim_op *grown = realloc(g->op, sizeof(*grown) * (size_t)(g->n + 1));

    if (!grown) return NO_MEMORY;
    g->op = grown;
    g->op[g->n] = nothing;
    for (size_t i = 0; i < n && i < MOST_WAITS; i++)
        g->op[g->n].wait[g->op[g->n].n_wait++] = (int)(uintptr_t)node[i] - 1;
    *ret = node_of(g->n++);
    return OK;
}

DRIVER(cuGraphInstantiateWithFlags, sim_graph **ret, sim_graph *g, unsigned long long flags)
{
    (void)flags;
    sim_graph *x = calloc(1, sizeof(*x));
    if (x) x->op = malloc(sizeof(*x->op) * (size_t)(g->n + 1));
    if (!x || !x->op) return NO_MEMORY;
    if (g->n) memcpy(x->op, g->op, sizeof(*x->op) * (size_t)g->n);
    x->n = g->n;
    *ret = hold(x);
    return OK;
}

static bool ready(const sim_op *o, const bool *done)
{
    for (int i = 0; i < o->n_wait; i++)
        if (!done[o->wait[i]]) return false;
    return true;
}

/* Whatever order the graph allows is right; the one farthest from the recorded one shows best what was left out: of all that
 * could run, what was recorded last. */
static int run_any_order(sim_graph *g)
{
    bool *done = calloc((size_t)g->n + 1, sizeof(*done));
    int first = 0;

    if (!done) return NO_MEMORY;
    for (int n = 0; n < g->n; n++) {
        int at = g->n - 1;
        while (done[at] || !ready(&g->op[at], done))
            at--;
        while (done[first])
            first++;
        counts.overtakings += at != first;
        run(&g->op[at]);
        done[at] = true;
    }
    free(done);
    return OK;
}

DRIVER(cuGraphLaunch, sim_graph *g, void *s)
{
    (void)s;
    if (dead) return dead;
    counts.graph_launches++;
    return run_any_order(g);
}

DRIVER(cuGraphDestroy, sim_graph *g)
{
    free(g->op);
    free(g);
    return OK;
}

DRIVER(cuGraphExecDestroy, sim_graph *g)
{
    free(g->op);
    let_go(g);
    return OK;
}

/* ---- streams ---- */
DRIVER(cuStreamCreate, void **ret, unsigned flags)
{
    (void)flags;
    *ret = hold(malloc(1));
    return *ret ? OK : NO_MEMORY;
}

DRIVER(cuStreamDestroy_v2, void *s)
{
    let_go(s);
    return OK;
}

DRIVER(cuStreamSynchronize, void *s)
{
    const int r = next_wait;

    (void)s;
    next_wait = 0;
    if (r >= 700 || r == 214) dead = r;
    return dead ? dead : r;
}

/* ---- modules: the "cubin" is a shared library of the host's ---- */
static bool write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    const bool ok = f && fwrite(data, 1, n, f) == n;
    return f && fclose(f) == 0 && ok;
}

/* "cubin": a length, then that many bytes. */
DRIVER(cuModuleLoadData, void **ret, const uint8_t *image)
{
    char path[] = "/tmp/hone_sim_XXXXXX";
    uint64_t n;
    const int fd = mkstemp(path);

    memcpy(&n, image, sizeof(n));
    if (fd < 0) return INVALID;
    close(fd);
    *ret = write_file(path, image + sizeof(n), n) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    unlink(path);
    counts.modules += *ret != NULL;
    return *ret ? OK : INVALID;
}

DRIVER(cuModuleUnload, void *m)
{
    counts.modules--;
    return dlclose(m) == 0 ? OK : INVALID;
}

DRIVER(cuModuleGetFunction, sim_kernel **ret, void *m, const char *name)
{
    static sim_kernel all[4096];
    static int n;
    void *go = dlsym(m, "sim_run"), *count = dlsym(m, "sim_n_param");

    if (!go || !count || strcmp(name, HN_CU_KERNEL_NAME) != 0 || n == HN_COUNT(all)) return NOT_FOUND;
    memcpy(&all[n].go, &go, sizeof(go));
    all[n].n_param = *(const int *)count;
    *ret = &all[n++];
    return OK;
}

DRIVER(cuFuncSetAttribute, sim_kernel *f, int attribute, int value)
{
    (void)f;
    return attribute == 8 && value <= 227 << 10 ? OK : INVALID;
}

DRIVER(cuLaunchKernel, const sim_kernel *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
       unsigned shared_bytes, void *s, void **param, void **extra)
{
    static sim_op o;

    (void)s, (void)shared_bytes;
    if (gx < 1 || gy != 1 || gz != 1 || bx * by * bz > 1024 || extra) return INVALID;
    o = (sim_op){ .kernel = f, .grid = gx, .threads = { bx, by, bz } };
    for (int i = 0; i < f->n_param; i++) {
        memcpy(&o.param[i], param[i], sizeof(o.param[i]));
        if ((o.param[i] & MARK) && !(o.param[i] >> 63)) o.param[i] &= ~MARK;
    }
    counts.launches++;
    return take(&o);
}

typedef struct sim_launch {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    const int *attribute; /* number, padding, value */
    unsigned n_attribute;
} sim_launch;

DRIVER(cuLaunchKernelEx, const sim_launch *l, const sim_kernel *f, void **param, void **extra)
{
    const unsigned *g = l->grid, *b = l->block;
    if (l->n_attribute != 1 || l->attribute[0] != 6 || l->attribute[2] != 1) return INVALID;
    counts.early++;
    return cuLaunchKernel(f, g[0], g[1], g[2], b[0], b[1], b[2], l->shared_bytes, l->stream, param, extra);
}

DRIVER(cuGetErrorName, int result, const char **ret)
{
    *ret = result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_SIMULATED";
    return OK;
}

DRIVER(cuGetErrorString, int result, const char **ret)
{
    *ret = result == 700 ? "an illegal memory access was encountered" : "simulated error";
    return OK;
}

/* ---- NVRTC ---- */
typedef struct sim_program {
    char *source;
    uint8_t *image;
    size_t n;
} sim_program;

DRIVER(nvrtcVersion, int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return OK;
}

DRIVER(nvrtcCreateProgram, sim_program **ret, const char *src, const char *name, int n, const char *const *head,
       const char *const *as)
{
    (void)name, (void)n, (void)head, (void)as;
    *ret = calloc(1, sizeof(**ret));
    if (*ret) (*ret)->source = strdup(src);
    return *ret && (*ret)->source ? OK : INVALID;
}

DRIVER(nvrtcDestroyProgram, sim_program **p)
{
    free((*p)->source);
    free((*p)->image);
    free(*p);
    *p = NULL;
    return OK;
}

/* The kernel with the host's prelude in place of the PTX, and large shared memory as an array. */
static void host_source(const char *source, hn_str *out)
{
    static const char asked[] = "extern __shared__ __align__(16) u8 hn_shared[];";
    hn_str ptx = { 0 };

    hn_cu_ptx_prelude(&ptx);
    const char *rest = strncmp(source, hn_str_get(&ptx), ptx.n) == 0 ? source + ptx.n : source;
    const char *large = strstr(rest, asked);
    hn_str_done(&ptx);
    hn_str_add(out, sim_prelude);
    hn_str_add(out, sim_warps);
    if (large) {
        hn_str_add_n(out, rest, (size_t)(large - rest));
        hn_str_add(out, "static __align__(16) u8 hn_shared[227 << 10];");
        rest = large + strlen(asked);
    }
    hn_str_add(out, rest);
    hn_str_add(out, sim_launcher);
    const bool waits = strstr(rest, "__syncthreads") || strstr(rest, "hn_shfl") || strstr(rest, "hn_mma") || strstr(rest, "hn_ldmatrix");
    hn_str_addf(out,
                "extern \"C\" int sim_n_param; int sim_n_param = sim_count(hn_kernel);\n"
                "extern \"C\" void sim_run(u32 grid, const u32 *t, void **p) { sim_go(hn_kernel, %s, grid, t, p); }\n",
                waits ? "true" : "false");
}

static bool read_image(sim_program *p, const char *path)
{
    FILE *f = fopen(path, "rb");

    if (!f || fseek(f, 0, SEEK_END) != 0) return false;
    const uint64_t n = (uint64_t)ftell(f);
    rewind(f);
    p->n = n + sizeof(n);
    p->image = malloc(p->n);
    const bool ok = p->image && fread(p->image + sizeof(n), 1, n, f) == n;
    if (ok) memcpy(p->image, &n, sizeof(n));
    fclose(f);
    return ok;
}

DRIVER(nvrtcCompileProgram, sim_program *p, int n, const char *const *option)
{
    char dir[] = "/tmp/hone_sim_XXXXXX", src[64], so[64];
    hn_str text = { 0 };

    (void)n, (void)option;
    if (!mkdtemp(dir)) return INVALID;
    snprintf(src, sizeof(src), "%s/k.cc", dir);
    snprintf(so, sizeof(so), "%s/k.so", dir);
    host_source(p->source, &text);
    const char *const cmd[] = { "g++", "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off",
                                "-fno-strict-aliasing", "-s", "-o", so, src, NULL };
    const bool ok = write_file(src, text.s, text.n) && sim_run_program(cmd) && read_image(p, so);
    hn_str_done(&text);
    if (ok) unlink(src);
    unlink(so);
    rmdir(dir);
    return ok ? OK : 6;
}

DRIVER(nvrtcGetCUBINSize, const sim_program *p, size_t *ret)
{
    *ret = p->n;
    return OK;
}

DRIVER(nvrtcGetCUBIN, const sim_program *p, char *dst)
{
    memcpy(dst, p->image, p->n);
    return OK;
}

DRIVER(nvrtcGetProgramLogSize, const sim_program *p, size_t *ret)
{
    (void)p;
    *ret = 1;
    return OK;
}

DRIVER(nvrtcGetProgramLog, const sim_program *p, char *dst)
{
    (void)p;
    *dst = 0;
    return OK;
}

API const char *nvrtcGetErrorString(int result);
const char *nvrtcGetErrorString(int result)
{
    return result ? "simulated failure" : "success";
}

/* ---- NVML ---- */
DRIVER(nvmlInit_v2, void)
{
    return OK;
}

DRIVER(nvmlDeviceGetHandleByPciBusId_v2, const char *bus_id, void **ret)
{
    *ret = &counts;
    return strcmp(bus_id, BUS_ID) == 0 ? OK : INVALID;
}

DRIVER(nvmlDeviceGetClockInfo, const void *device, int which, unsigned *ret_mhz)
{
    *ret_mhz = SIM_CLOCK_MHZ;
    return device == &counts && which == 1 ? OK : INVALID;
}
