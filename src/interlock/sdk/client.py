"""The HTTP client of a server's gate, async and sync. Every request is safe to retry.

The server recognises a repeated call id, fence or idempotency key.
"""

from __future__ import annotations

import asyncio
import secrets
from base64 import b64encode
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from interlock.app.gate import Execution, render_preview
from interlock.core.approval.discussion import Question
from interlock.core.approval.execute import DEFAULT_LEASE
from interlock.core.call import QUESTION_TOOL, ToolCall, ToolSpec, propose, redact
from interlock.core.decision import Decision
from interlock.core.errors import Conflict, Forbidden, Misconfigured, NotFound
from interlock.core.identity import AGENT
from interlock.core.outcome import Outcome, Waiting
from interlock.core.ports import ApprovalQuery
from interlock.core.run import API_VERSION, MAX_BODY, Pause
from interlock.runtime.offload import LoopThread
from interlock.sdk import codec
from interlock.sdk.backend import ApprovalRecord, ApprovalRecords, ApprovalStats
from interlock.sdk.codec import RemoteApprovalStatus, ResponseBody
from interlock.sdk.transport import FOREVER, RETRY_TIMEOUT, Transport, parse_server_address

T = TypeVar("T")

LONG_POLL_SECONDS = 20.0  # maximum seconds of a long poll
LONG_POLL_MARGIN = 10.0  # seconds added to the long poll before the read times out
BEST_EFFORT_TIMEOUT = 5.0  # seconds of retries for best-effort requests
MAX_LISTED = 10_000
NOT_STARTED = "The tool was not run. If the server recorded the start, the call becomes unknown when its lease expires."
NOT_FINISHED = (
    "The tool has run, but its result could not be reported: the call becomes unknown when its lease expires."
)


