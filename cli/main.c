/* Dispatch, help, errors, progress. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const cli_command *const commands[] = { &cli_build, &cli_run, &cli_bench, &cli_tune, &cli_knobs,
                                               &cli_explain, &cli_inspect, &cli_verify, &cli_doctor, &cli_trtexec };

static void usage(FILE *f)
{
    fprintf(f, "Usage: hone COMMAND [OPTION]... [FILE]\n\nCommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        fprintf(f, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(f, "\nhone COMMAND --help says more. Exit status: 0, or the number of the error (hone doctor --json lists them).\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return HONE_E_INVALID;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        printf("hone %s\n", hone_version());
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i]->name) == 0) return commands[i]->run(argc - 1, argv + 1);
    fprintf(stderr, "hone: there is no command \"%s\"; hone --help lists them\n", argv[1]);
    return HONE_E_INVALID;
}

/* ---- errors and output ---- */
static int report(const cli_options *o, int status, const char *message, const char *text)
{
    fprintf(stderr, "hone: %s\n", text);
    if (o && o->json) {
        cJSON *j = cJSON_CreateObject(), *e = cJSON_AddObjectToObject(j, "error");
        cJSON_AddStringToObject(e, "message", message);
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
    const int r = report(o, status ? status : HONE_E_INTERNAL, hone_error_message(err), hone_error_text(err));
    hone_error_free(err);
    return r;
}

int cli_misuse(const cli_options *o, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return report(o, HONE_E_INVALID, text, text);
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
    static char *kept[1024];
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
    if (!isatty(STDERR_FILENO) || now - last < 0.1) return true;
    last = now;
    fprintf(stderr, "\r\033[K%s", phase);
    if (total > 0) fprintf(stderr, " %lld/%lld", (long long)done, (long long)total);
    fprintf(stderr, "  %.0f s", elapsed_s);
    if (remaining_s >= 0) fprintf(stderr, ", %.0f s left", remaining_s);
    fprintf(stderr, done >= total && total > 0 ? "\r\033[K" : "");
    fflush(stderr);
    return true;
}
