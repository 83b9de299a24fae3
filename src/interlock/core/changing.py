"""`but(value, field=…)`: dataclasses.replace without running the constructor; transitions are the hot path.

`moved` is the same for what has versions: the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import replace as but  # so that the type checker knows the fields
    from dataclasses import replace as moved
else:

    def but(value: Any, **changes: Any) -> Any:
        copy = object.__new__(type(value))
        object.__setattr__(copy, "__dict__", {**value.__dict__, **changes})
        return copy

    def moved(value: Any, **changes: Any) -> Any:
        return but(value, version=value.version + 1, **changes)


__all__ = ["but", "moved"]
