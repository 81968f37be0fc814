#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "core/knob.h"

/* The tests run over whatever rows there are; these three kinds exist for certain. */
static const hn_knob_def *any_of(hn_knob_type type, bool per_node)
{
    for (int i = 0; i < hn_knob_count(); i++)
        if (hn_knob_at(i)->type == type && hn_knob_at(i)->per_node == per_node) return hn_knob_at(i);
    FAIL("no knob of type %d", (int)type);
}

TEST(knob_registry_is_sound)
{
    int64_t v[64];
    for (int i = 0; i < hn_knob_count(); i++) {
        const hn_knob_def *k = hn_knob_at(i);
        hn_test_note("%s", k->name);
        CHECK(i == 0 || hn_knob_at(i - 1)->id < k->id);
        CHECK(hn_knob_get(k->id) == k);
        CHECK(hn_knob_find(k->name, strlen(k->name)) == k);
        CHECK(k->doc[0] && k->doc[strlen(k->doc) - 1] != '.');
        CHECK(hn_knob_in_domain(k, k->dflt) && hn_knob_in_domain(k, k->lo) && hn_knob_in_domain(k, k->hi));
        CHECK(!hn_knob_in_domain(k, k->hi + 1) && !hn_knob_in_domain(k, k->lo - 1));
        CHECK((k->type == HN_KNOB_ENUM) == (k->values != NULL));
        if (k->type == HN_KNOB_BOOL) CHECK(k->lo == 0 && k->hi == 1);
        if (k->values) {
            int bars = 0;
            for (const char *p = k->values; *p; p++)
                bars += *p == '|';
            CHECK(k->lo == 0 && k->hi == bars);
        }
        const int n = hn_knob_domain(k, v, 64);
        CHECK(n >= 2 && v[0] == k->lo && v[n - 1] == k->hi);
        for (int j = 0; j < n; j++) {
            hn_str text = { 0 };
            int64_t back;
            CHECK(hn_knob_in_domain(k, v[j]) && (j == 0 || v[j - 1] < v[j]));
            hn_knob_print_value(k, v[j], &text);
            CHECK(hn_knob_parse_value(k, hn_str_get(&text), text.n, &back) && back == v[j]);
            hn_str_done(&text);
        }
    }
    CHECK(hn_knob_at(-1) == NULL && hn_knob_at(hn_knob_count()) == NULL);
    CHECK(hn_knob_get(HN_KNOB_NONE) == NULL && hn_knob_get((hn_knob)99999) == NULL);
    CHECK(hn_knob_find("-core:threads", 13) == hn_knob_get(HN_KNOB_core_threads));
    CHECK(hn_knob_find("core:thread", 11) == NULL && hn_knob_find("", 0) == NULL &&
          hn_knob_find("-", 1) == NULL);
}

/* Types that no row may use yet are tried on definitions of their own. */
TEST(knob_domains_by_type)
{
    static const hn_knob_def pow2 = { .name = "t:p", .type = HN_KNOB_POW2, .dflt = 8, .lo = 0, .hi = 100 };
    static const hn_knob_def wide = {
        .name = "t:w", .type = HN_KNOB_INT, .dflt = 77, .lo = -5, .hi = 1000000
    };
    static const hn_knob_def names = {
        .name = "t:e", .type = HN_KNOB_ENUM, .dflt = 1, .lo = 0, .hi = 2, .values = "off|fp16 | bf16"
    };
    static const hn_knob_def flag = { .name = "t:b", .type = HN_KNOB_BOOL, .lo = 0, .hi = 1 };
    int64_t v[16];
    hn_str s = { 0 };
    CHECK_EQ(hn_knob_domain(&pow2, v, 16), 8); /* 0 1 2 4 8 16 32 64, and hi is none */
    CHECK_EQ(v[0], 0);
    CHECK_EQ(v[8 - 1], 64);
    CHECK(!hn_knob_in_domain(&pow2, 100) && !hn_knob_in_domain(&pow2, 3) && !hn_knob_in_domain(&pow2, 128));
    CHECK_EQ(hn_knob_domain(&wide, v, 10), 10);
    CHECK(v[0] == -5 && v[9] == 1000000);
    bool has_default = false;
    for (int i = 0; i < 10; i++)
        has_default |= v[i] == 77;
    CHECK(has_default);
    CHECK_EQ(hn_knob_domain(&names, v, 16), 3);
    hn_knob_print_domain(&names, &s);
    CHECK_STR(hn_str_get(&s), "off|fp16|bf16");
    CHECK(hn_knob_parse_value(&names, "bf16", 4, v) && v[0] == 2);
    CHECK(!hn_knob_parse_value(&names, "bf1", 3, v) && !hn_knob_parse_value(&names, "1", 1, v));
    CHECK(hn_knob_parse_value(&flag, "on", 2, v) && v[0] == 1);
    CHECK(hn_knob_parse_value(&flag, "false", 5, v) && v[0] == 0);
    CHECK(!hn_knob_parse_value(&flag, "2", 1, v) && !hn_knob_parse_value(&flag, "", 0, v));
    CHECK(!hn_knob_parse_value(&wide, "1x", 2, v) && hn_knob_parse_value(&wide, "-5", 2, v) && v[0] == -5);
    CHECK(!hn_knob_parse_value(&wide, "0\0001", 3, v));
    hn_str_done(&s);
}

