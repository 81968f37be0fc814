/* Symbols, interning, and the polynomial form of sums and products. */
#include <string.h>

#include "core/dim_int.h"

hn_symtab *hn_symtab_new(hn_arena *a)
{
    hn_symtab *t = HN_NEW(a, hn_symtab);
    if (!t) return NULL;
    t->arena = a;
    t->cache = HN_NEW(a, struct dim_cache);
    if (!t->cache) return NULL;
    t->cache->bounds_epoch = 1; /* nodes start with 0: nothing known yet */
    return t;
}

/* ---- interning ---- */
static uint32_t hash_node(int op, bool opaque, const hn_dim arg[3])
{
    const int64_t key[4] = { op * 2 + opaque, arg[0], arg[1], arg[2] };
    return (uint32_t)hn_hash64(key, sizeof key, 0);
}

static bool rehash(hn_symtab *t)
{
    const uint32_t n = t->n_bucket ? 2 * t->n_bucket : 64;
    int32_t *bucket = HN_NEW_N(t->arena, int32_t, n);
    if (!bucket) return false;
    for (int i = 0; i < t->node.n; i++) {
        const struct dim_node *x = &t->node.at[i];
        uint32_t h = hash_node(x->op, x->opaque, x->arg) & (n - 1);
        while (bucket[h])
            h = (h + 1) & (n - 1);
        bucket[h] = i + 1;
    }
    t->bucket = bucket;
    t->n_bucket = n;
    return true;
}

/* Table full: there is no error value, so the arena's sticky bit says it. */
static hn_dim give_up(hn_symtab *t)
{
    void *never = hn_arena_alloc(t->arena, SIZE_MAX, 2);
    (void)never;
    return 0;
}

static int depth_of(const hn_symtab *t, hn_dim d)
{
    return d >= 0 ? 0 : hn_dim_node_(t, d)->depth;
}

hn_dim hn_dim_intern_(hn_symtab *t, int op, bool opaque, hn_dim a, hn_dim b, hn_dim c)
{
    struct dim_node x = { .op = (uint8_t)op, .opaque = opaque, .depth = 1, .arg = { a, b, c } };
    if ((uint32_t)t->node.n * 2 >= t->n_bucket && !rehash(t)) return 0;
    uint32_t h = hash_node(op, opaque, x.arg) & (t->n_bucket - 1);
    for (; t->bucket[h]; h = (h + 1) & (t->n_bucket - 1)) {
        const struct dim_node *y = &t->node.at[t->bucket[h] - 1];
        if (y->op == op && y->opaque == opaque && memcmp(y->arg, x.arg, sizeof x.arg) == 0)
            return -(hn_dim)t->bucket[h];
    }
    for (int i = 0; i < 3 && op != DIM_CONST && op != HN_EX_SYM; i++)
        x.depth = (int16_t)HN_MAX(x.depth, depth_of(t, x.arg[i]) + 1);
    if (t->node.n == DIM_MAX_NODES || x.depth > DIM_MAX_DEPTH) return give_up(t);
    if (!hn_vec_push(t->arena, &t->node, x)) return 0;
    t->bucket[h] = t->node.n;
    return -(hn_dim)t->node.n;
}

/* ---- symbols ---- */
/* The bucket that holds the name, or the empty one where it would go. */
static int32_t *name_bucket(const hn_symtab *t, const char *name)
{
    uint32_t h = (uint32_t)hn_hash64(name, strlen(name), 0) & (t->n_name_bucket - 1);
    while (t->name_bucket[h] && strcmp(t->sym.at[t->name_bucket[h] - 1]->name, name) != 0)
        h = (h + 1) & (t->n_name_bucket - 1);
    return &t->name_bucket[h];
}

static bool rehash_names(hn_symtab *t)
{
    const uint32_t n = t->n_name_bucket ? 2 * t->n_name_bucket : 16;
    int32_t *bucket = HN_NEW_N(t->arena, int32_t, n);
    if (!bucket) return false;
    t->name_bucket = bucket;
    t->n_name_bucket = n;
    for (int i = 0; i < t->sym.n; i++)
        *name_bucket(t, t->sym.at[i]->name) = i + 1;
    return true;
}

hn_dim hn_sym_find(const hn_symtab *t, const char *name)
{
    const int32_t i = t->n_name_bucket ? *name_bucket(t, name) : 0;
    return i ? t->sym_dim.at[i - 1] : 0;
}

