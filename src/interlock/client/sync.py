"""The same client for programs without an event loop: each verb is handed to the bridge, and waited for."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from interlock.app.gate import Execution
from interlock.client.client import Client
from interlock.client.shapes import Standing
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.conversation import Question
from interlock.core.decision import Decision
from interlock.core.outcome import Outcome
from interlock.runtime.loop_thread import Bridge

T = TypeVar("T")


class SyncClient:
    """Takes what `Client` takes. May be used by several threads."""

    def __init__(self, url: str, key: str | None, **options: Any) -> None:
        self._client = Client(url, key, **options)
        self._bridge = Bridge()

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

    def renew(self, approval_id: str, fence: int) -> Standing:
        return self._run(self._client.renew(approval_id, fence))

    def finish(self, approval_id: str, fence: int, result: object = None, *, error: str = "") -> Standing:
        return self._run(self._client.finish(approval_id, fence, result, error=error))

    def abandon(self, approval_id: str, fence: int) -> Standing:
        return self._run(self._client.abandon(approval_id, fence))

    def cancel(self, approval_id: str, reason: str = "") -> Standing:
        return self._run(self._client.cancel(approval_id, reason))

    def questions(self, approval_id: str) -> Sequence[Question]:
        return self._run(self._client.questions(approval_id))

    def answer(self, approval_id: str, number: int, text: str) -> Standing:
        return self._run(self._client.answer(approval_id, number, text))

    def decide(self, approval_id: str, decision: Decision, reviewer: str = "") -> Standing:
        return self._run(self._client.decide(approval_id, decision, reviewer))

    def close(self) -> None:
        self._run(self._client.close())
        self._bridge.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._bridge.run(work)
