"""Valid random ONNX models, shape first: every value's dtype and shape are known while the graph grows.

A value carries what decides whether three implementations can be asked to agree on it: how large it may be, and whether it is
exact (small multiples of 1/8 and what sums, products and moves of few of them give), so that rounding, comparing and sorting do
not turn on the last bit.
"""

import dataclasses
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, F64, F16 = np.dtype("float32"), np.dtype("float64"), np.dtype("float16")
I64, I32, I8, U8, BOOL = np.dtype("int64"), np.dtype("int32"), np.dtype("int8"), np.dtype("uint8"), np.dtype("bool")
FLOATS, INTS = (F32, F64, F16), (I64, I32)
MAX_ELEMS, MAX_RANK, MAX_SIZE = 4096, 5, 1e4


@dataclasses.dataclass
class Val:
    name: str
    dtype: np.dtype
    shape: tuple
    mag: float          # no element is larger
    exact: bool = True  # for floats; see above
    nonneg: bool = False


def numel(shape):
    return int(np.prod(shape, dtype=np.int64))


def onnx_type(dtype):
    return helper.np_dtype_to_tensor_dtype(dtype)


class Gen:
    """One graph. add_node() adds one random node; model() and feeds are what came of it."""

    def __init__(self, seed, hostile=False):
        self.r = random.Random(seed)
        self.np = np.random.default_rng(seed)
        self.opset = self.r.choice((11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22))
        self.hostile = hostile
        self.vals, self.nodes, self.inits, self.inputs, self.feeds = [], [], [], [], {}
        self.n_name = 0
        self.depth = 0

    # ---- values ----
    def name(self, what="v"):
        self.n_name += 1
        return f"{what}{self.n_name}"

    def array(self, dtype, shape, lo=-16, hi=16):
        if dtype in FLOATS:
            x = self.np.integers(lo, hi + 1, size=shape).astype(dtype) / dtype.type(8)
            return np.asarray(x, dtype)
        if dtype == BOOL:
            return self.np.integers(0, 2, size=shape).astype(bool)
        if dtype == U8:
            return self.np.integers(0, 17, size=shape).astype(U8)
        return self.np.integers(-8, 9, size=shape).astype(dtype)

    def bound(self, dtype):
        return 2.0 if dtype in FLOATS else 1.0 if dtype == BOOL else 16.0

    def const(self, x, attr=None):
        """An initializer, or now and then a Constant node; its name."""
        x = np.asarray(x)
        n = self.name("c")
        if attr if attr is not None else self.r.random() < 0.3:
            self.nodes.append(helper.make_node("Constant", [], [n], value=numpy_helper.from_array(x)))
        else:
            self.inits.append(numpy_helper.from_array(x, n))
        return n

    def ints(self, *x):
        return self.const(np.array(x, np.int64))

    def shape(self, rank=None):
        rank = self.r.choice((0, 1, 2, 2, 3, 3, 4, 4, 5)) if rank is None else rank
        return tuple(self.r.choice((1, 1, 2, 2, 3, 3, 4, 5, 7, 8) + ((0,) if self.r.random() < 0.03 else ())) for _ in range(rank))

    def fresh(self, dtype=None, shape=None, as_const=None):
        """A new input or initializer."""
        dtype = self.r.choice((F32,) * 7 + (F64, F16, I64, I32, BOOL, U8)) if dtype is None else dtype
        shape = self.shape() if shape is None else tuple(shape)
        x = self.array(dtype, shape)
        if as_const if as_const is not None else self.r.random() < 0.3 or self.depth > 0:
            v = Val(self.const(x), dtype, shape, self.bound(dtype))
        else:
            v = Val(self.name("x"), dtype, shape, self.bound(dtype))
            if self.hostile and dtype in FLOATS and x.size:
                flat = x.reshape(-1)
                for k in range(min(3, flat.size)):
                    flat[self.r.randrange(flat.size)] = self.r.choice((np.inf, -np.inf, np.nan, -0.0, 1e-40, 1e18 if dtype != F16 else 1e4))
            self.inputs.append(v)
            self.feeds[v.name] = x
        self.vals.append(v)
        return v

    def pick(self, dtypes=None, rank=None, ok=lambda v: True, make=None):
        """A value that fits, the younger the likelier; a new one where there is none."""
        found = [v for v in self.vals if (dtypes is None or v.dtype in dtypes) and
                 (rank is None or len(v.shape) in ((rank,) if isinstance(rank, int) else rank)) and ok(v)]
        if found and self.r.random() < 0.9:
            return found[-1 - min(int(self.r.expovariate(0.35)), len(found) - 1)]
        if make is None:
            dtype = self.r.choice(dtypes) if dtypes else None
            k = rank if rank is None or isinstance(rank, int) else self.r.choice(rank)
            v = self.fresh(dtype, self.shape(k))
            return v if ok(v) else None
        return make()

    def emit(self, op, ins, outs, **attrs):
        """outs: [(dtype, shape, mag, exact)]; the values."""
        made = [Val(self.name(), *o) for o in outs]
        if any(numel(v.shape) > MAX_ELEMS or len(v.shape) > MAX_RANK or v.mag > MAX_SIZE for v in made):
            return None
        self.nodes.append(helper.make_node(op, [i if isinstance(i, str) else i.name for i in ins], [v.name for v in made],
                                           name=self.name(op), **attrs))
        self.vals += made
        return made

    def one(self, op, ins, dtype, shape, mag, exact=True, **attrs):
        made = self.emit(op, ins, [(dtype, tuple(shape), mag, exact)], **attrs)
        return made[0] if made else None

    def like(self, v):
        """A value that broadcasts with v."""
        k = self.r.randint(0, len(v.shape))
        shape = tuple(d if self.r.random() < 0.75 else 1 for d in v.shape[k if self.r.random() < 0.4 else 0:])

        def fits(w):
            try:
                return numel(np.broadcast_shapes(v.shape, w.shape)) <= MAX_ELEMS
            except ValueError:
                return False
        return self.pick((v.dtype,), ok=fits) if self.r.random() < 0.5 else self.fresh(v.dtype, shape)

    def axis(self, v, negative=True):
        a = self.r.randrange(len(v.shape))
        return a - len(v.shape) if negative and self.r.random() < 0.3 else a

    # ---- the whole ----
    def grow(self, n_node):
        tries = 0
        while len([n for n in self.nodes if n.op_type != "Constant"]) < n_node and tries < 12 * n_node:
            tries += 1
            self.r.choice(RECIPES)(self)

    def model(self, symbolic=False):
        used = {i for n in self.nodes for i in n.input} | {i for n in self.nodes for a in n.attribute if a.HasField("g")
                                                           for m in a.g.node for i in m.input}
        made = {o for n in self.nodes if n.op_type != "Constant" for o in n.output}
        outs = [v for v in self.vals if v.name in made and (v.name not in used or self.r.random() < 0.15)]
        outs = outs or [v for v in self.vals if v.name in made]
        ins = [v for v in self.inputs if v.name in used]

        def info(v, dims=None):
            return helper.make_tensor_value_info(v.name, onnx_type(v.dtype), dims)

        def dims(v):
            return [f"{v.name}_{i}" if symbolic and self.r.random() < 0.5 else d for i, d in enumerate(v.shape)]

        g = helper.make_graph(self.nodes, "fuzz", [info(v, dims(v)) for v in ins],
                              [info(v, [f"{v.name}_o{i}" for i in range(len(v.shape))]) for v in outs], self.inits)
        m = helper.make_model(g, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8 if self.opset < 21 else 10)
        return m, {v.name: self.feeds[v.name] for v in ins}, [v.name for v in outs]


