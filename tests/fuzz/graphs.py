#!/usr/bin/env python3
"""make fuzz-graphs: random valid models; our engines, our evaluator and ONNX Runtime vote.

Each seed is a model (graph_gen.py) and inputs. An engine built by default, and one built plainly, with open extents or with
everything on in turn (--all-ways: all of them), must yield what the evaluator yields, within what rounding does to the very
model; the evaluator must yield what ONNX Runtime yields without optimisation. Some seeds make extents symbolic, some put
infinities, NaN and denormals among the inputs (then ONNX Runtime has no vote). A mismatch is cut down to the fewest nodes that
still show it and stored under build/fuzz-graphs/<seed>/: model.onnx and its inputs, with a line that says what disagrees.
What was run is added to build/fuzz-graphs/runs.json.

Needs the environment that `scripts/peers.py fuzz` makes.
"""

import argparse
import concurrent.futures
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "conformance")]
import graph_gen  # noqa: E402
import onnx  # noqa: E402
import run as conformance  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def ort_run(model, feeds, names):
    """ONNX Runtime's outputs, optimisation off; None where it refuses the model."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    import onnxruntime as ort
    ort.set_default_logger_severity(4)
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads = 1
    o.log_severity_level = 4
    try:
        return ort.InferenceSession(model, o, providers=["CPUExecutionProvider"]).run(names, feeds)
    except Exception:
        return None


def narrowest_float(model):
    """The narrowest float type among the values of a model, as cases.c names it."""
    m = onnx.load_model_from_string(model)
    inferred = onnx.shape_inference.infer_shapes(m).graph
    types = {v.type.tensor_type.elem_type for v in (*inferred.value_info, *inferred.input, *inferred.output)}
    types |= {a.i for n in m.graph.node for a in n.attribute if a.name == "to"} | {t.data_type for t in m.graph.initializer}
    kinds = ((TensorProto.BFLOAT16, "bf16"), (TensorProto.FLOAT16, "f16"), (TensorProto.FLOAT, "f32"))
    return next((name for t, name in kinds if t in types), "f64")


class Ort:
    """ort_run in a process of its own, which some models kill."""

    def __init__(self):
        self.pool = None

    def run(self, model, feeds, names):
        self.pool = self.pool or concurrent.futures.ProcessPoolExecutor(1)
        try:
            return self.pool.submit(ort_run, model, feeds, names).result(timeout=60)
        except (concurrent.futures.process.BrokenProcessPool, concurrent.futures.TimeoutError):
            self.pool = None
            return None


class Voters:
    """Our side: one program for the evaluator against given outputs, one a way of building against the evaluator."""

    def __init__(self, program, folder, limit_s, all_ways=False):
        self.folder, self.all_ways = folder, all_ways
        self.ort = Ort()
        self.eval = conformance.Runner([str(program), "--eval", "--loose"], limit_s)
        self.ways = {w: conformance.Runner([str(program), "--self", "--loose", *argv], limit_s) for w, argv in conformance.WAYS.items()}

    def store(self, model, feeds, outs, names):
        data = self.folder / "test_data_set_0"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        (self.folder / "model.onnx").write_bytes(model)
        (self.folder / "narrowest").write_text(narrowest_float(model))
        for i, (n, x) in enumerate(feeds.items()):
            (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(x, n).SerializeToString())
        for i, (n, x) in enumerate(zip(names, outs or [])):
            (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(x, n).SerializeToString())

    def turn(self, seed):
        """The ways of building that a seed is tried in."""
        others = [w for w in self.ways if w != "default"]
        return list(self.ways) if self.all_ways else ["default", others[seed // 3 % len(others)]]

    def vote(self, model, feeds, names, ask_ort, ways):
        """("pass" | "skip" | what disagrees, the reason)."""
        raw = model.SerializeToString()
        outs = self.ort.run(raw, feeds, names) if ask_ort else None
        self.store(raw, feeds, outs, names)
        if outs is not None:
            verdict, reason = self.eval.run(str(self.folder))
            if verdict != "pass":
                return ("skip", reason) if verdict == "skip" else ("evaluator against ONNX Runtime", reason)
        for way in ways:
            verdict, reason = self.ways[way].run(str(self.folder))
            if verdict == "fail" and "does not broadcast" in reason: # a limit that docs/onnx-decisions.md states
                return "skip", "run: the batch of a product is found to be 1"
            if verdict != "pass":
                return ("skip", reason) if verdict == "skip" else (f"{way} engine", reason)
        return "pass", "" if outs is not None or not ask_ort else "ONNX Runtime refused"

    def stop(self):
        if self.ort.pool:
            for p in list(self.ort.pool._processes.values()):
                p.kill()
            self.ort.pool.shutdown(cancel_futures=True)
        for r in (self.eval, *self.ways.values()):
            r.stop()


# ---- shrinking ----
def with_outputs(model, names):
    """The model that yields these values alone, without what they do not need."""
    need, keep = set(names), []
    for n in reversed(model.graph.node):
        if need & set(n.output):
            keep.append(n)
            need |= {i for i in n.input if i}
            for a in n.attribute:
                if a.HasField("g"):
                    need |= {i for m in a.g.node for i in m.input} | {o.name for o in a.g.output}
    g = model.graph
    small = helper.make_graph(keep[::-1], g.name, [i for i in g.input if i.name in need],
                              [helper.make_empty_tensor_value_info(n) for n in names], [t for t in g.initializer if t.name in need])
    out = helper.make_model(small, opset_imports=model.opset_import, ir_version=model.ir_version)
    types = {v.name: v for v in onnx.shape_inference.infer_shapes(out).graph.value_info}
    known = {v.name: v for v in g.output}
    del out.graph.output[:]
    for n in names:
        out.graph.output.append(known.get(n) or types.get(n) or helper.make_empty_tensor_value_info(n))
    return out


def as_input(model, feeds, name, value):
    """The model that is given a value instead of computing it."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    m.graph.input.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    nodes = []
    for n in m.graph.node:
        outs = ["" if o == name else o for o in n.output]
        if any(outs):
            n.output[:] = outs
            nodes.append(n)
    del m.graph.node[:]
    m.graph.node.extend(nodes)
    return m, {**feeds, name: value}


