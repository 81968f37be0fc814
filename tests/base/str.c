#include "harness.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/os.h"
#include "base/str.h"

TEST(str_grows_and_formats)
{
    hn_str s = { 0 };
    CHECK_STR(hn_str_get(&s), "");
    for (int i = 0; i < 1000; i++)
        hn_str_addf(&s, "%d,", i % 10);
    CHECK_EQ(s.n, 2000);
    CHECK_EQ(strlen(s.s), 2000);
    hn_str_clear(&s);
    CHECK_STR(hn_str_get(&s), "");
    hn_str_add_n(&s, "abc", 2);
    hn_str_add(&s, "");
    CHECK_STR(hn_str_get(&s), "ab");
    hn_str_add_n(&s, "x", SIZE_MAX / 2);
    CHECK(s.oom);
    hn_str_add(&s, "later");
    CHECK_STR(hn_str_get(&s), "ab");
    hn_str_done(&s);
    CHECK(s.s == NULL && !s.oom);
}

TEST(str_edit_distance_and_nearest)
{
    static const char *const names[] = { "gemm:split_k", "conv:winograd", "core:threads" };
    CHECK_EQ(hn_edit_distance("kitten", "sitting"), 3);
    CHECK_EQ(hn_edit_distance("", "abc"), 3);
    CHECK_EQ(hn_edit_distance("abc", "abc"), 0);
    char longer[400];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    CHECK_EQ(hn_edit_distance(longer, ""), 64);
    CHECK_STR(hn_nearest("gemm:splitk", names, 3), "gemm:split_k");
    CHECK_STR(hn_nearest("conv:vinograd", names, 3), "conv:winograd");
    CHECK_STR(hn_nearest("zzz", names, 3), NULL);
    CHECK_STR(hn_nearest("", names, 3), NULL);
}

TEST(str_glob)
{
    CHECK(hn_glob_match("/enc/*", "/enc/0/mul"));
    CHECK(hn_glob_match("*", ""));
    CHECK(hn_glob_match("", ""));
    CHECK(!hn_glob_match("", "a"));
    CHECK(!hn_glob_match("?", ""));
    CHECK(hn_glob_match("a?c", "abc") && !hn_glob_match("a?c", "ac"));
    CHECK(hn_glob_match("*a*b*c", "xxaxbxbxc") && !hn_glob_match("*a*b*c", "xxaxcxb"));
    CHECK(hn_glob_match("[x]", "[x]") && !hn_glob_match("[x]", "x"));
    /* exponential in a careless matcher */
    CHECK(!hn_glob_match("a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

TEST(str_parse_i64)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t v;
    } c[] = {
        { "0", true, 0 },
        { "-0", true, 0 },
        { "007", true, 7 },
        { "9223372036854775807", true, INT64_MAX },
        { "-9223372036854775808", true, INT64_MIN },
        { "9223372036854775808", false, 0 },
        { "-9223372036854775809", false, 0 },
        { "99999999999999999999999", false, 0 },
        { "", false, 0 },
        { "-", false, 0 },
        { "+1", false, 0 },
        { " 1", false, 0 },
        { "1 ", false, 0 },
        { "0x10", false, 0 },
        { "1e3", false, 0 },
    };
    for (int i = 0; i < HN_COUNT(c); i++) {
        int64_t v = 42;
        hn_test_note("\"%s\"", c[i].text);
        CHECK_EQ(hn_parse_i64(c[i].text, &v), c[i].ok);
        CHECK_EQ(v, c[i].ok ? c[i].v : 42);
    }
}

TEST(str_parse_f64)
{
    static const char *const bad[] = { "",      "-",      "1x",       "0x1p3", " 1", "1 ",
                                       "1e999", "nan(3)", "infinity", "1,5",   "e5", "--1" };
    double v = 7;
    for (int i = 0; i < HN_COUNT(bad); i++) {
        hn_test_note("\"%s\"", bad[i]);
        CHECK(!hn_parse_f64(bad[i], &v));
    }
    CHECK(v == 7);
    CHECK(hn_parse_f64("1.5e-3", &v) && v == 1.5e-3);
    CHECK(hn_parse_f64("-inf", &v) && v == -INFINITY);
    CHECK(hn_parse_f64("nan", &v) && isnan(v));
    CHECK(hn_parse_f64("-0", &v) && v == 0 && signbit(v));
    CHECK(hn_parse_f64("4.9e-324", &v) && v > 0);
}

TEST(json_layout_and_escapes)
{
    hn_str out = { 0 };
    hn_json j;
    hn_json_init(&j, &out, false);
    hn_json_object(&j);
    hn_json_key(&j, "a\"\\\n\x01");
    hn_json_array(&j);
    hn_json_i64(&j, INT64_MIN);
    hn_json_f64(&j, 0.1);
    hn_json_f64(&j, NAN);
    hn_json_str(&j, NULL);
    hn_json_array(&j);
    hn_json_array_end(&j);
    hn_json_object(&j);
    hn_json_object_end(&j);
    hn_json_bool(&j, true);
    hn_json_array_end(&j);
    hn_json_key(&j, "b");
    hn_json_str(&j, "\xC3\xA9\xFFz\xED\xA0\x80");
    hn_json_object_end(&j);
    CHECK_STR(hn_str_get(&out), "{\"a\\\"\\\\\\n\\u0001\":[-9223372036854775808,0.1,null,null,[],{},true],"
                                "\"b\":\"\xC3\xA9\\ufffdz\\ufffd\\ufffd\\ufffd\"}");
    hn_str_clear(&out);
    hn_json_init(&j, &out, true);
    hn_json_object(&j);
    hn_json_key(&j, "x");
    hn_json_array(&j);
    hn_json_i64(&j, 1);
    hn_json_null(&j);
    hn_json_array_end(&j);
    hn_json_object_end(&j);
    CHECK_STR(hn_str_get(&out), "{\n  \"x\": [\n    1,\n    null\n  ]\n}\n");
    hn_str_done(&out);
}

TEST(json_doubles_read_back)
{
    static const double edge[] = {
        0.0, -0.0, DBL_MAX, DBL_MIN, 4.9e-324, 1.0 / 3, 1e22, 123456789012345680.0
    };
    hn_rng r;
    hn_rng_init(&r, 3);
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = hn_rng_u64(&r);
        double v, back = 0;
        memcpy(&v, &bits, sizeof v);
        if (i < HN_COUNT(edge)) v = edge[i];
        if (!isfinite(v)) continue;
        hn_str out = { 0 };
        hn_json j;
        hn_json_init(&j, &out, false);
        hn_json_f64(&j, v);
        CHECK(hn_parse_f64(hn_str_get(&out), &back));
        CHECK(memcmp(&v, &back, sizeof v) == 0);
        hn_str_done(&out);
    }
}

