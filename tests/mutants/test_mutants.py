"""A sample of mutants is killed by the tests, and survives where nothing is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.__main__ import AREAS, TESTED_ELSEWHERE, equivalents
from tests.mutants.mutations import find_mutants

TOP = Path(__file__).resolve().parents[2]
LEAST = 0.85  # with 9 of 10 killed overall, 98 of 100 samples of 150 are above this


def report(*options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.mutants", *options]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return {**result, "printed": done.stderr}


@pytest.mark.timeout(1_200)
def test_a_sample_of_mutants_is_killed() -> None:
    found = report("--sample", "150", "--seed", "1")
    assert found["killed"] + found.get("survived", 0) > 140, "too many could not even be loaded"
    assert found["score"] >= LEAST, found["printed"]


@pytest.mark.timeout(1_200)
def test_without_assertions_mutants_live() -> None:
    found = report("--sample", "50", "--seed", "1", "--broken", "asserts")
    assert found["score"] < LEAST, found["printed"]


@pytest.mark.smoke
def test_mutants_that_are_listed_as_equivalent_exist() -> None:
    known, gone = equivalents(AREAS["core"].mutants())
    assert known
    assert not gone, "follow the names in tests/mutants/equivalent.txt"


@pytest.mark.smoke
def test_excluded_tests_exist() -> None:
    assert [name for name in TESTED_ELSEWHERE if not (TOP / f"tests/unit/test_{name}.py").is_file()] == []


SOURCE = '''
from typing import Literal

LIMIT: int = 3
Kind = Literal["a"]


def short(text: str, by: int = 1) -> str:
    """A docstring is no code."""
    if len(text) > LIMIT and by:
        raise ValueError(f"{text} is too long")
    return join(text, end=text[:by])


def kind_of(value: object) -> str:
    match value:
        case int() if value < 0:
            return "negative"
        case _:
            return ""
'''
CHANGES = """
LIMIT: int = 3 -> LIMIT: int = 4
def short(text: str, by: int=1) -> str: -> def short(text: str, by: int=2) -> str:
if len(text) > LIMIT and by: -> if len(text) > LIMIT or by:
if len(text) > LIMIT and by: -> if len(text) >= LIMIT and by:
raise ValueError(f'{text} is too long') -> pass
raise ValueError(f'{text} is too long') -> raise ValueError(f'XX{text} is too long')
return join(text, end=text[:by]) -> return None
return join(text, end=text[:by]) -> return join(text)
case int() if value < 0: -> case int() if False:
case int() if value < 0: -> case int():
case int() if value < 0: -> case int() if value <= 0:
case int() if value < 0: -> case int() if value < 1:
return 'negative' -> return 'XXgative'
return '' -> return 'XX'
"""


def test_a_mutant_is_the_module_with_one_mistake() -> None:
    assert [mutant.change for mutant in find_mutants("any.py", SOURCE)] == CHANGES.strip().splitlines()


def test_a_mutant_knows_where_it_is() -> None:
    places = {
        (mutant.place.scope, mutant.place.function, mutant.lines[-1]) for mutant in find_mutants("any.py", SOURCE)
    }
    assert ("", 0, 4) in places, "a constant is there when the module is loaded"
    assert ("short", 0, 8) in places, "so is a default"
    assert {("short", 8, 11), ("kind_of", 15, 18)} <= places


def test_mutants_that_read_alike_are_numbered() -> None:
    assert [str(mutant) for mutant in find_mutants("a.py", "f(1)\nf(1)")] == [
        "a.py module: f(1) -> pass",
        "a.py module: f(1) -> f(2)",
        "a.py module: f(1) -> pass (2)",
        "a.py module: f(1) -> f(2) (2)",
    ]
