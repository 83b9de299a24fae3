"""Many threads, several processes that work at them, people who decide at random, and kills:

    python -m tests.faults.chat_storm [--database sqlite|postgresql] [--kills N] [--seed N] [--broken NAME]

Workers are killed (SIGKILL) or stopped for longer than their leases (SIGSTOP), and started again. Every
turn of the model and every effect is a line in a file outside. Afterwards all threads have to come to their end, and
the invariants of `chat_invariants` hold for each. Prints one JSON line.
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
from tests.databases import migrated_template
from tests.faults import chat_controls, chat_reviewers
from tests.faults.chat_agent import Chat, ExternalLog, build_chat, delegation, person
from tests.faults.chat_invariants import find_violations
from tests.faults.processes import Scenario, append_line, fork_child, kill_child, wait_for_exit
from tests.postgres import Server

WORKERS = 3
OPEN = 24  # threads that are under way at once
LEASE = 1_500  # milliseconds
STOPPED = 4.0  # seconds: others need some as well to take over what was let go, on a busy machine
MIN_STOPS = 6  # processes that are suspended in every storm, however few kills it has
SPARED = 1.0  # seconds for which a process that goes on is not hit, so that it writes what it had in hand
WORKSPACE = "default"
DATABASE = "chat"
STALLED = 20.0  # seconds without any change once nobody is hit any more
HANGS = 240  # seconds after which it says where it stands, and ends
CONTROLS = {
    "no-fence": chat_controls.no_fence,
    "acts-first": chat_controls.act_before_record,
    "deaf": chat_controls.ignore_messages,
    "forgets-turns": chat_controls.forget_turns,
}
NOTICED = {  # parts of what `chat_invariants` reports of each, of which one has to be there
    "no-fence": chat_controls.UNFENCED,
    "acts-first": chat_controls.TWICE,
    "deaf": ("is stuck as",),
    "forgets-turns": chat_controls.FORGOTTEN,
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
    with tempfile.TemporaryDirectory() as folder, open_database(options.database, Path(folder)) as url:
        print(json.dumps(run(url, Path(folder), options)))


@contextmanager
def open_database(database: str, folder: Path) -> Iterator[str]:
    if database == "sqlite":
        yield f"sqlite:///{folder}/chat.db"
        return
    with Server() as server:
        server.create_database(DATABASE, migrated_template(server))
        yield server.url(DATABASE)


def run(url: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    fork(lambda: asyncio.run(prepare_database(url, folder)))
    storm = Storm(url, folder, random.Random(options.seed))
    storm.run(options.kills)
    stormed = time.monotonic() - began
    fork(lambda: asyncio.run(wait_until_calm(url, folder)))
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
        self.still: dict[int, float] = {}  # stopped processes, and until when
        self.spared: dict[int, float] = {}  # processes that were stopped and go on, and until when they are not hit

    def run(self, kills: int) -> None:
        people = fork_child(lambda: asyncio.run(run_people(self.url, self.folder, self.chance.getrandbits(32))))
        running = [self.worker() for _ in range(WORKERS)]
        try:
            while self.faults["kills"] < kills or self.faults["stops"] < MIN_STOPS or self.still or self.spared:
                time.sleep(self.chance.uniform(0.01, 0.25))
                self.wake()
                self.hit(self.chance.randrange(WORKERS), running, kills)
        finally:
            (self.folder / "calm").touch()
            for pid in (*running, people):
                with suppress(ProcessLookupError):
                    kill_child(pid)

    def worker(self) -> int:
        return fork_child(lambda: asyncio.run(run_worker(self.url, self.folder)))

    def hit(self, number: int, running: list[int], kills: int) -> None:
        """Mostly kills; a stopped process is continued before it is killed, so that it can violate an invariant."""
        pid = running[number]
        if pid in self.still or pid in self.spared:
            return
        is_last = self.faults["kills"] >= kills  # from then on only the missing stops
        if is_last and self.faults["stops"] >= MIN_STOPS:
            return
        if (is_last or self.chance.random() < 0.1) and len(self.still) < WORKERS - 1:
            append_line(ExternalLog(self.folder).late, str(pid))
            os.kill(pid, signal.SIGSTOP)
            self.still[pid] = time.monotonic() + STOPPED
            self.faults["stops"] += 1
            return
        if is_last:
            return
        kill_child(pid)
        self.faults["kills"] += 1
        running[number] = self.worker()

    def wake(self) -> None:
        now = time.monotonic()
        for pid, until in list(self.still.items()):
            if now > until:
                del self.still[pid]
                os.kill(pid, signal.SIGCONT)
                self.spared[pid] = now + SPARED
        self.spared = {pid: until for pid, until in self.spared.items() if now < until}


async def prepare_database(url: str, folder: Path) -> None:
    services = build_services(url)
    await services.store.open()
    await chat_reviewers.prepare(services, Scenario(url, WORKSPACE, folder))
    await services.store.close()


async def run_worker(url: str, folder: Path) -> None:
    """As a server does: the loop, and the worker of deadlines."""
    services, never = build_services(url), asyncio.Event()
    await services.store.open()
    chat = build_chat(services.store, ExternalLog(folder), LEASE)
    await asyncio.gather(chat.loop.run(never), services.worker.run(never))


# The people, in processes without faults


async def run_people(url: str, folder: Path, seed: int) -> None:
    services, chance = build_services(url), random.Random(seed)
    await services.store.open()
    chat = build_chat(services.store, ExternalLog(folder), LEASE)
    lanes = [run_conversations(chat, random.Random(chance.getrandbits(32)), folder, number) for number in range(OPEN)]
    await asyncio.gather(decide_on(services, chance), *lanes)


async def decide_on(services: AppServices, chance: random.Random) -> None:
    while True:
        for stored in (
            await services.store.list(WORKSPACE, ApprovalQuery(statuses=("pending",), payload="whole"))
        ).items:
            if chance.random() < 0.5:
                await decide(services, stored, decision_on(stored, chance))
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


async def decide(services: AppServices, stored: Stored, decision: Decision) -> None:
    with suppress(Error):  # decided or withdrawn meanwhile
        await services.inbox.decide(WORKSPACE, stored.approval.id, decision, BOB)


async def run_conversations(chat: Chat, chance: random.Random, folder: Path, number: int) -> None:
    """One conversation after the other."""
    turn = 0
    while not (folder / "calm").exists():
        turn += 1
        await run_conversation(chat, chance, f"{number}.{turn}")


async def run_conversation(chat: Chat, chance: random.Random, tag: str) -> None:
    services = await chat.workspaces.services(WORKSPACE)
    thread = await chat.threads.say(services, person(WORKSPACE), message(chance, tag))
    for more in range(chance.choice((0, 0, 0, 1, 2))):
        await asyncio.sleep(chance.uniform(0, 0.3))
        if chance.random() < 0.3:
            await chat.threads.stop(services, person(WORKSPACE), thread.id)
        else:
            text = message(chance, f"{tag}.{more}") if chance.random() < 0.7 else "yes"
            await chat.threads.say(services, person(WORKSPACE), text, thread.id)
    while (await chat.threads.get(person(WORKSPACE), thread.id)).status != "idle":  # noqa: ASYNC110
        await asyncio.sleep(0.05)


def message(chance: random.Random, tag: str) -> str:
    """Up to four calls in up to two turns."""
    stages = [stage(chance, f"{tag}.{number}") for number in range(chance.choice((1, 1, 2)))]
    return f"# {'flaky ' if chance.random() < 0.1 else ''}{tag}\n" + "\nthen\n".join(stages)


def stage(chance: random.Random, tag: str) -> str:
    to, key = f'{{"to":"{tag}"}}', f'{{"k":"{tag}"}}'
    lines = ["look {}", f"send {to}", f"put {key}", f"save {key}", f'drop {{"page":"{tag}"}}']
    lines += ['request_human_input {"question":"Which?"}', delegation(f"# {tag}\nsend {to}")]
    lines.append(delegation(f"# {tag} too\nput {key}", "editor"))
    return "\n".join(chance.sample(lines, chance.randint(1, 4)))


# When it is over


async def wait_until_calm(url: str, folder: Path) -> None:
    """One fresh process brings all threads to their end; then all is judged."""
    faulthandler.dump_traceback_later(HANGS, exit=True)
    services, never = build_services(url), asyncio.Event()
    await services.store.open()
    chat = build_chat(services.store, ExternalLog(folder), LEASE)
    tasks = [asyncio.create_task(each) for each in (chat.loop.run(never), services.worker.run(never))]
    tasks.append(asyncio.create_task(chat_reviewers.review(services, Scenario(url, WORKSPACE, folder))))
    await until_rest(services)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    wrong = await find_violations(services.store, WORKSPACE, folder)
    (folder / "verdict.json").write_text(json.dumps({"wrong": wrong, **await read_counts(services, folder)}))
    await services.store.close()


async def until_rest(services: AppServices) -> None:
    """Waits until every thread is idle, or until nothing changes any more: the invariants then report what is stuck."""
    last, moved = -1, time.monotonic()
    while time.monotonic() - moved < STALLED:
        found = await services.store._database.fetch_text("select count(*) from threads where status <> 'idle'", ())
        if not found[0][0]:
            return
        head = (await services.store.head(WORKSPACE)).seq
        if head != last:
            last, moved = head, time.monotonic()
        await asyncio.sleep(0.1)


async def read_counts(services: AppServices, folder: Path) -> dict[str, Any]:
    query = services.store._database.fetch_text
    threads = (await query("select count(*), sum(case when status = 'idle' then 1 else 0 end) from threads", ()))[0]
    taken_over = (await query("select count(*) from lines where kind = 'resumed'", ()))[0][0]
    return {
        "threads": threads[0],
        "done": int(threads[1] or 0),
        "taken_over": taken_over,
        "turns": len((folder / "turns.txt").read_text().splitlines()),
        "effects": len((folder / "effects.txt").read_text().splitlines()),
        "statuses": dict((await services.store.stats(WORKSPACE)).by_status),
    }


def fork(job: Any) -> None:
    if wait_for_exit(fork_child(job)):
        raise RuntimeError("a process of the storm failed")


if __name__ == "__main__":
    main()
