"""Signing in through an OpenID provider: there and back. The browser carries what was begun in a short-lived cookie."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse

from interlock.config.models import OidcSettings
from interlock.core.canonical import parse_json
from interlock.core.errors import Forbidden, NotFound, Unauthenticated
from interlock.core.identity import Principal, is_name
from interlock.core.ledger.event import SYSTEM_ACTOR
from interlock.server.auth import Auth
from interlock.server.dependencies import AuthDep, RequestDep, StateDep
from interlock.server.http import Header, HttpRequest, encode_json
from interlock.server.oidc_provider import OidcIdentity, OidcProvider, PendingSignIn
from interlock.server.routes.session import local_path, start_session
from interlock.server.state import ServerState

router = APIRouter(include_in_schema=False)

SIGN_IN_TIMEOUT = 600_000  # milliseconds that somebody has to sign in at the provider
MAX_TEAMS = 100
CALLBACK = "/auth/oidc/callback"


async def current_provider(request: Request) -> OidcProvider:
    provider: OidcProvider | None = request.app.state.provider
    if provider is None:
        raise NotFound("Nobody signs in through a provider here. Use /signin, or set server.oidc.")
    return provider


ProviderDep = Annotated[OidcProvider, Depends(current_provider)]
NextPath = Annotated[str, Query(alias="next")]


def make_provider(site: ServerState) -> OidcProvider | None:
    settings = site.settings.server.oidc
    return None if settings is None else OidcProvider(settings, f"{site.public_url}{CALLBACK}", site.clock)


@router.get("/auth/oidc")
async def redirect_to_provider(
    site: StateDep, guard: AuthDep, there: ProviderDep, path: NextPath = ""
) -> RedirectResponse:
    """To the provider."""
    begun = there.begin()
    address = await there.address(begun)
    answer = RedirectResponse(address, 303)
    answer.raw_headers.append(
        _cookie_header(guard, await _seal_cookie(site, begun, local_path(path)), SIGN_IN_TIMEOUT // 1000)
    )
    return answer


@router.get(CALLBACK)
async def handle_callback(site: StateDep, asked: RequestDep, guard: AuthDep, there: ProviderDep) -> RedirectResponse:
    """From the provider; leads on to a path of ours."""
    begun, path = await _open_cookie(site, _read_cookie(guard, asked))
    principal, token = await _sign_in(site, await there.finish(begun, asked.query))
    answer = RedirectResponse(path, 303)
    answer.raw_headers.append(_cookie_header(guard, "", 0))
    await start_session(site, guard, asked, token, answer)
    await site.workspaces.refresh(principal.workspace)
    return answer


async def _sign_in(site: ServerState, vouched: OidcIdentity) -> tuple[Principal, str]:
    """Somebody who is known by the subject, or by a verified address, or who is new where that is allowed."""
    settings = site.settings.server.oidc
    assert settings is not None  # noqa: S101  there is a provider
    _check_domain(settings, vouched.email)
    teams = frozenset(sorted(team for team in vouched.teams if is_name(team))[:MAX_TEAMS])
    role = settings.role if vouched.email else ""  # whoever is new is called by an address that is theirs
    name = vouched.email if is_name(vouched.email) else "anybody"
    principal, token = await site.accounts.with_subject(
        settings.workspace, vouched.subject, vouched.email, name, role, teams
    )
    if settings.teams_claim and principal.teams != teams:
        await site.accounts.change_user(settings.workspace, principal.name, SYSTEM_ACTOR, teams=teams)
    return principal, token


def _check_domain(settings: OidcSettings, email: str) -> None:
    domain = email.rpartition("@")[2].lower()
    if settings.allowed_domains and domain not in settings.allowed_domains:
        raise Forbidden("Only people with a verified e-mail address of this organisation come in. Ask an admin.")


# The cookie


async def _seal_cookie(site: ServerState, begun: PendingSignIn, path: str) -> str:
    """Nobody else can make one, and it ends by itself."""
    body = urlsafe_b64encode(encode_json([*begun, path, site.clock() + SIGN_IN_TIMEOUT])).decode().rstrip("=")
    return f"{body}.{await _cookie_signature(site, body)}"


async def _open_cookie(site: ServerState, value: str) -> tuple[PendingSignIn, str]:
    body, _, seal = value.partition(".")
    if not body or not hmac.compare_digest(seal.encode(), (await _cookie_signature(site, body)).encode()):
        raise Unauthenticated("This browser has begun no sign-in, or took too long. Begin again at /signin.")
    begun: Any = parse_json(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    state, nonce, verifier, path, until = begun
    if site.clock() >= until:
        raise Unauthenticated("The sign-in took too long. Begin again at /signin.")
    return PendingSignIn(state, nonce, verifier), local_path(path)


async def _cookie_signature(site: ServerState, body: str) -> str:
    settings = site.settings.server.oidc
    key = await site.store.secret_key(settings.workspace if settings else "default")
    return hmac.new(key, b"interlock oidc " + body.encode(), sha256).hexdigest()


def _cookie_name(guard: Auth) -> str:
    return f"{guard.cookie}-oidc"


def _read_cookie(guard: Auth, asked: HttpRequest) -> str:
    return guard.cookie_of(asked.headers, _cookie_name(guard))


def _cookie_header(guard: Auth, value: str, seconds: int) -> Header:
    return guard.cookie_header(_cookie_name(guard), value, seconds)
