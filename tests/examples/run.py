#!/usr/bin/env python3
"""The examples as a stranger uses them: installed library, pkg-config, compiled, run on a real model.

    tests/examples/run.py [--build build/release]
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "scripts"))
import fetch_models  # noqa: E402
import models        # noqa: E402

WARN = ["-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2"]


class Failed(Exception):
    pass


def sh(cmd, cwd, env=None):
    """Run a command; its output, or Failed with the end of it."""
    run = subprocess.run([str(c) for c in cmd], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, timeout=600)
    if run.returncode != 0:
        raise Failed(f"{pathlib.Path(str(cmd[0])).name}: status {run.returncode}: {(run.stdout + run.stderr)[-600:]}")
    return run.stdout


def install(build, prefix):
    sh(["meson", "install", "-C", build, "--no-rebuild", "--destdir", prefix], ROOT)
    found = sorted(prefix.rglob("hone.pc"))
    if not found:
        raise Failed("no hone.pc was installed")
    return found[0].parent


def flags(pc_dir, prefix, env):
    """Compile and link flags as pkg-config gives them, moved under prefix."""
    out = sh(["pkg-config", "--cflags", "--libs", f"--define-variable=prefix={prefix / installed_prefix(pc_dir)}",
              "hone"], ROOT, env)
    return out.split()


def installed_prefix(pc_dir):
    for line in (pc_dir / "hone.pc").read_text().splitlines():
        if line.startswith("prefix="):
            return line.split("=", 1)[1].lstrip("/")
    raise Failed("hone.pc names no prefix")


def check_example(name, args, expect, pc_dir, prefix, work):
    env = {**os.environ, "PKG_CONFIG_PATH": str(pc_dir)}
    got = flags(pc_dir, prefix, env)
    libdir = next(f[2:] for f in got if f.startswith("-L"))
    sh(["gcc", *WARN, ROOT / "examples" / f"{name}.c", *got, "-lm", f"-Wl,-rpath,{libdir}", "-o", work / name], work)
    out = sh([work / name, *args], work, env)
    if expect not in out:
        raise Failed(f'{name}: no "{expect}" in its output:\n{out[-600:]}')


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    args = ap.parse_args()
    model = models.select(["silero_static"])[0]
    errors = fetch_models.fetch([model], quiet=True)
    if errors:
        print(f"error: {errors[0]}")
        return 1
    cases = [("run_engine", [model.path, "out.hone"], "stateN: f32[2,1,128]"),
             ("own_tuner", [model.path, "-no:such_knob=1"], "best: (default)")]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        prefix, work = pathlib.Path(tmp) / "root", pathlib.Path(tmp) / "work"
        work.mkdir()
        for name, argv, expect in cases:
            try:
                pc_dir = install(args.build, prefix)
                check_example(name, argv, expect, pc_dir, prefix, work)
                passed += 1
            except Failed as e:
                failed += 1
                print(f"FAIL  {name}: {e}")
    print(f"examples: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
