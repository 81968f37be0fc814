#!/usr/bin/env python3
"""make fuzz-graphs: models changed in ways that must not change their results (variants.py), engine against engine.

Random models (graph_gen.py, rowwise.py) by seed, three variants each, or real ones (--models smallest first), every variant that
has a place in them. Random: within 32 times what the models' own rounding does, and 512 units in the last place of the largest
element. Real: relative L2 error 1e-4, for quantised ones 5e-2 (an element may fall into the next bin). NaN and infinities stand in
the same places. What differs is stored under build/fuzz-graphs/variants/<name>: both models with their inputs.

    metamorphic.py --graphs 200 --seed 1
    metamorphic.py --models magika,silero_op15
    metamorphic.py --models all --seconds 600
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "conformance"), str(ROOT / "bench")]
import graph_base  # noqa: E402
import graph_gen  # noqa: E402
import models as table  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import rowwise  # noqa: E402
import run as conformance  # noqa: E402
import variants  # noqa: E402
from onnx import numpy_helper  # noqa: E402

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": graph_base.BF16, "bool": np.bool_,
          **{f"{k[0]}{b}": f"{k}{b}" for k in ("int", "uint") for b in (8, 16, 32, 64)}}
UNIT = {"float32": 2.0 ** -23, "float64": 2.0 ** -52, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7}


class Refused(Exception):
    """The engine says that it does not support the model."""


class Wrong(Exception):
    """A failure, or results that differ."""


class Engine:
    """Outputs of engines, from a process that outlives them."""

    def __init__(self, program, folder, limit_s, loose):
        self.folder = folder
        self.runner = conformance.Runner([str(program), "--write"] + (["--loose"] if loose else []), limit_s)

    def store(self, case, where):
        shutil.rmtree(where, ignore_errors=True)
        (where / "test_data_set_0").mkdir(parents=True)
        onnx.save_model(case.model, where / "model.onnx")
        for i, (n, x) in enumerate(case.feeds.items()):
            (where / "test_data_set_0" / f"input_{i}.pb").write_bytes(numpy_helper.from_array(np.ascontiguousarray(x).reshape(x.shape), n).SerializeToString())

    def outputs(self, case):
        """[(array, noise)] by the case's names."""
        self.store(case, self.folder)
        verdict, said = self.runner.run(str(self.folder))
        if verdict == "skip":
            raise Refused(said)
        if verdict != "pass":
            raise Wrong(f"{verdict}: {said}")
        out = []
        for i, text in enumerate(t for t in said.split(";") if t.strip()):
            kind, dims, noise = text.strip().split(" ") if text.strip().count(" ") == 2 else (text.split()[0], "", text.split()[-1])
            shape = tuple(int(d) for d in dims.split(",") if d)
            raw = np.frombuffer((self.folder / f"got_{i}.bin").read_bytes(), np.dtype(DTYPES[kind]), count=int(np.prod(shape, dtype=np.int64)))
            out.append((raw.reshape(shape), float(noise)))
        return out


