"""One immutable past-tense line per thing that happened: audit, live feed and outbox at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from interlock.core.errors import Error

if TYPE_CHECKING:
    from interlock.core.approval.approval import Approval
    from interlock.core.grant import Grant

SYSTEM_ACTOR = "interlock"  # the actor of what time did by itself


class Event(NamedTuple):
    """`data` is structure and stays for ever; `content` is what people wrote or saw, and can be erased."""

    kind: str
    actor: str
    data: Mapping[str, object]
    approval_id: str = ""
    content: Mapping[str, object] | None = None


class Payload(NamedTuple):
    """The large and the private part of an approval; None leaves what is stored as it is."""

    args: bytes | None = None
    shown: bytes | None = None
    sentence: str | None = None
    agent_says: str | None = None
    preview: str | None = None
    result: bytes | None = None
    error: str | None = None


class Moment(NamedTuple):
    """The time of a transaction, read after its locks. `is_clock_behind`: the clock stands before the ledger's last
    entry.
    """

    now: int
    is_clock_behind: bool = False


class Stored(NamedTuple):
    """An approval with its payload, read together."""

    approval: Approval
    payload: Payload


T = TypeVar("T")


class Change(NamedTuple, Generic[T]):
    """New state and the events that explain it. `error` is raised once they are kept: a refusal is history too."""

    state: T
    events: tuple[Event, ...] = ()
    payload: Payload | None = None
    error: Error | None = None
    grant: Grant | None = None
