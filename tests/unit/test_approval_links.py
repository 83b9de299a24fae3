"""Links to an approval: absolute, and without a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.app.bootstrap import approval_link, database_option


def test_a_file_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert database_option("sqlite:///a.db") == f"--database sqlite:///{tmp_path}/a.db"
    assert database_option("sqlite:////srv/a.db") == "--database sqlite:////srv/a.db"
    assert database_option("sqlite:////srv/our files/$x.db") == "--database 'sqlite:////srv/our files/$x.db'"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://db/x", "postgresql://db/x"),
        ("postgresql://ann@db:5432/x", "postgresql://ann@db:5432/x"),
        ("postgresql://ann:hunter2@db/x", "postgresql://ann@db/x"),
        ("postgresql://ann:hunt@er2@db/x", "postgresql://ann@db/x"),
        ("postgresql://ann:hunter2?@db", "postgresql://ann@db"),
        ("postgresql://db/x?user=ann&password=hunter2", "'postgresql://db/x?user=ann'"),
        ("postgresql://db/x?SSLPASSWORD=hunter2", "postgresql://db/x"),
        ("postgresql://db/x?application_name=a@b", "'postgresql://db/x?application_name=a@b'"),
    ],
)
def test_a_password_is_left_out(url: str, shown: str) -> None:
    assert database_option(url) == f"--database {shown}"


def test_an_approval_is_found_by_a_command_or_on_the_page_of_the_server() -> None:
    there = "interlock approvals show {id} --database sqlite:////srv/a.db"
    assert approval_link("sqlite:////srv/a.db") == there
    assert approval_link("sqlite:////srv/a.db", "the office") == f"{there} --workspace 'the office'"
    assert approval_link("https://interlock.example/") == "https://interlock.example/a/{id}"
