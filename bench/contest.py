"""Measure several programs against each other, each in a process of its own.

Method: every contestant loads its model in its own process. Blocks of 0.4 s alternate between them, with 50 ms of
rest between blocks; the first call of a block is dropped. The order turns round by one each round, so that no
contestant always follows the same other. In one process the peers' spinning workers slow each other by up to 2x.
Engines of ours are loaded anew in a fresh process each round: where memory happens to lie moves a whole process by a
percent or so, which more blocks of that process never average out. Peers take seconds to load and keep theirs.

A contestant's figure is the median over rounds of the block medians. Two are compared by the ratio of their block
medians within each round: geometric mean, and a 95% interval from a bootstrap over rounds.
"""

import json
import os
import pathlib
import select
import subprocess
import time

import numpy as np

BLOCK_S = 0.4
REST_S = 0.05
ANSWER_S = 120   # how long a contestant may take for an answer
WRONG = 1e9      # the error of an output that is no answer at all: wrong integers, shape, NaN or infinity
ROOT = pathlib.Path(__file__).resolve().parent.parent


class ContestError(Exception):
    """A contestant refused, failed or hung; the text says what it said."""


class Contestant:
    """A worker process that speaks the protocol of docs/benchmarking.md."""

    def __init__(self, name, argv, cwd=None):
        self.name, self.argv, self.cwd = name, argv, cwd
        self.start()

    def start(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "KMP_", "MKL_"))}
        self.proc = subprocess.Popen(self.argv, cwd=self.cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL)
        self.pending = b""

    def prepare(self, files, **load):
        """Load and take inputs; closed when either is refused."""
        try:
            self.load, self.first = self.ask(cmd="load", **load), self.ask(cmd="inputs", files=files)
        except ContestError:
            self.close()
            raise
        self.again = lambda: self.prepare(files, **load)

    def renew(self):
        """A fresh process in the state that prepare() left."""
        self.close()
        self.start()
        self.again()

    def ask(self, timeout=None, **cmd):
        """One command, one answer; raises ContestError on refusal, death or silence."""
        try:
            self.proc.stdin.write(json.dumps(cmd).encode() + b"\n")
            self.proc.stdin.flush()
        except OSError:
            raise ContestError(self._death()) from None
        line = self._line(time.monotonic() + (timeout or ANSWER_S), cmd["cmd"])
        try:
            reply = json.loads(line)
        except json.JSONDecodeError:
            raise ContestError(f'answered "{line[:80]!r}", which is not JSON') from None
        if not reply.get("ok"):
            raise ContestError(str(reply.get("error", "refused without a reason")))
        return reply

    def _line(self, deadline, what):
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.proc.stdout], [], [], left)[0]:
                self.close()
                raise ContestError(f'no answer to "{what}" in time')
            got = os.read(self.proc.stdout.fileno(), 1 << 20)
            if not got:
                raise ContestError(self._death())
            self.pending += got
        line, self.pending = self.pending.split(b"\n", 1)
        return line

    def _death(self):
        try:
            rc = self.proc.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "closed its output"
        return f"died of signal {-rc}" if rc < 0 else f"ended with status {rc}"

    def close(self):
        if self.proc.poll() is None:
            try:
                self.proc.stdin.write(b'{"cmd":"quit"}\n')
                self.proc.stdin.close()
                self.proc.wait(timeout=2)
            except (OSError, ValueError, subprocess.TimeoutExpired):
                self.proc.kill()
                self.proc.wait()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def call_times(call, seconds):
    """What a worker does for one block: call for some seconds; every call's nanoseconds but the first's."""
    now, times = time.perf_counter_ns, []
    call()
    end = now() + int(seconds * 1e9)
    t0 = now()
    while t0 < end or not times:
        call()
        t1 = now()
        times.append(t1 - t0)
        t0 = t1
    return times


def race(contestants, rounds, block_s=BLOCK_S, rest_s=REST_S, renewed=()):
    """Alternate blocks; returns ({name: [median ns of each round]}, {name: error} for those that fell out).

    renewed: names of those that get a fresh process each round.
    """
    medians = {c.name: [] for c in contestants}
    fallen = {}
    for r in range(rounds):
        k = r % max(1, len(contestants))
        for c in contestants[k:] + contestants[:k]:
            if c.name in fallen:
                continue
            try:
                if r > 0 and c.name in renewed:
                    c.renew()
                time.sleep(rest_s)
                times = c.ask(cmd="block", seconds=block_s, timeout=60 + 10 * block_s)["times_ns"]
                medians[c.name].append(float(np.median(times)))
            except ContestError as e:
                fallen[c.name] = str(e)
    return {n: v for n, v in medians.items() if n not in fallen}, fallen


def median_ms(blocks):
    return float(np.median(blocks)) / 1e6


def ratio(over, under, draws=2000, seed=1):
    """Paired ratio over/under of two contestants' rounds: (geometric mean, low, high), 95%."""
    logs = np.log(np.asarray(over)) - np.log(np.asarray(under))
    rng = np.random.default_rng(seed)
    means = logs[rng.integers(0, len(logs), (draws, len(logs)))].mean(axis=1)
    lo, hi = np.percentile(means, [2.5, 97.5])
    return float(np.exp(logs.mean())), float(np.exp(lo)), float(np.exp(hi))


def geomean(values):
    return float(np.exp(np.mean(np.log(values)))) if len(values) else float("nan")


def output_error(got, want):
    """Relative L2 error of one output; integers and bools must be equal, else WRONG."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return WRONG
    if got.dtype.kind in "iub":
        # A float64 reference may hold an integer output as doubles: compare values, not representations.
        return 0.0 if np.array_equal(got, want) else WRONG
    g, w = got.astype(np.float64), want.astype(np.float64)
    same = (g == w) | (np.isnan(g) & np.isnan(w))
    if not np.isfinite(w[~same]).all() or not np.isfinite(g[~same]).all():
        return WRONG
    with np.errstate(invalid="ignore"):
        diff = np.where(same, 0.0, g - w)
    norm = float(np.sqrt(np.sum(np.square(w[np.isfinite(w)]))))
    dist = float(np.sqrt(np.sum(np.square(diff))))
    return min(WRONG, dist / norm) if norm > 0 else (0.0 if dist == 0 else WRONG)


def worst_error(got, want):
    """The worst output's error; got and want are {name: array}. A missing output counts as WRONG."""
    if not want:
        return None
    return max(output_error(got[n], w) if n in got else WRONG for n, w in want.items())


def load_outputs(reply):
    return {n: np.load(p) for n, p in reply["files"].items()}


def python_of(peer):
    home = pathlib.Path(os.environ.get("HONE_FETCH_DIR") or ROOT / ".cache")
    return home / "peers" / peer / "bin" / "python"


def start_peer(peer, model, threads, files, shapes=None):
    """A peer ready to race, or ContestError with its reason. peer: ort, openvino, openvino_exact."""
    py = python_of(peer.split("_")[0])
    c = Contestant(peer, [str(py), str(ROOT / "bench" / "peer_worker.py"), peer])
    c.prepare(files, model=str(model), threads=threads, shapes=shapes or {})
    return c


def start_hone(name, engine, threads, files, hone=None):
    """One of our engines ready to race, or ContestError with its reason."""
    c = Contestant(name, [str(hone or os.environ.get("HONE_PROGRAM") or ROOT / "build" / "hone"), "bench", "--worker"])
    c.prepare(files, engine=str(engine), threads=threads)
    return c


def last_line(text):
    lines = [ln for ln in (text or "").strip().splitlines() if ln.strip()]
    return lines[-1].strip() if lines else ""
