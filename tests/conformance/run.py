#!/usr/bin/env python3
"""make conformance: ONNX's backend cases through our whole path, against the lists of what is known not to pass.

Drives `conformance_cases` (built from tests/conformance): one case folder a line on its stdin, one line back:
"pass", "fail<TAB>reason" or "skip<TAB>reason" (skip: refused cleanly, as unsupported). A case that kills or hangs the
program has failed; the program is started anew for the next one.

Suites: Debian's libonnx-testdata (node cases and its converted, operator and simple ones), in runs of every way the light
models of PyPI's onnx package, and with --suite or $HONE_CONFORMANCE_DIR a newer set of node cases: a folder, an onnx wheel up to 1.22, or a tar.
Ways: plain (graph passes that building needs alone, nothing fused), default, open (every extent of an input a symbol, where
the model's ops allow it; build/conformance/open.json says where not, and why), all (every tunable decision that is off by
default on). A case passes when it passes every way that is run.

Besides, each case and its twin spelled out in simpler ops (test_x, test_x_expanded) must agree, engine against engine.

tests/conformance/expected*.txt list every case that does not pass: case<TAB>reason. A case that fails or skips and is
not listed is an error, and so is one that is listed and passes: lists may only shrink. Listing excuses no crash.
Counts go to build/conformance/results.json: passed, failed, skipped (listed), each a list of {case, reason}.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import queue
import re
import select
import subprocess
import sys
import tarfile
import threading
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = pathlib.Path(__file__).resolve().parent
DEBIAN = pathlib.Path("/usr/share/libonnx-testdata/data")
DOCS = ROOT / "docs" / "conformance.md"
MINIMUM = 0.80

# What the cases program is told: from nothing that a build can do without to everything that it can do.
WAYS = {
    "plain": ["--route", "-core:passes=needed -region:chain=0 -region:epilogue=0 -region:reduce_epilogue=0 -region:prologue=0 "
              "-region:views=0 -layout:image=0 -plan:inplace=0"],
    "default": [],
    "open": ["--open"],
    "all": ["--route", "-layout:image=2 -math:winograd=1 -region:copy_views=1 -region:recompute=1 -code:passes=full"],
}


@dataclasses.dataclass
class Suite:
    title: str     # as the documentation names it
    prefix: str    # before its cases' names
    folder: pathlib.Path
    kinds: list
    listed: str    # its list of cases that do not pass
    slow: int = 1  # limits of time are this many times longer


def expected(text):
    """{case: reason} of the list's text; a line without a reason is an error."""
    out = {}
    for n, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        case, tab, reason = line.partition("\t")
        if not tab or not reason.strip():
            raise SystemExit(f"error: expected.txt:{n}: no reason for {case}")
        if case in out:
            raise SystemExit(f"error: expected.txt:{n}: {case} is listed twice")
        out[case] = reason.strip()
    return out


class Runner:
    """One conformance_cases process, restarted when a case takes it down."""

    def __init__(self, argv, limit_s):
        self.argv, self.limit_s, self.proc = argv, limit_s, None

    def start(self):
        self.proc = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, start_new_session=True)
        self.pending = b""

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
        if self.proc:
            self.proc.wait()
        self.proc = None

    def run(self, folder):
        """(verdict, reason) of one case."""
        if self.proc is None:
            self.start()
        try:
            self.proc.stdin.write(f"{folder}\n".encode())
            self.proc.stdin.flush()
        except OSError:
            self.stop()
            return "crash", "the program had gone before the case"
        deadline = time.monotonic() + self.limit_s
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.proc.stdout], [], [], left)[0]:
                self.stop()
                return "crash", f"no answer within {self.limit_s} s"
            got = os.read(self.proc.stdout.fileno(), 65536)
            if not got:
                rc = self.proc.wait()
                self.stop()
                return "crash", f"died of signal {-rc}" if rc < 0 else f"ended with status {rc}"
            self.pending += got
        line, self.pending = self.pending.split(b"\n", 1)
        verdict, _, reason = line.decode(errors="replace").partition("\t")
        if verdict not in ("pass", "fail", "skip"):
            return "crash", f'answered "{verdict[:60]}"'
        return verdict, reason.strip()


def run_all(argv, cases, jobs, limit_s):
    """{case: (verdict, reason)} over {case: folder}, with several processes."""
    todo, out = queue.Queue(), {}
    for c in sorted(cases):
        todo.put(c)

    def work():
        r = Runner(argv, limit_s)
        while True:
            try:
                case = todo.get_nowait()
            except queue.Empty:
                break
            out[case] = r.run(cases[case])
        r.stop()

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return {c: out.get(c, ("crash", "the runner did not get to it")) for c in cases}


