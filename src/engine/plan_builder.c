/* Appenders with interning. Lifetimes and placement are in plan_finish.c. */
#include "engine/plan_builder.h"

#include <string.h>

#include "core/core.h"
#include "engine/plan_builder_int.h"

/* ---- interning ---- */
static void index_put(hn_pb_index *x, uint64_t hash, uint32_t at)
{
    uint32_t i = (uint32_t)hash & (x->cap - 1);
    while (x->slot[i])
        i = (i + 1) & (x->cap - 1);
    x->slot[i] = at + 1, x->hash[i] = hash;
}

static void index_grow(hn_pb *b, hn_pb_index *x)
{
    const hn_pb_index old = *x;

    x->cap = old.cap ? 2 * old.cap : 64;
    x->slot = HN_NEW_N(b->arena, uint32_t, x->cap);
    x->hash = HN_NEW_N(b->arena, uint64_t, x->cap);
    if (!x->slot || !x->hash) {
        *x = old;
        return;
    }
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.slot[i]) index_put(x, old.hash[i], old.slot[i] - 1);
}

static void index_add(hn_pb *b, hn_pb_index *x, uint64_t hash, uint32_t at)
{
    if (2 * (x->n + 1) > x->cap) index_grow(b, x);
    if (2 * x->n >= x->cap) return; /* out of memory: an entry is merely not shared */
    index_put(x, hash, at);
    x->n++;
}

/* Walk the entries with this hash; HN_NO at the end. *cursor starts at 0. */
static uint32_t index_next(const hn_pb_index *x, uint64_t hash, uint32_t *cursor)
{
    while (x->cap && *cursor < x->cap) {
        const uint32_t i = ((uint32_t)hash + (*cursor)++) & (x->cap - 1);
        if (!x->slot[i]) return HN_NO;
        if (x->hash[i] == hash) return x->slot[i] - 1;
    }
    return HN_NO;
}

/* ---- making ---- */
hn_pb *hn_pb_new(hn_arena *a)
{
    hn_pb *const b = HN_NEW(a, hn_pb);

    if (!b) return NULL;
    b->arena = a;
    b->depth = -1;
    hn_vec_push(a, &b->string, '\0');
    return b;
}

void hn_pb_target(hn_pb *b, uint32_t arch, uint64_t feat)
{
    b->target_arch = arch, b->target_feat = feat;
}

uint32_t hn_pb_str(hn_pb *b, const char *s)
{
    if (!s || !*s) return 0;
    const size_t n = strlen(s) + 1;
    const uint64_t hash = hn_hash64(s, n, 0);
    uint32_t cursor = 0, at;

    while ((at = index_next(&b->strings, hash, &cursor)) != HN_NO)
        if (strcmp(b->string.at + at, s) == 0) return at;
    at = (uint32_t)b->string.n;
    for (size_t i = 0; i < n; i++)
        if (!hn_vec_push(b->arena, &b->string, s[i])) return 0;
    index_add(b, &b->strings, hash, at);
    return at;
}

/* ---- registers ---- */
static uint32_t reg_new(hn_pb *b, int64_t init, hn_pb_reg_kind kind)
{
    const hn_pb_reg_info r = { init, kind };
    if (!hn_vec_push(b->arena, &b->reg, r)) return 0;
    return (uint32_t)b->reg.n - 1;
}

static hn_pb_reg_kind kind_of(const hn_pb *b, uint32_t r)
{
    return r < (uint32_t)b->reg.n ? b->reg.at[r].kind : REG_BAD;
}

uint32_t hn_pb_const(hn_pb *b, int64_t v)
{
    const uint64_t hash = hn_hash64(&v, sizeof(v), 1);
    uint32_t cursor = 0, at;

    while ((at = index_next(&b->consts, hash, &cursor)) != HN_NO)
        if (b->reg.at[at].init == v) return at;
    at = reg_new(b, v, REG_CONST);
    index_add(b, &b->consts, hash, at);
    return at;
}

uint32_t hn_pb_reg(hn_pb *b)
{
    return reg_new(b, 0, REG_FRESH);
}

