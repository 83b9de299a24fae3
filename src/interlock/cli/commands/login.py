"""`interlock login` and `interlock logout`: a personal key for a server, in a file of the user's own.

Signing in takes a password, a one-time link or a key, and makes a personal key that expires. The session lasts only
until that key is made; the password and the link are kept nowhere.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import typer

from interlock.app.bootstrap import os_user
from interlock.cli.context import ServerOptions, is_interactive
from interlock.cli.output import local_time, print_json, printable, say
from interlock.cli.user_folder import (
    Login,
    Logins,
    check_login,
    login_path,
    read_logins,
    without_page,
    write_logins,
)
from interlock.config.load import names_storage
from interlock.core.card import escape_invisible
from interlock.core.errors import (
    Error,
    Forbidden,
    InvalidRequest,
    Misconfigured,
    NotFound,
    StoreUnavailable,
    Unauthenticated,
)
from interlock.core.identity import AGENT, ROLES, lesser_role
from interlock.runtime.durations import parse_rfc3339, rfc3339
from interlock.sdk.codec import ResponseBody, not_understood_error, parse_answer, parse_error
from interlock.sdk.transport import ServerAddress, import_httpx, parse_server_address, spell_address

if TYPE_CHECKING:
    import httpx2

MAX_SECRET = 1_000  # characters
MAX_KEY_NAME = 100  # characters
ProofKind = Literal["password", "link", "key"]
TIMEOUT = 30.0  # seconds; a password is slow to check on purpose
DEFAULT_ROLE = "reviewer"  # the most that approvals need, on a disk that may be lost
MAX_ANSWER = 1_000_000  # bytes
KEY_WAS_MADE = "It may have made a key for you: look for it there in Settings, and revoke it."
HOW_TO_GET_OWN_KEY = "Create one of your own there in Settings."
NO_KEY = "none"  # in place of a key while there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginOptions:
    """Options of the command; `proof` says what the person gives to prove who they are."""

    name: str
    proof: ProofKind
    role: str
    expires: str
    insecure: bool


async def login(options: ServerOptions, url: str, given: LoginOptions) -> None:
    """Ask for the proof only after the address and the file were checked."""
    url = without_page(url) if "?" in url else url  # no server's address has a query
    check_address(url, insecure=given.insecure)
    logins = read_logins()
    if given.expires == "never":
        raise InvalidRequest("A login expires: give a duration such as --expires 30d.")
    address = await _find_server(url, insecure=given.insecure)
    request = LoginRequest(
        url=address.url,
        workspace=options.workspace,
        key_name=f"interlock login on {socket.gethostname()}"[:MAX_KEY_NAME],
        role=given.role,
        expires=given.expires,
        insecure=given.insecure,
    )
    write_logins(logins)  # before a key is made that could not be stored
    made = await log_in(request, _ask_for_proof(given))
    logins = read_logins()  # another login may have been added while the person typed
    path = write_logins(logins.add(made))
    await _revoke_replaced(made, logins.find(made.url))
    if options.json:
        print_json(_login_json(made))
        return
    name, role, key_id = map(escape_invisible, (made.user, made.role, made.key_id))
    say(f"Logged in to {made.url} as {name} ({role}), until {local_time(made.expires_at)}.")
    say(f"{_what_is_used_now()} Its key {key_id} is in {path}; it is listed in Settings.")
    say(f"To end it: interlock logout {made.url}", style="dim")


async def logout(options: ServerOptions, url: str) -> None:
    """Forget the key, and revoke it on the server, which may be unavailable."""
    logins = read_logins()
    found = logins.find(url)
    if found is None:
        raise NotFound(_not_logged_in(logins, url))
    remaining = logins.without(found.url)
    write_logins(remaining)
    left = await _revoke(found)
    if options.json:
        print_json({"url": found.url, "key_id": found.key_id, "revoked": not left})
        return
    say(f"Logged out of {found.url}. {left or f'The key {found.key_id} was revoked.'}")
    if remaining.current and remaining.current != logins.current:
        say(f"interlock approvals works on {remaining.current} now: the newest login that is left.")


def _what_is_used_now() -> str:
    if names_storage():
        return (
            "interlock approvals works on the database that INTERLOCK_DATABASE_URL or INTERLOCK_CONFIG names; on this "
            "server with --url, or in a shell without these."
        )
    return "interlock approvals works on this server now."


async def _revoke(found: Login) -> str:
    """Revoke the key; returns what is left to do, if it could not be."""
    try:
        await revoke_key(found, found.key_id)
    except (Unauthenticated, NotFound):
        return ""  # it was revoked or has expired
    except Error as error:
        return (
            f"Its key {found.key_id} could not be revoked ({error.message}) and is valid until "
            f"{local_time(found.expires_at)}: revoke it in Settings, or: interlock keys revoke {found.key_id}"
        )
    return ""


async def _revoke_replaced(made: Login, before: Login | None) -> None:
    """A login replaces the one before: its key must not stay valid unseen."""
    if before is None or before.key_id == made.key_id:
        return
    left = await _revoke(before)
    if left:
        typer.echo(printable(f"The login before this one was replaced. {left}"), err=True)


def _ask_for_proof(given: LoginOptions) -> SignInProof:
    match given.proof:
        case "password":
            name = given.name or _ask_for_name()
            return PasswordProof(name, _read_secret(f"Password of {escape_invisible(name)}"))
        case "link":
            return LinkProof(_read_secret("One-time sign-in link"))
        case "key":
            return KeyProof(_read_secret("Key"))


def _ask_for_name() -> str:
    if not is_interactive():
        return os_user()
    return str(typer.prompt("Name", default=os_user(), err=True))


def _read_secret(what: str) -> str:
    """Read a secret, never from an argument: other users could see it, and the shell keeps it in its history."""
    text = str(typer.prompt(what, hide_input=True, err=True)) if is_interactive() else _read_line(what)
    text = text.strip("\r\n")
    if not text or len(text) > MAX_SECRET:
        raise InvalidRequest(f"There is no {what.lower()} on standard input. Pass it as one line.")
    return text


def _read_line(what: str) -> str:
    try:
        return sys.stdin.buffer.readline(4 * MAX_SECRET + 2).decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"The {what.lower()} on standard input is not UTF-8.") from None


def _not_logged_in(logins: Logins, url: str) -> str:
    if not logins.servers:
        return f"You are not logged in: there is nothing in {login_path()}."
    known = ", ".join(logins.servers)
    asked = f" to {escape_invisible(url)}" if url else ""
    return f"You are not logged in{asked}. You are logged in to: {known}. See: interlock logout --help"


def _login_json(made: Login) -> dict[str, object]:
    return {
        "url": made.url,
        "user": made.user,
        "role": made.role,
        "workspace": made.workspace,
        "key_id": made.key_id,
        "expires_at": rfc3339(made.expires_at),
        "file": str(login_path()),
    }


# Signing in


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRequest:
    """The key to make. An empty `role` is the person's own, but at most a reviewer's."""

    url: str
    workspace: str
    key_name: str
    role: str
    expires: str
    insecure: bool


@dataclass(frozen=True, slots=True)
class PasswordProof:
    name: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LinkProof:
    """A one-time sign-in link, or the part behind its #."""

    link: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyProof:
    """Another key of the person, for those who sign in with an OpenID provider."""

    key: str = field(repr=False)


