/*
 * One full check of a plan, so that the runtime can walk it without any. Everything here is against
 * accidents: a plan whose checksum holds but whose numbers make no sense must end as one error.
 */
#include "engine/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/core.h"

enum { REG_WRITTEN = 1, REG_PREFIX = 2 }; /* written at all; written by the prefix alone when both are set */

typedef struct check {
    const hn_plan *p;
    uint64_t code_bytes, weight_bytes;
    uint8_t *reg; /* REG_ bits */
    hn_diag *dg;
} check;

#define BAD(c, ...) HN_RAISE((c)->dg, HONE_E_FORMAT, "damaged plan: " __VA_ARGS__)

/* ---- facts about registers ---- */
static bool reg_ok(const check *c, uint32_t r)
{
    return r < c->p->n_reg;
}

static bool reg_const(const check *c, uint32_t r, int64_t *ret)
{
    if (!reg_ok(c, r) || c->reg[r]) return false;
    *ret = c->p->reg_init[r];
    return true;
}

/* Known once shapes are set. */
static bool reg_early(const check *c, uint32_t r)
{
    return reg_ok(c, r) && (!c->reg[r] || c->reg[r] == (REG_WRITTEN | REG_PREFIX));
}

/* A size: in range, not negative where constant; `early` demands that the prefix knows it. */
static bool size_ok(const check *c, uint32_t r, bool early)
{
    int64_t v;
    if (!reg_ok(c, r) || (early && !reg_early(c, r))) return false;
    return !reg_const(c, r, &v) || v >= 0;
}

static bool str_ok(const check *c, uint32_t at)
{
    return at < c->p->n_string;
}

/* ---- registers written ---- */
static hone_status mark(check *c, uint32_t r, bool prefix, const char *what, uint32_t i)
{
    if (!reg_ok(c, r)) return BAD(c, "%s %u writes register %u of %u", what, i, r, c->p->n_reg);
    c->reg[r] = prefix && (!c->reg[r] || (c->reg[r] & REG_PREFIX)) ? REG_WRITTEN | REG_PREFIX : REG_WRITTEN;
    return HONE_OK;
}

static hone_status mark_all(check *c)
{
    const hn_plan *p = c->p;

    for (uint32_t i = 0; i < p->n_inst; i++)
        if (p->inst[i].op < HN_S_CHECK_EQ)
            HN_TRY(mark(c, p->inst[i].dst, i < p->n_prefix, "shape instruction", i));
    for (uint32_t i = 0; i < p->n_step; i++) {
        const hn_step *s = &p->step[i];
        if (s->kind == HN_STEP_READ) HN_TRY(mark(c, s->u.read.reg, false, "step", i));
        if (s->kind == HN_STEP_LOOP && s->u.loop.iter != HN_NO)
            HN_TRY(mark(c, s->u.loop.iter, false, "step", i));
    }
    return HONE_OK;
}

/* ---- tables ---- */
static hone_status check_counts(const check *c)
{
    const hn_plan *p = c->p;

    if (p->n_string == 0 || p->string[0] || p->string[p->n_string - 1])
        return BAD(c, "the strings are not terminated");
    if (p->n_string >= UINT32_MAX) return BAD(c, "too many strings");
    if (p->n_prefix > p->n_inst) return BAD(c, "prefix of %u instructions of %u", p->n_prefix, p->n_inst);
    if (p->n_buf > HN_ARG_BUF(UINT32_MAX)) return BAD(c, "%u buffers", p->n_buf);
    if (p->flags & ~(uint32_t)(HN_PLAN_STATIC | HN_PLAN_STREAMS_MASK) || hn_plan_streams(p) > HN_PLAN_MAX_STREAMS)
        return HN_RAISE(c->dg, HONE_E_VERSION, "unknown plan flags %#x", p->flags);
    if (p->arena_bytes > INT64_MAX)
        return BAD(c, "an arena of %llu bytes", (unsigned long long)p->arena_bytes);
    return HONE_OK;
}

