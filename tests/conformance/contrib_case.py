"""What a case of com.microsoft is: a node, its operands, and what is wanted where ONNX Runtime's CPU build cannot run it."""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

MS = "com.microsoft"
CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


class Model:
    """One node of com.microsoft. feed: inputs of the model by name; const: initializers by name; both in the node's order."""

    def __init__(self, op, operands, outputs=("y",), want=None, **attrs):
        self.op, self.operands, self.outputs, self.want, self.attrs = op, operands, outputs, want, attrs

    def save(self, folder):
        data = folder / "test_data_set_0"
        data.mkdir(parents=True)
        feed, init, names = {}, [], []
        for i, x in enumerate(self.operands):
            name = f"x{i}" if x is not None else ""
            names.append(name)
            if isinstance(x, Const):
                init.append(x.tensor(name))
            elif x is not None:
                feed[name] = x
        node = helper.make_node(self.op, names, list(self.outputs), domain=MS, **self.attrs)
        ins = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feed.items()]
        outs = [onnx.ValueInfoProto(name=o) for o in self.outputs if o]
        graph = helper.make_graph([node], "g", ins, outs, init)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)], ir_version=10)
        if self.want is None:
            o = ort.SessionOptions()
            o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            got = ort.InferenceSession(model.SerializeToString(), o, providers=["CPUExecutionProvider"]).run(None, feed)
        else:
            got = self.want
        for out, v in zip(outs, got):
            out.CopyFrom(helper.make_tensor_value_info(out.name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape))
        del graph.output[:]
        graph.output.extend(outs)
        model = helper.make_model(graph, opset_imports=model.opset_import, ir_version=10)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        for i, (n, v) in enumerate(feed.items()):
            (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(v, n).SerializeToString())
        for i, (out, v) in enumerate(zip(outs, got)):
            (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(v, out.name).SerializeToString())


class Const:
    """An initializer; type: another ONNX type than the array's, for 4 bits."""

    def __init__(self, value, type=None, shape=None):
        self.value, self.type, self.shape = np.ascontiguousarray(value), type, shape

    def tensor(self, name):
        if self.type is None:
            return numpy_helper.from_array(self.value, name)
        return helper.make_tensor(name, self.type, self.shape, self.value.tobytes(), raw=True)


def floats(r, *shape):
    return r.standard_normal(shape).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))
