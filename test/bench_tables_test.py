# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From samples to tables in contrib/bench: statistics, the judgement on noise, Markdown, curves."""
import os
import pathlib
import sys
import unittest
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(os.environ.get("top_srcdir", "."), "contrib")))

from benchlib import draw, report, stats  # noqa: E402


def one_run(rnd, dat, bare, spin=100.0, foreign=0.0, **more):
    """A run with one figure of DAT and some of bare libfabric, {queue: value}."""
    sides = [("dat", dat)] + [(f"bare {queue}", value) for queue, value in bare.items()]
    return {"session": more.get("session", 0), "round": rnd,
            "libfabric": "1.17", "fabric": "ofi-tcp", "run": "",
            "noise": {"spin_us": spin, "foreign": foreign, "load": 0.1, "seconds": 1.0},
            "samples": [stats.sample(side, more.get("metric", "latency"), "send", 8, value)
                        for side, value in sides]}


def document(runs):
    rows = stats.rows(runs)
    return {"machine": {"processor": "P", "processors": 2, "kernel": "6"},
            "builds": {"DAT": {"directory": "/b", "commit": "abc", "optimised": True}}, "ucx": None,
            "runs": runs, "skipped": [], "failures": [], "rows": rows,
            "verdict": stats.verdict(runs, rows)}


class Rows(unittest.TestCase):
    def row(self, runs):
        rows = stats.rows(runs)
        self.assertEqual(len(rows), 1)
        return rows[0]

    def test_the_floor_is_the_better_queue(self):
        row = self.row([one_run(r, 12, {"none": 8, "fd": 10}) for r in range(3)])
        self.assertEqual((row["bare"]["cq"], row["bare"]["median"], row["dat/bare"]), ("none", 8, 1.5))
        row = self.row([one_run(r, 12, {"none": 8, "fd": 10}, metric="bandwidth") for r in range(3)])
        self.assertEqual((row["bare"]["cq"], row["dat/bare"]), ("fd", 1.2))

    def test_a_ratio_is_of_one_round(self):
        # the machine becomes slower with each round, for both sides
        row = self.row([one_run(r, 2.0 * s, {"none": s}) for r, s in enumerate((1, 2, 4))])
        self.assertEqual(row["dat/bare"], 2.0)
        row = self.row([one_run(0, 2, {"none": 1}), one_run(1, 30, {"none": 10}), one_run(2, 12, {"none": 3})])
        self.assertEqual(row["dat/bare"], 3.0)

    def test_a_ratio_is_of_one_run_if_that_has_both_sides(self):
        # a round has a run for each queue, and the machine was slower in the run of the worse
        # queue
        runs = []
        for r in range(2):
            runs += [one_run(r, 10, {"none": 5}), one_run(r, 30, {"fd": 25})]
        self.assertEqual(self.row(runs)["dat/bare"], 2.0)

    def test_a_ratio_without_a_common_round(self):
        runs = [one_run(0, 10, {}), one_run(1, 10, {})]
        runs[1]["samples"][0]["side"] = "ucx"
        runs[1]["samples"][0]["value"] = 4
        self.assertEqual(self.row(runs)["dat/ucx"], 2.5)

    def test_medians_and_quartiles(self):
        row = self.row([one_run(r, v, {"none": 10}) for r, v in enumerate((10, 12, 14, 16, 99))])
        self.assertEqual((row["dat"]["median"], row["dat"]["low"], row["dat"]["high"]), (14, 10, 99))
        self.assertAlmostEqual(row["dat"]["spread"], 4 / 14)
        self.assertFalse(row["unsteady"])

    def test_a_bare_figure_that_spreads_is_unsteady(self):
        for bare, unsteady in (((10, 14, 18), True), ((10, 10.5, 11), False)):
            row = self.row([one_run(r, 10, {"none": v}) for r, v in enumerate(bare)])
            self.assertEqual(row["unsteady"], unsteady)

    def test_disturbed_runs_are_left_out(self):
        runs = [one_run(r, 10, {"none": 8}) for r in range(3)]
        for noise in ({"spin": 200.0}, {"spin": 50.0}, {"foreign": 1.0}):
            row = self.row(runs + [one_run(3, 90, {"none": 80}, **noise)])
            self.assertEqual((row["dat"]["high"], row["dat"]["samples"]), (10, 3))
            self.assertFalse(row["unsteady"])

    def test_a_session_has_its_own_speed(self):
        runs = [one_run(r, 10, {"none": 8}) for r in range(3)]
        runs += [one_run(r, 10, {"none": 8}, session=1, spin=200.0) for r in range(2)]
        row = self.row(runs)
        self.assertEqual((row["dat"]["samples"], row["unsteady"]), (5, False))
        self.assertFalse(document(runs)["verdict"]["noisy"])

    def test_disturbed_runs_are_kept_if_most_are(self):
        runs = [one_run(0, 10, {"none": 8})] + [one_run(r, 10, {"none": 8}, foreign=1.0) for r in (1, 2)]
        row = self.row(runs)
        self.assertEqual(row["dat"]["samples"], 3)
        self.assertTrue(row["unsteady"])

    def test_ucx_is_compared_with_one_buffer(self):
        runs = [one_run(r, 10, {"none": 8}) for r in range(2)]
        for rnd in range(2):
            runs.append(one_run(rnd, 10, {}))
            runs[-1]["samples"] = [stats.sample(side, "latency", "send", 8, v)
                                   for side, v in (("dat1", 6), ("ucx", 5))]
        row = self.row(runs)
        self.assertEqual((row["dat/ucx"], row["dat1"]["median"], row["dat/bare"]), (1.2, 6, 1.25))
        text = report.markdown(document(runs))
        self.assertIn("| DAT, one buffer | UCX | DAT/UCX |", text)

    def test_before_and_others_have_their_ratios(self):
        runs = [one_run(r, 10, {"none": 8}) for r in range(2)]
        for rnd in range(2):
            runs.append(one_run(rnd, 10, {}))
            runs[-1]["samples"] = [stats.sample(side, "latency", "send", 8, v)
                                   for side, v in (("before", 20), ("ucx", 5), ("ofed", 4))]
        row = self.row(runs)
        self.assertEqual((row["dat/before"], row["dat/ucx"], row["dat/ofed"]), (0.5, 2.0, 2.5))


