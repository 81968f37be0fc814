"""Changes of a model that must not change what it computes (metamorphic checks of graphs.py).

Each variant is a function of (case, random) that yields another case, or None where the model has no place for it. A case's
outputs are compared with the first model's through `back`, which brings them into that model's form.
"""

import copy
import dataclasses
import typing

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass
class Case:
    model: onnx.ModelProto
    feeds: dict
    names: list                      # of outputs
    folder: typing.Any = None        # where the model has external data
    back: typing.Callable = lambda outs, want: outs   # this case's outputs, the first's
    part: typing.Callable = lambda want: want         # the part of the first's that this case has
    same_size: bool = True


VARIANTS = {}
HELD = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL, TensorProto.INT8, TensorProto.INT16,
        TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64} # what arrays hold


def variant(f):
    VARIANTS[f.__name__] = f
    return f


def again(case, **changed):
    new = dataclasses.replace(case, model=copy.deepcopy(case.model), feeds=dict(case.feeds), names=list(case.names))
    for k, v in changed.items():
        setattr(new, k, v)
    return new


def graphs_of(graph):
    yield graph
    for n in graph.node:
        for a in n.attribute:
            for g in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                yield from graphs_of(g)


def read_inside(graph):
    """Names that subgraphs read or shadow: values that stay as they are."""
    out = set()
    for g in list(graphs_of(graph))[1:]:
        out |= {i for n in g.node for i in n.input} | {o.name for o in g.output}
    return out


def types_of(model):
    """{value: (element type, rank or None)} as inference finds them."""
    g = onnx.shape_inference.infer_shapes(model).graph
    out = {}
    for v in (*g.value_info, *g.input, *g.output):
        t = v.type.tensor_type
        if v.type.HasField("tensor_type"):
            out[v.name] = (t.elem_type, len(t.shape.dim) if t.HasField("shape") else None)
    for t in g.initializer:
        out[t.name] = (t.data_type, len(t.dims))
    return out


# ---- form alone ----
@variant
def renamed(case, r):
    new = again(case)
    names, kept = {"": ""}, {}

    def fresh(n):
        if n not in names:
            names[n] = f"q{len(names)}" if r.random() < 0.7 else f"{len(names)}/weird name:{r.randrange(99)}"
        return names[n]

    for g in graphs_of(new.model.graph):
        for v in (*g.input, *g.output, *g.value_info, *g.initializer):
            v.name = fresh(v.name)
        for n in g.node:
            n.input[:] = [fresh(i) for i in n.input]
            n.output[:] = [fresh(o) for o in n.output]
            n.name = "" if r.random() < 0.5 else f"n{r.randrange(10**6)}"
        if g.sparse_initializer or g.quantization_annotation:
            return None
    new.feeds = {names[k]: v for k, v in case.feeds.items()}
    new.names = [names[n] for n in case.names]
    return new if not kept else None


@variant
def reordered(case, r):
    """Nodes in another order that reads what is there already; initializers and outputs too."""
    new = again(case)
    g = new.model.graph
    rest, done = list(g.node), {i.name for i in g.input} | {t.name for t in g.initializer} | {""}
    order = []
    made = {o for n in rest for o in n.output}

    def needs(n):
        return ({i for i in n.input} | {i for a in n.attribute if a.HasField("g") for s in graphs_of(a.g) for m in s.node for i in m.input}
                | {o.name for a in n.attribute if a.HasField("g") for s in graphs_of(a.g) for o in s.output}) & made

    while rest:
        ready = [n for n in rest if needs(n) <= done]
        n = r.choice(ready)
        order.append(n)
        rest.remove(n)
        done |= set(n.output)
    order = [copy.deepcopy(n) for n in order]
    inits, outs = [copy.deepcopy(t) for t in g.initializer], [copy.deepcopy(o) for o in g.output]
    r.shuffle(inits), r.shuffle(outs)
    for field, what in ((g.node, order), (g.initializer, inits), (g.output, outs)):
        del field[:]
        field.extend(what)
    new.names = [o.name for o in outs]
    place = [new.names.index(n) for n in case.names]
    new.back = lambda got, want: [got[i] for i in place]
    return new


