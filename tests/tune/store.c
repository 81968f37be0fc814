/* The trial store: what is put is found again, by key; damage is an error; lines travel. */
#include "harness.h"

#include "tune/tune_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *fresh(hn_test *t, const char *name)
{
    const char *path = hn_arena_printf(t->arena, "/tmp/hone-test-%d-%s.db", (int)getpid(), name);
    unlink(path);
    return path;
}

static void drop(hn_test *t, const char *path)
{
    unlink(path);
    unlink(hn_arena_printf(t->arena, "%s-wal", path));
    unlink(hn_arena_printf(t->arena, "%s-shm", path));
}

static const hn_trial sample = { .route = "-region:chain=0", .outcome = HN_OUT_NOT_FASTER, .reason = "why \"so\"\nand more",
                                 .payload = "00112233445566778899aabbccddeeff", .ratio = 0.9, .lo = 0.8, .hi = 1.1,
                                 .err = 1e-7, .knobs = "region:chain layout:image", .clock_mhz = 1755 };

static bool held(hn_test *t, hn_store *s, const char *route, hn_trial *ret)
{
    hn_diag dg = { 0 };
    bool found;
    CHECK_OK(hn_store_get(s, t->arena, route, ret, &found, &dg), &dg);
    return found;
}

TEST(a_trial_is_found_again_under_its_key_alone)
{
    const char *path = fresh(t, "put");
    hn_diag dg = { 0 };
    hn_store *s = NULL;
    hn_trial got;
    CHECK_OK(hn_store_open(path, "model-a", &s, &dg), &dg);
    CHECK_OK(hn_store_put(s, &sample, &dg), &dg);
    hn_store_close(s);
    CHECK_OK(hn_store_open(path, "model-a", &s, &dg), &dg);
    CHECK(held(t, s, sample.route, &got));
    CHECK_EQ(got.outcome, sample.outcome);
    CHECK_STR(got.reason, sample.reason);
    CHECK_STR(got.payload, sample.payload);
    CHECK_STR(got.knobs, sample.knobs);
    CHECK_EQ(got.clock_mhz, 1755);
    CHECK_NEAR(got.lo, 0.8, 0);
    CHECK(!held(t, s, "-region:chain=1", &got));
    hn_store_close(s);
    CHECK_OK(hn_store_open(path, "model-b", &s, &dg), &dg);
    CHECK(!held(t, s, sample.route, &got));
    hn_store_close(s);
    drop(t, path);
}

TEST(lines_travel_between_stores)
{
    const char *from = fresh(t, "from"), *to = fresh(t, "to");
    hn_diag dg = { 0 };
    hn_store *s = NULL;
    hn_trial got;
    hn_str lines = { 0 };
    int added = -1;
    CHECK_OK(hn_store_open(from, "key", &s, &dg), &dg);
    CHECK_OK(hn_store_put(s, &sample, &dg), &dg);
    hn_store_close(s);
    CHECK_OK(hn_tune_store_export(from, &lines, &dg), &dg);
    CHECK_OK(hn_tune_store_import(to, hn_str_get(&lines), &added, &dg), &dg);
    CHECK_EQ(added, 1);
    CHECK_OK(hn_tune_store_import(to, hn_str_get(&lines), &added, &dg), &dg);
    CHECK_EQ(added, 0);
    CHECK_OK(hn_store_open(to, "key", &s, &dg), &dg);
    CHECK(held(t, s, sample.route, &got));
    CHECK_STR(got.reason, sample.reason);
    CHECK_NEAR(got.err, 1e-7, 0);
    hn_store_close(s);
    hn_str_done(&lines);
    drop(t, from);
    drop(t, to);
}

TEST(damaged_lines_and_files_are_errors)
{
    const char *path = fresh(t, "bad");
    hn_diag dg = { 0 };
    hn_store *s = NULL;
    int added;
    CHECK_ERR(hn_tune_store_import(path, "{\"key\":\"k\",\"route\":\"r\",\"outcome\":2}\nnonsense\n", &added, &dg), HONE_E_FORMAT,
              &dg, "line 2");
    CHECK_OK(hn_store_open(path, "k", &s, &dg), &dg);
    hn_trial got;
    CHECK(!held(t, s, "r", &got)); /* all lines or none */
    hn_store_close(s);
    drop(t, path);
    FILE *f = fopen(path, "w");
    CHECK(f);
    for (int i = 0; i < 500; i++) fputs("this is no database ", f);
    fclose(f);
    CHECK_ERR(hn_store_open(path, "k", &s, &dg), HONE_E_FORMAT, &dg, "trial store");
    drop(t, path);
}

/* When the other end of the pipe is closed. */
static int open_and_close(const char *path, const int gate[2])
{
    char c;
    close(gate[1]);
    (void)!read(gate[0], &c, 1);
    hn_diag dg = { 0 };
    hn_store *s = NULL;
    const hone_status r = hn_store_open(path, "key", &s, &dg);
    hn_store_close(s);
    return r == HONE_OK ? 0 : 1;
}

TEST(several_processes_start_one_store)
{
    enum { ROUNDS = 24, PROCESSES = 8 };
    for (int round = 0; round < ROUNDS; round++) {
        const char *path = fresh(t, "start");
        pid_t child[PROCESSES];
        int gate[2];
        CHECK_EQ(pipe(gate), 0);
        for (int i = 0; i < PROCESSES; i++) {
            child[i] = fork();
            if (child[i] == 0) _exit(open_and_close(path, gate));
        }
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < PROCESSES; i++) {
            int status = -1;
            CHECK_EQ(waitpid(child[i], &status, 0), child[i]);
            CHECK_EQ(status, 0);
        }
        drop(t, path);
    }
}
