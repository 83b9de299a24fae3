"""Budgets of grants: amounts are read from the canonical bytes and summed exactly; anything else is None."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.call import ToolSpec, redact
from interlock.core.canonical import canonical
from interlock.core.errors import InvalidRequest
from interlock.core.grant import (
    Amounts,
    add_amount,
    fits_budget,
    format_amount,
    parse_budget,
    pointer_parts,
    remaining_budget,
)

ARGS = {
    "amount": 12.5,
    "sum": {"net": 3, "a/b": {"~": 4}},
    "lines": [{"amount": 1}],
    "/odd": 9,
    "text": "5",
    "yes": True,
}
AMOUNTS = Amounts(canonical(ARGS))
LARGEST = 10**40 - 1


# R51
@pytest.mark.parametrize(
    ("place", "amount"),
    [
        ("amount", "12.5"),
        ("/amount", "12.5"),
        ("/sum/net", "3"),
        ("/sum/a~1b/~0", "4"),
        ("//odd", None),
        ("/~1odd", "9"),
        ("sum/net", None),
        ("nothing", None),
        ("/sum", None),
        ("/sum/net/deeper", None),
        ("/lines/0/amount", None),
        ("", None),
        ("/", None),
        ("text", None),
        ("yes", None),
    ],
)
def test_an_amount_is_found_by_pointer_or_plain_name(place: str, amount: str | None) -> None:
    assert AMOUNTS.get(place) == (None if amount is None else Decimal(amount))


# R51
def test_a_plain_name_is_one_step_and_a_pointer_several() -> None:
    assert pointer_parts("a/b") == ("a/b",)
    assert pointer_parts("/a/b~1c~0") == ("a", "b/c~")


# R51, design rule 11
def test_a_secret_amount_is_none() -> None:
    spec = ToolSpec("pay", secret=("amount",))
    shown = redact(canonical({"amount": 5, "fee": 1}), spec, b"k" * 32)
    assert (Amounts(shown.data).get("amount"), Amounts(shown.data).get("fee")) == (None, Decimal(1))


# R51
@given(st.integers(0, LARGEST) | st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_an_amount_is_the_number_that_the_bytes_spell(number: float) -> None:
    found = Amounts(canonical({"n": number})).get("n")
    assert found is not None
    assert Fraction(found) == Fraction(repr(number))
    assert Fraction(format_amount(found)) == Fraction(found)
    assert set(format_amount(found)) <= set("0123456789.")


# R51
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("500", "500"),
        ("99.50", "99.5"),
        ("007", "7"),
        ("100", "100"),
        ("0.01", "0.01"),
        ("5.00", "5"),
        ("9" * 40, "9" * 40),
    ],
)
def test_a_budget_has_one_spelling(text: str, kept: str) -> None:
    assert parse_budget(text) == kept


# R51
@pytest.mark.parametrize(
    "text",
    ["", "0", "0.00", "-1", "+1", "1e3", "1,000", "1_000", " 1", "1\n", ".5", "5.", "NaN", "Infinity", "٣", "9" * 41],
)
def test_what_is_no_plain_number_above_zero_is_no_budget(text: str) -> None:
    with pytest.raises(InvalidRequest, match="number above 0, such as 500"):
        parse_budget(text)


# R51
def test_the_smallest_and_the_largest_numbers_still_add_up() -> None:
    tiny = Decimal("4.9406564584124654e-324")
    spent = add_amount(str(LARGEST - 1), tiny)
    assert Fraction(spent) == LARGEST - 1 + Fraction(tiny)
    assert Fraction(remaining_budget(str(LARGEST), spent)) == 1 - Fraction(tiny)
    assert fits_budget(Decimal("0.5"), str(LARGEST), spent)
    assert not fits_budget(Decimal(1), str(LARGEST), spent)
    assert not fits_budget(Decimal("1.7976931348623157e308"), str(LARGEST), spent), (
        "a sum of 633 digits is not even made"
    )
    assert not fits_budget(Decimal("1e-600"), str(LARGEST), "1"), "it would be rounded away"


# R51
@pytest.mark.parametrize("broken", ["", "a lot", "NaN"])
def test_nothing_is_within_a_budget_that_cannot_be_read(broken: str) -> None:
    assert not fits_budget(Decimal(0), "5", broken)
    assert not fits_budget(Decimal(0), broken, "0")
