"""Helpers for tool packs that store items in Interlock's own database: tools, look-ups, diffs, and histories.

The history of an item is another item beside it: who changed it, when, what, and through which approval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches, unified_diff
from itertools import islice, takewhile
from typing import Literal, NamedTuple, TypedDict, cast

from interlock.chat.tool import CONFIRMED, Tool, ToolInvocation, object_schema
from interlock.core.call import Args, ToolSpec
from interlock.core.canonical import canonical, read_canonical
from interlock.core.decision import KINDS
from interlock.core.errors import CallWouldFail
from interlock.core.ports import ToolItem, ToolItemStore, ToolItemTransaction
from interlock.core.preview import Preview, items_version

MAX_SUGGESTIONS = 3
MAX_COMPARED_NAMES, MAX_COMPARED_LENGTH = 100, 40  # some milliseconds at most
MIN_SIMILARITY = 0.5  # of 1: a poor suggestion only misleads
MAX_COMPARED_LINES = 100  # of each side: comparing takes up to the third power of it, inside a transaction
MAX_HISTORY = 100  # changes of an item that are kept
MAX_CHANGE_LENGTH = 4_000  # characters of the diff of one change that are kept
MAX_HISTORY_LENGTH = (
    150_000  # characters of all diffs of an item: with escapes below the limit of what an item may hold
)

ReadFunction = Callable[[ToolItemStore, Args], Awaitable[object]]
PreviewFunction = Callable[[ToolItemStore, Args], Awaitable[str | Preview]]
WriteFunction = Callable[[ToolItemTransaction, Args], object]


class ChangeAuthor(NamedTuple):
    """Who changes an item: a person in the web app or over HTTP, or a tool call with the id of its approval."""

    person: str = ""
    approval_id: str = ""


class ItemChange(TypedDict):
    """One entry of an item's history; `diff` is cut if it is long."""

    at: int
    action: Literal["created", "updated"]
    person: str
    approval_id: str
    diff: str


def read_tool(
    items: ToolItemStore, name: str, about: str, read: ReadFunction, schema: Mapping[str, object] | None = None
) -> Tool:
    def run(invocation: ToolInvocation) -> Awaitable[object]:
        return read(items, invocation.args)

    return Tool(ToolSpec(name, "read", schema=schema or object_schema()), about, run)


def write_tool(
    items: ToolItemStore,
    kinds: frozenset[str],
    spec: ToolSpec,
    about: str,
    step: WriteFunction,
    preview: PreviewFunction,
) -> Tool:
    """Make an idempotent tool: the key of a call takes effect once. Items of `kinds` have a history.

    If people were asked, it takes effect only on the items that the preview showed, as they were then. So a call whose
    only argument names the item cannot be edited: it would be about an item that nobody saw.
    """

    def run(invocation: ToolInvocation) -> Awaitable[object]:
        author = ChangeAuthor(approval_id=invocation.key)
        return items.change(
            invocation.key,
            lambda transaction: step(HistoryTransaction(transaction, kinds, author), invocation.args),
            invocation.preview_version,
        )

    decisions = NO_EDIT if _only_names_item(spec) else ()
    made = replace(spec, preview=lambda args: preview(items, args), idempotent=True, decisions=decisions)
    return Tool(made, about, run)


NO_EDIT = tuple(kind for kind in KINDS if kind != "edit")


def _only_names_item(spec: ToolSpec) -> bool:
    properties = cast(Mapping[str, Mapping[str, object]], (spec.schema or {}).get("properties", {}))
    taken = [takes.get("type") for name, takes in properties.items() if name != CONFIRMED]
    return taken == ["string"]


async def show_items(make_text: Callable[[], str], items: Mapping[str, Sequence[ToolItem]]) -> Preview:
    """A preview of existing items, by kind, that the call would change, made in a thread: they can be large."""
    return await asyncio.to_thread(lambda: Preview(make_text(), items_version(items)))


async def find_item(items: ToolItemStore, kind: str, item_id: str, list_tool: str) -> ToolItem:
    """Find an item; `list_tool`, the tool that lists this kind, is named in the error."""
    found = await items.get(kind, item_id)
    if found is None:
        known = [item.id for item in await items.list(kind)]
        raise await asyncio.to_thread(missing_item, kind, item_id, known, list_tool)
    return found


def find_in_transaction(transaction: ToolItemTransaction, kind: str, item_id: str, list_tool: str) -> ToolItem:
    """Find an item, as `find_item`, inside a change."""
    found = transaction.get(kind, item_id)
    if found is None:
        raise missing_item(kind, item_id, [item.id for item in transaction.list(kind)], list_tool)
    return found


def missing_item(kind: str, name: str, known: Iterable[str], list_tool: str, where: str = "") -> CallWouldFail:
    """Make the error, with similar names. Few are compared, and only their beginnings: a model can cause it often."""
    starts = {each[:MAX_COMPARED_LENGTH].lower(): each for each in islice(known, MAX_COMPARED_NAMES)}
    sought = name[:MAX_COMPARED_LENGTH].lower()
    near = [starts[each] for each in get_close_matches(sought, starts, MAX_SUGGESTIONS, MIN_SIMILARITY)]
    hint = f"Similar names: {quote_names(near)}." if near else f"Use {list_tool} to see what there is."
    return CallWouldFail(f"There is no {kind.replace('_', ' ')} {name!r}{where}. {hint}")


