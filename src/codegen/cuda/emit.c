/* Kernel IR to CUDA C: one statement a lane of each instruction, loops as loops. Vectors are named scalars, so
 * everything stays in registers and the compiler sees plain code. */
#include "codegen/cuda/cuda_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */
const char *hn_cu_type(int dtype)
{
    return dtype == HN_BOOL ? "bool" : hn_dtype_name((hn_dtype)dtype);
}

const char *hn_cu_value_type(const cu_emitter *e, int at)
{
    return e->narrow[at] ? "i32" : hn_cu_type(e->f->ins[at].dtype);
}

static void literal(const cu_emitter *e, int at, char *dst, size_t n)
{
    const hn_kins *x = &e->f->ins[at];
    const uint64_t bits = (uint64_t)x->imm;

    switch (x->dtype) {
    case HN_F32:
        snprintf(dst, n, "hn_f32(0x%08" PRIx32 "u)", (uint32_t)bits);
        break;
    case HN_F64:
        snprintf(dst, n, "hn_f64(0x%016" PRIx64 "ull)", bits);
        break;
    case HN_BOOL:
        snprintf(dst, n, "%s", bits ? "true" : "false");
        break;
    case HN_I64:
    case HN_U64:
        if (e->narrow[at]) snprintf(dst, n, "%" PRId64, x->imm);
        else snprintf(dst, n, "((%s)0x%" PRIx64 "ull)", hn_cu_type(x->dtype), bits);
        break;
    default:
        snprintf(dst, n, "((%s)0x%" PRIx32 "u)", hn_cu_type(x->dtype), (uint32_t)bits);
        break;
    }
}

const char *hn_cu_lane(cu_emitter *e, int at, int lane)
{
    const hn_kins *x = &e->f->ins[at];
    char *dst = e->name[e->n_name++ % HN_COUNT(e->name)];

    if (x->op == HN_KOP_CONST) literal(e, at, dst, sizeof(e->name[0]));
    else if (x->lanes > 1) snprintf(dst, sizeof(e->name[0]), "v%d_%d", at, lane);
    else snprintf(dst, sizeof(e->name[0]), "v%d", at);
    return dst;
}

void hn_cu_line(cu_emitter *e, const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start(ap, fmt);
    text = hn_arena_vprintf(e->arena, fmt, ap);
    va_end(ap);
    hn_str_addf(e->out, "%*s%s\n", 2 * e->depth, "", text ? text : "");
}

/* ---- loops ---- */
static void open_loop(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];
    const char *t = hn_cu_value_type(e, at);

    if (x->flags == HN_KFOR_UNROLL) hn_cu_line(e, "#pragma unroll");
    hn_cu_line(e, "for (%s v%d = %s; v%d < %s; v%d += %s) {", t, at, hn_cu_lane(e, x->a[0], 0), at,
               hn_cu_lane(e, x->a[1], 0), at, hn_cu_lane(e, x->a[2], 0));
    e->depth++;
}

/* Blocks count along x alone: x runs fastest in that number. */
static void open_block(cu_emitter *e, int at)
{
    static const char *const place[] = { "hn_block %% (u32)(%s)", "hn_block / (u32)hn_nx %% (u32)(%s)",
                                         "hn_block / (u32)hn_nx / (u32)hn_ny" };
    const hn_kins *x = &e->f->ins[at];
    const int axis = x->flags - HN_KFOR_BLOCK_X;
    char index[128];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(index, sizeof(index), place[axis], hn_cu_lane(e, x->a[1], 0));
#pragma GCC diagnostic pop
    hn_cu_line(e, "{ const %s v%d = (%s)(%s);", hn_cu_value_type(e, at), at, hn_cu_value_type(e, at), index);
    e->depth++;
}

static void open_threads(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];

    hn_cu_line(e, "{ const %s v%d = (%s)threadIdx.%c;", hn_cu_value_type(e, at), at, hn_cu_value_type(e, at),
               "xyz"[x->flags - HN_KFOR_THREAD_X]);
    e->depth++;
}

