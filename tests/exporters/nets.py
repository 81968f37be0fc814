"""What an architecture of the exporter checks is, and the list of them all.

A net is a small configuration of a known architecture with seeded weights: the patterns that an exporter writes count, not the
size. The nets_*.py beside this file hold them, a file a library; nothing of torch is imported before a net is made.
"""

import dataclasses
import importlib
import zlib

# Of a net that is exported once more by other opsets than the exporters' own.
OPSETS = ("opset9", "opset11", "opset13", "opset21", "opset23")
plain_attention = False # whether nets are to be made without torch's fused attention
LIBRARIES = ("own", "torchvision", "transformers", "timm")


@dataclasses.dataclass(frozen=True)
class Net:
    """One architecture.

    inputs: name -> "dtype[dims] fill" as in bench/models.toml, with symbols among the dims; in the order of forward()'s.
    sizes: what the symbols are, a run each; static files have the extents of the first. No symbols: one run.
    script, dynamo, debian: exported by torch's TorchScript exporter, its new one, and Debian's torch 1.13.
    derive, tools_from: what other tools make of it (derive.py), of which exporter's file if there is one.
    """
    name: str
    library: str
    make: object
    inputs: dict
    sizes: tuple = ({},)
    script: bool = True
    dynamo: bool = True
    debian: bool = False
    derive: tuple = ()
    tools_from: str = "script"
    opset: int = 17
    runs: int = 1           # how often each size is run, with other values

    @property
    def seed(self):
        return zlib.crc32(self.name.encode())

    def dynamic_axes(self):
        """{input: {axis: symbol}} of the inputs that have any."""
        out = {}
        for name, text in self.inputs.items():
            axes = {i: d for i, d in enumerate(dims_of(text)) if not d.isdigit()}
            if axes:
                out[name] = axes
        return out

    def every_axis(self):
        """The same of all axes, fixed ones too."""
        return {name: {i: f"{name}_{i}" for i in range(len(dims_of(text)))} for name, text in self.inputs.items() if dims_of(text)}

    def feeds(self, size, run=0):
        """Seeded arrays of one size."""
        import models
        import numpy as np
        return {n: models._fill(np, with_dims(text, size), zlib.crc32(f"{self.name}/{n}/{run}".encode()))
                for n, text in self.inputs.items()}


def has_open_shapes(variant):
    """Whether the exporter was told to leave sizes open (tools leave what they find)."""
    return variant.endswith("-dynamic") or variant == "loose" or variant.startswith("opset")


def dims_of(text):
    """"f32[batch,3] normal(0, 1)" -> ["batch", "3"]."""
    return [d.strip() for d in text[text.index("[") + 1:text.index("]")].split(",") if d.strip()]


def with_dims(text, size):
    """The input's text with numbers for symbols. A symbol may be a sum: "past+seq"."""
    dims = [str(sum(int(size.get(t, t)) for t in d.split("+"))) for d in dims_of(text)]
    return f"{text[:text.index('[')]}[{','.join(dims)}]{text[text.index(']') + 1:]}"


class Library:
    """Collects the nets of one file."""

    def __init__(self, name):
        self.name, self.nets = name, []

    def net(self, name, inputs, sizes=({},), **options):
        """Decorator of a function that makes the module."""
        def keep(make):
            self.nets.append(Net(name, self.name, make, inputs, tuple(sizes), **options))
            return make
        return keep

    def add(self, name, make, inputs, sizes=({},), **options):
        self.net(name, inputs, sizes, **options)(make)


def load():
    """Every net, by name."""
    out = {}
    for lib in LIBRARIES:
        for n in importlib.import_module(f"nets_{lib}").lib.nets:
            assert n.name not in out, n.name
            out[n.name] = n
    for n in packaged():
        out.setdefault(n.name, n)
    return out


def packaged():
    """The files that packages of PyPI ship (bench/models.toml), by tf2onnx, Paddle, spox and others."""
    import models
    return [Net(m.name, "packages", None, m.inputs, script=False, dynamo=False, derive=("shipped",))
            for m in models.load() if m.source == "wheel"]


def settle_norms(torch, module):
    """Give batch norms statistics as training leaves them: untouched ones would be folded to nothing."""
    for m in module.modules():
        if isinstance(m, torch.nn.modules.batchnorm._BatchNorm) and m.running_var is not None:
            torch.nn.init.uniform_(m.running_var, 0.5, 1.5)
            torch.nn.init.normal_(m.running_mean, 0, 0.1)
            if m.affine:
                torch.nn.init.uniform_(m.weight, 0.8, 1.2)
                torch.nn.init.normal_(m.bias, 0, 0.1)


def wake(torch, module):
    """Give weights to what starts as nothing: heads of zeros, and scales that let a block add a millionth of what it computes."""
    with torch.no_grad():
        for name, p in module.named_parameters():
            if p.dim() >= 2 and not p.any():
                torch.nn.init.normal_(p, 0, 0.05)
            elif p.dim() >= 1 and "bias" not in name and p.abs().max() <= 1e-4:
                torch.nn.init.uniform_(p, 0.2, 0.8)


def build(torch, net):
    """The module, ready to be exported: the same weights every time."""
    torch.manual_seed(net.seed)
    module = net.make()
    settle_norms(torch, module)
    wake(torch, module)
    return module.eval()
