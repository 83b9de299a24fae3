"""Tool results for the model: exactly one for each call, and truthful about what ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from interlock.core.canonical import canonical
from interlock.core.errors import InvalidRequest
from interlock.core.outcome import Finished, Outcome
from interlock.presenters.model_message import problem_message, to_model_message

MAX_TEXT = 100_000  # characters of a text in a result
MAX_RESULT_BYTES = 500_000  # of a whole result: with its envelope, it has to fit into one entry


class ArgumentEdit(NamedTuple):
    """Edited arguments: `args` replaced the model's; `changed` names those that differ."""

    args: Mapping[str, object]
    changed: tuple[str, ...]


def compare_arguments(proposed: Mapping[str, object], ran_with: Mapping[str, object]) -> ArgumentEdit:
    names = {*proposed, *ran_with}
    differ = (
        name for name in names if (name in proposed, proposed.get(name)) != (name in ran_with, ran_with.get(name))
    )
    return ArgumentEdit(ran_with, tuple(sorted(differ)))


def outcome_response(outcome: Outcome, tool: str, edit: ArgumentEdit | None = None) -> object:
    """Return the message for the model; of a call that ran with edited arguments it says so."""
    message = to_model_message(outcome, tool)
    match outcome:
        case Finished("succeeded") if edit is not None:
            return with_edit({"success": True, "result": message}, edit)
        case Finished("failed" | "unknown"):
            return with_edit(cast(dict[str, object], message), edit)
        case _:
            return message


def unknown_tool_response(tool: str, offered: Sequence[str]) -> object:
    names = ", ".join(sorted(offered)[:100]) or "none"
    return problem_message("failed", f"There is no tool {tool[:200]!r}. The tools are: {names}.")


def bound_result(value: object) -> object:
    """Return a result that can be stored. One that is too long or not JSON is replaced by a note: the tool has run."""
    shortened = cut_texts(value)
    try:
        size = len(canonical(shortened))
    except InvalidRequest as error:
        return {"note": f"The result was left out, since it cannot be kept: {error.message}"}
    if size <= MAX_RESULT_BYTES:
        return shortened
    return {"note": f"The result was left out, since it is too long: {size:,} bytes of at most {MAX_RESULT_BYTES:,}."}


def cut_texts(value: object) -> object:
    """Cut long texts inside a result, with a note."""
    match value:
        case str() if len(value) > MAX_TEXT:
            return f"{value[:MAX_TEXT]}… ({len(value) - MAX_TEXT:,} more characters were cut off)"
        case Mapping():
            return {str(name): cut_texts(inner) for name, inner in value.items()}
        case list() | tuple():
            return [cut_texts(inner) for inner in value]
        case _:
            return value


def with_edit(body: dict[str, object], edit: ArgumentEdit | None) -> dict[str, object]:
    if edit is None:
        return body
    note = "A person changed the arguments before it ran. It ran with these, not with yours."
    return {**body, "edited": True, "changed": list(edit.changed), "ran_with": bound_result(edit.args), "note": note}
