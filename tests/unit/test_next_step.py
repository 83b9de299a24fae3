"""What a thread needs next follows from its log alone: every situation by hand, then any log that is legal."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.chat.transcript import (
    MISSING_RESULT,
    CallModel,
    EndTurn,
    HandleCalls,
    Idle,
    ModelReply,
    PendingCall,
    PromptMessage,
    PromptUserMessage,
    ThreadStep,
    ToolRequest,
    ToolResult,
    TurnLimits,
    last_reply_text,
    next_step,
    parse_reply,
    prompt_messages,
    read_turn_state,
)
from tests.properties import examples
from tests.unit.builders import NOW
from tests.unit.transcripts import Calm, Log, Simulator


def after(log: Log, limits: TurnLimits = TurnLimits()) -> ThreadStep:  # noqa: B008  frozen
    return next_step(log.lines, limits)


def handled(log: Log) -> dict[str, list[str]]:
    step = after(log)
    assert isinstance(step, HandleCalls), step
    names = {"ask": step.to_propose, "start": step.start, "wait": step.to_await}
    found = {name: [call.tool_request.id for call in calls] for name, calls in names.items() if calls}
    return {**found, "given up": [step.withdrawal]} if step.withdrawal else found


def asked(*calls: str) -> Log:
    return Log().said().replied(*calls)


def test_where_nothing_has_happened_every_count_is_zero() -> None:
    story = read_turn_state([])
    assert (story.calls, story.last_message, story.seen_up_to, story.attempts, story.not_before) == ({}, 0, 0, 0, 0)
    assert (story.turns, story.tokens, story.work_ms) == (0, 0, 0)
    assert (story.replied, story.stopped, story.is_over, story.has_unseen) == (False, False, True, False)
    call = PendingCall(ToolRequest("c1", "pay", "{}"), 2)
    assert (call.approval_id, call.decision, call.child, call.ended) == ("", "", "", False)
    assert MISSING_RESULT == {"success": False, "status": "unknown", "error": "There is no record of a result."}


def test_what_steps_say_is_nothing_but_what_they_are_given() -> None:
    assert CallModel() == (1, 0)
    assert HandleCalls() == ((), (), (), "")
    assert EndTurn("done") == ("done", "")
    assert TurnLimits() == TurnLimits(turns=30, tokens=500_000, work_ms=900_000)


# Turns of the model


def test_nothing_is_to_be_done_where_nothing_was_said() -> None:
    assert next_step([]) == Idle()


def test_a_message_calls_for_the_model() -> None:
    assert after(Log().said()) == CallModel()


def test_a_reply_without_calls_ends_the_turn() -> None:
    assert after(Log().said().replied(text="Hello")) == EndTurn("done")


def test_after_the_end_there_is_nothing_to_do() -> None:
    assert after(Log().said().replied().ended()) == Idle()


def test_another_process_that_takes_over_goes_on_where_the_log_ends() -> None:
    assert after(Log().said().resumed()) == CallModel()
    assert after(Log().said().replied().resumed()) == EndTurn("done")
    assert handled(asked("c1").asked("c1").resumed()) == {"wait": ["c1"]}


def test_the_next_message_calls_for_the_model_again() -> None:
    assert after(Log().said().replied().ended().said()) == CallModel()


# R3
def test_a_message_during_the_turn_is_answered_before_it_ends() -> None:
    assert after(Log().said().said("Wait").replied(seen=1)) == CallModel()
    assert after(Log().said().said("Wait").replied(seen=2)) == EndTurn("done")


def test_the_model_is_called_again_once_every_call_has_a_result() -> None:
    assert after(asked("c1").resulted("c1")) == CallModel()


# Failures of the model


def test_a_failed_try_is_followed_by_the_next_one_not_before_its_time() -> None:
    assert after(Log().said().failed(1, NOW + 1_000)) == CallModel(2, NOW + 1_000)
    assert after(Log().said().failed(1).failed(2, NOW + 4_000)) == CallModel(3, NOW + 4_000)


def test_a_message_during_the_back_off_begins_anew() -> None:
    assert after(Log().said().failed(1, NOW + 1_000).said("Now?")) == CallModel()


def test_a_reply_forgets_the_tries_before_it() -> None:
    assert after(Log().said().failed(1).replied("c1").resulted("c1")) == CallModel()


def test_after_an_error_the_person_may_let_it_be_tried_again() -> None:
    log = Log().said().failed(1).failed(2).failed(3).ended("error")
    assert after(log) == Idle()
    assert after(log.retried()) == CallModel()


def test_trying_again_what_was_answered_ends_at_once() -> None:
    assert after(Log().said().replied().ended().retried()) == EndTurn("done")


# Calls


# R6
def test_calls_are_asked_about_started_and_waited_for_each_on_its_own() -> None:
    log = asked("c1", "c2", "c3", "c4", "c5").asked("c2").asked("c3").decided("c3").delegated("c4").resulted("c5")
    assert handled(log) == {"ask": ["c1"], "start": ["c3"], "wait": ["c2", "c4"]}


def test_a_card_is_waited_for() -> None:
    log = asked("c1").asked("c1")
    assert handled(log) == {"wait": ["c1"]}
    call = read_turn_state(log.lines).calls["c1"]
    assert (call.approval_id, call.decision) == ("approval of c1", "")


def test_what_people_approved_is_started() -> None:
    assert handled(asked("c1").asked("c1").decided("c1")) == {"start": ["c1"]}


@pytest.mark.parametrize("status", ["rejected", "expired", "cancelled", "responded"])
def test_what_was_decided_otherwise_is_looked_at_and_not_started(status: str) -> None:
    assert handled(asked("c1").asked("c1").decided("c1", status)) == {"wait": ["c1"]}


def test_what_runs_in_another_process_is_waited_for() -> None:
    assert handled(asked("c1").asked("c1", "running")) == {"wait": ["c1"]}


def test_what_may_be_run_again_is_started() -> None:
    assert handled(asked("c1").asked("c1", "running").asked("c1", "approved")) == {"start": ["c1"]}


# R13
def test_a_sub_agent_is_waited_for() -> None:
    assert handled(asked("c1").delegated("c1")) == {"wait": ["c1"]}


# R13
def test_a_sub_agent_that_people_let_work_is_started_once() -> None:
    log = asked("c1").asked("c1").decided("c1")
    assert handled(log) == {"start": ["c1"]}
    assert handled(log.delegated("c1")) == {"wait": ["c1"]}


# R13
def test_what_a_sub_agent_was_asked_shows_here_and_decides_nothing_here() -> None:
    log = asked("c1", "c2").delegated("c1").asked("c2")
    mirrored = log.asked("c2", child="thread-2").decided("c2", child="thread-2").resulted("c1", child="thread-2")
    assert handled(mirrored) == {"wait": ["c1", "c2"]}


def test_lines_about_calls_of_an_earlier_reply_are_passed_over() -> None:
    assert handled(asked("c1").resulted("c1").replied("c2").resulted("c1")) == {"ask": ["c2"]}


def test_providers_may_number_their_calls_anew_in_each_reply() -> None:
    log = asked("c1").asked("c1").decided("c1").resulted("c1").replied("c1")
    assert handled(log) == {"ask": ["c1"]}
    first, second = (read_turn_state(log.lines[:n]).calls["c1"].id for n in (2, 6))
    assert (first, second) == ("2:c1", "6:c1")


# R3, R55
def test_a_new_message_gives_up_what_is_not_decided() -> None:
    assert handled(asked("c1", "c2").asked("c1").said("No")) == {
        "ask": ["c2"],
        "wait": ["c1"],
        "given up": ["said"],
    }


def test_calls_of_a_reply_that_did_not_know_the_newest_message_are_given_up() -> None:
    assert handled(Log().said().said("No").replied("c1", seen=1)) == {"ask": ["c1"], "given up": ["said"]}
    assert handled(Log().said().said("No").replied("c1", seen=2)) == {"ask": ["c1"]}


def test_stopping_gives_up_what_is_not_decided() -> None:
    assert handled(asked("c1").asked("c1").stopped()) == {"wait": ["c1"], "given up": ["stopped"]}


def test_once_all_calls_ended_a_stopped_turn_is_over() -> None:
    assert after(Log().said().stopped()) == EndTurn("stopped", "Stopped.")
    assert after(asked("c1").asked("c1").stopped().resulted("c1")) == EndTurn("stopped", "Stopped.")
    assert after(asked("c1").stopped().resulted("c1").ended("stopped")) == Idle()


def test_stopped_and_said_again_goes_on_with_the_message() -> None:
    log = asked("c1").asked("c1").stopped().said("Something else")
    assert handled(log) == {"wait": ["c1"], "given up": ["said"]}
    assert after(log.resulted("c1")) == CallModel()


def test_calls_that_an_error_left_open_are_seen_to_before_anything_else() -> None:
    log = asked("c1").asked("c1").ended("error")
    assert handled(log) == {"wait": ["c1"]}
    assert handled(log.said("Hello?")) == {"wait": ["c1"], "given up": ["said"]}


# Limits


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (TurnLimits(turns=2), "2 model turns"),
        (TurnLimits(tokens=1_200), "1,200 tokens"),
        (TurnLimits(work_ms=9_000), "9 seconds of work"),
    ],
)
def test_a_limit_ends_the_turn_and_says_how_to_go_on(limits: TurnLimits, words: str) -> None:
    once = Log().said().replied("c1", tokens=700, took=3_000).resulted("c1", took=2_000)
    assert after(once, limits) == CallModel()
    step = after(once.replied("c2", tokens=500, took=3_000).resulted("c2", took=1_000), limits)
    assert isinstance(step, EndTurn)
    assert step.status == "limit"
    assert step.reason == f"The limit of {words} for one message is reached. Send a message to go on."


def test_what_was_not_measured_counts_for_nothing() -> None:
    log = asked("c1").resulted("c1").add("failed", "time", attempt=1)
    assert after(log, TurnLimits(tokens=1, work_ms=1)) == CallModel(2, 0)


def test_what_sub_agents_used_counts_too() -> None:
    log = Log().said().replied("c1", tokens=300).resulted("c1", tokens=700)
    assert after(log, TurnLimits(tokens=1_001)) == CallModel()
    assert isinstance(after(log, TurnLimits(tokens=1_000)), EndTurn)


def test_a_message_or_another_try_begins_the_limits_anew() -> None:
    log = Log().said().replied("c1", tokens=700).resulted("c1").ended("limit")
    assert after(log.said(), TurnLimits(turns=1)) == CallModel()
    again = Log().said().replied("c1").resulted("c1").ended("limit").retried()
    assert after(again, TurnLimits(turns=1)) == CallModel()


def test_a_reply_without_calls_is_an_end_and_no_limit() -> None:
    assert after(Log().said().replied(text="Bye"), TurnLimits(turns=1)) == EndTurn("done")


# What the model is told


# R6
def test_results_come_in_the_order_of_the_calls() -> None:
    log = asked("c1", "c2 read").resulted("c2", "second").resulted("c1", "first")
    assert prompt_messages(log.lines)[2:] == (ToolResult("c1", "pay", "first"), ToolResult("c2", "read", "second"))


def test_a_call_without_a_result_is_told_as_unknown() -> None:
    """Providers refuse a history in which a call has no result."""
    assert prompt_messages(asked("c1").lines)[-1] == ToolResult("c1", "pay", MISSING_RESULT)


def test_what_was_said_during_a_turn_comes_behind_its_results() -> None:
    log = asked("c1").said("Faster").resulted("c1").replied(text="Done")
    assert prompt_messages(log.lines) == (
        PromptUserMessage("Hi"),
        ModelReply("", (ToolRequest("c1", "pay", "{}"),)),
        ToolResult("c1", "pay", "ok"),
        PromptUserMessage("Faster"),
        ModelReply("Done"),
    )


def test_what_a_reply_did_not_know_comes_behind_it() -> None:
    log = Log().said().said("Wait").replied(text="Hello", seen=1)
    assert prompt_messages(log.lines) == (PromptUserMessage("Hi"), ModelReply("Hello"), PromptUserMessage("Wait"))


def test_what_the_provider_wants_to_see_again_and_the_tokens_are_kept() -> None:
    body = {"text": "", "wishes": [["c1", "pay", "{"]], "opaque": "sealed", "tokens": 5}
    assert parse_reply(body) == ModelReply("", (ToolRequest("c1", "pay", "{"),), "sealed", 5)


def test_a_sub_agent_hands_over_what_it_said_last() -> None:
    assert last_reply_text(Log().said().replied(text="One").said().replied(text="Two").ended().lines) == "Two"
    assert last_reply_text(Log().said().lines) == ""


def test_an_id_at_the_gate_is_of_bounded_length() -> None:
    assert len(PendingCall(ToolRequest("x" * 500, "pay", "{}"), 7).id) == 200


# Any log that is legal


def check_messages(messages: Sequence[PromptMessage]) -> None:
    """Behind each reply one result for each of its calls, in their order, and no result anywhere else."""
    due: list[str] = []
    for message in messages:
        match message:
            case ToolResult():
                assert due, "a result without a call"
                assert due.pop(0) == message.call_id
            case _:
                assert due == [], "a call without a result"
                due = [wish.id for wish in message.tool_requests] if isinstance(message, ModelReply) else []
    assert due == []


def check_step(step: ThreadStep, before: Simulator) -> None:
    story = read_turn_state(before.log.lines)
    open_calls = [call.tool_request.id for call in story.calls.values() if not call.ended]
    if isinstance(step, HandleCalls):
        parts = [call.tool_request.id for part in (step.to_propose, step.start, step.to_await) for call in part]
        assert sorted(parts) == sorted(open_calls), "every open call once"
        assert not any(call.approval_id or call.child for call in step.to_propose), "nothing known is asked about again"
    else:
        assert open_calls == []
    if before.log.lines[-1].kind == "replied" and not story.calls and not story.has_unseen:
        assert step == EndTurn("done"), "a turn that was recorded is not asked for again"


# R3, R6, R35
@examples(300)
@given(st.data())
def test_whatever_happens_the_log_stays_one_that_a_model_can_be_given(data: st.DataObject) -> None:
    simulator = Simulator(data.draw)
    for _ in range(data.draw(st.integers(1, 25))):
        simulator.person()
        if not simulator.idle:
            check_step(next_step(simulator.log.lines), simulator)
            simulator.advance()
        check_messages(prompt_messages(simulator.log.lines))
    messages = prompt_messages(simulator.log.lines)
    told = [message.text for message in messages if isinstance(message, PromptUserMessage)]
    assert sorted(told) == sorted(f"message {number}" for number in range(simulator.messages))
    assert sum(isinstance(message, ModelReply) for message in messages) == sum(
        line.kind == "replied" for line in simulator.log.lines
    )
    assert len(simulator.ran) == len(set(simulator.ran)), "a call came to its result twice"
    assert len(simulator.turns) == len(set(simulator.turns)), "a turn was asked for twice at the same place"


# R3
@examples(200)
@given(st.data())
def test_left_alone_every_thread_comes_to_rest(data: st.DataObject) -> None:
    simulator = Simulator(data.draw)
    for _ in range(data.draw(st.integers(0, 8))):
        simulator.person()
        if not simulator.idle:
            simulator.advance()
    left_alone = Calm.over(simulator)
    for _ in range(60):
        if left_alone.idle:
            break
        left_alone.advance()
    assert left_alone.idle, json.dumps([line.kind for line in left_alone.log.lines])
    assert next_step(left_alone.log.lines) == Idle()
