"""Recipes of random models: scans, loops that data end, branches that disagree on shapes, longer work on lists, optionals."""

import numpy as np
from onnx import TensorProto, helper

from graph_base import BOOL, F32, I64, Val, numel, recipe
from graph_control import nested


def info(v, shape=True):
    return helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(v.dtype), list(v.shape) if shape else None)


@recipe(2)
def scan(g):
    """A carried sum over the rows of one or two values, forwards or backwards; the body reads a value from outside."""
    n, d = g.r.choice((0, 1, 3, 4)), g.r.choice((1, 2, 5))
    if g.depth > 1:
        return
    xs = [g.fresh(F32, (n, d)) for _ in range(g.r.randint(1, 2))]
    first, w = g.fresh(F32, (d,)), g.fresh(F32, (d,), as_const=g.r.random() < 0.5)

    def made(h):
        carried = Val(h.name("p"), F32, (d,), 16, False)
        rows = [Val(h.name("p"), F32, (d,), 2, True) for _ in xs]
        h.params = [carried] + rows
        a = h.one("Mul", [rows[0], w], F32, (d,), 4, False)
        a = h.one("Add", [a, rows[-1]], F32, (d,), 6, False) if a else None
        b = h.one("Add", [a, carried], F32, (d,), 32, False) if a else None
        c = h.one(h.r.choice(("Tanh", "Relu", "Identity")), [b], F32, (d,), 32, False) if b else None
        y = h.one("ReduceMax", [a], F32, (1,), 8, False, keepdims=1) if c else None
        h.results = [c, y]
        return y

    m = nested(g, made)
    if not m:
        return
    h, _ = m
    body = helper.make_graph(h.nodes, "step", [info(v) for v in h.params], [info(v) for v in h.results], h.inits)
    g.emit("Scan", [first] + xs, [(F32, (d,), 64, False), (F32, (n, 1), 8, False)], body=body, num_scan_inputs=len(xs),
           scan_input_directions=[g.r.randint(0, 1) for _ in xs], scan_output_directions=[g.r.randint(0, 1)])


@recipe(2)
def while_loop(g):
    """Ends when a sum passes a bound, or after some rounds; what it collects is as long as it ran."""
    x = g.pick((F32,), rank=(1, 2), ok=lambda v: v.exact and v.mag < 8 and v.shape and 0 not in v.shape)
    if g.depth or not x or not x.exact or not x.shape or 0 in x.shape or x.mag >= 8:
        return
    limit, most = g.r.choice((0.5, 3.0, 100.0)), g.r.randint(0, 5)

    def made(h):
        carried = Val(h.name("p"), F32, x.shape, 64, True)
        count = Val(h.name("p"), I64, (), 8)
        h.params = [Val(h.name("i"), I64, (), 8), Val(h.name("k"), BOOL, (), 1), carried, count]
        a = h.one("Add", [carried, x], F32, x.shape, 64)
        s = h.one("ReduceMax", [a], F32, (), 64, keepdims=0) if a else None
        go = h.one("Less", [s, h.const(np.array(limit, F32))], BOOL, (), 1) if s else None
        n = h.one("Add", [count, h.params[0]], I64, (), 64) if go else None
        y = h.one("Transpose", [a], F32, x.shape[::-1], 64) if n else None
        h.results = [go, a, n, y]
        return y

    m = nested(g, made)
    if not m:
        return
    h, _ = m
    body = helper.make_graph(h.nodes, "body", [info(v) for v in h.params], [info(v) for v in h.results], h.inits)
    start = [g.const(np.array(most, np.int64)) if g.r.random() < 0.8 else "", g.const(np.array(True)) if g.r.random() < 0.8 else ""]
    if start[0] == "":
        start[0] = g.const(np.array(4, np.int64))
    made = g.emit("Loop", start + [x, g.const(np.array(0, np.int64))], [(F32, x.shape, 64, True), (I64, (), 64, True), (F32, (0,) + x.shape[::-1], 64, True)], body=body)
    if made:
        g.vals.remove(made[2])
        g.one("ReduceSum", [made[2]] + ([g.ints(0)] if g.opset >= 13 else []), F32, x.shape[::-1], 1024, False, keepdims=0,
              **({} if g.opset >= 13 else {"axes": [0]}))


