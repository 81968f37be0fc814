/* Opening engine files: every byte is accounted for by a checksum or must be zero, then the plan is checked
 * as a whole. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "engine/format.h"

struct hn_engine_file {
    hn_bytes map; /* of the file; n == 0 when the bytes are the caller's */
    const uint8_t *at;
    size_t n;
    hn_file_header h;
    hn_plan plan;
    hn_bytes *external; /* by weight; unmapped entries for those inside */
    uint32_t n_external;
};

#define DAMAGED(dg, ...) HN_RAISE((dg), HONE_E_FORMAT, "damaged engine file: " __VA_ARGS__)

static const hn_file_section *section(const hn_engine_file *f, hn_section_kind kind)
{
    return &f->h.section[kind - 1];
}

static const void *section_data(const hn_engine_file *f, hn_section_kind kind)
{
    return f->at + section(f, kind)->offset;
}

static bool all_zero(const uint8_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (at[i]) return false;
    return true;
}

/* ---- header ---- */
static hone_status check_header(hn_engine_file *f, hn_diag *dg)
{
    if (f->n < sizeof(f->h.magic) || memcmp(f->at, HN_ENGINE_MAGIC, sizeof(f->h.magic)) != 0) {
        hn_hint(dg, "Engines are made by \"hone build\" and belong to the machine they were made for.");
        return HN_RAISE(dg, HONE_E_FORMAT, "not an engine file");
    }
    if (f->n < HN_ENGINE_HEADER) return DAMAGED(dg, "cut off after %zu bytes", f->n);
    memcpy(&f->h, f->at, sizeof(f->h));
    if (f->h.version != HN_ENGINE_VERSION || f->h.endian != HN_ENGINE_ENDIAN) {
        hn_hint(dg, "Build the engine again with this version.");
        return HN_RAISE(dg, HONE_E_VERSION, "engine format %u, this program reads format %d", f->h.version,
                        HN_ENGINE_VERSION);
    }
    hn_file_header zeroed = f->h;
    zeroed.sum = 0;
    if (hn_hash64(&zeroed, sizeof(zeroed), 0) != f->h.sum)
        return DAMAGED(dg, "the header's checksum is wrong");
    if (f->h.file_bytes != f->n)
        return DAMAGED(dg, "%zu bytes long, written with %llu", f->n, (unsigned long long)f->h.file_bytes);
    if (f->h.n_section != HN_N_SECTION) return DAMAGED(dg, "%u sections", f->h.n_section);
    if (!all_zero(f->at + sizeof(f->h), HN_ENGINE_HEADER - sizeof(f->h)))
        return DAMAGED(dg, "bytes after the header");
    return HONE_OK;
}

/* In file order, aligned, apart by less than the alignment, and the gaps zero; `end` is where the one before
 * ends. */
static hone_status check_section(const hn_engine_file *f, uint32_t i, uint64_t *end, hn_diag *dg)
{
    const hn_file_section *s = &f->h.section[i];

    if (s->kind != i + 1 || s->item_bytes != hn_section_item_bytes(s->kind))
        return DAMAGED(dg, "section %u is foreign", i + 1);
    if (s->offset % HN_ENGINE_ALIGN || s->offset < *end || s->offset - *end >= HN_ENGINE_ALIGN ||
        s->offset > f->n || s->count > (f->n - s->offset) / s->item_bytes)
        return DAMAGED(dg, "section %u lies outside the file", i + 1);
    if (!all_zero(f->at + *end, (size_t)(s->offset - *end)))
        return DAMAGED(dg, "bytes before section %u", i + 1);
    if (s->count > UINT32_MAX && s->item_bytes > 1)
        return DAMAGED(dg, "section %u has too many entries", i + 1);
    *end = s->offset + s->count * s->item_bytes;
    return HONE_OK;
}

static hone_status check_sections(const hn_engine_file *f, hn_diag *dg)
{
    uint64_t end = HN_ENGINE_HEADER;

    for (uint32_t i = 0; i < HN_N_SECTION; i++)
        HN_TRY(check_section(f, i, &end, dg));
    if (end != f->n) return DAMAGED(dg, "bytes after the last section");
    for (uint32_t i = HN_SECTION_MANIFEST - 1; i < HN_N_SECTION; i++) {
        const hn_file_section *s = &f->h.section[i];
        if (hn_hash64(f->at + s->offset, (size_t)(s->count * s->item_bytes), s->kind) != s->sum)
            return DAMAGED(dg, "the checksum of section %u is wrong", i + 1);
    }
    const hn_file_section *m = section(f, HN_SECTION_MANIFEST);
    if (m->count == 0 || f->at[m->offset + m->count - 1] != 0) return DAMAGED(dg, "the manifest has no end");
    return HONE_OK;
}

