"""Two Interlock instances of one program on the same file, while other processes come and go."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.journeys.shell import TIMEOUT, Shell

pytestmark = pytest.mark.smoke

PROGRAM = """
import os
from interlock import Interlock, ToolSpec

def propose(lock, call_id):
    agent = lock.agent()
    call = agent.call("send", {"to": call_id}, "run", call_id)
    print(agent.attempt_sync(call, ToolSpec("send", "write"), lambda _: None).status, flush=True)

url = os.environ["INTERLOCK_DATABASE_URL"]
with Interlock(url, agent="first") as first, Interlock(url, agent="second") as second:
    for lock in (first, second):
        lock.open()
    for lock in (first, second, first):
        input()
        propose(lock, f"call-{lock.program.agent}")
"""


def test_what_one_program_writes_by_two_locks_is_there_for_others(shell: Shell) -> None:  # R23
    """SQLite loses the locks of a process that closes the file on the side: then others take its log away."""
    pipe = subprocess.PIPE
    program = shell.program(sys.executable, "-c", PROGRAM, stdin=pipe, stdout=pipe, text=True)
    assert program.stdin is not None
    assert program.stdout is not None
    waiting: list[int] = []
    for _ in range(2):
        program.stdin.write("go on\n")
        program.stdin.flush()
        assert program.stdout.readline() == "pending\n"
        waiting.append(len(shell("approvals", "list", "--json").json["items"]))  # the last one to leave tidies up
    assert waiting == [1, 2]
    program.communicate("go on\n", timeout=TIMEOUT)
    assert len(shell("approvals", "list", "--json").json["items"]) == 2
    assert shell("audit", "verify").code == 0
