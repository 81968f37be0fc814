/* Closing a plan: sizes of I/O, lifetimes, static placement, final arrays. */
#include "engine/plan_builder.h"

#include <string.h>

#include "core/core.h"
#include "engine/plan_builder_int.h"
#include "memplan/memplan.h"

/* ---- sizes of inputs and outputs ---- */
/* -1 where an extent is negative: two of them have a positive product. */
static uint32_t guarded(hn_pb *b, const hn_plan_io *io, uint32_t n)
{
    uint32_t least = HN_NO;
    int n_open = 0;
    for (uint32_t k = 0; k < io->rank; k++) {
        if (io->dim[k] < (uint32_t)b->reg.n && b->reg.at[io->dim[k]].kind == REG_CONST) continue;
        least = least == HN_NO ? io->dim[k] : hn_pb_calc(b, HN_S_MIN, least, io->dim[k], 0);
        n_open++;
    }
    if (n_open < 2) return n;
    const uint32_t negative = hn_pb_calc(b, HN_S_LT, least, hn_pb_const(b, 0), 0);
    return hn_pb_calc(b, HN_S_SELECT, negative, hn_pb_const(b, -1), n);
}

static uint32_t bytes_of(hn_pb *b, const hn_plan_io *io)
{
    const int bits = hn_dtype_bits((hn_dtype)io->dtype);
    uint32_t n = hn_pb_const(b, 1);

    for (uint32_t k = 0; k < io->rank; k++)
        n = hn_pb_calc(b, HN_S_MUL, n, io->dim[k], 0);
    if (io->flags == HN_IO_OUTPUT) n = guarded(b, io, n);
    if (bits >= 8) return hn_pb_calc(b, HN_S_MUL, n, hn_pb_const(b, bits / 8), 0);
    return hn_pb_calc(b, HN_S_CEILDIV, hn_pb_calc(b, HN_S_MUL, n, hn_pb_const(b, bits), 0), hn_pb_const(b, 8),
                      0);
}

static hone_status size_io(hn_pb *b, hn_diag *dg)
{
    for (int i = 0; i < b->io.n; i++) {
        const hn_plan_io *io = &b->io.at[i];
        if (io->dtype == 0 || io->dtype >= HN_NDTYPES)
            return HN_RAISE(dg, HONE_E_INTERNAL, "I/O entry %d has no dtype", i);
        if (b->buf.at[io->buf].size != HN_NO) continue;
        for (uint32_t k = 0; k < io->rank; k++)
            if (!hn_pb_in_prefix(b, io->dim[k]))
                return HN_RAISE(dg, HONE_E_INTERNAL, "axis %u of \"%s\" is known only while running", k,
                                b->string.at + io->name);
        b->buf.at[io->buf].size = bytes_of(b, io);
    }
    return HONE_OK;
}

/* ---- lifetimes ---- */
enum { NEVER = INT32_MAX };

/* When a buffer is first and last touched, and whether its first touch surely writes it without reading. */
typedef struct life {
    int32_t first, last;
    bool written_first;
    int32_t if_end; /* end of the innermost IF block around the first touch; 0: none */
} life;

typedef struct lives {
    hn_pb *b;
    life *at;
    int32_t if_end[HN_PLAN_MAX_DEPTH + 1];
    int n_if;
} lives;

static void touch(lives *l, uint32_t buf, int step, bool reads, bool writes)
{
    const hn_pb *b = l->b;

    if (buf >= (uint32_t)b->buf.n) return; /* validation says so */
    if (b->buf.at[buf].kind == HN_BUF_PART) buf = b->buf.at[buf].ref;
    life *const x = &l->at[buf];
    if (x->first == NEVER) *x = (life){ step, step, writes && !reads, l->n_if ? l->if_end[l->n_if - 1] : 0 };
    x->last = step;
}

static void touch_step(lives *l, int i)
{
    const hn_pb *b = l->b;
    const hn_step *s = &b->step.at[i];

    switch (s->kind) {
    case HN_STEP_KERNEL:
        /* Reads first: an in-place argument listed twice must count as read. */
        for (int pass = 0; pass < 2; pass++)
            for (uint32_t k = 0; k < s->u.kernel.n_buf; k++) {
                const uint32_t e = b->list.at[s->u.kernel.buf + k];
                const bool writes = (e & HN_ARG_WRITE) && !(e & HN_ARG_READ);
                if (writes == (pass == 1)) touch(l, HN_ARG_BUF(e), i, !writes, writes);
            }
        break;
    case HN_STEP_COPY:
        touch(l, s->u.copy.src, i, true, false);
        touch(l, s->u.copy.dst, i, false, true);
        break;
    case HN_STEP_READ: touch(l, s->u.read.buf, i, true, false); break;
    case HN_STEP_ALLOC:
        for (uint32_t k = 0; k < s->u.alloc.n; k++)
            touch(l, b->list.at[s->u.alloc.first + k], i, false, true);
        break;
    case HN_STEP_APPEND:
        touch(l, s->u.append.src, i, true, false);
        touch(l, s->u.append.dst, i, true, true);
        break;
    case HN_STEP_IMAGE:
        touch(l, s->u.image.src, i, true, false);
        touch(l, s->u.image.dst, i, false, true);
        break;
    case HN_STEP_LOOP:
        if (s->u.loop.iter_buf != HN_NO) touch(l, s->u.loop.iter_buf, i, false, true);
        for (uint32_t k = 0; k < 2 * s->u.loop.n_carry; k++)
            touch(l, b->list.at[s->u.loop.carry + k], i, true, true);
        break;
    default: break;
    }
}

