#!/usr/bin/env python3
"""Stands between the tuner and the real program: passes everything on, except for the accident that a test asks for.

$HONE_REAL     the program
$FAULT         crash, hang, oom while building; nan, crash_running, hang_running later; equal: build the default, say otherwise
$FAULT_ROUTE   the routes that it happens to hold this text
$BUILD_LOG     gets a line per build: the route
"""

import json
import os
import pathlib
import resource
import struct
import subprocess
import sys
import time

REAL, FAULT = os.environ["HONE_REAL"], os.environ.get("FAULT", "")
WHILE_RUNNING = ("nan", "crash_running", "hang_running")


def route_of(argv):
    return " ".join(argv[i + 1] for i, word in enumerate(argv[:-1]) if word == "--set")


def build(argv):
    route = route_of(argv)
    if "BUILD_LOG" in os.environ:
        with open(os.environ["BUILD_LOG"], "a") as f:
            f.write(route + "\n")
    fault = FAULT if os.environ.get("FAULT_ROUTE", "\0") in route and route else ""
    if fault == "crash":
        os.abort()
    if fault == "hang":
        time.sleep(1000)
    if fault == "oom":  # as the program ends; a limit of its own would not let a sanitizer start
        resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
        try:
            bytearray(1 << 30)
        except MemoryError:
            print('{"error":{"message":"out of memory","status":1}}')
            sys.exit(1)
    if fault in WHILE_RUNNING:
        pathlib.Path(argv[argv.index("-o") + 1] + ".fault").touch()
    if fault != "equal":
        os.execv(REAL, [REAL, *argv])
    at = argv.index("--set")
    r = subprocess.run([REAL, *argv[:at], *argv[at + 2:]], capture_output=True, text=True)
    told = json.loads(r.stdout)
    told["payload"] = f"{abs(hash(route)):032x}"
    print(json.dumps(told, separators=(",", ":")))
    sys.exit(r.returncode)


def spoil(folder):
    for file in pathlib.Path(folder).glob("output_*.npy"):
        data = file.read_bytes()
        file.write_bytes(data[:-4] + struct.pack("<f", float("nan")))


def worker(argv):
    real = subprocess.Popen([REAL, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    faulty = False
    for line in sys.stdin:
        command = json.loads(line)
        if command["cmd"] == "load":
            faulty = os.path.exists(command["engine"] + ".fault")
        if faulty and command["cmd"] == "block" and FAULT == "crash_running":
            os.abort()
        if faulty and command["cmd"] == "block" and FAULT == "hang_running":
            time.sleep(1000)
        real.stdin.write(line)
        answer = real.stdout.readline()
        if faulty and command["cmd"] == "outputs" and FAULT == "nan":
            spoil(command["dir"])
        sys.stdout.write(answer)
        sys.stdout.flush()


if sys.argv[1] == "build":
    build(sys.argv[1:])
elif "--worker" in sys.argv and FAULT in WHILE_RUNNING:
    worker(sys.argv[1:])
else:
    os.execv(REAL, [REAL, *sys.argv[1:]])
