/* Programs as data: names, extents, digest, bytes. */
#include "kir/kir_int.h"

#include <string.h>

_Static_assert(sizeof(hn_kins) == 32, "written as bytes");
_Static_assert(sizeof(hn_kext) == 32, "written as bytes");
_Static_assert(sizeof(hn_kbuf) == 64, "written as bytes");
_Static_assert(sizeof(hn_karg) == 32, "written as bytes");

const char *hn_kop_name(int op)
{
    switch (op) {
#define X(name, number, text)                                                                                \
    case number:                                                                                             \
        return text;
#include "kir/kops.def"
#undef X
    default:
        return "?";
    }
}

hn_kext hn_kext_const(int64_t n)
{
    return (hn_kext){ .a = -1, .b = -1, .mul = n, .add = 0, .div = 1 };
}

hn_kext hn_kext_arg(int arg, int64_t div)
{
    return (hn_kext){ .a = arg, .b = -1, .mul = 1, .add = 0, .div = div };
}

int64_t hn_kext_eval(const hn_kext *e, const int64_t *arg)
{
    int64_t v = e->mul;

    if (e->a >= 0) v *= arg[e->a];
    if (e->b >= 0) v *= arg[e->b];
    v += e->add;
    if (e->div <= 1) return v;
    return v > 0 ? (v + e->div - 1) / e->div : -(-v / e->div);
}

int64_t hn_kfunc_scratch_bytes(const hn_kfunc *f, const int64_t *arg)
{
    int64_t total = 0;

    for (int i = 0; i < f->n_buf; i++) {
        if (f->buf[i].kind != HN_KBUF_SCRATCH) continue;
        const int64_t n = hn_kext_eval(&f->buf[i].elems, arg);
        total += ((n > 0 ? n : 0) * (hn_dtype_bits((hn_dtype)f->buf[i].dtype) / 8) + 63) / 64 * 64;
    }
    return total;
}

int64_t hn_kfunc_parallel(const hn_kfunc *f, const int64_t *arg)
{
    return f->parallel_at < 0 ? 1 : hn_kext_eval(&f->parallel, arg);
}

int hn_kfunc_n_params(const hn_kfunc *f)
{
    int n = 0;
    for (int i = 0; i < f->n_buf; i++)
        n += f->buf[i].kind == HN_KBUF_PARAM;
    return n;
}

static void hash_ext(hn_hasher *h, const hn_kext *e)
{
    hn_hasher_i64(h, e->a);
    hn_hasher_i64(h, e->b);
    hn_hasher_i64(h, e->mul);
    hn_hasher_i64(h, e->add);
    hn_hasher_i64(h, e->div);
}

hn_digest hn_kfunc_digest(const hn_kfunc *f)
{
    hn_hasher h;

    hn_hasher_init(&h);
    hn_hasher_i64(&h, f->flags);
    for (int i = 0; i < f->n_buf; i++) {
        const hn_kbuf *b = &f->buf[i];
        hn_hasher_i64(&h, b->kind | b->dtype << 8 | b->flags << 16);
        hn_hasher_i64(&h, b->slot);
        hn_hasher_i64(&h, b->align);
        hn_hasher_i64(&h, b->tail_bytes);
        hn_hasher_i64(&h, b->data);
        hash_ext(&h, &b->elems);
    }
    for (int i = 0; i < f->n_arg; i++) {
        hn_hasher_i64(&h, f->arg[i].lo);
        hn_hasher_i64(&h, f->arg[i].hi);
        hn_hasher_i64(&h, f->arg[i].div);
    }
    hash_ext(&h, &f->parallel);
    for (int i = 0; i < 3; i++) {
        hash_ext(&h, &f->grid[i]);
        hn_hasher_i64(&h, f->threads[i]);
    }
    hn_hasher_i64(&h, f->n_ins);
    hn_hasher_bytes(&h, f->ins, (size_t)f->n_ins * sizeof(*f->ins));
    hn_hasher_i64(&h, f->n_pool);
    hn_hasher_bytes(&h, f->pool, (size_t)f->n_pool * sizeof(*f->pool));
    hn_hasher_i64(&h, f->n_data);
    hn_hasher_bytes(&h, f->data, (size_t)f->n_data);
    return hn_hasher_end(&h);
}

/* ---- bytes ---- */
enum { MAGIC = 0x314b4e48, REVISION = 2, ALIGN = 16 }; /* "HNK1" */

typedef struct header {
    uint32_t magic, revision, flags;
    int32_t n_buf, n_arg, n_ins, n_pool, n_names;
    int64_t n_data, total;
    int32_t parallel_at, threads[3];
    hn_kext parallel, grid[3];
    char name[64]; /* cut to fit */
} header;

enum { N_PARTS = 6 };
typedef struct part {
    const void *at;
    size_t bytes;
} part;

