"""`interlock policy rehearse` and `shadow`: what a draft, or a rule in shadow mode, would have done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from interlock.app.bootstrap import names_of
from interlock.cli.differences import show_difference, summed_up
from interlock.cli.output import print_json, say, show, table
from interlock.cli.policies import Source, current, load
from interlock.cli.rehearsals import show_rehearsal
from interlock.cli.shared import Desk, command, kept
from interlock.core.card import visible
from interlock.core.policy import Policy
from interlock.core.shadowing import Shadow, Shadows
from interlock.notify.workspace_channels import reaching_of
from interlock.policy.diff import compare
from interlock.policy.file import read_policy
from interlock.policy.rehearsal import Told, rehearse, shadowed
from interlock.presenters.policy import difference_json, rehearsal_json
from interlock.presenters.text import counted
from interlock.runtime.durations import parse_duration, rfc3339, show_duration

app = typer.Typer()

Since = Annotated[str, typer.Option(metavar="DURATION", help="How far to look back: 12h, 7d, 30d.")]
MONTH = "30d"


@command(app, kept)
async def shadow(desk: Desk, since: Since = MONTH) -> None:
    """What rules with mode: shadow would have done, as it was noted when the calls were made."""
    window = parse_duration(since)
    with _progress(desk, "Reading the ledger") as told:
        found = await shadowed(desk.parts.store, desk.workspace, desk.now() - window, told)
    policy = load(await current(desk), desk.own).policy
    if desk.json:
        print_json(_shadows_json(found, policy))
    else:
        _tell_shadows(found, policy, window)


@command(app, kept, "rehearse")
async def rehearse_draft(
    desk: Desk,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The draft.")],
    since: Since = MONTH,
    limit: Annotated[int, typer.Option(min=0, max=10_000, help="How many of the changed calls to list.")] = 20,
    fail_on_loosened: Annotated[
        bool, typer.Option("--fail-on-loosened", help="Exit with 1 if a call that is asked or denied now could run.")
    ] = False,
) -> None:
    """Try a draft on the calls that were recorded, beside the policy in force. Nothing is changed or recorded."""
    window = parse_duration(since)
    names = names_of(await desk.parts.store.users(desk.workspace), reaching_of(desk.settings, desk.workspace))
    draft, in_force = Source(read_policy(file), str(file)), await current(desk)
    new, old = load(draft, desk.own, names).policy, load(in_force, desk.own).policy
    begin = desk.now() - window
    with _progress(desk, "Rehearsing") as told:
        rehearsed = await rehearse(desk.parts.store, desk.workspace, (old, new), begin, limit, told)
    difference = compare(old, new)
    if desk.json:
        body = rehearsal_json(rehearsed, desk.now(), desk.settings.storage.kept)
        print_json({"in_force": in_force.origin, "draft": draft.origin, **body, "diff": difference_json(difference)})
    else:
        say(f"In force: {visible(in_force.origin)}")
        say(f"Draft:    {visible(draft.origin)}: {summed_up(difference) or 'no rule differs'}")
        show_difference(difference)
        show_rehearsal(rehearsed, desk.now(), show_duration(window), desk.settings.storage)
    if fail_on_loosened and rehearsed.report.loosened:
        raise typer.Exit(1)


@contextmanager
def _progress(desk: Desk, what: str) -> Iterator[Told]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=desk.json or not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _tell_shadows(found: Shadows, policy: Policy, window: int) -> None:
    known = _known(policy)
    seen = {each.rule for each in found.rules}
    rows = [_row(each, known) for each in found.rules]
    rows += [(visible(name), "0", "-", "in force") for name in known if name not in seen]
    if rows:
        show(table(("RULE", "CALLS", "WOULD HAVE BEEN", "RULE IS"), rows, stretch="RULE"))
    else:
        say("There is no rule with mode: shadow, and none noted anything.")
    calls = counted(found.calls, "call", "calls")
    say(f"{calls} of the last {show_duration(window)}, allowed reads not among them: those are only counted.")
    if found.erased:
        say(f"The notes of {counted(found.erased, 'call', 'calls')} were erased.", style="yellow")


def _row(each: Shadow, known: frozenset[str]) -> tuple[str, str, str, str]:
    turns = ", ".join(f"{count:,} {old} → {new}" for (old, new), count in each.turns.items())
    return visible(each.rule), f"{each.calls:,}", turns, "in force" if each.rule in known else "gone, or enforced now"


def _known(policy: Policy) -> frozenset[str]:
    return frozenset(rule.name for rule in policy.rules if rule.shadow)


def _shadows_json(found: Shadows, policy: Policy) -> dict[str, object]:
    known, seen = _known(policy), {each.rule for each in found.rules}
    items = [_shadow_json(each, known) for each in found.rules]
    items += [{"rule": name, "calls": 0, "turns": [], "in_force": True} for name in sorted(known - seen)]
    return {"calls": found.calls, "erased": found.erased, "items": items, "next": None}


def _shadow_json(each: Shadow, known: frozenset[str]) -> dict[str, object]:
    turns = [{"from": old, "to": new, "calls": count} for (old, new), count in each.turns.items()]
    times = {"first": rfc3339(each.first), "last": rfc3339(each.last)}
    return {"rule": each.rule, "calls": each.calls, "turns": turns, "in_force": each.rule in known, **times}
