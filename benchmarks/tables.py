"""A table, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Table:
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default=())

    def text(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.head))]
        shown = [
            "  ".join(
                cell.rjust(width) if column else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.title, "-" * len(self.title), *shown, *self.notes]) + "\n"

    def markdown(self) -> str:
        ruler = ["---", *["---:" for _ in self.head[1:]]]
        lines = [f"| {' | '.join(line)} |" for line in (self.head, ruler, *self.rows)]
        notes = [f"\n{note}" for note in self.notes]
        return "\n".join([f"## {self.title}", "", *lines, *notes]) + "\n"


def number(value: float) -> str:
    """As many digits as are worth reading."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
