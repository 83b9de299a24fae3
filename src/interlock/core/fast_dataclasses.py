"""Fast replacements for the constructors of frozen dataclasses, which are too slow for a transition.

`fast_replace(value, field=…)` is dataclasses.replace, `next_version` the same with the version incremented.
`fast_construct(kind, field=…)` is `kind(field=…)`; a field that is not given is read from the class, which holds the
defaults. `changed_fields(old, new)` are the names of the fields that are not the same objects in both.
"""

from __future__ import annotations

from itertools import compress, repeat
from operator import is_not
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import replace as fast_replace  # so that the type checker knows the fields
    from dataclasses import replace as next_version

    def fast_construct(kind: Callable[P, T], /, *args: P.args, **fields: P.kwargs) -> T:
        return kind(*args, **fields)

else:

    def fast_replace(value: Any, **changes: Any) -> Any:
        copy = object.__new__(type(value))
        _set(copy, "__dict__", {**value.__dict__, **changes})
        return copy

    def next_version(value: Any, **changes: Any) -> Any:
        copy = object.__new__(type(value))
        _set(copy, "__dict__", {**value.__dict__, **changes, "version": value.version + 1})
        return copy

    def fast_construct(kind: Any, /, **fields: Any) -> Any:
        value = object.__new__(kind)
        _set(value, "__dict__", fields)
        return value

    _set = object.__setattr__


_MISSING = object()


def changed_fields(old: object, new: object) -> frozenset[str]:
    """Changed fields of two dataclasses of one class; fields not listed are equal, listed ones may be equal too."""
    before, after = old.__dict__, new.__dict__
    names, known = [*after], [*before]
    added = names[len(known) :]
    if names == known + added:  # as `fast_replace` leaves them: in the same order, new ones at the end
        return frozenset([*compress(names, map(is_not, after.values(), before.values())), *added])
    changed = frozenset(compress(names, map(is_not, after.values(), map(before.get, names, repeat(_MISSING)))))
    return changed | (before.keys() - after.keys())


__all__ = ["changed_fields", "fast_construct", "fast_replace", "next_version"]
