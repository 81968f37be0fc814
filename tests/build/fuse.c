/* Spelled-out ops through the whole build: engines with and without fusing are different ones and compute the same. */
#include "harness.h"
#include "run_graph.h"

#include <stdlib.h>

static hn_digest payload(const char *text, const char *route)
{
    hn_diag dg = { 0 };
    hn_arena *a = hn_arena_create();
    hn_graph *g;
    hn_target t;
    hn_route r;
    hn_build_report report;
    void *data;
    size_t bytes;
    CHECK_OK(hn_parse(a, text, &g, &dg), &dg);
    hn_target_detect(&t, true);
    CHECK_OK(hn_route_parse(a, route, &r, &dg), &dg);
    const hn_build_opts o = { .target = &t, .route = &r, .threads = 1, .frozen = true, .model_name = "test" };
    CHECK_OK(hn_build_engine(a, g, &o, &data, &bytes, &report, &dg), &dg);
    const hn_digest d = report.payload;
    free(data);
    hn_arena_destroy(a);
    return d;
}

static void knob_is_real(const char *text, const char *off)
{
    CHECK(!hn_digest_eq(payload(text, ""), payload(text, off)));
    CHECK(hn_digest_eq(payload(text, ""), payload(text, "")));
    for (uint64_t seed = 0; seed < 2; seed++) {
        hn_check_graph(text, &(hn_run_opts){ .seed = seed });
        hn_check_graph(text, &(hn_run_opts){ .seed = seed, .route = off });
    }
}

TEST(fuse_layer_norm_is_a_choice)
{
    knob_is_real("in x f32[3,5,40]  const w f32[40]  const b f32[40]  const e f32[] = {1e-5}  const two f32[] = {2}\n"
                 "m = reduce_mean(x) {axes=[2]}  d = sub(x, m)  q = pow(d, two)  v = reduce_mean(q) {axes=[2]}\n"
                 "ve = add(v, e)  s = sqrt(ve)  y = div(d, s)  z = mul(y, w)  o = add(z, b)\nout o",
                 "-fuse:layer_norm=0");
}

TEST(fuse_rms_norm_is_a_choice)
{
    knob_is_real("sym n [1,7,20]\nin x f32[n,5,40]  const w f32[40]  const e f32[] = {1e-5}  const one f32[] = {1}\n"
                 "q = mul(x, x)  v = reduce_mean(q) {axes=[2]}  ve = add(v, e)  s = sqrt(ve)  i = div(one, s)\n"
                 "y = mul(x, i)  z = mul(w, y)\nout z",
                 "-fuse:rms_norm=0");
}
