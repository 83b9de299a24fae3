"""Which tests belong to `make test`. `make test-all` runs every test; `make test` leaves out those marked `nightly`.

A test becomes `nightly` in one of four ways:

- it is in a suite of SAMPLED and not marked `smoke`: these suites start programs, servers and browsers;
- it runs on PostgreSQL outside the contract suite, which proves both databases, and is not marked `postgres_smoke`;
- it runs on PostgreSQL and is marked `postgres_nightly`, in the contract suite;
- it is marked `nightly` itself, because it is long or needs an environment that only `make test-all` installs.

A mark that would change nothing is refused. Where CI is set, a test is only skipped for a reason in NOT_POSSIBLE_HERE:
a tool that could not be installed would otherwise let a run pass without its tests.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
SAMPLED = frozenset({"browser", "engines", "faults", "frameworks", "journeys", "mutants"})
BOTH_DATABASES = frozenset({"contract"})
LEVEL_MARKS = ("nightly", "smoke", "postgres_smoke", "postgres_nightly")
DATABASE_PARAMETERS = ("database", "chat_database")
NOT_POSSIBLE_HERE = (
    "PostgreSQL has them in the condition of a trigger",
    "looks into /proc",
    "only root hands its server to another user",
    "only root makes file systems",
    "root cannot be kept from writing here",
    "there is not enough memory to keep a server in",
)


def suite_name(path: Path) -> str:
    """The folder under `tests` that a test file belongs to."""
    return path.relative_to(TESTS).parts[0]


def mark_nightly(items: list[pytest.Item]) -> None:
    for item in items:
        if TESTS in item.path.parents:
            refuse_idle_marks(item)
            if not belongs_to_make_test(item):
                item.add_marker(pytest.mark.nightly)


def refuse_idle_marks(item: pytest.Item) -> None:
    suite = suite_name(item.path)
    marks = {name for name in LEVEL_MARKS if item.get_closest_marker(name) is not None}
    idle = {
        "`smoke` counts only in the suites of SAMPLED": "smoke" in marks and suite not in SAMPLED,
        "`postgres_smoke` needs `smoke` in the suites of SAMPLED": (
            "postgres_smoke" in marks and suite in SAMPLED and "smoke" not in marks
        ),
        "`postgres_smoke` counts only outside BOTH_DATABASES": "postgres_smoke" in marks and suite in BOTH_DATABASES,
        "`postgres_nightly` counts only in BOTH_DATABASES": "postgres_nightly" in marks and suite not in BOTH_DATABASES,
    }
    for reason, is_idle in idle.items():
        if is_idle:
            raise pytest.UsageError(f"{item.nodeid}: {reason} (tests/levels.py).")


def fail_unforeseen_skip(report: pytest.TestReport) -> None:
    """In CI: turn a skip into a failure, unless the machine cannot run the test at all."""
    if not report.skipped or not os.environ.get("CI") or hasattr(report, "wasxfail"):
        return
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(known in reason for known in NOT_POSSIBLE_HERE):
        report.outcome = "failed"
        report.longrepr = f"{reason}\nIn CI no test may be skipped for this reason (tests/levels.py)."


def belongs_to_make_test(item: pytest.Item) -> bool:
    suite = suite_name(item.path)
    if item.get_closest_marker("nightly") is not None:
        return False
    if suite in SAMPLED and item.get_closest_marker("smoke") is None:
        return False
    if not runs_on_postgres(item):
        return True
    if suite in BOTH_DATABASES:
        return item.get_closest_marker("postgres_nightly") is None
    return item.get_closest_marker("postgres_smoke") is not None


def runs_on_postgres(item: pytest.Item) -> bool:
    """True for the PostgreSQL half of a test that is parametrised over both databases."""
    callspec = getattr(item, "callspec", None)
    chosen = {callspec.params.get(name) for name in DATABASE_PARAMETERS} if callspec else set()
    return bool(chosen & {"postgres", "postgresql"})
