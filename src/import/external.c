/*
 * Weights in other files. Only files inside the model's own folder are opened, and no link on the way is
 * followed: a model is data from anywhere and must not read the rest of the machine. The bytes are read, not
 * mapped, so that a file cut short later cannot kill the process.
 */
#include "import/import_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct place {
    const char *location;
    int64_t offset, length; /* length -1: not given */
} place;

static hone_status number(const char *key, const char *text, int64_t *ret, hn_diag *dg)
{
    if (!hn_parse_i64(text, ret) || *ret < 0)
        return HN_RAISE(dg, HONE_E_MODEL, "external data has %s \"%s\"", key, text);
    return HONE_OK;
}

static hone_status read_place(const Onnx__TensorProto *t, place *ret, hn_diag *dg)
{
    place p = { NULL, 0, -1 };
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = t->external_data[i]->key, *value = t->external_data[i]->value;
        if (!key || !value) continue;
        if (strcmp(key, "location") == 0)
            p.location = value;
        else if (strcmp(key, "offset") == 0)
            HN_TRY(number(key, value, &p.offset, dg));
        else if (strcmp(key, "length") == 0)
            HN_TRY(number(key, value, &p.length, dg));
    }
    if (!p.location || !p.location[0]) return HN_RAISE(dg, HONE_E_MODEL, "external data without a location");
    *ret = p;
    return HONE_OK;
}

/* Walks one component at a time without following links; yields a descriptor or -1 with errno. */
static int open_beneath(int dir, const char *path)
{
    int at = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    while (at >= 0) {
        char part[256];
        const size_t n = strcspn(path, "/");
        const bool last = path[n] == '\0';
        if (n == 0 || n >= sizeof part || (n == 2 && memcmp(path, "..", 2) == 0)) {
            close(at);
            errno = n >= sizeof part ? ENAMETOOLONG : EACCES;
            return -1;
        }
        memcpy(part, path, n);
        part[n] = '\0';
        const int next =
            openat(at, part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY));
        const int err = errno;
        close(at);
        errno = err;
        if (last) return next;
        at = next;
        path += n + 1;
    }
    return -1;
}

static hone_status read_all(int fd, const place *p, void *dst, size_t n, hn_diag *dg)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = pread(fd, (char *)dst + done, n - done, (off_t)(p->offset + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return HN_RAISE(dg, HONE_E_IO, "reading external data \"%s\": %s", p->location,
                            got < 0 ? strerror(errno) : "the file became shorter");
        done += (size_t)got;
    }
    return HONE_OK;
}

static hone_status read_checked(hn_im *m, int fd, const place *p, size_t want, const void **ret, hn_diag *dg)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return HN_RAISE(dg, HONE_E_IO, "external data \"%s\": %s", p->location, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return HN_RAISE(dg, HONE_E_MODEL, "external data \"%s\" is not a regular file", p->location);
    if (p->length >= 0 && (uint64_t)p->length != want)
        return HN_RAISE(dg, HONE_E_MODEL,
                        "external data gives length %" PRId64 " where the shape asks for %zu bytes",
                        p->length, want);
    if (p->offset > st.st_size || (uint64_t)(st.st_size - p->offset) < want)
        return HN_RAISE(dg, HONE_E_MODEL,
                        "external data \"%s\" ends at byte %" PRId64 ", %zu bytes from offset %" PRId64
                        " are needed",
                        p->location, (int64_t)st.st_size, want, p->offset);
    void *dst = hn_arena_alloc_aligned(m->arena, want, 64);
    if (!dst) return HN_NOMEM(dg);
    HN_TRY(read_all(fd, p, dst, want, dg));
    *ret = dst;
    return HONE_OK;
}

hone_status hn_im_external(hn_im *m, const Onnx__TensorProto *t, size_t want, const void **ret_at,
                           hn_diag *dg)
{
    place p = { NULL, 0, -1 };

    HN_TRY(read_place(t, &p, dg));
    if (m->base_fd < 0) {
        hn_hint(dg, "import the model by its path, so that the folder of its weights is known");
        return HN_RAISE(dg, HONE_E_MODEL, "external data \"%s\" without a folder to find it in", p.location);
    }
    if (p.location[0] == '/' || strchr(p.location, '\\'))
        return HN_RAISE(dg, HONE_E_MODEL,
                        "external data \"%s\" is not a plain path inside the model's folder", p.location);
    const int fd = open_beneath(m->base_fd, p.location);
    if (fd < 0) {
        const int err = errno;
        if (err == EACCES || err == ELOOP || err == ENOTDIR)
            hn_hint(dg, "only regular files inside the model's folder are read; \"..\" and symbolic links "
                        "are refused");
        return HN_RAISE(dg, err == ENOENT ? HONE_E_NOTFOUND : HONE_E_MODEL, "external data \"%s\": %s",
                        p.location, strerror(err));
    }
    const hone_status s = read_checked(m, fd, &p, want, ret_at, dg);
    close(fd);
    return s;
}
