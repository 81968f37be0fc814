#!/usr/bin/env python3
"""make exporters: what exporters and tools write, built, run, and compared with float64 and with ONNX Runtime.

Architectures of torchvision, transformers, timm and our own (nets_*.py), small, with seeded weights; each exported by torch's
TorchScript exporter and its new one, some by Debian's torch 1.13 too, with fixed and with open shapes; some then quantised, halved,
optimised or simplified by the tools of derive.py. The files of bench/models.toml that tf2onnx and Paddle wrote take part.
Exported files are kept in .cache/exporters, results go to build/exporters/results.json.

A file passes when an engine of it yields, for each size of its open shapes,
  - integers equal to float64's, floats with an error (relative L2 of the worst output, root of the mean square over the runs) of
    at most 1.5 times ONNX Runtime's, or 1e-6, or what the file makes of one unit in the last place of its numbers (move.py), and
  - ONNX Runtime's outputs, of the optimised file or of the file as it is, within 1e-4 or twice what it makes of such a unit: the
    float64 evaluation rests on our reading of the file, ONNX Runtime's does not.
Sizes that ONNX Runtime refuses are left out as long as one is left: exporters write extents down that they were to leave open.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import traceback

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "bench"), str(ROOT / "scripts")]
import derive  # noqa: E402
import peers  # noqa: E402
import table  # noqa: E402

CACHE = peers.CACHE / "exporters"
WORK = ROOT / "build" / "exporters"
DEBIAN = pathlib.Path("/usr/bin/python3")
EXPORT_LIMIT_S = 400
FACTOR, FLOOR, AGREE = 1.5, 1e-6, 1e-4
# How often a file's numbers are moved, and what it may then move by: more, and comparing shows nothing.
DRAWS, CHAOS = 4, 0.25
# Ops in which ONNX Runtime rounds to bytes what the file leaves in float32 (onnx-decisions.md, com.microsoft): eight bits over six
# deviations are 7e-3 of a value each, here and at the next step.
ROUNDS_INSIDE, INSIDE = {"DynamicQuantizeLSTM"}, 2e-2
# Halves are noisy, and so are bins: more runs.
NOISY, NOISY_RUNS = ("fp16", "qdq", "qoperator", "dynamic"), 4


def prepare(with_packages):
    """Environments, then the same program under the tools' Python."""
    for name in ("tools", "ort", "exporters"):
        error = peers.make(name)
        if error:
            raise SystemExit(f"error: {error}")
    if with_packages:
        subprocess.run([sys.executable, str(ROOT / "scripts" / "fetch_models.py")], check=True)
    os.execve(peers.python_of("tools"), [str(peers.python_of("tools")), __file__, *sys.argv[1:]],
              {**os.environ, "HONE_EXPORTERS_READY": "1"})


# ---- exporting ----
def variants_of(net):
    out = []
    for exporter in ("script", "dynamo", "debian"):
        if getattr(net, exporter):
            out.append(f"{exporter}-static")
            if net.dynamic_axes():
                out.append(f"{exporter}-dynamic")
    return out + list(net.derive)


def file_of(net, variant):
    return peers.CACHE / "models" / f"{net.name}.onnx" if net.library == "packages" else CACHE / net.name / f"{variant}.onnx"


def is_done(folder, variant):
    return (folder / f"{variant}.onnx").exists() or (folder / f"{variant}.refused").exists()


def export(net, wanted, force):
    """Let the exporters write what is not there yet, a process an environment."""
    folder = CACHE / net.name
    todo = [v for v in wanted if force or not is_done(folder, v)]
    for python, part in ((peers.python_of("exporters"), [v for v in todo if not v.startswith("debian")]),
                         (DEBIAN, [v for v in todo if v.startswith("debian")])):
        if not part:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "export.log", "a", encoding="utf-8") as log:
            try:
                rc = subprocess.run([str(python), str(HERE / "export.py"), str(folder), net.name, *part], stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log, timeout=EXPORT_LIMIT_S).returncode
            except subprocess.TimeoutExpired:
                rc = 124
        for v in part:
            if not is_done(folder, v): # the process died; perhaps of a variant before this one
                (folder / f"{v}.refused").write_text(f"the exporter's process ended with status {rc}\n")


# ---- checking ----
def rms(values):
    return (sum(v * v for v in values) / len(values)) ** 0.5


def save_feeds(net, size, run, folder):
    import numpy as np
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for i, (name, a) in enumerate(net.feeds(size, run).items()):
        files[name] = str(folder / f"input_{i}.npy")
        np.save(files[name], a)
    return files


class File:
    """A model file as ours.build and ours.cached_reference take it."""

    def __init__(self, path, name):
        self.path, self.name, self.dynamic = path, name, True