def twins(cases):
    """{case_expanded...: "folder<TAB>folder of the twin"} of cases that the set also spells out. Draws at random agree with nothing."""
    out = {}
    for twin in cases:
        case = twin.partition("_expanded")[0]
        if "_expanded" in twin and case in cases and "bernoulli" not in case:
            out[twin] = f"{cases[case]}\t{cases[twin]}"
    return out


def disagreements(program, cases, args):
    """(pairs, complaints); a case that is refused is no pair."""
    got = run_all([str(program)], twins(cases), args.jobs, args.limit)
    return (sum(v == "pass" for v, _ in got.values()),
            [f"{c}: its one-op form disagrees: {r}" for c, (v, r) in sorted(got.items()) if v in ("fail", "crash")])


def excused(case, verdict, listed):
    return case in listed and verdict in ("fail", "skip")


def judge(got, listed, everything):
    """Complaints: what is not listed and did not pass, what is listed and passed, what is listed and is no case."""
    out = []
    for case, (verdict, reason) in sorted(got.items()):
        if verdict != "pass" and not excused(case, verdict, listed):
            out.append(f"{case}: {verdict}: {reason or 'no reason given'}")
        if verdict == "pass" and case in listed:
            out.append(f"{case}: passes now; take it out of its list")
    if everything:
        out += [f"{case}: listed, but there is no such case" for case in listed if case not in got]
    return out


def growth(name, texts):
    """Complaints about cases that a version of a list added; texts from the oldest version to the newest."""
    out, before = [], None
    for text in texts:
        now = expected(text)
        if before is not None:
            out += [f"{c}: was added to {name}, which may only shrink" for c in now if c not in before]
        if before is not None or now: # an empty list that has begun stays empty
            before = now
    return out


def only_shrinks(name):
    """growth() over the versions that git knows."""
    def git(*args):
        r = subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True)
        return r.stdout if r.returncode == 0 else ""

    rel = str((HERE / name).relative_to(ROOT))
    versions = git("log", "--format=%H", "--reverse", "--", rel).split()
    return growth(name, [git("show", f"{v}:{rel}") for v in versions] + [(HERE / name).read_text()])


def cases_of(suite):
    """{case name: folder}; names of kinds other than node carry the kind."""
    out = {}
    for kind in suite.kinds:
        where = suite.folder / kind
        for model in sorted(where.glob("*/model.onnx")) if where.is_dir() else []:
            out[suite.prefix + ("" if kind == "node" else f"{kind}/") + model.parent.name] = str(model.parent)
    return out


def unpack(source, where):
    """The data folder of a newer set: the folder itself, or what an onnx wheel (1.22 or older) or a tar of the same tree holds."""
    inside = "onnx/backend/test/data/"
    if source.is_dir():
        found = [d for d in (source, source / inside, source / "data") if (d / "node").is_dir()]
        if not found:
            raise SystemExit(f"error: no folder \"node\" in {source}")
        return found[0]
    data = where / inside
    if not data.is_dir():
        where.mkdir(parents=True, exist_ok=True)
        if zipfile.is_zipfile(source):
            with zipfile.ZipFile(source) as z:
                z.extractall(where, [n for n in z.namelist() if n.startswith(inside)])
        elif str(source).endswith(".zst"):
            subprocess.run(["tar", "--zstd", "-xf", str(source), "-C", str(where)], check=True)
        else:
            with tarfile.open(source) as t:
                t.extractall(where, filter="data")
    return data


def find_program(build):
    found = [p for p in sorted(build.rglob("conformance_cases")) if p.is_file() and os.access(p, os.X_OK)]
    found.sort(key=lambda p: "release" not in p.parts) # a check leaves sanitizer builds beside the release
    if not found:
        raise SystemExit(f"error: no conformance_cases under {build}; `make` builds it")
    return found[0]


def suites(args, out):
    """The suites to run."""
    made = []
    if args.suite:
        made.append(Suite("node cases of a newer set (opsets to 28)", "newest/", unpack(args.suite, out / args.suite.stem), ["node"],
                          "expected_newest.txt"))
    if not args.only_suite:
        made.insert(0, Suite("node cases of libonnx-testdata (opsets to 17)", "", args.data, ["node"], "expected.txt"))
        if not args.node:
            made.insert(1, Suite("its converted, operator and simple models", "", args.data,
                                 ["pytorch-converted", "pytorch-operator", "simple"], "expected_models.txt"))
            made += light_models(args, out)
    return made


