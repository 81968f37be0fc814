/* One pool of workers for the whole process; runs lease idle ones and never wait for any. */
#ifndef HN_DEV_CPU_POOL_H
#define HN_DEV_CPU_POOL_H

#include "base/diag.h"

enum { HN_CPU_MAX_WORKERS = 255 };

typedef void (*hn_cpu_job_fn)(void *user, int slot);

/** Make sure there are n workers (at most HN_CPU_MAX_WORKERS); the i-th is pinned to the i-th allowed core
 * while there is one. Thread: any. HONE_E_NOMEM when threads cannot be made. */
hone_status hn_cpu_pool_ensure(int n, hn_diag *dg);

/** Take up to n idle workers other than the one pinned where the caller runs; yields how many and their
 * numbers. They spin from now on. No lock, no allocation. */
int hn_cpu_pool_lease(int n, uint8_t *ret_worker);
void hn_cpu_pool_release(const uint8_t *worker, int n);

/** Ask a leased worker to run fn(user, slot). */
void hn_cpu_pool_post(uint8_t worker, hn_cpu_job_fn fn, void *user, int slot);
/** Wait until a posted worker is done; a worker that has not begun is told not to. */
void hn_cpu_pool_wait(uint8_t worker);

#endif
