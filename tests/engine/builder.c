/* Lifetimes, placement, digests and misuse of the plan builder. */
#include <string.h>

#include "../runtime/handmade.h"
#include "core/core.h"

#define R(buf) ((buf) | HN_ARG_READ)
#define W(buf) ((buf) | HN_ARG_WRITE)

static void finish(hn_pb *b, hn_plan *p)
{
    hn_diag dg = { 0 };
    CHECK_OK(hn_pb_finish(b, p, &dg), &dg);
    CHECK_OK(hn_plan_validate(p, 64, 0, &dg), &dg);
}

static void lives(const hn_plan *p, uint32_t buf, uint32_t first, uint32_t last)
{
    hn_test_note("buffer %s: %u to %u", hn_plan_str(p, p->buf[buf].name), p->buf[buf].first,
                 p->buf[buf].last);
    CHECK_EQ(p->buf[buf].first, first);
    CHECK_EQ(p->buf[buf].last, last);
}

TEST(builder_straight_lifetimes)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t n = hn_pb_const(b, 16), bytes = hn_pb_const(b, 64), one = hn_pb_const(b, 1);
    uint32_t buf[6];
    hn_plan p;

    const uint32_t x = hn_pb_input(b, "x", HN_F32, 1, &n), y = hn_pb_output(b, "y", HN_F32, 1, &n);
    for (int i = 0; i < 6; i++)
        buf[i] = hn_pb_arena_buf(b, "buf", bytes, 64);
    hm_call(b, HM_SCALE, (uint32_t[]){ R(hn_pb_io_buf(b, x)), W(buf[0]) }, 2, &one, 1, n);
    for (int i = 0; i < 5; i++)
        hm_call(b, HM_SCALE, (uint32_t[]){ R(buf[i]), W(buf[i + 1]) }, 2, &one, 1, n);
    hm_call(b, HM_ADD, (uint32_t[]){ R(buf[5]), R(buf[1]), W(hn_pb_io_buf(b, y)) }, 3, NULL, 0, n);
    CHECK(!hn_pb_branches(b));
    finish(b, &p);
    lives(&p, buf[0], 0, 1);
    lives(&p, buf[1], 1, 6);
    lives(&p, buf[5], 5, 6);
    CHECK(p.flags & HN_PLAN_STATIC);
    CHECK_EQ(p.arena_bytes, 3 * 64 + HN_TAIL_BYTES); /* two neighbours and the long-lived one */
}

/* Two chains, one after the other, that meet at the end: on one stream the second takes the first one's places. */
static hn_pb *two_chains(hn_test *t, uint32_t streams, uint32_t buf[6])
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t n = hn_pb_const(b, 16), bytes = hn_pb_const(b, 64), one = hn_pb_const(b, 1);
    const uint32_t x = hn_pb_input(b, "x", HN_F32, 1, &n), y = hn_pb_output(b, "y", HN_F32, 1, &n);

    for (int i = 0; i < 6; i++)
        buf[i] = hn_pb_arena_buf(b, "buf", bytes, 64);
    for (int i = 0; i < 6; i++)
        hm_call(b, HM_SCALE, (uint32_t[]){ R(i % 3 ? buf[i - 1] : hn_pb_io_buf(b, x)), W(buf[i]) }, 2, &one, 1, n);
    hm_call(b, HM_ADD, (uint32_t[]){ R(buf[2]), R(buf[5]), W(hn_pb_io_buf(b, y)) }, 3, NULL, 0, n);
    CHECK(hn_pb_branches(b));
    hn_pb_streams(b, streams);
    return b;
}

TEST(builder_branches_do_not_share)
{
    uint32_t buf[6];
    hn_plan p;

    finish(two_chains(t, 1, buf), &p);
    CHECK_EQ(hn_plan_streams(&p), 1);
    lives(&p, buf[0], 0, 1);
    CHECK_EQ(p.arena_bytes, 3 * 64 + HN_TAIL_BYTES);
    finish(two_chains(t, 2, buf), &p);
    CHECK_EQ(hn_plan_streams(&p), 2);
    lives(&p, buf[0], 0, 5); /* while the second chain may run */
    lives(&p, buf[3], 3, 4);
    CHECK_EQ(p.arena_bytes, 5 * 64 + HN_TAIL_BYTES); /* the second chain keeps two places to itself */
}

