/* Which values define the symbols that are bound while running: a table, and ways into it by value and by symbol. */
#include "ir/ir_int.h"

const hn_value_dim *hn_value_dim_at(const hn_graph *root, int i)
{
    return i ? &root->value_dims.at[i - 1] : NULL;
}

const hn_value_dim *hn_sym_definer(const hn_graph *root, hn_dim sym)
{
    const int k = hn_sym_index(root->syms, sym);
    return k >= 0 && k < root->sym_dims.n ? hn_value_dim_at(root, root->sym_dims.at[k]) : NULL;
}

bool hn_value_defines(const hn_value *v)
{
    return v->dims != 0;
}

hn_dim hn_value_dim_find(const hn_value *v, int elem)
{
    HN_FOR_DIMS_OF_VALUE (d, v)
        if (d->elem == elem) return d->sym;
    return 0;
}

/* Behind the others, so that the first one found is the oldest. Chains are short: a value has few elements that matter. */
static void link_entry(hn_graph *root, int i)
{
    hn_value_dim *d = &root->value_dims.at[i - 1];
    int *of_value = &d->value->dims, *of_sym = &root->sym_dims.at[hn_sym_index(root->syms, d->sym)];
    while (*of_value) of_value = &root->value_dims.at[*of_value - 1].next_of_value;
    while (*of_sym) of_sym = &root->value_dims.at[*of_sym - 1].next_of_sym;
    *of_value = *of_sym = i;
    d->next_of_value = d->next_of_sym = 0;
}

bool hn_value_dim_add(hn_graph *root, hn_dim sym, hn_value *v, int elem)
{
    const hn_value_dim item = { .sym = sym, .value = v, .elem = elem };
    while (root->sym_dims.n <= hn_sym_index(root->syms, sym))
        if (!hn_vec_push(root->arena, &root->sym_dims, 0)) return false;
    if (!hn_vec_push(root->arena, &root->value_dims, item)) return false;
    link_entry(root, root->value_dims.n);
    return true;
}

void hn_value_dims_move(hn_value *v, hn_value *w)
{
    hn_value_dim *at = v->graph->root->value_dims.at;
    int from = v->dims, *to = &w->dims;
    v->dims = 0;
    for (int i = from; i; i = at[i - 1].next_of_value) at[i - 1].value = w;
    while (from) { /* both chains rise, and so does what becomes of them */
        if (!*to || from < *to) {
            const int rest = *to;
            *to = from;
            from = rest;
        }
        to = &at[*to - 1].next_of_value;
    }
}

void hn_value_dims_sweep(hn_graph *root)
{
    const int n = root->value_dims.n;
    for (int i = 0; i < n; i++) {
        const hn_value_dim *d = &root->value_dims.at[i];
        d->value->dims = root->sym_dims.at[hn_sym_index(root->syms, d->sym)] = 0;
    }
    root->value_dims.n = 0;
    for (int i = 0; i < n; i++) {
        if (!hn_value_is_live(root->value_dims.at[i].value)) continue;
        root->value_dims.at[root->value_dims.n++] = root->value_dims.at[i];
        link_entry(root, root->value_dims.n);
    }
}
