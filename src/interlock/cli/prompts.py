"""Before a decision: reading of options, display of findings and changes, and confirmation at the terminal."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

import typer
from rich.console import Group
from rich.text import Text

from interlock.cli.approval_records import ShownApproval
from interlock.cli.cards import render_findings
from interlock.cli.output import show
from interlock.core import declared
from interlock.core.call import QUESTION_TOOL, Args
from interlock.core.canonical import MAX_BYTES, canonical, parse_json
from interlock.core.card import Finding, escape_invisible, head_and_tail
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import Conflict, InvalidRequest

Change = tuple[str, object, object]  # pointer, before, after
MISSING = object()
EDITOR_COMMAND = 'exec ${VISUAL:-${EDITOR:-vi}} "$0"'  # resolved by the shell, so that the environment is not read here


# Options


def json_option(name: str, text: str) -> object:
    """Parse JSON from the text itself, from `@file`, or from standard input for `-`."""
    try:
        return parse_json(_read_option(text))
    except InvalidRequest as error:
        raise InvalidRequest(f"{name}: {error.message.replace('The body', 'The value')}") from None


def _read_option(text: str) -> bytes | str:
    if text == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    if text.startswith("@"):
        with Path(text[1:]).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    return text


def check_length(name: str, text: str) -> str:
    if len(text) > MAX_COMMENT:
        raise InvalidRequest(f"{name} has more than {MAX_COMMENT} characters.")
    return text


def parse_answer(view: ShownApproval, message: str) -> object | None:
    """The JSON answer to a question with a schema; None to answer with the text, if it is valid or not JSON."""
    from interlock.runtime.json_schema import validate

    question_args = view.args
    if view.row.tool != QUESTION_TOOL or not isinstance(question_args, Mapping) or not question_args.get("schema"):
        return None
    if not validate(cast(Mapping[str, object], question_args["schema"]), message):
        return None
    try:
        return parse_json(message)
    except InvalidRequest:
        return None


async def edit_in_editor(view: ShownApproval, editor_has_terminal: AbstractContextManager[None]) -> Args:
    """The arguments as edited in the person's editor, as JSON; with alarms as ASCII, so that code points show."""
    text = json.dumps(view.args, indent=2, ensure_ascii=bool(alarms_among(view.card.findings)))
    with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
        file = Path(folder) / "args.json"
        file.write_text(text + "\n", encoding="utf-8")
        with editor_has_terminal:
            editor = await asyncio.create_subprocess_exec("/bin/sh", "-c", EDITOR_COMMAND, str(file))
            status = await editor.wait()
        if status:
            raise Conflict(f"The editor ended with status {status}. Nothing was decided.")
        new_args = parse_json(file.read_bytes())
    if not isinstance(new_args, Mapping):
        raise InvalidRequest("The arguments must be an object. Nothing was decided.")
    return new_args


# Findings


def acknowledged_ids(findings: Sequence[Finding], given: Sequence[str], *, all_of_them: bool) -> list[str]:
    """The acknowledged ids, which may be typed as shown. With `all_of_them`, the findings are shown first."""
    if all_of_them and findings:
        show(render_findings(findings), stderr=True)
    known = {escape_invisible(finding.id): finding.id for finding in findings}
    everything = known.values() if all_of_them else ()
    return [*(known.get(name, name) for name in given), *everything]


def alarms_among(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level == "alarm"]


def acknowledge_each(findings: Sequence[Finding], seen: Sequence[str]) -> list[str]:
    alarms = [alarm for alarm in alarms_among(findings) if alarm.id not in seen]
    for alarm in alarms:
        show(render_findings([alarm]), stderr=True)
        confirm("Have you reviewed this, and proceed anyway?")
    return [*seen, *(alarm.id for alarm in alarms)]


def findings_in(view: ShownApproval, args: Mapping[str, object]) -> tuple[Finding, ...]:
    """The findings in arguments that are not stored yet."""
    secrets = frozenset(field.pointer for field in view.card.fields if field.type == "secret")
    return declared.call_findings(view.spec, args, secrets)


def confirm(question: str) -> None:
    """Ask; anything but yes aborts the command without a decision."""
    if not typer.confirm(question, err=True):
        raise typer.Abort


# Changes


def show_changes(view: ShownApproval, new_args: Mapping[str, object]) -> None:
    show(changes_between(view.args, new_args), stderr=True)


def changes_between(before: object, new_args: Mapping[str, object]) -> Group:
    """The changes; raises InvalidRequest for an edit without any, which is probably a mistake."""
    changes = list(_changes("", before, new_args))
    if not changes:
        raise InvalidRequest("The arguments are unchanged. To approve them: interlock approvals approve ID")
    return Group(*(line for change in changes for line in _lines(change)))


def _changes(pointer: str, before: object, after: object) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            step = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            yield from _changes(step, before.get(name, MISSING), after.get(name, MISSING))
    elif before is MISSING or after is MISSING or canonical(before) != canonical(after):
        yield pointer, before, after


def _lines(change: Change) -> Iterator[Text]:
    pointer, before, after = change
    for mark, style, value in (("-", "red", before), ("+", "green", after)):
        if value is not MISSING:
            yield Text(f"{mark} {escape_invisible(pointer)}: {_value(cast(Args, value))}", style=style, overflow="fold")


def _value(value: object) -> str:
    head, tail = head_and_tail(_value_text(value))
    return f"{head} … {tail}" if tail else head


def _value_text(value: object) -> str:
    """A value on one line, its texts spelled as on the card: escaped once, so that each reads as what it is."""
    match value:
        case str():
            return '"' + escape_invisible(value).replace('"', '\\"') + '"'
        case Mapping():
            return "{" + ", ".join(f"{_value_text(name)}: {_value_text(each)}" for name, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(_value_text(each) for each in value) + "]"
        case _:
            return canonical(value).decode()
