/* Programs for the CPU as programs for a gpu: who runs which trip, and which part of it.
 *
 *     parallel p < n                       block.y s < splits, block.x b < ceil(n / rows)
 *       each i < m step k                    thread.y r < rows, thread.x t < width
 *         body                                 if b*rows + r < n
 *       end                           =>         for i = (s*width + t)*k; i < m; i += splits*width*k
 *       store y, total                             body
 *     end                                        end
 *                                                if (s == 0 and t == 0) store y, total
 *
 * What stands outside EACH loops is computed by every thread of the trip alike and stored by one. That is
 * right where no thread reads what another wrote: programs with scratch, or with a buffer that is both read
 * and written, get a thread a trip.
 */
#include "kir/kir_int.h"

enum {
    SPREAD_THREADS = 256,  /* threads of a block whose trips are shared */
    TRIP_THREADS = 128,    /* threads of a block of whole trips */
    SCRATCH_THREADS = 64,  /* the same with scratch: few rows should still fill many multiprocessors */
    LONG_EACH = 4,         /* iterations a thread runs before another block helps */
    UNKNOWN_SPLITS = 4,    /* blocks a trip where the length is not known */
    MAX_SPLITS = 1 << 15,
};

typedef struct grid {
    const hn_kfunc *f;
    hn_kb *b;
    hn_kgrid *out;
    int32_t *to;         /* place of each instruction in the new program */
    int32_t *scratch_of; /* of each buffer: its scratch number + 1 */
    int32_t *buf_to;     /* of each buffer: its number in the new program */
    bool spread;         /* EACH loops are dealt out */
    int64_t width, rows; /* threads a trip, trips a block */
    int64_t splits;      /* blocks a trip */
    int64_t copies;      /* of scratch; 0: none is needed */
    int each_depth, each_at[HN_KIR_MAX_DEPTH];
    hn_kv lane; /* this thread among those of its trip */
    hn_kv copy; /* this thread's copy of the scratch */
} grid;

/* ---- what the program is like ---- */
static bool is_each(const hn_kins *x)
{
    return x->op == HN_KOP_FOR && x->flags == HN_KFOR_EACH;
}

static bool writes(int op)
{
    return op == HN_KOP_STORE || op == HN_KOP_SCATTER;
}

/* A parameter buffer that is both read and written, or scratch. */
static bool talks_to_itself(const hn_kfunc *f)
{
    for (int i = 0; i < f->n_ins; i++) {
        const hn_kins *x = &f->ins[i];
        if (x->op != HN_KOP_LOAD && x->op != HN_KOP_GATHER) continue;
        if (f->buf[x->imm].kind == HN_KBUF_SCRATCH) return true;
        if (!(f->buf[x->imm].flags & HN_KBUF_WRITE)) continue;
        for (int k = 0; k < f->n_ins; k++)
            if (writes(f->ins[k].op) && f->ins[k].imm == x->imm) return true;
    }
    return false;
}

/* Iterations of the longest EACH loop of known length; -1: one has an unknown length; 0: there is none. */
static int64_t longest_each(const hn_kfunc *f)
{
    int64_t n = 0;

    for (int i = 0; i < f->n_ins; i++) {
        const hn_kins *x = &f->ins[i];
        if (!is_each(x)) continue;
        const hn_kins *lo = &f->ins[x->a[0]], *hi = &f->ins[x->a[1]], *step = &f->ins[x->a[2]];
        if (lo->op != HN_KOP_CONST || hi->op != HN_KOP_CONST || step->op != HN_KOP_CONST) return -1;
        const int64_t len = hi->imm > lo->imm ? (hi->imm - lo->imm + step->imm - 1) / step->imm : 0;
        n = HN_MAX(n, HN_MAX(len, 1));
    }
    return n;
}

static int64_t threads_for(int64_t n)
{
    int64_t w = 1;

    if (n < 0 || n >= SPREAD_THREADS) return SPREAD_THREADS;
    if (n > 32) return (n + 31) / 32 * 32;
    while (w < n)
        w *= 2;
    return w;
}

static void choose(grid *g, int64_t max_threads)
{
    const int64_t n = longest_each(g->f);
    const hn_kext *e = &g->f->parallel;
    const bool one_trip = g->f->parallel_at < 0, fixed = e->a < 0 && e->b < 0;
    bool has_scratch = false;

    for (int i = 0; i < g->f->n_buf; i++)
        has_scratch |= g->f->buf[i].kind == HN_KBUF_SCRATCH;
    g->spread = n != 0 && !talks_to_itself(g->f);
    g->splits = 1;
    if (g->spread) {
        g->width = threads_for(n);
        g->rows = one_trip ? 1 : SPREAD_THREADS / g->width;
        if (n < 0) g->splits = UNKNOWN_SPLITS;
        if (n > LONG_EACH * g->width) g->splits = HN_MIN((n - 1) / (LONG_EACH * g->width) + 1, MAX_SPLITS);
        return;
    }
    g->width = 1;
    g->rows = one_trip ? 1 : has_scratch ? SCRATCH_THREADS : TRIP_THREADS;
    if (!has_scratch) return;
    int64_t blocks = HN_MAX(1, max_threads / g->rows);
    if (one_trip) blocks = 1;
    else if (fixed) blocks = HN_MAX(1, HN_MIN(blocks, (hn_kext_eval(e, NULL) + g->rows - 1) / g->rows));
    g->copies = blocks * g->rows;
}

