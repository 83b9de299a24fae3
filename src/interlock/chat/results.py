"""What the model is told of a call: exactly one result each, and honestly what ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from interlock.core.canonical import canonical
from interlock.core.errors import Error, InvalidRequest
from interlock.core.outcome import Answered, Finished, Outcome, Refused, declined

MOST = 100_000  # characters of a text in a result: a model reads no book
MOST_BYTES = 500_000  # of a whole result: with what goes around it, it has to fit into one line
UNKNOWN = (
    "It was started, and nobody knows whether it took effect. Do not repeat it. "
    "Tell the person that somebody has to look and say how it ended."
)


class Edit(NamedTuple):
    """`args` are those that a person put in place of the model's; `changed` names the ones that differ."""

    args: Mapping[str, object]
    changed: tuple[str, ...]


def edit_of(wanted: Mapping[str, object], ran_with: Mapping[str, object]) -> Edit:
    names = {*wanted, *ran_with}
    differ = (name for name in names if (name in wanted, wanted.get(name)) != (name in ran_with, ran_with.get(name)))
    return Edit(ran_with, tuple(sorted(differ)))


def told(outcome: Outcome, tool: str, edit: Edit | None = None) -> object:
    match outcome:
        case Finished("succeeded", result):
            return result if edit is None else with_edit({"success": True, "result": result}, edit)
        case Finished("failed", _, error):
            return with_edit({"success": False, "status": "failed", "error": error or "The tool failed."}, edit)
        case Finished():
            return with_edit({"success": False, "status": "unknown", "error": UNKNOWN}, edit)
        case Answered(message):
            note = "A person answered instead of letting it run. It did not run."
            return {"success": False, "status": "responded", "answered": message, "note": note}
        case Refused():
            return declined(outcome, tool)
        case _:
            raise TypeError(f"{type(outcome).__name__} is no result.")


def answered(message: object) -> object:
    """What a person answered to the agent's question."""
    return {"answer": message}


def not_offered(tool: str, offered: Sequence[str]) -> object:
    names = ", ".join(sorted(offered)[:100]) or "none"
    return {"success": False, "status": "failed", "error": f"There is no tool {tool[:200]!r}. The tools are: {names}."}


def misfit(error: Error) -> object:
    """Arguments that no tool could run with; nobody was asked."""
    return {"success": False, "status": "invalid", "error": f"Not run. {error.message}"}


def withdrawn(tool: str, reason: str) -> object:
    return declined(Refused(reason, "cancelled"), tool)


def fitting(value: object) -> object:
    """As it can be kept. What ran has run, whatever it gave: a result that is too long, or no JSON, is left out."""
    shortened = cut(value)
    try:
        size = len(canonical(shortened))
    except InvalidRequest as error:
        return {"note": f"The result was left out, since it cannot be kept: {error.message}"}
    if size <= MOST_BYTES:
        return shortened
    return {"note": f"The result was left out, since it is too long: {size:,} bytes of at most {MOST_BYTES:,}."}


def cut(value: object) -> object:
    """Long texts inside a result are cut, and say so."""
    match value:
        case str() if len(value) > MOST:
            return f"{value[:MOST]}… ({len(value) - MOST:,} more characters were cut off)"
        case Mapping():
            return {str(name): cut(inner) for name, inner in value.items()}
        case list() | tuple():
            return [cut(inner) for inner in value]
        case _:
            return value


def with_edit(body: dict[str, object], edit: Edit | None) -> dict[str, object]:
    if edit is None:
        return body
    note = "A person changed the arguments before it ran. It ran with these, not with yours."
    return {**body, "edited": True, "changed": list(edit.changed), "ran_with": fitting(edit.args), "note": note}
