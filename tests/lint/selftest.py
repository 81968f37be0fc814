"""The checks check: each must find the fault that is planted for it, and nothing in a clean file."""

import pathlib
import subprocess
import tempfile

import docs
import headers
import layers
import libraries
import sizes
import text

LAYER_FAULTS = [
    ("src/base/a.c", '#include "core/core.h"\n'),
    ("src/runtime/a.c", '#include "ir/ir.h"\n'),
    ("src/tactic/cpu/a.c", '#include "pass/pass.h"\n'),
    ("src/import/a.c", '#include "tactic/tactic.h"\n'),
    ("src/eval/a.c", '#include "nowhere/x.h"\n'),
    ("src/pass/a.c", "#include <llvm-c/Core.h>\n"),
    ("src/ir/a.c", '#include "onnx.pb-c.h"\n'),
    ("cli/a.c", '#include "base/diag.h"\n'),
]
LAYER_CLEAN = [
    ("src/runtime/a.c", '#include "engine/engine.h"\n#include "base/diag.h"\n#include <stdio.h>\n'),
    ("src/codegen/llvm/a.c", '#include "kir/kir.h"\n#include <llvm-c/Core.h>\n'),
    ("cli/a.c", '#include <hone/hone.h>\n#include "cli/cli.h"\n'),
]
TEXT_FAULTS = [
    ("src/ir/a.c", "/* see /" + "work/x */\n"),
    ("src/ir/a.c", "/* TO" + "DO later */\n"),
    ("src/ir/a.c", "#if 0\n#endif\n"),
    ("src/ir/a.c", 'char *s = getenv("A");\n'),
    ("meson.build", "args = ['-ffast" + "-math']\n"),
]
TEXT_CLEAN = [
    ("src/ir/a.c", "/* TO" + "DO(#12): wider tiles */\nint x;\n"),
    ("src/base/a.c", 'char *s = getenv("HONE_LOG");\n'),
    ("docs/a.md", "network/" + "work/paths are fine\n"),
]


def layer_faults():
    out, root = [], pathlib.Path("/nonexistent")
    for name, src in LAYER_FAULTS:
        if not layers.check_file(root, pathlib.Path(name), src):
            out.append(f"layers: missed {src.strip()} in {name}")
    for name, src in LAYER_CLEAN:
        out += [f"layers: false alarm: {e}" for e in layers.check_file(root, pathlib.Path(name), src)]
    with tempfile.TemporaryDirectory() as tmp:
        (pathlib.Path(tmp) / "src" / "newcomer").mkdir(parents=True)
        if not layers.run(pathlib.Path(tmp)):
            out.append("layers: missed a folder that the table does not know")
    return out


def text_faults():
    out = [f"text: missed {src.strip()}" for name, src in TEXT_FAULTS if not text.check_text(name, src)]
    for name, src in TEXT_CLEAN:
        out += [f"text: false alarm: {e}" for e in text.check_text(name, src)]
    return out


def size_faults():
    body = "static int f(int a)\n{\n" + "    a++;\n" * 121 + "    return a;\n}\n"
    if list(sizes.functions(body)) != [("f", 122)]:
        return ["sizes: miscounted a function of 122 lines"]
    with tempfile.TemporaryDirectory() as tmp:
        d = pathlib.Path(tmp) / "src" / "ir"
        d.mkdir(parents=True)
        (d / "a.c").write_text(body)
        return [] if sizes.run(pathlib.Path(tmp)) else ["sizes: missed a function of 122 lines"]


def header_faults():
    with tempfile.TemporaryDirectory() as tmp:
        root = pathlib.Path(tmp)
        (root / "include" / "hone").mkdir(parents=True)
        (root / "src" / "ir").mkdir(parents=True)
        (root / "cli").mkdir()
        (root / "src" / "ir" / "good.h").write_text("#include <stddef.h>\nsize_t hn_f(void);\n")
        (root / "src" / "ir" / "bad.h").write_text("size_t hn_f(void);\n")
        (root / "include" / "hone" / "c_only.h").write_text("struct hone_s { int class; };\n")
        found = headers.run(root)
        return [] if len(found) == 2 else [f"headers: found {len(found)} of 2 planted faults"]


def library_faults():
    with tempfile.TemporaryDirectory() as tmp:
        lib = pathlib.Path(tmp) / "libx.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(lib)], text=True, check=True,
                       input="int hone_ok(void){return 0;} int hn_leak(void){return 0;}")
        found = libraries.check_exports(lib)
        return [] if found == ["libx.so exports hn_leak"] else [f"libraries: planted one leak, found {found}"]


def docs_faults():
    table = {0: "success", 1: "out of memory", 2: "invalid argument"}
    out = [f"docs: false alarm: {e}" for e in docs.check_statuses(table, {1: "out of memory", 2: "invalid"})]
    for man in ({1: "out of memory"}, {1: "out of memory", 2: "bad"}, {1: "out of memory", 2: "invalid", 3: "x"}):
        if not docs.check_statuses(table, man):
            out.append(f"docs: missed a fault in {man}")
    return out


def run():
    return docs_faults() + layer_faults() + text_faults() + size_faults() + header_faults() + library_faults()
