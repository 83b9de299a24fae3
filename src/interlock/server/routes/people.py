"""People: admins change everybody, everybody their own password, absence and linked accounts."""

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
from interlock.server.http import HttpRequest, RequestBody, example
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
    """All fields of a person: those that are omitted become empty."""

    model_config = example({"role": "reviewer", "teams": ["finance", "leads"], "email": "eve@example.com"})

    role: PersonRole
    teams: Names
    email: Text = ""


class NewUserBody(UserBody):
    model_config = example({"name": "eve", "role": "reviewer", "teams": ["finance"], "email": "eve@example.com"})

    name: Text


class AwayBody(RequestBody):
    """Until then, these people decide in their place; `null` ends the absence."""

    model_config = example({"until": "2027-03-15T08:00:00Z", "users": ["bob"], "teams": []})

    until: str | None
    users: Names
    teams: Names


class SignInLinkBody(RequestBody):
    model_config = example({"expires_in": "1h"})

    expires_in: str = "1h"


class ChangePasswordBody(RequestBody):
    model_config = example({"old": "correct horse battery staple", "new": "a longer one, that nobody guesses"})

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

    `away` are the people who had named them as a delegate. `made_keys` are keys that they made for others: those stay
    valid, so rotate or revoke them if they may have kept a copy. What was approved before stays approved.
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
    """Valid for one sign-in; it is shown here and nowhere else."""

    url: str
    expires_at: str


class WorkspaceInfo(BaseModel):
    name: str
    created_at: str


# People


@router.get("/api/users", responses=documented_errors(), **require_roles(VIEWERS))
async def list_users(state: StateDep, principal: PrincipalDep) -> PersonList:
    """All people of the workspace."""
    users = await state.accounts.users(principal.workspace)
    return PersonList(items=[_person(user, principal) for user in users if user.removed_at is None])


@router.post("/api/users", responses=documented_errors(409), status_code=201, **require_recent_sign_in(ADMINS))
async def add_user(body: NewUserBody, state: StateDep, principal: PrincipalDep, response: Response) -> Person:
    """Add a person, who cannot sign in yet: make a link for them."""
    teams = frozenset(body.teams)
    accounts = traced_accounts(state, principal)
    user = await accounts.add_user(principal.workspace, body.name, body.role, principal.name, teams, body.email)
    return await _refresh_and_show(state, user, principal, response)


@router.get("/api/users/{name}", responses=documented_errors(404), **require_roles(VIEWERS))
async def show_user(name: str, state: StateDep, principal: PrincipalDep, response: Response) -> Person:
    """One person; the ETag is their version."""
    return _show_person(await _user(state, principal, name), principal, response)


@router.put("/api/users/{name}", responses=documented_errors(404, 409), **require_recent_sign_in(ADMINS))
async def change_user(
    name: str, body: UserBody, state: StateDep, principal: PrincipalDep, request: RequestDep, response: Response
) -> ChangedPerson:
    """Change role, teams and e-mail address. With If-Match, only if the person is unchanged.

    What they may not do any more ends with it: their grants, and their votes and delegations on pending approvals.
    """
    seen = await _user_if_match(state, principal, name, request)
    change = await traced_accounts(state, principal).change_user(
        principal.workspace,
        name,
        principal.name,
        role=body.role,
        teams=frozenset(body.teams),
        email=body.email,
        expected=seen,
    )
    person = await _refresh_and_show(state, change.user, principal, response)
    return ChangedPerson(**person.model_dump(), ended=removal_effects_json(change.effects))


@router.get("/api/users/{name}/removal", responses=documented_errors(404), **require_roles(ADMINS))
async def preview_removal(
    name: str,
    state: StateDep,
    principal: PrincipalDep,
    role: Annotated[PersonRole | None, Query()] = None,
    team: Annotated[list[Text] | None, Query()] = None,
) -> RemovalEffectsJson:
    """Preview what removing a person would end, or giving them this role and these teams. Changes nothing."""
    teams = frozenset(team or ()) if role is not None or team is not None else None
    return removal_effects_json(await state.accounts.preview_change(principal.workspace, name, role, teams))


@router.delete("/api/users/{name}", responses=documented_errors(404, 409), **require_roles(ADMINS))
async def remove_user(name: str, state: StateDep, principal: PrincipalDep, request: RequestDep) -> RemovedPerson:
    """Remove a person and end all their rights, at once; the ledger keeps the name.

    Grants, keys, sessions, links, delegations and votes on pending approvals end in one transaction, and are listed.
    What was approved before stays approved.
    """
    seen = await _user_if_match(state, principal, name, request)
    change = await traced_accounts(state, principal).remove_user(principal.workspace, name, principal.name, seen)
    await state.workspaces.refresh(principal.workspace)
    removed_at = rfc3339(change.user.removed_at or 0)
    return RemovedPerson(name=name, removed_at=removed_at, ended=removal_effects_json(change.effects))


