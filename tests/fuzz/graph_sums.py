"""Recipes of random models: reductions and order, contractions, quantisation."""

import numpy as np

from graph_base import F32, F64, I32, I64, I8, U8, numel, recipe


# ---- reductions, order ----
@recipe(4, old=True)
def reduce(g):
    op = g.r.choice(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                     "ReduceLogSumExp"))
    x = g.pick((F32, F32, F32, F64, I64, I32) if op in ("ReduceSum", "ReduceMax", "ReduceMin") else (F32,), ok=lambda v: 0 not in v.shape)
    if not x or 0 in x.shape:
        return
    axes = sorted(g.r.sample(range(len(x.shape)), g.r.randint(0, len(x.shape))))
    keep = g.r.randint(0, 1)
    n = numel([x.shape[a] for a in axes]) if axes else numel(x.shape)
    mag = {"ReduceSum": n * x.mag, "ReduceMean": x.mag, "ReduceMax": x.mag, "ReduceMin": x.mag, "ReduceL1": n * x.mag,
           "ReduceL2": n * x.mag, "ReduceSumSquare": n * x.mag ** 2, "ReduceLogSumExp": x.mag + 10}.get(op)
    if mag is None:
        if x.mag > 2 or n > 8:
            return
        mag = 2.0 ** n
    exact = x.exact and op in ("ReduceSum", "ReduceMax", "ReduceMin") and mag < 256
    gone = axes or range(len(x.shape))
    shape = [1 if i in gone else d for i, d in enumerate(x.shape) if keep or i not in gone]
    said = [a - len(x.shape) if g.r.random() < 0.3 else a for a in axes]
    if not axes:
        g.one(op, [x], x.dtype, shape, mag, exact, keepdims=keep)
    elif g.opset >= 18 or (op == "ReduceSum" and g.opset >= 13):
        g.one(op, [x, g.ints(*said)], x.dtype, shape, mag, exact, keepdims=keep)
    else:
        g.one(op, [x], x.dtype, shape, mag, exact, keepdims=keep, axes=said)


@recipe(1)
def arg(g):
    x = g.pick((F32, I32), ok=lambda v: v.exact and v.shape and 0 not in v.shape)
    if not x or not x.shape or 0 in x.shape:
        return
    a, keep = g.axis(x), g.r.randint(0, 1)
    shape = [1 if i == a % len(x.shape) else d for i, d in enumerate(x.shape) if keep or i != a % len(x.shape)]
    last = {"select_last_index": g.r.randint(0, 1)} if g.opset >= 12 else {}
    g.one(g.r.choice(("ArgMax", "ArgMin")), [x], I64, shape, 8, axis=a, keepdims=keep, **last)


@recipe(1)
def topk(g):
    x = g.pick((F32,), ok=lambda v: v.exact and v.shape and 0 not in v.shape)
    if not x or not x.shape or 0 in x.shape:
        return
    a = g.axis(x)
    k = g.r.randint(1, x.shape[a])
    shape = [k if i == a % len(x.shape) else d for i, d in enumerate(x.shape)]
    g.emit("TopK", [x, g.ints(k)], [(F32, tuple(shape), x.mag, True), (I64, tuple(shape), 8, True)], axis=a, largest=g.r.randint(0, 1))


@recipe(2, old=True)
def softmax(g):
    x = g.pick((F32, F32, F64), ok=lambda v: v.shape and v.mag < 64 and 0 not in v.shape)
    if x and x.shape and 0 not in x.shape:
        op = g.r.choice(("Softmax", "Softmax", "LogSoftmax"))
        g.one(op, [x], x.dtype, x.shape, 1 if op == "Softmax" else 2 * x.mag + 10, False, axis=g.axis(x))


# ---- contractions ----
@recipe(4, old=True)
def matmul(g):
    x = g.pick((F32, F32, F32, F64, I32) if g.opset >= 9 else (F32, F64), rank=(1, 2, 3, 4), ok=lambda v: v.shape)
    if not x or not x.shape:
        return
    k, n = x.shape[-1], g.r.choice((1, 2, 3, 5, 8, 16))
    lead = [d if g.r.random() < 0.7 else 1 for d in x.shape[:-2]] if g.r.random() < 0.5 else []
    y = g.fresh(x.dtype, [k] if g.r.random() < 0.1 else lead + [k, n], as_const=g.r.random() < 0.6)
    try:
        shape = np.matmul(np.empty(x.shape), np.empty(y.shape)).shape
    except ValueError:
        return
    mag = x.mag * y.mag * max(1, k)
    g.one("MatMul", [x, y], x.dtype, shape, mag, x.exact and mag < 256)


