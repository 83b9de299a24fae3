"""Full-text search: an approval as a document of words, and a query as the words that it must have.

There are two sorts. Plain words are what people read, in lower case. Exact terms stand for a whole value, as in "the
tool is pay" or "the argument to is bob"; they begin with a character that no plain word has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import cast
from unicodedata import normalize

from interlock.core.approval.approval import Approval
from interlock.core.call import ANY_OWNER, SECRET_MARKER, Args, Subject
from interlock.core.canonical import canonical, parse_json, read_canonical
from interlock.core.errors import InvalidRequest
from interlock.core.ledger.event import Payload, Stored
from interlock.core.ports import ApprovalQuery

EXACT_TERM_PREFIX = "§"  # not a letter, so no plain word has it; not ASCII, so no database takes it for a separator
MAX_WORDS = 200
MAX_ARGUMENTS = 100
MAX_QUERY_WORDS = 32
MAX_WORD_LENGTH = 64
MAX_TEXT_LENGTH = 4_000
MIN_PREFIX_LENGTH = 2
# In scripts without spaces every character is a word. Elsewhere a word is a run of letters and digits.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """All of `words`, one of each group of `any_of`, and a word that begins with `prefix` if there is one."""

    words: tuple[str, ...] = ()
    any_of: tuple[tuple[str, ...], ...] = ()
    prefix: str = ""


def parse_argument_filter(text: str) -> tuple[str, object]:
    """Parse PATH=VALUE. The value is JSON if it parses: 5 is a number, "5" in quotation marks a text."""
    path, equals, value = text.partition("=")
    if not path or not equals:
        raise InvalidRequest(f"{text[:100]!r} is not PATH=VALUE.")
    try:
        return path, parse_json(value)
    except InvalidRequest:
        return path, value


def search_document(stored: Stored) -> str:
    """The document of an approval: what people may see of it, so it holds no secret value."""
    approval, subject = stored.approval, stored.approval.subject
    leaves = list(islice(_leaves(_shown_args(stored.payload)), MAX_ARGUMENTS))
    plain: dict[str, None] = {}
    for text in _texts(stored, leaves):
        plain.update(dict.fromkeys(split_words(text)))
        if len(plain) > MAX_WORDS:
            break
    marked = dict.fromkeys(_exact_terms(approval))
    marked.update(dict.fromkeys(_argument_term(subject.workspace, path, value) for path, value in leaves))
    return " ".join([*islice(plain, MAX_WORDS), *marked])


def split_words(text: str) -> list[str]:
    """Split a text into words, the same way for documents and queries."""
    cut = text[:MAX_TEXT_LENGTH]
    folded = cut.lower() if cut.isascii() else normalize("NFKC", normalize("NFKC", cut).casefold())
    return [word[:MAX_WORD_LENGTH] for word in _WORD.findall(folded)]


def needs_text_search(query: ApprovalQuery) -> bool:
    """Whether the query needs the text index; else an ordered index can answer it."""
    names = _query_names(query).values()
    if any((query.text.strip(), query.person, query.team, query.arguments, query.owners, *names)):
        return True
    match query.statuses:
        case ():
            return False
        case ("pending",):
            return bool(query.since) or query.until is not None  # their index is ordered by time left
        case _:
            return not _FREQUENT_STATUSES.isdisjoint(query.statuses)


def make_search_terms(workspace: str, query: ApprovalQuery) -> SearchTerms:
    """Every filter as a word; the last word of a text may be a prefix."""
    asked = _query_words(query.text)
    beginning = asked.pop() if asked and len(asked[-1]) >= MIN_PREFIX_LENGTH else ""
    exact = [exact_term(workspace, kind, name) for kind, name in _query_names(query).items() if name]
    exact += [exact_term(workspace, "person", query.person)] if query.person else []
    exact += [exact_term(workspace, "team", query.team)] if query.team else []
    exact += [_argument_term(workspace, path, check_scalar(path, value)) for path, value in query.arguments]
    statuses = tuple(exact_term(workspace, "status", status) for status in query.statuses)
    owners = tuple(exact_term(workspace, "owner", owner) for owner in sorted(_visible_owners(query)))
    groups = tuple(group for group in (statuses, owners) if group)
    here = () if exact or groups else (exact_term(workspace, "workspace", ""),)
    return SearchTerms((*here, *dict.fromkeys([*exact, *asked])), groups, beginning)


def matches_query(stored: Stored, query: ApprovalQuery) -> bool:
    """Whether the approval itself matches: term digests can collide, and the index can be out of date."""
    approval, subject = stored.approval, stored.approval.subject
    names = _query_names(query)
    return (
        (not query.statuses or approval.status in query.statuses)
        and (not query.owners or subject.owner in _visible_owners(query))
        and query.since <= approval.created_at
        and (query.until is None or approval.created_at < query.until)
        and all(not names[kind] or names[kind] in has for kind, has in _subject_names(subject).items())
        and (not query.person or query.person in _people(approval))
        and (not query.team or query.team in _teams(approval))
        and (not query.arguments or _has_arguments(stored.payload, query))
    )


@lru_cache(maxsize=10_000)  # the same tools, agents and people recur
def exact_term(workspace: str, kind: str, value: str) -> str:
    """The term for a whole value; it includes the workspace, so that terms of others never match."""
    digest = sha256(f"{workspace}\x1f{value}".encode(errors="surrogatepass")).hexdigest()  # half a pair matches none
    return f"{EXACT_TERM_PREFIX}{_KIND_LETTERS[kind]}{digest[:12]}"


def check_scalar(path: str, value: object) -> object:
    """Arguments are compared whole, and only texts, numbers, booleans and null are indexed as such."""
    if isinstance(value, Mapping | list | tuple):
        raise InvalidRequest(f"The argument {path} is compared with a text, a number, true, false or null.")
    canonical(value)
    return value


_FREQUENT_STATUSES = frozenset({"pending", "succeeded"})
_KIND_LETTERS = {
    "agent": "a",
    "leaf": "v",
    "owner": "o",
    "person": "p",
    "priority": "y",
    "requester": "r",
    "run": "n",
    "status": "s",
    "team": "m",
    "thread": "h",
    "tool": "t",
    "workspace": "w",
}


def _query_words(text: str) -> list[str]:
    asked = list(dict.fromkeys(split_words(text)))
    if text.strip() and not asked:
        raise InvalidRequest("There is no word to search for. Give letters or digits.")
    if len(asked) > MAX_QUERY_WORDS:
        raise InvalidRequest(f"A search takes at most {MAX_QUERY_WORDS} words. Leave some out.")
    return asked


def _visible_owners(query: ApprovalQuery) -> frozenset[str]:
    """Whose calls are found: those that are older than call ownership are anybody's."""
    return query.owners | {ANY_OWNER} if query.owners else query.owners


