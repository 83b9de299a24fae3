"""Inngest: posts the event `hitl.approval.resolved` when a function's call is decided. It notifies no people.

Settings: `event_key`, and `url` for a self-hosted server (`allow_private` if it is in your own network). The event is
only a wake-up: the waiting function reads the decision from Interlock, and trusts nothing else in the event.
"""

from __future__ import annotations

import json
from urllib.parse import quote, urlsplit

from interlock.core.approval.approval import APPROVED_STATUSES
from interlock.core.errors import Misconfigured
from interlock.core.notify.delivery import ApprovalView, Notification
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify.channel import ChannelContext, text_setting
from interlock.notify.http import HttpPoster

SETTINGS = ("event_key", "url", "allow_private")
ENGINE = "inngest"
CAPABILITIES = ChannelCapabilities(priorities=frozenset(), engine=ENGINE)
URL = "https://inn.gs"
RESOLVED, TEST = "hitl.approval.resolved", "interlock.test"


def connect(context: ChannelContext) -> InngestChannel:
    key, url = text_setting(context.settings, "event_key"), text_setting(context.settings, "url", URL)
    parts = urlsplit(url)
    if parts.query or parts.fragment or parts.path not in ("", "/"):
        raise Misconfigured("url must be the address alone, such as https://inn.gs; the path is added")
    return InngestChannel(HttpPoster(context, "Inngest", f"{url.rstrip('/')}/e/{quote(key, safe='')}"))


class InngestChannel:
    def __init__(self, poster: HttpPoster) -> None:
        self._poster = poster

    async def send(self, message: Notification) -> str:
        """Post the event of a decided call, or a test event; all other messages are ignored."""
        match message.purpose, message.approval_view:
            case "woken", ApprovalView() as approval_view:
                await self._post(message, RESOLVED, _resolved_event(message, approval_view))
            case "test", _:
                await self._post(message, TEST, {"workspace": message.workspace})
            case _:
                pass
        return ""

    async def update(self, message: Notification, ref: str) -> str:
        return await self.send(message)

    async def close(self) -> None:
        await self._poster.close()

    async def _post(self, message: Notification, name: str, data: dict[str, object]) -> None:
        """Post an event. Its id is the same for every retry: Inngest drops duplicates."""
        event = {"id": message.id, "name": name, "ts": message.at, "data": data}
        await self._poster.post(json.dumps([event]).encode(), {"content-type": "application/json"})


def _resolved_event(message: Notification, approval_view: ApprovalView) -> dict[str, object]:
    """Build the event, without arguments and reasons: others store and show events."""
    approval = approval_view.approval
    return {
        "eventId": approval.id,
        "approved": approval_view.status in APPROVED_STATUSES,
        "userId": approval.decision.by if approval.decision else "",
        "status": approval_view.status,
        "workspace": message.workspace,
        "runId": approval.subject.run_id.removeprefix(f"{ENGINE}:"),
    }