class Verdict(unittest.TestCase):
    def verdict(self, runs):
        return document(runs)["verdict"]

    def test_quiet(self):
        self.assertFalse(self.verdict([one_run(r, 10, {"none": 8}) for r in range(5)])["noisy"])

    def test_other_work(self):
        runs = [one_run(r, 10, {"none": 8}, foreign=0.9 if r < 2 else 0) for r in range(5)]
        self.assertEqual(self.verdict(runs)["reasons"], ["other work disturbed 40% of the runs"])

    def test_unsteady_rows(self):
        runs = [one_run(r, 10, {"none": 8 + 4 * r}) for r in range(5)]
        self.assertEqual(self.verdict(runs)["reasons"], ["100% of the rows are unsteady"])

    def test_speed(self):
        runs = [one_run(r, 10, {"none": 8}, spin=100 if r % 2 else 129) for r in range(6)]
        self.assertEqual(self.verdict(runs)["reasons"], ["the speed of the processors changes by 25%"])

    def test_counts_do_not_depend_on_the_machine(self):
        runs = [one_run(r, 10, {"none": 8}) for r in range(3)]
        for r in range(9):
            runs.append({**one_run(r, 10, {}, metric="instructions"), "noise": None})
        self.assertFalse(self.verdict(runs)["noisy"])
        runs[0]["noise"]["foreign"] = 1.0
        self.assertEqual(self.verdict(runs)["reasons"], ["other work disturbed 33% of the runs"])


