"""The CMS tool pack on both databases: reads, writes and previews."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices
from interlock.app.gate import render_preview
from interlock.chat.item_tools import MAX_CHANGE_LENGTH, MAX_HISTORY, read_history
from interlock.chat.tool import Tool, ToolContext, ToolInvocation
from interlock.chat.tools import cms
from interlock.core.errors import CallWouldFail, ToolFailed
from interlock.core.outcome import Proceed, Waiting
from interlock.demo.content import POSTS, fill_content
from interlock.runtime.durations import rfc3339
from interlock.runtime.json_schema import validate
from interlock.storage.tables.tool_items import SqlToolItemStore
from tests.support import START, Clock, approve, call

DAY = 24 * 60 * 60 * 1000

FOUR_PAGES = ["story", "team", "values", "find-us"]


@pytest.fixture
async def items(services: AppServices) -> SqlToolItemStore:
    items = services.store.tool_items("default")
    await fill_content(items)
    return items


@pytest.fixture
def tools(items: SqlToolItemStore) -> Mapping[str, Tool]:
    kit = ToolContext("default", items)
    return {tool.name: tool for tool in (*cms.read_tools(kit), *cms.write_tools(kit))}


async def run_tool(tool: Tool, key: str = "", **args: object) -> Any:
    return await tool.run(ToolInvocation(args, key))


async def preview_text(tool: Tool, **args: object) -> str:
    assert tool.spec.preview is not None
    made = tool.spec.preview(args)
    assert inspect.isawaitable(made)
    return str(await made)


async def slugs(tools: Mapping[str, Tool]) -> list[str]:
    return [page["slug"] for page in (await run_tool(tools["cms_list_pages"]))["pages"]]


def test_the_tools_are_those_of_the_contract(tools: Mapping[str, Tool]) -> None:  # R7
    assert set(tools) == {
        *("cms_list_posts", "cms_read_post", "cms_list_pages", "cms_read_page", "cms_list_images"),
        *("cms_create_post", "cms_update_post", "cms_publish_post", "cms_archive_post", "cms_delete_post"),
        *("cms_create_page", "cms_update_page", "cms_publish_page", "cms_archive_page"),
        *("cms_create_section", "cms_update_section", "cms_move_section"),
        *("cms_create_image", "cms_update_image", "cms_delete_image"),
        *("cms_delete_page", "cms_delete_pages", "cms_delete_section", "cms_delete_sections"),
    }


# Reading


async def test_posts_are_listed_by_status(tools: Mapping[str, Tool]) -> None:  # R7
    posts = (await run_tool(tools["cms_list_posts"]))["posts"]
    assert [post["slug"] for post in posts] == sorted(POSTS)
    drafts = (await run_tool(tools["cms_list_posts"], status="draft"))["posts"]
    assert [post["slug"] for post in drafts] == ["a-post-that-gives-orders", "hello-world"]
    hello = {"slug": "hello-world", "title": "Hello, world", "status": "draft", "words": 58}
    assert drafts[1] == {**hello, "views": 0, "last_viewed_at": None}


async def test_a_post_and_a_page_are_read_whole(tools: Mapping[str, Tool]) -> None:  # R7
    post = await run_tool(tools["cms_read_post"], slug="hello-world")
    assert post == {"slug": "hello-world", **POSTS["hello-world"], "views": 0, "last_viewed_at": None}
    page = await run_tool(tools["cms_read_page"], slug="about")
    assert (page["title"], [section["id"] for section in page["sections"]]) == ("About", FOUR_PAGES)
    pages = (await run_tool(tools["cms_list_pages"]))["pages"]
    about = {"slug": "about", "title": "About", "status": "published", "sections": 4}
    assert {**about, "views": 1_204, "last_viewed_at": rfc3339(START - DAY)} in pages


async def test_images_say_where_they_are_used(tools: Mapping[str, Tool]) -> None:  # R7
    images = {image["id"]: image for image in (await run_tool(tools["cms_list_images"]))["images"]}
    assert len(images) == 6
    assert images["img-5"] == {
        "id": "img-5",
        "name": "team.jpg",
        "alt": "The team on the pier",
        "url": "",
        "used_in": ["page 'about'"],
    }
    assert images["img-6"]["used_in"] == []


@pytest.mark.parametrize(
    ("tool", "args", "words"),
    [
        ("cms_read_page", {"slug": "abuot"}, "There is no page 'abuot'. Similar names: 'about'."),
        ("cms_read_page", {"slug": "About"}, "There is no page 'About'. Similar names: 'about'."),
        ("cms_read_post", {"slug": "hello"}, "There is no post 'hello'. Similar names: 'hello-world'."),
        ("cms_publish_post", {"slug": "qqq"}, "There is no post 'qqq'. Use cms_list_posts to see what there is."),
        ("cms_delete_image", {"id": "image-5"}, "There is no image 'image-5'. Similar names: 'img-5'"),
        ("cms_delete_pages", {"slugs": ["about", "princing"]}, "There is no page 'princing'. Similar names: 'pricing'"),
        (
            "cms_delete_section",
            {"page": "about", "section": "teams"},
            "There is no section 'teams' on page 'about'. Similar names: 'team'",
        ),
    ],
)
async def test_an_unknown_name_fails_with_the_near_ones(
    tools: Mapping[str, Tool], tool: str, args: dict[str, Any], words: str
) -> None:  # R7
    with pytest.raises(ToolFailed) as failed:
        await run_tool(tools[tool], "key", **args)
    assert words in failed.value.message
    if tools[tool].spec.preview:
        with pytest.raises(CallWouldFail) as refused:  # for certain: nobody is asked about it
            await preview_text(tools[tool], **args)
        assert words in refused.value.message


async def test_unused_pages_are_those_that_nobody_viewed_since(
    tools: Mapping[str, Tool], items: SqlToolItemStore, clock: Clock
) -> None:  # R7
    since = rfc3339(START - 100 * DAY)[:10]
    unused = (await run_tool(tools["cms_list_pages"], not_viewed_since=since))["pages"]
    assert [(page["slug"], page["views"]) for page in unused] == [("imprint", 41)]
    posts = (await run_tool(tools["cms_list_posts"], not_viewed_since=since, status="archived"))["posts"]
    assert [post["slug"] for post in posts] == ["old-newsletter"]
    await run_tool(tools["cms_create_page"], "key", slug="new", title="New")
    assert len((await run_tool(tools["cms_list_pages"], not_viewed_since=since))["pages"]) == 1, (
        "a new one is not unused"
    )
    clock.advance(10 * DAY)
    await items.change("", lambda transaction: cms.count_views(transaction, [cms.SiteView("/imprint", 2, clock())]))
    later = (await run_tool(tools["cms_list_pages"], not_viewed_since=rfc3339(clock() - DAY)[:10]))["pages"]
    assert "imprint" not in [page["slug"] for page in later]
    assert "new" in [page["slug"] for page in later], "nobody has ever viewed it, and it is old by now"
    with pytest.raises(ToolFailed, match="no date '2026-02-31'"):
        await run_tool(tools["cms_list_pages"], not_viewed_since="2026-02-31")


async def test_views_add_up_and_their_time_never_goes_back_or_ahead(
    tools: Mapping[str, Tool], items: SqlToolItemStore
) -> None:  # R7
    views = [cms.SiteView("/about", 3, START - 5 * DAY), cms.SiteView("/", 1, START + DAY), cms.SiteView("/gone", 1, 0)]
    assert await items.change("", lambda transaction: cms.count_views(transaction, views)) == ["/gone"]
    assert await cms.read_views(items, cms.PAGE, "about") == (1_207, START - DAY)
    assert await cms.read_views(items, cms.PAGE, "home") == (18_241, START), "the home page is also at /"
    await run_tool(tools["cms_delete_page"], "key", slug="about")
    assert await cms.read_views(items, cms.PAGE, "about") == cms.NO_VIEWS


async def test_records_of_older_versions_have_defaults(
    tools: Mapping[str, Tool], items: SqlToolItemStore
) -> None:  # R7
    old_page = {"title": "Old", "sections": [{"id": "a", "heading": "A", "body": "text"}]}
    await items.change("", lambda transaction: transaction.put(cms.PAGE, "old", old_page))
    await items.change("", lambda transaction: transaction.put(cms.IMAGE, "img-9", {"name": "old.jpg", "alt": "Old"}))
    page = await run_tool(tools["cms_read_page"], slug="old")
    assert (page["status"], page["views"], page["last_viewed_at"]) == ("published", 0, None)
    images = {image["id"]: image for image in (await run_tool(tools["cms_list_images"]))["images"]}
    assert images["img-9"]["url"] == ""
    assert (await run_tool(tools["cms_archive_page"], "key", slug="old"))["before"] == "published"
    assert await read_history(items, cms.PAGE, "hello") == []


# Changing


async def test_a_new_post_is_a_draft_that_can_be_edited_and_published(tools: Mapping[str, Tool]) -> None:  # R7
    made = await run_tool(tools["cms_create_post"], "one", slug="news", title="News", body="First.")
    assert made == {"slug": "news", "title": "News", "status": "draft", "body": "First."}
    assert await run_tool(tools["cms_create_post"], "one", slug="news", title="News", body="First.") == made
    with pytest.raises(ToolFailed, match="already a post 'news'"):
        await run_tool(tools["cms_create_post"], "two", slug="news", title="Other", body="")
    with pytest.raises(CallWouldFail, match="already a post 'news'"):  # nobody is asked about it
        await preview_text(tools["cms_create_post"], slug="news", title="x", body="")
    changed = await run_tool(tools["cms_update_post"], "three", slug="news", body="Second.")
    assert (changed["title"], changed["body"], changed["status"]) == ("News", "Second.", "draft")
    assert (await run_tool(tools["cms_publish_post"], "four", slug="news"))["before"] == "draft"


async def test_a_page_is_built_from_sections(tools: Mapping[str, Tool]) -> None:  # R7
    await run_tool(tools["cms_create_page"], "1", slug="jobs", title="Jobs")
    for name in ("one", "two"):
        await run_tool(tools["cms_create_section"], name, page="jobs", section=name, heading=name, body="text")
    first = {"page": "jobs", "section": "zero", "heading": "Zero", "body": "text", "position": 1}
    done = await run_tool(tools["cms_create_section"], "2", **first)
    assert done == {"page": "jobs", "title": "Jobs", "sections": ["zero", "one", "two"]}
    with pytest.raises(ToolFailed, match="already has a section 'one'"):
        await run_tool(tools["cms_create_section"], "3", page="jobs", section="one", heading="x", body="")
    with pytest.raises(CallWouldFail, match="already has a section 'one'"):
        await preview_text(tools["cms_create_section"], page="jobs", section="one", heading="x", body="")
    done = await run_tool(tools["cms_move_section"], "4", page="jobs", section="zero", position=50)
    assert done["sections"] == ["one", "two", "zero"], "beyond the end is the end"
    await run_tool(tools["cms_update_section"], "5", page="jobs", section="two", heading="Second")
    await run_tool(tools["cms_update_page"], "6", slug="jobs", title="Work with us")
    await run_tool(tools["cms_publish_page"], "7", slug="jobs")
    page = await run_tool(tools["cms_read_page"], slug="jobs")
    assert (page["title"], page["status"], page["sections"][1]) == (
        "Work with us",
        "published",
        {"id": "two", "heading": "Second", "body": "text"},
    )


async def test_a_page_has_at_most_fifty_sections(tools: Mapping[str, Tool], items: SqlToolItemStore) -> None:  # R7
    sections = [{"id": f"s{number}", "heading": "H", "body": ""} for number in range(cms.MAX_SECTIONS)]
    full = {"title": "Full", "status": "draft", "sections": sections}
    await items.change("", lambda transaction: transaction.put(cms.PAGE, "full", full))
    with pytest.raises(ToolFailed, match="which is the limit"):
        await run_tool(tools["cms_create_section"], "1", page="full", section="more", heading="x", body="")
    with pytest.raises(CallWouldFail, match="which is the limit"):
        await preview_text(tools["cms_create_section"], page="full", section="more", heading="x", body="")


async def test_images_are_described_and_get_new_numbers(tools: Mapping[str, Tool]) -> None:  # R7
    made = await run_tool(
        tools["cms_create_image"], "1", name="new.jpg", alt="New", url="https://files.example/new.jpg"
    )
    assert made["id"] == "img-7"
    await run_tool(tools["cms_delete_image"], "2", id="img-7")
    assert (await run_tool(tools["cms_create_image"], "3", name="b.jpg", alt="B"))["id"] == "img-8", "never used twice"
    changed = await run_tool(tools["cms_update_image"], "4", id="img-8", alt="Better")
    assert changed == {"id": "img-8", "name": "b.jpg", "alt": "Better", "url": ""}


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("cms_create_post", {"slug": "Big News", "title": "x", "body": ""}),
        ("cms_create_post", {"slug": "../etc", "title": "x", "body": ""}),
        ("cms_create_post", {"slug": "news\n", "title": "x", "body": ""}),
        ("cms_create_post", {"slug": "news", "title": "", "body": ""}),
        ("cms_create_post", {"slug": "news", "title": "x", "body": "", "status": "published"}),
        ("cms_create_post", {"slug": "news", "title": "x", "body": "y" * 100_001}),
        ("cms_update_post", {"slug": "news"}),
        ("cms_create_image", {"name": "../x.jpg", "alt": ""}),
        ("cms_create_image", {"name": "x.jpg", "alt": "", "url": "javascript:alert(1)"}),
        ("cms_create_image", {"name": "x.jpg", "alt": "", "url": "http://files.example/x.jpg"}),
        ("cms_move_section", {"page": "about", "section": "team", "position": 0}),
        ("cms_list_pages", {"not_viewed_since": "yesterday"}),
    ],
)
def test_bad_input_does_not_fit_the_schema(tools: Mapping[str, Tool], tool: str, args: dict[str, Any]) -> None:  # R7
    assert validate(tools[tool].spec.schema or {}, args)


async def test_concurrent_edits_are_applied_one_after_the_other(
    tools: Mapping[str, Tool], items: SqlToolItemStore
) -> None:  # R7
    create = tools["cms_create_post"]
    tries = [run_tool(create, f"key {n}", slug="same", title=f"Title {n}", body="") for n in range(5)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert len([each for each in results if isinstance(each, ToolFailed)]) == 4, "one has the slug"
    moves = [run_tool(tools["cms_update_post"], f"edit {n}", slug="same", body=f"Body {n}") for n in range(5)]
    await asyncio.gather(*moves)
    assert len(await read_history(items, cms.POST, "same")) == 6, "and no change is lost"


# History


async def test_each_change_is_in_the_history_with_its_approval(
    tools: Mapping[str, Tool], items: SqlToolItemStore, clock: Clock
) -> None:  # R65
    await run_tool(tools["cms_create_post"], "approval-1", slug="news", title="News", body="First.")
    clock.advance(1_000)
    await run_tool(tools["cms_update_post"], "approval-2", slug="news", body="Second.")
    await run_tool(tools["cms_update_post"], "approval-3", slug="news", body="Second.")
    newest, oldest = await read_history(items, cms.POST, "news")
    assert (newest["action"], newest["approval_id"], newest["person"]) == ("updated", "approval-2", "")
    assert "-body: First." in newest["diff"].splitlines()
    assert "+body: Second." in newest["diff"].splitlines()
    assert (oldest["action"], oldest["approval_id"], newest["at"] - oldest["at"]) == ("created", "approval-1", 1_000)
    await run_tool(tools["cms_delete_post"], "approval-4", slug="news")
    assert await read_history(items, cms.POST, "news") == [], "it goes with the post"


async def test_a_history_is_bounded(tools: Mapping[str, Tool], items: SqlToolItemStore) -> None:  # R65
    await run_tool(tools["cms_create_post"], "first", slug="news", title="News", body="")
    for number in range(MAX_HISTORY + 5):
        await run_tool(tools["cms_update_post"], f"key-{number}", slug="news", title=f"News {number}")
    history = await read_history(items, cms.POST, "news")
    assert (len(history), history[0]["approval_id"]) == (MAX_HISTORY, f"key-{MAX_HISTORY + 4}")
    for number in range(60):
        body = f"{number}\n" * 40_000
        await run_tool(tools["cms_update_post"], f"long-{number}", slug="news", body=body[:100_000])
    history = await read_history(items, cms.POST, "news")
    assert 20 < len(history) < 60
    assert max(len(change["diff"]) for change in history) <= MAX_CHANGE_LENGTH + 2


async def test_publishing_and_archiving_set_the_status(tools: Mapping[str, Tool]) -> None:  # R7
    done = await run_tool(tools["cms_publish_post"], "one", slug="hello-world")
    assert done == {"slug": "hello-world", "title": "Hello, world", "status": "published", "before": "draft"}
    done = await run_tool(tools["cms_archive_post"], "two", slug="hello-world")
    assert (done["before"], done["status"]) == ("published", "archived")
    again = await run_tool(tools["cms_publish_post"], "one", slug="hello-world")
    assert again["status"] == "published", "what the first try was told"
    assert (await run_tool(tools["cms_read_post"], slug="hello-world"))["status"] == "archived", (
        "and nothing else happens"
    )


@pytest.mark.parametrize(
    ("tool", "args", "read", "names"),
    [
        ("cms_delete_post", {"slug": "old-newsletter"}, "cms_read_post", ("slug",)),
        ("cms_delete_page", {"slug": "about"}, "cms_read_page", ("slug",)),
    ],
)
async def test_what_was_deleted_is_gone_and_a_second_try_is_told_the_same(
    tools: Mapping[str, Tool], tool: str, args: dict[str, Any], read: str, names: tuple[str, ...]
) -> None:  # R7
    first = await run_tool(tools[tool], "key", **args)
    assert first["status"] == "deleted"
    assert await run_tool(tools[tool], "key", **args) == first
    with pytest.raises(ToolFailed):
        await run_tool(tools[read], **{name: args[name] for name in names})
    with pytest.raises(ToolFailed):
        await run_tool(tools[tool], "another call", **args)


async def test_an_image_is_deleted_by_its_id(tools: Mapping[str, Tool]) -> None:  # R7
    assert await run_tool(tools["cms_delete_image"], "key", id="img-6") == {
        "id": "img-6",
        "name": "old-logo.svg",
        "status": "deleted",
    }
    assert len((await run_tool(tools["cms_list_images"]))["images"]) == 5


async def test_several_pages_go_together_or_not_at_all(tools: Mapping[str, Tool]) -> None:  # R7
    with pytest.raises(ToolFailed):
        await run_tool(tools["cms_delete_pages"], "one", slugs=["about", "no-such-page"])
    assert await slugs(tools) == ["about", "contact", "home", "imprint", "pricing"]
    done = await run_tool(tools["cms_delete_pages"], "two", slugs=["about", "imprint"])
    assert [(page["slug"], page["sections"]) for page in done["deleted"]] == [("about", 4), ("imprint", 2)]
    assert await slugs(tools) == ["contact", "home", "pricing"]


async def test_sections_are_deleted_one_or_many(tools: Mapping[str, Tool]) -> None:  # R7
    done = await run_tool(tools["cms_delete_section"], "one", page="about", section="team")
    assert done == {
        "page": "about",
        "title": "About",
        "sections": 3,
        "deleted": [{"id": "team", "heading": "The team"}],
    }
    with pytest.raises(ToolFailed, match="no section 'team' on page 'about'"):
        await run_tool(tools["cms_delete_sections"], "two", page="about", sections=["story", "team"])
    done = await run_tool(tools["cms_delete_sections"], "three", page="about", sections=["find-us", "story"])
    assert done["sections"] == 1
    page = await run_tool(tools["cms_read_page"], slug="about")
    assert [section["id"] for section in page["sections"]] == ["values"]


async def test_confirmed_changes_nothing_in_the_tool_itself(tools: Mapping[str, Tool]) -> None:  # R19
    done = await run_tool(tools["cms_delete_page"], "key", slug="about", confirmed=False)
    assert done["status"] == "deleted", "whether a person said yes is for the loop to know"


# What people are shown


async def test_sentences_say_what_cannot_be_undone(tools: Mapping[str, Tool]) -> None:  # R2
    assert (
        tools["cms_delete_post"].spec.sentence({"slug": "x"}) == "Permanently delete post 'x'? This cannot be undone."
    )
    assert tools["cms_delete_sections"].spec.sentence({"page": "about", "sections": ["a", "b", "c"]}) == (
        "Permanently delete sections 'a', 'b' and 'c' of page 'about'? This cannot be undone."
    )
    names = [f"page-{number}" for number in range(50)]
    result = tools["cms_delete_pages"].spec.sentence({"slugs": names, "confirmed": True})
    assert [name for name in names if repr(name) not in result] == []


async def test_a_deletion_shows_what_would_go(tools: Mapping[str, Tool]) -> None:  # R45
    page = (await preview_text(tools["cms_delete_page"], slug="about")).splitlines()
    assert page[0].startswith("Page 'about', titled 'About', 4 sections, ")
    assert page[2] == "- 'team': 'The team', 12 words"
    assert page[-1] == "Linked from post 'hello-world', page 'home': these links would lead nowhere."
    assert page[-2] == f"1,204 views, the last on {rfc3339(START - DAY)[:10]}."
    both = await preview_text(tools["cms_delete_pages"], slugs=["imprint", "about"])
    assert both.index("Page 'imprint', titled 'Imprint', 2 sections") < both.index("Page 'about'")
    assert "Nothing links to it." in both
    post = await preview_text(tools["cms_delete_post"], slug="riverside-pottery")
    assert "published, 49 words.\n1,066 views, the last on " in post
    assert "No views recorded." in await preview_text(tools["cms_delete_post"], slug="hello-world")
    assert "Linked from page 'home'" in post
    assert await preview_text(tools["cms_delete_image"], id="img-5") == (
        "Image 'img-5', file 'team.jpg', showing 'The team on the pier'.\n"
        "Used in page 'about': it would be missing there."
    )
    assert (await preview_text(tools["cms_delete_image"], id="img-6")).endswith("Used nowhere.")
    section = await preview_text(tools["cms_delete_section"], page="about", section="team")
    assert section.splitlines() == [
        "Of page 'about', titled 'About', which keeps 3 sections:",
        "- 'team': 'The team', 12 words",
    ]


async def test_a_change_of_what_is_published_says_that_it_is_seen_at_once(tools: Mapping[str, Tool]) -> None:  # R45
    lines = (await preview_text(tools["cms_update_post"], slug="spring-release", title="New")).splitlines()
    assert lines[0] == "It is published: visitors see the change at once."
    assert "+title: New" in lines
    draft = await preview_text(tools["cms_update_post"], slug="hello-world", title="New")
    assert "published" not in draft
    section = await preview_text(tools["cms_update_section"], page="about", section="team", heading="Us")
    assert "-    heading: The team" in section.splitlines()
    assert "+    heading: Us" in section.splitlines()


async def test_publishing_is_of_high_risk(services: AppServices, tools: Mapping[str, Tool]) -> None:  # R7, R45
    for number, (name, slug) in enumerate([("cms_publish_post", "hello-world"), ("cms_publish_page", "about")]):
        spec = tools[name].spec
        waiting = await services.gate.check(call(number, {"slug": slug}, tool=name), spec)
        assert isinstance(waiting, Waiting)
        card = (await services.inbox.show("default", waiting.approval_id)).card
        assert card.risk == "high"
        assert card.sentence.endswith("everybody can read it at once")
        assert "cannot be undone" not in card.sentence


async def test_a_change_shows_a_difference(tools: Mapping[str, Tool]) -> None:  # R45
    lines = (await preview_text(tools["cms_publish_post"], slug="hello-world")).splitlines()
    assert "-status: draft" in lines
    assert "+status: published" in lines
    assert await preview_text(tools["cms_archive_post"], slug="old-newsletter") == "Nothing would change."


async def test_previews_change_nothing(tools: Mapping[str, Tool], items: SqlToolItemStore) -> None:  # R45
    before = [await items.list(kind) for kind in (cms.POST, cms.PAGE, cms.IMAGE)]
    for tool in tools.values():
        if tool.spec.preview is not None:
            slug = "about" if "page" in tool.name else "hello-world"
            args = {"slug": slug, "slugs": ["about"], "page": "about", "section": "team", "sections": ["team"]}
            args |= {"slug": "new", "section": "new"} if "create" in tool.name else {}
            texts = {"title": "New", "heading": "New", "body": "New", "name": "new.jpg", "alt": "New", "position": 1}
            assert await preview_text(tool, **args, **texts, id="img-5")
    assert [await items.list(kind) for kind in (cms.POST, cms.PAGE, cms.IMAGE)] == before


# At the gate


async def test_a_read_runs_at_once_and_a_deletion_waits_with_its_preview(
    services: AppServices, tools: Mapping[str, Tool]
) -> None:  # R1
    read = tools["cms_read_page"]
    outcome = await services.gate.check(call(1, {"slug": "about"}, tool=read.name), read.spec)
    assert isinstance(outcome, Proceed)
    delete = tools["cms_delete_post"]
    asked = call(2, {"slug": "old-newsletter"}, tool=delete.name)
    waiting = await services.gate.check(asked, delete.spec)
    assert isinstance(waiting, Waiting)
    payload = (await services.store.get("default", waiting.approval_id)).payload
    assert payload.sentence == "Permanently delete post 'old-newsletter'? This cannot be undone."
    assert payload.preview == await render_preview(delete.spec, asked)
    assert "archived" in str(payload.preview)
    assert await approve(services, waiting.approval_id) == "approved"
    started = await services.gate.start("default", waiting.approval_id, "runner")
    for _ in range(2):  # the second as after a crash, before anybody could say that it is done
        done = await delete.run(ToolInvocation(json.loads(started.args), started.idempotency_key))
        assert done == {"slug": "old-newsletter", "title": "Newsletter, January", "status": "deleted", "words": 29}


async def test_orders_in_a_post_are_only_text(services: AppServices, tools: Mapping[str, Tool]) -> None:  # R1
    post = await run_tool(tools["cms_read_post"], slug="a-post-that-gives-orders")
    assert "confirmed true" in post["body"]
    assert post["title"].startswith("Demo:")
    delete = tools["cms_delete_page"]
    outcome = await services.gate.check(call(1, {"slug": "about", "confirmed": True}, tool=delete.name), delete.spec)
    assert isinstance(outcome, Waiting)
    assert "about" in await slugs(tools)


# The demo


async def test_the_demo_is_put_once_and_never_between_what_is_real(services: AppServices) -> None:  # R7
    fresh, used = services.store.tool_items("fresh"), services.store.tool_items("used")
    assert await fill_content(fresh)
    assert not await fill_content(fresh)
    await used.change("", lambda transaction: transaction.put(cms.PAGE, "own", {"title": "Own", "sections": []}))
    assert not await fill_content(used)
    assert [page.id for page in await used.list(cms.PAGE)] == ["own"]
