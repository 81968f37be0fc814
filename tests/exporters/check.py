"""How a file is judged: what an engine of it yields, against float64 evaluation and ONNX Runtime.

A file passes when an engine of it yields, for each size of its open shapes,
  - integers equal to float64's, floats with an error (relative L2 of the worst output, root of the mean square over the runs) of
    at most 1.5 times ONNX Runtime's or what the file makes of one unit in the last place of its numbers (move.py), or
    1e-6, or half such a unit, which an output of that type is rounded by (where one run makes up most of that root, of 64 runs a
    size, and in their geometric mean too), and
  - ONNX Runtime's outputs, of the optimised file or of the file as it is, are met by the engine or by the float64 evaluation within
    1e-4, such a unit or three times what it makes of one, as both may be 1.5 times that off: the float64 evaluation rests on our reading of the file, ONNX Runtime's does not.
Sizes that ONNX Runtime refuses are left out as long as one is left: exporters write extents down that they were to leave open.
"""

import json
import pathlib
import shutil
import subprocess

import derive
import merge
import peers

HERE = pathlib.Path(__file__).resolve().parent
CACHE = peers.CACHE / "exporters"
FACTOR, FLOOR, AGREE = 1.5, 1e-6, 1e-4
# How many evaluations of moved numbers there are at least, how many draws more before a file fails, and what they may move by: more,
# and comparing shows nothing.
DRAWS, MORE_DRAWS, CHAOS = 4, 4, 0.25
# Where ONNX Runtime rounds to bytes inside an op (move.py says in which): eight bits over six deviations are 7e-3 of a value each,
# here and at the next step.
INSIDE = 2e-2
# Halves are noisy, and so are bins: more runs. One input may lie where a file is sensitive: more before any file fails. Where one
# run makes up most of a root of mean squares, that tells of this run alone: many more, and errors are to be on a par in general, too.
NOISY_RUNS, RUNS_BEFORE_FAILING, RUNS_WHERE_ONE_RULES = 4, 8, 64
# (batch, tokens of each step): a prompt without a cache, then tokens, each with the caches that came out before. Several tokens at
# once with a cache for a batch of one alone: ONNX Runtime's GroupQueryAttention takes no other.
CHAINS = ((2, (5, 1, 1, 1)), (1, (4, 1, 3, 1)))
# Variants that step through the file of another.
STEPPED = {"steps": "", "genai_steps": "genai_fp32", "merged_steps": "merged"}
PATIENCE_S = 600 # for one answer: other work may go on
kept = {} # peer -> its process


def rms(values):
    return (sum(v * v for v in values) / len(values)) ** 0.5


def save(arrays, folder):
    """{name: file} of arrays."""
    import numpy as np
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for i, (name, a) in enumerate(arrays.items()):
        files[name] = str(folder / f"input_{i}.npy")
        np.save(files[name], a)
    return files


class File:
    """A model file as ours.build and ours.cached_reference take it."""

    def __init__(self, path, name):
        self.path, self.name, self.dynamic = path, name, True


def feeds_of(net, variant, work, least=1):
    """[{input: file}] of all runs of a file, each size `least` times or more."""
    if net.library == "packages":
        return [save(net.feeds({}), work / "in")]
    import nets
    path = CACHE / net.name / f"{variant}.onnx"
    of = derive.source(net, CACHE / net.name, variant).stem if variant in derive.TOOLS else variant
    sizes = net.sizes if nets.has_open_shapes(of) else net.sizes[:1]
    fixed = CACHE / net.name / f"{of}.fixed.json"
    if fixed.exists():
        sizes = [{**size, **json.loads(fixed.read_text())} for size in sizes]
    count = max(least, net.runs, NOISY_RUNS if variant in derive.NOISY else 0)
    return [save(named(path, net.feeds(size, run)), work / f"in_{i}_{run}") for i, size in enumerate(sizes) for run in range(count)]


