"""The demo's fake language model: recognises the sentences of a table, and says what it is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from interlock.core.chat.thread import parse_answer
from interlock.core.chat.transcript import (
    Delta,
    ModelReply,
    Prompt,
    PromptMessage,
    PromptUserMessage,
    ToolRequest,
    ToolResult,
)
from interlock.demo.plans import Call, ScriptedPlan
from interlock.demo.sentences import (
    examples_by_subject,
    find_plan,
    is_small_talk,
    nearest_sentences,
    sentences_to_try,
)

NAME = "demo:scripted"
LABEL = "I am a small script, not a language model: this is the demo."
NO_KNOWN_TOOLS = "I know none of the tools that I was given, so there is nothing that I can do here."
CHUNK_LENGTH = 12  # characters of one chunk of the stream


@dataclass(frozen=True, slots=True)
class ScriptedModel:
    """A model without a key and without network access; the pauses make it look like a stream."""

    name: str = NAME
    pause: float = 0.015

    async def turn(self, prompt: Prompt) -> AsyncIterator[Delta | ModelReply]:
        reply = make_reply(prompt)
        for start in range(0, len(reply.text), CHUNK_LENGTH):
            yield Delta(reply.text[start : start + CHUNK_LENGTH])
            await asyncio.sleep(self.pause)
        yield reply


def make_reply(prompt: Prompt) -> ModelReply:
    """Make one turn. Only a person's message leads to a call; the content of a result never does."""
    since = _since_last_reply(prompt)
    results = [each for each in since if isinstance(each, ToolResult)]
    said = [each for each in since if isinstance(each, PromptUserMessage)]
    reaction = _react(prompt, said[-1].text) if said else _continue(prompt)
    parts = [describe_results(results), reaction.words]
    if not any(isinstance(each, ModelReply) and LABEL in each.text for each in prompt.messages):
        parts.insert(0, LABEL)
    text = "\n\n".join(part for part in parts if part)
    return ModelReply(text, _tool_requests(prompt, reaction.calls), suggestions=reaction.suggestions)


class Reaction(NamedTuple):
    words: str = ""
    calls: tuple[Call, ...] = ()
    suggestions: tuple[str, ...] = ()


def _since_last_reply(prompt: Prompt) -> Sequence[PromptMessage]:
    behind = 0
    for number, message in enumerate(prompt.messages, 1):
        behind = number if isinstance(message, ModelReply) else behind
    return prompt.messages[behind:]


def _react(prompt: Prompt, text: str) -> Reaction:
    offered = _offered(prompt)
    if not offered:  # as when a reviewer asks about a card
        return Reaction("I have nothing to add: I only turn fixed sentences into calls, and I was given no tools here.")
    if _HELP.fullmatch(text):
        return Reaction(describe_abilities(offered))
    plan = _confirmation(prompt, text) or find_plan(text)
    if plan is not None:
        return _follow(plan, offered)
    return _greet(text, offered) if is_small_talk(text) else _suggest(text, offered)


def _continue(prompt: Prompt) -> Reaction:
    """Continue the plan of the person's last message with the results; its earlier steps are made again in order."""
    said = [number for number, each in enumerate(prompt.messages) if isinstance(each, PromptUserMessage)]
    asked = prompt.messages[said[-1]] if said else None
    plan = find_plan(asked.text) if isinstance(asked, PromptUserMessage) else None
    for results in _results_by_reply(prompt.messages[said[-1] + 1 :] if said else ()):
        plan = plan.then(results) if plan is not None and plan.then is not None else None
    return Reaction() if plan is None else _follow(plan, _offered(prompt))


def _results_by_reply(messages: Sequence[PromptMessage]) -> list[list[ToolResult]]:
    """Return the results of each reply's calls."""
    found: list[list[ToolResult]] = []
    for message in messages:
        if isinstance(message, ModelReply):
            found.append([])
        elif isinstance(message, ToolResult) and found:
            found[-1].append(message)
    return found


def _follow(plan: ScriptedPlan, offered: set[str]) -> Reaction:
    missing = [tool for tool, _ in plan.calls if tool not in offered]
    if missing:
        return Reaction(f"I understand that, but I was not given the tool {missing[0]} here.")
    return Reaction(plan.words, plan.calls)


def _greet(text: str, offered: set[str]) -> Reaction:
    """Answer a greeting, thanks, or a question about what it can do: with what it can do, and sentences to try."""
    able = list(examples_by_subject(offered))
    if not able:
        return Reaction(NO_KNOWN_TOOLS)
    polite = "Hello! " if _HELLO.match(text) else "You are welcome. " if _THANKS.match(text) else ""
    tries = sentences_to_try(offered)
    words = (
        f"{polite}I can look things up and propose changes, which people approve where the policy says so. "
        f"I work with: {', '.join(able)}. Try {_alternatives(tries)}. Write *help* to see all that I understand."
    )
    return Reaction(words, suggestions=tuple(tries))


