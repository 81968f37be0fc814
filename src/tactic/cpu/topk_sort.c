/* The k best along an axis, a line at a time: keys and numbers of the line's elements in scratch, then one of
 * two ways.
 *
 *   insert=1  keep the best k sorted, let each element in at its place: right for small k
 *   insert=0  sort the whole line by merging
 *
 * Both are stable, so of equal elements the lower index comes first.
 */
#include "tactic/cpu/loops.h"
#include "tactic/cpu/order.h"

#include <math.h>

enum { P_INSERT };

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_topk) return HN_FIT_OP;
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_DTYPE;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)r;
    (void)t;
    hn_space_add(ret, "insert", 0, 1, 1);
}

static int axis_of(const hn_region *r)
{
    int axis = 0;
    hn_axis_resolve(hn_attr_i(r->root, "axis"), hn_in(r->root, 0)->type.rank, &axis);
    return axis;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)t;
    const hn_value *x = hn_in(r->root, 0);
    double all = 1;
    for (int a = 0; a < x->type.rank; a++)
        all *= (double)hn_region_opt(r, x->type.dim[a]);
    const double n = (double)HN_MAX(hn_region_opt(r, x->type.dim[axis_of(r)]), 1);
    const double k = (double)HN_MAX(hn_region_opt(r, r->root->out[0]->type.dim[axis_of(r)]), 1);
    /* Nanoseconds: 1 to make and look at a key, 4 a merge step, 1 a shift; of n in random order k ln(n/k) + k
     * get in. */
    const double entries = k * (1 + log(fmax(n / k, 1)));
    const double line = p[P_INSERT] ? n + entries * k / 2 : n * (1 + 4 * ceil(log2(n + 1)));
    return all / n * line + 200;
}

typedef struct top {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x;
    int axis;
    hn_dtype key_type;
    hn_kv n, k;
    int key, num, spare; /* scratch */
    hn_kv at[HN_MAX_RANK];
} top;

static hn_kv element(top *d, hn_kv i)
{
    d->at[d->axis] = i;
    return hn_loops_element(d->l, d->x, d->at);
}

/* Best first is largest key first. */
static hn_kv key_of(top *d, hn_kv i)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv key = hn_order_key(b, element(d, i));
    return hn_attr_i(d->r->root, "largest") ? key : hn_kb_not(b, key);
}

static void store(top *d, hn_kv place, hn_kv number)
{
    hn_kidx to;
    const int value = hn_loops_result(d->r, 0), index = hn_loops_result(d->r, 1);
    const hn_kv x = element(d, number);
    d->at[d->axis] = place;
    hn_kidx_init(&to, d->x->type.rank, d->at);
    if (value >= 0) hn_lower_store_value(d->l, value, &to, x, HN_KV_NONE);
    if (index >= 0) hn_lower_store_value(d->l, index, &to, number, HN_KV_NONE);
}

/* ---- merging ---- */
static hn_kv before(hn_kb *b, hn_kv y, hn_kv x, void *user)
{
    const top *d = user;
    return hn_kb_gt(b, hn_kb_load(b, d->key, y, 1), hn_kb_load(b, d->key, x, 1));
}

static void sort_line(top *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv i = hn_kb_forn(b, d->n);
    hn_kb_store(b, d->key, i, key_of(d, i));
    hn_kb_store(b, d->num, i, i);
    hn_kb_end(b);
    const hn_kvar which = hn_order_sort(b, d->num, d->spare, d->n, before, d);
    const hn_kv k = hn_kb_forn(b, d->k);
    store(d, k, hn_order_at(b, d->num, d->spare, which, k));
    hn_kb_end(b);
}

/* ---- insertion ---- */
/* Let (key, i) in among the `have` that are there: those it beats move one place down, the last of a full
 * list drops out. */
static void let_in(top *d, hn_kv key, hn_kv i, hn_kv have)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv one = hn_kb_i(b, 1);
    const hn_kvar hole = hn_kb_var(b, hn_kb_min(b, have, hn_kb_sub(b, d->k, one)));
    hn_kb_loop(b);
    const hn_kv h = hn_kb_get(b, hole);
    hn_kb_break_if(b, hn_kb_eq(b, h, hn_kb_i(b, 0)));
    const hn_kv up = hn_kb_sub(b, h, one), other = hn_kb_load(b, d->key, up, 1);
    hn_kb_break_if(b, hn_kb_ge(b, other, key));
    hn_kb_store(b, d->key, h, other);
    hn_kb_store(b, d->num, h, hn_kb_load(b, d->num, up, 1));
    hn_kb_set(b, hole, up);
    hn_kb_end(b);
    hn_kb_store(b, d->key, hn_kb_get(b, hole), key);
    hn_kb_store(b, d->num, hn_kb_get(b, hole), i);
}

static void insert_line(top *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kvar have = hn_kb_var(b, hn_kb_i(b, 0)),
                  worst = hn_kb_var(b, hn_order_lowest(b, d->key_type, 1));
    hn_kb_if(b, hn_kb_gt(b, d->k, hn_kb_i(b, 0)));
    const hn_kv i = hn_kb_forn(b, d->n), key = key_of(d, i), h = hn_kb_get(b, have),
                room = hn_kb_lt(b, h, d->k);
    hn_kb_if(b, hn_kb_or(b, room, hn_kb_gt(b, key, hn_kb_get(b, worst))));
    let_in(d, key, i, h);
    hn_kb_set(b, have, hn_kb_min(b, hn_kb_addi(b, h, 1), d->k));
    hn_kb_set(b, worst, hn_kb_load(b, d->key, hn_kb_addi(b, hn_kb_get(b, have), -1), 1));
    hn_kb_end(b);
    hn_kb_end(b);
    hn_kb_end(b);
    const hn_kv k = hn_kb_forn(b, d->k);
    store(d, k, hn_kb_load(b, d->num, k, 1));
    hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "topk_any_sort__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    top d = { .l = l, .r = r, .x = hn_in(r->root, 0), .axis = axis_of(r) };
    d.n = hn_lower_dim(l, d.x->type.dim[d.axis]);
    d.k = hn_kb_min(b, hn_lower_dim(l, r->root->out[0]->type.dim[d.axis]), d.n);
    d.key_type = hn_order_key_type(hn_lower_compute_type(d.x->type.dtype));
    const hn_kext extent = hn_kb_ext(b, d.n, 1);
    d.key = hn_kb_scratch(b, "key", d.key_type, extent);
    d.num = hn_kb_scratch(b, "num", HN_I64, extent);
    if (!p[P_INSERT]) d.spare = hn_kb_scratch(b, "spare", HN_I64, extent);
    const uint32_t outer = hn_loops_all(d.x) & ~(1u << d.axis);
    const hn_kv rows = hn_lower_dim(l, hn_loops_extent(r, d.x, outer));
    hn_loops_split(l, d.x, outer, hn_kb_parallel(b, hn_kb_ext(b, rows, 1)), d.at);
    if (p[P_INSERT])
        insert_line(&d);
    else
        sort_line(&d);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_topk_any_sort__cpu = {
    .name = "topk_any_sort__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .portable = true,
    .fits = fits,
    .space = space,
    .cost = cost,
    .emit = emit,
};
