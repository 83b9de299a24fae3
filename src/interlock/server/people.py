"""People and keys: admins change everybody, everybody their own password, keys and absence."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from interlock.core.errors import Forbidden, NotFound
from interlock.core.identity import AGENT, Key, Principal, lesser
from interlock.core.policy import People
from interlock.core.ports import User
from interlock.durations import optional_rfc3339, parse_duration, parse_time, rfc3339
from interlock.server.session import MAX_SECRET, Ended, client_address
from interlock.web.asgi import Asked, Body
from interlock.web.routing import ADMINS, ANYBODY, LOOKERS, Caller, Given, Guard, Here, fails, may
from interlock.web.site import Site
from interlock.web.versions import check_match, etag

router = APIRouter(tags=["people and keys"])

MAX_TEAMS = 100
MAX_LINK = parse_duration("7d")
PersonRole = Literal["viewer", "reviewer", "admin"]
Text = Annotated[str, Field(max_length=MAX_SECRET)]
Names = Annotated[list[Text], Field(default_factory=list, max_length=MAX_TEAMS)]


class ChangedUser(Body):
    """All that is to be known of somebody: what is left out is empty from then on."""

    role: PersonRole
    teams: Names
    email: Text = ""


class NewUser(ChangedUser):
    name: Text


class Away(Body):
    """Until then, these decide in their place; `null` ends it."""

    until: str | None
    users: Names
    teams: Names


class NewLink(Body):
    expires_in: str = "1h"


class NewPassword(Body):
    old: Text
    new: Text


class NewOwnKey(Body):
    name: Text
    role: PersonRole | None = None


class NewKey(Body):
    """Without a `user`, a key for people is of the person of its own name, who is added if missing."""

    name: Text
    role: Literal["agent", "viewer", "reviewer", "admin"]
    user: Text = ""


class AwayUntil(BaseModel):
    until: str
    users: list[str]
    teams: list[str]


class Person(BaseModel):
    """`email` is shown to admins, and to the person."""

    name: str
    role: str
    teams: list[str]
    email: str | None
    away: AwayUntil | None


class PersonList(BaseModel):
    items: list[Person]
    next: str | None = None


class SignInLink(BaseModel):
    """Good for one sign-in; it is shown here and nowhere else."""

    url: str
    expires_at: str


class KeyInfo(BaseModel):
    """`id` is how the key begins."""

    id: str
    name: str
    role: str
    user: str | None
    created_by: str
    created_at: str
    used_at: str | None
    revoked_at: str | None


class MadeKey(KeyInfo):
    """`key` is shown here and nowhere else."""

    key: str


class KeyList(BaseModel):
    items: list[KeyInfo]
    next: str | None = None


class Workspace(BaseModel):
    name: str
    created_at: str


# People


@router.get("/api/users", responses=fails(), **may(LOOKERS))
async def list_users(site: Here, who: Caller) -> PersonList:
    """Everybody of the workspace."""
    users = await site.accounts.users(who.workspace)
    return PersonList(items=[_person(user, who) for user in users if user.removed_at is None])


@router.post("/api/users", responses=fails(409), status_code=201, **may(ADMINS))
async def add_user(body: NewUser, site: Here, who: Caller, response: Response) -> Person:
    """Adds somebody, who cannot sign in yet: make a link for them."""
    teams = frozenset(body.teams)
    user = await site.accounts.add_user(who.workspace, body.name, body.role, who.name, teams, body.email)
    return await _told(site, user, who, response)


@router.get("/api/users/{name}", responses=fails(404), **may(LOOKERS))
async def show_user(name: str, site: Here, who: Caller, response: Response) -> Person:
    """One person; the ETag says which version this is."""
    return _shown(await _user(site, who, name), who, response)


@router.put("/api/users/{name}", responses=fails(404, 409), **may(ADMINS))
async def change_user(
    name: str, body: ChangedUser, site: Here, who: Caller, asked: Given, response: Response
) -> Person:
    """Changes role, teams and e-mail address. With If-Match, only what was seen is changed."""
    seen = await _matching(site, who, name, asked)
    user = await site.accounts.change_user(
        who.workspace, name, who.name, role=body.role, teams=frozenset(body.teams), email=body.email, seen=seen
    )
    return await _told(site, user, who, response)


@router.delete("/api/users/{name}", responses=fails(404, 409), status_code=204, **may(ADMINS))
async def remove_user(name: str, site: Here, who: Caller, asked: Given) -> None:
    """Ends their sessions, keys and links; the record keeps the name."""
    seen = await _matching(site, who, name, asked)
    await site.accounts.remove_user(who.workspace, name, who.name, seen)
    await site.workspaces.refresh(who.workspace)


@router.delete("/api/users/{name}/sessions", responses=fails(404), **may(ADMINS))
async def sign_somebody_out(name: str, site: Here, who: Caller) -> Ended:
    """Ends all sessions of somebody. Their keys stay."""
    return Ended(sessions=await site.accounts.sign_out_everywhere(who.workspace, name, who.name))


@router.post("/api/users/{name}/link", responses=fails(404), status_code=201, **may(ADMINS))
async def link_for_user(name: str, site: Here, who: Caller, body: NewLink | None = None) -> SignInLink:
    """Makes a link with which somebody signs in once, and may choose a password."""
    lasts = min(parse_duration((body or NewLink()).expires_in), MAX_LINK)
    token = await site.accounts.create_link(who.workspace, who.name, name, lasts=lasts)
    link = await site.accounts.link(token)
    return SignInLink(url=f"{site.public_url}/welcome#{token}", expires_at=rfc3339(link.expires_at))


@router.put("/api/users/{name}/away", responses=fails(404), **may(ADMINS))
async def set_somebody_away(name: str, body: Away, site: Here, who: Caller, response: Response) -> Person:
    """Says until when somebody is away, and who decides in their place."""
    return await _put_away(site, who, name, body, response)


# Oneself


@router.put("/api/me/away", responses=fails(404), **may(LOOKERS))
async def set_me_away(body: Away, site: Here, who: Caller, response: Response) -> Person:
    """Says until when one is away, and who decides in one's place."""
    return await _put_away(site, who, who.name, body, response)


