"""The protocol's own conformance suite against a server with its fixtures: alone, and behind the gate."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frameworks.auto_approver import auto_approve
from tests.frameworks.framework_program import ROOT
from tests.frameworks.mcp_conformance_suite import (
    REVISIONS,
    Checks,
    documented_differences,
    run_scenario,
    run_server,
    run_suite,
)
from tests.journeys.shell import Shell
from tests.node_packages import MCP

pytestmark = [
    pytest.mark.skipif(not MCP.is_installed(), reason=MCP.missing),
    pytest.mark.timeout(600),
]

DOCUMENT = ROOT / "docs" / "frameworks" / "mcp-conformance.md"
LEAST = 0.98
# How many checks the fixtures pass by themselves.
ALONE = {"2025-11-25": 84, "2026-07-28": 163}
# What mcp 2.3 fails by itself: it compares a header before it is trimmed.
WHITESPACE = "http-header-validation:sep-2243-server-accepts-whitespace-header-value"
FREE = "version: 1\nrules: [{name: the fixtures are free, tools: ['test_*', 'json_*'], then: allow}]\n"
ASKING = "version: 1\nrules: [{name: everything asks, then: ask}]\n"
# Of tools that answer, fail, tell of their progress, and ask their client for something, while people are asked too.
JOINED = (
    "server-initialize",
    "completion-complete",
    "tools-call-sampling",
    "resources-read-text",
    "resources-subscribe",
    "prompts-get-with-args",
)
ASKED = {
    "2025-11-25": ("tools-call-simple-text", "tools-call-error", "tools-call-sampling", "tools-call-elicitation"),
    "2026-07-28": ("tools-call-mixed-content", "tools-call-with-progress", "input-required-result-multi-round"),
}


def is_offered(check: str) -> bool:
    """The extension for tasks is not: mcp 2.3 has none."""
    return not check.startswith("tasks-") and check != WHITESPACE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("server") / "log"
    with run_server([sys.executable, "-m", "tests.fakes.mcp_conformance_server"], log, cwd=ROOT) as address:
        yield address


@pytest.fixture(scope="module")
def alone(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Checks]:
    folder = tmp_path_factory.mktemp("alone")
    return {revision: run_suite(server, revision, folder / revision, is_offered) for revision in REVISIONS}


@pytest.fixture(scope="module")
def gated(server: str, alone: dict[str, Checks], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Checks]:
    folder = tmp_path_factory.mktemp("gated")
    known = {difference.check for difference in documented_differences(DOCUMENT)}
    with run_server(*gate(folder, server, FREE)) as address:
        return {
            revision: run_suite(address, revision, folder / revision, (alone[revision].passed - known).__contains__)
            for revision in REVISIONS
        }


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_server_under_test_passes_every_check_of_what_it_offers(alone: dict[str, Checks], revision: str) -> None:
    failed = [check for check, status in alone[revision].statuses.items() if status == "FAILURE" and is_offered(check)]
    assert not failed
    assert len(alone[revision].passed) == ALONE[revision]


@pytest.mark.parametrize("revision", REVISIONS)
def test_behind_the_gate_what_passed_passes_or_the_document_says_why_not(  # R54
    alone: dict[str, Checks], gated: dict[str, Checks], revision: str
) -> None:
    kept = alone[revision].passed & gated[revision].passed
    assert alone[revision].differences(gated[revision]) == {
        difference for difference in documented_differences(DOCUMENT) if difference.revision == revision
    }
    assert len(kept) >= LEAST * len(alone[revision].passed)
    assert f"| {revision} | {len(alone[revision].passed)} | {len(kept)} |" in DOCUMENT.read_text()


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_call_that_asks_is_answered_as_it_would_be_once_a_person_approved_it(  # R54
    server: str, tmp_path: Path, revision: str
) -> None:
    with (
        run_server(*gate(tmp_path, server, ASKING)) as address,
        auto_approve(f"sqlite:///{tmp_path / 'gate.db'}") as seen,
    ):
        for name in ASKED[revision]:
            statuses = run_scenario(address, revision, name, tmp_path / name)
            assert set(statuses.values()) == {"SUCCESS"}, statuses
    assert len(seen) >= len(ASKED[revision])


def test_a_second_server_behind_the_same_gate_changes_nothing(  # R54
    server: str, alone: dict[str, Checks], tmp_path: Path
) -> None:
    """Of 2025-11-25 some scenarios are run, since every one of their sessions starts the second server anew."""
    known = {difference.check for difference in documented_differences(DOCUMENT)}
    wanted = alone["2026-07-28"].passed - known
    with run_server(*gate(tmp_path, server, FREE, time=[sys.executable, "-m", "mcp_server_time"])) as address:
        joined = run_suite(address, "2026-07-28", tmp_path / "all", wanted.__contains__)
        older = [run_scenario(address, "2025-11-25", name, tmp_path / name) for name in JOINED]
    assert wanted <= joined.passed
    assert {status for statuses in older for status in statuses.values()} == {"SUCCESS"}


def gate(folder: Path, server: str, policy: str, **more: list[str]) -> tuple[list[str], Path]:
    servers = {"fixtures": {"url": server}, **{name: {"command": c, "args": args} for name, (c, *args) in more.items()}}
    shell = Shell(folder)
    (folder / "policy.yaml").write_text(policy)
    (folder / "interlock.yaml").write_text(
        f"storage: {{url: 'sqlite:///{folder / 'gate.db'}'}}\n"
        f"policy: {folder / 'policy.yaml'}\n"
        f"mcp_servers: {json.dumps(servers)}\n"
    )
    config = ("--config", str(folder / "interlock.yaml"))
    return shell.command("mcp-gate", *config, "--http", "--port", "0"), folder / "gate.log"
