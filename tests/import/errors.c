/* What is refused and how it is said: all problems at once, with names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "make.h"

TEST(every_problem_is_listed)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "2,3");
    g_node_named(&g, "first", "NoSuchOp", "x", "a", "", NULL);
    g_node_named(&g, "second", "Relu", "a", "b", "", NULL); /* reads a bad value: not a problem of its own */
    g_node_named(&g, "third", "StringSplit", "x", "c", "", NULL);
    g_node_named(&g, "fourth", "Softmax", "x", "d", "axis=i:5", NULL);
    g_node_named(&g, "fifth", "Transpose", "x", "e", "perm=is:0,0", NULL);
    g_node_named(&g, "sixth", "Relu", "nowhere", "f", "", NULL);
    g_output(&g, "b", F32, NULL);
    CHECK_EQ(import_bad(t, &g, 20, NULL, HONE_E_UNSUPPORTED, "first"), 5);
}

static void one(hn_test *t, const char *op, const char *in, const char *attrs, int opset, hone_status want,
                const char *part)
{
    hn_str g = { 0 };
    hn_test_note("%s", op);
    g_input(&g, "x", F32, "2,3");
    g_ints(&g, "i", "2", "1,2");
    g_node_named(&g, "n", op, in, "y", attrs, NULL);
    g_output(&g, "y", 0, NULL);
    import_bad(t, &g, opset, NULL, want, part);
}

TEST(bad_uses_are_named)
{
    one(t, "Relu", "x,x", "", 13, HONE_E_MODEL, "takes 1 to 1 inputs and has 2");
    one(t, "Add", "x", "", 13, HONE_E_MODEL, "takes 2 to 2 inputs and has 1");
    one(t, "Softmax", "x", "axis=f:1", 13, HONE_E_MODEL, "holds a float where an int belongs");
    one(t, "Softmax", "x", "axes=i:1", 13, HONE_E_UNSUPPORTED, "\"axes\" is not known here");
    one(t, "Gelu", "x", "", 13, HONE_E_UNSUPPORTED, "newer than the opset version");
    one(t, "Reshape", "x,i", "", 13, HONE_E_SHAPE, NULL);
    one(t, "Cast", "x", "to=i:8", 13, HONE_E_UNSUPPORTED, "type string");
    one(t, "Cast", "x", "", 13, HONE_E_MODEL, "\"to\" is missing");
    one(t, "Concat", "x", "", 13, HONE_E_MODEL, "\"axis\" is missing");
    one(t, "Unsqueeze", "x,i", "", 11, HONE_E_MODEL, "takes 1 to 1 inputs");
    one(t, "Gather", "x,i", "axis=i:2", 13, HONE_E_SHAPE, "axis 2 is out of range for rank 2");
    one(t, "Resize", "x,,,", "", 13, HONE_E_MODEL, "neither scales nor sizes");
    one(t, "Einsum", "x", "equation=s:ijk->i", 13, HONE_E_SHAPE, "does not fit rank 2");
    one(t, "If", "x", "", 13, HONE_E_MODEL, "a branch is missing");
}

TEST(kernels_of_absurd_length_are_refused)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "1,1,3,3");
    g_input(&g, "w", F32, "1,1,1000000000000000000,1");
    g_node(&g, "ConvTranspose", "x,w", "y", "auto_pad=s:SAME_UPPER output_padding=is:2,2 strides=is:3,3");
    g_output(&g, "y", F32, NULL);
    import_bad(t, &g, 11, NULL, HONE_E_LIMIT, "1000000000000000000 taps");
}

