"""Restate: wakes handlers that wait for people, by their awakeables. It carries no decision: they look for themselves.

Settings: `url` of the ingress; `key`, if the ingress wants one as a bearer; `allow_private: true` for one in your own
network. Only runs of Restate are told of; people are told through the other channels.
"""

from __future__ import annotations

import json
import re

from interlock.core.notify.delivery import Notification
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify.channel import ChannelContext, DeliveryRejected, text_setting
from interlock.notify.http import HttpPoster

SETTINGS = ("url", "key", "allow_private")
# Somebody waits for it: soon, then ever more patiently, for about a day.
RETRY_DELAYS = (1, 1, 2, 5, 10, *[30] * 10, *[300] * 24, *[1_800] * 44)
CAPABILITIES = ChannelCapabilities(priorities=frozenset(), retry_delays=RETRY_DELAYS, engine="restate")
ALREADY_RESOLVED_STATUSES = frozenset({404, 409})  # nobody waits there any more
HEALTHY_STATUSES = frozenset({405})  # what an ingress says to a POST of its health
# A call id is the agent's own word: nothing but an awakeable may become part of an address.
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
        """The second time, and for one that has ended, Restate takes it and does nothing."""
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
