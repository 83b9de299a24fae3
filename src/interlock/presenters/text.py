"""Terms as plain text: who has to approve, which decisions are possible, and the timers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from interlock.core.card import escape_invisible
from interlock.core.policy.policy import Ask, People, Stage
from interlock.runtime.durations import format_duration


def approvers_text(terms: Ask) -> str:
    """Text such as `2 people of team finance, then 1 person of team legal; not the requester`."""
    return stages_text(terms.stages, terms.exclude)


def stages_text(stages: Iterable[Stage], excluded: Iterable[str]) -> str:
    text, names = ", then ".join(map(_stage_text, stages)), sorted(excluded)
    return text + (f"; not the {' or '.join(names)}" if names else "")


def terms_lines(terms: Ask) -> Iterator[tuple[str, str]]:
    yield "needs", approvers_text(terms)
    yield "answers", ", ".join(terms.decisions) or "none"
    yield "priority", terms.priority
    if terms.channels:
        yield "channels", ", ".join(map(escape_invisible, terms.channels))
    yield "expires", f"after {format_duration(terms.expires_in)}; {_expiry_text(terms)}"
    for step in terms.escalation_steps:
        channels = f" by {', '.join(map(escape_invisible, step.channels))}" if step.channels else ""
        yield "escalates", f"after {format_duration(step.after)} to {people_text(step.to) or 'nobody new'}{channels}"
    if terms.remind:
        yield "reminds", "after " + ", ".join(format_duration(after or terms.expires_in // 2) for after in terms.remind)
    yield "undo", f"a rejection can be undone for {format_duration(terms.undo_window)}"
    yield "start", f"within {format_duration(terms.start_within)} of the approval"


def people_text(people: People) -> str:
    """People and teams as text; empty for nobody."""
    teams = [f"team {escape_invisible(team)}" for team in sorted(people.teams)]
    return " or ".join([*map(escape_invisible, sorted(people.users)), *teams])


def pluralize(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def join_or_none(words: Sequence[str]) -> str:
    return ", ".join(words) if words else "none"


def _stage_text(stage: Stage) -> str:
    people = pluralize(stage.quorum, "person", "people")
    if stage.approvers is None:
        return f"{people}: the requester, a reviewer or an admin"
    return f"{people}: {people_text(stage.approvers) or 'nobody'}"


def _expiry_text(terms: Ask) -> str:
    match terms.on_expiry:
        case "approve":
            return "then it is approved, as the rule says"
        case "escalate" | "reject":
            return "then it counts as timed out"
