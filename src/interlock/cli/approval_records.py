"""Approvals as the commands show them, parsed from the JSON that a database and a server give alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.cli.output import printable
from interlock.core.call import ToolSpec
from interlock.core.card import Card, CardField, Finding
from interlock.core.policy.policy import People, Stage
from interlock.presenters.text import stages_text
from interlock.runtime.durations import parse_rfc3339

JsonObject = Mapping[str, Any]
RISKS = ("high", "medium", "low")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRow:
    """One row of a list; `json` is what --json prints, the status is by the clock."""

    json: JsonObject
    id: str
    tool: str
    agent: str
    status: str
    sentence: str
    risk: str
    args_sha256: str
    version: int
    have: int
    need: int
    created_at: int
    expires_at: int
    release_at: int | None
    start_by: int | None
    decided_by: str

    @property
    def votes_text(self) -> str:
        return f"{self.have} of {self.need}"

    @property
    def urgency(self) -> tuple[int, int]:
        """The place among pending approvals, as in the inbox of the page: by time left in seconds, then by risk."""
        return self.expires_at // 1_000, RISKS.index(self.risk) if self.risk in RISKS else 1


@dataclass(frozen=True, slots=True)
class ApprovalRows:
    """A page of rows, possibly short even with a `next`."""

    items: Sequence[ApprovalRow]
    next: str | None
    is_index_behind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownApproval:
    """One approval in full; `args` have fingerprints in place of secrets, and are None once they were erased."""

    row: ApprovalRow
    card: Card
    args: object
    spec: ToolSpec
    approvers: str
    decisions: tuple[str, ...]
    timeline: Sequence[JsonObject]

    @property
    def json(self) -> JsonObject:
        return self.row.json


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """An approval right after a decision, before its agent could go on."""

    id: str
    status: str
    version: int
    args_sha256: str
    have: int
    need: int
    release_at: int | None
    start_by: int | None


def parse_row(item: JsonObject) -> ApprovalRow:
    decision = item["decision"] or {}
    return ApprovalRow(
        json=item,
        id=item["id"],
        tool=item["tool"],
        agent=item["agent"],
        status=printable(item["status"]),
        sentence=printable(item["sentence"]),
        risk=printable(item["risk"]),
        args_sha256=printable(item["args_sha256"]),
        version=item["version"],
        have=item["quorum"]["have"],
        need=item["quorum"]["need"],
        created_at=parse_rfc3339(item["created_at"]),
        expires_at=parse_rfc3339(item["expires_at"]),
        release_at=_optional_time(item["release_at"]),
        start_by=_optional_time(item["start_by"]),
        decided_by=decision.get("by", ""),
    )


def parse_rows(body: JsonObject) -> ApprovalRows:
    return ApprovalRows([parse_row(item) for item in body["items"]], body["next"], bool(body.get("behind")))


def parse_view(body: JsonObject) -> ShownApproval:
    return ShownApproval(
        row=parse_row(body),
        card=_parse_card(body["card"], body["findings"]),
        args=body["args"],
        spec=ToolSpec(body["tool"], schema=body["schema"], declared=body["declared"]),
        approvers=stages_text([_parse_stage(each) for each in body["stages"]], body["excluded"]),
        decisions=tuple(printable(each) for each in body["decisions"]),
        timeline=body["timeline"],
    )


def parse_decision_result(body: JsonObject) -> DecisionResult:
    return DecisionResult(
        id=body["id"],
        status=body["status"],
        version=body["version"],
        args_sha256=body["args_sha256"],
        have=body["quorum"]["have"],
        need=body["quorum"]["need"],
        release_at=_optional_time(body["release_at"]),
        start_by=_optional_time(body["start_by"]),
    )


def _parse_card(card: JsonObject, findings: Sequence[JsonObject]) -> Card:
    """The texts are escaped where the card is made; here again, since a server is another program."""
    texts = {
        name: printable(card[name])
        for name in ("tool", "sentence", "preview", "agent_description", "agent_preview", "agent_says")
    }
    return Card(
        risk=printable(card["risk"]),
        facts=tuple((printable(fact["label"]), printable(fact["text"])) for fact in card["facts"]),
        fields=tuple(_parse_field(field) for field in card["fields"]),
        findings=tuple(Finding(**{**each, "message": printable(each["message"])}) for each in findings),
        **texts,
    )


def _parse_field(field: JsonObject) -> CardField:
    return CardField(
        pointer=field["pointer"],
        name=printable(field["name"]),
        type=printable(field["type"]),
        text=printable(field["text"]),
        length=field["length"],
        sha256=printable(field["sha256"]),
        findings=tuple(field["findings"]),
    )


def _parse_stage(stage: JsonObject) -> Stage:
    people = stage["approvers"]
    approvers = None if people is None else People(frozenset(people["users"]), frozenset(people["teams"]))
    return Stage(approvers, stage["need"])


def _optional_time(text: str | None) -> int | None:
    return None if text is None else parse_rfc3339(text)
