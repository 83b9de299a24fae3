"""Authentication: a key in a header, or a session cookie with an Origin check against CSRF."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from interlock.accounts.accounts import Accounts
from interlock.core.errors import Error, Forbidden, Unauthenticated
from interlock.core.identity import Principal
from interlock.server.http import Header, HttpRequest

COOKIE_NAME = "interlock"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
AGENT_INBOX_PREFIX = "/agent-inbox/"  # clients of this path send their key in X-API-Key
UNAUTHENTICATED_MESSAGE = (
    "This needs a key (Authorization: Bearer …) or a session. Make a key: interlock keys create --name NAME --role ROLE"
)


class Auth:
    def __init__(self, accounts: Accounts, public_url: str) -> None:
        self._accounts = accounts
        self._origin = _origin(public_url)
        self._secure = public_url.startswith("https://")
        self.cookie_name = f"__Host-{COOKIE_NAME}" if self._secure else COOKIE_NAME

    async def authenticate(self, request: HttpRequest) -> Principal:
        """The authenticated caller; people with the client's address, which the ledger records with their decisions."""
        principal = await self._find_principal(request)
        client = request.scope.get("client")
        return principal if principal.is_agent or not client else replace(principal, address=str(client[0]))

    async def _find_principal(self, request: HttpRequest) -> Principal:
        """Find the caller. An invalid key is an error, even beside a valid cookie."""
        given = request.headers.get(b"authorization")
        if given is not None:
            return await self._accounts.authenticate_key(_bearer_token(given))
        if request.path.startswith(AGENT_INBOX_PREFIX) and b"x-api-key" in request.headers:
            return await self._accounts.authenticate_key(request.headers[b"x-api-key"].decode("latin-1").strip())
        token = self.token(request.headers)
        if not token:
            raise Unauthenticated(UNAUTHENTICATED_MESSAGE)
        if request.method not in SAFE_METHODS:
            self.check_origin(request.headers)
        return await self._accounts.authenticate_session(token)

    async def is_unchanged(self, request: HttpRequest) -> bool:
        """Whether the caller would be authenticated as the same again, who may have lost access during a stream."""
        before = request.current_principal
        try:
            now = await self.authenticate(request)
        except (Unauthenticated, Forbidden):
            return False
        except Error:  # unknown at the moment, and nothing can be read either
            return True
        return (now.workspace, now.name, now.role) == (before.workspace, before.name, before.role)

    def token(self, headers: Mapping[bytes, bytes]) -> str:
        """The session's token, or ""."""
        return self.read_cookie(headers, self.cookie_name)

    def read_cookie(self, headers: Mapping[bytes, bytes], cookie_name: str) -> str:
        """The cookie's value; empty if there are two of this name, which may be an attack."""
        pairs = [each.strip().partition("=") for each in headers.get(b"cookie", b"").decode("latin-1").split(";")]
        found = [value for name, _, value in pairs if name == cookie_name]
        return found[0] if len(found) == 1 else ""

    def check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        """Against CSRF: a page of another site can make a browser send our cookie, but not our origin."""
        origin = headers.get(b"origin", b"").decode("latin-1")
        ours = self._origin or f"http://{headers.get(b'host', b'').decode('latin-1')}"
        if origin != ours:
            raise Forbidden("This request does not come from Interlock's own page. Programs use a key instead.")

    def set_cookie(self, token: str, seconds: int) -> Header:
        return self.cookie_header(self.cookie_name, token, seconds)

    def cookie_header(self, name: str, value: str, seconds: int) -> Header:
        secure = "; Secure" if self._secure else ""
        return b"set-cookie", f"{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}".encode()


def check_allowed(principal: Principal, roles: Collection[str]) -> None:
    if principal.role not in roles:
        raise Forbidden(_refusal(principal, roles))


def _refusal(principal: Principal, roles: Collection[str]) -> str:
    if principal.is_agent:
        return "A key of an agent proposes calls and nothing else. Use a person's key or session."
    if roles == {"agent"}:
        return "This is for agents. Make a key for one: interlock keys create --name NAME --role agent --agent NAME"
    return f"Your role here is {principal.role}; this needs {' or '.join(sorted(roles))}. Ask an admin."


def _bearer_token(given: bytes) -> str:
    scheme, _, secret = given.decode("latin-1").partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated("The Authorization header has to be: Bearer KEY")
    return secret.strip()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if url else ""
