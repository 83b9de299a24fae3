"""Keys, people and workspaces on the command line, as an admin has them before any server runs."""

from __future__ import annotations

import re

import pytest

from interlock.app.bootstrap import wall_clock
from interlock.core.errors import Unauthenticated
from tests.journeys.shell import CommandResult, Shell
from tests.support import Clock, open_services

pytestmark = pytest.mark.smoke

PASSWORD = "correct horse battery"
KEY = re.compile(r"ilk_[a-z0-9]{8}_[A-Za-z0-9_-]{43}")


def assert_refused(done: CommandResult, code: int, *words: str) -> None:
    assert (done.code, done.out) == (code, ""), done
    assert done.err.startswith("Error: "), done.err
    assert done.err.count("\n") == 1, done.err
    assert [word for word in words if word not in done.err] == [], done.err


async def test_a_key_is_made_listed_used_and_revoked(shell: Shell) -> None:
    made = shell("keys", "create", "--name", "office", "--role", "agent")
    assert (made.code, made.err) == (0, "")
    secret = made.out.splitlines()[-1]
    assert KEY.fullmatch(secret)
    async with open_services(shell.path, Clock(wall_clock())) as services:
        assert (await services.accounts.authenticate_key(secret)).actor == "agent:office"
        await services.accounts.drain()
    (item,) = shell("keys", "list", "--json").json["items"]
    assert (item["id"], item["name"], item["role"], item["user"]) == (secret[:12], "office", "agent", "")
    assert item["used_at"] is not None
    assert item["revoked_at"] is None
    listed = shell("keys", "list").out
    assert secret[:12] in listed
    assert secret[13:] not in listed + shell("keys", "list", "--json").out + shell("audit", "export").out
    assert shell("keys", "revoke", secret[:12]).out.startswith(f"Revoked {secret[:12]} (office).")
    assert "nothing changed" in shell("keys", "revoke", secret[:12]).out
    async with open_services(shell.path, Clock(wall_clock())) as services:
        with pytest.raises(Unauthenticated):
            await services.accounts.authenticate_key(secret)
    assert shell("keys", "list", "--json").json["items"] == []
    assert shell("keys", "list", "--all", "--json").json["items"][0]["revoked_at"] is not None
    assert_refused(shell("keys", "revoke", "ilk_nothing0"), 1, "There is no key ilk_nothing0")
    assert shell("audit", "verify").code == 0


async def test_keys_are_for_somebody_and_removing_says_what_ends(shell: Shell) -> None:
    bound = ("--agent", "office", "--tool", "mail_*", "--requester", "none", "--expires", "30d")
    quotas = ("--per-minute", "1500", "--pending", "0")
    made = shell("keys", "create", "--name", "mailer", "--role", "agent", *bound, *quotas)
    assert "bound to no agent" not in made.out
    assert "interlock keys rotate" in made.out
    rotated = shell("keys", "rotate", made.out.splitlines()[-1], "--overlap", "1h")
    assert f"to replace {made.out.splitlines()[-1][:12]}, which expires in 1h" in rotated.out.replace("\n", " ")
    (new, old) = shell("keys", "list", "--json").json["items"]
    assert (new["rotated_from"], new["agents"], new["requester"]) == (old["id"], ["office"], "none")
    assert (new["per_minute"], new["pending"]) == (1500, 0)
    assert "office; tools mail_*; no requester; 1,500 per minute; any number pending" in shell("keys", "list").out
    loose = shell("keys", "create", "--name", "loose", "--role", "agent")
    assert "It is not bound to an agent: its program may use any agent name" in loose.out.replace("\n", " ")
    (shell.folder / "policy.yaml").write_text(
        "version: 1\nrules:\n  - {name: payroll asks, tools: [pay], agents: [payroll], then: ask}\n"
    )
    warned = shell("policy", "check", "policy.yaml").out.replace("\n", " ")
    assert "1 key of an agent is not bound to an agent or a requester" in warned
    laptop = shell("keys", "create", "--name", "laptop", "--role", "reviewer", "--user", "bob").out.splitlines()[-1]
    told = shell("users", "remove", "bob", "--dry-run").out
    assert told == f"Removing bob revokes:\n  keys: {laptop[:12]} (laptop)\n"
    assert shell("users", "remove", "bob").out == f"Removed bob. Revoked with them:\n  keys: {laptop[:12]} (laptop)\n"
    exported = shell("audit", "export").out
    kinds = ("key_created", "key_rotated", "user_changed", "key_revoked", "user_removed")
    assert [kind for kind in kinds if kind not in exported] == []
    assert shell("audit", "verify").code == 0


