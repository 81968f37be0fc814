/* Dispatch, help, errors, progress. */
#include "cli.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const cli_command *const commands[] = { &cli_build, &cli_run, &cli_bench, &cli_tune, &cli_trials, &cli_knobs,
                                               &cli_explain, &cli_inspect, &cli_verify, &cli_doctor, &cli_trtexec };
enum { N_COMMAND = sizeof commands / sizeof commands[0] };

static void usage(FILE *f)
{
    fprintf(f, "Usage: hone COMMAND [OPTION]... [FILE]\n\nCommands:\n");
    for (int i = 0; i < N_COMMAND; i++) fprintf(f, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(f, "\nhone COMMAND --help lists a command's options. Exit statuses:\n");
    for (int s = HONE_OK; s <= HONE_E_INTERNAL; s++) fprintf(f, "%4d  %s\n", s, hone_status_text((hone_status)s));
}

static const cli_command *find(const char *name)
{
    for (int i = 0; i < N_COMMAND; i++)
        if (strcmp(name, commands[i]->name) == 0) return commands[i];
    return NULL;
}

static int no_command(const char *name)
{
    const char *names[N_COMMAND];
    for (int i = 0; i < N_COMMAND; i++) names[i] = commands[i]->name;
    const char *near = cli_nearest(name, names, N_COMMAND);
    if (near) return cli_misuse(NULL, "there is no command \"%s\"; \"%s\" is one", name, near);
    return cli_misuse(NULL, "there is no command \"%s\"; hone --help lists them", name);
}

static int explain_usage(int argc, char **argv)
{
    if (argc < 3) {
        usage(stdout);
        return 0;
    }
    const cli_command *c = find(argv[2]);
    char *words[] = { argv[2], (char[]){ "--help" }, NULL };
    return c ? c->run(2, words) : no_command(argv[2]);
}

/* ---- signals and what is left when the program ends ---- */
static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
    interrupted = 1;
    signal(sig, SIG_DFL); /* a second one ends the program */
}

bool cli_interrupted(void)
{
    return interrupted;
}

/* What was printed must have arrived: a full disk shows only when the last of it is written. */
static int finish(int status)
{
    const bool lost = fflush(stdout) || ferror(stdout);
    if (!lost || status) return status;
    return cli_fail(NULL, hone_error_create(HONE_E_IO, "standard output cannot be written"));
}

int main(int argc, char **argv)
{
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (argc < 2) {
        usage(stderr);
        return HONE_E_INVALID;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
        return finish(explain_usage(argc, argv));
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        printf("hone %s\n", hone_version());
        return finish(0);
    }
    const cli_command *c = find(argv[1]);
    return c ? finish(c->run(argc - 1, argv + 1)) : no_command(argv[1]);
}

/* ---- errors and output ---- */
static bool progress_shown;

static int report(const cli_options *o, int status, const char *message, const char *hint, const char *text)
{
    if (progress_shown) fprintf(stderr, "\r\033[K");
    fprintf(stderr, "hone: %s\n", text);
    if (o && o->json) {
        cJSON *j = cJSON_CreateObject(), *e = cJSON_AddObjectToObject(j, "error");
        cJSON_AddStringToObject(e, "message", message);
        if (*hint) cJSON_AddStringToObject(e, "hint", hint);
        cJSON_AddNumberToObject(e, "status", status);
        cli_print_json(j);
    }
    return status;
}

int cli_fail(const cli_options *o, hone_error *err)
{
    const int status = (int)hone_error_status(err);
    const int n = hone_error_count(err);
    if (n > 1)
        for (int i = 0; i < n; i++) fprintf(stderr, "hone: %s\n", hone_error_item(err, i));
    const int r = report(o, status ? status : HONE_E_INTERNAL, hone_error_message(err), hone_error_hint(err),
                         hone_error_text(err));
    hone_error_free(err);
    return r;
}

int cli_misuse(const cli_options *o, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return report(o, HONE_E_INVALID, text, "", text);
}

void cli_print_json(cJSON *j)
{
    char *s = cJSON_PrintUnformatted(j);
    printf("%s\n", s ? s : "{}");
    fflush(stdout);
    free(s);
    cJSON_Delete(j);
}

char *cli_keep(char *text)
{
    static char *kept[4096];
    static int n;
    if (text && n < (int)(sizeof kept / sizeof kept[0])) kept[n++] = text;
    return text;
}

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool cli_progress(void *user, const char *phase, int64_t done, int64_t total, double elapsed_s, double remaining_s)
{
    (void)user;
    static double last;
    const double now = cli_now();
    if (!isatty(STDERR_FILENO) || now - last < 0.1) return !interrupted;
    last = now;
    progress_shown = true;
    fprintf(stderr, "\r\033[K%s", phase);
    if (total > 0) fprintf(stderr, " %lld/%lld", (long long)done, (long long)total);
    fprintf(stderr, "  %.0f s", elapsed_s);
    if (remaining_s >= 0) fprintf(stderr, ", %.0f s left", remaining_s);
    fprintf(stderr, done >= total && total > 0 ? "\r\033[K" : "");
    fflush(stderr);
    return !interrupted;
}