@recipe(2, old=True)
def gemm(g):
    x = g.pick((F32,), rank=2)
    if not x or len(x.shape) != 2:
        return
    ta, tb, n = g.r.randint(0, 1), g.r.randint(0, 1), g.r.choice((1, 3, 4, 8, 17))
    m, k = x.shape[::-1] if ta else x.shape
    w = g.fresh(F32, (n, k) if tb else (k, n))
    c = g.fresh(F32, g.r.choice(((n,), (1, n), (m, 1), (m, n), (), (1,))))
    ins = [x, w] + ([c] if g.r.random() < 0.7 or g.opset < 11 else [])
    attrs = {"alpha": g.r.choice((1.0, 0.5, 2.0)), "beta": g.r.choice((1.0, 0.5))} if g.r.random() < 0.5 else {}
    g.one("Gemm", ins, F32, (m, n), 2 * x.mag * w.mag * max(1, k) + 2, False, transA=ta, transB=tb, **attrs)


def window(g, sizes, transposed=False):
    k = [g.r.choice((1, 2, 3, 3)) for _ in sizes]
    s = [g.r.choice((1, 1, 2, 3)) for _ in sizes]
    d = [g.r.choice((1, 1, 1, 2)) for _ in sizes]
    lo = [g.r.randint(0, min(2, (x - 1) * y)) for x, y in zip(k, d)]
    hi = [g.r.randint(0, min(2, (x - 1) * y)) for x, y in zip(k, d)]
    return k, s, d, lo, hi