static void touch_all(lives *l)
{
    for (int i = 0; i < l->b->step.n; i++) {
        const hn_step *s = &l->b->step.at[i];
        while (l->n_if && i >= l->if_end[l->n_if - 1])
            l->n_if--;
        touch_step(l, i);
        if (s->kind != HN_STEP_IF) continue;
        const int32_t end = i + 1 + (int32_t)(s->u.branch.n_then + s->u.branch.n_else);
        if (l->n_if < HN_PLAN_MAX_DEPTH) l->if_end[l->n_if++] = end;
    }
}

/* Must a buffer touched inside loop [start, end] keep its bytes from turn to turn? */
static bool lives_through(const life *x, int32_t start, int32_t end)
{
    if (x->first > end || x->last <= start) return false;
    if (x->first <= start || x->last > end) return true;
    return !x->written_first || (x->if_end && x->if_end <= end + 1); /* its write may have been skipped */
}

static bool widen(life *x, int32_t first, int32_t last)
{
    if (x->first <= first && x->last >= last) return false;
    x->first = HN_MIN(x->first, first), x->last = HN_MAX(x->last, last);
    return true;
}

static bool widen_loop(lives *l, int i)
{
    const hn_pb *b = l->b;
    const hn_step *s = &b->step.at[i];
    const int32_t end = i + (int32_t)s->u.loop.n_body;
    bool changed = false;

    for (int k = 0; k < b->buf.n; k++)
        if (l->at[k].first != NEVER && lives_through(&l->at[k], i, end)) changed |= widen(&l->at[k], i, end);
    /* Two that trade places stand for each other: both live while either does. */
    for (uint32_t k = 0; k < s->u.loop.n_carry; k++) {
        const uint32_t *pair = b->list.at + s->u.loop.carry + 2 * k;
        if (pair[0] >= (uint32_t)b->buf.n || pair[1] >= (uint32_t)b->buf.n) continue; /* validation says so */
        life *const x = &l->at[pair[0]], *const y = &l->at[pair[1]];
        changed |= widen(x, i, end);
        changed |= widen(x, y->first, y->last);
        changed |= widen(y, x->first, x->last);
    }
    return changed;
}

static hone_status set_lifetimes(hn_pb *b, hn_diag *dg)
{
    lives l = { .b = b, .at = HN_NEW_N(b->arena, life, b->buf.n + 1) };

    if (!l.at) return HN_NOMEM(dg);
    for (int i = 0; i < b->buf.n; i++)
        l.at[i].first = NEVER;
    touch_all(&l);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = b->step.n - 1; i >= 0; i--)
            if (b->step.at[i].kind == HN_STEP_LOOP) changed |= widen_loop(&l, i);
    }
    for (int i = 0; i < b->buf.n; i++) {
        if (b->buf.at[i].kind != HN_BUF_ARENA) continue;
        const bool used = l.at[i].first != NEVER;
        b->buf.at[i].first = used ? (uint32_t)l.at[i].first : 0;
        b->buf.at[i].last = used ? (uint32_t)l.at[i].last : 0;
    }
    return HONE_OK;
}

/* ---- placement ---- */
static bool is_static(const hn_pb *b)
{
    for (int i = 0; i < b->buf.n; i++)
        if (b->buf.at[i].kind == HN_BUF_ARENA && b->reg.at[b->buf.at[i].size].kind != REG_CONST) return false;
    return true;
}

bool hn_pb_places(const hn_pb *b)
{
    int n = 0;
    for (int i = 0; i < b->buf.n; i++)
        n += b->buf.at[i].kind == HN_BUF_ARENA;
    return n > 1 && is_static(b);
}

void hn_pb_place_orders(hn_pb *b, unsigned orders)
{
    b->place_orders = orders;
}