/* A loop of 3 steps at 2..5: what it keeps, what it only passes through. */
TEST(builder_loop_lifetimes)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t eight = hn_pb_const(b, 8), one = hn_pb_const(b, 1);
    const uint32_t v = hn_pb_output(b, "v", HN_I64, 0, NULL);
    const uint32_t before = hn_pb_arena_buf(b, "before", eight, 64), in = hn_pb_arena_buf(b, "in", eight, 64);
    const uint32_t out = hn_pb_arena_buf(b, "out", eight, 64),
                   inside = hn_pb_arena_buf(b, "inside", eight, 64);
    const uint32_t kept = hn_pb_arena_buf(b, "kept", eight, 64), turn = hn_pb_arena_buf(b, "turn", eight, 64);
    const uint32_t after = hn_pb_arena_buf(b, "after", eight, 64);
    hn_plan p;

    hm_call(b, HM_FILL, (uint32_t[]){ W(before) }, 1, &one, 1, one); /* 0 */
    hm_call(b, HM_FILL, (uint32_t[]){ W(in) }, 1, &one, 1, one);     /* 1 */
    hn_pb_loop_begin(b, &(hn_pb_loop){ .trip = eight,
                                       .cond = HN_NO,
                                       .iter = HN_NO,
                                       .iter_buf = turn,
                                       .carry = (uint32_t[]){ in, out },
                                       .n_carry = 1 });                         /* 2 */
    hm_call(b, HM_IADD, (uint32_t[]){ R(before), W(inside) }, 2, &one, 1, one); /* 3 */
    hm_call(b, HM_IADD, (uint32_t[]){ R(inside), W(out) }, 2, &one, 1, one);    /* 4 */
    hm_call(b, HM_IADD, (uint32_t[]){ R(kept), W(kept) }, 2, &one, 1, one);     /* 5 */
    hn_pb_loop_end(b);
    hm_call(b, HM_IADD, (uint32_t[]){ R(in), W(after) }, 2, &one, 1, one); /* 6 */
    hn_pb_step_copy(b, hn_pb_io_buf(b, v), HN_NO, after, HN_NO, eight);    /* 7 */
    finish(b, &p);
    lives(&p, before, 0, 5); /* the next turn reads it again */
    lives(&p, in, 1, 6);
    lives(&p, out, 1, 6); /* it may be where `in` is */
    lives(&p, inside, 3, 4);
    lives(&p, kept, 2, 5);
    lives(&p, turn, 2, 2); /* written by the loop itself, read by nobody */
    lives(&p, after, 6, 7);
}

/* Written in one branch of an IF inside a loop, read after the IF: an earlier turn's bytes may be needed. */
TEST(builder_maybe_written_in_loop)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t eight = hn_pb_const(b, 8), one = hn_pb_const(b, 1);
    const uint32_t maybe = hn_pb_arena_buf(b, "maybe", eight, 64),
                   sure = hn_pb_arena_buf(b, "sure", eight, 64);
    const uint32_t v = hn_pb_output(b, "v", HN_I64, 0, NULL), cond = hn_pb_var(b, 1);
    hn_plan p;

    hn_pb_loop_begin(b,
                     &(hn_pb_loop){ .trip = eight, .cond = HN_NO, .iter = HN_NO, .iter_buf = HN_NO }); /* 0 */
    hm_call(b, HM_FILL, (uint32_t[]){ W(sure) }, 1, &one, 1, one);                                     /* 1 */
    hn_pb_if_begin(b, cond, NULL);                                                                     /* 2 */
    hm_call(b, HM_IADD, (uint32_t[]){ R(sure), W(maybe) }, 2, &one, 1, one);                           /* 3 */
    hn_pb_if_else(b);
    hn_pb_if_end(b);
    hn_pb_step_copy(b, hn_pb_io_buf(b, v), HN_NO, maybe, HN_NO, eight); /* 4 */
    hn_pb_loop_end(b);
    finish(b, &p);
    lives(&p, sure, 1, 3);
    lives(&p, maybe, 0, 4);
}

