"""Posts, pages and images for people: list, read, create, change and delete them, and count views of the site.

Agents have no access here: they use the tools of the pack `cms`, which ask. Every change by a person has an entry in
the ledger and in the history of the item.

It is long because three kinds of items have the same five routes, with models of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, cast

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from interlock.chat.record_tools import ChangeAuthor, HistoryTransaction, ItemChange, new_id, read_history
from interlock.chat.tools import cms
from interlock.chat.tools.cms import IMAGE, PAGE, POST, CmsViews, ContentStatus
from interlock.core.call import MAX_NAME
from interlock.core.errors import Conflict, InvalidRequest, NotFound
from interlock.core.identity import Principal
from interlock.core.ports import ToolItem, ToolItemTransaction
from interlock.runtime.durations import parse_time, rfc3339
from interlock.runtime.offload import OFFLOAD_THRESHOLD, offload
from interlock.server.dependencies import (
    DECIDERS,
    VIEWERS,
    PrincipalDep,
    RequestDep,
    StateDep,
    check_if_match,
    documented_errors,
    etag,
    require_roles,
)
from interlock.server.http import HttpRequest, JsonList, RequestBody, example
from interlock.server.state import ServerState

router = APIRouter(tags=["content and OKRs"])

MAX_LIMIT, MAX_VIEWS = 500, 500
ITEM_COST = 1_000  # characters: what going through an item costs besides its texts
LABELS = {"key_result": "key result"}
Slug = Annotated[str, Field(min_length=1, max_length=200, pattern=cms.SLUG_PATTERN)]
Title = Annotated[str, Field(min_length=1, max_length=cms.MAX_TITLE)]
ImageUrl = Annotated[str, Field(max_length=cms.MAX_URL, pattern=cms.URL_PATTERN)]
PersonStep = Callable[[ToolItemTransaction], object]


class PostBody(RequestBody):
    """A whole post: `body` is Markdown."""

    model_config = example({"title": "Waiting lists", "status": "draft", "body": "They are **here**."})

    title: Title
    status: ContentStatus
    body: Annotated[str, Field(max_length=cms.MAX_BODY)]


class NewPostBody(PostBody):
    model_config = example({"slug": "waiting-lists", "title": "Waiting lists", "body": "They are **here**."})

    slug: Slug
    status: ContentStatus = "draft"
    body: Annotated[str, Field(max_length=cms.MAX_BODY)] = ""


class SectionBody(RequestBody):
    id: Slug
    heading: Title
    body: Annotated[str, Field(max_length=cms.MAX_SECTION)]


Sections = Annotated[JsonList[SectionBody], Field(max_length=cms.MAX_SECTIONS)]


class PageBody(RequestBody):
    """A whole page: its sections in their order, each with an id of its own."""

    model_config = example(
        {
            "title": "About",
            "status": "published",
            "sections": [{"id": "team", "heading": "The team", "body": "We are nine."}],
        }
    )

    title: Title
    status: ContentStatus
    sections: Sections


class NewPageBody(PageBody):
    model_config = example({"slug": "about", "title": "About"})

    slug: Slug
    status: ContentStatus = "draft"
    sections: Sections = ()


class ImageBody(RequestBody):
    """What an image shows, and where its file is; the file itself is not stored here, and the URL not fetched."""

    model_config = example({"alt": "The team on the pier", "url": ""})

    alt: Annotated[str, Field(max_length=cms.MAX_ALT)]
    url: ImageUrl = ""


class NewImageBody(ImageBody):
    """The site shows the image at `/images/NAME`."""

    model_config = example({"name": "team.jpg", "alt": "The team on the pier"})

    name: Annotated[str, Field(max_length=200, pattern=cms.FILE_PATTERN)]


class PathViewsBody(RequestBody):
    path: Annotated[str, Field(min_length=1, max_length=MAX_NAME + 10, pattern="^/")]
    count: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1
    last_at: Annotated[str, Field(max_length=MAX_NAME, description="The last view; now by default.")] = ""


class SiteViewsBody(RequestBody):
    """Views since the last report, by path: `/about` is the page, `/posts/hello` the post. At most 500 paths."""

    model_config = example({"views": [{"path": "/about", "count": 12, "last_at": "2027-03-01T18:00:00Z"}]})

    views: Annotated[JsonList[PathViewsBody], Field(min_length=1, max_length=MAX_VIEWS)]


class ItemChangeJson(BaseModel):
    """One change: by `person`, or by the tool call that `approval_id` names. A long `diff` is cut."""

    at: str
    action: Literal["created", "updated"]
    person: str | None
    approval_id: str | None
    diff: str


class PostInfo(BaseModel):
    """`views` and `last_viewed_at` are what the site has reported: 0 and null if nothing yet."""

    slug: str
    title: str
    status: ContentStatus
    words: int
    views: int
    last_viewed_at: str | None
    updated_at: str


class PostDetails(PostInfo):
    body: str
    etag: str
    history: list[ItemChangeJson]


class PostList(BaseModel):
    items: list[PostInfo]
    next: str | None = None


class PageInfo(BaseModel):
    """`views` and `last_viewed_at` are what the site has reported: 0 and null if nothing yet."""

    slug: str
    title: str
    status: ContentStatus
    section_count: int
    views: int
    last_viewed_at: str | None
    updated_at: str


class SectionInfo(BaseModel):
    id: str
    heading: str
    body: str


class PageDetails(PageInfo):
    sections: list[SectionInfo]
    etag: str
    history: list[ItemChangeJson]


class PageList(BaseModel):
    items: list[PageInfo]
    next: str | None = None


class ImageInfo(BaseModel):
    """`used_in` are the posts and pages that show it."""

    id: str
    name: str
    alt: str
    url: str
    used_in: list[str]
    updated_at: str


class ImageDetails(ImageInfo):
    etag: str
    history: list[ItemChangeJson]


class ImageList(BaseModel):
    items: list[ImageInfo]
    next: str | None = None


class CountedViews(BaseModel):
    """`unknown` are the paths that lead to no post and no page; their views are not counted."""

    counted: int
    unknown: list[str]


class DeletedItem(BaseModel):
    id: str
    deleted_at: str


class ItemsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    q: Annotated[str, Field(max_length=MAX_NAME, description="A part of the name, title or text.")] = ""
    cursor: Annotated[str, Field(max_length=MAX_NAME + 20, description="`next` of the previous page.")] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 100


class ContentQuery(ItemsQuery):
    """`sort` is by name, by the newest change, or by the longest time without a view."""

    status: Literal["", "draft", "published", "archived"] = ""
    not_viewed_since: Annotated[
        str, Field(max_length=MAX_NAME, description="Only what nobody has viewed since this time (RFC 3339).")
    ] = ""
    sort: Literal["name", "updated", "viewed"] = "name"


# Posts


@router.get("/api/content/posts", responses=documented_errors(), **require_roles(VIEWERS))
async def list_posts(state: StateDep, principal: PrincipalDep, filters: Annotated[ContentQuery, Query()]) -> PostList:
    """Posts without their bodies."""
    items, following = await _list_content(state, principal, POST, filters, _post_info)
    return PostList(items=items, next=following)


@router.post("/api/content/posts", responses=documented_errors(409), status_code=201, **require_roles(DECIDERS))
async def create_post(body: NewPostBody, state: StateDep, principal: PrincipalDep, response: Response) -> PostDetails:
    """Create a post; a draft unless its status says otherwise."""
    await create_item(state, principal, POST, body.slug, body.model_dump(exclude={"slug"}))
    return await _show_post(state, principal, body.slug, response)


@router.get("/api/content/posts/{slug}", responses=documented_errors(404), **require_roles(VIEWERS))
async def show_post(slug: str, state: StateDep, principal: PrincipalDep, response: Response) -> PostDetails:
    """One post with its history. The ETag is that of its content."""
    return await _show_post(state, principal, slug, response)


@router.put("/api/content/posts/{slug}", responses=documented_errors(404, 409), **require_roles(DECIDERS))
async def change_post(
    slug: str, body: PostBody, state: StateDep, principal: PrincipalDep, request: RequestDep, response: Response
) -> PostDetails:
    """Change a post. With If-Match, a change that somebody else made meanwhile is not overwritten: 409 `stale`."""
    await replace_item(state, principal, request, (POST, slug), body.model_dump())
    return await _show_post(state, principal, slug, response)


@router.delete("/api/content/posts/{slug}", responses=documented_errors(404, 409), **require_roles(DECIDERS))
async def delete_post(slug: str, state: StateDep, principal: PrincipalDep, request: RequestDep) -> DeletedItem:
    """Delete a post with its history and its views; this cannot be undone."""
    return await _delete_content(state, principal, request, POST, slug)


async def _show_post(state: ServerState, principal: Principal, slug: str, response: Response) -> PostDetails:
    record = await find_item(state, principal, POST, slug)
    tag = response.headers["etag"] = etag(record.body)
    seen = await cms.read_views(state.store.records(principal.workspace), POST, slug)
    history = await item_history(state, principal, POST, slug)
    return PostDetails(
        **_post_info(record, seen).model_dump(), body=str(record.body["body"]), etag=tag, history=history
    )


def _post_info(record: ToolItem, seen: CmsViews) -> PostInfo:
    line = cast(Mapping[str, Any], {**cms.post_line(record), **cms.views_json(seen)})
    return PostInfo(**line, updated_at=rfc3339(record.at))


# Pages


@router.get("/api/content/pages", responses=documented_errors(), **require_roles(VIEWERS))
async def list_pages(state: StateDep, principal: PrincipalDep, filters: Annotated[ContentQuery, Query()]) -> PageList:
    """Pages without their sections."""
    items, following = await _list_content(state, principal, PAGE, filters, _page_info)
    return PageList(items=items, next=following)


@router.post("/api/content/pages", responses=documented_errors(409), status_code=201, **require_roles(DECIDERS))
async def create_page(body: NewPageBody, state: StateDep, principal: PrincipalDep, response: Response) -> PageDetails:
    """Create a page; a draft unless its status says otherwise."""
    await create_item(state, principal, PAGE, body.slug, _page_json(body))
    return await _show_page(state, principal, body.slug, response)


@router.get("/api/content/pages/{slug}", responses=documented_errors(404), **require_roles(VIEWERS))
async def show_page(slug: str, state: StateDep, principal: PrincipalDep, response: Response) -> PageDetails:
    """One page with its sections and its history. The ETag is that of its content."""
    return await _show_page(state, principal, slug, response)


@router.put("/api/content/pages/{slug}", responses=documented_errors(404, 409), **require_roles(DECIDERS))
async def change_page(
    slug: str, body: PageBody, state: StateDep, principal: PrincipalDep, request: RequestDep, response: Response
) -> PageDetails:
    """Change a page with its sections. With If-Match, somebody else's change is not overwritten: 409 `stale`."""
    await replace_item(state, principal, request, (PAGE, slug), _page_json(body))
    return await _show_page(state, principal, slug, response)


