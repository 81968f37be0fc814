/* Graphs: SSA values, nodes, subgraphs for control flow. Sees ops only through the table declared in ir/op.h. */
#ifndef HN_IR_IR_H
#define HN_IR_IR_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/str.h"
#include "core/core.h"

typedef struct hn_graph hn_graph;
typedef struct hn_node hn_node;
typedef struct hn_value hn_value;
typedef struct hn_use hn_use;
typedef struct hn_op_def hn_op_def;

typedef enum hn_op {
    HN_OP_NONE = 0,
#define X(id, name) HN_OP_##name = id,
#include "ir/ops.def"
#undef X
    HN_OP_END, /* one past the largest id */
} hn_op;

/* ---- attributes: by schema index of the op ---- */
typedef enum hn_attr_kind {
    HN_ATTR_INT,   /* also bools and enums */
    HN_ATTR_FLOAT,
    HN_ATTR_INTS,
    HN_ATTR_FLOATS,
    HN_ATTR_DIM,   /* one hn_dim of the graph's symtab */
    HN_ATTR_DIMS,
    HN_ATTR_DTYPE, /* an hn_dtype in .i */
    HN_ATTR_STR,
} hn_attr_kind;

typedef struct hn_attr {
    bool set;  /* false: schema default */
    int n;     /* list length */
    union {
        int64_t i;         /* INT, DIM, DTYPE */
        double f;          /* FLOAT */
        const int64_t *is; /* INTS, DIMS */
        const double *fs;  /* FLOATS */
        const char *s;     /* STR */
    };
} hn_attr;

/** Which element of which int64 value (elem HN_DIM_OF_AXIS: which extent) defines a symbol that is bound while running. */
typedef struct hn_value_dim {
    hn_dim sym;
    hn_value *value;
    int elem;
    int next_of_value, next_of_sym; /* further entries of the same value and symbol: index + 1, rising; 0: no more */
} hn_value_dim;

/* ---- values ---- */
typedef enum hn_vkind { HN_TENSOR, HN_SEQUENCE, HN_OPTIONAL } hn_vkind;

/** Bytes of a constant, row-major, sub-byte types packed. Owned by an arena or a file map that outlives the graph. */
typedef struct hn_data {
    const void *at;
    size_t bytes;
    hn_digest digest; /* of bytes; {0,0} until hn_data_digest asked */
} hn_data;
hn_digest hn_data_digest(hn_data *d);

struct hn_value {
    uint32_t id;        /* unique in the root graph and its subgraphs; creation order */
    const char *name;   /* from the model where it has one, else generated; unique in the root and its subgraphs */
    bool auto_name;     /* generated: hn_replace may give it a better one */
    hn_vkind kind;
    hn_tdesc type;      /* the tensor, or the element of a sequence / optional */
    hn_layout layout;   /* n == 0: row-major */
    hn_graph *graph;    /* owner */
    hn_node *def;       /* producer; NULL for inputs, constants and body parameters */
    int def_index;
    hn_data *data;      /* constant bytes; NULL unless constant */
    const hn_dim *content; /* known elements of a small integer tensor (rank <= 1, <= 64 elements); NULL unknown */
    int n_content;
    hn_use *uses;       /* list of readers, subgraph readers included */
    int n_uses;         /* graph outputs count as uses */
    int dims;           /* first of the root's value_dims that this value defines + 1; 0: it defines none */
};

struct hn_use {
    hn_use *next, *prev;
    hn_value *value;
    hn_node *node;  /* reader; NULL: a graph output */
    hn_graph *graph; /* when node is NULL: whose output */
    int index;      /* operand or output index */
};

struct hn_node {
    uint32_t id;
    hn_op op;
    const char *name;
    hn_graph *graph;
    hn_node *prev, *next; /* in graph order, which is a topological order */
    int n_in, n_out, n_body;
    hn_use *in;        /* in[i].value is NULL for an absent optional operand */
    hn_value **out;
    hn_attr *attr;     /* one per schema entry */
    hn_graph **body;   /* if: then, else; loop: body */
    const char *const *origin; /* sorted import paths this node came from */
    int n_origin;
};

struct hn_graph {
    hn_arena *arena;
    hn_symtab *syms;   /* shared by subgraphs */
    hn_graph *parent;  /* enclosing graph of a subgraph */
    hn_node *owner;    /* the control-flow node it belongs to */
    hn_graph *root;
    const char *name;
    hn_node *first, *last;
    int n_node;
    hn_value **in;     /* inputs, or a body's parameters */
    hn_use *out;       /* outputs: out[i].value */
    int n_in, n_out, cap_in, cap_out;
    const char **out_name; /* names the model gave its outputs (a value may be two outputs, or an input) */
    HN_VEC(hn_value *) consts;
    uint32_t next_id;  /* root only */
    struct hn_names *names; /* root only: name to value */
    /** For each HN_SYM_VALUE symbol: which element of which int64 value defines it (HN_DIM_OF_AXIS: which extent). Root only. */
    HN_VEC(hn_value_dim) value_dims;
    HN_VEC(int) sym_dims; /* by symbol: its first entry there + 1. Root only. */
    /** While a text is read: definers of symbols whose values are still to come, by name. Root only. */
    HN_VEC(struct hn_pending_dim { hn_dim sym; const char *name; int elem; }) pending;
};

