/* Text to graph; docs/ir.md has the grammar. Every mistake is reported with its line and column. */
#include "ir/lex.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_RESULTS = 256,
    MAX_OPERANDS = 4096,
    MAX_LIST = 65536,
};
static const int64_t MAX_FILL_BYTES = (int64_t)256 << 20; /* of constants whose bytes follow from the name */

static hone_status dim(hn_parser *p, hn_dim *ret)
{
    hn_lex_space(p);
    const size_t n = hn_dim_parse(p->g->syms, p->at, ret);
    if (n == 0) return FAIL(p, "an extent is expected here");
    p->at += n;
    return HONE_OK;
}

/* ---- types ---- */

static hone_status extents(hn_parser *p, hn_tdesc *ret)
{
    while (!hn_lex_take(p, ']')) {
        int64_t known;
        if (ret->rank && hn_lex_expect(p, ',') != HONE_OK) return HONE_E_FORMAT;
        if (ret->rank == HN_MAX_RANK) return FAIL(p, "a tensor has at most %d axes", HN_MAX_RANK);
        const char *start = p->at;
        HN_TRY(dim(p, &ret->dim[ret->rank]));
        if (hn_dim_known(p->g->syms, ret->dim[ret->rank], &known) && known < 0)
            return hn_lex_fail(p, start, "an extent cannot be negative");
        ret->rank++;
    }
    return HONE_OK;
}

static hone_status tensor_type(hn_parser *p, hn_tdesc *ret)
{
    hn_lex_space(p);
    const size_t n = hn_lex_word(p);
    *ret = (hn_tdesc){.dtype = hn_dtype_parse(p->at, n)};
    if (ret->dtype == HN_NONE) return FAIL(p, "\"%.*s\" is no dtype", (int)HN_MIN(n, 40), p->at);
    p->at += n;
    return *p->at == '[' ? (p->at++, extents(p, ret)) : HONE_OK;
}

static hone_status layout(hn_parser *p, int rank, hn_layout *ret)
{
    const size_t n = hn_lex_word(p);
    int seen = 0;
    if (!hn_layout_parse(p->at, n, ret)) return FAIL(p, "\"%.*s\" is no layout", (int)HN_MIN(n, 40), p->at);
    for (int i = 0; i < ret->n; i++) {
        if (ret->at[i].axis < 0 || ret->at[i].axis >= rank)
            return FAIL(p, "the layout names an axis that is not there");
        seen |= ret->at[i].block == 0 ? 1 << ret->at[i].axis : 0;
    }
    if (seen != (1 << rank) - 1) return FAIL(p, "the layout leaves an axis out");
    p->at += n;
    return HONE_OK;
}

typedef struct value_type {
    bool given;
    hn_vkind kind;
    hn_tdesc type;
    hn_layout layout;
} value_type;

static hone_status type(hn_parser *p, value_type *ret)
{
    *ret = (value_type){.given = true};
    if (hn_lex_take_word(p, "seq"))
        ret->kind = HN_SEQUENCE;
    else if (hn_lex_take_word(p, "opt"))
        ret->kind = HN_OPTIONAL;
    if (ret->kind != HN_TENSOR) {
        HN_TRY(hn_lex_expect(p, '('));
        HN_TRY(tensor_type(p, &ret->type));
        return hn_lex_expect(p, ')');
    }
    HN_TRY(tensor_type(p, &ret->type));
    return *p->at == '@' ? (p->at++, layout(p, ret->type.rank, &ret->layout)) : HONE_OK;
}

/* ---- symbols ---- */

static hone_status bound(hn_parser *p, int64_t *ret)
{
    if (hn_lex_take_word(p, "inf")) {
        *ret = INT64_MAX;
        return HONE_OK;
    }
    hn_lex_space(p);
    if (strncmp(p->at, "-inf", 4) == 0) {
        p->at += 4;
        *ret = INT64_MIN;
        return HONE_OK;
    }
    return hn_lex_integer(p, ret);
}

