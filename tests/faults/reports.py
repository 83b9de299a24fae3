"""Runs fault suites as programs that print one JSON line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


TRIES = 6  # of a red control: a race that is lost now and then is not lost six times in a row


def is_caught(name: str, *options: str, noticed: str | Sequence[str], seeds: bool = False) -> bool:
    """Whether a copy that is broken on purpose is noticed, by one of these words of what its checker reports.

    What breaks by chance gets several tries. With `seeds` each try draws other faults than the one before.
    """
    for number in range(1, TRIES + 1):
        said = run_suite(name, *options, *(("--seed", str(number)) if seeds else ()))
        assert said["operations"] > 0, "what falls over before it has done anything has not been noticed"
        if is_noticed(said["wrong"], noticed):
            return True
    return False


def is_noticed(wrong: Sequence[Any], noticed: str | Sequence[str]) -> bool:
    """Another fault than the expected one is no proof: a copy that only falls over would be caught by that."""
    words = (noticed,) if isinstance(noticed, str) else noticed
    assert words, "what is noticed has to be named"
    assert all(words), "an empty text is in everything"
    return any(each in str(fault) for fault in wrong for each in words)


def run_suite(name: str, *options: str) -> dict[str, Any]:
    """What `python -m tests.faults.NAME` has to say."""
    command = [sys.executable, "-m", f"tests.faults.{name}", *options]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    for each in result.get("wrong", ()):  # whole, in the captured output: an assertion cuts a history to its first line
        print(each)
    return result
