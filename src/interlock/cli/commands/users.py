"""`interlock users`: the people of a workspace."""

from __future__ import annotations

import sys
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from interlock.accounts.accounts import Accounts
from interlock.accounts.passwords import MAX_LENGTH, check_password
from interlock.app.bootstrap import database_file
from interlock.cli import prompts
from interlock.cli.context import CommandContext, command, is_interactive, open_database, open_or_create_database
from interlock.cli.output import print_json, say, show, table
from interlock.core.card import escape_invisible
from interlock.core.errors import InvalidRequest
from interlock.core.identity import check_email, check_name
from interlock.core.ports import User
from interlock.core.removal import RemovalEffects
from interlock.presenters.text import join_or_none, pluralize
from interlock.runtime.durations import parse_duration, rfc3339
from interlock.runtime.process_identity import local_url, read_running_address

app = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Name of the user, as in the policy.")]
Team = Annotated[list[str] | None, typer.Option(metavar="TEAM", help="Team of the user. Repeatable.")]
OTHER_ADDRESS = "To use another: --url URL, or server: {public_url: URL} in the configuration."
NOT_RUNNING = "No server runs on this database now, as far as this machine can tell"


class UserRole(StrEnum):
    REVIEWER = "reviewer"
    ADMIN = "admin"
    VIEWER = "viewer"


@command(app, open_or_create_database)
async def add(
    context: CommandContext,
    name: Name,
    role: Annotated[
        UserRole, typer.Option(help="Viewers read, reviewers decide, admins do everything.")
    ] = UserRole.REVIEWER,
    team: Team = None,
    email: Annotated[str, typer.Option(metavar="ADDRESS", help="E-mail address for notifications.")] = "",
    password: Annotated[
        bool,
        typer.Option(
            "--password", help="Prompt for a password; without a terminal, read it as a line of standard input."
        ),
    ] = False,
) -> None:
    """Add a user, or change the role and teams of an existing one."""
    for text in (name, *(team or ())):
        check_name(text)
    check_email(email)
    secret = _read_password() if password else ""
    known = {
        user.name: user for user in await context.services.store.users(context.workspace) if user.removed_at is None
    }
    author, accounts = await _author(context)
    teams, ended = frozenset(team or ()), RemovalEffects()
    if name in known:
        address = email or known[name].email
        change = await accounts.change_user(
            context.workspace, name, author, role=role.value, teams=teams, email=address
        )
        user, ended = change.user, change.effects
    else:
        user = await accounts.add_user(context.workspace, name, role.value, author, teams, email)
    if secret:
        await accounts.set_password(context.workspace, name, secret, author)
    if context.json:
        print_json({**_user_json(user), "ended": asdict(ended)})
        return
    say(f"{'Changed' if name in known else 'Added'} {name}: {user.role}, teams: {join_or_none(sorted(user.teams))}.")
    for line in _ended_lines(ended):
        say(f"  {line}")


@command(app, open_database, "list")
async def list_users(context: CommandContext) -> None:
    """List users with role and teams."""
    users = [user for user in await context.services.store.users(context.workspace) if user.removed_at is None]
    if context.json:
        print_json({"items": [_user_json(user) for user in users], "next": None})
    elif users:
        heads = ("NAME", "ROLE", "TEAMS", *(("E-MAIL",) if any(user.email for user in users) else ()))
        rows = [
            (
                escape_invisible(u.name),
                u.role,
                escape_invisible(join_or_none(sorted(u.teams))),
                escape_invisible(u.email),
            )
            for u in users
        ]
        show(table(heads, [row[: len(heads)] for row in rows], spare=heads[3:]))
    else:
        say(f"There are no users in the workspace {context.workspace!r} yet. To add one: interlock users add NAME")