/* A buffer used in an inner loop and outside it lives for the inner loop; for the outer too when it is made
 * outside that. */
TEST(builder_nested_lifetimes)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t eight = hn_pb_const(b, 8), one = hn_pb_const(b, 1);
    const uint32_t a = hn_pb_arena_buf(b, "a", eight, 64), c = hn_pb_arena_buf(b, "c", eight, 64);
    const uint32_t d = hn_pb_arena_buf(b, "d", eight, 64), part = hn_pb_part(b, "d0", d, HN_NO, eight);
    const hn_pb_loop loop = { .trip = eight, .cond = HN_NO, .iter = HN_NO, .iter_buf = HN_NO };
    hn_plan p;

    hm_call(b, HM_FILL, (uint32_t[]){ W(a) }, 1, &one, 1, one);          /* 0 */
    hn_pb_loop_begin(b, &loop);                                          /* 1 */
    hm_call(b, HM_FILL, (uint32_t[]){ W(c) }, 1, &one, 1, one);          /* 2 */
    hn_pb_loop_begin(b, &loop);                                          /* 3 */
    hm_call(b, HM_IADD, (uint32_t[]){ R(a), W(part) }, 2, &one, 1, one); /* 4 */
    hm_call(b, HM_IADD, (uint32_t[]){ R(c), W(part) }, 2, &one, 1, one); /* 5 */
    hm_call(b, HM_IADD, (uint32_t[]){ R(d), W(d) }, 2, &one, 1, one);    /* 6 */
    hn_pb_loop_end(b);
    hm_call(b, HM_FILL, (uint32_t[]){ W(d) }, 1, &one, 1, one); /* 7 */
    hn_pb_loop_end(b);
    finish(b, &p);
    lives(&p, a, 0, 7);
    lives(&p, c, 2, 6);
    lives(&p, d, 3, 7);
}

TEST(builder_digest_ignores_names)
{
    hn_digest d[4];
    static const uint8_t code[2][4] = { { 1, 2, 3, 4 }, { 1, 2, 3, 5 } };

    for (int k = 0; k < 4; k++) {
        hn_pb *const b = hn_pb_new(t->arena);
        const uint32_t n = hn_pb_const(b, k == 2 ? 17 : 16), one = hn_pb_const(b, 1);
        const uint32_t x = hn_pb_input(b, k == 1 ? "another name" : "x", HN_F32, 1, &n);
        const uint32_t y = hn_pb_output(b, "y", HN_F32, 1, &n);
        hn_plan p;
        hm_call(b, HM_SCALE, (uint32_t[]){ R(hn_pb_io_buf(b, x)), W(hn_pb_io_buf(b, y)) }, 2, &one, 1, n);
        finish(b, &p);
        d[k] = hn_plan_payload_digest(&p, code[k == 3], 4);
    }
    CHECK(hn_digest_eq(d[0], d[1]));
    CHECK(!hn_digest_eq(d[0], d[2]));
    CHECK(!hn_digest_eq(d[0], d[3]));
}

#define MISUSE(text, ...)                                                                                    \
    do {                                                                                                     \
        hn_pb *const b = hn_pb_new(t->arena);                                                                \
        hn_diag dg = { 0 };                                                                                  \
        hn_plan p;                                                                                           \
        __VA_ARGS__;                                                                                         \
        CHECK_ERR(hn_pb_finish(b, &p, &dg), HONE_E_INTERNAL, &dg, text);                                     \
    } while (0)

