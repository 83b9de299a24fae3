"""Paused runs on the command line: listed, and resumed by a process that is killed on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from interlock import Interlock, ToolSpec, Waiting
from interlock.app.bootstrap import build_services
from tests.interlock_server import make_keys, run_server
from tests.journeys.shell import TIMEOUT, CommandResult, Shell, end_group, wait_until

FLOW = """
import os, signal
from interlock import Interlock, ToolSpec

lock = Interlock(os.environ["WHERE"], key=os.environ.get("KEY"), agent="mailer")
agent = lock.agent()

async def send(args):
    note("sent to " + args["to"])
    return "sent"

async def resume(pause):
    note("begun")
    call = agent.call("send", {"to": pause.state.decode()}, pause.run_id, "call-1")
    outcome = await agent.attempt(call, ToolSpec("send", "write"), send)
    if os.path.exists("deadly"):
        os.remove("deadly")
        os.kill(os.getpid(), signal.SIGKILL)

def resume_plainly(pause):
    note("plainly")

def note(line):
    with open("notes", "a") as file:
        file.write(line + "\\n")

def take_nothing():
    note("never")

async def take_more(pause, other):
    note("never")

number = 7
"""


@pytest.fixture
def flow(shell: Shell) -> Shell:
    (shell.folder / "flow.py").write_text(FLOW)
    (shell.folder / "broken.py").write_text("raise ValueError('at once')\n")
    (shell.folder / "misspelt.py").write_text("def resume(pause)\n    pass\n")
    shell.extra["WHERE"] = shell.url
    return shell


def make_paused_run(shell: Shell, run_id: str, **where: str) -> str:
    """A run that waits for one approval; gives its id."""
    with Interlock(**{"url": shell.url, **where}, agent="mailer") as lock:
        agent = lock.agent()
        call = agent.call("send", {"to": "bob"}, run_id, "call-1")
        outcome = agent.attempt_sync(call, ToolSpec("send", "write"), lambda _: None)
        assert isinstance(outcome, Waiting)
        agent.pause_sync(run_id, b"bob")
    return outcome.approval_id


@contextmanager
def start_resume(shell: Shell, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = shell.start("runs", "resume", *(words or ("flow:resume",)), "--agent", "mailer")
    try:
        yield process
    finally:
        end_group(process)


def wait_until_resumed(shell: Shell, process: subprocess.Popen[bytes]) -> None:
    def over() -> bool:
        return process.poll() is not None or not shell("runs", "list", "--json").json["items"]

    wait_until(over, "the run went on", pause=0.05)
    assert process.poll() is None, process.communicate()


def stop_process(process: subprocess.Popen[bytes]) -> CommandResult:
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=TIMEOUT)
    return CommandResult(process.returncode, out.decode(), err.decode())


def notes(shell: Shell) -> list[str]:
    file = shell.folder / "notes"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.smoke
def test_paused_runs_are_listed_with_what_they_wait_for(shell: Shell) -> None:  # R9
    approval_id = make_paused_run(shell, "thread 7\x1b[2J")
    with Interlock(shell.url, agent="writer") as lock:
        lock.agent().pause_sync("thread 8")
    listed = shell("runs", "list")
    first, second, third = listed.out.splitlines()
    assert first.split() == ["RUN", "AGENT", "WAITS", "FOR", "SINCE", "AGE", "TRIES"]
    assert [word in second for word in ("thread 7", "mailer", "1 approval ")] == [True] * 3
    assert "\x1b" not in listed.out
    assert [word in third for word in ("thread 8", "writer", "ready")] == [True] * 3
    (item,) = shell("runs", "list", "--agent", "writer", "--json").json["items"]
    assert (item["called"], item["waiting"], item["attempts"], item["resuming"]) == ("thread 8", 0, 0, False)
    assert "More results" in shell("runs", "list", "--limit", "1").out
    shell("approvals", "approve", approval_id)
    assert shell("runs", "list", "--agent", "nobody").out == "No runs of nobody are paused.\n"
    assert shell("runs", "list", "--agent", "mailer").out.count("ready") == 1


@pytest.mark.smoke
def test_a_run_goes_on_when_it_was_approved_and_once_though_its_process_was_killed(flow: Shell) -> None:  # R9
    approval_id = make_paused_run(flow, "thread 7")
    (flow.folder / "deadly").touch()
    with start_resume(flow) as process:
        assert process.stdout is not None
        assert process.stdout.readline().decode().startswith("Resuming runs of mailer on sqlite:///")
        assert notes(flow) == []
        assert flow("approvals", "approve", approval_id).code == 0
        assert process.wait(timeout=TIMEOUT) == -signal.SIGKILL
    with start_resume(flow) as process:
        wait_until_resumed(flow, process)
        done = stop_process(process)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "Resumed thread 7."
    assert notes(flow) == ["begun", "sent to bob", "begun"]
    assert flow("runs", "list").out == "No runs are paused.\n"


async def test_a_run_goes_on_over_a_server(flow: Shell) -> None:  # R9
    services = build_services(flow.url)
    await services.store.open()
    keys = await make_keys(services)
    await services.store.close()
    with run_server(flow.url, flow.folder) as served:
        approval_id = make_paused_run(flow, "thread 7", url=served.url, key=keys["agent"])
        flow.extra |= {"WHERE": served.url, "KEY": keys["agent"], "INTERLOCK_KEY": keys["agent"]}
        with start_resume(flow, "flow:resume", "--url", served.url) as process:
            assert flow("approvals", "approve", approval_id).code == 0
            wait_until_resumed(flow, process)
            assert stop_process(process).code == 0
    assert notes(flow) == ["begun", "sent to bob"]


def test_a_plain_function_will_do(flow: Shell) -> None:
    with Interlock(flow.url, agent="mailer") as lock:
        lock.agent().pause_sync("thread 7")
    with start_resume(flow, "flow:resume_plainly") as process:
        wait_until(lambda: notes(flow) == ["plainly"], "it was called")
        assert stop_process(process).code == 0


@pytest.mark.parametrize(
    ("function", "said"),
    [
        *(
            (wrong, f"Error: '{wrong}' is not a function name. Give MODULE:FUNCTION, such as app.agent:resume.\n")
            for wrong in ("flow", "flow:", ":resume", "../flow:resume")
        ),
        ("nowhere:resume", "nowhere:resume: there is no module nowhere in "),
        ("flow:nothing", "flow has no nothing"),
        ("flow:resum", 'flow has no resum; did you mean "resume"?'),
        ("flow:number", "flow:number is not a function"),
        ("flow:take_nothing", "flow:take_nothing must take one argument, the Pause of the run: def resume(pause)."),
        ("flow:take_more", "flow:take_more must take one argument, the Pause of the run"),
        ("broken:resume", "broken cannot be imported: ValueError: at once ("),
        ("misspelt:resume", "misspelt cannot be imported: SyntaxError: expected ':' ("),
    ],
)
def test_what_cannot_be_called_is_said(flow: Shell, function: str, said: str) -> None:
    done = flow.process("runs", "resume", function, "--agent", "mailer")
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_a_database_that_is_not_there_is_said(flow: Shell) -> None:
    done = flow.process("runs", "resume", "flow:resume_plainly", "--agent", "mailer", "--json")
    assert done.code == 2
    assert "There is no database at" in json.loads(done.out)["message"]
    assert not os.path.exists(flow.path)
