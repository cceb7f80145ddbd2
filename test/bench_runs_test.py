# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The runs of contrib/bench: which there are, what is kept of their output, what else the machine did."""
import argparse
import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(os.environ.get("top_srcdir", "."), "contrib")))

from benchlib import machine, plan, programs  # noqa: E402

PROCESSORS = os.sched_getaffinity(0)
SEND = plan.Shape(plan.POLLING, "send", "8,4000,4K", ())
WAITING = plan.Shape(("wait",), "send", "8", ("--wait",))


class Samples(unittest.TestCase):
    CELL = {"lat_us": 2.5, "bw_MBps": 80.0}

    def output(self, cq, size=8):
        point = {"size": size, "test": "send", "dat": self.CELL, "raw": self.CELL}
        return {"raw_cq": cq, "results": [point]}

    def test_of_a_program_that_polls(self):
        found = {(s["side"], s["metric"]): s["value"]
                 for s in plan.samples_of_datperf(SEND, "dat", self.output("none"))}
        self.assertEqual(found, {("dat", "latency"): 2.5, ("dat", "rate"): 10.0,
                                 ("bare none", "latency"): 2.5, ("bare none", "rate"): 10.0})

    def test_each_size_has_its_metrics(self):
        self.assertEqual({s["metric"] for s in plan.samples_of_datperf(SEND, "dat", self.output("fd", 512))},
                         {"bandwidth"})
        self.assertEqual({s["metric"] for s in plan.samples_of_datperf(SEND, "dat", self.output("fd", 4000))},
                         {"latency"})
        self.assertEqual({s["metric"] for s in plan.samples_of_datperf(SEND, "dat", self.output("fd", 4096))},
                         {"latency", "bandwidth"})

    def test_bare_libfabric_that_polls_is_no_floor_of_waiting(self):
        sides = [s["side"] for s in plan.samples_of_datperf(WAITING, "dat", self.output("none"))]
        self.assertEqual(sides, ["dat"])
        sides = [s["side"] for s in plan.samples_of_datperf(WAITING, "dat", self.output("fd"))]
        self.assertEqual(sides, ["dat", "bare fd"])

    def test_of_many_connections(self):
        row = {"connections": 10, "connect_per_s": 900.0, "client_kib": 37.0, "server_kib": 0.0, "empty_us": 0.5,
               "first_us": 8.0, "last_us": 9.0, "close_ms": 2.0}
        found = plan.samples_of_peers("before", {"peers": [row, {**row, "connections": 1000}]})
        self.assertEqual([(s["metric"], s["test"], s["value"]) for s in found[:6]],
                         [("connect", "all", 900.0), ("memory", "client", 37.0), ("empty", "all", 0.5),
                          ("among", "first", 8.0), ("among", "last", 9.0), ("close", "all", 2.0)])
        self.assertEqual([(s["side"], s["size"]) for s in found], [("before", 10)] * 6 + [("before", 1000)] * 6)

    def test_of_ucx(self):
        out = ("x.batch,iterations,50.0_percentile_lat,avg_lat,overall_lat,"
               "avg_bw,overall_bw,avg_mr,overall_mr\n"
               "latency:send:8,20000,0.576,3.392,3.392,2.25,2.25,294792,294792\n"
               "bandwidth:send:4096,20000,0.140,0.565,0.565,13.51,1000.0,1771318,2000000\n"
               "rate:send:8,20000,0.140,0.565,0.565,13.51,13.51,1771318,2000000\n")
        found = plan.samples_of_ucx(dict(programs.ucx_lines(out)))
        self.assertEqual([(s["metric"], s["size"], s["value"]) for s in found],
                         [("latency", 8, 0.576), ("bandwidth", 4096, 1048.576), ("rate", 8, 2.0)])

    def test_ucx_makes_no_rdma_on_tcp(self):
        tests = {label.split(":")[1] for label in plan.ucx_batch("tcp", 10)}
        self.assertEqual(tests, {"send"})
        tests = {label.split(":")[1] for label in plan.ucx_batch("posix,cma", 10)}
        self.assertEqual(tests, {"send", "write", "read"})


    def test_of_the_guest(self):
        """Lines as test/interop/figures.sh prints them."""
        found = plan.samples_of_figures([
            "a program that polls             OFED       ours       ours/OFED",
            "RW       4   1 in flight       2.120      2.500 us      1.18",
            "RR   65536  16 in flight     100.000    200.000 MiB/s   2.00",
            "a program that waits             OFED       ours       ours/OFED",
            "RR    4096   1 in flight       9.000      8.000 us      0.89",
            "RW       4  16 in flight       1.000      2.000 MiB/s   2.00"])
        self.assertEqual([(s["side"], s["metric"], s["test"], s["size"], round(s["value"], 4))
                          for s in found],
                         [("ofed", "latency", "write", 4, 2.12), ("dat", "latency", "write", 4, 2.5),
                          ("ofed", "bandwidth", "read", 65536, 104.8576),
                          ("dat", "bandwidth", "read", 65536, 209.7152),
                          ("ofed", "wait", "read", 4096, 9.0), ("dat", "wait", "read", 4096, 8.0)])


