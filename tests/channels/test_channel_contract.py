"""What holds for every channel there is. A file that is put into channels/ is found here by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.models import ChannelSettings as Configured
from interlock.core.call import ToolSpec
from interlock.core.card import escape_invisible
from interlock.core.errors import Misconfigured
from interlock.core.notify.delivery import Notification, Purpose, Recipient
from interlock.core.notify.routing import ChannelCapabilities
from interlock.core.ports import User
from interlock.notify import channels
from interlock.notify.channel import (
    CHANNEL_KINDS,
    COMMON_SETTINGS,
    Channel,
    ChannelContext,
    DeliveryDelayed,
    DeliveryFailed,
    load_channel_module,
    open_channel,
)
from tests.channels.configured_channels import ConfiguredChannels
from tests.channels.fake_services import ERROR_TEXT, FAKE_SERVICES, FakeService
from tests.channels.messages import END_STATUSES, HOSTILE, PURPOSES, make_notification, make_view
from tests.support import Clock, approve, propose_pending

DISCOVERED_KINDS = sorted(
    each.stem
    for each in Path(channels.__path__[0]).iterdir()
    if (each.suffix == ".py" and each.stem != "__init__") or (each / "__init__.py").is_file()
)
ENGINE_KINDS = [
    name for name in DISCOVERED_KINDS if load_channel_module(name).CAPABILITIES.engine
]  # these tell programs, and have tests of their own
NOTIFYING_KINDS = [name for name in DISCOVERED_KINDS if name not in ENGINE_KINDS]
DOCS = Path(__file__).parents[2] / "docs"
URL = "https://interlock.example"
MINUTE = 60_000


@pytest.fixture(params=NOTIFYING_KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def fake_service(kind: str, tmp_path: Path, clock: Clock) -> AsyncIterator[FakeService]:
    assert kind in FAKE_SERVICES, (
        f"There is no fake service for {kind}: add how to try it to tests/channels/fake_services.py."
    )
    async with FAKE_SERVICES[kind](tmp_path, clock) as made:
        yield made


@pytest.fixture
async def channel(kind: str, fake_service: FakeService) -> AsyncIterator[Channel]:
    made = open_channel("it", kind, ChannelContext("it", fake_service.settings, URL))[0]
    yield made
    await made.close()


def received(kind: str, purpose: Purpose = "ask", **more: object) -> Notification:
    """To a person where the channel reaches people one by one."""
    to = Recipient("ada", "ada@example.com") if load_channel_module(kind).CAPABILITIES.personal else Recipient()
    return replace(make_notification(purpose), to=to, **more)  # type: ignore[arg-type]


def test_every_kind_is_a_file_and_every_file_is_a_kind() -> None:  # R25
    assert sorted(CHANNEL_KINDS) == DISCOVERED_KINDS


def test_every_kind_can_be_tried() -> None:  # R25
    missing = sorted(set(NOTIFYING_KINDS) ^ set(FAKE_SERVICES))
    assert missing == [], f"Add how to try {missing} to tests/channels/fake_services.py."


def test_a_kind_says_what_it_takes_and_what_it_is(kind: str) -> None:  # R25
    module = load_channel_module(kind)
    assert isinstance(module.CAPABILITIES, ChannelCapabilities)
    assert module.CAPABILITIES.priorities
    assert all(isinstance(name, str) for name in module.SETTINGS)
    assert not set(module.SETTINGS) & set(COMMON_SETTINGS)
    documented = cast(ModuleType, module).__doc__ or ""
    unsaid = [name for name in module.SETTINGS if f"`{name}" not in documented and name != "allow_private"]
    assert unsaid == [], f"The head of channels/{kind}.py does not say what these are."


@pytest.mark.parametrize("waking", ENGINE_KINDS)
def test_what_wakes_workflows_tells_people_nothing_and_is_explained(waking: str) -> None:  # R25
    module = load_channel_module(waking)
    assert (module.CAPABILITIES.engine, module.CAPABILITIES.priorities) == (waking, frozenset())
    page = (DOCS / "engines" / f"{waking}.md").read_text()
    for text in (page, cast(ModuleType, module).__doc__ or ""):
        assert [name for name in module.SETTINGS if f"`{name}" not in text] == []


def test_every_setting_is_explained_on_its_page(kind: str) -> None:  # R25
    page = (DOCS / "channels" / f"{kind}.md").read_text()
    assert [name for name in load_channel_module(kind).SETTINGS if f"`{name}" not in page] == []


def test_without_its_settings_a_channel_is_refused_in_words(kind: str) -> None:  # R26
    with pytest.raises(Misconfigured, match=r'^The channel "it": \w+.* is missing') as caught:
        open_channel("it", kind, ChannelContext("it"))
    assert caught.value.__cause__ is None


def test_a_setting_that_there_is_not_is_refused_with_the_nearest(kind: str, fake_service: FakeService) -> None:  # R26
    near = next(iter(fake_service.settings))
    with pytest.raises(Misconfigured, match=f"did you mean {near}"):
        open_channel("it", kind, ChannelContext("it", {**fake_service.settings, f"{near}x": "x"}, URL))
    with pytest.raises(Misconfigured, match="there is no setting"):
        open_channel("it", kind, ChannelContext("it", {**fake_service.settings, "zzzzzz": "x"}, URL))


@pytest.mark.parametrize(
    ("common", "words"),
    [
        ({"priorities": ["urgent"]}, "low, medium, high"),
        ({"priorities": [["low"]]}, "low, medium, high"),
        ({"per_minute": 0}, "1 to 1000"),
        ({"per_minute": True}, "1"),
    ],
)
def test_what_every_channel_takes_is_checked(
    kind: str, fake_service: FakeService, common: Mapping[str, object], words: str
) -> None:  # R26
    with pytest.raises(Misconfigured, match=words):
        open_channel("it", kind, ChannelContext("it", {**fake_service.settings, **common}, URL))


async def test_everything_that_can_be_said_is_taken(
    channel: Channel, kind: str, fake_service: FakeService
) -> None:  # R25
    for purpose in PURPOSES:
        ref = await channel.send(received(kind, purpose, id=f"first.{purpose}"))
        assert isinstance(ref, str)
    ref = await channel.send(received(kind))
    for purpose in ("changed", "remind", "changed"):
        ref = await channel.update(received(kind, cast(Purpose, purpose)), ref)
        assert isinstance(ref, str)
    for status in END_STATUSES:
        ref = await channel.update(
            received(kind, "ended", approval_view=make_view(status=status), id=f"ended.{status}"), ref
        )
        assert isinstance(ref, str)
    assert fake_service.refusals() == []
    assert fake_service.received_texts()


async def test_retried_message_keeps_its_id(channel: Channel, kind: str, fake_service: FakeService) -> None:
    for _ in range(2):
        await channel.send(received(kind, "test"))
    await channel.send(received(kind, "ask", id="another.1"))
    if fake_service.ids is None:
        assert kind == "apprise", "Only services that are told a text and nothing else know no ids."
        return
    ids = list(fake_service.ids())
    assert len(ids) >= 3  # R24
    assert len(set(ids)) == 2


async def test_texts_that_want_to_deceive_stay_texts(
    channel: Channel, kind: str, fake_service: FakeService
) -> None:  # R25
    hostile = {HOSTILE[:200]: HOSTILE, "list": [HOSTILE, {"x": HOSTILE}], "long": HOSTILE * 100}
    about = make_view(hostile, sentence=HOSTILE)
    ref = await channel.send(received(kind, approval_view=about, id="hostile.1"))
    await channel.update(received(kind, "remind", approval_view=about, id="hostile.2"), ref)
    ended = make_view(hostile, sentence=HOSTILE, status="rejected")
    reason = replace(ended.approval.decision, reason=HOSTILE)  # type: ignore[type-var]
    ended = replace(ended, approval=replace(ended.approval, decision=reason), result=escape_invisible(HOSTILE))
    await channel.update(received(kind, "ended", approval_view=ended, id="hostile.3"), ref)
    assert fake_service.refusals() == []
    whole = "\n".join(fake_service.received_texts())
    assert "\u202e" not in whole
    assert "\nApproved by ada." not in whole


async def test_a_service_that_fails_is_tried_later_and_not_quoted(
    channel: Channel, kind: str, fake_service: FakeService
) -> None:
    fake_service.fail(True)
    with pytest.raises(DeliveryDelayed) as caught:
        await channel.send(received(kind))
    assert not any(secret in str(caught.value) for secret in (*fake_service.secrets, ERROR_TEXT))  # R25
    fake_service.fail(False)
    assert isinstance(await channel.send(received(kind)), str)


async def test_fifty_secrets_are_in_no_message_no_row_no_line_and_no_error(
    kind: str, fake_service: FakeService, services: AppServices, clock: Clock, capfd: pytest.CaptureFixture[str]
) -> None:  # R25 R41
    """Marked arguments at every depth, and what the settings hold; while the service fails, and when it works."""
    planted = [f"planted-{number:02}-secret" for number in range(50)]
    args = {"path": "/tmp/x", "key": planted[0], "keys": planted[1:20], "deep": {"a": {"b": planted[20:]}}}
    spec = ToolSpec(
        "delete_file", "destructive", describe="Delete {path} with {key}", secret=("/key", "/keys/*", "/deep")
    )
    channels = ConfiguredChannels(services, {"it": Configured(kind, fake_service.settings)}, "it")
    await services.store.put_user("default", User("ada", "admin", email="ada@example.com"), "ada")
    await channels.sweep()
    fake_service.fail(True)
    approval_id = await propose_pending(services, spec=spec, args=args)
    await channels.sweep()
    rows = [await channels.deliveries_text()]
    fake_service.fail(False)
    for _ in range(3):
        clock.advance(MINUTE)
        await channels.sweep()
    rows.append(await channels.deliveries_text())
    await approve(services, approval_id)
    await channels.sweep()
    rows.append(await channels.deliveries_text())
    fake_service.fail(True)
    with pytest.raises(DeliveryFailed) as caught:
        await channels.notifications.send_test("default", "it", "ada")
    await channels.close()
    heard = "\n".join(fake_service.received_texts())
    assert "/tmp/x" in heard
    assert f"approval_id='{approval_id}'" in rows[-1]
    printed = "".join(capfd.readouterr())
    ledger = "\n".join(repr(entry) for chunk in [c async for c in services.store.entries("default")] for entry in chunk)
    ours = "\n".join([*rows, *channels.log, ledger, printed, str(caught.value)])
    assert [secret for secret in planted if secret in heard or secret in ours] == []
    assert [secret for secret in (*fake_service.secrets, ERROR_TEXT) if secret in heard or secret in ours] == []
