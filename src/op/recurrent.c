/*
 * Recurrent layers over time-major input, ONNX's layout 0:
 *
 *     lstm (x [s,b,i], w [d,4h,i], r [d,4h,h], b? [d,8h], lens? [b], h0? [d,b,h], c0? [d,b,h], p? [d,3h]) ->
 * y [s,d,b,h], yh [d,b,h], yc [d,b,h]       gates i o f c:   c' = f c + i g(..),  h' = o h(c') gru  (x, w
 * [d,3h,i], r [d,3h,h], b? [d,6h], lens?, h0?) -> y, yh gates z r h:   h' = (1 - z) g(..) + z h;
 * linear_before_reset: g(x W + r (h R + Rb) + Wb), else g(x W + (r h) R + ..) rnn  (x, w [d,h,i], r [d,h,h],
 * b? [d,2h], lens?, h0?) -> y, yh:   h' = f(x W + h R + Wb + Rb)
 *
 * Attributes: hidden (0: r's), direction forward | reverse | bidirectional (d = 2, forward first), acts
 * (comma list, any case; default Sigmoid,Tanh,Tanh / Sigmoid,Tanh / Tanh a direction; one direction's worth
 * serves both), alpha and beta (taken in order by the activations that have one, ONNX's defaults after), clip
 * (0: none; bounds what enters the gates' activations, not what enters h(c'), as the common runtimes read
 * it), lstm's input_forget (f = 1 - i), gru's linear_before_reset.
 *
 * lens: steps from a sequence's length on leave its state alone and give y = 0; reverse starts at its last
 * valid step.
 */
#include <strings.h>

#include "op/recurrent_int.h"

static const struct {
    const char *name;
    bool has_alpha, has_beta;
    double alpha, beta;
} FNS[] = {
    [RNN_RELU] = {"relu", false, false, 0, 0},
    [RNN_TANH] = {"tanh", false, false, 0, 0},
    [RNN_SIGMOID] = {"sigmoid", false, false, 0, 0},
    [RNN_AFFINE] = {"affine", true, true, 1, 0},
    [RNN_LEAKY_RELU] = {"leakyrelu", true, false, 0.01, 0},
    [RNN_THRESHOLDED_RELU] = {"thresholdedrelu", true, false, 1, 0},
    [RNN_SCALED_TANH] = {"scaledtanh", true, true, 1, 1},
    [RNN_HARD_SIGMOID] = {"hardsigmoid", true, true, 0.2, 0.5},
    [RNN_ELU] = {"elu", true, false, 1, 0},
    [RNN_SOFTSIGN] = {"softsign", false, false, 0, 0},
    [RNN_SOFTPLUS] = {"softplus", false, false, 0, 0},
};

static int fn_find(const char *s, size_t n)
{
    for (int i = 0; i < HN_COUNT(FNS); i++)
        if (strlen(FNS[i].name) == n && strncasecmp(FNS[i].name, s, n) == 0) return i;
    return -1;
}

/* The comma list into ret; at most six. */
static hone_status parse_acts(const char *s, int *ret, int *ret_n, hn_diag *dg)
{
    *ret_n = 0;
    for (;;) {
        s += strspn(s, " ");
        const size_t n = strcspn(s, ", ");
        const int fn = fn_find(s, n);
        if (n == 0 && *s == '\0') return HONE_OK;
        if (fn < 0) return HN_RAISE(dg, HONE_E_MODEL, "activation \"%.*s\" is not known", (int)n, s);
        if (*ret_n == 6) return HN_RAISE(dg, HONE_E_MODEL, "more than six activations");
        ret[(*ret_n)++] = fn;
        s += n;
        s += strspn(s, " ");
        if (*s == ',') s++;
    }
}

static void fill_acts(const rnn_attrs *a, const int *fn, int n, rnn_spec *ret)
{
    int next_alpha = 0, next_beta = 0;

    for (int i = 0; i < ret->n_dir * ret->n_act; i++) {
        const int f = fn[i % n];
        rnn_act *act = &ret->act[i / ret->n_act][i % ret->n_act];
        *act = (rnn_act){(rnn_fn)f, FNS[f].alpha, FNS[f].beta};
        if (i == n) next_alpha = next_beta = 0; /* one direction's list serves the second from its start */
        if (FNS[f].has_alpha && next_alpha < a->n_alpha) act->alpha = a->alpha[next_alpha++];
        if (FNS[f].has_beta && next_beta < a->n_beta) act->beta = a->beta[next_beta++];
    }
}

