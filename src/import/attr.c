/* A node's attributes: typed access, references into function calls, and a note of which were read. */
#include "import/import_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    T_FLOAT = 1,
    T_INT,
    T_STRING,
    T_TENSOR,
    T_GRAPH,
    T_FLOATS,
    T_INTS,
    T_STRINGS,
    T_TENSORS,
    T_GRAPHS,
    T_SPARSE,
    T_TYPE = 13
};

static const char *type_name(int type)
{
    static const char *const names[] = { "nothing",        "a float", "an int", "a string",
                                         "a tensor",       "a graph", "floats", "ints",
                                         "strings",        "tensors", "graphs", "a sparse tensor",
                                         "sparse tensors", "a type",  "types" };
    return type >= 0 && type < HN_COUNT(names) ? names[type] : "something unknown";
}

/* Files before IR version 2 do not say which field holds. */
static int type_of(const Onnx__AttributeProto *a)
{
    if (a->has_type && a->type) return a->type;
    if (a->has_f) return T_FLOAT;
    if (a->has_i) return T_INT;
    if (a->has_s) return T_STRING;
    if (a->t) return T_TENSOR;
    if (a->g) return T_GRAPH;
    if (a->n_floats) return T_FLOATS;
    if (a->n_ints) return T_INTS;
    if (a->n_strings) return T_STRINGS;
    if (a->sparse_tensor) return T_SPARSE;
    if (a->tp) return T_TYPE;
    return 0;
}

/* A reference inside a function's body stands for the caller's attribute, which may be a reference in turn.
 */
static const Onnx__AttributeProto *resolve(const Onnx__AttributeProto *a, const hn_im_frame *f)
{
    while (a && a->ref_attr_name && a->ref_attr_name[0]) {
        const char *want = a->ref_attr_name;
        if (!f || !f->fn) return NULL;
        a = NULL;
        for (size_t i = 0; i < f->n_attr && !a; i++)
            if (f->attr[i]->name && strcmp(f->attr[i]->name, want) == 0) a = f->attr[i];
        if (a) {
            f = f->up;
            continue;
        }
        for (size_t i = 0; i < f->fn->n_attribute_proto && !a; i++)
            if (strcmp(f->fn->attribute_proto[i]->name, want) == 0) return f->fn->attribute_proto[i];
    }
    return a;
}

const Onnx__AttributeProto *hn_im_attr(hn_im_call *c, const char *name)
{
    for (size_t i = 0; i < c->p->n_attribute; i++) {
        const Onnx__AttributeProto *a = c->p->attribute[i];
        if (!a->name || strcmp(a->name, name) != 0) continue;
        if (i < 64) c->attr_seen |= (uint64_t)1 << i;
        return resolve(a, c->scope->frame);
    }
    return NULL;
}

bool hn_im_has(hn_im_call *c, const char *name)
{
    return hn_im_attr(c, name) != NULL;
}

void hn_im_ignore(hn_im_call *c, const char *name)
{
    (void)hn_im_attr(c, name);
}

static const Onnx__AttributeProto *typed(hn_im_call *c, const char *name, int type)
{
    const Onnx__AttributeProto *a = hn_im_attr(c, name);
    if (!a) return NULL;
    const int have = type_of(a);
    if (have == type) return a;
    /* An empty list in a file without types reads as nothing. */
    if (have == 0 && (type == T_FLOATS || type == T_INTS || type == T_STRINGS)) return a;
    if (c->attr_dg.code == HONE_OK)
        HN_RAISE(&c->attr_dg, HONE_E_MODEL, "attribute \"%s\" holds %s where %s belongs", name,
                 type_name(have), type_name(type));
    return NULL;
}

int64_t hn_im_i(hn_im_call *c, const char *name, int64_t dflt)
{
    const Onnx__AttributeProto *a = typed(c, name, T_INT);
    return a ? a->i : dflt;
}

double hn_im_f(hn_im_call *c, const char *name, double dflt)
{
    const Onnx__AttributeProto *a = typed(c, name, T_FLOAT);
    return a ? (double)a->f : dflt;
}