static void open_for(cu_emitter *e, int at)
{
    const int kind = e->f->ins[at].flags;

    if (kind >= HN_KFOR_THREAD_X) open_threads(e, at);
    else if (kind >= HN_KFOR_BLOCK_X) open_block(e, at);
    else open_loop(e, at);
}

/* ---- variables ---- */
static void variable(cu_emitter *e, int at)
{
    const int init = e->f->ins[at].a[0];
    const hn_kins *x = &e->f->ins[init];

    for (int i = 0; i < x->lanes; i++)
        hn_cu_line(e, "%s r%d_%d = %s;", hn_cu_type(x->dtype), at, i, hn_cu_lane(e, init, i));
}

static void set(cu_emitter *e, const hn_kins *x)
{
    const hn_kins *v = &e->f->ins[x->a[1]];

    /* lanes are read before any is written: the value may be made of this very variable only through GETs,
     * which are copies */
    for (int i = 0; i < v->lanes; i++)
        hn_cu_line(e, "r%d_%d = %s;", x->a[0], i, hn_cu_lane(e, x->a[1], i));
}

static void get(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];

    for (int i = 0; i < x->lanes; i++)
        hn_cu_line(e, "const %s %s = r%d_%d;", hn_cu_type(x->dtype), hn_cu_lane(e, at, i), x->a[0], i);
}

/* ---- instructions ---- */
static void emit_at(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];

    switch (x->op) {
    case HN_KOP_FOR:
        open_for(e, at);
        break;
    case HN_KOP_LOOP:
        hn_cu_line(e, "for (;;) {");
        e->depth++;
        break;
    case HN_KOP_IF:
        hn_cu_line(e, "if (%s) {", hn_cu_lane(e, x->a[0], 0));
        e->depth++;
        break;
    case HN_KOP_ELSE:
        e->depth--;
        hn_cu_line(e, "} else {");
        e->depth++;
        break;
    case HN_KOP_END:
        e->depth--;
        hn_cu_line(e, "}");
        break;
    case HN_KOP_BREAK_IF:
        hn_cu_line(e, "if (%s) break;", hn_cu_lane(e, x->a[0], 0));
        break;
    case HN_KOP_VAR:
        variable(e, at);
        break;
    case HN_KOP_SET:
        set(e, x);
        break;
    case HN_KOP_GET:
        get(e, at);
        break;
    case HN_KOP_BARRIER:
        hn_cu_line(e, "__syncthreads();");
        break;
    case HN_KOP_COPY:
        hn_cu_copy(e, x);
        break;
    case HN_KOP_COMMIT:
        hn_cu_line(e, "hn_commit();");
        break;
    case HN_KOP_DEPEND:
        hn_cu_line(e, "hn_depend();");
        break;
    case HN_KOP_AWAIT:
        hn_cu_line(e, "hn_await<%d>();", (int)x->imm);
        break;
    case HN_KOP_LDMATRIX:
        hn_cu_ldmatrix(e, at);
        break;
    case HN_KOP_MMA:
        hn_cu_mma(e, at);
        break;
    case HN_KOP_LOAD:
    case HN_KOP_GATHER:
        hn_cu_load(e, at);
        break;
    case HN_KOP_STORE:
    case HN_KOP_SCATTER:
        hn_cu_store(e, at);
        break;
    case HN_KOP_CONST:
    case HN_KOP_PREFETCH:
        break;
    case HN_KOP_ARG:
        hn_cu_line(e, "const %s v%d = (%s)a%d;", hn_cu_value_type(e, at), at, hn_cu_value_type(e, at), (int)x->imm);
        break;
    default:
        hn_cu_value(e, at);
        break;
    }
}