@router.put("/api/me/password", responses=fails(404, 429), status_code=204, **may(LOOKERS))
async def change_my_password(body: NewPassword, site: Here, who: Caller, asked: Given, guard: Guard) -> None:
    """Changes one's own password, and ends all other sessions."""
    if who.via != "web":
        raise Forbidden("A key cannot change a password. Sign in, or ask an admin for a sign-in link.")
    token, address = guard.token(asked.headers), client_address(asked)
    await site.accounts.change_password(who.workspace, who.name, body.old, body.new, address, token)


@router.get("/api/me/keys", responses=fails(), **may(LOOKERS))
async def list_my_keys(site: Here, who: Caller) -> KeyList:
    """One's own keys."""
    return KeyList(items=[_key(key) for key in await _my_keys(site, who)])


@router.post("/api/me/keys", responses=fails(409), status_code=201, **may(LOOKERS))
async def make_my_key(body: NewOwnKey, site: Here, who: Caller) -> MadeKey:
    """Makes a key of one's own, with at most one's own role."""
    role = body.role or who.role
    if lesser(role, who.role) != role:
        raise Forbidden(f"You are {who.role} here, so that a key of yours cannot be for more.")
    return await _made(site, who, body.name, role, who.name)


@router.delete("/api/me/keys/{key_id}", responses=fails(404), **may(LOOKERS))
async def revoke_my_key(key_id: str, site: Here, who: Caller) -> KeyInfo:
    """Ends a key of one's own, at once and for good."""
    if all(key.id != key_id for key in await _my_keys(site, who)):
        raise NotFound("You have no key with this id.", key_id=key_id)
    return _key(await site.accounts.revoke_key(who.workspace, key_id, who.name))


