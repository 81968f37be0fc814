#!/usr/bin/env python3
"""The tests' kernels, graphs, ONNX's node cases and real models on the NVIDIA GPU of this machine; one JSON, one closing line.

Suites, one after another, each on every core:

  kernels      cases of the unit tests that try every tactic at several points, on the GPU in place of the interpreter
  units        cases of the unit tests that build graphs, on the driver in place of the simulated one
  conformance  ONNX node cases: against the suite's outputs (files); against our evaluator, by the noise that float64 shows
               (evaluation); against the same op spelled out in simpler ops (twins); the first with candidates raced (raced)
  models       real models: built by default, candidates raced, and compared with float64 evaluation
  memcheck     kernels under compute-sanitizer; also racecheck, synccheck and initcheck (of units: whole engines)

Programs come from a build folder, or stand beside this tree as scripts/gpu_kit.sh --tests puts them for a machine that cannot build.
"""

import argparse
import concurrent.futures
import dataclasses
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
import verdicts  # noqa: E402  (beside this file)

sys.path.insert(0, str(ROOT / "tests" / "conformance"))
conformance = importlib.import_module("run")

KERNELS = ("gpu_tactics", "tactic_fast")
UNITS = ("tactic_every", "public_bugs", "build")
WAYS = {"files": [], "evaluation": ["--self", "--loose"], "raced": ["--opt-level", "-1"]}


@dataclasses.dataclass
class Tally:
    """What became of a suite's cases."""
    passed: int = 0
    failures: list = dataclasses.field(default_factory=list)  # {case, reason}
    skipped: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)     # of cases that passed
    seconds: float = 0
    slowest: list = dataclasses.field(default_factory=list)   # (seconds, case)

    def add(self, case, verdict, reason, seconds=0.0):
        if verdict == "pass":
            self.passed += 1
            self.notes += [{"case": case, "reason": reason}] if reason else []
        else:
            (self.skipped if verdict == "skip" else self.failures).append({"case": case, "reason": reason})
        self.slowest = sorted([*self.slowest, (round(seconds, 2), case)], reverse=True)[:12]

    def closing(self, name):
        return f"{name}: {self.passed} passed, {len(self.failures)} failed, {len(self.skipped)} skipped in {self.seconds:.1f} s"


@dataclasses.dataclass
class Place:
    """Where programs, libraries and cases are: the kit's folders, or a build's."""
    program: pathlib.Path
    worker: pathlib.Path
    tests: pathlib.Path
    cases_program: pathlib.Path
    lib: pathlib.Path
    models: pathlib.Path

    @staticmethod
    def find(build):
        if (ROOT / "bin").is_dir():
            b = ROOT / "bin"
            return Place(ROOT / "hone", ROOT / "hone-worker", b, b / "conformance_cases", ROOT / "lib", ROOT / "models")
        return Place(build / "cli/hone", build / "src/codegen/hone-worker", build / "tests",
                     build / "tests/conformance/conformance_cases", build / "src/api", ROOT / ".cache/models")

    def env(self, target):
        return {**os.environ, "LD_LIBRARY_PATH": str(self.lib), "HONE_WORKER": str(self.worker), "HONE_TEST_TARGET": target,
                "HONE_CACHE_DIR": os.environ.get("HONE_CACHE_DIR", "/tmp/hone-cache"), "HONE_TEST_TIMEOUT": "120"}


def call(argv, env, timeout):
    """(exit status, stdout and stderr)."""
    try:
        r = subprocess.run(list(map(str, argv)), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=timeout)
        return r.returncode, r.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as e:
        return 124, (e.stdout or b"").decode(errors="replace") + f"\ntook longer than {timeout} s"


