/* LSTM, GRU, RNN; the batch-first layout is transposed away. */
#include "import/import_int.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"

static const char *comma_list(hn_im_call *c, const char **names, int n)
{
    HN_CLEANUP(hn_str_done) hn_str t = { 0 };
    for (int i = 0; i < n; i++)
        hn_str_addf(&t, "%s%s", i ? "," : "", names[i]);
    const char *s = hn_arena_strdup(c->m->scratch, hn_str_get(&t));
    return s ? s : "";
}

static hn_value *swap_front(hn_im_call *c, hn_value *v)
{
    int64_t perm[HN_MAX_RANK] = { 1, 0 };
    if (!v || v->type.rank < 2) return v;
    for (int i = 2; i < v->type.rank; i++)
        perm[i] = i;
    return hn_transpose(c->b, v, perm);
}

/* [s,d,b,h] -> [b,s,d,h] */
static hn_value *batch_first(hn_im_call *c, hn_value *v)
{
    return v ? hn_transpose(c->b, v, (int64_t[]){ 2, 0, 1, 3 }) : NULL;
}

/* Builds the op over operands in the op's own order; out as the call's. */
hone_status hn_im_recurrent_with(hn_im_call *c, hn_op op, int n_in, hn_value **in)
{
    int n_act, n_alpha, n_beta;
    const char **acts = hn_im_ss(c, "activations", &n_act);
    const double *alpha = hn_im_fs(c, "activation_alpha", &n_alpha),
                 *beta = hn_im_fs(c, "activation_beta", &n_beta);
    const int direction = hn_im_choice(c, "direction", "forward|reverse|bidirectional", 0);
    const int64_t hidden = hn_im_i(c, "hidden_size", 0);
    const double clip = hn_im_f(c, "clip", 0);
    const bool swap = hn_im_i(c, "layout", 0) != 0;
    hn_im_ignore(c, "output_sequence");
    const hn_attr_set extra =
        op == HN_OP_lstm ? (hn_attr_set)HN_A_I("input_forget", hn_im_i(c, "input_forget", 0) != 0)
        : op == HN_OP_gru
            ? (hn_attr_set)HN_A_I("linear_before_reset", hn_im_i(c, "linear_before_reset", 0) != 0)
            : (hn_attr_set){ .name = NULL };
    const hn_attr_set attrs[] = { HN_A_I("hidden", hidden),
                                  HN_A_I("direction", direction),
                                  HN_A_S("acts", n_act ? comma_list(c, acts, n_act) : ""),
                                  HN_A_FS("alpha", n_alpha, alpha),
                                  HN_A_FS("beta", n_beta, beta),
                                  HN_A_F("clip", clip),
                                  extra,
                                  { .name = NULL } };
    if (swap) {
        in[0] = swap_front(c, in[0]);
        for (int i = 5; i < n_in && i < 7; i++)
            in[i] = swap_front(c, in[i]);
    }
    hn_node *n = hn_build(c->b, op, n_in, in, attrs, op == HN_OP_lstm ? 3 : 2);
    for (int i = 0; n && i < c->n_out && i < n->n_out; i++)
        c->out[i] = !swap ? n->out[i] : i == 0 ? batch_first(c, n->out[0]) : swap_front(c, n->out[i]);
    return c->b->status;
}

hone_status hn_im_on_recurrent(hn_im_call *c)
{
    hn_value *in[8] = { NULL };
    for (int i = 0; i < c->n_in; i++)
        in[i] = c->in[i];
    return hn_im_recurrent_with(c, (hn_op)c->entry->arg, c->n_in, in);
}
