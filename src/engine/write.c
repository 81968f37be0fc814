/* Writing engine files: weights stream first, everything else follows once the plan is known, the header goes
 * last. */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "engine/format.h"
#include "engine/sink.h"

struct hn_engine_writer {
    hn_sink sink;
    char *store;
    hn_plan_weight *weight; /* recipe is an index into recipe[] until finish */
    char **recipe;
    uint32_t n, cap;
};

hn_digest hn_weight_key(hn_digest source, const char *recipe)
{
    hn_hasher h;

    hn_hasher_init(&h);
    hn_hasher_i64(&h, (int64_t)source.lo);
    hn_hasher_i64(&h, (int64_t)source.hi);
    hn_hasher_str(&h, recipe);
    return hn_hasher_end(&h);
}

char *hn_store_path(const char *store_dir, hn_digest key)
{
    char text[HN_DIGEST_TEXT];
    const size_t n = strlen(store_dir) + sizeof(text) + 8;
    char *const path = malloc(n);

    if (path) snprintf(path, n, "%s/%s.w", store_dir, hn_digest_text(key, text));
    return path;
}

hone_status hn_engine_writer_create(const char *path, const char *store_dir, hn_engine_writer **ret,
                                    hn_diag *dg)
{
    static const uint8_t zeros[HN_ENGINE_HEADER];
    hn_engine_writer *const w = calloc(1, sizeof(*w));
    hone_status s;

    if (!w) return HN_NOMEM(dg);
    w->sink.fd = -1;
    s = hn_sink_open(&w->sink, path, dg);
    if (!s) s = hn_sink_write(&w->sink, zeros, sizeof(zeros), dg);
    if (!s && store_dir) s = hn_make_dirs(store_dir, dg);
    if (!s && store_dir && !(w->store = strdup(store_dir))) s = HN_NOMEM(dg);
    if (s) {
        hn_engine_writer_destroy(w);
        return s;
    }
    *ret = w;
    return HONE_OK;
}

void hn_engine_writer_draft(hn_engine_writer *w)
{
    w->sink.draft = true;
}

void hn_engine_writer_destroy(hn_engine_writer *w)
{
    if (!w) return;
    hn_sink_done(&w->sink);
    for (uint32_t i = 0; i < w->n; i++)
        free(w->recipe[i]);
    free(w->recipe);
    free(w->weight);
    free(w->store);
    free(w);
}

/* ---- weights ---- */
static bool find(const hn_engine_writer *w, hn_digest key, uint32_t *ret)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (hn_digest_eq(w->weight[i].key, key)) {
            *ret = i;
            return true;
        }
    return false;
}

static hone_status append(hn_engine_writer *w, const hn_plan_weight *x, const char *recipe, uint32_t *ret,
                          hn_diag *dg)
{
    if (w->n == w->cap) {
        const uint32_t cap = w->cap ? 2 * w->cap : 64;
        hn_plan_weight *const weight = realloc(w->weight, cap * sizeof(*weight));
        if (weight) w->weight = weight;
        char **const names = realloc(w->recipe, cap * sizeof(*names));
        if (names) w->recipe = names;
        if (!weight || !names) return HN_NOMEM(dg);
        w->cap = cap;
    }
    char *const name = strdup(recipe);
    if (!name) return HN_NOMEM(dg);
    w->recipe[w->n] = name;
    w->weight[w->n] = *x;
    *ret = w->n++;
    return HONE_OK;
}

/* A stored weight of this size; its sum is computed here. */
static bool in_store(const hn_engine_writer *w, hn_digest key, size_t bytes, uint64_t *ret_sum)
{
    char *const path = hn_store_path(w->store, key);
    hn_bytes file = { 0 };
    bool ok = false;

    if (path && hn_file_exists(path) && hn_map_file(path, &file, NULL) == HONE_OK) {
        ok = file.n == bytes + HN_TAIL_BYTES;
        if (ok) *ret_sum = hn_hash64(file.at, bytes, 0);
        hn_unmap(&file);
    }
    free(path);
    return ok;
}

