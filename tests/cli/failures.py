#!/usr/bin/env python3
"""How a first user fails: each way gives one clear error that says what, where and what to do, the documented exit status, and
leaves nothing half-written.

    tests/cli/failures.py HONE [--show] [--only TEXT]
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import onnx_bytes as ob

INVALID, IO, FORMAT, MODEL, UNSUPPORTED, SHAPE, TYPE, VERSION, TARGET = 2, 3, 4, 5, 6, 7, 8, 9, 10
CANCELLED, CRASH, ACCURACY, NOTFOUND = 13, 14, 17, 18
NOISE = ("Assertion", "AddressSanitizer", "runtime error", "core dumped", "hn_", "Segmentation")


def npy(values, dims, descr="<f4", fmt="f", fortran=False):
    head = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({', '.join(map(str, dims))},), }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack(f"<{len(values)}{fmt}", *values)


def external(name, dims, location, length, offset=0):
    """A tensor whose bytes lie in another file."""
    entry = lambda k, v: ob.field(13, ob.field(1, k) + ob.field(2, v))  # noqa: E731
    return (b"".join(ob.field(1, d) for d in dims) + ob.field(2, ob.FLOAT) + ob.field(8, name) + entry("location", location)
            + entry("offset", str(offset)) + entry("length", str(length)) + ob.field(14, 1))


def add_model(weight):
    return ob.model([ob.node("Add", ["x", "w"], ["y"])], [ob.value("x", (2, 3))], [ob.value("y", (2, 3))], [weight])


def deep(depth=120, side=96):
    """Takes seconds to build: long enough to be interrupted."""
    nodes = [ob.node("MatMul" if i % 2 else "Softmax", [f"v{i}", "v0"] if i % 2 else [f"v{i}"], [f"v{i + 1}"], )
             for i in range(depth)]
    dims = (side, side)
    return ob.model(nodes, [ob.value("v0", dims)], [ob.value(f"v{depth}", dims)])


class Work:
    """A folder with one of everything that the cases need."""

    def __init__(self, hone, folder):
        self.hone, self.at = hone, folder
        self.env = {**os.environ, "HONE_CACHE_DIR": str(folder / "cache")}
        files = {
            "relu.onnx": ob.relu(), "open.onnx": ob.relu(("n", 3)), "deep.onnx": deep(), "long.onnx": deep(600, 224), "empty.onnx": b"",
            "text.onnx": b"this is a shopping list: bread, milk\n", "cut.onnx": ob.relu()[:-9],
            "odd.onnx": ob.model([ob.node("Frobnicate", ["x"], ["a"]), ob.node("Quux", ["a"], ["y"])],
                                 [ob.value("x", (2,))], [ob.value("y", (2,))]),
            "newer.onnx": ob.model([ob.node("Relu", ["x"], ["y"])], [ob.value("x", (2,))], [ob.value("y", (2,))], opset=999),
            "undefined.onnx": ob.model([ob.node("Add", ["x", "bias"], ["y"])], [ob.value("x", (2,))], [ob.value("y", (2,))]),
            "mismatch.onnx": ob.model([ob.node("MatMul", ["x", "x"], ["y"])], [ob.value("x", (2, 3))],
                                      [ob.value("y", (2, 3))]),
            "valid.onnx": ob.model([ob.node("Conv", ["x", "w"], ["y"], kernel_shape=[5, 5])],
                                   [ob.value("x", (1, 1, "h", "w"))], [ob.value("y", (1, 1, "a", "b"))],
                                   [ob.weights("w", [1, 1, 5, 5], 1)]),
            "gather.onnx": ob.model([ob.node("GatherElements", ["x", "i"], ["y"], axis=1)],
                                    [ob.value("x", ("n", 5)), ob.value("i", ("m", 2), ob.INT64)], [ob.value("y", ("m", 2))]),
            "scatter.onnx": ob.model([ob.node("ScatterElements", ["x", "i", "u"], ["y"], axis=1)],
                                     [ob.value("x", ("n", 5)), ob.value("i", ("m", 2), ob.INT64), ob.value("u", ("k", 2))],
                                     [ob.value("y", ("n", 5))]),
            "product.onnx": ob.model([ob.node("MatMul", ["x", "w"], ["y"])], [ob.value("x", (3, "n")), ob.value("w", ("m", 2))],
                                     [ob.value("y", (3, 2))]),
            "concat.onnx": ob.model([ob.node("Concat", ["x", "w"], ["y"], axis=1)],
                                    [ob.value("x", ("n", 2)), ob.value("w", ("m", 2))], [ob.value("y", ("n", 4))]),
            "filters.onnx": ob.model([ob.node("Conv", ["x", "w"], ["y"], kernel_shape=[1, 1])],
                                     [ob.value("x", (1, "c", 4, 4)), ob.value("w", ("o", "d", 1, 1))],
                                     [ob.value("y", (1, "o", 4, 4))]),
            "external.onnx": add_model(external("w", (2, 3), "weights.bin", 24)),
            "outside.onnx": add_model(external("w", (2, 3), "../weights.bin", 24)),
            "short.onnx": add_model(external("w", (2, 3), "short.bin", 24)),
            "short.bin": b"12345678", "four.raw": b"1234", "ok.raw": struct.pack("<6f", *range(6)),
            "f64.npy": npy(range(6), (2, 3), "<f8", "d"), "wide.npy": npy(range(8), (2, 4)), "rank.npy": npy(range(6), (6,)),
            "cut.npy": npy(range(6), (2, 3))[:-3], "fortran.npy": npy(range(6), (2, 3), fortran=True),
            "huge.npy": npy([], (1 << 40, 1 << 40)), "complex.npy": npy(range(12), (2, 3), "<c8"),
            "damaged.npz": b"PK\x03\x04 and then nothing", "x.npy": npy(range(6), (2, 3)),
        }
        for name, data in files.items():
            (folder / name).write_bytes(data)
        (folder / "folder").mkdir()
        (folder / "crasher").write_text("#!/bin/sh\nexit 3\n")
        (folder / "crasher").chmod(0o755)
        (folder / "stranger").write_text("#!/bin/sh\nexit 72\n")
        (folder / "stranger").chmod(0o755)
        for model, engine, shape in (("relu", "relu", []), ("open", "open", []), ("open", "bounded", ["n=1x3:2x3:4x3"])):
            args = ["--shape", shape[0].replace("n=", "x=")] if shape else []
            r = self.run("build", folder / f"{model}.onnx", "-o", folder / f"{engine}.hone", "--opt-level", 0, *args)
            assert r.returncode == 0, r.stderr
        whole = (folder / "relu.hone").read_bytes()
        (folder / "cut.hone").write_bytes(whole[:-100])
        (folder / "flipped.hone").write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
        (folder / "foreign.hone").write_bytes(whole[:8] + struct.pack("<I", 77) + whole[12:])
        r = self.run("build", folder / "relu.onnx", "-o", folder / "v4.hone", "--target", "x86-64-v4", "--opt-level", 0)
        assert r.returncode == 0, r.stderr

    def run(self, *args, env=None, **more):
        return subprocess.run([self.hone, *map(str, args)], capture_output=True, text=True, timeout=120, cwd=self.at,
                              env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, **more)

    def listing(self):
        return sorted(p.name for p in self.at.iterdir() if p.name not in ("cache", "other"))


def cases():
    """(name, arguments, exit status, what the message must hold, environment)."""
    build, run = ["build", "--opt-level", "0"], ["run", "relu.hone"]
    no_worker = {"HONE_WORKER": "/nowhere/hone-worker", "HONE_CACHE_DIR": "other"}
    return [
        # models
        ("missing model", [*build, "none.onnx"], NOTFOUND, ["none.onnx", "No such file"], {}),
        ("model is a folder", [*build, "folder"], IO, ["folder", "irectory"], {}),
        ("text is no model", [*build, "text.onnx"], FORMAT, ["text.onnx"], {}),
        ("empty model", [*build, "empty.onnx"], FORMAT, ["empty.onnx", "graph"], {}),
        ("model cut short", [*build, "cut.onnx"], FORMAT, ["cut.onnx"], {}),
        ("engine given as model", [*build, "relu.hone"], FORMAT, ["relu.hone"], {}),
        ("external data missing", [*build, "external.onnx"], NOTFOUND, ["weights.bin", '"w"'], {}),
        ("external data outside the folder", [*build, "outside.onnx"], MODEL, ["../weights.bin", '"w"'], {}),
        ("external data too short", [*build, "short.onnx"], MODEL, ["short.bin", '"w"'], {}),
        ("unknown ops, all named", [*build, "odd.onnx"], UNSUPPORTED, ["Frobnicate", "Quux"], {}),
        ("newer opset", [*build, "newer.onnx"], UNSUPPORTED, ["999"], {}),
        ("value that nothing computes", [*build, "undefined.onnx"], MODEL, ["bias", "Add"], {}),
        ("shapes that contradict", [*build, "mismatch.onnx"], SHAPE, ["MatMul"], {}),
        ("no model given", ["build"], INVALID, ["usage: hone build"], {}),
        # shapes
        ("shape flag without name", [*build, "open.onnx", "--shape", "2x3"], INVALID, ["--shape", "2x3", "NAME="], {}),
        ("shape flag with letters", [*build, "open.onnx", "--shape", "x=2xthree"], INVALID, ["x=2xthree", "NAME="], {}),
        ("shape flag out of order", [*build, "open.onnx", "--shape", "x=4x3:2x3:8x3"], INVALID, ["MIN <= OPT"], {}),
        ("shape twice", [*build, "open.onnx", "--shape", "x=1x3", "--shape", "x=2x3"], INVALID, ["already"], {}),
        ("shape of no input", [*build, "open.onnx", "--shape", "xx=2x3"], INVALID, ['"xx"', 'Did you mean "x"'], {}),
        ("shape of wrong rank", [*build, "open.onnx", "--shape", "x=2x3x4"], INVALID, ["rank 3", '"x"'], {}),
        ("shape against the model", [*build, "open.onnx", "--shape", "x=2x5"], INVALID, ["axis 1", '"x"', "3"], {}),
        ("shape outside the profile", ["run", "bounded.hone", "--shape", "x=9x3"], SHAPE, ["axis 0", "1 to 4"], {}),
        ("shape too small for a kernel", [*build, "valid.onnx", "--shape", "x=1x1x3x3"], SHAPE, ["Conv"], {}),
        # inputs
        ("input name typo", [*run, "--input", "X=x.npy"], INVALID, ['no input "X"', '"x"'], {}),
        ("input without name", [*run, "--input", "x.npy"], INVALID, ["NAME=FILE"], {}),
        ("input file missing", [*run, "--input", "x=none.npy"], IO, ['"x"', "none.npy", "No such file"], {}),
        ("input is a folder", [*run, "--input", "x=folder"], IO, ['"x"', "folder"], {}),
        ("input of another type", [*run, "--input", "x=f64.npy"], TYPE, ["f64", "f32", "f64.npy"], {}),
        ("input of another shape", [*run, "--input", "x=wide.npy"], SHAPE, ['"x"', "axis 1", "4", "3"], {}),
        ("input of another rank", [*run, "--input", "x=rank.npy"], SHAPE, ['"x"', "rank"], {}),
        ("npy cut short", [*run, "--input", "x=cut.npy"], IO, ["cut.npy", "cut short"], {}),
        ("npy in Fortran order", [*run, "--input", "x=fortran.npy"], IO, ["Fortran", "ascontiguousarray"], {}),
        ("npy that claims the world", [*run, "--input", "x=huge.npy"], IO, ["huge.npy", "too large"], {}),
        ("npy of complex numbers", [*run, "--input", "x=complex.npy"], IO, ["<c8"], {}),
        ("raw file of wrong size", [*run, "--input", "x=four.raw"], IO, ["four.raw", "24 bytes"], {}),
        ("raw file for an open shape", ["run", "open.hone", "--input", "x=ok.raw"], IO, ["--shape", "axis 0"], {}),
        ("npz damaged", [*run, "--input", "x=damaged.npz"], IO, ["damaged.npz"], {}),
        ("verify: input name typo", ["verify", "relu.onnx", "--input", "y=x.npy"], INVALID, ['no input "y"'], {}),
        # engines
        ("missing engine", ["run", "none.hone"], NOTFOUND, ["none.hone", "No such file"], {}),
        ("model given as engine", ["run", "relu.onnx"], FORMAT, ["relu.onnx", "engine"], {}),
        ("engine cut short", ["run", "cut.hone"], FORMAT, ["cut.hone", "bytes long"], {}),
        ("engine damaged", ["bench", "flipped.hone"], FORMAT, ["flipped.hone"], {}),
        ("engine of another version", ["run", "foreign.hone"], VERSION, ["77", "foreign.hone"], {}),
        ("engine of another processor", ["run", "v4.hone"], TARGET, ["avx512"], {"HONE_CPU_FEATURES": "avx2"}),
        ("engine is a folder", ["run", "folder"], IO, ["folder"], {}),
        # options
        ("number with letters", [*build, "relu.onnx", "--threads", "3abc"], INVALID, ["--threads", "3abc", "whole number"], {}),
        ("number out of range", ["build", "relu.onnx", "--opt-level", "9"], INVALID, ["--opt-level", "0 to 5"], {}),
        ("no seconds", ["bench", "relu.hone", "--duration", "nan"], INVALID, ["--duration", "nan"], {}),
        ("option misspelt", ["build", "relu.onnx", "--thread-s", "2"], INVALID, ["--thread-s", "--threads"], {}),
        ("option of another command", ["run", "relu.hone", "--budget", "3"], INVALID, ["--budget", "hone tune"], {}),
        ("option without value", ["bench", "relu.hone", "--iterations"], INVALID, ["--iterations", "needs a value"], {}),
        ("flag with a value", ["bench", "relu.hone", "--json=1"], INVALID, ["--json", "no value"], {}),
        ("option that fits several", ["tune", "relu.onnx", "--s", "1"], INVALID, ["several"], {}),
        ("unknown letter", ["bench", "-q", "relu.hone"], INVALID, ["-q"], {}),
        ("one file too many", ["build", "relu.onnx", "open.onnx"], INVALID, ["open.onnx", "too many"], {}),
        ("command misspelt", ["biuld", "relu.onnx"], INVALID, ['"biuld"', '"build"'], {}),
        ("unknown target", [*build, "relu.onnx", "--target", "z80"], NOTFOUND, ["z80", "Known targets"], {}),
        # routes
        ("knob misspelt", [*build, "relu.onnx", "--set", "-region:chian=1"], INVALID, ["region:chian", "region:chain"], {}),
        ("knob out of its domain", [*build, "relu.onnx", "--set", "-core:opt_level=77"], INVALID, ["77", "core:opt_level"], {}),
        ("no route", [*build, "relu.onnx", "--set", "fast please"], INVALID, ["route"], {}),
        ("tune without an engine", ["tune", "relu.onnx"], INVALID, ["-o ENGINE"], {}),
        ("unknown strategy", ["tune", "relu.onnx", "-o", "t.hone", "--strategy", "luck"], INVALID, ["luck", "mixed"], {}),
        ("search of no knob", ["tune", "relu.onnx", "-o", "t.hone", "--search", "-a:b=[0|1]"], INVALID, ["a:b"], {}),
        ("no such knob", ["knobs", "nope"], INVALID, ['"nope"', "hone knobs"], {}),
        # places
        ("engine in no folder", [*build, "relu.onnx", "-o", "nowhere/e.hone"], IO, ["nowhere/e.hone", "No such file"], {}),
        ("engine onto a folder", [*build, "relu.onnx", "-o", "folder"], IO, ["folder"], {}),
        ("engine onto a device", [*build, "relu.onnx", "-o", "/dev/full"], IO, ["/dev/full", "regular file"], {}),
        ("outputs onto a file", [*run, "-o", "relu.onnx"], IO, ["relu.onnx", "no folder"], {}),
        ("outputs in no folder", [*run, "-o", "nowhere/out"], IO, ["nowhere/out"], {}),
        ("archive in no folder", [*run, "-o", "nowhere/out.npz"], IO, ["nowhere/out.npz"], {}),
        ("references onto a file", ["verify", "relu.onnx", "--reference-out", "x.npy"], IO, ["x.npy"], {}),
        ("cache in a file", [*build, "relu.onnx", "--cache-dir", "x.npy/cache"], IO, ["x.npy/cache"], {}),
        ("no permission", [*build, "relu.onnx", "-o", "/proc/e.hone"], IO, ["/proc/e.hone"], {}),
        # the compiler
        ("worker missing", [*build, "relu.onnx", "-o", "w.hone"], NOTFOUND, ["/nowhere/hone-worker", "HONE_WORKER"], no_worker),
        ("worker dies", [*build, "relu.onnx", "-o", "w.hone"], CRASH, ["worker", "exit status 3"],
         {"HONE_WORKER": "./crasher", "HONE_CACHE_DIR": "other"}),
        ("doctor finds no compiler", ["doctor"], NOTFOUND, [], no_worker),
        ("worker of another build", [*build, "relu.onnx", "-o", "w.hone"], VERSION, ["./stranger", "another build", "HONE_WORKER"],
         {"HONE_WORKER": "./stranger", "HONE_CACHE_DIR": "other"}),
        # judging
        ("accuracy bound broken", ["verify", "deep.onnx", "--threshold", "1e-30", "--opt-level", "0"], ACCURACY, [], {}),
        # trtexec
        ("trtexec: nothing to do", ["trtexec"], INVALID, ["--onnx"], {}),
        ("trtexec: flag misspelt", ["trtexec", "--onxn=relu.onnx"], INVALID, ["--onxn", "--onnx"], {}),
        ("trtexec: no number", ["trtexec", "--onnx=relu.onnx", "--iterations=ten"], INVALID, ["--iterations", "ten"], {}),
        ("trtexec: no value", ["trtexec", "--onnx=relu.onnx", "--timingCacheFile"], INVALID, ["--timingCacheFile", "needs a value"], {}),
        ("trtexec: no flag", ["trtexec", "relu.onnx"], INVALID, ["relu.onnx", "--name=value"], {}),
        ("trtexec: bad shapes", ["trtexec", "--onnx=open.onnx", "--shapes=x"], INVALID, ["--shapes"], {}),
    ]


class Judge:
    def __init__(self, show):
        self.show, self.passed, self.failed = show, 0, 0

    def tell(self, name, faults, text):
        if faults:
            self.failed += 1
            print(f"FAIL {name}: {'; '.join(faults)}\n{text.strip()}")
        else:
            self.passed += 1
            if self.show:
                print(f"---- {name}\n{text.strip()}")


def message_faults(text, parts):
    lines = text.splitlines()
    errors = [ln for ln in lines if ln.startswith("hone: ")]
    faults = [f"no {p!r}" for p in parts if p not in text]
    faults += [f"noise: {n!r}" for n in NOISE if n in text]
    if parts and not errors:
        faults.append("no line starts with 'hone: '")
    if any(ln.rstrip().endswith(".") for ln in errors):
        faults.append("a message ends in a full stop")
    return faults


def check_case(work, judge, name, args, status, parts, env):
    before = work.listing()
    r = work.run(*args, env=env)
    faults = [f"status {r.returncode}, not {status}"] if r.returncode != status else []
    faults += message_faults(r.stderr, parts)
    if work.listing() != before:
        faults.append(f"left {sorted(set(work.listing()) ^ set(before))}")
        for extra in set(work.listing()) - set(before):
            p = work.at / extra
            shutil.rmtree(p) if p.is_dir() else p.unlink()
    if args[0] != "trtexec" and parts:  # the same error as JSON, with its number
        j = work.run(*args, "--json", env=env).stdout.strip().splitlines()
        try:
            if json.loads(j[-1])["error"]["status"] != status:
                faults.append("--json tells another status")
        except (IndexError, ValueError, KeyError):
            if "--json=1" not in args and args[0] in ("build", "run", "bench", "verify", "tune", "knobs"):
                faults.append(f"--json tells no error: {j[-1:]}")
    judge.tell(name, faults, r.stderr)
    for extra in ("other",):
        shutil.rmtree(work.at / extra, ignore_errors=True)


def small_files():
    """As a full disk: every file ends at 3000 bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))


