"""Policy versions: their author, and that an older file does not come back by itself."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices, build_services
from interlock.app.freezes import Freezes
from interlock.cli.commands.doctor import run_checks
from interlock.cli.commands.hook import LocalBackend
from interlock.cli.context import CommandOptions
from interlock.config.models import InlinePolicy, PolicyFile, Settings
from interlock.core.decision import Reviewer
from interlock.core.outcome import Outcome, Proceed, Refused, Waiting
from interlock.policy.explain import explain
from interlock.policy.file import ConfiguredPolicy
from interlock.sdk.interlock import Interlock
from interlock.server.serve import make_server_state
from interlock.server.state import ServerState
from tests.databases import Database
from tests.support import WRITE, Clock, call, open_services

ALLOW = "version: 1\nrules: [{name: free, tools: ['*'], then: allow}]\n"
DENY = "version: 1\nrules: [{name: closed, tools: ['*'], then: deny, reason: Closed.}]\n"
ASK = "version: 1\nrules: [{name: two people, tools: ['*'], then: ask, quorum: 2}]\n"


async def start_server(services: AppServices, text: str, **more: Any) -> ServerState:
    """A server's start, with this policy in its configuration file."""
    return await make_server_state(Settings(policy=InlinePolicy(text), **more), services)


async def judge_call(server_state: ServerState, number: int) -> Outcome:
    return await (await server_state.workspaces.services("default")).gate.check(call(number), WRITE)


async def policy_texts(services: AppServices) -> list[tuple[str, str]]:
    """Of every version, the oldest first."""
    return [(each.body, each.source) for each in reversed(await services.store.policies("default"))]


async def test_a_files_text_is_put_in_force_once_and_says_that_it_is_a_files(services: AppServices) -> None:  # R63
    first = await services.store.put_policy_file("default", "1" * 64, ALLOW, "configuration")
    person = await services.store.put_policy("default", "2" * 64, DENY, "ada")
    again = await services.store.put_policy_file("default", "1" * 64, ALLOW, "configuration")
    assert (first.version, first.source) == (1, "file")
    assert (person.version, person.source) == (2, "person")
    assert again == person == await services.store.policy("default")
    assert await services.store.has_policy("default", "1" * 64)
    assert not await services.store.has_policy("default", "3" * 64)
    assert not await services.store.has_policy("other", "1" * 64)


async def test_a_file_that_is_always_applied_is_put_in_force_again(services: AppServices) -> None:
    await services.store.put_policy_file("default", "1" * 64, ALLOW, "configuration")
    await services.store.put_policy("default", "2" * 64, DENY, "ada")
    again = await services.store.put_policy_file("default", "1" * 64, ALLOW, "configuration", reapply=True)
    assert (again.version, again.source) == (3, "file")


async def test_of_many_starts_with_a_new_text_one_puts_it_in_force(services: AppServices) -> None:
    puts = [services.store.put_policy_file("default", str(n % 2) * 64, ALLOW, "configuration") for n in range(10)]
    await asyncio.gather(*puts)
    assert len(await policy_texts(services)) == 2


async def test_restarting_the_server_with_the_older_file_changes_nothing_in_force(
    services: AppServices,
) -> None:  # R5, R63
    """Two servers with different files: the older one must not roll the policy back on both."""
    await start_server(services, ALLOW)
    newer = await start_server(services, DENY)
    older = await start_server(services, ALLOW)
    assert await policy_texts(services) == [(ALLOW, "file"), (DENY, "file")]
    assert isinstance(await judge_call(newer, 1), Refused)
    assert isinstance(await judge_call(older, 2), Refused)


async def test_a_server_with_an_older_stricter_file_judges_by_both(services: AppServices) -> None:  # R5
    await start_server(services, DENY)
    newer = await start_server(services, ALLOW)
    older = await start_server(services, DENY)
    assert isinstance(await judge_call(newer, 1), Proceed)
    assert isinstance(await judge_call(older, 2), Refused)
    stale = (await older.workspaces.services("default")).stale_policy
    assert stale is not None
    assert stale.is_combined
    assert "judges by both" in stale.message
    assert (await newer.workspaces.services("default")).stale_policy is None


async def test_two_files_that_ask_are_joined(services: AppServices) -> None:  # R48
    await start_server(services, ASK)
    await start_server(services, "version: 1\ndefaults: {expires_in: 5m}\n")
    older = await start_server(services, ASK)
    outcome = await judge_call(older, 1)
    assert isinstance(outcome, Waiting)
    terms = (await services.store.get("default", outcome.approval_id)).approval.terms
    assert (terms.stages[0].quorum, terms.expires_in) == (2, 300_000)


async def test_a_running_server_judges_by_both_once_another_file_is_in_force(services: AppServices) -> None:  # R5
    running = await start_server(services, DENY)
    await start_server(services, ALLOW)
    await running.workspaces.refresh("default")
    assert isinstance(await judge_call(running, 1), Refused)


async def test_a_policy_that_a_person_put_counts_alone_and_the_file_is_said_to_be_stale(
    services: AppServices,
) -> None:  # R63
    server_state = await start_server(services, DENY)
    await server_state.workspaces.put_policy("default", ALLOW, "ada")
    again = await start_server(services, DENY)
    assert await policy_texts(services) == [(DENY, "file"), (ALLOW, "person")]
    assert isinstance(await judge_call(again, 1), Proceed)
    stale = (await again.workspaces.services("default")).stale_policy
    assert stale is not None
    assert not stale.is_combined
    assert "counts alone" in stale.message


