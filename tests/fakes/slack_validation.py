"""Errors that Slack reports for a message or a form: by its schema, and by limits outside of the schema.

The limits are in the vendor's folder, which says for each where it is from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

Json = dict[str, Any]
VENDOR = Path(__file__).resolve().parents[1] / "vendor" / "slack"
LIMITS: Json = json.loads((VENDOR / "limits.json").read_text())
SUM = 9_000  # (assumed: what is above it was refused at 11,341, and nobody knows the limit)
TEXT_CONTAINERS = 10  # (documented) options of radio buttons and checkboxes


def message_error(kind: str, body: Json) -> str:
    """The code that Slack answers with; empty if it fits."""
    if not body.get("text") and not body.get("blocks"):
        return "no_text"
    blocks = body.get("blocks", [])
    if not _validator(kind).is_valid(body):
        return "invalid_blocks" if _validator(kind).is_valid({**body, "blocks": []}) else "invalid_arguments"
    if len(blocks) > LIMITS["message"]["blocks_max"] or any(_blocks_error(blocks)):
        return "invalid_blocks"
    if any(each["type"] == "input" for each in blocks):
        return "invalid_blocks"  # (documented) only in forms
    if sum(len(text) for text in _all_texts(blocks)) >= SUM:
        return "msg_blocks_too_long"
    return "msg_too_long" if len(body.get("text", "")) > LIMITS["message"]["text_truncated_at"] else ""


def view_error(body: Json) -> str:
    if not _validator("ViewsOpen").is_valid(body):
        return "invalid_arguments"
    view, limits = body["view"], LIMITS["modal"]
    blocks = view["blocks"]
    if len(blocks) > limits["blocks_max"] or any(_blocks_error(blocks)):
        return "invalid_arguments"
    for part in ("title", "submit", "close"):
        if not 0 < len(view.get(part, {"text": "-"})["text"]) <= limits[part]:
            return "invalid_arguments"
    if len(view.get("private_metadata", "")) > limits["private_metadata"]:
        return "invalid_arguments"
    if len(view.get("callback_id", "")) > limits["callback_id"]:
        return "invalid_arguments"
    has_inputs = any(each["type"] == "input" for each in blocks)
    return "invalid_arguments" if has_inputs and "submit" not in view else ""


def _blocks_error(blocks: list[Json]) -> Iterator[str]:
    ids = [each["block_id"] for each in blocks if "block_id" in each]
    if len(ids) != len(set(ids)) or any(len(each) > LIMITS["block_id"] for each in ids):
        yield "block ids"
    for block in blocks:
        yield from _block_error(block)
        actions = [each["action_id"] for each in _elements(block) if "action_id" in each]
        if len(actions) != len(set(actions)) or any(len(each) > LIMITS["action_id"] for each in actions):
            yield "action ids"
        for element in _elements(block):
            yield from _element_error(element)
    if any(not text for text in _all_texts(blocks)):
        yield "an empty text"  # (documented) at least one character


def _block_error(block: Json) -> Iterator[str]:
    kind, text = block["type"], (block.get("text") or {}).get("text", "")
    elements, fields = block.get("elements", []), block.get("fields", [])
    if kind in ("header", "section") and len(text) > LIMITS[f"{kind}.text"]:
        yield kind
    if kind == "section" and (len(fields) > LIMITS["section.fields"] or not (text or fields)):
        yield "fields of a section"
    if any(len(each["text"]) > LIMITS["section.field.text"] for each in fields):
        yield "field of a section"
    if kind in ("context", "actions") and not 0 < len(elements) <= LIMITS[f"{kind}.elements"]:
        yield kind
    if kind == "input":
        yield from (part for part in ("label", "hint") if len(_text_error(block, part)) > LIMITS[f"input.{part}"])


def _element_error(element: Json) -> Iterator[str]:
    match element["type"]:
        case "button":
            parts = {
                "text": _text_error(element, "text"),
                "value": element.get("value", ""),
                "url": element.get("url", ""),
            }
            yield from (part for part, said in parts.items() if len(said) > LIMITS[f"button.{part}"])
            confirm = element.get("confirm", {})
            asked = ("title", "text", "confirm", "deny")
            yield from (part for part in asked if len(_text_error(confirm, part)) > LIMITS[f"confirm.{part}"])
        case "plain_text_input":
            most = LIMITS["plain_text_input.max_length"]["max"]
            if len(element.get("initial_value", "")) > most or element.get("max_length", 1) > most:
                yield "a text that is too long"
        case "radio_buttons" | "checkboxes" | "static_select":
            yield from _options_error(element)


def _text_error(owner: Json, part: str) -> str:
    return str(owner.get(part, {"text": ""})["text"])


def _options_error(element: Json) -> Iterator[str]:
    if (
        not 0
        < len(element["options"])
        <= (LIMITS["select.options"] if element["type"] == "static_select" else TEXT_CONTAINERS)
    ):
        yield "options"
    for option in element["options"]:
        if not 0 < len(option["text"]["text"]) <= LIMITS["option.text"]:
            yield "text of an option"
        if len(option.get("value", "")) > LIMITS["option.value"]:
            yield "value of an option"
    values = [option.get("value") for option in element["options"]]
    if len(values) != len(set(values)):
        yield "values of options"  # (seen)
    if "initial_option" in element and element["initial_option"] not in element["options"]:
        yield "initial option"  # (documented)


def _elements(block: Json) -> list[Json]:
    """What can be clicked or filled in."""
    found = list(block.get("elements", ())) if block["type"] == "actions" else []
    return [
        *found,
        *([block["element"]] if "element" in block else []),
        *([block["accessory"]] if "accessory" in block else []),
    ]


def _all_texts(value: object) -> Iterator[str]:
    match value:
        case {"type": "mrkdwn" | "plain_text", "text": str(text)}:
            yield text
        case dict():
            for each in value.values():
                yield from _all_texts(each)
        case list():
            for each in value:
                yield from _all_texts(each)


@cache
def _validator(kind: str) -> Any:
    schema = json.loads((VENDOR / "blockkit.schema.json").read_text())
    return jsonschema_rs.validator_for({**schema, "$ref": f"#/definitions/{kind}"})