def check_full_disk(work, judge):
    big = ["bench", "relu.hone", "--iterations", "1"]
    for name, args, part in (("full disk: engine", ["build", "relu.onnx", "-o", "f.hone", "--opt-level", "0"], "f.hone"),
                             ("full disk: outputs", ["run", "deep.hone", "-o", "out"], "output_0.npy"),
                             ("full disk: archive", ["run", "deep.hone", "-o", "out.npz"], "out.npz")):
        before = work.listing()
        r = work.run(*args, preexec_fn=small_files)
        (work.at / "out").rmdir() if (work.at / "out").exists() else None
        faults = message_faults(r.stderr, [part, "too large"]) + ([f"status {r.returncode}"] if r.returncode != IO else [])
        if work.listing() != before:
            faults.append(f"left {set(work.listing()) ^ set(before)}")
        judge.tell(name, faults, r.stderr)
    with open("/dev/full", "w") as full:
        r = subprocess.run([work.hone, *big], cwd=work.at, env=work.env, stdout=full, stderr=subprocess.PIPE, text=True)
    faults = message_faults(r.stderr, ["standard output"]) + ([f"status {r.returncode}"] if r.returncode != IO else [])
    judge.tell("standard output is full", faults, r.stderr)


def check_signals(work, judge):
    for name, sig, args, after in (("SIGINT while building", signal.SIGINT, ["build", "long.onnx", "-o", "s.hone", "--cache-dir="], 0.4),
                                   ("SIGTERM while measuring", signal.SIGTERM, ["bench", "relu.hone", "--duration", "60"], 0.5),
                                   ("SIGINT while evaluating", signal.SIGINT, ["verify", "long.onnx", "--opt-level", "0"], 0.4)):
        before = work.listing()
        while True: # until the signal finds it at work, on a machine of any speed
            p = subprocess.Popen([work.hone, *args], cwd=work.at, env=work.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 stdin=subprocess.DEVNULL, text=True)
            time.sleep(after)
            p.send_signal(sig)
            try:
                text = p.communicate(timeout=60)[1]
            except subprocess.TimeoutExpired:
                p.kill()
                text = p.communicate()[1] + "\n(it went on)"
            if p.returncode != 0 or after < 0.03:
                break
            for made in set(work.listing()) - set(before):
                (work.at / made).unlink()
            after *= 0.6
        faults = message_faults(text, ["hone: "]) + ([f"status {p.returncode}"] if p.returncode != CANCELLED else [])
        if work.listing() != before:
            faults.append(f"left {set(work.listing()) ^ set(before)}")
        judge.tell(name, faults, text)


