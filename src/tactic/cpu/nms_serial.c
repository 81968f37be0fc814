/* Greedy suppression, class by class: boxes above the score threshold sorted by falling score, each held
 * against those taken before. Corners of the taken ones stand in scratch. Coordinates compute in f64, as the
 * definition does: a box on the edge of the limit must not depend on the kernel. */
#include "tactic/cpu/loops.h"
#include "tactic/cpu/order.h"

enum { BOXES, SCORES, MAX_PER_CLASS, IOU, SCORE };

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_nms) return HN_FIT_OP;
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_DTYPE;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)p;
    hn_work w;
    hn_region_work(r, &w);
    return hn_roofline_ns(t, 10 * w.flops, w.bytes, 0.02, 0.1) + 200;
}

typedef struct corners {
    hn_kv y0, x0, y1, x1;
} corners;

typedef struct nms {
    hn_lower *l;
    const hn_region *r;
    const hn_value *boxes, *scores;
    hn_kv most, iou, score; /* score: NONE without a threshold */
    hn_kv n, batch, cls;
    int order, spare, key, taken; /* scratch; taken: four corners a box */
    int index;                    /* result buffer or -1 */
    hn_kvar count;
} nms;

static hn_kv value_at(nms *s, const hn_value *v, hn_kv a, hn_kv c, hn_kv e)
{
    const hn_kv at[3] = { a, c, e };
    return hn_loops_element(s->l, v, at);
}

/* A one-element operand of any rank. */
static hn_kv scalar(nms *s, int i)
{
    hn_kb *b = hn_lower_kb(s->l);
    const hn_value *v = hn_in(s->r->root, i);
    return v ? value_at(s, v, hn_kb_i(b, 0), hn_kb_i(b, 0), hn_kb_i(b, 0)) : HN_KV_NONE;
}

static corners corners_of(nms *s, hn_kv box)
{
    hn_kb *b = hn_lower_kb(s->l);
    hn_kv c[4];
    for (int i = 0; i < 4; i++)
        c[i] = hn_kb_cast(b, value_at(s, s->boxes, s->batch, box, hn_kb_i(b, i)), HN_F64);
    if (!hn_attr_i(s->r->root, "center_point_box"))
        return (corners){ hn_kb_bin(b, HN_KOP_MINR, c[0], c[2]), hn_kb_bin(b, HN_KOP_MINR, c[1], c[3]),
                          hn_kb_bin(b, HN_KOP_MAXR, c[0], c[2]), hn_kb_bin(b, HN_KOP_MAXR, c[1], c[3]) };
    const hn_kv half = hn_kb_float(b, HN_F64, 1, 0.5), h = hn_kb_mul(b, c[3], half),
                w = hn_kb_mul(b, c[2], half);
    return (corners){ hn_kb_sub(b, c[1], h), hn_kb_sub(b, c[0], w), hn_kb_add(b, c[1], h),
                      hn_kb_add(b, c[0], w) };
}

static hn_kv area(hn_kb *b, const corners *c)
{
    return hn_kb_mul(b, hn_kb_sub(b, c->y1, c->y0), hn_kb_sub(b, c->x1, c->x0));
}

static hn_kv overlap(hn_kb *b, const corners *p, const corners *q)
{
    const hn_kv zero = hn_kb_float(b, HN_F64, 1, 0);
    const hn_kv h =
        hn_kb_sub(b, hn_kb_bin(b, HN_KOP_MINR, p->y1, q->y1), hn_kb_bin(b, HN_KOP_MAXR, p->y0, q->y0));
    const hn_kv w =
        hn_kb_sub(b, hn_kb_bin(b, HN_KOP_MINR, p->x1, q->x1), hn_kb_bin(b, HN_KOP_MAXR, p->x0, q->x0));
    const hn_kv both = hn_kb_mul(b, h, w), all = hn_kb_sub(b, hn_kb_add(b, area(b, p), area(b, q)), both);
    const hn_kv meet =
        hn_kb_and(b, hn_kb_and(b, hn_kb_gt(b, h, zero), hn_kb_gt(b, w, zero)), hn_kb_gt(b, all, zero));
    return hn_kb_select(b, meet, hn_kb_div(b, both, all), zero);
}

/* Numbers of the boxes that may be taken into `order`, keys of all scores into `key`; yields how many. */
static hn_kvar candidates(nms *s)
{
    hn_kb *b = hn_lower_kb(s->l);
    const hn_kvar m = hn_kb_var(b, hn_kb_i(b, 0));
    const hn_kv i = hn_kb_forn(b, s->n), x = value_at(s, s->scores, s->batch, s->cls, i);
    hn_kb_store(b, s->key, i, hn_order_key(b, x));
    hn_kv in = hn_kb_eq(b, x, x);
    if (hn_kv_is(s->score)) in = hn_kb_gt(b, x, hn_kb_cast(b, s->score, hn_kb_dtype(b, x)));
    hn_kb_if(b, in);
    hn_kb_store(b, s->order, hn_kb_get(b, m), i);
    hn_kb_set(b, m, hn_kb_addi(b, hn_kb_get(b, m), 1));
    hn_kb_end(b);
    hn_kb_end(b);
    return m;
}

