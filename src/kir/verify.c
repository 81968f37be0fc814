/* The rules: types of each operation, then scopes and nesting of the whole. */
#include "kir/kir_int.h"

bool hn_kir_is_value_dtype(int t)
{
    return t == HN_F32 || t == HN_F64 || t == HN_BOOL || (t >= HN_I64 && t <= HN_I8) ||
           (t >= HN_U64 && t <= HN_U8);
}

hn_dtype hn_kir_loaded(int storage)
{
    return storage == HN_F16 || storage == HN_BF16 ? HN_F32 : (hn_dtype)storage;
}

bool hn_kir_has_value(int op)
{
    return op == HN_KOP_FOR || op == HN_KOP_GET || op >= HN_KOP_CONST;
}

int hn_kir_n_operands(int op, int *ret_optional)
{
    *ret_optional = op == HN_KOP_STORE || op == HN_KOP_SCATTER || op == HN_KOP_LOAD || op == HN_KOP_GATHER || op == HN_KOP_COPY;
    switch (op) {
    case HN_KOP_LOOP:
    case HN_KOP_ELSE:
    case HN_KOP_END:
    case HN_KOP_BARRIER:
    case HN_KOP_COMMIT:
    case HN_KOP_AWAIT:
    case HN_KOP_DEPEND:
    case HN_KOP_CONST:
    case HN_KOP_ARG:
        return 0;
    case HN_KOP_FOR:
    case HN_KOP_FMA:
    case HN_KOP_SELECT:
    case HN_KOP_DOT4:
    case HN_KOP_DOT2:
    case HN_KOP_DOT2BF:
    case HN_KOP_MMA:
        return 3;
    case HN_KOP_COPY:
    case HN_KOP_SET:
    case HN_KOP_STORE:
    case HN_KOP_SCATTER:
    case HN_KOP_INSERT:
    case HN_KOP_SHUFFLE:
    case HN_KOP_MADDUBS:
        return 2;
    default:
        break;
    }
    if (op >= HN_KOP_ADD && op <= HN_KOP_MAXR) return 2;
    if (op >= HN_KOP_AND && op <= HN_KOP_XOR) return 2;
    if (op == HN_KOP_SHL || op == HN_KOP_SHR || op == HN_KOP_MULHI) return 2;
    if (op >= HN_KOP_EQ && op <= HN_KOP_GE) return 2;
    return 1;
}

static bool same(hn_ktype a, hn_ktype b)
{
    return a.dtype == b.dtype && a.lanes == b.lanes;
}

static bool is(hn_ktype a, int dtype, int lanes)
{
    return a.dtype == dtype && a.lanes == lanes;
}

static bool is_int(int dtype)
{
    return hn_dtype_is_int((hn_dtype)dtype);
}

static bool is_float(int dtype)
{
    return dtype == HN_F32 || dtype == HN_F64;
}

static int value_bits(hn_ktype t)
{
    return (t.dtype == HN_BOOL ? 1 : hn_dtype_bits((hn_dtype)t.dtype)) * t.lanes;
}

static const char *check_arith(int op, hn_ktype t, const hn_ktype *o)
{
    if (!same(t, o[0])) return "the result is not like the operands";
    if (op != HN_KOP_NEG && op != HN_KOP_ABS && op != HN_KOP_NOT && (op < HN_KOP_SQRT || op > HN_KOP_TRUNC) &&
        op != HN_KOP_CLZ && op != HN_KOP_POPCNT && !same(o[0], o[1]))
        return "the operands differ in type";
    if (op == HN_KOP_FMA)
        return !same(o[0], o[2])    ? "the addend differs in type"
               : !is_float(t.dtype) ? "fma takes floats"
                                    : NULL;
    if (op >= HN_KOP_AND && op <= HN_KOP_NOT)
        return is_float(t.dtype) ? "bit operations take integers or bool" : NULL;
    if (t.dtype == HN_BOOL) return "arithmetic on bool";
    if (op == HN_KOP_REM || op >= HN_KOP_SHL) return is_float(t.dtype) ? "takes integers" : NULL;
    if (op >= HN_KOP_SQRT && op <= HN_KOP_TRUNC) return is_float(t.dtype) ? NULL : "takes floats";
    return NULL;
}