def unit_jobs(programs, place, env, args, before=(), judge=verdicts.of_case, step=1):
    """[(case, function that gives (verdict, reason))] of test programs' cases, every step-th; before: a program
    that each runs under, in one process."""
    jobs = []
    for program in programs:
        exe = place.tests / f"test_{program}"
        rc, out = call([exe, "--list"], env, 30)
        if rc != 0:
            jobs.append((program, lambda out=out: ("fail", out[-400:])))
            continue
        some = [n for n in out.split() if args.only in f"{program}.{n}"][::step]
        jobs += [(f"{program}.{n}", lambda exe=exe, n=n: judge(*call([*before, exe, "--case", n, *(["--no-fork"] if before else [])], env, 150), n)) for n in some]
    return jobs


def model_jobs(place, env, args):
    """Real models: built as `hone build` does by default, then verified against float64; the largest first."""
    return [(m.stem, lambda m=m: model_verdict(place, env, args, m)) for m in sorted(place.models.glob("*.onnx"), key=lambda p: -p.stat().st_size)
            if args.only in m.name and m.stat().st_size <= args.largest_model << 20]


def model_verdict(place, env, args, model):
    with tempfile.TemporaryDirectory() as work:
        engine = pathlib.Path(work) / "engine.hone"
        for step in (["build", model, "--target", args.target, "-o", engine], ["verify", model, "--engine", engine]):
            rc, out = call([place.program, *step], env, 200)
            if rc != 0:
                return "fail", f"hone {step[0]}: {out[-1200:]}"
    return "pass", out.strip().splitlines()[-1] if out.strip() else ""


def run_jobs(jobs, n_at_once, deadline):
    """Tally of jobs on threads; what does not start before the deadline is skipped by that name."""
    tally, lock, start = Tally(), threading.Lock(), time.monotonic()

    def one(job):
        case, fn = job
        began = time.monotonic()
        verdict, reason = ("skip", "out of time") if began > deadline else fn()
        with lock:
            tally.add(case, verdict, reason, time.monotonic() - began)

    with concurrent.futures.ThreadPoolExecutor(n_at_once) as pool:
        list(pool.map(one, jobs))
    tally.seconds = time.monotonic() - start
    return tally


def conformance_suites(folder):
    """Suites of case folders, as scripts/gpu_kit.sh packs them, or as Debian has them."""
    debian = folder / "debian" if (folder / "debian").is_dir() else conformance.DEBIAN
    suites = [conformance.Suite("libonnx-testdata", "", debian, ["node", "pytorch-converted", "pytorch-operator", "simple"], "expected.txt")]
    if (folder / "newest").is_dir():
        suites.append(conformance.Suite("newest", "newest/", folder / "newest", ["node"], "expected_newest.txt"))
    return suites


def listed_cases():
    """{case: reason} over all lists of cases that do not pass, with their suites' prefixes."""
    out = {}
    for name, prefix in (("expected.txt", ""), ("expected_models.txt", ""), ("expected_newest.txt", "newest/")):
        text = (ROOT / "tests" / "conformance" / name).read_text()
        out.update({prefix + c: r for c, r in conformance.expected(text).items()})
    return out


def in_time(argv, cases, jobs, deadline):
    """As conformance.run_all(), in portions; cases of those that do not start before the deadline are skipped by that name."""
    names, out = sorted(cases), {}
    for i in range(0, len(names), 25 * jobs):
        some = names[i:i + 25 * jobs]
        if time.monotonic() > deadline:
            out.update({c: ("skip", "out of time") for c in some})
        else:
            out.update(conformance.run_all(argv, {c: cases[c] for c in some}, jobs, 60))
    return out


def run_conformance(place, env, args, folder, deadline):
    """Tally over suites, ways and twins. A case that passes on no processor (the lists) is skipped by its reason."""
    os.environ.update(env)  # the runner's processes inherit
    tally, start, listed = Tally(), time.monotonic(), listed_cases()
    argv = [str(place.cases_program), "--target", args.target]
    for suite in conformance_suites(folder):
        cases = {c: d for c, d in conformance.cases_of(suite).items() if args.only in c}
        if args.quick:
            cases = {c: cases[c] for c in sorted(cases)[::args.quick]}
        todo = [(w, [*argv, *options], cases) for w, options in WAYS.items() if w in args.ways.split(",")]
        if "twins" in args.ways.split(","):
            todo.append(("twins", argv, conformance.twins(cases)))
        for way, way_argv, which in todo:
            for case, (verdict, reason) in sorted(in_time(way_argv, which, args.jobs, deadline).items()):
                if conformance.excused(case, verdict, listed):
                    verdict, reason = "skip", listed[case]
                tally.add(f"{case} ({way})", verdict, reason)
    tally.seconds = time.monotonic() - start
    return tally


