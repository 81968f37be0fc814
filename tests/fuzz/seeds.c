#include "seeds.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os.h"
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

int64_t fuzz_mutated(const fuzz_seeds *s, int64_t rounds, int64_t salt, int64_t most, void (*one)(void *user, const fuzz_buf *b),
                     void *user)
{
    rounds = fuzz_setting("FUZZ_ROUNDS", rounds);
    const int64_t seed0 = fuzz_setting("FUZZ_SEED", salt);
    for (int64_t r = 0; r < rounds; r++) {
        hn_rng rng;
        hn_rng_init(&rng, (uint64_t)(seed0 + r));
        const char *path = s->path[hn_rng_below(&rng, s->n)];
        fuzz_at(path, seed0 + r);
        hn_bytes src = { 0 };
        hn_diag dg = { 0 };
        CHECK_OK(hn_map_file(path, &src, &dg), &dg);
        fuzz_buf b = fuzz_buf_copy(src.at, src.n);
        hn_unmap(&src);
        for (int64_t k = 1 + hn_rng_below(&rng, most); k > 0; k--)
            fuzz_mutate_message(&b, &rng);
        one(user, &b);
        fuzz_buf_done(&b);
    }
    return rounds;
}
