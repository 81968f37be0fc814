/* Square blocks of elements turned over in registers: log2(lanes) rounds that swap halves, quarters, ... of
 * pairs of rows. */
#include "tactic/cpu/square.h"

void hn_square_transpose(hn_kb *b, hn_kv *x, int lanes)
{
    for (int d = 1; d < lanes; d *= 2) {
        int low[HN_SQUARE_MAX], high[HN_SQUARE_MAX];
        for (int i = 0; i < lanes; i++) {
            low[i] = i & d ? lanes + (i ^ d) : i;
            high[i] = i & d ? lanes + i : i ^ d;
        }
        for (int i = 0; i < lanes; i++) {
            if (i & d) continue;
            const hn_kv p = x[i], q = x[i + d];
            x[i] = hn_kb_shuffle(b, p, q, low, lanes);
            x[i + d] = hn_kb_shuffle(b, p, q, high, lanes);
        }
    }
}
