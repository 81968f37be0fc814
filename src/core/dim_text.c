/* Printing and parsing of symbolic dims. */
#include <string.h>

#include "core/dim_int.h"

static const struct {
    const char *name;
    int n_arg;
} functions[] = {
    [HN_EX_FLOORDIV] = { "floordiv", 2 }, [HN_EX_MOD] = { "mod", 2 }, [HN_EX_MIN] = { "min", 2 },
    [HN_EX_MAX] = { "max", 2 },           [HN_EX_EQ] = { "eq", 2 },   [HN_EX_LT] = { "lt", 2 },
    [HN_EX_SELECT] = { "select", 3 },
};

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_char(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9') || c == '.';
}

/* ---- printing ---- */
static void print_name(const char *name, hn_str *out)
{
    bool plain = is_name_start(name[0]);
    for (const char *p = name; *p && plain; p++)
        plain = is_name_char(*p);
    if (plain) {
        hn_str_add(out, name);
        return;
    }
    hn_str_add(out, "\"");
    for (; *name; name++) {
        if (*name == '"' || *name == '\\') hn_str_add(out, "\\");
        hn_str_add_n(out, name, 1);
    }
    hn_str_add(out, "\"");
}

static void print(const hn_symtab *t, hn_dim d, bool in_product, hn_str *out);

static void print_product(const hn_symtab *t, const struct dim_node *x, hn_str *out)
{
    int64_t coef;
    if (hn_dim_known(t, x->arg[0], &coef) && coef == -1) {
        hn_str_add(out, "-");
    } else {
        print(t, x->arg[0], true, out);
        hn_str_add(out, "*");
    }
    print(t, x->arg[1], true, out);
}

static void print_sum(const hn_symtab *t, const struct dim_node *x, hn_str *out)
{
    hn_str term = { 0 };
    print(t, x->arg[0], false, out);
    print(t, x->arg[1], false, &term);
    if (hn_str_get(&term)[0] != '-') hn_str_add(out, "+");
    hn_str_add(out, hn_str_get(&term));
    if (term.oom) out->oom = true;
    hn_str_done(&term);
}

static void print_call(const hn_symtab *t, const struct dim_node *x, hn_str *out)
{
    hn_str_addf(out, "%s(", functions[x->op].name);
    for (int i = 0; i < functions[x->op].n_arg; i++) {
        if (i) hn_str_add(out, ",");
        print(t, x->arg[i], false, out);
    }
    hn_str_add(out, ")");
}

static void print(const hn_symtab *t, hn_dim d, bool in_product, hn_str *out)
{
    int64_t v;
    if (hn_dim_known(t, d, &v)) {
        hn_str_addf(out, "%lld", (long long)v);
        return;
    }
    const struct dim_node *x = hn_dim_node_(t, d);
    const bool parens = x->op == HN_EX_ADD && (in_product || x->opaque);
    if (parens) hn_str_add(out, "(");
    if (x->op == HN_EX_SYM)
        print_name(t->sym.at[x->arg[0]]->name, out);
    else if (x->op == HN_EX_ADD)
        print_sum(t, x, out);
    else if (x->op == HN_EX_MUL)
        print_product(t, x, out);
    else
        print_call(t, x, out);
    if (parens) hn_str_add(out, ")");
}

void hn_dim_print(const hn_symtab *t, hn_dim d, hn_str *out)
{
    print(t, d, false, out);
}

/* ---- parsing ---- */
enum { MAX_NESTING = 200, MAX_NAME = 1000 };

struct parser {
    hn_symtab *t;
    const char *at;
    int nesting;
};

static bool parse_sum(struct parser *p, hn_dim *ret);

static void skip_space(struct parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

static bool take(struct parser *p, char c)
{
    skip_space(p);
    if (*p->at != c) return false;
    p->at++;
    return true;
}

static bool parse_number(struct parser *p, bool negative, hn_dim *ret)
{
    int64_t v = 0;
    for (; *p->at >= '0' && *p->at <= '9'; p->at++) {
        const int digit = negative ? '0' - *p->at : *p->at - '0';
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v)) return false;
    }
    *ret = hn_dim_const(p->t, v);
    return true;
}

