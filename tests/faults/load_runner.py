"""Starts programs of `load.py`, and judges afterwards what they were told."""

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

TOP = Path(__file__).resolve().parents[2]
PATIENCE = 60.0  # seconds after which something counts as stuck
FOLLOWS = {
    "pending": {"pending", "approved", "running", "succeeded", "unknown", "expired"},
    "approved": {"approved", "running", "succeeded", "unknown", "expired"},
    "running": {"running", "succeeded", "unknown"},
    "ran": {"running", "succeeded", "unknown"},
    "succeeded": {"succeeded"},
}


class Stuck(Exception):
    """A program that did not go on by itself, which is a broken law like any other."""


@dataclass
class Loads:
    """Programs under way."""

    told: list[Path]
    programs: list[subprocess.Popen[bytes]]
    ended: list[int] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    patience: float = PATIENCE

    def grow(self, by: int = 20, what: str = "") -> None:
        """Waits until every program has written more lines that begin or end so, and so has met what happened."""
        before, deadline = self.count(what), time.monotonic() + self.patience
        while any(now < then + by for now, then in zip(self.count(what), before, strict=True)):
            if any(program.poll() is not None for program in self.programs):
                raise Stuck("a program ended by itself")
            if time.monotonic() > deadline:
                raise Stuck(f"the programs do not go on by themselves: {self.tail()}")
            time.sleep(0.01)

    def count(self, what: str) -> list[int]:
        return [sum(what in line for line in lines(path)) for path in self.told]

    def tail(self) -> list[str]:
        return [line for path in self.told for line in lines(path)[-3:]]


@contextmanager
def loads(url: str, folder: Path, count: int, *options: str, source: Path = TOP / "src") -> Iterator[Loads]:
    """So many programs at work; leaving closes their input, by which they come to an end."""
    with ExitStack() as stack:
        made = Loads([], [])
        for _ in range(count):
            start(made, url, folder, *options, source=source)
        try:
            yield made
        except Stuck as stuck:
            made.stuck.append(str(stuck))
        finally:
            for program in made.programs:
                stack.enter_context(program)
                if program.stdin is not None:
                    program.stdin.close()
            made.ended = [program.wait(PATIENCE * 2) for program in made.programs]


def start(made: Loads, url: str, folder: Path, *options: str, source: Path = TOP / "src") -> None:
    told = folder / f"told{len(made.told)}.txt"
    command = [sys.executable, "-m", "tests.faults.load", url, str(told), *options]
    environment = {**os.environ, "PYTHONPATH": f"{source}:{TOP}"}
    made.told.append(told)
    made.programs.append(subprocess.Popen(command, cwd=source, env=environment, stdin=subprocess.PIPE))


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def judge(url: str, made: Loads, allowed: Sequence[str] = ()) -> dict[str, Any]:
    """The laws. `allowed` are the errors that callers may hear of."""
    return asyncio.run(_judge(url, made, allowed))


async def _judge(url: str, made: Loads, allowed: Sequence[str]) -> dict[str, Any]:
    told = [line for path in made.told for line in lines(path)]
    errors = Counter(line.split()[1] for line in told if line.startswith("error"))
    answers = [
        line for line in told if line.split()[1] in FOLLOWS and not line.startswith("read") and " ran " not in line
    ]
    wrong = made.stuck + [f"a program ended with {code}" for code in made.ended if code]
    wrong += [line for line in told if line.startswith("error") and line.split()[1] not in allowed]
    try:
        wrong += await broken_laws(url, told)
    except Exception as error:  # noqa: BLE001  what cannot be judged is not right
        wrong.append(f"{type(error).__name__}: {error}")
    operations = len(answers) + sum(errors.values())
    return {"operations": operations, "succeeded": len(answers), "errors": dict(errors), "wrong": wrong}


async def broken_laws(url: str, told: Sequence[str]) -> list[str]:
    parts = build_services(url)
    await parts.store.open()
    try:
        report = await verify(parts.store, "default")
        return lost(told, await statuses(parts)) + twice(told) + [fault.message for fault in report.violations]
    finally:
        await parts.store.close()


async def statuses(parts: AppServices) -> Mapping[str, str]:
    found: dict[str, str] = {}
    page = await parts.store.list("default", ApprovalQuery(limit=500))
    while True:
        found |= {stored.approval.id: stored.approval.status for stored in page.items}
        if not page.next:
            return found
        page = await parts.store.list("default", ApprovalQuery(limit=500, cursor=page.next))


def lost(told: Sequence[str], rows: Mapping[str, str]) -> list[str]:
    """What was acknowledged is what the row says, or led to it; what ran had been started."""
    wrong = []
    for line in told:
        approval_id, said = line.split()[:2]
        if said in FOLLOWS and approval_id != "read" and rows.get(approval_id, "gone") not in FOLLOWS[said]:
            wrong.append(f"{approval_id} was {said} and is {rows.get(approval_id, 'gone')}")
    return wrong


def twice(told: Sequence[str]) -> list[str]:
    ran = Counter(line.split()[0] for line in told if " ran " in line)
    again = [f"{approval_id} ran {count} times" for approval_id, count in ran.items() if count > 1]
    return again + [line for line in told if line.endswith("something else")]