def _alternatives(sentences: Sequence[str]) -> str:
    return " or ".join(f"*{each}*" for each in sentences)


def _suggest(text: str, offered: set[str]) -> Reaction:
    nearest = nearest_sentences(text, offered)
    if not nearest:
        return Reaction(NO_KNOWN_TOOLS)
    words = (
        f"I do not understand that. The nearest that I know: {_alternatives(nearest)}. "
        "Write *help* to see all that I understand."
    )
    return Reaction(words, suggestions=tuple(nearest))


def _offered(prompt: Prompt) -> set[str]:
    return {prompt_tool.name for prompt_tool in prompt.tools}


def _tool_requests(prompt: Prompt, calls: Sequence[Call]) -> tuple[ToolRequest, ...]:
    turn = sum(isinstance(message, ModelReply) for message in prompt.messages)
    return tuple(
        ToolRequest(f"call_{turn}_{number}", tool, json.dumps(args)) for number, (tool, args) in enumerate(calls)
    )


def _confirmation(prompt: Prompt, text: str) -> ScriptedPlan | None:
    """Return the plan for a yes or no to the last question; the arguments are exactly those of the first call."""
    tool_request = find_open_question(prompt.messages)
    said = "closed" if tool_request is None else parse_answer(text, tool_request.tool)
    if tool_request is None or said == "closed":
        return None
    if said == "no":
        return ScriptedPlan("All right. I left everything as it is.")
    try:
        args = json.loads(tool_request.args)
    except ValueError:
        return None  # of another model, before this one took over
    return (
        ScriptedPlan("Then I do it.", ((tool_request.tool, {**args, "confirmed": True}),))
        if isinstance(args, dict)
        else None
    )


_HELP = re.compile(r"\s*(?:help|what (?:can i say|do you understand)(?: here)?)[\s.!?]*", re.IGNORECASE)
_HELLO = re.compile(r"\s*(?:hi|hello|hey|howdy|good (?:morning|afternoon|evening|day))\b", re.IGNORECASE)
_THANKS = re.compile(r"\s*(?:many )?(?:thanks|thank you|thx|cheers)\b", re.IGNORECASE)


def describe_abilities(offered: set[str]) -> str:
    able = examples_by_subject(offered)
    if not able:
        return NO_KNOWN_TOOLS
    lists = ["\n".join([f"**{subject}**", *(f"- {each}" for each in examples)]) for subject, examples in able.items()]
    return "\n\n".join(["This is what I understand, with other names and numbers too:", *lists])


MAX_ITEMS = 12  # lines of a list
MAX_VALUE = 200  # characters of a value
MAX_READ = 600  # characters of a text that was read
MAX_REPORT = 2_000  # characters of another agent's reply


def describe_results(results: Sequence[ToolResult]) -> str:
    """Return one paragraph for each call, in the order of the calls."""
    return "\n\n".join(map(_describe_result, results))


def find_open_question(messages: Sequence[PromptMessage]) -> ToolRequest | None:
    """Return the call that was answered with a question, if the reply before the last message asked it.

    One confirmation is open per thread: of several, the last.
    """
    replies = [number for number, each in enumerate(messages) if isinstance(each, ModelReply)]
    if len(replies) < 2:
        return None
    first, second = replies[-2:]
    called = messages[first]
    results = [each for each in messages[first:second] if isinstance(each, ToolResult)]
    waiting = {each.call_id for each in results if _field(each.content, "requires_confirmation") is True}
    wishes = called.tool_requests if isinstance(called, ModelReply) else ()
    return next((tool_request for tool_request in reversed(wishes) if tool_request.id in waiting), None)


def _describe_result(result: ToolResult) -> str:
    name, content = f"`{result.tool}`", result.content
    if _field(content, "requires_confirmation") is True:
        return f"{_question_text(content)}\n\nShall I go on? Please answer yes or no."
    if _field(content, "declined") is True:
        return _describe_not_run(name, content)
    if _field(content, "success") is False:
        return _describe_failure(name, content) + _describe_edit(content, "A person changed the arguments to")
    if result.tool == "request_human_input":
        return f"You answered: {_short(content)}."
    if result.tool.startswith("agent_"):
        return _describe_report(result.tool.removeprefix("agent_"), content)
    if "_read_" in result.tool and isinstance(content, Mapping):
        return _describe_reading(name, content)
    return _describe_success(name, content, is_list="_list_" in result.tool or "_search_" in result.tool)


def _describe_not_run(name: str, content: object) -> str:
    reason = _short(_field(content, "reason") or "no reason was given").rstrip(".")
    match _field(content, "status"):
        case "expired":
            return f"{name} timed out and did not run: {reason}."
        case "cancelled":
            return f"{name} was cancelled and did not run: {reason}."
        case "denied":
            return f"{name} is not allowed and did not run: {reason}."
        case _:
            return f"{name} was declined and did not run: {reason}. I leave it at that."