async def test_a_reviewers_key_adds_the_reviewer(shell: Shell) -> None:
    made = shell("keys", "create", "--name", "laptop", "--role", "reviewer", "--user", "bob", "--json").json
    assert KEY.fullmatch(made["key"])
    assert (made["user"], made["role"], made["workspace"]) == ("bob", "reviewer", "default")
    assert shell("users", "list", "--json").json["items"] == [
        {"name": "bob", "role": "reviewer", "teams": [], "email": ""}
    ]
    assert_refused(
        shell("keys", "create", "--name", "root", "--role", "admin", "--user", "bob"), 2, "bob is a reviewer"
    )


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["keys", "create", "--name", "x", "--role", "boss"], 2, "--role"),
        (["keys", "create", "--role", "agent"], 2, "--name"),
        (["keys", "create", "--name", "x", "--role", "agent", "--pending", "-1"], 2, "--pending"),
        (["keys", "create", "--name", "x", "--role", "agent", "--requester", "bob"], 2, "interlock users add bob"),
        (["keys", "create", "--name", "a\u202eb", "--role", "agent"], 2, "cannot be a name"),
        (["keys", "create", "--name", "x", "--role", "agent", "--workspace", "acme"], 1, "interlock workspaces add"),
        (["workspaces", "add", "Acme"], 2, "a-z, 0-9 and -"),
        (["users", "add", "bob", "--email", "bob"], 2, "not an e-mail address"),
        (["users", "add", "bob", "--password"], 2, "no password on standard input"),
        (["users", "remove", "nobody"], 1, "There is no user nobody"),
        (["users", "link", "nobody"], 1, "There is no user nobody"),
        (["users", "sign-out", "nobody"], 1, "There is no user nobody"),
    ],
)
def test_wrong_use_is_told_in_one_line(shell: Shell, words: list[str], code: int, told: str) -> None:
    shell("migrate")
    assert_refused(shell(*words), code, told)


async def test_workspaces_are_apart(shell: Shell) -> None:
    assert shell("workspaces", "add", "acme").out == "Added the workspace acme.\n"
    assert "already" in shell("workspaces", "add", "acme").out
    secret = shell("keys", "create", "--name", "shop", "--role", "agent", "--workspace", "acme").out.splitlines()[-1]
    async with open_services(shell.path, Clock(wall_clock())) as services:
        assert (await services.accounts.authenticate_key(secret)).workspace == "acme"
    assert_refused(shell("keys", "revoke", secret[:12]), 1, "in the workspace 'default'")
    assert shell("keys", "revoke", secret[:12], "--workspace", "acme").code == 0
    assert [item["name"] for item in shell("workspaces", "list", "--json").json["items"]] == ["acme"]
    assert "acme" in shell("workspaces", "list").out


async def test_a_person_gets_a_password_a_link_and_an_end(shell: Shell) -> None:
    added = shell("users", "add", "ann", "--email", "ann@example.com", "--password", stdin=PASSWORD + "\n")
    assert (added.code, added.out) == (0, "Added ann: reviewer, teams: none.\n")
    assert "ann@example.com" in shell("users", "list").out
    assert_refused(shell("users", "password", "ann", stdin="short\n"), 2, "12 to 1024 characters")
    made = shell("users", "link", "ann")
    base, _, token = made.out.splitlines()[-1].partition("#")
    assert base == "http://127.0.0.1:8321/welcome"
    assert "No server runs on this database now" in made.err
    assert "--url URL, or server: {public_url: URL}" in made.err
    named = shell("users", "link", "ann", "--url", "https://interlock.example/")
    assert named.out.splitlines()[-1].startswith("https://interlock.example/welcome#")
    assert named.err == ""
    async with open_services(shell.path, Clock(wall_clock())) as services:
        assert (await services.accounts.sign_in("default", "ann", PASSWORD))[0].name == "ann"
        assert (await services.accounts.use_link(token))[0].name == "ann"
    assert shell("users", "sign-out", "ann", "--json").json == {"user": "ann", "sessions": 2, "keys": 0}
    assert shell("users", "password", "ann", stdin="another password\r\n").code == 0
    async with open_services(shell.path, Clock(wall_clock())) as services:
        assert (await services.accounts.sign_in("default", "ann", "another password"))[0].name == "ann"
    assert shell("users", "remove", "ann").code == 0
    assert shell("users", "list", "--json").json["items"] == []
    assert shell("users", "add", "ann").out.startswith("Added ann")
    exported = shell("audit", "export").out
    assert [secret for secret in (PASSWORD, "another password", token) if secret in exported] == []
    assert shell("audit", "verify").code == 0


async def test_a_link_invites_somebody_who_is_not_there_yet(shell: Shell) -> None:
    shell("migrate")
    (shell.folder / "interlock.yaml").write_text("server: {public_url: 'https://interlock.example/'}\n")
    link = shell("users", "link", "carol", "--role", "viewer", "--team", "ops", "--json").json["link"]
    base, _, token = link.partition("#")
    assert base == "https://interlock.example/welcome"
    async with open_services(shell.path, Clock(wall_clock())) as services:
        who, _ = await services.accounts.use_link(token, "", PASSWORD)
        assert (who.name, who.role, who.teams) == ("carol", "viewer", frozenset({"ops"}))


def test_a_password_is_asked_for_at_a_terminal_and_not_shown(shell: Shell) -> None:
    shell("users", "add", "ann")
    with shell.terminal("users", "password", "ann") as terminal:
        terminal.assert_shows("Password: ")  # with the space the terminal has stopped to echo
        terminal.press(f"{PASSWORD}\n")
        terminal.assert_becomes(lambda screen: bool(re.search("(?i)repeat.*: ", screen)), "the second question")
        terminal.press(f"{PASSWORD}\n")
        screen = terminal.assert_shows("ann has a new password")
        assert PASSWORD not in screen
        assert terminal.exit_code() == 0


def test_removing_somebody_is_asked_about_at_a_terminal(shell: Shell) -> None:
    shell("users", "add", "ann")
    with shell.terminal("users", "remove", "ann") as terminal:
        terminal.assert_shows("Remove ann from the workspace 'default'?")
        terminal.press("n\n")
        assert terminal.exit_code() == 1
    assert [item["name"] for item in shell("users", "list", "--json").json["items"]] == ["ann"]
