"""PagerDuty, by its Events API v2: one incident for each call, resolved when there is nothing left to decide.

Settings: `routing_key` of a service's integration; `url` for another region. Nothing is decided there: acknowledging an
incident only shows that somebody works on it.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from interlock.core.errors import Misconfigured
from interlock.core.notify.delivery import ApprovalView, Notification
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify import message_text
from interlock.notify.channel import ChannelContext, text_setting
from interlock.notify.http import HttpPoster

SETTINGS = ("routing_key", "url", "allow_private")
CAPABILITIES = ChannelCapabilities(rate_per_minute=60)
URL = "https://events.pagerduty.com/v2/enqueue"
ROUTING_KEY_LENGTH = 32  # characters of a routing key
SEVERITIES = {"high": "critical", "medium": "warning", "low": "info"}
MAX_SUMMARY, MAX_KEY, MAX_NAME, MOST_WARNINGS = 1024, 255, 200, 20
SELF_RESOLVING = ("test", "expired", "group")


def connect(context: ChannelContext) -> PagerDutyChannel:
    key = text_setting(context.settings, "routing_key")
    if len(key) != ROUTING_KEY_LENGTH:
        raise Misconfigured(f"routing_key must have {ROUTING_KEY_LENGTH} characters, as PagerDuty shows it")
    return PagerDutyChannel(
        key,
        urlsplit(context.public_url).netloc,
        HttpPoster(context, "PagerDuty", text_setting(context.settings, "url", URL)),
    )


class PagerDutyChannel:
    def __init__(self, key: str, source: str, poster: HttpPoster) -> None:
        self._key = key
        self._source = source
        self._poster = poster

    async def send(self, message: Notification) -> str:
        """Trigger an incident, and resolve it at once if nothing can be done about it, or no update will follow."""
        incident = self._incident(message)
        if message.purpose == "ended":  # an earlier attempt may have triggered it
            return await self.update(message, incident)
        await self._trigger(message, incident)
        if message.purpose in SELF_RESOLVING:
            await self._post({"event_action": "resolve"}, incident)
        return incident

    async def update(self, message: Notification, ref: str) -> str:
        """Resolve the incident, unless the call is pending or its outcome unknown, which needs attention too."""
        approval_view = message.approval_view
        if approval_view is None or approval_view.status in ("pending", "unknown"):
            await self._trigger(message, ref)
        else:
            await self._post({"event_action": "resolve"}, ref)
        return ref

    async def close(self) -> None:
        await self._poster.close()

    async def _trigger(self, message: Notification, incident: str) -> None:
        await self._post({"event_action": "trigger", **self._event(message)}, incident)

    async def _post(self, event: dict[str, object], incident: str) -> None:
        body = {**event, "routing_key": self._key, "dedup_key": incident}
        await self._poster.post(json.dumps(body).encode(), {"content-type": "application/json"})

    def _incident(self, message: Notification) -> str:
        """Return the dedup key, the same for all messages about a call: one incident for all recipients and reasons."""
        about = message.approval_view.approval.id if message.approval_view else message.id
        return message_text.shorten(f"interlock/{message.workspace}/{about}", MAX_KEY)

    def _event(self, message: Notification) -> dict[str, object]:
        approval_view = message.approval_view
        priority = approval_view.approval.subject.priority if approval_view else "low"
        payload: dict[str, object] = {
            "summary": message_text.title(message, MAX_SUMMARY),
            "source": self._source or "interlock",
            "severity": SEVERITIES[priority],
            "class": "approval",
        }
        event: dict[str, object] = {"payload": payload, "client": "Interlock", "client_url": message.link}
        if approval_view is not None:
            payload |= {
                "component": message_text.shorten(approval_view.card.tool, MAX_NAME),
                "custom_details": _details(approval_view),
            }
            event["links"] = [{"href": message.link, "text": "Review and decide"}]
        return event


def _details(approval_view: ApprovalView) -> dict[str, object]:
    arguments = [f"{name}: {value}" for name, value in message_text.arguments(approval_view)]
    details: dict[str, object] = {
        "call": message_text.status_sentence(approval_view),
        "risk": approval_view.card.risk,
        "arguments": arguments,
    }
    details |= dict(message_text.claims(approval_view))
    warned = message_text.warnings(approval_view)[:MOST_WARNINGS]
    return {**details, "warnings": warned} if warned else details
