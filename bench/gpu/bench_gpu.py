#!/usr/bin/env python3
"""make bench-gpu: our engines against torch on the GPU of this machine, to build/bench/gpu.json (or $OUT/gpu.json).

    bench_gpu.py [--models A,B] [--batch 1,32] [--peers eager_graph,reduce_overhead] [--tune SECONDS] [--limit SECONDS] [--merge JSON]

The networks of suite.py are made here with seeded weights, exported to ONNX, built by `hone`, and raced in alternating blocks,
each contestant in a process of its own, inputs and outputs on the GPU. err is the relative L2 error of the worst output against
the same weights in float64. A row that fails says why and the next one follows. max_autotune compiles for minutes: ask for it
with few models a run. --small and --device cpu try the steps where there is no GPU.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent)]
import contest  # noqa: E402  beside this file in a kit, one folder up in the repository

ROOT = HERE.parent.parent
MODELS = ["resnet50", "efficientnet_b0", "mobilenet_v3", "convnext_tiny", "vit_b_16", "bert_base_s128", "gpt2_s512", "llama_block",
          "unet256", "yolov8n"]
PEERS = ["eager_graph", "reduce_overhead", "max_autotune", "jax"]
COMPILE_S = {"max_autotune": 420, "reduce_overhead": 180, "jax": 180}


def libraries_of_torch():
    """Building happens in processes of its own, racing in torch's, which has its libraries loaded: both are to use the same ones, for
    what one version of cuDNN compiled for an engine is compiled anew by another when the engine opens."""
    packages = importlib.util.find_spec("nvidia")
    for variable, pattern in (("HONE_CUBLASLT", "*/lib/libcublasLt.so.1?"), ("HONE_CUDNN", "cudnn/lib/libcudnn.so.9")):
        found = [p for folder in (packages.submodule_search_locations if packages else ()) for p in pathlib.Path(folder).glob(pattern)]
        if found:
            os.environ.setdefault(variable, str(found[0]))


class Hone:
    """The program and its library, in a kit or in a build folder."""

    def __init__(self):
        kit = HERE / "hone"
        self.warnings = set()
        libraries_of_torch()
        self.program = kit if kit.exists() else ROOT / "build" / "hone"
        self.library = HERE / "lib" / "libhone.so.0" if kit.exists() else ROOT / "build" / "libhone.so"
        worker = HERE / "hone-worker" if kit.exists() else ROOT / "build" / "hone-worker"
        os.environ.setdefault("HONE_WORKER", str(worker))
        if kit.exists():  # for every process from here on: those that load the library too
            os.environ["LD_LIBRARY_PATH"] = f"{HERE / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"

    def call(self, args, timeout):
        """(the object printed last, seconds); raises ContestError with the program's own words."""
        start = time.monotonic()
        try:
            r = subprocess.run([str(self.program), *map(str, args), "--json"], capture_output=True, text=True,
                               timeout=timeout)
        except subprocess.TimeoutExpired:
            raise contest.ContestError(f"hone {args[0]} took longer than {timeout:.0f} s") from None
        self.warnings.update(w[:300] for w in r.stderr.splitlines() if "warn" in w or " is out" in w)
        if r.returncode != 0 and args[0] != "doctor":
            said = (r.stdout.strip().splitlines() or [""])[-1] + r.stderr[-600:]
            raise contest.ContestError(f"hone {args[0]}: status {r.returncode}: {said[-900:]}")
        return json.loads(contest.last_line(r.stdout)), time.monotonic() - start


class Waiting:
    """Processes that have begun and wait for work: importing torch takes seconds, and may as well pass while another row runs."""

    def __init__(self):
        self.idle = {}

    def begin(self, kind):
        return contest.Contestant(kind, [sys.executable, str(HERE / "worker.py"), kind])

    def take(self, kind):
        return self.idle[kind].pop() if self.idle.get(kind) else self.begin(kind)

    def prepare(self, kinds):
        for kind in kinds:
            have = self.idle.setdefault(kind, [])
            if len(have) < kinds.count(kind):
                have.append(self.begin(kind))

    def close(self):
        for c in sum(self.idle.values(), []):
            c.close()


waiting = Waiting()


def start(kind, **cmd):
    """A contestant that has loaded."""
    c = waiting.take(kind.split(":")[0])
    c.name = kind
    try:
        c.load = c.ask(timeout=COMPILE_S.get(kind, 120), cmd="load", **cmd)
    except contest.ContestError:
        c.close()
        raise
    return c


