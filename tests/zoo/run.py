#!/usr/bin/env python3
"""Real models through the whole path: built, run, and compared with float64 and with ONNX Runtime.

For each model: err (relative L2 against float64, worst output; integers equal) is at most 2x ONNX Runtime's, or 1e-6.
Where ONNX Runtime refuses a model, err is at most 1e-4. Building takes no more memory than docs/architecture.md states.
Several models run at once, one a thread.

    tests/zoo/run.py --set smoke | --models NAME[,NAME]
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import peers  # noqa: E402

TOOLS = peers.python_of("tools")


def prepare(args):
    """Fetch what the models need and go on under the tools' Python."""
    for name in ("tools", "ort"):
        error = peers.make(name)
        if error:
            raise SystemExit(f"error: {error}")
    subprocess.run([sys.executable, str(ROOT / "scripts" / "fetch_models.py"), *args], check=True)
    env = {**os.environ, "HONE_ZOO_READY": "1"}
    os.execve(TOOLS, [str(TOOLS), __file__, *sys.argv[1:]], env)


def memory_bound(model, engine_bytes):
    """Bytes that the building process may hold at most: 96 MiB, and four times the larger of model and engine."""
    return (96 << 20) + 4 * max(model.path.stat().st_size, engine_bytes)


def bound(ort_err):
    return 1e-4 if ort_err is None else max(1e-6, 2 * ort_err)


def check(model, args):
    """(verdict, text) of one model."""
    import contest
    import models as table
    import ours
    if not model.path.exists():
        return "skip", "not there"
    work = ROOT / "build" / "zoo" / model.name
    files = table.save_inputs(model, work / "inputs")
    engine = work / "engine.hone"
    try:
        built = ours.build(model, engine, args.threads, ["--opt-level", args.opt_level])
        want = ours.cached_reference(model, files, work)
        with contest.start_hone("hone", engine, args.threads, files) as c:
            got = contest.load_outputs(c.ask(cmd="outputs", dir=str(work / "ours")))
            again = contest.load_outputs(c.ask(cmd="outputs", dir=str(work / "again")))
    except (ours.HoneError, contest.ContestError) as e:
        return "FAIL", str(e)
    if any(got[n].tobytes() != again[n].tobytes() for n in got):
        return "FAIL", "two runs on the same input differ"
    most = memory_bound(model, built["engine_bytes"])
    if built["peak_rss_bytes"] > most:
        return "FAIL", f"building took {built['peak_rss_bytes'] >> 20} MiB, {most >> 20} are allowed"
    ort_err, note = None, ""
    try:
        with contest.start_peer("ort", model.path, 1, files) as c:
            ort_err = contest.worst_error(contest.load_outputs(c.ask(cmd="outputs", dir=str(work / "ort"))), want)
    except contest.ContestError as e:
        note = f"; ONNX Runtime refuses: {str(e)[:60]}"
    err = contest.worst_error(got, want)
    text = (f"err {err:.1e}, ONNX Runtime {'-' if ort_err is None else f'{ort_err:.1e}'}, "
            f"built in {built['build_s']:.1f} s, {built['engine_bytes'] / 1e6:.1f} MB, "
            f"peak {built['peak_rss_bytes'] >> 20} MiB{note}")
    return ("ok" if err <= bound(ort_err) else "FAIL"), text


def main():
    import argparse
    import concurrent.futures
    sys.path.insert(0, str(ROOT / "bench"))
    import models as table
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--set", default="smoke")
    ap.add_argument("--models", metavar="NAME[,NAME]")
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--opt-level", type=int, default=0)
    ap.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    args = ap.parse_args()
    names = args.models.split(",") if args.models else None
    if "HONE_ZOO_READY" not in os.environ:
        prepare(["--only", args.models] if names else ["--set", args.set])
    wanted = table.select(names, None if names else args.set)
    count = {"ok": 0, "FAIL": 0, "skip": 0}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for m, (verdict, text) in zip(wanted, pool.map(lambda m: check(m, args), wanted)):
            count[verdict] += 1
            print(f"{verdict:4}  {m.name:20} {text}", flush=True)
    print(f"models: {count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    return 1 if count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
