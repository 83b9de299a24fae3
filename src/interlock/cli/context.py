"""Shared by all commands: the common options, and opening and closing of services around a command."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from interlock.app.bootstrap import AppServices
    from interlock.config.load import Settings
    from interlock.core.decision import Reviewer
    from interlock.notify.service import NotificationService

T = TypeVar("T")
Work = TypeVar("Work", bound=Callable[..., Awaitable[None]])
COMMON_PANEL = "Common options"


def common_option(*names: str, **shown: Any) -> Any:
    """An option that is listed apart from those of the command."""
    return typer.Option(*names, rich_help_panel=COMMON_PANEL, **shown)


Database = Annotated[
    str,
    common_option(
        metavar="URL",
        show_default="INTERLOCK_DATABASE_URL, the configuration, or sqlite:///interlock.db",
        help="Database URL.",
    ),
]
Config = Annotated[
    Path | None,
    common_option(
        metavar="FILE", show_default="interlock.yaml in the working folder, if any", help="Configuration file."
    ),
]
# For commands that a client starts in any folder: nothing is read from there.
TRUSTED_OPTIONS: Mapping[str, object] = {
    "database": Annotated[
        str,
        common_option(
            metavar="URL",
            show_default="INTERLOCK_DATABASE_URL, or storage.url of the configuration",
            help="Database URL, with an absolute path.",
        ),
    ],
    "config": Annotated[
        Path | None,
        common_option(
            metavar="FILE",
            show_default="INTERLOCK_CONFIG, or ~/.config/interlock/interlock.yaml",
            help="Configuration file.",
        ),
    ],
}
Workspace = Annotated[str, common_option(metavar="NAME", help="Workspace to use.")]
Json = Annotated[bool, common_option("--json", help="Print one JSON document.")]
User = Annotated[
    str, typer.Option(metavar="NAME", show_default="the operating system's user", help="Act as this user.")
]
ApprovalId = Annotated[
    str,
    typer.Argument(metavar="ID", show_default=False, help="Id, or at least 4 characters of its beginning or end."),
]


@dataclass(frozen=True)
class CommandOptions:
    """The common options of all commands."""

    database: Database = ""
    config: Config = None
    workspace: Workspace = "default"
    json: Json = False

    def settings(self, **overrides: object) -> Settings:
        """The settings, with overrides such as `server_port=…`, which takes precedence over server.port of the file."""
        from interlock.config.load import load_settings

        given = {name.replace("_", ".", 1): value for name, value in overrides.items()}
        return load_settings(self.config, overrides={"storage.url": self.database or None, **given})


@dataclass(frozen=True)
class ServerOptions:
    """The common options of commands that open no database."""

    workspace: Workspace = "default"
    json: Json = False


@dataclass(frozen=True)
class CommandContext:
    """The options, settings and services of a command with an open database."""

    options: CommandOptions
    settings: Settings
    services: AppServices

    @property
    def workspace(self) -> str:
        return self.options.workspace

    @property
    def workspace_settings(self) -> Settings:
        """The settings of the workspace."""
        return self.settings.for_workspace(self.workspace)

    @property
    def json(self) -> bool:
        return self.options.json

    def now(self) -> int:
        return self.services.clock()

    async def resolve_reviewer(self, name: str) -> Reviewer:
        """The reviewer.

        A user unknown to the workspace is an admin, since access to a local database means owning it.
        """
        from interlock.app.bootstrap import os_user

        found = await self.services.inbox.reviewer(self.workspace, name or os_user(), "cli", role="admin")
        return replace(found, credential=f"os user {os_user()}")


@asynccontextmanager
async def without_database(options: T) -> AsyncIterator[T]:
    """For commands that must work without a database."""
    yield options


@asynccontextmanager
async def open_database(options: CommandOptions) -> AsyncIterator[CommandContext]:
    """Open an existing database: a misspelt name must not look like an empty inbox or a valid ledger."""
    from interlock.app.bootstrap import database_option, missing_database_file
    from interlock.core.errors import Misconfigured

    settings = options.settings()
    gone = missing_database_file(url := settings.storage.url)
    if gone is not None:
        _refuse_if_logged_in(options, settings, gone)
        make = f"interlock migrate {database_option(url)}"
        raise Misconfigured(f"There is no database at {gone}. Give the right one with --database, or create it: {make}")
    async with open_or_create_database(options) as context:
        yield context


@asynccontextmanager
async def open_notifications(options: CommandOptions) -> AsyncIterator[tuple[CommandContext, NotificationService]]:
    """Open the database and the workspace's notification channels."""
    from interlock.app.bootstrap import build_gate_and_inbox, wall_clock
    from interlock.app.workspaces import Workspaces
    from interlock.notify.service import build_notification_service
    from interlock.server.logs import JsonLogger

    async with open_database(options) as context:
        store, log = context.services.store, JsonLogger(wall_clock, "none", lambda _: None)
        workspaces = Workspaces(store, lambda policy: build_gate_and_inbox(store, policy), context.settings.toggles())
        notifications = build_notification_service(context.settings, store, workspaces, log)
        async with notifications.open():
            yield context, notifications.for_workspace(context.workspace)


