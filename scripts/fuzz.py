#!/usr/bin/env python3
"""make fuzz: run the mutating tests under ASan and UBSan, on seeds that no run before has used, for some seconds.

A failure prints the seed that repeats it: FUZZ_SEED=... FUZZ_ROUNDS=1 build/asan/tests/test_fuzz_import.

--guided (make fuzz-guided) runs libFuzzer over import instead, with a process a core. What it learns stays in
build/fuzz/corpus; a failing file lies in build/fuzz/found and is repeated by naming it to the program.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import check  # noqa: E402

ROUNDS = 2000
SLOW = {"test_fuzz_build": 100}  # rounds of programs that compile what they mutated


GUIDED = "tests/fuzz/fuzz_import_guided"
SEEDS = pathlib.Path("/usr/share/libonnx-testdata/data")  # Debian's libonnx-testdata
# One file may take 10 s and 1 GiB at most, and no single allocation more than 256 MiB: files are at most 64 KiB.
LIMITS = ["-timeout=10", "-rss_limit_mb=1024", "-malloc_limit_mb=256", "-max_len=65536"]


def guided(seconds, processes):
    """Run libFuzzer's processes side by side; how many of them found a fault, and inputs run in all."""
    work = ROOT / "build" / "fuzz"
    corpus, found, logs = (work / d for d in ("corpus", "found", "logs"))
    for d in (corpus, found, logs):
        d.mkdir(parents=True, exist_ok=True)
    for model in SEEDS.glob("*/*/model.onnx"):
        if model.stat().st_size <= 1 << 16:
            shutil.copy(model, corpus / f"seed-{model.parent.parent.name}-{model.parent.name}")
    args = [str(ROOT / "build" / "libfuzzer" / GUIDED), *LIMITS, f"-max_total_time={seconds:.0f}", "-reload=60", "-print_final_stats=1", f"-artifact_prefix={found}/",
            str(corpus)]
    running = []
    for i in range(processes):
        with open(logs / f"{i}.log", "w") as log:
            running.append(subprocess.Popen(args, env={**os.environ, **check.SANITIZER_ENV}, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT))
    bad = sum(p.wait() != 0 for p in running)
    runs = 0
    for i in range(processes):
        text = (logs / f"{i}.log").read_text(errors="replace")
        runs += sum(int(n) for n in re.findall(r"stat::number_of_executed_units: (\d+)", text))
        if running[i].returncode != 0:
            print(text[-3000:])
    return bad, runs


def run_guided(args, log, tally):
    check.compile_stage("libfuzzer", GUIDED)(log, tally)
    if tally.failed:
        print("\n".join(tally.failures))
        return 1
    bad, runs = guided(args.seconds, args.processes)
    print(f"libFuzzer: {runs} files in {args.seconds * args.processes / 3600:.2f} CPU-hours at most")
    print(f"fuzz-guided: {args.processes - bad} passed, {bad} failed, 0 skipped")
    return 1 if bad else 0


def programs(only):
    found = sorted(p for p in (ROOT / "build" / "asan" / "tests").glob("test_fuzz_*")
                   if p.is_file() and os.access(p, os.X_OK) and not p.name.endswith("mutator"))
    return [p for p in found if not only or only in p.name]


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--seconds", type=float, default=60)
    ap.add_argument("--only", metavar="TEXT", help="only programs whose name contains this")
    ap.add_argument("--seed", type=int, default=int(time.time()) * 1000, help="first seed (default: from the clock)")
    ap.add_argument("--guided", action="store_true", help="libFuzzer over import")
    ap.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)), help="of libFuzzer")
    args = ap.parse_args()
    check.LOGS.mkdir(parents=True, exist_ok=True)
    log, tally = check.LOGS / "fuzz.log", check.Tally()
    log.write_text("")
    if args.guided:
        return run_guided(args, log, tally)
    check.compile_stage("asan")(log, tally)
    todo = programs(args.only)
    if tally.failed or not todo:
        print("\n".join(tally.failures) or "error: no fuzz program was built")
        return 1
    rounds, bad, end, seed = 0, 0, time.monotonic() + args.seconds, args.seed
    while time.monotonic() < end and bad < 10:
        for p in todo:
            n = SLOW.get(p.name, ROUNDS)
            env = {**os.environ, **check.ENV, **check.SANITIZER_ENV, "FUZZ_SEED": str(seed),
                   "FUZZ_ROUNDS": str(n), "HONE_TEST_TIMEOUT": "600"}
            run = subprocess.run([str(p)], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            rounds += n
            if run.returncode != 0:
                bad += 1
                print(f"{p.name} failed from seed {seed}:\n{(run.stdout + run.stderr)[-3000:]}", flush=True)
        seed += ROUNDS
    print(f"about {rounds} mutations a case, from seed {args.seed}")
    print(f"fuzz: {len(todo) - min(bad, len(todo))} passed, {bad} failed, 0 skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