def named(path, arrays, cached=True):
    """A net's arrays as a file of it takes them, in the file's order: some tools give inputs other names and types, or add one that
    tells whether caches are there (merge.py)."""
    import numpy as np
    about = path.with_suffix(".inputs.json")
    names = json.loads(about.read_text()) if about.exists() else {n: [n, a.dtype.name] for n, a in arrays.items()}
    arrays = arrays | {merge.FLAG: np.array([cached])}
    return {n: arrays[of].astype(dtype) for n, (of, dtype) in names.items()}


def answers(start, runs, folder):
    """Outputs of a contestant for all runs; the second set of inputs and later ones change its shapes."""
    import contest
    out, c = [], start(runs[0])
    try:
        for i, files in enumerate(runs):
            if i:
                c.ask(cmd="inputs", files=files)
            out.append(contest.load_outputs(c.ask(cmd="outputs", dir=str(folder / f"out_{i}"))))
    finally:
        if c not in kept.values():
            c.close()
    return out


def peer_with(peer, path, files):
    """A peer that has loaded a file: the process of the file before, if that still lives."""
    import contest
    contest.ANSWER_S = PATIENCE_S
    if peer in kept and kept[peer].proc.poll() is None:
        kept[peer].prepare(files, model=str(path), threads=1, shapes={})
    else:
        kept[peer] = contest.start_peer(peer, path, 1, files)
    return kept[peer]


def ort_answers(peer, path, runs, folder):
    """ONNX Runtime's outputs of each run, None where it refuses, and what it says then."""
    import contest

    def ask(some, to):
        return answers(lambda files: peer_with(peer, path, files), some, to)
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


