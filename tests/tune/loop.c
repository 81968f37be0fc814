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
    const char *engine, *log, *starts, *builders, *store;
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
    b->starts = hn_arena_printf(t->arena, "/tmp/hone-test-%d.starts", (int)getpid());
    b->builders = hn_arena_printf(t->arena, "/tmp/hone-test-%d.builders", (int)getpid());
    b->store = hn_arena_printf(t->arena, "/tmp/hone-test-%d.db", (int)getpid());
    b->o = (hn_tune_opts){ .model_path = "m.onnx", .program = FAKE_HONE, .threads = 1, .trial_timeout_s = 1, .seed = 1 };
    unlink(b->log);
    unlink(b->starts);
    unlink(b->builders);
    unlink(b->store);
    setenv("FAKE_LOG", b->log, 1);
    setenv("FAKE_STARTS", b->starts, 1);
    setenv("FAKE_BUILDERS", b->builders, 1);
    unsetenv("FAKE_FAULT");
    unsetenv("FAKE_SLOW_MS");
}

static void clean(hn_test *t, bench *b)
{
    hn_tensor_done(&b->in);
    hn_tensor_done(&b->want);
    hn_tensor_done(&b->own);
    const char *all[] = { b->engine, b->log, b->starts, b->builders, b->store, hn_arena_printf(t->arena, "%s-wal", b->store),
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
    const char *s = f.n ? hn_arena_strndup(t->arena, (const char *)f.at, f.n) : "";
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

static bool any_faster(const bench *b)
{
    for (int i = 0; i < b->r.trials.n; i++)
        if (b->r.trials.at[i].outcome == HN_OUT_FASTER) return true;
    return false;
}

/* One process for each side; the race that confirms a winner starts pairs of its own. The 2% of "follow" win the search now and then. */
TEST(processes_that_stand_run_one_engine_after_the_other)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.standing = true;
    b.o.expression = "-region:epilogue=* -region:follow=*";
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK(trial(&b, "-region:follow=last")->cost.rounds >= 3);
    CHECK_EQ(n_lines(file_text(t, b.builders)), 1);
    const int standing = n_lines(file_text(t, b.starts)), n_built = n_lines(file_text(t, b.log));
    if (any_faster(&b)) CHECK(standing > 2 && n_built >= 3);
    else CHECK(standing == 2 && n_built == 3);
    b.o.expression = "-region:chain=*";
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK_STR(b.r.route, "-region:chain=0");
    CHECK(b.r.confirmed && b.r.lo > 1);
    CHECK(n_lines(file_text(t, b.starts)) >= 2 + 2 + 4 * 2);
    clean(t, &b);
}

typedef struct late {
    bench *b;
    hn_tensor want, own;
    int asked, ready_after;
} late;

static bool late_ready(void *user)
{
    late *l = user;
    return ++l->asked > l->ready_after;
}

static hone_status late_references(void *user, hn_diag *dg)
{
    late *l = user;
    (void)dg;
    if (l->want.data) {
        l->b->want = l->want, l->b->own = l->own;
        l->want.data = l->own.data = NULL;
    }
    return HONE_OK;
}

/* The search begins without references. A leader that breaks a bound when they come loses its lead, and what follows is judged. */
static void with_late_references(hn_test *t, int ready_after, const char *route)
{
    static const hn_bound tight = { .norm = HN_NORM_LINF, .limit = 1e-5 };
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    late l = { .b = &b, .want = b.want, .own = b.own, .ready_after = ready_after };
    b.want.data = b.own.data = NULL;
    b.o.standing = true;
    b.o.strategy = "fast";
    b.o.expression = "-math:winograd=* -region:chain=*";
    b.o.bound = &tight;
    b.o.n_bound = 1;
    b.o.references = late_references;
    b.o.references_ready = late_ready;
    b.o.references_user = &l;
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK(l.asked > 0 && !l.want.data);
    CHECK_STR(b.r.route, route);
    CHECK_STR(file_text(t, b.engine), route);
    CHECK(b.r.trials.at[0].err >= 0);
    bool inaccurate = false;
    for (int i = 0; i < b.r.trials.n; i++)
        inaccurate |= strstr(b.r.trials.at[i].route, "winograd") && b.r.trials.at[i].outcome == HN_OUT_INACCURATE;
    CHECK(inaccurate);
    clean(t, &b);
}

TEST(references_may_come_late)
{
    with_late_references(t, 0, "-region:chain=0"); /* before the first trial */
    with_late_references(t, 2, "-region:chain=0"); /* before the second */
    with_late_references(t, 1000000, ""); /* when all is tried: both changes led */
}

/* A gain of 2% shows between processes of which every other is 5% slower: both run both. */
TEST(what_a_process_costs_cancels_on_a_gpu)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.standing = true;
    b.o.expression = "-region:follow=[last] -region:outputs=[1]";
    setenv("FAKE_EFFECTS", "-region:follow=last 0.98 -region:outputs=1 0.92", 1); /* the latter is a tenth slower by itself */
    setenv("FAKE_NOISE", "0.1", 1);
    setenv("FAKE_PROCESS", "0.05", 1);
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK(strstr(b.r.route, "-region:follow=last"));
    CHECK(b.r.confirmed);
    CHECK_NEAR(b.r.speedup, strstr(b.r.route, "outputs") ? 1.008 : 1.0204, 0.005);
    for (int i = 1; i < b.r.trials.n; i++) CHECK(b.r.trials.at[i].cost.rounds <= 24);
    unsetenv("FAKE_EFFECTS");
    unsetenv("FAKE_NOISE");
    unsetenv("FAKE_PROCESS");
    clean(t, &b);
}

