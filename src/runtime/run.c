/* The step loop. */
#include <string.h>

#include "core/core.h"
#include "runtime/runtime_int.h"

static hone_status run_range(hn_context *c, uint32_t i, uint32_t end, hn_diag *dg);

/* ---- buffers ---- */
static hone_status bad_part(const hn_context *c, uint32_t buf, hn_diag *dg)
{
    const hn_plan_buf *x = &c->plan->buf[buf];
    return HN_RAISE(dg, HONE_E_SHAPE, "\"%s\" would take bytes %lld to %lld of \"%s\", which has %lld",
                    hn_buf_name(c, buf), (long long)c->reg[x->offset_reg],
                    (long long)c->reg[x->offset_reg] + (long long)c->reg[x->size], hn_buf_name(c, x->ref),
                    (long long)c->buf[x->ref].bytes);
}

static hone_status bad_size(const hn_context *c, uint32_t buf, hn_diag *dg)
{
    hn_negative_size(c, buf, c->buf[buf].bytes, dg);
    return HONE_E_SHAPE;
}

/* Address and size of a buffer now. */
static hone_status locate(const hn_context *c, uint32_t buf, uint8_t **ret, int64_t *ret_bytes, hn_diag *dg)
{
    const hn_plan_buf *x = &c->plan->buf[buf];
    const hn_buf_state *st = &c->buf[buf];

    if (x->kind != HN_BUF_PART) {
        *ret = st->ptr, *ret_bytes = st->bytes;
        return HN_UNLIKELY(st->bytes < 0) ? bad_size(c, buf, dg) : HONE_OK;
    }
    const int64_t at = c->reg[x->offset_reg], bytes = c->reg[x->size];
    const hn_buf_state *whole = &c->buf[x->ref];
    if (HN_UNLIKELY(at < 0 || bytes < 0 || at > whole->bytes || bytes > whole->bytes - at))
        return bad_part(c, buf, dg);
    *ret = whole->ptr ? whole->ptr + at : NULL, *ret_bytes = bytes;
    return HONE_OK;
}

/* ---- steps ---- */
/* Scratch of a size that only this run shows, such as that of suppressing the boxes that another suppression left: kept from then on. */
static hone_status more_scratch(hn_context *c, int64_t bytes, hn_diag *dg)
{
    HN_TRY(hn_queue_sync(c->queue, dg));
    HN_TRY(hn_queue_reserve(c->queue, (size_t)bytes, dg));
    c->scratch_bytes = bytes;
    return HONE_OK;
}

/* For the order of a recording; weights that stay are never written. */
static void touch(hn_context *c, uint32_t buf, const void *at, int64_t bytes, bool write)
{
    const hn_plan_buf *x = &c->plan->buf[buf], *whole = x->kind == HN_BUF_PART ? &c->plan->buf[x->ref] : x;
    if (whole->kind != HN_BUF_WEIGHT || hn_weight_waits(c->engine, whole->ref))
        hn_streams_touch(&c->branching->streams, at, bytes, write);
}

static hone_status run_kernel(hn_context *c, const hn_step *s, hn_diag *dg)
{
    const hn_plan *p = c->plan;
    const uint32_t *buf = &p->list[s->u.kernel.buf], *arg = &p->list[s->u.kernel.arg];
    uint8_t *at = NULL;
    int64_t bytes = 0;
    hn_launch l = {
        .name = hn_plan_str(p, p->kernel[s->u.kernel.kernel].name),
        .entry = p->kernel[s->u.kernel.kernel].entry,
        .buf = c->arg_buf,
        .arg = c->arg_reg,
        .n_buf = s->u.kernel.n_buf,
        .n_arg = s->u.kernel.n_arg,
        .extent = c->reg[s->u.kernel.extent],
        .grain = s->u.kernel.grain,
        .trip_ps = c->reg[s->u.kernel.trip_ps],
        .max_threads = (int)HN_MIN(s->u.kernel.max_threads, (uint32_t)INT32_MAX),
        .scratch_bytes = s->u.kernel.scratch == HN_NO ? 0 : c->reg[s->u.kernel.scratch],
    };

    if (l.extent <= 0) return HONE_OK;
    if (HN_UNLIKELY(l.scratch_bytes > c->scratch_bytes)) HN_TRY(more_scratch(c, l.scratch_bytes, dg));
    for (uint32_t i = 0; i < l.n_buf; i++) {
        HN_TRY(locate(c, HN_ARG_BUF(buf[i]), &at, &bytes, dg));
        c->arg_buf[i] = at;
        if (HN_UNLIKELY(c->branching)) touch(c, HN_ARG_BUF(buf[i]), at, bytes, buf[i] & HN_ARG_WRITE);
    }
    for (uint32_t i = 0; i < l.n_arg; i++)
        c->arg_reg[i] = c->reg[arg[i]];
    HN_TRY(hn_branch_begin(c, /* apart= */ false, dg));
    HN_TRY(hn_queue_launch(c->queue, c->engine->module, &l, dg));
    return hn_branch_end(c, dg);
}

