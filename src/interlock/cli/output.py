"""Output of the commands: text, tables, JSON, times and errors. Colours only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from interlock.core.card import escape_invisible, head_and_tail
from interlock.core.errors import Error, InvalidRequest, Misconfigured

USAGE_ERRORS = (InvalidRequest, Misconfigured)
UNWRAPPED_WIDTH = 100_000  # columns without a terminal, so that lines are never wrapped
MAX_SENTENCE = 160
MIN_STRETCH = 24  # characters; a shorter sentence is useless
GAP = 2  # between columns
EXIT_INTERRUPTED = 130


def show(content: RenderableType, *, stderr: bool = False) -> None:
    """Print. Without a terminal nothing is wrapped or truncated, so that programs can read it line by line."""
    stream = sys.stderr if stderr else sys.stdout
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        console.print(content)
        return
    plain = Console(file=stream, highlight=False, markup=False, emoji=False, width=UNWRAPPED_WIDTH, color_system=None)
    with plain.capture() as captured:
        plain.print(content)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    stream.write("\n".join(lines) + "\n")
    stream.flush()


def say(line: str, style: str = "") -> None:
    """Print one line of text."""
    show(Text(line, style=style))


def print_json(value: object) -> None:
    """Print JSON as ASCII: exact for programs, and harmless on a terminal for all values."""
    typer.echo(json.dumps(value, indent=2))


def print_json_line(value: object) -> None:
    typer.echo(json.dumps(value))


def table(
    heads: Sequence[str], rows: Iterable[Sequence[Text | str]], stretch: str = "", spare: Sequence[str] = ()
) -> Table:
    """A table.

    On a narrow screen `spare` columns are dropped first, in this order; then only `stretch` is truncated.
    """
    cells = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    widths = {head: max([len(head), *(row[n].cell_len for row in cells)]) for n, head in enumerate(heads)}
    console = Console(file=sys.stdout)
    screen = console.width if console.is_terminal else UNWRAPPED_WIDTH
    left = _columns_that_fit(widths, stretch, spare, screen)
    room = screen - sum(widths[head] for head in left if head != stretch) - GAP * (len(left) - 1)
    made = Table(box=None, pad_edge=False, header_style="bold")
    for head in left:
        width = max(1, min(widths[head], room)) if head == stretch else widths[head]
        made.add_column(head, no_wrap=True, overflow="ellipsis", width=width)
    for row in cells:
        made.add_row(*(cell for head, cell in zip(heads, row, strict=True) if head in left))
    return made


def _columns_that_fit(widths: Mapping[str, int], stretch: str, spare: Sequence[str], screen: int) -> list[str]:
    left = list(widths)
    for head in spare:
        needed = sum(min(widths[h], MIN_STRETCH) if h == stretch else widths[h] for h in left) + GAP * (len(left) - 1)
        if needed <= screen:
            break
        left.remove(head)
    return left


def grid(rows: Iterable[tuple[str, Text]]) -> Table:
    """Labels and values; long texts wrap within their column."""
    made = Table.grid(padding=(0, 2))
    made.add_column(no_wrap=True)
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for label, text in rows:
        made.add_row("", label, text)
    return made


# Times


def local_time(moment: int) -> str:
    """The time in the local time zone."""
    return f"{datetime.fromtimestamp(moment // 1000, UTC).astimezone():%Y-%m-%d %H:%M:%S}"


# Text


def shorten(sentence: str, limit: int = MAX_SENTENCE) -> str:
    """The beginning and end of a visible text, for one row of a table."""
    head, tail = head_and_tail(sentence, limit)
    return f"{head} … {tail}" if tail else head


def short_id(approval_id: str) -> str:
    """The end of an id: ids begin with the time, so only their ends differ clearly."""
    return approval_id[-8:]


def printable(text: str) -> str:
    """Escape a message, which may hold untrusted names and pointers; line breaks stay."""
    return "\n".join(escape_invisible(line).replace("\\\\", "\\") for line in text.splitlines())


# Errors


def fail(error: BaseException, words: Sequence[str]) -> int:
    """Print the error as one line or one JSON document; returns the exit status."""
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    body, status = _error_body(error)
    if "--json" in words:
        print_json(body)
    elif body["message"]:  # empty if the help was printed
        sys.stderr.write(f"Error: {printable(str(body['message']))}\n")
    return status


def _error_body(error: BaseException) -> tuple[dict[str, object], int]:
    match error:
        case Error():
            return error.to_json(), 2 if isinstance(error, USAGE_ERRORS) else 1
        case typer.TyperException():
            return {"error": "invalid_request", "message": _usage_message(error)}, error.exit_code
        case typer.Abort():
            return {"error": "aborted", "message": "Nothing was decided."}, 1
        case OSError() if error.filename is not None:
            return {"error": "invalid_request", "message": f"{error.filename}: {error.strerror}."}, 2
        case _:
            return {"error": "error", "message": str(error) or type(error).__name__}, 1


def _usage_message(error: typer.TyperException) -> str:
    message = error.format_message().strip()
    if not message:
        return ""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "interlock"
    return f"{' '.join(message.split()).rstrip('.')}. See: {path} --help"


def did_you_mean(word: str, words: Iterable[str]) -> str:
    close = get_close_matches(word, words, 1)
    return f" Did you mean {close[0]}?" if close else ""
