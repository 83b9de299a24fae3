"""`interlock keys`: what agents and people's programs show to the server."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from interlock.cli.output import clock_time, nearest, print_json, say, show, table
from interlock.cli.shared import Desk, command, kept, made
from interlock.core.card import visible
from interlock.core.errors import NotFound
from interlock.core.identity import Key
from interlock.durations import optional_rfc3339, rfc3339

app = typer.Typer()


class Role(StrEnum):
    AGENT = "agent"
    VIEWER = "viewer"
    REVIEWER = "reviewer"
    ADMIN = "admin"


@command(app, made)
async def create(
    desk: Desk,
    name: Annotated[str, typer.Option(metavar="NAME", show_default=False, help="What it is for.")],
    role: Annotated[Role, typer.Option(show_default=False, help="Agents propose; viewers look; reviewers decide.")],
    user: Annotated[str, typer.Option(metavar="NAME", show_default="the key's name", help="Whose it is.")] = "",
) -> None:
    """Make a key and print it, this once, on the last line. Needs no running server."""
    await _workspace(desk)
    author = (await desk.person("")).name
    key, secret = await desk.parts.accounts.create_key(desk.workspace, name, role.value, author, user)
    if desk.json:
        print_json({**_key_json(key), "key": secret})
        return
    whose = f" of {visible(key.person)}" if key.person else ""
    say(f"Made the key {key.id}{whose}, for {key.role}s. Keep it now: it is not shown again.")
    typer.echo(secret)


@command(app, kept, "list")
async def list_keys(
    desk: Desk,
    everything: Annotated[bool, typer.Option("--all", help="Also those that were revoked.")] = False,
) -> None:
    """The keys of a workspace, when each was used last, and by whom it was made; the newest first."""
    found = await desk.parts.accounts.keys(desk.workspace)
    keys = [key for key in found if everything or key.revoked_at is None]
    if desk.json:
        print_json({"items": [_key_json(key) for key in keys], "next": None})
    elif keys:
        heads = ("ID", "NAME", "ROLE", "USER", "MADE BY", "MADE", "USED", *(("REVOKED",) if everything else ()))
        rows = [_row(key)[: len(heads)] for key in keys]
        show(table(heads, rows, spare=("MADE BY", "MADE")))
    else:
        say("There are no keys. Make one: interlock keys create --name NAME --role agent")


@command(app, kept)
async def revoke(
    desk: Desk,
    key_id: Annotated[str, typer.Argument(metavar="ID", show_default=False, help="As the list shows it: ilk_…")],
) -> None:
    """End a key: from now on it lets nobody in."""
    known = {key.id: key for key in await desk.parts.accounts.keys(desk.workspace)}
    key_id = key_id[:12] if key_id.startswith("ilk_") else key_id  # the whole key was given: its id is the beginning
    if key_id not in known:
        hint = nearest(key_id, known) or " See: interlock keys list"
        raise NotFound(f"There is no key {visible(key_id)} in the workspace {desk.workspace!r}.{hint}")
    author = (await desk.person("")).name
    key = await desk.parts.accounts.revoke_key(desk.workspace, key_id, author)
    if desk.json:
        print_json(_key_json(key))
    elif known[key_id].revoked_at is not None:
        say(f"{key.id} was revoked already; nothing changed.")
    else:
        say(f"Revoked {key.id} ({visible(key.name)}). A running server takes it for a second more at most.")


async def _workspace(desk: Desk) -> None:
    """A misspelt name must not make a workspace."""
    names = [name for name, _ in await desk.parts.accounts.workspaces()]
    if desk.workspace == "default":
        await desk.parts.accounts.add_workspace(desk.workspace)
    elif desk.workspace not in names:
        hint = nearest(desk.workspace, names)
        raise NotFound(
            f"There is no workspace {visible(desk.workspace)!r}.{hint} Make it: interlock workspaces add NAME"
        )


def _row(key: Key) -> tuple[str, ...]:
    used = "never" if key.used_at is None else clock_time(key.used_at)
    revoked = "" if key.revoked_at is None else clock_time(key.revoked_at)
    whose = (visible(key.person), visible(key.created_by), clock_time(key.created_at))
    return (key.id, visible(key.name), key.role, *whose, used, revoked)


def _key_json(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "user": key.person,
        "workspace": key.workspace,
        "created_by": key.created_by,
        "created_at": rfc3339(key.created_at),
        "used_at": optional_rfc3339(key.used_at),
        "revoked_at": optional_rfc3339(key.revoked_at),
    }
