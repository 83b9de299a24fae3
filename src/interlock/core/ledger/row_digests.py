"""Row digests in ledger entries, so that a verifier detects rows that were changed without an entry.

An entry of a known kind explains some fields by itself: an `approved` says who decided and when. All other changes to
the row of an approval are stated as well: `data` names the fields, `content` holds their values, so that they are
erased with the content and cannot be guessed. A new field of `Approval` is stated without a line here, once it differs
from its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from operator import attrgetter
from typing import Any, NamedTuple

from interlock.core.approval.approval import (
    Approval,
    ApprovalDeadlines,
    Discussion,
    Findings,
    Lease,
    TimerProgress,
)
from interlock.core.call import ANY_OWNER, Subject
from interlock.core.canonical import digest, plain_json
from interlock.core.fast_dataclasses import changed_fields
from interlock.core.ledger.event import Change, Event, Payload, Stored

Values = Mapping[str, object]

# The attributes of an approval that an entry of each kind explains by itself. Leases are not recorded.
ALWAYS_EXPLAINED = frozenset({"id", "created_at", "status", "binding", "version", "lease_until", "runner"})
_CREATION_FIELDS = {"subject", "terms", "args_sha256", "expires_at", "alarms", "misfits"}
_ANSWER = {"decision"}
EXPLAINED_FIELDS: Mapping[str, frozenset[str]] = {
    kind: ALWAYS_EXPLAINED | frozenset(attributes)
    for kind, attributes in {
        "proposed": _CREATION_FIELDS,
        "allowed": _CREATION_FIELDS | {"decision", "start_by", "grant_id"},
        "voted": {"votes"},
        "approved": {"votes", "decision", "start_by"},
        "edited": {"terms", "args_sha256", "alarms", "misfits", "votes", "editors"},
        "rejected": {"decision", "release_at"},
        "undone": {"decision", "release_at"},
        "responded": _ANSWER,
        "expired": _ANSWER,
        "cancelled": _ANSWER,
        "claimed": {"claimed_by"},
        "released": {"claimed_by"},
        "asked": {"asked"},
        "replied": {"replied"},
        "reminded": {"reminded"},
        "escalated": {"escalated"},
        "started": {"fence"},
        "succeeded": {"fence"},
        "failed": {"fence"},
        "lost": {"fence"},
        "deferred": {"expires_at", "start_by", "deferred", "deferred_until"},
    }.items()
}
CREATION_KINDS = ("proposed", "allowed")
KINDS_WITHOUT_WORDS = ("allowed", "expired", "responded")  # their contents lack some words of the decision
STATING_KINDS = frozenset(
    {*CREATION_KINDS, *KINDS_WITHOUT_WORDS, "edited", "resolved", "reviewer_removed"}
)  # entries that always state more


def add_row_digests(
    change: Change[Approval], old: Approval | None = None, changed_names: frozenset[str] | None = None
) -> tuple[Event, ...]:
    """The events of a change with their statements about the row; `old` is None for a new approval.

    `changed_names` are the names of the attributes that differ, if they are known already.
    """
    events, new = change.events, change.state
    if not events or new is old:  # a refusal changes no row
        return events
    if changed_names is None:  # of a new one: the values that are not defaults
        changed_names = frozenset(new.__dict__) if old is None else changed_fields(old, new)
    kinds = events[0].kind if len(events) == 1 else tuple([event.kind for event in events])
    rest = _unexplained_fields(kinds, changed_names)
    left = [name for group in rest.groups for name in group.changed(old, new)] if rest.groups else ()
    if not left:  # the kinds of their entries explain most changes
        return _add_digests_by_kind(change) if rest.may_record else events
    left = sorted(left)
    first, *others = _add_digests_by_kind(change)
    return (
        _extend_event(first, {"row": left}, {"row": {name: field_json(new, name) for name in left}}),
        *others,
    )


def subject_sha256(approval: Approval) -> str:
    """Digest of the subject that outlasts erasure; `proposed`, which only the row has, keeps it from being guessed.

    Empty fields are left out, so that a field added later does not change earlier digests; so is the owner that a
    migration gave to older calls.
    """
    s = approval.subject
    call_id = f'["call_id",{quoted(s.call_id)}],' if s.call_id not in LEFT_OUT else ""
    proposed = f'["proposed",{quoted(s.proposed)}],' if s.proposed not in LEFT_OUT else ""
    before, between = _pairs_json(0, s[_BEFORE]), _pairs_json(_BETWEEN.start, s[_BETWEEN])
    pairs = f"{before}{call_id}{between}{proposed}{_pairs_json(_AFTER.start, s[_AFTER])}"
    return digest(f"[{quoted(approval.id)},{approval.created_at},[{pairs[:-1]}]]".encode())


LEFT_OUT = ("", ANY_OWNER)  # values of a subject that its digest does not cover
_CALL_ID, _NONCE, _PROPOSED = map(Subject._fields.index, ("call_id", "nonce", "proposed"))
_BEFORE, _BETWEEN, _AFTER = slice(_CALL_ID), slice(_CALL_ID + 1, _NONCE), slice(_PROPOSED + 1, None)  # other fields


@lru_cache(maxsize=1_000)  # all calls of a run have the same, but for their ids and arguments
def _pairs_json(first: int, values: tuple[object, ...]) -> str:
    """The names and values of consecutive fields of a subject, as JSON pairs with a comma after each."""
    pairs = zip(Subject._fields[first : first + len(values)], values, strict=True)
    return "".join([f"{plain_json(pair)}," for pair in pairs if pair[1] and pair[1] not in LEFT_OUT])


# How an entry spells a field of a row; all others are spelled as they are.
FIELD_GETTERS: Mapping[str, Callable[[Approval], object]] = {
    "decision.kind": lambda a: a.decision and a.decision.kind,
    "decision.by": lambda a: a.decision and a.decision.by,
    "decision.at": lambda a: a.decision and a.decision.at,
    "decision.via": lambda a: a.decision and a.decision.via,
    "decision.reason": lambda a: a.decision and a.decision.reason,
    "decision.comment": lambda a: a.decision and a.decision.comment,
    "votes": lambda a: [[vote.by, vote.stage, vote.at] for vote in a.votes],
    "votes.seats": lambda a: [[vote.on_behalf_of, vote.via] for vote in a.votes],
    "editors": lambda a: list(a.editors),
    "delegations": lambda a: [
        [d.by, sorted(d.teams), d.role, sorted(d.to.users), sorted(d.to.teams)] for d in a.delegations
    ],
    "replied": lambda a: list(a.discussion.replied),
    "alarms": lambda a: list(a.findings.alarms),
    "misfits": lambda a: [str(problem) for problem in a.findings.schema_errors],
    "subject": subject_sha256,
    "terms": lambda a: a.terms.sha256,
    "start_by": lambda a: (
        a.deadlines.start_by and a.deadlines.start_by - a.terms.start_within
    ),  # relative to the decision
}
COMPOSITE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "decision": ("decision.kind", "decision.by", "decision.at", "decision.via", "decision.reason", "decision.comment"),
    "votes": ("votes", "votes.seats"),
}


def shown_texts_sha256(stored: Stored) -> str:
    """Digest of the texts shown beside the arguments; without the nonce no guess can be checked."""
    approval, payload = stored
    texts = [payload.sentence, payload.agent_says, payload.preview]
    return digest(plain_json([approval.subject.nonce, texts, field_json(approval, "alarms")]).encode())


def field_json(approval: Approval, name: str) -> object:
    """A field as JSON gives it back."""
    spelled = FIELD_GETTERS.get(name)
    return spelled(approval) if spelled is not None else to_json_value(_ROW_FIELDS[name].get(approval))


def to_json_value(value: Any) -> object:
    match value:
        case frozenset():
            return sorted(value)
        case tuple():
            return [to_json_value(each) for each in value]
        case _:
            return value


def text_sha256(text: str | None) -> str | None:
    return None if text is None else digest(text.encode())


def result_sha256(payload: Payload) -> str | None:
    return digest(payload.result) if payload.result else None


def _add_digests_by_kind(change: Change[Approval]) -> tuple[Event, ...]:
    """The events with the statements that their kinds always have."""
    events = change.events
    if len(events) == 1:
        return (_add_digests(events[0], change),) if _always_records(events[0]) else events
    return tuple([_add_digests(event, change) if _always_records(event) else event for event in events])


def _always_records(event: Event) -> bool:
    kind = event.kind
    return kind in STATING_KINDS or (kind == "approved" and event.data.get("by") == "expiry")


def _add_digests(event: Event, change: Change[Approval]) -> Event:
    state, payload = change.state, change.payload or Payload()
    data: dict[str, object] = {}
    content: dict[str, object] = {}
    match event.kind:
        case "proposed" | "allowed":
            data = {"subject": subject_sha256(state), "terms": state.terms.sha256}
            content = _creation_content(state, payload)
        case "edited":
            data, content = {"terms": state.terms.sha256}, _card_digests(state, payload)
        case "responded" | "resolved":
            content = {"result_sha256": result_sha256(payload)}
        case "reviewer_removed":
            data = {"votes": field_json(state, "votes")}  # the remaining ones
        case _:
            pass
    if _lacks_content(event):
        content["decision"] = _decision_words(state)
    return _extend_event(event, data, content) if data or content else event


def _lacks_content(event: Event) -> bool:
    return event.kind in KINDS_WITHOUT_WORDS or (event.kind == "approved" and event.data.get("by") == "expiry")


def _creation_content(approval: Approval, payload: Payload) -> dict[str, object]:
    subject = approval.subject
    facts = _card_digests(approval, payload)
    facts["agent"], facts["effect"] = subject.agent, subject.effect
    if subject.agent_path:
        facts["agent_path"] = list(subject.agent_path)
    if subject.thread_id:
        facts["thread_id"] = subject.thread_id
    if payload.agent_says is not None:
        facts["agent_says_sha256"] = text_sha256(payload.agent_says)
    if payload.preview is not None:
        facts["preview_sha256"] = text_sha256(payload.preview)
    if payload.preview_version is not None:
        facts["preview_version_sha256"] = text_sha256(payload.preview_version)
    return facts


def _card_digests(approval: Approval, payload: Payload) -> dict[str, object]:
    card: dict[str, object] = {"sentence_sha256": text_sha256(payload.sentence)}
    if approval.findings.alarms:
        card["findings"] = list(approval.findings.alarms)
    return card


def _decision_words(approval: Approval) -> dict[str, object]:
    d = approval.decision
    words = () if d is None else (("via", d.via), ("reason", d.reason), ("comment", d.comment))
    return {name: value for name, value in words if value}


class RowField(NamedTuple):
    """A field of a row by its name in entries; `path` is where the approval holds it."""

    name: str
    path: str
    get: Callable[[Approval], object]
    default: object


# The values that an approval consists of; entries state their fields one by one.
_GROUPS: Mapping[str, Any] = {
    "deadlines": ApprovalDeadlines,
    "findings": Findings,
    "timers": TimerProgress,
    "lease": Lease,
    "discussion": Discussion,
}


# Names that entries give to these attributes.
_LEDGER_NAMES = {"lease.until": "lease_until", "findings.schema_errors": "misfits"}


def _row_fields() -> Iterator[RowField]:
    for field in fields(Approval):
        group = _GROUPS.get(field.name)
        if group is None:  # a frozen dataclass keeps its defaults in the class
            yield RowField(field.name, field.name, attrgetter(field.name), getattr(Approval, field.name, None))
            continue
        for part in group._fields:
            path = f"{field.name}.{part}"
            yield RowField(_LEDGER_NAMES.get(path, part), path, attrgetter(path), group._field_defaults.get(part))


_ROW_FIELDS = {field.name: field for field in _row_fields()}


class FieldGroup(NamedTuple):
    """Fields of one attribute of an approval; `values` gets all of them."""

    fields: Sequence[RowField]
    values: Callable[[Approval], object]
    defaults: object

    def changed(self, old: Approval | None, new: Approval) -> list[str]:
        if self.values(new) == (self.defaults if old is None else self.values(old)):  # most often
            return []
        return [
            part
            for field in self.fields
            if field.get(new) != (field.default if old is None else field.get(old))
            for part in COMPOSITE_FIELDS.get(field.name, (field.name,))
        ]


class UnexplainedFields(NamedTuple):
    """The fields that no entry of some kinds explains, by attribute.

    `may_record`: an entry of one of the kinds may state more than that.
    """

    groups: tuple[FieldGroup, ...]
    may_record: bool


@lru_cache(maxsize=1_000)  # of the few ways in which changes are made
def _unexplained_fields(kinds: str | tuple[str, ...], changed_names: frozenset[str]) -> UnexplainedFields:
    """The fields of changed attributes that are left to be stated; one kind may be given as it is."""
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    explained = frozenset[str]().union(*(EXPLAINED_FIELDS.get(kind, ALWAYS_EXPLAINED) for kind in kinds))
    left: dict[str, list[RowField]] = {}
    for field in _ROW_FIELDS.values():
        attribute = field.path.partition(".")[0]
        if field.name not in explained and attribute in changed_names:
            left.setdefault(attribute, []).append(field)
    groups = tuple([_field_group(each) for each in left.values()])
    return UnexplainedFields(groups, not STATING_KINDS.isdisjoint(kinds) or "approved" in kinds)


def _field_group(members: Sequence[RowField]) -> FieldGroup:
    defaults = tuple(field.default for field in members)
    values = attrgetter(*(field.path for field in members))
    return FieldGroup(members, values, defaults if len(members) > 1 else defaults[0])


def _extend_event(event: Event, data: Values, content: Values) -> Event:
    kind, actor, facts, approval_id, old_content = event
    return Event(kind, actor, {**facts, **data}, approval_id, {**(old_content or {}), **content})
