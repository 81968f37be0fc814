"""Recipes of random models: control flow and lists."""

import numpy as np
from onnx import TensorProto, helper

from graph_base import BOOL, F32, Gen, I64, Val, onnx_type, recipe
from graph_elements import binary, unary


def nested(g, made):
    """The subgraph of nodes that made() adds, reading the values around it; (GraphProto, value) or None."""
    inner = Gen(g.r.randrange(2**31))
    inner.opset, inner.depth, inner.n_name = g.opset, g.depth + 1, g.n_name + 1000 * (g.depth + 1)
    inner.vals = list(g.vals)
    y = made(inner)
    g.n_name = inner.n_name
    return (inner, y) if y and inner.nodes else None


@recipe(2)
def branch(g):
    if g.depth > 1:
        return
    c = g.pick((BOOL,), rank=0)
    x = g.pick((F32, I64))
    if not c or not x or c.shape:
        return
    sides = []
    for _ in range(2):
        def made(h):
            for _ in range(h.r.randint(1, 3)):
                unary(h) if h.r.random() < 0.5 else binary(h)
            return h.one(h.r.choice(("Identity", "Neg")), [x], x.dtype, x.shape, x.mag, x.exact)
        n = nested(g, made)
        if not n:
            return
        h, y = n
        sides.append(helper.make_graph(h.nodes, "side", [], [helper.make_tensor_value_info(y.name, onnx_type(y.dtype), None)], h.inits))
    g.one("If", [c], x.dtype, x.shape, x.mag, x.exact, then_branch=sides[0], else_branch=sides[1])


@recipe(1)
def loop(g):
    """Carry a value and collect one, a known or a data-dependent number of times."""
    x = g.pick((F32,), rank=(0, 1, 2), ok=lambda v: v.mag < 8)
    if g.depth > 1 or not x:
        return
    n = g.r.randint(1, 4)
    w = g.fresh(F32, x.shape, as_const=True)

    def made(h):
        carried = Val(h.name("p"), F32, x.shape, x.mag * 4, False)
        h.params = [helper.make_tensor_value_info(h.name("i"), TensorProto.INT64, []),
                    helper.make_tensor_value_info(h.name("k"), TensorProto.BOOL, []),
                    helper.make_tensor_value_info(carried.name, TensorProto.FLOAT, None)]
        a = h.one("Add", [carried, w], F32, x.shape, x.mag * 4, False)
        b = h.one(h.r.choice(("Tanh", "Relu", "Neg", "Abs")), [a], F32, x.shape, x.mag * 4, False) if a else None
        go = h.one("Identity", [h.params[1].name], BOOL, (), 1) if b else None
        seen = h.one("Mul", [b, h.const(np.array(2, F32))], F32, x.shape, 64, False) if go else None
        h.results = [go, b, seen]
        return seen

    m = nested(g, made)
    if not m:
        return
    h, _ = m
    body = helper.make_graph(h.nodes, "body", h.params, [helper.make_tensor_value_info(v.name, onnx_type(v.dtype), None) for v in h.results], h.inits)
    g.emit("Loop", [g.const(np.array(n, np.int64)), g.const(np.array(True))] + [x],
           [(F32, x.shape, 128, False), (F32, (n,) + x.shape, 256, False)], body=body)


@recipe(1)
def sequence(g):
    x = g.pick((F32,), rank=(1, 2, 3), ok=lambda v: v.shape and v.shape[0] > 0)
    if not x or not x.shape or x.shape[0] == 0 or g.depth:
        return
    s = g.name("s")
    if g.r.random() < 0.5:
        y = g.fresh(F32, (g.r.randint(1, 3),) + x.shape[1:])
        g.nodes.append(helper.make_node("SequenceConstruct", [x.name, y.name], [s]))
        g.one("ConcatFromSequence", [s], F32, (x.shape[0] + y.shape[0],) + x.shape[1:], max(x.mag, y.mag), x.exact, axis=0)
    else:
        g.nodes.append(helper.make_node("SplitToSequence", [x.name], [s], axis=0, keepdims=1))
        k = g.r.randint(-x.shape[0], x.shape[0] - 1)
        at = g.pick((I64,), ok=lambda v: False, make=lambda: Val(g.const(np.array(k, np.int64)), I64, (), 8))
        g.one("SequenceAt", [s, at], F32, (1,) + x.shape[1:], x.mag, x.exact)
