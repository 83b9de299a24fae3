"""Sandboxed child process that sends one message through apprise: python -m interlock.notify.apprise_process.

Apprise's services open connections themselves, so the SSRF rules are enforced by an audit hook of the interpreter: the
process connects to no address that the settings do not allow, regardless of DNS and redirects, and starts no other
program. Apprise's logs hold addresses and tokens, and are dropped.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from interlock.net.ssrf import EgressPolicy, is_allowed_address, parse_ip_literal

BLOCKED_EVENTS = (
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.startfile",
    "pty.",
)


class AppriseJob(NamedTuple):
    """A job: whether apprise understands each URL (`check`), or whether each accepts the message (`tell`)."""

    verb: Literal["check", "tell"]
    urls: Sequence[str]
    title: str = ""
    body: str = ""
    private: bool = False


def main() -> None:
    job = AppriseJob(*json.load(sys.stdin))
    logging.disable(logging.CRITICAL)
    sys.addaudithook(make_audit_hook(EgressPolicy(private=job.private)))
    json.dump(run_job(job), sys.stdout)


def run_job(job: AppriseJob) -> list[bool]:
    from apprise import Apprise, AppriseAsset, NotifyFormat  # noqa: PLC0415  after the audit hook is installed

    asset = AppriseAsset(
        app_id="Interlock",
        app_desc="Interlock",
        app_url="",
        async_mode=False,
        http_redirects=False,
        image_url_logo="",
        image_url_mask="",
        storage_mode="memory",
    )
    services = [Apprise.instantiate(url, asset=asset, suppress_exceptions=True) for url in job.urls]
    if job.verb == "check":
        return [service is not None for service in services]
    return [
        service is not None and service.notify(body=job.body, title=job.title, body_format=NotifyFormat.TEXT) is True
        for service in services
    ]


def make_audit_hook(egress: EgressPolicy) -> Callable[[str, tuple[object, ...]], None]:
    """Make an audit hook, which the interpreter calls before each such operation; raising prevents it."""

    def asked(event: str, args: tuple[object, ...]) -> None:
        match event, args:
            case (("socket.connect" | "socket.sendto" | "socket.sendmsg"), (_, (str(host), *_))):
                address = parse_ip_literal(host)
                if address is None or not is_allowed_address(address, egress):
                    raise PermissionError("Requests are sent to public addresses only.")
            case (("socket.connect" | "socket.sendto" | "socket.sendmsg" | "socket.bind"), _):
                raise PermissionError("Requests are sent to network hosts only.")
            case _ if event.startswith(BLOCKED_EVENTS):
                raise PermissionError("Programs cannot be started here.")
            case _:
                pass

    return asked


if __name__ == "__main__":
    main()
