"""Linear's filters, as far as the stand-in knows them. One that it does not know is refused, never passed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from interlock.core.ports import ToolItemTransaction
from interlock.demo.linear.things import SINGLE_RELATIONS, Entity, field_value, find_entity, input_error

Filter = Mapping[str, Any]


def matches_filter(shelf: ToolItemTransaction, thing: Entity, wanted: Filter) -> bool:
    """Documented: all conditions of a filter have to hold, and one of those below `or`."""
    return all(
        _condition_holds(shelf, thing, name, condition) for name, condition in wanted.items() if condition is not None
    )


def _condition_holds(shelf: ToolItemTransaction, thing: Entity, name: str, condition: Any) -> bool:
    if name == "and":
        return all(matches_filter(shelf, thing, part) for part in condition)
    if name == "or":
        return any(matches_filter(shelf, thing, part) for part in condition)
    if name in SINGLE_RELATIONS:
        return _related_holds(shelf, thing.get(name), SINGLE_RELATIONS[name], condition)
    if name not in FILTERABLE_FIELDS:
        raise input_error(f"The demo's stand-in for Linear does not filter by {name}.")
    value = field_value(shelf, thing, name)
    return all(_compare(how, value, other) for how, other in condition.items())


def _related_holds(shelf: ToolItemTransaction, related: str | None, kind: str, condition: Filter) -> bool:
    """Documented: `null: true` holds where there is none; every other condition needs one."""
    rest = {name: part for name, part in condition.items() if name != "null"}
    if (null := condition.get("null")) is not None and (related is None) is not null:
        return False
    if not rest:
        return True
    return related is not None and matches_filter(shelf, find_entity(shelf, kind, related), rest)


def _compare(how: str, value: Any, other: Any) -> bool:
    if how not in COMPARISONS:
        raise input_error(f"The demo's stand-in for Linear does not compare by {how}.")
    if how == "null":
        return (value is None) is bool(other)
    return value is not None and COMPARISONS[how](value, other)


FILTERABLE_FIELDS = frozenset(
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
