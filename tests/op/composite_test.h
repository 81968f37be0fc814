/* Composites under test: the expansion, evaluated, against the reference. */
#ifndef HN_TESTS_OP_COMPOSITE_TEST_H
#define HN_TESTS_OP_COMPOSITE_TEST_H

#include "op_test.h"

enum {
    E_HALF = 1,    /* also with f16 and bf16 for f32 */
    E_HOSTILE = 2, /* also with infinities, NaN, denormals, signed zeros, huge numbers among the operands */
    E_AS_IS = 4,   /* only in the dtypes that are written */
};

/**
 * `text` is a graph of one composite node over inputs. It is run as written and with f64 for f32, on several
 * random fills, by the op's reference and by its expansion (expanded until no composite is left, and
 * validated); every output must agree within the op's tolerance for its dtype.
 *
 * `spec` sets symbols and ranges: "n=3 lens=0..5 x=-8..8". Operands default to -1..1 (floats) and -8..8
 * (integers).
 */
void composite_expands_at(const char *file, int line, hn_test *t, const char *text, const char *spec,
                          int flags);
#define EXPANDS(text, spec, flags) composite_expands_at(__FILE__, __LINE__, t, text, spec, flags)

#endif
