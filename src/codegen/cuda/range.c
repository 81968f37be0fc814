/* Intervals of 64-bit integers: index arithmetic that fits 32 bits is several times cheaper on a GPU. */
#include "codegen/cuda/cuda_int.h"

typedef struct range {
    int64_t lo, hi;
} range;

static const range all = { INT64_MIN, INT64_MAX };

static range make(int64_t lo, int64_t hi)
{
    return (range){ lo, hi };
}

static range products(range x, range y)
{
    const int64_t a[] = { x.lo, x.lo, x.hi, x.hi }, b[] = { y.lo, y.hi, y.lo, y.hi };
    range r = { INT64_MAX, INT64_MIN };

    for (int i = 0; i < 4; i++) {
        int64_t v;
        if (__builtin_mul_overflow(a[i], b[i], &v)) return all;
        r.lo = HN_MIN(r.lo, v);
        r.hi = HN_MAX(r.hi, v);
    }
    return r;
}

static range sum(range x, range y)
{
    range r;

    if (__builtin_add_overflow(x.lo, y.lo, &r.lo) || __builtin_add_overflow(x.hi, y.hi, &r.hi)) return all;
    return r;
}

static range difference(range x, range y)
{
    range r;

    if (__builtin_sub_overflow(x.lo, y.hi, &r.lo) || __builtin_sub_overflow(x.hi, y.lo, &r.hi)) return all;
    return r;
}

static range bits(range x, range y)
{
    /* of non-negative numbers, `and` is at most the lesser */
    if (x.lo < 0 && y.lo < 0) return all;
    if (x.lo < 0) return make(0, y.hi);
    if (y.lo < 0) return make(0, x.hi);
    return make(0, HN_MIN(x.hi, y.hi));
}

/* Of non-negative numbers, `or` and `xor` set no bit above the highest of either. */
static range joined(range x, range y)
{
    const int64_t most = HN_MAX(x.hi, y.hi);

    if (x.lo < 0 || y.lo < 0 || most < 0) return all;
    return make(0, most == 0 ? 0 : (int64_t)(~0ull >> __builtin_clzll((uint64_t)most)));
}

static range shift(int op, range x, range n)
{
    if (n.lo != n.hi || n.lo < 0 || n.lo > 62) return all;
    if (op == HN_KOP_SHR) return make(x.lo >> n.lo, x.hi >> n.lo);
    return products(x, make(1ll << n.lo, 1ll << n.lo));
}

static range quotient(int op, range x, range y)
{
    if (y.lo < 1) return all;
    if (op == HN_KOP_REM) return make(x.lo < 0 ? -(y.hi - 1) : 0, x.hi < 0 ? 0 : HN_MIN(x.hi, y.hi - 1));
    const range lo = { x.lo < 0 ? x.lo : x.lo / y.hi, 0 };
    return make(lo.lo, x.hi < 0 ? 0 : x.hi / y.lo);
}

static range binary(int op, range x, range y)
{
    switch (op) {
    case HN_KOP_ADD:
        return sum(x, y);
    case HN_KOP_SUB:
        return difference(x, y);
    case HN_KOP_MUL:
        return products(x, y);
    case HN_KOP_DIV:
    case HN_KOP_REM:
        return quotient(op, x, y);
    case HN_KOP_MIN:
    case HN_KOP_MINR:
        return make(HN_MIN(x.lo, y.lo), HN_MIN(x.hi, y.hi));
    case HN_KOP_MAX:
    case HN_KOP_MAXR:
        return make(HN_MAX(x.lo, y.lo), HN_MAX(x.hi, y.hi));
    case HN_KOP_AND:
        return bits(x, y);
    case HN_KOP_OR:
    case HN_KOP_XOR:
        return joined(x, y);
    case HN_KOP_SHL:
    case HN_KOP_SHR:
        return shift(op, x, y);
    default:
        return all;
    }
}