@router.delete("/api/content/pages/{slug}", responses=documented_errors(404, 409), **require_roles(DECIDERS))
async def delete_page(slug: str, state: StateDep, principal: PrincipalDep, request: RequestDep) -> DeletedItem:
    """Delete a page with its sections, its history and its views; this cannot be undone."""
    return await _delete_content(state, principal, request, PAGE, slug)


async def _show_page(state: ServerState, principal: Principal, slug: str, response: Response) -> PageDetails:
    record = await find_item(state, principal, PAGE, slug)
    tag = response.headers["etag"] = etag(record.body)
    seen = await cms.read_views(state.store.records(principal.workspace), PAGE, slug)
    sections = [SectionInfo(**section) for section in cms.read_page(record)["sections"]]
    history = await item_history(state, principal, PAGE, slug)
    return PageDetails(**_page_info(record, seen).model_dump(), sections=sections, etag=tag, history=history)


def _page_info(record: ToolItem, seen: CmsViews) -> PageInfo:
    line = cast(dict[str, Any], {**cms.page_line(record), **cms.views_json(seen)})
    return PageInfo(section_count=line.pop("sections"), **line, updated_at=rfc3339(record.at))


def _page_json(body: PageBody) -> Mapping[str, object]:
    """The page as it is stored. Raises InvalidRequest if two sections have the same id."""
    ids = [section.id for section in body.sections]
    twice = next((each for each in ids if ids.count(each) > 1), None)
    if twice is not None:
        raise InvalidRequest(f"Two sections have the id {twice!r}. Give each its own.")
    sections = [section.model_dump() for section in body.sections]
    return {"title": body.title, "status": body.status, "sections": sections}


