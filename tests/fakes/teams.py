"""A fake of the webhook of a workflow in Microsoft Teams, over real HTTP on loopback.

Each rule says where it is from: (documented) by Microsoft; (assumed) ours, where that says nothing. Cards are held
against Microsoft's own schema of Adaptive Cards 1.5.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from tests.fakes.http_receiver import ReceivedRequest, Receiver, Response, run_receiver

SCHEMA = Path(__file__).parents[1] / "vendor" / "teams" / "adaptive-card-1.5.schema.json"
PATH = "/workflows/0123456789/triggers/manual/paths/invoke"
MAX_BYTES = 28 * 1024  # (documented) of a message
CARD = "application/vnd.microsoft.card.adaptive"  # (documented)


@dataclass
class Teams:
    receiver: Receiver = field(default_factory=Receiver)

    @property
    def url(self) -> str:
        return self.receiver.url

    @property
    def cards(self) -> list[dict[str, Any]]:
        return [heard.json["attachments"][0]["content"] for heard in self.receiver.accepted]

    def handle(self, heard: ReceivedRequest) -> Response:
        problems = _problems(heard)
        if problems:  # (assumed) the status; that it is refused is documented
            return Response(400, {}, "; ".join(problems).encode())
        return Response(202)  # (documented) it was taken, and is posted afterwards


def _problems(heard: ReceivedRequest) -> list[str]:
    if heard.method != "POST" or heard.headers.get("content-type") != "application/json":  # (documented)
        return ["post JSON"]
    if len(heard.body) > MAX_BYTES:
        return [f"the message has {len(heard.body)} bytes"]
    body = heard.json
    if body.get("type") != "message" or len(body.get("attachments", [])) != 1:  # (documented)
        return ["a message has attachments"]
    [attachment] = body["attachments"]
    if attachment.get("contentType") != CARD:
        return ["the attachment is no card"]
    return [
        f"{'/'.join(map(str, each.instance_path))}: {each.message[:200]}"
        for each in _schema().iter_errors(attachment["content"])
    ]


@asynccontextmanager
async def teams() -> AsyncIterator[Teams]:
    made = Teams()
    async with run_receiver(made.handle, PATH) as receiver:
        made.receiver = receiver
        yield made


@cache
def _schema() -> Any:
    return jsonschema_rs.validator_for(json.loads(SCHEMA.read_text()))


def texts(card: Any) -> list[str]:
    """Every text of a card, whatever element it is in."""
    match card:
        case {"type": "TextRun", "text": str(text)}:
            return [text]
        case dict():
            return [text for inner in card.values() for text in texts(inner)]
        case list():
            return [text for inner in card for text in texts(inner)]
        case _:
            return []
