"""`interlock tools`: where each tool's definition comes from, and pins for tools that only agents declare."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from interlock.app.tool_catalog import CatalogTool, count_trusted_declarations
from interlock.cli import prompts
from interlock.cli.context import CommandContext, User, command, is_interactive, open_database
from interlock.cli.current_policy import declared_only_text, make_catalog
from interlock.cli.output import did_you_mean, local_time, print_json, say, show, table
from interlock.core.call import ToolSpec
from interlock.core.card import escape_invisible
from interlock.core.confusables import escape_non_ascii
from interlock.core.errors import InvalidRequest, NotFound
from interlock.core.pins import Pin, trusts_declared
from interlock.presenters.policy import pin_json, tool_json
from interlock.presenters.text import pluralize

app = typer.Typer()

Agent = Annotated[str, typer.Option(metavar="NAME", help="Only tools that this agent declared.")]


class EffectOption(StrEnum):
    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"


@command(app, open_database, "list")
async def list_tools(context: CommandContext, agent: Agent = "") -> None:
    """List tools with the source of each definition: registered, pinned, or declared by agents."""
    catalog = await make_catalog(context, agent)
    tools, bounds = await catalog.tools(context.now()), await catalog.describe_limits()
    if context.json:
        believed = {
            "on_word": count_trusted_declarations(tools),
            "trust_declared": trusts_declared(catalog.policy),
            "bounds": bounds,
        }
        print_json({"items": [tool_json(tool) for tool in tools], "next": None, **believed})
    elif tools:
        heads = ("TOOL", "SOURCE", "EFFECT", "AGENTS", "CALLS (30 d)", "LAST SEEN", "")
        show(table(heads, [_row(tool) for tool in tools], spare=("AGENTS", "LAST SEEN")))
        if many := count_trusted_declarations(tools):
            say(f"{declared_only_text(many)}. Pin: interlock tools pin TOOL")
    else:
        say("There are no tools yet. They are listed once an agent has called one.")
    for bound in () if context.json else bounds:
        say(escape_invisible(bound), style="yellow")


@command(app, open_database)
async def pin(
    context: CommandContext,
    tool: Annotated[str, typer.Argument(metavar="TOOL", show_default=False, help="Full name of the tool.")] = "",
    *,
    from_agent: Annotated[str, typer.Option(metavar="NAME", help="Use the latest declaration of this agent.")] = "",
    effect: Annotated[
        EffectOption | None, typer.Option(show_default=False, help="Effect to pin instead of the declared one.")
    ] = None,
    all_of: Annotated[str, typer.Option(metavar="AGENT", help="Pin every tool that this agent declared.")] = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="Skip the confirmation prompt; required without a terminal.")
    ] = False,
    user: User = "",
) -> None:
    """Pin a tool's definition: declarations of agents are ignored, and a changed definition needs approval."""
    if bool(tool) == bool(all_of) or (all_of and (from_agent or effect)):
        raise InvalidRequest("Give either TOOL, optionally with --from-agent or --effect, or --all-of AGENT.")
    author = (await context.resolve_reviewer(user)).name
    if all_of:
        await _pin_all(context, all_of, author, sure=yes)
        return
    catalog = await make_catalog(context, from_agent)
    spec = await catalog.make_pin_spec(tool, effect.value if effect else "")
    alike = await catalog.find_similar_names(tool)
    if alike and not yes:
        _confirm(f"{_look_alike_text(tool, alike)}. Pin it?")
    (made,) = await context.services.store.pin(context.workspace, [spec], from_agent, author)
    if context.json:
        print_json(pin_json(made))
    else:
        say(f"Pinned {_pin_text(made.spec)}. Calls that declare it differently need approval.")


@command(app, open_database)
async def unpin(
    context: CommandContext,
    tool: Annotated[str, typer.Argument(metavar="TOOL", show_default=False, help="Full name of the tool.")],
    user: User = "",
) -> None:
    """Remove a pin: the tool is again defined by what agents declare."""
    author = (await context.resolve_reviewer(user)).name
    try:
        gone: Pin = await context.services.store.unpin(context.workspace, tool, author)
    except NotFound as error:
        names = [pin.tool for pin in await context.services.store.pins(context.workspace)]
        raise NotFound(error.message + (did_you_mean(tool, names) or " See: interlock tools list"), tool=tool) from None
    if context.json:
        print_json(pin_json(gone))
    else:
        say(f"Unpinned {escape_invisible(gone.tool)}. From now on its agents' declarations define it.")


async def _pin_all(context: CommandContext, agent: str, author: str, *, sure: bool) -> None:
    """Pin all. Shows each effect before pinning; without a terminal nothing is pinned unless `sure`."""
    specs, left_out = await (await make_catalog(context, agent)).select_pins(context.now())
    if not context.json:
        show(table(("TOOL", "EFFECT", ""), [_pin_row(spec) for spec in specs]))
        for tool, reason in left_out:
            say(f"Skipped: {escape_invisible(tool)}, since {escape_invisible(reason)}.", style="yellow")
    if specs and not sure:
        _confirm(f"Pin {pluralize(len(specs), 'tool', 'tools')}?")
    made = await context.services.store.pin(context.workspace, specs, agent, author)
    if context.json:
        told = [{"tool": tool, "reason": reason} for tool, reason in left_out]
        print_json({"pinned": [pin_json(each) for each in made], "left_out": told})
    else:
        say(f"Pinned {pluralize(len(made), 'tool', 'tools')} of {escape_invisible(agent)}.")


def _confirm(question: str) -> None:
    """Ask for confirmation; without a terminal the answer is no."""
    if not is_interactive():
        raise InvalidRequest(
            f"{question} Nothing was pinned, since there is no terminal to confirm at. To pin: add --yes"
        )
    prompts.confirm(question)


def _pin_row(spec: ToolSpec) -> tuple[str, ...]:
    return escape_invisible(spec.name), spec.effect, "idempotent" if spec.idempotent else ""


def _pin_text(spec: ToolSpec) -> str:
    more = [f"secret {', '.join(map(escape_invisible, spec.secret))}"] if spec.secret else []
    more += ["idempotent"] if spec.idempotent else []
    more += [] if spec.schema is not None else ["without a schema"]
    return ", ".join([f"{escape_invisible(spec.name)} as {spec.effect}", *more])


def _look_alike_text(name: str, others: Sequence[str]) -> str:
    return f"{escape_non_ascii(name)} looks like {', '.join(map(escape_non_ascii, others))}" if others else ""


def _row(tool: CatalogTool) -> tuple[str, ...]:
    last = local_time(tool.last_at) if tool.last_at is not None else ""
    more = (
        f"changed: {', '.join(tool.changed)}"
        if tool.changed
        else "trusted as declared"
        if tool.is_declaration_trusted
        else ""
    )
    more = "; ".join(filter(None, (_look_alike_text(tool.name, tool.looks_like), more)))
    agents = ", ".join(map(escape_invisible, tool.agents))
    return escape_invisible(tool.name), tool.status, tool.spec.effect or "unknown", agents, str(tool.calls), last, more