TEST(knob_list_is_json)
{
    hn_str s = { 0 };
    hn_knob_list_json(&s);
    CHECK(!s.oom && strstr(hn_str_get(&s), "\"name\": \"core:threads\"") &&
          strstr(hn_str_get(&s), "\"registry\""));
    int depth = 0;
    for (const char *p = hn_str_get(&s); *p; p++)
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
    CHECK_EQ(depth, 0);
    CHECK(hn_digest_eq(hn_knob_registry_digest(), hn_knob_registry_digest()));
    hn_str_done(&s);
}

/* ---- routes ---- */
static char node[64], node_2[64], model[64]; /* names of two per-node bools and a model-wide int */

static void pick_knobs(void)
{
    int n = 0;
    for (int i = 0; i < hn_knob_count(); i++) {
        const hn_knob_def *k = hn_knob_at(i);
        if (k->type != HN_KNOB_BOOL || !k->per_node || k->dflt != 1) continue;
        snprintf(n ? node_2 : node, sizeof node, "%s", k->name);
        if (++n == 2) break;
    }
    if (n < 2) SKIP("needs two per-node bools");
    snprintf(model, sizeof model, "%s", any_of(HN_KNOB_INT, false)->name);
}

/* N and O in a pattern text stand for the two node knobs, M for the model knob. */
static const char *with_names(const char *text)
{
    static char out[2048];
    char *at = out;
    for (; *text; text++) {
        const char *name = *text == 'N' ? node : *text == 'O' ? node_2 : *text == 'M' ? model : NULL;
        if (name)
            at += sprintf(at, "%s", name);
        else
            *at++ = *text;
    }
    *at = '\0';
    return out;
}

TEST(route_canonical_text)
{
    static const struct {
        const char *in, *out;
    } c[] = {
        { "", "" },
        { " \n\t ", "" },
        { "-N=0", "-N=0" },
        { "-N=1", "" },
        { "-O=off -N=0", "-N=0 -O=0" },
        { "-N@/a/*=0 -N@/a/x=1", "-N@/a/*=0 -N@/a/x=1" },
        { "-N@/a/x=1 -N@/a/*=0", "-N@/a/*=0" },
        { "-N@/a/*=0 -N=1", "-N=1" },
        { "-N@/a/*=0 -N=0", "-N=0" },
        { "-N@a=b=0", "-N@a=b=0" },
        { "-N@x[0]=0", "-N@x[0]=0" },
        { "-N=0\n-O=0\r\n", "-N=0 -O=0" },
    };
    pick_knobs();
    for (int i = 0; i < HN_COUNT(c); i++) {
        hn_route r, again;
        hn_diag dg = { 0 };
        hn_str s = { 0 }, s2 = { 0 };
        hn_test_note("%s", c[i].in);
        CHECK_OK(hn_route_parse(t->arena, with_names(c[i].in), &r, &dg), &dg);
        hn_route_print(&r, &s);
        if (strcmp(c[i].in, "-N@/a/*=0 -N=1") != 0)
            CHECK_STR(hn_str_get(&s), with_names(c[i].out));
        else
            CHECK_STR(hn_str_get(&s),
                      ""); /* the general default covers the pattern and then overrides nothing */
        CHECK_OK(hn_route_parse(t->arena, hn_str_get(&s), &again, &dg), &dg);
        hn_route_print(&again, &s2);
        CHECK_STR(hn_str_get(&s2), hn_str_get(&s));
        CHECK(hn_digest_eq(hn_route_digest(&r), hn_route_digest(&again)));
        hn_str_done(&s);
        hn_str_done(&s2);
    }
}

