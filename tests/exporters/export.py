"""Export architectures to .cache/exporters/NET/VARIANT.onnx; run by run.py in the exporters' environment or under Debian's Python.

    export.py FOLDER NET [VARIANT ...]

A variant is EXPORTER-SHAPES, "script-dynamic", or a tool of derive.py. What an exporter refuses leaves VARIANT.refused with the
reason: that is no fault of ours, but the table says it.
"""

import os
import pathlib
import sys
import traceback
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "bench")]
import nets  # noqa: E402

DEBIAN_OPSET = 16
DYNAMO_OPSET = 20


def arguments(torch, net):
    return tuple(torch.from_numpy(a) for a in net.feeds(net.sizes[0]).values())


def to_onnx(torch, net, module, exporter, dynamic, path):
    args, names, axes = arguments(torch, net), list(net.inputs), net.dynamic_axes() if dynamic else {}
    if exporter == "dynamo":
        shapes = tuple(axes.get(n) for n in names) if dynamic else None
        # A sum of symbols is what the exporter finds by itself.
        named = [{i: torch.export.Dim.DYNAMIC if "+" in s else s for i, s in d.items()} if d else None for d in shapes or ()]
        torch.onnx.export(module, args, str(path), dynamo=True, opset_version=max(net.opset, DYNAMO_OPSET), input_names=names,
                          dynamic_shapes=tuple(named) if dynamic else None, external_data=False, verbose=False)
        return
    how = {"dynamo": False} if exporter == "script" else {}
    torch.onnx.export(module, args, str(path), opset_version=DEBIAN_OPSET if exporter == "debian" else net.opset, input_names=names,
                      dynamic_axes={n: {i: s.replace("+", "_") for i, s in d.items()} for n, d in axes.items()}, **how)


def make(net, variant, folder, part):
    import derive
    exporter, _, shapes = variant.partition("-")
    if exporter in derive.TOOLS:
        derive.TOOLS[exporter](net, derive.source(net, folder), part)
        return
    import torch
    torch.set_num_threads(1)
    with torch.no_grad():
        to_onnx(torch, net, nets.build(torch, net), exporter, shapes == "dynamic", part)


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
        text = next((ln.strip() for ln in str(e).splitlines() if ln.strip()), "no reason given")
        refused.write_text(f"{type(e).__name__}: {text}\n")
        return
    refused.unlink(missing_ok=True)
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
