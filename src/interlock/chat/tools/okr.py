"""OKR tool pack: objectives of a quarter and their key results, stored in Interlock's own database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Literal, TypedDict, cast, get_args

from interlock.chat.item_tools import (
    find_in_transaction,
    find_item,
    item_diff,
    new_id,
    read_tool,
    show_items,
    text_argument,
    write_tool,
)
from interlock.chat.tool import Tool, ToolContext, object_schema
from interlock.core.call import Args, ToolSpec
from interlock.core.errors import CallWouldFail
from interlock.core.ports import ToolItem, ToolItemStore, ToolItemTransaction
from interlock.core.preview import Preview
from interlock.presenters.text import pluralize

OBJECTIVE, KEY_RESULT, COUNT = "objective", "key_result", "okr_count"
KINDS = frozenset({OBJECTIVE, KEY_RESULT})
PREFIXES = {OBJECTIVE: "O", KEY_RESULT: "KR"}
CHANGEABLE = ("title", "description", "quarter", "status", "current", "target", "unit")
LIST_TOOL = "okr_list_objectives"
ObjectiveStatus = Literal["on_track", "at_risk", "off_track", "achieved", "dropped"]
MAX_TITLE, MAX_DESCRIPTION, MAX_UNIT, MAX_NUMBER = 300, 5_000, 30, 1e15
MAX_KEY_RESULTS = 50  # of one objective
QUARTER_PATTERN = "^[0-9]{4}-Q[1-4]$"
TITLE = {"type": "string", "minLength": 1, "maxLength": MAX_TITLE}
ID = {"type": "string", "minLength": 1, "maxLength": 50}
DESCRIPTION = {"type": "string", "maxLength": MAX_DESCRIPTION}
QUARTER = {"type": "string", "pattern": QUARTER_PATTERN, "description": "Such as 2026-Q4."}
STATUS = {"type": "string", "enum": list(get_args(ObjectiveStatus))}
NUMBER = {"type": "number", "minimum": -MAX_NUMBER, "maximum": MAX_NUMBER}
UNIT = {"type": "string", "maxLength": MAX_UNIT, "description": "What is counted, such as %, EUR or customers."}


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
    about = "Lists the objectives with their key results and progress, those of one quarter or status, or all."
    return (
        read_tool(context.items, LIST_TOOL, about, _list_objectives, object_schema(quarter=QUARTER, status=STATUS)),
    )


def write_tools(context: ToolContext) -> Sequence[Tool]:
    add = partial(write_tool, context.items, KINDS)
    return (*_objective_tools(add), *_key_result_tools(add))


def _objective_tools(add: Callable[..., Tool]) -> Sequence[Tool]:
    new = object_schema("title", title=TITLE, description=DESCRIPTION, quarter=QUARTER)
    changed = object_schema("id", id=ID, title=TITLE, description=DESCRIPTION, quarter=QUARTER, status=STATUS)
    deleted = "Permanently delete objective {id!r} with its key results? This cannot be undone."
    return (
        add(
            ToolSpec("okr_create_objective", "write", schema=new, describe=_describe_objective),
            "Creates an objective, for the current quarter unless another is named.",
            _create_objective,
            _show_objective,
        ),
        add(
            ToolSpec(
                "okr_update_objective", "write", schema=_require_change(changed), describe=_describe_objective_update
            ),
            "Changes what is given of an objective, such as its status.",
            _update_objective,
            _show_objective_update,
        ),
        add(
            ToolSpec("okr_delete_objective", "destructive", schema=object_schema("id", id=ID), describe=deleted),
            "Deletes an objective and all its key results for ever.",
            _delete_objective,
            _show_objective_deletion,
        ),
    )


def _key_result_tools(add: Callable[..., Tool]) -> Sequence[Tool]:
    new = object_schema("objective_id title target", objective_id=ID, title=TITLE, target=NUMBER, unit=UNIT)
    changed = object_schema("id", id=ID, title=TITLE, current=NUMBER, target=NUMBER, unit=UNIT)
    deleted = "Permanently delete key result {id!r}? This cannot be undone."
    return (
        add(
            ToolSpec("okr_create_key_result", "write", schema=new, describe=_describe_key_result),
            "Adds a key result to an objective; it begins at 0.",
            _create_key_result,
            _show_key_result,
        ),
        add(
            ToolSpec(
                "okr_update_key_result", "write", schema=_require_change(changed), describe=_describe_key_result_update
            ),
            "Changes what is given of a key result, such as how far it is.",
            _update_key_result,
            _show_key_result_update,
        ),
        add(
            ToolSpec("okr_delete_key_result", "destructive", schema=object_schema("id", id=ID), describe=deleted),
            "Deletes a key result for ever.",
            _delete_key_result,
            _show_key_result_deletion,
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


async def _list_objectives(items: ToolItemStore, args: Args) -> object:
    quarter, status = args.get("quarter"), args.get("status")
    results = group_key_results(await items.list(KEY_RESULT))
    found = [objective_json(item, results[item.id]) for item in sort_by_id(await items.list(OBJECTIVE))]
    return {
        "objectives": [
            each for each in found if quarter in (None, each["quarter"]) and status in (None, each["status"])
        ]
    }


def group_key_results(items: Sequence[ToolItem]) -> defaultdict[str, list[ToolItem]]:
    """Return the key results by the id of their objective."""
    results: defaultdict[str, list[ToolItem]] = defaultdict(list)
    for item in sort_by_id(items):
        results[cast(KeyResult, item.body)["objective_id"]].append(item)
    return results


def sort_by_id(items: Sequence[ToolItem]) -> Sequence[ToolItem]:
    return sorted(items, key=lambda item: (len(item.id), item.id))  # O-2 before O-10


def objective_json(item: ToolItem, results: Sequence[ToolItem]) -> dict[str, object]:
    """Return an objective with its key results; its progress is their mean."""
    shown = [key_result_json(result) for result in results]
    known = [cast(int, each["percent"]) for each in shown if each["percent"] is not None]
    percent = round(sum(known) / len(known)) if known else None
    return {"id": item.id, **item.body, "percent": percent, "key_results": shown}


def key_result_json(item: ToolItem) -> dict[str, object]:
    body = {name: value for name, value in item.body.items() if name != "objective_id"}
    return {"id": item.id, **body, "percent": _percent(cast(KeyResult, item.body))}


def _percent(result: KeyResult) -> int | None:
    """Return the progress in percent, at most 100 and below it until the target is reached; None if that is 0."""
    if not result["target"]:
        return None
    reached = min(100, max(0, 100 * result["current"] / result["target"]))
    return 100 if reached >= 100 else min(99, round(reached))


# Writes


def _create_objective(transaction: ToolItemTransaction, args: Args) -> object:
    return add_objective(transaction, _new_objective(args, quarter_name(transaction.now)))


def add_objective(transaction: ToolItemTransaction, objective: Objective) -> Mapping[str, object]:
    item_id = new_id(transaction, COUNT, OBJECTIVE, PREFIXES[OBJECTIVE])
    transaction.put(OBJECTIVE, item_id, objective)
    return {"id": item_id, **objective}


def _update_objective(transaction: ToolItemTransaction, args: Args) -> object:
    return _update(transaction, OBJECTIVE, args)


def _create_key_result(transaction: ToolItemTransaction, args: Args) -> object:
    objective = find_in_transaction(transaction, OBJECTIVE, text_argument(args, "objective_id"), LIST_TOOL)
    _check_room(objective.id, transaction.list(KEY_RESULT))
    return add_key_result(transaction, _new_key_result(args))


def has_room(transaction: ToolItemTransaction, objective_id: str) -> bool:
    """Whether the objective can have another key result."""
    return _has_room(objective_id, transaction.list(KEY_RESULT))


def _has_room(objective_id: str, key_results: Sequence[ToolItem]) -> bool:
    return len(_results_of(key_results, objective_id)) < MAX_KEY_RESULTS


def _check_room(objective_id: str, key_results: Sequence[ToolItem]) -> None:
    if not _has_room(objective_id, key_results):
        raise CallWouldFail(
            f"Objective {objective_id!r} has {MAX_KEY_RESULTS} key results already, which is the limit."
        )


def add_key_result(transaction: ToolItemTransaction, result: KeyResult) -> Mapping[str, object]:
    item_id = new_id(transaction, COUNT, KEY_RESULT, PREFIXES[KEY_RESULT])
    transaction.put(KEY_RESULT, item_id, result)
    return {"id": item_id, **result}


def _update_key_result(transaction: ToolItemTransaction, args: Args) -> object:
    return _update(transaction, KEY_RESULT, args)


def _delete_objective(transaction: ToolItemTransaction, args: Args) -> object:
    item = find_in_transaction(transaction, OBJECTIVE, text_argument(args, "id"), LIST_TOOL)
    deleted = delete_objective(transaction, item.id)
    return {"id": item.id, "title": item.body["title"], "key_results": deleted, "status": "deleted"}


def delete_objective(transaction: ToolItemTransaction, objective_id: str) -> list[str]:
    """Delete an objective and its key results; return the ids of those."""
    results = [item.id for item in _results_of(transaction.list(KEY_RESULT), objective_id)]
    for result_id in results:
        transaction.delete(KEY_RESULT, result_id)
    transaction.delete(OBJECTIVE, objective_id)
    return results


def _delete_key_result(transaction: ToolItemTransaction, args: Args) -> object:
    item = find_in_transaction(transaction, KEY_RESULT, text_argument(args, "id"), LIST_TOOL)
    transaction.delete(KEY_RESULT, item.id)
    return {"id": item.id, "title": item.body["title"], "status": "deleted"}


def _results_of(items: Sequence[ToolItem], objective_id: str) -> Sequence[ToolItem]:
    return group_key_results(items)[objective_id]


def _update(transaction: ToolItemTransaction, kind: str, args: Args) -> object:
    item = find_in_transaction(transaction, kind, text_argument(args, "id"), LIST_TOOL)
    new = _updated_body(item, args)
    transaction.put(kind, item.id, new)
    return {"id": item.id, **new, "updated": [name for name in new if new[name] != item.body[name]]}


def _updated_body(item: ToolItem, args: Args) -> dict[str, object]:
    return {**item.body, **{name: args[name] for name in CHANGEABLE if name in args and name in item.body}}


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


def quarter_name(now: int) -> str:
    day = datetime.fromtimestamp(now / 1000, UTC)
    return f"{day.year}-Q{(day.month + 2) // 3}"


# Previews


async def _show_objective(_: ToolItemStore, args: Args) -> str:
    return item_diff({}, _new_objective(args, "the current one"))


async def _show_objective_update(items: ToolItemStore, args: Args) -> Preview:
    item = await find_item(items, OBJECTIVE, text_argument(args, "id"), LIST_TOOL)
    return await show_items(lambda: item_diff(item.body, _updated_body(item, args)), {OBJECTIVE: [item]})


async def _show_key_result(items: ToolItemStore, args: Args) -> str:
    objective = await find_item(items, OBJECTIVE, text_argument(args, "objective_id"), LIST_TOOL)
    _check_room(objective.id, await items.list(KEY_RESULT))
    added = item_diff({}, _new_key_result(args))
    return f"Of objective {objective.id!r}, {objective.body['title']!r}:\n{added}"


async def _show_key_result_update(items: ToolItemStore, args: Args) -> Preview:
    item = await find_item(items, KEY_RESULT, text_argument(args, "id"), LIST_TOOL)
    objective = await items.get(OBJECTIVE, cast(KeyResult, item.body)["objective_id"])
    of = f"Of objective {objective.id!r}, {objective.body['title']!r}:\n" if objective else ""
    return await show_items(lambda: f"{of}{item_diff(item.body, _updated_body(item, args))}", {KEY_RESULT: [item]})


async def _show_objective_deletion(items: ToolItemStore, args: Args) -> Preview:
    item = await find_item(items, OBJECTIVE, text_argument(args, "id"), LIST_TOOL)
    results = _results_of(await items.list(KEY_RESULT), item.id)
    count = pluralize(len(results), "key result", "key results")
    what = f"Objective {item.id!r}, titled {item.body['title']!r}, for {item.body['quarter']}, with {count}"
    text = "\n".join([f"{what}:" if results else f"{what}.", *map(_result_line, results)])
    return await show_items(lambda: text, {OBJECTIVE: [item], KEY_RESULT: results})


async def _show_key_result_deletion(items: ToolItemStore, args: Args) -> Preview:
    item = await find_item(items, KEY_RESULT, text_argument(args, "id"), LIST_TOOL)
    text = f"Of objective {item.body['objective_id']!r}:\n{_result_line(item)}"
    return await show_items(lambda: text, {KEY_RESULT: [item]})


def _result_line(item: ToolItem) -> str:
    result = cast(KeyResult, item.body)
    unit = f" {result['unit']}" if result["unit"] else ""
    return f"- {item.id!r}: {result['title']!r}, {result['current']} of {result['target']}{unit}"
