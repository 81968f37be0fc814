/* The text form: round trips, what it can say, hostile texts. */
#include "ir/graphs.h"

#include <math.h>
#include <string.h>

static void round_trip(hn_test *t, const hn_graph *g)
{
    hn_graph *h = NULL;
    hn_diag dg = {0};
    const char *once = hn_test_text(t, g);
    CHECK_OK(hn_parse_like(t->arena, once, g, &h, &dg), &dg);
    CHECK_STR(hn_test_text(t, h), once);
    CHECK(hn_digest_eq(hn_graph_digest(g), hn_graph_digest(h)));
    hn_test_valid(h);
}

TEST(text_random_round_trips)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        hn_test_note("seed %d", (int)seed);
        hn_graph *g = hn_test_random_graph(t, seed, 3 + (int)seed);
        hn_test_valid(g);
        round_trip(t, g);
    }
}

TEST(text_style_example)
{
    hn_graph *g = hn_test_graph(t, "in x f32[1,2,4,4]  const w f32[3,2,1,1]  const s f32[1,3,1,1]\n"
                                   "c = conv(x, w)  y = mul(c, s)  out y\n");
    CHECK_EQ(g->n_node, 2);
    CHECK_EQ(g->consts.n, 2);
    CHECK_STR(g->last->out[0]->name, "y");
    CHECK_EQ(g->last->out[0]->type.dim[1], 3);
    round_trip(t, g);
}

TEST(text_constants)
{
    hn_graph *g = hn_test_graph(
        t, "const a f32[2] = {1, 2.5}  const b f16[3] = {-0, inf, 65504}  const c i4[3] = {-8, 7, 0}\n"
           "const d u64[1] = {18446744073709551615}  const e bool[2] = {0, 1}  const f f64 = {0.1}\n"
           "const z f32[0] = {}  const n f32[1] = {nan}\n"
           "out a out b out c out d out e out f out z out n");
    double f;
    int64_t i;
    CHECK(hn_const_i64(g->out[2].value, 0, &i));
    CHECK_EQ(i, -8);
    CHECK(hn_const_i64(g->out[3].value, 0, &i));
    CHECK_EQ(i, -1);
    CHECK(hn_const_scalar(g->out[5].value, &f));
    CHECK_NEAR(f, 0.1, 0);
    CHECK_EQ(((const uint16_t *)g->out[1].value->data->at)[0], 0x8000);
    round_trip(t, g);
}

TEST(text_bytes_follow_from_the_name)
{
    hn_graph *g =
        hn_test_graph(t, "const w f32[100]  const v f32[100]  const i i8[100]  out w  out v  out i");
    hn_graph *h = hn_test_graph(t, "const w f32[100]  out w");
    CHECK(memcmp(g->out[0].value->data->at, h->out[0].value->data->at, 400) == 0);
    CHECK(memcmp(g->out[0].value->data->at, g->out[1].value->data->at, 400) != 0);
    const float *w = g->out[0].value->data->at;
    for (int i = 0; i < 100; i++)
        CHECK(w[i] >= -1 && w[i] <= 1);
    CHECK(!strchr(hn_test_text(t, g), '='));
    round_trip(t, g);
}

TEST(text_large_constants_by_digest)
{
    hn_graph *g = hn_graph_new(t->arena, ""), *h = NULL;
    hn_diag dg = {0};
    float *at = hn_arena_alloc(t->arena, 5000, 4);
    for (int i = 0; i < 5000; i++)
        at[i] = (float)i;
    for (int n = 100; n <= 5000; n += 4900) /* 400 bytes: hex; 20000: digest */
        hn_graph_output(
            g,
            hn_graph_const(g, NULL, &(hn_tdesc){.dtype = HN_F32, .rank = 1, .dim = {n}}, at, 4 * (size_t)n),
            NULL);
    const char *text = hn_test_text(t, g);
    CHECK(strstr(text, "= 0x0000") && strstr(text, "= #"));
    CHECK(strlen(text) < 1500);
    round_trip(t, g);
    CHECK_ERR(hn_parse(t->arena, text, &h, &dg), HONE_E_FORMAT, &dg, "not at hand");
}

