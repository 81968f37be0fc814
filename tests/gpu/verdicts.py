"""What a test program's output means, on its own and under compute-sanitizer: what that found in our kernels fails a case, what it
found elsewhere is named beside the verdict."""

import re
import shutil

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
OURS = "hn_kernel"  # what codegen/cuda calls every kernel
ERROR = re.compile(r"^=+ +(Invalid|Uninitialized|Error: Race|Error: |Potential|Barrier error|Misaligned|Warning: |Program hit|Leaked)(.*)$")
WHERE = re.compile(r"^=+ +(?:at |and Write access at |and Read access at )\s*(?:0x[0-9a-f]+ in )?(\S+)")
OUTCOME = re.compile(r"\[\s*(OK|FAILED|SKIPPED)\s*\] (\S+)")


def of_case(rc, out, name):
    """(verdict, reason) of a test program that ran one case."""
    said = {n: w for w, n in OUTCOME.findall(out)}
    reason = " | ".join(ln.strip() for ln in out.splitlines() if not ln.startswith("["))[-1500:]
    if rc == 0 and said.get(name) == "OK":
        return "pass", ""
    if rc == 0 and said.get(name) == "SKIPPED":
        return "skip", reason.partition("skipped: ")[2][:200] or "no reason given"
    if "LLVM was left out" in out:
        return "skip", "it builds for a processor, and this build has no LLVM"
    return "fail", reason or f"ended with status {rc}"


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


def of_sanitized_case(rc, out, name):
    """As of_case(), under compute-sanitizer."""
    if "terminated before first instrumented API call" in out:
        return "skip", "nothing of it runs on a GPU"
    found = findings(out)
    ours = [f"{what} in {kernel}" for kernel, what in found if OURS in kernel or not kernel]
    if ours:
        return "fail", f"{len(ours)} findings: " + "; ".join(sorted(set(ours))[:6]) + " | " + sanitizer_lines(out)
    if "ERROR SUMMARY" not in out and "RACECHECK SUMMARY" not in out:
        return "fail", "compute-sanitizer gave no summary: " + out[-600:]
    verdict, reason = of_case(0 if rc == 9 else rc, "\n".join(ln for ln in out.splitlines() if not ln.startswith("=========")), name)
    others = sorted({kernel for kernel, _ in found})
    return verdict, (reason + (" (found in libraries: " + ", ".join(others) + ")" if others else "")).strip()


def sanitizer_lines(out):
    """The first finding as it was printed, for a reader of the results."""
    return "\n".join(ln for ln in out.splitlines() if ln.startswith("========="))[:1500]