def moved(path, runs, want, work, seeds):
    """How far the float64 evaluation moves in each run with the last places of the file's numbers and of its inputs; and what else
    move.py says."""
    import contest
    import ours
    errors = []
    for seed in seeds:
        to = work / f"moved_{seed}"
        to.mkdir(parents=True, exist_ok=True)
        given = [p for files in runs for p in files.values()]
        says = subprocess.run([str(peers.python_of("exporters")), str(HERE / "move.py"), str(path), str(to), str(seed), *given], check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
        for i, (files, w) in enumerate(zip(runs, want)):
            there = {n: str(to / "_".join(pathlib.Path(p).parts[-2:])) for n, p in files.items()}
            errors.append(contest.worst_error(ours.reference(File(to / "moved.onnx", "moved"), there, to / f"out_{i}"), w))
        shutil.rmtree(to)
    return errors, json.loads(says)


def check_file(net, variant, path, work):
    """{verdict, reason, err, ort, apart, moves} of one file."""
    r = check(path, feeds_of(net, variant, work), work)
    if net.library == "packages":
        return r
    if r["verdict"] == "FAIL" and "err" in r:
        r = check(path, feeds_of(net, variant, work, RUNS_BEFORE_FAILING), work)
    if r["verdict"] == "FAIL" and r.get("ruled"):
        r = check(path, feeds_of(net, variant, work, RUNS_WHERE_ONE_RULES), work)
    return r


def check(path, runs, work):
    """What check_file() yields, of these runs."""
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

    def each(some, of):
        return [contest.worst_error(s, o) for s, o in zip(some, of)]

    def off(some, of):
        return rms(each(some, of))
    ours, theirs = each(got, want), each(ort, want)
    r = {"verdict": "ok", "reason": "", "err": rms(ours), "ruled": ruled_by_one(ours)}
    if ort:
        r |= {"ort": rms(theirs), "apart": off(got, ort)}
        if len(ours) >= RUNS_WHERE_ONE_RULES:
            r["in_general"] = contest.geomean([a / b for a, b in zip(ours, theirs) if a and b] or [1])
    if r["err"] <= max(FLOOR, FACTOR * r.get("ort", 0)) and r.get("apart", 0) <= AGREE:
        return r
    plain, _ = ort_answers("ort_plain", path, runs, work / "plain")
    if ort and all(plain):
        r["apart"] = min(r["apart"], off(got, plain))
    few, errors = -(-DRAWS // len(runs)), []
    for seeds in (range(few), range(few, few + MORE_DRAWS)): # few may have missed what they are to find
        more, about = moved(path, runs, want, work, seeds)
        errors += more
        r["moves"] = rms(errors)
        r["reason"] = objection(r, about)
        if not r["reason"]:
            break
    return r | ({"verdict": "FAIL"} if r["reason"] else {})


def ruled_by_one(errors):
    """One run makes up more than half of the mean square."""
    return 2 * max(e * e for e in errors) > sum(e * e for e in errors) > 0


def objection(r, about):
    """Why a file fails, from what was measured; "" if it does not."""
    near = max(AGREE, about["unit"], 2 * FACTOR * r["moves"], INSIDE if about["inside"] else 0)
    if r["moves"] > CHAOS:
        return f"the last place of the file's numbers moves its outputs by {r['moves']:.1e}: this shows nothing"
    if r["err"] > max(FLOOR, about["unit"] / 2, FACTOR * max(r.get("ort", 0), r["moves"])):
        return f"error {r['err']:.1e}, ONNX Runtime's {r.get('ort', 0):.1e}, a last place's {r['moves']:.1e}"
    if r.get("in_general", 0) > FACTOR:
        return f"in the geometric mean of runs the error is {r['in_general']:.2f} times ONNX Runtime's"
    apart = min(r.get("apart", 0), r.get("ort", 0))
    return f"{apart:.1e} from ONNX Runtime, {near:.1e} allowed" if apart > near else ""


# ---- decoders, step by step ----
def stepped(net, variant):
    """The file that a variant of STEPPED is about."""
    of = STEPPED[variant]
    return CACHE / net.name / f"{of}.onnx" if of else derive.source(net, CACHE / net.name)


def chain(net, path, ask, folder):
    """[(input files, outputs)] of a decoder's steps; ask(files, step) -> outputs. What comes out as caches goes in again."""
    out = []
    for batch, tokens in CHAINS:
        cache, past = {}, 0
        for seq in tokens:
            given = named(path, net.feeds({"batch": batch, "seq": seq, "past": past}, len(out)), past > 0)
            files = save(given | cache, folder / f"in_{len(out)}")
            out.append((files, ask(files, len(out))))
            caches = zip([n for n in given if n.startswith("past")], list(out[-1][1].values())[1:]) # both in the same order
            cache = {n: a.astype(given[n].dtype) for n, a in caches}
            past += seq
    return out


def chain_of(net, path, start, folder):
    """The same of a contestant."""
    import contest
    running = []

    def ask(files, i):
        if running:
            running[0].ask(cmd="inputs", files=files)
        else:
            running.append(start(files))
        return contest.load_outputs(running[0].ask(cmd="outputs", dir=str(folder / f"out_{i}")))
    try:
        return chain(net, path, ask, folder)
    finally:
        for c in running:
            c.close()


def check_steps(net, path, work):
    """A decoder whose caches are fed back: each step against the same step of float64's own chain and of ONNX Runtime's."""
    import contest
    import ours
    model, engine = File(path, path.stem), work / "engine.hone"
    ours.build(model, engine, 1, ["--opt-level", 0])
    want = chain(net, path, lambda files, i: ours.cached_reference(model, files, work), work / "float64")
    got = chain_of(net, path, lambda files: contest.start_hone("hone", engine, 1, files), work / "hone")
    says = {}
    try:
        ort = chain_of(net, path, lambda files: contest.start_peer("ort", path, 1, files), work / "ort")
    except contest.ContestError as e:
        ort, says = [], {"refused": str(e)}
    return judge(path, [files for files, _ in want], work, *([o for _, o in c] for c in (want, got, ort))) | says