/* What earlier races say of noise ends one before its own rounds could. */
TEST(a_slow_engine_is_given_up_early)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.strategy = "full";
    b.o.expression = "-region:follow=* -region:copy_views=* -region:recompute=* -region:outputs=[1]";
    CHECK_OK(tune(t, &b, &dg), &dg);
    int early = 0, before = 0;
    for (int i = 1; i < b.r.trials.n; i++) {
        const hn_trial *x = &b.r.trials.at[i];
        const bool slow = strstr(x->route, "-region:outputs=1") != NULL;
        if (slow) early += x->cost.rounds < 3;
        else before += x->cost.rounds;
        if (slow) CHECK_EQ(x->outcome, HN_OUT_NOT_FASTER);
    }
    CHECK(before >= 9);
    CHECK(early >= 4); /* of eight */
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

/* The default's regions, and those of each that led, are searched. */
TEST(a_runner_up_can_win_in_the_whole_engine)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.standing = true;
    b.o.max_trials = 3;
    setenv("FAKE_RUNNERS_UP", "\"region:a\":[0.6,1.03],\"region:b\":[0.3,1.9]", 1);
    CHECK_OK(tune(t, &b, &dg), &dg);
    unsetenv("FAKE_RUNNERS_UP");
    CHECK(strstr(b.r.route, "-tactic:rank@region:a=1")); /* an idle setting beside it wins its race once in a hundred times */
    CHECK(b.r.confirmed && b.r.lo > 1);
    clean(t, &b);
}

/* What two settings gain together is found without a trial of each alone; what hurts stays out; what changes nothing costs no race. */
TEST(regions_are_screened_together)
{
    enum { REGIONS = 9 };
    bench b;
    hn_diag dg = { 0 };
    hn_str regions = { 0 }, effects = { 0 };
    make(t, &b);
    b.o.standing = true;
    b.o.max_trials = 45;
    b.o.seed = 3;
    for (int i = 0; i < REGIONS; i++) {
        hn_str_addf(&regions, "%s\"region:r%d\":[0.1%s]", i ? "," : "", i, i < 6 ? ",1.02" : "");
        hn_str_addf(&effects, "-tactic:rank@region:r%d=1 %.3f -plan:early@region:r%d=1 %.3f ", i, i % 2 ? 0.98 : 1.03, i, i % 3 ? 1.02 : 0.97);
    }
    setenv("FAKE_RUNNERS_UP", hn_str_get(&regions), 1);
    setenv("FAKE_EFFECTS", hn_str_get(&effects), 1);
    setenv("FAKE_READS", ",\"plan:early\"", 1);
    setenv("FAKE_NOISE", "0.2", 1);
    CHECK_OK(tune(t, &b, &dg), &dg);
    int good = 0, bad = 0, surveys = 0, in_route = 0;
    for (int i = 0; i < 6; i++) {
        const bool taken = strstr(b.r.route, hn_arena_printf(t->arena, "-tactic:rank@region:r%d=1", i)) != NULL;
        good += taken && i % 2, bad += taken && !(i % 2);
    }
    for (int i = 0; i < REGIONS; i++) {
        const bool taken = strstr(b.r.route, hn_arena_printf(t->arena, "-plan:early@region:r%d=1", i)) != NULL;
        good += taken && i % 3 == 0, bad += taken && i % 3;
    }
    for (int i = 0; i < b.r.trials.n; i++) surveys += b.r.trials.at[i].outcome == HN_OUT_SCREENED;
    for (int i = 0; i < b.r.effects.n; i++) {
        const hn_effect *x = &b.r.effects.at[i];
        in_route += x->taken && strstr(b.r.route, x->setting);
        CHECK(x->sd < 0.012);
    }
    hn_test_note("%d of 5 good, %d bad, %d surveys of %d trials: %s", good, bad, surveys, b.r.trials.n, b.r.route);
    CHECK(good >= 4 && bad == 0); /* of r3 one of two */
    CHECK(surveys >= 10);
    CHECK_EQ(b.r.effects.n, 6 + REGIONS);
    CHECK_EQ(in_route, good);
    CHECK(b.r.confirmed && b.r.lo > 1);
    for (int i = 0; i < 4; i++) unsetenv(((const char *const[]){ "FAKE_RUNNERS_UP", "FAKE_EFFECTS", "FAKE_READS", "FAKE_NOISE" })[i]);
    hn_str_done(&regions);
    hn_str_done(&effects);
    clean(t, &b);
}