static hn_dim apply(hn_symtab *t, int op, const hn_dim arg[3])
{
    switch ((hn_expr_op)op) {
    case HN_EX_FLOORDIV:
        return hn_dim_floordiv(t, arg[0], arg[1]);
    case HN_EX_MOD:
        return hn_dim_mod(t, arg[0], arg[1]);
    case HN_EX_MIN:
        return hn_dim_min(t, arg[0], arg[1]);
    case HN_EX_MAX:
        return hn_dim_max(t, arg[0], arg[1]);
    case HN_EX_EQ:
        return hn_dim_eq(t, arg[0], arg[1]);
    case HN_EX_LT:
        return hn_dim_lt(t, arg[0], arg[1]);
    case HN_EX_SELECT:
        return hn_dim_select(t, arg[0], arg[1], arg[2]);
    case HN_EX_SYM:
    case HN_EX_ADD:
    case HN_EX_MUL:
        break;
    }
    return 0;
}

/* After "name(": true when name is a function and its arguments parse. */
static bool parse_call(struct parser *p, const char *name, size_t n, hn_dim *ret)
{
    hn_dim arg[3] = { 0 };
    for (int op = 0; op < HN_COUNT(functions); op++) {
        if (!functions[op].name || strlen(functions[op].name) != n ||
            memcmp(functions[op].name, name, n) != 0)
            continue;
        for (int i = 0; i < functions[op].n_arg; i++) {
            if (i && !take(p, ',')) return false;
            if (!parse_sum(p, &arg[i])) return false;
        }
        if (!take(p, ')')) return false;
        *ret = apply(p->t, op, arg);
        return true;
    }
    return false;
}

static bool add_symbol(struct parser *p, const char *name, size_t n, hn_dim *ret)
{
    const char *kept = hn_arena_strndup(p->t->arena, name, n);
    *ret = kept ? hn_sym_add(p->t, kept, HN_SYM_INPUT) : 0;
    return *ret != 0;
}

static bool parse_quoted(struct parser *p, hn_dim *ret)
{
    char name[MAX_NAME];
    size_t n = 0;
    for (; *p->at && *p->at != '"'; p->at++) {
        if (*p->at == '\\' && p->at[1]) p->at++;
        if (n == sizeof name) return false;
        name[n++] = *p->at;
    }
    return *p->at++ == '"' && add_symbol(p, name, n, ret);
}

static bool parse_factor(struct parser *p, hn_dim *ret)
{
    skip_space(p);
    if (*p->at >= '0' && *p->at <= '9') return parse_number(p, false, ret);
    if (take(p, '(')) return parse_sum(p, ret) && take(p, ')');
    if (take(p, '"')) return parse_quoted(p, ret);
    if (take(p, '-')) {
        if (*p->at >= '0' && *p->at <= '9') return parse_number(p, true, ret);
        if (++p->nesting > MAX_NESTING || !parse_factor(p, ret)) return false;
        p->nesting--;
        *ret = hn_dim_sub(p->t, 0, *ret);
        return true;
    }
    const char *name = p->at;
    if (!is_name_start(*name)) return false;
    while (is_name_char(*p->at))
        p->at++;
    const size_t n = (size_t)(p->at - name);
    if (take(p, '(')) return parse_call(p, name, n, ret);
    return add_symbol(p, name, n, ret);
}

static bool parse_product(struct parser *p, hn_dim *ret)
{
    if (!parse_factor(p, ret)) return false;
    while (take(p, '*')) {
        hn_dim d;
        if (!parse_factor(p, &d)) return false;
        *ret = hn_dim_mul(p->t, *ret, d);
    }
    return true;
}

static bool parse_sum(struct parser *p, hn_dim *ret)
{
    if (++p->nesting > MAX_NESTING || !parse_product(p, ret)) return false;
    for (;;) {
        hn_dim d;
        const bool plus = take(p, '+'), minus = !plus && take(p, '-');
        if (!plus && !minus) break;
        if (!parse_product(p, &d)) return false;
        *ret = plus ? hn_dim_add(p->t, *ret, d) : hn_dim_sub(p->t, *ret, d);
    }
    p->nesting--;
    return true;
}

size_t hn_dim_parse(hn_symtab *t, const char *s, hn_dim *ret)
{
    struct parser p = { .t = t, .at = s };
    hn_dim d;
    if (!parse_sum(&p, &d) || hn_arena_oom(t->arena)) return 0;
    while (p.at > s && p.at[-1] == ' ') /* spaces after the text are the caller's */
        p.at--;
    *ret = d;
    return (size_t)(p.at - s);
}
