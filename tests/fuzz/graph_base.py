"""Valid random ONNX models, shape first: every value's dtype and shape are known while the graph grows.

A value carries what decides whether three implementations can be asked to agree on it: how large it may be, and whether it is
exact (small multiples of 1/8 and what sums, products and moves of few of them give), so that rounding, comparing and sorting do
not turn on the last bit.
"""

import dataclasses
import random

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, F64, F16 = np.dtype("float32"), np.dtype("float64"), np.dtype("float16")
I64, I32, I8, U8, BOOL = np.dtype("int64"), np.dtype("int32"), np.dtype("int8"), np.dtype("uint8"), np.dtype("bool")
I16, U16, U32, U64 = np.dtype("int16"), np.dtype("uint16"), np.dtype("uint32"), np.dtype("uint64")
BF16 = np.dtype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
FLOATS, INTS = (F32, F64, F16), (I64, I32)
OPSETS, OLD = tuple(range(11, 26)), (7, 8, 9, 10)
MAX_ELEMS, MAX_RANK, MAX_SIZE = 4096, 5, 1e4


@dataclasses.dataclass
class Val:
    name: str
    dtype: np.dtype
    shape: tuple
    mag: float          # no element is larger
    exact: bool = True  # for floats; see above
    nonneg: bool = False
    known: tuple = ()   # axes whose extents stay numbers when others get names


def numel(shape):
    return int(np.prod(shape, dtype=np.int64))


def onnx_type(dtype):
    return helper.np_dtype_to_tensor_dtype(dtype)


class Gen:
    """One graph. add_node() adds one random node; model() and feeds are what came of it."""

    def __init__(self, seed, hostile=False):
        self.r = random.Random(seed)
        self.np = np.random.default_rng(seed)
        self.opset = self.r.choice(OLD if self.r.random() < 0.08 else OPSETS)
        self.hostile = hostile
        self.vals, self.nodes, self.inits, self.inputs, self.feeds = [], [], [], [], {}
        self.n_name = 0
        self.depth = 0

    # ---- values ----
    def name(self, what="v"):
        self.n_name += 1
        return f"{what}{self.n_name}"

    def array(self, dtype, shape, lo=-16, hi=16):
        if dtype in FLOATS + (BF16,):
            x = self.np.integers(lo, hi + 1, size=shape).astype(dtype) / dtype.type(8)
            return np.asarray(x, dtype)
        if dtype == BOOL:
            return self.np.integers(0, 2, size=shape).astype(bool)
        if dtype.kind == "u":
            return self.np.integers(0, 17, size=shape).astype(dtype)
        return self.np.integers(-8, 9, size=shape).astype(dtype)

    def bound(self, dtype):
        return 2.0 if dtype in FLOATS + (BF16,) else 1.0 if dtype == BOOL else 16.0

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
                    flat[self.r.randrange(flat.size)] = self.r.choice((np.inf, -np.inf, np.nan, -0.0, 1e-40, 1e6 if dtype != F16 else 1e3))
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
            self.r.choice(RECIPES if self.opset in OPSETS else OLD_RECIPES)(self)

    def model(self, symbolic=False):
        """symbolic: extents of inputs get names, in half of the models one name for all that are equal."""
        shared = self.r.random() < 0.5
        used = {i for n in self.nodes for i in n.input} | {i for n in self.nodes for a in n.attribute if a.HasField("g")
                                                           for m in a.g.node for i in m.input}
        made = {o for n in self.nodes if n.op_type != "Constant" for o in n.output}
        outs = [v for v in self.vals if v.name in made and (v.name not in used or self.r.random() < 0.15)]
        outs = outs or [v for v in self.vals if v.name in made]
        ins = [v for v in self.inputs if v.name in used]

        def info(v, dims=None):
            return helper.make_tensor_value_info(v.name, onnx_type(v.dtype), dims)

        def dims(v):
            return [(f"n{d}" if shared else f"{v.name}_{i}") if symbolic and i not in v.known and self.r.random() < 0.5 else d for i, d in enumerate(v.shape)]

        g = helper.make_graph(self.nodes, "fuzz", [info(v, dims(v)) for v in ins],
                              [info(v, [f"{v.name}_o{i}" for i in range(len(v.shape))]) for v in outs], self.inits)
        m = helper.make_model(g, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8 if self.opset < 21 else 10 if self.opset < 23 else 11)
        return m, {v.name: self.feeds[v.name] for v in ins}, [v.name for v in outs]


RECIPES, OLD_RECIPES = [], []


def recipe(weight=1, old=False):
    """old: writes what opsets below 11 read too; "only": nothing newer."""
    def note(f):
        RECIPES.extend([f] * (0 if old == "only" else weight))
        OLD_RECIPES.extend([f] * (weight if old else 0))
        return f
    return note