/* ---- the frame ---- */
static void extent_text(const hn_kext *x, char *dst, size_t n)
{
    int k = snprintf(dst, n, "((%" PRId64 "ll", x->mul);

    if (x->a >= 0) k += snprintf(dst + k, n - (size_t)k, " * a%d", x->a);
    if (x->b >= 0) k += snprintf(dst + k, n - (size_t)k, " * a%d", x->b);
    snprintf(dst + k, n - (size_t)k, " + %" PRId64 "ll) / %" PRId64 "ll)", x->add + (x->div > 1 ? x->div - 1 : 0),
             x->div > 1 ? x->div : 1);
}

static void parameters(cu_emitter *e)
{
    const char *comma = "";

    for (int i = 0; i < e->f->n_buf; i++) {
        const hn_kbuf *b = &e->f->buf[i];
        if (b->kind != HN_KBUF_PARAM) continue;
        hn_str_addf(e->out, "%s\n    %s%s *%sb%d", comma, b->flags & HN_KBUF_WRITE ? "" : "const ",
                    hn_cu_storage(b->dtype), b->flags & HN_KBUF_ALIAS ? "" : "__restrict__ ", i);
        comma = ",";
    }
    for (int i = 0; i < e->f->n_arg; i++) {
        hn_str_addf(e->out, "%s\n    const i64 a%d", comma, i);
        comma = ",";
    }
}

static void frame(cu_emitter *e)
{
    char nx[160], ny[160];
    const hn_kfunc *f = e->f;

    hn_str_addf(e->out, "extern \"C\" __global__ void __launch_bounds__(%d) " HN_CU_KERNEL_NAME "(",
                f->threads[0] * f->threads[1] * f->threads[2]);
    parameters(e);
    hn_str_add(e->out, ")\n{\n");
    e->depth = 1;
    extent_text(&f->grid[0], nx, sizeof(nx));
    extent_text(&f->grid[1], ny, sizeof(ny));
    hn_cu_line(e, "const u32 hn_block = blockIdx.x;");
    hn_cu_line(e, "const i64 hn_nx = %s, hn_ny = %s;", nx, ny);
    hn_cu_line(e, "(void)hn_block, (void)hn_nx, (void)hn_ny;");
}

static hone_status check(const hn_kfunc *f, hn_diag *dg)
{
    if (!hn_kfunc_is_gpu(f))
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "kernel \"%s\" has no threads: it is for the CPU", f->name);
    for (int i = 0; i < f->n_ins; i++)
        if (f->ins[i].op >= HN_KOP_SHFL_XOR && f->ins[i].op <= HN_KOP_LDMATRIX && f->threads[0] * f->threads[1] * f->threads[2] % 32)
            return HN_RAISE(dg, HONE_E_UNSUPPORTED, "kernel \"%s\" does with warps what its threads, which fill none, cannot", f->name);
    return HONE_OK;
}

/* The program itself waits for what precedes it. */
static bool says_when(const hn_kfunc *f)
{
    for (int i = 0; i < f->n_ins; i++)
        if (f->ins[i].op == HN_KOP_DEPEND) return true;
    return false;
}

hone_status hn_cu_emit(const hn_kfunc *f, hn_arena *a, hn_str *out, int64_t *ret_shared_bytes, hn_diag *dg)
{
    HN_TRY(check(f, dg));
    cu_emitter e = { .f = f, .arena = a, .out = out, .narrow = HN_NEW_N(a, bool, f->n_ins + 1) };
    if (!e.narrow || !hn_cu_find_narrow(f, a, e.narrow)) return HN_NOMEM(dg);
    hn_cu_tables(&e);
    frame(&e);
    *ret_shared_bytes = hn_cu_shared(&e);
    if (!says_when(f)) hn_str_add(out, "  hn_depend();\n"); /* before anything is read or written */
    for (int i = 0; i < f->n_ins; i++)
        emit_at(&e, i);
    hn_str_add(out, "}\n");
    return out->oom || hn_arena_oom(a) ? HN_NOMEM(dg) : HONE_OK;
}
