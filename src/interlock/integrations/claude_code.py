"""Hooks of Claude Code and the Claude Agent SDK: check a tool call before it runs, and record how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from interlock.core.call import Args, ToolCall, ToolSpec, propose
from interlock.core.canonical import canonical, digest, read_canonical
from interlock.core.errors import AlreadyStarted, Error, InvalidRequest, Misconfigured
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting

if TYPE_CHECKING:
    from interlock.sdk.agent import Agent
    from interlock.sdk.session import RunSession
from interlock.core.confusables import matches_pattern
from interlock.presenters.model_message import plain_text

__all__ = ["hooks"]


UNDECIDED = ("deny", "ask", "defer")
WAIT = 540.0  # seconds; a hook that exceeds Claude Code's own timeout, 600 by default, decides nothing
GRACE = 50.0  # seconds after the wait within which a hook answers in any case
RACE_POLL = 5.0  # seconds between checks whether another hook started the same call
MAX_SAME_CALLS = 100  # maximum of identical finished calls without an id


class StartedCall(Protocol):
    @property
    def approval_id(self) -> str: ...
    @property
    def fence(self) -> int: ...
    @property
    def args(self) -> bytes: ...


class HookBackend(Protocol):
    """The gate as a hook uses it, over a database or a server."""

    async def check(self, call: ToolCall, spec: ToolSpec) -> Outcome: ...
    async def wait(self, approval_id: str, timeout: float | None = None) -> Outcome: ...
    async def start(self, approval_id: str, spec: ToolSpec | None) -> StartedCall: ...
    async def finish(self, approval_id: str, fence: int, *, ok: bool, payload: Payload) -> object: ...
    async def abandon(self, approval_id: str, fence: int) -> object: ...
    async def cancel(self, approval_id: str, reason: str) -> object: ...


class HookNotes(Protocol):
    """Notes from one hook to a later one: running calls, and calls whose approval was still pending."""

    def note(self, key: str, text: str) -> None: ...

    def find(self, key: str) -> str:
        """The note; empty if there is none."""

    def drop(self, key: str) -> None: ...


@dataclass(frozen=True, slots=True)
class HookIdentity:
    """The identity behind the calls; `path` are the agents from the outermost one."""

    workspace: str
    user: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HookOptions:
    """Options of a hook.

    `approval_link_template` is a link or command that shows an approval, with {id} as placeholder.
    """

    reads: tuple[str, ...] = ()
    wait: float = WAIT
    undecided: str = "deny"
    pass_reads: bool = False
    approval_link_template: str = "approval {id}"


@dataclass(frozen=True)
class Hook:
    backend: HookBackend
    notes: HookNotes
    identity: HookIdentity
    options: HookOptions = field(default_factory=HookOptions)

    async def answer(self, event: HookEvent) -> HookAnswer:
        """Allow a call only after starting it at the gate; a second hook with the same call id is denied."""
        if event.name in AFTER:
            await self._record_end(event)
            return HookAnswer("")
        spec, undecided = make_tool_spec(event, self.options.reads), _note_key("undecided", event, event.call_digest)
        call, outcome = await self._check_call(event, spec, self.notes.find(undecided))
        if isinstance(outcome, Waiting) and outcome.status != "running":
            outcome = await self._wait_decided(outcome.approval_id)
        match outcome:
            case Waiting(approval_id, status) if status != "running":
                return await self._undecided_answer(event, call, approval_id, undecided)
            case Proceed(_, ""):
                return HookAnswer("" if self.options.pass_reads else "allow")
            case Proceed(_, approval_id):
                answer = await self._start_call(event, spec, approval_id)
            case _:
                answer = HookAnswer("deny", denial_reason(outcome, event.tool))
        self.notes.drop(undecided)
        return answer

    async def _wait_decided(self, approval_id: str) -> Outcome:
        """Wait for a decision; returns early if another hook started the call, since this one will not run it."""
        now = asyncio.get_running_loop().time
        end = now() + self.options.wait
        while True:
            outcome = await self.backend.wait(approval_id, max(0.0, min(RACE_POLL, end - now())))
            if not isinstance(outcome, Waiting) or outcome.status == "running" or now() >= end:
                return outcome

    async def withdraw(self, event: HookEvent, args: Args) -> None:
        """Record that a started call did not run, because the answer could not be delivered to Claude Code."""
        await self._finish([_running_key(event, args)], Payload(error="It was not run: nobody listened."), ok=False)

    async def _check_call(self, event: HookEvent, spec: ToolSpec, undecided: str) -> tuple[ToolCall, Outcome]:
        """Check the call. One without an id is matched to the first identical call that has not ended."""
        for call_id in [undecided or event.id] if event.id else _candidate_call_ids(event):
            call = self._call(event, call_id)
            outcome = await self.backend.check(call, spec)
            if event.id or not _is_over(outcome):
                return call, outcome
        raise InvalidRequest(
            f"{event.tool} was called {MAX_SAME_CALLS} times with these arguments. Begin a new session."
        )

    async def _start_call(self, event: HookEvent, spec: ToolSpec, approval_id: str) -> HookAnswer:
        try:
            started = await self.backend.start(approval_id, spec)
        except AlreadyStarted:
            return HookAnswer("deny", denial_reason(Waiting(approval_id, "running"), event.tool))
        args = cast(Args, read_canonical(started.args))
        try:
            self.notes.note(_running_key(event, args), f"{approval_id} {started.fence}")
        except OSError as error:
            payload = Payload(error="It was not run: the hook could not keep a note of it.")
            await self.backend.finish(approval_id, started.fence, ok=False, payload=payload)
            raise Misconfigured(f"The hook cannot keep notes, so nothing was run: {error.strerror}.") from None
        return HookAnswer("allow", f"Allowed by Interlock: {approval_id}", args)

    async def _undecided_answer(self, event: HookEvent, call: ToolCall, approval_id: str, key: str) -> HookAnswer:
        where = self.options.approval_link_template.replace("{id}", approval_id)
        if self.options.undecided == "ask":
            await self.backend.cancel(approval_id, "Nobody decided in time: Claude Code asks its own user.")
            return HookAnswer("ask", f"Nobody decided in time ({where}).")
        if event.id:
            self.notes.note(key, call.call_id)
        again = f"To go on, call {event.tool} again with the same arguments: nobody is asked twice."
        return HookAnswer(self.options.undecided, f"Nobody has decided about this call yet ({where}). {again}")

    async def _record_end(self, event: HookEvent) -> None:
        """Record how a call ended. One that was checked without an id is found by its arguments."""
        payload = None if event.interrupted else event_payload(event)
        await self._finish(_end_keys(event), payload, ok=event.name == "PostToolUse")

    async def _finish(self, keys: Sequence[str], payload: Payload | None, *, ok: bool) -> None:
        """Finish a call that was started by this hook; ignores others, such as reads and calls of another hook."""
        key = next(filter(self.notes.find, keys), "")
        if not key:
            return
        approval_id, _, fence = self.notes.find(key).partition(" ")
        self.notes.drop(key)
        if payload is None:
            await self.backend.abandon(approval_id, int(fence))
        else:
            await self.backend.finish(approval_id, int(fence), ok=ok, payload=payload)

    def _call(self, event: HookEvent, call_id: str) -> ToolCall:
        path = (*self.identity.path, *filter(None, [event.sub_agent]))
        known: dict[str, object] = {
            "workspace": self.identity.workspace,
            "requester": self.identity.user,
            "setting": "paused",
        }
        known |= {"agent": path[-1], "agent_path": path, "thread_id": event.session}
        return propose(event.tool, event.args, event.session, call_id, **known)


def _is_over(outcome: Outcome) -> bool:
    """Whether the next identical call is a new one. A refusal without an approval is evaluated again."""
    match outcome:
        case Finished() | Answered() | Waiting(_, "running"):
            return True
        case Refused(approval_id=approval_id):
            return bool(approval_id)
        case _:
            return False


def _candidate_call_ids(event: HookEvent) -> Iterator[str]:
    return (f"{event.tool[:100]}:{event.call_digest}:{number}" for number in range(1, MAX_SAME_CALLS + 1))


def _running_key(event: HookEvent, args: Args) -> str:
    """The key of the note for the hook after the tool: the call id, else the arguments that ran, possibly edited."""
    return _note_key("running", event, event.id or event.digest_with(args))


def _end_keys(event: HookEvent) -> tuple[str, str]:
    """The keys under which the hook after the tool looks for the note: with the arguments that ran, then without id."""
    return _running_key(event, event.args), _note_key("running", event, event.call_digest)


def _note_key(sort: str, event: HookEvent, name: str) -> str:
    return digest(canonical([sort, event.session, name]))


# The same hooks inside a program, for the Claude Agent SDK


def hooks(
    matcher: Callable[..., Any], agent: Agent, *, reads: str = "", wait: float = WAIT, undecided: str = "deny"
) -> dict[str, list[Any]]:
    """Hooks for `ClaudeAgentOptions(hooks=hooks(HookMatcher, lock.agent("coder"), reads="claude-code"))`."""
    if undecided not in UNDECIDED:
        raise InvalidRequest(f"undecided is one of {', '.join(UNDECIDED)}.")
    calls = HookCallbacks(
        agent,
        HookOptions(parse_reads(reads), wait, undecided, approval_link_template=agent.interlock.approval_link_template),
    )
    after = [matcher(hooks=[calls.after])]
    before = matcher(hooks=[calls.before], timeout=wait + GRACE, on_failure="block")
    return {"PreToolUse": [before], "PostToolUse": after, "PostToolUseFailure": after}


class HookCallbacks:
    """Two callbacks for a HookMatcher. The lease is renewed while a tool runs, from a thread that it cannot block."""

    def __init__(self, agent: Agent, hook_options: HookOptions) -> None:
        self._agent = agent
        self._options = hook_options
        self._notes = MemoryNotes()

    async def before(self, data: Mapping[str, Any], _: str | None, __: object) -> dict[str, object]:
        try:
            event = parse_event(data)
            answer = await (await self._hook()).answer(event)
        except Exception as error:  # noqa: BLE001  after any error the tool must not run
            words = error.message if isinstance(error, Error) else f"The hook failed: {type(error).__name__}."
            return answer_json("PreToolUse", HookAnswer("deny", words))
        if answer.args is not None:
            approval_id, _, fence = self._notes.find(_running_key(event, answer.args)).partition(" ")
            (await self._session()).leases.add(approval_id, int(fence))
        return answer_json(event.name, answer)

    async def after(self, data: Mapping[str, Any], _: str | None, __: object) -> dict[str, object]:
        event = parse_event(data)
        noted = next(filter(None, map(self._notes.find, _end_keys(event))), "")
        (await self._session()).leases.discard(noted.partition(" ")[0])
        await (await self._hook()).answer(event)
        return {}

    async def _hook(self) -> Hook:
        program, backend = self._agent.interlock.program, (await self._session()).backend
        identity = HookIdentity(program.workspace, program.user, self._agent.path)
        return Hook(backend, self._notes, identity, self._options)

    async def _session(self) -> RunSession:
        lock = self._agent.interlock
        return lock.open() if lock.is_open else await asyncio.to_thread(lock.open)


class MemoryNotes:
    """Notes in memory, which live as long as the program and its session."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def note(self, key: str, text: str) -> None:
        self._kept[key] = text

    def find(self, key: str) -> str:
        return self._kept.get(key, "")

    def drop(self, key: str) -> None:
        self._kept.pop(key, None)


