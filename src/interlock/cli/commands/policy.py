"""`interlock policy`: check, explain, templates, shadow and rehearse; versions are in `policy_versions`.

It is long because each of these commands prints a report of its own.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from interlock.app.bootstrap import build_gate_and_inbox, build_services, known_names, missing_database_file
from interlock.app.workspaces import Workspaces, WorkspaceSnapshot
from interlock.chat.assistant import build_chat_components
from interlock.chat.tool_registry import RegisteredTools
from interlock.cli.commands import policy_versions
from interlock.cli.commands.policy_versions import difference_summary, show_difference
from interlock.cli.context import CommandContext, CommandOptions, command, open_database, without_database
from interlock.cli.current_policy import (
    PolicySource,
    configured_source,
    current_source,
    load_source,
    name_source_in_errors,
)
from interlock.cli.output import grid, local_time, print_json, say, short_id, shorten, show, table
from interlock.config.load import Settings
from interlock.config.models import StorageSettings
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.canonical import MAX_BYTES, parse_json
from interlock.core.card import escape_invisible
from interlock.core.identity import ApiKey
from interlock.core.pins import Pins
from interlock.core.policy.analysis import (
    ChangedCall,
    RehearsalReport,
    ShadowReport,
    ShadowRuleUsage,
    VerdictChangeCause,
)
from interlock.core.policy.claims import unbound_keys_warning
from interlock.core.policy.policy import Allow, Ask, Deny, Policy, VerdictKind
from interlock.core.ports import User
from interlock.notify.workspace_channels import policy_load_options
from interlock.policy.diff import diff_policies
from interlock.policy.explain import Explanation
from interlock.policy.file import KnownNames, LoadedPolicy, read_configured_policy, read_policy_file
from interlock.policy.rehearsal import RehearsalResult, ReportProgress, run_rehearsal, shadow_report
from interlock.policy.templates import TEMPLATE_NAMES, read_template, template_summary
from interlock.presenters.policy import (
    VERDICT_KINDS,
    answers_per_day,
    difference_json,
    explanation_json,
    recorded_sentence,
    rehearsal_json,
)
from interlock.presenters.text import pluralize, terms_lines
from interlock.runtime.durations import format_duration, parse_duration, rfc3339
from interlock.server.explain import ExplainRequest, parse_explain_request
from interlock.server.proposals import known_spec
from interlock.storage.store import SqlStore

app = typer.Typer()
app.add_typer(policy_versions.app)


@command(app, without_database)
async def check(
    options: CommandOptions,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="Policy file.")],
) -> None:
    """Validate a policy file, with warnings. Teams are checked if there is a database."""
    names, settings, keys = await _read_names_and_keys(options)
    loaded = load_source(PolicySource(read_policy_file(file), str(file)), settings, names)
    keys_warning = unbound_keys_warning(loaded.policy, *keys)
    loaded = replace(loaded, warnings=(*loaded.warnings, keys_warning)) if keys_warning else loaded
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
            help='Call, such as {"tool": "pay", "args": {"amount": 5}}; also agent, initiated_by, priority, effect,'
            " key, embedded. - reads standard input.",
        ),
    ],
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default="the policy in force", help="Policy to try instead.")
    ] = None,
) -> None:
    """Explain the verdict for a call. Records nothing."""
    draft = PolicySource(read_policy_file(policy), str(policy)) if policy else None
    body = parse_json(_read_bounded(call))
    async with open_explain_context(options, draft) as context:
        question = context.with_limits(parse_explain_request(body, context, context))
        explained = question.explain(context.loaded.policy, context.loaded.rule_lines)
        if options.json:
            print_json(explanation_json(explained, context.source.origin, context.loaded))
        else:
            _print_explanation(explained, context.source)


async def _read_names_and_keys(options: CommandOptions) -> tuple[KnownNames, Settings, tuple[Sequence[ApiKey], int]]:
    """The workspace's current teams and keys, if there is a database; a database given by option must exist."""
    settings = options.settings()
    own, channel_settings = settings.for_workspace(options.workspace), policy_load_options(settings, options.workspace)
    if not options.database and missing_database_file(settings.storage.url) is not None:
        return known_names([], channel_settings), own, ((), 0)
    async with open_database(options) as context:
        users = await context.services.store.users(context.workspace)
        keys = await context.services.accounts.keys(context.workspace), context.now()
        return known_names(users, channel_settings), own, keys


