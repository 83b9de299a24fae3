"""`interlock backup`: a copy of the database while everything runs, and the ledger heads to keep with it."""

from __future__ import annotations

import asyncio
import json
import shlex
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

import typer
from rich.console import Console
from rich.progress import Progress

from interlock.app.bootstrap import database_file, make_database, missing_database_file
from interlock.cli.context import CommandOptions
from interlock.cli.output import print_json, say
from interlock.core.card import escape_invisible
from interlock.core.errors import InvalidRequest, Misconfigured
from interlock.storage.sqlite.database import BackupFile, make_backup

SECRETS = frozenset({"password", "sslpassword"})


async def backup(options: CommandOptions, target: Path) -> None:
    """Back up the database. It is not opened as a store: a backup before an upgrade must not migrate it first."""
    url = options.settings().storage.url
    source = database_file(url)
    if source is None:
        make_database(url)  # raises for an invalid address
        raise InvalidRequest(_pg_dump_hint(url, target))
    if missing_database_file(url) is not None:
        raise Misconfigured(f"There is no database at {source}. Give the right one with --database.")
    made = await _copy_database(options, source, target)
    if options.json:
        heads = [head.to_json() for head in made.heads]
        print_json({"file": str(made.path), "bytes": made.size, "heads": heads})
        return
    say(f"{escape_invisible(str(made.path))}: {made.size:,} bytes, checked.")
    if made.heads:
        say("Store its heads elsewhere, each in a file; after a restore: interlock audit verify --head FILE")
    for head in made.heads:
        typer.echo(json.dumps(head.to_json()))  # never wrapped, so that the line can be stored as it is


async def _copy_database(options: CommandOptions, source: Path, target: Path) -> BackupFile:
    stopped = threading.Event()
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=options.json or not console.is_terminal) as progress:
        task = progress.add_task("Copying", total=None)

        def told(done: int, pages: int) -> None:
            if stopped.is_set():
                raise InterruptedError("The copy was interrupted.")
            progress.update(task, completed=done, total=pages)

        try:
            return await asyncio.to_thread(make_backup, source, target, told)
        except asyncio.CancelledError:
            stopped.set()
            raise


def _pg_dump_hint(url: str, target: Path) -> str:
    command = ["pg_dump", "--format=custom", f"--file={target}", f"--dbname={_without_password(url)}"]
    return (
        "PostgreSQL has its own backup program; nothing was copied. Run:\n"
        f"  {shlex.join(command)}\n"
        "It prompts for the password, or uses PGPASSWORD or ~/.pgpass. Then store the head: interlock audit head"
    )


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    user, _, place = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    kept = [pair for pair in parts.query.split("&") if unquote(pair.partition("=")[0]) not in SECRETS]
    query = f"?{'&'.join(kept)}" if parts.query else ""
    return f"{parts.scheme}://{f'{name}@' if name else ''}{place}{parts.path}{query}"