TEST(builder_misuse_is_said)
{
    MISUSE("before it is written", const uint32_t r = hn_pb_reg(b); hn_pb_calc(b, HN_S_ADD, r, r, 0));
    MISUSE("never written", hn_pb_reg(b));
    MISUSE("still open", hn_pb_if_begin(b, hn_pb_var(b, 0), NULL));
    MISUSE("did not begin", hn_pb_loop_end(b));
    MISUSE("did not begin", hn_pb_if_begin(b, hn_pb_var(b, 0), NULL); hn_pb_if_end(b));
    MISUSE("may not write", hn_pb_step_read_to(b, hn_pb_const(b, 1), 0, HN_NO, HN_I64));
    MISUSE("no size", hn_pb_arena_buf(b, "x", 1000, 64));
    MISUSE("known only while running", const uint32_t v = hn_pb_var(b, 0);
           hn_pb_output(b, "y", HN_F32, 1, &v));
    MISUSE("too deeply", for (int i = 0; i < 40; i++) hn_pb_if_begin(b, hn_pb_var(b, 0), NULL));
}

/* Every kind of damage that the builder cannot make, one at a time. */
typedef void (*harm_fn)(hn_plan *p, hn_step *step, hn_plan_buf *buf, hn_plan_io *io);

static void refused(hn_test *t, harm_fn harm, hone_status want, const char *text)
{
    hn_diag dg = { 0 };
    hn_plan p;

    CHECK_OK(hn_pb_finish(hm_add_scale(t), &p, &dg), &dg);
    hn_step *const step = hn_arena_memdup(t->arena, p.step, p.n_step * sizeof(*p.step));
    hn_plan_buf *const buf = hn_arena_memdup(t->arena, p.buf, p.n_buf * sizeof(*p.buf));
    hn_plan_io *const io = hn_arena_memdup(t->arena, p.io, p.n_io * sizeof(*p.io));
    p.step = step, p.buf = buf, p.io = io;
    CHECK_OK(hn_plan_validate(&p, 64, 0, &dg), &dg);
    harm(&p, step, buf, io);
    CHECK_ERR(hn_plan_validate(&p, 64, 0, &dg), want, &dg, text);
}

#define HARM(name, ...)                                                                                      \
    static void name(hn_plan *p HN_UNUSED, hn_step *step HN_UNUSED, hn_plan_buf *buf HN_UNUSED,              \
                     hn_plan_io *io HN_UNUSED)                                                               \
    {                                                                                                        \
        __VA_ARGS__;                                                                                         \
    }
HARM(h_kernel, step[0].u.kernel.kernel = 99)
HARM(h_kind, step[0].kind = 200)
HARM(h_args, step[0].u.kernel.n_buf = 2)
HARM(h_list, step[0].u.kernel.buf = UINT32_MAX - 1)
HARM(h_grain, step[1].u.kernel.grain = 0)
HARM(h_extent, step[1].u.kernel.extent = UINT32_MAX)
HARM(h_origin, step[1].origin = UINT32_MAX)
HARM(h_write, buf[HN_ARG_BUF(p->list[step[0].u.kernel.buf + 2])].kind = HN_BUF_WEIGHT)
HARM(h_life, buf[3].last = 2)
HARM(h_align, buf[3].align = 48)
HARM(h_flags, buf[3].flags = 8)
HARM(h_size, buf[3].size = p->n_reg)
HARM(h_offset, buf[3].offset = 64)
HARM(h_static, p->flags = HN_PLAN_STATIC)
HARM(h_streams, p->flags |= (HN_PLAN_MAX_STREAMS + 1) << HN_PLAN_STREAMS_AT)
HARM(h_io_buf, io[1].buf = 0)
HARM(h_io_dtype, io[0].dtype = HN_NDTYPES)
HARM(h_io_rank, io[0].rank = 11)
HARM(h_io_order, io[0].flags = HN_IO_OUTPUT)
HARM(h_io_dim, io[0].dim[0] = p->n_reg)
HARM(h_prefix, p->n_prefix = p->n_inst + 1)
HARM(h_string, p->n_string--)
HARM(h_if, step[0] = (hn_step){ .kind = HN_STEP_IF, .u.branch = { 0, 2, 0 } })
HARM(h_if2, step[0] = (hn_step){ .kind = HN_STEP_IF, .u.branch = { 0, 1, UINT32_MAX } })
HARM(h_loop, step[0] = (hn_step){ .kind = HN_STEP_LOOP, .u.loop = { 1, HN_NO, HN_NO, HN_NO, HN_NO, 0, 0 } })
HARM(h_carry,
     step[0] = (hn_step){ .kind = HN_STEP_LOOP, .u.loop = { 1, 0, HN_NO, HN_NO, HN_NO, 0, 0x80000001 } })
