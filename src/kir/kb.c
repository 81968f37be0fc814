/* The builder: declarations, structure, memory. */
#include "kir/kir_int.h"

#include <stdio.h>
#include <string.h>

hn_kb *hn_kb_new(hn_arena *a, const char *name)
{
    hn_kb *b = HN_NEW(a, hn_kb);

    if (!b) return NULL;
    b->arena = a;
    b->name = hn_arena_strdup(a, name ? name : "");
    b->parallel_at = -1;
    b->parallel = hn_kext_const(1);
    for (int i = 0; i < 3; i++)
        b->grid[i] = hn_kext_const(1);
    return b;
}

void hn_kb_flag(hn_kb *b, hn_kfunc_flag flag)
{
    if (b) b->flags |= (uint32_t)flag;
}

void hn_kb_fail(hn_kb *b, const char *fmt, ...)
{
    va_list ap;

    if (!b || b->error[0]) return;
    va_start(ap, fmt);
    vsnprintf(b->error, sizeof(b->error), fmt, ap);
    va_end(ap);
}

hn_kfunc hn_kb_view(const hn_kb *b)
{
    hn_kfunc f = {
        .name = b->name,
        .flags = b->flags,
        .n_buf = b->buf.n,
        .n_arg = b->arg.n,
        .n_ins = b->ins.n,
        .n_pool = b->pool.n,
        .n_data = b->data.n,
        .n_names = b->names.n,
        .parallel_at = b->parallel_at,
        .parallel = b->parallel,
        .buf = b->buf.at,
        .arg = b->arg.at,
        .ins = b->ins.at,
        .pool = b->pool.at,
        .data = b->data.at,
        .names = b->names.at,
    };

    memcpy(f.grid, b->grid, sizeof(f.grid));
    memcpy(f.threads, b->threads, sizeof(f.threads));
    return f;
}

const hn_kins *hn_kb_ins(const hn_kb *b, hn_kv v)
{
    return b && v.at >= 0 && v.at < b->ins.n ? &b->ins.at[v.at] : NULL;
}

hn_ktype hn_ktype_make(hn_dtype t, int lanes)
{
    return (hn_ktype){ (uint8_t)t, (uint8_t)(lanes < 1 || lanes > HN_KIR_MAX_LANES ? 0 : lanes) };
}

hn_kins hn_kins_make(hn_kop op, hn_ktype t)
{
    return (hn_kins){ .op = (uint8_t)op, .dtype = t.dtype, .lanes = t.lanes, .a = { -1, -1, -1, -1, -1 } };
}

static void fail_types(hn_kb *b, const hn_kins *x, const char *wrong)
{
    char types[128] = "";
    size_t n = 0;

    for (int i = 0; i < 3 && n < sizeof(types); i++) {
        const hn_kins *o = hn_kb_ins(b, (hn_kv){ x->a[i] });
        if (o)
            n += (size_t)snprintf(types + n, sizeof(types) - n, " %sx%d", hn_dtype_name((hn_dtype)o->dtype),
                                  o->lanes);
    }
    hn_kb_fail(b, "%s to %sx%d of%s (instruction %d): %s", hn_kop_name(x->op),
               hn_dtype_name((hn_dtype)x->dtype), x->lanes, types, b->ins.n, wrong);
}

hn_kv hn_kb_emit(hn_kb *b, hn_kins x)
{
    if (!b || b->error[0]) return HN_KV_NONE;
    const hn_kfunc view = hn_kb_view(b);
    const char *wrong = hn_kir_check(&view, &x);
    if (wrong) {
        fail_types(b, &x, wrong);
        return HN_KV_NONE;
    }
    if (!hn_vec_push(b->arena, &b->ins, x)) return HN_KV_NONE;
    return (hn_kv){ b->ins.n - 1 };
}

hone_status hn_kb_finish(hn_kb *b, hn_kfunc *ret, hn_diag *dg)
{
    if (!b || hn_arena_oom(b->arena)) return HN_NOMEM(dg);
    if (!b->error[0] && b->depth)
        hn_kb_fail(b, "%d blocks are still open, the innermost a %s", b->depth,
                   hn_kop_name(b->ins.at[b->open[b->depth - 1]].op));
    if (b->error[0]) return HN_RAISE(dg, HONE_E_INTERNAL, "kernel \"%s\": %s", b->name, b->error);
    const hn_kfunc f = hn_kb_view(b);
    HN_TRY(hn_kfunc_verify(&f, dg));
    *ret = f;
    return HONE_OK;
}

