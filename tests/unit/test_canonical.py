"""Canonical JSON: one spelling for each value that is stored, hashed and executed."""

import json
import math
import struct
from collections.abc import Mapping
from decimal import Decimal
from enum import IntEnum, StrEnum
from hashlib import sha256
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.canonical import (
    MAX_BYTES,
    MAX_DEPTH,
    canonical,
    canonical_args,
    digest,
    parse_json,
    plain_json,
    read_canonical,
)
from interlock.core.errors import InvalidRequest
from tests.unit.builders import any_text, json_values


def double_from_bits(bits: str) -> float:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert isinstance(number, float)
    return number


def nested_list(depth: int) -> object:
    value: object = []
    for _ in range(depth - 1):
        value = [value]
    return value


def refusal_message(data: bytes | str) -> str:
    with pytest.raises(InvalidRequest) as caught:
        parse_json(data)
    return caught.value.message


# R47
def test_a_number_is_written_out_as_far_as_its_digits_reach() -> None:
    assert canonical(1.2345678901234568e16) == b"12345678901234568"
    assert canonical(-1.5e300) == b"-1.5e+300"


# R47: the numbers of RFC 8785, appendix B
@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_are_written_as_the_standard_says(bits: str, text: str) -> None:
    assert canonical(double_from_bits(bits)) == text.encode()


# R47: the sample of RFC 8785, section 3.2
def test_the_sample_of_the_standard_is_written_byte_for_byte() -> None:
    source = rb"""{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"""
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical(parse_json(source)) == expected.encode()


# R47: names are ordered by UTF-16 code units: RFC 8785, section 3.2.3
def test_names_are_sorted_by_utf16_code_units() -> None:
    names = ["€", "\r", "\ufb33", "1", "\U0001f600", "\x80", "ö"]
    ordered = ["\r", "1", "\x80", "ö", "€", "\U0001f600", "\ufb33"]
    data = canonical(dict.fromkeys(names, 0))
    assert list(json.loads(data)) == ordered
    assert ordered != sorted(names), "code points would give another order"


def test_plain_names_are_sorted_too() -> None:
    assert canonical({"b": 1, "a": {"d": 2, "c": 3}}) == b'{"a":{"c":3,"d":2},"b":1}'


# R47
def test_only_what_must_be_escaped_is() -> None:
    text = '\b\t\n\f\r"\\/\x01\x1f\x7f\u2028é'
    assert canonical(text) == '"\\b\\t\\n\\f\\r\\"\\\\/\\u0001\\u001f\x7f\u2028é"'.encode()


# R47
@pytest.mark.parametrize("number", [0, -1, 2**53 + 1, 10**39, 10**40 - 1, 1 - 10**40])
def test_whole_numbers_of_up_to_40_digits_stay_exact(number: int) -> None:
    data = canonical(number)
    assert data == str(number).encode()
    assert parse_json(data) == number
    assert canonical(parse_json(data)) == data


# R27
@pytest.mark.parametrize("number", [10**40, -(10**40), pytest.param(10**5000, id="5,000 digits")])
def test_more_than_40_digits_are_refused(number: int) -> None:
    with pytest.raises(InvalidRequest, match="40 digits"):
        canonical(number)


# R27
@pytest.mark.parametrize("text", ["1" + "0" * 40, "-1" + "0" * 40, pytest.param("9" * 5_000, id="5,000 digits")])
def test_more_than_40_digits_are_refused_in_a_body(text: str) -> None:
    assert "40 digits" in refusal_message(text)


# R47
def test_true_is_not_one_and_false_is_not_zero() -> None:
    assert canonical([True, 1, False, 0]) == b"[true,1,false,0]"


# R47
@pytest.mark.parametrize(("one", "other"), [(1.0, 1), (-0.0, 0), (1e2, 100), (-5.0, -5), (1e20, 10**20)])
def test_one_number_has_one_spelling(one: float, other: int) -> None:
    assert canonical(one) == canonical(other)


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    TOP = 3


def test_subclasses_of_texts_and_numbers_are_written_as_their_values() -> None:
    assert canonical([Colour.RED, Level.TOP]) == b'["red",3]'


def test_tuples_and_foreign_mappings_are_lists_and_objects() -> None:
    assert canonical(MappingProxyType({"a": (1, (2,))})) == b'{"a":[1,[2]]}'


# R27, R47
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_without_json_form_are_refused(number: float) -> None:
    with pytest.raises(InvalidRequest, match="infinite"):
        canonical({"a": [number]})