static const char *check_select(hn_ktype t, const hn_ktype *o)
{
    if (o[0].dtype != HN_BOOL) return "the condition is not bool";
    if (o[0].lanes != 1 && o[0].lanes != t.lanes) return "the condition has other lanes";
    return same(t, o[1]) && same(t, o[2]) ? NULL : "the alternatives differ in type";
}

static const char *check_memory(const hn_kfunc *f, const hn_kins *x, const hn_ktype *o)
{
    const bool writes = x->op == HN_KOP_STORE || x->op == HN_KOP_SCATTER;
    const bool indexed = x->op == HN_KOP_GATHER || x->op == HN_KOP_SCATTER;
    const hn_ktype v = writes ? o[1] : (hn_ktype){ x->dtype, x->lanes };
    const int mask = writes ? 2 : 1;

    if (x->imm < 0 || x->imm >= f->n_buf) return "no such buffer";
    const hn_kbuf *b = &f->buf[x->imm];
    if (x->op == HN_KOP_PREFETCH) return is(o[0], HN_I64, 1) ? NULL : "the index is not i64";
    if (indexed && ((o[0].dtype != HN_I64 && o[0].dtype != HN_I32) || o[0].lanes != v.lanes))
        return "the index is not an i32 or i64 vector of the value's lanes";
    if (!indexed && !is(o[0], HN_I64, 1)) return "the index is not an i64 scalar";
    if (x->a[mask] >= 0 && !is(o[mask], HN_BOOL, v.lanes)) return "the mask is not bool of the value's lanes";
    if (writes && !(b->flags & HN_KBUF_WRITE)) return "the buffer is read-only";
    if (x->flags & HN_KMEM_RAW) return v.dtype == HN_BOOL ? "raw access as bool" : NULL;
    return v.dtype == hn_kir_loaded(b->dtype) ? NULL : "the value's dtype is not the buffer's";
}

static const char *check_cast(hn_ktype t, hn_ktype o, int op)
{
    if (op == HN_KOP_CAST) return t.lanes == o.lanes ? NULL : "the lanes differ";
    if (t.dtype == HN_BOOL || o.dtype == HN_BOOL) return "bitcast of bool";
    return value_bits(t) == value_bits(o) ? NULL : "the sizes differ";
}

static const char *check_half(const hn_kins *x, hn_ktype o)
{
    if (x->flags != HN_F16 && x->flags != HN_BF16) return "the half dtype is not f16 or bf16";
    if (x->lanes != o.lanes) return "the lanes differ";
    if (x->op == HN_KOP_UNHALF)
        return o.dtype == HN_U16 && x->dtype == HN_F32 ? NULL : "takes u16, yields f32";
    return o.dtype == HN_F32 && x->dtype == HN_U16 ? NULL : "takes f32, yields u16";
}

static const char *check_shuffle(const hn_kfunc *f, const hn_kins *x, const hn_ktype *o)
{
    if (!same(o[0], o[1]) || o[0].dtype != x->dtype) return "the operands differ in type";
    if (x->imm < 0 || x->imm > f->n_pool - x->lanes) return "the lane list is out of range";
    for (int i = 0; i < x->lanes; i++)
        if (f->pool[x->imm + i] < 0 || f->pool[x->imm + i] >= 2 * o[0].lanes) return "a lane is out of range";
    return NULL;
}

static const char *check_lanes(const hn_kfunc *f, const hn_kins *x, const hn_ktype *o)
{
    const hn_ktype t = { x->dtype, x->lanes };

    switch (x->op) {
    case HN_KOP_SPLAT:
        return is(o[0], t.dtype, 1) ? NULL : "takes a scalar of the result's dtype";
    case HN_KOP_RAMP:
        return is(o[0], t.dtype, 1) && is_int(t.dtype) ? NULL
                                                       : "takes an integer scalar of the result's dtype";
    case HN_KOP_EXTRACT:
        if (!is(t, o[0].dtype, 1)) return "yields a scalar of the operand's dtype";
        return x->imm >= 0 && x->imm < o[0].lanes ? NULL : "the lane is out of range";
    case HN_KOP_INSERT:
        if (!same(t, o[0]) || !is(o[1], t.dtype, 1)) return "takes a vector and a scalar of its dtype";
        return x->imm >= 0 && x->imm < o[0].lanes ? NULL : "the lane is out of range";
    case HN_KOP_SHUFFLE:
        return check_shuffle(f, x, o);
    default:
        return "unknown";
    }
}

