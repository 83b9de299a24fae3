"""`interlock runs`: paused runs of frameworks: list them, and run the process that resumes them."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from interlock.app.bootstrap import mask_password, missing_database_file
from interlock.cli.context import CommandContext, CommandOptions, command, open_database, without_database
from interlock.cli.output import local_time, print_json, say, shorten, show, table
from interlock.config.load import agent_key
from interlock.core.card import escape_invisible
from interlock.core.errors import Misconfigured
from interlock.core.run import Pause
from interlock.runtime.durations import duration_text, rfc3339
from interlock.runtime.import_path import CodeSource, import_object, is_import_path
from interlock.sdk.interlock import Interlock
from interlock.server.lifecycle import on_signal
from interlock.storage.tables.pauses import PauseScope

app = typer.Typer()

RUN_ID = "interlock-resume"  # of this process, which makes no calls itself
ResumeFunction = Callable[[Pause], Awaitable[object]]


class ResumeOptions(NamedTuple):
    agent: str
    url: str
    key: str
    at_once: int


@command(app, open_database, "list")
async def list_runs(
    context: CommandContext,
    agent: Annotated[str, typer.Option(metavar="NAME", help="Only runs of this agent.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of rows.")] = 100,
) -> None:
    """List paused runs with the number of approvals each waits for, longest-paused first."""
    page = await context.services.store.pauses.list_paused(PauseScope(context.workspace, agent), limit=limit)
    if context.json:
        following = None if page.next is None else f"{page.next[0]}.{page.next[1]}"
        print_json({"items": [_pause_json(pause) for pause in page.items], "next": following})
    elif page.items:
        heads = ("RUN", "AGENT", "WAITS FOR", "SINCE", "AGE", "TRIES")
        show(table(heads, [_row(pause, context.now()) for pause in page.items], "RUN", spare=("AGE", "TRIES")))
        if page.next is not None:
            say("More results: --limit 1000")
    else:
        say(f"No runs{f' of {escape_invisible(agent)}' if agent else ''} are paused.")


@command(app, without_database)
async def resume(
    options: CommandOptions,
    function: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", show_default=False, help="Function called with each Pause.")
    ],
    agent: Annotated[str, typer.Option(metavar="NAME", show_default=False, help="Agent whose runs to resume.")],
    url: Annotated[str, typer.Option(metavar="URL", help="Use this server instead of a database.")] = "",
    key: Annotated[
        str, typer.Option(metavar="KEY", show_default="INTERLOCK_KEY", help="API key of an agent on that server.")
    ] = "",
    at_once: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of concurrent runs.")] = 10,
) -> None:
    """Resume paused runs, each as soon as people have decided, until interrupted; a second signal ends it at once."""
    resume_options = ResumeOptions(agent, url, key, at_once)
    body = _load_function(function)
    lock, where = await asyncio.to_thread(_open_interlock, options, resume_options)
    stop = asyncio.Event()

    async def went_on(pause: Pause) -> None:
        await body(pause)
        say(f"Resumed {escape_invisible(pause.run_id)}.")

    try:
        with on_signal(stop.set):
            agent = escape_invisible(resume_options.agent)
            say(f"Resuming runs of {agent} on {where} with {escape_invisible(function)}.")
            await lock.agent().resume_all(went_on, stop, resume_options.at_once)
    finally:
        await asyncio.to_thread(lock.close)


def _open_interlock(options: CommandOptions, resume_options: ResumeOptions) -> tuple[Interlock, str]:
    """Open Interlock with a fixed run id, so that it does not acquire a run of the agent."""
    if resume_options.url:
        lock = Interlock(
            resume_options.url, agent=resume_options.agent, run_id=RUN_ID, key=resume_options.key or agent_key() or None
        )
        where = mask_password(resume_options.url)
    else:
        url = options.settings().storage.url
        if (gone := missing_database_file(url)) is not None:
            raise Misconfigured(f"There is no database at {gone}. Give the right one with --database.")
        lock = Interlock(url, agent=resume_options.agent, run_id=RUN_ID, workspace=options.workspace)
        where = mask_password(url)
    lock.open()
    return lock, where


def _load_function(function: str) -> ResumeFunction:
    """Import the function from the working folder, as a program started here would: its modules come first."""
    shown = escape_invisible(function)
    if ":" not in function or not is_import_path(function):
        raise Misconfigured(f"{shown!r} is not a function name. Give MODULE:FUNCTION, such as app.agent:resume.")
    folder = Path.cwd()
    sys.path.insert(0, str(folder))
    try:
        found: Any = import_object(function, CodeSource(folder))
    except Misconfigured as error:
        raise Misconfigured(f"{shown}: {escape_invisible(error.message)}") from error
    if not callable(found):
        raise Misconfigured(f"{shown} is not a function.")
    if not _takes_one_argument(found):
        raise Misconfigured(f"{shown} must take one argument, the Pause of the run: def resume(pause).")
    return found if inspect.iscoroutinefunction(found) else _in_thread(found)


def _takes_one_argument(function: Callable[..., object]) -> bool:
    """Whether it can be called with a Pause; true of a function in C that does not tell."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return True
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def _in_thread(function: Callable[[Pause], object]) -> ResumeFunction:
    """Run a synchronous function in a separate thread."""

    async def run(pause: Pause) -> object:
        result = await asyncio.to_thread(function, pause)
        return await result if inspect.isawaitable(result) else result

    return run


def _row(pause: Pause, now: int) -> tuple[str, ...]:
    waits = f"{pause.waiting} approval{'' if pause.waiting == 1 else 's'}"
    why = waits if pause.waiting else "resuming" if pause.runner else "ready"
    since = (local_time(pause.paused_at), duration_text(now - pause.paused_at))
    return (shorten(escape_invisible(pause.run_id)), escape_invisible(pause.agent), why, *since, str(pause.attempts))


def _pause_json(pause: Pause) -> dict[str, object]:
    return {
        "run_id": pause.short_id,
        "called": pause.run_id,
        "agent": pause.agent,
        "paused_at": rfc3339(pause.paused_at),
        "attempts": pause.attempts,
        "waiting": pause.waiting,
        "resuming": pause.runner != "",
    }
