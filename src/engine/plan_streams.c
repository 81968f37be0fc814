/* Buffers of a plan that runs on several streams: a step that may run beside a buffer's users must not find its own result in the
 * same place, or the two would have to take turns. */
#include "base/attr.h"
#include "engine/plan_builder_int.h"

enum { REACH = 64 }; /* steps that are looked back on, bits of a word: beyond them buffers are shared as in a run in order, so that
                        a long branch does not keep all that ran beside it */

void hn_pb_streams(hn_pb *b, uint32_t n)
{
    if (n < 1 || n > HN_PLAN_MAX_STREAMS) b->misuse = "a number of streams that there are not";
    else b->n_stream = n;
}

/* A buffer, not a part of one, with what step i does to it: of entries k from 0, HN_NO after the last. */
static uint32_t used(const hn_pb *b, int i, uint32_t k)
{
    const hn_step *s = &b->step.at[i];
    uint32_t e = HN_NO;

    if (s->kind == HN_STEP_KERNEL && k < s->u.kernel.n_buf) e = b->list.at[s->u.kernel.buf + k];
    if (s->kind == HN_STEP_COPY && k < 2) e = k ? s->u.copy.src | HN_ARG_READ : s->u.copy.dst | HN_ARG_WRITE;
    if (e == HN_NO || HN_ARG_BUF(e) >= (uint32_t)b->buf.n) return HN_NO; /* validation says so */
    const hn_plan_buf *x = &b->buf.at[HN_ARG_BUF(e)];
    return x->kind == HN_BUF_PART ? x->ref | (e & (HN_ARG_READ | HN_ARG_WRITE)) : e;
}

static bool keep_order(const hn_pb *b, int i, int j)
{
    for (uint32_t k = 0, e; (e = used(b, i, k)) != HN_NO; k++)
        for (uint32_t l = 0, f; (f = used(b, j, l)) != HN_NO; l++)
            if (HN_ARG_BUF(e) == HN_ARG_BUF(f) && ((e | f) & HN_ARG_WRITE)) return true;
    return false;
}

/* Bit k: step i comes after step i - 1 - k. */
static uint64_t before(const hn_pb *b, const uint64_t *known, int i)
{
    uint64_t m = 0;

    for (int k = 0; k < REACH && k < i; k++) {
        if (!(m >> k & 1) && !keep_order(b, i, i - 1 - k)) continue;
        m |= (uint64_t)1 << k;
        if (k + 1 < REACH) m |= known[i - 1 - k] << (k + 1);
    }
    return m;
}

/* What step j uses is kept until step i, which may run beside it. */
static void keep(hn_pb *b, int j, int i)
{
    for (uint32_t k = 0, e; (e = used(b, j, k)) != HN_NO; k++) {
        hn_plan_buf *const x = &b->buf.at[HN_ARG_BUF(e)];
        if (x->kind == HN_BUF_ARENA) x->last = HN_MAX(x->last, (uint32_t)i);
    }
}

static bool launches(const hn_pb *b, int i)
{
    return used(b, i, 0) != HN_NO;
}

/* Each pair of steps that may run at once, the earlier one first, until `take` has had enough. */
static bool each_pair(hn_pb *b, bool (*take)(hn_pb *b, int j, int i))
{
    uint64_t *const m = HN_NEW_N(b->arena, uint64_t, b->step.n + 1);

    for (int i = 0; m && i < b->step.n; i++) {
        m[i] = before(b, m, i);
        for (int k = 0; k < REACH && k < i && launches(b, i); k++)
            if (!(m[i] >> k & 1) && launches(b, i - 1 - k) && take(b, i - 1 - k, i)) return true;
    }
    return false;
}

static bool keep_pair(hn_pb *b, int j, int i)
{
    keep(b, j, i);
    return false;
}

static bool is_pair(hn_pb *b, int j, int i)
{
    (void)b, (void)j, (void)i;
    return true;
}

void hn_pb_keep_apart(hn_pb *b)
{
    (void)each_pair(b, keep_pair);
}

bool hn_pb_branches(hn_pb *b)
{
    return each_pair(b, is_pair);
}
