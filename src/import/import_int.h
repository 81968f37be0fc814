/* Inside the importer: one import, its scopes, one node's call, and what the handlers share. */
#ifndef HN_IMPORT_IMPORT_INT_H
#define HN_IMPORT_IMPORT_INT_H

#include "import/import.h"
#include "ir/op.h"
#include "onnx.pb-c.h"

/* Limits: far above any real model, far below what would hurt. */
enum {
    HN_IM_MAX_DEPTH = 100, /* nested messages on the wire */
    HN_IM_MAX_SCOPES = 64, /* nested bodies and function calls */
    HN_IM_MAX_OPERANDS = 1 << 16,
    HN_IM_FREE_INNER = 1 << 17, /* budget of bodies and functions, a node 1; one more for each byte of the file */
    HN_IM_NUMBERS_A_NODE = 128, /* so many are as dear as a node: about 1 KiB */
    HN_IM_KEEP_BYTES = 4096, /* raw data from this size on are used where protobuf put them */
};

/* ---- names to things ---- */
typedef struct hn_im_map {
    struct hn_im_slot {
        const char *key;
        void *item;
    } * at;
    int n, cap; /* cap a power of two */
} hn_im_map;
void *hn_im_map_get(const hn_im_map *m, const char *key);
/** False when the key is there already or memory is out. */
bool hn_im_map_put(hn_arena *a, hn_im_map *m, const char *key, void *item);

/** What a name stands for. */
typedef struct hn_im_name {
    hn_value *v;                     /* NULL until needed (initializers), or bad */
    const Onnx__TensorProto *tensor; /* an initializer not turned into a constant yet */
    const Onnx__SparseTensorProto *sparse;
    hn_graph *g; /* where the constant goes */
    bool bad;    /* its producer failed and has been reported */
    bool kept;   /* an initializer that is a graph input too and stays one */
} hn_im_name;

/** One call of a model-local function: where attribute references and opsets resolve. */
typedef struct hn_im_frame {
    const struct hn_im_frame *up;
    const Onnx__FunctionProto *fn; /* NULL: the model itself */
    Onnx__AttributeProto *const *attr;
    size_t n_attr;
    const hn_im_map *opsets; /* by domain: Onnx__OperatorSetIdProto */
} hn_im_frame;

/** A function of the model's own. */
typedef struct hn_im_function {
    const Onnx__FunctionProto *p;
    hn_im_map opsets;
} hn_im_function;

typedef struct hn_im_scope {
    struct hn_im_scope *up; /* enclosing names; NULL at a function's or the model's top */
    hn_graph *g;            /* where nodes go */
    hn_im_map names;
    const char *path; /* import path of the body's owner, "" at the top */
    const char *place; /* where the body stands in the file: the same each time that it is read */
    const hn_im_frame *frame;
    int depth;
} hn_im_scope;

typedef struct hn_im {
    hn_arena *arena;   /* the graph's */
    hn_arena *scratch; /* dies with the import */
    const hn_import_opts *opts;
    const Onnx__ModelProto *model;
    hn_graph *root;
    hn_diags *problems;
    hn_diag first;
    int n_problem;
    int64_t spent, budget; /* on bodies and functions, which calls within calls multiply (hn_im_spend) */
    bool stop;     /* out of memory or past a limit: nothing more is worth saying */
    bool read_bad; /* a name was read whose producer failed, since somebody last asked */
    int base_fd;   /* folder of the model, -1: no external data */
    hn_im_map opsets;       /* the model's, by domain */
    hn_im_map functions;    /* hn_im_function by domain, name and overload */
    hn_im_map loops;        /* by place: what a loop's body was found to change */
    hn_im_map of_two_ranks; /* by place: Ifs whose branches yield different ranks */
} hn_im;

/** What nodes ask for by name; false when out of memory. */
bool hn_im_index_opsets(hn_im *m, Onnx__OperatorSetIdProto *const *opset, size_t n, hn_im_map *ret);
bool hn_im_index_functions(hn_im *m);
/** Work or memory in bodies and functions, counted against the budget. Spending too much stops the import at the next node. */
void hn_im_spend(hn_im *m, const hn_im_scope *s, size_t n_nodes);
/** Count and keep a problem; clears dg. */
void hn_im_problem(hn_im *m, hn_diag *dg);

