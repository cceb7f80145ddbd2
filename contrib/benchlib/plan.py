# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Plans the runs: fabrics, metrics, order and time."""
import collections
import random
import re
import sys
import time

from . import machine
from .programs import Failed
from .stats import sample

# bare: None if datperf --raw finds the fabric below the IA, else arguments of --raw-only. ucx: the
# corresponding transports of UCX. many: whether many connections are measured. tcp: whether messages
# are compared with those of a TCP connection.
Fabric = collections.namedtuple("Fabric", "name bare ucx local quick many tcp",
                                defaults=(None, None, False, False, False, False))

FABRICS = (
    # Between processes of one host ofi uses shared memory instead of the fabric that it is opened
    # on.
    Fabric("ofi", bare=("--provider", "shm", "--endpoint", "rdm"), ucx="posix,cma", local=True, quick=True,
           many=True),
    Fabric("ofi-shm", ucx="posix,cma", local=True, quick=True, many=True),
    Fabric("ofi-shm-rdm", ucx="posix,cma", local=True),
    Fabric("ofi-tcp", ucx="tcp", quick=True, many=True, tcp=True),
    Fabric("ofi-rxm"),
    Fabric("ofi-tcp-rdm"),
    Fabric("ofi-verbs"),
    Fabric("ofi-sockets"),
    Fabric("ofi-sockets-rdm"),
)
# Deprecated; on few processors they measure only the scheduler (datperf(1), BUGS).
ON_REQUEST = ("ofi-sockets", "ofi-sockets-rdm")

LATENCY_SIZES = (8, 4000, 4096, 65536, 1 << 20)
BANDWIDTH_SIZES = (512, 4096, 65536, 1 << 20)
RATE_SIZE = 8

# One run of datperf: the metrics that are kept, and the arguments. rotate: successive messages use
# different buffers, as in many programs, and as in all earlier tables.
Shape = collections.namedtuple("Shape", "metrics tests sizes more rotate", defaults=(True,))
POLLING = ("latency", "bandwidth", "rate")
SHAPES = (
    Shape(POLLING, "send", "8,512,4000,4K,64K,1M", ()),
    Shape(POLLING, "write,read,mpi", "8,4K,64K,1M", ()),
    Shape(("wait",), "send", "8,4000,4K,64K,1M", ("--wait",)),
    Shape(("wait",), "write,read", "8,4K", ("--wait",)),
)
# ucx_perftest uses one buffer, so DAT with one buffer ("dat1") is compared with it.
ONE_BUFFER = {
    "send": Shape(POLLING, "send", "8,512,4000,4K,64K,1M", (), False),
    "rdma": Shape(POLLING, "write,read", "8,4K,64K,1M", (), False),
}
# Messages stay in the cache, as in many other bandwidth benchmarks.
SHAPE_LOCAL = Shape(("bandwidth2",), "send", "4K,64K,1M", ("--window", "2"))

# Numbers of connections, and the metric and test of each figure of datperf --peers.
CONNECTIONS = (1, 10, 100, 1000)
CONNECTION_FIGURES = {
    "connect_per_s": ("connect", "all"),
    "client_kib": ("memory", "client"),
    "server_kib": ("memory", "server"),
    "empty_us": ("empty", "all"),
    "first_us": ("among", "first"),
    "last_us": ("among", "last"),
    "close_ms": ("close", "all"),
}

UCX_TESTS = {  # test: latency, bandwidth
    "send": ("tag_lat", "tag_bw"),
    "write": ("ucp_put_lat", "ucp_put_bw"),
    "read": ("ucp_get", None),
}
# On tcp UCX emulates RDMA by messages that wait for the peer's progress: 1 ms for a read of 8
# bytes.
UCX_TESTS_TCP = ("send",)
MEGABYTE = 1.048576  # UCX's megabyte, in datperf's


