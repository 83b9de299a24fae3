"""`interlock doctor` and `interlock migrate`: check the installation and how to fix it; migrate the database."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict

import typer
from rich.text import Text

from interlock import __version__
from interlock.app.audit import QUICK_CHECK_APPROVALS, quick_check
from interlock.app.bootstrap import (
    PolicyChannelSettings,
    build_services,
    database_option,
    known_names,
    missing_database_file,
)
from interlock.cli.context import CommandContext, CommandOptions, open_database
from interlock.cli.current_policy import current_source, declared_only_text, load_source, make_catalog
from interlock.cli.doctor import check_channels, check_chat, check_other_workspaces, check_server
from interlock.cli.output import local_time, print_json, say, show
from interlock.config.load import Settings
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.card import escape_invisible
from interlock.core.errors import Error, Misconfigured, StoreUnavailable
from interlock.core.policy.claims import unbound_keys_warning
from interlock.core.policy.policy import Policy
from interlock.notify.workspace_channels import policy_load_options
from interlock.policy.file import read_configured_policy
from interlock.presenters.text import pluralize
from interlock.runtime.durations import duration_text
from interlock.storage.engine.metrics import CheckResult, CheckStatus

STYLES: dict[CheckStatus, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}
OLDEST_PYTHON = (3, 11)
MOST_FAULTS = 3  # violations named in a message
MAX_NAMED = 5  # tools named in a line


async def migrate_database(options: CommandOptions) -> None:
    """Migrate the database, including one that cannot be opened before migration."""
    store = build_services(options.settings().storage.url).store
    try:
        done = await store.migrate()
        await store.open()
        stated = await store.backfill_statements()
        every = [name for name, _ in await store.migrations()]
    finally:
        await store.close()
    if options.json:
        print_json({"database": store.name, "applied": list(done), "migrations": every, "stated": list(stated)})
        return
    if stated:
        say(
            f"{store.name}: one ledger entry now records the contents of {', '.join(stated)}, "
            "so that they can be verified from now on."
        )
    if done:
        say(f"{store.name}: applied {pluralize(len(done), 'migration', 'migrations')}: {', '.join(done)}.")
    else:
        say(f"{store.name}: already up to date.")


async def run_checks(options: CommandOptions) -> None:
    lines = [*_program()]
    settings, line = _configuration(options)
    lines.append(line)
    if settings is not None:
        lines += [CheckResult("ok", "configuration", note) for note in settings.origin.notes]
        lines += [line async for line in _database(options, settings)]
        lines += check_server(settings)
    public = settings.public() if settings else None
    healthy = all(line.state != "fail" for line in lines)
    if options.json:
        print_json({"ok": healthy, "checks": [asdict(line) for line in lines], "configuration": public})
    else:
        _print_checks(lines, public)
    if not healthy:
        raise typer.Exit(1)


def _program() -> Iterator[CheckResult]:
    python = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        yield CheckResult("ok", "program", f"Interlock {__version__} on Python {python}")
    else:
        yield CheckResult("fail", "program", f"Python {python}", "Install Python 3.11 or newer.")


def _configuration(options: CommandOptions) -> tuple[Settings | None, CheckResult]:
    try:
        settings = options.settings()
    except Error as error:
        return None, CheckResult("fail", "configuration", error.message, "Fix the lines named in the configuration.")
    where = str(settings.file) if settings.file else "no file: defaults and environment"
    return settings, CheckResult("ok", "configuration", where)


async def _database(options: CommandOptions, settings: Settings) -> AsyncIterator[CheckResult]:
    try:
        if (gone := missing_database_file(settings.storage.url)) is not None:
            make = f"Create it: interlock migrate {database_option(settings.storage.url)}"
            yield CheckResult("warn", "database", f"{gone} does not exist yet", make)
            for line in check_chat(settings, build_services(settings.storage.url).store, {}, options.workspace):
                yield line
            async for line in check_channels(settings.for_workspace(options.workspace), [], Policy()):
                yield line
            async for line in check_other_workspaces(settings, options.workspace):
                yield line
            return
        async with open_database(options) as context:
            async for line in _workspace(context):
                yield line
    except (Misconfigured, StoreUnavailable) as error:
        yield CheckResult("fail", "database", error.message, "Nothing can be decided until this is fixed.")


async def _workspace(context: CommandContext) -> AsyncIterator[CheckResult]:
    store, settings = context.services.store, context.settings
    for line in [*await store.check_health(), await _clock(context)]:
        yield line
    async for line in _policy(context):
        yield line
    yield await _ledger(context)
    yield await _rows(context)
    for line in await _freezes(context):
        yield line
    stored = {agent.name: agent for agent in await store.agents(context.workspace)}
    for line in check_chat(settings, store, stored, context.workspace):
        yield line
    async for line in _declared_only_tools(context):
        yield line
    async for line in check_channels(
        context.workspace_settings, await store.users(context.workspace), await _current_policy(context)
    ):
        yield line
    known = [name for name, _ in await context.services.accounts.workspaces()]
    async for line in check_other_workspaces(settings, context.workspace, known):
        yield line


async def _freezes(context: CommandContext) -> list[CheckResult]:
    todo = "Lift it: interlock unfreeze --reason TEXT, with --agent, --key or --tool"
    active_freezes = [each for each in await context.services.store.open_freezes(context.workspace) if each.is_on]
    messages = [
        f"{each.scope_text} has been frozen by {each.by} for {duration_text(context.now() - each.at)}: {each.reason}"
        for each in active_freezes
    ]
    return [CheckResult("warn", "frozen", what, todo) for what in messages]


async def _declared_only_tools(context: CommandContext) -> AsyncIterator[CheckResult]:
    """Tools that only their agents declare. None if the policy does not load, which is reported elsewhere."""
    try:
        catalog = await make_catalog(context)
    except Misconfigured:
        return
    tools = await catalog.tools(context.now())
    for bound in await catalog.describe_limits():
        todo = "Check what its program sends: interlock tools list. To stop it: interlock freeze --key ID --reason TEXT"
        yield CheckResult("warn", "pins", bound, todo)
    believed = [escape_invisible(tool.name) for tool in tools if tool.is_declaration_trusted]
    if believed:
        few = ", ".join(believed[:MAX_NAMED]) + (" and more" if len(believed) > MAX_NAMED else "")
        found = f"{declared_only_text(len(believed))}: {few}"
        them = "it" if len(believed) == 1 else "them"
        how = "interlock tools list, interlock tools pin TOOL; or set trust_declared: false in the policy."
        yield CheckResult("warn", "pins", found, f"Pin {them}: {how}")
    for tool in tools:
        if tool.changed:
            fields = ", ".join(tool.changed)
            found = f"an agent's declaration of {escape_invisible(tool.name)} differs from its pin: {fields}"
            yield CheckResult(
                "warn", "pins", found, f"If this is intended: interlock tools pin {escape_invisible(tool.name)}"
            )


async def _clock(context: CommandContext) -> CheckResult:
    """Check the clock: one that was set back stops every approval."""
    head, now = await context.services.store.head(context.workspace), context.now()
    if now >= head.at:
        return CheckResult("ok", "clock", local_time(now))
    behind = f"{local_time(now)}, {duration_text(head.at - now)} behind the newest ledger entry"
    return CheckResult("fail", "clock", behind, "Correct the clock; until then nothing can be approved.")


async def _policy(context: CommandContext) -> AsyncIterator[CheckResult]:
    users = await context.services.store.users(context.workspace)
    try:
        source = await current_source(context)
        loaded = load_source(source, context.workspace_settings, known_names(users, _policy_channels(context)))
        bare = load_source(source, context.workspace_settings)
    except Error as error:
        yield CheckResult("fail", "policy", error.message, "Fix it; until it loads, no new call is allowed.")
        return
    yield CheckResult("ok", "policy", f"{pluralize(len(loaded.policy.rules), 'rule', 'rules')}, {source.origin}")
    for line in await _own_policy(context):
        yield line
    for warning in loaded.warnings:
        yield CheckResult("warn", "policy", warning, "See: interlock policy check FILE")
    keys_warning = unbound_keys_warning(
        loaded.policy, await context.services.accounts.keys(context.workspace), context.now()
    )
    if keys_warning:
        found, _, todo = keys_warning.partition(". ")
        yield CheckResult("warn", "keys", found, todo)
    there = {team for user in users if user.removed_at is None for team in user.teams}
    for team in sorted(_teams(bare.policy) - there):
        todo = f"Add a user: interlock users add NAME --team {escape_invisible(team)}"
        yield CheckResult("warn", "teams", f"the team {escape_invisible(team)} has to decide, but has no members", todo)


def _policy_channels(context: CommandContext) -> PolicyChannelSettings:
    """The channels that the policy may name; not checked if one does not load, which is reported with the channels."""
    try:
        return policy_load_options(context.settings, context.workspace)
    except Misconfigured:
        return PolicyChannelSettings()


async def _own_policy(context: CommandContext) -> list[CheckResult]:
    """Whether the configured policy is not in force: it was replaced, or is applied at the next start."""
    configured, store = read_configured_policy(context.settings), context.services.store
    stale = (
        configured.check_stale(await store.policy(context.workspace))
        if configured and context.workspace == DEFAULT_WORKSPACE
        else None
    )
    if configured is None or stale is None:
        return []
    if configured.is_always_applied or not await store.has_policy(context.workspace, configured.sha256):
        todo = "The server puts it in force at its next start."
        return [CheckResult("warn", "policy", f"the policy of {configured.origin} is not in force yet", todo)]
    return [CheckResult("warn", "policy", stale.message, f"To put it in force again: {stale.command}")]


async def _current_policy(context: CommandContext) -> Policy:
    """The current policy; an empty one if it does not load, which is reported elsewhere."""
    try:
        return load_source(await current_source(context), context.workspace_settings).policy
    except Error:
        return Policy()


def _teams(policy: Policy) -> set[str]:
    asks = [rule.ask for rule in policy.rules if rule.then == "ask"]
    deciding = [stage.approvers for ask in asks for stage in ask.stages if stage.approvers is not None]
    escalated = [step.to for ask in asks for step in ask.escalation_steps]
    return {team for people in (*deciding, *escalated) for team in people.teams}


async def _ledger(context: CommandContext) -> CheckResult:
    head = await context.services.store.head(context.workspace)
    found = f"{pluralize(head.seq, 'entry', 'entries')}, head {head.link[:16]}…" if head.seq else "empty"
    return CheckResult("ok", "ledger", found)


async def _rows(context: CommandContext) -> CheckResult:
    """Check a sample of rows against the ledger: the whole ledger may take minutes."""
    faults = await quick_check(context.services.store, context.workspace)
    compared = f"the newest {QUICK_CHECK_APPROVALS} approvals and all users, keys, policies and freezes"
    if not faults:
        return CheckResult("ok", "rows", f"{compared} match the ledger (a sample)")
    said = "; ".join(escape_invisible(violation.message) for violation in faults[:MOST_FAULTS])
    more = f"; and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
    todo = "Keep an unmodified copy of the database, then run: interlock audit verify"
    return CheckResult("fail", "rows", f"of {compared}, some differ from the ledger: {said}{more}", todo)


def _print_checks(lines: list[CheckResult], public: dict[str, object] | None) -> None:
    for line in lines:
        found = " / ".join(escape_invisible(part) for part in line.found.splitlines())
        show(Text.assemble((f"{line.state:4}", STYLES[line.state]), f"  {line.what:13}  {found}"))
        if line.todo:
            say(f"{'':21}{line.todo}", style="bold")
    for section, value in (public or {}).items():
        say(f"      {section}: {escape_invisible(json.dumps(value, ensure_ascii=False))}", style="dim")
