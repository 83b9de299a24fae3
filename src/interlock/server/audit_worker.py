"""Worker process that verifies a ledger: JSON input on stdin, progress and report as JSON lines on stdout.

The database URL may hold a password, so it is not a command-line argument, which every user of the machine could read.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from time import monotonic
from typing import Any

from interlock.app.audit import verify
from interlock.app.bootstrap import build_services
from interlock.core.card import visible
from interlock.core.errors import Error
from interlock.core.ledger.chain import Head
from interlock.core.ledger.invariants import Violation

PROGRESS_INTERVAL = 0.2  # seconds between two progress lines
MAX_VIOLATIONS = 100  # reported at most; one altered entry breaks every link after it
MAX_MESSAGE = 1_000
NICENESS = 5  # the server has priority


def main() -> None:
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
    told = {name: visible(str(text))[:MAX_MESSAGE] for name, text in violation.to_json().items() if name != "seq"}
    return {"seq": violation.seq, **told}


def _print_json(**fields: object) -> None:
    print(json.dumps(fields), flush=True)  # noqa: T201  the parent process reads this


if __name__ == "__main__":
    main()
