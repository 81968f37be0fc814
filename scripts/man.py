#!/usr/bin/env python3
"""Write the options of every command into docs/man/hone.1, as `hone COMMAND --help` lists them.

    scripts/man.py [--hone build/hone] [--check]      --check writes nothing and fails when the page is out of date
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "man" / "hone.1"
BEGIN, END = '.\\" options: begin (scripts/man.py)\n', '.\\" options: end\n'
OPTION = re.compile(r"^  (?:-(\w), )?--([\w-]+)(?: (\S+))?(?:\s{2,}(.*)|\s(.*))?$")


def hone(program, *args):
    return subprocess.run([program, *args], capture_output=True, text=True, check=True).stdout


def commands(program):
    return re.findall(r"^  ([a-z]+) +\S", hone(program, "--help"), re.M)


def options(program, command):
    """(letter, name, value, text) of every option a command's help lists."""
    found = []
    for line in hone(program, command, "--help").splitlines():
        m = OPTION.match(line)
        if m:
            found.append([m[1], m[2], m[3], m[4] or m[5] or ""])
        elif found and line.startswith(" " * 20):
            found[-1][3] += " " + line.strip()
    return found


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in ".'" else text


def section(program, command):
    out = [f".SS {command}\n"]
    for letter, name, value, text in options(program, command):
        forms = ([f"\\fB\\-{letter}\\fR"] if letter else []) + [f"\\fB\\-\\-{escape(name)}\\fR"]
        out.append(".TP\n" + ", ".join(forms) + (f" \\fI{escape(value)}\\fR" if value else "") + "\n" + escape(text.strip()) + "\n")
    return "".join(out)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--hone", default=str(ROOT / "build" / "hone"))
    ap.add_argument("--check", action="store_true")
    args = ap.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    new = head + BEGIN + "".join(section(args.hone, c) for c in commands(args.hone) if c != "trtexec") + END + tail
    if args.check:
        if new != page:
            print("docs/man/hone.1 is out of date: run scripts/man.py")
        return new != page
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
