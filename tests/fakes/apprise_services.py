"""Fakes of two services of the long tail, over real HTTP on loopback: ntfy, and a webhook of Discord.

Each rule says where it is from: (documented) by the service; (assumed) ours, where that says nothing. What Discord
takes is decided by its own OpenAPI description.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from tests.fakes.http_receiver import ReceivedRequest, Response
from tests.fakes.openapi import Document

DISCORD = Path(__file__).parents[1] / "vendor" / "discord" / "webhook.openapi.json"
NTFY_FIELDS = {  # (documented) of a message that is published as JSON
    *("topic", "message", "title", "tags", "priority", "actions", "click", "attach", "markdown", "icon", "filename"),
    *("delay", "email", "call", "sequence_id"),
}
NTFY_BYTES = 4_096  # (documented) of a message
JSON = {"content-type": "application/json"}


def ntfy(heard: ReceivedRequest) -> Response:
    said = heard.json
    problems = sorted(set(said) - NTFY_FIELDS)
    problems += [] if re.fullmatch(r"[-_A-Za-z0-9]{1,64}", said.get("topic", "")) else ["topic"]  # (documented)
    problems += [] if len(said.get("message", "").encode()) <= NTFY_BYTES else ["message"]
    if problems or (heard.method, heard.path) != ("POST", "/"):
        return Response(400, JSON, json.dumps({"code": 40_000, "http": 400, "error": ", ".join(problems)}).encode())
    return Response(200, JSON, json.dumps({"id": "m1", "event": "message", "topic": said["topic"]}).encode())


def discord(heard: ReceivedRequest) -> Response:
    operation = _description().find(heard.method, urlsplit(heard.path).path.removeprefix("/api"))
    if operation is None:
        return Response(404, JSON, b'{"message": "404: Not Found", "code": 0}')  # (documented)
    said = heard.json
    schema = {"$ref": "#/components/schemas/IncomingWebhookRequestPartial"}
    problems = _description().schema_errors(schema, said)
    problems += [] if said.get("content") or said.get("embeds") else ["Cannot send an empty message"]  # (documented)
    if problems:
        return Response(400, JSON, json.dumps({"message": "; ".join(problems), "code": 50_035}).encode())
    return Response(204)  # (documented) unless it was asked to wait


@cache
def _description() -> Document:
    return Document(DISCORD)
