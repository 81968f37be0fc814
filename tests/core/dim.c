#include "harness.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "core/core.h"

static const char *text(const hn_symtab *st, hn_dim d)
{
    static char kept[8][2000];
    static int next;
    hn_str s = { 0 };
    char *dst = kept[next++ % 8];
    hn_dim_print(st, d, &s);
    strncpy(dst, hn_str_get(&s), sizeof kept[0] - 1);
    hn_str_done(&s);
    return dst;
}

static hn_dim parse(hn_symtab *st, const char *s)
{
    hn_dim d = 0;
    hn_test_note("%s", s);
    CHECK_EQ(hn_dim_parse(st, s, &d), strlen(s));
    return d;
}

TEST(dim_canonical_forms)
{
    static const struct {
        const char *in, *out;
    } c[] = {
        { "7", "7" },
        { "-7", "-7" },
        { "n+1-1", "n" },
        { "n*2", "2*n" },
        { "1+n+n*n", "n*n+n+1" },
        { "(n+1)*(n-1)", "n*n-1" },
        { "m+n", "m+n" },
        { "n+m", "m+n" },
        { "0*n", "0" },
        { "n-n", "0" },
        { "-n", "-n" },
        { "3-n", "-n+3" },
        { "2*(3*m)", "6*m" },
        { "n*m*n", "m*n*n" },
        { "floordiv(n,1)", "n" },
        { "floordiv(4*n+6,4)", "n+1" },
        { "floordiv(8*n,4)", "2*n" },
        { "floordiv(2*n+1,2)", "n" },
        { "floordiv(6*n+7,4)", "n+floordiv(n+1,2)+1" },
        { "floordiv(n*m,m)", "n" },
        { "floordiv(2*n*m,2*m)", "n" },
        { "floordiv(n*m+n,m+1)", "n" },
        { "floordiv(n*n-1,n+1)", "n-1" },
        { "floordiv(0,n)", "0" },
        { "floordiv(n,n)", "1" },
        { "floordiv(floordiv(n,2),3)", "floordiv(n,6)" },
        { "floordiv(floordiv(n+1,2)+1,2)", "floordiv(n+3,4)" },
        { "floordiv(n,-2)", "-floordiv(n+1,2)" },
        { "floordiv(mod(n,4),4)", "0" },
        { "floordiv(-7,2)", "-4" },
        { "mod(-7,2)", "1" },
        { "mod(7,-2)", "-1" },
        { "mod(4*n+6,4)", "2" },
        { "mod(5*n,4)", "mod(n,4)" },
        { "mod(2*n,4)", "2*mod(n,2)" },
        { "mod(n*m,m)", "0" },
        { "mod(mod(n,4),8)", "mod(n,4)" },
        { "min(n,n)", "n" },
        { "min(3,5)", "3" },
        { "max(n,n+1)", "n+1" },
        { "min(n,n+1)", "n" },
        { "max(n,0)", "n" },
        { "select(eq(n,1),min(512,n),n)", "n" },
        { "select(eq(n,1),1,n)", "n" },
        { "select(eq(n,1),m,n)", "select(eq(n,1),m,n)" },
        { "select(eq(n,600),min(512,n),n)", "select(eq(n,600),min(512,n),n)" },
        { "min(m,n)", "min(m,n)" },
        { "min(n,m)", "min(m,n)" },
        { "min(min(n,4),min(m,4))", "min(min(4,m),n)" },
        { "eq(n,n)", "1" },
        { "eq(n,n+1)", "0" },
        { "eq(n+1,m+1)", "eq(m,n)" },
        { "eq(3,n)", "eq(n,3)" },
        { "eq(n,-1)", "0" },
        { "lt(n,n+1)", "1" },
        { "lt(n+4,m+1)", "lt(n+3,m)" },
        { "lt(n,0)", "0" },
        { "select(1,n,m)", "n" },
        { "select(eq(n,1),m,m)", "m" },
        { "select(eq(n,1),m,n)", "select(eq(n,1),m,n)" },
        { "\"a b\"+1", "\"a b\"+1" },
        { "\"q\\\"\\\\\"", "\"q\\\"\\\\\"" },
        { "min", "min" },
        { " n + 1", "n+1" },
        { "--n", "n" },
        { "-9223372036854775808", "-9223372036854775808" },
    };
    for (int i = 0; i < HN_COUNT(c); i++) {
        hn_symtab *st = hn_symtab_new(t->arena);
        hn_dim d = 0;
        hn_test_note("%s", c[i].in);
        CHECK_EQ(hn_dim_parse(st, c[i].in, &d), strlen(c[i].in));
        CHECK_STR(text(st, d), c[i].out);
        CHECK_EQ(parse(st, text(st, d)), d);
    }
}

