#!/usr/bin/env python3
"""make exporters: what exporters and tools write, built, run, and compared with float64 and with ONNX Runtime.

Architectures of torchvision, transformers, timm and our own (nets_*.py), small, with seeded weights; each exported by torch's
TorchScript exporter and its new one, some by Debian's torch 1.13 too, with fixed and with open shapes; some then quantised, halved,
optimised or simplified by the tools of derive.py. The files of bench/models.toml that tf2onnx and Paddle wrote take part.
Exported files are kept in .cache/exporters, results go to build/exporters/results.json.

check.py says when a file passes.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import traceback

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "bench"), str(ROOT / "scripts")]
import check  # noqa: E402
import derive  # noqa: E402
import peers  # noqa: E402
import table  # noqa: E402

CACHE = check.CACHE
WORK = ROOT / "build" / "exporters"
DEBIAN = pathlib.Path("/usr/bin/python3")
EXPORT_LIMIT_S = 400


def prepare(with_packages):
    """Environments, then the same program under the tools' Python."""
    for name in ("tools", "ort", "exporters", "genai"):
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
    todo = [v for v in wanted if v not in check.STEPPED and (force or not is_done(folder, v))] # those: of a file that is there
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
def check_variant(net, variant, before):
    """before: {variant: result} of the net's files so far."""
    refused = CACHE / net.name / f"{variant}.refused"
    if refused.exists():
        return {"verdict": "skip", "reason": f"exporter: {refused.read_text().strip()}"}
    work = WORK / net.name / variant
    try:
        if variant in check.STEPPED:
            of = before.get(check.STEPPED[variant], {})
            if of.get("verdict") == "skip":
                return {k: of[k] for k in ("verdict", "reason", "refused") if k in of}
            return check.check_steps(net, check.stepped(net, variant), work)
        return check.check_file(net, variant, file_of(net, variant), work)
    except Exception as e: # one file must not end the run
        traceback.print_exc()
        return {"verdict": "FAIL", "reason": f"{type(e).__name__}: {e}"}


@functools.cache
def build_id():
    """A digest of the program and of the libraries that it runs with."""
    import ours
    text = subprocess.run(["ldd", str(ours.HONE)], capture_output=True, text=True, check=True).stdout
    h = hashlib.sha256(pathlib.Path(ours.HONE).read_bytes())
    for lib in sorted(p for p in text.split() if "/libhone" in p):
        h.update(pathlib.Path(lib).read_bytes())
    return h.hexdigest()[:12]


def files_of(net, args):
    return [v for v in variants_of(net) if not args.variants or v in args.variants.split(",")]


def export_net(net, args):
    if net.library != "packages":
        export(net, files_of(net, args), args.force)


def check_net(net, args):
    out = {}
    for v in files_of(net, args):
        r = out[v] = {"net": net.name, "library": net.library, "variant": v, "hone": build_id(), **check_variant(net, v, out)}
        numbers = " ".join(f"{k} {r[k]:.1e}" for k in ("err", "ort", "apart", "moves") if k in r)
        print(f"{r['verdict']:4}  {net.name + ' ' + v:36} {numbers} {r['reason']}{'; ONNX Runtime: ' + r['refused'] if 'refused' in r else ''}", flush=True)
    return list(out.values())


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
        import nets
        table.write(everything, ROOT / "docs" / "conformance.md", list(nets.load()))
    count = {v: sum(r["verdict"] == v for r in results) for v in ("ok", "FAIL", "skip")}
    for r in results:
        if r["verdict"] == "FAIL":
            print(f"      {r['net']} {r['variant']}: {r['reason']}")
    print(f"exporters: {count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    return 1 if count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
