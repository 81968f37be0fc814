/* Cheap producers with several readers, made anew for each reader that can then compute them as it reads.
 *
 *     t = transpose(x);  a = add(t, y);  b = mul(t, z)   =>   a = add(transpose(x), y);  b = mul(transpose(x), z)
 *     r = relu(x);  s = sum(r);  m = max(r)              =>   s = sum(relu(x));  m = max(relu(x))
 *
 * With one reader each, region forming folds them in and nothing is stored between. Whether reading twice through a view, or
 * computing twice, is cheaper than storing once is for the route to say.
 */
#include "build/build_int.h"
#include "tactic/lower.h"

enum { MOST_READERS = 8 };

static bool is_foldable(const hn_job *b, hn_graph *g, const hn_node *n)
{
    hn_dim offset;
    return n->n_out == 1 && hn_lower_is_view(n) && !hn_group_alias_offset(b, g, n, &offset);
}

/* Would this reader take the value in, had it no other reader? */
static bool reader_folds(const hn_job *b, hn_graph *g, const hn_node *n, const hn_use *u)
{
    if (!u->node || u->node->graph != g) return false;
    if (hn_lower_is_view(n)) return hn_lower_is_pointwise(u->node) || is_foldable(b, g, u->node);
    return u->index == 0 && hn_group_takes_prologue(u->node);
}

static int count_folds(const hn_job *b, hn_graph *g, const hn_node *n)
{
    int folds = 0;
    HN_FOR_USES (u, n->out[0]) folds += reader_folds(b, g, n, u);
    return folds;
}

static bool is_candidate(const hn_job *b, hn_graph *g, const hn_node *n)
{
    if (n->n_out != 1 || n->out[0]->n_uses < 2 || n->out[0]->n_uses > MOST_READERS || n->out[0]->data) return false;
    if (!is_foldable(b, g, n) && !hn_lower_is_pointwise(n)) return false;
    return count_folds(b, g, n) > 0;
}

static void give_copy(hn_builder *b, const hn_node *n, const hn_use *u)
{
    hn_value *in[HN_MAX_RANK];
    if (n->n_in > HN_MAX_RANK) return;
    for (int i = 0; i < n->n_in; i++) in[i] = hn_in(n, i);
    hn_at(b, u->node);
    hn_builder_origin_of(b, n);
    hn_node *copy = hn_build_like(b, n, n->n_in, in);
    if (!copy) return;
    copy->out[0]->layout = n->out[0]->layout;
    hn_set_in(u->node, u->index, copy->out[0]);
}

hone_status hn_duplicate_cheap(hn_job *job, hn_graph *g, hn_diag *dg)
{
    hn_builder b;
    hn_builder_init(&b, g, dg);
    HN_FOR_NODES (n, g) {
        for (int i = 0; i < n->n_body; i++) HN_TRY(hn_duplicate_cheap(job, n->body[i], dg));
        if (!is_candidate(job, g, n)) continue;
        const hn_knob k = hn_lower_is_view(n) ? HN_KNOB_region_copy_views : HN_KNOB_region_recompute;
        if (!hn_knob_read_node(job->knobs, k, n->origin, n->n_origin)) continue;
        HN_FOR_USES (u, n->out[0])
            if (n->out[0]->n_uses > 1 && reader_folds(job, g, n, u)) give_copy(&b, n, u);
    }
    return b.status;
}
