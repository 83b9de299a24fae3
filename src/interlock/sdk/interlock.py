"""The `Interlock` class: a decorated function waits for approval, then runs at most once."""

from __future__ import annotations

import asyncio
import atexit
import dataclasses
import functools
import inspect
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from interlock.app.bootstrap import approval_link, build_services, os_user
from interlock.app.executor import current_execution
from interlock.app.gate import Execution
from interlock.core.approval.execute import DEFAULT_LEASE
from interlock.core.call import DEFAULT_WORKSPACE, QUESTION_SPEC, QUESTION_TOOL, ToolCall, ToolSpec, propose
from interlock.core.decision import Decision, Reviewer
from interlock.core.errors import CallUnknown, Misconfigured, NotRun
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Answered, Outcome, Waiting
from interlock.core.ports import ApprovalQuery
from interlock.runtime.durations import parse_duration
from interlock.runtime.functions import TOOL_ATTRIBUTE, FunctionTool, stored_result, tool
from interlock.runtime.json_schema import check_schema
from interlock.runtime.offload import LoopThread
from interlock.runtime.process_identity import make_runner_id
from interlock.sdk.agent import Agent
from interlock.sdk.backend import ApprovalRecord, ApprovalStats, ApprovalStatus, Backend, ProgramIdentity
from interlock.sdk.client import Client
from interlock.sdk.embedded import EmbeddedBackend
from interlock.sdk.remote import RemoteBackend
from interlock.sdk.session import CachedResult, RunSession, WaitingLines, to_not_run_error

LISTED_AT_ONCE = 500  # approvals that are read with one request or query


class ApprovalFilters(TypedDict, total=False):
    """Filters of `approvals`; `user` requested, decided, voted or edited; with an agent's key, requested."""

    status: str | Sequence[str]
    thread: str
    user: str
    tool: str
    agent: str
    run_id: str