@variant
def constants_elsewhere(case, r):
    """Initializers become Constant nodes, and the other way round."""
    new = again(case)
    g = new.model.graph
    shown = {i.name for i in g.input}
    moved = [t for t in g.initializer if t.name not in shown and not t.external_data and t.data_type != TensorProto.STRING and r.random() < 0.7]
    nodes = [helper.make_node("Constant", [], [t.name], value=t) for t in moved]
    back, inits = [], []
    for n in g.node:
        is_value = n.op_type == "Constant" and n.attribute and n.attribute[0].name == "value" and n.attribute[0].t.data_type != TensorProto.STRING
        if is_value and r.random() < 0.7:
            t = copy.deepcopy(n.attribute[0].t)
            t.name = n.output[0]
            inits.append(t)
        else:
            back.append(copy.deepcopy(n))
    if not nodes and not inits:
        return None
    rest = [copy.deepcopy(t) for t in g.initializer if all(t is not m for m in moved)] + inits
    nodes = [copy.deepcopy(n) for n in nodes]
    for field, what in ((g.node, nodes + back), (g.initializer, rest)):
        del field[:]
        field.extend(what)
    return new


@variant
def external_data(case, r):
    new = again(case)
    if not any(t.data_type != TensorProto.STRING for t in new.model.graph.initializer):
        return None
    onnx.external_data_helper.convert_model_to_external_data(new.model, all_tensors_to_one_file=r.random() < 0.5, location="weights.bin",
                                                             size_threshold=0, convert_attribute=r.random() < 0.3)
    return new


@variant
def unused_outputs(case, r):
    """Values inside become outputs too."""
    new = again(case)
    types = types_of(new.model)
    g = new.model.graph
    inside = [o for n in g.node for o in n.output if o in types and types[o][0] in HELD and o not in case.names and n.op_type != "Constant"]
    if not inside or len(g.output) + len(g.input) > 40:
        return None
    for o in r.sample(inside, min(len(inside), 6)):
        g.output.insert(r.randint(0, len(g.output)), helper.make_tensor_value_info(o, types[o][0], None))
    new.names = [o.name for o in g.output]
    place = [new.names.index(n) for n in case.names]
    new.back = lambda got, want: [got[i] for i in place]
    return new


@variant
def extents_known(case, r):
    """Every extent of an input as it is fed."""
    new = again(case)
    changed = False
    for i in new.model.graph.input:
        if i.name in case.feeds and i.type.HasField("tensor_type"):
            for d, n in zip(i.type.tensor_type.shape.dim, case.feeds[i.name].shape):
                changed |= not d.HasField("dim_value") or d.dim_value != n
                d.dim_value = n
    return new if changed else None


@variant
def extents_open(case, r):
    """Every extent of an input a name of its own; refused where the model's ops need to know."""
    new = again(case)
    for i in new.model.graph.input:
        if i.name in case.feeds and i.type.HasField("tensor_type"):
            for k, d in enumerate(i.type.tensor_type.shape.dim):
                d.dim_param = f"open_{k}_" + "".join(c if c.isalnum() else "_" for c in i.name)
    return new if any(v.shape for v in case.feeds.values()) else None


@variant
def weights_fed(case, r):
    """An initializer becomes an input; refused where its value has to be known."""
    new = again(case)
    g = new.model.graph
    shown = {i.name for i in g.input}
    floats = [t for t in g.initializer if t.name not in shown and not t.external_data and t.data_type in (TensorProto.FLOAT, TensorProto.DOUBLE) and len(t.dims)]
    if not floats or len(g.input) > 30:
        return None
    t = r.choice(floats)
    g.input.append(helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)))
    new.feeds[t.name] = numpy_helper.to_array(t)
    g.initializer.remove(t)
    return new