static int sop_operands(uint32_t op)
{
    switch (op) {
    case HN_S_INPUT_DIM: return 0;
    case HN_S_MOVE: return 1;
    case HN_S_SELECT: return 3;
    case HN_S_ADD:
    case HN_S_SUB:
    case HN_S_MUL:
    case HN_S_FLOORDIV:
    case HN_S_MOD:
    case HN_S_MIN:
    case HN_S_MAX:
    case HN_S_EQ:
    case HN_S_LT:
    case HN_S_CEILDIV:
    case HN_S_CHECK_EQ:
    case HN_S_CHECK_LE: return 2;
    default: return -1;
    }
}

static hone_status check_inst(const check *c, uint32_t i)
{
    const hn_plan *p = c->p;
    const hn_sinst *x = &p->inst[i];
    const int n = sop_operands(x->op);
    const uint32_t operand[] = { x->a, x->b, x->c };

    if (n < 0)
        return HN_RAISE(c->dg, HONE_E_VERSION, "shape instruction %u has unknown operation %u", i, x->op);
    for (int k = 0; k < n; k++)
        if (!reg_ok(c, operand[k]))
            return BAD(c, "shape instruction %u reads register %u of %u", i, operand[k], p->n_reg);
    if (x->op >= HN_S_CHECK_EQ && !str_ok(c, x->c)) return BAD(c, "shape instruction %u has no message", i);
    if (x->op != HN_S_INPUT_DIM) return HONE_OK;
    if (i >= p->n_prefix) return BAD(c, "shape instruction %u reads an input's extent outside the prefix", i);
    if (x->a >= p->n_io || p->io[x->a].flags != HN_IO_INPUT || x->b >= p->io[x->a].rank)
        return BAD(c, "shape instruction %u reads axis %u of I/O entry %u", i, x->b, x->a);
    return HONE_OK;
}

static bool dims_ok(const check *c, const hn_plan_io *io)
{
    for (uint32_t k = 0; k < io->rank; k++)
        if (!size_ok(c, io->dim[k], io->flags == HN_IO_INPUT)) return false;
    return true;
}

static hone_status check_io(const check *c, uint32_t i)
{
    const hn_plan *p = c->p;
    const hn_plan_io *x = &p->io[i];

    if (x->flags != HN_IO_INPUT && x->flags != HN_IO_OUTPUT)
        return BAD(c, "I/O entry %u is neither input nor output", i);
    if (x->flags == HN_IO_INPUT && i > 0 && p->io[i - 1].flags != HN_IO_INPUT)
        return BAD(c, "input %u follows an output", i);
    if (!str_ok(c, x->name)) return BAD(c, "I/O entry %u has no name", i);
    if (x->dtype == 0 || x->dtype >= HN_NDTYPES) return BAD(c, "I/O entry %u has dtype %u", i, x->dtype);
    if (x->rank > HN_PLAN_MAX_RANK) return BAD(c, "I/O entry %u has rank %u", i, x->rank);
    if (!dims_ok(c, x)) return BAD(c, "I/O entry %u has dims that are not known when shapes are set", i);
    if (x->buf >= p->n_buf || p->buf[x->buf].ref != i ||
        p->buf[x->buf].kind != (x->flags == HN_IO_INPUT ? HN_BUF_INPUT : HN_BUF_OUTPUT))
        return BAD(c, "I/O entry %u and its buffer disagree", i);
    return HONE_OK;
}

static hone_status check_syms(const check *c)
{
    const hn_plan *p = c->p;

    for (uint32_t i = 0; i < p->n_sym; i++) {
        const hn_plan_sym *x = &p->sym[i];
        if (!str_ok(c, x->name) || !reg_ok(c, x->reg) || c->reg[x->reg] != (REG_WRITTEN | REG_PREFIX))
            return BAD(c, "symbol %u is not computed when shapes are set", i);
        if (x->io >= p->n_io || p->io[x->io].flags != HN_IO_INPUT || x->axis >= p->io[x->io].rank)
            return BAD(c, "symbol %u names axis %u of I/O entry %u", i, x->axis, x->io);
        if (x->usual < 0) return BAD(c, "symbol %u has a usual extent of %lld", i, (long long)x->usual);
    }
    for (size_t i = 0; i < (size_t)p->n_profile * p->n_sym; i++)
        if (p->bound[i].min < 0 || p->bound[i].min > p->bound[i].opt || p->bound[i].opt > p->bound[i].max)
            return BAD(c, "profile %zu bounds symbol %zu badly", i / p->n_sym, i % p->n_sym);
    return HONE_OK;
}

