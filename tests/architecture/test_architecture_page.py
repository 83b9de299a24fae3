"""docs/architecture.md: the files and functions that it names exist, and the walk stays short."""

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "src" / "interlock"
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text()
MOST_FILES_IN_A_WALK = 15
QUESTIONS = 5


def test_every_file_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", PAGE))
    assert len(named) > MOST_FILES_IN_A_WALK
    assert [name for name in sorted(named) if not (PACKAGE / name).is_file()] == []


def test_every_package_is_in_the_table() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"ui"}
    table = PAGE.partition("## Packages")[2].partition("## ")[0]
    assert {name for name in packages if f"`{name}/`" not in table} == set()


def test_every_function_that_a_file_is_named_with_is_in_it() -> None:
    pairs = re.findall(r"`([a-z_/]+\.py)` \(`([A-Za-z_]+)`", PAGE)
    assert pairs, "the page names no function"
    missing = [(file, name) for file, name in pairs if name not in functions(PACKAGE / file)]
    assert missing == []


def test_the_walk_is_short_and_the_questions_are_answered() -> None:
    walk = PAGE.partition("## The walk of one call")[2].partition("## ")[0]
    assert len(set(re.findall(r"`([a-z_/]+\.py)`", walk))) <= MOST_FILES_IN_A_WALK
    questions = PAGE.partition("## Questions")[2].partition("## ")[0]
    assert len(re.findall(r"^\*\*[^*]+\?\*\*", questions, re.MULTILINE)) == QUESTIONS


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if hasattr(node, "name") and node.name}
