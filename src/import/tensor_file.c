/* Values in files of their own. */
#include "import/tensor_file.h"

#include "base/os.h"
#include "import/import_int.h"

static hone_status tensors(hn_arena *a, Onnx__TensorProto *const *t, size_t n, hn_file_value *ret,
                           hn_diag *dg)
{
    hn_im m = { .arena = a, .scratch = a, .base_fd = -1 };
    if (n > HN_IM_MAX_OPERANDS) return HN_RAISE(dg, HONE_E_LIMIT, "a sequence of %zu tensors is too long", n);
    ret->at = HN_NEW_N(a, hn_file_tensor, HN_MAX(n, 1));
    if (!ret->at) return HN_NOMEM(dg);
    for (size_t i = 0; i < n; i++)
        HN_TRY(hn_im_tensor(&m, t[i], &ret->at[i].type, &ret->at[i].at, &ret->at[i].bytes, dg));
    ret->n = (int)n;
    return HONE_OK;
}

static hone_status parse(hn_arena *a, const hn_bytes *src, hn_vkind kind, hn_file_value *ret, hn_diag *dg)
{
    static const ProtobufCMessageDescriptor *const type[] = {
        [HN_TENSOR] = &onnx__tensor_proto__descriptor,
        [HN_SEQUENCE] = &onnx__sequence_proto__descriptor,
        [HN_OPTIONAL] = &onnx__optional_proto__descriptor,
    };
    ProtobufCMessage *msg;
    HN_TRY(hn_im_unpack(a, a, type[kind], src->at, src->n, &msg, dg));
    *ret = (hn_file_value){ .kind = kind, .name = "" };
    if (kind == HN_TENSOR) {
        Onnx__TensorProto *t = (Onnx__TensorProto *)msg;
        if (t->name) ret->name = t->name;
        return tensors(a, &t, 1, ret, dg);
    }
    if (kind == HN_SEQUENCE) {
        const Onnx__SequenceProto *s = (const Onnx__SequenceProto *)msg;
        if (s->name) ret->name = s->name;
        ret->absent = s->n_tensor_values == 0 && s->elem_type != 1;
        if (s->elem_type == 3) { /* an optional sequence that is there, which graphs take as a sequence */
            HN_TRY(hn_im_unpack(a, a, type[HN_OPTIONAL], src->at, src->n, &msg, dg));
            const Onnx__OptionalProto *o = (const Onnx__OptionalProto *)msg;
            ret->absent = !o->sequence_value;
            if (o->sequence_value)
                return tensors(a, o->sequence_value->tensor_values, o->sequence_value->n_tensor_values, ret,
                               dg);
        }
        if (s->elem_type != 1 && s->elem_type != 0)
            return HN_RAISE(dg, HONE_E_UNSUPPORTED, "sequences of anything but tensors are not supported");
        return tensors(a, s->tensor_values, s->n_tensor_values, ret, dg);
    }
    Onnx__OptionalProto *o = (Onnx__OptionalProto *)msg;
    if (o->name) ret->name = o->name;
    if (o->sequence_value)
        return tensors(a, o->sequence_value->tensor_values, o->sequence_value->n_tensor_values, ret, dg);
    return tensors(a, &o->tensor_value, o->tensor_value ? 1 : 0, ret, dg);
}

hone_status hn_import_value_file(hn_arena *a, const char *path, hn_vkind kind, hn_file_value *ret,
                                 hn_diag *dg)
{
    HN_CLEANUP(hn_unmap) hn_bytes src = { 0 };
    HN_TRY(hn_map_file(path, &src, dg));
    HN_TRY_IN(dg, parse(a, &src, kind, ret, dg), "file \"%s\"", path);
    return HONE_OK;
}
