/*
 * nms: greedy non-maximum suppression per batch and class. Boxes go by falling score (of equals the lower
 * index); a box is taken when its score exceeds the threshold and its intersection over union with no box
 * taken before exceeds the limit. Boxes are [y1, x1, y2, x2] with corners in any order, or [x, y, width,
 * height] around a centre.
 */
#include "op/op_int.h"

enum { CENTER_POINT_BOX };
enum { BOXES, SCORES, MAX_PER_CLASS, IOU, SCORE };

static hone_status infer(hn_call *c, hn_diag *dg)
{
    hn_symtab *t = c->syms;
    int64_t n;
    hn_dim per = 0, count, most_each[64];
    int one;

    HN_TRY(hn_op_want_float(c, BOXES, dg));
    HN_TRY(hn_op_want_float(c, SCORES, dg));
    HN_TRY(hn_op_want_rank(c, BOXES, 3, dg));
    HN_TRY(hn_op_want_rank(c, SCORES, 3, dg));
    HN_TRY(hn_op_want_meet(c, BOXES, 0, SCORES, 0, NULL, dg));
    HN_TRY(hn_op_want_meet(c, BOXES, 1, SCORES, 2, &per, dg));
    if (hn_op_known(c, c->in[BOXES].dim[2], &n) && n != 4)
        return HN_RAISE(dg, HONE_E_SHAPE, "boxes have %lld coordinates where 4 are needed", (long long)n);
    if (hn_op_has(c, MAX_PER_CLASS)) {
        HN_TRY(hn_op_want_dtype(c, MAX_PER_CLASS, HN_I64, dg));
        HN_TRY(hn_op_want_scalar(c, MAX_PER_CLASS, dg));
        if (hn_op_content(c, MAX_PER_CLASS, most_each, &one))
            per = hn_dim_min(t, per, hn_dim_max(t, most_each[0], 0));
    } else
        per = 0;
    for (int i = IOU; i <= SCORE; i++)
        if (hn_op_has(c, i)) {
            HN_TRY(hn_op_want_float(c, i, dg));
            HN_TRY(hn_op_want_scalar(c, i, dg));
        }
    const hn_dim most = hn_dim_mul(t, per, hn_dim_mul(t, c->in[SCORES].dim[0], c->in[SCORES].dim[1]));
    HN_TRY(hn_op_value_dim(c, 1, 0, most, &count, dg));
    c->out[0] = (hn_tdesc){ .dtype = HN_I64, .rank = 2, .dim = { count, 3 } };
    c->out[1] = (hn_tdesc){ .dtype = HN_I64 };
    return HONE_OK;
}

typedef struct box {
    double y0, x0, y1, x1;
} box;

static box corners(const double *b, bool center)
{
    if (center) return (box){ b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2 };
    return (box){ fmin(b[0], b[2]), fmin(b[1], b[3]), fmax(b[0], b[2]), fmax(b[1], b[3]) };
}

static double overlap(box a, box b)
{
    const double h = fmin(a.y1, b.y1) - fmax(a.y0, b.y0), w = fmin(a.x1, b.x1) - fmax(a.x0, b.x0);

    if (!(h > 0 && w > 0)) return 0;
    const double both = h * w;
    const double all = (a.y1 - a.y0) * (a.x1 - a.x0) + (b.y1 - b.y0) * (b.x1 - b.x0) - both;
    return all > 0 ? both / all : 0;
}

static int by_score(const void *pa, const void *pb, void *user)
{
    const double *score = user;
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    if (score[a] != score[b]) return score[a] > score[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

typedef struct limits {
    int64_t max;
    double iou, score;
    bool has_score, center;
} limits;

/* Boxes of one class, best first, into taken; yields how many. order is scratch for n. */
static int64_t pick(const double *boxes, double *score, int64_t n, const limits *lim, int64_t *order,
                    int64_t *taken)
{
    int64_t m = 0, k = 0;

    for (int64_t i = 0; i < n; i++)
        if (!isnan(score[i]) && (!lim->has_score || score[i] > lim->score)) order[m++] = i;
    qsort_r(order, (size_t)m, sizeof(*order), by_score, score);
    for (int64_t i = 0; i < m && k < lim->max; i++) {
        const box b = corners(boxes + 4 * order[i], lim->center);
        bool keep = true;
        for (int64_t j = 0; j < k && keep; j++)
            keep = !(overlap(b, corners(boxes + 4 * taken[j], lim->center)) > lim->iou);
        if (keep) taken[k++] = order[i];
    }
    return k;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t batches = in[SCORES].type.dim[0], classes = in[SCORES].type.dim[1],
                  n = in[SCORES].type.dim[2];
    const limits lim = { .max = hn_op_has(c, MAX_PER_CLASS) ? in[MAX_PER_CLASS].i[0] : 0,
                         .iou = hn_op_has(c, IOU) ? in[IOU].f[0] : 0,
                         .has_score = hn_op_has(c, SCORE),
                         .score = hn_op_has(c, SCORE) ? in[SCORE].f[0] : 0,
                         .center = c->attr[CENTER_POINT_BOX].i };
    int64_t count = 0;
    void *scratch;

    HN_TRY(hn_op_scratch(2 * n, sizeof(int64_t), &scratch, dg));
    int64_t *order = scratch, *taken = order + n;
    for (int64_t k = 0; k < batches * classes; k++) {
        const int64_t got =
            pick(in[BOXES].f + k / classes * n * 4, in[SCORES].f + k * n, n, &lim, order, taken);
        for (int64_t i = 0; i < got; i++, count++) {
            int64_t *row = out[0].i + 3 * count;
            row[0] = k / classes;
            row[1] = k % classes;
            row[2] = taken[i];
        }
    }
    free(scratch);
    out[0].type.dim[0] = count;
    out[0].numel = 3 * count;
    out[1].i[0] = count;
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    *ret = (hn_work){ .flops = 16 * hn_op_count(c, &c->in[SCORES]), .bytes = hn_op_bytes(c) };
}

const hn_op_def hn_op_nms = {
    HN_OP_ID(nms, 2, 5, 2, 2),
    .doc = "[batch, class, box] of the boxes that survive suppression, and how many",
    .traits = HN_TRAIT_PURE | HN_TRAIT_DYNAMIC,
    HN_OP_ATTRS(HN_S_INT("center_point_box", 0)),
    .infer = infer,
    .ref = ref,
    .work = work,
};