def compare_exactly_shaped(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        raise Wrong(f"{a.dtype}{list(a.shape)} where the first model gives {b.dtype}{list(b.shape)}")
    if a.dtype.kind in "iub" and a.dtype.name not in UNIT:
        return None
    x, y = a.astype(np.float64), b.astype(np.float64)
    if not (np.isfinite(x) == np.isfinite(y)).all() or not (np.isnan(x) == np.isnan(y)).all():
        raise Wrong("NaN or infinities stand in other places")
    ok = np.isfinite(y)
    return x[ok], y[ok]


def check_random(a, b, noise):
    pair = compare_exactly_shaped(a, b)
    if pair is None:
        if not np.array_equal(a, b):
            raise Wrong(f"{np.mean(a != b):.3g} of the integers differ")
        return
    x, y = pair
    most = float(np.abs(y).max()) if y.size else 0
    bound = 32 * noise + 512 * UNIT[a.dtype.name] * most + 1e-18
    worst = float(np.abs(x - y).max()) if y.size else 0
    if worst > bound:
        raise Wrong(f"off by {worst:.3g} where {bound:.3g} is allowed, largest element {most:.3g}")


def check_real(a, b, limit):
    pair = compare_exactly_shaped(a, b)
    if pair is None:
        if np.mean(a != b) > (0 if limit < 1e-3 else 0.02):
            raise Wrong(f"{np.mean(a != b):.3g} of the integers differ")
        return
    x, y = pair
    err = float(np.linalg.norm(x - y) / max(np.linalg.norm(y), 1e-30)) if y.size else 0
    if err > limit:
        raise Wrong(f"relative L2 error {err:.2g} where {limit:.2g} is allowed")


def try_variant(engine, name, case, want, check, r):
    """"ok", "none" (no place in the model) or "refused"; raises Wrong."""
    new = variants.VARIANTS[name](case, r)
    if new is None:
        return "none"
    try:
        got = engine.outputs(new)
    except (Refused, Wrong) as e:
        refused = isinstance(e, Refused) or str(e).startswith("fail: import:")
        if refused and name in ("weights_fed", "extents_open", "unused_outputs"):
            return "refused" # they may take away what has to be known
        raise Wrong(str(e)) from e
    by_name = new.back([x for x, _ in got], [x for x, _ in want])
    if by_name is None:
        return "none"
    noise = max([n for _, n in got] + [n for _, n in want] + [0])
    for k, x in enumerate(by_name):
        a, b = x if isinstance(x, tuple) else (x, want[k][0])
        check(a, b, noise)
    return "ok"


def keep(engine, out, name, variant, case, reason):
    where = out / f"{name}-{variant}"
    shutil.rmtree(where, ignore_errors=True)
    shutil.copytree(engine.folder, where)
    engine.store(case, where / "first")
    (where / "reason.txt").write_text(reason + "\n")


def run_variants(engine, name, case, which, check, r, out, tally):
    try:
        want = engine.outputs(case)
    except Refused:
        tally["refused"] = tally.get("refused", 0) + 1
        return
    except Wrong as e:
        keep(engine, out, name, "first", case, str(e))
        print(f"{name}: {e}", flush=True)
        tally["failed"] = tally.get("failed", 0) + 1
        return
    for v in which:
        try:
            verdict = try_variant(engine, v, case, want, check, r)
        except Wrong as e:
            verdict = "failed"
            keep(engine, out, name, v, case, str(e))
            print(f"{name}: {v}: {str(e)[:300]}", flush=True)
        key = f"{v} {verdict}"
        tally[key] = tally.get(key, 0) + 1


def random_models(engine, args, out, tally, end):
    for seed in range(args.seed, args.seed + args.graphs):
        if time.monotonic() > end:
            return
        r = random.Random(seed)
        try:
            model, feeds, names = rowwise.make(seed) if seed % 2 else graph_gen.make(seed, False, seed % 3 == 1)
        except Exception as e:
            raise SystemExit(f"seed {seed}: the generator failed: {type(e).__name__}: {e}")
        if not names or not model.graph.node:
            continue
        tally["models"] = tally.get("models", 0) + 1
        by_row = ("batch_padded", "batch_split", "channels_permuted")
        others = [v for v in variants.VARIANTS if v not in by_row]
        which = r.sample(by_row, 2) + r.sample(others, 1) if seed % 2 else r.sample(others, 3)
        run_variants(engine, str(seed), variants.Case(model, feeds, names), which, check_random, r, out, tally)


def quantised(model):
    return any("Quantize" in n.op_type or n.op_type.startswith("QLinear") or n.op_type.endswith("Integer") for g in variants.graphs_of(model.graph) for n in g.node)


def real_models(engine, args, out, tally, end):
    names = None if args.models == "all" else args.models.split(",")
    chosen = [m for m in table.select(names) if m.path.exists() and m.source != "local"]
    for m in sorted(chosen, key=lambda m: m.path.stat().st_size):
        if time.monotonic() > end:
            return
        model = onnx.load(m.path)
        feeds = two_rows(model, table.make_inputs(m))
        case = variants.Case(model, feeds, [o.name for o in model.graph.output])
        limit = 5e-2 if quantised(model) else 1e-4
        tally["models"] = tally.get("models", 0) + 1
        start = time.monotonic()
        run_variants(engine, m.name, case, args.variants or variants.VARIANTS, lambda a, b, _noise, limit=limit: check_real(a, b, limit), random.Random(1), out, tally)
        print(f"{m.name}: {time.monotonic() - start:.0f} s", flush=True)


def two_rows(model, feeds):
    """Inputs for two rows where the model lets the batch open: the second is the first, scaled."""
    found = variants.batch_axes(variants.Case(model, feeds, []))
    if not found or any(feeds[n].shape[a] != 1 for n, a in found[1].items()):
        return feeds
    return {n: np.concatenate([x, (x * 0.75).astype(x.dtype)], found[1][n]) if n in found[1] else x for n, x in feeds.items()}


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--graphs", type=int, default=200)
    ap.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after so long")
    ap.add_argument("--seed", type=int, default=int(time.time()) % 10**8 * 10, help="first seed (default: from the clock)")
    ap.add_argument("--models", help="names of bench/models.toml, or all")
    ap.add_argument("--variants", type=lambda t: t.split(","), help=f"of {', '.join(variants.VARIANTS)}")
    ap.add_argument("--limit", type=float, default=300, metavar="S", help="seconds for one model")
    ap.add_argument("--program", type=pathlib.Path)
    args = ap.parse_args()
    program = args.program or conformance.find_program(ROOT / "build" / "release")
    out = ROOT / "build" / "fuzz-graphs" / "variants"
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("HONE_WORKER", str(ROOT / "build" / "hone-worker"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)) # not without its processes and files
    tally, end = {}, time.monotonic() + args.seconds
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as tmp:
        os.environ.update(TMPDIR=tmp, HONE_CACHE_DIR=f"{tmp}/cache")
        engine = Engine(program, pathlib.Path(tmp) / "case", args.limit, not args.models)
        try:
            (real_models if args.models else random_models)(engine, args, out, tally, end)
        finally:
            engine.runner.stop()
    for key in sorted(tally):
        print(f"      {tally[key]:5} {key}")
    failed = sum(n for k, n in tally.items() if k.endswith("failed"))
    print(f"fuzz-variants: {sum(n for k, n in tally.items() if k.endswith(' ok'))} passed, {failed} failed, "
          f"{sum(n for k, n in tally.items() if k.endswith(' none') or k.endswith('refused'))} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
