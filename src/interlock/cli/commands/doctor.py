"""`interlock doctor` and `interlock migrate`: is everything as it should be, and if not, what to do."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict

import typer
from rich.text import Text

from interlock import __version__
from interlock.app.audit import GLANCE, glance
from interlock.app.bootstrap import absent, database_option, names_of, wire
from interlock.app.workspaces import DEFAULT
from interlock.cli.commands.tools import catalog_of, on_word_of
from interlock.cli.context import Desk, Options, kept
from interlock.cli.doctor.channels import reaching, workspaces
from interlock.cli.doctor.chat import equipment
from interlock.cli.doctor.server import surroundings
from interlock.cli.output import clock_time, print_json, say, show, span
from interlock.cli.policy_in_force import current, load
from interlock.config.load import Settings
from interlock.core.card import visible
from interlock.core.errors import Error, Misconfigured, StoreUnavailable
from interlock.core.policy.claims import unbound_keys
from interlock.core.policy.policy import Policy
from interlock.notify.workspace_channels import reaching_of
from interlock.policy.own_file import configured_policy
from interlock.presenters.text import counted
from interlock.storage.engine.metrics import Check, State

STYLES: dict[State, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}
OLDEST_PYTHON = (3, 11)
MOST_FAULTS = 3  # that are told
NAMED = 5  # tools that one line spells out


async def migrated(options: Options) -> None:
    """Also for a database that cannot be opened before it is done."""
    store = wire(options.settings().storage.url).store
    try:
        done = await store.migrate()
        await store.open()
        stated = await store.state()
        every = [name for name, _ in await store.migrations()]
    finally:
        await store.close()
    if options.json:
        print_json({"database": store.name, "applied": list(done), "migrations": every, "stated": list(stated)})
        return
    if stated:
        say(f"{store.name}: one entry now states what there is in {', '.join(stated)}; from here on it is compared.")
    if done:
        say(f"{store.name}: applied {counted(len(done), 'migration', 'migrations')}: {', '.join(done)}.")
    else:
        say(f"{store.name}: up to date; there was nothing to do.")


async def examine(options: Options) -> None:
    lines = [*_program()]
    settings, line = _configuration(options)
    lines.append(line)
    if settings is not None:
        lines += [line async for line in _database(options, settings)]
        lines += surroundings(settings)
    public = settings.public() if settings else None
    healthy = all(line.state != "fail" for line in lines)
    if options.json:
        print_json({"ok": healthy, "checks": [asdict(line) for line in lines], "configuration": public})
    else:
        _tell(lines, public)
    if not healthy:
        raise typer.Exit(1)


def _program() -> Iterator[Check]:
    python = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        yield Check("ok", "program", f"Interlock {__version__} on Python {python}")
    else:
        yield Check("fail", "program", f"Python {python}", "Install Python 3.11 or newer.")


def _configuration(options: Options) -> tuple[Settings | None, Check]:
    try:
        settings = options.settings()
    except Error as error:
        return None, Check("fail", "configuration", error.message, "Correct the configuration; the lines are named.")
    where = str(settings.file) if settings.file else "no file: defaults and environment"
    return settings, Check("ok", "configuration", where)


async def _database(options: Options, settings: Settings) -> AsyncIterator[Check]:
    try:
        if (gone := absent(settings.storage.url)) is not None:
            make = f"Make it: interlock migrate {database_option(settings.storage.url)}"
            yield Check("warn", "database", f"{gone} is not there yet", make)
            for line in equipment(settings, wire(settings.storage.url).store, {}, options.workspace):
                yield line
            async for line in reaching(settings.of(options.workspace), [], Policy()):
                yield line
            async for line in workspaces(settings, options.workspace):
                yield line
            return
        async with kept(options) as desk:
            async for line in _workspace(desk):
                yield line
    except (Misconfigured, StoreUnavailable) as error:
        yield Check("fail", "database", error.message, "Nothing can be decided until this is mended.")


async def _workspace(desk: Desk) -> AsyncIterator[Check]:
    store, settings = desk.parts.store, desk.settings
    for line in [*await store.examine(), await _clock(desk)]:
        yield line
    async for line in _policy(desk):
        yield line
    yield await _ledger(desk)
    yield await _rows(desk)
    for line in await _freezes(desk):
        yield line
    stored = {agent.name: agent for agent in await store.agents(desk.workspace)}
    for line in equipment(settings, store, stored, desk.workspace):
        yield line
    async for line in _on_word(desk):
        yield line
    async for line in reaching(desk.own, await store.users(desk.workspace), await _in_force(desk)):
        yield line
    known = [name for name, _ in await desk.parts.accounts.workspaces()]
    async for line in workspaces(settings, desk.workspace, known):
        yield line


async def _freezes(desk: Desk) -> list[Check]:
    todo = "Release it: interlock unfreeze --reason TEXT, with --agent, --key or --tool"
    on = [each for each in await desk.parts.store.open_freezes(desk.workspace) if each.is_on]
    told = [f"{each.what} has been frozen by {each.by} for {span(desk.now() - each.at)}: {each.reason}" for each in on]
    return [Check("warn", "frozen", what, todo) for what in told]


async def _on_word(desk: Desk) -> AsyncIterator[Check]:
    """Tools of which nobody but their agent says what they do. Nothing, if the policy does not load: that was told."""
    try:
        catalog = await catalog_of(desk)
    except Misconfigured:
        return
    tools = await catalog.tools(desk.now())
    for bound in await catalog.bounds():
        todo = (
            "Look at what its program sends: interlock tools list. To stop it: interlock freeze --key ID --reason TEXT"
        )
        yield Check("warn", "pins", bound, todo)
    believed = [visible(tool.name) for tool in tools if tool.on_word]
    if believed:
        few = ", ".join(believed[:NAMED]) + (" and more" if len(believed) > NAMED else "")
        found = f"{on_word_of(len(believed))}: {few}"
        them = "it" if len(believed) == 1 else "them"
        how = "interlock tools list, interlock tools pin TOOL; or set trust_declared: false in the policy."
        yield Check("warn", "pins", found, f"Pin {them}: {how}")
    for tool in tools:
        if tool.changed:
            found = f"an agent declares {visible(tool.name)} otherwise than it is pinned: {', '.join(tool.changed)}"
            yield Check("warn", "pins", found, f"If that is meant: interlock tools pin {visible(tool.name)}")


async def _clock(desk: Desk) -> Check:
    """A clock that went back is the one fault that stops every approval."""
    head, now = await desk.parts.store.head(desk.workspace), desk.now()
    if now >= head.at:
        return Check("ok", "clock", clock_time(now))
    behind = f"{clock_time(now)}, {span(head.at - now)} before the newest entry of the ledger"
    return Check("fail", "clock", behind, "Set the clock right; until then nothing can be approved.")


async def _policy(desk: Desk) -> AsyncIterator[Check]:
    users = await desk.parts.store.users(desk.workspace)
    try:
        source = await current(desk)
        loaded = load(source, desk.own, names_of(users, reaching_of(desk.settings, desk.workspace)))
        bare = load(source, desk.own)
    except Error as error:
        yield Check("fail", "policy", error.message, "Correct it; while it does not load, nothing new is allowed.")
        return
    yield Check("ok", "policy", f"{counted(len(loaded.policy.rules), 'rule', 'rules')}, {source.origin}")
    for line in await _own_policy(desk):
        yield line
    for warning in loaded.warnings:
        yield Check("warn", "policy", warning, "See: interlock policy check FILE")
    loose = unbound_keys(loaded.policy, await desk.parts.accounts.keys(desk.workspace), desk.now())
    if loose:
        found, _, todo = loose.partition(". ")
        yield Check("warn", "keys", found, todo)
    there = {team for user in users if user.removed_at is None for team in user.teams}
    for team in sorted(_teams(bare.policy) - there):
        todo = f"Add somebody: interlock users add NAME --team {visible(team)}"
        yield Check("warn", "teams", f"nobody is in the team {visible(team)}, which has to decide", todo)


async def _own_policy(desk: Desk) -> list[Check]:
    """Where the configuration's policy is not what is in force: it was replaced, or waits for the next start."""
    own, store = configured_policy(desk.settings), desk.parts.store
    stale = own.stale(await store.policy(desk.workspace)) if own and desk.workspace == DEFAULT else None
    if own is None or stale is None:
        return []
    if own.always or not await store.knows_policy(desk.workspace, own.sha256):
        todo = "The next start of the server puts it in force."
        return [Check("warn", "policy", f"the policy of {own.origin} is not in force yet", todo)]
    return [Check("warn", "policy", stale.message, f"To put it back: {stale.command}")]


