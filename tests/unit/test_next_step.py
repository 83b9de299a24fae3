"""The next step of a thread follows from its transcript: each case by hand, then random legal transcripts."""

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
from tests.hypothesis_profiles import examples
from tests.unit.builders import NOW
from tests.unit.transcripts import QuietSimulator, Simulator, TranscriptBuilder


def step_after(transcript: TranscriptBuilder, limits: TurnLimits = TurnLimits()) -> ThreadStep:  # noqa: B008  frozen
    return next_step(transcript.entries, limits)


def handled_calls(transcript: TranscriptBuilder) -> dict[str, list[str]]:
    step = step_after(transcript)
    assert isinstance(step, HandleCalls), step
    names = {"ask": step.to_propose, "start": step.start, "wait": step.to_await}
    found = {name: [call.tool_request.id for call in calls] for name, calls in names.items() if calls}
    return {**found, "given up": [step.withdrawal]} if step.withdrawal else found


def transcript_with_calls(*calls: str) -> TranscriptBuilder:
    return TranscriptBuilder().add_message().add_reply(*calls)


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


def test_an_empty_transcript_is_idle() -> None:
    assert next_step([]) == Idle()


def test_a_message_calls_for_the_model() -> None:
    assert step_after(TranscriptBuilder().add_message()) == CallModel()


def test_a_reply_without_calls_ends_the_turn() -> None:
    assert step_after(TranscriptBuilder().add_message().add_reply(text="Hello")) == EndTurn("done")


def test_after_the_end_there_is_nothing_to_do() -> None:
    assert step_after(TranscriptBuilder().add_message().add_reply().add_end()) == Idle()


def test_another_process_that_takes_over_goes_on_where_the_log_ends() -> None:
    assert step_after(TranscriptBuilder().add_message().add_resume()) == CallModel()
    assert step_after(TranscriptBuilder().add_message().add_reply().add_resume()) == EndTurn("done")
    assert handled_calls(transcript_with_calls("c1").add_approval("c1").add_resume()) == {"wait": ["c1"]}


def test_the_next_message_calls_for_the_model_again() -> None:
    assert step_after(TranscriptBuilder().add_message().add_reply().add_end().add_message()) == CallModel()


# R3
def test_a_message_during_the_turn_is_answered_before_it_ends() -> None:
    assert step_after(TranscriptBuilder().add_message().add_message("Wait").add_reply(seen=1)) == CallModel()
    assert step_after(TranscriptBuilder().add_message().add_message("Wait").add_reply(seen=2)) == EndTurn("done")


def test_the_model_is_called_again_once_every_call_has_a_result() -> None:
    assert step_after(transcript_with_calls("c1").add_result("c1")) == CallModel()


# Failures of the model


def test_a_failed_try_is_followed_by_the_next_one_not_before_its_time() -> None:
    assert step_after(TranscriptBuilder().add_message().add_failure(1, NOW + 1_000)) == CallModel(2, NOW + 1_000)
    assert step_after(TranscriptBuilder().add_message().add_failure(1).add_failure(2, NOW + 4_000)) == CallModel(
        3, NOW + 4_000
    )


def test_a_message_during_the_backoff_starts_a_new_attempt() -> None:
    assert step_after(TranscriptBuilder().add_message().add_failure(1, NOW + 1_000).add_message("Now?")) == CallModel()


def test_a_reply_forgets_the_tries_before_it() -> None:
    assert step_after(TranscriptBuilder().add_message().add_failure(1).add_reply("c1").add_result("c1")) == CallModel()


def test_after_an_error_the_person_may_let_it_be_tried_again() -> None:
    transcript = TranscriptBuilder().add_message().add_failure(1).add_failure(2).add_failure(3).add_end("error")
    assert step_after(transcript) == Idle()
    assert step_after(transcript.add_retry()) == CallModel()


def test_trying_again_what_was_answered_ends_at_once() -> None:
    assert step_after(TranscriptBuilder().add_message().add_reply().add_end().add_retry()) == EndTurn("done")


# Calls


