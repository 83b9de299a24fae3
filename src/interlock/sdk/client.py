"""A server's gate as an object. Every verb may be repeated: the server knows the call, fence or attempt again."""

from __future__ import annotations

import asyncio
import secrets
from base64 import b64encode
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from interlock.app.gate import Execution, render_preview
from interlock.core.approval.discussion import Question
from interlock.core.approval.execute import DEFAULT_LEASE
from interlock.core.call import ToolCall, ToolSpec, propose, redact
from interlock.core.decision import Decision
from interlock.core.errors import Conflict, Forbidden, Misconfigured, NotFound
from interlock.core.outcome import Outcome, Waiting
from interlock.core.run import MAX_BODY, Pause
from interlock.runtime.faults import FaultPoint
from interlock.runtime.offload import LoopThread
from interlock.sdk import codec
from interlock.sdk.codec import RemoteApprovalStatus, ResponseBody
from interlock.sdk.transport import FOREVER, PATIENCE, Transport, parse_server_address

API_VERSION = 1  # of the server's interface, as `POST /api/runs` names it
LONG_POLL_SECONDS = 20.0  # seconds that the server holds back an answer
LONG_POLL_MARGIN = 10.0  # more that it gets before it counts as gone
BEST_EFFORT_TIMEOUT = 5.0  # seconds of patience for what is only a courtesy to the server
MAX_LISTED = 10_000
QUESTION = "request_human_input"
NOT_STARTED = (
    "The tool was not run. If the server took the start after all, the call is shown as unknown once its lease lapsed."
)
NOT_FINISHED = (
    "The tool has run, and the server was not told how it ended: the call is shown as unknown once its lease lapsed."
)