static hone_status check_weight(const check *c, uint32_t i)
{
    const hn_plan_weight *x = &c->p->weight[i];

    if (!str_ok(c, x->recipe)) return BAD(c, "weight %u has no recipe", i);
    if (x->flags & ~(uint32_t)HN_WEIGHT_EXTERNAL) return BAD(c, "weight %u has flags %#x", i, x->flags);
    if (x->bytes > INT64_MAX - HN_TAIL_BYTES)
        return BAD(c, "weight %u has %llu bytes", i, (unsigned long long)x->bytes);
    if (x->flags & HN_WEIGHT_EXTERNAL)
        return x->offset ? BAD(c, "external weight %u has an offset", i) : HONE_OK;
    if (x->offset % 64 || x->offset > c->weight_bytes ||
        x->bytes + HN_TAIL_BYTES > c->weight_bytes - x->offset)
        return BAD(c, "weight %u does not lie in the weight section", i);
    return HONE_OK;
}

static hone_status check_part(const check *c, uint32_t i)
{
    const hn_plan *p = c->p;
    const hn_plan_buf *x = &p->buf[i];
    int64_t at, size, whole;

    if (x->ref >= p->n_buf || p->buf[x->ref].kind == HN_BUF_PART)
        return BAD(c, "buffer %u is part of no buffer", i);
    if (!size_ok(c, x->offset_reg, false)) return BAD(c, "buffer %u has no offset in its parent", i);
    const hn_plan_buf *parent = &p->buf[x->ref];
    if (parent->kind == HN_BUF_HEAP || (parent->flags & HN_BUF_GROWS))
        return HONE_OK; /* checked while running */
    if (reg_const(c, x->offset_reg, &at) && reg_const(c, x->size, &size) &&
        reg_const(c, parent->size, &whole) && (at > whole || size > whole - at))
        return BAD(c, "buffer %u sticks out of its parent", i);
    return HONE_OK;
}

static hone_status check_arena(const check *c, uint32_t i)
{
    const hn_plan *p = c->p;
    const hn_plan_buf *x = &p->buf[i];
    int64_t size;

    if (x->ref != HN_NO || x->first > x->last || (p->n_step ? x->last >= p->n_step : x->last != 0))
        return BAD(c, "buffer %u has a lifetime of steps %u to %u", i, x->first, x->last);
    if (!size_ok(c, x->size, true))
        return BAD(c, "buffer %u has a size that is not known when shapes are set", i);
    if (!(p->flags & HN_PLAN_STATIC))
        return x->offset ? BAD(c, "buffer %u is placed in a dynamic plan", i) : HONE_OK;
    if (!reg_const(c, x->size, &size)) return BAD(c, "buffer %u has a changing size in a static plan", i);
    if (x->offset % x->align || x->offset > p->arena_bytes || (uint64_t)size > p->arena_bytes - x->offset ||
        (size && p->arena_bytes - x->offset - (uint64_t)size < HN_TAIL_BYTES))
        return BAD(c, "buffer %u lies outside the arena", i);
    return HONE_OK;
}

static hone_status check_buf_io(const check *c, uint32_t i)
{
    const hn_plan *p = c->p;
    const hn_plan_buf *x = &p->buf[i];
    const bool grows = (x->flags & HN_BUF_GROWS) != 0;

    if (x->ref >= p->n_io || p->io[x->ref].buf != i) return BAD(c, "buffer %u and its I/O entry disagree", i);
    if (grows && x->kind != HN_BUF_OUTPUT) return BAD(c, "input buffer %u grows", i);
    if (!size_ok(c, x->size, !grows))
        return BAD(c, "buffer %u has a size that is not known when shapes are set", i);
    return HONE_OK;
}

