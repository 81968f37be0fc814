#!/usr/bin/env python3
"""Make the Python environments of the benchmarks: one for our own scripts, one for each peer.

Each is a venv under .cache/peers/<name> with the pinned packages of bench/requirements/<name>.txt. One that is
complete and matches its list is left alone. Peers never share an environment, so that none sees another's libraries.
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import venv

import cuda_absent

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("HONE_FETCH_DIR") or ROOT / ".cache")
LISTS = ROOT / "bench" / "requirements"
PROBE = {"tools": "numpy", "ort": "onnxruntime", "openvino": "openvino", "fuzz": "onnx, onnxruntime",
         "exporters": "torch, onnx, onnxscript, onnxruntime",
         # Its Python part alone is used, in the environment of the exporters.
         "genai": "importlib.metadata as m; m.version('onnxruntime-genai')"}
ON_REQUEST = {"fuzz", "exporters", "genai"} # no peers: made when named


def python_of(name):
    """The interpreter of an environment, whether or not it exists yet."""
    return CACHE / "peers" / name / "bin" / "python"


def want_stamp(name):
    text = (LISTS / f"{name}.txt").read_bytes() + sys.version.encode()
    return hashlib.sha256(text).hexdigest()


def is_ready(name):
    stamp = CACHE / "peers" / name / ".complete"
    return stamp.exists() and stamp.read_text() == want_stamp(name) and python_of(name).exists()


def make(name, quiet=False):
    """Make or remake one environment; returns None, or why it could not be made."""
    if is_ready(name):
        return None
    where = CACHE / "peers" / name
    if not quiet:
        print(f"making environment {name} in {where.relative_to(CACHE.parent)}", flush=True)
    shutil.rmtree(where, ignore_errors=True)
    where.parent.mkdir(parents=True, exist_ok=True)
    try:
        venv.create(where, with_pip=True, symlinks=True)
    except (subprocess.CalledProcessError, OSError) as e:
        return f"{name}: cannot make a venv ({e}); on Debian, scripts/deps.sh demo installs python3-venv"
    pip = [str(python_of(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
           "--only-binary=:all:", "-r", str(LISTS / f"{name}.txt")]
    run = subprocess.run(pip, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if run.returncode != 0:
        last = (run.stderr.strip() or "pip said nothing").splitlines()[-1]
        return f"{name}: pip could not install {LISTS.name}/{name}.txt: {last}"
    for torch_libs in where.glob("lib/python*/site-packages/torch/lib"):
        cuda_absent.make(torch_libs)
    probe = subprocess.run([str(python_of(name)), "-c", f"import {PROBE[name]}"], capture_output=True, text=True)
    if probe.returncode != 0:
        return f"{name}: {PROBE[name]} was installed but does not import: {probe.stderr.strip().splitlines()[-1]}"
    (where / ".complete").write_text(want_stamp(name))
    return None


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("names", nargs="*", help=f"environments to make: {', '.join(PROBE)} (default: all)")
    ap.add_argument("--list", action="store_true", help="say which are ready")
    args = ap.parse_args()
    names = args.names or [n for n in PROBE if n not in ON_REQUEST]
    for n in names:
        if n not in PROBE:
            ap.error(f"no environment named {n}; known: {', '.join(PROBE)}")
    if args.list:
        for n in names:
            print(f"{n:10} {'ready' if is_ready(n) else 'absent'}")
        return 0
    errors = [e for e in (make(n) for n in names) if e]
    for e in errors:
        print(f"error: {e}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