TEST(extents_that_nothing_can_count_are_refused)
{
    static const struct {
        const char *op, *in, *ints, *attrs;
    } row[] = {
        { "ConstantOfShape", "i", "4611686018427387904,4611686018427387904", "" },
        { "Expand", "x,i", "4294967296,4294967296", "" },
        { "Tile", "x,i", "2305843009213693952,4", "" },
        { "Resize", "x,,,i", "4294967296,4294967296", "" },
        { "Pad", "x,q", "1,1", "" },
        { "Reshape", "x,i", "4294967296,4294967296", "allowzero=i:1" },
    };
    for (int k = 0; k < HN_COUNT(row); k++) {
        hn_str g = { 0 };
        hn_test_note("%s", row[k].op);
        g_input(&g, "x", F32, "1,1");
        g_ints(&g, "i", "2", row[k].ints);
        g_ints(&g, "q", "4", "2305843009213693952,1,2305843009213693952,9");
        g_node_named(&g, "n", row[k].op, row[k].in, "y", row[k].attrs, NULL);
        g_output(&g, "y", F32, NULL);
        import_bad(t, &g, 14, NULL, HONE_E_LIMIT, "/n\"");
    }
    hn_str g = { 0 };
    g_input(&g, "x", F32, "4611686018427387904,4611686018427387904");
    g_output(&g, "x", F32, NULL);
    import_bad(t, &g, 13, NULL, HONE_E_LIMIT, "more elements than 64 bits count");
}

/* No element, so nothing is too large about it: folded like any constant. */
TEST(absurd_extents_beside_none)
{
    hn_str g = { 0 };
    g_floats(&g, "c", "4611686018427387903,0,4611686018427387903", "");
    g_node(&g, "Transpose", "c", "y", "perm=is:1,0,2");
    g_output(&g, "y", F32, NULL);
    const hn_graph *r = import_ok(t, &g, 11, NULL);
    CHECK_EQ(r->out[0].value->type.dim[0], 0);
    CHECK_EQ(r->out[0].value->type.dim[2], 4611686018427387903);
}

/* Numbers of the file that would be extents, were they not negative or beyond all counting. */
TEST(numbers_that_are_no_extents_are_refused)
{
    static const struct {
        const char *domain, *op, *in, *attrs;
        hone_status want;
        const char *part;
    } row[] = {
        { "", "Conv", "x,w", "kernel_shape=is:-16", HONE_E_MODEL, "the entry -16" },
        { "", "ConvTranspose", "x,w", "kernel_shape=is:-9223372036854775807", HONE_E_MODEL, "the entry -9223372036854775807" },
        { "", "Range", "zero,huge,one", "", HONE_E_SHAPE, "too many elements" },
        { "", "Multinomial", "m", "sample_size=i:-3", HONE_E_MODEL, "sample_size is -3" },
        { "", "Resize", "x,roi,scales", "coordinate_transformation_mode=s:tf_crop_and_resize", HONE_E_LIMIT, "extent is -2" },
        { "com.microsoft", "Attention", "x,w2,b2", "num_heads=i:1 qkv_hidden_sizes=is:4,-4,4", HONE_E_MODEL, "the entry -4" },
        { "com.microsoft", "MatMulNBits", "m,codes,scales", "K=i:9223372036854775807 N=i:2 block_size=i:16", HONE_E_MODEL, "out of range" },
    };
    for (int k = 0; k < HN_COUNT(row); k++) {
        hn_str g = { 0 };
        hn_test_note("%s", row[k].op);
        g_input(&g, "x", F32, "1,1,4");
        g_input(&g, "w", F32, "1,1,open");
        g_input(&g, "m", F32, "2,3");
        g_input(&g, "codes", U8, "2,1,8");
        g_input(&g, "w2", F32, "4,12");
        g_input(&g, "b2", F32, "12");
        g_floats(&g, "zero", "", "0");
        g_floats(&g, "one", "", "1e-20");
        g_floats(&g, "huge", "", "1e20");
        g_floats(&g, "roi", "6", "0,0,1,1,1,0.5");
        g_floats(&g, "scales", "3", "1,1,1");
        g_node_in(&g, row[k].domain, row[k].op, row[k].in, "y", row[k].attrs);
        g_output(&g, "y", 0, NULL);
        import_bad(t, &g, 17, NULL, row[k].want, row[k].part);
    }
}

/* One node with more operands than any kernel takes, and the limit on them. */
TEST(huge_counts)
{
    hn_str g = { 0 }, names = { 0 };
    for (int i = 0; i < 512; i++)
        hn_str_add(&names, i ? ",x" : "x");
    g_input(&g, "x", F32, "2");
    g_node(&g, "Concat", hn_str_get(&names), "y", "axis=i:0");
    g_output(&g, "y", F32, NULL);
    const hn_graph *r = import_ok(t, &g, 13, NULL);
    CHECK_EQ(r->out[0].value->type.dim[0], 1024);
    for (const hn_node *n = r->first; n; n = n->next)
        CHECK(n->n_in <= 256);
    g_input(&g, "x", F32, "2");
    g_node_named(&g, "n", "Split", "x", "a", "num_outputs=i:1099511627776", NULL);
    g_output(&g, "a", F32, NULL);
    import_bad(t, &g, 18, NULL, HONE_E_MODEL, "num_outputs is 1099511627776");
    hn_str_done(&names);
}

