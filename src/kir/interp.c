/* Runs programs one lane at a time, checking every access. Slow by design: tests compare compiled code
 * against it. What each instruction comes by holds no array and takes no local's address: under ASan such a frame costs more than
 * the instruction. */
#include "kir/kir_int.h"

#include <inttypes.h>
#include <string.h>

/* A buffer as the program sees it. */
typedef struct area {
    uint8_t *at;
    int64_t bytes, readable;
    uint8_t *written; /* a byte a byte; scratch and shared only */
    bool writable;
} area;

typedef struct run {
    const hn_kfunc *f;
    const int64_t *arg;
    area *buf;
    int64_t *off;   /* of each instruction's lanes in a thread's values */
    int32_t *leave; /* BREAK_IF: the END to leave through */
    int64_t n_val, lo, hi, steps, max_steps;
    struct thread *team; /* gpu: room for the threads of a block */
    hn_diag *dg;
    hn_arena *tmp;
} run;

/* A copy to shared memory that has begun. */
typedef struct flight {
    uint8_t *to, *written;
    const uint8_t *from; /* NULL: zeros */
    int bytes, group;
} flight;

/* One thread of control: where it is, and what it knows. */
typedef struct thread {
    int32_t pc;
    int32_t id[3]; /* gpu: place in the block */
    enum { RUNNING, WAITING, DONE } state;
    uint64_t *val;
    HN_VEC(flight) air; /* oldest first */
    int group;          /* of copies that begin now */
} thread;

/* An access that is wrong: HONE_E_INTERNAL, and no place. */
static void *fault(const run *r, int at, int64_t buf, const char *what, int64_t offset)
{
    const hn_kins *x = &r->f->ins[at];

    (void)HN_RAISE(r->dg, HONE_E_INTERNAL,
             "kernel \"%s\", %s %%%d: %s of buffer \"%s\" at byte %" PRId64 " of %" PRId64, r->f->name,
             hn_kop_name(x->op), at, what, r->f->names + r->f->buf[buf].name, offset, r->buf[buf].bytes);
    return NULL;
}

static uint64_t *lanes_of(const run *r, const thread *t, int32_t at)
{
    return t->val + r->off[at];
}

/* ---- memory ---- */
/* n bytes that start `ahead` bytes behind element `index`; NULL after a fault. */
static uint8_t *locate(const run *r, int at, int64_t buf, int64_t index, int64_t ahead, int64_t n, bool write)
{
    const area *b = &r->buf[buf];
    const int64_t each = hn_dtype_bits((hn_dtype)r->f->buf[buf].dtype) / 8, end = write ? b->bytes : b->readable;
    const int64_t first = (int64_t)((uint64_t)index * (uint64_t)each + (uint64_t)ahead); /* may wrap: such an index is beyond the end */

    if (index < -end || index > end || first < 0 || first > end - n)
        return fault(r, at, buf, write ? "write past the end" : "read past the end", first);
    if (write && !b->writable) return fault(r, at, buf, "write to a read-only part", first);
    if (b->written && write) memset(b->written + first, 1, (size_t)n);
    for (int64_t i = 0; b->written && !write && i < n; i++)
        if (!b->written[first + i]) return fault(r, at, buf, "read of bytes never written", first + i);
    return b->at + first;
}

static uint64_t read_bytes(const uint8_t *p, int n)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (n) {
    case 1: return *p;
    case 2: return memcpy(&two, p, 2), two;
    case 4: return memcpy(&four, p, 4), four;
    default: return memcpy(&eight, p, 8), eight;
    }
}

static void write_bytes(uint8_t *p, int n, uint64_t v)
{
    const uint16_t two = (uint16_t)v;
    const uint32_t four = (uint32_t)v;

    switch (n) {
    case 1: *p = (uint8_t)v; break;
    case 2: memcpy(p, &two, 2); break;
    case 4: memcpy(p, &four, 4); break;
    default: memcpy(p, &v, 8); break;
    }
}

