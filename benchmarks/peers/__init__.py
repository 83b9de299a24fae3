"""The measured frameworks: one file each, with a class `Peer`, found by name; Interlock is one of them."""

from __future__ import annotations

import ast
import pkgutil
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from interlock import Interlock
from interlock.sdk.agent import Agent

REPOSITORY = Path(__file__).resolve().parents[2]
PATH = "/srv/x/" + "a" * 120
TOOL = "delete_file"
Turns = Callable[[], Awaitable[None]]  # one agent's run of CALLS tool calls, none of which needs a question


class UnaskedGates(NamedTuple):
    """The same agent bare, with its framework's own approval step, and behind Interlock, by what its tool does.

    An allowed read leaves a count; an allowed write is started, finished and recorded, on the disk.
    """

    bare: Turns
    own: Turns
    read: Turns
    write: Turns


def gates(folder: Path) -> tuple[Agent, Agent]:
    """Two gates that ask nobody, each with a database of its own."""
    free = {"version": 1, "rules": [{"name": "free", "then": "allow"}]}
    return tuple(  # type: ignore[return-value]  # two
        Interlock(f"sqlite:///{folder / name}.db", policy=free, run_id="bench").agent("bench")
        for name in ("read", "write")
    )


CALLS = 10


@dataclass(frozen=True)
class PeerDatabase:
    """Where a peer may keep its state."""

    database: str  # sqlite, postgresql, or own
    folder: Path
    url: str  # of an empty PostgreSQL database, if it is that


@dataclass
class Tool:
    """What the agents want to run: it notes when it ran, and how often for each key."""

    at: dict[str, float] = field(default_factory=dict)
    runs: Counter[str] = field(default_factory=Counter)

    def run(self, key: str) -> str:
        self.at[key] = time.perf_counter()
        self.runs[key] += 1
        return "ok"


class UnfitPeer(Exception):
    """The peer cannot be measured here; says why."""


class Peer(Protocol):
    """A durable way to ask a human before a tool runs."""

    async def open(self, place: PeerDatabase, tool: Tool) -> str:
        """Gives what makes it durable, as it is really set."""

    async def propose(self, key: str) -> Any:
        """Comes back when the call waits and that is on the disk; gives what `decide` needs."""

    async def decide(self, key: str, paused: Any) -> None:
        """Approves; comes back when the tool has run and its result is on the disk."""

    async def close(self) -> None: ...


@dataclass(frozen=True)
class PeerInfo:
    """The description of a peer. Its file may also hold `build_unasked`, and its `Peer` a method `listed`."""

    name: str
    title: str
    databases: tuple[str, ...]
    packages: tuple[str, ...]
    environment: str = ""  # a folder of this project, with Python and the packages; else that of the run itself
    sqlite_needed: tuple[int, ...] = ()  # its oldest version

    def interpreter(self) -> Path:
        """The Python that runs the peer; it is not there where the environment is not installed."""
        return REPOSITORY / self.environment / "bin" / "python" if self.environment else Path(sys.executable)


def peer_names() -> list[str]:
    """Interlock first, the others by name."""
    found = [module.name for module in pkgutil.iter_modules(__path__)]
    return sorted(found, key=lambda name: (name != "interlock_gate", name))


def peer_info(name: str) -> PeerInfo:
    """Read without importing the file, which fails where the peer is not installed."""
    tree = ast.parse((Path(__file__).parent / f"{name}.py").read_text())
    said: dict[str, Any] = {}
    for line in tree.body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            with suppress(ValueError):
                said[line.targets[0].id] = ast.literal_eval(line.value)
    where, needed = said.get("ENVIRONMENT", ""), said.get("SQLITE_NEEDED", ())
    return PeerInfo(name, said["TITLE"], said["DATABASES"], said["PACKAGES"], where, needed)


def load_peer(name: str) -> Any:
    """The module; an ImportError says that the peer is not installed."""
    return import_module(f"{__name__}.{name}")


def arguments(key: str) -> dict[str, str]:
    """The same for everybody."""
    return {"path": PATH, "key": key}