TEST(newer_opsets_and_formats_are_refused)
{
    hn_str g = { 0 };
    g_output(&g, "y", F32, NULL);
    import_bad(t, &g, HN_ONNX_OPSET_MAX + 1, NULL, HONE_E_UNSUPPORTED, "newest known is 28");
}

TEST(cycles_and_doubles_are_refused)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "2");
    g_node_named(&g, "p", "Add", "x,b", "a", "", NULL);
    g_node_named(&g, "q", "Relu", "a", "b", "", NULL);
    g_output(&g, "b", F32, NULL);
    import_bad(t, &g, 13, NULL, HONE_E_MODEL, "needs its own result");
    g_input(&g, "x", F32, "2");
    g_node(&g, "Relu", "x", "a", "");
    g_node(&g, "Neg", "x", "a", "");
    g_output(&g, "a", F32, NULL);
    import_bad(t, &g, 13, NULL, HONE_E_MODEL, "given to two tensors");
    g_input(&g, "x", F32, "2");
    g_input(&g, "x", F32, "2");
    g_output(&g, "x", F32, NULL);
    import_bad(t, &g, 13, NULL, HONE_E_MODEL, "given to two tensors");
    g_input(&g, "x", F32, "2");
    g_node(&g, "Relu", "x", "x", "");
    g_output(&g, "x", F32, NULL);
    import_bad(t, &g, 13, NULL, HONE_E_MODEL, "needs its own result");
    g_floats(&g, "w", "1", "1");
    g_floats(&g, "w", "1", "2");
    g_output(&g, "w", F32, NULL);
    import_bad(t, &g, 13, NULL, HONE_E_MODEL, "given to two tensors");
}

/* A branch that reads what its own If yields. */
TEST(cycles_through_bodies_are_refused)
{
    hn_str g = { 0 }, branch = { 0 }, more = { 0 };
    for (int i = 0; i < 2; i++) {
        g_node(&branch, "Neg", "y", "b", "");
        g_output(&branch, "b", F32, NULL);
        a_graph(&more, i ? "else_branch" : "then_branch", &branch);
    }
    g_input(&g, "c", BOOL, "");
    g_node_named(&g, "n", "If", "c", "y", "", &more);
    g_output(&g, "y", F32, NULL);
    import_bad(t, &g, 13, NULL, HONE_E_MODEL, "needs its own result");
}

TEST(missing_output_and_wrong_type)
{
    hn_str g = { 0 };
    g_input(&g, "x", F32, "2");
    g_output(&g, "gone", F32, NULL);
    import_bad(t, &g, 13, NULL, HONE_E_MODEL, "nothing computes it");
    g_input(&g, "x", F32, "2");
    g_node(&g, "Relu", "x", "y", "");
    g_output(&g, "y", I64, NULL);
    import_bad(t, &g, 13, NULL, HONE_E_TYPE, "declared i64 but computed as f32");
    g_input(&g, "x", STR, "2");
    g_output(&g, "x", STR, NULL);
    import_bad(t, &g, 13, NULL, HONE_E_UNSUPPORTED, "type string");
    g_input(&g, "x", F32, NULL);
    g_output(&g, "x", F32, NULL);
    import_bad(t, &g, 13, NULL, HONE_E_UNSUPPORTED, "no declared rank");
}

/* ---- tensors ---- */

static void bad_tensor(hn_test *t, hn_str *tensor, hone_status want, const char *part)
{
    hn_str g = { 0 };
    pb_msg(&g, 5, tensor);
    g_output(&g, "w", F32, NULL);
    import_bad(t, &g, 13, NULL, want, part);
}