def compile_ahead(args):
    """Let torch's compiler work on --ahead rows at once before the first race: what it makes stands in its cache then. Choices that
    it times (max_autotune) are left to the row, where nothing else is on the GPU."""
    rows = [(m, b) for b in args.batch for m in args.models]

    def compile_one(row):
        try:
            start("reduce_overhead", **common(*row, args)).close()
        except contest.ContestError:
            pass  # the row says why

    if args.ahead and "reduce_overhead" in args.peers:
        with concurrent.futures.ThreadPoolExecutor(args.ahead) as pool:
            list(pool.map(compile_one, rows))


def common(name, batch, args):
    """What every contestant of a row is told."""
    return dict(model=name, batch=batch, small=args.small, dtype=args.dtype, device=args.device)


def first_eager(args):
    return next((k for k in args.peers if k.startswith("eager")), None)


def make(told, onnx, args, work):
    """A contestant that wrote the ONNX file and the float64 outputs as well: a quick peer, else one that does nothing else."""
    return start(first_eager(args) or "torch", **told, export=str(onnx), reference=str(work / "reference"),
                 batches=bool(args.tune) and args.dtype != "bfloat16")


def build(hone, onnx, engine, args, row):
    options = ["--target", args.target, "-o", engine, *args.build.split()]
    try:
        _, row["build_s"] = hone.call(["build", onnx, *options], args.build_timeout)
        _, row["warm_build_s"] = hone.call(["build", onnx, *options], args.build_timeout)
        return
    except contest.ContestError as e:
        row["error"] = str(e)
    hone.call(["build", onnx, *options, "--opt-level", "0"], args.build_timeout)
    row["build"] = "by the cost model alone"


def tune(hone, onnx, engine, ref, args, row):
    """With the outputs that torch computed: to evaluate a batch on the processor takes longer than to tune it."""
    if not args.tune:
        return False
    known = [word for option, key in (("--input", "batch_inputs"), ("--reference", "batch_files"))
             for name, file in ref.load.get(key, {}).items() for word in (option, f"{name}={file}")]
    try:
        reply, row["tune_s"] = hone.call(["tune", onnx, "--target", args.target, "-o", engine, "--budget", args.tune,
                                          *known, *args.build.split()], args.tune + 120)
        row["tuned"] = {k: reply.get(k) for k in ("route", "speedup", "speedup_lo", "speedup_hi", "confirmed", "trials", "note", "effects")}
        row["tuned"]["trial_list"] = [[t["outcome"], t["ratio"], sum(t["cost"][k] for k in ("build_s", "judge_s", "race_s")), t["route"]]
                                      for t in reply["trial_list"]]
        return bool(reply.get("route"))  # nothing proven: the engine is the default one
    except contest.ContestError as e:
        row["tune_error"] = str(e)
        return False


def build_variants(hone, onnx, work, args, row):
    """Engines by the routes asked for, raced beside the default one."""
    made = []
    for i, route in enumerate(args.variant):
        engine = work / f"variant{i}.hone"
        try:
            hone.call(["build", onnx, "--target", args.target, "-o", engine, "--route", route, *args.build.split()], args.build_timeout)
            made.append((f"ours:{route}", engine))
        except contest.ContestError as e:
            row["variants"][route] = {"ms": None, "err": None, "error": str(e)}
    return made


def contestants(hone, engines, told, ref, args, row):
    """Everyone else who loads; the others with their reasons in the row."""
    racers = []
    for kind, engine in engines:
        try:
            c = start(kind, **told, engine=str(engine), library=str(hone.library), results=ref.load["results"])
            row.setdefault("first_ms", c.load["first_ns"] / 1e6)  # from opening to the end of the first run
            racers.append(c)
        except contest.ContestError as e:
            row["error"] = str(e)
    for kind in args.peers:
        try:
            racers.append(ref if kind == ref.name else start(kind, **told))
            row["peers"][kind] = {"ms": None, "err": None, "load_s": racers[-1].load["load_ns"] / 1e9}
        except contest.ContestError as e:
            row["peers"][kind] = {"ms": None, "err": None, "error": str(e)}
    return racers


def shares(steps):
    """Where our time goes: [kernel, steps, ms of them all, share], most first."""
    sums = {}
    for s in steps:
        name = s.get("kernel", s["kind"])
        ms, n = sums.get(name, (0, 0))
        sums[name] = (ms + s["min_us"] / 1e3, n + 1)
    whole = sum(ms for ms, _ in sums.values())
    return [[name, n, round(ms, 4), round(ms / whole, 3)] for name, (ms, n) in sorted(sums.items(), key=lambda kv: -kv[1][0])]


