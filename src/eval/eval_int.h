/* Inside src/eval: values in working form, the state of one run. */
#ifndef HN_EVAL_EVAL_INT_H
#define HN_EVAL_EVAL_INT_H

#include "eval/eval.h"

/** A value in working form; shared by reference count, never written once it has been handed on. */
typedef struct hn_cell hn_cell;
struct hn_cell {
    int refs;
    hn_vkind kind;
    hn_view view;   /* tensors; of lists only type.dtype counts */
    int64_t bytes;  /* what it counts against the limit */
    hn_cell **item; /* lists */
    int n_item;
    bool absent;    /* an optional sequence that is not there; has no items */
};

typedef struct hn_run {
    const hn_eval_opts *opts;
    const hn_graph *root;
    hn_cell **slot; /* by value id */
    uint32_t n_slot;
    uint32_t *free_head; /* by node id: 1 + id of the first value to free after it; 0: none */
    uint32_t *free_next; /* by value id */
    int64_t *sym;        /* value of each symbol, in table order */
    bool *bound;
    int n_sym; /* 0: a single node is evaluated, outside its graph */
    hn_arena *arena;   /* of this struct's arrays */
    hn_arena *scratch; /* reset after each node */
    int64_t live_bytes;
    int done, total;
} hn_run;

/* ---- cells (cell.c) ---- */
/** A zeroed tensor of a static type; `what` names it when the limit is passed. */
hone_status hn_cell_new(hn_run *r, const hn_tdesc *type, const char *what, hn_cell **ret, hn_diag *dg);
/** A list over n items, each taken by reference. */
hone_status hn_cell_list(hn_run *r, hn_vkind kind, hn_dtype dtype, hn_cell *const *item, int n, hn_cell **ret,
                         hn_diag *dg);
hn_cell *hn_cell_ref(hn_cell *c);
void hn_cell_unref(hn_run *r, hn_cell *c);
hone_status hn_cell_from_tensor(hn_run *r, const hn_tensor *t, const char *what, hn_cell **ret, hn_diag *dg);
/** To storage form; as_f64: floats become f64. */
hone_status hn_cell_to_tensor(const hn_cell *c, bool as_f64, hn_tensor *ret, hn_diag *dg);
/** What storing in its dtype and loading again yields. */
void hn_cell_round(hn_cell *c, bool saturate);
hone_status hn_cell_scalar(hn_run *r, hn_dtype t, int64_t v, hn_cell **ret, hn_diag *dg);

/* ---- joining and cutting (join.c) ---- */
/** Along an axis; with new_axis the items get an axis of extent 1 there first. n >= 1. */
hone_status hn_cells_concat(hn_run *r, hn_cell *const *c, int n, int axis, bool new_axis, hn_cell **ret,
                            hn_diag *dg);
hone_status hn_cell_cut(hn_run *r, const hn_cell *c, int axis, int64_t from, int64_t len, bool drop_axis,
                        hn_cell **ret, hn_diag *dg);

/* ---- one node (apply.c) ---- */
/** By its reference; out[] gets references that the caller owns. */
hone_status hn_apply(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg);
/** d under the symbols bound so far; false when one is not, or the arithmetic fails. */
bool hn_run_dim(const hn_run *r, hn_dim d, int64_t *ret);
/** Bind the symbols that v defines from its cell. */
hone_status hn_run_bind(hn_run *r, const hn_value *v, const hn_cell *c, hn_diag *dg);

/* ---- control flow and lists (control.c, sequence.c) ---- */
hone_status hn_run_graph(hn_run *r, const hn_graph *g, hn_diag *dg);
/** The cell of a value that a node reads (borrowed); constants are widened on first use. */
hone_status hn_run_get(hn_run *r, const hn_value *v, hn_cell **ret, hn_diag *dg);
/** Store a value's cell (takes the reference), bind its symbols, check its promised extents, show it to the
 * tap. */
hone_status hn_run_set(hn_run *r, const hn_value *v, hn_cell *take_cell, hn_diag *dg);
hone_status hn_apply_if(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg);
hone_status hn_apply_loop(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg);
bool hn_is_list_op(hn_op op);
hone_status hn_apply_list_op(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg);

#endif