# R27
@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), Decimal(1), 1j, range(2)])
def test_values_without_json_form_are_refused(value: object) -> None:
    with pytest.raises(InvalidRequest, match=f"type {type(value).__name__} has no JSON form"):
        canonical([value])
    with pytest.raises(InvalidRequest, match=f"type {type(value).__name__} has no JSON form"):
        canonical_args({"a": {"b": value}})


# R27
@pytest.mark.parametrize("key", [1, None, True, (1,)])
def test_names_that_are_not_texts_are_refused(key: object) -> None:
    with pytest.raises(InvalidRequest, match="names are texts"):
        canonical({key: 1})


# R27
@pytest.mark.parametrize("value", ["a\x00b", {"a\x00b": 1}, ["\x00"]])
def test_nul_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequest, match="NUL"):
        canonical(value)


# R27
@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", {"\udc00": 1}, {"é": "\ud800"}])
def test_half_a_surrogate_pair_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        canonical(value)


# R27
def test_64_levels_are_accepted_and_65_are_not() -> None:
    deepest = nested_list(MAX_DEPTH)
    assert canonical(parse_json(canonical(deepest))) == b"[" * 64 + b"]" * 64
    with pytest.raises(InvalidRequest, match="64 levels"):
        canonical([deepest])
    with pytest.raises(InvalidRequest, match="64 levels"):
        canonical({"a": deepest})


# R27
@pytest.mark.parametrize("depth", [65, 5_000, 200_000])
def test_a_deep_body_is_refused_before_it_is_parsed(depth: int) -> None:
    assert "64 levels" in refusal_message(b"[" * depth)
    assert "64 levels" in refusal_message(b'{"a":' * depth)
    assert "64 levels" in refusal_message(b"[" * depth + b"]" * depth)


# R27
def test_many_brackets_side_by_side_are_not_deep() -> None:
    flat = [[], {}, {"a": []}] * 100
    assert parse_json(canonical(flat)) == flat


# R27
def test_depth_is_counted_up_and_down() -> None:
    deepest = b"[" * 64 + b"]" * 63
    assert parse_json(deepest + b",[]]") == parse_json(b"[[]," + deepest[1:] + b"]")[::-1]  # type: ignore[index]
    assert "64 levels" in refusal_message(b"[" + b"[]," * 9 + b"[" * 64 + b"]" * 65)


# R27
def test_brackets_inside_texts_do_not_count_as_depth() -> None:
    body = {"a": "[" * 100, 'b\\"': '{"' * 100 + "\\"}
    assert parse_json(json.dumps(body)) == body


# R27
def test_brackets_behind_an_escaped_quote_still_count() -> None:
    assert "64 levels" in refusal_message(b'["\\"",' + b"[" * 64)


# R27
def test_one_mebibyte_is_accepted_and_one_byte_more_is_not() -> None:
    longest = "x" * (MAX_BYTES - 2)
    assert len(canonical(longest)) == MAX_BYTES
    assert parse_json(b'"' + longest.encode() + b'"') == longest
    with pytest.raises(InvalidRequest, match="1,048,577 bytes"):
        canonical(longest + "x")
    assert "1,048,577 bytes" in refusal_message(b'"' + longest.encode() + b'x"')
    assert "bytes" in refusal_message('"' + "é" * (MAX_BYTES // 2) + '"'), "bytes count, not characters"


# R27
@pytest.mark.parametrize("body", ['{"to":"safe","to":"evil"}', '[{"a":{"b":1,"b":1}}]', '{"a":1,"\\u0061":2}'])
def test_a_name_that_appears_twice_is_refused(body: str) -> None:
    assert "appears twice" in refusal_message(body)


# R27
@pytest.mark.parametrize("body", ["NaN", '{"a":Infinity}', "[-Infinity]"])
def test_constants_that_are_not_json_are_refused(body: str) -> None:
    assert "is not JSON" in refusal_message(body)


# R27
@pytest.mark.parametrize("body", ["1e400", "[-1e309]", pytest.param("1" + "0" * 400 + ".0", id="400 zeros")])
def test_numbers_that_no_double_holds_are_refused(body: str) -> None:
    assert "too large" in refusal_message(body)


# R27
@pytest.mark.parametrize("body", [r'"\u0000"', r'{"a\u0000":1}', r'["\ud800"]', r'"\udc00\ud800"'])
def test_escapes_let_neither_nul_nor_half_a_pair_in(body: str) -> None:
    assert refusal_message(body)


# R27
def test_other_escapes_are_welcome() -> None:
    assert parse_json(rb'"\ud83d\ude00\u00e9\\u0000"') == "\U0001f600é\\u0000"


# R27
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1,]",
        b"{'a':1}",
        b"tru",
        b"01",
        b"1 2",
        b'"\x00"',
        b'"\n"',
        b"\xef\xbb\xbf{}",
        b"]" * 70 + b"[" * 70,
    ],
)
def test_what_is_not_json_is_refused(body: bytes) -> None:
    assert "not JSON" in refusal_message(body)


