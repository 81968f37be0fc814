/* The op tables: one row a version that differs. */
#include "import/import_int.h"

#define X(op, since_, min_, max_, outs, fn_, arg_)                                                           \
    { .name = #op,                                                                                           \
      .since = since_,                                                                                       \
      .min_in = min_,                                                                                        \
      .max_in = max_,                                                                                        \
      .max_out = outs,                                                                                       \
      .fn = hn_im_on_##fn_,                                                                                  \
      .arg = arg_ },
static const hn_im_entry onnx[] = {
#include "import/onnx_ops.def"
};
static const hn_im_entry ms[] = {
#include "import/ms_ops.def"
};
static const hn_im_entry ml[] = {
#include "import/ml_ops.def"
};
static const hn_im_entry preview[] = {
#include "import/preview_ops.def"
};
static const hn_im_entry training[] = {
#include "import/training_ops.def"
};
#undef X

const hn_im_domain hn_im_onnx = { "", onnx, HN_COUNT(onnx) };
const hn_im_domain hn_im_ms = { "com.microsoft", ms, HN_COUNT(ms) };
const hn_im_domain hn_im_ml = { "ai.onnx.ml", ml, HN_COUNT(ml) };
const hn_im_domain hn_im_preview = { "ai.onnx.preview", preview, HN_COUNT(preview) };
const hn_im_domain hn_im_training = { "ai.onnx.preview.training", training, HN_COUNT(training) };
