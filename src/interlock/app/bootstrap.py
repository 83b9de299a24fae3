"""Bootstrap (composition root): the only module that knows all services, and that reads the wall clock."""

from __future__ import annotations

import os
import pwd
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from interlock.app.gate import POLL_INTERVAL, Gate
from interlock.app.policy_in_force import PolicyEpoch, PolicyInForce, combine_toggles, merge_toggles, policy_revision
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.errors import Misconfigured
from interlock.core.policy.policy import Policy
from interlock.core.ports import AgentVersion, Clock, PolicyVersion, User
from interlock.policy.conditions import compile_condition
from interlock.runtime.json_schema import validate
from interlock.runtime.process_identity import is_dead
from interlock.storage.engine.database import Database
from interlock.storage.sqlite.database import SqliteDatabase
from interlock.storage.store import SqlStore

if TYPE_CHECKING:  # a hook starts for each tool call, and needs none of these
    from interlock.accounts.accounts import Accounts
    from interlock.app.inbox import Inbox
    from interlock.app.worker import Worker
    from interlock.policy.file import ConfiguredPolicy, KnownNames, LoadedPolicy, StalePolicy

Toggles = Mapping[str, Mapping[str, bool]]


class PolicyChannelSettings(NamedTuple):
    """Configured settings for the policies of a workspace: reminders, the available channels, and `expires_in`."""

    reminders: tuple[int, ...] | None = None
    channels: frozenset[str] | None = None
    has_destinations: bool = True
    expires_in: int | None = None


def wall_clock() -> int:
    return time.time_ns() // 1_000_000


def os_user() -> str:
    """The operating system's user; the environment is not used, since anybody can set it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid{os.getuid()}"


@dataclass(kw_only=True)
class AppServices:
    """The services of a process; those that only some programs need are made when they are first used."""

    store: SqlStore
    gate: Gate
    inbox: Inbox
    clock: Clock
    retention: int | None = None
    policy_version: PolicyVersion | None = None  # the version that was loaded last
    people: Sequence[User] = ()  # as last read
    agents: Sequence[AgentVersion] = ()  # settings that were loaded last

    @cached_property
    def accounts(self) -> Accounts:
        from interlock.accounts.accounts import Accounts

        return Accounts(self.store.accounts, self.clock)

    @cached_property
    def worker(self) -> Worker:
        from interlock.app.worker import Worker

        return Worker(self.store, self.clock, is_dead, self.retention, self.accounts.sweep)

    async def put_policy(
        self,
        workspace: str,
        text: str | None,
        author: str,
        toggles: Toggles,
        reason: str = "",
        channel_settings: PolicyChannelSettings = PolicyChannelSettings(),  # noqa: B008  frozen
    ) -> LoadedPolicy:
        """Put a policy in force as a new version; without a text the stored one, or the defaults, stay in force."""
        from interlock.policy.file import load_policy

        stored = await self.store.policy(workspace)
        body = text if text is not None else (stored.body if stored else "")
        names = known_names(await self.store.users(workspace), channel_settings)
        loaded = load_policy(
            body, compile_condition, names, toggles, channel_settings.reminders, channel_settings.expires_in
        )
        self.inbox.in_force.freezes = await self.store.open_freezes(workspace)
        if text is not None:
            stored = await self.store.put_policy(workspace, loaded.policy.sha256, body, author, reason)
        self.policy_version = stored
        self.inbox.in_force.set_policy(loaded.policy)
        return loaded

    async def apply_policy(
        self, workspace: str, configured: ConfiguredPolicy | None, author: str, toggles: Toggles
    ) -> StalePolicy | None:
        """At a program's start, store its policy as a new version, unless this text was already applied once."""
        from interlock.policy.file import load_policy

        if configured is not None and (
            configured.is_always_applied or not await self.store.has_policy(workspace, configured.sha256)
        ):
            names = known_names(await self.store.users(workspace), PolicyChannelSettings())
            load_policy(configured.text, compile_condition, names, toggles)
            await self.store.put_policy_file(
                workspace, configured.sha256, configured.text, author, reapply=configured.is_always_applied
            )
        self.inbox.in_force.freezes = await self.store.open_freezes(workspace)
        return await self._set_policy(workspace, configured, toggles)

    async def refresh_policy(
        self, workspace: str, toggles: Toggles, configured: ConfiguredPolicy | None = None
    ) -> StalePolicy | None:
        """Load the policy and switches that another process stored (the last one wins) and the active freezes.

        Cached judgements are dropped when people changed, since rules use their teams.
        """
        self.inbox.in_force.freezes = await self.store.open_freezes(workspace)
        people = await self.store.users(workspace)
        if people != self.people:
            self.people = people
            self.inbox.in_force.invalidate_all()
        return await self._set_policy(workspace, configured, toggles, only_changed=True)

    async def _set_policy(
        self, workspace: str, configured: ConfiguredPolicy | None, toggles: Toggles, *, only_changed: bool = False
    ) -> StalePolicy | None:
        from interlock.policy.file import load_effective_policy, load_policy

        stored, agents = await self.store.policy(workspace), await self.store.agents(workspace)
        if only_changed and (stored or self.policy_version, agents) == (self.policy_version, self.agents):
            return configured.check_stale(stored) if configured else None
        with self.inbox.in_force.lock:  # a program may set switches meanwhile
            combined = combine_toggles(toggles, agents)
            loaded, stale = load_effective_policy(
                stored, configured, lambda text: load_policy(text, compile_condition, toggles=combined)
            )
            self.policy_version, self.agents = stored, agents
            self.inbox.in_force.set_policy(loaded.policy, policy_revision(stored, agents))
        return stale