static hone_status bounds(hn_parser *p, hn_dim sym)
{
    const char *start = p->at;
    int64_t min, opt, max;
    HN_TRY(bound(p, &min));
    HN_TRY(hn_lex_expect(p, ','));
    HN_TRY(bound(p, &opt));
    HN_TRY(hn_lex_expect(p, ','));
    HN_TRY(bound(p, &max));
    HN_TRY(hn_lex_expect(p, ']'));
    if (min > opt || opt > max || (hn_sym_get(p->g->syms, sym)->kind == HN_SYM_INPUT && min < 0))
        return hn_lex_fail(p, start, "bounds are minimum, usual and maximum, in this order");
    hn_sym_set_bounds(p->g->syms, sym, min, opt, max);
    return HONE_OK;
}

/* "value[3]" or "value#1": remembered until a value of that name is made. */
static hone_status definer(hn_parser *p, hn_dim sym)
{
    int64_t k;
    struct hn_pending_dim d = {.sym = sym};
    const char *value;
    HN_TRY(hn_lex_name(p, &value));
    const bool axis = hn_lex_take(p, '#');
    if (!axis) HN_TRY(hn_lex_expect(p, '['));
    HN_TRY(hn_lex_integer(p, &k));
    if (!axis) HN_TRY(hn_lex_expect(p, ']'));
    if (k < 0 || k >= (axis ? HN_MAX_RANK : INT32_MAX)) return FAIL(p, "there is no such element or axis");
    d.elem = axis ? HN_DIM_OF_AXIS((int)k) : (int)k;
    d.name = hn_arena_strdup(p->arena, value);
    if (!d.name || !hn_vec_push(p->arena, &p->g->root->pending, d)) return HN_NOMEM(p->dg);
    hn_value *v = hn_graph_find(p->g, value); /* values made before the symbol is declared will not ask for it */
    return !v || hn_value_dim_add(p->g->root, sym, v, d.elem) ? HONE_OK : HN_NOMEM(p->dg);
}

static hone_status symbol(hn_parser *p)
{
    const char *start = p->at, *word;
    if (p->g->parent) return FAIL(p, "symbols are declared outside bodies");
    HN_TRY(hn_lex_name(p, &word));
    if (hn_sym_find(p->g->syms, word)) return hn_lex_fail(p, start, "symbol \"%s\" is already there", word);
    const bool by_value = hn_lex_take(p, '=');
    const hn_dim d = hn_sym_add(p->g->syms, word, by_value ? HN_SYM_VALUE : HN_SYM_INPUT);
    if (!d) return HN_NOMEM(p->dg);
    if (by_value && !hn_lex_take_word(p, "_")) HN_TRY(definer(p, d));
    return hn_lex_take(p, '[') ? bounds(p, d) : HONE_OK;
}

/* ---- inputs and constants ---- */

static hone_status new_name(hn_parser *p, const char **ret)
{
    hn_lex_space(p);
    const char *start = p->at;
    HN_TRY(hn_lex_name(p, ret));
    if (hn_graph_find(p->g, *ret)) return hn_lex_fail(p, start, "\"%s\" is already there", *ret);
    return HONE_OK;
}

static hone_status input(hn_parser *p)
{
    const char *word;
    value_type t;
    HN_TRY(new_name(p, &word));
    HN_TRY(type(p, &t));
    hn_value *v = hn_graph_input(p->g, word, &t.type);
    if (!v) return HN_NOMEM(p->dg);
    v->kind = t.kind;
    v->layout = t.layout;
    return HONE_OK;
}