@recipe(2)
def unlike_branches(g):
    """The sides have other shapes; a sum makes one of them again. A loop stands in one."""
    x = g.pick((F32,), rank=(1, 2), ok=lambda v: v.mag < 64 and v.shape and 0 not in v.shape)
    c = g.fresh(BOOL, ())
    if g.depth or not x or not x.shape or 0 in x.shape or x.mag >= 64:
        return
    sides = []
    for k in range(2):
        def made(h, k=k):
            if k:
                return h.one("Concat", [x, x], F32, (2 * x.shape[0],) + x.shape[1:], x.mag, axis=0)
            y = h.one("Relu", [x], F32, x.shape, x.mag)
            return h.one("Slice", [y, h.ints(0), h.ints(1), h.ints(0)], F32, (1,) + x.shape[1:], x.mag) if y else None
        n = nested(g, made)
        if not n:
            return
        h, y = n
        sides.append(helper.make_graph(h.nodes, "side", [], [info(y, False)], h.inits))
    y = g.emit("If", [c], [(F32, (0,) + x.shape[1:], x.mag, False)], then_branch=sides[0], else_branch=sides[1])
    if y:
        g.vals.remove(y[0])
        g.one("ReduceSum", [y[0]] + ([g.ints(0)] if g.opset >= 13 else []), F32, x.shape[1:], x.mag * 16, False, keepdims=0,
              **({} if g.opset >= 13 else {"axes": [0]}))


@recipe(2)
def list_work(g):
    """A list put together, changed in places and joined again."""
    if g.depth:
        return
    d = g.r.choice((1, 2, 3))
    xs = [g.fresh(F32, (g.r.choice((1, 2, 3)), d)) for _ in range(3)]
    s, t, u = (g.name("s") for _ in range(3))
    if g.r.random() < 0.5:
        g.nodes.append(helper.make_node("SequenceConstruct", [x.name for x in xs[:2]], [s]))
        held = [xs[0].shape[0], xs[1].shape[0]]
    else:
        e = g.name("s")
        g.nodes.append(helper.make_node("SequenceEmpty", [], [e], dtype=TensorProto.FLOAT))
        g.nodes.append(helper.make_node("SequenceInsert", [e, xs[0].name], [s]))
        held = [xs[0].shape[0]]
    at = g.r.randint(-len(held), len(held))
    g.nodes.append(helper.make_node("SequenceInsert", [s, xs[2].name, g.const(np.array(at, np.int64))], [t]))
    held.insert(at if at >= 0 else len(held) + at, xs[2].shape[0])
    gone = g.r.randint(-len(held), len(held) - 1)
    g.nodes.append(helper.make_node("SequenceErase", [t, g.const(np.array(gone, np.int64))], [u]))
    del held[gone]
    if g.r.random() < 0.3:
        g.one("SequenceLength", [u], I64, (), 8)
    if held:
        g.one("ConcatFromSequence", [u], F32, (sum(held), d), 2, axis=0)


@recipe(1)
def optional(g):
    x = g.pick((F32, I64))
    if not x or g.depth or g.opset < 18:
        return
    o = g.name("o")
    g.nodes.append(helper.make_node("Optional", [x.name], [o]))
    g.one("OptionalHasElement", [o], BOOL, (), 1)
    g.one("OptionalGetElement", [o], x.dtype, x.shape, x.mag, x.exact)


@recipe(2)
def odd_shapes(g):
    """Primes above a vector's width, and extents of nothing."""
    kind = g.r.choice(("prime", "prime", "empty"))
    shape = [g.r.choice((11, 13, 17, 19, 31, 37, 67)), g.r.choice((1, 2, 3, 5, 17))]
    if kind == "empty":
        shape[g.r.randrange(2)] = 0
    x = g.fresh(F32, shape)
    k = g.r.choice((1, 7, 13, 33))
    y = g.one("MatMul", [x, g.fresh(F32, (shape[1], k), as_const=g.r.random() < 0.7)], F32, (shape[0], k), 4.0 * max(1, shape[1]), False)
    if y and numel(y.shape):
        y = g.one(g.r.choice(("Relu", "Tanh", "Sigmoid")), [y], F32, y.shape, y.mag, False)
        g.one("Softmax", [y], F32, y.shape, 1, False, axis=g.r.choice((0, 1)))
    elif y and g.opset >= 13:
        g.one("ReduceSum", [y, g.ints(0)], F32, (1, k), 1, False)
