/* Matrix products on a GPU's matrix units: which tiles there are, and what they are thought to take. */
#include <math.h>

#include "tactic/cuda/mma_int.h"

enum { REGISTERS = 65536, THREADS_A_CORE = 2048, OTHER_REGISTERS = 90, SHARED_RESERVE = 1024 };

void hn_mma_space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)r, (void)t;
    hn_space_add_list(ret, "bm", 4, (const int64_t[]){ 128, 64, 32, 16 });
    hn_space_add_list(ret, "bn", 4, (const int64_t[]){ 128, 64, 32, 256 });
    hn_space_add_list(ret, "bk", 2, (const int64_t[]){ 64, 128 });
    hn_space_add_list(ret, "stages", 3, (const int64_t[]){ 3, 4, 2 });
    hn_space_add_list(ret, "warps", 2, (const int64_t[]){ 4, 8 });
    hn_space_add_list(ret, "split", 6, (const int64_t[]){ 1, 2, 3, 4, 8, 16 });
}

/* Warps stand so that together they read least: squares of results. */
static bool arrange_warps(int warps, tile *w)
{
    int best = 0;
    for (int wm = 1; wm <= warps; wm *= 2) {
        const int wn = warps / wm;
        if (w->bm % (16 * wm) || w->bn % (16 * wn)) continue;
        const int reads = w->bm / wm + w->bn / wn;
        if (best && reads >= best) continue;
        best = reads;
        w->wm = wm;
        w->wn = wn;
    }
    return best != 0;
}

bool hn_mma_tile_of(const int64_t *p, tile *ret)
{
    *ret = (tile){ .bm = (int)p[HN_MMA_BM], .bn = (int)p[HN_MMA_BN], .bk = (int)p[HN_MMA_BK], .stages = (int)p[HN_MMA_STAGES],
                   .split = (int)p[HN_MMA_SPLIT], .threads = 32 * (int)p[HN_MMA_WARPS] };
    ret->stage_bytes = (ret->bm + ret->bn) * ret->bk;
    const int sums = ret->split > 1 ? 0 : ret->bm * (ret->bn + PAD) * 4;
    ret->shared_bytes = HN_MAX(ret->stages * ret->stage_bytes, sums);
    if (!arrange_warps((int)p[HN_MMA_WARPS], ret)) return false;
    ret->mi = ret->bm / ret->wm / 16;
    ret->ni = ret->bn / ret->wn / 8;
    return true;
}

/* Stages that hide what one step waits for: four, where two blocks still share a multiprocessor; else three. Computed chunks are one
 * step ahead, however many stages there are. So the race is between tiles, not between near equals. */
static int64_t stages_of(const hn_target *t, const hn_mma_size *s, const tile *w)
{
    if (s->computed[0] && s->computed[1]) return 2;
    if (s->computed[0] || s->computed[1]) return 3;
    return 2 * (4 * w->stage_bytes + SHARED_RESERVE) <= t->shared_bytes ? 4 : 3;
}

/* Every thread copies as many chunks; sums and what a step holds fit 255 registers; stages fit shared memory. */
static bool is_legal(const hn_target *t, const hn_mma_size *s, const int64_t *p)
{
    enum { CHUNK = HN_MMA_CHUNK };
    tile w;
    if (!hn_mma_tile_of(p, &w)) return false;
    const int a = w.bm * w.bk / CHUNK, b = w.bn * w.bk / CHUNK;
    if (a % w.threads || b % w.threads || a / w.threads > MAX_SLOT || b / w.threads > MAX_SLOT) return false;
    const int held = 4 * ((s->computed[0] ? a : 0) + (s->computed[1] ? b : 0)) / w.threads;
    if (s->row_sums && w.split > 1) return false; /* parts have no room for them */
    if (4 * w.mi * w.ni + (s->row_sums ? 8 : 4) * w.mi + 2 * w.ni + held + 40 > HN_MIN(t->n_vreg, REGISTERS / w.threads)) return false;
    if (w.stages != stages_of(t, s, &w)) return false;
    if (w.shared_bytes > t->shared_bytes - SHARED_RESERVE) return false;
    const double steps = ceil(s->k * hn_dtype_bits(s->type) / 8 / w.bk);
    return w.split == 1 || steps >= 2 * w.split;
}