static uint64_t read_lane(const uint8_t *p, int storage)
{
    const uint64_t v = read_bytes(p, hn_dtype_bits((hn_dtype)storage) / 8);

    if (storage == HN_F16 || storage == HN_BF16) return hn_f32_lane(hn_half_to_f32(storage, (uint16_t)v));
    if (storage == HN_BOOL) return v != 0;
    return storage == HN_F32 || storage == HN_F64 ? v : hn_klane_norm(storage, v);
}

static void write_lane(uint8_t *p, int storage, uint64_t v)
{
    const bool half = storage == HN_F16 || storage == HN_BF16;

    write_bytes(p, hn_dtype_bits((hn_dtype)storage) / 8, half ? hn_half_from_f32(storage, hn_lane_f32(v)) : v);
}

/* p, unless it is not aligned for so many bytes. A buffer's own start counts as aligned: what it is bound to is the caller's affair. */
static uint8_t *aligned(const run *r, int at, int64_t buf, uint8_t *p, int64_t bytes)
{
    const int64_t first = p - r->buf[buf].at;
    return first % HN_MIN(bytes, 16) ? fault(r, at, buf, "access that is not aligned", first) : p;
}

static int n_lanes(const run *r, const hn_kins *x)
{
    return x->op == HN_KOP_STORE || x->op == HN_KOP_SCATTER ? r->f->ins[x->a[1]].lanes : x->lanes;
}

/* Where a lane lies: a gather's anywhere, a load's behind the lane before it, in bytes, so that lanes may be
 * narrower or wider than the buffer's elements. Each lane's place is checked by itself. */
static bool access_lane(const run *r, const thread *t, int at, int lane, bool write, uint64_t *v)
{
    const hn_kins *x = &r->f->ins[at];
    const bool indexed = x->op == HN_KOP_GATHER || x->op == HN_KOP_SCATTER;
    const int own = r->f->buf[x->imm].dtype, value = write ? r->f->ins[x->a[1]].dtype : x->dtype;
    const int storage = x->flags & HN_KMEM_RAW ? value : own;
    const int64_t bytes = hn_dtype_bits((hn_dtype)storage) / 8;
    const int64_t index = (int64_t)lanes_of(r, t, x->a[0])[indexed ? lane : 0];
    uint8_t *p = locate(r, at, x->imm, index, indexed ? 0 : lane * bytes, bytes, write);

    if (p && x->flags & HN_KMEM_ALIGNED && lane == 0) p = aligned(r, at, x->imm, p, bytes * n_lanes(r, x));
    if (!p) return false;
    if (write)
        write_lane(p, storage, *v);
    else
        *v = read_lane(p, storage);
    return true;
}

static hone_status memory(const run *r, const thread *t, int at)
{
    const hn_kins *x = &r->f->ins[at];
    const bool write = x->op == HN_KOP_STORE || x->op == HN_KOP_SCATTER;
    const int32_t mask = x->a[write ? 2 : 1];
    const int lanes = n_lanes(r, x);
    uint64_t *v = write ? lanes_of(r, t, x->a[1]) : lanes_of(r, t, at);

    for (int i = 0; i < lanes; i++) {
        if (mask >= 0 && !lanes_of(r, t, mask)[i]) {
            if (!write) v[i] = 0;
            continue;
        }
        if (!access_lane(r, t, at, i, write, &v[i])) return HONE_E_INTERNAL;
    }
    return HONE_OK;
}

