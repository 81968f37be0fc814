/*
 * Content hash of a computation.
 *
 * Values are numbered as a depth-first walk from the outputs meets them, operands first, so that neither
 * names, ids, the order of independent nodes nor dead nodes count, while sharing does (a kernel for x*x is
 * not one for x*y). Symbols are numbered by first appearance, with kind and bounds.
 */
#include "ir/ir_int.h"

#include <stdlib.h>
#include <string.h>

typedef struct digester {
    const hn_graph *root;
    hn_arena *arena;
    hn_hasher h;
    int64_t *number; /* by value id; 0: not met */
    int64_t next;
    int64_t *sym_number; /* by -handle; 0: not met */
    int64_t n_sym_number, next_sym;
    uint64_t *dim_hash; /* by -handle; 0: not yet. Expressions share parts */
    int64_t n_dim_hash;
    int nesting; /* of the graph that is hashed */
    bool oom;
} digester;

/* ---- dims ---- */

static int64_t number_symbol(digester *d, hn_dim sym)
{
    int64_t *n = &d->sym_number[-sym];
    if (*n) return *n;
    const hn_sym *s = hn_sym_get(d->root->syms, sym);
    *n = ++d->next_sym;
    hn_hasher_i64(&d->h, 'S');
    hn_hasher_i64(&d->h, s->kind);
    hn_hasher_i64(&d->h, s->min);
    hn_hasher_i64(&d->h, s->opt);
    hn_hasher_i64(&d->h, s->max);
    if (s->kind != HN_SYM_VALUE) return *n;
    HN_FOR_DIMS_OF_SYM (v, d->root, sym) {
        hn_hasher_i64(&d->h, d->number[v->value->id]);
        hn_hasher_i64(&d->h, v->elem);
    }
    return *n;
}

static bool is_commutative(hn_expr_op op)
{
    return op == HN_EX_ADD || op == HN_EX_MUL || op == HN_EX_MIN || op == HN_EX_MAX || op == HN_EX_EQ;
}

static int order_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t hash_dim(digester *d, hn_dim dim, int depth);

enum { MAX_TERMS = 256, MAX_DIM_DEPTH = 4000 };

/* Terms of a chain of one operator; what does not fit is hashed as a chain of its own. */
static void gather_terms(digester *d, hn_expr_op op, hn_dim dim, uint64_t *term, int *n, int depth)
{
    hn_dim x[3];
    int64_t known;
    if (*n < MAX_TERMS - 2 && !hn_dim_known(d->root->syms, dim, &known) &&
        hn_dim_expr(d->root->syms, dim, x) == op && op != HN_EX_EQ) {
        gather_terms(d, op, x[0], term, n, depth + 1);
        gather_terms(d, op, x[1], term, n, depth + 1);
        return;
    }
    term[(*n)++] = hash_dim(d, dim, depth + 1);
}

/* The expression as numbers; symbol order inside commutative operators, which follows names, does not count.
 */
static uint64_t hash_expr(digester *d, hn_dim dim, int depth)
{
    uint64_t part[MAX_TERMS + 2];
    hn_dim x[3] = {0};
    int n = 0;
    const hn_expr_op op = hn_dim_expr(d->root->syms, dim, x);
    if (op == HN_EX_SYM) {
        const int64_t number = number_symbol(d, dim);
        return hn_hash64(&number, sizeof number, 2);
    }
    if (is_commutative(op)) {
        gather_terms(d, op, x[0], part, &n, depth);
        gather_terms(d, op, x[1], part, &n, depth);
        qsort(part, (size_t)n, sizeof *part, order_u64);
    } else
        for (; n < 3; n++)
            part[n] = hash_dim(d, x[n], depth + 1);
    return hn_hash64(part, (size_t)n * sizeof *part, 16 + (uint64_t)op);
}

static bool grow_dim_hash(digester *d, int64_t need)
{
    const int64_t n = HN_MAX(need + 1, 2 * d->n_dim_hash);
    uint64_t *at = HN_NEW_N(d->arena, uint64_t, n);
    if (!at) return false;
    for (int64_t i = 0; i < d->n_dim_hash; i++)
        at[i] = d->dim_hash[i];
    d->dim_hash = at;
    d->n_dim_hash = n;
    return true;
}