def shapes(fabric):
    return SHAPES + ((SHAPE_LOCAL,) if fabric.local else ())


def samples_of_cell(metrics, side, test, size, cell):
    """Yields the samples of one cell of datperf's output for the metrics of a shape."""
    rate = cell["bw_MBps"] / size
    figures = {
        "latency": (cell["lat_us"], size in LATENCY_SIZES),
        "wait": (cell["lat_us"], size in LATENCY_SIZES),
        "bandwidth": (cell["bw_MBps"], size in BANDWIDTH_SIZES),
        "bandwidth2": (cell["bw_MBps"], size in BANDWIDTH_SIZES),
        "rate": (rate, size == RATE_SIZE and test == "send"),
    }
    for metric in metrics:
        value, wanted = figures[metric]
        if wanted and value > 0:
            yield sample(side, metric, test, size, value)


def samples_of_datperf(shape, side, out):
    """Returns the samples of a run of datperf; side is the name of its DAT side."""
    samples = []
    cq = out.get("raw_cq")
    for point in out["results"]:
        for name, cell in ((side, point.get("dat")), (f"bare {cq}", point.get("raw"))):
            # Without a wait object bare libfabric polled, so it has no figure for waiting.
            if cell and not (name == "bare none" and "wait" in shape.metrics):
                samples += samples_of_cell(shape.metrics, name, point["test"], point["size"], cell)
    return samples


def samples_of_peers(side, out):
    """Returns the samples of a run of datperf --peers; the size is the number of connections."""
    return [sample(side, metric, test, row["connections"], row[name])
            for row in out["peers"] for name, (metric, test) in CONNECTION_FIGURES.items() if row[name] > 0]


def ucx_iterations(transports, size, time_ms):
    guess_us = 10 + size / 2000 if transports == "tcp" else 0.4 + size / 8000
    return max(20, int(time_ms * 1000 / guess_us))


def ucx_batch(transports, time_ms):
    """Returns {label: arguments} of all tests of UCX; a label is metric:test:size."""
    tests = {}
    for test, (latency, bandwidth) in UCX_TESTS.items():
        if transports == "tcp" and test not in UCX_TESTS_TCP:
            continue
        wanted = [("latency", latency, s) for s in LATENCY_SIZES if test == "send" or s != 4000]
        if bandwidth:
            wanted += [("bandwidth", bandwidth, s) for s in BANDWIDTH_SIZES if test == "send" or s != 512]
        if test == "send":
            wanted.append(("rate", bandwidth, RATE_SIZE))
        for metric, name, size in wanted:
            n = ucx_iterations(transports, size, time_ms)
            tests[f"{metric}:{test}:{size}"] = f"-t {name} -s {size} -n {n} -w {n // 10 + 4}"
    return tests


def samples_of_ucx(lines):
    """Returns the samples of a result of Ucx.perf. Like datperf, halves round trips except for reads."""
    samples = []
    for label, columns in lines.items():
        metric, test, size = label.split(":")
        value = {
            "latency": columns["50.0_percentile_lat"],
            "bandwidth": columns["overall_bw"] * MEGABYTE,
            "rate": columns["overall_mr"] / 1e6,
        }[metric]
        if value > 0:
            samples.append(sample("ucx", metric, test, int(size), value))
    return samples


def samples_of_tcp(tcp, time_ms):
    """Returns the samples of messages over a TCP connection, for the rows of MPI messages."""
    return [sample("tcp", "latency", "mpi", size, tcp.latency(size, time_ms))
            for size in LATENCY_SIZES if size != 4000]


