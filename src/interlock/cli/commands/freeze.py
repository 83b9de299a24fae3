"""`interlock freeze` and `interlock unfreeze`: stop a workspace, an agent, a key or a tool at once."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from interlock.app.freezes import Freezes, freeze_warnings
from interlock.cli.context import CommandContext
from interlock.cli.output import print_json, say
from interlock.core.card import escape_invisible
from interlock.core.confusables import fold_confusables
from interlock.core.errors import InvalidRequest, NotFound
from interlock.core.freeze import Freeze
from interlock.presenters.policy import freeze_json


@dataclass(frozen=True)
class FreezeOptions:
    """Options of the command line; at most one of the names. Without any, the scope is the workspace."""

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


async def freeze(context: CommandContext, options: FreezeOptions) -> None:
    scope, name = options.scope
    if scope == "key" and name not in {key.id for key in await context.services.accounts.keys(context.workspace)}:
        raise NotFound(f"There is no key {name!r} in this workspace. For ids: interlock keys list")
    person = await context.resolve_reviewer(options.user)
    made = await _freezes(context).freeze(context.workspace, scope, name, options.reason, person)
    doubts = freeze_warnings(made, await context.services.store.tools(context.workspace))
    if context.json:
        print_json({**freeze_json(made), "warnings": doubts})
    elif made.by != person.name or made.reason != options.reason:
        scope, by, reason = map(escape_invisible, (made.scope_text, made.by, made.reason))
        say(f"{scope} is already frozen by {by}: {reason}")
    else:
        say(
            f"Frozen: {escape_invisible(made.scope_text)}. "
            "New calls are refused and approved calls cannot start. Running calls continue."
        )
        say(f"To lift it: interlock unfreeze{_option(made)} --reason TEXT")
        for doubt in doubts:
            say(doubt, style="yellow")


async def unfreeze(context: CommandContext, options: FreezeOptions) -> None:
    scope, name = options.scope
    if not options.reason.strip():
        raise InvalidRequest("--reason is empty. Say briefly why the freeze is lifted.")
    freezes, person = _freezes(context), await context.resolve_reviewer(options.user)
    active_freezes = await freezes.list_active(context.workspace)
    found = [
        each for each in active_freezes if (each.scope, fold_confusables(each.name)) == (scope, fold_confusables(name))
    ]
    if not found:
        listed = "; ".join(f"{escape_invisible(each.scope_text)}" for each in active_freezes) or "nothing"
        raise NotFound(f"This is not frozen. Frozen in the workspace {context.workspace!r}: {listed}.")
    released = [await freezes.release(context.workspace, each.id, options.reason, person) for each in found]
    if context.json:
        print_json({"items": [freeze_json(each) for each in released]})
    else:
        for each in released:
            say(
                f"Released: {escape_invisible(each.scope_text)}. "
                "Deadlines of its calls were extended by the duration of the freeze."
            )


def _freezes(context: CommandContext) -> Freezes:
    return Freezes(context.services.store.freezes, context.services.clock)


def _option(freeze: Freeze) -> str:
    return f" --{freeze.scope} {quote(escape_invisible(freeze.name))}" if freeze.name else ""
