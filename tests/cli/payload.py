#!/usr/bin/env python3
"""The same model, route, target, timing cache and Hone give the same payload: whatever the machine, the moment and the place.

    tests/cli/payload.py HONE [MODEL.onnx ...]

Without models, small graphs of every kind of region.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import onnx_bytes

HONE = os.path.abspath(sys.argv[1])
results = []


def build(model, *args, work, env=None, cpus=None, cwd=None, prefix=()):
    """The payload of one build, or None with its complaint printed."""
    out = work / "e.hone"
    argv = [*prefix, HONE, "build", str(model), "-o", str(out), *map(str, args), "--json"]
    pin = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
    r = subprocess.run(argv, capture_output=True, text=True, timeout=900, env={**os.environ, **(env or {})}, cwd=cwd,
                       preexec_fn=pin)
    if r.returncode:
        print(f"  {' '.join(argv)}: status {r.returncode}: {r.stdout[-300:]}{r.stderr[-300:]}")
        return None
    return json.loads(r.stdout.strip().splitlines()[-1])["payload"]


def same(name, payloads):
    """One check: every payload there, and all equal; payloads: what was varied -> digest."""
    good = None not in payloads.values() and len(set(payloads.values())) == 1
    results.append(good)
    if not good:
        print(f"FAIL {name}: " + ", ".join(f"{k} {v}" for k, v in payloads.items()))


class Load:
    """Other work on the machine while something is timed."""

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", "while True: pass"])

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def foreign(model, work, route):
    """A named target without a timing cache: nothing of this machine may leak in."""
    one_cpu = {min(os.sched_getaffinity(0))}
    fixed = ["--target", "x86-64-v3", "--frozen", "--timing-cache", work / "none", *route]
    warm = ["--cache-dir", work / "kernels"]
    got = {"plain": build(model, *fixed, *warm, work=work)}
    for mask in ("avx2", "scalar"):
        got[mask] = build(model, *fixed, *warm, work=work, env={"HONE_CPU_FEATURES": mask})
    got["one core, no kernels kept"] = build(model, *fixed, "--cache-dir", work / "other", work=work, cpus=one_cpu)
    got["another folder"] = build(model.name, *fixed, *warm, work=work, cwd=model.parent)
    got["memory not zero"] = build(model, *fixed, *warm, work=work, env={"MALLOC_PERTURB_": "165", "PAD": "x" * 5000})
    got["a C library without FMA"] = build(
        model, *fixed, *warm, work=work,
        env={"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2,-AVX2_Usable,-FMA_Usable,-AVX512F"})
    if shutil.which("setarch"):
        got["fixed addresses"] = build(model, *fixed, *warm, work=work, prefix=("setarch", "-R"))
    same(f"{model.stem}: x86-64-v3 {' '.join(route)}", got)


def measured(model, work, target, route):
    """One timing cache: what was measured once stands."""
    fixed = ["--threads", 1, "--timing-cache", work / f"times-{target}", "--cache-dir", work / "kernels", "--target", target,
             *route]
    got = {"cold": build(model, *fixed, work=work), "warm": build(model, *fixed, work=work)}
    with Load():
        got["warm, under load"] = build(model, *fixed, work=work)
    got["frozen"] = build(model, *fixed, "--frozen", work=work)
    if target != "host":
        got["frozen, without the features"] = build(model, *fixed, "--frozen", work=work, env={"HONE_CPU_FEATURES": "scalar"})
    same(f"{model.stem}: measured, {target} {' '.join(route)}", got)


def by_the_model(model, work):
    """Ranked without a clock: this machine's own peaks are no input either until a timing cache holds them."""
    args = ["--cache-dir", work / "kernels", "--timing-cache", work / "none"]
    got = {i: build(model, *args, "--frozen", work=work) for i in range(2)}
    with Load():
        got["under load"] = build(model, *args, "--frozen", work=work)
    same(f"{model.stem}: frozen, this machine", got)


def at_once(model, work):
    """Builds that share a cold cache may choose differently; afterwards there is one answer."""
    args = ["--threads", 1, "--timing-cache", work / "shared", "--cache-dir", work / "kernels"]
    folders = [work / f"at{i}" for i in range(3)]
    for f in folders:
        f.mkdir(exist_ok=True)
    threads = [threading.Thread(target=build, args=(model, *args), kwargs={"work": f}) for f in folders]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same(f"{model.stem}: after builds at once", {i: build(model, *args, work=work) for i in range(2)})


def a_kernel_that_kills_its_compiler(model, work):
    """It costs its candidate, for as long as the timing cache stands; a build that does not measure takes the next one."""
    worker = pathlib.Path(HONE).resolve().parent.parent / "src/codegen/hone-worker"
    worker = os.environ.get("HONE_WORKER", str(worker))
    env = {"HONE_WORKER": str(pathlib.Path(__file__).resolve().parent / "faulty_worker.py"), "REAL_WORKER": worker,
           "DIES_OF": "conv_f32_direct"}
    args = ["--threads", 1, "--timing-cache", work / "dies", "--cache-dir", work / "kernels-of-the-dying"]
    whole = build(model, *args[:2], "--timing-cache", work / "whole", "--cache-dir", work / "kernels", work=work)
    got = {"dying": build(model, *args, work=work, env=env), "well again": build(model, *args, work=work),
           "frozen": build(model, *args, "--frozen", work=work)}
    same(f"{model.stem}: a failure is remembered", got)
    frozen = {i: build(model, "--frozen", "--timing-cache", work / "none", "--cache-dir", work / f"none{i}", work=work, env=env)
              for i in range(2)}
    same(f"{model.stem}: the next candidate", frozen)
    results.append(whole not in got.values())
    if not results[-1]:
        print("FAIL the kernel that dies was not the one to take: this says nothing")


def main(work):
    models = [pathlib.Path(m).resolve() for m in sys.argv[2:]]
    for name, make in onnx_bytes.GRAPHS.items() if not models else ():
        models.append(work / f"{name}.onnx")
        models[-1].write_bytes(make())
    for m in models:
        here = work / m.stem
        here.mkdir()
        foreign(m, here, ["--set", "-math:winograd=1"])
        by_the_model(m, here)
        measured(m, here, "host", ["--set", "-math:winograd=1"])
        measured(m, here, "x86-64-v3", [])
    at_once(models[-1], work)
    for m in models:
        if m.stem == "convolutions":
            a_kernel_that_kills_its_compiler(m, work)


with tempfile.TemporaryDirectory() as d:
    main(pathlib.Path(d))
print(f"{sum(results)} passed, {results.count(False)} failed, 0 skipped")
sys.exit(0 if all(results) else 1)
