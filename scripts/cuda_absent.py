"""Libraries that stand where torch's wheel looks for CUDA's: every function says that there is no device.

The wheel of PyPI is built for GPUs and does not load without some 4 GB of NVIDIA's libraries, of which an export on a CPU calls
none. Needs a C compiler and binutils.
"""

import pathlib
import re
import subprocess
import tempfile

NO_DEVICE = 100 # cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE


def listing(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def wanted(folder):
    """{soname: {version: functions}} that the libraries of a folder take from CUDA's; unversioned functions are all of one list."""
    sonames, functions = set(), {}
    for so in sorted(folder.glob("*.so")):
        sonames |= set(re.findall(r"NEEDED\s+(lib(?:cu|nccl|nvrtc|nvshmem)\S+)", listing("objdump", "-p", so)))
        for name, version in re.findall(r" U (_*(?:cu|nccl|nvrtc|nvshmem)\w+)(?:@+(\S+))?", listing("nm", "-D", "--undefined-only", so)):
            functions.setdefault(version, set()).add(name)
    home = {v: next((s for s in sonames if s == v or s.split(".")[0] == f"lib{v.lower()}_host"), None) for v in functions}
    return {s: {v: f for v, f in functions.items() if home[v] == s or (not v and s.startswith("libnccl"))} for s in sonames}


def make(folder):
    """Put the stand-ins beside torch's own libraries, which look there first."""
    folder = pathlib.Path(folder)
    for soname, versions in wanted(folder).items():
        with tempfile.TemporaryDirectory() as tmp:
            source, script = pathlib.Path(tmp) / "absent.c", pathlib.Path(tmp) / "absent.map"
            names = sorted(n for f in versions.values() for n in f)
            source.write_text("\n".join(f"long {n}(void) {{ return {NO_DEVICE}; }}" for n in names) + "\n")
            script.write_text("\n".join(f"{v} {{ global: *; }};" for v in versions if v) + "\n")
            subprocess.run(["gcc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{soname}", "-o", str(folder / soname), str(source),
                            *([f"-Wl,--version-script={script}"] if any(versions) else [])], check=True)
