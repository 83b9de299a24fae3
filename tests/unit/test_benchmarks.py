"""The benchmark programs: what they measure and report; the figures themselves are not checked."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import __main__ as program
from benchmarks import comparison, docs_page, newer_sqlite, peer_process, peers, plot, report
from benchmarks.tables import Table
from benchmarks.targets import all_targets

SVG = "{http://www.w3.org/2000/svg}"


def options(folder: Path, peer: str, task: str, seconds: float = 0.05) -> argparse.Namespace:
    return argparse.Namespace(
        peer=peer,
        database="sqlite",
        task=task,
        folder=folder,
        url="",
        seconds=seconds,
        at_once=[1, 4],
        count=20,
        first=5,
    )


@pytest.mark.parametrize("name", peers.peer_names())
def test_every_peer_says_what_it_is_even_where_it_is_not_installed(name: str) -> None:
    about = peers.peer_info(name)
    assert about.title
    assert about.packages
    assert set(about.databases) <= set(comparison.LABELS)


@pytest.mark.parametrize("name", peers.peer_names())
def test_every_peer_runs_in_an_environment_that_is_installed_with_its_packages(name: str) -> None:
    about = peers.peer_info(name)
    folder, _, framework = about.environment.partition("/")
    made = re.findall(r"^BENCH_FRAMEWORKS := (.*)$", (peers.REPOSITORY / "Makefile").read_text(), re.MULTILINE)[
        0
    ].split()
    assert (folder, framework) == ("", "") or (folder == ".venv-frameworks" and framework in made)
    locked = peers.REPOSITORY / "requirements" / (f"frameworks/{framework}.txt" if framework else "bench.txt")
    pinned = set(re.findall(r"^([\w-]+)==", locked.read_text(), re.MULTILINE)) | {"interlock-gate"}
    assert set(about.packages) <= pinned


def test_a_peer_is_run_by_the_python_of_its_environment() -> None:
    about = peers.PeerInfo("x", "X", ("sqlite",), ())
    assert about.interpreter() == Path(sys.executable)
    elsewhere = peers.PeerInfo("x", "X", ("sqlite",), (), ".venv-frameworks/x")
    assert elsewhere.interpreter() == peers.REPOSITORY / ".venv-frameworks/x/bin/python"


def test_a_peer_whose_environment_is_not_there_says_so() -> None:
    who = comparison.Participant(peers.PeerInfo("x", "X", ("sqlite",), (), ".venv-nowhere"), "sqlite")
    server: Any = None  # nothing is asked of it
    comparison.Comparison(server).turn(who, 0.1, (1,))
    assert who.error == "not installed (there is no .venv-nowhere; `make bench` makes it)"


def test_a_newer_sqlite_is_loaded_only_where_it_is_needed_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 40, 1))
    assert newer_sqlite.environment((3, 42)) == {}  # none is found
    library = tmp_path / "pyproj.libs" / "libsqlite3-341faa0b.so.0.8.6"
    library.parent.mkdir()
    library.touch()
    assert newer_sqlite.environment((3, 42)) == {"LD_PRELOAD": str(library)}
    assert newer_sqlite.environment((3, 40)) == newer_sqlite.environment(()) == {}


async def test_interlock_is_measured_as_everybody_is(tmp_path: Path) -> None:
    figures = await peer_process.measure_cycles(options(tmp_path, "interlock_gate", "cycles"))
    assert figures["durable"] == "journal_mode=WAL, synchronous=FULL"
    assert [figures[at_once]["cycles_per_second"] > 0 for at_once in ("1", "4")] == [True, True]


async def test_a_pause_that_is_resumed_twice_runs_once(tmp_path: Path) -> None:
    assert await peer_process.resume_twice(options(tmp_path, "interlock_gate", "twice")) == {
        "afterwards": 1,
        "at_once": 1,
    }


async def test_all_that_wait_are_listed(tmp_path: Path) -> None:
    figures = await peer_process.park_calls(options(tmp_path, "interlock_gate", "park", seconds=10.0))
    assert (figures["parked"], figures["listed"]) == (20, 25)


def test_a_peer_that_is_not_installed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "restate", None)
    monkeypatch.delitem(sys.modules, "benchmarks.peers.restate", raising=False)
    assert peer_process.measure(options(tmp_path, "restate", "cycles"))["error"].startswith("not installed")


def test_a_peer_that_dies_or_hangs_has_its_reason(tmp_path: Path) -> None:
    dying = [sys.executable, "-c", "import sys; sys.exit('no such thing')"]
    hanging = [sys.executable, "-c", "import signal; signal.pause()"]
    assert comparison.run_child(dying, 60, tmp_path / "errors") == {"error": "ended with 1: no such thing"}
    assert comparison.run_child(hanging, 0.1, tmp_path / "errors") == {"error": "took longer than 0 s"}


def test_a_peer_is_started_with_the_variables_that_it_needs(tmp_path: Path) -> None:
    printing = [sys.executable, "-c", "import json, os; print(json.dumps({'it': os.environ['IT'], **os.environ}))"]
    found = comparison.run_child(printing, 60, tmp_path / "errors", {"IT": "is set"})
    assert found["it"] == "is set"
    assert "PATH" in found


def test_the_end_of_a_run_names_every_peer_that_was_not_measured_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = example_figures()
    found["contest"][1]["twice"] = {"error": "took longer than 60 s"}
    found["unasked"]["Other"] = {"error": "ImportError: no RunState"}
    found["parked"].append({"title": "Other, SQLite", "error": "ended with 1: out of memory"})
    assert run_main(found, tmp_path, monkeypatch) == 0
    assert capsys.readouterr().err.splitlines() == [
        "",
        "Not measured:",
        "  Other, PostgreSQL, cycles: not installed",
        "  Other, SQLite, resumed twice: took longer than 60 s",
        "  Other, a call that needs no question: ImportError: no RunState",
        "  Other, SQLite, calls that wait: ended with 1: out of memory",
    ]


def test_a_strict_run_fails_if_a_peer_was_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_main(example_figures(), tmp_path, monkeypatch) == 0
    assert run_main(example_figures(), tmp_path, monkeypatch, "--strict") == 1


def test_a_strict_run_that_measured_all_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = example_figures()
    found["contest"] = [peer for peer in found["contest"] if not peer["error"]]
    assert run_main(found, tmp_path, monkeypatch, "--strict") == 0
    assert capsys.readouterr().err == ""


def run_main(found: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    """The program's exit code, for figures that were kept."""
    kept = folder / "figures.json"
    kept.write_text(json.dumps(found))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--show", str(kept), *more])
    return program.main()