BEFORE = ("PreToolUse", "PermissionRequest")
AFTER = ("PostToolUse", "PostToolUseFailure")
MAX_KEPT = 64 * 1024  # bytes of a result that are stored unchanged
MAX_MODEL_TEXT = 8_000  # characters; a longer answer is truncated for the model
READ_PRESETS: Mapping[str, tuple[str, ...]] = {
    # Tools that only read, or change nothing but the session itself. Not included: WebFetch and WebSearch, which send
    # text of the model to others, and Bash, which can do anything. Calls of sub-agents also trigger the hook.
    "claude-code": (
        *("Read", "Glob", "Grep", "LS", "LSP", "NotebookRead", "BashOutput", "TaskOutput", "ToolSearch"),
        *("TodoRead", "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "CronList"),
        *("ListMcpResourcesTool", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Agent", "Task"),
    )
}


# Input of the hook


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """A hook event about one call. `id` is its tool_use_id; empty if there is none."""

    name: str
    session: str
    tool: str
    args: Args
    id: str = ""
    sub_agent: str = ""
    cwd: str = ""
    response: object = None
    error: str = ""
    interrupted: bool = False

    @property
    def call_digest(self) -> str:
        """A digest that identical calls of one agent share."""
        return self.digest_with(self.args)

    def digest_with(self, args: Args) -> str:
        return digest(canonical([self.sub_agent, self.tool, args]))


def parse_event(data: object) -> HookEvent:
    """Parse an event; raises InvalidRequest for any message that this hook does not answer."""
    if not isinstance(data, Mapping):
        raise InvalidRequest("What came in is not an event of Claude Code: it is no JSON object.")
    name = _text(data, "hook_event_name", needed=True)
    if name not in BEFORE + AFTER:
        raise InvalidRequest(
            f"This hook answers {', '.join(BEFORE + AFTER)}. Take it out of the hooks of {name[:50]!r}."
        )
    args, response = data.get("tool_input"), data.get("tool_response")
    if not isinstance(args, Mapping):
        raise InvalidRequest(f"The event {name} has no tool_input.")
    return HookEvent(
        name=name,
        session=_text(data, "session_id", needed=True),
        tool=_text(data, "tool_name", needed=True),
        args=args,
        id=_text(data, "tool_use_id"),
        sub_agent=_text(data, "agent_type") if data.get("agent_id") else "",
        cwd=_text(data, "cwd"),
        response=response,
        error=_text(data, "error"),
        interrupted=data.get("is_interrupt") is True
        or (isinstance(response, Mapping) and response.get("interrupted") is True),
    )


def _text(data: Mapping[str, object], name: str, *, needed: bool = False) -> str:
    value = data.get(name) or ""
    if not isinstance(value, str) or (needed and not value):
        raise InvalidRequest(f"The event has no {name}.")
    return value


# Tools of Claude Code


def parse_reads(text: str) -> tuple[str, ...]:
    """Parse `Read,Glob,mcp__docs__*`; names of presets are expanded."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    found = tuple(dict.fromkeys(each for name in names for each in READ_PRESETS.get(name, (name,))))
    if any(not name.strip("*?") for name in found):
        raise InvalidRequest("That would count every tool as a read. Name those that only look.")
    return found


def make_tool_spec(event: HookEvent, reads: tuple[str, ...]) -> ToolSpec:
    """The spec of a tool; an unknown tool asks for approval.

    The preview's folder comes from Claude Code, not the model.
    """
    is_read = any(matches_pattern(event.tool, name) for name in reads)
    effect, describe, schema = TOOL_HINTS.get(event.tool, ("", "", None))
    preview = (lambda _: f"In the folder {event.cwd}") if event.cwd else None
    return ToolSpec(event.tool, "read" if is_read else effect, schema=schema, describe=describe, preview=preview)


def _object_schema(needed: str, **types: str) -> dict[str, object]:
    """An object schema that allows additional properties, since a newer Claude Code may have more."""
    properties = {name: {"type": sort} for name, sort in types.items()}
    return {"type": "object", "properties": properties, "required": needed.split()}


EDIT_FIELDS = {"file_path": "string", "old_string": "string", "new_string": "string", "replace_all": "boolean"}
RUN_FIELDS = {"command": "string", "description": "string", "timeout": "number", "run_in_background": "boolean"}
ToolHint = tuple[str, str, dict[str, object] | None]
TOOL_HINTS: Mapping[str, ToolHint] = {  # for the card: a description and a form, and edits are validated
    "Bash": ("", "Run {command}", _object_schema("command", **RUN_FIELDS)),
    "Write": ("write", "Write {file_path}", _object_schema("file_path content", file_path="string", content="string")),
    "Edit": ("write", "Change {file_path}", _object_schema("file_path old_string new_string", **EDIT_FIELDS)),
    "WebFetch": ("", "Fetch {url}", _object_schema("url", url="string", prompt="string")),
}


# Output of the hook


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """`decision` is allow, deny, ask, defer, or empty for no answer. `args` are the approved arguments."""

    decision: str
    reason: str = ""
    args: Args | None = None


def answer_json(event: str, answer: HookAnswer) -> dict[str, object]:
    """The answer in the output format of the event."""
    if not answer.decision or event in AFTER:
        return {}
    if event == "PermissionRequest":
        return _permission_json(answer)
    told: dict[str, object] = {"hookEventName": "PreToolUse", "permissionDecision": answer.decision}
    told |= {"permissionDecisionReason": answer.reason} if answer.reason else {}
    told |= {"updatedInput": answer.args} if answer.args is not None else {}
    return {"hookSpecificOutput": told}


def _permission_json(answer: HookAnswer) -> dict[str, object]:
    """The answer to a PermissionRequest: allow or deny. No answer makes Claude Code ask its user, as `ask` does."""
    match answer.decision:
        case "allow":
            decision: dict[str, object] = {"behavior": "allow"}
            decision |= {"updatedInput": answer.args} if answer.args is not None else {}
        case "ask":
            return {}
        case _:
            decision = {"behavior": "deny", "message": answer.reason}
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}


def denial_reason(outcome: Outcome, tool: str) -> str:
    """The message for the model about a call that must not or need not run."""
    match outcome:
        case Waiting() | Proceed():
            words = f"{tool} was already started under this id, and runs at most once. Wait for what comes of it."
        case Finished("succeeded"):
            words = f"{tool} ran before under this id and is not run again. Its result: {plain_text(outcome, tool)}"
        case Finished("failed"):
            words = f"{tool} ran before under this id, failed, and is not run again: {plain_text(outcome, tool)}"
        case _:
            words = plain_text(outcome, tool)
    return words if len(words) <= MAX_MODEL_TEXT else f"{words[:MAX_MODEL_TEXT]}…"


# Results


def event_payload(event: HookEvent) -> Payload:
    """The payload for the ledger: the error as text, or the result, truncated if it is long."""
    if event.name == "PostToolUseFailure":
        return Payload(error=_storable(event.error or "It failed.")[:2_000])
    try:
        kept = canonical(event.response)
    except (InvalidRequest, ValueError):
        kept = canonical(_storable(repr(event.response))[:2_000])
    if len(kept) > MAX_KEPT:
        kept = canonical(f"{kept[:2_000].decode('utf-8', 'ignore')}… ({len(kept):,} bytes)")
    return Payload(result=kept)


def _storable(text: str) -> str:
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
