"""The mutation runner: runs tests against each mutant in a process forked after collection.

A mistake inside of a function is put into the function as it was loaded, and the tests that pass through its line are
run. Any other needs the package to be loaded again; then those are run that pass through its module.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import resource
import sys
import tempfile
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Literal

import coverage
import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook
from hypothesis import Phase, is_hypothesis_test, settings

from tests.mutants.mutations import Mutant

Result = Literal["killed", "survived", "discarded"]
PLAIN_ASSERTS = (
    ("--assert=plain",) if sys.flags.optimize else ()
)  # the interpreter leaves assertions out, pytest would not
NO_OUTPUT = ("-qq", "--no-header", "--no-summary", "-s", "-p", "no:cacheprovider", *PLAIN_ASSERTS)
EXPECTED = ("PytestAssertRewriteWarning", "PytestConfigWarning")  # some is loaded already; asserts can be left out
SLOW = "random_lives or long_names_over_many or linear_time"  # seconds each, and a thousand mutants pass through them
OPTIONS = (*NO_OUTPUT, f"-knot ({SLOW})", *(f"-Wignore::pytest.{name}" for name in EXPECTED))
MEMORY = 4 << 30
FEW = 0.01  # of the tests may fail without a mutant: with threads, Python 3.11's tracing fails now and then
CHECKED = 200  # tests that have to pass as they are in such a process: else all mutants would seem to be killed
FEW_TESTS = {"max_examples": 25, "derandomize": True, "database": None, "phases": (Phase.explicit, Phase.generate)}
SURVIVED, KILLED, INTERRUPTED, DISCARDED, BROKEN = 0, 1, 2, 98, 99
EXITS: dict[int, Result] = {SURVIVED: "survived", KILLED: "killed", INTERRUPTED: "killed", DISCARDED: "discarded"}


def run_mutants(mutants: Sequence[Mutant], package: Path, tests: Sequence[str], workers: int) -> dict[Mutant, Result]:
    trials = MutationRunner(mutants, package, workers)
    code = pytest.main([*tests, *OPTIONS], plugins=[trials])
    if len(trials.results) != len(mutants):
        sys.exit(f"The tests could not be run: {code!r}")
    return {mutant: trials.results[mutant] for mutant in mutants}


@dataclass
class TestPaths:
    """Which tests pass where, by file and line, and how long each takes; some try many examples, some fail anyway."""

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]
    properties: set[str]
    failed: set[str]

    def through_lines(self, file: str, lines: range) -> list[str]:
        there = self.lines.get(file, {})
        return self._quickest_first(test for line in lines for test in there.get(line, ()))

    def through_module(self, file: str) -> list[str]:
        """Its own tests first, then the files of which a test passes; a test of a table passes through no line."""
        passed = {_test_file(test) for tests in self.lines.get(file, {}).values() for test in tests}
        tests = {test for test in self.seconds if not passed or _test_file(test) in passed}
        own = {test for test in self.seconds if _test_file(test).endswith(f"/test_{Path(file).stem}.py")}
        return [*self._quickest_first(own), *self._quickest_first(tests - own - self.properties)]

    def _quickest_first(self, tests: Iterable[str]) -> list[str]:
        return sorted(set(tests) - self.failed, key=lambda test: (self.seconds[test], test))


class MutationRunner:
    """A pytest plugin that runs the tests in its own way."""

    def __init__(self, mutants: Sequence[Mutant], package: Path, workers: int) -> None:
        self.results: dict[Mutant, Result] = {}
        self._mutants = mutants
        self._package = package
        self._workers = workers
        self._loading = self._coverage()
        self._failed: set[str] = set()
        self._seconds: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        _reduce_examples(items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= {report.nodeid} if report.failed else set()
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0) + report.duration

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._loading.stop()
        paths = self._measure(session.items)
        items = {item.nodeid: item for item in session.items}
        waiting = deque((mutant, mutant.place.function > 0) for mutant in self._mutants)
        running: dict[int, tuple[Mutant, bool]] = {}
        while waiting or running:
            while waiting and len(running) < self._workers:
                mutant, in_place = waiting.popleft()
                running[self._try(mutant, in_place, paths, items)] = mutant, in_place
            process, status = os.wait()
            mutant, in_place = running.pop(process)
            result = _result(mutant, os.waitstatus_to_exitcode(status))
            if result == "survived" and in_place and self._ran_early(mutant):
                waiting.append((mutant, False))
            else:
                self.results[mutant] = result
        return True

    def _ran_early(self, mutant: Mutant) -> bool:
        """Whether its lines were passed while the tests were loaded: then it came too late to change that."""
        return not set(mutant.lines).isdisjoint(self._loading.get_data().lines(self._file(mutant)) or ())

    def _measure(self, items: list[pytest.Item]) -> TestPaths:
        """In a process of its own, so that this one remembers nothing of what functions gave."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "paths"
            measuring = _fork(lambda: self._write_paths(items, file))
            unchanged = _fork(lambda: self._run(items[:CHECKED]))
            ends = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in (measuring, unchanged)]
            if ends != [SURVIVED, SURVIVED] and not sys.flags.optimize:  # without assertions some must fail
                sys.exit("The tests fail without any mutant.")
            paths: TestPaths = pickle.loads(file.read_bytes())  # noqa: S301  written above
            return paths

    def _write_paths(self, items: list[pytest.Item], file: Path) -> int:
        file.write_bytes(pickle.dumps(self._paths(items)))
        for test in sorted(self._failed):
            print(f"fails without any mutant, so it does not count: {test}", file=sys.stderr)
        return KILLED if len(self._failed) > FEW * len(items) else SURVIVED

    def _paths(self, items: list[pytest.Item]) -> TestPaths:
        measured = self._coverage()
        for item, after in _pairs(items):
            measured.switch_context(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        measured.stop()
        data = measured.get_data()
        lines = {
            file: {line: list(filter(None, tests)) for line, tests in data.contexts_by_lineno(file).items()}
            for file in data.measured_files()
        }
        properties = {item.nodeid for item in items if is_hypothesis_test(getattr(item, "obj", None))}
        return TestPaths(lines, self._seconds, properties, self._failed)

    def _try(self, mutant: Mutant, in_place: bool, paths: TestPaths, items: dict[str, pytest.Item]) -> int:
        file = self._file(mutant)

        def attempt() -> int:
            try:
                code = compile(mutant.apply(), file, "exec", dont_inherit=True)
            except SyntaxError:  # a case that leaves nothing for those behind it
                return DISCARDED
            if in_place and _install(mutant, code):
                tests = paths.through_lines(file, mutant.lines)
                _limit(tests, paths)
                return self._run([items[test] for test in tests])
            tests = paths.through_module(file)
            _limit(tests, paths)
            return _run_in_new_process(mutant, code, tests, paths)

        return _fork(attempt)

    def _run(self, items: list[pytest.Item]) -> int:
        for item, after in _pairs(items):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self._failed:
                return KILLED
        return SURVIVED

    def _file(self, mutant: Mutant) -> str:
        return str(self._package / mutant.path)

    def _coverage(self) -> coverage.Coverage:
        begun = coverage.Coverage(data_file=None, config_file=False, include=[f"{self._package}/*"])
        begun.start()
        return begun


def _result(mutant: Mutant, code: int) -> Result:
    if code >= 0 and code not in EXITS:
        sys.exit(f"The trial of a mutant went wrong, with {code}: {mutant}")
    return EXITS.get(code, "killed")  # by a signal: it took too long, or too much


def _fork(act: Callable[[], int]) -> int:
    """The process that does it, and ends with what it gives."""
    process = os.fork()
    if not process:
        code = BROKEN
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = act()
        except BaseException:  # noqa: BLE001  nothing may pass into the copy of the caller
            traceback.print_exc()
        finally:
            os._exit(code)
    return process


def _limit(tests: list[str], paths: TestPaths) -> None:
    seconds = 5 + int(4 * sum(paths.seconds[test] for test in tests))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _install(mutant: Mutant, module: CodeType) -> bool:
    """Whether the function that was loaded could be given the code."""
    code = next(each for each in _functions_in(module) if each.co_firstlineno == mutant.place.function)
    found: Any = sys.modules[_name(mutant)]
    for part in code.co_qualname.split("."):
        found = vars(found)[part]
    for inner in ("fget", "func", "__func__", "__wrapped__"):
        found = getattr(found, inner, None) or found
    if not isinstance(found, FunctionType) or _shape(found.__code__) != _shape(code):
        return False
    found.__code__ = code
    return True


def _shape(code: CodeType) -> tuple[int, int]:
    return code.co_firstlineno, len(code.co_freevars)


def _functions_in(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            is_function = inner.co_flags & inspect.CO_OPTIMIZED  # and not the body of a class
            yield from [inner] if is_function else _functions_in(inner)


def _run_in_new_process(mutant: Mutant, code: CodeType, tests: list[str], paths: TestPaths) -> int:
    for name in [name for name in sys.modules if name.split(".")[0] in ("interlock", "tests", "conftest")]:
        del sys.modules[name]
    try:
        _load(_name(mutant), code)
    except Exception:  # noqa: BLE001  any error here means that no test would run
        return DISCARDED
    files = list(dict.fromkeys(map(_test_file, tests)))
    for some in filter(None, (files[:1], files[1:])):  # most are noticed by the first; loading all takes its time
        ended = pytest.main([*some, *OPTIONS, "-x"], plugins=[SelectedTests(tests, paths)])
        if ended == pytest.ExitCode.USAGE_ERROR:  # what the tests share could not be loaded: noticed
            return KILLED
        if ended not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return int(ended)
    return SURVIVED


def _load(module: str, code: CodeType) -> None:
    """Import a module with this code, and the rest of the package as it is."""
    # pytest would load the package with a loader of its own, because the package is also a plugin of pytest.
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, AssertionRewritingHook)]
    as_written = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, name: str) -> CodeType | None:
        return code if name == module else as_written(self, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    importlib.import_module(module)
    if not isinstance(sys.modules[module].__loader__, SourceFileLoader):
        raise KeyboardInterrupt(f"{module} was loaded as it is written.")  # not an error of the mutant


class SelectedTests:
    """A pytest plugin that leaves out other tests, and brings these into their order."""

    def __init__(self, tests: list[str], paths: TestPaths) -> None:
        self._order = {test: number for number, test in enumerate(tests)}
        self._known = paths.seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        kept = [item for item in items if item.nodeid in self._order or item.nodeid not in self._known]
        items[:] = sorted(kept, key=lambda item: self._order.get(item.nodeid, -1))
        _reduce_examples(items)


def _reduce_examples(items: list[pytest.Item]) -> None:
    """The same few examples of each property every time; how a failure is put best does not matter."""
    for test in {getattr(item, "obj", None) for item in items}:
        if is_hypothesis_test(test):
            test._hypothesis_internal_use_settings = settings(test._hypothesis_internal_use_settings, **FEW_TESTS)


def _test_file(test: str) -> str:
    return test.partition("::")[0]


def _name(mutant: Mutant) -> str:
    return "interlock." + mutant.path.removesuffix(".py").replace("/", ".")


def _pairs(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=False)
