"""What a model is told about a call: one message for each outcome, in the chat, in programs and in every framework.

A message is JSON: the tool's result, a person's answer in their own words, or an object with `success: false`, the
status and an error. A framework that takes only text gets the same words by `message_text` or `plain_text`. In the
chat, the result of a call is bounded, and says what a person edited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from interlock.core.canonical import canonical
from interlock.core.errors import EffectUnknown, Error, InvalidRequest, ToolFailed
from interlock.core.outcome import Answered, Finished, Outcome, Refused


def to_model_message(outcome: Outcome, tool: str) -> object:
    """The message about a call that did not run just now; raises TypeError for one that waits or may run."""
    match outcome:
        case Finished("succeeded", said) | Answered(said):
            return said
        case _:
            return _problem(outcome, tool)


def refusal_message(refused: Refused, tool: str) -> dict[str, object]:
    """The message about a call that must not run; it keeps the conversation valid."""
    reason = refused.reason or f"{tool} requires approval and was not permitted"
    return {
        "success": False,
        "cancelled": True,
        "declined": True,
        "status": refused.status,
        "reason": reason,
        "error": f"Access denied: {reason}",
    }


def error_message(error: Error, tool: str) -> dict[str, object]:
    """The message about a call that ended in an error: nothing ran, or the tool failed, or its effect is unknown."""
    match error:
        case EffectUnknown():
            return _problem(Finished("unknown"), tool)
        case ToolFailed():
            return _problem(Finished("failed", error=error.message), tool)
        case InvalidRequest():
            return problem_message("invalid", error.message)
        case _:
            return problem_message(error.code, error.message)


def problem_message(status: str, error: str) -> dict[str, object]:
    """The message about a call without a result."""
    return {"success": False, "status": status, "error": error}


def message_text(message: object) -> str:
    """A message as text: words as they are, everything else as JSON."""
    return message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)


def plain_text(outcome: Outcome, tool: str) -> str:
    """The message in words alone, for frameworks that show them as an error."""
    match outcome:
        case Finished("succeeded", said) | Answered(said):
            return message_text(said)
        case _:
            return str(_problem(outcome, tool)["error"])


def _problem(outcome: Outcome, tool: str) -> dict[str, object]:
    match outcome:
        case Refused():
            return refusal_message(outcome, tool)
        case Finished("failed", _, error):
            return problem_message("failed", error or "The tool failed.")
        case Finished(status):
            told = f"{tool} was started, but its outcome is unknown. Do not call it again: a person has to check first."
            return problem_message(status, told)
        case _:
            raise TypeError(f"There is nothing to tell of {outcome!r} yet.")


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
            return with_edit(cast(dict[str, object], message), edit, "A person changed the arguments to these.")
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


RAN_EDITED = "A person changed the arguments before it ran. It ran with these, not with yours."


def with_edit(body: dict[str, object], edit: ArgumentEdit | None, note: str = RAN_EDITED) -> dict[str, object]:
    if edit is None:
        return body
    return {**body, "edited": True, "changed": list(edit.changed), "ran_with": bound_result(edit.args), "note": note}
