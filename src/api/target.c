/* What engines are made for: this processor, the GPU that is here, or a machine named in a table. */
#include "api/api_int.h"
#include "dev/dev.h"

#include <string.h>

/* The named target that the GPU here runs. */
static hone_status gpu_target(const hn_target **ret, hn_diag *dg)
{
    hn_device *d;
    HN_TRY(hn_device_cuda(&d, dg));
    for (int i = 0; i < hn_target_n_named(); i++) {
        *ret = hn_target_named(i);
        if ((*ret)->arch == HN_ARCH_SM && hn_device_check_target(d, *ret, NULL) == HONE_OK) return HONE_OK;
    }
    hn_str s = { 0 };
    hn_device_cuda_print(d, &s);
    HN_RAISE(dg, HONE_E_TARGET, "engines for the GPU here (%s) cannot be made: no target is like it", hn_str_get(&s));
    hn_str_done(&s);
    return HONE_E_TARGET;
}

const char *hone_gpu_target(void)
{
    const hn_target *t;
    return gpu_target(&t, NULL) == HONE_OK ? t->name : NULL;
}

bool hn_api_is_host(const char *target)
{
    return !target || !target[0] || strcmp(target, "host") == 0;
}

hone_status hn_api_target(const char *name, hn_target *ret, hn_diag *dg)
{
    const hn_target *gpu;
    if (hn_api_is_host(name)) {
        hn_target_detect(ret, /* measure= */ false);
        return HONE_OK;
    }
    if (strcmp(name, "gpu") != 0) return hn_target_get(name, ret, dg);
    HN_TRY(gpu_target(&gpu, dg));
    *ret = *gpu;
    return HONE_OK;
}