HARM(h_shape, step[0] = (hn_step){ .kind = HN_STEP_SHAPE, .u.shape = { 0, 1 } })
HARM(h_alloc, step[0] = (hn_step){ .kind = HN_STEP_ALLOC, .u.alloc = { 0, 1 } })
HARM(h_read,
     step[0] = (hn_step){ .kind = HN_STEP_READ, .u.read = { step[1].u.kernel.trip_ps, 0, HN_NO, HN_F32 } })
HARM(h_copy, step[0] = (hn_step){ .kind = HN_STEP_COPY, .u.copy = { 0, HN_NO, 1, HN_NO, 0 } })
HARM(h_fault, buf[3].kind = HN_BUF_FAULT)
HARM(h_image, step[0] = (hn_step){ .kind = HN_STEP_IMAGE, .u.image = { .what = 3 } })
HARM(h_image_to, step[0] = (hn_step){ .kind = HN_STEP_IMAGE, .u.image = { .what = HN_IMAGE_STEP_SIZE, .dst = 99 } })
HARM(h_image_dim, step[0] = (hn_step){ .kind = HN_STEP_IMAGE,
                                       .u.image = { .what = HN_IMAGE_STEP_DECODE, .dst = 3, .h = HN_NO, .w = HN_NO } })

TEST(validate_refuses)
{
    refused(t, h_fault, HONE_E_FORMAT, "no record of faults");
    refused(t, h_image, HONE_E_FORMAT, "reads an image badly");
    refused(t, h_image_to, HONE_E_FORMAT, "reads an image badly");
    refused(t, h_image_dim, HONE_E_FORMAT, "reads an image badly");
    refused(t, h_kernel, HONE_E_FORMAT, "calls kernel 99");
    refused(t, h_kind, HONE_E_VERSION, "unknown kind 200");
    refused(t, h_args, HONE_E_FORMAT, "does not take");
    refused(t, h_list, HONE_E_FORMAT, "does not take");
    refused(t, h_grain, HONE_E_FORMAT, "grain");
    refused(t, h_extent, HONE_E_FORMAT, "extent");
    refused(t, h_origin, HONE_E_FORMAT, "origin");
    refused(t, h_write, HONE_E_FORMAT, NULL);
    refused(t, h_life, HONE_E_FORMAT, "lifetime");
    refused(t, h_align, HONE_E_FORMAT, "alignment 48");
    refused(t, h_flags, HONE_E_FORMAT, "flags");
    refused(t, h_size, HONE_E_FORMAT, "no size");
    refused(t, h_offset, HONE_E_FORMAT, "dynamic plan");
    refused(t, h_static, HONE_E_FORMAT, "static plan");
    refused(t, h_streams, HONE_E_VERSION, "plan flags");
    refused(t, h_io_buf, HONE_E_FORMAT, "disagree");
    refused(t, h_io_dtype, HONE_E_FORMAT, "dtype 24");
    refused(t, h_io_rank, HONE_E_FORMAT, "rank 11");
    refused(t, h_io_order, HONE_E_FORMAT, NULL);
    refused(t, h_io_dim, HONE_E_FORMAT, "dims");
    refused(t, h_prefix, HONE_E_FORMAT, "prefix");
    refused(t, h_string, HONE_E_FORMAT, "terminated");
    refused(t, h_if, HONE_E_FORMAT, "holds more steps");
    refused(t, h_if2, HONE_E_FORMAT, "holds more steps");
    refused(t, h_loop, HONE_E_FORMAT, "without end");
    refused(t, h_carry, HONE_E_FORMAT, "carries");
    refused(t, h_shape, HONE_E_FORMAT, "not there");
    refused(t, h_alloc, HONE_E_FORMAT, "does not grow");
    refused(t, h_read, HONE_E_FORMAT, "reads badly");
    refused(t, h_copy, HONE_E_FORMAT, "copies badly");
}
