"""Which tests belong to `make test`. `make test-all` runs every test; `make test` leaves out those marked `nightly`.

A test becomes `nightly` in one of four ways:

- it is in a suite of SAMPLED and not marked `smoke`: these suites start programs, servers and browsers;
- it runs on PostgreSQL outside the contract suite, which proves both databases, and is not marked `postgres_smoke`;
- it runs on PostgreSQL and is marked `postgres_nightly`, in the contract suite;
- it is marked `nightly` itself, because it is long or needs an environment that only `make test-all` installs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
SAMPLED = frozenset({"browser", "engines", "faults", "frameworks", "journeys", "mutants"})
BOTH_DATABASES = frozenset({"contract"})
DATABASE_PARAMETERS = ("database", "chat_database")


def suite_name(path: Path) -> str:
    """The folder under `tests` that a test file belongs to."""
    return path.relative_to(TESTS).parts[0]


def mark_nightly(items: list[pytest.Item]) -> None:
    for item in items:
        if TESTS in item.path.parents and not belongs_to_make_test(item):
            item.add_marker(pytest.mark.nightly)


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
