/* Extents for inputs that leave them open. */
#include "build/build.h"
#include "harness.h"

static void extents_of(hn_test *t, const char *text, int64_t *value)
{
    hn_graph *g;
    hn_diag dg = { 0 };
    if (hn_parse(t->arena, text, &g, &dg) != HONE_OK) FAIL("%s", dg.message);
    CHECK_EQ(hn_input_extents(g, /* given= */ NULL, value, &dg), HONE_OK);
}

TEST(places_say_what_is_usual)
{
    int64_t v[4];
    extents_of(t, "in x f32[b,3,h,w]  in y f32[b,n]\na = relu(x)  c = relu(y)\nout a  out c", v);
    CHECK_EQ(v[0], 1);
    CHECK_EQ(v[1], 224);
    CHECK_EQ(v[2], 224);
    CHECK_EQ(v[3], 64);
}

TEST(profiles_come_first)
{
    int64_t v[2];
    extents_of(t, "sym n [1,16,64]\nin x f32[n,m]\na = relu(x)\nout a", v);
    CHECK_EQ(v[0], 16);
}

/* A window of 500 does not fit into the 64 places that are usual. */
TEST(sizes_raise_what_is_usual)
{
    int64_t v[2];
    extents_of(t, "in x f32[b,1,n]\ns = max_pool(x) {kernel=[500], stride=[1], dim=[n-499]}  a = relu(s)\nout a", v);
    CHECK_EQ(v[0], 1);
    CHECK(v[1] >= 500);
}

/* The state's middle axis is the batch under another name. */
TEST(operands_that_must_agree)
{
    int64_t v[3];
    extents_of(t, "in x f32[b,n]  in s f32[4,c]\n"
                  "u = transpose(s) {perm=[1,0]}  a = concat(x, u) {axis=1}\nout a", v);
    CHECK_EQ(v[0], v[2]);
}

/* What is given stands, whatever a profile or a place says, and the others are chosen around it. */
TEST(given_extents_stand)
{
    hn_graph *g;
    hn_diag dg = { 0 };
    const int64_t given[] = { 24, 7, -1, 7, -1 };
    int64_t v[5];
    CHECK_EQ(hn_parse(t->arena,
                      "sym m [1,16,64]\nin w f32[m]  in x f32[b,n]  in s f32[4,c]  in i f32[b,3,h,h]\n"
                      "u = transpose(s) {perm=[1,0]}  a = concat(x, u) {axis=1}  r = relu(i)  q = relu(w)\nout a  out r  out q",
                      &g, &dg), HONE_OK);
    CHECK_EQ(hn_input_extents(g, given, v, &dg), HONE_OK); /* m, b, n, c, h */
    CHECK(v[0] == 24 && v[1] == 7 && v[2] == 64 && v[3] == 7 && v[4] == 224);
}
