"""The table of bench/models.toml: which models there are, where their files lie and what they are fed.

Needs nothing but the standard library to list and locate; numpy only to make inputs.
"""

import dataclasses
import os
import pathlib
import re
import tomllib
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("HONE_FETCH_DIR") or ROOT / ".cache")
MODELS = CACHE / "models"
LOCAL = pathlib.Path(os.environ.get("HONE_LOCAL_MODELS") or ROOT.parent / "shared" / "models")

NUMPY_NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32",
               "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
               "bool": "bool"}


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    what: str
    source: str             # "wheel", "export" or "local"
    path: pathlib.Path      # where the .onnx file is, or will be
    inputs: dict            # name -> "dtype[dims] fill"
    sets: tuple             # "demo", "smoke", "bench"
    package: str = ""       # wheel: PyPI name, version, path inside, hash
    version: str = ""
    member: str = ""
    sha256: str = ""
    dynamic: bool = False   # the shapes stay open: neither hone nor a peer is told them before the run

    def shapes(self):
        """{input: dims} as given to a compiler that may specialise on them."""
        return {n: parse_input(text)[1] for n, text in self.inputs.items()}


def load(path=None):
    """Every model of the table, in its order."""
    table = tomllib.loads((path or ROOT / "bench" / "models.toml").read_text())
    out = []
    for wheel in table.get("wheel", []):
        for m in wheel["model"]:
            out.append(Model(name=m["name"], what=m["what"], source="wheel", path=MODELS / f"{m['name']}.onnx",
                             inputs=m["inputs"], sets=tuple(m["sets"]), package=wheel["package"],
                             version=wheel["version"], member=m["member"], sha256=m["sha256"],
                             dynamic=m.get("dynamic", False)))
    for m in table.get("export", []):
        out.append(Model(name=m["name"], what=m["what"], source="export", path=MODELS / f"{m['name']}.onnx",
                         inputs=m["inputs"], sets=tuple(m["sets"])))
    for m in table.get("local", []):
        out.append(Model(name=m["name"], what=m["what"], source="local", path=LOCAL / m["path"],
                         inputs=m["inputs"], sets=tuple(m["sets"])))
    return out


def select(names=None, in_set=None):
    """Models by name (a list; an unknown name is an error) or by set, all of them by default."""
    models = load()
    if names:
        known = {m.name: m for m in models}
        unknown = [n for n in names if n not in known]
        if unknown:
            raise SystemExit(f"error: no model named {', '.join(unknown)}; known: {', '.join(known)}")
        return [known[n] for n in names]
    return [m for m in models if in_set is None or in_set in m.sets]


def parse_input(text):
    """"f32[1,3] normal(0, 1)" -> ("f32", (1, 3), "normal", (0.0, 1.0))."""
    m = re.fullmatch(r"(\w+)\[([\d,\s]*)\]\s+(\w+)(?:\(([^)]*)\))?", text)
    if not m or m[1] not in NUMPY_NAMES:
        raise ValueError(f'input "{text}" is not "dtype[dims] fill"')
    dims = tuple(int(d) for d in m[2].split(",") if d.strip())
    args = tuple(float(a) for a in m[4].split(",")) if m[4] else ()
    return m[1], dims, m[3], args


def make_inputs(model):
    """Seeded arrays for a model: the same on every machine and for every contestant."""
    import numpy as np
    return {name: _fill(np, text, zlib.crc32(f"{model.name}/{name}".encode()))
            for name, text in model.inputs.items()}


def save_inputs(model, folder):
    """Write the inputs as .npy files; returns {name: path}."""
    import numpy as np
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for i, (name, a) in enumerate(make_inputs(model).items()):
        files[name] = str(folder / f"input_{i}.npy")
        np.save(files[name], a)
    return files


def _fill(np, text, seed):
    dtype, dims, fill, args = parse_input(text)
    rng = np.random.default_rng(seed)
    if fill == "normal":
        a = rng.normal(args[0], args[1], dims)
    elif fill == "uniform":
        a = rng.uniform(args[0], args[1], dims)
    elif fill == "int":
        a = rng.integers(int(args[0]), int(args[1]), dims, endpoint=True)
    elif fill == "const":
        a = np.full(dims, args[0])
    elif fill == "audio":
        a = _audio(np, rng, dims)
    elif fill == "image":
        a = _image(np, rng, dims)
    else:
        raise ValueError(f'input "{text}" names an unknown fill')
    return np.asarray(a).astype(NUMPY_NAMES[dtype], order="C")


def _audio(np, rng, dims):
    """A few voiced harmonics in a little noise, about 0.3 at the peak, at 16 kHz."""
    n = int(np.prod(dims))
    t = np.arange(n) / 16000.0
    base = rng.uniform(90, 220)
    a = sum(np.sin(2 * np.pi * base * k * t + rng.uniform(0, 6.28)) / k for k in range(1, 9))
    return (0.12 * a + 0.01 * rng.normal(size=n)).reshape(dims)


def _image(np, rng, dims):
    """Smooth gradients and edges in [-1, 1], with a little noise: last two dims are the picture."""
    h, w = dims[-2:]
    y, x = np.mgrid[0:h, 0:w]
    a = np.empty(dims)
    for i in np.ndindex(*dims[:-2]):
        fy, fx = rng.uniform(2, 9, 2)
        wave = np.sin(2 * np.pi * fy * y / h + rng.uniform(0, 6)) * np.sin(2 * np.pi * fx * x / w)
        a[i] = 0.6 * np.sign(wave) * np.abs(wave) ** 0.3 + 0.3 * wave + 0.05 * rng.normal(size=(h, w))
    return np.clip(a, -1, 1)
