"""What the model is told of a call: exactly one result each, and honestly what ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.core.errors import Error
from interlock.core.outcome import Answered, Finished, Outcome, Refused, declined

MOST = 100_000  # characters of a text in a result: a model reads no book
UNKNOWN = (
    "It was started, and nobody knows whether it took effect. Do not repeat it. "
    "Tell the person that somebody has to look and say how it ended."
)


def told(outcome: Outcome, tool: str, changed: Mapping[str, object] | None = None) -> object:
    """`changed` are the arguments that a person put in place of the model's."""
    match outcome:
        case Finished("succeeded", result):
            return _edited(result, changed)
        case Finished("failed", _, error):
            return _with_edit({"success": False, "status": "failed", "error": error or "The tool failed."}, changed)
        case Finished():
            return _with_edit({"success": False, "status": "unknown", "error": UNKNOWN}, changed)
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


def _edited(result: object, changed: Mapping[str, object] | None) -> object:
    return result if changed is None else _with_edit({"success": True, "result": result}, changed)


def _with_edit(body: dict[str, object], changed: Mapping[str, object] | None) -> dict[str, object]:
    if changed is None:
        return body
    note = "A person changed the arguments before it ran. It ran with these, not with yours."
    return {**body, "edited": True, "ran_with": changed, "note": note}
