"""What a channel is asked to tell somebody. Texts of a card are visible ones; a channel escapes for its own sake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from interlock.core.approval.approval import Approval
from interlock.core.card import Card

Purpose = Literal["ask", "escalate", "remind", "changed", "ended", "expired", "woken", "group", "test"]


@dataclass(frozen=True, slots=True)
class Recipient:
    """A person with an address, or a place that many look at; both are empty for the channel's own place."""

    person: str = ""
    email: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """One approval as people see it. `status` is by the clock; `schema` is the tool's, for those who can edit.

    `args` are the arguments as they are shown, canonical, with marks in the place of secrets; `secret` says where these
    are.
    """

    approval: Approval
    status: str
    card: Card
    schema: Mapping[str, object] | None = None
    result: str = ""  # what came of it, in one line; made visible
    args: bytes = b""
    secret: tuple[str, ...] = ()
    declared: bool = False  # only the agent's program says what the tool is

    @property
    def is_open(self) -> bool:
        return self.status == "pending"


@dataclass(frozen=True, slots=True)
class Notification:
    """`id` is the same for every try, `thread` for all messages of one delivery; `link` leads to the page.

    `topic` is missing from a test and from a message for many, of which there are `count`. `by` wanted a test.
    `revised`: the arguments are others than those that were told before.
    """

    id: str
    thread: str
    workspace: str
    purpose: Purpose
    to: Recipient
    link: str
    at: int
    topic: ApprovalView | None = None
    count: int = 0
    by: str = ""
    revised: bool = False
