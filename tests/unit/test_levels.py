"""Test levels: which tests `make test` runs, how their work is counted, and how test-all sums up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import test_all, test_report
from tests.audit_events import SERVER_STARTED
from tests.levels import TESTS, fail_unforeseen_skip, mark_nightly
from tests.workload import Workload


class FakeItem:
    """As much of a pytest item as the level of a test depends on."""

    def __init__(self, file: str, *marks: str, **params: str) -> None:
        self.path = TESTS / file
        self.nodeid = f"tests/{file}::test"
        self.marks = set(marks)
        self.callspec = type("CallSpec", (), {"params": params})() if params else None

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.add(mark.name)


@pytest.mark.parametrize(
    ("item", "nightly"),
    [
        (FakeItem("unit/test_x.py"), False),
        (FakeItem("unit/test_x.py", "nightly"), True),
        (FakeItem("server/test_x.py", database="sqlite"), False),
        (FakeItem("server/test_x.py", database="postgres"), True),
        (FakeItem("server/test_x.py", "postgres_smoke", database="postgres"), False),
        (FakeItem("contract/test_x.py", database="postgres"), False),
        (FakeItem("contract/test_x.py", "postgres_nightly", database="postgres"), True),
        (FakeItem("contract/test_x.py", "postgres_nightly", database="sqlite"), False),
        (FakeItem("contract/test_x.py", "nightly", database="sqlite"), True),
        (FakeItem("browser/test_x.py"), True),
        (FakeItem("browser/test_x.py", "smoke"), False),
        (FakeItem("faults/test_x.py", "smoke", database="postgresql"), True),
        (FakeItem("faults/test_x.py", "smoke", "postgres_smoke", database="postgresql"), False),
        (FakeItem("journeys/test_x.py", "smoke", "nightly"), True),  # one of a file whose others are smoke
    ],
)
def test_the_level_of_a_test(item: Any, nightly: bool) -> None:
    mark_nightly([item])
    assert ("nightly" in item.marks) is nightly


@pytest.mark.parametrize(
    "item",
    [
        FakeItem("server/test_x.py", "smoke"),
        FakeItem("faults/test_x.py", "postgres_smoke", database="postgresql"),
        FakeItem("contract/test_x.py", "postgres_smoke", database="postgres"),
        FakeItem("server/test_x.py", "postgres_nightly", database="postgres"),
    ],
    ids=lambda item: " ".join([item.nodeid, *sorted(item.marks)]),
)
def test_a_mark_that_changes_nothing_is_refused(item: Any) -> None:
    with pytest.raises(pytest.UsageError, match=r"\(tests/levels\.py\)"):
        mark_nightly([item])


class FakeReport:
    """As much of the report of a skipped test as is looked at."""

    skipped = True

    def __init__(self, reason: str) -> None:
        self.longrepr: object = ("tests/server/test_x.py", 1, f"Skipped: {reason}")
        self.outcome = "skipped"


@pytest.mark.parametrize(
    ("ci", "reason", "outcome"),
    [
        ("true", "only root makes file systems, where the system lets it", "skipped"),
        ("true", "Packages of Node are missing.", "failed"),
        ("", "Packages of Node are missing.", "skipped"),
    ],
)
def test_ci_skips_only_what_cannot_run_there(
    monkeypatch: pytest.MonkeyPatch, ci: str, reason: str, outcome: str
) -> None:
    monkeypatch.setenv("CI", ci)
    report: Any = FakeReport(reason)
    fail_unforeseen_skip(report)
    assert report.outcome == outcome
    assert reason in str(report.longrepr)


@pytest.mark.parametrize(("profile", "fixed"), [("dev", True), ("nightly", False)])
def test_the_nightly_profile_searches_at_random_in_ci_too(profile: str, fixed: bool) -> None:
    code = (
        "from hypothesis import settings; from tests.hypothesis_profiles import register_profiles;"
        f"register_profiles(); print(settings.get_profile({profile!r}).derandomize)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TESTS.parent, env={**os.environ, "CI": "1"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == str(fixed)


def test_work_is_counted_for_the_test_that_does_it(tmp_path: Path) -> None:
    workload = Workload(str(tmp_path / "work.json"))
    for file, servers in (("server/test_x.py", 2), ("unit/test_x.py", 0)):
        protocol: Any = workload.pytest_runtest_protocol(FakeItem(file))  # type: ignore[arg-type]
        next(protocol)
        for _ in range(servers):
            sys.audit(SERVER_STARTED)
        with pytest.raises(StopIteration):
            protocol.send(None)
    workload.pytest_sessionfinish(type("Session", (), {"config": object()})())  # type: ignore[arg-type]
    first, second = json.loads((tmp_path / "work.json").read_text())["tests"]
    assert (first["suite"], first["servers"]) == ("server", 2)
    assert (second["suite"], second.get("servers", 0)) == ("unit", 0)


@pytest.fixture
def workload_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    tests = [
        {"test": "tests/server/test_a.py::test_1", "suite": "server", "seconds": 3.0, "cpu": 1.0, "servers": 2},
        {"test": "tests/server/test_a.py::test_2", "suite": "server", "seconds": 1.0, "cpu": 1.0, "servers": 1},
        {"test": "tests/unit/test_b.py::test_3", "suite": "unit", "seconds": 1.0, "cpu": 0.5},
    ]
    path.write_text(json.dumps({"wall": 2.5, "workers": 2, "tests": tests}))
    return path


def test_a_report_adds_up_suites_and_files(workload_file: Path) -> None:
    text = test_report.report(test_report.read_run([workload_file]))
    assert "| server | 2 | 4 | 80% | 2 | 0 | 3 | 0 | 0 |" in text
    assert "| `tests/server/test_a.py` | 2 | 4.0 | 2.0 | 0 |" in text


@pytest.mark.parametrize(("limit", "code"), [("[server]\nservers = 3\n", 0), ("[server]\nservers = 2\n", 1), ("", 1)])
def test_a_suite_over_its_budget_fails_the_run(
    workload_file: Path, tmp_path: Path, limit: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = tmp_path / "budget.toml"
    budget.write_text(limit)
    assert test_report.main(["--check", str(budget), str(workload_file)]) == code
    assert ("server used 3 servers" in capsys.readouterr().err) is bool(code)


def test_a_budget_is_not_checked_with_other_workers(
    workload_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload_file.write_text(json.dumps(json.loads(workload_file.read_text()) | {"workers": 8}))
    budget = tmp_path / "budget.toml"
    budget.write_text("")
    assert test_report.main(["--check", str(budget), str(workload_file)]) == 0
    assert "it is for 2 workers, and there were 8" in capsys.readouterr().out


def test_a_report_is_kept_as_a_page(workload_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "test-times.md"
    assert test_report.main(["--write", str(page), str(workload_file)]) == 0
    assert page.read_text().startswith("# Where the time of the tests goes\n")


def test_every_test_file_is_in_one_slice_of_test_all() -> None:
    for path in sorted(TESTS.rglob("test_*.py")):
        name = path.relative_to(TESTS.parent).as_posix()
        slices = [part.name for part in test_all.SLICES if is_covered(part.tests, name)]
        assert len(slices) == 1, f"{name} is in the slices {slices}"


def is_covered(tests: tuple[str, ...], name: str) -> bool:
    ignored = {option.removeprefix("--ignore=") for option in tests if option.startswith("--ignore=")}
    return name not in ignored and any(name == each or name.startswith(f"{each}/") for each in tests)


def test_an_unknown_slice_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        test_all.main(["brwoser"])
    assert "There is no slice named brwoser. There are: checks, unit," in capsys.readouterr().err


def test_a_summary_says_what_failed(tmp_path: Path) -> None:
    report = tmp_path / "unit.xml"
    report.write_text('<testsuites><testsuite tests="9" failures="1" errors="1" skipped="2"/></testsuites>')
    results = [test_all.Result("unit", 1, 60.0, *test_all.counts(report)), test_all.Result("checks", 0, 30.0)]
    text = test_all.summary(results)
    assert "| unit | FAILED | 5 | 2 | 2 | 1.0 |" in text
    assert "| checks | passed | 0 | 0 | 0 | 0.5 |" in text
    assert text.endswith("5 passed, 2 failed, 2 skipped")


def test_a_slice_that_takes_too_long_is_told() -> None:
    text = test_all.summary([test_all.Result("browser", 0, 1_201.0, 3)])
    assert "| browser | passed, but too long | 3 | 0 | 0 | 20.0 |" in text


def test_a_run_that_broke_off_has_no_counts(tmp_path: Path) -> None:
    assert test_all.counts(tmp_path / "missing.xml") == (0, 0, 0)
    half = tmp_path / "half.xml"
    half.write_text('<testsuites><testsuite tests="9"')
    assert test_all.counts(half) == (0, 0, 0)


def test_a_folder_that_is_part_of_a_slice_runs_alone() -> None:
    parts = test_all.part_slices()
    assert sorted(parts) == ["architecture", "chat", "tools"]
    assert (parts["tools"].tests, parts["tools"].needs) == (("tests/tools",), ("node-packages",))
