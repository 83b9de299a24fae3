"""Cuts connections to a PostgreSQL while programs propose, decide, start and finish. Run as a program of its own:

    python -m tests.faults.cuts [--cuts N] [--by server|wire] [--away SECONDS] [--seed N]
                                [--broken done-again|taken-for-done]

`server` ends backends at random moments; `wire` stands between the programs and the server and cuts what passes: a
request that never arrives, half of one, one that arrives and is not answered, an answer that is lost half-way; with
`--away` nobody can connect for a while after it, which is longer than the programs' patience. They may wait, or be
told that the database cannot be reached, and nothing else but the truth. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.databases import migrated_template
from tests.faults.load_runner import LoadPrograms, check_load, run_load
from tests.postgres import Server

ALLOWED = ("store_unavailable", "unread")
SOCKET = ".s.PGSQL.5432"
CALM_SECONDS = 2  # cuts after which the programs have to get on before the next ones


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--by", choices=["server", "wire"], default="wire")
    parser.add_argument("--away", type=float, default=0)
    parser.add_argument("--programs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", default="")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Server(durable=False) as server:
        server.create_database("cuts", migrated_template(server))
        result = run(server, Path(folder), options)
    print(json.dumps({**result, "seconds": round(time.monotonic() - began, 1)}))


def run(server: Server, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    direct, more = server.url("cuts"), ["--broken", options.broken] if options.broken else []
    more += ["--patience", str(options.away * 0.7)] if options.away else []
    cutter: AbstractContextManager[Any]
    cut: Callable[[], None]
    if options.by == "wire":
        cutter = wire = CuttingProxy(folder, server.sockets / SOCKET, random.Random(options.seed), options.away)
        url = f"postgresql://postgres@/cuts?host={quote(str(folder), safe='')}"
        cut = wire.cut
    else:
        cutter, url, chance = nullcontext(), direct, random.Random(options.seed)
        cut = partial(terminate, server, chance)
    with cutter, run_load(url, folder, options.programs, *more) as made:
        made.wait_for_lines()
        cut_repeatedly(made, cut, options.cuts)
    ways = dict(wire.ways) if options.by == "wire" else {"terminated": options.cuts}
    faults = sum(ways.values())
    return {"suite": f"cuts by {options.by}", "database": "postgresql", "faults": faults, "ways": ways} | check_load(
        direct, made, ALLOWED
    )


def cut_repeatedly(made: LoadPrograms, cut: Callable[[], None], cuts: int) -> None:
    for number in range(cuts):
        cut()
        if number % CALM_SECONDS == CALM_SECONDS - 1:
            made.wait_for_lines(2, "succeeded")
    made.wait_for_lines()


def terminate(server: Server, chance: random.Random) -> None:
    """Terminates one of the backends in any state; waits until there is one."""
    find = (
        "select pid from pg_stat_activity where datname = 'cuts' and application_name = 'interlock' "
        "and (state = 'active' or query like '%commit%') order by random() limit 1"
    )
    time.sleep(chance.uniform(0, 0.02))  # a moment like any other
    with server.connect("cuts") as connection:
        deadline = time.monotonic() + 30
        while (row := connection.execute(find).fetchone()) is None:
            if time.monotonic() > deadline:
                raise RuntimeError("no program is connected any more")
            time.sleep(0.001)
        connection.execute("select pg_terminate_backend(%s)", row)


class CuttingProxy:
    """What is between programs and a server: a socket of the same name in another folder."""

    def __init__(self, folder: Path, server: Path, chance: random.Random, away: float) -> None:
        self.ways: Counter[str] = Counter()
        self.away = away  # seconds for which nobody can come back
        self._until = 0.0
        self.server = server  # where it leads to
        self._chance = chance
        self._wanted = ""
        self._struck = threading.Event()
        self._connections: list[ProxiedConnection] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / SOCKET))
        self._listening.listen(64)

    def __enter__(self) -> CuttingProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def cut(self) -> None:
        """The next commit that passes is cut in one of the ways; returns when that was done."""
        self.cut_next(self._chance.choice(["lost", "half", "unanswered", "half answered"]))
        if not self._struck.wait(30):
            raise RuntimeError("nothing passes the wire any more")

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if time.monotonic() < self._until:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                with suppress(OSError):
                    server.connect(str(self.server))
                    made = ProxiedConnection(self, client, server)
                    self._connections.append(made)
                    made.start()

    def end(self) -> None:
        """Cuts all that is connected, at once."""
        self._until = time.monotonic() + self.away
        for connection in self._connections:
            connection.end()

    def stop_cutting(self) -> None:
        self._until = 0.0

    def cut_next(self, way: str) -> None:
        """The next commit that passes is cut in this way."""
        self._struck.clear()
        self._wanted = way

    def take(self) -> str:
        """How the request that commits is to be cut; empty to let it pass."""
        way, self._wanted = self._wanted, ""
        return way

    def done(self, way: str) -> None:
        self._until = time.monotonic() + self.away
        self.ways[way] += 1
        self._struck.set()


class ProxiedConnection:
    def __init__(self, wire: CuttingProxy, client: socket.socket, server: socket.socket) -> None:
        self._wire, self._client, self._server = wire, client, server
        self._commits = re.compile(rb"commit\x00")
        self._way = ""

    def start(self) -> None:
        for work in (self._requests, self._answers):
            threading.Thread(target=work, daemon=True).start()

    def _requests(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(1 << 16):
                way = self._wire.take() if self._is_commit(data) else ""
                match way:
                    case "lost":
                        return self._cut(way)
                    case "half":
                        self._server.sendall(data[: len(data) // 2])
                        return self._cut(way)
                    case _:
                        self._way = way
                        self._server.sendall(data)
        self.end()

    def _is_commit(self, data: bytes) -> bool:
        """A statement is sent in full once, and then by the name that it was given."""
        named = re.search(rb"(i\d+)\x00commit\x00", data)
        if named is not None:
            self._commits = re.compile(rb"\x00" + named[1] + rb"\x00")
        return self._commits.search(data) is not None

    def _answers(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 16):
                if self._way:
                    if self._way == "half answered":
                        self._client.sendall(data[: len(data) // 2])
                    return self._cut(self._way)
                self._client.sendall(data)
        self.end()

    def _cut(self, way: str) -> None:
        self._wire.done(way)  # first: nobody may come back before it counts
        self.end()

    def end(self) -> None:
        for each in (self._client, self._server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


if __name__ == "__main__":
    main()
