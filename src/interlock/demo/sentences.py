"""The sentences that the demo's scripted model understands: one table of examples, patterns and plans.

A message is matched from its beginning to its end, without polite words around it. The first row that matches counts.
A message that no row matches gets the three examples that share the most words with it. It is long because the table
is one: a sentence added in a second one could be understood by the wrong row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from interlock.demo import plans
from interlock.demo.plans import MakePlan, ScriptedPlan

NEAREST = 3
MAX_MATCHED = 1_000  # characters of a message
MAX_COMPARED = 300  # the same, for the nearest sentences
MIN_WORD_SIMILARITY = 0.75  # of 1, at which two words count as the same: "publsh" and "publish" do
SUBJECTS = {  # of the tools with these prefixes, as the documentation names them
    "linear": "Linear",
    "github": "GitHub",
    "cms": "the site",
    "okr": "OKRs",
    "http": "the web",
    "request": "people and agents",
    "agent": "people and agents",
}


class Sentence(NamedTuple):
    """A row of the table. `example` is offered to people if the agent has `tool`; it is empty for a variant."""

    example: str
    tool: str
    pattern: re.Pattern[str]
    plan: MakePlan


def find_plan(text: str) -> ScriptedPlan | None:
    """Return the plan for a message, or None if no sentence matches. If it asks not to do something, nothing is done.

    Long messages are not matched: the time for it grows with the square of their length.
    """
    if len(text) > MAX_MATCHED:
        return None
    words = _without_thanks(_without_lead_in(_straighten_quotes(text).strip()))
    if _NEGATION.search(_without_content(words)):
        return ScriptedPlan("All right. I do nothing.")
    for sentence in SENTENCES:
        if found := sentence.pattern.fullmatch(words):
            return sentence.plan(found)
    return None


def nearest_sentences(text: str, offered: set[str]) -> list[str]:
    """Return the examples nearest to a message, for the tools that the agent has.

    The similarity is the share of words that both have; of equally near ones, the first in the table comes first.
    """
    said = _words(text)
    able = [sentence.example for sentence in _offered_sentences(offered)]
    return sorted(able, key=lambda example: -_similarity(said, _words(example)))[:NEAREST]


def is_small_talk(text: str) -> bool:
    """Whether a message only greets, thanks, or asks what the agent can do."""
    return len(text) <= MAX_MATCHED and _SMALL_TALK.fullmatch(_straighten_quotes(text).strip()) is not None


def sentences_to_try(offered: set[str]) -> list[str]:
    """Return examples for somebody who does not know what to say: something to read, and to change."""
    able = [sentence.example for sentence in _offered_sentences(offered)]
    return sorted(able, key=lambda example: example not in _FIRST_TRIES)[:NEAREST]


def examples_by_subject(offered: set[str]) -> dict[str, list[str]]:
    """Return the examples for the tools that the agent has, by what they are about."""
    found: dict[str, list[str]] = {subject: [] for subject in SUBJECTS.values()}
    for sentence in _offered_sentences(offered):
        found[SUBJECTS[sentence.tool.partition("_")[0]]].append(sentence.example)
    return {subject: examples for subject, examples in found.items() if examples}


def _offered_sentences(offered: set[str]) -> list[Sentence]:
    return [sentence for sentence in SENTENCES if sentence.example and sentence.tool in offered]


def _similarity(said: Sequence[str], known: Sequence[str]) -> float:
    shared = sum(any(_is_same_word(word, other) for other in known) for word in said)
    return 2 * shared / (len(said) + len(known)) if shared else 0.0


def _is_same_word(word: str, other: str) -> bool:
    return word == other or SequenceMatcher(None, word, other).ratio() >= MIN_WORD_SIMILARITY


def _words(text: str) -> list[str]:
    """Return the words that carry meaning."""
    return [word for word in re.findall(r"[a-z]+", text[:MAX_COMPARED].lower()) if word not in _SMALL_WORDS]


_FIRST_TRIES = ("What's on my plate?", 'Create an issue titled "Fix the login page"', "Delete the pricing page")
_SMALL_TALK = re.compile(
    r"(?:(?:hi|hello|hey|howdy|good (?:morning|afternoon|evening|day)|there|again|all|everyone|many|thanks|thank you"
    r"|thx|cheers|a lot|so much|very much|great|nice|cool|bye|goodbye|how are you|(?:and )?what can you do|for me|here"
    r"|what do you do|who are you|what are you|what is this|what's this|how does this work)(?![\w-])[\s,.!?:)-]*)+",
    re.IGNORECASE,
)
_SMALL_WORDS = frozenset(
    {
        *("a", "an", "and", "at", "by", "for", "from", "i", "in", "is", "it", "its", "me", "my", "of", "on", "our"),
        *("how", "please", "s", "that", "the", "this", "to", "what", "which", "with"),
    }
)
_LEAD_IN = re.compile(
    r"(?:(?:please|yes|no|ok|okay|hey|hi|hello|now|then|and|but|so|also|first|can you|could you|would you|will you"
    r"|i want(?: you)? to|i would like(?: you)? to|i'd like(?: you)? to|let's|you should)\b[\s,.!:;-]*)+",
    re.IGNORECASE,
)
_THANKS = re.compile(r"(?:[\s,.!]+(?:please|thanks|thank you))+[\s.!?]*$", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:don't|dont|do not|never|without)\b", re.IGNORECASE)


def _straighten_quotes(text: str) -> str:
    return re.sub("[\u2018\u2019]", "'", re.sub("[\u201c\u201d\u00ab\u00bb]", '"', text))


def _without_lead_in(words: str) -> str:
    found = _LEAD_IN.match(words)
    return words[found.end() :] if found else words


def _without_thanks(words: str) -> str:
    """Return the message without polite words at its end, unless they are content."""
    found = _THANKS.search(words)
    return words[: found.start()] if found and _THANKS.search(_without_content(words)) else words


def _without_content(words: str) -> str:
    """Return what is said to the agent, without quotations and the text after a colon: those are content."""
    return re.sub(r'"[^"]*"', "", words).partition(": ")[0]


_LIST = r"(?:list|show|display|give|get|find|which|what|how)\b"
_MAKE, _DELETE = r"(?:create|open|file|add|make|start)\b", r"(?:delete|remove)\b"
_READ = r"(?:read|show|open|describe|summari[sz]e|what is|what's)\s+(?:me\s+)?"
_SET = r"(?:set|change|update|move|put|bring|mark)\s+"
_COMMENT_ON = r"(?:comment on|reply to|add a comment (?:to|on))\s+"
_ISSUE = r"(?:the\s+)?(?:linear\s+)?(?:issue\s+|ticket\s+)?(?P<id>(?!kr-|o-|img-)[a-z][a-z0-9]*-\d+)"
_REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
_ON_GITHUB = rf"(?:the\s+)?(?:github\s+)?(?:issue\s+|pull request\s+|pr\s+)?{_REPO}?#(?P<number>\d+)"
_PULL = rf"(?:the\s+)?(?:pull request\s+|pr\s+)?{_REPO}?#?(?P<number>\d+)"
_DATE, _VALUE = r"\d{4}-\d\d-\d\d", r"-?\d+(?:\.\d+)?"
_CYCLE = r"(?:the\s+)?cycle\s+(?P<id>[\w-]+)"
_OBJECTIVE = r"(?:the\s+)?(?:objective\s+)?(?P<id>o-\d+)"
_KEY_RESULT = r"(?:the\s+)?(?:key result\s+)?(?P<id>kr-\d+)"
_RENAME = r"(?:rename|retitle|(?:change|set|update)\s+the\s+title\s+of)\s+(?:the\s+)?"
_NAME = r"(?P<slug>\"[^\"]+\"|[\w-]+)"
_STATUSES = "backlog|todo|in progress|progress|in review|review|done|canceled"
_LISTS = {
    "GitHub issues": "github_list_issues",
    "GitHub labels": "github_list_labels",
    "pull requests": "github_list_pull_requests",
    "issues": "linear_list_issues",
    "teams": "linear_list_teams",
    "statuses": "linear_list_statuses",
    "labels": "linear_list_labels",
    "projects": "linear_list_projects",
    "cycles": "linear_list_cycles",
    "posts": "cms_list_posts",
    "pages": "cms_list_pages",
    "images": "cms_list_images",
    "objectives": "okr_list_objectives",
    "key results": "okr_list_objectives",
}


def _row(example: str, tool: str, pattern: str, plan: MakePlan | str) -> Sentence:
    """Make a row. A text as `plan` is what is said with one call of the tool."""
    compiled = re.compile(pattern + r"[\s.!?]*", re.IGNORECASE | re.DOTALL)
    return Sentence(example, tool, compiled, plans.call(tool, plan) if isinstance(plan, str) else plan)


def _variant(tool: str, pattern: str, plan: MakePlan | str) -> Sentence:
    return _row("", tool, pattern, plan)


def _with_word(word: str, not_after: str = "") -> str:
    """Make the pattern of a rest that has a word, outside of quotations and names, and not after one of the others."""
    other = rf"(?!{_as_word(not_after)})" if not_after else ""
    return rf'(?P<rest>(?:"[^"]*"|{other}[^"])*?{_as_word(word)}.*)'


def _as_word(word: str) -> str:
    return rf"(?<![\w-])(?:{word})(?![\w-])"


_FIRST = (
    _row(
        "What's on my plate?",
        "linear_list_issues",
        r"(?:what's|whats|what is|what do i have)\s+(?:still\s+)?on my (?:plate|list|desk)(?:\s+today)?",
        plans.list_assigned,
    ),
    _row(
        "Clean up the site",
        "cms_list_pages",
        r"(?:clean|tidy)\s+(?:up\s+)?(?:the\s+|our\s+|my\s+)?(?:web\s*)?site(?:\s+up)?",
        plans.clean_up,
    ),
    _row("Ask me which colour to use", "request_human_input", r"ask me\b[,:]?\s*(?P<question>.+)", plans.ask_person),
    _row(
        'Let the writer publish "hello-world"',
        "agent_writer",
        r"(?:let|ask|have|tell)\s+the\s+(?P<agent>[a-z]\w*)\s+(?:to\s+)?(?P<task>.+)",
        plans.delegate,
    ),
)
_CONTENT = (  # before all others: a comment, or what is sent, may sound like another request
    _row(
        "Comment on #1: I can look at it today",
        "github_comment",
        rf"{_COMMENT_ON}{_ON_GITHUB}[\s,:-]+(?P<body>.+)",
        "I propose to comment on {repo}#{number}.",
    ),
    _row(
        "Comment on DEMO-1: I can look at it today",
        "linear_comment",
        rf"{_COMMENT_ON}{_ISSUE}[\s,:-]+(?P<body>.+)",
        "I propose to comment on {id}.",
    ),
    _variant(
        "linear_comment",
        rf"(?:add\s+)?(?:the\s+)?comment\s+(?P<body>\".+\"|'.+')\s+(?:on|to)\s+{_ISSUE}",
        "I propose to comment on {id}.",
    ),
    _row(
        'Post {"text": "hello"} to https://example.com/hook',
        "http_post",
        r"(?:post|send)\s+(?P<data>.+?)\s+to\s+(?P<url>https?://\S+)",
        plans.post_to_url,
    ),
    _row(
        "Get https://example.com",
        "http_get",
        r"(?:get|fetch|read|open|load|look at)\s+(?P<url>https?://\S+)",
        "I read {url}.",
    ),
)
_GITHUB = (
    _row(
        'Open a GitHub issue titled "Receipts are empty"',
        "github_create_issue",
        rf"{_MAKE}\s+(?:an?\s+|the\s+)?(?:new\s+)?"
        rf"(?:github issue(?:\s+in\s+{_REPO})?|issue (?:on|in) github)(?P<rest>.*)",
        plans.create("github_create_issue", "a GitHub issue"),
    ),
    _row(
        "Open a pull request from search-index to main",
        "github_open_pull_request",
        rf"{_MAKE}\s+(?:an?\s+)?(?:new\s+)?(?:pull request|pr)(?:\s+in\s+{_REPO})?(?P<title>.*?)"
        r"\s+from\s+(?P<head>[\w./:-]+)\s+(?:in)?to\s+(?P<base>[\w./-]+)",
        plans.open_pull_request,
    ),
    _variant(
        "github_open_pull_request",
        rf"{_MAKE}\s+(?:an?\s+)?(?:new\s+)?(?:pull request|pr)\b.*",
        plans.ask("From which branch into which? Say: open a pull request from … to …."),
    ),
    _row(
        "Request a review from Katherine on pull request 5",
        "github_request_review",
        rf"request (?:an?\s+)?reviews?\s+(?:from|by)\s+(?P<reviewers>.+?)\s+(?:on|of|for)\s+{_PULL}",
        "I propose to ask {reviewers} to review {repo}#{number}.",
    ),
    _variant(
        "github_request_review",
        rf"ask\s+(?P<reviewers>[\w, -]+?)\s+to review\s+{_PULL}",
        "I propose to ask {reviewers} to review {repo}#{number}.",
    ),
    _row(
        "Read pull request 3",
        "github_read_pull_request",
        rf"{_READ}(?=.*\b(?:pull request|pr)\b){_PULL}(?:\s+about)?",
        "I read {repo}#{number}.",
    ),
    _row("Read #1", "github_read_issue", rf"{_READ}{_ON_GITHUB}(?:\s+about)?", "I read {repo}#{number}."),
    _row(
        "Add the label bug to #4",
        "github_add_labels",
        rf"add\s+(?=.*\blabel\b)(?P<labels>.+?)\s+to\s+{_ON_GITHUB}",
        "I propose to label {repo}#{number} {labels}.",
    ),
    _variant(
        "github_add_labels",
        rf"(?:label|tag)\s+{_ON_GITHUB}\s+(?:as\s+|with\s+)?(?P<labels>.+)",
        "I propose to label {repo}#{number} {labels}.",
    ),
    _row(
        "Remove the label bug from #1",
        "github_remove_label",
        rf"{_DELETE}\s+(?=.*\blabel\b)(?P<label>.+?)\s+from\s+{_ON_GITHUB}",
        "I propose to take the label {label} off {repo}#{number}.",
    ),
    _row(
        "Search GitHub for sign-in",
        "github_search_issues",
        r"(?:search|look|find)\s+(?:on\s+|in\s+)?github\s+(?:for\s+)?(?P<query>.+)",
        "I search GitHub for {query}.",
    ),
)
_LINEAR = (
    _row(
        "Search for cart",
        "linear_search_issues",
        r"(?:search|look|find)\s+(?:in\s+)?(?:linear\s+|the issues\s+|issues\s+)?(?:for|about)\s+(?P<query>.+)",
        "I search the issues for {query}.",
    ),
    _row(
        'Create an issue titled "Fix the login page"',
        "linear_create_issue",
        rf"{_MAKE}(?P<rest>.*\b(?:issues?|tickets?)\b.*?)"
        r"(?:[\s,]+(?:and\s+)?assign(?:ed)?(?:\s+it)?\s+to\s+(?P<assignee>[\w.@-]+(?:\s[\w.@-]+)?))?",
        plans.create_issues,
    ),
    _row(
        "Assign DEMO-4 to Grace Hopper",
        "linear_assign_issue",
        rf"(?:re)?assign\s+{_ISSUE}\s+to\s+(?P<assignee>.+)",
        "I propose to assign {id} to {assignee}.",
    ),
    _row(
        "Unassign DEMO-2",
        "linear_assign_issue",
        rf"unassign\s+{_ISSUE}",
        plans.call("linear_assign_issue", "I propose to take the assignee off {id}.", assignee="nobody"),
    ),
    _row(
        "Set the priority of DEMO-5 to high",
        "linear_update_issue",
        rf"{_SET}(?:the\s+)?priority\s+of\s+{_ISSUE}\s+to\s+(?P<priority>none|urgent|high|medium|low)",
        "I propose to change the priority of {id}.",
    ),
    _row(
        'Rename DEMO-5 to "Receipts in every language"',
        "linear_update_issue",
        rf"(?:rename|retitle)\s+{_ISSUE}\s+to\s+(?P<title>.+)",
        "I propose to rename {id}.",
    ),
    _row(
        "Move DEMO-4 to In Progress",
        "linear_change_status",
        rf"{_SET}(?:the\s+)?(?:status\s+of\s+)?{_ISSUE}(?:'s)?(?:\s+status)?\s+(?:(?:in)?to|as)\s+(?P<status>.+)",
        "I propose to move {id} to {status}.",
    ),
    _row(
        "Close DEMO-4",
        "linear_change_status",
        rf"(?:close|finish|resolve|complete)\s+{_ISSUE}",
        plans.call("linear_change_status", "I propose to move {id} to {status}.", status="Done"),
    ),
    _row(
        "Add the label Security to DEMO-2",
        "linear_add_label",
        rf"add\s+(?=.*\blabel\b)(?P<label>.+?)\s+to\s+{_ISSUE}",
        "I propose to label {id} {label}.",
    ),
    _variant(
        "linear_add_label",
        rf"(?:label|tag)\s+{_ISSUE}\s+(?:as\s+|with\s+)?(?P<label>.+)",
        "I propose to label {id} {label}.",
    ),
    _row(
        "Remove the label Bug from DEMO-2",
        "linear_remove_label",
        rf"{_DELETE}\s+(?=.*\blabel\b)(?P<label>.+?)\s+from\s+{_ISSUE}",
        "I propose to take the label {label} off {id}.",
    ),
    _row("Delete DEMO-12", "linear_delete_issue", rf"{_DELETE}\s+{_ISSUE}", "I propose to delete {id}."),
    _row("Read DEMO-1", "linear_read_issue", rf"{_READ}{_ISSUE}(?:\s+about)?", "I read {id}."),
    _row(
        'Create a project "Faster search"',
        "linear_create_project",
        rf"{_MAKE}(?P<rest>.*\bproject\b.*)",
        plans.create("linear_create_project", "the project", "name"),
    ),
    _row(
        'Create a cycle "Sprint 2" from 2027-03-01 to 2027-03-14',
        "linear_create_cycle",
        rf"{_MAKE}(?P<rest>.*\b(?:cycle|sprint)\b.*?)\s+from\s+(?P<starts_at>{_DATE})\s+(?:to|until)\s+(?P<ends_at>{_DATE})",
        plans.create("linear_create_cycle", "the cycle", "name"),
    ),
    _variant(
        "linear_create_cycle",
        rf"{_MAKE}.*\b(?:cycle|sprint)\b.*",
        plans.ask('From when to when? Say: create a cycle "…" from 2027-03-01 to 2027-03-14.'),
    ),
    _row(
        "Rename cycle 1 to Spring cleaning",
        "linear_update_cycle",
        rf"rename\s+{_CYCLE}\s+to\s+(?P<name>.+)",
        "I propose to rename cycle {id}.",
    ),
    _row(
        "Move the end of cycle 1 to 2027-04-01",
        "linear_update_cycle",
        rf"{_SET}the end of\s+{_CYCLE}\s+to\s+(?P<ends_at>{_DATE})",
        "I propose to move the end of cycle {id}.",
    ),
)
_OKRS = (
    _row(
        'Add a key result "Answers within an hour" to O-1 with target 95',
        "okr_create_key_result",
        rf"{_MAKE}(?P<rest>.*\bkey result\b.*?)\s+(?:to|for|of)\s+(?:objective\s+)?(?P<objective_id>o-\d+)[\s,]+"
        rf"(?:with\s+)?(?:a\s+)?target\s+(?:of\s+)?(?P<target>{_VALUE})",
        plans.create("okr_create_key_result", "the key result"),
    ),
    _variant(
        "okr_create_key_result",
        rf"{_MAKE}.*\bkey results?\b.*",
        plans.ask('For which objective? Say: add a key result "…" to O-1 with target 95.'),
    ),
    _row(
        'Create an objective "Answer every customer within a day"',
        "okr_create_objective",
        rf"{_MAKE}(?P<rest>.*\bobjectives?\b.*)",
        plans.create("okr_create_objective", "the objective"),
    ),
    _row(
        "Set the target of KR-2 to 25",
        "okr_update_key_result",
        rf"{_SET}the target of\s+{_KEY_RESULT}\s+to\s+(?P<target>{_VALUE})\s*%?",
        "I propose to set the target of {id} to {target}.",
    ),
    _row(
        "Set key result KR-2 to 16",
        "okr_update_key_result",
        rf"{_SET}{_KEY_RESULT}\s+to\s+(?P<current>{_VALUE})\s*%?",
        "I propose to set {id} to {current}.",
    ),
    _row(
        "Mark objective O-1 as on track",
        "okr_update_objective",
        rf"{_SET}{_OBJECTIVE}(?:\s+status)?\s+(?:to|as)\s+(?P<status>(?:on|off)[ _]track|at[ _]risk|achieved|dropped)",
        "I propose to mark {id} as {status}.",
    ),
    _row(
        'Rename objective O-2 to "Nobody needs to ask us how"',
        "okr_update_objective",
        rf"rename\s+{_OBJECTIVE}\s+to\s+(?P<title>.+)",
        "I propose to rename {id}.",
    ),
)
_SITE = (
    _row(
        "Read the post a-post-that-gives-orders",
        "cms_read_post",
        rf"{_READ}(?:the\s+)?post\s+(?P<slug>.+)",
        "I read the post {slug}.",
    ),
    _variant("cms_read_post", rf"{_READ}(?:the\s+)?{_NAME}\s+post", "I read the post {slug}."),
    _row("Read the about page", "cms_read_page", rf"{_READ}(?:the\s+)?{_NAME}\s+page", "I read the page {slug}."),
    _variant("cms_read_page", rf"{_READ}(?:the\s+)?page\s+(?P<slug>.+)", "I read the page {slug}."),
    _row(
        'Rename the post "hello-world" to "Hello again"',
        "cms_update_post",
        rf"{_RENAME}post\s+(?P<slug>.+?)\s+to\s+(?P<title>.+)",
        "I propose to rename the post {slug}.",
    ),
    _variant(
        "cms_update_post", rf"{_RENAME}{_NAME}\s+post\s+to\s+(?P<title>.+)", "I propose to rename the post {slug}."
    ),
    _row(
        'Rename the about page to "Who we are"',
        "cms_update_page",
        rf"{_RENAME}{_NAME}\s+page\s+to\s+(?P<title>.+)",
        "I propose to rename the page {slug}.",
    ),
    _variant(
        "cms_update_page",
        rf"{_RENAME}page\s+(?P<slug>.+?)\s+to\s+(?P<title>.+)",
        "I propose to rename the page {slug}.",
    ),
    _row(
        'Delete the section "values" of the page "about"',
        "cms_delete_section",
        rf"{_DELETE}{_with_word('sections?')}",
        plans.delete_sections,
    ),
    _row('Delete the image "img-6"', "cms_delete_image", rf"{_DELETE}{_with_word('image')}", plans.delete_image),
    _row("Delete the pricing page", "cms_delete_page", rf"{_DELETE}{_with_word('page', 'posts?')}", plans.delete_pages),
    _row(
        "Delete the pricing and about pages",
        "cms_delete_pages",
        rf"{_DELETE}{_with_word('pages', 'posts?')}",
        plans.delete_pages,
    ),
    _row(
        "Publish the about page",
        "cms_publish_page",
        rf"publish\b{_with_word('pages?', 'posts?')}",
        plans.change_all("publish", "page"),
    ),
    _row(
        "Archive the imprint page",
        "cms_archive_page",
        rf"archive\b{_with_word('pages?', 'posts?')}",
        plans.change_all("archive", "page"),
    ),
    _row(
        'Publish the post "hello-world"',
        "cms_publish_post",
        r"publish\b(?P<rest>.*)",
        plans.change_all("publish", "post"),
    ),
    _row(
        'Archive the post "spring-release"',
        "cms_archive_post",
        r"archive\b(?P<rest>.*)",
        plans.change_all("archive", "post"),
    ),
    _row(
        'Delete the post "old-newsletter"',
        "cms_delete_post",
        rf"{_DELETE}{_with_word('posts?')}",
        plans.change_all("delete", "post"),
    ),
)
_LISTED = (  # after all others: their words occur there too
    _row(
        "List issues assigned to me",
        "linear_list_issues",
        rf"{_LIST}.*\bissues\b.*\bassigned to\s+(?P<assignee>.+)",
        "I look up the issues of {assignee}.",
    ),
    _variant(
        "linear_list_issues",
        rf"{_LIST}.*\bmy\s+(?:open\s+)?issues\b.*",
        plans.call("linear_list_issues", "I look up your issues.", assignee="me"),
    ),
    _row(
        "List issues in progress",
        "linear_list_issues",
        rf"{_LIST}(?!.*\bgithub\b).*\bissues\b.*?\b(?:in|with status|that are)\s+(?P<status>{_STATUSES})",
        "I look up the issues in {status}.",
    ),
    *(
        _row(f"List {kind}", tool, rf"{_LIST}.*?\b{kind}\b.*", plans.list_kind(kind, tool))
        for kind, tool in _LISTS.items()
    ),
    _variant("okr_list_objectives", rf"{_LIST}.*?\bokrs\b.*", plans.list_kind("objectives", "okr_list_objectives")),
)
SENTENCES: tuple[Sentence, ...] = (*_FIRST, *_CONTENT, *_GITHUB, *_LINEAR, *_OKRS, *_SITE, *_LISTED)