/* ---- declarations ---- */
static int32_t add_name(hn_kb *b, const char *name)
{
    const int32_t at = b->names.n;

    for (const char *s = name ? name : ""; *s; s++)
        if (!hn_vec_push(b->arena, &b->names, *s)) return 0;
    return hn_vec_push(b->arena, &b->names, 0) ? at : 0;
}

static int add_buf(hn_kb *b, const char *name, hn_kbuf_kind kind, hn_dtype t, int flags, hn_kext elems)
{
    if (!b) return -1;
    const int bytes = hn_dtype_bits(t) / 8;
    if (bytes < 1 || (hn_kir_loaded((int)t) == (hn_dtype)t && !hn_kir_is_value_dtype((int)t)))
        hn_kb_fail(b, "buffer \"%s\" of dtype %s cannot be addressed; use u8", name ? name : "",
                   hn_dtype_name(t));
    const hn_kbuf x = { .name = add_name(b, name),
                        .kind = (uint8_t)kind,
                        .dtype = (uint8_t)t,
                        .flags = (uint8_t)flags,
                        .slot = kind == HN_KBUF_PARAM ? b->n_param++ : -1,
                        .align = kind == HN_KBUF_PARAM ? (bytes < 1 ? 1 : bytes) : 64,
                        .elems = elems };
    return hn_vec_push(b->arena, &b->buf, x) ? b->buf.n - 1 : -1;
}

int hn_kb_in(hn_kb *b, const char *name, hn_dtype t)
{
    return add_buf(b, name, HN_KBUF_PARAM, t, 0, hn_kext_const(0));
}

int hn_kb_out(hn_kb *b, const char *name, hn_dtype t)
{
    return add_buf(b, name, HN_KBUF_PARAM, t, HN_KBUF_WRITE, hn_kext_const(0));
}

int hn_kb_scratch(hn_kb *b, const char *name, hn_dtype t, hn_kext elems)
{
    return add_buf(b, name, HN_KBUF_SCRATCH, t, HN_KBUF_WRITE, elems);
}

int hn_kb_shared(hn_kb *b, const char *name, hn_dtype t, int64_t elems)
{
    return add_buf(b, name, HN_KBUF_SHARED, t, HN_KBUF_WRITE, hn_kext_const(elems));
}

int hn_kb_table(hn_kb *b, const char *name, hn_dtype t, const void *data, int64_t elems)
{
    if (!b) return -1;
    while (b->data.n % 64) /* vectors of it may be loaded aligned */
        if (!hn_vec_push(b->arena, &b->data, 0)) return -1;
    const int64_t at = b->data.n, bytes = elems * (hn_dtype_bits(t) / 8);
    for (int64_t i = 0; i < bytes; i++)
        if (!hn_vec_push(b->arena, &b->data, ((const uint8_t *)data)[i])) return -1;
    const int buf = add_buf(b, name, HN_KBUF_TABLE, t, 0, hn_kext_const(elems));
    if (buf >= 0) b->buf.at[buf].data = at;
    return buf;
}

static hn_kbuf *param(hn_kb *b, int buf)
{
    if (!b || buf < 0 || buf >= b->buf.n) {
        hn_kb_fail(b, "no buffer %d", buf);
        return NULL;
    }
    return &b->buf.at[buf];
}

void hn_kb_align(hn_kb *b, int buf, int align_bytes)
{
    hn_kbuf *x = param(b, buf);
    if (x && align_bytes > x->align) x->align = align_bytes;
}

void hn_kb_tail(hn_kb *b, int buf, int tail_bytes)
{
    hn_kbuf *x = param(b, buf);
    if (x) x->tail_bytes = tail_bytes;
}

void hn_kb_alias(hn_kb *b, int buf)
{
    hn_kbuf *x = param(b, buf);
    if (x) x->flags |= HN_KBUF_ALIAS;
}

