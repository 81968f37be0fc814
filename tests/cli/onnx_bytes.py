"""ONNX models as bytes, without a protobuf library: enough for the tests of the program."""

import random
import struct

FLOAT, INT64 = 1, 7


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0))
        n >>= 7
        if not n:
            return bytes(out)


def field(number, payload):
    """A protobuf field: an integer, or length-delimited bytes or text."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def value(name, dims, dtype=FLOAT):
    """dims may hold names: extents that are open."""
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape)))


def tensor(name, dims, numbers, dtype=FLOAT):
    raw = struct.pack(f"<{len(numbers)}{'f' if dtype == FLOAT else 'q'}", *numbers)
    return b"".join(field(1, d) for d in dims) + field(2, dtype) + field(8, name) + field(9, raw)


def weights(name, dims, seed, scale=0.1):
    r = random.Random(seed)
    n = 1
    for d in dims:
        n *= d
    return tensor(name, dims, [r.uniform(-scale, scale) for _ in range(n)])


def external(name, dims, file, offset, length, dtype=FLOAT):
    """A tensor whose bytes lie in a file beside the model."""
    entries = (("location", file), ("offset", str(offset)), ("length", str(length)))
    where = b"".join(field(13, field(1, k) + field(2, v)) for k, v in entries)
    return b"".join(field(1, d) for d in dims) + field(2, dtype) + field(8, name) + where + field(14, 1)


def attribute(name, v):
    if isinstance(v, bytes): # a tensor
        return field(1, name) + field(5, v) + field(20, 4)
    if isinstance(v, str):
        return field(1, name) + field(4, v) + field(20, 3)
    if isinstance(v, (list, tuple)):
        return field(1, name) + b"".join(field(8, i) for i in v) + field(20, 7)
    return field(1, name) + field(3, v) + field(20, 2)


def node(op, inputs, outputs, **attributes):
    text = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
    text += field(3, "/" + outputs[0]) + field(4, op)
    return text + b"".join(field(5, attribute(k, v)) for k, v in attributes.items())


def model(nodes, inputs, outputs, initializers=(), opset=17):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g") + b"".join(field(5, i) for i in initializers)
    graph += b"".join(field(11, v) for v in inputs) + b"".join(field(12, v) for v in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(2, opset))


def relu(dims=(2, 3)):
    """y = Relu(x)."""
    return model([node("Relu", ["x"], ["y"])], [value("x", dims)], [value("y", dims)])


def convolutions(channels=32, size=28, layers=2):
    """3x3 convolutions with bias and Relu, in a row."""
    at, nodes, init = "x", [], []
    for i in range(layers):
        init += [weights(f"w{i}", [channels, channels, 3, 3], i), weights(f"b{i}", [channels], 100 + i)]
        nodes += [node("Conv", [at, f"w{i}", f"b{i}"], [f"c{i}"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
                  node("Relu", [f"c{i}"], [f"r{i}"])]
        at = f"r{i}"
    dims = [1, channels, size, size]
    return model(nodes, [value("x", dims)], [value(at, dims)], init)


def encoder(tokens=16, width=64):
    """Matrix multiplications, softmax, normalisation, constants to fold, a slice and a transposition."""
    init = [weights(n, [width, width], i) for i, n in enumerate(("wq", "wk", "wv", "wo"))]
    init += [weights("gain", [width], 7), weights("table", [tokens, width], 8, 2)]
    nodes = [node("Exp", ["table"], ["e"]), node("Erf", ["e"], ["f"]), node("Sin", ["f"], ["pos"]),
             node("Tanh", ["gain"], ["g"]), node("Add", ["x", "pos"], ["h"]),
             node("MatMul", ["h", "wq"], ["q"]), node("MatMul", ["h", "wk"], ["k"]), node("MatMul", ["h", "wv"], ["v"]),
             node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["s"]),
             node("Softmax", ["s"], ["p"], axis=-1), node("MatMul", ["p", "v"], ["o"]), node("MatMul", ["o", "wo"], ["r"]),
             node("Add", ["r", "h"], ["t"]), node("LayerNormalization", ["t", "g"], ["y"], axis=-1)]
    return model(nodes, [value("x", [1, tokens, width])], [value("y", [1, tokens, width])], init)


def image_tail(channels=24, size=20):
    """Depthwise and 1x1 convolution, pooling, a resize, a mean, a classifier."""
    init = [weights("wd", [channels, 1, 3, 3], 1), weights("wp", [40, channels, 1, 1], 2), weights("wf", [40, 10], 3),
            tensor("scales", [4], [1, 1, 2, 2]), tensor("flat", [2], [1, 40], INT64)]
    nodes = [node("Conv", ["x", "wd"], ["d"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=channels),
             node("Conv", ["d", "wp"], ["p"], kernel_shape=[1, 1]), node("Sigmoid", ["p"], ["s"]),
             node("Mul", ["p", "s"], ["m"]), node("MaxPool", ["m"], ["l"], kernel_shape=[2, 2], strides=[2, 2]),
             node("Resize", ["l", "", "scales"], ["u"], mode="nearest"), node("Add", ["u", "m"], ["a"]),
             node("GlobalAveragePool", ["a"], ["g"]), node("Reshape", ["g", "flat"], ["v"]),
             node("MatMul", ["v", "wf"], ["y"])]
    return model(nodes, [value("x", [1, channels, size, size])], [value("y", [1, 10])], init)


def recurrent(steps=6, width=32):
    """One LSTM layer, and the greatest of its outputs."""
    init = [weights("w", [1, 4 * width, width], 1), weights("r", [1, 4 * width, width], 2),
            tensor("k", [1], [3], INT64)]
    nodes = [node("LSTM", ["x", "w", "r"], ["h"], hidden_size=width), node("TopK", ["h", "k"], ["y", "i"], axis=-1)]
    return model(nodes, [value("x", [steps, 1, width])],
                 [value("y", [steps, 1, 1, 3]), value("i", [steps, 1, 1, 3], INT64)], init)


def two_names(width=48):
    """The same work twice, over extents of two names: one region to the timing cache, two to a build."""
    init = [weights("w", [width, width], 1)]
    nodes = [n for i in "ab" for n in (node("MatMul", [f"x{i}", "w"], [f"m{i}"]), node("Softmax", [f"m{i}"], [f"s{i}"], axis=-1),
                                       node("Transpose", [f"s{i}"], [f"y{i}"], perm=[1, 0]))]
    return model(nodes, [value(f"x{i}", [i, width]) for i in "ab"], [value(f"y{i}", [width, i]) for i in "ab"], init)


GRAPHS = {"two_names": two_names, "convolutions": convolutions, "encoder": encoder, "image_tail": image_tail, "recurrent": recurrent}
