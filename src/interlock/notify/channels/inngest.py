"""Inngest: posts the event `hitl.approval.resolved` when a call of a function is decided. It tells no people.

Settings: `event_key`, and `url` for a server of one's own (`allow_private` if it is in your own network). The event
means "look again": the function that waits asks Interlock itself, and believes nothing else that the event says.
"""

from __future__ import annotations

import json
from urllib.parse import quote, urlsplit

from interlock.core.errors import Misconfigured
from interlock.core.notify.message import Message, Topic
from interlock.core.notify.routing import Means
from interlock.notify.channel import Kit, text
from interlock.notify.http import Poster

SETTINGS = ("event_key", "url", "allow_private")
ENGINE = "inngest"
MEANS = Means(priorities=frozenset(), wakes=ENGINE)
URL = "https://inn.gs"
RESOLVED, TEST = "hitl.approval.resolved", "interlock.test"
GIVEN = frozenset({"approved", "running", "succeeded", "failed", "unknown"})  # an approval that was given, or used


def connect(kit: Kit) -> Inngest:
    key, url = text(kit.settings, "event_key"), text(kit.settings, "url", URL)
    parts = urlsplit(url)
    if parts.query or parts.fragment or parts.path not in ("", "/"):
        raise Misconfigured("url is the address alone, such as https://inn.gs: the rest is added")
    return Inngest(Poster(kit, "Inngest", f"{url.rstrip('/')}/e/{quote(key, safe='')}"))


class Inngest:
    def __init__(self, poster: Poster) -> None:
        self._poster = poster

    async def send(self, message: Message) -> str:
        """There is nothing to tell but that a call was decided."""
        match message.purpose, message.topic:
            case "woken", Topic() as topic:
                await self._post(message, RESOLVED, _resolved(message, topic))
            case "test", _:
                await self._post(message, TEST, {"workspace": message.workspace})
            case _:
                pass
        return ""

    async def update(self, message: Message, ref: str) -> str:
        return await self.send(message)

    async def close(self) -> None:
        await self._poster.close()

    async def _post(self, message: Message, name: str, data: dict[str, object]) -> None:
        """The id is the same for every try: Inngest drops what it has."""
        event = {"id": message.id, "name": name, "ts": message.at, "data": data}
        await self._poster.post(json.dumps([event]).encode(), {"content-type": "application/json"})


def _resolved(message: Message, topic: Topic) -> dict[str, object]:
    """No arguments, no reasons: events are kept and shown by others."""
    approval = topic.approval
    return {
        "eventId": approval.id,
        "approved": topic.status in GIVEN,
        "userId": approval.decision.by if approval.decision else "",
        "status": topic.status,
        "workspace": message.workspace,
        "runId": approval.subject.run_id.removeprefix(f"{ENGINE}:"),
    }
