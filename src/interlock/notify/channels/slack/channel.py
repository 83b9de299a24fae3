"""The Slack channel: sends and updates messages, and handles interactions over HTTP or Socket Mode.

It is long because the calls of Slack's Web API stand below the channel, which alone makes them.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode

from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from interlock.core.approval import approval as approvals
from interlock.core.approval import vote as voting
from interlock.core.card import escape_invisible
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.errors import (
    DeliveryFailed,
    DigestMismatch,
    Error,
    Expired,
    InvalidDecision,
    Misconfigured,
    NotFound,
    Problem,
)
from interlock.core.notify.delivery import ApprovalView, Delivery, Notification
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify.channel import (
    ChannelContext,
    DeliveryDelayed,
    DeliveryRejected,
    InboundPort,
    InboundRequest,
    InboundResponse,
    text_setting,
)
from interlock.notify.channels.slack import modals
from interlock.notify.channels.slack.blocks import (
    NEEDS_FULL_VIEW,
    VERBS,
    escape,
    escape_and_cut,
    is_shown_in_full,
    markup_block,
    render_message,
    render_reminder,
    text_block,
)
from interlock.notify.http import HttpPoster, parse_retry_after

SETTINGS = ("token", "signing_secret", "app_token", "channel", "url", "allow_private")
CAPABILITIES = ChannelCapabilities(has_destinations=True)
URL = "https://slack.com/api/"
CHANNEL = "#approvals"
TOLERANCE = 300  # seconds that a request may be old, or ahead of our clock
SWAPPED_PREFIXES = {"token": "xapp-", "app_token": "xoxb-"}  # the prefix of the other token
UNSIGNED_RESPONSE = InboundResponse(
    401, b'{"error":"unauthenticated","message":"This is not signed by Slack, or not by now."}'
)
Json = dict[str, Any]


def connect(context: ChannelContext) -> SlackChannel:
    token, secret = text_setting(context.settings, "token"), text_setting(context.settings, "signing_secret", "")
    app_token = text_setting(context.settings, "app_token", "")
    for name, value in (("token", token), ("app_token", app_token)):
        if value.startswith(SWAPPED_PREFIXES[name]) or not value.isascii() or not value.isprintable():
            raise Misconfigured(f"{name} is not a valid token; token begins with xoxb-, app_token with xapp-")
    url = text_setting(context.settings, "url", URL).rstrip("/") + "/"
    api = SlackApi(HttpPoster(context, "Slack", url), url, token, app_token)
    return SlackChannel(api, secret, text_setting(context.settings, "channel", CHANNEL) or CHANNEL)


class SlackChannel:
    def __init__(self, api: SlackApi, signing_secret: str, channel: str) -> None:
        self._api = api
        self._signing_secret = signing_secret
        self._channel = channel
        self._interactions = InteractionHandler(api)
        self._is_interactive = bool(signing_secret or api.app_token)

    # Outbound

    async def send(self, message: Notification) -> str:
        """Post a message. A retry after a lost response can post a duplicate, since Slack has no idempotency key.

        Both messages then show the same and belong to the same delivery, whose id is in their metadata.
        """
        if message.purpose == "test" and self._api.app_token:
            await self._api.query("apps.connections.open")
        destination = message.to.destination or self._channel
        metadata = {"event_type": "interlock_delivery", "event_payload": {"id": message.id, "thread": message.thread}}
        content = render_message(message, interactive=self._is_interactive)
        quiet = {"unfurl_links": False, "unfurl_media": False}
        answer = await self._api.post(
            "chat.postMessage", {"channel": destination, **content, **quiet, "metadata": metadata}, destination
        )
        return json.dumps({"channel": str(answer.get("channel", destination)), "ts": str(answer.get("ts", ""))})

    async def update(self, message: Notification, ref: str) -> str:
        """Update the message; a reminder is a reply that is also shown in the channel."""
        posted = json.loads(ref)
        content = render_message(message, interactive=self._is_interactive)
        destination = message.to.destination or self._channel
        try:
            await self._api.post("chat.update", {**posted, **content}, destination)
        except SlackMessageGone:  # it was deleted: if the call has ended, nothing needs to be posted
            is_open = message.approval_view is not None and message.approval_view.is_open
            return await self.send(message) if is_open else ref
        if message.purpose == "remind":
            reply = {"channel": posted["channel"], "thread_ts": posted["ts"], "reply_broadcast": True}
            quiet = {"unfurl_links": False, "unfurl_media": False}
            await self._api.post("chat.postMessage", {**reply, **render_reminder(message), **quiet}, destination)
        return ref

    async def close(self) -> None:
        await self._interactions.close()
        await self._api.poster.close()

    # Inbound

    async def answer(self, request: InboundRequest, inbound: InboundPort) -> InboundResponse:
        if not self._is_signed(request, inbound.now()):
            return UNSIGNED_RESPONSE
        payload = _payload(request.body)
        return InboundResponse(400) if payload is None else await self._interactions.handle(payload, inbound)

    async def listen(self, inbound: InboundPort, stop: asyncio.Event) -> None:
        """Listen by Socket Mode, if there is an app token. Slack is authenticated by its certificate."""
        if not self._api.app_token:
            await stop.wait()
            return
        quiet = logging.Logger("slack", logging.CRITICAL + 1)  # its lines may hold the connection's secret URL
        web = AsyncWebClient(base_url=self._api.url, logger=quiet)
        client = SocketModeClient(self._api.app_token, quiet, web)
        client.proxy = web.proxy = None  # which both would take from the environment

        async def take(_: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
            await self._handle_socket_request(client, request, inbound)

        client.socket_mode_request_listeners.append(take)
        connecting = asyncio.create_task(client.connect())  # type: ignore[no-untyped-call]  # the vendor's
        try:
            await stop.wait()
        finally:
            client.closed = True
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
            await client.close()  # type: ignore[no-untyped-call]

    async def _handle_socket_request(
        self, client: SocketModeClient, request: SocketModeRequest, inbound: InboundPort
    ) -> None:
        """Handle a request; acknowledged when it is done or slow. Slack retries what is not acknowledged."""
        reply = InboundResponse(200)
        try:
            if request.type == "interactive":
                reply = await self._interactions.handle(request.payload, inbound)
        except Exception as error:  # noqa: BLE001  one click must not end the connection
            context = {"message": "A click in Slack failed.", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            return
        body = {"payload": json.loads(reply.body)} if reply.body else {}
        await client.send_socket_mode_response({"envelope_id": request.envelope_id, **body})

    def _is_signed(self, request: InboundRequest, now: int) -> bool:
        """Return whether Slack has signed the request, at most five minutes before or after now."""
        stamp = request.headers.get("x-slack-request-timestamp", "")
        signature = request.headers.get("x-slack-signature", "")
        if not self._signing_secret or not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
            return False
        if abs(now - int(stamp) * 1000) > TOLERANCE * 1000:
            return False
        signed = b"v0:" + stamp.encode() + b":" + request.body
        right = "v0=" + hmac.new(self._signing_secret.encode(), signed, sha256).hexdigest()
        return hmac.compare_digest(right.encode(), signature.encode())


def _payload(body: bytes) -> Json | None:
    """Parse the JSON in the form's only field."""
    try:
        payload = json.loads(parse_qs(body.decode(), strict_parsing=True, max_num_fields=10)["payload"][0])
    except (ValueError, KeyError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


RESPONSE_TIMEOUT = 2.0  # seconds until our response; Slack gives up after three
USER_LOOKUP_TIMEOUT = 1.5  # seconds of these to ask Slack for the user
DONE = InboundResponse(200)
CHANGED = "The arguments changed since you saw them. Reload the card."
NOTHING_DECIDED = "Nothing was decided."
NOT_SHOWN_IN_FULL = "This message shows only part of the call. Open the page to review it."
GONE = "This message is no longer known to Interlock. Open the inbox."
SLOW = "This is taking longer than Slack waits. It continues in the background: check the message, or try again."
_ID = re.compile(r"[A-Z0-9]{1,32}")
_VALUE = re.compile(r"(\S{1,400}) ([0-9a-f]{64})")


class SlackUser(NamedTuple):
    """A Slack user; `external_id` is linked to an account."""

    team: str
    user: str

    @property
    def external_id(self) -> str:
        return f"{self.team}/{self.user}"


class UnknownSlackUser(Exception):
    """No Interlock account matches the Slack user; the message says why."""


class InteractionHandler:
    """Handles clicks and forms. Work that exceeds the response time goes on, and is awaited on close."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api
        self._team_id = ""
        self._tasks: set[asyncio.Task[InboundResponse]] = set()

    async def handle(self, payload: Json, inbound: InboundPort) -> InboundResponse:
        """Handle an authenticated request from Slack."""
        kind, value = payload.get("type"), _action_value(payload)
        found = _VALUE.fullmatch(value or "")
        slack_user = _read_user(payload)
        if kind not in ("block_actions", "view_submission") or value is None:
            return DONE
        if found is None or slack_user is None:
            return await self._report_unknown_message(payload, slack_user)
        thread, seen_digest = found.groups()
        try:
            delivery = await inbound.delivery(thread)
        except NotFound:
            return await self._report_unknown_message(payload, slack_user)
        act = self._handle_click if kind == "block_actions" else self._handle_submission
        key = sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()
        return await inbound.run_once(
            delivery.workspace,
            key,
            lambda: self._run_with_timeout(lambda: act(payload, slack_user, delivery, seen_digest, inbound), payload),
        )

    async def close(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Buttons

    async def _handle_click(
        self, payload: Json, slack_user: SlackUser, delivery: Delivery, seen_digest: str, inbound: InboundPort
    ) -> InboundResponse:
        kind = str(payload["actions"][0].get("action_id"))
        try:
            reviewer = await self._reviewer(slack_user, delivery.workspace, inbound)
            approval_view = await inbound.get_approval_view(delivery.workspace, delivery.approval_id)
            if kind in NEEDS_FULL_VIEW and approval_view.is_open and not is_shown_in_full(approval_view):
                unseen = InvalidDecision(NOT_SHOWN_IN_FULL)
                await inbound.record_refusal(delivery.workspace, delivery.approval_id, reviewer, unseen)
                message = (
                    _obstacle(approval_view, reviewer, kind, seen_digest) or f"{NOT_SHOWN_IN_FULL} {NOTHING_DECIDED}"
                )
            elif kind == "approve" and not (approval_view.is_open and approval_view.approval.findings.alarms):
                message = await self._approve(approval_view, seen_digest, reviewer, delivery, inbound)
            else:
                message = _obstacle(approval_view, reviewer, kind, seen_digest) or await self._open(
                    payload, kind, approval_view
                )
        except UnknownSlackUser as stranger:
            link = await inbound.make_identity_link(delivery.workspace, slack_user.external_id)
            return await self._send_ephemeral(payload, slack_user, f"{stranger} {NOTHING_DECIDED}", link)
        except Error as error:
            return await self._send_ephemeral(payload, slack_user, error.message)
        return await self._send_ephemeral(payload, slack_user, message) if message else DONE

    async def _approve(
        self,
        approval_view: ApprovalView,
        seen_digest: str,
        reviewer: Reviewer,
        delivery: Delivery,
        inbound: InboundPort,
    ) -> str:
        """Approve it; any refusal comes from the server, which also records it."""
        await inbound.decide(delivery.workspace, delivery.approval_id, Approve(Acknowledgement(seen_digest)), reviewer)
        if reviewer.name in {vote.by for vote in approval_view.approval.votes}:
            return "You have already approved this. It needs another person's approval."
        return ""

    async def _open(self, payload: Json, kind: str, approval_view: ApprovalView) -> str:
        """Open a form; return why not, or an empty text."""
        form = modals.make_form(kind, approval_view)
        if form is None:
            return f"Slack cannot show the whole form. Open the page to {VERBS.get(kind, kind).lower()} it."
        view = form.view(str(_action_value(payload)))
        await self._api.post("views.open", {"trigger_id": payload.get("trigger_id"), "view": view})
        return ""

    async def _send_ephemeral(self, payload: Json, slack_user: SlackUser, text: str, link: str = "") -> InboundResponse:
        """Send a message that only the person who clicked sees; a failure is ignored."""
        blocks = [text_block(escape_invisible(text))]
        blocks += [markup_block(f"<{escape(link)}|Link your Interlock account>, then click again.")] if link else []
        place = payload.get("channel") or {}
        try:
            await self._api.post(
                "chat.postEphemeral",
                {
                    "channel": place.get("id"),
                    "user": slack_user.user,
                    "text": escape_and_cut(escape_invisible(text), 2_000),
                    "blocks": blocks,
                },
            )
        except DeliveryFailed:
            return DONE
        return DONE

    # Modals

    async def _handle_submission(
        self, payload: Json, slack_user: SlackUser, delivery: Delivery, seen_digest: str, inbound: InboundPort
    ) -> InboundResponse:
        view = payload["view"]
        try:
            reviewer = await self._reviewer(slack_user, delivery.workspace, inbound)
            approval_view = await inbound.get_approval_view(delivery.workspace, delivery.approval_id)
        except UnknownSlackUser as stranger:
            return _errors_response({_first_input_id(view): f"{stranger} {NOTHING_DECIDED}"})
        except Error as error:
            return _errors_response({_first_input_id(view): error.message})
        kind = str(view.get("callback_id"))
        refuse = partial(inbound.record_refusal, delivery.workspace, delivery.approval_id, reviewer)
        if kind in NEEDS_FULL_VIEW and approval_view.is_open and not is_shown_in_full(approval_view):
            await refuse(InvalidDecision(NOT_SHOWN_IN_FULL))
            return _errors_response({_first_input_id(view): f"{NOT_SHOWN_IN_FULL} {NOTHING_DECIDED}"})
        form = modals.make_form(kind, approval_view)
        if form is None or (approval_view.is_open and seen_digest != approval_view.approval.args_sha256):
            await refuse(DigestMismatch(CHANGED))
            return _errors_response({_first_input_id(view): CHANGED})
        try:
            decision = modals.parse_decision(
                form, approval_view, seen_digest, (view.get("state") or {}).get("values") or {}
            )
            await inbound.decide(delivery.workspace, delivery.approval_id, decision, reviewer)
        except modals.InvalidForm as wrong:
            problems = [Problem(f"/{block}", text) for block, text in wrong.errors.items()]
            await refuse(InvalidDecision("Some fields of the form are not valid.", problems))
            return _errors_response(wrong.errors)
        except Error as error:
            return _errors_response(modals.field_errors(form, error))
        return DONE

    # Identity

    async def _reviewer(self, slack_user: SlackUser, workspace: str, inbound: InboundPort) -> Reviewer:
        """Return the linked account, or the one with an e-mail address that Slack has verified; never by name.

        Raises UnknownSlackUser.
        """
        known = await inbound.find_reviewer(workspace, slack_user.external_id)
        known = known or await inbound.find_reviewer(workspace, slack_user.external_id, await self._email(slack_user))
        if known is None:
            raise UnknownSlackUser("No Interlock user has your Slack e-mail address.")
        return known

    async def _email(self, slack_user: SlackUser) -> str:
        try:
            async with asyncio.timeout(USER_LOOKUP_TIMEOUT):
                self._team_id = self._team_id or str((await self._api.query("auth.test")).get("team_id", ""))
                user = (await self._api.query("users.info", user=slack_user.user)).get("user")
        except (DeliveryFailed, TimeoutError):
            raise UnknownSlackUser("Slack did not say who you are.") from None
        profile = user.get("profile") if isinstance(user, dict) else None
        if not isinstance(user, dict) or not isinstance(profile, dict) or user.get("id") != slack_user.user:
            raise UnknownSlackUser("Slack did not say who you are.")
        if not self._team_id or not self._team_id == user.get("team_id") == slack_user.team:
            raise UnknownSlackUser("You are in a different Slack workspace from this app.")
        if any(user.get(flag) for flag in ("is_bot", "deleted", "is_restricted", "is_ultra_restricted", "is_stranger")):
            raise UnknownSlackUser("Slack lists you as a guest, a bot or a former member.")
        email = profile.get("email")
        if user.get("is_email_confirmed") is not True or not isinstance(email, str) or not email:
            raise UnknownSlackUser("Slack has not confirmed your e-mail address, or does not show it to the app.")
        return email

    # Timeouts

    async def _run_with_timeout(self, work: Callable[[], Awaitable[InboundResponse]], payload: Json) -> InboundResponse:
        """Run work that goes on after the response if it is slow."""
        task = asyncio.ensure_future(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        done, _ = await asyncio.wait({task}, timeout=RESPONSE_TIMEOUT)
        if done:
            return task.result()
        return _errors_response({_first_input_id(payload["view"]): SLOW}) if "view" in payload else DONE

    async def _report_unknown_message(self, payload: Json, slack_user: SlackUser | None) -> InboundResponse:
        if payload.get("type") == "view_submission":
            return _errors_response({_first_input_id(payload.get("view") or {}): GONE})
        return DONE if slack_user is None else await self._send_ephemeral(payload, slack_user, GONE)


def _action_value(payload: Json) -> str | None:
    """Return the value of the button or the form; None for a button that only opens a page."""
    if payload.get("type") == "view_submission":
        return str((payload.get("view") or {}).get("private_metadata", ""))
    actions = payload.get("actions")
    first = actions[0] if isinstance(actions, list) and actions and isinstance(actions[0], dict) else {}
    return str(first.get("value", "")) if first.get("action_id") in VERBS else None


def _read_user(payload: Json) -> SlackUser | None:
    user = payload.get("user") or {}
    team = user.get("team_id") or (payload.get("team") or {}).get("id")
    slack_user = SlackUser(str(team), str(user.get("id")))
    return slack_user if all(map(_ID.fullmatch, slack_user)) else None


def _obstacle(approval_view: ApprovalView, reviewer: Reviewer, kind: str, seen_digest: str) -> str:
    """Return why no form is shown; the server checks a submission again."""
    approval = approval_view.approval
    if approval_view.status == "expired":
        return Expired("This approval has expired. Let the agent propose the call again.").message
    if not approval_view.is_open:
        return approvals.already_decided_error(replace(approval, status=approval_view.status)).message
    if not voting.has_open_vote(approval, reviewer):
        return voting.not_an_approver_text(approval)
    if kind not in approval.terms.decisions:
        return f"This call cannot be answered by {kind}; allowed: {', '.join(approval.terms.decisions)}."
    return CHANGED if seen_digest != approval.args_sha256 else ""


def _errors_response(errors: Mapping[str, str]) -> InboundResponse:
    """Show errors at the form's fields, with the input kept."""
    return InboundResponse(200, json.dumps({"response_action": "errors", "errors": dict(errors)}).encode())


def _first_input_id(view: Json) -> str:
    """Return the form's first field, for errors that concern all of it."""
    blocks = [each for each in view.get("blocks", ()) if isinstance(each, dict) and each.get("type") == "input"]
    return str(blocks[0].get("block_id", "")) if blocks else ""


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
            raise DeliveryDelayed("Slack sent an unexpected response.")
        if payload.get("ok") is True:
            return payload
        raise _failure(
            str(payload.get("error", "")), method, escape_invisible(destination), parse_retry_after(answer.headers)
        )


def _failure(code: str, method: str, place: str, after: float) -> DeliveryFailed:
    if code in TRANSIENT_ERRORS:
        return DeliveryDelayed("Slack is busy.", after)
    if code in MESSAGE_GONE_ERRORS:
        return SlackMessageGone("The Slack message was deleted or can no longer be changed.")
    if code in TOKEN_ERRORS:
        which = "app_token" if method == "apps.connections.open" else "token"
        return DeliveryRejected(
            f"Slack rejected the {which} in the configuration. Reinstall the app and set the new one."
        )
    if code == "missing_scope":
        return DeliveryRejected(
            f"The Slack app lacks a permission: add the scope {SCOPES.get(method, 'chat:write')} and reinstall it."
        )
    return DeliveryRejected(_HINTS.get(code, "Slack rejected the request.").format(place=place))


_HINTS = {
    "channel_not_found": "The Slack app cannot see the channel {place}. Check the name, and invite the app to it.",
    "not_in_channel": "The app is not in {place}. Invite the app to {place} in Slack.",
    "is_archived": "{place} is archived in Slack. Unarchive it, or name another channel.",
    "restricted_action": "The Slack workspace does not allow the app to post in {place}. Ask its admin.",
    "msg_too_long": "Slack rejected the message: too long.",
    "msg_blocks_too_long": "Slack rejected the message: too long.",
    "invalid_blocks": "Slack rejected the message: malformed.",
    "user_not_found": "Slack does not know this user.",
    "user_not_in_channel": "The user is not in this channel.",
    "expired_trigger_id": "The click has timed out. Click again.",
    "trigger_expired": "The click has timed out. Click again.",
}
