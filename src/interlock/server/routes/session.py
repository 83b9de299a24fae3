"""Signing in and out, one-time links, and who one is."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from interlock.accounts.accounts import SESSION_LIFETIME, Accounts
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
from interlock.server.http import HttpRequest, RequestBody
from interlock.server.state import ServerState

router = APIRouter(tags=["signing in"])

MAX_SECRET = 1_000
_LOCAL_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]{0,1999}")


class SignInBody(RequestBody):
    """`next` is where the page goes on afterwards."""

    workspace: Annotated[str, Field(max_length=MAX_SECRET)] = "default"
    name: Annotated[str, Field(max_length=MAX_SECRET)]
    password: Annotated[str, Field(max_length=MAX_SECRET)]
    next: str = ""


class SignInTokenBody(RequestBody):
    token: Annotated[str, Field(max_length=MAX_SECRET)]


class UseSignInLinkBody(SignInTokenBody):
    """Whoever is new says a name, unless the link has one, and a password."""

    name: Annotated[str, Field(max_length=MAX_SECRET)] = ""
    password: Annotated[str, Field(max_length=MAX_SECRET)] = ""


class CurrentUser(BaseModel):
    """Who asks. `via` is `web` for a session and `key` for a key."""

    name: str
    role: str
    teams: list[str]
    workspace: str
    via: str


class SignedInUser(CurrentUser):
    """`next` is the local path to go on with."""

    next: str


class SignInLinkInfo(BaseModel):
    """For whom a link is; `name` is empty where whoever opens it says it, `new` if a password is needed."""

    workspace: str
    name: str
    role: str
    new: bool


class SignOutResult(BaseModel):
    sessions: int
    keys: int


@router.post("/api/session", responses=documented_errors(429))
async def sign_in(
    body: SignInBody, site: StateDep, asked: RequestDep, guard: AuthDep, response: Response
) -> SignedInUser:
    """Signs in with a password; the answer sets a cookie. Only from Interlock's own page: programs use keys."""
    guard.check_origin(asked.headers)
    principal, token = await _traced_accounts(site, asked).sign_in(
        body.workspace, body.name, body.password, client_address(asked)
    )
    await start_session(site, guard, asked, token, response)
    return SignedInUser(**to_current_user(principal).model_dump(), next=local_path(body.next))


@router.post("/api/session/link", responses=documented_errors(409, 429))
async def use_link(
    body: UseSignInLinkBody, site: StateDep, asked: RequestDep, guard: AuthDep, response: Response
) -> SignedInUser:
    """Spends a one-time link."""
    guard.check_origin(asked.headers)
    principal, token = await _traced_accounts(site, asked).use_link(body.token, body.name, body.password)
    await start_session(site, guard, asked, token, response)
    return SignedInUser(**to_current_user(principal).model_dump(), next="/")


@router.post("/api/session/link/look", responses=documented_errors())
async def inspect_sign_in_link(
    body: SignInTokenBody, site: StateDep, asked: RequestDep, guard: AuthDep
) -> SignInLinkInfo:
    """For whom a one-time link is. Spends nothing."""
    guard.check_origin(asked.headers)
    link = await site.accounts.link(body.token)
    there = {user.name for user in await site.accounts.users(link.workspace) if user.removed_at is None}
    return SignInLinkInfo(workspace=link.workspace, name=link.person, role=link.role, new=link.person not in there)


@router.delete("/api/session", responses=documented_errors(), status_code=204, **require_roles(VIEWERS))
async def sign_out(site: StateDep, asked: RequestDep, guard: AuthDep, response: Response) -> None:
    """Ends this session."""
    token = guard.token(asked.headers)
    if asked.person.via != "web" or not token:
        raise InvalidRequest("You came with a key, which has no session. To end a key: DELETE /api/me/keys/{id}")
    await site.accounts.sign_out(token)
    _set_session_cookie(response, guard, "", 0)


@router.delete("/api/sessions", responses=documented_errors(), **require_roles(VIEWERS))
async def sign_out_everywhere(site: StateDep, who: PrincipalDep, guard: AuthDep, response: Response) -> SignOutResult:
    """Ends all of one's own sessions, on every device, and one's own keys. Keys of agents stay.

    A key that is for less than its person cannot.
    """
    check_full_rights(who)
    accounts = site.accounts.traced(who.reviewer().trace)
    sessions, keys = await accounts.sign_out_everywhere(who.workspace, who.name, who.name)
    if who.via == "web":
        _set_session_cookie(response, guard, "", 0)
    return SignOutResult(sessions=sessions, keys=keys)


@router.get("/api/me", responses=documented_errors(), **require_roles(ALL_ROLES))
async def show_me(who: PrincipalDep) -> CurrentUser:
    """Whose key or session this is."""
    return to_current_user(who)


async def start_session(
    site: ServerState, guard: Auth, asked: HttpRequest, token: str, response: Response, lasts: int = SESSION_LIFETIME
) -> None:
    """Every sign-in has a token of its own; the one that this browser had before ends."""
    before = guard.token(asked.headers)
    if before:
        await site.accounts.sign_out(before)
    _set_session_cookie(response, guard, token, lasts // 1000)


def to_current_user(who: Principal) -> CurrentUser:
    return CurrentUser(name=who.name, role=who.role, teams=sorted(who.teams), workspace=who.workspace, via=who.via)


def local_path(path: str) -> str:
    """A path of this server, or the first page: nobody is led elsewhere from here."""
    return path if _LOCAL_PATH.fullmatch(path) else "/"


def client_address(asked: HttpRequest) -> str:
    client = asked.scope.get("client")
    return str(client[0]) if client else ""


def _traced_accounts(site: ServerState, asked: HttpRequest) -> Accounts:
    """Where somebody signs in from stands in the record."""
    address = client_address(asked)
    return site.accounts.traced({"address": address} if address else {})


def _set_session_cookie(response: Response, guard: Auth, token: str, seconds: int) -> None:
    name, value = guard.set_cookie(token, seconds)
    response.raw_headers.append((name, value))