hn_kv hn_kb_arg(hn_kb *b, const char *name, int64_t lo, int64_t hi, int64_t div)
{
    if (!b) return HN_KV_NONE;
    if (lo > hi || div < 1) hn_kb_fail(b, "argument \"%s\" has contradictory facts", name ? name : "");
    const hn_karg x = { .name = add_name(b, name), .lo = lo, .hi = hi, .div = div };
    if (!hn_vec_push(b->arena, &b->arg, x)) return HN_KV_NONE;
    if (lo == hi) return hn_kb_i(b, lo);
    hn_kins i = hn_kins_make(HN_KOP_ARG, hn_ktype_make(HN_I64, 1));
    i.imm = b->arg.n - 1;
    return hn_kb_emit(b, i);
}

int hn_kb_arg_no(const hn_kb *b, hn_kv arg)
{
    const hn_kins *x = hn_kb_ins(b, arg);
    return x && x->op == HN_KOP_ARG ? (int)x->imm : -1;
}

hn_kext hn_kb_ext(hn_kb *b, hn_kv v, int64_t div)
{
    int64_t n;

    if (hn_kb_is_const(b, v, &n)) return hn_kext_const(div > 1 ? (n + div - 1) / div : n);
    const int arg = hn_kb_arg_no(b, v);
    if (arg < 0) hn_kb_fail(b, "an extent is neither a constant nor an argument");
    return hn_kext_arg(arg < 0 ? 0 : arg, div);
}

/* ---- structure ---- */
static void open_block(hn_kb *b, hn_kv at)
{
    if (!hn_kv_is(at)) return;
    if (b->depth == HN_KIR_MAX_DEPTH)
        hn_kb_fail(b, "nested deeper than %d", HN_KIR_MAX_DEPTH);
    else
        b->open[b->depth++] = at.at;
}

hn_kv hn_kb_for_kind(hn_kb *b, hn_kfor kind, hn_kv lo, hn_kv hi, hn_kv step)
{
    hn_kins x = hn_kins_make(HN_KOP_FOR, hn_ktype_make(HN_I64, 1));

    x.flags = (uint8_t)kind;
    x.a[0] = lo.at;
    x.a[1] = hi.at;
    x.a[2] = step.at;
    const hn_kv v = hn_kb_emit(b, x);
    open_block(b, v);
    return v;
}

hn_kv hn_kb_extent_value(hn_kb *b, const hn_kext *e)
{
    hn_kv v = hn_kb_i(b, e->mul);

    for (int i = 0; i < 2; i++) {
        const int32_t arg = i ? e->b : e->a;
        if (arg < 0) continue;
        hn_kins x = hn_kins_make(HN_KOP_ARG, hn_ktype_make(HN_I64, 1));
        x.imm = arg;
        v = hn_kb_mul(b, v, hn_kb_emit(b, x));
    }
    v = hn_kb_addi(b, v, e->add);
    if (e->div <= 1) return v;
    return hn_kb_idiv(b, hn_kb_max(b, hn_kb_addi(b, v, e->div - 1), hn_kb_i(b, 0)), hn_kb_i(b, e->div));
}

hn_kv hn_kb_parallel(hn_kb *b, hn_kext extent)
{
    if (!b) return HN_KV_NONE;
    if (b->parallel_at >= 0 || b->depth) hn_kb_fail(b, "a parallel loop must be outermost and the only one");
    const hn_kv hi = hn_kb_extent_value(b, &extent);
    const hn_kv zero = hn_kb_i(b, 0), one = hn_kb_i(b, 1);
    if (b->error[0]) return HN_KV_NONE;
    b->parallel = extent;
    b->parallel_at = b->ins.n;
    return hn_kb_for_kind(b, HN_KFOR_PARALLEL, zero, hi, one);
}

hn_kv hn_kb_grid(hn_kb *b, int axis, hn_kext extent)
{
    if (!b || axis < 0 || axis > 2) return HN_KV_NONE;
    const hn_kv hi = hn_kb_extent_value(b, &extent);
    b->grid[axis] = extent;
    return hn_kb_for_kind(b, (hn_kfor)(HN_KFOR_BLOCK_X + axis), hn_kb_i(b, 0), hi, hn_kb_i(b, 1));
}

hn_kv hn_kb_threads(hn_kb *b, int axis, int64_t n)
{
    if (!b || axis < 0 || axis > 2) return HN_KV_NONE;
    if (n < 1 || n > 1024) hn_kb_fail(b, "%lld threads", (long long)n);
    for (int i = 0; i < 3; i++)
        if (!b->threads[i]) b->threads[i] = 1;
    b->threads[axis] = (int32_t)n;
    return hn_kb_for_kind(b, (hn_kfor)(HN_KFOR_THREAD_X + axis), hn_kb_i(b, 0), hn_kb_i(b, n), hn_kb_i(b, 1));
}

