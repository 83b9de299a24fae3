"""The web app as it is served: one page for every address, under a strict policy, and the files that it is made of."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from interlock.server import static
from tests.databases import SqliteFile
from tests.server.conftest import ClientFactory

ROUTES = Path(__file__).resolve().parents[2] / "ui" / "src" / "Pages.tsx"
OPENED = [re.sub(r"\{\w+\}", "some-id", address) for address in static.PAGE_PATHS]


@pytest.fixture
def database(tmp_path: Path) -> SqliteFile:
    """One kind of database is enough: what is served here is in none."""
    return SqliteFile(tmp_path / "interlock.db")


@pytest.fixture
def anybody(client: ClientFactory) -> httpx2.AsyncClient:
    """Without a key or a session."""
    return client()


@pytest.fixture
def unbuilt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A checkout in which nothing was built."""
    static._built_files.cache_clear()
    monkeypatch.setattr(static, "files", lambda _: tmp_path)
    yield
    static._built_files.cache_clear()


async def test_every_address_gets_the_page_under_a_strict_policy_with_a_fresh_nonce(
    anybody: httpx2.AsyncClient,
) -> None:
    nonces = set()
    for address in OPENED:
        answer = await anybody.get(address)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8"), address
        assert answer.headers["cache-control"] == "no-store"  # the nonce is for one look
        [nonce] = set(re.findall(r'nonce="([^"]+)"', answer.text))
        assert answer.headers["content-security-policy"] == static.CONTENT_SECURITY_POLICY.format(nonce=nonce)
        nonces.add(nonce)
    assert len(nonces) == len(OPENED)
    assert min(map(len, nonces)) >= 20


async def test_the_policy_lets_in_nothing_but_our_own_files(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/")
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy.pop("style-src").startswith("'self' 'nonce-")
    own = {name for name, value in policy.items() if value == "'self'"}
    assert own == {"script-src", "img-src", "font-src", "connect-src"}
    nothing = {"default-src", "base-uri", "form-action", "frame-ancestors"}
    assert {name for name, value in policy.items() if value == "'none'"} == nothing
    assert len(policy) == 8
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"


async def test_the_page_holds_no_script_and_no_style_of_its_own(anybody: httpx2.AsyncClient) -> None:
    text = (await anybody.get("/")).text
    assert re.findall(r"<script(?![^>]* src=\"/assets/)", text) == []
    assert re.findall(r"<style| style=| on\w+=|https?:|\[NONCE\]|\[PROVIDER\]", text) == []


async def test_looking_at_the_page_says_nothing_about_the_server(anybody: httpx2.AsyncClient) -> None:
    text = (await anybody.get("/a/some-id")).text
    assert "some-id" not in text
    assert "interlock.db" not in text


async def test_files_are_kept_for_ever_and_come_compressed_to_those_who_can_read_it(
    anybody: httpx2.AsyncClient,
) -> None:
    names = re.findall(r'"(/assets/[^"]+)"', (await anybody.get("/")).text)
    kinds = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
    assert {name.rpartition(".")[2] for name in names} == set(kinds)
    for name in names:
        plain = await anybody.get(name, headers={"accept-encoding": "identity"})
        squeezed = await anybody.get(name, headers={"accept-encoding": "gzip, br;q=0"})
        small = await anybody.get(name, headers={"accept-encoding": "gzip, deflate, br, zstd"})
        assert "content-encoding" not in plain.headers
        assert [answer.headers["content-encoding"] for answer in (squeezed, small)] == ["gzip", "br"]
        lengths = [int(answer.headers["content-length"]) for answer in (plain, squeezed, small)]
        assert lengths == sorted(lengths, reverse=True)
        assert squeezed.content == plain.content
        for answer in (plain, squeezed, small):
            assert answer.headers["content-type"] == kinds[name.rpartition(".")[2]]
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert answer.headers["vary"] == "accept-encoding"
            assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_icon_may_change(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/icon.svg")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "immutable" not in answer.headers["cache-control"]


@pytest.mark.parametrize(
    "path",
    [
        "/assets/nothing.js",
        "/assets/../index.html",
        "/assets/%2e%2e%2findex.html",
        "/assets/..%5cindex.html",
        "/assets/.built",
        "/assets/index.html",
        "/assets/%00",
        "/assets/",
        "/assets",
        "/index.html",
        "/.built",
        "/index.html.gz",
        "/index.html.br",
        "/src/main.tsx",
        "/settings/people/more",
    ],
)
async def test_nothing_else_is_served(anybody: httpx2.AsyncClient, path: str) -> None:
    answer = await anybody.get(path)
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    assert answer.headers["cache-control"] == "no-store"


async def test_the_head_of_the_page_and_of_its_files_can_be_asked_for(anybody: httpx2.AsyncClient) -> None:
    [script] = re.findall(r'"(/assets/index[^"]+\.js)"', (await anybody.get("/")).text)
    for path in ("/", "/inbox", "/a/some-id", "/icon.svg", script):
        whole, head = await anybody.get(path), await anybody.head(path)
        assert head.status_code == 200, path
        same = {"content-type", "content-length", "cache-control"}
        assert {name: head.headers[name] for name in same} == {name: whole.headers[name] for name in same}


async def test_a_page_that_is_not_built_says_what_to_do(anybody: httpx2.AsyncClient, unbuilt: None) -> None:
    answer = await anybody.get("/")
    assert (answer.status_code, answer.json()["error"]) == (503, "misconfigured")
    assert answer.json()["message"] == static.NOT_BUILT
    assert (await anybody.get("/healthz")).status_code == 200


def test_the_server_and_the_page_know_the_same_addresses() -> None:
    told = re.findall(r'<Route path="([^"]+)"', ROUTES.read_text())
    addresses = {shape for path in told for shape in shapes(path)}
    known = {re.sub(r"\{\w+\}", ":", address) for address in static.PAGE_PATHS}
    assert addresses | {"/"} == known  # what is around the pages leads on from there


def test_every_file_was_compressed_as_it_is() -> None:
    built = static._built_files()
    assert "index.html" in built
    for name, file in built.items():
        if file.compressed:
            assert gzip.decompress(file.compressed["gzip"]) == file.content, name
    texts = {name: file for name, file in built.items() if name.endswith((".js", ".css"))}
    assert [name for name, file in texts.items() if list(file.compressed) != ["br", "gzip"]] == []


def shapes(path: str) -> Iterator[str]:
    """`/chat/:thread?` stands for two addresses."""
    if path.endswith("?"):
        yield path.rpartition("/")[0]
    yield re.sub(r":\w+\??", ":", path)


async def test_a_mistyped_address_gets_the_page_in_a_browser_and_json_elsewhere(anybody: httpx2.AsyncClient) -> None:
    opened = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page = await anybody.get("/inbx", headers=opened)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    [nonce] = set(re.findall(r'nonce="([^"]+)"', page.text))
    assert page.headers["content-security-policy"] == static.CONTENT_SECURITY_POLICY.format(nonce=nonce)
    for answer in (
        await anybody.get("/inbx"),
        await anybody.get("/api/aprovals", headers=opened),
        await anybody.post("/inbx", headers=opened),
    ):
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


@pytest.mark.usefixtures("unbuilt")
async def test_without_a_built_page_a_mistyped_address_is_answered_in_json(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/inbx", headers={"accept": "text/html"})
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
