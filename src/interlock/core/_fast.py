"""Frozen dataclasses without their constructors, which cost more than a transition has to spend.

`but(value, field=…)` is dataclasses.replace; `moved` the same for what has versions: the next one.
`made(kind, field=…)` is `kind(field=…)`; what is not given is the default, which the class itself holds.
`differing(old, new)` are the names of the fields that are not the very same objects in both.
"""

from __future__ import annotations

from itertools import compress, repeat
from operator import is_not
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import replace as but  # so that the type checker knows the fields
    from dataclasses import replace as moved

    def made(kind: Callable[P, T], *args: P.args, **fields: P.kwargs) -> T:
        return kind(*args, **fields)

else:

    def but(value: Any, **changes: Any) -> Any:
        copy = object.__new__(type(value))
        _set(copy, "__dict__", {**value.__dict__, **changes})
        return copy

    def moved(value: Any, **changes: Any) -> Any:
        return but(value, version=value.version + 1, **changes)

    def made(kind: Any, **fields: Any) -> Any:
        value = object.__new__(kind)
        _set(value, "__dict__", fields)
        return value

    _set = object.__setattr__


_NOTHING = object()


def changed_fields(old: object, new: object) -> set[str]:
    """Of frozen dataclasses of one kind. What is not among them is equal; what is may be equal all the same."""
    was, now = old.__dict__, new.__dict__
    names = [*now]
    if names[: len(was)] == [*was]:  # as `but` leaves them: side by side, what was not given before at the end
        moved = set(compress(names, map(is_not, now.values(), was.values())))
        moved.update(names[len(was) :])
        return moved
    moved = set(compress(names, map(is_not, now.values(), map(was.get, names, repeat(_NOTHING)))))
    return moved | (was.keys() - now.keys())


__all__ = ["but", "changed_fields", "made", "moved"]