TEST(dim_parse_errors)
{
    static const char *const bad[] = { "",
                                       "+",
                                       "n+",
                                       "floordiv(n)",
                                       "floordiv(n,2,3)",
                                       "(n",
                                       "n*",
                                       "9999999999999999999",
                                       "min(n,",
                                       "foo(n)",
                                       "\"open",
                                       "$",
                                       "-" };
    hn_symtab *st = hn_symtab_new(t->arena);
    char deep[5000];
    for (int i = 0; i < HN_COUNT(bad); i++) {
        hn_dim d = 77;
        hn_test_note("%s", bad[i]);
        CHECK_EQ(hn_dim_parse(st, bad[i], &d), 0);
        CHECK_EQ(d, 77);
    }
    hn_dim d;
    CHECK_EQ(hn_dim_parse(st, "n]", &d), 1);
    CHECK_EQ(hn_dim_parse(st, "n ,m", &d), 1);
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    CHECK_EQ(hn_dim_parse(st, deep, &d), 0);
    memset(deep, '-', sizeof deep - 1);
    CHECK_EQ(hn_dim_parse(st, deep, &d), 0);
}

TEST(dim_symbols)
{
    hn_symtab *st = hn_symtab_new(t->arena);
    const hn_dim n = hn_sym_add(st, "n", HN_SYM_INPUT), v = hn_sym_add(st, "v", HN_SYM_VALUE);
    CHECK(n < 0 && v < 0 && n != v);
    CHECK_EQ(hn_sym_add(st, "n", HN_SYM_INPUT), n);
    CHECK_EQ(hn_sym_find(st, "v"), v);
    CHECK_EQ(hn_sym_find(st, "w"), 0);
    CHECK_EQ(hn_sym_count(st), 2);
    CHECK_EQ(hn_sym_at(st, 1), v);
    CHECK_EQ(hn_sym_at(st, 2), 0);
    CHECK_STR(hn_sym_get(st, v)->name, "v");
    CHECK(hn_sym_get(st, 3) == NULL && hn_sym_get(st, hn_dim_add(st, n, 1)) == NULL);
    hn_dim arg[3];
    CHECK_EQ(hn_dim_expr(st, v, arg), HN_EX_SYM);
    CHECK_EQ(arg[0], 1);
    CHECK_EQ(hn_dim_expr(st, hn_dim_add(st, n, 5), arg), HN_EX_ADD);
    CHECK(arg[0] == n && arg[1] == 5 && arg[2] == 0);
    int64_t k = 0;
    CHECK(hn_dim_known(st, hn_dim_const(st, -3), &k) && k == -3);
    CHECK(hn_dim_known(st, 3, &k) && k == 3);
    CHECK(!hn_dim_known(st, n, &k));
    CHECK_EQ(hn_dim_const(st, -3), hn_dim_sub(st, 0, 3));
    CHECK_EQ(hn_dim_ceildiv(st, n, 4), parse(st, "floordiv(n+3,4)"));
    CHECK_EQ(hn_dim_ceildiv(st, 9, 4), 3);
}

TEST(dim_bounds)
{
    static const struct {
        const char *in;
        int64_t lo, hi;
    } c[] = {
        { "5", 5, 5 },
        { "n", 1, 8 },
        { "2*n-3", -1, 13 },
        { "-n", -8, -1 },
        { "n*m", 0, 80 },
        { "floordiv(n,2)", 0, 4 },
        { "floordiv(n+m,3)", 0, 6 },
        { "mod(m,4)", 0, 3 },
        { "min(n,m)", 0, 8 },
        { "max(n,3)", 3, 8 },
        { "eq(n,m)", 0, 1 },
        { "select(eq(n,m),n+100,m)", 0, 108 },
        { "u", 0, INT64_MAX },
        { "u-5", -5, INT64_MAX },
        { "5-u", INT64_MIN, 5 },
        { "u*n", 0, INT64_MAX },
        { "floordiv(u,3)", 0, INT64_MAX },
        { "floordiv(n,u)", 0, 8 },
        { "min(u,n)", 0, 8 },
    };
    hn_symtab *st = hn_symtab_new(t->arena);
    const hn_dim m = hn_sym_add(st, "m", HN_SYM_INPUT);
    hn_sym_set_bounds(st, hn_sym_add(st, "n", HN_SYM_INPUT), 1, 4, 8);
    hn_sym_set_bounds(st, m, 0, 1, 10);
    for (int i = 0; i < HN_COUNT(c); i++) {
        int64_t lo, hi;
        hn_dim_bounds(st, parse(st, c[i].in), &lo, &hi);
        CHECK_EQ(lo, c[i].lo);
        CHECK_EQ(hi, c[i].hi);
    }
    int64_t lo, hi;
    const hn_dim d = parse(st, "n*m");
    hn_sym_set_bounds(st, m, 0, 1, 3); /* tightening is seen at once */
    hn_dim_bounds(st, d, &lo, &hi);
    CHECK_EQ(hi, 24);
}