class Shrinker:
    def __init__(self, voters, what, ask_ort, ways):
        self.v, self.what, self.ask_ort, self.ways = voters, what, ask_ort, ways

    def fails(self, model, feeds, names):
        try:
            used = {i.name for i in model.graph.input}
            return self.v.vote(model, {k: x for k, x in feeds.items() if k in used}, names, self.ask_ort, self.ways)[0] == self.what
        except Exception:
            return False

    def first_value(self, model, feeds):
        """The model cut at the first value that disagrees by itself."""
        for n in model.graph.node:
            for o in n.output:
                small = with_outputs(model, [o])
                if o and small.graph.node and self.fails(small, feeds, [o]):
                    return small, [o]
        return None

    def shrink(self, model, feeds, names):
        found = self.first_value(model, feeds)
        model, names = found or (model, names)
        for n in list(model.graph.node)[::-1]:
            for o in n.output:
                if not o or o in names or n.op_type == "Constant":
                    continue
                value = self.v.ort.run(with_outputs(model, [o]).SerializeToString(),
                                       {i.name: feeds[i.name] for i in with_outputs(model, [o]).graph.input}, [o])
                if not value or not hasattr(value[0], "dtype"):
                    continue
                small, more = as_input(model, feeds, o, value[0])
                small = with_outputs(small, names)
                if small.graph.node and self.fails(small, more, names):
                    model, feeds = small, more
        used = {i.name for i in model.graph.input}
        return model, {k: x for k, x in feeds.items() if k in used}, names


