"""`interlock freeze` and `interlock unfreeze`: stop a workspace, an agent, a key or a tool at once."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from interlock.app.freezes import Freezes, freeze_warnings
from interlock.cli.context import CommandContext
from interlock.cli.output import print_json, say
from interlock.core.card import visible
from interlock.core.errors import InvalidRequest, NotFound
from interlock.core.freeze import Freeze
from interlock.core.names import fold
from interlock.presenters.policy import freeze_json


@dataclass(frozen=True)
class FreezeOptions:
    """At most one of the names; without any it is the workspace."""

    agent: str
    key: str
    tool: str
    reason: str
    user: str

    @property
    def scope(self) -> tuple[str, str]:
        given = {scope: name for scope in ("agent", "key", "tool") if (name := getattr(self, scope))}
        if len(given) > 1:
            raise InvalidRequest("Give one of --agent, --key and --tool, or none for the whole workspace.")
        return next(iter(given.items()), ("workspace", ""))


async def freeze(desk: CommandContext, wanted: FreezeOptions) -> None:
    scope, name = wanted.scope
    if scope == "key" and name not in {key.id for key in await desk.parts.accounts.keys(desk.workspace)}:
        raise NotFound(f"There is no key {name!r} here. Give the id of one: interlock keys list")
    person = await desk.person(wanted.user)
    made = await _freezes(desk).freeze(desk.workspace, scope, name, wanted.reason, person)
    doubts = freeze_warnings(made, await desk.parts.store.tools(desk.workspace))
    if desk.json:
        print_json({**freeze_json(made), "warnings": doubts})
    elif made.by != person.name or made.reason != wanted.reason:
        say(f"{visible(made.what)} was frozen already by {visible(made.by)}: {visible(made.reason)}")
    else:
        say(f"Frozen: {visible(made.what)}. Nothing in it starts, and new calls are refused. What runs goes on.")
        say(f"Release it with: interlock unfreeze{_option(made)} --reason TEXT")
        for doubt in doubts:
            say(doubt, style="yellow")


async def unfreeze(desk: CommandContext, wanted: FreezeOptions) -> None:
    scope, name = wanted.scope
    if not wanted.reason.strip():
        raise InvalidRequest("--reason is empty. Say in a few words why it may go on.")
    freezes, person = _freezes(desk), await desk.person(wanted.user)
    on = await freezes.on(desk.workspace)
    found = [each for each in on if (each.scope, fold(each.name)) == (scope, fold(name))]
    if not found:
        listed = "; ".join(f"{visible(each.what)}" for each in on) or "nothing"
        raise NotFound(f"This is not frozen. What is frozen in the workspace {desk.workspace!r}: {listed}.")
    released = [await freezes.release(desk.workspace, each.id, wanted.reason, person) for each in found]
    if desk.json:
        print_json({"items": [freeze_json(each) for each in released]})
    else:
        for each in released:
            say(f"Released: {visible(each.what)}. Deadlines of its calls moved by the time for which it was frozen.")


def _freezes(desk: CommandContext) -> Freezes:
    return Freezes(desk.parts.store.freezes, desk.parts.clock)


def _option(freeze: Freeze) -> str:
    return f" --{freeze.scope} {quote(visible(freeze.name))}" if freeze.name else ""
