"""Linear's filters, as far as the stand-in knows them. One that it does not know is refused, never passed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from interlock.core.ports import Shelf
from interlock.demo.linear.things import ONE, Thing, found, refused, shown

Filter = Mapping[str, Any]


def fits(shelf: Shelf, thing: Thing, wanted: Filter) -> bool:
    """Documented: all conditions of a filter have to hold, and one of those below `or`."""
    return all(_holds(shelf, thing, name, condition) for name, condition in wanted.items() if condition is not None)


def _holds(shelf: Shelf, thing: Thing, name: str, condition: Any) -> bool:
    if name == "and":
        return all(fits(shelf, thing, part) for part in condition)
    if name == "or":
        return any(fits(shelf, thing, part) for part in condition)
    if name in ONE:
        return _related_holds(shelf, thing.get(name), ONE[name], condition)
    if name not in KNOWN:
        raise refused(f"The demo's stand-in for Linear does not filter by {name}.")
    value = shown(shelf, thing, name)
    return all(_compared(how, value, other) for how, other in condition.items())


def _related_holds(shelf: Shelf, related: str | None, kind: str, condition: Filter) -> bool:
    """Documented: `null: true` holds where there is none; every other condition needs one."""
    rest = {name: part for name, part in condition.items() if name != "null"}
    if (null := condition.get("null")) is not None and (related is None) is not null:
        return False
    if not rest:
        return True
    return related is not None and fits(shelf, found(shelf, kind, related), rest)


def _compared(how: str, value: Any, other: Any) -> bool:
    if how not in COMPARISONS:
        raise refused(f"The demo's stand-in for Linear does not compare by {how}.")
    if how == "null":
        return (value is None) is bool(other)
    return value is not None and COMPARISONS[how](value, other)


KNOWN = frozenset(
    (
        "active",
        "archivedAt",
        "body",
        "color",
        "createdAt",
        "description",
        "displayName",
        "email",
        "endsAt",
        "id",
        "isGroup",
        "isMe",
        "key",
        "name",
        "number",
        "priority",
        "startsAt",
        "title",
        "type",
        "updatedAt",
    )
)
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, other: bool(value == other),
    "neq": lambda value, other: bool(value != other),
    "in": lambda value, other: value in other,
    "nin": lambda value, other: value not in other,
    "eqIgnoreCase": lambda value, other: value.casefold() == other.casefold(),
    "contains": lambda value, other: other in value,
    "containsIgnoreCase": lambda value, other: other.casefold() in value.casefold(),
    "startsWith": lambda value, other: value.startswith(other),
    "gt": lambda value, other: value > other,
    "gte": lambda value, other: value >= other,
    "lt": lambda value, other: value < other,
    "lte": lambda value, other: value <= other,
    "null": lambda value, other: (value is None) is other,
}
