/* Words of the text form, and where mistakes are. */
#include "ir/lex.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- mistakes ---- */

hone_status hn_lex_fail(hn_parser *p, const char *at, const char *fmt, ...)
{
    char text[400];
    int line = 1, column = 1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (const char *s = p->text; s < at && *s; s++) {
        column++;
        if (*s == '\n') {
            line++;
            column = 1;
        }
    }
    return HN_RAISE(p->dg, HONE_E_FORMAT, "line %d, column %d: %s", line, column, text);
}

/* ---- words ---- */

void hn_lex_space(hn_parser *p)
{
    for (;; p->at++) {
        if (*p->at == ';') p->at += strcspn(p->at, "\n");
        if (*p->at == '\0' || !strchr(" \t\r\n", *p->at)) return;
    }
}

bool hn_lex_take(hn_parser *p, char c)
{
    hn_lex_space(p);
    if (*p->at != c) return false;
    p->at++;
    return true;
}

hone_status hn_lex_expect(hn_parser *p, char c)
{
    if (hn_lex_take(p, c)) return HONE_OK;
    return FAIL(p, "\"%c\" is expected here", c);
}

size_t hn_lex_word(const hn_parser *p)
{
    size_t n = 0;
    while (hn_text_is_name_char(p->at[n]))
        n++;
    return n;
}

bool hn_lex_take_word(hn_parser *p, const char *word)
{
    hn_lex_space(p);
    const size_t n = strlen(word);
    if (hn_lex_word(p) != n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

int hn_lex_hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* After the opening quote. */
static hone_status quoted(hn_parser *p, const char **ret)
{
    const char *start = p->at;
    char *to = HN_NEW_N(p->scratch, char, strcspn(p->at, "\n") + 1);
    size_t n = 0;
    if (!to) return HN_NOMEM(p->dg);
    for (; *p->at != '"'; p->at++) {
        char c = *p->at;
        if (c == '\0' || c == '\n') return hn_lex_fail(p, start, "the quoted text does not end");
        if (c == '\\') {
            c = *++p->at;
            if (c == 'x' && hn_lex_hex(p->at[1]) >= 0 && hn_lex_hex(p->at[2]) >= 0) {
                c = (char)(16 * hn_lex_hex(p->at[1]) + hn_lex_hex(p->at[2]));
                p->at += 2;
                if (c == '\0') return FAIL(p, "a text cannot hold a zero byte");
            } else if (c != '"' && c != '\\')
                return FAIL(p, "only \\\", \\\\ and \\xHH may follow a backslash");
        }
        to[n++] = c;
    }
    p->at++;
    *ret = to;
    return HONE_OK;
}

hone_status hn_lex_text(hn_parser *p, const char **ret)
{
    if (hn_lex_take(p, '"')) return quoted(p, ret);
    return FAIL(p, "a quoted text is expected here");
}

hone_status hn_lex_name(hn_parser *p, const char **ret)
{
    if (hn_lex_take(p, '"')) {
        const char *start = p->at - 1;
        HN_TRY(quoted(p, ret));
        return **ret ? HONE_OK : hn_lex_fail(p, start, "a name cannot be empty");
    }
    const size_t n = hn_lex_word(p);
    if (n == 0) return FAIL(p, "a name is expected here");
    *ret = hn_arena_strndup(p->scratch, p->at, n);
    if (!*ret) return HN_NOMEM(p->dg);
    if (!hn_text_is_plain(*ret))
        return FAIL(p, "\"%s\" means something else; as a name it needs quotes", *ret);
    p->at += n;
    return HONE_OK;
}

/* The characters of a number, copied out for the strict readers of base. */
const char *hn_lex_number_text(hn_parser *p, char dst[64])
{
    hn_lex_space(p);
    const size_t n = strspn(p->at, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");
    if (n == 0 || n >= 64) return NULL;
    memcpy(dst, p->at, n);
    dst[n] = '\0';
    p->at += n;
    return dst;
}

hone_status hn_lex_integer(hn_parser *p, int64_t *ret)
{
    char buf[64];
    const char *start = p->at, *s = hn_lex_number_text(p, buf);
    if (!s || !hn_parse_i64(s, ret)) return hn_lex_fail(p, start, "an integer is expected here");
    return HONE_OK;
}

hone_status hn_lex_number(hn_parser *p, double *ret)
{
    char buf[64];
    const char *start = p->at, *s = hn_lex_number_text(p, buf);
    if (!s || !hn_parse_f64(s, ret)) return hn_lex_fail(p, start, "a number is expected here");
    return HONE_OK;
}