# ---- pairs that cancel ----
def pair(kind, x, t, rank, opset, made, r):
    """[nodes] from x through two that cancel to x's double; None where the type or rank has no such pair."""
    a, b = f"{made}_a", f"{made}_b"

    def const(name, value):
        return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(value)))

    if kind == "identity":
        return [helper.make_node("Identity", [x], [b])]
    if kind == "transposes" and rank and rank > 1:
        perm = list(range(rank))
        r.shuffle(perm)
        return [helper.make_node("Transpose", [x], [a], perm=perm), helper.make_node("Transpose", [a], [b], perm=[int(i) for i in np.argsort(perm)])]
    if kind == "reshapes" and opset >= 14 and t in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE, TensorProto.INT32):
        return [helper.make_node("Shape", [x], [f"{made}_s"]), const(f"{made}_f", np.array([-1], np.int64)), helper.make_node("Reshape", [x, f"{made}_f"], [a]),
                helper.make_node("Reshape", [a, f"{made}_s"], [b], allowzero=1)]
    if kind == "axes" and rank is not None and rank < 6:
        k = r.randint(0, rank)
        if opset >= 13:
            return [const(f"{made}_k", np.array([k], np.int64)), helper.make_node("Unsqueeze", [x, f"{made}_k"], [a]),
                    helper.make_node("Squeeze", [a, f"{made}_k"], [b])]
        return [helper.make_node("Unsqueeze", [x], [a], axes=[k]), helper.make_node("Squeeze", [a], [b], axes=[k])]
    if kind == "negations" and t in (TensorProto.FLOAT, TensorProto.DOUBLE):
        return [helper.make_node("Neg", [x], [a]), helper.make_node("Neg", [a], [b])]
    if kind == "casts" and t in (TensorProto.FLOAT, TensorProto.INT32, TensorProto.BOOL, TensorProto.UINT8) and opset >= 9:
        return [helper.make_node("Cast", [x], [a], to=TensorProto.DOUBLE), helper.make_node("Cast", [a], [b], to=t)]
    if kind == "pads" and rank and t == TensorProto.FLOAT and opset >= 13:
        lo = [r.randint(0, 2) for _ in range(rank)]
        return [const(f"{made}_p", np.array(lo + [r.randint(0, 1) for _ in range(rank)], np.int64)), helper.make_node("Pad", [x, f"{made}_p"], [a]),
                helper.make_node("Shape", [x], [f"{made}_s"]), const(f"{made}_l", np.array(lo, np.int64)),
                helper.make_node("Add", [f"{made}_s", f"{made}_l"], [f"{made}_e"]), helper.make_node("Slice", [a, f"{made}_l", f"{made}_e"], [b])]
    if kind == "halves" and rank and opset >= 10:
        k, big = r.randrange(rank), np.iinfo(np.int64).max
        names = [(f"{made}_{w}", np.array([v], np.int64)) for w, v in (("0", 0), ("1", 1), ("n", big), ("k", k))]
        zero, one, end, axis = (n for n, _ in names)
        return [const(n, v) for n, v in names] + [helper.make_node("Slice", [x, zero, one, axis], [a]), helper.make_node("Slice", [x, one, end, axis], [f"{made}_r"]),
                                                  helper.make_node("Concat", [a, f"{made}_r"], [b], axis=k)]
    return None


PAIRS = ("identity", "transposes", "transposes", "reshapes", "axes", "negations", "casts", "pads", "halves")


@variant
def pairs_inserted(case, r):
    new = again(case)
    g = new.model.graph
    types, kept = types_of(new.model), read_inside(g)
    opset = next((o.version for o in new.model.opset_import if o.domain in ("", "ai.onnx")), 0)
    made = [(n, o) for n in g.node for o in n.output if o in types and types[o][0] and o not in kept and n.op_type != "Constant"]
    nodes, done = [], 0
    chosen = {o for _, o in r.sample(made, min(len(made), 4))}
    for n in g.node:
        nodes.append(n)
        for o in n.output:
            if o not in chosen:
                continue
            add = pair(r.choice(PAIRS), o, *types[o], opset, f"pair{done}", r)
            if not add:
                continue
            done += 1
            end = add[-1].output[0]
            for m in g.node:
                m.input[:] = [end if i == o else i for i in m.input]
            nodes += add
    if not done:
        return None
    nodes = [copy.deepcopy(n) for n in nodes]
    del g.node[:]
    g.node.extend(nodes)
    return new


# ---- batch ----
def batch_axes(case):
    """(symbol, {input: axis}) where all inputs share one name for their batch."""
    syms = {}
    for i in case.model.graph.input:
        if i.name in case.feeds and len(i.type.tensor_type.shape.dim):
            syms[i.name] = [d.dim_param if d.HasField("dim_param") else "" for d in i.type.tensor_type.shape.dim]
    first = next(iter(syms.values()), [""])[0]
    if not first or any(s.count(first) != 1 for s in syms.values()):
        return None
    return first, {n: s.index(first) for n, s in syms.items()}


