/* Compiled kernels on disk, one file each, named by what they were made from. Files appear by rename, are
 * checked by digest when read, and age by their modification time, which every hit refreshes; so processes
 * need no lock between them. */
#include "codegen/codegen_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"

enum { MAGIC = 0x31434e48 }; /* "HNC1" */
static const int64_t default_max_bytes = 512ll << 20;

typedef struct file_header {
    uint32_t magic, entry, align;
    int32_t frame_bytes, n_stack_ref, pad;
    uint64_t n;
    hn_digest key, body;
} file_header;

void hn_codegen_hash_version(hn_hasher *h)
{
    hn_hasher_i64(h, HN_CODEGEN_REV);
    hn_hasher_str(h, HN_LLVM_VERSION);
}

hn_digest hn_code_key(const hn_kfunc *f, const hn_target *t)
{
    const hn_digest program = hn_kfunc_digest(f);
    hn_hasher h;

    hn_hasher_init(&h);
    hn_codegen_hash_version(&h);
    hn_hasher_i64(&h, (int64_t)program.lo);
    hn_hasher_i64(&h, (int64_t)program.hi);
    hn_hasher_i64(&h, t->arch);
    hn_hasher_i64(&h, (int64_t)t->feat);
    hn_hasher_i64(&h, t->vec_bytes);
    hn_hasher_str(&h, t->name); /* these two choose the scheduling model */
    hn_hasher_str(&h, t->cpu_name);
    return hn_hasher_end(&h);
}

static void path_of(const hn_code_cache *c, hn_digest key, char *dst, size_t n)
{
    char text[HN_DIGEST_TEXT];
    snprintf(dst, n, "%s/%s.hnc", c->dir, hn_digest_text(key, text));
}

static bool header_ok(const file_header *h, size_t n, hn_digest key)
{
    return h->magic == MAGIC && h->n == n - sizeof(*h) && hn_digest_eq(h->key, key) && h->entry < h->n &&
           h->align >= 1 && h->align <= 4096 && !(h->align & (h->align - 1));
}

static bool take(const uint8_t *at, size_t n, hn_digest key, hn_arena *a, hn_code *ret)
{
    file_header h;

    if (n < sizeof(h)) return false;
    memcpy(&h, at, sizeof(h));
    if (!header_ok(&h, n, key) || !hn_digest_eq(hn_hash128(at + sizeof(h), h.n), h.body)) return false;
    uint8_t *copy = hn_arena_alloc_aligned(a, h.n, h.align);
    if (!copy) return false;
    memcpy(copy, at + sizeof(h), h.n);
    *ret = (hn_code){ .at = copy,
                      .n = h.n,
                      .entry = h.entry,
                      .align = h.align,
                      .frame_bytes = h.frame_bytes,
                      .n_stack_ref = h.n_stack_ref };
    return true;
}

bool hn_code_cache_get(const hn_code_cache *c, hn_digest key, hn_arena *a, hn_code *ret)
{
    char path[1024];
    hn_bytes file = { 0 };
    hn_diag dg = { 0 };

    if (!c->dir) return false;
    path_of(c, key, path, sizeof(path));
    if (hn_map_file(path, &file, &dg) != HONE_OK) return false;
    const bool ok = take(file.at, file.n, key, a, ret);
    hn_unmap(&file);
    if (ok)
        utimensat(AT_FDCWD, path, NULL, 0);
    else
        unlink(path); /* damaged */
    return ok;
}

static bool write_all(int fd, const void *data, size_t n)
{
    const uint8_t *p = data;

    while (n) {
        const ssize_t k = write(fd, p, n);
        if (k <= 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* No fsync: a file torn by a power cut fails its digest and is made again. */
void hn_code_cache_put(const hn_code_cache *c, hn_digest key, const hn_code *code)
{
    static atomic_uint serial;
    char path[1024], tmp[1100];
    hn_diag dg = { 0 };

    if (!c->dir || hn_make_dirs(c->dir, &dg) != HONE_OK) return;
    path_of(c, key, path, sizeof(path));
    snprintf(tmp, sizeof(tmp), "%s.%d.%u.tmp", path, (int)getpid(), atomic_fetch_add(&serial, 1));
    const file_header h = { .magic = MAGIC,
                            .entry = code->entry,
                            .align = code->align,
                            .frame_bytes = code->frame_bytes,
                            .n_stack_ref = code->n_stack_ref,
                            .n = code->n,
                            .key = key,
                            .body = hn_hash128(code->at, code->n) };
    const int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return;
    const bool ok = write_all(fd, &h, sizeof(h)) && write_all(fd, code->at, code->n);
    if (close(fd) != 0 || !ok || rename(tmp, path) != 0) unlink(tmp);
}

/* ---- trimming ---- */
typedef struct entry {
    char name[80];
    int64_t bytes, used_ns;
} entry;

typedef struct listing {
    entry *at;
    size_t n, cap;
    int64_t bytes;
} listing;

static bool list_add(listing *l, int dir_fd, const char *name)
{
    struct stat st;

    if (strlen(name) >= sizeof(l->at->name) || !strstr(name, ".hnc") || fstatat(dir_fd, name, &st, 0) != 0)
        return true;
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 256;
        entry *grown = realloc(l->at, cap * sizeof(*grown));
        if (!grown) return false;
        l->at = grown;
        l->cap = cap;
    }
    entry *e = &l->at[l->n++];
    strcpy(e->name, name);
    e->bytes = (int64_t)st.st_blocks * 512;
    e->used_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    l->bytes += e->bytes;
    return true;
}

static int older_first(const void *x, const void *y)
{
    const int64_t a = ((const entry *)x)->used_ns, b = ((const entry *)y)->used_ns;
    return a < b ? -1 : a > b;
}

void hn_code_cache_trim(const hn_code_cache *c)
{
    const int64_t most = c->max_bytes > 0 ? c->max_bytes : default_max_bytes;
    listing l = { 0 };
    DIR *d = c->dir ? opendir(c->dir) : NULL;

    if (!d) return;
    for (struct dirent *e; (e = readdir(d));)
        if (!list_add(&l, dirfd(d), e->d_name)) break;
    if (l.bytes > most) {
        qsort(l.at, l.n, sizeof(*l.at), older_first);
        /* a tenth below the bound, so that the next few kernels do not trim again */
        for (size_t i = 0; i < l.n && l.bytes > most - most / 10; i++)
            if (unlinkat(dirfd(d), l.at[i].name, 0) == 0) l.bytes -= l.at[i].bytes;
    }
    free(l.at);
    closedir(d);
}
