"""`but(value, field=…)`: dataclasses.replace without running the constructor; transitions are the hot path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import replace as but  # so that the type checker knows the fields
else:

    def but(value: Any, **changes: Any) -> Any:
        copy = object.__new__(type(value))
        copy.__dict__.update(value.__dict__, **changes)
        return copy


__all__ = ["but"]
