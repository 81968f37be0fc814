"""The model builder of onnxruntime-genai: a decoder's graph written op by op from its weights, without tracing.

Its Python part is taken from an environment of its own (peers.py, genai); torch, transformers and onnx are the exporters'.
"""

import json
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "scripts"))


def builder():
    import peers
    found = list((peers.CACHE / "peers" / "genai").glob("lib/python*/site-packages/onnxruntime_genai/models"))
    sys.path.append(str(found[0]))
    import builder as module
    return module


def without_runtime_files(module):
    """What its runtime needs beside the model, a tokenizer among it, is not written."""
    import builders
    classes = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, builders.base.Model)]
    for c in {*classes, builders.base.Model}:
        for name in ("make_genai_config", "save_processing"):
            if name in vars(c):
                setattr(c, name, lambda self, *args, **kwargs: None)


def input_names(path):
    """{the file's input: [the net's, dtype]}: past_key_values.0.key is past_key_0."""
    import onnx
    out = {}
    for i in onnx.load(path, load_external_data=False).graph.input:
        kind, *rest = i.name.split(".")
        of = f"past_{rest[1]}_{rest[0]}" if kind == "past_key_values" else i.name
        out[i.name] = [of, onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type).name]
    return out


def tool(precision, provider):
    def make(net, src, dst):
        import nets
        import onnx
        import torch
        module = builder()
        without_runtime_files(module)
        model = nets.build(torch, net).m
        with tempfile.TemporaryDirectory() as folder:
            model.config.architectures = [type(model).__name__]
            model.config._name_or_path = folder
            model.save_pretrained(folder)
            out = pathlib.Path(folder) / "out"
            module.create_model(None, folder, str(out), precision, provider, str(out / "cache"),
                                hf_details={"extra_kwargs": {}, "hf_name": folder, "hf_config": model.config})
            onnx.save(onnx.load(out / "model.onnx"), str(dst))
            shutil.rmtree(out)
        final = dst.with_name(dst.name.replace(".part.onnx", ".inputs.json"))
        final.write_text(json.dumps(input_names(dst)))
    return make