static hone_status element(hn_parser *p, hn_dtype t, int64_t i, void *at)
{
    char buf[64];
    double f;
    int64_t x;
    const char *start = p->at;
    if (hn_dtype_is_float(t)) {
        HN_TRY(hn_lex_number(p, &f));
        if (isnan(f)) f = (double)NAN;
        hn_narrow_f64(t, &f, 1, at, i, true);
        return HONE_OK;
    }
    const char *s = hn_lex_number_text(p, buf);
    if (s && t == HN_U64 && *s >= '0' && *s <= '9' && s[strspn(s, "0123456789")] == '\0' && strlen(s) <= 20)
        x = (int64_t)strtoull(s, NULL, 10);
    else if (!s || !hn_parse_i64(s, &x))
        return hn_lex_fail(p, start, "an integer is expected here");
    if (hn_wrap_i64(t, x) != x)
        return hn_lex_fail(p, start, "%lld does not fit %s", (long long)x, hn_dtype_name(t));
    hn_narrow_i64(t, &x, 1, at, i);
    return HONE_OK;
}

static hone_status value_data(hn_parser *p, hn_dtype t, int64_t n, void *at)
{
    for (int64_t i = 0; i < n; i++) {
        if (i) HN_TRY(hn_lex_expect(p, ','));
        HN_TRY(element(p, t, i, at));
    }
    if (!hn_lex_take(p, '}')) return FAIL(p, "%lld elements are expected", (long long)n);
    return HONE_OK;
}

static hone_status hex_data(hn_parser *p, int64_t bytes, uint8_t *at)
{
    for (int64_t i = 0; i < bytes; i++) {
        const int hi = hn_lex_hex(p->at[0]), lo = hi < 0 ? -1 : hn_lex_hex(p->at[1]);
        if (lo < 0) return FAIL(p, "%lld bytes of two hex digits are expected", (long long)bytes);
        at[i] = (uint8_t)(16 * hi + lo);
        p->at += 2;
    }
    return hn_lex_hex(*p->at) < 0 ? HONE_OK
                                  : FAIL(p, "%lld bytes of two hex digits are expected", (long long)bytes);
}

static hone_status source_data(hn_parser *p, const char *word, int64_t bytes, hn_data *ret)
{
    const char *start = p->at;
    char digest[HN_DIGEST_TEXT] = {0};
    hn_digest d;
    const size_t n = hn_lex_word(p);
    if (n < sizeof digest) memcpy(digest, p->at, n);
    if (!hn_digest_parse(digest, &d)) return FAIL(p, "a digest of 32 hex digits is expected here");
    p->at += n;
    const hn_value *v = p->source ? hn_graph_find(p->source, word) : NULL;
    if (!v || !v->data || v->data->bytes != (size_t)bytes || !hn_digest_eq(hn_data_digest(v->data), d)) {
        hn_hint(p->dg, "texts leave out the bytes of large constants; parse them together with the graph "
                       "they came from");
        return hn_lex_fail(p, start, "the bytes of \"%s\" are not at hand", word);
    }
    *ret = *v->data;
    return HONE_OK;
}

static hone_status const_data(hn_parser *p, const char *word, const hn_tdesc *t, hn_data *ret)
{
    const char *start = p->at;
    const int64_t n = hn_tdesc_numel_static(t), bytes = n < 0 ? -1 : hn_dtype_bytes(t->dtype, n);
    if (bytes < 0) return FAIL(p, "a constant needs known extents");
    *ret = (hn_data){.bytes = (size_t)bytes};
    const bool given = hn_lex_take(p, '=');
    if (given && hn_lex_take(p, '#')) return source_data(p, word, bytes, ret);
    if (bytes > MAX_FILL_BYTES) return hn_lex_fail(p, start, "the constant is too large to be written");
    uint8_t *at = hn_arena_alloc(p->arena, (size_t)bytes + 1, 1);
    if (!at) return HN_NOMEM(p->dg);
    ret->at = at;
    if (!given) {
        hn_text_fill(word, t->dtype, n, at);
        return HONE_OK;
    }
    if (hn_lex_take(p, '{')) return value_data(p, t->dtype, n, at);
    hn_lex_space(p);
    if (strncmp(p->at, "0x", 2) != 0) return FAIL(p, "{numbers}, 0x bytes or a # digest are expected here");
    p->at += 2;
    return hex_data(p, bytes, at);
}

