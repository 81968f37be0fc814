/* Files: mapping, atomic replacement, locked appends, folders, environment. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"

static hone_status io_error(hn_diag *dg, const char *doing, const char *path, int err)
{
    const hone_status code = err == ENOENT ? HONE_E_NOTFOUND : err == ENOMEM ? HONE_E_NOMEM : HONE_E_IO;
    if (err == EACCES || err == EPERM) hn_hint(dg, "Check the permissions of the file and of its folders.");
    if (err == ENOSPC || err == EDQUOT) hn_hint(dg, "Free some space or write to another file system.");
    return HN_RAISE(dg, code, "cannot %s \"%s\": %s", doing, path, strerror(err));
}

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
}

hone_status hn_map_file(const char *path, hn_bytes *ret, hn_diag *dg)
{
    HN_CLEANUP(close_fd)
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block us */
    struct stat st;
    if (fd < 0) return io_error(dg, "open", path, errno);
    if (fstat(fd, &st) != 0) return io_error(dg, "examine", path, errno);
    if (S_ISDIR(st.st_mode)) return io_error(dg, "read", path, EISDIR);
    if (!S_ISREG(st.st_mode)) return HN_RAISE(dg, HONE_E_IO, "cannot map \"%s\": not a regular file", path);
    if (st.st_size == 0) {
        *ret = (hn_bytes){ 0 };
        return HONE_OK;
    }
    void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) return io_error(dg, "map", path, errno);
    *ret = (hn_bytes){ .at = at, .n = (size_t)st.st_size, .mapped = true };
    return HONE_OK;
}

void hn_unmap(hn_bytes *b)
{
    if (b->mapped)
        munmap((void *)(uintptr_t)b->at, b->n);
    else
        free((void *)(uintptr_t)b->at);
    *b = (hn_bytes){ 0 };
}

/* errno, or 0 when all was written. */
static int write_all(int fd, const void *data, size_t n)
{
    const char *at = data;
    while (n) {
        const ssize_t got = write(fd, at, n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

/* Makes the rename itself durable; some file systems cannot and that is no failure of the write. */
static void sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[4096] = ".";
    if (slash && (size_t)(slash - path) + 1 < sizeof folder) {
        const size_t n = slash == path ? 1 : (size_t)(slash - path);
        memcpy(folder, path, n);
        folder[n] = '\0';
    }
    HN_CLEANUP(close_fd) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) fsync(fd);
}

static int write_temporary(int fd, const void *data, size_t n)
{
    const mode_t mask = umask(0);
    umask(mask);
    int err = write_all(fd, data, n);
    if (!err && fchmod(fd, 0666 & ~mask) != 0) err = errno;
    if (!err && fsync(fd) != 0) err = errno;
    if (close(fd) != 0 && !err) err = errno;
    return err;
}

hone_status hn_write_file_atomic(const char *path, const void *data, size_t n, hn_diag *dg)
{
    const size_t len = strlen(path);
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* renaming onto a device would put a file in its place */
        return HN_RAISE(dg, HONE_E_IO, "cannot write \"%s\": it is no regular file", path);
    char *temporary = malloc(len + sizeof ".tmp.XXXXXX");
    if (!temporary) return HN_NOMEM(dg);
    memcpy(temporary, path, len);
    memcpy(temporary + len, ".tmp.XXXXXX", sizeof ".tmp.XXXXXX");

    const int fd = mkostemp(temporary, O_CLOEXEC);
    int err = fd < 0 ? errno : write_temporary(fd, data, n);
    if (!err && rename(temporary, path) != 0) err = errno;
    if (err && fd >= 0) unlink(temporary);
    free(temporary);
    if (err) return io_error(dg, "write", path, err);
    sync_folder_of(path);
    return HONE_OK;
}

hone_status hn_append_file(const char *path, const void *data, size_t n, hn_diag *dg)
{
    HN_CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    ssize_t got;
    if (fd < 0) return io_error(dg, "open", path, errno);
    while (flock(fd, LOCK_EX) != 0)
        if (errno != EINTR) return io_error(dg, "lock", path, errno);
    const off_t before = lseek(fd, 0, SEEK_END);
    do
        got = write(fd, data, n);
    while (got < 0 && errno == EINTR);
    if (got >= 0 && (size_t)got == n) return HONE_OK; /* closing drops the lock */
    const int err = got < 0 ? errno : ENOSPC;
    if (got > 0 && ftruncate(fd, before) != 0) /* readers never see half a record */
        return HN_RAISE(dg, HONE_E_IO, "half a record was left at the end of \"%s\": %s", path,
                        strerror(errno));
    return io_error(dg, "append to", path, err);
}

hone_status hn_make_dirs(const char *path, hn_diag *dg)
{
    char *part = strdup(path);
    int err = 0;
    if (!part) return HN_NOMEM(dg);
    for (char *p = part + 1; *part && !err; p++) {
        const char kept = *p;
        if (kept != '/' && kept != '\0') continue;
        *p = '\0';
        struct stat st;
        if (mkdir(part, 0777) != 0 && (errno != EEXIST || stat(part, &st) != 0))
            err = errno;
        else if (stat(part, &st) == 0 && !S_ISDIR(st.st_mode))
            err = ENOTDIR;
        *p = kept;
        if (kept == '\0') break;
    }
    free(part);
    return err ? io_error(dg, "make the folder", path, err) : HONE_OK;
}

bool hn_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

const char *hn_env(const char *name)
{
    return getenv(name);
}

char *hn_cache_dir(void)
{
    static const struct {
        const char *variable, *below;
    } places[] = { { "HONE_CACHE_DIR", "" }, { "XDG_CACHE_HOME", "/hone" }, { "HOME", "/.cache/hone" } };
    for (int i = 0; i < HN_COUNT(places); i++) {
        const char *base = hn_env(places[i].variable);
        char *path;
        if (!base || !*base) continue;
        return asprintf(&path, "%s%s", base, places[i].below) < 0 ? NULL : path;
    }
    return NULL;
}
