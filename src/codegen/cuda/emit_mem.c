/* Loads, stores, tables and shared memory as CUDA C. */
#include "codegen/cuda/cuda_int.h"

#include <inttypes.h>

/* More than this has to be asked for at launch. */
enum { STATIC_SHARED_BYTES = 48 << 10, SHARED_ALIGN = 16 };

const char *hn_cu_storage(int dtype)
{
    if (dtype == HN_F16 || dtype == HN_BF16) return "u16";
    return dtype == HN_BOOL ? "u8" : hn_dtype_name((hn_dtype)dtype);
}

static int bytes_of(int dtype)
{
    return hn_dtype_bits((hn_dtype)dtype) / 8;
}

/* ---- tables and shared arrays ---- */
void hn_cu_tables(cu_emitter *e)
{
    for (int i = 0; i < e->f->n_buf; i++) {
        const hn_kbuf *b = &e->f->buf[i];
        if (b->kind != HN_KBUF_TABLE) continue;
        const int64_t n = b->elems.mul * bytes_of(b->dtype);
        hn_str_addf(e->out, "static __device__ const __align__(16) u8 t%d[] = {", i);
        for (int64_t k = 0; k < n; k++)
            hn_str_addf(e->out, "%s%d,", k % 32 ? "" : "\n  ", e->f->data[b->data + k]);
        hn_str_add(e->out, n ? "\n};\n" : "0};\n");
    }
}

static int64_t shared_bytes(const hn_kbuf *b)
{
    const int64_t n = hn_kext_eval(&b->elems, NULL) * bytes_of(b->dtype);
    return (n + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
}

int64_t hn_cu_shared(cu_emitter *e)
{
    int64_t total = 0, at = 0;

    for (int i = 0; i < e->f->n_buf; i++) {
        const hn_kbuf *b = &e->f->buf[i];
        if (b->kind == HN_KBUF_SHARED) total += shared_bytes(b);
        if (b->kind == HN_KBUF_TABLE)
            hn_cu_line(e, "const %s *const b%d = (const %s *)t%d;", hn_cu_storage(b->dtype), i, hn_cu_storage(b->dtype), i);
    }
    const bool dynamic = total > STATIC_SHARED_BYTES;
    if (total && dynamic) hn_cu_line(e, "extern __shared__ __align__(%d) u8 hn_shared[];", SHARED_ALIGN);
    if (total && !dynamic) hn_cu_line(e, "__shared__ __align__(%d) u8 hn_shared[%" PRId64 "];", SHARED_ALIGN, total);
    for (int i = 0; i < e->f->n_buf; i++) {
        const hn_kbuf *b = &e->f->buf[i];
        if (b->kind != HN_KBUF_SHARED) continue;
        hn_cu_line(e, "%s *const b%d = (%s *)(hn_shared + %" PRId64 ");", hn_cu_storage(b->dtype), i,
                   hn_cu_storage(b->dtype), at);
        at += shared_bytes(b);
    }
    return dynamic ? total : 0;
}

/* ---- addresses ---- */
/* Address of one lane; RAW lanes follow each other in units of their own type. */
static const char *address(cu_emitter *e, const hn_kins *x, int value_type, int lane)
{
    const bool list = x->op == HN_KOP_GATHER || x->op == HN_KOP_SCATTER;
    const char *index = hn_cu_lane(e, x->a[0], list ? lane : 0);
    const int b = (int)x->imm;

    if (x->flags & HN_KMEM_RAW)
        return hn_arena_printf(e->arena, "(u8 *)(b%d + %s) + %d", b, index, lane * bytes_of(value_type));
    return lane && !list ? hn_arena_printf(e->arena, "b%d + %s + %d", b, index, lane)
                         : hn_arena_printf(e->arena, "b%d + %s", b, index);
}

static const char *from_storage(cu_emitter *e, int storage, const char *p)
{
    switch (storage) {
    case HN_F16:
        return hn_arena_printf(e->arena, "hn_from_f16(%s)", p);
    case HN_BF16:
        return hn_arena_printf(e->arena, "hn_from_bf16(%s)", p);
    case HN_BOOL:
        return hn_arena_printf(e->arena, "(%s != 0)", p);
    default:
        return p;
    }
}

static const char *to_storage(cu_emitter *e, int storage, const char *v)
{
    switch (storage) {
    case HN_F16:
        return hn_arena_printf(e->arena, "hn_to_f16(%s)", v);
    case HN_BF16:
        return hn_arena_printf(e->arena, "hn_to_bf16(%s)", v);
    case HN_BOOL:
        return hn_arena_printf(e->arena, "(u8)(%s)", v);
    default:
        return v;
    }
}

static const char *mask_of(cu_emitter *e, int mask, int lane)
{
    return hn_cu_lane(e, mask, e->f->ins[mask].lanes > 1 ? lane : 0);
}

/* "a" where the program promises alignment: no run-time test. */
static const char *aligned(const hn_kins *x)
{
    return x->flags & HN_KMEM_ALIGNED ? "a" : "";
}

/* A run without mask, as one piece where it lies so. */
static bool is_run(const hn_kins *x, int mask, int lanes)
{
    return lanes > 1 && mask < 0 && !(x->flags & HN_KMEM_RAW) && (x->op == HN_KOP_LOAD || x->op == HN_KOP_STORE);
}

/* ---- loads ---- */
static void load_run(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];
    const int storage = e->f->buf[x->imm].dtype;

    hn_cu_line(e, "%s w%d[%d];", hn_cu_storage(storage), at, x->lanes);
    hn_cu_line(e, "hn_vload%s<%d>(w%d, b%d + %s);", aligned(x), x->lanes, at, (int)x->imm, hn_cu_lane(e, x->a[0], 0));
    for (int i = 0; i < x->lanes; i++)
        hn_cu_line(e, "const %s %s = %s;", hn_cu_type(x->dtype), hn_cu_lane(e, at, i),
                   from_storage(e, storage, hn_arena_printf(e->arena, "w%d[%d]", at, i)));
}

