#include "handmade.h"

#include <stdlib.h>
#include <string.h>

#include "core/core.h"

static void k_add(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    const float *a = buf[0], *b = buf[1];
    float *const c = buf[2];

    (void)arg, (void)scratch;
    for (int64_t i = lo; i < hi; i++)
        c[i] = a[i] + b[i];
}

static void k_scale(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    const float *a = buf[0];
    float *const b = buf[1];

    (void)scratch;
    for (int64_t i = lo; i < hi; i++)
        b[i] = a[i] * (float)arg[0];
}

static void k_nonzero(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    const float *a = buf[0];
    int64_t *const b = buf[1], n = 0;

    (void)lo, (void)hi, (void)scratch;
    for (int64_t i = 0; i < arg[0]; i++)
        if (a[i] != 0) b[n++] = i;
    *(int64_t *)buf[2] = n;
}

static void k_iadd(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    (void)lo, (void)hi, (void)scratch;
    *(int64_t *)buf[1] = *(const int64_t *)buf[0] + arg[0];
}

static void k_sum(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    const float *a = buf[0];
    float sum = 0;

    (void)lo, (void)hi, (void)scratch;
    for (int64_t i = 0; i < arg[0]; i++)
        sum += a[i];
    *(float *)buf[1] = sum;
}

static void k_ftz(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    const volatile float tiny = 1e-38f, third = 1.0f / 3; /* volatile: computed here and now */
    const volatile float small = tiny * 0.125f, up = third + 1e-9f;

    (void)arg, (void)lo, (void)hi, (void)scratch;
    *(int64_t *)buf[0] = small != 0 && up == third;
}

static void k_scratch(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    const float *a = buf[0];
    float *const b = buf[1], *const s = scratch;

    for (int64_t i = lo; i < hi; i++) {
        memcpy(s, a + i * arg[0], (size_t)arg[0] * sizeof(*s));
        for (int64_t k = 0; k < arg[0]; k++)
            b[i * arg[0] + k] = 2 * s[k];
    }
}

static void k_gather(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    const float *a = buf[0];
    const int64_t *b = buf[1];
    float *const c = buf[2];

    (void)arg, (void)scratch;
    for (int64_t i = lo; i < hi; i++)
        c[i] = a[b[i]];
}

static void k_less(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    (void)lo, (void)hi, (void)scratch;
    *(uint8_t *)buf[1] = *(const int64_t *)buf[0] < arg[0];
}

static void k_spin(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    const float *a = buf[0];
    float *const b = buf[1];

    (void)scratch;
    for (int64_t i = lo; i < hi; i++) {
        volatile float x = a[i];
        for (int64_t k = 0; k < arg[0]; k++)
            x = x * 1.0f;
        b[i] = x + 1;
    }
}

static void k_fill(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    (void)scratch;
    for (int64_t i = lo; i < hi; i++)
        ((int64_t *)buf[0])[i] = arg[0];
}

const hn_kernel_fn hm_kernels[HM_N] = {
    [HM_ADD] = k_add,   [HM_SCALE] = k_scale, [HM_NONZERO] = k_nonzero, [HM_IADD] = k_iadd,
    [HM_SUM] = k_sum,   [HM_FTZ] = k_ftz,     [HM_SCRATCH] = k_scratch, [HM_GATHER] = k_gather,
    [HM_LESS] = k_less, [HM_SPIN] = k_spin,   [HM_FILL] = k_fill,
};

/* ---- making ---- */
void hm_call(hn_pb *b, int kernel, const uint32_t *buf, uint32_t n_buf, const uint32_t *arg, uint32_t n_arg,
             uint32_t extent)
{
    static const char *const name[HM_N] = { "add",     "scale",  "nonzero", "iadd", "sum", "ftz",
                                            "scratch", "gather", "less",    "spin", "fill" };
    const hn_pb_call c = {
        .kernel = hn_pb_kernel(b, name[kernel], (uint64_t)kernel, n_buf, n_arg),
        .buf = buf,
        .n_buf = n_buf,
        .arg = arg,
        .n_arg = n_arg,
        .extent = extent,
        .trip_ps = hn_pb_const(b, 0),
        .scratch = HN_NO,
        .origin = name[kernel],
    };
    hn_pb_step_kernel(b, &c);
}

void hm_image(hn_test *t, hn_pb *b, hn_engine_writer *w, void **ret, size_t *ret_bytes)
{
    static const uint8_t code[64] = { 0xC3 }; /* kernels are functions; entries must still lie inside */
    hn_diag dg = { 0 };
    hn_plan plan;

    (void)t;
    CHECK_OK(hn_pb_finish(b, &plan, &dg), &dg);
    if (!w) CHECK_OK(hn_engine_writer_create(NULL, NULL, &w, &dg), &dg);
    CHECK_OK(hn_engine_writer_finish_memory(w, &plan, code, sizeof(code), "{\"made\": \"by hand\"}", ret,
                                            ret_bytes, &dg),
             &dg);
    hn_engine_writer_destroy(w);
}

