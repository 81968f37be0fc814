/* Region forming, second half: cut a group out as a graph of its own and bring it to canonical form, so that equal work has
 * equal digests and tactics see few shapes. */
#include "build/build_int.h"
#include "tactic/lower.h"

#include <string.h>

/* ---- cutting out ---- */
static bool read_outside(const hn_group *group, const hn_value *v)
{
    if (hn_value_defines(v)) return true; /* sizes that are read from a value while running read it too */
    HN_FOR_USES (u, v) {
        bool inside = false;
        for (int i = 0; i < group->nodes.n && !inside; i++) inside = u->node == group->nodes.at[i];
        if (!inside) return true;
    }
    return false;
}

static hone_status collect_outputs(hn_job *b, hn_group *group, hn_diag *dg)
{
    HN_VEC(hn_value *) out = { 0 };
    for (int i = 0; i < group->nodes.n; i++) {
        hn_node *n = group->nodes.at[i];
        /* A root's results all keep their places: tactics know them by position. */
        const bool whole = n == group->root && n->n_out > 1;
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] && (whole || read_outside(group, n->out[k])) && !hn_vec_push(b->a, &out, n->out[k]))
                return HN_NOMEM(dg);
    }
    group->out = out.at;
    group->n_out = out.n;
    return HONE_OK;
}

static const char *ops_text(hn_job *b, const hn_group *group)
{
    hn_str s = { 0 };
    for (int i = 0; i < group->nodes.n; i++) {
        if (i == 6) {
            hn_str_addf(&s, "+%d more", group->nodes.n - i);
            break;
        }
        hn_str_addf(&s, "%s%s", i ? "+" : "", hn_op_of(group->nodes.at[i])->name);
    }
    const char *text = hn_arena_strdup(b->a, hn_str_get(&s));
    hn_str_done(&s);
    return text;
}

/* The extracted copy of the root: extraction keeps node order. */
static hn_node *find_root(const hn_group *group, hn_graph *g)
{
    int at = 0;
    while (at < group->nodes.n && group->nodes.at[at] != group->root) at++;
    HN_FOR_NODES (n, g)
        if (at-- == 0) return n;
    return NULL;
}

/* ---- canonical form of pointwise regions ---- */
static bool only_pointwise(const hn_graph *g)
{
    HN_FOR_NODES (n, g)
        if (!hn_lower_is_pointwise(n)) return false;
    return true;
}

typedef HN_VEC(hn_value *) values;

static bool all_values(hn_arena *a, hn_graph *g, values *v)
{
    for (int i = 0; i < g->n_in; i++)
        if (!hn_vec_push(a, v, g->in[i])) return false;
    HN_FOR_NODES (n, g) {
        for (int i = 0; i < n->n_in; i++)
            if (hn_is_const(hn_in(n, i)) && !hn_vec_push(a, v, hn_in(n, i))) return false;
        for (int i = 0; i < n->n_out; i++)
            if (!hn_vec_push(a, v, n->out[i])) return false;
    }
    return true;
}

static bool all_plain(const values *v)
{
    for (int i = 0; i < v->n; i++)
        if (!hn_layout_is_plain(&v->at[i]->layout)) return false;
    return true;
}

/* Extent of v on result axis a; ranks align at the right. */
static hn_dim extent_at(const hn_value *v, int a, int rank)
{
    const int k = a - (rank - v->type.rank);
    return k < 0 ? 1 : v->type.dim[k];
}

/* Every value either has the result's extent on an axis or 1. */
static bool regular(const values *v, const hn_tdesc *out)
{
    for (int i = 0; i < v->n; i++) {
        if (v->at[i]->type.rank > out->rank) return false;
        for (int a = 0; a < out->rank; a++) {
            const hn_dim d = extent_at(v->at[i], a, out->rank);
            if (d != 1 && d != out->dim[a]) return false;
        }
    }
    return true;
}

/* All values agree on whether they vary along a and along b. */
static bool mergeable(const values *v, const hn_tdesc *out, int a, int b)
{
    for (int i = 0; i < v->n; i++) {
        const bool x = extent_at(v->at[i], a, out->rank) == out->dim[a];
        const bool y = extent_at(v->at[i], b, out->rank) == out->dim[b];
        if (x != y) return false;
    }
    return true;
}

static void retype(hn_symtab *t, hn_value *v, const hn_tdesc *out, const int *first, int n)
{
    hn_tdesc d = { .dtype = v->type.dtype, .rank = n };
    for (int k = 0; k < n; k++) {
        const int end = k + 1 < n ? first[k + 1] : out->rank;
        d.dim[k] = 1;
        for (int a = first[k]; a < end; a++) d.dim[k] = hn_dim_mul(t, d.dim[k], extent_at(v, a, out->rank));
    }
    v->type = d;
    v->layout.n = 0;
}

/*     add(x [8,128,7,7], b [128,1,1])   =>   add(x [8,128,49], b [1,128,1])
 * Axes along which every value moves alike become one; axes of extent 1 go. */
