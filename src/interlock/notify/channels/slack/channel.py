"""Connects a Slack channel: sends, updates, and hands interactions over."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs

from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from interlock.core.errors import Misconfigured
from interlock.core.notify.message import Notification
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify.channel import ChannelContext, InboundPort, InboundRequest, InboundResponse, text_setting
from interlock.notify.channels.slack.api import SlackApi, SlackMessageGone
from interlock.notify.channels.slack.blocks import render_message, render_reminder
from interlock.notify.channels.slack.interactions import InteractionHandler
from interlock.notify.http import HttpPoster

SETTINGS = ("token", "signing_secret", "app_token", "channel", "url", "allow_private")
MEANS = ChannelCapabilities(has_places=True)
URL = "https://slack.com/api/"
CHANNEL = "#approvals"
TOLERANCE = 300  # seconds that a request may be old, or ahead of our clock
SWAPPED_PREFIXES = {"token": "xapp-", "app_token": "xoxb-"}  # what the other one begins with
UNSIGNED_RESPONSE = InboundResponse(
    401, b'{"error":"unauthenticated","message":"This is not signed by Slack, or not by now."}'
)
Json = dict[str, Any]


def connect(kit: ChannelContext) -> SlackChannel:
    token, secret = text_setting(kit.settings, "token"), text_setting(kit.settings, "signing_secret", "")
    app_token = text_setting(kit.settings, "app_token", "")
    for name, value in (("token", token), ("app_token", app_token)):
        if value.startswith(SWAPPED_PREFIXES[name]) or not value.isascii() or not value.isprintable():
            raise Misconfigured(f"{name} is not such a token; token begins with xoxb-, and app_token with xapp-")
    url = text_setting(kit.settings, "url", URL).rstrip("/") + "/"
    api = SlackApi(HttpPoster(kit, "Slack", url), url, token, app_token)
    return SlackChannel(api, secret, text_setting(kit.settings, "channel", CHANNEL) or CHANNEL)


class SlackChannel:
    def __init__(self, api: SlackApi, signing_secret: str, channel: str) -> None:
        self._api = api
        self._signing_secret = signing_secret
        self._channel = channel
        self._clicks = InteractionHandler(api)
        self._is_interactive = bool(signing_secret or api.app_token)

    # What is said

    async def send(self, message: Notification) -> str:
        """Slack has no key that keeps a message from being posted twice when an answer was lost on its way.

        Both then show the same and stand for the same delivery, whose id is in their metadata.
        """
        if message.purpose == "test" and self._api.app_token:
            await self._api.ask("apps.connections.open")
        place = message.to.place or self._channel
        metadata = {"event_type": "interlock_delivery", "event_payload": {"id": message.id, "thread": message.thread}}
        said = render_message(message, interactive=self._is_interactive)
        quiet = {"unfurl_links": False, "unfurl_media": False}
        answer = await self._api.post(
            "chat.postMessage", {"channel": place, **said, **quiet, "metadata": metadata}, place
        )
        return json.dumps({"channel": str(answer.get("channel", place)), "ts": str(answer.get("ts", ""))})

    async def update(self, message: Notification, ref: str) -> str:
        """The message shows how it stands; a reminder is a reply below it that all in the channel see."""
        posted = json.loads(ref)
        said = render_message(message, interactive=self._is_interactive)
        place = message.to.place or self._channel
        try:
            await self._api.post("chat.update", {**posted, **said}, place)
        except SlackMessageGone:  # somebody deleted it: of what is over there is nothing to say any more
            is_open = message.topic is not None and message.topic.is_open
            return await self.send(message) if is_open else ref
        if message.purpose == "remind":
            reply = {"channel": posted["channel"], "thread_ts": posted["ts"], "reply_broadcast": True}
            quiet = {"unfurl_links": False, "unfurl_media": False}
            await self._api.post("chat.postMessage", {**reply, **render_reminder(message), **quiet}, place)
        return ref

    async def close(self) -> None:
        await self._clicks.close()
        await self._api.poster.close()

    # What comes back

    async def answer(self, callback: InboundRequest, reception: InboundPort) -> InboundResponse:
        if not self._is_signed(callback, reception.now()):
            return UNSIGNED_RESPONSE
        payload = _payload(callback.body)
        return InboundResponse(400) if payload is None else await self._clicks.handle(payload, reception)

    async def listen(self, reception: InboundPort, stop: asyncio.Event) -> None:
        """By Socket Mode, if there is a token for it. Slack proves itself by its certificate."""
        if not self._api.app_token:
            await stop.wait()
            return
        quiet = logging.Logger("slack", logging.CRITICAL + 1)  # its lines may hold what opens the connection
        web = AsyncWebClient(base_url=self._api.url, logger=quiet)
        client = SocketModeClient(self._api.app_token, quiet, web)
        client.proxy = web.proxy = None  # which both would take from the environment

        async def take(_: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
            await self._take(client, request, reception)

        client.socket_mode_request_listeners.append(take)
        connecting = asyncio.create_task(client.connect())  # type: ignore[no-untyped-call]  # the vendor's
        try:
            await stop.wait()
        finally:
            client.closed = True
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
            await client.close()  # type: ignore[no-untyped-call]

    async def _take(self, client: SocketModeClient, request: SocketModeRequest, reception: InboundPort) -> None:
        """Acknowledged when it is done or takes long: what nobody acknowledges, Slack sends again."""
        reply = InboundResponse(200)
        try:
            if request.type == "interactive":
                reply = await self._clicks.handle(request.payload, reception)
        except Exception as error:  # noqa: BLE001  one click must not end the connection
            context = {"message": "A click in Slack failed.", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            return
        body = {"payload": json.loads(reply.body)} if reply.body else {}
        await client.send_socket_mode_response({"envelope_id": request.envelope_id, **body})

    def _is_signed(self, callback: InboundRequest, now: int) -> bool:
        """By Slack, and within five minutes of now on either side."""
        stamp = callback.headers.get("x-slack-request-timestamp", "")
        signature = callback.headers.get("x-slack-signature", "")
        if not self._signing_secret or not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
            return False
        if abs(now - int(stamp) * 1000) > TOLERANCE * 1000:
            return False
        signed = b"v0:" + stamp.encode() + b":" + callback.body
        right = "v0=" + hmac.new(self._signing_secret.encode(), signed, sha256).hexdigest()
        return hmac.compare_digest(right.encode(), signature.encode())


def _payload(body: bytes) -> Json | None:
    """The form's one field, which is JSON."""
    try:
        payload = json.loads(parse_qs(body.decode(), strict_parsing=True, max_num_fields=10)["payload"][0])
    except (ValueError, KeyError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None
