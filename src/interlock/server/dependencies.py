"""FastAPI dependencies and route declarations: required roles and possible errors, enforced and documented alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from pydantic import BaseModel

from interlock.app.inbox import Inbox
from interlock.app.workspaces import WorkspaceServices
from interlock.core.decision import Reviewer
from interlock.core.errors import Error, InvalidRequest, Stale
from interlock.core.identity import ROLES, Principal, check_recent_sign_in
from interlock.presenters.approval import approval_json
from interlock.runtime.offload import offload
from interlock.server.auth import Auth, check_allowed
from interlock.server.http import HttpRequest, HttpResponse, encode_json, json_response
from interlock.server.state import ServerState

AGENTS = frozenset({"agent"})
VIEWERS = frozenset({"viewer", "reviewer", "admin"})
DECIDERS = frozenset({"reviewer", "admin"})
ADMINS = frozenset({"admin"})
ALL_ROLES = frozenset(ROLES)


class ErrorJson(BaseModel):
    """The shape of every error. Further fields are ids, and `problems` with JSON Pointers if a body is invalid."""

    error: str
    message: str


async def server_state(request: Request) -> ServerState:
    state: ServerState = request.app.state.server_state
    return state


async def current_principal(request: Request) -> Principal:
    return _http_request(request).current_principal


async def current_request(request: Request) -> HttpRequest:
    return _http_request(request)


async def current_auth(request: Request) -> Auth:
    return _state(request).auth


StateDep = Annotated[ServerState, Depends(server_state)]
PrincipalDep = Annotated[Principal, Depends(current_principal)]
RequestDep = Annotated[HttpRequest, Depends(current_request)]
AuthDep = Annotated[Auth, Depends(current_auth)]


def require_roles(roles: frozenset[str]) -> dict[str, Any]:
    """Decorator arguments of a route: only these roles, also named in the OpenAPI document."""

    async def check(request: Request) -> None:
        asked = _http_request(request)
        asked.principal = await _state(request).auth.authenticate(asked)
        check_allowed(asked.principal, roles)

    extra = {"x-roles": [role for role in ROLES if role in roles], "security": [{"key": []}, {"session": []}]}
    return {"dependencies": [Depends(check)], "openapi_extra": extra}


def require_deciders(find_approval: Callable[[Request, object], Awaitable[str]]) -> dict[str, Any]:
    """As `require_roles(DECIDERS)`, for a route that takes decisions: those with an invalid body are recorded too."""
    made = require_roles(DECIDERS)

    async def mark(request: Request) -> None:
        _http_request(request).find_approval = partial(find_approval, request)

    return {**made, "dependencies": [*made["dependencies"], Depends(mark)]}


async def record_invalid_decision(request: Request, body: object, error: InvalidRequest) -> None:
    """Record a decision that was refused for its body, with the fields that are wrong; other requests leave nothing."""
    http_request = _http_request(request)
    if http_request.find_approval is None or http_request.principal is None:
        return
    with suppress(Error):  # the caller gets the error about the body, whatever comes of this
        context = await request_context(_state(request), http_request.principal)
        approval_id = await http_request.find_approval(body)
        await context.inbox.record_refusal(context.workspace, approval_id, None, context.reviewer, error)


def body_text(body: object, *names: str) -> str:
    """The first of these fields that is a text, in a body of any form; empty if there is none."""
    fields = body if isinstance(body, dict) else {}
    return next((value for name in names if isinstance(value := fields.get(name), str)), "")


def require_recent_sign_in(roles: frozenset[str]) -> dict[str, Any]:
    """As `require_roles`, plus a recent sign-in of a session: for what outlives it, such as keys and grants."""
    made = require_roles(roles)

    async def check(request: Request) -> None:
        check_recent_sign_in(_http_request(request).current_principal, _state(request).clock())

    extra = {**made["openapi_extra"], "x-recent-sign-in": True}
    return {"dependencies": [*made["dependencies"], Depends(check)], "openapi_extra": extra}


def documented_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route; every route that needs authentication can also give these four."""
    every = sorted({400, 401, 403, 503, *statuses})
    return {status: {"model": ErrorJson, "description": HTTPStatus(status).phrase} for status in every}


def documented_responses(model: type[BaseModel], *statuses: int) -> dict[int | str, dict[str, Any]]:
    """The successful response of a route, and its error responses."""
    return {200: {"model": model}, **documented_errors(*statuses)}


def to_starlette(response: HttpResponse) -> Response:
    headers = {name.decode(): value.decode() for name, value in response.headers}
    return Response(response.body, response.status, headers, response.content_type.decode())


def _http_request(request: Request) -> HttpRequest:
    http_request: HttpRequest = request.scope["interlock"]
    return http_request


def _state(request: Request) -> ServerState:
    state: ServerState = request.app.state.server_state
    return state


def etag(value: object) -> str:
    """The ETag of any JSON value; numbers are versions already."""
    return f'"{value}"' if isinstance(value, int) else f'"{sha256(encode_json(value)).hexdigest()[:32]}"'


def check_if_match(headers: Mapping[bytes, bytes], current: str) -> bool:
    """Whether the request has an If-Match condition. Raises Stale if it does not match the current ETag."""
    given = headers.get(b"if-match", b"").decode("latin-1").strip()
    if given in ("", "*"):
        return False
    tags = [each.strip() for each in given.split(",")]
    if not all(len(tag) > 2 and tag.removeprefix("W/")[0] == tag[-1] == '"' for tag in tags):
        raise InvalidRequest('If-Match is the ETag of an answer, in double quotes: If-Match: "3"')
    if current not in tags:
        raise Stale("It was changed in the meantime. Reload it, then change the current version.", etag=current)
    return True


@dataclass(frozen=True)
class RequestContext:
    state: ServerState
    services: WorkspaceServices
    reviewer: Reviewer

    @property
    def workspace(self) -> str:
        return self.services.workspace

    @property
    def inbox(self) -> Inbox:
        return self.services.inbox

    async def show(self, approval_id: str) -> Response:
        return to_starlette(await approval_response(self.state, self.services, approval_id, self.reviewer))


async def request_context(state: StateDep, principal: PrincipalDep) -> RequestContext:
    services = await state.workspaces.services(principal.workspace)
    return RequestContext(state, services, services.reviewer(principal, state.clock()))


ContextDep = Annotated[RequestContext, Depends(request_context)]


async def approval_response(
    state: ServerState, services: WorkspaceServices, approval_id: str, reviewer: Reviewer
) -> HttpResponse:
    """One approval as this person sees it; the ETag is its version."""
    view = await services.inbox.show(services.workspace, approval_id)
    size, etag = len(view.stored.payload.args or b""), b'"%d"' % view.stored.approval.version
    return await offload(
        size, lambda: json_response(approval_json(view, state.clock(), reviewer), headers=((b"etag", etag),))
    )
