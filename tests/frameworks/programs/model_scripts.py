"""Shared by all framework programs: scripts of the model, counted tools, and the job."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

AGENT = "clerk"
EFFECTS = {"get_weather": "read", "send_mail": "write"}


class Call(NamedTuple):
    """One that the model wants."""

    id: str
    tool: str
    args: dict[str, Any]


MAIL = Call("call_mail", "send_mail", {"to": "bob@example.com", "text": "Hello"})
WEATHER = Call("call_weather", "get_weather", {"city": "Oslo"})
SCRIPTS = {
    "mail": (MAIL,),
    "two": (WEATHER, MAIL),
    "two mails": (MAIL, MAIL._replace(id="call_mail_2", args={"to": "eve@example.com", "text": "Bye"})),
}
LAST_REPLY = "Done."


def next_calls(story: str, results: int) -> tuple[Call, ...]:
    """What the model says next: the calls of the story, and once it has a result of each, nothing but LAST."""
    return SCRIPTS[story] if results < len(SCRIPTS[story]) else ()


@dataclass(frozen=True)
class Job:
    """`url` and `key` are the interlock's; `run` names the conversation; with `meet` programs wait for each other."""

    url: str
    effects: str
    run: str
    story: str
    folder: str
    key: str | None = None
    meet: bool = False

    def lock(self, **more: Any) -> Any:
        from interlock import Interlock

        return Interlock(self.url, key=self.key, agent=AGENT, run_id=self.run, **more)

    def send_mail(self, to: str, text: str) -> str:
        self.record_effect("send_mail", {"to": to, "text": text})
        return f"sent to {to}"

    def get_weather(self, city: str) -> str:
        self.record_effect("get_weather", {"city": city})
        return f"clear in {city}"

    def record_effect(self, tool: str, args: dict[str, Any]) -> None:
        """The effect: it counts when it arrives."""
        self._post("effect", {"tool": tool, "args": args})

    def meet_other(self) -> None:
        """Comes back when the other program is here as well."""
        if self.meet:
            self._post("meet", {})

    def _post(self, path: str, body: dict[str, Any]) -> None:
        request = urllib.request.Request(f"{self.effects}/{path}", json.dumps(body).encode())  # noqa: S310  our own, on loopback
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            answer.read()


@dataclass(frozen=True)
class RunReport:
    """What came of it. `results` are the texts that the model was given for its calls, in their order."""

    paused: bool
    said: str = ""
    results: tuple[str, ...] = ()


def main(run: Callable[[Job], Awaitable[RunReport]]) -> None:
    """`run` begins the conversation of the job, or goes on with it."""
    job = Job(**json.loads(sys.argv[1]))
    job.meet_other()
    told = asyncio.run(run(job))
    print(json.dumps({"paused": told.paused, "said": told.said, "results": told.results}), flush=True)


def result_text(result: object) -> str:
    return result if isinstance(result, str) else json.dumps(result)
