"""Which side an address leads to, and which options go with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.app.bootstrap import wire
from interlock.client import Client
from interlock.core.errors import Misconfigured
from interlock.faults import Point
from interlock.library.embedded import Embedded
from interlock.library.remote import Remote
from interlock.library.sides import Program, Side
from interlock.runtime.durations import parse_duration

ELSEWHERE = {
    "policy": "its own policy counts. Put it in force there (interlock policy put FILE).",
    "tool_approvals": "set it there, under agents: in interlock.yaml.",
    "retention": "it erases by its own storage.retention, in interlock.yaml.",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What was given; None or empty is not given."""

    policy: str | Path | Mapping[str, Any] | None = None
    tool_approvals: Mapping[str, bool] | None = None
    retention: str | None = None
    key: str | None = field(default=None, repr=False)
    insecure: bool = False


def side_of(url: str, program: Program, options: Options, point: Point | None) -> Side:
    match url.partition("://")[0].lower():
        case "http" | "https":
            return _server(url, program, options, point)
        case _:
            return _database(url, program, options, point)


def _server(url: str, program: Program, options: Options, point: Point | None) -> Side:
    for name, where in ELSEWHERE.items():
        if getattr(options, name) is not None:
            raise Misconfigured(f"{name}= does not go with a server: {where}")
    if program.workspace != "default":
        raise Misconfigured("workspace= does not go with a server: a key belongs to one workspace, and leads there.")
    lease = program.lease / 1000
    return Remote(Client(url, options.key, lease_seconds=lease, insecure=options.insecure, point=point), program)


def _database(url: str, program: Program, options: Options, point: Point | None) -> Side:
    if options.key is not None:
        raise Misconfigured("key= goes with a server's address, such as https://interlock.example alone.")
    kept_for = None if options.retention is None else parse_duration(options.retention)
    toggles = {program.agent: dict(options.tool_approvals or {})}
    return Embedded(wire(url, point=point, retention=kept_for), program, options.policy, toggles)
