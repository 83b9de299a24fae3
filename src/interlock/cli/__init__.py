"""The command line. This file only says what there is: a command's own file loads when it is used."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from interlock.cli.shared import Desk, Options, command, given, kept, run_long

if TYPE_CHECKING:
    from typer._click import Command, Context

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask. Off a terminal nobody is asked anyway.")]
EPILOG = (
    "Exit status: 0 done, 1 refused or not found, 2 wrong use or configuration. "
    "With --json the answer on standard output is one JSON document, an error too: "
    '{"error", "message", …}; without it an error is a line on standard error.'
)


def _later(name: str) -> type[TyperGroup]:
    """A group whose file is imported when one of its commands is named, so that --help stays quick."""

    class Later(TyperGroup):  # Typer asks for a subclass
        def list_commands(self, ctx: Context) -> list[str]:
            return self._real().list_commands(ctx)

        def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
            return self._real().get_command(ctx, cmd_name)

        def _real(self) -> TyperGroup:
            return typer.main.get_group(import_module(f"interlock.cli.{name}").app)

    return Later


GROUPS = {
    "approvals": "What waits on people: list, look, decide.",
    "grants": "Standing permissions: make, list, revoke.",
    "policy": "Check a policy file; see which rule a call meets.",
    "audit": "Prove that the record is whole.",
    "users": "The people of a workspace.",
    "keys": "Keys of agents and people: make, list, revoke.",
    "workspaces": "Workspaces: add, list.",
}
FILES = {"users": "people"}

app = typer.Typer(
    name="interlock",
    help="The safety interlock between AI agents and the real world.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with its locals could show a secret
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _help in GROUPS.items():
    group = typer.Typer(cls=_later(FILES.get(_name, _name)), help=_help, epilog=EPILOG, no_args_is_help=True)
    app.add_typer(group, name=_name)


def _say_version(wanted: bool) -> None:
    if wanted:
        from interlock import __version__

        typer.echo(f"interlock {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_say_version, help="Say which version this is.")
    ] = False,
) -> None:
    """The help of the program is given to the app."""


@command(app, given, runner=run_long)
async def serve(
    options: Options,
    host: Annotated[str, typer.Option(metavar="HOST", show_default="127.0.0.1", help="Where to listen.")] = "",
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, show_default="8321", help="0 takes a free one.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Put a few demo calls into an empty workspace.")] = False,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Leave what time does to `interlock worker`.")] = False,
) -> None:
    """Run the server: the HTTP interface, and what time does."""
    from interlock.cli.serving import run

    await run(options, host, port, worker=not no_worker, demo=demo)


@command(app, given)
async def worker(
    options: Options,
    demo: Annotated[bool, typer.Option("--demo", help="With the demo's agents and its scripted model.")] = False,
) -> None:
    """Do what time does, without the server: expire, remind, escalate, recover, forget, and let agents go on."""
    from interlock.cli.serving import work

    await work(options, demo=demo)


@command(app, given)
async def migrate(options: Options) -> None:
    """Make the database, or bring it up to date. Safe to run again."""
    from interlock.cli.doctor import migrated

    await migrated(options)


@command(app, given)
async def doctor(options: Options) -> None:
    """Check the installation, and say what to do about what is wrong."""
    from interlock.cli.doctor import examine

    await examine(options)


@command(app, kept)
async def erase(
    desk: Desk,
    *,
    approval: Annotated[str, typer.Option(metavar="ID", help="One approval.")] = "",
    thread: Annotated[str, typer.Option(metavar="ID", help="Every approval of a thread.")] = "",
    person: Annotated[str, typer.Option(metavar="NAME", help="What a person asked for, and what they said.")] = "",
    retention: Annotated[bool, typer.Option("--retention", help="What storage.retention no longer keeps.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; kept until it is erased itself.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    yes: Yes = False,
    user: Annotated[str, typer.Option(metavar="NAME", show_default="who is logged in", help="Who erases.")] = "",
) -> None:
    """Erase arguments, results and words of what has ended, for good. The record stays valid. For admins."""
    from interlock.cli import erasing

    wanted = erasing.Wanted(approval, thread, person, retention, reason, dry_run, yes, user)
    await erasing.erase(desk, wanted)


@command(app, given)
async def backup(
    options: Options,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="A new file; none is overwritten.")],
) -> None:
    """Copy the database to one file while everything runs, and print the heads of its ledgers."""
    from interlock.cli import backing

    await backing.backup(options, file)


def main() -> None:
    """The entry point: every known error becomes one line and an exit status, never a traceback."""
    from interlock.core.errors import Error

    try:
        _refuse_what_is_not_text(sys.argv)
        code = app(standalone_mode=False, prog_name="interlock")
    except (Error, OSError, typer.TyperException, typer.Abort, KeyboardInterrupt) as error:
        from interlock.cli.output import fail

        code = fail(error, sys.argv[1:])
    sys.exit(code if isinstance(code, int) else 0)


def _refuse_what_is_not_text(words: list[str]) -> None:
    """Bytes that are not UTF-8 arrive as half surrogates, which no database takes."""
    if any("\ud800" <= ch <= "\udfff" for word in words for ch in word):
        raise typer.BadParameter("an argument is not UTF-8 text.")
