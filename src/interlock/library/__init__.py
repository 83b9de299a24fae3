"""The object that people import, over a database or a server. Loaded on first use: a hook needs a part of it only."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.library.interlock import ASK, Interlock

__all__ = ["ASK", "Interlock"]  # noqa: PLE0604, RUF100  as in the package itself


def __getattr__(name: str) -> Any:
    if name not in ("ASK", "Interlock"):
        raise AttributeError(f"module 'interlock.library' has no attribute {name!r}")
    return getattr(import_module("interlock.library.interlock"), name)