def _read_bounded(path: Path) -> bytes:
    if str(path) == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


# Output


def _print_explanation(explained: Explanation, source: PolicySource) -> None:
    say(f"Judged {escape_invisible(explained.judged_as)}.")
    say(f"Policy: {escape_invisible(source.origin)}")
    for step in explained.steps:
        say(f"  {escape_invisible(str(step))}", style="" if step.holds else "dim")
    say(f"Verdict: {escape_invisible(explained.conclusion)}", style="bold")
    match explained.verdict:
        case Allow(_, start_within):
            say(f"It runs without approval; a write has to start within {format_duration(start_within)}.")
        case Deny(reason):
            say(f"It does not run, and nobody is asked. The agent gets: {escape_invisible(reason)}")
        case Ask() as terms:
            say("It needs approval, on these terms:")
            show(grid((label, Text(text)) for label, text in terms_lines(terms)))
    for note in explained.notes:
        say(f"Note: {escape_invisible(note)}")


@command(app, without_database)
async def templates(options: CommandOptions) -> None:
    """List policy templates."""
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
    """Print a template with its comments: interlock policy template balanced > policy.yaml"""
    if options.json:
        print_json({"name": name, "summary": template_summary(name), "body": read_template(name)})
    else:
        sys.stdout.write(read_template(name))


@dataclass(frozen=True, kw_only=True)
class ExplainContext:
    """Policy, tools and people as a server with the same database and configuration has them, except for MCP tools."""

    settings: Settings
    registered: RegisteredTools
    workspace: str
    source: PolicySource
    loaded: LoadedPolicy
    snapshot: WorkspaceSnapshot
    has_database: bool

    @property
    def people(self) -> Mapping[str, User]:
        return self.snapshot.people

    @property
    def pins(self) -> Pins:
        return self.snapshot.pins

    def with_limits(self, request: ExplainRequest) -> ExplainRequest:
        """Add notes about what cannot be known here."""
        return request._replace(notes=(*request.notes, *self._limits(request)))

    def _limits(self, request: ExplainRequest) -> Iterator[str]:
        if known_spec(request.call.tool, self, self) is not None:
            return
        servers = [name for name, each in self.settings.mcp_servers.items() if self.workspace in each.workspaces]
        if servers:
            yield (
                f"Tools of MCP servers ({', '.join(servers)}) are known only to a running server. If "
                f"{request.call.tool} is one of them, ask on its Policy page."
            )
        if packs := self.registered.packs_not_loaded(self.workspace):
            yield (
                f"Tools of {', '.join(packs)} are imported only from a configuration file that is named. If "
                f"{request.call.tool} is one of them, add --config {self.settings.file}."
            )
        if not self.has_database and request.call.caller is not None:
            yield "There is no database: pins, users and tool_approvals of agents are not taken into account."