/* ---- copies that take their time ---- */
/* Until they are awaited the bytes count as never written: what was there may be gone, what is to come may not be there. */
static hone_status begin_copy(run *r, thread *t, int at)
{
    const hn_kins *x = &r->f->ins[at];
    const int64_t to = x->imm & 0xffffffff, from = x->imm >> 32;
    flight c = { .bytes = x->flags, .group = t->group };

    c.to = locate(r, at, to, (int64_t)*lanes_of(r, t, x->a[0]), 0, c.bytes, true);
    if (!c.to || !aligned(r, at, to, c.to, c.bytes)) return HONE_E_INTERNAL;
    c.written = r->buf[to].written + (c.to - r->buf[to].at);
    memset(c.written, 0, (size_t)c.bytes);
    if (x->a[2] < 0 || *lanes_of(r, t, x->a[2])) {
        uint8_t *src = locate(r, at, from, (int64_t)*lanes_of(r, t, x->a[1]), 0, c.bytes, false);
        if (!src || !aligned(r, at, from, src, c.bytes)) return HONE_E_INTERNAL;
        c.from = src;
    }
    return hn_vec_push(r->tmp, &t->air, c) ? HONE_OK : HN_NOMEM(r->dg);
}

static void await_copies(thread *t, int64_t groups)
{
    int n = 0;

    for (; n < t->air.n && t->air.at[n].group < t->group - groups; n++) {
        const flight *c = &t->air.at[n];
        if (c->from) memcpy(c->to, c->from, (size_t)c->bytes);
        else memset(c->to, 0, (size_t)c->bytes);
        memset(c->written, 1, (size_t)c->bytes);
    }
    if (n) memmove(t->air.at, t->air.at + n, (size_t)(t->air.n - n) * sizeof(*t->air.at));
    t->air.n -= n;
}

/* ---- values ---- */
static uint64_t load_bits(const uint64_t *v, int bits, int64_t first_bit, int n)
{
    uint64_t out = 0;
    for (int i = 0; i < n; i += 8) { /* every dtype here is whole bytes */
        const int64_t bit = first_bit + i;
        out |= (v[bit / bits] >> (bit % bits) & 0xff) << i;
    }
    return out;
}

static void bitcast(const hn_kins *x, int from, const uint64_t *a, uint64_t *v)
{
    const int n = hn_dtype_bits((hn_dtype)x->dtype), m = hn_dtype_bits((hn_dtype)from);
    const bool is_float = hn_dtype_is_float((hn_dtype)x->dtype);

    for (int i = 0; i < x->lanes; i++) {
        const uint64_t bits = load_bits(a, m, (int64_t)i * n, n);
        v[i] = is_float ? bits : hn_klane_norm(x->dtype, bits);
    }
}

/* Of n lanes, `apart` from each other: halves are folded onto each other, so the last to meet are the even lanes' and the odd ones'. */
static uint64_t reduce(int op, int dtype, int n, const uint64_t *a, int apart)
{
    static const int as[] = { HN_KOP_ADD, HN_KOP_MIN, HN_KOP_MAX, HN_KOP_AND, HN_KOP_OR };

    if (n == 1) return *a;
    return hn_klane_bin(as[op - HN_KOP_RADD], dtype, reduce(op, dtype, n / 2, a, 2 * apart), reduce(op, dtype, n / 2, a + apart, 2 * apart));
}

static int64_t saturate16(int64_t v)
{
    return HN_MAX(INT16_MIN, HN_MIN(INT16_MAX, v));
}

static uint64_t dot_bf(uint64_t acc, const uint64_t *x, const uint64_t *y)
{
    float s = hn_lane_f32(acc);

    for (int i = 1; i >= 0; i--) {
        const uint64_t fx = hn_f32_lane(hn_half_to_f32(HN_BF16, (uint16_t)x[i]));
        const uint64_t fy = hn_f32_lane(hn_half_to_f32(HN_BF16, (uint16_t)y[i]));
        s = hn_lane_f32(hn_klane_fma(HN_F32, fx, fy, hn_f32_lane(s)));
    }
    return hn_f32_lane(s);
}

