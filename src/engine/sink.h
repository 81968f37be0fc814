/* Where written bytes go: a temporary beside its final path, or growing memory. */
#ifndef HN_ENGINE_SINK_H
#define HN_ENGINE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

typedef struct hn_sink {
    char *path, *temp; /* NULL: memory */
    int fd;
    bool draft; /* need not outlast a power cut: nothing waits for the disk */
    uint8_t *data; /* memory: 64-byte aligned, cap bytes */
    size_t cap;
    uint64_t n; /* bytes written so far */
} hn_sink;

/** path NULL: memory. Owns: ended by hn_sink_done, which removes what was not committed. */
hone_status hn_sink_open(hn_sink *s, const char *path, hn_diag *dg);
hone_status hn_sink_write(hn_sink *s, const void *data, size_t n, hn_diag *dg);
/** Zeros up to a multiple of align. */
hone_status hn_sink_pad(hn_sink *s, size_t align, hn_diag *dg);
/** Overwrite at the start. */
hone_status hn_sink_rewrite(hn_sink *s, const void *data, size_t n, hn_diag *dg);
/** fsync, rename over path, fsync the folder; a draft is renamed alone. No-op for memory. */
hone_status hn_sink_commit(hn_sink *s, hn_diag *dg);
void hn_sink_done(hn_sink *s);

#endif
