"""Apprise: many other services through this library, as short messages without replies.

Settings: `urls` as apprise writes them; `schemes`, the only URL schemes that are allowed; `follow_up: false` to send
only requests for a decision. Each message is sent by a child process, see `notify/apprise_process.py`.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec

from interlock.core.errors import Misconfigured
from interlock.core.notify.delivery import Notification
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify import apprise_process, message_text
from interlock.notify.apprise_process import AppriseJob
from interlock.notify.channel import ChannelContext, DeliveryDelayed
from interlock.notify.message_text import follow_up_setting, needs_new_message, sent_state

SETTINGS = ("urls", "schemes", "follow_up", "allow_private")
CAPABILITIES = ChannelCapabilities(retry_delays=(5, 15, 60, *[300] * 24, *[1_800] * 12))
# Chat, push and text message services, which only pass a message on.
SCHEMES = (
    *("bark", "barks", "discord", "gchat", "gotify", "gotifys", "guilded", "line", "matrix", "matrixs", "mmost"),
    *("mmosts", "nctalk", "nctalks", "ntfy", "ntfys", "pbul", "pover", "prowl", "rocket", "rockets", "signal"),
    *("signals", "tgram", "threema", "webex", "wxteams", "whatsapp", "zulip"),
    *("bulksms", "clicksend", "d7sms", "httpsms", "msgbird", "nexmo", "plivo", "seven", "sinch", "sns", "telnyx"),
    *("twilio", "voipms", "vonage"),
)
# Schemes that act on this machine instead of sending a message; no setting allows these.
LOCAL_SCHEMES = ("blink1", "dbus", "gio", "glib", "gnome", "kde", "macosx", "qt", "rsyslog", "syslog", "windows")
SEND_TIMEOUT = 18.0  # for one message; the queue's limit is longer
START_TIMEOUT = 60.0  # seconds, at startup
MOST_URLS = 20
MAX_PARTIAL_DELIVERIES = 200  # messages that some of the URLs accepted, and others did not
MAX_TITLE, MAX_LINE, MOST_WARNINGS = 200, 300, 3
CHILD_COMMAND = (sys.executable, "-I", "-m", apprise_process.__name__)
# Mentions, tags, named links, links, and characters that would vanish as markup in some service.
_MARKUP = re.compile(r"(?<![\w.+-])@|<|://|(?<=\])\(|[*`]|~~|\|\||(?<!\w)_|_(?!\w)")


def connect(context: ChannelContext) -> AppriseChannel:
    if find_spec("apprise") is None:
        raise Misconfigured("the channel needs the package apprise: pip install 'interlock-gate[apprise]'")
    private = context.settings.get("allow_private", False)
    if not isinstance(private, bool):
        raise Misconfigured("allow_private must be true or false")
    urls = _urls(context.settings)
    _check_urls(urls)
    return AppriseChannel(urls, private=private, follow_up=follow_up_setting(context.settings))


class AppriseChannel:
    def __init__(self, urls: Sequence[str], *, private: bool, follow_up: bool) -> None:
        self._urls = urls
        self._private = private
        self._follow_up = follow_up
        self._accepted_urls: dict[str, frozenset[str]] = {}

    async def send(self, message: Notification) -> str:
        """Send to all URLs. A retry in this process skips those that accepted it: there are no message ids."""
        accepted = self._accepted_urls.pop(message.id, frozenset())
        remaining_urls = [url for url in self._urls if url not in accepted]
        title, body = _line(message_text.title(message, MAX_LINE), MAX_TITLE), _body(message)
        answers = await _run_in_process(AppriseJob("tell", remaining_urls, title, body, self._private))
        accepted |= {url for url, is_told in zip(remaining_urls, answers, strict=True) if is_told}
        missing = len(self._urls) - len(accepted)
        if missing:
            self._remember_accepted(message.id, accepted)
            raise DeliveryDelayed(f"{missing} of {len(self._urls)} services did not accept the message.")
        return sent_state(message)

    async def update(self, message: Notification, ref: str) -> str:
        should_send = self._follow_up or message.purpose == "remind"
        return await self.send(message) if should_send and needs_new_message(message, ref) else ref

    async def close(self) -> None: ...

    def _remember_accepted(self, message_id: str, accepted: frozenset[str]) -> None:
        self._accepted_urls[message_id] = accepted
        if len(self._accepted_urls) > MAX_PARTIAL_DELIVERIES:
            del self._accepted_urls[next(iter(self._accepted_urls))]


def escape_markup(text: str) -> str:
    r"""Escape, like hidden characters, what a service could take for markup: \u{40} for @."""
    return _MARKUP.sub(lambda found: f"\\u{{{ord(found[0][0]):x}}}{found[0][1:]}", text)


def _body(message: Notification) -> str:
    """Build a few lines with the link last; arguments are on the page."""
    approval_view = message.approval_view
    lines = []
    if approval_view is not None:
        lines = [message_text.status_sentence(approval_view), *message_text.warnings(approval_view)[:MOST_WARNINGS]]
        lines += [f"Result: {approval_view.result}"] if approval_view.result else []
    return "\n".join([*(_line(line, MAX_LINE) for line in lines), message.link])


def _line(text: str, limit: int) -> str:
    """Escape and shorten a line: some services take no more than 2,000 characters in all."""
    return message_text.shorten(escape_markup(text), limit)


async def _run_in_process(job: AppriseJob) -> list[bool]:
    """Run a job in a child process with an empty environment: without proxies, and without other secrets."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    child = await asyncio.create_subprocess_exec(*CHILD_COMMAND, stdin=pipe, stdout=pipe, stderr=nothing, env={})
    try:
        async with asyncio.timeout(SEND_TIMEOUT):
            output, _ = await child.communicate(json.dumps(job).encode())
    except TimeoutError:
        raise DeliveryDelayed(f"No response within {SEND_TIMEOUT:g} seconds.") from None
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    return _answers(output, len(job.urls))