TEST(text_nan_payload_is_kept)
{
    static const uint32_t bits[2] = {0x7FC00001u, 0xFFC00000u};
    hn_graph *g = hn_graph_new(t->arena, "");
    hn_graph_output(g, hn_graph_const(g, "c", &(hn_tdesc){.dtype = HN_F32, .rank = 1, .dim = {2}}, bits, 8),
                    NULL);
    CHECK(strstr(hn_test_text(t, g), "0x0100c07f"));
    round_trip(t, g);
}

TEST(text_symbols_and_attributes)
{
    hn_graph *g = hn_test_graph(t, "sym n [1,4,64]\nsym \"odd name\"\n"
                                   "in x f32[n,\"odd name\",2*n+1]\n"
                                   "y = reshape(x) {dim=[n*\"odd name\",2*n+1]} ; a comment = { of any kind\n"
                                   "z, i = topk(y) {axis=1, dim=1}\nout z as \"the z\"\nout i\n");
    CHECK_EQ(hn_sym_get(g->syms, hn_sym_find(g->syms, "n"))->max, 64);
    CHECK_STR(g->out_name[0], "the z");
    CHECK_EQ(g->last->n_out, 2);
    round_trip(t, g);
}

TEST(text_layouts)
{
    hn_graph *g = hn_test_graph(t, "in x f32[1,16,8,8]@abcd16b  y f32[1,16,8,8]@acdb = reorder(x)  out y");
    CHECK_EQ(g->in[0]->layout.n, 5);
    CHECK_EQ(g->out[0].value->layout.at[3].axis, 1);
    round_trip(t, g);
}

TEST(text_value_symbols_come_back)
{
    hn_graph *g = hn_test_graph(
        t, "in x f32[3,5]  i, c = nonzero(x)  r = transpose(i) {perm=[1,0]}  y = gather_nd(x, r)  out y");
    const hn_dim d = g->out[0].value->type.dim[0];
    CHECK(d < 0);
    CHECK_EQ(hn_sym_get(g->syms, d)->kind, HN_SYM_VALUE);
    CHECK_EQ(hn_sym_get(g->syms, d)->max, 15);
    round_trip(t, g);
    CHECK(strstr(hn_test_text(t, g), "= c[0] [0,1,15]"));
}

TEST(text_symbols_may_follow_their_values)
{
    hn_graph *g = hn_test_graph(t, "in m i64[2]  sym k = m[1]  sym j = m#0\nin x f32[k,j]  out x");
    CHECK_EQ(g->value_dims.n, 2);
    hn_test_valid(g);
    round_trip(t, g);
}

TEST(text_bodies)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]  in c bool\n"
                                   "y = if(c) { a = relu(x)  out a } { out x }\n"
                                   "const n i64 = {3}\n"
                                   "z, s, trips = loop(n, _, y) { in i i64  in k bool  in v f32[4]\n"
                                   "  w = mul(v, x)  k2 = identity(k)  out k2  out w  out v }\n"
                                   "out z  out s");
    CHECK_EQ(g->last->n_body, 1);
    CHECK(g->last->body[0]->owner == g->last);
    CHECK(g->out[1].value->type.rank == 2);
    CHECK_EQ(g->in[0]->n_uses, 3); /* relu, then else's output, and the loop's mul */
    round_trip(t, g);
}

TEST(text_origins)
{
    hn_graph *g = hn_test_graph(t, "in x f32[4]  y = relu(x) from \"/a\", \"/b c\"  out y");
    CHECK_EQ(g->last->n_origin, 2);
    CHECK_STR(g->last->origin[1], "/b c");
    round_trip(t, g);
}

/* ---- mistakes ---- */

static void rejects(hn_test *t, const char *text, const char *part)
{
    hn_graph *g = NULL;
    hn_diag dg = {0};
    hn_test_note("%s", text);
    const hone_status st = hn_parse(t->arena, text, &g, &dg);
    char full[2048];
    if (st == HONE_OK) FAIL("parsed");
    CHECK(g == NULL);
    CHECK(dg.code == st);
    if (!strstr(hn_diag_format(&dg, full, sizeof full), part)) FAIL("\"%s\" lacks \"%s\"", full, part);
}