def feeds_of(net, variant, work):
    """[{input: file}] of all runs of a file."""
    if net.library == "packages":
        return [save_feeds(net, {}, 0, work / "in")]
    of = variant if "-" in variant else derive.source(net, CACHE / net.name).stem
    sizes = net.sizes if of.endswith("-dynamic") else net.sizes[:1]
    fixed = CACHE / net.name / f"{of}.fixed.json"
    if fixed.exists():
        sizes = [{**size, **json.loads(fixed.read_text())} for size in sizes]
    count = max(net.runs, NOISY_RUNS) if variant in NOISY else net.runs
    return [save_feeds(net, size, run, work / f"in_{i}_{run}") for i, size in enumerate(sizes) for run in range(count)]


def answers(start, runs, folder):
    """Outputs of a contestant for all runs; the second set of inputs and later ones change its shapes."""
    import contest
    out = []
    with start(runs[0]) as c:
        for i, files in enumerate(runs):
            if i:
                c.ask(cmd="inputs", files=files)
            out.append(contest.load_outputs(c.ask(cmd="outputs", dir=str(folder / f"out_{i}"))))
    return out


def ort_answers(peer, path, runs, folder):
    """ONNX Runtime's outputs of each run, None where it refuses, and what it says then."""
    import contest

    def ask(some, to):
        return answers(lambda files: contest.start_peer(peer, path, 1, files), some, to)
    try:
        return ask(runs, folder), ""
    except contest.ContestError as e:
        out, says = [], str(e)
    for i, files in enumerate(runs if len(runs) > 1 else []):
        try:
            out += ask([files], folder / str(i))
        except contest.ContestError as e:
            out.append(None)
            says = str(e)
    return out or [None] * len(runs), says


def moved(path, runs, want, work):
    """How far the float64 evaluation moves with the last places of the file's numbers and of its inputs; and the file's ops."""
    import contest
    import ours
    errors = []
    for seed in range(DRAWS):
        to = work / f"moved_{seed}"
        to.mkdir(parents=True, exist_ok=True)
        given = [p for files in runs for p in files.values()]
        subprocess.run([str(peers.python_of("exporters")), str(HERE / "move.py"), str(path), str(to), str(seed), *given], check=True,
                       stdin=subprocess.DEVNULL)
        for i, (files, w) in enumerate(zip(runs, want)):
            there = {n: str(to / "_".join(pathlib.Path(p).parts[-2:])) for n, p in files.items()}
            errors.append(contest.worst_error(ours.reference(File(to / "moved.onnx", "moved"), there, to / f"out_{i}"), w))
        shutil.rmtree(to)
    return rms(errors)


def check(path, runs, work):
    """{verdict, reason, err, ort, apart, moves} of one file."""
    import contest
    import ours
    model, engine = File(path, path.stem), work / "engine.hone"
    ort, says = ort_answers("ort", path, runs, work / "ort")
    if any(ort):
        runs, ort = [list(kept) for kept in zip(*[(r, o) for r, o in zip(runs, ort) if o])]
    try:
        ours.build(model, engine, 1, ["--opt-level", 0])
        want = [ours.cached_reference(model, files, work) for files in runs]
        got = answers(lambda files: contest.start_hone("hone", engine, 1, files), runs, work / "hone")
    except (ours.HoneError, contest.ContestError) as e:
        return {"verdict": "FAIL" if any(ort) else "skip", "reason": str(e)} | ({"refused": says} if says else {})
    if not all(any(a.any() for a in w.values()) for w in want):
        return {"verdict": "FAIL", "reason": "all outputs are zero or empty: this shows nothing"}
    return judge(path, runs, work, want, got, ort if any(ort) else []) | ({"refused": says} if says else {})


def judge(path, runs, work, want, got, ort):
    import contest

    def off(some, of):
        return rms([contest.worst_error(s, o) for s, o in zip(some, of)])
    r = {"verdict": "ok", "reason": "", "err": off(got, want)}
    if ort:
        r |= {"ort": off(ort, want), "apart": off(got, ort)}
    if r["err"] <= max(FLOOR, FACTOR * r.get("ort", 0)) and r.get("apart", 0) <= AGREE:
        return r
    plain, _ = ort_answers("ort_plain", path, runs, work / "plain")
    if ort and all(plain):
        r["apart"] = min(r["apart"], off(got, plain))
    r["moves"] = moved(path, runs, want, work)
    near = max(AGREE, 2 * r["moves"], INSIDE if ROUNDS_INSIDE & ops_of(path) else 0)
    if r["moves"] > CHAOS:
        r["reason"] = f"the last place of the file's numbers moves its outputs by {r['moves']:.1e}: this shows nothing"
    elif r["err"] > max(FLOOR, FACTOR * r.get("ort", 0), r["moves"]):
        r["reason"] = f"error {r['err']:.1e}, ONNX Runtime's {r.get('ort', 0):.1e}, a last place's {r['moves']:.1e}"
    elif r.get("apart", 0) > near:
        r["reason"] = f"{r['apart']:.1e} from ONNX Runtime, {near:.1e} allowed"
    return r | ({"verdict": "FAIL"} if r["reason"] else {})