/* ---- buffers ---- */
static bool copy_vectors(grid *g)
{
    const hn_kfunc *f = g->f;
    hn_kb *b = g->b;

    for (int i = 0; i < f->n_arg; i++)
        if (!hn_vec_push(b->arena, &b->arg, f->arg[i])) return false;
    for (int i = 0; i < f->n_pool; i++)
        if (!hn_vec_push(b->arena, &b->pool, f->pool[i])) return false;
    for (int64_t i = 0; i < f->n_data; i++)
        if (!hn_vec_push(b->arena, &b->data, f->data[i])) return false;
    for (int i = 0; i < f->n_names; i++)
        if (!hn_vec_push(b->arena, &b->names, f->names[i])) return false;
    return true;
}

static hone_status add_scratch(grid *g, int buf, hn_kbuf *x, hn_diag *dg)
{
    hn_kgrid *out = g->out;

    if (out->n_scratch == HN_KGRID_MAX_SCRATCH)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "kernel \"%s\" has more than %d scratch buffers", g->f->name,
                        HN_KGRID_MAX_SCRATCH);
    out->scratch[out->n_scratch++] =
        (hn_kgrid_scratch){ .elems = x->elems, .dtype = (hn_dtype)x->dtype, .copies = g->copies };
    g->scratch_of[buf] = out->n_scratch;
    x->kind = HN_KBUF_PARAM;
    x->slot = g->b->n_param++;
    x->align = hn_dtype_bits((hn_dtype)x->dtype) / 8; /* copies lie back to back */
    x->elems = hn_kext_const(0);
    return HONE_OK;
}

/* Scratch goes last, as parameters are numbered in their order. */
static hone_status copy_buffers(grid *g, hn_diag *dg)
{
    g->b->n_param = hn_kfunc_n_params(g->f);
    for (int scratch = 0; scratch < 2; scratch++)
        for (int i = 0; i < g->f->n_buf; i++) {
            hn_kbuf x = g->f->buf[i];
            if ((x.kind == HN_KBUF_SCRATCH) != scratch) continue;
            if (scratch) HN_TRY(add_scratch(g, i, &x, dg));
            g->buf_to[i] = g->b->buf.n;
            if (!hn_vec_push(g->b->arena, &g->b->buf, x)) return HN_NOMEM(dg);
        }
    return HONE_OK;
}

/* ---- instructions ---- */
static hn_kv at_of(const grid *g, int32_t old)
{
    return (hn_kv){ old < 0 ? -1 : g->to[old] };
}

/* Index into a scratch array: this thread's copy begins at copy * elems. */
static hn_kv scratch_index(const grid *g, int buf, hn_kv index)
{
    const hn_kgrid_scratch *s = &g->out->scratch[g->scratch_of[buf] - 1];
    const hn_kv base = hn_kb_mul(g->b, g->copy, hn_kb_extent_value(g->b, &s->elems));
    const int lanes = hn_kb_lanes(g->b, index);
    const hn_kv same = hn_kb_cast(g->b, base, hn_kb_dtype(g->b, index));

    return hn_kb_add(g->b, index, hn_kb_splat(g->b, same, lanes));
}

static void copy_memory(grid *g, int at)
{
    hn_kins x = g->f->ins[at];
    const bool guard = writes(x.op) && g->spread && g->each_depth == 0;

    for (int i = 0; i < 5; i++)
        x.a[i] = at_of(g, x.a[i]).at;
    if (g->scratch_of[x.imm]) x.a[0] = scratch_index(g, (int)x.imm, (hn_kv){ x.a[0] }).at;
    x.imm = g->buf_to[x.imm];
    if (guard) hn_kb_if(g->b, hn_kb_eq(g->b, g->lane, hn_kb_i(g->b, 0)));
    g->to[at] = hn_kb_emit(g->b, x).at;
    if (guard) hn_kb_end(g->b);
}

static void open_for(grid *g, int at)
{
    const hn_kins *x = &g->f->ins[at];
    hn_kv lo = at_of(g, x->a[0]), step = at_of(g, x->a[2]);
    const bool deal = is_each(x) && g->spread && g->each_depth == 0;

    if (deal) {
        lo = hn_kb_add(g->b, lo, hn_kb_mul(g->b, g->lane, step));
        step = hn_kb_muli(g->b, step, g->width * g->splits);
    }
    if (is_each(x)) g->each_at[g->each_depth++] = at;
    g->to[at] = hn_kb_for_kind(g->b, is_each(x) ? HN_KFOR_SERIAL : (hn_kfor)x->flags, lo, at_of(g, x->a[1]),
                               step).at;
}

