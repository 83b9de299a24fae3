"""Logs of threads, line by line: by hand, and by a small stand-in for the loop that makes any that is legal."""

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
FEW = TurnLimits(turns=4, tokens=10_000, work_ms=1_000_000)


@dataclass
class Log:
    """Each verb adds a line and gives the log back."""

    lines: list[ThreadEntry] = field(default_factory=list)

    def add(self, kind: str, actor: str = "agent:assistant", **body: object) -> Log:
        self.lines.append(ThreadEntry(len(self.lines) + 1, NOW, kind, actor, body))
        return self

    def said(self, text: str = "Hi") -> Log:
        return self.add("said", "ann", text=text)

    def replied(self, *wishes: str, text: str = "", seen: int | None = None, **more: object) -> Log:
        """A wish is `id` or `id tool`; `seen` is the last line that the model knew of."""
        made = [[*f"{wish} pay".split()[:2], "{}"] for wish in wishes]
        known = len(self.lines) if seen is None else seen
        return self.add("replied", text=text, wishes=made, seen=known, **more)

    def asked(self, call: str, status: str = "pending", **more: object) -> Log:
        return self.add("asked", call=call, tool="pay", approval=f"approval of {call}", status=status, **more)

    def decided(self, call: str, status: str = "approved", **more: object) -> Log:
        return self.add("decided", call=call, approval=f"approval of {call}", status=status, **more)

    def delegated(self, call: str) -> Log:
        return self.add("delegated", call=call, tool="agent_writer", thread=f"child of {call}")

    def resulted(self, call: str, result: object = "ok", **more: object) -> Log:
        return self.add("resulted", call=call, tool="pay", status="succeeded", result=result, **more)

    def failed(self, attempt: int, again_at: int = NOW) -> Log:
        return self.add("failed", "time", attempt=attempt, error="overloaded", again_at=again_at)

    def stopped(self) -> Log:
        return self.add("stopped", "ann")

    def retried(self) -> Log:
        return self.add("retried", "ann")

    def resumed(self) -> Log:
        return self.add("resumed", "another process")

    def ended(self, status: str = "done") -> Log:
        return self.add("ended", "time", status=status, reason="")


class Simulator:
    """Does what the loop does to a log, and draws whatever is not certain: people, models, tools and crashes."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.log = Log().said("message 0")
        self.messages = 1
        self.ran: list[str] = []  # each time a call came to its result
        self.turns: list[str] = []  # what each turn of the model was about
        self.idle = False

    def chance(self, *choices: str) -> str:
        return str(self.draw(st.sampled_from(choices)))

    def person(self) -> None:
        match self.chance("nothing", "nothing", "nothing", "says", "stops", "retries", "crash"):
            case "says":
                self.say()
            case "stops" if not self.idle:
                self.log.stopped()
            case "retries" if self.idle:
                self.idle = False
                self.log.retried()
            case "crash" if not self.idle:
                self.log.resumed()
            case _:
                pass

    def say(self) -> None:
        self.log.said(f"message {self.messages}")
        self.messages += 1
        self.idle = False

    def advance(self) -> None:
        """One round of the loop."""
        match next_step(self.log.lines, FEW):
            case CallModel(attempt):
                self.model(attempt)
            case HandleCalls() as step:
                self.handle(step)
            case EndTurn(status):
                self.log.ended(status)
                self.idle = True
            case Idle():
                self.idle = True

    def model(self, attempt: int) -> None:
        seen = len(self.log.lines)
        self.turns.append(json.dumps([line.kind for line in self.log.lines]))
        if self.chance("answers", "answers", "answers", "fails") == "fails":
            if attempt > 3:
                self.log.ended("error")
                self.idle = True
            else:
                self.log.failed(attempt)
            return
        if self.chance("alone", "alone", "alone", "meanwhile") == "meanwhile":
            self.say()
        wishes = [f"c{number}" for number in range(self.draw(st.integers(0, 3)))]
        self.log.replied(*wishes, text=f"reply {len(self.turns)}", seen=seen)

    def handle(self, step: HandleCalls) -> None:
        for call in step.to_propose:
            self.ask(call)
        for call in step.start:
            self.end(call)
        for call in step.to_await:
            self.wait(call)

    def ask(self, call: PendingCall) -> None:
        match self.chance("asked", "free", "delegated", "running"):
            case "asked":
                self.log.asked(call.tool_request.id)
            case "running":
                self.log.asked(call.tool_request.id, "running")
            case "delegated":
                self.log.delegated(call.tool_request.id)
                self.log.asked(call.tool_request.id, child="a thread below", path=["assistant", "writer"])  # a mirror
            case _:
                self.end(call)

    def wait(self, call: PendingCall) -> None:
        match self.chance("ends", "approved", "declined", "again"):
            case "ends":
                self.end(call)
            case "approved" if call.approval_id and not call.decision:
                self.log.decided(call.tool_request.id)
            case "declined" if call.approval_id and not call.decision:
                self.log.decided(call.tool_request.id, "rejected")
                self.end(call)
            case "again" if call.decision == "running":
                self.log.asked(call.tool_request.id, "approved")
            case _:
                pass

    def end(self, call: PendingCall) -> None:
        self.ran.append(call.id)
        self.log.resulted(call.tool_request.id, f"result of {call.id}")


class Calm(Simulator):
    """Nobody says anything more, nothing fails, and people decide."""

    @classmethod
    def over(cls, other: Simulator) -> Calm:
        calm = cls(other.draw)
        calm.log, calm.idle, calm.messages = other.log, other.idle, other.messages
        return calm

    def chance(self, *choices: str) -> str:
        return choices[0]
