"""What every framework's program shares: the story that its scripted model tells, tools that are counted outside of the
process, and what it prints. Standard library only: it is loaded in each framework's own environment.
"""

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
STORIES = {
    "mail": (MAIL,),
    "two": (WEATHER, MAIL),
    "two mails": (MAIL, MAIL._replace(id="call_mail_2", args={"to": "eve@example.com", "text": "Bye"})),
}
LAST = "Done."


def calls_of(story: str, results: int) -> tuple[Call, ...]:
    """What the model says next: the calls of the story, and once it has a result of each, nothing but LAST."""
    return STORIES[story] if results < len(STORIES[story]) else ()


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
        self.tell("send_mail", {"to": to, "text": text})
        return f"sent to {to}"

    def get_weather(self, city: str) -> str:
        self.tell("get_weather", {"city": city})
        return f"clear in {city}"

    def tell(self, tool: str, args: dict[str, Any]) -> None:
        """The effect: it counts when it arrives."""
        self._post("effect", {"tool": tool, "args": args})

    def arrive(self) -> None:
        """Comes back when the other program is here as well."""
        if self.meet:
            self._post("meet", {})

    def _post(self, path: str, body: dict[str, Any]) -> None:
        request = urllib.request.Request(f"{self.effects}/{path}", json.dumps(body).encode())  # noqa: S310  our own, on loopback
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            answer.read()


@dataclass(frozen=True)
class Told:
    """What came of it. `results` are the texts that the model was given for its calls, in their order."""

    paused: bool
    said: str = ""
    results: tuple[str, ...] = ()


def main(run: Callable[[Job], Awaitable[Told]]) -> None:
    """`run` begins the conversation of the job, or goes on with it."""
    job = Job(**json.loads(sys.argv[1]))
    job.arrive()
    told = asyncio.run(run(job))
    print(json.dumps({"paused": told.paused, "said": told.said, "results": told.results}), flush=True)


def text_of(result: object) -> str:
    return result if isinstance(result, str) else json.dumps(result)
