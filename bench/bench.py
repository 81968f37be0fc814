#!/usr/bin/env python3
"""make bench: every model of the table against the peers, at one and two threads, to build/bench/cpu.json.

Ours is the default route, which stays within reassociation. A peer whose error is above 10x ours and above 1e-4 has
changed the arithmetic: it is shown, marked *, and does not count. The goals are checked at the end; exit status 1 says
that one was missed (or that a model failed), unless --no-goals.
"""

import argparse
import json
import os
import pathlib
import sys
import time

import contest
import models as table
import ours

PEERS = ["ort", "openvino"]
GEOMEAN_GOAL, WORST_GOAL = 0.9, 0.6
OVERHEAD_GOAL = {"silero": 1.0, "silero_static": 1.0, "ocr_cls": 1.0}


def one_row(model, threads, args, want):
    """Build ours and race it; a row of the results."""
    work = args.out.parent / model.name
    files = table.save_inputs(model, work / "inputs")
    row = {"model": model.name, "threads": threads, "ours_ms": None, "ours_err": None, "peers": {},
           "reference": "float64" if want else "ort", "build_s": None, "load_ms": None, "engine_bytes": None,
           "nodes": None, "error": None}
    racers, outputs = [], {}
    try:
        start_ours(model, threads, args, work, files, row, racers, outputs)
        start_peers(model, threads, args, work, files, row, racers, outputs, want)
        blocks, fallen = contest.race(racers, args.rounds, renewed=["ours"])
    finally:
        for c in racers:
            c.close()
    want = want or outputs.get("ort")
    for name, why in fallen.items():
        if name == "ours":
            row["error"] = why
        else:
            row["peers"][name] = {"ms": None, "err": None, "error": why}
    for name in blocks:
        ms, err = contest.median_ms(blocks[name]), contest.worst_error(outputs[name], want)
        if name == "ours":
            row.update(ours_ms=ms, ours_err=err)
            continue
        row["peers"][name] = {"ms": ms, "err": err}
        if "ours" in blocks:
            row["peers"][name]["ratio"] = contest.ratio(blocks[name], blocks["ours"])
    return row


def start_ours(model, threads, args, work, files, row, racers, outputs):
    engine = work / f"t{threads}.hone"
    try:
        built = ours.build(model, engine, threads, ["--timing-cache", args.out.parent / "timing.cache", *args.build])
        row.update(build_s=round(built["build_s"], 2), engine_bytes=built["engine_bytes"], nodes=built.get("nodes"))
        c = contest.start_hone("ours", engine, threads, files, ours.HONE)
        racers.append(c)
        row["load_ms"] = c.load["load_ns"] / 1e6
        outputs["ours"] = contest.load_outputs(c.ask(cmd="outputs", dir=str(work / "outputs" / "ours")))
    except (ours.HoneError, contest.ContestError) as e:
        row["error"] = str(e)


def start_peers(model, threads, args, work, files, row, racers, outputs, want):
    """The peers, and OpenVINO once more without unasked quantisation where its error says that it quantised."""
    todo, shapes = list(args.peers), None if model.dynamic else {n: list(s) for n, s in model.shapes().items()}
    for name in todo:
        try:
            c = contest.start_peer(name, model.path, threads, files, shapes)
            racers.append(c)
            outputs[name] = contest.load_outputs(c.ask(cmd="outputs", dir=str(work / "outputs" / name)))
        except contest.ContestError as e:
            row["peers"][name] = {"ms": None, "err": None, "error": str(e)}
            continue
        against = want or outputs.get("ort")
        if name == "openvino" and against and contest.worst_error(outputs[name], against) > 1e-4:
            todo.append("openvino_exact")


def counts(row, peer):
    """Whether a peer's time counts against ours in this row."""
    got = row["peers"][peer]
    return got["ms"] is not None and not (got["err"] is not None and got["err"] > 1e-4
                                          and got["err"] > 10 * (row["ours_err"] or 0))


def best_over_ours(row):
    """Best counting peer's time over ours (above 1: we are faster), or None."""
    peers = [row["peers"][p]["ms"] for p in row["peers"] if counts(row, p)]
    return min(peers) / row["ours_ms"] if peers and row["ours_ms"] else None


