/* A model as a whole: file, header, inputs with their symbols and bounds, outputs, the report. */
#include "import/import_int.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"

void hn_im_problem(hn_im *m, hn_diag *dg)
{
    if (dg->code == HONE_OK) return;
    if (m->n_problem++ == 0) m->first = *dg;
    if (m->problems) hn_diags_add(m->problems, dg);
    if (dg->code == HONE_E_NOMEM || hn_arena_oom(m->arena) || hn_arena_oom(m->scratch)) m->stop = true;
    hn_diag_clear(dg);
}

/* ---- symbols ---- */

/* Exporters write "?", "None", "" or whole formulas where they know no name: such a dim is nobody else's. */
static bool is_plain_name(const char *s)
{
    if (!s || !(isalpha((unsigned char)*s) || *s == '_')) return false;
    if (strcmp(s, "None") == 0 || strcmp(s, "unk") == 0 || strncmp(s, "unk__", 5) == 0) return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("_-. :/", *s)) return false;
    return true;
}

/* Symbols are words: everything else becomes '_'. */
static char *word(hn_arena *a, const char *s)
{
    char *w = hn_arena_printf(a, "%s%s", isdigit((unsigned char)*s) ? "_" : "", s);
    for (char *p = w; p && *p; p++)
        if (!isalnum((unsigned char)*p)) *p = '_';
    return w;
}

static bool dim_option(const hn_im *m, const char *name, int64_t *ret)
{
    for (int i = 0; m->opts && name && i < m->opts->n_dim; i++)
        if (strcmp(m->opts->dim[i].name, name) == 0) {
            *ret = m->opts->dim[i].value;
            return true;
        }
    return false;
}

static const hn_import_profile *profile_of(const hn_im *m, const char *input)
{
    for (int i = 0; m->opts && i < m->opts->n_profile; i++)
        if (strcmp(m->opts->profile[i].input, input) == 0) return &m->opts->profile[i];
    return NULL;
}

/* The symbol of one unnamed or named dim; the caller's numbers for it win. */
static hn_dim symbol(hn_im *m, const char *input, int axis, const char *param)
{
    char *own = hn_arena_printf(m->scratch, "%s.%d", input, axis);
    char *name = is_plain_name(param) ? word(m->scratch, param) : own ? word(m->scratch, own) : NULL;
    int64_t fixed;
    if (!name) return 0;
    if ((dim_option(m, own, &fixed) && fixed >= 0) || dim_option(m, param, &fixed) || dim_option(m, name, &fixed))
        return fixed;
    const hn_dim d = hn_sym_find(m->root->syms, name);
    return d ? d : hn_sym_add(m->root->syms, name, HN_SYM_INPUT);
}

/* ---- types ---- */

static hone_status shape(hn_im *m, const Onnx__TensorShapeProto *s, const char *name, hn_tdesc *ret,
                         hn_diag *dg)
{
    if (s->n_dim > HN_MAX_RANK)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "\"%s\" has rank %zu, above the limit of %d", name, s->n_dim,
                        HN_MAX_RANK);
    ret->rank = (int)s->n_dim;
    for (int i = 0; i < ret->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *d = s->dim[i];
        int64_t fixed;
        /* 0 and -1 are written for "unknown" by exporters that have no names. */
        if (d->has_dim_value && d->dim_value > 0) {
            char *own = hn_arena_printf(m->scratch, "%s.%d", name, i);
            ret->dim[i] = own && dim_option(m, own, &fixed) ? fixed : d->dim_value;
            if (ret->dim[i] == HN_IMPORT_OPEN) ret->dim[i] = symbol(m, name, i, NULL);
        } else if (d->has_dim_value && d->dim_value < -1) {
            return HN_RAISE(dg, HONE_E_MODEL, "extent %d of \"%s\" is %" PRId64, i, name, d->dim_value);
        } else {
            ret->dim[i] = symbol(m, name, i, d->dim_param);
        }
        if (hn_dim_is_const(ret->dim[i])) continue;
        int64_t known;
        if (hn_dim_known(m->root->syms, ret->dim[i], &known))
            return HN_RAISE(dg, HONE_E_INVALID, "extent %d of \"%s\" is asked to be %" PRId64, i, name,
                            known);
    }
    const int64_t n = hn_tdesc_is_static(ret) ? hn_tdesc_numel_static(ret) : 0;
    if (n < 0 || n > INT64_MAX / 8) return HN_RAISE(dg, HONE_E_LIMIT, "\"%s\" has more elements than 64 bits count", name);
    return HONE_OK;
}

