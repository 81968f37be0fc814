#!/usr/bin/env python3
"""make numbers: how far our float32 lies from float64, beside ONNX Runtime's.

Every case of the suites that has outputs in float32, on inputs drawn anew: floats uniform between the least and the greatest that the
suite feeds (what is not finite stays where it is), everything else as it is. Each output's error is the root of the mean square over
all elements of at least 8 seeds, of an engine built the default way and of ONNX Runtime, against our evaluation in float64. A case passes
when ours is at most 1.5 times ONNX Runtime's, or half a unit in the last place of the result: what rounding it once may cost, which
no order of sums and no approximation undercuts. Outputs of few elements take more seeds, up to 32; what fails then is judged on 256
fresh ones. The real models of scripts/fetch_models.py run with --models, their integers drawn too.

Needs onnx and onnxruntime: scripts/peers.py fuzz makes a Python that has both. Results: build/conformance/numbers.json.
"""

import argparse
import collections
import json
import pathlib
import re
import shutil
import sys
import zlib

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

import run as conformance

# A root of a mean over n elements is off by 0.7 / sqrt(n): small outputs take more seeds, and what fails is tried on fresh ones.
FACTOR, SEEDS, MORE, FRESH, ELEMENTS = 1.5, 8, 32, 256, 256
WORK = conformance.ROOT / "build" / "conformance" / "numbers"
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
# Floats that are sizes, not data: operands by op and position.
SIZES = {"Resize": (1, 2), "Upsample": (1,), "NonMaxSuppression": (0, 1, 2, 3, 4), "RoiAlign": (1,), "MaxRoiPool": (1,), "Range": (0, 1, 2),
         "QuantizeLinear": (1,), "DequantizeLinear": (1,), "Dropout": (1,), "Pad": (2,), "MelWeightMatrix": (0, 1, 2, 3, 4)}
BLOCKS = {False: ("<!-- numbers: accuracy.py --write-docs -->", "<!-- end numbers -->"),
          True: ("<!-- numbers of models: accuracy.py --models --write-docs -->", "<!-- end numbers of models -->")}


class Skip(Exception):
    """Why a case says nothing about numbers."""


def fixed_inputs(model):
    """Inputs of the graph that some node, of a body too, takes as sizes."""
    out = set()

    def walk(graph):
        for n in graph.node:
            out.update(n.input[i] for i in SIZES.get(n.op_type, ()) if i < len(n.input))
            if n.op_type in RANDOM:
                raise Skip("draws at random")
            for a in n.attribute:
                for g in [*a.graphs, *([a.g] if a.HasField("g") else [])]:
                    walk(g)
    walk(model.graph)
    return out


def drawn(x, r, integers):
    """x's finite elements drawn anew from the range that they span; of integers where asked."""
    if integers and x.dtype.kind in "iu" and x.size and x.min() < x.max():
        return r.integers(x.min(), x.max(), x.shape, x.dtype, endpoint=True)
    if x.dtype != np.float32 or x.size == 0 or not np.isfinite(x).any():
        return x
    finite = np.isfinite(x)
    lo, hi = x[finite].min(), x[finite].max()
    return np.where(finite, r.uniform(lo, hi, x.shape).astype(np.float32), x) if hi > lo else x


def given(folder):
    """The case's own inputs, as tensors."""
    out = []
    for i in range(64):
        f = folder / "test_data_set_0" / f"input_{i}.pb"
        if not f.exists():
            return out
        t = onnx.TensorProto()
        try:
            t.ParseFromString(f.read_bytes())
            out.append((t.name, numpy_helper.to_array(t)))
        except Exception as e:
            raise Skip("an input is no tensor") from e
    return out


def session(path):
    o = ort.SessionOptions()
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    try:
        return ort.InferenceSession(str(path), o, providers=["CPUExecutionProvider"])
    except Exception as e: # whatever onnxruntime raises
        raise Skip(f"ONNX Runtime refuses it: {str(e).strip().splitlines()[0][:160]}") from e


