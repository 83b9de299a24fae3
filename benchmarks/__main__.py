"""`make bench`: Interlock, the databases and other frameworks in one run; tables and a plot.

python -m benchmarks [--quick] [--only PEER ...] [--json FILE] [--write] [--strict]
python -m benchmarks --show FILE [--write]        shows figures that an earlier run kept

The end of a run names every peer that could not be measured, and why.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import docs_page, peers, report
from benchmarks.measurements import FULL, QUICK, take_figures

DOCS = Path(__file__).resolve().parents[1] / "docs"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round; the figures are rough")
    parser.add_argument("--rounds", type=int, help="instead of five")
    parser.add_argument("--only", nargs="*", choices=peers.peer_names(), help="measure these, not all")
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    parser.add_argument("--show", type=Path, help="measure nothing; show what this file keeps")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md and docs/benchmarks.svg")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a peer could not be measured")
    options = parser.parse_args()
    figures = json.loads(options.show.read_text()) if options.show else measure_or_load(options)
    for name, value in report.version_table(figures).items():
        print(f"{name:<32}{value}")
    for table in report.tables(figures):
        print(f"\n{table.text()}", end="")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if options.write:
        docs_page.write_page(figures, DOCS)
    missing = report.unmeasured_table(figures)
    if missing:
        print("\nNot measured:", *missing, sep="\n  ", file=sys.stderr, flush=True)
    return 1 if missing and options.strict else 0


def measure_or_load(options: argparse.Namespace) -> dict[str, Any]:
    size = QUICK if options.quick else FULL
    return take_figures(replace(size, rounds=options.rounds or size.rounds), options.only, print_progress)


def print_progress(text: str) -> None:
    """Prints the progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
