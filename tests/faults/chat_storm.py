"""Many threads, several processes that work at them, people who decide at random, and kills:

    python -m tests.faults.chat_storm [--database sqlite|postgresql] [--kills N] [--seed N] [--broken NAME]

Workers are killed (SIGKILL) or made to stand still for longer than their leases (SIGSTOP), and started again. Every
turn of the model and every effect is a line in a file outside. Afterwards all threads have to come to their end, and
the laws of `chat_laws` hold for each. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import interlock.storage.postgres.database  # noqa: F401  loaded once: all processes run the same code
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.call import QUESTION_TOOL
from interlock.core.decision import Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.errors import Error
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from tests.faults import chat_controls, chat_reviewers
from tests.faults.chat_agent import Chat, Outside, chat_of, delegated, person
from tests.faults.chat_invariants import broken_laws
from tests.faults.processes import Life, end, note, start, wait_for
from tests.places import migrated
from tests.postgres import Server

WORKERS = 3
OPEN = 24  # threads that are under way at once
LEASE = 1_500  # milliseconds
STOPPED = 4.0  # seconds: others need some as well to take over what was let go, on a busy machine
WORKSPACE = "default"
DATABASE = "chat"
STALLED = 20.0  # seconds without any change once nobody is hit any more
HANGS = 240  # seconds after which it says where it stands, and ends
CONTROLS = {
    "no-fence": chat_controls.no_fence,
    "acts-first": chat_controls.acts_first,
    "deaf": chat_controls.deaf,
    "forgets-turns": chat_controls.forgets_turns,
}
BOB = Reviewer("bob", "admin", via="test")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.chat_storm")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", choices=sorted(CONTROLS))
    options = parser.parse_args()
    if options.broken:
        CONTROLS[options.broken]()
    with tempfile.TemporaryDirectory() as folder, opened(options.database, Path(folder)) as url:
        print(json.dumps(run(url, Path(folder), options)))


@contextmanager
def opened(database: str, folder: Path) -> Iterator[str]:
    if database == "sqlite":
        yield f"sqlite:///{folder}/chat.db"
        return
    with Server() as server:
        server.create_database(DATABASE, migrated(server))
        yield server.url(DATABASE)


def run(url: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    forked(lambda: asyncio.run(prepared(url, folder)))
    storm = Storm(url, folder, random.Random(options.seed))
    storm.blow(options.kills)
    stormed = time.monotonic() - began
    forked(lambda: asyncio.run(calmed(url, folder)))
    verdict: dict[str, Any] = json.loads((folder / "verdict.json").read_text())
    return {
        "suite": "chat-storm",
        "database": options.database,
        "operations": verdict["threads"],
        "succeeded": verdict["done"],
        "faults": storm.faults.total(),
        "wrong": verdict["wrong"][:20],
        "count": len(verdict["wrong"]),
        "seconds": round(time.monotonic() - began, 1),
        "stormed": round(stormed, 1),
        "kinds": dict(storm.faults),
        **{name: verdict[name] for name in ("turns", "effects", "statuses", "taken_over")},
    }


class Storm:
    """Starts the workers and the people, hits the workers, and starts them again."""

    def __init__(self, url: str, folder: Path, chance: random.Random) -> None:
        self.url, self.folder, self.chance = url, folder, chance
        self.faults = Counter[str]()
        self.still: dict[int, float] = {}  # who stands still, and until when

    def blow(self, kills: int) -> None:
        people = start(lambda: asyncio.run(crowd(self.url, self.folder, self.chance.getrandbits(32))))
        running = [self.worker() for _ in range(WORKERS)]
        try:
            while self.faults["kills"] < kills:
                time.sleep(self.chance.uniform(0.01, 0.25))
                self.wake()
                self.hit(self.chance.randrange(WORKERS), running)
        finally:
            (self.folder / "calm").touch()
            for pid in (*running, people):
                with suppress(ProcessLookupError):
                    end(pid)

    def worker(self) -> int:
        return start(lambda: asyncio.run(work(self.url, self.folder)))

    def hit(self, number: int, running: list[int]) -> None:
        """Mostly kills; who stands still is killed only after it woke up, so that it can do what it must not."""
        pid = running[number]
        if pid in self.still:
            return
        if self.chance.random() < 0.1 and len(self.still) < WORKERS - 1:
            note(Outside(self.folder).late, str(pid))
            os.kill(pid, signal.SIGSTOP)
            self.still[pid] = time.monotonic() + STOPPED
            self.faults["stops"] += 1
            return
        end(pid)
        self.faults["kills"] += 1
        running[number] = self.worker()

    def wake(self) -> None:
        for pid, until in list(self.still.items()):
            if time.monotonic() > until:
                del self.still[pid]
                os.kill(pid, signal.SIGCONT)


async def prepared(url: str, folder: Path) -> None:
    parts = build_services(url)
    await parts.store.open()
    await chat_reviewers.prepare(parts, Life(url, WORKSPACE, folder))
    await parts.store.close()


async def work(url: str, folder: Path) -> None:
    """As a server does: the loop, and the worker of deadlines."""
    parts, never = build_services(url), asyncio.Event()
    await parts.store.open()
    chat = chat_of(parts.store, Outside(folder), LEASE)
    await asyncio.gather(chat.loop.run(never), parts.worker.run(never))


# The people, none of whom is hit


async def crowd(url: str, folder: Path, seed: int) -> None:
    parts, chance = build_services(url), random.Random(seed)
    await parts.store.open()
    chat = chat_of(parts.store, Outside(folder), LEASE)
    lanes = [lane(chat, random.Random(chance.getrandbits(32)), folder, number) for number in range(OPEN)]
    await asyncio.gather(decide_on(parts, chance), *lanes)


async def decide_on(parts: AppServices, chance: random.Random) -> None:
    while True:
        for stored in (await parts.store.list(WORKSPACE, ApprovalQuery(statuses=("pending",), payload="whole"))).items:
            if chance.random() < 0.5:
                await decide(parts, stored, decision_on(stored, chance))
        await asyncio.sleep(0.03)


def decision_on(stored: Stored, chance: random.Random) -> Decision:
    approval, seen = stored.approval, Acknowledgement(stored.approval.args_sha256)
    if approval.subject.tool == QUESTION_TOOL:
        return Respond("Blue.", seen=seen)
    if chance.random() < 0.2:
        return Reject("No.", seen)
    if approval.subject.tool == "save" and chance.random() < 0.5:
        return Edit({"k": "edited"}, seen)
    return Approve(seen)


async def decide(parts: AppServices, stored: Stored, decision: Decision) -> None:
    with suppress(Error):  # decided or withdrawn meanwhile
        await parts.inbox.decide(WORKSPACE, stored.approval.id, decision, BOB)


async def lane(chat: Chat, chance: random.Random, folder: Path, number: int) -> None:
    """One conversation after the other."""
    turn = 0
    while not (folder / "calm").exists():
        turn += 1
        await converse(chat, chance, f"{number}.{turn}")


async def converse(chat: Chat, chance: random.Random, tag: str) -> None:
    doors = await chat.workspaces.services(WORKSPACE)
    thread = await chat.threads.say(doors, person(WORKSPACE), message(chance, tag))
    for more in range(chance.choice((0, 0, 0, 1, 2))):
        await asyncio.sleep(chance.uniform(0, 0.3))
        if chance.random() < 0.3:
            await chat.threads.stop(doors, person(WORKSPACE), thread.id)
        else:
            text = message(chance, f"{tag}.{more}") if chance.random() < 0.7 else "yes"
            await chat.threads.say(doors, person(WORKSPACE), text, thread.id)
    while (await chat.threads.get(person(WORKSPACE), thread.id)).status != "idle":  # noqa: ASYNC110
        await asyncio.sleep(0.05)


def message(chance: random.Random, tag: str) -> str:
    """Up to four calls in up to two turns."""
    stages = [stage(chance, f"{tag}.{number}") for number in range(chance.choice((1, 1, 2)))]
    return f"# {'flaky ' if chance.random() < 0.1 else ''}{tag}\n" + "\nthen\n".join(stages)


def stage(chance: random.Random, tag: str) -> str:
    to, key = f'{{"to":"{tag}"}}', f'{{"k":"{tag}"}}'
    lines = ["look {}", f"send {to}", f"put {key}", f"save {key}", f'drop {{"page":"{tag}"}}']
    lines += ['request_human_input {"question":"Which?"}', delegated(f"# {tag}\nsend {to}")]
    lines.append(delegated(f"# {tag} too\nput {key}", "editor"))
    return "\n".join(chance.sample(lines, chance.randint(1, 4)))


# When it is over


async def calmed(url: str, folder: Path) -> None:
    """One fresh process brings all threads to their end; then all is judged."""
    faulthandler.dump_traceback_later(HANGS, exit=True)
    parts, never = build_services(url), asyncio.Event()
    await parts.store.open()
    chat = chat_of(parts.store, Outside(folder), LEASE)
    tasks = [asyncio.create_task(each) for each in (chat.loop.run(never), parts.worker.run(never))]
    tasks.append(asyncio.create_task(chat_reviewers.review(parts, Life(url, WORKSPACE, folder))))
    await until_rest(parts)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    wrong = await broken_laws(parts.store, WORKSPACE, folder)
    (folder / "verdict.json").write_text(json.dumps({"wrong": wrong, **await counted(parts, folder)}))
    await parts.store.close()


async def until_rest(parts: AppServices) -> None:
    """Until every thread is idle, or nothing has changed for a long time: then the laws say what is stuck."""
    last, moved = -1, time.monotonic()
    while time.monotonic() - moved < STALLED:
        found = await parts.store._database.fetch_text("select count(*) from threads where status <> 'idle'", ())
        if not found[0][0]:
            return
        head = (await parts.store.head(WORKSPACE)).seq
        if head != last:
            last, moved = head, time.monotonic()
        await asyncio.sleep(0.1)


async def counted(parts: AppServices, folder: Path) -> dict[str, Any]:
    query = parts.store._database.fetch_text
    threads = (await query("select count(*), sum(case when status = 'idle' then 1 else 0 end) from threads", ()))[0]
    taken_over = (await query("select count(*) from lines where kind = 'resumed'", ()))[0][0]
    return {
        "threads": threads[0],
        "done": int(threads[1] or 0),
        "taken_over": taken_over,
        "turns": len((folder / "turns.txt").read_text().splitlines()),
        "effects": len((folder / "effects.txt").read_text().splitlines()),
        "statuses": dict((await parts.store.stats(WORKSPACE)).by_status),
    }


def forked(job: Any) -> None:
    if wait_for(start(job)):
        raise RuntimeError("a process of the storm failed")


if __name__ == "__main__":
    main()
