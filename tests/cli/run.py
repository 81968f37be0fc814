#!/usr/bin/env python3
"""The program as a script uses it: every subcommand on a model of one Relu, with files, JSON and exit statuses.

    tests/cli/run.py HONE
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import onnx_bytes

HONE = os.path.abspath(sys.argv[1])
results = []


def npy(values):
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<6f", *values)


def hone(*args, stdin=None, **env):
    return subprocess.run([HONE, *map(str, args)], input=stdin or "", capture_output=True, text=True, timeout=120,
                          env={**os.environ, **env})


def trtexec_on_a_gpu(work):
    """Scripts for trtexec mean the GPU where there is one, in the precision that they ask for."""
    build = pathlib.Path(HONE).resolve().parent.parent
    sim = str(build / "tests" / "cuda_sim" / "libcuda_sim.so")
    gpu = {"HONE_CUDA_DRIVER": sim, "HONE_NVRTC": sim, "HONE_CUBLASLT": sim, "HONE_CUDNN": sim, "HONE_CACHE_DIR": str(work / "gpu"),
           "HONE_WORKER": str(build / "src" / "codegen" / "hone-worker")} # of the same build: sanitizers do not mix
    model = work / "encoder.onnx"
    model.write_bytes(onnx_bytes.encoder(4, 16))
    args = ["trtexec", f"--onnx={model}", f"--saveEngine={work / 'g.hone'}", "--duration=0", "--warmUp=0", "--iterations=1",
            "--builderOptimizationLevel=0"]
    r = hone(*args, "--best", **gpu)
    check("trtexec on a GPU", r.returncode == 0 and "for the GPU (sm_90a)" in r.stderr and "--noTF32" in r.stderr
          and "ignoring" not in r.stderr, r)
    about = last(hone("inspect", work / "g.hone", "--json"))
    check("its route", about["target"] == "sm_90a" and {"-math:tf32=1", "-math:half=f16"} <= set(about["route"].split()), r)
    r = hone(*args, "--noTF32", "--setBuildRoute=-math:half=f16", "--bf16", **gpu)
    route = last(hone("inspect", work / "g.hone", "--json"))["route"]
    check("what is asked for goes first", "math:half=f16" in route and "tf32" not in route, r)
    r = hone(*args, "--target=host", "--bf16", **gpu)
    check("or the processor", r.returncode == 0 and "ignoring 16 bits" in r.stderr and "GPU" not in r.stderr
          and last(hone("inspect", work / "g.hone", "--json"))["target"] == "host", r)
    r = hone("build", model, "-o", work / "g.hone", "--target", "gpu", "--opt-level", 0, HONE_CUDA_DRIVER="/nowhere")
    check("no GPU", r.returncode != 0 and "CUDA" in r.stderr, r)


def last(run):
    return json.loads(run.stdout.strip().splitlines()[-1])


def check(name, good, run=None):
    results.append(bool(good))
    if not good:
        print(f"FAIL {name}", run.stdout[-300:] + run.stderr[-300:] if run else "")


def floats(path):
    return list(struct.unpack("<6f", pathlib.Path(path).read_bytes()[-24:]))


def main(work):
    model, engine, cache = work / "m.onnx", work / "m.hone", ["--cache-dir", work / "cache"]
    x, want = [-1, 2, -3, 4, -5, 6], [0, 2, 0, 4, 0, 6]
    model.write_bytes(onnx_bytes.relu())
    (work / "x.npy").write_bytes(npy(x))
    (work / "x.raw").write_bytes(struct.pack("<6f", *x))

    r = hone("build", model, "-o", engine, *cache, "--json")
    check("build", r.returncode == 0 and last(r)["nodes"] == 1 and engine.exists(), r)
    r = hone("build", model, "-o", engine, *cache, "--timing-cache", work / "new" / "times")
    check("build makes the timing cache's folder", r.returncode == 0 and (work / "new" / "times").exists(), r)
    r = hone("build", model, "-o", work / "none.hone", *cache, "--timing-cache", model / "times")
    check("build names a timing cache that cannot be", r.returncode == 3 and "m.onnx" in r.stderr
          and not (work / "none.hone").exists(), r)
    for file in ("x.npy", "x.raw"):
        out = work / ("out_" + file)
        r = hone("run", engine, "--input", f"x={work / file}", "-o", out)
        check(f"run {file}", r.returncode == 0 and floats(next(out.iterdir())) == want, r)
    (work / "short.raw").write_bytes(b"1234")
    r = hone("run", engine, "--input", f"x={work / 'short.raw'}")
    check("run refuses a short file", r.returncode == 3 and "less than the 24 bytes" in r.stderr, r)
    r = hone("bench", engine, "--iterations", 20, "--json")
    check("bench", r.returncode == 0 and last(r)["runs"] == 20 and last(r)["p50_ms"] <= last(r)["p99_ms"], r)
    r = hone("bench", engine, "--iterations", 5, "--streams", 2, "--json")
    check("bench streams", r.returncode == 0 and last(r)["runs"] == 10, r)
    r = hone("verify", model, "--engine", engine, "--json")
    check("verify", r.returncode == 0 and last(r)["outputs"][0]["rel_l2"] == 0, r)
    r = hone("verify", model, "--input", f"x={work / 'x.npy'}", "--reference-out", work / "ref", "--json")
    check("references", r.returncode == 0 and list(last(r)["files"]) == ["y"], r)
    for command in (["inspect", engine], ["inspect", model], ["explain", model, *cache], ["explain", engine], ["doctor"]):
        r = hone(*command)
        check(" ".join(map(str, command[:2])), r.returncode == 0 and r.stdout, r)
    check("knobs", "region:chain" in hone("knobs", "--names").stdout.split())
    check("no such knob", hone("knobs", "nope").returncode == 2)
    check("one knob", hone("knobs", "region:chain").stdout.startswith("-region:chain=1  (0|1), may differ by node"))
    r = hone("knobs", "--stats", model, *cache, "--json")
    rows = {k["name"]: k for k in last(r)["knobs"]} if r.returncode == 0 else {}
    check("statistics of knobs", rows.get("pointwise:chunk", {}).get("engines", 0) > 0 and rows["gemm:mr"]["models"] == 0
          and "core:threads" not in rows, r)
    check("statistics of nothing", hone("knobs", "--stats").returncode == 2)
    check("statistics of no model", hone("knobs", "--stats", work / "none.onnx").returncode != 0)
    check("no such command", hone("nope").returncode == 2)
    r = hone("build", work / "none.onnx", "--json")
    check("missing model", r.returncode == last(r)["error"]["status"] != 0, r)

    r = hone("trtexec", f"--onnx={model}", "--fp16", f"--saveEngine={work / 't.hone'}", f"--loadInputs=x:{work / 'x.raw'}",
             "--iterations=10", "--memPoolSize=workspace:64")
    check("trtexec", r.returncode == 0 and "&&&& PASSED" in r.stdout and "ignoring 16 bits" in r.stderr
          and (work / "t.hone").exists(), r)
    trtexec_on_a_gpu(work)
    r = hone("trtexec", f"--loadEngine={work / 'none.hone'}")
    check("trtexec fails", r.returncode != 0 and "&&&& FAILED" in r.stdout, r)

    lines = [{"cmd": "block", "seconds": 0.01}, {"cmd": "load", "engine": str(engine), "threads": 1},
             {"cmd": "inputs", "files": {"x": str(work / "x.npy")}}, {"cmd": "block", "seconds": 0.01},
             {"cmd": "outputs", "dir": str(work / "w")}, {"cmd": "quit"}]
    r = hone("bench", "--worker", stdin="".join(json.dumps(c) + "\n" for c in lines))
    got = [json.loads(s) for s in r.stdout.splitlines()]
    check("worker answers", [a["ok"] for a in got] == [False, True, True, True, True], r)
    check("worker outputs", got[-1]["ok"] and floats(got[-1]["files"]["y"]) == want and got[3]["times_ns"], r)
    lines = [{"engine": str(work / "1.hone"), "route": ""}, {"engine": str(work / "2.hone"), "route": "-no:such=1"}, {"route": ""},
             {"engine": str(work / "3.hone"), "route": "", "draft": True}]
    r = hone("build", model, "--worker", stdin="".join(json.dumps(c) + "\n" for c in lines))
    got = [json.loads(line) for line in r.stdout.splitlines()]
    check("building worker", r.returncode == 0 and len(got) == 4 and got[0]["payload"] == got[3]["payload"]
          and "no:such" in got[1]["error"]["message"] and got[2]["error"]["status"] == 2 and got[3]["kernels_compiled"] == 0
          and "runners_up" in got[0] and (work / "3.hone").exists(), r)


with tempfile.TemporaryDirectory() as d:
    main(pathlib.Path(d))
print(f"{sum(results)} passed, {results.count(False)} failed, 0 skipped")
sys.exit(0 if all(results) else 1)