TEST(dim_eval_failures)
{
    hn_symtab *st = hn_symtab_new(t->arena);
    const hn_dim n = hn_sym_add(st, "n", HN_SYM_INPUT), m = hn_sym_add(st, "m", HN_SYM_INPUT);
    int64_t r = 42;
    const int64_t zero[2] = { 5, 0 }, big[2] = { INT64_MAX, 2 };
    CHECK(!hn_dim_eval(st, hn_dim_floordiv(st, n, m), zero, &r));
    CHECK(!hn_dim_eval(st, hn_dim_mod(st, n, m), zero, &r));
    CHECK(!hn_dim_eval(st, hn_dim_floordiv(st, 5, 0), zero, &r));
    CHECK(!hn_dim_eval(st, hn_dim_mul(st, n, m), big, &r));
    CHECK(!hn_dim_eval(st, hn_dim_add(st, n, 1), big, &r));
    CHECK(!hn_dim_eval(st, hn_dim_mul(st, INT64_MAX, 2), big, &r));
    CHECK(!hn_dim_eval(st, hn_dim_add(st, INT64_MAX, 2), big, &r));
    CHECK_EQ(r, 42);
    /* the branch not taken may fail */
    CHECK(hn_dim_eval(st, hn_dim_select(st, hn_dim_eq(st, m, 0), 1, hn_dim_floordiv(st, n, m)), zero, &r));
    CHECK_EQ(r, 1);
    /* folding what does not fit keeps the failure and does not invent a value */
    const hn_dim over = hn_dim_sub(st, hn_dim_mul(st, INT64_MAX, 4), n);
    CHECK(!hn_dim_eval(st, over, zero, &r));
    CHECK(hn_dim_eval(st, hn_dim_floordiv(st, hn_dim_mul(st, INT64_MAX, 4), 8), zero, &r));
    CHECK_EQ(r, INT64_MAX / 2);
    const hn_dim min_i64 = hn_dim_const(st, INT64_MIN);
    CHECK(!hn_dim_eval(st, hn_dim_floordiv(st, min_i64, hn_dim_const(st, -1)), zero, &r));
    CHECK(!hn_dim_eval(st, hn_dim_sub(st, 0, min_i64), zero, &r));
    CHECK(hn_dim_eval(st, hn_dim_mod(st, n, min_i64), zero, &r));
    CHECK_EQ(r, INT64_MIN + 5);
}

/* ---- random expressions against a plain evaluator ---- */
enum { N_SYM = 4, N_NODE = 14 };

struct plain {
    int op;
    int arg[3]; /* earlier nodes */
    int64_t leaf;
};

static bool plain_eval(const struct plain *e, int i, const int64_t *sym, int64_t *ret)
{
    int64_t a, b, c;
    if (e[i].op < 0) {
        *ret = e[i].op == -1 ? e[i].leaf : sym[e[i].leaf];
        return true;
    }
    if (!plain_eval(e, e[i].arg[0], sym, &a) || !plain_eval(e, e[i].arg[1], sym, &b)) return false;
    switch ((hn_expr_op)e[i].op) {
    case HN_EX_ADD:
        return !__builtin_add_overflow(a, b, ret);
    case HN_EX_MUL:
        return !__builtin_mul_overflow(a, b, ret);
    case HN_EX_FLOORDIV:
        if (b == 0) return false;
        *ret = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
        return true;
    case HN_EX_MOD:
        if (b == 0) return false;
        *ret = a % b;
        if (*ret && (*ret < 0) != (b < 0)) *ret += b;
        return true;
    case HN_EX_MIN:
        *ret = a < b ? a : b;
        return true;
    case HN_EX_MAX:
        *ret = a > b ? a : b;
        return true;
    case HN_EX_EQ:
        *ret = a == b;
        return true;
    case HN_EX_LT:
        *ret = a < b;
        return true;
    case HN_EX_SELECT:
        if (!plain_eval(e, e[i].arg[2], sym, &c)) return false;
        *ret = a ? b : c;
        return true;
    case HN_EX_SYM:
        *ret = a - b;
        return !__builtin_sub_overflow(a, b, ret); /* stands for subtraction here */
    }
    return false;
}

