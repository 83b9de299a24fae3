"""Event streams: the cost of an idle one, and the cost of many for those who decide.

python -m benchmarks.http.streams memory | deciding | following
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import socket
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.http.servers import make_database, run_load, start_child
from tests.interlock_server import RunningServer
from tests.postgres import Server

IDLE, STALLED, MANY = 1_000, 100, 5_000
BATCH = 100  # streams that are opened at once
SMALL_RECEIVE_BUFFER = (
    "Accept: text/event-stream\r\nAccept-Language: en-GB,en;q=0.9\r\nAccept-Encoding: gzip, deflate, br\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n"
    "Cache-Control: no-cache\r\nPragma: no-cache\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Site: same-origin\r\n"
)


def idle_streams(url: str, key: str, count: int) -> list[socket.socket]:
    """Open streams without events: each follows an approval that does not change."""
    return [
        each for lot in _batches(count) for each in _open_streams(url, key, [f"?approval_id=none-{n}" for n in lot])
    ]


def stalled_streams(url: str, key: str, count: int) -> list[socket.socket]:
    """Streams of everything, which nobody reads from once they have begun."""
    return [each for lot in _batches(count) for each in _open_streams(url, key, [""] * len(lot), receive_buffer=4096)]


@contextmanager
def following_streams(url: str, key: str, count: int) -> Iterator[list[int]]:
    """Streams of everything, read by a thread; at the end, the bytes that came."""
    streams = [each for lot in _batches(count) for each in _open_streams(url, key, [""] * len(lot))]
    came, stop = [0], threading.Event()
    reading = threading.Thread(target=_read_all, args=(streams, came, stop))
    reading.start()
    try:
        yield came
    finally:
        stop.set()
        reading.join()
        close(streams)


def close(streams: Sequence[socket.socket]) -> None:
    for each in streams:
        each.close()
    time.sleep(1)  # the server notices, and that is not part of what is measured next


def resident_memory(pid: int) -> int:
    """Bytes of memory that a process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def cpu_seconds(pid: int) -> float:
    """Seconds that a process has had of a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_memory(server: Server, count: int = MANY) -> dict[str, float]:
    """Of one idle stream in the server, in KiB."""
    with make_database(server, "sqlite", 0) as (served, keys):
        close(idle_streams(served.url, keys["viewer"], 100))  # what the first ones load is not theirs
        before = resident_memory(served.process.pid)
        streams = idle_streams(served.url, keys["viewer"], count)
        after = resident_memory(served.process.pid)
        close(streams)
    return {"streams": count, "before_mib": before / 2**20, "kib_per_stream": (after - before) / 1024 / count}


def measure_decisions(server: Server, kind: str, rounds: int, seconds: float) -> dict[str, Any]:
    """Cycles per second alone and beside idle and stalled streams, in turn on the same server."""
    alone, beside = [], []
    with make_database(server, kind, 0) as (served, keys):
        options = run_load(served, keys, seconds)
        start_child("cycles", *options)
        for _ in range(rounds):
            alone.append(_measure_load(served, options, seconds))
            streams = idle_streams(served.url, keys["viewer"], IDLE) + stalled_streams(
                served.url, keys["viewer"], STALLED
            )
            beside.append(_measure_load(served, options, seconds))
            close(streams)
        resident_mib = resident_memory(served.process.pid) / 2**20
    return {"alone": alone, "beside": beside, "left": _shares(alone, beside), "resident_mib": resident_mib}


def measure_following(server: Server, kind: str, count: int, rounds: int, seconds: float) -> dict[str, Any]:
    """The same with streams that get and read every event."""
    alone, beside = [], []
    with make_database(server, kind, 0) as (served, keys):
        options = run_load(served, keys, seconds)
        start_child("cycles", *options)
        for _ in range(rounds):
            alone.append(_measure_load(served, options, seconds))
            with following_streams(served.url, keys["viewer"], count) as came:
                beside.append(_measure_load(served, options, seconds))
    return {"streams": count, "alone": alone, "beside": beside, "left": _shares(alone, beside), "mib": came[0] / 2**20}


def _measure_load(served: RunningServer, options: Sequence[str], seconds: float) -> dict[str, float]:
    """On a machine with other work the processor's time says more than the clock's."""
    before = cpu_seconds(served.process.pid)
    rate = start_child("cycles", *options)["cycles_per_second"]
    spent = cpu_seconds(served.process.pid) - before
    return {"cycles_per_second": rate, "processor_ms": spent * 1000 / (rate * seconds)}


def _shares(alone: Sequence[Mapping[str, float]], beside: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The rate with streams, as a share of the rate without them."""
    return {
        figure: statistics.median(each[figure] for each in beside) / statistics.median(each[figure] for each in alone)
        for figure in alone[0]
    }


def _batches(count: int) -> Iterator[range]:
    for start in range(0, count, BATCH):
        yield range(start, min(start + BATCH, count))


def _open_streams(url: str, key: str, queries: Sequence[str], receive_buffer: int = 0) -> list[socket.socket]:
    parts = urlsplit(url)
    streams = []
    for query in queries:
        each = socket.socket()
        if receive_buffer:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        each.settimeout(30)
        each.connect((parts.hostname, parts.port))
        head = f"GET /api/events{query} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {key}\r\n"
        each.sendall(f"{head}{SMALL_RECEIVE_BUFFER}\r\n".encode())
        streams.append(each)
    for each in streams:
        start_time = b""
        while b"retry: " not in start_time:
            start_time += each.recv(4096)
            assert start_time.startswith(b"HTTP/1.1 200 "), start_time
    return streams


def _read_all(streams: Sequence[socket.socket], came: list[int], stop: threading.Event) -> None:
    with selectors.DefaultSelector() as selector:
        for each in streams:
            selector.register(each, selectors.EVENT_READ)
        while not stop.is_set():
            for ready, _ in selector.select(0.1):
                came[0] += len(ready.fileobj.recv(1 << 18))  # type: ignore[union-attr]  # sockets only


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["memory", "deciding", "following"])
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with Server() as server:
        match given.what:
            case "memory":
                found = measure_memory(server)
            case "deciding":
                found = measure_decisions(server, given.database, given.rounds, given.seconds)
            case _:
                found = measure_following(server, given.database, given.streams, given.rounds, given.seconds)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
