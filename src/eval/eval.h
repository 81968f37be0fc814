/* Evaluation of any graph by the references of its ops: slow, obvious, the judge of everything else. */
#ifndef HN_EVAL_EVAL_H
#define HN_EVAL_EVAL_H

#include "base/diag.h"
#include "core/core.h"
#include "ir/ir.h"
#include "ir/op.h"

/**
 * A value in storage form: row-major, sub-byte types packed. A sequence holds its items; an optional none or
 * one. Owns:  data and items when owned is set (heap; hn_tensor_done frees them).
 */
typedef struct hn_tensor hn_tensor;
struct hn_tensor {
    hn_vkind kind; /* 0: HN_TENSOR */
    hn_tdesc type; /* dims constant; of a sequence or optional only the dtype counts */
    void *data;    /* NULL for lists */
    size_t bytes;
    bool owned;
    hn_tensor *item; /* lists */
    int n_item;
};

/** Zeroed storage of a static type on the heap; HONE_E_NOMEM. */
hone_status hn_tensor_init(hn_tensor *t, const hn_tdesc *type, hn_diag *dg);
/** Free what it owns, items included, and zero it. */
void hn_tensor_done(hn_tensor *t);
int64_t hn_tensor_numel(const hn_tensor *t);
/** Elements as double (integers converted); t must be a tensor and dst have room for its elements. */
void hn_tensor_to_f64(const hn_tensor *t, double *dst);

typedef enum hn_eval_mode {
    HN_EVAL_F64, /* floats in double, rounded only where the model changes dtype (cast, quantize, ...);
                    integers wrap */
    HN_EVAL_OWN, /* every float result rounded to its dtype */
} hn_eval_mode;

typedef struct hn_eval_opts {
    hn_eval_mode mode;
    int64_t memory_limit_bytes; /* of live working buffers (8 bytes an element); 0: none. HONE_E_LIMIT names
                                   the value */
    /** Called after each node of the root graph; false cancels (HONE_E_CANCELLED). May be NULL. */
    bool (*progress)(void *user, int done, int total);
    /** Sees every tensor that a node yields, rounded as the mode says, bodies' included. May be NULL. */
    void (*tap)(void *user, const hn_value *v, const hn_view *x);
    void *user;
} hn_eval_opts;

/**
 * Evaluate g: in[0..n_in) as g->in, out[0..n_out) as g->out.
 *
 * Symbols are bound from the inputs' extents, HN_SYM_VALUE symbols as their values appear. Extents that
 * inference promised are checked against what came out.
 *
 * Owns:   out[i] are written on success only and owned by the caller (hn_tensor_done); HN_EVAL_F64 yields
 * floats as f64 Thread: one evaluation of a graph at a time: its symbol table and constants remember answers
 * Errors: HONE_E_INVALID/TYPE/SHAPE  an input does not fit its declaration, named
 *         HONE_E_LIMIT, HONE_E_CANCELLED, HONE_E_NOMEM, and what references raise, with the node as a frame
 */
hone_status hn_eval_run(const hn_graph *g, const hn_eval_opts *opts, const hn_tensor *in, hn_tensor *out,
                        hn_diag *dg);

/**
 * Evaluate one node whose operands are all constants or absent, in the model's dtypes: constant folding.
 *
 * Owns:   out[0..n_out) as in hn_eval_run
 * Errors: HONE_E_INVALID when an operand is not constant or the op has bodies
 */
hone_status hn_eval_node(const hn_node *n, hn_tensor *out, hn_diag *dg);

/* ---- how far two tensors are apart (src/eval/metric.c) ---- */
typedef struct hn_metric {
    int64_t n;           /* elements compared */
    double l0;           /* fraction with |got - want| > atol + rtol * |want| */
    double l1, l2, linf; /* of got - want: mean absolute, root mean square, greatest */
    double rel_l2;       /* ||got - want|| / ||want||; 0 when both are zero, inf when only want is */
    double cosine;       /* 1 when both are zero */
    double snr_db;       /* 20 log10(||want|| / ||got - want||); inf when equal */
    int64_t n_nonfinite; /* elements whose NaN or infinity does not match: a failure whatever the metric */
    int64_t worst; /* index of the greatest error (or the first mismatch of non-finites); -1 when equal */
    double worst_got, worst_want;
} hn_metric;

/** The one number that a bound limits; names are what options and stores say. */
typedef enum hn_norm { HN_NORM_REL_L2, HN_NORM_L0, HN_NORM_L1, HN_NORM_L2, HN_NORM_LINF, HN_NORM_COSINE, HN_NORM_SNR } hn_norm;
/** "rel_l2", "l0", "l1", "l2", "linf", "cosine", "snr"; false: none of them. */
bool hn_norm_find(const char *name, hn_norm *ret);
const char *hn_norm_name(hn_norm n);
double hn_norm_of(const hn_metric *m, hn_norm n);
/** Cosine and SNR must be at least their bound, the others at most. NaN keeps no bound. */
bool hn_norm_keeps(hn_norm n, double value, double bound);
bool hn_norm_is_least(hn_norm n);

/**
 * Compare got with want element by element. Where `own` (the own-dtype run; may be NULL) is given it says
 * where NaN and infinities belong: a float32 mask may overflow where double does not. Elements that are not
 * finite in the judge are checked to match and left out of the sums; any mismatch also makes l0 at least 1/n
 * and the other norms infinite.
 *
 * Errors: HONE_E_SHAPE, HONE_E_TYPE when kinds, shapes or item counts differ
 */
hone_status hn_metric_compare(const hn_tensor *got, const hn_tensor *want, const hn_tensor *own, double atol,
                              double rtol, hn_metric *ret, hn_diag *dg);

#endif
