"""What a model is told about a call: one message for each outcome, in the chat, in programs and in every framework.

A message is JSON: the tool's result, a person's answer in their own words, or an object with `success: false`, the
status and an error. A framework that takes only text gets the same words by `message_text` or `plain_text`.
"""

from __future__ import annotations

import json

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
