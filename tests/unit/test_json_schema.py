"""Validation by JSON Schema: exact, with messages for people, without a network, and bounded in cost."""

from typing import Any

import pytest

from interlock.core.errors import InvalidRequest
from interlock.runtime.json_schema import (
    MAX_PATTERNS,
    MAX_SCHEMA,
    MAX_STEPS,
    TOO_COSTLY,
    UNEXPLAINED,
    SchemaShape,
    SchemaTooCostly,
    check_schema,
    check_schema_size,
    count_steps,
    measure_schema,
    pattern_size,
    validate,
)

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


Schema = dict[str, Any]
LOOK_AHEAD = "(?=a)a.*b.*c.*d.*e$"


def doubling_schema(times: int, word: str = "anyOf") -> Schema:
    """Each definition needs the next one twice: 2**times at the end."""
    twice: Schema = {f"a{n}": {word: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(times)}
    return {"$defs": {**twice, f"a{times}": {"type": "integer"}}, "$ref": "#/$defs/a0"}


def nested_value(levels: int, inner: Any = 1) -> Any:
    for _ in range(levels):
        inner = {"c": inner}
    return inner


def items_schema(**schema: Any) -> Schema:
    return {"properties": {"a": {"items": schema}}}


COSTLY_SCHEMAS: dict[str, tuple[Schema, Any]] = {
    "anyOf": (doubling_schema(25), {"a": 1}),
    "allOf": (doubling_schema(25, "allOf"), {"a": 1}),
    "oneOf": (doubling_schema(25, "oneOf"), {"a": 1}),
    "circle": ({"$ref": "#"}, {}),
    "longer circle": ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, {}),
    "both ways down": (
        {"anyOf": [{"properties": {"c": {"$ref": "#"}}, "required": ["z"]}, {"properties": {"c": {"$ref": "#"}}}]},
        nested_value(60),
    ),
    "dynamic": ({"$dynamicAnchor": "n", "properties": {"c": {"anyOf": [{"$dynamicRef": "#n"}] * 2}}}, nested_value(60)),
    "anchor": ({"$defs": {"a": {"$anchor": "here"}}, "$ref": "#here"}, {}),
    "contains": ({"properties": {"a": {"contains": {"enum": [], "anyOf": [{}] * 3000}}}}, {"a": [-1] * 50_000}),
    "look-ahead": ({"properties": {"a": {"pattern": LOOK_AHEAD}}}, {"a": "abcd" * 200_000}),
    "look-ahead, as a key": ({"patternProperties": {LOOK_AHEAD: {}}}, {"abcd" * 9_999: 1}),
    "look-ahead, of names": ({"propertyNames": {"pattern": LOOK_AHEAD}}, {"abcd" * 9_999: 1}),
    "backreference": ({"properties": {"a": {"pattern": r"(.*)(.*)\1x"}}}, {"a": "a" * 500_000}),
    "remainders": (items_schema(multipleOf=1e-300), {"a": [1e300] * 100_000}),
}  # fmt: skip


@pytest.mark.parametrize("name", COSTLY_SCHEMAS)
def test_what_would_take_too_long_is_not_done(name: str) -> None:
    schema, value = COSTLY_SCHEMAS[name]
    assert validate(schema, value) == (TOO_COSTLY,)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object"}, {"a": [1] * 200_000}),
        (items_schema(type="integer"), {"a": [1] * 200_000}),
        (items_schema(pattern="^(a+)+$"), {"a": ["a" * 30] * 10_000}),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": list(range(100_000))}),
        ({"properties": {"a": {"pattern": "^(?!b)a+$"}}}, {"a": "a" * 2_000}),
        ({"properties": {"v": {"type": "integer"}, "c": {"$ref": "#"}}}, nested_value(60)),
        ({"$defs": {"a": {}}, "$ref": "#/$defs/a"}, {}),
        (
            {"anyOf": [{"type": "integer"}, {"properties": {"and": {"items": {"$ref": "#"}}}, "required": ["and"]}]},
            {"and": [{"and": [1, 2]}, {"and": [3, {"and": [4] * 100}]}]},
        ),
        ({"prefixItems": [{"type": "integer"}], "items": False}, [1]),
        ({"items": [{"type": "integer"}], "$schema": "http://json-schema.org/draft-07/schema#"}, [1, "x"]),
        ({"dependentSchemas": {"a": {"required": ["b"]}}, "unevaluatedProperties": True, "allOf": [{}]}, {"b": 2}),
    ],
)  # fmt: skip
def test_what_people_write_is_checked(schema: Schema, value: Any) -> None:
    assert validate(schema, value) == ()


