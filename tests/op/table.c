/* What every definition must hold, whoever wrote it. */
#include "harness.h"

#include <string.h>

#include "eval/eval.h"
#include "ir/op.h"

static const struct {
    hn_op id;
    const char *name;
} rows[] = {
#define X(id_, name_) { HN_OP_##name_, #name_ },
#include "ir/ops.def"
#undef X
};

/* Run by the evaluator itself: bodies and lists have no working form. */
static bool has_no_reference(const hn_op_def *op)
{
    return (op->traits & HN_TRAIT_CONTROL) || (op->id >= HN_OP_seq_construct && op->id <= HN_OP_list_pack);
}

TEST(table_is_complete)
{
    for (int i = 0; i < HN_COUNT(rows); i++) {
        const hn_op_def *op = hn_op_get(rows[i].id);
        hn_test_note("%s", rows[i].name);
        CHECK(op);
        CHECK_EQ(op->id, rows[i].id);
        CHECK_STR(op->name, rows[i].name);
        CHECK(op->doc && op->doc[0] && strlen(op->doc) < 100);
        CHECK(op->infer);
        CHECK((op->ref == NULL) == has_no_reference(op));
        CHECK((op->expand != NULL) == ((op->traits & HN_TRAIT_COMPOSITE) != 0));
        CHECK(op->min_in >= 0 && op->min_in <= op->max_in && op->max_in <= HN_VARIADIC);
        CHECK(op->min_out >= 0 && op->min_out <= op->max_out && op->max_out <= HN_VARIADIC);
        if (i) CHECK(rows[i].id > rows[i - 1].id);
    }
}

TEST(table_is_found_by_name)
{
    for (int i = 0; i < HN_COUNT(rows); i++)
        CHECK(hn_op_find(rows[i].name, strlen(rows[i].name)) == hn_op_get(rows[i].id));
    CHECK(!hn_op_find("frobnicate", 10));
    CHECK(!hn_op_find("ad", 2));
    CHECK(!hn_op_get(HN_OP_NONE));
    CHECK(!hn_op_get(HN_OP_END));
}

TEST(schemas_are_sound)
{
    for (int i = 0; i < HN_COUNT(rows); i++) {
        const hn_op_def *op = hn_op_get(rows[i].id);
        CHECK(op->n_attr <= HN_MAX_ATTR);
        for (int a = 0; a < op->n_attr; a++) {
            hn_test_note("%s, attribute %d", op->name, a);
            CHECK(op->attrs[a].name && op->attrs[a].name[0]);
            CHECK_EQ(hn_attr_index(op, op->attrs[a].name), a); /* unique too */
            CHECK(!op->attrs[a].values || op->attrs[a].kind == HN_ATTR_INT);
        }
    }
}

TEST(traits_agree)
{
    for (int i = 0; i < HN_COUNT(rows); i++) {
        const hn_op_def *op = hn_op_get(rows[i].id);
        const uint32_t traits = op->traits;
        hn_test_note("%s", op->name);
        CHECK(!(traits & HN_TRAIT_PURE) || !(traits & HN_TRAIT_RANDOM));
        CHECK((traits & HN_TRAIT_PURE) || (traits & (HN_TRAIT_RANDOM | HN_TRAIT_CONTROL)));
        CHECK(!(traits & HN_TRAIT_COMMUTATIVE) || (op->min_in == 2 && (traits & HN_TRAIT_POINTWISE)));
        CHECK(!(traits & HN_TRAIT_INPLACE) || op->max_in > 0);
        for (int d = 0; d < HN_NDTYPES; d++)
            CHECK(op->tol[d].rel >= 0 && op->tol[d].abs >= 0 && op->tol[d].rel < 1e5);
        /* Views copy: nothing to tolerate. */
        if (traits & HN_TRAIT_VIEW) CHECK(op->tol[HN_F32].rel == 0 && op->tol[HN_F32].abs == 0);
    }
}