hn_dim hn_sym_add(hn_symtab *t, const char *name, hn_sym_kind kind)
{
    const hn_dim known = hn_sym_find(t, name);
    if (known) return known;
    if ((uint32_t)t->sym.n * 2 >= t->n_name_bucket && !rehash_names(t)) return 0;
    hn_sym *s = HN_NEW(t->arena, hn_sym);
    if (!s) return 0;
    s->name = hn_arena_strdup(t->arena, name);
    s->kind = kind;
    s->min =
        kind == HN_SYM_INPUT ? 0 : INT64_MIN; /* an extent cannot be negative, an element of a tensor can */
    s->opt = 1;
    s->max = INT64_MAX;
    const hn_dim d = hn_dim_intern_(t, HN_EX_SYM, false, t->sym.n, 0, 0);
    if (!d || !s->name || !hn_vec_push(t->arena, &t->sym_dim, d) || !hn_vec_push(t->arena, &t->sym, s))
        return 0;
    *name_bucket(t, s->name) = t->sym.n;
    return d;
}

int hn_sym_count(const hn_symtab *t)
{
    return t->sym.n;
}

int64_t hn_dim_count(const hn_symtab *t)
{
    return t->node.n;
}

hn_dim hn_sym_at(const hn_symtab *t, int i)
{
    return i >= 0 && i < t->sym.n ? t->sym_dim.at[i] : 0;
}

int hn_sym_index(const hn_symtab *t, hn_dim d)
{
    return d < 0 && hn_dim_op_(t, d) == HN_EX_SYM ? (int)hn_dim_node_(t, d)->arg[0] : -1;
}

const hn_sym *hn_sym_get(const hn_symtab *t, hn_dim d)
{
    const int i = hn_sym_index(t, d);
    return i < 0 ? NULL : t->sym.at[i];
}

void hn_sym_set_bounds(hn_symtab *t, hn_dim sym, int64_t min, int64_t opt, int64_t max)
{
    hn_sym *s = t->sym.at[hn_sym_index(t, sym)];
    if (s->min != min || s->max != max) t->cache->bounds_epoch++;
    s->min = min;
    s->opt = opt;
    s->max = max;
}

void hn_sym_set_kind(hn_symtab *t, hn_dim sym, hn_sym_kind kind)
{
    t->sym.at[hn_sym_index(t, sym)]->kind = kind;
}

hn_dim hn_dim_const(hn_symtab *t, int64_t v)
{
    return v >= 0 ? v : hn_dim_intern_(t, DIM_CONST, false, v, 0, 0);
}

bool hn_dim_known(const hn_symtab *t, hn_dim d, int64_t *ret)
{
    if (hn_dim_op_(t, d) != DIM_CONST) return false;
    *ret = d >= 0 ? d : hn_dim_node_(t, d)->arg[0];
    return true;
}

hn_expr_op hn_dim_expr(const hn_symtab *t, hn_dim d, hn_dim operand[3])
{
    const struct dim_node *x = hn_dim_node_(t, d);
    memcpy(operand, x->arg, sizeof x->arg);
    return (hn_expr_op)x->op;
}

int hn_dim_compare_(const hn_symtab *t, hn_dim x, hn_dim y)
{
    if (x == y) return 0;
    const int op_x = hn_dim_op_(t, x), op_y = hn_dim_op_(t, y);
    if (op_x == DIM_CONST && op_y == DIM_CONST) {
        int64_t a = 0, b = 0;
        return hn_dim_known(t, x, &a) && hn_dim_known(t, y, &b) && a < b ? -1 : 1;
    }
    if (op_x == DIM_CONST || op_y == DIM_CONST) return op_x == DIM_CONST ? -1 : 1;
    if (op_x != op_y) return op_x < op_y ? -1 : 1;
    const struct dim_node *p = hn_dim_node_(t, x), *q = hn_dim_node_(t, y);
    if (op_x == HN_EX_SYM) return strcmp(t->sym.at[p->arg[0]]->name, t->sym.at[q->arg[0]]->name);
    if (p->opaque != q->opaque) return p->opaque ? 1 : -1;
    for (int i = 0; i < 3; i++) {
        const int c = hn_dim_compare_(t, p->arg[i], q->arg[i]);
        if (c) return c;
    }
    return 0;
}

/* ---- monomials ---- */
static bool is_chain(const hn_symtab *t, hn_dim d, int op)
{
    return d < 0 && hn_dim_op_(t, d) == op && !hn_dim_node_(t, d)->opaque;
}

