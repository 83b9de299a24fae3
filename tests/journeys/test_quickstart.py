"""What README and quickstart promise, done as written: real programs, the real command, kill -9."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.shell import TIMEOUT, Shell, wait_until

TOP = Path(__file__).resolve().parents[2]
README, QUICKSTART = TOP / "README.md", TOP / "docs" / "quickstart.md"
IDEMPOTENT = TOP / "examples" / "05_idempotent.py"


class TwoTerminals:
    """A folder with two terminals: programs run in one, commands in the other."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.shell.extra["INTERLOCK_DATABASE_URL"] = "sqlite:///interlock.db"  # where the programs of the docs keep it

    def save(self, name: str, text: str) -> str:
        (self.shell.folder / name).write_text(text)
        return name

    def start(self, program: str, *words: str) -> subprocess.Popen[bytes]:
        """What it prints goes to out.txt, lives one after the other."""
        with (self.shell.folder / "out.txt").open("ab") as out:
            return self.shell.program(sys.executable, "-u", program, *words, stdout=out, stderr=out)

    def output(self) -> str:
        return (self.shell.folder / "out.txt").read_text()

    def list_ids(self, status: str) -> list[dict[str, Any]]:
        """None before the program has made the database."""
        done = self.shell("approvals", "list", "--status", status, "--json")
        return done.json["items"] if done.code == 0 else []

    def wait_for_one(self, status: str) -> str:
        found: list[dict[str, Any]] = []

        def some() -> bool:
            found[:] = self.list_ids(status)
            return bool(found)

        wait_until(some, f"something is {status}", pause=0.1)
        (item,) = found
        return str(item["id"])

    def interlock(self, *words: str) -> str:
        done = self.shell(*words)
        assert done.code == 0, done.err
        return done.out

    def history(self) -> list[str]:
        with closing(sqlite3.connect(self.shell.folder / "interlock.db")) as connection:
            return [kind for (kind,) in connection.execute("select kind from events order by seq")]


@pytest.fixture
def terminals(shell: Shell) -> TwoTerminals:
    return TwoTerminals(shell)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def program(page: Path, word: str) -> str:
    (found,) = [block for block in blocks(page, "python") if word in block]
    return found


def commands(page: Path) -> list[list[str]]:
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    return [line.split()[1:] for line in lines if line.startswith("interlock ")]


def wait_ended(process: subprocess.Popen[bytes]) -> int:
    return process.wait(TIMEOUT)


@pytest.mark.smoke
def test_the_readme_runs_as_written(terminals: TwoTerminals) -> None:
    life = terminals.start(terminals.save("quickstart.py", program(README, "create_issue")))
    approval_id = terminals.wait_for_one("pending")
    said = []
    for words in commands(README):
        done = terminals.shell.process(*(approval_id if word == "ID" else word for word in words))
        assert done.code == 0, done.err
        said.append(done.out)
        if words[1] == "approve":
            assert wait_ended(life) == 0, terminals.output()
    assert [words[1] for words in commands(README)] == ["list", "approve", "verify"]
    assert "Create issue 'Fix login'" in said[0]
    assert said[1].startswith("Approved: create_issue may start until ")
    assert said[2].startswith("valid: 6 entries, head ")
    assert terminals.output() == "creating 'Fix login'\n{'id': 1, 'title': 'Fix login'}\n"


@pytest.mark.smoke
def test_the_readme_and_the_quickstart_begin_with_the_same_program() -> None:
    assert program(README, "create_issue") == program(QUICKSTART, "create_issue")


@pytest.mark.smoke
def test_killed_while_it_waits_it_asks_nothing_new(terminals: TwoTerminals) -> None:  # R23, R24, R46
    quickstart = terminals.save("quickstart.py", program(README, "create_issue"))
    first = terminals.start(quickstart)
    approval_id = terminals.wait_for_one("pending")
    first.kill()
    first.wait()
    second = terminals.start(quickstart)
    wait_until(lambda: "run_resumed" in terminals.history(), "the second life has taken up the run of the first")
    terminals.interlock("approvals", "approve", approval_id)
    assert wait_ended(second) == 0, terminals.output()
    assert [item["id"] for item in terminals.list_ids("all")] == [approval_id]
    assert terminals.output().count("creating 'Fix login'") == 1
    assert terminals.interlock("audit", "verify").startswith("valid: ")


def test_killed_inside_the_tool_it_is_unknown_until_a_person_has_looked(terminals: TwoTerminals) -> None:  # R46
    pay = terminals.save("pay.py", program(QUICKSTART, "a slow bank"))
    bank = terminals.shell.folder / "bank.txt"
    first = terminals.start(pay)
    terminals.interlock("approvals", "approve", terminals.wait_for_one("pending"))
    wait_until(bank.exists, "the bank has heard of it")
    first.kill()
    first.wait()

    lost = terminals.wait_for_one("unknown")
    second = terminals.start(pay)
    assert wait_ended(second) == 1
    assert "CallUnknown: pay was started, but its outcome is unknown." in terminals.output()
    assert terminals.output().endswith(f"interlock approvals resolve {lost} --succeeded, or --failed\n")
    assert [item["id"] for item in terminals.list_ids("all")] == [lost]

    said = terminals.interlock("approvals", "resolve", lost, "--succeeded", "--result", '"paid"', "--note", "I looked.")
    assert said == "Recorded: pay succeeded.\n"
    third = terminals.start(pay)
    assert wait_ended(third) == 0
    assert terminals.output().endswith("\npaid\n")
    assert bank.read_text() == "20 to bob\n"
    assert terminals.history().count("started") == 1
    assert terminals.interlock("audit", "verify").startswith("valid: ")


def test_an_idempotent_tool_is_retried_under_the_same_key(terminals: TwoTerminals) -> None:  # R46
    first = terminals.start(str(IDEMPOTENT), "sqlite:///interlock.db", "crash")
    terminals.interlock("approvals", "approve", terminals.wait_for_one("pending"))
    assert wait_ended(first) == -signal.SIGKILL

    assert terminals.list_ids("unknown") == []
    second = terminals.start(str(IDEMPOTENT), "sqlite:///interlock.db")
    assert wait_ended(second) == 0
    first_try, second_try, result = terminals.output().splitlines()
    key = first_try.removeprefix("attempt 1 under the key ")
    assert (second_try, result) == (f"attempt 2 under the key {key}", "sent")
    assert [path.name for path in terminals.shell.folder.glob("sent-*")] == [f"sent-{key}.txt"]
    assert [terminals.history().count(kind) for kind in ("proposed", "approved", "started", "succeeded")] == [
        1,
        1,
        2,
        1,
    ]
    assert terminals.interlock("audit", "verify").startswith("valid: ")