static hone_status constant(hn_parser *p)
{
    const char *word;
    value_type t;
    hn_data d = {0};
    HN_TRY(new_name(p, &word));
    HN_TRY(type(p, &t));
    if (t.kind != HN_TENSOR) return FAIL(p, "a constant is a tensor");
    HN_TRY(const_data(p, word, &t.type, &d));
    hn_value *v = hn_graph_const(p->g, word, &t.type, d.at, d.bytes);
    if (!v) return HN_NOMEM(p->dg);
    v->data->digest = d.digest;
    v->layout = t.layout;
    return HONE_OK;
}

/* ---- nodes ---- */

typedef struct statement {
    int n_out, n_in, n_attr;
    const char *out[MAX_RESULTS];
    value_type out_type[MAX_RESULTS];
    hn_value **in;
    hn_attr_set attr[HN_MAX_ATTR + 1];
    hn_graph *body[2];
    int n_body;
    const char **origin;
    int n_origin;
} statement;

static hone_status results(hn_parser *p, statement *s)
{
    do {
        if (s->n_out == MAX_RESULTS) return FAIL(p, "a node has at most %d results", MAX_RESULTS);
        hn_lex_space(p);
        const char *start = p->at;
        HN_TRY(new_name(p, &s->out[s->n_out]));
        for (int i = 0; i < s->n_out; i++)
            if (strcmp(s->out[i], s->out[s->n_out]) == 0)
                return hn_lex_fail(p, start, "\"%s\" is twice here", s->out[i]);
        hn_lex_space(p);
        if (*p->at != ',' && *p->at != '=') HN_TRY(type(p, &s->out_type[s->n_out]));
        s->n_out++;
    } while (hn_lex_take(p, ','));
    return hn_lex_expect(p, '=');
}

static hone_status operand(hn_parser *p, hn_value **ret)
{
    const char *word;
    *ret = NULL;
    if (hn_lex_take_word(p, "_")) return HONE_OK;
    hn_lex_space(p);
    const char *start = p->at;
    HN_TRY(hn_lex_name(p, &word));
    hn_value *v = hn_graph_find(p->g, word);
    if (!v || !hn_graph_encloses(v->graph, p->g))
        return hn_lex_fail(p, start, "there is no value \"%s\" here", word);
    *ret = v;
    return HONE_OK;
}

static hone_status operands(hn_parser *p, statement *s)
{
    HN_VEC(hn_value *) in = {0};
    HN_TRY(hn_lex_expect(p, '('));
    while (!hn_lex_take(p, ')')) {
        hn_value *v;
        if (in.n) HN_TRY(hn_lex_expect(p, ','));
        if (in.n == MAX_OPERANDS) return FAIL(p, "a node has at most %d operands", MAX_OPERANDS);
        HN_TRY(operand(p, &v));
        if (!hn_vec_push(p->scratch, &in, v)) return HN_NOMEM(p->dg);
    }
    s->in = in.at;
    s->n_in = in.n;
    return HONE_OK;
}

static hone_status attr_list(hn_parser *p, hn_attr_kind kind, hn_attr *ret)
{
    HN_VEC(int64_t) is = {0};
    HN_VEC(double) fs = {0};
    HN_TRY(hn_lex_expect(p, '['));
    for (int n = 0; !hn_lex_take(p, ']'); n++) {
        int64_t i = 0;
        double f = 0;
        if (n) HN_TRY(hn_lex_expect(p, ','));
        if (n == MAX_LIST) return FAIL(p, "the list is too long");
        HN_TRY(kind == HN_ATTR_FLOATS ? hn_lex_number(p, &f)
               : kind == HN_ATTR_DIMS ? dim(p, &i)
                                      : hn_lex_integer(p, &i));
        if (!(kind == HN_ATTR_FLOATS ? hn_vec_push(p->scratch, &fs, f) : hn_vec_push(p->scratch, &is, i)))
            return HN_NOMEM(p->dg);
    }
    if (kind == HN_ATTR_FLOATS) {
        ret->n = fs.n;
        ret->fs = fs.at;
        return HONE_OK;
    }
    ret->n = is.n;
    ret->is = is.at;
    return HONE_OK;
}

