"""The file of `interlock login`, and what decides whether a command uses a server or a database."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from interlock.cli.commands.login import check_address
from interlock.cli.review import ReviewOptions, choose_login
from interlock.cli.user_folder import PAGES, Login, Logins, login_path, read_logins, without_page, write_logins
from interlock.core.errors import InvalidRequest, Misconfigured
from interlock.sdk.transport import spell_address
from interlock.server.static import PAGE_PATHS

HOME, WORK = "https://home.example", "https://work.example"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In a folder that somebody else wrote; gives the user's own configuration folder."""
    for name in ("INTERLOCK_CONFIG", "INTERLOCK_DATABASE_URL", "INTERLOCK_URL", "INTERLOCK_KEY"):
        monkeypatch.delenv(name, raising=False)
    hostile = tmp_path / "project"
    (hostile / ".config" / "interlock").mkdir(parents=True)
    (hostile / "interlock.yaml").write_text("storage: {url: 'sqlite:////evil.db'}\n")
    (hostile / "logins.json").write_text('{"current": "https://evil.example", "servers": []}')
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    return tmp_path / "own" / "interlock"


def login(url: str = HOME) -> Login:
    return Login(
        url=url, key="ilk_12345678_secret", key_id="ilk_12345678", user="bob", role="reviewer", workspace="default",
        expires_at=1,
    )  # fmt: skip


# R68
def test_the_file_is_only_for_its_owner_and_keeps_every_login(own_folder: Path) -> None:
    write_logins(Logins().add(login()).add(login(WORK)))
    assert login_path() == own_folder / "logins.json"
    assert stat.S_IMODE(login_path().stat().st_mode) == 0o600
    assert stat.S_IMODE(own_folder.stat().st_mode) == 0o700
    logins = read_logins()
    assert logins.find() == login(WORK)
    assert logins.find(f"{HOME}/") == login()
    assert logins.without(WORK).find() == login()
    assert logins.without(WORK).without(HOME).find() is None
    assert logins.without(HOME).find() == login(WORK)
    assert "secret" not in repr(logins)
    assert [each.name for each in own_folder.iterdir()] == ["logins.json"]


def test_a_new_file_replaces_one_that_others_could_read(own_folder: Path) -> None:
    own_folder.mkdir(mode=0o700, parents=True)
    login_path().write_text("{}")
    login_path().chmod(0o644)
    with pytest.raises(Misconfigured, match=r"Other users can read the keys in .*chmod 600"):
        read_logins()
    write_logins(Logins().add(login()))
    assert stat.S_IMODE(login_path().stat().st_mode) == 0o600


def test_a_folder_that_others_can_write_is_refused(own_folder: Path) -> None:
    write_logins(Logins().add(login()))
    own_folder.chmod(0o777)
    for attempt in (read_logins, lambda: write_logins(Logins())):
        with pytest.raises(Misconfigured, match="Other users can write to"):
            attempt()


def test_a_link_to_another_file_is_not_followed(own_folder: Path, tmp_path: Path) -> None:
    write_logins(Logins().add(login()))
    login_path().rename(tmp_path / "elsewhere")
    login_path().symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Misconfigured, match="cannot be read"):
        read_logins()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"current": "", "servers": [{"url": 5}]}', "\x00"])
def test_a_damaged_file_says_what_to_do(own_folder: Path, text: str) -> None:
    write_logins(Logins())
    login_path().write_text(text)
    with pytest.raises(Misconfigured, match="is damaged"):
        read_logins()


def test_a_damaged_entry_does_not_cost_the_others(own_folder: Path) -> None:
    write_logins(Logins().add(login()).add(login(WORK)))
    body = json.loads(login_path().read_text())
    body["servers"][0]["from_a_later_version"] = True
    body["servers"][1]["key"] = 5
    login_path().write_text(json.dumps(body))
    assert read_logins() == Logins(HOME, {HOME: login()})


def test_the_newest_login_that_is_left_becomes_the_current_one() -> None:
    logins = Logins().add(login()).add(login(WORK)).add(login("https://third.example"))
    assert logins.add(login()).without(HOME).find() == login("https://third.example")
    assert logins.without(WORK).find() == login("https://third.example")


@pytest.mark.parametrize("url", ["https://Home.Example", f"{HOME}/", f"{HOME}:443", f"{HOME}:443/"])
def test_a_login_is_found_by_any_spelling_of_its_address(url: str) -> None:
    logins = Logins().add(login())
    assert logins.find(url) == login()
    write_logins(logins)
    assert choose_login(ReviewOptions(url=url)) == login()