TEST(route_errors_say_where)
{
    static const struct {
        const char *in, *message, *hint;
    } c[] = {
        { "N=0", "at offset 0 does not start with", "-group:name=value" },
        { "-N=0 junk", "does not start with", NULL },
        { "-N", "no \"=\" in", NULL },
        { "-=0", "unknown knob", NULL },
        { "--N=0", "unknown knob", NULL },
        { "-zzz:yyy=1", "unknown knob \"-zzz:yyy\" at offset 0", "hone knobs" },
        { "  -Nx=1", "at offset 2", "Did you mean -N?" },
        { "-N=2", "\"2\" at offset", "Values of -N: 0|1" },
        { "-N=", "\"\" at offset", NULL },
        { "-M=-7", "\"-7\" at offset", "Values of -M" },
        { "-M=99999999999999999999", "is not a value", NULL },
        { "-N=0 -N=0", "is repeated", NULL },
        { "-N=0 -N=1", "contradicts", NULL },
        { "-N@/a=0 -N@/a=1", "contradicts an earlier value for /a", NULL },
        { "-N@=0", "empty pattern", NULL },
        { "-M@/a=0", "takes no pattern", NULL },
        { "-N=[0|1]", "is not a value", NULL },
    };
    pick_knobs();
    for (int i = 0; i < HN_COUNT(c); i++) {
        hn_route r = { .n = 77 };
        hn_diag dg = { 0 };
        char text[2048], part[2048];
        snprintf(text, sizeof text, "%s", with_names(c[i].in));
        hn_test_note("%s", text);
        const hone_status s = hn_route_parse(t->arena, text, &r, &dg);
        if (c[i].hint) CHECK(strstr(dg.hint, with_names(c[i].hint)) != NULL);
        snprintf(part, sizeof part, "%s", with_names(c[i].message));
        CHECK_ERR(s, HONE_E_INVALID, &dg, part);
        CHECK_EQ(r.n, 77);
    }
}

TEST(route_offsets_are_exact)
{
    hn_route r;
    hn_diag dg = { 0 };
    char text[200], want[64];
    pick_knobs();
    const int at = snprintf(text, sizeof text, "-%s=0   ", node);
    snprintf(text + at, sizeof text - (size_t)at, "-%s=7", node_2);
    snprintf(want, sizeof want, "\"7\" at offset %d ", at + 1 + (int)strlen(node_2) + 1);
    CHECK_ERR(hn_route_parse(t->arena, text, &r, &dg), HONE_E_INVALID, &dg, want);
}

TEST(route_set_replaces)
{
    hn_route r = { 0 };
    hn_str s = { 0 };
    pick_knobs();
    const hn_knob n = hn_knob_find(node, strlen(node))->id, m = hn_knob_find(model, strlen(model))->id;
    char pattern[] = "/x";
    CHECK(hn_route_set(t->arena, &r, n, NULL, 0));
    CHECK(hn_route_set(t->arena, &r, n, pattern, 0));
    CHECK(hn_route_set(t->arena, &r, n, pattern, 1));
    CHECK_EQ(r.n, 2);
    pattern[1] = 'y'; /* it was copied */
    hn_route_print(&r, &s);
    CHECK_STR(hn_str_get(&s), with_names("-N=0 -N@/x=1"));
    CHECK(!hn_route_set(t->arena, &r, n, NULL, 2));
    CHECK(!hn_route_set(t->arena, &r, m, "/x", 0));
    CHECK(!hn_route_set(t->arena, &r, HN_KNOB_NONE, NULL, 0));
    CHECK(hn_route_set(t->arena, &r, n, NULL, 0)); /* now last: it covers the pattern */
    hn_str_clear(&s);
    hn_route_print(&r, &s);
    CHECK_STR(hn_str_get(&s), with_names("-N=0"));
    hn_str_done(&s);
}

/* ---- expressions ---- */
static const char *axis_text(const hn_axis *a)
{
    static char out[400];
    char *at = out;
    for (int i = 0; i < a->n_value; i++)
        at += sprintf(at, "%s%lld", i ? "," : "", (long long)a->value[i]);
    *at = '\0';
    return out;
}

