#include "runtime/streams.h"

#include "base/attr.h"

void hn_streams_init(hn_streams *s, hn_arena *a, uint32_t n_stream, bool apart)
{
    *s = (hn_streams){ .arena = a, .n_stream = n_stream + apart, .n_open = n_stream };
    for (uint32_t i = 0; i < HN_MOST_STREAMS; i++)
        s->last[i] = -1;
}

void hn_streams_touch(hn_streams *s, const void *at, int64_t n, bool write)
{
    const uintptr_t lo = (uintptr_t)at;
    if (n > 0) (void)hn_vec_push(s->arena, &s->now, ((hn_stream_touch){ lo, lo + (uintptr_t)n, (uint32_t)s->step.n, write }));
}

/* ---- what a step comes after ---- */
static bool meet(const hn_stream_touch *a, const hn_stream_touch *b)
{
    return (a->write || b->write) && a->lo < b->hi && b->lo < a->hi;
}

static void come_after(hn_stream_clock *c, const hn_stream_clock *other)
{
    for (int i = 0; i < HN_MOST_STREAMS; i++)
        c->n[i] = HN_MAX(c->n[i], other->n[i]);
}

/* Place of a step in its stream, from 1. */
static uint32_t place_of(const hn_stream_step *x)
{
    return x->after.n[x->stream];
}

/* By stream the last step to wait for, -1 for none. */
static void find_waits(const hn_streams *s, int64_t wait[HN_MOST_STREAMS])
{
    for (int i = 0; i < HN_MOST_STREAMS; i++)
        wait[i] = -1;
    for (int k = 0; k < s->touch.n; k++)
        for (int j = 0; j < s->now.n; j++) {
            const hn_stream_touch *const old = &s->touch.at[k];
            const uint32_t on = s->step.at[old->step].stream;
            if (meet(old, &s->now.at[j])) wait[on] = HN_MAX(wait[on], (int64_t)old->step);
        }
}

/* ---- where it goes ---- */
/* A stream that adds no wait: its last step is among those that this one comes after; of several the one with the latest, for
 * its results are nearest. Else the one that has been left alone longest. */
static uint32_t choose(const hn_streams *s, const hn_stream_clock *after)
{
    int64_t best = -1, oldest = 0;

    for (uint32_t i = 0; i < s->n_open; i++) {
        const bool open = s->last[i] < 0 || place_of(&s->step.at[s->last[i]]) <= after->n[i];
        if (open && (best < 0 || s->last[i] > s->last[best])) best = i;
        if (s->last[i] < s->last[oldest]) oldest = i;
    }
    return (uint32_t)(best < 0 ? oldest : best);
}

/* Does the clock of another wait imply that of stream i? */
static bool implied(const hn_streams *s, const int64_t wait[HN_MOST_STREAMS], uint32_t i)
{
    const uint32_t place = place_of(&s->step.at[wait[i]]);

    for (uint32_t k = 0; k < s->n_stream; k++)
        if (k != i && wait[k] >= 0 && s->step.at[wait[k]].after.n[i] >= place) return true;
    return false;
}

/* ---- what later steps may meet ---- */
static bool covers(const hn_streams *s, const hn_stream_touch *old)
{
    for (int j = 0; j < s->now.n; j++)
        if (s->now.at[j].write && s->now.at[j].lo <= old->lo && old->hi <= s->now.at[j].hi) return true;
    return false;
}

/* What meets an old touch of bytes that this step writes meets this step, which comes after the old one. */
static void remember(hn_streams *s)
{
    int n = 0;

    for (int k = 0; k < s->touch.n; k++)
        if (!covers(s, &s->touch.at[k])) s->touch.at[n++] = s->touch.at[k];
    s->touch.n = n;
    for (int j = 0; j < s->now.n; j++)
        (void)hn_vec_push(s->arena, &s->touch, s->now.at[j]);
    s->now.n = 0;
}

void hn_streams_add(hn_streams *s, bool apart, uint32_t ret_wait[HN_MOST_STREAMS], uint32_t *ret_n)
{
    int64_t wait[HN_MOST_STREAMS];
    hn_stream_step x = { 0 };

    find_waits(s, wait);
    for (uint32_t i = 0; i < s->n_stream; i++)
        if (wait[i] >= 0) come_after(&x.after, &s->step.at[wait[i]].after);
    x.stream = apart ? s->n_open : choose(s, &x.after);
    if (s->last[x.stream] >= 0) {
        wait[x.stream] = s->last[x.stream];
        come_after(&x.after, &s->step.at[s->last[x.stream]].after);
    }
    *ret_n = 0;
    for (uint32_t i = 0; i < s->n_stream; i++)
        if (wait[i] >= 0 && !implied(s, wait, i)) ret_wait[(*ret_n)++] = (uint32_t)wait[i];
    x.after.n[x.stream]++;
    s->last[x.stream] = s->step.n;
    if (hn_vec_push(s->arena, &s->step, x)) remember(s);
    else s->last[x.stream] = -1;
}
