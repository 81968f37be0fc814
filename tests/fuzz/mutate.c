#include "mutate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FIELDS = 8192, MAX_DEPTH = 24, MAX_OUT = 4 << 20 };

/* One field of a message, somewhere in the tree. Offsets are into the whole buffer. */
typedef struct field {
    size_t start, payload, end; /* tag, first byte of the value, one past the value */
    uint32_t number, wire;
    int parent; /* index of the enclosing field, -1 at the top */
} field;

typedef struct tree {
    field at[MAX_FIELDS];
    int n;
} tree;

static const int64_t extreme[] = { 0, 1, -1, 2, 7, 8, 16, 127, 128, 255, 1 << 16, INT32_MAX, INT32_MIN, INT64_MAX,
                                   INT64_MIN, INT64_MAX / 2, (int64_t)1 << 32, (int64_t)1 << 40, -2, 1000000007 };

void fuzz_buf_done(fuzz_buf *b)
{
    free(b->at);
    *b = (fuzz_buf){ 0 };
}

fuzz_buf fuzz_buf_copy(const void *data, size_t n)
{
    fuzz_buf b = { malloc(n + 1), n };
    if (!b.at) abort();
    if (n > 0) memcpy(b.at, data, n);
    b.at[n] = 0;
    return b;
}

/* Replace [from, to) by n bytes. */
static void splice(fuzz_buf *b, size_t from, size_t to, const uint8_t *data, size_t n)
{
    const size_t total = from + n + (b->n - to);
    uint8_t *out = malloc(total + 1);
    if (!out) abort();
    memcpy(out, b->at, from);
    if (n > 0) memcpy(out + from, data, n);
    memcpy(out + from + n, b->at + to, b->n - to);
    out[total] = 0;
    free(b->at);
    *b = (fuzz_buf){ out, total };
}

static size_t below(hn_rng *rng, size_t n)
{
    return n > 0 ? (size_t)hn_rng_below(rng, (int64_t)n) : 0;
}