@asynccontextmanager
async def open_explain_context(options: CommandOptions, draft: PolicySource | None) -> AsyncIterator[ExplainContext]:
    """Open the context, with the database if there is one; a database given by option must exist."""
    settings = options.settings()
    if not options.database and missing_database_file(settings.storage.url) is not None:
        own, channel_settings = (
            settings.for_workspace(options.workspace),
            policy_load_options(settings, options.workspace),
        )
        source = draft or _configured(settings, options.workspace)
        loaded = load_source(source, own, known_names([], channel_settings) if draft else None)
        registered, nothing = (
            _registered_tools(settings, build_services(settings.storage.url).store),
            WorkspaceSnapshot(None, {}, {}, Pins()),
        )
        yield ExplainContext(
            settings=settings,
            registered=registered,
            workspace=options.workspace,
            source=source,
            loaded=loaded,
            snapshot=nothing,
            has_database=False,
        )
        return
    async with open_database(options) as context:
        store = context.services.store
        workspaces = Workspaces(
            store,
            partial(build_gate_and_inbox, store),
            settings.toggles(),
            partial(policy_load_options, settings),
            read_configured_policy(settings),
        )
        stored = await store.policy(context.workspace)
        in_force = await current_source(context) if stored else _configured(settings, context.workspace)
        with name_source_in_errors(in_force):
            services = await workspaces.services(context.workspace)
        source, loaded = draft or in_force, services.loaded_policy
        if draft or services.snapshot.policy is None:  # then a server applies the configured policy when it starts
            with name_source_in_errors(source):
                loaded = await workspaces.draft(context.workspace, source.text)
        registered = _registered_tools(settings, store)
        yield ExplainContext(
            settings=settings,
            registered=registered,
            workspace=context.workspace,
            source=source,
            loaded=loaded,
            snapshot=services.snapshot,
            has_database=True,
        )


def _configured(settings: Settings, workspace: str) -> PolicySource:
    """The configured policy, which applies to the default workspace only."""
    return configured_source(settings if workspace == DEFAULT_WORKSPACE else replace(settings, policy=None))


def _registered_tools(settings: Settings, store: SqlStore) -> RegisteredTools:
    return RegisteredTools(settings.actions, build_chat_components(settings, store).tool_registry)


Since = Annotated[str, typer.Option(metavar="DURATION", help="Period to look back: 12h, 7d, 30d.")]
MONTH = "30d"


@command(app, open_database)
async def shadow(context: CommandContext, since: Since = MONTH) -> None:
    """Show what rules with mode: shadow would have decided, as recorded with the calls."""
    window = parse_duration(since)
    with _progress(context, "Reading the ledger") as report_progress:
        found = await shadow_report(context.services.store, context.workspace, context.now() - window, report_progress)
    policy = load_source(await current_source(context), context.workspace_settings).policy
    if context.json:
        print_json(_shadows_json(found, policy))
    else:
        _print_shadows(found, policy, window)


@command(app, open_database, "rehearse")
async def rehearse_draft(
    context: CommandContext,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="Draft of a policy.")],
    since: Since = MONTH,
    limit: Annotated[int, typer.Option(min=0, max=10_000, help="Maximum number of changed calls to list.")] = 20,
    fail_on_loosened: Annotated[
        bool, typer.Option("--fail-on-loosened", help="Exit with 1 if a call could run that now asks or is denied.")
    ] = False,
) -> None:
    """Evaluate a draft on recorded calls, and compare it with the policy in force. Changes and records nothing."""
    window = parse_duration(since)
    names = known_names(
        await context.services.store.users(context.workspace), policy_load_options(context.settings, context.workspace)
    )
    draft, in_force = PolicySource(read_policy_file(file), str(file)), await current_source(context)
    new, old = (
        load_source(draft, context.workspace_settings, names).policy,
        load_source(in_force, context.workspace_settings).policy,
    )
    begin = context.now() - window
    with _progress(context, "Rehearsing") as report_progress:
        rehearsed = await run_rehearsal(
            context.services.store, context.workspace, (old, new), begin, limit, report_progress
        )
    difference = diff_policies(old, new)
    if context.json:
        body = rehearsal_json(rehearsed, context.now(), context.settings.storage.retention_text)
        print_json({"in_force": in_force.origin, "draft": draft.origin, **body, "diff": difference_json(difference)})
    else:
        say(f"In force: {escape_invisible(in_force.origin)}")
        say(f"Draft:    {escape_invisible(draft.origin)}: {difference_summary(difference) or 'no rule differs'}")
        show_difference(difference)
        show_rehearsal(rehearsed, context.now(), format_duration(window), context.settings.storage)
    if fail_on_loosened and rehearsed.report.loosened:
        raise typer.Exit(1)


