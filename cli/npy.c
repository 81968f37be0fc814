/* NumPy's .npy files, versions 1 and 2, C order. Types that NumPy lacks are written as what holds them exactly. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *descr;
    hone_dtype type;
} kinds[] = {
    { "<f4", HONE_DTYPE_F32 }, { "<f8", HONE_DTYPE_F64 }, { "<f2", HONE_DTYPE_F16 }, { "<i8", HONE_DTYPE_I64 },
    { "<i4", HONE_DTYPE_I32 }, { "<i2", HONE_DTYPE_I16 }, { "|i1", HONE_DTYPE_I8 },  { "<u8", HONE_DTYPE_U64 },
    { "<u4", HONE_DTYPE_U32 }, { "<u2", HONE_DTYPE_U16 }, { "|u1", HONE_DTYPE_U8 },  { "|b1", HONE_DTYPE_BOOL },
};
enum { N_KIND = sizeof kinds / sizeof kinds[0] };

static const char *parse_type(const char *header, hone_dtype *ret)
{
    const char *descr = strstr(header, "'descr':");
    descr = descr ? strchr(descr + 8, '\'') : NULL;
    if (!descr) return "its header is damaged";
    const int n = (int)strcspn(descr + 1, "'");
    for (int i = 0; i < N_KIND; i++)
        if ((size_t)n == strlen(kinds[i].descr) && strncmp(descr + 1, kinds[i].descr, (size_t)n) == 0) *ret = kinds[i].type;
    return *ret ? NULL : cli_text("its data type %.*s is not supported", n, descr + 1);
}

/* "(2, 3)", "(2,)" or "()". */
static const char *parse_shape(const char *header, hone_tensor *t)
{
    const char *s = strstr(header, "'shape':");
    s = s ? s + 8 + strspn(s + 8, " ") : NULL;
    if (!s || *s != '(') return "its header is damaged";
    for (s++; *s != ')';) {
        char *end;
        errno = 0;
        const long long v = strtoll(s, &end, 10);
        if (end == s || v < 0 || errno) return "its shape is damaged";
        if (t->rank == HONE_MAX_RANK) return "its rank is too high";
        t->dim[t->rank++] = v;
        s = end + strspn(end, ", L");
    }
    return NULL;
}

static const char *parse_header(const char *header, hone_tensor *t)
{
    const char *order = strstr(header, "'fortran_order':");
    if (!order) return "its header is damaged";
    order += 16 + strspn(order + 16, " ");
    const char *why = parse_type(header, &t->dtype);
    if (!why) why = parse_shape(header, t);
    if (!why && strncmp(order, "True", 4) == 0 && t->rank > 1) why = "it is in Fortran order; save numpy.ascontiguousarray of it";
    return why;
}

static const char *read_header(FILE *f, hone_tensor *t)
{
    unsigned char head[12];
    if (fread(head, 1, 10, f) != 10 || memcmp(head, "\x93NUMPY", 6) != 0) return "it is no .npy file";
    size_t len = head[8] | (size_t)head[9] << 8;
    if (head[6] >= 2) {
        if (fread(head + 10, 1, 2, f) != 2) return "it is cut short";
        len |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    }
    if (len > 1 << 20) return "its header is damaged";
    char *text = calloc(1, len + 1);
    if (!text) return "there is no memory for it";
    const char *why = fread(text, 1, len, f) == len ? parse_header(text, t) : "it is cut short";
    free(text);
    return why;
}

const char *cli_npy_take(FILE *f, size_t file_bytes, hone_tensor *ret)
{
    hone_tensor t = { 0 };
    const char *why = read_header(f, &t);
    if (why) return why;
    size_t n = (size_t)hone_dtype_bits(t.dtype) / 8;
    for (int i = 0; i < t.rank; i++)
        if (__builtin_mul_overflow(n, (size_t)t.dim[i], &n)) return "it is too large";
    if (n > file_bytes) return "it is cut short"; /* before memory is asked for what the header claims */
    t.bytes = n;
    t.data = malloc(n + 64);
    if (!t.data) return "there is no memory for it";
    if (fread(t.data, 1, n, f) != n) {
        free(t.data);
        return "it is cut short";
    }
    *ret = t;
    return NULL;
}

const char *cli_npy_read(const char *path, hone_tensor *ret)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f) return strerror(errno);
    const char *why = fstat(fileno(f), &st) || !S_ISREG(st.st_mode) ? "it is no regular file"
                                                                    : cli_npy_take(f, (size_t)st.st_size, ret);
    fclose(f);
    return why;
}

/* bf16 widens to f32 by its bits; the float8 family and packed integers through the table of halves they are rare in. */
static bool widen(const hone_tensor *t, hone_tensor *ret)
{
    if (t->dtype != HONE_DTYPE_BF16) return false;
    const size_t n = t->bytes / 2;
    *ret = *t;
    ret->dtype = HONE_DTYPE_F32;
    ret->bytes = n * 4;
    ret->data = malloc(n * 4 + 1);
    if (!ret->data) return false;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)((const uint16_t *)t->data)[i] << 16;
        memcpy((char *)ret->data + 4 * i, &bits, 4);
    }
    return true;
}

static const char *put_plain(FILE *f, const hone_tensor *t)
{
    const char *descr = NULL;
    for (int i = 0; i < N_KIND; i++)
        if (kinds[i].type == t->dtype) descr = kinds[i].descr;
    if (!descr) return "NumPy has no such data type";
    char text[512];
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < t->rank; i++) n += snprintf(text + n, sizeof text - (size_t)n, "%lld,", (long long)t->dim[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    while ((10 + n + 1) % 64) text[n++] = ' ';
    text[n++] = '\n';
    const unsigned char head[10] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8) };
    const bool whole = fwrite(head, 1, 10, f) == 10 && fwrite(text, 1, (size_t)n, f) == (size_t)n &&
                       (t->bytes == 0 || fwrite(t->data, 1, t->bytes, f) == t->bytes);
    return whole ? NULL : strerror(errno);
}

const char *cli_npy_put(FILE *f, const hone_tensor *t)
{
    hone_tensor wide;
    if (!widen(t, &wide)) return put_plain(f, t);
    const char *why = put_plain(f, &wide);
    free(wide.data);
    return why;
}

const char *cli_npy_write(const char *path, const hone_tensor *t)
{
    char *temporary;
    const char *why = NULL;
    FILE *f = cli_open_new(path, &temporary, &why);
    return f ? cli_close_new(f, temporary, path, cli_npy_put(f, t)) : why;
}