def window_out(n, k, s, d, lo, hi, ceil=False):
    span = n + lo + hi - (d * (k - 1) + 1)
    return (-(-span // s) if ceil else span // s) + 1 if span >= 0 else 0


def image(g, most=2):
    rank = g.r.choice((1, 2, 2, 2, 3)[:most + 2])
    return g.pick((F32,), rank=rank + 2, ok=lambda v: 0 not in v.shape and v.shape[1] <= 16,
                  make=lambda: g.fresh(F32, [g.r.choice((1, 2)), g.r.choice((1, 2, 3, 4, 8))] + [g.r.choice((3, 4, 5, 7, 9)) for _ in range(rank)]))


@recipe(4, old=True)
def conv(g):
    x = image(g)
    if not x or len(x.shape) < 3 or 0 in x.shape:
        return
    c, sizes = x.shape[1], x.shape[2:]
    k, s, d, lo, hi = window(g, sizes)
    group = g.r.choice([i for i in (1, 1, 2, c) if c % i == 0])
    m = group * g.r.choice((1, 2, 3, 4, 8) if group < 4 else (1, 2))
    attrs = {}
    if g.r.random() < 0.25:
        attrs["auto_pad"] = g.r.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        d = [1] * len(k)
        out = [-(-n // t) if attrs["auto_pad"] != "VALID" else window_out(n, kk, t, 1, 0, 0) for n, kk, t in zip(sizes, k, s)]
    else:
        attrs["pads"] = lo + hi
        out = [window_out(*a) for a in zip(sizes, k, s, d, lo, hi)]
    if min(out) < 1:
        return
    w = g.fresh(F32, [m, c // group] + k, as_const=g.hostile or g.r.random() < 0.8)
    ins = [x, w] + ([g.fresh(F32, (m,), as_const=True)] if g.r.random() < 0.6 else [])
    mag = x.mag * w.mag * (c // group) * numel(k) + 2
    y = g.one("Conv", ins, F32, [x.shape[0], m] + out, mag, False, kernel_shape=k, strides=s, dilations=d, group=group, **attrs)
    if y and g.r.random() < 0.3:
        p = [g.const(g.array(F32, (m,))) for _ in range(3)] + [g.const(np.abs(g.array(F32, (m,))) + F32.type(0.5))]
        g.one("BatchNormalization", [y] + p, F32, y.shape, mag * 4 + 8, False)


@recipe(1, old=True)
def conv_transpose(g):
    x = image(g, 1)
    if not x or len(x.shape) < 3 or 0 in x.shape:
        return
    c, sizes = x.shape[1], x.shape[2:]
    k, s, d, lo, hi = window(g, sizes)
    more = [g.r.randint(0, t - 1) for t in s]
    group = g.r.choice([i for i in (1, 1, c) if c % i == 0])
    m = g.r.choice((1, 2, 4))
    out = [t * (n - 1) + p + e * (kk - 1) + 1 - a - b for n, kk, t, e, a, b, p in zip(sizes, k, s, d, lo, hi, more)]
    if min(out) < 1:
        return
    w = g.fresh(F32, [c, m] + k, as_const=True)
    g.one("ConvTranspose", [x, w], F32, [x.shape[0], m * group] + out, x.mag * w.mag * c * numel(k), False, kernel_shape=k, strides=s,
          dilations=d, pads=lo + hi, output_padding=more, group=group)


@recipe(2, old=True)
def pool(g):
    x = image(g)
    if not x or len(x.shape) < 3 or 0 in x.shape:
        return
    if g.r.random() < 0.25:
        g.one(g.r.choice(("GlobalAveragePool", "GlobalMaxPool")), [x], F32, x.shape[:2] + (1,) * (len(x.shape) - 2), x.mag, False)
        return
    op = g.r.choice(("MaxPool", "AveragePool"))
    k, s, d, lo, hi = window(g, x.shape[2:])
    lo, hi = [min(a, kk - 1) for a, kk in zip(lo, k)], [min(a, kk - 1) for a, kk in zip(hi, k)]
    if op == "AveragePool":
        d = [1] * len(k)
    out = [window_out(*a) for a in zip(x.shape[2:], k, s, d, lo, hi)]
    if min(out) < 1:
        return
    lo, hi = [0 if e > 1 else a for a, e in zip(lo, d)], [0 if e > 1 else a for a, e in zip(hi, d)] # windows of padding alone are open
    if g.opset < 10:
        d = [1] * len(d)
    if g.opset < 10 or max(d) > 1:
        out = [window_out(*a) for a in zip(x.shape[2:], k, s, d, lo, hi)]
    if min(out) < 1:
        return
    attrs = ({"dilations": d} if g.opset >= 10 else {}) if op == "MaxPool" else {"count_include_pad": g.r.randint(0, 1)}
    g.one(op, [x], F32, list(x.shape[:2]) + out, x.mag, x.exact and op == "MaxPool", kernel_shape=k, strides=s, pads=lo + hi, **attrs)


@recipe(2, old=True)
def norm(g):
    x = g.pick((F32,), rank=(2, 3, 4), ok=lambda v: 0 not in v.shape and v.mag < 64)
    if not x or len(x.shape) < 2 or 0 in x.shape:
        return
    c = x.shape[1]
    kind = g.r.choice(("layer", "instance", "lrn", "spelled", "group"))
    if kind == "layer" and g.opset >= 17 and x.shape[-1] > 1:
        a = g.r.randint(1, len(x.shape) - 1)
        rest = x.shape[a:]
        ins = [x, g.fresh(F32, rest, as_const=True)] + ([g.fresh(F32, rest, as_const=True)] if g.r.random() < 0.7 else [])
        g.one("LayerNormalization", ins, F32, x.shape, 2.0 * numel(rest) + 2, False, axis=a, epsilon=1e-2)
    elif kind == "instance" and len(x.shape) > 2:
        g.one("InstanceNormalization", [x, g.fresh(F32, (c,), as_const=True), g.fresh(F32, (c,), as_const=True)], F32, x.shape,
              2.0 * numel(x.shape[2:]) + 2, False, epsilon=1e-2)
    elif kind == "lrn" and len(x.shape) == 4:
        g.one("LRN", [x], F32, x.shape, x.mag, False, size=g.r.choice((1, 3, 5)))
    elif kind == "group" and g.opset >= 21 and len(x.shape) > 2:
        groups = g.r.choice([i for i in range(1, c + 1) if c % i == 0])
        g.one("GroupNormalization", [x, g.fresh(F32, (c,), as_const=True), g.fresh(F32, (c,), as_const=True)], F32, x.shape, 128, False,
              num_groups=groups, epsilon=1e-2)
    elif kind == "spelled":
        last = [len(x.shape) - 1]
        red = (lambda v: g.one("ReduceMean", [v, g.ints(*last)], F32, v.shape[:-1] + (1,), v.mag, False)) if g.opset >= 18 else (
            lambda v: g.one("ReduceMean", [v], F32, v.shape[:-1] + (1,), v.mag, False, axes=last))
        m = red(x)
        dv = g.one("Sub", [x, m], F32, x.shape, 2 * x.mag, False)
        sq = g.one("Mul", [dv, dv], F32, x.shape, 4 * x.mag ** 2, False) if dv else None
        var = red(sq) if sq else None
        if var:
            e = g.one("Add", [var, g.const(np.array(0.01, F32))], F32, var.shape, var.mag + 1, False)
            sd = g.one("Sqrt", [e], F32, var.shape, var.mag + 1, False) if e else None
            if sd:
                g.one("Div", [dv, sd], F32, x.shape, 2 * x.mag * 10, False)


@recipe(1)
def resize(g):
    x = g.pick((F32,), rank=(3, 4), ok=lambda v: 0 not in v.shape, make=lambda: g.fresh(F32, (1, 2, g.r.choice((3, 4, 6)), g.r.choice((2, 4, 5)))))
    if not x or len(x.shape) not in (3, 4) or 0 in x.shape:
        return
    mode = g.r.choice(("nearest", "linear", "cubic") if len(x.shape) == 4 else ("nearest", "linear"))
    sizes = list(x.shape[:2]) + [g.r.randint(1, 2 * d + 1) for d in x.shape[2:]]
    attrs = {"mode": mode, "coordinate_transformation_mode": g.r.choice(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))}
    if mode == "nearest":
        attrs["coordinate_transformation_mode"] = "asymmetric"
        attrs["nearest_mode"] = "floor"
        sizes = list(x.shape[:2]) + [d * g.r.choice((1, 2, 4)) for d in x.shape[2:]]
    none = "" if g.opset >= 13 else g.const(np.zeros(0, F32), attr=False)
    g.one("Resize", [x, none, none, g.ints(*sizes)], F32, sizes, 3 * x.mag, x.exact and mode == "nearest", **attrs)


@recipe(1)
def einsum(g):
    eq, shapes = g.r.choice((("ij,jk->ik", ((2, 3), (3, 4))), ("bij,bjk->bik", ((2, 3, 4), (2, 4, 3))), ("ij->ji", ((3, 4),)),
                             ("bhid,bhjd->bhij", ((1, 2, 3, 4), (1, 2, 5, 4))), ("ii->i", ((3, 3),)), ("i,j->ij", ((3,), (4,))),
                             ("ijk,k->ij", ((2, 3, 4), (4,))), ("...ij->...", ((2, 3, 4),)), ("bi,bj,bk->bijk", ((2, 3), (2, 2), (2, 4)))))
    if g.opset < 12:
        return
    xs = [g.pick((F32,), ok=lambda v, s=s: v.shape == s, make=lambda s=s: g.fresh(F32, s)) for s in shapes]
    if all(x and x.shape == s for x, s in zip(xs, shapes)):
        shape = np.einsum(eq, *[np.empty(s) for s in shapes]).shape
        g.one("Einsum", xs, F32, shape, float(np.prod([x.mag for x in xs])) * 16, False, equation=eq)


@recipe(1, old=True)
def recurrent(g):
    s, b, i, h = g.r.randint(1, 4), g.r.randint(1, 3), g.r.randint(1, 4), g.r.choice((1, 2, 3, 5))
    op = g.r.choice(("LSTM", "GRU", "RNN"))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    way = g.r.choice(("forward", "reverse", "bidirectional"))
    d = 2 if way == "bidirectional" else 1
    x = g.pick((F32,), ok=lambda v: v.shape == (s, b, i), make=lambda: g.fresh(F32, (s, b, i)))
    if not x or x.shape != (s, b, i):
        return
    ins = [x, g.fresh(F32, (d, gates * h, i), as_const=True), g.fresh(F32, (d, gates * h, h), as_const=True)]
    if g.r.random() < 0.7:
        ins.append(g.fresh(F32, (d, 2 * gates * h), as_const=True))
        if g.r.random() < 0.4:
            ins.append(g.const(np.array([g.r.randint(1, s) for _ in range(b)], np.int32)))
    attrs = {"linear_before_reset": g.r.randint(0, 1)} if op == "GRU" else {}
    outs = [(F32, (s, d, b, h), 1, False), (F32, (d, b, h), 1, False)] + ([(F32, (d, b, h), 8, False)] if op == "LSTM" else [])
    g.emit(op, ins, outs, hidden_size=h, direction=way, **attrs)


# ---- quantisation ----
@recipe(1)
def quantize(g):
    x = g.pick((F32,), ok=lambda v: v.exact and v.mag < 64)
    if not x:
        return
    to = g.r.choice((U8, I8))
    scale, zero = g.const(np.array(0.25, F32)), g.const(np.array(g.r.randint(0, 9), to))
    q = g.one("QuantizeLinear", [x, scale, zero], to, x.shape, 128)
    if q and g.r.random() < 0.8:
        g.one("DequantizeLinear", [q, scale, zero], F32, x.shape, 64)


@recipe(1)
def matmul_integer(g):
    x = g.pick((U8, I8), rank=2, make=lambda: g.fresh(U8, (g.r.randint(1, 5), g.r.choice((1, 4, 7, 16)))))
    if x and len(x.shape) == 2:
        n = g.r.randint(1, 9)
        w = g.const(g.np.integers(-100, 100, size=(x.shape[1], n)).astype(I8))
        ins = [x, w] + ([g.const(np.array(3, x.dtype)), g.const(np.array(-2, I8))] if g.r.random() < 0.6 else [])
        g.one("MatMulInteger", ins, I32, (x.shape[0], n), 1)
