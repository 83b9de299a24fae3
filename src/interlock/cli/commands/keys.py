"""`interlock keys`: API keys of agents and people: create, rotate, list, revoke."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from interlock.accounts.keys import NEVER_EXPIRES
from interlock.cli.context import CommandContext, command, open_database, open_or_create_database
from interlock.cli.output import did_you_mean, local_time, print_json, say, show, table
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.card import escape_invisible
from interlock.core.errors import NotFound
from interlock.core.identity import AGENT, ANY_REQUESTER, MAX_QUOTA, NO_REQUESTER, ApiKey, KeyBindings
from interlock.presenters.text import join_or_none
from interlock.runtime.durations import optional_rfc3339, parse_duration, rfc3339

app = typer.Typer()


class KeyRole(StrEnum):
    AGENT = "agent"
    VIEWER = "viewer"
    REVIEWER = "reviewer"
    ADMIN = "admin"


Expires = Annotated[
    str,
    typer.Option(metavar="TIME", show_default="90d for people, never for agents", help="Lifetime: 90d, or never."),
]
QUOTA: dict[str, Any] = {"metavar": "N", "min": 0, "max": MAX_QUOTA, "show_default": "the server's"}
KeyId = Annotated[str, typer.Argument(metavar="ID", show_default=False, help="Id of the key, as listed: ilk_…")]


@command(app, open_or_create_database)
async def create(
    context: CommandContext,
    name: Annotated[str, typer.Option(metavar="NAME", show_default=False, help="Name of the key: its purpose.")],
    role: Annotated[
        KeyRole,
        typer.Option(
            show_default=False, help="Agents propose calls, viewers read, reviewers decide, admins do everything."
        ),
    ],
    *,
    user: Annotated[str, typer.Option(metavar="NAME", show_default="the key's name", help="Owner of the key.")] = "",
    agent: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default="not bound", help="Agent that the key is bound to. Repeatable."),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", show_default="all", help="Tools that it may call. Repeatable."),
    ] = None,
    requester: Annotated[
        str,
        typer.Option(
            metavar="NAME|any|none",
            show_default="not bound",
            help="Requester for an agent's key: one user, anybody authenticated by its program, or nobody.",
        ),
    ] = "",
    per_minute: Annotated[
        int | None,
        typer.Option(**QUOTA, help="Maximum recorded calls per minute of an agent's key (writes, denials, questions)."),
    ] = None,
    pending: Annotated[int | None, typer.Option(**QUOTA, help="Maximum pending calls of an agent's key.")] = None,
    expires: Expires = "",
) -> None:
    """Create a key and print it, only this once, on the last line. Needs no running server.

    For an agent's key, --user means --requester NAME, and adds a missing user. For quotas, 0 means no limit.
    """
    await _check_workspace(context)
    author = await context.resolve_reviewer("")
    bindings = KeyBindings(tuple(agent or ()), tuple(tool or ()), requester, per_minute, pending)
    accounts = context.services.accounts.with_trace(author.trace)
    key, secret = await accounts.create_key(
        context.workspace,
        name,
        role.value,
        author.name,
        user=user,
        bindings=bindings,
        lifetime=_parse_lifetime(expires),
    )
    whose = f" of {escape_invisible(key.person)}" if key.person else ""
    _print_new(context, key, secret, f"Created the key {key.id}{whose}, role {key.role}.")


@command(app, open_database)
async def rotate(
    context: CommandContext,
    key_id: KeyId,
    overlap: Annotated[str, typer.Option(metavar="TIME", help="How long the old key stays valid.")] = "24h",
    expires: Annotated[
        str, typer.Option(metavar="TIME", show_default="as long as the old one", help="Lifetime of the new key.")
    ] = "",
) -> None:
    """Replace a key with a new one that has the same bindings; print it, only this once, on the last line."""
    key_id, _ = await _find_key(context, key_id)
    author = await context.resolve_reviewer("")
    accounts = context.services.accounts.with_trace(author.trace)
    key, secret = await accounts.rotate_key(
        context.workspace, key_id, author.name, parse_duration(overlap), _parse_lifetime(expires)
    )
    _print_new(
        context, key, secret, f"Created the key {key.id} to replace {key_id}, which expires in {overlap} at the latest."
    )


@command(app, open_database, "list")
async def list_keys(
    context: CommandContext,
    everything: Annotated[bool, typer.Option("--all", help="Also list revoked and expired keys.")] = False,
) -> None:
    """List the keys of a workspace with bindings, last use and expiry, newest first."""
    found = await context.services.accounts.keys(context.workspace)
    keys = [key for key in found if everything or key.is_valid_at(context.now())]
    if context.json:
        print_json({"items": [_key_json(key) for key in keys], "next": None})
    elif keys:
        heads = (
            "ID",
            "NAME",
            "ROLE",
            "FOR",
            "CREATED BY",
            "CREATED",
            "LAST USED",
            "EXPIRES",
            *(("REVOKED",) if everything else ()),
        )
        rows = [_row(key)[: len(heads)] for key in keys]
        show(table(heads, rows, spare=("CREATED BY", "CREATED")))
    else:
        say("There are no keys. To create one: interlock keys create --name NAME --role agent --agent NAME")


@command(app, open_database)
async def revoke(context: CommandContext, key_id: KeyId) -> None:
    """Revoke a key."""
    key_id, before = await _find_key(context, key_id)
    author = await context.resolve_reviewer("")
    key = await context.services.accounts.with_trace(author.trace).revoke_key(context.workspace, key_id, author.name)
    if context.json:
        print_json(_key_json(key))
    elif before.revoked_at is not None:
        say(f"{key.id} is already revoked; nothing changed.")
    else:
        say(f"Revoked {key.id} ({escape_invisible(key.name)}). Running servers reject it within a second.")


def _print_new(context: CommandContext, key: ApiKey, secret: str, made: str) -> None:
    if context.json:
        print_json({**_key_json(key), "key": secret})
        return
    say(f"{made} Store it now: it is not shown again.")
    if key.role == AGENT and not key.agents:
        say(
            "It is not bound to an agent: its program may use any agent name, so allow rules and grants that name an "
            "agent do not apply to it. To bind one: interlock keys create --agent NAME …",
            style="yellow",
        )
    if key.expires_at is not None:
        say(f"It expires {local_time(key.expires_at)}. To replace it before: interlock keys rotate {key.id}")
    typer.echo(secret)


async def _find_key(context: CommandContext, key_id: str) -> tuple[str, ApiKey]:
    known = {key.id: key for key in await context.services.accounts.keys(context.workspace)}
    key_id = key_id[:12] if key_id.startswith("ilk_") else key_id  # a whole key was given: it begins with its id
    if key_id not in known:
        hint = did_you_mean(key_id, known) or " See: interlock keys list"
        raise NotFound(f"There is no key {escape_invisible(key_id)} in the workspace {context.workspace!r}.{hint}")
    return key_id, known[key_id]


def _parse_lifetime(text: str) -> int | None:
    if not text:
        return None
    return NEVER_EXPIRES if text == "never" else parse_duration(text)


async def _check_workspace(context: CommandContext) -> None:
    """Check that the workspace exists: a misspelt name must not create one."""
    names = [name for name, _ in await context.services.accounts.workspaces()]
    if context.workspace == DEFAULT_WORKSPACE:
        await context.services.accounts.add_workspace(context.workspace)
    elif context.workspace not in names:
        hint = did_you_mean(context.workspace, names)
        raise NotFound(
            f"There is no workspace {escape_invisible(context.workspace)!r}.{hint} "
            "To create one: interlock workspaces add NAME"
        )


def _row(key: ApiKey) -> tuple[str, ...]:
    used = "never" if key.used_at is None else local_time(key.used_at)
    ends = "never" if key.expires_at is None else local_time(key.expires_at)
    revoked = "" if key.revoked_at is None else local_time(key.revoked_at)
    made = (escape_invisible(key.created_by), local_time(key.created_at))
    return (
        key.id,
        escape_invisible(key.name),
        key.role,
        escape_invisible(_binding_text(key)),
        *made,
        used,
        ends,
        revoked,
    )


def _binding_text(key: ApiKey) -> str:
    """What an agent's key is bound to, or the owner of another key."""
    if key.role != AGENT:
        return key.person
    requester = {"": "", ANY_REQUESTER: "any requester", NO_REQUESTER: "no requester"}.get(
        key.requester, f"for {key.requester}"
    )
    tools = f"tools {join_or_none(key.tools)}" if key.tools else ""
    agents = join_or_none(key.agents) if key.agents else "any agent"
    return "; ".join(part for part in (agents, tools, requester, *_quota_texts(key)) if part)


def _quota_texts(key: ApiKey) -> list[str]:
    words = {"per_minute": "per minute", "pending": "pending"}
    return [f"{f'{limit:,}' if limit else 'any number'} {words[name]}" for name, limit in key.quotas.items()]


def _key_json(key: ApiKey) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "user": key.person,
        "agents": list(key.agents),
        "tools": list(key.tools),
        "requester": key.requester,
        "per_minute": key.per_minute,
        "pending": key.pending,
        "workspace": key.workspace,
        "created_by": key.created_by,
        "created_at": rfc3339(key.created_at),
        "used_at": optional_rfc3339(key.used_at),
        "expires_at": optional_rfc3339(key.expires_at),
        "revoked_at": optional_rfc3339(key.revoked_at),
        "rotated_from": key.rotated_from,
    }
