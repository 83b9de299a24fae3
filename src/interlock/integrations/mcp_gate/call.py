"""`tools/call` at the gate: check, wait in a way that the client supports, and run at most once.

It is long because a call, its sealed state and its number in a run belong together.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any, Protocol

from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, JSONRPCError, ProgressToken

from interlock.chat.mcp.definition import StoredDefinitionHistory
from interlock.core.call import MAX_ERROR, Args, ToolCall, ToolSpec
from interlock.core.canonical import canonical, canonical_args, digest, parse_json, plain_json
from interlock.core.errors import EffectUnknown, Error, InvalidRequest, ToolFailed
from interlock.core.outcome import Answered, Finished, Outcome, Refused, Waiting
from interlock.integrations.mcp_gate.frames import CALL_MEMBERS, Object, Rejections, Reply
from interlock.integrations.mcp_gate.upstream import UpstreamLost
from interlock.presenters.model_message import message_text, plain_text, refusal_message
from interlock.sdk.agent import Agent, Executed

STATE_PREFIX = "interlock1."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallState:
    """The `requestState` that the client returns.

    `carried` are params that the upstream server expects with this call.
    """

    approval_id: str
    run_id: str
    call_id: str
    tool: str
    args_sha256: str
    rounds: int = 0
    carried: dict[str, Any] = field(default_factory=dict)

    def next(self) -> CallState:
        return replace(self, rounds=self.rounds + 1)


def is_sealed(state: object) -> bool:
    return isinstance(state, str) and state.startswith(STATE_PREFIX)


def seal(state: CallState, key: bytes) -> str:
    data = canonical(asdict(state))
    return f"{STATE_PREFIX}{_encode_base64(data)}.{_encode_base64(_sign(data, key))}"


def unseal(sealed: str, key: bytes, *, run_id: str, tool: str, args: bytes) -> CallState:
    """Verify and parse a state; raises InvalidRequest if it is not from this gate or belongs to another call."""
    body, _, signature = sealed.removeprefix(STATE_PREFIX).partition(".")
    try:
        data = _decode_base64(body)
        whole = hmac.compare_digest(_decode_base64(signature), _sign(data, key))
    except ValueError:
        whole = False
    if not whole:
        raise InvalidRequest("This requestState was not made by this gate. Nothing was run: call without it.")
    state = CallState(**parse_json(data))  # type: ignore[arg-type]  # the signature shows that it was made here
    if (state.run_id, state.tool, state.args_sha256) != (run_id, tool, digest(args)):
        raise InvalidRequest("This requestState belongs to another call. Nothing was run: call without it.")
    return state


class CallCounter:
    """Numbers for identical calls: a repeated call is a new one only after the final answer to the previous one."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], int] = {}  # all numbers below it are finished
        self._over: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._held: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._met: set[tuple[str, str]] = set()

    def acquire(self, run_id: str, name: str) -> int:
        """The first number that is neither finished nor held by another request."""
        key = run_id, name
        number = self._first.get(key, 1)
        while number in self._held[key] or number in self._over.get(key, ()):
            number += 1
        self._held[key].add(number)
        return number

    def release(self, run_id: str, name: str, number: int, *, is_final: bool) -> None:
        key = run_id, name
        self._held[key].discard(number)
        if not self._held[key]:
            del self._held[key]
        if not is_final:
            return
        self._met.discard((run_id, f"{name}:{number}"))
        done, first = self._over[key], self._first.get(key, 1)
        done.add(number)
        while first in done:
            done.discard(first)
            first += 1
        self._first[key] = first
        if not done:
            del self._over[key]

    def mark_seen(self, run_id: str, call_id: str) -> None:
        self._met.add((run_id, call_id))

    def was_seen(self, run_id: str, call_id: str) -> bool:
        """Whether this process has seen the call waiting."""
        return (run_id, call_id) in self._met


def _sign(data: bytes, key: bytes) -> bytes:
    return hmac.new(key, b"mcp gate state\x00" + data, "sha256").digest()


