"""One call of a LangGraph tool on its way: where it stands in its graph, what it is asked as, and what comes of it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import interrupt

from interlock.core.call import Args, ToolCall, ToolSpec, redact
from interlock.core.canonical import digest
from interlock.core.errors import InvalidRequest, Misconfigured
from interlock.core.outcome import Answered, Finished, Outcome, Waiting
from interlock.integrations.langchain.interrupts import Mark, Question, mark_of, sentence_of
from interlock.integrations.langchain.tools import content_of, once, text_of
from interlock.sdk.agent import Agent, Ran, told

Config = Mapping[str, Any]
Handler = Callable[[Any], Any]
NO_THREAD = (
    "This graph runs without a thread, so nobody could find the call again. Compile it with a checkpointer and pass "
    'config={"configurable": {"thread_id": "…"}}.'
)
INBOX = "Decide about it in Interlock's own inbox."


class Both(NamedTuple):
    """One thing to do, for a graph that runs in a thread and for one that runs in an event loop."""

    now: Callable[[], Any]
    later: Callable[[], Awaitable[Any]]


Key = tuple[str, int]  # a task, and the event loop in which it runs
Way = Generator[Both, Any, Ran | Outcome]


@dataclass(frozen=True)
class Place:
    """Where in which graph a call is: the thread, and the task in it, which is the same when it is replayed."""

    config: Config
    thread: str
    task: str

    @staticmethod
    def here() -> Place:
        config = get_config()
        values = config.get("configurable", {})
        if not values.get("thread_id"):
            raise Misconfigured(NO_THREAD)
        return Place(config, str(values["thread_id"]), values.get("checkpoint_ns", ""))

    @property
    def values(self) -> Mapping[str, Any]:
        values: Mapping[str, Any] = self.config["configurable"]
        return values

    def shown(self) -> Both:
        """Reads back what this task showed when it paused; None if it showed nothing."""
        saver = self.values.get("__pregel_checkpointer")
        where = {"configurable": {"thread_id": self.thread, "checkpoint_ns": self.task.rpartition("|")[0]}}

        async def later() -> Mark | None:
            return self._mark(await saver.aget_tuple(where) if saver else None)

        return Both(lambda: self._mark(saver.get_tuple(where) if saver else None), later)

    def _mark(self, saved: Any) -> Mark | None:
        own = self.task.rpartition("|")[2].rpartition(":")[2]
        writes = saved.pending_writes or () if saved else ()
        raised = [value for task, channel, value in writes if task == own and channel == "__interrupt__"]
        found = [mark for each in raised for inner in each if (mark := mark_of(inner.value))]
        return found[-1] if found else None


@dataclass
class Step:
    """One call on its way; without a request a node of a plain graph made it. `result` is what the tool gave."""

    call: ToolCall
    spec: ToolSpec
    place: Place
    request: Any
    result: Any = None
    given: list[Any] | None = None

    def attempt(self, agent: Agent, handler: Handler | None) -> Both:
        """Without a handler nothing runs but the permission, which is recorded with its arguments."""

        def body(args: Args) -> object:
            passed = self._passed(agent)
            with bubbling():
                return [dict(args), passed] if handler is None else self._kept(handler(self._started(agent, args)))

        async def abody(args: Args) -> object:
            passed = self._passed(agent)
            with bubbling():
                return (
                    [dict(args), passed] if handler is None else self._kept(await handler(self._started(agent, args)))
                )

        call, spec = self.call, self.spec
        return Both(lambda: agent.attempt_sync(call, spec, body), lambda: agent.attempt(call, spec, abody))

    def handed_over(self, handler: Handler, permission: Any, *, again: bool) -> Both:
        args, passed = permission
        answers(passed if again else 0)  # they were to the question of the permission: the next one is the tool's own
        return Both(lambda: handler(self._asking(args)), lambda: handler(self._asking(args)))

    def answers(self) -> list[Any]:
        """All that this task was resumed with so far, the newest last."""
        if self.given is None:
            self.given = answers()
        return self.given

    def question(self, waiting: Waiting, problem: str, answered: int) -> Question:
        """As the model asked for it. What people made of it since is in the inbox alone, and so are secrets."""
        own = digest(self.call.args)
        args = redact(self.call.args, self.spec, os.urandom(32)).value if self.spec.secret else self.call.value
        words = [problem, sentence_of(self.spec, args), f"Agent: {' → '.join(self.call.path)}."]
        if self.spec.secret or waiting.args_sha256 != own:
            words.append(f"Its arguments are not all here, or were edited. {INBOX}")
        return Question(waiting.approval_id, own, self.spec, args, "\n".join(filter(None, words)), answered)

    def said(self, outcome: Ran | Outcome) -> Any:
        if isinstance(outcome, Ran):
            return outcome.result
        well = isinstance(outcome, Answered) or (isinstance(outcome, Finished) and outcome.status == "succeeded")
        return reply(self.request.tool_call, told(outcome, self.call.tool), "success" if well else "error")

    def plain(self, outcome: Ran | Outcome) -> Any:
        return outcome.result if isinstance(outcome, Ran) else told(outcome, self.call.tool)

    def misfit(self, error: InvalidRequest) -> Ran:
        if self.request is None:
            raise error
        return Ran(reply(self.request.tool_call, error.message, "error"))

    def _started(self, agent: Agent, args: Args) -> Any:
        asking = self._asking(args)
        if self.request is None or agent.lock.execution() is None:
            return asking
        return asking.override(tool=once(self.request.tool, self.spec, args))

    def _asking(self, args: Args) -> Any:
        """What LangGraph injects is put in when the tool runs, whatever was edited."""
        if self.request is None:
            return dict(args)
        return self.request.override(tool_call={**self.request.tool_call, "args": dict(args)})

    def _passed(self, agent: Agent) -> int:
        """A tool that asks people by itself must not take what the gate's own question was answered with."""
        return 0 if agent.lock.execution() is None else len(self.answers())

    def _kept(self, result: Any) -> object:
        self.result = result
        if isinstance(result, ToolMessage) and result.status == "error":
            raise Reported(result)
        return result if self.request is None else content_of(result, self.request.tool_call["id"])


