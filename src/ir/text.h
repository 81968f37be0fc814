/* What the printer and the parser of the text form agree on. Grammar: docs/ir.md. */
#ifndef HN_IR_TEXT_H
#define HN_IR_TEXT_H

#include "ir/ir_int.h"

enum {
    HN_TEXT_VALUES_MAX = 64, /* constants up to so many elements are written as numbers */
    HN_TEXT_HEX_MAX = 1024,  /* and up to so many bytes as hex; longer ones by digest */
};

/** A name that needs no quotes. */
bool hn_text_is_plain(const char *name);
bool hn_text_is_name_char(char c);
/** Storage bytes of a constant that is written without any: they follow from its name. at takes the type's
 * bytes. */
void hn_text_fill(const char *name, hn_dtype t, int64_t n, void *at);
/** Text of a float that reads back as v in dtype t; dst has 40 bytes. */
void hn_text_float(hn_dtype t, double v, char *dst);
/** Name i of "a|b|c" and its index; NULL, -1. */
const char *hn_text_enum_name(const char *values, int64_t i, int *ret_n);
int hn_text_enum_index(const char *values, const char *name, size_t n);

#endif