static hone_status check_buf(const check *c, uint32_t i)
{
    const hn_plan *p = c->p;
    const hn_plan_buf *x = &p->buf[i];
    int64_t size;

    if (!str_ok(c, x->name)) return BAD(c, "buffer %u has no name", i);
    if (x->flags & ~(uint32_t)HN_BUF_GROWS) return BAD(c, "buffer %u has flags %#x", i, x->flags);
    if (x->align == 0 || (x->align & (x->align - 1)) || x->align > 4096)
        return BAD(c, "buffer %u has alignment %u", i, x->align);
    if (!size_ok(c, x->size, false)) return BAD(c, "buffer %u has no size", i);
    if (x->kind != HN_BUF_ARENA && x->offset) return BAD(c, "buffer %u has an arena offset", i);
    switch (x->kind) {
    case HN_BUF_WEIGHT:
        if (x->ref >= p->n_weight || !reg_const(c, x->size, &size) ||
            (uint64_t)size > p->weight[x->ref].bytes)
            return BAD(c, "buffer %u and its weight disagree", i);
        return HONE_OK;
    case HN_BUF_INPUT:
    case HN_BUF_OUTPUT: return check_buf_io(c, i);
    case HN_BUF_ARENA: return check_arena(c, i);
    case HN_BUF_HEAP: return x->ref == HN_NO ? HONE_OK : BAD(c, "heap buffer %u refers to %u", i, x->ref);
    case HN_BUF_PART: return check_part(c, i);
    case HN_BUF_FAULT:
        if (x->ref != HN_NO || !reg_const(c, x->size, &size) || size != HN_FAULT_BYTES)
            return BAD(c, "buffer %u is no record of faults", i);
        return HONE_OK;
    default: return HN_RAISE(c->dg, HONE_E_VERSION, "buffer %u is of unknown kind %u", i, x->kind);
    }
}

static hone_status check_kernel(const check *c, uint32_t i)
{
    const hn_plan_kernel *x = &c->p->kernel[i];

    if (x->entry >= c->code_bytes) return BAD(c, "kernel %u starts outside the code", i);
    if (x->n_buf > HN_PLAN_MAX_ARGS || x->n_arg > HN_PLAN_MAX_ARGS)
        return BAD(c, "kernel %u takes too much", i);
    return str_ok(c, x->name) ? HONE_OK : BAD(c, "kernel %u has no name", i);
}

/* ---- steps ---- */
static const hn_plan_buf *root(const check *c, uint32_t buf)
{
    const hn_plan_buf *x = &c->p->buf[buf];
    return x->kind == HN_BUF_PART ? &c->p->buf[x->ref] : x;
}

static bool writable(const check *c, uint32_t buf)
{
    if (buf >= c->p->n_buf) return false;
    const uint32_t kind = root(c, buf)->kind;
    return kind == HN_BUF_OUTPUT || kind == HN_BUF_ARENA || kind == HN_BUF_HEAP || kind == HN_BUF_FAULT;
}

static bool growable(const check *c, uint32_t buf)
{
    return buf < c->p->n_buf && (c->p->buf[buf].kind == HN_BUF_HEAP || (c->p->buf[buf].flags & HN_BUF_GROWS));
}

static bool list_ok(const check *c, uint32_t first, uint32_t n)
{
    return first <= c->p->n_list && n <= c->p->n_list - first;
}

static hone_status check_call(const check *c, const hn_step *s, uint32_t i)
{
    const hn_plan *p = c->p;
    const uint32_t *list = p->list;

    if (s->u.kernel.kernel >= p->n_kernel)
        return BAD(c, "step %u calls kernel %u of %u", i, s->u.kernel.kernel, p->n_kernel);
    const hn_plan_kernel *k = &p->kernel[s->u.kernel.kernel];
    if (k->n_buf != s->u.kernel.n_buf || k->n_arg != s->u.kernel.n_arg ||
        !list_ok(c, s->u.kernel.buf, k->n_buf) || !list_ok(c, s->u.kernel.arg, k->n_arg))
        return BAD(c, "step %u passes what its kernel does not take", i);
    for (uint32_t a = 0; a < k->n_buf; a++) {
        const uint32_t e = list[s->u.kernel.buf + a];
        if (HN_ARG_BUF(e) >= p->n_buf || ((e & HN_ARG_WRITE) && !writable(c, HN_ARG_BUF(e))))
            return BAD(c, "step %u passes buffer %u badly", i, HN_ARG_BUF(e));
    }
    for (uint32_t a = 0; a < k->n_arg; a++)
        if (!reg_ok(c, list[s->u.kernel.arg + a])) return BAD(c, "step %u passes no register", i);
    if (!reg_ok(c, s->u.kernel.extent) || !reg_ok(c, s->u.kernel.trip_ps) || s->u.kernel.grain == 0)
        return BAD(c, "step %u has no extent, cost or grain", i);
    if (s->u.kernel.scratch != HN_NO && !size_ok(c, s->u.kernel.scratch, false))
        return BAD(c, "step %u has scratch of no size", i);
    return HONE_OK;
}