/* ---- the wire format ---- */
static bool get_varint(const uint8_t *p, size_t n, size_t *at, uint64_t *ret)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && *at < n; shift += 7) {
        const uint8_t byte = p[(*at)++];
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static size_t put_varint(uint8_t *dst, uint64_t v)
{
    size_t n = 0;
    do {
        dst[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
    return n;
}

static bool field_value_end(const uint8_t *p, size_t n, field *f, size_t at)
{
    uint64_t v;
    f->payload = at;
    switch (f->wire) {
    case 0:
        if (!get_varint(p, n, &at, &v)) return false;
        break;
    case 1: at += 8; break;
    case 2:
        if (!get_varint(p, n, &at, &v) || v > n - at) return false;
        f->payload = at;
        at += (size_t)v;
        break;
    case 5: at += 4; break;
    default: return false;
    }
    f->end = at;
    return at <= n;
}

/* Parse [from, to) as fields; false (and nothing added) when it is no message. */
static bool parse(const fuzz_buf *b, size_t from, size_t to, int parent, int depth, tree *t)
{
    const int n0 = t->n;
    size_t at = from;
    while (at < to) {
        uint64_t tag;
        field f = { .start = at, .parent = parent };
        if (t->n == MAX_FIELDS || !get_varint(b->at, to, &at, &tag) || tag >> 3 == 0 || tag >> 3 > 4096) goto no;
        f.number = (uint32_t)(tag >> 3);
        f.wire = (uint32_t)(tag & 7);
        if (!field_value_end(b->at, to, &f, at)) goto no;
        t->at[t->n] = f;
        const int self = t->n++;
        if (f.wire == 2 && depth < MAX_DEPTH) parse(b, f.payload, f.end, self, depth + 1, t);
        at = f.end;
    }
    return true;
no:
    t->n = n0;
    return false;
}

/* Replace [from, to), which lies inside field `parent`, and put right the length of every field around it. */
static void replace(fuzz_buf *b, const tree *t, int parent, size_t from, size_t to, const uint8_t *data, size_t n)
{
    fuzz_buf piece = fuzz_buf_copy(data, n);
    for (int p = parent; p >= 0; p = t->at[p].parent) {
        const field *f = &t->at[p];
        const size_t body = (from - f->payload) + piece.n + (f->end - to);
        fuzz_buf whole = { malloc(body + 24), 0 };
        if (!whole.at) abort();
        whole.n = put_varint(whole.at, (uint64_t)f->number << 3 | 2);
        whole.n += put_varint(whole.at + whole.n, body);
        memcpy(whole.at + whole.n, b->at + f->payload, from - f->payload);
        whole.n += from - f->payload;
        memcpy(whole.at + whole.n, piece.at, piece.n);
        whole.n += piece.n;
        memcpy(whole.at + whole.n, b->at + to, f->end - to);
        whole.n += f->end - to;
        fuzz_buf_done(&piece);
        piece = whole;
        from = f->start;
        to = f->end;
    }
    splice(b, from, to, piece.at, piece.n);
    fuzz_buf_done(&piece);
}

static size_t encode(uint8_t *dst, const field *f, const uint8_t *payload, size_t n)
{
    size_t k = put_varint(dst, (uint64_t)f->number << 3 | f->wire);
    if (f->wire == 2) k += put_varint(dst + k, n);
    memcpy(dst + k, payload, n);
    return k + n;
}

/* A new value for a field of numbers, or a changed payload. */
static void change_value(fuzz_buf *b, const tree *t, const field *f, hn_rng *rng)
{
    uint8_t num[16];
    if (f->wire != 2) {
        const int64_t v = extreme[below(rng, sizeof extreme / sizeof *extreme)];
        size_t n = f->wire == 0 ? put_varint(num, (uint64_t)v) : f->wire == 1 ? 8 : 4;
        if (f->wire != 0) memcpy(num, &v, n);
        replace(b, t, f->parent, f->payload, f->end, num, n);
        return;
    }
    fuzz_buf body = fuzz_buf_copy(b->at + f->payload, f->end - f->payload);
    fuzz_mutate_bytes(&body, rng);
    uint8_t *dst = malloc(body.n + 24);
    if (!dst) abort();
    const size_t n = encode(dst, f, body.at, body.n);
    replace(b, t, f->parent, f->start, f->end, dst, n);
    free(dst);
    fuzz_buf_done(&body);
}

/* The payload of one field under the tag of another: names that clash, cycles, wrong kinds. */
static void take_payload(fuzz_buf *b, const tree *t, const field *f, const field *from)
{
    if (from->wire != f->wire) return;
    const size_t n = from->end - from->payload;
    uint8_t *dst = malloc(n + 24);
    if (!dst) abort();
    const size_t k = encode(dst, f, b->at + from->payload, n);
    replace(b, t, f->parent, f->start, f->end, dst, k);
    free(dst);
}

/* A field of the same number, where one is found: such a swap is the likeliest to keep the types right. */
static const field *like(const tree *t, const field *f, hn_rng *rng)
{
    for (int tries = 0; tries < 32; tries++) {
        const field *g = &t->at[below(rng, (size_t)t->n)];
        if (g != f && g->number == f->number && g->wire == f->wire) return g;
    }
    return &t->at[below(rng, (size_t)t->n)];
}

static void renumber(fuzz_buf *b, const tree *t, const field *f, hn_rng *rng)
{
    field g = *f;
    g.number = (uint32_t)(1 + below(rng, 32));
    const size_t n = f->end - f->payload;
    uint8_t *dst = malloc(n + 24);
    if (!dst) abort();
    const size_t k = encode(dst, &g, b->at + f->payload, n);
    replace(b, t, f->parent, f->start, f->end, dst, k);
    free(dst);
}

void fuzz_mutate_message(fuzz_buf *b, hn_rng *rng)
{
    static tree t;
    t.n = 0;
    if (below(rng, 8) == 0 || !parse(b, 0, b->n, -1, 0, &t) || t.n == 0) {
        fuzz_mutate_bytes(b, rng);
        return;
    }
    const field *f = &t.at[below(rng, (size_t)t.n)];
    const field *g = like(&t, f, rng);
    switch (below(rng, 8)) {
    case 0: replace(b, &t, f->parent, f->start, f->end, NULL, 0); break;
    case 1:
        if (b->n < MAX_OUT) replace(b, &t, f->parent, f->start, f->start, b->at + f->start, f->end - f->start);
        break;
    case 2:
    case 3: change_value(b, &t, f, rng); break;
    case 4:
    case 5: take_payload(b, &t, f, g); break;
    case 6: renumber(b, &t, f, rng); break;
    default:
        /* A copy of one field beside another: a node in the wrong graph, a tensor among strings. */
        if (b->n < MAX_OUT) replace(b, &t, g->parent, g->start, g->start, b->at + f->start, f->end - f->start);
    }
}

void fuzz_mutate_bytes(fuzz_buf *b, hn_rng *rng)
{
    if (b->n == 0) {
        const uint8_t byte = (uint8_t)hn_rng_u64(rng);
        splice(b, 0, 0, &byte, 1);
        return;
    }
    const size_t at = below(rng, b->n), len = 1 + below(rng, b->n - at < 16 ? b->n - at : 16);
    switch (below(rng, 6)) {
    case 0: b->at[at] ^= (uint8_t)(1u << below(rng, 8)); break;
    case 1: b->at[at] = (uint8_t)hn_rng_u64(rng); break;
    case 2: splice(b, at, at + len, NULL, 0); break;
    case 3:
        if (b->n < MAX_OUT) splice(b, at, at, b->at + at, len);
        break;
    case 4: {
        const int64_t v = extreme[below(rng, sizeof extreme / sizeof *extreme)];
        const size_t n = b->n - at < 8 ? b->n - at : (size_t)1 << below(rng, 4);
        memcpy(b->at + at, &v, n);
        break;
    }
    default: splice(b, at, b->n, NULL, 0);
    }
}

/* The end of the token that starts at `from`: a word, a run of spaces, or one mark. */
static size_t token_end(const fuzz_buf *b, size_t from)
{
    size_t at = from;
    while (at < b->n && (b->at[at] == '_' || b->at[at] == '.' || (b->at[at] | 0x20) >= 'a' ||
                         (b->at[at] >= '0' && b->at[at] <= '9')))
        at++;
    return at > from ? at : from < b->n ? from + 1 : from;
}

void fuzz_mutate_text(fuzz_buf *b, hn_rng *rng)
{
    static const char *const odd[] = { "-", "[", "]", "|", "..", "@", "*", "/", "=", ":", "\"", "(", ")", "{", "}", "\n",
                                       "\\", "%s", "\xff", "\t", "if", "f32", "const" };
    const size_t from = below(rng, b->n + 1), to = token_end(b, from);
    char number[32];
    switch (below(rng, 6)) {
    case 0: splice(b, from, to, NULL, 0); break;
    case 1:
        if (b->n < MAX_OUT) splice(b, from, from, b->at + from, to - from);
        break;
    case 2: {
        const char *s = odd[below(rng, sizeof odd / sizeof *odd)];
        splice(b, from, from, (const uint8_t *)s, strlen(s));
        break;
    }
    case 3: {
        const size_t other = below(rng, b->n + 1);
        fuzz_buf tok = fuzz_buf_copy(b->at + other, token_end(b, other) - other);
        splice(b, from, to, tok.at, tok.n);
        fuzz_buf_done(&tok);
        break;
    }
    case 4: {
        const int n = snprintf(number, sizeof number, "%lld",
                               (long long)extreme[below(rng, sizeof extreme / sizeof *extreme)]);
        splice(b, from, to, (const uint8_t *)number, (size_t)n);
        break;
    }
    default: fuzz_mutate_bytes(b, rng);
    }
}