@contextmanager
def _progress(context: CommandContext, what: str) -> Iterator[ReportProgress]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=context.json or not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _print_shadows(found: ShadowReport, policy: Policy, window: int) -> None:
    known = _shadow_rule_names(policy)
    seen = {each.rule for each in found.rules}
    rows = [_row(each, known) for each in found.rules]
    rows += [(escape_invisible(name), "0", "-", "in force") for name in known if name not in seen]
    if rows:
        show(table(("RULE", "CALLS", "WOULD HAVE BEEN", "RULE IS"), rows, stretch="RULE"))
    else:
        say("No rule has mode: shadow, and no shadow verdicts were recorded.")
    calls = pluralize(found.calls, "call", "calls")
    say(f"{calls} of the last {format_duration(window)}, without allowed reads, which are only counted.")
    if found.erased:
        say(f"The shadow verdicts of {pluralize(found.erased, 'call', 'calls')} were erased.", style="yellow")


def _row(each: ShadowRuleUsage, known: frozenset[str]) -> tuple[str, str, str, str]:
    turns = ", ".join(f"{count:,} {old} → {new}" for (old, new), count in each.verdict_counts.items())
    return (
        escape_invisible(each.rule),
        f"{each.calls:,}",
        turns,
        "in force" if each.rule in known else "removed or enforced",
    )


def _shadow_rule_names(policy: Policy) -> frozenset[str]:
    return frozenset(rule.name for rule in policy.rules if rule.shadow)


def _shadows_json(found: ShadowReport, policy: Policy) -> dict[str, object]:
    known, seen = _shadow_rule_names(policy), {each.rule for each in found.rules}
    items = [_shadow_json(each, known) for each in found.rules]
    items += [{"rule": name, "calls": 0, "turns": [], "in_force": True} for name in sorted(known - seen)]
    return {"calls": found.calls, "erased": found.erased, "items": items, "next": None}


def _shadow_json(each: ShadowRuleUsage, known: frozenset[str]) -> dict[str, object]:
    turns = [{"from": old, "to": new, "calls": count} for (old, new), count in each.verdict_counts.items()]
    times = {"first": rfc3339(each.first), "last": rfc3339(each.last)}
    return {"rule": each.rule, "calls": each.calls, "turns": turns, "in_force": each.rule in known, **times}


MAX_CAUSES = 20
MAX_RULE = 60  # characters of a rule's name in a row
ALARM = "bold red"


def show_rehearsal(rehearsed: RehearsalResult, now: int, window: str, storage: StorageSettings) -> None:
    report = rehearsed.report
    if report.calls:
        between = f"{local_time(report.first)} to {local_time(report.last)}"
        say(f"\nRehearsed {pluralize(report.calls, 'call', 'calls')} of the last {window}: {between}.\n", style="bold")
        show(
            table(
                ("NOW", *(f"DRAFT: {kind}" for kind in VERDICT_KINDS)),
                [_matrix_row(report, kind) for kind in VERDICT_KINDS],
            )
        )
        _print_changes(report)
        _show_causes(report)
        _show_load(report, now)
        _show_changed(report)
    else:
        say(f"\nThere are no calls in the last {window} to rehearse.")
    _print_limits(rehearsed, storage)


def _matrix_row(report: RehearsalReport, old: VerdictKind) -> list[str]:
    return [old, *(f"{report.verdict_counts.get((old, new), 0):,}" for new in VERDICT_KINDS)]