static uint64_t dot(int op, int i, const uint64_t *a, const uint64_t *p, const uint64_t *q)
{
    const int n = op == HN_KOP_DOT4 ? 4 : 2;
    int64_t s = 0;

    if (op == HN_KOP_DOT2BF) return dot_bf(a[i], p + 2 * i, q + 2 * i);
    if (op == HN_KOP_MADDUBS) { /* its operands are a and p */
        for (int k = 0; k < 2; k++)
            s += (int64_t)a[2 * i + k] * (int64_t)p[2 * i + k];
        return hn_klane_norm(HN_I16, (uint64_t)saturate16(s));
    }
    for (int k = 0; k < n; k++)
        s += (int64_t)p[n * i + k] * (int64_t)q[n * i + k];
    return hn_klane_norm(HN_I32, a[i] + (uint64_t)s);
}

static uint64_t lane_value(const run *r, const hn_kins *x, int i, const uint64_t *a, const uint64_t *p,
                           const uint64_t *q)
{
    const int from = x->a[0] >= 0 ? r->f->ins[x->a[0]].dtype : 0;

    switch (x->op) {
    case HN_KOP_CONST:
        return (uint64_t)x->imm;
    case HN_KOP_ARG:
        return (uint64_t)r->arg[x->imm];
    case HN_KOP_FMA:
        return hn_klane_fma(x->dtype, a[i], p[i], q[i]);
    case HN_KOP_SELECT:
        return (r->f->ins[x->a[0]].lanes == 1 ? a[0] : a[i]) ? p[i] : q[i];
    case HN_KOP_CAST:
        return hn_klane_cast(from, x->dtype, a[i]);
    case HN_KOP_SPLAT:
        return a[0];
    case HN_KOP_RAMP:
        return hn_klane_norm(x->dtype, a[0] + (uint64_t)x->imm * (uint64_t)i);
    case HN_KOP_EXTRACT:
        return a[x->imm];
    case HN_KOP_INSERT:
        return i == x->imm ? p[0] : a[i];
    case HN_KOP_SHUFFLE: {
        const int n = r->f->ins[x->a[0]].lanes, from_lane = r->f->pool[x->imm + i];
        return from_lane < n ? a[from_lane] : p[from_lane - n];
    }
    case HN_KOP_UNHALF:
        return hn_f32_lane(hn_half_to_f32(x->flags, (uint16_t)a[i]));
    case HN_KOP_HALF:
        return hn_half_from_f32(x->flags, hn_lane_f32(a[i]));
    case HN_KOP_NOT:
        return x->dtype == HN_BOOL ? !a[i] : hn_klane_un(x->op, x->dtype, a[i]);
    case HN_KOP_DOT4:
    case HN_KOP_DOT2:
    case HN_KOP_MADDUBS:
    case HN_KOP_DOT2BF:
        return dot(x->op, i, a, p, q);
    default:
        return p ? hn_klane_bin(x->op, from, a[i], p[i]) : hn_klane_un(x->op, from, a[i]);
    }
}

/* No operand's lanes are the result's. */
static void compute(const run *r, const thread *t, int at)
{
    const hn_kins *x = &r->f->ins[at];
    const uint64_t *a = x->a[0] >= 0 ? lanes_of(r, t, x->a[0]) : NULL, *p = x->a[1] >= 0 ? lanes_of(r, t, x->a[1]) : NULL;
    const uint64_t *q = x->a[2] >= 0 ? lanes_of(r, t, x->a[2]) : NULL;
    uint64_t *v = lanes_of(r, t, at);

    if (x->op == HN_KOP_BITCAST) {
        bitcast(x, r->f->ins[x->a[0]].dtype, a, v);
    } else if (x->op >= HN_KOP_RADD && x->op <= HN_KOP_ROR) {
        *v = reduce(x->op, x->dtype, r->f->ins[x->a[0]].lanes, a, /* apart= */ 1);
    } else {
        for (int i = 0; i < x->lanes; i++)
            v[i] = lane_value(r, x, i, a, p, q);
    }
}