uint32_t hn_pb_var(hn_pb *b, int64_t init)
{
    return reg_new(b, init, REG_VAR);
}

bool hn_pb_in_prefix(const hn_pb *b, uint32_t reg)
{
    const hn_pb_reg_kind k = kind_of(b, reg);
    return k == REG_CONST || k == REG_PREFIX;
}

/* ---- shape program ---- */
static int64_t floordiv(int64_t x, int64_t y)
{
    const int64_t q = x / y;
    return q - (x % y != 0 && (x < 0) != (y < 0));
}

/* False where the runtime would trap or the operation is no arithmetic: such instructions are kept. */
static bool fold(hn_sop op, int64_t x, int64_t y, int64_t z, int64_t *ret)
{
    const bool div_ok = y != 0 && !(x == INT64_MIN && y == -1);

    switch (op) {
    case HN_S_MOVE: *ret = x; return true;
    case HN_S_ADD: return !__builtin_add_overflow(x, y, ret);
    case HN_S_SUB: return !__builtin_sub_overflow(x, y, ret);
    case HN_S_MUL: return !__builtin_mul_overflow(x, y, ret);
    case HN_S_FLOORDIV: return div_ok ? *ret = floordiv(x, y), true : false;
    case HN_S_CEILDIV: return div_ok ? *ret = floordiv(x, y) + (x % y != 0), true : false;
    case HN_S_MOD: return div_ok ? *ret = x - y * floordiv(x, y), true : false;
    case HN_S_MIN: *ret = x < y ? x : y; return true;
    case HN_S_MAX: *ret = x > y ? x : y; return true;
    case HN_S_EQ: *ret = x == y; return true;
    case HN_S_LT: *ret = x < y; return true;
    case HN_S_SELECT: *ret = x ? y : z; return true;
    default: return false;
    }
}

static bool is_const(const hn_pb *b, uint32_t r, int64_t v)
{
    return kind_of(b, r) == REG_CONST && b->reg.at[r].init == v;
}

/* x+0, x*1, x/1 and their mirror images; HN_NO when nothing simpler is known. */
static uint32_t simpler(const hn_pb *b, hn_sop op, uint32_t x, uint32_t y)
{
    switch (op) {
    case HN_S_MOVE: return x;
    case HN_S_ADD: return is_const(b, y, 0) ? x : is_const(b, x, 0) ? y : HN_NO;
    case HN_S_SUB: return is_const(b, y, 0) ? x : HN_NO;
    case HN_S_MUL: return is_const(b, y, 1) ? x : is_const(b, x, 1) ? y : HN_NO;
    case HN_S_FLOORDIV:
    case HN_S_CEILDIV: return is_const(b, y, 1) ? x : HN_NO;
    case HN_S_MIN:
    case HN_S_MAX: return x == y ? x : HN_NO;
    default: return HN_NO;
    }
}

static int n_operands(hn_sop op)
{
    return op == HN_S_INPUT_DIM ? 0 : op == HN_S_MOVE ? 1 : op == HN_S_SELECT ? 3 : 2;
}

static bool known_early(const hn_pb *b, hn_sop op, const uint32_t operand[3])
{
    for (int i = 0; i < n_operands(op); i++)
        if (!hn_pb_in_prefix(b, operand[i])) return false;
    return true;
}

static void bad(hn_pb *b, const char *what)
{
    if (!b->misuse) b->misuse = what;
}

static hn_step *step_new(hn_pb *b, hn_step_kind kind, const char *origin)
{
    const hn_step s = { .kind = kind, .origin = hn_pb_str(b, origin) };

    b->shape_open = kind == HN_STEP_SHAPE;
    if (!hn_vec_push(b->arena, &b->step, s)) return &b->spare;
    return &b->step.at[b->step.n - 1];
}

/* Append to the SHAPE step that stands last, or start one. */
static void segment_push(hn_pb *b, hn_sinst x)
{
    const int at = b->segment.n;

    if (!hn_vec_push(b->arena, &b->segment, x)) return;
    if (!b->shape_open)
        step_new(b, HN_STEP_SHAPE, NULL)->u.shape.first = (uint32_t)at; /* counted from the segments' start */
    if (b->step.n > 0) b->step.at[b->step.n - 1].u.shape.n++;
}

