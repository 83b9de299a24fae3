"""One line on standard error while a program waits at a terminal: which call, how to decide it, and the time left."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from shlex import quote

from interlock.app.bootstrap import approval_link, database_file, database_option, wall_clock
from interlock.core.call import DEFAULT_WORKSPACE, QUESTION_TOOL
from interlock.core.card import escape_invisible, head_and_tail
from interlock.core.errors import Error
from interlock.runtime.durations import duration_text
from interlock.runtime.running_server import running_server
from interlock.sdk.backend import ApprovalRecord, RecordBackend

MAX_LINES = 5  # for calls that wait at the same time; more of them share one line
MAX_REMEMBERED = 1_000  # approvals that had their line, so that a repeated wait does not print it again
MAX_SENTENCE = 160  # characters
SHORT_ID = 8  # characters: the end of an id, as the command line takes it


class WaitingLines:
    """The lines of one program; its calls may wait in several threads and event loops."""

    def __init__(self, url: str, workspace: str, *, quiet: bool) -> None:
        self._url = url
        self._workspace = workspace
        self._quiet = quiet
        self._lock = threading.Lock()
        self._shown: dict[str, None] = {}  # in order, the oldest first
        self._waiting: list[str] = []
        self._has_said_more = False

    @asynccontextmanager
    async def while_waiting(self, backend: RecordBackend, approval_id: str) -> AsyncIterator[None]:
        """Print the line beside the wait, which it neither delays nor fails."""
        if self._quiet or not _has_terminal():
            yield
            return
        with self._lock:
            self._waiting.append(approval_id)
        printing = asyncio.create_task(self._print(backend, approval_id))
        try:
            yield
        finally:
            printing.cancel()
            await asyncio.gather(printing, return_exceptions=True)
            with self._lock:
                self._waiting.remove(approval_id)
                self._has_said_more = self._has_said_more and bool(self._waiting)

    async def _print(self, backend: RecordBackend, approval_id: str) -> None:
        """Print the approval as people see it: its sentence has fingerprints in place of secrets."""
        if approval_id in self._shown:
            return
        with suppress(Error):
            record = await backend.show_approval(approval_id)
            if record.status == "pending":
                self._write(record)

    def _write(self, record: ApprovalRecord) -> None:
        """One write for each line, so that lines of several threads are not mixed."""
        with self._lock:
            if record.id in self._shown:
                return
            self._remember(record.id)
            if len(self._waiting) <= MAX_LINES:
                line = self.line(record, wall_clock())
            elif not self._has_said_more:
                self._has_said_more = True
                line = f"Interlock: more calls wait for a decision. To see them: {self._command('list')}"
            else:
                return
            with suppress(OSError, ValueError):  # the terminal is gone; the call waits on
                sys.stderr.write(_printable(line) + "\n")
                sys.stderr.flush()

    def _remember(self, approval_id: str) -> None:
        if len(self._shown) >= MAX_REMEMBERED:
            del self._shown[next(iter(self._shown))]
        self._shown[approval_id] = None

    def line(self, record: ApprovalRecord, now: int) -> str:
        left = duration_text(int(record.expires_at.timestamp() * 1000) - now)
        head, tail = head_and_tail(record.sentence, MAX_SENTENCE)
        sentence = f"{head} … {tail}" if tail else head
        verb, more = ("respond", " ANSWER") if record.tool == QUESTION_TOOL else ("approve", "")
        command = self._command(f"{verb} {quote(record.id[-SHORT_ID:])}{more}")
        page = self._page(record.id)
        where = f"{command}, or open {page}" if page else command
        return f"Interlock: {record.tool} waits for a decision ({left} left): {sentence}. To decide: {where}"

    def _command(self, words: str) -> str:
        if self._is_remote:
            return f"interlock approvals {words} --url {quote(self._url.rstrip('/'))}"
        more = "" if self._workspace == DEFAULT_WORKSPACE else f" --workspace {quote(self._workspace)}"
        return f"interlock approvals {words} {database_option(self._url)}{more}"

    def _page(self, approval_id: str) -> str:
        """The approval in the web app; empty if no server is known for this database."""
        file = database_file(self._url)
        server = self._url if self._is_remote else running_server(file) if file else ""
        return approval_link(server).replace("{id}", approval_id) if server else ""

    @property
    def _is_remote(self) -> bool:
        return self._url.partition("://")[0].lower() in ("http", "https")


def _printable(line: str) -> str:
    """Escape what would control the terminal; a sentence is escaped already, and stays as it is."""
    return escape_invisible(line).replace("\\\\", "\\")


def _has_terminal() -> bool:
    """Whether standard error is a terminal; a program may have closed it."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        return False
