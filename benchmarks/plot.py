"""The plot: cycles per second of every participant, one at a time and 32 at once, on a logarithmic axis."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.report import LABELS, peer_title

WIDTH, LEFT, RIGHT, TOP = 900, 250, 70, 86
ROW, BAR = 40, 13
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 } .small { font-size: 12px; fill: #59636e } .ours { font-weight: 600 }
  .paper { fill: #ffffff } .grid { stroke: #d1d9e0 }
  .database .one { fill: #b4bcc4 } .database .many { fill: #838c95 }
  .interlock .one { fill: #6cb0f5 } .interlock .many { fill: #0969da }
  .other .one { fill: #f2b872 } .other .many { fill: #bc6c0f }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .small { fill: #9198a1 } .paper { fill: #0d1117 } .grid { stroke: #3d444d }
    .database .one { fill: #5a636c } .database .many { fill: #8b949e }
    .interlock .one { fill: #1f6feb } .interlock .many { fill: #79c0ff }
    .other .one { fill: #9e5a0c } .other .many { fill: #f0a54a }
  }
"""


@dataclass(frozen=True)
class Bars:
    label: str
    kind: str  # database, interlock, other
    one: float | None
    many: float | None
    missing: str = ""


def draw(figures: Mapping[str, Any]) -> str:
    rows = bars(figures)
    height = TOP + ROW * len(rows) + 46
    scale = Scale([speed for row in rows for speed in (row.one, row.many) if speed])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="title">',
        f'<title id="title">Durable approval cycles per second</title><style>{STYLE}</style>',
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>',
        *heading(),
        *axis(scale, height),
        *(line for number, row in enumerate(rows) for line in draw_row(row, TOP + ROW * number, scale)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class Scale:
    """From whole powers of ten to pixels."""

    def __init__(self, values: Sequence[float]) -> None:
        self.first = math.floor(math.log10(min(values)))
        self.last = math.ceil(math.log10(max(values)))

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def bars(figures: Mapping[str, Any]) -> list[Bars]:
    own = [
        Bars(label.format(LABELS[name]), "database", *(statistics.median(sizes[at]) for at in ("1", "32")))
        for kind, label in (("limits", "{}: insert, update"), ("floors", "{}: Interlock's statements"))
        for name, sizes in figures[kind].items()
    ]
    return own + [peer_bars(peer) for peer in figures["contest"]]


def peer_bars(peer: Mapping[str, Any]) -> Bars:
    kind = "interlock" if peer["name"] == "interlock_gate" else "other"
    if "1" not in peer:
        return Bars(peer_title(peer), kind, None, None, peer["error"])
    one, many = (statistics.median(peer[at]["cycles_per_second"]) for at in ("1", "32"))
    return Bars(peer_title(peer), kind, one, many)


def heading() -> list[str]:
    parts = [
        '<text class="title" x="20" y="30">Durable approval cycles per second</text>',
        '<text class="small" x="20" y="50">Propose, decide, run, finish: each on the disk before the next. '
        "Logarithmic axis, longer is better.</text>",
    ]
    left = WIDTH - 280
    for kind, at in (("database", 0), ("other", 14), ("interlock", 28)):
        for shade, x in (("one", left), ("many", left + 140)):
            parts.append(f'<g class="{kind}"><rect class="{shade}" x="{x + at}" y="20" width="12" height="12"/></g>')
    parts.append(f'<text class="small" x="{left + 48}" y="30">one at a time</text>')
    return [*parts, f'<text class="small" x="{left + 188}" y="30">32 at once</text>']


def axis(scale: Scale, height: int) -> list[str]:
    parts = []
    for power in range(scale.first, scale.last + 1):
        x, bottom = scale.at(10**power), height - 34
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP - 12}" y2="{bottom}"/>')
        parts.append(f'<text class="small" x="{x}" y="{bottom + 18}" text-anchor="middle">{10**power:,}</text>')
    return parts


def draw_row(row: Bars, top: int, scale: Scale) -> list[str]:
    weight = ' class="ours"' if row.kind == "interlock" else ""
    parts = [f'<text{weight} x="{LEFT - 12}" y="{top + BAR + 5}" text-anchor="end">{escape(row.label)}</text>']
    if row.one is None or row.many is None:
        return [*parts, f'<text class="small" x="{LEFT + 6}" y="{top + BAR + 5}">{escape(row.missing[:80])}</text>']
    parts.append(f'<g class="{row.kind}">')
    for place, (shade, speed) in enumerate((("one", row.one), ("many", row.many))):
        y, end = top + place * (BAR + 2), scale.at(speed)
        parts.append(f'<rect class="{shade}" x="{LEFT}" y="{y}" width="{round(end - LEFT, 1)}" height="{BAR}" rx="2"/>')
        parts.append(f'<text class="small" x="{end + 6}" y="{y + BAR - 2}">{round_speed(speed)}</text>')
    return [*parts, "</g>"]


def round_speed(speed: float) -> str:
    return f"{speed:,.0f}" if speed >= 10 else f"{speed:.1f}"