hone_status rnn_spec_of(hn_op op, const rnn_attrs *a, rnn_spec *ret, hn_diag *dg)
{
    int fn[6], n;

    *ret = (rnn_spec){.op = op};
    ret->n_gate = op == HN_OP_lstm ? 4 : op == HN_OP_gru ? 3 : 1;
    ret->n_act = op == HN_OP_lstm ? 3 : op == HN_OP_gru ? 2 : 1;
    ret->n_dir = a->direction == RNN_BIDIRECTIONAL ? 2 : 1;
    ret->reverse[0] = a->direction == RNN_REVERSE;
    ret->reverse[1] = true;
    ret->clip = a->clip;
    ret->input_forget = a->input_forget != 0;
    ret->linear_before_reset = a->linear_before_reset != 0;
    if (!(a->clip >= 0)) return HN_RAISE(dg, HONE_E_MODEL, "clip %g is negative", a->clip);
    HN_TRY(parse_acts(a->acts ? a->acts : "", fn, &n, dg));
    if (n == 0) {
        static const int dflt[3][3] = {
            {RNN_SIGMOID, RNN_TANH, RNN_TANH}, {RNN_SIGMOID, RNN_TANH}, {RNN_TANH}};
        memcpy(fn, dflt[op == HN_OP_lstm ? 0 : op == HN_OP_gru ? 1 : 2], sizeof dflt[0]);
        n = ret->n_act;
    }
    if (n != ret->n_act && n != ret->n_act * ret->n_dir)
        return HN_RAISE(dg, HONE_E_MODEL, "%d activations where %d are needed", n, ret->n_act * ret->n_dir);
    fill_acts(a, fn, n, ret);
    return HONE_OK;
}

hone_status rnn_spec_of_call(const hn_call *c, rnn_spec *ret, hn_diag *dg)
{
    rnn_attrs a = {
        .acts = hn_call_s(c, "acts"), .direction = hn_call_i(c, "direction"), .clip = hn_call_f(c, "clip")};

    a.alpha = hn_call_fs(c, "alpha", &a.n_alpha);
    a.beta = hn_call_fs(c, "beta", &a.n_beta);
    if (c->op->id == HN_OP_lstm) a.input_forget = hn_call_i(c, "input_forget");
    if (c->op->id == HN_OP_gru) a.linear_before_reset = hn_call_i(c, "linear_before_reset");
    return rnn_spec_of(c->op->id, &a, ret, dg);
}

hone_status rnn_spec_of_node(const hn_node *n, rnn_spec *ret, hn_diag *dg)
{
    rnn_attrs a = {
        .acts = hn_attr_s(n, "acts"), .direction = hn_attr_i(n, "direction"), .clip = hn_attr_f(n, "clip")};

    a.alpha = hn_attr_fs(n, "alpha", &a.n_alpha);
    a.beta = hn_attr_fs(n, "beta", &a.n_beta);
    if (n->op == HN_OP_lstm) a.input_forget = hn_attr_i(n, "input_forget");
    if (n->op == HN_OP_gru) a.linear_before_reset = hn_attr_i(n, "linear_before_reset");
    return rnn_spec_of(n->op, &a, ret, dg);
}

/* ---- inference ---- */

/* Operand i, when present, is of x's dtype (lens: integer) and has exactly these dims. */
static hone_status want_shape(const hn_call *c, int i, int rank, const hn_dim *dim, hn_diag *dg)
{
    if (!hn_op_has(c, i)) return HONE_OK;
    if (i == RNN_LENS)
        HN_TRY(hn_op_want_int(c, i, dg));
    else
        HN_TRY(hn_op_want_same(c, RNN_X, i, dg));
    HN_TRY(hn_op_want_rank(c, i, rank, dg));
    for (int a = 0; a < rank; a++) {
        hn_dim d;
        if (!hn_op_meet(c, c->in[i].dim[a], dim[a], &d))
            return HN_RAISE(dg, HONE_E_SHAPE, "axis %d of operand %d has extent %lld where %lld is needed", a,
                            i, (long long)c->in[i].dim[a], (long long)dim[a]);
    }
    return HONE_OK;
}

