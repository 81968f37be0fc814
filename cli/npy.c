/* NumPy's .npy files, versions 1 and 2, C order. Types that NumPy lacks are written as what holds them exactly. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *descr;
    hone_dtype type;
} kinds[] = {
    { "<f4", HONE_DTYPE_F32 }, { "<f8", HONE_DTYPE_F64 }, { "<f2", HONE_DTYPE_F16 }, { "<i8", HONE_DTYPE_I64 },
    { "<i4", HONE_DTYPE_I32 }, { "<i2", HONE_DTYPE_I16 }, { "|i1", HONE_DTYPE_I8 },  { "<u8", HONE_DTYPE_U64 },
    { "<u4", HONE_DTYPE_U32 }, { "<u2", HONE_DTYPE_U16 }, { "|u1", HONE_DTYPE_U8 },  { "|b1", HONE_DTYPE_BOOL },
};
enum { N_KIND = sizeof kinds / sizeof kinds[0] };

static const char *parse_header(char *h, hone_tensor *t)
{
    char *descr = strstr(h, "'descr':"), *shape = strstr(h, "'shape':"), *order = strstr(h, "'fortran_order':");
    if (!descr || !shape || !order) return "its header is damaged";
    if (strstr(order, "True") && strstr(order, "True") < order + 24) return "it is in Fortran order";
    descr = strchr(descr + 8, '\'');
    for (int i = 0; descr && i < N_KIND; i++)
        if (strncmp(descr + 1, kinds[i].descr, 3) == 0) t->dtype = kinds[i].type;
    if (!t->dtype) return "its data type is not supported";
    char *s = strchr(shape, '(');
    if (!s) return "its shape is damaged";
    s++;
    while (*s && *s != ')') {
        char *end;
        const long long v = strtoll(s, &end, 10);
        if (end == s) {
            s++;
            continue;
        }
        if (t->rank == HONE_MAX_RANK || v < 0) return "its rank is too high";
        t->dim[t->rank++] = v;
        s = end;
    }
    return NULL;
}

static const char *read_all(FILE *f, hone_tensor *t)
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
    if (why) return why;
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(n, t->dim[i], &n)) return "it is too large";
    t->bytes = (size_t)n * (size_t)hone_dtype_bits(t->dtype) / 8;
    t->data = malloc(t->bytes + 64);
    if (!t->data) return "there is no memory for it";
    if (fread(t->data, 1, t->bytes, f) != t->bytes) {
        free(t->data);
        return "it is cut short";
    }
    return NULL;
}

const char *cli_npy_read(const char *path, hone_tensor *ret)
{
    FILE *f = fopen(path, "rb");
    if (!f) return "it cannot be opened";
    hone_tensor t = { 0 };
    const char *why = read_all(f, &t);
    fclose(f);
    if (!why) *ret = t;
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

static const char *write_all(FILE *f, const hone_tensor *t, const char *descr)
{
    char text[512];
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < t->rank; i++) n += snprintf(text + n, sizeof text - (size_t)n, "%lld,", (long long)t->dim[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    while ((10 + n + 1) % 64) text[n++] = ' ';
    text[n++] = '\n';
    const unsigned char head[10] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8) };
    if (fwrite(head, 1, 10, f) != 10 || fwrite(text, 1, (size_t)n, f) != (size_t)n) return "it cannot be written";
    return fwrite(t->data, 1, t->bytes, f) == t->bytes ? NULL : "it cannot be written";
}

const char *cli_npy_write(const char *path, const hone_tensor *t)
{
    hone_tensor wide;
    if (widen(t, &wide)) {
        const char *why = cli_npy_write(path, &wide);
        free(wide.data);
        return why;
    }
    const char *descr = NULL;
    for (int i = 0; i < N_KIND; i++)
        if (kinds[i].type == t->dtype) descr = kinds[i].descr;
    if (!descr) return "NumPy has no such data type";
    FILE *f = fopen(path, "wb");
    if (!f) return "it cannot be opened for writing";
    const char *why = write_all(f, t, descr);
    return fclose(f) && !why ? "it cannot be written" : why;
}
