"""A real Chromium, a real server in a process of its own, a real database. Every test ends with a look at what went
wrong unseen: no violation of the content-security policy, no error in a script, no request to any other host.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.site import Site, Visit, Visitors, run_site

MISSING = "There is no Chromium. On Debian: apt install chromium"
expect.set_options(timeout=15_000)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The system's browser: nothing is downloaded."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found, MISSING
    return {**browser_type_launch_args, "executable_path": found, "args": ["--no-sandbox", "--disable-dev-shm-usage"]}


@pytest.fixture
def config() -> str:
    """What stands in interlock.yaml; a module with other needs has a fixture of this name."""
    return ""


@pytest.fixture
def options() -> tuple[str, ...]:
    """`("--demo",)` where a test talks to the demo's agent."""
    return ()


@pytest.fixture
def site(tmp_path: Path, config: str, options: tuple[str, ...]) -> Iterator[Site]:
    (tmp_path / "interlock.yaml").write_text(config)
    with run_site(f"sqlite:///{tmp_path / 'interlock.db'}", tmp_path, *options) as made:
        yield made


@pytest.fixture
def visitors(browser: Browser, site: Site) -> Iterator[Visitors]:
    made = Visitors(browser, site)
    yield made
    made.close()
    made.problems.check()


@pytest.fixture
def visit(visitors: Visitors) -> Visit:
    """`visit(session, path)`: a page as that person sees it."""
    return visitors.visit
