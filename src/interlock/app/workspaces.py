"""Services of each workspace: a gate and an inbox under its own policy, which is reloaded while the server runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TypeVar

from interlock.app.bootstrap import PolicyChannelSettings, Toggles, known_names
from interlock.app.gate import Gate
from interlock.app.inbox import Inbox, active_delegations
from interlock.app.policy_in_force import merge_toggles, policy_revision
from interlock.core.call import DEFAULT_WORKSPACE, ToolSpec
from interlock.core.decision import Reviewer
from interlock.core.errors import Misconfigured, StoreUnavailable
from interlock.core.identity import AGENT, Principal
from interlock.core.pins import Pin, Pins
from interlock.core.policy.policy import Policy
from interlock.core.ports import AgentDeletion, AgentVersion, PolicyRevision, PolicyVersion, Store, Trace, User
from interlock.policy.conditions import compile_condition
from interlock.policy.file import ConfiguredPolicy, LoadedPolicy, StalePolicy, load_effective_policy, load_policy

T = TypeVar("T")

MAX_CACHED_GATES = 1_000  # gates for external programs, by the owners of their calls
REFRESH_INTERVAL = 1.0  # seconds until a change of another process is loaded
MakeGateAndInbox = Callable[[Policy], tuple[Gate, Inbox]]
FindPolicyChannelSettings = Callable[[str], PolicyChannelSettings]  # by workspace


@dataclass(frozen=True)
class WorkspaceSnapshot:
    """The stored state of a workspace: its policy, its people and its agents by name, its pins.

    `non_ascii_people` and `non_ascii_pins` are the names that are not plain ASCII: a plain name can only be mistaken
    for one of these.
    """

    policy: PolicyVersion | None
    people: Mapping[str, User]
    agents: Mapping[str, AgentVersion]
    pins: Pins

    @cached_property
    def policy_revision(self) -> PolicyRevision:
        return policy_revision(self.policy, self.agents.values())

    @cached_property
    def non_ascii_people(self) -> tuple[str, ...]:
        """By name and e-mail address."""
        return tuple(each for user in self.people.values() for each in (user.name, user.email) if not each.isascii())

    @cached_property
    def non_ascii_pins(self) -> tuple[str, ...]:
        return tuple(pin.tool for pin in self.pins.items if not pin.tool.isascii())


@dataclass(kw_only=True)
class WorkspaceServices:
    """The services of a workspace; `people` are its people, by name.

    `gate` is for internal use, such as the chat; external programs get one from `gate_for`.
    """

    workspace: str
    gate: Gate
    inbox: Inbox
    loaded_policy: LoadedPolicy
    snapshot: WorkspaceSnapshot
    stale_policy: StalePolicy | None = None
    _gates: dict[frozenset[str] | None, Gate] = field(default_factory=dict, init=False, repr=False, compare=False)

    def gate_for(self, principal: Principal) -> Gate:
        """A gate for an external program: an agent's key reaches its own calls, a person those of the workspace."""
        owners = principal.owners if principal.role == AGENT else None
        gate = self._gates.get(owners)
        if gate is None or gate.epoch is not self.gate.in_force.epoch:
            if len(self._gates) >= MAX_CACHED_GATES:
                self._gates.clear()
            gate = self._gates[owners] = self.gate.for_external(owners)
        return gate

    @property
    def body(self) -> str:
        return self.snapshot.policy.body if self.snapshot.policy else ""

    @property
    def people(self) -> Mapping[str, User]:
        return self.snapshot.people

    @property
    def agents(self) -> Mapping[str, AgentVersion]:
        return self.snapshot.agents

    @property
    def pins(self) -> Pins:
        return self.snapshot.pins

    def reviewer(self, principal: Principal, now: int) -> Reviewer:
        """A person with the current delegations to them."""
        covers = active_delegations(self.people.values(), principal.name, principal.teams, now)
        return replace(principal.reviewer(), delegations_to_me=covers)

    def set_policy(
        self, loaded: LoadedPolicy, stale: StalePolicy | None = None, revision: PolicyRevision | None = None
    ) -> None:
        self.loaded_policy, self.stale_policy = loaded, stale
        self.gate.in_force.set_policy(loaded.policy, revision)


