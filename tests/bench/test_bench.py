"""The scripts around the program: statistics, errors, worker protocol, model table, counting, verdicts."""

import pathlib
import re
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / d) for d in ("bench", "scripts", "tests/conformance", "tests/gpu")]
import bench              # noqa: E402
import check              # noqa: E402
import contest            # noqa: E402
import models             # noqa: E402
import run as conformance  # noqa: E402
import verdicts           # noqa: E402

# A worker that speaks the protocol and takes a known time: the driver is tested without any peer.
FAKE = r"""
import json, os, sys
scale = float(sys.argv[1])
for line in sys.stdin:
    c = json.loads(line)
    if c["cmd"] == "quit": break
    if c["cmd"] in ("load", "inputs"): r = {"ok": c.get("engine") != "bad", "error": "bad engine"}
    elif c["cmd"] == "pid": r = {"ok": True, "pid": os.getpid()}
    elif c["cmd"] == "block": r = {"ok": True, "times_ns": [1000 * scale, 1100 * scale, 900 * scale]}
    elif c["cmd"] == "die": sys.exit(3)
    elif c["cmd"] == "hang":
        import time; time.sleep(60)
    elif c["cmd"] == "noise": print("not json", flush=True); continue
    else: r = {"ok": False, "error": "no such command"}
    print(json.dumps(r), flush=True)
"""


def fake(name, scale=1.0):
    return contest.Contestant(name, [sys.executable, "-c", FAKE, str(scale)])


class Statistics(unittest.TestCase):
    def test_ratio_of_equal_is_one(self):
        g, lo, hi = contest.ratio([5.0] * 6, [5.0] * 6)
        self.assertEqual((g, lo, hi), (1.0, 1.0, 1.0))

    def test_ratio_is_paired(self):
        # The machine slows by 3x half way: unpaired figures overlap, the paired ratio stays exact.
        drift = np.array([1, 1, 1, 3, 3, 3.0])
        g, lo, hi = contest.ratio(2 * drift, drift)
        self.assertAlmostEqual(g, 2)
        self.assertAlmostEqual(lo, 2)
        self.assertAlmostEqual(hi, 2)

    def test_interval_covers(self):
        # 200 A/A races under 5% noise: the 95% interval must miss 1.0 rarely, and not never.
        rng = np.random.default_rng(5)
        missed = 0
        for k in range(200):
            a, b = (np.exp(rng.normal(0, 0.05, 16)) for _ in range(2))
            _, lo, hi = contest.ratio(a, b, draws=400, seed=k)
            missed += not lo <= 1 <= hi
        self.assertGreater(missed, 0)
        self.assertLess(missed, 200 * 0.14)

    def test_median_and_geomean(self):
        self.assertEqual(contest.median_ms([1e6, 9e6, 2e6]), 2.0)
        self.assertAlmostEqual(contest.geomean([1, 4]), 2)


class Errors(unittest.TestCase):
    def test_relative_l2(self):
        self.assertAlmostEqual(contest.output_error(np.float32([3, 4.5]), np.float64([3, 4])), 0.1)

    def test_integers_must_be_equal(self):
        self.assertEqual(contest.output_error(np.int64([1, 2]), np.int64([1, 2])), 0)
        self.assertEqual(contest.output_error(np.int64([1, 3]), np.int64([1, 2])), contest.WRONG)
        self.assertEqual(contest.output_error(np.array([True]), np.array([False])), contest.WRONG)

    def test_not_a_number_is_never_good(self):
        self.assertEqual(contest.output_error(np.float32([np.nan, 1]), np.float32([0, 1])), contest.WRONG)
        self.assertEqual(contest.output_error(np.float32([np.inf]), np.float32([-np.inf])), contest.WRONG)
        self.assertEqual(contest.output_error(np.float32([np.nan, 1]), np.float32([np.nan, 1])), 0)

    def test_shape_and_absence(self):
        self.assertEqual(contest.output_error(np.zeros((1, 2)), np.zeros(2)), contest.WRONG)
        self.assertEqual(contest.worst_error({}, {"y": np.zeros(1)}), contest.WRONG)
        self.assertIsNone(contest.worst_error({"y": np.zeros(1)}, None))

    def test_worst_output_counts(self):
        good, bad = np.float32([1.0]), np.float32([2.0])
        self.assertEqual(contest.worst_error({"a": good, "b": good}, {"a": good, "b": bad}), 0.5)