def _answers(output: bytes, count: int) -> list[bool]:
    try:
        answers = json.loads(output)
    except ValueError:
        answers = None
    if not isinstance(answers, list) or len(answers) != count:
        raise DeliveryDelayed("The library apprise failed.")
    return [each is True for each in answers]


def _urls(settings: Mapping[str, object]) -> Sequence[str]:
    urls, allowed = _texts(settings, "urls"), {each.lower() for each in _texts(settings, "schemes", SCHEMES)}
    if not 1 <= len(urls) <= MOST_URLS:
        raise Misconfigured(f"urls must be a list of one to {MOST_URLS} addresses in the notation of apprise")
    for local in sorted(allowed & set(LOCAL_SCHEMES)):
        raise Misconfigured(f"schemes: {local} acts on this machine and notifies nobody")
    for number, url in enumerate(urls, 1):
        scheme = url.partition("://")[0].lower()
        if scheme not in allowed:
            shown = scheme if re.fullmatch(r"[a-z0-9]{1,20}", scheme) else "what it begins with"
            raise Misconfigured(f"urls: the scheme {shown} of number {number} is not in schemes")
    return urls


def _texts(settings: Mapping[str, object], key: str, default: Sequence[str] | None = None) -> Sequence[str]:
    value = settings.get(key, default)
    if value is None:
        raise Misconfigured(f"{key} is missing")
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise Misconfigured(f"{key} must be a list of texts")
    return value


def _check_urls(urls: Sequence[str]) -> None:
    """Check at startup that apprise understands each URL."""
    asked = json.dumps(AppriseJob("check", urls))
    try:
        child = subprocess.run(  # noqa: S603  our own module
            CHILD_COMMAND, input=asked, capture_output=True, text=True, env={}, timeout=START_TIMEOUT, check=False
        )
        answers = _answers(child.stdout.encode(), len(urls))
    except (subprocess.TimeoutExpired, DeliveryDelayed):
        raise Misconfigured("the library apprise does not work here: python -c 'import apprise' says more") from None
    for number, is_understood in enumerate(answers, 1):
        if not is_understood:
            raise Misconfigured(f"urls: apprise cannot read number {number}; see its documentation of this service")
