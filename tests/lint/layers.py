"""Layers: a folder includes only what stands below it (docs/architecture.md)."""

import re

GROUND = ["base", "core", "memplan", "image"]
RUN = GROUND + ["dev", "engine", "runtime"]
MODEL = ["ir", "op", "eval", "kir"]

# folder -> the folders whose headers it may include, besides its own
ALLOWED = {
    "base": [],
    "core": ["base"],
    "memplan": ["base", "core"],
    "image": ["base"],
    "dev": ["base", "core"],
    "engine": ["base", "core", "memplan"],
    "runtime": ["base", "core", "memplan", "image", "dev", "engine"],
    "ir": ["base", "core"],
    "kir": ["base", "core"],
    "op": ["base", "core", "image", "ir"],
    "eval": ["base", "core", "ir", "op"],
    "import": ["base", "core", "ir", "op", "eval"],
    "pass": ["base", "core", "ir", "op", "eval"],
    "tactic": ["base", "core", "ir", "kir"],
    "codegen": ["base", "core", "kir"],
    "build": RUN + MODEL + ["import", "pass", "tactic", "codegen"],
    "calib": RUN + MODEL + ["import", "pass", "tactic", "codegen", "build"],
    "tune": RUN + MODEL + ["import", "pass", "tactic", "codegen", "build", "calib"],
    "api": RUN + MODEL + ["import", "pass", "tactic", "codegen", "build", "calib", "tune"],
}
# Programs see the public API alone.
FRONT = ["cli", "server", "python"]

# Libraries that may be seen in one place only: a pattern of system headers -> path prefixes.
CONTAINED = [
    (re.compile(r"llvm-c/|LLVM"), ["src/codegen/llvm/"]),
    (re.compile(r"protobuf-c|onnx\.pb-c\.h"), ["src/import/"]),
    (re.compile(r"sqlite3\.h"), ["src/tune/"]),
    (re.compile(r"png\.h|jpeglib\.h|tiffio\.h|webp/|openjpeg\.h"), ["src/image/module/"]),
    (re.compile(r"xxhash\.h"), ["src/base/"]),
    (re.compile(r"cuda\.h|nvrtc\.h|cublasLt\.h|cudnn\.h"), []),
]
GENERATED = {"onnx.pb-c.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def includes(text):
    """(line number, quote, target) of each include."""
    for n, line in enumerate(text.splitlines(), 1):
        m = INCLUDE.match(line)
        if m:
            yield n, m[1], m[2]


def folder_of(rel):
    parts = rel.parts
    return parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]


def check_file(root, rel, text):
    """Every violation of one file as text."""
    out, mine = [], folder_of(rel)
    here = (root / rel).parent
    for n, quote, target in includes(text):
        for pattern, homes in CONTAINED:
            if pattern.search(target) and not any(str(rel).startswith(h) for h in homes):
                out.append(f"{rel}:{n}: {target} may be included only in {', '.join(homes) or 'no file'}")
        first = target.split("/")[0]
        public = first == "hone"
        if mine in FRONT:
            if quote == '"' and not public and first != mine and not (here / target).exists():
                out.append(f"{rel}:{n}: {mine} may include the public API only, not {target}")
            continue
        if quote != '"' or target in GENERATED or first == mine:
            continue
        if public:
            if mine not in ("api", "base", "core") and target != "hone/hone.h":
                out.append(f"{rel}:{n}: {mine} may not include {target}")
            continue
        if "/" not in target:
            if not (here / target).exists():
                out.append(f"{rel}:{n}: {target} is neither beside the file nor folder/header")
        elif first not in ALLOWED:
            if not (here / target).exists():
                out.append(f"{rel}:{n}: {target}: folder {first} is not in the layer table")
        elif first not in ALLOWED[mine]:
            out.append(f"{rel}:{n}: {mine} may not include {target}")
    return out


def table_errors():
    """The table itself: known folders, and one direction only."""
    out = []
    for folder, below in ALLOWED.items():
        for b in below:
            if b not in ALLOWED:
                out.append(f"layer table: {folder} names {b}, which is no folder")
            elif folder in ALLOWED[b]:
                out.append(f"layer table: {folder} and {b} include each other")
    return out


def run(root):
    out = table_errors()
    for top in ["src"] + FRONT:
        if not (root / top).is_dir():
            continue
        if top == "src":
            for d in sorted(p for p in (root / top).iterdir() if p.is_dir()):
                if d.name not in ALLOWED:
                    out.append(f"src/{d.name}: a folder that the layer table does not know")
        for p in sorted((root / top).rglob("*")):
            if p.suffix not in (".c", ".h", ".def") or not p.is_file():
                continue
            rel = p.relative_to(root)
            if top == "src" and (len(rel.parts) < 3 or rel.parts[1] not in ALLOWED):
                continue
            out += check_file(root, rel, p.read_text(errors="replace"))
    return out
