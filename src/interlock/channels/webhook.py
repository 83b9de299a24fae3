"""Webhooks by the standard of that name: signed messages to a program, and signed decisions back from it.

Settings: `url`; `secret`, or `secrets` with the new one first while it is being changed; `full: true` to send the
arguments too; `acts_as`, the account in whose name the other side decides. Without it nothing is taken back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import cast

from interlock.channels.channel import Callback, Kit, Reception, Reply, text
from interlock.channels.parts import words
from interlock.channels.parts.posting import Poster
from interlock.channels.parts.replies import decision_json, error_reply, json_reply, standing_json
from interlock.channels.parts.signing import Signer
from interlock.core.canonical import parse
from interlock.core.card import Card, visible
from interlock.core.decision import Reviewer, read_seen
from interlock.core.errors import Error, Forbidden, InvalidRequest, Misconfigured, NotFound
from interlock.core.message import Message, Topic
from interlock.core.routes import Means
from interlock.runtime.durations import rfc3339

SETTINGS = ("url", "secret", "secrets", "full", "acts_as", "allow_private")
# The standard's, and many more within the first hours: a call does not wait for days.
WAITS = (5, 10, 30, 60, *[300] * 24, *[1_800] * 12, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
MEANS = Means(most=600, waits=WAITS)
TYPES = {"ask": "pending", "escalate": "escalated", "remind": "reminded"}
FIELDS = frozenset({"approval_id", "workspace", "decision"})
MOST_SECRETS = 5
MOST_FIELDS = 200  # arguments of a full message
MAX_VALUE = 2_000  # characters of one of them
MAX_FULL = 200_000  # characters of all of them
_NAME = re.compile(r"[\x21-\x7e]{1,200}")


def connect(kit: Kit) -> Webhook:
    url, settings = text(kit.settings, "url"), kit.settings
    if not isinstance(settings.get("full", False), bool):
        raise Misconfigured("full is true or false")
    signer = Signer(_secrets(settings))
    return Webhook(Poster(kit, "The webhook", url), signer, text(settings, "acts_as", ""), settings)


class Webhook:
    def __init__(self, poster: Poster, signer: Signer, acts_as: str, settings: Mapping[str, object]) -> None:
        self._poster = poster
        self._signer = signer
        self._acts_as = acts_as
        self._full = settings.get("full", False) is True
        self.takes_answers = bool(acts_as)

    async def send(self, message: Message) -> str:
        content = json.dumps(self._body(message), separators=(",", ":"))
        headers = self._signer.headers(message.id, content, message.at)
        await self._poster.post(content.encode(), {**headers, "content-type": "application/json"})
        return headers["webhook-id"]

    async def update(self, message: Message, ref: str) -> str:
        """A program is told everything, each time as a new event."""
        return await self.send(message)

    async def answer(self, callback: Callback, reception: Reception) -> Reply:
        try:
            return await self._answer(callback, reception)
        except Error as error:
            return error_reply(error)

    async def close(self) -> None:
        await self._poster.close()

    async def _answer(self, callback: Callback, reception: Reception) -> Reply:
        if not self._acts_as:
            raise NotFound("Nothing is taken at this address.")
        message_id = self._signer.proven(callback.headers, callback.body, reception.now())
        said = _read(callback.body)
        workspace, approval_id = _text(said, "workspace", reception.workspace), _text(said, "approval_id")
        reviewer = await reception.member(workspace, self._acts_as)
        if reviewer is None:
            raise Forbidden("The account that this channel acts as is not a member of the workspace.")
        return await reception.once(
            workspace,
            message_id,
            lambda: _decided(reception, (workspace, approval_id), said.get("decision"), reviewer),
            sha256(callback.body).hexdigest(),
        )

    def _body(self, message: Message) -> dict[str, object]:
        kind = f"approval.{TYPES.get(message.purpose, message.purpose)}"
        return {"type": kind, "timestamp": rfc3339(message.at), "data": self._data(message)}

    def _data(self, message: Message) -> dict[str, object]:
        data: dict[str, object] = {"workspace": message.workspace, "link": message.link}
        match message.topic:
            case None if message.purpose == "group":
                return {**data, "count": message.count}
            case None:
                return {**data, "sentence": words.title(message)}
            case topic:
                more = _full(topic.card) if self._full else {}
                return {**data, **_thin(topic), **more}


async def _decided(reception: Reception, place: tuple[str, str], decision: object, reviewer: Reviewer) -> Reply:
    """What cannot be taken is answered once as well; what failed on our side may be sent again."""
    workspace, approval_id = place
    try:
        topic = await reception.decide(workspace, approval_id, read_seen(decision), reviewer)
    except Error as error:
        if error.status >= 500:
            raise
        return error_reply(error)
    return json_reply(standing_json(topic))


def _thin(topic: Topic) -> dict[str, object]:
    approval, subject = topic.approval, topic.approval.subject
    return {
        "id": approval.id,
        "tool": visible(subject.tool),
        "status": topic.status,
        "args_sha256": approval.args_sha256,
        "sentence": words.short(topic.card.sentence, MAX_VALUE),
        "priority": subject.priority,
        "agent": visible(subject.agent),
        "requester": visible(subject.requester),
        "expires_at": rfc3339(approval.expires_at),
        "decision": decision_json(approval.decision),
    }


def _full(card: Card) -> dict[str, object]:
    """As the card shows it: what is secret stays hidden, and what is too much is left out and counted."""
    fields: list[dict[str, object]] = []
    room = MAX_FULL
    for field in card.fields[:MOST_FIELDS]:
        name, value = words.short(visible(field.pointer), MAX_VALUE), words.short(field.text, MAX_VALUE)
        room -= len(name) + len(value)
        if room < 0:
            break
        fields.append({"pointer": name, "type": field.type, "text": value, "length": field.length})
    findings = [
        {"level": each.level, "kind": each.kind, "id": visible(each.id)[:MAX_VALUE], "message": visible(each.message)}
        for each in card.findings[:MOST_FIELDS]
    ]
    claims = {"agent_description": card.agent_description, "agent_preview": card.agent_preview}
    return {
        "risk": card.risk,
        "fields": fields,
        "fields_left": len(card.fields) - len(fields),
        "findings": findings,
        **{name: words.short(text, MAX_VALUE) for name, text in claims.items() if text},
    }


def _secrets(settings: Mapping[str, object]) -> Sequence[str]:
    if "secret" in settings and "secrets" in settings:
        raise Misconfigured("give either secret or secrets")
    many = settings["secrets"] if "secrets" in settings else [text(settings, "secret")]
    if not isinstance(many, list | tuple) or not 1 <= len(many) <= MOST_SECRETS:
        raise Misconfigured(f"secrets is a list of one to {MOST_SECRETS}, the new one first")
    if not all(isinstance(each, str) and each for each in many):
        raise Misconfigured("secrets is a list of texts")
    return cast(Sequence[str], many)


def _read(body: bytes) -> Mapping[str, object]:
    said = parse(body)
    if not isinstance(said, Mapping) or not set(said) <= FIELDS:
        raise InvalidRequest("The body is an object with approval_id, decision and maybe workspace, and nothing else.")
    return said


def _text(said: Mapping[str, object], name: str, default: str = "") -> str:
    value = said.get(name, default)
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidRequest(f"{name} is missing or is not a name that there could be.")
    return value
