/* Sequences and optionals as two tensors, there and back. */
#include <hone/hone.h>

#include <string.h>

#include "harness.h"

static hone_tensor tensor(hone_dtype t, int rank, int64_t a, int64_t b, void *data, size_t bytes)
{
    return (hone_tensor){ .dtype = t, .rank = rank, .dim = { a, b }, .data = data, .bytes = bytes };
}

static void there_and_back(const hone_tensor *item, int n, hone_dtype t)
{
    hone_tensor packed[2], *back = NULL;
    hone_error *err = NULL;
    int m = -2;
    CHECK_EQ(hone_list_pack(item, n, t, packed, &err), HONE_OK);
    CHECK_EQ(packed[1].dim[1], 11);
    CHECK_EQ(packed[1].dim[0], n < 0 ? 1 : n);
    CHECK_EQ(hone_list_unpack(packed, &back, &m, &err), HONE_OK);
    CHECK_EQ(m, n);
    for (int i = 0; i < n; i++) {
        CHECK_EQ(back[i].rank, item[i].rank);
        CHECK_EQ(back[i].bytes, item[i].bytes);
        for (int k = 0; k < back[i].rank; k++) CHECK_EQ(back[i].dim[k], item[i].dim[k]);
        CHECK(memcmp(back[i].data, item[i].data, back[i].bytes) == 0);
    }
    hone_list_free(back, m);
    hone_tensor_free(&packed[0]);
    hone_tensor_free(&packed[1]);
}

TEST(lists_survive_packing)
{
    float x[] = { 1, 2, 3, 4, 5, 6 }, none[1] = { 0 };
    uint8_t packed4[] = { 0x21, 0x03 }, more4[] = { 0x54 };
    const hone_tensor floats[] = { tensor(HONE_DTYPE_F32, 2, 2, 3, x, 24), tensor(HONE_DTYPE_F32, 1, 0, 0, none, 0),
                                   tensor(HONE_DTYPE_F32, 0, 0, 0, x + 1, 4) };
    const hone_tensor nibbles[] = { tensor(HONE_DTYPE_U4, 1, 3, 0, packed4, 2), tensor(HONE_DTYPE_U4, 1, 2, 0, more4, 1) };
    there_and_back(floats, 3, HONE_DTYPE_F32);
    there_and_back(floats, 0, HONE_DTYPE_F32);
    there_and_back(NULL, -1, HONE_DTYPE_F32);
    there_and_back(nibbles, 2, HONE_DTYPE_U4); /* three, then two: the second begins inside a byte */
}

static void refused(const hone_tensor *packed, hone_status want)
{
    hone_tensor *back = NULL;
    hone_error *err = NULL;
    int n;
    CHECK_EQ(hone_list_unpack(packed, &back, &n, &err), want);
    CHECK(hone_error_message(err)[0]);
    hone_error_free(err);
}

TEST(what_is_no_list_is_refused)
{
    float x[4] = { 0 };
    int64_t rows[2][11] = { { 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, { 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1 } };
    hone_tensor p[2] = { tensor(HONE_DTYPE_F32, 1, 4, 0, x, 16), tensor(HONE_DTYPE_I64, 2, 2, 11, rows, sizeof rows) };
    hone_tensor *back = NULL;
    int n;
    CHECK_EQ(hone_list_unpack(p, &back, &n, NULL), HONE_OK);
    hone_list_free(back, n);
    rows[1][1] = 1; /* one element over */
    refused(p, HONE_E_SHAPE);
    rows[1][1] = 3; /* one too few */
    refused(p, HONE_E_SHAPE);
    rows[1][1] = -1;
    refused(p, HONE_E_SHAPE);
    rows[1][0] = 11;
    refused(p, HONE_E_SHAPE);
    p[1].bytes -= 8;
    refused(p, HONE_E_INVALID);
    p[1].dtype = HONE_DTYPE_F64;
    refused(p, HONE_E_INVALID);

    hone_error *err = NULL;
    hone_tensor made[2], mixed[] = { tensor(HONE_DTYPE_F32, 1, 4, 0, x, 16), tensor(HONE_DTYPE_F64, 1, 2, 0, x, 16) };
    CHECK_EQ(hone_list_pack(mixed, 2, HONE_DTYPE_F32, made, &err), HONE_E_TYPE);
    hone_error_free(err);
    mixed[0].bytes = 8;
    CHECK_EQ(hone_list_pack(mixed, 1, HONE_DTYPE_F32, made, NULL), HONE_E_INVALID);
}