/* No operands, absent operands, and bare scalars of every dtype: answers, never crashes. */
TEST(inference_survives_nonsense)
{
    hn_symtab *syms = hn_symtab_new(t->arena);
    for (int i = 0; i < HN_COUNT(rows); i++) {
        const hn_op_def *op = hn_op_get(rows[i].id);
        hn_attr attr[HN_MAX_ATTR] = { 0 };
        for (int a = 0; a < op->n_attr; a++)
            if (op->attrs[a].kind == HN_ATTR_FLOAT)
                attr[a].f = op->attrs[a].dflt_f;
            else if (op->attrs[a].kind == HN_ATTR_STR)
                attr[a].s = op->attrs[a].dflt_s ? op->attrs[a].dflt_s : "";
            else if (op->attrs[a].kind == HN_ATTR_INT || op->attrs[a].kind == HN_ATTR_DIM ||
                     op->attrs[a].kind == HN_ATTR_DTYPE)
                attr[a].i = op->attrs[a].dflt_i;
        for (int d = HN_NONE; d < HN_NDTYPES; d++) {
            hn_tdesc in[10], out[10] = { 0 };
            hn_vkind kind[10] = { 0 }, out_kind[10] = { 0 };
            const hn_dim *content[10] = { 0 };
            const hn_data *data[10] = { 0 };
            int n_content[10] = { 0 };
            for (int k = 0; k < 10; k++)
                in[k] = (hn_tdesc){ .dtype = (hn_dtype)d };
            const int n_in = HN_MIN(HN_MAX(op->max_in == HN_VARIADIC ? 3 : op->max_in, op->min_in), 10);
            hn_call c = { .op = op,
                          .attr = attr,
                          .n_in = n_in,
                          .n_out = HN_MIN(op->max_out, 8),
                          .in = in,
                          .in_kind = kind,
                          .out = out,
                          .out_kind = out_kind,
                          .content = content,
                          .n_content = n_content,
                          .data = data,
                          .syms = syms };
            hn_diag dg = { 0 };
            hn_test_note("%s on scalars of %s", op->name, hn_dtype_name((hn_dtype)d));
            if (op->infer(&c, &dg) != HONE_OK)
                CHECK(dg.message[0]);
            else
                for (int o = 0; o < op->min_out; o++)
                    CHECK(out[o].dtype != HN_NONE && out[o].rank >= 0 && out[o].rank <= HN_MAX_RANK);
        }
    }
}

static void work_of(hn_test *t, const char *text, double flops, double bytes)
{
    hn_graph *g;
    hn_call c;
    hn_diag dg = { 0 };
    hn_work w = { -1, -1 };

    CHECK_OK(hn_parse(t->arena, text, &g, &dg), &dg);
    CHECK_OK(hn_call_of_node(g->last, t->arena, &c, &dg), &dg);
    c.op->work(&c, &w);
    hn_test_note("%s", text);
    CHECK_NEAR(w.flops, flops, 0);
    CHECK_NEAR(w.bytes, bytes, 0);
}

TEST(work_counts_flops_and_bytes)
{
    work_of(t, "in a f32[2,3]  in b f32[3]  y = add(a, b)  out y", 6, 4 * (6 + 3 + 6));
    work_of(t, "in a f16[8,4]  in b f16[4,2]  y = matmul(a, b)  out y", 2 * 8 * 4 * 2, 2 * (32 + 8 + 16));
    work_of(t, "in a f32[4,8]  in b f32[2,4]  y = matmul(a, b) {trans_a=1, trans_b=1}  out y", 2 * 8 * 4 * 2,
            4 * (32 + 8 + 16));
    work_of(t, "in x f32[1,2,4,4]  in w f32[3,2,3,3]  y = conv(x, w)  out y", 2 * 18 * 12,
            4 * (32 + 54 + 12));
    work_of(t, "in x f32[2,3]  y = transpose(x) {perm=[1, 0]}  out y", 0, 48);
    work_of(t, "in x f32[2,3]  y = reduce_sum(x) {axes=[1]}  out y", 6, 4 * 8);
    /* symbols count at the extent to optimise for */
    work_of(t, "sym n [1,16,64]  in x f32[n]  y = neg(x)  out y", 16, 128);
    work_of(t, "in x i4[5]  y = cast(x) {to=i8}  out y", 5, 2.5 + 5);
}
