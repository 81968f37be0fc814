/* The validator: each broken invariant is found, and nothing else. */
#include "ir/graphs.h"

#include <string.h>

static const char sample[] =
    "sym n\nin x f32[n,4]  in c bool  const w f32[4]  i, m = nonzero(x)\n"
    "y = add(x, w)  z = if(c) { a = neg(y)  out a } { out x }  q = relu(z)  out q  out i";

typedef struct sample_graph {
    hn_graph *g;
    hn_node *nonzero, *add, *branch, *relu;
    hn_graph *body;
} sample_graph;

static sample_graph make(hn_test *t)
{
    sample_graph s = {.g = hn_test_graph(t, sample)};
    s.nonzero = s.g->first;
    s.add = s.nonzero->next;
    s.branch = s.add->next;
    s.relu = s.branch->next;
    s.body = s.branch->body[0];
    hn_test_valid(s.g);
    return s;
}

static void finds(const hn_graph *g, bool full, const char *part)
{
    hn_diags list = {0};
    char text[1024] = "";
    CHECK(!hn_validate(g, full, &list));
    bool found = false;
    for (int i = 0; i < list.n; i++) {
        hn_diag_format(&list.at[i], text, sizeof text);
        found = found || strstr(text, part);
    }
    if (!found) FAIL("%d problems, none says \"%s\"; the last: %s", list.n, part, text);
    hn_diags_done(&list);
    CHECK(!hn_validate(g, full, NULL)); /* a list is not required */
}

TEST(validate_node_list_links)
{
    sample_graph s = make(t);
    s.relu->prev = s.add;
    finds(s.g, false, "the list of nodes is broken");
}

TEST(validate_node_count)
{
    sample_graph s = make(t);
    s.g->n_node++;
    finds(s.g, false, "the list of nodes has");
}

TEST(validate_node_cycle)
{
    sample_graph s = make(t);
    s.relu->next = s.nonzero;
    finds(s.g, false, "the list of nodes");
}

TEST(validate_node_owner)
{
    sample_graph s = make(t);
    s.add->graph = s.body;
    finds(s.g, false, "does not belong to");
}

TEST(validate_node_id)
{
    sample_graph s = make(t);
    s.add->id = s.relu->id;
    finds(s.g, false, "taken");
    s.add->id = 1u << 30;
    finds(s.g, false, "out of range");
}

TEST(validate_op)
{
    sample_graph s = make(t);
    s.add->op = (hn_op)65;
    finds(s.g, false, "op 65 is not known");
}

TEST(validate_order)
{
    sample_graph s = make(t);
    hn_set_in(s.add, 1, s.relu->out[0]);
    finds(s.g, false, "before it is made");
}

TEST(validate_scope)
{
    sample_graph s = make(t);
    hn_set_in(s.relu, 0, s.body->first->out[0]);
    finds(s.g, false, "where it cannot be seen");
}

TEST(validate_unlinked_producer)
{
    sample_graph s = make(t);
    hn_value *y = s.add->out[0];
    hn_set_in(s.body->first, 0, s.g->in[0]);
    hn_unlink(s.add);
    hn_set_in(s.relu, 0, y);
    finds(s.g, false, "cannot be seen");
}

TEST(validate_use_place)
{
    sample_graph s = make(t);
    s.add->in[1].index = 0;
    finds(s.g, false, "operand 1 does not know its place");
    s = make(t);
    s.add->in[1].node = s.relu;
    finds(s.g, false, "operand 1 does not know its place");
    s = make(t);
    s.g->out[0].index = 1;
    finds(s.g, false, "output 0 does not know its place");
}

TEST(validate_use_lists)
{
    sample_graph s = make(t);
    s.add->in[0].value = s.body->out[0].value; /* silently, past the lists */
    finds(s.g, true, "cannot be seen");
    s = make(t);
    s.relu->in[0].value = s.add->out[0];
    finds(s.g, true, "missing from its list");
    s = make(t);
    s.add->out[0]->n_uses++;
    finds(s.g, false, "it says 2 uses");
}

TEST(validate_results)
{
    sample_graph s = make(t);
    s.add->out[0]->def_index = 1;
    finds(s.g, false, "does not know its producer");
    s = make(t);
    s.add->out[0] = NULL;
    finds(s.g, false, "result 0 is missing");
    s = make(t);
    s.add->out[0]->data = s.g->consts.at[0]->data;
    finds(s.g, false, "both a producer and data");
}

TEST(validate_value_identity)
{
    sample_graph s = make(t);
    s.add->out[0]->graph = s.body;
    finds(s.g, false, "does not belong to");
    s = make(t);
    s.add->out[0]->id = s.relu->out[0]->id;
    finds(s.g, false, "taken");
    s = make(t);
    s.add->out[0]->name = "";
    finds(s.g, false, "no name");
    s = make(t);
    s.add->out[0]->name = "q";
    finds(s.g, false, "the same name");
    s = make(t);
    s.add->out[0]->kind = (hn_vkind)7;
    finds(s.g, false, "no known kind");
}