static void accident_in(hn_test *t, const char *fault, hn_outcome want, const char *part, bool standing)
{
    bench b;
    hn_diag dg = { 0 };
    hn_test_note("fault %s", fault);
    make(t, &b);
    b.o.standing = standing;
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

static void accident(hn_test *t, const char *fault, hn_outcome want, const char *part)
{
    accident_in(t, fault, want, part, /* standing= */ false);
    accident_in(t, fault, want, part, /* standing= */ true);
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
    static const hn_bound loose = { .norm = HN_NORM_REL_L2, .limit = 1e-2 }, tight = { .norm = HN_NORM_LINF, .limit = 1e-5 };
    b.o.bound = &loose;
    b.o.n_bound = 1;
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK(strstr(b.r.route, "-math:winograd=1"));
    b.o.bound = &tight;
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

/* "-layout:image=0" and "=2" are tried over the incumbent without chains, never both at once, and only because it reads them. */
TEST(the_space_grows_with_what_builds_read)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.strategy = "fast";
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK_STR(b.r.route, "-region:chain=0");
    CHECK_EQ(b.r.trials.n, 5);
    CHECK_EQ(trial(&b, "-region:chain=0 -layout:image=0")->outcome, HN_OUT_NOT_FASTER);
    CHECK_EQ(trial(&b, "-region:chain=0 -layout:image=2")->outcome, HN_OUT_NOT_FASTER);
    CHECK_STR(trial(&b, "")->knobs, "region:chain region:epilogue");
    /* what a stored trial read opens knobs as well */
    b.o.store = b.store;
    CHECK_OK(tune(t, &b, &dg), &dg);
    b.o.resume = true;
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK(b.r.n_restored > 0);
    CHECK_EQ(b.r.trials.n, 5);
    b.o.strategy = "full";
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK_EQ(b.r.trials.n, 12);
    clean(t, &b);
}

TEST(a_base_route_is_kept_unless_a_trial_turns_it)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.base_route = "-region:epilogue=0 -region:prologue=0";
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK_STR(b.r.route, "-region:chain=0 -region:prologue=0");
    CHECK_STR(b.r.trials.at[0].route, "-region:epilogue=0 -region:prologue=0");
    clean(t, &b);
}

/* ---- accuracy ---- */
static void bounded(hn_test *t, hn_bound bound, const char *judge, double limit, const char *want, const char *part)
{
    bench b;
    hn_diag dg = { 0 };
    hn_test_note("%s %g, %s", hn_norm_name(bound.norm), bound.limit, judge ? judge : "no command");
    make(t, &b);
    b.o.expression = "-math:winograd=*"; /* twice as fast, y = 2.002 for 2 */
    b.o.bound = &bound;
    b.o.n_bound = 1;
    b.o.judge = judge;
    b.o.judge_limit = limit;
    CHECK_OK(tune(t, &b, &dg), &dg);
    hn_test_note("\"%s\": %s", b.r.route, trial(&b, "-math:winograd=1")->reason);
    CHECK_STR(b.r.route, want);
    CHECK(strstr(trial(&b, "-math:winograd=1")->reason, part));
    clean(t, &b);
}

TEST(every_metric_bounds)
{
    static const char win[] = "-math:winograd=1";
    const struct {
        hn_norm norm;
        double loose, tight;
    } k[] = { { HN_NORM_REL_L2, 2e-3, 5e-4 }, { HN_NORM_L0, 1, 0.5 }, { HN_NORM_L1, 3e-3, 1e-3 }, { HN_NORM_L2, 3e-3, 1e-3 },
              { HN_NORM_LINF, 3e-3, 1e-3 }, { HN_NORM_COSINE, 0.9, 1.1 }, { HN_NORM_SNR, 50, 70 } };
    for (int i = 0; i < HN_COUNT(k); i++) {
        if (k[i].norm == HN_NORM_COSINE) continue; /* of one element it is 1: nothing to be tight about */
        bounded(t, (hn_bound){ .norm = k[i].norm, .limit = k[i].loose }, NULL, 0, win, "");
        bounded(t, (hn_bound){ .norm = k[i].norm, .limit = k[i].tight }, NULL, 0, "", hn_norm_name(k[i].norm));
    }
}

