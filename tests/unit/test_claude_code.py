"""The hook protocol of Claude Code: events in, answers out, without a gate."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.core.canonical import canonical
from interlock.core.errors import InvalidRequest
from interlock.core.outcome import Answered, Finished, Refused, Waiting
from interlock.integrations.claude_code import (
    MAX_MODEL_TEXT,
    HookAnswer,
    HookEvent,
    answer_json,
    denial_reason,
    event_payload,
    make_tool_spec,
    parse_event,
    parse_reads,
)

HOOK_EVENT: dict[str, Any] = {
    "session_id": "s-1",
    "transcript_path": "/tmp/s-1.jsonl",
    "cwd": "/srv/shop",
    "permission_mode": "default",
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "make deploy"},
    "tool_use_id": "toolu_1",
}
ARGS = {"command": "make test"}


def hook_event(**more: Any) -> HookEvent:
    return parse_event(HOOK_EVENT | more)


def test_an_event_is_read() -> None:
    assert hook_event() == HookEvent(
        name="PreToolUse", session="s-1", tool="Bash", args={"command": "make deploy"}, id="toolu_1", cwd="/srv/shop"
    )


# R13
def test_a_sub_agent_is_named_by_its_type_and_the_main_agent_by_none() -> None:
    assert hook_event(agent_id="a-1", agent_type="reviewer").sub_agent == "reviewer"
    assert hook_event(agent_type="reviewer").sub_agent == ""


# R13
def test_calls_that_want_the_same_are_alike_unless_another_agent_makes_them() -> None:
    assert hook_event(tool_use_id="toolu_2").call_digest == hook_event().call_digest
    assert hook_event(tool_input=ARGS).call_digest != hook_event().call_digest
    assert hook_event(agent_id="a-1", agent_type="reviewer").call_digest != hook_event().call_digest


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ([], "no JSON object"),
        (HOOK_EVENT | {"hook_event_name": "Stop"}, "Take it out of the hooks of 'Stop'"),
        (HOOK_EVENT | {"hook_event_name": None}, "no hook_event_name"),
        (HOOK_EVENT | {"session_id": ""}, "no session_id"),
        (HOOK_EVENT | {"tool_name": 7}, "no tool_name"),
        (HOOK_EVENT | {"tool_input": "rm"}, "no tool_input"),
    ],
)
def test_what_is_no_event_about_a_call_is_refused(what: object, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_event(what)


# R34
def test_only_what_is_named_is_a_read() -> None:
    reads = parse_reads("claude-code, mcp__docs__*")
    assert make_tool_spec(hook_event(tool_name="Read"), reads).effect == "read"
    assert make_tool_spec(hook_event(tool_name="mcp__docs__find"), reads).effect == "read"
    assert make_tool_spec(hook_event(tool_name="Read"), ()).effect == ""
    asking = ("Bash", "WebFetch", "WebSearch", "Skill", "KillShell", "mcp__mail__send", "read", "ReadSecret")
    assert {name: make_tool_spec(hook_event(tool_name=name), reads).effect for name in asking} == dict.fromkeys(
        asking, ""
    )
    assert make_tool_spec(hook_event(tool_name="Write"), reads).effect == "write"
    assert make_tool_spec(hook_event(tool_name="Bash"), ("[A-Z]*",)).effect == "", "only * and ? are wildcards"


@pytest.mark.parametrize("text", ["*", "Read,**", "?"])
def test_a_pattern_that_means_every_tool_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="every tool"):
        parse_reads(text)


def test_people_get_a_sentence_and_the_folder() -> None:
    spec = make_tool_spec(hook_event(), ())
    assert spec.sentence(HOOK_EVENT["tool_input"]) == "Run make deploy"
    assert spec.preview is not None
    assert spec.preview({}) == "In the folder /srv/shop"


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        (HookAnswer("allow"), {"permissionDecision": "allow"}),
        (HookAnswer("allow", "why", ARGS), {"permissionDecision": "allow", "updatedInput": ARGS}),
        (HookAnswer("deny", "why"), {"permissionDecision": "deny"}),
        (HookAnswer("ask", "why"), {"permissionDecision": "ask"}),
        (HookAnswer("defer", "why"), {"permissionDecision": "defer"}),
    ],
)
def test_the_answer_before_a_tool_uses_the_fields_of_its_event(answer: HookAnswer, want: dict[str, Any]) -> None:
    reason = {"permissionDecisionReason": "why"} if answer.reason else {}
    assert answer_json("PreToolUse", answer) == {"hookSpecificOutput": {"hookEventName": "PreToolUse"} | want | reason}


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        (HookAnswer("allow"), {"behavior": "allow"}),
        (HookAnswer("allow", "", ARGS), {"behavior": "allow", "updatedInput": ARGS}),
        (HookAnswer("deny", "why"), {"behavior": "deny", "message": "why"}),
        (HookAnswer("defer", "why"), {"behavior": "deny", "message": "why"}),
    ],
)
def test_a_permission_is_answered_by_yes_or_no(answer: HookAnswer, want: dict[str, Any]) -> None:
    output = {"hookEventName": "PermissionRequest", "decision": want}
    assert answer_json("PermissionRequest", answer) == {"hookSpecificOutput": output}


def test_an_event_without_an_answer_gets_none() -> None:
    assert answer_json("PermissionRequest", HookAnswer("ask")) == {}
    assert answer_json("PreToolUse", HookAnswer("")) == {}
    assert answer_json("PostToolUse", HookAnswer("deny")) == {}


# R35
@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Answered("Ask Carol"), "Ask Carol"),
        (Answered({"colour": "green"}), '{"colour": "green"}'),
        (Refused("Not today", "rejected"), "Access denied: Not today"),
        (Finished("succeeded", {"out": "ok"}), '{"out": "ok"}'),
        (Finished("failed", error="exit 2"), "exit 2"),
        (Finished("unknown"), "outcome is unknown"),
        (Waiting("a-1", "running"), "already started"),
    ],
)
def test_the_model_is_told_why_not(outcome: Any, words: str) -> None:
    assert words in denial_reason(outcome, "Bash")


def test_what_the_model_is_told_has_an_end() -> None:
    assert len(denial_reason(Finished("succeeded", "x" * 100_000), "Bash")) == MAX_MODEL_TEXT + 1


def test_how_it_ended_is_kept_in_bounds() -> None:
    assert (
        event_payload(hook_event(hook_event_name="PostToolUse", tool_response={"out": "ok"})).result == b'{"out":"ok"}'
    )
    long = event_payload(hook_event(hook_event_name="PostToolUse", tool_response="x" * 100_000)).result
    assert long is not None
    assert b"100,002 bytes" in long
    assert len(long) < 3_000
    odd = event_payload(hook_event(hook_event_name="PostToolUse", tool_response=float("nan"))).result
    assert odd == canonical("nan")
    failed = hook_event(hook_event_name="PostToolUseFailure", error="exit\x00 2" * 1_000)
    assert event_payload(failed).error == ("exit 2" * 1_000)[:2_000]
    assert event_payload(hook_event(hook_event_name="PostToolUseFailure")).error == "It failed."


def test_an_interrupted_tool_has_an_unknown_outcome() -> None:
    assert hook_event(hook_event_name="PostToolUseFailure", error="stopped", is_interrupt=True).interrupted
    assert hook_event(hook_event_name="PostToolUse", tool_response={"stdout": "", "interrupted": True}).interrupted
    assert not hook_event(hook_event_name="PostToolUse", tool_response={"interrupted": "no"}).interrupted


def test_what_is_told_is_json() -> None:
    assert json.loads(json.dumps(answer_json("PreToolUse", HookAnswer("deny", "né\ud83d\ude00"))))