# Images


@router.get("/api/content/images", responses=documented_errors(), **require_roles(VIEWERS))
async def list_images(state: StateDep, principal: PrincipalDep, filters: Annotated[ItemsQuery, Query()]) -> ImageList:
    """Images, and the posts and pages that show them."""
    records = state.store.records(principal.workspace)
    links, images = await cms.find_links(records), await records.list(IMAGE)

    def search() -> ImageList:
        wanted = [record for record in images if contains_words(filters.q, record)]
        found, following = cut_page([((0, record.id), record) for record in wanted], filters)
        return ImageList(items=[_image_info(record, links) for record in found], next=following)

    return await offload(work_size(images), search)


@router.post("/api/content/images", responses=documented_errors(), status_code=201, **require_roles(DECIDERS))
async def create_image(
    body: NewImageBody, state: StateDep, principal: PrincipalDep, response: Response
) -> ImageDetails:
    """Add an image: its file name, what it shows, and where the file is."""
    image = {"name": body.name, "alt": body.alt, "url": body.url}

    def step(transaction: ToolItemTransaction) -> str:
        image_id = new_id(transaction, cms.COUNT, IMAGE, cms.IMAGE_PREFIX)
        transaction.put(IMAGE, image_id, image)
        return image_id

    image_id = str(await change_items(state, principal, cms.KINDS, step))
    return await _show_image(state, principal, image_id, response)