def test_the_page_has_every_table_and_every_failure() -> None:
    text = docs_page.page_text(example_figures())
    assert [table.title for table in report.tables(example_figures()) if f"## {table.title}\n" not in text] == []
    assert "Other, PostgreSQL: not installed." in text
    assert "| langgraph | 1.0 |" in text


def test_an_aim_is_reached_or_not() -> None:
    found = {row[0]: row[3] for row in (aim.row() for aim in all_targets(example_figures()))}
    assert found["SQLite: share of the same statements, 1 at once"] == "yes"
    assert found["SQLite: times the best of the others, 32 at once"] == "no"


def test_costs_that_grow_with_the_size_have_a_slope_of_one() -> None:
    assert report.slope({"10": 1.0, "100": 10.0, "1000": 100.0}) == pytest.approx(1)
    assert report.slope({"10": 5.0, "100": 5.0, "1000": 5.0}) == pytest.approx(0)


def test_a_table_is_aligned() -> None:
    text = Table("T", ["what", "n"], [["a", "10,000"], ["long one", "1"]]).text()
    assert text.splitlines()[2:] == ["what           n", "a         10,000", "long one       1"]


def test_the_plot_has_a_row_for_everybody_and_no_text_over_another() -> None:
    drawn = ElementTree.fromstring(plot.draw(example_figures()))  # noqa: S314  it is our own
    texts = [(bounding_box(each), each.text) for each in drawn.iter(f"{SVG}text")]
    labels = {text for _, text in texts}
    assert {"Interlock, SQLite", "Other, SQLite", "Other, PostgreSQL", "not installed"} <= labels
    assert [text for (left, right, _), text in texts if left < 0 or right > plot.WIDTH] == []
    over = [(a, b) for n, (one, a) in enumerate(texts) for two, b in texts[n + 1 :] if overlap(one, two)]
    assert over == []


