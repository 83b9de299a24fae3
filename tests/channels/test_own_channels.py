"""Channels from outside: named by an import path or an entry point, and checked when the server starts."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.config.load import load_settings
from interlock.core.errors import Misconfigured
from interlock.notify.channel import ChannelContext, InboundPort, load_channel_type, open_channel
from interlock.notify.workspace_channels import open_workspace_channels, policy_load_options
from interlock.runtime.import_path import CodeSource
from interlock.testing.channels import RefusingInbound

GOOD = """
from interlock.notify.channel import ChannelCapabilities, text_setting


class Pager:
    settings = ("url", "token")
    capabilities = ChannelCapabilities(personal=True, rate_per_minute=7)

    def __init__(self, context):
        self.url = text_setting(context.settings, "url")

    async def send(self, message):
        return "ref"

    async def update(self, message, ref):
        return ref

    async def close(self): ...
"""
Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a module into the working folder, which is imported for this test alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(name: str, text: str) -> None:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refusal(kind: str, **settings: object) -> str:
    with pytest.raises(Misconfigured) as caught:
        open_channel("night", kind, ChannelContext("night", settings), CodeSource(Path.cwd()))
    return caught.value.message.removeprefix('The channel "night": ')


def test_a_class_beside_the_configuration_is_a_channel(write: Write) -> None:  # R25 R64
    write("ourcompany/pagers.py", GOOD)
    channel, capabilities = open_channel(
        "night",
        "ourcompany.pagers:Pager",
        ChannelContext("night", {"url": "x", "per_minute": 3}),
        CodeSource(Path.cwd()),
    )
    assert type(channel).__name__ == "Pager"
    assert (capabilities.personal, capabilities.rate_per_minute) == (True, 3)


def test_an_installed_package_names_its_kind_by_an_entry_point(write: Write, tmp_path: Path) -> None:  # R25
    write("ourcompany/pagers.py", GOOD)
    write("ourcompany-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: ourcompany\nVersion: 1.0\n")
    write("ourcompany-1.0.dist-info/entry_points.txt", "[interlock.channels]\nnight-pager = ourcompany.pagers:Pager\n")
    sys.path.append(str(tmp_path))
    assert load_channel_type("night-pager").settings == ("url", "token")
    assert refusal("night-pagr") == 'unknown kind of channel "night-pagr"; did you mean "night-pager"?'


def test_no_package_replaces_a_kind_of_ours_and_two_do_not_share_one(write: Write, tmp_path: Path) -> None:  # R25
    for name, kinds in (("one", "slack = evil:Slack\npager = one:Pager"), ("two", "pager = two:Pager")):
        write(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        write(f"{name}-1.0.dist-info/entry_points.txt", f"[interlock.channels]\n{kinds}\n")
    sys.path.append(str(tmp_path))
    assert load_channel_type("slack").connect.__module__ == "interlock.notify.channels.slack.channel"
    assert refusal("pager") == 'several installed packages have "pager" in interlock.channels: one:Pager, two:Pager'


def test_the_folder_of_the_configuration_replaces_no_other_module(write: Write) -> None:
    write("json.py", "raise SystemExit('the folder came first')")
    write("pagers.py", f"import json\n{GOOD}\nassert json.loads('1') == 1")
    assert load_channel_type("pagers:Pager", CodeSource(Path.cwd())).settings == ("url", "token")


def test_a_file_that_was_only_found_is_not_trusted_with_code(write: Write) -> None:  # R25
    write("pagers.py", GOOD)
    write("interlock.yaml", "channels: {night: {kind: 'pagers:Pager', url: x}}\nrouting: {default_channel: night}\n")
    found = load_settings(None, {})
    assert policy_load_options(found).has_destinations  # unknown, so a policy may name one
    with pytest.raises(Misconfigured, match="only found in the working folder"):
        open_workspace_channels(found, "")
    assert "pagers" not in sys.modules
    named = load_settings(Path("interlock.yaml"), {})
    assert not policy_load_options(named).has_destinations
    assert [*open_workspace_channels(named, "").channels] == ["night"]
    assert [*open_workspace_channels(found.with_trusted_code(), "").channels] == ["night"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("pagers", 'unknown kind of channel "pagers"'),
        ("pagers:Pagr", 'pagers has no Pagr; did you mean "Pager"?'),
        ("pagerz:Pager", "there is no module pagerz in "),
        (
            "needs_more:Pager",
            "needs_more cannot be imported: ModuleNotFoundError: No module named 'nowhere",
        ),
        ("broken:Pager", "broken cannot be imported: ZeroDivisionError: division by zero ("),
        (
            "pagers:Pager:x",
            '"pagers:Pager:x" is not an import path; write module:attribute, such as mycompany.shop:tools',
        ),
        ("../evil:Pager", '"../evil:Pager" is not an import path'),
        ("pagers:text_setting", "pagers:text_setting is not a class"),
    ],
)
def test_a_wrong_path_is_refused_with_what_is_wrong(write: Write, kind: str, said: str) -> None:  # R26
    write("pagers.py", GOOD)
    write("needs_more.py", "import nowhere_installed")
    write("broken.py", "1 / 0")
    assert refusal(kind).startswith(said)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("capabilities = ", "capabilites = ", "has no capabilities; it has capabilites"),
        ("def close", "def end", "has no close"),
        ('("url", "token")', '"url"', "settings of pagers:Pager is a tuple of names"),
        ('("url", "token")', '("url", "per_minute")', "cannot have a setting per_minute: every channel has it"),
        ("ChannelCapabilities(personal=True, rate_per_minute=7)", "{}", "is not a ChannelCapabilities"),
        ("async def send", "def send", "send of pagers:Pager is not an async function"),
    ],
)
def test_a_class_that_is_not_a_channel_is_refused_with_what_is_missing(
    write: Write, right: str, wrong: str, said: str
) -> None:  # R26
    assert right in GOOD
    write("pagers.py", GOOD.replace(right, wrong))
    assert said in refusal("pagers:Pager")


def test_a_wrong_setting_is_refused_and_an_error_of_the_class_hides_its_secrets(write: Write) -> None:  # R26 R41
    write("pagers.py", GOOD)
    write("careless.py", GOOD.replace('text_setting(context.settings, "url")', 'int(context.settings["token"])'))
    assert refusal("pagers:Pager", urll="x") == 'there is no setting "urll" for pagers:Pager; did you mean "url"?'
    assert refusal("pagers:Pager") == "url is missing"
    said = refusal("careless:Pager", token="hunter2")
    assert said == "careless:Pager raised ValueError when it was made from its settings"


def test_the_inbound_port_of_the_contract_has_every_method_of_the_real_one() -> None:  # R25
    wanted = {name for name in vars(InboundPort) if not name.startswith("_")}
    assert {"record_refusal", "decide"} <= wanted
    assert [name for name in sorted(wanted) if not hasattr(RefusingInbound, name)] == []