/* ---- one node ---- */
struct hn_im_entry;
typedef struct hn_im_call {
    hn_im *m;
    hn_im_scope *scope;
    const Onnx__NodeProto *p;
    const struct hn_im_entry *entry;
    int64_t opset; /* version of the domain's opset in force */
    hn_builder *b;
    hn_diag *dg; /* the builder's too */
    hn_value **in;
    int n_in;
    hn_value **out; /* to fill, one per output of the node */
    int n_out;
    const char *path;   /* import path */
    size_t index;       /* of the node in its graph in the file */
    uint64_t attr_seen; /* bit per attribute index below 64 */
    hn_diag attr_dg;    /* first bad attribute */
} hn_im_call;

/** Raise unless something was raised already: a handler may notice late that a builder before it failed. */
#define HN_IM_RAISE(c, code_, ...)                                                                           \
    ((c)->dg->code != HONE_OK ? (c)->dg->code : HN_RAISE((c)->dg, (code_), __VA_ARGS__))

typedef hone_status (*hn_im_fn)(hn_im_call *c);

/** Row of the op table: an ONNX op from a version on. */
typedef struct hn_im_entry {
    const char *name;
    int since;
    int min_in, max_in; /* max_in -1: any number */
    int max_out;        /* -1: any number */
    hn_im_fn fn;
    int arg; /* an hn_op, or the handler's own switch */
} hn_im_entry;

enum { HN_IM_ANY = -1 };

typedef struct hn_im_domain {
    const char *name; /* "" is ai.onnx */
    const hn_im_entry *row;
    int n;
} hn_im_domain;
extern const hn_im_domain hn_im_onnx, hn_im_ms, hn_im_ml, hn_im_preview, hn_im_training;

/** The row for an op, or NULL with *ret_why saying which of: no such domain, op, version. */
const hn_im_entry *hn_im_find(const char *domain, const char *op, int64_t version, const char **ret_why);

/* ---- attributes (absent: the default). A wrong type is kept in c->attr_dg and the default is given. ---- */
const Onnx__AttributeProto *hn_im_attr(hn_im_call *c, const char *name);
bool hn_im_has(hn_im_call *c, const char *name);
int64_t hn_im_i(hn_im_call *c, const char *name, int64_t dflt);
double hn_im_f(hn_im_call *c, const char *name, double dflt);
const char *hn_im_s(hn_im_call *c, const char *name, const char *dflt); /* in the scratch arena */
/** NULL and 0 when absent. */
const int64_t *hn_im_is(hn_im_call *c, const char *name, int *ret_n);
const double *hn_im_fs(hn_im_call *c, const char *name, int *ret_n);
const char **hn_im_ss(hn_im_call *c, const char *name, int *ret_n);
const Onnx__GraphProto *hn_im_graph(hn_im_call *c, const char *name);
/** An attribute that changes nothing here. */
void hn_im_ignore(hn_im_call *c, const char *name);
/** Index of the attribute's text among "a|b|c"; raises (attr_dg) with the choices when it is none of them. */
int hn_im_choice(hn_im_call *c, const char *name, const char *values, int dflt);
/** A dtype attribute by ONNX number; dflt when absent or 0. */
hn_dtype hn_im_dtype(hn_im_call *c, const char *name, hn_dtype dflt);

/* ---- tensors ---- */
hn_dtype hn_im_dtype_of(int32_t onnx);
const char *hn_im_onnx_type_name(int32_t onnx);
/** Type and bytes of a TensorProto; bytes in the arena (or kept where protobuf put them in it). */
hone_status hn_im_tensor(hn_im *m, const Onnx__TensorProto *t, hn_tdesc *ret_type, const void **ret_at,
                         size_t *ret_bytes, hn_diag *dg);
hone_status hn_im_sparse(hn_im *m, const Onnx__SparseTensorProto *t, hn_tdesc *ret_type, const void **ret_at,
                         size_t *ret_bytes, hn_diag *dg);
hone_status hn_im_external(hn_im *m, const Onnx__TensorProto *t, size_t want, const void **ret_at,
                           hn_diag *dg);
/** Parse checks that protobuf-c lacks: nesting, memory, cut-off; then unpack. The result lives in the arena.
 */
hone_status hn_im_unpack(hn_arena *keep, hn_arena *scratch, const ProtobufCMessageDescriptor *type,
                         const void *bytes, size_t n, ProtobufCMessage **ret, hn_diag *dg);

