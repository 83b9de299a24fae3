"""Client for Slack's Web API. Errors have our own messages, with what to change in Slack."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from interlock.core.card import escape_invisible
from interlock.core.errors import DeliveryFailed
from interlock.notify.channel import DeliveryDelayed, DeliveryRejected
from interlock.notify.http import HttpPoster, parse_retry_after

Json = dict[str, Any]
JSON = {"content-type": "application/json; charset=utf-8"}
FORM = {"content-type": "application/x-www-form-urlencoded"}

TRANSIENT_ERRORS = frozenset({"ratelimited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"})
TOKEN_ERRORS = frozenset({"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"})
MESSAGE_GONE_ERRORS = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
SCOPES = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "chat.postEphemeral": "chat:write",
    "users.info": "users:read and users:read.email",
    "apps.connections.open": "connections:write",
}


class SlackMessageGone(DeliveryFailed):
    """The message to update was deleted, or cannot be changed."""


@dataclass(frozen=True)
class SlackApi:
    """The Web API at `url`, which ends with a slash; `app_token` is for `apps.connections.open` only."""

    poster: HttpPoster
    url: str
    bot_token: str
    app_token: str

    async def post(self, method: str, body: Mapping[str, object], destination: str = "") -> Json:
        """Call a method that writes, with a JSON body; `destination` is named in errors about it."""
        return await self._call(method, json.dumps(body).encode(), JSON, destination)

    async def query(self, method: str, **fields: str) -> Json:
        """Call a method that reads, which only takes a form."""
        return await self._call(method, urlencode(fields).encode(), FORM, "")

    async def _call(self, method: str, content: bytes, headers: Mapping[str, str], destination: str) -> Json:
        token = self.app_token if method == "apps.connections.open" else self.bot_token
        answer = await self.poster.post(content, {**headers, "authorization": f"Bearer {token}"}, f"{self.url}{method}")
        try:
            payload = json.loads(answer.content)
        except ValueError:
            payload = None
        if not isinstance(payload, dict):
            raise DeliveryDelayed("Slack answered something that is not an answer of its API.")
        if payload.get("ok") is True:
            return payload
        raise _failure(
            str(payload.get("error", "")), method, escape_invisible(destination), parse_retry_after(answer.headers)
        )


def _failure(code: str, method: str, place: str, after: float) -> DeliveryFailed:
    if code in TRANSIENT_ERRORS:
        return DeliveryDelayed("Slack has no time for it now.", after)
    if code in MESSAGE_GONE_ERRORS:
        return SlackMessageGone("The message in Slack is gone or cannot be changed.")
    if code in TOKEN_ERRORS:
        which = "app_token" if method == "apps.connections.open" else "token"
        return DeliveryRejected(
            f"Slack does not take the {which} of the configuration. Install the app again and set the new one."
        )
    if code == "missing_scope":
        return DeliveryRejected(
            f"The app in Slack may not do this: add the scope {SCOPES.get(method, 'chat:write')} and reinstall."
        )
    return DeliveryRejected(_HINTS.get(code, "Slack refused it.").format(place=place))


_HINTS = {
    "channel_not_found": "Slack shows the app no channel {place}. Check the name, and invite the app to it.",
    "not_in_channel": "The app is not in {place}. Invite the app to {place} in Slack.",
    "is_archived": "{place} is archived in Slack. Unarchive it, or name another channel.",
    "restricted_action": "Slack's settings do not let the app write in {place}. Ask an admin of the Slack workspace.",
    "msg_too_long": "Slack says that the message is too long.",
    "msg_blocks_too_long": "Slack says that the message is too long.",
    "invalid_blocks": "Slack says that the message is not well formed.",
    "user_not_found": "Slack does not know this user.",
    "user_not_in_channel": "The user is not in this channel.",
    "expired_trigger_id": "Too much time passed since the click. Click again.",
    "trigger_expired": "Too much time passed since the click. Click again.",
}
