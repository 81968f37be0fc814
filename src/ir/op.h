/* What an op definition is. src/op fills the table; everyone else looks ops up here. */
#ifndef HN_IR_OP_H
#define HN_IR_OP_H

#include "ir/ir.h"

typedef enum hn_trait {
    HN_TRAIT_PURE = 1 << 0,        /* same operands, same results; may be merged, folded, dropped */
    HN_TRAIT_POINTWISE = 1 << 1,   /* out[i] depends on operands at i only, after broadcasting */
    HN_TRAIT_VIEW = 1 << 2,        /* moves elements, computes nothing */
    HN_TRAIT_COMMUTATIVE = 1 << 3,
    HN_TRAIT_COMPOSITE = 1 << 4,   /* has an expansion */
    HN_TRAIT_CONTROL = 1 << 5,     /* has bodies */
    HN_TRAIT_RANDOM = 1 << 6,
    HN_TRAIT_DYNAMIC = 1 << 7,     /* an output extent is known only while running */
    HN_TRAIT_INPLACE = 1 << 8,     /* output 0 may share storage with operand 0 */
    HN_TRAIT_REDUCE = 1 << 9,
    HN_TRAIT_HOST = 1 << 10,       /* a library of the host computes it: a step of its own, no kernel */
    HN_TRAIT_LISTS = 1 << 11,      /* operands may be sequences and optionals; everyone else gets tensors */
} hn_trait;

typedef struct hn_attr_schema {
    const char *name;
    hn_attr_kind kind;
    int64_t dflt_i;
    double dflt_f;
    const char *dflt_s;
    bool required;
    const char *values; /* INT with named values: "none|relu|..."; printed and parsed by name */
} hn_attr_schema;

enum { HN_MAX_ATTR = 24, HN_VARIADIC = 1 << 16 };

/** One use of an op as inference, references and work models see it. */
typedef struct hn_call {
    const hn_op_def *op;
    const hn_attr *attr;       /* op->n_attr of them, defaults filled in */
    int n_in, n_out;
    const hn_tdesc *in;        /* dtype HN_NONE: absent; the element of a sequence or optional */
    const hn_vkind *in_kind;   /* NULL: all tensors */
    hn_tdesc *out;             /* written by infer */
    hn_vkind *out_kind;        /* HN_TENSOR unless infer says otherwise */
    const hn_dim *const *content; /* known elements of integer operand i, or NULL */
    const int *n_content;
    const hn_data *const *data;   /* constant operand i, or NULL */
    hn_symtab *syms;
    hn_graph *const *body;     /* control flow */
    /**
     * Makes the symbol for element `elem` of output `out`'s int64 value (HN_TRAIT_DYNAMIC ops), or, with
     * elem = HN_DIM_OF_AXIS(k), for extent k of output `out` itself; set by the caller. The same pair, the same symbol.
     */
    hn_dim (*value_dim)(void *user, int out, int elem);
    void *user;
    /** Told what inference takes for granted of open extents: a is b, or (at_most) no greater. NULL: nobody asks. */
    void (*promise)(void *user, hn_dim a, hn_dim b, bool at_most);
    void *promise_user;
} hn_call;

/** A tensor in working form: floats as double, everything else as int64; row-major, static shape. */
typedef struct hn_view {
    hn_tdesc type;   /* dims all constant */
    union {
        double *f;   /* dtype is a float */
        int64_t *i;  /* otherwise */
    };
    int64_t numel;
} hn_view;

typedef struct hn_tol {
    double rel, abs; /* |got - want| <= abs + rel * |want|; each with its derivation in the op's file */
} hn_tol;

typedef struct hn_work {
    double flops; /* multiply and add count one each */
    double bytes; /* operands read once and results written once */
} hn_work;

struct hn_op_def {
    hn_op id;
    const char *name;   /* text form, same as in ops.def */
    const char *doc;    /* one line */
    int min_in, max_in; /* max_in HN_VARIADIC: any number */
    int min_out, max_out;
    uint32_t traits;
    hn_attr_schema attrs[HN_MAX_ATTR];
    int n_attr;
    /** Output types from operand types; rejects every malformed use with a reason. */
    hone_status (*infer)(hn_call *c, hn_diag *dg);
    /** Elements of small integer outputs as dims, where they follow from contents; may be NULL. ret[out] has room for 64. */
    bool (*content)(const hn_call *c, int out, hn_dim *ret, int *ret_n);
    /**
     * Independent, obvious, slow. in[i].numel is 0 with type.dtype HN_NONE for absent operands. Outputs are allocated
     * by the caller to their inferred static shape; a DYNAMIC op gets upper-bound storage and shrinks out[i].type.dim.
     * Computes in double / int64 without rounding to the dtype: the evaluator rounds.
     */
    hone_status (*ref)(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg);
    void (*work)(const hn_call *c, hn_work *ret); /* NULL: bytes only */
    /** Rewrite into simpler ops at the builder's cursor; fills out[0..n_out). Composites only. */
    hone_status (*expand)(hn_builder *b, const hn_node *n, hn_value **out);
    hn_tol tol[HN_NDTYPES]; /* per output dtype; zero rel and abs: exact */
};

/** By id (NULL when unknown) and by name. */
const hn_op_def *hn_op_get(hn_op id);
const hn_op_def *hn_op_find(const char *name, size_t n);
/** Index in the schema or -1. */
int hn_attr_index(const hn_op_def *op, const char *name);
/** The table, defined once by src/op (indexed by id). */
extern const hn_op_def *const hn_op_table[HN_OP_END];
/** How many bodies a node of the op has: if 2, loop 1, others 0. */
int hn_op_n_body(hn_op id);
/** Output types and contents for a node as it stands; used by builders and hn_reinfer. */
hone_status hn_infer_node(hn_node *n, hn_diag *dg);
/** The call view of a node (arrays in the arena). */
hone_status hn_call_of_node(const hn_node *n, hn_arena *a, hn_call *ret, hn_diag *dg);

/* attribute access on a call */
int64_t hn_call_i(const hn_call *c, const char *name);
double hn_call_f(const hn_call *c, const char *name);
const int64_t *hn_call_is(const hn_call *c, const char *name, int *ret_n);
const double *hn_call_fs(const hn_call *c, const char *name, int *ret_n);
const char *hn_call_s(const hn_call *c, const char *name);

#endif