/* Floating-point operations that a multiprocessor's matrix units do in a nanosecond through mma.sync. */
static double rate(const hn_target *t, hn_dtype type)
{
    const double half = hn_target_has(t, HN_FEAT_SM_90A) ? 2100 : 2400;
    return half * 16 / hn_dtype_bits(type);
}

/* A step takes what its products take, or its bytes from the second-level cache (computed chunks: the arithmetic of indices), or its
 * share of the latency; blocks of one multiprocessor share the first two and hide the third for each other. The numbers put the best
 * of some 60 tiles among the eight first predicted for thirteen typical layers timed on an H200, or one within a few per cent of it. */
static double cost_of(const hn_target *t, const hn_mma_size *s, const int64_t *p)
{
    enum { NS_BARRIER = 70, NS_LATENCY = 500, NS_FRAME = 1300, NS_LAUNCH = 1500, NS_COMPUTED = 300, NS_A_CHUNK = 130 };
    const double l2_bytes_ns = 40; /* of one multiprocessor */
    tile w;
    hn_mma_tile_of(p, &w);
    const double size = hn_dtype_bits(s->type) / 8.0, steps = ceil(ceil(s->k * size / w.bk) / w.split);
    const double blocks = s->groups * w.split * ceil(s->m / w.bm) * ceil(s->n / w.bn);
    const double by_shared = floor((double)t->shared_bytes / (w.shared_bytes + SHARED_RESERVE));
    const double by_regs = floor(REGISTERS / (w.threads * (4.0 * w.mi * w.ni + OTHER_REGISTERS)));
    const double room = fmax(1, fmin(fmin(by_shared, by_regs), floor(THREADS_A_CORE / (double)w.threads)));
    const double beside = fmin(room, ceil(blocks / t->n_core)), waves = fmax(1, blocks / (t->n_core * beside));
    const double shape = (double)(w.mi * w.ni) / (w.mi * w.ni + 1.5 * (w.mi + w.ni) / 2); /* products for each word read */
    const double math = 2.0 * w.bm * w.bn * (w.bk / size) / (rate(t, s->type) * shape);
    const double chunks = ((s->computed[0] ? w.bm : 0) + (s->computed[1] ? w.bn : 0)) * (double)w.bk / HN_MMA_CHUNK; /* computed ones */
    const double move = fmax(w.stage_bytes / l2_bytes_ns, chunks); /* a nanosecond each */
    const double wait = NS_BARRIER + (chunks > 0 ? NS_COMPUTED + NS_A_CHUNK * chunks / w.threads : NS_LATENCY / (double)(w.stages - 1));
    const double step = fmax(wait, beside * fmax(math, move));
    double ns = ceil(waves * 4) / 4 * (NS_FRAME + steps * step + w.bm * w.bn * 4 / l2_bytes_ns);
    if (w.split > 1) ns += NS_LAUNCH + (w.split + 1) * 4 * s->groups * s->m * s->n / 3000;
    return fmax(ns, s->bytes / (t->bandwidth_gbs * t->n_core * 0.8)) * t->n_core;
}

static hn_mma_size size_of(const hn_region *r)
{
    hn_mma_size s = { 0 };
    switch (r->root->op) {
    case HN_OP_conv:
    case HN_OP_conv_int: hn_mma_conv_size(r, &s); break;
    case HN_OP_conv_transpose: hn_mma_conv_transpose_size(r, &s); break;
    default: hn_mma_gemm_size(r, &s); break;
    }
    return s;
}

bool hn_mma_legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    const hn_mma_size s = size_of(r);
    return is_legal(t, &s, p);
}

double hn_mma_cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    const hn_mma_size s = size_of(r);
    return cost_of(t, &s, p);
}