static const char *check_reduce(const hn_kins *x, hn_ktype o)
{
    if (x->lanes != 1 || x->dtype != o.dtype) return "yields a scalar of the operand's dtype";
    if (o.lanes & (o.lanes - 1)) return "the lane count is not a power of two";
    if ((x->op == HN_KOP_RAND || x->op == HN_KOP_ROR) != (o.dtype == HN_BOOL))
        return "bool where numbers are due, or the reverse";
    return NULL;
}

static const char *check_dot(const hn_kins *x, const hn_ktype *o)
{
    const int n = x->lanes;

    switch (x->op) {
    case HN_KOP_DOT4:
        return is(o[0], HN_I32, n) && x->dtype == HN_I32 && is(o[1], HN_U8, 4 * n) && is(o[2], HN_I8, 4 * n)
                   ? NULL
                   : "takes i32xN, u8x4N, i8x4N";
    case HN_KOP_DOT2:
        return is(o[0], HN_I32, n) && x->dtype == HN_I32 && is(o[1], HN_I16, 2 * n) && is(o[2], HN_I16, 2 * n)
                   ? NULL
                   : "takes i32xN, i16x2N, i16x2N";
    case HN_KOP_MADDUBS:
        return x->dtype == HN_I16 && is(o[0], HN_U8, 2 * n) && is(o[1], HN_I8, 2 * n) ? NULL
                                                                                      : "takes u8x2N, i8x2N";
    default:
        return is(o[0], HN_F32, n) && x->dtype == HN_F32 && is(o[1], HN_U16, 2 * n) && is(o[2], HN_U16, 2 * n)
                   ? NULL
                   : "takes f32xN, u16x2N, u16x2N";
    }
}

static const hn_kbuf *buffer(const hn_kfunc *f, int64_t at, int kind)
{
    return at >= 0 && at < f->n_buf && f->buf[at].kind == kind ? &f->buf[at] : NULL;
}

static const char *check_copy(const hn_kfunc *f, const hn_kins *x, const hn_ktype *o)
{
    if (!buffer(f, x->imm & 0xffffffff, HN_KBUF_SHARED) || !buffer(f, x->imm >> 32, HN_KBUF_PARAM))
        return "copies go from a parameter to shared memory";
    if (x->flags != 4 && x->flags != 8 && x->flags != 16) return "copies are of 4, 8 or 16 bytes";
    if (!is(o[0], HN_I64, 1) || !is(o[1], HN_I64, 1)) return "an index is not an i64 scalar";
    return x->a[2] < 0 || is(o[2], HN_BOOL, 1) ? NULL : "the mask is not a bool scalar";
}

/* What a warp does together, shuffles apart. */
static const char *check_matrix(const hn_kfunc *f, const hn_kins *x, const hn_ktype *o)
{
    const int acc = x->flags == HN_I8 || x->flags == HN_U8 ? HN_I32 : HN_F32;

    if (x->op == HN_KOP_LDMATRIX) {
        if (!buffer(f, x->imm, HN_KBUF_SHARED)) return "matrices lie in shared memory";
        if (x->dtype != HN_U32 || (x->lanes != 1 && x->lanes != 2 && x->lanes != 4)) return "yields u32 x 1, 2 or 4";
        return is(o[0], HN_I64, 1) ? NULL : "the index is not i64";
    }
    if (x->flags != HN_F16 && x->flags != HN_BF16 && x->flags != HN_F32 && x->flags != HN_I8 && x->flags != HN_U8)
        return "the element type is not f16, bf16, f32, i8 or u8";
    return is(o[0], HN_U32, 4) && is(o[1], HN_U32, 2) && is(o[2], acc, 4) && same(o[2], (hn_ktype){ x->dtype, x->lanes })
               ? NULL
               : "takes u32x4, u32x2 and f32x4, or i32x4 for bytes";
}

