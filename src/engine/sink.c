#include "engine/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static hone_status sys_error(const hn_sink *s, const char *doing, hn_diag *dg)
{
    return HN_RAISE(dg, HONE_E_IO, "cannot %s \"%s\": %s", doing, s->path, strerror(errno));
}

/* mkstemp makes files private; an engine is as readable as any file its owner makes. umask can only be read
 * by setting it, which would be a race between threads, so ask for the permissions through open. */
static int open_temp(const char *path, char **ret_temp)
{
    const size_t n = strlen(path) + 40;
    char *const temp = malloc(n);

    if (!temp) return -1;
    for (int i = 0; i < 100; i++) {
        snprintf(temp, n, "%s.tmp-%d-%d", path, (int)getpid(), i);
        const int fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            *ret_temp = temp;
            return fd;
        }
        if (errno != EEXIST) break;
    }
    free(temp);
    return -1;
}

hone_status hn_sink_open(hn_sink *s, const char *path, hn_diag *dg)
{
    *s = (hn_sink){ .fd = -1 };
    struct stat st;
    if (!path) return HONE_OK;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* what is put in its place would be a file */
        return HN_RAISE(dg, HONE_E_IO, "cannot write \"%s\": it is %s", path, S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
    if (!(s->path = strdup(path))) return HN_NOMEM(dg);
    s->fd = open_temp(path, &s->temp);
    if (s->fd >= 0) return HONE_OK;
    const hone_status e = sys_error(s, "create a file beside", dg);
    hn_sink_done(s);
    return e;
}

static hone_status write_all(const hn_sink *s, const uint8_t *at, size_t n, uint64_t offset, hn_diag *dg)
{
    while (n > 0) {
        const ssize_t k = pwrite(s->fd, at, n < (size_t)1 << 30 ? n : (size_t)1 << 30, (off_t)offset);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return sys_error(s, "write", dg);
        at += k, n -= (size_t)k, offset += (uint64_t)k;
    }
    return HONE_OK;
}

static hone_status grow(hn_sink *s, size_t need, hn_diag *dg)
{
    size_t cap = s->cap ? s->cap : 1 << 16;

    while (cap < need) {
        if (cap > SIZE_MAX / 4) return HN_NOMEM(dg);
        cap *= 2;
    }
    uint8_t *const data = aligned_alloc(64, cap);
    if (!data) return HN_RAISE(dg, HONE_E_NOMEM, "out of memory: an engine of %zu bytes", need);
    if (s->n) memcpy(data, s->data, s->n);
    free(s->data);
    s->data = data, s->cap = cap;
    return HONE_OK;
}

hone_status hn_sink_write(hn_sink *s, const void *data, size_t n, hn_diag *dg)
{
    if (n == 0) return HONE_OK;
    if (s->path) {
        HN_TRY(write_all(s, data, n, s->n, dg));
    } else {
        if (n > SIZE_MAX / 2 || s->n > SIZE_MAX / 2) return HN_NOMEM(dg);
        if (s->n + n > s->cap) HN_TRY(grow(s, s->n + n, dg));
        memcpy(s->data + s->n, data, n);
    }
    s->n += n;
    return HONE_OK;
}

hone_status hn_sink_pad(hn_sink *s, size_t align, hn_diag *dg)
{
    static const uint8_t zeros[4096];
    return hn_sink_write(s, zeros, (size_t)(-s->n & (align - 1)), dg);
}

hone_status hn_sink_rewrite(hn_sink *s, const void *data, size_t n, hn_diag *dg)
{
    if (s->path) return write_all(s, data, n, 0, dg);
    memcpy(s->data, data, n);
    return HONE_OK;
}

/* So that the rename itself survives a power cut. */
static void sync_folder(const char *path)
{
    char *const folder = strdup(path);
    char *const slash = folder ? strrchr(folder, '/') : NULL;

    if (slash) *(slash == folder ? slash + 1 : slash) = 0;
    const int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

hone_status hn_sink_commit(hn_sink *s, hn_diag *dg)
{
    if (!s->path) return HONE_OK;
    if (!s->draft && fsync(s->fd)) return sys_error(s, "write", dg);
    if (rename(s->temp, s->path)) return sys_error(s, "replace", dg);
    free(s->temp);
    s->temp = NULL;
    if (!s->draft) sync_folder(s->path);
    return HONE_OK;
}

void hn_sink_done(hn_sink *s)
{
    if (s->fd >= 0) close(s->fd);
    if (s->temp) unlink(s->temp);
    free(s->temp);
    free(s->path);
    free(s->data);
    *s = (hn_sink){ .fd = -1 };
}
