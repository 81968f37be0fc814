/* Winograd transforms from Cook and Toom's interpolation points: Lavin and Gray, "Fast algorithms for
 * convolutional neural networks" (2016); the choice of points is theirs, and Barabasz et al. (2018) measure
 * how it bounds the error. */
#include "tactic/cpu/wino.h"

#include <string.h>

/* 0 first, then pairs p, -p; infinity is the row after them. */
static const double points[] = { 0, 1, -1, 2, -2, 0.5, -0.5 };

/* Coefficients, lowest first, of the product of (x - point) over all finite points but `skip`. */
static void product(int n, int skip, double *ret)
{
    int degree = 0;
    memset(ret, 0, HN_WINO_MAX * sizeof *ret);
    ret[0] = 1;
    for (int i = 0; i < n; i++) {
        if (i == skip) continue;
        for (int k = ++degree; k > 0; k--)
            ret[k] = ret[k - 1] - points[i] * ret[k];
        ret[0] *= -points[i];
    }
}

static double power(double x, int n)
{
    double y = 1;
    while (n-- > 0)
        y *= x;
    return y;
}

void hn_wino_of(int m, hn_wino *ret)
{
    const int t = m + 2, n = t - 1;
    memset(ret, 0, sizeof *ret);
    ret->m = m;
    ret->t = t;
    for (int j = 0; j < n; j++) {
        double scale = 1;
        for (int l = 0; l < n; l++)
            if (l != j) scale *= points[j] - points[l];
        for (int i = 0; i < m; i++)
            ret->at[i][j] = power(points[j], i);
        for (int k = 0; k < 3; k++)
            ret->g[j][k] = power(points[j], k) / scale;
        product(n, j, ret->bt[j]);
    }
    ret->at[m - 1][n] = 1;
    ret->g[n][2] = 1;
    product(n, -1, ret->bt[n]);
}

/* sum of c[i] * x[i] over i of one parity (2: both); NONE when all are zero. */
static hn_kv combine(hn_kb *b, const double *c, const hn_kv *x, int n, int parity)
{
    hn_kv sum = HN_KV_NONE;
    for (int i = 0; i < n; i++) {
        if (c[i] == 0 || (parity < 2 && i % 2 != parity)) continue;
        const hn_kv k = hn_kb_float(b, HN_F32, hn_kb_lanes(b, x[i]), c[i]);
        if (!hn_kv_is(sum))
            sum = c[i] == 1 ? x[i] : c[i] == -1 ? hn_kb_neg(b, x[i]) : hn_kb_mul(b, x[i], k);
        else if (c[i] == 1)
            sum = hn_kb_add(b, sum, x[i]);
        else if (c[i] == -1)
            sum = hn_kb_sub(b, sum, x[i]);
        else
            sum = hn_kb_fma(b, x[i], k, sum);
    }
    return sum;
}

void hn_wino_input(hn_kb *b, const hn_wino *w, const hn_kv *x, hn_kv *y)
{
    const int n = w->t - 1;
    y[0] = combine(b, w->bt[0], x, w->t, 2);
    y[n] = combine(b, w->bt[n], x, w->t, 2);
    for (int j = 1; j + 1 < n; j += 2) {
        const hn_kv even = combine(b, w->bt[j], x, w->t, 0), odd = combine(b, w->bt[j], x, w->t, 1);
        y[j] = hn_kb_add(b, even, odd);
        y[j + 1] = hn_kb_sub(b, even, odd);
    }
}

void hn_wino_output(hn_kb *b, const hn_wino *w, const hn_kv *x, hn_kv *y)
{
    const int n = w->t - 1, pairs = (n - 1) / 2;
    hn_kv part[2][HN_WINO_MAX];
    for (int j = 0; j < pairs; j++) {
        part[0][j] = hn_kb_add(b, x[1 + 2 * j], x[2 + 2 * j]);
        part[1][j] = hn_kb_sub(b, x[1 + 2 * j], x[2 + 2 * j]);
    }
    for (int i = 0; i < w->m; i++) {
        double c[HN_WINO_MAX];
        for (int j = 0; j < pairs; j++)
            c[j] = w->at[i][1 + 2 * j];
        y[i] = combine(b, c, part[i % 2], pairs, 2);
        if (i == 0) y[i] = hn_kb_add(b, y[i], x[0]);
        if (i == w->m - 1) y[i] = hn_kb_add(b, y[i], x[n]);
    }
}

void hn_wino_filter(const hn_wino *w, double g[3][3], double u[HN_WINO_MAX][HN_WINO_MAX])
{
    double half[HN_WINO_MAX][3];
    for (int i = 0; i < w->t; i++)
        for (int j = 0; j < 3; j++)
            half[i][j] = w->g[i][0] * g[0][j] + w->g[i][1] * g[1][j] + w->g[i][2] * g[2][j];
    for (int i = 0; i < w->t; i++)
        for (int j = 0; j < w->t; j++)
            u[i][j] = half[i][0] * w->g[j][0] + half[i][1] * w->g[j][1] + half[i][2] * w->g[j][2];
}