static hone_status infer(hn_call *c, hn_diag *dg)
{
    rnn_spec s;

    HN_TRY(rnn_spec_of_call(c, &s, dg));
    HN_TRY(hn_op_want_float(c, RNN_X, dg));
    HN_TRY(hn_op_want_rank(c, RNN_X, 3, dg));
    HN_TRY(hn_op_want_rank(c, RNN_R, 3, dg));
    const hn_dim *x = c->in[RNN_X].dim, hidden = hn_call_i(c, "hidden"),
                 h = hidden ? hidden : c->in[RNN_R].dim[2];
    if (hidden < 0)
        return HN_RAISE(dg, HONE_E_SHAPE, "hidden is %lld; it cannot be negative", (long long)hidden);
    HN_TRY(hn_op_want_extent(c, h, "hidden", dg));
    const hn_dim gates = hn_dim_mul(c->syms, h, s.n_gate), dirs = s.n_dir;
    HN_TRY(want_shape(c, RNN_W, 3, (hn_dim[]){dirs, gates, x[2]}, dg));
    HN_TRY(want_shape(c, RNN_R, 3, (hn_dim[]){dirs, gates, h}, dg));
    HN_TRY(want_shape(c, RNN_B, 2, (hn_dim[]){dirs, hn_dim_mul(c->syms, gates, 2)}, dg));
    HN_TRY(want_shape(c, RNN_LENS, 1, &x[1], dg));
    HN_TRY(want_shape(c, RNN_H0, 3, (hn_dim[]){dirs, x[1], h}, dg));
    HN_TRY(want_shape(c, RNN_C0, 3, (hn_dim[]){dirs, x[1], h}, dg));
    HN_TRY(want_shape(c, RNN_P, 2, (hn_dim[]){dirs, hn_dim_mul(c->syms, h, 3)}, dg));
    c->out[0] = (hn_tdesc){c->in[RNN_X].dtype, 4, {x[0], dirs, x[1], h}};
    for (int i = 1; i < c->n_out; i++)
        c->out[i] = (hn_tdesc){c->in[RNN_X].dtype, 3, {dirs, x[1], h}};
    return HONE_OK;
}

/* ---- reference ---- */

static double apply(const rnn_act *a, double x)
{
    switch (a->fn) {
    case RNN_RELU:
        return x < 0 ? 0 : x;
    case RNN_TANH:
        return tanh(x);
    case RNN_SIGMOID:
        return 1 / (1 + exp(-x));
    case RNN_AFFINE:
        return a->alpha * x + a->beta;
    case RNN_LEAKY_RELU:
        return x < 0 ? a->alpha * x : x;
    case RNN_THRESHOLDED_RELU:
        return x > a->alpha ? x : 0;
    case RNN_SCALED_TANH:
        return a->alpha * tanh(a->beta * x);
    case RNN_HARD_SIGMOID:
        return isnan(x) ? x : fmax(0, fmin(1, a->alpha * x + a->beta));
    case RNN_ELU:
        return x < 0 ? a->alpha * expm1(x) : x;
    case RNN_SOFTSIGN:
        return x / (1 + fabs(x));
    case RNN_SOFTPLUS:
        return isnan(x) ? x : fmax(x, 0) + log1p(exp(-fabs(x)));
    }
    return NAN;
}

/* One sequence in one direction: weights of the direction, state, scratch for the gates. */
typedef struct cell {
    const rnn_spec *s;
    const rnn_act *act;
    const double *w, *r, *bias, *peep;
    int64_t in, h;
    double *state, *mem; /* h each */
    double *gate;        /* n_gate * h */
    double *old;         /* h: the state while a step replaces it */
} cell;

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double bounded(const cell *c, double x)
{
    return c->s->clip != 0 && !isnan(x) ? fmax(-c->s->clip, fmin(c->s->clip, x)) : x;
}

