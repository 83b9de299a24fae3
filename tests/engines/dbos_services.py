"""Services with workflows of DBOS as a test sees them: started, killed, and asked what DBOS' own tables hold."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.frameworks.desk import Desk
from tests.frameworks.outside import ROOT, Effects, python_of
from tests.journeys.programs import wait_until
from tests.postgres import Server

PROGRAM = Path(__file__).parent / "programs" / "dbos_service.py"
PATIENCE = 60.0  # seconds that anything may take on a busy machine


class Service:
    """One process at a time; the next one begins where the last was killed."""

    def __init__(self, program: subprocess.Popen[str], common: dict[str, Any]) -> None:
        self._program = program
        self._common = common
        self._said: queue.Queue[dict[str, Any]] = queue.Queue()
        self._pid = 0
        self._errors: list[str] = []
        self._ears = [threading.Thread(target=each) for each in (self._listen, self._overhear)]
        for ear in self._ears:
            ear.start()

    def start(self, **job: Any) -> None:
        assert self._program.stdin is not None
        print(json.dumps(self._common | job), file=self._program.stdin, flush=True)
        self._pid = self.heard("pid")

    def heard(self, what: str) -> Any:
        """The next line that says so; others are passed over."""
        while True:
            line = self._said.get(timeout=PATIENCE)
            if what in line:
                return line[what]
            assert "ended" not in line, f"It ended ({line['ended']}) before it said {what}.\n{self.errors}"

    def finished(self, run_id: str) -> Any:
        """What became of a run that it watches."""
        while True:
            line = self._said.get(timeout=PATIENCE)
            assert "ended" not in line, f"It ended ({line['ended']}) before {run_id} did.\n{self.errors}"
            if line.get("run") == run_id:
                return line.get("result", line.get("error"))

    def died(self) -> int:
        self._pid, ended = 0, self.heard("ended")
        return int(ended)

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        assert self.died() == -signal.SIGKILL

    def stop(self) -> None:
        os.kill(self._pid, signal.SIGTERM)
        assert self.died() == 0

    def cpu(self) -> float:
        """Seconds that it has used so far."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def errors(self) -> str:
        return "".join(self._errors)

    def close(self) -> None:
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        with self._program:  # closes what leads to it, by which it ends
            assert self._program.stdin is not None
            self._program.stdin.close()
            for ear in self._ears:
                ear.join(PATIENCE)

    def _listen(self) -> None:
        assert self._program.stdout is not None
        for line in self._program.stdout:
            self._said.put(json.loads(line))
        self._said.put({"ended": "for good"})

    def _overhear(self) -> None:
        assert self._program.stderr is not None
        self._errors.extend(self._program.stderr)


class World:
    """A database for both, people at it, and what really happened."""

    def __init__(self, server: Server, database: str, effects: Effects, folder: Path) -> None:
        self.url = server.url(database)
        self.desk = Desk(self.url)
        self.effects = effects
        self._server = server
        self._database = database
        self._folder = folder

    @contextmanager
    def service(self, **common: Any) -> Iterator[Service]:
        program = opened(self._folder)
        service = Service(program, {"url": self.url, "effects": self.effects.url, **common})
        try:
            yield service
        finally:
            service.close()

    def waiting(self, number: int = 1) -> list[dict[str, Any]]:
        """Those that wait for people, once there are as many."""
        found: list[dict[str, Any]] = []

        def enough() -> bool:
            found[:] = self.desk.listed("pending")
            return len(found) >= number

        wait_until(enough, f"{number} calls wait", PATIENCE)
        return found

    def parked(self, number: int = 1) -> None:
        """Waits until so many runs wait for people, and nothing of them is left in DBOS but what is over."""
        wait_until(lambda: not self.unfinished() and self._set_aside() >= number, f"{number} runs are parked", PATIENCE)

    def _set_aside(self) -> int:
        """Runs that nobody holds, and whose first segment is over."""
        begun = "position('\"segment\":1,' in convert_from(state, 'UTF8')) > 0"
        return int(self._rows(f"select count(*) from pauses where runner = '' and not {begun}")[0][0])

    def unfinished(self) -> list[str]:
        """Workflows that DBOS has to do something about."""
        return [name for name, status in self.workflows().items() if status not in ("SUCCESS", "ERROR", "CANCELLED")]

    def workflows(self) -> dict[str, str]:
        return dict(self._rows("select workflow_uuid, status from dbos.workflow_status order by created_at"))

    def _rows(self, query: str) -> list[Any]:
        with self._server.connect(self._database) as connection:
            return connection.execute(query.encode()).fetchall()


def opened(folder: Path) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [str(python_of("engines")), "-P", str(PROGRAM)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def prepared(server: Server, folder: Path) -> str:
    """A database in which both have their tables: to be cloned."""

    def fill(url: str) -> None:
        with Effects().counting() as effects, World(server, "", effects, folder).service(url=url) as service:
            service.start()
            service.heard("serving")
            service.stop()

    return server.template("interlock_and_dbos", fill)