def new_id(transaction: ToolItemTransaction, counter: str, kind: str, prefix: str) -> str:
    """Return O-1, O-2, …: short enough to say, and never reused; `counter` is the kind of item that counts."""
    last = transaction.get(counter, kind)
    number = cast(int, last.body["last"]) + 1 if last else 1
    while transaction.get(kind, f"{prefix}-{number}") is not None:
        number += 1
    transaction.put(counter, kind, {"last": number})
    return f"{prefix}-{number}"


class HistoryTransaction:
    """A transaction that also writes the history of items of some kinds. An item's history is deleted with it.

    A put that changes nothing is left out.
    """

    def __init__(self, transaction: ToolItemTransaction, kinds: frozenset[str], author: ChangeAuthor) -> None:
        self.now = transaction.now
        self._transaction = transaction
        self._kinds = kinds
        self._author = author

    def get(self, kind: str, item_id: str) -> ToolItem | None:
        return self._transaction.get(kind, item_id)

    def list(self, kind: str) -> Sequence[ToolItem]:
        return self._transaction.list(kind)

    def put(self, kind: str, item_id: str, body: Mapping[str, object]) -> None:
        old = self.get(kind, item_id) if kind in self._kinds else None
        if old is not None and old.body == body:
            return
        if kind in self._kinds:
            kept = self._transaction.get(history_kind(kind), item_id)
            changes = [*_changes(kept), self._describe_change(old, body)]
            self._transaction.put(history_kind(kind), item_id, {"changes": _newest_changes(changes)})
        self._transaction.put(kind, item_id, body)

    def delete(self, kind: str, item_id: str) -> None:
        if kind in self._kinds:
            self._transaction.delete(history_kind(kind), item_id)
        self._transaction.delete(kind, item_id)

    def _describe_change(self, old: ToolItem | None, body: Mapping[str, object]) -> ItemChange:
        stored = cast(Mapping[str, object], read_canonical(canonical(body)))  # its fields in the order of the old ones
        diff = item_diff(old.body if old else {}, stored)
        return {
            "at": self.now,
            "action": "updated" if old else "created",
            "person": self._author.person,
            "approval_id": self._author.approval_id,
            "diff": diff if len(diff) <= MAX_CHANGE_LENGTH else f"{diff[:MAX_CHANGE_LENGTH]}\n…",
        }


def history_kind(kind: str) -> str:
    return f"{kind}_history"


async def read_history(items: ToolItemStore, kind: str, item_id: str) -> Sequence[ItemChange]:
    """Return the changes of an item, newest first."""
    return _changes(await items.get(history_kind(kind), item_id))[::-1]


def _changes(kept: ToolItem | None) -> list[ItemChange]:
    return cast(list[ItemChange], kept.body["changes"]) if kept else []


def _newest_changes(changes: list[ItemChange]) -> list[ItemChange]:
    left, newest = MAX_HISTORY_LENGTH, changes[-MAX_HISTORY:]
    for place in range(len(newest) - 1, -1, -1):
        left -= len(newest[place]["diff"])
        if left < 0:
            return newest[place + 1 :]
    return newest


def quote_names(names: object) -> str:
    """Format as `'a', 'b' and 'c'`: all of them, quoted so that none can pass for something else."""
    quoted = [repr(name) for name in names] if isinstance(names, list | tuple) else [repr(names)]
    return " and ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))


def item_diff(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """Return a unified diff, a line for each field; a text's further lines are indented, to not look like a field.

    Long texts are compared from both ends only: what lies between is shown as removed and added.
    """
    before, after = list(_lines(old)), list(_lines(new))
    if max(len(before), len(after)) > MAX_COMPARED_LINES:
        before, after = _without_common_ends(before, after)
    if max(len(before), len(after)) <= MAX_COMPARED_LINES:
        lines = list(unified_diff(before, after, "now", "afterwards", lineterm=""))
    else:
        lines = ["--- now", "+++ afterwards", *(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    return "\n".join(lines) or "Nothing would change."


def text_argument(args: Args, name: str) -> str:
    return str(args[name])


def text_arguments(args: Args, name: str) -> list[str]:
    found = args[name]
    return [str(each) for each in found] if isinstance(found, list) else [str(found)]


def _without_common_ends(before: list[str], after: list[str]) -> tuple[list[str], list[str]]:
    start = sum(1 for _ in takewhile(_are_equal, zip(before, after, strict=False)))
    before, after = before[start:], after[start:]
    end = sum(1 for _ in takewhile(_are_equal, zip(reversed(before), reversed(after), strict=False)))
    return before[: len(before) - end], after[: len(after) - end]


def _are_equal(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def _lines(fields: Mapping[str, object]) -> Iterator[str]:
    for name, value in fields.items():
        if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
            yield f"{name}:"
            yield from (line for part in value for line in _part_lines(part))
        else:
            first, *others = str(value).split("\n")  # other line breaks are part of the text, and must show as a change
            yield f"{name}: {first}"
            yield from (f"    {line}" for line in others)


def _part_lines(part: Mapping[str, object]) -> Iterator[str]:
    """Format a part of an item, such as a section, as a list entry."""
    for number, line in enumerate(_lines(part)):
        yield f"    {line}" if number else f"  - {line}"
