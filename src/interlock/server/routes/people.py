"""People: admins change everybody, everybody their own password and absence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from interlock.accounts.accounts import Accounts
from interlock.core.errors import Forbidden, NotFound
from interlock.core.identity import MAX_TOKEN, Principal, check_full_rights, check_may_delegate
from interlock.core.policy.policy import People
from interlock.core.ports import User
from interlock.core.removal import RemovalEffects
from interlock.notify.status import identity_id, identity_json
from interlock.runtime.durations import parse_duration, parse_time, rfc3339
from interlock.server.dependencies import (
    ADMINS,
    ALL_ROLES,
    VIEWERS,
    AuthDep,
    PrincipalDep,
    RequestDep,
    StateDep,
    check_if_match,
    documented_errors,
    etag,
    require_recent_sign_in,
    require_roles,
)
from interlock.server.http import HttpRequest, RequestBody
from interlock.server.routes.session import MAX_SECRET, SignOutResult, client_address
from interlock.server.state import ServerState
from interlock.storage.tables.deliveries import ChannelIdentity

router = APIRouter(tags=["people and keys"])

MAX_TEAMS = 100
MAX_LINK_LIFETIME = parse_duration("7d")
PersonRole = Literal["viewer", "reviewer", "admin"]
Text = Annotated[str, Field(max_length=MAX_SECRET)]
Names = Annotated[list[Text], Field(default_factory=list, max_length=MAX_TEAMS)]


class UserBody(RequestBody):
    """All that is to be known of somebody: what is left out is empty from then on."""

    role: PersonRole
    teams: Names
    email: Text = ""


class NewUserBody(UserBody):
    name: Text


class AwayBody(RequestBody):
    """Until then, these decide in their place; `null` ends it."""

    until: str | None
    users: Names
    teams: Names


class SignInLinkBody(RequestBody):
    expires_in: str = "1h"


class ChangePasswordBody(RequestBody):
    old: Text
    new: Text


class AwayJson(BaseModel):
    until: str
    users: list[str]
    teams: list[str]


class Person(BaseModel):
    """`email` is shown to admins, and to the person."""

    name: str
    role: str
    teams: list[str]
    email: str | None
    away: AwayJson | None


class PersonList(BaseModel):
    items: list[Person]
    next: str | None = None


class NamedItem(BaseModel):
    """A key by its name, or a grant by its tool."""

    id: str
    name: str


class RemovalEffectsJson(BaseModel):
    """What a removal or a smaller role ends. `votes` and `delegations` are ids of pending approvals.

    `away` are the people who had named them as a stand-in. `made_keys` are keys that they made for others: those stay,
    so rotate or revoke them if they may have kept a copy. What was approved before stays approved.
    """

    grants: list[NamedItem]
    keys: list[NamedItem]
    sessions: int
    links: int
    identities: int
    votes: list[str]
    delegations: list[str]
    away: list[str]
    made_keys: list[NamedItem]


class ChangedPerson(Person):
    ended: RemovalEffectsJson


class RemovedPerson(BaseModel):
    name: str
    removed_at: str
    ended: RemovalEffectsJson


class SignInLink(BaseModel):
    """Good for one sign-in; it is shown here and nowhere else."""

    url: str
    expires_at: str


class WorkspaceInfo(BaseModel):
    name: str
    created_at: str


# People


@router.get("/api/users", responses=documented_errors(), **require_roles(VIEWERS))
async def list_users(site: StateDep, who: PrincipalDep) -> PersonList:
    """Everybody of the workspace."""
    users = await site.accounts.users(who.workspace)
    return PersonList(items=[_person(user, who) for user in users if user.removed_at is None])


@router.post("/api/users", responses=documented_errors(409), status_code=201, **require_recent_sign_in(ADMINS))
async def add_user(body: NewUserBody, site: StateDep, who: PrincipalDep, response: Response) -> Person:
    """Adds somebody, who cannot sign in yet: make a link for them."""
    teams = frozenset(body.teams)
    accounts = traced_accounts(site, who)
    user = await accounts.add_user(who.workspace, body.name, body.role, who.name, teams, body.email)
    return await _refresh_and_show(site, user, who, response)


@router.get("/api/users/{name}", responses=documented_errors(404), **require_roles(VIEWERS))
async def show_user(name: str, site: StateDep, who: PrincipalDep, response: Response) -> Person:
    """One person; the ETag says which version this is."""
    return _show_person(await _user(site, who, name), who, response)


@router.put("/api/users/{name}", responses=documented_errors(404, 409), **require_recent_sign_in(ADMINS))
async def change_user(
    name: str, body: UserBody, site: StateDep, who: PrincipalDep, asked: RequestDep, response: Response
) -> ChangedPerson:
    """Changes role, teams and e-mail address. With If-Match, only what was seen is changed.

    What they may not do any more ends with it: their grants, and their votes and delegations of pending approvals.
    """
    seen = await _user_if_match(site, who, name, asked)
    change = await traced_accounts(site, who).change_user(
        who.workspace, name, who.name, role=body.role, teams=frozenset(body.teams), email=body.email, seen=seen
    )
    person = await _refresh_and_show(site, change.user, who, response)
    return ChangedPerson(**person.model_dump(), ended=removal_effects_json(change.ended))


@router.get("/api/users/{name}/removal", responses=documented_errors(404), **require_roles(ADMINS))
async def preview_removal(
    name: str,
    site: StateDep,
    who: PrincipalDep,
    role: Annotated[PersonRole | None, Query()] = None,
    team: Annotated[list[Text] | None, Query()] = None,
) -> RemovalEffectsJson:
    """What removing somebody would end, or giving them this role and these teams. Changes nothing."""
    teams = frozenset(team or ()) if role is not None or team is not None else None
    return removal_effects_json(await site.accounts.preview(who.workspace, name, role, teams))


@router.delete("/api/users/{name}", responses=documented_errors(404, 409), **require_roles(ADMINS))
async def remove_user(name: str, site: StateDep, who: PrincipalDep, asked: RequestDep) -> RemovedPerson:
    """Removes somebody and ends all that stands for them, at once; the record keeps the name.

    Grants, keys, sessions, links, delegations and votes of pending approvals end in one transaction, and are listed.
    What was approved before stays approved.
    """
    seen = await _user_if_match(site, who, name, asked)
    change = await traced_accounts(site, who).remove_user(who.workspace, name, who.name, seen)
    await site.workspaces.refresh(who.workspace)
    removed_at = rfc3339(change.user.removed_at or 0)
    return RemovedPerson(name=name, removed_at=removed_at, ended=removal_effects_json(change.ended))


@router.delete("/api/users/{name}/sessions", responses=documented_errors(404), **require_roles(ADMINS))
async def sign_user_out(name: str, site: StateDep, who: PrincipalDep) -> SignOutResult:
    """Ends all sessions of somebody, and their own keys. Keys of agents stay."""
    sessions, keys = await traced_accounts(site, who).sign_out_everywhere(who.workspace, name, who.name)
    return SignOutResult(sessions=sessions, keys=keys)


@router.post(
    "/api/users/{name}/link", responses=documented_errors(404), status_code=201, **require_recent_sign_in(ADMINS)
)
async def link_for_user(name: str, site: StateDep, who: PrincipalDep, body: SignInLinkBody | None = None) -> SignInLink:
    """Makes a link with which somebody signs in once, and may choose a password."""
    lasts = min(parse_duration((body or SignInLinkBody()).expires_in), MAX_LINK_LIFETIME)
    token = await traced_accounts(site, who).create_link(who.workspace, who.name, name, lasts=lasts)
    link = await site.accounts.link(token)
    return SignInLink(url=f"{site.public_url}/welcome#{token}", expires_at=rfc3339(link.expires_at))


@router.put("/api/users/{name}/away", responses=documented_errors(404), **require_recent_sign_in(ADMINS))
async def set_user_away(name: str, body: AwayBody, site: StateDep, who: PrincipalDep, response: Response) -> Person:
    """Says until when somebody is away, and who decides in their place."""
    return await _set_away(site, who, name, body, response)


# Oneself


@router.put("/api/me/away", responses=documented_errors(404), **require_recent_sign_in(VIEWERS))
async def set_me_away(body: AwayBody, site: StateDep, who: PrincipalDep, response: Response) -> Person:
    """Says until when one is away, and who decides in one's place.

    A key that is for less than its person cannot. Viewers have no stand-ins, and those that a key names end with it.
    """
    check_full_rights(who)
    if body.users or body.teams:
        check_may_delegate(who, None if body.until is None else parse_time(body.until))
    return await _set_away(site, who, who.name, body, response)


@router.put("/api/me/password", responses=documented_errors(404, 429), status_code=204, **require_roles(VIEWERS))
async def change_my_password(
    body: ChangePasswordBody, site: StateDep, who: PrincipalDep, asked: RequestDep, guard: AuthDep
) -> None:
    """Changes one's own password, and ends all other sessions and one's own keys."""
    if who.via != "web":
        raise Forbidden("A key cannot change a password. Sign in, or ask an admin for a sign-in link.")
    token, address = guard.token(asked.headers), client_address(asked)
    await traced_accounts(site, who).change_password(who.workspace, who.name, body.old, body.new, address, token)


@router.get("/api/workspaces/current", responses=documented_errors(), **require_roles(ALL_ROLES))
async def this_workspace(site: StateDep, who: PrincipalDep) -> WorkspaceInfo:
    """The workspace of this key or session."""
    known = dict(await site.accounts.workspaces())
    return WorkspaceInfo(name=who.workspace, created_at=rfc3339(known[who.workspace]))


def traced_accounts(site: ServerState, who: Principal) -> Accounts:
    """What they change says by which key or session, and from where."""
    return site.accounts.traced(who.reviewer().trace)


def removal_effects_json(ended: RemovalEffects) -> RemovalEffectsJson:
    lists = {"grants": ended.grants, "keys": ended.keys, "made_keys": ended.made_keys}
    return RemovalEffectsJson(
        **{what: [NamedItem(id=each, name=name) for each, name in found] for what, found in lists.items()},
        sessions=ended.sessions,
        links=ended.links,
        identities=ended.identities,
        votes=list(ended.votes),
        delegations=list(ended.delegations),
        away=list(ended.away),
    )


async def _user(site: ServerState, who: Principal, name: str) -> User:
    for user in await site.accounts.users(who.workspace):
        if user.name == name and user.removed_at is None:
            return user
    raise NotFound("There is nobody of this name here. GET /api/users lists everybody.", user=name)


async def _user_if_match(site: ServerState, who: Principal, name: str, asked: HttpRequest) -> User | None:
    """Whoever is there now if the change is bound to them, so that the transaction can look once more."""
    user = await _user(site, who, name)
    return user if check_if_match(asked.headers, _user_etag(user)) else None


async def _set_away(site: ServerState, who: Principal, name: str, body: AwayBody, response: Response) -> Person:
    until = None if body.until is None else parse_time(body.until)
    to = People(frozenset(body.users), frozenset(body.teams)) if body.users or body.teams else None
    return await _refresh_and_show(
        site, await traced_accounts(site, who).set_away(who.workspace, name, until, to, who.name), who, response
    )


async def _refresh_and_show(site: ServerState, user: User, who: Principal, response: Response) -> Person:
    await site.workspaces.refresh(who.workspace)
    return _show_person(user, who, response)


def _show_person(user: User, who: Principal, response: Response) -> Person:
    response.headers["etag"] = _user_etag(user)
    return _person(user, who)


def _person(user: User, who: Principal) -> Person:
    known = who.role == "admin" or who.name == user.name
    away = None
    if user.away_until is not None:
        to = user.away_to or People()
        away = AwayJson(until=rfc3339(user.away_until), users=sorted(to.users), teams=sorted(to.teams))
    return Person(
        name=user.name, role=user.role, teams=sorted(user.teams), email=user.email if known else None, away=away
    )


def _user_etag(user: User) -> str:
    to = user.away_to or People()
    away = [user.away_until, sorted(to.users), sorted(to.teams)]
    return etag([user.name, user.role, sorted(user.teams), user.email, away])


class IdentityLinkBody(RequestBody):
    """`link` is what stands behind `link=` in the address that the channel gave."""

    link: Annotated[str, Field(max_length=MAX_TOKEN)]


class IdentityInfo(BaseModel):
    """`outside` is what the channel calls them by."""

    id: str
    channel: str
    outside: str
    user: str
    at: str


class IdentityList(BaseModel):
    items: list[IdentityInfo]
    next: str | None = None


class IdentityLinkInfo(BaseModel):
    """What a link would say; `user` is who is known as that already, if anybody is."""

    channel: str
    kind: str
    outside: str
    user: str | None
    expires_at: str


@router.get("/api/me/identities", responses=documented_errors(), **require_roles(VIEWERS))
async def list_my_identities(site: StateDep, who: PrincipalDep) -> IdentityList:
    """Accounts elsewhere with which one can answer as oneself."""
    return IdentityList(items=[_info(each) for each in await _mine(site, who)])


@router.post("/api/me/identities/look", responses=documented_errors(404), **require_roles(VIEWERS))
async def inspect_identity_link(body: IdentityLinkBody, site: StateDep, who: PrincipalDep) -> IdentityLinkInfo:
    """Whom a link is about. Binds nothing."""
    claim = await site.reach.of(who.workspace).claim(body.link)
    known = await site.store.deliveries.identity(who.workspace, claim.channel, claim.outside)
    kind = site.settings.of(who.workspace).channels[claim.channel].kind
    expires_at = rfc3339(claim.expires_at)
    return IdentityLinkInfo(
        channel=claim.channel, kind=kind, outside=claim.outside, user=known or None, expires_at=expires_at
    )


@router.post(
    "/api/me/identities", responses=documented_errors(404, 409), status_code=201, **require_recent_sign_in(VIEWERS)
)
async def link_my_identity(body: IdentityLinkBody, site: StateDep, who: PrincipalDep) -> IdentityInfo:
    """Says that this is oneself there: from then on, what is decided through that account counts as one's own."""
    if who.via != "web":
        raise Forbidden("A key cannot say who you are elsewhere. Sign in and open the link.")
    claim = await site.reach.of(who.workspace).claim(body.link)
    await site.store.deliveries.bind(who.workspace, claim.channel, claim.outside, who.name, who.name)
    return next(_info(each) for each in await _mine(site, who) if each[:2] == claim[:2])