def test_without_a_login_a_command_works_on_a_database() -> None:
    assert choose_login(ReviewOptions()) is None


def test_what_is_named_for_a_command_or_a_shell_comes_before_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    write_logins(Logins().add(login()).add(login(WORK)))
    assert choose_login(ReviewOptions()) == login(WORK)
    assert choose_login(ReviewOptions(url=HOME)) == login()
    assert choose_login(ReviewOptions(database="sqlite:///a.db")) is None
    assert choose_login(ReviewOptions(config=Path("interlock.yaml"))) is None
    monkeypatch.setenv("INTERLOCK_DATABASE_URL", "sqlite:////srv/a.db")
    assert choose_login(ReviewOptions()) is None
    assert choose_login(ReviewOptions(url=HOME)) == login()
    with pytest.raises(InvalidRequest, match="not both"):
        choose_login(ReviewOptions(url=HOME, database="sqlite:///a.db"))


def test_a_server_without_a_login_takes_the_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Misconfigured, match=r"You are not logged in to https://home.example\. Log in: interlock login"):
        choose_login(ReviewOptions(url=HOME))
    monkeypatch.setenv("INTERLOCK_KEY", "ilk_12345678_other")
    found = choose_login(ReviewOptions(url=f"{HOME}/"))
    assert found is not None
    assert (found.url, found.key, found.key_id) == (HOME, "ilk_12345678_other", "")
    monkeypatch.setenv("INTERLOCK_URL", f"{HOME}/")
    assert choose_login(ReviewOptions(url=HOME)) == found
    with pytest.raises(Misconfigured, match=r"You are not logged in to https://evil\.example"):
        choose_login(ReviewOptions(url="https://evil.example"))  # the key is for the server that is named beside it


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://home.example", "--insecure"),
        ("home.example", "is not the address of a server"),
        ("http://[", "is not the address of a server"),
        ("https://home.example:99999", "is not the address of a server"),
        ("https://bob:hunter2@home.example", "Leave the name and the password out"),
        ("https://home.example/?next=x", "is not the address of a server"),
        ("https://b\u00fccher\u2603\u00df\ufffd.example", "is not the address of a server"),
    ],
)
def test_an_address_is_checked_before_a_password_is_asked_for(url: str, told: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        check_address(url, insecure=False)
    assert told in refused.value.message
    assert "hunter2" not in refused.value.message


def test_an_address_has_one_spelling() -> None:
    assert check_address("https://Home.Example/", insecure=False).url == HOME
    assert check_address("https://home.example:443/inner/", insecure=False).url == f"{HOME}/inner"
    assert check_address("http://[::1]:8321", insecure=False).url == "http://[::1]:8321"
    assert check_address("http://127.0.0.1:8321", insecure=False).url == "http://127.0.0.1:8321"
    assert check_address("https://B\u00fccher.example", insecure=False).url == "https://xn--bcher-kva.example"
    assert check_address("http://home.example", insecure=True).url == "http://home.example"


def test_the_file_holds_nothing_but_logins() -> None:
    write_logins(Logins().add(login()))
    body = json.loads(login_path().read_text())
    assert set(body) == {"current", "servers"}
    assert set(body["servers"][0]) == {
        "url", "key", "key_id", "user", "role", "workspace", "expires_at", "insecure",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "server"),
    [
        ("https://host/inbox", "https://host"),
        ("https://HOST:443/a/123?x=1", "https://host"),
        ("https://host/prefix/chat/t1", "https://host/prefix"),
        ("https://host/", "https://host"),
        ("https://host/elsewhere", "https://host/elsewhere"),
        ("https://host/welcome#token", "https://host/welcome"),
        ("http://[", "http://["),
    ],
)
def test_the_address_of_a_page_stands_for_its_server(given: str, server: str) -> None:
    assert spell_address(without_page(given)) == server


def test_a_server_below_the_name_of_a_page_is_found_as_it_is() -> None:
    outer, inner = login("https://host"), login("https://host/agents/interlock")
    logins = Logins().add(outer).add(inner)
    assert logins.find("https://host/agents/interlock") == inner
    assert logins.find("https://host/inbox?id=1") == outer


def test_a_key_of_the_environment_goes_to_the_address_as_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_KEY", "ilk_1_secret")
    url = "https://host/agents/interlock"
    chosen = choose_login(ReviewOptions(url=url))
    assert chosen is not None
    assert chosen.url == url


def test_every_page_of_the_server_is_known() -> None:
    assert {path.split("/")[1] for path in PAGE_PATHS} - {""} == PAGES
