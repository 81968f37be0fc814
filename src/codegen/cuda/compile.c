/* One kernel through NVRTC: text, cubin, and the header that the device reads. */
#include "codegen/cuda/cuda_int.h"

#include <string.h>

#include "base/os.h"
#include "core/image.h"

static hone_status check_target(const hn_target *t, hn_diag *dg)
{
    if (t->arch == HN_ARCH_SM) return HONE_OK;
    return HN_RAISE(dg, HONE_E_UNSUPPORTED, "the GPU code generator makes no code for \"%s\"", t->name);
}

static hone_status source_of(const hn_kfunc *f, hn_arena *a, hn_str *out, int64_t *ret_shared, hn_diag *dg)
{
    hn_cu_ptx_prelude(out);
    hn_cu_prelude(out);
    return hn_cu_emit(f, a, out, ret_shared, dg);
}

static hone_status pack(const hn_kfunc *f, hn_bytes cubin, const hn_nvrtc_log *log, int64_t shared, hn_arena *a,
                        hn_code *ret, hn_diag *dg)
{
    uint8_t *at = hn_arena_alloc_aligned(a, sizeof(hn_image) + cubin.n, HN_IMAGE_ALIGN);
    hn_image h = { .magic = HN_IMAGE_MAGIC,
                   .bytes = (uint32_t)cubin.n,
                   .shared_bytes = (uint32_t)shared,
                   .n_buf = (uint32_t)hn_kfunc_n_params(f),
                   .n_arg = (uint32_t)f->n_arg,
                   .n_reg = (uint32_t)log->n_reg,
                   .stack_bytes = (uint32_t)log->stack_bytes,
                   .spill_bytes = (uint32_t)log->spill_bytes };

    if (!at) return HN_NOMEM(dg);
    for (int i = 0; i < 3; i++)
        h.threads[i] = (uint32_t)f->threads[i];
    memcpy(at, &h, sizeof(h));
    memcpy(at + sizeof(h), cubin.at, cubin.n);
    *ret = (hn_code){ .at = at,
                      .n = sizeof(h) + cubin.n,
                      .align = HN_IMAGE_ALIGN,
                      .frame_bytes = log->stack_bytes,
                      .n_stack_ref = log->spill_bytes };
    return HONE_OK;
}

static hone_status make(const hn_kfunc *f, const hn_target *t, hn_arena *tmp, hn_arena *a, hn_code *ret, hn_diag *dg)
{
    hn_str text = { 0 };
    int64_t shared = 0;
    hn_bytes cubin;
    hn_nvrtc_log log;

    hone_status s = source_of(f, tmp, &text, &shared, dg);
    if (s == HONE_OK) s = hn_nvrtc_compile(hn_str_get(&text), f->name, t->name, tmp, &cubin, &log, dg);
    hn_str_done(&text);
    return s == HONE_OK ? pack(f, cubin, &log, shared, a, ret, dg) : s;
}

static hone_status compile(const hn_kfunc *f, const hn_target *t, hn_arena *a, hn_code *ret, hn_diag *dg)
{
    const int64_t start = hn_now_ns();

    HN_TRY(check_target(t, dg));
    hn_arena *tmp = hn_arena_create();
    if (!tmp) return HN_NOMEM(dg);
    const hone_status s = make(f, t, tmp, a, ret, dg);
    hn_arena_destroy(tmp);
    if (s == HONE_OK) ret->compile_ns = hn_now_ns() - start;
    return s;
}

/* The text is what there is to see: NVRTC has no listing of its own. */
static hone_status dump(const hn_kfunc *f, const hn_target *t, bool optimised_ir, hn_str *out, hn_diag *dg)
{
    int64_t shared;

    (void)optimised_ir;
    HN_TRY(check_target(t, dg));
    hn_arena *tmp = hn_arena_create();
    if (!tmp) return HN_NOMEM(dg);
    const hone_status s = source_of(f, tmp, out, &shared, dg);
    hn_arena_destroy(tmp);
    return s;
}

const hn_codegen hn_codegen_cuda = {
    .name = "nvrtc",
    .version = hn_nvrtc_version,
    .rev = HN_CODEGEN_REV,
    .compile = compile,
    .dump = dump,
};