/* ---- control ---- */
static void enter_for(const run *r, thread *t)
{
    const hn_kins *x = &r->f->ins[t->pc];
    const bool parallel = x->flags == HN_KFOR_PARALLEL;
    const int64_t lo = parallel ? r->lo : (int64_t)*lanes_of(r, t, x->a[0]);
    const int64_t hi = parallel ? r->hi : (int64_t)*lanes_of(r, t, x->a[1]);

    *lanes_of(r, t, t->pc) = (uint64_t)lo;
    t->pc = lo < hi ? t->pc + 1 : (int32_t)x->imm + 1;
}

static void end_block(const run *r, thread *t)
{
    const int32_t head = (int32_t)r->f->ins[t->pc].imm;
    const hn_kins *x = &r->f->ins[head];

    if (x->op == HN_KOP_LOOP) {
        t->pc = head + 1;
        return;
    }
    if (x->op == HN_KOP_FOR) {
        const int64_t hi = x->flags == HN_KFOR_PARALLEL ? r->hi : (int64_t)*lanes_of(r, t, x->a[1]);
        const int64_t i = (int64_t)*lanes_of(r, t, head), by = (int64_t)*lanes_of(r, t, x->a[2]);
        if (by > 0 && i < hi && (uint64_t)by < (uint64_t)hi - (uint64_t)i) {
            *lanes_of(r, t, head) = (uint64_t)(i + by);
            t->pc = head + 1;
            return;
        }
    }
    t->pc++;
}

static hone_status too_long(const run *r)
{
    return HN_RAISE(r->dg, HONE_E_LIMIT, "kernel \"%s\" ran past %" PRId64 " instructions", r->f->name,
                    r->max_steps);
}

static hone_status step(run *r, thread *t)
{
    const int at = t->pc;
    const hn_kins *x = &r->f->ins[at];

    switch (x->op) {
    case HN_KOP_FOR:
        enter_for(r, t);
        return HONE_OK;
    case HN_KOP_END:
        end_block(r, t);
        return HONE_OK;
    case HN_KOP_IF:
        t->pc = *lanes_of(r, t, x->a[0]) ? at + 1 : (int32_t)x->imm + 1;
        return HONE_OK;
    case HN_KOP_ELSE:
        t->pc = (int32_t)x->imm + 1;
        return HONE_OK;
    case HN_KOP_BREAK_IF:
        t->pc = *lanes_of(r, t, x->a[0]) ? r->leave[at] + 1 : at + 1;
        return HONE_OK;
    case HN_KOP_LOOP:
    case HN_KOP_PREFETCH:
    case HN_KOP_DEPEND:
        break;
    case HN_KOP_COPY:
        HN_TRY(begin_copy(r, t, at));
        break;
    case HN_KOP_COMMIT:
        t->group++;
        break;
    case HN_KOP_AWAIT:
        await_copies(t, x->imm);
        break;
    case HN_KOP_VAR:
    case HN_KOP_SET:
    case HN_KOP_GET: {
        const int32_t to = x->op == HN_KOP_SET ? x->a[0] : at, from = x->op == HN_KOP_SET ? x->a[1] : x->a[0];
        const int lanes = x->op == HN_KOP_GET ? x->lanes : r->f->ins[from].lanes;
        memcpy(lanes_of(r, t, to), lanes_of(r, t, from), (size_t)lanes * sizeof(uint64_t));
        break;
    }
    case HN_KOP_LOAD:
    case HN_KOP_GATHER:
    case HN_KOP_STORE:
    case HN_KOP_SCATTER:
        HN_TRY(memory(r, t, at));
        break;
    default:
        compute(r, t, at);
        break;
    }
    t->pc = at + 1;
    return HONE_OK;
}