/* Atoms of a monomial in rising order; -1 when there are too many. */
static int atoms_of(const hn_symtab *t, hn_dim mono, hn_dim atom[DIM_MAX_FACTORS])
{
    int n = 0;
    for (hn_dim d = mono; d != 1; n++)
        d = is_chain(t, d, HN_EX_MUL) ? hn_dim_node_(t, d)->arg[0] : 1;
    if (n > DIM_MAX_FACTORS) return -1;
    hn_dim d = mono;
    for (int i = n - 1; i > 0; i--) {
        atom[i] = hn_dim_node_(t, d)->arg[1];
        d = hn_dim_node_(t, d)->arg[0];
    }
    if (n) atom[0] = d;
    return n;
}

static hn_dim mono_of(hn_symtab *t, const hn_dim *atom, int n)
{
    hn_dim d = n ? atom[0] : 1;
    for (int i = 1; i < n; i++)
        d = hn_dim_intern_(t, HN_EX_MUL, false, d, atom[i], 0);
    return d;
}

hn_dim hn_mono_mul_(hn_symtab *t, hn_dim x, hn_dim y)
{
    hn_dim a[DIM_MAX_FACTORS], b[DIM_MAX_FACTORS], out[2 * DIM_MAX_FACTORS];
    const int na = atoms_of(t, x, a), nb = atoms_of(t, y, b);
    int i = 0, j = 0, n = 0;
    if (na < 0 || nb < 0 || na + nb > DIM_MAX_FACTORS) return 0;
    while (i < na || j < nb)
        out[n++] = j == nb || (i < na && hn_dim_compare_(t, a[i], b[j]) <= 0) ? a[i++] : b[j++];
    return mono_of(t, out, n);
}

bool hn_mono_div_(hn_symtab *t, hn_dim x, hn_dim y, hn_dim *ret)
{
    hn_dim a[DIM_MAX_FACTORS], b[DIM_MAX_FACTORS], out[DIM_MAX_FACTORS];
    const int na = atoms_of(t, x, a), nb = atoms_of(t, y, b);
    int j = 0, n = 0;
    if (na < nb || nb < 0) return false;
    for (int i = 0; i < na; i++) {
        if (j < nb && a[i] == b[j])
            j++;
        else
            out[n++] = a[i];
    }
    if (j < nb) return false;
    *ret = mono_of(t, out, n);
    return true;
}

/* Graded lexicographic, falling: higher degree first, then the smaller first atom. Respects multiplication.
 */
static int mono_order(const hn_symtab *t, hn_dim x, hn_dim y)
{
    hn_dim a[DIM_MAX_FACTORS], b[DIM_MAX_FACTORS];
    if (x == y) return 0;
    const int na = atoms_of(t, x, a), nb = atoms_of(t, y, b);
    if (na != nb) return na > nb ? -1 : 1;
    for (int i = 0; i < na; i++) {
        const int c = hn_dim_compare_(t, a[i], b[i]);
        if (c) return c;
    }
    return 0;
}

/* ---- polynomials ---- */
void hn_poly_add_(hn_symtab *t, struct dim_poly *p, int64_t coef, hn_dim mono)
{
    int i = 0, c = 1;
    if (!p->ok || coef == 0) return;
    while (i < p->n && (c = mono_order(t, p->at[i].mono, mono)) < 0)
        i++;
    if (i < p->n && c == 0) {
        p->ok = !__builtin_add_overflow(p->at[i].coef, coef, &p->at[i].coef);
        if (p->ok && p->at[i].coef == 0)
            memmove(&p->at[i], &p->at[i + 1], (size_t)(--p->n - i) * sizeof p->at[0]);
        return;
    }
    p->ok = p->n < DIM_MAX_TERMS;
    if (!p->ok) return;
    memmove(&p->at[i + 1], &p->at[i], (size_t)(p->n++ - i) * sizeof p->at[0]);
    p->at[i] = (struct dim_term){ coef, mono };
}

void hn_poly_add_scaled_(hn_symtab *t, struct dim_poly *p, const struct dim_poly *q, int64_t scale)
{
    p->ok = p->ok && q->ok;
    for (int i = 0; p->ok && i < q->n; i++) {
        int64_t coef;
        if (__builtin_mul_overflow(q->at[i].coef, scale, &coef))
            p->ok = false;
        else
            hn_poly_add_(t, p, coef, q->at[i].mono);
    }
}

