"""The CMS pack: posts, images, pages and their sections, kept in Interlock's own database."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypedDict, cast

from interlock.chat.record_tools import changing, difference, find, missing, named, reading, take, text, texts
from interlock.chat.tool import Kit, Tool, schema
from interlock.core.call import Args, ToolSpec
from interlock.core.ports import Record, Records, Shelf
from interlock.presenters.text import counted

POST, PAGE, IMAGE = "post", "page", "image"
POSTS, PAGES, IMAGES = "cms_list_posts", "cms_list_pages", "cms_list_images"
SLUG = {"type": "string", "minLength": 1, "maxLength": 200}
MANY = {"type": "array", "items": SLUG, "minItems": 1, "maxItems": 50, "uniqueItems": True}
STATUS = {"type": "string", "enum": ["draft", "published", "archived"]}
CONFIRMED = {"type": "boolean", "description": "Set it once the user has said yes; it counts only together with that."}
_LINK = re.compile(r"\]\((/[^)\s#?]*)")  # of Markdown, to another place of the same site


class Post(TypedDict):
    title: str
    status: str
    body: str


class Section(TypedDict):
    id: str
    heading: str
    body: str


class Page(TypedDict):
    title: str
    sections: list[Section]


class Image(TypedDict):
    name: str
    alt: str


def reads(kit: Kit) -> Sequence[Tool]:
    one = schema("slug", slug=SLUG)
    add = partial(reading, kit.records)
    return (
        add(POSTS, "Lists the posts, those of one status or all.", _list_posts, schema(status=STATUS)),
        add("cms_read_post", "Reads one post.", _read_post, one),
        add(PAGES, "Lists the pages.", _list_pages),
        add("cms_read_page", "Reads one page with all its sections.", _read_page, one),
        add(IMAGES, "Lists the images, and where they are used.", _list_images),
    )


def writes(kit: Kit) -> Sequence[Tool]:
    return (*_about_posts(partial(changing, kit.records)), *_about_pages(partial(changing, kit.records)))


def _about_posts(add: Callable[..., Tool]) -> Sequence[Tool]:
    post, image = schema("slug", slug=SLUG), schema("id", id=SLUG)
    publish = ToolSpec("cms_publish_post", "write", post, "Publish post {slug!r}")
    archive = ToolSpec("cms_archive_post", "write", post, "Archive post {slug!r}: it is then no longer on the site")
    delete = _deletion("cms_delete_post", post, "Permanently delete post {slug!r}? This cannot be undone.")
    remove = _deletion("cms_delete_image", image, "Permanently delete image {id!r}? This cannot be undone.")
    return (
        add(publish, "Publishes a post: everybody can read it then.", _publish, _show_publish),
        add(archive, "Takes a post off the site and keeps it.", _archive, _show_archive),
        add(delete, "Deletes a post for ever.", _delete_post, _show_post),
        add(remove, "Deletes an image for ever.", _delete_image, _show_image),
    )


def _about_pages(add: Callable[..., Tool]) -> Sequence[Tool]:
    """The user is asked about these in the conversation."""
    page, pages = schema("slug", slug=SLUG, confirmed=CONFIRMED), schema("slugs", slugs=MANY, confirmed=CONFIRMED)
    section = schema("page section", page=SLUG, section=SLUG, confirmed=CONFIRMED)
    sections = schema("page sections", page=SLUG, sections=MANY, confirmed=CONFIRMED)
    delete_page = "Permanently delete page {slug!r}? This cannot be undone."
    delete_section = "Permanently delete section {section!r} of page {page!r}? This cannot be undone."
    return (
        add(
            _deletion("cms_delete_page", page, delete_page, "chat"),
            "Deletes a page with all its sections for ever.",
            _delete_page,
            _show_page,
        ),
        add(
            _deletion("cms_delete_pages", pages, _say_pages, "chat"),
            "Deletes several pages for ever: all of them, or none if one is not there.",
            _delete_pages,
            _show_pages,
        ),
        add(
            _deletion("cms_delete_section", section, delete_section, "chat"),
            "Deletes a section of a page for ever; `section` is its id.",
            _delete_section,
            _show_section,
        ),
        add(
            _deletion("cms_delete_sections", sections, _say_sections, "chat"),
            "Deletes several sections of a page for ever, by their ids: all of them, or none if one is not there.",
            _delete_sections,
            _show_sections,
        ),
    )


def _deletion(
    name: str, takes: Mapping[str, object], describe: str | Callable[[Args], str], confirm: str = ""
) -> ToolSpec:
    return ToolSpec(name, "destructive", takes, describe, confirm=confirm)


def _say_pages(args: Args) -> str:
    return f"Permanently delete pages {named(args['slugs'])}? This cannot be undone."


def _say_sections(args: Args) -> str:
    return f"Permanently delete sections {named(args['sections'])} of page {args['page']!r}? This cannot be undone."


# What is read


async def _list_posts(records: Records, args: Args) -> object:
    wanted = args.get("status")
    lines = [_post_line(record) for record in await records.list(POST)]
    return {"posts": [line for line in lines if wanted in (None, line["status"])]}


async def _read_post(records: Records, args: Args) -> object:
    record = await find(records, POST, text(args, "slug"), POSTS)
    return {"slug": record.id, **record.body}


async def _list_pages(records: Records, _: Args) -> object:
    return {"pages": [_page_line(record) for record in await records.list(PAGE)]}


async def _read_page(records: Records, args: Args) -> object:
    record = await find(records, PAGE, text(args, "slug"), PAGES)
    return {"slug": record.id, **record.body}


async def _list_images(records: Records, _: Args) -> object:
    links = await _links(records)
    images = [(record, cast(Image, record.body)) for record in await records.list(IMAGE)]
    return {"images": [{"id": record.id, **image, "used_in": links.get(_file(image), [])} for record, image in images]}


# What is changed


def _publish(shelf: Shelf, args: Args) -> object:
    return _set_status(shelf, args, "published")


def _archive(shelf: Shelf, args: Args) -> object:
    return _set_status(shelf, args, "archived")


def _set_status(shelf: Shelf, args: Args, status: str) -> object:
    record = take(shelf, POST, text(args, "slug"), POSTS)
    shelf.put(POST, record.id, {**record.body, "status": status})
    return {"slug": record.id, "title": record.body["title"], "status": status, "before": record.body["status"]}


def _delete_post(shelf: Shelf, args: Args) -> object:
    record = take(shelf, POST, text(args, "slug"), POSTS)
    shelf.delete(POST, record.id)
    return {**_post_line(record), "status": "deleted"}


def _delete_image(shelf: Shelf, args: Args) -> object:
    record = take(shelf, IMAGE, text(args, "id"), IMAGES)
    shelf.delete(IMAGE, record.id)
    return {"id": record.id, "name": record.body["name"], "status": "deleted"}


def _delete_page(shelf: Shelf, args: Args) -> object:
    record = take(shelf, PAGE, text(args, "slug"), PAGES)
    shelf.delete(PAGE, record.id)
    return {**_page_line(record), "status": "deleted"}


def _delete_pages(shelf: Shelf, args: Args) -> object:
    return {"deleted": [_delete_page(shelf, {"slug": slug}) for slug in texts(args, "slugs")]}


def _delete_section(shelf: Shelf, args: Args) -> object:
    return _without(shelf, args, [text(args, "section")])


def _delete_sections(shelf: Shelf, args: Args) -> object:
    return _without(shelf, args, texts(args, "sections"))


def _without(shelf: Shelf, args: Args, ids: Sequence[str]) -> object:
    record = take(shelf, PAGE, text(args, "page"), PAGES)
    gone = _sections(record, ids)
    left = [section for section in cast(Page, record.body)["sections"] if section["id"] not in ids]
    shelf.put(PAGE, record.id, {**record.body, "sections": left})
    deleted = [{"id": section["id"], "heading": section["heading"]} for section in gone]
    return {"page": record.id, "title": record.body["title"], "deleted": deleted, "sections": len(left)}


# What people are shown before


async def _show_publish(records: Records, args: Args) -> str:
    return await _show_status(records, args, "published")


async def _show_archive(records: Records, args: Args) -> str:
    return await _show_status(records, args, "archived")


async def _show_status(records: Records, args: Args, status: str) -> str:
    record = await find(records, POST, text(args, "slug"), POSTS)
    line = _post_line(record)
    return difference(line, {**line, "status": status})


async def _show_post(records: Records, args: Args) -> str:
    record = await find(records, POST, text(args, "slug"), POSTS)
    post = cast(Post, record.body)
    what = f"Post {record.id!r}, titled {post['title']!r}, {post['status']}, {_words(post['body'])}."
    return f"{what}\n{_linked(await _links(records), f'/posts/{record.id}', _place(POST, record))}"


async def _show_image(records: Records, args: Args) -> str:
    record = await find(records, IMAGE, text(args, "id"), IMAGES)
    image = cast(Image, record.body)
    places = (await _links(records)).get(_file(image), [])
    what = f"Image {record.id!r}, file {image['name']!r}, showing {image['alt']!r}."
    return f"{what}\n{f'Used in {_row(places)}: it would be missing there.' if places else 'Used nowhere.'}"


async def _show_page(records: Records, args: Args) -> str:
    return await _show_pages(records, {"slugs": [text(args, "slug")]})


async def _show_pages(records: Records, args: Args) -> str:
    pages = [await find(records, PAGE, slug, PAGES) for slug in texts(args, "slugs")]
    links = await _links(records)
    return "\n\n".join(_page_shown(record, links) for record in pages)


async def _show_section(records: Records, args: Args) -> str:
    return await _show_sections(records, {"page": args["page"], "sections": [text(args, "section")]})


async def _show_sections(records: Records, args: Args) -> str:
    record = await find(records, PAGE, text(args, "page"), PAGES)
    page, gone = cast(Page, record.body), _sections(record, texts(args, "sections"))
    left = counted(len(page["sections"]) - len(gone), "section", "sections")
    return "\n".join([f"Of page {record.id!r}, titled {page['title']!r}, which keeps {left}:", *map(_line, gone)])


def _page_shown(record: Record, links: Mapping[str, list[str]]) -> str:
    page = cast(Page, record.body)
    sections = page["sections"]
    size = f"{counted(len(sections), 'section', 'sections')}, {_words(*(each['body'] for each in sections))}"
    linked = _linked(links, f"/{record.id}", _place(PAGE, record))
    return "\n".join([f"Page {record.id!r}, titled {page['title']!r}, {size}:", *map(_line, sections), linked])


def _line(section: Section) -> str:
    return f"- {section['id']!r}: {section['heading']!r}, {_words(section['body'])}"


def _linked(links: Mapping[str, list[str]], path: str, own: str) -> str:
    places = [place for place in links.get(path, []) if place != own]
    return f"Linked from {_row(places)}: these links would lead nowhere." if places else "Nothing links to it."


# What is known of a record


def _post_line(record: Record) -> dict[str, object]:
    post = cast(Post, record.body)
    return {"slug": record.id, "title": post["title"], "status": post["status"], "words": len(post["body"].split())}


def _page_line(record: Record) -> dict[str, object]:
    page = cast(Page, record.body)
    return {"slug": record.id, "title": page["title"], "sections": len(page["sections"])}


def _sections(record: Record, ids: Sequence[str]) -> list[Section]:
    known = {section["id"]: section for section in cast(Page, record.body)["sections"]}
    for section_id in ids:
        if section_id not in known:
            raise missing("section", section_id, known, "cms_read_page", f" on page {record.id!r}")
    return [known[section_id] for section_id in ids]


async def _links(records: Records) -> Mapping[str, list[str]]:
    """Which posts and pages lead to a path of the site, or show the image that lies there."""
    found: dict[str, list[str]] = defaultdict(list)
    for record in await records.list(POST):
        for path in sorted(set(_LINK.findall(cast(Post, record.body)["body"]))):
            found[path].append(_place(POST, record))
    for record in await records.list(PAGE):
        whole = "\n".join(section["body"] for section in cast(Page, record.body)["sections"])
        for path in sorted(set(_LINK.findall(whole))):
            found[path].append(_place(PAGE, record))
    return found


def _place(kind: str, record: Record) -> str:
    return f"{kind} {record.id!r}"


def _file(image: Image) -> str:
    return f"/images/{image['name']}"


def _row(places: Sequence[str]) -> str:
    return ", ".join(places)


def _words(*bodies: str) -> str:
    return counted(sum(len(body.split()) for body in bodies), "word", "words")
