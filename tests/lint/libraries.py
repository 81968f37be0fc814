"""What the libraries export and need: hone_* and nothing else, and a runtime library without the compiler."""

import re
import shutil
import subprocess
import tempfile

HEAVY = re.compile(r"LLVM|protobuf|sqlite|clang|stdc\+\+|libz3|libxml2", re.IGNORECASE)


def exported(lib):
    """Names of the dynamic symbols that a library defines."""
    out = subprocess.run(["nm", "-D", "--defined-only", str(lib)], capture_output=True, text=True, check=True).stdout
    return [ln.split()[-1].split("@")[0] for ln in out.splitlines() if ln.strip()]


def needed(lib):
    out = subprocess.run(["readelf", "-d", str(lib)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+?)\]", out)


def check_exports(lib):
    names = exported(lib)
    bad = [n for n in names if not n.startswith("hone_") and n not in ("_init", "_fini")]
    out = [f"{lib.name} exports {n}" for n in bad[:20]]
    if not any(n.startswith("hone_") for n in names):
        out.append(f"{lib.name} exports no hone_ symbol at all")
    return out


def check_runtime_alone(root, lib, rt_calls):
    """A program that uses the runtime's calls links against the runtime library alone and starts."""
    if not rt_calls:
        return [f"{lib.name} offers no function"]
    with tempfile.TemporaryDirectory() as tmp:
        src, exe = f"{tmp}/a.c", f"{tmp}/a"
        refs = "\n".join(f"    (void (*)(void)){n}," for n in rt_calls)
        with open(src, "w") as f:
            f.write('#include <hone/hone.h>\n#include <stddef.h>\n'
                    f'void (*const volatile calls[])(void) = {{\n{refs}\n}};\n'
                    'int main(void) { return calls[0] == NULL; }\n')
        cc = shutil.which("gcc") or shutil.which("cc")
        link = subprocess.run([cc, "-std=c17", "-Wno-cast-function-type", f"-I{root / 'include'}", src, str(lib),
                               f"-Wl,-rpath,{lib.parent}", "-Wl,--no-undefined", "-o", exe],
                              capture_output=True, text=True)
        if link.returncode != 0:
            return [f"rt-only program does not link: {link.stderr.strip().splitlines()[0]}"]
        ran = subprocess.run([exe], capture_output=True, text=True)
        return [] if ran.returncode == 0 else [f"rt-only program fails: {ran.returncode} {ran.stderr.strip()[:120]}"]


def declared(root):
    text = (root / "include" / "hone" / "hone.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"\b(hone_\w+)\s*\(", text))


def run(root, build):
    """Checks of one build folder that holds libhone.so and libhone-rt.so."""
    lib, rt = (build / n for n in ("libhone.so", "libhone-rt.so"))
    missing = [p.name for p in (lib, rt) if not p.exists()]
    if missing:
        return [f"{', '.join(missing)} not built in {build}"]
    out = check_exports(lib.resolve()) + check_exports(rt.resolve())
    out += [f"{rt.name} needs {n}" for n in needed(rt) if HEAVY.search(n)]
    api = declared(root)
    out += [f"{lib.name} exports {n}, which hone.h does not declare" for n in sorted(set(exported(lib)) - api)
            if n.startswith("hone_")]
    out += [f"{lib.name} lacks {n}, which hone.h declares" for n in sorted(api - set(exported(lib)))]
    return out + check_runtime_alone(root, rt, sorted(n for n in exported(rt) if n in api))
