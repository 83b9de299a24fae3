"""Runs programs of `load.py`, and checks afterwards the answers that they logged."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.app.audit import verify
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.ports import ApprovalQuery

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE = 60.0  # seconds after which something counts as stuck
LATER_STATUSES = {
    "pending": {"pending", "approved", "running", "succeeded", "unknown", "expired"},
    "approved": {"approved", "running", "succeeded", "unknown", "expired"},
    "running": {"running", "succeeded", "unknown"},
    "ran": {"running", "succeeded", "unknown"},
    "succeeded": {"succeeded"},
}


class ProgressTimeout(Exception):
    """A program made no progress, which is a violation."""


@dataclass
class LoadPrograms:
    """Programs under way."""

    logs: list[Path]
    programs: list[subprocess.Popen[bytes]]
    exit_codes: list[int] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    patience: float = PATIENCE

    def wait_for_lines(self, by: int = 20, what: str = "") -> None:
        """Waits until every program has written more lines that begin or end so, and so has met what happened."""
        before, deadline = self.count_lines(what), time.monotonic() + self.patience
        while any(now < then + by for now, then in zip(self.count_lines(what), before, strict=True)):
            if any(program.poll() is not None for program in self.programs):
                raise ProgressTimeout("a program ended by itself")
            if time.monotonic() > deadline:
                raise ProgressTimeout(f"the programs do not go on by themselves: {self.last_lines()}")
            time.sleep(0.01)

    def count_lines(self, what: str) -> list[int]:
        return [sum(what in line for line in read_lines(path)) for path in self.logs]

    def last_lines(self) -> list[str]:
        return [line for path in self.logs for line in read_lines(path)[-3:]]


@contextmanager
def run_load(
    url: str, folder: Path, count: int, *options: str, source: Path = REPOSITORY / "src"
) -> Iterator[LoadPrograms]:
    """So many programs at work; leaving closes their input, by which they come to an end."""
    with ExitStack() as stack:
        made = LoadPrograms([], [])
        for _ in range(count):
            start_program(made, url, folder, *options, source=source)
        try:
            yield made
        except ProgressTimeout as stuck:
            made.stuck.append(str(stuck))
        finally:
            for program in made.programs:
                stack.enter_context(program)
                if program.stdin is not None:
                    program.stdin.close()
            made.exit_codes = [program.wait(PATIENCE * 2) for program in made.programs]


def start_program(made: LoadPrograms, url: str, folder: Path, *options: str, source: Path = REPOSITORY / "src") -> None:
    answers = folder / f"told{len(made.logs)}.txt"
    command = [sys.executable, "-m", "tests.faults.load", url, str(answers), *options]
    environment = {**os.environ, "PYTHONPATH": f"{source}:{REPOSITORY}"}
    made.logs.append(answers)
    made.programs.append(subprocess.Popen(command, cwd=source, env=environment, stdin=subprocess.PIPE))


def read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def check_load(url: str, made: LoadPrograms, allowed: Sequence[str] = ()) -> dict[str, Any]:
    """Checks the invariants. `allowed` are the errors that callers may get."""
    return asyncio.run(_check_load(url, made, allowed))


async def _check_load(url: str, made: LoadPrograms, allowed: Sequence[str]) -> dict[str, Any]:
    told = [line for path in made.logs for line in read_lines(path)]
    errors = Counter(line.split()[1] for line in told if line.startswith("error"))
    answers = [
        line
        for line in told
        if line.split()[1] in LATER_STATUSES and not line.startswith("read") and " ran " not in line
    ]
    wrong = made.stuck + [f"a program ended with {code}" for code in made.exit_codes if code]
    wrong += [line for line in told if line.startswith("error") and line.split()[1] not in allowed]
    try:
        wrong += await find_violations(url, told)
    except Exception as error:  # noqa: BLE001  what cannot be judged is not right
        wrong.append(f"{type(error).__name__}: {error}")
    operations = len(answers) + sum(errors.values())
    return {"operations": operations, "succeeded": len(answers), "errors": dict(errors), "wrong": wrong}


async def find_violations(url: str, answers: Sequence[str]) -> list[str]:
    services = build_services(url)
    await services.store.open()
    try:
        report = await verify(services.store, "default")
        return (
            lost_answers(answers, await read_statuses(services))
            + double_runs(answers)
            + [fault.message for fault in report.violations]
        )
    finally:
        await services.store.close()


async def read_statuses(services: AppServices) -> Mapping[str, str]:
    found: dict[str, str] = {}
    page = await services.store.list("default", ApprovalQuery(limit=500))
    while True:
        found |= {stored.approval.id: stored.approval.status for stored in page.items}
        if not page.next:
            return found
        page = await services.store.list("default", ApprovalQuery(limit=500, cursor=page.next))


def lost_answers(answers: Sequence[str], rows: Mapping[str, str]) -> list[str]:
    """What was acknowledged is what the row says, or led to it; what ran had been started."""
    wrong = []
    for line in answers:
        approval_id, said = line.split()[:2]
        if (
            said in LATER_STATUSES
            and approval_id != "read"
            and rows.get(approval_id, "gone") not in LATER_STATUSES[said]
        ):
            wrong.append(f"{approval_id} was {said} and is {rows.get(approval_id, 'gone')}")
    return wrong


def double_runs(answers: Sequence[str]) -> list[str]:
    ran = Counter(line.split()[0] for line in answers if " ran " in line)
    again = [f"{approval_id} ran {count} times" for approval_id, count in ran.items() if count > 1]
    return again + [line for line in answers if line.endswith("something else")]
