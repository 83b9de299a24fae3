"""CMS tool pack: posts, images, pages and their sections, stored in Interlock's own database.

What a site shows is public at once and cannot be taken back, so publishing counts as destructive: its card is high
risk. Views are counted in items of their own, so that a visitor does not change what an editor is editing.

It is long because each tool is a definition, a sentence, a change and a preview, and they are read together.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, TypedDict, cast, get_args

from interlock.chat.item_tools import (
    find_in_transaction,
    find_item,
    item_diff,
    missing_item,
    new_id,
    quote_names,
    read_tool,
    show_items,
    text_argument,
    text_arguments,
    write_tool,
)
from interlock.chat.tool import CONFIRMED_SCHEMA, Tool, ToolContext, object_schema
from interlock.core.call import Args, ToolSpec
from interlock.core.errors import CallWouldFail, InvalidRequest, ToolFailed
from interlock.core.ports import ToolItem, ToolItemStore, ToolItemTransaction
from interlock.core.preview import Preview
from interlock.presenters.text import pluralize
from interlock.runtime.durations import optional_rfc3339, parse_time
from interlock.runtime.offload import offload

POST, PAGE, IMAGE, COUNT = "post", "page", "image", "cms_count"
KINDS = frozenset({POST, PAGE, IMAGE})
IMAGE_PREFIX = "img"
HOME = "home"  # the page that is also at "/"
POSTS, PAGES, IMAGES = "cms_list_posts", "cms_list_pages", "cms_list_images"
LIST_TOOLS = {POST: POSTS, PAGE: PAGES, IMAGE: IMAGES}
ContentStatus = Literal["draft", "published", "archived"]
MAX_TITLE, MAX_BODY, MAX_SECTION, MAX_SECTIONS, MAX_ALT, MAX_URL = 300, 100_000, 20_000, 50, 1_000, 2_000
SLUG_PATTERN = "^[a-z0-9]+(-[a-z0-9]+)*$"  # of what is created: it is a part of addresses
FILE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9]+)+$"
URL_PATTERN = '^(https://[^\\s<>"]+)?$'
DATE_PATTERN = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
SLUG = {"type": "string", "minLength": 1, "maxLength": 200}
NEW_SLUG = {**SLUG, "pattern": SLUG_PATTERN, "description": "Lower-case letters, digits and hyphens: about-us."}
SLUGS = {"type": "array", "items": SLUG, "minItems": 1, "maxItems": 50, "uniqueItems": True}
STATUS = {"type": "string", "enum": list(get_args(ContentStatus))}
SINCE = {"type": "string", "pattern": DATE_PATTERN, "description": "A date such as 2026-08-01, in UTC."}
TITLE = {"type": "string", "minLength": 1, "maxLength": MAX_TITLE}
BODY = {"type": "string", "maxLength": MAX_BODY, "description": "Markdown."}
SECTION_BODY = {"type": "string", "maxLength": MAX_SECTION, "description": "Markdown."}
POSITION = {"type": "integer", "minimum": 1, "maximum": MAX_SECTIONS, "description": "1 is the top of the page."}
FILE = {"type": "string", "maxLength": 200, "pattern": FILE_PATTERN, "description": "The file name: team.jpg."}
ALT = {"type": "string", "maxLength": MAX_ALT, "description": "What it shows, for people who cannot see it."}
URL = {
    "type": "string",
    "maxLength": MAX_URL,
    "pattern": URL_PATTERN,
    "description": "Where the file is, https only. It is not fetched.",
}
_LINK = re.compile(r"\]\((/[^)\s#?]*)")  # of Markdown, within the same site


class CmsPost(TypedDict):
    title: str
    status: str
    body: str


class CmsSection(TypedDict):
    id: str
    heading: str
    body: str


class CmsPage(TypedDict):
    title: str
    status: str
    sections: list[CmsSection]


class CmsImage(TypedDict):
    name: str
    alt: str
    url: str


class CmsViews(NamedTuple):
    """How often a post or page was viewed, and when last, in milliseconds; None if never since views are counted."""

    views: int = 0
    last_viewed_at: int | None = None


NO_VIEWS = CmsViews()
ContentLine = Callable[[ToolItem], Mapping[str, object]]
ChangeSections = Callable[[ToolItem, Args], CmsPage]


def read_tools(context: ToolContext) -> Sequence[Tool]:
    one = object_schema("slug", slug=SLUG)
    some = object_schema(status=STATUS, not_viewed_since=SINCE)
    unused = "`not_viewed_since` lists only those that are older than that date and that nobody has viewed since."
    add = partial(read_tool, context.items)
    return (
        add(POSTS, f"Lists the posts with status and views. {unused}", _list_posts, some),
        add("cms_read_post", "Reads one post.", _read_post, one),
        add(PAGES, f"Lists the pages with status and views. {unused}", _list_pages, some),
        add("cms_read_page", "Reads one page with all its sections.", _read_page, one),
        add(IMAGES, "Lists the images, and where they are used.", _list_images),
    )


def write_tools(context: ToolContext) -> Sequence[Tool]:
    add = partial(write_tool, context.items, KINDS)
    return (
        *_post_tools(add),
        *_new_page_tools(add),
        *_section_tools(add),
        *_status_tools(add),
        *_image_tools(add),
        *_page_tools(add),
    )


def _post_tools(add: Callable[..., Tool]) -> Sequence[Tool]:
    post = object_schema("slug", slug=SLUG)
    new = object_schema("slug title body", slug=NEW_SLUG, title=TITLE, body=BODY)
    changed = {**object_schema("slug", slug=SLUG, title=TITLE, body=BODY), "minProperties": 2}
    create = ToolSpec("cms_create_post", "write", schema=new, describe="Create post {slug!r} as a draft: {title!r}")
    update = ToolSpec("cms_update_post", "write", schema=changed, describe=_describe_post_update)
    delete = _deletion_spec("cms_delete_post", post, "Permanently delete post {slug!r}? This cannot be undone.")
    return (
        add(create, "Creates a post as a draft, which is not on the site yet.", _create_post, _show_new_post),
        add(update, "Changes the title or the body of a post.", _update_post, _show_post_update),
        add(delete, "Deletes a post for ever.", _delete_post, _show_post),
    )


def _new_page_tools(add: Callable[..., Tool]) -> Sequence[Tool]:
    new, changed = (object_schema("slug title", slug=slug, title=TITLE) for slug in (NEW_SLUG, SLUG))
    create = ToolSpec("cms_create_page", "write", schema=new, describe="Create page {slug!r} as a draft: {title!r}")
    update = ToolSpec("cms_update_page", "write", schema=changed, describe="Rename page {slug!r} to {title!r}")
    return (
        add(create, "Creates a page without sections as a draft.", _create_page, _show_new_page),
        add(update, "Changes the title of a page.", _update_page, _show_page_update),
    )


ONE_AT_A_TIME = "Propose one change of a page at a time: each is approved for the page as it was shown."


def _section_tools(add: Callable[..., Tool]) -> Sequence[Tool]:
    parts = {"page": SLUG, "section": SLUG, "heading": TITLE, "body": SECTION_BODY}
    new = object_schema("page section heading body", **{**parts, "section": NEW_SLUG}, position=POSITION)
    changed = {**object_schema("page section", **parts), "minProperties": 3}
    moved = object_schema("page section position", page=SLUG, section=SLUG, position=POSITION)
    move = "Move section {section!r} of page {page!r} to position {position}"
    return (
        add(
            ToolSpec("cms_create_section", "write", schema=new, describe=_describe_new_section),
            "Adds a section to a page, at its end unless a position is given; `section` is its new id. "
            f"{ONE_AT_A_TIME}",
            _create_section,
            _show_new_section,
        ),
        add(
            ToolSpec("cms_update_section", "write", schema=changed, describe=_describe_section_update),
            f"Changes the heading or the body of a section; `section` is its id. {ONE_AT_A_TIME}",
            _update_section,
            _show_section_update,
        ),
        add(
            ToolSpec("cms_move_section", "write", schema=moved, describe=move),
            f"Moves a section to another position of its page. {ONE_AT_A_TIME}",
            _move_section,
            _show_section_move,
        ),
    )


def _status_tools(add: Callable[..., Tool]) -> Sequence[Tool]:
    made = []
    for kind in (POST, PAGE):
        one = object_schema("slug", slug=SLUG)
        publish = f"Publish {kind} {{slug!r}}: everybody can read it at once"
        archive = f"Archive {kind} {{slug!r}}: it is then no longer on the site"
        made += [
            add(
                ToolSpec(f"cms_publish_{kind}", "destructive", schema=one, describe=publish),
                f"Publishes a {kind}: everybody can read it then.",
                partial(_set_status, kind, "published"),
                partial(_show_status, kind, "published"),
            ),
            add(
                ToolSpec(f"cms_archive_{kind}", "write", schema=one, describe=archive),
                f"Takes a {kind} off the site and keeps it.",
                partial(_set_status, kind, "archived"),
                partial(_show_status, kind, "archived"),
            ),
        ]
    return made


def _image_tools(add: Callable[..., Tool]) -> Sequence[Tool]:
    image, new = object_schema("id", id=SLUG), object_schema("name alt", name=FILE, alt=ALT, url=URL)
    changed = {**object_schema("id", id=SLUG, alt=ALT, url=URL), "minProperties": 2}
    create = ToolSpec("cms_create_image", "write", schema=new, describe="Add image {name!r}, showing {alt!r}")
    update = ToolSpec("cms_update_image", "write", schema=changed, describe=_describe_image_update)
    remove = _deletion_spec("cms_delete_image", image, "Permanently delete image {id!r}? This cannot be undone.")
    return (
        add(create, "Adds an image: its file name, what it shows, where it is.", _create_image, _show_new_image),
        add(update, "Changes what an image is said to show, or where its file is.", _update_image, _show_image_update),
        add(remove, "Deletes an image for ever.", _delete_image, _show_image),
    )


def _page_tools(add: Callable[..., Tool]) -> Sequence[Tool]:
    """Tools that are confirmed in the conversation."""
    page, pages = (
        object_schema("slug", slug=SLUG, confirmed=CONFIRMED_SCHEMA),
        object_schema("slugs", slugs=SLUGS, confirmed=CONFIRMED_SCHEMA),
    )
    section = object_schema("page section", page=SLUG, section=SLUG, confirmed=CONFIRMED_SCHEMA)
    sections = object_schema("page sections", page=SLUG, sections=SLUGS, confirmed=CONFIRMED_SCHEMA)
    delete_page = "Permanently delete page {slug!r}? This cannot be undone."
    delete_section = "Permanently delete section {section!r} of page {page!r}? This cannot be undone."
    return (
        add(
            _deletion_spec("cms_delete_page", page, delete_page, "chat"),
            "Deletes a page with all its sections for ever.",
            _delete_page,
            _show_page,
        ),
        add(
            _deletion_spec("cms_delete_pages", pages, _describe_delete_pages, "chat"),
            "Deletes several pages for ever: all of them, or none if one is not there.",
            _delete_pages,
            _show_pages,
        ),
        add(
            _deletion_spec("cms_delete_section", section, delete_section, "chat"),
            "Deletes a section of a page for ever; `section` is its id.",
            _delete_section,
            _show_section,
        ),
        add(
            _deletion_spec("cms_delete_sections", sections, _describe_delete_sections, "chat"),
            "Deletes several sections of a page for ever, by their ids: all of them, or none if one is not there.",
            _delete_sections,
            _show_sections,
        ),
    )


def _deletion_spec(
    name: str, takes: Mapping[str, object], describe: str | Callable[[Args], str], confirm: str = ""
) -> ToolSpec:
    return ToolSpec(name, "destructive", schema=takes, describe=describe, confirm=confirm)


def _describe_delete_pages(args: Args) -> str:
    return f"Permanently delete pages {quote_names(args['slugs'])}? This cannot be undone."


def _describe_delete_sections(args: Args) -> str:
    return (
        f"Permanently delete sections {quote_names(args['sections'])} of page {args['page']!r}? This cannot be undone."
    )


def _describe_post_update(args: Args) -> str:
    return f"Update post {args['slug']!r}: {_describe_changes(args)}"


def _describe_image_update(args: Args) -> str:
    return f"Update image {args['id']!r}: {_describe_changes(args)}"


def _describe_section_update(args: Args) -> str:
    return f"Update section {args['section']!r} of page {args['page']!r}: {_describe_changes(args)}"


def _describe_new_section(args: Args) -> str:
    where = f" at position {args['position']}" if args.get("position") else ""
    return f"Add section {args['section']!r}, headed {args['heading']!r}, to page {args['page']!r}{where}"


def _describe_changes(args: Args) -> str:
    """Say which fields change, short ones with their value; the preview has the texts."""
    changes = [f"{name} to {args[name]!r}" for name in ("title", "heading", "alt", "url") if name in args]
    return ", ".join([*changes, *(["a new body"] if "body" in args else [])])


# Reads


async def _list_posts(items: ToolItemStore, args: Args) -> object:
    return {"posts": await _list_lines(items, POST, args, post_line)}


async def _list_pages(items: ToolItemStore, args: Args) -> object:
    return {"pages": await _list_lines(items, PAGE, args, page_line)}


async def _list_lines(items: ToolItemStore, kind: str, args: Args, line: ContentLine) -> list[Mapping[str, object]]:
    views, status = await list_views(items, kind), args.get("status")
    limit = _parse_date(args["not_viewed_since"]) if args.get("not_viewed_since") else None
    found = [(item, views.get(item.id, NO_VIEWS)) for item in await items.list(kind)]
    return [
        {**line(item), **views_json(seen)}
        for item, seen in found
        if (limit is None or is_unused(item, seen, limit)) and status in (None, item_status(item))
    ]


def _parse_date(date: object) -> int:
    try:
        return parse_time(f"{date}T00:00:00Z")
    except InvalidRequest:
        raise ToolFailed(f"There is no date {date!r}. Write it as 2026-08-01.") from None


def is_unused(item: ToolItem, seen: CmsViews, since: int) -> bool:
    """Whether nobody viewed it since then. One without views that was changed since may just be new."""
    return (item.at if seen.last_viewed_at is None else seen.last_viewed_at) < since


async def _read_post(items: ToolItemStore, args: Args) -> object:
    item = await find_item(items, POST, text_argument(args, "slug"), POSTS)
    return {"slug": item.id, **item.body, **views_json(await read_views(items, POST, item.id))}


async def _read_page(items: ToolItemStore, args: Args) -> object:
    item = await find_item(items, PAGE, text_argument(args, "slug"), PAGES)
    return {"slug": item.id, **read_page(item), **views_json(await read_views(items, PAGE, item.id))}


async def _list_images(items: ToolItemStore, _: Args) -> object:
    links = await find_links(items)
    images = [(item, read_image(item)) for item in await items.list(IMAGE)]
    return {"images": [{"id": item.id, **image, "used_in": links.get(image_path(image), [])} for item, image in images]}


# Writes


def _create_post(transaction: ToolItemTransaction, args: Args) -> object:
    slug = _check_free(transaction, POST, text_argument(args, "slug"))
    transaction.put(POST, slug, _new_post(args))
    return {"slug": slug, **_new_post(args)}


def _new_post(args: Args) -> CmsPost:
    return {"title": text_argument(args, "title"), "status": "draft", "body": text_argument(args, "body")}


def _update_post(transaction: ToolItemTransaction, args: Args) -> object:
    item = find_in_transaction(transaction, POST, text_argument(args, "slug"), POSTS)
    new = _with_changes(item.body, args, "title", "body")
    transaction.put(POST, item.id, new)
    return {"slug": item.id, **new}


def _create_page(transaction: ToolItemTransaction, args: Args) -> object:
    slug = _check_free(transaction, PAGE, text_argument(args, "slug"))
    transaction.put(PAGE, slug, _new_page(args))
    return {"slug": slug, **_new_page(args)}


def _new_page(args: Args) -> CmsPage:
    return {"title": text_argument(args, "title"), "status": "draft", "sections": []}


def _update_page(transaction: ToolItemTransaction, args: Args) -> object:
    item = find_in_transaction(transaction, PAGE, text_argument(args, "slug"), PAGES)
    transaction.put(PAGE, item.id, _with_changes(read_page(item), args, "title"))
    return {"slug": item.id, "title": args["title"], "before": item.body["title"]}


def _check_free(transaction: ToolItemTransaction, kind: str, item_id: str) -> str:
    if transaction.get(kind, item_id) is not None:
        raise _taken(kind, item_id)
    return item_id


def _taken(kind: str, item_id: str) -> CallWouldFail:
    return CallWouldFail(f"There is already a {kind} {item_id!r}. Choose another slug, or use cms_update_{kind}.")


def _with_changes(body: Mapping[str, object], args: Args, *names: str) -> dict[str, object]:
    return {**body, **{name: args[name] for name in names if name in args}}


def _create_section(transaction: ToolItemTransaction, args: Args) -> object:
    return _put_sections(transaction, args, _with_new_section)


def _update_section(transaction: ToolItemTransaction, args: Args) -> object:
    return _put_sections(transaction, args, _with_changed_section)


def _move_section(transaction: ToolItemTransaction, args: Args) -> object:
    return _put_sections(transaction, args, _with_moved_section)


def _put_sections(transaction: ToolItemTransaction, args: Args, change: ChangeSections) -> object:
    item = find_in_transaction(transaction, PAGE, text_argument(args, "page"), PAGES)
    page = change(item, args)
    transaction.put(PAGE, item.id, page)
    return {"page": item.id, "title": page["title"], "sections": [section["id"] for section in page["sections"]]}


def _with_new_section(item: ToolItem, args: Args) -> CmsPage:
    page, section_id = read_page(item), text_argument(args, "section")
    if any(section["id"] == section_id for section in page["sections"]):
        raise CallWouldFail(f"Page {item.id!r} already has a section {section_id!r}. Use cms_update_section.")
    if len(page["sections"]) >= MAX_SECTIONS:
        raise CallWouldFail(f"Page {item.id!r} has {MAX_SECTIONS} sections already, which is the limit.")
    new = CmsSection(id=section_id, heading=text_argument(args, "heading"), body=text_argument(args, "body"))
    return _with_section_at(page, new, cast(int, args.get("position") or MAX_SECTIONS))


def _with_changed_section(item: ToolItem, args: Args) -> CmsPage:
    [old] = _sections(item, [text_argument(args, "section")])
    new = cast(CmsSection, _with_changes(old, args, "heading", "body"))
    page = read_page(item)
    return {**page, "sections": [new if section is old else section for section in page["sections"]]}


def _with_moved_section(item: ToolItem, args: Args) -> CmsPage:
    [moved] = _sections(item, [text_argument(args, "section")])
    page = read_page(item)
    others: list[CmsSection] = [section for section in page["sections"] if section is not moved]
    return _with_section_at({**page, "sections": others}, moved, cast(int, args["position"]))


def _with_section_at(page: CmsPage, section: CmsSection, position: int) -> CmsPage:
    sections = [*page["sections"][: position - 1], section, *page["sections"][position - 1 :]]
    return {**page, "sections": sections}


def _set_status(kind: str, status: str, transaction: ToolItemTransaction, args: Args) -> object:
    item = find_in_transaction(transaction, kind, text_argument(args, "slug"), LIST_TOOLS[kind])
    transaction.put(kind, item.id, _with_status(item, kind, status))
    return {"slug": item.id, "title": item.body["title"], "status": status, "before": item_status(item)}


def _with_status(item: ToolItem, kind: str, status: str) -> Mapping[str, object]:
    return {**(read_page(item) if kind == PAGE else item.body), "status": status}


def _create_image(transaction: ToolItemTransaction, args: Args) -> object:
    image_id = new_id(transaction, COUNT, IMAGE, IMAGE_PREFIX)
    transaction.put(IMAGE, image_id, _new_image(args))
    return {"id": image_id, **_new_image(args)}


def _new_image(args: Args) -> CmsImage:
    return {"name": text_argument(args, "name"), "alt": text_argument(args, "alt"), "url": str(args.get("url") or "")}


def _update_image(transaction: ToolItemTransaction, args: Args) -> object:
    item = find_in_transaction(transaction, IMAGE, text_argument(args, "id"), IMAGES)
    new = _with_changes(read_image(item), args, "alt", "url")
    transaction.put(IMAGE, item.id, new)
    return {"id": item.id, **new}


def _delete_post(transaction: ToolItemTransaction, args: Args) -> object:
    item = find_in_transaction(transaction, POST, text_argument(args, "slug"), POSTS)
    delete_content(transaction, POST, item.id)
    return {**post_line(item), "status": "deleted"}


def _delete_image(transaction: ToolItemTransaction, args: Args) -> object:
    item = find_in_transaction(transaction, IMAGE, text_argument(args, "id"), IMAGES)
    delete_content(transaction, IMAGE, item.id)
    return {"id": item.id, "name": item.body["name"], "status": "deleted"}


def _delete_page(transaction: ToolItemTransaction, args: Args) -> object:
    item = find_in_transaction(transaction, PAGE, text_argument(args, "slug"), PAGES)
    delete_content(transaction, PAGE, item.id)
    return {**page_line(item), "status": "deleted"}


def delete_content(transaction: ToolItemTransaction, kind: str, item_id: str) -> None:
    """Delete an item and its views."""
    transaction.delete(kind, item_id)
    transaction.delete(_views_kind(kind), item_id)


def _delete_pages(transaction: ToolItemTransaction, args: Args) -> object:
    return {"deleted": [_delete_page(transaction, {"slug": slug}) for slug in text_arguments(args, "slugs")]}


def _delete_section(transaction: ToolItemTransaction, args: Args) -> object:
    return _remove_sections(transaction, args, [text_argument(args, "section")])


def _delete_sections(transaction: ToolItemTransaction, args: Args) -> object:
    return _remove_sections(transaction, args, text_arguments(args, "sections"))


def _remove_sections(transaction: ToolItemTransaction, args: Args, ids: Sequence[str]) -> object:
    item = find_in_transaction(transaction, PAGE, text_argument(args, "page"), PAGES)
    gone = _sections(item, ids)
    page = read_page(item)
    left = [section for section in page["sections"] if section["id"] not in ids]
    transaction.put(PAGE, item.id, {**page, "sections": left})
    deleted = [{"id": section["id"], "heading": section["heading"]} for section in gone]
    return {"page": item.id, "title": page["title"], "deleted": deleted, "sections": len(left)}


# Previews


async def _show_new_post(items: ToolItemStore, args: Args) -> str:
    return await _show_new(items, POST, args, _new_post(args))


async def _show_new_page(items: ToolItemStore, args: Args) -> str:
    return await _show_new(items, PAGE, args, _new_page(args))


async def _show_new(items: ToolItemStore, kind: str, args: Args, body: Mapping[str, object]) -> str:
    if await items.get(kind, text_argument(args, "slug")) is not None:
        raise _taken(kind, text_argument(args, "slug"))
    return item_diff({}, body)


async def _show_new_image(_: ToolItemStore, args: Args) -> str:
    return item_diff({}, _new_image(args))


async def _show_post_update(items: ToolItemStore, args: Args) -> Preview:
    item = await find_item(items, POST, text_argument(args, "slug"), POSTS)
    return await _show_change(POST, item, item.body, _with_changes(item.body, args, "title", "body"))


async def _show_page_update(items: ToolItemStore, args: Args) -> Preview:
    item = await find_item(items, PAGE, text_argument(args, "slug"), PAGES)
    page = read_page(item)
    return await _show_change(PAGE, item, page, _with_changes(page, args, "title"))


async def _show_image_update(items: ToolItemStore, args: Args) -> Preview:
    item = await find_item(items, IMAGE, text_argument(args, "id"), IMAGES)
    image = read_image(item)
    return await show_items(lambda: item_diff(image, _with_changes(image, args, "alt", "url")), {IMAGE: [item]})


async def _show_new_section(items: ToolItemStore, args: Args) -> Preview:
    return await _show_sections_change(items, args, _with_new_section)


async def _show_section_update(items: ToolItemStore, args: Args) -> Preview:
    return await _show_sections_change(items, args, _with_changed_section)


async def _show_section_move(items: ToolItemStore, args: Args) -> Preview:
    return await _show_sections_change(items, args, _with_moved_section)


async def _show_sections_change(items: ToolItemStore, args: Args, change: ChangeSections) -> Preview:
    item = await find_item(items, PAGE, text_argument(args, "page"), PAGES)
    return await _show_change(PAGE, item, read_page(item), change(item, args))


async def _show_change(kind: str, item: ToolItem, old: Mapping[str, object], new: Mapping[str, object]) -> Preview:
    """Show a diff, and say that a change of what is published needs no publishing."""
    seen = "It is published: visitors see the change at once.\n" if item_status(item) == "published" else ""
    return await show_items(lambda: f"{seen}{item_diff(old, new)}", {kind: [item]})


async def _show_status(kind: str, status: str, items: ToolItemStore, args: Args) -> Preview:
    item = await find_item(items, kind, text_argument(args, "slug"), LIST_TOOLS[kind])
    line = post_line(item) if kind == POST else page_line(item)
    return await show_items(lambda: item_diff(line, {**line, "status": status}), {kind: [item]})


async def _show_post(items: ToolItemStore, args: Args) -> Preview:
    item = await find_item(items, POST, text_argument(args, "slug"), POSTS)
    post = cast(CmsPost, item.body)
    views, links = _views_text(await read_views(items, POST, item.id)), await find_links(items)
    linked = _inbound_links_text(links, item_path(POST, item.id), _item_label(POST, item))
    what = f"Post {item.id!r}, titled {post['title']!r}, {post['status']}"
    return await show_items(lambda: f"{what}, {_word_count(post['body'])}.\n{views}\n{linked}", {POST: [item]})


async def _show_image(items: ToolItemStore, args: Args) -> Preview:
    item = await find_item(items, IMAGE, text_argument(args, "id"), IMAGES)
    image = read_image(item)
    places = (await find_links(items)).get(image_path(image), [])
    what = f"Image {item.id!r}, file {image['name']!r}, showing {image['alt']!r}."
    used = f"Used in {_row(places)}: it would be missing there." if places else "Used nowhere."
    return await show_items(lambda: f"{what}\n{used}", {IMAGE: [item]})


async def _show_page(items: ToolItemStore, args: Args) -> Preview:
    return await _show_pages(items, {"slugs": [text_argument(args, "slug")]})


async def _show_pages(items: ToolItemStore, args: Args) -> Preview:
    pages = [await find_item(items, PAGE, slug, PAGES) for slug in text_arguments(args, "slugs")]
    views, links = await list_views(items, PAGE), await find_links(items)

    def make_text() -> str:
        return "\n\n".join(_page_preview(item, views.get(item.id, NO_VIEWS), links) for item in pages)

    return await show_items(make_text, {PAGE: pages})


async def _show_section(items: ToolItemStore, args: Args) -> Preview:
    return await _show_sections(items, {"page": args["page"], "sections": [text_argument(args, "section")]})


async def _show_sections(items: ToolItemStore, args: Args) -> Preview:
    item = await find_item(items, PAGE, text_argument(args, "page"), PAGES)
    page, gone = cast(CmsPage, item.body), _sections(item, text_arguments(args, "sections"))
    left = pluralize(len(page["sections"]) - len(gone), "section", "sections")
    head = f"Of page {item.id!r}, titled {page['title']!r}, which keeps {left}:"
    return await show_items(lambda: "\n".join([head, *map(_line, gone)]), {PAGE: [item]})


def _page_preview(item: ToolItem, seen: CmsViews, links: Mapping[str, list[str]]) -> str:
    page = cast(CmsPage, item.body)
    sections = page["sections"]
    size = f"{pluralize(len(sections), 'section', 'sections')}, {_word_count(*(each['body'] for each in sections))}"
    linked = _inbound_links_text(links, item_path(PAGE, item.id), _item_label(PAGE, item))
    return "\n".join(
        [f"Page {item.id!r}, titled {page['title']!r}, {size}:", *map(_line, sections), _views_text(seen), linked]
    )


def _line(section: CmsSection) -> str:
    return f"- {section['id']!r}: {section['heading']!r}, {_word_count(section['body'])}"


def _views_text(seen: CmsViews) -> str:
    last = optional_rfc3339(seen.last_viewed_at)
    return f"{pluralize(seen.views, 'view', 'views')}, the last on {last[:10]}." if last else "No views recorded."


def _inbound_links_text(links: Mapping[str, list[str]], path: str, own: str) -> str:
    places = [place for place in links.get(path, []) if place != own]
    return f"Linked from {_row(places)}: these links would lead nowhere." if places else "Nothing links to it."


# Items


def item_status(item: ToolItem) -> str:
    """Return the status of a post or page; pages of older versions have none and are on the site."""
    return str(item.body.get("status", "published"))


def read_page(item: ToolItem) -> CmsPage:
    page = cast(CmsPage, item.body)
    return {"title": page["title"], "status": item_status(item), "sections": page["sections"]}


def read_image(item: ToolItem) -> CmsImage:
    image = cast(CmsImage, item.body)
    return {"name": image["name"], "alt": image["alt"], "url": str(item.body.get("url", ""))}


def post_line(item: ToolItem) -> Mapping[str, object]:
    post = cast(CmsPost, item.body)
    return {"slug": item.id, "title": post["title"], "status": post["status"], "words": len(post["body"].split())}


def page_line(item: ToolItem) -> Mapping[str, object]:
    page = read_page(item)
    return {"slug": item.id, "title": page["title"], "status": page["status"], "sections": len(page["sections"])}


def _sections(item: ToolItem, ids: Sequence[str]) -> list[CmsSection]:
    known = {section["id"]: section for section in cast(CmsPage, item.body)["sections"]}
    for section_id in ids:
        if section_id not in known:
            raise missing_item("section", section_id, known, "cms_read_page", f" on page {item.id!r}")
    return [known[section_id] for section_id in ids]


async def find_links(items: ToolItemStore) -> Mapping[str, list[str]]:
    """Return the posts and pages that link to each path of the site, or show the image there."""
    posts, pages = await items.list(POST), await items.list(PAGE)
    size = sum(len(cast(CmsPost, item.body)["body"]) for item in posts)
    size += sum(len(section["body"]) for item in pages for section in cast(CmsPage, item.body)["sections"])
    return await offload(size, lambda: _collect_links(posts, pages))


def _collect_links(posts: Sequence[ToolItem], pages: Sequence[ToolItem]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for item in posts:
        for path in sorted(set(_LINK.findall(cast(CmsPost, item.body)["body"]))):
            found[path].append(_item_label(POST, item))
    for item in pages:
        whole = "\n".join(section["body"] for section in cast(CmsPage, item.body)["sections"])
        for path in sorted(set(_LINK.findall(whole))):
            found[path].append(_item_label(PAGE, item))
    return found


def _item_label(kind: str, item: ToolItem) -> str:
    return f"{kind} {item.id!r}"


def item_path(kind: str, slug: str) -> str:
    """Return the path of a post or page on the site."""
    return f"/posts/{slug}" if kind == POST else f"/{slug}"


def image_path(image: CmsImage) -> str:
    return f"/images/{image['name']}"


def _row(places: Sequence[str]) -> str:
    return ", ".join(places)


def _word_count(*bodies: str) -> str:
    return pluralize(sum(len(body.split()) for body in bodies), "word", "words")


# Views


class SiteView(NamedTuple):
    """Views of one path of the site, and the time of the last one in milliseconds."""

    path: str
    views: int
    last_at: int


def count_views(transaction: ToolItemTransaction, views: Sequence[SiteView]) -> list[str]:
    """Add views to their posts and pages; return the paths that lead to none. Times in the future count as now."""
    unknown = []
    for view in views:
        kind, slug = (POST, view.path[7:]) if view.path.startswith("/posts/") else (PAGE, view.path[1:] or HOME)
        if transaction.get(kind, slug) is None:
            unknown.append(view.path)
            continue
        seen = _views(transaction.get(_views_kind(kind), slug))
        last = max(seen.last_viewed_at or 0, min(view.last_at, transaction.now))
        transaction.put(_views_kind(kind), slug, CmsViews(seen.views + view.views, last)._asdict())
    return unknown


async def read_views(items: ToolItemStore, kind: str, item_id: str) -> CmsViews:
    return _views(await items.get(_views_kind(kind), item_id))


async def list_views(items: ToolItemStore, kind: str) -> Mapping[str, CmsViews]:
    return {item.id: _views(item) for item in await items.list(_views_kind(kind))}


def views_json(seen: CmsViews) -> Mapping[str, object]:
    return {"views": seen.views, "last_viewed_at": optional_rfc3339(seen.last_viewed_at)}


def _views(item: ToolItem | None) -> CmsViews:
    return NO_VIEWS if item is None else CmsViews(**cast(dict[str, int], item.body))


def _views_kind(kind: str) -> str:
    return f"{kind}_views"
