/* Inside src/ir: what its files share and nobody else sees. */
#ifndef HN_IR_IR_INT_H
#define HN_IR_IR_INT_H

#include "ir/ir.h"
#include "ir/op.h"

enum {
    HN_CONTENT_MAX = 64,  /* elements of a value whose content is tracked: shape tensors, not data */
    HN_MAX_NESTING = 200, /* subgraphs within subgraphs; recursion is bounded by it */
};

/** Values: registered in the root's name table. name NULL: generated from stem and the id. */
hn_value *hn_value_new(hn_graph *g, const char *name, const char *stem);
/** Swap the names of two values of one root. */
void hn_value_swap_names(hn_value *a, hn_value *b);

/** What v defines is defined by w from here on. */
void hn_value_dims_move(hn_value *v, hn_value *w);
/** Forgets definers whose values are gone. */
void hn_value_dims_sweep(hn_graph *root);

/** Use lists. */
void hn_use_link(hn_use *u, hn_value *v);
void hn_use_drop(hn_use *u);

/** Everything hn_build does, with names for the outputs (NULL: generated; a NULL entry: generated). */
typedef struct hn_build_args {
    hn_op op;
    int n_in, n_out, n_body;
    hn_value *const *in;
    const hn_attr_set *attrs;
    const hn_attr *attr; /* instead of attrs: one per schema entry */
    const char *const *out_name;
    hn_graph *const *body;
} hn_build_args;
hn_node *hn_build_full(hn_builder *b, const hn_build_args *args);
/** A node with empty operands, results and bodies, in no list yet. */
hn_node *hn_node_alloc(hn_graph *g, const hn_op_def *op, int n_in, int n_out);
/** Before a node of g, or at the end. */
void hn_node_insert(hn_graph *g, hn_node *before, hn_node *n);

/** Copy an attribute's list or text into the arena; dims through syms (from NULL: the same table). */
bool hn_attr_copy(hn_arena *a, hn_attr_kind kind, const hn_attr *from, hn_attr *ret);
/** The content of a constant from its bytes, where it is small and not a float. */
void hn_content_of_const(hn_value *v);
/** Sorted union of origin lists in the arena. */
const char *const *hn_origin_union(hn_arena *a, const char *const *x, int n_x, const char *const *y, int n_y,
                                   int *ret_n);

/** An expression from its operator and operands (hn_dim_expr the other way round). */
hn_dim hn_dim_make(hn_symtab *to, hn_expr_op op, const hn_dim x[3]);
/** "STEM_K" that no symbol has; NULL when out of memory. */
const char *hn_sym_fresh_name(const hn_symtab *t, hn_arena *a, const char *stem);
/** Expressions that were walked already, over several calls of hn_dim_each_new_sym. */
typedef struct hn_dim_seen {
    uint64_t *word; /* by -handle, a bit each */
    int64_t n;
} hn_dim_seen;
/** For a table that does not grow while it lasts; false when out of memory. */
bool hn_dim_seen_init(hn_dim_seen *s, hn_arena *a, const hn_symtab *t);
/** As hn_dim_each_sym, leaving out what earlier calls met. */
bool hn_dim_each_new_sym(const hn_symtab *t, hn_dim d, hn_dim_seen *seen, bool (*fn)(void *user, hn_dim sym), void *user);
/** The name of a plain symbol. */
const char *hn_sym_name(const hn_symtab *t, hn_dim sym);
/** Add from's symbols to an empty table, in order, bounds included. */
bool hn_syms_copy(const hn_symtab *from, hn_symtab *to);

#endif