def write(case, folder, to, first=0, least=SEEDS):
    """The case's model, and sets of inputs of seeds from `first` on with what ONNX Runtime makes of them. Raises Skip."""
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    if not any(o.type.tensor_type.elem_type == onnx.TensorProto.FLOAT for o in model.graph.output):
        raise Skip("no output in float32")
    fixed, own, run = fixed_inputs(model), given(folder), session(folder / "model.onnx")
    names = [i.name for i in run.get_inputs()]
    own = [(n if n in names else names[i], x) for i, (n, x) in enumerate(own) if n in names or i < len(names)]
    if {n for n, _ in own} < set(names):
        raise Skip("inputs without a file")
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    (to / "model.onnx").symlink_to(folder / "model.onnx")
    outputs, seed, seeds = [o.name for o in run.get_outputs()], 0, least
    while seed < seeds:
        r = np.random.default_rng([zlib.crc32(case.encode()), first + seed])
        feeds = {n: x if n in fixed else drawn(x, r, case.startswith("models/")) for n, x in own}
        try:
            got = run.run(outputs, feeds)
        except Exception as e:
            raise Skip(f"ONNX Runtime fails: {str(e).strip().splitlines()[0][:160]}") from e
        if not all(isinstance(y, np.ndarray) for y in got):
            raise Skip("an output is no tensor")
        smallest = min((y.size for y in got if y.dtype == np.float32 and y.size), default=ELEMENTS)
        seeds = max(least, min(MORE, -(-ELEMENTS // smallest)))
        data = to / f"test_data_set_{seed}"
        seed += 1
        data.mkdir()
        for kind, tensors in (("input", feeds.items()), ("output", zip(outputs, got))):
            for i, (n, x) in enumerate(tensors):
                (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(x), n).SerializeToString())


def real_models(only):
    """{name: folder} of the fetched models, with the inputs that the benchmarks feed."""
    sys.path[:0] = [str(conformance.ROOT / "bench"), str(conformance.ROOT / "scripts")]
    import models as table
    out = {}
    for m in table.load():
        if not m.path.exists() or only not in m.name:
            continue
        folder = WORK.parent / "real" / m.name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "test_data_set_0").mkdir(parents=True)
        (folder / "model.onnx").symlink_to(m.path)
        for i, (n, p) in enumerate(table.save_inputs(m, folder / "in").items()):
            (folder / "test_data_set_0" / f"input_{i}.pb").write_bytes(numpy_helper.from_array(np.load(p), n).SerializeToString())
        out[f"models/{m.name}"] = str(folder)
    return out


def verdict(reply):
    """{output: [ours, theirs, half]} and the worst ratio above what is allowed as equal."""
    out = {}
    for part in filter(None, reply.split(";")):
        name, ours, theirs, half, _ = part.rsplit(" ", 4)
        out[name] = [float(ours), float(theirs), float(half)]
    return out, max((o / max(FACTOR * t, h) for o, t, h in out.values() if max(o, t, h) > 0), default=0)


def op_of(case):
    """Cases are named for their ops: what a table groups them by."""
    return re.sub(r"^(newest/|simple/|pytorch-\w+/)?(test_)?", "", case).split("_expanded")[0]


def report(got, skipped):
    results = {"passed": [], "failed": [], "skipped": [{"case": c, "reason": r} for c, r in sorted(skipped.items())]}
    for case, (v, reason) in sorted(got.items()):
        if v == "skip":
            results["skipped"].append({"case": case, "reason": f"we refuse it: {reason}"})
            continue
        if v != "pass":
            results["failed"].append({"case": case, "reason": f"{v}: {reason}"})
            continue
        outputs, worst = verdict(reason)
        if not outputs:
            results["skipped"].append({"case": case, "reason": "no finite float32 among the outputs"})
            continue
        results["passed" if worst <= 1 else "failed"].append({"case": case, "worst": worst, "outputs": outputs,
                                                              "reason": "" if worst <= 1 else "further from float64 than ONNX Runtime"})
    return results


def ratios(results):
    """Ours over ONNX Runtime's of each output whose errors are above rounding."""
    return [o / t for c in results["passed"] + results["failed"] for o, t, h in c.get("outputs", {}).values() if t > h]


def judged(results):
    return results["passed"] + [c for c in results["failed"] if "outputs" in c]


def worst_of(case):
    """Errors of the output nearest to its bound: ours, ONNX Runtime's, half a place."""
    return max(case["outputs"].values(), key=lambda e: e[0] / max(FACTOR * e[1], e[2]) if max(e) > 0 else 0)


def table_of_models(results):
    """Lines for docs/conformance.md."""
    failed = f", {len(results['failed'])} do not" if results["failed"] else ""
    lines = [f"{len(results['passed'])} real models pass{failed}; without an output in float32: {len(results['skipped'])}.", "",
             "| model | output nearest to the bound | ONNX Runtime's | half a place |", "|---|---|---|---|"]
    for c in judged(results):
        o, t, h = worst_of(c)
        lines.append(f"| {c['case'].removeprefix('models/')} | {o:.1e} | {t:.1e} | {h:.1e} |")
    return lines


def table(results):
    """Lines for docs/conformance.md."""
    done = judged(results)
    rounding = sum(all(o <= h for o, _, h in c["outputs"].values()) for c in done)
    r = np.array(ratios(results))
    why = collections.Counter(re.sub(r":.*", "", s["reason"]) for s in results["skipped"])
    lines = [f"{len(done)} cases, {SEEDS} to {MORE} seeds each; ONNX Runtime {ort.__version__}. {len(results['passed'])} pass; {rounding} are within half",
             f"a unit in the last place. Of the {len(r)} outputs on which ONNX Runtime is not, our error is {np.exp(np.log(np.maximum(r, 1e-3)).mean()):.2f}",
             f"times its own (geometric mean). Left out: {'; '.join(f'{k} ({n})' for k, n in why.most_common())}.", ""]
    worst = sorted(done, key=lambda c: -c["worst"])[:8]
    lines += ["| nearest to the bound | ours | ONNX Runtime's | half a place |", "|---|---|---|---|"]
    for c in worst:
        o, t, h = worst_of(c)
        lines.append(f"| {c['case']} | {o:.1e} | {t:.1e} | {h:.1e} |")
    return lines


def write_docs(results, of_models):
    begin, end = BLOCKS[of_models]
    text = conformance.DOCS.read_text()
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"error: {conformance.DOCS.name} has no block for numbers")
    lines = table_of_models(results) if of_models else table(results)
    conformance.DOCS.write_text(head + begin + "\n\n" + "\n".join(lines) + "\n\n" + end + tail)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--data", type=pathlib.Path, default=conformance.DEBIAN, help="Debian's folder of kinds of cases")
    ap.add_argument("--suite", type=pathlib.Path, help="a newer set of node cases beside it, as run.py takes it")
    ap.add_argument("--only-suite", action="store_true", help="the newer set alone")
    ap.add_argument("--only", metavar="TEXT", default="", help="only cases whose name contains this")
    ap.add_argument("--models", action="store_true", help="the real models instead of the suites")
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--limit", type=float, default=300, metavar="S", help="seconds for one case")
    ap.add_argument("--program", type=pathlib.Path)
    ap.add_argument("--write-docs", action="store_true", help="put the summary into docs/conformance.md")
    args = ap.parse_args()
    args.node, args.ways = False, "default"
    ort.set_default_logger_severity(4)
    cases, skipped, made = {}, {}, {} # made: {case: folder of its sets}
    if args.models:
        cases = real_models(args.only)
    else:
        for s in conformance.suites(args, conformance.ROOT / "build" / "conformance"):
            cases |= {c: d for c, d in conformance.cases_of(s).items() if args.only in c and "_expanded" not in c}
    program = args.program or conformance.find_program(conformance.ROOT / "build" / "release")

    def measure(some, first, least):
        for case in some:
            try:
                write(case, pathlib.Path(cases[case]), WORK / case, first, least)
                made[case] = str(WORK / case)
            except Skip as e:
                skipped[case] = str(e)
        return conformance.run_all([str(program), "--numbers", str(FRESH)], {c: made[c] for c in some if c in made}, args.jobs, args.limit)

    got = measure(sorted(cases), 0, SEEDS)
    again = [c["case"] for c in report(got, skipped)["failed"]]
    got |= measure(again, MORE, FRESH if not args.models else SEEDS)
    results = report(got, skipped)
    store = WORK.parent / ("numbers_models.json" if args.models else "numbers.json")
    store.write_text(json.dumps(results, indent=1) + "\n")
    for c in results["failed"]:
        text = "; ".join(f"{n}: {o:.2e}, ONNX Runtime {t:.2e}, half a place {h:.2e}" for n, (o, t, h) in c.get("outputs", {}).items())
        print(f"      {c['case']}: {c['reason']} {text}")
    if args.write_docs:
        write_docs(results, args.models)
    print(f"numbers: {len(results['passed'])} passed, {len(results['failed'])} failed, {len(results['skipped'])} skipped")
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