# R27
@pytest.mark.parametrize("body", [b'"\xff"', b'"\xed\xa0\x80"', '{"a":1}'.encode("utf-16")])
def test_what_is_not_utf8_is_refused(body: bytes) -> None:
    assert "UTF-8" in refusal_message(body)


# R27
def test_a_text_body_with_half_a_pair_is_refused() -> None:
    assert "surrogate" in refusal_message('"\ud800"')


def test_texts_and_bytes_are_parsed_alike() -> None:
    assert parse_json('{"a":"é"}') == parse_json('{"a":"é"}'.encode()) == {"a": "é"}


def test_a_digest_is_the_sha256_in_lower_case_hex() -> None:
    assert digest(b"{}") == sha256(b"{}").hexdigest() == digest(b"{}").lower()


# R47
@given(json_values)
def test_reading_back_gives_the_same_bytes(value: object) -> None:
    data = canonical(value)
    assert canonical(parse_json(data)) == data
    assert canonical(read_canonical(data)) == data


def test_bytes_from_elsewhere_are_read_whole_or_not_at_all() -> None:
    assert read_canonical(b' {"a": 1}\n') == {"a": 1}
    for damaged in (b"", b"{", b"nope", b'{"a":1}{}', b"1 2"):
        with pytest.raises(ValueError, match="column"):
            read_canonical(damaged)


# R47
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_read_back_as_the_same_number(number: float) -> None:
    text = canonical(number).decode()
    assert float(text) == number
    assert Decimal(text) == Decimal(repr(number)), "the shortest digits that tell it apart"


def json_meaning(value: object) -> object:
    """Equal exactly when two values are the same JSON; Python alone says True == 1. Spelled without `canonical`."""
    match value:
        case Mapping():
            return ("object", frozenset((name, json_meaning(member)) for name, member in value.items()))
        case list() | tuple():
            return ("array", tuple(map(json_meaning, value)))
        case float() if value.is_integer() and abs(value) < 1e21:
            return ("number", int(Decimal(repr(value))))  # such a float is written with all its digits
        case bool() | None | str():
            return (type(value).__name__, value)
        case _:
            return (f"number {type(value).__name__}" if abs(float(str(value))) >= 1e21 else "number", value)


# R47, R53
@given(json_values, json_values)
def test_two_values_share_bytes_exactly_when_they_mean_the_same(one: object, other: object) -> None:
    assert (canonical(one) == canonical(other)) == (json_meaning(one) == json_meaning(other))


# R47, R53
@given(json_values, st.randoms(use_true_random=False))
def test_the_order_of_members_leaves_no_trace(value: object, random: object) -> None:
    assert canonical(shuffle_keys(value, random)) == canonical(value)


def shuffle_keys(value: object, random: object) -> object:
    match value:
        case dict():
            items = [(name, shuffle_keys(member, random)) for name, member in value.items()]
            random.shuffle(items)
            return dict(items)
        case list():
            return [shuffle_keys(item, random) for item in value]
        case _:
            return value


own_values = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 10**40, 10**40 - 1) | any_text,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=("Cs",)), max_size=9), inner)
    ),
    max_leaves=9,
)


# R49
@given(own_values)
def test_the_quick_writer_agrees_with_the_careful_one_on_what_the_program_writes(value: object) -> None:
    try:
        expected = canonical(value).decode()
    except InvalidRequest:
        return
    assert plain_json(value) == expected


def test_what_has_no_json_form_is_not_written() -> None:
    with pytest.raises(TypeError, match="bytes has no JSON form"):
        plain_json({"a": b"x"})


@pytest.mark.parametrize("many", [[1] * 10_000, [[[]]] * 5_000, {f"k{number}": 1 for number in range(10_000)}])
def test_the_arguments_of_a_call_are_no_more_than_people_can_look_at(many: object) -> None:
    with pytest.raises(InvalidRequest, match="more than 10,000 values"):
        canonical_args({"a": many})
    assert canonical(many)


def test_ten_thousand_values_are_still_taken() -> None:
    args = {"a": [1] * 9_998, "b": (None,)}
    with pytest.raises(InvalidRequest):
        canonical_args({**args, "c": 1})
    assert canonical_args({"a": [1] * 9_997, "b": "x" * 500_000, "c": {}}).startswith(b'{"a":[1,1,')
