"""`interlock policy put`, `history`, `show` and `diff`: the versions of a policy, with author and reason."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from interlock.app.bootstrap import known_names
from interlock.cli.context import CommandContext, command, open_database, open_or_create_database
from interlock.cli.current_policy import PolicySource, current_source, find_version, load_source
from interlock.cli.output import local_time, print_json, printable, say, shorten, show, table
from interlock.core.card import escape_invisible
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import Forbidden, InvalidRequest, NotFound
from interlock.core.ports import PolicyVersion
from interlock.notify.workspace_channels import policy_load_options
from interlock.policy.diff import FieldDifference, PolicyDifference, RuleDifference, diff_policies
from interlock.policy.file import LoadedPolicy, read_policy_file
from interlock.presenters.policy import difference_json, policy_version_json
from interlock.presenters.text import pluralize

app = typer.Typer()

SHORT_SHA = 12
NOTHING = "only comments and formatting"
Version = Annotated[
    int | None,
    typer.Argument(metavar="VERSION", show_default="the one in force", help="Version number, as in the history."),
]


@command(app, open_or_create_database)
async def put(
    context: CommandContext,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="Policy file.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason, shown in the history.")] = "",
) -> None:
    """Put a policy in force, as a new version. An invalid file changes nothing."""
    author, text = await _author(context), read_policy_file(file)
    if len(reason) > MAX_COMMENT:
        raise InvalidRequest(f"The reason has {len(reason):,} characters; at most {MAX_COMMENT} are kept.")
    channel_settings = policy_load_options(context.settings, context.workspace)
    names = known_names(await context.services.store.users(context.workspace), channel_settings)
    loaded = load_source(PolicySource(text, str(file)), context.workspace_settings, names)
    before = await context.services.store.policy(context.workspace)
    old = load_source(await current_source(context), context.workspace_settings)
    await context.services.put_policy(
        context.workspace, text, author, context.settings.toggles(), reason, channel_settings
    )
    stored = await find_version(context, None)
    fresh = before is None or stored.version != before.version
    if context.json:
        print_json({**policy_version_json(stored), "new": fresh, "warnings": list(loaded.warnings)})
        return
    for warning in loaded.warnings:
        say(f"warning: {escape_invisible(str(file))}, {warning}", style="yellow")
    _print_put(stored, loaded, diff_policies(old.policy, loaded.policy), unchanged=not fresh)


@command(app, open_database)
async def history(
    context: CommandContext,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of versions.")] = 100,
) -> None:
    """List all versions that were put in force, newest first, with time, author and reason."""
    versions = await context.services.store.policies(context.workspace, limit)
    if context.json:
        print_json({"items": [policy_version_json(version) for version in versions], "next": None})
    elif versions:
        rows = [_row(version, versions[0]) for version in versions]
        show(table(("VERSION", "WHEN", "WHO", "REASON", "SHA256"), rows, stretch="REASON", spare=("SHA256",)))
    else:
        source = await current_source(context)
        say(f"No policy is stored in this database yet. In force: {escape_invisible(source.origin)}.")


@command(app, open_database, "show")
async def show_policy(context: CommandContext, version: Version = None) -> None:
    """Print a policy. Without a terminal the output is byte-exact, so that it can be put in force again."""
    stored = None
    if version is not None or await context.services.store.policy(context.workspace) is not None:
        stored = await find_version(context, version)
    text = stored.body if stored else (await current_source(context)).text
    if context.json:
        print_json({**(policy_version_json(stored) if stored else {"version": None}), "body": text})
    else:
        sys.stdout.write(printable(text) + "\n" if sys.stdout.isatty() else text)


@command(app, open_database)
async def diff(
    context: CommandContext,
    first: Annotated[
        str,
        typer.Argument(
            metavar="FILE|VERSION",
            show_default=False,
            help="File or version to compare with the policy in force. Without it: the last change.",
        ),
    ] = "",
    second: Annotated[
        str, typer.Argument(metavar="VERSION", show_default=False, help="Version to compare with instead.")
    ] = "",
) -> None:
    """Show the differences between two policies, rule by rule: from the older to the newer, or to the file."""
    old, new = await _sources_to_compare(context, first, second)
    difference = diff_policies(
        load_source(old, context.workspace_settings).policy, load_source(new, context.workspace_settings).policy
    )
    if context.json:
        print_json({"from": old.origin, "to": new.origin, **difference_json(difference)})
        return
    say(
        (
            f"From {escape_invisible(old.origin)}\nto {escape_invisible(new.origin)}: "
            f"{_difference_text(difference, old, new)}."
        ),
        style="bold",
    )
    show_difference(difference)


async def _author(context: CommandContext) -> str:
    person = await context.resolve_reviewer("")
    if person.role != "admin":
        raise Forbidden(f"{person.name} is a {person.role} in this workspace; only an admin can put a policy in force.")
    return person.name


def _print_put(stored: PolicyVersion, loaded: LoadedPolicy, difference: PolicyDifference, *, unchanged: bool) -> None:
    if unchanged:
        say(f"Nothing to do: this policy is already in force, as version {stored.version}.")
        return
    rules = pluralize(len(loaded.policy.rules), "rule", "rules")
    say(
        f"Version {stored.version} is in force, with {rules}. "
        f"What changed: {difference_summary(difference) or NOTHING}."
    )


async def _sources_to_compare(context: CommandContext, first: str, second: str) -> tuple[PolicySource, PolicySource]:
    """The older and the newer source; a file is always the newer."""
    if not first:
        return await _last_change(context)
    if not second:
        named, in_force = await _read_source(context, first), await current_source(context)
        return (named, in_force) if _is_version(first) else (in_force, named)
    one, other = await _read_source(context, first), await _read_source(context, second)
    return (other, one) if _is_version(second) and not _is_version(first) else (one, other)


async def _last_change(context: CommandContext) -> tuple[PolicySource, PolicySource]:
    versions = await context.services.store.policies(context.workspace, 2)
    if len(versions) < 2:
        raise NotFound("There are fewer than two versions to compare. Give a file: interlock policy diff FILE")
    return _source(versions[1]), _source(versions[0])


async def _read_source(context: CommandContext, word: str) -> PolicySource:
    if _is_version(word):
        return _source(await find_version(context, int(word)))
    return PolicySource(read_policy_file(Path(word)), word)


def _is_version(word: str) -> bool:
    """Whether the word is a version number. A file with such a name needs its folder: ./3"""
    return word.isascii() and word.isdigit()


def _source(version: PolicyVersion) -> PolicySource:
    return PolicySource(version.body, f"version {version.version}, by {version.author}")


def _difference_text(difference: PolicyDifference, old: PolicySource, new: PolicySource) -> str:
    if difference:
        return difference_summary(difference)
    return "they are the same" if old.text == new.text else NOTHING


def _row(version: PolicyVersion, newest: PolicyVersion) -> Sequence[str]:
    number = f"{version.version} (in force)" if version is newest else str(version.version)
    reason = shorten(escape_invisible(version.reason)) if version.reason else "-"
    return number, local_time(version.at), escape_invisible(version.author), reason, version.sha256[:SHORT_SHA]


KINDS = ("added", "removed", "changed", "renamed", "moved")
MARKS = {"added": "+", "removed": "-", "changed": "~", "renamed": "~", "moved": ">"}
STYLES = {"added": "green", "removed": "red", "changed": "yellow", "renamed": "yellow", "moved": "cyan"}

SIDE_BY_SIDE = 60  # characters
NOT_GIVEN = "not set"


def difference_summary(difference: PolicyDifference) -> str:
    """A summary such as `1 rule added, 2 changed; the defaults differ`."""
    kinds = Counter(each.kind for each in difference.rules)
    parts = [f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds[kind]]
    if parts:
        number, _, rest = parts[0].partition(" ")
        parts[0] = f"{number} {'rule' if number == '1' else 'rules'} {rest}"
    others = [name for name, facets in _other_facets(difference) if facets]
    return "; ".join(filter(None, [", ".join(parts), *(f"the {name} differ" for name in others)]))


def show_difference(difference: PolicyDifference) -> None:
    for each in difference.rules:
        show(Text(f"  {MARKS[each.kind]} {_position_text(each)}  {_name(each)}", style=STYLES[each.kind]))
        _show_facets(each.changes, each.kind)
    for name, facets in _other_facets(difference):
        if facets:
            show(Text(f"  ~ {name}", style=STYLES["changed"]))
            _show_facets(facets, "changed")


def _other_facets(difference: PolicyDifference) -> Iterator[tuple[str, tuple[FieldDifference, ...]]]:
    yield "defaults", difference.defaults
    yield "tool_approvals of agents", difference.agents


def _position_text(each: RuleDifference) -> str:
    if each.moved:
        return f"{each.old_place} → {each.new_place}"
    return str(each.new_place or each.old_place)


def _name(each: RuleDifference) -> str:
    was = f' (was "{escape_invisible(each.old_name)}")' if each.old_name else ""
    return f'"{escape_invisible(each.rule)}"{was}{", moved" if each.moved and each.kind != "moved" else ""}'


def _show_facets(facets: tuple[FieldDifference, ...], kind: str) -> None:
    for facet in facets:
        for line in _lines(escape_invisible(facet.key), escape_invisible(facet.old), escape_invisible(facet.new), kind):
            show(Text(f"         {line}"))


def _lines(key: str, old: str, new: str, kind: str) -> Iterator[str]:
    """A difference; long values on separate lines, one above the other."""
    if kind in ("added", "removed"):
        yield f"{key}: {new or old}"
    elif len(old) + len(new) < SIDE_BY_SIDE:
        yield f"{key}: {old or NOT_GIVEN} → {new or NOT_GIVEN}"
    else:
        yield f"{key}:"
        yield f"  - {old or NOT_GIVEN}"
        yield f"  + {new or NOT_GIVEN}"