class Plan(unittest.TestCase):
    def test_names_with_and_without_ofi(self):
        self.assertEqual([f.name for f in plan.select_fabrics(["tcp", "ofi-shm", "ofi"], False)],
                         ["ofi-tcp", "ofi-shm", "ofi"])
        with self.assertRaises(programs.Failed):
            plan.select_fabrics(["nosuch"], False)

    def test_default_fabrics(self):
        usual = [f.name for f in plan.select_fabrics([], False)]
        self.assertIn("ofi-rxm", usual)
        self.assertNotIn("ofi-sockets", usual)
        self.assertEqual([f.name for f in plan.select_fabrics([], True)], ["ofi", "ofi-shm", "ofi-tcp"])


class FakeBuild:
    """Stands for a build tree: records the arguments of datperf and returns its results."""

    def __init__(self, queue="fd", failing=""):
        self.queue, self.failing, self.asked = queue, failing, []

    def perf(self, _, *arguments):
        self.asked.append(" ".join(arguments))
        if self.failing and self.failing in self.asked[-1]:
            raise programs.Failed("it broke")
        queue = "none" if "--raw-cq none" in self.asked[-1] else self.queue
        return {"raw_cq": queue, "results": [], "peers": []}

    def instructions(self, _):
        return {"1.2": 246.1, "2.0": 248.1}


