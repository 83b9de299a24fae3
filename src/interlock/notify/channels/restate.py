"""Restate: resolves the awakeables of handlers that wait for a decision. It sends no decision: handlers read it.

Settings: `url` of the ingress; `key`, if the ingress needs a bearer token; `allow_private: true` for one in your own
network. Only Restate runs are notified; people are notified through the other channels.
"""

from __future__ import annotations

import json
import re

from interlock.core.notify.delivery import Notification
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify.channel import ChannelContext, DeliveryRejected, text_setting
from interlock.notify.http import HttpPoster

SETTINGS = ("url", "key", "allow_private")
# A handler waits for it: retry soon, then with growing delays, for about a day.
RETRY_DELAYS = (1, 1, 2, 5, 10, *[30] * 10, *[300] * 24, *[1_800] * 44)
CAPABILITIES = ChannelCapabilities(priorities=frozenset(), retry_delays=RETRY_DELAYS, engine="restate")
ALREADY_RESOLVED_STATUSES = frozenset({404, 409})  # nothing waits there any more
HEALTHY_STATUSES = frozenset({405})  # the ingress's response to a POST to its health endpoint
# A call id is chosen by the agent: nothing but an awakeable may become part of a URL.
_AWAKEABLE = re.compile(r"(sign|prom)_1[A-Za-z0-9_-]{1,140}")


def connect(context: ChannelContext) -> RestateChannel:
    url = text_setting(context.settings, "url").rstrip("/")
    return RestateChannel(HttpPoster(context, "Restate", url), url, text_setting(context.settings, "key", ""))


class RestateChannel:
    def __init__(self, poster: HttpPoster, url: str, key: str) -> None:
        self._poster = poster
        self._url = url
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})

    async def send(self, message: Notification) -> str:
        """Resolve the awakeable. For a duplicate, or a handler that has ended, Restate accepts it and does nothing."""
        approval_view = message.approval_view
        if message.purpose == "test":
            await self._poster.post(b"", self._headers, f"{self._url}/restate/health", HEALTHY_STATUSES)
        elif approval_view is not None and message.purpose == "woken":
            body = json.dumps({"approval_id": approval_view.approval.id}).encode()
            await self._poster.post(
                body,
                self._headers,
                self._resolve_url(approval_view.approval.subject.call_id),
                ALREADY_RESOLVED_STATUSES,
            )
        return message.id

    async def update(self, message: Notification, ref: str) -> str:
        return await self.send(message)

    async def close(self) -> None:
        await self._poster.close()

    def _resolve_url(self, call_id: str) -> str:
        if not _AWAKEABLE.fullmatch(call_id):
            raise DeliveryRejected("The call has no awakeable: only calls of gated handlers can be woken.")
        return f"{self._url}/restate/awakeables/{call_id}/resolve"
