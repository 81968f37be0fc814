#include "harness.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { EXIT_FAILED = 1, EXIT_SKIPPED = 77, DEFAULT_TIMEOUT_S = 60 };

static hn_test *first, **last = &first;
static struct {
    const char *program, *filter, *name;
    int timeout_s;
    bool no_fork;
} opt;
static bool in_child;
static char note[512];

/* cmocka catches these to go on after a crash; a child must die of them, or leave them to the sanitizer. */
static const int crash_signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
static struct sigaction handlers_at_start[HN_COUNT(crash_signals)];

/* Tests ask for more memory than there is; a sanitizer must answer NULL as malloc does. */
HN_API const char *__asan_default_options(void);
HN_API const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

HN_API const char *__tsan_default_options(void);
HN_API const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

void hn_test_register(hn_test *t)
{
    *last = t;
    last = &t->next;
}

static void end_case(int code)
{
    fflush(NULL);
    if (in_child) _exit(code);
    if (code == EXIT_SKIPPED) skip();
    fail();
}

void hn_test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    if (note[0]) fprintf(stderr, "    note: %s\n", note);
    va_end(ap);
    end_case(EXIT_FAILED);
    abort();
}

void hn_test_skip(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "    skipped: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    end_case(EXIT_SKIPPED);
    abort();
}

void hn_test_note(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(note, sizeof note, fmt, ap);
    va_end(ap);
}

void hn_check_eq(const char *file, int line, const char *sa, const char *sb, int64_t a, int64_t b)
{
    if (a != b)
        hn_test_fail(file, line, "%s is %lld (0x%llx), %s is %lld (0x%llx)", sa, (long long)a,
                     (unsigned long long)a, sb, (long long)b, (unsigned long long)b);
}

void hn_check_str(const char *file, int line, const char *sa, const char *sb, const char *a, const char *b)
{
    if (a == b || (a && b && strcmp(a, b) == 0)) return;
    hn_test_fail(file, line, "%s differs from %s\n    got:  %s\n    want: %s", sa, sb, a ? a : "(null)",
                 b ? b : "(null)");
}

void hn_check_near(const char *file, int line, const char *sa, double a, double b, double tol)
{
    if (a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tol) return;
    hn_test_fail(file, line, "%s is %.17g, want %.17g within %g", sa, a, b, tol);
}

void hn_check_ok(const char *file, int line, const char *expr, hone_status s, const hn_diag *dg)
{
    char text[2048] = "(no diagnosis)";
    if (s == HONE_OK) return;
    if (dg && dg->code != HONE_OK) hn_diag_format(dg, text, sizeof text);
    hn_test_fail(file, line, "%s gave %s:\n%s", expr, hn_status_name(s), text);
}

void hn_check_err(const char *file, int line, const char *expr, hone_status s, hone_status want, hn_diag *dg,
                  const char *part)
{
    char text[2048];
    hn_diag_format(dg, text, sizeof text);
    if (s != want)
        hn_test_fail(file, line, "%s gave %s, want %s: %s", expr, hn_status_name(s), hn_status_name(want),
                     text);
    if (dg->code != want)
        hn_test_fail(file, line, "%s: the diagnosis says %s, the status %s", expr, hn_status_name(dg->code),
                     hn_status_name(want));
    if (!dg->message[0]) hn_test_fail(file, line, "%s: the diagnosis has no message", expr);
    if (part && !strstr(text, part))
        hn_test_fail(file, line, "%s: no \"%s\" in the diagnosis: %s", expr, part, text);
    hn_diag_clear(dg);
}

static void run_body(hn_test *t)
{
    t->arena = hn_arena_create();
    t->fn(t);
    hn_arena_destroy(t->arena);
    t->arena = NULL;
}

