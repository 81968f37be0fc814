#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIAGS = 1000 };

const char *hn_status_text(hone_status s)
{
    switch (s) {
#define X(name, number, text)                                                                                \
    case HONE_E_##name:                                                                                      \
        return text;
#include "base/status.def"
#undef X
    }
    return "unknown status";
}

const char *hn_status_name(hone_status s)
{
    switch (s) {
#define X(name, number, text)                                                                                \
    case HONE_E_##name:                                                                                      \
        return "E_" #name;
#include "base/status.def"
#undef X
    }
    return "E_UNKNOWN";
}

/* Cut at n - 1 bytes without splitting a UTF-8 sequence: messages quote names out of models. */
static void trim_utf8(char *s, size_t n, int written)
{
    if (written < 0 || (size_t)written < n) return;
    size_t end = n - 1;
    while (end > 0 && ((unsigned char)s[end - 1] & 0xC0) == 0x80)
        end--;
    if (end > 0 && (unsigned char)s[end - 1] >= 0xC0) {
        const unsigned char lead = (unsigned char)s[end - 1];
        const size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
        if (n - 1 - (end - 1) < want) s[end - 1] = '\0';
    }
}

hone_status hn_diag_raise(hn_diag *dg, hone_status code, const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    if (HN_NEVER(code == HONE_OK)) code = HONE_E_INTERNAL;
    if (!dg) return code;
    if (HN_NEVER(dg->code != HONE_OK)) return code;
    dg->code = code;
    dg->file = file;
    dg->line = line;
    va_start(ap, fmt);
    trim_utf8(dg->message, sizeof dg->message, vsnprintf(dg->message, sizeof dg->message, fmt, ap));
    va_end(ap);
    return code;
}

void hn_hint(hn_diag *dg, const char *fmt, ...)
{
    va_list ap;
    if (!dg) return;
    va_start(ap, fmt);
    trim_utf8(dg->hint, sizeof dg->hint, vsnprintf(dg->hint, sizeof dg->hint, fmt, ap));
    va_end(ap);
}

void hn_diag_frame(hn_diag *dg, const char *fmt, ...)
{
    va_list ap;
    if (!dg) return;
    const size_t used = strlen(dg->frames), room = sizeof dg->frames - used;
    dg->n_frame++;
    if (room < 8) return; /* counted, not kept: the innermost frames are the ones worth having */
    char *at = dg->frames + used;
    if (used) *at++ = '\n';
    const size_t left = sizeof dg->frames - (size_t)(at - dg->frames);
    va_start(ap, fmt);
    trim_utf8(at, left, vsnprintf(at, left, fmt, ap));
    va_end(ap);
    for (; *at; at++)
        if (*at == '\n') *at = ' ';
}

void hn_diag_clear(hn_diag *dg)
{
    if (dg) memset(dg, 0, sizeof *dg);
}

static size_t append(char *dst, size_t n, size_t at, const char *text, size_t len)
{
    if (at + 1 >= n) return at;
    if (len > n - 1 - at) len = n - 1 - at;
    memcpy(dst + at, text, len);
    dst[at + len] = '\0';
    return at + len;
}

char *hn_diag_format(const hn_diag *dg, char *dst, size_t n)
{
    if (n == 0) return dst;
    dst[0] = '\0';
    if (!dg || dg->code == HONE_OK) return dst;

    const char *message = dg->message[0] ? dg->message : hn_status_text(dg->code);
    size_t at = append(dst, n, 0, message, strlen(message));
    for (const char *f = dg->frames; *f;) {
        const size_t len = strcspn(f, "\n");
        at = append(dst, n, at, "\n  in ", 6);
        at = append(dst, n, at, f, len);
        f += len + (f[len] == '\n');
    }
    if (dg->hint[0]) {
        at = append(dst, n, at, "\n  hint: ", 9);
        append(dst, n, at, dg->hint, strlen(dg->hint));
    }
    return dst;
}

static bool grow(hn_diags *list)
{
    if (list->n < list->cap) return true;
    const int cap = list->cap ? 2 * list->cap : 8;
    hn_diag *at = realloc(list->at, (size_t)cap * sizeof *at);
    if (!at) {
        list->oom = true;
        return false;
    }
    list->at = at;
    list->cap = cap;
    return true;
}

void hn_diags_add(hn_diags *list, const hn_diag *dg)
{
    if (list->n == MAX_DIAGS + 1) { /* the last entry counts what is not kept */
        hn_diag *rest = &list->at[MAX_DIAGS];
        rest->line++;
        snprintf(rest->message, sizeof rest->message, "%d more problems are not listed", rest->line);
        return;
    }
    if (!grow(list)) return;
    list->at[list->n] = *dg;
    if (list->n == MAX_DIAGS) {
        hn_diag *rest = &list->at[MAX_DIAGS];
        const hone_status code = dg->code;
        hn_diag_clear(rest);
        rest->code = code;
        rest->line = 1;
        snprintf(rest->message, sizeof rest->message, "1 more problem is not listed");
    }
    list->n++;
}

void hn_diags_done(hn_diags *list)
{
    free(list->at);
    memset(list, 0, sizeof *list);
}