def light_models(args, out):
    """The onnx package's models, of runs in every way alone: they take minutes, and the package comes over the network."""
    if set(args.ways.split(",")) != set(WAYS):
        return []
    import light  # what fetches is left out of a GPU's kit
    try:
        return [Suite(f"light models of the onnx package ({light.VERSION})", "", light.prepare(out), ["light"], "expected_light.txt", 10)]
    except light.fetch_models.FetchError as e:
        print(f"light models are left out: {e}")
        return []


def worst(results):
    """One verdict over several ways' [(way, verdict, reason)]: a crash before a failure before a skip."""
    order = ["pass", "skip", "fail", "crash"]
    way, verdict, reason = max(results, key=lambda r: order.index(r[1]))
    alike = all(r[1:] == results[0][1:] for r in results)
    return verdict, reason if alike else f"{way}: {reason}"


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--data", type=pathlib.Path, default=DEBIAN, help=f"Debian's folder of kinds of cases ({DEBIAN})")
    ap.add_argument("--suite", type=pathlib.Path, default=os.environ.get("HONE_CONFORMANCE_DIR") or None,
                    help="a newer set of node cases besides: a folder, an onnx wheel or a tar ($HONE_CONFORMANCE_DIR)")
    ap.add_argument("--only-suite", action="store_true", help="the newer set alone")
    ap.add_argument("--node", action="store_true", help="node cases alone")
    ap.add_argument("--ways", default=",".join(WAYS), help="comma-separated (%(default)s)")
    ap.add_argument("--only", metavar="TEXT", help="only cases whose name contains this")
    ap.add_argument("--quick", action="store_true", help="every third case")
    ap.add_argument("--program", type=pathlib.Path)
    ap.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    ap.add_argument("--limit", type=float, default=60, metavar="S", help="seconds for one case")
    ap.add_argument("--no-list", action="store_true", help="ignore the lists: only measure")
    ap.add_argument("--write-list", action="store_true", help="print the lines that the lists would need")
    ap.add_argument("--write-docs", action="store_true", help="put the counts into docs/conformance.md")
    args, rest = ap.parse_known_args()
    unknown = set(args.ways.split(",")) - set(WAYS)
    if unknown:
        ap.error(f"no way named {', '.join(sorted(unknown))}; there are {', '.join(WAYS)}")
    if args.only_suite and not args.suite:
        ap.error("--only-suite needs --suite")
    out = ROOT / "build" / "conformance"
    out.mkdir(parents=True, exist_ok=True)
    program = args.program or find_program(ROOT / "build" / "release")
    done, complaints, n_pair = [], [], 0
    for suite in suites(args, out):
        cases = cases_of(suite)
        if not cases:
            raise SystemExit(f"error: no cases under {suite.folder}; scripts/deps.sh conformance installs Debian's set")
        if args.only:
            cases = {c: d for c, d in cases.items() if args.only in c}
        if args.quick:
            cases = {c: cases[c] for c in sorted(cases)[::3]}
        by_way = {w: run_all([str(program), *WAYS[w], *rest], cases, args.jobs, args.limit * suite.slow) for w in args.ways.split(",")}
        done.append((suite, by_way))
        if "default" in by_way and twins(cases):
            pairs = disagreements(program, cases, args)
            print(f"{suite.title}: {pairs[0]} pairs of one op and its form in simpler ops agree")
            complaints += pairs[1]
            n_pair += pairs[0]
    return report(done, complaints, n_pair, args, out, rest)


OPEN = re.compile(r"(\d+) of (\d+) open(?:: (.*))?")


def closed_extents(done):
    """(extents, open ones, {case: why the first of its others is closed}) of the way "open"."""
    n = n_open = 0
    why = {}
    for _, by_way in done:
        for case, (verdict, reason) in by_way.get("open", {}).items():
            m = OPEN.match(reason) if verdict == "pass" else None
            if m:
                n, n_open = n + int(m[2]), n_open + int(m[1])
                if m[3]:
                    why[case] = m[3]
    return n, n_open, why


def open_line(done):
    n, n_open, why = closed_extents(done)
    return f"Of {n} extents that the cases' models fix, {n_open} were open; {len(why)} cases need some of theirs known."