def test_a_value_that_does_not_fit_a_branching_schema_is_refused_without_every_reason() -> None:
    assert validate(doubling_schema(11), {"a": 1}) == (UNEXPLAINED,)
    assert "must be a whole number" in validate(doubling_schema(3), {"a": 1})[0].message


def test_a_large_value_that_does_not_fit_is_refused_with_the_first_reason() -> None:
    (problem,) = validate(items_schema(type="integer"), {"a": ["x"] * 100_000})
    assert (problem.pointer, problem.message) == ("/a/0", "must be a whole number")


def test_schemas_have_a_largest_size() -> None:
    large = {"properties": {f"k{number}": {"type": "string"} for number in range(MAX_SCHEMA // 20)}}
    for check in (check_schema, check_schema_size):
        with pytest.raises(InvalidRequest, match="at most 131,072 bytes"):
            check(large)
    check_schema_size({"type": "object"})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {f"k{number}": {"pattern": f"a{number}"} for number in range(MAX_PATTERNS + 1)}},
        {"patternProperties": {f"k{number}": {} for number in range(MAX_PATTERNS + 1)}},
        {"allOf": [{"pattern": f"a{number}"} for number in range(MAX_PATTERNS + 1)]},
    ],
)
def test_schemas_have_a_largest_number_of_patterns(schema: Schema) -> None:
    with pytest.raises(InvalidRequest, match="at most 200 patterns"):
        check_schema(schema)


def test_a_pattern_has_a_largest_size() -> None:
    with pytest.raises(InvalidRequest):
        check_schema({"pattern": "((a{1,100}){1,100}){1,100}"})


def test_steps_are_counted() -> None:
    schema = {"properties": {"a": {"items": {"type": "integer"}}, "b": {}}, "anyOf": [{}, {"required": ["a"]}]}
    assert count_steps(schema, {"a": [1, 2, 3]}) == 1 + 1 + 3 + 2
    with pytest.raises(SchemaTooCostly):
        count_steps({"items": {}}, [1] * MAX_STEPS)


def test_a_shape_says_whether_work_is_bounded_by_size_alone() -> None:
    assert measure_schema({"properties": {"a": {"pattern": "x"}}}) == SchemaShape(3, 1, is_linear=True)
    assert measure_schema({"allOf": [{"$ref": "#"}]}).is_linear is False
    assert measure_schema({"pattern": "(?=x)"}).is_linear is False
    assert measure_schema({"patternProperties": {r"(.)\1": {}}}).is_linear is False
    assert measure_schema(True) == SchemaShape(0, 0, is_linear=True)


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("a[ab]{1000}c", 1_002),
        (r"\d{4}-\d{2}-\d{2}", 10),
        ("((a{30}){30}){30}", 27_000),
        (r"^[a-z]{1,63}(\.[a-z]{1,63}){0,3}$", 255),
        ("a{", 2),
        ("[{5}]x{2,}", 3),
        ("a)b", 3),
    ],
)
def test_a_pattern_is_as_large_as_it_is_written_out(pattern: str, size: int) -> None:
    assert pattern_size(pattern) == size


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"not": {"anyOf": [{"pattern": rf"((a*)*)\1b{n}"} for n in range(200)]}}}, ["a" * 14] * 3),
        ({"properties": {"a": {"pattern": "[ab]*a[ab]{300}c"}}}, {"a": "ab" * 10_000}),
        ({"pattern": "((a{30}){30}){3}b"}, "a" * 10_000),
    ],
)
def test_patterns_that_take_seconds_are_too_costly(schema: dict[str, object], value: object) -> None:
    """They stopped the server: backtracking costs much on a short text too, and a large pattern on a long one."""
    assert validate(schema, value) == (TOO_COSTLY,)


def test_patterns_of_everyday_use_are_checked() -> None:
    schema = {"items": {"pattern": r"^(?=.*\d)[a-z0-9]{8,64}$"}}
    assert validate(schema, ["abcdefg1"] * 20) == ()
    assert validate({"pattern": r"^[a-z]{1,63}(\.[a-z]{1,63}){0,3}$"}, "www.example.com") == ()
