"""Invariants after any fault, checked against effects recorded outside the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from interlock.app.audit import verify
from interlock.app.bootstrap import AppServices, build_services
from interlock.app.ledger_file import ExportFile, verify_exports
from interlock.core.canonical import digest
from interlock.core.ledger.chain import Entry
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from tests.faults.processes import Scenario, read_lines

RAN = {"succeeded", "failed", "unknown"}
ENDS = {  # of each victim: in what states its calls may come to rest
    "program": {"send": RAN, "put": {"succeeded", "failed"}, "aside": {"cancelled"}},
    "desk": {"pay": {*RAN, "cancelled"}, "aside": {"cancelled"}},
    "opener": {"pay": RAN},
    "reviewer": {"aside": {"approved", "cancelled"}},
    "worker": {"climb": {"pending"}, "expire": {"expired"}, "lapse": {"expired"}, "lose": {"unknown"}}
    | {"dead": {"unknown"}, "aside": {"cancelled"}},
    "files": {"aside": {"approved", "cancelled"}},
}
ONCE = {"worker": ("reminded", "escalated", "expired", "lapsed", "lost")}


@dataclass(frozen=True)
class Facts:
    """What the database says, and what was noted outside of it."""

    victim: str
    calls: Sequence[tuple[Stored, Sequence[Entry]]]
    effects: Sequence[Sequence[str]]
    acknowledgements: Sequence[Sequence[str]]


async def find_violations(services: AppServices, scenario: Scenario, victim: str) -> list[str]:
    """The ledger first, then each call, then each acknowledgement."""
    try:
        found = [fault.message for fault in (await verify(services.store, scenario.workspace)).violations]
        page = await services.store.list(scenario.workspace, ApprovalQuery(limit=500, payload="whole"))
        calls = [(each, await services.store.timeline(scenario.workspace, each.approval.id)) for each in page.items]
    except Exception as error:  # noqa: BLE001  any error is a violation
        return [f"the database cannot be read: {error!r}"]
    facts = Facts(victim, calls, read_lines(scenario.effects), read_lines(scenario.acknowledgements))
    return [*found, *check_facts(facts)]


def check_facts(facts: Facts) -> Iterator[str]:
    known = {stored.approval.id for stored, _ in facts.calls}
    for stored, entries in facts.calls:
        yield from check_call(facts, stored, [entry.kind for entry in entries])
    yield from (f"{each[1]} ran without an approval" for each in facts.effects if each[0] not in known)
    yield from check_acknowledged(facts)
    yield from check_asked_once(facts)
    if not facts.calls:
        yield "nothing was asked at all"


def check_call(facts: Facts, stored: Stored, kinds: Sequence[str]) -> Iterator[str]:
    approval, tool = stored.approval, stored.approval.subject.tool
    effects = [each for each in facts.effects if each[0] == approval.id]
    if approval.status not in ENDS[facts.victim].get(tool, ()):
        yield f"{tool} is stuck as {approval.status}"
    if len(effects) > 1 and not approval.subject.idempotent:
        yield f"{tool} ran {len(effects)} times"
    if any(digest(each[2].encode()) != approval.args_sha256 for each in effects):
        yield f"{tool} ran with other arguments than were approved"
    if effects and "started" not in kinds:
        yield f"{tool} ran and was never started"
    if approval.status == "succeeded" and not effects:
        yield f"{tool} is recorded as done, and was not"
    yield from check_unknown(facts, approval.id, approval.status, kinds)
    for kind, count in Counter(kinds).items():
        if count > 1 and kind in ONCE.get(facts.victim, ()):
            yield f"{tool} was {kind} {count} times"


def check_unknown(facts: Facts, approval_id: str, status: str, kinds: Sequence[str]) -> Iterator[str]:
    """An unknown call was started, and nobody got an acknowledgement of its end."""
    if status == "unknown" and "started" not in kinds:
        yield "a call is unknown that was never started"
    if status == "unknown" and ["done", approval_id] in facts.acknowledgements:
        yield "a call is unknown of which the program was told that it was done"
    if "lost" in kinds and set(kinds[kinds.index("lost") :]) & {"succeeded", "failed"}:
        yield "a late finish was taken"


def check_acknowledged(facts: Facts) -> Iterator[str]:
    """No acknowledged decision or result is lost."""
    by_id = {stored.approval.id: (stored, entries) for stored, entries in facts.calls}
    for verb, *rest in facts.acknowledgements:
        if verb == "done" and (rest[0] not in by_id or by_id[rest[0]][0].approval.status != "succeeded"):
            yield "a call that was finished is not recorded as done"
        if verb == "decided":
            approval_id, wanted, by = rest
            entries = by_id[approval_id][1] if approval_id in by_id else ()
            if not any(entry.kind in wanted.split(",") and entry.actor == by for entry in entries):
                yield f"a decision that was acknowledged is lost: {wanted} by {by}"


def check_asked_once(facts: Facts) -> Iterator[str]:
    """A program that starts again asks people nothing twice, unless the call failed."""
    calls = Counter(
        (stored.approval.subject.tool, stored.approval.args_sha256)
        for stored, _ in facts.calls
        if stored.approval.status != "failed" and facts.victim == "program" and stored.approval.status != "cancelled"
    )
    yield from (f"{tool} was asked about {count} times" for (tool, _), count in calls.items() if count > 1)


async def check_files(scenario: Scenario) -> list[str]:
    """A file under its final name is whole; what is not whole has another name."""
    wrong = []
    names = {path.name for path in scenario.folder.iterdir()} - {"told.txt", "effects.txt", "recovery.txt"}
    wrong += [f"{name} was left behind" for name in names - {"ledger.txt", "copy.db"} if ".part" not in name]
    if "ledger.txt" in names:
        with (scenario.folder / "ledger.txt").open("rb") as file:
            try:
                report, heads = await verify_exports([ExportFile("ledger.txt", file)], None, lambda _: "")
                wrong += [fault.message for fault in report.violations] + ([] if heads else ["the export has no head"])
            except Exception as error:  # noqa: BLE001  as above
                wrong.append(f"half an export looks whole: {error!r}")
    if "copy.db" in names:
        wrong += await check_backup(scenario, scenario.folder / "copy.db")
    return wrong


async def check_backup(scenario: Scenario, path: Path) -> list[str]:
    services = build_services(f"sqlite:///{path}")
    try:
        await services.store.open()
        wrong = [fault.message for fault in (await verify(services.store, scenario.workspace)).violations]
        wrong += [] if (await services.store.head(scenario.workspace)).seq else ["the backup is empty"]
        await services.store.close()
    except Exception as error:  # noqa: BLE001  as above
        wrong = [f"half a backup looks whole: {error!r}"]
    for extra in path.parent.glob("copy.db?*"):
        if ".part" not in extra.name:
            extra.unlink()
    return wrong
