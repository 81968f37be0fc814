/* One GPU kernel in an engine's code section: this header, then a cubin. docs/engine-format.md has the table. */
#ifndef HN_CORE_IMAGE_H
#define HN_CORE_IMAGE_H

#include <stdint.h>

enum { HN_IMAGE_MAGIC = 0x31494e48, HN_IMAGE_ALIGN = 64 }; /* "HNI1" */

enum { HN_IMAGE_EARLY = 1 }; /* may be launched while what precedes it still runs: the code waits for that itself */

typedef struct hn_image {
    uint32_t magic;
    uint32_t bytes;        /* of the cubin that follows */
    uint32_t threads[3];   /* of a block */
    uint32_t shared_bytes; /* to ask for at launch, besides what the cubin states */
    uint32_t n_buf, n_arg; /* parameters: addresses, then int64 */
    uint32_t n_reg, stack_bytes, spill_bytes; /* of a thread, as the assembler said */
    uint32_t flags;                           /* HN_IMAGE_* */
    uint32_t pad[4];
} hn_image;

_Static_assert(sizeof(hn_image) == HN_IMAGE_ALIGN, "the cubin is aligned");

#endif