static struct dim_term term_of(const hn_symtab *t, hn_dim d)
{
    int64_t v;
    if (hn_dim_known(t, d, &v)) return (struct dim_term){ v, 1 };
    if (is_chain(t, d, HN_EX_MUL) && hn_dim_known(t, hn_dim_node_(t, d)->arg[0], &v))
        return (struct dim_term){ v, hn_dim_node_(t, d)->arg[1] };
    return (struct dim_term){ 1, d };
}

void hn_poly_of_(hn_symtab *t, hn_dim d, struct dim_poly *ret)
{
    int n = 1;
    for (hn_dim x = d; is_chain(t, x, HN_EX_ADD); x = hn_dim_node_(t, x)->arg[0])
        n++;
    ret->ok = n <= DIM_MAX_TERMS;
    ret->n = ret->ok ? n : 0;
    for (int i = ret->n - 1; i > 0; i--, d = hn_dim_node_(t, d)->arg[0])
        ret->at[i] = term_of(t, hn_dim_node_(t, d)->arg[1]);
    if (ret->ok) ret->at[0] = term_of(t, d);
    if (ret->n == 1 && ret->at[0].coef == 0) ret->n = 0;
}

int64_t hn_poly_take_const_(struct dim_poly *p)
{
    if (p->n == 0 || p->at[p->n - 1].mono != 1) return 0;
    return p->at[--p->n].coef;
}

static hn_dim term_dim(hn_symtab *t, struct dim_term x)
{
    if (x.mono == 1) return hn_dim_const(t, x.coef);
    return x.coef == 1 ? x.mono : hn_dim_intern_(t, HN_EX_MUL, false, hn_dim_const(t, x.coef), x.mono, 0);
}

hn_dim hn_poly_dim_(hn_symtab *t, const struct dim_poly *p)
{
    hn_dim d = p->n ? term_dim(t, p->at[0]) : 0;
    for (int i = 1; i < p->n; i++) {
        const hn_dim term = term_dim(t, p->at[i]);
        d = hn_dim_intern_(t, HN_EX_ADD, false, d, term, 0);
    }
    return d;
}

/* ---- sums and products ---- */
static hn_dim opaque(hn_symtab *t, int op, hn_dim a, hn_dim b)
{
    const bool swap = hn_dim_compare_(t, a, b) > 0;
    return hn_dim_intern_(t, op, true, swap ? b : a, swap ? a : b, 0);
}

static hn_dim add_scaled(hn_symtab *t, hn_dim a, hn_dim b, int64_t scale)
{
    struct dim_poly p, q;
    hn_poly_of_(t, a, &p);
    hn_poly_of_(t, b, &q);
    hn_poly_add_scaled_(t, &p, &q, scale);
    if (p.ok) return hn_poly_dim_(t, &p);
    if (scale == 1) return opaque(t, HN_EX_ADD, a, b);
    return opaque(t, HN_EX_ADD, a, opaque(t, HN_EX_MUL, hn_dim_const(t, scale), b));
}

hn_dim hn_dim_add(hn_symtab *t, hn_dim a, hn_dim b)
{
    int64_t r;
    if (a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, &r)) return r;
    return add_scaled(t, a, b, 1);
}

hn_dim hn_dim_sub(hn_symtab *t, hn_dim a, hn_dim b)
{
    if (a == b) return 0;
    return add_scaled(t, a, b, -1);
}

hn_dim hn_dim_mul(hn_symtab *t, hn_dim a, hn_dim b)
{
    struct dim_poly p, q, r = { .ok = true };
    int64_t v;
    if (a == 0 || b == 0) return 0;
    if (a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, &v)) return v;
    hn_poly_of_(t, a, &p);
    hn_poly_of_(t, b, &q);
    r.ok = p.ok && q.ok && p.n * q.n <= DIM_MAX_TERMS;
    for (int i = 0; r.ok && i < p.n; i++)
        for (int j = 0; r.ok && j < q.n; j++) {
            const hn_dim mono = hn_mono_mul_(t, p.at[i].mono, q.at[j].mono);
            r.ok = mono != 0 && !__builtin_mul_overflow(p.at[i].coef, q.at[j].coef, &v);
            if (r.ok) hn_poly_add_(t, &r, v, mono);
        }
    return r.ok ? hn_poly_dim_(t, &r) : opaque(t, HN_EX_MUL, a, b);
}
