"""`interlock users`: the people of a workspace."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from interlock.accounts.passwords import LONGEST, check_password
from interlock.cli import asking
from interlock.cli.output import print_json, say, show, table
from interlock.cli.shared import Desk, at_terminal, command, kept, made
from interlock.core.card import visible
from interlock.core.errors import InvalidRequest
from interlock.core.identity import check_email, check_name
from interlock.core.ports import User
from interlock.durations import parse_duration, rfc3339
from interlock.words import counted, listed

app = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="As the policy names them.")]
Team = Annotated[list[str] | None, typer.Option(metavar="TEAM", help="May be given several times.")]


class Role(StrEnum):
    REVIEWER = "reviewer"
    ADMIN = "admin"
    VIEWER = "viewer"


@command(app, made)
async def add(
    desk: Desk,
    name: Name,
    role: Annotated[Role, typer.Option(help="Viewers look, reviewers decide, admins do everything.")] = Role.REVIEWER,
    team: Team = None,
    email: Annotated[str, typer.Option(metavar="ADDRESS", help="Where they are reached.")] = "",
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a password; off a terminal it is a line of standard input.")
    ] = False,
) -> None:
    """Add a person, or change the role and the teams of one who is there."""
    for text in (name, *(team or ())):
        check_name(text)
    check_email(email)
    secret = _password() if password else ""
    known = {user.name: user for user in await desk.parts.store.users(desk.workspace) if user.removed_at is None}
    author, teams = (await desk.person("")).name, frozenset(team or ())
    if name in known:
        wanted = replace(known[name], role=role.value, teams=teams, email=email or known[name].email)
        user = await desk.parts.store.put_user(desk.workspace, wanted, author)
    else:
        user = await desk.parts.accounts.add_user(desk.workspace, name, role.value, author, teams, email)
    if secret:
        await desk.parts.accounts.set_password(desk.workspace, name, secret, author)
    if desk.json:
        print_json(_user_json(user))
    else:
        say(f"{'Changed' if name in known else 'Added'} {name}: {user.role}, teams: {listed(sorted(user.teams))}.")


@command(app, kept, "list")
async def list_users(desk: Desk) -> None:
    """Who is there, with role and teams."""
    users = [user for user in await desk.parts.store.users(desk.workspace) if user.removed_at is None]
    if desk.json:
        print_json({"items": [_user_json(user) for user in users], "next": None})
    elif users:
        heads = ("NAME", "ROLE", "TEAMS", *(("E-MAIL",) if any(user.email for user in users) else ()))
        rows = [(visible(u.name), u.role, visible(listed(sorted(u.teams))), visible(u.email)) for u in users]
        show(table(heads, [row[: len(heads)] for row in rows], spare=heads[3:]))
    else:
        say(f"There is nobody in the workspace {desk.workspace!r} yet. Add somebody: interlock users add NAME")


@command(app, kept)
async def remove(
    desk: Desk,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask. Off a terminal nobody is asked anyway.")] = False,
) -> None:
    """Remove a person: their sessions, keys and links end at once. What they decided stays in the record."""
    if at_terminal() and not yes:
        asking.confirm(f"Remove {visible(name)} from the workspace {desk.workspace!r}?")
    author = (await desk.person("")).name
    user = await desk.parts.accounts.remove_user(desk.workspace, name, author)
    if desk.json:
        print_json({**_user_json(user), "removed_at": rfc3339(user.removed_at or 0)})
    else:
        say(f"Removed {visible(name)}. Their sessions, keys and links have ended.")


@command(app, kept)
async def link(
    desk: Desk,
    name: Name,
    role: Annotated[Role | None, typer.Option(show_default=False, help="For somebody who is not there yet.")] = None,
    team: Team = None,
    lasts: Annotated[str, typer.Option(metavar="TIME", help="How long the link is good.")] = "1h",
) -> None:
    """Print a link with which a person signs in, once, and can set a password."""
    author = (await desk.person("")).name
    there = {user.name for user in await desk.parts.store.users(desk.workspace) if user.removed_at is None}
    token = await desk.parts.accounts.create_link(
        desk.workspace,
        author,
        name,
        "" if role is None or name in there else role.value,
        frozenset(team or ()),
        parse_duration(lasts),
    )
    server = desk.settings.server
    base = server.public_url.rstrip("/") or f"http://{server.host}:{server.port}"
    address = f"{base}/welcome#{token}"
    if desk.json:
        print_json({"user": name, "link": address, "lasts": lasts})
    else:
        say(f"Good for one sign-in as {visible(name)}, within {lasts}:")
        typer.echo(address)


@command(app, kept)
async def password(desk: Desk, name: Name) -> None:
    """Set a person's password, from the terminal or a line of standard input. Ends their sessions."""
    secret = _password()
    author = (await desk.person("")).name
    await desk.parts.accounts.set_password(desk.workspace, name, secret, author)
    if desk.json:
        print_json({"user": name})
    else:
        say(f"{visible(name)} has a new password, and is signed out everywhere.")


@command(app, kept, "sign-out")
async def sign_out(desk: Desk, name: Name) -> None:
    """End all sessions of a person."""
    author = (await desk.person("")).name
    ended = await desk.parts.accounts.sign_out_everywhere(desk.workspace, name, author)
    if desk.json:
        print_json({"user": name, "sessions": ended})
    else:
        say(f"{visible(name)} is signed out: {counted(ended, 'session', 'sessions')} ended.")


def _password() -> str:
    """Never an argument: those are seen by everybody on the machine, and kept by the shell."""
    if at_terminal():
        text = str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    else:
        line = sys.stdin.buffer.readline(4 * LONGEST + 2)
        try:
            text = line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise InvalidRequest("The password on standard input is not UTF-8.") from None
        if not text:
            raise InvalidRequest("There is no password on standard input. Write it there, on one line.")
    check_password(text)
    return text


def _user_json(user: User) -> dict[str, object]:
    return {"name": user.name, "role": user.role, "teams": sorted(user.teams), "email": user.email}
