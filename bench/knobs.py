#!/usr/bin/env python3
"""Which knobs move a real model's time? Sweeps every tunable knob alone, then proves the largest effects.

    .cache/peers/tools/bin/python bench/knobs.py --models ocr_cls,magika --threads 1
    .cache/peers/tools/bin/python bench/knobs.py --models ocr_cls --knobs 'thread:*' --threads 2

On a machine that others use, what one thread computes is told by its time on the processor, not by the clock: with one thread
a call's time is that, with more it is a low quantile of the wall clock's.

Screening: engines of one model, one for each value, race in blocks against the default (bench/contest.py); engines with the
default's payload are left out. That is quick, and blind to where memory happened to lie. Proof: for each knob the value that
moved a model most meets the default in fresh pairs of processes, as in `hone tune`; the effect is proven when the 99% interval
of the paired log-ratio excludes 1. The tuner itself would not do: it leaves a loser before it has an interval, and here a
proven loss counts as much. Results go to build/bench/knobs.json, proofs to build/bench/knobs.db as well, a trial store that
`hone knobs --stats` reads; runs add to what is there.
"""

import argparse
import fnmatch
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import contest
import models as table
import ours

OUT = contest.ROOT / "build" / "bench" / "knobs.json"
FASTER, NOT_FASTER = 1, 2   # outcomes as stores number them
# Knobs that nothing reads by default, and the settings under which they count.
BASES = ["", "-layout:image=2", "-math:winograd=1"]
PAIRS = 10              # of processes in a proof
T_99 = 3.250            # Student's t for their 99% interval
BATCH = 10              # engines in a race beside the default


def listing(*args):
    """What `hone knobs` and `hone explain` print: JSON over many lines."""
    run = subprocess.run([str(ours.HONE), *map(str, args), "--json"], capture_output=True, text=True, timeout=900)
    if run.returncode != 0:
        raise ours.HoneError(f"hone {args[0]}: {contest.last_line(run.stderr)}")
    return json.loads(run.stdout)


def read_knobs(model, base, threads):
    """{knob: nodes} that a build of the model reads."""
    args = ["explain", model.path, "--threads", threads, *ours.shape_args(model)]
    reply = listing(*args, *(["--set", base] if base else []))
    out = {}
    for r in reply["knobs_read"]:
        out[r["knob"]] = out.get(r["knob"], 0) + 1
    return out


def values_of(knob, most):
    """The ends of the domain and, where there is room, values between; the default left out."""
    domain = knob["domain"]
    if domain.startswith("pow2"):
        lo, hi = (int(x) for x in domain.split()[1].split(".."))
        every = [str(v) for v in sorted({lo, *(1 << b for b in range(31))}) if lo <= v <= hi]
    elif ".." in domain:
        lo, hi = (int(x) for x in domain.split(".."))
        every = [str(v) for v in range(lo, hi + 1)]
    else:
        every = domain.split("|")
    every = [v for v in every if v not in (str(knob["default"]), "auto")]
    if len(every) <= most:
        return every
    return [every[round(i * (len(every) - 1) / max(1, most - 1))] for i in range(most)]


