/* The clock that a GPU runs at just now, by NVIDIA's management library. Its absence costs knowledge alone. */
#include <pthread.h>

#include "base/dl.h"
#include "base/os.h"
#include "core/core.h"
#include "dev/cuda/cuda_int.h"

typedef struct nvml_device nvml_device;

enum { CLOCK_SM = 1 };

static struct {
    pthread_once_t once;
    bool works;
#define X(field, symbol, parameters) int(*field) parameters;
#include "dev/cuda/nvml.def"
#undef X
} nvml = { .once = PTHREAD_ONCE_INIT };

static void open_once(void)
{
    static const hn_dl_fn fn[] = {
#define X(field, symbol, parameters) { symbol, (void (**)(void))(void *)&nvml.field, false },
#include "dev/cuda/nvml.def"
#undef X
    };
    const char *const path[] = { hn_env("HONE_NVML"), "libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1" };
    hn_diag why = { 0 };
    void *lib;

    nvml.works = hn_dl_open("NVML (libnvidia-ml.so.1)", path, HN_COUNT(path), &lib, NULL, &why) == HONE_OK &&
                 hn_dl_bind("NVML", lib, fn, HN_COUNT(fn), &why) == HONE_OK && nvml.init() == 0;
}

/* By its place on the bus, for the two libraries count GPUs in orders of their own. */
int hn_cuda_clock_mhz(hn_device *hd)
{
    const cuda_device *d = hn_cuda_of(hd);
    char bus_id[32] = "";
    nvml_device *at = NULL;
    unsigned mhz = 0;

    pthread_once(&nvml.once, open_once);
    if (!nvml.works || d->c->device_bus_id(bus_id, sizeof(bus_id), d->ordinal) != 0) return 0;
    return nvml.device_at(bus_id, &at) == 0 && nvml.clock(at, CLOCK_SM, &mhz) == 0 ? (int)mhz : 0;
}