static HN_NORETURN void child(hn_test *t, pid_t parent)
{
    in_child = true;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(EXIT_FAILED);
    for (int i = 0; i < HN_COUNT(crash_signals); i++)
        sigaction(crash_signals[i], &handlers_at_start[i], NULL);
    run_body(t);
    fflush(NULL);
    exit(0); /* not _exit: a leak checker runs here */
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Waits for the child; false when the time limit passed and its process group was killed. */
static bool wait_child(pid_t pid, int *ret_status)
{
    const double deadline = opt.timeout_s > 0 ? now_s() + opt.timeout_s : INFINITY;
    struct timespec nap = { 0, 200 * 1000 };
    for (;;) {
        const pid_t got = waitpid(pid, ret_status, WNOHANG);
        if (got == pid) return true;
        if (got < 0 && errno != EINTR) fail_msg("waitpid: %s", strerror(errno));
        if (now_s() > deadline) break;
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < 5 * 1000 * 1000) nap.tv_nsec *= 2;
    }
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR) {
    }
    return false;
}

static void run_case(void **state)
{
    hn_test *t = *state;
    int status = 0;

    if (opt.no_fork) {
        run_body(t);
        return;
    }
    fflush(NULL);
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) fail_msg("fork: %s", strerror(errno));
    if (pid == 0) child(t, parent);
    setpgid(pid, pid);
    const bool in_time = wait_child(pid, &status);
    kill(-pid, SIGKILL); /* whatever the case left running */
    if (in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (in_time && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED) skip();
    if (!in_time)
        fail_msg("%s: time limit of %d s passed; rerun: %s --filter %s", t->file, opt.timeout_s, opt.program,
                 t->name);
    if (WIFSIGNALED(status))
        fail_msg("%s: died of signal %d (%s); rerun: %s --filter %s", t->file, WTERMSIG(status),
                 strsignal(WTERMSIG(status)), opt.program, t->name);
    fail_msg("%s: exit status %d; rerun: %s --filter %s", t->file, WEXITSTATUS(status), opt.program, t->name);
}

static int usage(const char *why)
{
    fprintf(stderr, "%s: %s\nusage: %s [--filter SUBSTRING] [--case NAME] [--list] [--timeout SECONDS] [--no-fork]\n",
            opt.program, why, opt.program);
    return 2;
}

static bool chosen(const hn_test *t)
{
    return (!opt.filter || strstr(t->name, opt.filter)) && (!opt.name || strcmp(t->name, opt.name) == 0);
}

static int run_all(void)
{
    int n = 0;
    for (const hn_test *t = first; t; t = t->next)
        n += chosen(t);
    if (n == 0) return usage("no test matches the filter");

    struct CMUnitTest *tests = calloc((size_t)n, sizeof *tests);
    if (!tests) return usage("out of memory");
    n = 0;
    for (hn_test *t = first; t; t = t->next)
        if (chosen(t))
            tests[n++] = (struct CMUnitTest){ .name = t->name, .test_func = run_case, .initial_state = t };
    const char *slash = strrchr(opt.program, '/');
    const int n_failed =
        _cmocka_run_group_tests(slash ? slash + 1 : opt.program, tests, (size_t)n, NULL, NULL);
    free(tests);
    return n_failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    const char *env = getenv("HONE_TEST_TIMEOUT");
    bool list = false;

    opt.program = argv[0];
    opt.timeout_s = env && *env ? atoi(env) : DEFAULT_TIMEOUT_S;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0)
            list = true;
        else if (strcmp(argv[i], "--no-fork") == 0)
            opt.no_fork = true;
        else if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc)
            opt.filter = argv[++i];
        else if (strncmp(argv[i], "--filter=", 9) == 0)
            opt.filter = argv[i] + 9;
        else if (strcmp(argv[i], "--case") == 0 && i + 1 < argc)
            opt.name = argv[++i];
        else if (strcmp(argv[i], "--timeout") == 0 && i + 1 < argc)
            opt.timeout_s = atoi(argv[++i]);
        else
            return usage("unknown or incomplete option");
    }
    for (int i = 0; i < HN_COUNT(crash_signals); i++)
        sigaction(crash_signals[i], NULL, &handlers_at_start[i]);
    if (!list) return run_all();
    for (const hn_test *t = first; t; t = t->next)
        if (chosen(t)) printf("%s\n", t->name);
    return 0;
}
