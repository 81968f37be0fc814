/* Elements of simulated libraries' tensors. */
#include <math.h>
#include <string.h>

#include "sim_int.h"

__extension__ typedef _Float16 half; /* gcc and clang have it on the hosts that tests run on */

/* Of 8 bits: a sign, an exponent, so many bits of fraction. E4M3 has no infinities: its largest pattern alone is NaN. */
static float byte_of(uint8_t b, int type)
{
    const int bits = type == SIM_E4M3 ? 3 : 2, bias = type == SIM_E4M3 ? 7 : 15, top = 0x7f >> bits;
    const int exponent = (b & 0x7f) >> bits, fraction = b & ((1 << bits) - 1);
    float f = exponent ? ldexpf((float)((1 << bits) + fraction), exponent - bias - bits) : ldexpf((float)fraction, 1 - bias - bits);
    if (type == SIM_E4M3 && (b & 0x7f) == 0x7f) f = NAN;
    if (type == SIM_E5M2 && exponent == top) f = fraction ? NAN : INFINITY;
    return b & 0x80 ? -f : f;
}

float sim_get(const uint8_t *at, int type, int64_t i)
{
    uint16_t h;
    half x;
    float f;

    if (type == SIM_F32) {
        memcpy(&f, at + 4 * i, 4);
        return f;
    }
    if (type == SIM_E4M3 || type == SIM_E5M2) return byte_of(at[i], type);
    memcpy(&h, at + 2 * i, 2);
    if (type == SIM_F16) {
        memcpy(&x, &h, 2);
        return (float)x;
    }
    const uint32_t bits = (uint32_t)h << 16;
    memcpy(&f, &bits, 4);
    return f;
}

void sim_set(uint8_t *at, int type, int64_t i, float f)
{
    const half x = (half)f;
    uint32_t bits;

    if (type == SIM_F32) {
        memcpy(at + 4 * i, &f, 4);
        return;
    }
    if (type == SIM_F16) {
        memcpy(at + 2 * i, &x, 2);
        return;
    }
    memcpy(&bits, &f, 4);
    bits += 0x7fff + (bits >> 16 & 1);
    const uint16_t h = (uint16_t)(bits >> 16);
    memcpy(at + 2 * i, &h, 2);
}

float sim_tf32(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if ((bits >> 23 & 0xff) == 0xff) return f;
    bits = (bits + 0x1000) & ~0x1fffu;
    memcpy(&f, &bits, 4);
    return f;
}
