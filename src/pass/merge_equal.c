/**
 * Merge nodes that compute the same from the same operands, and constants with the same bytes.
 *
 *     a = exp(x)  b = exp(x)  y = add(a, b)   =>   a = exp(x)  y = add(a, a)
 */
#include "pass/pass.h"

#include <string.h>

/* Open addressing over the nodes met so far. */
typedef struct seen {
    hn_node **at;
    uint64_t *hash;
    int cap;
} seen;

static uint64_t hash_attr(const hn_attr *a, hn_attr_kind kind, uint64_t h)
{
    h = hn_hash64(&a->set, sizeof a->set, h);
    if (!a->set) return h;
    switch (kind) {
    case HN_ATTR_INTS:
    case HN_ATTR_DIMS: return hn_hash64(a->is, (size_t)a->n * sizeof *a->is, h);
    case HN_ATTR_FLOATS: return hn_hash64(a->fs, (size_t)a->n * sizeof *a->fs, h);
    case HN_ATTR_STR: return hn_hash64(a->s, strlen(a->s), h);
    default: return hn_hash64(&a->i, sizeof a->i, h);
    }
}

static uint64_t hash_node(const hn_node *n)
{
    const hn_op_def *op = hn_op_of(n);
    uint64_t h = hn_hash64(&n->op, sizeof n->op, (uint64_t)n->n_out);
    for (int i = 0; i < n->n_in; i++) {
        const uint32_t id = hn_in(n, i) ? hn_in(n, i)->id : 0;
        h = hn_hash64(&id, sizeof id, h);
    }
    for (int i = 0; i < op->n_attr; i++) h = hash_attr(&n->attr[i], op->attrs[i].kind, h);
    return h;
}

static bool same_bytes(const void *a, const void *b, size_t n)
{
    return n == 0 || memcmp(a, b, n) == 0; /* empty lists may be null */
}

static bool same_attr(const hn_attr *a, const hn_attr *b, hn_attr_kind kind)
{
    if (a->set != b->set) return false;
    if (!a->set) return true;
    switch (kind) {
    case HN_ATTR_INTS:
    case HN_ATTR_DIMS: return a->n == b->n && same_bytes(a->is, b->is, (size_t)a->n * sizeof *a->is);
    case HN_ATTR_FLOATS: return a->n == b->n && same_bytes(a->fs, b->fs, (size_t)a->n * sizeof *a->fs);
    case HN_ATTR_STR: return strcmp(a->s, b->s) == 0;
    default: return a->i == b->i;
    }
}

static bool same_node(const hn_node *a, const hn_node *b)
{
    const hn_op_def *op = hn_op_of(a);
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out) return false;
    for (int i = 0; i < a->n_in; i++)
        if (hn_in(a, i) != hn_in(b, i)) return false;
    for (int i = 0; i < op->n_attr; i++)
        if (!same_attr(&a->attr[i], &b->attr[i], op->attrs[i].kind)) return false;
    return true;
}

static bool mergeable(const hn_node *n)
{
    const uint32_t t = hn_op_of(n)->traits;
    return (t & HN_TRAIT_PURE) && !(t & (HN_TRAIT_RANDOM | HN_TRAIT_CONTROL | HN_TRAIT_DYNAMIC)) && n->n_body == 0;
}

static hn_node *find_or_add(seen *s, hn_node *n)
{
    const uint64_t h = hash_node(n);
    int i = (int)(h & (uint64_t)(s->cap - 1));
    for (; s->at[i]; i = (i + 1) & (s->cap - 1))
        if (s->hash[i] == h && same_node(s->at[i], n)) return s->at[i];
    s->at[i] = n;
    s->hash[i] = h;
    return NULL;
}

static int merge_consts(hn_builder *b, hn_graph *g)
{
    int n = 0;
    for (int i = 0; i < g->consts.n; i++) {
        hn_value *v = g->consts.at[i];
        if (!v->n_uses) continue;
        for (int k = 0; k < i; k++) {
            hn_value *w = g->consts.at[k];
            if (!w->n_uses || v->data->bytes != w->data->bytes || !hn_tdesc_eq(&v->type, &w->type)) continue;
            if (!hn_digest_eq(hn_data_digest(v->data), hn_data_digest(w->data))) continue;
            hn_replace(b, v, w);
            n++;
            break;
        }
    }
    return n;
}

static hone_status run(hn_graph *g, hn_pass_ctx *c, int *fired, hn_diag *dg)
{
    hn_builder b;
    seen s = { .cap = 16 };
    hn_builder_init(&b, g, dg);
    *fired += merge_consts(&b, g);
    while (s.cap < 2 * g->n_node) s.cap *= 2;
    s.at = HN_NEW_N(c->scratch, hn_node *, s.cap);
    s.hash = HN_NEW_N(c->scratch, uint64_t, s.cap);
    if (!s.at || !s.hash) return HN_NOMEM(dg);
    HN_FOR_NODES (n, g) {
        if (!mergeable(n)) continue;
        hn_node *first = find_or_add(&s, n);
        if (!first) continue;
        for (int i = 0; i < n->n_out; i++) hn_replace(&b, n->out[i], first->out[i]);
        ++*fired;
        hn_unlink(n);
    }
    return b.status;
}

const hn_pass_def hn_pass_merge_equal = {
    .name = "merge_equal", .summary = "compute equal things once",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .run = run,
};
