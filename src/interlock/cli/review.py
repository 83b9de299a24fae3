"""The port through which the commands of `interlock approvals` work, and which approvals a command is about.

A command has one implementation: over this port. `DatabaseReview` implements it over a database, `cli/server_review.py`
over HTTP. The working folder chooses neither a server nor, once the person has logged in, a database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Protocol

import typer

from interlock.cli.approval_records import (
    ApprovalRow,
    ApprovalRows,
    DecisionResult,
    JsonObject,
    ShownApproval,
    parse_decision_result,
    parse_row,
    parse_rows,
    parse_view,
)
from interlock.cli.context import (
    CommandContext,
    CommandOptions,
    Config,
    Database,
    Json,
    common_option,
    open_database,
)
from interlock.cli.user_folder import Login, read_logins
from interlock.config.load import agent_key, names_storage, server_url
from interlock.core.approval.approval import Approval, needs_reviewer
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.card import escape_invisible
from interlock.core.decision import read_decision
from interlock.core.errors import Error, Forbidden, InvalidRequest, Misconfigured, NotFound
from interlock.core.ledger.event import Stored
from interlock.core.policy.policy import People
from interlock.core.ports import ApprovalQuery, Watch
from interlock.presenters.approval import approval_item_json, approval_json, decision_result_json, entry_json
from interlock.sdk.codec import ANSWER_ERRORS, explain_answer_error, not_understood_error
from interlock.sdk.transport import spell_address

SLOW_DATABASE_SECONDS = 2.0  # of waiting for the database before a message is shown
ServerUrl = Annotated[
    str,
    common_option(
        metavar="URL",
        show_default="the server that you logged in to, if any",
        help="Use this server instead of a database: interlock login URL.",
    ),
]
ReviewWorkspace = Annotated[
    str,
    common_option(
        metavar="NAME",
        show_default="default; on a server, that of the login",
        help="Workspace to use.",
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


@dataclass(frozen=True, slots=True)
class Resolution:
    """How a call with an unknown outcome ended, as a person found out."""

    ok: bool
    note: str
    result: object


class ReviewChanges(Protocol):
    """Changes since the watch began. `trouble` says why the view may be out of date, or is empty."""

    trouble: str

    async def wait(self, seconds: float) -> bool:
        """Wait at most so long; False if certainly nothing changed. Raises what ended the watch."""

    async def new_events(self) -> Sequence[JsonObject]:
        """Ledger entries since the last call."""

    def take_skipped(self) -> int:
        """How many entries before these were skipped since the last call."""

    async def row(self, approval_id: str) -> ApprovalRow | None: ...


class Review(Protocol):
    """Approvals as a person reviews them. An empty `user` is the person that the command acts for by itself."""

    workspace: str
    place: str  # for a title

    def now(self) -> int: ...

    async def run_due_timers(self) -> None:
        """Record what is due by the clock: a database may have no server that does."""

    async def list(self, query: ApprovalQuery, *, mine: str | None = None) -> ApprovalRows:
        """A page; with `mine`, only approvals that need this user's decision."""

    async def show(self, approval_id: str) -> ShownApproval: ...

    async def find_ids(self, part: str, limit: int) -> Sequence[str]:
        """Ids that begin or end with `part`, the newest first."""

    async def decide(self, view: ShownApproval, body: Mapping[str, object], user: str) -> DecisionResult:
        """Decide about the arguments of this view: if they changed meanwhile, nothing is decided."""

    async def undo(self, approval_id: str, user: str) -> DecisionResult: ...

    async def delegate(self, approval_id: str, people: People, user: str) -> str:
        """Returns the name of the person who delegates."""

    async def resolve(self, approval_id: str, resolution: Resolution, user: str) -> DecisionResult: ...

    def watch(self) -> AbstractAsyncContextManager[ReviewChanges]: ...


async def raise_if_ended(task: asyncio.Task[None] | None) -> None:
    """Raise the error with which a task in the background ended, if it did."""
    if task is not None and task.done():
        await task


