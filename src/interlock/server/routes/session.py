"""Sessions: sign in and out, one-time links, and the current user."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from interlock.accounts.accounts import SESSION_LIFETIME, Accounts
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.errors import InvalidRequest
from interlock.core.identity import Principal, check_full_rights
from interlock.server.auth import Auth
from interlock.server.dependencies import (
    ALL_ROLES,
    VIEWERS,
    AuthDep,
    PrincipalDep,
    RequestDep,
    StateDep,
    documented_errors,
    require_roles,
)
from interlock.server.http import HttpRequest, RequestBody, example
from interlock.server.state import ServerState

router = APIRouter(tags=["signing in"])

MAX_SECRET = 1_000
_LOCAL_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]{0,1999}")


class SignInBody(RequestBody):
    """`next` is the path that the page opens afterwards."""

    model_config = example({"name": "ada", "password": "correct horse battery staple"})

    workspace: Annotated[str, Field(max_length=MAX_SECRET)] = DEFAULT_WORKSPACE
    name: Annotated[str, Field(max_length=MAX_SECRET)]
    password: Annotated[str, Field(max_length=MAX_SECRET)]
    next: str = ""


class SignInTokenBody(RequestBody):
    model_config = example({"token": "the-part-behind-the-#"})

    token: Annotated[str, Field(max_length=MAX_SECRET)]


class UseSignInLinkBody(SignInTokenBody):
    """A new person gives a name, unless the link has one, and a password."""

    model_config = example(
        {"token": "the-part-behind-the-#", "name": "ada", "password": "correct horse battery staple"}
    )

    name: Annotated[str, Field(max_length=MAX_SECRET)] = ""
    password: Annotated[str, Field(max_length=MAX_SECRET)] = ""


class CurrentUser(BaseModel):
    """The caller. `via` is `web` for a session and `key` for a key."""

    name: str
    role: str
    teams: list[str]
    workspace: str
    via: str


class SignedInUser(CurrentUser):
    """`next` is the local path to open next."""

    next: str


class SignInLinkInfo(BaseModel):
    """The recipient of a link; `name` is empty if they choose it, `new` says that a password is needed."""

    workspace: str
    name: str
    role: str
    new: bool


class SignOutResult(BaseModel):
    sessions: int
    keys: int


@router.post("/api/session", responses=documented_errors(429))
async def sign_in(
    body: SignInBody, state: StateDep, request: RequestDep, auth: AuthDep, response: Response
) -> SignedInUser:
    """Sign in with a password; the response sets a cookie. Only from Interlock's own page: programs use keys."""
    auth.check_origin(request.headers)
    principal, token = await _traced_accounts(state, request).sign_in(
        body.workspace, body.name, body.password, client_address(request)
    )
    await start_session(state, auth, request, token, response)
    return SignedInUser(**to_current_user(principal).model_dump(), next=local_path(body.next))


@router.post("/api/session/link", responses=documented_errors(409, 429))
async def use_link(
    body: UseSignInLinkBody, state: StateDep, request: RequestDep, auth: AuthDep, response: Response
) -> SignedInUser:
    """Sign in with a one-time link, which uses it up."""
    auth.check_origin(request.headers)
    principal, token = await _traced_accounts(state, request).use_link(body.token, body.name, body.password)
    await start_session(state, auth, request, token, response)
    return SignedInUser(**to_current_user(principal).model_dump(), next="/")


@router.post("/api/session/link/inspect", responses=documented_errors())
async def inspect_sign_in_link(
    body: SignInTokenBody, state: StateDep, request: RequestDep, auth: AuthDep
) -> SignInLinkInfo:
    """Show the recipient of a one-time link. Does not use it up."""
    auth.check_origin(request.headers)
    link = await state.accounts.inspect_link(body.token)
    there = {user.name for user in await state.accounts.users(link.workspace) if user.removed_at is None}
    return SignInLinkInfo(workspace=link.workspace, name=link.person, role=link.role, new=link.person not in there)


@router.delete("/api/session", responses=documented_errors(), status_code=204, **require_roles(VIEWERS))
async def sign_out(state: StateDep, request: RequestDep, auth: AuthDep, response: Response) -> None:
    """End this session."""
    token = auth.token(request.headers)
    if request.current_principal.via != "web" or not token:
        raise InvalidRequest("A key has no session to end. Revoke it in Settings, or with: interlock keys revoke ID")
    await state.accounts.sign_out(token)
    _set_session_cookie(response, auth, "", 0)


@router.delete("/api/sessions", responses=documented_errors(), **require_roles(VIEWERS))
async def sign_out_everywhere(
    state: StateDep, principal: PrincipalDep, auth: AuthDep, response: Response
) -> SignOutResult:
    """End all of your own sessions, on every device, and your own keys. Keys of agents stay.

    A key with fewer rights than its owner cannot.
    """
    check_full_rights(principal)
    accounts = state.accounts.with_trace(principal.reviewer().trace)
    sessions, keys = await accounts.sign_out_everywhere(principal.workspace, principal.name, principal.name)
    if principal.via == "web":
        _set_session_cookie(response, auth, "", 0)
    return SignOutResult(sessions=sessions, keys=keys)


@router.get("/api/me", responses=documented_errors(), **require_roles(ALL_ROLES))
async def show_me(principal: PrincipalDep) -> CurrentUser:
    """The owner of this key or session."""
    return to_current_user(principal)


async def start_session(
    state: ServerState, auth: Auth, request: HttpRequest, token: str, response: Response, lasts: int = SESSION_LIFETIME
) -> None:
    """Set the cookie of a new session; the previous session of this browser ends."""
    before = auth.token(request.headers)
    if before:
        await state.accounts.sign_out(before)
    _set_session_cookie(response, auth, token, lasts // 1000)


def to_current_user(principal: Principal) -> CurrentUser:
    return CurrentUser(
        name=principal.name,
        role=principal.role,
        teams=sorted(principal.teams),
        workspace=principal.workspace,
        via=principal.via,
    )


def local_path(path: str) -> str:
    """A path of this server, else the start page: there is no open redirect."""
    return path if _LOCAL_PATH.fullmatch(path) else "/"


def client_address(request: HttpRequest) -> str:
    client = request.scope.get("client")
    return str(client[0]) if client else ""


def _traced_accounts(state: ServerState, request: HttpRequest) -> Accounts:
    """Accounts whose changes record the client's address."""
    address = client_address(request)
    return state.accounts.with_trace({"address": address} if address else {})


def _set_session_cookie(response: Response, auth: Auth, token: str, seconds: int) -> None:
    name, value = auth.set_cookie(token, seconds)
    response.raw_headers.append((name, value))
