/* The whole loop over a program that behaves as its route says: accidents are outcomes, promises are kept. */
#include "harness.h"

#include "base/os.h"
#include "tune/tune.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct bench {
    hn_tensor in, want, own;
    hn_graph *g;
    const char *engine, *log, *store;
    hn_tune_opts o;
    hn_tune_result r;
} bench;

static void make(hn_test *t, bench *b)
{
    hn_diag dg = { 0 };
    memset(b, 0, sizeof *b);
    CHECK_OK(hn_parse(t->arena, "in x f32[1]\ny = add(x, x)\nout y", &b->g, &dg), &dg);
    CHECK_OK(hn_tensor_init(&b->in, &b->g->in[0]->type, &dg), &dg);
    *(float *)b->in.data = 1;
    CHECK_OK(hn_eval_run(b->g, &(hn_eval_opts){ .mode = HN_EVAL_F64 }, &b->in, &b->want, &dg), &dg);
    CHECK_OK(hn_eval_run(b->g, &(hn_eval_opts){ .mode = HN_EVAL_OWN }, &b->in, &b->own, &dg), &dg);
    b->engine = hn_arena_printf(t->arena, "/tmp/hone-test-%d.hone", (int)getpid());
    b->log = hn_arena_printf(t->arena, "/tmp/hone-test-%d.log", (int)getpid());
    b->store = hn_arena_printf(t->arena, "/tmp/hone-test-%d.db", (int)getpid());
    b->o = (hn_tune_opts){ .model_path = "m.onnx", .program = FAKE_HONE, .threads = 1, .trial_timeout_s = 1, .seed = 1 };
    unlink(b->log);
    unlink(b->store);
    setenv("FAKE_LOG", b->log, 1);
    unsetenv("FAKE_FAULT");
    unsetenv("FAKE_SLOW_MS");
}

static void clean(hn_test *t, bench *b)
{
    hn_tensor_done(&b->in);
    hn_tensor_done(&b->want);
    hn_tensor_done(&b->own);
    const char *all[] = { b->engine, b->log, b->store, hn_arena_printf(t->arena, "%s-wal", b->store),
                          hn_arena_printf(t->arena, "%s-shm", b->store) };
    for (int i = 0; i < HN_COUNT(all); i++) unlink(all[i]);
}

static hone_status tune(hn_test *t, bench *b, hn_diag *dg)
{
    return hn_tune(t->arena, b->g, &b->in, &b->want, &b->own, &b->o, NULL, 0, b->engine, &b->r, dg);
}

static const hn_trial *trial(const bench *b, const char *route)
{
    for (int i = 0; i < b->r.trials.n; i++)
        if (strcmp(b->r.trials.at[i].route, route) == 0) return &b->r.trials.at[i];
    FAIL("no trial \"%s\"", route);
}

static const char *file_text(hn_test *t, const char *path)
{
    hn_bytes f = { 0 };
    if (hn_map_file(path, &f, NULL) != HONE_OK) return "";
    const char *s = hn_arena_strndup(t->arena, (const char *)f.at, f.n);
    hn_unmap(&f);
    return s;
}

static int n_lines(const char *s)
{
    int n = 0;
    for (; *s; s++) n += *s == '\n';
    return n;
}

TEST(the_faster_route_wins_and_lies_on_disk)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.expression = "-region:chain=* -region:epilogue=*";
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK_STR(b.r.route, "-region:chain=0");
    CHECK_NEAR(b.r.speedup, 1.25, 0.06);
    CHECK(b.r.lo > 1 && b.r.lo <= b.r.speedup && b.r.speedup <= b.r.hi);
    CHECK_STR(file_text(t, b.engine), "-region:chain=0");
    clean(t, &b);
}

TEST(one_engine_is_not_measured_twice)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.expression = "-region:prologue=*";
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK_EQ(trial(&b, "-region:prologue=0")->outcome, HN_OUT_SAME_ENGINE);
    CHECK_STR(b.r.route, "");
    clean(t, &b);
}

static void accident(hn_test *t, const char *fault, hn_outcome want, const char *part)
{
    bench b;
    hn_diag dg = { 0 };
    hn_test_note("fault %s", fault);
    make(t, &b);
    setenv("FAKE_FAULT", fault, 1);
    b.o.expression = "-region:views=* -region:chain=*";
    b.o.trial_memory_bytes = 512 << 20;
    b.o.store = b.store;
    CHECK_OK(tune(t, &b, &dg), &dg);
    const hn_trial *x = trial(&b, "-region:views=0");
    hn_test_note("fault %s: %s: %s", fault, hn_outcome_name(x->outcome), x->reason);
    CHECK_EQ(x->outcome, want);
    CHECK(*x->reason && strstr(x->reason, part));
    CHECK_STR(b.r.route, "-region:chain=0"); /* and the search went on */
    /* never retried by accident: resuming finds it in the store */
    unlink(b.log);
    b.o.resume = true;
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK_EQ(trial(&b, "-region:views=0")->outcome, want);
    CHECK(!strstr(file_text(t, b.log), "-region:views=0\n"));
    clean(t, &b);
}

