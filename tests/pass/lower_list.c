/* Lists as tensors: every list op against the evaluation of the list ops themselves, in and out of control flow. */
#include "pass_test.h"

#include "eval/eval.h"

#define LIST_IN "in f f32[n]  in s i64[m,11]\nl = list_unpack(f, s) {kind=sequence, dim=[-1]}\n"
#define PACK    "\na, b = list_pack(r)\nout a\nout b"

typedef struct form {
    const char *text;
    int64_t i; /* value of the input that is named so */
} form;

static void tensor(hn_tensor *t, hn_dtype dtype, int rank, int64_t rows, int64_t columns, void *data)
{
    *t = (hn_tensor){ .type = { .dtype = dtype, .rank = rank, .dim = { rows, columns } }, .data = data };
    t->bytes = (size_t)hn_dtype_bytes(dtype, hn_tdesc_numel_static(&t->type));
}

/* Three vectors of 2, 0 and 3 elements. */
static void inputs(const hn_graph *g, int64_t *i, hn_tensor *in)
{
    static float flat[5] = { 1, 2, 3, 4, 5 };
    static int64_t shapes[33];
    static const int64_t len[3] = { 2, 0, 3 };
    for (int k = 0; k < 33; k++) shapes[k] = k % 11 == 1 ? len[k / 11] : 1;
    for (int k = 0; k < g->n_in; k++) {
        const char *name = g->in[k]->name;
        if (name[0] == 'f') tensor(&in[k], HN_F32, 1, 5, 0, flat);
        else if (name[0] == 's') tensor(&in[k], HN_I64, 2, 3, 11, shapes);
        else tensor(&in[k], HN_I64, 0, 0, 0, i);
    }
}

static hone_status evaluate(hn_graph *g, int64_t i, hn_tensor *out, hn_diag *dg)
{
    hn_tensor in[4] = { { 0 } };
    inputs(g, &i, in);
    return hn_eval_run(g, NULL, in, out, dg);
}

static void lower(hn_graph *g)
{
    hn_diag dg = { 0 };
    hn_pass_ctx c = { .scratch = hn_arena_create(), .allow_inexact = true };
    const hn_pass_debug debug = { .validate = true };
    static const hn_pipeline_step step[] = { { "lower_list", 0 }, { NULL, 0 } };
    static const hn_pipeline p = { "lists", step, 1 };
    CHECK_OK(hn_pipeline_run(g, &p, &c, &debug, NULL, NULL, &dg), &dg);
    hn_arena_destroy(c.scratch);
}

static bool any_list(const hn_graph *g)
{
    HN_FOR_NODES (n, g) {
        if (n->op >= HN_OP_seq_construct && n->op <= HN_OP_list_pack) return true;
        for (int i = 0; i < n->n_body; i++)
            if (any_list(n->body[i])) return true;
    }
    return false;
}

static void check_form(const form *x)
{
    hn_arena *a = hn_arena_create();
    hn_graph *g = NULL, *h = NULL;
    hn_tensor want[4] = { { 0 } }, got[4] = { { 0 } };
    hn_diag dg = { 0 };
    CHECK_OK(hn_parse(a, x->text, &g, &dg), &dg);
    CHECK_OK(hn_parse(a, x->text, &h, &dg), &dg);
    lower(h);
    CHECK(!any_list(h));
    const hone_status s = evaluate(g, x->i, want, &dg);
    hn_diag dg2 = { 0 };
    const hone_status s2 = evaluate(h, x->i, got, &dg2);
    CHECK_EQ(s == HONE_OK, s2 == HONE_OK);
    for (int i = 0; s == HONE_OK && i < g->n_out; i++) {
        hn_metric m;
        CHECK_OK(hn_metric_compare(&got[i], &want[i], NULL, 0, 0, &m, &dg), &dg);
        CHECK(m.l0 == 0);
    }
    for (int i = 0; i < 4; i++) {
        hn_tensor_done(&want[i]);
        hn_tensor_done(&got[i]);
    }
    hn_arena_destroy(a);
}

TEST(lower_list_keeps_numbers)
{
    static const form forms[] = {
        { LIST_IN "in i i64[]\nr = seq_at(l, i)\ny = neg(r)\nout y", 0 },
        { LIST_IN "in i i64[]\nr = seq_at(l, i)\ny = neg(r)\nout y", 1 },
        { LIST_IN "in i i64[]\nr = seq_at(l, i)\ny = neg(r)\nout y", -1 },
        { LIST_IN "in i i64[]\nr = seq_at(l, i)\ny = neg(r)\nout y", 3 },  /* refused, both ways */
        { LIST_IN "in i i64[]\nr = seq_at(l, i)\ny = neg(r)\nout y", -4 },
        { LIST_IN "n = seq_length(l)\nout n", 0 },
        { LIST_IN "in i i64[]\nr = seq_insert(l, f, i)" PACK, 0 },
        { LIST_IN "in i i64[]\nr = seq_insert(l, f, i)" PACK, 2 },
        { LIST_IN "in i i64[]\nr = seq_insert(l, f, i)" PACK, 3 },
        { LIST_IN "in i i64[]\nr = seq_insert(l, f, i)" PACK, 4 },
        { LIST_IN "r = seq_insert(l, f)" PACK, 0 },
        { LIST_IN "in i i64[]\nr = seq_erase(l, i)" PACK, 0 },
        { LIST_IN "in i i64[]\nr = seq_erase(l, i)" PACK, -2 },
        { LIST_IN "r = seq_erase(l)" PACK, 0 },
        { LIST_IN "y = seq_concat(l) {axis=0}\nz = neg(y)\nout z", 0 },
        { LIST_IN "in i i64[]\nx = reshape(f) {dim=[1,5,1]}\nr = seq_split(x, i) {axis=1}\ny = seq_concat(r) {axis=1}\n"
                  "a, b = list_pack(r)\nout a\nout b\nz = neg(y)\nout z", 2 },
        { "in f f32[12]  in i i64[]\nx = reshape(f) {dim=[2,3,2]}\nr = seq_split(x, i) {axis=1}" PACK, 2 },
        { "in f f32[12]\nx = reshape(f) {dim=[2,3,2]}\nr = seq_split(x) {axis=1, keepdims=0}" PACK, 0 },
        { "in f f32[12]\nx = reshape(f) {dim=[2,3,2]}\nr = seq_split(x) {axis=2}\ny = seq_concat(r) {axis=1, new_axis=1}\nout y", 0 },
        { "in f f32[n]\no = opt_make(f)\nh = opt_has(o)\nr = opt_get(o)\ny = neg(r)\nout h\nout y", 0 },
        { "in f f32[n]\no = opt_make() {dtype=f32}\nh = opt_has(o)\na, b = list_pack(o)\nout h\nout a\nout b", 0 },
        { "in f f32[n]\no = seq_construct() {dtype=f32, absent=1}\nh = opt_has(o)\na, b = list_pack(o)\nout h\nout a\nout b", 0 },
    };
    for (int i = 0; i < HN_COUNT(forms); i++) check_form(&forms[i]);
}