RECIPES = []


def recipe(weight=1):
    def note(f):
        RECIPES.extend([f] * weight)
        return f
    return note


# ---- pointwise ----
UNARY = {  # op: (opset, bound of the result from the operand's, exact stays)
    "Relu": (1, lambda m: m, True), "Neg": (1, lambda m: m, True), "Abs": (1, lambda m: m, True),
    "Sigmoid": (1, lambda m: 1, False), "Tanh": (1, lambda m: 1, False), "Erf": (9, lambda m: 1, False),
    "Softplus": (1, lambda m: m + 1, False), "Softsign": (1, lambda m: 1, False), "Elu": (1, lambda m: m + 1, False),
    "Selu": (1, lambda m: 2 * m + 2, False), "LeakyRelu": (1, lambda m: m, False), "HardSigmoid": (1, lambda m: 1, False),
    "HardSwish": (14, lambda m: m, False), "Mish": (18, lambda m: m, False), "Gelu": (20, lambda m: m, False),
    "Celu": (12, lambda m: m + 1, False), "Sin": (7, lambda m: 1, False), "Cos": (7, lambda m: 1, False),
    "Atan": (7, lambda m: 1.6, False), "Identity": (1, lambda m: m, True),
}


@recipe(5)
def unary(g):
    op = g.r.choice(list(UNARY))
    since, bound, exact = UNARY[op]
    only32 = op in ("Softplus", "Softsign", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "HardSwish", "Mish", "Gelu", "Celu", "Sin", "Cos", "Atan", "Erf")
    x = g.pick((F32,) if only32 else (F32, F32, F64, F16))
    if x and g.opset >= since:
        g.one(op, [x], x.dtype, x.shape, bound(x.mag), x.exact and exact)


