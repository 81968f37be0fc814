/*
 * Einsum: diagonals are taken, letters of one operand alone are summed, then operands are multiplied from
 * left to right, each product as one batched matmul of [batch, left, shared] x [batch, shared, right].
 */
#include "import/import_int.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { MAX_TERMS = 16, MAX_LETTERS = HN_MAX_RANK };

/* The ellipsis becomes letters of its own, '0' to '9', counted from the right. */
typedef struct term {
    hn_value *v;
    char letter[MAX_LETTERS + 1];
    int n;
} term;

typedef struct equation {
    term in[MAX_TERMS];
    int n_in;
    char out[MAX_LETTERS + 1];
    int n_out;
    int n_dots; /* axes that the ellipsis stands for at most */
} equation;

static int find(const char *s, int n, char x)
{
    for (int i = 0; i < n; i++)
        if (s[i] == x) return i;
    return -1;
}

static hone_status bad(hn_im_call *c, const char *why)
{
    return HN_IM_RAISE(c, HONE_E_MODEL, "the equation %s", why);
}

/* Letters of one term; an ellipsis takes the axes that the letters leave. */
static hone_status read_term(hn_im_call *c, const char *s, size_t len, int rank, char *letter, int *ret_n,
                             int *ret_dots)
{
    int letters = 0, dots = 0, n = 0;
    for (size_t i = 0; i < len; i++) {
        if (isalpha((unsigned char)s[i]))
            letters++;
        else if (s[i] == '.')
            dots++;
        else if (s[i] != ' ')
            return bad(c, "holds something else than letters and an ellipsis");
    }
    if (dots != 0 && dots != 3) return bad(c, "has dots that are no ellipsis");
    const int wide = rank < 0 ? *ret_dots : dots ? rank - letters : 0;
    if (wide < 0 || (rank >= 0 && letters + wide != rank))
        return HN_IM_RAISE(c, HONE_E_SHAPE, "a term of %d letters does not fit rank %d", letters, rank);
    if (letters + (dots ? wide : 0) > MAX_LETTERS)
        return hn_im_refuse(c, "a term of more than %d axes is not supported", MAX_LETTERS);
    bool done = false;
    for (size_t i = 0; i < len; i++) {
        if (isalpha((unsigned char)s[i])) letter[n++] = s[i];
        if (s[i] != '.' || done) continue;
        for (int k = wide - 1; k >= 0; k--)
            letter[n++] = (char)('0' + k);
        done = true;
    }
    *ret_n = n;
    if (rank >= 0 && dots && wide > *ret_dots) *ret_dots = wide;
    return HONE_OK;
}

/* Without "->" the result has the ellipsis, then the letters that occur once, in order. */
static void implicit_output(equation *e)
{
    int count[256] = { 0 };
    for (int i = 0; i < e->n_in; i++)
        for (int k = 0; k < e->in[i].n; k++)
            count[(unsigned char)e->in[i].letter[k]]++;
    for (int k = e->n_dots - 1; k >= 0; k--)
        e->out[e->n_out++] = (char)('0' + k);
    for (int x = 'A'; x <= 'z'; x++)
        if (isalpha(x) && count[x] == 1 && e->n_out < MAX_LETTERS) e->out[e->n_out++] = (char)x;
}

