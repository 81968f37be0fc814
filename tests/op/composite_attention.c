/* Attention, rotary embedding, recurrent layers. */
#include "composite_test.h"

#include <stdio.h>

TEST(attention_expands)
{
    EXPANDS("in q f32[2,2,3,4]  in k f32[2,2,5,4]  in v f32[2,2,5,6]  y = attention(q, k, v)  out y", "",
            E_HALF);
    EXPANDS("in q f32[2,6,3,4]  in k f32[2,2,5,4]  in v f32[2,2,5,6]  in m f32[3,5]  y = attention(q, k, v, "
            "m) {scale=0.3}  out y",
            "", E_HALF);
    EXPANDS("sym s  sym t  in q f32[2,4,s,4]  in k f32[2,2,t,4]  in v f32[2,2,t,3]  in m bool[2,4,s,t]\n"
            "y = attention(q, k, v, m) {causal=upper_left, softcap=2}  out y",
            "s=4 t=6", E_HALF);
    EXPANDS("sym s  sym t  in q f32[1,3,s,4]  in k f32[1,1,t,4]  in v f32[1,1,t,3]  in m bool[1,s,t]\n"
            "y = attention(q, k, v, m) {causal=lower_right}  out y",
            "s=3 t=7", 0);
    EXPANDS("in q f32[1,6,2,4]  in k f32[1,2,3,4]  in v f32[1,2,3,4]  in m f32[6,2,3]  y = attention(q, k, "
            "v, m)  out y",
            "", 0);
    EXPANDS("sym d  in q f32[1,2,3,d]  in k f32[1,2,3,d]  in v f32[1,2,3,2]  in m f32[1,2,1,3]  y = "
            "attention(q, k, v, m)  out y",
            "d=8", 0);
    EXPANDS("in q f32[1,2,3,4]  in k f32[1,2,0,4]  in v f32[1,2,0,2]  y = attention(q, k, v)  out y", "", 0);
    EXPANDS("in q f32[1,1,6,4]  in k f32[1,1,2,4]  in v f32[1,1,2,2]  y = attention(q, k, v) "
            "{causal=lower_right}  out y",
            "", 0);
}

TEST(attention_of_hidden_rows_is_zero)
{
    EXPECT("const q f32[1,1,2,1] = {1, 1}  const k f32[1,1,2,1] = {0, 0}  const v f32[1,1,2,1] = {3, 5}\n"
           "const m bool[2,2] = {0, 0, 1, 1}  y = attention(q, k, v, m)  out y",
           "const y f32[1,1,2,1] = {0, 4}");
    EXPECT("const q f32[1,1,1,1] = {1}  const k f32[1,1,2,1] = {0, 0}  const v f32[1,1,2,1] = {3, 5}\n"
           "const m f32[2] = {-inf, 0}  y = attention(q, k, v, m) {softcap=1}  out y",
           "const y f32[1,1,1,1] = {5}");
}

/* Rows: every key hidden, NaN and +inf among the scores, an ordinary one. Values that are not finite stay so at weight 0. */
TEST(attention_of_undefined_rows)
{
#define ROWS "const q f32[1,1,4,1] = {1, 1, 1, 1}  const k f32[1,1,2,1] = {0, 0}  const v f32[1,1,2,1] = {3, 5}\n" \
             "const m f32[4,2] = {-inf, -inf, nan, 0, inf, 0, 0, 0}  y = attention(q, k, v, m) "
    EXPECT(ROWS "{rows=zero}  out y", "const y f32[1,1,4,1] = {0, nan, nan, 4}");
    EXPECT(ROWS "{rows=nan}  out y", "const y f32[1,1,4,1] = {nan, nan, nan, 4}");
    EXPECT(ROWS "{rows=guard}  out y", "const y f32[1,1,4,1] = {0, 0, 0, 4}");
    EXPECT("const q f32[1,1,1,1] = {1}  const k f32[1,1,2,1] = {0, 0}  const v f32[1,1,2,1] = {3, inf}\n"
           "const m f32[2] = {nan, 0}  y = attention(q, k, v, m) {rows=guard}  out y",
           "const y f32[1,1,1,1] = {nan}");
    EXPECT("const q f32[1,1,2,1] = {1, 1}  const k f32[1,1,2,1] = {0, 0}  const v f32[1,1,2,1] = {3, 5}\n"
           "const m bool[2,2] = {0, 0, 1, 0}  y = attention(q, k, v, m) {hide=-1e9, rows=nan}  out y",
           "const y f32[1,1,2,1] = {4, 3}");
    EXPANDS("in q f32[2,2,3,4]  in k f32[2,2,5,4]  in v f32[2,2,5,6]  in m bool[3,5]\n"
            "y = attention(q, k, v, m) {rows=guard}  z = attention(q, k, v, m) {rows=nan, hide=-3}  out y  out z", "", E_HALF);
}

