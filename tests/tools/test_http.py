"""The HTTP pack: what it sends, what it gives back, and where it never goes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from interlock.chat.tool import Tool, ToolContext, ToolInvocation
from interlock.chat.tools import http
from interlock.core.call import redact
from interlock.core.canonical import canonical
from interlock.core.errors import CallWouldFail, EffectUnknown, InvalidRequest, Misconfigured, ToolFailed
from interlock.net.ssrf import EgressPolicy, PinnedTransport
from tests.tools.fake_network import OK, FakeNetwork, FakeResolver, authority, page, redirect, run_web_server

PUBLIC = "93.184.215.14"
OTHER = "93.184.215.15"


def get_tool(transport: httpx2.AsyncBaseTransport | None = None, **settings: object) -> Tool:
    (tool,) = http.read_tools(ToolContext("default", None, settings, transport))
    return tool


def post_tool(transport: httpx2.AsyncBaseTransport | None = None, **settings: object) -> Tool:
    (tool,) = http.write_tools(ToolContext("default", None, settings, transport))
    return tool


async def get(url: str, transport: httpx2.AsyncBaseTransport | None = None, **args: object) -> dict[str, object]:
    return await get_tool(transport).run(ToolInvocation({"url": url, **args}, ""))


def local_settings(port: int, **settings: object) -> dict[str, object]:
    """Settings that open one server of the test, by its own address."""
    return {"allow": [f"127.0.0.1:{port}"], "allow_private": True, **settings}


def test_a_get_reads_and_a_post_asks() -> None:  # R7
    got, posted = get_tool().spec, post_tool().spec
    assert (got.name, got.effect, posted.name, posted.effect) == ("http_get", "read", "http_post", "write")
    assert not posted.idempotent  # nobody knows what the other side does with a second one
    assert posted.sentence({"url": "https://example.com/hook", "body": {}}) == (
        "Send a POST request to 'https://example.com/hook'"
    )


async def test_a_page_is_read() -> None:  # R7
    async with run_web_server(a=page(b'{"x": 1}', "application/json", "set-cookie: s=1", "etag: abc")) as fake:
        tool = get_tool(**local_settings(fake.port))
        given = await tool.run(
            ToolInvocation({"url": f"http://127.0.0.1:{fake.port}/a", "headers": {"Accept": "x/y"}}, "")
        )
    headers = {"content-type": "application/json", "content-length": "8", "etag": "abc"}
    assert given == {"status": 200, "headers": headers, "body": '{"x": 1}'}
    (seen,) = fake.requests
    assert seen.startswith("GET /a HTTP/1.1\r\n")
    assert "accept: x/y\r\n" in seen.lower()
    assert "accept-encoding: identity\r\n" in seen.lower()


@pytest.mark.parametrize(
    ("body", "kind", "sent"),
    [
        ({"a": ["ü", 1]}, "application/json", '{"a": ["ü", 1]}'),
        ("a=1&b=2", "text/plain; charset=utf-8", "a=1&b=2"),
        (None, "application/json", "null"),
        ("", "text/plain; charset=utf-8", ""),
    ],
)
async def test_a_post_sends_a_text_as_it_is_and_all_else_as_json(body: object, kind: str, sent: str) -> None:  # R7
    async with run_web_server() as fake:
        tool = post_tool(**local_settings(fake.port))
        url = f"http://127.0.0.1:{fake.port}/hook"
        given = await tool.run(ToolInvocation({"url": url, "body": body}, "key"))
    assert given["status"] == 200
    head, _, content = fake.requests[0].partition("\r\n\r\n")
    assert content == sent
    assert f"content-type: {kind}" in head.lower()
    assert f"content-length: {len(sent.encode())}" in head.lower()


async def test_a_post_follows_no_redirect() -> None:  # R7
    async with run_web_server(a=redirect("/b")) as fake:
        tool = post_tool(**local_settings(fake.port))
        given = await tool.run(ToolInvocation({"url": f"http://127.0.0.1:{fake.port}/a", "body": "x"}, "key"))
    assert (given["status"], given["headers"]["location"], len(fake.requests)) == (302, "/b", 1)


async def test_three_redirects_are_followed_and_no_more() -> None:  # R7
    chain = {"a": redirect("/b"), "b": redirect("/c", 301), "c": redirect("/d", 307), "d": redirect("/e", 308)}
    async with run_web_server(**chain) as fake:
        tool = get_tool(**local_settings(fake.port))
        given = await tool.run(ToolInvocation({"url": f"http://127.0.0.1:{fake.port}/b"}, ""))
        assert given["body"] == "ok"
        with pytest.raises(ToolFailed, match="more than 3 times"):
            await tool.run(ToolInvocation({"url": f"http://127.0.0.1:{fake.port}/a"}, ""))
    assert [seen.split()[1] for seen in fake.requests] == ["/b", "/c", "/d", "/e", "/a", "/b", "/c", "/d"]


@pytest.mark.parametrize(
    "location",
    [
        *("http://127.0.0.1/", "http://localhost/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/"),
        *("http://2130706433/", "http://0x7f.1/", "//127.0.0.1/x", "http://[::ffff:7f00:1]/", "http://inside.test/"),
        *("file:///etc/passwd", "ftp://public.test/", "http://public.test:22/", "http://u:p@public.test/"),
    ],
)
async def test_no_redirect_leads_to_a_forbidden_place(location: str) -> None:  # R7
    async with run_web_server(a=redirect(location)) as outside, run_web_server() as inside:
        network = FakeNetwork({PUBLIC: outside.port, "127.0.0.1": inside.port, "10.0.0.5": inside.port})
        names = FakeResolver(public_test=[[PUBLIC]], localhost=[["127.0.0.1"]], inside_test=[["10.0.0.5"]])
        with pytest.raises(ToolFailed):
            await get("http://public.test/a", PinnedTransport(EgressPolicy(), names, network))
    assert network.connections == [(PUBLIC, 80)]
    assert (len(outside.requests), inside.connection_count) == (1, 0)


async def test_headers_of_one_host_are_not_told_to_another() -> None:
    async with run_web_server(a=redirect("http://other.test/b")) as first, run_web_server() as second:
        network = FakeNetwork({PUBLIC: first.port, OTHER: second.port})
        names = FakeResolver(public_test=[[PUBLIC]], other_test=[[OTHER]])
        headers = {"Authorization": "Bearer canary", "X-Own": "canary", "Accept": "x/y"}
        given = await get("http://public.test/a", PinnedTransport(EgressPolicy(), names, network), headers=headers)
    assert given["body"] == "ok"
    assert "canary" in first.requests[0]
    assert "canary" not in second.requests[0]
    assert "x/y" in second.requests[0]


async def test_no_redirect_leaves_encryption(tmp_path: Path) -> None:
    server, trusting = authority(tmp_path, "public.test")
    async with run_web_server(server, a=redirect("http://public.test/b")) as fake:
        network = FakeNetwork({PUBLIC: fake.port})
        transport = PinnedTransport(EgressPolicy(), FakeResolver(public_test=[[PUBLIC]]), network, trusting)
        with pytest.raises(ToolFailed, match="https:// to http://"):
            await get("https://public.test/a", transport)
    assert network.connections == [(PUBLIC, 443)]


async def test_a_name_that_changes_its_address_leads_nowhere_else() -> None:  # R7
    """DNS rebinding: public when it is checked, this machine a moment later."""
    async with run_web_server() as outside, run_web_server() as inside:
        network = FakeNetwork({PUBLIC: outside.port, "127.0.0.1": inside.port})
        names = FakeResolver(flip_test=[[PUBLIC], ["127.0.0.1"]])
        given = await get("http://flip.test/", PinnedTransport(EgressPolicy(), names, network))
        assert given["status"] == 200
        assert (names.lookup_count, network.connections) == (
            ["flip.test"],
            [(PUBLIC, 80)],
        )  # asked once, and gone there
        with pytest.raises(ToolFailed, match="not at a public address"):
            await get("http://flip.test/", PinnedTransport(EgressPolicy(), names, network))
    assert inside.connection_count == 0


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fe80::1%eth0", "64:ff9b::7f00:1"],
)
async def test_one_forbidden_address_among_many_forbids_all(address: str) -> None:  # R7
    network = FakeNetwork()
    for addresses in ([address], [PUBLIC, address], [address, PUBLIC]):
        with pytest.raises(ToolFailed):
            await get(
                "http://mixed.test/", PinnedTransport(EgressPolicy(), FakeResolver(mixed_test=[addresses]), network)
            )
    assert network.connections == []


async def test_the_next_address_is_tried_where_nobody_answers() -> None:
    async with run_web_server() as fake:
        network = FakeNetwork({OTHER: fake.port})
        given = await get(
            "http://two.test/", PinnedTransport(EgressPolicy(), FakeResolver(two_test=[[PUBLIC, OTHER]]), network)
        )
    assert given["body"] == "ok"
    assert network.connections == [(PUBLIC, 80), (OTHER, 80)]


@pytest.mark.parametrize(
    ("host", "words"), [("unknown.test", "has no address"), ("empty.test", "has no address"), ("down.test", "reached")]
)
async def test_unreachable_host_is_reported(host: str, words: str) -> None:
    names = FakeResolver(empty_test=[[]], down_test=[[PUBLIC]])
    with pytest.raises(ToolFailed, match=words):
        await get(f"http://{host}/", PinnedTransport(EgressPolicy(), names, FakeNetwork()))


async def test_names_are_looked_up_by_the_system() -> None:
    async with run_web_server() as fake:
        with pytest.raises(ToolFailed, match="not at a public address"):
            await get_tool(allow=[f"localhost:{fake.port}"]).run(
                ToolInvocation({"url": f"http://localhost:{fake.port}/"}, "")
            )
        assert fake.connection_count == 0
        tool = get_tool(allow=[f"LocalHost:{fake.port}"], allow_private=True)
        assert (await tool.run(ToolInvocation({"url": f"http://localhost:{fake.port}/"}, "")))["body"] == "ok"


async def test_the_transport_itself_checks_what_it_connects_to() -> None:
    """Also for others who use it: no check before it is needed."""
    network = FakeNetwork()
    listed = EgressPolicy(frozenset({"public.test"}))
    names = FakeResolver(public_test=[[PUBLIC]], other_test=[[PUBLIC]])
    async with httpx2.AsyncClient(transport=PinnedTransport(listed, names, network), trust_env=False) as client:
        for url in ("http://127.0.0.1/", "http://0x7f.1/", "http://other.test/", "http://public.test:22/"):
            with pytest.raises(InvalidRequest):
                await client.get(url)
        with pytest.raises(httpx2.ConnectError):
            await client.get("http://PUBLIC.test./")
    assert network.connections == [(PUBLIC, 80)]
    with pytest.raises(InvalidRequest):
        await PinnedTransport(listed)._pool._network_backend.connect_unix_socket("/run/docker.sock")


async def test_tls_still_proves_the_name(tmp_path: Path) -> None:  # R7
    server, trusting = authority(tmp_path, "public.test")
    async with run_web_server(server) as fake:
        network = FakeNetwork({PUBLIC: fake.port})
        names = FakeResolver(public_test=[[PUBLIC]], other_test=[[PUBLIC]])
        given = await get("https://public.test/", PinnedTransport(EgressPolicy(), names, network, trusting))
        assert given["body"] == "ok"
        for url in ("https://other.test/", f"https://{PUBLIC}/"):
            with pytest.raises(ToolFailed, match=r"not trusted .*(Hostname|IP address) mismatch"):
                await get(url, PinnedTransport(EgressPolicy(), names, network, trusting))
        with pytest.raises(ToolFailed, match="not trusted"):
            await get("https://public.test/", PinnedTransport(EgressPolicy(), names, network))
    assert len(fake.requests) == 1


async def test_nobody_changes_the_name_that_tls_proves(tmp_path: Path) -> None:
    server, trusting = authority(tmp_path, "public.test")
    async with run_web_server(server) as fake:
        network = FakeNetwork({PUBLIC: fake.port})
        transport = PinnedTransport(EgressPolicy(), FakeResolver(other_test=[[PUBLIC]]), network, trusting)
        request = httpx2.Request("GET", "https://other.test/", extensions={"sni_hostname": "public.test"})
        with pytest.raises(httpx2.ConnectError):
            await transport.handle_async_request(request)
    assert fake.requests == []


async def test_a_long_answer_is_cut_and_says_so() -> None:
    ended = asyncio.Event()

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 65_536)
                await writer.drain()
        finally:
            ended.set()

    async with run_web_server(a=endless, b=page(b"y" * 30_000), c=page(b"z" * 20_000)) as fake:
        tool, at = get_tool(**local_settings(fake.port)), f"http://127.0.0.1:{fake.port}"
        given = [await tool.run(ToolInvocation({"url": f"{at}/{name}"}, "")) for name in "abc"]
        await asyncio.wait_for(ended.wait(), 100)  # it is left, not read to an end that never comes
    assert [len(answer["body"]) for answer in given] == [20_000, 20_000, 20_000]
    assert ["cut" in answer for answer in given] == [True, True, False]


async def test_a_slow_answer_is_not_waited_for() -> None:
    async def drips(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b".")  # never quiet for long, and never done
            await writer.drain()
            await asyncio.sleep(0.01)

    async with run_web_server(a=drips, b=redirect("/b")) as fake:
        settings, at = local_settings(fake.port, seconds=1), f"http://127.0.0.1:{fake.port}"
        with pytest.raises(ToolFailed, match=r"within 1 seconds?\.$"):
            await get_tool(**settings).run(ToolInvocation({"url": f"{at}/a"}, ""))
        with pytest.raises(ToolFailed, match="may have arrived"):
            await post_tool(**settings).run(ToolInvocation({"url": f"{at}/a", "body": "x"}, "key"))


async def test_a_post_whose_answer_cannot_be_read_has_an_unknown_effect() -> None:  # R46
    async with run_web_server(a=b"HTTP/1.1 302 Found\r\nlocation: http://[\r\ncontent-length: 0\r\n\r\n") as fake:
        settings, url = local_settings(fake.port), f"http://127.0.0.1:{fake.port}/a"
        with pytest.raises(EffectUnknown, match=r"could not be read\. It may have arrived"):
            await post_tool(**settings).run(ToolInvocation({"url": url, "body": "x"}, "key"))
        with pytest.raises(ToolFailed, match=r"could not be read\.$") as failed:
            await get_tool(**settings).run(ToolInvocation({"url": url}, ""))
    assert not isinstance(failed.value, EffectUnknown)


async def test_a_name_that_takes_long_to_look_up_is_not_waited_for() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(ToolFailed, match="within"):
        await get_tool(PinnedTransport(EgressPolicy(), never), seconds=0.05).run(
            ToolInvocation({"url": "http://slow.test/"}, "")
        )


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"),
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000,
    ],
)
async def test_truncated_response_is_reported(answer: bytes) -> None:
    async with run_web_server(a=answer) as fake:
        with pytest.raises(EffectUnknown, match="may have arrived"):  # R46
            await post_tool(**local_settings(fake.port)).run(
                ToolInvocation({"url": f"http://127.0.0.1:{fake.port}/a", "body": "x"}, "key")
            )
    async with run_web_server(a=answer) as fake:
        with pytest.raises(ToolFailed, match="broke"):
            await get_tool(**local_settings(fake.port)).run(
                ToolInvocation({"url": f"http://127.0.0.1:{fake.port}/a"}, "")
            )
    assert fake.connection_count == 1


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (page(b"gr\xfc\xdf", "text/plain; charset=iso-8859-1"), "grüß"),
        (page(b"gr\xc3\xbc\xc3\x9f", "text/html"), "grüß"),
        (page(b"a\x00b\xff", "text/plain"), "a\ufffdb\ufffd"),
        (page(b"ok", "text/plain; charset=idna"), "ok"),
        (page(b"ok", "text/plain; charset=nonsense"), "ok"),
        (page(b"<a/>", "image/svg+xml"), "<a/>"),
        (page(b"\x89PNG", "image/png"), ""),
        (page(b"\x1f\x8b\x08", "text/plain", "content-encoding: gzip"), ""),
    ],
)
async def test_a_body_is_told_as_text_or_left_out(answer: bytes, body: str) -> None:
    async with run_web_server(a=answer) as fake:
        given = await get_tool(**local_settings(fake.port)).run(
            ToolInvocation({"url": f"http://127.0.0.1:{fake.port}/a"}, "")
        )
    assert given["body"] == body
    assert ("cut" in given) == (body == "")


@pytest.mark.parametrize(
    "headers",
    [
        *({"Host": "127.0.0.1"}, {"host": "x"}, {"Content-Length": "0"}, {"Transfer-Encoding": "chunked"}, {"TE": "x"}),
        *({"Connection": "upgrade"}, {"Upgrade": "h2c"}, {"Proxy-Authorization": "x"}, {"X-Forwarded-For": "::1"}),
        *({"Expect": "100-continue"}, {"a b": "x"}, {"x:y": "z"}, {"": "x"}, {"x": "a\r\nHost: b"}, {"x": "ü"}),
        *({"x": "y" * 4_001}, {"x\n": "y"}),
    ],
)  # fmt: skip
async def test_headers_that_say_how_a_request_travels_cannot_be_set(headers: dict[str, str]) -> None:
    async with run_web_server() as fake:
        at = f"http://127.0.0.1:{fake.port}/"
        with pytest.raises(ToolFailed, match="header"):
            await get_tool(**local_settings(fake.port)).run(ToolInvocation({"url": at, "headers": headers}, ""))
        with pytest.raises(ToolFailed, match="header"):
            await post_tool(**local_settings(fake.port)).run(
                ToolInvocation({"url": at, "headers": headers, "body": ""}, "key")
            )
    assert fake.connection_count == 0


def test_a_preview_says_what_is_sent_and_knows_what_would_be_refused() -> None:
    preview = post_tool().spec.preview
    assert preview({"url": "https://example.com/x", "body": {"a": 1}}) == (
        "Sends 8 bytes of application/json to example.com, port 443. No redirect is followed."
    )
    with pytest.raises(CallWouldFail, match=r"10\.0\.0\.1 is not at a public address"):
        preview({"url": "http://10.0.0.1/", "body": ""})
    with pytest.raises(CallWouldFail, match="cannot be set"):
        preview({"url": "http://x.test/", "body": "", "headers": {"Host": "y"}})


NAMES = "Authorization X-API-Key x-api-key Api-Key API-KEY Cookie COOKIE Proxy-Authorization X-Auth-Token Private-Token"


@pytest.mark.parametrize("name", NAMES.split())
def test_keys_in_headers_are_not_shown_to_people(name: str) -> None:
    for tool in (get_tool(), post_tool()):
        shown = redact(canonical({"url": "https://example.com", "headers": {name: "s3cret"}}), tool.spec, b"k" * 32)
        assert b"s3cret" not in shown.data


def test_a_key_in_an_odd_spelling_would_be_shown_and_is_refused() -> None:
    preview = post_tool().spec.preview
    with pytest.raises(CallWouldFail, match="Write X-Api-Key"):
        preview({"url": "https://example.com/", "body": "", "headers": {"x-aPi-kEy": "s3cret"}})


@pytest.mark.parametrize(
    "settings",
    [
        *({"allow": "example.com"}, {"allow": [1]}, {"allow": []}, {"allow": [""]}, {"allow_private": "yes"}),
        *({"seconds": 0}, {"seconds": True}, {"seconds": "10"}, {"seconds": 3_600}),
    ],
)
def test_settings_that_could_be_misread_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(Misconfigured, match=r"tools\.http"):
        http.read_tools(ToolContext("default", None, settings))


async def test_a_proxy_in_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would look the name up anew, and connect for us."""
    async with run_web_server(a=OK) as fake, run_web_server() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        given = await get_tool(**local_settings(fake.port)).run(
            ToolInvocation({"url": f"http://127.0.0.1:{fake.port}/a"}, "")
        )
    assert (given["body"], proxy.connection_count) == ("ok", 0)
