/* One engine, one context: shapes, bindings, control flow, errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "handmade.h"

#define R(buf) ((buf) | HN_ARG_READ)
#define W(buf) ((buf) | HN_ARG_WRITE)

TEST(runtime_add_scale)
{
    hn_engine *const e = hm_engine(t, hm_add_scale(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    float x[4096], y[4096], z[4096];
    hn_diag dg = { 0 };

    CHECK_EQ(hn_engine_find_io(e, "y"), 1);
    CHECK_EQ(hn_engine_find_io(e, "q"), -1);
    hn_engine_unref(e); /* the context holds it */
    for (int i = 0; i < 4096; i++)
        x[i] = (float)i, y[i] = (float)(1000 - i % 7);
    static const int64_t sizes[] = { 1, 64, 4096, 63, 65 };
    for (int k = 0; k < HN_COUNT(sizes); k++) {
        const int64_t n = sizes[k];
        int rank;
        int64_t dim[HN_PLAN_MAX_RANK];
        CHECK_OK(hn_context_set_input_shape(c, 0, 1, &n, &dg), &dg);
        CHECK_OK(hn_context_set_input_shape(c, 1, 1, &n, &dg), &dg);
        CHECK_OK(hn_context_bind(c, 0, x, (size_t)n * 4, &dg), &dg);
        CHECK_OK(hn_context_bind(c, 1, y, (size_t)n * 4, &dg), &dg);
        CHECK_OK(hn_context_bind(c, 2, k % 2 ? NULL : z, sizeof(z), &dg), &dg);
        CHECK_OK(hn_context_prepare(c, &dg), &dg);
        CHECK_OK(hn_context_shape(c, 2, &rank, dim, &dg), &dg);
        CHECK(rank == 1 && dim[0] == n);
        CHECK_EQ(hn_context_io_bytes(c, 2), 4 * n);
        memset(z, 0xff, sizeof(z));
        CHECK_OK(hn_context_run(c, &dg), &dg);
        const float *got = hn_context_output_data(c, 2);
        CHECK(k % 2 ? got != z : got == z);
        for (int64_t i = 0; i < n; i++)
            CHECK(got[i] == (x[i] + y[i]) * 3);
        for (int64_t i = n; k % 2 == 0 && i < 4096; i++)
            CHECK(z[i] != z[i]); /* 0xffffffff is a NaN: nothing was written past the end */
        CHECK(hn_context_get_memory(c).arena_bytes >= 4 * n);
    }
    hn_context_destroy(c);
}