TEST(attention_refuses)
{
    REFUSES("in q f32[1,3,2,4]  in k f32[1,2,2,4]  in v f32[1,2,2,4]  y = attention(q, k, v)  out y",
            "heads");
    REFUSES("in q f32[1,2,2,4]  in k f32[1,2,2,5]  in v f32[1,2,2,4]  y = attention(q, k, v)  out y", "");
    REFUSES("in q f32[1,2,2,4]  in k f32[1,2,3,4]  in v f32[1,2,2,4]  y = attention(q, k, v)  out y", "");
    REFUSES("in q f32[1,2,2,4]  in k f32[1,2,2,4]  in v f32[1,2,2,4]  in m f32[3,2]  y = attention(q, k, v, "
            "m)  out y",
            "mask");
    REFUSES("in q f32[1,2,2,4]  in k f32[1,2,2,4]  in v f32[1,2,2,4]  in m i32[2,2]  y = attention(q, k, v, "
            "m)  out y",
            "");
    REFUSES("in q f32[2,2,4]  in k f32[2,2,4]  in v f32[2,2,4]  y = attention(q, k, v)  out y", "rank");
}

TEST(rotary_expands)
{
    EXPANDS("in x f32[2,3,4,6]  in c f32[2,4,3]  in s f32[2,4,3]  y = rotary(x, c, s)  out y", "", E_HALF);
    EXPANDS("sym n  in x f32[2,3,n,6]  in c f32[1,n,3]  in s f32[1,n,3]  y = rotary(x, c, s) {interleaved=1} "
            " out y",
            "n=5", E_HALF);
    EXPANDS("in x f32[2,3,4,6]  in c f32[1,4,2]  in s f32[2,4,2]  y = rotary(x, c, s) {rotary_dim=4}  out y",
            "", 0);
    EXPANDS("in x f32[2,3,4,6]  in c f32[1,4,2]  in s f32[1,4,2]  y = rotary(x, c, s) {rotary_dim=4, "
            "interleaved=1}  out y",
            "", 0);
    EXPECT("const x f32[1,1,1,4] = {1, 2, 3, 4}  const c f32[1,1,2] = {0, 1}  const s f32[1,1,2] = {1, 0}\n"
           "y = rotary(x, c, s)  z = rotary(x, c, s) {interleaved=1}  out y  out z",
           "const y f32[1,1,1,4] = {-3, 2, 1, 4}  const z f32[1,1,1,4] = {-2, 1, 3, 4}");
    REFUSES("in x f32[1,1,1,4]  in c f32[1,1,3]  in s f32[1,1,3]  y = rotary(x, c, s)  out y", "angles");
    REFUSES("in x f32[1,1,1,4]  in c f32[1,1,3]  in s f32[1,1,3]  y = rotary(x, c, s) {rotary_dim=6}  out y",
            "rotary_dim");
    REFUSES("in x f32[1,1,1,5]  in c f32[1,1,2]  in s f32[1,1,2]  y = rotary(x, c, s)  out y", "pair");
}

/* ---- recurrent ---- */

/* Steps that unroll, one step, symbolic (a loop), too many to unroll, none. */
static const struct {
    const char *steps, *spec;
} LENGTHS[] = {
    { "4", "l=0..4" }, { "1", "l=0..1" }, { "s", "s=5 l=0..5" }, { "34", "l=0..34" }, { "0", "l=0" }
};

