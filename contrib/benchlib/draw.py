# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Draws curves over the message size, and over the number of connections, in SVG."""
import math
from xml.sax.saxutils import escape

from .report import size_label, verdict_line
from .stats import CONNECTION_METRICS

WIDTH, HEIGHT = 260, 190  # of a panel's plot
LEFT, TOP, RIGHT, BOTTOM = 70, 40, 20, 64
HEAD = 44  # the legend, and the verdict on a noisy machine
STYLES = {  # side: legend, colour, dashes
    "bare": ("bare libfabric", "#777777", ""),
    "dat": ("DAT", "#c0392b", ""),
    "before": ("DAT before", "#c0392b", "5,3"),
    "ucx": ("UCX", "#2471a3", "2,2"),
}
# A row of panels: the metric, the test, the title and the unit.
SIZE_PANELS = (("latency", "send", "send, polling", "latency, µs"), ("wait", "send", "send, waiting", "latency, µs"),
               ("bandwidth", "send", "send", "bandwidth, MB/s"))
CONNECTION_PANELS = (("connect", "all", "connecting", "connections/s"), ("memory", "client", "memory", "KiB per connection"),
                     ("empty", "all", "empty poll", "µs"), ("among", "last", "8 B, last of all", "latency, µs"),
                     ("close", "all", "abrupt close of all", "ms"))


def text(x, y, words, anchor="middle", size=11, turned=False, colour="black"):
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}"{turn}>'
            f'{escape(words)}</text>')


def line(x1, y1, x2, y2, colour="#dddddd"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


class Panel:
    """A plot with a logarithmic axis of values. The sizes have equal distances: 4000 B and 4 KiB are apart."""

    def __init__(self, x, y, rows, title, unit):
        self.x, self.y = x + LEFT, y + TOP
        self.rows, self.title, self.unit = rows, title, unit
        self.sizes = sorted({r["size"] for r in rows})
        values = [r[side]["median"] for r in rows for side in STYLES if side in r]
        self.low = math.floor(math.log10(min(values)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values))))

    def at_x(self, size):
        return self.x + WIDTH * (self.sizes.index(size) + 0.5) / len(self.sizes)

    def at_y(self, value):
        return self.y + HEIGHT * (1 - (math.log10(value) - self.low) / (self.high - self.low))

    def axes(self):
        metric, below = self.rows[0]["metric"], self.y + HEIGHT
        yield text(self.x + WIDTH / 2, self.y - 10, self.title, size=12)
        yield text(self.x - 48, self.y + HEIGHT / 2, self.unit, turned=True)
        yield text(self.x + WIDTH / 2, below + 44, "connections" if metric in CONNECTION_METRICS else "message size")
        for power in range(self.low, self.high + 1):
            y = self.at_y(10 ** power)
            yield line(self.x, y, self.x + WIDTH, y)
            yield text(self.x - 6, y + 4, f"{10 ** power:g}", "end")
        lines = 1 if len(self.sizes) < 6 else 2  # more labels would touch
        for i, size in enumerate(self.sizes):
            x = self.at_x(size)
            yield line(x, self.y, x, below)
            yield text(x, below + 14 + 12 * (i % lines), size_label(metric, size), size=10)

    def curves(self):
        for side, (_, colour, dashes) in STYLES.items():
            points = sorted((r["size"], r[side]["median"]) for r in self.rows if side in r)
            coordinates = [f"{self.at_x(s):.1f},{self.at_y(v):.1f}" for s, v in points]
            if len(coordinates) > 1:
                yield (f'<polyline points="{" ".join(coordinates)}" fill="none" stroke="{colour}" '
                       f'stroke-width="2" stroke-dasharray="{dashes}"/>')
            for point in coordinates:
                x, y = point.split(",")
                yield f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>'


def legend(x, y, rows):
    for side, (name, colour, dashes) in STYLES.items():
        if any(side in r for r in rows):
            yield (f'<line x1="{x}" y1="{y}" x2="{x + 24}" y2="{y}" stroke="{colour}" stroke-width="2" '
                   f'stroke-dasharray="{dashes}"/>')
            yield text(x + 30, y + 4, name, "start")
            x += 50 + 7 * len(name)


def svg(document):
    """Draws a column per fabric and version of libfabric, and a row per metric of sends."""
    metrics = [m for m in SIZE_PANELS + CONNECTION_PANELS
               if any((r["metric"], r["test"]) == m[:2] for r in document["rows"])]
    rows = [r for r in document["rows"] if (r["metric"], r["test"]) in [m[:2] for m in metrics]]
    columns = list(dict.fromkeys((r["libfabric"], r["fabric"]) for r in rows))
    step_x, step_y = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM
    parts = list(legend(LEFT, 16, rows))
    if document["verdict"]["noisy"]:
        parts.append(text(LEFT, 38, verdict_line(document["verdict"]), "start", 12, colour="#c0392b"))
    for i, (version, fabric) in enumerate(columns):
        for k, (metric, test, title, unit) in enumerate(metrics):
            some = [r for r in rows if (r["libfabric"], r["fabric"], r["metric"], r["test"])
                    == (version, fabric, metric, test)]
            if some:
                panel = Panel(i * step_x, HEAD + k * step_y, some, f"{title}: {fabric}, libfabric {version}", unit)
                parts += [*panel.axes(), *panel.curves()]
    width, height = max(1, len(columns)) * step_x, HEAD + len(metrics) * step_y
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(parts) + "\n</svg>\n")
