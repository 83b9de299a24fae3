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
from tests.databases import Place
from tests.interlock_server import keys_at, serving
from tests.journeys.shell import PATIENCE
from tests.support import kinds

PAGE = Path(__file__).resolve().parents[2] / "docs" / "remote.md"
SHOWN = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# R3, R22
@pytest.mark.smoke
@pytest.mark.postgres_smoke
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed. Debian: apt-get install curl")
def test_an_agent_needs_only_curl(place: Place, tmp_path: Path) -> None:
    script = "set -euo pipefail\n" + "\n".join(BLOCK.findall(PAGE.read_text()))
    keys = asyncio.run(keys_at(place.url))
    with serving(place.url, tmp_path) as server:
        env = {**os.environ, "SERVER": server.url, "KEY": keys["agent"], "PERSON": keys["reviewer"], "NO_PROXY": "*"}
        done = subprocess.run(
            ["bash", "-c", script], env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith('{"outcome":"waiting","status":"pending","approval_id":"')
    assert lines[2].startswith('{"fence":1,"idempotency_key":"')
    assert [lines[1], *lines[3:9]] == ["approved", "running", "succeeded", "responded", "blue", "open", "closed"]
    assert [lines[9], lines[10].isdigit(), *lines[11:]] == ["thread-8", True, "true"]
    seen = asyncio.run(told(place))
    assert [kind for kind in seen if kind.startswith("run_")] == ["run_opened", "run_closed"]
    assert seen.count("started") == seen.count("succeeded") == 1


# R22, R27, R29
@pytest.mark.smoke
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed. Debian: apt-get install curl")
def test_an_outside_system_needs_only_curl_and_gets_what_the_page_shows(place: Place, tmp_path: Path) -> None:
    page = (PAGE.parent / "clients" / "requests.md").read_text()
    script = "set -euo pipefail\n" + "\n".join(BLOCK.findall(page))
    keys = asyncio.run(keys_at(place.url))
    with serving(place.url, tmp_path) as server:
        env = {**os.environ, "SERVER": server.url, "KEY": keys["agent"], "PERSON": keys["reviewer"], "NO_PROXY": "*"}
        done = subprocess.run(
            ["bash", "-c", script], env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert done.stdout == "".join(SHOWN.findall(page)), done.stdout + done.stderr


async def told(place: Place) -> list[str]:
    parts = build_services(place.url)
    await parts.store.open()
    try:
        return await kinds(parts)
    finally:
        await parts.store.close()
