"""Transcripts of threads: a builder for single entries, and a simulator of the chat loop for random legal ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from interlock.core.chat.thread import ThreadEntry
from interlock.core.chat.transcript import CallModel, EndTurn, HandleCalls, Idle, PendingCall, TurnLimits, next_step
from tests.unit.builders import NOW

Draw = Callable[[st.SearchStrategy[Any]], Any]
SMALL_LIMITS = TurnLimits(turns=4, tokens=10_000, work_ms=1_000_000)


@dataclass
class TranscriptBuilder:
    """Each method adds an entry and returns the builder."""

    entries: list[ThreadEntry] = field(default_factory=list)

    def add(self, kind: str, actor: str = "agent:assistant", **body: object) -> TranscriptBuilder:
        self.entries.append(ThreadEntry(len(self.entries) + 1, NOW, kind, actor, body))
        return self

    def add_message(self, text: str = "Hi") -> TranscriptBuilder:
        return self.add("said", "ann", text=text)

    def add_reply(
        self, *tool_requests: str, text: str = "", seen: int | None = None, **more: object
    ) -> TranscriptBuilder:
        """A tool request is `id` or `id tool`; `seen` is the last entry that the model knew of."""
        made = [[*f"{tool_request} pay".split()[:2], "{}"] for tool_request in tool_requests]
        known = len(self.entries) if seen is None else seen
        return self.add("replied", text=text, wishes=made, seen=known, **more)

    def add_approval(self, call: str, status: str = "pending", **more: object) -> TranscriptBuilder:
        return self.add("asked", call=call, tool="pay", approval=f"approval of {call}", status=status, **more)

    def add_decision(self, call: str, status: str = "approved", **more: object) -> TranscriptBuilder:
        return self.add("decided", call=call, approval=f"approval of {call}", status=status, **more)

    def add_delegation(self, call: str) -> TranscriptBuilder:
        return self.add("delegated", call=call, tool="agent_writer", thread=f"child of {call}")

    def add_result(self, call: str, result: object = "ok", **more: object) -> TranscriptBuilder:
        return self.add("resulted", call=call, tool="pay", status="succeeded", result=result, **more)

    def add_failure(self, attempt: int, again_at: int = NOW) -> TranscriptBuilder:
        return self.add("failed", "time", attempt=attempt, error="overloaded", again_at=again_at)

    def add_stop(self) -> TranscriptBuilder:
        return self.add("stopped", "ann")

    def add_retry(self) -> TranscriptBuilder:
        return self.add("retried", "ann")

    def add_resume(self) -> TranscriptBuilder:
        return self.add("resumed", "another process")

    def add_end(self, status: str = "done") -> TranscriptBuilder:
        return self.add("ended", "time", status=status, reason="")


class Simulator:
    """Simulates the chat loop on a transcript; people, models, tools and crashes are drawn at random."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.transcript = TranscriptBuilder().add_message("message 0")
        self.messages = 1
        self.finished_calls: list[str] = []  # each time a call came to its result
        self.turns: list[str] = []  # what each turn of the model was about
        self.idle = False

    def choose(self, *choices: str) -> str:
        return str(self.draw(st.sampled_from(choices)))

    def let_person_act(self) -> None:
        match self.choose("nothing", "nothing", "nothing", "says", "stops", "retries", "crash"):
            case "says":
                self.send_message()
            case "stops" if not self.idle:
                self.transcript.add_stop()
            case "retries" if self.idle:
                self.idle = False
                self.transcript.add_retry()
            case "crash" if not self.idle:
                self.transcript.add_resume()
            case _:
                pass

    def send_message(self) -> None:
        self.transcript.add_message(f"message {self.messages}")
        self.messages += 1
        self.idle = False

    def advance(self) -> None:
        """One round of the loop."""
        match next_step(self.transcript.entries, SMALL_LIMITS):
            case CallModel(attempt):
                self.call_model(attempt)
            case HandleCalls() as step:
                self.handle_calls(step)
            case EndTurn(status):
                self.transcript.add_end(status)
                self.idle = True
            case Idle():
                self.idle = True

    def call_model(self, attempt: int) -> None:
        seen = len(self.transcript.entries)
        self.turns.append(json.dumps([line.kind for line in self.transcript.entries]))
        if self.choose("answers", "answers", "answers", "fails") == "fails":
            if attempt > 3:
                self.transcript.add_end("error")
                self.idle = True
            else:
                self.transcript.add_failure(attempt)
            return
        if self.choose("alone", "alone", "alone", "meanwhile") == "meanwhile":
            self.send_message()
        tool_requests = [f"c{number}" for number in range(self.draw(st.integers(0, 3)))]
        self.transcript.add_reply(*tool_requests, text=f"reply {len(self.turns)}", seen=seen)

    def handle_calls(self, step: HandleCalls) -> None:
        for call in step.to_propose:
            self.propose_call(call)
        for call in step.start:
            self.finish_call(call)
        for call in step.to_await:
            self.await_call(call)

    def propose_call(self, call: PendingCall) -> None:
        match self.choose("asked", "free", "delegated", "running"):
            case "asked":
                self.transcript.add_approval(call.tool_request.id)
            case "running":
                self.transcript.add_approval(call.tool_request.id, "running")
            case "delegated":
                self.transcript.add_delegation(call.tool_request.id)
                self.transcript.add_approval(
                    call.tool_request.id, child="a thread below", path=["assistant", "writer"]
                )  # a mirror
            case _:
                self.finish_call(call)

    def await_call(self, call: PendingCall) -> None:
        match self.choose("ends", "approved", "declined", "again"):
            case "ends":
                self.finish_call(call)
            case "approved" if call.approval_id and not call.decision:
                self.transcript.add_decision(call.tool_request.id)
            case "declined" if call.approval_id and not call.decision:
                self.transcript.add_decision(call.tool_request.id, "rejected")
                self.finish_call(call)
            case "again" if call.decision == "running":
                self.transcript.add_approval(call.tool_request.id, "approved")
            case _:
                pass

    def finish_call(self, call: PendingCall) -> None:
        self.finished_calls.append(call.id)
        self.transcript.add_result(call.tool_request.id, f"result of {call.id}")


class QuietSimulator(Simulator):
    """No further messages, no failures, and people decide."""

    @classmethod
    def continue_from(cls, other: Simulator) -> QuietSimulator:
        calm = cls(other.draw)
        calm.transcript, calm.idle, calm.messages = other.transcript, other.idle, other.messages
        return calm

    def choose(self, *choices: str) -> str:
        return choices[0]
