"""Verification jobs: verify ledgers in a separate process, one at a time, and keep the last result in memory.

`python -m interlock.server.audit_jobs` is that process: JSON input on stdin, progress and report as JSON lines on
stdout. The database URL may hold a password, so it is not a command-line argument, which every user of the machine
could read. It does not load the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from interlock.app.audit import verify
from interlock.app.bootstrap import build_services, missing_database_file
from interlock.core.card import escape_invisible
from interlock.core.errors import Conflict, Error
from interlock.core.ledger.chain import Head
from interlock.core.ledger.invariants import Violation
from interlock.runtime.durations import rfc3339

if TYPE_CHECKING:
    from interlock.server.state import ServerState

JOB_TIMEOUT = 600.0  # seconds
MAX_REMEMBERED = 1_000  # workspaces whose last job is remembered
MAX_REPORT_BYTES = 2**22  # bytes of a report
WORKER_COMMAND = (sys.executable, "-m", "interlock.server.audit_jobs")
PROGRESS_INTERVAL = 0.2  # seconds between two progress lines
MAX_VIOLATIONS = 100  # reported at most; one altered entry breaks every link after it
MAX_MESSAGE = 1_000
NICENESS = 5  # the server has priority
DATABASE_MISSING = "The database is not where the configuration says. Put it back, then try again."
JOB_CRASHED = "The check broke off, and nothing was found out. Try again."


@dataclass
class VerificationJob:
    """One verification. `report` is the worker's result; `error` says why there is none."""

    by: str
    began: int
    _: KW_ONLY
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    report: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def state(self) -> str:
        if self.error:
            return "failed"
        if not self.report:
            return "running"
        return "valid" if self.report["valid"] else "invalid"

    def to_json(self) -> dict[str, object]:
        report, head = self.report, self.report.get("head")
        return {
            "state": self.state,
            "by": self.by,
            "began": rfc3339(self.began),
            "seconds": round(self.seconds, 3),
            "done": self.done,
            "of": self.total,
            "entries": report.get("entries", 0),
            "approvals": report.get("approvals", 0),
            "erased": report.get("erased", 0),
            "head": head and {"seq": head["seq"], "link": head["link"], "at": rfc3339(head["at"])},
            "fault_count": report.get("fault_count", 0),
            "faults": report.get("faults", []),
            "problem": self.error,
        }


class VerificationJobs:
    """Verification jobs of this process, in memory. Each also checks the head of the workspace's last valid job."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._workspace = ""
        self._running: VerificationJob | None = None
        self._task: asyncio.Task[None] | None = None
        self._last: dict[str, VerificationJob] = {}
        self._last_valid_heads: dict[str, Head] = {}

    def to_json(self, workspace: str) -> dict[str, object]:
        last = self._last.get(workspace)
        now = self._running if self._workspace == workspace else None
        return {"running": now and now.to_json(), "last": last and last.to_json()}

    def start(self, workspace: str, by: str) -> None:
        if self._running is not None:
            raise Conflict("A ledger is being verified already. Wait until that is done.")
        self._workspace, self._running = workspace, VerificationJob(by, self._state.clock())
        self._task = asyncio.create_task(self._run(workspace, self._running))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, workspace: str, job: VerificationJob) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(JOB_TIMEOUT):
                await self._run_worker(workspace, job)
        except TimeoutError:
            job.error = f"The check took longer than {JOB_TIMEOUT:.0f} seconds. Verify with: interlock audit verify"
        except (OSError, ValueError) as error:
            self._state.log.write_exception("verify_failed", error)
        finally:
            job.seconds = loop.time() - begun
            job.error = job.error or ("" if job.report else JOB_CRASHED)
            self._running = None
            self._remember(workspace, job)

    async def _run_worker(self, workspace: str, job: VerificationJob) -> None:
        if missing_database_file(self._state.settings.storage.url) is not None:
            job.error = DATABASE_MISSING
            return
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*WORKER_COMMAND, stdin=pipe, stdout=pipe, limit=MAX_REPORT_BYTES)
        assert process.stdin is not None  # noqa: S101  it is a pipe
        assert process.stdout is not None  # noqa: S101  it is a pipe
        try:
            process.stdin.write(json.dumps(self._worker_input(workspace)).encode())
            process.stdin.close()
            while line := await process.stdout.readline():
                progress = json.loads(line)
                job.done, job.total = progress.get("done", job.done), progress.get("of", job.total)
                job.report, job.error = progress.get("report", {}), progress.get("problem", "")
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _worker_input(self, workspace: str) -> dict[str, object]:
        good = self._last_valid_heads.get(workspace)
        return {"url": self._state.settings.storage.url, "workspace": workspace, "head": good and good.to_json()}

    def _remember(self, workspace: str, job: VerificationJob) -> None:
        if len(self._last) >= MAX_REMEMBERED and workspace not in self._last:
            forgotten = next(iter(self._last))
            del self._last[forgotten]
            self._last_valid_heads.pop(forgotten, None)
        self._last[workspace] = job
        if job.state == "valid":
            self._last_valid_heads[workspace] = Head(**job.report["head"])


def main() -> None:
    """The process of one job."""
    os.nice(NICENESS)
    wanted = json.load(sys.stdin)
    try:
        _print_json(report=asyncio.run(_verify(**wanted)))
    except Error as error:
        _print_json(problem=error.message)


async def _verify(url: str, workspace: str, head: dict[str, Any] | None) -> dict[str, object]:
    last = 0.0

    def progress(done: int, of: int) -> None:
        nonlocal last
        if monotonic() - last >= PROGRESS_INTERVAL:
            last = monotonic()
            _print_json(done=done, of=of)

    store = build_services(url).store
    await store.open()
    try:
        report = await verify(store, workspace, Head(**head) if head else None, progress)
    finally:
        await store.close()
    told = report.to_json()
    return {
        **told,
        "faults": [_violation_json(violation) for violation in report.violations[:MAX_VIOLATIONS]],
        "fault_count": len(report.violations),
    }


def _violation_json(violation: Violation) -> dict[str, object]:
    told = {
        name: escape_invisible(str(text))[:MAX_MESSAGE] for name, text in violation.to_json().items() if name != "seq"
    }
    return {"seq": violation.seq, **told}


def _print_json(**fields: object) -> None:
    print(json.dumps(fields), flush=True)  # noqa: T201  the parent process reads this


if __name__ == "__main__":
    main()
