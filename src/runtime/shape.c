/* The shape program: int64 registers, every operation checked. */
#include "runtime/runtime_int.h"

static int64_t floordiv(int64_t x, int64_t y)
{
    const int64_t q = x / y;
    return q - (x % y != 0 && (x < 0) != (y < 0));
}

static bool can_divide(int64_t x, int64_t y)
{
    return y != 0 && !(x == INT64_MIN && y == -1);
}

/* False on overflow and division by zero. */
static bool compute(const hn_context *c, const hn_sinst *s, int64_t *ret)
{
    const int64_t *r = c->reg;

    switch ((hn_sop)s->op) {
    case HN_S_INPUT_DIM: *ret = c->io[s->a].dim[s->b]; return true;
    case HN_S_MOVE: *ret = r[s->a]; return true;
    case HN_S_ADD: return !__builtin_add_overflow(r[s->a], r[s->b], ret);
    case HN_S_SUB: return !__builtin_sub_overflow(r[s->a], r[s->b], ret);
    case HN_S_MUL: return !__builtin_mul_overflow(r[s->a], r[s->b], ret);
    case HN_S_FLOORDIV:
        if (!can_divide(r[s->a], r[s->b])) return false;
        *ret = floordiv(r[s->a], r[s->b]);
        return true;
    case HN_S_CEILDIV:
        if (!can_divide(r[s->a], r[s->b])) return false;
        *ret = floordiv(r[s->a], r[s->b]) + (r[s->a] % r[s->b] != 0);
        return true;
    case HN_S_MOD:
        if (!can_divide(r[s->a], r[s->b])) return false;
        *ret = r[s->a] - r[s->b] * floordiv(r[s->a], r[s->b]);
        return true;
    case HN_S_MIN: *ret = HN_MIN(r[s->a], r[s->b]); return true;
    case HN_S_MAX: *ret = HN_MAX(r[s->a], r[s->b]); return true;
    case HN_S_EQ: *ret = r[s->a] == r[s->b]; return true;
    case HN_S_LT: *ret = r[s->a] < r[s->b]; return true;
    case HN_S_SELECT: *ret = r[s->a] ? r[s->b] : r[s->c]; return true;
    case HN_S_CHECK_EQ:
    case HN_S_CHECK_LE: break;
    }
    return false;
}

static hone_status check(const hn_context *c, const hn_sinst *s, hn_diag *dg)
{
    const int64_t a = c->reg[s->a], b = c->reg[s->b];
    const bool eq = s->op == HN_S_CHECK_EQ;

    if (eq ? a == b : a <= b) return HONE_OK;
    hn_hint_sizes(c, "", dg);
    return HN_RAISE(dg, HONE_E_SHAPE, "%s: %lld must %s %lld", hn_plan_str(c->plan, s->c), (long long)a,
                    eq ? "equal" : "be at most", (long long)b);
}

hone_status hn_shape_run(hn_context *c, uint32_t first, uint32_t n, hn_diag *dg)
{
    for (uint32_t i = first; i < first + n; i++) {
        const hn_sinst *s = &c->plan->inst[i];
        if (s->op >= HN_S_CHECK_EQ)
            HN_TRY(check(c, s, dg));
        else if (HN_UNLIKELY(!compute(c, s, &c->reg[s->dst])))
            return HN_RAISE(dg, HONE_E_SHAPE, "a size overflows or is divided by zero (shape instruction %u)",
                            i);
    }
    return HONE_OK;
}