static hone_status check_copy(const check *c, const hn_step *s, uint32_t i)
{
    const bool ok = writable(c, s->u.copy.dst) && s->u.copy.src < c->p->n_buf &&
                    size_ok(c, s->u.copy.bytes, false) &&
                    (s->u.copy.dst_off == HN_NO || size_ok(c, s->u.copy.dst_off, false)) &&
                    (s->u.copy.src_off == HN_NO || size_ok(c, s->u.copy.src_off, false));
    return ok ? HONE_OK : BAD(c, "step %u copies badly", i);
}

static hone_status check_read(const check *c, const hn_step *s, uint32_t i)
{
    const uint32_t t = s->u.read.dtype;
    const bool ok = s->u.read.buf < c->p->n_buf &&
                    (s->u.read.elem == HN_NO || size_ok(c, s->u.read.elem, false)) &&
                    (t == HN_I64 || t == HN_I32 || t == HN_U8 || t == HN_BOOL);
    return ok ? HONE_OK : BAD(c, "step %u reads badly", i);
}

static hone_status check_alloc(const check *c, const hn_step *s, uint32_t i)
{
    if (!list_ok(c, s->u.alloc.first, s->u.alloc.n)) return BAD(c, "step %u sizes no buffers", i);
    for (uint32_t k = 0; k < s->u.alloc.n; k++)
        if (!growable(c, c->p->list[s->u.alloc.first + k]))
            return BAD(c, "step %u sizes a buffer that does not grow", i);
    return HONE_OK;
}

static hone_status check_image(const check *c, const hn_step *s, uint32_t i)
{
    const bool decode = s->u.image.what == HN_IMAGE_STEP_DECODE;
    const bool ok = (decode || s->u.image.what == HN_IMAGE_STEP_SIZE) && s->u.image.src < c->p->n_buf &&
                    size_ok(c, s->u.image.bytes, false) && writable(c, s->u.image.dst) && s->u.image.order <= 2 &&
                    (!decode || (size_ok(c, s->u.image.h, false) && size_ok(c, s->u.image.w, false)));
    return ok ? HONE_OK : BAD(c, "step %u reads an image badly", i);
}

static bool carry_ok(const check *c, uint32_t in, uint32_t out)
{
    const hn_plan *p = c->p;
    int64_t a, b;

    if (in >= p->n_buf || out >= p->n_buf || in == out || p->buf[in].kind != p->buf[out].kind) return false;
    if (p->buf[in].kind == HN_BUF_HEAP) return true;
    return p->buf[in].kind == HN_BUF_ARENA &&
           (!reg_const(c, p->buf[in].size, &a) || !reg_const(c, p->buf[out].size, &b) || a == b);
}

static hone_status check_loop(const check *c, const hn_step *s, uint32_t i)
{
    const hn_plan *p = c->p;
    const uint32_t iter_buf = s->u.loop.iter_buf;
    int64_t size;

    if ((s->u.loop.trip != HN_NO && !reg_ok(c, s->u.loop.trip)) ||
        (s->u.loop.cond != HN_NO && !reg_ok(c, s->u.loop.cond)) ||
        (s->u.loop.trip == HN_NO && s->u.loop.cond == HN_NO))
        return BAD(c, "step %u loops without end", i);
    if (iter_buf != HN_NO && (iter_buf >= p->n_buf || p->buf[iter_buf].kind != HN_BUF_ARENA ||
                              !reg_const(c, p->buf[iter_buf].size, &size) || size < 8))
        return BAD(c, "step %u has no room for its iteration number", i);
    if (s->u.loop.n_carry > p->n_list || !list_ok(c, s->u.loop.carry, 2 * s->u.loop.n_carry))
        return BAD(c, "step %u carries no buffers", i);
    for (uint32_t k = 0; k < s->u.loop.n_carry; k++)
        if (!carry_ok(c, p->list[s->u.loop.carry + 2 * k], p->list[s->u.loop.carry + 2 * k + 1]))
            return BAD(c, "step %u carries buffers that cannot trade places", i);
    return HONE_OK;
}