#define HN_FOR_NODES(n, g) for (hn_node *n = (g)->first, *n##_next = n ? n->next : NULL; n; n = n##_next, n##_next = n ? n->next : NULL)
#define HN_FOR_USES(u, v)  for (hn_use *u = (v)->uses, *u##_next = u ? u->next : NULL; u; u = u##_next, u##_next = u ? u->next : NULL)

/** The run-time symbol that stands for an extent in which the elements of a list may differ; nothing binds it. */
#define HN_SYM_ANY "_any"

/** What list_unpack makes, and the columns of a table of shapes: rank, extents. */
enum { HN_LIST_SEQUENCE, HN_LIST_OPTIONAL, HN_LIST_MAYBE_SEQUENCE };
enum { HN_LIST_COLUMNS = 1 + HN_MAX_RANK };

/* ---- graphs ---- */
/** An empty root graph in the arena; NULL when out of memory. */
hn_graph *hn_graph_new(hn_arena *a, const char *name);
/** An empty body of `owner` (attached with hn_node_set_body). */
hn_graph *hn_subgraph_new(hn_graph *parent, const char *name);
hn_value *hn_graph_input(hn_graph *g, const char *name, const hn_tdesc *type);
void hn_graph_output(hn_graph *g, hn_value *v, const char *name);
void hn_graph_set_output(hn_graph *g, int i, hn_value *v);
/** A constant; data must outlive the graph. Equal bytes are not merged here (CSE does that). */
hn_value *hn_graph_const(hn_graph *g, const char *name, const hn_tdesc *type, const void *bytes, size_t n);
/** `elem` of a value dim that means "extent `axis` of the value itself", whatever its dtype (outputs of control flow). */
#define HN_DIM_OF_AXIS(axis) (-1 - (axis))
/** A fresh symbol bound while running to element `elem` of int64 value v; the same pair gives the same symbol. */
hn_dim hn_graph_value_dim(hn_graph *g, hn_value *v, int elem);
/** The same where there is one already, else 0. */
hn_dim hn_value_dim_find(const hn_value *v, int elem);
/** Does a symbol's value come from this one? */
bool hn_value_defines(const hn_value *v);
/** What defines a symbol; NULL: nothing does (inputs' extents). */
const hn_value_dim *hn_sym_definer(const hn_graph *root, hn_dim sym);
/** Makes one more definer known. False when out of memory. */
bool hn_value_dim_add(hn_graph *root, hn_dim sym, hn_value *v, int elem);
/** Entry of root->value_dims by index + 1, NULL for 0. */
const hn_value_dim *hn_value_dim_at(const hn_graph *root, int i);
#define HN_FOR_DIMS_OF_VALUE(d, v)                                                                           \
    for (const hn_value_dim *d = hn_value_dim_at((v)->graph->root, (v)->dims); d;                            \
         d = hn_value_dim_at(d->value->graph->root, d->next_of_value))
#define HN_FOR_DIMS_OF_SYM(d, root, sym)                                                                     \
    for (const hn_value_dim *d = hn_sym_definer((root), (sym)); d; d = hn_value_dim_at((root), d->next_of_sym))
/** The value of that name in g, its subgraphs or its parents; NULL when there is none. */
hn_value *hn_graph_find(const hn_graph *g, const char *name);
/** Name a value; a name already taken gets a suffix. The text is copied. */
void hn_value_rename(hn_value *v, const char *name);
/** Still part of the graph: its producer and every enclosing node are linked. */
bool hn_value_is_live(const hn_value *v);
/** Call fn with every plain symbol that d mentions, until it yields false; true when it never did. */
bool hn_dim_each_sym(const hn_symtab *t, hn_dim d, bool (*fn)(void *user, hn_dim sym), void *user);
/** A value of outer is visible in inner: the same graph or one that encloses it. */
bool hn_graph_encloses(const hn_graph *outer, const hn_graph *inner);

