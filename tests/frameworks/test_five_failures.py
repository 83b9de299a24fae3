"""Five ways in which frameworks' own approval steps fail. First the red control: LangChain's, without Interlock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.framework_program import PROGRAMS, read_json, start_program


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What LangChain's own step did in each case."""
    folder: Path = tmp_path_factory.mktemp("own")
    return read_json(start_program("langchain", PROGRAMS / "langchain_baseline.py", folder=folder))


def test_without_interlock_a_tool_runs_twice_when_it_is_resumed_twice(own: dict[str, Any]) -> None:
    assert own["resumed_twice"] == ["send_mail bob", "send_mail bob"]


def test_without_interlock_a_rejected_tool_runs_when_the_predicate_turns_false(own: dict[str, Any]) -> None:
    assert own["rejected_and_the_predicate_turned"] == ["send_mail bob"]


def test_without_interlock_an_edit_turns_a_call_into_a_tool_that_may_only_be_rejected(own: dict[str, Any]) -> None:
    assert own["edited_into_a_forbidden_tool"] == ["drop_table users"]


def test_without_interlock_a_bad_edit_goes_to_the_model(own: dict[str, Any]) -> None:
    (told,) = own["a_bad_edit"]
    assert "Field required" in told


def test_without_interlock_all_checkpoints_are_read_to_see_what_is_paused(own: dict[str, Any]) -> None:
    assert own["listing"]["read"] > own["listing"]["paused"]
