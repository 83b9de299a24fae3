"""A server without a chat loop, and workers that run it: readers see text as it is streamed."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.databases import Database
from tests.interlock_server import INTERLOCK, create_keys, run_server
from tests.journeys.shell import TIMEOUT, end_group

HELP = "what can I say?"  # the script has a lot to say to that


@contextmanager
def run_worker(database: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [*INTERLOCK, "worker", "--demo", "--database", database]
    with (folder / "worker.log").open("a") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True, process_group=0)
    try:
        assert process.stdout is not None
        assert "worker is running" in process.stdout.readline()
        yield process
    finally:
        end_group(process)


def read_json(client: httpx2.Client, method: str, path: str, **more: Any) -> Generator[dict[str, Any]]:
    with client.stream(method, path, **more) as answer:
        assert answer.status_code == 200
        event: dict[str, Any] = {}
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name in ("id", "event", "data"):
                event[name] = value
            elif not line and "data" in event:
                yield {"id": event["id"], **json.loads(event["data"])}
                event = {}


def follow_thread(client: httpx2.Client, thread_id: str, last: str) -> list[dict[str, Any]]:
    """What comes behind this event, until the turn is over."""
    events: list[dict[str, Any]] = []
    stream = read_json(client, "GET", f"/api/threads/{thread_id}/events", headers={"last-event-id": last})
    with closing(stream):
        while not events or events[-1]["type"] != "done":
            events.append(next(stream))
    return events


def text_deltas(events: list[dict[str, Any]]) -> str:
    return "".join(event["content"] for event in events if event["type"] == "delta")


def thread_entries(client: httpx2.Client, thread_id: str) -> str:
    lines = client.get(f"/api/threads/{thread_id}").json()["lines"]
    return "".join(line["body"]["text"] for line in lines if line["kind"] == "replied")


def test_words_that_are_said_in_another_process_come_as_they_are_said(
    database: Database, tmp_path: Path
) -> None:  # R3, R4
    keys = asyncio.run(create_keys(database.url))
    with (
        run_server(database.url, tmp_path, "--demo", "--no-worker") as server,
        run_worker(database.url, tmp_path),
        server.client(keys["reviewer"]) as client,
    ):
        events = list(read_json(client, "POST", "/api/chat", json={"message": HELP}))
        thread_id = events[0]["thread_id"]
        deltas = [event for event in events if event["type"] == "delta"]
        assert events[-1]["type"] == "done"
        assert len(deltas) > 1  # what was only read when it was over comes in one piece
        assert text_deltas(events) == thread_entries(client, thread_id)
        for number in range(len(events)):
            rest = follow_thread(client, thread_id, events[number - 1]["id"] if number else "0")
            assert text_deltas([*events[:number], *rest]) == thread_entries(client, thread_id)


def test_a_worker_that_is_killed_in_a_sentence_is_followed_by_another(database: Database, tmp_path: Path) -> None:  # R3
    keys = asyncio.run(create_keys(database.url))
    with (
        run_server(database.url, tmp_path, "--demo", "--no-worker") as server,
        server.client(keys["reviewer"]) as client,
    ):
        with (
            run_worker(database.url, tmp_path) as first,
            closing(read_json(client, "POST", "/api/chat", json={"message": HELP})) as stream,
        ):
            begun = next(stream)
            first.kill()
        thread_id = begun["thread_id"]
        with run_worker(database.url, tmp_path):
            events = [begun, *follow_thread(client, thread_id, begun["id"])]
        taken_back = [number for number, event in enumerate(events, 1) if event.get("reset")]
        events = events[max(taken_back, default=0) :]
        lines = client.get(f"/api/threads/{thread_id}").json()["lines"]
        assert [line["kind"] for line in lines] == ["said", "replied", "ended"]
        assert text_deltas(events) == thread_entries(client, thread_id)


def test_a_server_that_stops_ends_its_streams_and_the_reader_goes_on_at_the_next(
    database: Database, tmp_path: Path
) -> None:
    keys = asyncio.run(create_keys(database.url))  # R3
    with run_worker(database.url, tmp_path):
        with (
            run_server(database.url, tmp_path, "--demo", "--no-worker") as server,
            server.client(keys["reviewer"]) as client,
        ):
            stream = read_json(client, "POST", "/api/chat", json={"message": HELP})
            events = [next(stream)]
            server.process.terminate()
            events += stream
            assert server.process.wait(TIMEOUT) == 0
        with (
            run_server(database.url, tmp_path, "--demo", "--no-worker") as server,
            server.client(keys["reviewer"]) as client,
        ):
            events += follow_thread(client, events[0]["thread_id"], events[-1]["id"])
            assert text_deltas(events) == thread_entries(client, events[0]["thread_id"])