static void copy_plain(grid *g, int at)
{
    hn_kins x = g->f->ins[at];

    for (int i = 0; i < 5; i++)
        x.a[i] = at_of(g, x.a[i]).at;
    g->to[at] = hn_kb_emit(g->b, x).at;
}

static void copy_at(grid *g, int at)
{
    const hn_kins *x = &g->f->ins[at];

    switch (x->op) {
    case HN_KOP_FOR:
        open_for(g, at);
        break;
    case HN_KOP_LOOP:
        hn_kb_loop(g->b);
        break;
    case HN_KOP_IF:
        hn_kb_if(g->b, at_of(g, x->a[0]));
        break;
    case HN_KOP_ELSE:
        hn_kb_else(g->b);
        break;
    case HN_KOP_END:
        if (g->each_depth && g->each_at[g->each_depth - 1] == x->imm) g->each_depth--;
        hn_kb_end(g->b);
        break;
    case HN_KOP_LOAD:
    case HN_KOP_GATHER:
    case HN_KOP_STORE:
    case HN_KOP_SCATTER:
    case HN_KOP_PREFETCH:
        copy_memory(g, at);
        break;
    default:
        copy_plain(g, at);
        break;
    }
}

static void copy_range(grid *g, int from, int to)
{
    for (int i = from; i < to; i++)
        copy_at(g, i);
}

/* ---- the frame ---- */
/* ceil(extent / rows) blocks along x. */
static hn_kext block_extent(const grid *g)
{
    hn_kext e = g->f->parallel;

    if (g->copies) return hn_kext_const(g->copies / g->rows);
    if (e.a < 0 && e.b < 0) return hn_kext_const((hn_kext_eval(&e, NULL) + g->rows - 1) / g->rows);
    e.div *= g->rows; /* ceil(ceil(x / d) / r) == ceil(x / (d * r)) */
    return e;
}

static int open_frame(grid *g, hn_kv *ret_first)
{
    hn_kb *b = g->b;
    const bool split = g->splits > 1, wide = g->width > 1, tall = g->rows > 1;
    hn_kv s = hn_kb_i(b, 0), r = s, t = s;
    int n = 1;

    if (split) s = hn_kb_grid(b, 1, hn_kext_const(g->splits));
    const hn_kv block = hn_kb_grid(b, 0, block_extent(g));
    /* neighbouring threads are neighbours along the EACH loop, or neighbouring trips */
    if (wide && tall) r = hn_kb_threads(b, 1, g->rows);
    if (wide) t = hn_kb_threads(b, 0, g->width);
    else r = hn_kb_threads(b, 0, g->rows);
    n += split + (wide && tall) + 1;
    g->lane = hn_kb_add(b, hn_kb_muli(b, s, g->width), t);
    *ret_first = hn_kb_add(b, hn_kb_muli(b, block, g->rows), r);
    g->copy = *ret_first;
    return n;
}

/* Trips: one a thread, or, where copies of scratch are few, one after another. */
static void copy_body(grid *g)
{
    const hn_kfunc *f = g->f;
    hn_kb *b = g->b;
    hn_kv first;
    const int at = f->parallel_at;

    if (at >= 0) copy_range(g, 0, at);
    const int n = open_frame(g, &first);
    if (at < 0) {
        copy_range(g, 0, f->n_ins);
    } else {
        const hn_kv extent = at_of(g, f->ins[at].a[1]);
        if (g->copies) {
            g->to[at] = hn_kb_for(b, first, extent, g->copies).at;
        } else {
            g->to[at] = first.at;
            hn_kb_if(b, hn_kb_lt(b, first, extent));
        }
        copy_range(g, at + 1, (int)f->ins[at].imm);
        hn_kb_end(b);
    }
    for (int i = 0; i < n; i++)
        hn_kb_end(b);
}

hone_status hn_kfunc_to_grid(hn_arena *a, const hn_kfunc *f, int64_t max_threads, hn_kgrid *ret, hn_diag *dg)
{
    if (hn_kfunc_is_gpu(f))
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "kernel \"%s\" is for a gpu already", f->name);
    *ret = (hn_kgrid){ .n_scratch = 0 };
    grid g = { .f = f, .b = hn_kb_new(a, f->name), .out = ret };
    g.to = HN_NEW_N(a, int32_t, f->n_ins + 1);
    g.scratch_of = HN_NEW_N(a, int32_t, f->n_buf + 1);
    g.buf_to = HN_NEW_N(a, int32_t, f->n_buf + 1);
    if (!g.b || !g.to || !g.scratch_of || !g.buf_to) return HN_NOMEM(dg);
    choose(&g, max_threads);
    if (!copy_vectors(&g)) return HN_NOMEM(dg);
    HN_TRY(copy_buffers(&g, dg));
    copy_body(&g);
    return hn_kb_finish(g.b, &ret->func, dg);
}

int64_t hn_kfunc_blocks(const hn_kfunc *f, const int64_t *arg)
{
    int64_t n = 1;

    for (int i = 0; i < 3; i++)
        n *= HN_MAX(hn_kext_eval(&f->grid[i], arg), 0);
    return n;
}
