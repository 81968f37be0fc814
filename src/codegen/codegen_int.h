/* Inside src/codegen: what parent and worker say to each other. Both come from one build; every message
 * carries the revision. */
#ifndef HN_CODEGEN_CODEGEN_INT_H
#define HN_CODEGEN_CODEGEN_INT_H

#include "codegen/codegen.h"

enum { HN_WORKER_MAGIC = 0x324b5748 }; /* "HWK2" */

typedef enum hn_worker_want { HN_WORKER_CODE, HN_WORKER_ASM, HN_WORKER_IR } hn_worker_want;

/** Followed by n bytes of hn_kfunc_write. */
typedef struct hn_worker_request {
    uint32_t magic, rev; /* read and checked before the rest, which may be longer or shorter elsewhere */
    uint64_t n;
    uint32_t want, pad; /* hn_worker_want */
    hn_target target;
} hn_worker_request;

/** Followed by n bytes of code or text. */
typedef struct hn_worker_reply {
    uint32_t magic, rev;
    uint64_t n;
    uint32_t entry, align;
    int32_t frame_bytes, n_stack_ref;
    int64_t compile_ns;
    int32_t dying, pad; /* the worker ends after this reply */
    hn_diag diag;       /* code HONE_OK on success; its file pointer means nothing here */
} hn_worker_reply;

/** What both sides must agree on: the generator's revision and the sizes of what they exchange. */
#define HN_WORKER_REV                                                                                                \
    ((uint32_t)HN_CODEGEN_REV ^ (uint32_t)sizeof(hn_worker_request) << 8 ^ (uint32_t)sizeof(hn_worker_reply) << 20)

/** Every compilation depends on these: generator revision and LLVM version, as built. */
void hn_codegen_hash_version(hn_hasher *h);

#endif
