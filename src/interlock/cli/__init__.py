"""The command line: commands and groups with their options. A command's own module is imported on first use."""

from __future__ import annotations

import sys
from contextlib import suppress
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from interlock.cli.context import (
    TRUSTED_OPTIONS,
    CommandContext,
    CommandOptions,
    ServerOptions,
    User,
    command,
    missing_package_error,
    open_database,
    run_long,
    without_database,
)

if TYPE_CHECKING:
    from typer._click import Command, Context

Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation prompt (implied without a terminal).")]
EPILOG = (
    "Exit status: 0 done, 1 refused or not found, 2 usage or configuration error. "
    "With --json, standard output is one JSON document, also for an error: "
    '{"error", "message", …}; without it, errors are one line on standard error.'
)


def _lazy_group(name: str) -> type[TyperGroup]:
    """A group whose module is imported when one of its commands is used, so that --help stays fast."""

    class LazyGroup(TyperGroup):  # Typer requires a subclass
        def list_commands(self, ctx: Context) -> list[str]:
            return self._loaded_group().list_commands(ctx)

        def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
            return self._loaded_group().get_command(ctx, cmd_name)

        def _loaded_group(self) -> TyperGroup:
            return typer.main.get_group(import_module(f"interlock.cli.commands.{name}").app)

    return LazyGroup


GROUPS = {
    "approvals": "Pending and past approvals: list, show, decide.",
    "grants": "Standing approvals: create, list, revoke.",
    "policy": "Policies: check, explain, rehearse, put in force.",
    "audit": "Verify and export the audit ledger.",
    "users": "Users of a workspace: add, list, remove, sign in and out.",
    "keys": "API keys of agents and users: create, rotate, list, revoke.",
    "tools": "Tools and the source of their definitions: list, pin, unpin.",
    "channels": "Notification channels: list, test, enable, disable.",
    "deliveries": "Notifications and dead letters: list, retry.",
    "runs": "Paused runs of agent frameworks: list, resume.",
    "workspaces": "Workspaces: add, list.",
}

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
    group = typer.Typer(cls=_lazy_group(_name), help=_help, epilog=EPILOG, no_args_is_help=True)
    app.add_typer(group, name=_name)


def _print_version(wanted: bool) -> None:
    if wanted:
        from interlock import __version__

        typer.echo(f"interlock {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Options of the program itself; its help text is set on the app."""


@command(app, without_database, runner=run_long)
async def serve(
    options: CommandOptions,
    host: Annotated[str, typer.Option(metavar="HOST", show_default="127.0.0.1", help="Address to listen on.")] = "",
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, show_default="8321", help="Port to listen on; 0 picks a free one.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Add a few demo calls to an empty workspace.")] = False,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Do not run the background worker; `interlock worker` does.")
    ] = False,
    migrate: Annotated[
        bool,
        typer.Option("--migrate", help="Migrate a PostgreSQL database first; an SQLite file always is."),
    ] = False,
) -> None:
    """Run the server: the web app, the HTTP API and the background worker."""
    from interlock.cli.commands.serve import run_server

    await run_server(options, host, port, worker=not no_worker, demo=demo, migrate=migrate)


class LoginProof(StrEnum):
    PASSWORD = "password"  # noqa: S105  a kind of proof
    LINK = "link"
    KEY = "key"


class LoginRole(StrEnum):
    VIEWER = "viewer"
    REVIEWER = "reviewer"
    ADMIN = "admin"


@command(app, without_database, kind=ServerOptions)
async def login(
    options: ServerOptions,
    url: Annotated[str, typer.Argument(metavar="URL", show_default=False, help="Address of the server.")],
    *,
    name: Annotated[
        str, typer.Option(metavar="NAME", show_default="asked for", help="Your name on that server, for a password.")
    ] = "",
    proof: Annotated[
        LoginProof,
        typer.Option(
            "--with", help="How you prove who you are: asked for at the prompt, or read as a line of standard input."
        ),
    ] = LoginProof.PASSWORD,
    role: Annotated[
        LoginRole | None,
        typer.Option(show_default="your own, at most reviewer", help="Role of the key that is made."),
    ] = None,
    expires: Annotated[str, typer.Option(metavar="TIME", help="Lifetime of the login.")] = "30d",
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow an http:// server on another machine.")] = False,
) -> None:
    """Log in to a server, so that `interlock approvals` works on it. Makes a key of your own that expires."""
    from interlock.cli.commands import login

    given = login.LoginOptions(
        name=name, proof=proof.value, role=role.value if role else "", expires=expires, insecure=insecure
    )
    await login.login(options, url, given)


@command(app, without_database, kind=ServerOptions)
async def logout(
    options: ServerOptions,
    url: Annotated[
        str, typer.Argument(metavar="[URL]", show_default=False, help="The server; without it, the newest login.")
    ] = "",
) -> None:
    """Log out of a server: forget the key of the login, and revoke it."""
    from interlock.cli.commands import login

    await login.logout(options, url)


