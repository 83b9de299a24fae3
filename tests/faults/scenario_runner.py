"""Workers that run fault jobs, each on a database of its own, several at once."""

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
from tests.databases import migrated_template
from tests.faults import chat_scenarios, processes
from tests.faults.jobs import FaultJob
from tests.faults.peer_process import serve_peer
from tests.faults.processes import RequestProcess, Scenario
from tests.faults.scenarios import run
from tests.postgres import Server
from tests.server_process import MEMORY_FOLDER

RUNS_PER_DATABASE = 100  # on one database
LEASE = 400  # milliseconds: short where it is to lapse, and nowhere else, since a busy machine would let it lapse too
LEASE_OF_RAISING = 2_000  # milliseconds
ATTEMPTS = 4  # runs without a fault that a victim may take to finish


@dataclass(frozen=True)
class JobResult:
    """The result of a job: injected faults, violations, and the points of the recorded run."""

    job: FaultJob
    faults: list[str]
    violations: list[str]
    points: list[str]
    unknown: int

    @staticmethod
    def read(line: str) -> JobResult:
        fields = json.loads(line)
        job = fields.pop("job")
        return JobResult(FaultJob(job["victim"], tuple(job["plans"]), job["name"]), **fields)

    def summary(self) -> dict[str, Any]:
        return {"victim": self.job.victim, "plans": self.job.plans, "laws": self.violations}


class DatabaseSource:
    """Creates and drops databases."""

    def __init__(self, folder: Path, server: Server | None) -> None:
        self.folder = folder
        self._server = server

    @staticmethod
    @contextmanager
    def open(database: str, folder: Path) -> Iterator[DatabaseSource]:
        with ExitStack() as stack:
            server = None
            if database == "postgresql":
                server = stack.enter_context(Server(durable=False, in_memory=True, settings={"max_connections": "300"}))
                migrated_template(server)
            yield DatabaseSource(folder, server)

    def database(self, name: str) -> str:
        """One that is ready."""
        if self._server is None:
            return f"sqlite:///{self.folder}/{name}.db"
        return self._server.create_database(name, migrated_template(self._server))

    def missing_database(self, name: str) -> str:
        """One that has still to be made."""
        return f"sqlite:///{self.folder}/{name}.db" if self._server is None else self._server.create_database(name)

    def drop(self, name: str) -> None:
        if self._server is not None:
            self._server.drop_database(name)
        for path in self.folder.glob(f"{name}.db*"):
            path.unlink()


class Worker:
    """`opener` needs a database that is not there yet; all others share one, each in a workspace of its own."""

    def __init__(self, databases: DatabaseSource, number: int) -> None:
        self._ground = databases
        self._name = f"lane{number}x{time.monotonic_ns()}"
        self._lived = 0
        self._base = ""
        self._companion: RequestProcess | None = None

    def run(self, jobs: Sequence[FaultJob], out: Path) -> None:
        with out.open("w", buffering=1) as file:
            for job in jobs:
                played = self._play(job)
                file.write(json.dumps(asdict(played)) + "\n")
                if played.violations:
                    self._leave()
        self._leave()

    def _play(self, job: FaultJob) -> JobResult:
        self._lived += 1
        name = f"{self._name}n{self._lived}"
        alone = job.victim == "opener"
        if alone or self._companion is None or self._lived % RUNS_PER_DATABASE == 0:
            self._leave()
            self._base = name
            url = self._ground.missing_database(name) if alone else self._ground.database(name)
            if not alone:
                self._companion = RequestProcess(partial(serve_peer, url))
            self._url = url
        scenario = Scenario(self._url, name, self._ground.folder / name)
        if {"stop", "delay"} & set(job.kinds):
            scenario = replace(scenario, lease=LEASE)
        elif "raise" in job.kinds and job.victim in chat_scenarios.SCENARIOS:
            scenario = replace(scenario, lease=LEASE_OF_RAISING)  # its loop continues, and waits for its own lease
        scenario.folder.mkdir()
        try:
            return ScenarioRun(job, scenario, self._companion).play()
        finally:
            shutil.rmtree(scenario.folder)
            if alone:
                self._leave()

    def _leave(self) -> None:
        if self._companion is not None:
            self._companion.close()
            self._companion = None
        if self._base:
            self._ground.drop(self._base)
            self._base = ""


class ScenarioRun:
    """One job: its processes, and the checks after them."""

    def __init__(self, job: FaultJob, scenario: Scenario, companion: RequestProcess | None) -> None:
        self._job = job
        self._life = scenario
        self._companion = companion
        self._struck: list[str] = []
        self._wrong: list[str] = []
        self._recorded = scenario.folder / "recovery.txt"

    def play(self) -> JobResult:
        job, scenario = self._job, self._life
        try:
            self._ask("prepare", job.victim)
            if {"stop", "delay"} & set(job.kinds):
                self._ask("start_sweeping", job.victim)
            self._live_all()
            self._wrong += self._judged()
        except (RuntimeError, OSError) as error:
            self._wrong.append(f"nothing goes on: {error}")
        points = self._recorded.read_text().splitlines() if self._recorded.exists() else []
        unknown = int(["heard", "CallUnknown"] in processes.read_lines(scenario.acknowledgements))
        return JobResult(job, self._struck, self._wrong, points, unknown)

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
        scenario = self._life if kind not in ("", "record") else replace(self._life, lease=Scenario.lease)
        pid = processes.fork_child(lambda: run(self._job.victim, scenario, text))
        status = processes.wait_with_timeout(pid) if kind != "stop" else self._stopped(pid)
        if kind in ("raise", "delay") or (kind == "kill" and status == -signal.SIGKILL):
            self._struck.append(kind)
        if status == processes.STUCK_STATUS:
            self._wrong.append(f"{self._job.victim} stands still after {plan or 'no fault'}")
        elif status != 0 and kind in ("", "record"):
            self._wrong.append(f"{self._job.victim} ended with {status} although nothing was done to it")
        if self._job.victim == "files":
            self._wrong += self._ask("check_files")

    def _stopped(self, pid: int) -> int:
        """While it is stopped others continue, and its running call is given up; then it continues."""
        status = processes.wait_until_stopped(pid)
        if status is not None:
            return status
        self._struck.append("stop")
        try:
            if self._companion is None or self._holds_the_file():
                time.sleep(LEASE / 1000)
            else:
                self._ask("run_another_call")
                time.sleep(LEASE / 1000)
                self._ask("sweep_until_done")
        finally:
            os.kill(pid, signal.SIGCONT)
        return processes.wait_with_timeout(pid)

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
        return ["finished"] in processes.read_lines(self._life.acknowledgements)

    def _judged(self) -> list[str]:
        if self._companion is not None:
            found: list[str] = self._ask("check", self._job.victim)
            return found
        judge = RequestProcess(partial(serve_peer, self._life.url))  # the database was made by the victim
        try:
            self._companion = judge
            found = self._ask("check", self._job.victim)
        finally:
            self._companion = None
            judge.close()
        return found

    def _ask(self, verb: str, *values: object) -> Any:
        if self._companion is None:
            return []
        return self._companion.ask(verb, self._life.workspace, self._life.folder, *values)


def memory_folder() -> Path | None:
    """Many databases, and no power loss: in memory they cost no disk writes."""
    return MEMORY_FOLDER if MEMORY_FOLDER.is_dir() and os.access(MEMORY_FOLDER, os.W_OK) else None
