"""Rules of the code that linters cannot check: sizes, purity of core, names, assertions."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "src" / "interlock"
CORE = PACKAGE / "core"
MODULES = sorted(PACKAGE.rglob("*.py"))
COMPONENTS = sorted((REPOSITORY / "ui" / "src").rglob("*.ts*"))
TEST_FILES = sorted((REPOSITORY / "tests").rglob("test_*.py"))
REQUIREMENTS = sorted((REPOSITORY / "requirements").glob("*.txt"))

NORMAL_MODULE_LINES, MAX_MODULE_LINES = 500, 900
LENGTH_REASON = "It is long because"  # how the docstring of a module past the first of these says why
MOST_FIELDS_BY_POSITION, MOST_ARGUMENTS, MOST_METHODS = 5, 6, 10
STATEMENTS = {"fetch", "write"}  # of the database: a name, then its values
MAX_COMPONENT_LINES = 300  # the aim is 120
MAX_FUNCTION_LINES = 60  # the aim is 20
NOT_IN_CORE = {"asyncio", "os", "random", "secrets", "socket", "sqlite3", "subprocess", "threading", "time"}
ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.getenvb"}
WALL_CLOCK = {
    "time.time",
    "time.time_ns",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
}
FAULT_INJECTION = re.compile(r"INTERLOCK_FAULT|fault_?(?:plan|point)|inject_?(?:ed_?)?fault", re.IGNORECASE)
FOLDERS_OF_ONE_MACHINE = re.compile(r"(?<![\w.~-])/(?:home|Users|root|work|workspace)/\w")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_a_long_module_says_why_and_none_is_longer_than_900_lines() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in MODULES}
    assert lengths, "there are no modules to look at"
    assert [relative_path(path) for path, lines in lengths.items() if lines > MAX_MODULE_LINES] == []
    long = [path for path, lines in lengths.items() if lines > NORMAL_MODULE_LINES]
    assert [relative_path(path) for path in long if LENGTH_REASON not in (ast.get_docstring(parse(path)) or "")] == []


def test_no_file_of_the_page_is_longer_than_300_lines() -> None:
    assert COMPONENTS, "there are no components to look at"
    lengths = {
        relative_path(path): len(path.read_text().splitlines()) for path in COMPONENTS if path.name != "schema.d.ts"
    }
    assert {name: n for name, n in lengths.items() if n > MAX_COMPONENT_LINES} == {}


def test_no_function_is_longer_than_60_lines() -> None:
    too_long = [
        f"{relative_path(path)}:{function.lineno} {function.name}"
        for path in MODULES
        for function in functions(path)
        if (function.end_lineno or function.lineno) - function.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert too_long == []


def test_no_class_name_is_used_twice() -> None:
    """One thing per word. Each framework's gate is `Gate`, since people import it from the framework's module."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name.lstrip("_"), []).append(relative_path(path))
    assert places, "there are no classes to look at"
    gates = [path for path in places.pop("Gate") if "integrations/" not in path]
    assert gates == ["src/interlock/app/gate.py"]
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_dataclass_with_many_fields_takes_them_by_keyword() -> None:
    wide = [
        (relative_path(path), node.name, node)
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and len(dataclass_fields(node)) > MOST_FIELDS_BY_POSITION
    ]
    assert wide, "there are no dataclasses to look at"
    assert [f"{path} {name}" for path, name, node in wide if not keyword_only(node)] == []


def test_no_constructor_or_method_is_given_more_than_six_arguments_by_position() -> None:
    """Statements aside, whose values stand in the order of their question marks."""
    long = [
        f"{relative_path(path)}:{node.lineno} {ast.unparse(node.func)}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call) and len(node.args) > MOST_ARGUMENTS
        if getattr(node.func, "id", "A")[:1].isupper()  # constructors and methods
        if not (isinstance(node.func, ast.Attribute) and node.func.attr in STATEMENTS)
        if not any(isinstance(argument, ast.Starred) for argument in node.args)
    ]
    assert long == []