static uint64_t hash_dim(digester *d, hn_dim dim, int depth)
{
    int64_t known;
    if (hn_dim_known(d->root->syms, dim, &known)) return hn_hash64(&known, sizeof known, 1);
    if (depth > MAX_DIM_DEPTH || (-dim >= d->n_dim_hash && !grow_dim_hash(d, -dim))) {
        d->oom = true;
        return 0;
    }
    if (!d->dim_hash[-dim]) {
        const uint64_t h = hash_expr(d, dim, depth);
        d->dim_hash[-dim] = h;
    }
    return d->dim_hash[-dim];
}

static void add_dim(digester *d, hn_dim dim)
{
    hn_hasher_i64(&d->h, (int64_t)hash_dim(d, dim, 0));
}

/* ---- values ---- */

static void add_type(digester *d, const hn_value *v)
{
    hn_hasher_i64(&d->h, v->kind);
    hn_hasher_i64(&d->h, v->type.dtype);
    hn_hasher_i64(&d->h, v->type.rank);
    for (int i = 0; i < v->type.rank; i++)
        add_dim(d, v->type.dim[i]);
    const int n = hn_layout_is_plain(&v->layout) ? 0 : v->layout.n;
    hn_hasher_i64(&d->h, n);
    for (int i = 0; i < n; i++) {
        hn_hasher_i64(&d->h, v->layout.at[i].axis);
        hn_hasher_i64(&d->h, v->layout.at[i].block);
    }
}

static void number_value(digester *d, const hn_value *v)
{
    d->number[v->id] = ++d->next;
}

static void add_const(digester *d, const hn_value *v)
{
    const hn_digest x = hn_data_digest(v->data);
    number_value(d, v);
    hn_hasher_i64(&d->h, 'C');
    add_type(d, v);
    hn_hasher_i64(&d->h, (int64_t)x.lo);
    hn_hasher_i64(&d->h, (int64_t)x.hi);
}

/* ---- nodes ---- */

static void add_list(digester *d, hn_attr_kind kind, const hn_attr *a)
{
    hn_hasher_i64(&d->h, a->set);
    hn_hasher_i64(&d->h, a->set ? a->n : 0);
    for (int i = 0; a->set && i < a->n; i++) {
        if (kind == HN_ATTR_FLOATS)
            hn_hasher_bytes(&d->h, &a->fs[i], sizeof a->fs[i]);
        else if (kind == HN_ATTR_DIMS)
            add_dim(d, a->is[i]);
        else
            hn_hasher_i64(&d->h, a->is[i]);
    }
}

static void add_attr(digester *d, const hn_attr_schema *s, const hn_attr *a)
{
    const double f = a->set ? a->f : s->dflt_f;
    switch (s->kind) {
    case HN_ATTR_INT:
    case HN_ATTR_DTYPE:
        hn_hasher_i64(&d->h, a->set ? a->i : s->dflt_i);
        break;
    case HN_ATTR_FLOAT:
        hn_hasher_bytes(&d->h, &f, sizeof f);
        break;
    case HN_ATTR_DIM:
        add_dim(d, a->set ? a->i : s->dflt_i);
        break;
    case HN_ATTR_STR:
        hn_hasher_str(&d->h, a->set ? a->s : s->dflt_s ? s->dflt_s : "");
        break;
    case HN_ATTR_INTS:
    case HN_ATTR_DIMS:
    case HN_ATTR_FLOATS:
        add_list(d, s->kind, a);
        break;
    }
}

static int nesting(const hn_graph *g)
{
    int n = 0;
    for (; g->parent; g = g->parent)
        n++;
    return n;
}

static void visit(digester *d, const hn_value *v);

static void add_signature(digester *d, const hn_graph *g)
{
    hn_hasher_i64(&d->h, 'I');
    hn_hasher_i64(&d->h, g->n_in);
    for (int i = 0; i < g->n_in; i++) {
        number_value(d, g->in[i]);
        add_type(d, g->in[i]);
    }
}

