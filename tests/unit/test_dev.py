"""What `make dev` watches besides the package: the configuration file, and the modules of tools that it names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.dev import configured_paths, modification_times

CONFIGURATION = """\
tools: {shop: "corner_shop:tools"}
workspaces: {lab: {tools: {lab: "corner_lab.bench.tools:make", codec: "json.decoder"}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INTERLOCK_CONFIG", raising=False)
    (tmp_path / "corner_lab" / "bench").mkdir(parents=True)
    (tmp_path / "corner_lab" / "bench" / "tools.py").write_text("")
    (tmp_path / "corner_shop.py").write_text("raise AssertionError('it was imported')")
    (tmp_path / "interlock.yaml").write_text(CONFIGURATION)
    return tmp_path


@pytest.mark.parametrize("options", [[], ["--config", "interlock.yaml"]])
def test_modules_of_tools_are_watched_without_being_imported(folder: Path, options: list[str]) -> None:  # R64
    found = [path.absolute() for path in configured_paths(["interlock", "serve", *options])]
    own = [folder / name for name in ("interlock.yaml", "corner_shop.py", "corner_lab")]
    assert found == [*own, Path(json.__file__).parent]


def test_a_change_in_a_package_of_tools_or_in_the_file_is_seen(folder: Path) -> None:  # R64
    paths = list(configured_paths(["interlock", "serve"]))[:3]
    seen = modification_times(*paths)
    (folder / "corner_lab" / "bench" / "more.py").write_text("")
    more = modification_times(*paths)
    (folder / "interlock.yaml").unlink()
    assert len({len(seen), len(more)}) == 2
    assert modification_times(*paths).keys() == more.keys() - {Path("interlock.yaml")}


def test_a_file_that_does_not_load_is_watched_until_it_does(folder: Path) -> None:
    (folder / "interlock.yaml").write_text("tools: [")
    assert list(configured_paths(["interlock", "serve"])) == [Path("interlock.yaml")]
    assert list(configured_paths(["interlock", "serve", "--config", "gone.yaml"])) == [Path("gone.yaml")]
