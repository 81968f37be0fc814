"""Words and constructs that do not belong in the tree."""

import re
import subprocess

# Written in pieces so that this file passes its own check.
RULES = [
    (re.compile(r"(?<![\w.])/" + r"work/"), "a path of one machine"),
    (re.compile(r"(?<![\w.])/" + r"(root|home)/\w"), "a path of one machine"),
    (re.compile(r"\bTO" + r"DO\b(?!\(#\d+\)|:? ?#\d+)"), "a TO" + "DO without an issue number"),
    (re.compile(r"\bFIX" + r"ME\b|\bXX" + r"X\b"), "a marker of unfinished work"),
    (re.compile(r"-ffast" + r"-math|-Ofast" + r"\b"), "fast math"),
]
C_RULES = [
    (re.compile(r"^\s*#\s*if\s+0\b"), "code switched off with #if 0"),
    (re.compile(r"\balloca\s*\("), "alloca"),
    (re.compile(r"\t"), "a tab"),
]
GETENV = re.compile(r"\b(secure_)?getenv\s*\(")
SKIP = ("LICENSE",)
# Prose and rules say what is forbidden, so they may name it.
MAY_NAME = ("CONTRIBUTING.md", "docs/", "tests/lint/")


def tracked(root):
    """Files that git tracks or would track; every file where there is no git."""
    run = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"],
                         capture_output=True, text=True)
    if run.returncode == 0 and run.stdout:
        return sorted({f for f in run.stdout.split("\0") if f and (root / f).is_file()})
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and "/.git/" not in str(p))


def check_text(name, text):
    out = []
    rules = [] if name.startswith(MAY_NAME) else list(RULES)
    is_c = name.endswith((".c", ".h"))
    if is_c:
        rules += C_RULES
    reads_env = is_c and name.startswith("src/") and not name.startswith(("src/base/", "src/api/"))
    for n, line in enumerate(text.splitlines(), 1):
        for pattern, what in rules:
            if pattern.search(line):
                out.append(f"{name}:{n}: {what}")
        if reads_env and GETENV.search(line):
            out.append(f"{name}:{n}: getenv outside base/ and api/")
    return out


def run(root):
    out = []
    for name in tracked(root):
        if name in SKIP or name.startswith("build/"):
            continue
        data = (root / name).read_bytes()
        if b"\0" in data[:4096]:
            out.append(f"{name}: a binary file ({len(data)} bytes); models and data are fetched or made, not stored")
            continue
        out += check_text(name, data.decode(errors="replace"))
    return out
