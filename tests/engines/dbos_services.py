"""Services with workflows of DBOS as a test sees them: started, killed, and asked what DBOS' own tables hold."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tests.frameworks.framework_program import ROOT, EffectServer, find_python
from tests.frameworks.reviewer import DatabaseReviewer
from tests.journeys.shell import wait_until
from tests.postgres import Server

PROGRAM = Path(__file__).parent / "programs" / "dbos_service.py"
TIMEOUT = 60.0  # seconds that anything may take on a loaded machine


class Service:
    """One process at a time; the next one begins where the last was killed."""

    def __init__(self, folder: Path) -> None:
        self._program = _open_services(folder)
        self._common: dict[str, Any] = {}
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self._pid = 0
        self._errors: list[str] = []
        self._threads = [threading.Thread(target=each) for each in (self._read_output, self._read_errors)]
        for ear in self._threads:
            ear.start()

    @contextmanager
    def serving(self, common: dict[str, Any]) -> Iterator[Service]:
        """`common` is what all of its processes are told."""
        self._common = common
        try:
            yield self
        finally:
            if self._pid:
                self.kill()

    def start(self, **job: Any) -> None:
        assert self._program.stdin is not None
        print(json.dumps(self._common | job), file=self._program.stdin, flush=True)
        self._pid = self.wait_for_line("pid")

    def wait_for_line(self, what: str) -> Any:
        """The next line that says so; others are passed over."""
        while True:
            line = self._lines.get(timeout=TIMEOUT)
            if what in line:
                return line[what]
            assert "ended" not in line, f"It ended ({line['ended']}) before it said {what}.\n{self.errors}"

    def wait_finished(self, run_id: str) -> Any:
        """What became of a run that it watches."""
        while True:
            line = self._lines.get(timeout=TIMEOUT)
            assert "ended" not in line, f"It ended ({line['ended']}) before {run_id} did.\n{self.errors}"
            if line.get("run") == run_id:
                return line.get("result", line.get("error"))

    def wait_died(self) -> int:
        self._pid, ended = 0, self.wait_for_line("ended")
        return int(ended)

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        while "ended" not in self._lines.get(timeout=TIMEOUT):
            pass
        self._pid = 0

    def wait_stopped(self) -> None:
        """Waits until it was stopped in its tracks."""
        state = Path(f"/proc/{self._pid}/stat")
        wait_until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T", "it is asleep", TIMEOUT)

    def wake(self) -> None:
        os.kill(self._pid, signal.SIGCONT)

    def stop(self) -> None:
        os.kill(self._pid, signal.SIGTERM)
        assert self.wait_died() == 0

    @property
    def errors(self) -> str:
        return "".join(self._errors)

    def close(self) -> None:
        with self._program:  # closes what leads to it, by which it ends
            assert self._program.stdin is not None
            self._program.stdin.close()
            for ear in self._threads:
                ear.join(TIMEOUT)

    def _read_output(self) -> None:
        assert self._program.stdout is not None
        for line in self._program.stdout:
            self._lines.put(json.loads(line))
        self._lines.put({"ended": "for good"})

    def _read_errors(self) -> None:
        assert self._program.stderr is not None
        self._errors.extend(self._program.stderr)


class Services:
    """As many as are needed at once. Each loads what it needs only once, however many tests there are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._all: list[Service] = []
        self._idle: list[Service] = []

    @contextmanager
    def acquire(self, **common: Any) -> Iterator[Service]:
        service = self._idle.pop() if self._idle else self._new()
        with service.serving(common):
            yield service
        self._idle.append(service)

    def close(self) -> None:
        for service in self._all:
            service.close()

    def _new(self) -> Service:
        self._all.append(Service(self._folder))
        return self._all[-1]


class DbosScenario:
    """A database for both, people at it, and what really happened."""

    def __init__(self, server: Server, database: str, effects: EffectServer, services: Services) -> None:
        self.url = server.url(database)
        self.reviewer = DatabaseReviewer(self.url)
        self.effects = effects
        self._server = server
        self._database = database
        self._services = services

    def service(self, **common: Any) -> AbstractContextManager[Service]:
        return self._services.acquire(**({"url": self.url, "effects": self.effects.url} | common))

    def wait_pending(self, number: int = 1) -> list[dict[str, Any]]:
        """Those that wait for people, once there are as many."""
        found: list[dict[str, Any]] = []

        def enough() -> bool:
            found[:] = self.reviewer.list_approvals("pending")
            return len(found) >= number

        wait_until(enough, f"{number} calls wait", TIMEOUT)
        return found

    def wait_parked(self, number: int = 1) -> None:
        """Waits until so many runs wait for people: nobody holds them, and DBOS has nothing left to do."""
        set_aside = "select count(*) from pauses where runner = '' and position('\"segment\":1,' in {}) = 0"
        ask = set_aside.format("convert_from(state, 'UTF8')").encode()
        with self._server.connect(self._database) as connection:

            def enough() -> bool:
                found = connection.execute(ask).fetchone()
                return found is not None and found[0] >= number

            wait_until(enough, f"{number} runs are parked", TIMEOUT)
        wait_until(lambda: not self.unfinished(), "no workflow is left", TIMEOUT)

    def unfinished(self) -> list[str]:
        """Workflows that DBOS has to do something about."""
        return [name for name, status in self.workflows().items() if status not in ("SUCCESS", "ERROR", "CANCELLED")]

    def workflows(self) -> dict[str, str]:
        return dict(self.sql("select workflow_uuid, status from dbos.workflow_status order by created_at"))

    def sql(self, query: str) -> list[Any]:
        with self._server.connect(self._database) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []


def prepare_template(server: Server, services: Services) -> str:
    """A database in which both have their tables: to be cloned."""

    def fill(url: str) -> None:
        with services.acquire(url=url) as service:
            service.start()
            service.wait_for_line("serving")
            service.stop()

    return server.template("interlock_and_dbos", fill)


def _open_services(folder: Path) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [str(find_python("engines")), "-P", str(PROGRAM)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
