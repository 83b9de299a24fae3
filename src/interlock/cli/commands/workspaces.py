"""`interlock workspaces`: add and list workspaces, each with its own approvals, people, keys, policy and ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from interlock.cli.context import CommandContext, command, open_database, open_or_create_database
from interlock.cli.output import local_time, print_json, say, show, table
from interlock.core.card import escape_invisible
from interlock.runtime.durations import rfc3339

app = typer.Typer()


@command(app, open_or_create_database)
async def add(
    context: CommandContext,
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="Name: 1 to 63 characters of a-z, 0-9 and -.")
    ],
) -> None:
    """Create a workspace. Safe to run again."""
    accounts = context.services.accounts
    there = name in dict(await accounts.workspaces())
    await accounts.add_workspace(name)
    if context.json:
        print_json({"name": name, "added": not there})
    else:
        say(f"The workspace {name} already exists." if there else f"Added the workspace {name}.")


@command(app, open_database, "list")
async def list_workspaces(context: CommandContext) -> None:
    """List workspaces."""
    found = await context.services.accounts.workspaces()
    if context.json:
        print_json({"items": [{"name": name, "created_at": rfc3339(at)} for name, at in found], "next": None})
    elif found:
        show(table(("NAME", "SINCE"), [(escape_invisible(name), local_time(at)) for name, at in found]))
    else:
        say("There are no workspaces yet. To create one: interlock workspaces add NAME")