hone_status hn_im_type(hn_im *m, const Onnx__TypeProto *p, const char *name, hn_vkind *ret_kind,
                       hn_tdesc *ret, hn_diag *dg)
{
    hn_vkind kind = HN_TENSOR;
    if (p && p->optional_type) {
        kind = HN_OPTIONAL;
        p = p->optional_type->elem_type;
    }
    if (p && p->sequence_type) { /* an optional sequence is taken as one that is there */
        kind = HN_SEQUENCE;
        p = p->sequence_type->elem_type;
    }
    if (!p || !p->tensor_type)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED,
                        "\"%s\" is neither a tensor nor a sequence or optional of tensors", name);
    hn_tdesc d = { .dtype = hn_im_dtype_of(p->tensor_type->elem_type) };
    if (d.dtype == HN_NONE) {
        if (p->tensor_type->elem_type == 8) hn_hint(dg, "string ops must be done before the model");
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "\"%s\" has elements of type %s", name,
                        hn_im_onnx_type_name(p->tensor_type->elem_type));
    }
    if (p->tensor_type->shape) {
        HN_TRY(shape(m, p->tensor_type->shape, name, &d, dg));
    } else if (kind == HN_TENSOR) {
        const hn_import_profile *prof = profile_of(m, name);
        if (!prof) {
            hn_hint(dg, "give the input's shape, for example as a profile");
            return HN_RAISE(dg, HONE_E_UNSUPPORTED, "\"%s\" has no declared rank", name);
        }
        d.rank = HN_MIN(prof->rank, HN_MAX_RANK);
        for (int i = 0; i < d.rank; i++)
            d.dim[i] = symbol(m, name, i, NULL);
    }
    *ret_kind = kind;
    *ret = d;
    return HONE_OK;
}

/* ---- inputs ---- */

static hone_status apply_bounds(hn_im *m, const hn_import_profile *p, const char *name, int i, hn_dim *d,
                                hn_diag *dg)
{
    const int64_t lo = p->min[i], opt = p->opt[i], hi = p->max[i];
    if (lo < 0 || lo > opt || opt > hi)
        return HN_RAISE(dg, HONE_E_INVALID,
                        "the profile of \"%s\" has bounds %" PRId64 ", %" PRId64 ", %" PRId64 " for axis %d",
                        name, lo, opt, hi, i);
    if (hn_dim_is_const(*d)) {
        if (lo <= *d && *d <= hi) return HONE_OK;
        return HN_RAISE(dg, HONE_E_INVALID,
                        "axis %d of \"%s\" is %" PRId64 ", outside the profile's %" PRId64 " to %" PRId64, i,
                        name, *d, lo, hi);
    }
    const hn_sym *s = hn_sym_get(m->root->syms, *d);
    if (!s) return HONE_OK;
    const bool fresh = s->min <= 1 && s->max == INT64_MAX;
    if (!fresh && (s->min != lo || s->max != hi))
        return HN_RAISE(dg, HONE_E_INVALID,
                        "profiles bound \"%s\" to %" PRId64 "..%" PRId64 " and to %" PRId64 "..%" PRId64,
                        s->name, s->min, s->max, lo, hi);
    hn_sym_set_bounds(m->root->syms, *d, lo, opt, hi);
    return HONE_OK;
}

