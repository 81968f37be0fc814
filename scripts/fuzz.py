#!/usr/bin/env python3
"""make fuzz: run the mutating tests under ASan and UBSan, on seeds that no run before has used, for some seconds.

A failure prints the seed that repeats it: FUZZ_SEED=... FUZZ_ROUNDS=1 build/asan/tests/test_fuzz_import.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import check  # noqa: E402

ROUNDS = 2000
SLOW = {"test_fuzz_build": 100}  # rounds of programs that compile what they mutated


def programs(only):
    found = sorted(p for p in (ROOT / "build" / "asan" / "tests").glob("test_fuzz_*")
                   if p.is_file() and os.access(p, os.X_OK) and not p.name.endswith("mutator"))
    return [p for p in found if not only or only in p.name]


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--seconds", type=float, default=60)
    ap.add_argument("--only", metavar="TEXT", help="only programs whose name contains this")
    ap.add_argument("--seed", type=int, default=int(time.time()) * 1000, help="first seed (default: from the clock)")
    args = ap.parse_args()
    check.LOGS.mkdir(parents=True, exist_ok=True)
    log, tally = check.LOGS / "fuzz.log", check.Tally()
    log.write_text("")
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
