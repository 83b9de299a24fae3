"""A server that only serves, and workers beside it that let agents go on: readers see words as they are said."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.databases import Place
from tests.interlock_server import INTERLOCK, keys_at, serving
from tests.journeys.shell import PATIENCE, end_group

HELP = "what can you do?"  # the script has a lot to say to that


@contextmanager
def working(database: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [*INTERLOCK, "worker", "--demo", "--database", database]
    with (folder / "worker.log").open("a") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True, process_group=0)
    try:
        assert process.stdout is not None
        assert "worker is running" in process.stdout.readline()
        yield process
    finally:
        end_group(process)


def told(client: httpx2.Client, method: str, path: str, **more: Any) -> Generator[dict[str, Any]]:
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


def followed(client: httpx2.Client, thread_id: str, last: str) -> list[dict[str, Any]]:
    """What comes behind this event, until the turn is over."""
    events: list[dict[str, Any]] = []
    stream = told(client, "GET", f"/api/threads/{thread_id}/events", headers={"last-event-id": last})
    with closing(stream):
        while not events or events[-1]["type"] != "done":
            events.append(next(stream))
    return events


def words(events: list[dict[str, Any]]) -> str:
    return "".join(event["content"] for event in events if event["type"] == "delta")


def recorded(client: httpx2.Client, thread_id: str) -> str:
    lines = client.get(f"/api/threads/{thread_id}").json()["lines"]
    return "".join(line["body"]["text"] for line in lines if line["kind"] == "replied")


def test_words_that_are_said_in_another_process_come_as_they_are_said(place: Place, tmp_path: Path) -> None:  # R3, R4
    keys = asyncio.run(keys_at(place.url))
    with (
        serving(place.url, tmp_path, "--demo", "--no-worker") as server,
        working(place.url, tmp_path),
        server.client(keys["reviewer"]) as client,
    ):
        events = list(told(client, "POST", "/api/chat", json={"message": HELP}))
        thread_id = events[0]["thread_id"]
        deltas = [event for event in events if event["type"] == "delta"]
        assert events[-1]["type"] == "done"
        assert len(deltas) > 1  # what was only read when it was over comes in one piece
        assert words(events) == recorded(client, thread_id)
        for number in range(len(events)):
            rest = followed(client, thread_id, events[number - 1]["id"] if number else "0")
            assert words([*events[:number], *rest]) == recorded(client, thread_id)


def test_a_worker_that_is_killed_in_a_sentence_is_followed_by_another(place: Place, tmp_path: Path) -> None:  # R3
    keys = asyncio.run(keys_at(place.url))
    with serving(place.url, tmp_path, "--demo", "--no-worker") as server, server.client(keys["reviewer"]) as client:
        with (
            working(place.url, tmp_path) as first,
            closing(told(client, "POST", "/api/chat", json={"message": HELP})) as stream,
        ):
            begun = next(stream)
            first.kill()
        thread_id = begun["thread_id"]
        with working(place.url, tmp_path):
            events = [begun, *followed(client, thread_id, begun["id"])]
        taken_back = [number for number, event in enumerate(events, 1) if event.get("reset")]
        events = events[max(taken_back, default=0) :]
        lines = client.get(f"/api/threads/{thread_id}").json()["lines"]
        assert [line["kind"] for line in lines] == ["said", "replied", "ended"]
        assert words(events) == recorded(client, thread_id)


def test_a_server_that_stops_ends_its_streams_and_the_reader_goes_on_at_the_next(place: Place, tmp_path: Path) -> None:
    keys = asyncio.run(keys_at(place.url))  # R3
    with working(place.url, tmp_path):
        with serving(place.url, tmp_path, "--demo", "--no-worker") as server, server.client(keys["reviewer"]) as client:
            stream = told(client, "POST", "/api/chat", json={"message": HELP})
            events = [next(stream)]
            server.process.terminate()
            events += stream
            assert server.process.wait(PATIENCE) == 0
        with serving(place.url, tmp_path, "--demo", "--no-worker") as server, server.client(keys["reviewer"]) as client:
            events += followed(client, events[0]["thread_id"], events[-1]["id"])
            assert words(events) == recorded(client, events[0]["thread_id"])