static hn_dim build(hn_symtab *st, const struct plain *e, const hn_dim *d, int i)
{
    if (e[i].op == -1) return hn_dim_const(st, e[i].leaf);
    if (e[i].op == -2) return hn_sym_at(st, (int)e[i].leaf);
    const hn_dim a = d[e[i].arg[0]], b = d[e[i].arg[1]];
    switch ((hn_expr_op)e[i].op) {
    case HN_EX_ADD:
        return hn_dim_add(st, a, b);
    case HN_EX_MUL:
        return hn_dim_mul(st, a, b);
    case HN_EX_FLOORDIV:
        return hn_dim_floordiv(st, a, b);
    case HN_EX_MOD:
        return hn_dim_mod(st, a, b);
    case HN_EX_MIN:
        return hn_dim_min(st, a, b);
    case HN_EX_MAX:
        return hn_dim_max(st, a, b);
    case HN_EX_EQ:
        return hn_dim_eq(st, a, b);
    case HN_EX_LT:
        return hn_dim_lt(st, a, b);
    case HN_EX_SELECT:
        return hn_dim_select(st, a, b, d[e[i].arg[2]]);
    case HN_EX_SYM:
        return hn_dim_sub(st, a, b);
    }
    return 0;
}

static int64_t random_const(hn_rng *r)
{
    switch (hn_rng_below(r, 8)) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return -1;
    default:
        return hn_rng_below(r, 25) - 8;
    }
}

static void random_expr(hn_rng *r, struct plain *e)
{
    for (int i = 0; i < N_NODE; i++) {
        e[i] = (struct plain){ .op = i < N_SYM ? -2 : i < N_SYM + 3 ? -1 : (int)hn_rng_below(r, 10) };
        if (e[i].op == -2) e[i].leaf = i;
        if (e[i].op == -1) e[i].leaf = random_const(r);
        for (int k = 0; k < 3; k++)
            e[i].arg[k] = i > 0 ? (int)hn_rng_below(r, i) : 0;
    }
}

static void check_values(hn_symtab *st, const struct plain *e, const hn_dim *d, hn_rng *r, int n_round)
{
    static const int64_t lows[N_SYM] = { 0, 1, -20, 2 };
    for (int k = 0; k < n_round; k++) {
        int64_t sym[N_SYM];
        for (int i = 0; i < N_SYM; i++)
            sym[i] = lows[i] + hn_rng_below(r, i == 2 ? 41 : 12);
        for (int i = 0; i < N_NODE; i++) {
            int64_t want = 0, got = 0, lo, hi;
            if (!plain_eval(e, i, sym, &want)) continue;
            hn_test_note("%s at %lld %lld %lld %lld", text(st, d[i]), (long long)sym[0], (long long)sym[1],
                         (long long)sym[2], (long long)sym[3]);
            CHECK(hn_dim_eval(st, d[i], sym, &got));
            CHECK_EQ(got, want);
            hn_dim_bounds(st, d[i], &lo, &hi);
            CHECK(lo <= got && got <= hi);
        }
    }
}

TEST(dim_random_expressions_keep_their_value)
{
    hn_rng r;
    hn_rng_init(&r, 2024);
    for (int round = 0; round < 4000; round++) {
        hn_arena *a = hn_arena_create();
        hn_symtab *st = hn_symtab_new(a);
        struct plain e[N_NODE];
        hn_dim d[N_NODE];
        for (int i = 0; i < N_SYM; i++) {
            const char name[2] = { (char)('a' + i), 0 };
            const hn_dim s = hn_sym_add(st, name, i == 2 ? HN_SYM_VALUE : HN_SYM_INPUT);
            if (i == 1) hn_sym_set_bounds(st, s, 1, 1, 12);
            if (i == 3) hn_sym_set_bounds(st, s, 2, 1, INT64_MAX);
        }
        random_expr(&r, e);
        for (int i = 0; i < N_NODE; i++)
            d[i] = build(st, e, d, i);
        CHECK(!hn_arena_oom(a));
        check_values(st, e, d, &r, 6);
        for (int i = 0; i < N_NODE; i++) { /* text and substitution of itself are identities */
            hn_dim back = 0;
            const char *s = text(st, d[i]);
            if (strlen(s) < 1900) {
                hn_test_note("%s", s ? s : "");
                CHECK_EQ(hn_dim_parse(st, s, &back), strlen(s));
                CHECK_STR(text(st, back), s);
            }
        }
        hn_arena_destroy(a);
    }
}

