"""Times and durations as text: `90s`, `5m`, `2h`, `1d`, `500ms`, RFC 3339; the rules count in milliseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from interlock.core.errors import InvalidRequest

MINUTE = 60_000  # milliseconds, as all times
HOUR = 60 * MINUTE
DAY = 24 * HOUR
UNITS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": 1_000, "ms": 1}
MAX_DURATION = 3_650 * DAY
_DURATION = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")


def parse_duration(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise InvalidRequest(f'"{text[:50]}" is not a duration. Write a number and a unit: 500ms, 90s, 5m, 2h or 1d.')
    milliseconds = int(found[1]) * UNITS[found[2]]
    if milliseconds > MAX_DURATION:
        raise InvalidRequest(f'"{text}" is too long: a duration is at most {format_duration(MAX_DURATION)}.')
    return milliseconds


def format_duration(milliseconds: int) -> str:
    """The inverse of `parse_duration`: in the largest unit that needs no fraction."""
    for unit, size in UNITS.items():
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return "0s"


def parse_time(text: str) -> int:
    """The inverse of `rfc3339`; an offset other than Z is accepted, a missing one is not."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or "T" not in text.upper():
        raise InvalidRequest(f'"{text[:50]}" is not a time. Write it as 2027-01-31T18:00:00Z.')
    return int(moment.timestamp() * 1000)


def rfc3339(moment: int) -> str:
    return f"{_second(moment // 1000)}.{moment % 1000:03d}Z"


@lru_cache(maxsize=1_000)  # times in one response are close together
def _second(second: int) -> str:
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}"


def optional_rfc3339(moment: int | None) -> str | None:
    return None if moment is None else rfc3339(moment)


def parse_rfc3339(text: str) -> int:
    """The inverse of `rfc3339`, in milliseconds."""
    parsed = datetime.fromisoformat(text)
    return int(parsed.timestamp()) * 1000 + parsed.microsecond // 1000


def duration_text(milliseconds: int) -> str:
    """A duration with at most two units: 45s, 4m 12s, 1h 03m, 2d 4h."""
    seconds = max(0, milliseconds) // 1000
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3_600:
        return f"{seconds // 60}m {seconds % 60:02}s"
    if seconds < 86_400:
        return f"{seconds // 3_600}h {seconds % 3_600 // 60:02}m"
    return f"{seconds // 86_400}d {seconds % 86_400 // 3_600}h"