TEST(tensors_that_lie_are_refused)
{
    hn_str w = { 0 };
    t_begin(&w, "w", F32, "4");
    pb_bytes(&w, 9, "1234567", 7);
    bad_tensor(t, &w, HONE_E_MODEL, "7 bytes where the shape asks for 16");
    t_begin(&w, "w", F32, "3");
    bad_tensor(t, &w, HONE_E_MODEL, "0 entries where the shape asks for 3");
    t_begin(&w, "w", F32, "4611686018427387904,4611686018427387904");
    bad_tensor(t, &w, HONE_E_LIMIT, "overflows");
    t_begin(&w, "w", F32, "-3");
    bad_tensor(t, &w, HONE_E_MODEL, "extent 0 of the tensor is -3");
    t_begin(&w, "w", 99, "1");
    bad_tensor(t, &w, HONE_E_UNSUPPORTED, "(99)");
    t_begin(&w, "w", F32, "1,1,1,1,1,1,1,1,1,1,1,1");
    bad_tensor(t, &w, HONE_E_UNSUPPORTED, "rank 12");
}

/* ---- the file itself ---- */

TEST(every_cut_of_a_file_is_an_error)
{
    hn_str g = { 0 }, m = { 0 };
    g_input(&g, "x", F32, "2,n");
    g_floats(&g, "w", "2,1", "1,2");
    g_node(&g, "Add", "x,w", "y", "");
    g_output(&g, "y", F32, "2,n");
    m_model(&m, &g, 13);
    for (size_t n = 0; n < m.n; n++) {
        hn_arena *a = hn_arena_create();
        hn_graph *r = NULL;
        hn_diag dg = { 0 };
        hn_test_note("%zu bytes", n);
        CHECK(hn_import_mem(a, hn_str_get(&m), n, NULL, NULL, &r, NULL, &dg) != HONE_OK);
        CHECK(dg.message[0]);
        hn_arena_destroy(a);
    }
    hn_str_done(&m);
}

TEST(deep_nesting_is_refused)
{
    hn_str g = { 0 };
    hn_diag dg = { 0 };
    hn_graph *r = NULL;
    g_output(&g, "y", F32, NULL);
    for (int i = 0; i < 200; i++) {
        hn_str outer = { 0 }, more = { 0 };
        a_graph(&more, "body", &g);
        g_node_named(&outer, NULL, "Loop", ",", "y", "", &more);
        g = outer;
    }
    hn_str m = { 0 };
    m_model(&m, &g, 13);
    CHECK_ERR(hn_import_mem(t->arena, hn_str_get(&m), m.n, NULL, NULL, &r, NULL, &dg), HONE_E_LIMIT, &dg,
              "nest deeper");
    hn_str_done(&m);
}

TEST(small_files_cannot_ask_for_much_memory)
{
    hn_str g = { 0 };
    hn_diag dg = { 0 };
    hn_graph *r = NULL;
    const char empty_node[] = { 1 << 3 | 2, 0 };
    for (int i = 0; i < 4000000; i++)
        hn_str_add_n(&g, empty_node, 2);
    hn_str m = { 0 };
    m_model(&m, &g, 13);
    CHECK_ERR(hn_import_mem(t->arena, hn_str_get(&m), m.n, NULL, NULL, &r, NULL, &dg), HONE_E_LIMIT, &dg,
              "memory");
    hn_str_done(&m);
}

TEST(other_files_are_not_models)
{
    hn_diag dg = { 0 };
    hn_graph *r = NULL;
    CHECK_ERR(hn_import_mem(t->arena, "\x89PNG\r\n", 6, NULL, NULL, &r, NULL, &dg), HONE_E_FORMAT, &dg, NULL);
    CHECK_ERR(hn_import_mem(t->arena, "", 0, NULL, NULL, &r, NULL, &dg), HONE_E_FORMAT, &dg, "no graph");
    CHECK_ERR(hn_import_file(t->arena, "/no/such/model.onnx", NULL, &r, NULL, &dg), HONE_E_NOTFOUND, &dg,
              "/no/such/model.onnx");
}

/* ---- external data ---- */