static const char *check_state(const hn_kfunc *f, const hn_kins *x, const hn_ktype *o)
{
    const hn_ktype t = { x->dtype, x->lanes };

    switch (x->op) {
    case HN_KOP_FOR:
        if (x->flags > HN_KFOR_THREAD_Z) return "unknown kind of loop";
        if (!is(o[0], HN_I64, 1) || !is(o[1], HN_I64, 1) || !is(o[2], HN_I64, 1))
            return "bounds and step are not i64";
        if (x->flags == HN_KFOR_UNROLL || x->flags >= HN_KFOR_THREAD_X)
            for (int i = 0; i < 3; i++)
                if (f->ins[x->a[i]].op != HN_KOP_CONST) return "bounds and step must be literals";
        return is(t, HN_I64, 1) ? NULL : "the index is not i64";
    case HN_KOP_IF:
    case HN_KOP_BREAK_IF:
        return is(o[0], HN_BOOL, 1) ? NULL : "the condition is not a bool scalar";
    case HN_KOP_VAR:
        return NULL;
    case HN_KOP_GET:
        return same(t, o[0]) ? NULL : "the result is not like the variable";
    case HN_KOP_SET:
        return same(o[0], o[1]) ? NULL : "the value is not like the variable";
    case HN_KOP_ARG:
        return x->imm >= 0 && x->imm < f->n_arg && is(t, HN_I64, 1) ? NULL : "no such argument";
    default:
        return NULL;
    }
}

/* Operand types, or what is wrong with the operand list itself. A VAR answers with its initial value's type.
 */
static const char *operands(const hn_kfunc *f, const hn_kins *x, hn_ktype o[5])
{
    int optional, n = hn_kir_n_operands(x->op, &optional);

    for (int i = 0; i < 5; i++) {
        o[i] = (hn_ktype){ 0, 0 };
        if (x->a[i] < 0 && i < n) return "an operand is missing";
        if (x->a[i] >= 0 && i >= n + optional) return "one operand too many";
        if (x->a[i] < 0) continue;
        if (x->a[i] >= f->n_ins) return "an operand does not exist";
        const hn_kins *y = &f->ins[x->a[i]];
        const bool want_var = (x->op == HN_KOP_GET || x->op == HN_KOP_SET) && i == 0;
        if (want_var != (y->op == HN_KOP_VAR))
            return want_var ? "not a variable" : "a variable used as a value";
        if (y->op == HN_KOP_VAR && (y->a[0] < 0 || y->a[0] >= f->n_ins)) return "an operand does not exist";
        if (!want_var && !hn_kir_has_value(y->op)) return "an operand has no value";
        if (want_var) y = &f->ins[y->a[0]];
        o[i] = (hn_ktype){ y->dtype, y->lanes };
    }
    return NULL;
}

const char *hn_kir_check(const hn_kfunc *f, const hn_kins *x)
{
    const hn_ktype t = { x->dtype, x->lanes };
    hn_ktype o[5];
    const char *wrong;

    if (hn_kop_name(x->op)[0] == '?') return "unknown operation";
    if ((wrong = operands(f, x, o))) return wrong;
    if (hn_kir_has_value(x->op) &&
        (!hn_kir_is_value_dtype(t.dtype) || t.lanes < 1 || t.lanes > HN_KIR_MAX_LANES))
        return "the result type is not one to compute with";
    if (x->op < HN_KOP_STORE || x->op == HN_KOP_CONST || x->op == HN_KOP_ARG) return check_state(f, x, o);
    if (x->op == HN_KOP_BARRIER || x->op == HN_KOP_COMMIT || x->op == HN_KOP_DEPEND) return NULL;
    if (x->op == HN_KOP_AWAIT) return x->imm >= 0 && x->imm < 8 ? NULL : "the number of groups is not within 0 .. 7";
    if (x->op == HN_KOP_COPY) return check_copy(f, x, o);
    if (x->op <= HN_KOP_GATHER) return check_memory(f, x, o);
    if (x->op <= HN_KOP_MULHI) return check_arith(x->op, t, o);
    if (x->op <= HN_KOP_GE)
        return !same(o[0], o[1])            ? "the operands differ in type"
               : is(t, HN_BOOL, o[0].lanes) ? NULL
                                            : "yields bool";
    if (x->op == HN_KOP_SELECT) return check_select(t, o);
    if (x->op <= HN_KOP_BITCAST) return check_cast(t, o[0], x->op);
    if (x->op == HN_KOP_UNHALF || x->op == HN_KOP_HALF) return check_half(x, o[0]);
    if (x->op <= HN_KOP_SHUFFLE) return check_lanes(f, x, o);
    if (x->op <= HN_KOP_ROR) return check_reduce(x, o[0]);
    if (x->op <= HN_KOP_DOT2BF) return check_dot(x, o);
    if (x->op >= HN_KOP_EXP2A) return same(t, o[0]) && t.dtype == HN_F32 ? NULL : "takes and yields f32";
    if (x->op >= HN_KOP_MMA) return check_matrix(f, x, o);
    if (x->imm < 0 || x->imm > 31) return "the distance is not within a warp";
    return same(t, o[0]) ? NULL : "the result is not like the operand";
}

