"""The results of run.py as a table of docs/conformance.md. Rows of architectures that the results lack stay as they are there."""

import re

BLOCK = re.compile(r"(<!-- exporters: run.py --write-docs -->\n).*?(<!-- end exporters -->)", re.S)
EXPORTERS = ("script", "dynamo", "debian")
MEASURED = (*EXPORTERS, "shipped")
SHAPES = {"static": "fixed", "dynamic": "open"}


def by_net(results):
    out = {}
    for r in results:
        out.setdefault((r["library"], r["net"]), []).append(r)
    return out


def word(r, text):
    """A star: not at every size, for the file holds at some alone."""
    return {"ok": text + ("*" if "refused" in r and "ort" in r else ""), "skip": f"({text})", "FAIL": f"**{text} fails**"}[r["verdict"]]


def cell(rows, exporter):
    """What one exporter's files came to; in brackets what the exporter refused."""
    found = {r["variant"].partition("-")[2]: r for r in rows if r["variant"].startswith(exporter + "-")}
    return " ".join(word(found[s], text) for s, text in SHAPES.items() if s in found) or "-"


def tools(rows):
    return " ".join(word(r, r["variant"]) for r in rows if r["variant"].split("-")[0] not in EXPORTERS) or "-"


def worst(rows):
    """The error and ONNX Runtime's, of the float file whose error is largest."""
    measured = [r for r in rows if "err" in r and r["variant"].split("-")[0] in MEASURED]
    if not measured:
        return "- | -"
    r = max(measured, key=lambda r: r["err"])
    return f"{r['err']:.0e} | " + (f"{r['ort']:.0e}" if "ort" in r else "refuses")


def counts(row):
    """How many files of a row passed, failed and were not made."""
    files = " ".join(c.strip() for c in row.split("|")[2:6] if c.strip() != "-")
    failed, skipped = files.count(" fails**"), files.count("(")
    return len(files.replace(" fails**", "**").split()) - failed - skipped, failed, skipped


def summary(rows, kept, results):
    each = [counts(r) for r in rows]
    passed, failed, skipped = (sum(c) for c in zip(*each))
    return (f"{sum(p > 0 and f == 0 for p, f, _ in each)} architectures of {len(rows)} pass with every file that there is: {passed} files passed, "
            f"{failed} failed, {skipped} were not made or are refused by ONNX Runtime.{build_of(kept, results)}")


def build_of(kept, results):
    builds = {r.get("hone", "") for r in results}
    one = f" ({builds.pop()})" if len(builds) == 1 and "" not in builds else ""
    if kept:
        return f" {len(kept)} of them ran on earlier builds, the others on today's{one}."
    return f" All on one build{one}." if one else ""


def row_of(library, name, rows):
    cells = " | ".join([*(cell(rows, e) for e in EXPORTERS), tools(rows), worst(rows)])
    return f"| {name if library == 'own' or library in name else f'{name}, {library}'} | {cells} |"


def text(results, old, order):
    """old: the block as it stands. order: the names of all architectures."""
    rows = {name: row_of(library, name, of) for (library, name), of in by_net(results).items()}
    before = {m[1]: line for line in old.splitlines() if (m := re.match(r"\| (\w+)(?:, \w+)? \|(?:[^|]*\|){6}$", line)) and m[1] in order}
    kept = before.keys() - rows.keys()
    rows |= {name: before[name] for name in kept}
    lines = [rows[name] for name in order if name in rows]
    why = refusals(results)
    for line in old.splitlines():
        m = re.match(r"\| ((?:exporter|ONNX Runtime): .*) \| (.*) \|$", line)
        for f in m[2].split(", ") if m else ():
            if f.split()[0] in kept:
                why.setdefault(m[1], []).append(f)
    lines = [summary(lines, kept, results), "", "| architecture | script | dynamo | Debian 1.13 | tools | error | ORT's |", "|---|---|---|---|---|---|---|",
             *lines, "", "| refused by | files |", "|---|---|"]
    return "\n".join(lines + [f"| {reason} | {', '.join(files)} |" for reason, files in sorted(why.items(), key=lambda kv: -len(kv[1]))])


def refusals(results):
    """{why files are missing: which}."""
    why = {}
    for r in results:
        if r["verdict"] == "skip" or "refused" in r:
            reason = "ONNX Runtime: " + r["refused"] if "refused" in r else r["reason"]
            reason = re.sub(r"\s+", " ", reason).replace("|", "/")
            reason = re.sub(r"\S*/(\S+\.onnx)", r"\1", reason) # no paths
            why.setdefault(reason[:110], []).append(f"{r['net']} {r['variant']}" + ("" if r["verdict"] == "skip" else "*"))
    return why


def write(results, docs, order):
    old = docs.read_text()
    found = BLOCK.search(old)
    if not found:
        raise SystemExit(f"error: {docs.name} has no block for exporters")
    docs.write_text(BLOCK.sub(lambda m: f"{m[1]}\n{text(results, found[0], order)}\n\n{m[2]}", old))