void hn_region_canonicalise(hn_arena *a, hn_graph *g)
{
    values v = { 0 };
    if (!only_pointwise(g) || g->n_out == 0 || !all_values(a, g, &v) || !all_plain(&v)) return;
    const hn_tdesc out = g->out[0].value->type;
    if (out.rank == 0 || !regular(&v, &out)) return;
    int first[HN_MAX_RANK], n = 0, last = -1;
    for (int ax = 0; ax < out.rank; ax++) {
        if (out.dim[ax] == 1 && !(ax == out.rank - 1 && n == 0)) continue; /* joins whatever run it stands in */
        if (last >= 0 && mergeable(&v, &out, last, ax)) {
            last = ax;
            continue;
        }
        first[n] = n == 0 ? 0 : ax;
        n++;
        last = ax;
    }
    if (n == 0) return;
    for (int i = 0; i < v.n; i++) {
        bool seen = false;
        for (int k = 0; k < i && !seen; k++) seen = v.at[k] == v.at[i];
        if (!seen) retype(g->syms, v.at[i], &out, first, n);
    }
}

static bool attrs_mention_shape(const hn_graph *g)
{
    HN_FOR_NODES (n, g) {
        const hn_op_def *op = hn_op_of(n);
        for (int i = 0; i < op->n_attr; i++)
            if (op->attrs[i].kind == HN_ATTR_DIMS || op->attrs[i].kind == HN_ATTR_DIM) return true;
    }
    return false;
}

static void hash_type(hn_hasher *h, const hn_region *r, const hn_tdesc *t)
{
    hn_str s = { 0 };
    hn_tdesc_print(r->g->syms, t, &s);
    hn_hasher_str(h, hn_str_get(&s));
    hn_str_done(&s);
}

static void hash_dims(hn_hasher *h, const hn_region *r, const hn_dim *d, int n)
{
    for (int i = 0; i < n; i++) {
        hn_str s = { 0 };
        hn_dim_print(r->g->syms, d[i], &s);
        hn_hasher_str(h, hn_str_get(&s));
        hn_str_done(&s);
    }
}

/* Sizes stand in attributes too: of two "dims" nodes that read different symbols, the results are alike. */
static void hash_attrs(hn_hasher *h, const hn_region *r, const hn_node *n)
{
    const hn_op_def *op = hn_op_of(n);
    for (int i = 0; i < op->n_attr; i++) {
        if (op->attrs[i].kind == HN_ATTR_DIM) hash_dims(h, r, &n->attr[i].i, 1);
        if (op->attrs[i].kind == HN_ATTR_DIMS) hash_dims(h, r, n->attr[i].is, n->attr[i].n);
    }
}

/* The digest knows symbols by their order only; an emission's arguments name them. Equal regions of which a route asks
 * different things are chosen apart. */
static hn_digest group_key(const hn_job *b, const hn_group *group)
{
    const hn_region *r = &group->region;
    const hn_digest asked = hn_knobs_digest_at(b->knobs, group->root->origin, group->root->n_origin);
    hn_hasher h;
    hn_hasher_init(&h);
    hn_hasher_bytes(&h, &r->digest, sizeof r->digest);
    hn_hasher_bytes(&h, &asked, sizeof asked);
    for (int i = 0; i < r->g->n_in; i++) hash_type(&h, r, &r->g->in[i]->type);
    for (int i = 0; i < r->g->n_out; i++) hash_type(&h, r, &r->g->out[i].value->type);
    HN_FOR_NODES (n, r->g) {
        hash_attrs(&h, r, n);
        for (int i = 0; i < n->n_out; i++) hash_type(&h, r, &n->out[i]->type);
    }
    return hn_hasher_end(&h);
}

/* Another region than the same one elsewhere: its kernels compute other numbers. */
static void make_exact(hn_region *r)
{
    hn_hasher h;
    r->exact = true;
    hn_hasher_init(&h);
    hn_hasher_bytes(&h, &r->digest, sizeof(r->digest));
    hn_hasher_i64(&h, r->exact);
    r->digest = hn_hasher_end(&h);
}

hone_status hn_region_form(hn_job *b, hn_graph *g, hn_group *group, hn_diag *dg)
{
    (void)g;
    HN_TRY(collect_outputs(b, group, dg));
    hn_graph *body = hn_extract(b->a, group->nodes.at, group->nodes.n, group->out, group->n_out, &group->in);
    if (!body) return HN_NOMEM(dg);
    group->n_in = body->n_in;
    hn_node *root = find_root(group, body);
    if (!attrs_mention_shape(body)) hn_region_canonicalise(b->a, body);
    hn_data **data = HN_NEW_N(b->a, hn_data *, body->n_in + 1);
    if (!data) return HN_NOMEM(dg);
    for (int i = 0; i < body->n_in; i++) data[i] = group->in[i]->data;
    const hn_node *r = group->root;
    hn_region_init(&group->region, body, root, data, r->n_origin ? r->origin[0] : r->name);
    if (hn_knob_read_model(b->knobs, HN_KNOB_core_exact)) make_exact(&group->region);
    group->region.ops = ops_text(b, group);
    group->key = group_key(b, group);
    return HONE_OK;
}