static int64_t reg_or_zero(const hn_context *c, uint32_t r)
{
    return r == HN_NO ? 0 : c->reg[r];
}

/* Bytes [off, off + n) of a buffer, checked. */
static hone_status slice(const hn_context *c, uint32_t buf, int64_t off, int64_t n, uint8_t **ret,
                         hn_diag *dg)
{
    uint8_t *at = NULL;
    int64_t bytes = 0;

    HN_TRY(locate(c, buf, &at, &bytes, dg));
    if (off < 0 || n < 0 || off > bytes || n > bytes - off)
        return HN_RAISE(dg, HONE_E_SHAPE, "bytes %lld to %lld of \"%s\", which has %lld", (long long)off,
                        (long long)(off + n), hn_buf_name(c, buf), (long long)bytes);
    *ret = at ? at + off : NULL;
    return HONE_OK;
}

static hone_status run_copy(hn_context *c, const hn_step *s, hn_diag *dg)
{
    const int64_t n = c->reg[s->u.copy.bytes];
    uint8_t *dst, *src;

    HN_TRY(slice(c, s->u.copy.dst, reg_or_zero(c, s->u.copy.dst_off), n, &dst, dg));
    HN_TRY(slice(c, s->u.copy.src, reg_or_zero(c, s->u.copy.src_off), n, &src, dg));
    if (n == 0) return HONE_OK;
    if (HN_UNLIKELY(c->branching)) {
        touch(c, s->u.copy.src, src, n, false);
        touch(c, s->u.copy.dst, dst, n, true);
    }
    HN_TRY(hn_branch_begin(c, /* apart= */ false, dg));
    HN_TRY(hn_queue_copy(c->queue, dst, src, (size_t)n, dg));
    return hn_branch_end(c, dg);
}

static hone_status run_read(hn_context *c, const hn_step *s, hn_diag *dg)
{
    const uint32_t t = s->u.read.dtype;
    const int64_t size = hn_dtype_bits((hn_dtype)t) / 8, elem = reg_or_zero(c, s->u.read.elem);
    union {
        int64_t i64;
        int32_t i32;
        uint8_t u8;
    } v = { 0 };
    uint8_t *at = NULL;

    if (elem < 0 || elem > INT64_MAX / 8)
        return HN_RAISE(dg, HONE_E_SHAPE, "element %lld of \"%s\"", (long long)elem,
                        hn_buf_name(c, s->u.read.buf));
    HN_TRY(slice(c, s->u.read.buf, elem * size, size, &at, dg));
    HN_TRY(hn_queue_read(c->queue, &v, at, (size_t)size, dg));
    c->reg[s->u.read.reg] = t == HN_I64 ? v.i64 : t == HN_I32 ? v.i32 : t == HN_BOOL ? v.u8 != 0 : v.u8;
    return HONE_OK;
}

/* ---- memory that grows ---- */
static hone_status grow(hn_context *c, uint32_t buf, int64_t bytes, int64_t keep, hn_diag *dg)
{
    hn_buf_state *const st = &c->buf[buf];

    if (bytes < 0) return hn_negative_size(c, buf, bytes, dg);
    const hn_io_state *io = c->plan->buf[buf].kind == HN_BUF_OUTPUT ? &c->io[c->plan->buf[buf].ref] : NULL;
    if (!io || !io->bound || (io->remote && bytes <= io->capacity)) {
        HN_TRY(hn_heap_resize(c, buf, bytes, keep, dg));
    } else if (bytes > io->capacity) {
        hn_hint(dg, "Leave the output unbound and the context makes room for it.");
        return HN_RAISE(dg, HONE_E_INVALID, "output \"%s\" needs %lld bytes, %lld are bound",
                        hn_buf_name(c, buf), (long long)bytes, (long long)io->capacity);
    } else {
        st->ptr = io->bound;
    }
    st->bytes = bytes;
    return HONE_OK;
}

static hone_status run_alloc(hn_context *c, const hn_step *s, hn_diag *dg)
{
    for (uint32_t k = 0; k < s->u.alloc.n; k++) {
        const uint32_t buf = c->plan->list[s->u.alloc.first + k];
        HN_TRY(grow(c, buf, c->reg[c->plan->buf[buf].size], 0, dg));
    }
    return HONE_OK;
}

