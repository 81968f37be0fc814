"""Export architectures to .cache/exporters/NET/VARIANT.onnx; run by run.py in the exporters' environment or under Debian's Python.

    export.py FOLDER NET [VARIANT ...]

A variant is EXPORTER-SHAPES, "script-dynamic"; the same with another opset, "opset13", or with every axis of every input left open,
"loose"; or a tool of derive.py. What an exporter refuses leaves VARIANT.refused with the
reason: that is no fault of ours, but the table says it.
"""

import json
import os
import pathlib
import re
import sys
import traceback
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "bench")]
import nets  # noqa: E402

DEBIAN_OPSET = 16
DYNAMO_OPSET = 20
SCRIPT_MAX_OPSET = 20
FUSED_ATTENTION_OPSET = 14 # the first by which the TorchScript exporter writes torch's fused attention


def arguments(torch, net, size):
    return tuple(torch.from_numpy(a) for a in net.feeds(size).values())


def open_shapes(torch, axes, names, lenient):
    """What the new exporter is told of shapes: names; or, leniently, that it may fix what it cannot leave open."""
    dim = torch.export.Dim
    # A sum of symbols is what the exporter finds by itself.
    return tuple({i: dim.AUTO if lenient else dim.DYNAMIC if "+" in s else s for i, s in axes[n].items()} if n in axes else None
                 for n in names)


def to_onnx_new(torch, net, module, args, path, shapes, opset):
    torch.onnx.export(module, args, str(path), dynamo=True, opset_version=opset or max(net.opset, DYNAMO_OPSET),
                      input_names=list(net.inputs), dynamic_shapes=shapes, external_data=False, verbose=False)


def fixed_symbols(net, path):
    """{symbol: extent} of those that an exporter was to leave open and has fixed."""
    import onnx
    inputs = {i.name: i.type.tensor_type.shape.dim for i in onnx.load(path).graph.input}
    return {s: inputs[name][i].dim_value for name, axes in net.dynamic_axes().items() if name in inputs for i, s in axes.items()
            if inputs[name][i].dim_value > 0 and "+" not in s}


def to_onnx(torch, net, module, exporter, axes, path, opset=None):
    # The new exporter takes an extent of 1 for a constant, whatever it is told.
    args = arguments(torch, net, net.sizes[-1 if exporter == "dynamo" and axes else 0])
    names = list(net.inputs)
    if exporter == "dynamo":
        try:
            to_onnx_new(torch, net, module, args, path, open_shapes(torch, axes, names, False) if axes else None, opset)
        except torch.onnx.errors.OnnxExporterError:
            if not axes:
                raise
            to_onnx_new(torch, net, module, args, path, open_shapes(torch, axes, names, True), opset)
        return
    how = {"dynamo": False} if exporter == "script" else {}
    torch.onnx.export(module, args, str(path), opset_version=DEBIAN_OPSET if exporter == "debian" else opset or net.opset,
                      input_names=names, dynamic_axes={n: {i: s.replace("+", "_") for i, s in d.items()} for n, d in axes.items()}, **how)


def how(net, variant):
    """(exporter, open axes, opset if it is not the exporter's own) of a variant."""
    if variant == "loose":
        return "script", net.every_axis(), None
    if variant.startswith("opset"):
        opset = int(variant[len("opset"):])
        return "script" if net.script and opset <= SCRIPT_MAX_OPSET else "dynamo", net.dynamic_axes(), opset
    exporter, _, shapes = variant.partition("-")
    return exporter, net.dynamic_axes() if shapes == "dynamic" else {}, None


def make(net, variant, folder, part):
    import derive
    if variant in derive.TOOLS:
        derive.TOOLS[variant](net, derive.source(net, folder, variant), part)
        return
    import torch
    torch.set_num_threads(1)
    if hasattr(torch.backends, "mha"): # one op of torch's own that neither exporter knows
        torch.backends.mha.set_fastpath_enabled(False)
    exporter, axes, opset = how(net, variant)
    nets.plain_attention = opset is not None and opset < FUSED_ATTENTION_OPSET
    with torch.set_grad_enabled(exporter == "debian"): # whose torch leaves that op only where gradients are wanted
        to_onnx(torch, net, nets.build(torch, net), exporter, axes, part, opset)


def reason_of(error):
    """The line that says why: the new exporter buries it under a summary."""
    lines = [re.sub(r"\x1b\[\d+m", "", ln).strip() for ln in str(error).splitlines()]
    after = lines[lines.index("## Exception summary") + 1:] if "## Exception summary" in lines else lines
    return " ".join([ln for ln in after if ln][:2]) or "no reason given"


def one(net, variant, folder):
    """The file, or the reason why there is none."""
    final, refused = folder / f"{variant}.onnx", folder / f"{variant}.refused"
    part = folder / f"{variant}.part.onnx"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make(net, variant, folder, part)
    except Exception as e: # whatever an exporter raises
        traceback.print_exc()
        part.unlink(missing_ok=True)
        refused.write_text(f"{type(e).__name__}: {reason_of(e)}\n")
        return
    refused.unlink(missing_ok=True)
    if nets.has_open_shapes(variant):
        (folder / f"{variant}.fixed.json").write_text(json.dumps(fixed_symbols(net, part)))
    os.replace(part, final)


def main():
    folder, name, variants = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    net = nets.load()[name]
    folder.mkdir(parents=True, exist_ok=True)
    for v in variants:
        print(f"== {name} {v}", flush=True)
        one(net, v, folder)


if __name__ == "__main__":
    main()
