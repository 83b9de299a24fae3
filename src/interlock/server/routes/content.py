"""Posts, pages and images for people: list, read, create, change and delete them, and count views of the site.

Agents have no access here: they use the tools of the pack `cms`, which ask. Every change by a person has an entry in
the ledger and in the history of the item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from interlock.chat.item_tools import new_id
from interlock.chat.tools import cms
from interlock.chat.tools.cms import IMAGE, PAGE, POST, CmsViews, ContentStatus
from interlock.core.call import MAX_NAME
from interlock.core.errors import Conflict, InvalidRequest
from interlock.core.identity import Principal
from interlock.core.ports import ToolItem, ToolItemTransaction
from interlock.runtime.durations import parse_time, rfc3339
from interlock.runtime.offload import offload
from interlock.server.dependencies import (
    DECIDERS,
    VIEWERS,
    PrincipalDep,
    RequestDep,
    StateDep,
    documented_errors,
    etag,
    require_roles,
)
from interlock.server.http import HttpRequest, JsonList, RequestBody, example
from interlock.server.state import ServerState
from interlock.server.tool_items import (
    DeletedItem,
    ItemChangeJson,
    ItemsQuery,
    SortKey,
    Title,
    change_items,
    contains_words,
    cut_page,
    delete_item,
    find_item,
    item_history,
    replace_item,
    work_size,
)

router = APIRouter(tags=["content and OKRs"])

MAX_VIEWS = 500
Slug = Annotated[str, Field(min_length=1, max_length=200, pattern=cms.SLUG_PATTERN)]
ImageUrl = Annotated[str, Field(max_length=cms.MAX_URL, pattern=cms.URL_PATTERN)]
T = TypeVar("T")


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
    await _create_content(state, principal, POST, body.slug, body.model_dump(exclude={"slug"}))
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
    return await _delete_content(state, principal, request, (POST, slug))


async def _show_post(state: ServerState, principal: Principal, slug: str, response: Response) -> PostDetails:
    item = await find_item(state, principal, POST, slug)
    tag = response.headers["etag"] = etag(item.body)
    seen = await cms.read_views(state.store.tool_items(principal.workspace), POST, slug)
    history = await item_history(state, principal, POST, slug)
    return PostDetails(**_post_info(item, seen).model_dump(), body=str(item.body["body"]), etag=tag, history=history)


def _post_info(item: ToolItem, seen: CmsViews) -> PostInfo:
    line = cast(Mapping[str, Any], {**cms.post_line(item), **cms.views_json(seen)})
    return PostInfo(**line, updated_at=rfc3339(item.at))


# Pages


@router.get("/api/content/pages", responses=documented_errors(), **require_roles(VIEWERS))
async def list_pages(state: StateDep, principal: PrincipalDep, filters: Annotated[ContentQuery, Query()]) -> PageList:
    """Pages without their sections."""
    items, following = await _list_content(state, principal, PAGE, filters, _page_info)
    return PageList(items=items, next=following)


@router.post("/api/content/pages", responses=documented_errors(409), status_code=201, **require_roles(DECIDERS))
async def create_page(body: NewPageBody, state: StateDep, principal: PrincipalDep, response: Response) -> PageDetails:
    """Create a page; a draft unless its status says otherwise."""
    await _create_content(state, principal, PAGE, body.slug, _page_json(body))
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
    return await _delete_content(state, principal, request, (PAGE, slug))


async def _show_page(state: ServerState, principal: Principal, slug: str, response: Response) -> PageDetails:
    item = await find_item(state, principal, PAGE, slug)
    tag = response.headers["etag"] = etag(item.body)
    seen = await cms.read_views(state.store.tool_items(principal.workspace), PAGE, slug)
    sections = [SectionInfo(**section) for section in cms.read_page(item)["sections"]]
    history = await item_history(state, principal, PAGE, slug)
    return PageDetails(**_page_info(item, seen).model_dump(), sections=sections, etag=tag, history=history)


def _page_info(item: ToolItem, seen: CmsViews) -> PageInfo:
    line = cast(dict[str, Any], {**cms.page_line(item), **cms.views_json(seen)})
    return PageInfo(section_count=line.pop("sections"), **line, updated_at=rfc3339(item.at))


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
    tool_items = state.store.tool_items(principal.workspace)
    links, images = await cms.find_links(tool_items), await tool_items.list(IMAGE)

    def search() -> ImageList:
        wanted = [item for item in images if contains_words(filters.q, item)]
        found, following = cut_page([((0, item.id), item) for item in wanted], filters)
        return ImageList(items=[_image_info(item, links) for item in found], next=following)

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

    image_id = str(await change_items(state, principal, step))
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
    return await _delete_content(state, principal, request, (IMAGE, image_id))


async def _show_image(state: ServerState, principal: Principal, image_id: str, response: Response) -> ImageDetails:
    item = await find_item(state, principal, IMAGE, image_id)
    tag = response.headers["etag"] = etag(item.body)
    links = await cms.find_links(state.store.tool_items(principal.workspace))
    history = await item_history(state, principal, IMAGE, image_id)
    return ImageDetails(**_image_info(item, links).model_dump(), etag=tag, history=history)


def _image_info(item: ToolItem, links: Mapping[str, list[str]]) -> ImageInfo:
    image = cms.read_image(item)
    used_in = links.get(cms.image_path(image), [])
    return ImageInfo(id=item.id, **image, used_in=used_in, updated_at=rfc3339(item.at))


# Views


@router.post("/api/content/views", responses=documented_errors(), **require_roles(VIEWERS))
async def count_views(body: SiteViewsBody, state: StateDep, principal: PrincipalDep) -> CountedViews:
    """Report views of the site, for example once an hour from its access log. A time in the future counts as now."""
    now = state.clock()
    views = [
        cms.SiteView(each.path, each.count, parse_time(each.last_at) if each.last_at else now) for each in body.views
    ]
    tool_items = state.store.tool_items(principal.workspace)
    unknown = cast(list[str], await tool_items.change("", lambda transaction: cms.count_views(transaction, views)))
    return CountedViews(counted=len(views) - len(unknown), unknown=unknown)


# Posts, pages and images alike


async def _create_content(
    state: ServerState, principal: Principal, kind: str, item_id: str, body: Mapping[str, object]
) -> None:
    def step(transaction: ToolItemTransaction) -> None:
        if transaction.get(kind, item_id) is not None:
            raise Conflict(f"There is already a {kind} {item_id!r}. Choose another slug.", id=item_id)
        transaction.put(kind, item_id, body)

    await change_items(state, principal, step)


async def _delete_content(
    state: ServerState, principal: Principal, request: HttpRequest, item: tuple[str, str]
) -> DeletedItem:
    return await delete_item(
        state, principal, request, item, lambda transaction: cms.delete_content(transaction, *item)
    )


async def _list_content(
    state: ServerState,
    principal: Principal,
    kind: str,
    filters: ContentQuery,
    info: Callable[[ToolItem, CmsViews], T],
) -> tuple[list[T], str | None]:
    """The posts or pages of one page of a list, and the cursor of the next; searched off the event loop."""
    tool_items = state.store.tool_items(principal.workspace)
    views, items = await cms.list_views(tool_items, kind), await tool_items.list(kind)
    since = parse_time(filters.not_viewed_since) if filters.not_viewed_since else None

    def is_wanted(item: ToolItem, seen: CmsViews) -> bool:
        return (
            filters.status in ("", cms.item_status(item))
            and (since is None or cms.is_unused(item, seen, since))
            and contains_words(filters.q, item)
        )

    def search() -> tuple[list[T], str | None]:
        every = [(item, views.get(item.id, cms.NO_VIEWS)) for item in items]
        wanted = [each for each in every if is_wanted(*each)]
        found, following = cut_page([(_sort_key(filters.sort, *each), each) for each in wanted], filters)
        return [info(*each) for each in found], following

    return await offload(work_size(items), search)


def _sort_key(sort: str, item: ToolItem, seen: CmsViews) -> SortKey:
    match sort:
        case "updated":
            return -item.at, item.id
        case "viewed":
            return seen.last_viewed_at or 0, item.id
        case _:
            return 0, item.id
