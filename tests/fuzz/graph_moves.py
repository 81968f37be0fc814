"""Recipes of random models: ops that move elements, and shapes that are data."""

import numpy as np
from onnx import TensorProto, helper

from graph_base import BOOL, F32, F64, I64, numel, recipe


@recipe(3, old=True)
def reshape(g):
    x = g.pick()
    if not x:
        return
    n, dims = numel(x.shape), []
    if n == 0:
        return
    while n > 1 and len(dims) < 4:
        f = g.r.choice([d for d in range(1, n + 1) if n % d == 0])
        dims.append(f)
        n //= f
    dims = dims + [n] if n > 1 else dims
    if g.r.random() < 0.3:
        dims.insert(g.r.randint(0, len(dims)), 1)
    spec = list(dims)
    if spec and g.r.random() < 0.5:
        spec[g.r.randrange(len(spec))] = -1
    for i in range(min(len(spec), len(x.shape))):
        if spec[i] > 0 and dims[i] == x.shape[i] and g.r.random() < 0.5:
            spec[i] = 0
    g.one("Reshape", [x, g.ints(*spec)], x.dtype, dims, x.mag, x.exact)


@recipe(3, old=True)
def transpose(g):
    x = g.pick(rank=(1, 2, 3, 4, 5))
    if x and x.shape:
        perm = list(range(len(x.shape)))
        g.r.shuffle(perm)
        if g.r.random() < 0.2:
            perm = perm[::-1]
            perm.sort(reverse=True)
            g.one("Transpose", [x], x.dtype, x.shape[::-1], x.mag, x.exact)
        else:
            g.one("Transpose", [x], x.dtype, [x.shape[p] for p in perm], x.mag, x.exact, perm=perm)


@recipe(1, old=True)
def flatten(g):
    x = g.pick()
    if x:
        a = g.r.randint(0, len(x.shape))
        g.one("Flatten", [x], x.dtype, (numel(x.shape[:a]), numel(x.shape[a:])), x.mag, x.exact, axis=a)


def with_axes(g, op, x, axes, shape, **attrs):
    ins, extra = [x], dict(attrs)
    if g.opset >= 13:
        ins.append(g.ints(*axes))
    else:
        extra["axes"] = list(axes)
    return g.one(op, ins, x.dtype, shape, x.mag, x.exact, **extra)


@recipe(2, old=True)
def unsqueeze(g):
    x = g.pick(rank=(0, 1, 2, 3, 4))
    if not x or len(x.shape) > 4:
        return
    axes = sorted(g.r.sample(range(len(x.shape) + 1), 1))
    shape = list(x.shape)
    shape.insert(axes[0], 1)
    with_axes(g, "Unsqueeze", x, [axes[0] - len(shape)] if g.r.random() < 0.3 else axes, shape)


@recipe(1, old=True)
def squeeze(g):
    x = g.pick(ok=lambda v: 1 in v.shape)
    if not x:
        return
    ones = [i for i, d in enumerate(x.shape) if d == 1]
    if not ones:
        return
    axes = sorted(g.r.sample(ones, g.r.randint(1, len(ones))))
    with_axes(g, "Squeeze", x, axes, [d for i, d in enumerate(x.shape) if i not in axes])


@recipe(3)
def slicing(g):
    x = g.pick(rank=(1, 2, 3, 4, 5))
    if not x or not x.shape:
        return
    axes = g.r.sample(range(len(x.shape)), g.r.randint(1, len(x.shape)))
    index, starts, ends, steps = [slice(None)] * len(x.shape), [], [], []
    for a in axes:
        n, step = x.shape[a], g.r.choice((1, 1, 1, 2, -1, -2, 3))
        s = g.r.choice((0, 1, -1, n - 1, n, -n, n + 2, -n - 2, g.r.randint(-n - 1, n + 1)))
        e = g.r.choice((n, -1, 0, n - 1, 2**31 - 1, 2**63 - 1, -2**63, -n - 1, g.r.randint(-n - 1, n + 1)))
        starts.append(s), ends.append(e), steps.append(step)
        if step < 0 and e >= n:
            ends[-1] = e = max(n - 1, 0) # ONNX Runtime takes INT_MAX for "all the way" here (its #11107)
        first = s + n if s < 0 else s
        lo = max(0, min(n - 1, first)) if step < 0 else max(0, min(n, first))
        end = e + n if e < 0 else e
        hi = max(-1, min(n - 1, end)) if step < 0 else max(0, min(n, end))
        index[a] = min(n, len(range(lo, hi, step)))
    shape = [i if isinstance(i, int) else d for i, d in zip(index, x.shape)]
    ins = [x, g.ints(*starts), g.ints(*ends), g.ints(*(a - len(x.shape) if g.r.random() < 0.2 else a for a in axes))]
    if steps != [1] * len(steps) or g.r.random() < 0.5:
        ins.append(g.ints(*steps))
    g.one("Slice", ins, x.dtype, shape, x.mag, x.exact)