static hone_status read_equation(hn_im_call *c, const char *s, equation *e)
{
    const char *arrow = strstr(s, "->");
    const char *end = arrow ? arrow : s + strlen(s);
    for (;; s++) {
        const char *stop = memchr(s, ',', (size_t)(end - s));
        const size_t len = (size_t)((stop ? stop : end) - s);
        if (e->n_in == c->n_in || e->n_in == MAX_TERMS) return bad(c, "has more terms than the node inputs");
        term *t = &e->in[e->n_in];
        t->v = c->in[e->n_in];
        if (!t->v) return bad(c, "names an absent input");
        HN_TRY(read_term(c, s, len, t->v->type.rank, t->letter, &t->n, &e->n_dots));
        e->n_in++;
        s += len;
        if (!stop) break;
    }
    if (e->n_in != c->n_in) return bad(c, "has fewer terms than the node inputs");
    if (!arrow) {
        implicit_output(e);
        return HONE_OK;
    }
    HN_TRY(read_term(c, arrow + 2, strlen(arrow + 2), -1, e->out, &e->n_out, &e->n_dots));
    for (int i = 0; i < e->n_out; i++) {
        bool known = false;
        for (int k = 0; k < e->n_in; k++)
            known |= find(e->in[k].letter, e->in[k].n, e->out[i]) >= 0;
        if (!known || find(e->out, i, e->out[i]) >= 0)
            return bad(c, "has a result letter that is unknown or twice");
    }
    return HONE_OK;
}

static void drop_axis(hn_im_call *c, term *t, int k, bool sum)
{
    t->v =
        sum ? hn_im_reduce(c, HN_OP_reduce_sum, t->v, 1, (int64_t[]){ k }, false) : hn_im_squeeze(c, t->v, k);
    memmove(t->letter + k, t->letter + k + 1, (size_t)(t->n - k - 1));
    t->n--;
}

/* A letter twice in a term: only the diagonal counts. Masked, then summed over one of the two axes. */
static void take_diagonals(hn_im_call *c, term *t)
{
    for (int k = 1; k < t->n && t->v; k++) {
        const int i = find(t->letter, k, t->letter[k]);
        if (i < 0) continue;
        hn_value *a = hn_im_iota(c, HN_I64, t->v->type.rank, t->v->type.dim, i);
        hn_value *b = hn_im_iota(c, HN_I64, t->v->type.rank, t->v->type.dim, k);
        hn_value *zero = hn_const_i(c->b, t->v->type.dtype, 0);
        t->v = hn_im_select(c, hn_im_binary(c, HN_OP_eq, a, b), t->v, zero);
        drop_axis(c, t, k--, true);
    }
}

static bool needed_later(const equation *e, int from, char x)
{
    if (find(e->out, e->n_out, x) >= 0) return true;
    for (int i = from; i < e->n_in; i++)
        if (find(e->in[i].letter, e->in[i].n, x) >= 0) return true;
    return false;
}

/* Sum a term's letters that neither the other one nor anything later has. */
static void sum_alone(hn_im_call *c, const equation *e, int from, term *t, const term *other)
{
    for (int k = t->n - 1; k >= 0 && t->v; k--)
        if (!needed_later(e, from, t->letter[k]) &&
            (!other || find(other->letter, other->n, t->letter[k]) < 0))
            drop_axis(c, t, k, true);
}

/* Axes in the order of want (letters the term has), then reshaped to rank-many groups. */
static hn_value *arrange(hn_im_call *c, const term *t, const char *want, int n)
{
    int64_t perm[MAX_LETTERS];
    for (int i = 0; i < n; i++)
        perm[i] = find(t->letter, t->n, want[i]);
    return hn_transpose(c->b, t->v, perm);
}

static hn_dim group(hn_im_call *c, const term *t, const char *s, int n)
{
    hn_dim d = 1;
    for (int i = 0; i < n; i++)
        d = hn_im_dmul(c, d, t->v->type.dim[find(t->letter, t->n, s[i])]);
    return d;
}

typedef struct groups {
    char batch[MAX_LETTERS], left[MAX_LETTERS], shared[MAX_LETTERS], right[MAX_LETTERS];
    int n_batch, n_left, n_shared, n_right;
} groups;

static bool is_one(const term *t, char x)
{
    const int k = find(t->letter, t->n, x);
    return k >= 0 && t->v->type.dim[k] == 1;
}