static uint64_t inst_hash(const hn_sinst *x)
{
    const uint32_t key[] = { x->op, x->a, x->b, x->c };
    return hn_hash64(key, sizeof(key), 2);
}

static uint32_t prefix_calc(hn_pb *b, hn_sinst x)
{
    const uint64_t hash = inst_hash(&x);
    uint32_t cursor = 0, at;

    while ((at = index_next(&b->insts, hash, &cursor)) != HN_NO) {
        const hn_sinst *y = &b->prefix.at[at];
        if (y->op == x.op && y->a == x.a && y->b == x.b && y->c == x.c) return y->dst;
    }
    x.dst = reg_new(b, 0, REG_PREFIX);
    if (!hn_vec_push(b->arena, &b->prefix, x)) return 0;
    index_add(b, &b->insts, hash, (uint32_t)b->prefix.n - 1);
    return x.dst;
}

uint32_t hn_pb_calc(hn_pb *b, hn_sop op, uint32_t x, uint32_t y, uint32_t z)
{
    const uint32_t operand[] = { x, y, z };
    const int n = n_operands(op);
    int64_t v[3] = { 0, 0, 0 }, r;
    int n_const = 0;

    for (int i = 0; i < n; i++) {
        if (kind_of(b, operand[i]) == REG_FRESH) bad(b, "a register is read before it is written");
        if (kind_of(b, operand[i]) == REG_CONST) v[n_const++] = b->reg.at[operand[i]].init;
    }
    if (n_const == n && fold(op, v[0], v[1], v[2], &r)) return hn_pb_const(b, r);
    const uint32_t s = simpler(b, op, x, y);
    if (s != HN_NO && (op != HN_S_MOVE || hn_pb_in_prefix(b, x))) return s;

    hn_sinst inst = { op, 0, x, n > 1 ? y : 0, n > 2 ? z : 0 };
    if (known_early(b, op, operand)) return prefix_calc(b, inst);
    inst.dst = hn_pb_var(b, 0);
    segment_push(b, inst);
    return inst.dst;
}

void hn_pb_calc_to(hn_pb *b, uint32_t dst, hn_sop op, uint32_t x, uint32_t y, uint32_t z)
{
    const uint32_t operand[] = { x, y, z };
    const hn_sinst inst = { op, dst, x, n_operands(op) > 1 ? y : 0, n_operands(op) > 2 ? z : 0 };

    if (kind_of(b, dst) == REG_VAR) {
        segment_push(b, inst);
    } else if (kind_of(b, dst) == REG_FRESH && known_early(b, op, operand)) {
        b->reg.at[dst].kind = REG_PREFIX;
        hn_vec_push(b->arena, &b->prefix, inst);
    } else {
        bad(b, "a register that only shapes decide is written twice or while running");
    }
}

void hn_pb_input_dim(hn_pb *b, uint32_t dst, uint32_t io, uint32_t axis)
{
    const hn_sinst inst = { HN_S_INPUT_DIM, dst, io, axis, 0 };

    if (kind_of(b, dst) != REG_FRESH) {
        bad(b, "a register that only shapes decide is written twice");
        return;
    }
    b->reg.at[dst].kind = REG_PREFIX;
    hn_vec_push(b->arena, &b->prefix, inst);
}

void hn_pb_check(hn_pb *b, hn_sop op, uint32_t x, uint32_t y, const char *what)
{
    const uint32_t operand[] = { x, y, 0 };
    const hn_sinst inst = { op, 0, x, y, hn_pb_str(b, what) };

    if (b->depth < 0 && known_early(b, op, operand))
        hn_vec_push(b->arena, &b->prefix, inst);
    else
        segment_push(b, inst); /* a block that does not run fails nothing */
}

/* ---- buffers ---- */
static uint32_t buf_new(hn_pb *b, hn_plan_buf x, const char *name)
{
    x.name = hn_pb_str(b, name);
    if (!hn_vec_push(b->arena, &b->buf, x)) return 0;
    return (uint32_t)b->buf.n - 1;
}

