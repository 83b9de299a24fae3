"""CMS tool pack: posts, images, pages and their sections, stored in Interlock's own database."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypedDict, cast

from interlock.chat.record_tools import (
    find_in_transaction,
    find_record,
    missing_record,
    quote_names,
    read_tool,
    record_diff,
    text_argument,
    text_arguments,
    write_tool,
)
from interlock.chat.tool import Tool, ToolContext, object_schema
from interlock.core.call import Args, ToolSpec
from interlock.core.ports import ToolItem, ToolItemStore, ToolItemTransaction
from interlock.presenters.text import pluralize

POST, PAGE, IMAGE = "post", "page", "image"
POSTS, PAGES, IMAGES = "cms_list_posts", "cms_list_pages", "cms_list_images"
SLUG = {"type": "string", "minLength": 1, "maxLength": 200}
SLUGS = {"type": "array", "items": SLUG, "minItems": 1, "maxItems": 50, "uniqueItems": True}
STATUS = {"type": "string", "enum": ["draft", "published", "archived"]}
CONFIRMED = {"type": "boolean", "description": "Set it once the user has said yes; it counts only together with that."}
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
    sections: list[CmsSection]


class CmsImage(TypedDict):
    name: str
    alt: str


def read_tools(context: ToolContext) -> Sequence[Tool]:
    one = object_schema("slug", slug=SLUG)
    add = partial(read_tool, context.records)
    return (
        add(POSTS, "Lists the posts, those of one status or all.", _list_posts, object_schema(status=STATUS)),
        add("cms_read_post", "Reads one post.", _read_post, one),
        add(PAGES, "Lists the pages.", _list_pages),
        add("cms_read_page", "Reads one page with all its sections.", _read_page, one),
        add(IMAGES, "Lists the images, and where they are used.", _list_images),
    )


def write_tools(context: ToolContext) -> Sequence[Tool]:
    return (*_post_tools(partial(write_tool, context.records)), *_page_tools(partial(write_tool, context.records)))


def _post_tools(add: Callable[..., Tool]) -> Sequence[Tool]:
    post, image = object_schema("slug", slug=SLUG), object_schema("id", id=SLUG)
    publish = ToolSpec("cms_publish_post", "write", schema=post, describe="Publish post {slug!r}")
    archive = ToolSpec(
        "cms_archive_post", "write", schema=post, describe="Archive post {slug!r}: it is then no longer on the site"
    )
    delete = _deletion_spec("cms_delete_post", post, "Permanently delete post {slug!r}? This cannot be undone.")
    remove = _deletion_spec("cms_delete_image", image, "Permanently delete image {id!r}? This cannot be undone.")
    return (
        add(publish, "Publishes a post: everybody can read it then.", _publish, _show_publish),
        add(archive, "Takes a post off the site and keeps it.", _archive, _show_archive),
        add(delete, "Deletes a post for ever.", _delete_post, _show_post),
        add(remove, "Deletes an image for ever.", _delete_image, _show_image),
    )


def _page_tools(add: Callable[..., Tool]) -> Sequence[Tool]:
    """Tools that are confirmed in the conversation."""
    page, pages = (
        object_schema("slug", slug=SLUG, confirmed=CONFIRMED),
        object_schema("slugs", slugs=SLUGS, confirmed=CONFIRMED),
    )
    section = object_schema("page section", page=SLUG, section=SLUG, confirmed=CONFIRMED)
    sections = object_schema("page sections", page=SLUG, sections=SLUGS, confirmed=CONFIRMED)
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


# Reads


async def _list_posts(records: ToolItemStore, args: Args) -> object:
    wanted = args.get("status")
    lines = [_post_line(record) for record in await records.list(POST)]
    return {"posts": [line for line in lines if wanted in (None, line["status"])]}


async def _read_post(records: ToolItemStore, args: Args) -> object:
    record = await find_record(records, POST, text_argument(args, "slug"), POSTS)
    return {"slug": record.id, **record.body}


async def _list_pages(records: ToolItemStore, _: Args) -> object:
    return {"pages": [_page_line(record) for record in await records.list(PAGE)]}


async def _read_page(records: ToolItemStore, args: Args) -> object:
    record = await find_record(records, PAGE, text_argument(args, "slug"), PAGES)
    return {"slug": record.id, **record.body}


async def _list_images(records: ToolItemStore, _: Args) -> object:
    links = await _links(records)
    images = [(record, cast(CmsImage, record.body)) for record in await records.list(IMAGE)]
    return {"images": [{"id": record.id, **image, "used_in": links.get(_file(image), [])} for record, image in images]}


# Writes


def _publish(transaction: ToolItemTransaction, args: Args) -> object:
    return _set_status(transaction, args, "published")


def _archive(transaction: ToolItemTransaction, args: Args) -> object:
    return _set_status(transaction, args, "archived")


def _set_status(transaction: ToolItemTransaction, args: Args, status: str) -> object:
    record = find_in_transaction(transaction, POST, text_argument(args, "slug"), POSTS)
    transaction.put(POST, record.id, {**record.body, "status": status})
    return {"slug": record.id, "title": record.body["title"], "status": status, "before": record.body["status"]}


def _delete_post(transaction: ToolItemTransaction, args: Args) -> object:
    record = find_in_transaction(transaction, POST, text_argument(args, "slug"), POSTS)
    transaction.delete(POST, record.id)
    return {**_post_line(record), "status": "deleted"}


def _delete_image(transaction: ToolItemTransaction, args: Args) -> object:
    record = find_in_transaction(transaction, IMAGE, text_argument(args, "id"), IMAGES)
    transaction.delete(IMAGE, record.id)
    return {"id": record.id, "name": record.body["name"], "status": "deleted"}


def _delete_page(transaction: ToolItemTransaction, args: Args) -> object:
    record = find_in_transaction(transaction, PAGE, text_argument(args, "slug"), PAGES)
    transaction.delete(PAGE, record.id)
    return {**_page_line(record), "status": "deleted"}


def _delete_pages(transaction: ToolItemTransaction, args: Args) -> object:
    return {"deleted": [_delete_page(transaction, {"slug": slug}) for slug in text_arguments(args, "slugs")]}


def _delete_section(transaction: ToolItemTransaction, args: Args) -> object:
    return _remove_sections(transaction, args, [text_argument(args, "section")])


def _delete_sections(transaction: ToolItemTransaction, args: Args) -> object:
    return _remove_sections(transaction, args, text_arguments(args, "sections"))


def _remove_sections(transaction: ToolItemTransaction, args: Args, ids: Sequence[str]) -> object:
    record = find_in_transaction(transaction, PAGE, text_argument(args, "page"), PAGES)
    gone = _sections(record, ids)
    left = [section for section in cast(CmsPage, record.body)["sections"] if section["id"] not in ids]
    transaction.put(PAGE, record.id, {**record.body, "sections": left})
    deleted = [{"id": section["id"], "heading": section["heading"]} for section in gone]
    return {"page": record.id, "title": record.body["title"], "deleted": deleted, "sections": len(left)}


# Previews


async def _show_publish(records: ToolItemStore, args: Args) -> str:
    return await _show_status(records, args, "published")


async def _show_archive(records: ToolItemStore, args: Args) -> str:
    return await _show_status(records, args, "archived")


async def _show_status(records: ToolItemStore, args: Args, status: str) -> str:
    record = await find_record(records, POST, text_argument(args, "slug"), POSTS)
    line = _post_line(record)
    return record_diff(line, {**line, "status": status})


async def _show_post(records: ToolItemStore, args: Args) -> str:
    record = await find_record(records, POST, text_argument(args, "slug"), POSTS)
    post = cast(CmsPost, record.body)
    what = f"Post {record.id!r}, titled {post['title']!r}, {post['status']}, {_word_count(post['body'])}."
    return f"{what}\n{_inbound_links_text(await _links(records), f'/posts/{record.id}', _record_label(POST, record))}"


async def _show_image(records: ToolItemStore, args: Args) -> str:
    record = await find_record(records, IMAGE, text_argument(args, "id"), IMAGES)
    image = cast(CmsImage, record.body)
    places = (await _links(records)).get(_file(image), [])
    what = f"Image {record.id!r}, file {image['name']!r}, showing {image['alt']!r}."
    return f"{what}\n{f'Used in {_row(places)}: it would be missing there.' if places else 'Used nowhere.'}"


async def _show_page(records: ToolItemStore, args: Args) -> str:
    return await _show_pages(records, {"slugs": [text_argument(args, "slug")]})


async def _show_pages(records: ToolItemStore, args: Args) -> str:
    pages = [await find_record(records, PAGE, slug, PAGES) for slug in text_arguments(args, "slugs")]
    links = await _links(records)
    return "\n\n".join(_page_preview(record, links) for record in pages)


async def _show_section(records: ToolItemStore, args: Args) -> str:
    return await _show_sections(records, {"page": args["page"], "sections": [text_argument(args, "section")]})


async def _show_sections(records: ToolItemStore, args: Args) -> str:
    record = await find_record(records, PAGE, text_argument(args, "page"), PAGES)
    page, gone = cast(CmsPage, record.body), _sections(record, text_arguments(args, "sections"))
    left = pluralize(len(page["sections"]) - len(gone), "section", "sections")
    return "\n".join([f"Of page {record.id!r}, titled {page['title']!r}, which keeps {left}:", *map(_line, gone)])


def _page_preview(record: ToolItem, links: Mapping[str, list[str]]) -> str:
    page = cast(CmsPage, record.body)
    sections = page["sections"]
    size = f"{pluralize(len(sections), 'section', 'sections')}, {_word_count(*(each['body'] for each in sections))}"
    linked = _inbound_links_text(links, f"/{record.id}", _record_label(PAGE, record))
    return "\n".join([f"Page {record.id!r}, titled {page['title']!r}, {size}:", *map(_line, sections), linked])


def _line(section: CmsSection) -> str:
    return f"- {section['id']!r}: {section['heading']!r}, {_word_count(section['body'])}"


def _inbound_links_text(links: Mapping[str, list[str]], path: str, own: str) -> str:
    places = [place for place in links.get(path, []) if place != own]
    return f"Linked from {_row(places)}: these links would lead nowhere." if places else "Nothing links to it."


# Records


def _post_line(record: ToolItem) -> dict[str, object]:
    post = cast(CmsPost, record.body)
    return {"slug": record.id, "title": post["title"], "status": post["status"], "words": len(post["body"].split())}


def _page_line(record: ToolItem) -> dict[str, object]:
    page = cast(CmsPage, record.body)
    return {"slug": record.id, "title": page["title"], "sections": len(page["sections"])}


def _sections(record: ToolItem, ids: Sequence[str]) -> list[CmsSection]:
    known = {section["id"]: section for section in cast(CmsPage, record.body)["sections"]}
    for section_id in ids:
        if section_id not in known:
            raise missing_record("section", section_id, known, "cms_read_page", f" on page {record.id!r}")
    return [known[section_id] for section_id in ids]


async def _links(records: ToolItemStore) -> Mapping[str, list[str]]:
    """Return the posts and pages that link to each path of the site, or show the image there."""
    found: dict[str, list[str]] = defaultdict(list)
    for record in await records.list(POST):
        for path in sorted(set(_LINK.findall(cast(CmsPost, record.body)["body"]))):
            found[path].append(_record_label(POST, record))
    for record in await records.list(PAGE):
        whole = "\n".join(section["body"] for section in cast(CmsPage, record.body)["sections"])
        for path in sorted(set(_LINK.findall(whole))):
            found[path].append(_record_label(PAGE, record))
    return found


def _record_label(kind: str, record: ToolItem) -> str:
    return f"{kind} {record.id!r}"


def _file(image: CmsImage) -> str:
    return f"/images/{image['name']}"


def _row(places: Sequence[str]) -> str:
    return ", ".join(places)


def _word_count(*bodies: str) -> str:
    return pluralize(sum(len(body.split()) for body in bodies), "word", "words")
