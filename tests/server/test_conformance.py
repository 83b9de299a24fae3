"""Thousands of made-up requests, right and wrong: none breaks the server, none is answered but as the document says."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import keys_at, serving

TESTER = Path(sys.executable).with_name("schemathesis")
# What no schema can say (a name that nobody has, a text with NUL) is refused too.
CHECKS = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "401", "403", "404", "409", "410", "413", "422", "429"]

[[operations]]
include-name = "GET /api/calls/{approval_id}"
parameters = { wait = 0.01 }
"""
ENDLESS = ("/api/events", "/api/audit/export")


@pytest.mark.parametrize("role", ["agent", "admin"])
def test_every_answer_is_one_that_the_document_has(tmp_path: Path, role: str) -> None:
    database = f"sqlite:///{tmp_path / 'interlock.db'}"
    key = asyncio.run(keys_at(database))[role]
    settings = tmp_path / "schemathesis.toml"
    settings.write_text(CHECKS)
    with serving(database, tmp_path) as served:
        command = [str(TESTER), "--config-file", str(settings), "run", f"{served.url}/openapi.json"]
        command += ["-H", f"Authorization: Bearer {key}", "--phases", "examples,coverage,fuzzing", "-n", "5"]
        command += ["--generation-deterministic", "--no-color"]
        command += [word for path in ENDLESS for word in ("--exclude-path", path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