def on_cpu_ns(pid):
    """Nanoseconds that a process's threads have run."""
    return sum(int(f.read_text().split()[0]) for f in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


def block_ns(racer, threads, seconds):
    """Time of one call, from a block of them."""
    before = on_cpu_ns(racer.proc.pid)
    times = racer.ask(cmd="block", seconds=seconds, timeout=60 + 10 * seconds)["times_ns"]
    if threads == 1:
        return (on_cpu_ns(racer.proc.pid) - before) / (len(times) + 1)  # one call comes before the clock starts
    return sorted(times)[len(times) // 5]


def blocks_of(racers, threads, rounds, seconds):
    """{name: [ns of each round]}, in turns, another first each round; raises for the first that falls out."""
    out = {c.name: [] for c in racers}
    for r in range(rounds):
        k = r % len(racers)
        for c in racers[k:] + racers[:k]:
            out[c.name].append(block_ns(c, threads, seconds))
    return out


def joined(*settings):
    return " ".join(s for s in settings if s)


class Sweep:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.knobs = {k["name"]: k for k in listing("knobs")["knobs"]}
        self.out = args.out
        self.found = {"variants": [], "proofs": [], "reads": []}
        for path in {args.out, *args.merge}:
            for k, rows in (json.loads(path.read_text()) if path.exists() else {}).items():
                self.found[k] += rows

    def wanted(self, name):
        k = self.knobs.get(name)
        return k and k["tunable"] and any(fnmatch.fnmatch(name, p) for p in self.args.knobs.split(","))

    def save(self):
        self.out.parent.mkdir(parents=True, exist_ok=True)
        part = self.out.with_suffix(".part")
        part.write_text(json.dumps(self.found, indent=1))
        part.replace(self.out)

    def build(self, model, route, name):
        return ours.build(model, self.work / name, self.args.threads, ["--set", route] if route else [])

    def variants(self, model, base, reads, payloads):
        """Build one engine for each value; yields (setting, engine file) for payloads not seen."""
        done = {(r["model"], r["threads"], r["setting"]) for r in self.found["variants"] if "ratio" in r or r.get("same")}
        for knob in reads:
            for i, v in enumerate(values_of(self.knobs[knob], self.args.values)):
                setting, name = f"-{knob}={v}", f"{knob.replace(':', '_')}_{i}.hone"
                row = {"model": model.name, "threads": self.args.threads, "base": base, "knob": knob, "setting": setting}
                if (model.name, self.args.threads, setting) in done:
                    continue
                try:
                    reply = self.build(model, joined(base, setting), name)
                except ours.HoneError as e:
                    self.found["variants"].append(row | {"error": str(e)})
                    continue
                same = reply["payload"] in payloads
                self.found["variants"].append(row | {"payload": reply["payload"], "same": same})
                if same:
                    (self.work / name).unlink()
                    continue
                payloads.add(reply["payload"])
                yield self.found["variants"][-1], self.work / name

    def race(self, model, base_engine, batch):
        files = table.save_inputs(model, self.work / "inputs")
        racers = []
        try:
            racers.append(contest.start_hone("default", base_engine, self.args.threads, files))
            for i, (_, engine) in enumerate(batch):
                racers.append(contest.start_hone(str(i), engine, self.args.threads, files))
            blocks, fallen = blocks_of(racers, self.args.threads, self.args.rounds, self.args.block), ""
        except contest.ContestError as e:
            blocks, fallen = {}, str(e)
        for c in racers:
            c.close()
        for i, (row, engine) in enumerate(batch):
            if fallen:
                row["error"] = fallen
            else:
                row["ratio"], row["lo"], row["hi"] = contest.ratio(blocks["default"], blocks[str(i)])
            engine.unlink()
        self.save()

    def screen(self, model):
        first = {}
        for base in BASES:
            reads = read_knobs(model, base, self.args.threads)
            mine = [k for k in reads if self.wanted(k) and k not in first and k not in base]
            first |= reads
            if not base:
                self.found["reads"] = [r for r in self.found["reads"] if r["model"] != model.name]
                self.found["reads"].append({"model": model.name, "knobs": reads})
            if not mine:
                continue
            default = self.build(model, base, "default.hone")
            payloads, batch = {default["payload"]}, []
            for pair in self.variants(model, base, mine, payloads):
                batch.append(pair)
                if len(batch) == BATCH:
                    self.race(model, self.work / "default.hone", batch)
                    batch = []
            if batch:
                self.race(model, self.work / "default.hone", batch)
            print(f"{model.name} {base or 'default'}: {len(mine)} knobs, {len(payloads)} engines", flush=True)

    def proven(self, knob):
        return any(p["knob"] == knob and p["proven"] for p in self.found["proofs"])

    def candidates(self, knob):
        rows = [r for r in self.found["variants"] if r["knob"] == knob and "ratio" in r]
        tried = {(p["model"], p["setting"]) for p in self.found["proofs"]}
        rows = [r for r in rows if (r["model"], r["setting"]) not in tried and not r["lo"] <= 1 <= r["hi"]]
        # Far from 1, as seen from the nearer end of the interval.
        rows.sort(key=lambda r: max(r["lo"], 1 / r["hi"]), reverse=True)
        return rows

    def pair(self, model, row, files, turn):
        """Log of the default's time over the variant's, from one pair of fresh processes."""
        names = ["default", "variant"]
        racers = {}
        try:
            for name in names[turn:] + names[:turn]:
                racers[name] = contest.start_hone(name, self.work / f"{name}.hone", row["threads"], files)
            blocks = blocks_of(list(racers.values()), row["threads"], 2, 2 * self.args.block)
        finally:
            for c in racers.values():
                c.close()
        return math.log(statistics.mean(blocks["default"]) / statistics.mean(blocks["variant"]))

    def prove(self, row):
        model = table.select([row["model"]])[0]
        files = table.save_inputs(model, self.work / "inputs")
        self.args.threads = row["threads"]
        self.build(model, row["base"], "default.hone")
        self.build(model, joined(row["base"], row["setting"]), "variant.hone")
        logs = [self.pair(model, row, files, i % 2) for i in range(PAIRS)]
        mean, half = statistics.mean(logs), T_99 * statistics.stdev(logs) / math.sqrt(PAIRS)
        p = {k: row[k] for k in ("model", "threads", "base", "knob", "setting")} | {"screened": row["ratio"]}
        p |= {"ratio": math.exp(mean), "lo": math.exp(mean - half), "hi": math.exp(mean + half)}
        p["proven"] = p["lo"] > 1 or p["hi"] < 1
        self.found["proofs"].append(p)
        self.save()
        print(f"{'proven  ' if p['proven'] else 'unproven'} {p['setting']} on {p['model']}: "
              f"{p['ratio']:.3f} [{p['lo']:.3f}, {p['hi']:.3f}]", flush=True)

    def prove_given(self, text):
        """'MODEL [BASE...] -KNOB=VALUE': one proof, screened or not."""
        model, *route = text.split()
        row = {"model": model, "threads": self.args.threads, "base": " ".join(route[:-1]), "setting": route[-1],
               "knob": route[-1][1:].split("=")[0], "ratio": None}
        try:
            self.prove(row)
        except (ours.HoneError, contest.ContestError) as e:
            print(f"{text}: {e}", file=sys.stderr)

    def prove_all(self, until):
        for attempt in range(self.args.attempts):
            for knob in [k for k in self.knobs if self.wanted(k)]:
                rows = self.candidates(knob)
                if self.proven(knob) or not rows or time.monotonic() > until:
                    continue
                try:
                    self.prove(rows[0])
                except (ours.HoneError, contest.ContestError) as e:
                    self.found["proofs"].append({k: rows[0][k] for k in ("model", "base", "knob", "setting")} |
                                                {"threads": rows[0]["threads"], "proven": False, "error": str(e)})

    def trials(self):
        """Each proof as trials under a key of its own: the base where there is one, then one setting more."""
        digests = {}
        for p in self.found["proofs"]:
            if "ratio" not in p:
                continue
            if p["model"] not in digests:
                path = table.select([p["model"]])[0].path
                digests[p["model"]] = listing("explain", path, "--frozen", "--opt-level", 0)["model_digest"]
            key = f"{digests[p['model']]} bench/knobs.py {p['threads']} {p['setting']}"
            if p["base"]:
                yield {"key": key, "route": p["base"], "outcome": FASTER, "ratio": 0}
            outcome = FASTER if p["lo"] > 1 else NOT_FASTER
            yield {"key": key, "route": joined(p["base"], p["setting"]), "outcome": outcome} | \
                {k: p[k] for k in ("ratio", "lo", "hi")}

    def store(self):
        store = self.out.with_suffix(".db")
        store.unlink(missing_ok=True)
        lines = "".join(json.dumps(t) + "\n" for t in self.trials())
        run = subprocess.run([str(ours.HONE), "trials", str(store), "--import", "-"], input=lines, capture_output=True, text=True)
        if run.returncode != 0:
            raise ours.HoneError(f"hone trials: {contest.last_line(run.stderr)}")

    def report(self):
        tunable = [k for k in self.knobs.values() if self.wanted(k["name"])]
        unproven = []
        print(f"\n{'knob':26} {'read by':>7} {'engines':>7}  effect (default's time over this one's)")
        for k in tunable:
            name = k["name"]
            readers = {r["model"] for r in self.found["reads"] if name in r["knobs"]}
            readers |= {r["model"] for r in self.found["variants"] if r["knob"] == name}
            engines = {(r["model"], r["payload"]) for r in self.found["variants"] if r["knob"] == name and "payload" in r}
            best = max((p for p in self.found["proofs"] if p["knob"] == name and p["proven"]), default=None,
                       key=lambda p: max(p["lo"], 1 / p["hi"]))
            if not best:
                unproven.append(name)
            text = (f"{best['ratio']:.3f} [{best['lo']:.3f}, {best['hi']:.3f}] {best['setting']} on {best['model']}"
                    if best else "unproven")
            print(f"{name:26} {len(readers):7} {len(engines):7}  {text}")
        print(f"\n{len(tunable) - len(unproven)} of {len(tunable)} tunable knobs move a model's time beyond the interval")
        if unproven:
            print("unproven: " + ", ".join(unproven))


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--models", metavar="NAME[,NAME]", default="silero_static,ocr_cls,magika,mobilenet_v3,minilm_int8")
    ap.add_argument("--knobs", metavar="PATTERN[,PATTERN]", default="*", help="'gemm:*,thread:max'")
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--values", type=int, default=2, help="values of each knob")
    ap.add_argument("--rounds", type=int, default=8, help="screening rounds")
    ap.add_argument("--block", type=float, default=0.05, metavar="S", help="of one screening block")
    ap.add_argument("--attempts", type=int, default=2, help="proofs a knob gets")
    ap.add_argument("--minutes", type=float, default=1e9, help="stop proving after so long")
    ap.add_argument("--afresh", action="store_true", help="screen again what was screened before")
    ap.add_argument("--no-screen", action="store_true", help="prove from what is there")
    ap.add_argument("--prove", action="append", default=[], metavar="'MODEL [BASE] -KNOB=VALUE'", help="prove this, no more")
    ap.add_argument("--out", type=pathlib.Path, default=OUT, help="the results, with a trial store beside them")
    ap.add_argument("--merge", type=pathlib.Path, action="append", default=[], metavar="FILE", help="results of other runs to add")
    ap.add_argument("--report", action="store_true", help="print what is there and end")
    args = ap.parse_args()
    until = time.monotonic() + 60 * args.minutes
    with tempfile.TemporaryDirectory() as work:
        sweep = Sweep(args, pathlib.Path(work))
        for text in args.prove:
            sweep.prove_given(text)
        if not args.report and not args.prove:
            for model in [] if args.no_screen else table.select(args.models.split(",")):
                if args.afresh:
                    keep = [r for r in sweep.found["variants"] if r["model"] != model.name or not sweep.wanted(r["knob"])]
                    sweep.found["variants"] = keep
                try:
                    sweep.screen(model)
                except ours.HoneError as e:
                    print(f"{model.name}: {e}", file=sys.stderr)
                sweep.save()
            sweep.prove_all(until)
        sweep.store()
        sweep.report()


if __name__ == "__main__":
    main()
