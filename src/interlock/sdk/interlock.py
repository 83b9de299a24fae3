"""Interlock: the object that people import. A decorated function waits for people, then runs at most once."""

from __future__ import annotations

import asyncio
import atexit
import dataclasses
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from interlock.app.bootstrap import approval_link, build_services, os_user
from interlock.app.gate import Execution
from interlock.config.load import fault_plan
from interlock.core.approval.execute import DEFAULT_LEASE
from interlock.core.call import QUESTION_TOOL, ToolCall, ToolSpec, propose
from interlock.core.decision import Decision, Reviewer
from interlock.core.errors import CallUnknown, Misconfigured, NotRun
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Answered, Outcome, Waiting
from interlock.runtime import faults
from interlock.runtime.durations import parse_duration
from interlock.runtime.faults import FaultPoint
from interlock.runtime.json_schema import check_schema
from interlock.runtime.offload import LoopThread
from interlock.runtime.process_identity import make_runner_id
from interlock.sdk.agent import Agent, execute, execute_sync
from interlock.sdk.backend import ApprovalStatus, Backend, ProgramIdentity
from interlock.sdk.client import Client
from interlock.sdk.embedded import EmbeddedBackend
from interlock.sdk.functions import FunctionTool, make_function_tool, stored_result
from interlock.sdk.remote import RemoteBackend
from interlock.sdk.session import CachedResult, RunSession, to_not_run_error

ASK = ToolSpec(QUESTION_TOOL, "read", decisions=("respond",), describe="{question}")