@router.delete("/api/users/{name}/sessions", responses=documented_errors(404), **require_roles(ADMINS))
async def sign_user_out(name: str, state: StateDep, principal: PrincipalDep) -> SignOutResult:
    """End all sessions of a person, and their own keys. Keys of agents stay."""
    sessions, keys = await traced_accounts(state, principal).sign_out_everywhere(
        principal.workspace, name, principal.name
    )
    return SignOutResult(sessions=sessions, keys=keys)


@router.post(
    "/api/users/{name}/link", responses=documented_errors(404), status_code=201, **require_recent_sign_in(ADMINS)
)
async def link_for_user(
    name: str, state: StateDep, principal: PrincipalDep, body: SignInLinkBody | None = None
) -> SignInLink:
    """Make a one-time link with which a person signs in, and may choose a password."""
    lasts = min(parse_duration((body or SignInLinkBody()).expires_in), MAX_LINK_LIFETIME)
    token = await traced_accounts(state, principal).create_link(
        principal.workspace, principal.name, name, lifetime=lasts
    )
    link = await state.accounts.inspect_link(token)
    return SignInLink(url=f"{state.public_url}/welcome#{token}", expires_at=rfc3339(link.expires_at))


@router.put("/api/users/{name}/away", responses=documented_errors(404), **require_recent_sign_in(ADMINS))
async def set_user_away(
    name: str, body: AwayBody, state: StateDep, principal: PrincipalDep, response: Response
) -> Person:
    """Set until when a person is away, and who decides in their place."""
    return await _set_away(state, principal, name, body, response)


# The caller


@router.put("/api/me/away", responses=documented_errors(404), **require_recent_sign_in(VIEWERS))
async def set_me_away(body: AwayBody, state: StateDep, principal: PrincipalDep, response: Response) -> Person:
    """Set until when you are away, and who decides in your place.

    A key with fewer rights than its owner cannot. Viewers have no delegates, and those that a key names end with it.
    """
    check_full_rights(principal)
    if body.users or body.teams:
        check_may_delegate(principal, None if body.until is None else parse_time(body.until))
    return await _set_away(state, principal, principal.name, body, response)


@router.put("/api/me/password", responses=documented_errors(404, 429), status_code=204, **require_roles(VIEWERS))
async def change_my_password(
    body: ChangePasswordBody, state: StateDep, principal: PrincipalDep, request: RequestDep, auth: AuthDep
) -> None:
    """Change your own password; this ends all your other sessions, and your own keys."""
    if principal.via != "web":
        raise Forbidden("A key cannot change a password. Sign in, or ask an admin for a sign-in link.")
    token, address = auth.token(request.headers), client_address(request)
    await traced_accounts(state, principal).change_password(
        principal.workspace, principal.name, body.old, body.new, address, token
    )


@router.get("/api/workspaces/current", responses=documented_errors(), **require_roles(ALL_ROLES))
async def this_workspace(state: StateDep, principal: PrincipalDep) -> WorkspaceInfo:
    """The workspace of this key or session."""
    known = dict(await state.accounts.workspaces())
    return WorkspaceInfo(name=principal.workspace, created_at=rfc3339(known[principal.workspace]))


def traced_accounts(state: ServerState, principal: Principal) -> Accounts:
    """Accounts whose changes record the key or session, and the client's address."""
    return state.accounts.with_trace(principal.reviewer().trace)


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


async def _user(state: ServerState, principal: Principal, name: str) -> User:
    for user in await state.accounts.users(principal.workspace):
        if user.name == name and user.removed_at is None:
            return user
    raise NotFound(f"There is no user {name!r}. See Settings, People, or: interlock users list", user=name)


async def _user_if_match(state: ServerState, principal: Principal, name: str, request: HttpRequest) -> User | None:
    """The current user if the change has an If-Match condition, so that the transaction can check it again."""
    user = await _user(state, principal, name)
    return user if check_if_match(request.headers, _user_etag(user)) else None


async def _set_away(state: ServerState, principal: Principal, name: str, body: AwayBody, response: Response) -> Person:
    until = None if body.until is None else parse_time(body.until)
    to = People(frozenset(body.users), frozenset(body.teams)) if body.users or body.teams else None
    return await _refresh_and_show(
        state,
        await traced_accounts(state, principal).set_away(principal.workspace, name, until, to, principal.name),
        principal,
        response,
    )


async def _refresh_and_show(state: ServerState, user: User, principal: Principal, response: Response) -> Person:
    await state.workspaces.refresh(principal.workspace)
    return _show_person(user, principal, response)


