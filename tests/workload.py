"""Records what each test costs: seconds, processor time, and counted work (processes, servers, databases, pages).

`pytest --workload FILE` writes one JSON document per run; `python -m scripts.test_report` prints where the time went
and checks the counted work of `make test` against `tests/budget.toml`.

Work is counted by audit events: Python's own for processes, those of `tests/audit_events.py` for the rest. What a child
process starts itself is not counted.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.audit_events import DATABASE_STARTED, PAGE_OPENED, SERVER_STARTED
from tests.levels import TESTS, suite_name

COUNTED = {
    "subprocess.Popen": "processes",  # since Python 3.13 some of them raise os.posix_spawn as well
    "os.fork": "processes",
    "os.forkpty": "processes",
    SERVER_STARTED: "servers",
    DATABASE_STARTED: "databases",
    PAGE_OPENED: "pages",
}
RESULTS_KEY = "workload"


class Workload:
    """A pytest plugin: one per process. With xdist, each worker hands its records to the controller."""

    def __init__(self, target: str | None) -> None:
        self._target = target
        self._began = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._records: list[dict[str, Any]] = []
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _: tuple[object, ...]) -> None:
        if event in COUNTED:
            self._counts[COUNTED[event]] += 1

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Shared fixtures count for the test that needs them first."""
        self._counts.clear()
        began, cpu = time.monotonic(), _cpu_seconds()
        try:
            return (yield)
        finally:
            self._records.append(
                {
                    "test": item.nodeid,
                    "suite": suite_name(item.path) if TESTS in item.path.parents else "",
                    "seconds": round(time.monotonic() - began, 3),
                    "cpu": round(_cpu_seconds() - cpu, 3),
                    **self._counts,
                }
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._records += getattr(node, "workeroutput", {}).get(RESULTS_KEY, [])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[RESULTS_KEY] = self._records
        elif self._target:
            path = Path(self._target)
            path.parent.mkdir(parents=True, exist_ok=True)
            document = {
                "wall": round(time.monotonic() - self._began, 1),
                "workers": len(getattr(getattr(session.config, "option", None), "tx", None) or []) or 1,
                "tests": sorted(self._records, key=_by_name),
            }
            path.write_text(json.dumps(document, indent=1) + "\n")


def _cpu_seconds() -> float:
    """Of this process alone: children count when they are waited for, which may be in another test."""
    return time.process_time()


def _by_name(record: dict[str, Any]) -> str:
    return str(record["test"])
