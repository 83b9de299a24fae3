"""Between values and the texts of Agent Inbox: its Markdown going out, what people typed into its boxes coming in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from interlock.core.canonical import parse_json
from interlock.core.card import LONG_TEXT, Card, CardField, head_and_tail, visible
from interlock.core.errors import InvalidDecision, InvalidRequest, Problem
from interlock.runtime.json_schema import validate

# What says of a single argument what it is; `required` and the like are about all of them together.
SHARED_KEYWORDS = ("$schema", "$id", "patternProperties", "additionalProperties")
KEYWORDS_WITH_REFS = (*SHARED_KEYWORDS, "$defs", "definitions", "properties")
MAX_SAFE_INTEGER = 2**53 - 1
REF_PATTERN = re.compile(r'"\$\w*[rR]ef"')
AMBIGUOUS = "could be a text or something else, and a box cannot say which: edit it in Interlock"


def coerce_args(
    typed: Mapping[str, object], shown: Mapping[str, object], schema: Mapping[str, object]
) -> dict[str, object]:
    """Texts become what the schema says that they are, or it is refused: nothing is guessed."""
    read = {name: _coerce_value(name, value, shown, schema) for name, value in typed.items()}
    problems = [problem for each in read.values() if isinstance(each, CoercionErrors) for problem in each.problems]
    if problems:
        listed = "; ".join(map(str, problems))
        raise InvalidDecision(f"The edit does not fit the tool: {listed}. Nothing was decided.", problems)
    return read


def parse_answer(text: str, schema: Mapping[str, object]) -> object:
    """What a typed answer means to a question with a schema; None where it is the text itself."""
    fitting = (
        [] if not validate(schema, text) else [each for each in _json_readings(text) if not validate(schema, each)]
    )
    return fitting[0] if fitting else None


def is_js_safe(value: object) -> bool:
    """Whether it is the same after JavaScript read it: a larger whole number would silently become another."""
    match value:
        case int():
            return abs(value) <= MAX_SAFE_INTEGER
        case Mapping():
            return all(map(is_js_safe, value.values()))
        case list():
            return all(map(is_js_safe, value))
        case _:
            return True


def to_input_text(value: object) -> str:
    """What the web app writes into the box for an argument."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def describe_card(card: Card, hindrance: str, link: str) -> str:
    """Markdown. All that an agent could have written stands in code: it cannot pose as ours, nor be HTML."""
    return "\n".join(_lines(card, hindrance, link))


def code_span(text: str) -> str:
    """A code span that nothing inside can end; the text is `visible` already, so that it is one line."""
    if not text.strip():
        return f"(empty, {len(text)} characters)" if text else "(empty)"
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}"


class CoercionErrors:
    """Why a text is no value."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = problems


def _coerce_value(name: str, value: object, shown: Mapping[str, object], schema: Mapping[str, object]) -> object:
    """A box that shows what it showed at first still holds that value."""
    if not isinstance(value, str):
        return value
    if name in shown and value == to_input_text(shown[name]):
        return shown[name]
    readings, own = [value, *_json_readings(value)], _argument_schema(name, schema)
    fitting = [each for each in readings if not validate(own, {name: each})]
    match fitting:
        case []:
            return CoercionErrors([_problem_at_argument(name, each) for each in validate(own, {name: readings[-1]})])
        case [only]:
            return only
        case _:
            return (
                value if isinstance(shown.get(name, ""), str) else CoercionErrors([Problem(_pointer(name), AMBIGUOUS)])
            )


def _problem_at_argument(name: str, problem: Problem) -> Problem:
    """What is wrong with all of them together is wrong with the only one that was checked."""
    inside = problem.pointer == _pointer(name) or problem.pointer.startswith(f"{_pointer(name)}/")
    return problem if inside else Problem(_pointer(name), problem.message)


def _argument_schema(name: str, schema: Mapping[str, object]) -> dict[str, object]:
    """As little of the schema as this argument takes: a large one takes long to make ready, for each of them."""
    properties = schema.get("properties")
    own = properties.get(name) if isinstance(properties, Mapping) else None
    kept = {part: schema[part] for part in SHARED_KEYWORDS if part in schema}
    if REF_PATTERN.search(json.dumps([own, kept])):  # to anywhere
        return {part: schema[part] for part in KEYWORDS_WITH_REFS if part in schema}
    return kept if own is None else {**kept, "properties": {name: own}}


def _json_readings(text: str) -> list[object]:
    """What a text could mean besides itself: at most one thing, read strictly."""
    try:
        value = parse_json(text)
    except InvalidRequest:
        return []
    return [] if isinstance(value, str) else [value]


def _lines(card: Card, hindrance: str, link: str) -> Iterator[str]:
    yield from (code_span(card.sentence), "")
    if hindrance:
        yield from ("**It cannot be accepted here:**", f"- {code_span(visible(hindrance))}", "")
    if card.findings:
        yield from (
            "**Look twice:**",
            *(f"- {code_span(f'{visible(each.pointer)}: {each.message}')}" for each in card.findings),
            "",
        )
    if card.fields:
        yield from ("**The arguments, exactly:**", *map(_field, card.fields), "")
    for title, text in (
        ("Preview", card.preview),
        ("The agent's description, unverified", card.agent_description),
        ("The agent's preview, unverified", card.agent_preview),
        ("The agent says, unverified", card.agent_says),
    ):
        yield from (f"**{title}:**", f"- {_shorten(text)}", "") if text else ()
    yield from ("**About it:**", *(f"- {label}: {code_span(text)}" for label, text in card.facts), "")
    yield f"[Look at it in Interlock]({link})"


def _field(field: CardField) -> str:
    digest = f" ({field.length} characters, SHA-256 {field.sha256})" if field.sha256 else ""
    return f"- {code_span(visible(field.pointer))}: {_shorten(field.text)}{digest}"


def _shorten(text: str) -> str:
    head, tail = head_and_tail(text, LONG_TEXT)
    return f"{code_span(head)} … {code_span(tail)}" if tail else code_span(head)


def _pointer(name: str) -> str:
    return f"/{name.replace('~', '~0').replace('/', '~1')}"