# R6
def test_calls_are_asked_about_started_and_waited_for_each_on_its_own() -> None:
    transcript = (
        transcript_with_calls("c1", "c2", "c3", "c4", "c5")
        .add_approval("c2")
        .add_approval("c3")
        .add_decision("c3")
        .add_delegation("c4")
        .add_result("c5")
    )
    assert handled_calls(transcript) == {"ask": ["c1"], "start": ["c3"], "wait": ["c2", "c4"]}


def test_a_card_is_waited_for() -> None:
    transcript = transcript_with_calls("c1").add_approval("c1")
    assert handled_calls(transcript) == {"wait": ["c1"]}
    call = read_turn_state(transcript.entries).calls["c1"]
    assert (call.approval_id, call.decision) == ("approval of c1", "")


def test_what_people_approved_is_started() -> None:
    assert handled_calls(transcript_with_calls("c1").add_approval("c1").add_decision("c1")) == {"start": ["c1"]}


@pytest.mark.parametrize("status", ["rejected", "expired", "cancelled", "responded"])
def test_what_was_decided_otherwise_is_looked_at_and_not_started(status: str) -> None:
    assert handled_calls(transcript_with_calls("c1").add_approval("c1").add_decision("c1", status)) == {"wait": ["c1"]}


def test_a_rejection_that_can_be_undone_is_no_decision_yet() -> None:  # R14
    transcript = transcript_with_calls("c1").add_approval("c1").add_decision("c1", "rejected", release_at="soon")
    call = read_turn_state(transcript.entries).calls["c1"]
    assert (call.is_rejected, call.decision) == (True, "")
    assert handled_calls(transcript) == {"wait": ["c1"]}
    call = read_turn_state(transcript.add_approval("c1", reopened=True).entries).calls["c1"]
    assert (call.is_rejected, call.decision) == (False, "")
    assert handled_calls(transcript.add_decision("c1")) == {"start": ["c1"]}


def test_what_runs_in_another_process_is_waited_for() -> None:
    assert handled_calls(transcript_with_calls("c1").add_approval("c1", "running")) == {"wait": ["c1"]}


def test_what_may_be_run_again_is_started() -> None:
    assert handled_calls(transcript_with_calls("c1").add_approval("c1", "running").add_approval("c1", "approved")) == {
        "start": ["c1"]
    }


# R13
def test_a_sub_agent_is_waited_for() -> None:
    assert handled_calls(transcript_with_calls("c1").add_delegation("c1")) == {"wait": ["c1"]}


# R13
def test_a_sub_agent_that_people_let_work_is_started_once() -> None:
    transcript = transcript_with_calls("c1").add_approval("c1").add_decision("c1")
    assert handled_calls(transcript) == {"start": ["c1"]}
    assert handled_calls(transcript.add_delegation("c1")) == {"wait": ["c1"]}


# R13
def test_what_a_sub_agent_was_asked_shows_here_and_decides_nothing_here() -> None:
    transcript = transcript_with_calls("c1", "c2").add_delegation("c1").add_approval("c2")
    mirrored = (
        transcript.add_approval("c2", child="thread-2")
        .add_decision("c2", child="thread-2")
        .add_result("c1", child="thread-2")
    )
    assert handled_calls(mirrored) == {"wait": ["c1", "c2"]}


def test_lines_about_calls_of_an_earlier_reply_are_passed_over() -> None:
    assert handled_calls(transcript_with_calls("c1").add_result("c1").add_reply("c2").add_result("c1")) == {
        "ask": ["c2"]
    }


def test_providers_may_reuse_call_ids_in_each_reply() -> None:
    transcript = transcript_with_calls("c1").add_approval("c1").add_decision("c1").add_result("c1").add_reply("c1")
    assert handled_calls(transcript) == {"ask": ["c1"]}
    first, second = (read_turn_state(transcript.entries[:n]).calls["c1"].id for n in (2, 6))
    assert (first, second) == ("2:c1", "6:c1")


# R3, R55
def test_a_new_message_gives_up_what_is_not_decided() -> None:
    assert handled_calls(transcript_with_calls("c1", "c2").add_approval("c1").add_message("No")) == {
        "ask": ["c2"],
        "wait": ["c1"],
        "given up": ["said"],
    }


