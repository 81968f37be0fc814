/* What a warp computes together, over the values of its 32 threads. kir.h has the picture. */
#include "kir/kir_int.h"

#include <string.h>

enum { ROWS = 16, COLUMNS = 8, ROW_BYTES = 32 };

bool hn_kir_by_warp(int op)
{
    return op >= HN_KOP_SHFL_XOR && op <= HN_KOP_LDMATRIX;
}

static void put_word(uint8_t *at, uint64_t word)
{
    const uint32_t w = (uint32_t)word;
    memcpy(at, &w, sizeof(w));
}

/* To 11 significant bits, ties away from zero; infinities and NaN stay. */
static float to_tf32(uint32_t bits)
{
    const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return hn_lane_f32(finite ? (bits + 0x1000u) & ~0x1fffu : bits);
}

static double element(int dtype, const uint8_t *line, int k)
{
    uint32_t word;
    uint16_t half;

    switch (dtype) {
    case HN_I8:
        return (int8_t)line[k];
    case HN_U8:
        return line[k];
    case HN_F32:
        memcpy(&word, line + 4 * k, sizeof(word));
        return (double)to_tf32(word);
    default:
        memcpy(&half, line + 2 * k, sizeof(half));
        return (double)hn_half_to_f32(dtype, half);
    }
}

static uint64_t sum_of(int dtype, const uint8_t *row, const uint8_t *column, uint64_t acc)
{
    const int n = ROW_BYTES * 8 / hn_dtype_bits((hn_dtype)dtype), of_column = dtype == HN_U8 ? HN_I8 : dtype;
    double s = 0; /* exact for bytes */

    for (int k = 0; k < n; k++)
        s += element(dtype, row, k) * element(of_column, column, k);
    if (of_column == HN_I8) return hn_klane_norm(HN_I32, acc + (uint64_t)(int64_t)s);
    return hn_f32_lane((float)(s + (double)hn_lane_f32(acc)));
}

void hn_kwarp_mma(int dtype, const uint64_t *in[32][3], uint64_t out[32][4])
{
    uint8_t a[ROWS][ROW_BYTES], b[COLUMNS][ROW_BYTES];

    for (int t = 0; t < 32; t++) {
        const int g = t / 4, q = t % 4;
        for (int w = 0; w < 4; w++)
            put_word(&a[g + w % 2 * 8][w / 2 * 16 + 4 * q], in[t][0][w]);
        for (int w = 0; w < 2; w++)
            put_word(&b[g][w * 16 + 4 * q], in[t][1][w]);
    }
    for (int t = 0; t < 32; t++)
        for (int i = 0; i < 4; i++)
            out[t][i] = sum_of(dtype, a[t / 4 + i / 2 * 8], b[2 * (t % 4) + i % 2], in[t][2][i]);
}

uint32_t hn_kwarp_matrix_word(const uint8_t *const row[8], int t, bool transposed)
{
    const int g = t / 4, q = t % 4;
    uint16_t x[2];

    for (int i = 0; i < 2; i++)
        memcpy(&x[i], transposed ? row[2 * q + i] + 2 * g : row[g] + 2 * (2 * q + i), sizeof(x[i]));
    return (uint32_t)x[1] << 16 | x[0];
}