class Protocol(unittest.TestCase):
    def test_race(self):
        with fake("a") as a, fake("b", 2.0) as b:
            blocks, fallen = contest.race([a, b], rounds=4, block_s=0, rest_s=0)
        self.assertEqual(fallen, {})
        self.assertEqual([len(v) for v in blocks.values()], [4, 4])
        self.assertAlmostEqual(contest.ratio(blocks["b"], blocks["a"])[0], 2)

    def test_renewed_contestants_load_anew_each_round(self):
        with fake("a") as a, fake("b") as b:
            pids = {c.name: c.ask(cmd="pid")["pid"] for c in (a, b)}
            a.prepare({}, engine="good")
            blocks, fallen = contest.race([a, b], rounds=3, block_s=0, rest_s=0, renewed=["a"])
            self.assertEqual((fallen, [len(v) for v in blocks.values()]), ({}, [3, 3]))
            self.assertNotEqual(a.ask(cmd="pid")["pid"], pids["a"])
            self.assertEqual(b.ask(cmd="pid")["pid"], pids["b"])
        with fake("a") as a, self.assertRaisesRegex(contest.ContestError, "bad engine"):
            a.prepare({}, engine="bad")

    def test_refusal_death_silence_and_noise(self):
        with fake("a") as a:
            with self.assertRaisesRegex(contest.ContestError, "no such command"):
                a.ask(cmd="fly")
            with self.assertRaisesRegex(contest.ContestError, "not JSON"):
                a.ask(cmd="noise")
            with self.assertRaisesRegex(contest.ContestError, "status 3"):
                a.ask(cmd="die")
        with fake("b") as b, self.assertRaisesRegex(contest.ContestError, "in time"):
            b.ask(cmd="hang", timeout=0.2)

    def test_one_falls_out_and_the_others_go_on(self):
        with fake("a") as a, fake("b") as b:
            b.proc.kill()
            b.proc.wait()
            blocks, fallen = contest.race([a, b], rounds=3, block_s=0, rest_s=0)
        self.assertEqual(len(blocks["a"]), 3)
        self.assertIn("b", fallen)


class Table(unittest.TestCase):
    def test_every_model_is_complete(self):
        table = models.load()
        names = [m.name for m in table]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 20)
        for m in table:
            self.assertTrue(m.inputs, m.name)
            self.assertLessEqual(set(m.sets), {"demo", "smoke", "bench"})
            if m.source == "wheel":
                self.assertRegex(m.sha256, r"^[0-9a-f]{64}$")
                self.assertTrue(re.fullmatch(r"[\d.]+", m.version))
            for text in m.inputs.values():
                models.parse_input(text)

    def test_inputs_are_seeded_and_in_range(self):
        for m in models.load():
            a, b = models.make_inputs(m), models.make_inputs(m)
            for n, text in m.inputs.items():
                dtype, dims, fill, args = models.parse_input(text)
                self.assertEqual(a[n].shape, dims)
                self.assertEqual(a[n].dtype, np.dtype(models.NUMPY_NAMES[dtype]))
                self.assertTrue(np.array_equal(a[n], b[n]))
                if fill == "int":
                    self.assertTrue(args[0] <= a[n].min() and a[n].max() <= args[1])

    def test_bad_input_text(self):
        for text in ("f32 normal(0,1)", "f33[1] zeros", "f32[1]"):
            with self.assertRaises(ValueError):
                models.parse_input(text)

    def test_saved_inputs_are_read_back(self):
        m = models.select(["silero"])[0]
        with tempfile.TemporaryDirectory() as tmp:
            files = models.save_inputs(m, tmp)
            self.assertEqual(set(files), set(m.inputs))
            self.assertEqual(np.load(files["sr"]).item(), 16000)


