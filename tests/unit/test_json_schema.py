"""Validation by JSON Schema: exact, with messages for people, bounded, and without a network."""

from typing import Any

import pytest

from interlock.core.errors import InvalidRequest
from interlock.runtime.json_schema import check_schema, validate

TRANSFER = {
    "type": "object",
    "required": ["amount", "recipient"],
    "properties": {
        "amount": {"type": "number", "exclusiveMinimum": 0},
        "recipient": {"type": "string", "minLength": 1, "format": "email"},
        "speed": {"enum": ["slow", "fast"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": True},
    },
    "additionalProperties": False,
}


def problems(schema: dict[str, Any], value: object) -> list[str]:
    return [str(problem) for problem in validate(schema, value)]


def test_a_value_that_fits_has_no_problems() -> None:
    assert validate(TRANSFER, {"amount": 5, "recipient": "a@b.example", "tags": ["x"]}) == ()


def test_every_problem_is_named_at_its_place() -> None:  # R12
    value = {"amount": -1, "speed": "warp", "tags": ["a", 3, "a"], "colour": "red"}
    assert sorted(problems(TRANSFER, value)) == [
        "/amount: must be more than 0",
        "/colour: is not known here; remove it",
        "/recipient: is required",
        '/speed: must be one of "slow", "fast"',
        "/tags/1: must be a text",
        "/tags: must have at most 2 items",
        "/tags: must not hold the same item twice",
    ]


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"type": "integer"}, True, "must be a whole number"),
        ({"type": "integer"}, 1.5, "must be a whole number"),
        ({"type": "number"}, "1", "must be a number"),
        ({"type": "boolean"}, 1, "must be true or false"),
        ({"type": ["string", "null"]}, 1, "must be a text or null"),
        ({"const": 3}, 4, "must be 3"),
        ({"maximum": 3}, 4, "must be at most 3"),
        ({"minimum": 3}, 2, "must be at least 3"),
        ({"exclusiveMaximum": 3}, 3, "must be less than 3"),
        ({"minLength": 1}, "", "must not be empty"),
        ({"minLength": 2}, "", "must have at least 2 characters"),
        ({"maxLength": 2}, "abc", "must have at most 2 characters"),
        ({"minItems": 2}, [], "must have at least 2 items"),
        ({"pattern": "^a"}, "b", "must match the pattern ^a"),
        ({"format": "email"}, "b", "must be a valid email"),
        ({"not": {"type": "string"}}, "b", "has a form that is not allowed"),
        ({"oneOf": [{}, {"type": "string"}]}, "b", "fits more than one of the allowed forms, and must fit exactly one"),
        (
            {"anyOf": [{"type": "string"}, {"minimum": 3}]},
            1,
            "fits none of the allowed forms: must be a text; or must be at least 3",
        ),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "has a member whose name must have at most 1 characters"),
        ({"multipleOf": 5}, 7, "is not a multiple of 5"),
        ({"properties": {"x": False}}, {"x": 1}, "is not allowed here"),
    ],
)
def test_messages_are_for_people(schema: dict[str, Any], value: object, words: str) -> None:
    assert [problem.message for problem in validate(schema, value)] == [words]


def test_pointers_escape_what_json_pointers_escape() -> None:
    schema = {"properties": {"a/b": {"properties": {"c~d": {"type": "string"}}}}}
    assert validate(schema, {"a/b": {"c~d": 1}})[0].pointer == "/a~1b/c~0d"


def test_large_integers_are_compared_exactly() -> None:
    schema = {"type": "integer", "maximum": 10**30}
    assert validate(schema, 10**30) == ()
    assert problems(schema, 10**30 + 1) == [f"/: must be at most {10**30}"]


def test_a_message_never_shows_the_value() -> None:  # secrets go through here
    schemas: list[dict[str, Any]] = [
        *(
            {"type": "number"},
            {"enum": ["a"]},
            {"pattern": "^a"},
            {"format": "email"},
            {"maxLength": 2},
            {"const": "a"},
        ),
        *(
            {"not": {"type": "string"}},
            {"anyOf": [{"type": "number"}, {"maxLength": 1}]},
            {"contentEncoding": "base64"},
        ),
    ]
    assert "hunter2" not in "".join(str(problem) for schema in schemas for problem in validate(schema, "hunter2 !"))


def test_there_are_at_most_50_problems() -> None:
    assert len(validate({"items": {"type": "string"}}, list(range(1_000)))) == 50


def test_a_huge_wrong_value_is_refused_by_its_first_problem() -> None:
    assert problems({"items": {"type": "string"}}, list(range(200_000))) == ["/0: must be a text"]


def test_a_pattern_cannot_hang() -> None:  # the suite's limit for a test would end it
    assert problems({"pattern": "^(a|a)*\\1b$"}, "a" * 40) != []


def test_what_is_not_json_is_a_problem() -> None:
    assert len(validate({"type": "object"}, {1: 2})) == 1


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "strin"}, "at /type: the type is one of array, boolean"),
        ({"properties": {"a": {"minimum": "3"}}}, "at /properties/a/minimum"),
        ({"pattern": "("}, "at /pattern"),
        ({"$ref": "https://example.com/schema"}, "refers to another document"),
        ({"$ref": "file:///etc/passwd"}, "refers to another document"),
        ({"$ref": "#/$defs/missing"}, "does not exist"),
        ({"$schema": "https://example.com/meta"}, "The JSON Schema is wrong"),
        ({"const": float("nan")}, "no JSON form"),
    ],
)
def test_a_wrong_schema_is_refused(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_schema(schema)
    assert words in caught.value.message


def test_older_drafts_are_understood() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    schema = {"$schema": draft, "definitions": {"a": {"type": "string"}}, "items": {"$ref": "#/definitions/a"}}
    check_schema(schema)
    assert problems(schema, [1]) == ["/0: must be a text"]


def test_a_schema_that_is_changed_in_place_is_noticed() -> None:
    schema: dict[str, Any] = {"type": "string"}
    assert validate(schema, "x") == ()
    schema["type"] = "number"
    assert validate(schema, "x") != ()
