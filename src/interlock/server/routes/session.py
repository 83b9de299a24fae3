"""Signing in and out, one-time links, and who one is."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from interlock.accounts.accounts import SESSION, Accounts
from interlock.core.errors import InvalidRequest
from interlock.core.identity import Principal, check_whole
from interlock.server.auth import Auth
from interlock.server.dependencies import ANYBODY, LOOKERS, Caller, Given, Guard, Here, fails, may
from interlock.server.http import Asked, Body
from interlock.server.state import Site

router = APIRouter(tags=["signing in"])

MAX_SECRET = 1_000
_LOCAL = re.compile(r"/(?![/\\])[!-\[\]-~]{0,1999}")


class SignIn(Body):
    """`next` is where the page goes on afterwards."""

    workspace: Annotated[str, Field(max_length=MAX_SECRET)] = "default"
    name: Annotated[str, Field(max_length=MAX_SECRET)]
    password: Annotated[str, Field(max_length=MAX_SECRET)]
    next: str = ""


class Token(Body):
    token: Annotated[str, Field(max_length=MAX_SECRET)]


class UseLink(Token):
    """Whoever is new says a name, unless the link has one, and a password."""

    name: Annotated[str, Field(max_length=MAX_SECRET)] = ""
    password: Annotated[str, Field(max_length=MAX_SECRET)] = ""


class Myself(BaseModel):
    """Who asks. `via` is `web` for a session and `key` for a key."""

    name: str
    role: str
    teams: list[str]
    workspace: str
    via: str


class Entered(Myself):
    """`next` is the local path to go on with."""

    next: str


class LinkFor(BaseModel):
    """For whom a link is; `name` is empty where whoever opens it says it, `new` if a password is needed."""

    workspace: str
    name: str
    role: str
    new: bool


class Ended(BaseModel):
    sessions: int
    keys: int


@router.post("/api/session", responses=fails(429))
async def sign_in(body: SignIn, site: Here, asked: Given, guard: Guard, response: Response) -> Entered:
    """Signs in with a password; the answer sets a cookie. Only from Interlock's own page: programs use keys."""
    guard.check_origin(asked.headers)
    principal, token = await _from(site, asked).sign_in(body.workspace, body.name, body.password, client_address(asked))
    await enter(site, guard, asked, token, response)
    return Entered(**myself(principal).model_dump(), next=local_path(body.next))


@router.post("/api/session/link", responses=fails(409, 429))
async def use_link(body: UseLink, site: Here, asked: Given, guard: Guard, response: Response) -> Entered:
    """Spends a one-time link."""
    guard.check_origin(asked.headers)
    principal, token = await _from(site, asked).use_link(body.token, body.name, body.password)
    await enter(site, guard, asked, token, response)
    return Entered(**myself(principal).model_dump(), next="/")


@router.post("/api/session/link/look", responses=fails())
async def look_at_link(body: Token, site: Here, asked: Given, guard: Guard) -> LinkFor:
    """For whom a one-time link is. Spends nothing."""
    guard.check_origin(asked.headers)
    link = await site.accounts.link(body.token)
    there = {user.name for user in await site.accounts.users(link.workspace) if user.removed_at is None}
    return LinkFor(workspace=link.workspace, name=link.person, role=link.role, new=link.person not in there)


@router.delete("/api/session", responses=fails(), status_code=204, **may(LOOKERS))
async def sign_out(site: Here, asked: Given, guard: Guard, response: Response) -> None:
    """Ends this session."""
    token = guard.token(asked.headers)
    if asked.person.via != "web" or not token:
        raise InvalidRequest("You came with a key, which has no session. To end a key: DELETE /api/me/keys/{id}")
    await site.accounts.sign_out(token)
    _put_cookie(response, guard, "", 0)


@router.delete("/api/sessions", responses=fails(), **may(LOOKERS))
async def sign_out_everywhere(site: Here, who: Caller, guard: Guard, response: Response) -> Ended:
    """Ends all of one's own sessions, on every device, and one's own keys. Keys of agents stay.

    A key that is for less than its person cannot.
    """
    check_whole(who)
    accounts = site.accounts.traced(who.reviewer().trace)
    sessions, keys = await accounts.sign_out_everywhere(who.workspace, who.name, who.name)
    if who.via == "web":
        _put_cookie(response, guard, "", 0)
    return Ended(sessions=sessions, keys=keys)


@router.get("/api/me", responses=fails(), **may(ANYBODY))
async def me(who: Caller) -> Myself:
    """Whose key or session this is."""
    return myself(who)


async def enter(site: Site, guard: Auth, asked: Asked, token: str, response: Response, lasts: int = SESSION) -> None:
    """Every sign-in has a token of its own; the one that this browser had before ends."""
    before = guard.token(asked.headers)
    if before:
        await site.accounts.sign_out(before)
    _put_cookie(response, guard, token, lasts // 1000)


def myself(who: Principal) -> Myself:
    return Myself(name=who.name, role=who.role, teams=sorted(who.teams), workspace=who.workspace, via=who.via)


def local_path(path: str) -> str:
    """A path of this server, or the first page: nobody is led elsewhere from here."""
    return path if _LOCAL.fullmatch(path) else "/"


def client_address(asked: Asked) -> str:
    client = asked.scope.get("client")
    return str(client[0]) if client else ""


def _from(site: Site, asked: Asked) -> Accounts:
    """Where somebody signs in from stands in the record."""
    address = client_address(asked)
    return site.accounts.traced({"address": address} if address else {})


def _put_cookie(response: Response, guard: Auth, token: str, seconds: int) -> None:
    name, value = guard.set_cookie(token, seconds)
    response.raw_headers.append((name, value))