@router.get("/api/content/images/{image_id}", responses=documented_errors(404), **require_roles(VIEWERS))
async def show_image(image_id: str, state: StateDep, principal: PrincipalDep, response: Response) -> ImageDetails:
    """One image with its history. The ETag is that of its content."""
    return await _show_image(state, principal, image_id, response)


@router.put("/api/content/images/{image_id}", responses=documented_errors(404, 409), **require_roles(DECIDERS))
async def change_image(
    image_id: str, body: ImageBody, state: StateDep, principal: PrincipalDep, request: RequestDep, response: Response
) -> ImageDetails:
    """Change what an image is said to show, or where its file is. With If-Match: 409 `stale` if it was changed."""
    known = await find_item(state, principal, IMAGE, image_id)
    new = {"name": known.body["name"], **body.model_dump()}  # an image never changes its name
    await replace_item(state, principal, request, (IMAGE, image_id), new)
    return await _show_image(state, principal, image_id, response)


@router.delete("/api/content/images/{image_id}", responses=documented_errors(404, 409), **require_roles(DECIDERS))
async def delete_image(image_id: str, state: StateDep, principal: PrincipalDep, request: RequestDep) -> DeletedItem:
    """Delete an image with its history; this cannot be undone."""
    return await _delete_content(state, principal, request, IMAGE, image_id)


async def _show_image(state: ServerState, principal: Principal, image_id: str, response: Response) -> ImageDetails:
    record = await find_item(state, principal, IMAGE, image_id)
    tag = response.headers["etag"] = etag(record.body)
    links = await cms.find_links(state.store.records(principal.workspace))
    history = await item_history(state, principal, IMAGE, image_id)
    return ImageDetails(**_image_info(record, links).model_dump(), etag=tag, history=history)


def _image_info(record: ToolItem, links: Mapping[str, list[str]]) -> ImageInfo:
    image = cms.read_image(record)
    used_in = links.get(cms.image_path(image), [])
    return ImageInfo(id=record.id, **image, used_in=used_in, updated_at=rfc3339(record.at))


# Views


@router.post("/api/content/views", responses=documented_errors(), **require_roles(VIEWERS))
async def count_views(body: SiteViewsBody, state: StateDep, principal: PrincipalDep) -> CountedViews:
    """Report views of the site, for example once an hour from its access log. A time in the future counts as now."""
    now = state.clock()
    views = [
        cms.SiteView(each.path, each.count, parse_time(each.last_at) if each.last_at else now) for each in body.views
    ]
    records = state.store.records(principal.workspace)
    unknown = cast(list[str], await records.change("", lambda transaction: cms.count_views(transaction, views)))
    return CountedViews(counted=len(views) - len(unknown), unknown=unknown)


# Items of any kind


async def find_item(state: ServerState, principal: Principal, kind: str, item_id: str) -> ToolItem:
    found = await state.store.records(principal.workspace).get(kind, item_id)
    if found is None:
        raise _not_found(kind, item_id)
    return found


async def item_history(state: ServerState, principal: Principal, kind: str, item_id: str) -> list[ItemChangeJson]:
    """The changes of an item, newest first, at most 100."""
    return [
        change_json(change) for change in await read_history(state.store.records(principal.workspace), kind, item_id)
    ]


def change_json(change: ItemChange) -> ItemChangeJson:
    return ItemChangeJson(
        at=rfc3339(change["at"]),
        action=change["action"],
        person=change["person"] or None,
        approval_id=change["approval_id"] or None,
        diff=change["diff"],
    )