static hone_status attr_int(hn_parser *p, const hn_attr_schema *s, hn_attr *ret)
{
    hn_lex_space(p);
    if (!s->values) return hn_lex_integer(p, &ret->i);
    const size_t n = hn_lex_word(p);
    const int i = hn_text_enum_index(s->values, p->at, n);
    if (i < 0) return FAIL(p, "\"%s\" is one of %s", s->name, s->values);
    p->at += n;
    ret->i = i;
    return HONE_OK;
}

static hone_status attr_dtype(hn_parser *p, hn_attr *ret)
{
    hn_lex_space(p);
    const size_t n = hn_lex_word(p);
    ret->i = hn_dtype_parse(p->at, n);
    if (ret->i == HN_NONE && !(n == 4 && memcmp(p->at, "none", 4) == 0))
        return FAIL(p, "a dtype is expected here");
    p->at += n;
    return HONE_OK;
}

static hone_status attr_value(hn_parser *p, const hn_attr_schema *s, hn_attr *ret)
{
    switch (s->kind) {
    case HN_ATTR_INT:
        return attr_int(p, s, ret);
    case HN_ATTR_FLOAT:
        return hn_lex_number(p, &ret->f);
    case HN_ATTR_DIM:
        return dim(p, &ret->i);
    case HN_ATTR_DTYPE:
        return attr_dtype(p, ret);
    case HN_ATTR_STR:
        return hn_lex_text(p, &ret->s);
    case HN_ATTR_INTS:
    case HN_ATTR_DIMS:
    case HN_ATTR_FLOATS:
        break;
    }
    return attr_list(p, s->kind, ret);
}

static hone_status attr(hn_parser *p, const hn_op_def *op, statement *s)
{
    hn_lex_space(p);
    char key[64];
    const char *start = p->at;
    const size_t n = hn_lex_word(p);
    if (n == 0 || n >= sizeof key) return FAIL(p, "an attribute is expected here");
    memcpy(key, p->at, n);
    key[n] = '\0';
    const int i = hn_attr_index(op, key);
    if (i < 0) return FAIL(p, "%s has no attribute \"%s\"", op->name, key);
    for (int k = 0; k < s->n_attr; k++)
        if (s->attr[k].name == op->attrs[i].name)
            return hn_lex_fail(p, start, "attribute \"%s\" is twice here", key);
    p->at += n;
    HN_TRY(hn_lex_expect(p, '='));
    hn_attr_set *to = &s->attr[s->n_attr++];
    *to = (hn_attr_set){.name = op->attrs[i].name, .kind = op->attrs[i].kind, .v = {.set = true}};
    return attr_value(p, &op->attrs[i], &to->v);
}

static hone_status attrs(hn_parser *p, const hn_op_def *op, statement *s)
{
    while (!hn_lex_take(p, '}')) {
        if (s->n_attr) HN_TRY(hn_lex_expect(p, ','));
        HN_TRY(attr(p, op, s));
    }
    return HONE_OK;
}

static hone_status statements(hn_parser *p, char end);

static hone_status body(hn_parser *p, statement *s)
{
    hn_graph *outer = p->g;
    if (p->depth == HN_MAX_NESTING) return FAIL(p, "bodies are nested more than %d deep", HN_MAX_NESTING);
    hn_graph *g = hn_subgraph_new(outer, NULL);
    if (!g) return HN_NOMEM(p->dg);
    p->g = g;
    p->depth++;
    HN_TRY(statements(p, '}'));
    p->depth--;
    p->g = outer;
    s->body[s->n_body++] = g;
    return HONE_OK;
}