class Interlock:
    """The entry point of the SDK: opened by the first call; closed by `with`, `close()` or the end of the program."""

    def __init__(  # noqa: PLR0913  one parameter for each option
        self,
        url: str = "sqlite:///interlock.db",
        *,
        policy: str | Path | Mapping[str, Any] | None = None,
        agent: str = "",
        run_id: str | None = None,
        workspace: str = DEFAULT_WORKSPACE,
        user: str = "",
        lease_seconds: float = DEFAULT_LEASE / 1000,
        tool_approvals: Mapping[str, bool] | None = None,
        retention: str | None = None,
        key: str | None = None,
        insecure: bool = False,
        quiet: bool = False,
    ) -> None:
        """Configure the connection; nothing is opened yet.

        `policy` is a file, its text or its content; without it the policy in the database stays in force. A policy that
        was in force before and has been replaced is not applied again, unless it says so:
        `{"file": "policy.yaml", "apply": "always"}`.

        `retention`, such as "30d", is how long the content of finished calls is kept; without it this program erases
        nothing. The address of a server needs a `key`, and the server's own policy applies. `insecure` allows http://
        to another machine. At a terminal, a call that waits for people says so on standard error, unless `quiet`.
        """
        name = agent or Path(sys.argv[0]).stem or "agent"
        self.program = ProgramIdentity(workspace, name, user or os_user(), make_runner_id(), int(lease_seconds * 1000))
        self.approval_link_template = approval_link(url, workspace)
        options = BackendOptions(policy, tool_approvals, retention, key, insecure)
        self._backend: Backend = make_backend(url, self.program, options)
        self._lines = WaitingLines(url, workspace, quiet=quiet)
        self._run_id = run_id
        self._specs: dict[str, ToolSpec] = {}
        self._opening = threading.Lock()
        self._loop_thread: LoopThread | None = None
        self._session: RunSession | None = None

    # Tools

    def tool(  # noqa: PLR0913  one parameter for each property of a tool
        self,
        body: Callable[..., Any] | None = None,
        *,
        effect: str = "",
        describe: str | Callable[[Mapping[str, Any]], str] = "",
        name: str = "",
        preview: Callable[[Mapping[str, Any]], object] | None = None,
        secret: Sequence[str] = (),
        idempotent: bool = False,
        confirm: str = "",
        decisions: Sequence[str] = (),
    ) -> Any:
        """Gate an async or sync function, or one that is declared with `@tool`, which then has the options.

        Without an effect the tool counts as unknown and asks for approval.
        """
        declare = tool(
            effect=effect,
            describe=describe,
            name=name,
            preview=preview,
            secret=secret,
            idempotent=idempotent,
            confirm=confirm,
            decisions=decisions,
        )
        if body is None:
            return lambda function: self._gate_function(declare(function))
        return self._gate_function(declare(body))

    def execution(self) -> Execution | None:
        """The execution of the current tool, with its idempotency key; None inside a read."""
        return current_execution()

    def _gate_function(self, function: FunctionTool) -> Callable[..., Any]:
        self._specs[function.spec.name] = function.spec
        gated = self._gated(function)
        setattr(gated, TOOL_ATTRIBUTE, function)  # so that the chat can load it
        return gated

    def _gated(self, function: FunctionTool) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(function.body):

            @functools.wraps(function.body)
            async def call(*args: Any, **kwargs: Any) -> Any:
                return await self._call(function, args, kwargs)

            return call

        @functools.wraps(function.body)
        def call_sync(*args: Any, **kwargs: Any) -> Any:
            return self._call_sync(function, args, kwargs)

        return call_sync

    async def _call(self, function: FunctionTool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        session = await self._ensure_open()
        runnable = await self._wait_until_runnable(session, function, args, kwargs)
        if isinstance(runnable, CachedResult):
            return function.restore_result(runnable.result)
        return await session.execute(runnable, function.spec, lambda: function.body(**function.unpack(runnable.args)))

    def _call_sync(self, function: FunctionTool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        session, loop_thread = self.open(), self.loop_thread
        runnable = loop_thread.run(self._wait_until_runnable(session, function, args, kwargs))
        if isinstance(runnable, CachedResult):
            return function.restore_result(runnable.result)
        return session.execute_sync(
            runnable, function.spec, lambda: function.body(**function.unpack(runnable.args)), loop_thread
        )

    async def _wait_until_runnable(
        self, session: RunSession, function: FunctionTool, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        call = await session.make_call(function.spec, function.bind(args, kwargs))
        return await session.wait_until_runnable(call, function.spec)

    # Agents of frameworks

    def agent(self, name: str = "", tool_approvals: Mapping[str, bool] | None = None) -> Agent:
        """The agent for an integration: this program's own, or one of several, each with its own `tool_approvals`."""
        name = name or self.program.agent
        if tool_approvals is not None:
            self._backend.set_tool_approvals(name, tool_approvals)
        return Agent(self, (name,))

    # Questions

    async def ask(
        self,
        question: str,
        *,
        choices: Sequence[str] | None = None,
        schema: Mapping[str, object] | None = None,
        expires_in_seconds: float | None = None,
    ) -> Any:
        """Ask a person; returns the answer: text, one of the choices, or data that matches the schema."""
        if schema is not None:
            check_schema(schema)  # an invalid schema could never be answered
        session = await self._ensure_open()
        args: dict[str, object] = {"question": question}
        args |= {"choices": list(choices)} if choices else {}
        args |= {"schema": schema} if schema else {}
        window = None if expires_in_seconds is None else int(expires_in_seconds * 1000)
        call = await session.make_call(QUESTION_SPEC, args, window)
        outcome = await self._backend.ask(call, QUESTION_SPEC)
        if isinstance(outcome, Waiting):
            outcome = await session.wait_decided(outcome.approval_id)
        if isinstance(outcome, Answered):
            return outcome.message
        raise to_not_run_error(outcome, QUESTION_TOOL)

    # The gate's methods, for custom agent loops

    async def check(self, call: ToolCall, spec: ToolSpec | None = None) -> Outcome:
        """Check a call against the policy; a tool not registered here counts as unknown and asks for approval."""
        await self._ensure_open()
        if spec is not None:
            self._specs[spec.name] = spec
        return await self._backend.check(_normalize_call(call), self._spec(call.tool))

    async def wait(self, approval_id: str, timeout: float | None = None) -> Outcome:
        await self._ensure_open()
        if timeout == 0:
            return await self._backend.wait(approval_id, timeout)
        async with self._lines.while_waiting(self._backend, approval_id):
            return await self._backend.wait(approval_id, timeout)

    async def start(self, approval_id: str) -> Execution:
        await self._ensure_open()
        return await self._backend.start(approval_id, self._specs.get(await self._backend.tool_name(approval_id)))

    async def renew(self, approval_id: str, fence: int) -> ApprovalStatus:
        await self._ensure_open()
        return await self._backend.renew(approval_id, fence)

    async def finish(self, approval_id: str, fence: int, result: object = None, *, error: str = "") -> ApprovalStatus:
        """Record the result, or with `error` the failure."""
        await self._ensure_open()
        payload = Payload(error=error) if error else Payload(result=stored_result(result))
        return await self._backend.finish(approval_id, fence, ok=not error, payload=payload)

    async def cancel(self, approval_id: str, reason: str = "") -> ApprovalStatus:
        await self._ensure_open()
        return await self._backend.cancel(approval_id, reason)

    async def decide(self, approval_id: str, decision: Decision, reviewer: str | Reviewer) -> ApprovalStatus:
        """Decide as a person: `reviewer` is trusted over a database; over a server it must be the owner of the key."""
        await self._ensure_connected()
        return await self._backend.decide(approval_id, decision, reviewer)

    def _spec(self, tool: str) -> ToolSpec:
        return self._specs.get(tool) or ToolSpec(tool)

    # Approvals as values, without a run

    async def approvals(self, **filters: Unpack[ApprovalFilters]) -> AsyncIterator[ApprovalRecord]:
        """Iterate over approvals, the newest first, or with status="pending" those that expire first.

        All filters have to match. Approvals are read in pages, so that any number of them can be iterated. With an
        agent's key for a server: the key's own calls, always the newest first.
        """
        query, cursor = _approval_query(**filters), ""  # type: ApprovalQuery, str | None
        await self._ensure_connected()
        while cursor is not None:
            items, cursor = await self._backend.list_approvals(dataclasses.replace(query, cursor=cursor))
            for record in items:
                yield record

    def approvals_sync(self, **filters: Unpack[ApprovalFilters]) -> Iterator[ApprovalRecord]:
        query, cursor = _approval_query(**filters), ""  # type: ApprovalQuery, str | None
        loop_thread = self._connect_locked()
        while cursor is not None:
            items, cursor = loop_thread.run(self._backend.list_approvals(dataclasses.replace(query, cursor=cursor)))
            yield from items

    async def approval(self, approval_id: str) -> ApprovalRecord:
        """One approval with its arguments and its result. Raises NotFound."""
        await self._ensure_connected()
        return await self._backend.show_approval(approval_id)

    def approval_sync(self, approval_id: str) -> ApprovalRecord:
        return self._connect_locked().run(self._backend.show_approval(approval_id))

    async def stats(self) -> ApprovalStats:
        """Approvals of the workspace, counted; over a server, with the key of a person."""
        await self._ensure_connected()
        return await self._backend.stats()

    def stats_sync(self) -> ApprovalStats:
        return self._connect_locked().run(self._backend.stats())

    # Opening and closing

    def open(self) -> RunSession:
        """Open the database, apply the policy and acquire the run; idempotent."""
        with self._opening:
            if self._session is None:
                self._session = self._start_session(self._connect())
            return self._session

    def close(self, *, finished: bool = True) -> None:
        with self._opening:
            session, loop_thread = self._session, self._loop_thread
            self._session = self._loop_thread = None
        if loop_thread is None:
            return
        atexit.unregister(self._at_exit)
        loop_thread.run(self._close(session, finished=finished))
        loop_thread.close()

    def _connect(self) -> LoopThread:
        """Open the backend without a run."""
        if self._loop_thread is None:
            loop_thread = LoopThread()
            try:
                loop_thread.run(self._backend.open(loop_thread))
            except BaseException:
                loop_thread.close()
                raise
            self._loop_thread = loop_thread
            atexit.register(self._at_exit)
        return self._loop_thread

    def _connect_locked(self) -> LoopThread:
        with self._opening:
            return self._connect()

    async def _ensure_connected(self) -> None:
        if self._loop_thread is None:
            await asyncio.to_thread(self._connect_locked)

    def _start_session(self, loop_thread: LoopThread) -> RunSession:
        session = RunSession(self._backend, self.program, self._run_id, self._lines)
        try:
            loop_thread.run(session.open())
        except BaseException:
            atexit.unregister(self._at_exit)
            self._loop_thread = None
            loop_thread.run(self._backend.close())
            loop_thread.close()
            raise
        return session

    async def _ensure_open(self) -> RunSession:
        if self._session is not None:
            return self._session
        return await asyncio.to_thread(self.open)

    async def _close(self, session: RunSession | None, *, finished: bool) -> None:
        if session is not None:
            await session.close(finished=finished)
        await self._backend.close()

    @property
    def is_open(self) -> bool:
        return self._session is not None

    @property
    def loop_thread(self) -> LoopThread:
        assert self._loop_thread is not None  # noqa: S101  set by `open`
        return self._loop_thread

    def _at_exit(self) -> None:
        """Leave the run of a crashed program open, so that its next start repeats no approval."""
        crash = getattr(sys, "last_value", None)
        with suppress(Exception):
            self.close(finished=_is_finished(crash))

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close(finished=_is_finished(error))

    async def __aenter__(self) -> Self:
        await self._ensure_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await asyncio.to_thread(functools.partial(self.close, finished=_is_finished(error)))


def _normalize_call(call: ToolCall) -> ToolCall:
    """Validate a ToolCall that was built by hand with a mapping as arguments."""
    fields: dict[str, Any] = {each.name: getattr(call, each.name) for each in dataclasses.fields(call) if each.compare}
    return call if isinstance(fields["args"], bytes) else propose(**fields)


def _approval_query(
    *,
    status: str | Sequence[str] = (),
    thread: str = "",
    user: str = "",
    tool: str = "",
    agent: str = "",
    run_id: str = "",
) -> ApprovalQuery:
    statuses = (status,) if isinstance(status, str) else tuple(status)
    return ApprovalQuery(
        tuple(filter(None, statuses)),
        thread_id=thread,
        person=user,
        tool=tool,
        agent=agent,
        run_id=run_id,
        limit=LISTED_AT_ONCE,
    )


def _is_finished(error: BaseException | None) -> bool:
    """Whether the run has nothing left to continue: a clean end, an interrupt, or a NotRun other than CallUnknown."""
    if isinstance(error, CallUnknown):
        return False
    return error is None or isinstance(error, KeyboardInterrupt | asyncio.CancelledError | NotRun)


NOT_WITH_SERVER = {
    "policy": "its own policy counts. Put it in force there (interlock policy put FILE).",
    "tool_approvals": "set it there, under agents: in interlock.yaml.",
    "retention": "it erases by its own storage.retention, in interlock.yaml.",
}


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """Options of the backend; None or empty means not given."""

    policy: str | Path | Mapping[str, Any] | None = None
    tool_approvals: Mapping[str, bool] | None = None
    retention: str | None = None
    key: str | None = field(default=None, repr=False)
    insecure: bool = False


def make_backend(url: str, program: ProgramIdentity, options: BackendOptions) -> Backend:
    match url.partition("://")[0].lower():
        case "http" | "https":
            return _remote_backend(url, program, options)
        case _:
            return _embedded_backend(url, program, options)


def _remote_backend(url: str, program: ProgramIdentity, options: BackendOptions) -> Backend:
    for name, where in NOT_WITH_SERVER.items():
        if getattr(options, name) is not None:
            raise Misconfigured(f"{name}= cannot be used with a server: {where}")
    if program.workspace != DEFAULT_WORKSPACE:
        raise Misconfigured("workspace= does not go with a server: a key belongs to one workspace, and leads there.")
    lease = program.lease / 1000
    return RemoteBackend(Client(url, options.key, lease_seconds=lease, insecure=options.insecure), program)


def _embedded_backend(url: str, program: ProgramIdentity, options: BackendOptions) -> Backend:
    if options.key is not None:
        raise Misconfigured("key= goes with a server's address, such as https://interlock.example alone.")
    kept_for = None if options.retention is None else parse_duration(options.retention)
    toggles = {program.agent: dict(options.tool_approvals or {})}
    return EmbeddedBackend(build_services(url, retention=kept_for), program, options.policy, toggles)