uint32_t hn_pb_arena_buf(hn_pb *b, const char *name, uint32_t size, uint32_t align)
{
    return buf_new(b,
                   (hn_plan_buf){ .kind = HN_BUF_ARENA,
                                  .size = size,
                                  .align = HN_MAX(align, 64u),
                                  .ref = HN_NO,
                                  .offset_reg = HN_NO },
                   name);
}

uint32_t hn_pb_heap_buf(hn_pb *b, const char *name, uint32_t size)
{
    return buf_new(
        b, (hn_plan_buf){ .kind = HN_BUF_HEAP, .size = size, .align = 64, .ref = HN_NO, .offset_reg = HN_NO },
        name);
}

uint32_t hn_pb_fault_buf(hn_pb *b)
{
    return buf_new(b,
                   (hn_plan_buf){ .kind = HN_BUF_FAULT,
                                  .size = hn_pb_const(b, HN_FAULT_BYTES),
                                  .align = 64,
                                  .ref = HN_NO,
                                  .offset_reg = HN_NO },
                   "indices out of range");
}

bool hn_pb_is_arena(const hn_pb *b, uint32_t buf)
{
    return buf < (uint32_t)b->buf.n && b->buf.at[buf].kind == HN_BUF_ARENA;
}

uint32_t hn_pb_part(hn_pb *b, const char *name, uint32_t parent, uint32_t offset, uint32_t size)
{
    if (parent >= (uint32_t)b->buf.n) {
        bad(b, "a part of no buffer");
        return 0;
    }
    if (offset == HN_NO) offset = hn_pb_const(b, 0);
    const hn_plan_buf *p = &b->buf.at[parent];
    if (p->kind == HN_BUF_PART) {
        offset = hn_pb_calc(b, HN_S_ADD, p->offset_reg, offset, 0);
        parent = p->ref;
    }
    return buf_new(
        b,
        (hn_plan_buf){ .kind = HN_BUF_PART, .size = size, .align = 1, .ref = parent, .offset_reg = offset },
        name);
}

uint32_t hn_pb_weight_buf(hn_pb *b, const char *name, uint32_t weight, uint64_t bytes)
{
    return buf_new(b,
                   (hn_plan_buf){ .kind = HN_BUF_WEIGHT,
                                  .size = hn_pb_const(b, (int64_t)bytes),
                                  .align = 64,
                                  .ref = weight,
                                  .offset_reg = HN_NO },
                   name);
}

/* ---- I/O ---- */
static uint32_t io_new(hn_pb *b, const char *name, uint32_t flags, uint32_t dtype, uint32_t rank,
                       const uint32_t *dim)
{
    hn_plan_io x = { .name = hn_pb_str(b, name), .flags = flags, .dtype = dtype, .rank = rank };

    if (rank > HN_PLAN_MAX_RANK) {
        bad(b, "a rank above the largest");
        return 0;
    }
    for (uint32_t k = 0; k < rank; k++)
        x.dim[k] = dim[k];
    x.buf = buf_new(b,
                    (hn_plan_buf){ .kind = flags == HN_IO_INPUT ? HN_BUF_INPUT : HN_BUF_OUTPUT,
                                   .size = HN_NO,
                                   .align = 1,
                                   .ref = (uint32_t)b->io.n,
                                   .offset_reg = HN_NO },
                    name);
    if (!hn_vec_push(b->arena, &b->io, x)) return 0;
    return (uint32_t)b->io.n - 1;
}

uint32_t hn_pb_input(hn_pb *b, const char *name, uint32_t dtype, uint32_t rank, const uint32_t *dim)
{
    return io_new(b, name, HN_IO_INPUT, dtype, rank, dim);
}

void hn_pb_input_hint(hn_pb *b, uint32_t io, uint32_t hint)
{
    if (io < (uint32_t)b->io.n) b->io.at[io].hint = hint;
}

uint32_t hn_pb_output(hn_pb *b, const char *name, uint32_t dtype, uint32_t rank, const uint32_t *dim)
{
    return io_new(b, name, HN_IO_OUTPUT, dtype, rank, dim);
}

