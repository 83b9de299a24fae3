"""`interlock users`: the people of a workspace."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from interlock.cli.output import print_json, say, show, table
from interlock.cli.shared import Desk, command, kept, made
from interlock.cli.words import listed
from interlock.core.call import MAX_NAME
from interlock.core.card import visible
from interlock.core.errors import InvalidRequest
from interlock.core.event import TIME
from interlock.core.ports import User

app = typer.Typer()

OURS = frozenset({TIME, "policy"})  # actors of the record that are no people


class Role(StrEnum):
    REVIEWER = "reviewer"
    ADMIN = "admin"
    VIEWER = "viewer"


@command(app, made)
async def add(
    desk: Desk,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="As the policy names them.")],
    role: Annotated[Role, typer.Option(help="Viewers look, reviewers decide, admins do everything.")] = Role.REVIEWER,
    team: Annotated[list[str] | None, typer.Option(metavar="TEAM", help="May be given several times.")] = None,
) -> None:
    """Add a person, or change the role and the teams of one who is there."""
    for text in (name, *(team or ())):
        _check(text)
    known = {user.name: user for user in await desk.parts.store.users(desk.workspace)}
    author = (await desk.person("")).name
    wanted = replace(known.get(name, User(name)), role=role.value, teams=frozenset(team or ()), removed_at=None)
    user = await desk.parts.store.put_user(desk.workspace, wanted, author)
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
        rows = [(visible(user.name), user.role, visible(listed(sorted(user.teams)))) for user in users]
        show(table(("NAME", "ROLE", "TEAMS"), rows))
    else:
        say(f"There is nobody in the workspace {desk.workspace!r} yet. Add somebody: interlock users add NAME")


def _check(name: str) -> None:
    """Names stand in the record and in policies, where they must not look like something else."""
    if not 1 <= len(name) <= MAX_NAME or visible(name) != name or name != name.strip():
        raise InvalidRequest(f'"{visible(name)}" cannot be a name: 1 to {MAX_NAME} visible characters, no backslash.')
    if name in OURS or name.startswith(("agent:", "attempt:", "runner:")):
        raise InvalidRequest(f"{name!r} is a name that Interlock uses itself. Choose another.")


def _user_json(user: User) -> dict[str, object]:
    return {"name": user.name, "role": user.role, "teams": sorted(user.teams)}
