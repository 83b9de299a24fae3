"""A channel of one's own: it pages people through a service in the company, and takes the service's signed answers.

interlock.yaml names it by its import path:

channels:
  pager: {kind: "mycompany.pager:Pager", url: "https://pager.example.com/pages", secret: "${PAGER_SECRET}"}
"""

import hmac
import json
from hashlib import sha256

from interlock.notify import message_text
from interlock.notify.channel import (
    ChannelCapabilities,
    ChannelContext,
    Error,
    InboundPort,
    InboundRequest,
    InboundResponse,
    InvalidDecision,
    InvalidRequest,
    Notification,
    Unauthenticated,
    error_response,
    json_response,
    read_decision_with_digest,
    text_setting,
)
from interlock.notify.http import HttpPoster

TOLERANCE = 300_000  # milliseconds by which a signed answer may be old


class Pager:
    settings = ("url", "secret", "acts_as", "allow_private")
    capabilities = ChannelCapabilities(rate_per_minute=30)

    def __init__(self, context: ChannelContext) -> None:
        """Read the settings; a missing one raises Misconfigured, and the server does not start."""
        self._secret = text_setting(context.settings, "secret").encode()
        self._acts_as = text_setting(context.settings, "acts_as", "")
        self._poster = HttpPoster(context, "The pager", text_setting(context.settings, "url"))

    async def send(self, message: Notification) -> str:
        """Send a first message. What is returned comes back in `update`: here the page that is about this call."""
        await self._post(message, message.thread)
        return message.thread

    async def update(self, message: Notification, ref: str) -> str:
        await self._post(message, ref)
        return ref

    async def close(self) -> None:
        await self._poster.close()

    async def answer(self, request: InboundRequest, inbound: InboundPort) -> InboundResponse:
        """Take a decision of the paging service at POST /channels/pager/callback. Never raises."""
        try:
            self._verify(request, inbound.now())
            body = json.loads(request.body)
            return await self._decide(body["approval_id"], body["decision"], inbound)
        except Error as error:
            return error_response(error)
        except (KeyError, TypeError, ValueError):
            return error_response(InvalidRequest("The body is a JSON object with approval_id and decision."))

    async def _decide(self, approval_id: str, decision: object, inbound: InboundPort) -> InboundResponse:
        reviewer = await inbound.member(inbound.workspace, self._acts_as)
        if reviewer is None:
            raise Unauthenticated("There is nobody in whose name the pager could decide.")
        try:
            given = read_decision_with_digest(decision)
        except InvalidDecision as error:  # `decide` records what it refuses itself
            await inbound.record_refusal(inbound.workspace, approval_id, reviewer, error)
            raise
        view = await inbound.decide(inbound.workspace, approval_id, given, reviewer)
        return json_response({"id": approval_id, "status": view.status})

    async def _post(self, message: Notification, page: str) -> None:
        """The texts hold no secret arguments, and hidden characters are visible; `id` is the same in a retry."""
        view = message.approval_view
        body = {
            "id": message.id,
            "page": page,
            "title": message_text.title(message),
            "status": view.status if view else "",
            "approval_id": view.approval.id if view else "",
            "args_sha256": view.approval.args_sha256 if view else "",
            "arguments": [f"{name}: {value}" for name, value in message_text.arguments(view)] if view else [],
            "link": message.link,
        }
        await self._poster.post(json.dumps(body).encode(), {"content-type": "application/json"})

    def _verify(self, request: InboundRequest, now: int) -> None:
        """Believe nothing that is not signed with the channel's own secret, and nothing old."""
        at, given = request.headers.get("pager-time", ""), request.headers.get("pager-signature", "")
        if not at.isascii() or not at.isdigit() or abs(now - int(at[:16])) > TOLERANCE:
            raise Unauthenticated("The signature is missing, wrong or old.")
        if not hmac.compare_digest(given.encode(), sign(self._secret, at, request.body).encode()):
            raise Unauthenticated("The signature is missing, wrong or old.")


def sign(secret: bytes, at: str, body: bytes) -> str:
    return hmac.new(secret, at.encode() + b"." + body, sha256).hexdigest()
