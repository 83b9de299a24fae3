"""Decisions of people: approve, edit, respond or reject. The person comes from authentication, never from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Literal, cast, get_args

from interlock.core.canonical import canonical, canonical_args
from interlock.core.errors import InvalidDecision, InvalidRequest, Problem

if TYPE_CHECKING:
    from interlock.core.approval.vote import Delegation

Kind = Literal["approve", "edit", "respond", "reject"]
KINDS: tuple[str, ...] = get_args(Kind)
DIGEST_LENGTH = 64  # characters of a SHA-256 in hexadecimal
MAX_COMMENT = 500
MAX_MESSAGE = 20_000


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What the person saw; without a digest a decision counts only for unedited, harmless arguments."""

    args_sha256: str | None = None
    acknowledged: tuple[str, ...] = ()
    reason: str = ""
    comment: str = ""


NO_ACKNOWLEDGEMENT = Acknowledgement()


@dataclass(frozen=True, slots=True)
class Approve:
    seen: Acknowledgement = NO_ACKNOWLEDGEMENT
    kind: Kind = field(default="approve", init=False)


@dataclass(frozen=True, slots=True)
class Edit:
    """Edit the call; `args` are the changed arguments: an object, or its canonical bytes."""

    args: bytes | Mapping[str, object]
    seen: Acknowledgement = NO_ACKNOWLEDGEMENT
    kind: Kind = field(default="edit", init=False)

    @property
    def data(self) -> bytes:
        return self.args if isinstance(self.args, bytes) else canonical(self.args)


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer instead of running; `answer` is JSON that the question's schema checks, `message` is free text."""

    message: str = ""
    answer: object = None
    seen: Acknowledgement = NO_ACKNOWLEDGEMENT
    kind: Kind = field(default="respond", init=False)


@dataclass(frozen=True, slots=True)
class Reject:
    reason: str = ""
    seen: Acknowledgement = NO_ACKNOWLEDGEMENT
    kind: Kind = field(default="reject", init=False)


Decision = Approve | Edit | Respond | Reject


@dataclass(frozen=True, slots=True)
class Reviewer:
    """A person as authenticated; `via` is their channel; they may vote for those in `delegations_to_me`.

    `credential` is their key or session, `address` their client's address, where known.
    """

    name: str
    role: str = "reviewer"
    _: KW_ONLY
    teams: frozenset[str] = frozenset()
    via: str = "library"
    delegations_to_me: tuple[Delegation, ...] = ()
    credential: str = ""
    address: str = ""

    @property
    def trace(self) -> dict[str, object]:
        """How they were authenticated, for the content of an event."""
        return make_trace(self.via, self.credential, self.address)


def make_trace(via: str, credential: str, address: str) -> dict[str, object]:
    trace: dict[str, object] = {"via": via}
    if credential:
        trace["credential"] = credential
    if address:
        trace["address"] = address
    return trace


FIELDS = frozenset({"kind", "args_sha256", "args", "message", "answer", "reason", "comment", "acknowledged"})


def read_decision(body: object) -> Decision:
    """Parse a decision strictly: `true`, `1`, `"yes"` or a missing kind decide nothing."""
    if not isinstance(body, Mapping):
        raise InvalidDecision("A decision is an object with a kind.", [Problem("", "not an object")])
    unknown = sorted(set(map(str, body)) - FIELDS)
    if unknown:
        raise InvalidDecision(f"Unknown field {unknown[0]!r}.", [Problem(f"/{name}", "unknown") for name in unknown])
    seen = Acknowledgement(
        _text(body, "args_sha256", DIGEST_LENGTH) or None,
        _names(body.get("acknowledged", ())),
        _text(body, "reason", MAX_COMMENT),
        _text(body, "comment", MAX_COMMENT),
    )
    if "args" in body and body.get("kind") != "edit":
        raise InvalidDecision("Only an edit carries arguments. Nothing was decided.", [Problem("/args", "not an edit")])
    match body.get("kind"):
        case "approve":
            return Approve(seen)
        case "edit":
            return Edit(_edited_args(body.get("args")), seen)
        case "respond":
            return _respond(body, seen)
        case "reject":
            return Reject(seen.reason, replace(seen, reason=""))
        case _:
            raise InvalidDecision(f"The kind is one of {', '.join(KINDS)}.", [Problem("/kind", "unknown kind")])


def read_decision_with_digest(body: object) -> Decision:
    """Parse a decision from an interface that shows the arguments: their digest is required."""
    decision = read_decision(body)
    if len(decision.seen.args_sha256 or "") != DIGEST_LENGTH:
        message = (
            "A decision carries args_sha256 of the call as it was seen, which the approval and its card have. "
            "Nothing was decided."
        )
        raise InvalidDecision(message, [Problem("/args_sha256", "missing")])
    return decision


def _edited_args(args: object) -> bytes:
    if not isinstance(args, Mapping):
        raise InvalidDecision("An edit carries the arguments as an object.", [Problem("/args", "not an object")])
    try:
        return canonical_args(args)
    except InvalidRequest as error:
        raise InvalidDecision(error.message, [Problem("/args", error.message)]) from None


def _respond(body: Mapping[str, object], seen: Acknowledgement) -> Respond:
    answer = body.get("answer")
    message = _text(body, "message", MAX_MESSAGE)
    if not message and answer is None:
        raise InvalidDecision("A response carries a message or an answer.", [Problem("/message", "missing")])
    _check_storable(answer, "answer")
    return Respond(message, answer, seen)


def _text(body: Mapping[str, object], name: str, limit: int) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidDecision(f"{name} is a text.", [Problem(f"/{name}", "not a text")])
    if len(value) > limit:
        raise InvalidDecision(f"{name} has more than {limit} characters.", [Problem(f"/{name}", "too long")])
    _check_storable(value, name)
    return value


def _check_storable(value: object, name: str) -> None:
    try:
        canonical(value)
    except InvalidRequest as error:
        raise InvalidDecision(error.message, [Problem(f"/{name}", error.message)]) from None


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise InvalidDecision("acknowledged is a list of finding ids.", [Problem("/acknowledged", "not a list of ids")])
    return tuple(cast(list[str], value))
