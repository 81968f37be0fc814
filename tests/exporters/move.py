"""A file and its inputs with every floating-point number moved by up to one unit in its last place: what any right implementation
may do to them by rounding. Run by run.py in the exporters' environment.

    move.py MODEL FOLDER SEED INPUT.npy ...

writes FOLDER/moved.onnx, and each input as FOLDER/PARENT_NAME.npy, and prints as JSON:
unit, the coarsest of the file's units; inside, the ops in which ONNX Runtime rounds to bytes what the file leaves in float32
(docs/onnx-decisions.md, com.microsoft). Whole numbers stay, whatever
their type (exponents, masks, quantised weights): those no one rounds.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import numpy_helper

UNITS = {np.dtype("float16"): 2.0 ** -10, np.dtype("float32"): 2.0 ** -23, np.dtype("float64"): 2.0 ** -52}


def moved(a, rng):
    if a.dtype not in UNITS:
        return a
    unit, most = UNITS[a.dtype], np.finfo(a.dtype).max
    other = a.astype(np.float64) * (1 + rng.uniform(-unit, unit, a.shape))
    return np.where(np.isfinite(a) & (a != np.rint(a)), np.clip(other, -most, most), a).astype(a.dtype)


def rounds_inside(node):
    # 4 of accuracy_level allows products in bytes, whatever x is.
    return node.op_type == "DynamicQuantizeLSTM" or any(at.name == "accuracy_level" and at.i == 4 for at in node.attribute)


def graphs(graph):
    """A graph and its subgraphs."""
    yield graph
    for at in (at for node in graph.node for at in node.attribute):
        for g in ([at.g] if at.HasField("g") else []) + list(at.graphs):
            yield from graphs(g)


def nodes(graph):
    return [n for g in graphs(graph) for n in g.node]


def tensors(graph):
    """Every tensor that a graph and its subgraphs state."""
    return [t for g in graphs(graph) for t in g.initializer] + [at.t for n in nodes(graph) for at in n.attribute if at.HasField("t")]


def main():
    model, folder, rng = onnx.load(sys.argv[1]), pathlib.Path(sys.argv[2]), np.random.default_rng(int(sys.argv[3]))
    coarsest = 0
    for t in tensors(model.graph):
        a = numpy_helper.to_array(t)
        if a.dtype in UNITS:
            coarsest = max(coarsest, UNITS[a.dtype])
            t.CopyFrom(numpy_helper.from_array(moved(a, rng), t.name))
    onnx.save(model, folder / "moved.onnx")
    for name in map(pathlib.Path, sys.argv[4:]):
        np.save(folder / "_".join(name.parts[-2:]), moved(np.load(name), rng))
    print(json.dumps({"unit": coarsest, "inside": sorted({n.op_type for n in nodes(model.graph) if rounds_inside(n)})}))


if __name__ == "__main__":
    main()
