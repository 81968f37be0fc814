/* Slices of an operand along an axis. */
#include "tactic/cpu/slices.h"

static uint32_t axes_before(const hn_slices *s)
{
    return (1u << s->axis) - 1;
}

static uint32_t axes_behind(const hn_slices *s)
{
    return hn_loops_all(s->x) & ~axes_before(s) & ~(1u << s->axis);
}

void hn_slices_init(hn_slices *s, hn_lower *l, const hn_region *r)
{
    *s = (hn_slices){ .l = l, .x = hn_in(r->root, 0), .flat = hn_attr_i(r->root, "flat") };
    hn_kb *b = hn_lower_kb(l);
    if (s->flat) {
        s->n = hn_lower_dim(l, hn_loops_extent(r, s->x, hn_loops_all(s->x)));
        s->outer = s->inner = hn_kb_i(b, 1);
        return;
    }
    hn_axis_resolve(hn_attr_i(r->root, "axis"), s->x->type.rank, &s->axis);
    s->n = hn_lower_dim(l, s->x->type.dim[s->axis]);
    s->outer = hn_lower_dim(l, hn_loops_extent(r, s->x, axes_before(s)));
    s->inner = hn_lower_dim(l, hn_loops_extent(r, s->x, axes_behind(s)));
}

hn_kv hn_slices_at(const hn_slices *s, hn_kv k, hn_kv o, hn_kv i)
{
    hn_kv at[HN_MAX_RANK];
    if (s->flat) {
        hn_loops_split(s->l, s->x, hn_loops_all(s->x), k, at);
    } else {
        hn_loops_split(s->l, s->x, axes_before(s), o, at);
        hn_loops_split(s->l, s->x, axes_behind(s), i, at);
        at[s->axis] = k;
    }
    return hn_loops_element(s->l, s->x, at);
}

void hn_slices_copy(const hn_slices *s, int buf, hn_kv count, hn_kv from, hn_kv to)
{
    hn_kb *b = hn_lower_kb(s->l);
    const hn_kv o = hn_kb_forn(b, s->outer), i = hn_kb_forn(b, s->inner);
    const hn_kv row = hn_kb_add(b, hn_kb_mul(b, o, count), to);
    hn_kb_store(b, buf, hn_kb_add(b, hn_kb_mul(b, row, s->inner), i), hn_slices_at(s, from, o, i));
    hn_kb_end(b);
    hn_kb_end(b);
}