static hone_status write_padded(hn_sink *s, const void *data, size_t bytes, hn_diag *dg)
{
    static const uint8_t tail[HN_TAIL_BYTES];

    HN_TRY(hn_sink_write(s, data, bytes, dg));
    return hn_sink_write(s, tail, sizeof(tail), dg);
}

static hone_status store(const hn_engine_writer *w, hn_digest key, const void *data, size_t bytes,
                         hn_diag *dg)
{
    char *const path = hn_store_path(w->store, key);
    hn_sink s = { .fd = -1 };
    hone_status e;

    if (!path) return HN_NOMEM(dg);
    e = hn_sink_open(&s, path, dg);
    if (!e) e = write_padded(&s, data, bytes, dg);
    if (!e) e = hn_sink_commit(&s, dg);
    hn_sink_done(&s);
    free(path);
    return e;
}

bool hn_engine_writer_has_weight(hn_engine_writer *w, hn_digest source, const char *recipe, size_t bytes,
                                 uint32_t *ret_index)
{
    hn_plan_weight x = {
        .source = source, .key = hn_weight_key(source, recipe), .bytes = bytes, .flags = HN_WEIGHT_EXTERNAL
    };

    if (find(w, x.key, ret_index)) return w->weight[*ret_index].bytes == bytes;
    if (!w->store || !in_store(w, x.key, bytes, &x.sum)) return false;
    return append(w, &x, recipe, ret_index, NULL) == HONE_OK;
}

hone_status hn_engine_writer_weight(hn_engine_writer *w, hn_digest source, const char *recipe,
                                    const void *data, size_t bytes, uint32_t *ret_index, hn_diag *dg)
{
    uint32_t at;

    if (hn_engine_writer_has_weight(w, source, recipe, bytes, &at)) {
        *ret_index = at;
        return HONE_OK;
    }
    hn_plan_weight x = { .source = source, .key = hn_weight_key(source, recipe), .bytes = bytes };
    if (find(w, x.key, &at))
        return HN_RAISE(dg, HONE_E_INTERNAL, "one weight packed \"%s\" has %zu and %llu bytes", recipe, bytes,
                        (unsigned long long)w->weight[at].bytes);
    if (!data && bytes) return HN_RAISE(dg, HONE_E_INTERNAL, "a weight packed \"%s\" has no bytes", recipe);
    x.sum = hn_hash64(data, bytes, 0);
    if (w->store) {
        x.flags = HN_WEIGHT_EXTERNAL;
        HN_TRY(store(w, x.key, data, bytes, dg));
    } else {
        HN_TRY(hn_sink_pad(&w->sink, HN_ENGINE_ALIGN, dg));
        x.offset = w->sink.n - HN_ENGINE_HEADER;
        HN_TRY(write_padded(&w->sink, data, bytes, dg));
    }
    return append(w, &x, recipe, ret_index, dg);
}

/* ---- finishing ---- */
/* The plan's strings with the recipes behind them; each weight's recipe becomes its place. */
static char *join_strings(hn_engine_writer *w, const hn_plan *plan, size_t *ret_bytes)
{
    size_t n = plan->n_string;

    for (uint32_t i = 0; i < w->n; i++)
        n += strlen(w->recipe[i]) + 1;
    char *const s = malloc(n + 1);
    if (!s) return NULL;
    memcpy(s, plan->string, plan->n_string);
    n = plan->n_string;
    for (uint32_t i = 0; i < w->n; i++) {
        const size_t len = strlen(w->recipe[i]) + 1;
        memcpy(s + n, w->recipe[i], len);
        w->weight[i].recipe = (uint32_t)n;
        n += len;
    }
    *ret_bytes = n;
    return s;
}

static hone_status write_section(hn_sink *s, hn_file_section *x, uint32_t kind, const void *data,
                                 uint64_t count, hn_diag *dg)
{
    const size_t bytes = (size_t)count * hn_section_item_bytes(kind);

    HN_TRY(hn_sink_pad(s, HN_ENGINE_ALIGN, dg));
    *x = (hn_file_section){ kind, hn_section_item_bytes(kind), s->n, count, hn_hash64(data, bytes, kind) };
    return hn_sink_write(s, data, bytes, dg);
}