/* A profile of one value fixes an extent for everyone who shares the symbol, so these go first. */
static void fix_by_profiles(hn_im *m, const Onnx__GraphProto *g, hn_import_dim *fixed, int *ret_n, int cap)
{
    for (size_t k = 0; k < g->n_input; k++) {
        const Onnx__ValueInfoProto *vi = g->input[k];
        const hn_import_profile *p = vi->name ? profile_of(m, vi->name) : NULL;
        if (!p || !vi->type || !vi->type->tensor_type || !vi->type->tensor_type->shape) continue;
        const Onnx__TensorShapeProto *s = vi->type->tensor_type->shape;
        for (int i = 0; i < p->rank && (size_t)i < s->n_dim; i++) {
            if (p->min[i] != p->max[i] || p->min[i] < 0 || *ret_n == cap) continue;
            const char *param = s->dim[i]->dim_param;
            const char *own = hn_arena_printf(m->scratch, "%s.%d", vi->name, i);
            if (!s->dim[i]->has_dim_value || s->dim[i]->dim_value <= 0)
                fixed[(*ret_n)++] = (hn_import_dim){ is_plain_name(param) ? param : own, p->min[i] };
        }
    }
}

static hone_status add_tensor_input(hn_im *m, const char *name, hn_tdesc type, hn_value **ret, hn_diag *dg)
{
    const hn_import_profile *p = profile_of(m, name);
    if (p && p->rank != type.rank)
        return HN_RAISE(dg, HONE_E_INVALID, "the profile of \"%s\" has rank %d, the input %d", name, p->rank, type.rank);
    for (int i = 0; p && i < type.rank; i++)
        HN_TRY(apply_bounds(m, p, name, i, &type.dim[i], dg));
    *ret = hn_graph_input(m->root, name, &type);
    return *ret ? HONE_OK : HN_NOMEM(dg);
}

static const char *shapes_name(hn_im *m, const char *list)
{
    return hn_arena_printf(m->scratch, "%s.shapes", list);
}

/* A list comes in as two tensors: its elements one after another under its name, and their shapes. */
static hone_status add_list_input(hn_im *m, const char *name, const hn_tdesc *element, int kind, hn_value **ret, hn_diag *dg)
{
    hn_value *in[2];
    int64_t dim[HN_MAX_RANK];
    hn_builder b;
    const char *shapes = shapes_name(m, name);
    if (!shapes) return HN_NOMEM(dg);
    const hn_tdesc type[] = { { .dtype = element->dtype, .rank = 1, .dim = { symbol(m, name, 0, NULL) } },
                              { .dtype = HN_I64, .rank = 2, .dim = { symbol(m, shapes, 0, NULL), HN_LIST_COLUMNS } } };
    HN_TRY(add_tensor_input(m, name, type[0], &in[0], dg));
    HN_TRY(add_tensor_input(m, shapes, type[1], &in[1], dg));
    for (int i = 0; i < element->rank; i++) dim[i] = hn_dim_is_const(element->dim[i]) ? element->dim[i] : -1;
    hn_builder_init(&b, m->root, dg);
    *ret = hn_b2(&b, HN_OP_list_unpack, in[0], in[1],
                 HN_ATTRS_ARG(HN_A_I("kind", kind), HN_A_IS("dim", element->rank, dim)));
    return b.status;
}

static hone_status add_input(hn_im *m, hn_im_scope *s, const Onnx__ValueInfoProto *vi, hn_diag *dg)
{
    hn_tdesc type;
    hn_vkind kind;
    hn_value *v;
    if (!vi->name || !vi->name[0]) return HN_RAISE(dg, HONE_E_MODEL, "a graph input has no name");
    HN_TRY(hn_im_type(m, vi->type, vi->name, &kind, &type, dg));
    const int list = kind == HN_OPTIONAL ? HN_LIST_OPTIONAL : vi->type->optional_type ? HN_LIST_MAYBE_SEQUENCE : HN_LIST_SEQUENCE;
    if (kind == HN_TENSOR) HN_TRY(add_tensor_input(m, vi->name, type, &v, dg));
    else HN_TRY(add_list_input(m, vi->name, &type, list, &v, dg));
    if (!hn_im_define(m, s, vi->name, v, dg)) return dg->code;
    return HONE_OK;
}

static const hn_import_value *value_of(const hn_im *m, const char *input)
{
    for (int i = 0; m->opts && i < m->opts->n_value; i++)
        if (strcmp(m->opts->value[i].input, input) == 0) return &m->opts->value[i];
    return NULL;
}