static range of_type(int dtype)
{
    const int n = dtype == HN_BOOL ? 1 : hn_dtype_bits((hn_dtype)dtype);

    if (n >= 64 || hn_dtype_is_float((hn_dtype)dtype)) return all;
    if (dtype != HN_BOOL && hn_dtype_is_signed((hn_dtype)dtype)) return make(-(1ll << (n - 1)), (1ll << (n - 1)) - 1);
    return make(0, (1ll << n) - 1);
}

/* An index runs from lo below hi; the step past the end must fit as well. */
static range of_loop(const hn_kins *x, range lo, range hi, range step)
{
    range past;

    if (x->flags >= HN_KFOR_BLOCK_X) return make(0, HN_MAX(0, HN_MIN(hi.hi, INT32_MAX) - 1));
    if (step.lo < 1 || hi.hi == INT64_MAX) return all;
    past = sum(hi, step);
    return make(lo.lo, HN_MAX(lo.lo, past.hi));
}

static range of(const hn_kfunc *f, const hn_kins *x, const range *r)
{
    const range a = x->a[0] >= 0 ? r[x->a[0]] : all, b = x->a[1] >= 0 ? r[x->a[1]] : all,
                c = x->a[2] >= 0 ? r[x->a[2]] : all;

    switch (x->op) {
    case HN_KOP_CONST:
        return make(x->imm, x->imm);
    case HN_KOP_ARG:
        return make(f->arg[x->imm].lo, f->arg[x->imm].hi);
    case HN_KOP_FOR:
        return of_loop(x, a, b, c);
    case HN_KOP_SELECT:
        return make(HN_MIN(b.lo, c.lo), HN_MAX(b.hi, c.hi));
    case HN_KOP_REM:
        if (x->dtype == HN_U64 && b.lo >= 1) return make(0, a.lo < 0 ? b.hi - 1 : HN_MIN(a.hi, b.hi - 1));
        return quotient(x->op, a, b);
    case HN_KOP_BITCAST:
        if (f->ins[x->a[0]].lanes != x->lanes || hn_dtype_is_float((hn_dtype)f->ins[x->a[0]].dtype)) return all;
        return x->dtype == HN_U64 && a.lo < 0 ? all : a;
    case HN_KOP_CAST: {
        const int from = f->ins[x->a[0]].dtype;
        if (hn_dtype_is_float((hn_dtype)from)) return all;
        const range y = hn_dtype_bits((hn_dtype)from) < 64 ? of_type(from) : a;
        return x->dtype == HN_U64 && y.lo < 0 ? all : y;
    }
    case HN_KOP_SPLAT:
    case HN_KOP_EXTRACT:
        return a;
    case HN_KOP_RAMP: {
        const range last = make(x->imm * (x->lanes - 1), x->imm * (x->lanes - 1));
        const range far = sum(a, last);
        return make(HN_MIN(a.lo, far.lo), HN_MAX(a.hi, far.hi));
    }
    default:
        return x->op >= HN_KOP_ADD && x->op <= HN_KOP_MAXR      ? binary(x->op, a, b)
               : x->op >= HN_KOP_AND && x->op <= HN_KOP_SHR && x->op != HN_KOP_NOT ? binary(x->op, a, b)
                                                                                   : all;
    }
}

bool hn_cu_find_narrow(const hn_kfunc *f, hn_arena *a, bool *ret)
{
    range *r = HN_NEW_N(a, range, f->n_ins + 1);

    if (!r) return false;
    for (int i = 0; i < f->n_ins; i++) {
        const hn_kins *x = &f->ins[i];
        const bool wide = x->dtype == HN_I64 || x->dtype == HN_U64;
        r[i] = wide ? of(f, x, r) : all;
        if (x->dtype == HN_U64 && r[i].lo < 0) r[i] = all;
        /* one short of the ends, so that negation and the like stay inside */
        ret[i] = wide && r[i].lo > INT32_MIN && r[i].hi < INT32_MAX;
    }
    return true;
}
