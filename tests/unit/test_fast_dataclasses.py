"""Copies of frozen dataclasses that skip the constructor."""

from dataclasses import dataclass, replace

from interlock.core.fast_dataclasses import changed_fields, fast_construct, fast_replace


@dataclass(frozen=True)
class Example:
    name: str
    size: int = 0
    tags: tuple[str, ...] = ()
    note: str | None = "none"


ORIGINAL = fast_construct(Example, name="a", tags=("x", "y"))


def test_what_but_changes_differs() -> None:
    assert changed_fields(ORIGINAL, fast_replace(ORIGINAL)) == set()
    assert changed_fields(ORIGINAL, fast_replace(ORIGINAL, tags=("z",))) == {"tags"}
    assert changed_fields(ORIGINAL, fast_replace(ORIGINAL, name="b", tags=("z",))) == {"name", "tags"}


def test_a_field_that_was_missing_counts_as_different() -> None:
    assert changed_fields(ORIGINAL, fast_replace(ORIGINAL, size=1)) == {"size"}
    assert changed_fields(ORIGINAL, fast_replace(ORIGINAL, note=None)) == {"note"}, "None is not what is missing"
    assert changed_fields(ORIGINAL, fast_replace(ORIGINAL, name="b", size=0)) == {"name", "size"}


def test_equal_is_not_the_same() -> None:
    equal = (*ORIGINAL.tags[:1], "y")
    assert equal == ORIGINAL.tags
    assert changed_fields(ORIGINAL, fast_replace(ORIGINAL, tags=equal)) == {"tags"}


def test_in_any_order() -> None:
    given = ORIGINAL.tags
    assert changed_fields(ORIGINAL, fast_construct(Example, tags=given, name="a")) == set()
    assert changed_fields(ORIGINAL, fast_construct(Example, tags=given, name="b")) == {"name"}
    assert changed_fields(ORIGINAL, fast_construct(Example, note=None, tags=given, name="a")) == {"note"}
    assert changed_fields(ORIGINAL, replace(ORIGINAL, size=1)) == {"size", "note"}, "a constructor sets every field"


def test_what_only_the_old_one_was_given_differs() -> None:
    assert changed_fields(fast_replace(ORIGINAL, size=1), ORIGINAL) == {"size"}
    assert changed_fields(ORIGINAL, fast_construct(Example, name="a", size=1)) == {"tags", "size"}
