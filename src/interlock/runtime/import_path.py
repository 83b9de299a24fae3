"""Import of code that people bring, such as their own tools and channels.

They name it by its import path, `package.module:attribute`, or an installed package does by an entry point.
"""

from __future__ import annotations

import re
import sys
import traceback
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from interlock.core.errors import Error, Misconfigured, did_you_mean

_IMPORT_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*(\.[^\W\d]\w*)*)?")


@dataclass(frozen=True, slots=True)
class CodeSource:
    """Where such code is found: among the installed packages, and in `folder`, that of the configuration file.

    Without `is_trusted` nothing is imported: a command that is run in a folder must not run code of that folder,
    unless it is told to.
    """

    folder: Path | None = None
    is_trusted: bool = True


INSTALLED_CODE = CodeSource()
TOOL_ENTRY_POINTS, CHANNEL_ENTRY_POINTS = "interlock.tools", "interlock.channels"  # groups of entry points


def find_entry_point(group: str, name: str) -> str:
    """Return the import path that an installed package gives the name; empty if none does.

    Raises Misconfigured if several do: which of them was meant must not depend on the order of the packages.
    """
    points = entry_points(group=group, name=name)
    paths = sorted({":".join(filter(None, (each.module, each.attr))) for each in points})
    if len(paths) > 1:
        raise Misconfigured(f'several installed packages have "{name}" in {group}: {", ".join(paths)}')
    return paths[0] if paths else ""


def entry_point_names(group: str) -> set[str]:
    return entry_points(group=group).names


def check_import_path(path: str) -> None:
    if not is_import_path(path):
        raise Misconfigured(f'"{path}" is not an import path; write module:attribute, such as mycompany.shop:tools')


def is_import_path(path: str) -> bool:
    return _IMPORT_PATH.fullmatch(path) is not None


def import_object(path: str, source: CodeSource) -> object:
    """Import a module, or what its attribute names. Raises Misconfigured, whatever is wrong with it."""
    check_import_path(path)
    if not source.is_trusted:
        raise Misconfigured(
            f"{path} is not imported, because the configuration file was only found in the working folder. "
            "Name it: --config FILE"
        )
    name, _, attribute = path.partition(":")
    value: object = _import_module(name, source.folder)
    for part in filter(None, attribute.split(".")):
        if not hasattr(value, part):
            names = [each for each in dir(value) if not each.startswith("_")]
            raise Misconfigured(f"{name} has no {attribute}{did_you_mean(part, names)}")
        value = getattr(value, part)
    return value


def describe_code_error(error: BaseException) -> str:
    """An error of someone's module with its last place, for people who change that module."""
    kind = type(error).__name__
    match error:
        case SyntaxError(msg=said, filename=str(file), lineno=line) if not file.startswith("<"):
            return f"{kind}: {said} ({file}, line {line})"  # no traceback leads there: the module has not run
        case Error():
            said = error.message
        case _:
            said = str(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_importer(frame.filename)]
    return f"{kind}: {said} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else f"{kind}: {said}"


def _is_importer(file: str) -> bool:
    return file == __file__ or "importlib" in file


def _import_module(name: str, folder: Path | None) -> ModuleType:
    top = name.partition(".")[0]
    beside = None if folder is None or str(folder) in sys.path else str(folder)
    if beside and top not in sys.modules and find_spec(top) is None:
        sys.path.append(beside)  # last, so that no file in it takes the place of an installed module
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise Misconfigured(f"{name} cannot be imported: {describe_code_error(error)}") from error
        where = f"in {folder} or among the installed packages" if folder else "among the installed packages"
        raise Misconfigured(f"there is no module {error.name} {where}.") from None
    except (Exception, SystemExit) as error:
        raise Misconfigured(f"{name} cannot be imported: {describe_code_error(error)}") from error