/* Polynomials built along different paths share one handle. */
TEST(dim_sums_of_products_are_canonical)
{
    hn_rng r;
    hn_rng_init(&r, 7);
    for (int round = 0; round < 2000; round++) {
        hn_arena *a = hn_arena_create();
        hn_symtab *st = hn_symtab_new(a);
        hn_dim x[3], y[3];
        for (int i = 0; i < 3; i++)
            x[i] = hn_sym_add(st, i == 0 ? "p" : i == 1 ? "q" : "s", HN_SYM_INPUT);
        for (int i = 0; i < 3; i++) {
            const hn_dim k = hn_dim_const(st, hn_rng_below(&r, 9) - 4);
            y[i] = hn_dim_add(st, hn_dim_mul(st, x[hn_rng_below(&r, 3)], k), x[hn_rng_below(&r, 3)]);
        }
        const hn_dim l = hn_dim_mul(st, hn_dim_add(st, y[0], y[1]), y[2]);
        const hn_dim m = hn_dim_add(st, hn_dim_mul(st, y[2], y[1]), hn_dim_mul(st, y[0], y[2]));
        CHECK_EQ(l, m);
        CHECK_EQ(hn_dim_sub(st, l, m), 0);
        CHECK_EQ(hn_dim_sub(st, hn_dim_add(st, l, y[0]), y[0]), l);
        if (y[2] != 0) CHECK_EQ(hn_dim_floordiv(st, l, y[2]), hn_dim_add(st, y[0], y[1]));
        hn_arena_destroy(a);
    }
}

TEST(dim_substitution)
{
    hn_symtab *st = hn_symtab_new(t->arena);
    const hn_dim n = hn_sym_add(st, "n", HN_SYM_INPUT), m = hn_sym_add(st, "m", HN_SYM_INPUT);
    const hn_dim d = parse(st, "floordiv(n*m+3,4)+min(n,m)+select(lt(n,m),mod(n,3),eq(m,2))");
    const hn_dim same[2] = { n, m }, swapped[2] = { m, n }, fixed[2] = { 6, 9 },
                 part[2] = { hn_dim_mul(st, m, 4), m };
    CHECK_EQ(hn_dim_subst(st, d, same), d);
    CHECK_EQ(hn_dim_subst(st, hn_dim_subst(st, d, swapped), swapped), d);
    CHECK_EQ(hn_dim_subst(st, d, fixed), (6 * 9 + 3) / 4 + 6 + 0);
    CHECK_STR(text(st, hn_dim_subst(st, parse(st, "floordiv(n*m+3,4)"), part)), "m*m");
}

TEST(dim_limits_hold)
{
    hn_symtab *st = hn_symtab_new(t->arena);
    const hn_dim n = hn_sym_add(st, "n", HN_SYM_INPUT);
    hn_dim sum = n, product = 1, power = hn_dim_add(st, n, 1);
    for (int i = 0; i < 200; i++) { /* more terms and factors than one polynomial holds */
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        const hn_dim s = hn_sym_add(st, name, HN_SYM_INPUT);
        sum = hn_dim_add(st, sum, s);
        product = hn_dim_mul(st, product, s);
        if (i < 20) power = hn_dim_mul(st, power, hn_dim_add(st, s, 1));
    }
    int64_t one[201], got;
    for (int i = 0; i < 201; i++)
        one[i] = 1;
    CHECK(hn_dim_eval(st, sum, one, &got) && got == 201);
    CHECK(hn_dim_eval(st, product, one, &got) && got == 1);
    CHECK(hn_dim_eval(st, power, one, &got) && got == (1 << 21));
    CHECK(!hn_arena_oom(t->arena));
    hn_dim deep = n; /* nesting without end hits the depth limit, which says out of memory */
    for (int i = 0; i < 100000 && !hn_arena_oom(t->arena); i++)
        deep = hn_dim_min(st, hn_dim_mod(st, hn_dim_add(st, hn_dim_mul(st, deep, deep), 1), 7 + i % 5), n);
    CHECK(hn_arena_oom(t->arena));
}
