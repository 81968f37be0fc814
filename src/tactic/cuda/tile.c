/* Tiles of a matrix product on a GPU. */
#include "tactic/cuda/tile.h"

#include <math.h>

enum { SIDE = HN_TILE_SIDE, DEPTH = HN_TILE_DEPTH, THREADS = SIDE * SIDE };

/* A column more than a tile has, so that a warp that writes along k meets as many banks as it has threads. */
enum { PAD = 1 };

typedef struct place {
    hn_kv g, m0, n0, tx, ty, tid;
    hn_kv m, n, k; /* extents */
} place;

/* ---- one slab of DEPTH into shared memory ---- */
static void fill(hn_kb *b, const hn_tile *t, const place *p, hn_kv k0, int shared, bool is_a)
{
    const int side = is_a ? t->bm : t->bn, stride = side + PAD;
    const bool k_fast = is_a ? !t->a_m_dense : t->b_k_dense;
    const hn_kv first = is_a ? p->m0 : p->n0, extent = is_a ? p->m : p->n;

    for (int i = 0; i < side * DEPTH / THREADS; i++) {
        const hn_kv e = hn_kb_addi(b, p->tid, i * THREADS), by = hn_kb_i(b, k_fast ? DEPTH : side);
        const hn_kv fast = hn_kb_imod(b, e, by), slow = hn_kb_idiv(b, e, by);
        const hn_kv r = k_fast ? slow : fast, c = k_fast ? fast : slow;
        const hn_kv at = hn_kb_add(b, first, r), k = hn_kb_add(b, k0, c);
        const hn_kv ok = hn_kb_and(b, hn_kb_lt(b, at, extent), hn_kb_lt(b, k, p->k));
        hn_lower_forget(t->l);
        hn_kv x = is_a ? t->a(t->user, p->g, at, k, ok) : t->b(t->user, p->g, k, at, ok);
        hn_lower_forget(t->l);
        x = hn_kb_select(b, ok, x, hn_kb_f(b, 0));
        hn_kb_store(b, shared, hn_kb_add(b, hn_kb_muli(b, c, stride), r), x);
    }
}

static void multiply(hn_kb *b, const hn_tile *t, const place *p, int as, int bs, hn_kvar (*acc)[HN_TILE_MAX])
{
    const int tm = t->bm / SIDE, tn = t->bn / SIDE;
    hn_kv x[HN_TILE_MAX], y[HN_TILE_MAX];
    const hn_kv kk = hn_kb_for_kind(b, HN_KFOR_UNROLL, hn_kb_i(b, 0), hn_kb_i(b, DEPTH), hn_kb_i(b, 1));
    const hn_kv ra = hn_kb_add(b, hn_kb_muli(b, kk, t->bm + PAD), p->ty), rb = hn_kb_add(b, hn_kb_muli(b, kk, t->bn + PAD), p->tx);

    for (int i = 0; i < tm; i++)
        x[i] = hn_kb_load(b, as, hn_kb_addi(b, ra, i * SIDE), 1);
    for (int j = 0; j < tn; j++)
        y[j] = hn_kb_load(b, bs, hn_kb_addi(b, rb, j * SIDE), 1);
    for (int i = 0; i < tm; i++)
        for (int j = 0; j < tn; j++)
            hn_kb_set(b, acc[i][j], hn_kb_fma(b, x[i], y[j], hn_kb_get(b, acc[i][j])));
    hn_kb_end(b);
}

static void finish(hn_kb *b, const hn_tile *t, const place *p, hn_kvar (*acc)[HN_TILE_MAX])
{
    for (int i = 0; i < t->bm / SIDE; i++)
        for (int j = 0; j < t->bn / SIDE; j++) {
            const hn_kv m = hn_kb_add(b, p->m0, hn_kb_addi(b, p->ty, i * SIDE)),
                        n = hn_kb_add(b, p->n0, hn_kb_addi(b, p->tx, j * SIDE));
            hn_lower_forget(t->l);
            hn_kb_if(b, hn_kb_and(b, hn_kb_lt(b, m, p->m), hn_kb_lt(b, n, p->n)));
            t->store(t->user, p->g, m, n, hn_kb_get(b, acc[i][j]));
            hn_kb_end(b);
            hn_lower_forget(t->l);
        }
}

