"""`interlock doctor` and `interlock migrate`: is everything as it should be, and if not, what to do."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import typer
from rich.text import Text

from interlock import __version__
from interlock.cli.output import clock_time, print_json, say, show, span
from interlock.cli.policies import current, load
from interlock.cli.shared import Desk, Options, kept
from interlock.cli.words import counted
from interlock.core.card import visible
from interlock.core.errors import Error, Misconfigured, StoreUnavailable
from interlock.core.policy import Policy
from interlock.settings import Settings
from interlock.wiring import names_of, sqlite_path

State = Literal["ok", "warn", "fail"]
STYLES: dict[State, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}
OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 24)  # "on conflict do update"


@dataclass(frozen=True, slots=True)
class Line:
    """`todo` says what to do about it; empty where there is nothing to do."""

    state: State
    what: str
    found: str
    todo: str = ""


async def migrated(desk: Desk) -> None:
    """Opening the database has migrated it; what is new since then was done now."""
    rows = desk.parts.store._database.fetch_text("select name, applied_at from migrations order by number", ())
    done = [str(name) for name, at in rows if at >= desk.opened_at]
    path = str(sqlite_path(desk.settings.storage.url))
    if desk.json:
        print_json({"database": path, "applied": done, "migrations": [str(name) for name, _ in rows]})
    elif done:
        say(f"{path}: applied {counted(len(done), 'migration', 'migrations')}: {', '.join(done)}.")
    else:
        say(f"{path}: up to date; there was nothing to do.")


async def examine(options: Options) -> None:
    lines = [*_program()]
    settings, line = _configuration(options)
    lines.append(line)
    if settings is not None:
        lines += [line async for line in _database(options, settings)]
    public = settings.public() if settings else None
    healthy = all(line.state != "fail" for line in lines)
    if options.json:
        print_json({"ok": healthy, "checks": [asdict(line) for line in lines], "configuration": public})
    else:
        _tell(lines, public)
    if not healthy:
        raise typer.Exit(1)


def _program() -> Iterator[Line]:
    python = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        yield Line("ok", "program", f"Interlock {__version__} on Python {python}")
    else:
        yield Line("fail", "program", f"Python {python}", "Install Python 3.11 or newer.")


def _configuration(options: Options) -> tuple[Settings | None, Line]:
    try:
        settings = options.settings()
    except Error as error:
        return None, Line("fail", "configuration", error.message, "Correct the configuration; the lines are named.")
    where = str(settings.file) if settings.file else "no file: defaults and environment"
    return settings, Line("ok", "configuration", where)


async def _database(options: Options, settings: Settings) -> AsyncIterator[Line]:
    try:
        path = sqlite_path(settings.storage.url)
        if not path.exists():
            yield Line("warn", "database", f"{path} is not there yet", "Make it: interlock migrate")
            return
        async with kept(options) as desk:
            for line in [*_sqlite(desk, str(path)), await _clock(desk)]:
                yield line
            async for line in _policy(desk):
                yield line
            yield await _ledger(desk)
    except (Misconfigured, StoreUnavailable) as error:
        yield Line("fail", "database", error.message, "Nothing can be decided until this is mended.")


def _sqlite(desk: Desk, path: str) -> Iterator[Line]:
    fetch = desk.parts.store._database.fetch_text
    version = str(fetch("select sqlite_version()", ())[0][0])
    migrations = fetch("select number from migrations", ())
    mode = str(fetch("pragma journal_mode", ())[0][0])
    if tuple(map(int, version.split(".")[:2])) < OLDEST_SQLITE:
        yield Line("fail", "sqlite", version, "Install a Python with SQLite 3.24 or newer.")
    else:
        yield Line("ok", "sqlite", version)
    yield Line("ok", "database", f"{path}, {counted(len(migrations), 'migration', 'migrations')} applied")
    if mode == "wal":
        yield Line("ok", "journal", "write-ahead log")
    else:
        yield Line("fail", "journal", f"mode {mode}", "Put the database on a local disk; network folders lose writes.")


async def _clock(desk: Desk) -> Line:
    """A clock that went back is the one fault that stops every approval."""
    head, now = await desk.parts.store.head(desk.workspace), desk.now()
    if now >= head.at:
        return Line("ok", "clock", clock_time(now))
    behind = f"{clock_time(now)}, {span(head.at - now)} before the newest entry of the ledger"
    return Line("fail", "clock", behind, "Set the clock right; until then nothing can be approved.")


async def _policy(desk: Desk) -> AsyncIterator[Line]:
    users = await desk.parts.store.users(desk.workspace)
    try:
        source = await current(desk)
        loaded = load(source, desk.settings, names_of(users))
        bare = load(source, desk.settings)
    except Error as error:
        yield Line("fail", "policy", error.message, "Correct it; while it does not load, nothing new is allowed.")
        return
    yield Line("ok", "policy", f"{counted(len(loaded.policy.rules), 'rule', 'rules')}, {source.origin}")
    for warning in loaded.warnings:
        yield Line("warn", "policy", warning, "See: interlock policy check FILE")
    there = {team for user in users for team in user.teams}
    for team in sorted(_teams(bare.policy) - there):
        todo = f"Add somebody: interlock users add NAME --team {visible(team)}"
        yield Line("warn", "teams", f"nobody is in the team {visible(team)}, which has to decide", todo)


def _teams(policy: Policy) -> set[str]:
    asks = [rule.ask for rule in policy.rules if rule.then == "ask"]
    deciding = [stage.approvers for ask in asks for stage in ask.stages if stage.approvers is not None]
    climbed = [rung.to for ask in asks for rung in ask.ladder]
    return {team for people in (*deciding, *climbed) for team in people.teams}


async def _ledger(desk: Desk) -> Line:
    head = await desk.parts.store.head(desk.workspace)
    found = f"{counted(head.seq, 'entry', 'entries')}, head {head.link[:16]}…" if head.seq else "empty"
    return Line("ok", "ledger", found)


def _tell(lines: list[Line], public: dict[str, object] | None) -> None:
    for line in lines:
        found = " / ".join(visible(part) for part in line.found.splitlines())
        show(Text.assemble((f"{line.state:4}", STYLES[line.state]), f"  {line.what:13}  {found}"))
        if line.todo:
            say(f"{'':21}{line.todo}", style="bold")
    for section, value in (public or {}).items():
        say(f"      {section}: {visible(json.dumps(value, ensure_ascii=False))}", style="dim")