uint32_t hn_pb_output_grows(hn_pb *b, const char *name, uint32_t dtype, uint32_t rank, const uint32_t *dim,
                            uint32_t size)
{
    const uint32_t io = io_new(b, name, HN_IO_OUTPUT, dtype, rank, dim);

    if (hn_arena_oom(b->arena) || io >= (uint32_t)b->io.n) return 0;
    b->buf.at[b->io.at[io].buf].size = size;
    b->buf.at[b->io.at[io].buf].flags = HN_BUF_GROWS;
    return io;
}

uint32_t hn_pb_io_buf(hn_pb *b, uint32_t io)
{
    return io < (uint32_t)b->io.n ? b->io.at[io].buf : 0;
}

uint32_t hn_pb_sym(hn_pb *b, const char *name, uint32_t reg, uint32_t io, uint32_t axis, int64_t usual)
{
    const hn_plan_sym x = { hn_pb_str(b, name), reg, io, axis, usual };
    if (!hn_vec_push(b->arena, &b->sym, x)) return 0;
    return (uint32_t)b->sym.n - 1;
}

void hn_pb_profile(hn_pb *b, const hn_plan_bound *bound)
{
    for (int i = 0; i < b->sym.n; i++)
        hn_vec_push(b->arena, &b->bound, bound[i]);
    b->n_profile++;
}

/* ---- kernels and steps ---- */
uint32_t hn_pb_kernel(hn_pb *b, const char *name, uint64_t entry, uint32_t n_buf, uint32_t n_arg)
{
    const hn_plan_kernel x = { .entry = entry, .n_buf = n_buf, .n_arg = n_arg, .name = hn_pb_str(b, name) };
    const uint64_t hash = hn_hash64(&entry, sizeof(entry), 3);
    uint32_t cursor = 0, at;

    while ((at = index_next(&b->kernels, hash, &cursor)) != HN_NO) {
        const hn_plan_kernel *k = &b->kernel.at[at];
        if (k->entry == entry && k->n_buf == n_buf && k->n_arg == n_arg) return at;
    }
    if (!hn_vec_push(b->arena, &b->kernel, x)) return 0;
    index_add(b, &b->kernels, hash, (uint32_t)b->kernel.n - 1);
    return (uint32_t)b->kernel.n - 1;
}

static uint32_t list_add(hn_pb *b, const uint32_t *x, uint32_t n)
{
    const uint32_t first = (uint32_t)b->list.n;
    for (uint32_t i = 0; i < n; i++)
        hn_vec_push(b->arena, &b->list, x[i]);
    return first;
}

void hn_pb_step_kernel(hn_pb *b, const hn_pb_call *c)
{
    const uint32_t buf = list_add(b, c->buf, c->n_buf), arg = list_add(b, c->arg, c->n_arg);
    hn_step *const s = step_new(b, HN_STEP_KERNEL, c->origin);

    s->u.kernel.kernel = c->kernel;
    s->u.kernel.buf = buf, s->u.kernel.n_buf = c->n_buf;
    s->u.kernel.arg = arg, s->u.kernel.n_arg = c->n_arg;
    s->u.kernel.extent = c->extent;
    s->u.kernel.grain = c->grain ? c->grain : 1;
    s->u.kernel.trip_ps = c->trip_ps;
    s->u.kernel.scratch = c->scratch;
    s->u.kernel.max_threads = c->max_threads;
}

void hn_pb_step_copy(hn_pb *b, uint32_t dst, uint32_t dst_off, uint32_t src, uint32_t src_off, uint32_t bytes)
{
    hn_step *const s = step_new(b, HN_STEP_COPY, NULL);

    s->u.copy.dst = dst, s->u.copy.dst_off = dst_off;
    s->u.copy.src = src, s->u.copy.src_off = src_off;
    s->u.copy.bytes = bytes;
}

void hn_pb_step_read_to(hn_pb *b, uint32_t reg, uint32_t buf, uint32_t elem, uint32_t dtype)
{
    if (kind_of(b, reg) != REG_VAR) bad(b, "a step reads into a register that it may not write");
    hn_step *const s = step_new(b, HN_STEP_READ, NULL);
    s->u.read.reg = reg, s->u.read.buf = buf, s->u.read.elem = elem, s->u.read.dtype = dtype;
}