def test_no_port_has_more_than_ten_methods() -> None:
    ports = {
        node.name: sum(isinstance(each, Function) for each in node.body)
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Protocol" for base in node.bases)
    }
    assert ports, "there are no ports to look at"
    assert {name: methods for name, methods in ports.items() if methods > MOST_METHODS} == {}


def dataclass_fields(node: ast.ClassDef) -> list[str]:
    if not any("dataclass" in ast.unparse(each) for each in node.decorator_list):
        return []
    found = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    return [ast.unparse(each.target) for each in found if not ast.unparse(each.annotation).startswith("ClassVar")]


def keyword_only(node: ast.ClassDef) -> bool:
    """All fields, or those after the first ones."""
    decorated = any("kw_only=True" in ast.unparse(each) for each in node.decorator_list)
    return decorated or any(
        isinstance(each, ast.AnnAssign) and ast.unparse(each.annotation) == "KW_ONLY" for each in node.body
    )


def test_core_imports_nothing_but_the_standard_library_and_itself() -> None:
    foreign = [
        f"{relative_path(path)} imports {name}"
        for path in CORE.rglob("*.py")
        for name in imports(path)
        if not is_within(name, "interlock.core") and name.split(".")[0] not in sys.stdlib_module_names
    ]
    assert foreign == []


def test_core_has_no_io_no_clock_no_chance_and_no_async() -> None:
    impure = [
        f"{relative_path(path)} uses {name}"
        for path in CORE.rglob("*.py")
        for name in sorted(imports(path) | names_used(path))
        if name.split(".")[0] in NOT_IN_CORE or name in WALL_CLOCK
    ]
    async_functions = [
        f"{relative_path(path)}:{function.lineno} {function.name}"
        for path in CORE.rglob("*.py")
        if path.name != "ports.py"  # ports describe what others do, and others are async
        for function in functions(path)
        if isinstance(function, ast.AsyncFunctionDef)
    ]
    assert impure + async_functions == []


def test_only_the_settings_read_the_environment() -> None:
    assert files_that_use(ENVIRONMENT) <= {"src/interlock/config/load.py"}


def test_only_bootstrap_reads_the_wall_clock() -> None:
    """All others, the command line too, are given a clock."""
    assert files_that_use(WALL_CLOCK) <= {"src/interlock/app/bootstrap.py"}


def test_one_place_puts_a_policy_in_force() -> None:
    """So that the gate and the inbox never judge by different policies."""
    assert places_that_assign("policy") == set()  # it is read from the epoch
    home = "src/interlock/app/policy_in_force.py"
    copies = {"src/interlock/app/gate.py __init__", "src/interlock/app/gate.py _copy"}  # the epoch that they began in
    assert places_that_assign("epoch") == {f"{home} __init__", f"{home} set_policy", *copies}
    assert files_that_use({"interlock.app.policy_in_force.PolicyInForce"}) <= {
        "src/interlock/app/bootstrap.py",  # makes one for each gate and its inbox
        "src/interlock/app/gate.py",
        "src/interlock/app/inbox.py",
    }


def places_that_assign(attribute: str) -> set[str]:
    assigned = re.compile(rf"\.{attribute}\b|setattr|delattr")  # most modules need not be parsed for it
    return {
        f"{relative_path(path)} {name}"
        for path in MODULES
        if assigned.search(path.read_text())
        for name in functions_that_assign(attribute, path)
    }


def functions_that_assign(attribute: str, path: Path) -> Iterator[str]:
    """The functions that set this attribute of an object, by a statement or by name."""
    for function in functions(path):
        for node in ast.walk(function):
            match node:
                case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()) if name == attribute:
                    yield function.name
                case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=name), *_]) if name == attribute:
                    yield function.name


def test_no_module_of_the_package_knows_of_fault_injection() -> None:
    """Tests wrap it from outside: `tests/faults/points.py`."""
    assert [relative_path(path) for path in MODULES if FAULT_INJECTION.search(path.read_text())] == []