TEST(a_bound_that_names_an_output_goes_first)
{
    const hn_bound bound[] = { { .norm = HN_NORM_LINF, .limit = 1e-9 }, { .norm = HN_NORM_LINF, .output = "y", .limit = 1 } };
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.expression = "-math:winograd=*";
    b.o.bound = bound;
    b.o.n_bound = 2;
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK_STR(b.r.route, "-math:winograd=1");
    const hn_bound other = { .norm = HN_NORM_LINF, .output = "z", .limit = 1 };
    b.o.bound = &other;
    b.o.n_bound = 1;
    CHECK_ERR(tune(t, &b, &dg), HONE_E_INVALID, &dg, "\"z\"");
    clean(t, &b);
}

/* The command reads the float at the end of the file that outputs.json names. */
#define READ_Y "f=$(sed 's/.*\"y\":\"//;s/\".*//' \"$1/outputs.json\"); od -An -tf4 -j128 \"$1/$f\""

TEST(a_command_judges)
{
    const hn_bound wide = { .norm = HN_NORM_LINF, .limit = 1 };
    bounded(t, wide, "read_y() { " READ_Y "; }; read_y", 2.003, "-math:winograd=1", "");
    bounded(t, wide, "read_y() { " READ_Y "; }; read_y", 2.001, "", "at most 2.001");
}

TEST(a_command_without_an_answer_is_an_error_for_the_default)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.expression = "-region:chain=*";
    b.o.judge = "echo no idea; false";
    b.o.judge_limit = 1;
    CHECK_ERR(tune(t, &b, &dg), HONE_E_ACCURACY, &dg, "no number");
    clean(t, &b);
}

/* ---- ends ---- */
TEST(the_default_is_built_whatever_the_budget)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    setenv("FAKE_SLOW_MS", "600", 1);
    b.o.budget_s = 0.3;
    const int64_t t0 = hn_now_ns();
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK((double)(hn_now_ns() - t0) * 1e-9 < 2.3);
    CHECK_EQ(b.r.trials.n, 1);
    CHECK(strstr(b.r.note, "no route was tried"));
    CHECK(hn_file_exists(b.engine));
    clean(t, &b);
}

typedef struct stopper {
    const char *phase;
    int after; /* calls in that phase */
} stopper;

static bool stop_in_phase(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)done, (void)total;
    stopper *s = user;
    return strcmp(phase, s->phase) != 0 || s->after-- > 0;
}

static void stop(hn_test *t, bench *b, stopper s, hn_diag *dg)
{
    make(t, b);
    setenv("FAKE_SLOW_MS", "400", 1); /* long enough to be stopped while it builds */
    b->o.expression = "-region:chain=* -region:epilogue=*";
    b->o.progress = stop_in_phase;
    b->o.progress_user = &s;
    tune(t, b, dg);
}

TEST(stopping_keeps_what_is_proven)
{
    bench b;
    hn_diag dg = { 0 };
    stop(t, &b, (stopper){ "trials", 0 }, &dg);
    CHECK_OK(dg.code, &dg);
    CHECK(b.r.stopped && !*b.r.route);
    CHECK_STR(file_text(t, b.engine), "");
    clean(t, &b);
    stop(t, &b, (stopper){ "trials", 1 }, &dg); /* the first trial's build is the second call */
    CHECK_OK(dg.code, &dg);
    CHECK(b.r.stopped && b.r.trials.n == 1);
    clean(t, &b);
    stop(t, &b, (stopper){ "confirm", 0 }, &dg);
    CHECK_OK(dg.code, &dg);
    CHECK(b.r.stopped && !b.r.confirmed);
    CHECK_STR(b.r.route, "-region:chain=0");
    CHECK_STR(file_text(t, b.engine), "-region:chain=0");
    CHECK(b.r.lo > 1 && b.r.lo <= b.r.speedup);
    clean(t, &b);
    stop(t, &b, (stopper){ "default build", 1 }, &dg);
    CHECK_EQ(dg.code, HONE_E_CANCELLED);
    clean(t, &b);
}

TEST(intervals_are_those_that_prove)
{
    bench b;
    hn_diag dg = { 0 };
    make(t, &b);
    b.o.expression = "-region:chain=*";
    CHECK_OK(tune(t, &b, &dg), &dg);
    CHECK_NEAR(b.r.confidence, 0.99, 1e-12);
    CHECK(b.r.confirmed);
    for (int i = 1; i < b.r.trials.n; i++) CHECK_EQ(b.r.trials.at[i].outcome == HN_OUT_FASTER, b.r.trials.at[i].lo > 1);
    clean(t, &b);
}