static void add_outputs(digester *d, const hn_graph *g)
{
    for (int i = 0; i < g->n_out; i++)
        visit(d, g->out[i].value);
    hn_hasher_i64(&d->h, 'O');
    hn_hasher_i64(&d->h, g->n_out);
    for (int i = 0; i < g->n_out; i++)
        hn_hasher_i64(&d->h, d->number[g->out[i].value->id]);
}

/* Its operands are numbered. Where it stands counts: a node in a branch runs when the branch does. */
static void add_node(digester *d, const hn_node *n)
{
    const hn_op_def *op = hn_op_of(n);
    hn_hasher_i64(&d->h, 'N');
    hn_hasher_i64(&d->h, n->op);
    hn_hasher_i64(&d->h, nesting(n->graph) - d->nesting);
    hn_hasher_i64(&d->h, n->n_in);
    for (int i = 0; i < n->n_in; i++)
        hn_hasher_i64(&d->h, n->in[i].value ? d->number[n->in[i].value->id] : 0);
    for (int i = 0; i < n->n_body; i++) {
        if (!n->body[i]) continue;
        add_signature(d, n->body[i]);
        add_outputs(d, n->body[i]);
    }
    for (int i = 0; i < n->n_out; i++)
        number_value(d, n->out[i]);
    hn_hasher_i64(&d->h, n->n_out);
    for (int i = 0; i < n->n_out; i++)
        add_type(d, n->out[i]);
    for (int i = 0; op && i < op->n_attr; i++)
        add_attr(d, &op->attrs[i], &n->attr[i]);
}

/* ---- the walk: an explicit stack, since graphs are deeper than stacks ---- */

typedef struct frame {
    const hn_node *n;
    int next; /* operand to look at */
} frame;

static bool settled(digester *d, const hn_value *v)
{
    if (!v || d->number[v->id]) return true;
    if (v->data) {
        add_const(d, v);
        return true;
    }
    if (v->def) return false;
    number_value(d, v); /* a parameter of an enclosing graph, read by an extracted body */
    hn_hasher_i64(&d->h, 'P');
    add_type(d, v);
    return true;
}

static void visit(digester *d, const hn_value *v)
{
    HN_VEC(frame) stack = {0};
    if (settled(d, v)) return;
    if (!hn_vec_push(d->arena, &stack, ((frame){v->def, 0}))) d->oom = true;
    while (stack.n > 0 && !d->oom) {
        frame *f = &stack.at[stack.n - 1];
        if (f->next == f->n->n_in) {
            const hn_node *n = f->n;
            stack.n--;
            if (n->n_out == 0 || !d->number[n->out[0]->id]) add_node(d, n);
            continue;
        }
        const hn_value *x = f->n->in[f->next++].value;
        if (!settled(d, x) && !hn_vec_push(d->arena, &stack, ((frame){x->def, 0}))) d->oom = true;
    }
}

static bool init(digester *d, const hn_graph *g)
{
    *d = (digester){.root = g->root, .arena = hn_arena_create()};
    if (!d->arena) return false;
    for (int i = 0; i < hn_sym_count(d->root->syms); i++)
        d->n_sym_number = HN_MAX(d->n_sym_number, 1 - hn_sym_at(d->root->syms, i));
    d->number = HN_NEW_N(d->arena, int64_t, d->root->next_id + 1);
    d->sym_number = HN_NEW_N(d->arena, int64_t, d->n_sym_number + 1);
    hn_hasher_init(&d->h);
    d->nesting = nesting(g);
    return d->number && d->sym_number;
}

hn_digest hn_graph_digest(const hn_graph *g)
{
    digester d;
    hn_digest r = {0, 0};
    if (init(&d, g)) {
        add_signature(&d, g);
        add_outputs(&d, g);
        if (!d.oom) r = hn_hasher_end(&d.h);
    }
    hn_arena_destroy(d.arena);
    return r;
}