static hone_status run_append(hn_context *c, const hn_step *s, hn_diag *dg)
{
    const int64_t n = c->reg[s->u.append.bytes], old = c->buf[s->u.append.dst].bytes;
    int64_t sum;
    uint8_t *src;

    HN_TRY(slice(c, s->u.append.src, 0, n, &src, dg));
    if (__builtin_add_overflow(old, n, &sum)) sum = -1;
    HN_TRY(grow(c, s->u.append.dst, sum, old, dg));
    HN_TRY(slice(c, s->u.append.src, 0, n, &src, dg)); /* again: it may be part of what moved */
    return n ? hn_queue_copy(c->queue, c->buf[s->u.append.dst].ptr + old, src, (size_t)n, dg) : HONE_OK;
}

/* ---- images ---- */
static hone_status run_image(hn_context *c, const hn_step *s, hn_diag *dg)
{
    const bool decode = s->u.image.what == HN_IMAGE_STEP_DECODE;
    hn_image_job j = { .decode = decode, .order = s->u.image.order, .n = c->reg[s->u.image.bytes] };
    if (decode) {
        j.h = c->reg[s->u.image.h], j.w = c->reg[s->u.image.w];
        if (j.h < 0 || j.w < 0 || j.h > INT32_MAX || j.w > INT32_MAX)
            return HN_RAISE(dg, HONE_E_SHAPE, "an image of %lld by %lld pixels", (long long)j.h, (long long)j.w);
    }
    HN_TRY(slice(c, s->u.image.src, 0, j.n, &j.src, dg));
    HN_TRY(slice(c, s->u.image.dst, 0, hn_image_job_bytes(&j), &j.dst, dg));
    return hn_image_run(c, &j, dg);
}

/* ---- blocks ---- */
static hone_status run_if(hn_context *c, const hn_step *s, uint32_t i, hn_diag *dg)
{
    const uint32_t then = i + 1, otherwise = then + s->u.branch.n_then;

    if (c->reg[s->u.branch.cond]) return run_range(c, then, otherwise, dg);
    return run_range(c, otherwise, otherwise + s->u.branch.n_else, dg);
}

static void trade(hn_context *c, const hn_step *s)
{
    for (uint32_t k = 0; k < s->u.loop.n_carry; k++) {
        const uint32_t *pair = &c->plan->list[s->u.loop.carry + 2 * k];
        const hn_buf_state t = c->buf[pair[0]];
        c->buf[pair[0]] = c->buf[pair[1]];
        c->buf[pair[1]] = t;
    }
}

static hone_status run_loop(hn_context *c, const hn_step *s, uint32_t i, hn_diag *dg)
{
    int64_t turn = 0;

    for (;; turn++) {
        if (s->u.loop.trip != HN_NO && turn >= c->reg[s->u.loop.trip]) break;
        if (s->u.loop.cond != HN_NO && !c->reg[s->u.loop.cond]) break;
        if (s->u.loop.iter != HN_NO) c->reg[s->u.loop.iter] = turn;
        if (s->u.loop.iter_buf != HN_NO)
            HN_TRY(hn_queue_write(c->queue, c->buf[s->u.loop.iter_buf].ptr, &turn, sizeof(turn), dg));
        HN_TRY(run_range(c, i + 1, i + 1 + s->u.loop.n_body, dg));
        trade(c, s);
        if (atomic_load_explicit(&c->cancelled, memory_order_relaxed))
            return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled in turn %lld of a loop", (long long)turn);
    }
    if (s->u.loop.iter != HN_NO) c->reg[s->u.loop.iter] = turn;
    if (s->u.loop.iter_buf == HN_NO) return HONE_OK;
    return hn_queue_write(c->queue, c->buf[s->u.loop.iter_buf].ptr, &turn, sizeof(turn), dg);
}

static hone_status run_step(hn_context *c, const hn_step *s, uint32_t i, hn_diag *dg)
{
    if (HN_UNLIKELY(c->engine->ring_bytes)) HN_TRY(hn_ring_fetch(c, s, dg));
    switch ((hn_step_kind)s->kind) {
    case HN_STEP_KERNEL: return run_kernel(c, s, dg);
    case HN_STEP_COPY: return run_copy(c, s, dg);
    case HN_STEP_READ: return run_read(c, s, dg);
    case HN_STEP_SHAPE: return hn_shape_run(c, s->u.shape.first, s->u.shape.n, dg);
    case HN_STEP_ALLOC: return run_alloc(c, s, dg);
    case HN_STEP_APPEND: return run_append(c, s, dg);
    case HN_STEP_IF: return run_if(c, s, i, dg);
    case HN_STEP_LOOP: return run_loop(c, s, i, dg);
    case HN_STEP_IMAGE: return run_image(c, s, dg);
    }
    return HN_RAISE(dg, HONE_E_INTERNAL, "step kind %u", s->kind);
}

