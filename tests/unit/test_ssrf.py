"""The SSRF guard: every spelling of an address that is not public is refused."""

from __future__ import annotations

import re
from ipaddress import ip_address

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.errors import InvalidRequest
from interlock.net.ssrf import Address, EgressPolicy, Endpoint, check_address, check_endpoint, is_allowed_address
from tests.hypothesis_profiles import examples

ANYWHERE = EgressPolicy()
# Each as a browser, a shell or a resolver may read it: an address that is not public, or no address at all.
FORBIDDEN = [
    "127.0.0.1", "127.255.255.254", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0x7f.1", "0X7F.1",
    "017700000001", "0177.0.0.1", "0177.1", "00000177.0.0.1", "127.0.0.1.", "127.0.0.01", "0", "0.1", "0x0",
    "0.0.0.0",  # noqa: S104  nothing binds to it
    "10.0.0.1", "10.1", "0xa.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.257", "100.64.0.1",
    "169.254.169.254", "2852039166", "0xa9fea9fe", "0xa9.254.169.254", "0251.0376.0251.0376", "169.254.43518",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "256.0.0.1", "1.2.3.4.5",
    "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:8.8.8.8]",
    "[0:0:0:0:0:ffff:a9fe:a9fe]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]",
    "[64:ff9b:1::a9fe:a9fe]", "[100::1]", "[2001::1]", "[2001:0:7f00:1::]", "[2001:10::1]", "[2001:db8::1]",
    "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[3fff::1]", "[5f00::1]", "[fc00::1]", "[fd00:ec2::254]", "[fe80::1]",
    "[fe80::1%25eth0]", "[::1%25lo]", "[fec0::1]", "[ff02::1]", "[2a00:1450:4001::5efe:7f00:1]",
    "[2a00:1450:4001:0:200:5efe:a9fe:a9fe]", "[v1.x]", "[]", "[::1", "::1", "①②⑦.⓪.⓪.①", "127。0。0。1",
    "[2606:4700::1111%25eth0]", "[2606:4700::1111%eth0]",  # public, but for a zone
    "[example.com]", "%31%32%37.0.0.1", "1.1.1.1%00.example", "exa mple.com", "-example.com", "example..com",
    "x" * 64 + ".com", "", ".",
]  # fmt: skip


@pytest.mark.parametrize("host", FORBIDDEN)
def test_no_spelling_of_such_an_address_is_let_through(host: str) -> None:  # R7
    for url in (f"http://{host}/", f"https://{host}/path?q", f"http://{host}:80"):
        with pytest.raises(InvalidRequest):
            check_endpoint(url, ANYWHERE)


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "data:text/plain,x"),
        *("//example.com/", "example.com", "http:example.com", "http:/example.com", "https:///example.com", "", "http://"),
        *("http://user@example.com/", "http://user:pass@example.com/", "http://@example.com/", "http://a@127.0.0.1@b.com"),
        *("http://example.com\\@127.0.0.1/", "http://example.com:22/", "http://example.com:8080/", "http://example.com:0/"),
        *("http://example.com:99999/", "http://example.com:-1/", "http://example.com:80x/", "http://example.com:٨٠/"),
        *("http://example.com/a b", "http://example.com/\r\nHost: x", "http://example.com/\x00", "http://exämple.com/"),
        *(f"http://example.com/{'x' * 8_000}", " http://example.com/", "http://example.com/\t"),
    ],
)  # fmt: skip
def test_what_is_not_a_plain_web_address_is_refused(url: str) -> None:  # R7
    with pytest.raises(InvalidRequest):
        check_endpoint(url, ANYWHERE)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://example.com/path?q=1#x", Endpoint("https", "example.com", 443)),
        ("HTTP://Example.COM:80", Endpoint("http", "example.com", 80)),
        ("http://example.com.:443/", Endpoint("http", "example.com", 443)),
        ("https://xn--exmple-cua.com/", Endpoint("https", "xn--exmple-cua.com", 443)),
        ("https://8.8.8.8/", Endpoint("https", "8.8.8.8", 443)),
        ("https://[2606:4700:4700::1111]/", Endpoint("https", "2606:4700:4700::1111", 443)),
        ("http://127.0.0.1.example.com/", Endpoint("http", "127.0.0.1.example.com", 80)),
        ("http://1and1.com/", Endpoint("http", "1and1.com", 80)),
        ("http://0x7f.com/", Endpoint("http", "0x7f.com", 80)),
    ],
)
def test_what_is_public_is_let_through(url: str, target: Endpoint) -> None:
    assert check_endpoint(url, ANYWHERE) == target


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "192.168.1.1", "100.64.0.1", "::1", "fd00::1"])
def test_private_addresses_can_be_opened_by_the_settings(address: str) -> None:
    assert is_allowed_address(ip_address(address), EgressPolicy(private=True))
    assert not is_allowed_address(ip_address(address), ANYWHERE)


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "168.63.129.16", "0.1.2.3", "224.0.0.1", "240.0.0.1", "fe80::1", "::ffff:7f00:1", "::"],
)
def test_others_are_never_opened(address: str) -> None:
    assert not is_allowed_address(ip_address(address), EgressPolicy(private=True))


