"""Sign-in through an OpenID Connect provider; the pending sign-in is in a short-lived cookie of the browser."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import ssl
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Annotated, Any, NamedTuple, cast
from urllib.parse import urlencode

import httpx2
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from interlock.config.models import OidcSettings, is_secure_url
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.canonical import parse_json
from interlock.core.errors import Error, Forbidden, InvalidRequest, NotFound, Unauthenticated
from interlock.core.identity import Principal, is_name
from interlock.core.ledger.event import SYSTEM_ACTOR
from interlock.core.ports import Clock
from interlock.server.auth import Auth
from interlock.server.dependencies import AuthDep, RequestDep, StateDep
from interlock.server.http import Header, HttpRequest, encode_json
from interlock.server.routes.people import MAX_TEAMS
from interlock.server.routes.session import local_path, start_session
from interlock.server.state import ServerState

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
METADATA_MAX_AGE = 3_600_000  # milliseconds for which the provider's metadata is cached
KEY_REFRESH_INTERVAL = 60_000  # milliseconds until its keys may be fetched again
LEEWAY = 60  # seconds by which its clock may differ
HTTP_TIMEOUT = 10.0
MAX_RESPONSE_BYTES = 1 << 20


class ProviderUnavailable(Error):
    code, status = "provider_unavailable", 503


class PendingSignIn(NamedTuple):
    """The state of a sign-in that was begun; the browser keeps and returns it."""

    state: str
    nonce: str
    verifier: str


class OidcTokens(NamedTuple):
    id: str
    access: str


@dataclass(frozen=True, slots=True)
class OidcIdentity:
    """The person that the provider vouches for. `email` is empty unless it has verified it."""

    subject: str
    email: str
    teams: frozenset[str]


class OidcProvider:
    def __init__(self, settings: OidcSettings, redirect_uri: str, clock: Clock) -> None:
        self._settings = settings
        self._redirect_uri = redirect_uri
        self._clock = clock
        self._document: Mapping[str, Any] = {}
        self._document_at = 0
        self._keys: KeySet | None = None
        self._keys_at = 0
        self._lock = asyncio.Lock()

    def begin(self) -> PendingSignIn:
        return PendingSignIn(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(48))

    async def authorization_url(self, pending_sign_in: PendingSignIn) -> str:
        """The URL that the browser goes to for signing in."""
        document = await self._get_metadata()
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": " ".join(self._settings.scopes),
            "state": pending_sign_in.state,
            "nonce": pending_sign_in.nonce,
            "code_challenge": create_s256_code_challenge(pending_sign_in.verifier),
            "code_challenge_method": "S256",
        }
        endpoint = _endpoint(document, "authorization_endpoint")
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def complete_sign_in(self, pending_sign_in: PendingSignIn, query: Mapping[str, str]) -> OidcIdentity:
        """Verify the callback. Raises Unauthenticated, with the reason, unless all of it matches."""
        if not hmac.compare_digest(query.get("state", "").encode(), pending_sign_in.state.encode()):
            raise _sign_in_failed("the answer does not belong to a sign-in that was begun here")
        if query.get("iss", self._settings.issuer).rstrip("/") != self._settings.issuer:
            raise _sign_in_failed("the answer is another provider's")
        if "error" in query or not query.get("code"):
            raise _sign_in_failed("the provider did not let you in")
        tokens = await self._redeem_code(query["code"], pending_sign_in.verifier)
        claims = await self._claims(tokens, pending_sign_in.nonce)
        return self._identity({**await self._fetch_userinfo(claims, tokens.access), **claims})

    async def _redeem_code(self, code: str, verifier: str) -> OidcTokens:
        document, settings = await self._get_metadata(), self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        basic = bool(settings.client_secret) and "client_secret_basic" in methods
        if not basic:
            form["client_id"] = settings.client_id
            form |= {"client_secret": settings.client_secret} if settings.client_secret else {}
        auth = httpx2.BasicAuth(settings.client_id, settings.client_secret) if basic else None
        status, answer = await _fetch_json("POST", _endpoint(document, "token_endpoint"), auth, form)
        token, access = answer.get("id_token"), answer.get("access_token")
        if status != 200 or not isinstance(token, str) or not isinstance(access, str):
            raise _sign_in_failed("the provider does not know this sign-in, or it was used before")
        return OidcTokens(token, access)

    async def _claims(self, tokens: OidcTokens, nonce: str) -> Mapping[str, Any]:
        try:
            decoded = jwt.decode(tokens.id, await self._keys_for(tokens.id), algorithms=ALGORITHMS)
            known = {"iss": {"essential": True, "value": self._issuer_said()}}
            audience = {"aud": {"essential": True, "value": self._settings.client_id}}
            params = {"nonce": nonce, "client_id": self._settings.client_id, "access_token": tokens.access}
            claims = CodeIDToken(decoded.claims, decoded.header, {**known, **audience}, params)
            claims.validate(self._clock() // 1000, LEEWAY)
        except (JoseError, ValueError, TypeError, KeyError):
            raise _sign_in_failed(
                "what the provider says about you is not signed by it, not for us, or not fresh"
            ) from None
        return cast(Mapping[str, Any], claims)

    async def _fetch_userinfo(self, claims: Mapping[str, Any], access: str) -> Mapping[str, Any]:
        """Claims that some providers give only at the userinfo endpoint; they count if the subject is the same."""
        wanted = {"email", *([self._settings.teams_claim] if self._settings.teams_claim else [])}
        document = await self._get_metadata()
        if wanted <= claims.keys() or "userinfo_endpoint" not in document:
            return {}
        bearer = {"authorization": f"Bearer {access}"}
        status, userinfo = await _fetch_json("GET", _endpoint(document, "userinfo_endpoint"), headers=bearer)
        if status != 200 or userinfo.get("sub") != claims.get("sub"):
            return {}
        paired = {"email", "email_verified"} if "email" in claims else set()  # both have to come from one source
        return {key: value for key, value in userinfo.items() if key not in paired}

    async def _keys_for(self, token: str) -> KeySet:
        """The provider's keys, fetched again if the token names an unknown one: providers rotate them."""
        return await self._key_set(KEY_REFRESH_INTERVAL if self._has_unknown_key(token) else METADATA_MAX_AGE)

    def _has_unknown_key(self, token: str) -> bool:
        named = jwt_key_id(token)
        return self._keys is None or all(key.kid != named for key in self._keys.keys)

    async def _key_set(self, fresh: int) -> KeySet:
        async with self._lock:
            if self._keys is None or self._clock() - self._keys_at >= fresh:
                document = await self._load_metadata()
                _, answer = await _fetch_json("GET", _endpoint(document, "jwks_uri"))
                try:
                    self._keys = KeySet.import_key_set(cast(Any, answer))
                except (JoseError, ValueError, TypeError, KeyError):
                    raise ProviderUnavailable(
                        "The keys of the OpenID provider cannot be read. Tell an admin."
                    ) from None
                self._keys_at = self._clock()
            return self._keys

    async def _get_metadata(self) -> Mapping[str, Any]:
        async with self._lock:
            return await self._load_metadata()

    async def _load_metadata(self) -> Mapping[str, Any]:
        if not self._document or self._clock() - self._document_at >= METADATA_MAX_AGE:
            address = f"{self._settings.issuer}/.well-known/openid-configuration"
            status, document = await _fetch_json("GET", address)
            if status != 200 or str(document.get("issuer", "")).rstrip("/") != self._settings.issuer:
                raise ProviderUnavailable(
                    "The OpenID provider does not go by the issuer of server.oidc. Tell an admin."
                )
            self._document, self._document_at = document, self._clock()
        return self._document

    def _issuer_said(self) -> str:
        """The issuer as the provider spells it, with or without a slash at the end."""
        return str(self._document.get("issuer", self._settings.issuer))

    def _identity(self, claims: Mapping[str, Any]) -> OidcIdentity:
        subject, email = claims.get("sub"), claims.get("email")
        if not isinstance(subject, str) or not subject:
            raise _sign_in_failed("the provider does not say who you are")
        verified = isinstance(email, str) and claims.get("email_verified") is True
        teams = claims.get(self._settings.teams_claim) if self._settings.teams_claim else None
        named = frozenset(team for team in teams if isinstance(team, str)) if isinstance(teams, list) else frozenset()
        return OidcIdentity(f"{self._settings.issuer} {subject}", str(email) if verified else "", named)


