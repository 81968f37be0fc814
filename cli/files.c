/* Whole files, and files that are there whole or not at all. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *cli_open_new(const char *path, char **ret_temporary, const char **ret_why)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        *ret_why = S_ISDIR(st.st_mode) ? "it is a folder" : "it is no regular file";
        return NULL;
    }
    char *temporary = cli_text("%s.tmp-%d", path, (int)getpid());
    FILE *f = temporary ? fopen(temporary, "wbx") : NULL;
    if (!f) *ret_why = temporary ? strerror(errno) : "there is no memory for it";
    *ret_temporary = temporary;
    return f;
}

const char *cli_close_new(FILE *f, const char *temporary, const char *path, const char *why)
{
    errno = 0;
    const bool failed = ferror(f);
    if ((fclose(f) || failed) && !why) why = errno ? strerror(errno) : "it cannot be written";
    if (!why && rename(temporary, path)) why = strerror(errno);
    if (why) remove(temporary);
    return why;
}

const char *cli_write_text(const char *path, const char *text)
{
    char *temporary;
    const char *why = NULL;
    FILE *f = cli_open_new(path, &temporary, &why);
    if (!f) return why;
    fputs(text, f);
    return cli_close_new(f, temporary, path, NULL);
}

const char *cli_make_folder(const char *dir)
{
    struct stat st;
    if (mkdir(dir, 0777) == 0) return NULL;
    if (errno != EEXIST) return strerror(errno);
    return stat(dir, &st) == 0 && S_ISDIR(st.st_mode) ? NULL : "it is no folder";
}

int cli_unwritable(const cli_options *o, const char *path, const char *why)
{
    return cli_fail(o, hone_error_create(HONE_E_IO, cli_text("cannot write \"%s\": %s", path, why)));
}
