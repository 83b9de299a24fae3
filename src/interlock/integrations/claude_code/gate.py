"""The gate of Claude Code, behind its hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from interlock.core.call import Args, ToolCall, ToolSpec, propose
from interlock.core.canonical import canonical, digest, read_canonical
from interlock.core.errors import AlreadyStarted, Error, InvalidRequest, Misconfigured
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting
from interlock.integrations.claude_code.messages import (
    AFTER,
    HookAnswer,
    HookEvent,
    answer_json,
    denial_reason,
    event_payload,
    make_tool_spec,
    parse_event,
    parse_reads,
)

if TYPE_CHECKING:
    from interlock.sdk.agent import Agent

UNDECIDED = ("deny", "ask", "defer")
WAIT = 540.0  # seconds: a hook that Claude Code ends after its own limit, 600 by default, has decided nothing
GRACE = 50.0  # seconds beyond the wait within which a hook has answered whatever happens
RACE_POLL = 5.0  # seconds until it is seen that another hook was quicker
MAX_SAME_CALLS = 100  # calls that are alike, have no id, and have ended


class StartedCall(Protocol):
    @property
    def approval_id(self) -> str: ...
    @property
    def fence(self) -> int: ...
    @property
    def args(self) -> bytes: ...


class HookBackend(Protocol):
    """What a hook needs of the gate, be it over a database or a server."""

    async def check(self, call: ToolCall, spec: ToolSpec) -> Outcome: ...
    async def wait(self, approval_id: str, timeout: float | None = None) -> Outcome: ...
    async def start(self, approval_id: str, spec: ToolSpec | None) -> StartedCall: ...
    async def finish(self, approval_id: str, fence: int, *, ok: bool, payload: Payload) -> object: ...
    async def abandon(self, approval_id: str, fence: int) -> object: ...
    async def cancel(self, approval_id: str, reason: str) -> object: ...


class HookNotes(Protocol):
    """What a hook leaves for a later one: which call is running, and about which nobody had decided."""

    def note(self, key: str, text: str) -> None: ...

    def find(self, key: str) -> str:
        """Empty if nothing was noted."""

    def drop(self, key: str) -> None: ...


@dataclass(frozen=True, slots=True)
class HookIdentity:
    """Whose calls these are; `path` are the agents from the outermost on."""

    workspace: str
    user: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HookOptions:
    """What whoever sets the hook up says of it. `link` leads to an approval, with {id} in it."""

    reads: tuple[str, ...] = ()
    wait: float = WAIT
    undecided: str = "deny"
    pass_reads: bool = False
    link: str = "approval {id}"


@dataclass(frozen=True)
class Hook:
    door: HookBackend
    book: HookNotes
    who: HookIdentity
    wanted: HookOptions = field(default_factory=HookOptions)

    async def answer(self, event: HookEvent) -> HookAnswer:
        """Allows a call only once it was started at the gate: whoever comes second under its id is denied."""
        if event.name in AFTER:
            await self._ended(event)
            return HookAnswer("")
        spec, undecided = make_tool_spec(event, self.wanted.reads), _note_key("undecided", event, event.alike)
        call, outcome = await self._looked(event, spec, self.book.find(undecided))
        if isinstance(outcome, Waiting) and outcome.status != "running":
            outcome = await self._waited(outcome.approval_id)
        match outcome:
            case Waiting(approval_id, status) if status != "running":
                return await self._undecided(event, call, approval_id, undecided)
            case Proceed(_, ""):
                return HookAnswer("" if self.wanted.pass_reads else "allow")
            case Proceed(_, approval_id):
                answer = await self._begun(event, spec, approval_id)
            case _:
                answer = HookAnswer("deny", denial_reason(outcome, event.tool))
        self.book.drop(undecided)
        return answer

    async def _waited(self, approval_id: str) -> Outcome:
        """A call that another hook has started meanwhile needs no more waiting: this one will not run it."""
        now = asyncio.get_running_loop().time
        end = now() + self.wanted.wait
        while True:
            outcome = await self.door.wait(approval_id, max(0.0, min(RACE_POLL, end - now())))
            if not isinstance(outcome, Waiting) or outcome.status == "running" or now() >= end:
                return outcome

    async def withdrawn(self, event: HookEvent, args: Args) -> None:
        """It was started, and Claude Code could not be told that it may run."""
        await self._finish([_running_key(event, args)], Payload(error="It was not run: nobody listened."), ok=False)

    async def _looked(self, event: HookEvent, spec: ToolSpec, undecided: str) -> tuple[ToolCall, Outcome]:
        """A call without an id is the next one of those that are alike and have not ended."""
        for call_id in [undecided or event.id] if event.id else _candidate_call_ids(event):
            call = self._call(event, call_id)
            outcome = await self.door.check(call, spec)
            if event.id or not _is_over(outcome):
                return call, outcome
        raise InvalidRequest(
            f"{event.tool} was called {MAX_SAME_CALLS} times with these arguments. Begin a new session."
        )

    async def _begun(self, event: HookEvent, spec: ToolSpec, approval_id: str) -> HookAnswer:
        try:
            started = await self.door.start(approval_id, spec)
        except AlreadyStarted:
            return HookAnswer("deny", denial_reason(Waiting(approval_id, "running"), event.tool))
        args = cast(Args, read_canonical(started.args))
        try:
            self.book.note(_running_key(event, args), f"{approval_id} {started.fence}")
        except OSError as error:
            payload = Payload(error="It was not run: the hook could not keep a note of it.")
            await self.door.finish(approval_id, started.fence, ok=False, payload=payload)
            raise Misconfigured(f"The hook cannot keep notes, so nothing was run: {error.strerror}.") from None
        return HookAnswer("allow", f"Allowed by Interlock: {approval_id}", args)

    async def _undecided(self, event: HookEvent, call: ToolCall, approval_id: str, key: str) -> HookAnswer:
        where = self.wanted.link.replace("{id}", approval_id)
        if self.wanted.undecided == "ask":
            await self.door.cancel(approval_id, "Nobody decided in time: Claude Code asks its own user.")
            return HookAnswer("ask", f"Nobody decided in time ({where}).")
        if event.id:
            self.book.note(key, call.call_id)
        again = f"To go on, call {event.tool} again with the same arguments: nobody is asked twice."
        return HookAnswer(self.wanted.undecided, f"Nobody has decided about this call yet ({where}). {again}")

    async def _ended(self, event: HookEvent) -> None:
        """Who was asked without an id is found by what ran."""
        keys = [_running_key(event, event.args), _note_key("running", event, event.alike)]
        payload = None if event.interrupted else event_payload(event)
        await self._finish(keys, payload, ok=event.name == "PostToolUse")

    async def _finish(self, keys: Sequence[str], payload: Payload | None, *, ok: bool) -> None:
        """A call that was not started here has nothing to finish: a read, or one of another hook."""
        key = next(filter(self.book.find, keys), "")
        if not key:
            return
        approval_id, _, fence = self.book.find(key).partition(" ")
        self.book.drop(key)
        if payload is None:
            await self.door.abandon(approval_id, int(fence))
        else:
            await self.door.finish(approval_id, int(fence), ok=ok, payload=payload)

    def _call(self, event: HookEvent, call_id: str) -> ToolCall:
        path = (*self.who.path, *filter(None, [event.sub_agent]))
        known: dict[str, object] = {"workspace": self.who.workspace, "requester": self.who.user, "setting": "paused"}
        known |= {"agent": path[-1], "agent_path": path, "thread_id": event.session}
        return propose(event.tool, event.args, event.session, call_id, **known)


def _is_over(outcome: Outcome) -> bool:
    """Whether a further call that is alike is another one. What was never put to people is judged anew."""
    match outcome:
        case Finished() | Answered() | Waiting(_, "running"):
            return True
        case Refused(approval_id=approval_id):
            return bool(approval_id)
        case _:
            return False


def _candidate_call_ids(event: HookEvent) -> Iterator[str]:
    return (f"{event.tool[:100]}:{event.alike}:{number}" for number in range(1, MAX_SAME_CALLS + 1))


def _running_key(event: HookEvent, args: Args) -> str:
    """How the hook after the tool finds it: by the id, else by what ran, which people may have changed."""
    return _note_key("running", event, event.id or event.like(args))


def _note_key(sort: str, event: HookEvent, name: str) -> str:
    return digest(canonical([sort, event.session, name]))


# The Agent SDK: the same inside of a program


def hooks(
    matcher: Callable[..., Any], agent: Agent, *, reads: str = "", wait: float = WAIT, undecided: str = "deny"
) -> dict[str, list[Any]]:
    """`ClaudeAgentOptions(hooks=hooks(HookMatcher, lock.agent("coder"), reads="claude-code"))`."""
    if undecided not in UNDECIDED:
        raise InvalidRequest(f"undecided is one of {', '.join(UNDECIDED)}.")
    calls = HookCallbacks(agent, HookOptions(parse_reads(reads), wait, undecided, link=agent.lock.link))
    after = [matcher(hooks=[calls.after])]
    before = matcher(hooks=[calls.before], timeout=wait + GRACE, on_failure="block")
    return {"PreToolUse": [before], "PostToolUse": after, "PostToolUseFailure": after}


class HookCallbacks:
    """Two functions for a HookMatcher. While a tool runs its lease is renewed, from a thread that it cannot block."""

    def __init__(self, agent: Agent, wanted: HookOptions) -> None:
        self._agent = agent
        self._wanted = wanted
        self._book = MemoryNotes()
        self._leases: dict[str, Future[None]] = {}

    async def before(self, told: Mapping[str, Any], _: str | None, __: object) -> dict[str, object]:
        try:
            event = parse_event(told)
            answer = await (await self._hook()).answer(event)
        except Exception as error:  # noqa: BLE001  whatever it is, the tool does not run
            words = error.message if isinstance(error, Error) else f"The hook failed: {type(error).__name__}."
            return answer_json("PreToolUse", HookAnswer("deny", words))
        if answer.args is not None:
            self._keep(_running_key(event, answer.args))
        return answer_json(event.name, answer)

    async def after(self, told: Mapping[str, Any], _: str | None, __: object) -> dict[str, object]:
        event = parse_event(told)
        lease = self._leases.pop(_running_key(event, event.args), None)
        if lease is not None:
            lease.cancel()
        await (await self._hook()).answer(event)
        return {}

    async def _hook(self) -> Hook:
        lock, program = self._agent.lock, self._agent.lock.program
        live = lock.open() if lock.is_open else await asyncio.to_thread(lock.open)
        return Hook(
            live.side, self._book, HookIdentity(program.workspace, program.user, self._agent.path), self._wanted
        )

    def _keep(self, key: str) -> None:
        approval_id, _, fence = self._book.find(key).partition(" ")
        self._leases[key] = self._agent.lock.bridge.submit(self._renewed(approval_id, int(fence)))

    async def _renewed(self, approval_id: str, fence: int) -> None:
        lock = self._agent.lock
        while True:
            await asyncio.sleep(lock.program.lease / 3000)
            with suppress(Error):  # a lease that is lost shows when the tool finishes
                await lock.renew(approval_id, fence)


class MemoryNotes:
    """Lives as long as the program, as its session does."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def note(self, key: str, text: str) -> None:
        self._kept[key] = text

    def find(self, key: str) -> str:
        return self._kept.get(key, "")

    def drop(self, key: str) -> None:
        self._kept.pop(key, None)
