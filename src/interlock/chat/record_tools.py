"""For packs that keep what they are about in Interlock's own database: their tools, and what they say of records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches, unified_diff

from interlock.chat.tool import Tool, Use, schema
from interlock.core.call import Args, ToolSpec
from interlock.core.errors import ToolFailed
from interlock.core.ports import Record, Records, Shelf

NEAR = 3
ALIKE = 0.5  # of 1: a guess that is far off only misleads

Look = Callable[[Records, Args], Awaitable[object]]
Preview = Callable[[Records, Args], Awaitable[str]]
Step = Callable[[Shelf, Args], object]


def reading(records: Records, name: str, about: str, look: Look, takes: Mapping[str, object] | None = None) -> Tool:
    def run(use: Use) -> Awaitable[object]:
        return look(records, use.args)

    return Tool(ToolSpec(name, "read", takes or schema()), about, run)


def changing(records: Records, spec: ToolSpec, about: str, step: Step, preview: Preview) -> Tool:
    """Idempotent: the key of a call changes something once."""

    async def shown(args: Args) -> str:
        try:
            return await preview(records, args)
        except ToolFailed as error:
            return f"This would fail now: {error.message}"

    def run(use: Use) -> Awaitable[object]:
        return records.change(use.key, lambda shelf: step(shelf, use.args))

    return Tool(replace(spec, preview=shown, idempotent=True), about, run)


async def find(records: Records, kind: str, record_id: str, look: str) -> Record:
    """`look` is the tool that lists this kind."""
    found = await records.get(kind, record_id)
    if found is None:
        raise missing(kind, record_id, [record.id for record in await records.list(kind)], look)
    return found


def take(shelf: Shelf, kind: str, record_id: str, look: str) -> Record:
    """As `find`, inside a change."""
    found = shelf.get(kind, record_id)
    if found is None:
        raise missing(kind, record_id, [record.id for record in shelf.list(kind)], look)
    return found


def missing(kind: str, name: str, known: Iterable[str], look: str, where: str = "") -> ToolFailed:
    by_lower = {each.lower(): each for each in known}
    near = [by_lower[each] for each in get_close_matches(name.lower(), by_lower, NEAR, ALIKE)]
    hint = f"Near that: {named(near)}." if near else f"Use {look} to see what there is."
    return ToolFailed(f"There is no {kind.replace('_', ' ')} {name!r}{where}. {hint}")


def named(names: object) -> str:
    """`'a', 'b' and 'c'`: every one of them, quoted so that none can pass for something else."""
    quoted = [repr(name) for name in names] if isinstance(names, list | tuple) else [repr(names)]
    return " and ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))


def difference(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """A unified diff, a line for each field; the lines of a long text are set in, so that none looks like a field."""
    lines = list(unified_diff(list(_lines(old)), list(_lines(new)), "now", "afterwards", lineterm=""))
    return "\n".join(lines) or "Nothing would change."


def text(args: Args, name: str) -> str:
    return str(args[name])


def texts(args: Args, name: str) -> list[str]:
    found = args[name]
    return [str(each) for each in found] if isinstance(found, list) else [str(found)]


def _lines(fields: Mapping[str, object]) -> Iterator[str]:
    for name, value in fields.items():
        first, *others = str(value).splitlines() or [""]
        yield f"{name}: {first}"
        yield from (f"    {line}" for line in others)
