/* Winograd's minimal filtering F(m,3): transforms as matrices and as code. */
#ifndef HN_TACTIC_CPU_WINO_H
#define HN_TACTIC_CPU_WINO_H

#include "kir/kir.h"

enum { HN_WINO_MAX = 8 };

/** y[m] = A^T ((G g[3]) * (B^T d[t])), t = m + 2, over the points 0, 1, -1, 2, -2, 1/2, -1/2 and infinity. */
typedef struct hn_wino {
    int m, t;
    double at[HN_WINO_MAX][HN_WINO_MAX]; /* m x t */
    double g[HN_WINO_MAX][3];            /* t x 3 */
    double bt[HN_WINO_MAX][HN_WINO_MAX]; /* t x t */
} hn_wino;

/** m is 2, 4 or 6. */
void hn_wino_of(int m, hn_wino *ret);
/** y[t] = B^T x[t] and y[m] = A^T x[t] as code; the points p and -p share their even and odd halves. */
void hn_wino_input(hn_kb *b, const hn_wino *w, const hn_kv *x, hn_kv *y);
void hn_wino_output(hn_kb *b, const hn_wino *w, const hn_kv *x, hn_kv *y);
/** u[t][t] = G g G^T. */
void hn_wino_filter(const hn_wino *w, double g[3][3], double u[HN_WINO_MAX][HN_WINO_MAX]);

#endif