hn_kv hn_kb_for(hn_kb *b, hn_kv lo, hn_kv hi, int64_t step)
{
    if (step < 1) hn_kb_fail(b, "a loop step of %lld", (long long)step);
    return hn_kb_for_kind(b, HN_KFOR_SERIAL, lo, hi, hn_kb_i(b, step));
}

hn_kv hn_kb_each(hn_kb *b, hn_kv lo, hn_kv hi, int64_t step)
{
    return hn_kb_for_kind(b, HN_KFOR_EACH, lo, hi, hn_kb_i(b, step));
}

hn_kv hn_kb_forn(hn_kb *b, hn_kv n)
{
    return hn_kb_for(b, hn_kb_i(b, 0), n, 1);
}

hn_kv hn_kb_fori(hn_kb *b, int64_t n)
{
    return hn_kb_forn(b, hn_kb_i(b, n));
}

void hn_kb_loop(hn_kb *b)
{
    open_block(b, hn_kb_emit(b, hn_kins_make(HN_KOP_LOOP, (hn_ktype){ 0, 0 })));
}

static hn_kv emit1(hn_kb *b, hn_kop op, hn_ktype t, hn_kv x)
{
    hn_kins i = hn_kins_make(op, t);
    i.a[0] = x.at;
    return hn_kb_emit(b, i);
}

void hn_kb_break_if(hn_kb *b, hn_kv cond)
{
    emit1(b, HN_KOP_BREAK_IF, (hn_ktype){ 0, 0 }, cond);
}

void hn_kb_if(hn_kb *b, hn_kv cond)
{
    open_block(b, emit1(b, HN_KOP_IF, (hn_ktype){ 0, 0 }, cond));
}

void hn_kb_else(hn_kb *b)
{
    if (!b || b->error[0]) return;
    if (!b->depth || b->ins.at[b->open[b->depth - 1]].op != HN_KOP_IF) {
        hn_kb_fail(b, "else without if");
        return;
    }
    const hn_kv at = hn_kb_emit(b, hn_kins_make(HN_KOP_ELSE, (hn_ktype){ 0, 0 }));
    if (!hn_kv_is(at)) return;
    b->ins.at[b->open[b->depth - 1]].imm = at.at;
    b->open[b->depth - 1] = at.at;
}

void hn_kb_end(hn_kb *b)
{
    if (!b || b->error[0]) return;
    if (!b->depth) {
        hn_kb_fail(b, "end without a block");
        return;
    }
    hn_kins x = hn_kins_make(HN_KOP_END, (hn_ktype){ 0, 0 });
    x.imm = b->open[--b->depth];
    const hn_kv at = hn_kb_emit(b, x);
    if (hn_kv_is(at)) b->ins.at[x.imm].imm = at.at;
}

void hn_kb_barrier(hn_kb *b)
{
    hn_kb_emit(b, hn_kins_make(HN_KOP_BARRIER, (hn_ktype){ 0, 0 }));
}

static hn_kv shuffle(hn_kb *b, hn_kop op, hn_kv x, int imm)
{
    hn_kins i = hn_kins_make(op, hn_kb_type(b, x));

    i.a[0] = x.at;
    i.imm = imm;
    return hn_kb_emit(b, i);
}

hn_kv hn_kb_shfl_xor(hn_kb *b, hn_kv x, int mask)
{
    return shuffle(b, HN_KOP_SHFL_XOR, x, mask);
}

hn_kv hn_kb_shfl_down(hn_kb *b, hn_kv x, int distance)
{
    return shuffle(b, HN_KOP_SHFL_DOWN, x, distance);
}

void hn_kb_copy(hn_kb *b, int to, hn_kv to_index, int from, hn_kv from_index, int bytes, hn_kv mask)
{
    hn_kins i = hn_kins_make(HN_KOP_COPY, (hn_ktype){ 0, 0 });

    i.a[0] = to_index.at;
    i.a[1] = from_index.at;
    i.a[2] = mask.at;
    i.imm = (int64_t)from << 32 | to;
    i.flags = (uint8_t)bytes;
    hn_kb_emit(b, i);
}

