"""Sizes: functions and files that ask for a second look, and those that are refused."""

import re

FUNCTION_ASK, FUNCTION_REFUSE = 60, 120
FILE_ASK, FILE_SPLIT = 600, 1200
COLUMNS = 110
NAME = re.compile(r"(\w+)\s*\(")


def functions(text):
    """(name, body lines) of each function: our style puts its braces in column 0."""
    lines = text.splitlines()
    start = None
    for i, line in enumerate(lines):
        if line.rstrip() == "{" and start is None:
            start = i
        elif line.startswith("}") and start is not None:
            yield head_name(lines, start), i - start - 1
            start = None


def head_name(lines, brace):
    """The function named in the lines above an opening brace, back to the blank line before."""
    head = []
    for line in reversed(lines[:brace]):
        if not line.strip() or line.startswith(("}", "#", "/*", " */")):
            break
        head.insert(0, line)
    m = NAME.search(" ".join(head))
    return m[1] if m else "?"


def allowed(root):
    """path:function or path -> the reason it may be long."""
    path = root / "tests" / "lint" / "sizes_allowed.txt"
    out = {}
    if path.exists():
        for line in path.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                key, _, reason = line.partition("\t")
                out[key.strip()] = reason.strip()
    return out


def scan(root):
    """(errors, report): what is refused, and what a reviewer should ask about."""
    may, errors, ask, lengths, used, wide = allowed(root), [], [], [], set(), 0
    for key, reason in may.items():
        if not reason:
            errors.append(f"sizes_allowed.txt: {key} has no reason")
    for top in ("src", "cli", "server"):
        for p in sorted((root / top).rglob("*.[ch]")) if (root / top).is_dir() else []:
            rel, text = str(p.relative_to(root)), p.read_text(errors="replace")
            n = text.count("\n")
            wide += sum(len(ln) > COLUMNS for ln in text.splitlines())
            if n > FILE_SPLIT:
                used.add(rel)
                if rel not in may:
                    errors.append(f"{rel}: {n} lines; split it (limit {FILE_SPLIT})")
            elif n > FILE_ASK:
                ask.append(f"{rel}: {n} lines")
            for name, size in functions(text):
                lengths.append(size)
                if size > FUNCTION_REFUSE:
                    used.add(f"{rel}:{name}")
                    if f"{rel}:{name}" not in may:
                        errors.append(f"{rel}: {name}() has {size} lines (limit {FUNCTION_REFUSE}; a flat table, a "
                                      "dispatch switch or an emitter may be listed in tests/lint/sizes_allowed.txt)")
                elif size > FUNCTION_ASK:
                    ask.append(f"{rel}: {name}() has {size} lines")
    errors += [f"sizes_allowed.txt: {k} needs no exception any more" for k in may if k not in used]
    lengths.sort()
    median = lengths[len(lengths) // 2] if lengths else 0
    ask.append(f"{len(lengths)} functions, median {median} lines, longest {lengths[-1] if lengths else 0}")
    ask.append(f"{wide} lines over {COLUMNS} columns")
    return errors, ask


def run(root):
    return scan(root)[0]
