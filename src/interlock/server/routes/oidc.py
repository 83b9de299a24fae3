"""Signing in through an OpenID provider: there and back. The browser carries what was begun in a short-lived cookie."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse

from interlock.config.models import Oidc
from interlock.core.canonical import parse
from interlock.core.errors import Forbidden, NotFound, Unauthenticated
from interlock.core.identity import Principal, is_name
from interlock.core.ledger.event import TIME
from interlock.server.auth import Auth
from interlock.server.dependencies import Given, Guard, Here
from interlock.server.http import Asked, Header, encoded
from interlock.server.oidc_provider import Begun, Provider, Vouched
from interlock.server.routes.session import enter, local_path
from interlock.server.state import Site

router = APIRouter(include_in_schema=False)

LASTS = 600_000  # milliseconds that somebody has to sign in at the provider
MOST_TEAMS = 100
CALLBACK = "/auth/oidc/callback"


async def provider_of(request: Request) -> Provider:
    provider: Provider | None = request.app.state.provider
    if provider is None:
        raise NotFound("Nobody signs in through a provider here. Use /signin, or set server.oidc.")
    return provider


Through = Annotated[Provider, Depends(provider_of)]
Next = Annotated[str, Query(alias="next")]


def provider(site: Site) -> Provider | None:
    settings = site.settings.server.oidc
    return None if settings is None else Provider(settings, f"{site.public_url}{CALLBACK}", site.clock)


@router.get("/auth/oidc")
async def leave(site: Here, guard: Guard, there: Through, path: Next = "") -> RedirectResponse:
    """To the provider."""
    begun = there.begin()
    address = await there.address(begun)
    answer = RedirectResponse(address, 303)
    answer.raw_headers.append(_cookie(guard, await _sealed(site, begun, local_path(path)), LASTS // 1000))
    return answer


@router.get(CALLBACK)
async def come_back(site: Here, asked: Given, guard: Guard, there: Through) -> RedirectResponse:
    """From the provider; leads on to a path of ours."""
    begun, path = await _opened(site, _given(guard, asked))
    principal, token = await _admitted(site, await there.finish(begun, asked.query))
    answer = RedirectResponse(path, 303)
    answer.raw_headers.append(_cookie(guard, "", 0))
    await enter(site, guard, asked, token, answer)
    await site.workspaces.refresh(principal.workspace)
    return answer


async def _admitted(site: Site, vouched: Vouched) -> tuple[Principal, str]:
    """Somebody who is known by the subject, or by a verified address, or who is new where that is allowed."""
    settings = site.settings.server.oidc
    assert settings is not None  # noqa: S101  there is a provider
    _check_domain(settings, vouched.email)
    teams = frozenset(sorted(team for team in vouched.teams if is_name(team))[:MOST_TEAMS])
    role = settings.role if vouched.email else ""  # whoever is new is called by an address that is theirs
    name = vouched.email if is_name(vouched.email) else "anybody"
    principal, token = await site.accounts.with_subject(
        settings.workspace, vouched.subject, vouched.email, name, role, teams
    )
    if settings.teams_claim and principal.teams != teams:
        await site.accounts.change_user(settings.workspace, principal.name, TIME, teams=teams)
    return principal, token


def _check_domain(settings: Oidc, email: str) -> None:
    domain = email.rpartition("@")[2].lower()
    if settings.allowed_domains and domain not in settings.allowed_domains:
        raise Forbidden("Only people with a verified e-mail address of this organisation come in. Ask an admin.")


# The cookie


async def _sealed(site: Site, begun: Begun, path: str) -> str:
    """Nobody else can make one, and it ends by itself."""
    body = urlsafe_b64encode(encoded([*begun, path, site.clock() + LASTS])).decode().rstrip("=")
    return f"{body}.{await _seal(site, body)}"


async def _opened(site: Site, value: str) -> tuple[Begun, str]:
    body, _, seal = value.partition(".")
    if not body or not hmac.compare_digest(seal.encode(), (await _seal(site, body)).encode()):
        raise Unauthenticated("This browser has begun no sign-in, or took too long. Begin again at /signin.")
    begun: Any = parse(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    state, nonce, verifier, path, until = begun
    if site.clock() >= until:
        raise Unauthenticated("The sign-in took too long. Begin again at /signin.")
    return Begun(state, nonce, verifier), local_path(path)


async def _seal(site: Site, body: str) -> str:
    settings = site.settings.server.oidc
    key = await site.store.secret_key(settings.workspace if settings else "default")
    return hmac.new(key, b"interlock oidc " + body.encode(), sha256).hexdigest()


def _name(guard: Auth) -> str:
    return f"{guard.cookie}-oidc"


def _given(guard: Auth, asked: Asked) -> str:
    return guard.cookie_of(asked.headers, _name(guard))


def _cookie(guard: Auth, value: str, seconds: int) -> Header:
    return guard.cookie_header(_name(guard), value, seconds)