@recipe(3, old=True)
def concat(g):
    x = g.pick(rank=(1, 2, 3, 4, 5))
    if not x or not x.shape:
        return
    a = g.axis(x)
    parts, total = [x], x.shape[a]
    for _ in range(g.r.randint(1, 3)):
        y = g.pick((x.dtype,), ok=lambda v: len(v.shape) == len(x.shape) and all(
            d == e or i == a % len(x.shape) for i, (d, e) in enumerate(zip(v.shape, x.shape))),
            make=lambda: g.fresh(x.dtype, [d if i != a % len(x.shape) else g.r.choice((1, 2, 3)) for i, d in enumerate(x.shape)]))
        if y:
            parts.append(y)
            total += y.shape[a]
    shape = list(x.shape)
    shape[a] = total
    g.r.shuffle(parts)
    g.one("Concat", parts, x.dtype, shape, max(p.mag for p in parts), all(p.exact for p in parts), axis=a)


@recipe(2, old=True)
def split(g):
    x = g.pick(rank=(1, 2, 3, 4), ok=lambda v: max(v.shape, default=0) > 1)
    if not x or max(x.shape, default=0) < 2:
        return
    a = x.shape.index(max(x.shape))
    cut = g.r.randint(1, x.shape[a] - 1)
    lens = [cut, x.shape[a] - cut]
    shapes = [tuple(n if i == a else d for i, d in enumerate(x.shape)) for n in lens]
    outs = [(x.dtype, s, x.mag, x.exact) for s in shapes]
    if g.opset >= 13:
        g.emit("Split", [x, g.ints(*lens)], outs, axis=a)
    else:
        g.emit("Split", [x], outs, axis=a, split=lens)


@recipe(2)
def pad(g):
    x = g.pick((F32, I64, F64), rank=(1, 2, 3, 4))
    if not x or not x.shape or 0 in x.shape:
        return
    mode = g.r.choice(("constant", "constant", "reflect", "edge"))
    lo = [g.r.randint(-1 if mode == "constant" and d > 2 else 0, min(2, d - 1)) for d in x.shape]
    hi = [g.r.randint(-1 if mode == "constant" and d > 3 else 0, min(2, d - 1)) for d in x.shape]
    shape = [d + a + b for d, a, b in zip(x.shape, lo, hi)]
    ins = [x, g.ints(*lo, *hi)]
    if mode == "constant" and g.r.random() < 0.5:
        ins.append(g.const(np.array(1, x.dtype)))
    g.one("Pad", ins, x.dtype, shape, max(x.mag, 1), x.exact, mode=mode)


@recipe(2)
def expand(g):
    x = g.pick(rank=(0, 1, 2, 3))
    if not x:
        return
    shape = [d if d != 1 else g.r.choice((1, 2, 3)) for d in x.shape]
    spec = [d if g.r.random() < 0.6 else (1 if d == e else d) for d, e in zip(shape, x.shape)]
    lead = g.shape(g.r.randint(0, 2))
    g.one("Expand", [x, g.ints(*lead, *spec)], x.dtype, list(lead) + shape, x.mag, x.exact)


