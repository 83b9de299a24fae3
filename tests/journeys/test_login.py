"""`interlock login`, and `interlock approvals` over a real server: listed, decided, undone, watched, logged out."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices, wall_clock
from tests.fault_proxy import foreign_server
from tests.interlock_server import RunningServer, run_server
from tests.journeys.seeds import propose_by_urgency, propose_mail
from tests.journeys.shell import Shell, wait_until
from tests.support import Clock, open_services, propose_pending

PASSWORD = "correct horse battery"
UNDO = "version: 1\ndefaults: {undo_window: 1h}\n"


@pytest.fixture
async def services(shell: Shell) -> AsyncIterator[AppServices]:
    async with open_services(shell.path, Clock(wall_clock()), UNDO) as services:
        await services.accounts.add_user("default", "bob", "reviewer", "test")
        await services.accounts.set_password("default", "bob", PASSWORD, "test")
        yield services


@pytest.fixture
def server(shell: Shell, services: AppServices, tmp_path: Path) -> Iterator[RunningServer]:
    """A server on the database of the shell, which then names no database any more."""
    place = tmp_path / "server"
    place.mkdir()
    with run_server(shell.url, place) as server:
        shell.extra = {"INTERLOCK_DATABASE_URL": "", "XDG_CONFIG_HOME": str(tmp_path / "own")}
        yield server


def login(shell: Shell, server: RunningServer, *words: str) -> Any:
    done = shell("login", server.url, "--name", "bob", "--json", *words, stdin=f"{PASSWORD}\n")
    assert done.code == 0, done.err
    return done.json


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# R68
async def test_a_person_logs_in_decides_and_logs_out(
    shell: Shell, services: AppServices, server: RunningServer
) -> None:
    first, second = await propose_pending(services, 1), await propose_pending(services, 2, args={"path": "/tmp/b"})
    made = login(shell, server)
    file = Path(made["file"])
    assert (made["user"], made["role"], made["workspace"]) == ("bob", "reviewer", "default")
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    (key,) = await services.accounts.keys("default")
    assert (key.id, key.person, key.name.startswith("interlock login on ")) == (made["key_id"], "bob", True)
    assert key.expires_at is not None

    (shell.folder / "interlock.yaml").write_text("storage: {url: 'sqlite:////evil.db'}\n")  # of a hostile folder
    listed = shell("approvals", "list")
    assert (listed.code, first[-8:] in listed.out, second[-8:] in listed.out) == (0, True, True)
    assert listed.err == f"Using {server.url} as bob, in the workspace default.\n"
    assert "Delete /tmp/x" in shell("approvals", "show", first[-8:]).out
    searched = shell("approvals", "list", "--arg", "path=/tmp/b", "--status", "pending", "--json").json
    assert [item["id"] for item in searched["items"]] == [second]

    approved = shell("approvals", "approve", first[-8:], "--comment", "fine")
    assert (approved.code, approved.out.startswith("Approved: delete_file may start until ")) == (0, True), approved.err
    stored = await services.store.get("default", first)
    (vote,) = stored.approval.votes
    assert (vote.by, vote.via, vote.args_sha256) == ("bob", "key", stored.approval.args_sha256)
    again = shell("approvals", "reject", first, "--json")
    assert (again.code, again.json["error"]) == (1, "already_decided")

    assert shell("approvals", "reject", second, "--reason", "not today").out.startswith("Rejected: delete_file")
    assert shell("approvals", "undo", second).out == "Undone: delete_file is pending again.\n"
    assert "evil" not in shell("approvals", "show", second, "--json").out

    out = shell("logout", server.url)
    assert (out.code, out.out) == (0, f"Logged out of {server.url}. The key {made['key_id']} was revoked.\n")
    assert shell("logout").code == 1
    (key,) = await services.accounts.keys("default")
    assert key.revoked_at is not None


async def test_a_server_lists_pending_approvals_in_the_order_of_the_inbox(
    shell: Shell, services: AppServices, server: RunningServer
) -> None:
    expected = await propose_by_urgency(shell)
    login(shell, server)
    assert [item["id"] for item in shell("approvals", "list", "--json").json["items"]] == expected


async def test_watch_follows_the_events_of_a_server(shell: Shell, services: AppServices, server: RunningServer) -> None:
    approval_id = await propose_pending(services)
    login(shell, server)
    watching = shell.start("approvals", "watch", "--json")
    assert watching.stdout is not None
    waiting = json.loads(watching.stdout.readline())
    assert (waiting["kind"], waiting["approval_id"]) == ("waiting", approval_id)
    shell("approvals", "approve", approval_id)
    kinds: list[str] = []
    while "approved" not in kinds:
        event = json.loads(watching.stdout.readline())
        kinds.append(event["kind"])
    assert (event["actor"], event["approval"]["status"]) == ("bob", "approved")


async def test_a_watch_goes_on_when_its_server_was_restarted(
    shell: Shell, services: AppServices, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    shell.extra = {"INTERLOCK_DATABASE_URL": "", "XDG_CONFIG_HOME": str(tmp_path / "own")}
    await propose_pending(services)
    with run_server(shell.url, tmp_path, port=port) as server:
        login(shell, server)
        watching = shell.start("approvals", "watch", "--json")
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["kind"] == "waiting"
        assert server.stop() == 0
    approval_id = await propose_pending(services, 2)  # while there is no server
    with run_server(shell.url, tmp_path, port=port):
        kinds = {}
        while approval_id not in kinds:
            event = json.loads(watching.stdout.readline())
            kinds[event["approval_id"]] = event["kind"]
    assert kinds[approval_id] == "proposed"


async def test_the_live_view_decides_over_a_server(shell: Shell, services: AppServices, server: RunningServer) -> None:
    approval_id = await propose_mail(shell)
    login(shell, server)
    with shell.terminal("approvals", "watch") as terminal:
        terminal.assert_shows("for a decision", "Mail bob", server.url)
        terminal.press("a")
        terminal.assert_shows("Approve send_mail? y/N")
        terminal.press("y")
        terminal.assert_shows("0 calls wait", "approved by bob")
        terminal.press("q")
        assert terminal.exit_code() == 0
    assert (await services.store.get("default", approval_id)).approval.status == "approved"


async def test_a_login_that_ended_says_how_to_log_in_again(
    shell: Shell, services: AppServices, server: RunningServer
) -> None:
    made = login(shell, server)
    await services.accounts.revoke_key("default", made["key_id"], "ada")
    wait_until(lambda: shell("approvals", "list").code == 1, "the revoked key is refused")
    revoked = shell("approvals", "list")
    assert "its key was revoked" in revoked.err
    assert f"Log in again: interlock login {server.url}" in revoked.err
    login(shell, server, "--expires", "1s")
    wait_until(lambda: shell("approvals", "list").code == 1, "the key expires")
    assert f"Your login at {server.url} expired at " in shell("approvals", "list").err


async def test_what_is_named_comes_before_the_login(shell: Shell, services: AppServices, server: RunningServer) -> None:
    login(shell, server)
    here = shell("approvals", "list", "--database", shell.url)
    assert (here.code, here.err) == (0, f"Using the database {shell.url}, which was named, and not {server.url}.\n")
    both = shell("approvals", "list", "--database", shell.url, "--url", server.url)
    assert (both.code, "not both" in both.err) == (2, True)
    elsewhere = shell("approvals", "list", "--url", "http://127.0.0.1:9")
    assert (elsewhere.code, "You are not logged in to http://127.0.0.1:9." in elsewhere.err) == (2, True)
    approval_id = await propose_pending(services)
    other = shell("approvals", "approve", approval_id, "--user", "ada")
    assert (other.code, "and cannot act as ada there" in other.err) == (1, True)


async def test_users_link_has_the_address_of_the_running_server(
    shell: Shell, services: AppServices, server: RunningServer
) -> None:
    made = shell("users", "link", "bob", "--database", shell.url)
    assert made.code == 0
    assert made.out.splitlines()[-1].startswith(f"{server.url}/welcome#")
    assert made.err == ""


async def test_the_address_of_a_page_stands_for_its_server(
    shell: Shell, services: AppServices, server: RunningServer
) -> None:
    approval_id = await propose_pending(services)
    done = shell("login", f"{server.url}/inbox?id={approval_id}", "--name", "bob", "--json", stdin=f"{PASSWORD}\n")
    assert (done.code, done.json["url"]) == (0, server.url)
    assert approval_id[-8:] in shell("approvals", "list", "--url", f"{server.url}/a/{approval_id}").out
    assert shell("logout", f"{server.url}/settings/me").out.startswith(f"Logged out of {server.url}.")
    lost = shell("login", f"{server.url}/elsewhere", "--name", "bob")  # no password is asked for
    there = f"If it is at {server.url}: interlock login {server.url}"
    told = f"Error: There is no Interlock server at {server.url}/elsewhere. {there}\n"
    assert (lost.code, lost.err) == (2, told)


async def test_a_command_for_a_database_says_where_to_run_it(
    shell: Shell, services: AppServices, server: RunningServer
) -> None:
    login(shell, server)
    for words in (
        ("users", "link", "bob"),
        ("users", "add", "ann"),
        ("keys", "create", "--name", "k", "--role", "agent"),
    ):
        done = shell(*words)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert f"For {server.url}, to which you are logged in, use its web app, or run the command" in done.err
    assert not (shell.folder / "interlock.db").exists()
    policy = shell.folder / "policy.yaml"
    policy.write_text("version: 1\n")
    assert shell("policy", "check", str(policy)).code == 0  # needs no database
    assert shell("users", "add", "ann", "--database", "sqlite:///own.db").code == 0


async def test_a_link_or_a_key_logs_in_too(shell: Shell, services: AppServices, server: RunningServer) -> None:
    link = shell("users", "link", "bob", "--database", shell.url).out.splitlines()[-1]
    made = shell("login", server.url, "--with", "link", "--json", stdin=f"{link}\n").json
    assert made["user"] == "bob"
    _, key = await services.accounts.create_key("default", "own", "reviewer", "bob", "bob")
    assert shell("login", server.url, "--with", "key", "--json", stdin=f"{key}\n").json["key_id"] != made["key_id"]
    revoked = {each.id for each in await services.accounts.keys("default") if each.revoked_at is not None}
    assert revoked == {made["key_id"]}  # the login before was replaced
    wrong = shell("login", server.url, "--name", "bob", stdin="wrong password\n")
    assert (wrong.code, "Traceback" in wrong.err) == (1, False)


async def test_a_password_is_asked_for_and_not_shown(
    shell: Shell, services: AppServices, server: RunningServer
) -> None:
    with shell.terminal("login", server.url, "--name", "bob") as terminal:
        terminal.assert_shows("Password of bob")
        terminal.assert_becomes(lambda _: not terminal.is_restored(), "keys not to be echoed")
        terminal.press(f"{PASSWORD}\r")
        terminal.assert_shows(f"Logged in to {server.url} as bob (reviewer), until ")
        assert terminal.exit_code() == 0
        assert PASSWORD not in terminal.screen()


PROXY_PAGE = b"HTTP/1.1 404 No\r\ncontent-type: text/html\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>"
ME = {"name": "bob", "role": "reviewer", "workspace": "default"}
ITEM = {
    "id": 5, "tool": "pay", "agent": "bot", "status": "pending", "sentence": "Pay", "risk": "high", "args_sha256": "",
    "version": 1, "quorum": {"have": 0, "need": 1}, "created_at": "2030-01-01T00:00:00.000Z",
    "expires_at": "2030-01-01T00:00:00.000Z", "release_at": None, "start_by": None, "decision": None,
}  # fmt: skip


def json_response(body: object) -> bytes:
    data = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (len(data), data)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (PROXY_PAGE, "is not an Interlock server (HTTP 404, text/html)"),
        (json_response({"hello": 1}), "was not understood (there is no name in it; its fields: hello)"),
        (json_response(ME), "was not understood (there is no items in it; its fields: name, role, workspace)"),
        (json_response({**ME, "items": [ITEM], "next": None}), "was not understood (TypeError: "),
    ],
    ids=["a page", "other fields", "a missing field", "a wrong field"],
)
def test_an_answer_that_is_not_understood_is_one_line(shell: Shell, answer: bytes, words: str) -> None:
    shell.extra = {"INTERLOCK_DATABASE_URL": "", "INTERLOCK_KEY": f"ilk_12345678_{'x' * 43}"}
    with foreign_server(answer) as url:
        done = shell("approvals", "list", "--url", url)
    *_, error = done.err.splitlines()
    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    assert error.startswith("Error: ")
    assert url in error
    assert words in error
