"""A decoder with and without a cache in one file, as optimum merges them: an If on use_cache_branch, weights outside."""

import json

FLAG = "use_cache_branch"


def branch(graph, name, skip):
    """The nodes of a graph as a branch that takes inputs and weights from outside; skip: {input: nodes that stand for it}."""
    import onnx
    nodes = [n for made in skip.values() for n in made] + list(graph.node)
    outs = [onnx.helper.make_tensor_value_info(o.name, o.type.tensor_type.elem_type, None) for o in graph.output]
    return onnx.helper.make_graph(nodes, name, [], outs)


def without(graph, name, nodes):
    """The same graph, where reads of `name` read what `nodes` yield last."""
    for n in graph.node:
        for i, read in enumerate(n.input):
            if read == name:
                n.input[i] = nodes[-1].output[0]
    return nodes


def no_cache(graph, value, tokens):
    """Nodes that yield a cache of no tokens, as large as the batch of `tokens` otherwise."""
    import onnx
    from onnx import helper
    dims = value.type.tensor_type.shape.dim
    tail = [dims[1].dim_value, 0, dims[3].dim_value]
    p = f"{value.name}_none"
    return [helper.make_node("Shape", [tokens], [f"{p}_batch"], start=0, end=1),
            helper.make_node("Constant", [], [f"{p}_tail"], value_ints=tail),
            helper.make_node("Concat", [f"{p}_batch", f"{p}_tail"], [f"{p}_shape"], axis=0),
            helper.make_node("ConstantOfShape", [f"{p}_shape"], [p],
                             value=helper.make_tensor("zero", onnx.TensorProto.FLOAT, [1], [0.0]))]


def tool(net, src, dst):
    import copy

    import onnx
    from onnx import helper
    model = onnx.load(src)
    graph = model.graph
    fresh = copy.deepcopy(graph)
    made = {v.name: without(fresh, v.name, no_cache(graph, v, graph.input[0].name)) for v in graph.input if v.name.startswith("past_")}
    outputs = [o.name for o in graph.output]
    node = helper.make_node("If", [f"{FLAG}_scalar"], outputs, then_branch=branch(graph, "with_past", {}),
                            else_branch=branch(fresh, "no_past", made))
    flag = helper.make_tensor_value_info(FLAG, onnx.TensorProto.BOOL, [1])
    squeeze = helper.make_node("Squeeze", [FLAG], [f"{FLAG}_scalar"])
    merged = helper.make_graph([squeeze, node], "merged", [*graph.input, flag], graph.output, graph.initializer)
    # In branches the same names stand for other values than outside: what leaves gets names of its own.
    for b in (a.g for a in node.attribute):
        rename_outputs(b)
    onnx.save(helper.make_model(merged, opset_imports=model.opset_import, functions=model.functions, ir_version=model.ir_version), str(dst))
    names = {v.name: [v.name, helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type).name] for v in merged.input}
    dst.with_name(dst.name.replace(".part.onnx", ".inputs.json")).write_text(json.dumps(names))


def rename_outputs(b):
    new = {o.name: f"{o.name}_of_{b.name}" for o in b.output}
    for n in b.node:
        for names in (n.input, n.output):
            for i, name in enumerate(names):
                names[i] = new.get(name, name)
    for o in b.output:
        o.name = new[o.name]
