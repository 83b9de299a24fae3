"""A fake of Inngest: takes events, and calls functions over HTTP as its executor does, signed.

A run goes on when the test says so, until it ends, waits for an event, or its service is away. What its rules rest on:

- documented: events are posted to /e/KEY; a function that a new event triggers begins once for each event id; a wait
  takes the first event of its name that fits its expression, and one that came before is lost; a time-out gives null; a
  step that raised is tried again, a few times; a finished step is never run again.
- seen in the SDK: the body of a request, its signature, the operations of an answer with 206, the header that says that
  nothing is to be tried again, and that what a wait got is not nested as the result of a step is.
- assumed: nobody drops a doubled event that a run waits for; a service that is away counts as a failed try.

Not there: parallel steps, sleeping, invoking, batches, cancelling, limits, and every other expression.
"""

from __future__ import annotations

import hmac
import json
import re
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from interlock.core.canonical import canonical

EVENT_KEY, SIGNING_KEY = "planted-event-key", "0123456789abcdef"
RETRIES = 4
TIMEOUT = 110  # seconds for one step: the tool runs in it
ONLY = re.compile(r"async\.data\.(\w+) == '([0-9a-zA-Z-]+)'")


class ServiceUnavailable(Exception):
    """The service is not there, or hung up: the step is to be tried again."""


class Wait(NamedTuple):
    step: str
    event: str
    name: str
    value: str
    seconds: int


@dataclass
class Run:
    """`steps` is what is known: all that a function is given to go on from."""

    function: str
    event: dict[str, Any]
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    steps: dict[str, Any] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)  # of steps, in the order in which they ended
    waits: list[Wait] = field(default_factory=list)
    history: list[Wait] = field(default_factory=list)
    attempt: int = 0
    is_over: bool = False
    result: Any = None
    error: dict[str, Any] | None = None


class Inngest:
    def __init__(self) -> None:
        self.service = ""
        self.events: list[dict[str, Any]] = []
        self.runs: list[Run] = []
        self.override: tuple[int, bytes] | None = None  # what every event is answered instead
        self.refusals: list[str] = []
        self._triggers: dict[str, str] = {}
        self._changed = threading.Condition()
        here = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status, answer = here.accept_events(self.path, body)
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    # Events

    def add_trigger(self, event: str, function: str) -> None:
        self._triggers[event] = function

    def accept_events(self, path: str, body: bytes) -> tuple[int, bytes]:
        """As POST /e/KEY is answered."""
        if self.override is not None:
            return self.override
        if path != f"/e/{EVENT_KEY}":
            self.refusals.append(path)
            return 401, b'{"error":"Event key not found","status":401}'
        said = json.loads(body)
        ids = [self.send(event) for event in (said if isinstance(said, list) else [said])]
        return 200, json.dumps({"ids": ids, "status": 200}).encode()

    def send(self, event: dict[str, Any]) -> str:
        """By anybody who has the key."""
        assert isinstance(event.get("name"), str), event
        assert isinstance(event.get("data"), dict), event
        made = {"ts": int(time.time() * 1000), "id": uuid.uuid4().hex, **event}
        with self._changed:
            is_new = made["id"] not in {each["id"] for each in self.events}
            self.events.append(made)
            for run in self.runs:
                self._deliver_event(run, made)
            if is_new and made["name"] in self._triggers:
                self.runs.append(Run(self._triggers[made["name"]], made))
            self._changed.notify_all()
        return str(made["id"])

    # Runs

    def start_run(self, event: str, **data: Any) -> Run:
        self.send({"name": event, "data": data})
        return self.runs[-1]

    def advance(self, run: Run) -> Run:
        """Until it ends or waits. Raises Away."""
        while not run.is_over and not run.waits:
            self.step(run)
        return run

    def step(self, run: Run) -> None:
        """One request."""
        status, headers, said = self._call(run)
        match status:
            case 206:
                for operation in said:
                    self._apply_operation(run, operation)
            case 200:
                run.is_over, run.result = True, said
            case _:
                assert status == 500, (status, said)
                self._record_failure(run, headers, said)

    def time_out(self, run: Run) -> Run:
        """As if the time had passed of everything that it waits for."""
        with self._changed:
            for wait in run.waits:
                run.steps[wait.step] = None
            run.history += run.waits
            run.waits = []
        return self.advance(run)

    def call_function(self, run: Run, steps: dict[str, Any], key: str = SIGNING_KEY) -> tuple[int, Any]:
        """A request that says what it likes of the past; without the key it is somebody else's."""
        status, _, said = self._post(run, {**run.steps, **steps}, key)
        return status, said

    def _call(self, run: Run) -> tuple[int, dict[str, str], Any]:
        try:
            return self._post(run, run.steps, SIGNING_KEY)
        except (urllib.error.URLError, ConnectionError) as error:
            run.attempt += 1
            raise ServiceUnavailable from error

    def _post(self, run: Run, steps: dict[str, Any], key: str) -> tuple[int, dict[str, str], Any]:
        ctx = {"run_id": run.id, "attempt": run.attempt, "max_attempts": RETRIES, "disable_immediate_execution": False}
        body = {
            "ctx": {**ctx, "stack": {"stack": list(steps), "current": len(steps)}},
            "event": run.event,
            "events": [run.event],
            "steps": steps,
            "use_api": False,
        }
        content, now = canonical(body), str(int(time.time()))
        proof = hmac.new(key.encode(), content + now.encode(), sha256).hexdigest()
        headers = {"content-type": "application/json", "x-inngest-signature": f"t={now}&s={proof}"}
        url = f"{self.service}/api/inngest?fnId={run.function}&stepId=step"
        request = urllib.request.Request(url, content, headers)  # noqa: S310  our own, on loopback
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
                return answer.status, _small(answer.headers), json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _small(error.headers), json.loads(error.read() or b"null")

    def _apply_operation(self, run: Run, operation: dict[str, Any]) -> None:
        step, opts = operation["id"], operation.get("opts") or {}
        match operation["op"]:
            case "StepRun":
                run.steps[step] = {"data": operation.get("data")}
                run.names.append(operation["displayName"])
                run.attempt = 0
            case "StepError":
                run.attempt += 1
                run.names.append(f"{operation['displayName']} failed")
            case "StepFailed":
                run.steps[step] = {"error": operation["error"]}
                run.attempt = 0
            case "WaitForEvent":
                found = ONLY.fullmatch(opts["if"])
                assert found, opts
                assert opts["timeout"].endswith(("s", "m")), opts
                number = int(opts["timeout"][:-1]) * (60 if opts["timeout"].endswith("m") else 1)
                with self._changed:
                    run.waits.append(Wait(step, operation["name"], found[1], found[2], number))
            case other:
                raise AssertionError(f"The stand-in does not know {other}.")

    def _record_failure(self, run: Run, headers: dict[str, str], said: Any) -> None:
        run.attempt += 1
        if headers.get("x-inngest-no-retry") == "true" or run.attempt >= RETRIES:
            run.is_over, run.error = True, said

    def _deliver_event(self, run: Run, event: dict[str, Any]) -> None:
        for wait in list(run.waits):
            if event["name"] == wait.event and event["data"].get(wait.name) == wait.value:
                run.steps[wait.step] = event
                run.waits.remove(wait)
                run.history.append(wait)

    @contextmanager
    def serve(self) -> Iterator[Inngest]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def _small(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
