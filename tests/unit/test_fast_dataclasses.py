"""Frozen dataclasses without their constructors."""

from dataclasses import dataclass, replace

from interlock.core.fast_dataclasses import changed_fields, fast_construct, fast_replace


@dataclass(frozen=True)
class Thing:
    name: str
    size: int = 0
    tags: tuple[str, ...] = ()
    note: str | None = "none"


OLD = fast_construct(Thing, name="a", tags=("x", "y"))


def test_what_but_changes_differs() -> None:
    assert changed_fields(OLD, fast_replace(OLD)) == set()
    assert changed_fields(OLD, fast_replace(OLD, tags=("z",))) == {"tags"}
    assert changed_fields(OLD, fast_replace(OLD, name="b", tags=("z",))) == {"name", "tags"}


def test_what_was_not_given_before_differs_whatever_it_is() -> None:
    assert changed_fields(OLD, fast_replace(OLD, size=1)) == {"size"}
    assert changed_fields(OLD, fast_replace(OLD, note=None)) == {"note"}, "None is not what is missing"
    assert changed_fields(OLD, fast_replace(OLD, name="b", size=0)) == {"name", "size"}


def test_equal_is_not_the_same() -> None:
    equal = (*OLD.tags[:1], "y")
    assert equal == OLD.tags
    assert changed_fields(OLD, fast_replace(OLD, tags=equal)) == {"tags"}


def test_in_any_order() -> None:
    given = OLD.tags
    assert changed_fields(OLD, fast_construct(Thing, tags=given, name="a")) == set()
    assert changed_fields(OLD, fast_construct(Thing, tags=given, name="b")) == {"name"}
    assert changed_fields(OLD, fast_construct(Thing, note=None, tags=given, name="a")) == {"note"}
    assert changed_fields(OLD, replace(OLD, size=1)) == {"size", "note"}, "a constructor sets every field"


def test_what_only_the_old_one_was_given_differs() -> None:
    assert changed_fields(fast_replace(OLD, size=1), OLD) == {"size"}
    assert changed_fields(OLD, fast_construct(Thing, name="a", size=1)) == {"tags", "size"}