/* An input whose value the caller gives. */
static hone_status add_value(hn_im *m, hn_im_scope *s, const Onnx__ValueInfoProto *vi,
                             const hn_import_value *v, hn_diag *dg)
{
    const Onnx__TypeProto__Tensor *t = vi->type ? vi->type->tensor_type : NULL;
    const int64_t bytes = hn_dtype_bytes(v->type.dtype, hn_tdesc_numel_static(&v->type));
    if (bytes < 0) return HN_RAISE(dg, HONE_E_INVALID, "the value of \"%s\" has no fixed size", vi->name);
    if (!t || hn_im_dtype_of(t->elem_type) != v->type.dtype ||
        (t->shape && t->shape->n_dim != (size_t)v->type.rank))
        return HN_RAISE(dg, HONE_E_TYPE, "the value of \"%s\" is %s of rank %d, which the input is not",
                        vi->name, hn_dtype_name(v->type.dtype), v->type.rank);
    void *at = hn_arena_alloc(m->arena, (size_t)bytes + 1, 1);
    if (!at) return HN_NOMEM(dg);
    if (bytes) memcpy(at, v->data, (size_t)bytes);
    hn_value *c = hn_graph_const(m->root, vi->name, &v->type, at, (size_t)bytes);
    if (!c) return HN_NOMEM(dg);
    return hn_im_define(m, s, vi->name, c, dg) ? HONE_OK : dg->code;
}

static bool kept(const hn_im *m, const char *name)
{
    for (int i = 0; m->opts && i < m->opts->n_keep_input; i++)
        if (strcmp(m->opts->keep_input[i], name) == 0) return true;
    return false;
}

/* A name that is no input's would change nothing: surely not what was meant. */
static void check_input_name(hn_im *m, const Onnx__GraphProto *g, const char *what, const char *name)
{
    hn_diag dg = { 0 };
    const char **names = HN_NEW_N(m->scratch, const char *, (int)g->n_input + 1);
    int n = 0;
    for (size_t i = 0; names && i < g->n_input; i++)
        if (g->input[i]->name && g->input[i]->name[0]) names[n++] = g->input[i]->name;
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return;
    const char *near = hn_nearest(name, names, n);
    if (near) hn_hint(&dg, "Did you mean \"%s\"?", near);
    else if (n > 0) hn_hint(&dg, "The model's first input is \"%s\".", names[0]);
    HN_RAISE(&dg, HONE_E_INVALID, "a %s is given for \"%s\", which is no input of the model", what, name);
    hn_im_problem(m, &dg);
}

static void inputs(hn_im *m, hn_im_scope *s, const Onnx__GraphProto *g)
{
    for (int i = 0; m->opts && i < m->opts->n_profile; i++) check_input_name(m, g, "shape", m->opts->profile[i].input);
    for (int i = 0; m->opts && i < m->opts->n_value; i++) check_input_name(m, g, "value", m->opts->value[i].input);
    for (size_t i = 0; i < g->n_input && !m->stop; i++) {
        hn_diag dg = { 0 };
        const char *name = g->input[i]->name;
        const hn_im_name *have = name ? hn_im_map_get(&s->names, name) : NULL;
        if (have && (have->tensor || have->sparse))
            continue; /* has a default: a constant unless the caller keeps it */
        const hn_import_value *given = name ? value_of(m, name) : NULL;
        const hone_status st =
            given ? add_value(m, s, g->input[i], given, &dg) : add_input(m, s, g->input[i], &dg);
        if (st != HONE_OK) {
            hn_diag_frame(&dg, "graph input %zu", i);
            hn_im_problem(m, &dg);
            hn_im_name *bad = HN_NEW(m->scratch, hn_im_name);
            if (!bad || !name) continue;
            bad->bad = true;
            (void)hn_im_map_put(m->scratch, &s->names, name, bad);
        }
    }
}