/* ---- setting up ---- */
static bool layout(run *r)
{
    const hn_kfunc *f = r->f;
    int32_t open[HN_KIR_MAX_DEPTH];
    int depth = 0;

    for (int i = 0; i < f->n_ins; i++) {
        const hn_kins *x = &f->ins[i];
        r->off[i] = r->n_val;
        r->n_val += x->op == HN_KOP_VAR ? f->ins[x->a[0]].lanes : x->lanes;
        if (x->op == HN_KOP_END || x->op == HN_KOP_ELSE) depth--;
        if (x->op == HN_KOP_FOR || x->op == HN_KOP_LOOP || x->op == HN_KOP_IF || x->op == HN_KOP_ELSE)
            open[depth++] = i;
        if (x->op != HN_KOP_BREAK_IF) continue;
        for (int d = depth - 1; d >= 0; d--) {
            if (f->ins[open[d]].op != HN_KOP_FOR && f->ins[open[d]].op != HN_KOP_LOOP) continue;
            r->leave[i] = (int32_t)f->ins[open[d]].imm;
            break;
        }
    }
    return true;
}

static bool bind(run *r, const hn_kmem *param)
{
    for (int i = 0; i < r->f->n_buf; i++) {
        const hn_kbuf *b = &r->f->buf[i];
        area *to = &r->buf[i];
        const int64_t elems = b->kind == HN_KBUF_PARAM ? 0 : hn_kext_eval(&b->elems, r->arg);
        *to = (area){ .bytes = HN_MAX(elems, 0) * (hn_dtype_bits((hn_dtype)b->dtype) / 8),
                      .writable = b->flags & HN_KBUF_WRITE };
        if (b->kind == HN_KBUF_PARAM) {
            to->at = param[b->slot].at;
            to->bytes = param[b->slot].bytes;
        } else if (b->kind == HN_KBUF_TABLE) {
            to->at = (uint8_t *)(uintptr_t)(r->f->data + b->data); /* writable is false */
        } else {
            to->at = hn_arena_alloc(r->tmp, (size_t)to->bytes + 1, 1);
            to->written = hn_arena_alloc(r->tmp, (size_t)to->bytes + 1, 1);
            if (!to->at || !to->written) return false;
        }
        to->readable = to->bytes + (b->kind == HN_KBUF_PARAM ? b->tail_bytes : 0);
    }
    return true;
}

static hone_status check_args(const hn_kfunc *f, const int64_t *arg, hn_diag *dg)
{
    for (int i = 0; i < f->n_arg; i++) {
        const hn_karg *a = &f->arg[i];
        if (arg[i] < a->lo || arg[i] > a->hi || arg[i] % a->div)
            return HN_RAISE(dg, HONE_E_INVALID,
                            "argument \"%s\" of kernel \"%s\" is %" PRId64 ", outside [%" PRId64 ", %" PRId64
                            "] or not a multiple of %" PRId64,
                            f->names + a->name, f->name, arg[i], a->lo, a->hi, a->div);
    }
    return HONE_OK;
}

/* ---- gpu blocks ---- */
static bool is_thread_loop(const hn_kins *x)
{
    return x->op == HN_KOP_FOR && x->flags >= HN_KFOR_THREAD_X;
}

static int n_threads(const hn_kfunc *f)
{
    return f->threads[0] * f->threads[1] * f->threads[2];
}

static hone_status make_team(run *r)
{
    const int n = n_threads(r->f);

    if (r->team) return HONE_OK;
    thread *team = HN_NEW_N(r->tmp, thread, n);
    for (int i = 0; i < n && team; i++)
        if (!(team[i].val = HN_NEW_N(r->tmp, uint64_t, r->n_val + 1))) return HN_NOMEM(r->dg);
    r->team = team;
    return team ? HONE_OK : HN_NOMEM(r->dg);
}

/* One more thread, like `from`, that enters the thread loop at `at` with index i. */
static void enter_thread(run *r, const thread *from, thread *to, int32_t at, int i)
{
    if (to != from) {
        memcpy(to->val, from->val, (size_t)r->n_val * sizeof(*to->val));
        memcpy(to->id, from->id, sizeof(to->id));
    }
    to->id[r->f->ins[at].flags - HN_KFOR_THREAD_X] = i;
    *lanes_of(r, to, at) = (uint64_t)i;
    to->pc = at + 1;
    to->state = RUNNING;
    to->air.n = to->group = 0;
}

