"""Items of tool packs as people list, read and change them over HTTP: shared by the routes of content and OKRs.

A change by a person needs no approval. It has an entry in the ledger and in the history of the item, and with If-Match
it does not overwrite what somebody else changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field

from interlock.chat.item_tools import ChangeAuthor, HistoryTransaction, ItemChange, read_history
from interlock.chat.tools import cms, okr
from interlock.core.call import MAX_NAME
from interlock.core.errors import InvalidRequest, NotFound
from interlock.core.identity import Principal
from interlock.core.ports import ToolItem, ToolItemTransaction
from interlock.runtime.durations import rfc3339
from interlock.runtime.offload import OFFLOAD_THRESHOLD
from interlock.server.dependencies import check_if_match, etag
from interlock.server.http import HttpRequest
from interlock.server.state import ServerState

KINDS = cms.KINDS | okr.KINDS
MAX_LIMIT = 500
ITEM_COST = 1_000  # characters: what going through an item costs besides its texts
Title = Annotated[str, Field(min_length=1, max_length=cms.MAX_TITLE)]
PersonStep = Callable[[ToolItemTransaction], object]
SortKey = tuple[int, str]
T = TypeVar("T")


class ItemChangeJson(BaseModel):
    """One change: by `person`, or by the tool call that `approval_id` names. A long `diff` is cut."""

    at: str
    action: Literal["created", "updated"]
    person: str | None
    approval_id: str | None
    diff: str


class DeletedItem(BaseModel):
    id: str
    deleted_at: str


class ItemsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    q: Annotated[str, Field(max_length=MAX_NAME, description="A part of the name, title or text.")] = ""
    cursor: Annotated[str, Field(max_length=MAX_NAME + 20, description="`next` of the previous page.")] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 100


async def find_item(state: ServerState, principal: Principal, kind: str, item_id: str) -> ToolItem:
    found = await state.store.tool_items(principal.workspace).get(kind, item_id)
    if found is None:
        raise _not_found(kind, item_id)
    return found


async def item_history(state: ServerState, principal: Principal, kind: str, item_id: str) -> list[ItemChangeJson]:
    """The changes of an item, newest first, at most 100."""
    return [
        change_json(change) for change in await read_history(state.store.tool_items(principal.workspace), kind, item_id)
    ]


def change_json(change: ItemChange) -> ItemChangeJson:
    return ItemChangeJson(
        at=rfc3339(change["at"]),
        action=change["action"],
        person=change["person"] or None,
        approval_id=change["approval_id"] or None,
        diff=change["diff"],
    )


async def change_items(state: ServerState, principal: Principal, step: PersonStep) -> object:
    """Run a step in a person's name: with its entries in the ledger and in the histories of the items."""
    author = ChangeAuthor(person=principal.name)
    return await state.store.tool_items(principal.workspace).change_by(
        principal.name,
        principal.reviewer().trace,
        KINDS,
        lambda transaction: step(HistoryTransaction(transaction, KINDS, author)),
    )


async def replace_item(
    state: ServerState, principal: Principal, request: HttpRequest, item: tuple[str, str], body: Mapping[str, object]
) -> None:
    """Replace the body of an item, if it exists and is still as the caller saw it."""

    def step(transaction: ToolItemTransaction) -> None:
        require_current(transaction, request, *item)
        transaction.put(*item, body)

    await change_items(state, principal, step)


def require_current(transaction: ToolItemTransaction, request: HttpRequest | None, kind: str, item_id: str) -> ToolItem:
    """The item. Raises NotFound, or Stale if the request has an If-Match of another version."""
    found = transaction.get(kind, item_id)
    if found is None:
        raise _not_found(kind, item_id)
    if request is not None:
        check_if_match(request.headers, etag(found.body))
    return found


async def delete_item(
    state: ServerState, principal: Principal, request: HttpRequest, item: tuple[str, str], delete: PersonStep
) -> DeletedItem:
    """Delete an item, and by `delete` what belongs to it, if it is still as the caller saw it."""

    def step(transaction: ToolItemTransaction) -> int:
        require_current(transaction, request, *item)
        delete(transaction)
        return transaction.now

    at = cast(int, await change_items(state, principal, step))
    return DeletedItem(id=item[1], deleted_at=rfc3339(at))


def _not_found(kind: str, item_id: str) -> NotFound:
    return NotFound(f"There is no {kind.replace('_', ' ')} with this id.", id=item_id)


def work_size(items: Iterable[ToolItem]) -> int:
    """What going through the items costs, in characters; counted only until it is enough to be offloaded."""
    size = 0
    for item in items:
        size += ITEM_COST + sum(map(len, _texts(item.body)))
        if size >= OFFLOAD_THRESHOLD:
            break
    return size


def cut_page(found: Sequence[tuple[SortKey, T]], filters: ItemsQuery) -> tuple[list[T], str | None]:
    """The items after the cursor, which is the sort key of the last item of the previous page."""
    after = _parse_cursor(filters.cursor)
    left = sorted((each for each in found if after is None or each[0] > after), key=lambda each: each[0])
    page = left[: filters.limit]
    following = f"{page[-1][0][0]}.{page[-1][0][1]}" if len(left) > len(page) else None
    return [item for _, item in page], following


def _parse_cursor(cursor: str) -> SortKey | None:
    number, _, item_id = cursor.partition(".")
    if not cursor:
        return None
    if not number.removeprefix("-").isdecimal() or not number.isascii():
        raise InvalidRequest("The cursor is not valid: send `next` of the previous page, unchanged.")
    return int(number), item_id


def contains_words(words: str, item: ToolItem) -> bool:
    """Whether the id or one of the texts of an item has these words, regardless of case."""
    wanted = words.strip().casefold()
    return not wanted or any(wanted in text.casefold() for text in (item.id, *_texts(item.body)))


def _texts(body: Mapping[str, object]) -> Iterator[str]:
    for value in body.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (text for part in value for text in _texts(part))