def samples_of_figures(lines):
    """Returns the samples of the output of figures.sh: dapltest -T P in the guest, on two providers."""
    samples = []
    waits = False
    for line in lines:
        head = re.match("a program that (polls|waits)", line)
        found = re.match(r"(R[WR]) +(\d+) +(\d+) in flight +([\d.]+) +([\d.]+) (us|MiB/s)", line)
        if head:
            waits = head.group(1) == "waits"
        if not found or (waits and found.group(6) == "MiB/s"):
            continue
        test = {"RW": "write", "RR": "read"}[found.group(1)]
        metric = "bandwidth" if found.group(6) == "MiB/s" else "wait" if waits else "latency"
        scale = MEGABYTE if metric == "bandwidth" else 1
        for side, value in (("ofed", found.group(4)), ("dat", found.group(5))):
            samples.append(sample(side, metric, test, int(found.group(2)), float(value) * scale))
    return samples


class Session:
    """All runs of one call of contrib/bench."""

    def __init__(self, options, build, before, ucx, tcp):
        self.options = options
        self.builds = [("dat", build)] + ([("before", before)] if before else [])
        self.ucx = ucx
        self.tcp = tcp
        self.runs, self.failures, self.skipped = [], [], []
        self.deadline = time.monotonic() + options.minutes * 60

    def log(self, text):
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    def record(self, lib, fabric, rnd, what, measure, counted=False):
        """Runs measure() and records its samples or its failure. Counts are independent of other load."""
        watch = machine.Unwatched() if counted else machine.Watch()
        try:
            with watch as seen:
                samples = measure()
        except Failed as e:
            self.failures.append({"libfabric": lib.version, "fabric": fabric.name, "run": what,
                                  "reason": str(e)})
            self.log(f"{fabric.name}, {what}: {e}")
            return
        self.runs.append({"session": 0, "round": rnd, "libfabric": lib.version, "fabric": fabric.name,
                          "run": what, "noise": seen.noise, "samples": samples})

    def datperf(self, lib, fabric, rnd, build, shape, side, more):
        """Runs datperf; side is the name of its DAT side, or None to measure bare libfabric only."""
        arguments = ["--bind", "-T", str(self.options.time), "-t", shape.tests, "-S", shape.sizes,
                     *(["--rotate"] if shape.rotate else []), *shape.more, *more]
        if side:
            arguments += ["-D", fabric.name]
        what = " ".join([side or "bare", *arguments])
        self.record(lib, fabric, rnd, what,
                    lambda: samples_of_datperf(shape, side, build.perf(lib, *arguments)))

    def peers(self, lib, fabric, rnd, build, side):
        arguments = ["--bind", "-T", str(self.options.time), "-D", fabric.name,
                     "--peers", ",".join(map(str, CONNECTIONS))]
        self.record(lib, fabric, rnd, " ".join([side, *arguments]),
                    lambda: samples_of_peers(side, build.perf(lib, *arguments)))

    def steps(self, lib, fabric, with_descriptor):
        """Returns the runs of a round, as functions of its number."""
        steps = []

        def add(build, shape, side, *more):
            steps.append(lambda rnd: self.datperf(lib, fabric, rnd, build, shape, side, more))

        now = self.builds[0][1]
        for shape in shapes(fabric):
            waits = "wait" in shape.metrics
            queues = ([] if waits else ["none"]) + (["fd"] if with_descriptor else [])
            for queue in queues:
                if fabric.bare:
                    add(now, shape, None, "--raw-only", *fabric.bare, "--raw-cq", queue)
                else:
                    add(now, shape, "dat", "--raw", "--raw-cq", queue)
            if fabric.bare or not queues:
                add(now, shape, "dat")
            for side, build in self.builds[1:]:
                add(build, shape, side)
        if fabric.many:
            steps += [lambda rnd, build=build, side=side: self.peers(lib, fabric, rnd, build, side)
                      for side, build in self.builds]
        if self.ucx and fabric.ucx:
            for tests, shape in ONE_BUFFER.items():
                if tests == "send" or fabric.ucx != "tcp":
                    add(now, shape, "dat1")
            batch = ucx_batch(fabric.ucx, self.options.time)
            steps.append(lambda rnd: self.record(
                lib, fabric, rnd, f"ucx {fabric.ucx}",
                lambda: samples_of_ucx(self.ucx.perf(fabric.ucx, batch))))
        if self.tcp and fabric.tcp:
            steps.append(lambda rnd: self.record(lib, fabric, rnd, "qperf tcp_lat",
                                                 lambda: samples_of_tcp(self.tcp, self.options.time)))
        return steps

    def probe(self, lib, fabric):
        """Returns whether the fabric's CQs have descriptors; None if the fabric is not available."""
        try:
            arguments = ["-S", "8", "-t", "send", "-n", "8", "--raw-cq", "fd"]
            if fabric.bare:
                self.builds[0][1].perf(lib, "-D", fabric.name, "-S", "8", "-t", "send", "-n", "8")
                arguments += ["--raw-only", *fabric.bare]
            else:
                arguments += ["--raw", "-D", fabric.name]
            return self.builds[0][1].perf(lib, *arguments)["raw_cq"] == "fd"
        except Failed as e:
            self.skipped.append({"libfabric": lib.version, "fabric": fabric.name, "reason": str(e)})
            return None

    def fabric(self, lib, fabric, with_descriptor, until):
        """Runs the rounds of a fabric, at least two, until time is up."""
        steps = self.steps(lib, fabric, with_descriptor)
        begin = time.monotonic()
        for rnd in range(self.options.repeat):
            took = (time.monotonic() - begin) / max(1, rnd)
            if rnd >= 2 and time.monotonic() + took > until:
                break
            self.log(f"libfabric {lib.version}, {fabric.name}, "
                     f"round {rnd + 1} of at most {self.options.repeat}")
            # The order differs in each round, so that no run always follows the same run, but is
            # reproducible.
            for step in random.Random(rnd).sample(steps, len(steps)):
                step(rnd)

    def instructions(self, lib):
        fabric = next(f for f in FABRICS if f.name == "ofi-tcp")
        for side, build in self.builds:
            self.log(f"libfabric {lib.version}, counting instructions, {side}")
            self.record(lib, fabric, 0, f"instructions {side}",
                        lambda side=side, build=build: [
                            sample(side, "instructions", f"send, DAT {api}", 8, count)
                            for api, count in build.instructions(lib).items()], counted=True)

    def verbs(self, lib):
        fabric = next(f for f in FABRICS if f.name == "ofi-verbs")
        self.log("verbs in a guest, for up to half an hour")
        self.record(lib, fabric, 0, "verbs", lambda: samples_of_figures(self.builds[0][1].figures()), counted=True)

    def all(self, libs, fabrics, required):
        work = []
        for lib in libs:
            for fabric in fabrics:
                with_descriptor = self.probe(lib, fabric)
                if with_descriptor is not None:
                    work.append((lib, fabric, with_descriptor))
        for name in required:
            if not any(fabric.name == name for _, fabric, _ in work):
                reason = next(s["reason"] for s in self.skipped if s["fabric"] == name)
                raise Failed(f"{name} is not available: {reason}")
        if self.options.instructions:
            for lib in libs:
                self.instructions(lib)
        for i, (lib, fabric, with_descriptor) in enumerate(work):
            left = self.deadline - time.monotonic()
            self.fabric(lib, fabric, with_descriptor, time.monotonic() + left / (len(work) - i))
        if self.options.verbs:
            self.verbs(libs[0])


def select_fabrics(names, quick):
    """Returns the named fabrics, with or without ofi-; without names the default selection."""
    if not names:
        return [f for f in FABRICS if (f.quick or not quick) and f.name not in ON_REQUEST]
    found = []
    for name in names:
        fabric = next((f for f in FABRICS if f.name in (name, f"ofi-{name}")), None)
        if not fabric:
            raise Failed(f"no fabric {name}: there are {', '.join(f.name for f in FABRICS)}")
        found.append(fabric)
    return found