@command(app, open_database)
async def remove(
    context: CommandContext,
    name: Name,
    yes: Annotated[
        bool, typer.Option("--yes", help="Skip the confirmation prompt (implied without a terminal).")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be revoked.")] = False,
) -> None:
    """Remove a user and revoke their grants, keys, sessions and delegations.

    Also revokes their sign-in links, and their votes on pending approvals. Calls that were approved stay approved, and
    their decisions stay in the ledger.
    """
    author, accounts = await _author(context)
    if dry_run or (is_interactive() and not yes):
        ended = await accounts.preview_change(context.workspace, name)
        if dry_run and context.json:
            print_json({"name": name, "dry_run": True, "ended": asdict(ended)})
            return
        _print_ended(f"Removing {escape_invisible(name)} revokes:", ended)
    if dry_run:
        return
    if is_interactive() and not yes:
        prompts.confirm(f"Remove {escape_invisible(name)} from the workspace {context.workspace!r}?")
    change = await accounts.remove_user(context.workspace, name, author)
    if context.json:
        removed_at = rfc3339(change.user.removed_at or 0)
        print_json({**_user_json(change.user), "removed_at": removed_at, "ended": asdict(change.effects)})
    else:
        _print_ended(f"Removed {escape_invisible(name)}. Revoked with them:", change.effects)


@command(app, open_database)
async def link(
    context: CommandContext,
    name: Name,
    role: Annotated[
        UserRole | None, typer.Option(show_default=False, help="Role for a user who does not exist yet.")
    ] = None,
    team: Team = None,
    lasts: Annotated[str, typer.Option(metavar="TIME", help="How long the link is valid.")] = "1h",
    url: Annotated[
        str,
        typer.Option(metavar="URL", show_default="server.public_url, or where it runs", help="Address of the server."),
    ] = "",
) -> None:
    """Print a one-time sign-in link, with which a user can also set a password."""
    author, accounts = await _author(context)
    there = {user.name for user in await context.services.store.users(context.workspace) if user.removed_at is None}
    token = await accounts.create_link(
        context.workspace,
        author,
        name,
        "" if role is None or name in there else role.value,
        frozenset(team or ()),
        parse_duration(lasts),
    )
    base, is_certain = _server_address(context, url)
    address = f"{base}/welcome#{token}"
    if context.json:
        print_json({"user": name, "link": address, "lasts": lasts})
    else:
        say(f"Valid for one sign-in as {escape_invisible(name)}, within {lasts}:")
        typer.echo(address)
        if not is_certain:
            hint = f"{NOT_RUNNING}. The link is for {base}, where `interlock serve` would listen. {OTHER_ADDRESS}"
            typer.echo(hint, err=True)


def _server_address(context: CommandContext, url: str) -> tuple[str, bool]:
    """The address that the server has: as named, as configured, or of the server that runs on this database.

    Without one of these, where a server with this configuration would listen, and False.
    """
    server, file = context.settings.server, database_file(context.settings.storage.url)
    known = url or server.public_url or (read_running_address(file) if file else "")
    return (known.rstrip("/"), True) if known else (local_url(server.host, server.port), False)


@command(app, open_database)
async def password(context: CommandContext, name: Name) -> None:
    """Set a user's password, from a prompt or a line of standard input. Ends their sessions and personal keys."""
    secret = _read_password()
    author, accounts = await _author(context)
    await accounts.set_password(context.workspace, name, secret, author)
    if context.json:
        print_json({"user": name})
    else:
        say(
            f"{escape_invisible(name)} has a new password and is signed out everywhere; "
            "their personal keys were revoked."
        )


@command(app, open_database, "sign-out")
async def sign_out(context: CommandContext, name: Name) -> None:
    """End all sessions of a user, and revoke their personal keys."""
    author, accounts = await _author(context)
    sessions, keys = await accounts.sign_out_everywhere(context.workspace, name, author)
    if context.json:
        print_json({"user": name, "sessions": sessions, "keys": keys})
    else:
        ended = f"{pluralize(sessions, 'session', 'sessions')} and {pluralize(keys, 'key', 'keys')}"
        say(f"{escape_invisible(name)} is signed out: {ended} ended.")


async def _author(context: CommandContext) -> tuple[str, Accounts]:
    """The author of a change, and the accounts service."""
    person = await context.resolve_reviewer("")
    return person.name, context.services.accounts.with_trace(person.trace)


def _print_ended(title: str, ended: RemovalEffects) -> None:
    say(title)
    for line in _ended_lines(ended) or ["nothing: no grants, keys, sessions, links, delegations or votes"]:
        say(f"  {line}")
    if ended.made_keys:
        kept = join_or_none([f"{key_id} ({escape_invisible(name)})" for key_id, name in ended.made_keys])
        say(
            f"Keys that they created for others stay valid: {kept}. To replace one: interlock keys rotate ID",
            style="yellow",
        )


def _ended_lines(ended: RemovalEffects) -> list[str]:
    named = {
        "grants": [f"{grant_id} ({escape_invisible(tool)})" for grant_id, tool in ended.grants],
        "keys": [f"{key_id} ({escape_invisible(name)})" for key_id, name in ended.keys],
        "votes in pending approvals": ended.votes,
        "delegations in pending approvals": ended.delegations,
        "delegate of": [escape_invisible(name) for name in ended.away],
    }
    counts = {"sessions": ended.sessions, "sign-in links": ended.links, "linked accounts": ended.identities}
    lines = [f"{what}: {join_or_none(list(found))}" for what, found in named.items() if found]
    return lines + [f"{what}: {count}" for what, count in counts.items() if count]


def _read_password() -> str:
    """Read the password, never from an argument: other users could see it, and the shell keeps it in its history."""
    if is_interactive():
        text = str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    else:
        line = sys.stdin.buffer.readline(4 * MAX_LENGTH + 2)
        try:
            text = line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise InvalidRequest("The password on standard input is not UTF-8.") from None
        if not text:
            raise InvalidRequest("There is no password on standard input. Pass it as one line.")
    check_password(text)
    return text


def _user_json(user: User) -> dict[str, object]:
    return {"name": user.name, "role": user.role, "teams": sorted(user.teams), "email": user.email}
