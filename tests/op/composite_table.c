/* What every row of the table promises. */
#include <string.h>

#include "composite_test.h"
#include "ir/op.h"

TEST(table_is_complete)
{
    static const struct {
        int id;
        const char *name;
    } rows[] = {
#define X(id_, name_) { id_, #name_ },
#include "ir/ops.def"
#undef X
    };

    for (int i = 0; i < HN_COUNT(rows); i++) {
        const hn_op_def *op = hn_op_get((hn_op)rows[i].id);
        hn_test_note("op %s", rows[i].name);
        CHECK(op != NULL);
        CHECK_EQ(op->id, rows[i].id);
        CHECK_STR(op->name, rows[i].name);
        CHECK(op->doc && *op->doc);
        CHECK(op->infer != NULL);
        CHECK(op->min_in <= op->max_in && op->min_out <= op->max_out);
        CHECK(hn_op_find(rows[i].name, strlen(rows[i].name)) == op);
    }
}

TEST(table_composites_expand_and_compute)
{
    for (int id = 1; id < HN_OP_END; id++) {
        const hn_op_def *op = hn_op_get((hn_op)id);
        if (!op) continue;
        hn_test_note("op %s", op->name);
        CHECK_EQ((op->traits & HN_TRAIT_COMPOSITE) != 0, op->expand != NULL);
        if (op->traits & HN_TRAIT_COMPOSITE) CHECK(op->ref && op->work);
        for (int i = 0; i < op->n_attr; i++)
            CHECK_EQ(hn_attr_index(op, op->attrs[i].name), i); /* no name twice */
    }
}

/* Work counts grow with the operands and never come out negative or NaN. */
TEST(table_work_of_composites)
{
    static const char *const texts[] = {
        "in x f32[1,8,8,8]  y = softmax(x)  out y",
        "in q f32[1,2,8,4]  in k f32[1,2,8,4]  in v f32[1,2,8,4]  y = attention(q, k, v)  out y",
        "in x f32[8,2,3]  in w f32[1,16,3]  in r f32[1,16,4]  y = lstm(x, w, r)  out y",
        "in x f32[1,8,8,8]  y = resize(x) {dim=[1,8,16,16], mode=linear}  out y",
        "in x f32[8,8]  y = det(x)  out y",
        "in x f32[2,64,2]  y = dft(x) {axis=1}  out y",
        "sym n [1,16,64]  in x f32[1,8,n]  y = gelu(x)  out y",
    };

    for (int i = 0; i < HN_COUNT(texts); i++) {
        hn_diag dg = { 0 };
        hn_graph *g;
        hn_call c;
        hn_work w = { -1, -1 };
        CHECK_OK(hn_parse(t->arena, texts[i], &g, &dg), &dg);
        CHECK_OK(hn_call_of_node(g->first, t->arena, &c, &dg), &dg);
        c.op->work(&c, &w);
        hn_test_note("%s", texts[i]);
        CHECK(w.flops > 0 && w.bytes > 0 && w.flops < 1e9);
    }
}
