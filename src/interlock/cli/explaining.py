"""By what `interlock policy explain` judges: the policy, and what is known here of tools, pins and people."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from interlock.app.bootstrap import absent, doors_of, names_of, wire
from interlock.app.workspaces import Known, Workspaces
from interlock.chat.assistant import equipment_of
from interlock.chat.tool_registry import Registered
from interlock.cli.policies import Source, complaining, configured, current, load
from interlock.cli.shared import Options, kept
from interlock.config.load import Settings
from interlock.config.models import DEFAULT_WORKSPACE
from interlock.core.pins import Pins
from interlock.core.ports import User
from interlock.notify.workspace_channels import reaching_of
from interlock.policy.file import Loaded
from interlock.policy.own_file import configured_policy
from interlock.server.explain import Question
from interlock.server.proposals import known_spec
from interlock.storage.store import SqlStore


@dataclass(frozen=True)
class Surroundings:
    """What a server on the same database and configuration would judge by, but for the tools of MCP servers."""

    settings: Settings
    registered: Registered
    workspace: str
    source: Source
    loaded: Loaded
    known: Known
    is_kept: bool

    @property
    def people(self) -> Mapping[str, User]:
        return self.known.people

    @property
    def pins(self) -> Pins:
        return self.known.pins

    def with_limits(self, asked: Question) -> Question:
        """And what cannot be known here."""
        return asked._replace(notes=(*asked.notes, *self._limits(asked)))

    def _limits(self, asked: Question) -> Iterator[str]:
        if known_spec(asked.call.tool, self, self) is not None:
            return
        servers = [name for name, each in self.settings.mcp_servers.items() if self.workspace in each.workspaces]
        if servers:
            yield (
                f"Tools of MCP servers ({', '.join(servers)}) are known only to a server that runs. If "
                f"{asked.call.tool} is one of them, ask there: the page Policy, or POST /api/policy/explain."
            )
        if not self.is_kept and asked.call.caller is not None:
            yield "There is no database here: a pin of the tool, people and the switches of agents are not known."


@asynccontextmanager
async def surroundings(options: Options, draft: Source | None) -> AsyncIterator[Surroundings]:
    """With the database if there is one; one that was named has to be there."""
    settings = options.settings()
    if not options.database and absent(settings.storage.url) is not None:
        own, reaching = settings.of(options.workspace), reaching_of(settings, options.workspace)
        source = draft or _configured(settings, options.workspace)
        loaded = load(source, own, names_of([], reaching) if draft else None)
        registered, nothing = _registered(settings, wire(settings.storage.url).store), Known(None, {}, {}, Pins())
        yield Surroundings(settings, registered, options.workspace, source, loaded, nothing, is_kept=False)
        return
    async with kept(options) as desk:
        store = desk.parts.store
        workspaces = Workspaces(
            store,
            partial(doors_of, store),
            settings.toggles(),
            partial(reaching_of, settings),
            configured_policy(settings),
        )
        stored = await store.policy(desk.workspace)
        in_force = await current(desk) if stored else _configured(settings, desk.workspace)
        with complaining(in_force):
            doors = await workspaces.doors(desk.workspace)
        source, loaded = draft or in_force, doors.loaded
        if draft or doors.known.policy is None:  # then the configuration's is put in force when a server starts
            with complaining(source):
                loaded = await workspaces.draft(desk.workspace, source.text)
        registered = _registered(settings, store)
        yield Surroundings(settings, registered, desk.workspace, source, loaded, doors.known, is_kept=True)


def _configured(settings: Settings, workspace: str) -> Source:
    """The configuration's policy is the default workspace's alone."""
    return configured(settings if workspace == DEFAULT_WORKSPACE else replace(settings, policy=None))


def _registered(settings: Settings, store: SqlStore) -> Registered:
    return Registered(settings.actions, equipment_of(settings, store).toolbox)