def test_calls_of_a_reply_that_did_not_know_the_newest_message_are_given_up() -> None:
    assert handled_calls(TranscriptBuilder().add_message().add_message("No").add_reply("c1", seen=1)) == {
        "ask": ["c1"],
        "given up": ["said"],
    }
    assert handled_calls(TranscriptBuilder().add_message().add_message("No").add_reply("c1", seen=2)) == {"ask": ["c1"]}


def test_stopping_gives_up_what_is_not_decided() -> None:
    assert handled_calls(transcript_with_calls("c1").add_approval("c1").add_stop()) == {
        "wait": ["c1"],
        "given up": ["stopped"],
    }


def test_once_all_calls_ended_a_stopped_turn_is_over() -> None:
    assert step_after(TranscriptBuilder().add_message().add_stop()) == EndTurn("stopped", "Stopped.")
    assert step_after(transcript_with_calls("c1").add_approval("c1").add_stop().add_result("c1")) == EndTurn(
        "stopped", "Stopped."
    )
    assert step_after(transcript_with_calls("c1").add_stop().add_result("c1").add_end("stopped")) == Idle()


def test_a_message_after_a_stop_starts_a_new_turn() -> None:
    transcript = transcript_with_calls("c1").add_approval("c1").add_stop().add_message("Something else")
    assert handled_calls(transcript) == {"wait": ["c1"], "given up": ["said"]}
    assert step_after(transcript.add_result("c1")) == CallModel()


def test_calls_that_an_error_left_open_are_seen_to_before_anything_else() -> None:
    transcript = transcript_with_calls("c1").add_approval("c1").add_end("error")
    assert handled_calls(transcript) == {"wait": ["c1"]}
    assert handled_calls(transcript.add_message("Hello?")) == {"wait": ["c1"], "given up": ["said"]}


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
    once = TranscriptBuilder().add_message().add_reply("c1", tokens=700, took=3_000).add_result("c1", took=2_000)
    assert step_after(once, limits) == CallModel()
    step = step_after(once.add_reply("c2", tokens=500, took=3_000).add_result("c2", took=1_000), limits)
    assert isinstance(step, EndTurn)
    assert step.status == "limit"
    assert step.reason == f"The limit of {words} for one message is reached. Send a message to go on."


def test_what_was_not_measured_counts_for_nothing() -> None:
    transcript = transcript_with_calls("c1").add_result("c1").add("failed", "time", attempt=1)
    assert step_after(transcript, TurnLimits(tokens=1, work_ms=1)) == CallModel(2, 0)


def test_what_sub_agents_used_counts_too() -> None:
    transcript = TranscriptBuilder().add_message().add_reply("c1", tokens=300).add_result("c1", tokens=700)
    assert step_after(transcript, TurnLimits(tokens=1_001)) == CallModel()
    assert isinstance(step_after(transcript, TurnLimits(tokens=1_000)), EndTurn)


def test_a_message_or_a_retry_resets_the_limits() -> None:
    transcript = TranscriptBuilder().add_message().add_reply("c1", tokens=700).add_result("c1").add_end("limit")
    assert step_after(transcript.add_message(), TurnLimits(turns=1)) == CallModel()
    again = TranscriptBuilder().add_message().add_reply("c1").add_result("c1").add_end("limit").add_retry()
    assert step_after(again, TurnLimits(turns=1)) == CallModel()


def test_a_reply_without_calls_is_an_end_and_no_limit() -> None:
    assert step_after(TranscriptBuilder().add_message().add_reply(text="Bye"), TurnLimits(turns=1)) == EndTurn("done")


# Messages to the model


# R6
def test_results_come_in_the_order_of_the_calls() -> None:
    transcript = transcript_with_calls("c1", "c2 read").add_result("c2", "second").add_result("c1", "first")
    assert prompt_messages(transcript.entries)[2:] == (
        ToolResult("c1", "pay", "first"),
        ToolResult("c2", "read", "second"),
    )


def test_a_call_without_a_result_is_told_as_unknown() -> None:
    """Providers refuse a history in which a call has no result."""
    assert prompt_messages(transcript_with_calls("c1").entries)[-1] == ToolResult("c1", "pay", MISSING_RESULT)