class Tally:
    """What became of the seeds; stored now and then, a row a run."""

    def __init__(self, path, row):
        self.path, self.row, self.start = path, row, time.monotonic()
        row.update(graphs=0, passed=0, failed=0, refused=0, without_ort=0, reasons={}, failures=[])

    def store(self):
        self.row["seconds"] = round(time.monotonic() - self.start)
        with open(self.path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            rows = json.loads(self.path.read_text()) if self.path.exists() else []
            rows = [r for r in rows if r["id"] != self.row["id"]] + [self.row]
            self.path.write_text(json.dumps(rows, indent=1) + "\n")

    def count(self, seed, what, reason):
        self.row["graphs"] += 1
        self.row[what if what in ("passed", "refused") else "failed"] += 1
        self.row["without_ort"] += what == "passed" and bool(reason)
        if what == "refused":
            self.row["reasons"].setdefault(re.sub(r"\s*in node.*|[0-9]+", "", reason)[:120], []).append(seed)
        elif what != "passed":
            self.row["failures"].append(f"{seed}: {what}: {reason[:200]}")
        if self.row["graphs"] % 50 == 0:
            self.store()

    def show(self):
        for reason, seeds in sorted(self.row["reasons"].items(), key=lambda x: -len(x[1])):
            print(f"      refused {len(seeds)}: {reason} (seed {seeds[0]})")
        r = self.row
        print(f"{r['graphs']} graphs from seed {r['seed']} in {r['seconds']} s: {r['without_ort']} without a vote of ONNX Runtime")
        print(f"fuzz-graphs: {r['passed']} passed, {r['failed']} failed, {r['refused']} skipped")


def one(voters, seed, out, tally):
    hostile, symbolic = seed % 7 == 3, seed % 3 == 1
    try:
        model, feeds, names = graph_gen.make(seed, hostile, symbolic)
    except Exception as e: # the generator's own
        print(f"seed {seed}: the generator failed: {type(e).__name__}: {e}", flush=True)
        tally.count(seed, "generator", f"{type(e).__name__}: {e}")
        return
    if not names or not model.graph.node:
        return
    ways = voters.turn(seed)
    what, reason = voters.vote(model, feeds, names, not hostile, ways)
    if what in ("pass", "skip"):
        tally.count(seed, {"pass": "passed", "skip": "refused"}[what], reason)
        return
    small = Shrinker(voters, what, not hostile, ways).shrink(model, feeds, names)
    again = voters.vote(*small, not hostile, ways) # leaves the files
    shutil.rmtree(out / str(seed), ignore_errors=True)
    shutil.copytree(voters.folder, out / str(seed))
    ops = " ".join(n.op_type for n in small[0].graph.node)
    (out / str(seed) / "reason.txt").write_text(f"{what}: {again[1] or reason}\n{ops}\n")
    tally.count(seed, what, f"{again[1] or reason} [{ops[:120]}]")
    print(f"seed {seed}: {what}: {(again[1] or reason)[:200]} [{ops[:120]}]", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--graphs", type=int, default=500)
    ap.add_argument("--seconds", type=float, default=0, help="stop after so long (0: never)")
    ap.add_argument("--seed", type=int, default=int(time.time()) % 10**8 * 10, help="first seed (default: from the clock)")
    ap.add_argument("--limit", type=float, default=60, metavar="S", help="seconds for one model")
    ap.add_argument("--all-ways", action="store_true", help="build each graph in every way")
    ap.add_argument("--program", type=pathlib.Path)
    args = ap.parse_args()
    program = args.program or conformance.find_program(ROOT / "build" / "release")
    out = ROOT / "build" / "fuzz-graphs"
    out.mkdir(parents=True, exist_ok=True)
    tally, end = Tally(out / "runs.json", {"id": f"{args.seed}-{os.getpid()}-{int(time.time())}", "seed": args.seed}), float("inf")
    if args.seconds:
        end = time.monotonic() + args.seconds
    os.environ.setdefault("HONE_WORKER", str(ROOT / "build" / "hone-worker"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)) # not without its processes and files
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as tmp: # engines are synced to disk
        os.environ["TMPDIR"] = tmp
        os.environ["HONE_CACHE_DIR"] = f"{tmp}/cache"
        voters = Voters(program, pathlib.Path(tmp) / "case", args.limit, args.all_ways)
        try:
            for seed in range(args.seed, args.seed + args.graphs):
                if time.monotonic() >= end:
                    break
                one(voters, seed, out, tally)
        finally:
            voters.stop()
    tally.store()
    tally.show()
    return 1 if tally.row["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