/* ---- graphs ---- */
/** Nodes of a graph into scope s, in an order that works. Problems are recorded, not returned. */
void hn_im_nodes(hn_im *m, hn_im_scope *s, Onnx__NodeProto *const *node, size_t n);
/** One node; index is its place in the file, which names it where it has no name. */
void hn_im_node(hn_im *m, hn_im_scope *s, const Onnx__NodeProto *p, size_t index);
/** Names that a scope's own graph gives: initializers. */
void hn_im_initializers(hn_im *m, hn_im_scope *s, const Onnx__GraphProto *p);
hn_im_scope *hn_im_scope_new(hn_im *m, hn_im_scope *up, hn_graph *g, const char *path);
/** The value of a name seen from s: NULL with *ret_bad set when its producer failed, else raises. */
hn_value *hn_im_lookup(hn_im *m, hn_im_scope *s, const char *name, bool *ret_bad, hn_diag *dg);
bool hn_im_define(hn_im *m, hn_im_scope *s, const char *name, hn_value *v, hn_diag *dg);
/** A body built into the graph of c, its parameters being in[]: outputs filled; false when problems were
 * recorded. */
bool hn_im_inline(hn_im_call *c, const Onnx__GraphProto *p, const char *label, int n_in, hn_value *const *in,
                  int n_out, hn_value **out);
/** A body with parameters yet to be built: types by param[]. */
typedef struct hn_im_body {
    hn_graph *g;
    hn_im_scope *scope;
    hn_builder b; /* at the end of g, for nodes around the model's own */
    uint32_t first_id;       /* of its values */
    HN_VEC(bool) is_output; /* by value id, from first_id on */
    hn_im_call c; /* as the owner's call, building into the body */
} hn_im_body;
hone_status hn_im_body_new(hn_im_call *c, const char *label, hn_im_body *ret);
/** The nodes of p with its inputs standing for in[0..n_in) (NULL: not given a name); out[] gets its outputs,
 * as many as p has. */
bool hn_im_body_run(hn_im_body *body, const Onnx__GraphProto *p, int n_in, hn_value *const *in,
                    hn_value **out);
/** What a body read, bodies within it included, counts it as a reader no more. */
void hn_im_body_drop(hn_graph *g);
/** A name for what belongs to the call's node, the same each time that the node is read: bodies are read again when an extent
 *  turns out to change. NULL when out of memory. */
const char *hn_im_place(const hn_im_call *c, const char *label);
/** Outputs of a body must be its own values: outer ones and doubles get an identity. */
void hn_im_body_output(hn_im_body *body, hn_value *v, const char *name);
/** The type a value-info declares. */
hone_status hn_im_type(hn_im *m, const Onnx__TypeProto *p, const char *name, hn_vkind *ret_kind,
                       hn_tdesc *ret, hn_diag *dg);

/** Replace what was built after mark (NULL: all of the graph) by constants where it is small and known. */
void hn_im_fold_since(hn_im_call *c, hn_node *mark);
/** v, just built and not read yet, or the constant that it is. */
hn_value *hn_im_folded(hn_value *v);

/* ---- handler helpers (helpers.c): what they build is folded at once where it is constant ---- */
static inline hn_value *hn_im_in(const hn_im_call *c, int i)
{
    return i < c->n_in ? c->in[i] : NULL;
}
/** Is output i asked for? */
bool hn_im_wants(const hn_im_call *c, int i);
/** Node with all operands of the call as they stand, one output per output of the call. */
hone_status hn_im_same(hn_im_call *c, hn_op op, const hn_attr_set *attrs);
/** Take v as output 0. */
hone_status hn_im_ret(hn_im_call *c, hn_value *v);
/** The same behind helpers that may have raised: v may be NULL then. */
hone_status hn_im_done(hn_im_call *c, hn_value *v);
/** "not supported: ..." with the reason. */
hone_status hn_im_refuse(hn_im_call *c, const char *fmt, ...) HN_PRINTF(2, 3);

hn_symtab *hn_im_syms(const hn_im_call *c);
/** Known integers of operand v (a constant or known content); false when not all are known. Scratch arena. */
bool hn_im_ints(hn_im_call *c, hn_value *v, const int64_t **ret, int *ret_n);
bool hn_im_int(hn_im_call *c, hn_value *v, int64_t *ret);
/** As hn_im_ints for floats (constants alone). */
bool hn_im_floats(hn_im_call *c, hn_value *v, const double **ret, int *ret_n);
/** Axes from attribute `name` or operand i; raises when not known at import. Resolved to 0..rank-1 and sorted
 * unless raw. */
hone_status hn_im_axes(hn_im_call *c, const char *name, int operand, int rank, bool sorted, int64_t *ret,
                       int *ret_n, bool *ret_given);
