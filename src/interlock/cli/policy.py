"""`interlock policy`: check a policy file, see what it makes of a call; its other commands have files of their own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from interlock.app.bootstrap import absent, names_of
from interlock.cli import policy_rehearsal, policy_templates, policy_versions
from interlock.cli.explaining import surroundings
from interlock.cli.output import grid, print_json, say, show
from interlock.cli.policies import Source, load
from interlock.cli.shared import Options, command, given, kept
from interlock.config.load import Settings
from interlock.core.canonical import MAX_BYTES, parse
from interlock.core.card import visible
from interlock.core.identity import Key
from interlock.core.policy import Allow, Ask, Deny
from interlock.core.unbound import unbound_keys
from interlock.notify.workspace_channels import reaching_of
from interlock.policy.explain import Explanation
from interlock.policy.file import Names, read_policy
from interlock.presenters.policy import explanation_json
from interlock.presenters.text import counted, terms_lines
from interlock.runtime.durations import show_duration
from interlock.server.explain import question_of

app = typer.Typer()
for part in (policy_templates, policy_versions, policy_rehearsal):
    app.add_typer(part.app)


@command(app, given)
async def check(
    options: Options,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The policy file.")],
) -> None:
    """Does the file load, and is there anything odd about it? Teams are checked if there is a database."""
    names, settings, keys = await _surroundings(options)
    loaded = load(Source(read_policy(file), str(file)), settings, names)
    loose = unbound_keys(loaded.policy, *keys)
    loaded = replace(loaded, warnings=(*loaded.warnings, loose)) if loose else loaded
    rules = [rule.name for rule in loaded.policy.rules]
    if options.json:
        body = {"valid": True, "rules": rules, "warnings": list(loaded.warnings), "sha256": loaded.policy.sha256}
        print_json(body)
        return
    for warning in loaded.warnings:
        say(f"warning: {file}, {warning}", style="yellow")
    warnings = counted(len(loaded.warnings), "warning", "warnings") if loaded.warnings else "no warnings"
    say(f"{file}: {counted(len(rules), 'rule', 'rules')}, {warnings}.")


@command(app, given, "explain")
async def explain_call(
    options: Options,
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
    draft = Source(read_policy(policy), str(policy)) if policy else None
    asked = parse(_bytes(call))
    async with surroundings(options, draft) as here:
        question = here.with_limits(question_of(asked, here, here))
        explained = question.explained(here.loaded.policy, here.loaded.lines)
        if options.json:
            print_json(explanation_json(explained, here.source.origin, here.loaded))
        else:
            _tell(explained, here.source)


async def _surroundings(options: Options) -> tuple[Names, Settings, tuple[Sequence[Key], int]]:
    """The workspace's teams and keys of now, if there is a database; one that was named has to be there."""
    settings = options.settings()
    own, reaching = settings.of(options.workspace), reaching_of(settings, options.workspace)
    if not options.database and absent(settings.storage.url) is not None:
        return names_of([], reaching), own, ((), 0)
    async with kept(options) as desk:
        users = await desk.parts.store.users(desk.workspace)
        keys = await desk.parts.accounts.keys(desk.workspace), desk.now()
        return names_of(users, reaching), own, keys


def _bytes(path: Path) -> bytes:
    if str(path) == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


# What is said


def _tell(explained: Explanation, source: Source) -> None:
    say(f"Judged {visible(explained.judged_as)}.")
    say(f"Policy: {visible(source.origin)}")
    for step in explained.steps:
        say(f"  {visible(str(step))}", style="" if step.holds else "dim")
    say(f"Verdict: {visible(explained.why)}", style="bold")
    match explained.verdict:
        case Allow(_, start_within):
            say(f"It runs without asking anybody; a write has to start within {show_duration(start_within)}.")
        case Deny(reason):
            say(f"It does not run, and nobody is asked. The agent is told: {visible(reason)}")
        case Ask() as terms:
            say("It waits for people, on these terms:")
            show(grid((label, Text(text)) for label, text in terms_lines(terms)))
    for note in explained.notes:
        say(f"Note: {visible(note)}")
