"""The tool that asks people, on both databases: only a person's answer comes back."""

from __future__ import annotations

import pytest

from interlock.chat.tool import ToolContext, ToolInvocation
from interlock.chat.tools import ask_human
from interlock.core.call import propose
from interlock.core.decision import Acknowledgement, Respond
from interlock.core.errors import InvalidDecision, InvalidRequest, ToolFailed
from interlock.core.outcome import Answered, Waiting
from interlock.core.ports import ApprovalQuery
from interlock.runtime.json_schema import validate
from tests.databases import Database
from tests.support import BOB, Clock, open_services

FORM = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}


def test_it_is_the_question_that_the_doors_know() -> None:  # R37
    (tool,) = ask_human.read_tools(ToolContext("default", None))
    assert (tool.name, tool.spec.effect, tool.spec.decisions) == ("request_human_input", "read", ("respond",))
    assert tool.spec.sentence({"question": "Which colour?"}) == "Which colour?"


async def test_it_is_never_run() -> None:  # R37
    (tool,) = ask_human.read_tools(ToolContext("default", None))
    with pytest.raises(ToolFailed, match="person"):
        await tool.run(ToolInvocation({"question": "Which colour?"}, ""))


@pytest.mark.parametrize(
    ("args", "fits"),
    [
        ({"question": "Which?"}, True),
        ({"question": "Which?", "choices": ["red", "blue"]}, True),
        ({"question": "Which?", "schema": FORM}, True),
        ({}, False),
        ({"question": ""}, False),
        ({"question": "Which?", "choices": "red"}, False),
        ({"question": "Which?", "choices": []}, False),
        ({"question": "Which?", "answer": "red"}, False),
        ({"question": "Which?", "approved": True}, False),
    ],
)
def test_what_can_be_asked(args: dict[str, object], fits: bool) -> None:
    assert (validate(ask_human.SPEC.schema, args) == ()) == fits


@pytest.mark.parametrize(
    ("asked", "answer", "wrong"),
    [
        ({}, "green", None),
        ({"choices": ["red", "blue"]}, "red", "green"),
        ({"schema": FORM}, {"size": 3}, {"size": "x"}),
    ],
)
async def test_a_persons_answer_comes_back(
    database: Database, clock: Clock, asked: dict[str, object], answer: object, wrong: object
) -> None:  # R37
    async with open_services(database, clock) as services:
        call = propose(ask_human.SPEC.name, {"question": "Which?", **asked}, "run", "call")
        waiting = await services.gate.ask(call, ask_human.SPEC)
        assert isinstance(waiting, Waiting)
        seen = Acknowledgement((await services.store.get("default", waiting.approval_id)).approval.args_sha256)
        if wrong is not None:
            with pytest.raises(InvalidDecision):
                await services.inbox.decide("default", waiting.approval_id, Respond("", wrong, seen), BOB)
        await services.inbox.decide("default", waiting.approval_id, Respond("", answer, seen), BOB)
        outcome = await services.gate.ask(call, ask_human.SPEC)
    assert isinstance(outcome, Answered)
    assert outcome.message == answer


def test_the_guidance_names_the_tool_and_keeps_the_policy() -> None:  # R37
    assert "request_human_input" in ask_human.GUIDANCE
    assert "not permission" in ask_human.GUIDANCE


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"schema": {"type": "colour"}}, "JSON Schema is wrong"),
        ({"schema": {"$ref": "https://example.com/other.json"}}, "JSON Schema is wrong"),
        ({"schema": FORM, "choices": ["red"]}, "not both"),
    ],
)
async def test_a_question_that_nobody_could_answer_is_refused(
    database: Database, clock: Clock, asked: dict[str, object], words: str
) -> None:  # R37
    async with open_services(database, clock) as services:
        call = propose(ask_human.SPEC.name, {"question": "Which?", **asked}, "run", "call")
        with pytest.raises(InvalidRequest, match=words):
            await services.gate.ask(call, ask_human.SPEC)
        assert (await services.inbox.list("default", ApprovalQuery())).items == ()


async def test_a_schema_that_takes_anything_can_be_answered(database: Database, clock: Clock) -> None:  # R37
    async with open_services(database, clock) as services:
        call = propose(ask_human.SPEC.name, {"question": "Which?", "schema": {}}, "run", "call")
        waiting = await services.gate.ask(call, ask_human.SPEC)
        seen = Acknowledgement((await services.store.get("default", waiting.approval_id)).approval.args_sha256)
        await services.inbox.decide("default", waiting.approval_id, Respond("", {"any": "thing"}, seen), BOB)
        assert await services.gate.ask(call, ask_human.SPEC) == Answered({"any": "thing"}, waiting.approval_id)