@recipe(1, old=True)
def tile(g):
    x = g.pick((F32, I64), rank=(1, 2, 3))
    if x and x.shape:
        k = [g.r.choice((1, 2, 3)) for _ in x.shape]
        g.one("Tile", [x, g.ints(*k)], x.dtype, [d * e for d, e in zip(x.shape, k)], x.mag, x.exact)


@recipe(3, old=True)
def gather(g):
    x = g.pick(rank=(1, 2, 3, 4))
    if not x or not x.shape:
        return
    a = g.axis(x)
    n = x.shape[a]
    if n == 0:
        return
    at = g.np.integers(-n, n, size=g.shape(g.r.choice((0, 1, 2))))
    index = g.const(at.astype(g.r.choice((np.int64, np.int32))))
    k = a % len(x.shape)
    g.one("Gather", [x, index], x.dtype, x.shape[:k] + at.shape + x.shape[k + 1:], x.mag, x.exact, axis=a)


@recipe(1)
def gather_elements(g):
    x = g.pick((F32, I64), rank=(1, 2, 3), ok=lambda v: 0 not in v.shape)
    if x and x.shape and 0 not in x.shape:
        a = g.axis(x)
        shape = [g.r.randint(1, d) if i != a % len(x.shape) else g.r.randint(1, 4) for i, d in enumerate(x.shape)]
        at = g.np.integers(-x.shape[a], x.shape[a], size=shape)
        g.one("GatherElements", [x, g.const(at)], x.dtype, shape, x.mag, x.exact, axis=a)


@recipe(1)
def gather_nd(g):
    x = g.pick((F32, I64, BOOL), rank=(1, 2, 3), ok=lambda v: 0 not in v.shape)
    if x and x.shape and 0 not in x.shape:
        k, m = g.r.randint(1, len(x.shape)), g.r.randint(1, 4)
        at = np.stack([g.np.integers(-d, d, size=m) for d in x.shape[:k]], -1)
        g.one("GatherND", [x, g.const(at)], x.dtype, (m,) + x.shape[k:], x.mag, x.exact)


