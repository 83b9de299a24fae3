"""The demo's fake language model: recognises a handful of requests by their words, and says what it is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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

NAME = "demo:scripted"
LABEL = "I am a small script, not a language model: this is the demo."
CHUNK_LENGTH = 12  # characters of one chunk of the stream


class ScriptedPlan(NamedTuple):
    """What was recognised: the text of the reply, and the calls; no calls if something is missing."""

    words: str
    calls: tuple[tuple[str, Mapping[str, object]], ...] = ()


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
    parts = [describe_results(results)]
    wishes: tuple[ToolRequest, ...] = ()
    if said:
        words, wishes = _react(prompt, said[-1].text)
        parts.append(words)
    if not any(isinstance(each, ModelReply) and LABEL in each.text for each in prompt.messages):
        parts.insert(0, LABEL)
    return ModelReply("\n\n".join(part for part in parts if part), wishes)


def _since_last_reply(prompt: Prompt) -> Sequence[PromptUserMessage | ToolResult | ModelReply]:
    behind = 0
    for number, message in enumerate(prompt.messages, 1):
        behind = number if isinstance(message, ModelReply) else behind
    return prompt.messages[behind:]


def _react(prompt: Prompt, text: str) -> tuple[str, tuple[ToolRequest, ...]]:
    offered = {prompt_tool.name for prompt_tool in prompt.tools}
    if not offered:  # as when a reviewer asks about a card
        return "I have nothing to add: I only turn fixed words into calls, and I was given no tools here.", ()
    plan = _confirmation(prompt, text) or _plan(text)
    if plan is None:
        return describe_abilities(offered), ()
    missing = [tool for tool, _ in plan.calls if tool not in offered]
    if missing:
        return f"I understand that, but I was not given the tool {missing[0]} here. {describe_abilities(offered)}", ()
    turn = sum(isinstance(message, ModelReply) for message in prompt.messages)
    return plan.words, tuple(
        ToolRequest(f"call_{turn}_{number}", tool, json.dumps(args)) for number, (tool, args) in enumerate(plan.calls)
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


def _plan(text: str) -> ScriptedPlan | None:
    straight = _straighten_quotes(text)
    if re.search(r"\b(?:don't|dont|do not|never|without)\b", re.sub(r'"[^"]*"', "", straight), re.IGNORECASE):
        return None  # a request for something not to be done must not cause it
    for form, planned in _PATTERNS:
        if found := form.search(straight):
            return planned(found, _quoted(straight))
    return None


def _straighten_quotes(text: str) -> str:
    return re.sub("[\u2018\u2019]", "'", re.sub("[\u201c\u201d\u00ab\u00bb]", '"', text))


def _quoted(text: str) -> list[str]:
    return [
        (one or other).strip()
        for one, other in re.findall(r"\"([^\"]+)\"|(?<!\w)'([^']+)'(?!\w)", text)
        if one or other
    ]


def _question(found: re.Match[str], _: list[str]) -> ScriptedPlan:
    question = found[1].strip().rstrip("?.! ")
    args: dict[str, object] = {"question": f"{question[:1].upper()}{question[1:]}?"}
    if re.search(r"\bcolou?r", question, re.IGNORECASE):
        args["choices"] = ["red", "green", "blue"]
    return ScriptedPlan("I ask you.", (("request_human_input", args),))


def _delegation(found: re.Match[str], _: list[str]) -> ScriptedPlan:
    agent = found[1].lower()
    return ScriptedPlan(f"I hand this to the {agent}.", ((f"agent_{agent}", {"task": found[2].strip()}),))


def _listing(found: re.Match[str], _: list[str]) -> ScriptedPlan:
    kind = found[1].lower()
    return ScriptedPlan(f"I look up the {kind}.", ((_LISTS[kind], {}),))


def _issues(found: re.Match[str], quoted: list[str]) -> ScriptedPlan:
    titles = quoted or _title_after_keyword(found)
    if not titles:
        return ScriptedPlan('Which title should it have? Say: create an issue titled "…".')
    words = (
        f'I propose to create the issue "{titles[0]}".'
        if len(titles) == 1
        else f"I propose to create {len(titles)} issues."
    )
    return ScriptedPlan(words, tuple(("linear_create_issue", {"title": title}) for title in titles))


def _objective(found: re.Match[str], quoted: list[str]) -> ScriptedPlan:
    titles = quoted or _title_after_keyword(found)
    if not titles:
        return ScriptedPlan('Which title should it have? Say: create an objective "…".')
    return ScriptedPlan(
        f'I propose to create the objective "{titles[0]}".', (("okr_create_objective", {"title": titles[0]}),)
    )


def _post(found: re.Match[str], quoted: list[str]) -> ScriptedPlan:
    verb, rest = found[1].lower().replace("remove", "delete"), found[2]
    slug = _slug(quoted[0] if quoted else re.sub(r"\b(the|a|post)\b", " ", rest, flags=re.IGNORECASE))
    if not slug:
        return ScriptedPlan(f'Which post? Say: {verb} the post "…".')
    return ScriptedPlan(f"I propose to {verb} the post {slug}.", ((f"cms_{verb}_post", {"slug": slug}),))


def _pages(found: re.Match[str], quoted: list[str]) -> ScriptedPlan:
    named = quoted or [re.sub(r"\b(the|pages?)\b", " ", found[1], flags=re.IGNORECASE)]
    slugs = [slug for slug in map(_slug, named) if slug]
    if not slugs:
        return ScriptedPlan('Which page? Say: delete the page "…".')
    if len(slugs) == 1:
        return ScriptedPlan(f"You want to delete the page {slugs[0]}.", (("cms_delete_page", {"slug": slugs[0]}),))
    return ScriptedPlan(f"You want to delete {len(slugs)} pages.", (("cms_delete_pages", {"slugs": slugs}),))


def _sections(_: re.Match[str], quoted: list[str]) -> ScriptedPlan:
    if len(quoted) < 2:
        return ScriptedPlan('Which one? Say: delete the section "…" of the page "…".')
    *sections, page = map(_slug, quoted)
    if len(sections) == 1:
        return ScriptedPlan(
            "You want to delete a section.", (("cms_delete_section", {"page": page, "section": sections[0]}),)
        )
    args = {"page": page, "sections": sections}
    return ScriptedPlan(f"You want to delete {len(sections)} sections.", (("cms_delete_sections", args),))


def _image(_: re.Match[str], quoted: list[str]) -> ScriptedPlan:
    if not quoted:
        return ScriptedPlan('Which image? Say: delete the image "…".')
    return ScriptedPlan(f"I propose to delete the image {quoted[0]}.", (("cms_delete_image", {"id": quoted[0]}),))


def _title_after_keyword(found: re.Match[str]) -> list[str]:
    """Return the title after "titled", "called" or "named", for a request without quotes."""
    behind = re.search(r"\b(?:titled|called|named)\s+(.+)", found[0], re.IGNORECASE)
    return [behind[1].strip().rstrip(".!?")] if behind else []


def _slug(words: str) -> str:
    return "-".join(words.strip(" .!?\"'").lower().split())


_LISTS = {
    "issues": "linear_list_issues",
    "posts": "cms_list_posts",
    "pages": "cms_list_pages",
    "images": "cms_list_images",
    "objectives": "okr_list_objectives",
}
_MAKE, _DELETE = r"\b(?:create|open|file|add|make)\b", r"\b(?:delete|remove)\b"


_MakePlan = Callable[[re.Match[str], list[str]], ScriptedPlan]


def _pattern(pattern: str, planned: _MakePlan) -> tuple[re.Pattern[str], _MakePlan]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL), planned


# The first match counts.
_PATTERNS: tuple[tuple[re.Pattern[str], _MakePlan], ...] = (
    _pattern(r"\bask me\b[,:]?\s*(.+)", _question),
    _pattern(r"\b(?:let|ask|have|tell)\s+the\s+([a-z]\w*)\s+(?:to\s+)?(.+)", _delegation),
    _pattern(rf"{_MAKE}.*\bissues?\b.*", _issues),
    _pattern(rf"{_MAKE}.*\bobjectives?\b.*", _objective),
    _pattern(rf"\b(?:list|show|which|what)\b.*?\b({'|'.join(_LISTS)})\b", _listing),
    _pattern(rf"{_DELETE}.*\bsections?\b", _sections),
    _pattern(rf"{_DELETE}.*\bimage\b", _image),
    _pattern(rf"{_DELETE}(.*\bpages?\b.*)", _pages),
    _pattern(r"\b(publish|archive)\b(.*)", _post),
    _pattern(r"\b(delete|remove)\b(.*\bpost\b.*)", _post),
)
_ABILITIES = (
    ("linear_list_issues", "list issues"),
    ("linear_create_issue", 'create an issue titled "…", or several at once'),
    ("cms_list_posts", "list posts"),
    ("cms_publish_post", 'publish the post "…"'),
    ("cms_archive_post", 'archive the post "…"'),
    ("cms_delete_post", 'delete the post "…"'),
    ("cms_list_pages", "list pages"),
    ("cms_delete_page", "delete the … page"),
    ("okr_list_objectives", "list objectives"),
    ("okr_create_objective", 'create an objective "…"'),
    ("request_human_input", "ask me which colour to use"),
    ("agent_writer", 'let the writer publish "…"'),
)


def describe_abilities(offered: set[str]) -> str:
    able = [words for tool, words in _ABILITIES if tool in offered]
    if not able:
        return "I know none of the tools that I was given, so there is nothing that I can do here."
    return "\n".join(["This is what I understand:", *(f"- {words}" for words in able)])


MAX_ITEMS = 12  # lines of a list
MAX_VALUE = 200  # characters of a value
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
        return _describe_failure(name, content) + _describe_edit(content)
    if result.tool == "request_human_input":
        return f"You answered: {_short(content)}."
    if result.tool.startswith("agent_"):
        return _describe_report(result.tool.removeprefix("agent_"), content)
    return _describe_success(name, content)


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


def _describe_success(name: str, content: object) -> str:
    items = _items(content)
    if items is not None:
        lines = [f"- {_line(item)}" for item in items[:MAX_ITEMS]]
        more = [f"- and {len(items) - MAX_ITEMS} more"] if len(items) > MAX_ITEMS else []
        return "\n".join([f"{name} found {len(items)}:", *lines, *more])
    if isinstance(content, str):  # the tool's, or a person's who answered instead of letting it run
        return f"{name}: {_short(content)}"
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
            return next(
                (value for key, value in fields.items() if isinstance(value, list) and key in _LIST_FIELDS), None
            )
        case _:
            return None


_LIST_FIELDS = ("items", "issues", "posts", "pages", "images", "objectives", "deleted")


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
    """Return what would happen, in the tool's own words."""
    parts = [_field(content, key) for key in ("message", "would")]
    return "\n\n".join(part for part in parts if isinstance(part, str) and part)


def _field(content: object, key: str) -> object:
    return content.get(key) if isinstance(content, Mapping) else None


def _short(value: object, longest: int = MAX_VALUE) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= longest else f"{text[:longest]}…"
