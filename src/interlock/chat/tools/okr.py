"""OKR tool pack: objectives of a quarter and their key results, stored in Interlock's own database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypedDict, cast

from interlock.chat.record_tools import (
    find_in_transaction,
    find_record,
    read_tool,
    record_diff,
    text_argument,
    write_tool,
)
from interlock.chat.tool import Tool, ToolContext, object_schema
from interlock.core.call import Args, ToolSpec
from interlock.core.ports import ToolItem, ToolItemStore, ToolItemTransaction

OBJECTIVE, KEY_RESULT, COUNT = "objective", "key_result", "okr_count"
PREFIXES = {OBJECTIVE: "O", KEY_RESULT: "KR"}
CHANGEABLE = ("title", "description", "status", "current", "target")
LIST_TOOL = "okr_list_objectives"
TITLE = {"type": "string", "minLength": 1, "maxLength": 300}
ID = {"type": "string", "minLength": 1, "maxLength": 50}
DESCRIPTION = {"type": "string", "maxLength": 5_000}
QUARTER = {"type": "string", "pattern": "^[0-9]{4}-Q[1-4]$", "description": "Such as 2026-Q4."}
STATUS = {"type": "string", "enum": ["on_track", "at_risk", "off_track", "achieved", "dropped"]}
NUMBER = {"type": "number", "minimum": -1e15, "maximum": 1e15}
UNIT = {"type": "string", "maxLength": 30, "description": "What is counted, such as %, EUR or customers."}


class Objective(TypedDict):
    title: str
    description: str
    quarter: str
    status: str


class KeyResult(TypedDict):
    objective_id: str
    title: str
    current: float
    target: float
    unit: str


def read_tools(context: ToolContext) -> Sequence[Tool]:
    about = "Lists the objectives with their key results, those of one quarter or all."
    return (read_tool(context.records, LIST_TOOL, about, _list_objectives, object_schema(quarter=QUARTER)),)


def write_tools(context: ToolContext) -> Sequence[Tool]:
    add = partial(write_tool, context.records)
    objective = object_schema("title", title=TITLE, description=DESCRIPTION, quarter=QUARTER)
    key_result = object_schema("objective_id title target", objective_id=ID, title=TITLE, target=NUMBER, unit=UNIT)
    new_objective = object_schema("id", id=ID, title=TITLE, description=DESCRIPTION, status=STATUS)
    new_key_result = object_schema("id", id=ID, title=TITLE, current=NUMBER, target=NUMBER)
    return (
        add(
            ToolSpec("okr_create_objective", "write", schema=objective, describe=_describe_objective),
            "Creates an objective, for the current quarter unless another is named.",
            _create_objective,
            _show_objective,
        ),
        add(
            ToolSpec(
                "okr_update_objective",
                "write",
                schema=_require_change(new_objective),
                describe=_describe_objective_update,
            ),
            "Changes what is given of an objective, such as its status.",
            _update_objective,
            _show_objective_update,
        ),
        add(
            ToolSpec("okr_create_key_result", "write", schema=key_result, describe=_describe_key_result),
            "Adds a key result to an objective; it begins at 0.",
            _create_key_result,
            _show_key_result,
        ),
        add(
            ToolSpec(
                "okr_update_key_result",
                "write",
                schema=_require_change(new_key_result),
                describe=_describe_key_result_update,
            ),
            "Changes what is given of a key result, such as how far it is.",
            _update_key_result,
            _show_key_result_update,
        ),
    )


def _require_change(takes: Mapping[str, object]) -> Mapping[str, object]:
    """Require at least one change, so that nobody is asked to approve nothing."""
    return {**takes, "minProperties": 2}


# Sentences


def _describe_objective(args: Args) -> str:
    described = f", described as {args['description']!r}" if args.get("description") else ""
    quarter = f"{args['quarter']}" if args.get("quarter") else "the current quarter"
    return f"Create objective {args['title']!r} for {quarter}{described}"


def _describe_key_result(args: Args) -> str:
    unit = f" {args['unit']}" if args.get("unit") else ""
    return (
        f"Add key result {args['title']!r} to objective {args['objective_id']!r}, with {args['target']}{unit} as target"
    )


def _describe_objective_update(args: Args) -> str:
    return f"Update objective {args['id']!r}: {_describe_changes(args)}"


def _describe_key_result_update(args: Args) -> str:
    return f"Update key result {args['id']!r}: {_describe_changes(args)}"


def _describe_changes(args: Args) -> str:
    return ", ".join(f"{name} to {value!r}" for name, value in args.items() if name != "id")


# Reads


async def _list_objectives(records: ToolItemStore, args: Args) -> object:
    wanted = args.get("quarter")
    results: dict[str, list[ToolItem]] = defaultdict(list)
    for record in _sort_by_id(await records.list(KEY_RESULT)):
        results[cast(KeyResult, record.body)["objective_id"]].append(record)
    found = [_objective_json(record, results[record.id]) for record in _sort_by_id(await records.list(OBJECTIVE))]
    return {"objectives": [each for each in found if wanted in (None, each["quarter"])]}


def _sort_by_id(records: Sequence[ToolItem]) -> Sequence[ToolItem]:
    return sorted(records, key=lambda record: (len(record.id), record.id))  # O-2 before O-10


def _objective_json(record: ToolItem, results: Sequence[ToolItem]) -> dict[str, object]:
    return {"id": record.id, **record.body, "key_results": [_key_result_json(result) for result in results]}


def _key_result_json(record: ToolItem) -> dict[str, object]:
    body = {name: value for name, value in record.body.items() if name != "objective_id"}
    return {"id": record.id, **body, "percent": _percent(cast(KeyResult, record.body))}


def _percent(result: KeyResult) -> int | None:
    """Return the progress in percent, at most 100; None if the target is 0."""
    return round(min(100, max(0, 100 * result["current"] / result["target"]))) if result["target"] else None


# Writes


def _create_objective(transaction: ToolItemTransaction, args: Args) -> object:
    objective = _new_objective(args, quarter_name(transaction.now))
    record_id = _new_id(transaction, OBJECTIVE)
    transaction.put(OBJECTIVE, record_id, objective)
    return {"id": record_id, **objective}


def _update_objective(transaction: ToolItemTransaction, args: Args) -> object:
    return _update(transaction, OBJECTIVE, args)


def _create_key_result(transaction: ToolItemTransaction, args: Args) -> object:
    find_in_transaction(transaction, OBJECTIVE, text_argument(args, "objective_id"), LIST_TOOL)
    result = _new_key_result(args)
    record_id = _new_id(transaction, KEY_RESULT)
    transaction.put(KEY_RESULT, record_id, result)
    return {"id": record_id, **result}


def _update_key_result(transaction: ToolItemTransaction, args: Args) -> object:
    return _update(transaction, KEY_RESULT, args)


def _update(transaction: ToolItemTransaction, kind: str, args: Args) -> object:
    record = find_in_transaction(transaction, kind, text_argument(args, "id"), LIST_TOOL)
    new = _updated_body(record, args)
    transaction.put(kind, record.id, new)
    return {"id": record.id, **new, "updated": [name for name in new if new[name] != record.body[name]]}


def _updated_body(record: ToolItem, args: Args) -> dict[str, object]:
    return {**record.body, **{name: args[name] for name in CHANGEABLE if name in args and name in record.body}}


def _new_objective(args: Args, quarter: str) -> Objective:
    described, chosen = str(args.get("description") or ""), str(args.get("quarter") or quarter)
    return {"title": text_argument(args, "title"), "description": described, "quarter": chosen, "status": "on_track"}


def _new_key_result(args: Args) -> KeyResult:
    return {
        "objective_id": text_argument(args, "objective_id"),
        "title": text_argument(args, "title"),
        "current": 0,
        "target": cast(float, args["target"]),
        "unit": str(args.get("unit") or ""),
    }


def _new_id(transaction: ToolItemTransaction, kind: str) -> str:
    """Return O-1, O-2, …: short enough to say, and never reused."""
    last = transaction.get(COUNT, kind)
    number = cast(int, last.body["last"]) + 1 if last else 1
    while transaction.get(kind, f"{PREFIXES[kind]}-{number}") is not None:
        number += 1
    transaction.put(COUNT, kind, {"last": number})
    return f"{PREFIXES[kind]}-{number}"


def quarter_name(now: int) -> str:
    day = datetime.fromtimestamp(now / 1000, UTC)
    return f"{day.year}-Q{(day.month + 2) // 3}"


# Previews


async def _show_objective(_: ToolItemStore, args: Args) -> str:
    return record_diff({}, _new_objective(args, "the current one"))


async def _show_objective_update(records: ToolItemStore, args: Args) -> str:
    record = await find_record(records, OBJECTIVE, text_argument(args, "id"), LIST_TOOL)
    return record_diff(record.body, _updated_body(record, args))


async def _show_key_result(records: ToolItemStore, args: Args) -> str:
    objective = await find_record(records, OBJECTIVE, text_argument(args, "objective_id"), LIST_TOOL)
    added = record_diff({}, _new_key_result(args))
    return f"Of objective {objective.id!r}, {objective.body['title']!r}:\n{added}"


async def _show_key_result_update(records: ToolItemStore, args: Args) -> str:
    record = await find_record(records, KEY_RESULT, text_argument(args, "id"), LIST_TOOL)
    objective = await records.get(OBJECTIVE, cast(KeyResult, record.body)["objective_id"])
    of = f"Of objective {objective.id!r}, {objective.body['title']!r}:\n" if objective else ""
    return f"{of}{record_diff(record.body, _updated_body(record, args))}"
