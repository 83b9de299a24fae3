"""Plans of the demo's scripted model: what it says and calls for a sentence that it recognised.

A plan takes its values from the sentence. Only `clean_up` continues with results, of which it uses names, states and
dates, never texts: what a page or a post says can cause no call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from interlock.core.chat.transcript import ToolResult
from interlock.demo.github import DEMO_REPO

UNUSED_AFTER = timedelta(days=90)  # without a view, compared with the page that was viewed last
Call = tuple[str, Mapping[str, object]]
Continue = Callable[[Sequence[ToolResult]], "ScriptedPlan | None"]


class ScriptedPlan(NamedTuple):
    """What was recognised: the text of the reply, and the calls; no calls if something is missing.

    `then` makes the next plan from the results of the calls; None ends the turn.
    """

    words: str
    calls: tuple[Call, ...] = ()
    then: Continue | None = None


MakePlan = Callable[[re.Match[str]], ScriptedPlan]


def call(tool: str, words: str, **constants: object) -> MakePlan:
    """Make a plan with one call; its arguments are the groups of the pattern, and `constants`."""

    def plan(found: re.Match[str]) -> ScriptedPlan:
        args = _with_repo(tool, {**_arguments(found), **constants})
        shown = {name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in args.items()}
        return ScriptedPlan(words.format(**shown), ((tool, args),))

    return plan


def ask(words: str) -> MakePlan:
    """Make a plan that only asks for what is missing."""
    return lambda _: ScriptedPlan(words)


def create(tool: str, what: str, field: str = "title") -> MakePlan:
    """Make a plan that creates one thing; its title is quoted, or follows "titled", "called", "named" or a colon."""

    def plan(found: re.Match[str]) -> ScriptedPlan:
        titles = _titles(found)
        if not titles:
            return ScriptedPlan(f'Which {field} should it have? Say: create {what} "…".')
        args = _with_repo(tool, {**_arguments(found), field: titles[0]})
        return ScriptedPlan(f'I propose to create {what} "{titles[0]}".', ((tool, args),))

    return plan


def list_kind(kind: str, tool: str) -> MakePlan:
    return lambda _: ScriptedPlan(f"I look up the {kind}.", ((tool, _with_repo(tool, {})),))


def ask_person(found: re.Match[str]) -> ScriptedPlan:
    question = found["question"].strip().rstrip("?.! ")
    args: dict[str, object] = {"question": f"{question[:1].upper()}{question[1:]}?"}
    if re.search(r"\bcolou?r", question, re.IGNORECASE):
        args["choices"] = ["red", "green", "blue"]
    return ScriptedPlan("I ask you.", (("request_human_input", args),))


def delegate(found: re.Match[str]) -> ScriptedPlan:
    agent = found["agent"].lower()
    return ScriptedPlan(f"I hand this to the {agent}.", ((f"agent_{agent}", {"task": found["task"].strip()}),))


def list_assigned(_: re.Match[str]) -> ScriptedPlan:
    return ScriptedPlan(
        "I look up what is assigned to you, and which reviews are requested from you.",
        (
            ("linear_list_issues", {"assignee": "me"}),
            ("github_search_issues", {"query": "is:issue is:open assignee:@me"}),
            ("github_search_issues", {"query": "is:pr is:open review-requested:@me"}),
        ),
    )


def create_issues(found: re.Match[str]) -> ScriptedPlan:
    titles, more = _titles(found), {"assignee": _plain(found["assignee"])} if found["assignee"] else {}
    if not titles:
        return ScriptedPlan('Which title should it have? Say: create an issue titled "…".')
    words = f'the issue "{titles[0]}"' if len(titles) == 1 else f"{len(titles)} issues"
    calls = tuple(("linear_create_issue", {"title": title, **more}) for title in titles)
    return ScriptedPlan(f"I propose to create {words}.", calls)


def open_pull_request(found: re.Match[str]) -> ScriptedPlan:
    head, base, quoted = found["head"], _plain(found["base"]), _quoted(found["title"])
    title = quoted[0] if quoted else f"{head[:1].upper()}{head[1:].replace('-', ' ')}"
    args = {"repo": found["repo"] or DEMO_REPO, "title": title, "head": head, "base": base}
    words = f"I propose to open a pull request from {head} into {base}."
    return ScriptedPlan(words, (("github_open_pull_request", args),))


def post_to_url(found: re.Match[str]) -> ScriptedPlan:
    url, data = _address(found["url"]), found["data"]
    try:
        body = json.loads(data)
    except ValueError:
        body = _text(data)
    return ScriptedPlan(f"I propose to send that to {url}.", (("http_post", {"url": url, "body": body}),))


def change_all(verb: str, kind: str) -> MakePlan:
    """Make a plan that publishes, archives or deletes the posts or pages that are named, each by a call."""

    def plan(found: re.Match[str]) -> ScriptedPlan:
        slugs = _slugs(found["rest"], kind)
        if not slugs:
            return ScriptedPlan(f'Which {kind}? Say: {verb} the {kind} "…".')
        which = f"the {kind} {slugs[0]}" if len(slugs) == 1 else f"the {kind}s {_join(slugs)}"
        return ScriptedPlan(f"I propose to {verb} {which}.", tuple((f"cms_{verb}_{kind}", {"slug": s}) for s in slugs))

    return plan


def delete_pages(found: re.Match[str]) -> ScriptedPlan:
    slugs = _slugs(found["rest"], "page")
    if not slugs:
        return ScriptedPlan('Which page? Say: delete the page "…".')
    which = f"the page {slugs[0]}" if len(slugs) == 1 else f"{len(slugs)} pages"
    return ScriptedPlan(f"You want to delete {which}.", (_page_deletion(slugs),))


def delete_sections(found: re.Match[str]) -> ScriptedPlan:
    quoted = _quoted(found["rest"])
    if len(quoted) < 2:
        return ScriptedPlan('Which one? Say: delete the section "…" of the page "…".')
    *sections, page = map(_slug, quoted)
    if len(sections) == 1:
        args: dict[str, object] = {"page": page, "section": sections[0]}
        return ScriptedPlan("You want to delete a section.", (("cms_delete_section", args),))
    args = {"page": page, "sections": sections}
    return ScriptedPlan(f"You want to delete {len(sections)} sections.", (("cms_delete_sections", args),))


def delete_image(found: re.Match[str]) -> ScriptedPlan:
    named = _quoted(found["rest"]) or re.findall(r"\bimg-\d+\b", found["rest"])
    if not named:
        return ScriptedPlan('Which image? Say: delete the image "…".')
    return ScriptedPlan(f"I propose to delete the image {named[0]}.", (("cms_delete_image", {"id": named[0]}),))


# Cleaning up: look first, then propose


def clean_up(_: re.Match[str]) -> ScriptedPlan:
    looks: tuple[Call, ...] = tuple((tool, {}) for tool in ("cms_list_pages", "cms_list_posts", "cms_list_images"))
    return ScriptedPlan("I look for pages, posts and images that nobody uses.", looks, _propose_deletions)


def _propose_deletions(results: Sequence[ToolResult]) -> ScriptedPlan | None:
    """Propose to delete posts and images by cards; once they are decided, pages in the conversation."""
    found = {result.tool: result.content for result in results}
    if any(not isinstance(content, Mapping) or content.get("success") is False for content in found.values()):
        return None
    pages = _unused_pages(_items(found.get("cms_list_pages"), "pages"))
    posts = [item["slug"] for item in _items(found.get("cms_list_posts"), "posts") if item.get("status") == "archived"]
    images = [item["id"] for item in _items(found.get("cms_list_images"), "images") if item.get("used_in") == []]
    about_pages = _propose_page_deletion(pages)
    if not posts and not images:
        return about_pages or ScriptedPlan("I found nothing to delete.")
    named = [f'the post "{slug}" (archived)' for slug in posts]
    named += [f'the image "{name}" (used nowhere)' for name in images]
    calls: list[Call] = [("cms_delete_post", {"slug": slug}) for slug in posts]
    calls += [("cms_delete_image", {"id": name}) for name in images]
    return ScriptedPlan(f"I propose to delete {_join(named)}.", tuple(calls), lambda _: about_pages)


def _propose_page_deletion(pages: list[str]) -> ScriptedPlan | None:
    if not pages:
        return None
    return ScriptedPlan(f"Nobody has viewed {_join(pages)} for a long time.", (_page_deletion(pages),))


def _unused_pages(pages: Sequence[Mapping[str, object]]) -> list[str]:
    """Return archived pages, and pages that were last viewed long ago, where the list has the dates.

    A page without a view is left alone: it may be new.
    """
    times = {str(page["slug"]): _parse_time(page.get("last_viewed_at")) for page in pages}
    latest = max((time for time in times.values() if time is not None), default=None)

    def is_unused(slug: str) -> bool:
        time = times[slug]
        return latest is not None and time is not None and latest - time > UNUSED_AFTER

    return [str(page["slug"]) for page in pages if page.get("status") == "archived" or is_unused(str(page["slug"]))]


def _page_deletion(slugs: list[str]) -> Call:
    return ("cms_delete_page", {"slug": slugs[0]}) if len(slugs) == 1 else ("cms_delete_pages", {"slugs": slugs})


def _items(content: object, name: str) -> list[Mapping[str, object]]:
    listed = content.get(name) if isinstance(content, Mapping) else None
    return [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []


def _parse_time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None


def _join(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


# Values from a sentence


def _arguments(found: re.Match[str]) -> dict[str, object]:
    groups = {name: value for name, value in found.groupdict().items() if value is not None and name != "rest"}
    return {name: _READ_VALUE.get(name, _plain)(value) for name, value in groups.items()}


def _with_repo(tool: str, args: dict[str, object]) -> dict[str, object]:
    has_repo = tool.startswith("github_") and not tool.startswith("github_search_")
    return {"repo": DEMO_REPO, **args} if has_repo else args


def _titles(found: re.Match[str]) -> list[str]:
    quoted = _quoted(found["rest"])
    after = re.match(r".*?(?:\b(?:titled|called|named)\b|:)\s*(.+)", found["rest"], re.IGNORECASE | re.DOTALL)
    return quoted or ([after[1].strip().rstrip(".!?")] if after else [])


def _quoted(text: str) -> list[str]:
    return [
        (one or other).strip()
        for one, other in re.findall(r"\"([^\"]+)\"|(?<!\w)'([^']+)'(?!\w)", text)
        if one or other
    ]


def _plain(value: str) -> str:
    """Return a value without quotes, and without the punctuation that ends the sentence."""
    return value.strip().rstrip(".!?, ").strip("\"'").strip()


def _text(value: str) -> str:
    """Return a text with its punctuation, without quotes around the whole of it."""
    quoted = re.fullmatch(r"\"([^\"]+)\"|'([^']+)'", value.strip())
    return (quoted[1] or quoted[2]).strip() if quoted else value.strip()


def _number(value: str) -> float:
    return float(value) if "." in value else int(value)


def _label(value: str) -> str:
    return _plain(re.sub(r"\b(?:the|labels?)\b", " ", value, flags=re.IGNORECASE).strip())


def _status(value: str) -> str:
    """Return a status as the tools write it; those of objectives have no spaces."""
    return _STATUS_NAMES.get(_plain(value).lower(), _plain(value))


def _slug(words: str) -> str:
    return "-".join(words.strip(" .!?\"'").lower().split())


def _slugs(rest: str, kind: str) -> list[str]:
    """Return the names of posts or pages, each once; none if it is not clear where a name begins or ends."""
    if quoted := _quoted(rest):
        return list(dict.fromkeys(map(_slug, quoted)))
    parts = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", rest.strip(), flags=re.IGNORECASE)
    names = [re.sub(_AROUND_NAME.format(kind=kind), r"\1", part, count=1) for part in parts]
    is_clear = all(name.strip() and not _NO_NAME.search(name) for name in names)
    return list(dict.fromkeys(map(_slug, names))) if is_clear else []


_AROUND_NAME = (
    r"(?is)^\s*(?:(?:the|an?|my|our|this|these|all|both)(?:\s+|$))*(?:{kind}s?(?![\w-])(?:\s+(?:called|named))?)?"
    r"(.*?)(?:(?<![\w-]){kind}s?)?[\s.!?]*$"
)
_NO_NAME = re.compile(
    r"(?<![\w-])(?:posts?|pages?|publish|archive|delete|remove|rename)(?![\w-])", re.IGNORECASE
)  # a word of another request


def _address(value: str) -> str:
    return value.rstrip(".!?,")


_STATUS_NAMES = {
    "progress": "In Progress",
    "review": "In Review",
    "on track": "on_track",
    "off track": "off_track",
    "at risk": "at_risk",
}
_READ_VALUE: Mapping[str, Callable[[str], object]] = {
    "body": _text,
    "current": _number,
    "id": lambda value: _plain(value).upper(),
    "label": _label,
    "labels": lambda value: [_label(value)],
    "number": int,
    "objective_id": str.upper,
    "priority": lambda value: ("none", "urgent", "high", "medium", "low").index(value.lower()),
    "reviewers": lambda value: [name.lower() for name in re.findall(r"[\w-]+", value) if name.lower() != "and"],
    "slug": _slug,
    "status": _status,
    "target": _number,
    "url": _address,
}