static double gate(const cell *c, int fn, double x)
{
    return apply(&c->act[fn], bounded(c, x));
}

/* Row k of x W + Wb; of h R + Rb. */
static double from_x(const cell *c, const double *x, int64_t k)
{
    return dot(x, c->w + k * c->in, c->in) + (c->bias ? c->bias[k] : 0);
}
static double from_h(const cell *c, const double *h, int64_t k)
{
    return dot(h, c->r + k * c->h, c->h) + (c->bias ? c->bias[c->s->n_gate * c->h + k] : 0);
}

static void lstm_step(const cell *c, const double *x)
{
    const int64_t h = c->h;
    const double *p = c->peep;

    for (int64_t k = 0; k < 4 * h; k++)
        c->gate[k] = from_x(c, x, k) + from_h(c, c->state, k);
    for (int64_t j = 0; j < h; j++) {
        const double i = gate(c, 0, c->gate[j] + (p ? p[j] * c->mem[j] : 0));
        const double f =
            c->s->input_forget ? 1 - i : gate(c, 0, c->gate[2 * h + j] + (p ? p[2 * h + j] * c->mem[j] : 0));
        c->mem[j] = f * c->mem[j] + i * gate(c, 1, c->gate[3 * h + j]);
        const double o = gate(c, 0, c->gate[h + j] + (p ? p[h + j] * c->mem[j] : 0));
        c->state[j] = o * apply(&c->act[2], c->mem[j]);
    }
}

static void gru_step(const cell *c, const double *x)
{
    const int64_t h = c->h;
    double *z = c->gate, *r = c->gate + h, *reset = c->gate + 2 * h;

    memcpy(c->old, c->state, (size_t)h * sizeof(double));
    for (int64_t k = 0; k < 2 * h; k++)
        c->gate[k] = gate(c, 0, from_x(c, x, k) + from_h(c, c->old, k));
    for (int64_t j = 0; j < h; j++)
        reset[j] = r[j] * c->old[j];
    for (int64_t j = 0; j < h; j++) {
        const double back =
            c->s->linear_before_reset ? r[j] * from_h(c, c->old, 2 * h + j) : from_h(c, reset, 2 * h + j);
        const double g = gate(c, 1, from_x(c, x, 2 * h + j) + back);
        c->state[j] = (1 - z[j]) * g + z[j] * c->old[j];
    }
}

static void rnn_step(const cell *c, const double *x)
{
    memcpy(c->old, c->state, (size_t)c->h * sizeof(double));
    for (int64_t j = 0; j < c->h; j++)
        c->state[j] = gate(c, 0, from_x(c, x, j) + from_h(c, c->old, j));
}

static bool has(const hn_call *c, const hn_view *in, int i)
{
    return i < c->n_in && in[i].type.dtype != HN_NONE;
}

static int64_t length_of(const hn_call *c, const hn_view *in, int64_t batch, int64_t steps)
{
    return has(c, in, RNN_LENS) ? HN_MAX(0, HN_MIN(steps, in[RNN_LENS].i[batch])) : steps;
}

/* Sequence `n` of direction d: y is zero already. */
static void run_sequence(const hn_call *c, const hn_view *in, cell *k, int d, int64_t n, double *y)
{
    const int64_t steps = in[RNN_X].type.dim[0], batch = in[RNN_X].type.dim[1],
                  len = length_of(c, in, n, steps);
    const int64_t h = k->h, first = (d * batch + n) * h;

    for (int64_t j = 0; j < h; j++) {
        k->state[j] = has(c, in, RNN_H0) ? in[RNN_H0].f[first + j] : 0;
        k->mem[j] = has(c, in, RNN_C0) ? in[RNN_C0].f[first + j] : 0;
    }
    for (int64_t i = 0; i < len; i++) {
        const int64_t t = k->s->reverse[d] ? len - 1 - i : i;
        const double *x = in[RNN_X].f + (t * batch + n) * k->in;
        if (k->s->op == HN_OP_lstm)
            lstm_step(k, x);
        else if (k->s->op == HN_OP_gru)
            gru_step(k, x);
        else
            rnn_step(k, x);
        memcpy(y + ((t * k->s->n_dir + d) * batch + n) * h, k->state, (size_t)h * sizeof(double));
    }
}

