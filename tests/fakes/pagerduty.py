"""A fake of PagerDuty's Events API v2, over real HTTP on loopback, which keeps incidents as PagerDuty does.

Each rule says where it is from: (documented) by PagerDuty's documentation of the Events API; (assumed) ours, where
that says nothing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from tests.fakes.http_receiver import ReceivedRequest, Receiver, Response, run_receiver

SCHEMA = Path(__file__).parents[1] / "vendor" / "pagerduty" / "enqueue.schema.json"
PATH = "/v2/enqueue"
MAX_BYTES = 512 * 1024  # (documented) of an event
KNOWN_FIELDS = {"routing_key", "event_action", "dedup_key", "payload", "client", "client_url", "links", "images"}


@dataclass
class Incident:
    key: str
    severity: str
    summaries: list[str] = field(default_factory=list)
    is_open: bool = True


@dataclass
class PagerDuty:
    """`incidents` in the order in which they began; one that was resolved stays, and its key begins a new one."""

    routing_key: str = "a" * 32
    incidents: list[Incident] = field(default_factory=list)
    receiver: Receiver = field(default_factory=Receiver)

    @property
    def url(self) -> str:
        return self.receiver.url

    @property
    def open(self) -> list[Incident]:
        return [each for each in self.incidents if each.is_open]

    def handle(self, heard: ReceivedRequest) -> Response:
        problems = self._problems(heard)
        if problems:  # (documented) 400 with a status, a message and a list of errors
            said = {"status": "invalid event", "message": "Event object is invalid", "errors": problems}
            return Response(400, {"content-type": "application/json"}, json.dumps(said).encode())
        self._apply(heard.json)
        said = {"status": "success", "message": "Event processed", "dedup_key": heard.json["dedup_key"]}
        return Response(202, {"content-type": "application/json"}, json.dumps(said).encode())  # (documented)

    def _problems(self, heard: ReceivedRequest) -> list[str]:
        if (heard.method, heard.path) != ("POST", PATH):  # (documented)
            return ["there is nothing here"]
        if heard.headers.get("content-type", "").partition(";")[0] != "application/json":  # (documented)
            return ["the body is JSON"]
        if len(heard.body) > MAX_BYTES:
            return ["the event is too large"]
        body = heard.json
        found = [f"{'/'.join(map(str, each.instance_path))}: {each.message}" for each in _schema().iter_errors(body)]
        found += [
            f"there is no {name}" for name in sorted(set(body) - KNOWN_FIELDS)
        ]  # (assumed) stricter: it is our mistake
        found += [] if body.get("routing_key") == self.routing_key else ["Invalid routing key"]  # (documented)
        return found

    def _apply(self, event: dict[str, Any]) -> None:
        """(documented) A trigger under the key of an open incident joins it; resolving nothing does nothing.

        Acknowledging says that somebody looks, and ends nothing.
        """
        there = next((each for each in self.open if each.key == event["dedup_key"]), None)
        if event["event_action"] != "trigger":
            if there is not None:
                there.is_open = event["event_action"] != "resolve"
            return
        if there is None:
            there = Incident(event["dedup_key"], event["payload"]["severity"])
            self.incidents.append(there)
        there.summaries.append(event["payload"]["summary"])


@asynccontextmanager
async def pagerduty() -> AsyncIterator[PagerDuty]:
    made = PagerDuty()
    async with run_receiver(made.handle, PATH) as receiver:
        made.receiver = receiver
        yield made


@cache
def _schema() -> Any:
    return jsonschema_rs.validator_for(json.loads(SCHEMA.read_text()), validate_formats=True)
