"""Terms in plain words: who has to agree, what they may say, and what time does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlock.core.card import visible
from interlock.core.policy.policy import Ask, People, Stage
from interlock.runtime.durations import show_duration


def needs(terms: Ask) -> str:
    """`2 people of team finance, then 1 person of team legal; not the requester`."""
    stages = ", then ".join(map(_stage, terms.stages))
    return stages + (f"; not the {' or '.join(sorted(terms.exclude))}" if terms.exclude else "")


def terms_lines(terms: Ask) -> Iterator[tuple[str, str]]:
    yield "needs", needs(terms)
    yield "answers", ", ".join(terms.decisions) or "none: nobody can answer this"
    yield "priority", terms.priority
    if terms.channels:
        yield "told at", ", ".join(map(visible, terms.channels))
    yield "expires", f"after {show_duration(terms.expires_in)}; {_at_the_end(terms)}"
    for rung in terms.ladder:
        channels = f" by {', '.join(map(visible, rung.channels))}" if rung.channels else ""
        yield "escalates", f"after {show_duration(rung.after)} to {who(rung.to) or 'nobody new'}{channels}"
    if terms.remind:
        yield "reminds", "after " + ", ".join(show_duration(after or terms.expires_in // 2) for after in terms.remind)
    yield "undo", f"a rejection can be taken back for {show_duration(terms.undo_window)}"
    yield "start", f"within {show_duration(terms.start_within)} of the approval"


def who(people: People) -> str:
    """The empty text for nobody."""
    teams = [f"team {visible(team)}" for team in sorted(people.teams)]
    return " or ".join([*map(visible, sorted(people.users)), *teams])


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def listed(words: Sequence[str]) -> str:
    return ", ".join(words) if words else "none"


def _stage(stage: Stage) -> str:
    people = counted(stage.quorum, "person", "people")
    if stage.approvers is None:
        return f"{people}: the requester, a reviewer or an admin"
    return f"{people}: {who(stage.approvers) or 'nobody'}"


def _at_the_end(terms: Ask) -> str:
    match terms.on_expiry:
        case "approve":
            return "then it is approved, since the rule says so"
        case "escalate" | "reject":
            return "then it counts as timed out"
