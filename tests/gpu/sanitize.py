"""Test cases under compute-sanitizer: what it found in our kernels fails a case; what it found elsewhere is named beside the verdict."""

import re
import shutil

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
OURS = "hn_kernel"  # what codegen/cuda calls every kernel
ERROR = re.compile(r"^=+ +(Invalid|Uninitialized|Error: Race|Error: |Potential|Barrier error|Misaligned|Warning: |Program hit|Leaked)(.*)$")
WHERE = re.compile(r"^=+ +(?:at |and Write access at |and Read access at )\s*(?:0x[0-9a-f]+ in )?(\S+)")


def command(tool):
    """The sanitizer's own arguments; the case follows. No errors of API calls: what our probes ask for may be refused."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    return [program, "--tool", tool, "--target-processes", "application-only", "--error-exitcode", "9", "--report-api-errors", "no",
            "--print-limit", "20"]


def findings(out):
    """[(kernel, what)] of a run's output; the kernel is "" where none is named."""
    found = []
    for line in out.splitlines():
        error = ERROR.match(line)
        if error:
            found.append(["", (error[1] + error[2]).strip()])
        where = WHERE.match(line)
        if where and found and not found[-1][0]:
            found[-1][0] = where[1]
    return [tuple(f) for f in found]


def verdict(judge):
    """A function as `judge` (of exit status, output and case), which calls that for the case's own outcome."""
    def judged(rc, out, name):
        if "terminated before first instrumented API call" in out:
            return "skip", "nothing of it runs on a GPU"
        found = findings(out)
        ours = [f"{what} in {kernel}" for kernel, what in found if OURS in kernel or not kernel]
        if ours:
            return "fail", f"{len(ours)} findings: " + "; ".join(sorted(set(ours))[:6]) + " | " + sanitizer_lines(out)
        if "ERROR SUMMARY" not in out and "RACECHECK SUMMARY" not in out:
            return "fail", "compute-sanitizer gave no summary: " + out[-600:]
        own = "\n".join(ln for ln in out.splitlines() if not ln.startswith("========="))
        kind, reason = judge(0 if rc == 9 else rc, own, name)
        others = sorted({kernel for kernel, _ in found})
        return kind, (reason + (" (found in libraries: " + ", ".join(others) + ")" if others else "")).strip()
    return judged


def sanitizer_lines(out):
    """The first finding as it was printed, for a reader of the results."""
    return "\n".join(ln for ln in out.splitlines() if ln.startswith("========="))[:1500]