TEST(digest_text_round_trip)
{
    char text[HN_DIGEST_TEXT];
    hn_digest back = { 0, 0 };
    const hn_digest d = hn_hash128("abc", 3);
    CHECK_STR(hn_digest_text(d, text), "06b05ab6733a618578af5f94892f3950"); /* xxhsum -H2 of "abc" */
    CHECK(hn_digest_parse(text, &back) && hn_digest_eq(d, back));
    text[3] = 'G';
    CHECK(!hn_digest_parse(text, &back));
    CHECK(!hn_digest_parse("06b05ab6733a618578af5f94892f395", &back));
    CHECK(!hn_digest_parse("06b05ab6733a618578af5f94892f39500", &back));
    CHECK(!hn_digest_parse("", &back));
    CHECK(hn_hash64("abc", 3, 0) != hn_hash64("abc", 3, 1));
}

static hn_digest of_strings(const char *a, const char *b)
{
    hn_hasher h;
    hn_hasher_init(&h);
    hn_hasher_str(&h, a);
    hn_hasher_str(&h, b);
    return hn_hasher_end(&h);
}

TEST(hasher_streams)
{
    unsigned char data[5000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7);
    for (size_t shift = 0; shift < 64; shift += 8) { /* every alignment a hasher can have */
        unsigned char room[sizeof(hn_hasher) + 64];
        hn_hasher *h =
            (hn_hasher *)(void *)((((uintptr_t)room + 7) & ~(uintptr_t)7) + (shift > 56 ? 56 : shift));
        hn_hasher_init(h);
        hn_hasher_bytes(h, data, 0);
        for (size_t at = 0; at < sizeof data; at += 333)
            hn_hasher_bytes(h, data + at, HN_MIN((size_t)333, sizeof data - at));
        CHECK(hn_digest_eq(hn_hasher_end(h), hn_hash128(data, sizeof data)));
    }
    CHECK(!hn_digest_eq(of_strings("ab", "c"), of_strings("a", "bc")));
    CHECK(!hn_digest_eq(of_strings("", "c"), of_strings(NULL, "c")));
    CHECK(!hn_digest_eq(of_strings(NULL, NULL), of_strings("", "")));
}