def jwt_key_id(token: str) -> str | None:
    """The key id that the token names; trusted only to choose among the provider's keys."""
    try:
        header = parse_json(_base64url_decode(token.partition(".")[0]))
    except (InvalidRequest, ValueError):
        return None
    kid = header.get("kid") if isinstance(header, dict) else None
    return kid if isinstance(kid, str) else None


def _base64url_decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _endpoint(document: Mapping[str, Any], name: str) -> str:
    address = document.get(name)
    if not isinstance(address, str) or not is_secure_url(address):
        raise ProviderUnavailable(f"The OpenID provider names no usable {name}. Tell an admin.")
    return address


async def _fetch_json(
    method: str,
    address: str,
    auth: httpx2.BasicAuth | None = None,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Mapping[str, Any]]:
    """Request exactly this address: no redirects, no proxies of the environment, no endless responses."""
    sent = {"accept": "application/json", **(headers or {})}
    try:
        async with (
            asyncio.timeout(HTTP_TIMEOUT),
            httpx2.AsyncClient(
                verify=_ssl_context(), follow_redirects=False, trust_env=False, timeout=HTTP_TIMEOUT
            ) as client,
            client.stream(method, address, data=form, auth=auth, headers=sent) as answer,
        ):
            body = b""
            async for block in answer.aiter_bytes():
                body += block
                if len(body) > MAX_RESPONSE_BYTES:
                    raise ProviderUnavailable("The OpenID provider answers without an end. Tell an admin.")
        value = parse_json(body)
    except (httpx2.HTTPError, TimeoutError, InvalidRequest, ValueError):
        raise ProviderUnavailable("The OpenID provider does not answer as it should. Try again in a minute.") from None
    return answer.status_code, cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


