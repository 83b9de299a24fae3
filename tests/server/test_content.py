"""Content over HTTP: what people create, change and delete, with a history, and without overwriting each other."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.chat.tool import ToolContext, ToolInvocation
from interlock.chat.tools import cms
from interlock.core.canonical import canonical, digest
from interlock.core.ports import ToolItemTransaction
from interlock.demo.content import fill_content
from interlock.runtime.durations import rfc3339
from interlock.server.routes import content
from tests.server.conftest import ClientFactory
from tests.server.test_okrs import note_threads
from tests.support import START, Clock, ledger_violations

POSTS, PAGES, IMAGES = "/api/content/posts", "/api/content/pages", "/api/content/images"
NEWS = {"slug": "news", "title": "News", "body": "First."}
DAY = 24 * 60 * 60 * 1000


@pytest.fixture
def bob(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["reviewer"])


@pytest.fixture
def ada(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["admin"])


@pytest.fixture
def vic(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["viewer"])


async def create(person: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> httpx2.Response:
    response = await person.post(path, json=body)
    assert response.status_code == 201, response.text
    return response


async def names(person: httpx2.AsyncClient, path: str, **query: object) -> list[str]:
    response = await person.get(path, params={name: str(value) for name, value in query.items()})
    assert response.status_code == 200, response.text
    return [item.get("slug") or item["id"] for item in response.json()["items"]]


async def test_a_post_is_created_edited_and_deleted_with_its_history(
    bob: httpx2.AsyncClient, ada: httpx2.AsyncClient, services: AppServices, clock: Clock
) -> None:  # R65
    made = await create(bob, POSTS, NEWS)
    assert (made.json()["status"], made.json()["words"], made.json()["views"]) == ("draft", 1, 0)
    clock.advance(1_000)
    changed = await ada.put(
        f"{POSTS}/news",
        json={"title": "News", "status": "published", "body": "Second."},
        headers={"if-match": made.headers["etag"]},
    )
    assert changed.status_code == 200, changed.text
    newest, oldest = changed.json()["history"]
    assert (oldest["action"], oldest["person"], oldest["approval_id"]) == ("created", "bob", None)
    assert (newest["action"], newest["person"]) == ("updated", "ada")
    assert newest["diff"].splitlines()[3:] == [
        "-body: First.",
        "-status: draft",
        "+body: Second.",
        "+status: published",
        " title: News",
    ]
    assert (await bob.delete(f"{POSTS}/news", headers={"if-match": made.headers["etag"]})).json()["error"] == "stale"
    assert (await bob.delete(f"{POSTS}/news", headers={"if-match": changed.headers["etag"]})).status_code == 200
    assert (await bob.get(f"{POSTS}/news")).status_code == 404
    entries = (await ada.get("/api/audit", params={"kind": "content_changed"})).json()["items"]
    assert [(entry["actor"], entry["data"]["action"]) for entry in entries] == [
        ("bob", "created"),
        ("ada", "updated"),
        ("bob", "deleted"),
    ]
    assert entries[-1]["data"] == {"item": "post", "id": "news", "action": "deleted"}
    texts = [{"title": "News", "status": "draft", "body": "First."}]
    texts += [{"title": "News", "status": "published", "body": "Second."}]
    digests = [digest(canonical(text)) for text in texts]
    assert [entry["content"].get("sha256") for entry in entries] == [*digests, None]
    assert await ledger_violations(services) == []


async def test_a_change_of_nothing_leaves_no_entry(ada: httpx2.AsyncClient) -> None:  # R65
    await create(ada, POSTS, NEWS)
    same = await ada.put(f"{POSTS}/news", json={"title": "News", "status": "draft", "body": "First."})
    assert len(same.json()["history"]) == 1
    assert len((await ada.get("/api/audit", params={"kind": "content_changed"})).json()["items"]) == 1


async def test_two_editors_do_not_overwrite_each_other(bob: httpx2.AsyncClient, ada: httpx2.AsyncClient) -> None:  # R65
    tag = (await create(bob, POSTS, NEWS)).headers["etag"]
    bodies = [{"title": f"News {number}", "status": "draft", "body": ""} for number in range(8)]
    people = (bob, ada) * 4
    results = await asyncio.gather(
        *(
            person.put(f"{POSTS}/news", json=body, headers={"if-match": tag})
            for person, body in zip(people, bodies, strict=True)
        )
    )
    assert sorted(result.status_code for result in results) == [200] + [409] * 7
    assert {result.json().get("error") for result in results} == {None, "stale"}
    assert len((await bob.get(f"{POSTS}/news")).json()["history"]) == 2


async def test_only_one_of_many_gets_a_slug(bob: httpx2.AsyncClient) -> None:  # R65
    results = await asyncio.gather(*(bob.post(POSTS, json={**NEWS, "title": f"T{number}"}) for number in range(6)))
    assert sorted(result.status_code for result in results) == [201] + [409] * 5


async def test_a_retry_with_an_idempotency_key_creates_one_image(bob: httpx2.AsyncClient) -> None:  # R65
    image = {"name": "team.jpg", "alt": "The team"}
    for _ in range(2):
        made = await bob.post(IMAGES, json=image, headers={"idempotency-key": "k"})
        assert made.json()["id"] == "img-1"
    assert await names(bob, IMAGES) == ["img-1"]


async def test_pages_have_sections_and_images_are_found_in_them(bob: httpx2.AsyncClient) -> None:  # R65
    made = await create(bob, IMAGES, {"name": "team.jpg", "alt": "The team", "url": "https://files.example/team.jpg"})
    assert made.json()["used_in"] == []
    sections = [{"id": "team", "heading": "The team", "body": "![Us](/images/team.jpg)"}]
    await create(bob, PAGES, {"slug": "about", "title": "About"})
    page = await bob.put(f"{PAGES}/about", json={"title": "About", "status": "published", "sections": sections})
    assert (page.json()["sections"], page.json()["section_count"]) == (sections, 1)
    assert (await bob.get(f"{IMAGES}/img-1")).json()["used_in"] == ["page 'about'"]
    changed = await bob.put(f"{IMAGES}/img-1", json={"alt": "All of us"})
    assert (changed.json()["alt"], changed.json()["name"], changed.json()["url"]) == ("All of us", "team.jpg", "")
    twice = await bob.put(f"{PAGES}/about", json={"title": "A", "status": "draft", "sections": sections * 2})
    assert (twice.status_code, twice.json()["message"]) == (400, "Two sections have the id 'team'. Give each its own.")
    assert (await bob.delete(f"{PAGES}/about")).status_code == 200
    assert (await bob.delete(f"{IMAGES}/img-1")).status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"slug": "Big News"},
        {"slug": "../etc/passwd"},
        {"slug": "news\n"},
        {"slug": "x" * 201},
        {"title": ""},
        {"title": "x" * 301},
        {"title": None},
        {"status": "deleted"},
        {"body": "x" * 100_001},
        {"approved": True},
    ],
)
async def test_bad_input_is_refused_with_the_field(bob: httpx2.AsyncClient, wrong: dict[str, Any]) -> None:  # R65
    response = await bob.post(POSTS, json={**NEWS, **wrong})
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert response.json()["problems"][0]["pointer"] == f"/{next(iter(wrong))}"
    assert await names(bob, POSTS) == []


async def test_a_url_of_an_image_is_https_or_empty(bob: httpx2.AsyncClient) -> None:  # R65
    for url in ("javascript:alert(1)", "http://files.example/x.jpg", "https://files.example/a b", 'https://x/"onload'):
        response = await bob.post(IMAGES, json={"name": "x.jpg", "alt": "", "url": url})
        assert response.status_code == 400, url


async def test_a_viewer_reads_and_changes_nothing(bob: httpx2.AsyncClient, vic: httpx2.AsyncClient) -> None:  # R65
    await create(bob, POSTS, NEWS)
    assert await names(vic, POSTS) == ["news"]
    assert (await vic.get(f"{POSTS}/news")).status_code == 200
    assert (await vic.delete(f"{POSTS}/news")).status_code == 403
    assert (await vic.post(POSTS, json={**NEWS, "slug": "other"})).status_code == 403


async def test_lists_are_searched_sorted_and_paged(
    vic: httpx2.AsyncClient, services: AppServices, clock: Clock
) -> None:
    items = services.store.tool_items("default")  # R65
    await fill_content(items)
    clock.advance(1_000)
    edit = next(tool for tool in cms.write_tools(ToolContext("default", items)) if tool.name == "cms_update_page")
    await edit.run(ToolInvocation({"slug": "contact", "title": "Write to us"}, "approval-1"))
    assert await names(vic, PAGES) == ["about", "contact", "home", "imprint", "pricing"]
    assert await names(vic, PAGES, q="BICYCLE SHOP") == ["about"], "in the text of sections too"
    assert await names(vic, POSTS, status="draft") == ["a-post-that-gives-orders", "hello-world"]
    assert (await names(vic, PAGES, sort="updated"))[0] == "contact"
    assert (await names(vic, PAGES, sort="viewed"))[0] == "imprint"
    since = rfc3339(START - 100 * DAY)
    assert await names(vic, PAGES, not_viewed_since=since) == ["imprint"]
    seen, cursor = [], ""
    while cursor is not None:
        page = (await vic.get(PAGES, params={"limit": 2, "cursor": cursor, "sort": "viewed"})).json()
        seen, cursor = [*seen, *(item["slug"] for item in page["items"])], page["next"]
    assert sorted(seen) == ["about", "contact", "home", "imprint", "pricing"]
    for query in ({"cursor": "x"}, {"limit": 0}, {"sort": "size"}, {"not_viewed_since": "soon"}, {"stauts": "draft"}):
        assert (await vic.get(PAGES, params=query)).status_code == 400, query
    [change] = (await vic.get(f"{PAGES}/contact")).json()["history"]
    assert (change["person"], change["approval_id"]) == (None, "approval-1")


async def test_a_site_reports_its_views(
    bob: httpx2.AsyncClient, vic: httpx2.AsyncClient, services: AppServices
) -> None:  # R65
    await create(bob, PAGES, {"slug": "about", "title": "About"})
    tag = (await bob.get(f"{PAGES}/about")).headers["etag"]
    before = await services.store.head("default")
    views = [{"path": "/about", "count": 12, "last_at": rfc3339(START - DAY)}, {"path": "/nothing-here"}]
    reported = await vic.post("/api/content/views", json={"views": views}, headers={"idempotency-key": "hour 1"})
    assert reported.json() == {"counted": 1, "unknown": ["/nothing-here"]}
    await vic.post("/api/content/views", json={"views": views}, headers={"idempotency-key": "hour 1"})
    page = await bob.get(f"{PAGES}/about")
    assert (page.json()["views"], page.json()["last_viewed_at"]) == (12, rfc3339(START - DAY)), "a retry counts once"
    assert page.headers["etag"] == tag, "a visitor does not disturb an editor"
    assert await services.store.head("default") == before
    for wrong in ([], [{"path": "about"}], [{"path": "/a", "count": 0}], [{"path": "/a"}] * 501):
        assert (await vic.post("/api/content/views", json={"views": wrong})).status_code == 400


async def test_a_few_long_posts_are_not_searched_on_the_event_loop(
    bob: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # R65
    for number in range(3):
        await create(bob, POSTS, {"slug": f"long{number}", "title": "Long", "body": "word " * 9_000})
    worked: list[tuple[str, int]] = []
    note_threads(monkeypatch, worked, content, "contains_words")
    assert await names(bob, POSTS, q="word word") == ["long0", "long1", "long2"]
    assert len(worked) == 3
    assert threading.get_ident() not in {thread for _, thread in worked}


async def test_many_images_are_not_searched_on_the_event_loop(
    bob: httpx2.AsyncClient, services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:  # R65
    def fill(transaction: ToolItemTransaction) -> object:
        for number in range(100):
            transaction.put(cms.IMAGE, f"img-{number}", {"name": f"{number}.jpg", "alt": "", "url": ""})
        return None

    await services.store.tool_items("default").change("", fill)
    worked: list[tuple[str, int]] = []
    note_threads(monkeypatch, worked, content, "contains_words")
    assert len(await names(bob, IMAGES, q="jpg", limit=100)) == 100
    assert threading.get_ident() not in {thread for _, thread in worked}
