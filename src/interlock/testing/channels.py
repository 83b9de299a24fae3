"""The contract of a channel as tests: subclass `ChannelContract`, name the kind, and run a fake of its service.

Every channel of Interlock passes the same tests. They need pytest and no plugin for async code: each test runs an event
loop of its own, and starts the fake service in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import pytest

from interlock.core.approval.approval import Approval, ApprovalDeadlines, DecisionRecord
from interlock.core.call import ToolSpec, make_subject, propose, redact
from interlock.core.card import escape_invisible, find_findings, make_card
from interlock.core.errors import Misconfigured, NotFound
from interlock.core.notify.delivery import ApprovalView, Notification, Purpose, Recipient
from interlock.core.notify.routing import ChannelCapabilities
from interlock.core.policy.policy import Ask
from interlock.notify.channel import (
    COMMON_SETTINGS,
    Channel,
    ChannelContext,
    DeliveryDelayed,
    InboundChannel,
    InboundRequest,
    load_channel_type,
    open_channel,
)

ERROR_TEXT = "what the other side said and nobody is to repeat"
PUBLIC_URL = "https://interlock.example"
LINK = f"{PUBLIC_URL}/a/1"
SENT_AT = 1_800_000_000_000  # milliseconds
PURPOSES: tuple[Purpose, ...] = ("ask", "escalate", "remind", "changed", "ended", "expired", "group", "test")
END_STATUSES = ("approved", "rejected", "responded", "expired", "cancelled", "succeeded", "failed", "unknown")
HOSTILE = (
    "@everyone <!channel> <@U123> <https://evil.example|look> [click](https://evil.example) **bold** `code` ||hidden||"
    "\n\nApproved by ada.\r\n# Title\n{{DATE(2026-01-01)}} <b>bold</b> <at>ada</at> \u202egnp.exe ${x} @{x} {{TIME}}"
)
FORGED_REQUESTS = (
    InboundRequest({}, b""),
    InboundRequest({"content-type": "application/json"}, b"{}"),
    InboundRequest({"content-type": "application/json"}, b"\xff not JSON"),
    InboundRequest({"content-type": "application/json"}, b'{"approval_id":"1","decision":{"kind":"approve"}}'),
)


@dataclass(kw_only=True)
class FakeService:
    """A running fake. `secrets` are in its settings and may appear nowhere else.

    `received_texts` gives all texts of what arrived, `refusals` what the fake would not take. `fail` breaks it or
    repairs it; a broken one says `ERROR_TEXT`. `ids` are what tells one message from another there; None where the
    service knows nothing of the kind.
    """

    settings: dict[str, object]
    received_texts: Callable[[], Sequence[str]]
    refusals: Callable[[], Sequence[str]]
    fail: Callable[[bool], None]
    ids: Callable[[], Sequence[str]] | None = None
    secrets: Sequence[str] = field(default=())


class OpenChannel(NamedTuple):
    channel: Channel
    service: FakeService


@dataclass(frozen=True)
class ChannelTrial:
    """A kind of channel with a fake of its service, which `start` runs."""

    kind: str
    start: Callable[[], AbstractAsyncContextManager[FakeService]]

    def run(self, check: Callable[[OpenChannel], Coroutine[Any, Any, None]]) -> None:
        """Run a check of a channel that is open, with its service."""

        async def run() -> None:
            async with self._open() as opened:
                await check(opened)

        asyncio.run(run())

    def settings(self) -> dict[str, object]:
        """Settings with which the channel can be made."""

        async def read() -> dict[str, object]:
            async with self.start() as service:
                return service.settings

        return asyncio.run(read())

    def open(self, settings: Mapping[str, object]) -> Channel:
        return open_channel("it", self.kind, ChannelContext("it", settings, PUBLIC_URL))[0]

    def notification(self, purpose: Purpose = "ask", **more: Any) -> Notification:
        """A notification, to a person where the channel reaches people one by one."""
        is_personal = load_channel_type(self.kind).capabilities.personal
        to = Recipient("ada", "ada@example.com") if is_personal else Recipient()
        return replace(make_notification(purpose), to=to, **more)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[OpenChannel]:
        async with self.start() as service:
            channel = self.open(service.settings)
            try:
                yield OpenChannel(channel, service)
            finally:
                await channel.close()


class ChannelContract:
    """What holds for every channel. A subclass sets `kind` and implements `run_service`."""

    kind: str

    def run_service(self, folder: Path) -> AbstractAsyncContextManager[FakeService]:
        """Run a fake of the service that the channel sends to; `folder` is empty and for this test alone."""
        raise NotImplementedError

    @pytest.fixture
    def trial(self, tmp_path: Path) -> ChannelTrial:
        return ChannelTrial(self.kind, lambda: self.run_service(tmp_path))

    def test_the_kind_says_what_it_takes_and_what_it_is(self, trial: ChannelTrial) -> None:
        channel_type = load_channel_type(trial.kind)
        assert isinstance(channel_type.capabilities, ChannelCapabilities)
        assert channel_type.capabilities.priorities, "A channel that takes no priority is never used."
        assert not set(channel_type.settings) & set(COMMON_SETTINGS)
        unknown = set(trial.settings()) - {*channel_type.settings, *COMMON_SETTINGS}
        assert unknown == set(), "The fake service has settings that the channel does not."

    def test_without_its_settings_it_is_refused_in_words(self, trial: ChannelTrial) -> None:
        if not load_channel_type(trial.kind).settings:
            return
        with pytest.raises(Misconfigured, match=r'^The channel "it": \w+.* is missing'):
            trial.open({})

    def test_a_setting_that_there_is_not_is_refused_with_the_nearest(self, trial: ChannelTrial) -> None:
        settings = trial.settings()
        for near in list(settings)[:1]:
            with pytest.raises(Misconfigured, match=f'did you mean "{near}"'):
                trial.open({**settings, f"{near}x": "x"})
        with pytest.raises(Misconfigured, match="there is no setting"):
            trial.open({**settings, "zzzzzz": "x"})

    def test_everything_that_can_be_said_is_taken(self, trial: ChannelTrial) -> None:
        async def check(opened: OpenChannel) -> None:
            channel, service = opened
            for purpose in PURPOSES:
                assert isinstance(await channel.send(trial.notification(purpose, id=f"first.{purpose}")), str)
            ref = await channel.send(trial.notification())
            for purpose in ("changed", "remind", "changed"):
                ref = await channel.update(trial.notification(purpose), ref)
                assert isinstance(ref, str)
            for status in END_STATUSES:
                about = make_view(status=status)
                ref = await channel.update(trial.notification("ended", approval_view=about, id=f"ended.{status}"), ref)
                assert isinstance(ref, str)
            assert list(service.refusals()) == []
            assert service.received_texts(), "Nothing arrived at the fake service."
            assert_no_secrets(service, "\n".join(service.received_texts()))

        trial.run(check)

    def test_a_retried_message_keeps_its_id(self, trial: ChannelTrial) -> None:
        async def check(opened: OpenChannel) -> None:
            channel, service = opened
            for _ in range(2):
                await channel.send(trial.notification("test"))
            await channel.send(trial.notification("ask", id="another.1"))
            if service.ids is not None:
                ids = list(service.ids())
                assert len(ids) >= 3
                assert len(set(ids)) == 2, "The service cannot tell a retry from a new message."

        trial.run(check)

    def test_texts_that_want_to_deceive_stay_texts(self, trial: ChannelTrial) -> None:
        async def check(opened: OpenChannel) -> None:
            channel, service = opened
            hostile = {HOSTILE[:200]: HOSTILE, "list": [HOSTILE, {"x": HOSTILE}], "long": HOSTILE * 100}
            about = make_view(hostile, sentence=HOSTILE)
            ref = await channel.send(trial.notification(approval_view=about, id="hostile.1"))
            await channel.update(trial.notification("remind", approval_view=about, id="hostile.2"), ref)
            ended = make_view(hostile, sentence=HOSTILE, status="rejected")
            rejected = replace(ended.approval, decision=_decided(ended)._replace(reason=HOSTILE))
            ended = replace(ended, approval=rejected, result=escape_invisible(HOSTILE))
            await channel.update(trial.notification("ended", approval_view=ended, id="hostile.3"), ref)
            assert list(service.refusals()) == []
            whole = "\n".join(service.received_texts())
            assert "\u202e" not in whole, "Hidden characters are sent as they are; see escape_invisible."
            assert "\nApproved by ada." not in whole, "An argument can make a line of its own."

        trial.run(check)

    def test_a_service_that_fails_is_tried_later_and_not_quoted(self, trial: ChannelTrial) -> None:
        async def check(opened: OpenChannel) -> None:
            channel, service = opened
            service.fail(True)
            with pytest.raises(DeliveryDelayed) as caught:
                await channel.send(trial.notification())
            assert_no_secrets(service, str(caught.value))
            service.fail(False)
            assert isinstance(await channel.send(trial.notification()), str)

        trial.run(check)

    def test_a_request_that_nobody_signed_decides_nothing(self, trial: ChannelTrial) -> None:
        async def check(opened: OpenChannel) -> None:
            channel: object = opened.channel
            if not isinstance(channel, InboundChannel):
                return
            for request in FORGED_REQUESTS:
                inbound = RefusingInbound()
                response = await channel.answer(request, cast(Any, inbound))
                assert 400 <= response.status < 500, "A forged request is answered with an error of the caller."
                assert_no_secrets(opened.service, response.body.decode("utf-8", "replace"))

        trial.run(check)


class RefusingInbound:
    """An inbound port of an empty workspace: deciding fails the test."""

    workspace = "default"

    async def delivery(self, thread: str) -> NoReturn:
        raise NotFound("There is no delivery with this id.", delivery_id=thread)

    async def find_reviewer(self, workspace: str, external_id: str, email: str = "") -> None:
        return None

    async def member(self, workspace: str, name: str) -> None:
        return None

    async def get_approval_view(self, workspace: str, approval_id: str) -> NoReturn:
        raise NotFound("There is no approval with this id.", approval_id=approval_id)

    async def decide(self, *_: object) -> NoReturn:
        pytest.fail("A request that nobody signed decided an approval.")

    async def record_refusal(self, *_: object) -> NoReturn:
        pytest.fail("A request that nobody signed was recorded as somebody's answer.")

    async def run_once(self, workspace: str, key: str, work: Callable[[], Any], digest: str = "") -> Any:
        return await work()

    async def make_identity_link(self, *_: object) -> NoReturn:
        pytest.fail("A request that nobody signed got a link to an account.")

    def now(self) -> int:
        return SENT_AT


def assert_no_secrets(service: FakeService, text: str) -> None:
    assert [secret for secret in (*service.secrets, ERROR_TEXT) if secret in text] == []


def make_view(
    args: Mapping[str, object] | None = None,
    *,
    status: str = "pending",
    secret: tuple[str, ...] = (),
    priority: str = "medium",
    sentence: str = "Delete /tmp/x",
    agent: str = "bot",
) -> ApprovalView:
    """An approval as a channel gets it, with its card."""
    spec = ToolSpec("delete_file", "destructive", secret=secret)
    asked = propose(spec.name, {"path": "/tmp/x"} if args is None else args, "run", "call1", agent=agent)  # noqa: S108
    shown = redact(asked.args, spec, b"key of the test")
    approval = Approval(
        id="5a7d9c1e-0000-4000-8000-000000000001",
        subject=make_subject(asked, spec, priority, "nonce"),
        terms=Ask(),
        args_sha256=shown.sha256,
        binding="b" * 64,
        status=status,
        created_at=SENT_AT,
        deadlines=ApprovalDeadlines(expires_at=SENT_AT + 300_000),
        decision=_decision_record(status),
    )
    card = make_card(
        tool=spec.name,
        sentence=sentence,
        risk="high",
        facts=(("agent", "bot"),),
        args=shown.value,
        findings=find_findings(shown.value, None, shown.secrets),
        secrets=shown.secrets,
    )
    return ApprovalView(approval=approval, status=status, card=card)


def make_notification(purpose: Purpose = "ask", about: ApprovalView | None = None, **more: Any) -> Notification:
    """A notification of this purpose about an approval; a test or a group has none."""
    bare = purpose in ("group", "test")
    ended = {"ended": "approved", "expired": "expired"}
    said = None if bare else about or make_view(status=ended.get(purpose, "pending"))
    made = Notification(
        id=f"d1.{purpose}",
        thread="default.d1",
        workspace="default",
        purpose=purpose,
        to=Recipient(),
        link=LINK,
        at=SENT_AT,
        approval_view=said,
        count=21 if bare else 0,
        requested_by="ada",
    )
    return replace(made, **more)


def _decided(view: ApprovalView) -> DecisionRecord:
    assert view.approval.decision is not None
    return view.approval.decision


def _decision_record(status: str) -> DecisionRecord | None:
    kinds = {"rejected": "reject", "responded": "respond", "expired": "expire", "cancelled": "cancel"}
    if status == "pending":
        return None
    by = "interlock" if status == "expired" else "bob"
    return DecisionRecord(kinds.get(status, "approve"), by, SENT_AT, via="web")
