"""The demo's stand-in for a language model: a handful of requests, understood by their words; it says what it is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from interlock.core.chat.prompt import Delta, ModelReply, Prompt, PromptUserMessage, ToolRequest, ToolResult
from interlock.core.chat.thread import parse_answer
from interlock.demo.telling import describe_results, find_open_question

NAME = "demo:scripted"
LABEL = "I am a small script, not a language model: this is the demo."
CHUNK_LENGTH = 12  # characters of one piece of the stream


class ScriptedPlan(NamedTuple):
    """What was understood: the words for it, and the calls; no calls where something is missing."""

    words: str
    calls: tuple[tuple[str, Mapping[str, object]], ...] = ()


@dataclass(frozen=True, slots=True)
class ScriptedModel:
    """Needs no key and reaches nothing; the pause is what makes it look like a stream."""

    name: str = NAME
    pause: float = 0.015

    async def turn(self, prompt: Prompt) -> AsyncIterator[Delta | ModelReply]:
        reply = make_reply(prompt)
        for start in range(0, len(reply.text), CHUNK_LENGTH):
            yield Delta(reply.text[start : start + CHUNK_LENGTH])
            await asyncio.sleep(self.pause)
        yield reply


def make_reply(prompt: Prompt) -> ModelReply:
    """One turn. Only what a person said leads to a call; what stands in a result never does."""
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
    offered = {offer.name for offer in prompt.tools}
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
    """A yes or a no to what was asked in the reply before; the arguments are those of the first call, word for word."""
    wish = find_open_question(prompt.messages)
    said = parse_answer(text)
    if wish is None or said == "closed":
        return None
    if said == "no":
        return ScriptedPlan("All right. I left everything as it is.")
    try:
        args = json.loads(wish.args)
    except ValueError:
        return None  # another model's, before this one took over
    return (
        ScriptedPlan("Then I do it.", ((wish.tool, {**args, "confirmed": True}),)) if isinstance(args, dict) else None
    )


def _plan(text: str) -> ScriptedPlan | None:
    straight = _straighten_quotes(text)
    if re.search(r"\b(?:don't|dont|do not|never|without)\b", re.sub(r'"[^"]*"', "", straight), re.IGNORECASE):
        return None  # what somebody does not want must not be done by mistake
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
    """Without quotes, the title is what stands behind "titled"."""
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


# The first that fits counts.
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
