"""Texts for people are plain English: phrases that puzzled readers once do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
MARKERS = re.compile(r"\s+[\"'`]?\s*(?:#|//|\*|--)?\s*[\"'`]?\s*")

# A noun of the field, or what happens and what to do next, stands where these stood.
NEVER = (
    "from afar",
    "what time does",
    "made anew",
    "needs your word",
    "its story stands",
    "the ways to people",
    "in doubt nothing",
    "nobody got yet",
    "is runs elsewhere",
    "who was told",
    "nobody asked yet",
    "taken back: it waits",
    "there is no rejection of yours",
    "the agent has heard of",
    "your yes counts",
    "takes more than a key",
    "its arguments may deceive",
    "i have looked at it",
    "what you see is what is so",
    "is gone and is tried again",
    "the time was up",
    "first put right what is marked",
    "it gets these words",
)
RARELY = re.compile(r"\b(?:whoever|whatever|whom|stands? still|look again)\b", re.IGNORECASE)
ROUTE = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE) /")
LIMIT = 40  # of the rare ones in all texts together


def test_riddles_of_old_do_not_come_back() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}: {phrase}"
        for path in texts()
        for phrase in NEVER
        if phrase in MARKERS.sub(" ", path.read_text()).lower()
    ]
    assert found == []


def test_free_relative_clauses_are_rare() -> None:
    found = [f"{path.relative_to(REPOSITORY)}: {word}" for path in texts() for word in RARELY.findall(path.read_text())]
    assert len(found) <= LIMIT, "\n".join(found)


def test_no_message_tells_people_to_send_a_request() -> None:
    """What to do is said in the words of the page or the command line; docstrings are the reference of the API."""
    found = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}: {node.value}"
        for path in sorted((REPOSITORY / "src/interlock").rglob("*.py"))
        for node in ast.walk(without_docstrings(ast.parse(path.read_text())))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ROUTE.search(node.value)
    ]
    assert found == []


def without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                node.body = [each for each in node.body if not is_text(each)]
    return tree


def is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def texts() -> Iterator[Path]:
    """README, docs but the decisions, the package but its migrations (never edited), and the page."""
    yield REPOSITORY / "README.md"
    yield from (each for each in sorted((REPOSITORY / "docs").rglob("*.md")) if "adr" not in each.parts)
    for folder, endings in ((REPOSITORY / "src/interlock", {".py", ".yaml"}), (REPOSITORY / "ui/src", {".ts", ".tsx"})):
        for path in sorted(folder.rglob("*.*")):
            if path.suffix in endings and ".test." not in path.name and path.name != "schema.d.ts":
                yield path
