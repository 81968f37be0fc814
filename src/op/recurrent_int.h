/* What the recurrent ops' inference, references and expansions share. */
#ifndef HN_OP_RECURRENT_INT_H
#define HN_OP_RECURRENT_INT_H

#include "op/expand_int.h"

enum { RNN_X, RNN_W, RNN_R, RNN_B, RNN_LENS, RNN_H0, RNN_C0, RNN_P };
enum { RNN_FORWARD, RNN_REVERSE, RNN_BIDIRECTIONAL };

typedef enum rnn_fn {
    RNN_RELU,
    RNN_TANH,
    RNN_SIGMOID,
    RNN_AFFINE,           /* alpha x + beta */
    RNN_LEAKY_RELU,       /* alpha */
    RNN_THRESHOLDED_RELU, /* alpha */
    RNN_SCALED_TANH,      /* alpha tanh(beta x) */
    RNN_HARD_SIGMOID,     /* max(0, min(1, alpha x + beta)) */
    RNN_ELU,              /* alpha */
    RNN_SOFTSIGN,
    RNN_SOFTPLUS,
} rnn_fn;

typedef struct rnn_act {
    rnn_fn fn;
    double alpha, beta;
} rnn_act;

/** Everything a recurrent op's attributes say, checked. */
typedef struct rnn_spec {
    hn_op op;
    int n_gate; /* 4, 3, 1 */
    int n_act;  /* a direction: 3, 2, 1 */
    int n_dir;
    bool reverse[2];
    rnn_act act[2][3];
    double clip; /* 0: none */
    bool input_forget;
    bool linear_before_reset;
} rnn_spec;

/** The raw attributes, from a call or from a node. */
typedef struct rnn_attrs {
    const char *acts;
    const double *alpha, *beta;
    int n_alpha, n_beta;
    int64_t direction, input_forget, linear_before_reset;
    double clip;
} rnn_attrs;

hone_status rnn_spec_of(hn_op op, const rnn_attrs *a, rnn_spec *ret, hn_diag *dg);
hone_status rnn_spec_of_call(const hn_call *c, rnn_spec *ret, hn_diag *dg);
hone_status rnn_spec_of_node(const hn_node *n, rnn_spec *ret, hn_diag *dg);

hone_status rnn_ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg);
hone_status rnn_expand(hn_builder *b, const hn_node *n, hn_value **out);

#endif
