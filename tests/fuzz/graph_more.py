"""Recipes of random models: the rarer ops, other element types, and what quantisers write."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graph_base import BF16, BOOL, F16, F32, F64, I16, I32, I64, I8, U16, U32, U64, U8, numel, onnx_type, recipe


# ---- elements ----
BOUNDED = {  # op: (opset, what brings any operand into its domain, bound of the result)
    "Acos": (7, ("Tanh", 0.5), 4), "Asin": (7, ("Tanh", 0.5), 2), "Atanh": (9, ("Tanh", 0.5), 1), "Tan": (7, ("Tanh", 1.0), 2),
    "Sinh": (9, ("Tanh", 4.0), 30), "Cosh": (9, ("Tanh", 4.0), 30), "Asinh": (9, ("Identity", 1.0), 16),
}


@recipe(2)
def in_domain(g):
    op = g.r.choice(list(BOUNDED))
    _, (first, k), mag = BOUNDED[op]
    x = g.pick((F32,))
    y = g.one(first, [x], F32, x.shape, x.mag, False) if x else None
    z = g.one("Mul", [y, g.const(np.array(k, F32))], F32, x.shape, max(1, x.mag), False) if y else None
    if z:
        g.one(op, [z], F32, x.shape, mag, False)


@recipe(1)
def acosh(g):
    x = g.pick((F32,), ok=lambda v: v.mag < 1000)
    y = g.one("Abs", [x], F32, x.shape, x.mag) if x else None
    z = g.one("Add", [y, g.const(np.array(1.25, F32))], F32, x.shape, x.mag + 2, False) if y else None
    if z:
        g.one("Acosh", [z], F32, x.shape, 16, False)


@recipe(2)
def steps(g):
    """Ops with a jump: on values that all compute exactly."""
    x = g.pick((F32,), ok=lambda v: v.exact and v.shape and 0 not in v.shape)
    if not x or not x.exact or not x.shape or 0 in x.shape:
        return
    op = g.r.choice(("ThresholdedRelu", "Shrink", "Hardmax", "PRelu"))
    if op == "ThresholdedRelu":
        g.one(op, [x], F32, x.shape, x.mag, x.exact, alpha=g.r.choice((0.5, 1.0, -0.25)))
    elif op == "Shrink":
        g.one(op, [x], F32, x.shape, x.mag + 1, x.exact, lambd=g.r.choice((0.5, 0.25)), bias=g.r.choice((0.0, 0.5)))
    elif op == "Hardmax":
        g.one(op, [x], F32, x.shape, 1, True, axis=g.axis(x, g.opset >= 13))
    else:
        slope = g.fresh(F32, g.r.choice((x.shape, x.shape[-1:], (1,))))
        g.one(op, [x, slope], F32, x.shape, max(1, slope.mag) * x.mag, False)


@recipe(1)
def non_finite(g):
    x = g.pick((F32,) if g.opset < 20 else (F32, F16, F64))
    if x:
        g.one(g.r.choice(("IsNaN", "IsInf")), [x], BOOL, x.shape, 1)


@recipe(2)
def bits(g):
    x = g.pick((U8, U32, U64, U16))
    y = g.like(x) if x else None
    if not y:
        return
    shape = np.broadcast_shapes(x.shape, y.shape)
    if g.r.random() < 0.4 or g.opset < 18:
        z = g.one("BitShift", [x, g.const(np.array(g.r.randint(0, 3), x.dtype))], x.dtype, x.shape, x.mag * 8, direction=g.r.choice(("LEFT", "RIGHT")))
    elif g.r.random() < 0.2:
        z = g.one("BitwiseNot", [x], x.dtype, x.shape, 1)
    else:
        z = g.one(g.r.choice(("BitwiseAnd", "BitwiseOr", "BitwiseXor")), [x, y], x.dtype, shape, max(x.mag, y.mag) * 2)
    if z and x.dtype in (U8, U32) and z.mag < 100:
        g.one("Cast", [z], F32, z.shape, 2.0 ** 32, False, to=TensorProto.FLOAT)


@recipe(1)
def of_many(g):
    x = g.pick((F32, F64), ok=lambda v: v.mag < 1000)
    if x:
        ys = [x] + [y for y in (g.like(x) for _ in range(g.r.randint(0, 2))) if y]
        try:
            shape = np.broadcast_shapes(*(y.shape for y in ys))
        except ValueError:
            return
        g.one(g.r.choice(("Sum", "Mean", "Max", "Min")), ys, x.dtype, shape, sum(y.mag for y in ys), False)


@recipe(1)
def gated(g):
    x = g.pick((F32,))
    if x and g.opset >= 24:
        g.one("Swish", [x], F32, x.shape, x.mag, False, alpha=g.r.choice((1.0, 1.5)))
    elif x and g.opset >= 15:
        g.one("CastLike", [x, g.fresh(F64, (), as_const=True)], F64, x.shape, x.mag, x.exact)


# ---- element types ----
@recipe(3)
def narrow(g):
    """Through another type and back, with something computed in it."""
    t = g.r.choice((BF16, F16, F64) if g.opset >= 13 else (F16, F64))
    x = g.pick((F32,), ok=lambda v: v.exact and v.mag <= 16)
    if not x or not x.exact or x.mag > 16:
        return
    y = g.one("Cast", [x], t, x.shape, x.mag, True, to=onnx_type(t))
    if not y:
        return
    op = g.r.choice(("Add", "Mul", "Relu", "Neg", "Max", "Tanh", "Sqrt", "MatMul", "Softmax", "ReduceSum", "Transpose", "Where", "Concat"))
    if op in ("Add", "Mul", "Max"):
        z = g.one(op, [y, g.fresh(t, x.shape[-1:], as_const=True)], t, x.shape, 2 * x.mag + 2, False)
    elif op == "MatMul" and x.shape and x.shape[-1]:
        w = g.fresh(t, (x.shape[-1], g.r.choice((1, 3, 8))), as_const=g.r.random() < 0.7)
        z = g.one(op, [y, w], t, x.shape[:-1] + w.shape[1:], 2 * x.mag * x.shape[-1], False)
    elif op == "Softmax" and x.shape and 0 not in x.shape:
        z = g.one(op, [y], t, x.shape, 1, False, axis=-1)
    elif op == "ReduceSum" and x.shape and g.opset >= 13:
        z = g.one(op, [y, g.ints(-1)], t, x.shape[:-1], x.mag * max(1, x.shape[-1]), False, keepdims=0)
    elif op == "Transpose":
        z = g.one(op, [y], t, x.shape[::-1], x.mag)
    elif op == "Where":
        z = g.one(op, [g.fresh(BOOL, x.shape), y, g.fresh(t, (), as_const=True)], t, x.shape, max(x.mag, 2))
    elif op == "Concat" and x.shape:
        z = g.one(op, [y, y], t, (2 * x.shape[0],) + x.shape[1:], x.mag, axis=0)
    elif op == "Sqrt":
        z = g.one("Abs", [y], t, x.shape, x.mag)
        z = g.one(op, [z], t, x.shape, 4, False) if z else None
    else:
        z = g.one(op if op in ("Relu", "Neg", "Tanh") else "Identity", [y], t, x.shape, x.mag, False)
    if z and g.r.random() < 0.7:
        g.one("Cast", [z], F32, z.shape, z.mag, False, to=TensorProto.FLOAT)


@recipe(2)
def small_ints(g):
    t = g.r.choice((I8, I16, U8, U16, U32, U64, I32, I64))
    x = g.fresh(t, g.shape(g.r.choice((0, 1, 2, 3))))
    op = g.r.choice(("Add", "Sub", "Mul", "Max", "Min", "Equal", "Greater", "Cast", "Gather", "Concat", "ReduceMax", "Transpose", "Mod"))
    signed = t in (I8, I16, I32, I64)
    y = g.like(x)
    if not y or (op in ("Sub",) and not signed) or (op in ("Max", "Min") and t in (I16, U16) and g.opset < 14):
        return
    if op in ("Add", "Sub", "Mul", "Max", "Min"):
        if op in ("Add", "Sub", "Mul") and t in (I8, I16, U8, U16) and g.opset < 14:
            return
        g.one(op, [x, y], t, np.broadcast_shapes(x.shape, y.shape), x.mag * y.mag)
    elif op in ("Equal", "Greater"):
        g.one(op, [x, y], BOOL, np.broadcast_shapes(x.shape, y.shape), 1)
    elif op == "Gather" and x.shape and x.shape[0]:
        g.one(op, [x, g.ints(0, -1)], t, (2,) + x.shape[1:], x.mag)
    elif op == "Concat" and x.shape:
        g.one(op, [x, x], t, (2 * x.shape[0],) + x.shape[1:], x.mag, axis=0)
    elif op == "ReduceMax" and t in (I8, U8) and x.shape and 0 not in x.shape and 12 <= g.opset < 18:
        g.one(op, [x], t, x.shape[1:], x.mag, axes=[0], keepdims=0)
    elif op == "Transpose":
        g.one(op, [x], t, x.shape[::-1], x.mag)
    elif op == "Mod" and 0 not in x.shape:
        d = g.array(t, x.shape)
        d[d == 0] = 3
        g.one(op, [x, g.const(d)], t, x.shape, 16, fmod=g.r.randint(0, 1) if signed else 0)
    else:
        g.one("Cast", [x], F32, x.shape, 16, True, to=TensorProto.FLOAT)


@recipe(1)
def eight_bits(g):
    """float8 and four bits: rounded by a cast or by QuantizeLinear, read back."""
    x = g.pick((F32,), ok=lambda v: v.exact and v.mag <= 16)
    if not x or not x.exact or g.opset < 19 or x.mag > 16:
        return
    t = g.r.choice((TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ))
    n = g.name("f8_")
    if g.r.random() < 0.5 and g.opset >= 21:
        t = g.r.choice((TensorProto.INT4, TensorProto.UINT4, t))
        zero = g.name("z")
        g.inits.append(helper.make_tensor(zero, t, [], [0]))
        scale = g.const(np.array(0.5, F32))
        g.nodes.append(helper.make_node("QuantizeLinear", [x.name, scale, zero], [n]))
        g.one("DequantizeLinear", [n, scale, zero], F32, x.shape, 32, True)
    else:
        g.nodes.append(helper.make_node("Cast", [x.name], [n], to=t))
        g.one("Cast", [n], F32, x.shape, 32, True, to=TensorProto.FLOAT)


# ---- what quantisers write ----
def scale_of(g, n=None):
    return g.const(np.array(0.25, F32) if n is None else g.np.choice([0.125, 0.25, 0.5], size=n).astype(F32))


@recipe(2)
def qdq_matmul(g):
    x = g.pick((F32,), rank=(2, 3), ok=lambda v: v.exact and v.mag <= 16)
    if not x or not x.exact or not x.shape or x.mag > 16 or len(x.shape) < 2 or g.opset < 13:
        return
    k, n, to = x.shape[-1], g.r.choice((1, 3, 8, 17)), g.r.choice((U8, I8))
    xs, xz = scale_of(g), g.const(np.array(g.r.randint(0, 9), to))
    q = g.one("QuantizeLinear", [x, xs, xz], to, x.shape, 128)
    d = g.one("DequantizeLinear", [q, xs, xz], F32, x.shape, 64) if q else None
    w = g.const(g.np.integers(-100, 101, size=(k, n)).astype(I8))
    per = g.r.random() < 0.5
    dw = g.one("DequantizeLinear", [w, scale_of(g, n if per else None), g.const(np.zeros(n if per else (), I8))], F32, (k, n), 64, axis=1) if d else None
    y = g.one("MatMul", [d, dw], F32, x.shape[:-1] + (n,), 64 * max(k, 1), True) if dw else None
    if y and g.r.random() < 0.5:
        ys = g.const(np.array(4, F32))
        z = g.one("QuantizeLinear", [y, ys, xz], to, y.shape, 128)
        if z:
            g.one("DequantizeLinear", [z, ys, xz], F32, y.shape, 1024)


@recipe(2)
def qdq_conv(g):
    x = g.fresh(F32, (g.r.choice((1, 2)), g.r.choice((1, 3, 4, 8)), g.r.choice((3, 5, 8)), g.r.choice((3, 4, 7))))
    to, k, m = g.r.choice((U8, I8)), g.r.choice((1, 3)), g.r.choice((1, 4, 7, 16))
    c = x.shape[1]
    pads = [g.r.randint(0, k // 2)] * 4
    out = [d + 2 * pads[0] - k + 1 for d in x.shape[2:]]
    xs, xz = scale_of(g), g.const(np.array(g.r.randint(0, 9), to))
    w = g.np.integers(-100, 101, size=(m, c, k, k)).astype(I8)
    shape, mag = (x.shape[0], m) + tuple(out), 64.0 * c * k * k
    q = g.one("QuantizeLinear", [x, xs, xz], to, x.shape, 128)
    if not q:
        return
    kind = g.r.choice(("qdq", "linear", "integer"))
    if kind == "qdq" and g.opset >= 13:
        per = g.r.random() < 0.5
        d = g.one("DequantizeLinear", [q, xs, xz], F32, x.shape, 64)
        dw = g.one("DequantizeLinear", [g.const(w), scale_of(g, m if per else None), g.const(np.zeros(m if per else (), I8))], F32, w.shape, 64, axis=0)
        y = g.one("Conv", [d, dw], F32, shape, mag, True, pads=pads) if d and dw else None
        y = g.one("Relu", [y], F32, shape, mag, True) if y and g.r.random() < 0.5 else y
        ys = g.const(np.array(8, F32))
        z = g.one("QuantizeLinear", [y, ys, xz], to, shape, 128) if y else None
        if z:
            g.one("DequantizeLinear", [z, ys, xz], F32, shape, 2048)
    elif kind == "linear":
        bias = [g.const(g.np.integers(-50, 51, size=m).astype(I32))] if g.r.random() < 0.5 else []
        g.one("QLinearConv", [q, xs, xz, g.const(w), scale_of(g), g.const(np.array(0, I8)), g.const(np.array(8, F32)), xz] + bias, to, shape, 128, pads=pads)
    else:
        u = g.const(w.astype(I16).clip(0, 100).astype(U8))
        g.one("ConvInteger", [q, u, xz, g.const(np.array(2, U8))], I32, shape, mag * 8, pads=pads) if to == U8 else None


@recipe(1)
def qlinear_matmul(g):
    m, k, n, t = g.r.choice((1, 3, 5)), g.r.choice((1, 4, 7, 16, 33)), g.r.choice((1, 3, 8)), g.r.choice((U8, I8))
    a, b = g.fresh(t, (m, k)), g.const(g.np.integers(-16, 17, size=(k, n)).astype(I8))
    z = g.const(np.array(3, t))
    g.one("QLinearMatMul", [a, scale_of(g), z, b, scale_of(g), g.const(np.array(1, I8)), g.const(np.array(4, F32)), z], t, (m, n), 128)


@recipe(1)
def dynamic_quantize(g):
    x = g.pick((F32,), ok=lambda v: v.exact and v.shape and 0 not in v.shape)
    if x and x.exact and x.shape and 0 not in x.shape:
        y = g.emit("DynamicQuantizeLinear", [x], [(U8, x.shape, 255, False), (F32, (), 1, False), (U8, (), 255, False)])
        if y and len(x.shape) == 2 and g.r.random() < 0.6:
            w = g.const(g.np.integers(-20, 21, size=(x.shape[1], g.r.choice((1, 4, 8)))).astype(I8))
            g.one("MatMulInteger", [y[0], w, y[2]], I32, (x.shape[0], numpy_helper.to_array(g.inits[-1]).shape[1] if w == g.inits[-1].name else 1), 1) \
                if g.inits and w == g.inits[-1].name else None


# ---- windows, samples, transforms ----
@recipe(1)
def lp(g):
    x = g.pick((F32,), rank=(3, 4), ok=lambda v: 0 not in v.shape and v.mag < 64)
    if not x or 0 in x.shape or x.mag >= 64 or len(x.shape) < 3:
        return
    kind = g.r.choice(("GlobalLpPool", "LpNormalization", "MeanVarianceNormalization", "LpPool"))
    if kind == "GlobalLpPool":
        g.one(kind, [x], F32, x.shape[:2] + (1,) * (len(x.shape) - 2), 64 * x.mag, False, p=g.r.choice((1, 2)))
    elif kind == "LpPool":
        k = [min(2, d) for d in x.shape[2:]]
        g.one(kind, [x], F32, x.shape[:2] + tuple(d - e + 1 for d, e in zip(x.shape[2:], k)), 8 * x.mag, False, kernel_shape=k, p=g.r.choice((1, 2)))
    elif kind == "LpNormalization":
        y = g.one("Abs", [x], F32, x.shape, x.mag)
        z = g.one("Add", [y, g.const(np.array(0.5, F32))], F32, x.shape, x.mag + 1) if y else None
        if z:
            g.one(kind, [z], F32, x.shape, 1, False, axis=g.axis(x), p=g.r.choice((1, 2)))
    elif g.opset >= 13 and len(x.shape) == 4 and numel((x.shape[0],) + x.shape[2:]) > 3:
        g.one("InstanceNormalization", [x, g.fresh(F32, x.shape[1:2], as_const=True), g.fresh(F32, x.shape[1:2], as_const=True)], F32, x.shape, 64, False,
              epsilon=0.1)


@recipe(1)
def sample(g):
    x = g.fresh(F32, (g.r.choice((1, 2)), g.r.choice((1, 3)), g.r.choice((2, 4, 5)), g.r.choice((3, 5))))
    kind = g.r.choice(("grid", "roi", "crop", "col2im", "deform"))
    if kind == "grid" and g.opset >= 16:
        grid = g.const((g.np.integers(-9, 10, size=(x.shape[0], 3, 2, 2)) / 8).astype(F32))
        modes = ("bilinear", "nearest", "bicubic") if g.opset < 20 else ("linear", "nearest", "cubic")
        mode = modes[g.r.choice((0, 2))]
        g.one("GridSample", [x, grid], F32, x.shape[:2] + (3, 2), 16, False, mode=mode, padding_mode=g.r.choice(("zeros", "border", "reflection")),
              align_corners=g.r.randint(0, 1))
    elif kind == "roi" and g.opset >= 16:
        rois = g.const(np.array([[0, 0, 2, 2], [0.5, 1, 2.5, 1.75]], F32))
        g.one("RoiAlign", [x, rois, g.ints(0, x.shape[0] - 1)], F32, (2, x.shape[1], 2, 2), 4, False, output_height=2, output_width=2,
              sampling_ratio=2, spatial_scale=1.0, coordinate_transformation_mode=g.r.choice(("half_pixel", "output_half_pixel")))
    elif kind == "crop" and g.opset >= 18:
        g.one("CenterCropPad", [x, g.ints(3, 6)], F32, x.shape[:2] + (3, 6), x.mag, x.exact, axes=[2, 3])
    elif kind == "col2im" and g.opset >= 18:
        y = g.fresh(F32, (1, 2 * 4, 9))
        g.one("Col2Im", [y, g.ints(4, 4), g.ints(2, 2)], F32, (1, 2, 4, 4), 16, False)
    elif kind == "deform" and g.opset >= 19:
        w, off = g.fresh(F32, (2, x.shape[1], 2, 2), as_const=True), None
        out = [d - 1 for d in x.shape[2:]]
        off = g.const((g.np.integers(-4, 5, size=(x.shape[0], 8, out[0], out[1])) / 8).astype(F32))
        g.one("DeformConv", [x, w, off], F32, (x.shape[0], 2) + tuple(out), 64, False, kernel_shape=[2, 2])


@recipe(1)
def transform(g):
    n = g.r.choice((1, 4, 5, 8, 12))
    if g.opset < 17:
        return
    if g.r.random() < 0.3:
        op = g.r.choice(("HannWindow", "HammingWindow", "BlackmanWindow"))
        g.one(op, [g.const(np.array(max(n, 4), np.int64))], F32, (max(n, 4),), 1, False, periodic=g.r.randint(0, 1))
        return
    x = g.fresh(F32, (g.r.choice((1, 2)), n, g.r.choice((1, 2))))
    x.known = (2,)
    one_sided = x.shape[2] == 1 and g.r.random() < 0.5
    attrs = {"onesided": int(one_sided), "inverse": int(not one_sided and g.r.random() < 0.5)}
    if g.opset < 20:
        g.one("DFT", [x], F32, (x.shape[0], n // 2 + 1 if one_sided else n, 2), 64, False, axis=1, **attrs)
    else:
        g.one("DFT", [x, "", g.const(np.array(1, np.int64))], F32, (x.shape[0], n // 2 + 1 if one_sided else n, 2), 64, False, **attrs)


# ---- transformers ----
@recipe(2)
def attention(g):
    b, h, s, t, d = g.r.choice((1, 2)), g.r.choice((1, 2, 4)), g.r.choice((1, 3, 5)), g.r.choice((1, 4, 7)), g.r.choice((2, 4, 8))
    if g.opset >= 23 and g.r.random() < 0.6:
        kv = g.r.choice([i for i in (1, 2, 4) if h % i == 0])
        ins = [g.fresh(F32, (b, h, s, d)), g.fresh(F32, (b, kv, t, d)), g.fresh(F32, (b, kv, t, d))]
        if g.r.random() < 0.5:
            ins.append(g.fresh(F32, (s, t)) if g.r.random() < 0.5 else g.fresh(F32, (b, 1, s, t)))
        g.one("Attention", ins, F32, (b, h, s, d), 2, False, is_causal=int(g.r.random() < 0.3 and len(ins) == 3))
        return
    q, k, v = (g.fresh(F32, (b, n, h * d)) for n in (s, t, t))
    heads = []
    for x, n in ((q, s), (k, t), (v, t)):
        r = g.one("Reshape", [x, g.ints(0, -1, h, d)], F32, (b, n, h, d), x.mag)
        perm = [0, 2, 3, 1] if x is k else [0, 2, 1, 3]
        heads.append(g.one("Transpose", [r], F32, [(b, n, h, d)[p] for p in perm], x.mag, perm=perm))
    m = g.one("MatMul", heads[:2], F32, (b, h, s, t), 4 * d, False)
    m = g.one("Div", [m, g.const(np.array(np.sqrt(d), F32))], F32, (b, h, s, t), 4 * d, False)
    if g.r.random() < 0.5:
        mask = g.const(np.where(g.np.random((1, 1, s, t)) < 0.3, -1e4, 0).astype(F32))
        m = g.one("Add", [m, mask], F32, (b, h, s, t), 1e4, False)
    p = g.one("Softmax", [m], F32, (b, h, s, t), 1, False, axis=-1) if m else None
    o = g.one("MatMul", [p, heads[2]], F32, (b, h, s, d), 2, False) if p else None
    o = g.one("Transpose", [o], F32, (b, s, h, d), 2, False, perm=[0, 2, 1, 3]) if o else None
    if o:
        g.one("Reshape", [o, g.ints(0, 0, -1)], F32, (b, s, h * d), 2, False)


@recipe(1)
def rms(g):
    x = g.pick((F32,), rank=(2, 3), ok=lambda v: v.shape and v.shape[-1] > 1 and 0 not in v.shape)
    if not x or len(x.shape) < 2 or 0 in x.shape or x.shape[-1] < 2:
        return
    if g.opset >= 23 and g.r.random() < 0.5:
        g.one("RMSNormalization", [x, g.fresh(F32, x.shape[-1:], as_const=True)], F32, x.shape, 32, False, epsilon=0.01)
        return
    two = g.one("Mul", [x, x], F32, x.shape, x.mag ** 2, False)
    if not two:
        return
    m = g.one("ReduceMean", [two, g.ints(-1)], F32, x.shape[:-1] + (1,), two.mag, False) if g.opset >= 18 else g.one(
        "ReduceMean", [two], F32, x.shape[:-1] + (1,), two.mag, False, axes=[-1])
    e = g.one("Add", [m, g.const(np.array(0.01, F32))], F32, m.shape, two.mag + 1, False) if m else None
    r = g.one("Sqrt", [e], F32, m.shape, x.mag + 1, False) if e else None
    d = g.one("Div", [x, r], F32, x.shape, 10 * x.mag, False) if r else None
    if d:
        g.one("Mul", [d, g.fresh(F32, x.shape[-1:], as_const=True)], F32, x.shape, 20 * x.mag, False)


# ---- order, and lengths that only a run shows ----
@recipe(1)
def order(g):
    x = g.pick((F32, I64), rank=(1, 2), ok=lambda v: v.exact and 0 not in v.shape)
    if not x or not x.exact or not x.shape or 0 in x.shape:
        return
    kind = g.r.choice(("unique", "reverse", "size", "eye", "det"))
    if kind == "unique":
        y = g.emit("Unique", [x], [(x.dtype, (0,), x.mag, True), (I64, (0,), 64, True), (I64, (0,), 64, True), (I64, (0,), 64, True)], sorted=1)
        if y:
            for v in y:
                g.vals.remove(v)
            g.one("ReduceSum", [y[3]] + ([g.ints(0)] if g.opset >= 13 else []), I64, (1,), 64, **({} if g.opset >= 13 else {"axes": [0]}))
            g.one("ReduceMax", [y[0]], x.dtype, (1,), x.mag) if g.opset >= 18 or x.dtype == F32 else None
    elif kind == "reverse" and len(x.shape) == 2:
        lens = g.const(g.np.integers(1, x.shape[0] + 1, size=x.shape[1]).astype(np.int64))
        g.one("ReverseSequence", [x, lens], x.dtype, x.shape, x.mag, x.exact, time_axis=0, batch_axis=1)
    elif kind == "size":
        g.one("Size", [x], I64, (), 4096)
    elif kind == "eye" and len(x.shape) == 2:
        g.emit("EyeLike", [x], [(F32, x.shape, 1, True)], k=g.r.randint(-1, 1), dtype=TensorProto.FLOAT)
    elif kind == "det":
        g.one("Det", [g.fresh(F32, (2, 3, 3), as_const=True)], F32, (2,), 64, False)


@recipe(1)
def boxes(g):
    """NonMaxSuppression, its length made known by a sum."""
    n = g.r.choice((1, 4, 7))
    box = np.sort(g.np.integers(0, 33, size=(1, n, 2, 2)), axis=2).reshape(1, n, 4).astype(F32) + np.array([0, 0, 1, 1], F32)
    score = (g.np.permutation(n * 2).reshape(1, 2, n) / 16).astype(F32)
    y = g.emit("NonMaxSuppression", [g.const(box, False), g.const(score, False), g.ints(g.r.choice((1, 3))), g.const(np.array([0.4], F32)),
                                     g.const(np.array([0.1], F32))], [(I64, (0, 3), 64, True)])
    if y:
        g.vals.remove(y[0])
        g.one("ReduceSum", [y[0]] + ([g.ints(0)] if g.opset >= 13 else []), I64, (3,), 4096, keepdims=0, **({} if g.opset >= 13 else {"axes": [0]}))


@recipe(1)
def loss(g):
    c = g.r.choice((2, 5))
    x, n = g.fresh(F32, (3, c, 2)), "NegativeLogLikelihoodLoss"
    t = g.const(g.np.integers(0, c, size=(3, 2)).astype(np.int64))
    red = g.r.choice(("none", "mean", "sum"))
    if g.opset >= 13:
        g.one(g.r.choice((n, "SoftmaxCrossEntropyLoss")), [x, t], F32, (3, 2) if red == "none" else (), 64, False, reduction=red)