@recipe(1)
def scatter(g):
    x = g.pick((F32, I64), rank=(1, 2, 3), ok=lambda v: 0 not in v.shape)
    if not x or not x.shape or 0 in x.shape:
        return
    a = g.axis(x)
    k = a % len(x.shape)
    m = g.r.randint(1, x.shape[k])
    at = np.stack([g.np.permutation(x.shape[k])[:m] for _ in range(numel(x.shape) // x.shape[k])], -1)
    rest = [d for i, d in enumerate(x.shape) if i != k]
    at = np.moveaxis(at.reshape([m] + rest), 0, k)
    u = g.fresh(x.dtype, at.shape)
    attrs = {"reduction": g.r.choice(("none", "add", "mul", "max", "min"))} if g.opset >= 18 else {}
    if attrs.get("reduction") == "none":
        attrs = {}
    g.one("ScatterElements", [x, g.const(at.astype(np.int64)), u], x.dtype, x.shape, x.mag * 2 + 2 if attrs else max(x.mag, u.mag),
          x.exact, axis=a, **attrs)


@recipe(1)
def scatter_nd(g):
    x = g.pick((F32, I64), rank=(1, 2, 3), ok=lambda v: 0 not in v.shape)
    if x and x.shape and 0 not in x.shape:
        m = g.r.randint(1, x.shape[0])
        at = g.np.permutation(x.shape[0])[:m].reshape(m, 1).astype(np.int64)
        u = g.fresh(x.dtype, (m,) + x.shape[1:])
        g.one("ScatterND", [x, g.const(at), u], x.dtype, x.shape, max(x.mag, u.mag), x.exact)


@recipe(1, old=True)
def depth_space(g):
    x = g.pick((F32,), rank=4, ok=lambda v: v.shape[1] % 4 == 0 and v.shape[1], make=lambda: g.fresh(F32, (g.r.choice((1, 2)), 4 * g.r.choice((1, 2)), 2, g.r.choice((2, 4)))))
    if not x or 0 in x.shape or x.shape[1] % 4:
        return
    n, c, h, w = x.shape
    if g.r.random() < 0.5 or h % 2 or w % 2:
        g.one("DepthToSpace", [x], F32, (n, c // 4, h * 2, w * 2), x.mag, x.exact, blocksize=2,
              **({"mode": g.r.choice(("DCR", "CRD"))} if g.opset >= 11 else {}))
    else:
        g.one("SpaceToDepth", [x], F32, (n, c * 4, h // 2, w // 2), x.mag, x.exact, blocksize=2)


@recipe(1)
def trilu(g):
    x = g.pick((F32, I64), rank=(2, 3))
    if x and g.opset >= 14 and len(x.shape) >= 2:
        g.one("Trilu", [x, g.const(np.array(g.r.randint(-2, 2), np.int64))], x.dtype, x.shape, x.mag, x.exact, upper=g.r.randint(0, 1))


@recipe(1)
def cumsum(g):
    x = g.pick((F32, I64), rank=(1, 2, 3))
    if x and x.shape:
        a = g.axis(x)
        g.one("CumSum", [x, g.const(np.array(a, np.int64))], x.dtype, x.shape, x.mag * max(1, x.shape[a]), x.exact and x.mag < 32,
              exclusive=g.r.randint(0, 1), reverse=g.r.randint(0, 1))


@recipe(1)
def one_hot(g):
    x = g.pick((I64,), rank=(1, 2))
    if x and x.shape:
        n = g.r.randint(2, 6)
        a = g.r.randint(0, len(x.shape))
        g.one("OneHot", [x, g.const(np.array(n, np.int64)), g.const(np.array([0, 1], F32))], F32, x.shape[:a] + (n,) + x.shape[a:], 1, axis=a)


# ---- shapes as data ----
@recipe(2)
def through_shape(g):
    """x reshaped or expanded to what the Shape of another value says."""
    x = g.pick((F32, I64), rank=(1, 2, 3))
    if not x or not x.shape or 0 in x.shape:
        return
    s = g.one("Shape", [x], I64, (len(x.shape),), 64)
    kind = g.r.choice(("flat", "again", "like", "zeros"))
    if kind == "flat":
        first = g.one("Gather", [s, g.ints(0)], I64, (1,), 64)
        both = g.one("Concat", [first, g.ints(-1)], I64, (2,), 64, axis=0)
        g.one("Reshape", [x, both], x.dtype, (x.shape[0], numel(x.shape[1:])), x.mag, x.exact)
    elif kind == "again":
        flat = g.one("Reshape", [x, g.ints(-1)], x.dtype, (numel(x.shape),), x.mag, x.exact)
        g.one("Reshape", [flat, s], x.dtype, x.shape, x.mag, x.exact)
    elif kind == "like":
        g.one("Expand", [g.const(np.array(1, x.dtype)), s], x.dtype, x.shape, 1)
    else:
        g.one("ConstantOfShape", [s], F32, x.shape, 3, value=helper.make_tensor("v", TensorProto.FLOAT, [1], [3.0]))


@recipe(1)
def found_while_running(g):
    """Extents that only a run shows, made known again by a sum."""
    x = g.pick((F32, I64, BOOL), rank=(1, 2, 3), ok=lambda v: v.exact)
    if not x or not x.shape:
        return
    if g.r.random() < 0.5:
        at = g.emit("NonZero", [x], [(I64, (len(x.shape), 0), 64, True)])
        if at:
            g.vals.remove(at[0])
            g.one("ReduceSum", [at[0]] + ([g.ints(1)] if g.opset >= 13 else []), I64, (len(x.shape),), 4096, keepdims=0,
                  **({} if g.opset >= 13 else {"axes": [1]}))
    elif x.dtype == F32 and 0 not in x.shape:
        c = g.fresh(BOOL, (x.shape[0],))
        y = g.emit("Compress", [x, c], [(F32, (0,) + x.shape[1:], x.mag, x.exact)], axis=0)
        if y:
            g.vals.remove(y[0])
            g.one("ReduceSum", [y[0]] + ([g.ints(0)] if g.opset >= 13 else []), F32, x.shape[1:], x.mag * x.shape[0], False, keepdims=0,
                  **({} if g.opset >= 13 else {"axes": [0]}))