class Workspaces:
    """Services by workspace; `toggles` are those of the configuration, replaced by stored settings of an agent.

    `channel_settings` holds for all workspaces, or gives those of one. `configured` is the configuration's policy, for
    the default workspace; `on_stale_policy` is called if it is not in force.
    """

    def __init__(
        self,
        store: Store,
        make: MakeGateAndInbox,
        toggles: Toggles,
        channel_settings: PolicyChannelSettings | FindPolicyChannelSettings = PolicyChannelSettings(),  # noqa: B008  frozen
        configured: ConfiguredPolicy | None = None,
        on_stale_policy: Callable[[StalePolicy], None] = lambda _: None,
    ) -> None:
        self._configured = configured
        self._on_stale_policy = on_stale_policy
        self._store = store
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="interlock-policy")
        self._make = make
        self._toggles = toggles
        self._channel_settings: FindPolicyChannelSettings = (
            channel_settings if callable(channel_settings) else lambda _: channel_settings
        )
        self._services: dict[str, WorkspaceServices] = {}
        self._opening = asyncio.Lock()
        self._refreshing = asyncio.Lock()

    async def services(self, workspace: str) -> WorkspaceServices:
        """The services of a workspace; raises if its policy does not load, so nothing is allowed."""
        known = self._services.get(workspace)
        if known is not None:
            return known
        async with self._opening:
            if workspace not in self._services:
                self._services[workspace] = await self._opened(workspace)
            return self._services[workspace]

    async def draft(self, workspace: str, body: str) -> LoadedPolicy:
        """Load a draft policy; raises Misconfigured with all problems, including unknown names of teams."""
        return await self._load_checked_policy(workspace, body, (await self.services(workspace)).snapshot)

    async def put_policy(
        self,
        workspace: str,
        body: str,
        author: str,
        reason: str = "",
        expected_version: int | None = None,
        trace: Trace | None = None,
    ) -> tuple[LoadedPolicy, PolicyVersion]:
        """Put a policy in force as a new version: here at once, in other processes within a second."""
        loaded = await self.draft(workspace, body)
        version = await self._store.put_policy(
            workspace, loaded.policy.sha256, body, author, reason=reason, expected_version=expected_version, trace=trace
        )
        await self.refresh(workspace)
        return loaded, version

    async def apply_configured_policy(self, author: str, reason: str) -> None:
        """At the start, store the configured policy as a new version, unless this text was already applied once."""
        configured = self._configured
        if configured is not None and (
            configured.is_always_applied or not await self._store.has_policy(DEFAULT_WORKSPACE, configured.sha256)
        ):
            await self._load_checked_policy(DEFAULT_WORKSPACE, configured.text, await self._read(DEFAULT_WORKSPACE))
            await self._store.put_policy_file(
                DEFAULT_WORKSPACE,
                configured.sha256,
                configured.text,
                author,
                reason,
                reapply=configured.is_always_applied,
            )
        await self.refresh(DEFAULT_WORKSPACE)

    async def put_agent(
        self,
        workspace: str,
        name: str,
        body: str,
        author: str,
        reason: str = "",
        expected_version: int | None = None,
        *,
        agents_revision: int | None = None,
    ) -> AgentVersion:
        """Like `put_policy`, for the settings of an agent; `body` is JSON with its `tool_approvals`."""
        version = await self._store.put_agent(
            workspace, name, body, author, reason, expected_version, agents_revision=agents_revision
        )
        await self.refresh(workspace)
        return version

    async def delete_agent(
        self,
        workspace: str,
        name: str,
        effect: AgentDeletion,
        author: str,
        reason: str = "",
        expected_version: int | None = None,
        *,
        agents_revision: int | None = None,
    ) -> Sequence[str]:
        """Delete an agent's stored settings; return the ids of the calls that were cancelled."""
        cancelled = await self._store.delete_agent(
            workspace, name, effect, author, reason, expected_version, agents_revision=agents_revision
        )
        await self.refresh(workspace)
        return cancelled

    async def pin(self, workspace: str, specs: Sequence[ToolSpec], agent: str, author: str) -> Sequence[Pin]:
        """Pin tools: here at once, in other processes within a second."""
        made = await self._store.pin(workspace, specs, agent, author)
        await self.refresh(workspace)
        return made

    async def unpin(self, workspace: str, tool: str, author: str) -> Pin:
        pin = await self._store.unpin(workspace, tool, author)
        await self.refresh(workspace)
        return pin

    async def poll_changes(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_INTERVAL)
            for workspace in list(self._services):
                with suppress(Misconfigured, StoreUnavailable):  # the loaded policy stays in force
                    await self.refresh(workspace)

    async def refresh(self, workspace: str) -> None:
        """Load changes: the freezes first, the people and the pins, then the agents and the policy.

        If a policy does not load, the one in force stays, and everything else is still updated.
        """
        services = await self.services(workspace)
        async with self._refreshing:  # an earlier read must not be applied after a later one
            services.gate.in_force.freezes = await self._store.open_freezes(workspace)
            snapshot = await self._read(workspace)
            if (snapshot.people, snapshot.pins) != (services.people, services.pins):
                services.gate.in_force.invalidate_all()
            if snapshot.pins == services.pins:
                snapshot = replace(snapshot, pins=services.pins)  # with its cached properties
            services.snapshot = replace(services.snapshot, people=snapshot.people, pins=snapshot.pins)
            if (snapshot.policy, snapshot.agents) != (services.snapshot.policy, services.agents):
                loaded, stale = await self._load_stored_policy(workspace, snapshot)
                if stale is not None and stale != services.stale_policy:
                    self._on_stale_policy(stale)
                services.set_policy(loaded, stale, snapshot.policy_revision)
            services.snapshot = snapshot

    def toggles(self, agents: Mapping[str, AgentVersion]) -> dict[str, Mapping[str, bool]]:
        return merge_toggles(self._toggles, agents.values())

    async def _opened(self, workspace: str) -> WorkspaceServices:
        snapshot = await self._read(workspace)
        loaded, stale = await self._load_stored_policy(workspace, snapshot)
        if stale is not None:
            self._on_stale_policy(stale)
        gate, inbox = self._make(loaded.policy)
        gate.in_force.set_policy(loaded.policy, snapshot.policy_revision)
        gate.in_force.reload = partial(self.refresh, workspace)
        gate.in_force.freezes = await self._store.open_freezes(workspace)
        return WorkspaceServices(
            workspace=workspace, gate=gate, inbox=inbox, loaded_policy=loaded, snapshot=snapshot, stale_policy=stale
        )

    async def _read(self, workspace: str) -> WorkspaceSnapshot:
        stored = await self._store.policy(workspace)
        users = await self._store.users(workspace)
        agents = await self._store.agents(workspace)
        pins = Pins(tuple(await self._store.pins(workspace)))
        people = {user.name: user for user in users}
        return WorkspaceSnapshot(stored, people, {agent.name: agent for agent in agents}, pins)

    async def _load_stored_policy(
        self, workspace: str, snapshot: WorkspaceSnapshot
    ) -> tuple[LoadedPolicy, StalePolicy | None]:
        """Load in a thread, without checking teams and channels: a missing one stops nothing."""
        toggles, own = self.toggles(snapshot.agents), self._channel_settings(workspace)
        configured = self._configured if workspace == DEFAULT_WORKSPACE else None

        def load(text: str) -> LoadedPolicy:
            return load_policy(text, compile_condition, None, toggles, own.reminders, own.expires_in)

        return await self._load(partial(load_effective_policy, snapshot.policy, configured, load))

    async def _load_checked_policy(self, workspace: str, body: str, snapshot: WorkspaceSnapshot) -> LoadedPolicy:
        """Load and check teams and channels."""
        own = self._channel_settings(workspace)
        names = known_names([user for user in snapshot.people.values() if user.removed_at is None], own)
        toggles = self.toggles(snapshot.agents)
        return await self._load(
            partial(load_policy, body, compile_condition, names, toggles, own.reminders, own.expires_in)
        )

    async def _load(self, work: Callable[[], T]) -> T:
        """Load in a thread of its own: programs can keep the others busy, and a policy must not wait for them."""
        return await asyncio.get_running_loop().run_in_executor(self._loader, work)
