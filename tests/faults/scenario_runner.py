"""A lane lives one life after the other on a database of its own; several lanes run at once."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from interlock.app.bootstrap import database_file
from tests.faults import chat_scenarios, processes
from tests.faults.jobs import Job
from tests.faults.peer_process import accompany
from tests.faults.processes import Asked, Life
from tests.faults.scenarios import run
from tests.keeper import MEMORY
from tests.places import migrated
from tests.postgres import Server

LIVES = 100  # on one database
LEASE = 400  # milliseconds: short where it is to lapse, and nowhere else, since a busy machine would let it lapse too
RAISED = 2_000  # milliseconds
ATTEMPTS = 4  # lives without a fault that a victim may take to come to its end


@dataclass(frozen=True)
class Played:
    """What came of a job: the faults that struck, the laws that were broken, the points of the recorded life."""

    job: Job
    struck: list[str]
    wrong: list[str]
    points: list[str]
    unknown: int

    @staticmethod
    def read(line: str) -> Played:
        fields = json.loads(line)
        job = fields.pop("job")
        return Played(Job(job["victim"], tuple(job["plans"]), job["name"]), **fields)

    def shown(self) -> dict[str, Any]:
        return {"victim": self.job.victim, "plans": self.job.plans, "laws": self.wrong}


class Ground:
    """Where databases come from."""

    def __init__(self, folder: Path, server: Server | None) -> None:
        self.folder = folder
        self._server = server

    @staticmethod
    @contextmanager
    def of(database: str, folder: Path) -> Iterator[Ground]:
        with ExitStack() as stack:
            server = None
            if database == "postgresql":
                server = stack.enter_context(Server(durable=False, in_memory=True, settings={"max_connections": "300"}))
                migrated(server)
            yield Ground(folder, server)

    def database(self, name: str) -> str:
        """One that is ready."""
        if self._server is None:
            return f"sqlite:///{self.folder}/{name}.db"
        return self._server.create_database(name, migrated(self._server))

    def nothing(self, name: str) -> str:
        """One that has still to be made."""
        return f"sqlite:///{self.folder}/{name}.db" if self._server is None else self._server.create_database(name)

    def drop(self, name: str) -> None:
        if self._server is not None:
            self._server.drop_database(name)
        for path in self.folder.glob(f"{name}.db*"):
            path.unlink()


class Lane:
    """`opener` needs a database that is not there yet; all others share one, each in a workspace of its own."""

    def __init__(self, ground: Ground, number: int) -> None:
        self._ground = ground
        self._name = f"lane{number}x{time.monotonic_ns()}"
        self._lived = 0
        self._base = ""
        self._companion: Asked | None = None

    def run(self, jobs: Sequence[Job], out: Path) -> None:
        with out.open("w", buffering=1) as file:
            for job in jobs:
                played = self._play(job)
                file.write(json.dumps(asdict(played)) + "\n")
                if played.wrong:
                    self._leave()
        self._leave()

    def _play(self, job: Job) -> Played:
        self._lived += 1
        name = f"{self._name}n{self._lived}"
        alone = job.victim == "opener"
        if alone or self._companion is None or self._lived % LIVES == 0:
            self._leave()
            self._base = name
            url = self._ground.nothing(name) if alone else self._ground.database(name)
            if not alone:
                self._companion = Asked(partial(accompany, url))
            self._url = url
        life = Life(self._url, name, self._ground.folder / name)
        if {"stop", "delay"} & set(job.kinds):
            life = replace(life, lease=LEASE)
        elif "raise" in job.kinds and job.victim in chat_scenarios.SCENES:
            life = replace(life, lease=RAISED)  # its loop lives on, and waits for its own lease
        life.folder.mkdir()
        try:
            return Playing(job, life, self._companion).play()
        finally:
            shutil.rmtree(life.folder)
            if alone:
                self._leave()

    def _leave(self) -> None:
        if self._companion is not None:
            self._companion.close()
            self._companion = None
        if self._base:
            self._ground.drop(self._base)
            self._base = ""


class Playing:
    """One job: its lives, and the judgement on them."""

    def __init__(self, job: Job, life: Life, companion: Asked | None) -> None:
        self._job = job
        self._life = life
        self._companion = companion
        self._struck: list[str] = []
        self._wrong: list[str] = []
        self._recorded = life.folder / "recovery.txt"

    def play(self) -> Played:
        job, life = self._job, self._life
        try:
            self._ask("prepare", job.victim)
            if {"stop", "delay"} & set(job.kinds):
                self._ask("sweep_on", job.victim)
            self._live_all()
            self._wrong += self._judged()
        except (RuntimeError, OSError) as error:
            self._wrong.append(f"nothing goes on: {error}")
        points = self._recorded.read_text().splitlines() if self._recorded.exists() else []
        unknown = int(["heard", "CallUnknown"] in processes.lines(life.told))
        return Played(job, self._struck, self._wrong, points, unknown)

    def _live_all(self) -> None:
        for plan in self._job.plans:
            if not self._finished():
                self._one(plan)
        for _ in range(ATTEMPTS):
            if self._finished():
                return
            self._one("")
        if not self._finished():
            self._wrong.append(f"{self._job.victim} did not come to an end")

    def _one(self, plan: str) -> None:
        kind = plan.partition(":")[0]
        text = f"record:{self._recorded}" if kind == "record" else plan
        life = self._life if kind not in ("", "record") else replace(self._life, lease=Life.lease)
        pid = processes.start(lambda: run(self._job.victim, life, text))
        status = processes.wait(pid) if kind != "stop" else self._stopped(pid)
        if kind in ("raise", "delay") or (kind == "kill" and status == -signal.SIGKILL):
            self._struck.append(kind)
        if status == processes.STUCK:
            self._wrong.append(f"{self._job.victim} stands still after {plan or 'no fault'}")
        elif status != 0 and kind in ("", "record"):
            self._wrong.append(f"{self._job.victim} ended with {status} although nothing was done to it")
        if self._job.victim == "files":
            self._wrong += self._ask("judge_files")

    def _stopped(self, pid: int) -> int:
        """While it stands still others go on, and what it runs is given up; then it wakes."""
        status = processes.wait_until_stopped(pid)
        if status is not None:
            return status
        self._struck.append("stop")
        try:
            if self._companion is None or self._holds_the_file():
                time.sleep(LEASE / 1000)
            else:
                self._ask("go_on")
                time.sleep(LEASE / 1000)
                self._ask("swept")
        finally:
            os.kill(pid, signal.SIGCONT)
        return processes.wait(pid)

    def _holds_the_file(self) -> bool:
        """Between programs on one file there is one lock, and who was stopped with it keeps it."""
        path = database_file(self._life.url)
        if path is None:
            return False
        with open(f"{path}.lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _finished(self) -> bool:
        return ["finished"] in processes.lines(self._life.told)

    def _judged(self) -> list[str]:
        if self._companion is not None:
            found: list[str] = self._ask("judge", self._job.victim)
            return found
        judge = Asked(partial(accompany, self._life.url))  # the database was made by the victim
        try:
            self._companion = judge
            found = self._ask("judge", self._job.victim)
        finally:
            self._companion = None
            judge.close()
        return found

    def _ask(self, verb: str, *values: object) -> Any:
        if self._companion is None:
            return []
        return self._companion.ask(verb, self._life.workspace, self._life.folder, *values)


def memory() -> Path | None:
    """Lives are many, and none is cut off from its disk: in memory they cost the disk nothing."""
    return MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
