"""Links in messages: they show one call to anybody who has them, and help the recipient to sign in with a code."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from interlock.accounts import passwords as codes
from interlock.app.inbox import ApprovalDetails
from interlock.core.errors import DeliveryFailed, Error, Expired, NotFound, TooManyRequests
from interlock.core.rate_limit import AttemptLimiter
from interlock.notify import message_text
from interlock.notify.channel import SignInCodeChannel
from interlock.notify.service import LinkToken
from interlock.presenters.approval import approval_json
from interlock.runtime.offload import offload
from interlock.server.dependencies import AuthDep, RequestDep, StateDep, documented_errors
from interlock.server.http import HttpRequest, RequestBody, example
from interlock.server.models import ApprovalJson, ResponseModel
from interlock.server.routes.session import SignedInUser, client_address, start_session, to_current_user
from interlock.server.state import ServerState

router = APIRouter(prefix="/api/links", tags=["signing in"])

MAX_TOKEN = 300
Text = Annotated[str, Field(max_length=MAX_TOKEN)]

# What somebody with nothing but the link sees: the content of the message. All else is blank, new fields too.
VISIBLE_FIELDS = frozenset(
    {
        *("id", "tool", "status", "args_sha256", "sentence", "risk", "effect", "agent", "requester", "priority"),
        *("alarms", "created_at", "expires_at", "seconds_left", "decision", "findings", "needed", "quorum", "declared"),
    }
)
VISIBLE_CARD_FIELDS = frozenset({"risk", "tool", "sentence"})
VISIBLE_FACTS = frozenset({"agent", "requester"})
VISIBLE_ARGUMENT_FIELDS = frozenset({"pointer", "name", "type", "text", "length", "findings"})


class MessageLinkBody(RequestBody):
    model_config = example({"token": "the-part-behind-?t="})

    token: Text


class MessageCodeBody(MessageLinkBody):
    """`ticket` is from the response to the request for the code."""

    model_config = example(
        {"token": "the-part-behind-?t=", "ticket": "what-asking-for-the-code-gave", "code": "12345678"}
    )

    ticket: Text
    code: Text


class LinkedApproval(ResponseModel):
    """One call as the message shows it, and the recipient of the link. `codes`: a code can be sent to them."""

    approval: ApprovalJson
    person: str
    workspace: str
    spent: bool
    codes: bool


class CodeTicket(BaseModel):
    """The same response for valid and invalid links. `ticket` goes with the code."""

    ticket: str


@router.post("/inspect", responses=documented_errors(404, 410))
async def inspect_link(body: MessageLinkBody, state: StateDep, request: RequestDep, auth: AuthDep) -> LinkedApproval:
    """Show the call of a message link. Neither uses the link up nor decides anything, however often it is requested."""
    auth.check_origin(request.headers)
    token = await state.notifications.verify_link_token(body.token)
    delivery = token.delivery
    services = await state.workspaces.services(delivery.workspace)
    view = await services.inbox.show(delivery.workspace, delivery.approval_id)
    size = len(view.stored.payload.args or b"")
    told = await offload(size, lambda: message_view_json(view, state.clock()))
    return LinkedApproval(
        approval=ApprovalJson.model_validate(told),
        person=token.recipient.person,
        workspace=delivery.workspace,
        spent=delivery.used_at is not None,
        codes=_code_channel(state, token) is not None,
    )


@router.post("/code", responses=documented_errors(429))
async def ask_for_code(body: MessageLinkBody, state: StateDep, request: RequestDep, auth: AuthDep) -> CodeTicket:
    """Send a sign-in code to the recipient of a link. The response reveals nothing about the link."""
    auth.check_origin(request.headers)
    _check_code_rate(state.code_rate_limiter, request, state.clock())
    made = codes.SignInCode(secrets.token_urlsafe(32), codes.make_code_number())
    state.background_tasks.begin(_send_code(state, body.token, made, client_address(request)))
    return CodeTicket(ticket=made.ticket)


@router.post("/session", responses=documented_errors(429))
async def sign_in_with_code(
    body: MessageCodeBody, state: StateDep, request: RequestDep, auth: AuthDep, response: Response
) -> SignedInUser:
    """Sign in the recipient of a link, with the code that was sent to them."""
    auth.check_origin(request.headers)
    token = await _resolve_token(state, body.token)
    code = codes.SignInCode(body.ticket, body.code.replace(" ", ""))
    workspace, person = token.delivery.workspace, token.recipient.person
    principal, session = await state.accounts.use_code(workspace, person, code, client_address(request))
    await start_session(state, auth, request, session, response, codes.SESSION_LIFETIME)
    return SignedInUser(**to_current_user(principal).model_dump(), next=f"/a/{token.delivery.approval_id}")


def message_view_json(view: ApprovalDetails, now: int) -> dict[str, object]:
    """One approval in the shape that members get, with only the content of the message."""
    whole: dict[str, Any] = approval_json(view, now)
    told, card = _select(whole, VISIBLE_FIELDS), whole["card"]
    told["card"] = {
        **_select(card, VISIBLE_CARD_FIELDS),
        "facts": [fact for fact in card["facts"] if fact["label"] in VISIBLE_FACTS],
        "fields": [_shorten_field(field) for field in card["fields"][: message_text.MAX_FIELDS]],
    }
    return {**told, "may_decide": [], "may_not": {}}


def _shorten_field(field: Mapping[str, Any]) -> dict[str, object]:
    return {
        **_select(field, VISIBLE_ARGUMENT_FIELDS),
        "text": message_text.shorten(field["text"], message_text.MAX_VALUE),
    }


def _select(fields: Mapping[str, object], names: frozenset[str]) -> dict[str, object]:
    """Only these fields; the others are empty."""
    return {name: value if name in names else _blank(value) for name, value in fields.items()}


def _blank(value: object) -> object:
    """An empty value of the same shape."""
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


def _code_channel(state: ServerState, token: LinkToken) -> SignInCodeChannel | None:
    return state.notifications.find_code_channel(token.delivery) if token.recipient.email else None


async def _resolve_token(state: ServerState, text: str) -> LinkToken:
    """Verify the link; an invalid one is reported as a wrong code."""
    try:
        return await state.notifications.verify_link_token(text)
    except (NotFound, Expired):
        raise codes.invalid_code_error() from None


async def _send_code(state: ServerState, text: str, code: codes.SignInCode, address: str) -> None:
    """A background task, which no response waits for; failures are logged, without the code."""
    try:
        token = await state.notifications.verify_link_token(text)
        channel = _code_channel(state, token)
        workspace, person = token.delivery.workspace, token.recipient.person
        if channel is None or not await state.accounts.add_code(workspace, person, code, address):
            return
        await channel.send_code(token.recipient, code.number, secrets.token_hex(16), state.clock())
    except DeliveryFailed as error:
        state.log.write("warning", "code_failed", channel=token.delivery.target.channel, note=error.message)
    except (NotFound, Expired):
        return  # the caller gets the same response as for a valid link
    except Error as error:
        state.log.write_exception("code_failed", error)


def _check_code_rate(limiter: AttemptLimiter, request: HttpRequest, now: int) -> None:
    where = client_address(request)
    wait = limiter.retry_after(where, now)
    if wait:
        raise TooManyRequests(f"Too many codes were asked for. Try again in {wait} seconds.", retry_after=wait)
    limiter.record_attempt(where, now)
