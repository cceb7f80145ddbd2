# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Describes the machine, and measures other load during a run."""
import os
import platform
import resource
import time

SPIN_CHUNKS = 16
SPIN_LOOPS = 20000


def cpus():
    """Returns the first and the last processor, which datperf --bind uses."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


def describe():
    model = ""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {
        "processor": model or platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "settings": {k: v for k, v in sorted(os.environ.items())
                     if k.startswith(("FI_", "DAT_OFI_", "UCX_"))},
    }


def _chunk():
    start = time.perf_counter()
    x = 0
    for i in range(SPIN_LOOPS):
        x += i
    return time.perf_counter() - start


def spin():
    """Returns the seconds that a fixed loop takes on average, on the slower of the processors used."""
    usable = os.sched_getaffinity(0)
    means = []
    try:
        for cpu in cpus():
            os.sched_setaffinity(0, {cpu})
            means.append(sum(_chunk() for _ in range(SPIN_CHUNKS)) / SPIN_CHUNKS)
    finally:
        os.sched_setaffinity(0, usable)
    return max(means)


def _busy():
    """Returns the processor seconds of all processes, and of other guests of a virtual machine's host, since boot."""
    with open("/proc/stat", encoding="utf-8") as f:
        user, nice, system, _, _, _, _, steal = (int(word) for word in f.readline().split()[1:9])
    return (user + nice + system + steal) / os.sysconf("SC_CLK_TCK")


def _ours():
    return sum(usage.ru_utime + usage.ru_stime for usage in (
        resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


class Watch:
    """Context of a run that measures other load. The run must reap its processes inside."""

    def __enter__(self):
        self.noise = {"spin_us": spin() * 1e6, "load": os.getloadavg()[0]}
        self._start = time.monotonic(), _busy(), _ours()
        return self

    def __exit__(self, *_):
        start, busy, ours = self._start
        seconds = time.monotonic() - start
        foreign = (_busy() - busy) - (_ours() - ours)
        self.noise["seconds"] = seconds
        self.noise["foreign"] = max(0.0, foreign / seconds)


class Unwatched:
    """Context of a run with figures that do not depend on other load."""

    noise = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass
