#!/usr/bin/env python3
"""Weights of more than 2 GB, as an initializer and as an attribute (onnx 6529, ORT 4424 and 12882): imported, built, run.

    tests/cli/large.py HONE

Needs 6 GB of disk for a moment; skipped where there is less.
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import onnx_bytes as ob

HONE = os.path.abspath(sys.argv[1])
ROWS, COLUMNS = 20000, 30000
LAST = 600 # a number that starts the last row, beyond 2^31 bytes


def hone(work, *args):
    r = subprocess.run([HONE, *map(str, args)], cwd=work, capture_output=True, text=True, timeout=900,
                       env={**os.environ, "HONE_CACHE_DIR": str(work / "cache")})
    if r.returncode:
        raise SystemExit(f"FAIL {args[0]} {args[1]}: status {r.returncode}: {r.stderr}")
    return json.loads(r.stdout.splitlines()[-1])


def model(as_attribute):
    w = ob.external("w", [ROWS, COLUMNS], "w.bin", 0, ROWS * COLUMNS * 4)
    constant = [ob.node("Constant", [], ["w"], value=w)] if as_attribute else []
    return ob.model([*constant, ob.node("Gather", ["w", "i"], ["y"])], [ob.value("i", [1], ob.INT64)], [ob.value("y", [1, COLUMNS])],
                    [] if as_attribute else [w])


def main(work):
    if shutil.disk_usage(work).free < 6 << 30:
        print("less than 6 GB of disk are free\nlarge: 0 passed, 0 failed, 2 skipped")
        return 77
    with open(work / "w.bin", "wb") as f: # a hole but for the last row
        f.truncate(ROWS * COLUMNS * 4)
        f.seek((ROWS - 1) * COLUMNS * 4)
        f.write(struct.pack("<2f", LAST, -1))
    (work / "i.raw").write_bytes(struct.pack("<q", ROWS - 1))
    for as_attribute in (False, True):
        (work / "m.onnx").write_bytes(model(as_attribute))
        hone(work, "build", "m.onnx", "-o", "m.hone", "--opt-level", 0, "--json")
        got = hone(work, "run", "m.hone", "--input", "i=i.raw", "--json")["outputs"][0]["values"]
        if got[:3] != [LAST, -1, 0]:
            raise SystemExit(f"FAIL the last row: {got}")
        (work / "m.hone").unlink()
    print("large: 2 passed, 0 failed, 0 skipped")
    return 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as d:
        sys.exit(main(pathlib.Path(d)))
