"""Random models whose rows do not see each other: images or sequences with one symbol for the batch."""

import numpy as np

from graph_base import F32, Gen


def norm(g, x):
    c = x.shape[1]
    p = [g.const(g.array(F32, (c,)), False) for _ in range(3)] + [g.const(np.abs(g.array(F32, (c,))) + F32.type(0.5), False)]
    return g.one("BatchNormalization", [x] + p, F32, x.shape, 4 * x.mag + 8, False)


def conv(g, x):
    c, m, k = x.shape[1], g.r.choice((4, 6, 8, 16, 17)), g.r.choice((1, 3, 3))
    group = c if g.r.random() < 0.2 else 1
    m = c if group > 1 else m
    s, pad = g.r.choice((1, 1, 2)), g.r.choice((0, k // 2))
    out = [(d + 2 * pad - k) // s + 1 for d in x.shape[2:]]
    if min(out) < 1:
        return None
    w = g.const((g.array(F32, (m, c // group, k, k)) / F32.type(k * np.sqrt(c // group))).astype(F32), False)
    ins = [x, w] + ([g.const(g.array(F32, (m,)), False)] if g.r.random() < 0.7 else [])
    return g.one("Conv", ins, F32, (x.shape[0], m) + tuple(out), 8 * x.mag, False, kernel_shape=[k, k], strides=[s, s], pads=[pad] * 4, group=group)


def act(g, x):
    return g.one(g.r.choice(("Relu", "Sigmoid", "LeakyRelu", "Tanh")), [x], F32, x.shape, x.mag, False)


def pool(g, x):
    if min(x.shape[2:]) < 2:
        return None
    return g.one(g.r.choice(("MaxPool", "AveragePool")), [x], F32, x.shape[:2] + tuple(d - 1 for d in x.shape[2:]), x.mag, False, kernel_shape=[2, 2])


def skip(g, x):
    y = act(g, x)
    return g.one("Add", [x, y], F32, x.shape, 2 * x.mag, False) if y else None


def two_convs(g, x):
    y = conv(g, x)
    y = norm(g, y) if y and g.r.random() < 0.5 else y
    y = act(g, y) if y else None
    return conv(g, y) if y else None


def head(g, x):
    y = g.one("GlobalAveragePool", [x], F32, x.shape[:2] + (1, 1), x.mag, False)
    y = g.one("Flatten", [y], F32, x.shape[:2], x.mag, False, axis=1) if y else None
    y = g.one("Gemm", [y, g.fresh(F32, (5, x.shape[1]), as_const=True)], F32, (x.shape[0], 5), 2 * x.mag * x.shape[1], False, transB=1) if y else None
    return g.one("Softmax", [y], F32, y.shape, 1, False, axis=-1) if y else None


def dense(g, x):
    n = g.r.choice((4, 8, 16))
    y = g.one("MatMul", [x, g.fresh(F32, (x.shape[-1], n), as_const=True)], F32, x.shape[:-1] + (n,), 2 * x.mag * x.shape[-1], False)
    return g.one("Add", [y, g.fresh(F32, (n,), as_const=True)], F32, y.shape, y.mag + 2, False) if y else None


def layer(g, x):
    return g.one("LayerNormalization", [x, g.fresh(F32, x.shape[-1:], as_const=True)], F32, x.shape, 16, False, axis=-1, epsilon=0.01)


def mix(g, x):
    """Attention of the rows' own places."""
    k = g.one("Transpose", [x], F32, (x.shape[0], x.shape[2], x.shape[1]), x.mag, perm=[0, 2, 1])
    s = g.one("MatMul", [x, k], F32, (x.shape[0], x.shape[1], x.shape[1]), x.mag ** 2 * x.shape[2], False)
    s = g.one("Mul", [s, g.const(np.array(0.1, F32), False)], F32, s.shape, s.mag, False) if s else None
    p = g.one("Softmax", [s], F32, s.shape, 1, False, axis=-1) if s else None
    return g.one("MatMul", [p, x], F32, x.shape, x.mag, False) if p else None


def make(seed):
    """(model, feeds, output names); the batch is the symbol N."""
    g = Gen(seed)
    g.opset = g.r.choice((17, 18, 20, 21))
    image = g.r.random() < 0.6
    shape = (g.r.choice((2, 3)), g.r.choice((3, 4, 8)), g.r.choice((7, 9, 12)), g.r.choice((8, 9))) if image else (g.r.choice((2, 3)), g.r.choice((3, 5)), g.r.choice((8, 12)))
    x = g.fresh(F32, shape, as_const=False)
    steps = (conv, act, norm, pool, skip, two_convs, two_convs, two_convs) if image else (dense, layer, mix, act, skip)
    for _ in range(g.r.randint(2, 6)):
        x = g.r.choice(steps)(g, x) or x
    if image and g.r.random() < 0.4:
        x = head(g, x) or x
    model, feeds, names = g.model()
    for i in model.graph.input:
        i.type.tensor_type.shape.dim[0].dim_param = "N"
    read = {i for n in model.graph.node for i in n.input}
    ends = [o for o in model.graph.output if o.name not in read]
    del model.graph.output[:]
    model.graph.output.extend(ends)
    names = [o.name for o in ends]
    return model, feeds, names
