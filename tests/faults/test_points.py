"""Fault plans: where they act, how their points are named, and that nothing is wrapped without one."""

import inspect
import sqlite3
from pathlib import Path

import pytest

from interlock.storage.sqlite.database import SqliteDatabase
from tests.faults.points import (
    FaultPoint,
    FaultyConnection,
    InjectedFault,
    add_database_points,
    parse_fault_plan,
    raise_faults_as,
    with_fault_points,
)
from tests.support import START

pytestmark = pytest.mark.smoke


def recorded_names(text: str) -> FaultPoint:
    point = parse_fault_plan(text)
    assert point is not None
    return point


def test_without_a_plan_nothing_is_wrapped() -> None:
    assert parse_fault_plan("") is None
    assert with_fault_points(None, "anything", len) is len


def test_a_plan_acts_at_the_point_with_its_number() -> None:
    point = recorded_names("raise:2")
    point("one")
    with pytest.raises(InjectedFault, match="two"):
        point("two")
    point("three")


def test_a_plan_can_name_its_point_and_say_which_time() -> None:
    point = recorded_names("raise:before commit#2")
    for name in ("before begin", "before commit", "after commit"):
        point(name)
    with pytest.raises(InjectedFault, match="before commit"):
        point("before commit")


def test_a_delay_can_be_at_a_named_point() -> None:
    point = recorded_names("delay:before commit#1:0")
    assert point("before commit") is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize("text", ["kill", "kill:", "kill:x", "kill:x#", "delay:1", "delay:1:x", "trip:1"])
def test_a_plan_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="fault plan"):
        parse_fault_plan(text)


async def test_a_function_keeps_its_name_and_its_kind() -> None:
    names: list[str] = []

    async def send(to: str) -> str:
        return to

    faulty = with_fault_points(names.append, "the tool", send)
    assert inspect.iscoroutinefunction(faulty)
    assert (faulty.__name__, await faulty("ann")) == ("send", "ann")
    assert with_fault_points(names.append, "length", len)("four") == 4
    assert names == ["before the tool", "after the tool", "before length", "after length"]


def test_a_fault_at_a_database_looks_like_the_database_failing() -> None:
    point = raise_faults_as(recorded_names("raise:1"), sqlite3.OperationalError)
    with pytest.raises(sqlite3.OperationalError, match="injected before it"):
        point("before it")


def test_every_statement_is_two_points_named_after_it(tmp_path: Path) -> None:
    log = tmp_path / "points.txt"
    connection = FaultyConnection(sqlite3.connect(":memory:"), recorded_names(f"record:{log}"), {"select 1": "one"})
    connection.execute("select 1")
    connection.execute("-- why\nselect 2,\n3")
    connection.close()
    assert log.read_text().splitlines() == ["before one", "after one", "before select 2, 3", "after select 2, 3"]


async def test_points_belong_to_one_database(tmp_path: Path) -> None:
    names: list[str] = []
    watched, other = (SqliteDatabase(tmp_path / name, lambda: START) for name in ("watched.db", "other.db"))
    add_database_points(watched, names.append)
    await other.open()
    await other.fetch("next_due")
    await other.close()
    assert names == []
    await watched.open()
    await watched.fetch("next_due")
    await watched.close()
    assert names[:6] == [f"{when} {what}" for what in ("create", "open lock", "flock") for when in ("before", "after")]
    assert names[-2:] == ["before next_due", "after next_due"]