def sort_out(got, listed):
    """{passed, failed, skipped}: what is listed is skipped, for the reason that the list gives."""
    out = {"passed": [], "failed": [], "skipped": []}
    for case, (verdict, reason) in sorted(got.items()):
        if verdict == "pass":
            out["passed"].append({"case": case, "reason": ""})
        elif excused(case, verdict, listed):
            out["skipped"].append({"case": case, "reason": listed[case]})
        elif verdict == "skip":
            out["skipped"].append({"case": case, "reason": reason})
        else:
            out["failed"].append({"case": case, "reason": reason})
    return out


def suite_row(suite, by, lists):
    n = [sum(v == "pass" for v, _ in by[w].values()) for w in WAYS if w in by]
    return f"| {suite.title} | {len(next(iter(by.values())))} | " + " | ".join(map(str, n)) + f" | {len(lists[suite.listed])} |"


def docs_tables(done, lists):
    """Markdown: how many cases pass each way, and why the others are listed."""
    ways = [w for w in WAYS if all(w in by for _, by in done)]
    out = [open_line(done), ""] if "open" in ways else []
    out += ["| suite | cases | " + " | ".join(ways) + " | listed |", "|---|---|" + "---|" * (len(ways) + 1)]
    why = {}
    for suite, by in done:
        out.append(suite_row(suite, by, lists))
        for reason in lists[suite.listed].values():
            why.setdefault(reason, [0] * len(done))[[s for s, _ in done].index(suite)] += 1
    out += ["", "| why listed | cases |", "|---|---|"]
    out += [f"| {r} | {' + '.join(str(k) for k in n if k)} |" for r, n in sorted(why.items(), key=lambda x: -sum(x[1]))]
    return "\n".join(out)


BLOCK = re.compile(r"(<!-- counts: run.py --write-docs -->\n).*?(<!-- end -->)", re.S)


def write_docs(done, lists, n_pair):
    text = DOCS.read_text()
    pairs = f"{n_pair} cases agree with their twins spelled out in simpler ops, engine against engine."
    DOCS.write_text(BLOCK.sub(lambda m: f"{m[1]}\n{docs_tables(done, lists)}\n\n{pairs}\n\n{m[2]}", text))


def stale_docs(done, lists):
    """Complaints about suites whose counts the documentation does not have."""
    text = DOCS.read_text()
    return [f"{DOCS.relative_to(ROOT)} has other counts for {suite.title}; --write-docs with all suites puts them right"
            for suite, by in done if suite_row(suite, by, lists) not in text]


def report(done, complaints, n_pair, args, out, rest):
    results, whole = {"passed": [], "failed": [], "skipped": []}, not (args.only or args.quick)
    lists = {s.listed: {} if args.no_list else {s.prefix + c: r for c, r in expected((HERE / s.listed).read_text()).items()}
             for s, _ in done}
    for suite, by_way in done:
        listed = lists[suite.listed]
        got = {c: worst([(w, *by_way[w][c]) for w in by_way]) for c in next(iter(by_way.values()))}
        for k, v in sort_out(got, listed).items():
            results[k] += v
        if args.write_list:
            for case, (verdict, reason) in sorted(got.items()):
                if verdict != "pass":
                    print(f"{case.removeprefix(suite.prefix)}\t{reason or 'unknown'}")
        share = sum(v == "pass" for v, _ in got.values()) / max(1, len(got))
        print(f"{suite.title}: {len(got)} cases, {share:.1%} pass")
        if args.no_list:
            complaints += [f"{c}: {r}" for c, (v, r) in sorted(got.items()) if v in ("fail", "crash")]
            continue
        complaints += judge(got, listed, whole) + only_shrinks(suite.listed)
        if whole and share < MINIMUM:
            complaints.append(f"only {share:.1%} pass; at least {MINIMUM:.0%} must")
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    if any("open" in by_way for _, by_way in done):
        (out / "open.json").write_text(json.dumps(closed_extents(done)[2], indent=1) + "\n")
        print(open_line(done))
    if args.write_docs:
        write_docs(done, lists, n_pair)
    elif whole and not args.no_list and not rest and set(args.ways.split(",")) == set(WAYS):
        complaints += stale_docs(done, lists)
    for c in complaints:
        print(f"      {c}")
    n = {k: len(v) for k, v in results.items()}
    print(f"results in {out.relative_to(ROOT)}/results.json")
    print(f"conformance: {n['passed']} passed, {len(complaints)} failed, {n['skipped']} skipped")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