static hone_status check_step(const check *c, uint32_t i)
{
    const hn_plan *p = c->p;
    const hn_step *s = &p->step[i];

    if (!str_ok(c, s->origin)) return BAD(c, "step %u has no origin", i);
    switch (s->kind) {
    case HN_STEP_KERNEL: return check_call(c, s, i);
    case HN_STEP_COPY: return check_copy(c, s, i);
    case HN_STEP_READ: return check_read(c, s, i);
    case HN_STEP_SHAPE:
        if (s->u.shape.first >= p->n_prefix && s->u.shape.first <= p->n_inst &&
            s->u.shape.n <= p->n_inst - s->u.shape.first)
            return HONE_OK;
        return BAD(c, "step %u runs shape instructions that are not there", i);
    case HN_STEP_ALLOC: return check_alloc(c, s, i);
    case HN_STEP_APPEND:
        if (growable(c, s->u.append.dst) && s->u.append.src < p->n_buf &&
            size_ok(c, s->u.append.bytes, false))
            return HONE_OK;
        return BAD(c, "step %u appends badly", i);
    case HN_STEP_IF: return reg_ok(c, s->u.branch.cond) ? HONE_OK : BAD(c, "step %u has no condition", i);
    case HN_STEP_LOOP: return check_loop(c, s, i);
    case HN_STEP_IMAGE: return check_image(c, s, i);
    default: return HN_RAISE(c->dg, HONE_E_VERSION, "step %u is of unknown kind %u", i, s->kind);
    }
}

/* Steps [i, end) form one block; a stack of ends stands for the blocks around it. */
static hone_status check_nesting(const check *c)
{
    const hn_plan *p = c->p;
    uint32_t end[HN_PLAN_MAX_DEPTH + 1];
    int depth = 0;

    end[0] = p->n_step;
    for (uint32_t i = 0; i < p->n_step; i++) {
        const hn_step *s = &p->step[i];
        while (i == end[depth])
            depth--; /* end[0] is never met inside the loop */
        HN_TRY(check_step(c, i));
        if (s->kind != HN_STEP_IF && s->kind != HN_STEP_LOOP) continue;

        /* The second block of an IF opens first: it ends where both end. */
        const uint32_t room = end[depth] - i - 1;
        const uint32_t n1 = s->kind == HN_STEP_IF ? s->u.branch.n_then : s->u.loop.n_body;
        const uint32_t n2 = s->kind == HN_STEP_IF ? s->u.branch.n_else : 0;
        if (n1 > room || n2 > room - n1) return BAD(c, "step %u holds more steps than there are", i);
        if (depth + 2 > HN_PLAN_MAX_DEPTH) return BAD(c, "step %u is nested too deeply", i);
        if (n2) end[++depth] = i + 1 + n1 + n2;
        if (n1) end[++depth] = i + 1 + n1;
    }
    return HONE_OK;
}

static hone_status check_all(check *c)
{
    const hn_plan *p = c->p;

    HN_TRY(check_counts(c));
    HN_TRY(mark_all(c));
    for (uint32_t i = 0; i < p->n_inst; i++)
        HN_TRY(check_inst(c, i));
    for (uint32_t i = 0; i < p->n_weight; i++)
        HN_TRY(check_weight(c, i));
    for (uint32_t i = 0; i < p->n_io; i++)
        HN_TRY(check_io(c, i));
    for (uint32_t i = 0; i < p->n_buf; i++)
        HN_TRY(check_buf(c, i));
    for (uint32_t i = 0; i < p->n_kernel; i++)
        HN_TRY(check_kernel(c, i));
    HN_TRY(check_syms(c));
    return check_nesting(c);
}

hone_status hn_plan_validate(const hn_plan *p, uint64_t code_bytes, uint64_t weight_bytes, hn_diag *dg)
{
    check c = { p, code_bytes, weight_bytes, calloc(p->n_reg + (size_t)1, 1), dg };

    if (!c.reg) return HN_NOMEM(dg);
    const hone_status s = check_all(&c);
    free(c.reg);
    return s;
}