def test_a_list_of_hosts_is_the_only_way_and_opens_ports() -> None:
    listed = EgressPolicy(frozenset({"api.example.com", "example.com:8443"}))
    assert check_endpoint("https://API.example.com/", listed).host == "api.example.com"
    assert check_endpoint("https://example.com:8443/", listed).port == 8443
    for url in (
        "https://example.com/",
        "https://api.example.com:8443/",
        "https://www.api.example.com/",
        "https://8.8.8.8/",
    ):
        with pytest.raises(InvalidRequest, match="allow"):
            check_endpoint(url, listed)


def test_a_listed_host_is_still_no_way_into_the_private_network() -> None:
    listed = EgressPolicy(frozenset({"inside.example", "127.0.0.1"}))
    with pytest.raises(InvalidRequest, match="not at a public address"):
        check_endpoint("http://127.0.0.1/", listed)
    with pytest.raises(InvalidRequest) as caught:
        check_address("inside.example", ip_address("10.0.0.5"), listed)
    assert "10.0.0.5" not in caught.value.message  # how a private network is numbered is not told


@given(
    st.text("ahtps:/@[]:.%#?0x127\\-e ", max_size=30)
    | st.from_regex(r"https?://[a-z0-9.:@\[\]%-]{1,20}/?", fullmatch=True)
)
@examples(500)
def test_the_one_who_connects_reads_a_url_as_it_was_checked(url: str) -> None:
    """Two readers of one URL that disagree are how such checks are passed by."""
    try:
        target = check_endpoint(url, EgressPolicy(frozenset(), private=True))
    except InvalidRequest:
        return
    read = httpx2.URL(url)
    assert (read.scheme, read.host.removesuffix("."), read.port or {"http": 80, "https": 443}[read.scheme]) == target
    assert not read.userinfo


@pytest.mark.parametrize(
    "address",
    [
        *("1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"),
        *("168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0"),
        *("192.0.1.0", "192.0.3.0", "192.88.98.255", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"),
        *("198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255"),
        *("2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::", "2a00:1450::1", "3fff:1000::", "2400::5eff:7f00:1"),
    ],
)
def test_what_lies_beside_a_forbidden_network_is_public(address: str) -> None:
    assert is_allowed_address(ip_address(address), ANYWHERE)


@given(st.ip_addresses() | st.ip_addresses(v=6, network="2000::/3"))
@examples(500)
def test_whatever_may_be_reached_is_public_for_python_too(address: Address) -> None:
    assert not is_allowed_address(address, ANYWHERE) or (address.is_global and not address.is_multicast)


@pytest.mark.parametrize(
    ("url", "egress", "words"),
    [
        ("http://a b/", ANYWHERE, "with %20 for a space"),
        ("http://u:p@[::1/", ANYWHERE, "is not a URL"),
        ("http://[v1.x]/", ANYWHERE, "IPv6 address stands in brackets"),
        ("ftp://x.test/", ANYWHERE, "begins with https://"),
        ("http://u:p@x.test/", ANYWHERE, "Leave the name and the password out"),
        ("http://a..b/", ANYWHERE, "not the name of a host"),
        ("http://127.1/", ANYWHERE, "odd spelling"),
        ("http://x.test:22/", ANYWHERE, "list x.test:22 under `allow`"),
        ("http://x.test/", EgressPolicy(frozenset({"y.test"})), "not among the hosts that the settings allow"),
        ("http://10.0.0.1/", ANYWHERE, "10.0.0.1 is not at a public address"),
    ],
)
def test_every_refusal_says_why(url: str, egress: EgressPolicy, words: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(words)) as caught:
        check_endpoint(url, egress)
    assert "u:p" not in caught.value.message