@router.delete(
    "/api/me/identities/{identity_id}", responses=documented_errors(404), status_code=204, **require_roles(VIEWERS)
)
async def unlink_my_identity(identity_id: str, site: StateDep, who: PrincipalDep) -> None:
    """From then on, that account elsewhere is nobody here. A key that is for less than its person cannot."""
    check_full_rights(who)
    await _unlink(site, who, identity_id, await _mine(site, who))


@router.get("/api/identities", responses=documented_errors(), **require_roles(ADMINS))
async def list_identities(site: StateDep, who: PrincipalDep) -> IdentityList:
    """Everybody's accounts elsewhere; at most 10,000."""
    return IdentityList(items=[_info(each) for each in await site.store.deliveries.identities(who.workspace)])


@router.delete(
    "/api/identities/{identity_id}", responses=documented_errors(404), status_code=204, **require_roles(ADMINS)
)
async def unlink_identity(identity_id: str, site: StateDep, who: PrincipalDep) -> None:
    """From then on, that account elsewhere is nobody here."""
    await _unlink(site, who, identity_id, await site.store.deliveries.identities(who.workspace))


async def _unlink(site: ServerState, who: Principal, wanted: str, known: Sequence[ChannelIdentity]) -> None:
    found = next((each for each in known if identity_id(each) == wanted), None)
    if found is None:
        raise NotFound("There is no account elsewhere with this id.", identity_id=wanted)
    await site.store.deliveries.unbind(who.workspace, found.channel, found.outside, who.name)


async def _mine(site: ServerState, who: Principal) -> list[ChannelIdentity]:
    return [each for each in await site.store.deliveries.identities(who.workspace) if each.person == who.name]


def _info(identity: ChannelIdentity) -> IdentityInfo:
    return IdentityInfo.model_validate(identity_json(identity))