class DatabaseReview:
    def __init__(self, context: CommandContext) -> None:
        self.workspace = self.place = context.workspace
        self._context = context
        self._store = context.services.store
        self._inbox = context.services.inbox

    def now(self) -> int:
        return self._context.now()

    async def run_due_timers(self) -> None:
        """A database that is read-only is no error."""
        with suppress(Error):
            await self._context.services.worker.sweep()

    async def list(self, query: ApprovalQuery, *, mine: str | None = None) -> ApprovalRows:
        self._store.check_same_database()
        page, now = await self._inbox.list(self.workspace, query), self.now()
        items = page.items
        if mine is not None:
            reviewer = await self._context.resolve_reviewer(mine)
            items = tuple(stored for stored in items if needs_reviewer(stored.approval, reviewer, now))
        rows = [approval_item_json(stored, now) for stored in items]
        return parse_rows({"items": rows, "next": page.next, "behind": page.is_index_behind})

    async def show(self, approval_id: str) -> ShownApproval:
        view = await self._inbox.show(self.workspace, approval_id)
        return parse_view(approval_json(view, self.now()))

    async def find_ids(self, part: str, limit: int) -> Sequence[str]:
        with suppress(NotFound):
            return [(await self._store.get(self.workspace, part)).approval.id]
        return await self._store.find_ids(self.workspace, part, limit)

    async def decide(self, view: ShownApproval, body: Mapping[str, object], user: str) -> DecisionResult:
        """Approvals and edits are judged by the policy in force."""
        decision = read_decision({**body, "args_sha256": view.row.args_sha256})
        if decision.kind in ("approve", "edit"):
            from interlock.cli.current_policy import put_current_in_force

            await put_current_in_force(self._context)
        reviewer = await self._context.resolve_reviewer(user)
        try:
            return self._result(await self._inbox.decide(self.workspace, view.row.id, decision, reviewer))
        except Forbidden as error:
            if user:  # who reads this may be somebody else
                error.message = error.message.replace("You may not ", f"{user} may not ", 1)
            raise

    async def undo(self, approval_id: str, user: str) -> DecisionResult:
        reviewer = await self._context.resolve_reviewer(user)
        return self._result(await self._inbox.undo(self.workspace, approval_id, reviewer))

    async def delegate(self, approval_id: str, people: People, user: str) -> str:
        reviewer = await self._context.resolve_reviewer(user)
        await self._inbox.delegate(self.workspace, approval_id, people, reviewer)
        return reviewer.name

    async def resolve(self, approval_id: str, resolution: Resolution, user: str) -> DecisionResult:
        approval = await self._inbox.resolve_unknown(
            self.workspace,
            approval_id,
            await self._context.resolve_reviewer(user),
            ok=resolution.ok,
            note=resolution.note,
            result=resolution.result,
        )
        return self._result(approval)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[ReviewChanges]:
        """Timers run meanwhile, since there may be no server."""
        async with self._store.watch(self.workspace) as watch:
            changes = DatabaseChanges(self._context, watch, (await self._store.head(self.workspace)).seq)
            timers = asyncio.create_task(changes.run_timers())
            changes.timers = timers
            try:
                yield changes
            finally:
                timers.cancel()
                await asyncio.gather(timers, return_exceptions=True)

    def _result(self, approval: Approval) -> DecisionResult:
        return parse_decision_result(decision_result_json(approval, self.now()))


class DatabaseChanges:
    def __init__(self, context: CommandContext, watch: Watch, last_seq: int) -> None:
        self.trouble = ""
        self.timers: asyncio.Task[None] | None = None
        self._context = context
        self._watch = watch
        self._last_seq = last_seq

    async def wait(self, seconds: float) -> bool:
        await self._watch.wait(seconds)
        await raise_if_ended(self.timers)
        return True

    async def new_events(self) -> Sequence[JsonObject]:
        found: list[JsonObject] = []
        async for entries in self._context.services.store.entries(self._context.workspace, self._last_seq):
            found += [entry_json(entry) for entry in entries]
        self._last_seq = found[-1]["seq"] if found else self._last_seq
        return found

    def take_skipped(self) -> int:
        return 0

    async def row(self, approval_id: str) -> ApprovalRow | None:
        try:
            stored: Stored = await self._context.services.store.get(self._context.workspace, approval_id)
        except NotFound:
            return None
        return parse_row(approval_item_json(stored, self._context.now()))

    async def run_timers(self) -> None:
        """Run the timers each second; `trouble` is their error, until they run again.

        A sweep that waits for a locked database must not freeze the view: this is a task of its own.
        """
        while True:
            sweep = asyncio.ensure_future(self._context.services.worker.sweep())
            if not (await asyncio.wait({sweep}, timeout=SLOW_DATABASE_SECONDS))[0]:
                self.trouble = "The database is locked by another program. Waiting; the view may be out of date."
            try:
                await sweep
                self.trouble = ""
            except Error as error:
                self.trouble = error.message
            await asyncio.sleep(1.0)


# Which approvals a command is about


@dataclass(frozen=True)
class ReviewOptions:
    """The common options of commands that work on a database or over a server."""

    database: Database = ""
    config: Config = None
    workspace: ReviewWorkspace = ""
    json: Json = False
    url: ServerUrl = ""

    @property
    def names_database(self) -> bool:
        return bool(self.database or self.config) or names_storage()

    def for_database(self) -> CommandOptions:
        return CommandOptions(self.database, self.config, self.workspace or DEFAULT_WORKSPACE, self.json)


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
            try:
                yield ReviewContext(options, review)
            except UnicodeError:
                raise
            except ANSWER_ERRORS as error:  # all that is shown came from the server
                raise not_understood_error(login.url, explain_answer_error(error)) from error
        return
    _say_what_is_not_used(options)
    async with open_database(options.for_database()) as context:
        yield ReviewContext(options, DatabaseReview(context))


def choose_login(options: ReviewOptions) -> Login | None:
    """The server to use; None for a database. What is named for this command or shell comes before the login."""
    if options.url:
        if options.database or options.config:
            raise InvalidRequest("Give a server with --url, or a database with --database or --config, not both.")
        return _named_login(options.url)
    return None if options.names_database else read_logins().find()


def _named_login(url: str) -> Login:
    """The login at this server; without one, INTERLOCK_KEY is the key of a person there, unless it is another's."""
    login = read_logins().find(url)
    if login is not None:
        return login
    url = spell_address(url)
    key, key_url = agent_key(), server_url()
    if not key or (key_url and spell_address(key_url) != url):
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
