"""What `interlock doctor` says of the server's settings: the address, the port, who signs people in."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from ipaddress import ip_address
from urllib.parse import urlsplit

from interlock.config.models import ServerSettings, Settings, StorageSettings
from interlock.storage.engine.metrics import CheckResult

MIN_OPEN_FILES = 4_096  # every connection is an open file
REQUEST_TIMEOUT = 5.0  # seconds
SERVER_PACKAGES = ("argon2", "authlib", "fastapi", "httptools", "httpx2", "prometheus_client", "uvicorn", "uvloop")


def check_server(settings: Settings) -> Iterator[CheckResult]:
    missing = [name for name in SERVER_PACKAGES if find_spec(name) is None]
    if missing:
        todo = 'Install it if you want to run one: pip install "interlock-gate[server]"'
        yield CheckResult("warn", "server", f"not installed: {', '.join(missing)}", todo)
    yield _address(settings.server)
    if not missing:
        yield _port(settings.server)
        yield from _provider(settings.server.oidc.issuer if settings.server.oidc else "")
    yield _files()
    yield _retention(settings.storage)


def _retention(storage: StorageSettings) -> CheckResult:
    """Always said: what is erased cannot be shown, searched or rehearsed any more."""
    if storage.retention is None:
        return CheckResult("ok", "retention", "forever: the content of finished calls is kept")
    return CheckResult("ok", "retention", f"{storage.kept}: the content of finished calls is erased after that")


def _address(server: ServerSettings) -> CheckResult:
    """A password must not travel in the clear."""
    parts = urlsplit(server.public_url)
    if parts.scheme == "https" and parts.hostname:
        if server.proxies:
            return CheckResult("ok", "address", server.public_url)
        todo = "Name the proxy's address in server.proxies, or everybody seems to come from it."
        return CheckResult("warn", "address", f"{server.public_url}, without a proxy that is believed", todo)
    if server.public_url and parts.scheme != "http":
        return CheckResult(
            "fail", "address", server.public_url, "server.public_url is an address such as https://name."
        )
    if is_local(parts.hostname or server.host):
        return CheckResult(
            "ok", "address", server.public_url or f"http://{server.host}:{server.port}, for this machine"
        )
    todo = "Put a proxy with TLS before it, and set server.public_url to its https:// address."
    return CheckResult("warn", "address", f"{server.public_url or server.host} is reached without TLS", todo)


def _port(server: ServerSettings) -> CheckResult:
    import httpx2

    where = f"{server.host}:{server.port}"
    if server.port == 0 or _is_free(server):
        return CheckResult("ok", "port", f"{where} is free")
    try:
        answer = httpx2.get(
            f"http://{_reachable_host(server.host)}:{server.port}/healthz", timeout=REQUEST_TIMEOUT, trust_env=False
        )
        ours = answer.json() == {"status": "ok"} and "x-request-id" in answer.headers
    except (httpx2.HTTPError, ValueError):
        ours = False
    if ours:
        return CheckResult("ok", "port", f"a server of Interlock runs at {where}")
    return CheckResult(
        "fail", "port", f"something else listens at {where}", "Choose another one: server.port, or --port."
    )


def _is_free(server: ServerSettings) -> bool:
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((server.host, server.port))
        except OSError:
            return False
    return True


def _provider(issuer: str) -> Iterator[CheckResult]:
    import httpx2

    if not issuer:
        return
    place = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        answer = httpx2.get(place, timeout=REQUEST_TIMEOUT)
        found = answer.raise_for_status().json().get("issuer")
    except (httpx2.HTTPError, ValueError, AttributeError) as error:
        todo = "Check server.oidc.issuer and the network; until then nobody signs in by it."
        yield CheckResult("fail", "provider", f"{issuer} does not answer as one: {type(error).__name__}", todo)
        return
    if found == issuer:
        yield CheckResult("ok", "provider", issuer)
    else:
        yield CheckResult(
            "fail", "provider", f"{issuer} calls itself {found}", "Set server.oidc.issuer to exactly that."
        )


def _files() -> CheckResult:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or most >= MIN_OPEN_FILES:
        return CheckResult("ok", "open files", "as many as needed" if most == resource.RLIM_INFINITY else f"{most:,}")
    return CheckResult("warn", "open files", f"{most:,}", f"Allow {MIN_OPEN_FILES:,} or more (ulimit -n, LimitNOFILE).")


def is_local(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _reachable_host(host: str) -> str:
    """An address that stands for all of them cannot be called."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104  nobody listens here
    return f"[{name}]" if ":" in name else name
