/* Writing and reading engine files; weights inside and in a store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../runtime/handmade.h"
#include "base/os.h"
#include "core/core.h"

#define R(buf) ((buf) | HN_ARG_READ)
#define W(buf) ((buf) | HN_ARG_WRITE)

static char *temp_dir(hn_test *t)
{
    char *const dir = hn_arena_strdup(t->arena, "/tmp/hone-test-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    return dir;
}

static const float weight_a[4] = { 1, 2, 3, 4 }, weight_b[4] = { 10, 20, 30, 40 };

/* y = a + b, both weights; a is added twice under one key. */
static void write_weights(hn_test *t, const char *path, const char *store)
{
    static const uint8_t code[64] = { 0xC3 };
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t n = hn_pb_const(b, 4);
    const uint32_t y = hn_pb_output(b, "y", HN_F32, 1, &n);
    const hn_digest da = hn_hash128(weight_a, 16), db = hn_hash128(weight_b, 16);
    hn_engine_writer *w;
    uint32_t ia, ib, again;
    hn_diag dg = { 0 };
    hn_plan plan;

    CHECK_OK(hn_engine_writer_create(path, store, &w, &dg), &dg);
    CHECK_OK(hn_engine_writer_weight(w, da, "", weight_a, 16, &ia, &dg), &dg);
    CHECK_OK(hn_engine_writer_weight(w, db, "packed 4x1", weight_b, 16, &ib, &dg), &dg);
    CHECK(hn_engine_writer_has_weight(w, da, "", 16, &again));
    CHECK_EQ(again, ia);
    CHECK(!hn_engine_writer_has_weight(w, da, "other", 16, &again));
    CHECK_OK(hn_engine_writer_weight(w, da, "", NULL, 16, &again, &dg), &dg);
    CHECK_EQ(again, ia);
    CHECK_ERR(hn_engine_writer_weight(w, da, "", weight_a, 12, &again, &dg), HONE_E_INTERNAL, &dg,
              "12 and 16 bytes");
    const uint32_t a = hn_pb_weight_buf(b, "a", ia, 16), c = hn_pb_weight_buf(b, "b", ib, 16);
    hm_call(b, HM_ADD, (uint32_t[]){ R(a), R(c), W(hn_pb_io_buf(b, y)) }, 3, NULL, 0, n);
    CHECK_OK(hn_pb_finish(b, &plan, &dg), &dg);
    CHECK_OK(hn_engine_writer_finish(w, &plan, code, sizeof(code), "{\"a\":1}", &dg), &dg);
    hn_engine_writer_destroy(w);
}