TEST(text_mistakes_have_a_place)
{
    rejects(t, "in x f32[4]\n  y = rleu(x)", "line 2, column 7: there is no op \"rleu\"");
    rejects(t, "in x f99[4]", "line 1, column 6: \"f99\" is no dtype");
    rejects(t, "in x f32[-4]", "cannot be negative");
    rejects(t, "in x f32[1,1,1,1,1,1,1,1,1,1,1]", "at most 10 axes");
    rejects(t, "in x f32[4", "\",\" is expected");
    rejects(t, "in x f32[4] in x f32[4]", "line 1, column 16: \"x\" is already there");
    rejects(t, "y = relu(x)", "there is no value \"x\"");
    rejects(t, "in x f32[4] y = relu(x) {k=1}", "has no attribute \"k\"");
    rejects(t, "in x f32[4] y = softmax(x) {axis=1.5}", "an integer is expected");
    rejects(t, "in x f32[4] y = softmax(x) {axis=0, axis=0}", "twice");
    rejects(t, "in x f32[4] y = softmax(x) {axis=99999999999999999999}", "an integer is expected");
    rejects(t, "in x f32[4] y = relu(x, x)", "operands");
    rejects(t, "in x f32[4] y f32[5] = relu(x)", "not what the text says");
    rejects(t, "in x f32[4] y, y = topk(x) {dim=1}", "twice");
    rejects(t, "const c f32[2] = {1}", "\",\" is expected");
    rejects(t, "const c f32[2] = {1,2,3}", "2 elements");
    rejects(t, "const c i8[1] = {300}", "does not fit");
    rejects(t, "const c f32[1] = 0x00", "bytes of two hex digits");
    rejects(t, "const c f32[1] = 0x0000000000", "bytes of two hex digits");
    rejects(t, "const c f32[1000000,1000000,1000000]", "too large");
    rejects(t, "sym n const c f32[n]", "known extents");
    rejects(t, "sym n sym n", "already there");
    rejects(t, "sym n [4,1,2]", "in this order");
    rejects(t, "sym n = c[0]", "which is not there");
    rejects(t, "in x f32[4] sym n = x[0]", "does not have");
    rejects(t, "sym n = x#1  in x f32[4]", "does not have");
    rejects(t, "in x f32[2,3]@ab4c", "no layout");
    rejects(t, "in x f32[2,3]@abc", "not there");
    rejects(t, "in \"a", "does not end");
    rejects(t, "in \"a\\q\" f32", "may follow a backslash");
    rejects(t, "in \"\" f32", "cannot be empty");
    rejects(t, "in _ f32", "needs quotes");
    rejects(t, "in c bool y = if(c) { out c", "ends inside a body");
    rejects(t, "in c bool y = if(c) { in x f32 out x } { out x }", "no value \"x\"");
    rejects(t, "in x f32 y = relu(x) from \"b\", \"a\"", "sorted");
    rejects(t, "out _", "cannot be absent");
    rejects(t, "\x01", "a name is expected");
}

TEST(text_deep_nesting_is_refused)
{
    enum { DEPTH = 5000 };
    char *text = hn_arena_alloc(t->arena, DEPTH * 16 + 64, 1);
    strcpy(text, "in c bool ");
    for (int i = 0; i < DEPTH; i++)
        strcat(text + 10 + (i ? (size_t)i * 10 - 10 : 0), "y = if(c){");
    rejects(t, text, "nested more than");
}

/* Any byte changed: a graph or a diagnosis, never a crash. */
TEST(text_mutations)
{
    hn_rng rng;
    hn_rng_init(&rng, 7);
    const char *text = hn_test_text(t, hn_test_random_graph(t, 5, 30));
    const size_t n = strlen(text);
    hn_arena *a = hn_arena_create();
    int n_ok = 0;
    for (int i = 0; i < 3000; i++) {
        char *bad = hn_arena_strdup(a, text);
        for (int k = (int)hn_rng_below(&rng, 4); k >= 0; k--)
            bad[hn_rng_below(&rng, (int64_t)n)] = " (){}[],=;\"@#abcx019-\n"[hn_rng_below(&rng, 22)];
        if (hn_rng_below(&rng, 8) == 0) bad[hn_rng_below(&rng, (int64_t)n)] = '\0';
        hn_graph *g = NULL;
        hn_diag dg = {0};
        if (hn_parse(a, bad, &g, &dg) == HONE_OK) {
            n_ok++;
            hn_test_valid(g);
        } else
            CHECK(dg.code != HONE_OK && dg.message[0]);
        hn_arena_reset(a);
    }
    hn_arena_destroy(a);
    CHECK(n_ok > 0 && n_ok < 3000);
}