/* Run until the thread waits for others or leaves the outermost thread loop; inner ones add threads to the
 * team. */
static hone_status run_thread(run *r, thread *t, int *n, int32_t outer)
{
    while (t->state == RUNNING) {
        const int32_t at = t->pc;
        const hn_kins *x = &r->f->ins[at];
        if (++r->steps > r->max_steps) return too_long(r);
        if (x->op == HN_KOP_BARRIER || hn_kir_by_warp(x->op)) {
            t->state = WAITING;
        } else if (is_thread_loop(x)) {
            const int count = r->f->threads[x->flags - HN_KFOR_THREAD_X];
            for (int i = count - 1; i > 0; i--)
                enter_thread(r, t, &r->team[(*n)++], at, i);
            enter_thread(r, t, t, at, 0);
        } else if (x->op == HN_KOP_END && is_thread_loop(&r->f->ins[x->imm])) {
            if (x->imm == outer)
                t->state = DONE;
            else
                t->pc++;
        } else {
            HN_TRY(step(r, t));
        }
    }
    return HONE_OK;
}

static int linear_id(const run *r, const thread *t)
{
    return t->id[0] + r->f->threads[0] * (t->id[1] + r->f->threads[1] * t->id[2]);
}

static void shuffle(const run *r, thread *const *warp, int n, int32_t at)
{
    const hn_kins *x = &r->f->ins[at];

    for (int i = 0; i < n; i++) {
        const int other = x->op == HN_KOP_SHFL_XOR ? i ^ (int)x->imm : i + (int)x->imm;
        memcpy(lanes_of(r, warp[i], at), lanes_of(r, warp[other < n ? other : i], x->a[0]),
               x->lanes * sizeof(uint64_t));
    }
}

static void multiply_tiles(const run *r, thread *const *warp, int32_t at)
{
    const hn_kins *x = &r->f->ins[at];
    const uint64_t *in[32][3];
    uint64_t out[32][4];

    for (int i = 0; i < 32; i++)
        for (int k = 0; k < 3; k++)
            in[i][k] = lanes_of(r, warp[i], x->a[k]);
    hn_kwarp_mma(x->flags, in, out);
    for (int i = 0; i < 32; i++)
        memcpy(lanes_of(r, warp[i], at), out[i], sizeof(out[i]));
}

static hone_status load_matrices(const run *r, thread *const *warp, int32_t at)
{
    const hn_kins *x = &r->f->ins[at];

    for (int j = 0; j < x->lanes; j++) {
        const uint8_t *row[8] = { 0 };
        for (int i = 0; i < 8; i++) {
            uint8_t *p = locate(r, at, x->imm, (int64_t)*lanes_of(r, warp[8 * j + i], x->a[0]), 0, 16, false);
            if (!p || !aligned(r, at, x->imm, p, 16)) return HONE_E_INTERNAL;
            row[i] = p;
        }
        for (int i = 0; i < 32; i++)
            lanes_of(r, warp[i], at)[j] = hn_kwarp_matrix_word(row, i, x->flags);
    }
    return HONE_OK;
}

/* Go on in one warp if all of it waits at one operation that it does together. */
static hone_status exchange(run *r, thread *const *warp, int n, bool *ret_any)
{
    const int32_t at = warp[0]->pc;
    const int op = r->f->ins[at].op;

    if (!hn_kir_by_warp(op) || (op >= HN_KOP_MMA && n < 32)) return HONE_OK;
    for (int i = 0; i < n; i++)
        if (warp[i]->state != WAITING || warp[i]->pc != at) return HONE_OK;
    if (op == HN_KOP_MMA) multiply_tiles(r, warp, at);
    else if (op == HN_KOP_LDMATRIX) HN_TRY(load_matrices(r, warp, at));
    else shuffle(r, warp, n, at);
    for (int i = 0; i < n; i++) {
        warp[i]->pc++;
        warp[i]->state = RUNNING;
    }
    *ret_any = true;
    return HONE_OK;
}

