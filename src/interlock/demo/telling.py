"""What became of calls, in words: what ran, what people changed, what did not run and why, and what nobody knows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from interlock.core.chat.prompt import ModelReply, PromptMessage, ToolRequest, ToolResult

MAX_ITEMS = 12  # lines of a list
MAX_VALUE = 200  # characters of a value
MAX_REPORT = 2_000  # characters of what another agent said


def describe_results(results: Sequence[ToolResult]) -> str:
    """One paragraph for each call, in the order of the calls."""
    return "\n\n".join(map(_describe_result, results))


def find_open_question(messages: Sequence[PromptMessage]) -> ToolRequest | None:
    """The call that was answered with a question, if the reply before the last message put it to the person.

    One confirmation is open per thread: of several, the last.
    """
    replies = [number for number, each in enumerate(messages) if isinstance(each, ModelReply)]
    if len(replies) < 2:
        return None
    first, second = replies[-2:]
    called = messages[first]
    results = [each for each in messages[first:second] if isinstance(each, ToolResult)]
    waiting = {each.call_id for each in results if _field(each.content, "requires_confirmation") is True}
    wishes = called.wishes if isinstance(called, ModelReply) else ()
    return next((wish for wish in reversed(wishes) if wish.id in waiting), None)


def _describe_result(result: ToolResult) -> str:
    name, content = f"`{result.tool}`", result.content
    if _field(content, "requires_confirmation") is True:
        return f"{_question_text(content)}\n\nShall I go on? Please answer yes or no."
    if _field(content, "declined") is True:
        return _describe_not_run(name, content)
    if _field(content, "success") is False:
        return _describe_failure(name, content) + _describe_edit(content)
    if result.tool == "request_human_input":
        return f"You answered: {_short(_field(content, 'answer') or content)}."
    if result.tool.startswith("agent_"):
        return _describe_report(result.tool.removeprefix("agent_"), content)
    return _describe_success(name, content)


def _describe_not_run(name: str, content: object) -> str:
    reason = _short(_field(content, "reason") or "no reason was given").rstrip(".")
    match _field(content, "status"):
        case "expired":
            return f"{name} timed out and did not run: {reason}."
        case "cancelled":
            return f"{name} was withdrawn and did not run: {reason}."
        case "denied":
            return f"{name} is not allowed and did not run: {reason}."
        case _:
            return f"{name} was declined and did not run: {reason}. I leave it at that."


def _describe_failure(name: str, content: object) -> str:
    error = _short(_field(content, "error") or "no error was given").rstrip(".")
    match _field(content, "status"):
        case "responded":
            return f"{name} did not run; a person answered instead: {_short(_field(content, 'answered'))}."
        case "unknown":
            return f"Nobody knows whether {name} took effect. Somebody has to look before it is tried again."
        case "invalid":
            return f"{name} was not asked for in a way that it takes: {error}."
        case _:
            return f"{name} failed: {error}."


def _describe_report(agent: str, content: object) -> str:
    said, status = _field(content, "said") or content, _field(content, "status") or "done"
    if status == "done":
        return f"The {agent} is done and says:\n\n{_short(said, MAX_REPORT)}"
    return f"The {agent} did not get to the end ({_short(_field(content, 'reason') or status)})."


def _describe_success(name: str, content: object) -> str:
    items = _items(content)
    if items is not None:
        lines = [f"- {_line(item)}" for item in items[:MAX_ITEMS]]
        more = [f"- and {len(items) - MAX_ITEMS} more"] if len(items) > MAX_ITEMS else []
        return "\n".join([f"{name} found {len(items)}:", *lines, *more])
    facts = _line(_field(content, "result") or content)
    return f"{name} ran{f': {facts}' if facts else ''}.{_describe_edit(content)}"


def _describe_edit(content: object) -> str:
    if _field(content, "edited") is not True:
        return ""
    ran_with, changed = _field(content, "ran_with"), _field(content, "changed")
    if isinstance(changed, list) and isinstance(ran_with, Mapping):
        ran_with = {name: ran_with.get(name) for name in changed}
    return f" A person changed the arguments before it ran; it ran with {_short(ran_with)}."


_FACTS = ("identifier", "number", "id", "slug", "title", "name", "status", "state", "sections", "quarter", "url")


def _items(content: object) -> list[object] | None:
    match content:
        case list():
            return content
        case {**fields}:
            return next((value for key, value in fields.items() if isinstance(value, list) and key in _LISTS), None)
        case _:
            return None


_LISTS = ("items", "issues", "posts", "pages", "images", "objectives", "deleted")


def _line(item: object) -> str:
    match item:
        case {**fields}:
            facts = [f"{key} {_short(fields[key])}" for key in _FACTS if fields.get(key) not in (None, "", {}, [])]
            return ", ".join(facts[:4])
        case None | True:
            return ""
        case _:
            return _short(item)


def _question_text(content: object) -> str:
    """What would happen, in the words of the tool."""
    parts = [_field(content, key) for key in ("message", "would")]
    return "\n\n".join(part for part in parts if isinstance(part, str) and part)


def _field(content: object, key: str) -> object:
    return content.get(key) if isinstance(content, Mapping) else None


def _short(value: object, longest: int = MAX_VALUE) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= longest else f"{text[:longest]}…"
