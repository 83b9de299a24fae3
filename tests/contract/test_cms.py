"""The CMS tool pack on both databases: reads, writes and previews."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices
from interlock.app.gate import render_preview
from interlock.chat.tool import Tool, ToolContext, ToolInvocation
from interlock.chat.tools import cms
from interlock.core.errors import CallWouldFail, ToolFailed
from interlock.core.outcome import Proceed, Waiting
from interlock.demo.content import POSTS, fill_content
from interlock.storage.tables.records import SqlToolItemStore
from tests.support import approve, call

FOUR_PAGES = ["story", "team", "values", "find-us"]


@pytest.fixture
async def records(services: AppServices) -> SqlToolItemStore:
    records = services.store.records("default")
    await fill_content(records)
    return records


@pytest.fixture
def tools(records: SqlToolItemStore) -> Mapping[str, Tool]:
    kit = ToolContext("default", records)
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
        *("cms_publish_post", "cms_archive_post", "cms_delete_post", "cms_delete_image"),
        *("cms_delete_page", "cms_delete_pages", "cms_delete_section", "cms_delete_sections"),
    }


# Reading


async def test_posts_are_listed_by_status(tools: Mapping[str, Tool]) -> None:  # R7
    posts = (await run_tool(tools["cms_list_posts"]))["posts"]
    assert [post["slug"] for post in posts] == sorted(POSTS)
    drafts = (await run_tool(tools["cms_list_posts"], status="draft"))["posts"]
    assert [post["slug"] for post in drafts] == ["a-post-that-gives-orders", "hello-world"]
    assert drafts[1] == {"slug": "hello-world", "title": "Hello, world", "status": "draft", "words": 58}


async def test_a_post_and_a_page_are_read_whole(tools: Mapping[str, Tool]) -> None:  # R7
    post = await run_tool(tools["cms_read_post"], slug="hello-world")
    assert post == {"slug": "hello-world", **POSTS["hello-world"]}
    page = await run_tool(tools["cms_read_page"], slug="about")
    assert (page["title"], [section["id"] for section in page["sections"]]) == ("About", FOUR_PAGES)
    pages = (await run_tool(tools["cms_list_pages"]))["pages"]
    assert {"slug": "about", "title": "About", "sections": 4} in pages


async def test_images_say_where_they_are_used(tools: Mapping[str, Tool]) -> None:  # R7
    images = {image["id"]: image for image in (await run_tool(tools["cms_list_images"]))["images"]}
    assert len(images) == 6
    assert images["img-5"] == {
        "id": "img-5",
        "name": "team.jpg",
        "alt": "The team on the pier",
        "used_in": ["page 'about'"],
    }
    assert images["img-6"]["used_in"] == []


@pytest.mark.parametrize(
    ("tool", "args", "words"),
    [
        ("cms_read_page", {"slug": "abuot"}, "There is no page 'abuot'. Near that: 'about'."),
        ("cms_read_page", {"slug": "About"}, "There is no page 'About'. Near that: 'about'."),
        ("cms_read_post", {"slug": "hello"}, "There is no post 'hello'. Near that: 'hello-world'."),
        ("cms_publish_post", {"slug": "qqq"}, "There is no post 'qqq'. Use cms_list_posts to see what there is."),
        ("cms_delete_image", {"id": "image-5"}, "There is no image 'image-5'. Near that: 'img-5'"),
        ("cms_delete_pages", {"slugs": ["about", "princing"]}, "There is no page 'princing'. Near that: 'pricing'"),
        (
            "cms_delete_section",
            {"page": "about", "section": "teams"},
            "There is no section 'teams' on page 'about'. Near that: 'team'",
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


# Changing


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
    both = await preview_text(tools["cms_delete_pages"], slugs=["imprint", "about"])
    assert both.index("Page 'imprint', titled 'Imprint', 2 sections") < both.index("Page 'about'")
    assert "Nothing links to it." in both
    post = await preview_text(tools["cms_delete_post"], slug="riverside-pottery")
    assert "published, 49 words." in post
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


async def test_a_change_shows_a_difference(tools: Mapping[str, Tool]) -> None:  # R45
    lines = (await preview_text(tools["cms_publish_post"], slug="hello-world")).splitlines()
    assert "-status: draft" in lines
    assert "+status: published" in lines
    assert await preview_text(tools["cms_archive_post"], slug="old-newsletter") == "Nothing would change."


async def test_previews_change_nothing(tools: Mapping[str, Tool], records: SqlToolItemStore) -> None:  # R45
    before = [await records.list(kind) for kind in (cms.POST, cms.PAGE, cms.IMAGE)]
    for tool in tools.values():
        if tool.spec.preview is not None:
            slug = "about" if "page" in tool.name else "hello-world"
            args = {"slug": slug, "slugs": ["about"], "page": "about", "section": "team", "sections": ["team"]}
            assert await preview_text(tool, **args, id="img-5")
    assert [await records.list(kind) for kind in (cms.POST, cms.PAGE, cms.IMAGE)] == before


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
    fresh, used = services.store.records("fresh"), services.store.records("used")
    assert await fill_content(fresh)
    assert not await fill_content(fresh)
    await used.change("", lambda shelf: shelf.put(cms.PAGE, "own", {"title": "Own", "sections": []}))
    assert not await fill_content(used)
    assert [page.id for page in await used.list(cms.PAGE)] == ["own"]