TEST(lstm_expands)
{
    static const char *const attrs[] = {
        "",
        "{direction=reverse}",
        "{direction=reverse, clip=0.4, input_forget=1}",
        "{acts=\"HardSigmoid,Relu,ScaledTanh\", alpha=[0.3, 0.7], beta=[0.4, 1.5]}",
        "{acts=\"sigmoid, softsign, elu\", alpha=[0.5]}",
        "{acts=\"Affine,LeakyRelu,Softplus\", alpha=[0.5, 0.1], beta=[0.1]}",
    };
    char text[512];

    for (int i = 0; i < HN_COUNT(LENGTHS); i++)
        for (int a = 0; a < HN_COUNT(attrs); a++) {
            snprintf(
                text, sizeof(text),
                "sym s  in x f32[%s,2,3]  in w f32[1,16,3]  in r f32[1,16,4]  in b f32[1,32]  in l i32[2]\n"
                "in h f32[1,2,4]  in c f32[1,2,4]  in p f32[1,12]\n"
                "y, yh, yc = lstm(x, w, r, b, l, h, c, p) %s  out y  out yh  out yc",
                LENGTHS[i].steps, attrs[a]);
            EXPANDS(text, LENGTHS[i].spec, i == 0 && a == 0 ? E_HALF : 0);
        }
    EXPANDS("sym n  in x f32[3,n,2]  in w f32[2,12,2]  in r f32[2,12,3]  y, h = lstm(x, w, r) "
            "{direction=bidirectional}  out y  out h",
            "n=2", E_HALF);
    EXPANDS("sym s  in x f32[s,2,2]  in w f32[2,12,2]  in r f32[2,12,3]  in l i64[2]\n"
            "y, h, c = lstm(x, w, r, _, l) {direction=bidirectional, hidden=3, "
            "acts=\"Sigmoid,Tanh,Tanh,Sigmoid,Relu,Tanh\"}\n"
            "out y  out h  out c",
            "s=4 l=0..4", 0);
}

TEST(gru_expands)
{
    static const char *const attrs[] = {
        "",
        "{linear_before_reset=1}",
        "{direction=reverse, linear_before_reset=1, clip=0.5}",
        "{direction=reverse, acts=\"HardSigmoid,ThresholdedRelu\", alpha=[0.3, 0.1], beta=[0.4]}",
    };
    char text[512];

    for (int i = 0; i < HN_COUNT(LENGTHS); i++)
        for (int a = 0; a < HN_COUNT(attrs); a++) {
            snprintf(text, sizeof(text),
                     "sym s  in x f32[%s,2,3]  in w f32[1,12,3]  in r f32[1,12,4]  in b f32[1,24]  in l "
                     "i32[2]  in h f32[1,2,4]\n"
                     "y, yh = gru(x, w, r, b, l, h) %s  out y  out yh",
                     LENGTHS[i].steps, attrs[a]);
            EXPANDS(text, LENGTHS[i].spec, i == 0 && a == 0 ? E_HALF : 0);
        }
    EXPANDS("in x f32[3,2,2]  in w f32[2,9,2]  in r f32[2,9,3]  in b f32[2,18]  y, h = gru(x, w, r, b) "
            "{direction=bidirectional}  out y  out h",
            "", E_HALF);
    EXPANDS(
        "in x f32[3,2,2]  in w f32[1,9,2]  in r f32[1,9,3]  y = gru(x, w, r) {linear_before_reset=1}  out y",
        "", 0);
}

TEST(rnn_expands)
{
    char text[512];

    for (int i = 0; i < HN_COUNT(LENGTHS); i++) {
        snprintf(text, sizeof(text),
                 "sym s  in x f32[%s,2,3]  in w f32[2,4,3]  in r f32[2,4,4]  in b f32[2,8]  in l i32[2]  in "
                 "h f32[2,2,4]\n"
                 "y, yh = rnn(x, w, r, b, l, h) {direction=bidirectional, acts=\"Tanh,Relu\"}  out y  out yh",
                 LENGTHS[i].steps);
        EXPANDS(text, LENGTHS[i].spec, 0);
    }
    EXPANDS("in x f32[3,2,2]  in w f32[1,3,2]  in r f32[1,3,3]  y = rnn(x, w, r) {clip=0.25}  out y", "",
            E_HALF);
}