static hone_status place(hn_pb *b, uint64_t *ret_bytes, hn_diag *dg)
{
    hn_mp_item *const item = HN_NEW_N(b->arena, hn_mp_item, b->buf.n + 1);
    int *const buf = HN_NEW_N(b->arena, int, b->buf.n + 1);
    hn_mp_result r;
    int n = 0;

    if (!item || !buf) return HN_NOMEM(dg);
    for (int i = 0; i < b->buf.n; i++) {
        const hn_plan_buf *x = &b->buf.at[i];
        if (x->kind != HN_BUF_ARENA) continue;
        buf[n] = i;
        item[n++] = (hn_mp_item){ .bytes = b->reg.at[x->size].init,
                                  .first = (int32_t)x->first,
                                  .last = (int32_t)x->last,
                                  .root = -1,
                                  .align = (int32_t)HN_MAX(x->align, (uint32_t)HN_MP_ALIGN) };
    }
    void *const work = hn_arena_alloc(b->arena, hn_memplan_work_bytes(n), 1);
    if (!work) return HN_NOMEM(dg);
    if (!hn_memplan(item, n, b->place_orders ? b->place_orders : HN_MP_ALL, work, &r))
        return HN_RAISE(dg, HONE_E_LIMIT, "activations need more bytes than there are");
    for (int i = 0; i < n; i++)
        b->buf.at[buf[i]].offset = (uint64_t)item[i].offset;
    *ret_bytes = r.arena_bytes ? (uint64_t)r.arena_bytes + HN_TAIL_BYTES : 0;
    return HONE_OK;
}

/* ---- final arrays ---- */
static hone_status join_program(hn_pb *b, hn_sinst **ret, hn_diag *dg)
{
    hn_sinst *const inst = HN_NEW_N(b->arena, hn_sinst, b->prefix.n + b->segment.n + 1);

    if (!inst) return HN_NOMEM(dg);
    if (b->prefix.n) memcpy(inst, b->prefix.at, (size_t)b->prefix.n * sizeof(*inst));
    if (b->segment.n) memcpy(inst + b->prefix.n, b->segment.at, (size_t)b->segment.n * sizeof(*inst));
    for (int i = 0; i < b->step.n; i++)
        if (b->step.at[i].kind == HN_STEP_SHAPE) b->step.at[i].u.shape.first += (uint32_t)b->prefix.n;
    *ret = inst;
    return HONE_OK;
}

static hone_status check_misuse(const hn_pb *b, hn_diag *dg)
{
    if (hn_arena_oom(b->arena)) return HN_NOMEM(dg);
    if (b->misuse) return HN_RAISE(dg, HONE_E_INTERNAL, "plan builder: %s", b->misuse);
    if (b->depth >= 0) return HN_RAISE(dg, HONE_E_INTERNAL, "plan builder: a block is still open");
    for (int i = 0; i < b->reg.n; i++)
        if (b->reg.at[i].kind == REG_FRESH)
            return HN_RAISE(dg, HONE_E_INTERNAL, "plan builder: register %d is never written", i);
    for (int i = 0; i < b->buf.n; i++)
        if (b->buf.at[i].size >= (uint32_t)b->reg.n && b->buf.at[i].size != HN_NO)
            return HN_RAISE(dg, HONE_E_INTERNAL, "plan builder: buffer %d has no size", i);
    return HONE_OK;
}

hone_status hn_pb_finish(hn_pb *b, hn_plan *ret, hn_diag *dg)
{
    hn_sinst *inst = NULL;
    uint64_t arena_bytes = 0;

    HN_TRY(check_misuse(b, dg));
    HN_TRY(size_io(b, dg));
    HN_TRY(check_misuse(b, dg));
    HN_TRY(set_lifetimes(b, dg));
    if (b->n_stream > 1) hn_pb_keep_apart(b);
    const bool fixed = is_static(b);
    if (fixed) HN_TRY(place(b, &arena_bytes, dg));
    HN_TRY(join_program(b, &inst, dg));
    int64_t *const init = HN_NEW_N(b->arena, int64_t, b->reg.n + 1);
    if (!init) return HN_NOMEM(dg);
    for (int i = 0; i < b->reg.n; i++)
        init[i] = b->reg.at[i].init;

    *ret = (hn_plan){
        .flags = (fixed ? (uint32_t)HN_PLAN_STATIC : 0) | (b->n_stream > 1 ? b->n_stream : 0) << HN_PLAN_STREAMS_AT,
        .target_arch = b->target_arch,
        .target_feat = b->target_feat,
        .arena_bytes = arena_bytes,
        .n_prefix = (uint32_t)b->prefix.n,
        .n_reg = (uint32_t)b->reg.n,
        .n_inst = (uint32_t)(b->prefix.n + b->segment.n),
        .n_io = (uint32_t)b->io.n,
        .n_sym = (uint32_t)b->sym.n,
        .n_profile = b->n_profile,
        .n_buf = (uint32_t)b->buf.n,
        .n_kernel = (uint32_t)b->kernel.n,
        .n_step = (uint32_t)b->step.n,
        .n_list = (uint32_t)b->list.n,
        .n_string = (size_t)b->string.n,
        .reg_init = init,
        .inst = inst,
        .io = b->io.at,
        .sym = b->sym.at,
        .bound = b->bound.at,
        .buf = b->buf.at,
        .kernel = b->kernel.at,
        .step = b->step.at,
        .list = b->list.at,
        .string = b->string.at,
    };
    return HONE_OK;
}