@asynccontextmanager
async def open_or_create_database(options: CommandOptions) -> AsyncIterator[CommandContext]:
    """Open the database; create it first if it does not exist."""
    from interlock.app.bootstrap import build_services, missing_database_file

    settings = options.settings()
    gone = missing_database_file(settings.storage.url)
    if gone is not None:
        _refuse_if_logged_in(options, settings, gone)
    app_services = build_services(settings.storage.url)
    await app_services.store.open()
    try:
        yield CommandContext(options, settings, app_services)
    finally:
        await app_services.store.close()


def _refuse_if_logged_in(options: CommandOptions, settings: Settings, gone: Path) -> None:
    """Who is logged in to a server and names no database means that server, which this command cannot reach."""
    from interlock.cli.user_folder import read_logins
    from interlock.config.load import names_storage
    from interlock.core.errors import Misconfigured

    if options.database or settings.file is not None or names_storage():
        return
    try:
        login = read_logins().find()
    except Misconfigured:
        return  # a file of logins that is not used is no reason to refuse a database
    if login is not None:
        raise Misconfigured(
            f"This command works on a database, and there is none at {gone}. For {login.url}, to which you are logged "
            "in, use its web app, or run the command on its machine with --database URL. For a database of your own: "
            f"interlock migrate --database {settings.storage.url}"
        )


def run_now(work: Coroutine[Any, Any, None]) -> None:
    import asyncio

    asyncio.run(work)


def run_long(work: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop, for many connections; it also sends everything written in one iteration at once."""
    import uvloop

    uvloop.run(work)


def command(
    app: typer.Typer,
    open_context: Callable[[Any], AbstractAsyncContextManager[T]],
    name: str | None = None,
    runner: Callable[[Coroutine[Any, Any, None]], None] = run_now,
    options: Mapping[str, object] = MappingProxyType({}),
    kind: type[Any] = CommandOptions,
) -> Callable[[Work], Work]:
    """Register an async function: its first parameter is the value of `open_context`, and common options are added.

    `options` replaces the help of common options for this command, `kind` is the class of its common options.
    """

    def register(work: Work) -> Work:
        def run(**values: Any) -> None:
            given = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            runner(_run_opened(open_context(given), work, values))

        run.__name__, run.__doc__ = work.__name__, work.__doc__
        run.__signature__ = _signature(work, options, kind)  # type: ignore[attr-defined]  # read by Typer
        app.command(name)(run)
        return work

    return register


async def _run_opened(
    opened: AbstractAsyncContextManager[T], work: Callable[..., Awaitable[None]], values: dict[str, Any]
) -> None:
    async with opened as first:
        await work(first, **values)


def _signature(work: Callable[..., object], options: Mapping[str, object], kind: type[Any]) -> inspect.Signature:
    own = list(inspect.signature(work, eval_str=True).parameters.values())[1:]
    known = inspect.signature(kind, eval_str=True).parameters.values()
    common = [each.replace(annotation=options.get(each.name, each.annotation)) for each in known]
    both = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *common)]
    return inspect.Signature(both)


def missing_package_error(error: ImportError, extra: str) -> Exception:
    """For an import that failed: a package of the extra is missing, or too old to have what is imported."""
    from interlock.core.errors import Misconfigured

    package = (error.name or "a package").partition(".")[0]
    return Misconfigured(
        f"{package} is not installed, or its version is not supported: pip install 'interlock-gate[{extra}]'"
    )


def is_interactive() -> bool:
    """Whether there is a terminal to ask questions on."""
    return sys.stdin.isatty()
