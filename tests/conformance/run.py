#!/usr/bin/env python3
"""make conformance: the ONNX node tests through our whole path, against the list of what is known not to pass.

Drives `conformance_cases` (built from tests/conformance): one case folder a line on its stdin, one line back:
"pass", "fail<TAB>reason" or "skip<TAB>reason" (skip: refused cleanly, as unsupported). A case that kills or hangs the
program has failed; the program is started anew for the next one.

tests/conformance/expected.txt lists every case that does not pass: case<TAB>reason. A case that fails or skips and is
not listed is an error, and so is one that is listed and passes: the list may only shrink. Listing excuses no crash.
Counts go to build/conformance/results.json: passed, failed, skipped (listed), each a list of {case, reason}.
"""

import argparse
import json
import os
import pathlib
import queue
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
MINIMUM = 0.80


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


def excused(case, verdict, listed):
    return case in listed and verdict in ("fail", "skip")


def judge(got, listed, everything):
    """Complaints: what is not listed and did not pass, what is listed and passed, what is listed and is no case."""
    out = []
    for case, (verdict, reason) in sorted(got.items()):
        if verdict != "pass" and not excused(case, verdict, listed):
            out.append(f"{case}: {verdict}: {reason or 'no reason given'}")
        if verdict == "pass" and case in listed:
            out.append(f"{case}: passes now; take it out of expected.txt")
    if everything:
        out += [f"{case}: listed in expected.txt, but there is no such case" for case in listed if case not in got]
    return out


def only_shrinks():
    """Complaints about cases that a later version of the list added (where git knows the history)."""
    rel = str((HERE / "expected.txt").relative_to(ROOT))
    log = subprocess.run(["git", "-C", str(ROOT), "log", "--format=%H", "--", rel], capture_output=True, text=True)
    versions = log.stdout.split() if log.returncode == 0 else []
    texts = [subprocess.run(["git", "-C", str(ROOT), "show", f"{v}:{rel}"], capture_output=True, text=True).stdout
             for v in versions]
    texts.insert(0, (HERE / "expected.txt").read_text())
    out = []
    for newer, older in zip(texts, texts[1:]):
        if not expected(older): # the list was not begun yet
            continue
        out += [f"{c}: was added to expected.txt, which may only shrink" for c in expected(newer)
                if c not in expected(older)]
    return out


def cases_of(data, kinds):
    """{case name: folder}; names of kinds other than node carry the kind."""
    out = {}
    for kind in kinds:
        for d in sorted((data / kind).glob("*/model.onnx")) if (data / kind).is_dir() else []:
            out[d.parent.name if kind == "node" else f"{kind}/{d.parent.name}"] = str(d.parent)
    return out


def unpack(source, where):
    """A newer set of cases: an onnx wheel (1.22 or older) or a tar of the same tree; returns its data folder."""
    inside = "onnx/backend/test/data/"
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


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--data", type=pathlib.Path, default=DEBIAN, help=f"folder of kinds of cases ({DEBIAN})")
    ap.add_argument("--archive", type=pathlib.Path, help="an onnx wheel or tar with a newer set instead of --data")
    ap.add_argument("--kinds", default="node", help="node,pytorch-operator,pytorch-converted,simple")
    ap.add_argument("--only", metavar="TEXT", help="only cases whose name contains this")
    ap.add_argument("--quick", action="store_true", help="every third case")
    ap.add_argument("--program", type=pathlib.Path)
    ap.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    ap.add_argument("--limit", type=float, default=60, metavar="S", help="seconds for one case")
    ap.add_argument("--no-list", action="store_true", help="ignore expected.txt: only measure")
    ap.add_argument("--write-list", action="store_true", help="print the lines that expected.txt would need")
    args, rest = ap.parse_known_args()
    out = ROOT / "build" / "conformance"
    out.mkdir(parents=True, exist_ok=True)
    data = unpack(args.archive, out / args.archive.stem) if args.archive else args.data
    cases = cases_of(data, args.kinds.split(","))
    if not cases:
        raise SystemExit(f"error: no cases under {data}; scripts/deps.sh conformance installs Debian's set")
    whole = not (args.only or args.quick or args.archive or args.kinds != "node")
    if args.only:
        cases = {c: d for c, d in cases.items() if args.only in c}
    if args.quick:
        cases = {c: cases[c] for c in sorted(cases)[::3]}
    program = args.program or find_program(ROOT / "build" / "release")
    got = run_all([str(program), *rest], cases, args.jobs, args.limit)
    return report(got, args, out, whole)


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


def report(got, args, out, whole):
    listed = expected((HERE / "expected.txt").read_text()) if not args.no_list and not args.archive else {}
    results = sort_out(got, listed)
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    if args.write_list:
        for case, (verdict, reason) in sorted(got.items()):
            if verdict != "pass":
                print(f"{case}\t{reason or 'unknown'}")
    n = {k: len(v) for k, v in results.items()}
    share = n["passed"] / max(1, len(got))
    if args.no_list or args.archive:
        complaints = [f"{x['case']}: {x['reason']}" for x in results["failed"]]
    else:
        complaints = judge(got, listed, whole) + only_shrinks()
    if whole and share < MINIMUM:
        complaints.append(f"only {share:.1%} pass; at least {MINIMUM:.0%} must")
    for c in complaints:
        print(f"      {c}")
    print(f"{len(got)} cases, {share:.1%} pass; results in {out.relative_to(ROOT)}/results.json")
    print(f"conformance: {n['passed']} passed, {len(complaints)} failed, {n['skipped']} skipped")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