/* ---- the whole program ---- */
typedef struct scopes {
    const hn_kfunc *f;
    int32_t open[HN_KIR_MAX_DEPTH];
    int depth;
    int32_t *block; /* of each instruction: the innermost block open when it ran, -1 at top level */
} scopes;

static bool visible(const scopes *s, int32_t at)
{
    const int32_t block = s->block[at];

    if (block < 0) return true;
    for (int i = 0; i < s->depth; i++)
        if (s->open[i] == block) return true;
    return false;
}

static bool in_loop(const scopes *s)
{
    for (int i = s->depth - 1; i >= 0; i--) {
        const hn_kins *x = &s->f->ins[s->open[i]];
        if (x->op == HN_KOP_LOOP) return true;
        if (x->op == HN_KOP_FOR) return x->flags == HN_KFOR_SERIAL || x->flags == HN_KFOR_UNROLL;
    }
    return false;
}

static bool opens(int op)
{
    return op == HN_KOP_FOR || op == HN_KOP_LOOP || op == HN_KOP_IF || op == HN_KOP_ELSE;
}

static bool is_thread_loop(const hn_kins *x)
{
    return x->op == HN_KOP_FOR && x->flags >= HN_KFOR_THREAD_X;
}

static bool is_concurrent(const hn_kins *x)
{
    return x->op == HN_KOP_FOR &&
           (x->flags == HN_KFOR_PARALLEL || x->flags == HN_KFOR_EACH || x->flags >= HN_KFOR_BLOCK_X);
}

static bool in_threads(const scopes *s)
{
    for (int i = 0; i < s->depth; i++)
        if (is_thread_loop(&s->f->ins[s->open[i]])) return true;
    return false;
}

/* Block loops stand outermost, thread loops inside them and in each other, each axis once, nothing but ends
 * after them. */
static const char *check_gpu_loop(const scopes *s, int at)
{
    const hn_kins *x = &s->f->ins[at];
    const bool thread = is_thread_loop(x);
    const int axis = x->flags - (thread ? HN_KFOR_THREAD_X : HN_KFOR_BLOCK_X);

    for (int i = 0; i < s->depth; i++) {
        const hn_kins *outer = &s->f->ins[s->open[i]];
        if (outer->op != HN_KOP_FOR || outer->flags < HN_KFOR_BLOCK_X || (!thread && is_thread_loop(outer)))
            return "a block or thread loop inside another kind of block";
        if (outer->flags == x->flags) return "an axis has two loops";
    }
    if (s->f->threads[0] < 1 || s->f->threads[1] < 1 || s->f->threads[2] < 1) return "no thread counts";
    if (s->f->ins[x->a[0]].op != HN_KOP_CONST || s->f->ins[x->a[0]].imm != 0 ||
        s->f->ins[x->a[2]].op != HN_KOP_CONST || s->f->ins[x->a[2]].imm != 1)
        return "a block or thread loop counts from 0 by 1";
    if (thread && s->f->ins[x->a[1]].imm != s->f->threads[axis])
        return "a thread loop is not as long as stated";
    if (thread && s->depth && is_thread_loop(&s->f->ins[s->open[s->depth - 1]]) &&
        s->f->ins[x->imm + 1].op != HN_KOP_END)
        return "code after an inner thread loop";
    return NULL;
}

