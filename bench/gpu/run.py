#!/usr/bin/env python3
"""Build, verify and time engines on the GPU of this machine; one JSON object a model, a table at the end.

    run.py [--target sm_90a] [--out FILE] [--seconds N] [--limit SECONDS] [--no-race] [MODEL.onnx ...]

Beside this file stand the program, its worker, lib/ and models/ (scripts/gpu_kit.sh). Each step has a time limit of its own;
a step that fails is recorded with what it printed, and the next model follows.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent


def call(argv, timeout, before=()):
    """(exit status, stdout, the end of stderr, seconds) of the program, under another one where `before` names it."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(HERE / "lib"), "HONE_WORKER": str(HERE / "hone-worker"),
           "HONE_CACHE_DIR": os.environ.get("HONE_CACHE_DIR", "/tmp/hone-cache")}
    start = time.monotonic()
    try:
        r = subprocess.run([*before, str(HERE / "hone"), *map(str, argv)], env=env, capture_output=True, text=True, timeout=timeout)
        return r.returncode, r.stdout, r.stderr[-1500:], time.monotonic() - start
    except subprocess.TimeoutExpired as e:
        return 124, "", f"took longer than {e.timeout} s", time.monotonic() - start


def last_json(text):
    for line in [text, *reversed(text.strip().splitlines())]:
        try:
            return json.loads(line)
        except ValueError:
            continue
    return None


def step(row, name, argv, timeout, before=()):
    rc, out, err, seconds = call(argv, timeout, before)
    row[name] = {"status": rc, "seconds": round(seconds, 2), "result": last_json(out)}
    if rc != 0:
        row[name]["said"] = out[-1500:] + err  # compute-sanitizer reports on stdout
    return rc == 0


def one(model, args, work, sanitize):
    """First by the cost model alone, then with candidates raced on the GPU: the second must not hide what the first shows."""
    row = {"model": model.stem}
    for suffix, options in (("", ["--opt-level", "0"]), ("_raced", [])):
        engine = work / f"{model.stem}{suffix}.hone"
        if suffix and args.no_race:
            break
        build = ["build", model, "--target", args.target, "-o", engine, "--json", *options]
        if not step(row, "build" + suffix, build, 150):
            continue
        step(row, "build_warm" + suffix, build, 60)
        step(row, "verify" + suffix, ["verify", model, "--engine", engine, "--json"], 120)
        step(row, "bench" + suffix, ["bench", engine, "--duration", args.seconds, "--json"], 60)
        if sanitize and not suffix:
            step(row, "sanitize", ["run", engine], 120, ["compute-sanitizer", "--error-exitcode", "9"])
    return row


def summary(row):
    def state(name):
        s = row.get(name)
        return "-" if s is None else f"{s['seconds']:.1f}s" if s["status"] == 0 else f"FAILED({s['status']})"

    def p50(name):
        return ((row.get(name) or {}).get("result") or {}).get("p50_ms")
    return (f"{row['model']:20} build {state('build')} verify {state('verify')} p50 {p50('bench')} ms"
            f" | raced: build {state('build_raced')} verify {state('verify_raced')} p50 {p50('bench_raced')} ms")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("models", nargs="*", type=pathlib.Path)
    ap.add_argument("--target", default="sm_90a")
    ap.add_argument("--out", default=os.path.join(os.environ.get("OUT", "/tmp"), "gpu.json"))
    ap.add_argument("--seconds", default="2")
    ap.add_argument("--no-race", action="store_true", help="by the cost model alone")
    ap.add_argument("--limit", type=float, default=420, help="start no model after this many seconds")
    args = ap.parse_args()
    work, start = pathlib.Path("/tmp/hone-engines"), time.monotonic()
    work.mkdir(exist_ok=True)
    _, out, err, _ = call(["doctor", "--json"], 60)  # its status is about LLVM too, which is left out
    rows = [{"doctor": last_json(out) or err}]
    print(json.dumps(rows[0]), flush=True)
    sanitize = shutil.which("compute-sanitizer") is not None  # of the smallest model
    for model in args.models or sorted((HERE / "models").glob("*.onnx"), key=lambda p: p.stat().st_size):
        if time.monotonic() - start > args.limit:
            rows.append({"model": model.stem, "skipped": "out of time"})
            continue
        rows.append(one(model, args, work, sanitize))
        sanitize = False
        print(json.dumps(rows[-1]), flush=True)
        pathlib.Path(args.out).write_text(json.dumps(rows, indent=1))
    for row in rows[1:]:
        print(summary(row) if "skipped" not in row else f"{row['model']:24} skipped")
    return 0 if all(s.get("status", 0) == 0 for r in rows[1:] for s in r.values() if isinstance(s, dict)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
