"""Recipes of random models: ops on elements."""

import numpy as np

from graph_base import BOOL, F16, F32, F64, FLOATS, I32, I64, I8, INTS, U8, onnx_type, recipe


UNARY = {  # op: (opset, bound of the result from the operand's, exact stays)
    "Relu": (1, lambda m: m, True), "Neg": (1, lambda m: m, True), "Abs": (1, lambda m: m, True),
    "Sigmoid": (1, lambda m: 1, False), "Tanh": (1, lambda m: 1, False), "Erf": (9, lambda m: 1, False),
    "Softplus": (1, lambda m: m + 1, False), "Softsign": (1, lambda m: 1, False), "Elu": (1, lambda m: m + 1, False),
    "Selu": (1, lambda m: 2 * m + 2, False), "LeakyRelu": (1, lambda m: m, False), "HardSigmoid": (1, lambda m: 1, False),
    "HardSwish": (14, lambda m: m, False), "Mish": (18, lambda m: m, False), "Gelu": (20, lambda m: m, False),
    "Celu": (12, lambda m: m + 1, False), "Sin": (7, lambda m: 1, False), "Cos": (7, lambda m: 1, False),
    "Atan": (7, lambda m: 1.6, False), "Identity": (1, lambda m: m, True),
}


@recipe(5, old=True)
def unary(g):
    op = g.r.choice(list(UNARY))
    since, bound, exact = UNARY[op]
    only32 = op in ("Softplus", "Softsign", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "HardSwish", "Mish", "Gelu", "Celu", "Sin", "Cos", "Atan", "Erf")
    x = g.pick((F32,) if only32 else (F32, F32, F64, F16))
    if x and g.opset >= since:
        g.one(op, [x], x.dtype, x.shape, bound(x.mag), x.exact and exact)


@recipe(1, old=True)
def exp_log(g):
    x = g.pick((F32,), ok=lambda v: v.mag <= 6)
    if not x:
        return
    y = g.one("Exp", [x], F32, x.shape, float(np.exp(x.mag)), False)
    if y and g.r.random() < 0.5:
        g.one(g.r.choice(("Log", "Sqrt", "Reciprocal")), [y], F32, x.shape, float(np.exp(x.mag)), False)


@recipe(1)
def round_off(g):
    x = g.pick((F32, F64), ok=lambda v: v.exact)
    if x:
        g.one(g.r.choice(("Floor", "Ceil", "Round", "Sign")), [x], x.dtype, x.shape, x.mag + 1)


@recipe(6, old=True)
def binary(g):
    op = g.r.choice(("Add", "Sub", "Mul", "Max", "Min", "Add", "Mul"))
    x = g.pick(FLOATS + INTS if op in ("Add", "Sub", "Mul") or g.opset >= 12 else FLOATS)
    y = g.like(x) if x else None
    if not y:
        return
    mag = x.mag * y.mag if op == "Mul" else x.mag + y.mag if op in ("Add", "Sub") else max(x.mag, y.mag)
    exact = x.exact and y.exact and (mag < 256 or op in ("Max", "Min"))
    ins = [x, y] if g.r.random() < 0.5 else [y, x]
    g.one(op, ins, x.dtype, np.broadcast_shapes(x.shape, y.shape), mag, exact)


@recipe(2, old=True)
def by_constant(g):
    x = g.pick((F32, F64))
    if not x:
        return
    k = g.const(np.array(g.r.choice((0.5, 2, 4, 3, 1, -1.5)), x.dtype))
    op = g.r.choice(("Div", "Mul", "Add", "Sub", "Pow"))
    if op == "Pow":
        k = g.const(np.array(g.r.choice((2.0, 3.0, 1.0)), x.dtype))
        g.one(op, [x, k], x.dtype, x.shape, max(x.mag, 1) ** 3, False)
    else:
        g.one(op, [x, k], x.dtype, x.shape, 4 * x.mag + 4, x.exact and op in ("Add", "Sub") and x.mag < 256)


@recipe(1)
def int_division(g):
    x = g.pick(INTS)
    if not x:
        return
    d = g.array(x.dtype, x.shape)
    d[d == 0] = 3
    op = g.r.choice(("Div", "Mod", "fmod"))
    y = g.const(d)
    if op == "Div":
        g.one("Div", [x, y], x.dtype, x.shape, x.mag)
    else:
        g.one("Mod", [x, y], x.dtype, x.shape, 8, fmod=int(op == "fmod"))


@recipe(2)
def compare(g):
    x = g.pick((F32, F64, I64, I32), ok=lambda v: v.exact)
    y = g.like(x) if x else None
    op = g.r.choice(("Greater", "Less", "Equal") + (("GreaterOrEqual", "LessOrEqual") if g.opset >= 16 else ()))
    if y and y.exact:
        g.one(op, [x, y], BOOL, np.broadcast_shapes(x.shape, y.shape), 1)


@recipe(1, old=True)
def logic(g):
    x = g.pick((BOOL,))
    if g.r.random() < 0.3:
        g.one("Not", [x], BOOL, x.shape, 1)
        return
    y = g.like(x)
    if y:
        g.one(g.r.choice(("And", "Or", "Xor")), [x, y], BOOL, np.broadcast_shapes(x.shape, y.shape), 1)


@recipe(2)
def where(g):
    x = g.pick((F32, I64, F16, U8, I32))
    y = g.like(x) if x else None
    if not y:
        return
    shape = np.broadcast_shapes(x.shape, y.shape)
    c = g.pick((BOOL,), ok=lambda v: v.shape == shape) if g.r.random() < 0.5 else g.fresh(BOOL, tuple(d if g.r.random() < 0.6 else 1 for d in shape))
    if c and np.broadcast_shapes(c.shape, shape) == shape:
        g.one("Where", [c, x, y], x.dtype, shape, max(x.mag, y.mag), x.exact and y.exact)


@recipe(1)
def clip(g):
    x = g.pick((F32, I64, I32, U8) if g.opset >= 12 else (F32,))
    if not x:
        return
    lo, hi = (g.const(np.array(v, x.dtype)) for v in ((1, 5) if x.dtype == U8 else (-1, 1)))
    g.one("Clip", [x] + g.r.choice(([lo], [lo, hi], ["", hi], [])), x.dtype, x.shape, max(x.mag, 5), x.exact)


@recipe(2, old=True)
def cast(g):
    x = g.pick(ok=lambda v: v.exact)
    if not x:
        return
    to = g.r.choice((F32, F64, F16, I64, I32, BOOL, U8, I8))
    if x.dtype in FLOATS and to in (U8, I8) or x.dtype in INTS + (I8,) and to == U8 or (x.mag > 100 and to in (I8, U8)):
        return # negative and large ones differ between implementations
    g.one("Cast", [x], to, x.shape, x.mag if to != BOOL else 1, x.mag < 256, to=onnx_type(to))
