"""The row of an approval as its ledger entries state it, field by field, and differences to the stored row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.core.approval.execute import START_TOKEN_PREFIX
from interlock.core.call import parse_agent_actor
from interlock.core.ledger.event import Stored
from interlock.core.ledger.row_digests import (
    COMPOSITE_FIELDS,
    CREATION_KINDS,
    FIELD_GETTERS,
    field_json,
    result_sha256,
    shown_texts_sha256,
    text_sha256,
)

if TYPE_CHECKING:
    from interlock.core.approval.approval import Approval
    from interlock.core.ledger.chain import Entry

Facts = Mapping[str, Any]
StatedValue = tuple[object, int]  # a value, and the entry that states it


class RowDifference(NamedTuple):
    """A field that differs; `actual` and `expected` are None if the values are private."""

    field: str
    seq: int
    actual: object = None
    expected: object = None

    def __str__(self) -> str:
        if self.field == "binding":
            return "Its row is bound to other arguments than the ledger records."
        if self.actual is None and self.expected is None:
            return f"{self.field} in its row differs from the ledger."
        return f"{self.field} is {_shown(self.actual)} in its row; the ledger says {_shown(self.expected)}."


def _approval_getter(spell: Callable[[Approval], object]) -> Callable[[Stored], object]:
    return lambda stored: spell(stored.approval)


# Words of people, results of tools, and digests: named when they differ, never printed.
PRIVATE_FIELDS = frozenset(
    {"decision.reason", "decision.comment", "error", "result", "sentence", "agent_says", "preview", "alarms"}
    | {"preview_version", "misfits", "args_sha256", "binding", "terms", "subject", "shown"}
)
# Fields of a row that are not the approval's own attributes; a new column of either table is one line here.
ROW_GETTERS: Mapping[str, Callable[[Stored], object]] = {
    **{name: attrgetter(f"approval.subject.{name}") for name in ("tool", "effect", "agent", "thread_id", "requester")},
    **{name: attrgetter(f"approval.subject.{name}") for name in ("run_id", "call_id", "idempotent")},
    "agent_path": lambda s: list(s.approval.subject.agent_path),
    "runner": lambda s: _runner_name(s.approval.lease.runner),
    "window": lambda s: s.approval.deadlines.expires_at - s.approval.created_at - s.approval.terms.expires_in,
    "erased": lambda s: s.approval.erasure and s.approval.erasure.by,
    "sentence": lambda s: text_sha256(s.payload.sentence),
    "agent_says": lambda s: text_sha256(s.payload.agent_says),
    "preview": lambda s: text_sha256(s.payload.preview),
    "preview_version": lambda s: text_sha256(s.payload.preview_version),
    "result": lambda s: result_sha256(s.payload),
    "error": attrgetter("payload.error"),
    "shown": shown_texts_sha256,
}
GETTERS = {**{name: _approval_getter(spell) for name, spell in FIELD_GETTERS.items()}, **ROW_GETTERS}
DATA_FIELDS = frozenset(
    {"status", "binding", "fence", "release_at", "terms", "expires_at", "subject", "tool", "idempotent", "votes"}
)
INITIALLY_EMPTY = (  # empty until an entry states a value
    *("fence", "escalated", "reminded", "asked", "votes", "votes.seats", "editors", "replied", "delegations"),
    *("claimed_by", "release_at", "result", "error", "start_by", "grant_id", *COMPOSITE_FIELDS["decision"]),
    *("deferred", "deferred_until"),
)
NOT_STATED: StatedValue = (None, 0)
# What erasure removes; all other fields are always compared.
ERASED_FIELDS = frozenset(
    {"args_sha256", "alarms", "misfits", "sentence", "agent_says", "preview", "result", "error", "shown"}
    | {"preview_version", "decision.reason", "decision.comment"}
)


class ExpectedRow:
    """The expected row, fed with the entries of one approval in order; unstated fields are not compared."""

    def __init__(self) -> None:
        self.first = 0
        self.has_content = False  # whether its first entry still has its content
        self._edited = 0
        self._stated: dict[str, StatedValue] = {}

    def apply(self, entry: Entry) -> None:
        data: Facts = read_json(entry.data)
        content: Facts | None = None if entry.content is None else read_json(entry.content.decode())
        erased = content is None and bool(entry.digest)
        if entry.kind in CREATION_KINDS:
            self._stated = dict.fromkeys(INITIALLY_EMPTY, (None, entry.seq))
        if entry.kind == "finished_late":  # its fence is the one that a lost runner showed, and no row changed
            return
        for name in DATA_FIELDS.intersection(data):
            self._stated[name] = (data[name], entry.seq)
        step = _HANDLERS.get(entry.kind)
        if step is not None:
            step(self, entry, data, None if erased else content or {})
        for name in data.get("row", ()):
            if content is not None:
                self._set(name, content["row"][name], entry)
            elif name not in data:
                self._drop(name)

    def apply_baseline(self, seq: int, subject: str, terms: str, shown: str) -> None:
        """Apply the baseline entry, which states all approvals open at that time; later entries take precedence."""
        for name, value in (("subject", subject), ("terms", terms), ("shown", shown)):
            known = self._stated.get(name)
            if known is None or known[1] < seq:
                self._stated[name] = (value, seq)
        if self._edited > seq:
            self._stated.pop("shown")

    def differences(self, stored: Stored) -> Iterator[RowDifference]:
        gone = stored.approval.erasure and not self.has_content
        for name, (said, seq) in self._stated.items():
            if gone and name in ERASED_FIELDS:
                continue
            get = GETTERS.get(name)
            found = field_json(stored.approval, name) if get is None else get(stored)
            if found != said and (found or said):  # empty values are equal in every spelling
                yield RowDifference(name, seq) if name in PRIVATE_FIELDS else RowDifference(name, seq, found, said)

    # Statements by kind of entry

    def _begin(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self.first, self.has_content = entry.seq, content is not None
        self._set("created_at", entry.at, entry)
        self._set("agent", parse_agent_actor(entry.actor), entry)
        if "grant" in data:
            self._set("grant_id", data["grant"], entry)
        if content is not None:
            self._set("erased", None, entry)
            self._about(entry, data, content)
        if entry.kind == "allowed":
            self._set("window", 0, entry)
            self._set_decision(entry, data, content, "approve", data.get("granted_by", "policy"))
            self._set("start_by", entry.at, entry)

    def _about(self, entry: Entry, data: Facts, content: Facts) -> None:
        for name in ("run_id", "call_id", "requester", "args_sha256"):
            self._set(name, content.get(name), entry)
        self._set("misfits", content.get("misfits", []), entry)
        if "subject" not in data:
            return  # written before entries stated these
        self._set("agent", content.get("agent"), entry)
        self._set("effect", content.get("effect"), entry)
        self._set("agent_path", content.get("agent_path", []), entry)
        self._set("thread_id", content.get("thread_id", ""), entry)
        self._set("agent_says", content.get("agent_says_sha256"), entry)
        self._set("preview", content.get("preview_sha256"), entry)
        self._set("preview_version", content.get("preview_version_sha256"), entry)
        self._set("sentence", content.get("sentence_sha256"), entry)
        self._set("alarms", content.get("findings", []), entry)

    def _edit(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._set("votes", [], entry)
        self._set("votes.seats", [], entry)
        self._add("editors", entry.actor, entry, once=True)
        self._set("preview", None, entry)
        self._set("misfits", [], entry)
        self._edited = entry.seq
        self._drop("sentence", "alarms", "args_sha256")
        if content is None:
            return
        self._set("args_sha256", content.get("args_sha256"), entry)
        if "sentence_sha256" in content:
            self._set("sentence", content["sentence_sha256"], entry)
            self._set("alarms", content.get("findings", []), entry)

    def _vote(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._add("votes", [entry.actor, data.get("stage"), entry.at], entry)
        if content is None:
            self._stated.pop("votes.seats", None)
        else:
            self._add("votes.seats", [content.get("seat", entry.actor), content.get("via")], entry)

    def _approve(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        if "stage" in data:
            self._vote(entry, data, content)
        edited = bool(self._stated.get("editors", NOT_STATED)[0]) and data.get("by") != "expiry"
        self._set_decision(entry, data, content, "edit" if edited else "approve", entry.actor)
        self._set("start_by", entry.at, entry)

    def _reject(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._set_decision(entry, data, content, "reject", entry.actor)

    def _cancel(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._set_decision(entry, data, content, "cancel", entry.actor)

    def _expire(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._set_decision(entry, data, content, "expire", entry.actor)

    def _respond(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._set_decision(entry, data, content, "respond", entry.actor)
        self._resulted(entry, content)

    def _undo(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._clear_decision(entry)
        self._set("release_at", None, entry)

    def _start(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._set("runner", _runner_name(entry.actor), entry)

    def _finish(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        if content is None:
            self._drop("result", "error")
            return
        self._set("result", content.get("result_sha256"), entry)
        self._set("error", content.get("error"), entry)

    def _resolve(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._resulted(entry, content)
        if content is None:
            self._drop("error")
        else:
            self._set("error", content.get("note") if data.get("status") == "failed" else None, entry)

    def _claim(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._set("claimed_by", entry.actor if entry.kind == "claimed" else "", entry)

    def _ask(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._set("asked", data.get("number"), entry)

    def _reply(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._add("replied", data.get("number"), entry)

    def _escalate(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._set("escalated", data.get("rung"), entry)

    def _remind(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        self._set("reminded", data.get("reminder"), entry)

    def _delegate(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        if "row" not in data:  # written before entries stated it
            self._drop("delegations")

    def _withdraw(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        if "votes" not in data:  # written before entries stated it
            self._drop("votes", "votes.seats", "delegations", "claimed_by")

    def _defer(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        """The start deadline is stored relative to the decision, and moves by the same amount."""
        self._move("deferred", data["by"], entry)
        self._set("deferred_until", entry.at, entry)
        if data.get("start_by") is not None:
            self._move("start_by", data["by"], entry)

    # Helpers

    def _move(self, name: str, by: int, entry: Entry) -> None:
        before: Any = self._stated.get(name, NOT_STATED)[0]
        self._set(name, (before or 0) + by, entry)

    def _set(self, name: str, value: object, entry: Entry) -> None:
        self._stated[name] = (value, entry.seq)

    def _add(self, name: str, value: object, entry: Entry, *, once: bool = False) -> None:
        """Append to the stated value, if it is known."""
        known = self._stated.get(name)
        if known is not None:
            before: Sequence[object] = known[0] or []  # type: ignore[assignment]  # nothing, or a list
            self._set(name, [*before, *([] if once and value in before else [value])], entry)

    def _drop(self, *names: str) -> None:
        for name in names:
            self._stated.pop(name, None)

    def _set_decision(self, entry: Entry, data: Facts, content: Facts | None, kind: str, by: object) -> None:
        self._set("decision.kind", kind, entry)
        self._set("decision.by", by, entry)
        self._set("decision.at", entry.at, entry)
        words = _decision_words(entry.kind, data, content)
        for name in ("via", "reason", "comment"):
            if words is None:
                self._drop(f"decision.{name}")
            else:
                self._set(f"decision.{name}", words.get(name, ""), entry)

    def _clear_decision(self, entry: Entry) -> None:
        for name in COMPOSITE_FIELDS["decision"]:
            self._set(name, None, entry)

    def _resulted(self, entry: Entry, content: Facts | None) -> None:
        if content is None or "result_sha256" not in content:
            self._drop("result")
        else:
            self._set("result", content["result_sha256"], entry)


_HANDLERS: Mapping[str, Callable[[ExpectedRow, Entry, Facts, Facts | None], None]] = {
    "proposed": ExpectedRow._begin,
    "allowed": ExpectedRow._begin,
    "voted": ExpectedRow._vote,
    "edited": ExpectedRow._edit,
    "approved": ExpectedRow._approve,
    "rejected": ExpectedRow._reject,
    "responded": ExpectedRow._respond,
    "expired": ExpectedRow._expire,
    "cancelled": ExpectedRow._cancel,
    "undone": ExpectedRow._undo,
    "delegated": ExpectedRow._delegate,
    "reviewer_removed": ExpectedRow._withdraw,
    "deferred": ExpectedRow._defer,
    "claimed": ExpectedRow._claim,
    "released": ExpectedRow._claim,
    "asked": ExpectedRow._ask,
    "replied": ExpectedRow._reply,
    "escalated": ExpectedRow._escalate,
    "reminded": ExpectedRow._remind,
    "started": ExpectedRow._start,
    "succeeded": ExpectedRow._finish,
    "failed": ExpectedRow._finish,
    "resolved": ExpectedRow._resolve,
}


_scan = json.JSONDecoder().raw_decode


def read_json(text: str) -> Facts:
    """Parse JSON that the program wrote, fast: a million of these are read at once."""
    value, end = _scan(text)
    if end != len(text) or type(value) is not dict:
        raise ValueError("it is not a JSON object")
    return value


def _decision_words(kind: str, data: Facts, content: Facts | None) -> Facts | None:
    """The words of a decision; None if the entry does not hold them."""
    if content is None:
        return None
    if "decision" in content:
        said: Facts = content["decision"]
        return said
    whole = kind in ("rejected", "cancelled") or (kind == "approved" and data.get("by") != "expiry")
    return content if whole else None


def _runner_name(name: str) -> str:
    """A start token whose response was received has the name of a runner."""
    return f"runner:{name.removeprefix(START_TOKEN_PREFIX)}" if name.startswith(START_TOKEN_PREFIX) else name


def _shown(value: object) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"
