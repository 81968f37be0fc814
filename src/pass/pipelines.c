/* Pipelines as data. */
#include "pass/pass.h"

#include <string.h>

static const hn_pipeline_step default_steps[] = {
    /* What the model says twice, in roundabout ways, or for nothing. */
    { "fold_if", 0 }, { "unroll_loop", 0 }, { "quantized", 0 }, { "drop_requantize", 0 }, { "fold_sequence", 0 },
    { "fold_constants", 0 }, { "fold_dims", 0 }, { "fold_identity", 0 }, { "drop_outputs", 0 }, { "merge_broadcast", 0 }, { "drop_zero_state", 0 }, { "regroup_transpose", 0 },
    { "fold_neutral", 0 }, { "merge_reshape", 0 }, { "merge_cast", 0 }, { "merge_slice", 0 }, { "slice_gather", 0 },
    { "slice_concat", 0 }, { "merge_concat", 0 }, { "merge_equal", 0 },
    { "fuse_layer_norm", 1 }, { "fuse_rms_norm", 1 }, { "fuse_softmax", 1 }, { "fuse_attention", 1 },
    { "fold_mask", 1 }, { "fuse_gelu", 1 }, { "fuse_silu", 1 }, { "fuse_rotary", 1 },
    /* In the types that the route asks for. */
    { "narrow_float", 5 }, { "merge_cast", 5 }, { "fold_constants", 5 },
    /* Down to what tactics take, and into a shape that suits them. */
    { "lower_list", 2 }, { "expand_composites", 2 }, { "fold_if", 2 }, { "fold_constants", 2 }, { "fold_dims", 2 }, { "fold_neutral", 2 },
    { "fold_unit_axes", 2 }, { "drop_broadcast", 2 }, { "merge_scale", 2 }, { "cheaper_math", 2 }, { "merge_clip", 2 },
    { "merge_reshape", 2 }, { "merge_cast", 2 }, { "merge_slice", 2 }, { "slice_concat", 2 }, { "merge_concat", 2 }, { "swap_concat", 2 },
    { "sink_transpose", 2 }, { "sink_reshape", 2 }, { "merge_transpose", 2 }, { "transpose_operand", 2 },
    { "flatten_matmul", 2 }, { "hoist_reshape", 2 }, { "absorb_pad", 2 }, { "absorb_scale", 2 }, { "absorb_bias", 2 }, { "absorb_input", 2 },
    { "fold_identity", 2 }, { "merge_equal", 2 },
    /* Sharing that costs more than it spares. */
    { "copy_sizes", 3 },
    /* What the final form shows. */
    { "prove_index", 4 },
    { NULL, 0 },
};

/* Only what building needs: lists have no working form, and composites that no tactic takes must go. */
static const hn_pipeline_step none_steps[] = { { "fold_sequence", 0 }, { "lower_list", 0 }, { "expand_composites", 0 }, { NULL, 0 } };

static const hn_pipeline pipelines[] = {
    { "default", default_steps, 8 },
    { "none", none_steps, 16 },
};

int hn_pipeline_count(void)
{
    return HN_COUNT(pipelines);
}

const hn_pipeline *hn_pipeline_at(int i)
{
    return &pipelines[i];
}

const hn_pipeline *hn_pipeline_find(const char *name)
{
    for (int i = 0; i < HN_COUNT(pipelines); i++)
        if (strcmp(pipelines[i].name, name) == 0) return &pipelines[i];
    return NULL;
}