def _encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode_base64(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii", "replace") + b"=" * (-len(text) % 4), b"-_", validate=True)


PROGRESS_INTERVAL = 5.0  # seconds between two progress notifications
PROGRESS_STEP = 1e-6  # small, so that the server's own progress values are larger
MAX_ROUNDS = 4  # of `wait` seconds each; common clients give up after ten, or after five minutes
DEFINITION_CHANGED = "The server changed the definition of this tool. What was decided was about another one."


@dataclass(frozen=True, slots=True)
class UpstreamTool:
    """A tool as its server defines it now."""

    spec: ToolSpec
    has_output_schema: bool
    run: Callable[[Args, Mapping[str, Any]], Awaitable[Reply]]  # may raise UpstreamLost
    is_hinted_read: bool = False  # declared as read-only by its server


class McpCaller(Protocol):
    """The caller's state and capabilities, as far as waiting needs them."""

    run_id: str
    is_modern: bool
    can_open_urls: bool  # in the user's browser
    token: ProgressToken | None
    cancelled: asyncio.Event
    was_sent_upstream: bool  # from then on the call may have had an effect

    async def find(self, *, fresh: bool) -> UpstreamTool | None: ...
    async def notify(self, method: str, params: Object) -> None: ...
    async def show(self, approval_id: str, message: str, url: str) -> None: ...


class CallCancelled(Exception):
    pass


class UpstreamErrorReply(Exception):
    def __init__(self, reply: Reply) -> None:
        super().__init__("the server answered with an error")
        self.reply = reply


class UpstreamToolFailed(ToolFailed):
    """A failure reported by the server: its text is recorded; the client gets its frame unchanged."""

    def __init__(self, reply: Reply) -> None:
        words = reply.error.message[:2_000] if isinstance(reply, JSONRPCError) else error_text(reply.result)
        super().__init__(words)
        self.reply = reply


class CallRejected(Exception):
    def __init__(self, message: str, code: int = INVALID_PARAMS) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


@dataclass(kw_only=True)
class ClaimedCall:
    """A call with its permanent id; `number` is None if a sealed state identifies it."""

    call: ToolCall
    name: str
    number: int | None
    upstream_params: dict[str, Any]
    rounds: int = 0
    is_final: bool = False
    was_sent: bool = False


@dataclass
class ToolCallHandler:
    """The handler of tool calls, shared by all clients of one gate."""

    agent: Agent
    key: bytes
    _: KW_ONLY
    wait: float = 60.0
    public_url: str = ""
    call_counter: CallCounter = field(default_factory=CallCounter)
    rejections: Rejections = field(default_factory=Rejections)
    definition_history: StoredDefinitionHistory = field(default_factory=StoredDefinitionHistory)
    waiting_calls: dict[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)  # → call, approval

    async def answer(self, caller: McpCaller, params: Mapping[str, Any]) -> Object:
        """The result. Raises UpstreamErrorReply, CallRejected, or CallCancelled if the client no longer waits."""
        tool, arguments = _parse_call(params)
        try:
            found = await caller.find(fresh=False)
            if found is None or found.is_hinted_read or found.spec.effect != "read":
                found = await caller.find(fresh=True)
            if found is None:
                raise CallRejected(f"Unknown tool: {tool}")
            claim = await self._claim(caller, found.spec, arguments, params)
            try:
                return await self._run_to_result(caller, found, claim)
            finally:
                self._release(claim, given=not caller.cancelled.is_set())
        except (UpstreamLost, TimeoutError) as error:
            raise CallRejected(f"The MCP server is not there: {error}. Nothing was run.", INTERNAL_ERROR) from None
        except Error as error:  # nothing was sent: errors after sending are handled in `_attempt`
            return text_result(f"{tool} was not run: {error.message}", failed=True)

    # Identity of a call

    async def _claim(self, caller: McpCaller, spec: ToolSpec, args: Args, params: Mapping[str, Any]) -> ClaimedCall:
        data = canonical_args(args)
        state, carried = self._parse_state(caller, spec.name, data, params)
        name = self._call_name(spec, data, carried)
        await self._void_others(caller.run_id, spec.name, digest(data), name)
        if state is not None and state.call_id.rpartition(":")[0] == name:
            call = self._make_call(caller.run_id, spec.name, args, state.call_id, carried)
            return ClaimedCall(call=call, name=name, number=None, upstream_params=carried, rounds=state.rounds)
        if state is not None:
            await self._void(state.run_id, state.call_id, state.approval_id)
        number = self.call_counter.acquire(caller.run_id, name)
        try:
            call = self._make_call(caller.run_id, spec.name, args, f"{name}:{number}", carried)
        except InvalidRequest:
            self.call_counter.release(caller.run_id, name, number, is_final=False)
            raise
        return ClaimedCall(call=call, name=name, number=number, upstream_params=carried)

    def _parse_state(
        self, caller: McpCaller, tool: str, data: bytes, params: Mapping[str, Any]
    ) -> tuple[CallState | None, dict[str, Any]]:
        """The sealed state of the gate, or params for the server.

        What the client's input says about approval is ignored.
        """
        sealed = params.get("requestState")
        if not is_sealed(sealed):
            return None, {key: params[key] for key in ("requestState", "inputResponses") if params.get(key) is not None}
        try:
            state = unseal(str(sealed), self.key, run_id=caller.run_id, tool=tool, args=data)
        except InvalidRequest as error:
            raise CallRejected(error.message) from None
        return state, state.carried

    def _call_name(self, spec: ToolSpec, data: bytes, carried: Mapping[str, Any]) -> str:
        """The id of identical calls, keyed since arguments may be secret.

        A changed definition makes a different call.
        """
        parts = (spec.sha256.encode(), data, canonical(carried))
        value = hmac.new(self.key, b"\x00".join(digest(part).encode() for part in parts), "sha256").hexdigest()
        return f"{spec.name[:60]}:{value[:40]}"

    def _make_call(self, run_id: str, tool: str, args: Args, call_id: str, carried: Mapping[str, Any]) -> ToolCall:
        responses = carried.get("inputResponses")
        says = f"Input that the server asked for: {plain_json(responses)}"[:20_000] if responses else ""
        return self.agent.call(tool, args, run_id, call_id, agent_says=says)

    async def _void_others(self, run_id: str, tool: str, args_sha256: str, name: str) -> None:
        key = run_id, tool, args_sha256
        known = self.waiting_calls.get(key)
        if known is not None and known[0].rpartition(":")[0] != name:
            del self.waiting_calls[key]
            await self._void(run_id, *known)

    async def _void(self, run_id: str, call_id: str, approval_id: str) -> None:
        """Cancel the approval of a call whose tool was redefined: the decision was about another definition."""
        name, _, number = call_id.rpartition(":")
        self.call_counter.release(run_id, name, int(number), is_final=True)
        with suppress(Error):  # it may have ended already
            await self.agent.interlock.cancel(approval_id, DEFINITION_CHANGED)

    def _release(self, claim: ClaimedCall, *, given: bool) -> None:
        """Release the number. A result that the client did not wait for is kept for the next identical call."""
        if claim.is_final and not given:
            self.call_counter.mark_seen(claim.call.run_id, claim.call.call_id)
            claim.is_final = False
        number = int(claim.call.call_id.rpartition(":")[2]) if claim.number is None else claim.number
        run_id, key = claim.call.run_id, (claim.call.run_id, claim.call.tool, digest(claim.call.args))
        self.call_counter.release(run_id, claim.name, number, is_final=claim.is_final)
        if claim.is_final:
            self.waiting_calls.pop(key, None)

    # Processing

    async def _run_to_result(self, caller: McpCaller, found: UpstreamTool, claim: ClaimedCall) -> Object:
        """Attempt the call until it has a result; looks the tool up before each attempt, since it may have changed."""
        deadline = asyncio.get_running_loop().time() + self.wait
        shown = False
        now: UpstreamTool | None = found
        while True:
            if now is None or now.spec.sha256 != found.spec.sha256:
                return await self._definition_changed_result(claim)
            outcome = await self._attempt(caller, now, claim)
            if isinstance(outcome, Mapping):
                return dict(outcome)
            if not isinstance(outcome, Waiting):
                return self._final_result(outcome, found, claim)
            left = deadline - asyncio.get_running_loop().time()
            told = await self._interim_result(caller, found, claim, outcome, left)
            if told is not None:
                return told
            if not shown:
                shown = True
                await self._show_url(caller, claim, outcome.approval_id)
            await self._wait_decided(caller, outcome, left)
            now = await caller.find(fresh=True)

    async def _interim_result(
        self, caller: McpCaller, found: UpstreamTool, claim: ClaimedCall, outcome: Waiting, left: float
    ) -> Object | None:
        """The result to return while the decision is pending; None while the call is held."""
        self._record_waiting(claim, outcome)
        if caller.cancelled.is_set():
            raise CallCancelled
        if self._can_request_input(caller) and claim.number is not None:
            return self._input_required(claim, outcome.approval_id)
        return self._timeout_result(caller, found, claim, outcome.approval_id) if left <= 0 else None

    async def _show_url(self, caller: McpCaller, claim: ClaimedCall, approval_id: str) -> None:
        if self._can_show_url(caller):
            await caller.show(approval_id, self._approval_message(claim), self._url(approval_id))

    def _can_show_url(self, caller: McpCaller) -> bool:
        return caller.can_open_urls and bool(self.public_url) and not caller.is_modern

    async def _attempt(self, caller: McpCaller, found: UpstreamTool, claim: ClaimedCall) -> Object | Outcome:
        async def body(args: Args) -> object:
            claim.was_sent = caller.was_sent_upstream = True
            try:
                reply = await found.run(args, claim.upstream_params)
            except UpstreamLost as error:
                raise EffectUnknown(
                    f"The MCP server gave no answer to {claim.call.tool} ({error}). It may have run: look before you "
                    "call it again."
                ) from None
            if isinstance(reply, JSONRPCError) or reply.result.get("isError") is True:
                raise UpstreamToolFailed(reply)
            return reply.result

        try:
            done = await self.agent.attempt(claim.call, found.spec, body)
        except UpstreamToolFailed as error:
            claim.is_final = True
            raise UpstreamErrorReply(error.reply) from None
        except InvalidRequest:
            raise
        except Error as error:
            claim.is_final = claim.was_sent and not found.spec.idempotent
            return text_result(_failure_message(claim, error), failed=True)
        if isinstance(done, Executed):
            claim.is_final = found.spec.effect != "read" or self.call_counter.was_seen(
                claim.call.run_id, claim.call.call_id
            )
            return dict(done.result)
        return done

    def _final_result(self, outcome: Outcome, found: UpstreamTool, claim: ClaimedCall) -> Object:
        run_id, call_id = claim.call.run_id, claim.call.call_id
        met = claim.number is None or self.call_counter.was_seen(run_id, call_id)
        claim.is_final = bool(getattr(outcome, "approval_id", ""))
        earlier = isinstance(outcome, Finished) and not met
        return outcome_result(outcome, claim.call.tool, has_output_schema=found.has_output_schema, earlier=earlier)

    async def _definition_changed_result(self, claim: ClaimedCall) -> Object:
        known = self.waiting_calls.pop((claim.call.run_id, claim.call.tool, digest(claim.call.args)), None)
        if known is not None:
            await self._void(claim.call.run_id, *known)
        words = "The server changed or removed this tool meanwhile. Nothing was run: look at it as it is now, then call"
        return text_result(f"{words} it again.", failed=True)

    # Waiting

    def _record_waiting(self, claim: ClaimedCall, outcome: Waiting) -> None:
        self.call_counter.mark_seen(claim.call.run_id, claim.call.call_id)
        key = claim.call.run_id, claim.call.tool, digest(claim.call.args)
        self.waiting_calls[key] = claim.call.call_id, outcome.approval_id

    def _can_request_input(self, caller: McpCaller) -> bool:
        return caller.is_modern and caller.can_open_urls and bool(self.public_url)

    def _input_required(self, claim: ClaimedCall, approval_id: str, *, rounds: int = 0) -> Object:
        call = claim.call
        state = CallState(
            approval_id=approval_id,
            run_id=call.run_id,
            call_id=call.call_id,
            tool=call.tool,
            args_sha256=digest(call.args),
            rounds=rounds,
            carried=claim.upstream_params,
        )
        found: Object = {"resultType": "input_required", "requestState": seal(state, self.key)}
        if rounds:
            return found
        params = {"mode": "url", "message": self._approval_message(claim), "url": self._url(approval_id)}
        return {**found, "inputRequests": {"interlock": {"method": "elicitation/create", "params": params}}}

    def _timeout_result(self, caller: McpCaller, found: UpstreamTool, claim: ClaimedCall, approval_id: str) -> Object:
        if claim.number is None and self._can_request_input(caller) and claim.rounds + 1 < MAX_ROUNDS:
            return self._input_required(claim, approval_id, rounds=claim.rounds + 1)
        return pending_result(
            claim.call.tool,
            approval_id,
            self._approval_location(approval_id),
            has_output_schema=found.has_output_schema,
        )

    async def _wait_decided(self, caller: McpCaller, outcome: Waiting, seconds: float) -> None:
        """Wait until the call is decided, the client cancels, or the time is over."""
        ticking = asyncio.create_task(self._send_progress(caller))
        giving_up = asyncio.create_task(caller.cancelled.wait())
        deciding = asyncio.create_task(self.agent.wait(outcome.approval_id, seconds))
        try:
            await asyncio.wait([giving_up, deciding], return_when=asyncio.FIRST_COMPLETED)
            if deciding.done():
                deciding.result()
        finally:
            for task in (ticking, giving_up, deciding):
                task.cancel()
            await asyncio.gather(ticking, giving_up, deciding, return_exceptions=True)
        if caller.cancelled.is_set():
            raise CallCancelled
        if self._can_show_url(caller) and not isinstance(deciding.result(), Waiting):
            await caller.notify("notifications/elicitation/complete", {"elicitationId": outcome.approval_id})

    async def _send_progress(self, caller: McpCaller) -> None:
        step = 0
        while caller.token is not None:
            step += 1
            params = {
                "progressToken": caller.token,
                "progress": step * PROGRESS_STEP,
                "message": "Waiting for approval.",
            }
            await caller.notify("notifications/progress", params)
            await asyncio.sleep(PROGRESS_INTERVAL)

    def _approval_message(self, claim: ClaimedCall) -> str:
        return f"{claim.call.tool} needs the approval of a person. Decide there; what is answered here decides nothing."

    def _approval_location(self, approval_id: str) -> str:
        if self.public_url:
            return f"It is at {self._url(approval_id)}."
        return f"See `{self.agent.interlock.approval_link_template.replace('{id}', approval_id)}`."

    def _url(self, approval_id: str) -> str:
        return f"{self.public_url.rstrip('/')}/a/{approval_id}"


def _parse_call(params: Mapping[str, Any]) -> tuple[str, Args]:
    """Parse the call. Unknown members are rejected, since nobody reviewed them: some servers read `Arguments` too."""
    if unknown := sorted(params.keys() - CALL_MEMBERS):
        known = ", ".join(sorted(CALL_MEMBERS))
        raise CallRejected(f"A call has no member {unknown[0][:60]!r}. Nothing was run: it may have {known}.")
    tool, arguments = params.get("name"), params.get("arguments")
    if not isinstance(tool, str):
        raise CallRejected("A call names its tool.")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise CallRejected("The arguments of a call are an object.")
    return tool, arguments or {}


def _failure_message(claim: ClaimedCall, error: Error) -> str:
    """The message for an error: before sending, nothing ran; after it, the effect is uncertain."""
    if isinstance(error, EffectUnknown):
        return error.message
    if not claim.was_sent:
        return f"{claim.call.tool} was not run: {error.message}"
    return (
        f"{claim.call.tool} was started, and its end is not on record ({error.message}). Look before you call it again."
    )


EARLIER_RESULT_NOTE = (
    "This call ran before the gate was started again, and this is its result from then: nothing was run now. "
    "To run it once more, call it again."
)


def text_result(text: str, *, failed: bool, **meta: object) -> Object:
    found: Object = {"content": [{"type": "text", "text": text}], "isError": failed}
    return {**found, "_meta": {f"interlock/{key}": value for key, value in meta.items()}} if meta else found


def pending_result(tool: str, approval_id: str, place: str, *, has_output_schema: bool) -> Object:
    """The result for a pending call.

    Not an error, which would make clients give up, unless the tool has an output schema.
    """
    text = (
        f"{tool} has not run yet: it waits for a person to approve it. {place} "
        "Once it is decided, call it again with the same arguments to get the result."
    )
    return text_result(text, failed=has_output_schema, approval=approval_id, status="pending")


def outcome_result(outcome: Outcome, tool: str, *, has_output_schema: bool, earlier: bool) -> Object:
    match outcome:
        case Finished("succeeded", Mapping() as result) if "content" in result:
            return _with_earlier_note(dict(result)) if earlier else dict(result)
        case Finished("succeeded", result, _, approval_id):
            return text_result(message_text(result), failed=False, approval=approval_id)
        case Answered(message, approval_id):
            return _answer_result(message, approval_id, has_output_schema=has_output_schema)
        case Refused(_, status, approval_id):
            ids = {"approval": approval_id} if approval_id else {}
            return text_result(message_text(refusal_message(outcome, tool)), failed=True, **ids, status=status)
        case Finished(status, _, _, approval_id):
            return text_result(plain_text(outcome, tool), failed=True, approval=approval_id, status=status)
        case _:
            raise TypeError(f"There is nothing to tell of {outcome!r} yet.")


def error_text(result: Mapping[str, object]) -> str:
    """The server's error text, for the ledger."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [str(block.get("text", "")) for block in blocks if isinstance(block, Mapping)]
    return " ".join(filter(None, texts)).replace("\x00", "")[:MAX_ERROR] or "The server gave no reason."


def _answer_result(message: object, approval_id: str, *, has_output_schema: bool) -> Object:
    """A person's answer as the result; if the tool has an output schema, anything but an object is an error."""
    if has_output_schema and isinstance(message, Mapping):
        result = text_result(message_text(message), failed=False, approval=approval_id)
        return {**result, "structuredContent": dict(message)}
    return text_result(message_text(message), failed=has_output_schema, approval=approval_id, status="responded")


def _with_earlier_note(result: Object) -> Object:
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    return {**result, "content": [*blocks, {"type": "text", "text": EARLIER_RESULT_NOTE}]}
