"""`interlock policy`: check a policy file, see what it makes of a call; its other commands have files of their own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from interlock.app.bootstrap import build_gate_and_inbox, build_services, known_names, missing_database_file
from interlock.app.workspaces import Workspaces, WorkspaceSnapshot
from interlock.chat.assistant import build_chat_components
from interlock.chat.tool_registry import RegisteredTools
from interlock.cli.commands import policy_rehearse, policy_versions
from interlock.cli.context import CommandOptions, command, open_database, without_database
from interlock.cli.output import grid, print_json, say, show, table
from interlock.cli.policy_in_force import (
    PolicySource,
    configured_source,
    current_source,
    load_source,
    name_source_in_errors,
)
from interlock.config.load import Settings
from interlock.config.models import DEFAULT_WORKSPACE
from interlock.core.canonical import MAX_BYTES, parse_json
from interlock.core.card import visible
from interlock.core.identity import ApiKey
from interlock.core.pins import Pins
from interlock.core.policy.claims import unbound_keys_warning
from interlock.core.policy.policy import Allow, Ask, Deny
from interlock.core.ports import User
from interlock.notify.workspace_channels import policy_load_options
from interlock.policy.explain import Explanation
from interlock.policy.file import KnownNames, LoadedPolicy, read_policy_file
from interlock.policy.own_file import read_configured_policy
from interlock.policy.templates import TEMPLATE_NAMES, read_template, template_summary
from interlock.presenters.policy import explanation_json
from interlock.presenters.text import pluralize, terms_lines
from interlock.runtime.durations import format_duration
from interlock.server.explain import ExplainRequest, parse_explain_request
from interlock.server.proposals import known_spec
from interlock.storage.store import SqlStore

app = typer.Typer()
for part in (policy_versions, policy_rehearse):
    app.add_typer(part.app)


@command(app, without_database)
async def check(
    options: CommandOptions,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The policy file.")],
) -> None:
    """Does the file load, and is there anything odd about it? Teams are checked if there is a database."""
    names, settings, keys = await _read_names_and_keys(options)
    loaded = load_source(PolicySource(read_policy_file(file), str(file)), settings, names)
    loose = unbound_keys_warning(loaded.policy, *keys)
    loaded = replace(loaded, warnings=(*loaded.warnings, loose)) if loose else loaded
    rules = [rule.name for rule in loaded.policy.rules]
    if options.json:
        body = {"valid": True, "rules": rules, "warnings": list(loaded.warnings), "sha256": loaded.policy.sha256}
        print_json(body)
        return
    for warning in loaded.warnings:
        say(f"warning: {file}, {warning}", style="yellow")
    warnings = pluralize(len(loaded.warnings), "warning", "warnings") if loaded.warnings else "no warnings"
    say(f"{file}: {pluralize(len(rules), 'rule', 'rules')}, {warnings}.")


@command(app, without_database, "explain")
async def explain_call(
    options: CommandOptions,
    call: Annotated[
        Path,
        typer.Argument(
            metavar="CALL.json",
            show_default=False,
            help='The call, such as {"tool": "pay", "args": {"amount": 5}}; also agent, initiated_by, priority, effect,'
            " key, embedded. - reads standard input.",
        ),
    ],
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default="the policy in force", help="A policy to try out.")
    ] = None,
) -> None:
    """Which rule does a call meet, why, and what does that mean? Nothing is recorded."""
    draft = PolicySource(read_policy_file(policy), str(policy)) if policy else None
    asked = parse_json(_read_bounded(call))
    async with open_explain_context(options, draft) as here:
        question = here.with_limits(parse_explain_request(asked, here, here))
        explained = question.explained(here.loaded.policy, here.loaded.lines)
        if options.json:
            print_json(explanation_json(explained, here.source.origin, here.loaded))
        else:
            _print_explanation(explained, here.source)


async def _read_names_and_keys(options: CommandOptions) -> tuple[KnownNames, Settings, tuple[Sequence[ApiKey], int]]:
    """The workspace's teams and keys of now, if there is a database; one that was named has to be there."""
    settings = options.settings()
    own, reaching = settings.of(options.workspace), policy_load_options(settings, options.workspace)
    if not options.database and missing_database_file(settings.storage.url) is not None:
        return known_names([], reaching), own, ((), 0)
    async with open_database(options) as desk:
        users = await desk.parts.store.users(desk.workspace)
        keys = await desk.parts.accounts.keys(desk.workspace), desk.now()
        return known_names(users, reaching), own, keys


def _read_bounded(path: Path) -> bytes:
    if str(path) == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


# What is said