def take(c, blocks, want, work, args, row):
    """One contestant's figures."""
    got = contest.load_outputs(c.ask(timeout=120, cmd="outputs", dir=str(work / c.name.replace(":", "_"))))
    ms, err = contest.median_ms(blocks[c.name]), contest.worst_error(got, want)
    if c.name == "ours":
        row.update(ours_ms=ms, ours_err=err)
        if args.profile:
            row["profile"] = shares(c.ask(timeout=60, cmd="profile")["steps"])
    elif c.name == "ours:tuned":
        row.update(tuned_ms=ms, tuned_err=err)
    elif c.name.startswith("ours:"):
        row["variants"][c.name[5:]] = {"ms": ms, "err": err}
    else:
        row["peers"][c.name].update(ms=ms, err=err)
        if "ours" in blocks:
            row["peers"][c.name]["ratio"] = contest.ratio(blocks[c.name], blocks["ours"])


def clocks(args):
    """What the card does just now: figures of two sittings compare only where these do."""
    query = "clocks.sm,clocks.mem,temperature.gpu,power.draw"
    if args.device != "cuda":
        return None
    try:
        r = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True, timeout=20)
        return dict(zip(query.split(","), [x.strip() for x in r.stdout.strip().splitlines()[0].split(",")]))
    except (OSError, IndexError, subprocess.TimeoutExpired) as e:
        return {"error": str(e)[:200]}


def one(name, batch, args, hone):
    row = {"model": name, "batch": batch, "dtype": args.dtype, "ours_ms": None, "tuned_ms": None, "ours_err": None, "peers": {},
           "variants": {}, "error": None}
    work = args.work / f"{name}_b{batch}"
    work.mkdir(parents=True, exist_ok=True)
    racers, engines, ref = [], [], None
    waiting.prepare(2 * (["ours"] * (1 + bool(args.tune) + len(args.variant)) + args.peers + ([] if first_eager(args) else ["torch"])))
    told, onnx = common(name, batch, args), work / "model.onnx"
    try:
        ref = make(told, onnx, args, work)
        want, row["exported"] = contest.load_outputs(ref.load), ref.load["exported"]
        try:
            build(hone, onnx, work / "ours.hone", args, row)
            engines.append(("ours", work / "ours.hone"))
            if tune(hone, onnx, work / "tuned.hone", ref, args, row):
                engines.append(("ours:tuned", work / "tuned.hone"))
            engines += build_variants(hone, onnx, work, args, row)
        except contest.ContestError as e:
            row["error"] = str(e)
        racers = contestants(hone, engines, told, ref, args, row)
        blocks, fallen = contest.race(racers, args.rounds, block_s=args.block)
        row["clocks"] = clocks(args)  # warm: right behind the race
        for c in racers:
            if c.name in fallen:
                row["error" if c.name == "ours" else c.name] = fallen[c.name]
                continue
            try:
                take(c, blocks, want, work, args, row)
            except contest.ContestError as e:
                row["error" if c.name == "ours" else c.name] = str(e)
        if "tuned" in row and row["tuned_ms"] is None and not row["tuned"]["route"]:
            row.update(tuned_ms=row["ours_ms"], tuned_err=row["ours_err"])
    except Exception as e:  # whatever a row dies of, the next one follows
        row["error"] = row["error"] or f"{type(e).__name__}: {str(e)[:900]}"
    finally:
        for c in {id(c): c for c in [*racers, ref] if c}.values():
            c.close()
    return row


# ---- the table ----
def best_peer(row):
    done = [(p["ms"], name) for name, p in row["peers"].items() if p.get("ms")]
    return min(done) if done else (None, "-")


def number(x, form):
    return format(x, form) if x is not None else "-"


def line(row):
    ms, name = best_peer(row)
    ours = min(x for x in (row["ours_ms"], row["tuned_ms"], float("inf")) if x is not None)
    ratio = ms / ours if ms and ours < float("inf") else None
    err = row["peers"].get(name, {}).get("err")
    return (f"{row['model']:16} b{row['batch']:<3} ours {number(row['ours_ms'], '8.3f')} tuned {number(row['tuned_ms'], '8.3f')} "
            f"best {number(ms, '8.3f')} {name:16} {number(ratio, '5.2f')}x err {number(row['ours_err'], '.1e')} / {number(err, '.1e')} "
            f"build {number(row.get('build_s'), '5.1f')} s {(row['error'] or '')[:160]}")


