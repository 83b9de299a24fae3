"""A call as a program elsewhere proposes it, in any protocol: what it says of itself, and what it is told."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from interlock.core.call import MAX_WORDS, ToolCall, ToolSpec, propose
from interlock.core.errors import Forbidden
from interlock.core.identity import Principal
from interlock.core.outcome import Outcome, Proceed
from interlock.durations import parse_duration
from interlock.inbox import QUESTION
from interlock.shape import outcome_json
from interlock.web.asgi import Answer, Body, Many, encoded
from interlock.workspaces import Doors

ASK = ToolSpec(QUESTION, "read", decisions=("respond",), describe="{question}")  # a question to people


class Proposed(Body):
    """A call that an agent wants to make."""

    tool: str
    args: dict[str, object]
    call_id: str
    run_id: str
    thread_id: str = ""
    agent: str = ""
    agent_path: Many[str] = ()
    initiated_by: str = ""
    priority: Literal["", "low", "medium", "high"] = ""
    expires_in: str = ""
    setting: Literal["chat", "queue", "paused"] = "queue"
    switch: Literal["", "on", "off"] = ""
    schema_: Annotated[dict[str, object] | None, Field(alias="schema")] = None
    description: Annotated[str, Field(max_length=MAX_WORDS)] = ""
    effect: Literal["", "read", "write", "destructive"] = ""
    idempotent: bool = False
    secret: Annotated[Many[str], Field(max_length=100)] = ()
    preview: str | dict[str, object] | list[object] | None = None
    decisions: Many[Literal["approve", "edit", "respond", "reject"]] = ()
    agent_says: str = ""


def call_of(body: Proposed, principal: Principal, doors: Doors) -> ToolCall:
    """Who asked for it is what the agent says, unless its key is for one person only."""
    named = body.initiated_by or principal.on_behalf
    if principal.on_behalf not in ("", named):
        raise Forbidden(f"This key acts for {principal.on_behalf} only; leave initiated_by out.")
    requester = doors.people.get(named)
    return propose(
        body.tool,
        body.args,
        body.run_id,
        body.call_id,
        workspace=doors.workspace,
        agent=body.agent or principal.name,
        agent_path=body.agent_path,
        thread_id=body.thread_id,
        requester=named,
        teams=tuple(sorted(requester.teams)) if requester else (),
        priority=body.priority,
        setting=body.setting,
        switch=body.switch,
        expires_in=parse_duration(body.expires_in) if body.expires_in else None,
        agent_says=body.agent_says,
    )


def spec_of(body: Proposed) -> ToolSpec:
    """What the program claims. Its description is a text about one call: no template, nor part of the definition."""
    preview, description = body.preview, body.description
    return ToolSpec(
        body.tool,
        body.effect,
        body.schema_,
        (lambda _: description) if description else "",
        None if preview is None else lambda _: preview if isinstance(preview, str) else encoded(preview).decode(),
        body.secret,
        body.idempotent,
        decisions=body.decisions,
        declared=True,
    )


def told(outcome: Outcome) -> Answer:
    body = encoded(outcome_json(outcome))
    if isinstance(outcome, Proceed):
        return Answer(200, b'%b,"args":%b}' % (body[:-1], outcome.args))
    return Answer(200, body)
