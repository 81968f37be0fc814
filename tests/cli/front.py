#!/usr/bin/env python3
"""The program's face: help, man page and completion list the same options; progress on a terminal and none in a pipe; archives;
trtexec's report; what is installed.

    tests/cli/front.py HONE
"""

import json
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import zipfile

import failures
import onnx_bytes as ob

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HONE = os.path.abspath(sys.argv[1])
sys.path.insert(0, str(ROOT / "scripts"))
import man  # noqa: E402

results, skipped = [], []


def check(name, good, note=""):
    results.append(bool(good))
    if not good:
        print(f"FAIL {name} {note}")


def hone(work, *args):
    return subprocess.run([HONE, *map(str, args)], capture_output=True, text=True, timeout=120, cwd=work,
                          env={**os.environ, "HONE_CACHE_DIR": str(work / "cache")}, stdin=subprocess.DEVNULL)


# ---- help, man page, completion ----
def complete(words, current):
    """What bash offers for a command line."""
    script = (f'source "{ROOT}/scripts/completion/hone.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hone; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    r = subprocess.run(["bash", "-c", script, "bash", HONE, *words, current], capture_output=True, text=True)
    return {w for w in r.stdout.split() if w}


def check_options(work):
    page = subprocess.run([sys.executable, ROOT / "scripts" / "man.py", "--hone", HONE, "--check"], capture_output=True, text=True)
    check("the man page has the options of --help", page.returncode == 0, page.stdout)
    names = man.commands(HONE)
    check("ten commands and more", len(names) >= 10, names)
    man_text = (ROOT / "docs" / "man" / "hone.1").read_text()
    docs = (ROOT / "docs" / "cli.md").read_text()
    for c in names:
        check(f"man page has {c}", re.search(rf"^\.(BI?|B) {c}\b", man_text, re.M))
        check(f"docs/cli.md has {c}", f"`{c}" in docs)
    check("completion of commands", complete([], "") >= set(names), complete([], ""))
    for c in names:
        if c == "trtexec":
            continue
        listed = {f"--{o[1]}" for o in man.options(HONE, c)}
        offered = {w for w in complete([c], "--") if w.startswith("--")}
        extra = offered - listed
        check(f"completion of hone {c}", listed <= offered and not extra, f"{listed - offered} {extra}")
        for o in listed:  # every option that is listed is taken, and one of another command is not
            value = next(x[2] for x in man.options(HONE, c) if f"--{x[1]}" == o)
            r = hone(work, c, o, "--no-such-option") if not value else hone(work, c, "--no-such-option")
            check(f"hone {c} {o}", o == "--help" or "no-such-option" in r.stderr, r.stderr)
    statuses = re.findall(r"^ +(\d+)  (.+)$", subprocess.run([HONE, "--help"], capture_output=True, text=True).stdout, re.M)
    check("--help lists every status", len(statuses) == 20, statuses)
    for number, text in statuses[1:]:
        check(f"man page has status {number}", re.search(rf"\b{number}  {re.escape(text)}", man_text), text)


# ---- progress ----
def on_terminal(work, args):
    """(exit status, what stderr showed) with standard error on a terminal."""
    leader, follower = pty.openpty()
    p = subprocess.Popen([HONE, *args], cwd=work, stdout=subprocess.DEVNULL, stderr=follower, stdin=subprocess.DEVNULL,
                         env={**os.environ, "HONE_CACHE_DIR": str(work / "cache")})
    os.close(follower)
    shown = b""
    while True:
        ready = select.select([leader], [], [], 120)[0]
        try:
            part = os.read(leader, 65536) if ready else b""
        except OSError:
            part = b""
        if not part:
            break
        shown += part
    os.close(leader)
    return p.wait(), shown.decode()


def check_progress(work):
    (work / "long.onnx").write_bytes(failures.deep(200, 160))
    args = ["verify", "long.onnx", "--opt-level", "0"]
    r = hone(work, *args)
    check("no progress in a pipe", r.returncode == 0 and r.stderr == "" and "\r" not in r.stdout, r.stderr)
    try:
        status, shown = on_terminal(work, args)
    except OSError as e:  # a chroot or container without /dev/pts
        skipped.append("progress on a terminal")
        print(f"SKIP {skipped[-1]}: {e}")
        return
    check("progress shows", status == 0 and re.search(r"evaluate \d+/\d+  \d+ s, \d+ s left", shown), repr(shown[-300:]))
    check("progress rewrites one line", "\r\x1b[K" in shown and shown.count("\n") <= 1, repr(shown[-300:]))


# ---- archives ----
def array(values, dims):
    return failures.npy(values, dims)


def check_archives(work):
    (work / "m.onnx").write_bytes(ob.model([ob.node("Sub", ["a", "b"], ["y"])], [ob.value("a", ("n", 2)), ob.value("b", ("n", 2))],
                                           [ob.value("y", ("n", 2))]))
    r = hone(work, "build", "m.onnx", "-o", "m.hone", "--opt-level", "0")
    check("build", r.returncode == 0, r.stderr)
    for name, method in (("stored.npz", zipfile.ZIP_STORED), ("deflated.npz", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(work / name, "w", method) as z:
            z.writestr("a.npy", array([5, 6, 7, 8], (2, 2)))
            z.writestr("b.npy", array([1, 2, 3, 4], (2, 2)))
            z.writestr("unused.npy", array([0], (1,)))
        r = hone(work, "run", "m.hone", "--input", name, "-o", "out.npz", "--json")
        if r.returncode == 3 and "libzip" in r.stderr:
            print("skip  archives: this build has no libzip")
            return
        check(f"run {name}", r.returncode == 0 and json.loads(r.stdout)["outputs"][0]["values"] == [4, 4, 4, 4], r.stderr + r.stdout)
        with zipfile.ZipFile(work / "out.npz") as z:
            data = z.read("y.npy")
        check(f"archive from {name}", struct.unpack("<4f", data[-16:]) == (4, 4, 4, 4) and b"(2,2,)" in data)
    (work / "b.npy").write_bytes(array([5, 5, 5, 5], (2, 2)))
    r = hone(work, "run", "m.hone", "--input", "a=stored.npz", "--input", "b=b.npy", "--json")
    check("an array by name beside a file", json.loads(r.stdout)["outputs"][0]["values"] == [0, 1, 2, 3], r.stderr)
    r = hone(work, "run", "m.hone", "--input", "stored.npz", "--input", "b=b.npy", "--json")
    check("a file goes before an archive", json.loads(r.stdout)["outputs"][0]["values"] == [0, 1, 2, 3], r.stderr)
    with zipfile.ZipFile(work / "half.npz", "w") as z:
        z.writestr("a.npy", array([5, 6, 7, 8], (2, 2)))
    r = hone(work, "run", "m.hone", "--input", "half.npz")
    check("the rest is made up to fit", r.returncode == 0 and 'made up: "b"' in r.stderr and "[2,2]" in r.stdout, r.stderr)
    r = hone(work, "verify", "m.onnx", "--engine", "m.hone", "--input", "half.npz")
    check("verify makes what fits, and says that alone", r.returncode == 0 and 'made up: "b": uniform' in r.stdout and '"a"' not in r.stdout,
          r.stdout + r.stderr)
    r = hone(work, "verify", "m.onnx", "--engine", "m.hone", "--input", "stored.npz")
    check("verify made nothing up", r.returncode == 0 and "made up" not in r.stdout, r.stdout + r.stderr)
    r = hone(work, "run", "m.hone", "--input", "a=half.npz", "--input", "b=half.npz")
    check("an archive without the array", r.returncode == 3 and "no array of that name" in r.stderr, r.stderr)
    whole = (work / "deflated.npz").read_bytes()
    for cut in range(0, len(whole), 37):  # no length of it crashes
        (work / "cut.npz").write_bytes(whole[:cut])
        r = hone(work, "run", "m.hone", "--input", "cut.npz")
        check(f"archive cut to {cut}", r.returncode == 3 and r.stderr.startswith("hone: "), r.stderr)
    r = hone(work, "inspect", "m.onnx", "--json")
    check("inspect --json of a model", json.loads(r.stdout)["inputs"][0] == {"name": "a", "dtype": "f32", "dims": ["n", 2]}, r.stdout)
    r = hone(work, "inspect", "m.hone", "--json")
    check("inspect --json of an engine", json.loads(r.stdout)["outputs"][0]["name"] == "y" and "payload" in json.loads(r.stdout))


# ---- trtexec's report ----
NUMBER = r"[0-9.e+-]+"
ROW = rf"min = {NUMBER} ms, max = {NUMBER} ms, mean = {NUMBER} ms, median = {NUMBER} ms"


def check_trtexec(work):
    exports = ["times", "profile", "output", "layers"]
    r = hone(work, "trtexec", "--loadEngine=m.hone", "--shapes=a:3x2,b:3x2", "--duration=0", "--warmUp=0", "--iterations=12",
             "--infStreams=2", "--exportTimes=times", "--exportProfile=profile", "--exportOutput=output", "--exportLayerInfo=layers",
             "--percentile=50,99", "--useSpinWait")
    text = r.stdout
    check("trtexec runs", r.returncode == 0 and "&&&& PASSED" in text and "ignoring --useSpinWait" in r.stderr, r.stderr)
    check("throughput", re.search(rf"^\[\d\d/\d\d/\d{{4}}-\d\d:\d\d:\d\d\] \[I\] Throughput: {NUMBER} qps$", text, re.M), text)
    for what in ("Latency", "Enqueue Time", "H2D Latency", "GPU Compute Time", "D2H Latency"):
        check(what, re.search(rf"\[I\] {what}: {ROW}, percentile\(50%\) = {NUMBER} ms, percentile\(99%\) = {NUMBER} ms$", text, re.M))
    check("walltime", re.search(rf"Total Host Walltime: {NUMBER} s$", text, re.M))
    times, profile, output, layers = (json.loads((work / e).read_text()) for e in exports)
    check("times", len(times) == 24 and all(t["endComputeMs"] - t["startComputeMs"] - t["computeMs"] < 1e-6 for t in times))
    check("profile", profile[0]["count"] > 0 and abs(sum(p["percentage"] for p in profile[1:]) - 100) < 1)
    check("output", output[0]["name"] == "y" and output[0]["dimensions"] == "3x2" and len(output[0]["values"]) == 6)
    check("layers", layers["Layers"] and layers["Bindings"] == ["a", "b", "y"])


# ---- what is installed ----
def sanitizers(build):
    """What a program needs to load libraries of a sanitized build."""
    options = json.loads((build / "meson-info" / "intro-buildoptions.json").read_text())
    kind = next(o["value"] for o in options if o["name"] == "b_sanitize")
    return [] if kind == "none" else [f"-fsanitize={kind}"]


def check_install(work, build):
    root = work / "root"
    r = subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", root], capture_output=True, text=True)
    check("install", r.returncode == 0, r.stderr[-300:])
    have = {p.name for p in root.rglob("*")}
    want = {"hone", "hone-worker", "hone.h", "hone.pc", "hone-rt.pc", "libhone.so", "libhone-rt.so", "hone.1"}
    if any(build.rglob("libhone-image.so")): # where the libraries of image formats are
        want.add("libhone-image.so")
    check("what is installed", want <= have, want - have)
    prog = next(p for p in root.rglob("hone") if p.is_file() and os.access(p, os.X_OK))
    (work / "i.onnx").write_bytes(ob.relu())
    env = {k: v for k, v in os.environ.items() if k not in ("HONE_WORKER", "LD_LIBRARY_PATH")}
    r = subprocess.run([prog, "build", "i.onnx", "-o", "i.hone", "--opt-level", "0", "--cache-dir="], cwd=work, env=env,
                       capture_output=True, text=True)
    check("the installed program builds", r.returncode == 0, r.stderr)
    client = work / "client"
    pc = next(root.rglob("hone-rt.pc"))
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", f"--define-variable=prefix={root}/usr/local", "hone-rt"],
                           env={**env, "PKG_CONFIG_PATH": str(pc.parent)}, capture_output=True, text=True).stdout.split()
    lib = next(f[2:] for f in flags if f.startswith("-L"))
    r = subprocess.run(["gcc", *sanitizers(build), "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", ROOT / "tests" / "api" / "client.c", *flags,
                        f"-Wl,-rpath,{lib}", "-o", client], capture_output=True, text=True)
    check("a program of the runtime library alone", r.returncode == 0, r.stderr[-300:])
    r = subprocess.run([client, work / "i.hone"], capture_output=True, text=True, env=env)
    check("and it runs an engine", r.returncode == 0 and r.stdout == "y 24\n", r.stderr + r.stdout)
    r = subprocess.run([client, work / "i.onnx"], capture_output=True, text=True, env=env)
    check("and says what it cannot open", r.returncode == 4 and "i.onnx" in r.stderr, r.stderr)


def main():
    with tempfile.TemporaryDirectory() as d:
        work = pathlib.Path(d)
        check_options(work)
        check_progress(work)
        check_archives(work)
        check_trtexec(work)
        check_install(work, pathlib.Path(HONE).resolve().parent.parent)
    print(f"front: {sum(results)} passed, {results.count(False)} failed, {len(skipped)} skipped")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