class Reported(Exception):
    """The tool gave an error as its result: it failed, and the model gets it as it is."""

    def __init__(self, result: Any) -> None:
        super().__init__(str(result.content)[:2_000])
        self.result = result


class PausedInside(BaseException):
    """A graph inside of the tool paused or jumped: the tool did not fail, and nobody knows how far it came."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


@contextmanager
def bubbling() -> Iterator[None]:
    try:
        yield
    except GraphBubbleUp as cause:
        raise PausedInside(cause) from cause


def answers(most: int = sys.maxsize) -> list[Any]:
    """Reads them one by one: the interrupt that has none raises."""
    found: list[Any] = []
    with suppress(GraphInterrupt):
        while len(found) < most:
            found.append(interrupt(None))
    return found


class Company:
    """Calls of one node that run at once in an event loop: the node must not stop while one of them is at work.

    LangGraph's ToolNode would leave it behind, to be cancelled when the loop ends.
    """

    def __init__(self) -> None:
        self._busy: dict[Key, int] = {}
        self._idle: dict[Key, asyncio.Event] = {}

    @contextmanager
    def with_(self, place: Place) -> Iterator[None]:
        key = (place.task, id(asyncio.get_running_loop()))
        self._busy[key] = self._busy.get(key, 0) + 1
        try:
            yield
        finally:
            self._rested(key)

    async def others(self, place: Place) -> None:
        """Until all others of this node have ended, or wait here as well."""
        key = (place.task, id(asyncio.get_running_loop()))
        idle = self._idle.setdefault(key, asyncio.Event())
        self._rested(key)
        try:
            await idle.wait()
        finally:
            self._busy[key] = self._busy.get(key, 0) + 1

    def _rested(self, key: Key) -> None:
        self._busy[key] -= 1
        if not self._busy[key]:
            del self._busy[key]
            if key in self._idle:
                self._idle.pop(key).set()


def reply(wanted: Mapping[str, Any], content: object, status: str) -> ToolMessage:
    return ToolMessage(text_of(content), name=wanted["name"], tool_call_id=wanted["id"], status=status)


def done(way: Way) -> Any:
    """Goes the way in this thread."""
    try:
        both = next(way)
        while True:
            try:
                value = both.now()
            except BaseException as error:  # noqa: BLE001  the way decides what becomes of it
                both = way.throw(error)
            else:
                both = way.send(value)
    except StopIteration as end:
        return end.value


async def adone(way: Way) -> Any:
    """Goes the way in this event loop."""
    try:
        both = next(way)
        while True:
            try:
                value = await both.later()
            except BaseException as error:  # noqa: BLE001  the way decides what becomes of it
                both = way.throw(error)
            else:
                both = way.send(value)
    except StopIteration as end:
        return end.value
