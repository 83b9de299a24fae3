"""Fault runs are programs of their own, which print one JSON line: this is how tests start them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]


def report(name: str, *options: str) -> dict[str, Any]:
    """What `python -m tests.faults.NAME` has to say."""
    command = [sys.executable, "-m", f"tests.faults.{name}", *options]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result
