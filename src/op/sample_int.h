/* Sampling at computed places, for the expansions of grid_sample and deform_conv. */
#ifndef HN_OP_SAMPLE_INT_H
#define HN_OP_SAMPLE_INT_H

#include "op/expand_int.h"

enum { SAMPLE_LINEAR, SAMPLE_NEAREST, SAMPLE_CUBIC };
enum { SAMPLE_ZEROS, SAMPLE_BORDER, SAMPLE_REFLECTION };
enum { SAMPLE_MAX_AXES = 6 };

typedef struct sampler {
    int n_axis;
    int64_t mode, padding;
    bool align_corners; /* reflection is about the edge elements' centres, else about their borders */
    hn_value *size[SAMPLE_MAX_AXES];  /* extents as rank-0 values of the places' dtype */
    hn_value *place[SAMPLE_MAX_AXES]; /* [batch, points, 1] in elements along each axis */
} sampler;

/** data [batch, d1..dk, channels] at the places: [batch, points, channels]. */
hn_value *x_sample(hn_builder *b, const sampler *s, hn_value *data);

#endif