/* ---- plan ---- */
static uint32_t count(const hn_engine_file *f, hn_section_kind kind)
{
    return (uint32_t)section(f, kind)->count;
}

static hone_status view_plan(hn_engine_file *f, hn_diag *dg)
{
    f->plan = (hn_plan){
        .flags = f->h.plan_flags,
        .target_arch = f->h.target_arch,
        .target_feat = f->h.target_feat,
        .arena_bytes = f->h.arena_bytes,
        .n_prefix = f->h.n_prefix,
        .n_profile = f->h.n_profile,
        .n_reg = count(f, HN_SECTION_REG),
        .reg_init = section_data(f, HN_SECTION_REG),
        .n_inst = count(f, HN_SECTION_INST),
        .inst = section_data(f, HN_SECTION_INST),
        .n_io = count(f, HN_SECTION_IO),
        .io = section_data(f, HN_SECTION_IO),
        .n_sym = count(f, HN_SECTION_SYM),
        .sym = section_data(f, HN_SECTION_SYM),
        .bound = section_data(f, HN_SECTION_BOUND),
        .n_buf = count(f, HN_SECTION_BUF),
        .buf = section_data(f, HN_SECTION_BUF),
        .n_weight = count(f, HN_SECTION_WEIGHT),
        .weight = section_data(f, HN_SECTION_WEIGHT),
        .n_kernel = count(f, HN_SECTION_KERNEL),
        .kernel = section_data(f, HN_SECTION_KERNEL),
        .n_step = count(f, HN_SECTION_STEP),
        .step = section_data(f, HN_SECTION_STEP),
        .n_list = count(f, HN_SECTION_LIST),
        .list = section_data(f, HN_SECTION_LIST),
        .n_string = section(f, HN_SECTION_STRING)->count,
        .string = section_data(f, HN_SECTION_STRING),
    };
    if (section(f, HN_SECTION_BOUND)->count != (uint64_t)f->h.n_profile * f->plan.n_sym)
        return DAMAGED(dg, "%u profiles do not bound %u symbols", f->h.n_profile, f->plan.n_sym);
    return hn_plan_validate(&f->plan, section(f, HN_SECTION_CODE)->count,
                            section(f, HN_SECTION_WEIGHTS)->count, dg);
}

/* ---- weights ---- */
/* Weights lie in order, each followed by its tail and padding, all zero. */
static hone_status check_inner_weights(const hn_engine_file *f, hn_diag *dg)
{
    const uint8_t *const at = section_data(f, HN_SECTION_WEIGHTS);
    uint64_t end = 0;

    for (uint32_t i = 0; i < f->plan.n_weight; i++) {
        const hn_plan_weight *w = &f->plan.weight[i];
        if (w->flags & HN_WEIGHT_EXTERNAL) continue;
        if (w->offset < end || !all_zero(at + end, (size_t)(w->offset - end)))
            return DAMAGED(dg, "bytes before weight %u", i);
        if (hn_hash64(at + w->offset, (size_t)w->bytes, 0) != w->sum)
            return DAMAGED(dg, "the checksum of weight %u is wrong", i);
        end = w->offset + w->bytes;
    }
    if (!all_zero(at + end, (size_t)(section(f, HN_SECTION_WEIGHTS)->count - end)))
        return DAMAGED(dg, "bytes after the weights");
    return HONE_OK;
}

static hone_status open_external(hn_engine_file *f, uint32_t i, const char *dir, bool trust, hn_diag *dg)
{
    const hn_plan_weight *w = &f->plan.weight[i];
    char *const path = hn_store_path(dir, w->key);
    hone_status s = HONE_OK;

    if (!path) return HN_NOMEM(dg);
    if (!hn_file_exists(path)) {
        hn_hint(dg, "The engine keeps its weights outside; move both together or build it without a store.");
        s = HN_RAISE(dg, HONE_E_NOTFOUND, "weight %u is not in the store: no file \"%s\"", i, path);
    }
    if (!s) s = hn_map_file(path, &f->external[i], dg);
    if (!s && (f->external[i].n != w->bytes + HN_TAIL_BYTES ||
               (!trust && hn_hash64(f->external[i].at, (size_t)w->bytes, 0) != w->sum)))
        s = HN_RAISE(dg, HONE_E_FORMAT, "damaged weight in the store: \"%s\"", path);
    free(path);
    return s;
}

