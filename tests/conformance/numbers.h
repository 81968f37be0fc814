/* How far outputs in float32 lie from float64's, summed over the sets of inputs of a case. */
#ifndef CONFORMANCE_NUMBERS_H
#define CONFORMANCE_NUMBERS_H

#include "judge.h"

/** Sums of squares over finite elements: of our error, of the files' (another runtime's outputs), of half a unit in the last place. */
typedef struct error_sums {
    double ours, theirs, half;
    int64_t n;
} error_sums;

/** got, theirs: float32; exact: float64 of the same shape. Elements that are not finite in one of them are another test's concern. */
void add_errors(error_sums *sums, const hone_tensor *got, const hone_tensor *theirs, const hone_tensor *exact);
/** "name ours theirs half n" of every float32 output, roots of means, with ';' between: into r->reason. */
void say_errors(const error_sums *sums, const io_set *s, result *r);

#endif
