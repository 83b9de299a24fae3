"""What holds for every channel there is. A file that is put into channels/ is found here by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from importlib import import_module
from pathlib import Path

import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.models import ChannelSettings as Configured
from interlock.core.call import ToolSpec
from interlock.core.errors import Misconfigured
from interlock.core.ports import User
from interlock.notify import channels
from interlock.notify.channel import CHANNEL_KINDS, DeliveryFailed, load_channel_type
from interlock.testing.channels import ERROR_TEXT, ChannelContract, ChannelTrial, FakeService, OpenChannel
from tests.channels.configured_channels import ConfiguredChannels
from tests.channels.fake_services import FAKE_SERVICES
from tests.support import Clock, approve, propose_pending

DISCOVERED_KINDS = sorted(
    each.stem
    for each in Path(channels.__path__[0]).iterdir()
    if (each.suffix == ".py" and each.stem != "__init__") or (each / "__init__.py").is_file()
)
ENGINE_KINDS = [
    name for name in DISCOVERED_KINDS if load_channel_type(name).capabilities.engine
]  # these tell programs, and have tests of their own
NOTIFYING_KINDS = [name for name in DISCOVERED_KINDS if name not in ENGINE_KINDS]
TEXT_ONLY_KINDS = {"apprise"}  # services that are told a text and nothing else know no ids
DOCS = Path(__file__).parents[2] / "docs"
MINUTE = 60_000


@pytest.fixture(params=NOTIFYING_KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def fake_service(kind: str, tmp_path: Path, clock: Clock) -> AsyncIterator[FakeService]:
    async with FAKE_SERVICES[kind](tmp_path, clock) as made:
        yield made


class TestEveryChannel(ChannelContract):  # R24 R25 R26
    """The contract that channels from outside are tested by, for each of ours."""

    @pytest.fixture
    def trial(self, kind: str, tmp_path: Path, clock: Clock) -> ChannelTrial:
        return ChannelTrial(kind, lambda: FAKE_SERVICES[kind](tmp_path, clock))

    def test_only_services_that_are_told_a_text_alone_know_no_ids(self, trial: ChannelTrial) -> None:
        async def check(opened: OpenChannel) -> None:
            assert (opened.service.ids is None) == (trial.kind in TEXT_ONLY_KINDS)

        trial.run(check)

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
        self, trial: ChannelTrial, common: Mapping[str, object], words: str
    ) -> None:
        with pytest.raises(Misconfigured, match=words):
            trial.open({**trial.settings(), **common})


def test_every_kind_is_a_file_and_every_file_is_a_kind() -> None:  # R25 R64
    assert sorted(CHANNEL_KINDS) == DISCOVERED_KINDS


def test_every_kind_can_be_tried() -> None:  # R25
    missing = sorted(set(NOTIFYING_KINDS) ^ set(FAKE_SERVICES))
    assert missing == [], f"Add how to try {missing} to tests/channels/fake_services.py."


def test_the_head_of_a_kind_says_what_its_settings_are(kind: str) -> None:  # R25
    documented = import_module(f"{channels.__name__}.{kind}").__doc__ or ""
    settings = load_channel_type(kind).settings
    assert [name for name in settings if f"`{name}" not in documented and name != "allow_private"] == []


@pytest.mark.parametrize("waking", ENGINE_KINDS)
def test_what_wakes_workflows_tells_people_nothing_and_is_explained(waking: str) -> None:  # R25
    settings, capabilities, _ = load_channel_type(waking)
    assert (capabilities.engine, capabilities.priorities) == (waking, frozenset())
    page = (DOCS / "engines" / f"{waking}.md").read_text()
    for text in (page, import_module(f"{channels.__name__}.{waking}").__doc__ or ""):
        assert [name for name in settings if f"`{name}" not in text] == []


def test_every_setting_is_explained_on_its_page(kind: str) -> None:  # R25
    page = (DOCS / "channels" / f"{kind}.md").read_text()
    assert [name for name in load_channel_type(kind).settings if f"`{name}" not in page] == []


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
