"""Recipes of random models: what opsets 7 to 10 write as attributes."""

import numpy as np

from graph_base import F32, I64, recipe


@recipe(2, old="only")
def clip_by_attributes(g):
    x = g.pick((F32,))
    if x:
        g.one("Clip", [x], F32, x.shape, max(x.mag, 1), x.exact, **g.r.choice(({"min": -1.0, "max": 1.0}, {"min": -0.5}, {"max": 0.5}, {})))


@recipe(2, old="only")
def pad_by_attributes(g):
    x = g.pick((F32,), rank=(1, 2, 3, 4), ok=lambda v: 0 not in v.shape)
    if not x or not x.shape or 0 in x.shape:
        return
    mode = g.r.choice(("constant", "reflect", "edge"))
    lo, hi = ([g.r.randint(0, min(2, d - 1)) for d in x.shape] for _ in range(2))
    attrs = {"value": 1.5} if mode == "constant" and g.r.random() < 0.5 else {}
    g.one("Pad", [x], F32, [a + d + b for a, d, b in zip(lo, x.shape, hi)], max(x.mag, 1.5), x.exact, mode=mode, pads=lo + hi, **attrs)


@recipe(3, old="only")
def slice_by_attributes(g):
    x = g.pick(rank=(1, 2, 3, 4))
    if not x or not x.shape or g.opset >= 10:
        return
    axes = sorted(g.r.sample(range(len(x.shape)), g.r.randint(1, len(x.shape))))
    shape, starts, ends = list(x.shape), [], []
    for a in axes:
        n = x.shape[a]
        s, e = g.r.choice((0, 1, -1, -n, n + 2)), g.r.choice((n, -1, 2**31 - 1, n - 1))
        starts.append(s), ends.append(e)
        shape[a] = len(range(*slice(s, e).indices(n)))
    g.one("Slice", [x], x.dtype, shape, x.mag, x.exact, axes=axes, starts=starts, ends=ends)


@recipe(1, old="only")
def upsample(g):
    x = g.pick((F32,), rank=4, ok=lambda v: 0 not in v.shape)
    if x and len(x.shape) == 4 and 0 not in x.shape and g.opset in (7, 8, 9):
        k = g.r.choice((1, 2, 3))
        scales, shape = [1.0, 1.0, float(k), 2.0], x.shape[:2] + (x.shape[2] * k, x.shape[3] * 2)
        if g.opset == 9:
            g.one("Upsample", [x, g.const(np.array(scales, F32))], F32, shape, x.mag, x.exact, mode=g.r.choice(("nearest", "linear")))
        else:
            g.one("Upsample", [x], F32, shape, x.mag, x.exact, mode="nearest", scales=scales)


@recipe(1, old="only")
def topk_by_attribute(g):
    x = g.pick((F32,), ok=lambda v: v.exact and v.shape and 0 not in v.shape)
    if not x or not x.exact or not x.shape or 0 in x.shape:
        return
    a = g.axis(x, False)
    k = g.r.randint(1, x.shape[a])
    shape = tuple(k if i == a else d for i, d in enumerate(x.shape))
    if g.opset < 10:
        g.emit("TopK", [x], [(F32, shape, x.mag, True), (I64, shape, 8, True)], axis=a, k=k)
    else:
        g.emit("TopK", [x, g.ints(k)], [(F32, shape, x.mag, True), (I64, shape, 8, True)], axis=a)


@recipe(1, old="only")
def batch_norm_by_spatial(g):
    x = g.pick((F32,), rank=(2, 3, 4), ok=lambda v: 0 not in v.shape)
    if x and len(x.shape) > 1 and 0 not in x.shape:
        p = [g.const(g.array(F32, x.shape[1:2])) for _ in range(3)] + [g.const(np.abs(g.array(F32, x.shape[1:2])) + F32.type(0.5))]
        g.one("BatchNormalization", [x] + p, F32, x.shape, x.mag * 4 + 8, False, epsilon=0.01)
        g.one("Dropout", [x], F32, x.shape, x.mag, x.exact, ratio=0.5)