void hn_kb_commit(hn_kb *b)
{
    hn_kb_emit(b, hn_kins_make(HN_KOP_COMMIT, (hn_ktype){ 0, 0 }));
}

void hn_kb_depend(hn_kb *b)
{
    hn_kb_emit(b, hn_kins_make(HN_KOP_DEPEND, (hn_ktype){ 0, 0 }));
}

void hn_kb_await(hn_kb *b, int groups)
{
    hn_kins i = hn_kins_make(HN_KOP_AWAIT, (hn_ktype){ 0, 0 });

    i.imm = groups;
    hn_kb_emit(b, i);
}

hn_kv hn_kb_mma(hn_kb *b, hn_dtype t, hn_kv x, hn_kv y, hn_kv acc)
{
    hn_kins i = hn_kins_make(HN_KOP_MMA, hn_kb_type(b, acc));

    i.a[0] = x.at;
    i.a[1] = y.at;
    i.a[2] = acc.at;
    i.flags = (uint8_t)t;
    return hn_kb_emit(b, i);
}

hn_kv hn_kb_ldmatrix(hn_kb *b, int buf, hn_kv index, int matrices, bool transposed)
{
    hn_kins i = hn_kins_make(HN_KOP_LDMATRIX, hn_ktype_make(HN_U32, matrices));

    i.a[0] = index.at;
    i.imm = buf;
    i.flags = transposed;
    return hn_kb_emit(b, i);
}

hn_kv hn_kb_exp2a(hn_kb *b, hn_kv x)
{
    return emit1(b, HN_KOP_EXP2A, hn_kb_type(b, x), x);
}

hn_kv hn_kb_rcpa(hn_kb *b, hn_kv x)
{
    return emit1(b, HN_KOP_RCPA, hn_kb_type(b, x), x);
}

/* ---- variables ---- */
hn_kvar hn_kb_var(hn_kb *b, hn_kv init)
{
    return (hn_kvar){ emit1(b, HN_KOP_VAR, (hn_ktype){ 0, 0 }, init).at };
}

hn_kv hn_kb_get(hn_kb *b, hn_kvar v)
{
    const hn_kins *x = hn_kb_ins(b, (hn_kv){ v.at });

    return emit1(b, HN_KOP_GET,
                 x && x->op == HN_KOP_VAR ? hn_kb_type(b, (hn_kv){ x->a[0] }) : (hn_ktype){ 0, 0 },
                 (hn_kv){ v.at });
}

void hn_kb_set(hn_kb *b, hn_kvar v, hn_kv x)
{
    hn_kins i = hn_kins_make(HN_KOP_SET, (hn_ktype){ 0, 0 });
    const hn_kins *var = hn_kb_ins(b, (hn_kv){ v.at });

    if (var && var->op == HN_KOP_VAR) x = hn_kb_splat(b, x, hn_kb_lanes(b, (hn_kv){ var->a[0] }));
    i.a[0] = v.at;
    i.a[1] = x.at;
    hn_kb_emit(b, i);
}

/* ---- memory ---- */
static hn_dtype loaded(hn_kb *b, int buf)
{
    const hn_kbuf *x = param(b, buf);
    return x ? hn_kir_loaded(x->dtype) : HN_NONE;
}

static hn_kv emit_read(hn_kb *b, hn_kop op, int buf, hn_kv index, hn_ktype t, hn_kv mask, int flags)
{
    hn_kins i = hn_kins_make(op, t);

    if (!b || !param(b, buf)) return HN_KV_NONE;
    i.a[0] = index.at;
    i.a[1] = mask.at;
    i.imm = buf;
    i.flags = (uint8_t)flags;
    return hn_kb_emit(b, i);
}

static void emit_write(hn_kb *b, hn_kop op, int buf, hn_kv index, hn_kv v, hn_kv mask, int flags)
{
    hn_kins i = hn_kins_make(op, (hn_ktype){ 0, 0 });

    if (!b || !param(b, buf)) return;
    i.a[0] = index.at;
    i.a[1] = v.at;
    i.a[2] = mask.at;
    i.imm = buf;
    i.flags = (uint8_t)flags;
    hn_kb_emit(b, i);
}

hn_kv hn_kb_load(hn_kb *b, int buf, hn_kv index, int lanes)
{
    return hn_kb_loadm(b, buf, index, lanes, HN_KV_NONE);
}

