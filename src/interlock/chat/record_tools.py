"""Helpers for tool packs that store records in Interlock's own database: tools, look-ups, and diffs for previews."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches, unified_diff

from interlock.chat.tool import Tool, ToolInvocation, object_schema
from interlock.core.call import Args, ToolSpec
from interlock.core.errors import CallWouldFail
from interlock.core.ports import ToolItem, ToolItemStore, ToolItemTransaction

MAX_SUGGESTIONS = 3
MIN_SIMILARITY = 0.5  # of 1: a poor suggestion only misleads

ReadFunction = Callable[[ToolItemStore, Args], Awaitable[object]]
PreviewFunction = Callable[[ToolItemStore, Args], Awaitable[str]]
WriteFunction = Callable[[ToolItemTransaction, Args], object]


def read_tool(
    records: ToolItemStore, name: str, about: str, read: ReadFunction, schema: Mapping[str, object] | None = None
) -> Tool:
    def run(invocation: ToolInvocation) -> Awaitable[object]:
        return read(records, invocation.args)

    return Tool(ToolSpec(name, "read", schema=schema or object_schema()), about, run)


def write_tool(
    records: ToolItemStore, spec: ToolSpec, about: str, step: WriteFunction, preview: PreviewFunction
) -> Tool:
    """Make an idempotent tool: the key of a call takes effect once."""

    def run(invocation: ToolInvocation) -> Awaitable[object]:
        return records.change(invocation.key, lambda transaction: step(transaction, invocation.args))

    return Tool(replace(spec, preview=lambda args: preview(records, args), idempotent=True), about, run)


async def find_record(records: ToolItemStore, kind: str, record_id: str, list_tool: str) -> ToolItem:
    """Find a record; `list_tool`, the tool that lists this kind, is named in the error."""
    found = await records.get(kind, record_id)
    if found is None:
        raise missing_record(kind, record_id, [record.id for record in await records.list(kind)], list_tool)
    return found


def find_in_transaction(transaction: ToolItemTransaction, kind: str, record_id: str, list_tool: str) -> ToolItem:
    """Find a record, as `find_record`, inside a change."""
    found = transaction.get(kind, record_id)
    if found is None:
        raise missing_record(kind, record_id, [record.id for record in transaction.list(kind)], list_tool)
    return found


def missing_record(kind: str, name: str, known: Iterable[str], list_tool: str, where: str = "") -> CallWouldFail:
    by_lower = {each.lower(): each for each in known}
    near = [by_lower[each] for each in get_close_matches(name.lower(), by_lower, MAX_SUGGESTIONS, MIN_SIMILARITY)]
    hint = f"Near that: {quote_names(near)}." if near else f"Use {list_tool} to see what there is."
    return CallWouldFail(f"There is no {kind.replace('_', ' ')} {name!r}{where}. {hint}")


def quote_names(names: object) -> str:
    """Format as `'a', 'b' and 'c'`: all of them, quoted so that none can pass for something else."""
    quoted = [repr(name) for name in names] if isinstance(names, list | tuple) else [repr(names)]
    return " and ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))


def record_diff(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """Return a unified diff, a line for each field; a text's further lines are indented, to not look like a field."""
    lines = list(unified_diff(list(_lines(old)), list(_lines(new)), "now", "afterwards", lineterm=""))
    return "\n".join(lines) or "Nothing would change."


def text_argument(args: Args, name: str) -> str:
    return str(args[name])


def text_arguments(args: Args, name: str) -> list[str]:
    found = args[name]
    return [str(each) for each in found] if isinstance(found, list) else [str(found)]


def _lines(fields: Mapping[str, object]) -> Iterator[str]:
    for name, value in fields.items():
        first, *others = str(value).splitlines() or [""]
        yield f"{name}: {first}"
        yield from (f"    {line}" for line in others)