SignInProof = PasswordProof | LinkProof | KeyProof


def check_address(url: str, *, insecure: bool) -> ServerAddress:
    """Check the address before anything secret is asked for, and spell it as browsers spell an origin."""
    address = parse_server_address(url, NO_KEY, insecure=insecure, to_allow_http="give --insecure")
    return ServerAddress(spell_address(address.url), NO_KEY, address.is_local)


async def _find_server(url: str, *, insecure: bool) -> ServerAddress:
    """Before anything secret is asked for, check that a server is where a path leads; a page may be named instead."""
    address = check_address(url, insecure=insecure)
    if not urlsplit(address.url).path or await _is_server(address):
        return address
    server = check_address(without_page(url), insecure=insecure)
    if server.url != address.url and await _is_server(server):
        return server
    parts = urlsplit(address.url)
    top = f"{parts.scheme}://{parts.netloc}"
    raise Misconfigured(f"There is no Interlock server at {address.url}. If it is at {top}: interlock login {top}")


async def _is_server(address: ServerAddress) -> bool:
    """Whether something there answers as Interlock does; its refusals are raised, since they say what to do."""
    try:
        async with _connection(address) as http:
            await _send(http, "GET", "/api/me")
    except Unauthenticated:
        return True  # it asks for a key
    except (NotFound, NoServer):
        return False
    return True


class NoServer(Misconfigured):
    """What answered is not Interlock."""


async def log_in(request: LoginRequest, proof: SignInProof) -> Login:
    """Sign in, make the key, and sign out again."""
    address = check_address(request.url, insecure=request.insecure)
    async with _connection(address) as http:
        me = parse_answer(_parse_person, await _prove(http, address, request, proof), address.url)
        try:
            if me["role"] == AGENT:
                raise Forbidden("This is the key of an agent, which decides nothing. Use a person's.")
            role = request.role or lesser_role(me["role"], DEFAULT_ROLE)
            body = {"name": request.key_name, "role": role, "expires_in": request.expires}
            answer = await _send(http, "POST", "/api/me/keys", body)
        finally:
            if not isinstance(proof, KeyProof):
                with suppress(Error):
                    await _send(http, "DELETE", "/api/session")
    return parse_answer(partial(_parse_made_key, request, address, me), answer, address.url, KEY_WAS_MADE)


