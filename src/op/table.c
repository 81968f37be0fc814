/* The op table: every row of ir/ops.def by id. */
#define HN_OP_TABLE_C
#include "op/op_int.h"

/* Rows whose definition is not linked are NULL. */
#define X(id_, name_) extern const hn_op_def hn_op_##name_ __attribute__((weak));
#include "ir/ops.def"
#undef X

const hn_op_def *const hn_op_table[HN_OP_END] = {
#define X(id_, name_) [id_] = &hn_op_##name_,
#include "ir/ops.def"
#undef X
};