def known_names(users: Sequence[User], channel_settings: PolicyChannelSettings) -> KnownNames:
    """Names for checking a policy; teams are checked only once somebody is in a team."""
    from interlock.policy.file import KnownNames

    teams = frozenset(team for user in users for team in user.teams) or None
    return KnownNames(teams, channel_settings.channels, has_destinations=channel_settings.has_destinations)


def build_services(url: str, clock: Clock | None = None, *, retention: int | None = None) -> AppServices:
    """Build the services; a database with a clock of its own uses that one, `clock` is for tests and for SQLite.

    With a `retention` the worker erases what ended longer ago; meant for long-running programs, as reading erases
    nothing.
    """
    return build_services_from_store(SqlStore(make_database(url, clock)), retention=retention)


def build_services_from_store(store: SqlStore, *, retention: int | None = None) -> AppServices:
    gate, inbox = build_gate_and_inbox(store, Policy())
    return AppServices(store=store, gate=gate, inbox=inbox, clock=store.clock, retention=retention)


def build_gate_and_inbox(store: SqlStore, policy: Policy, poll_interval: float = POLL_INTERVAL) -> tuple[Gate, Inbox]:
    from interlock.app.inbox import Inbox

    gate = build_gate(store, policy, poll_interval)
    return gate, Inbox(store, gate.in_force, store.clock, compile_condition, validate)


def build_gate(store: SqlStore, policy: Policy, poll_interval: float = POLL_INTERVAL) -> Gate:
    return Gate(
        store,
        PolicyInForce(store, policy),
        clock=store.clock,
        compile_condition=compile_condition,
        validate=validate,
        is_dead=is_dead,
        poll_interval=poll_interval,
    )


async def load_stored_policy(
    store: SqlStore, workspace: str, configured: ConfiguredPolicy | None = None
) -> PolicyEpoch:
    """The policy in force, combined with the program's own if that is stale; its own where none is stored."""
    stored, agents = await store.policy(workspace), await store.agents(workspace)
    revision = policy_revision(stored, agents)
    if stored is None and configured is None and not agents:
        return PolicyEpoch(Policy(), revision)
    from interlock.policy.file import load_effective_policy, load_policy

    names = known_names(await store.users(workspace), PolicyChannelSettings())
    toggles = merge_toggles({}, agents)

    def load(text: str) -> LoadedPolicy:
        return load_policy(text, compile_condition, names, toggles)

    if stored is None:
        return PolicyEpoch(load(configured.text if configured else "").policy, revision)
    return PolicyEpoch(load_effective_policy(stored, configured, load)[0].policy, revision)


def make_database(url: str, clock: Clock | None = None) -> Database:
    """`sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://…`."""
    kind, separator, rest = url.partition("://")
    match kind:
        case "sqlite" if separator and rest.startswith("/") and len(rest) > 1:
            return SqliteDatabase(_sqlite_path(url), clock or wall_clock)
        case "postgresql" | "postgres" if separator:
            from interlock.storage.postgres.database import PostgresDatabase

            return PostgresDatabase(url, clock)
        case "http" | "https":
            raise Misconfigured(
                "This is the address of a server. Give its database: sqlite:///file.db or postgresql://…."
            )
        case _:
            raise Misconfigured(f"The database address {mask_password(url)!r} is not one. {_right_form(url)}")


def _right_form(url: str) -> str:
    """What to write instead: the address of the file, if one was named without `sqlite:///`."""
    path = re.sub("^sqlite:(//)?", "", url)
    names_file = path != url or "/" in path or Path(path).suffix
    if names_file and path.strip("/") and not path.startswith("~") and ":" not in path:
        return f"Write sqlite:///{Path(path)} for that file."
    return "Use sqlite:///file.db, sqlite:////folder/file.db or postgresql://user@host/database."


def missing_database_file(url: str) -> Path | None:
    """The path of a database file that does not exist; a misspelt name must not look like an empty inbox."""
    path = database_file(url)
    return None if path is None or path.exists() else path


def database_file(url: str) -> Path | None:
    """The path of a database that is a file."""
    return _sqlite_path(url) if url.startswith("sqlite:///") else None


def is_relative_database_url(url: str) -> bool:
    """Whether it names another database in another working folder."""
    return url.startswith("sqlite:///") and not url.removeprefix("sqlite:///").startswith("/")


def mask_password(url: str) -> str:
    """A URL for display, without its password."""
    return re.sub(r"(?<=://)([^@/:]*):[^@/]*@", r"\1:…@", url)


def database_option(url: str) -> str:
    """`--database URL` for a shell in any folder: a file by its absolute path, and without a password."""
    from shlex import quote

    file = database_file(url)
    return f"--database {quote(_strip_password(url) if file is None else f'sqlite:///{file}')}"


def approval_link(url: str, workspace: str = DEFAULT_WORKSPACE) -> str:
    """The link to an approval, with {id} in it: the web app of a server, or the command for a database."""
    if url.partition("://")[0].lower() in ("http", "https"):
        return f"{url.rstrip('/')}/a/{{id}}"
    from shlex import quote

    more = "" if workspace == DEFAULT_WORKSPACE else f" --workspace {quote(workspace)}"
    return f"interlock approvals show {{id}} {database_option(url)}{more}"


def _strip_password(url: str) -> str:
    """Also without one in the query; the driver takes it from PGPASSWORD or ~/.pgpass."""
    kind, separator, rest = url.partition("://")
    server, slash, more = rest.partition("/")
    login, at, host = server.rpartition("@")
    place, _, query = f"{host}{slash}{more}".partition("?")
    left = "&".join(each for each in query.split("&") if not each.lower().partition("=")[0].endswith("password"))
    return f"{kind}{separator}{login.partition(':')[0]}{at}{place}{'?' if left else ''}{left}"


def _sqlite_path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///")).absolute()
