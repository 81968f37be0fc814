#include "seeds.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"

static const char data_root[] = "/usr/share/libonnx-testdata/data"; /* Debian's libonnx-testdata */

void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void fuzz_find_seeds(fuzz_seeds *s, const char *kind, off_t max_bytes)
{
    char dir[512], path[1024];
    s->n = 0;
    snprintf(dir, sizeof dir, "%s/%s", data_root, kind);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) && s->n < FUZZ_MAX_SEEDS;) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%s/model.onnx", dir, e->d_name);
        if (e->d_name[0] != '.' && stat(path, &st) == 0 && st.st_size <= max_bytes) s->path[s->n++] = strdup(path);
    }
    if (d) closedir(d);
    if (s->n == 0) SKIP("no seeds in %s (package libonnx-testdata)", dir);
    qsort(s->path, (size_t)s->n, sizeof *s->path, by_name);
}

int64_t fuzz_setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

static char now_at[1200];

static void say_where(void)
{
    fprintf(stderr, "    at: %s\n", now_at);
}

void fuzz_at(const char *path, int64_t seed)
{
    if (!now_at[0] && __sanitizer_set_death_callback) __sanitizer_set_death_callback(say_where);
    snprintf(now_at, sizeof now_at, "%s, FUZZ_SEED=%lld FUZZ_ROUNDS=1", path, (long long)seed);
    hn_test_note("%s", now_at);
}