@command(app, without_database)
async def worker(
    options: CommandOptions,
    demo: Annotated[bool, typer.Option("--demo", help="Use the demo's agents and its scripted model.")] = False,
) -> None:
    """Run the background worker without the server: timers, notifications, recovery, chat threads."""
    from interlock.cli.commands.serve import run_worker

    await run_worker(options, demo=demo)


@command(app, without_database)
async def migrate(options: CommandOptions) -> None:
    """Create the database, or migrate it to the current schema. Safe to run again."""
    from interlock.cli.commands.doctor import migrate_database

    await migrate_database(options)


@command(app, without_database)
async def doctor(options: CommandOptions) -> None:
    """Check the installation, and suggest a fix for each problem."""
    from interlock.cli.commands.doctor import run_checks

    await run_checks(options)


FreezeAgent = Annotated[
    str, typer.Option(metavar="NAME", help="Only this agent, with every key that has used its name.")
]
FreezeKey = Annotated[str, typer.Option(metavar="ID", help="Only this key, by its id.")]
FreezeTool = Annotated[str, typer.Option(metavar="NAME", help="Only this tool; * is a wildcard.")]
FreezeReason = Annotated[
    str, typer.Option(metavar="TEXT", show_default=False, help="Reason, shown to everybody affected.")
]


@command(app, open_database)
async def freeze(
    context: CommandContext,
    *,
    reason: FreezeReason,
    agent: FreezeAgent = "",
    key: FreezeKey = "",
    tool: FreezeTool = "",
    user: User = "",
) -> None:
    """Emergency stop: no call starts in the workspace, or for one agent, key or tool. For admins."""
    from interlock.cli.commands import freeze

    await freeze.freeze(context, freeze.FreezeOptions(agent, key, tool, reason, user))


@command(app, open_database)
async def unfreeze(
    context: CommandContext,
    *,
    reason: FreezeReason,
    agent: FreezeAgent = "",
    key: FreezeKey = "",
    tool: FreezeTool = "",
    user: User = "",
) -> None:
    """Lift a freeze; deadlines are extended by its duration. For admins."""
    from interlock.cli.commands import freeze

    await freeze.unfreeze(context, freeze.FreezeOptions(agent, key, tool, reason, user))


@command(app, open_database)
async def erase(
    context: CommandContext,
    *,
    approval: Annotated[str, typer.Option(metavar="ID", help="One approval.")] = "",
    thread: Annotated[str, typer.Option(metavar="ID", help="All approvals of a thread.")] = "",
    person: Annotated[str, typer.Option(metavar="NAME", help="Requests and comments of one person.")] = "",
    retention: Annotated[bool, typer.Option("--retention", help="Everything older than storage.retention.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason, recorded in the ledger (erasable).")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be erased.")] = False,
    yes: Yes = False,
    user: User = "",
) -> None:
    """Permanently erase arguments, results and comments of finished calls. The ledger stays valid. For admins."""
    from interlock.cli.commands import erase

    options = erase.EraseOptions(
        approval=approval,
        thread=thread,
        person=person,
        retention=retention,
        reason=reason,
        dry_run=dry_run,
        yes=yes,
        user=user,
    )
    await erase.erase(context, options)


@command(app, without_database)
async def backup(
    options: CommandOptions,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", show_default=False, help="The new file; an existing file is never overwritten."),
    ],
) -> None:
    """Copy the database to a file while it is in use, and print the heads of its ledgers."""
    from interlock.cli.commands import backup

    await backup.backup(options, file)


@command(app, without_database, "mcp-gate", runner=run_long, options=TRUSTED_OPTIONS)
async def gate_mcp(
    options: CommandOptions,
    *,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND…", show_default=False, help="The MCP server, after `--`.")
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve clients over streamable HTTP instead of standard streams.")
    ] = False,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 picks a free one.")] = 8322,
    url: Annotated[str, typer.Option(metavar="URL", help="Use this server instead of a database.")] = "",
    key: Annotated[
        str, typer.Option(metavar="KEY", show_default="INTERLOCK_KEY", help="API key of an agent on that server.")
    ] = "",
    agent: Annotated[str, typer.Option(metavar="NAME", help="Agent name for policy and reviewers.")] = "mcp-gate",
    run: Annotated[str, typer.Option(metavar="ID", show_default="one per process", help="Run id for all calls.")] = "",
    reads: Annotated[str, typer.Option(metavar="PATTERNS", help="Read-only tools: 'read_*,list_*'.")] = "",
    trust_hints: Annotated[
        bool, typer.Option("--trust-hints", help="Trust servers that declare a tool read-only.")
    ] = False,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to hold a call open while people decide.")] = 60,
    public_url: Annotated[
        str, typer.Option(metavar="URL", help="Address of the web app, for links to approvals.")
    ] = "",
    token: Annotated[
        str,
        typer.Option(
            metavar="TEXT", show_default="INTERLOCK_GATE_TOKEN", help="Bearer token required from HTTP clients."
        ),
    ] = "",
) -> None:
    """Proxy between an MCP client and an MCP server: reads pass, other calls need approval.

    Nothing is read from the working folder: give --database, or set it in ~/.config/interlock/interlock.yaml.
    """
    try:
        from interlock.cli.commands import mcp_gate
    except ImportError as error:
        raise missing_package_error(error, "mcp") from None

    gate_options = mcp_gate.McpGateOptions(
        command=command or [],
        http=http,
        host=host,
        port=port,
        url=url,
        key=key,
        agent=agent,
        run=run,
        reads=reads,
        trust_hints=trust_hints,
        wait=wait,
        public_url=public_url,
        token=token,
    )
    await mcp_gate.run(options, gate_options)


