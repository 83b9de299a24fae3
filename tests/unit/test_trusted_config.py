"""Where `interlock hook` and `interlock mcp-gate` read their settings from."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.cli.user_folder import trusted_database, trusted_settings
from interlock.core.errors import Misconfigured

NAMED_CONFIG = "sqlite:////srv/interlock/approvals.db"


@pytest.fixture(autouse=True)
def other_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In a folder that somebody else wrote; gives the user's own configuration folder, where there is nothing yet."""
    for name in ("INTERLOCK_CONFIG", "INTERLOCK_DATABASE_URL", "INTERLOCK_URL"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "interlock.yaml").write_text(
        "storage: {url: 'sqlite:////evil.db'}\nmcp_servers: {evil: {command: evil}}\n"
    )
    (folder / ".env").write_text("INTERLOCK_DATABASE_URL=sqlite:////evil.db\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    own = tmp_path / "own" / "interlock"
    own.mkdir(parents=True)
    own.chmod(0o700)
    return own


def write(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o600)


def test_a_named_database_brings_nothing_of_the_working_folder_along() -> None:
    settings = trusted_settings(None, NAMED_CONFIG)
    assert (trusted_database(settings), settings.file, settings.mcp_servers, settings.policy) == (
        NAMED_CONFIG,
        None,
        {},
        None,
    )


def test_nothing_named_is_refused_with_the_line_to_add(other_folder: Path) -> None:
    with pytest.raises(Misconfigured) as refused:
        trusted_database(trusted_settings(None, ""))
    assert "Add --database sqlite:////" in refused.value.message
    assert str(other_folder / "interlock.yaml") in refused.value.message


def test_the_environment_names_a_database_or_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_DATABASE_URL", NAMED_CONFIG)
    assert trusted_database(trusted_settings(None, "")) == NAMED_CONFIG
    monkeypatch.delenv("INTERLOCK_DATABASE_URL")
    (tmp_path / "named.yaml").write_text(f"storage: {{url: '{NAMED_CONFIG}'}}\n")
    monkeypatch.setenv("INTERLOCK_CONFIG", str(tmp_path / "named.yaml"))
    assert trusted_database(trusted_settings(None, "")) == NAMED_CONFIG


def test_the_users_own_file_counts_and_a_named_one_before_it(other_folder: Path, tmp_path: Path) -> None:
    write(other_folder / "interlock.yaml", f"storage: {{url: '{NAMED_CONFIG}'}}\n")
    assert trusted_database(trusted_settings(None, "")) == NAMED_CONFIG
    other = "postgresql://interlock@database/interlock"
    assert trusted_database(trusted_settings(None, other)) == other
    (tmp_path / "named.yaml").write_text(f"storage: {{url: '{other}'}}\n")
    assert trusted_database(trusted_settings(tmp_path / "named.yaml", "")) == other


@pytest.mark.parametrize("variable", ["INTERLOCK_DATABASE_URL", "INTERLOCK_CONFIG"])
def test_a_relative_name_in_the_environment_is_of_the_working_folder(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "interlock.yaml" if variable.endswith("CONFIG") else "sqlite:///interlock.db")
    with pytest.raises(Misconfigured, match="absolute path"):
        trusted_database(trusted_settings(None, ""))


@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_a_file_or_a_folder_that_others_may_write_is_refused(other_folder: Path, mode: int) -> None:
    file = other_folder / "interlock.yaml"
    write(file, f"storage: {{url: '{NAMED_CONFIG}'}}\n")
    for path, own in ((file, 0o600), (other_folder, 0o700)):
        path.chmod(own | mode)
        with pytest.raises(Misconfigured, match=f"chmod go-w {path}"):
            trusted_settings(None, "")
        path.chmod(own)
    assert trusted_database(trusted_settings(None, "")) == NAMED_CONFIG
