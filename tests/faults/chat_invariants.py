"""Invariants of chat threads after any fault."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from interlock.app.audit import verify
from interlock.config.agents import AGENT_TOOL_PREFIX
from interlock.core.canonical import digest
from interlock.core.chat.thread import Thread, ThreadEntry
from interlock.core.chat.transcript import MISSING_RESULT, ToolResult, prompt_messages
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from interlock.storage.store import SqlStore
from tests.faults.chat_agent import prompt_digest
from tests.faults.processes import read_lines

PAGE = 500
ENDS = {"succeeded", "failed", "unknown", "rejected", "cancelled", "expired", "responded"}
NOT_RUN = {"rejected", "cancelled", "expired", "responded"}
FIRST = (2**62, "")


@dataclass(frozen=True)
class ThreadTranscript:
    """A thread and all its lines."""

    thread: Thread
    entries: Sequence[ThreadEntry]


@dataclass(frozen=True)
class Facts:
    """What the database says, and what was seen outside of it; `late` are processes that stood still for too long."""

    threads: Mapping[str, ThreadTranscript]
    calls: Mapping[str, Stored]
    effects: Sequence[Sequence[str]]
    turns: Sequence[Sequence[str]]
    late: frozenset[str]


async def find_violations(store: SqlStore, workspace: str, folder: Path) -> list[str]:
    try:
        found = [fault.message for fault in (await verify(store, workspace)).violations]
        facts = await read_facts(store, workspace, folder)
    except Exception as error:  # noqa: BLE001  any error is a violation
        return [f"the database cannot be read: {error!r}"]
    return [*found, *check_facts(facts)]


async def read_facts(store: SqlStore, workspace: str, folder: Path) -> Facts:
    threads: dict[str, ThreadTranscript] = {}
    async for thread in read_threads(store, workspace):
        threads[thread.id] = ThreadTranscript(thread, await store.threads.entries(workspace, thread.id))
    calls = {stored.approval.id: stored async for stored in read_calls(store, workspace)}
    late = frozenset(word for each in read_lines(folder / "late.txt") for word in each)
    return Facts(threads, calls, read_lines(folder / "effects.txt"), read_lines(folder / "turns.txt"), late)


async def read_threads(store: SqlStore, workspace: str) -> Any:
    before = FIRST
    while page := await store.threads.list_all(workspace, before, PAGE):
        for thread in page:
            yield thread
            for child in await store.threads.children(workspace, thread.id):
                yield child
        before = (page[-1].updated_at, page[-1].id)


async def read_calls(store: SqlStore, workspace: str) -> Any:
    cursor: str | None = ""
    while cursor is not None:
        page = await store.list(workspace, ApprovalQuery(limit=PAGE, payload="whole", cursor=cursor or None))
        for stored in page.items:
            yield stored
        cursor = page.next


def check_facts(facts: Facts) -> Iterator[str]:
    effects: dict[str, list[Sequence[str]]] = defaultdict(list)
    for each in facts.effects:
        effects[each[0]].append(each)
    if not facts.threads:
        yield "nobody said anything"
    for answers in facts.threads.values():
        yield from check_thread(answers)
        yield from check_parent_entries(answers, facts)
    for stored in facts.calls.values():
        if stored.approval.subject.tool.startswith(AGENT_TOOL_PREFIX):
            yield from check_delegation(stored, facts)
        else:
            yield from check_call(stored, effects[stored.approval.id])
    yield from (f"{tool} ran without an approval" for key, tool, *_ in facts.effects if key not in facts.calls)
    yield from check_reported_outcomes(facts)
    yield from check_repeated_turns(facts)


def check_thread(answers: ThreadTranscript) -> Iterator[str]:
    """It rests, and each call of each reply has one result."""
    if answers.thread.status != "idle":
        yield f"a thread is stuck as {answers.thread.status}"
    if [line.number for line in answers.entries] != list(range(1, answers.thread.entry_count + 1)):
        yield "a line is missing"
    last = answers.entries[-1].kind if answers.entries else ""
    if last not in ("ended", "asked", "decided"):  # of a child that went on behind the end
        yield f"a turn ended with {last}"
    results = Counter[tuple[int, str]]()
    reply = 0
    for line in answers.entries:
        reply = line.number if line.kind == "replied" else reply
        if line.kind == "resulted":
            results[reply, str(line.body["call"])] += 1
    wished = {
        (line.number, str(tool_request[0]))
        for line in answers.entries
        if line.kind == "replied"
        for tool_request in cast(list[list[str]], line.body["wishes"])
    }
    yield from (f"{call} of line {n} has {results[n, call]} results" for n, call in wished if results[n, call] != 1)
    yield from (f"{call} of line {n} was never called" for n, call in results if (n, call) not in wished)
    if any(each.content == MISSING_RESULT for each in prompt_messages(answers.entries) if isinstance(each, ToolResult)):
        yield "the model is told that there is no record of a result"


def check_parent_entries(answers: ThreadTranscript, facts: Facts) -> Iterator[str]:
    """What people were asked about in a child is shown once in the thread that its person reads."""
    root = answers.thread
    while root.parent:
        root = facts.threads[root.parent].thread
    if root is answers.thread:
        return
    for kind in ("asked", "decided"):
        own = Counter(
            str(line.body["approval"])
            for line in answers.entries
            if line.kind == kind and (kind == "decided" or line.body["status"] == "pending")
        )
        above = Counter(
            str(line.body["approval"])
            for line in facts.threads[root.id].entries
            if line.kind == kind and line.body.get("child") == answers.thread.id
        )
        if own != above:
            yield f"a card of a child is {kind} {sum(own.values())} times, and shown {sum(above.values())} times"


def check_call(stored: Stored, effects: Sequence[Sequence[str]]) -> Iterator[str]:
    approval, tool = stored.approval, stored.approval.subject.tool
    if approval.status not in ENDS:
        yield f"{tool} is stuck as {approval.status}"
    if len(effects) > 1 and not approval.subject.idempotent:
        yield f"{tool} ran {len(effects)} times"
    if any(digest(each[2].encode()) != approval.args_sha256 for each in effects):
        yield f"{tool} ran with other arguments than were approved"
    if approval.status == "succeeded" and not effects:
        yield f"{tool} is recorded as done, and was not"
    if effects and approval.status in NOT_RUN:
        yield f"{tool} is {approval.status}, and ran"
    if effects and approval.subject.idempotent and approval.status == "unknown":
        yield f"{tool} may be repeated, and is unknown"


def check_delegation(stored: Stored, facts: Facts) -> Iterator[str]:
    """A sub-agent that people were asked about: its thread is there once it has begun, and only then."""
    approval = stored.approval
    if approval.status not in ENDS - {"unknown"}:
        yield f"{approval.subject.tool} is stuck as {approval.status}"
    begun = approval.subject.call_id in {
        find_call(answers.thread, facts)
        for answers in facts.threads.values()
        if answers.thread.parent == approval.subject.run_id
    }
    if begun != (approval.status == "succeeded"):
        yield f"{approval.subject.tool} is {approval.status}, and its thread is {'there' if begun else 'not there'}"


def find_call(child: Thread, facts: Facts) -> str:
    """The call as the gate knows it; ids repeat in each reply, so that it is the last one before the child."""
    above = facts.threads[child.parent].entries
    replies = [line.number for line in above if line.kind == "replied" and line.at <= child.created_at]
    return f"{replies[-1] if replies else 0}:{child.parent_call}"


def check_reported_outcomes(facts: Facts) -> Iterator[str]:
    """The result for the model agrees with the outcome of the call."""
    for answers in facts.threads.values():
        for line in answers.entries:
            if line.kind == "resulted" and line.body.get("approval"):
                stored = facts.calls[str(line.body["approval"])]
                if line.body["status"] != stored.approval.status:
                    yield f"{line.body['tool']} is told as {line.body['status']}, and is {stored.approval.status}"


def check_repeated_turns(facts: Facts) -> Iterator[str]:
    """No turn is made whose reply was recorded before. Who stood still cannot know that, and writes nothing."""
    recorded: dict[str, int] = {}
    for answers in facts.threads.values():
        for line in answers.entries:
            if line.kind == "replied":
                known = [each for each in answers.entries if each.number <= cast(int, line.body["seen"])]
                mark = prompt_digest(prompt_messages(known))
                if mark in recorded:
                    yield "one turn was recorded twice"
                recorded[mark] = line.at
    made = {mark for mark, *_ in facts.turns}
    yield from ("a reply is recorded that no model made" for mark in recorded if mark not in made)
    yield from (
        "a turn was made whose reply was recorded"
        for mark, at, who in facts.turns
        if who not in facts.late and int(at) > recorded.get(mark, int(at))
    )