def _parse_made_key(request: LoginRequest, address: ServerAddress, me: Mapping[str, str], made: ResponseBody) -> Login:
    if made["expires_at"] is None:
        raise Misconfigured(f"The server made the key {made['id']} without an expiry. Revoke it there in Settings.")
    return check_login(
        Login(
            url=address.url,
            key=made["key"],
            key_id=made["id"],
            user=me["name"],
            role=made["role"],
            workspace=me["workspace"],
            expires_at=parse_rfc3339(made["expires_at"]),
            insecure=request.insecure,
        )
    )


def _parse_person(body: ResponseBody) -> Mapping[str, str]:
    found = {name: body[name] for name in ("name", "role", "workspace")}
    if not all(isinstance(value, str) for value in found.values()) or found["role"] not in ROLES:
        raise ValueError("who signed in")
    return found


async def revoke_key(login: Login, key_id: str) -> None:
    """Revoke a key of the person with the key of this login; it may be the same one."""
    address = parse_server_address(login.url, login.key, insecure=login.insecure)
    async with _connection(address) as http:
        http.headers["authorization"] = f"Bearer {login.key}"
        await _send(http, "DELETE", f"/api/me/keys/{key_id}")


async def _prove(
    http: httpx2.AsyncClient, address: ServerAddress, request: LoginRequest, proof: SignInProof
) -> ResponseBody:
    """Sign in; returns the person. A session travels in a cookie, a key in its header."""
    match proof:
        case PasswordProof(name, password):
            body = {"workspace": request.workspace, "name": name, "password": password}
            return await _send(http, "POST", "/api/session", body)
        case LinkProof(link):
            token = _link_token(link, address)
            who = await _send(http, "POST", "/api/session/link/inspect", {"token": token})
            if parse_answer(lambda answer: bool(answer["new"]), who, address.url):
                raise InvalidRequest("This link is for a new person: open it in a browser, and choose a password.")
            return await _send(http, "POST", "/api/session/link", {"token": token})
        case KeyProof(key):
            checked = parse_server_address(address.url, key, insecure=request.insecure, to_get_key=HOW_TO_GET_OWN_KEY)
            http.headers["authorization"] = f"Bearer {checked.key}"
            return await _send(http, "GET", "/api/me")


def _link_token(link: str, address: ServerAddress) -> str:
    """The token of a link to this server: that of another server must not be sent here."""
    place, _, token = link.rpartition("#")
    if place and not place.startswith(f"{address.url}/"):
        raise InvalidRequest(f"This link is not of {address.url}. Log in to the server that it names.")
    return token


@asynccontextmanager
async def _connection(address: ServerAddress) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that follows no redirect: a password is for this address only."""
    library = import_httpx()
    parts = urlsplit(address.url)
    headers = {"origin": f"{parts.scheme}://{parts.netloc}", "accept": "application/json"}
    async with library.AsyncClient(
        base_url=address.url, headers=headers, timeout=TIMEOUT, trust_env=not address.is_local
    ) as http:
        yield http


async def _send(
    http: httpx2.AsyncClient, method: str, path: str, body: Mapping[str, object] | None = None
) -> dict[str, Any]:
    errors = import_httpx()
    try:
        async with http.stream(method, path, json=body) as response:
            content = await _read_answer(response)
    except (errors.TransportError, errors.DecodingError) as error:
        raise StoreUnavailable(
            f"{http.base_url} cannot be reached ({type(error).__name__}: {error}). Check the address, and that the "
            "server runs (interlock serve)."
        ) from error
    if response.status_code == 204:
        return {}
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and response.status_code in (200, 201):
        return found
    if not (isinstance(found, dict) and all(isinstance(found.get(name), str) for name in ("error", "message"))):
        raise NoServer(
            f"{http.base_url} is not an Interlock server (HTTP {response.status_code}). Check the address and the port."
        )
    raise _with_advice(parse_answer(partial(parse_error, response.status_code), found, str(http.base_url)), path)


async def _read_answer(response: httpx2.Response) -> bytes:
    content = b""
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > MAX_ANSWER:
            raise not_understood_error(str(response.url), f"it has more than {MAX_ANSWER} bytes")
    return content


def _with_advice(error: Error, path: str) -> Error:
    if isinstance(error, Forbidden) and path.startswith("/api/session"):
        return Forbidden(
            f"{error.message} Log in to the address that people open in the browser: server.public_url of its "
            "configuration."
        )
    return error