async def test_a_file_that_says_always_wins_at_every_start(services: AppServices, tmp_path: Path) -> None:  # R63
    file = tmp_path / "policy.yaml"
    file.write_text(DENY)
    settings = Settings(policy=PolicyFile(file, "always"))
    server_state = await make_server_state(settings, services)
    await server_state.workspaces.put_policy("default", ALLOW, "ada")
    again = await make_server_state(settings, services)
    assert isinstance(await judge_call(again, 1), Refused)
    assert [source for _, source in await policy_texts(services)] == ["file", "person", "file"]


async def test_an_explanation_tells_of_both_policies(services: AppServices) -> None:
    await start_server(services, DENY)
    await start_server(services, ALLOW)
    loaded = (await (await start_server(services, DENY)).workspaces.services("default")).loaded_policy
    explained = explain(loaded.policy, call(1), WRITE, loaded.rule_lines)
    assert explained.verdict.kind == "deny"
    assert 'by the rule "free": allowed' in explained.conclusion
    assert 'by the rule "closed": denied' in explained.conclusion


async def test_the_doctor_says_that_a_file_is_stale_or_not_in_force_yet(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, configuration = tmp_path / "policy.yaml", tmp_path / "interlock.yaml"
    configuration.write_text("policy: policy.yaml\n")
    options = CommandOptions(database=database.url, config=configuration)
    services = build_services(database.url)
    await services.store.open()
    file.write_text(ALLOW)
    await make_server_state(Settings(policy=file), services)
    await run_checks(options)
    assert "policy put" not in capsys.readouterr().out
    file.write_text(DENY)
    await run_checks(options)
    assert "The server puts it in force at its next start." in capsys.readouterr().out
    await make_server_state(Settings(policy=file), services)
    await services.store.close()
    file.write_text(ALLOW)
    await run_checks(options)
    assert f"To put it in force again: interlock policy put {file}" in capsys.readouterr().out


async def test_a_hook_with_a_stale_file_judges_by_both(database: Database, people_services: AppServices) -> None:
    for text in (DENY, ALLOW):
        await start_server(people_services, text)
    for own, expected in ((None, Proceed), (ConfiguredPolicy(DENY, "policy.yaml"), Refused)):
        door = LocalBackend(database.url, "default", "hook", 1_000, own)
        await door.open()
        assert isinstance(await door.check(call(expected.__name__), WRITE), expected)
        await door.close()


async def test_the_start_logs_that_its_file_is_stale_and_what_would_put_it_back(
    services: AppServices, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(ALLOW)
    await make_server_state(Settings(policy=file), services)
    assert "policy_stale" not in capsys.readouterr().err
    await start_server(services, DENY)
    assert "policy_stale" not in capsys.readouterr().err, "a new text is in force, not stale"
    await make_server_state(Settings(policy=file), services)
    line = capsys.readouterr().err
    assert "policy_stale" in line
    assert f"interlock policy put {file}" in line


async def test_a_program_with_an_older_policy_does_not_put_it_back(
    database: Database, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:  # R5, R63
    async with open_services(database, clock) as services:
        for text in (DENY, ALLOW):
            async with Interlock(database.url, agent="a", policy=text):
                pass
        with caplog.at_level(logging.WARNING, "interlock"):
            async with Interlock(database.url, agent="a", policy=DENY) as older:
                assert isinstance(await older.check(call(1), WRITE), Refused)
        assert await policy_texts(services) == [(DENY, "file"), (ALLOW, "file")]
        assert "judges by both" in caplog.text
        await services.put_policy("default", ASK, "ada", {})
        async with Interlock(database.url, agent="a", policy=ALLOW) as older:
            assert isinstance(await older.check(call(2), WRITE), Waiting)
        assert (await services.store.policy("default")).source == "person"  # type: ignore[union-attr]


async def test_a_program_whose_policy_always_applies_puts_it_back(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(DENY)
    always = {"file": str(file), "apply": "always"}
    for policy in (always, ALLOW):
        async with Interlock(database.url, agent="a", policy=policy):
            pass
    async with Interlock(database.url, agent="a", policy=always) as lock:
        assert isinstance(await lock.check(call(1), WRITE), Refused)


async def test_a_switch_of_a_program_counts_for_both_of_its_policies(database: Database) -> None:
    loose = "version: 1\ndefaults: {unknown_tools: ask}\n"
    for text in ("version: 1\n", loose):
        async with Interlock(database.url, agent="a", policy=text):
            pass
    async with Interlock(database.url, agent="a", policy="version: 1\n", tool_approvals={WRITE.name: False}) as lock:
        assert isinstance(await lock.check(call(1, agent="a"), WRITE), Proceed)
        lock.agent("a", {WRITE.name: True})
        assert isinstance(await lock.check(call(2, agent="a"), WRITE), Waiting)


async def test_a_policy_and_a_freeze_count_while_programs_keep_the_shared_threads_busy(services: AppServices) -> None:
    """An agent fills the shared pool with long arguments; nothing that stops it may wait for that pool."""
    state = await start_server(services, ALLOW)
    assert isinstance(await judge_call(state, 1), Proceed)
    done, loop = threading.Event(), asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    slow = loop.run_in_executor(None, done.wait, 60)
    try:
        async with asyncio.timeout(20):
            await state.workspaces.put_policy("default", DENY, "ada")
            assert isinstance(await judge_call(state, 2), Refused)
            await state.workspaces.put_policy("default", ALLOW, "ada")
            ada = Reviewer("ada", "admin", via="test")
            await Freezes(services.store.freezes, services.clock).freeze("default", "workspace", "", "Stop.", ada)
            await state.workspaces.refresh("default")
            assert isinstance(await judge_call(state, 3), Refused)
        assert not slow.done()
    finally:
        done.set()
        await slow