async def change_items(state: ServerState, principal: Principal, kinds: frozenset[str], step: PersonStep) -> object:
    """Run a step in a person's name: with its entries in the ledger and in the histories of the items."""
    author = ChangeAuthor(person=principal.name)
    return await state.store.records(principal.workspace).change_by(
        principal.name,
        principal.reviewer().trace,
        kinds,
        lambda transaction: step(HistoryTransaction(transaction, kinds, author)),
    )


async def create_item(
    state: ServerState, principal: Principal, kind: str, item_id: str, body: Mapping[str, object]
) -> None:
    def step(transaction: ToolItemTransaction) -> None:
        if transaction.get(kind, item_id) is not None:
            raise Conflict(f"There is already a {kind} {item_id!r}. Choose another slug.", id=item_id)
        transaction.put(kind, item_id, body)

    await change_items(state, principal, cms.KINDS, step)


async def replace_item(
    state: ServerState, principal: Principal, request: HttpRequest, item: tuple[str, str], body: Mapping[str, object]
) -> None:
    """Replace the body of an item, if it exists and is still as the caller saw it."""

    def step(transaction: ToolItemTransaction) -> None:
        require_current(transaction, request, *item)
        transaction.put(*item, body)

    await change_items(state, principal, frozenset({item[0]}), step)


def require_current(transaction: ToolItemTransaction, request: HttpRequest | None, kind: str, item_id: str) -> ToolItem:
    """The item. Raises NotFound, or Stale if the request has an If-Match of another version."""
    found = transaction.get(kind, item_id)
    if found is None:
        raise _not_found(kind, item_id)
    if request is not None:
        check_if_match(request.headers, etag(found.body))
    return found


async def _delete_content(
    state: ServerState, principal: Principal, request: HttpRequest, kind: str, item_id: str
) -> DeletedItem:
    def step(transaction: ToolItemTransaction) -> int:
        require_current(transaction, request, kind, item_id)
        cms.delete_content(transaction, kind, item_id)
        return transaction.now

    at = cast(int, await change_items(state, principal, cms.KINDS, step))
    return DeletedItem(id=item_id, deleted_at=rfc3339(at))


def _not_found(kind: str, item_id: str) -> NotFound:
    return NotFound(f"There is no {LABELS.get(kind, kind)} with this id.", id=item_id)


# Lists


SortKey = tuple[int, str]
T = TypeVar("T")


async def _list_content(
    state: ServerState,
    principal: Principal,
    kind: str,
    filters: ContentQuery,
    info: Callable[[ToolItem, CmsViews], T],
) -> tuple[list[T], str | None]:
    """The posts or pages of one page of a list, and the cursor of the next; searched off the event loop."""
    records = state.store.records(principal.workspace)
    views, items = await cms.list_views(records, kind), await records.list(kind)
    since = parse_time(filters.not_viewed_since) if filters.not_viewed_since else None

    def is_wanted(record: ToolItem, seen: CmsViews) -> bool:
        return (
            filters.status in ("", cms.item_status(record))
            and (since is None or cms.is_unused(record, seen, since))
            and contains_words(filters.q, record)
        )

    def search() -> tuple[list[T], str | None]:
        every = [(record, views.get(record.id, cms.NO_VIEWS)) for record in items]
        wanted = [each for each in every if is_wanted(*each)]
        found, following = cut_page([(_sort_key(filters.sort, *each), each) for each in wanted], filters)
        return [info(*each) for each in found], following

    return await offload(work_size(items), search)


def work_size(items: Iterable[ToolItem]) -> int:
    """What going through the items costs, in characters; counted only until it is enough to be offloaded."""
    size = 0
    for item in items:
        size += ITEM_COST + sum(map(len, _texts(item.body)))
        if size >= OFFLOAD_THRESHOLD:
            break
    return size


def _sort_key(sort: str, record: ToolItem, seen: CmsViews) -> SortKey:
    match sort:
        case "updated":
            return -record.at, record.id
        case "viewed":
            return seen.last_viewed_at or 0, record.id
        case _:
            return 0, record.id


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


def contains_words(words: str, record: ToolItem) -> bool:
    """Whether the id or one of the texts of an item has these words, regardless of case."""
    wanted = words.strip().casefold()
    return not wanted or any(wanted in text.casefold() for text in (record.id, *_texts(record.body)))


def _texts(body: Mapping[str, object]) -> Iterator[str]:
    for value in body.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (text for part in value for text in _texts(part))
