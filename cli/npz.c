/* NumPy's .npz: a zip archive whose members are NAME.npy. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#ifdef CLI_ZIP
#include <zip.h>

static const char *zip_why(int code)
{
    zip_error_t e;
    zip_error_init_with_code(&e, code);
    const char *why = cli_text("%s", zip_error_strerror(&e));
    zip_error_fini(&e);
    return why ? why : "it cannot be read";
}

static const char *read_member(zip_t *z, const char *member, hone_tensor *ret)
{
    zip_stat_t st;
    if (zip_stat(z, member, 0, &st) != 0) return NULL; /* no such array */
    if (!(st.valid & ZIP_STAT_SIZE) || st.size > SIZE_MAX / 2) return "its directory is damaged";
    zip_file_t *f = zip_fopen(z, member, 0);
    if (!f) return cli_text("%s", zip_strerror(z));
    char *data = malloc((size_t)st.size + 1);
    const char *why = data ? NULL : "there is no memory for it";
    if (!why && zip_fread(f, data, st.size) != (zip_int64_t)st.size) why = "a member is damaged";
    zip_fclose(f);
    FILE *in = why ? NULL : fmemopen(data, (size_t)st.size + 1, "rb");
    if (!why) why = in ? cli_npy_take(in, (size_t)st.size, ret) : "there is no memory for it";
    if (in) fclose(in);
    free(data);
    return why;
}

const char *cli_npz_read(const char *path, const char *name, hone_tensor *ret)
{
    int code = 0;
    zip_t *z = zip_open(path, ZIP_RDONLY, &code);
    if (!z) return zip_why(code);
    char *member = cli_text("%s.npy", name);
    const char *why = member ? read_member(z, member, ret) : "there is no memory for it";
    zip_discard(z);
    return why;
}

/* The array as the bytes of a .npy file; malloc'd. */
static const char *as_file(const hone_tensor *t, char **ret, size_t *ret_n)
{
    FILE *f = open_memstream(ret, ret_n);
    if (!f) return "there is no memory for it";
    const char *why = cli_npy_put(f, t);
    if (fclose(f) && !why) why = "there is no memory for it";
    if (why) free(*ret);
    return why;
}

static const char *add_member(zip_t *z, const char *name, const hone_tensor *t)
{
    char *data = NULL, *member = cli_text("%s.npy", name);
    size_t n = 0;
    const char *why = member ? as_file(t, &data, &n) : "there is no memory for it";
    if (why) return why;
    zip_source_t *s = zip_source_buffer(z, data, n, 1); /* frees data */
    if (!s) free(data);
    const zip_int64_t at = s ? zip_file_add(z, member, s, ZIP_FL_ENC_UTF_8) : -1;
    if (at >= 0 && zip_set_file_compression(z, (zip_uint64_t)at, ZIP_CM_STORE, 0) == 0) return NULL;
    if (s && at < 0) zip_source_free(s);
    return cli_text("%s", zip_strerror(z));
}

const char *cli_npz_write(const char *path, const char *const *name, const hone_tensor *t, int n)
{
    int code = 0;
    const char *why = NULL;
    char *temporary;
    FILE *f = cli_open_new(path, &temporary, &why);
    if (!f) return why;
    fclose(f);
    zip_t *z = zip_open(temporary, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (!z) why = zip_why(code);
    for (int i = 0; !why && i < n; i++) why = add_member(z, name[i], &t[i]);
    if (z && why) zip_discard(z);
    else if (z && zip_close(z) != 0) {
        why = cli_text("%s", zip_strerror(z));
        zip_discard(z);
    }
    if (!why && rename(temporary, path)) why = "it cannot be replaced";
    if (why) remove(temporary);
    return why;
}

#else

static const char none[] = "this build reads and writes no .npz files (libzip was missing when it was built)";

const char *cli_npz_read(const char *path, const char *name, hone_tensor *ret)
{
    (void)path, (void)name, (void)ret;
    return none;
}

const char *cli_npz_write(const char *path, const char *const *name, const hone_tensor *t, int n)
{
    (void)path, (void)name, (void)t, (void)n;
    return none;
}
#endif