static hone_status add_list_output(hn_im *m, hn_value *v, const char *name, hn_diag *dg)
{
    hn_builder b;
    const char *shapes = shapes_name(m, name);
    hn_builder_init(&b, m->root, dg);
    hn_node *n = hn_build(&b, HN_OP_list_pack, 1, &v, HN_NO_ATTRS, 2);
    if (!n || !shapes) return b.status ? b.status : HN_NOMEM(dg);
    hn_graph_output(m->root, n->out[0], name);
    hn_graph_output(m->root, n->out[1], shapes);
    return HONE_OK;
}

static void outputs(hn_im *m, hn_im_scope *s, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_output && !m->stop; i++) {
        hn_diag dg = { 0 };
        bool bad = false;
        const Onnx__ValueInfoProto *vi = g->output[i];
        const bool named = vi->name && vi->name[0];
        hn_value *v = named ? hn_im_lookup(m, s, vi->name, &bad, &dg) : NULL;
        if (!named) HN_RAISE(&dg, HONE_E_MODEL, "a graph output has no name");
        else if (!v && !bad && dg.code == HONE_OK)
            HN_RAISE(&dg, HONE_E_MODEL, "output \"%s\" is not computed", vi->name);
        const int32_t elem = vi->type && vi->type->tensor_type ? vi->type->tensor_type->elem_type : 0;
        if (v && hn_im_dtype_of(elem) != HN_NONE && hn_im_dtype_of(elem) != v->type.dtype &&
            v->kind == HN_TENSOR)
            HN_RAISE(&dg, HONE_E_TYPE, "output \"%s\" is declared %s but computed as %s", vi->name,
                     hn_dtype_name(hn_im_dtype_of(elem)), hn_dtype_name(v->type.dtype));
        if (v && v->kind != HN_TENSOR && dg.code == HONE_OK) (void)add_list_output(m, v, vi->name, &dg);
        else if (v && dg.code == HONE_OK) hn_graph_output(m->root, v, vi->name);
        if (dg.code == HONE_OK) continue;
        hn_diag_frame(&dg, "graph output %zu", i);
        hn_im_problem(m, &dg);
    }
}

/* ---- the whole ---- */

static hone_status check_header(hn_im *m, hn_diag *dg)
{
    const Onnx__ModelProto *p = m->model;
    if (!p->graph) {
        hn_hint(dg, "is this an ONNX model? A tensor or another protobuf file reads like this");
        return HN_RAISE(dg, HONE_E_FORMAT, "the file holds no graph");
    }
    if (p->has_ir_version && p->ir_version > HN_ONNX_IR_MAX) {
        hn_hint(dg, "export the model with an older ONNX, or use a newer Hone");
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "the file has IR version %" PRId64 ", the newest known is %d",
                        p->ir_version, HN_ONNX_IR_MAX);
    }
    for (size_t i = 0; i < p->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = p->opset_import[i];
        if (o->domain && o->domain[0] && strcmp(o->domain, "ai.onnx") != 0) continue;
        if (o->version > HN_ONNX_OPSET_MAX) {
            hn_hint(dg, "export the model for opset %d or older, or use a newer Hone", HN_ONNX_OPSET_MAX);
            return HN_RAISE(dg, HONE_E_UNSUPPORTED,
                            "the model uses opset %" PRId64 ", the newest known is %d", o->version,
                            HN_ONNX_OPSET_MAX);
        }
    }
    return HONE_OK;
}

static void import_graph(hn_im *m)
{
    const Onnx__GraphProto *g = m->model->graph;
    hn_im_scope *s = hn_im_scope_new(m, NULL, m->root, "");
    hn_im_frame *f = HN_NEW(m->scratch, hn_im_frame);
    if (!s || !f || !hn_im_index_opsets(m, m->model->opset_import, m->model->n_opset_import, &m->opsets) ||
        !hn_im_index_functions(m)) {
        m->stop = true;
        return;
    }
    f->opsets = &m->opsets;
    s->frame = f;
    hn_im_initializers(m, s, g);
    for (size_t i = 0; i < g->n_input; i++) { /* defaults that the caller wants to override stay inputs */
        hn_im_name *n = g->input[i]->name ? hn_im_map_get(&s->names, g->input[i]->name) : NULL;
        if (n && kept(m, g->input[i]->name)) *n = (hn_im_name){ .kept = true };
    }
    inputs(m, s, g);
    hn_im_nodes(m, s, g->node, g->n_node);
    outputs(m, s, g);
    if (m->n_problem == 0) hn_sweep_dead(m->root); /* shape arithmetic that became symbols */
}

