"""A reviewer who works on the database directly, without a process for each command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.decision import Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.outcome import status_at
from interlock.core.ports import ApprovalQuery

T = TypeVar("T")
ANN = Reviewer("ann")
WORKSPACE = "default"


class DatabaseReviewer:
    def __init__(self, url: str) -> None:
        self._url = url

    def put_policy(self, text: str) -> None:
        async def work(services: AppServices) -> None:
            await services.put_policy(WORKSPACE, text, ANN.name, {})

        self._with_services(work)

    def list_approvals(self, status: str) -> list[dict[str, Any]]:
        """Approvals of this effective status, or "all", newest first."""

        async def work(services: AppServices) -> list[dict[str, Any]]:
            page = await services.store.list(WORKSPACE, ApprovalQuery(limit=200))
            now = services.clock()
            items = [
                {
                    "id": each.approval.id,
                    "status": status_at(each.approval, now),
                    "tool": each.approval.subject.tool,
                    "agent": each.approval.subject.agent,
                    "agent_path": list(each.approval.subject.agent_path),
                    "run_id": each.approval.subject.run_id,
                    "call_id": each.approval.subject.call_id,
                    "args": json.loads(each.payload.shown or each.payload.args or b"{}"),
                }
                for each in page.items
            ]
            return [item for item in items if status in ("all", item["status"])]

        return self._with_services(work)

    def decide(self, approval_id: str, verb: str, *words: str) -> None:
        """As at the command line: edit --args JSON, respond MESSAGE, reject [--reason R]. Raises what a person sees."""

        async def work(services: AppServices) -> None:
            await services.refresh_policy(WORKSPACE, {})
            approval = (await services.store.get(WORKSPACE, approval_id)).approval
            seen = Acknowledgement(approval.args_sha256, approval.findings.alarms)
            await services.inbox.decide(WORKSPACE, approval_id, _decision(verb, words, seen), ANN)

        self._with_services(work)

    def _with_services(self, work: Callable[[AppServices], Awaitable[T]]) -> T:
        async def run() -> T:
            services = build_services(self._url)
            await services.store.open()
            try:
                return await work(services)
            finally:
                await services.store.close()

        return asyncio.run(run())


def _decision(verb: str, words: tuple[str, ...], seen: Acknowledgement) -> Decision:
    said = words[-1] if words else ""
    match verb:
        case "approve":
            return Approve(seen)
        case "edit":
            return Edit(json.loads(said), seen)
        case "respond":
            return Respond(said, seen=seen)
        case "reject":
            return Reject(said, seen)
        case _:
            raise ValueError(f"{verb} is no decision.")
