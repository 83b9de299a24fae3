"""Every example runs as it stands, alone, with a person at the command line. A new one is covered by itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.framework_program import find_python
from tests.interlock_server import run_server
from tests.journeys.shell import TIMEOUT, Shell

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))
COMPANY = REPOSITORY / "examples" / "mycompany"
DOCS = REPOSITORY / "docs"
PEOPLE = ("carol", "dave")
SHORT = ("01_quickstart", "04_ask_a_person")


@pytest.mark.smoke
def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.timeout(10 * TIMEOUT)  # importing a framework takes long on a loaded machine
@pytest.mark.parametrize(
    "example",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.smoke] if path.stem in SHORT else []) for path in EXAMPLES],
)
def test_the_example_runs_with_a_person_at_the_command_line(example: Path, shell: Shell) -> None:  # R1, R37
    for name in PEOPLE:
        assert shell("users", "add", name, "--team", "finance").code == 0
    with example_backend(example, shell) as (url, more):
        command = (str(interpreter(example)), str(example), url)
        program = shell.program(*command, more=more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        answered = answer_all(shell, program)
        program.kill()
        printed, _ = program.communicate()
    assert program.returncode == 0, printed
    assert answered > 0, "it waited for nobody"
    assert printed
    statuses = {item["status"] for item in shell("approvals", "list", "--status", "all", "--json").json["items"]}
    assert statuses <= {"succeeded", "responded"}, printed
    assert shell("audit", "verify").out.startswith("valid: ")


@pytest.mark.smoke
def test_the_suite_of_the_example_company_passes(tmp_path: Path) -> None:  # R25, R36
    """Its channel by the contract, and its agent by its own tests, as its developers run them: with pytest alone."""
    company = shutil.copytree(COMPANY, tmp_path / COMPANY.name)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "interlock.testing", "-p", "no:cacheprovider", "-W", "error", company],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d\d passed", done.stdout)


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["channels/your-own.md", "testing.md"])
def test_the_programs_of_a_page_are_those_that_are_run(name: str) -> None:
    """Line for line, regardless of indentation; a line of three dots leaves the rest out."""
    there = [code_lines(path.read_text()) for path in COMPANY.glob("*.py")]
    programs = re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text(), re.MULTILINE | re.DOTALL)
    own = [program for program in programs if "TestInterlock(" not in program]  # one that needs no pytest
    missing = [program for program in own if not any(code_lines(program) in text for text in there)]
    assert own
    assert missing == []


def code_lines(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line and line != "...")


def interpreter(example: Path) -> Path:
    """Our own, or that of the framework's environment that the example needs."""
    needs = re.search(r"^# [Nn]eeds:? (\w+)$", example.read_text(), re.MULTILINE)
    return find_python(needs[1]) if needs else Path(sys.executable)


@contextmanager
def example_backend(example: Path, shell: Shell) -> Iterator[tuple[str, dict[str, str]]]:
    """The database; for an example that begins with a server one over it, and a key."""
    if "\ninterlock serve " not in example.read_text():
        yield shell.url, {}
        return
    key = shell("keys", "create", "--name", "mailer", "--role", "agent", "--agent", "mailer").out.split()[-1]
    with run_server(shell.url, shell.folder) as server:
        humanlayer = {"HUMANLAYER_API_BASE": f"{server.url}/humanlayer/v1", "HUMANLAYER_API_KEY": key}
        yield server.url, {"INTERLOCK_KEY": key, **humanlayer}


def answer_all(shell: Shell, program: subprocess.Popen[str]) -> int:
    """Answers whatever waits, until the program has ended; gives how many there were."""
    answered, end = 0, time.monotonic() + 6 * TIMEOUT
    while program.poll() is None and time.monotonic() < end:
        for item in shell("approvals", "list", "--json").json["items"]:
            answer(shell, item)
            answered += 1
        time.sleep(0.2)
    return answered


def answer(shell: Shell, item: dict[str, Any]) -> None:
    shown = shell("approvals", "show", item["id"], "--json").json
    if shown["decisions"] == ["respond"]:
        said = json.dumps(matching_answer(shown["args"]))
        done = [shell("approvals", "respond", item["id"], "--answer", said)]
    else:
        people = PEOPLE[: item["quorum"]["need"]]
        alarms = {each["kind"] for each in shown["findings"] if each["level"] == "alarm"}
        assert alarms <= {"agent_secret"}, "only what an agent elsewhere hides has to be acknowledged in an example"
        seen = ["--acknowledge-all"] if alarms else []
        done = [shell("approvals", "approve", item["id"], "--user", name, *seen) for name in people]
    assert [each.err for each in done if each.code] == []


def matching_answer(question: dict[str, Any]) -> object:
    """An answer that the question takes."""
    if "choices" in question:
        return question["choices"][0]
    schema = question.get("schema", {"type": "string"})
    match schema["type"]:
        case "object":
            return {name: matching_answer({"schema": inner}) for name, inner in schema["properties"].items()}
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case _:
            return "as you like"