hone_status hn_im_axis(hn_im_call *c, int64_t axis, int rank, int *ret);
/** Elements of an integer vector (rank <= 1) as dims: known content, else symbols bound while running. */
hone_status hn_im_dims(hn_im_call *c, hn_value *v, hn_dim *ret, int cap, int *ret_n);
/** Element i of an integer vector as a dim. */
hn_dim hn_im_dim(hn_im_call *c, hn_value *v, int i);
/** Is the dim known to be >= 0 / < 0 whatever the symbols? */
bool hn_im_dim_nonneg(hn_im_call *c, hn_dim d);
bool hn_im_dim_neg(hn_im_call *c, hn_dim d);

/** Does the dim follow from the inputs' extents alone? */
bool hn_im_dim_of_inputs(hn_im_call *c, hn_dim d);

/** Element i of an integer tensor as a dim where it follows from constants and contents. */
bool hn_im_known_dim(hn_im_call *c, hn_value *v, int i, hn_dim *ret);
/** Length of an integer operand of rank <= 1; raises when it is not one or has more than cap entries. */
hone_status hn_im_vector_len(hn_im_call *c, hn_value *v, const char *what, int cap, int *ret);
hn_value *hn_im_i64(hn_im_call *c, hn_value *v);

/* building on dims: all keep working on constants */
hn_dim hn_im_dconst(hn_im_call *c, int64_t v);
hn_dim hn_im_dadd(hn_im_call *c, hn_dim a, hn_dim b);
hn_dim hn_im_dsub(hn_im_call *c, hn_dim a, hn_dim b);
hn_dim hn_im_dmul(hn_im_call *c, hn_dim a, hn_dim b);
hn_dim hn_im_ddiv(hn_im_call *c, hn_dim a, hn_dim b); /* floor */

hn_value *hn_im_unary(hn_im_call *c, hn_op op, hn_value *x);
hn_value *hn_im_binary(hn_im_call *c, hn_op op, hn_value *x, hn_value *y);
hn_value *hn_im_reduce(hn_im_call *c, hn_op op, hn_value *x, int n, const int64_t *axes, bool keepdims);
hn_value *hn_im_unsqueeze(hn_im_call *c, hn_value *x, int axis); /* one new axis of extent 1 */
hn_value *hn_im_squeeze(hn_im_call *c, hn_value *x, int axis);
hn_value *hn_im_concat(hn_im_call *c, int axis, int n, hn_value *const *v);
hn_value *hn_im_matmul(hn_im_call *c, hn_value *a, hn_value *b, bool trans_a, bool trans_b);
hn_value *hn_im_gather(hn_im_call *c, hn_value *x, hn_value *index, int axis);
hn_value *hn_im_iota(hn_im_call *c, hn_dtype t, int rank, const hn_dim *dim, int axis);
hn_value *hn_im_select(hn_im_call *c, hn_value *cond, hn_value *a, hn_value *b);
/** One axis of x from start in steps (negative ones too), len elements. */
hn_value *hn_im_slice(hn_im_call *c, hn_value *x, int axis, hn_dim start, int64_t step, hn_dim len);
hn_value *hn_im_flip(hn_im_call *c, hn_value *x, int axis);
/** x * k in x's dtype; x itself when k is 1. */
hn_value *hn_im_scale(hn_im_call *c, hn_value *x, double k);
/** Scalar constant in x's dtype. */
hn_value *hn_im_like_f(hn_im_call *c, hn_value *x, double v);
hn_value *hn_im_const_bool(hn_im_call *c, bool v);
/** Extents of x as an i64 vector. */
hn_value *hn_im_shape(hn_im_call *c, hn_value *x);
/** Scalar v spread over a shape. */
hn_value *hn_im_fill(hn_im_call *c, hn_value *scalar, int rank, const hn_dim *dim);
/** Reshape v of rank <= 1 so that it lies along `axis` of a tensor of the rank. */
hn_value *hn_im_along(hn_im_call *c, hn_value *v, int rank, int axis);
/** A reshape written as ONNX writes it: 0 copies, one -1 is the rest. */
hn_value *hn_im_reshape_onnx(hn_im_call *c, hn_value *x, hn_value *shape, bool allow_zero);

/** An empty sequence of tensors of the dtype. */
hn_value *hn_im_empty_sequence(hn_im_call *c, hn_dtype t);

/* ---- handlers that other handlers use ---- */
/** Matmul by NumPy's rule for vectors. */
hn_value *hn_im_matmul_numpy(hn_im_call *c, hn_value *a, hn_value *b);
hn_value *hn_im_matmul_int(hn_im_call *c, hn_value *a, hn_value *b, hn_value *a_zero, hn_value *b_zero);
/** Convolution (op conv or conv_int) and pool of these operands with the call's window attributes; in[1] may be replaced. */
hn_value *hn_im_conv_with(hn_im_call *c, hn_op op, int n_in, hn_value **in);
hn_value *hn_im_pool_with(hn_im_call *c, hn_op op, hn_value *x, int n_out, hn_value **ret_index);