hone_status rnn_ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t h = in[RNN_R].type.dim[2], batch = in[RNN_X].type.dim[1];
    double *scratch;
    rnn_spec s;

    HN_TRY(rnn_spec_of_call(c, &s, dg));
    HN_TRY(hn_op_scratch((3 + s.n_gate) * h + 1, sizeof(double), (void **)&scratch, dg));
    for (int64_t i = 0; i < out[0].numel; i++)
        out[0].f[i] = 0;
    for (int d = 0; d < s.n_dir; d++) {
        cell k = {.s = &s,
                  .act = s.act[d],
                  .in = in[RNN_X].type.dim[2],
                  .h = h,
                  .state = scratch,
                  .mem = scratch + h,
                  .old = scratch + 2 * h,
                  .gate = scratch + 3 * h};
        k.w = in[RNN_W].f + d * s.n_gate * h * k.in;
        k.r = in[RNN_R].f + d * s.n_gate * h * h;
        if (has(c, in, RNN_B)) k.bias = in[RNN_B].f + d * 2 * s.n_gate * h;
        if (has(c, in, RNN_P)) k.peep = in[RNN_P].f + d * 3 * h;
        for (int64_t n = 0; n < batch; n++) {
            run_sequence(c, in, &k, d, n, out[0].f);
            if (c->n_out > 1) memcpy(out[1].f + (d * batch + n) * h, k.state, (size_t)h * sizeof(double));
            if (c->n_out > 2) memcpy(out[2].f + (d * batch + n) * h, k.mem, (size_t)h * sizeof(double));
        }
    }
    free(scratch);
    return HONE_OK;
}

/* Two products a gate and step, and about 40 flops a state element for the activations. */
static void work(const hn_call *c, hn_work *ret)
{
    const double steps = hn_op_extent(c, c->in[RNN_X].dim[0]) * hn_op_extent(c, c->in[RNN_X].dim[1]);

    ret->flops = 2 * steps * (hn_op_count(c, &c->in[RNN_W]) + hn_op_count(c, &c->in[RNN_R])) +
                 40 * hn_op_count(c, &c->out[0]);
    ret->bytes = hn_op_bytes(c);
}

#define RECURRENT(name_, doc_, in_, out_, ...)                                                               \
    const hn_op_def hn_op_##name_ = {                                                                        \
        HN_OP_ID(name_, 3, in_, 1, out_),                                                                    \
        .doc = doc_,                                                                                         \
        .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,                                                        \
        HN_OP_ATTRS(HN_S_INT("hidden", 0), HN_S_ENUM("direction", 0, "forward|reverse|bidirectional"),       \
                    HN_S_STR("acts", ""), HN_S_FLOATS("alpha"), HN_S_FLOATS("beta"), HN_S_FLOAT("clip", 0),  \
                    __VA_ARGS__),                                                                            \
        .infer = infer,                                                                                      \
        .ref = rnn_ref,                                                                                      \
        .work = work,                                                                                        \
        .expand = rnn_expand,                                                                                \
        .tol = HN_OP_TOL_SUM(64, 512),                                                                       \
    }

/*
 * One step errs like a dot product (64 u, HN_OP_TOL_SUM) through activations of slope at most 1; the state
 * feeds back, with gates that keep the growth linear: 8 steps' worth.
 */
RECURRENT(lstm, "long short-term memory", 8, 3, HN_S_INT("input_forget", 0));
RECURRENT(gru, "gated recurrent unit", 6, 2, HN_S_INT("linear_before_reset", 0));
const hn_op_def hn_op_rnn = {
    HN_OP_ID(rnn, 3, 6, 1, 2),
    .doc = "simple recurrent layer",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_INT("hidden", 0), HN_S_ENUM("direction", 0, "forward|reverse|bidirectional"),
                HN_S_STR("acts", ""), HN_S_FLOATS("alpha"), HN_S_FLOATS("beta"), HN_S_FLOAT("clip", 0)),
    .infer = infer,
    .ref = rnn_ref,
    .work = work,
    .expand = rnn_expand,
    .tol = HN_OP_TOL_SUM(64, 512),
};
