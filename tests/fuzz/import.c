/* Damaged ONNX files: clean errors only. Runs under ASan and UBSan in make check, and for longer in make fuzz. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"
#include "import/import.h"
#include "mutate.h"

/* A sanitizer ends the process before the harness can say which seed it was. */
void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static char now_at[1200];

static void say_where(void)
{
    fprintf(stderr, "    at: %s\n", now_at);
}

static const char data_root[] = "/usr/share/libonnx-testdata/data"; /* Debian's libonnx-testdata */

enum { MAX_SEEDS = 2048 };

typedef struct seeds {
    char *path[MAX_SEEDS];
    int n;
} seeds;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every <kind>/<case>/model.onnx up to max_bytes, in order of name. */
static void find_seeds(seeds *s, const char *kind, off_t max_bytes)
{
    char dir[512], path[1024];
    snprintf(dir, sizeof dir, "%s/%s", data_root, kind);
    DIR *d = opendir(dir);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d)) && s->n < MAX_SEEDS;) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%s/model.onnx", dir, e->d_name);
        if (e->d_name[0] != '.' && stat(path, &st) == 0 && st.st_size <= max_bytes) s->path[s->n++] = strdup(path);
    }
    closedir(d);
    qsort(s->path, (size_t)s->n, sizeof *s->path, by_name);
}

/* $FUZZ_ROUNDS and $FUZZ_SEED lengthen and move a run; a failure prints what repeats it. */
static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

/* An import either succeeds with a valid graph or says what is wrong. */
static void import_one(const fuzz_buf *b)
{
    hn_arena *a = hn_arena_create();
    hn_diag dg = { 0 };
    hn_diags problems = { 0 };
    hn_graph *g = NULL;
    CHECK(a != NULL);
    const hone_status s = hn_import_mem(a, b->at, b->n, NULL, NULL, &g, &problems, &dg);
    if (s == HONE_OK) {
        CHECK(g != NULL);
        hn_diags bad = { 0 };
        if (!hn_validate(g, true, &bad)) FAIL("imported, but not valid: %s", bad.n > 0 ? bad.at[0].message : "?");
        hn_diags_done(&bad);
    } else {
        CHECK(g == NULL);
        CHECK(dg.message[0] != 0);
        CHECK(s != HONE_E_INTERNAL);
    }
    hn_diags_done(&problems);
    hn_arena_destroy(a);
}

static void fuzz_kind(const char *kind, off_t max_bytes, int64_t rounds, int64_t salt)
{
    static seeds s;
    find_seeds(&s, kind, max_bytes);
    if (s.n == 0) SKIP("no seeds in %s/%s (package libonnx-testdata)", data_root, kind);
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(say_where);
    rounds = setting("FUZZ_ROUNDS", rounds);
    const int64_t seed0 = setting("FUZZ_SEED", salt);
    for (int64_t r = 0; r < rounds; r++) {
        hn_rng rng;
        hn_rng_init(&rng, (uint64_t)(seed0 + r));
        const char *path = s.path[hn_rng_below(&rng, s.n)];
        snprintf(now_at, sizeof now_at, "%s, FUZZ_SEED=%lld FUZZ_ROUNDS=1", path, (long long)(seed0 + r));
        hn_test_note("%s", now_at);
        hn_bytes src = { 0 };
        hn_diag dg = { 0 };
        CHECK_OK(hn_map_file(path, &src, &dg), &dg);
        fuzz_buf b = fuzz_buf_copy(src.at, src.n);
        hn_unmap(&src);
        for (int64_t k = 1 + hn_rng_below(&rng, 4); k > 0; k--)
            fuzz_mutate_message(&b, &rng);
        import_one(&b);
        fuzz_buf_done(&b);
    }
}

TEST(import_mutated_nodes)
{
    fuzz_kind("node", 64 << 10, 6000, 1000000);
}

TEST(import_mutated_operators)
{
    fuzz_kind("pytorch-operator", 128 << 10, 2000, 2000000);
}

TEST(import_mutated_nets)
{
    fuzz_kind("pytorch-converted", 128 << 10, 2000, 3000000);
}

TEST(import_unchanged_seeds_import)
{
    /* The mutations start from files that are good: else the runs above would show nothing. */
    static seeds s;
    find_seeds(&s, "node", 64 << 10);
    if (s.n == 0) SKIP("no seeds in %s (package libonnx-testdata)", data_root);
    int good = 0;
    for (int i = 0; i < s.n; i += 7) {
        hn_arena *a = hn_arena_create();
        hn_diag dg = { 0 };
        hn_graph *g = NULL;
        good += hn_import_file(a, s.path[i], NULL, &g, NULL, &dg) == HONE_OK;
        hn_arena_destroy(a);
    }
    if (good * 10 < (s.n + 6) / 7 * 8) FAIL("only %d of %d seeds import", good, (s.n + 6) / 7);
}