static void sort_letters(const equation *e, int from, const term *a, const term *b, groups *g)
{
    for (int i = 0; i < a->n; i++) {
        const char x = a->letter[i];
        if (find(b->letter, b->n, x) < 0)
            g->left[g->n_left++] = x;
        else if (needed_later(e, from, x))
            g->batch[g->n_batch++] = x;
        else
            g->shared[g->n_shared++] = x;
    }
    for (int i = 0; i < b->n; i++)
        if (find(a->letter, a->n, b->letter[i]) < 0) g->right[g->n_right++] = b->letter[i];
}

/* An extent of 1 against a larger one broadcasts: its axis is dropped, the other's stands. */
static void drop_ones(hn_im_call *c, term *a, const term *b)
{
    for (int k = a->n - 1; k >= 0 && a->v; k--) {
        const char x = a->letter[k];
        if (is_one(a, x) && find(b->letter, b->n, x) >= 0 && !is_one(b, x)) drop_axis(c, a, k, false);
    }
}

static int cat(char *dst, int n, const char *s, int m)
{
    if (n + m <= 2 * MAX_LETTERS) memcpy(dst + n, s, (size_t)m);
    return n + m;
}

static hone_status multiply(hn_im_call *c, const equation *e, int from, term *a, term *b)
{
    groups g = { 0 };
    char order[2 * MAX_LETTERS];
    drop_ones(c, a, b);
    drop_ones(c, b, a);
    sum_alone(c, e, from, a, b);
    sum_alone(c, e, from, b, a);
    HN_TRY(c->b->status);
    sort_letters(e, from, a, b, &g);
    if (g.n_batch + g.n_left + g.n_right > MAX_LETTERS)
        return hn_im_refuse(c, "a product of more than %d axes is not supported", MAX_LETTERS);

    const hn_dim s = group(c, a, g.shared, g.n_shared);
    const hn_dim da[3] = { group(c, a, g.batch, g.n_batch), group(c, a, g.left, g.n_left), s };
    const hn_dim db[3] = { da[0], s, group(c, b, g.right, g.n_right) };
    hn_dim full[MAX_LETTERS];
    int n = cat(order, cat(order, cat(order, 0, g.batch, g.n_batch), g.left, g.n_left), g.shared, g.n_shared);
    hn_value *x = hn_reshape(c->b, arrange(c, a, order, n), 3, da);
    n = cat(order, cat(order, cat(order, 0, g.batch, g.n_batch), g.shared, g.n_shared), g.right, g.n_right);
    hn_value *y = hn_reshape(c->b, arrange(c, b, order, n), 3, db);
    hn_value *r = hn_im_matmul(c, x, y, false, false);
    n = cat(order, cat(order, cat(order, 0, g.batch, g.n_batch), g.left, g.n_left), g.right, g.n_right);
    for (int i = 0; i < n && i < MAX_LETTERS; i++) {
        const int k = find(a->letter, a->n, order[i]);
        full[i] = k >= 0 ? a->v->type.dim[k] : b->v->type.dim[find(b->letter, b->n, order[i])];
    }
    a->v = hn_reshape(c->b, r, n, full);
    memcpy(a->letter, order, (size_t)n);
    a->n = n;
    return c->b->status;
}

hone_status hn_im_on_einsum(hn_im_call *c)
{
    equation e = { 0 };
    const char *s = hn_im_s(c, "equation", NULL);
    if (!s) return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"equation\" is missing");
    HN_TRY(read_equation(c, s, &e));
    for (int i = 0; i < e.n_in; i++)
        take_diagonals(c, &e.in[i]);
    HN_TRY(c->b->status);
    term acc = e.in[0];
    for (int i = 1; i < e.n_in; i++)
        HN_TRY(multiply(c, &e, i + 1, &acc, &e.in[i]));
    sum_alone(c, &e, e.n_in, &acc, NULL);
    if (!acc.v) return c->b->status;
    if (acc.n != e.n_out) return bad(c, "cannot be brought to its result");
    return hn_im_ret(c, arrange(c, &acc, e.out, e.n_out));
}
