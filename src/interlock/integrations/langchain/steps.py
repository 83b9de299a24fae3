"""One tool call inside a LangGraph graph: its location, attempts, interrupt, resume values and result message."""

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
from interlock.integrations.langchain.interrupts import InterruptMark, InterruptRequest, read_mark, safe_sentence
from interlock.integrations.langchain.tools import message_content, result_content, single_use_tool
from interlock.presenters.model_message import to_model_message
from interlock.sdk.agent import Agent, Executed

Config = Mapping[str, Any]
Handler = Callable[[Any], Any]
NO_THREAD = (
    "This graph runs without a thread, so nobody could find the call again. Compile it with a checkpointer and pass "
    'config={"configurable": {"thread_id": "…"}}.'
)
INBOX = "Decide about it in Interlock's own inbox."


class SyncAsyncAction(NamedTuple):
    """One action, for synchronous and for asynchronous graphs."""

    run: Callable[[], Any]
    run_async: Callable[[], Awaitable[Any]]


TaskKey = tuple[str, int]  # a task, and the event loop in which it runs
StepGenerator = Generator[SyncAsyncAction, Any, Executed | Outcome]


@dataclass(frozen=True)
class GraphLocation:
    """The thread of a call and its task in the graph, which stays the same on replay."""

    config: Config
    thread: str
    task: str

    @staticmethod
    def current() -> GraphLocation:
        config = get_config()
        values = config.get("configurable", {})
        if not values.get("thread_id"):
            raise Misconfigured(NO_THREAD)
        return GraphLocation(config, str(values["thread_id"]), values.get("checkpoint_ns", ""))

    @property
    def configurable(self) -> Mapping[str, Any]:
        values: Mapping[str, Any] = self.config["configurable"]
        return values

    def read_shown_mark(self) -> SyncAsyncAction:
        """Read the interrupt that this task last raised from the checkpoint; None if there is none."""
        saver = self.configurable.get("__pregel_checkpointer")
        where = {"configurable": {"thread_id": self.thread, "checkpoint_ns": self.task.rpartition("|")[0]}}

        async def later() -> InterruptMark | None:
            return self._mark(await saver.aget_tuple(where) if saver else None)

        return SyncAsyncAction(lambda: self._mark(saver.get_tuple(where) if saver else None), later)

    def _mark(self, saved: Any) -> InterruptMark | None:
        own = self.task.rpartition("|")[2].rpartition(":")[2]
        writes = saved.pending_writes or () if saved else ()
        raised = [value for task, channel, value in writes if task == own and channel == "__interrupt__"]
        found = [mark for each in raised for inner in each if (mark := read_mark(inner.value))]
        return found[-1] if found else None


@dataclass(kw_only=True)
class ToolCallStep:
    """One tool call; `request` is None for a call from a plain node. `result` is the tool's own result."""

    call: ToolCall
    spec: ToolSpec
    location: GraphLocation
    request: Any
    result: Any = None
    resume_values: list[Any] | None = None

    def attempt(self, agent: Agent, handler: Handler | None) -> SyncAsyncAction:
        """Attempt the call. Without a handler only the permission is recorded, with the approved arguments."""

        def body(args: Args) -> object:
            passed = self._answers_used(agent)
            with wrap_graph_pause():
                return (
                    [dict(args), passed]
                    if handler is None
                    else self._record_result(handler(self._start_request(agent, args)))
                )

        async def abody(args: Args) -> object:
            passed = self._answers_used(agent)
            with wrap_graph_pause():
                return (
                    [dict(args), passed]
                    if handler is None
                    else self._record_result(await handler(self._start_request(agent, args)))
                )

        call, spec = self.call, self.spec
        return SyncAsyncAction(lambda: agent.attempt_sync(call, spec, body), lambda: agent.attempt(call, spec, abody))

    def delegate(self, handler: Handler, permission: Any, *, again: bool) -> SyncAsyncAction:
        args, passed = permission
        read_resume_values(
            passed if again else 0
        )  # resume values of the permission's interrupt: the next one is for the tool itself
        return SyncAsyncAction(lambda: handler(self._make_request(args)), lambda: handler(self._make_request(args)))

    def load_answers(self) -> list[Any]:
        """All values that this task was resumed with so far, the newest last."""
        if self.resume_values is None:
            self.resume_values = read_resume_values()
        return self.resume_values

    def make_interrupt(self, waiting: Waiting, problem: str, answered: int) -> InterruptRequest:
        """The interrupt with the model's own arguments; edits by reviewers, and secrets, are only in the inbox."""
        own = digest(self.call.args)
        args = redact(self.call.args, self.spec, os.urandom(32)).value if self.spec.secret else self.call.parsed_args
        words = [problem, safe_sentence(self.spec, args), f"Agent: {' → '.join(self.call.path)}."]
        if self.spec.secret or waiting.args_sha256 != own:
            words.append(f"Its arguments are not all here, or were edited. {INBOX}")
        return InterruptRequest(
            approval_id=waiting.approval_id,
            args_sha256=own,
            spec=self.spec,
            args=args,
            words="\n".join(filter(None, words)),
            answered=answered,
        )

    def to_tool_message(self, outcome: Executed | Outcome) -> Any:
        if isinstance(outcome, Executed):
            return outcome.result
        well = isinstance(outcome, Answered) or (isinstance(outcome, Finished) and outcome.status == "succeeded")
        return make_tool_message(
            self.request.tool_call, to_model_message(outcome, self.call.tool), "success" if well else "error"
        )

    def to_plain_result(self, outcome: Executed | Outcome) -> Any:
        return outcome.result if isinstance(outcome, Executed) else to_model_message(outcome, self.call.tool)

    def invalid_arguments_result(self, error: InvalidRequest) -> Executed:
        if self.request is None:
            raise error
        return Executed(make_tool_message(self.request.tool_call, error.message, "error"))

    def _start_request(self, agent: Agent, args: Args) -> Any:
        asking = self._make_request(args)
        if self.request is None or agent.interlock.execution() is None:
            return asking
        return asking.override(tool=single_use_tool(self.request.tool, self.spec, args))

    def _make_request(self, args: Args) -> Any:
        """The request with the approved arguments; LangGraph adds the injected ones when the tool runs."""
        if self.request is None:
            return dict(args)
        return self.request.override(tool_call={**self.request.tool_call, "args": dict(args)})

    def _answers_used(self, agent: Agent) -> int:
        """The number of resume values used by the gate: a tool that interrupts by itself must not get them."""
        return 0 if agent.interlock.execution() is None else len(self.load_answers())

    def _record_result(self, result: Any) -> object:
        self.result = result
        if isinstance(result, ToolMessage) and result.status == "error":
            raise ToolReturnedError(result)
        return result if self.request is None else result_content(result, self.request.tool_call["id"])