@recipe(1)
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


@recipe(6)
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


@recipe(2)
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


@recipe(1)
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


@recipe(2)
def cast(g):
    x = g.pick(ok=lambda v: v.exact)
    if not x:
        return
    to = g.r.choice((F32, F64, F16, I64, I32, BOOL, U8, I8))
    if x.dtype in FLOATS and to in (U8, I8) or x.dtype in INTS + (I8,) and to == U8 or (x.mag > 100 and to in (I8, U8)):
        return # negative and large ones differ between implementations
    g.one("Cast", [x], to, x.shape, x.mag if to != BOOL else 1, x.mag < 256, to=onnx_type(to))


# ---- moving ----
@recipe(3)
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


@recipe(3)
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


@recipe(1)
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


@recipe(2)
def unsqueeze(g):
    x = g.pick(rank=(0, 1, 2, 3, 4))
    if not x or len(x.shape) > 4:
        return
    axes = sorted(g.r.sample(range(len(x.shape) + 1), 1))
    shape = list(x.shape)
    shape.insert(axes[0], 1)
    with_axes(g, "Unsqueeze", x, [axes[0] - len(shape)] if g.r.random() < 0.3 else axes, shape)


@recipe(1)
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


@recipe(3)
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


@recipe(2)
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


@recipe(1)
def tile(g):
    x = g.pick((F32, I64), rank=(1, 2, 3))
    if x and x.shape:
        k = [g.r.choice((1, 2, 3)) for _ in x.shape]
        g.one("Tile", [x, g.ints(*k)], x.dtype, [d * e for d, e in zip(x.shape, k)], x.mag, x.exact)


@recipe(3)
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


@recipe(1)
def depth_space(g):
    x = g.pick((F32,), rank=4, ok=lambda v: v.shape[1] % 4 == 0 and v.shape[1], make=lambda: g.fresh(F32, (g.r.choice((1, 2)), 4 * g.r.choice((1, 2)), 2, g.r.choice((2, 4)))))
    if not x or 0 in x.shape or x.shape[1] % 4:
        return
    n, c, h, w = x.shape
    if g.r.random() < 0.5 or h % 2 or w % 2:
        g.one("DepthToSpace", [x], F32, (n, c // 4, h * 2, w * 2), x.mag, x.exact, blocksize=2, mode=g.r.choice(("DCR", "CRD")))
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


# ---- reductions, order ----
@recipe(4)
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


@recipe(2)
def softmax(g):
    x = g.pick((F32, F32, F64), ok=lambda v: v.shape and v.mag < 64 and 0 not in v.shape)
    if x and x.shape and 0 not in x.shape:
        op = g.r.choice(("Softmax", "Softmax", "LogSoftmax"))
        g.one(op, [x], x.dtype, x.shape, 1 if op == "Softmax" else 2 * x.mag + 10, False, axis=g.axis(x))


# ---- contractions ----
@recipe(4)
def matmul(g):
    x = g.pick((F32, F32, F32, F64, I32), rank=(1, 2, 3, 4), ok=lambda v: v.shape)
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


@recipe(2)
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


@recipe(4)
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


@recipe(1)
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


@recipe(2)
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
    attrs = {"dilations": d} if op == "MaxPool" else {"count_include_pad": g.r.randint(0, 1)}
    g.one(op, [x], F32, list(x.shape[:2]) + out, x.mag, x.exact and op == "MaxPool", kernel_shape=k, strides=s, pads=lo + hi, **attrs)


@recipe(2)
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


@recipe(1)
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


# ---- control flow and lists ----
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


def make(seed, hostile=False, symbolic=False, n_node=None):
    """(model, feeds, output names) of a seed."""
    g = Gen(seed, hostile)
    g.grow(n_node or g.r.randint(2, 14))
    return g.model(symbolic)