static void run_weights(const char *path, const char *store)
{
    const hn_engine_opts o = { .fn = hm_kernels, .n_fn = HM_N, .store_dir = store };
    hn_diag dg = { 0 };
    hn_engine *e;

    CHECK_OK(hn_engine_open(path, &o, &e, &dg), &dg);
    hn_context *const c = hm_context(e, NULL);
    CHECK_OK(hn_context_run(c, &dg), &dg);
    const float *y = hn_context_output_data(c, 0);
    for (int i = 0; i < 4; i++)
        CHECK(y[i] == weight_a[i] + weight_b[i]);
    const hn_engine_file *f = hn_engine_get_file(e);
    CHECK_STR(hn_engine_file_manifest(f), "{\"a\":1}");
    CHECK_STR(hn_plan_str(hn_engine_get_plan(e), hn_engine_get_plan(e)->weight[1].recipe), "packed 4x1");
    CHECK((uintptr_t)hn_engine_file_weight(f, 1) % 64 == 0);
    for (uint32_t i = 0; i < 2; i++) /* the tail may be read */
        for (int k = 0; k < HN_TAIL_BYTES; k++)
            CHECK(((const uint8_t *)hn_engine_file_weight(f, i))[16 + k] == 0);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

TEST(engine_weights_inside)
{
    char *const dir = temp_dir(t), *const path = hn_arena_printf(t->arena, "%s/m.hone", dir);

    write_weights(t, path, NULL);
    run_weights(path, NULL);
    remove(path);
    CHECK(rmdir(dir) == 0); /* no temporary is left */
}

TEST(engine_weights_in_a_store)
{
    char *const dir = temp_dir(t), *const path = hn_arena_printf(t->arena, "%s/m.hone", dir);
    char *const store = hn_arena_printf(t->arena, "%s/weights", dir), *const moved = hn_arena_printf(
                                                                          t->arena, "%s/w2", dir);
    char text[HN_DIGEST_TEXT];
    hn_engine_file *f;
    hn_diag dg = { 0 };

    write_weights(t, path, store);
    run_weights(path, NULL); /* "weights" beside the file is the default */
    write_weights(t, path, store);
    CHECK(rename(store, moved) == 0);
    CHECK_ERR(hn_engine_file_open(path, NULL, &f, &dg), HONE_E_NOTFOUND, &dg, "not in the store");
    run_weights(path, moved);
    char *const a = hn_arena_printf(t->arena, "%s/%s.w", moved,
                                    hn_digest_text(hn_weight_key(hn_hash128(weight_a, 16), ""), text));
    CHECK(truncate(a, 40) == 0);
    CHECK_ERR(hn_engine_file_open(path, &(hn_engine_read_opts){ .store_dir = moved }, &f, &dg), HONE_E_FORMAT,
              &dg, "damaged weight");
    CHECK_OK(hn_write_file_atomic(a, (char[80]){ 1 }, 80, &dg), &dg); /* right size, wrong bytes */
    CHECK_ERR(hn_engine_file_open(path, &(hn_engine_read_opts){ .store_dir = moved }, &f, &dg), HONE_E_FORMAT,
              &dg, "damaged weight");
    CHECK_OK(hn_engine_file_open(path, &(hn_engine_read_opts){ .store_dir = moved, .trust_weights = true },
                                 &f, &dg),
             &dg);
    hn_engine_file_close(f);
    CHECK(system(hn_arena_printf(t->arena, "rm -r '%s'", dir)) == 0);
}

TEST(engine_failed_write_leaves_the_old_file)
{
    char *const dir = temp_dir(t), *const path = hn_arena_printf(t->arena, "%s/m.hone", dir);
    hn_engine_writer *w;
    hn_diag dg = { 0 };
    hn_plan plan;
    uint32_t i;

    write_weights(t, path, NULL);
    CHECK_OK(hn_pb_finish(hm_add_scale(t), &plan, &dg), &dg);
    CHECK_OK(hn_engine_writer_create(path, NULL, &w, &dg), &dg);
    CHECK_OK(hn_engine_writer_weight(w, (hn_digest){ 1, 2 }, "", "abcd", 4, &i, &dg), &dg);
    CHECK_ERR(hn_engine_writer_finish(w, &plan, "", 0, "{}", &dg), HONE_E_FORMAT, &dg, "outside the code");
    hn_engine_writer_destroy(w);
    run_weights(path, NULL);
    remove(path);
    CHECK(rmdir(dir) == 0);
    CHECK_ERR(hn_engine_writer_create(path, NULL, &w, &dg), HONE_E_IO, &dg, "m.hone");
    hn_engine_file *f;
    CHECK_ERR(hn_engine_file_open(path, NULL, &f, &dg), HONE_E_NOTFOUND, &dg, "m.hone");
}

/* What is written is a function of what is asked: no times, no addresses, no padding left over. */
TEST(engine_bytes_repeat)
{
    char *const dir = temp_dir(t), *const path = hn_arena_printf(t->arena, "%s/m.hone", dir);
    hn_digest d[2];
    hn_diag dg = { 0 };

    for (int k = 0; k < 2; k++) {
        hn_bytes file;
        write_weights(t, path, NULL);
        CHECK_OK(hn_map_file(path, &file, &dg), &dg);
        d[k] = hn_hash128(file.at, file.n);
        hn_unmap(&file);
    }
    CHECK(hn_digest_eq(d[0], d[1]));
    CHECK(system(hn_arena_printf(t->arena, "rm -r '%s'", dir)) == 0);
}