typedef struct blob {
    const void *data;
    uint64_t count;
} blob;

static hone_status write_sections(hn_engine_writer *w, const hn_plan *p, blob code, const char *manifest,
                                  hn_file_header *h, hn_diag *dg)
{
    const blob section[HN_N_SECTION + 1] = {
        [HN_SECTION_MANIFEST] = { manifest, strlen(manifest) + 1 },
        [HN_SECTION_STRING] = { p->string, p->n_string },
        [HN_SECTION_REG] = { p->reg_init, p->n_reg },
        [HN_SECTION_INST] = { p->inst, p->n_inst },
        [HN_SECTION_IO] = { p->io, p->n_io },
        [HN_SECTION_SYM] = { p->sym, p->n_sym },
        [HN_SECTION_BOUND] = { p->bound, (uint64_t)p->n_profile * p->n_sym },
        [HN_SECTION_BUF] = { p->buf, p->n_buf },
        [HN_SECTION_WEIGHT] = { p->weight, p->n_weight },
        [HN_SECTION_KERNEL] = { p->kernel, p->n_kernel },
        [HN_SECTION_STEP] = { p->step, p->n_step },
        [HN_SECTION_LIST] = { p->list, p->n_list },
        [HN_SECTION_CODE] = code,
    };

    h->section[0] =
        (hn_file_section){ HN_SECTION_WEIGHTS, 1, HN_ENGINE_HEADER, w->sink.n - HN_ENGINE_HEADER, 0 };
    for (uint32_t k = HN_SECTION_MANIFEST; k <= HN_N_SECTION; k++)
        HN_TRY(write_section(&w->sink, &h->section[k - 1], k, section[k].data, section[k].count, dg));
    return HONE_OK;
}

static hone_status write_file(hn_engine_writer *w, const hn_plan *p, blob code, const char *manifest,
                              hn_diag *dg)
{
    hn_file_header h = {
        .magic = HN_ENGINE_MAGIC,
        .version = HN_ENGINE_VERSION,
        .endian = HN_ENGINE_ENDIAN,
        .payload = hn_plan_payload_digest(p, code.data, code.count),
        .target_feat = p->target_feat,
        .arena_bytes = p->arena_bytes,
        .target_arch = p->target_arch,
        .plan_flags = p->flags,
        .n_prefix = p->n_prefix,
        .n_profile = p->n_profile,
        .n_section = HN_N_SECTION,
    };

    HN_TRY(hn_plan_validate(p, code.count, w->sink.n - HN_ENGINE_HEADER, dg));
    HN_TRY(write_sections(w, p, code, manifest, &h, dg));
    h.file_bytes = w->sink.n;
    h.sum = hn_hash64(&h, sizeof(h), 0);
    HN_TRY(hn_sink_rewrite(&w->sink, &h, sizeof(h), dg));
    return hn_sink_commit(&w->sink, dg);
}

hone_status hn_engine_writer_finish(hn_engine_writer *w, const hn_plan *plan, const void *code,
                                    size_t code_bytes, const char *manifest, hn_diag *dg)
{
    hn_plan p = *plan;
    char *const string = join_strings(w, plan, &p.n_string);

    if (!string) return HN_NOMEM(dg);
    p.string = string;
    p.weight = w->weight, p.n_weight = w->n;
    const hone_status s = write_file(w, &p, (blob){ code, code_bytes }, manifest, dg);
    free(string);
    return s;
}

hone_status hn_engine_writer_finish_memory(hn_engine_writer *w, const hn_plan *plan, const void *code,
                                           size_t code_bytes, const char *manifest, void **ret_data,
                                           size_t *ret_bytes, hn_diag *dg)
{
    if (w->sink.path) return HN_RAISE(dg, HONE_E_INVALID, "this engine is written to \"%s\"", w->sink.path);
    HN_TRY(hn_engine_writer_finish(w, plan, code, code_bytes, manifest, dg));
    *ret_data = w->sink.data, *ret_bytes = (size_t)w->sink.n;
    w->sink.data = NULL, w->sink.n = 0, w->sink.cap = 0;
    return HONE_OK;
}
