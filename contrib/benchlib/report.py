# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Formats the tables in Markdown."""
from .stats import CONNECTION_METRICS, METRICS

TITLES = {
    "latency": "Latency of a program that polls, µs",
    "wait": "Latency of a program that waits, µs",
    "bandwidth": "Bandwidth, MB/s",
    "bandwidth2": "Bandwidth with two messages in flight, MB/s",
    "rate": "Million messages per second",
    "instructions": "Instructions of a send and its completion, in our libraries",
    "connect": "Connections per second, if this many are requested at once",
    "memory": "Memory per connection, with this many connections, KiB",
    "empty": "An empty poll, with this many connections, µs",
    "among": "Latency of 8 B on the first and the last of this many connections, µs",
    "close": "Abrupt close of this many connections, ms",
}
# The columns of a row: title, name of the figure or None, name of the ratio or None.
COLUMNS = (
    ("before", "before", None), ("", None, "dat/before"),
    ("DAT, one buffer", "dat1", None), ("UCX", "ucx", None), ("", None, "dat/ucx"), ("TCP", "tcp", None), ("", None, "dat/tcp"),
    ("OFED", "ofed", None), ("", None, "dat/ofed"),
)
TESTS = ("send", "write", "read", "mpi")
# The columns of the summary, all for sends.
SUMMARY = (
    ("8 B, µs", "latency", 8), ("4 KiB, µs", "latency", 4096), ("64 KiB, µs", "latency", 65536),
    ("8 B waiting, µs", "wait", 8), ("64 KiB, MB/s", "bandwidth", 65536),
    ("1 MiB, MB/s", "bandwidth", 1 << 20), ("8 B, M/s", "rate", 8),
)


def size_name(size):
    for unit, letter in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0:
            return f"{size // unit} {letter}"
    return f"{size} B"


def size_label(metric, size):
    """Returns the label of a size, or of a number of connections."""
    return f"{size:,}" if metric in CONNECTION_METRICS else size_name(size)


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    digits = 3 if value < 1 else 2 if value < 10 else 1
    return f"{value:.{digits}f}"


def figure(cell):
    """Returns a median, and its spread from 2 % on."""
    if not cell:
        return "-"
    text = number(cell["median"])
    return f"{text} ±{50 * cell['spread']:.0f}%" if cell["spread"] >= 0.02 else text


def ratio(value):
    return "-" if value is None else f"{value:.2f}"


def cells(row, columns):
    bare = row.get("bare")
    queue = {"fd": " (fd)", "none": ""}[bare["cq"]] if bare else ""
    line = [row["fabric"], row["test"], size_label(row["metric"], row["size"]), figure(bare) + queue,
            figure(row.get("dat")), ratio(row.get("dat/bare")) + (" ~" if row["unsteady"] else "")]
    for _, name, divided in columns:
        line.append(figure(row.get(name)) if name else ratio(row.get(divided)))
    return line


def used(rows):
    """Returns the columns that are not empty."""
    return [c for c in COLUMNS if any(r.get(c[1] or c[2]) is not None for r in rows)]


def lines_of(lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def brief(row):
    """Returns DAT's figure, and its ratio to bare libfabric's."""
    if not row or "dat" not in row:
        return "-"
    text = number(row["dat"]["median"])
    if row.get("dat/bare") is not None:
        text += f" ({ratio(row['dat/bare'])})"
    return text + (" ~" if row["unsteady"] else "")


def versions(rows):
    """Returns the versions of libfabric, oldest first."""
    return sorted({r["libfabric"] for r in rows}, key=lambda v: [int(n) for n in v.split(".")])


def summary(rows):
    """Returns a table with one line per fabric and version of libfabric."""
    found = {(r["libfabric"], r["fabric"], r["metric"], r["size"]): r for r in rows if r["test"] == "send"}
    lines = [["fabric", "libfabric", *(title for title, _, _ in SUMMARY)],
             ["---"] * 2 + ["---:"] * len(SUMMARY)]
    for version in versions(rows):
        for fabric in dict.fromkeys(f for v, f, _, _ in found if v == version):
            lines.append([fabric, version, *(brief(found.get((version, fabric, metric, size)))
                                             for _, metric, size in SUMMARY)])
    return lines_of(lines)


def table(rows):
    columns = used(rows)
    size = "connections" if rows[0]["metric"] in CONNECTION_METRICS else "size"
    head = ["fabric", "test", size, "bare libfabric", "DAT", "DAT/bare"]
    head += [title or divided.replace("dat", "DAT").replace("ucx", "UCX").replace("tcp", "TCP")
             .replace("ofed", "OFED")
             for title, _, divided in columns]
    lines = [head, ["---"] * 3 + ["---:"] * (len(head) - 3)]
    return lines_of(lines + [cells(r, columns) for r in rows])


def order(row):
    test = TESTS.index(row["test"]) if row["test"] in TESTS else len(TESTS)
    return test, row["size"], row["test"]


def machine_line(document):
    machine = document["machine"]
    text = f"{machine['processor']}, {machine['processors']} processors, Linux {machine['kernel']}"
    for name, build in document["builds"].items():
        text += f"; {name} is {build['commit'] or build['directory']}"
        text += "" if build["optimised"] else " (NOT AN OPTIMISED BUILD)"
    if document.get("ucx"):
        text += f"; UCX {document['ucx']}"
    return text + "."


NOTES = """\
Medians; ± is half the interquartile range. Latencies are half a round trip, of reads the whole. For bare
libfabric the better of its two kinds of completion queue is shown; (fd) is the kind with a descriptor. A
ratio is the median of the ratios of the runs or rounds. Messages rotate through buffers. UCX uses one
buffer, so DAT/UCX divides the column "DAT, one buffer". TCP is half a round trip of a TCP connection.
`~`: the bare figure is unsteady, or other work disturbed the runs."""


def verdict_line(verdict):
    if verdict["noisy"]:
        return "machine too noisy: " + ", ".join(verdict["reasons"])
    return (f"machine quiet: other work disturbed {verdict['disturbed_runs']:.0%} of the runs, "
            f"{verdict['unsteady_rows']:.0%} of the rows are unsteady, "
            f"the speed of the processors changes by {verdict['speed_changes']:.0%}")


def markdown(document):
    parts = [machine_line(document), NOTES, "### Sends over DAT (and the ratio to bare libfabric)",
             summary(document["rows"])]
    fabrics = list(dict.fromkeys(r["fabric"] for r in document["rows"]))
    for version in versions(document["rows"]):
        for metric in METRICS:
            rows = [r for r in document["rows"] if r["libfabric"] == version and r["metric"] == metric]
            if rows:
                rows.sort(key=lambda r: (fabrics.index(r["fabric"]), order(r)))
                parts += [f"### {TITLES[metric]}: libfabric {version}", table(rows)]
    if document["skipped"]:
        parts.append("Skipped:")
        parts.append("\n".join(f"* {s['fabric']} with libfabric {s['libfabric']}: {s['reason']}"
                               for s in document["skipped"]))
    for failure in document["failures"]:
        parts.append(f"**FAILED**: {failure['fabric']} with libfabric {failure['libfabric']}, "
                     f"`{failure['run']}`: {failure['reason']}")
    parts.append(f"**{verdict_line(document['verdict'])}**")
    return "\n\n".join(parts) + "\n"
