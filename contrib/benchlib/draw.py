# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Draws curves over the message size, and over the number of connections, in SVG."""
import math
from xml.sax.saxutils import escape

from .report import size_label

WIDTH, HEIGHT = 260, 190  # of a panel's plot
LEFT, TOP, RIGHT, BOTTOM = 60, 40, 20, 40
STYLES = {  # side: legend, colour, dashes
    "bare": ("bare libfabric", "#777777", ""),
    "dat": ("DAT", "#c0392b", ""),
    "before": ("DAT before", "#c0392b", "5,3"),
    "ucx": ("UCX", "#2471a3", "2,2"),
}
# A row of panels: the metric, the test and the unit.
SIZE_PANELS = (("latency", "send", "µs, polling"), ("wait", "send", "µs, waiting"), ("bandwidth", "send", "MB/s"))
CONNECTION_PANELS = (("connect", "all", "connections/s"), ("memory", "client", "KiB each"),
                     ("empty", "all", "µs, empty poll"), ("among", "last", "µs, 8 B"),
                     ("close", "all", "ms to close"))


def text(x, y, words, anchor="middle", size=11):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
            f'{escape(words)}</text>')


def line(x1, y1, x2, y2, colour="#dddddd"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


class Panel:
    """A plot with logarithmic axes."""

    def __init__(self, x, y, rows, title, unit):
        self.x, self.y = x + LEFT, y + TOP
        self.rows, self.title, self.unit = rows, title, unit
        self.sizes = sorted({r["size"] for r in rows})
        values = [r[side]["median"] for r in rows for side in STYLES if side in r]
        self.low = math.floor(math.log10(min(values)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values))))

    def at_x(self, size):
        low, high = math.log2(self.sizes[0]), math.log2(self.sizes[-1])
        return self.x + WIDTH * ((math.log2(size) - low) / (high - low) if high > low else 0.5)

    def at_y(self, value):
        return self.y + HEIGHT * (1 - (math.log10(value) - self.low) / (self.high - self.low))

    def axes(self):
        yield text(self.x + WIDTH / 2, self.y - 10, f"{self.title}, {self.unit}", size=12)
        for power in range(self.low, self.high + 1):
            y = self.at_y(10 ** power)
            yield line(self.x, y, self.x + WIDTH, y)
            yield text(self.x - 6, y + 4, f"{10 ** power:g}", "end")
        last = -math.inf
        for size in self.sizes:
            x = self.at_x(size)
            yield line(x, self.y, x, self.y + HEIGHT)
            if x - last > 30:  # the labels of 4000 B and 4 KiB would overlap
                yield text(x, self.y + HEIGHT + 16, size_label(self.rows[0]["metric"], size), size=10)
                last = x

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
               if m in SIZE_PANELS or any((r["metric"], r["test"]) == m[:2] for r in document["rows"])]
    rows = [r for r in document["rows"] if (r["metric"], r["test"]) in [m[:2] for m in metrics]]
    columns = list(dict.fromkeys((r["libfabric"], r["fabric"]) for r in rows))
    step_x, step_y = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM
    parts = list(legend(LEFT, 16, rows))
    for i, (version, fabric) in enumerate(columns):
        for k, (metric, test, unit) in enumerate(metrics):
            some = [r for r in rows if (r["libfabric"], r["fabric"], r["metric"], r["test"])
                    == (version, fabric, metric, test)]
            if some:
                panel = Panel(i * step_x, 20 + k * step_y, some, f"{fabric}, libfabric {version}", unit)
                parts += [*panel.axes(), *panel.curves()]
    width, height = max(1, len(columns)) * step_x, 20 + len(metrics) * step_y
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(parts) + "\n</svg>\n")