static char *text(hn_im_call *c, ProtobufCBinaryData s)
{
    return hn_arena_strndup(c->m->scratch, s.data ? (const char *)s.data : "", s.len);
}

const char *hn_im_s(hn_im_call *c, const char *name, const char *dflt)
{
    const Onnx__AttributeProto *a = typed(c, name, T_STRING);
    const char *s = a ? text(c, a->s) : NULL;
    return s ? s : dflt;
}

const int64_t *hn_im_is(hn_im_call *c, const char *name, int *ret_n)
{
    static const int64_t none[1];
    const Onnx__AttributeProto *a = typed(c, name, T_INTS);
    *ret_n = 0;
    if (!a) return NULL;
    if (a->n_ints > HN_IM_MAX_OPERANDS) {
        if (c->attr_dg.code == HONE_OK)
            HN_RAISE(&c->attr_dg, HONE_E_LIMIT, "attribute \"%s\" has %zu entries", name, a->n_ints);
        return NULL;
    }
    *ret_n = (int)a->n_ints;
    return a->n_ints ? a->ints : none;
}

const double *hn_im_fs(hn_im_call *c, const char *name, int *ret_n)
{
    const Onnx__AttributeProto *a = typed(c, name, T_FLOATS);
    *ret_n = 0;
    if (!a || a->n_floats > INT32_MAX) return NULL;
    double *v = HN_NEW_N(c->m->scratch, double, HN_MAX(a->n_floats, 1));
    if (!v) return NULL;
    for (size_t i = 0; i < a->n_floats; i++)
        v[i] = (double)a->floats[i];
    *ret_n = (int)a->n_floats;
    return v;
}

const char **hn_im_ss(hn_im_call *c, const char *name, int *ret_n)
{
    const Onnx__AttributeProto *a = typed(c, name, T_STRINGS);
    *ret_n = 0;
    if (!a || a->n_strings > HN_IM_MAX_OPERANDS) return NULL;
    const char **v = HN_NEW_N(c->m->scratch, const char *, HN_MAX(a->n_strings, 1));
    for (size_t i = 0; v && i < a->n_strings; i++)
        if (!(v[i] = text(c, a->strings[i]))) return NULL;
    *ret_n = v ? (int)a->n_strings : 0;
    return v;
}

const Onnx__GraphProto *hn_im_graph(hn_im_call *c, const char *name)
{
    const Onnx__AttributeProto *a = typed(c, name, T_GRAPH);
    return a ? a->g : NULL;
}

static bool among(const char *values, const char *s, int *ret)
{
    const size_t n = strlen(s);
    for (int i = 0;; i++) {
        const size_t len = strcspn(values, "|");
        if (len == n && memcmp(values, s, n) == 0) {
            *ret = i;
            return true;
        }
        if (!values[len]) return false;
        values += len + 1;
    }
}

int hn_im_choice(hn_im_call *c, const char *name, const char *values, int dflt)
{
    int i = dflt;
    const char *s = hn_im_s(c, name, NULL);
    if (s && !among(values, s, &i) && c->attr_dg.code == HONE_OK) {
        hn_hint(&c->attr_dg, "known here: %s", values);
        HN_RAISE(&c->attr_dg, HONE_E_UNSUPPORTED, "attribute \"%s\" is \"%s\"", name, s);
    }
    return i;
}

hn_dtype hn_im_dtype(hn_im_call *c, const char *name, hn_dtype dflt)
{
    const int64_t i = hn_im_i(c, name, 0);
    if (i == 0) return dflt;
    const hn_dtype t = i > 0 && i < 1000 ? hn_im_dtype_of((int32_t)i) : HN_NONE;
    if (t == HN_NONE && c->attr_dg.code == HONE_OK)
        HN_RAISE(&c->attr_dg, HONE_E_UNSUPPORTED, "attribute \"%s\" asks for type %s (%" PRId64 ")", name,
                 hn_im_onnx_type_name(i > 0 && i < 1000 ? (int32_t)i : -1), i);
    return t == HN_NONE ? dflt : t;
}
