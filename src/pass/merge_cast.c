/**
 * Leave out a cast that loses nothing before another cast.
 *
 *     y = cast(cast(x i32, i64), f32)   =>   y = cast(x, f32)
 *     y = cast(cast(x f16, f32), f16)   =>   x
 *
 * Fires only where the middle dtype holds every value of x: float to int to bool makes false of 0.5, float to bool true.
 */
#include "pass/pass_int.h"

/* Bits of an integer that a float holds exactly; 0 where no integer dtype is held whole. */
static int whole_bits(hn_dtype t)
{
    switch (t) {
    case HN_F64: return 53;
    case HN_F32: return 24;
    case HN_F16: return 11;
    case HN_BF16: return 8;
    default: return 0;
    }
}

static bool float_holds(hn_dtype from, hn_dtype to)
{
    if (to == HN_F64) return true;
    if (to == HN_F32) return from != HN_F64; /* every smaller format has a narrower exponent and fewer digits */
    return false;
}

static bool holds_all(hn_dtype from, hn_dtype to)
{
    const int bits = hn_dtype_bits(from) - (hn_dtype_is_signed(from) ? 1 : 0); /* of magnitude */
    if (from == to) return true;
    if (from == HN_BOOL) return hn_dtype_is_int(to) ? hn_dtype_bits(to) > 2 : whole_bits(to) > 0;
    if (hn_dtype_is_float(from)) return hn_dtype_is_float(to) && float_holds(from, to);
    if (hn_dtype_is_float(to)) return bits <= whole_bits(to);
    if (!hn_dtype_is_int(to) || (hn_dtype_is_signed(from) && !hn_dtype_is_signed(to))) return false;
    return bits <= hn_dtype_bits(to) - (hn_dtype_is_signed(to) ? 1 : 0);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    const hn_node *p = hn_producer(hn_in(n, 0));
    if (!n->out[0]->n_uses || !p || p->op != HN_OP_cast || p->graph != n->graph) return false;
    hn_value *x = hn_in(p, 0);
    if (!holds_all(x->type.dtype, hn_in(n, 0)->type.dtype)) return false;
    if (x->type.dtype == n->out[0]->type.dtype) {
        hn_replace(b, n->out[0], x);
        return true;
    }
    const hn_node *y = hn_build_like(b, n, 1, &x);
    if (y) hn_replace(b, n->out[0], y->out[0]);
    return y != NULL;
}

const hn_pass_def hn_pass_merge_cast = {
    .name = "merge_cast", .summary = "leave out casts that lose nothing before other casts",
    .on = HN_OP_cast, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