def _print_explanation(explained: Explanation, source: PolicySource) -> None:
    say(f"Judged {visible(explained.judged_as)}.")
    say(f"Policy: {visible(source.origin)}")
    for step in explained.steps:
        say(f"  {visible(str(step))}", style="" if step.holds else "dim")
    say(f"Verdict: {visible(explained.why)}", style="bold")
    match explained.verdict:
        case Allow(_, start_within):
            say(f"It runs without asking anybody; a write has to start within {format_duration(start_within)}.")
        case Deny(reason):
            say(f"It does not run, and nobody is asked. The agent is told: {visible(reason)}")
        case Ask() as terms:
            say("It waits for people, on these terms:")
            show(grid((label, Text(text)) for label, text in terms_lines(terms)))
    for note in explained.notes:
        say(f"Note: {visible(note)}")


@command(app, without_database)
async def templates(options: CommandOptions) -> None:
    """Policies to start from, with what each lets through."""
    if options.json:
        print_json(
            {"items": [{"name": name, "summary": template_summary(name)} for name in TEMPLATE_NAMES], "next": None}
        )
    else:
        show(
            table(
                ("NAME", "WHAT IT DOES"),
                [(name, template_summary(name)) for name in TEMPLATE_NAMES],
                stretch="WHAT IT DOES",
            )
        )


@command(app, without_database, "template")
async def print_template(
    options: CommandOptions,
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help=f"One of {', '.join(TEMPLATE_NAMES)}.")
    ],
) -> None:
    """Print a template as it is, with its comments: interlock policy template balanced > policy.yaml"""
    if options.json:
        print_json({"name": name, "summary": template_summary(name), "body": read_template(name)})
    else:
        sys.stdout.write(read_template(name))


@dataclass(frozen=True)
class ExplainContext:
    """What a server on the same database and configuration would judge by, but for the tools of MCP servers."""

    settings: Settings
    registered: RegisteredTools
    workspace: str
    source: PolicySource
    loaded: LoadedPolicy
    known: WorkspaceSnapshot
    is_kept: bool

    @property
    def people(self) -> Mapping[str, User]:
        return self.known.people

    @property
    def pins(self) -> Pins:
        return self.known.pins

    def with_limits(self, asked: ExplainRequest) -> ExplainRequest:
        """And what cannot be known here."""
        return asked._replace(notes=(*asked.notes, *self._limits(asked)))

    def _limits(self, asked: ExplainRequest) -> Iterator[str]:
        if known_spec(asked.call.tool, self, self) is not None:
            return
        servers = [name for name, each in self.settings.mcp_servers.items() if self.workspace in each.workspaces]
        if servers:
            yield (
                f"Tools of MCP servers ({', '.join(servers)}) are known only to a server that runs. If "
                f"{asked.call.tool} is one of them, ask there: the page Policy, or POST /api/policy/explain."
            )
        if not self.is_kept and asked.call.caller is not None:
            yield "There is no database here: a pin of the tool, people and the switches of agents are not known."


@asynccontextmanager
async def open_explain_context(options: CommandOptions, draft: PolicySource | None) -> AsyncIterator[ExplainContext]:
    """With the database if there is one; one that was named has to be there."""
    settings = options.settings()
    if not options.database and missing_database_file(settings.storage.url) is not None:
        own, reaching = settings.of(options.workspace), policy_load_options(settings, options.workspace)
        source = draft or _configured(settings, options.workspace)
        loaded = load_source(source, own, known_names([], reaching) if draft else None)
        registered, nothing = (
            _registered_tools(settings, build_services(settings.storage.url).store),
            WorkspaceSnapshot(None, {}, {}, Pins()),
        )
        yield ExplainContext(settings, registered, options.workspace, source, loaded, nothing, is_kept=False)
        return
    async with open_database(options) as desk:
        store = desk.parts.store
        workspaces = Workspaces(
            store,
            partial(build_gate_and_inbox, store),
            settings.toggles(),
            partial(policy_load_options, settings),
            read_configured_policy(settings),
        )
        stored = await store.policy(desk.workspace)
        in_force = await current_source(desk) if stored else _configured(settings, desk.workspace)
        with name_source_in_errors(in_force):
            doors = await workspaces.doors(desk.workspace)
        source, loaded = draft or in_force, doors.loaded
        if draft or doors.known.policy is None:  # then the configuration's is put in force when a server starts
            with name_source_in_errors(source):
                loaded = await workspaces.draft(desk.workspace, source.text)
        registered = _registered_tools(settings, store)
        yield ExplainContext(settings, registered, desk.workspace, source, loaded, doors.known, is_kept=True)


def _configured(settings: Settings, workspace: str) -> PolicySource:
    """The configuration's policy is the default workspace's alone."""
    return configured_source(settings if workspace == DEFAULT_WORKSPACE else replace(settings, policy=None))


def _registered_tools(settings: Settings, store: SqlStore) -> RegisteredTools:
    return RegisteredTools(settings.actions, build_chat_components(settings, store).toolbox)