async def _in_force(desk: Desk) -> Policy:
    """Nothing is said of one that does not load: that was told already."""
    try:
        return load(await current(desk), desk.own).policy
    except Error:
        return Policy()


def _teams(policy: Policy) -> set[str]:
    asks = [rule.ask for rule in policy.rules if rule.then == "ask"]
    deciding = [stage.approvers for ask in asks for stage in ask.stages if stage.approvers is not None]
    climbed = [rung.to for ask in asks for rung in ask.ladder]
    return {team for people in (*deciding, *climbed) for team in people.teams}


async def _ledger(desk: Desk) -> Check:
    head = await desk.parts.store.head(desk.workspace)
    found = f"{counted(head.seq, 'entry', 'entries')}, head {head.link[:16]}…" if head.seq else "empty"
    return Check("ok", "ledger", found)


async def _rows(desk: Desk) -> Check:
    """A sample: the whole ledger may take minutes."""
    faults = await glance(desk.parts.store, desk.workspace)
    compared = f"the newest {GLANCE} approvals, all people, keys, policies and freezes"
    if not faults:
        return Check("ok", "rows", f"{compared} are as the ledger says; this is a sample")
    said = "; ".join(visible(fault.message) for fault in faults[:MOST_FAULTS])
    more = f"; and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
    todo = "Keep a copy of the database as it is, and see: interlock audit verify"
    return Check("fail", "rows", f"of {compared}, some differ from the ledger: {said}{more}", todo)


def _tell(lines: list[Check], public: dict[str, object] | None) -> None:
    for line in lines:
        found = " / ".join(visible(part) for part in line.found.splitlines())
        show(Text.assemble((f"{line.state:4}", STYLES[line.state]), f"  {line.what:13}  {found}"))
        if line.todo:
            say(f"{'':21}{line.todo}", style="bold")
    for section, value in (public or {}).items():
        say(f"      {section}: {visible(json.dumps(value, ensure_ascii=False))}", style="dim")