TEST(runtime_default_shape_is_the_optimum)
{
    hn_engine *const e = hm_engine(t, hm_add_scale(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    int64_t dim[HN_PLAN_MAX_RANK];
    hn_diag dg = { 0 };
    int rank;

    CHECK_OK(hn_context_shape(c, 2, &rank, dim, &dg), &dg);
    CHECK_EQ(dim[0], 64);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

TEST(runtime_says_what_is_wrong)
{
    hn_engine *const e = hm_engine(t, hm_add_scale(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    float x[8] = { 0 };
    hn_diag dg = { 0 };

    CHECK_ERR(hn_context_run(c, &dg), HONE_E_UNBOUND, &dg, "input \"x\" has no buffer");
    CHECK_ERR(hn_context_set_input_shape(c, 0, 1, &(int64_t){ 5000 }, &dg), HONE_E_SHAPE, &dg,
              "input \"x\" axis 0 is 5000, the profile allows 1 to 4096");
    CHECK_ERR(hn_context_set_input_shape(c, 0, 1, &(int64_t){ -1 }, &dg), HONE_E_SHAPE, &dg, "axis 0 is -1");
    CHECK_ERR(hn_context_set_input_shape(c, 0, 2, (int64_t[]){ 1, 1 }, &dg), HONE_E_SHAPE, &dg,
              "rank 1, not 2");
    CHECK_ERR(hn_context_set_input_shape(c, 2, 1, (int64_t[]){ 1 }, &dg), HONE_E_INVALID, &dg,
              "is an output");
    CHECK_ERR(hn_context_set_input_shape(c, 3, 1, (int64_t[]){ 1 }, &dg), HONE_E_INVALID, &dg, "3 of 3");
    CHECK_OK(hn_context_set_input_shape(c, 0, 1, &(int64_t){ 8 }, &dg), &dg);
    CHECK_ERR(hn_context_prepare(c, &dg), HONE_E_SHAPE, &dg,
              "input \"y\" axis 0 is 64 but \"n\" is 8 (input \"x\" axis 0)");
    CHECK_OK(hn_context_set_input_shape(c, 1, 1, &(int64_t){ 8 }, &dg), &dg);
    CHECK_ERR(hn_context_bind(c, 0, (char *)x + 1, 31, &dg), HONE_E_INVALID, &dg, "aligned to 4 bytes");
    CHECK_OK(hn_context_bind(c, 0, x, sizeof(x), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, x, sizeof(x) - 1, &dg), &dg);
    CHECK_ERR(hn_context_run(c, &dg), HONE_E_INVALID, &dg, "input \"y\" needs 32 bytes, 31 are bound");
    CHECK_OK(hn_context_bind(c, 1, x, sizeof(x), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 2, x, 4, &dg), &dg);
    CHECK_ERR(hn_context_run(c, &dg), HONE_E_INVALID, &dg, "output \"z\" needs 32 bytes, 4 are bound");
    CHECK(hn_context_output_data(c, 2) == NULL);
    CHECK_OK(hn_context_bind(c, 2, NULL, 0, &dg), &dg);
    CHECK_OK(hn_context_run(c, &dg), &dg);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

TEST(runtime_memory_ceiling_names_the_tensor)
{
    hn_engine *const e = hm_engine(t, hm_add_scale(t), NULL);
    hn_diag dg = { 0 };
    hn_context *c;

    CHECK_ERR(hn_context_create(e, &(hn_context_opts){ .memory_ceiling = 100 }, &c, &dg), HONE_E_LIMIT, &dg,
              "the largest tensor is \"sum\" with 256");
    c = hm_context(e, &(hn_context_opts){ .memory_ceiling = 64 + 320 });
    CHECK_OK(hn_context_set_input_shape(c, 0, 1, &(int64_t){ 4096 }, &dg), &dg);
    CHECK_OK(hn_context_set_input_shape(c, 1, 1, &(int64_t){ 4096 }, &dg), &dg);
    CHECK_ERR(hn_context_prepare(c, &dg), HONE_E_LIMIT, &dg, "\"sum\"");
    CHECK_OK(hn_context_set_input_shape(c, 0, 1, &(int64_t){ 2 }, &dg), &dg);
    CHECK_OK(hn_context_set_input_shape(c, 1, 1, &(int64_t){ 2 }, &dg), &dg);
    CHECK_OK(hn_context_prepare(c, &dg), &dg);
    hn_context_destroy(c);
    CHECK_ERR(hn_context_create(e, &(hn_context_opts){ .profile = 1 }, &c, &dg), HONE_E_INVALID, &dg,
              "profile 1 of 1");
    hn_engine_unref(e);
}

TEST(runtime_output_sized_by_data)
{
    hn_engine *const e = hm_engine(t, hm_compact(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    float x[1000], room[8];
    int64_t dim[HN_PLAN_MAX_RANK];
    hn_diag dg = { 0 };
    int rank;

    CHECK_ERR(hn_context_prepare(c, &dg), HONE_E_SHAPE, &dg, "input \"x\" has no shape");
    for (int64_t n = 1000; n >= 0; n -= 250) {
        CHECK_OK(hn_context_set_input_shape(c, 0, 1, &n, &dg), &dg);
        CHECK_OK(hn_context_bind(c, 0, x, sizeof(x), &dg), &dg);
        CHECK_OK(hn_context_prepare(c, &dg), &dg);
        CHECK_EQ(hn_context_io_bytes(c, 1), -1);
        CHECK_ERR(hn_context_shape(c, 1, &rank, dim, &dg), HONE_E_INVALID, &dg, "not known yet");
        for (int step = 1; step < 5; step++) {
            int64_t want = 0;
            for (int i = 0; i < n; i++)
                x[i] = i % step == 0 ? (float)i + 1 : 0, want += i % step == 0;
            CHECK_OK(hn_context_run(c, &dg), &dg);
            CHECK_OK(hn_context_shape(c, 1, &rank, dim, &dg), &dg);
            CHECK_EQ(dim[0], want);
            CHECK_EQ(hn_context_io_bytes(c, 1), 4 * want);
            const float *got = hn_context_output_data(c, 1);
            for (int64_t i = 0; i < want; i++)
                CHECK(got[i] == (float)(i * step + 1));
        }
    }
    x[0] = x[1] = 1;
    CHECK_OK(hn_context_set_input_shape(c, 0, 1, &(int64_t){ 10 }, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, room, sizeof(room), &dg), &dg);
    for (int i = 0; i < 10; i++)
        x[i] = i < 8;
    CHECK_OK(hn_context_run(c, &dg), &dg);
    CHECK(hn_context_output_data(c, 1) == room && room[7] == 1);
    x[9] = 1;
    CHECK_ERR(hn_context_run(c, &dg), HONE_E_INVALID, &dg, "output \"out\" needs 36 bytes, 32 are bound");
    CHECK(hn_context_output_data(c, 1) == NULL);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

TEST(runtime_loop_carries_and_collects)
{
    hn_engine *const e = hm_engine(t, hm_loop(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    int64_t trip, v, dim[HN_PLAN_MAX_RANK];
    hn_diag dg = { 0 };
    int rank;

    CHECK_OK(hn_context_bind(c, 0, &trip, sizeof(trip), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, &v, sizeof(v), &dg), &dg);
    static const int64_t trips[] = { 0, 1, 2, 7, 1000, 3, 0, 4 };
    for (int k = 0; k < HN_COUNT(trips); k++) {
        trip = trips[k];
        CHECK_OK(hn_context_run(c, &dg), &dg);
        CHECK_EQ(v, 5 * trip);
        CHECK_OK(hn_context_shape(c, 2, &rank, dim, &dg), &dg);
        CHECK_EQ(dim[0], trip);
        CHECK_EQ(hn_context_io_bytes(c, 2), 8 * trip);
        const int64_t *steps = hn_context_output_data(c, 2);
        for (int64_t i = 0; i < trip; i++)
            CHECK_EQ(steps[i], 5 * (i + 1));
    }
    hn_context_destroy(c);
    hn_engine_unref(e);
}

TEST(runtime_heap_ceiling_while_running)
{
    hn_engine *const e = hm_engine(t, hm_loop(t), NULL);
    hn_context *const c = hm_context(e, &(hn_context_opts){ .memory_ceiling = 4096 });
    int64_t trip = 10000, v;
    hn_diag dg = { 0 };

    CHECK_OK(hn_context_bind(c, 0, &trip, sizeof(trip), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, &v, sizeof(v), &dg), &dg);
    CHECK_ERR(hn_context_run(c, &dg), HONE_E_LIMIT, &dg, "tensor \"steps\" needs");
    trip = 10;
    CHECK_OK(hn_context_run(c, &dg), &dg);
    CHECK_EQ(v, 50);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* while (v < limit) v += 3, with a loop that counts turns in a buffer; the sum of turn numbers comes out. */
static hn_pb *while_model(hn_test *t)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t zero = hn_pb_const(b, 0), one = hn_pb_const(b, 1), three = hn_pb_const(b, 3),
                   eight = hn_pb_const(b, 8);
    const uint32_t limit_in = hn_pb_input(b, "limit", HN_I64, 0, NULL);
    const uint32_t v = hn_pb_output(b, "v", HN_I64, 0, NULL),
                   turns = hn_pb_output(b, "last_turn", HN_I64, 0, NULL);
    const uint32_t in = hn_pb_arena_buf(b, "in", eight, 64), out = hn_pb_arena_buf(b, "out", eight, 64);
    const uint32_t more = hn_pb_arena_buf(b, "more", one, 64), turn = hn_pb_arena_buf(b, "turn", eight, 64);
    const uint32_t cond = hn_pb_var(b, 0), turns_b = hn_pb_io_buf(b, turns);

    const uint32_t limit = hn_pb_step_read(b, hn_pb_io_buf(b, limit_in), HN_NO, HN_I64);
    hm_call(b, HM_FILL, (uint32_t[]){ W(in) }, 1, &zero, 1, one);
    hm_call(b, HM_FILL, (uint32_t[]){ W(turns_b) }, 1, &zero, 1, one);
    hm_call(b, HM_LESS, (uint32_t[]){ R(in), W(more) }, 2, &limit, 1, one);
    hn_pb_step_read_to(b, cond, more, HN_NO, HN_BOOL);
    hn_pb_loop_begin(b, &(hn_pb_loop){ .trip = HN_NO,
                                       .cond = cond,
                                       .iter = HN_NO,
                                       .iter_buf = turn,
                                       .carry = (uint32_t[]){ in, out },
                                       .n_carry = 1 });
    hm_call(b, HM_IADD, (uint32_t[]){ R(in), W(out) }, 2, &three, 1, one);
    hn_pb_step_copy(b, turns_b, HN_NO, turn, HN_NO, eight);
    hm_call(b, HM_LESS, (uint32_t[]){ R(out), W(more) }, 2, &limit, 1, one);
    hn_pb_step_read_to(b, cond, more, HN_NO, HN_BOOL);
    hn_pb_loop_end(b);
    hn_pb_step_copy(b, hn_pb_io_buf(b, v), HN_NO, in, HN_NO, eight);
    return b;
}

TEST(runtime_loop_on_a_condition)
{
    hn_engine *const e = hm_engine(t, while_model(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    int64_t limit, v, turn;
    hn_diag dg = { 0 };

    CHECK_OK(hn_context_bind(c, 0, &limit, 8, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, &v, 8, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 2, &turn, 8, &dg), &dg);
    for (limit = -1; limit < 20; limit++) {
        CHECK_OK(hn_context_run(c, &dg), &dg);
        CHECK_EQ(v, limit <= 0 ? 0 : (limit + 2) / 3 * 3);
        CHECK_EQ(turn, limit <= 0 ? 0 : (limit + 2) / 3 - 1);
    }
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* y = cond ? x + 10 : x + 20; then z = cond ? y : nothing (0), to try an empty block. */
static hn_pb *if_model(hn_test *t)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t zero = hn_pb_const(b, 0), one = hn_pb_const(b, 1), ten = hn_pb_const(b, 10),
                   twenty = hn_pb_const(b, 20);
    const uint32_t eight = hn_pb_const(b, 8);
    const uint32_t ci = hn_pb_input(b, "cond", HN_BOOL, 0, NULL), x = hn_pb_input(b, "x", HN_I64, 0, NULL);
    const uint32_t y = hn_pb_output(b, "y", HN_I64, 0, NULL), z = hn_pb_output(b, "z", HN_I64, 0, NULL);
    const uint32_t xb = hn_pb_io_buf(b, x), yb = hn_pb_io_buf(b, y), zb = hn_pb_io_buf(b, z);
    const uint32_t tmp = hn_pb_arena_buf(b, "tmp", eight, 64);

    const uint32_t cond = hn_pb_step_read(b, hn_pb_io_buf(b, ci), HN_NO, HN_BOOL);
    hm_call(b, HM_FILL, (uint32_t[]){ W(zb) }, 1, &zero, 1, one);
    hn_pb_if_begin(b, cond, "if");
    hm_call(b, HM_IADD, (uint32_t[]){ R(xb), W(tmp) }, 2, &ten, 1, one);
    hn_pb_if_else(b);
    hm_call(b, HM_IADD, (uint32_t[]){ R(xb), W(tmp) }, 2, &twenty, 1, one);
    hn_pb_if_end(b);
    hn_pb_step_copy(b, yb, HN_NO, tmp, HN_NO, eight);
    hn_pb_if_begin(b, cond, "if");
    hn_pb_step_copy(b, zb, HN_NO, yb, HN_NO, eight);
    hn_pb_if_else(b);
    hn_pb_if_end(b);
    return b;
}

TEST(runtime_if)
{
    hn_engine *const e = hm_engine(t, if_model(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    int64_t x = 1, y, z;
    uint8_t cond;
    hn_diag dg = { 0 };

    CHECK_OK(hn_context_bind(c, 0, &cond, 1, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, &x, 8, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 2, &y, 8, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 3, &z, 8, &dg), &dg);
    for (cond = 0; cond < 3; cond++) {
        CHECK_OK(hn_context_run(c, &dg), &dg);
        CHECK_EQ(y, cond ? 11 : 21);
        CHECK_EQ(z, cond ? 11 : 0);
    }
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* Nested loops: total = outer * inner turns, with sizes that grow with the turn: a heap buffer sized by (i +
 * 1) * 8. */
static hn_pb *nested_model(hn_test *t)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t zero = hn_pb_const(b, 0), one = hn_pb_const(b, 1), eight = hn_pb_const(b, 8),
                   four = hn_pb_const(b, 4);
    const uint32_t inner = hn_pb_const(b, 3);
    const uint32_t v = hn_pb_output(b, "v", HN_I64, 0, NULL);
    const uint32_t a = hn_pb_arena_buf(b, "a", eight, 64), c = hn_pb_arena_buf(b, "c", eight, 64);
    const uint32_t i = hn_pb_var(b, 0), j = hn_pb_var(b, 0), size = hn_pb_var(b, 0);
    const uint32_t heap = hn_pb_heap_buf(b, "heap", size);

    hm_call(b, HM_FILL, (uint32_t[]){ W(a) }, 1, &zero, 1, one);
    hn_pb_loop_begin(b, &(hn_pb_loop){ .trip = four, .cond = HN_NO, .iter = i, .iter_buf = HN_NO });
    const uint32_t n = hn_pb_calc(b, HN_S_ADD, i, one, 0);
    hn_pb_calc_to(b, size, HN_S_MUL, n, eight, 0);
    hn_pb_step_alloc(b, &heap, 1);
    hm_call(b, HM_FILL, (uint32_t[]){ W(heap) }, 1, &n, 1, n);
    hn_pb_loop_begin(b, &(hn_pb_loop){ .trip = inner,
                                       .cond = HN_NO,
                                       .iter = j,
                                       .iter_buf = HN_NO,
                                       .carry = (uint32_t[]){ a, c },
                                       .n_carry = 1 });
    /* the last element of heap is n: add it */
    const uint32_t last = hn_pb_step_read(b, heap, hn_pb_calc(b, HN_S_SUB, n, one, 0), HN_I64);
    hm_call(b, HM_IADD, (uint32_t[]){ R(a), W(c) }, 2, &last, 1, one);
    hn_pb_loop_end(b);
    hn_pb_loop_end(b);
    hn_pb_step_copy(b, hn_pb_io_buf(b, v), HN_NO, a, HN_NO, eight);
    return b;
}

TEST(runtime_nested_loops)
{
    hn_engine *const e = hm_engine(t, nested_model(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    hn_diag dg = { 0 };

    for (int k = 0; k < 3; k++) {
        CHECK_OK(hn_context_run(c, &dg), &dg);
        CHECK_EQ(*(const int64_t *)hn_context_output_data(c, 0), 3 * (1 + 2 + 3 + 4));
    }
    CHECK(hn_context_get_memory(c).heap_bytes >= 32);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* Parts: two halves of one buffer written apart and read whole; an offset known only while running. */
static hn_pb *parts_model(hn_test *t)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t one = hn_pb_const(b, 1), two = hn_pb_const(b, 2), four = hn_pb_const(b, 4),
                   eight = hn_pb_const(b, 8);
    const uint32_t at = hn_pb_input(b, "at", HN_I64, 0, NULL);
    const uint32_t out = hn_pb_output(b, "out", HN_I64, 1, &four),
                   pick = hn_pb_output(b, "pick", HN_I64, 0, NULL);
    const uint32_t whole = hn_pb_arena_buf(b, "whole", hn_pb_const(b, 32), 64);
    const uint32_t lo = hn_pb_part(b, "lo", whole, HN_NO, hn_pb_const(b, 16));
    const uint32_t hi = hn_pb_part(b, "hi", whole, hn_pb_const(b, 16), hn_pb_const(b, 16));
    const uint32_t hi_hi = hn_pb_part(b, "hi_hi", hi, eight, eight);

    const uint32_t k = hn_pb_step_read(b, hn_pb_io_buf(b, at), HN_NO, HN_I64);
    hm_call(b, HM_FILL, (uint32_t[]){ W(lo) }, 1, &one, 1, two);
    hm_call(b, HM_FILL, (uint32_t[]){ W(hi) }, 1, &two, 1, two);
    hm_call(b, HM_FILL, (uint32_t[]){ W(hi_hi) }, 1, &eight, 1, one);
    hn_pb_step_copy(b, hn_pb_io_buf(b, out), HN_NO, whole, HN_NO, hn_pb_const(b, 32));
    const uint32_t some = hn_pb_part(b, "some", whole, hn_pb_calc(b, HN_S_MUL, k, eight, 0), eight);
    hm_call(b, HM_IADD, (uint32_t[]){ R(some), W(hn_pb_io_buf(b, pick)) }, 2, &one, 1, one);
    return b;
}

TEST(runtime_parts)
{
    static const int64_t want[] = { 1, 1, 2, 8 };
    hn_engine *const e = hm_engine(t, parts_model(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    int64_t at, out[4], pick;
    hn_diag dg = { 0 };

    CHECK_OK(hn_context_bind(c, 0, &at, 8, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, out, 32, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 2, &pick, 8, &dg), &dg);
    for (at = 0; at < 4; at++) {
        CHECK_OK(hn_context_run(c, &dg), &dg);
        CHECK(memcmp(out, want, sizeof(want)) == 0);
        CHECK_EQ(pick, want[at] + 1);
    }
    CHECK_ERR(hn_context_run(c, &dg), HONE_E_SHAPE, &dg,
              "\"some\" would take bytes 32 to 40 of \"whole\", which has 32");
    at = -1;
    CHECK_ERR(hn_context_run(c, &dg), HONE_E_SHAPE, &dg, "bytes -8 to 0");
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* Sizes by the shape program, with every operation, against C. */
TEST(runtime_shape_program)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t n = hn_pb_reg(b), m = hn_pb_reg(b), dims[] = { n, m };
    const uint32_t x = hn_pb_input(b, "x", HN_I8, 2, dims), seven = hn_pb_const(b, 7);
    hn_pb_input_dim(b, n, x, 0);
    hn_pb_input_dim(b, m, x, 1);
    const uint32_t sub = hn_pb_calc(b, HN_S_SUB, n, m, 0);
    const uint32_t d[] = {
        hn_pb_calc(b, HN_S_ADD, n, m, 0),
        hn_pb_calc(b, HN_S_MUL, n, m, 0),
        hn_pb_calc(b, HN_S_MIN, n, m, 0),
        hn_pb_calc(b, HN_S_MAX, sub, seven, 0),
        hn_pb_calc(b, HN_S_MOD, sub, seven, 0),
        hn_pb_calc(b, HN_S_EQ, n, m, 0),
        hn_pb_calc(b, HN_S_LT, n, m, 0),
        hn_pb_calc(b, HN_S_SELECT, hn_pb_calc(b, HN_S_LT, n, m, 0), n, m),
        hn_pb_calc(b, HN_S_CEILDIV, n, seven, 0),
        hn_pb_calc(b, HN_S_ADD, hn_pb_calc(b, HN_S_FLOORDIV, sub, seven, 0), seven, 0),
    };
    CHECK_EQ(hn_pb_calc(b, HN_S_ADD, n, m, 0), d[0]); /* shared */
    CHECK_EQ(hn_pb_calc(b, HN_S_MUL, n, hn_pb_const(b, 1), 0), n);
    CHECK_EQ(hn_pb_calc(b, HN_S_MOD, hn_pb_const(b, -3), seven, 0), hn_pb_const(b, 4));
    hn_pb_check(b, HN_S_CHECK_LE, n, hn_pb_const(b, 40), "axis 0 of \"x\"");
    hn_pb_output(b, "y", HN_U4, HN_COUNT(d), d);
    hn_engine *const e = hm_engine(t, b, NULL);
    hn_context *const c = hm_context(e, NULL);
    int64_t got[HN_PLAN_MAX_RANK];
    hn_diag dg = { 0 };
    int rank;

    for (int64_t i = 0; i < 40; i++) {
        const int64_t j = (i * 29 + 3) % 41, s = i - j, f = s >= 0 ? s / 7 : -((-s + 6) / 7);
        CHECK_OK(hn_context_set_input_shape(c, 0, 2, (int64_t[]){ i, j }, &dg), &dg);
        CHECK_OK(hn_context_prepare(c, &dg), &dg);
        CHECK_OK(hn_context_shape(c, 1, &rank, got, &dg), &dg);
        const int64_t want[] = { i + j,  i * j, HN_MIN(i, j), HN_MAX(s, 7), s - 7 * f,
                                 i == j, i < j, HN_MIN(i, j), (i + 6) / 7,  f + 7 };
        for (int k = 0; k < rank; k++)
            CHECK_EQ(got[k], want[k]);
    }
    CHECK_OK(hn_context_set_input_shape(c, 0, 2, (int64_t[]){ 41, 1 }, &dg), &dg);
    CHECK_ERR(hn_context_prepare(c, &dg), HONE_E_SHAPE, &dg, "axis 0 of \"x\": 41 must be at most 40");
    CHECK_OK(hn_context_set_input_shape(c, 0, 2, (int64_t[]){ 4, INT64_MAX }, &dg), &dg);
    CHECK_ERR(hn_context_prepare(c, &dg), HONE_E_SHAPE, &dg, "overflows");
    hn_context_destroy(c);
    hn_engine_unref(e);
}

TEST(runtime_profiles_steps)
{
    hn_engine *const e = hm_engine(t, hm_add_scale(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    float x[64] = { 0 };
    hn_diag dg = { 0 };

    CHECK_EQ(hn_context_n_step_time(c), 0);
    CHECK_OK(hn_context_set_profiling(c, true, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 0, x, sizeof(x), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, x, sizeof(x), &dg), &dg);
    for (int k = 0; k < 5; k++)
        CHECK_OK(hn_context_run(c, &dg), &dg);
    CHECK_EQ(hn_context_n_step_time(c), 2);
    for (int i = 0; i < 2; i++) {
        const hn_step_time s = hn_context_step_time(c, i);
        CHECK(s.n_run == 5 && s.min_ns >= 0 && s.sum_ns >= 5 * s.min_ns && s.threads >= 1);
    }
    CHECK_STR(hn_plan_str(hn_engine_get_plan(e), hn_engine_get_plan(e)->step[1].origin), "scale");
    hn_context_destroy(c);
    hn_engine_unref(e);
}

TEST(runtime_null_device)
{
    hn_engine *const e = hm_engine(t, hm_add_scale(t), hn_device_null());
    hn_context *const c = hm_context(e, NULL);
    float x[64] = { 1 }, z[64] = { 7 };
    hn_diag dg = { 0 };

    CHECK_OK(hn_context_bind(c, 0, x, sizeof(x), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, x, sizeof(x), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 2, z, sizeof(z), &dg), &dg);
    CHECK_OK(hn_context_run(c, &dg), &dg);
    CHECK(z[0] == 7);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* Real machine code through the file: int64 fill, buf[0][lo..hi) = arg[0]. */
TEST(runtime_runs_code_from_a_file)
{
#if defined(__x86_64__)
    static const uint8_t code[] = {
        0x4C, 0x8B, 0x0F,       /* mov r9, [rdi] */
        0x48, 0x8B, 0x06,       /* mov rax, [rsi] */
        0x48, 0x39, 0xCA,       /* cmp rdx, rcx */
        0x7D, 0x09,             /* jge +9 */
        0x49, 0x89, 0x04, 0xD1, /* mov [r9+rdx*8], rax */
        0x48, 0xFF, 0xC2,       /* inc rdx */
        0xEB, 0xF2,             /* jmp -14 */
        0xC3,                   /* ret */
    };
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t n = hn_pb_const(b, 1000), v = hn_pb_const(b, -42);
    const uint32_t y = hn_pb_output(b, "y", HN_I64, 1, &n);
    char path[] = "/tmp/hone-test-XXXXXX";
    hn_diag dg = { 0 };
    hn_engine_writer *w;
    hn_engine *e;
    hn_plan plan;

    hn_pb_target(b, HN_ARCH_X86_64, 0);
    hm_call(b, 0, (uint32_t[]){ W(hn_pb_io_buf(b, y)) }, 1, &v, 1, n);
    CHECK_OK(hn_pb_finish(b, &plan, &dg), &dg);
    CHECK(mkstemp(path) >= 0);
    CHECK_OK(hn_engine_writer_create(path, NULL, &w, &dg), &dg);
    CHECK_OK(hn_engine_writer_finish(w, &plan, code, sizeof(code), "{}", &dg), &dg);
    hn_engine_writer_destroy(w);
    CHECK_OK(hn_engine_open(path, NULL, &e, &dg), &dg);
    hn_context *const c = hm_context(e, NULL);
    CHECK_OK(hn_context_run(c, &dg), &dg);
    const int64_t *got = hn_context_output_data(c, 0);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(got[i], -42);
    hn_context_destroy(c);
    hn_engine_unref(e);
    remove(path);
#else
    SKIP("machine code for x86-64");
#endif
}

/* ---- poison ---- */
static hn_pb *(*const models[])(hn_test *) = { hm_loop, while_model, if_model, nested_model, parts_model };

/* Sound plans give the same with every dead byte overwritten. */
TEST(runtime_poison_leaves_sound_plans_alone)
{
    for (int m = 0; m < HN_COUNT(models); m++) {
        hn_engine *const e = hm_engine(t, models[m](t), NULL);
        hn_context *const c[] = { hm_context(e, NULL), hm_context(e, &(hn_context_opts){ .poison = true }) };
        int64_t in[2] = { 3, 7 };
        hn_diag dg = { 0 };

        for (int k = 0; k < 2; k++) {
            for (uint32_t i = 0; i < hn_engine_get_plan(e)->n_io; i++)
                if (hn_engine_get_plan(e)->io[i].flags == HN_IO_INPUT)
                    CHECK_OK(hn_context_bind(c[k], (int)i, &in[i], 8, &dg), &dg);
            for (int r = 0; r < 3; r++)
                CHECK_OK(hn_context_run(c[k], &dg), &dg);
        }
        for (uint32_t i = 0; i < hn_engine_get_plan(e)->n_io; i++) {
            if (hn_engine_get_plan(e)->io[i].flags == HN_IO_INPUT) continue;
            const int64_t bytes = hn_context_io_bytes(c[0], (int)i);
            CHECK_EQ(hn_context_io_bytes(c[1], (int)i), bytes);
            CHECK(memcmp(hn_context_output_data(c[0], (int)i), hn_context_output_data(c[1], (int)i),
                         (size_t)bytes) == 0);
        }
        hn_context_destroy(c[0]);
        hn_context_destroy(c[1]);
        hn_engine_unref(e);
    }
}

/* And it shows a life that ends too early. */
TEST(runtime_poison_shows_short_lives)
{
    static const uint8_t code[64] = { 0xC3 };
    const hn_engine_opts o = { .fn = hm_kernels, .n_fn = HM_N };
    float x[64], z[64];
    hn_engine_writer *w;
    hn_diag dg = { 0 };
    hn_engine *e;
    hn_plan plan;
    size_t n;
    void *data;

    CHECK_OK(hn_pb_finish(hm_add_scale(t), &plan, &dg), &dg);
    hn_plan_buf *const buf = hn_arena_memdup(t->arena, plan.buf, plan.n_buf * sizeof(*plan.buf));
    for (uint32_t i = 0; i < plan.n_buf; i++)
        if (buf[i].kind == HN_BUF_ARENA) buf[i].last = 0;
    plan.buf = buf;
    CHECK_OK(hn_engine_writer_create(NULL, NULL, &w, &dg), &dg);
    CHECK_OK(hn_engine_writer_finish_memory(w, &plan, code, sizeof(code), "{}", &data, &n, &dg), &dg);
    hn_engine_writer_destroy(w);
    CHECK_OK(hn_engine_from_memory(data, n, &o, &e, &dg), &dg);
    for (int i = 0; i < 64; i++)
        x[i] = 1;
    for (int k = 0; k < 2; k++) {
        hn_context *const c = hm_context(e, &(hn_context_opts){ .poison = k == 1 });
        CHECK_OK(hn_context_bind(c, 0, x, sizeof(x), &dg), &dg);
        CHECK_OK(hn_context_bind(c, 1, x, sizeof(x), &dg), &dg);
        CHECK_OK(hn_context_bind(c, 2, z, sizeof(z), &dg), &dg);
        CHECK_OK(hn_context_run(c, &dg), &dg);
        CHECK(k == 0 ? z[0] == 6 : z[0] != z[0]);
        hn_context_destroy(c);
    }
    hn_engine_unref(e);
}

/* A cache updated in place: one memory is input and output. */
TEST(runtime_input_bound_as_output)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t n = hn_pb_const(b, 100), three = hn_pb_const(b, 3);
    const uint32_t x = hn_pb_input(b, "past", HN_F32, 1, &n), y = hn_pb_output(b, "present", HN_F32, 1, &n);
    float cache[100];
    hn_diag dg = { 0 };

    hm_call(b, HM_SCALE, (uint32_t[]){ R(hn_pb_io_buf(b, x)), W(hn_pb_io_buf(b, y)) }, 2, &three, 1, n);
    hn_engine *const e = hm_engine(t, b, NULL);
    hn_context *const c = hm_context(e, NULL);
    for (int i = 0; i < 100; i++)
        cache[i] = (float)i;
    CHECK_OK(hn_context_bind(c, 0, cache, sizeof(cache), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, cache, sizeof(cache), &dg), &dg);
    CHECK_OK(hn_context_run(c, &dg), &dg);
    CHECK_OK(hn_context_run(c, &dg), &dg);
    for (int i = 0; i < 100; i++)
        CHECK(cache[i] == 9 * (float)i);
    hn_context_destroy(c);
    hn_engine_unref(e);
}