void hn_cu_load(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];
    const char *t = hn_cu_type(x->dtype);

    if (is_run(x, x->a[1], x->lanes)) {
        load_run(e, at);
        return;
    }
    for (int i = 0; i < x->lanes; i++) {
        const char *p = address(e, x, x->dtype, i);
        const char *v = x->flags & HN_KMEM_RAW
                            ? hn_arena_printf(e->arena, "hn_raw%s<%s>(%s)", aligned(x), t, p)
                            : from_storage(e, e->f->buf[x->imm].dtype, hn_arena_printf(e->arena, "*(%s)", p));
        if (x->a[1] < 0) hn_cu_line(e, "const %s %s = %s;", t, hn_cu_lane(e, at, i), v);
        else hn_cu_line(e, "const %s %s = %s ? %s : (%s)0;", t, hn_cu_lane(e, at, i), mask_of(e, x->a[1], i), v, t);
    }
}

/* ---- stores ---- */
static void store_run(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];
    const int storage = e->f->buf[x->imm].dtype, lanes = e->f->ins[x->a[1]].lanes;

    hn_cu_line(e, "%s w%d[%d];", hn_cu_storage(storage), at, lanes);
    for (int i = 0; i < lanes; i++)
        hn_cu_line(e, "w%d[%d] = %s;", at, i, to_storage(e, storage, hn_cu_lane(e, x->a[1], i)));
    hn_cu_line(e, "hn_vstore%s<%d>(b%d + %s, w%d);", aligned(x), lanes, (int)x->imm, hn_cu_lane(e, x->a[0], 0), at);
}

void hn_cu_store(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at], *v = &e->f->ins[x->a[1]];

    if (is_run(x, x->a[2], v->lanes)) {
        store_run(e, at);
        return;
    }
    for (int i = 0; i < v->lanes; i++) {
        const char *p = address(e, x, v->dtype, i);
        const char *s =
            x->flags & HN_KMEM_RAW
                ? hn_arena_printf(e->arena, "hn_raw_put<%s>(%s, %s)", hn_cu_type(v->dtype), p, hn_cu_lane(e, x->a[1], i))
                : hn_arena_printf(e->arena, "*(%s) = %s", p,
                                  to_storage(e, e->f->buf[x->imm].dtype, hn_cu_lane(e, x->a[1], i)));
        if (x->a[2] < 0) hn_cu_line(e, "%s;", s);
        else hn_cu_line(e, "if (%s) %s;", mask_of(e, x->a[2], i), s);
    }
}

/* ---- copies to shared memory, matrices from it ---- */
void hn_cu_copy(cu_emitter *e, const hn_kins *x)
{
    hn_cu_line(e, "hn_copy<%d>(b%d + %s, b%d + %s, %s);", x->flags, (int)(x->imm & 0xffffffff), hn_cu_lane(e, x->a[0], 0),
               (int)(x->imm >> 32), hn_cu_lane(e, x->a[1], 0), x->a[2] < 0 ? "true" : hn_cu_lane(e, x->a[2], 0));
}

void hn_cu_ldmatrix(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];

    hn_cu_line(e, "u32 w%d[%d];", at, x->lanes);
    hn_cu_line(e, "hn_ldmatrix%s(w%d, b%d + %s);", x->flags ? "_t" : "", at, (int)x->imm, hn_cu_lane(e, x->a[0], 0));
    for (int i = 0; i < x->lanes; i++)
        hn_cu_line(e, "const u32 %s = w%d[%d];", hn_cu_lane(e, at, i), at, i);
}
