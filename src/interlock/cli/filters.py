"""From what a person types to the filters of a list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer

from interlock.cli.output import nearest
from interlock.core.approval import STATUSES
from interlock.core.canonical import parse
from interlock.core.errors import InvalidRequest
from interlock.core.ports import Query
from interlock.runtime.durations import parse_duration

PENDING = ("pending",)
Status = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STATUS",
        show_default="pending; all in a search",
        help=f"One of {', '.join(STATUSES)}, or all. Can be given several times.",
    ),
]
Search = Annotated[str, typer.Option(metavar="TEXT", help="With all these words; the last may be a beginning.")]
Person = Annotated[str, typer.Option(metavar="NAME", help="Requested, decided, voted on or edited by them.")]
Arg = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH=VALUE", help="With this argument, as in to=bob or order.total=100. Several: all of them."
    ),
]
Since = Annotated[str, typer.Option(metavar="TIME", help="Made since then: 7d, 2026-01-31 or 2026-01-31T14:00.")]
Until = Annotated[str, typer.Option(metavar="TIME", help="Made before then.")]


@dataclass(frozen=True)
class Given:
    """What was given on the command line; these make a list a search."""

    search: str = ""
    person: str = ""
    arg: Sequence[str] = ()
    since: str = ""
    until: str = ""

    @property
    def is_search(self) -> bool:
        return any((self.search, self.person, self.arg, self.since, self.until))

    def statuses(self, status: Sequence[str]) -> tuple[str, ...]:
        """Who looks for something does not care whether it still waits; who looks at the list wants what waits."""
        if not status:
            return () if self.is_search else PENDING
        return () if "all" in status else tuple(dict.fromkeys(map(_status, status)))

    def query(self, statuses: tuple[str, ...], now: int) -> Query:
        return Query(
            statuses,
            text=self.search,
            person=self.person,
            arguments=tuple(map(_argument, self.arg)),
            since=_moment("--since", self.since, now) or 0,
            until=_moment("--until", self.until, now),
        )


def _status(text: str) -> str:
    if text not in STATUSES:
        raise InvalidRequest(
            f"There is no status {text!r}.{nearest(text, STATUSES)} See: interlock approvals list --help"
        )
    return text


def _argument(text: str) -> tuple[str, object]:
    """The value is JSON if it can be read as such: 5 is a number, "5" in quotation marks a text."""
    path, equals, value = text.partition("=")
    if not path or not equals:
        raise InvalidRequest(f"--arg {text!r} is not PATH=VALUE. Write --arg to=bob or --arg order.total=100.")
    try:
        return path, parse(value)
    except InvalidRequest:
        return path, value


def _moment(option: str, text: str, now: int) -> int | None:
    """A time ago, or a time on the clock of the person who types it."""
    if not text:
        return None
    try:
        if re.fullmatch(r"[0-9]+(ms|s|m|h|d)", text):
            return max(0, now - parse_duration(text))
        return max(0, int(datetime.fromisoformat(text).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest(f"{option} {text!r} is no time. Write 90m, 7d, 2026-01-31 or 2026-01-31T14:00.") from None