TEST(validate_types)
{
    sample_graph s = make(t);
    s.add->out[0]->type.dtype = HN_NONE;
    finds(s.g, false, "no dtype");
    s = make(t);
    s.add->out[0]->type.rank = 11;
    finds(s.g, false, "rank 11");
    s = make(t);
    s.add->out[0]->type.dim[1] = hn_dim_const(s.g->syms, -3);
    finds(s.g, false, "extent 1 is -3");
    s = make(t);
    s.add->out[0]->type.dim[1] = 5;
    finds(s.g, true, "not of the type that inference gives");
    s = make(t);
    s.branch->out[0]->kind = HN_SEQUENCE;
    finds(s.g, true, "node \"");
}

TEST(validate_layout)
{
    sample_graph s = make(t);
    s.add->out[0]->layout = hn_layout_blocked(3, 2, 8);
    finds(s.g, false, "no axis or block");
    s = make(t);
    s.add->out[0]->layout = (hn_layout){.n = 1};
    finds(s.g, false, "leaves an axis out");
}

TEST(validate_content)
{
    sample_graph s = make(t);
    static const hn_dim d[3];
    s.nonzero->out[1]->content = d;
    s.nonzero->out[1]->n_content = 3;
    finds(s.g, false, "3 elements are known");
}

TEST(validate_symbols)
{
    sample_graph s = make(t);
    s.g->sym_dims.n = 0;
    finds(s.g, false, "whose definer is gone");
    s = make(t);
    s.g->value_dims.at[0].value->dims = 0;
    finds(s.g, false, "nothing leads there");
    s = make(t);
    s.g->value_dims.at[0].value = s.g->in[0];
    finds(s.g, false, "holds no integers");
    s = make(t);
    s.g->value_dims.at[0].elem = HN_DIM_OF_AXIS(5);
    finds(s.g, false, "an axis that it does not have");
    s = make(t);
    s.g->value_dims.at[0].sym = hn_sym_find(s.g->syms, "n");
    finds(s.g, false, "no run-time symbol");
}

TEST(validate_consts)
{
    sample_graph s = make(t);
    s.g->consts.at[0]->data->bytes = 15;
    finds(s.g, false, "holds 15 bytes where its type needs 16");
    s = make(t);
    s.g->consts.at[0]->data = NULL;
    finds(s.g, false, "without data");
    s = make(t);
    s.g->consts.at[0]->def = s.add;
    finds(s.g, false, "a constant with a producer");
    s = make(t);
    s.g->in[0]->def = s.add;
    finds(s.g, false, "an input with a producer");
}

TEST(validate_counts)
{
    sample_graph s = make(t);
    s.relu->n_in = 0;
    finds(s.g, false, "cannot have 0 operands");
    s = make(t);
    s.add->n_out = 0;
    finds(s.g, false, "cannot have 0 results");
    s = make(t);
    hn_set_in(s.add, 0, NULL);
    finds(s.g, false, "operand 0 of add is missing");
}

TEST(validate_required_attributes)
{
    hn_graph *g = hn_test_graph(t, "in x f32[2,3]  y = cast(x) {to=f16}  out y");
    g->first->attr[0].set = false;
    finds(g, false, "attribute \"to\" is missing");
}

TEST(validate_origins)
{
    sample_graph s = make(t);
    static const char *const origin[] = {"/b", "/a"};
    s.add->origin = origin;
    s.add->n_origin = 2;
    finds(s.g, false, "not sorted");
}

TEST(validate_bodies)
{
    sample_graph s = make(t);
    s.branch->body[1] = NULL;
    finds(s.g, false, "body 1 is missing");
    s = make(t);
    s.branch->body[1]->owner = s.add;
    finds(s.g, false, "does not know its owner");
    s = make(t);
    s.branch->n_body = 1;
    finds(s.g, false, "1 bodies");
}

TEST(validate_outputs)
{
    sample_graph s = make(t);
    s.g->out[0].value = NULL;
    finds(s.g, false, "output 0 is missing");
    s = make(t);
    s.g->out_name[0] = NULL;
    finds(s.g, false, "output 0 has no name");
}

TEST(validate_inference_refuses)
{
    sample_graph s = make(t);
    hn_set_in(s.add, 1, s.g->in[1]); /* f32 + bool */
    finds(s.g, true, "node \"y\"");
    CHECK(hn_validate(s.g, false, NULL));
}

TEST(validate_counts_every_problem)
{
    sample_graph s = make(t);
    hn_diags list = {0};
    s.add->out[0]->type.dtype = HN_NONE;
    s.relu->out[0]->type.dtype = HN_NONE;
    CHECK(!hn_validate(s.g, false, &list));
    CHECK_EQ(list.n, 2);
    hn_diags_done(&list);
}
