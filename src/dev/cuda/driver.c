/* The CUDA driver: where it is, whether it is new enough, what its errors mean. */
#include "dev/cuda/driver.h"

#include <pthread.h>
#include <stdio.h>

#include "base/dl.h"
#include "base/os.h"

/* Graphs by cuGraphInstantiateWithFlags and capture by cuStreamBeginCapture_v2; NVRTC 12 needs as much. */
enum { LEAST_VERSION = 12000 };

static struct {
    pthread_once_t once;
    cu_driver api;
    int version;
    hn_diag why; /* code HONE_OK: it is there */
} driver = { .once = PTHREAD_ONCE_INIT };

static hone_status load(hn_diag *dg)
{
    static const hn_dl_fn fn[] = {
#define X(field, symbol, parameters) { symbol, (void (**)(void))(void *)&driver.api.field, false },
#include "dev/cuda/driver.def"
#undef X
    };
    const char *const path[] = { hn_env("HONE_CUDA_DRIVER"), "libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
                                 "/usr/lib/wsl/lib/libcuda.so.1" };
    void *lib;

    HN_TRY(hn_dl_open("the CUDA driver (libcuda.so.1)", path, HN_COUNT(path), &lib, NULL, dg));
    HN_TRY(hn_dl_bind("the CUDA driver", lib, fn, HN_COUNT(fn), dg));
    const int r = driver.api.init(0);
    if (r == CU_NO_DEVICE) return HN_RAISE(dg, HONE_E_NOTFOUND, "the CUDA driver shows no GPU");
    if (r != 0) {
        char text[160];
        hn_cu_error_text(&driver.api, r, text, sizeof(text));
        return HN_RAISE(dg, HONE_E_DEVICE, "the CUDA driver does not start: %s", text);
    }
    if (driver.api.driver_version(&driver.version) == 0 && driver.version >= LEAST_VERSION) return HONE_OK;
    return HN_RAISE(dg, HONE_E_VERSION, "the NVIDIA driver speaks CUDA %d.%d, 12.0 or newer is needed", driver.version / 1000,
                    driver.version % 1000 / 10);
}

static void load_once(void)
{
    (void)load(&driver.why);
}

hone_status hn_cu_driver(const cu_driver **ret, int *ret_version, hn_diag *dg)
{
    pthread_once(&driver.once, load_once);
    if (driver.why.code != HONE_OK) {
        if (dg) *dg = driver.why;
        return driver.why.code;
    }
    *ret = &driver.api;
    *ret_version = driver.version;
    return HONE_OK;
}

void hn_cu_error_text(const cu_driver *c, int result, char *dst, size_t n)
{
    const char *name = NULL, *text = NULL;

    if (c->error_name(result, &name) != 0 || !name) name = "unknown";
    if (c->error_text(result, &text) != 0 || !text) text = "error";
    snprintf(dst, n, "%s (%s, %d)", text, name, result);
}

bool hn_cu_is_sticky(int result)
{
    switch (result) {
    case 214: /* uncorrectable memory error */
    case 220: /* link error */
    case 700: /* illegal address */
    case 702: /* launch timeout */
    case 709: /* context destroyed */
    case 710: /* assert */
    case 714: /* stack error */
    case 715: /* illegal instruction */
    case 716: /* misaligned address */
    case 717: /* invalid address space */
    case 718: /* invalid program counter */
    case 719: /* launch failed */
        return true;
    default:
        return false;
    }
}
