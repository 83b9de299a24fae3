"""The note beside a database file that says where its server runs."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from interlock.runtime.process_identity import make_runner_id, noted_server, running_server

URL = "http://127.0.0.1:9000"


# R67
def test_a_server_is_known_while_it_runs(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    assert running_server(database) == ""
    with noted_server(database, URL):
        assert running_server(database) == URL
        assert stat.S_IMODE((tmp_path / "a.db.server").stat().st_mode) == 0o600
        with noted_server(database, "http://127.0.0.1:9001"):
            assert running_server(database) == "http://127.0.0.1:9001"
        assert running_server(database) == ""
    assert list(tmp_path.iterdir()) == []


def test_the_end_of_an_older_server_leaves_the_note_of_a_later_one(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    older, later = noted_server(database, URL), noted_server(database, "http://127.0.0.1:9001")
    older.__enter__()
    later.__enter__()
    older.__exit__(None, None, None)
    assert running_server(database) == "http://127.0.0.1:9001"
    later.__exit__(None, None, None)
    assert running_server(database) == ""


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
    assert running_server(tmp_path / "a.db") == ""


@pytest.mark.parametrize("text", ["", "[]", "\x00", "x" * 10_000])
def test_a_damaged_note_is_not_used(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.db.server").write_text(text)
    assert running_server(tmp_path / "a.db") == ""