class Output(unittest.TestCase):
    def test_a_row(self):
        text = report.markdown(document([one_run(r, 12, {"none": 8, "fd": 10}) for r in range(3)]))
        self.assertIn("### Latency of a program that polls, µs: libfabric 1.17", text)
        self.assertIn("| ofi-tcp | send | 8 B | 8.00 | 12.0 | 1.50 |\n", text)
        self.assertTrue(text.endswith("**machine quiet: other work disturbed 0% of the runs, 0% of the rows are "
                                      "unsteady, the speed of the processors changes by 0%**\n"))

    def test_the_summary_has_a_line_for_each_fabric(self):
        runs = [{**one_run(r, 9, {"none": 9}), "libfabric": "2.1"} for r in range(3)]
        runs += [one_run(r, 12, {"none": 8}) for r in range(3)]
        runs += [one_run(r, 30, {}, metric="wait") for r in range(3)]
        self.assertEqual(report.summary(document(runs)["rows"]).splitlines()[2:],
                         ["| ofi-tcp | 1.17 | 12.0 (1.50) | - | - | 30.0 | - | - | - |",
                          "| ofi-tcp | 2.1 | 9.00 (1.00) | - | - | - | - | - | - |"])

    def test_noise_is_the_last_line(self):
        text = report.markdown(document([one_run(r, 12, {"none": 8 + 4 * r}) for r in range(3)]))
        self.assertIn("| 1.00 ~ |", text)
        self.assertEqual(text.splitlines()[-1], "**machine too noisy: 100% of the rows are unsteady**")

    def test_failures_and_skipped_fabrics(self):
        d = document([one_run(0, 12, {})])
        d["skipped"] = [{"libfabric": "1.17", "fabric": "ofi-verbs", "reason": "no device"},
                        {"libfabric": "2.1", "fabric": "ofi-rxm", "reason": "not there"}]
        d["failures"] = [{"libfabric": "2.1", "fabric": "ofi-shm", "run": "dat -S 8", "reason": "broke"}]
        text = report.markdown(d)
        self.assertIn("\n\n* ofi-verbs with libfabric 1.17: no device\n"
                      "* ofi-rxm with libfabric 2.1: not there\n", text)
        self.assertIn("**FAILED**: ofi-shm with libfabric 2.1, `dat -S 8`: broke", text)

    def test_names(self):
        self.assertEqual([report.size_name(s) for s in (8, 4000, 4096, 65536, 1 << 20)],
                         ["8 B", "4000 B", "4 KiB", "64 KiB", "1 MiB"])
        self.assertEqual([report.number(v) for v in (0.1234, 9.876, 98.76, 12345.6)],
                         ["0.123", "9.88", "98.8", "12,346"])

    def test_curves(self):
        runs = [one_run(r, 12, {"none": 8}) for r in range(3)]
        for r, size in ((3, 4096), (4, 1 << 20)):
            runs.append(one_run(r, 100, {"none": 80}))
            for s in runs[-1]["samples"]:
                s["size"] = size
        picture = xml.fromstring(draw.svg(document(runs)))
        curves = picture.findall("{*}polyline")
        self.assertEqual([len(c.get("points").split()) for c in curves], [3, 3])
        # a slower side is higher up in a latency panel, and the y axis points down
        bare, dat = ([float(p.split(",")[1]) for p in c.get("points").split()] for c in curves)
        self.assertTrue(all(d < b for d, b in zip(dat, bare)))

    def of_connections(self):
        runs = [one_run(r, 12, {}, metric="memory") for r in range(2)]
        for s in runs[0]["samples"] + runs[1]["samples"]:
            s["test"] = "client"
        runs[1]["samples"][0].update(size=1000, value=3)
        return document(runs)

    def test_a_row_of_many_connections(self):
        text = report.markdown(self.of_connections())
        self.assertIn("| fabric | test | connections | bare", text)
        self.assertIn("| ofi-tcp | client | 8 | - | 12.0 | - |\n"
                      "| ofi-tcp | client | 1,000 | - | 3.00 | - |\n", text)

    def test_curves_over_connections(self):
        picture = xml.fromstring(draw.svg(self.of_connections()))
        self.assertEqual([len(c.get("points").split()) for c in picture.findall("{*}polyline")], [2])
        words = [t.text for t in picture.findall("{*}text")]
        self.assertLess({"1,000", "memory: ofi-tcp, libfabric 1.17", "KiB per connection", "connections"},
                        set(words))

    def test_a_picture_of_sends(self):
        d = document([one_run(r, 12, {}) for r in range(2)])
        d["rows"] = [{**d["rows"][0], "size": size} for size in (4000, 4096)]
        d["verdict"].update(noisy=True, reasons=["music"])
        picture = xml.fromstring(draw.svg(d))
        at = {t.text: float(t.get("x")) for t in picture.findall("{*}text")}
        self.assertLess({"send, polling: ofi-tcp, libfabric 1.17", "latency, µs", "message size",
                         "machine too noisy: music"}, set(at))
        self.assertGreater(at["4 KiB"] - at["4000 B"], 50)

    def test_nothing_measured(self):
        d = document([])
        self.assertIsNotNone(xml.fromstring(draw.svg(d)))
        self.assertIn("machine quiet", report.markdown(d))


if __name__ == "__main__":
    unittest.main()