# Keys


@router.get("/api/keys", responses=fails(), **may(ADMINS))
async def list_keys(site: Here, who: Caller) -> KeyList:
    """The newest 1,000 keys of the workspace, the revoked ones too."""
    return KeyList(items=[_key(key) for key in await site.accounts.keys(who.workspace)])


@router.post("/api/keys", responses=fails(409), status_code=201, **may(ADMINS))
async def make_key(body: NewKey, site: Here, who: Caller) -> MadeKey:
    """Makes a key for an agent's program, or for somebody."""
    made = await _made(site, who, body.name, body.role, body.user)
    await site.workspaces.refresh(who.workspace)
    return made


@router.delete("/api/keys/{key_id}", responses=fails(404), **may(ADMINS))
async def revoke_key(key_id: str, site: Here, who: Caller) -> KeyInfo:
    """Ends a key, at once and for good."""
    return _key(await site.accounts.revoke_key(who.workspace, key_id, who.name))


@router.get("/api/workspaces/current", responses=fails(), **may(ANYBODY))
async def this_workspace(site: Here, who: Caller) -> Workspace:
    """The workspace of this key or session."""
    known = dict(await site.accounts.workspaces())
    return Workspace(name=who.workspace, created_at=rfc3339(known[who.workspace]))


async def _user(site: Site, who: Principal, name: str) -> User:
    for user in await site.accounts.users(who.workspace):
        if user.name == name and user.removed_at is None:
            return user
    raise NotFound("There is nobody of this name here. GET /api/users lists everybody.", user=name)


async def _matching(site: Site, who: Principal, name: str, asked: Asked) -> User | None:
    """Whoever is there now if the change is bound to them, so that the transaction can look once more."""
    user = await _user(site, who, name)
    return user if check_match(asked.headers, _tag(user)) else None


async def _put_away(site: Site, who: Principal, name: str, body: Away, response: Response) -> Person:
    until = None if body.until is None else parse_time(body.until)
    to = People(frozenset(body.users), frozenset(body.teams)) if body.users or body.teams else None
    return await _told(site, await site.accounts.set_away(who.workspace, name, until, to, who.name), who, response)


async def _told(site: Site, user: User, who: Principal, response: Response) -> Person:
    await site.workspaces.refresh(who.workspace)
    return _shown(user, who, response)


def _shown(user: User, who: Principal, response: Response) -> Person:
    response.headers["etag"] = _tag(user)
    return _person(user, who)


def _person(user: User, who: Principal) -> Person:
    known = who.role == "admin" or who.name == user.name
    away = None
    if user.away_until is not None:
        to = user.away_to or People()
        away = AwayUntil(until=rfc3339(user.away_until), users=sorted(to.users), teams=sorted(to.teams))
    return Person(
        name=user.name, role=user.role, teams=sorted(user.teams), email=user.email if known else None, away=away
    )


def _tag(user: User) -> str:
    to = user.away_to or People()
    away = [user.away_until, sorted(to.users), sorted(to.teams)]
    return etag([user.name, user.role, sorted(user.teams), user.email, away])


async def _my_keys(site: Site, who: Principal) -> list[Key]:
    return [key for key in await site.accounts.keys(who.workspace) if key.person == who.name and key.role != AGENT]


async def _made(site: Site, who: Principal, name: str, role: str, user: str) -> MadeKey:
    key, secret = await site.accounts.create_key(who.workspace, name, role, who.name, user)
    return MadeKey(**_key(key).model_dump(), key=secret)


def _key(key: Key) -> KeyInfo:
    return KeyInfo(
        id=key.id,
        name=key.name,
        role=key.role,
        user=key.person or None,
        created_by=key.created_by,
        created_at=rfc3339(key.created_at),
        used_at=optional_rfc3339(key.used_at),
        revoked_at=optional_rfc3339(key.revoked_at),
    )