class Goals(unittest.TestCase):
    @staticmethod
    def row(model="m", ours=1.0, err=1e-7, ort=1.0, ort_err=1e-7, ov=None, ov_err=1e-7):
        return {"model": model, "threads": 1, "ours_ms": ours, "ours_err": err, "reference": "float64", "error": None,
                "peers": {"ort": {"ms": ort, "err": ort_err}, "openvino": {"ms": ov, "err": ov_err}}}

    def test_best_peer_counts(self):
        self.assertAlmostEqual(bench.best_over_ours(self.row(ours=2, ort=3, ov=1)), 0.5)
        self.assertAlmostEqual(bench.best_over_ours(self.row(ours=2, ort=3)), 1.5)

    def test_a_peer_that_changed_the_arithmetic_does_not(self):
        self.assertAlmostEqual(bench.best_over_ours(self.row(ort=3, ov=1, ov_err=3e-2)), 3)
        # Both bounds must be broken: 10x ours, and 1e-4.
        self.assertAlmostEqual(bench.best_over_ours(self.row(ort=3, ov=1, ov_err=9e-5)), 1)
        self.assertAlmostEqual(bench.best_over_ours(self.row(ort=3, ov=1, err=1e-2, ov_err=3e-2)), 1)

    def test_each_goal_can_be_missed(self):
        self.assertTrue(all(met for _, met in bench.judge([self.row()])))
        bad = {"runs": [self.row(), self.row("b", ours=None)],
               "geometric": [self.row(ort=0.8)],
               "worst": [self.row(ort=9), self.row("b", ort=0.5)],
               "silero": [self.row("silero", ort=0.97), self.row(ort=3)],
               "error": [self.row(err=3e-6)]}
        for word, rows in bad.items():
            missed = [text for text, met in bench.judge(rows) if not met]
            self.assertEqual(len(missed), 1, word)
            self.assertIn(word, missed[0])


class Counting(unittest.TestCase):
    GOOD = "[==========] 3 test(s) run.[  PASSED  ] 2 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n"
    BAD = ("[  PASSED  ] 2 test(s).\n[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] dims_fold\n\n"
           " 1 FAILED TEST(S)\n")

    def count(self, rc, out):
        t = check.count_program("p", rc, out)
        return t.passed, t.failed, t.skipped

    def test_cmocka(self):
        self.assertEqual(self.count(0, self.GOOD), (2, 0, 1))
        self.assertEqual(self.count(1, self.BAD), (2, 1, 0))
        self.assertEqual(check.count_program("p", 1, self.BAD).failures, ["p: dims_fold"])

    def test_a_crash_is_a_failure(self):
        self.assertEqual(self.count(-11, ""), (0, 1, 0))
        self.assertEqual(self.count(1, self.GOOD), (2, 1, 1))     # a leak reported after all cases passed

    def test_plain_lines(self):
        self.assertEqual(self.count(1, "x\nlint: 4 passed, 2 failed, 1 skipped\n"), (4, 2, 1))
        self.assertEqual(self.count(0, "no summary at all\n"), (1, 0, 0))
        out = "FAIL budget: 9.1 s\nlint: 4 passed, 1 failed, 1 skipped\n"
        self.assertEqual(check.count_program("p", 1, out).failures, ["p: budget: 9.1 s"])