/* ---- inspection ---- */
static inline hn_value *hn_in(const hn_node *n, int i)
{
    return i < n->n_in ? n->in[i].value : NULL;
}
static inline hn_value *hn_out(const hn_node *n, int i)
{
    return n->out[i];
}
static inline hn_node *hn_producer(const hn_value *v)
{
    return v ? v->def : NULL;
}
static inline bool hn_is_const(const hn_value *v)
{
    return v && v->data;
}
const hn_op_def *hn_op_of(const hn_node *n);
bool hn_is_op(const hn_value *v, hn_op op); /* v's producer is op */
bool hn_has_one_use(const hn_value *v);
/** Attribute by name (asserts that the schema has it); defaults applied. */
int64_t hn_attr_i(const hn_node *n, const char *name);
double hn_attr_f(const hn_node *n, const char *name);
const int64_t *hn_attr_is(const hn_node *n, const char *name, int *ret_n);
const double *hn_attr_fs(const hn_node *n, const char *name, int *ret_n);
const char *hn_attr_s(const hn_node *n, const char *name);
/** A constant's only (or first) element as double; false unless v is a constant with one element (or all equal). */
bool hn_const_scalar(const hn_value *v, double *ret);
/** Element i of an integer constant. */
bool hn_const_i64(const hn_value *v, int64_t i, int64_t *ret);

/* ---- building ---- */
typedef struct hn_builder {
    hn_graph *g;
    hn_node *before;           /* insert before this node; NULL: at the end */
    const char *const *origin; /* given to new nodes */
    int n_origin;
    hone_status status;        /* first failure; sticky: builders then return NULL and accept NULL */
    hn_diag *dg;
} hn_builder;

void hn_builder_init(hn_builder *b, hn_graph *g, hn_diag *dg); /* at the end of g, no origin */
void hn_at(hn_builder *b, hn_node *n); /* before n, in n's graph, with n's origins */

typedef struct hn_attr_set {
    const char *name;
    hn_attr_kind kind;
    hn_attr v;
} hn_attr_set;
#define HN_A_I(name_, x)       { .name = (name_), .kind = HN_ATTR_INT, .v = { .set = true, .i = (x) } }
#define HN_A_F(name_, x)       { .name = (name_), .kind = HN_ATTR_FLOAT, .v = { .set = true, .f = (x) } }
#define HN_A_IS(name_, n_, p)  { .name = (name_), .kind = HN_ATTR_INTS, .v = { .set = true, .n = (n_), .is = (p) } }
#define HN_A_FS(name_, n_, p)  { .name = (name_), .kind = HN_ATTR_FLOATS, .v = { .set = true, .n = (n_), .fs = (p) } }
#define HN_A_DIM(name_, d)     { .name = (name_), .kind = HN_ATTR_DIM, .v = { .set = true, .i = (d) } }
#define HN_A_DIMS(name_, n_, p){ .name = (name_), .kind = HN_ATTR_DIMS, .v = { .set = true, .n = (n_), .is = (p) } }
#define HN_A_T(name_, t)       { .name = (name_), .kind = HN_ATTR_DTYPE, .v = { .set = true, .i = (t) } }
#define HN_A_S(name_, str)     { .name = (name_), .kind = HN_ATTR_STR, .v = { .set = true, .s = (str) } }
/** Attribute list argument: HN_ATTRS_ARG(HN_A_I("axis", 1), HN_A_F("eps", 1e-5)); HN_NO_ATTRS for none. */
#define HN_ATTRS_ARG(...) (const hn_attr_set[]){ __VA_ARGS__, { .name = NULL } }
#define HN_NO_ATTRS       ((const hn_attr_set *)NULL)

/**
 * Make a node, infer its outputs, insert it. Lists and strings are copied. n_out 0 takes the op's usual count.
 * NULL (and b->status, b->dg) when an operand is NULL though required, inference refuses, or memory is out.
 */
hn_node *hn_build(hn_builder *b, hn_op op, int n_in, hn_value *const *in, const hn_attr_set *attrs, int n_out);
/**
 * As hn_build for control flow: bodies (made with hn_subgraph_new in the builder's graph) are taken on success and must
 * be complete, because inference reads their outputs. n_out 0: as many as the op derives from its bodies' outputs
 * (if: all; loop: all but the condition, and the hidden trip count).
 */
hn_node *hn_build_bodies(hn_builder *b, hn_op op, int n_in, hn_value *const *in, const hn_attr_set *attrs, int n_out,
                         int n_body, hn_graph *const *take_body);
