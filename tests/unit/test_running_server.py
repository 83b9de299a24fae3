"""The note beside a database file that says where its server runs."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from interlock.runtime.process_identity import (
    is_any_address,
    local_url,
    make_runner_id,
    publish_address,
    read_running_address,
)

URL = "http://127.0.0.1:9000"


# R67
def test_a_server_is_known_while_it_runs(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    assert read_running_address(database) == ""
    with publish_address(database, URL):
        assert read_running_address(database) == URL
        assert stat.S_IMODE((tmp_path / "a.db.server").stat().st_mode) == 0o600
        with publish_address(database, "http://127.0.0.1:9001"):
            assert read_running_address(database) == "http://127.0.0.1:9001"
        assert read_running_address(database) == ""
    assert list(tmp_path.iterdir()) == []


def test_the_end_of_an_older_server_leaves_the_note_of_a_later_one(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    older, later = publish_address(database, URL), publish_address(database, "http://127.0.0.1:9001")
    older.__enter__()
    later.__enter__()
    older.__exit__(None, None, None)
    assert read_running_address(database) == "http://127.0.0.1:9001"
    later.__exit__(None, None, None)
    assert read_running_address(database) == ""


def test_a_note_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "a.db"
    with publish_address(database, URL):
        own = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own + 1)
        assert read_running_address(database) == ""
        database.touch()
        assert read_running_address(database) == URL  # of the owner of the database
        monkeypatch.undo()


def test_a_link_in_place_of_a_note_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text(json.dumps({"url": URL, "runner": make_runner_id()}))
    (tmp_path / "a.db.server").symlink_to(tmp_path / "other")
    assert read_running_address(tmp_path / "a.db") == ""
    with publish_address(tmp_path / "a.db", URL):
        assert read_running_address(tmp_path / "a.db") == URL
    (tmp_path / "b.db.server").mkdir()
    with publish_address(tmp_path / "b.db", URL):
        assert read_running_address(tmp_path / "b.db") == ""
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b.db.server", "other"]


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:80"),  # noqa: S104  nothing binds to it
        ("::", "http://[::1]:80"),
        ("10.0.0.5", "http://10.0.0.5:80"),
        ("fe80::1", "http://[fe80::1]:80"),
    ],
)
def test_all_addresses_of_a_machine_are_none_to_link_to(host: str, url: str) -> None:
    assert is_any_address(host) == ("127.0.0.1" in url or "[::1]" in url)
    assert local_url(host, 80) == url


@pytest.mark.parametrize(
    ("url", "runner"),
    [
        (URL, "runner:0123456789ab:1:5:00000000"),  # of another machine
        (URL, f"{make_runner_id().rsplit(':', 3)[0]}:999999999:1:00000000"),  # of a process that has ended
        ("javascript:alert(1)", make_runner_id()),
        ("http://a\x1b[2J", make_runner_id()),
        (5, make_runner_id()),
        (URL, None),
    ],
    ids=["another machine", "ended process", "script", "control character", "number", "no runner"],
)
def test_a_note_that_cannot_be_true_is_not_used(tmp_path: Path, url: object, runner: object) -> None:
    (tmp_path / "a.db.server").write_text(json.dumps({"url": url, "runner": runner}))
    assert read_running_address(tmp_path / "a.db") == ""


@pytest.mark.parametrize("text", ["", "[]", "\x00", "x" * 10_000])
def test_a_damaged_note_is_not_used(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.db.server").write_text(text)
    assert read_running_address(tmp_path / "a.db") == ""
