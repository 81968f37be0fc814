"""The results of run.py as a table of docs/conformance.md."""

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


def summary(results):
    count = {v: sum(r["verdict"] == v for r in results) for v in ("ok", "FAIL", "skip")}
    passed = {r["net"] for r in results if r["verdict"] == "ok"} - {r["net"] for r in results if r["verdict"] == "FAIL"}
    return (f"{len(passed)} architectures of {len(by_net(results))} pass with every file that there is: {count['ok']} files passed, "
            f"{count['FAIL']} failed, {count['skip']} were not made or are refused by ONNX Runtime.{build_of(results)}")


def build_of(results):
    builds = {r.get("hone", "") for r in results}
    return f" All on one build ({builds.pop()})." if len(builds) == 1 and "" not in builds else ""


def text(results):
    lines = [summary(results), "", "| architecture | script | dynamo | Debian 1.13 | tools | error | ORT's |", "|---|---|---|---|---|---|---|"]
    for (library, name), rows in by_net(results).items():
        cells = " | ".join([*(cell(rows, e) for e in EXPORTERS), tools(rows), worst(rows)])
        lines.append(f"| {name if library == 'own' or library in name else f'{name}, {library}'} | {cells} |")
    lines += ["", "| refused by | files |", "|---|---|", *refusals(results)]
    return "\n".join(lines)


def refusals(results):
    """Why files are missing, most frequent reason first."""
    why = {}
    for r in results:
        if r["verdict"] == "skip" or "refused" in r:
            reason = "ONNX Runtime: " + r["refused"] if "refused" in r else r["reason"]
            reason = re.sub(r"\s+", " ", reason).replace("|", "/")
            reason = re.sub(r"\S*/(\S+\.onnx)", r"\1", reason) # no paths
            why.setdefault(reason[:110], []).append(f"{r['net']} {r['variant']}" + ("" if r["verdict"] == "skip" else "*"))
    return [f"| {reason} | {', '.join(files)} |" for reason, files in sorted(why.items(), key=lambda kv: -len(kv[1]))]


def write(results, docs):
    old = docs.read_text()
    if not BLOCK.search(old):
        raise SystemExit(f"error: {docs.name} has no block for exporters")
    docs.write_text(BLOCK.sub(lambda m: f"{m[1]}\n{text(results)}\n\n{m[2]}", old))
