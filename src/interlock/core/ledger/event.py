"""Events: one immutable past-tense record per change, used for audit, live feed and outbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from interlock.core.errors import Error

if TYPE_CHECKING:
    from interlock.core.approval.approval import Approval
    from interlock.core.grant import Grant

SYSTEM_ACTOR = "interlock"  # the actor of timers


class Event(NamedTuple):
    """An event; `data` is structure and permanent, `content` is what people wrote or saw, and can be erased."""

    kind: str
    actor: str
    data: Mapping[str, object]
    approval_id: str = ""
    content: Mapping[str, object] | None = None


class Payload(NamedTuple):
    """The large and private part of an approval; None leaves the stored value unchanged.

    `preview_version` is of what the preview shows, for the tool to compare when it runs; an edit does not change it.
    """

    args: bytes | None = None
    shown: bytes | None = None
    sentence: str | None = None
    agent_says: str | None = None
    preview: str | None = None
    result: bytes | None = None
    error: str | None = None
    preview_version: str | None = None


class Moment(NamedTuple):
    """The time of a transaction, read after its locks; `is_clock_behind`: before the ledger's last entry."""

    now: int
    is_clock_behind: bool = False


class Stored(NamedTuple):
    """An approval with its payload, read together."""

    approval: Approval
    payload: Payload


T = TypeVar("T")


class Change(NamedTuple, Generic[T]):
    """New state and the events that explain it; `error` is raised after they are stored: refusals are recorded too."""

    state: T
    events: tuple[Event, ...] = ()
    payload: Payload | None = None
    error: Error | None = None
    grant: Grant | None = None