TEST(a_crash_is_an_outcome) { accident(t, "crash", HN_OUT_CRASHED, "SIGABRT"); }
TEST(a_hang_is_an_outcome) { accident(t, "hang", HN_OUT_TIMED_OUT, "time"); }
TEST(no_memory_is_an_outcome) { accident(t, "oom", HN_OUT_OUT_OF_MEMORY, "memory"); }
TEST(a_nan_is_an_outcome) { accident(t, "nan", HN_OUT_INACCURATE, "NaN"); }
TEST(a_refusal_is_an_outcome) { accident(t, "fail", HN_OUT_BUILD_FAILED, "no tactic"); }
TEST(a_crash_while_running_is_an_outcome) { accident(t, "crash_running", HN_OUT_CRASHED, "SIGABRT"); }
TEST(a_hang_while_running_is_an_outcome) { accident(t, "hang_running", HN_OUT_TIMED_OUT, "time"); }

TEST(a_bound_decides_whether_numbers_may_change)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.expression = "-math:winograd=* -region:chain=*";
    b.o.strategy = "fast";
    b.o.threshold = 1e-2;
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK(strstr(b.r.route, "-math:winograd=1"));
    b.o.threshold = 1e-5;
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK_STR(b.r.route, "-region:chain=0");
    CHECK_EQ(trial(&b, "-math:winograd=1")->outcome, HN_OUT_INACCURATE);
    clean(t, &b);
}

/* Pairs of equal engines whose payloads differ: none may win. Each run confirms on fresh samples, so even one is rare. */
TEST(equal_engines_do_not_win)
{
    enum { RUNS = 10 };
    int wins = 0;
    bench b;
    for (int i = 0; i < RUNS; i++) {
        hn_diag dg = { 0 };
        make(t, &b);
        b.o.expression = "-layout:image=[0..2]"; /* nothing that the program heeds */
        CHECK_OK(tune(t, &b, &dg), &dg);
        wins += *b.r.route != 0;
        clean(t, &b);
    }
    hn_test_note("%d wins in %d runs", wins, RUNS);
    CHECK(wins <= 1);
}

TEST(the_budget_is_kept)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    setenv("FAKE_SLOW_MS", "150", 1);
    b.o.expression = "-region:chain=* -region:epilogue=* -region:views=* -layout:image=[0..2] -region:prologue=*";
    b.o.strategy = "full";
    b.o.budget_s = 4;
    const int64_t t0 = hn_now_ns();
    CHECK_OK(tune(t, &b, &dg), &dg);
    const double s = (double)(hn_now_ns() - t0) * 1e-9;
    hn_test_note("%.2f s of %.2f", s, b.o.budget_s);
    CHECK(s < b.o.budget_s + 2);
    CHECK(hn_file_exists(b.engine));
    clean(t, &b);
}

TEST(a_hang_does_not_break_the_budget)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    setenv("FAKE_FAULT", "hang", 1);
    b.o.expression = "-region:views=* -region:chain=*";
    b.o.trial_timeout_s = 60;
    b.o.budget_s = 2;
    const int64_t t0 = hn_now_ns();
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK((double)(hn_now_ns() - t0) * 1e-9 < b.o.budget_s + 2);
    clean(t, &b);
}

/* Killed at any moment: what was stored is not run again, and the engine on disk is whole. */
TEST(a_kill_loses_at_most_the_trial_in_flight)
{
    enum { KILLS = 4 };
    bench b;
    hn_diag dg = { 0 };
    hn_rng rng;
    make(t, &b);
    hn_rng_init(&rng, (uint64_t)hn_now_ns());
    b.o.expression = "-region:chain=* -region:epilogue=* -region:views=* -region:prologue=* -layout:image=[0..2]";
    b.o.strategy = "full";
    b.o.max_trials = 12;
    b.o.store = b.store;
    b.o.resume = true;
    setenv("FAKE_SLOW_MS", "20", 1);
    for (int i = 0; i < KILLS; i++) {
        const pid_t child = fork();
        if (child == 0) {
            tune(t, &b, &dg);
            _exit(0);
        }
        hn_sleep_ns(200000000 + hn_rng_below(&rng, 900000000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    CHECK_OK(tune(t, &b, &dg), &dg);
    const char *log = file_text(t, b.log);
    int repeats = 0;
    for (int i = 0; i < b.r.trials.n; i++) {
        const hn_trial *x = &b.r.trials.at[i];
        if (x->outcome == HN_OUT_FASTER || !*x->route) continue; /* winners and the default are built anew */
        int built = 0;
        const char *line = hn_arena_printf(t->arena, "\n%s\n", x->route), *all = hn_arena_printf(t->arena, "\n%s", log);
        for (const char *at = all; (at = strstr(at, line)); at++) built++;
        repeats += built > 1 ? built - 1 : 0;
    }
    hn_test_note("%d repeats, %d builds, %d restored", repeats, n_lines(log), b.r.n_restored);
    CHECK(repeats <= KILLS);
    CHECK(hn_file_exists(b.engine));
    clean(t, &b);
}

TEST(random_tries_no_route_twice)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.expression = "-layout:image=[0..2] -region:prologue=*";
    b.o.strategy = "random";
    CHECK_OK(tune(t, &b, &dg), &dg);
    for (int i = 0; i < b.r.trials.n; i++)
        for (int k = 0; k < i; k++) CHECK(strcmp(b.r.trials.at[i].route, b.r.trials.at[k].route) != 0);
    CHECK_EQ(b.r.trials.n, 6);
    clean(t, &b);
}

static bool cancel_trials(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)user, (void)done, (void)total;
    return strcmp(phase, "trials") != 0;
}

TEST(cancelling_keeps_an_engine)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.expression = "-region:chain=*";
    b.o.progress = cancel_trials;
    CHECK_ERR(tune(t, &b, &dg), HONE_E_CANCELLED, &dg, "cancelled");
    CHECK(hn_file_exists(b.engine));
    clean(t, &b);
}
