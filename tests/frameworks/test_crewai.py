"""CrewAI, what is special to it: it runs a tool that fails again by itself, and its own hooks fail open."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.frameworks.framework_program import PROGRAMS, EffectServer, Framework, read_json, start_program
from tests.journeys.shell import Shell


@pytest.fixture
def scenes(shell: Shell, effects: EffectServer) -> tuple[dict[str, Any], Framework]:
    framework = Framework("crewai", shell, effects, inline=True)
    job = {"url": shell.url, "effects": effects.url, "run": "run-1", "story": "", "folder": str(shell.folder)}
    program = start_program("crewai", PROGRAMS / "crewai_scenarios.py", json.dumps(job), folder=shell.folder)
    return read_json(program), framework


# R54, R13, R46: one process for all of them, since its import takes longest
def test_a_crew_at_the_gate(scenes: tuple[dict[str, Any], Framework]) -> None:
    told, framework = scenes
    sent = [args["to"].partition("@")[0] for args in framework.effects.calls_to("send_mail")]

    # A tool that fails. Without a gate one wish of the model has several effects; with one it has one, and is recorded.
    assert told["a_tool_that_fails"] == {"bare": 1, "gated": 1}
    assert sent.count("fail") == 6, "CrewAI has changed: the page says how often it runs it again"
    assert sent.count("once") == 1
    failed = [item for item in framework.list_approvals("failed") if item["tool"] == "send_mail"]
    assert len(failed) == 1

    # A hook of CrewAI that cannot ask lets the tool run.
    assert sent.count("own") == 1, "CrewAI has changed: the page says that its hooks fail open"

    # A refusal is told to the model, and is not the answer of the task by itself.
    assert "Not to Eve" in told["a_no_as_the_answer"]
    assert sent.count("eve") == 0

    # What changes something comes to the gate each time, though CrewAI keeps results.
    assert sent.count("twice") == 2

    # Delegation: the call has the path of the agent that made it.
    assert sent.count("bob") == 1
    paths = {tuple(item["agent_path"]) for item in framework.list_approvals("succeeded")}
    assert ("crew", "writer") in paths
    assert ("crew", "head") not in paths

    # An async tool in an async crew.
    assert sent.count("async") == 1
    assert "sent to async@example.com" in told["in_async"]

    # A secret reaches the tool, and nobody sees it.
    assert {"to": "safe@example.com", "text": "tok-123"} in framework.effects.calls_to("send_mail")
    (kept,) = [item for item in framework.list_approvals("succeeded") if item["agent"] == "keeper"]
    shown = framework.shell("approvals", "show", kept["id"], "--json")
    assert "safe@example.com" in shown.out
    assert "tok-123" not in shown.out

    # Without its gate it does not run.
    assert "without its gate" in told["from_a_checkpoint"]
    assert sent.count("ghost") == 0
    assert told["by_mistake"] == ["There is no tool send_mial among these.", "send_mail has a gate already."]
