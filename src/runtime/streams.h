/* Which of a run's steps may run side by side: steps in program order, each with the memory that it touches, to streams and
 * what each has to wait for. */
#ifndef HN_RUNTIME_STREAMS_H
#define HN_RUNTIME_STREAMS_H

#include "base/arena.h"
#include "engine/plan.h"

enum { HN_MOST_STREAMS = HN_PLAN_MAX_STREAMS + 1 }; /* one more for weights on their way */

/* Counts steps of every stream that a step comes after, its own included. */
typedef struct hn_stream_clock {
    uint32_t n[HN_MOST_STREAMS];
} hn_stream_clock;

typedef struct hn_stream_step {
    hn_stream_clock after;
    uint32_t stream;
} hn_stream_step;

/* Bytes [lo, hi) that a step reads or writes, unless later steps that come after it wrote all of them. */
typedef struct hn_stream_touch {
    uintptr_t lo, hi;
    uint32_t step;
    bool write;
} hn_stream_touch;

typedef struct hn_streams {
    hn_arena *arena;
    uint32_t n_stream, n_open; /* streams in all; those that any step may go to */
    int64_t last[HN_MOST_STREAMS]; /* step; -1: none yet */
    HN_VEC(hn_stream_step) step;
    HN_VEC(hn_stream_touch) touch;
    HN_VEC(hn_stream_touch) now; /* of the step that is being added */
} hn_streams;

/** Begin anew: 1 <= n_stream <= HN_PLAN_MAX_STREAMS; `apart`: and one for steps that are to be apart. Running out of memory shows in
 * the arena. */
void hn_streams_init(hn_streams *s, hn_arena *a, uint32_t n_stream, bool apart);
/** The step that hn_streams_add is about to add touches n bytes. Memory that no step writes need not be told. */
void hn_streams_touch(hn_streams *s, const void *at, int64_t n, bool write);
/**
 * Add a step that touches what was told since the last one; apart: on the stream for such steps. Two steps of which one writes what the other touches keep their
 * order, and so do those of one stream; what others imply is left out of ret_wait.
 *
 * ret_wait: the steps to wait for, by their numbers from 0, at most one a stream
 */
void hn_streams_add(hn_streams *s, bool apart, uint32_t ret_wait[HN_MOST_STREAMS], uint32_t *ret_n);

#endif
