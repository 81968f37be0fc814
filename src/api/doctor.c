/* What this machine offers, and what is missing. */
#include "api/api_int.h"
#include "base/dl.h"
#include "codegen/cuda/find.h"
#include "dev/dev.h"

#include <stdlib.h>

static void put(hn_json *j, const char *key, const char *v)
{
    hn_json_key(j, key);
    hn_json_str(j, v);
}

/* The GPU, or why there is none to run on; engines for one are built without it. */
static void put_cuda(hn_json *j)
{
    hn_str s = { 0 };
    hn_diag dg = { 0 };
    hn_device *d;
    if (hn_device_cuda(&d, &dg) == HONE_OK) hn_device_cuda_print(d, &s);
    else hn_str_addf(&s, "off: %s%s%s%s", dg.message, dg.hint[0] ? " (" : "", dg.hint, dg.hint[0] ? ")" : "");
    put(j, "cuda", hn_str_get(&s));
    hn_str_clear(&s);
    const char *path[HN_NVRTC_N_PATH];
    hn_nvrtc_paths(path);
    hn_dl_find(path, HN_NVRTC_N_PATH, &s);
    put(j, "nvrtc", s.n ? hn_str_get(&s) : "not found in the usual folders; $HONE_NVRTC names one");
    hn_str_done(&s);
}

static void describe(const hn_target *t, hn_str *out)
{
    hn_json j;
    hn_str feat = { 0 };
    char *cache = hn_cache_dir();
    hn_feat_print(t->feat, &feat);
    hn_json_init(&j, out, true);
    hn_json_object(&j);
    put(&j, "version", hone_version());
    put(&j, "processor", t->cpu_name);
    put(&j, "features", hn_str_get(&feat));
    hn_json_key(&j, "cores");
    hn_json_i64(&j, t->n_core);
    hn_json_key(&j, "l1d_bytes");
    hn_json_i64(&j, t->l1d_bytes);
    hn_json_key(&j, "l2_bytes");
    hn_json_i64(&j, t->l2_bytes);
    hn_json_key(&j, "l3_bytes");
    hn_json_i64(&j, t->l3_bytes);
    hn_json_key(&j, "peak_gflops");
    hn_json_f64(&j, t->peak_gflops);
    hn_json_key(&j, "bandwidth_gbs");
    hn_json_f64(&j, t->bandwidth_gbs);
    put(&j, "cache_dir", cache);
    put_cuda(&j);
    hn_json_key(&j, "targets");
    hn_json_array(&j);
    for (int i = 0; i < hn_target_n_named(); i++) hn_json_str(&j, hn_target_named(i)->name);
    hn_json_array_end(&j);
    hn_json_object_end(&j);
    free(cache);
    hn_str_done(&feat);
}

hone_status hone_doctor_json(char **ret, hone_error **err)
{
    hn_target t;
    hn_str s = { 0 };
    hn_diag dg = { 0 };
    if (!ret) return hn_api_misuse(err, "a place for the text is needed");
    hn_target_detect(&t, true);
    describe(&t, &s);
    char *text = hn_api_string(&s);
    hn_str_done(&s);
    if (!text) {
        HN_NOMEM(&dg);
        return hn_api_fail(err, &dg, NULL);
    }
    *ret = text;
    return HONE_OK;
}
