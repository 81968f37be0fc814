/* Damaged ONNX files: clean errors only. Runs under ASan and UBSan in make check, and for longer in make fuzz. */
#include "harness.h"
#include "import/import.h"
#include "import_holds.h"
#include "mutate.h"
#include "seeds.h"

static void import_one(void *user, const fuzz_buf *b)
{
    char why[512];
    (void)user;
    if (!fuzz_import_holds(b->at, b->n, why, sizeof why)) FAIL("%s", why);
}

static void fuzz_kind(const char *kind, off_t max_bytes, int64_t rounds, int64_t salt)
{
    static fuzz_seeds s;
    fuzz_find_seeds(&s, kind, max_bytes);
    fuzz_mutated(&s, rounds, salt, 4, import_one, NULL);
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
    static fuzz_seeds s;
    fuzz_find_seeds(&s, "node", 64 << 10);
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
