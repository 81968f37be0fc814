#!/usr/bin/env python3
"""Everything a change must pass, in stages; the last line is "N passed, N failed, N skipped".

Each stage writes build/check/<stage>.log. A stage whose build fails counts as one failure and is not run further.
docs/testing.md says what each stage is for.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "check"
WERROR = "-Dwerror=true"

# build folder -> (compiler, meson options)
CONFIGS = {
    "release": ("gcc", ["--buildtype=release", "--prefix=/usr/local"]),
    "asan": ("gcc", ["--buildtype=debugoptimized", WERROR, "-Db_sanitize=address,undefined",
                     "-Db_ndebug=false"]),
    "clang": ("clang-19", ["--buildtype=release", WERROR, "-Db_ndebug=false"]),
    "libfuzzer": ("clang-19", ["--buildtype=debugoptimized", "-Db_sanitize=address,undefined", "-Db_ndebug=false",
                               "-Db_lundef=false", "-Dlibfuzzer=true", "-Dllvm=disabled", "-Dzip=disabled"]),
    "tsan": ("clang-19", ["--buildtype=debugoptimized", WERROR, "-Db_sanitize=thread", "-Db_lundef=false"]),
}
# Caches of the program under test stay in the build folder.
ENV = {"HONE_CACHE_DIR": str(BUILD / "check" / "cache"), "HONE_WORKER": str(BUILD / "hone-worker")}
# Every graph that tests build, built for a GPU and run on the simulated one.
CUDA_SIM = str(BUILD / "release" / "tests" / "cuda_sim" / "libcuda_sim.so")
SIMULATED_GPU = {"HONE_TEST_TARGET": "sm_90a", "HONE_CUDA_DRIVER": CUDA_SIM, "HONE_NVRTC": CUDA_SIM, "HONE_NVML": CUDA_SIM, "HONE_CUBLASLT": CUDA_SIM, "HONE_CUDNN": CUDA_SIM,
                 "HONE_TEST_TIMEOUT": "900"}
SANITIZER_ENV = {
    # Leaks count; a failed allocation must come back as NULL, as it does without the sanitizer.
    "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:abort_on_error=0:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1",
    "HONE_TEST_TIMEOUT": "240",  # of one case, which a sanitizer slows
}
SUMMARY = re.compile(r"\[\s*(PASSED|FAILED|SKIPPED)\s*\] (\d+) test\(s\)")
COUNTS = re.compile(r"^(?:[\w-]+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$", re.M)
FAILED_NAME = re.compile(r"^\[\s*FAILED\s*\] (?!\d+ test)(\S.*)$", re.M)
FAILED_LINE = re.compile(r"^FAIL\s+(\S.*)$", re.M)


@dataclasses.dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = dataclasses.field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures

    def fail(self, what):
        self.failed += 1
        self.failures.append(what)


def sh(argv, log, env=None, timeout=1800):
    """Run a command into a log file; (exit status, its output). A hang is status 124."""
    with open(log, "a", encoding="utf-8") as f:
        f.write(f"$ {' '.join(map(str, argv))}\n")
        f.flush()
        start = f.tell()
        try:
            rc = subprocess.run(argv, cwd=ROOT, env={**os.environ, **ENV, **(env or {})}, stdin=subprocess.DEVNULL,
                                stdout=f, stderr=subprocess.STDOUT, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            rc = 124
    with open(log, encoding="utf-8", errors="replace") as f:
        f.seek(start)
        return rc, f.read()


def compile_stage(config, targets=""):
    """Stage that configures and builds one folder, or some of its targets."""
    def stage(log, tally):
        cc, options = CONFIGS[config]
        rc, out = sh(["scripts/build.sh", str(BUILD / config), *options], log, {"CC": cc, "NINJA_TARGETS": targets})
        if rc != 0:
            errors = [ln for ln in out.splitlines() if re.search(r"error|FAILED", ln)]
            return tally.fail(f"build {config}: {errors[0] if errors else 'failed'}")
        if config == "release":
            sh(["scripts/link_outputs.sh", str(BUILD / config)], log)
        tally.passed += 1
        return None
    return stage


def count_program(name, rc, out):
    """Cases of one test program: cmocka's summary or a plain closing line; else the program counts as one.

    What failed is named by cmocka's list, or by lines "FAIL name: why".
    """
    t = Tally()
    for kind, n in SUMMARY.findall(out):
        setattr(t, kind.lower(), int(n))
    if not SUMMARY.search(out):
        for p, f, s in COUNTS.findall(out)[-1:]:
            t.passed, t.failed, t.skipped = int(p), int(f), int(s or 0)
    t.failures = [f"{name}: {n[:400]}" for n in FAILED_NAME.findall(out) + FAILED_LINE.findall(out)][:t.failed]
    if rc == 77 and not (t.passed or t.failed):
        t.skipped = max(1, t.skipped)
    elif rc != 0 and t.failed == 0:
        t.fail(f"{name}: ended with status {rc}")
    elif rc == 0 and not (t.passed or t.failed or t.skipped):
        t.passed = 1
    return t


def unit_stage(config, env=None, only=None, suites=("unit",)):
    """Stage that runs a build folder's test programs; only: a pattern of program names."""
    def stage(log, tally):
        where = BUILD / config
        rc, out = sh(["meson", "introspect", str(where), "--tests"], log)
        try:
            tests = json.loads(out[out.index("["):])
        except ValueError:
            return tally.fail(f"{config}: meson does not list the tests")
        names = [t["name"] for t in tests if (not only or re.fullmatch(only, t["name"]))
                 and any(s.split(":")[-1] in suites for s in t["suite"])]
        if not names:
            tally.skipped += 1
            return None
        sh(["meson", "test", "-C", str(where), "--no-rebuild", "--num-processes", str(os.cpu_count()),
            "--logbase", log.stem, *names], log, {**SANITIZER_ENV, **(env or {})})
        results = where / "meson-logs" / f"{log.stem}.json"
        for line in results.read_text().splitlines():
            r = json.loads(line)
            out = r.get("stdout", "") + r.get("stderr", "")
            name = r["name"].split(" / ")[-1]
            rc = r["returncode"] if r["result"] != "TIMEOUT" else 124
            tally.add(count_program(f"{log.stem}: {name}", rc, out))
        return None
    return stage