@command(app, without_database, options=TRUSTED_OPTIONS)
async def hook(
    options: CommandOptions,
    *,
    url: Annotated[
        str, typer.Option(metavar="URL", show_default="INTERLOCK_URL", help="Use this server instead of a database.")
    ] = "",
    key: Annotated[
        str, typer.Option(metavar="KEY", show_default="INTERLOCK_KEY", help="API key of an agent on that server.")
    ] = "",
    reads: Annotated[
        str, typer.Option(metavar="NAMES", help="Read-only tools, such as Read,Glob; claude-code is a predefined list.")
    ] = "",
    pass_reads: Annotated[
        bool, typer.Option("--pass-reads", help="Leave allowed reads to Claude Code's own rules.")
    ] = False,
    wait: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long to wait for a decision; must be shorter than the hook's timeout."),
    ] = "9m",
    undecided: Annotated[
        str, typer.Option(metavar="ANSWER", help="Answer if nobody decided in time: deny, ask or defer.")
    ] = "deny",
    lease: Annotated[
        str, typer.Option(metavar="TIME", help="Time after which a running tool without a report is marked unknown.")
    ] = "10m",
    agent: Annotated[str, typer.Option(metavar="NAME", help="Agent name for policy and reviewers.")] = "claude-code",
    notes: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for state shared between hook invocations.")
    ] = Path("~/.cache/interlock/hooks"),
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow an http:// server on another machine.")] = False,
) -> None:
    """Handle a hook of Claude Code: reads the event from standard input, writes the answer to standard output.

    Nothing is read from the working folder: give --database, or set it in ~/.config/interlock/interlock.yaml.
    """
    from interlock.cli.commands.hook import HookCommandOptions, answer_event

    command_options = HookCommandOptions(
        database=options.database,
        config=options.config,
        workspace=options.workspace,
        url=url,
        key=key,
        reads=reads,
        pass_reads=pass_reads,
        wait=wait,
        undecided=undecided,
        lease=lease,
        agent=agent,
        notes=notes,
        insecure=insecure,
    )
    raise typer.Exit(await answer_event(command_options))


def main() -> None:
    """The entry point: every known error becomes one line and an exit status, never a traceback."""
    from interlock.core.errors import Error

    try:
        _refuse_non_utf8(sys.argv)
        code = _run_hook(sys.argv[1:])
        if code is None:
            code = app(standalone_mode=False, prog_name="interlock")
    except (Error, OSError, typer.TyperException, typer.Abort, KeyboardInterrupt) as error:
        from interlock.cli.output import fail

        code = fail(error, sys.argv[1:])
    sys.exit(code if isinstance(code, int) else 0)


def _run_hook(words: list[str]) -> int | None:
    """Run `interlock hook` without Typer, which loads slowly: Claude Code starts it for each call."""
    if words[:1] != ["hook"]:
        return None
    try:
        from interlock.cli.commands.hook import run_without_parser

        code = run_without_parser(words[1:])
        return _run_app() if code is None else code
    except BaseException as error:  # noqa: BLE001  any exit status other than 2 would let the call through
        with suppress(Exception):
            sys.stderr.write(f"Interlock blocked this call. The hook could not start: {type(error).__name__}.\n")
        return 2


def _run_app() -> int:
    try:
        code = app(standalone_mode=False, prog_name="interlock")
    except typer.TyperException as error:
        from interlock.cli.output import fail

        fail(error, sys.argv[1:])
        return 2
    return code if isinstance(code, int) else 0


def _refuse_non_utf8(words: list[str]) -> None:
    """Refuse arguments that are not UTF-8: they arrive as lone surrogates, which no database accepts."""
    if any("\ud800" <= ch <= "\udfff" for word in words for ch in word):
        raise typer.BadParameter("an argument is not UTF-8 text.")