def along_batch(n, m):
    """The axis along which n rows became m, for every output."""
    def cut(got, want, rows):
        out = []
        for x, y in zip(got, want):
            axes = [k for k in range(min(x.ndim, y.ndim)) if x.shape[k] == m and y.shape[k] == n]
            if x.ndim != y.ndim or len(axes) != 1 or any(a != b for k, (a, b) in enumerate(zip(x.shape, y.shape)) if k != axes[0]):
                return None
            out.append((np.take(x, rows[0], axes[0]), np.take(y, rows[1], axes[0])))
        return out
    return cut


def with_rows(case, rows):
    found = batch_axes(case)
    if not found or not crosses_no_rows(case.model):
        return None
    n = next(case.feeds[k].shape[a] for k, a in found[1].items())
    if n < 1:
        return None
    new = again(case, same_size=False)
    new.feeds = {k: np.take(v, [i % n for i in rows(n)], found[1][k]) if k in found[1] else v for k, v in case.feeds.items()}
    return new, n


def crosses_no_rows(model):
    """Scales from the whole tensor make a row depend on its neighbours."""
    return not any(n.op_type == "DynamicQuantizeLinear" for g in graphs_of(model.graph) for n in g.node)


@variant
def batch_padded(case, r):
    found = with_rows(case, lambda n: list(range(n)) + [r.randrange(n) for _ in range(3)])
    if not found:
        return None
    new, n = found
    cut = along_batch(n, n + 3)
    new.back = lambda got, want: cut(got, want, (list(range(n)), list(range(n))))
    return new


@variant
def batch_split(case, r):
    found = with_rows(case, lambda n: [n - 1])
    if not found or found[1] < 2:
        return None
    new, n = found
    cut = along_batch(n, 1)
    new.back = lambda got, want: cut(got, want, ([0], [n - 1]))
    return new


# ---- channels ----
BY_CHANNEL = ("Relu", "Sigmoid", "LeakyRelu", "Clip", "HardSwish", "Tanh", "MaxPool", "AveragePool", "BatchNormalization", "Identity", "Elu", "HardSigmoid")


def consumer(g, name, outs):
    found = [n for n in g.node if name in n.input]
    return found[0] if len(found) == 1 and list(found[0].input).count(name) == 1 and name not in outs else None


def chain_from(g, conv, inits, outs, kept):
    """[nodes] by channel after a convolution up to the next one without groups; None if there are others."""
    path, at = [], conv.output[0]
    while at not in kept:
        n = consumer(g, at, outs)
        if not n or n.input[0] != at:
            return None
        if n.op_type == "Conv":
            group = next((a.i for a in n.attribute if a.name == "group"), 1)
            return path + [n] if group == 1 and n.input[1] in inits else None
        if n.op_type not in BY_CHANNEL or len([o for o in n.output if o]) > 1 or (n.op_type == "BatchNormalization" and any(i not in inits for i in n.input[1:])):
            return None
        path.append(n)
        at = n.output[0]
    return None


@variant
def channels_permuted(case, r):
    """The channels between two convolutions in another order, weights along."""
    new = again(case)
    g = new.model.graph
    inits, outs, kept = {t.name: t for t in g.initializer}, set(case.names), read_inside(g)
    readers = [i for n in g.node for i in n.input]
    done = set()

    def permute(name, p, axis):
        if name in done or readers.count(name) != 1:
            return False
        x = np.ascontiguousarray(np.take(numpy_helper.to_array(inits[name]), p, axis))
        inits[name].CopyFrom(numpy_helper.from_array(x, name))
        done.add(name)
        return True

    for conv in g.node:
        group = next((a.i for a in conv.attribute if a.name == "group"), 1)
        if conv.op_type != "Conv" or group != 1 or any(i not in inits for i in conv.input[1:]) or r.random() < 0.2:
            continue
        path = chain_from(g, conv, inits, outs, kept)
        if not path:
            continue
        touched = list(conv.input[1:]) + [path[-1].input[1]] + [i for n in path if n.op_type == "BatchNormalization" for i in n.input[1:]]
        if any(i in done or readers.count(i) != 1 for i in touched):
            continue
        p = list(range(inits[conv.input[1]].dims[0]))
        r.shuffle(p)
        for i in conv.input[1:]:
            permute(i, p, 0)
        for n in path[:-1]:
            for i in n.input[1:] if n.op_type == "BatchNormalization" else []:
                permute(i, p, 0)
        permute(path[-1].input[1], p, 1)
    return new if done else None