class Conformance(unittest.TestCase):
    def test_the_list_must_match_both_ways(self):
        got = {"a": ("pass", ""), "b": ("fail", "wrong"), "c": ("skip", "strings")}
        self.assertEqual(conformance.judge(got, {"b": "x", "c": "y"}, True), [])
        self.assertEqual(len(conformance.judge(got, {"c": "y"}, True)), 1)               # b is not listed
        self.assertEqual(len(conformance.judge(got, {"a": "x", "b": "x", "c": "y"}, True)), 1)   # a passes
        self.assertEqual(len(conformance.judge(got, {"b": "x", "c": "y", "d": "z"}, True)), 1)   # no case d

    def test_a_list_only_shrinks(self):
        self.assertEqual(conformance.growth("l", ["", "a\tx\nb\tx\n", "a\tx\n", ""]), [])
        self.assertEqual(len(conformance.growth("l", ["a\tx\n", "a\tx\nb\tx\n"])), 1)
        self.assertEqual(len(conformance.growth("l", ["a\tx\n", "", "a\tx\n"])), 1)     # emptied and filled again
        self.assertEqual(len(conformance.growth("l", ["a\tx\nb\ty\n", "a\tx\n", "a\tx\nb\ty\n"])), 1)

    def test_ways_make_one_verdict(self):
        self.assertEqual(conformance.worst([("plain", "pass", ""), ("all", "fail", "off")]), ("fail", "all: off"))
        self.assertEqual(conformance.worst([("plain", "skip", "s"), ("all", "skip", "s")]), ("skip", "s"))
        self.assertEqual(conformance.worst([("plain", "crash", "c"), ("all", "fail", "f")]), ("crash", "plain: c"))

    def test_list_needs_reasons(self):
        self.assertEqual(conformance.expected("# note\n\na\tstrings\n"), {"a": "strings"})
        for text in ("a\n", "a\t \n", "a\tx\na\ty\n"):
            with self.assertRaises(SystemExit):
                conformance.expected(text)


def sanitized(kernel, outcome="OK"):
    return ("========= COMPUTE-SANITIZER\n" + (f"========= Invalid __global__ read of size 4 bytes\n=========     at {kernel}+0x100\n" if kernel else "")
            + f"[       {outcome} ] a\n========= ERROR SUMMARY: {1 if kernel else 0} errors\n")


class GpuVerdicts(unittest.TestCase):
    def test_a_case_by_its_own_line(self):
        self.assertEqual(verdicts.of_case(0, "[       OK ] a\n", "a"), ("pass", ""))
        self.assertEqual(verdicts.of_case(0, "    skipped: no GPU\n[  SKIPPED ] a\n", "a"), ("skip", "no GPU"))
        self.assertEqual(verdicts.of_case(0, "[       OK ] b\n", "a")[0], "fail")    # another case ran
        self.assertEqual(verdicts.of_case(1, "x.c:3: off\n[  FAILED  ] a\n", "a"), ("fail", "x.c:3: off"))
        self.assertEqual(verdicts.of_case(124, "", "a"), ("fail", "ended with status 124"))

    def test_the_sanitizer_judges_our_kernels(self):
        self.assertEqual(verdicts.of_sanitized_case(0, sanitized(""), "a"), ("pass", ""))
        self.assertEqual(verdicts.of_sanitized_case(9, sanitized("hn_kernel"), "a")[0], "fail")
        self.assertEqual(verdicts.of_sanitized_case(9, sanitized("cutlass"), "a"), ("pass", "(found in libraries: cutlass+0x100)"))
        self.assertEqual(verdicts.of_sanitized_case(9, sanitized("cutlass", "FAILED"), "a")[0], "fail")
        self.assertEqual(verdicts.of_sanitized_case(0, "[       OK ] a\n", "a")[0], "fail")     # it did not watch


class Requirements(unittest.TestCase):
    def test_every_package_is_pinned(self):
        for f in (ROOT / "bench" / "requirements").glob("*.txt"):
            for line in f.read_text().splitlines():
                self.assertRegex(line, r"^[\w-]+==[\w.]+$", f.name)


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    bad = len(result.failures) + len(result.errors)
    print(f"bench: {result.testsRun - bad - len(result.skipped)} passed, {bad} failed, {len(result.skipped)} skipped")
    sys.exit(1 if bad else 0)
