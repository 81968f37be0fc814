/* Temporary folders that outlive no process by more than one run: each holds a locked file, and whoever makes the next folder
 * removes those whose lock is free, which a kill leaves behind. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"

static const char lock_name[] = ".lock";

/* An entry that vanishes meanwhile was removed by another sweep. */
static void remove_tree(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return;
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0) close(fd);
        return;
    }
    for (const struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) remove_tree(dirfd(d), e->d_name);
    closedir(d);
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* Its maker lives while the lock is held; a folder without a lock may be a moment old. */
static bool is_left_over(int parent, const char *name)
{
    enum { NEW_S = 60 };
    char path[PATH_MAX];
    struct stat st;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid()) return false;
    snprintf(path, sizeof path, "%s/%s", name, lock_name);
    const int fd = openat(parent, path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT && time(NULL) - st.st_mtime > NEW_S;
    const bool free_lock = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return free_lock;
}

static void sweep(const char *base, const char *prefix)
{
    DIR *d = opendir(base);
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d));)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 && is_left_over(dirfd(d), e->d_name))
            remove_tree(dirfd(d), e->d_name);
    closedir(d);
}

hone_status hn_scratch_create(const char *prefix, hn_scratch *ret, hn_diag *dg)
{
    const char *tmp = hn_env("TMPDIR"), *base = tmp && *tmp ? tmp : "/tmp";
    char path[PATH_MAX + 8];
    sweep(base, prefix);
    snprintf(path, sizeof path, "%s/%sXXXXXX", base, prefix);
    if (strlen(path) >= PATH_MAX || !mkdtemp(path))
        return HN_RAISE(dg, HONE_E_IO, "no temporary folder can be made in \"%s\": %s", base, strerror(errno));
    hn_scratch s = { .path = strdup(path), .lock_fd = -1 };
    const size_t n = strlen(path);
    snprintf(path + n, sizeof path - n, "/%s", lock_name);
    s.lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s.path && s.lock_fd >= 0 && flock(s.lock_fd, LOCK_EX) == 0) {
        *ret = s;
        return HONE_OK;
    }
    hn_scratch_remove(&s);
    return HN_RAISE(dg, HONE_E_IO, "the temporary folder \"%s\" cannot be locked: %s", path, strerror(errno));
}

void hn_scratch_remove(hn_scratch *s)
{
    if (s->path) remove_tree(AT_FDCWD, s->path);
    if (s->lock_fd >= 0 && s->path) close(s->lock_fd);
    free(s->path);
    *s = (hn_scratch){ .lock_fd = -1 };
}
