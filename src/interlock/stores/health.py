"""What a database says of itself, for `interlock doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """`todo` says what to do about it; empty where there is nothing to do."""

    state: State
    what: str
    found: str
    todo: str = ""