hn_engine *hm_engine(hn_test *t, hn_pb *b, hn_device *d)
{
    const hn_engine_opts o = { .device = d, .fn = hm_kernels, .n_fn = HM_N };
    hn_diag dg = { 0 };
    hn_engine *e;
    void *data;
    size_t n;

    hm_image(t, b, NULL, &data, &n);
    CHECK_OK(hn_engine_from_memory(data, n, &o, &e, &dg), &dg);
    return e;
}

hn_context *hm_context(hn_engine *e, const hn_context_opts *o)
{
    hn_diag dg = { 0 };
    hn_context *c;

    CHECK_OK(hn_context_create(e, o, &c, &dg), &dg);
    return c;
}

/* ---- small models ---- */
#define R(buf) ((buf) | HN_ARG_READ)
#define W(buf) ((buf) | HN_ARG_WRITE)

hn_pb *hm_add_scale(hn_test *t)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t n = hn_pb_reg(b);
    const uint32_t x = hn_pb_input(b, "x", HN_F32, 1, &n), y = hn_pb_input(b, "y", HN_F32, 1, &n);
    const uint32_t z = hn_pb_output(b, "z", HN_F32, 1, &n);

    hn_pb_input_dim(b, n, x, 0);
    hn_pb_sym(b, "n", n, x, 0, 4);
    hn_pb_profile(b, &(hn_plan_bound){ 1, 64, 4096 });
    const uint32_t sum = hn_pb_arena_buf(b, "sum", hn_pb_calc(b, HN_S_MUL, n, hn_pb_const(b, 4), 0), 64);
    const uint32_t three = hn_pb_const(b, 3);
    hm_call(b, HM_ADD, (uint32_t[]){ R(hn_pb_io_buf(b, x)), R(hn_pb_io_buf(b, y)), W(sum) }, 3, NULL, 0, n);
    hm_call(b, HM_SCALE, (uint32_t[]){ R(sum), W(hn_pb_io_buf(b, z)) }, 2, &three, 1, n);
    return b;
}

hn_pb *hm_compact(hn_test *t)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t n = hn_pb_reg(b), one = hn_pb_const(b, 1), four = hn_pb_const(b, 4),
                   eight = hn_pb_const(b, 8);
    const uint32_t x = hn_pb_input(b, "x", HN_F32, 1, &n);
    const uint32_t k = hn_pb_var(b, 0), bytes = hn_pb_var(b, 0);
    const uint32_t out = hn_pb_output_grows(b, "out", HN_F32, 1, &k, bytes);
    const uint32_t xb = hn_pb_io_buf(b, x), ob = hn_pb_io_buf(b, out);

    hn_pb_input_dim(b, n, x, 0);
    hn_pb_sym(b, "n", n, x, 0, 4);
    const uint32_t at = hn_pb_arena_buf(b, "at", hn_pb_calc(b, HN_S_MUL, n, eight, 0), 64);
    const uint32_t count = hn_pb_arena_buf(b, "count", eight, 64);
    hm_call(b, HM_NONZERO, (uint32_t[]){ R(xb), W(at), W(count) }, 3, &n, 1, one);
    hn_pb_step_read_to(b, k, count, HN_NO, HN_I64);
    hn_pb_calc_to(b, bytes, HN_S_MUL, k, four, 0);
    hn_pb_step_alloc(b, &ob, 1);
    hm_call(b, HM_GATHER, (uint32_t[]){ R(xb), R(at), W(ob) }, 3, NULL, 0, k);
    return b;
}

hn_pb *hm_loop(hn_test *t)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t zero = hn_pb_const(b, 0), one = hn_pb_const(b, 1), five = hn_pb_const(b, 5),
                   eight = hn_pb_const(b, 8);
    const uint32_t trip_in = hn_pb_input(b, "trip", HN_I64, 0, NULL);
    const uint32_t iter = hn_pb_var(b, 0), size = hn_pb_var(b, 0);
    const uint32_t v = hn_pb_output(b, "v", HN_I64, 0, NULL);
    const uint32_t steps = hn_pb_output_grows(b, "steps", HN_I64, 1, &iter, size);
    const uint32_t in = hn_pb_arena_buf(b, "v_in", eight, 64), out = hn_pb_arena_buf(b, "v_out", eight, 64);
    const uint32_t sb = hn_pb_io_buf(b, steps);

    const uint32_t trip = hn_pb_step_read(b, hn_pb_io_buf(b, trip_in), HN_NO, HN_I64);
    hm_call(b, HM_FILL, (uint32_t[]){ W(in) }, 1, &zero, 1, one);
    hn_pb_step_alloc(b, &sb, 1);
    hn_pb_loop_begin(b, &(hn_pb_loop){ .trip = trip,
                                       .cond = HN_NO,
                                       .iter = iter,
                                       .iter_buf = HN_NO,
                                       .carry = (uint32_t[]){ in, out },
                                       .n_carry = 1,
                                       .origin = "loop" });
    hm_call(b, HM_IADD, (uint32_t[]){ R(in), W(out) }, 2, &five, 1, one);
    hn_pb_step_append(b, sb, out, eight);
    hn_pb_loop_end(b);
    hn_pb_step_copy(b, hn_pb_io_buf(b, v), HN_NO, in, HN_NO, eight);
    return b;
}
