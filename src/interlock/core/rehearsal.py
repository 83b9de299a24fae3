"""What a draft policy would have done with calls that were made: a rehearsal before it is put in force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from interlock.core.call import ToolCall, ToolSpec

Kind = Literal["allow", "deny", "ask"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call as it was proposed, and what the policy of that time said; a denied one has redacted arguments."""

    call: ToolCall
    spec: ToolSpec
    verdict: Kind
    rule: str
    at: int
    approval_id: str = ""
    sentence: str = ""