static hone_status finish(hn_im *m, hn_diag *dg)
{
    if (hn_arena_oom(m->arena) || hn_arena_oom(m->scratch)) {
        if (dg) hn_diag_clear(dg);
        return HN_NOMEM(dg);
    }
    if (m->n_problem == 0) return HONE_OK;
    if (dg) {
        *dg = m->first;
        if (m->n_problem > 1) hn_diag_frame(dg, "the first of %d problems in the model", m->n_problem);
    }
    return m->first.code;
}

static hone_status import_model(hn_im *m, const void *bytes, size_t n, hn_diag *dg)
{
    hn_import_opts opts = m->opts ? *m->opts : (hn_import_opts){ 0 };
    ProtobufCMessage *msg;

    HN_TRY(hn_im_unpack(m->arena, m->scratch, &onnx__model_proto__descriptor, bytes, n, &msg, dg));
    m->model = (const Onnx__ModelProto *)msg;
    HN_TRY(check_header(m, dg));
    m->root = hn_graph_new(m->arena, m->model->graph->name ? m->model->graph->name : "");
    if (!m->root) return HN_NOMEM(dg);
    /* the caller's fixed dims, then those that a profile fixes */
    const int cap = opts.n_dim + opts.n_profile * HN_MAX_RANK;
    hn_import_dim *fixed = HN_NEW_N(m->scratch, hn_import_dim, cap + 1);
    if (!fixed) return HN_NOMEM(dg);
    if (opts.n_dim) memcpy(fixed, opts.dim, (size_t)opts.n_dim * sizeof *fixed);
    fix_by_profiles(m, m->model->graph, fixed, &opts.n_dim, cap);
    opts.dim = fixed;
    m->opts = &opts;
    import_graph(m);
    m->opts = NULL;
    return finish(m, dg);
}

static hone_status import_bytes(hn_arena *a, const void *bytes, size_t n, int base_fd,
                                const hn_import_opts *opts, hn_graph **ret, hn_diags *problems, hn_diag *dg)
{
    hn_im m = {
        .arena = a, .opts = opts, .problems = problems, .base_fd = base_fd, .scratch = hn_arena_create(),
        .budget = HN_IM_FREE_INNER + (int64_t)n,
    };
    if (!m.scratch) return HN_NOMEM(dg);
    hn_diag own = { 0 };
    const hone_status s = import_model(&m, bytes, n, &own);
    if (s == HONE_OK) {
        *ret = m.root;
    } else {
        if (m.n_problem == 0 && problems) hn_diags_add(problems, &own);
        if (dg) *dg = own;
    }
    hn_arena_destroy(m.scratch);
    return s;
}

hone_status hn_import_mem(hn_arena *a, const void *bytes, size_t n, const char *base_dir,
                          const hn_import_opts *opts, hn_graph **ret, hn_diags *problems, hn_diag *dg)
{
    int fd = -1;
    if (base_dir) {
        fd = open(base_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) return HN_RAISE(dg, HONE_E_IO, "folder \"%s\": %s", base_dir, strerror(errno));
    }
    const hone_status s = import_bytes(a, bytes, n, fd, opts, ret, problems, dg);
    if (fd >= 0) close(fd);
    return s;
}

hone_status hn_import_file(hn_arena *a, const char *path, const hn_import_opts *opts, hn_graph **ret,
                           hn_diags *problems, hn_diag *dg)
{
    HN_CLEANUP(hn_unmap) hn_bytes src = { 0 };
    const char *slash = strrchr(path, '/');
    char *dir = slash == path ? strdup("/") : slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
    if (!dir) return HN_NOMEM(dg);
    hone_status s = hn_map_file(path, &src, dg);
    if (s == HONE_OK) s = hn_import_mem(a, src.at, src.n, dir, opts, ret, problems, dg);
    if (s != HONE_OK) hn_diag_frame(dg, "model \"%s\"", path);
    free(dir);
    return s;
}