TEST(route_expressions)
{
    static const struct {
        const char *in, *values;
        bool fixed;
    } c[] = {
        { "-core:threads=4", "4", true },
        { "-core:threads=[4]", "4", false },
        { "-core:threads=[ 1 | 2 |4 ]", "1,2,4", false },
        { "-core:threads=[1||2|]", "1,2", false },
        { "-core:threads=[1..5]", "1,2,3,4,5", false },
        { "-core:threads=[ 2 .. 9 : 3 ]", "2,5,8", false },
        { "-core:threads=[3..3]", "3", false },
        { "-core:threads=[1024..1024:5]", "1024", false },
        { "-core:opt_level=*", "0,1,2,3,4,5", false },
        { "-core:opt_level=[2\n|3]", "2,3", false },
    };
    for (int i = 0; i < HN_COUNT(c); i++) {
        hn_expr_route r;
        hn_diag dg = { 0 };
        hn_test_note("%s", c[i].in);
        CHECK_OK(hn_route_expr_parse(t->arena, c[i].in, &r, &dg), &dg);
        CHECK_EQ(r.n, 1);
        CHECK_STR(axis_text(&r.at[0]), c[i].values);
        CHECK_EQ(r.at[0].fixed, c[i].fixed);
    }
    pick_knobs();
    hn_expr_route r;
    hn_diag dg = { 0 };
    CHECK_OK(hn_route_expr_parse(t->arena, with_names("-N@/enc/*=[0|1]\n-O=[on|off] -M=1\n"), &r, &dg), &dg);
    CHECK_EQ(r.n, 3);
    CHECK_STR(r.at[0].pattern, "/enc/*");
    CHECK_STR(axis_text(&r.at[1]), "1,0");
    CHECK(r.at[2].fixed && r.at[2].pattern == NULL);
    CHECK_OK(hn_route_expr_parse(t->arena, "", &r, &dg), &dg);
    CHECK_EQ(r.n, 0);
}

TEST(route_expression_errors)
{
    static const struct {
        const char *in, *message;
    } c[] = {
        { "-core:threads=[]", "empty list" },
        { "-core:threads=[ | ]", "empty list" },
        { "-core:threads=[1|1]", "\"1\" at offset 17 is twice" },
        { "-core:threads=[1|2", "never closed" },
        { "-core:threads=[1]2", "\"2\" at offset 17 follows" },
        { "-core:threads=x[1]", "\"x[1]\"" },
        { "-core:threads=[5..2]", "from 5 down to 2" },
        { "-core:threads=[1..2000]", "\"2000\" at offset 18" },
        { "-core:threads=[1..4:0]", "not a step" },
        { "-core:threads=[1..4:x]", "not a step" },
        { "-core:threads=[1...4]", "is not a value" },
        { "-core:threads=[1..]", "is not a value" },
        { "-core:threads=1 -core:threads=[1|2]", "offset 16 is repeated" },
        { "-region:chain=[0..1]", "no order" },
        { "-core:threads=[*]", "\"*\"" },
    };
    for (int i = 0; i < HN_COUNT(c); i++) {
        hn_expr_route r = { .n = 5 };
        hn_diag dg = { 0 };
        hn_test_note("%s", c[i].in);
        CHECK_ERR(hn_route_expr_parse(t->arena, c[i].in, &r, &dg), HONE_E_INVALID, &dg, c[i].message);
        CHECK_EQ(r.n, 5);
    }
}

/* Random bytes out of the grammar's alphabet never crash, and what parses prints and parses again. */
TEST(route_random_texts)
{
    static const char alphabet[] = "-=@:[]|.* \n01abc";
    hn_rng r;
    hn_rng_init(&r, 4);
    pick_knobs();
    int n_ok = 0;
    for (int round = 0; round < 100000; round++) {
        char text[120];
        int n = 0;
        while (n < 40 && hn_rng_below(&r, 20)) {
            if (hn_rng_below(&r, 4) == 0)
                n += sprintf(text + n, "-%s%s", hn_rng_below(&r, 2) ? node : node_2,
                             hn_rng_below(&r, 2) ? "=0" : "=[0|1]");
            else
                text[n++] = alphabet[hn_rng_below(&r, sizeof alphabet - 1)];
        }
        text[n] = '\0';
        hn_arena *a = hn_arena_create();
        hn_route route;
        hn_expr_route expr;
        hn_diag dg = { 0 };
        hn_test_note("%s", text);
        if (hn_route_parse(a, text, &route, &dg) == HONE_OK) {
            hn_str s = { 0 };
            hn_route again;
            hn_route_print(&route, &s);
            CHECK_OK(hn_route_parse(a, hn_str_get(&s), &again, &dg), &dg);
            CHECK(hn_digest_eq(hn_route_digest(&route), hn_route_digest(&again)));
            hn_str_done(&s);
            n_ok += route.n > 0;
        }
        hn_diag_clear(&dg);
        if (hn_route_expr_parse(a, text, &expr, &dg) == HONE_OK)
            for (int i = 0; i < expr.n; i++)
                CHECK(expr.at[i].n_value > 0);
        hn_arena_destroy(a);
    }
    CHECK(n_ok > 100);
}