static void parts_of(const hn_kfunc *f, part p[N_PARTS])
{
    p[0] = (part){ f->buf, (size_t)f->n_buf * sizeof(*f->buf) };
    p[1] = (part){ f->arg, (size_t)f->n_arg * sizeof(*f->arg) };
    p[2] = (part){ f->ins, (size_t)f->n_ins * sizeof(*f->ins) };
    p[3] = (part){ f->pool, (size_t)f->n_pool * sizeof(*f->pool) };
    p[4] = (part){ f->data, (size_t)f->n_data };
    p[5] = (part){ f->names, (size_t)f->n_names };
}

static size_t rounded(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

hn_bytes hn_kfunc_write(hn_arena *a, const hn_kfunc *f)
{
    part p[N_PARTS];
    size_t total = rounded(sizeof(header));

    parts_of(f, p);
    for (int i = 0; i < N_PARTS; i++)
        total += rounded(p[i].bytes);

    uint8_t *at = hn_arena_alloc(a, 1, total);
    if (!at) return (hn_bytes){ 0 };
    header h = { .magic = MAGIC,
                 .revision = REVISION,
                 .flags = f->flags,
                 .n_buf = f->n_buf,
                 .n_arg = f->n_arg,
                 .n_ins = f->n_ins,
                 .n_pool = f->n_pool,
                 .n_names = f->n_names,
                 .n_data = f->n_data,
                 .total = (int64_t)total,
                 .parallel_at = f->parallel_at,
                 .parallel = f->parallel };
    memcpy(h.grid, f->grid, sizeof(h.grid));
    memcpy(h.threads, f->threads, sizeof(h.threads));
    for (size_t i = 0; f->name && f->name[i] && i + 1 < sizeof(h.name); i++)
        h.name[i] = f->name[i];
    memcpy(at, &h, sizeof(h));
    size_t off = rounded(sizeof(header));
    for (int i = 0; i < N_PARTS; i++) {
        if (p[i].bytes) memcpy(at + off, p[i].at, p[i].bytes);
        off += rounded(p[i].bytes);
    }
    return (hn_bytes){ .at = at, .n = total };
}

static bool counts_fit(const header *h, size_t n)
{
    const int64_t most = (int64_t)n;

    if (h->n_buf < 0 || h->n_arg < 0 || h->n_ins < 0 || h->n_pool < 0 || h->n_names < 0 || h->n_data < 0)
        return false;
    if (h->n_buf > most || h->n_arg > most || h->n_ins > most || h->n_pool > most || h->n_names > most)
        return false;
    return h->n_data <= most && h->total == most;
}

hone_status hn_kfunc_read(hn_arena *a, const void *data, size_t n, hn_kfunc *ret, hn_diag *dg)
{
    header h;
    part p[N_PARTS];
    size_t off = rounded(sizeof(header));

    if (n < off) return HN_RAISE(dg, HONE_E_FORMAT, "a kernel program of %zu bytes is cut short", n);
    memcpy(&h, data, sizeof(h));
    if (h.magic != MAGIC || h.revision != REVISION)
        return HN_RAISE(dg, HONE_E_FORMAT, "not a kernel program of revision %d", REVISION);
    if (!counts_fit(&h, n))
        return HN_RAISE(dg, HONE_E_FORMAT, "a kernel program's counts exceed its %zu bytes", n);

    hn_kfunc f = { .flags = h.flags,
                   .n_buf = h.n_buf,
                   .n_arg = h.n_arg,
                   .n_ins = h.n_ins,
                   .n_pool = h.n_pool,
                   .n_data = h.n_data,
                   .n_names = h.n_names,
                   .parallel_at = h.parallel_at,
                   .parallel = h.parallel };
    memcpy(f.grid, h.grid, sizeof(f.grid));
    memcpy(f.threads, h.threads, sizeof(f.threads));
    parts_of(&f, p);
    for (int i = 0; i < N_PARTS; i++)
        off += rounded(p[i].bytes);
    if (off != n)
        return HN_RAISE(dg, HONE_E_FORMAT, "a kernel program's sections do not fill its %zu bytes", n);

    uint8_t *copy = hn_arena_memdup(a, data, n);
    if (!copy) return HN_NOMEM(dg);
    off = rounded(sizeof(header));
    const void *at[N_PARTS];
    for (int i = 0; i < N_PARTS; off += rounded(p[i].bytes), i++)
        at[i] = copy + off;
    f.buf = at[0];
    f.arg = at[1];
    f.ins = at[2];
    f.pool = at[3];
    f.data = at[4];
    f.names = at[5];
    h.name[sizeof(h.name) - 1] = 0;
    f.name = hn_arena_strdup(a, h.name);
    HN_TRY(hn_kfunc_verify(&f, dg));
    *ret = f;
    return HONE_OK;
}
