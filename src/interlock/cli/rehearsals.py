"""What a rehearsal found, for people and for programs."""

from __future__ import annotations

from rich.text import Text

from interlock.cli.output import clock_time, say, short, short_id, show, table
from interlock.config.models import Storage
from interlock.core.card import visible
from interlock.core.policy import Then
from interlock.core.rehearsal import Cause, Changed, Report
from interlock.policy.rehearsal import Rehearsed
from interlock.presenters.policy import KINDS, answers_a_day, recorded_sentence
from interlock.presenters.text import counted

MAX_CAUSES = 20
MAX_RULE = 60  # characters of its name in a row
ALARM = "bold red"


def show_rehearsal(rehearsed: Rehearsed, now: int, window: str, storage: Storage) -> None:
    report = rehearsed.report
    if report.calls:
        between = f"{clock_time(report.first)} to {clock_time(report.last)}"
        say(f"\nRehearsed {counted(report.calls, 'call', 'calls')} of the last {window}: {between}.\n", style="bold")
        show(table(("NOW", *(f"DRAFT: {kind}" for kind in KINDS)), [_matrix_row(report, kind) for kind in KINDS]))
        _tell_changes(report)
        _show_causes(report)
        _show_load(report, now)
        _show_changed(report)
    else:
        say(f"\nThere is no call of the last {window} to rehearse.")
    _tell_limits(rehearsed, storage)


def _matrix_row(report: Report, old: Then) -> list[str]:
    return [old, *(f"{report.turns.get((old, new), 0):,}" for new in KINDS)]


def _tell_changes(report: Report) -> None:
    turned = counted(report.turned, "call", "calls")
    say(f"\n{turned} would get another verdict, and {report.other_terms:,} would be asked about on other terms.")
    if report.loosened:
        could = counted(report.loosened, "call", "calls")
        say(f"LOOSENED: {could} could run without the people who have to agree now.", style=ALARM)
    if report.outdated:
        were = counted(report.outdated, "call was", "calls were")
        say(f"{were} judged otherwise when made: the policy was another one. NOW is what it says today.")


def _show_causes(report: Report) -> None:
    causes = list(report.causes.items())
    if causes:
        heads = ("CALLS", "NOW → DRAFT", "RULE NOW", "RULE IN THE DRAFT")
        say("")
        show(table(heads, [_cause_row(cause, count) for cause, count in causes[:MAX_CAUSES]], stretch=heads[-1]))
    if len(causes) > MAX_CAUSES:
        say(f"… and {len(causes) - MAX_CAUSES:,} more; --json shows all")


def _cause_row(cause: Cause, count: int) -> list[Text | str]:
    turn = Text(_turn_words(cause.old, cause.new), style=ALARM if cause.loosened else "")
    return [f"{count:,}", turn, _rule(cause.old_rule), _rule(cause.new_rule)]


def _show_load(report: Report, now: int) -> None:
    rows = [_load_row(*load) for load in answers_a_day(report, now)]
    if rows:
        say("")
        show(table(("ANSWERS A DAY", "NOW", "DRAFT", "MORE"), rows))


def _load_row(words: str, old: float, new: float) -> tuple[str, str, str, str]:
    more = round(new, 1) - round(old, 1)  # so that it fits the figures beside it
    return visible(words), f"{old:,.1f}", f"{new:,.1f}", f"{more:+,.1f}" if more else "-"


def _show_changed(report: Report) -> None:
    if not report.changed:
        return
    heads = ("ID", "WHEN", "CALL", "TOOL", "AGENT", "NOW → DRAFT", "RULE IN THE DRAFT")
    say("")
    show(table(heads, map(_changed_row, report.changed), stretch="CALL", spare=("AGENT", "TOOL", "WHEN")))
    more = report.turned + report.other_terms - len(report.changed)
    if more:
        say(f"… and {more:,} more; --limit N lists more of them")


def _changed_row(changed: Changed) -> list[Text | str]:
    each = changed.recorded
    turn = Text(_turn_words(*changed.turn), style=ALARM if changed.loosened else "")
    sentence, agent = short(visible(recorded_sentence(each))), visible(each.call.path[-1] if each.call.path else "-")
    where = (clock_time(each.at), sentence, visible(each.call.tool), agent)
    return [short_id(each.approval_id) or "-", *where, turn, _rule(changed.new.rule)]


def _tell_limits(rehearsed: Rehearsed, storage: Storage) -> None:
    say("")
    if rehearsed.report.calls:
        kept = "for ever" if storage.retention is None else f"for {storage.kept} after the end of a call"
        say(f"Content reaches back to {clock_time(rehearsed.report.first)}; it is kept {kept} (storage.retention).")
    if rehearsed.erased:
        erased = counted(rehearsed.erased, "call", "calls")
        say(f"{erased} could not be rehearsed: their arguments were erased.", style="yellow")
    reads = counted(rehearsed.allowed_reads, "so far", "so far")
    say(f"Reads that were allowed are only counted ({reads}): they cannot be rehearsed.")


def _turn_words(old: Then, new: Then) -> str:
    return f"{old} → {new}" if old != new else f"{old}, other terms"


def _rule(name: str) -> str:
    return short(visible(name), MAX_RULE) if name else "(no rule: the defaults)"
