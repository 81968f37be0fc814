/* The bytes of an engine file, as docs/engine-format.md specifies them. Little-endian; this code runs on
 * nothing else. */
#ifndef HN_ENGINE_FORMAT_H
#define HN_ENGINE_FORMAT_H

#include <stdint.h>

#include "base/hash.h"
#include "engine/plan.h"

/* As PNG: text-mode copies and 7-bit channels break it visibly. */
#define HN_ENGINE_MAGIC "\x89HONE\r\n\x1a"

enum {
    HN_ENGINE_ENDIAN = 0x01020304,
    HN_ENGINE_HEADER = 4096, /* bytes kept for header and section table; the rest of them is zero */
};

/* in file order; numbers reach files */
typedef enum hn_section_kind {
    HN_SECTION_WEIGHTS = 1,
    HN_SECTION_MANIFEST = 2, /* JSON text and its terminator */
    HN_SECTION_STRING = 3,
    HN_SECTION_REG = 4,
    HN_SECTION_INST = 5,
    HN_SECTION_IO = 6,
    HN_SECTION_SYM = 7,
    HN_SECTION_BOUND = 8,
    HN_SECTION_BUF = 9,
    HN_SECTION_WEIGHT = 10,
    HN_SECTION_KERNEL = 11,
    HN_SECTION_STEP = 12,
    HN_SECTION_LIST = 13,
    HN_SECTION_CODE = 14,
} hn_section_kind;
enum { HN_N_SECTION = 14 };

typedef struct hn_file_section {
    uint32_t kind;
    uint32_t item_bytes; /* size of one entry; 1 for bytes */
    uint64_t offset;     /* from the file's start, 64-byte aligned */
    uint64_t count;      /* entries */
    uint64_t sum; /* hn_hash64 of the bytes, seed = kind; 0 for WEIGHTS, whose entries carry their own */
} hn_file_section;

typedef struct hn_file_header {
    char magic[8];
    uint32_t version, endian;
    uint64_t file_bytes;
    uint64_t sum; /* hn_hash64 of this struct with sum = 0, seed 0 */
    hn_digest payload;
    uint64_t target_feat, arena_bytes;
    uint32_t target_arch, plan_flags;
    uint32_t n_prefix, n_profile;
    uint32_t n_section, pad;
    hn_file_section section[HN_N_SECTION];
} hn_file_header;

_Static_assert(sizeof(hn_file_section) == 32, "file layout");
_Static_assert(sizeof(hn_file_header) == 88 + HN_N_SECTION * 32, "file layout");
_Static_assert(sizeof(hn_file_header) <= HN_ENGINE_HEADER, "file layout");
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "engine files are used in place and are little-endian"
#endif

/** Size of one entry of a section. */
static inline uint32_t hn_section_item_bytes(uint32_t kind)
{
    static const uint8_t bytes[HN_N_SECTION + 1] = {
        [HN_SECTION_WEIGHTS] = 1,
        [HN_SECTION_MANIFEST] = 1,
        [HN_SECTION_STRING] = 1,
        [HN_SECTION_REG] = sizeof(int64_t),
        [HN_SECTION_INST] = sizeof(hn_sinst),
        [HN_SECTION_IO] = sizeof(hn_plan_io),
        [HN_SECTION_SYM] = sizeof(hn_plan_sym),
        [HN_SECTION_BOUND] = sizeof(hn_plan_bound),
        [HN_SECTION_BUF] = sizeof(hn_plan_buf),
        [HN_SECTION_WEIGHT] = sizeof(hn_plan_weight),
        [HN_SECTION_KERNEL] = sizeof(hn_plan_kernel),
        [HN_SECTION_STEP] = sizeof(hn_step),
        [HN_SECTION_LIST] = sizeof(uint32_t),
        [HN_SECTION_CODE] = 1,
    };
    return kind <= HN_N_SECTION ? bytes[kind] : 0;
}

/** "<store>/<key>.w"; heap string, NULL when out of memory. */
char *hn_store_path(const char *store_dir, hn_digest key);

#endif