/* ---- the frame ---- */
static place open_block(hn_kb *b, hn_tile *t, hn_symtab *syms)
{
    const hn_dim tiles_m = hn_dim_ceildiv(syms, t->m, t->bm), tiles_n = hn_dim_ceildiv(syms, t->n, t->bn);
    const hn_dim total = hn_dim_mul(syms, t->groups, hn_dim_mul(syms, tiles_m, tiles_n));
    place p = { .m = hn_lower_dim(t->l, t->m), .n = hn_lower_dim(t->l, t->n), .k = hn_lower_dim(t->l, t->k) };
    const hn_kv all = hn_lower_dim(t->l, total), wide = hn_lower_dim(t->l, tiles_n), tall = hn_lower_dim(t->l, tiles_m);
    const hn_kv block = hn_kb_grid(b, 0, hn_kb_ext(b, all, 1)), rest = hn_kb_idiv(b, block, wide);

    p.ty = hn_kb_threads(b, 1, SIDE);
    p.tx = hn_kb_threads(b, 0, SIDE);
    p.n0 = hn_kb_muli(b, hn_kb_imod(b, block, wide), t->bn);
    p.m0 = hn_kb_muli(b, hn_kb_imod(b, rest, tall), t->bm);
    p.g = hn_kb_idiv(b, rest, tall);
    p.tid = hn_kb_add(b, hn_kb_muli(b, p.ty, SIDE), p.tx);
    return p;
}

void hn_tile_emit(hn_kb *b, hn_tile *t, hn_symtab *syms)
{
    hn_kvar acc[HN_TILE_MAX][HN_TILE_MAX];
    const int as = hn_kb_shared(b, "a", HN_F32, DEPTH * (t->bm + PAD)), bs = hn_kb_shared(b, "b", HN_F32, DEPTH * (t->bn + PAD));
    const place p = open_block(b, t, syms);

    for (int i = 0; i < t->bm / SIDE; i++)
        for (int j = 0; j < t->bn / SIDE; j++)
            acc[i][j] = hn_kb_var(b, hn_kb_f(b, 0));
    const hn_kv k0 = hn_kb_for(b, hn_kb_i(b, 0), p.k, DEPTH);
    fill(b, t, &p, k0, as, true);
    fill(b, t, &p, k0, bs, false);
    hn_kb_barrier(b);
    multiply(b, t, &p, as, bs, acc);
    hn_kb_barrier(b);
    hn_kb_end(b);
    finish(b, t, &p, acc);
    for (int i = 0; i < 3; i++)
        hn_kb_end(b);
}

/* ---- parameters ---- */
void hn_tile_space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    static const int64_t side[] = { 32, 64, 128 };

    (void)r, (void)t;
    hn_space_add_list(ret, "bm", HN_COUNT(side), side);
    hn_space_add_list(ret, "bn", HN_COUNT(side), side);
}

/* Sums, a column of each operand and addresses must fit the registers of 256 threads; nodes fused behind are written out
 * once a result. */
bool hn_tile_legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    enum { MOST_CODE = 640, OTHER_REGISTERS = 40 };
    const int64_t tm = p[0] / SIDE, tn = p[1] / SIDE, results = tm * tn;
    const int n_node = r->g->n_node;

    if (results > 32 && n_node > 6) return false;
    return results * n_node <= MOST_CODE && results + tm + tn + OTHER_REGISTERS <= HN_MIN(t->n_vreg, 128);
}

/* Padded work at the rate that shared memory feeds: (tm + tn) loads for tm * tn multiply-adds; few tiles leave
 * multiprocessors idle. */
double hn_tile_cost(const hn_target *t, const int64_t *p, double groups, double m, double n, double k, double bytes)
{
    const double tm = (double)p[0] / SIDE, tn = (double)p[1] / SIDE, tiles = ceil(m / (double)p[0]) * ceil(n / (double)p[1]) * groups;
    const double flops = 2 * tiles * (double)(p[0] * p[1]) * (ceil(k / DEPTH) * DEPTH + 2 * DEPTH);
    const double eff = 0.6 * tm * tn / (tm * tn + 4 * (tm + tn));
    const double busy = fmin(1, tiles / t->n_core);
    return fmax(flops / (t->peak_gflops * eff * busy), bytes / (t->bandwidth_gbs * 0.7));
}