def test_requirement_files_hold_hashes_and_no_address() -> None:
    assert REQUIREMENTS, "there are no requirement files"
    for path in REQUIREMENTS:
        text = path.read_text()
        assert re.findall(r"\w+://\S+|--(?:extra-)?index-url.*|--find-links.*|@ file.*", text) == [], relative_path(
            path
        )
        pins = re.split(r"^(?=[a-zA-Z])", text, flags=re.MULTILINE)
        assert [pin for pin in pins if "==" in pin and "--hash=sha256:" not in pin] == [], relative_path(path)


def test_no_file_names_a_folder_of_one_machine() -> None:
    named = [
        f"{relative_path(path)}: {found.group()}"
        for path, text in readable_files()
        for found in FOLDERS_OF_ONE_MACHINE.finditer(text)
    ]
    assert named == []


def test_every_test_asserts_something() -> None:
    silent = [
        f"{relative_path(path)}:{function.lineno} {function.name}"
        for path in TEST_FILES
        for function in functions(path)
        if function.name.startswith("test_") and not has_assertion(function)
    ]
    assert silent == []


@pytest.mark.parametrize(
    "name",
    [
        ".ci/run",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "SECURITY.md",
        "docs",
        "src/interlock/py.typed",
    ],
)
def test_standard_files_exist(name: str) -> None:
    assert (REPOSITORY / name).exists()


def relative_path(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(parse(path)))


def functions(path: Path) -> Iterator[Function]:
    return (node for node in nodes(path) if isinstance(node, Function))


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@cache
def imports(path: Path) -> set[str]:
    """The full name of all that a file imports, however it is imported and wherever in the file."""
    found: set[str] = set()
    for node in nodes(path):
        match node:
            case ast.Import():
                found |= {alias.name for alias in node.names}
            case ast.ImportFrom():
                found |= {f"{source_module(node, path)}.{alias.name}" for alias in node.names}
    return found


def source_module(node: ast.ImportFrom, path: Path) -> str:
    """The module that `from … import` names, with leading dots resolved."""
    if not node.level:
        return node.module or ""
    package = path.relative_to(PACKAGE.parent).parent.parts
    start = package[: len(package) - node.level + 1]
    return ".".join((*start, *filter(None, [node.module])))


@cache
def names_used(path: Path) -> set[str]:
    """Every dotted name in a file, spelled from the module that it was imported from."""
    meaning = {alias.asname or alias.name.split(".")[0]: alias for alias in plain_imports(path)}
    spelled = {local: alias.name if alias.asname else local for local, alias in meaning.items()}
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            spelled |= {alias.asname or alias.name: f"{source_module(node, path)}.{alias.name}" for alias in node.names}
    return {
        name
        for node in nodes(path)
        if isinstance(node, ast.Name | ast.Attribute) and (name := dotted_name(node, spelled))
    }


def plain_imports(path: Path) -> Iterator[ast.alias]:
    return (alias for node in nodes(path) if isinstance(node, ast.Import) for alias in node.names)


def dotted_name(node: ast.expr, spelled: dict[str, str]) -> str:
    """`dt.now` as `datetime.datetime.now` if `dt` was imported so; empty for names that were not imported."""
    match node:
        case ast.Name():
            return spelled.get(node.id, "")
        case ast.Attribute():
            owner = dotted_name(node.value, spelled)
            return owner and f"{owner}.{node.attr}"
    return ""


def files_that_use(names: set[str]) -> set[str]:
    return {relative_path(path) for path in MODULES if names & (names_used(path) | imports(path))}


def has_assertion(function: Function) -> bool:
    """True if the function asserts, expects an error or a sight, or calls a helper that is named for asserting."""
    called = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    words = [func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in called]
    return any(isinstance(node, ast.Assert) for node in ast.walk(function)) or any(
        word in {"expect", "fail", "raises", "warns"} or word.startswith("assert_") for word in words
    )


def readable_files() -> Iterator[tuple[Path, str]]:
    for path in project_files():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or the like


def project_files() -> list[Path]:
    """What git tracks or would track; without git (an unpacked archive), what the archive carries."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        folders = [REPOSITORY / name for name in ("src", "tests", "docs", "requirements", "benchmarks", "examples")]
        return [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path for name in listed if name and (path := REPOSITORY / name).is_file()]