def _query_names(query: ApprovalQuery) -> dict[str, str]:
    return {
        "tool": query.tool,
        "agent": query.agent,
        "thread": query.thread_id,
        "run": query.run_id,
        "requester": query.requester,
        "priority": query.priority,
    }


def _subject_names(subject: Subject) -> dict[str, tuple[str, ...]]:
    return {
        "tool": (subject.tool,),
        "agent": (*subject.agent_path, subject.agent),
        "thread": (subject.thread_id,),
        "run": (subject.run_id,),
        "requester": (subject.requester,),
        "priority": (subject.priority,),
    }


def _exact_terms(approval: Approval) -> Iterator[str]:
    workspace = approval.subject.workspace
    yield exact_term(workspace, "workspace", "")
    yield exact_term(workspace, "status", approval.status)
    if approval.subject.owner:
        yield exact_term(workspace, "owner", approval.subject.owner)
    for kind, names in _subject_names(approval.subject).items():
        yield from (exact_term(workspace, kind, name) for name in names if name)
    yield from (exact_term(workspace, "person", name) for name in _people(approval))
    yield from (exact_term(workspace, "team", name) for name in sorted(_teams(approval)))


def _people(approval: Approval) -> Iterable[str]:
    """The people who asked for it, decided it, voted on it or edited it."""
    decided = (approval.decision.by,) if approval.decision else ()
    voters = [vote.by for vote in approval.votes]
    return dict.fromkeys(filter(None, (approval.subject.requester, *decided, *voters, *approval.editors)))


def _teams(approval: Approval) -> frozenset[str]:
    """The teams that the terms name, to decide or by escalation."""
    asked = [stage.approvers for stage in approval.terms.stages if stage.approvers is not None]
    return frozenset[str]().union(
        *(people.teams for people in (*asked, *(step.to for step in approval.terms.escalation_steps)))
    )


def _texts(stored: Stored, leaves: list[tuple[str, object]]) -> Iterator[str]:
    approval, subject, decision_record = stored.approval, stored.approval.subject, stored.approval.decision
    yield stored.payload.sentence or ""
    if decision_record is not None:
        yield from (decision_record.reason, decision_record.comment)
    yield from (subject.tool, *_subject_names(subject)["agent"], subject.thread_id, subject.run_id, *_people(approval))
    for _, value in leaves:
        match value:
            case str():
                yield value
            case bool() | None:
                continue
            case _:
                yield canonical(value).decode()


def _shown_args(payload: Payload) -> Args:
    return cast(Args, read_canonical(payload.shown or payload.args or b"{}"))


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Scalar values with their paths; a list's items share the path of the list."""
    match value:
        case Mapping():
            if len(value) == 1 and SECRET_MARKER in value:
                return
            for name, inner in value.items():
                yield from _leaves(inner, f"{path}.{name}" if path else name)
        case list():
            for inner in value:
                yield from _leaves(inner, path)
        case _:
            yield path, value


def _argument_term(workspace: str, path: str, value: object) -> str:
    return exact_term(workspace, "leaf", f"{path}\x1f{_normalized_value(value)}")


def _normalized_value(value: object) -> str:
    """One spelling for each value: 100, 100.0 and 1e2 are one number, and no number is a text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return canonical(value).decode()
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    return f"{'-' * sign}{short}e{int(exponent) + len(text) - len(short)}" if short else "0"


def _has_arguments(payload: Payload, query: ApprovalQuery) -> bool:
    missing = {(path, _normalized_value(value)) for path, value in query.arguments}
    paths = {path for path, _ in missing}
    missing -= {(path, _normalized_value(value)) for path, value in _leaves(_shown_args(payload)) if path in paths}
    return not missing
