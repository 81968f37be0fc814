/**
 * Say by attention's own rule what a constant mask hides, as exporters by tracing spell causal attention.
 *
 *     attention(q, k, v, m)           =>   attention(q, k, v) {causal=upper_left}      m: 0 up to the diagonal, -inf behind it
 *     attention(q, k, v, add(m, x))   =>   attention(q, k, v, x) {causal=upper_left}
 *     attention(q, k, v, m)           =>   attention(q, k, v)                          m hides nothing
 *
 * Kernels that know the rule leave out tiles of keys, and read no mask. Not exact: what is NaN at a hidden key no longer makes
 * the row so, and a number that hides well enough counts as an infinity.
 */
#include "pass/pass.h"

#include <math.h>

enum { MASK = 3 };
enum { NO_CAUSAL, UPPER_LEFT, LOWER_RIGHT, N_RULE }; /* the attribute */

/* A hidden key would need a score greater than all that are seen by nearly as much to have any weight in f32. Where there is more
 * of a mask, which may hide all that this part shows, only an infinity hides. */
static const double hides_alone = -1e4, hides_anyway = -INFINITY;

/* How far a row sees under each rule; a rule that leaves a row without keys is none. */
static bool rule_limit(int rule, int64_t row, int64_t s, int64_t t, int64_t *ret)
{
    *ret = rule == NO_CAUSAL ? t : rule == UPPER_LEFT ? HN_MIN(row + 1, t) : row + 1 + t - s;
    return *ret > 0;
}

/* Keys that the row of mask elements from `first` on sees, all of them before all that it hides; -1: it does other things. */
static int64_t seen_in_row(const hn_value *m, double hidden, int64_t first, int64_t t)
{
    enum { STEP = 64 };
    const bool is_bool = m->type.dtype == HN_BOOL;
    int64_t seen = 0;
    double x[STEP];
    for (int64_t j = 0; j < t; j += STEP) {
        const int64_t n = HN_MIN(t - j, STEP);
        hn_widen_f64(m->type.dtype, m->data->at, first + j, n, x);
        for (int64_t i = 0; i < n; i++) {
            const bool sees = is_bool ? x[i] != 0 : x[i] == 0, hides = is_bool ? !sees : x[i] <= hidden;
            if (sees == hides || (sees && seen < j + i)) return -1;
            seen += sees;
        }
    }
    return seen;
}

/* The rule by which a constant mask of s rows of t keys hides; numbers up to `hidden` do. -1: none. */
static int rule_of(const hn_value *m, double hidden, int64_t s, int64_t t)
{
    const int64_t n = hn_tdesc_numel_static(&m->type);
    bool fits[N_RULE] = { true, true, true };
    int64_t limit;
    for (int64_t row = 0; row < n / t; row++) {
        const int64_t seen = seen_in_row(m, hidden, row * t, t);
        if (seen < 0) return -1;
        for (int k = 0; k < N_RULE; k++) fits[k] = fits[k] && rule_limit(k, row % s, s, t, &limit) && limit == seen;
    }
    for (int k = 0; k < N_RULE; k++)
        if (fits[k]) return k;
    return -1;
}

/* What a mask, or a part of one, says of all queries and keys; -1: no rule. */
static int rule_stated(const hn_node *n, const hn_value *m, double hidden)
{
    const hn_dim s = hn_in(n, 0)->type.dim[2], t = hn_in(n, 1)->type.dim[2];
    const int r = m->type.rank;
    if (!hn_is_const(m) || hn_tdesc_numel_static(&m->type) < 1) return -1;
    const hn_dim rows = r >= 2 ? m->type.dim[r - 2] : 1, keys = r >= 1 ? m->type.dim[r - 1] : 1;
    const int rule = rule_of(m, hidden, rows, keys);
    if (rule == NO_CAUSAL) return rule;
    const bool far = m->type.dtype != HN_BOOL || hn_attr_f(n, "hide") <= hidden;
    return far && rows == s && keys == t ? rule : -1;
}

/* Splits n's mask into a rule and what remains; -1: it has no such part. */
static int split_mask(const hn_node *n, hn_value **ret_rest)
{
    hn_value *m = hn_in(n, MASK);
    const hn_node *sum = hn_producer(m);
    int rule = rule_stated(n, m, hides_alone);
    *ret_rest = NULL;
    if (rule >= 0 || !sum || sum->op != (m->type.dtype == HN_BOOL ? HN_OP_and : HN_OP_add)) return rule;
    for (int i = 0; i < 2 && rule < 0; i++) {
        rule = rule_stated(n, hn_in(sum, i), hides_anyway);
        *ret_rest = hn_in(sum, !i);
    }
    return rule;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    hn_value *rest;
    if (n->op != HN_OP_attention || !hn_in(n, MASK) || !n->out[0]->n_uses) return false;
    const int64_t was = hn_attr_i(n, "causal");
    const int rule = split_mask(n, &rest);
    if (rule < 0 || (was != NO_CAUSAL && rule != NO_CAUSAL && rule != was)) return false;
    hn_value *in[] = { hn_in(n, 0), hn_in(n, 1), hn_in(n, 2), rest };
    const hn_node *y = hn_build_changed(b, n, rest ? 4 : 3, in, HN_ATTRS_ARG(HN_A_I("causal", was != NO_CAUSAL ? was : rule)));
    if (y) hn_replace(b, n->out[0], y->out[0]);
    return y != NULL;
}

const hn_pass_def hn_pass_fold_mask = {
    .name = "fold_mask", .summary = "say by attention's own rule what a constant mask hides",
    .on = HN_OP_attention, .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
