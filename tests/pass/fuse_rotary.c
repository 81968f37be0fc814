/* Rotary embedding as exporters spell it out: halves turned, angles that both halves share. */
#include "pass/pass_test.h"

#define ORDER(p, q, y) \
    "h = slice(x) {start=[0,0,0,2], step=[1,1,1,1], dim=[2,3,5,2]}\ng = neg(h)\nl = slice(x) {start=[0,0,0,0], step=[1,1,1,1], dim=[2,3,5,2]}\n" \
    "j = concat(g, l) {axis=3}\n" p "\n" q "\n" y "\nout y"
#define TURN ORDER("p = mul(x, c)", "q = mul(j, s)", "y = add(p, q)")
#define BOTH "in x f32[2,3,5,4]\n"
#define TABLE "const c f32[1,4] = {1,0.5,1,0.5}\nconst s f32[1,4] = {0.25,0,0.25,0}\n"
#define WRITTEN "a = concat(f, f) {axis=-1}\nc = cos(a)\ns = sin(a)\n"

TEST(fuse_rotary_fires)
{
    static const char *const text[] = {
        BOTH "in f f32[5,2]\n" WRITTEN TURN,
        BOTH "in f f32[5,2]\n" WRITTEN ORDER("p = mul(c, x)", "q = mul(s, j)", "y = add(q, p)"),
        BOTH "in f f32[2,1,5,2]\n" WRITTEN TURN,
        BOTH "in f f32[1,5,2]\n" WRITTEN TURN,
        /* rows of a table, scaled and in another shape */
        BOTH "in i i64[2,5]\nin f f32[9,2]\nconst k f32[] = {1.5}\na = concat(f, f) {axis=1}\nr = gather(a, i) {axis=0}\n"
             "w = reshape(r) {dim=[2,1,5,4]}\nu = cos(w)\nc = mul(u, k)\ns = sin(w)\n" TURN,
    };
    for (int i = 0; i < HN_COUNT(text); i++) {
        hn_graph *g;
        hn_test_note("%s", text[i]);
        CHECK_EQ(hn_test_pass(t, "fuse_rotary", text[i], &g), 1);
        CHECK_EQ(hn_test_count_ops(g, HN_OP_rotary), 1);
        CHECK_EQ(hn_test_count_ops(g, HN_OP_neg), 0);
    }
    hn_graph *g; /* constants whose halves are the same, by their bits */
    CHECK_EQ(hn_test_pass(t, "fuse_rotary", "in x f32[2,3,1,4]\n" TABLE
                          "h = slice(x) {start=[0,0,0,2], step=[1,1,1,1], dim=[2,3,1,2]}\ng = neg(h)\n"
                          "l = slice(x) {start=[0,0,0,0], step=[1,1,1,1], dim=[2,3,1,2]}\nj = concat(g, l) {axis=3}\n"
                          "p = mul(x, c)\nq = mul(j, s)\ny = add(p, q)\nout y", &g), 1);
}

TEST(fuse_rotary_does_not_fire)
{
    static const char *const text[] = {
        BOTH "in c f32[5,4]\nin s f32[5,4]\n" TURN,                                            /* halves that may differ */
        BOTH "in f f32[5,2]\nin e f32[5,2]\na = concat(f, e) {axis=1}\nc = cos(a)\ns = sin(a)\n" TURN,
        BOTH "in f f32[3,1,2]\n" WRITTEN TURN,                                                 /* angles for each head */
        BOTH "in f f32[1,2]\n" WRITTEN TURN,                                                   /* ... for all rows */
        BOTH "in f f32[5,2]\n" WRITTEN TURN "\nout j",                                         /* another reader */
        BOTH "in z f32[2,3,5,4]\nin f f32[5,2]\n" WRITTEN ORDER("p = mul(z, c)", "q = mul(j, s)", "y = add(p, q)"),
        BOTH "in f f32[5,2]\n" WRITTEN ORDER("p = mul(x, c)", "q = mul(j, j)", "y = add(p, q)"),
        /* the other half turned, or turned the other way */
        BOTH "in f f32[5,2]\n" WRITTEN "h = slice(x) {start=[0,0,0,0], step=[1,1,1,1], dim=[2,3,5,2]}\ng = neg(h)\n"
             "l = slice(x) {start=[0,0,0,2], step=[1,1,1,1], dim=[2,3,5,2]}\nj = concat(g, l) {axis=3}\np = mul(x, c)\nq = mul(j, s)\n"
             "y = add(p, q)\nout y",
        BOTH "in f f32[5,2]\n" WRITTEN "h = slice(x) {start=[0,0,0,2], step=[1,1,1,1], dim=[2,3,5,2]}\ng = neg(h)\n"
             "l = slice(x) {start=[0,0,0,0], step=[1,1,1,1], dim=[2,3,5,2]}\nj = concat(l, g) {axis=3}\np = mul(x, c)\nq = mul(j, s)\n"
             "y = add(p, q)\nout y",
        BOTH "in f f32[5,2]\n" WRITTEN "h = slice(x) {start=[0,0,0,3], step=[1,1,1,-1], dim=[2,3,5,2]}\ng = neg(h)\n"
             "l = slice(x) {start=[0,0,0,0], step=[1,1,1,1], dim=[2,3,5,2]}\nj = concat(g, l) {axis=3}\np = mul(x, c)\nq = mul(j, s)\n"
             "y = add(p, q)\nout y",
    };
    hn_test_none_fires(t, "fuse_rotary", text, HN_COUNT(text));
    hn_graph *g; /* one bit apart */
    CHECK_EQ(hn_test_pass(t, "fuse_rotary", "in x f32[2,3,1,4]\nconst c f32[1,4] = {1,0.5,1,0.5}\nconst s f32[1,4] = {0.25,0,0.25,1e-45}\n"
                          "h = slice(x) {start=[0,0,0,2], step=[1,1,1,1], dim=[2,3,1,2]}\ng = neg(h)\n"
                          "l = slice(x) {start=[0,0,0,0], step=[1,1,1,1], dim=[2,3,1,2]}\nj = concat(g, l) {axis=3}\n"
                          "p = mul(x, c)\nq = mul(j, s)\ny = add(p, q)\nout y", &g), 0);
}
