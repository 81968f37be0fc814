/* hone trials: a trial store as JSON lines, and back. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_standard(const char *file)
{
    return strcmp(file, "-") == 0;
}

/* A whole file as text; NULL: errno says why. */
static char *read_whole(const char *file)
{
    FILE *f = is_standard(file) ? stdin : fopen(file, "r");
    char *text = NULL;
    size_t n = 0, cap = 0, got = 1;
    while (f && got) {
        if (cap - n < 2) {
            char *more = realloc(text, cap = 2 * cap + 65536);
            if (!more) break;
            text = more;
        }
        n += got = fread(text + n, 1, cap - n - 1, f);
    }
    const bool whole = f && !got && !ferror(f);
    if (f && f != stdin) fclose(f);
    if (!whole) {
        free(text);
        return NULL;
    }
    text[n] = 0;
    return text;
}

static int import(const cli_options *o)
{
    hone_error *err = NULL;
    int added = 0;
    char *text = read_whole(o->import_file);
    if (!text) return cli_fail(o, cli_error("cannot read \"%s\": %s", o->import_file, strerror(errno)));
    const hone_status s = hone_trials_import(o->positional, text, &added, &err);
    free(text);
    if (s) return cli_fail(o, err);
    if (o->json) {
        cJSON *j = cJSON_CreateObject();
        cJSON_AddNumberToObject(j, "added", added);
        cli_print_json(j);
    } else {
        printf("%d trials added to %s\n", added, o->positional);
    }
    return 0;
}

static int export(const cli_options *o, const char *file)
{
    hone_error *err = NULL;
    char *text = NULL;
    if (hone_trials_export(o->positional, &text, &err)) return cli_fail(o, err);
    const char *why = NULL;
    if (!is_standard(file)) why = cli_write_text(file, text);
    else if (fputs(text, stdout) < 0 || fflush(stdout) != 0) why = strerror(errno);
    hone_string_free(text);
    return why ? cli_fail(o, cli_error("cannot write \"%s\": %s", file, why)) : 0;
}

static int run(int argc, char **argv)
{
    cli_options o;
    int status;
    if (!cli_parse(&cli_trials, argc, argv, &o, &status)) return status;
    if (!o.positional) return cli_misuse(&o, "which store? usage: hone trials STORE.db [--export FILE | --import FILE]");
    if (o.export_file && o.import_file) return cli_misuse(&o, "--export and --import are two things to do");
    return o.import_file ? import(&o) : export(&o, o.export_file ? o.export_file : "-");
}

const cli_command cli_trials = {
    "trials", "a trial store as JSON lines, and back",
    "Usage: hone trials STORE.db [--export FILE | --import FILE]\n",
    run, CLI_TRIALS,
};
