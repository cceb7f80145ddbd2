# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From the samples of all runs to the rows of the tables, and whether they can be trusted.

A run is disturbed if other processes had more than FOREIGN of a processor meanwhile, or the spin loop
before it took SPIN longer or shorter than the session's median. Disturbed samples are left out where
enough others are there; the choice does not look at the figure itself. A row is unsteady if disturbed samples
had to be taken, or if the bare figure spreads by more than SPREAD: there is no DAT in that, so the
machine is the cause. The table is too noisy if many runs are disturbed, many rows unsteady, or the
processors change their speed: on a virtual machine with what other guests do, which /proc/stat does not show.
"""
import collections
import statistics

FOREIGN = 0.25  # of one processor
SPIN = 0.3
SPREAD = 0.15
# Limits of a usable table: share of disturbed runs, share of unsteady rows, spread of the spin
# loop.
DISTURBED_RUNS = 1 / 4
UNSTEADY_ROWS = 1 / 3
SPEED = 0.25

# Metrics by name: the unit, and whether a larger figure is better.
METRICS = {
    "latency": ("us", False),
    "wait": ("us", False),
    "bandwidth": ("MB/s", True),
    "bandwidth2": ("MB/s", True),
    "rate": ("M/s", True),
    "instructions": ("", False),
    "connect": ("1/s", True),
    "memory": ("KiB", False),
    "empty": ("us", False),
    "among": ("us", False),
    "close": ("ms", False),
}
# For these metrics the size is the number of connections.
CONNECTION_METRICS = ("connect", "memory", "empty", "among", "close")
KEY = ("libfabric", "fabric", "metric", "test", "size")

Sample = collections.namedtuple("Sample", "run round value disturbed")


def sample(side, metric, test, size, value):
    """Returns one figure of a run, as --json writes it."""
    return {"side": side, "metric": metric, "test": test, "size": size, "value": value}


class Calibration:
    """The results of the spin loops, by session. Each replayed file is a session."""

    def __init__(self, runs):
        spins = collections.defaultdict(list)
        self.watched = [r for r in runs if r["noise"]]
        for run in self.watched:
            spins[run["session"]].append(run["noise"]["spin_us"])
        self.usual_us = {session: statistics.median(s) for session, s in spins.items()}
        self.spread = sum(len(s) * spread(s) for s in spins.values()) / max(1, len(self.watched))

    def disturbed(self, run):
        if not run["noise"]:
            return False
        noise, usual_us = run["noise"], self.usual_us[run["session"]]
        return noise["foreign"] > FOREIGN or abs(noise["spin_us"] - usual_us) > SPIN * usual_us


def spread(values):
    """Returns the interquartile range, relative to the median."""
    if len(values) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / middle if middle else 0.0


def usable(samples):
    """Returns the samples to use, and whether they include disturbed ones."""
    calm = [s for s in samples if not s.disturbed]
    if len(calm) >= 2 and 2 * len(calm) >= len(samples):
        return calm, False
    return samples, len(calm) < len(samples)


def figure(samples):
    values = [s.value for s in samples]
    return {"median": statistics.median(values), "low": min(values), "high": max(values),
            "spread": spread(values), "samples": len(values)}


def medians_by(samples, name):
    groups = collections.defaultdict(list)
    for s in samples:
        groups[getattr(s, name)].append(s.value)
    return {group: statistics.median(values) for group, values in groups.items()}


def ratio(ours, other):
    """Returns the median of the ratios of each run; if no run has both sides, of each round.

    Other load in a run or round affects both sides.
    """
    for name in ("run", "round"):
        a, b = medians_by(ours, name), medians_by(other, name)
        both = [a[group] / b[group] for group in a.keys() & b.keys()]
        if both:
            return statistics.median(both)
    return figure(ours)["median"] / figure(other)["median"]


def floor(sides, larger_is_better):
    """Returns the name of the best configuration of bare libfabric, or None."""
    bare = [name for name in sides if name.startswith("bare ")]
    if not bare:
        return None
    best = max if larger_is_better else min
    return best(sorted(bare), key=lambda n: statistics.median(s.value for s in sides[n]))


def row(key, samples_of):
    """Returns a row of a table; samples_of has a list of samples per side."""
    sides, doubtful = {}, False
    for name, samples in samples_of.items():
        sides[name], some = usable(samples)
        doubtful = doubtful or some
    best = floor(sides, METRICS[key[2]][1])
    result = dict(zip(KEY, key))
    for name in ("dat", "dat1", "before", "ucx", "tcp", "ofed"):
        if name in sides:
            result[name] = figure(sides[name])
    if best:
        result["bare"] = {**figure(sides[best]), "cq": best.split()[1]}
        doubtful = doubtful or result["bare"]["spread"] > SPREAD
    # UCX uses one buffer; earlier documents have no such figure of DAT
    one = "dat1" if "dat1" in sides else "dat"
    for name, ours, other in (("dat/bare", "dat", best), ("dat/before", "dat", "before"),
                              ("dat/ucx", one, "ucx"), ("dat/tcp", "dat", "tcp"),
                              ("dat/ofed", "dat", "ofed")):
        if ours in sides and other in sides:
            result[name] = ratio(sides[ours], sides[other])
    result["unsteady"] = doubtful
    return result


def rows(runs):
    table = collections.defaultdict(lambda: collections.defaultdict(list))
    calibration = Calibration(runs)
    for i, run in enumerate(runs):
        noisy = calibration.disturbed(run)
        for s in run["samples"]:
            key = run["libfabric"], run["fabric"], s["metric"], s["test"], s["size"]
            rnd = run["session"], run["round"]
            table[key][s["side"]].append(Sample(i, rnd, s["value"], noisy))
    return [row(key, sides) for key, sides in table.items()]


def verdict(runs, table):
    """Returns whether the machine was too noisy, and the reasons."""
    calibration = Calibration(runs)
    bad_runs = sum(calibration.disturbed(r) for r in runs) / max(1, len(calibration.watched))
    bad_rows = sum(r["unsteady"] for r in table) / max(1, len(table))
    reasons = []
    if bad_runs > DISTURBED_RUNS:
        reasons.append(f"other work disturbed {bad_runs:.0%} of the runs")
    if bad_rows > UNSTEADY_ROWS:
        reasons.append(f"{bad_rows:.0%} of the rows are unsteady")
    if calibration.spread > SPEED:
        reasons.append(f"the speed of the processors changes by {calibration.spread:.0%}")
    return {"noisy": bool(reasons), "reasons": reasons, "disturbed_runs": bad_runs,
            "unsteady_rows": bad_rows, "speed_changes": calibration.spread}
