"""`make dev`: the server and the page side by side, and no process is left when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.journeys.shell import TIMEOUT, end_group

TOP = Path(__file__).resolve().parents[2]
SERVER = "import time; print('a server', flush=True); time.sleep(600)"
DEV = (sys.executable, "-m", "scripts.dev", sys.executable, "-c", SERVER)
PLAIN = {**os.environ, "NO_COLOR": "1"}  # where CI is set, Vite colours what it says, also into a pipe

End = Callable[[int], object]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda pid: os.killpg(pid, signal.SIGINT), id="Ctrl-C in a terminal"),
        pytest.param(lambda pid: os.kill(pid, signal.SIGINT), id="interrupted"),
        pytest.param(lambda pid: os.kill(pid, signal.SIGTERM), id="ended"),
    ],
)
def test_both_start_and_both_end(end: End) -> None:
    process = subprocess.Popen(
        DEV, cwd=TOP, env=PLAIN, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    said: list[str] = []
    try:
        assert process.stdout is not None
        awaited = {"a server", "Local:"}
        for line in process.stdout:
            said.append(line)
            awaited -= {words for words in awaited if words in line}
            if not awaited:
                break
        assert not awaited, said
        end(process.pid)
        assert process.wait(TIMEOUT) == 0
        assert not alive(process.pid)
    finally:
        end_group(process)


def test_a_changed_module_of_tools_starts_the_server_again(tmp_path: Path) -> None:  # R64
    (tmp_path / "shop.py").write_text("tools = []")
    (tmp_path / "interlock.yaml").write_text("tools: {shop: 'shop:tools'}")
    process = subprocess.Popen(
        (*DEV, "--config", str(tmp_path / "interlock.yaml")),
        cwd=TOP,
        env=PLAIN,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        starts = (line for line in process.stdout if "a server" in line)
        next(starts)
        (tmp_path / "shop.py").write_text("tools = [1]")
        assert next(starts)
    finally:
        end_group(process)


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