static void put(const char *dir, const char *name, const void *data, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

/* Imports a model whose only tensor (float[4]) lies at `location`. */
static hone_status external(hn_test *t, const char *dir, const char *location, const char *offset,
                            const char *length, hn_graph **ret, hn_diag *dg)
{
    static const char *const key[] = { "location", "offset", "length" };
    const char *const value[] = { location, offset, length };
    hn_str g = { 0 }, m = { 0 }, w = { 0 }, e = { 0 };
    t_begin(&w, "w", F32, "4");
    for (int i = 0; i < 3; i++) {
        if (!value[i]) continue;
        pb_str(&e, 1, key[i]);
        pb_str(&e, 2, value[i]);
        pb_msg(&w, 13, &e);
    }
    pb_int(&w, 14, 1);
    pb_msg(&g, 5, &w);
    g_output(&g, "w", F32, NULL);
    m_model(&m, &g, 13);
    const hone_status s = hn_import_mem(t->arena, hn_str_get(&m), m.n, dir, NULL, ret, NULL, dg);
    hn_str_done(&m);
    return s;
}

TEST(external_data_stay_inside_the_folder)
{
    char dir[] = "/tmp/hone-import-XXXXXX", path[256];
    const float data[] = { 0, 1, 2, 3, 4, 5 };
    hn_graph *r = NULL;
    hn_diag dg = { 0 };
    CHECK(mkdtemp(dir) != NULL);
    put(dir, "w.bin", data, sizeof data);
    snprintf(path, sizeof path, "%s/sub", dir);
    CHECK(mkdir(path, 0700) == 0);
    put(path, "w.bin", data, sizeof data);
    snprintf(path, sizeof path, "%s/link", dir);
    CHECK(symlink("w.bin", path) == 0);
    snprintf(path, sizeof path, "%s/dirlink", dir);
    CHECK(symlink("sub", path) == 0);

    CHECK_OK(external(t, dir, "w.bin", "8", "16", &r, &dg), &dg);
    CHECK_NEAR(((const float *)r->out[0].value->data->at)[0], 2, 0);
    CHECK_OK(external(t, dir, "w.bin", "4", "16", &r, &dg), &dg); /* tensors may share bytes */
    CHECK_NEAR(((const float *)r->out[0].value->data->at)[3], 4, 0);
    CHECK_OK(external(t, dir, "sub/w.bin", NULL, NULL, &r, &dg), &dg);
    CHECK_ERR(external(t, dir, "w.bin", "12", NULL, &r, &dg), HONE_E_MODEL, &dg, "ends at byte 24");
    CHECK_ERR(external(t, dir, "w.bin", "9223372036854775807", NULL, &r, &dg), HONE_E_MODEL, &dg,
              "ends at byte 24");
    CHECK_ERR(external(t, dir, "w.bin", "-4", NULL, &r, &dg), HONE_E_MODEL, &dg, "offset \"-4\"");
    CHECK_ERR(external(t, dir, "w.bin", NULL, "8", &r, &dg), HONE_E_MODEL, &dg, "length 8 where");
    CHECK_ERR(external(t, dir, "/etc/passwd", NULL, NULL, &r, &dg), HONE_E_MODEL, &dg, "plain path");
    CHECK_ERR(external(t, dir, "../w.bin", NULL, NULL, &r, &dg), HONE_E_MODEL, &dg, "../w.bin");
    CHECK_ERR(external(t, dir, "sub/../w.bin", NULL, NULL, &r, &dg), HONE_E_MODEL, &dg, "sub/../w.bin");
    CHECK_ERR(external(t, dir, "link", NULL, NULL, &r, &dg), HONE_E_MODEL, &dg, "link");
    CHECK_ERR(external(t, dir, "dirlink/w.bin", NULL, NULL, &r, &dg), HONE_E_MODEL, &dg, "dirlink");
    CHECK_ERR(external(t, dir, "sub", NULL, NULL, &r, &dg), HONE_E_MODEL, &dg, "not a regular file");
    CHECK_ERR(external(t, dir, "none", NULL, NULL, &r, &dg), HONE_E_NOTFOUND, &dg, "none");
    CHECK_ERR(external(t, NULL, "w.bin", NULL, NULL, &r, &dg), HONE_E_MODEL, &dg, "without a folder");

    const char *const files[] = { "w.bin", "sub/w.bin", "link", "dirlink", "sub" };
    for (int i = 0; i < HN_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        CHECK(remove(path) == 0);
    }
    CHECK(rmdir(dir) == 0);
}