def check_open_extents(work, judge):
    """What an op takes for granted of extents that only a run knows is checked when they are set: no kernel reads past its end."""
    for model, shapes, good in (("gather", ("x=1x5", "i=9x2"), ("x=9x5", "i=4x2")), ("scatter", ("x=1x5", "i=9x2", "u=9x2"), ()),
                                ("scatter", ("x=9x5", "i=9x2", "u=3x2"), ("x=9x5", "i=3x2", "u=3x2")),
                                ("product", ("x=3x4", "w=6x2"), ("x=3x6", "w=6x2")), ("concat", ("x=3x2", "w=5x2"), ("x=5x2", "w=5x2")),
                                ("filters", ("x=1x2x4x4", "w=3x5x1x1"), ("x=1x5x4x4", "w=3x5x1x1"))):
        r = work.run("build", f"{model}.onnx", "-o", f"{model}.hone", "--opt-level", "0")
        faults = [f"build: {r.stderr}"] if r.returncode else []
        r = work.run("run", f"{model}.hone", *[w for s in shapes for w in ("--shape", s)])
        faults += message_faults(r.stderr, ["node"]) + ([f"status {r.returncode}"] if r.returncode != SHAPE else [])
        text = r.stderr
        if good:
            r = work.run("run", f"{model}.hone", *[w for s in good for w in ("--shape", s)])
            faults += [f"sizes that fit are refused: {r.stderr}"] if r.returncode else []
        (work.at / f"{model}.hone").unlink(missing_ok=True)
        judge.tell(f"{model} of {', '.join(shapes)}", faults, text)