/** An image's channels moved from the last axis to axis 1, and back. */
hn_value *hn_im_channels_first(hn_im_call *c, hn_value *x);
hn_value *hn_im_channels_last(hn_im_call *c, hn_value *x);
hone_status hn_im_recurrent_with(hn_im_call *c, hn_op op, int n_in, hn_value **in);
/** to is the zero point's dtype where there is one. */
hn_value *hn_im_quantize_with(hn_im_call *c, hn_value *x, hn_value *scale, hn_value *zero, int64_t axis,
                              hn_dtype to);
hn_value *hn_im_dequantize_with(hn_im_call *c, hn_value *x, hn_value *scale, hn_value *zero, int64_t axis,
                                int64_t block);
/** An int32 product times its operands' scales (one number, one a row of a, one a column of b). */
hn_value *hn_im_scale_acc(hn_im_call *c, hn_value *acc, hn_value *sa, hn_value *sb);
/** As f32 where it is narrower. */
hn_value *hn_im_wide(hn_im_call *c, hn_value *x);
/** Three parts that lie behind one another along an axis. */
void hn_im_split3(hn_im_call *c, hn_value *x, int axis, const hn_dim len[3], hn_value *ret[3]);
/** How long query, key and value are of an axis that holds them: as "qkv_hidden_sizes" says, else a third each. */
hone_status hn_im_qkv_lengths(hn_im_call *c, hn_dim whole, hn_dim ret[3]);
/** [b,s,h*d] to [b,h,s,d] and back. */
hn_value *hn_im_split_heads(hn_im_call *c, hn_value *x, int64_t heads);
hn_value *hn_im_merge_heads(hn_im_call *c, hn_value *x);
typedef struct hn_im_attend {
    hn_value *q, *k, *v, *mask, *sink; /* sink: a score [h] beside the keys', spelled out alone */
    double scale, softcap;             /* scale 0: 1 / sqrt(d) */
    int causal;                        /* as the attention op's attribute */
} hn_im_attend;
hn_value *hn_im_attend_op(hn_im_call *c, const hn_im_attend *a);
/** Spelled out, for models that ask for the scores as well (ret may be NULL): 0 scaled, 1 capped, 2 masked, 3 probabilities. */
hn_value *hn_im_attend_open(hn_im_call *c, const hn_im_attend *a, int want, hn_value **ret_scores);
/** causal as the attention op's attribute; scale 0: 1 / sqrt(d). */
hn_value *hn_im_attention_with(hn_im_call *c, hn_value *q, hn_value *k, hn_value *v, hn_value *mask,
                               double scale, int causal);

/** Rows of a rotary table [n,r] for positions: [1] is where the first token stands, [b,s] one each. */
hn_value *hn_im_rotary_rows(hn_im_call *c, hn_value *table, hn_value *at, hn_dim tokens);
hn_value *hn_im_rotate(hn_im_call *c, hn_value *x, hn_value *cos, hn_value *sin, int64_t interleaved);

/** What the steps before left for one that decodes. */
typedef struct hn_im_past {
    hn_value *of[2];       /* keys and values [b,h,room,d], or NULL */
    hn_value *length;      /* how much of them is filled, one number; NULL: all */
    hn_value *indirection; /* [batch,beams,room]: which beam each token came from, or NULL */
} hn_im_past;
/** Keys and values x[1], x[2] [b,h,s,d] behind the past ones; ret_present: the caches that the step leaves. */
hone_status hn_im_extend_cache(hn_im_call *c, const hn_im_past *past, hn_value *x[3], hn_value *ret_present[2]);
/** A bool mask as what is added to scores, beside a bias of the model's own; either may be NULL. */
hn_value *hn_im_mask_and_bias(hn_im_call *c, hn_value *seen, hn_value *bias);

/** Output 1 of embeddings: how many tokens [b] a mask [b, s] keeps; 0 without one. */
hn_value *hn_im_kept_tokens(hn_im_call *c, hn_value *mask, const hn_value *ids);

/* ---- handlers: one prototype for each row's function ---- */
#define X(op, since, min_in, max_in, max_out, fn, arg) hone_status hn_im_on_##fn(hn_im_call *c);
#include "import/ml_ops.def"
#include "import/ms_ops.def"
#include "import/onnx_ops.def"
#include "import/preview_ops.def"
#include "import/training_ops.def"
#undef X

#endif
