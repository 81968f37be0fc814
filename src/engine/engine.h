/* The engine file: writing, opening with full checks, weight keys and the shared weight store.
 * docs/engine-format.md. */
#ifndef HN_ENGINE_ENGINE_H
#define HN_ENGINE_ENGINE_H

#include "base/diag.h"
#include "base/hash.h"
#include "engine/plan.h"

enum {
    HN_ENGINE_VERSION = 3, /* of the format; a reader refuses any other by name */
    HN_ENGINE_ALIGN = 64,  /* bytes; every section, every weight */
};

/* ---- reading ---- */
typedef struct hn_engine_file hn_engine_file;

typedef struct hn_engine_read_opts {
    bool trust_weights;    /* skip the checksums of weights: opening then touches no weight page */
    const char *store_dir; /* where external weights lie; NULL: "weights" beside the engine file */
} hn_engine_read_opts;

/**
 * Map an engine file and check all of it: header, checksums, plan (hn_plan_validate), weights.
 *
 * Owns:   *ret, closed with hn_engine_file_close
 * Errors: HONE_E_IO; HONE_E_FORMAT damaged, truncated or no engine at all; HONE_E_VERSION another format
 *         version; HONE_E_NOTFOUND no such file, or an external weight is not in the store; HONE_E_NOMEM
 * Thread: any; the result is immutable
 */
hone_status hn_engine_file_open(const char *path, const hn_engine_read_opts *opts, hn_engine_file **ret,
                                hn_diag *dg);
/** As hn_engine_file_open over bytes in memory, 64-byte aligned, which must outlive the result. External
 * weights need opts->store_dir. */
hone_status hn_engine_file_open_memory(const void *data, size_t n, const hn_engine_read_opts *opts,
                                       hn_engine_file **ret, hn_diag *dg);
void hn_engine_file_close(hn_engine_file *f);

/** All borrowed from the file. */
const hn_plan *hn_engine_file_plan(const hn_engine_file *f);
const void *hn_engine_file_code(const hn_engine_file *f, size_t *ret_bytes);
/** 64-byte aligned; its size is in plan.weight. */
const void *hn_engine_file_weight(const hn_engine_file *f, uint32_t weight);
const char *hn_engine_file_manifest(const hn_engine_file *f); /* JSON, terminated */
hn_digest hn_engine_file_payload(const hn_engine_file *f);
uint64_t hn_engine_file_bytes(const hn_engine_file *f); /* the file's own size, external weights left out */

/* ---- writing ---- */
/** Name of packed bytes: digest of the model's bytes and the packing recipe ("" for as they are). */
hn_digest hn_weight_key(hn_digest source, const char *recipe);

typedef struct hn_engine_writer hn_engine_writer;

/**
 * Start an engine file: weights stream to a temporary beside path, which replaces path when the writer
 * finishes.
 *
 * path NULL writes to memory: hn_engine_writer_finish_memory yields the bytes.
 * store_dir not NULL puts weights into that folder, one file a key, written once by whoever comes first.
 *
 * Owns: *ret, ended by hn_engine_writer_destroy, which removes the temporary unless finish succeeded
 */
hone_status hn_engine_writer_create(const char *path, const char *store_dir, hn_engine_writer **ret,
                                    hn_diag *dg);
/** The file is of the moment: finishing does not wait until it would outlast a power cut. */
void hn_engine_writer_draft(hn_engine_writer *w);
void hn_engine_writer_destroy(hn_engine_writer *w);
/**
 * Add packed bytes, stored once a key; *ret_index goes into HN_BUF_WEIGHT buffers. HN_TAIL_BYTES of zeros
 * follow each. data may be NULL when hn_engine_writer_has_weight said so: then nothing need be packed again.
 */
hone_status hn_engine_writer_weight(hn_engine_writer *w, hn_digest source, const char *recipe,
                                    const void *data, size_t bytes, uint32_t *ret_index, hn_diag *dg);
/** The weight's index when it was added before or (external) lies in the store with this size. */
bool hn_engine_writer_has_weight(hn_engine_writer *w, hn_digest source, const char *recipe, size_t bytes,
                                 uint32_t *ret_index);
/**
 * Validate the plan (its weight table is the writer's), write everything, fsync, rename into place.
 *
 * manifest: JSON text saying which model hash, route, knob registry, target, device fingerprint and versions
 * made this.
 */
hone_status hn_engine_writer_finish(hn_engine_writer *w, const hn_plan *plan, const void *code,
                                    size_t code_bytes, const char *manifest, hn_diag *dg);
/** As hn_engine_writer_finish for path NULL. Owns: *ret_data is 64-byte aligned heap memory, released with
 * free(). */
hone_status hn_engine_writer_finish_memory(hn_engine_writer *w, const hn_plan *plan, const void *code,
                                           size_t code_bytes, const char *manifest, void **ret_data,
                                           size_t *ret_bytes, hn_diag *dg);

#endif
