"""Pages that repeat what a table in the source says: the man page's exit statuses, hone.h's copy of them."""

import re


def statuses(text):
    """{number: text} of src/base/status.def."""
    return {int(n): t for n, t in re.findall(r'X\(\w+,\s*(\d+),\s*"([^"]+)"\)', text)}


def man_statuses(text):
    """{number: text} of the man page's EXIT STATUS list, which stands in two columns."""
    part = text.split(".SH EXIT STATUS")[1].split(".SH")[0]
    out = {}
    for line in re.findall(r"^ ?\d+  .*$", part, re.M):
        for n, t in re.findall(r"(\d+)  (\S.*?)(?=\s{2,}\d+  |\s*$)", line):
            out[int(n)] = t
    return out


def check_statuses(table, man):
    """The man page may shorten a text, not change it."""
    out = []
    for n, text in table.items():
        if n == 0:
            continue
        if n not in man:
            out.append(f"docs/man/hone.1: exit status {n} ({text}) is missing")
        elif not text.startswith(man[n]):
            out.append(f'docs/man/hone.1: exit status {n} is "{text}", not "{man[n]}"')
    return out + [f"docs/man/hone.1: exit status {n} is in no table" for n in man if n not in table]


def dead_links(root):
    """Files under docs/ and the top pages that name a page which is not there."""
    out = []
    pages = [root / n for n in ("README.md", "CONTRIBUTING.md")] + sorted((root / "docs").glob("*.md"))
    for page in (p for p in pages if p.exists()):
        for name in sorted(set(re.findall(r"\bdocs/[\w-]+\.(?:md|json)\b", page.read_text()))):
            if not (root / name).exists():
                out.append(f"{page.relative_to(root)}: names {name}, which is not there")
    return out


def run(root):
    table = statuses((root / "src" / "base" / "status.def").read_text())
    man = man_statuses((root / "docs" / "man" / "hone.1").read_text())
    return check_statuses(table, man) + dead_links(root)
