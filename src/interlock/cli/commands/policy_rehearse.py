"""`interlock policy rehearse` and `shadow`: what a draft, or a rule in shadow mode, would have done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from interlock.app.bootstrap import known_names
from interlock.cli.commands.policy_versions import difference_summary, show_difference
from interlock.cli.context import CommandContext, command, open_database
from interlock.cli.output import local_time, print_json, say, short_id, shorten, show, table
from interlock.cli.policy_in_force import PolicySource, current_source, load_source
from interlock.config.models import StorageSettings
from interlock.core.card import visible
from interlock.core.policy.analysis import (
    ChangedCall,
    RehearsalReport,
    ShadowReport,
    ShadowRuleUsage,
    VerdictChangeCause,
)
from interlock.core.policy.policy import Policy, VerdictKind
from interlock.notify.workspace_channels import policy_load_options
from interlock.policy.diff import diff_policies
from interlock.policy.file import read_policy_file
from interlock.policy.rehearsal import RehearsalResult, ReportProgress, run_rehearsal, shadow_report
from interlock.presenters.policy import (
    VERDICT_KINDS,
    answers_per_day,
    difference_json,
    recorded_sentence,
    rehearsal_json,
)
from interlock.presenters.text import pluralize
from interlock.runtime.durations import format_duration, parse_duration, rfc3339

app = typer.Typer()

Since = Annotated[str, typer.Option(metavar="DURATION", help="How far to look back: 12h, 7d, 30d.")]
MONTH = "30d"


@command(app, open_database)
async def shadow(desk: CommandContext, since: Since = MONTH) -> None:
    """What rules with mode: shadow would have done, as it was noted when the calls were made."""
    window = parse_duration(since)
    with _progress(desk, "Reading the ledger") as told:
        found = await shadow_report(desk.parts.store, desk.workspace, desk.now() - window, told)
    policy = load_source(await current_source(desk), desk.own).policy
    if desk.json:
        print_json(_shadows_json(found, policy))
    else:
        _print_shadows(found, policy, window)


@command(app, open_database, "rehearse")
async def rehearse_draft(
    desk: CommandContext,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The draft.")],
    since: Since = MONTH,
    limit: Annotated[int, typer.Option(min=0, max=10_000, help="How many of the changed calls to list.")] = 20,
    fail_on_loosened: Annotated[
        bool, typer.Option("--fail-on-loosened", help="Exit with 1 if a call that is asked or denied now could run.")
    ] = False,
) -> None:
    """Try a draft on the calls that were recorded, beside the policy in force. Nothing is changed or recorded."""
    window = parse_duration(since)
    names = known_names(
        await desk.parts.store.users(desk.workspace), policy_load_options(desk.settings, desk.workspace)
    )
    draft, in_force = PolicySource(read_policy_file(file), str(file)), await current_source(desk)
    new, old = load_source(draft, desk.own, names).policy, load_source(in_force, desk.own).policy
    begin = desk.now() - window
    with _progress(desk, "Rehearsing") as told:
        rehearsed = await run_rehearsal(desk.parts.store, desk.workspace, (old, new), begin, limit, told)
    difference = diff_policies(old, new)
    if desk.json:
        body = rehearsal_json(rehearsed, desk.now(), desk.settings.storage.kept)
        print_json({"in_force": in_force.origin, "draft": draft.origin, **body, "diff": difference_json(difference)})
    else:
        say(f"In force: {visible(in_force.origin)}")
        say(f"Draft:    {visible(draft.origin)}: {difference_summary(difference) or 'no rule differs'}")
        show_difference(difference)
        show_rehearsal(rehearsed, desk.now(), format_duration(window), desk.settings.storage)
    if fail_on_loosened and rehearsed.report.loosened:
        raise typer.Exit(1)


@contextmanager
def _progress(desk: CommandContext, what: str) -> Iterator[ReportProgress]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=desk.json or not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _print_shadows(found: ShadowReport, policy: Policy, window: int) -> None:
    known = _shadow_rule_names(policy)
    seen = {each.rule for each in found.rules}
    rows = [_row(each, known) for each in found.rules]
    rows += [(visible(name), "0", "-", "in force") for name in known if name not in seen]
    if rows:
        show(table(("RULE", "CALLS", "WOULD HAVE BEEN", "RULE IS"), rows, stretch="RULE"))
    else:
        say("There is no rule with mode: shadow, and none noted anything.")
    calls = pluralize(found.calls, "call", "calls")
    say(f"{calls} of the last {format_duration(window)}, allowed reads not among them: those are only counted.")
    if found.erased:
        say(f"The notes of {pluralize(found.erased, 'call', 'calls')} were erased.", style="yellow")


def _row(each: ShadowRuleUsage, known: frozenset[str]) -> tuple[str, str, str, str]:
    turns = ", ".join(f"{count:,} {old} → {new}" for (old, new), count in each.turns.items())
    return visible(each.rule), f"{each.calls:,}", turns, "in force" if each.rule in known else "gone, or enforced now"


def _shadow_rule_names(policy: Policy) -> frozenset[str]:
    return frozenset(rule.name for rule in policy.rules if rule.shadow)


def _shadows_json(found: ShadowReport, policy: Policy) -> dict[str, object]:
    known, seen = _shadow_rule_names(policy), {each.rule for each in found.rules}
    items = [_shadow_json(each, known) for each in found.rules]
    items += [{"rule": name, "calls": 0, "turns": [], "in_force": True} for name in sorted(known - seen)]
    return {"calls": found.calls, "erased": found.erased, "items": items, "next": None}


def _shadow_json(each: ShadowRuleUsage, known: frozenset[str]) -> dict[str, object]:
    turns = [{"from": old, "to": new, "calls": count} for (old, new), count in each.turns.items()]
    times = {"first": rfc3339(each.first), "last": rfc3339(each.last)}
    return {"rule": each.rule, "calls": each.calls, "turns": turns, "in_force": each.rule in known, **times}


MAX_CAUSES = 20
MAX_RULE = 60  # characters of its name in a row
ALARM = "bold red"


def show_rehearsal(rehearsed: RehearsalResult, now: int, window: str, storage: StorageSettings) -> None:
    report = rehearsed.report
    if report.calls:
        between = f"{local_time(report.first)} to {local_time(report.last)}"
        say(f"\nRehearsed {pluralize(report.calls, 'call', 'calls')} of the last {window}: {between}.\n", style="bold")
        show(
            table(
                ("NOW", *(f"DRAFT: {kind}" for kind in VERDICT_KINDS)),
                [_matrix_row(report, kind) for kind in VERDICT_KINDS],
            )
        )
        _print_changes(report)
        _show_causes(report)
        _show_load(report, now)
        _show_changed(report)
    else:
        say(f"\nThere is no call of the last {window} to rehearse.")
    _print_limits(rehearsed, storage)


def _matrix_row(report: RehearsalReport, old: VerdictKind) -> list[str]:
    return [old, *(f"{report.turns.get((old, new), 0):,}" for new in VERDICT_KINDS)]


def _print_changes(report: RehearsalReport) -> None:
    turned = pluralize(report.turned, "call", "calls")
    say(f"\n{turned} would get another verdict, and {report.other_terms:,} would be asked about on other terms.")
    if report.loosened:
        could = pluralize(report.loosened, "call", "calls")
        say(f"LOOSENED: {could} could run without the people who have to agree now.", style=ALARM)
    if report.outdated:
        were = pluralize(report.outdated, "call was", "calls were")
        say(f"{were} judged otherwise when made: the policy was another one. NOW is what it says today.")


def _show_causes(report: RehearsalReport) -> None:
    causes = list(report.causes.items())
    if causes:
        heads = ("CALLS", "NOW → DRAFT", "RULE NOW", "RULE IN THE DRAFT")
        say("")
        show(table(heads, [_cause_row(cause, count) for cause, count in causes[:MAX_CAUSES]], stretch=heads[-1]))
    if len(causes) > MAX_CAUSES:
        say(f"… and {len(causes) - MAX_CAUSES:,} more; --json shows all")


def _cause_row(cause: VerdictChangeCause, count: int) -> list[Text | str]:
    turn = Text(_change_text(cause.old, cause.new), style=ALARM if cause.loosened else "")
    return [f"{count:,}", turn, _rule_text(cause.old_rule), _rule_text(cause.new_rule)]


def _show_load(report: RehearsalReport, now: int) -> None:
    rows = [_load_row(*load) for load in answers_per_day(report, now)]
    if rows:
        say("")
        show(table(("ANSWERS A DAY", "NOW", "DRAFT", "MORE"), rows))


def _load_row(words: str, old: float, new: float) -> tuple[str, str, str, str]:
    more = round(new, 1) - round(old, 1)  # so that it fits the figures beside it
    return visible(words), f"{old:,.1f}", f"{new:,.1f}", f"{more:+,.1f}" if more else "-"


def _show_changed(report: RehearsalReport) -> None:
    if not report.changed:
        return
    heads = ("ID", "WHEN", "CALL", "TOOL", "AGENT", "NOW → DRAFT", "RULE IN THE DRAFT")
    say("")
    show(table(heads, map(_changed_row, report.changed), stretch="CALL", spare=("AGENT", "TOOL", "WHEN")))
    more = report.turned + report.other_terms - len(report.changed)
    if more:
        say(f"… and {more:,} more; --limit N lists more of them")


def _changed_row(changed: ChangedCall) -> list[Text | str]:
    each = changed.recorded
    turn = Text(_change_text(*changed.turn), style=ALARM if changed.loosened else "")
    sentence, agent = shorten(visible(recorded_sentence(each))), visible(each.call.path[-1] if each.call.path else "-")
    where = (local_time(each.at), sentence, visible(each.call.tool), agent)
    return [short_id(each.approval_id) or "-", *where, turn, _rule_text(changed.new.rule)]


def _print_limits(rehearsed: RehearsalResult, storage: StorageSettings) -> None:
    say("")
    if rehearsed.report.calls:
        kept = "for ever" if storage.retention is None else f"for {storage.kept} after the end of a call"
        say(f"Content reaches back to {local_time(rehearsed.report.first)}; it is kept {kept} (storage.retention).")
    if rehearsed.erased:
        erased = pluralize(rehearsed.erased, "call", "calls")
        say(f"{erased} could not be rehearsed: their arguments were erased.", style="yellow")
    reads = pluralize(rehearsed.allowed_reads, "so far", "so far")
    say(f"Reads that were allowed are only counted ({reads}): they cannot be rehearsed.")


def _change_text(old: VerdictKind, new: VerdictKind) -> str:
    return f"{old} → {new}" if old != new else f"{old}, other terms"


def _rule_text(name: str) -> str:
    return shorten(visible(name), MAX_RULE) if name else "(no rule: the defaults)"