def _print_changes(report: RehearsalReport) -> None:
    turned = pluralize(report.changed_verdicts, "call", "calls")
    say(f"\n{turned} would get a different verdict; {report.other_terms:,} would need approval on different terms.")
    if report.loosened:
        could = pluralize(report.loosened, "call", "calls")
        say(f"LOOSENED: {could} could run without the approvals required now.", style=ALARM)
    if report.outdated:
        were = pluralize(report.outdated, "call was", "calls were")
        say(f"{were} decided by an older policy; NOW is the verdict of the current one.")


def _show_causes(report: RehearsalReport) -> None:
    causes = list(report.causes.items())
    if causes:
        heads = ("CALLS", "NOW → DRAFT", "RULE NOW", "RULE IN THE DRAFT")
        say("")
        show(table(heads, [_cause_row(cause, count) for cause, count in causes[:MAX_CAUSES]], stretch=heads[-1]))
    if len(causes) > MAX_CAUSES:
        say(f"… and {len(causes) - MAX_CAUSES:,} more; use --json for all")


def _cause_row(cause: VerdictChangeCause, count: int) -> list[Text | str]:
    turn = Text(_change_text(cause.old, cause.new), style=ALARM if cause.loosened else "")
    return [f"{count:,}", turn, _rule_text(cause.old_rule), _rule_text(cause.new_rule)]


def _show_load(report: RehearsalReport, now: int) -> None:
    rows = [_load_row(*load) for load in answers_per_day(report, now)]
    if rows:
        say("")
        show(table(("DECISIONS PER DAY", "NOW", "DRAFT", "MORE"), rows))


def _load_row(words: str, old: float, new: float) -> tuple[str, str, str, str]:
    more = round(new, 1) - round(old, 1)  # rounded first, to match the figures beside it
    return escape_invisible(words), f"{old:,.1f}", f"{new:,.1f}", f"{more:+,.1f}" if more else "-"


def _show_changed(report: RehearsalReport) -> None:
    if not report.changed:
        return
    heads = ("ID", "WHEN", "CALL", "TOOL", "AGENT", "NOW → DRAFT", "RULE IN THE DRAFT")
    say("")
    show(table(heads, map(_changed_row, report.changed), stretch="CALL", spare=("AGENT", "TOOL", "WHEN")))
    more = report.changed_verdicts + report.other_terms - len(report.changed)
    if more:
        say(f"… and {more:,} more; --limit N lists more of them")


def _changed_row(changed: ChangedCall) -> list[Text | str]:
    each = changed.recorded
    turn = Text(_change_text(*changed.verdict_pair), style=ALARM if changed.loosened else "")
    sentence = shorten(escape_invisible(recorded_sentence(each)))
    agent = escape_invisible(each.call.path[-1] if each.call.path else "-")
    where = (local_time(each.at), sentence, escape_invisible(each.call.tool), agent)
    return [short_id(each.approval_id) or "-", *where, turn, _rule_text(changed.new.rule)]


def _print_limits(rehearsed: RehearsalResult, storage: StorageSettings) -> None:
    say("")
    if rehearsed.report.calls:
        kept = "forever" if storage.retention is None else f"for {storage.retention_text} after a call has finished"
        say(f"Content is available since {local_time(rehearsed.report.first)}; it is kept {kept} (storage.retention).")
    if rehearsed.erased:
        erased = pluralize(rehearsed.erased, "call", "calls")
        say(
            f"{erased} could not be rehearsed: their arguments were erased, or too long to be recorded.", style="yellow"
        )
    reads = pluralize(rehearsed.allowed_reads, "so far", "so far")
    say(f"Allowed reads are only counted ({reads}) and cannot be rehearsed.")


def _change_text(old: VerdictKind, new: VerdictKind) -> str:
    return f"{old} → {new}" if old != new else f"{old}, different terms"


def _rule_text(name: str) -> str:
    return shorten(escape_invisible(name), MAX_RULE) if name else "(no rule: the defaults)"
