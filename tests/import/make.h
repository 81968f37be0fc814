/* ONNX files written by hand: just the wire format, so that tests can write wrong ones too. */
#ifndef HN_TESTS_IMPORT_MAKE_H
#define HN_TESTS_IMPORT_MAKE_H

#include "base/str.h"
#include "harness.h"
#include "import/import.h"

enum { F32 = 1, U8 = 2, I8 = 3, I32 = 6, I64 = 7, STR = 8, BOOL = 9, F64 = 11, U4 = 21 };

/* ---- the wire ---- */
void pb_int(hn_str *m, int field, int64_t v);
void pb_bytes(hn_str *m, int field, const void *p, size_t n);
void pb_str(hn_str *m, int field, const char *s);
/** A message in a message; part is emptied. */
void pb_msg(hn_str *m, int field, hn_str *part);

/* ---- graphs: hn_str g = {0}; g_input(&g, "x", F32, "2,n"); g_node(&g, "Relu", "x", "y", ""); g_output(&g,
 * "y", F32, NULL) ---- */
/** dims "2,n,?": numbers, names, or "" entries; NULL: no shape at all. */
void g_input(hn_str *g, const char *name, int type, const char *dims);
void g_output(hn_str *g, const char *name, int type, const char *dims);
/**
 * Operands and results as comma lists (an empty entry is an absent operand). attrs: "axis=i:1 perm=is:1,0
 * alpha=f:0.5 mode=s:edge shape=ref:other"; pass attributes of other kinds made by a_* in `more`, which is
 * emptied.
 */
void g_node_named(hn_str *g, const char *name, const char *op, const char *in, const char *out,
                  const char *attrs, hn_str *more);
void g_node(hn_str *g, const char *op, const char *in, const char *out, const char *attrs);
void g_node_in(hn_str *g, const char *domain, const char *op, const char *in, const char *out,
               const char *attrs);
/** An initializer of int64 or float values, raw; dims "" is a scalar. */
void g_ints(hn_str *g, const char *name, const char *dims, const char *values);
void g_floats(hn_str *g, const char *name, const char *dims, const char *values);
/** A TensorProto message (field 5 of a graph) with dims and type set; add its data, then pb_msg(g, 5, &t). */
void t_begin(hn_str *t, const char *name, int type, const char *dims);
void a_graph(hn_str *more, const char *name, hn_str *graph);

/** A model around a graph, which is emptied: opset of ai.onnx, com.microsoft 1 beside it. */
void m_model(hn_str *m, hn_str *graph, int opset);

/* ---- importing ---- */
/** Must succeed and validate. */
hn_graph *import_ok(hn_test *t, hn_str *graph, int opset, const hn_import_opts *opts);
/** Must fail; returns how many problems were listed; the first holds `part` somewhere in its text. */
int import_bad(hn_test *t, hn_str *graph, int opset, const hn_import_opts *opts, hone_status want,
               const char *part);
/** Evaluate with float inputs in order (a NULL row ends); yields output k as doubles. */
double *eval_floats(hn_test *t, const hn_graph *g, const double *const *in, int k, int *ret_n);
/** Text form of the graph. */
const char *text_of(hn_test *t, const hn_graph *g);
int count_op(const hn_graph *g, hn_op op);

#endif
