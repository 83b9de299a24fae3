"""Microsoft Teams, through the webhook of a workflow: an Adaptive Card with a button that leads to the page.

Settings: `url` of the workflow; `follow_up: false` to be told of questions only. Such a webhook takes no answers and
cannot change a message: what became of a call is a short card of its own.

Everything that others wrote is a run of plain text: those know no markup, no links and no mentions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from interlock.core.notify.message import Message, Topic
from interlock.core.notify.routing import Means
from interlock.notify import message_text as words
from interlock.notify.channel import Kit, text
from interlock.notify.http import Poster
from interlock.notify.message_text import follows, is_news, said

SETTINGS = ("url", "follow_up", "allow_private")
MEANS = Means(most=20)
VERSION = "1.5"
CARD = "application/vnd.microsoft.card.adaptive"
SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
MAX_BYTES = 28 * 1024  # of a message, by Microsoft's limits
FITTING = (20, 10, 5, 2, 0)  # arguments and warnings that are shown, if more would be too much
_FUNCTION = re.compile(r"(?<=\{)(?=\{)")  # {{DATE(…)}} would be worked out inside one run

Element = dict[str, object]


def connect(kit: Kit) -> Teams:
    return Teams(Poster(kit, "Teams", text(kit.settings, "url")), follow_up=follows(kit.settings))


class Teams:
    """The message's id is the id of its first line, for a flow that wants to know it from another."""

    def __init__(self, poster: Poster, *, follow_up: bool) -> None:
        self._poster = poster
        self._follow_up = follow_up

    async def send(self, message: Message) -> str:
        await self._poster.post(_fitting(message), {"content-type": "application/json"})
        return said(message)

    async def update(self, message: Message, ref: str) -> str:
        wanted = self._follow_up or message.purpose == "remind"
        return await self.send(message) if wanted and is_news(message, ref) else ref

    async def close(self) -> None:
        await self._poster.close()


def _fitting(message: Message) -> bytes:
    """The most that Teams takes. What is left out is on the page."""
    sizes = (json.dumps(_envelope(message, most)).encode() for most in FITTING)
    return next(content for content in sizes if len(content) <= MAX_BYTES)


def _envelope(message: Message, most: int) -> Element:
    card = {
        "$schema": SCHEMA,
        "type": "AdaptiveCard",
        "version": VERSION,
        "body": [_title(message), *(_about(message.topic, most) if message.topic else ())],
        "actions": [{"type": "Action.OpenUrl", "title": _button(message), "url": message.link}],
    }
    return {"type": "message", "attachments": [{"contentType": CARD, "contentUrl": None, "content": card}]}


def _title(message: Message) -> Element:
    line = _line((words.title(message, 500), {"weight": "Bolder", "size": "Medium"}))
    return {**line, "id": message.id}


def _about(topic: Topic, most: int) -> list[Element]:
    """When it has ended, what became of it is enough."""
    standing = _line((words.short(words.standing(topic), 600), {}))
    if not topic.is_open:
        result = [_line((words.short(topic.result, 300), {"isSubtle": True}))] if topic.result else []
        return [standing, *result]
    facts = [*topic.card.facts, ("risk", topic.card.risk)]
    return [
        standing,
        *(_line((words.short(warning, 300), {"color": "Attention"})) for warning in words.warnings(topic)[:most]),
        *(_pair(name, words.short(value, 100), {"isSubtle": True}) for name, value in facts),
        *(_pair(name, value, {"fontType": "Monospace"}) for name, value in words.arguments(topic, most)),
        *(_pair(name, value, {"isSubtle": True}) for name, value in words.claims(topic)),
    ]


def _pair(name: str, value: str, look: Element) -> Element:
    return _line((f"{name}: ", {"weight": "Bolder"}), (value, look))


def _line(*pieces: tuple[str, Element]) -> Element:
    runs = [run for piece, look in pieces for run in _runs(piece, look)]
    return {"type": "RichTextBlock", "inlines": runs}


def _runs(piece: str, look: Element) -> Iterable[Element]:
    return ({"type": "TextRun", "text": part, **look} for part in _FUNCTION.split(piece))


def _button(message: Message) -> str:
    is_open = message.topic is None or message.topic.is_open
    return "Look at it and decide" if is_open else "Look at it"