hn_kv hn_kb_loadm(hn_kb *b, int buf, hn_kv index, int lanes, hn_kv mask)
{
    if (!b) return HN_KV_NONE;
    return emit_read(b, HN_KOP_LOAD, buf, index, hn_ktype_make(loaded(b, buf), lanes), mask, 0);
}

hn_kv hn_kb_load_splat(hn_kb *b, int buf, hn_kv index, int lanes)
{
    return hn_kb_splat(b, hn_kb_load(b, buf, index, 1), lanes);
}

hn_kv hn_kb_load_as(hn_kb *b, int buf, hn_kv index, hn_dtype t, int lanes, hn_kv mask)
{
    if (!b) return HN_KV_NONE;
    return emit_read(b, HN_KOP_LOAD, buf, index, hn_ktype_make(t, lanes), mask, HN_KMEM_RAW);
}

hn_kv hn_kb_load_as_aligned(hn_kb *b, int buf, hn_kv index, hn_dtype t, int lanes)
{
    if (!b) return HN_KV_NONE;
    return emit_read(b, HN_KOP_LOAD, buf, index, hn_ktype_make(t, lanes), HN_KV_NONE, HN_KMEM_RAW | HN_KMEM_ALIGNED);
}

static hn_kv strided_index(hn_kb *b, hn_kv index, hn_kv stride, int lanes)
{
    int64_t s;

    if (hn_kb_is_const(b, stride, &s)) return hn_kb_ramp(b, index, s, lanes);
    return hn_kb_add(b, index, hn_kb_mul(b, hn_kb_ramp(b, hn_kb_i(b, 0), 1, lanes), stride));
}

hn_kv hn_kb_load_strided(hn_kb *b, int buf, hn_kv index, hn_kv stride, int lanes, hn_kv mask)
{
    int64_t s;
    const bool literal = hn_kb_is_const(b, stride, &s);

    if (lanes == 1 || (literal && s == 1)) return hn_kb_loadm(b, buf, index, lanes, mask);
    if (literal && s == 0 && !hn_kv_is(mask)) return hn_kb_load_splat(b, buf, index, lanes);
    return hn_kb_gather(b, buf, strided_index(b, index, stride, lanes), mask);
}

hn_kv hn_kb_gather(hn_kb *b, int buf, hn_kv index, hn_kv mask)
{
    if (!b) return HN_KV_NONE;
    return emit_read(b, HN_KOP_GATHER, buf, index, hn_ktype_make(loaded(b, buf), hn_kb_lanes(b, index)), mask,
                     0);
}

hn_kv hn_kb_load_aligned(hn_kb *b, int buf, hn_kv index, int lanes)
{
    if (!b) return HN_KV_NONE;
    return emit_read(b, HN_KOP_LOAD, buf, index, hn_ktype_make(loaded(b, buf), lanes), HN_KV_NONE, HN_KMEM_ALIGNED);
}

void hn_kb_store_aligned(hn_kb *b, int buf, hn_kv index, hn_kv v)
{
    emit_write(b, HN_KOP_STORE, buf, index, v, HN_KV_NONE, HN_KMEM_ALIGNED);
}

void hn_kb_store(hn_kb *b, int buf, hn_kv index, hn_kv v)
{
    emit_write(b, HN_KOP_STORE, buf, index, v, HN_KV_NONE, 0);
}

void hn_kb_storem(hn_kb *b, int buf, hn_kv index, hn_kv v, hn_kv mask)
{
    emit_write(b, HN_KOP_STORE, buf, index, v, mask, 0);
}

void hn_kb_store_as(hn_kb *b, int buf, hn_kv index, hn_kv v, hn_kv mask)
{
    emit_write(b, HN_KOP_STORE, buf, index, v, mask, HN_KMEM_RAW);
}

void hn_kb_store_stream(hn_kb *b, int buf, hn_kv index, hn_kv v)
{
    emit_write(b, HN_KOP_STORE, buf, index, v, HN_KV_NONE, HN_KMEM_STREAM);
}

void hn_kb_store_strided(hn_kb *b, int buf, hn_kv index, hn_kv stride, hn_kv v, hn_kv mask)
{
    const int lanes = hn_kb_lanes(b, v);
    int64_t s;

    if (lanes == 1 || (hn_kb_is_const(b, stride, &s) && s == 1))
        hn_kb_storem(b, buf, index, v, mask);
    else
        hn_kb_scatter(b, buf, strided_index(b, index, stride, lanes), v, mask);
}

