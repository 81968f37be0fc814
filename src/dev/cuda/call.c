/* Library calls as a module's kernels: made ready when code is loaded, run in the order of launches. */
#include "dev/cuda/call.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

struct cuda_call {
    hn_libcall c;
    hn_str plan; /* what the library compiled for its algorithm, or nothing */
    const cuda_library *lib;
    void *state;
    pthread_mutex_t busy; /* contexts of one engine share its calls, and libraries keep operands in them */
};

static const cuda_library *library_of(uint32_t which)
{
    switch ((hn_library)which) {
    case HN_LIB_CUBLASLT: return &hn_cuda_lt;
    case HN_LIB_CUDNN: return &hn_cuda_dnn;
    case HN_LIB_NONE:
    case HN_LIB_COUNT: break;
    }
    return NULL;
}

static struct {
    pthread_mutex_t busy;
    bool tried[HN_LIB_COUNT];
    hn_diag why[HN_LIB_COUNT]; /* one is not here */
} opened = { .busy = PTHREAD_MUTEX_INITIALIZER };

static hone_status open_library(uint32_t which, const cuda_library **ret, hn_diag *dg)
{
    const cuda_library *lib = library_of(which);

    if (!lib) return HN_RAISE(dg, HONE_E_VERSION, "library call of kind %u, which this version does not know", which);
    pthread_mutex_lock(&opened.busy);
    if (!opened.tried[which]) (void)lib->load(&opened.why[which]);
    opened.tried[which] = true;
    pthread_mutex_unlock(&opened.busy);
    const hn_diag *why = &opened.why[which];
    if (why->code != HONE_OK) {
        if (dg) *dg = *why;
        return why->code;
    }
    *ret = lib;
    return HONE_OK;
}

static bool is_type(uint32_t dtype)
{
    return dtype == HN_F16 || dtype == HN_BF16 || dtype == HN_F32;
}

/* Sizes and counts; what they mean is the library's affair. */
static hone_status check(const hn_libcall *c, hn_diag *dg)
{
    if (c->kind >= HN_CALL_MATMUL && c->kind <= HN_CALL_ATTENTION && c->n_buf >= 4 && c->n_buf <= HN_CALL_MAX_BUF &&
        c->n_algo <= HN_CALL_ALGO_BYTES && c->workspace_bytes >= 0 && is_type(c->dtype))
        return HONE_OK;
    return HN_RAISE(dg, HONE_E_FORMAT, "damaged library call");
}

static hone_status refuse(const cuda_call *c, hn_diag *dg)
{
    char own[32], here[32];
    c->lib->print_version(c->c.version, own, sizeof(own));
    c->lib->print_version(c->lib->version(), here, sizeof(here));
    hn_hint(dg, "Build it anew here, or without -core:deterministic=1.");
    return HN_RAISE(dg, HONE_E_VERSION, "the engine keeps to algorithms of %s %s, and %s is here", c->lib->name, own, here);
}

/* An algorithm holds for the version that proposed it; another one is asked again, unless the same bits are wanted everywhere. */
static hone_status settle(cuda_device *d, cuda_call *c, hn_diag *dg)
{
    if (c->c.n_algo && c->c.version == c->lib->version()) return HONE_OK;
    if (c->c.flags & HN_CALL_FIXED) return refuse(c, dg);
    hn_str_clear(&c->plan);
    const hone_status s = c->lib->choose(d, &c->c, &c->plan, NULL);
    if (s == HONE_OK || c->c.rank == 0) return s == HONE_OK ? s : c->lib->choose(d, &c->c, &c->plan, dg);
    c->c.rank = 0; /* fewer are proposed here */
    return c->lib->choose(d, &c->c, &c->plan, dg);
}

static hone_status fill(cuda_device *d, cuda_call *c, hn_diag *dg)
{
    HN_TRY(check(&c->c, dg));
    HN_TRY_IN(dg, open_library(c->c.library, &c->lib, dg), "an engine that calls it");
    HN_TRY(settle(d, c, dg));
    HN_TRY(c->lib->make(d, &c->c, &c->plan, &c->state, dg));
    hn_str_done(&c->plan);
    return HONE_OK;
}

hone_status hn_cuda_call_make(cuda_device *d, const void *bytes, size_t n, cuda_call **ret, hn_diag *dg)
{
    if (n < sizeof(hn_libcall)) return HN_RAISE(dg, HONE_E_FORMAT, "a library call of %zu bytes", n);
    cuda_call *c = calloc(1, sizeof(*c));
    if (!c) return HN_NOMEM(dg);
    memcpy(&c->c, bytes, sizeof(c->c));
    hn_str_add_n(&c->plan, (const char *)bytes + sizeof(c->c), n - sizeof(c->c));
    pthread_mutex_init(&c->busy, NULL);
    const hone_status s = c->plan.oom ? HN_NOMEM(dg) : fill(d, c, dg);
    if (s != HONE_OK) {
        hn_cuda_call_drop(d, c);
        return s;
    }
    *ret = c;
    return HONE_OK;
}

void hn_cuda_call_drop(cuda_device *d, cuda_call *c)
{
    if (!c) return;
    if (c->lib && c->state) c->lib->drop(d, c->state);
    pthread_mutex_destroy(&c->busy);
    hn_str_done(&c->plan);
    free(c);
}

hone_status hn_cuda_call_run(cuda_device *d, cuda_call *c, void *const *buf, cu_stream *s, hn_diag *dg)
{
    pthread_mutex_lock(&c->busy);
    const hone_status r = c->lib->run(d, c->state, &c->c, buf, s, dg);
    pthread_mutex_unlock(&c->busy);
    return r;
}

hone_status hn_cuda_call_choose(hn_device *hd, hn_libcall *c, hn_str *ret_plan, hn_diag *dg)
{
    cuda_device *d = hn_cuda_of(hd);
    const cuda_library *lib = NULL;

    HN_TRY(hn_cuda_enter(d, dg));
    HN_TRY(check(c, dg));
    HN_TRY(open_library(c->library, &lib, dg));
    return lib->choose(d, c, ret_plan, dg);
}

hone_status hn_cuda_library(hn_device *hd, hn_library which, hn_str *ret_version, hn_diag *dg)
{
    cuda_device *d = hn_cuda_of(hd);
    const cuda_library *lib = NULL;
    char text[32];

    HN_TRY(hn_cuda_enter(d, dg));
    HN_TRY(open_library(which, &lib, dg));
    lib->print_version(lib->version(), text, sizeof(text));
    if (ret_version) hn_str_addf(ret_version, "%s %s", lib->name, text);
    return HONE_OK;
}
