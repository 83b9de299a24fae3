"""`interlock channels`: notification channels: list, test, enable, disable."""

from __future__ import annotations

from typing import Annotated

import typer

from interlock.cli.context import CommandContext, command, open_notifications
from interlock.cli.output import local_time, print_json, say, show, table
from interlock.core.card import escape_invisible
from interlock.core.errors import NotFound
from interlock.core.notify.routing import DASHBOARD
from interlock.notify.service import NotificationService
from interlock.notify.status import ChannelState, channel_state_json, read_channel_states

app = typer.Typer()

Name = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="Name of the channel in the configuration.")
]


@command(app, open_notifications, "list")
async def list_channels(opened: tuple[CommandContext, NotificationService]) -> None:
    """List the configured notification channels and their state."""
    context, notifications = opened
    found = await read_channel_states(notifications)
    if context.json:
        print_json({"items": [channel_state_json(each, errors=True) for each in found], "next": None})
        return
    show(table(("NAME", "KIND", "FOR", "STATE", "DUE", "PARKED", "LAST"), map(_row, found), spare=("LAST", "KIND")))
    for each in found:
        if each.error:
            say(f"{each.name}: {escape_invisible(each.error)}")
    if len(found) == 1:
        say("No other notification channel is configured. To add one, see docs/channels.md.")


@command(app, open_notifications, "test")
async def send_test(
    opened: tuple[CommandContext, NotificationService],
    name: Name,
    user: Annotated[
        str, typer.Option(metavar="NAME", show_default="the operating system's user", help="Recipient.")
    ] = "",
) -> None:
    """Send a test message through a channel. Needs no running server."""
    context, notifications = opened
    person = (await context.resolve_reviewer(user)).name
    notifications.channel(name)
    if notifications.routes.capabilities[name].personal:
        await _check_member(context, name, person)
    message = await notifications.send_test(context.workspace, name, person)
    if context.json:
        print_json({"channel": name, "person": message.to.person})
    else:
        say(f"Sent a test through {name}{f' to {escape_invisible(message.to.person)}' if message.to.person else ''}.")


@command(app, open_notifications)
async def enable(opened: tuple[CommandContext, NotificationService], name: Name) -> None:
    """Enable a disabled channel."""
    context, notifications = opened
    notifications.channel(name)
    changed = await context.services.store.deliveries.enable_channel(
        context.workspace, name, (await context.resolve_reviewer("")).name
    )
    if context.json:
        [state] = [each for each in await read_channel_states(notifications) if each.name == name]
        print_json(channel_state_json(state, errors=True))
    elif changed:
        say(f"Enabled {name}. Dead letters: interlock deliveries list")
    else:
        say(f"{name} is already enabled.")


@command(app, open_notifications)
async def disable(
    opened: tuple[CommandContext, NotificationService],
    name: Name,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason, recorded in the ledger.")] = "",
) -> None:
    """Disable a channel: its messages stay queued until it is enabled."""
    context, notifications = opened
    notifications.channel(name)
    by = (await context.resolve_reviewer("")).name
    why = reason or f"Switched off by {by}."
    changed = await context.services.store.deliveries.disable_channel(context.workspace, name, why, by)
    if context.json:
        [state] = [each for each in await read_channel_states(notifications) if each.name == name]
        print_json(channel_state_json(state, errors=True))
    elif changed:
        say(f"Disabled {name}. To enable it: interlock channels enable {name}")
    else:
        say(f"{name} is already disabled.")


async def _check_member(context: CommandContext, channel: str, person: str) -> None:
    members = {user.name for user in await context.services.store.users(context.workspace) if user.removed_at is None}
    if person not in members:
        raise NotFound(
            f"{escape_invisible(person)} is not a user of this workspace, and {channel} notifies users individually. "
            "Give one: --user NAME"
        )


def _row(state: ChannelState) -> tuple[str, ...]:
    led_here = [*state.priorities, *state.teams, *(("all else",) if state.is_default else ())]
    if state.name == DASHBOARD:
        return (state.name, state.kind, escape_invisible(", ".join(led_here)), "on", "", "", "")
    stands = (
        f"off since {local_time(state.off.disabled_at)}" if state.off else "in trouble" if state.due_since else "on"
    )
    last = "never" if state.last_sent_at is None else local_time(state.last_sent_at)
    return (
        state.name,
        state.kind,
        escape_invisible(", ".join(led_here)),
        stands,
        str(state.due),
        str(state.parked),
        last,
    )
