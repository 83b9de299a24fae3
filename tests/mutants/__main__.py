"""Mutation tests: one mistake at a time in the rules and in the verifier; does a test notice?

python -m tests.mutants                          all of them
python -m tests.mutants --only core/ledger/invariants.py      those of one module
python -m tests.mutants --sample 150 --seed 7    some of them, always the same
python -m tests.mutants --broken asserts         against tests that assert nothing
python -m tests.mutants --area outside --sample 60    those of the code around core, against the tests of `make test`

With `--least 0.85` the exit status is 1 if a smaller share of them was killed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.mutants.mutations import Mutant, find_mutants
from tests.mutants.runner import Result, run_mutants

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "src" / "interlock"
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
TESTED_ELSEWHERE = ("conditions", "config", "json_schema", "policy_file", "templates")  # of modules outside core


@dataclass(frozen=True)
class Area:
    """Modules that are mutated, and what pytest is given to find their tests."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]

    def paths(self) -> list[Path]:
        return sorted(path for pattern in self.modules for path in PACKAGE.glob(pattern))

    def mutants(self) -> list[Mutant]:
        return [
            mutant
            for path in self.paths()
            for mutant in find_mutants(path.relative_to(PACKAGE).as_posix(), path.read_text())
        ]


AREAS = {
    "core": Area(
        ("core/**/*.py", "app/audit.py", "app/ledger_file.py"),
        ("tests/unit", *(f"--ignore=tests/unit/test_{name}.py" for name in TESTED_ELSEWHERE)),
    ),
    "outside": Area(
        (
            "app/gate.py", "app/inbox.py", "app/worker.py", "storage/**/*.py", "server/**/*.py", "notify/**/*.py",
            "integrations/mcp_gate/*.py",
        ),
        ("tests/contract", "tests/server", "tests/channels", "tests/frameworks", "-m", "not nightly"),
    ),
}  # fmt: skip


def main() -> None:
    options = _options()
    if options.broken and not sys.flags.optimize:
        os.execv(sys.executable, [sys.executable, "-O", "-m", "tests.mutants", *sys.argv[1:]])  # noqa: S606
    began = time.monotonic()
    area = AREAS[options.area]
    mutants = area.mutants()
    known, gone = equivalents(mutants)
    if gone and not options.sample:
        sys.exit("\n".join(["There are no such mutants; take them out of equivalent.txt:", *sorted(gone)]))
    chosen = [mutant for mutant in mutants if str(mutant) not in known and mutant.path.startswith(options.only)]
    if options.sample:
        chosen = sorted(Random(options.seed).sample(chosen, options.sample), key=chosen.index)
    results = run_mutants(chosen, PACKAGE, area.tests, options.workers)
    _print_results(results)
    found = Counter(results.values())
    tried = found["killed"] + found["survived"]
    score = round(found["killed"] / tried, 4) if tried else 0
    result = {"suite": "mutants", "score": score, **found, "equivalent": len(known)}
    print(json.dumps({**result, "seconds": round(time.monotonic() - began, 1)}))
    if score < options.least:
        sys.exit(f"Of the mutants {score:.1%} were killed; at least {options.least:.1%} have to be.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--area", choices=AREAS, default="core")
    parser.add_argument("--only", default="", help="a path below src/interlock, or how it begins")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--least", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--broken", choices=["asserts"])
    return parser.parse_args()


def equivalents(mutants: list[Mutant]) -> tuple[set[str], set[str]]:
    """Mutants that nobody could notice, and those that were listed as such and are not there any more."""
    lines = {line for line in EQUIVALENT.read_text().splitlines() if line and not line.startswith("#")}
    there = {str(mutant) for mutant in mutants}
    return lines & there, lines - there


def _print_results(results: dict[Mutant, Result]) -> None:
    by_module: dict[str, Counter[str]] = {mutant.path: Counter() for mutant in results}
    for mutant, result in results.items():
        by_module[mutant.path][result] += 1
        if result == "survived":
            print(f"survived: line {mutant.lines[-1]} of {mutant}", file=sys.stderr)
    for path, found in by_module.items():
        tried = found["killed"] + found["survived"]
        share = f"{found['killed'] / tried:.1%}" if tried else "-"
        print(f"{path:24}{found['killed']:5} of{tried:5}{share:>8}", file=sys.stderr)


if __name__ == "__main__":
    main()