class Sessions(unittest.TestCase):
    LIB = argparse.Namespace(version="1.17")

    def session(self, build, before=None, names=("tcp",), ucx=None, tcp=None, **more):
        usual = {"repeat": 2, "time": 1, "minutes": 1, "instructions": False, "verbs": False}
        session = plan.Session(argparse.Namespace(**{**usual, **more}), build, before, ucx, tcp)
        session.log = lambda text: None
        fabrics = plan.select_fabrics(list(names), False)
        with mock.patch.object(machine, "spin", return_value=0.001):
            session.all([self.LIB], fabrics, [f.name for f in fabrics])
        return session

    def asked(self, build, *words):
        """How often datperf was asked for all of these, apart from the probe."""
        return sum(all(w in a for w in words) for a in build.asked if "--bind" in a)

    def test_both_queues_where_there_is_a_descriptor(self):
        build = FakeBuild()
        session = self.session(build)
        self.assertEqual(len(session.runs), 2 * (2 * 2 + 2 + 1))
        self.assertEqual(self.asked(build, "--raw-cq none"), 2 * 2)
        self.assertEqual(self.asked(build, "--wait", "--raw-cq none"), 0)
        self.assertEqual(self.asked(build, "--wait", "--raw-cq fd"), 2 * 2)

    def test_buffers_rotate(self):
        build = FakeBuild()
        self.session(build)
        self.assertEqual(self.asked(build, "--rotate"), self.asked(build, "-S"))
        self.assertGreater(self.asked(build, "-S"), 0)

    def test_one_buffer_beside_ucx(self):
        ucx = mock.Mock()
        ucx.perf.return_value = {}
        for name, runs in (("tcp", 1), ("shm", 2)):
            build = FakeBuild()
            session = self.session(build, names=(name,), ucx=ucx)
            self.assertEqual(self.asked(build, "-S") - self.asked(build, "--rotate"), 2 * runs)
            alone = [r["run"] for r in session.runs if r["run"].startswith("dat1 ")]
            self.assertEqual(len(alone), 2 * runs)
            self.assertNotIn("--rotate", " ".join(alone))

    def test_messages_of_mpi_are_compared_with_a_tcp_connection(self):
        tcp = mock.Mock()
        tcp.latency.side_effect = lambda size, time_ms: 5 + size / 1000
        session = self.session(FakeBuild(), tcp=tcp)
        runs = [r for r in session.runs if r["run"] == "qperf tcp_lat"]
        self.assertEqual(len(runs), 2)
        self.assertEqual({(s["side"], s["metric"], s["test"]) for s in runs[0]["samples"]},
                         {("tcp", "latency", "mpi")})
        self.assertEqual([s["size"] for s in runs[0]["samples"]], [8, 4096, 65536, 1 << 20])
        self.assertEqual(runs[0]["samples"][0]["value"], 5.008)
        other = self.session(FakeBuild(), names=("shm",), tcp=tcp)
        self.assertFalse([r for r in other.runs if r["run"].startswith("qperf")])

    def test_output_of_qperf(self):
        self.assertAlmostEqual(programs.qperf_us("tcp_lat:\n    latency  =  7687 ns\n"), 7.687)
        self.assertAlmostEqual(programs.qperf_us("tcp_lat:\n    latency  =  1,234 us\n"), 1234)
        self.assertRaises(programs.Failed, programs.qperf_us, "tcp_lat:\n")

    def test_one_queue_where_there_is_none(self):
        build = FakeBuild("none")
        self.session(build, names=["shm"])
        self.assertEqual(self.asked(build, "--raw-cq fd"), 0)
        self.assertEqual(self.asked(build, "--raw-cq none"), 2 * 3)
        self.assertEqual((self.asked(build, "--wait"), self.asked(build, "--wait", "--raw")), (2 * 2, 0))

    def test_ofi_is_compared_with_bare_shared_memory(self):
        build = FakeBuild("none")
        self.session(build, names=["ofi"])
        self.assertEqual(self.asked(build, "--raw-only --provider shm --endpoint rdm"), 2 * 3)
        self.assertEqual(self.asked(build, "-D ofi"), 2 * (5 + 1))
        self.assertEqual(self.asked(build, "-D ofi", "--raw"), 0)

    def test_before_runs_without_bare_libfabric(self):
        before = FakeBuild()
        session = self.session(FakeBuild(), before)
        self.assertEqual((self.asked(before), self.asked(before, "--raw")), (2 * (4 + 1), 0))
        self.assertEqual(sum(r["run"].startswith("before ") for r in session.runs), 2 * (4 + 1))
        self.assertEqual(self.asked(before, "--peers 1,10,100,1000", "-D ofi-tcp"), 2)

    def test_many_connections_not_everywhere(self):
        build = FakeBuild()
        self.session(build, names=["rxm"])
        self.assertEqual(self.asked(build, "--peers"), 0)

    def test_two_rounds_at_least(self):
        session = self.session(FakeBuild(), repeat=9, minutes=0)
        self.assertEqual({r["round"] for r in session.runs}, {0, 1})
        session = self.session(FakeBuild(), repeat=4)
        self.assertEqual({r["round"] for r in session.runs}, {0, 1, 2, 3})

    def test_instructions_of_both_versions(self):
        session = self.session(FakeBuild(), FakeBuild(), instructions=True)
        counted = [r for r in session.runs if r["noise"] is None]
        self.assertEqual([(s["side"], s["test"], s["value"]) for r in counted for s in r["samples"]],
                         [("dat", "send, DAT 1.2", 246.1), ("dat", "send, DAT 2.0", 248.1),
                          ("before", "send, DAT 1.2", 246.1), ("before", "send, DAT 2.0", 248.1)])

    def test_a_run_that_fails_is_kept_and_the_session_continues(self):
        session = self.session(FakeBuild(failing="--wait"))
        self.assertEqual((len(session.runs), len(session.failures)), (2 * (4 + 1), 2 * 2))
        self.assertEqual(session.failures[0]["reason"], "it broke")

    def test_a_missing_fabric(self):
        with self.assertRaisesRegex(programs.Failed, "ofi-tcp is not available: it broke"):
            self.session(FakeBuild(failing="-n 8"))


class Machine(unittest.TestCase):
    def test_a_watch_separates_the_work_of_other_processes(self):
        with mock.patch.object(machine, "_busy", side_effect=[10, 14]), \
                mock.patch.object(machine, "_ours", side_effect=[1, 3]), \
                mock.patch.object(machine.time, "monotonic", side_effect=[100, 104]), \
                machine.Watch() as watch:
            pass
        self.assertEqual((watch.noise["seconds"], watch.noise["foreign"]), (4, 0.5))
        self.assertGreater(watch.noise["spin_us"], 0)

    def test_processes_that_were_waited_for_are_ours(self):
        code = "import time\nwhile time.process_time() < 0.4: pass"
        ours, busy = machine._ours(), machine._busy()
        subprocess.run([sys.executable, "-c", code], check=True)
        self.assertGreaterEqual(machine._ours() - ours, 0.35)
        self.assertGreaterEqual(machine._busy() - busy, 0.3)

    def test_the_affinity_is_restored(self):
        machine.spin()
        self.assertEqual(os.sched_getaffinity(0), PROCESSORS)


if __name__ == "__main__":
    unittest.main()
