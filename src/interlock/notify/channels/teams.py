"""Microsoft Teams, through the webhook of a workflow: an Adaptive Card with a button that opens the page.

Settings: `url` of the workflow; `follow_up: false` to send only requests for a decision. Such a webhook takes no
replies and cannot change a message: the outcome of a call is a short card of its own.

Text from others goes into plain text runs, which have no markup, links or mentions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from interlock.core.notify.delivery import ApprovalView, Notification
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify import message_text
from interlock.notify.channel import ChannelContext, text_setting
from interlock.notify.http import HttpPoster
from interlock.notify.message_text import follow_up_setting, needs_new_message, sent_state

SETTINGS = ("url", "follow_up", "allow_private")
CAPABILITIES = ChannelCapabilities(rate_per_minute=20)
VERSION = "1.5"
CARD = "application/vnd.microsoft.card.adaptive"
SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
MAX_BYTES = 28 * 1024  # of a message, by Microsoft's limits
DETAIL_LIMITS = (20, 10, 5, 2, 0)  # arguments and warnings shown, in turn until the message fits
_FUNCTION = re.compile(r"(?<=\{)(?=\{)")  # {{DATE(…)}} would be evaluated inside one run

Element = dict[str, object]


def connect(context: ChannelContext) -> TeamsChannel:
    return TeamsChannel(
        HttpPoster(context, "Teams", text_setting(context.settings, "url")),
        follow_up=follow_up_setting(context.settings),
    )


class TeamsChannel:
    """Posts cards. The id of a card's first line is the message id, so that a workflow can detect duplicates."""

    def __init__(self, poster: HttpPoster, *, follow_up: bool) -> None:
        self._poster = poster
        self._follow_up = follow_up

    async def send(self, message: Notification) -> str:
        await self._poster.post(_largest_that_fits(message), {"content-type": "application/json"})
        return sent_state(message)

    async def update(self, message: Notification, ref: str) -> str:
        should_send = self._follow_up or message.purpose == "remind"
        return await self.send(message) if should_send and needs_new_message(message, ref) else ref

    async def close(self) -> None:
        await self._poster.close()


def _largest_that_fits(message: Notification) -> bytes:
    """Return the card with the most details that Teams accepts. The page shows the rest."""
    sizes = (json.dumps(_envelope(message, most)).encode() for most in DETAIL_LIMITS)
    return next(content for content in sizes if len(content) <= MAX_BYTES)


def _envelope(message: Notification, most: int) -> Element:
    card = {
        "$schema": SCHEMA,
        "type": "AdaptiveCard",
        "version": VERSION,
        "body": [_title(message), *(_about(message.approval_view, most) if message.approval_view else ())],
        "actions": [{"type": "Action.OpenUrl", "title": _button(message), "url": message.link}],
    }
    return {"type": "message", "attachments": [{"contentType": CARD, "contentUrl": None, "content": card}]}


def _title(message: Notification) -> Element:
    line = _line((message_text.title(message, 500), {"weight": "Bolder", "size": "Medium"}))
    return {**line, "id": message.id}


def _about(approval_view: ApprovalView, most: int) -> list[Element]:
    """Return the body; for a call that has ended, only its outcome."""
    standing = _line((message_text.shorten(message_text.status_sentence(approval_view), 600), {}))
    if not approval_view.is_open:
        result = (
            [_line((message_text.shorten(approval_view.result, 300), {"isSubtle": True}))]
            if approval_view.result
            else []
        )
        return [standing, *result]
    facts = [*approval_view.card.facts, ("risk", approval_view.card.risk)]
    return [
        standing,
        *(
            _line((message_text.shorten(warning, 300), {"color": "Attention"}))
            for warning in message_text.warnings(approval_view)[:most]
        ),
        *(_pair(name, message_text.shorten(value, 100), {"isSubtle": True}) for name, value in facts),
        *(_pair(name, value, {"fontType": "Monospace"}) for name, value in message_text.arguments(approval_view, most)),
        *(_pair(name, value, {"isSubtle": True}) for name, value in message_text.claims(approval_view)),
    ]


def _pair(name: str, value: str, look: Element) -> Element:
    return _line((f"{name}: ", {"weight": "Bolder"}), (value, look))


def _line(*pieces: tuple[str, Element]) -> Element:
    runs = [run for piece, look in pieces for run in _runs(piece, look)]
    return {"type": "RichTextBlock", "inlines": runs}


def _runs(piece: str, look: Element) -> Iterable[Element]:
    return ({"type": "TextRun", "text": part, **look} for part in _FUNCTION.split(piece))


def _button(message: Notification) -> str:
    is_open = message.approval_view is None or message.approval_view.is_open
    return "Review and decide" if is_open else "View it"
