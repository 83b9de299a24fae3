"""Which approvals a command is about: those of a server that the person named or logged in to, or of a database.

The working folder chooses neither a server nor, once the person has logged in, a database.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from interlock.cli.context import COMMON_PANEL, CommandOptions, Config, Database, Json, Workspace, open_database
from interlock.cli.login_file import Login, read_logins
from interlock.cli.review import DatabaseReview, Review
from interlock.config.load import agent_key, names_storage
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.card import escape_invisible
from interlock.core.errors import InvalidRequest, Misconfigured

ServerUrl = Annotated[
    str,
    typer.Option(
        metavar="URL",
        rich_help_panel=COMMON_PANEL,
        show_default="the server that you logged in to, if any",
        help="Use this server instead of a database: interlock login URL.",
    ),
]


ActingUser = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        show_default="the operating system's user; on a server, who is logged in",
        help="Act as this user.",
    ),
]


@dataclass(frozen=True)
class ReviewOptions:
    """The common options of commands that work on a database or over a server."""

    database: Database = ""
    config: Config = None
    workspace: Workspace = DEFAULT_WORKSPACE
    json: Json = False
    url: ServerUrl = ""

    @property
    def names_database(self) -> bool:
        return bool(self.database or self.config) or names_storage()

    def for_database(self) -> CommandOptions:
        return CommandOptions(self.database, self.config, self.workspace, self.json)


@dataclass(frozen=True)
class ReviewContext:
    """The options of a command, and the approvals that it is about."""

    options: ReviewOptions
    review: Review

    @property
    def json(self) -> bool:
        return self.options.json

    def now(self) -> int:
        return self.review.now()


@asynccontextmanager
async def open_review(options: ReviewOptions) -> AsyncIterator[ReviewContext]:
    """Open the server or the database; what is used instead of the other is said on standard error."""
    login = choose_login(options)
    if login is not None:
        from interlock.cli.server_review import open_server_review

        async with open_server_review(login, options.workspace) as review:
            _say(f"Using {login.url} as {review.user}, in the workspace {review.workspace}.")
            yield ReviewContext(options, review)
        return
    _say_what_is_not_used(options)
    async with open_database(options.for_database()) as context:
        yield ReviewContext(options, DatabaseReview(context))


def choose_login(options: ReviewOptions) -> Login | None:
    """The server to use; None for a database. What is named for this command or shell comes before the login."""
    if options.url:
        if options.database or options.config:
            raise InvalidRequest("Give a server with --url, or a database with --database or --config, not both.")
        return _named_login(options.url.rstrip("/"))
    return None if options.names_database else read_logins().find()


def _named_login(url: str) -> Login:
    """The login at this server; without one, INTERLOCK_KEY is the key of a person there."""
    login = read_logins().find(url)
    if login is not None:
        return login
    key = agent_key()
    if not key:
        raise Misconfigured(f"You are not logged in to {escape_invisible(url)}. Log in: interlock login {url}")
    return Login(url=url, key=key, key_id="", user="", role="", workspace="", expires_at=0)


def _say_what_is_not_used(options: ReviewOptions) -> None:
    """A login that does not count for this command must not look as if it did."""
    try:
        login = read_logins().find()
    except Misconfigured:
        return
    if login is not None:
        from interlock.app.bootstrap import mask_password

        url = mask_password(options.for_database().settings().storage.url)
        _say(f"Using the database {url}, which was named, and not {login.url}.")


def _say(line: str) -> None:
    typer.echo(escape_invisible(line), err=True)