uint32_t hn_pb_step_read(hn_pb *b, uint32_t buf, uint32_t elem, uint32_t dtype)
{
    const uint32_t reg = hn_pb_var(b, 0);
    hn_pb_step_read_to(b, reg, buf, elem, dtype);
    return reg;
}

void hn_pb_step_alloc(hn_pb *b, const uint32_t *buf, uint32_t n)
{
    const uint32_t first = list_add(b, buf, n);
    hn_step *const s = step_new(b, HN_STEP_ALLOC, NULL);
    s->u.alloc.first = first, s->u.alloc.n = n;
}

void hn_pb_step_append(hn_pb *b, uint32_t dst, uint32_t src, uint32_t bytes)
{
    hn_step *const s = step_new(b, HN_STEP_APPEND, NULL);
    s->u.append.dst = dst, s->u.append.src = src, s->u.append.bytes = bytes;
}

void hn_pb_step_image(hn_pb *b, const hn_pb_image *x)
{
    hn_step *const s = step_new(b, HN_STEP_IMAGE, x->origin);
    s->u.image.what = x->what;
    s->u.image.src = x->src, s->u.image.bytes = x->bytes, s->u.image.dst = x->dst;
    s->u.image.order = x->order, s->u.image.h = x->h, s->u.image.w = x->w;
}

/* ---- blocks ---- */
static bool block_open(hn_pb *b, hn_pb_block_kind kind)
{
    if (b->depth + 1 >= HN_PLAN_MAX_DEPTH) {
        bad(b, "control flow is nested too deeply");
        return false;
    }
    b->block[++b->depth] = (hn_pb_block){ kind, b->step.n - 1, b->step.n };
    b->shape_open = false;
    return true;
}

static hn_pb_block *block_at(hn_pb *b, hn_pb_block_kind kind)
{
    if (b->depth >= 0 && b->block[b->depth].kind == kind) return &b->block[b->depth];
    bad(b, "a block ends that did not begin");
    return NULL;
}

void hn_pb_if_begin(hn_pb *b, uint32_t cond, const char *origin)
{
    step_new(b, HN_STEP_IF, origin)->u.branch.cond = cond;
    block_open(b, BLOCK_THEN);
}

void hn_pb_if_else(hn_pb *b)
{
    hn_pb_block *const k = block_at(b, BLOCK_THEN);

    if (!k || hn_arena_oom(b->arena)) return;
    b->step.at[k->step].u.branch.n_then = (uint32_t)(b->step.n - k->first);
    *k = (hn_pb_block){ BLOCK_ELSE, k->step, b->step.n };
    b->shape_open = false;
}

void hn_pb_if_end(hn_pb *b)
{
    hn_pb_block *const k = block_at(b, BLOCK_ELSE);

    if (!k || hn_arena_oom(b->arena)) return;
    b->step.at[k->step].u.branch.n_else = (uint32_t)(b->step.n - k->first);
    b->depth--;
    b->shape_open = false;
}

void hn_pb_loop_begin(hn_pb *b, const hn_pb_loop *l)
{
    const uint32_t carry = list_add(b, l->carry, 2 * l->n_carry);
    hn_step *const s = step_new(b, HN_STEP_LOOP, l->origin);

    if (l->iter != HN_NO && kind_of(b, l->iter) != REG_VAR)
        bad(b, "a loop counts in a register that it may not write");
    s->u.loop.trip = l->trip, s->u.loop.cond = l->cond, s->u.loop.iter = l->iter;
    s->u.loop.iter_buf = l->iter_buf;
    s->u.loop.carry = carry, s->u.loop.n_carry = l->n_carry;
    block_open(b, BLOCK_BODY);
}

void hn_pb_loop_end(hn_pb *b)
{
    hn_pb_block *const k = block_at(b, BLOCK_BODY);

    if (!k || hn_arena_oom(b->arena)) return;
    b->step.at[k->step].u.loop.n_body = (uint32_t)(b->step.n - k->first);
    b->depth--;
    b->shape_open = false;
}