def summary(rows):
    """The table, where the time goes in each row, and the means."""
    out = [line(r) for r in rows]
    for r in rows:
        out += [f"  {r['model']:16} b{r['batch']:<3} {number(v['ms'], '8.3f')} ms with {route} {v.get('error', '')[:160]}"
                for route, v in r["variants"].items()]
        for name, n, ms, share in r.get("profile", [])[:5]:
            out.append(f"  {r['model']:16} b{r['batch']:<3} {share:6.1%} {ms:9.4f} ms in {n:3} of {name}")
    ratios = [best_peer(r)[0] / min(x for x in (r["ours_ms"], r["tuned_ms"]) if x) for r in rows if best_peer(r)[0] and r["ours_ms"]]
    gains = [r["ours_ms"] / r["tuned_ms"] for r in rows if r["ours_ms"] and r["tuned_ms"]]
    if ratios:
        out.append(f"best peer over ours: geometric mean {contest.geomean(ratios):.2f}, worst {min(ratios):.2f}, {len(ratios)} rows")
    if gains:
        proven = [r["tuned"] for r in rows if r.get("tuned", {}).get("route")]
        out.append(f"default over tuned: geometric mean {contest.geomean(gains):.3f}, {len(gains)} rows, {len(proven)} with a proven winner")
    for r in rows:
        t = r.get("tuned") or {}
        if t.get("route"):
            out.append(f"  {r['model']:16} b{r['batch']:<3} {t['speedup']:.3f}x [{t['speedup_lo']:.3f}, {t['speedup_hi']:.3f}] by {t['route']}")
    return "\n".join(out)


def merge(rows, path):
    """A sitting in parts: peers and tuned figures of rows that an earlier part measured. Every figure says from which part it is by
    its own `clocks`; ratios stay those of the part in which both were raced."""
    earlier = {(r["model"], r["batch"], r["dtype"]): r for r in json.loads(path.read_text())["rows"]}
    for row in rows:
        old = earlier.pop((row["model"], row["batch"], row["dtype"]), None)
        for name, peer in (old or {}).get("peers", {}).items():
            if row["peers"].get(name, {}).get("ms") is None:
                row["peers"][name] = {**peer, "clocks": old.get("clocks")}
        if old and row["tuned_ms"] is None and old.get("tuned_ms") is not None:
            row.update(tuned_ms=old["tuned_ms"], tuned_err=old.get("tuned_err"), tuned=old.get("tuned"), tuned_clocks=old.get("clocks"))
    rows += earlier.values()


def machine(args, hone):
    said = {"doctor": hone.call(["doctor"], 120)[0]}
    if args.device == "cuda":
        query = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm"
        try:
            r = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True, timeout=20)
            said.update(zip(query.split(","), [x.strip() for x in r.stdout.split(",")]))
        except (OSError, subprocess.TimeoutExpired) as e:
            said["nvidia-smi"] = str(e)[:200]
    return said


def parse():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--models", default=",".join(MODELS), type=lambda s: s.split(","))
    ap.add_argument("--batch", default="1,32", type=lambda s: [int(x) for x in s.split(",")])
    ap.add_argument("--peers", default="eager_graph,reduce_overhead", type=lambda s: [x for x in s.split(",") if x],
                    help=f"of {','.join(PEERS)}, and eager")
    ap.add_argument("--tune", type=float, default=0, metavar="S", help="tune each for S seconds")
    ap.add_argument("--variant", action="append", default=[], metavar="ROUTE", help="race an engine by this route, too")
    ap.add_argument("--build", default="", help="more words for hone build and tune")
    ap.add_argument("--build-timeout", type=float, default=120)
    ap.add_argument("--target", default="sm_90a")
    ap.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    ap.add_argument("--dtype", default="float16")
    ap.add_argument("--small", action="store_true", help="a few layers of each network")
    ap.add_argument("--profile", action="store_true", help="times of our steps in the results")
    ap.add_argument("--ahead", type=int, default=0, metavar="N", help="first let torch compile N rows at once, into its cache")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--block", type=float, default=0.2, metavar="S", help="seconds of a block")
    ap.add_argument("--merge", type=pathlib.Path, metavar="JSON", help="rows of an earlier part: figures that this run lacks are taken from there")
    ap.add_argument("--limit", type=float, default=float("inf"), metavar="S", help="start no row after so long")
    ap.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/hone-bench-gpu"))
    ap.add_argument("--out", type=pathlib.Path, default=pathlib.Path(os.environ.get("OUT") or ROOT / "build" / "bench") / "gpu.json")
    return ap.parse_args()


def main():
    args, began = parse(), time.monotonic()
    hone, rows = Hone(), []
    result = {"date": time.strftime("%Y-%m-%d"), "machine": machine(args, hone), "rows": rows}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    print(json.dumps(result["machine"]), flush=True)
    compile_ahead(args)
    for batch in args.batch:
        for name in args.models:
            if time.monotonic() - began > args.limit:
                print(f"{name} b{batch}: out of time")
                continue
            rows.append(one(name, batch, args, hone))
            print(f"{time.monotonic() - began:6.0f} s {line(rows[-1])}", flush=True)
            args.out.write_text(json.dumps(result, indent=1))
    waiting.close()
    if args.merge and args.merge.exists():
        merge(rows, args.merge)
    result["warnings"] = sorted(hone.warnings)
    args.out.write_text(json.dumps(result, indent=1))
    print("\n".join(["", *result["warnings"][:20], summary(rows)]))
    return 0 if rows and all(r["error"] is None for r in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
