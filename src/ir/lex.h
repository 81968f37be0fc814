/* Reading words of the text form. */
#ifndef HN_IR_LEX_H
#define HN_IR_LEX_H

#include "ir/text.h"

typedef struct hn_parser {
    const char *text, *at;
    hn_arena *arena;        /* the graph's */
    hn_arena *scratch;      /* names and lists until they are copied */
    hn_graph *g;            /* the body being read */
    const hn_graph *source; /* whose constants a digest may name; NULL */
    int depth;
    hn_diag *dg;
} hn_parser;

/** Raises HONE_E_FORMAT with the line and column of `at`. */
hone_status hn_lex_fail(hn_parser *p, const char *at, const char *fmt, ...) HN_PRINTF(3, 4);
#define FAIL(p, ...) hn_lex_fail((p), (p)->at, __VA_ARGS__)

/** Past white space and comments. */
void hn_lex_space(hn_parser *p);
bool hn_lex_take(hn_parser *p, char c);
hone_status hn_lex_expect(hn_parser *p, char c);
/** Length of the plain word here; 0: none. */
size_t hn_lex_word(const hn_parser *p);
bool hn_lex_take_word(hn_parser *p, const char *word);
int hn_lex_hex(char c);
/** A quoted text; a plain or quoted name; both in the scratch arena. */
hone_status hn_lex_text(hn_parser *p, const char **ret);
hone_status hn_lex_name(hn_parser *p, const char **ret);
/** The characters of a number, for the strict readers of base; NULL: there is none. */
const char *hn_lex_number_text(hn_parser *p, char dst[64]);
hone_status hn_lex_integer(hn_parser *p, int64_t *ret);
hone_status hn_lex_number(hn_parser *p, double *ret);

#endif