/* Iterations that run at the same time, or in another process, cannot hand values on. */
static const char *check_set(const scopes *s, const hn_kins *x)
{
    if (x->op != HN_KOP_SET) return NULL;
    for (int i = s->depth - 1; i >= 0 && s->open[i] != s->block[x->a[0]]; i--)
        if (is_concurrent(&s->f->ins[s->open[i]]))
            return "a variable set across a parallel, each, block or thread loop";
    return NULL;
}

static const char *check_nesting(scopes *s, int at)
{
    const hn_kins *x = &s->f->ins[at];
    const int32_t top = s->depth ? s->open[s->depth - 1] : -1;

    if (x->op == HN_KOP_BREAK_IF) return in_loop(s) ? NULL : "break outside a serial loop";
    if (x->op == HN_KOP_ELSE || x->op == HN_KOP_END) {
        if (top < 0) return "nothing to close";
        if (x->op == HN_KOP_ELSE && s->f->ins[top].op != HN_KOP_IF) return "else without if";
        if (s->f->ins[top].imm != at) return "a block's end is elsewhere";
        if (x->op == HN_KOP_END && x->imm != top) return "an end closes another block";
        s->depth--;
    }
    if (!opens(x->op)) return NULL;
    if (s->depth == HN_KIR_MAX_DEPTH) return "nested too deep";
    if (x->op == HN_KOP_FOR && x->flags == HN_KFOR_PARALLEL && (s->depth || at != s->f->parallel_at))
        return "a parallel loop must be outermost and the only one";
    if (x->imm <= at || x->imm >= s->f->n_ins) return "a block has no end";
    if (x->op == HN_KOP_FOR && x->flags >= HN_KFOR_BLOCK_X) {
        const char *wrong =
            x->imm + 1 < s->f->n_ins || !s->depth ? check_gpu_loop(s, at) : "a block has no end";
        if (wrong) return wrong;
    }
    s->open[s->depth++] = at;
    return NULL;
}

/* With a parallel loop, code outside it runs once a call, so it must not be seen from outside. */
static const char *check_effects(const scopes *s, const hn_kins *x)
{
    if (((x->op >= HN_KOP_BARRIER && x->op <= HN_KOP_DEPEND) || hn_kir_by_warp(x->op)) && !in_threads(s))
        return "outside a thread loop";
    if (s->f->threads[0] && (x->op == HN_KOP_STORE || x->op == HN_KOP_SCATTER) && !in_threads(s))
        return "a store outside the thread loop";
    if (s->f->parallel_at < 0 || (x->op != HN_KOP_STORE && x->op != HN_KOP_SCATTER)) return NULL;
    if (s->f->buf[x->imm].kind == HN_KBUF_SCRATCH) return NULL;
    for (int i = 0; i < s->depth; i++)
        if (s->open[i] == s->f->parallel_at) return NULL;
    return "a store outside the parallel loop";
}

static hone_status at_fault(const hn_kfunc *f, int at, const char *wrong, hn_diag *dg)
{
    return HN_RAISE(dg, HONE_E_INTERNAL, "kernel \"%s\", instruction %%%d (%s): %s", f->name ? f->name : "",
                    at, hn_kop_name(f->ins[at].op), wrong);
}

static bool ext_ok(const hn_kfunc *f, const hn_kext *e)
{
    return e->a >= -1 && e->a < f->n_arg && e->b >= -1 && e->b < f->n_arg && e->div >= 1;
}

static bool name_ok(const hn_kfunc *f, int32_t name)
{
    return name >= 0 && name < f->n_names && f->names[f->n_names - 1] == 0;
}