def line(row):
    cells = []
    for p, got in row["peers"].items():
        text = "fails" if got["ms"] is None else f"{got['ms']:.4g}{'' if counts(row, p) else '*'}"
        cells.append(f"{p} {text}")
    own = f"{row['ours_ms']:.4g} ms err {row['ours_err'] or 0:.0e}" if row["ours_ms"] else f"FAILS: {row['error']}"
    score = best_over_ours(row)
    return (f"{row['model']:20} {row['threads']}t  {'' if score is None else f'{score:5.2f}':>5}  ours {own}  |  "
            + "  ".join(cells))


def judge(rows):
    """The goals over all rows: [(text, met)]."""
    scores = {(r["model"], r["threads"]): s for r in rows if (s := best_over_ours(r)) is not None}
    if not scores:
        return [("no row to judge", False)]
    failed = [f"{r['model']} {r['threads']}t" for r in rows if r["ours_ms"] is None]
    worst = min(scores, key=scores.get)
    g = contest.geomean(list(scores.values()))
    out = [(f"every model runs{': not ' + ', '.join(failed) if failed else ''}", not failed),
           (f"geometric mean of best peer over ours {g:.3f}, goal {GEOMEAN_GOAL}", g >= GEOMEAN_GOAL),
           (f"worst is {worst[0]} at {worst[1]}t: {scores[worst]:.2f}, goal {WORST_GOAL}",
            scores[worst] >= WORST_GOAL)]
    for name, goal in OVERHEAD_GOAL.items():
        mine = [s for (m, _), s in scores.items() if m == name]
        if mine:
            out.append((f"{name} {min(mine):.2f}, goal {goal}", min(mine) >= goal))
    return out + accuracy(rows)


def accuracy(rows):
    """err at most 2x ONNX Runtime's, or 1e-6; means something only against float64."""
    judged = [r for r in rows if r["reference"] == "float64" and r["ours_err"] is not None]
    bad = [f"{r['model']} {r['ours_err']:.1e}" for r in judged
           if r["ours_err"] > max(1e-6, 2 * (r["peers"].get("ort", {}).get("err") or 0))]
    return [(f"error within 2x ONNX Runtime's or 1e-6 on {len(judged)} rows"
             f"{': not ' + ', '.join(sorted(set(bad))) if bad else ''}", not bad)]


def save(rows, path):
    part = path.with_suffix(".part")
    part.write_text(json.dumps(rows, indent=1, default=float) + "\n")
    os.replace(part, path)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--models", metavar="NAME[,NAME]", help="default: the bench set")
    ap.add_argument("--threads", default="1,2", metavar="N[,N]")
    ap.add_argument("--rounds", type=int, default=8, help="blocks of 0.4 s for each contestant")
    ap.add_argument("--peers", default=",".join(PEERS))
    ap.add_argument("--build", default="", metavar="ARGS", help="further words for hone build, such as a route")
    ap.add_argument("--out", type=pathlib.Path, default=contest.ROOT / "build" / "bench" / "cpu.json")
    ap.add_argument("--resume", action="store_true", help="keep the rows that --out already holds")
    ap.add_argument("--no-goals", action="store_true", help="exit status 0 whatever the goals say")
    args = ap.parse_args()
    args.peers, args.build = [p for p in args.peers.split(",") if p], args.build.split()
    args.out = args.out.resolve()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    wanted = table.select(args.models.split(",") if args.models else None, None if args.models else "bench")
    rows = json.loads(args.out.read_text()) if args.resume and args.out.exists() else []
    done, t0 = {(r["model"], r["threads"]) for r in rows if not r["error"]}, time.monotonic()
    rows = [r for r in rows if not r["error"]]
    for m in wanted:
        if not m.path.exists():
            print(f"{m.name:20} not there: {m.path.name}", flush=True)
            continue
        want = reference(m, args)
        for threads in (int(t) for t in args.threads.split(",")):
            if (m.name, threads) not in done:
                rows.append(one_row(m, threads, args, want))
                save(rows, args.out)
                print(line(rows[-1]), flush=True)
    save(rows, args.out)
    print(f"\n{len(rows)} rows in {(time.monotonic() - t0) / 60:.1f} min, written to {args.out}")
    verdicts = judge(rows)
    for text, met in verdicts:
        print(f"{'met   ' if met else 'MISSED'}  {text}")
    return 0 if args.no_goals or all(met for _, met in verdicts) else 1


def reference(model, args):
    try:
        files = table.save_inputs(model, args.out.parent / model.name / "inputs")
        return ours.cached_reference(model, files, args.out.parent)
    except ours.HoneError as e:
        print(f"{model.name:20} no float64 reference ({str(e)[:80]}); errors are against ONNX Runtime", flush=True)
        return None


if __name__ == "__main__":
    sys.exit(main())
