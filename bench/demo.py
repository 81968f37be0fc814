#!/usr/bin/env python3
"""make demo: six real models from file to tuned engine, raced against ONNX Runtime and OpenVINO.

For each model: build an engine, check it against float64, tune it, then race default engine, tuned engine and peers
in processes of their own. Prints one table; writes build/demo/results.json.
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

OUT = contest.ROOT / "build" / "demo"
PEERS = ["ort", "openvino"]
PEER_TITLE = {"ort": "ONNX Runtime", "openvino": "OpenVINO"}


class Progress:
    """One line that rewrites itself on a terminal; plain lines in a pipe."""

    def __init__(self, total):
        self.total, self.t0, self.tty = total, time.monotonic(), sys.stdout.isatty()

    def say(self, done, text):
        gone = time.monotonic() - self.t0
        left = f", about {gone / done * (self.total - done) / 60:.0f} min left" if done else ""
        line = f"[{gone / 60:4.1f} min{left}] {text}"
        print(f"\r\033[K{line}" if self.tty else line, end="" if self.tty else "\n", flush=True)

    def clear(self):
        if self.tty:
            print("\r\033[K", end="", flush=True)


def one_model(model, args, say):
    """The results object of one model; "error" is set where a step failed."""
    work = OUT / model.name
    work.mkdir(parents=True, exist_ok=True)
    files = table.save_inputs(model, work / "inputs")
    row = {"model": model.name, "what": model.what, "nodes": None, "threads": args.threads, "default_ms": None,
           "tuned_ms": None, "speedup": None, "speedup_lo": None, "speedup_hi": None, "peers": {}, "err": None,
           "build_s": None, "load_ms": None, "engine_bytes": None, "route": None, "error": None}
    default, tuned = work / "default.hone", work / "tuned.hone"
    cache, want = ["--timing-cache", work / "timing.cache"], None
    try:
        say(f"{model.name}: building")
        built = ours.build(model, default, args.threads, cache)
        row.update(nodes=built.get("nodes"), build_s=round(built["build_s"], 2), engine_bytes=built["engine_bytes"])
    except ours.HoneError as e:
        row["error"] = str(e)
    else:
        say(f"{model.name}: evaluating in float64")
        want = reference(model, files, row)
        say(f"{model.name}: tuning for {args.budget} s")
        tune(model, args, files, default, tuned, cache, row)
    # An empty route is the default engine: one candidate, not measured twice.
    engines = {} if row["error"] else {"default": default, **({"tuned": tuned} if row["route"] else {})}
    say(f"{model.name}: racing against {' and '.join(PEER_TITLE.values())}")
    race(model, args, files, engines, want, row, work)
    return row


def reference(model, files, row):
    try:
        row["reference"] = "float64"
        return ours.cached_reference(model, files, OUT / model.name)
    except ours.HoneError as e:
        row["reference"], row["reference_error"] = "ort", str(e)
        return None


def tune(model, args, files, default, tuned, cache, row):
    try:
        got = ours.tune(model, tuned, args.threads, args.budget, files, cache + ["--store", tuned.parent / "trials.db"])
        row.update(route=got.get("route", ""), trials=got.get("trials"))
    except ours.HoneError as e:
        row.update(route="", tune_error=str(e))
    if not tuned.exists():
        tuned.write_bytes(default.read_bytes())


def race(model, args, files, engines, want, row, work):
    shapes = None if model.dynamic else {n: list(s) for n, s in model.shapes().items()}
    racers, outputs = [], {}
    for name in list(engines) + PEERS:
        try:
            c = (contest.start_hone(name, engines[name], args.threads, files) if name in engines
                 else contest.start_peer(name, model.path, args.threads, files, shapes))
            outputs[name] = contest.load_outputs(c.ask(cmd="outputs", dir=str(work / "outputs" / name)))
            racers.append(c)
        except contest.ContestError as e:
            if name in PEERS:
                row["peers"][name] = {"ms": None, "err": None, "error": str(e)}
            else:
                row["error"] = f"{name} engine: {e}"
    blocks, fallen = contest.race(racers, args.rounds, renewed=engines)
    for c in racers:
        c.close()
        if c.name in fallen and c.name not in PEERS:
            row["error"] = f"{c.name} engine: {fallen[c.name]}"
    want = want or outputs.get("ort")
    for p in PEERS:
        if p in blocks:
            row["peers"][p] = {"ms": contest.median_ms(blocks[p]), "err": contest.worst_error(outputs[p], want)}
    if "default" in blocks and "tuned" not in engines:
        blocks["tuned"], outputs["tuned"] = blocks["default"], outputs["default"]
    if "default" in blocks and "tuned" in blocks:
        row["default_ms"], row["tuned_ms"] = (contest.median_ms(blocks[n]) for n in ("default", "tuned"))
        row["speedup"], row["speedup_lo"], row["speedup_hi"] = contest.ratio(blocks["default"], blocks["tuned"])
        row["err"] = max(contest.worst_error(outputs[n], want) for n in ("default", "tuned"))
        row["load_ms"] = next(c.load["load_ns"] for c in racers if c.name in engines) / 1e6


def sig(x, digits=3):
    """Three significant digits without an exponent for times."""
    if x is None:
        return "-"
    if x == 0 or not 1e-9 < abs(x) < 1e9:
        return f"{x:g}"
    text = f"{x:.{digits}g}"
    return f"{float(text):g}" if "e" in text else text


def print_table(rows):
    head = ["model", "ops", "default ms", "tuned ms", "speed-up [95%]", *PEER_TITLE.values(), "error", "build s",
            "engine MB"]
    lines, notes = [head], []
    for r in rows:
        if r["error"] and r["tuned_ms"] is None:
            notes.append(f"{r['model']}: {r['error']}")
        cells = [r["model"], sig(r["nodes"], 6), sig(r["default_ms"]), sig(r["tuned_ms"])]
        cells.append("-" if r["speedup"] is None else
                     f"{r['speedup']:.3f} [{r['speedup_lo']:.3f}, {r['speedup_hi']:.3f}]")
        for p in PEERS:
            got = r["peers"].get(p, {})
            mark = ""
            if got.get("err") is not None and got["err"] > max(1e-4, 10 * (r["err"] or 0)):
                mark = "*"
                notes.append(f"* {PEER_TITLE[p]} on {r['model']} is off by {got['err']:.1e}: it changed the arithmetic")
            if got.get("error"):
                notes.append(f"{PEER_TITLE[p]} on {r['model']}: {got['error'][:90]}")
            cells.append(sig(got.get("ms")) + mark)
        cells += ["-" if r["err"] is None else f"{r['err']:.1e}", sig(r["build_s"]),
                  "-" if r["engine_bytes"] is None else f"{r['engine_bytes'] / 1e6:.1f}"]
        lines.append(cells)
        if r.get("tune_error"):
            notes.append(f"{r['model']}: not tuned: {r['tune_error']}")
        if r.get("reference_error"):
            notes.append(f"{r['model']}: error is against ONNX Runtime: {r['reference_error']}")
    widths = [max(len(ln[i]) for ln in lines) for i in range(len(head))]
    for ln in lines:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(ln, widths))))
    for n in notes:
        print(n)


def closing(rows):
    rel = OUT.relative_to(contest.ROOT)
    print(f"\nTimes: median of one call on {rows[0]['threads']} thread(s), all programs raced in turn, batch 1.")
    print("Error: relative L2 error of the worst output against float64.")
    routes = [r for r in rows if r["route"]]
    for r in routes:
        print(f"  {r['model']}: {r['route']}")
    print(f"\nResults in {rel}/results.json; engines in {rel}/<model>/tuned.hone")
    good = next((r for r in rows if r["error"] is None), None)
    if good:
        path = os.path.relpath(next(m for m in table.load() if m.name == good["model"]).path)
        print("Next:\n"
              f"  build/hone run {rel}/{good['model']}/tuned.hone         # one inference, inputs made up\n"
              f"  build/hone explain {rel}/{good['model']}/tuned.hone     # what was chosen, and why\n"
              f"  build/hone tune {path} --budget 300 -o my.hone   # search longer\n"
              "  build/hone knobs                                  # what can be turned")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    ap.add_argument("--budget", type=int, default=60, help="seconds of tuning for each model")
    ap.add_argument("--rounds", type=int, default=12, help="blocks of 0.4 s for each contestant")
    ap.add_argument("--models", metavar="NAME[,NAME]", help="instead of the six")
    args = ap.parse_args()
    wanted = table.select(args.models.split(",") if args.models else None, None if args.models else "demo")
    OUT.mkdir(parents=True, exist_ok=True)
    progress, rows = Progress(len(wanted)), []
    for m in wanted:
        rows.append(one_model(m, args, lambda text: progress.say(len(rows), text)))
        part = OUT / ".results.json"
        part.write_text(json.dumps(rows, indent=1, allow_nan=False, default=float) + "\n")
        os.replace(part, OUT / "results.json")
    progress.clear()
    print_table(rows)
    closing(rows)
    return 1 if any(r["error"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