def ops_of(path):
    """The kinds of nodes in a file, as far as the file's text shows them."""
    text = path.read_bytes()
    return {op for op in ROUNDS_INSIDE if op.encode() in text}


def check_variant(net, variant):
    refused = CACHE / net.name / f"{variant}.refused"
    if refused.exists():
        return {"verdict": "skip", "reason": f"exporter: {refused.read_text().strip()}"}
    work = WORK / net.name / variant
    try:
        return check(file_of(net, variant), feeds_of(net, variant, work), work)
    except Exception as e: # one file must not end the run
        traceback.print_exc()
        return {"verdict": "FAIL", "reason": f"{type(e).__name__}: {e}"}


@functools.cache
def build_id():
    """A digest of the libraries that the program runs with."""
    import ours
    text = subprocess.run(["ldd", str(ours.HONE)], capture_output=True, text=True, check=True).stdout
    h = hashlib.sha256()
    for lib in sorted(p for p in text.split() if "/libhone" in p):
        h.update(pathlib.Path(lib).read_bytes())
    return h.hexdigest()[:12]


def files_of(net, args):
    return [v for v in variants_of(net) if not args.variants or v in args.variants.split(",")]


def export_net(net, args):
    if net.library != "packages":
        export(net, files_of(net, args), args.force)


def check_net(net, args):
    out = []
    for v in files_of(net, args):
        r = {"net": net.name, "library": net.library, "variant": v, "hone": build_id(), **check_variant(net, v)}
        numbers = " ".join(f"{k} {r[k]:.1e}" for k in ("err", "ort", "apart", "moves") if k in r)
        print(f"{r['verdict']:4}  {net.name + ' ' + v:36} {numbers} {r['reason']}{'; ONNX Runtime: ' + r['refused'] if 'refused' in r else ''}", flush=True)
        out.append(r)
    return out


def run_all(chosen, args):
    """One export at a time, ahead of the checks. Results are kept after each architecture."""
    results = []
    with concurrent.futures.ThreadPoolExecutor(1) as ahead:
        for net, done in [(n, ahead.submit(export_net, n, args)) for n in chosen]:
            done.result()
            results += check_net(net, args)
            keep(results)
    return results


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--only", metavar="NET[,NET]", help="these architectures")
    ap.add_argument("--library", metavar="NAME[,NAME]", help="those of these libraries")
    ap.add_argument("--variants", metavar="NAME[,NAME]", help="these files of each alone, such as dynamo-dynamic")
    ap.add_argument("--force", action="store_true", help="export again what is there")
    ap.add_argument("--list", action="store_true", help="name the architectures and their files")
    ap.add_argument("--write-docs", action="store_true", help="put the table of all results into docs/conformance.md")
    args = ap.parse_args()
    import nets
    known = nets.load()
    unknown = [n for n in (args.only or "").split(",") if n and n not in known]
    if unknown:
        ap.error(f"no architecture named {', '.join(unknown)}; --list names them")
    chosen = [known[n] for n in args.only.split(",")] if args.only else list(known.values())
    chosen = [n for n in chosen if not args.library or n.library in args.library.split(",")]
    if args.list:
        for n in chosen:
            print(f"{n.library:14} {n.name:20} {' '.join(variants_of(n))}")
        return 0
    if "HONE_EXPORTERS_READY" not in os.environ:
        prepare(any(n.library == "packages" for n in chosen))
    results = run_all(chosen, args)
    return report(results, args.write_docs)


def merged(results):
    """These results and those of earlier runs that were about other files."""
    store = WORK / "results.json"
    old = json.loads(store.read_text()) if store.exists() else []
    import nets
    order = {(n.name, v): (i, k) for i, n in enumerate(nets.load().values()) for k, v in enumerate(variants_of(n))}
    new = {(r["net"], r["variant"]): r for r in old + results}
    return [new[k] for k in sorted(new.keys() & order.keys(), key=order.get)]


def keep(results):
    WORK.mkdir(parents=True, exist_ok=True)
    everything = merged(results)
    (WORK / "results.json").write_text(json.dumps(everything, indent=1) + "\n")
    return everything


def report(results, write_docs):
    everything = keep(results)
    if write_docs:
        table.write(everything, ROOT / "docs" / "conformance.md")
    count = {v: sum(r["verdict"] == v for r in results) for v in ("ok", "FAIL", "skip")}
    for r in results:
        if r["verdict"] == "FAIL":
            print(f"      {r['net']} {r['variant']}: {r['reason']}")
    print(f"exporters: {count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    return 1 if count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