TEST(knob_pins)
{
    static const hn_knob_def size = { .name = "t:s", .type = HN_KNOB_ENUM, .lo = 0, .hi = 3, .values = "auto|1|4|16" };
    static const hn_knob_def way = { .name = "t:w", .type = HN_KNOB_ENUM, .lo = 0, .hi = 2, .values = "auto|off|on" };
    static const hn_knob_def plain = { .name = "t:p", .type = HN_KNOB_INT, .lo = 0, .hi = 9 };
    int64_t v = -7;
    CHECK(!hn_knob_pin(&size, 0, &v) && !hn_knob_pin(&way, 0, &v) && !hn_knob_pin(&plain, 3, &v));
    CHECK_EQ(v, -7);
    CHECK(hn_knob_pin(&size, 3, &v) && v == 16);
    CHECK(hn_knob_pin(&size, 1, &v) && v == 1);
    CHECK(hn_knob_pin(&way, 1, &v) && v == 0);
    CHECK(hn_knob_pin(&way, 2, &v) && v == 1);
    CHECK(!hn_knob_pin(&size, 4, &v) && !hn_knob_pin(&size, -1, &v));
}

/* ---- reading ---- */
TEST(knob_digests_of_places)
{
    hn_route r;
    hn_diag dg = { 0 };
    static const char *const head[] = { "/head/a" }, *const tail[] = { "/head/b" }, *const other[] = { "/y" };
    pick_knobs();
    CHECK_OK(hn_route_parse(t->arena, with_names("-N@/head/*=0 -N@/head/a=1 -M=1"), &r, &dg), &dg);
    const hn_knobs *k = hn_knobs_new(t->arena, &r), *dflt = hn_knobs_new(t->arena, NULL);
    CHECK(!hn_digest_eq(hn_knobs_digest_at(k, head, 1), hn_knobs_digest_at(k, tail, 1)));
    CHECK(!hn_digest_eq(hn_knobs_digest_at(k, other, 1), hn_knobs_digest_at(k, tail, 1)));
    CHECK(hn_digest_eq(hn_knobs_digest_at(dflt, head, 1), hn_knobs_digest_at(dflt, other, 1)));
    CHECK(hn_digest_eq(hn_knobs_digest_at(k, other, 1), hn_knobs_digest_at(dflt, other, 1)));
}

TEST(knob_reads_and_trace)
{
    hn_route r;
    hn_diag dg = { 0 };
    static const char *const head[] = { "/head/a" }, *const both[] = { "/x", "/head/b" },
                             *const other[] = { "/y" };
    pick_knobs();
    const hn_knob n = hn_knob_find(node, strlen(node))->id, m = hn_knob_find(model, strlen(model))->id;
    CHECK_OK(hn_route_parse(t->arena, with_names("-N@/head/*=0 -N@/head/a=1 -M=1"), &r, &dg), &dg);
    hn_knobs *k = hn_knobs_new(t->arena, &r);
    CHECK_EQ(hn_knob_read_node(k, n, head, 1), 1);
    CHECK_EQ(hn_knob_read_node(k, n, both, 2), 0);
    CHECK_EQ(hn_knob_read_node(k, n, other, 1), 1);
    CHECK_EQ(hn_knob_read_node(k, n, NULL, 0), 1);
    CHECK_EQ(hn_knob_read_model(k, m), 1);
    CHECK_EQ(hn_knob_read_node(k, m, head, 1), 1);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(hn_knob_read_node(k, n, both, 2), 0);
    CHECK_EQ(hn_knobs_n_read(k), 5);
    CHECK_STR(hn_knobs_read_at(k, 1)->where, "/x");
    CHECK_EQ(hn_knobs_read_at(k, 1)->value, 0);
    CHECK_STR(hn_knobs_read_at(k, 4)->where, "");
    CHECK_EQ(hn_knobs_read_at(k, 4)->knob, m);
    CHECK(hn_knobs_read_at(k, 5) == NULL);
    hn_knobs *dflt = hn_knobs_new(t->arena, NULL);
    CHECK_EQ(hn_knob_read_model(dflt, n), hn_knob_get(n)->dflt);
    for (int i = 0; i < 5000; i++) { /* the trace grows and stays deduplicated */
        char path[32];
        const char *origin[1] = { path };
        snprintf(path, sizeof path, "/n/%d", i % 2500);
        hn_knob_read_node(dflt, n, origin, 1);
    }
    CHECK_EQ(hn_knobs_n_read(dflt), 2501);
}
