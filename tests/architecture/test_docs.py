"""The documentation agrees with the code: links, commands, names and requirements exist."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

import interlock
from interlock.cli import app
from interlock.policy.conditions import compile_condition
from interlock.policy.file import load_policy

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CHANGELOG.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted(DOCS.rglob("*.md")),
]
SOURCES = (REPOSITORY / "src" / "interlock", REPOSITORY)  # the page's own begin with ui/
DECISIONS = sorted((DOCS / "adr").glob("*.md"))
LONGEST_DECISION = 40
LAST_REQUIREMENT = 66
STATES = {"done", "part", "later"}

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (R\d+) \|(.*)\|$", re.MULTILINE)


def relative_path(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def pages(names: list[Path]) -> Any:
    return pytest.mark.parametrize("page", names, ids=relative_path)


@pages(PAGES)
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = []
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            dead.append(target)
    assert dead == []


@pages(PAGES)
def test_every_program_can_be_read(page: Path) -> None:
    broken = []
    for language, text in FENCE.findall(page.read_text()):
        try:
            if language == "python":
                compile(text, relative_path(page), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError as error:
            broken.append(str(error))
    assert broken == []


def test_the_policy_of_the_quickstart_loads() -> None:
    (policy,) = [text for language, text in FENCE.findall((DOCS / "quickstart.md").read_text()) if language == "yaml"]
    loaded = load_policy(policy, compile_condition)
    assert (len(loaded.policy.rules), loaded.warnings) == (3, ())


def test_the_index_names_every_page() -> None:
    named = set(LINK.findall((DOCS / "index.md").read_text()))
    there = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"index.md"}
    assert there - named == set()


@pages(DECISIONS)
def test_a_decision_is_short_and_has_its_three_parts(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert len(lines) <= LONGEST_DECISION
    assert [line for line in lines if line.startswith("## ")] == ["## Context", "## Decision", "## Consequences"]


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(page.name[:4]) for page in DECISIONS]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers


def test_every_command_is_documented() -> None:
    text = (DOCS / "command-line.md").read_text()
    known = list(command_paths())
    assert "interlock approvals approve" in known
    assert [path for path in known if f"## {path}\n" not in text] == []
    assert [head for head in re.findall(r"^## (interlock .*)$", text, re.MULTILINE) if head not in known] == []


def test_every_public_name_is_documented() -> None:
    code = re.findall(r"`[^`]+`", FENCE.sub("", (DOCS / "library.md").read_text()))
    words = set(re.findall(r"\w+", " ".join(code)))
    assert [name for name in interlock.__all__ if name not in words] == []


def test_every_requirement_has_its_state() -> None:
    rows = requirements()
    assert list(rows) == [f"R{number}" for number in range(1, LAST_REQUIREMENT + 1)]
    assert {row.state for row in rows.values()} <= STATES


def test_what_is_done_or_begun_names_its_code_and_one_owner() -> None:
    bare = [
        name
        for name, row in requirements().items()
        if row.state != "later" and not (row.code and len(row.owner) == 1 and row.owner[0].startswith(f"{row.level}/"))
    ]
    assert bare == []


def test_the_code_and_tests_of_a_requirement_are_there_and_are_marked_with_it() -> None:
    wrong = []
    for name, row in requirements().items():
        wrong += [f"{name}: {path}" for path in row.code if not any((top / path).exists() for top in SOURCES)]
        for path in [*row.owner, *row.others]:
            file = REPOSITORY / "tests" / path
            if not file.is_file() or name not in marked_requirements(file.read_text()):
                wrong.append(f"{name}: no test of tests/{path} is marked with it")
    assert wrong == []


MARKED = '''"""Not by its docstring. R1"""
# R2, R3

from pathlib import Path  # R4


# R5: with words
# R6
@pytest.mark.parametrize("each", [1])  # R7
def test_one(
    each: int,
) -> None:  # R8
    assert each  # R9


# R10
class TestMany:  # R11
    async def test_two(self) -> None:  # R12
        """Nor by this. R13"""  # R14

    def help(self) -> None:  # R15
        text = "# R16"
'''


def test_only_a_comment_on_or_above_a_test_marks_it() -> None:
    assert marked_requirements(MARKED) == {f"R{number}" for number in (2, 3, 5, 6, 7, 8, 10, 11, 12)}


def marked_requirements(source: str) -> set[str]:
    """Those in comments on a test or directly above it, or right below the docstring of a file, for all its tests."""
    tree, comments = ast.parse(source), comments_by_line(source)
    found = block_below(comments, tree.body[0].end_lineno or 1) if ast.get_docstring(tree) else []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if node.name.startswith(("test_", "Test")):
            head = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            lines = range(head, node.body[0].lineno)
            found += [*block_above(comments, head), *(comments[line] for line in lines if line in comments)]
    return set(re.findall(r"\bR\d+\b", " ".join(found)))


def comments_by_line(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def block_above(comments: dict[int, str], line: int) -> list[str]:
    lines = takewhile(comments.__contains__, range(line - 1, 0, -1))
    return [comments[each] for each in lines]


def block_below(comments: dict[int, str], line: int) -> list[str]:
    lines = takewhile(comments.__contains__, count(line + 1))
    return [comments[each] for each in lines]


class Requirement(NamedTuple):
    """`code` is under src/interlock or of the page; `owner` and `others` are files under tests."""

    state: str
    code: list[str]
    level: str
    owner: list[str]
    others: list[str]


def requirements() -> dict[str, Requirement]:
    rows = {}
    for name, rest in ROW.findall((DOCS / "requirements.md").read_text()):
        _, state, code, level, *tests = (cell.strip() for cell in rest.split("|"))
        files = [re.findall(r"`([^`]+)`", cell) for cell in tests]
        rows[name] = Requirement(state.partition(":")[0], re.findall(r"`([^`]+)`", code), level, *files)
    return rows


def command_paths() -> Iterator[str]:
    root: Any = typer.main.get_command(app)
    context = typer.Context(root, info_name="interlock")
    yield from subcommands(root, context, "interlock")


def subcommands(command: Any, context: Any, path: str) -> Iterator[str]:
    if not hasattr(command, "list_commands"):
        yield path
        return
    for name in command.list_commands(context):
        yield from subcommands(command.get_command(context, name), context, f"{path} {name}")


def anchors(page: Path) -> set[str]:
    """As the usual renderers make them of headings."""
    heads = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