def test_what_was_said_during_a_turn_comes_behind_its_results() -> None:
    transcript = transcript_with_calls("c1").add_message("Faster").add_result("c1").add_reply(text="Done")
    assert prompt_messages(transcript.entries) == (
        PromptUserMessage("Hi"),
        ModelReply("", (ToolRequest("c1", "pay", "{}"),)),
        ToolResult("c1", "pay", "ok"),
        PromptUserMessage("Faster"),
        ModelReply("Done"),
    )


def test_what_a_reply_did_not_know_comes_behind_it() -> None:
    transcript = TranscriptBuilder().add_message().add_message("Wait").add_reply(text="Hello", seen=1)
    assert prompt_messages(transcript.entries) == (
        PromptUserMessage("Hi"),
        ModelReply("Hello"),
        PromptUserMessage("Wait"),
    )


def test_what_the_provider_wants_to_see_again_and_the_tokens_are_kept() -> None:
    body = {"text": "", "wishes": [["c1", "pay", "{"]], "opaque": "sealed", "tokens": 5}
    assert parse_reply(body) == ModelReply("", (ToolRequest("c1", "pay", "{"),), "sealed", 5)


def test_a_sub_agent_hands_over_what_it_said_last() -> None:
    assert (
        last_reply_text(
            TranscriptBuilder()
            .add_message()
            .add_reply(text="One")
            .add_message()
            .add_reply(text="Two")
            .add_end()
            .entries
        )
        == "Two"
    )
    assert last_reply_text(TranscriptBuilder().add_message().entries) == ""


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
                due = (
                    [tool_request.id for tool_request in message.tool_requests]
                    if isinstance(message, ModelReply)
                    else []
                )
    assert due == []


def check_step(step: ThreadStep, before: Simulator) -> None:
    story = read_turn_state(before.transcript.entries)
    open_calls = [call.tool_request.id for call in story.calls.values() if not call.ended]
    if isinstance(step, HandleCalls):
        parts = [call.tool_request.id for part in (step.to_propose, step.start, step.to_await) for call in part]
        assert sorted(parts) == sorted(open_calls), "every open call once"
        assert not any(call.approval_id or call.child for call in step.to_propose), "nothing known is asked about again"
    else:
        assert open_calls == []
    if before.transcript.entries[-1].kind == "replied" and not story.calls and not story.has_unseen:
        assert step == EndTurn("done"), "a turn that was recorded is not asked for again"


# R3, R6, R35
@examples(300)
@given(st.data())
def test_every_legal_transcript_gives_valid_model_messages(data: st.DataObject) -> None:
    simulator = Simulator(data.draw)
    for _ in range(data.draw(st.integers(1, 25))):
        simulator.let_person_act()
        if not simulator.idle:
            check_step(next_step(simulator.transcript.entries), simulator)
            simulator.advance()
        check_messages(prompt_messages(simulator.transcript.entries))
    messages = prompt_messages(simulator.transcript.entries)
    result = [message.text for message in messages if isinstance(message, PromptUserMessage)]
    assert sorted(result) == sorted(f"message {number}" for number in range(simulator.messages))
    assert sum(isinstance(message, ModelReply) for message in messages) == sum(
        line.kind == "replied" for line in simulator.transcript.entries
    )
    assert len(simulator.finished_calls) == len(set(simulator.finished_calls)), "a call came to its result twice"
    assert len(simulator.turns) == len(set(simulator.turns)), "a turn was asked for twice at the same place"


# R3
@examples(200)
@given(st.data())
def test_left_alone_every_thread_comes_to_rest(data: st.DataObject) -> None:
    simulator = Simulator(data.draw)
    for _ in range(data.draw(st.integers(0, 8))):
        simulator.let_person_act()
        if not simulator.idle:
            simulator.advance()
    left_alone = QuietSimulator.continue_from(simulator)
    for _ in range(60):
        if left_alone.idle:
            break
        left_alone.advance()
    assert left_alone.idle, json.dumps([line.kind for line in left_alone.transcript.entries])
    assert next_step(left_alone.transcript.entries) == Idle()
