/*
 * Checks on the wire before protobuf-c unpacks: it recurses without a limit, multiplies short input into
 * large structs, and answers NULL for everything. The walk here says where a file is cut, and bounds depth
 * and memory.
 */
#include "import/import_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct walk {
    const uint8_t *base;
    uint64_t budget; /* bytes of structs the unpacked form may still take */
    hn_diag *dg;
} walk;

/* Yields the bytes of a varint, 0 when cut off or longer than ten bytes. */
static int varint(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
    uint64_t v = 0;
    for (int i = 0; i < 10 && p + i < end; i++) {
        v |= (uint64_t)(p[i] & 0x7F) << (7 * i);
        if (!(p[i] & 0x80)) {
            *ret = v;
            return i + 1;
        }
    }
    return 0;
}

static hone_status cut(walk *w, const uint8_t *at, const ProtobufCMessageDescriptor *type)
{
    hn_hint(w->dg, "the file is cut short, damaged, or not an ONNX file");
    return HN_RAISE(w->dg, HONE_E_FORMAT, "byte %td does not continue a %s", at - w->base, type->short_name);
}

static hone_status spend(walk *w, uint64_t bytes)
{
    if (bytes > w->budget)
        return HN_RAISE(w->dg, HONE_E_LIMIT,
                        "the model's nodes and names would take far more memory than its file");
    w->budget -= bytes;
    return HONE_OK;
}

static hone_status walk_message(walk *w, const ProtobufCMessageDescriptor *type, const uint8_t *p,
                                const uint8_t *end, int depth)
{
    if (depth > HN_IM_MAX_DEPTH)
        return HN_RAISE(w->dg, HONE_E_LIMIT, "messages nest deeper than %d levels", HN_IM_MAX_DEPTH);
    HN_TRY(spend(w, type->sizeof_message + sizeof(void *)));
    while (p < end) {
        uint64_t tag, n = 0;
        const uint8_t *at = p;
        int used = varint(p, end, &tag);
        if (!used || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) return cut(w, at, type);
        p += used;
        switch (tag & 7) {
        case 0:
            if (!(used = varint(p, end, &n))) return cut(w, at, type);
            n = (uint64_t)used;
            HN_TRY(spend(w, 8));
            break;
        case 1:
            n = 8;
            break;
        case 5:
            n = 4;
            break;
        case 2:
            if (!(used = varint(p, end, &n))) return cut(w, at, type);
            p += used;
            break;
        default:
            return cut(w, at, type);
        }
        if (n > (uint64_t)(end - p)) return cut(w, at, type);
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
        if (f && f->type == PROTOBUF_C_TYPE_MESSAGE && (tag & 7) == 2)
            HN_TRY(walk_message(w, f->descriptor, p, p + n, depth + 1));
        else
            HN_TRY(spend(w, 24)); /* a pointer, a length, and the parser's note of the field */
        p += n;
    }
    return HONE_OK;
}

/* protobuf-c's memory: long data stay (weights are used where they lie), the rest dies with the import. */
typedef struct two_arenas {
    hn_arena *keep, *scratch;
} two_arenas;

static void *take(void *user, size_t n)
{
    two_arenas *t = user;
    return hn_arena_alloc(n >= HN_IM_KEEP_BYTES ? t->keep : t->scratch, n, 1);
}

static void drop(void *user, void *p)
{
    (void)user;
    (void)p;
}

hone_status hn_im_unpack(hn_arena *keep, hn_arena *scratch, const ProtobufCMessageDescriptor *type,
                         const void *bytes, size_t n, ProtobufCMessage **ret, hn_diag *dg)
{
    two_arenas arenas = { keep, scratch };
    ProtobufCAllocator alloc = { take, drop, &arenas };
    walk w = { bytes, 64 * (uint64_t)1024 * 1024 + 24 * (uint64_t)n, dg };

    HN_TRY(walk_message(&w, type, bytes, (const uint8_t *)bytes + n, 0));
    ProtobufCMessage *m = protobuf_c_message_unpack(type, &alloc, n, bytes);
    if (hn_arena_oom(keep) || hn_arena_oom(scratch)) return HN_NOMEM(dg);
    if (!m) {
        hn_hint(dg, "a field has another wire type than the standard gives it");
        return HN_RAISE(dg, HONE_E_FORMAT, "the bytes are not a %s", type->short_name);
    }
    *ret = m;
    return HONE_OK;
}
