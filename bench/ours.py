"""Our own program as the benchmarks call it: build, tune, reference outputs. docs/benchmarking.md fixes the answers."""

import json
import os
import pathlib
import subprocess
import time

import numpy as np

import contest

ROOT = contest.ROOT
HONE = pathlib.Path(os.environ.get("HONE_PROGRAM") or ROOT / "build" / "hone")


class HoneError(Exception):
    """The program failed; the text is its own error line."""


def call(args, timeout):
    """Run `hone ... --json`; the object that it printed on its last line."""
    cmd = [str(HONE), *map(str, args), "--json"]
    try:
        run = subprocess.run(cmd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise HoneError(f"hone {args[0]} took longer than {timeout:.0f} s") from None
    except OSError as e:
        raise HoneError(f"cannot run {HONE}: {e.strerror}; `make` builds it") from None
    try:
        reply = json.loads(contest.last_line(run.stdout) or "{}")
    except json.JSONDecodeError:
        reply = {}
    if run.returncode != 0:
        text = reply.get("error") or contest.last_line(run.stderr) or f"status {run.returncode}"
        if isinstance(text, dict):
            text = text.get("message", str(text))
        if run.returncode < 0:
            text = f"died of signal {-run.returncode}"
        raise HoneError(f"hone {args[0]}: {text}")
    return reply


def shape_args(model):
    """--shape for every input, unless the model is to stay dynamic or the input is a scalar."""
    if model.dynamic:
        return []
    out = []
    for name, dims in model.shapes().items():
        if dims:
            out += ["--shape", f"{name}={'x'.join(map(str, dims))}"]
    return out


def build(model, engine, threads, extra=(), timeout=600):
    """Build an engine; the program's answer with build_s measured from outside when it gives none."""
    pathlib.Path(engine).parent.mkdir(parents=True, exist_ok=True)
    t0 = time.monotonic()
    reply = call(["build", model.path, "-o", engine, "--threads", threads, *shape_args(model), *extra], timeout)
    reply.setdefault("build_s", time.monotonic() - t0)
    reply["engine_bytes"] = pathlib.Path(engine).stat().st_size
    return reply


def tune(model, engine, threads, budget_s, files, extra=()):
    """Tune for some seconds; answer holds route, trials, speedup."""
    given = [a for n, p in files.items() for a in ("--input", f"{n}={p}")]
    return call(["tune", model.path, "-o", engine, "--threads", threads, "--budget", budget_s, *shape_args(model),
                 *given, *extra], timeout=budget_s * 1.5 + 300)


def reference(model, files, folder, timeout=900):
    """Outputs of the model evaluated in float64: {name: array}."""
    folder = pathlib.Path(folder)
    given = [a for n, p in files.items() for a in ("--input", f"{n}={p}")]
    reply = call(["verify", model.path, *given, "--reference-out", folder], timeout)
    return {n: np.load(p) for n, p in reply["files"].items()}


def cached_reference(model, files, cache):
    """The float64 outputs, kept by model and inputs: slow to make and always the same."""
    import hashlib
    h = hashlib.sha256(model.path.read_bytes())
    for n in sorted(files):
        h.update(n.encode() + pathlib.Path(files[n]).read_bytes())
    store = pathlib.Path(cache) / f"{model.name}-{h.hexdigest()[:16]}.npz"
    if store.exists():
        with np.load(store) as z:
            return {n: z[n] for n in z.files}
    got = reference(model, files, store.with_suffix(""))
    part = store.with_suffix(".part.npz")
    np.savez(part, **got)
    os.replace(part, store)
    return got
