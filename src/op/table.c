/* The op table: every row of ir/ops.def by id. */
#include "op/op_int.h"

const hn_op_def *const hn_op_table[HN_OP_END] = {
#define X(id_, name_) [id_] = &hn_op_##name_,
#include "ir/ops.def"
#undef X
};