class ToolReturnedError(Exception):
    """Raised if the tool returned an error message: the call failed, and the model gets the message unchanged."""

    def __init__(self, result: Any) -> None:
        super().__init__(str(result.content)[:2_000])
        self.result = result


class PausedInside(BaseException):
    """Raised if a graph inside the tool paused or jumped: not a failure, but the effect is unknown."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


@contextmanager
def wrap_graph_pause() -> Iterator[None]:
    try:
        yield
    except GraphBubbleUp as cause:
        raise PausedInside(cause) from cause


def read_resume_values(most: int = sys.maxsize) -> list[Any]:
    """Consume resume values one by one; the first interrupt without a value raises."""
    found: list[Any] = []
    with suppress(GraphInterrupt):
        while len(found) < most:
            found.append(interrupt(None))
    return found


class ConcurrentCalls:
    """Concurrent calls of one node in an event loop: the node must not pause while one of them is running.

    LangGraph's ToolNode would abandon the running one, which is cancelled when the loop ends.
    """

    def __init__(self) -> None:
        self._busy: dict[TaskKey, int] = {}
        self._idle: dict[TaskKey, asyncio.Event] = {}

    @contextmanager
    def enter(self, location: GraphLocation) -> Iterator[None]:
        key = (location.task, id(asyncio.get_running_loop()))
        self._busy[key] = self._busy.get(key, 0) + 1
        try:
            yield
        finally:
            self._exit(key)

    async def wait_for_others(self, location: GraphLocation) -> None:
        """Wait until all other calls of this node have ended or also wait here."""
        key = (location.task, id(asyncio.get_running_loop()))
        idle = self._idle.setdefault(key, asyncio.Event())
        self._exit(key)
        try:
            await idle.wait()
        finally:
            self._busy[key] = self._busy.get(key, 0) + 1

    def _exit(self, key: TaskKey) -> None:
        self._busy[key] -= 1
        if not self._busy[key]:
            del self._busy[key]
            if key in self._idle:
                self._idle.pop(key).set()


def make_tool_message(tool_call: Mapping[str, Any], content: object, status: str) -> ToolMessage:
    return ToolMessage(message_content(content), name=tool_call["name"], tool_call_id=tool_call["id"], status=status)


def run_steps(steps: StepGenerator) -> Any:
    """Run the steps in this thread."""
    try:
        action = next(steps)
        while True:
            try:
                value = action.run()
            except BaseException as error:  # noqa: BLE001  passed to the generator, which handles it
                action = steps.throw(error)
            else:
                action = steps.send(value)
    except StopIteration as end:
        return end.value


async def run_steps_async(steps: StepGenerator) -> Any:
    """Run the steps in this event loop."""
    try:
        action = next(steps)
        while True:
            try:
                value = await action.run_async()
            except BaseException as error:  # noqa: BLE001  passed to the generator, which handles it
                action = steps.throw(error)
            else:
                action = steps.send(value)
    except StopIteration as end:
        return end.value
