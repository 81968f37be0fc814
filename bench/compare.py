#!/usr/bin/env python3
"""Race engines and peers on the models of the table; the building block of demo.py and bench.py, and a tool by itself.

    .cache/peers/tools/bin/python bench/compare.py --models ocr_cls,magika --peers ort,openvino
    .cache/peers/tools/bin/python bench/compare.py --models ocr_cls --engine build/cls.hone
"""

import argparse
import json
import pathlib
import sys
import tempfile

import contest
import models as table


def run_model(model, threads, peers, engines, rounds, work, reference=None):
    """Race one model. engines: {name: path}. reference: {output: float64 array} or None (then ORT's outputs).

    Returns {contestant: {ms, err, load_ms, blocks} or {error}}, "reference" saying what err is measured against.
    """
    files = table.save_inputs(model, work / "inputs")
    shapes = None if model.dynamic else {n: list(s) for n, s in model.shapes().items()}
    out, racers = {}, []
    for name in list(engines) + peers:
        try:
            if name in engines:
                c = contest.start_hone(name, engines[name], threads, files)
            else:
                c = contest.start_peer(name, model.path, threads, files, shapes)
            racers.append(c)
            got = contest.load_outputs(c.ask(cmd="outputs", dir=str(work / name)))
            out[name] = {"load_ms": round(c.load["load_ns"] / 1e6, 3), "outputs": got}
        except contest.ContestError as e:
            out[name] = {"error": str(e)}
    want, kind = reference, "float64"
    if want is None and "outputs" in out.get("ort", {}):
        want, kind = out["ort"]["outputs"], "ort"
    blocks, fallen = contest.race([c for c in racers if "error" not in out[c.name]], rounds, renewed=engines)
    for c in racers:
        c.close()
    for name, row in out.items():
        got = row.pop("outputs", None)
        if name in fallen:
            out[name] = {"error": fallen[name]}
        elif got is not None:
            row["blocks"] = blocks[name]
            row["ms"] = contest.median_ms(blocks[name])
            row["err"] = contest.worst_error(got, want)
    return out, kind


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--models", metavar="NAME[,NAME]", help="default: the bench set")
    ap.add_argument("--peers", default="ort,openvino")
    ap.add_argument("--engine", action="append", default=[], metavar="[NAME=]FILE", help="engine to race (one model)")
    ap.add_argument("--threads", default="1", metavar="N[,N]")
    ap.add_argument("--rounds", type=int, default=8, help="blocks of 0.4 s for each contestant")
    ap.add_argument("--json", metavar="FILE", help="write the results there")
    args = ap.parse_args()
    wanted = table.select(args.models.split(",") if args.models else None, None if args.models else "bench")
    engines = dict(e.split("=", 1) if "=" in e else ("hone", e) for e in args.engine)
    peers = [p for p in args.peers.split(",") if p]
    rows = []
    for m in wanted:
        if not m.path.exists():
            print(f"{m.name:18} skipped: {m.path.name} is not there", flush=True)
            continue
        for threads in (int(t) for t in args.threads.split(",")):
            with tempfile.TemporaryDirectory() as tmp:
                got, kind = run_model(m, threads, peers, engines, args.rounds, pathlib.Path(tmp))
            rows.append({"model": m.name, "threads": threads, "reference": kind, "results": got})
            print(line(m.name, threads, got), flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def line(name, threads, got):
    cells = []
    base = next((r["blocks"] for r in got.values() if "blocks" in r), None)
    for who, r in got.items():
        if "error" in r:
            cells.append(f"{who} fails ({r['error'][:40]})")
            continue
        g, lo, hi = contest.ratio(r["blocks"], base)
        rel = "" if r["blocks"] is base else f" x{g:.3f} [{lo:.3f},{hi:.3f}]"
        err = "" if r["err"] is None else f" err {r['err']:.1e}"
        cells.append(f"{who} {r['ms']:.4g} ms{rel}{err}")
    return f"{name:18} {threads}t  " + "  |  ".join(cells)


if __name__ == "__main__":
    sys.exit(main())