static char *beside(const char *path)
{
    const char *const slash = path ? strrchr(path, '/') : NULL;
    const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    char *const dir = calloc(n + sizeof("weights"), 1);

    if (!dir) return NULL;
    if (n) memcpy(dir, path, n);
    strcpy(dir + n, "weights");
    return dir;
}

static hone_status open_externals(hn_engine_file *f, const char *path, const hn_engine_read_opts *o,
                                  hn_diag *dg)
{
    bool any = false;

    for (uint32_t i = 0; i < f->plan.n_weight; i++)
        any |= f->plan.weight[i].flags & HN_WEIGHT_EXTERNAL;
    if (!any) return HONE_OK;
    if (!path && !o->store_dir)
        return HN_RAISE(dg, HONE_E_NOTFOUND, "the engine keeps its weights in a store and none was given");
    char *const dir = o->store_dir ? strdup(o->store_dir) : beside(path);
    f->external = calloc(f->plan.n_weight, sizeof(*f->external));
    f->n_external = f->external ? f->plan.n_weight : 0;
    hone_status s = dir && f->external ? HONE_OK : HN_NOMEM(dg);
    for (uint32_t i = 0; !s && i < f->plan.n_weight; i++)
        if (f->plan.weight[i].flags & HN_WEIGHT_EXTERNAL) s = open_external(f, i, dir, o->trust_weights, dg);
    free(dir);
    return s;
}

/* ---- opening ---- */
static hone_status check_file(hn_engine_file *f, const char *path, const hn_engine_read_opts *o, hn_diag *dg)
{
    static const hn_engine_read_opts none = { 0 };

    if (!o) o = &none;
    HN_TRY(check_header(f, dg));
    HN_TRY(check_sections(f, dg));
    HN_TRY(view_plan(f, dg));
    if (!o->trust_weights) HN_TRY(check_inner_weights(f, dg));
    return open_externals(f, path, o, dg);
}

hone_status hn_engine_file_open(const char *path, const hn_engine_read_opts *o, hn_engine_file **ret,
                                hn_diag *dg)
{
    hn_engine_file *const f = calloc(1, sizeof(*f));
    hone_status s;

    if (!f) return HN_NOMEM(dg);
    s = hn_map_file(path, &f->map, dg);
    if (!s) {
        f->at = f->map.at, f->n = f->map.n;
        s = check_file(f, path, o, dg);
        if (s) hn_diag_frame(dg, "engine \"%s\"", path);
    }
    if (s) {
        hn_engine_file_close(f);
        return s;
    }
    *ret = f;
    return HONE_OK;
}

hone_status hn_engine_file_open_memory(const void *data, size_t n, const hn_engine_read_opts *o,
                                       hn_engine_file **ret, hn_diag *dg)
{
    if ((uintptr_t)data % HN_ENGINE_ALIGN)
        return HN_RAISE(dg, HONE_E_INVALID, "an engine in memory must be 64-byte aligned");
    hn_engine_file *const f = calloc(1, sizeof(*f));

    if (!f) return HN_NOMEM(dg);
    f->at = data, f->n = n;
    const hone_status s = check_file(f, NULL, o, dg);
    if (s) {
        hn_engine_file_close(f);
        return s;
    }
    *ret = f;
    return HONE_OK;
}

void hn_engine_file_close(hn_engine_file *f)
{
    if (!f) return;
    for (uint32_t i = 0; i < f->n_external; i++)
        if (f->external[i].at) hn_unmap(&f->external[i]);
    free(f->external);
    if (f->map.at) hn_unmap(&f->map);
    free(f);
}

const hn_plan *hn_engine_file_plan(const hn_engine_file *f)
{
    return &f->plan;
}

const void *hn_engine_file_code(const hn_engine_file *f, size_t *ret_bytes)
{
    *ret_bytes = (size_t)section(f, HN_SECTION_CODE)->count;
    return section_data(f, HN_SECTION_CODE);
}

const void *hn_engine_file_weight(const hn_engine_file *f, uint32_t i)
{
    const hn_plan_weight *w = &f->plan.weight[i];
    return w->flags & HN_WEIGHT_EXTERNAL ? f->external[i].at
                                         : (const uint8_t *)section_data(f, HN_SECTION_WEIGHTS) + w->offset;
}

const char *hn_engine_file_manifest(const hn_engine_file *f)
{
    return section_data(f, HN_SECTION_MANIFEST);
}

hn_digest hn_engine_file_payload(const hn_engine_file *f)
{
    return f->h.payload;
}

uint64_t hn_engine_file_bytes(const hn_engine_file *f)
{
    return f->n;
}