def check_pipes(work, judge):
    r = subprocess.run(f"'{work.hone}' knobs | head -1", shell=True, capture_output=True, text=True, env=work.env, cwd=work.at)
    judge.tell("a pipe that closes early", [] if r.stdout and not r.stderr else ["noise on standard error"], r.stderr)
    r = work.run("run", "open.hone")
    faults = [] if r.returncode == 0 and "made up" in r.stderr and "[1,3]" in r.stdout else ["it does not run"]
    judge.tell("open shapes without sizes", faults, r.stderr + r.stdout)
    r = work.run("build", "valid.onnx", "-o", "valid.hone")
    r = work.run("bench", "valid.hone", "--iterations", "2", "--json")
    judge.tell("sizes that a kernel needs are chosen", [] if r.returncode == 0 else ["it does not run"], r.stderr)
    r = work.run("run", "valid.hone", "--shape", "x=1x1x3x3")
    faults = message_faults(r.stderr, ["axis 2", '"x"']) + ([f"status {r.returncode}"] if r.returncode != SHAPE else [])
    judge.tell("run with a shape too small for a kernel", faults, r.stderr)


def check_stranger(judge, hone):
    """The real worker must not wait for the rest of a request whose first words are another build's."""
    worker = os.environ.get("HONE_WORKER") or pathlib.Path(hone).resolve().parent.parent / "src" / "codegen" / "hone-worker"
    p = subprocess.Popen([worker], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    p.stdin.write(b"HWK2" + b"\0" * 4)
    p.stdin.flush()
    try:
        status = p.wait(timeout=30)
    except subprocess.TimeoutExpired:
        p.kill()
        status = "none: it waits"
    judge.tell("worker started by another build", [] if status == 72 else [f"status {status}"], "")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("hone")
    ap.add_argument("--show", action="store_true", help="print every message")
    ap.add_argument("--only", metavar="TEXT")
    args = ap.parse_args()
    judge = Judge(args.show)
    with tempfile.TemporaryDirectory() as d:
        work = Work(os.path.abspath(args.hone), pathlib.Path(d))
        r = work.run("build", "deep.onnx", "-o", "deep.hone", "--opt-level", "0")
        assert r.returncode == 0, r.stderr
        for case in cases():
            if not args.only or args.only in case[0]:
                check_case(work, judge, *case)
        if not args.only:
            check_full_disk(work, judge)
            check_signals(work, judge)
            check_stranger(judge, args.hone)
            check_open_extents(work, judge)
            check_pipes(work, judge)
    print(f"failures: {judge.passed} passed, {judge.failed} failed, 0 skipped")
    return 1 if judge.failed else 0


if __name__ == "__main__":
    sys.exit(main())
