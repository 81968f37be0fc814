/* Copying values, nodes and bodies between graphs: what clone, extract and build-like share. */
#ifndef HN_IR_COPY_H
#define HN_IR_COPY_H

#include "ir/ir_int.h"

typedef struct hn_copier {
    hn_graph *to;         /* root that receives */
    const hn_graph *from; /* root that is read */
    hn_value **map;       /* by old value id; n_map entries */
    uint32_t n_map;
    bool outer_is_same; /* a value that is not mapped stands for itself (copies within one root) */
    hn_dim *moved;      /* by -handle: the dim in the other table, INT64_MIN not yet */
    int64_t n_moved;
    hn_dim *sub; /* same table: what stands for each symbol; NULL: nothing changes */
    bool oom;
} hn_copier;

bool hn_copier_init(hn_copier *c, hn_graph *to, const hn_graph *from);
hn_dim hn_copy_dim(hn_copier *c, hn_dim d);
void hn_copy_type(hn_copier *c, const hn_tdesc *from, hn_tdesc *ret);
/** A value with v's name, type, content, layout and data in g; entered into the map. */
hn_value *hn_copy_value(hn_copier *c, hn_graph *g, const hn_value *v);
hn_value *hn_copy_input(hn_copier *c, hn_graph *g, const hn_value *v);
hn_value *hn_copy_const(hn_copier *c, hn_graph *g, const hn_value *v);
/** A node at the end of g, its operands through the map, its bodies copied. */
hn_node *hn_copy_node(hn_copier *c, hn_graph *g, const hn_node *n);
/** Inputs, constants, nodes and outputs of src into the empty graph g. */
void hn_copy_graph(hn_copier *c, hn_graph *g, const hn_graph *src);
/** Enter the definers of run-time symbols whose values are mapped. */
void hn_copy_value_dims(hn_copier *c);
/** A body of `parent` that copies src, with symbols of its own where src defines some; same root. */
hn_graph *hn_copy_body(hn_graph *parent, const hn_graph *src);

#endif
