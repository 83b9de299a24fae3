"""Links of messages: they show one call to whoever has them, and help the one person they were made for to sign in."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from interlock.accounts import codes
from interlock.app.inbox import View
from interlock.core.errors import DeliveryFailed, Error, Expired, NotFound, TooManyRequests
from interlock.core.rate_limit import Attempts
from interlock.notify import message_text as words
from interlock.notify.channel import Proving
from interlock.notify.service import Token
from interlock.presenters.approval import view_json
from interlock.runtime.offload import beside
from interlock.server.dependencies import Given, Guard, Here, fails
from interlock.server.http import Asked, Body
from interlock.server.models import Shown, Told
from interlock.server.routes.session import Entered, client_address, enter, myself
from interlock.server.state import Site

router = APIRouter(prefix="/api/links", tags=["signing in"])

MAX_TOKEN = 300
MAX_FIELDS = 20
Text = Annotated[str, Field(max_length=MAX_TOKEN)]

# What somebody who has no more than the link is shown: what the message says. All else is empty, also what is new.
SHOWN = frozenset(
    {
        *("id", "tool", "status", "args_sha256", "sentence", "risk", "effect", "agent", "requester", "priority"),
        *("alarms", "created_at", "expires_at", "seconds_left", "decision", "findings", "needed", "quorum", "declared"),
    }
)
FACTS = frozenset({"agent", "requester"})


class GivenLink(Body):
    token: Text


class GivenCode(GivenLink):
    """`ticket` is what this browser was given when it asked for the code."""

    ticket: Text
    code: Text


class LookedAt(Told):
    """One call as the message shows it, and for whom the link is. `codes`: they can have a code sent to them."""

    approval: Shown
    person: str
    workspace: str
    spent: bool
    codes: bool


class CodeAsked(BaseModel):
    """The same for every link, whether it holds or not. `ticket` goes with the code."""

    ticket: str


@router.post("/look", responses=fails(404, 410))
async def look_at_call(body: GivenLink, site: Here, asked: Given, guard: Guard) -> LookedAt:
    """Shows the call of a message's link. Spends nothing and decides nothing, however often it is asked."""
    guard.check_origin(asked.headers)
    token = await site.reach.token(body.token)
    delivery = token.delivery
    doors = await site.workspaces.doors(delivery.workspace)
    view = await doors.inbox.show(delivery.workspace, delivery.approval_id)
    size = len(view.stored.payload.args or b"")
    told = await beside(size, lambda: as_told(view, site.clock()))
    return LookedAt(
        approval=Shown.model_validate(told),
        person=token.person.person,
        workspace=delivery.workspace,
        spent=delivery.spent_at is not None,
        codes=_proving(site, token) is not None,
    )


@router.post("/code", responses=fails(429))
async def ask_for_code(body: GivenLink, site: Here, asked: Given, guard: Guard) -> CodeAsked:
    """Has a code sent to the person that a link is for. What is answered tells nothing about the link."""
    guard.check_origin(asked.headers)
    _check_pace(site.code_asks, asked, site.clock())
    made = codes.Code(secrets.token_urlsafe(32), codes.number())
    site.aside.begin(_send_code(site, body.token, made, client_address(asked)))
    return CodeAsked(ticket=made.ticket)


@router.post("/session", responses=fails(429))
async def enter_code(body: GivenCode, site: Here, asked: Given, guard: Guard, response: Response) -> Entered:
    """Signs in the person that a link is for, with the code that was sent to them."""
    guard.check_origin(asked.headers)
    token = await _held(site, body.token)
    code = codes.Code(body.ticket, body.code.replace(" ", ""))
    workspace, person = token.delivery.workspace, token.person.person
    principal, session = await site.accounts.use_code(workspace, person, code, client_address(asked))
    await enter(site, guard, asked, session, response, codes.SESSION)
    return Entered(**myself(principal).model_dump(), next=f"/a/{token.delivery.approval_id}")


def as_told(view: View, now: int) -> dict[str, object]:
    """One approval in the shape that members get, with nothing in it but what a message would say."""
    whole = view_json(view, now)
    card, fields = view.card, view.card.fields[:MAX_FIELDS]
    told = {name: value if name in SHOWN else _empty(value) for name, value in whole.items()}
    told["card"] = {
        "risk": card.risk,
        "tool": card.tool,
        "sentence": card.sentence,
        "facts": [{"label": label, "text": text} for label, text in card.facts if label in FACTS],
        "fields": [
            {
                "pointer": field.pointer,
                "name": field.name,
                "type": field.type,
                "text": words.short(field.text, words.MAX_VALUE),
                "length": field.length,
                "sha256": "",
                "findings": field.findings,
            }
            for field in fields
        ],
        "preview": "",
        "agent_description": "",
        "agent_preview": "",
        "agent_says": "",
    }
    return {**told, "may_decide": [], "may_not": {}}


def _empty(value: object) -> object:
    """Nothing, in the same shape."""
    match value:
        case bool() | None:
            return None
        case int() | float():
            return 0
        case str():
            return ""
        case Mapping():
            return None
        case _:
            return []


def _proving(site: Site, token: Token) -> Proving | None:
    return site.reach.proving(token.delivery) if token.person.email else None


async def _held(site: Site, text: str) -> Token:
    """A link that does not hold is told as a code that is wrong."""
    try:
        return await site.reach.token(text)
    except (NotFound, Expired):
        raise codes.no_code() from None


async def _send_code(site: Site, text: str, code: codes.Code, address: str) -> None:
    """Nobody waits for this; what goes wrong is in the log, without the code."""
    try:
        token = await site.reach.token(text)
        channel = _proving(site, token)
        workspace, person = token.delivery.workspace, token.person.person
        if channel is None or not await site.accounts.add_code(workspace, person, code, address):
            return
        await channel.send_code(token.person, code.number, secrets.token_hex(16), site.clock())
    except DeliveryFailed as error:
        site.log.tell("warning", "code_failed", channel=token.delivery.way.channel, note=error.message)
    except (NotFound, Expired):
        return  # whoever asked is told what everybody is told
    except Error as error:
        site.log.failed("code_failed", error)


def _check_pace(asks: Attempts, asked: Asked, now: int) -> None:
    where = client_address(asked)
    wait = asks.wait(where, now)
    if wait:
        raise TooManyRequests(f"Too many codes were asked for. Try again in {wait} seconds.", retry_after=wait)
    asks.begin(where, now)
