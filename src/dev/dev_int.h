/* What the host devices share: modules and the head of every queue. */
#ifndef HN_DEV_DEV_INT_H
#define HN_DEV_DEV_INT_H

#include "dev/dev.h"

struct hn_module {
    const uint8_t *code;    /* read-execute pages, or NULL for a function table */
    size_t bytes;           /* of code */
    size_t mapped;          /* bytes to unmap */
    const hn_kernel_fn *fn; /* borrowed table, or NULL */
    size_t n_fn;
};

/* First member of every device's own struct. */
struct hn_queue {
    hn_device *device;
    int threads; /* of the running lease */
};

/** Heap memory for host devices; large blocks ask for huge pages. Zeroed when `zero`. */
hone_status hn_host_alloc(size_t bytes, size_t align, bool zero, void **ret, hn_diag *dg);
void hn_host_free(void *p, size_t bytes);

#endif