TEST(recurrent_by_hand)
{
    /* h = tanh(0.5 x + 0.5 h): tanh(0.5), then tanh(0.5 + 0.5 tanh(0.5)) */
    EXPECT_NEAR("const x f32[2,1,1] = {1, 1}  const w f32[1,1,1] = {0.5}  const r f32[1,1,1] = {0.5}  y, h = "
                "rnn(x, w, r)  out y  out h",
                "const y f32[2,1,1,1] = {0.46211716, 0.6237125}  const h f32[1,1,1] = {0.6237125}", 1e-5);
    /* all gates sigmoid(1), candidate tanh(1): c = 0.7311 * 0.7616, h = 0.7311 tanh(c) */
    EXPECT_NEAR(
        "const x f32[1,1,1] = {1}  const w f32[1,4,1] = {1, 1, 1, 1}  const r f32[1,4,1] = {1, 1, 1, 1}\n"
        "y, h, c = lstm(x, w, r)  out h  out c",
        "const h f32[1,1,1] = {0.3696} const c f32[1,1,1] = {0.55677}", 1e-4);
    /* z = sigmoid(0) = 1/2, candidate tanh(0) = 0, h = 1/2 h0 */
    EXPECT_NEAR("const x f32[1,1,1] = {0}  const w f32[1,3,1] = {1, 1, 1}  const r f32[1,3,1] = {0, 0, 0}  "
                "const h0 f32[1,1,1] = {3}\n"
                "y, h = gru(x, w, r, _, _, h0)  out h",
                "const h f32[1,1,1] = {1.5}", 1e-6);
}

/* One direction's activations and parameters serve both; a list for two is taken in order. */
TEST(recurrent_parameters_by_direction)
{
    static const char net[] = "const x f32[1,1,1] = {-1}  const w f32[2,1,1] = {1, 1}  const r f32[2,1,1] = "
                              "{0, 0}  y = rnn(x, w, r) ";
    char text[512];

    snprintf(text, sizeof(text), "%s{direction=bidirectional, acts=\"LeakyRelu\", alpha=[0.5, 0.25]}  out y",
             net);
    EXPECT(text, "const y f32[1,2,1,1] = {-0.5, -0.5}");
    snprintf(text, sizeof(text),
             "%s{direction=bidirectional, acts=\"LeakyRelu,LeakyRelu\", alpha=[0.5, 0.25]}  out y", net);
    EXPECT(text, "const y f32[1,2,1,1] = {-0.5, -0.25}");
    snprintf(text, sizeof(text),
             "%s{direction=bidirectional, acts=\"Relu,Affine\", alpha=[3], beta=[1]}  out y", net);
    EXPECT(text, "const y f32[1,2,1,1] = {0, -2}");
}

TEST(recurrent_refuse)
{
    REFUSES("in x f32[2,1,3]  in w f32[1,15,3]  in r f32[1,16,4]  y = lstm(x, w, r)  out y", "operand 1");
    REFUSES("in x f32[2,1,3]  in w f32[1,16,3]  in r f32[1,16,4]  y = lstm(x, w, r) "
            "{direction=bidirectional}  out y",
            "operand 1");
    REFUSES("in x f32[2,1,3]  in w f32[1,16,3]  in r f32[1,16,4]  y = lstm(x, w, r) "
            "{acts=\"Sigmoid,Tanh,Wobble\"}  out y",
            "Wobble");
    REFUSES(
        "in x f32[2,1,3]  in w f32[1,16,3]  in r f32[1,16,4]  y = lstm(x, w, r) {acts=\"Sigmoid\"}  out y",
        "1 activations where 3");
    REFUSES("in x f32[2,1,3]  in w f32[1,16,3]  in r f32[1,16,4]  y = lstm(x, w, r) {clip=-1}  out y",
            "clip");
    REFUSES("in x f32[2,1,3]  in w f32[1,16,3]  in r f32[1,16,4]  y = lstm(x, w, r) {hidden=5}  out y",
            "operand");
    REFUSES("in x f32[2,1,3]  in w f32[1,12,3]  in r f32[1,12,4]  in b f32[1,12]  y = gru(x, w, r, b)  out y",
            "operand 3");
    REFUSES("in x f32[2,1,3]  in w f32[1,4,3]  in r f32[1,4,4]  in l f32[1]  y = rnn(x, w, r, _, l)  out y",
            "");
    REFUSES("in x f32[2,3]  in w f32[1,4,3]  in r f32[1,4,4]  y = rnn(x, w, r)  out y", "rank");
}
