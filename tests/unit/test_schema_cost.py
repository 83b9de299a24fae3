"""The cost of a JSON Schema: estimated before validation, and refused over the limit."""

from __future__ import annotations

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
    validate,
)

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