/* "{" opens attributes when "key=" of this op follows and no call does: bodies begin with statements. */
static bool opens_attrs(hn_parser *p, const hn_op_def *op)
{
    const char *start = p->at;
    char key[64];
    bool yes = false;
    if (hn_lex_take(p, '{')) {
        hn_lex_space(p);
        const size_t n = hn_lex_word(p);
        if (!hn_op_n_body(op->id) || *p->at == '}') {
            p->at = start;
            return true;
        }
        if (n > 0 && n < sizeof key) {
            memcpy(key, p->at, n);
            key[n] = '\0';
            p->at += n;
            yes = hn_attr_index(op, key) >= 0 && hn_lex_take(p, '=');
            hn_lex_space(p);
            p->at += yes ? hn_lex_word(p) : 0;
            yes = yes && *p->at != '(';
        }
    }
    p->at = start;
    return yes;
}

static hone_status origins(hn_parser *p, statement *s)
{
    HN_VEC(const char *) list = {0};
    do {
        const char *word;
        hn_lex_space(p);
        const char *start = p->at;
        HN_TRY(hn_lex_text(p, &word));
        if (list.n && strcmp(list.at[list.n - 1], word) >= 0)
            return hn_lex_fail(p, start, "origins are sorted and unique");
        word = hn_arena_strdup(p->arena, word);
        if (!word || !hn_vec_push(p->arena, &list, word)) return HN_NOMEM(p->dg);
    } while (hn_lex_take(p, ','));
    s->origin = list.at;
    s->n_origin = list.n;
    return HONE_OK;
}

static hone_status check_types(hn_parser *p, const char *start, const statement *s, hn_node *n)
{
    for (int i = 0; i < n->n_out; i++) {
        const value_type *t = &s->out_type[i];
        hn_value *v = n->out[i];
        if (!t->given) continue;
        if (t->kind != v->kind || !hn_tdesc_eq(&t->type, &v->type)) {
            hn_str got = {0};
            hn_tdesc_print(p->g->syms, &v->type, &got);
            const hone_status st =
                hn_lex_fail(p, start, "\"%s\" is %s, not what the text says", v->name, hn_str_get(&got));
            hn_str_done(&got);
            return st;
        }
        v->layout = t->layout;
    }
    return HONE_OK;
}

static hone_status build(hn_parser *p, const char *start, const hn_op_def *op, const statement *s)
{
    hn_builder b;
    hn_builder_init(&b, p->g, p->dg);
    b.origin = s->origin;
    b.n_origin = s->n_origin;
    const hn_build_args args = {.op = op->id,
                                .n_in = s->n_in,
                                .in = s->in,
                                .n_out = s->n_out,
                                .attrs = s->attr,
                                .out_name = s->out,
                                .n_body = s->n_body,
                                .body = s->body};
    hn_node *n = hn_build_full(&b, &args);
    if (n) return check_types(p, start, s, n);
    hn_diag where = {0};
    hn_parser q = *p;
    q.dg = &where;
    (void)hn_lex_fail(&q, start, "this statement");
    hn_diag_frame(p->dg, "%s", where.message);
    return b.status;
}

static hone_status parse_node(hn_parser *p, statement *s)
{
    const char *start = p->at;
    HN_TRY(results(p, s));
    hn_lex_space(p);
    const size_t n = hn_lex_word(p);
    const hn_op_def *op = hn_op_find(p->at, n);
    if (!op) return FAIL(p, "there is no op \"%.*s\"", (int)HN_MIN(n, 60), p->at);
    p->at += n;
    HN_TRY(operands(p, s));
    if (opens_attrs(p, op)) {
        (void)hn_lex_take(p, '{');
        HN_TRY(attrs(p, op, s));
    }
    while (s->n_body < hn_op_n_body(op->id)) {
        HN_TRY(hn_lex_expect(p, '{'));
        HN_TRY(body(p, s));
    }
    if (hn_lex_take_word(p, "from")) HN_TRY(origins(p, s));
    return build(p, start, op, s);
}

