"""Code that people bring: where its mistakes are, as they are told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.core.errors import Misconfigured
from interlock.runtime.import_path import CodeSource, import_object


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refusal(folder: Path, module: str) -> str:
    with pytest.raises(Misconfigured) as caught:
        import_object(f"{module}:tools", CodeSource(folder))
    return caught.value.message


def test_a_syntax_error_is_told_once_with_its_own_file(folder: Path) -> None:
    (folder / "brought_wrong.py").write_text("x = 1\ndef tools()\n    pass\n")
    (folder / "brought_user.py").write_text("import brought_wrong\n")
    where = f"SyntaxError: expected ':' ({folder / 'brought_wrong.py'}, line 2)"
    assert refusal(folder, "brought_wrong") == f"brought_wrong cannot be imported: {where}"
    assert refusal(folder, "brought_user") == f"brought_user cannot be imported: {where}"
    (folder / "brought_indented.py").write_text("x = 1\n  y = 2\n")
    assert refusal(folder, "brought_indented").endswith(
        f"IndentationError: unexpected indent ({folder / 'brought_indented.py'}, line 2)"
    )


def test_a_syntax_error_in_code_without_a_file_is_told_with_the_line_that_ran_it(folder: Path) -> None:
    (folder / "brought_maker.py").write_text("x = 1\nexec('1 +')\n")
    assert refusal(folder, "brought_maker").endswith(
        f"SyntaxError: invalid syntax (<string>, line 1) ({folder / 'brought_maker.py'}, line 2)"
    )


def test_no_place_is_told_that_is_not_of_the_module(folder: Path) -> None:
    (folder / "brought_binary.py").write_bytes(b"x = 1\0\n")
    said = refusal(folder, "brought_binary")
    assert said.startswith("brought_binary cannot be imported: ")
    assert "import_path.py" not in said