def report(tallies, out):
    for name, t in tallies.items():
        print(t.closing(name))
        for f in t.failures[:60]:
            print(f"      {f['case']}: {f['reason'][:400]}")
    out.write_text(json.dumps({n: dataclasses.asdict(t) for n, t in tallies.items()}, indent=1) + "\n")
    n = [sum(t.passed for t in tallies.values()), sum(len(t.failures) for t in tallies.values()), sum(len(t.skipped) for t in tallies.values())]
    print(f"results in {out}")
    print(f"gpu: {n[0]} passed, {n[1]} failed, {n[2]} skipped")
    return 1 if n[1] or not n[0] else 0


def unpacked(folder):
    """The folder of conformance cases: packed cases unpack into a scratch folder once."""
    packed = folder / "cases.tar.xz"
    if not packed.is_file():
        return folder
    where = pathlib.Path(tempfile.gettempdir()) / "hone-gpu-cases"
    if not where.is_dir():
        where.mkdir()
        subprocess.run(["tar", "-xJf", str(packed), "-C", str(where)], check=True)
    return where


def jobs_of(suite, place, env, args):
    """Jobs of one of the suites that are lists of processes."""
    if suite == "kernels":
        return unit_jobs(KERNELS, place, env, args)
    if suite == "units":
        return unit_jobs(UNITS, place, env, args)
    if suite == "models":
        return model_jobs(place, env, args)
    if suite not in verdicts.TOOLS:
        raise SystemExit(f"error: no suite named {suite}")
    if suite == "initcheck":  # of a graph's copies it looks at the source before the graph's kernels have written it
        env = {**env, "HONE_TEST_NO_RECORDING": "1"}
    return unit_jobs(UNITS if suite == "initcheck" else KERNELS, place, env, args, verdicts.command(suite), verdicts.of_sanitized_case,
                     args.step)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    ap.add_argument("--target", default="sm_90a")
    ap.add_argument("--suites", default="kernels,units,conformance,models,memcheck,racecheck,synccheck,initcheck", help="comma-separated (%(default)s)")
    ap.add_argument("--ways", default="files,evaluation,twins,raced", help="of conformance (%(default)s)")
    ap.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains this")
    ap.add_argument("--quick", type=int, default=0, metavar="N", help="every Nth conformance case")
    ap.add_argument("--step", type=int, default=1, metavar="N", help="every Nth case under compute-sanitizer")
    ap.add_argument("--largest-model", type=int, default=1000, metavar="MB")
    ap.add_argument("--limit", type=float, default=600, metavar="S", help="start no unit test or model after so long")
    ap.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    ap.add_argument("--out", type=pathlib.Path, default=pathlib.Path(os.environ.get("OUT", "/tmp")) / "gpu_tests.json")
    args = ap.parse_args()
    place = Place.find(args.build)
    env, deadline, tallies = place.env(args.target), time.monotonic() + args.limit, {}
    for suite in args.suites.split(","):
        if suite == "conformance":
            tallies[suite] = run_conformance(place, env, args, unpacked(ROOT / "cases"), deadline)
        else:
            tallies[suite] = run_jobs(jobs_of(suite, place, env, args), args.jobs, deadline)
        print(tallies[suite].closing(suite), flush=True)
        args.out.write_text(json.dumps({n: dataclasses.asdict(t) for n, t in tallies.items()}, indent=1) + "\n")
    return report(tallies, args.out)


if __name__ == "__main__":
    sys.exit(main())