static hone_status run_timed(hn_context *c, const hn_step *s, uint32_t i, hn_diag *dg)
{
    const int64_t t0 = hn_queue_now_ns(c->queue);
    HN_TRY(run_step(c, s, i, dg));
    const int64_t ns = hn_queue_now_ns(c->queue) - t0;
    hn_step_time *const t = &c->time[i];

    t->n_run++;
    t->sum_ns += ns;
    t->min_ns = HN_MIN(t->min_ns, ns);
    t->threads = hn_queue_threads(c->queue);
    return HONE_OK;
}

uint32_t hn_steps_inside(const hn_step *s)
{
    if (s->kind == HN_STEP_IF) return s->u.branch.n_then + s->u.branch.n_else;
    return s->kind == HN_STEP_LOOP ? s->u.loop.n_body : 0;
}

void hn_step_frame(const hn_context *c, uint32_t step, hn_diag *dg)
{
    const hn_step *s = &c->plan->step[step];
    const char *origin = hn_plan_str(c->plan, s->origin);
    hn_diag_frame(dg, "step %u (%s%s%s)", step, hn_step_kind_name(s->kind), *origin ? ", from " : "", origin);
}

/* Overwrite the buffers whose life began in this block and ended in the step at i or inside it, so that a
 * plan that frees too early gives wrong numbers in every run and not only in unlucky ones. */
static void poison(hn_context *c, uint32_t block, uint32_t i, uint32_t last)
{
    for (uint32_t b = 0; b < c->plan->n_buf; b++) {
        const hn_plan_buf *x = &c->plan->buf[b];
        if (x->kind == HN_BUF_ARENA && x->first >= block && x->last >= i && x->last <= last &&
            c->buf[b].bytes > 0)
            memset(c->buf[b].ptr, 0xff, (size_t)c->buf[b].bytes);
    }
}

static hone_status run_range(hn_context *c, uint32_t i, uint32_t end, hn_diag *dg)
{
    const uint32_t block = i;

    while (i < end) {
        const hn_step *s = &c->plan->step[i];
        if (HN_UNLIKELY(atomic_load_explicit(&c->cancelled, memory_order_relaxed)))
            return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled before step %u of %u", i, c->plan->n_step);
        const hone_status e = HN_UNLIKELY(c->profiling) ? run_timed(c, s, i, dg) : run_step(c, s, i, dg);
        if (HN_UNLIKELY(e)) {
            if (e != HONE_E_CANCELLED) hn_step_frame(c, i, dg);
            return e;
        }
        if (HN_UNLIKELY(c->poison)) poison(c, block, i, i + hn_steps_inside(s));
        i += 1 + hn_steps_inside(s);
    }
    return HONE_OK;
}

/* ---- a run ---- */
static void forget_last_run(hn_context *c)
{
    const hn_plan *p = c->plan;

    if (!c->engine->has_late) return; /* no register changed, and nothing was sized while running */
    memcpy(c->reg, c->reg0, p->n_reg * sizeof(*c->reg));
    for (uint32_t i = 0; i < p->n_buf; i++)
        if (p->buf[i].kind == HN_BUF_HEAP || (p->buf[i].flags & HN_BUF_GROWS)) c->buf[i].bytes = 0;
}

hone_status hn_segment_run(hn_context *c, uint32_t k, hn_diag *dg)
{
    hn_ring_reset(c);
    return run_range(c, c->engine->segment[k].first, c->engine->segment[k].end, dg);
}

static hone_status run_steps(hn_context *c, hn_diag *dg)
{
    hn_recordings_check(c);
    for (uint32_t k = 0; k < c->engine->n_segment; k++) {
        const bool repeats = c->engine->segment[k].recorded && !c->profiling;
        HN_TRY(repeats ? hn_segment_replay(c, k, dg) : hn_segment_run(c, k, dg));
    }
    return HONE_OK;
}

static hone_status run_between(hn_context *c, hn_diag *dg)
{
    HN_TRY(hn_inputs_ready(c, dg));
    HN_TRY(run_steps(c, dg));
    return hn_outputs_fetch(c, dg);
}

hone_status hn_context_run(hn_context *c, hn_diag *dg)
{
    HN_TRY(hn_context_prepare(c, dg));
    HN_TRY(hn_outputs_ready(c, dg));
    forget_last_run(c);
    c->ran = false;
    atomic_store_explicit(&c->cancelled, false, memory_order_relaxed);
    if (c->poison && c->arena) memset(c->arena, 0xff, (size_t)c->arena_bytes);
    hn_queue_begin(c->queue);
    const hone_status s = run_between(c, dg);
    if (HN_UNLIKELY(s)) hn_faults_explain(c, dg);
    hn_queue_end(c->queue);
    c->ran = s == HONE_OK;
    return s;
}

void hn_context_cancel(hn_context *c)
{
    atomic_store_explicit(&c->cancelled, true, memory_order_relaxed);
}
