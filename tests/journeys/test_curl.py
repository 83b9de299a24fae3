"""What docs/remote.md shows for curl, done as written against a real server."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from interlock.app.bootstrap import build_services
from tests.databases import Database
from tests.interlock_server import create_keys, run_server
from tests.journeys.shell import TIMEOUT
from tests.support import event_kinds

PAGE = Path(__file__).resolve().parents[2] / "docs" / "remote.md"
SHOWN = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# R3, R22
@pytest.mark.smoke
@pytest.mark.postgres_smoke
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed. Debian: apt-get install curl")
def test_an_agent_needs_only_curl(database: Database, tmp_path: Path) -> None:
    script = "set -euo pipefail\n" + "\n".join(BLOCK.findall(PAGE.read_text()))
    keys = asyncio.run(create_keys(database.url))
    with run_server(database.url, tmp_path) as server:
        env = {**os.environ, "SERVER": server.url, "KEY": keys["agent"], "PERSON": keys["reviewer"], "NO_PROXY": "*"}
        done = subprocess.run(
            ["bash", "-c", script], env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith('{"outcome":"waiting","status":"pending","approval_id":"')
    assert lines[2].startswith('{"fence":1,"idempotency_key":"')
    assert [lines[1], *lines[3:9]] == ["approved", "running", "succeeded", "responded", "blue", "open", "closed"]
    assert [lines[9], lines[10].isdigit(), *lines[11:]] == ["thread-8", True, "true"]
    seen = asyncio.run(run_curl(database))
    assert [kind for kind in seen if kind.startswith("run_")] == ["run_opened", "run_closed"]
    assert seen.count("started") == seen.count("succeeded") == 1


# R22, R27, R29
@pytest.mark.smoke
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed. Debian: apt-get install curl")
def test_an_outside_system_needs_only_curl_and_gets_what_the_page_shows(database: Database, tmp_path: Path) -> None:
    page = (PAGE.parent / "clients" / "requests.md").read_text()
    script = "set -euo pipefail\n" + "\n".join(BLOCK.findall(page))
    keys = asyncio.run(create_keys(database.url))
    with run_server(database.url, tmp_path) as server:
        env = {**os.environ, "SERVER": server.url, "KEY": keys["agent"], "PERSON": keys["reviewer"], "NO_PROXY": "*"}
        done = subprocess.run(
            ["bash", "-c", script], env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    assert done.stdout == "".join(SHOWN.findall(page)), done.stdout + done.stderr


async def run_curl(database: Database) -> list[str]:
    services = build_services(database.url)
    await services.store.open()
    try:
        return await event_kinds(services)
    finally:
        await services.store.close()