class Client:
    """Belongs to the event loop that first uses it. `patience` is how long a server may be silent, in seconds."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        patience: float = PATIENCE,
        lease_seconds: float = DEFAULT_LEASE / 1000,
        insecure: bool = False,
        point: FaultPoint | None = None,
    ) -> None:
        self._transport = Transport(parse_server_address(url, key, insecure=insecure), patience, point)
        self._lease = lease_seconds
        self._redaction_key = secrets.token_bytes(32)  # hides secrets in descriptions

    def __repr__(self) -> str:
        return f"Client({self._transport.address.url!r})"

    # The way of a call

    async def check(self, call: ToolCall, spec: ToolSpec | None = None) -> Outcome:
        """What to do about a call. Without a spec it counts as unknown, and asks."""
        return await self.check_proposal(await self.make_proposal(call, spec or ToolSpec(call.tool)))

    async def make_proposal(self, call: ToolCall, spec: ToolSpec) -> dict[str, object]:
        """The description and the preview are made here, where the tool is; the server gets their text."""
        shown = redact(call.args, spec, self._redaction_key)
        described = spec.sentence(shown.value) if spec.describe else ""
        return codec.proposal_json(call, spec, described, await render_preview(spec, call))

    async def check_proposal(self, proposal: Mapping[str, object]) -> Outcome:
        return codec.parse_outcome(await self._transport.post("/api/calls", proposal))

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
        """A question to people. `more` is what a ToolCall has: agent, requester, thread_id, expires_in and so on."""
        args: dict[str, object] = {"question": question}
        args |= {"choices": list(choices)} if choices else {}
        args |= {"schema": schema} if schema else {}
        return await self.ask_call(propose(QUESTION, args, run_id, call_id, **more))

    async def ask_call(self, call: ToolCall) -> Outcome:
        return codec.parse_outcome(await self._transport.post("/api/questions", codec.question_json(call)))

    async def wait(self, approval_id: str, timeout: float | None = None, *, heard: int | None = None) -> Outcome:
        """Goes on by itself when the server was away, for as long as the caller wants.

        With `heard`, the number of the last question that the agent knows of, it also ends when there is a newer one.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + (FOREVER if timeout is None else timeout)
        while True:
            left = max(0.0, deadline - now())
            hold = min(LONG_POLL_SECONDS, left)
            response = await self._transport.get(
                f"/api/calls/{_path_segment(approval_id)}",
                {"wait": f"{hold:.3f}"} | ({} if heard is None else {"heard": str(heard)}),
                answer=hold + LONG_POLL_MARGIN,
                patience=FOREVER if timeout is None else max(left, BEST_EFFORT_TIMEOUT),
            )
            outcome = codec.parse_outcome(response)
            if not isinstance(outcome, Waiting) or now() >= deadline:
                return outcome
            if heard is not None and max(outcome.questions, default=0) > heard:
                return outcome

    async def start(self, approval_id: str, spec: ToolSpec | None = None, *, attempt: str = "") -> Execution:
        """One winner. A start that is sent again is the same attempt; one whose answer came late is made sure of.

        Whoever names an `attempt` may send it again themselves, and must never use its name for another one.
        """
        now = asyncio.get_running_loop().time
        began = now()
        body = {"lease_seconds": self._lease, "spec_sha256": codec.declared_spec(spec).sha256 if spec else ""}
        named = {"idempotency-key": attempt} if attempt else _idempotency_header()
        response = await self._post(approval_id, "start", body, headers=named, otherwise=NOT_STARTED)
        execution = codec.parse_execution(approval_id, response)
        if now() - began > self._lease / 3:
            await self.renew(approval_id, execution.fence)
        return execution

    async def renew(self, approval_id: str, fence: int) -> RemoteApprovalStatus:
        body = {"fence": fence, "lease_seconds": self._lease}
        response = await self._post(approval_id, "renew", body, patience=self._lease / 3)
        return codec.parse_approval_status(approval_id, response)

    async def finish(
        self, approval_id: str, fence: int, result: object = None, *, error: str = ""
    ) -> RemoteApprovalStatus:
        """With `error` the call ended as failed. Told twice is told once."""
        body = {"fence": fence, "ok": not error} | ({"error": error} if error else {"result": result})
        return codec.parse_approval_status(
            approval_id, await self._post(approval_id, "finish", body, otherwise=NOT_FINISHED)
        )

    async def abandon(self, approval_id: str, fence: int) -> RemoteApprovalStatus:
        """The tool was interrupted: nobody knows how far it came."""
        response = await self._post(
            approval_id, "abandon", {"fence": fence}, patience=BEST_EFFORT_TIMEOUT, otherwise=NOT_FINISHED
        )
        return codec.parse_approval_status(approval_id, response)

    async def cancel(self, approval_id: str, reason: str = "") -> RemoteApprovalStatus:
        response = await self._post(
            approval_id, "cancel", {"reason": reason[:500]}, headers=_idempotency_header(), patience=BEST_EFFORT_TIMEOUT
        )
        return codec.parse_approval_status(approval_id, response)

    # What people ask about a call

    async def questions(self, approval_id: str) -> Sequence[Question]:
        """What people want to know of the agent, and it has not answered; `Waiting.questions` has their numbers."""
        response = await self._transport.get(f"/api/calls/{_path_segment(approval_id)}/questions")
        return [Question(each["number"], each["by"], each["text"]) for each in response["items"]]

    async def answer(self, approval_id: str, number: int, text: str) -> RemoteApprovalStatus:
        """Decides nothing; people see it beside the card."""
        response = await self._post(
            approval_id, "answer", {"number": number, "text": text}, headers=_idempotency_header()
        )
        return codec.parse_approval_status(approval_id, response)

    # A person's key

    async def me(self) -> ResponseBody:
        """Whose key this is."""
        return await self._transport.get("/api/me")

    async def decide(self, approval_id: str, decision: Decision, reviewer: str = "") -> RemoteApprovalStatus:
        """Decides as the person whose key it is; a `reviewer` who is somebody else is refused."""
        name = (await self.me())["name"] if reviewer else ""
        if reviewer != name:
            raise Forbidden(f"This is the key of {name}, who cannot decide as {reviewer}. Use the key of {reviewer}.")
        path = f"/api/approvals/{_path_segment(approval_id)}/decision"
        response = await self._transport.post(path, codec.decision_json(decision), headers=_idempotency_header())
        return codec.parse_approval_status(approval_id, response)

    # Runs

    async def list_runs(self, agent: str) -> Sequence[ResponseBody]:
        """Those that programs with this key hold or held, the newest first."""
        try:
            items: list[ResponseBody] = (await self._transport.get("/api/runs", {"agent": agent}))["items"]
        except NotFound:
            raise self._version_mismatch("older") from None
        return items

    async def acquire_run(self, agent: str, runner: str, run_id: str = "", gone: Sequence[str] = ()) -> ResponseBody:
        """Continues the newest run of this agent whose program is gone; else begins one, unless it has a `run_id`."""
        body = {"agent": agent, "runner": runner, "run_id": run_id, "lease_seconds": self._lease, "gone": list(gone)}
        try:
            response = await self._transport.post("/api/runs", body)
        except NotFound:
            raise self._version_mismatch("older") from None
        if response.get("api") != API_VERSION:
            raise self._version_mismatch("newer")
        return response

    async def renew_run(self, run_id: str, runner: str) -> None:
        body = {"runner": runner, "lease_seconds": self._lease}
        await self._transport.post(f"/api/runs/{_path_segment(run_id)}/renew", body, patience=self._lease / 3)

    async def end_run(self, run_id: str, runner: str, *, finished: bool) -> None:
        """One that is not finished is left for the next start of the program."""
        verb = "close" if finished else "release"
        with suppress(Conflict, NotFound):
            await self._transport.post(
                f"/api/runs/{_path_segment(run_id)}/{verb}", {"runner": runner}, patience=BEST_EFFORT_TIMEOUT
            )

    # Runs that stand still

    async def pause(self, agent: str, run_id: str, called: str, state: bytes) -> Pause:
        """`called` is what the framework calls the run. Told twice, the second one counts."""
        body = {"agent": agent, "run_id": run_id, "called": called, "state": b64encode(state).decode()}
        return codec.parse_pause(await self._transport.post("/api/pauses", body, max_bytes=MAX_BODY), state)

    async def paused(self, agent: str = "") -> Sequence[Pause]:
        """Without their state, those that wait longest first; at most 10,000."""
        found: list[Pause] = []
        cursor: str | None = ""
        while cursor is not None and len(found) < MAX_LISTED:
            response = await self._transport.get("/api/pauses", {"agent": agent, "cursor": cursor, "limit": "1000"})
            found += [codec.parse_pause(each) for each in response["items"]]
            cursor = response["next"]
        return found

    async def claim(
        self,
        agent: str,
        runner: str,
        timeout: float | None = None,
        limit: int = 10,
        is_dead: Callable[[str], bool] = lambda _: False,
    ) -> Sequence[Pause]:
        """Runs that can go on, for this runner alone while it renews; waits for the first one, as `wait` does.

        `is_dead` says of others with this key whether they certainly ended: then their leases are not waited for.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + (FOREVER if timeout is None else timeout)
        body = {"agent": agent, "runner": runner, "lease_seconds": self._lease, "limit": min(limit, 10)}
        hold, gone = 0.0, list[str]()  # the first time it is only found out who holds what
        while True:
            left = max(0.0, deadline - now())
            named = {"wait": round(hold, 3), "gone": gone, "attempt": secrets.token_hex(8)}
            patience = FOREVER if timeout is None else max(left, BEST_EFFORT_TIMEOUT)
            response = await self._transport.post(
                "/api/pauses/claim", body | named, answer=hold + LONG_POLL_MARGIN, patience=patience
            )
            gone = [each for each in response["held"] if is_dead(each)][:100]
            if response["items"] or (now() >= deadline and not gone):
                return [codec.parse_pause(each) for each in response["items"]]
            hold = 0.0 if gone else min(LONG_POLL_SECONDS, left)

    async def renew_pause(self, run_id: str, fence: int) -> None:
        body = {"run_id": run_id, "fence": fence, "lease_seconds": self._lease}
        await self._transport.post("/api/pauses/renew", body, patience=self._lease / 3)

    async def let_go(self, run_id: str, fence: int, *, failed: bool) -> float:
        """Gives for how many seconds nobody takes it."""
        body = {"run_id": run_id, "fence": fence, "failed": failed}
        seconds: float = (await self._transport.post("/api/pauses/release", body, patience=BEST_EFFORT_TIMEOUT))[
            "seconds"
        ]
        return seconds

    async def resumed(self, run_id: str, fence: int) -> bool:
        """Whether it is over: one that paused again meanwhile is not."""
        response = await self._transport.post("/api/pauses/complete", {"run_id": run_id, "fence": fence})
        return bool(response["over"])

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

    def _version_mismatch(self, which: str) -> Misconfigured:
        return Misconfigured(
            f"The server at {self._transport.address.url} is {which} than this program can talk to. "
            "Install the same version of interlock-gate on both sides."
        )


def _idempotency_header() -> dict[str, str]:
    return {"idempotency-key": secrets.token_hex(16)}


def _path_segment(name: str) -> str:
    """An id as one part of a path: whatever it holds, it leads nowhere else."""
    if not name or not all(char.isalnum() or char in "-_.:" for char in name) or set(name) <= {"."}:
        raise NotFound(f"{name[:100]!r} is not an id.")
    return name


T = TypeVar("T")


class SyncClient:
    """Takes what `Client` takes. May be used by several threads."""

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

    def wait(self, approval_id: str, timeout: float | None = None, *, heard: int | None = None) -> Outcome:
        return self._run(self._client.wait(approval_id, timeout, heard=heard))

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
