"""The whole document, fuzzed by schemathesis against a real server: no 5xx, and no answer that is not written down.

Longer by hand: `EXAMPLES=200 python -m pytest tests/server/test_fuzz.py -s`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.serving import keys_at, serving

HERE = Path(__file__).parent
EXAMPLES = os.environ.get("EXAMPLES", "2")
OPERATIONS = 60  # at least: what is found at fewer, was not looked at


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_request_of_an_admin_breaks_the_document(tmp_path: Path) -> None:  # R36, R40
    said = fuzzed(tmp_path, "admin")
    assert said["failures"] == [], said["output"]
    assert (said["errored"], said["tested"]) == (0, said["selected"])
    assert said["selected"] >= OPERATIONS


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_request_of_an_agent_breaks_the_document(tmp_path: Path) -> None:  # R36, R40
    """On the routes that are for agents; what they get on others is in the matrix."""
    waits = ("--exclude-path", "/api/pauses/claim")  # as long as its body says, and nobody here waits for that
    said = fuzzed(tmp_path, "agent", "--include-by", "/x-roles/0 == agent", *waits)
    assert said["failures"] == [], said["output"]
    assert (said["errored"], said["tested"]) == (0, said["selected"])
    assert said["selected"] > 10


def fuzzed(folder: Path, role: str, *options: str) -> dict[str, Any]:
    database, report = f"sqlite:///{folder}/interlock.db", folder / "report.json"
    keys = asyncio.run(keys_at(database))
    with serving(database, folder) as served:
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"), "run"),
            *(f"{served.url}/openapi.json", "--header", f"Authorization: Bearer {keys[role]}"),
            *(
                "--exclude-checks",
                "positive_data_acceptance",
                "--workers",
                "1",  # two tread on each other's toes in Python 3.11, and lose a whole phase
                "--max-examples",
                EXAMPLES,
                "--generation-deterministic",
            ),
            *("--report-json-path", str(report), "--no-color", *options),
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert report.exists(), done.stdout + done.stderr
    said: dict[str, Any] = json.loads(report.read_text())
    failures = [f"{each['code']} {each['title']}: {each['operations']}" for each in said["failures"]]
    assert (said["errors"], said["complete"]) == ([], True), done.stdout[-3000:]
    return {"failures": failures, **said["operations"], "output": done.stdout[-3000:]}
