#!/usr/bin/env python3
"""Checks of the tree itself. Each prints what it found; the last line counts checks.

    tests/lint/run.py [--build DIR] [--only NAME]     layers headers text docs sizes libraries selftest
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import docs       # noqa: E402
import headers    # noqa: E402
import layers     # noqa: E402
import libraries  # noqa: E402
import selftest   # noqa: E402
import sizes      # noqa: E402
import text       # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--build", metavar="DIR", help="a finished build to check the libraries of")
    ap.add_argument("--only", metavar="NAME[,NAME]")
    ap.add_argument("--verbose", action="store_true", help="also list what a reviewer should ask about")
    args = ap.parse_args()
    build = pathlib.Path(args.build).resolve() if args.build else None
    checks = {
        "selftest": selftest.run,
        "layers": lambda: layers.run(ROOT),
        "text": lambda: text.run(ROOT),
        "docs": lambda: docs.run(ROOT),
        "sizes": lambda: sizes.run(ROOT),
        "headers": lambda: headers.run(ROOT, [build] if build else sorted((ROOT / "build").glob("*"))),
        "libraries": lambda: libraries.run(ROOT, build) if build else None,
    }
    only = args.only.split(",") if args.only else list(checks)
    passed = failed = skipped = 0
    for name in only:
        found = checks[name]()
        if found is None:
            skipped += 1
            print(f"skip  {name}: no build given")
            continue
        for f in found:
            print(f"      {f}")
        print(f"{'FAIL' if found else 'ok  '}  {name}")
        failed += bool(found)
        passed += not found
    if args.verbose:
        for line in sizes.scan(ROOT)[1]:
            print(f"ask   {line}")
    print(f"lint: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
