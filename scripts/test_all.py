"""`make test-all`: every test there is, in slices of less than twenty minutes each on two cores.

    python -m scripts.test_all                 all slices, one after the other, then one summary
    python -m scripts.test_all browser tools   only these; a folder that is a part of a slice counts as one too
    python -m scripts.test_all --list          their names, one a line

A slice that fails, or whose requirements cannot be installed, does not stop the others; the exit status is 1 then.
Results are kept in test-reports/: JUnit XML and the cost of each test.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

TOP = Path(__file__).resolve().parents[1]
RESULTS = TOP / "test-reports"


@dataclass(frozen=True)
class Slice:
    """`needs` are targets of the Makefile, `tests` arguments of pytest; `command` runs instead of pytest."""

    name: str
    tests: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    name: str
    code: int
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0


LONGEST = 20 * 60  # seconds of a slice on two cores
HTTP_AND_CHAT_FAULTS = ("tests/faults/test_http.py", "tests/faults/test_chat.py")
SLICES = (
    Slice("checks", command=("make", "-s", "check", "ui-test")),
    Slice("unit", ("tests/unit", "tests/architecture", "--cov")),
    Slice("models", ("tests/models",)),
    Slice("contract", ("tests/contract",), ("pgbouncer",)),
    Slice("server", ("tests/server", "--ignore=tests/server/test_fuzz.py")),
    Slice("fuzzing", ("tests/server/test_fuzz.py",)),
    Slice("channels", ("tests/channels", "tests/tools", "tests/chat"), ("node-packages",)),
    Slice("protocols", ("tests/protocols",), ("node-packages", "framework-humanlayer")),
    Slice("journeys", ("tests/journeys",), ("page", "frameworks")),
    Slice("browser", ("tests/browser",), ("page", "chromium")),
    Slice("frameworks", ("tests/frameworks",), ("frameworks", "node-packages")),
    Slice("engines", ("tests/engines",), ("framework-engines", "node-packages")),
    Slice("faults", ("tests/faults", *(f"--ignore={path}" for path in HTTP_AND_CHAT_FAULTS)), ("pgbouncer",)),
    Slice("faults-http-chat", HTTP_AND_CHAT_FAULTS),
    Slice("mutants", ("tests/mutants",)),
)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.test_all")
    parser.add_argument("slices", nargs="*", metavar="SLICE")
    parser.add_argument("--list", action="store_true", help="print the names of the slices")
    parser.add_argument("--workers", default="2", help="how many processes run tests")
    options = parser.parse_args(arguments)
    known = {each.name: each for each in SLICES}
    unknown = sorted(set(options.slices) - set(known) - set(folders := part_slices()))
    if unknown:
        parser.error(
            f"There is no slice named {', '.join(unknown)}. There are: {', '.join(known)}; "
            f"and as parts of them: {', '.join(folders)}."
        )
    if options.list:
        print("\n".join(known))
        return 0
    results = [run((known | folders)[name], options.workers) for name in options.slices or known]
    print(summary(results))
    return 1 if any(result.code for result in results) else 0


def part_slices() -> dict[str, Slice]:
    """Each folder that is only a part of a slice, by its name: `tools` is in the slice `channels`."""
    return {
        Path(path).name: replace(part, name=Path(path).name, tests=(path,))
        for part in SLICES
        for path in part.tests
        if path.startswith("tests/")
        and not path.endswith(".py")
        and Path(path).name not in {each.name for each in SLICES}
    }


def run(part: Slice, workers: str) -> Result:
    print(f"\n=== {part.name} ===", flush=True)
    began = time.monotonic()
    if part.needs:
        installed = subprocess.run(["make", "-s", "--no-print-directory", *part.needs], cwd=TOP, check=False)
        if installed.returncode:
            return Result(part.name, installed.returncode, time.monotonic() - began)
    if part.command:
        code = subprocess.run(part.command, cwd=TOP, check=False).returncode
        return Result(part.name, code, time.monotonic() - began)
    report = RESULTS / f"{part.name}.xml"
    report.unlink(missing_ok=True)
    record = RESULTS / f"all-{part.name}.json"
    options = ["-n", workers, "--hypothesis-profile=nightly", f"--junitxml={report}", f"--workload={record}"]
    code = subprocess.run([sys.executable, "-m", "pytest", *options, *part.tests], cwd=TOP, check=False).returncode
    return Result(part.name, code, time.monotonic() - began, *counts(report))


def counts(report: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped tests of a JUnit report; zeros if the run did not come so far."""
    if not report.is_file():
        return 0, 0, 0
    try:
        (suite,) = ElementTree.parse(report).getroot().iter("testsuite")  # noqa: S314  pytest wrote it just now
    except (ElementTree.ParseError, ValueError):  # pytest was killed while it wrote
        return 0, 0, 0
    total, failed, errors, skipped = (int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped"))
    return total - failed - errors - skipped, failed + errors, skipped


def summary(results: Sequence[Result]) -> str:
    lines = [
        "",
        "| slice | result | passed | failed | skipped | minutes |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for each in results:
        said = "FAILED" if each.code else "passed" if each.seconds < LONGEST else "passed, but too long"
        numbers = f"{each.passed:,} | {each.failed:,} | {each.skipped:,} | {each.seconds / 60:.1f}"
        lines.append(f"| {each.name} | {said} | {numbers} |")
    passed, failed, skipped = (sum(getattr(each, name) for each in results) for name in ("passed", "failed", "skipped"))
    minutes = sum(each.seconds for each in results) / 60
    lines.append(f"| all | | {passed:,} | {failed:,} | {skipped:,} | {minutes:.1f} |")
    return "\n".join([*lines, "", f"{passed} passed, {failed} failed, {skipped} skipped"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