def _describe_failure(name: str, content: object) -> str:
    error = _short(_field(content, "error") or "no error was given").rstrip(".")
    match _field(content, "status"):
        case "unknown":
            return f"The outcome of {name} is unknown. Somebody has to check before it is tried again."
        case "invalid":
            return f"{name} was not asked for in a way that it takes: {error}."
        case _:
            return f"{name} failed: {error}."


def _describe_report(agent: str, content: object) -> str:
    said, status = _field(content, "said") or content, _field(content, "status") or "done"
    if status == "done":
        return f"The {agent} is done and says:\n\n{_short(said, MAX_REPORT)}"
    return f"The {agent} did not get to the end ({_short(_field(content, 'reason') or status)})."


def _describe_reading(name: str, content: Mapping[str, object]) -> str:
    """Return the facts of what was read, the beginning of its text, and its comments."""
    text = content.get("body") or content.get("description")
    quoted = [f"> {line}" for line in _short(text, MAX_READ).splitlines()] if isinstance(text, str) and text else []
    sections = [f"- {_field(each, 'heading')}" for each in _list(content.get("sections"))]
    comments = _list(content.get("comments"))
    lines = [f"- {_field(each, 'author')}: {_short(_field(each, 'body'))}" for each in comments[-MAX_ITEMS:]]
    heading = [f"{len(comments)} comments:" if len(comments) != 1 else "1 comment:"] if comments else []
    facts = _line({key: value for key, value in content.items() if key != "sections"})
    parts = (f"{name} read: {facts}.", "\n".join(quoted), "\n".join(sections), "\n".join([*heading, *lines]))
    return "\n\n".join(part for part in parts if part)


def _describe_success(name: str, content: object, *, is_list: bool) -> str:
    items = _items(content, is_list=is_list)
    if items is not None:
        lines = [line for item in items[:MAX_ITEMS] for line in _item_lines(item)]
        left = len(items) - MAX_ITEMS
        more = [f"- and {left} more"] if left > 0 else []
        more += ["- and others that were not looked up"] if _field(content, "more") is True else []
        return "\n".join([f"{name} found {len(items)}:" if items else f"{name} found nothing.", *lines, *more])
    if isinstance(content, str):  # the tool's, or a person's who answered instead of letting it run
        return f"{name}: {_short(content)}"
    facts = _line(_field(content, "result") or content)
    edit = _describe_edit(content, "A person changed the arguments before it ran; it ran with")
    return f"{name} ran{f': {facts}' if facts else ''}.{edit}"


def _item_lines(item: object) -> list[str]:
    """Return a line for an item, and one for each key result below it."""
    results = [
        f"  - {_field(each, 'id')} {_field(each, 'title')}: {_field(each, 'current')} of {_field(each, 'target')} "
        f"{_field(each, 'unit') or ''}".rstrip()
        for each in _list(_field(item, "key_results"))
    ]
    return [f"- {_line(item)}", *results]


def _describe_edit(content: object, words: str) -> str:
    if _field(content, "edited") is not True:
        return ""
    ran_with, changed = _field(content, "ran_with"), _field(content, "changed")
    if isinstance(changed, list) and isinstance(ran_with, Mapping):
        ran_with = {name: ran_with.get(name) for name in changed}
    return f" {words} {_short(ran_with)}."


_FACTS = (
    *("identifier", "repo", "number", "id", "key", "slug", "title", "name", "issue", "status", "state", "assignee"),
    *("sections", "quarter", "reviewers", "labels", "url"),
)
MAX_FACTS = 5


def _items(content: object, *, is_list: bool) -> list[object] | None:
    """Return the items of a list: the first one in the result of a tool that lists, or what was deleted."""
    match content:
        case list():
            return content
        case {"deleted": list(deleted)}:
            return deleted
        case {**fields} if is_list:
            return next((value for value in fields.values() if isinstance(value, list)), None)
        case _:
            return None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _line(item: object) -> str:
    match item:
        case {**fields}:
            facts = [
                f"{key} {_short(_joined(fields[key]))}" for key in _FACTS if fields.get(key) not in (None, "", {}, [])
            ]
            return ", ".join(facts[:MAX_FACTS])
        case None | True:
            return ""
        case _:
            return _short(item)


def _joined(value: object) -> object:
    """Return a list of names as a text; anything else as it is."""
    is_names = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return ", ".join(value) if is_names and isinstance(value, list) else value


def _question_text(content: object) -> str:
    """Return what would happen, in the tool's own words."""
    parts = [_field(content, key) for key in ("message", "would")]
    return "\n\n".join(part for part in parts if isinstance(part, str) and part)


def _field(content: object, key: str) -> object:
    return content.get(key) if isinstance(content, Mapping) else None


def _short(value: object, longest: int = MAX_VALUE) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= longest else f"{text[:longest]}…"
