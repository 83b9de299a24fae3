"""`interlock policy`: check a policy file, see what it makes of a call; its other commands have files of their own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.text import Text

from interlock.cli import policy_rehearsal, policy_templates, policy_versions
from interlock.cli.output import grid, nearest, print_json, say, show
from interlock.cli.policies import Source, configured, current, load
from interlock.cli.shared import Options, command, given, kept
from interlock.cli.words import counted, terms_lines
from interlock.core.call import ToolCall, ToolSpec, propose
from interlock.core.canonical import MAX_BYTES, parse, read
from interlock.core.card import visible
from interlock.core.errors import InvalidRequest
from interlock.core.policy import Allow, Ask, Deny
from interlock.durations import parse_duration, show_duration
from interlock.explain import Explanation, Step, explain
from interlock.policy_file import Loaded, Names, read_policy
from interlock.settings import Settings
from interlock.wiring import absent, names_of

app = typer.Typer()
for part in (policy_templates, policy_versions, policy_rehearsal):
    app.add_typer(part.app)

CALL_KEYS = (
    *("tool", "args", "agent", "agent_path", "initiated_by", "teams", "priority", "setting", "expires_in", "thread_id"),
    *("run_id", "call_id", "agent_says"),
)
SPEC_KEYS = ("effect", "schema", "description", "secret", "idempotent", "decisions", "confirm", "declared")
# as `ToolSpec` calls them
RENAMED = {"description": "describe"}


@command(app, given)
async def check(
    options: Options,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The policy file.")],
) -> None:
    """Does the file load, and is there anything odd about it? Teams are checked if there is a database."""
    names, _, settings = await _surroundings(options)
    loaded = load(Source(read_policy(file), str(file)), settings, names)
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
            help='The call, such as {"tool": "pay", "args": {"amount": 5}}; also agent, initiated_by, priority, effect.'
            " - reads standard input.",
        ),
    ],
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default="the policy in force", help="A policy to try out.")
    ] = None,
) -> None:
    """Which rule does a call meet, why, and what does that mean? Nothing is recorded."""
    names, source, settings = await _surroundings(options)
    source = Source(read_policy(policy), str(policy)) if policy else source
    loaded = load(source, settings, names if policy else None)
    proposed, spec = _read_call(_bytes(call), options.workspace)
    explained = explain(loaded.policy, proposed, spec, loaded.lines)
    if options.json:
        print_json(_explanation_json(explained, source, loaded))
    else:
        _tell(explained, source)


async def _surroundings(options: Options) -> tuple[Names | None, Source, Settings]:
    """The workspace's teams and policy, if there is a database; a database that was named has to be there."""
    settings = options.settings()
    if not options.database and absent(settings.storage.url) is not None:
        return None, configured(settings), settings
    async with kept(options) as desk:
        users = await desk.parts.store.users(desk.workspace)
        return names_of(users), await current(desk), settings


def _bytes(path: Path) -> bytes:
    if str(path) == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _read_call(data: bytes, workspace: str) -> tuple[ToolCall, ToolSpec]:
    body = parse(data)
    if not isinstance(body, Mapping) or not isinstance(body.get("tool"), str):
        raise InvalidRequest('A call is an object such as {"tool": "pay", "args": {"amount": 5}}.')
    for key in body:
        if key not in (*CALL_KEYS, *SPEC_KEYS):
            raise InvalidRequest(f"A call has no {key!r}.{nearest(key, (*CALL_KEYS, *SPEC_KEYS))}")
    more = {key: body[key] for key in ("agent", "thread_id", "priority", "setting", "agent_says") if key in body}
    more |= {key: tuple(_texts(body, key)) for key in ("agent_path", "teams") if key in body}
    more |= {"requester": body["initiated_by"]} if "initiated_by" in body else {}
    more |= {"expires_in": parse_duration(str(body["expires_in"]))} if "expires_in" in body else {}
    run_id, call_id = str(body.get("run_id", "explain")), str(body.get("call_id", "explain"))
    return propose(body["tool"], body.get("args", {}), run_id, call_id, workspace=workspace, **more), _spec(body)


def _spec(body: Mapping[str, Any]) -> ToolSpec:
    told = {RENAMED.get(key, key): body[key] for key in SPEC_KEYS if key in body}
    told |= {key: tuple(_texts(body, key)) for key in ("secret", "decisions") if key in body}
    for key, kind in (("schema", dict), ("idempotent", bool), ("declared", bool), ("describe", str)):
        if key in told and not isinstance(told[key], kind):
            raise InvalidRequest(f"{key} of a call is not what it should be: {kind.__name__}.")
    return ToolSpec(body["tool"], **told)


def _texts(body: Mapping[str, Any], key: str) -> list[str]:
    value = body[key]
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InvalidRequest(f"{key} of a call is a list of texts.")
    return cast(list[str], value)


# What is said


def _tell(explained: Explanation, source: Source) -> None:
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


def _explanation_json(explained: Explanation, source: Source, loaded: Loaded) -> dict[str, object]:
    return {
        "verdict": explained.verdict.kind,
        "rule": explained.by,
        "why": explained.why,
        "terms": read(explained.verdict.snapshot) if isinstance(explained.verdict, Ask) else None,
        "reason": explained.verdict.reason if isinstance(explained.verdict, Deny) else None,
        "steps": [_step(step) for step in explained.steps],
        "policy": {"origin": source.origin, "sha256": loaded.policy.sha256},
    }


def _step(step: Step) -> dict[str, object]:
    names = ("rule", "line", "then", "shadow", "matched", "holds", "why")
    return {name: getattr(step, name) for name in names}