static hone_status node(hn_parser *p)
{
    statement *s = calloc(1, sizeof *s);
    if (!s) return HN_NOMEM(p->dg);
    const hone_status st = parse_node(p, s);
    free(s);
    return st;
}

/* ---- statements ---- */

static hone_status output(hn_parser *p)
{
    hn_value *v;
    const char *word = NULL, *start = p->at;
    HN_TRY(operand(p, &v));
    if (!v) return hn_lex_fail(p, start, "an output cannot be absent");
    if (hn_lex_take_word(p, "as")) HN_TRY(hn_lex_name(p, &word));
    hn_graph_output(p->g, v, word);
    return HONE_OK;
}

static hone_status graph_name(hn_parser *p)
{
    const char *word;
    if (p->g->parent) return FAIL(p, "a body has no name");
    HN_TRY(hn_lex_text(p, &word));
    p->g->name = hn_arena_strdup(p->arena, word);
    return p->g->name ? HONE_OK : HN_NOMEM(p->dg);
}

static hone_status one_statement(hn_parser *p)
{
    if (hn_lex_take_word(p, "sym")) return symbol(p);
    if (hn_lex_take_word(p, "in")) return input(p);
    if (hn_lex_take_word(p, "const")) return constant(p);
    if (hn_lex_take_word(p, "out")) return output(p);
    if (hn_lex_take_word(p, "graph")) return graph_name(p);
    return node(p);
}

static hone_status statements(hn_parser *p, char end)
{
    for (;;) {
        hn_lex_space(p);
        if (*p->at == end) {
            p->at += end != '\0';
            return HONE_OK;
        }
        if (*p->at == '\0') return FAIL(p, "the text ends inside a body");
        HN_TRY(one_statement(p));
        if (hn_arena_oom(p->arena)) return HN_NOMEM(p->dg);
    }
}

static bool defines(const hn_value *v, int elem)
{
    if (elem < 0) return v->kind != HN_TENSOR || -1 - elem < v->type.rank;
    return v->kind == HN_TENSOR && !hn_dtype_is_float(v->type.dtype);
}

static hone_status all_bound(hn_parser *p)
{
    const hn_graph *root = p->g;
    for (int i = 0; i < root->pending.n; i++) {
        const struct hn_pending_dim *d = &root->pending.at[i];
        const hn_value *v = hn_graph_find(root, d->name);
        if (!v)
            return FAIL(p, "symbol \"%s\" is defined by \"%s\", which is not there", hn_sym_name(root->syms, d->sym),
                        d->name);
        if (!defines(v, d->elem))
            return FAIL(p, "symbol \"%s\" is defined by an element or axis that \"%s\" does not have",
                        hn_sym_name(root->syms, d->sym), d->name);
    }
    return HONE_OK;
}

hone_status hn_parse_like(hn_arena *a, const char *src, const hn_graph *source, hn_graph **ret, hn_diag *dg)
{
    hn_parser p = {.text = src, .at = src, .arena = a, .dg = dg, .source = source, .g = hn_graph_new(a, "")};
    p.scratch = hn_arena_create();
    hn_graph *g = p.g;
    hone_status st = p.scratch && g ? statements(&p, '\0') : HN_NOMEM(dg);
    if (st == HONE_OK) st = all_bound(&p);
    hn_arena_destroy(p.scratch);
    if (st == HONE_OK) {
        g->pending.n = 0;
        *ret = g;
    }
    return st;
}

hone_status hn_parse(hn_arena *a, const char *src, hn_graph **ret, hn_diag *dg)
{
    return hn_parse_like(a, src, NULL, ret, dg);
}