static hn_kv before(hn_kb *b, hn_kv y, hn_kv x, void *user)
{
    const nms *s = user;
    return hn_kb_gt(b, hn_kb_load(b, s->key, y, 1), hn_kb_load(b, s->key, x, 1));
}

static hn_kvar survives(nms *s, const corners *c, hn_kv taken)
{
    hn_kb *b = hn_lower_kb(s->l);
    const hn_kvar keep = hn_kb_var(b, hn_kb_int(b, HN_BOOL, 1, 1));
    const hn_kv j = hn_kb_forn(b, taken), at = hn_kb_muli(b, j, 4);
    const corners q = { hn_kb_load(b, s->taken, at, 1), hn_kb_load(b, s->taken, hn_kb_addi(b, at, 1), 1),
                        hn_kb_load(b, s->taken, hn_kb_addi(b, at, 2), 1),
                        hn_kb_load(b, s->taken, hn_kb_addi(b, at, 3), 1) };
    hn_kb_set(b, keep, hn_kb_not(b, hn_kb_gt(b, overlap(b, c, &q), s->iou)));
    hn_kb_break_if(b, hn_kb_not(b, hn_kb_get(b, keep)));
    hn_kb_end(b);
    return keep;
}

static void take(nms *s, const corners *c, hn_kv box, hn_kv place)
{
    hn_kb *b = hn_lower_kb(s->l);
    const hn_kv part[4] = { c->y0, c->x0, c->y1, c->x1 }, row[3] = { s->batch, s->cls, box };
    for (int i = 0; i < 4; i++)
        hn_kb_store(b, s->taken, hn_kb_addi(b, hn_kb_muli(b, place, 4), i), part[i]);
    const hn_kv at = hn_kb_muli(b, hn_kb_get(b, s->count), 3);
    for (int i = 0; s->index >= 0 && i < 3; i++)
        hn_kb_store(b, s->index, hn_kb_addi(b, at, i), row[i]);
    hn_kb_set(b, s->count, hn_kb_addi(b, hn_kb_get(b, s->count), 1));
}

static void one_class(nms *s)
{
    hn_kb *b = hn_lower_kb(s->l);
    const hn_kv m = hn_kb_get(b, candidates(s));
    const hn_kvar which = hn_order_sort(b, s->order, s->spare, m, before, s), k = hn_kb_var(b, hn_kb_i(b, 0));
    const hn_kv i = hn_kb_forn(b, m), taken = hn_kb_get(b, k);
    hn_kb_break_if(b, hn_kb_ge(b, taken, s->most));
    const hn_kv box = hn_order_at(b, s->order, s->spare, which, i);
    const corners c = corners_of(s, box);
    hn_kb_if(b, hn_kb_get(b, survives(s, &c, taken)));
    take(s, &c, box, taken);
    hn_kb_set(b, k, hn_kb_addi(b, taken, 1));
    hn_kb_end(b);
    hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    (void)p;
    hn_kb *b = hn_kb_new(ret->arena, "nms_any_serial__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    nms s = { .l = l, .r = r, .boxes = hn_in(r->root, BOXES), .scores = hn_in(r->root, SCORES) };
    const int index = hn_loops_result(r, 0), total = hn_loops_result(r, 1);
    s.n = hn_lower_dim(l, s.scores->type.dim[2]);
    const hn_kext n = hn_kb_ext(b, s.n, 1);
    s.order = hn_kb_scratch(b, "order", HN_I64, n);
    s.spare = hn_kb_scratch(b, "spare", HN_I64, n);
    s.key = hn_kb_scratch(b, "key", hn_order_key_type(hn_lower_compute_type(s.scores->type.dtype)), n);
    const hn_kext four = { n.a, n.b, n.a >= 0 || n.b >= 0 ? 4 * n.mul : n.mul, 4 * n.add, n.div };
    s.taken = hn_kb_scratch(b, "taken", HN_F64,
                            n.a >= 0 || n.b >= 0 ? four : hn_kext_const(4 * hn_kext_eval(&n, NULL)));
    s.index = index >= 0 ? hn_lower_out(l, index) : -1;
    const int total_buf = total >= 0 ? hn_lower_out(l, total) : -1;
    const hn_kv most = scalar(&s, MAX_PER_CLASS), iou = scalar(&s, IOU);
    s.most = hn_kv_is(most) ? most : hn_kb_i(b, 0);
    s.iou = hn_kv_is(iou) ? hn_kb_cast(b, iou, HN_F64) : hn_kb_float(b, HN_F64, 1, 0);
    s.score = scalar(&s, SCORE);
    s.count = hn_kb_var(b, hn_kb_i(b, 0));
    s.batch = hn_kb_forn(b, hn_lower_dim(l, s.scores->type.dim[0]));
    s.cls = hn_kb_forn(b, hn_lower_dim(l, s.scores->type.dim[1]));
    one_class(&s);
    hn_kb_end(b);
    hn_kb_end(b);
    if (total >= 0) hn_kb_store(b, total_buf, hn_kb_i(b, 0), hn_kb_get(b, s.count));
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_nms_any_serial__cpu = {
    .name = "nms_any_serial__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .portable = true,
    .fits = fits,
    .cost = cost,
    .emit = emit,
};
