"""Webhooks by the Standard Webhooks specification: signed messages to a program, and signed decisions from it.

Settings: `url`; `secret`, or `secrets` with the new one first during a rotation; `full: true` to send the arguments
too; `acts_as`, the account in whose name the program decides. Without it no decision is accepted.
"""

from __future__ import annotations

import binascii
import hmac
import json
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import cast

from standardwebhooks import Webhook

from interlock.core.approval.approval import DecisionRecord
from interlock.core.canonical import parse_json
from interlock.core.card import Card, escape_invisible
from interlock.core.decision import Decision, Reviewer, read_decision_with_digest
from interlock.core.errors import (
    Error,
    Forbidden,
    InvalidDecision,
    InvalidRequest,
    Misconfigured,
    NotFound,
    Unauthenticated,
)
from interlock.core.notify.delivery import ApprovalView, Notification
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify import message_text
from interlock.notify.channel import (
    ChannelContext,
    InboundPort,
    InboundRequest,
    InboundResponse,
    error_response,
    json_response,
    text_setting,
)
from interlock.notify.http import HttpPoster
from interlock.presenters.approval import decision_json
from interlock.runtime.durations import rfc3339

SETTINGS = ("url", "secret", "secrets", "full", "acts_as", "allow_private")
# The specification's delays, and many more in the first hours: a call does not wait for days.
RETRY_DELAYS = (5, 10, 30, 60, *[300] * 24, *[1_800] * 12, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
CAPABILITIES = ChannelCapabilities(rate_per_minute=600, retry_delays=RETRY_DELAYS)
TYPES = {"ask": "pending", "escalate": "escalated", "remind": "reminded"}
FIELDS = frozenset({"approval_id", "workspace", "decision"})
MOST_SECRETS = 5
MOST_FIELDS = 200  # arguments of a full message
MAX_VALUE = 2_000  # characters of each
MAX_FULL = 200_000  # characters in all
_NAME = re.compile(r"[\x21-\x7e]{1,200}")


def connect(context: ChannelContext) -> WebhookChannel:
    url, settings = text_setting(context.settings, "url"), context.settings
    if not isinstance(settings.get("full", False), bool):
        raise Misconfigured("full must be true or false")
    signer = WebhookSigner(_secrets(settings))
    return WebhookChannel(
        HttpPoster(context, "The webhook", url), signer, text_setting(settings, "acts_as", ""), settings
    )


class WebhookChannel:
    def __init__(self, poster: HttpPoster, signer: WebhookSigner, acts_as: str, settings: Mapping[str, object]) -> None:
        self._poster = poster
        self._signer = signer
        self._acts_as = acts_as
        self._full = settings.get("full", False) is True
        self.takes_answers = bool(acts_as)

    async def send(self, message: Notification) -> str:
        content = json.dumps(self._body(message), separators=(",", ":"))
        headers = self._signer.headers(message.id, content, message.at)
        await self._poster.post(content.encode(), {**headers, "content-type": "application/json"})
        return headers["webhook-id"]

    async def update(self, message: Notification, ref: str) -> str:
        """Send every change, each as a new event."""
        return await self.send(message)

    async def answer(self, request: InboundRequest, inbound: InboundPort) -> InboundResponse:
        try:
            return await self._answer(request, inbound)
        except Error as error:
            return error_response(error)

    async def close(self) -> None:
        await self._poster.close()

    async def _answer(self, request: InboundRequest, inbound: InboundPort) -> InboundResponse:
        if not self._acts_as:
            raise NotFound("This address does not accept requests.")
        message_id = self._signer.verify(request.headers, request.body, inbound.now())
        body = _read_body(request.body)
        workspace, approval_id = _text(body, "workspace", inbound.workspace), _text(body, "approval_id")
        reviewer = await inbound.member(workspace, self._acts_as)
        if reviewer is None:
            raise Forbidden("The user of this channel is not a member of the workspace.")
        return await inbound.run_once(
            workspace,
            message_id,
            lambda: _decide(inbound, (workspace, approval_id), body.get("decision"), reviewer),
            sha256(request.body).hexdigest(),
        )

    def _body(self, message: Notification) -> dict[str, object]:
        kind = f"approval.{TYPES.get(message.purpose, message.purpose)}"
        return {"type": kind, "timestamp": rfc3339(message.at), "data": self._data(message)}

    def _data(self, message: Notification) -> dict[str, object]:
        data: dict[str, object] = {"workspace": message.workspace, "link": message.link}
        match message.approval_view:
            case None if message.purpose == "group":
                return {**data, "count": message.count}
            case None:
                return {**data, "sentence": message_text.title(message)}
            case approval_view:
                more = _card_details(approval_view.card) if self._full else {}
                return {**data, **_approval_summary(approval_view), **more}


async def _decide(
    inbound: InboundPort, approval_key: tuple[str, str], decision: object, reviewer: Reviewer
) -> InboundResponse:
    """Decide. A refusal is stored as the response to retries; after an error on our side the request may be retried."""
    workspace, approval_id = approval_key
    try:
        given = await _read_decision(inbound, approval_key, decision, reviewer)
        approval_view = await inbound.decide(workspace, approval_id, given, reviewer)
    except Error as error:
        if error.status >= 500:
            raise
        return error_response(error)
    return json_response(approval_status_json(approval_view))


async def _read_decision(
    inbound: InboundPort, approval_key: tuple[str, str], decision: object, reviewer: Reviewer
) -> Decision:
    try:
        return read_decision_with_digest(decision)
    except InvalidDecision as error:
        await inbound.record_refusal(*approval_key, reviewer, error)
        raise


def _approval_summary(approval_view: ApprovalView) -> dict[str, object]:
    approval, subject = approval_view.approval, approval_view.approval.subject
    return {
        "id": approval.id,
        "tool": escape_invisible(subject.tool),
        "status": approval_view.status,
        "args_sha256": approval.args_sha256,
        "sentence": message_text.shorten(approval_view.card.sentence, MAX_VALUE),
        "priority": subject.priority,
        "agent": escape_invisible(subject.agent),
        "requester": escape_invisible(subject.requester),
        "expires_at": rfc3339(approval.deadlines.expires_at),
        "decision": _visible_decision(approval.decision),
    }


def _card_details(card: Card) -> dict[str, object]:
    """Return the card's details: secrets stay hidden, and what exceeds the limits is omitted and counted."""
    fields: list[dict[str, object]] = []
    room = MAX_FULL
    for field in card.fields[:MOST_FIELDS]:
        name, value = (
            message_text.shorten(escape_invisible(field.pointer), MAX_VALUE),
            message_text.shorten(field.text, MAX_VALUE),
        )
        room -= len(name) + len(value)
        if room < 0:
            break
        fields.append({"pointer": name, "type": field.type, "text": value, "length": field.length})
    findings = [
        {
            "level": each.level,
            "kind": each.kind,
            "id": escape_invisible(each.id)[:MAX_VALUE],
            "message": escape_invisible(each.message),
        }
        for each in card.findings[:MOST_FIELDS]
    ]
    claims = {"agent_description": card.agent_description, "agent_preview": card.agent_preview}
    return {
        "risk": card.risk,
        "fields": fields,
        "fields_left": len(card.fields) - len(fields),
        "findings": findings,
        **{name: message_text.shorten(text, MAX_VALUE) for name, text in claims.items() if text},
    }


def _secrets(settings: Mapping[str, object]) -> Sequence[str]:
    if "secret" in settings and "secrets" in settings:
        raise Misconfigured("set either secret or secrets, not both")
    many = settings["secrets"] if "secrets" in settings else [text_setting(settings, "secret")]
    if not isinstance(many, list | tuple) or not 1 <= len(many) <= MOST_SECRETS:
        raise Misconfigured(f"secrets must be a list of one to {MOST_SECRETS}, the newest first")
    if not all(isinstance(each, str) and each for each in many):
        raise Misconfigured("secrets must be a list of texts")
    return cast(Sequence[str], many)


def _read_body(body: bytes) -> Mapping[str, object]:
    value = parse_json(body)
    if not isinstance(value, Mapping) or not set(value) <= FIELDS:
        raise InvalidRequest("The body must be an object with approval_id, decision and, optionally, workspace.")
    return value


def _text(body: Mapping[str, object], name: str, default: str = "") -> str:
    value = body.get(name, default)
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidRequest(f"{name} is missing or not a valid name.")
    return value


def approval_status_json(approval_view: ApprovalView) -> dict[str, object]:
    """Return an approval in short: its status and its decision."""
    return {
        "id": approval_view.approval.id,
        "status": approval_view.status,
        "args_sha256": approval_view.approval.args_sha256,
        "decision": _visible_decision(approval_view.approval.decision),
    }


def _visible_decision(decision_record: DecisionRecord | None) -> Mapping[str, object] | None:
    """Return the decision with unusual characters made visible, and without an empty reason or comment."""
    fields = decision_json(decision_record)
    if fields is None:
        return None
    return {
        name: escape_invisible(str(text)) for name, text in fields.items() if text or name not in ("reason", "comment")
    }


TOLERANCE = 300_000  # milliseconds, both ways
SHORTEST, LONGEST = 24, 64  # bytes of a secret, by the specification
MOST_SIGNATURES = 10
PREFIX = "whsec_"
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_SECONDS = re.compile(r"[0-9]{1,12}")


class WebhookSigner:
    """Signs and verifies; `secrets` are the current one first, then those being rotated out."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._hooks = [Webhook(_decode_secret(secret)) for secret in secrets]

    def headers(self, message_id: str, content: str, at: int) -> dict[str, str]:
        name, seconds = message_id.replace(".", "_"), at // 1000
        return {
            "webhook-id": name,
            "webhook-timestamp": str(seconds),
            "webhook-signature": " ".join(self._signatures(name, seconds, content)),
        }

    def verify(self, headers: Mapping[str, str], body: bytes, now: int) -> str:
        """Verify an inbound request and return its id. Raises Unauthenticated, without the reason."""
        refusal = Unauthenticated("The signature is missing, wrong, or older than five minutes.")
        name, seconds = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not _ID.fullmatch(name) or not _SECONDS.fullmatch(seconds) or abs(now - int(seconds) * 1000) > TOLERANCE:
            raise refusal
        try:
            expected = self._signatures(name, int(seconds), body.decode())
        except UnicodeDecodeError:
            raise refusal from None
        given = headers.get("webhook-signature", "").encode("latin-1", "replace").split(b" ")[:MOST_SIGNATURES]
        matches = [hmac.compare_digest(each, one.encode()) for each in given for one in expected]
        if not any(matches):
            raise refusal
        return name

    def _signatures(self, name: str, seconds: int, content: str) -> list[str]:
        at = datetime.fromtimestamp(seconds, UTC)
        return [hook.sign(name, at, content) for hook in self._hooks]


def _decode_secret(secret: str) -> bytes:
    """Decode a secret strictly: characters that the library skips would make it weaker than it looks."""
    text = secret.removeprefix(PREFIX)
    try:
        key = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not SHORTEST <= len(key) <= LONGEST:
        raise Misconfigured(f"a secret must be {PREFIX} followed by base64 of {SHORTEST} to {LONGEST} bytes")
    return key