class Interlock:
    """Opened by the first call, closed by `with`, `close()` or the end of the program."""

    def __init__(  # noqa: PLR0913  one parameter for each option
        self,
        url: str = "sqlite:///interlock.db",
        *,
        policy: str | Path | Mapping[str, Any] | None = None,
        agent: str = "",
        run_id: str | None = None,
        workspace: str = "default",
        user: str = "",
        lease_seconds: float = DEFAULT_LEASE / 1000,
        tool_approvals: Mapping[str, bool] | None = None,
        retention: str | None = None,
        key: str | None = None,
        insecure: bool = False,
    ) -> None:
        """`policy` is a file, its text or its content; without it the policy that the database holds stays in force.

        A text that was in force before and was replaced is not put back, unless it says so:
        `{"file": "policy.yaml", "apply": "always"}`.

        `retention`, such as "30d": how long the content of what has ended is kept. Without it nothing is erased here.
        A server's address needs a `key`; its own policy counts. `insecure` allows http:// to another machine.
        """
        name = agent or Path(sys.argv[0]).stem or "agent"
        self.program = ProgramIdentity(workspace, name, user or os_user(), make_runner_id(), int(lease_seconds * 1000))
        self.link = approval_link(url, workspace)
        self._point = faults.parse_fault_plan(fault_plan())
        options = BackendOptions(policy, tool_approvals, retention, key, insecure)
        self._side: Backend = make_backend(url, self.program, options, self._point)
        self._run_id = run_id
        self._specs: dict[str, ToolSpec] = {}
        self._opening = threading.Lock()
        self._bridge: LoopThread | None = None
        self._live: RunSession | None = None

    # Tools

    def tool(  # noqa: PLR0913  one parameter for each thing that is known of a tool
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
        """Gates an async or a sync function. Without an effect the tool counts as unknown, and asks."""
        options: dict[str, Any] = {
            "effect": effect,
            "describe": describe,
            "preview": preview,
            "secret": tuple(secret),
            "idempotent": idempotent,
            "confirm": confirm,
            "decisions": tuple(decisions),
        }
        if body is None:
            return lambda function: self._gated(make_function_tool(function, name, **options))
        return self._gated(make_function_tool(body, name, **options))

    def execution(self) -> Execution | None:
        """Inside a tool: which call is running, with its idempotency key. None inside a read."""
        return self._live.current() if self._live else None

    def _gated(self, function: FunctionTool) -> Callable[..., Any]:
        self._specs[function.spec.name] = function.spec
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
        live = await self._opened()
        decided = await self._decided(live, function, args, kwargs)
        if isinstance(decided, CachedResult):
            return function.result_of(decided.result)
        body = self._effect_async(function)
        return await execute(live, decided, function.spec, lambda: body(**function.unpack(decided.args)))

    def _call_sync(self, function: FunctionTool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        live, bridge = self.open(), self.bridge
        decided = bridge.run(self._decided(live, function, args, kwargs))
        if isinstance(decided, CachedResult):
            return function.result_of(decided.result)
        body = self._effect(function)
        return execute_sync(live, decided, function.spec, lambda: body(**function.unpack(decided.args)), bridge)

    async def _decided(
        self, live: RunSession, function: FunctionTool, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        call = await live.proposed(function.spec, function.bind(args, kwargs))
        return await live.settled(call, function.spec)

    def _effect(self, function: FunctionTool) -> Callable[..., Any]:
        return faults.with_fault_points(self._point, "the tool", function.body)

    def _effect_async(self, function: FunctionTool) -> Callable[..., Any]:
        return faults.with_fault_points_async(self._point, "the tool", function.body)

    # Agents of frameworks

    def agent(self, name: str = "", tool_approvals: Mapping[str, bool] | None = None) -> Agent:
        """What an integration holds: this program's agent, or one of several, each with switches of its own."""
        name = name or self.program.agent
        if tool_approvals is not None:
            self._side.switch(name, tool_approvals)
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
        """Asks a person and gives the answer: text, one of the choices, or data that fits the schema."""
        if schema is not None:
            check_schema(schema)  # otherwise nobody could ever answer
        live = await self._opened()
        args: dict[str, object] = {"question": question}
        args |= {"choices": list(choices)} if choices else {}
        args |= {"schema": schema} if schema else {}
        window = None if expires_in_seconds is None else int(expires_in_seconds * 1000)
        call = await live.proposed(ASK, args, window)
        outcome = await self._side.ask(call, ASK)
        if isinstance(outcome, Waiting):
            outcome = await live.waited(outcome.approval_id)
        if isinstance(outcome, Answered):
            return outcome.message
        raise to_not_run_error(outcome, QUESTION_TOOL)

    # The doors, for those who drive the loop themselves

    async def check(self, call: ToolCall, spec: ToolSpec | None = None) -> Outcome:
        """What to do about a call; a tool of which nothing is known here counts as unknown, and asks."""
        await self._opened()
        if spec is not None:
            self._specs[spec.name] = spec
        return await self._side.check(_normalize_call(call), self._spec(call.tool))

    async def wait(self, approval_id: str, timeout: float | None = None) -> Outcome:
        await self._opened()
        return await self._side.wait(approval_id, timeout)

    async def start(self, approval_id: str) -> Execution:
        await self._opened()
        return await self._side.start(approval_id, self._specs.get(await self._side.tool_of(approval_id)))

    async def renew(self, approval_id: str, fence: int) -> ApprovalStatus:
        await self._opened()
        return await self._side.renew(approval_id, fence)

    async def finish(self, approval_id: str, fence: int, result: object = None, *, error: str = "") -> ApprovalStatus:
        """With `error` the call ended as failed."""
        await self._opened()
        payload = Payload(error=error) if error else Payload(result=stored_result(result))
        return await self._side.finish(approval_id, fence, ok=not error, payload=payload)

    async def cancel(self, approval_id: str, reason: str = "") -> ApprovalStatus:
        await self._opened()
        return await self._side.cancel(approval_id, reason)

    async def decide(self, approval_id: str, decision: Decision, reviewer: str | Reviewer) -> ApprovalStatus:
        """Decides as a person: whoever holds the database says who that is; a server knows by the key."""
        if self._bridge is None:
            await asyncio.to_thread(self._reach_alone)
        return await self._side.decide(approval_id, decision, reviewer)

    def _spec(self, tool: str) -> ToolSpec:
        return self._specs.get(tool) or ToolSpec(tool)

    # Opening and closing

    def open(self) -> RunSession:
        """Opens the database, puts the policy in force and takes up the run; the second time it does nothing."""
        with self._opening:
            if self._live is None:
                self._live = self._begun(self._reach())
            return self._live

    def close(self, *, finished: bool = True) -> None:
        with self._opening:
            live, bridge = self._live, self._bridge
            self._live = self._bridge = None
        if bridge is None:
            return
        atexit.unregister(self._at_exit)
        bridge.run(self._close(live, finished=finished))
        bridge.close()

    def _reach(self) -> LoopThread:
        """Gets hold of the other side, without a run."""
        if self._bridge is None:
            bridge = LoopThread()
            try:
                bridge.run(self._side.open(bridge))
            except BaseException:
                bridge.close()
                raise
            self._bridge = bridge
            atexit.register(self._at_exit)
        return self._bridge

    def _reach_alone(self) -> None:
        with self._opening:
            self._reach()

    def _begun(self, bridge: LoopThread) -> RunSession:
        live = RunSession(self._side, self.program, self._run_id)
        try:
            bridge.run(live.open())
        except BaseException:
            atexit.unregister(self._at_exit)
            self._bridge = None
            bridge.run(self._side.close())
            bridge.close()
            raise
        return live

    async def _opened(self) -> RunSession:
        if self._live is not None:
            return self._live
        return await asyncio.to_thread(self.open)

    async def _close(self, live: RunSession | None, *, finished: bool) -> None:
        if live is not None:
            await live.close(finished=finished)
        await self._side.close()

    @property
    def is_open(self) -> bool:
        return self._live is not None

    @property
    def bridge(self) -> LoopThread:
        assert self._bridge is not None  # noqa: S101  `open` has just made it
        return self._bridge

    def _at_exit(self) -> None:
        """A program that crashed leaves its run open, so that its next start asks nothing twice."""
        crash = getattr(sys, "last_value", None)
        with suppress(Exception):
            self.close(finished=_is_finished(crash))

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close(finished=_is_finished(error))

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await asyncio.to_thread(functools.partial(self.close, finished=_is_finished(error)))


def _normalize_call(call: ToolCall) -> ToolCall:
    """A ToolCall that was put together by hand, with a mapping as arguments, is checked like any other."""
    fields: dict[str, Any] = {each.name: getattr(call, each.name) for each in dataclasses.fields(call) if each.compare}
    return call if isinstance(fields["args"], bytes) else propose(**fields)


def _is_finished(error: BaseException | None) -> bool:
    """Whether nothing is left to continue: a clean end, a stop by hand, or people who said no."""
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
    """What was given; None or empty is not given."""

    policy: str | Path | Mapping[str, Any] | None = None
    tool_approvals: Mapping[str, bool] | None = None
    retention: str | None = None
    key: str | None = field(default=None, repr=False)
    insecure: bool = False


def make_backend(url: str, program: ProgramIdentity, options: BackendOptions, point: FaultPoint | None) -> Backend:
    match url.partition("://")[0].lower():
        case "http" | "https":
            return _remote_backend(url, program, options, point)
        case _:
            return _embedded_backend(url, program, options, point)


def _remote_backend(url: str, program: ProgramIdentity, options: BackendOptions, point: FaultPoint | None) -> Backend:
    for name, where in NOT_WITH_SERVER.items():
        if getattr(options, name) is not None:
            raise Misconfigured(f"{name}= does not go with a server: {where}")
    if program.workspace != "default":
        raise Misconfigured("workspace= does not go with a server: a key belongs to one workspace, and leads there.")
    lease = program.lease / 1000
    return RemoteBackend(Client(url, options.key, lease_seconds=lease, insecure=options.insecure, point=point), program)


def _embedded_backend(url: str, program: ProgramIdentity, options: BackendOptions, point: FaultPoint | None) -> Backend:
    if options.key is not None:
        raise Misconfigured("key= goes with a server's address, such as https://interlock.example alone.")
    kept_for = None if options.retention is None else parse_duration(options.retention)
    toggles = {program.agent: dict(options.tool_approvals or {})}
    return EmbeddedBackend(build_services(url, point=point, retention=kept_for), program, options.policy, toggles)