def script_stage(argv, env=None, timeout=1800):
    """Stage of one command that prints a closing "N passed, ..." line."""
    def stage(log, tally):
        rc, out = sh(argv, log, env, timeout)
        tally.add(count_program(log.stem, rc, out))
    return stage


def tools_python():
    return str(pathlib.Path(os.environ.get("HONE_FETCH_DIR") or ROOT / ".cache") / "peers" / "tools" / "bin" / "python")


def have(path):
    return (ROOT / path).exists()


def stages(long):
    """(name, stage) in order. What needs a program that does not exist yet is left out, and says so."""
    out = [
        ("tools", script_stage([sys.executable, "scripts/peers.py", "tools"])),
        ("bench-scripts", script_stage([tools_python(), "tests/bench/test_bench.py"])),
        ("build-release", compile_stage("release")),
        ("lint", script_stage([sys.executable, "tests/lint/run.py", "--verbose", "--build", "build"])),
        ("unit-release", unit_stage("release")),
        # tactic_fast masks AVX-512 itself, and has no points for less than AVX2.
        ("unit-avx2", unit_stage("release", {"HONE_CPU_FEATURES": "avx2"}, r"(kir|tactic_every|codegen|build|zoo|eval).*")),
        # The least that kernels are generated for.
        ("unit-sse", unit_stage("release", {"HONE_CPU_FEATURES": "sse42"}, r"(kir|tactic_every|codegen|build|zoo).*")),
        ("build-asan", compile_stage("asan")),
        ("unit-asan", unit_stage("asan")),
        ("build-clang", compile_stage("clang")),
        ("unit-clang", unit_stage("clang", only=r"(base|core|ir|op|kir|memplan|engine|runtime).*")),
        ("models", script_stage([sys.executable, "tests/zoo/run.py", "--set", "smoke"])),
        ("conformance", script_stage([sys.executable, "tests/conformance/run.py", "--ways", "default,open"])),
        ("examples", script_stage([sys.executable, "tests/examples/run.py"])),
    ]
    if long:
        out += [
            ("build-tsan", compile_stage("tsan")),
            ("unit-tsan", unit_stage("tsan", only=r"(base|runtime|dev|tune|api).*")),
            ("unit-long", unit_stage("release", suites=("long",))),
            ("unit-gpu", unit_stage("release", SIMULATED_GPU, r"(tactic_every|build)")),
            ("models-all", script_stage([sys.executable, "tests/zoo/run.py", "--set", "bench"], timeout=7200)),
            ("conformance-ways", script_stage([sys.executable, "tests/conformance/run.py"], timeout=3600)),
            ("contrib", script_stage(["make", "--no-print-directory", "contrib"])),
            ("fuzz", script_stage([sys.executable, "scripts/fuzz.py", "--seconds", "120"])),
        ]
    return [s for s in out if is_there(s[0])]


NEEDS = {"models": "tests/zoo/run.py", "models-all": "tests/zoo/run.py", "conformance": "tests/conformance/run.py",
         "conformance-ways": "tests/conformance/run.py",
         "fuzz": "scripts/fuzz.py", "bench-scripts": "tests/bench/test_bench.py"}


def is_there(name):
    return name not in NEEDS or have(NEEDS[name])


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--long", action="store_true", help="the slow stages too")
    ap.add_argument("--only", metavar="STAGE[,STAGE]", help="only these stages")
    ap.add_argument("--list", action="store_true", help="list the stages")
    args = ap.parse_args()
    todo = stages(args.long)
    if args.list:
        print("\n".join(n for n, _ in todo))
        return 0
    if args.only:
        wanted = args.only.split(",")
        unknown = set(wanted) - {n for n, _ in todo}
        if unknown:
            ap.error(f"no stage named {', '.join(sorted(unknown))}; --list shows them")
        todo = [s for s in todo if s[0] in wanted]
    LOGS.mkdir(parents=True, exist_ok=True)
    return run(todo)


def run(todo):
    total, broken, t0 = Tally(), set(), time.monotonic()
    for name, stage in todo:
        log, start, tally = LOGS / f"{name}.log", time.monotonic(), Tally()
        log.write_text("")
        config = name.split("-", 1)[1] if name.startswith("unit-") else ""
        if {"avx2": "release", "scalar": "release", "long": "release", "gpu": "release"}.get(config, config) in broken:
            tally.fail(f"{name}: not run, its build failed")
        else:
            try:
                stage(log, tally)
            except (OSError, ValueError, KeyError, subprocess.SubprocessError) as e:
                tally.fail(f"{name}: {type(e).__name__}: {e}")
        if tally.failed and name.startswith("build-"):
            broken.add(name.split("-", 1)[1])
        total.add(tally)
        print(f"{'FAIL' if tally.failed else 'ok  '}  {name:14} {tally.passed:5} passed {tally.failed:3} failed "
              f"{tally.skipped:3} skipped  {time.monotonic() - start:6.1f} s  {log.relative_to(ROOT)}", flush=True)
        for f in tally.failures[:40]:
            print(f"          {f}", flush=True)
    print(f"checked in {(time.monotonic() - t0) / 60:.1f} min")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
