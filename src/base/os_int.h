/* Parts of the operating system layer that only tests reach for. */
#ifndef HN_BASE_OS_INT_H
#define HN_BASE_OS_INT_H

#include "base/os.h"

/**
 * Whole processors that the cgroup quotas allow, INT32_MAX without a quota.
 * root: where cgroups are mounted; membership: the text of /proc/self/cgroup.
 */
int hn_cgroup_cpus_(const char *root, const char *membership);

#endif
