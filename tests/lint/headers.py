"""Every header compiles alone, as C17; the public ones also as C++."""

import concurrent.futures
import os
import shutil
import subprocess

C_FLAGS = ["-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only"]
CXX_FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]


def llvm_include():
    """Where the compiler's headers are, for the one folder that includes them."""
    for name in ("llvm-config-19", "llvm-config"):
        if shutil.which(name):
            where = subprocess.run([name, "--includedir"], capture_output=True, text=True).stdout.strip()
            return [f"-isystem{where}"] if where else []
    return []


def compile_alone(root, rel, cmd):
    # Included, not compiled: a header given as the main file would lose "#pragma once" warnings and the like.
    src = f'#include "{root / rel}"\nextern int hn_translation_unit_not_empty;\n'
    run = subprocess.run(cmd + ["-"], input=src, capture_output=True, text=True, cwd=root)
    if run.returncode == 0:
        return []
    if "pb-c.h: No such file" in run.stderr:         # generated; there once a build has run
        return []
    first = next((ln for ln in run.stderr.splitlines() if "error" in ln), "does not compile")
    return [f"{rel}: does not compile alone: {first.strip()}"]


def run(root, builds=()):
    """builds: build folders whose generated headers may be needed."""
    cc = os.environ.get("CC", "gcc")
    inc = ["-Isrc", "-Iinclude"] + llvm_include()
    for b in builds:
        inc += [f"-I{d}" for d in sorted({str(p.parent) for p in b.rglob("*.pb-c.h")})]
    headers = sorted(p.relative_to(root) for top in ("src", "include", "cli") for p in (root / top).rglob("*.h"))
    jobs = [(h, [cc, "-x", "c"] + C_FLAGS + inc) for h in headers]
    cxx = shutil.which("g++") or shutil.which("clang++-19")
    if cxx:
        jobs += [(h, [cxx, "-x", "c++"] + CXX_FLAGS + ["-Iinclude"]) for h in headers if h.parts[0] == "include"]
    elif any(h.parts[0] == "include" for h in headers):
        return ["no C++ compiler to check the public headers with"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(lambda j: compile_alone(root, *j), jobs), [])