def _show_person(user: User, principal: Principal, response: Response) -> Person:
    response.headers["etag"] = _user_etag(user)
    return _person(user, principal)


def _person(user: User, principal: Principal) -> Person:
    known = principal.role == "admin" or principal.name == user.name
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
    """`link` is the part behind `link=` in the address that the channel gave."""

    model_config = example({"link": "the-part-behind-link="})

    link: Annotated[str, Field(max_length=MAX_TOKEN)]


class IdentityInfo(BaseModel):
    """`outside` is the person's id in the channel."""

    id: str
    channel: str
    outside: str
    user: str
    at: str


class IdentityList(BaseModel):
    items: list[IdentityInfo]
    next: str | None = None


class IdentityLinkInfo(BaseModel):
    """The account that a link is about; `user` is the person that it is linked to already, if any."""

    channel: str
    kind: str
    outside: str
    user: str | None
    expires_at: str


@router.get("/api/me/identities", responses=documented_errors(), **require_roles(VIEWERS))
async def list_my_identities(state: StateDep, principal: PrincipalDep) -> IdentityList:
    """Your linked accounts in channels, with which you can answer as yourself."""
    return IdentityList(items=[_info(each) for each in await _mine(state, principal)])


@router.post("/api/me/identities/look", responses=documented_errors(404), **require_roles(VIEWERS))
async def inspect_identity_link(body: IdentityLinkBody, state: StateDep, principal: PrincipalDep) -> IdentityLinkInfo:
    """Show the account that a link is about. Links nothing."""
    identity_link = await state.notifications.for_workspace(principal.workspace).verify_identity_link(body.link)
    known = await state.store.deliveries.find_person(
        principal.workspace, identity_link.channel, identity_link.external_id
    )
    kind = state.settings.for_workspace(principal.workspace).channels[identity_link.channel].kind
    expires_at = rfc3339(identity_link.expires_at)
    return IdentityLinkInfo(
        channel=identity_link.channel,
        kind=kind,
        outside=identity_link.external_id,
        user=known or None,
        expires_at=expires_at,
    )


@router.post(
    "/api/me/identities", responses=documented_errors(404, 409), status_code=201, **require_recent_sign_in(VIEWERS)
)
async def link_my_identity(body: IdentityLinkBody, state: StateDep, principal: PrincipalDep) -> IdentityInfo:
    """Link an account in a channel to yourself: from then on, decisions through that account count as your own."""
    if principal.via != "web":
        raise Forbidden("A key cannot say who you are elsewhere. Sign in and open the link.")
    identity_link = await state.notifications.for_workspace(principal.workspace).verify_identity_link(body.link)
    await state.store.deliveries.bind(
        principal.workspace, identity_link.channel, identity_link.external_id, principal.name, principal.name
    )
    return next(_info(each) for each in await _mine(state, principal) if each[:2] == identity_link[:2])


@router.delete(
    "/api/me/identities/{identity_id}", responses=documented_errors(404), status_code=204, **require_roles(VIEWERS)
)
async def unlink_my_identity(identity_id: str, state: StateDep, principal: PrincipalDep) -> None:
    """Unlink one of your accounts in a channel. A key with fewer rights than its owner cannot."""
    check_full_rights(principal)
    await _unlink(state, principal, identity_id, await _mine(state, principal))


@router.get("/api/identities", responses=documented_errors(), **require_roles(ADMINS))
async def list_identities(state: StateDep, principal: PrincipalDep) -> IdentityList:
    """The linked accounts of all people; at most 10,000."""
    return IdentityList(items=[_info(each) for each in await state.store.deliveries.identities(principal.workspace)])


@router.delete(
    "/api/identities/{identity_id}", responses=documented_errors(404), status_code=204, **require_roles(ADMINS)
)
async def unlink_identity(identity_id: str, state: StateDep, principal: PrincipalDep) -> None:
    """Unlink an account in a channel from its person."""
    await _unlink(state, principal, identity_id, await state.store.deliveries.identities(principal.workspace))


async def _unlink(state: ServerState, principal: Principal, wanted: str, known: Sequence[ChannelIdentity]) -> None:
    found = next((each for each in known if identity_id(each) == wanted), None)
    if found is None:
        raise NotFound("There is no account elsewhere with this id.", identity_id=wanted)
    await state.store.deliveries.unbind(principal.workspace, found.channel, found.external_id, principal.name)


async def _mine(state: ServerState, principal: Principal) -> list[ChannelIdentity]:
    return [
        each for each in await state.store.deliveries.identities(principal.workspace) if each.person == principal.name
    ]


def _info(identity: ChannelIdentity) -> IdentityInfo:
    return IdentityInfo.model_validate(identity_json(identity))