class Client:
    """An async client, bound to the event loop that first uses it. It retries for `retry_timeout` seconds."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        retry_timeout: float = RETRY_TIMEOUT,
        lease_seconds: float = DEFAULT_LEASE / 1000,
        insecure: bool = False,
    ) -> None:
        self._transport = Transport(parse_server_address(url, key, insecure=insecure), retry_timeout)
        self._lease = lease_seconds
        self._redaction_key = secrets.token_bytes(32)  # hides secrets in descriptions
        self._is_agent_key: bool | None = None  # unknown until the server was asked

    def __repr__(self) -> str:
        return f"Client({self._transport.address.url!r})"

    # Calls

    async def check(self, call: ToolCall, spec: ToolSpec | None = None) -> Outcome:
        """Check a call against the policy. Without a spec the tool counts as unknown and asks for approval."""
        return await self.check_proposal(await self.make_proposal(call, spec or ToolSpec(call.tool)))

    async def make_proposal(self, call: ToolCall, spec: ToolSpec) -> dict[str, object]:
        """Build the request body. Description and preview are rendered here, where the tool is."""
        shown = redact(call.args, spec, self._redaction_key)
        described = spec.described(shown.value)
        return codec.proposal_json(call, spec, described, await render_preview(spec, call))

    async def check_proposal(self, proposal: Mapping[str, object]) -> Outcome:
        return self._parse(codec.parse_outcome, await self._transport.post("/api/calls", proposal))

    async def ask(
        self,
        question: str,
        *,
        run_id: str,
        call_id: str,
        choices: Sequence[str] = (),
        schema: Mapping[str, object] | None = None,
        **more: object,
    ) -> Outcome:
        """Ask people a question. `more` are fields of the ToolCall: agent, requester, thread_id, expires_in etc."""
        args: dict[str, object] = {"question": question}
        args |= {"choices": list(choices)} if choices else {}
        args |= {"schema": schema} if schema else {}
        return await self.ask_call(propose(QUESTION_TOOL, args, run_id, call_id, **more))

    async def ask_call(self, call: ToolCall) -> Outcome:
        return self._parse(codec.parse_outcome, await self._transport.post("/api/questions", codec.question_json(call)))

    async def wait(
        self, approval_id: str, timeout: float | None = None, *, after_question: int | None = None
    ) -> Outcome:
        """Wait for an outcome other than `Waiting`, up to `timeout` seconds; retries while the server is unavailable.

        With `after_question`, the number of the last known question, it also returns when there is a newer one.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + (FOREVER if timeout is None else timeout)
        while True:
            left = max(0.0, deadline - now())
            hold = min(LONG_POLL_SECONDS, left)
            response = await self._transport.get(
                f"/api/calls/{_path_segment(approval_id)}",
                {"wait": f"{hold:.3f}"} | ({} if after_question is None else {"heard": str(after_question)}),
                read_timeout=hold + LONG_POLL_MARGIN,
                retry_timeout=FOREVER if timeout is None else max(left, BEST_EFFORT_TIMEOUT),
            )
            outcome = self._parse(codec.parse_outcome, response)
            if not isinstance(outcome, Waiting) or now() >= deadline:
                return outcome
            if after_question is not None and max(outcome.questions, default=0) > after_question:
                return outcome

    async def start(self, approval_id: str, spec: ToolSpec | None = None, *, attempt: str = "") -> Execution:
        """Start a call; only one caller succeeds.

        A retry is the same attempt. After a slow response the lease is renewed at once. `attempt` is the idempotency
        key. A caller that passes one may retry with it, and must never reuse it for another attempt.
        """
        now = asyncio.get_running_loop().time
        began = now()
        body = {"lease_seconds": self._lease, "spec_sha256": codec.declared_spec(spec).sha256 if spec else ""}
        named = {"idempotency-key": attempt} if attempt else _idempotency_header()
        response = await self._post(approval_id, "start", body, headers=named, failure_note=NOT_STARTED)
        execution = self._parse(partial(codec.parse_execution, approval_id), response, NOT_STARTED)
        if now() - began > self._lease / 3:
            await self.renew(approval_id, execution.fence)
        return execution

    async def renew(self, approval_id: str, fence: int) -> RemoteApprovalStatus:
        body = {"fence": fence, "lease_seconds": self._lease}
        response = await self._post(approval_id, "renew", body, retry_timeout=self._lease / 3)
        return self._parse(partial(codec.parse_approval_status, approval_id), response)

    async def finish(
        self, approval_id: str, fence: int, result: object = None, *, error: str = ""
    ) -> RemoteApprovalStatus:
        """Record the result, or with `error` the failure. Idempotent."""
        body = {"fence": fence, "ok": not error} | ({"error": error} if error else {"result": result})
        response = await self._post(approval_id, "finish", body, failure_note=NOT_FINISHED)
        return self._parse(partial(codec.parse_approval_status, approval_id), response, NOT_FINISHED)

    async def abandon(self, approval_id: str, fence: int) -> RemoteApprovalStatus:
        """Mark the call's effect as unknown: the tool was interrupted."""
        response = await self._post(
            approval_id, "abandon", {"fence": fence}, retry_timeout=BEST_EFFORT_TIMEOUT, failure_note=NOT_FINISHED
        )
        return self._parse(partial(codec.parse_approval_status, approval_id), response, NOT_FINISHED)

    async def cancel(self, approval_id: str, reason: str = "") -> RemoteApprovalStatus:
        response = await self._post(
            approval_id,
            "cancel",
            {"reason": reason[:500]},
            headers=_idempotency_header(),
            retry_timeout=BEST_EFFORT_TIMEOUT,
        )
        return self._parse(partial(codec.parse_approval_status, approval_id), response)

    # Questions of reviewers

    async def questions(self, approval_id: str) -> Sequence[Question]:
        """Questions of reviewers that the agent has not answered; `Waiting.questions` has their numbers."""
        response = await self._transport.get(f"/api/calls/{_path_segment(approval_id)}/questions")
        return self._parse(codec.parse_questions, response)

    async def answer(self, approval_id: str, number: int, text: str) -> RemoteApprovalStatus:
        """Answer a question; reviewers see the answer beside the card. It is not a decision."""
        response = await self._post(
            approval_id, "answer", {"number": number, "text": text}, headers=_idempotency_header()
        )
        return self._parse(partial(codec.parse_approval_status, approval_id), response)

    # Approvals as values: with an agent's key its own calls, with a person's key those of the workspace

    async def list_approvals(self, query: ApprovalQuery) -> ApprovalRecords:
        """A page of approvals; with an agent's key, `query.person` is the requester."""
        filters = {
            "status": ",".join(query.statuses),
            "tool": query.tool,
            "agent": query.agent,
            "thread_id": query.thread_id,
            "run_id": query.run_id,
            "user": query.person,
            "cursor": query.cursor,
            "limit": str(query.limit),
        }
        path = "/api/calls" if await self._has_agent_key() else "/api/approvals"
        given = {name: value for name, value in filters.items() if value}
        return self._parse(codec.parse_approval_records, await self._transport.get(path, given))

    async def show_approval(self, approval_id: str) -> ApprovalRecord:
        name = _path_segment(approval_id)
        path = f"/api/calls/{name}/details" if await self._has_agent_key() else f"/api/approvals/{name}"
        return self._parse(codec.parse_approval_record, await self._transport.get(path))

    async def stats(self) -> ApprovalStats:
        """Counts of the whole workspace, which only the key of a person may read."""
        if await self._has_agent_key():
            raise Forbidden("Statistics are of the whole workspace: use the key of a person, such as a viewer.")
        return self._parse(codec.parse_approval_stats, await self._transport.get("/api/stats"))

    async def _has_agent_key(self) -> bool:
        if self._is_agent_key is None:
            self._is_agent_key = (await self.me())["role"] == AGENT
        return self._is_agent_key

    # For the key of a person

    async def me(self) -> ResponseBody:
        """The user that the key belongs to."""
        return self._parse(codec.parse_me, await self._transport.get("/api/me"))

    async def decide(self, approval_id: str, decision: Decision, reviewer: str = "") -> RemoteApprovalStatus:
        """Decide as the user that the key belongs to; a different `reviewer` is refused."""
        name = (await self.me())["name"] if reviewer else ""
        if reviewer != name:
            raise Forbidden(f"This is the key of {name}, who cannot decide as {reviewer}. Use the key of {reviewer}.")
        path = f"/api/approvals/{_path_segment(approval_id)}/decision"
        response = await self._transport.post(path, codec.decision_json(decision), headers=_idempotency_header())
        return self._parse(partial(codec.parse_approval_status, approval_id), response)

    # Runs

    async def list_runs(self, agent: str) -> Sequence[ResponseBody]:
        """Runs that programs with this key hold or held, the newest first."""
        try:
            response = await self._transport.get("/api/runs", {"agent": agent})
        except NotFound:
            raise self._version_mismatch("older") from None
        return self._parse(codec.parse_runs, response)

    async def acquire_run(
        self, agent: str, runner: str, run_id: str = "", dead_runners: Sequence[str] = ()
    ) -> ResponseBody:
        """Continue the newest run of this agent whose program is gone, or open one; with `run_id`, use that run."""
        body = {
            "agent": agent,
            "runner": runner,
            "run_id": run_id,
            "lease_seconds": self._lease,
            "gone": list(dead_runners),
        }
        try:
            response = await self._transport.post("/api/runs", body)
        except NotFound:
            raise self._version_mismatch("older") from None
        api = response.get("api")
        if isinstance(api, int) and api != API_VERSION:
            raise self._version_mismatch("newer")
        return self._parse(codec.parse_acquired_run, response)

    async def renew_run(self, run_id: str, runner: str) -> None:
        body = {"runner": runner, "lease_seconds": self._lease}
        await self._transport.post(f"/api/runs/{_path_segment(run_id)}/renew", body, retry_timeout=self._lease / 3)

    async def end_run(self, run_id: str, runner: str, *, finished: bool) -> None:
        """Close a finished run; an unfinished one is released for the next start of the program."""
        verb = "close" if finished else "release"
        with suppress(Conflict, NotFound):
            await self._transport.post(
                f"/api/runs/{_path_segment(run_id)}/{verb}", {"runner": runner}, retry_timeout=BEST_EFFORT_TIMEOUT
            )

    # Paused runs

    async def pause(self, agent: str, run_id: str, framework_run_id: str, state: bytes) -> Pause:
        """Save a paused run. A repeated call replaces the pause. `framework_run_id` is the framework's own id."""
        body = {"agent": agent, "run_id": run_id, "called": framework_run_id, "state": b64encode(state).decode()}
        response = await self._transport.post("/api/pauses", body, max_bytes=MAX_BODY)
        return self._parse(partial(codec.parse_pause, state=state), response)

    async def list_pauses(self, agent: str = "") -> Sequence[Pause]:
        """Paused runs without their state, the longest pause first; at most 10,000."""
        found: list[Pause] = []
        cursor: str | None = ""
        while cursor is not None and len(found) < MAX_LISTED:
            response = await self._transport.get("/api/pauses", {"agent": agent, "cursor": cursor, "limit": "1000"})
            items, cursor = self._parse(codec.parse_pauses, response)
            found += items
        return found

    async def acquire_ready_pauses(
        self,
        agent: str,
        runner: str,
        timeout: float | None = None,
        limit: int = 10,
        is_dead: Callable[[str], bool] = lambda _: False,
    ) -> Sequence[Pause]:
        """Acquire ready runs, exclusively while this runner renews its lease; waits for the first one, as `wait` does.

        `is_dead` tells whether another runner with this key has certainly ended: its leases are then ignored.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + (FOREVER if timeout is None else timeout)
        body = {"agent": agent, "runner": runner, "lease_seconds": self._lease, "limit": min(limit, 10)}
        hold, dead_runners = 0.0, list[str]()  # the first request only returns the runners that hold leases
        while True:
            left = max(0.0, deadline - now())
            named = {"wait": round(hold, 3), "gone": dead_runners, "attempt": secrets.token_hex(8)}
            retry_timeout = FOREVER if timeout is None else max(left, BEST_EFFORT_TIMEOUT)
            response = await self._transport.post(
                "/api/pauses/claim", body | named, read_timeout=hold + LONG_POLL_MARGIN, retry_timeout=retry_timeout
            )
            pauses, held = self._parse(codec.parse_claimed_pauses, response)
            dead_runners = [each for each in held if is_dead(each)][:100]
            if pauses or (now() >= deadline and not dead_runners):
                return pauses
            hold = 0.0 if dead_runners else min(LONG_POLL_SECONDS, left)

    async def renew_pause(self, run_id: str, fence: int) -> None:
        body = {"run_id": run_id, "fence": fence, "lease_seconds": self._lease}
        await self._transport.post("/api/pauses/renew", body, retry_timeout=self._lease / 3)

    async def release_pause(self, run_id: str, fence: int, *, failed: bool) -> float:
        """Release the lease; returns the seconds until another process may acquire the run."""
        body = {"run_id": run_id, "fence": fence, "failed": failed}
        response = await self._transport.post("/api/pauses/release", body, retry_timeout=BEST_EFFORT_TIMEOUT)
        return self._parse(lambda answer: float(answer["seconds"]), response)

    async def complete_pause(self, run_id: str, fence: int) -> bool:
        """Delete the pause; False if the run was paused again meanwhile."""
        response = await self._transport.post("/api/pauses/complete", {"run_id": run_id, "fence": fence})
        return self._parse(lambda answer: bool(answer["over"]), response)

    # Closing

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.close()

    async def _post(self, approval_id: str, verb: str, body: Mapping[str, object], **how: Any) -> ResponseBody:
        return await self._transport.post(f"/api/calls/{_path_segment(approval_id)}/{verb}", body, **how)

    def _parse(self, parse: Callable[[ResponseBody], T], response: ResponseBody, note: str = "") -> T:
        return self._transport.parse(parse, response, note)

    def _version_mismatch(self, which: str) -> Misconfigured:
        return Misconfigured(
            f"The server at {self._transport.address.url} is {which} than this program can talk to. "
            "Install the same version of interlock-gate on both sides."
        )


def _idempotency_header() -> dict[str, str]:
    return {"idempotency-key": secrets.token_hex(16)}


def _path_segment(name: str) -> str:
    """Validate an id as one segment of a URL path, to prevent path traversal."""
    if not name or not all(char.isalnum() or char in "-_.:" for char in name) or set(name) <= {"."}:
        raise NotFound(f"{name[:100]!r} is not an id.")
    return name


class SyncClient:
    """A synchronous client with the options of `Client`. Thread-safe."""

    def __init__(self, url: str, key: str | None, **options: Any) -> None:
        self._client = Client(url, key, **options)
        self._loop_thread = LoopThread()

    def __repr__(self) -> str:
        return f"Sync{self._client!r}"

    def check(self, call: ToolCall, spec: ToolSpec | None = None) -> Outcome:
        return self._run(self._client.check(call, spec))

    def ask(
        self,
        question: str,
        *,
        run_id: str,
        call_id: str,
        choices: Sequence[str] = (),
        schema: Mapping[str, object] | None = None,
        **more: object,
    ) -> Outcome:
        asked = self._client.ask(question, run_id=run_id, call_id=call_id, choices=choices, schema=schema, **more)
        return self._run(asked)

    def wait(self, approval_id: str, timeout: float | None = None, *, after_question: int | None = None) -> Outcome:
        return self._run(self._client.wait(approval_id, timeout, after_question=after_question))

    def start(self, approval_id: str, spec: ToolSpec | None = None, *, attempt: str = "") -> Execution:
        return self._run(self._client.start(approval_id, spec, attempt=attempt))

    def renew(self, approval_id: str, fence: int) -> RemoteApprovalStatus:
        return self._run(self._client.renew(approval_id, fence))

    def finish(self, approval_id: str, fence: int, result: object = None, *, error: str = "") -> RemoteApprovalStatus:
        return self._run(self._client.finish(approval_id, fence, result, error=error))

    def abandon(self, approval_id: str, fence: int) -> RemoteApprovalStatus:
        return self._run(self._client.abandon(approval_id, fence))

    def cancel(self, approval_id: str, reason: str = "") -> RemoteApprovalStatus:
        return self._run(self._client.cancel(approval_id, reason))

    def questions(self, approval_id: str) -> Sequence[Question]:
        return self._run(self._client.questions(approval_id))

    def answer(self, approval_id: str, number: int, text: str) -> RemoteApprovalStatus:
        return self._run(self._client.answer(approval_id, number, text))

    def decide(self, approval_id: str, decision: Decision, reviewer: str = "") -> RemoteApprovalStatus:
        return self._run(self._client.decide(approval_id, decision, reviewer))

    def close(self) -> None:
        self._run(self._client.close())
        self._loop_thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop_thread.run(work)