void hn_kb_scatter(hn_kb *b, int buf, hn_kv index, hn_kv v, hn_kv mask)
{
    emit_write(b, HN_KOP_SCATTER, buf, index, v, mask, 0);
}

void hn_kb_prefetch(hn_kb *b, int buf, hn_kv index, int locality, bool for_write)
{
    hn_kins i = hn_kins_make(HN_KOP_PREFETCH, (hn_ktype){ 0, 0 });

    if (!b || !param(b, buf)) return;
    i.a[0] = index.at;
    i.imm = buf;
    i.flags = (uint8_t)((locality & 3) | (for_write ? 4 : 0));
    hn_kb_emit(b, i);
}

/* ---- ready-made loops ---- */
/* A trip count that is a known multiple of lanes needs no tail. */
static bool known_multiple(hn_kb *b, hn_kv lo, hn_kv hi, int lanes)
{
    int64_t l, h;
    const int arg = hn_kb_arg_no(b, hi);

    if (!hn_kb_is_const(b, lo, &l)) return false;
    if (hn_kb_is_const(b, hi, &h)) return h <= l || (h - l) % lanes == 0;
    return arg >= 0 && l % lanes == 0 && b->arg.at[arg].div % lanes == 0;
}

static void literal_tail(hn_kb *b, int64_t at, int64_t n, hn_ktail tail, hn_kb_body body, int lanes,
                         void *user)
{
    if (n > 1 && tail == HN_KTAIL_SCALAR) {
        body(b, hn_kb_each(b, hn_kb_i(b, at), hn_kb_i(b, at + n), 1), 1, HN_KV_NONE, user);
        hn_kb_end(b);
    } else if ((n & (n - 1)) == 0) { /* a narrower whole vector */
        body(b, hn_kb_i(b, at), (int)n, HN_KV_NONE, user);
    } else {
        body(b, hn_kb_i(b, at), lanes, hn_kb_tail_mask(b, hn_kb_i(b, at), hn_kb_i(b, at + n), lanes), user);
    }
}

static void literal_loop(hn_kb *b, int64_t lo, int64_t hi, int lanes, hn_ktail tail, hn_kb_body body,
                         void *user)
{
    const int64_t n = hi > lo ? hi - lo : 0, whole = n / lanes * lanes;

    if (whole == lanes) {
        body(b, hn_kb_i(b, lo), lanes, HN_KV_NONE, user);
    } else if (whole) {
        body(b, hn_kb_each(b, hn_kb_i(b, lo), hn_kb_i(b, lo + whole), lanes), lanes, HN_KV_NONE, user);
        hn_kb_end(b);
    }
    if (n > whole) literal_tail(b, lo + whole, n - whole, tail, body, lanes, user);
}

void hn_kb_vector_loop(hn_kb *b, hn_kv lo, hn_kv hi, int lanes, hn_ktail tail, hn_kb_body body, void *user)
{
    int64_t l, h;

    if (!b || b->error[0]) return;
    if (hn_kb_is_const(b, lo, &l) && hn_kb_is_const(b, hi, &h)) {
        literal_loop(b, l, h, lanes, tail, body, user);
        return;
    }
    if (known_multiple(b, lo, hi, lanes)) {
        body(b, hn_kb_each(b, lo, hi, lanes), lanes, HN_KV_NONE, user);
        hn_kb_end(b);
        return;
    }
    const hn_kv n = hn_kb_max(b, hn_kb_sub(b, hi, lo), hn_kb_i(b, 0));
    const hn_kv mid = hn_kb_add(b, lo, hn_kb_muli(b, hn_kb_idiv(b, n, hn_kb_i(b, lanes)), lanes));
    body(b, hn_kb_each(b, lo, mid, lanes), lanes, HN_KV_NONE, user);
    hn_kb_end(b);
    if (lanes == 1) return;
    if (tail == HN_KTAIL_SCALAR) {
        body(b, hn_kb_each(b, mid, hi, 1), 1, HN_KV_NONE, user);
    } else {
        hn_kb_if(b, hn_kb_lt(b, mid, hi));
        body(b, mid, lanes, hn_kb_tail_mask(b, mid, hi, lanes), user);
    }
    hn_kb_end(b);
}