@pytest.mark.parametrize(("speed", "text"), [(2.35, "2.4"), (55.3, "55"), (2932.4, "2,932")])
def test_a_slow_peer_keeps_a_decimal_in_the_plot(speed: float, text: str) -> None:
    assert plot.round_speed(speed) == text


def bounding_box(text: ElementTree.Element) -> tuple[float, float, float]:
    """Left, right and base line, with a generous width for each character."""
    x, width = float(text.get("x", "0")), 7.0 * len(text.text or "")
    width *= 1.2 if text.get("class") == "title" else 0.9 if text.get("class") == "small" else 1.0
    shift = {"end": width, "middle": width / 2}.get(text.get("text-anchor", ""), 0.0)
    return x - shift, x - shift + width, float(text.get("y", "0"))


def overlap(one: tuple[float, float, float], two: tuple[float, float, float]) -> bool:
    return abs(one[2] - two[2]) < 11 and one[0] < two[1] and two[0] < one[1]


def example_figures() -> dict[str, Any]:
    """Of a run that never was."""
    rates = {"1": [100.0, 120.0], "32": [900.0, 1_000.0], "256": [2_000.0, 2_100.0]}
    speed = {at: {"cycles_per_second": each, "p50_ms": [1.0, 1.1], "p99_ms": [2.0, 2.2]} for at, each in rates.items()}
    known: dict[str, Any] = {"error": "", "twice": {"afterwards": 1, "at_once": 2}, "durable": "synchronous=FULL"}
    missing = {"name": "other", "title": "Other", "database": "postgresql", "error": "not installed", "twice": {}}
    growing = {size: {"one_us": 9.0, "many_us": 3.0, "decide_ms": 1.0, "page_ms": 0.4} for size in ("1000", "1000000")}
    rates_over_http = {"cycles": [2_100.0, 1_900.0], "whole": [1_500.0], "to_tool_ms": [4.0, 6.0]}
    served: dict[str, Any] = {**rates_over_http, "beside_streams": {"cycles_per_second": 0.9}}
    return {
        "machine": {"machine": "2 cores"},
        "rounds": 2,
        "seconds": 60.0,
        "limits": {"sqlite": rates, "postgresql": rates},
        "floors": {"sqlite": rates, "postgresql": rates},
        "contest": [
            {"name": "interlock_gate", "title": "Interlock", "database": "sqlite", "versions": {}, **known, **speed},
            {
                "name": "other",
                "title": "Other",
                "database": "sqlite",
                "versions": {"langgraph": "1.0"},
                **known,
                **speed,
            },
            missing,
        ],
        "http": {"sqlite": served, "postgresql": served, "stream": {"streams": 5_000, "kib_per_stream": 11.0}},
        "reads": {"sqlite": {"wall_us": 9.0, "cpu_us": 8.0}},
        "unasked": {
            "Other": {
                "bare_us": 200.0,
                "own_us": [100.0, 90.0, 120.0],
                "read_us": [30.0, 20.0, 40.0],
                "write_us": [900.0, 800.0, 950.0],
            }
        },
        "lookup": {"1000": {"plain_us": 1.0, "condition_us": 9.0, "load_s": 0.1}},
        "growth": {"sqlite": growing, "postgresql": growing},
        "parked": [{"title": "Interlock, SQLite", "parked": 10, "kib_each": 0.0, "listed": 10, "list_seconds": 0.1}],
        "neighbour": {"p50_ms": 1.0, "p99_ms": 2.0},
        "ledger": {"entries": 1_000, "append_us": 8.0, "seconds": {"one process": 2.0, "all processors": 1.0}},
    }
