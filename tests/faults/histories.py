"""Operation histories in files that survive a killed client: a line for each call and each answer."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path

from interlock.core.approval.approval import Approval
from interlock.core.errors import Error, StoreUnavailable
from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting
from tests.faults.linearizability import RecordedOperation
from tests.models.model import ModelAnswer, Operation

SHARDS = 16  # files; an approval's history lies in one, so that one after the other can be checked
LOST = ModelAnswer("lost")


class Recorder:
    """Lines of several processes in one file are whole, since each is one append.

    `name` is that of one recorder for ever: process numbers come round again in a long run.
    """

    def __init__(self, folder: Path, name: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._files = [os.open(folder / f"history-{n}", flags, 0o600) for n in range(SHARDS)]
        self._keys = itertools.count()
        self.name = name

    async def record(self, number: int, op: Operation, work: Callable[[], Awaitable[ModelAnswer]]) -> ModelAnswer:
        """The answer to the operation; `LOST` if it is unknown."""
        key, file = f"{self.name}.{next(self._keys)}", self._files[number % SHARDS]
        os.write(file, b"%s\n" % json.dumps([number, key, *_now(), op]).encode())
        try:
            answer = await work()
        except StoreUnavailable:
            return LOST
        except Error as error:
            answer = answer_from_error(error)
        clock, wall = _now()
        os.write(file, b"%s\n" % json.dumps([number, key, clock, wall + 1, None, answer]).encode())
        return answer


def read_histories(path: Path) -> dict[int, list[RecordedOperation]]:
    """By approval. What was called and never answered is there without an answer."""
    calls: dict[str, tuple[int, RecordedOperation]] = {}
    with path.open() as lines:
        for line in lines:
            number, key, clock, wall, op, *answer = json.loads(line)
            if op is not None:
                calls[key] = number, RecordedOperation(Operation(*op), clock, wall)
            else:
                calls[key] = number, calls[key][1]._replace(answered=clock, late=wall, answer=ModelAnswer(*answer[0]))
    found: dict[int, list[RecordedOperation]] = defaultdict(list)
    for number, each in calls.values():
        found[number].append(each)
    return found


def split_reads(history: list[RecordedOperation]) -> list[RecordedOperation]:
    """A proposal is two steps, and others may come between them: the call is known, then the agent hears how it is."""
    heard = [
        each._replace(op=Operation("hear"))
        for each in history
        if each.op.name == "propose" and each.answer is not None and each.answer.code == "ok"
    ]
    known = [
        each._replace(answer=ModelAnswer(each.answer.code)) if each.op.name == "propose" and each.answer else each
        for each in history
    ]
    return known + heard


def count_answers(histories: dict[int, list[RecordedOperation]]) -> Counter[str]:
    """How often each operation had each answer."""
    return Counter(
        f"{each.op.name} {each.answer.code if each.answer else 'lost'}"
        for history in histories.values()
        for each in history
    )


def answer_from_approval(approval: Approval) -> ModelAnswer:
    """The full answer to a caller, with the deadline of the status."""
    until = {
        "rejected": approval.deadlines.release_at,
        "approved": approval.deadlines.start_by,
        "running": approval.lease.until,
    }
    return ModelAnswer(
        "ok",
        approval.status,
        approval.version,
        short_digest(approval.args_sha256),
        approval.decision.by if approval.decision else "",
        approval.lease.fence,
        approval.deadlines.expires_at,
        until.get(approval.status),
    )


def answer_from_outcome(outcome: Outcome) -> ModelAnswer:
    """What the agent hears, in the words of the statuses."""
    match outcome:
        case Proceed():
            return ModelAnswer("ok", "approved")
        case Answered():
            return ModelAnswer("ok", "responded")
        case Waiting() | Finished() | Refused():
            return ModelAnswer("ok", outcome.status)


def answer_from_error(error: Error) -> ModelAnswer:
    if error.code != "already_decided":
        return ModelAnswer(error.code)
    decision = error.ids["decision"]
    by = str(decision["by"]) if isinstance(decision, dict) else ""
    return ModelAnswer(error.code, str(error.ids["status"]), by=by)


def short_digest(digest: str) -> str:
    """Enough to tell the arguments of one approval apart."""
    return digest[:12]


def _now() -> tuple[int, int]:
    """One clock for all processes of a machine, and the milliseconds that deadlines go by, which some round up."""
    return time.monotonic_ns(), time.time_ns() // 1_000_000
