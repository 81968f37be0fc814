/* How many processors this process may use. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/os_int.h"
#include "base/str.h"

static bool read_text(const char *path, char *dst, size_t n)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const size_t got = fread(dst, 1, n - 1, f);
    dst[got] = '\0';
    fclose(f);
    return true;
}

static int whole_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) return INT32_MAX;
    const long long n =
        quota / period; /* rounded down: a spinning thread beyond the quota gets everyone throttled */
    return n < 1 ? 1 : n > INT32_MAX ? INT32_MAX : (int)n;
}

static int quota_v2(const char *folder)
{
    char path[4200], text[128], max[64];
    long long period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_text(path, text, sizeof text) || sscanf(text, "%63s %lld", max, &period) != 2) return INT32_MAX;
    return strcmp(max, "max") == 0 ? INT32_MAX : whole_cpus(atoll(max), period);
}

static int quota_v1(const char *folder)
{
    char path[4200], quota[64], period[64];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_text(path, quota, sizeof quota)) return INT32_MAX;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_text(path, period, sizeof period)) return INT32_MAX;
    return whole_cpus(atoll(quota), atoll(period));
}

/* The smallest quota from the group up to the mount: any ancestor may limit. */
static int smallest(const char *mount, const char *group, size_t n, int (*quota)(const char *folder))
{
    char folder[4096];
    int best = INT32_MAX;
    const size_t base = strlen(mount);
    if (base + n + 1 >= sizeof folder) return best;
    memcpy(folder, mount, base);
    memcpy(folder + base, group, n);
    folder[base + n] = '\0';
    for (;;) {
        best = HN_MIN(best, quota(folder));
        char *slash = strrchr(folder + base, '/');
        if (!slash) return best;
        *slash = '\0';
    }
}

static bool has_cpu_controller(const char *list, size_t n)
{
    for (size_t at = 0; at < n;) {
        const size_t len = strcspn(list + at, ",:");
        if (len == 3 && memcmp(list + at, "cpu", 3) == 0) return true;
        at += len + 1;
    }
    return false;
}

/* One line "id:controllers:group"; version 2 has no controllers. Version 1 mounts under "cpu" or under the
 * whole list. */
static int quota_of_line(const char *root, const char *line, size_t len)
{
    char mount[4096];
    const char *list = memchr(line, ':', len);
    if (!list) return INT32_MAX;
    list++;
    const char *group = memchr(list, ':', len - (size_t)(list - line));
    if (!group) return INT32_MAX;
    const size_t n_list = (size_t)(group - list);
    group++;
    const size_t n_group = len - (size_t)(group - line);
    if (n_list == 0) return smallest(root, group, n_group, quota_v2);
    if (!has_cpu_controller(list, n_list)) return INT32_MAX;
    snprintf(mount, sizeof mount, "%s/cpu", root);
    const int plain = smallest(mount, group, n_group, quota_v1);
    snprintf(mount, sizeof mount, "%s/%.*s", root, (int)n_list, list);
    return HN_MIN(plain, smallest(mount, group, n_group, quota_v1));
}

int hn_cgroup_cpus_(const char *root, const char *membership)
{
    int best = INT32_MAX;
    for (const char *line = membership; *line;) {
        const size_t len = strcspn(line, "\n");
        best = HN_MIN(best, quota_of_line(root, line, len));
        line += len + (line[len] == '\n');
    }
    return best;
}

static int affinity_cpus(void)
{
    for (int n = 1024; n <= 1 << 20; n *= 2) { /* the kernel refuses a set smaller than its own */
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        if (!set) return 1;
        const size_t bytes = CPU_ALLOC_SIZE((size_t)n);
        const bool ok = sched_getaffinity(0, bytes, set) == 0;
        const int count = ok ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (ok) return HN_MAX(count, 1);
    }
    return 1;
}

int hn_cpu_count(void)
{
    char text[8192];
    const int allowed = affinity_cpus();
    if (!read_text("/proc/self/cgroup", text, sizeof text)) return allowed;
    return HN_MIN(allowed, hn_cgroup_cpus_("/sys/fs/cgroup", text));
}