static hone_status exchange_warps(run *r, thread *const *by_id, int n, bool *ret_any)
{
    *ret_any = false;
    for (int first = 0; first < n; first += 32)
        HN_TRY(exchange(r, by_id + first, HN_MIN(32, n - first), ret_any));
    return HONE_OK;
}

static bool release_barrier(run *r, int n)
{
    const int32_t at = r->team[0].pc;

    for (int i = 0; i < n; i++)
        if (r->team[i].state != WAITING || r->team[i].pc != at || r->f->ins[at].op != HN_KOP_BARRIER)
            return false;
    for (int i = 0; i < n; i++) {
        r->team[i].pc++;
        r->team[i].state = RUNNING;
    }
    return true;
}

static hone_status run_block(run *r, thread *parent)
{
    const int32_t outer = parent->pc;
    const int most = n_threads(r->f);
    thread *by_id[1024];
    int n = 0, done = 0;

    HN_TRY(make_team(r));
    for (int i = 0; i < r->f->threads[r->f->ins[outer].flags - HN_KFOR_THREAD_X]; i++)
        enter_thread(r, parent, &r->team[n++], outer, i);
    while (done < n) {
        for (int i = 0; i < n; i++)
            HN_TRY(run_thread(r, &r->team[i], &n, outer));
        for (int i = done = 0; i < n; i++)
            done += r->team[i].state == DONE;
        if (done == n) break;
        for (int i = 0; i < n; i++)
            by_id[linear_id(r, &r->team[i])] = &r->team[i];
        bool any = false;
        if (n == most) HN_TRY(exchange_warps(r, by_id, n, &any));
        if (n == most && (any || release_barrier(r, n))) continue;
        return HN_RAISE(r->dg, HONE_E_INTERNAL,
                        "kernel \"%s\": threads part ways around a barrier or shuffle", r->f->name);
    }
    parent->pc = (int32_t)r->f->ins[outer].imm + 1;
    return HONE_OK;
}

static hone_status execute(run *r)
{
    thread t = { .pc = 0, .val = HN_NEW_N(r->tmp, uint64_t, r->n_val + 1) };

    if (!t.val) return HN_NOMEM(r->dg);
    while (t.pc < r->f->n_ins) {
        if (++r->steps > r->max_steps) return too_long(r);
        HN_TRY(is_thread_loop(&r->f->ins[t.pc]) ? run_block(r, &t) : step(r, &t));
    }
    return HONE_OK;
}

hone_status hn_kfunc_run(const hn_kfunc *f, const hn_kmem *buf, const int64_t *arg, int64_t lo, int64_t hi,
                         int64_t max_steps, hn_diag *dg)
{
    hone_status s;

    HN_TRY(hn_kfunc_verify(f, dg));
    HN_TRY(check_args(f, arg, dg));
    hn_arena *tmp = hn_arena_create();
    if (!tmp) return HN_NOMEM(dg);
    run r = { .f = f,
              .arg = arg,
              .lo = lo,
              .hi = hi,
              .max_steps = max_steps > 0 ? max_steps : 1ll << 40,
              .dg = dg,
              .tmp = tmp };
    r.buf = HN_NEW_N(tmp, area, f->n_buf + 1);
    r.off = HN_NEW_N(tmp, int64_t, f->n_ins + 1);
    r.leave = HN_NEW_N(tmp, int32_t, f->n_ins + 1);
    if (!r.buf || !r.off || !r.leave || !layout(&r) || !bind(&r, buf))
        s = HN_NOMEM(dg);
    else
        s = execute(&r);
    hn_arena_destroy(tmp);
    return s;
}