@cache
def _ssl_context() -> ssl.SSLContext:
    """Cached: loading the trusted certificates blocks the event loop for 20 ms, and a sign-in has three requests."""
    return httpx2.create_ssl_context(trust_env=False)


def _sign_in_failed(why: str) -> Unauthenticated:
    return Unauthenticated(f"You are not signed in: {why}. Begin again at /signin.")


router = APIRouter(include_in_schema=False)

SIGN_IN_TIMEOUT = 600_000  # milliseconds that somebody has to sign in at the provider
CALLBACK = "/auth/oidc/callback"


async def current_provider(request: Request) -> OidcProvider:
    provider: OidcProvider | None = request.app.state.provider
    if provider is None:
        raise NotFound("Nobody signs in through a provider here. Use /signin, or set server.oidc.")
    return provider


ProviderDep = Annotated[OidcProvider, Depends(current_provider)]
NextPath = Annotated[str, Query(alias="next")]


def make_provider(state: ServerState) -> OidcProvider | None:
    settings = state.settings.server.oidc
    return None if settings is None else OidcProvider(settings, f"{state.public_url}{CALLBACK}", state.clock)


@router.get("/auth/oidc")
async def redirect_to_provider(
    state: StateDep, auth: AuthDep, provider: ProviderDep, path: NextPath = ""
) -> RedirectResponse:
    """Redirect to the provider."""
    pending_sign_in = provider.begin()
    address = await provider.authorization_url(pending_sign_in)
    response = RedirectResponse(address, 303)
    response.raw_headers.append(
        _cookie_header(auth, await _seal_cookie(state, pending_sign_in, local_path(path)), SIGN_IN_TIMEOUT // 1000)
    )
    return response


@router.get(CALLBACK)
async def handle_callback(
    state: StateDep, request: RequestDep, auth: AuthDep, provider: ProviderDep
) -> RedirectResponse:
    """Handle the redirect from the provider, and go on to a path of ours."""
    pending_sign_in, path = await _open_cookie(state, _read_cookie(auth, request))
    principal, token = await _sign_in(state, await provider.complete_sign_in(pending_sign_in, request.query))
    response = RedirectResponse(path, 303)
    response.raw_headers.append(_cookie_header(auth, "", 0))
    await start_session(state, auth, request, token, response)
    await state.workspaces.refresh(principal.workspace)
    return response


async def _sign_in(state: ServerState, identity: OidcIdentity) -> tuple[Principal, str]:
    """Sign in a person who is known by the subject or by a verified address, or who is new if that is allowed."""
    settings = state.settings.server.oidc
    assert settings is not None  # noqa: S101  there is a provider
    _check_domain(settings, identity.email)
    teams = frozenset(sorted(team for team in identity.teams if is_name(team))[:MAX_TEAMS])
    role = settings.role if identity.email else ""  # a new account is named by its verified address
    name = identity.email if is_name(identity.email) else "anybody"
    principal, token = await state.accounts.sign_in_by_subject(
        settings.workspace, identity.subject, identity.email, name, role, teams
    )
    if settings.teams_claim and principal.teams != teams:
        await state.accounts.change_user(settings.workspace, principal.name, SYSTEM_ACTOR, teams=teams)
    return principal, token


def _check_domain(settings: OidcSettings, email: str) -> None:
    domain = email.rpartition("@")[2].lower()
    if settings.allowed_domains and domain not in settings.allowed_domains:
        raise Forbidden("Only people with a verified e-mail address of this organisation come in. Ask an admin.")


# The cookie


async def _seal_cookie(state: ServerState, pending_sign_in: PendingSignIn, path: str) -> str:
    """Sign the cookie: nobody else can make one, and it expires by itself."""
    body = (
        urlsafe_b64encode(encode_json([*pending_sign_in, path, state.clock() + SIGN_IN_TIMEOUT])).decode().rstrip("=")
    )
    return f"{body}.{await _cookie_signature(state, body)}"


async def _open_cookie(server_state: ServerState, value: str) -> tuple[PendingSignIn, str]:
    body, _, seal = value.partition(".")
    if not body or not hmac.compare_digest(seal.encode(), (await _cookie_signature(server_state, body)).encode()):
        raise Unauthenticated("This browser has begun no sign-in, or took too long. Begin again at /signin.")
    fields: Any = parse_json(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    state, nonce, verifier, path, until = fields
    if server_state.clock() >= until:
        raise Unauthenticated("The sign-in took too long. Begin again at /signin.")
    return PendingSignIn(state, nonce, verifier), local_path(path)


async def _cookie_signature(state: ServerState, body: str) -> str:
    settings = state.settings.server.oidc
    key = await state.store.secret_key(settings.workspace if settings else DEFAULT_WORKSPACE)
    return hmac.new(key, b"interlock oidc " + body.encode(), sha256).hexdigest()


def _cookie_name(auth: Auth) -> str:
    return f"{auth.cookie_name}-oidc"


def _read_cookie(auth: Auth, request: HttpRequest) -> str:
    return auth.read_cookie(request.headers, _cookie_name(auth))


def _cookie_header(auth: Auth, value: str, seconds: int) -> Header:
    return auth.cookie_header(_cookie_name(auth), value, seconds)
