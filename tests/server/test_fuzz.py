"""The whole document, fuzzed by schemathesis against a real server: no 5xx, and no answer that is not written down.

`make test` asks each route for a little, `make test-all` for all that the schema says, which takes minutes. Longer by
hand: `EXAMPLES=200 python -m pytest tests/server/test_fuzz.py -s`.
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

from tests.interlock_server import create_keys, run_server

HERE = Path(__file__).parent
EXAMPLES = os.environ.get("EXAMPLES", "2")
OPERATIONS = 60  # at least: what is found at fewer, was not looked at
FULL_RUN = ("--max-examples", EXAMPLES)
SHORT_RUN = (
    "--max-examples",
    "1",
    "--phases",
    "fuzzing",
    "--exclude-path",
    "/api/events",
)  # a stream that does not end


def test_a_few_requests_to_each_route_do_not_break_the_document(tmp_path: Path) -> None:  # R36, R40
    said = run_schemathesis(tmp_path, "admin", *SHORT_RUN)
    assert said["failures"] == [], said["output"]
    assert (said["errored"], said["tested"]) == (0, said["selected"])
    assert said["selected"] >= OPERATIONS


@pytest.mark.nightly  # six thousand requests
@pytest.mark.timeout(900)
def test_no_request_of_an_admin_breaks_the_document(tmp_path: Path) -> None:  # R36, R40
    said = run_schemathesis(tmp_path, "admin", *FULL_RUN)
    assert said["failures"] == [], said["output"]
    assert (said["errored"], said["tested"]) == (0, said["selected"])
    assert said["selected"] >= OPERATIONS


@pytest.mark.nightly  # a thousand requests
@pytest.mark.timeout(900)
def test_no_request_of_an_agent_breaks_the_document(tmp_path: Path) -> None:  # R36, R40
    """On the routes that are for agents; what they get on others is in the matrix."""
    waits = ("--exclude-path", "/api/pauses/claim")  # as long as its body says, and nobody here waits for that
    said = run_schemathesis(tmp_path, "agent", *FULL_RUN, "--include-by", "/x-roles/0 == agent", *waits)
    assert said["failures"] == [], said["output"]
    assert (said["errored"], said["tested"]) == (0, said["selected"])
    assert said["selected"] > 10


def run_schemathesis(folder: Path, role: str, *options: str) -> dict[str, Any]:
    database, report = f"sqlite:///{folder}/interlock.db", folder / "report.json"
    keys = asyncio.run(create_keys(database))
    with run_server(database, folder) as served:
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"), "run"),
            *(f"{served.url}/openapi.json", "--header", f"Authorization: Bearer {keys[role]}"),
            *(
                "--exclude-checks",
                "positive_data_acceptance",
                "--workers",
                "1",  # two tread on each other's toes in Python 3.11, and lose a whole phase
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
