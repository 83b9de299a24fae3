"""`interlock login` and `interlock logout`: a personal key for a server, in a file of the user's own."""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass
from typing import Literal

import typer

from interlock.app.bootstrap import os_user
from interlock.cli.context import ServerOptions, is_interactive
from interlock.cli.login_file import Login, Logins, login_path, read_logins, write_logins
from interlock.cli.output import local_time, print_json, printable, say
from interlock.cli.sign_in import (
    KeyProof,
    LinkProof,
    LoginRequest,
    PasswordProof,
    SignInProof,
    check_address,
    log_in,
    revoke_key,
)
from interlock.core.card import escape_invisible
from interlock.core.errors import Error, InvalidRequest, NotFound, Unauthenticated
from interlock.runtime.durations import rfc3339

MAX_SECRET = 1_000  # characters
MAX_KEY_NAME = 100  # characters
ProofKind = Literal["password", "link", "key"]


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
    address, logins = check_address(url, insecure=given.insecure), read_logins()
    if given.expires == "never":
        raise InvalidRequest("A login expires: give a duration such as --expires 30d.")
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
    say(f"interlock approvals works on this server now. Its key {key_id} is in {path}; it is listed in Settings.")
    say(f"To end it: interlock logout {made.url}", style="dim")


async def logout(options: ServerOptions, url: str) -> None:
    """Forget the key, and revoke it on the server, which may be unavailable."""
    logins = read_logins()
    found = logins.find(url)
    if found is None:
        raise NotFound(_not_logged_in(logins, url))
    write_logins(logins.without(found.url))
    left = await _revoke(found)
    if options.json:
        print_json({"url": found.url, "key_id": found.key_id, "revoked": not left})
        return
    say(f"Logged out of {found.url}. {left or f'The key {found.key_id} was revoked.'}")


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