static const char *check_buffers(const hn_kfunc *f)
{
    int slot = 0;

    for (int i = 0; i < f->n_buf; i++) {
        const hn_kbuf *b = &f->buf[i];
        if (!name_ok(f, b->name)) return "a buffer has no name";
        if (b->kind > HN_KBUF_SHARED) return "a buffer has an unknown kind";
        if (hn_dtype_bits((hn_dtype)b->dtype) < 8 ||
            (b->dtype != HN_F16 && b->dtype != HN_BF16 && !hn_kir_is_value_dtype(b->dtype)))
            return "a buffer's dtype cannot be addressed";
        if (b->align < 1 || (b->align & (b->align - 1)) || b->tail_bytes < 0)
            return "a buffer's facts are wrong";
        if (b->kind == HN_KBUF_SCRATCH && f->threads[0]) return "scratch in a gpu program";
        if (b->kind == HN_KBUF_PARAM && b->slot != slot++) return "parameter slots are out of order";
        if (b->kind != HN_KBUF_PARAM && !ext_ok(f, &b->elems)) return "a buffer's extent is wrong";
        if (b->kind != HN_KBUF_TABLE) continue;
        if (b->elems.a >= 0 || b->elems.b >= 0 || b->elems.mul < 0 || b->data < 0 ||
            b->elems.mul > f->n_data ||
            b->data + b->elems.mul * hn_dtype_bits((hn_dtype)b->dtype) / 8 > f->n_data)
            return "a table lies outside the data";
    }
    return NULL;
}

static const char *check_frame(const hn_kfunc *f)
{
    const char *wrong = check_buffers(f);

    if (wrong) return wrong;
    for (int i = 0; i < f->n_arg; i++)
        if (!name_ok(f, f->arg[i].name) || f->arg[i].lo > f->arg[i].hi || f->arg[i].div < 1)
            return "an argument's facts are wrong";
    for (int i = 0; i < 3; i++)
        if (!ext_ok(f, &f->grid[i]) || f->threads[i] < 0 || f->threads[i] > 1024)
            return "the launch shape is wrong";
    if ((int64_t)f->threads[0] * f->threads[1] * f->threads[2] > 1024)
        return "more than 1,024 threads in a block";
    if (f->parallel_at < -1 || f->parallel_at >= f->n_ins || !ext_ok(f, &f->parallel))
        return "the parallel extent is wrong";
    if (f->parallel_at >= 0 &&
        (f->ins[f->parallel_at].op != HN_KOP_FOR || f->ins[f->parallel_at].flags != HN_KFOR_PARALLEL))
        return "the parallel loop is not where it is said to be";
    return NULL;
}

static hone_status verify_at(scopes *s, int at, hn_diag *dg)
{
    const hn_kins *x = &s->f->ins[at];
    const char *wrong = hn_kir_check(s->f, x);

    for (int i = 0; i < 5 && !wrong; i++) {
        if (x->a[i] >= at)
            wrong = "an operand comes later";
        else if (x->a[i] >= 0 && !visible(s, x->a[i]))
            wrong = "an operand is out of scope";
    }
    if (!wrong) wrong = check_nesting(s, at);
    if (!wrong) wrong = check_effects(s, x);
    if (!wrong) wrong = check_set(s, x);
    if (wrong) return at_fault(s->f, at, wrong, dg);
    s->block[at] = s->depth ? s->open[s->depth - 1] : -1;
    return HONE_OK;
}

hone_status hn_kfunc_verify(const hn_kfunc *f, hn_diag *dg)
{
    const char *wrong = check_frame(f);
    hn_arena *tmp;
    hone_status s = HONE_OK;

    if (wrong) return HN_RAISE(dg, HONE_E_INTERNAL, "kernel \"%s\": %s", f->name ? f->name : "", wrong);
    if (!(tmp = hn_arena_create())) return HN_NOMEM(dg);
    scopes sc = { .f = f, .block = HN_NEW_N(tmp, int32_t, f->n_ins + 1) };
    if (!sc.block) s = HN_NOMEM(dg);
    for (int i = 0; i < f->n_ins && s == HONE_OK; i++)
        s = verify_at(&sc, i, dg);
    if (s == HONE_OK && sc.depth) s = at_fault(f, sc.open[sc.depth - 1], "the block is never closed", dg);
    hn_arena_destroy(tmp);
    return s;
}