/** As hn_build, yielding the first output. */
hn_value *hn_b1(hn_builder *b, hn_op op, hn_value *x, const hn_attr_set *attrs);
hn_value *hn_b2(hn_builder *b, hn_op op, hn_value *x, hn_value *y, const hn_attr_set *attrs);
hn_value *hn_b3(hn_builder *b, hn_op op, hn_value *x, hn_value *y, hn_value *z, const hn_attr_set *attrs);
/** A node with the attributes (and bodies) of n over other operands: hn_build's contract. */
hn_node *hn_build_like(hn_builder *b, const hn_node *n, int n_in, hn_value *const *in);
/** The same for a node without bodies, some of its attributes changed. */
hn_node *hn_build_changed(hn_builder *b, const hn_node *n, int n_in, hn_value *const *in, const hn_attr_set *change);
/** Scalar (rank 0) and vector constants in the dtype, values converted as Cast would. */
hn_value *hn_const_f(hn_builder *b, hn_dtype t, double v);
hn_value *hn_const_i(hn_builder *b, hn_dtype t, int64_t v);
hn_value *hn_const_is(hn_builder *b, int n, const int64_t *v); /* i64[n] */
hn_value *hn_const_fs(hn_builder *b, hn_dtype t, int rank, const int64_t *dim, const double *v);
/** An i64 vector of dims that may be symbolic: a constant when all known, else shape arithmetic nodes (`dims` op). */
hn_value *hn_const_dims(hn_builder *b, int n, const hn_dim *d);

/* common shorthands (dims may be symbolic) */
hn_value *hn_reshape(hn_builder *b, hn_value *x, int rank, const hn_dim *dim);
hn_value *hn_transpose(hn_builder *b, hn_value *x, const int64_t *perm);
hn_value *hn_broadcast_to(hn_builder *b, hn_value *x, int rank, const hn_dim *dim);
/** x with those of its extents that only a run shows (to be 1 or as wanted) made `whole`'s, which are aligned at the end. */
hn_value *hn_settle_to(hn_builder *b, hn_value *x, int rank, const hn_dim *whole);
hn_value *hn_cast(hn_builder *b, hn_value *x, hn_dtype t);
hn_value *hn_slice(hn_builder *b, hn_value *x, int axis, hn_dim start, hn_dim len);

/** Add the origins of n to those given to new nodes (rewrites take the union). */
void hn_builder_origin_of(hn_builder *b, const hn_node *n);

/* ---- changing ---- */
/**
 * All uses of v (graph outputs included) read w instead, but for operands of w's own producer. Symbols that v defines are
 * defined by w from now on, w's producer takes the union of origins, and a generated name of w gives way to v's.
 */
void hn_replace(hn_builder *b, hn_value *v, hn_value *w);
void hn_set_in(hn_node *n, int i, hn_value *v);
void hn_set_attr(hn_node *n, const char *name, hn_attr v);
/** Give a node made by hn_build its body i; types are inferred when the last one is set. */
hone_status hn_node_set_body(hn_node *n, int i, hn_graph *body);
/** Unlink a node whose outputs have no uses. */
void hn_unlink(hn_node *n);
/** Nodes of a graph and of all bodies in it. */
int hn_graph_count_nodes(const hn_graph *g);
/** Remove unused pure nodes (to a fixpoint); yields how many. */
int hn_sweep_dead(hn_graph *g);
/** Tell what inference takes for granted of a node's open extents: pairs that are equal, or (at_most) in order. */
hone_status hn_node_promises(hn_node *n, void (*promise)(void *user, hn_dim a, hn_dim b, bool at_most), void *user, hn_diag *dg);
/** Recompute the types and contents of every node, bodies first; raises where inference refuses. */
hone_status hn_reinfer(hn_graph *g, hn_diag *dg);

/**
 * Put sub[i] in the place of symbol i (as hn_sym_at counts) in every type, content and attribute, bodies included, and
 * infer again. Symbols that stay stand for themselves. Specialises a graph to known extents.
 */
hone_status hn_graph_subst(hn_graph *g, const hn_dim *sub, hn_diag *dg);

/* ---- whole graphs ---- */
/** Every failure of every invariant is added to list; true when clean. Cheap subset when !full. */
bool hn_validate(const hn_graph *g, bool full, hn_diags *list);
void hn_print(const hn_graph *g, hn_str *out);
/** Parse what hn_print writes (grammar in docs/ir.md). Errors: HONE_E_FORMAT with line and column, and what inference raises. */
hone_status hn_parse(hn_arena *a, const char *text, hn_graph **ret, hn_diag *dg);
/** As hn_parse; constants too large for the text are taken by name and digest from source (shared, not copied). */
hone_status hn_parse_like(hn_arena *a, const char *text, const hn_graph *source, hn_graph **ret, hn_diag *dg);
/** Deep copy into an arena (constants' bytes are shared). ret_map, when given, maps old value ids to new values. */
hn_graph *hn_clone(hn_arena *a, const hn_graph *g, hn_value ***ret_map);
/**
 * Cut `n_node` nodes out as a graph of their own: operands from outside become inputs (in first-use order), except
 * single-element constants, which are copied in; outputs are the listed values. ret_in gets the outside value of each input.
 */
hn_graph *hn_extract(hn_arena *a, hn_node *const *node, int n_node, hn_value *const *out, int n_out, hn_value ***ret_in);
/** Names and ids excluded: the same computation hashes the same. Constants by digest. Symbols by first appearance. */
hn_digest hn_graph_digest(const hn_graph *g);

#endif
