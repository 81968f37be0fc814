"""The `light` models of the onnx package: real architectures whose weights are constants, so that the files are small. Made into
case folders; the input is what onnx's own runner feeds them: 0, 1/n, 2/n, ... over n elements."""

import pathlib
import struct
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import fetch_models  # noqa: E402

PACKAGE, VERSION = "onnx", "1.23.2"
INSIDE = "onnx/backend/test/data/light/"
SHAPE = (1, 3, 224, 224) # of every one's image


def varint(n):
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0))
        n >>= 7
        if not n:
            return bytes(out)


def tensor(shape, values):
    """A TensorProto of float32 without a name: field 1 dims, 2 data_type, 9 raw_data."""
    raw = struct.pack(f"<{len(values)}f", *values)
    return b"".join(b"\x08" + varint(d) for d in shape) + b"\x10\x01" + b"\x4a" + varint(len(raw)) + raw


def ramp(shape):
    n = 1
    for d in shape:
        n *= d
    return tensor(shape, [i / n for i in range(n)])


def prepare(where):
    """Case folders under where/light; returns where. Errors: fetch_models.FetchError."""
    wheel = fetch_models.download_wheel(PACKAGE, VERSION, fetch_models.table.CACHE / "wheels")
    image = ramp(SHAPE)
    with zipfile.ZipFile(wheel) as z:
        for name in sorted(n for n in z.namelist() if n.startswith(INSIDE) and n.endswith(".onnx")):
            case = where / "light" / pathlib.Path(name).stem
            data = case / "test_data_set_0"
            data.mkdir(parents=True, exist_ok=True)
            (case / "model.onnx").write_bytes(z.read(name))
            (data / "input_0.pb").write_bytes(image)
            (data / "output_0.pb").write_bytes(z.read(name.removesuffix(".onnx") + "_output_0.pb"))
    return where
