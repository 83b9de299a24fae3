"""The MCP conformance suite against a server, and what a gate in front of it changes."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.journeys.shell import wait_until
from tests.node_packages import MCP

REVISIONS = ("2025-11-25", "2026-07-28")
SUITE = "@modelcontextprotocol/conformance/dist/index.js"
PASSED = "SUCCESS"
FAILED = ("FAILURE", "WARNING")
TIMEOUT = 300.0  # seconds that a whole run may take on a loaded machine: it takes 3 to 6
# The suite listens to a stream for 0.8 seconds, whatever else the machine does: what failed is run again by itself.
SCENARIO_MS = "60000"
ATTEMPTS = 3


class Difference(NamedTuple):
    revision: str
    check: str
    without: str
    gated: str


@dataclass(frozen=True)
class Checks:
    """What the suite says of each check, such as `tools-list:tools-name-format`; `#2` is the second of that name."""

    revision: str
    statuses: Mapping[str, str]

    @property
    def passed(self) -> frozenset[str]:
        return frozenset(check for check, status in self.statuses.items() if status == PASSED)

    def differences(self, gated: Checks) -> set[Difference]:
        """Checks that pass here and not there."""
        return {
            Difference(self.revision, check, PASSED, gated.statuses.get(check, "not run"))
            for check in self.passed - gated.passed
        }


def run_suite(url: str, revision: str, folder: Path, matters: Callable[[str], bool] = lambda _: True) -> Checks:
    """What a revision requires, and what is only reported. A scenario in which something failed is run again."""
    statuses = _suite_results(folder / "all", "--url", url, "--requirements", revision)
    for attempt in range(1, ATTEMPTS):
        failed = {check for check, status in statuses.items() if status in FAILED and matters(check)}
        for name in sorted({check.partition(":")[0] for check in failed}):
            again = run_scenario(url, revision, name, folder / f"{name}-{attempt}")
            statuses |= {check: status for check, status in again.items() if statuses.get(check) != PASSED}
    return Checks(revision, statuses)


def run_scenario(url: str, revision: str, name: str, folder: Path) -> dict[str, str]:
    return _suite_results(folder, "--url", url, "--scenario", name, "--spec-version", revision, "--force")


def _suite_results(folder: Path, *options: str) -> dict[str, str]:
    command = MCP.command(SUITE, "server", *options, "--timeout", SCENARIO_MS, "--output-dir", str(folder))
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    found = {check: status for path in sorted(folder.glob("*/checks.json")) for check, status in _read(path)}
    assert found, f"The suite wrote nothing.\n{done.stdout}\n{done.stderr}"
    return found


def _read(path: Path) -> Iterator[tuple[str, str]]:
    named = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.+", path.parent.name)
    assert named, path
    seen: Counter[str] = Counter()
    for check in json.loads(path.read_text()):
        seen[check["id"]] += 1
        count = seen[check["id"]]
        yield f"{named[1]}:{check['id']}" + (f"#{count}" if count > 1 else ""), check["status"]


def documented_differences(document: Path) -> set[Difference]:
    """The rows of the document's table of differences; each has to say why."""
    rows = set()
    for line in document.read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if line.startswith("| 20") and len(cells) == 5:
            assert cells[4], f"{cells[1]} is not explained"
            rows.add(Difference(*cells[:4]))
    return rows


@contextmanager
def run_server(command: list[str], log: Path, **options: Any) -> Iterator[str]:
    """A server that says its address when it takes requests: gives the address."""
    with log.open("w") as out:
        started = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, **options)
        try:
            wait_until(lambda: bool(_read_address(log)) or started.poll() is not None, "the server says its address")
            assert _read_address(log), f"It ended: {started.wait()}\n{log.read_text()}"
            yield _read_address(log)
        finally:
            started.terminate()
            started.wait(30)


def _read_address(log: Path) -> str:
    """Of a line that is written to its end."""
    found = re.search(r"(http://127\.0\.0\.1:\d+/\S+)\n", log.read_text())
    return found[1] if found else ""
