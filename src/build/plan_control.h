/* Inside the planning of if and loop: values whose shape the run decides. */
#ifndef HN_BUILD_PLAN_CONTROL_H
#define HN_BUILD_PLAN_CONTROL_H

#include "build/build_int.h"

/** A heap buffer, its bytes and those extents that are symbols of the value itself; all set anew by hn_plan_fill. */
typedef struct hn_flexible {
    uint32_t buf, size;
    uint32_t dim[HN_MAX_RANK]; /* registers; HN_NO for extents that are known otherwise */
} hn_flexible;

/** The symbol that stands for an extent of v, 0 where it has none. */
hn_dim hn_plan_own_symbol(const hn_planner *p, const hn_value *v, int axis);
bool hn_plan_is_flexible(const hn_planner *p, const hn_value *v);
void hn_plan_flexible(hn_planner *p, const hn_value *v, hn_flexible *ret);
/** From here on v's own extents are those registers. */
void hn_plan_know_flexible(hn_planner *p, const hn_value *v, const hn_flexible *f);
/** Copy `from` there, with its extents; extents of `to` that are known otherwise are checked. */
hone_status hn_plan_fill(hn_planner *p, const hn_value *to, const hn_flexible *f, hn_value *from, hn_diag *dg);

/** Registers of all extents. */
hone_status hn_plan_dims(hn_planner *p, const hn_value *v, uint32_t *ret, hn_diag *dg);
void hn_plan_check_axis(hn_planner *p, const hn_value *v, int axis, uint32_t got, uint32_t want);
hone_status hn_plan_known_bytes(hn_planner *p, const hn_value *v, uint32_t *ret, hn_diag *dg);
hone_status hn_plan_copy(hn_planner *p, hn_value *from, uint32_t to, hn_diag *dg);
hone_status hn_plan_read(hn_planner *p, hn_value *v, uint32_t *ret, hn_diag *dg); /* a scalar, into a register */
/** Drop what was learnt in a block: its registers may not have been written outside it. Those of the prefix stay. */
void hn_plan_forget(hn_planner *p, int n_before);
const char *hn_plan_origin(const hn_node *n);

/** Fail where a branch begins that cannot run. */
void hn_plan_trap(hn_planner *p, const hn_node *n, const hn_graph *body);
hone_status hn_plan_loop(hn_planner *p, hn_node *n, hn_diag *dg);

#endif
