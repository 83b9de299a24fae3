"""The policy in force for a workspace (the database's, else the configuration's, else the defaults), and its tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from interlock.app.policy_in_force import merge_toggles, policy_revision
from interlock.cli.context import CommandContext
from interlock.config.load import Settings
from interlock.core.errors import Misconfigured, NotFound
from interlock.core.ports import PolicyVersion
from interlock.policy.conditions import compile_condition
from interlock.policy.file import (
    KnownNames,
    LoadedPolicy,
    load_effective_policy,
    load_policy,
    read_configured_policy,
)

if TYPE_CHECKING:  # a decision needs the policy alone
    from interlock.app.tool_catalog import ToolCatalog


@dataclass(frozen=True, slots=True)
class PolicySource:
    """The text of a policy, and its origin."""

    text: str
    origin: str


async def put_current_in_force(context: CommandContext) -> None:
    """Put the policy in force that a server would judge by, with this configuration.

    Whether teams have members is not checked: an empty team must not block decisions.
    """
    stored = await context.services.store.policy(context.workspace)
    agents = await context.services.store.agents(context.workspace)
    settings, source = context.workspace_settings, await current_source(context)
    toggles = merge_toggles(settings.toggles(), agents)

    def load(text: str) -> LoadedPolicy:
        return load_policy(text, compile_condition, None, toggles, settings.routing.reminders, settings.expires_in)

    with name_source_in_errors(source):
        configured = read_configured_policy(context.settings) if stored is not None else None
        loaded = load_effective_policy(stored, configured, load)[0] if stored is not None else load(source.text)
    in_force = context.services.inbox.in_force
    in_force.set_policy(loaded.policy, policy_revision(stored, agents))
    in_force.reload = partial(put_current_in_force, context)


async def current_source(context: CommandContext) -> PolicySource:
    stored = await context.services.store.policy(context.workspace)
    if stored is None:
        return configured_source(context.settings)
    return PolicySource(stored.body, f"version {stored.version} in the database, by {stored.author}")


async def find_version(context: CommandContext, number: int | None) -> PolicyVersion:
    """A version stored in the database; without a number, the newest."""
    newest = await context.services.store.policy(context.workspace)
    if number is None and newest is not None:
        return newest
    if newest is None or number is None or not 1 <= number <= newest.version:
        there = f"Versions are 1 to {newest.version}." if newest else "None is stored yet."
        raise NotFound(f"There is no version {1 if number is None else number} of the policy in this database. {there}")
    versions = await context.services.store.policies(context.workspace, newest.version - number + 1)
    found = [version for version in versions if version.version == number]
    return found[0] if found else await find_version(context, number)  # a newer version was stored meanwhile


def configured_source(settings: Settings) -> PolicySource:
    configured = read_configured_policy(settings)
    if configured is None:
        return PolicySource("", "the defaults: reads are allowed, all other calls need approval")
    return PolicySource(configured.text, configured.origin if configured.is_file else f"in {configured.origin}")


def load_source(source: PolicySource, settings: Settings, names: KnownNames | None = None) -> LoadedPolicy:
    with name_source_in_errors(source):
        return load_policy(
            source.text, compile_condition, names, settings.toggles(), settings.routing.reminders, settings.expires_in
        )


@contextmanager
def name_source_in_errors(source: PolicySource) -> Iterator[None]:
    """Add the origin of the policy to errors, which have line numbers."""
    try:
        yield
    except Misconfigured as error:
        lines = [f"{source.origin}: {line}" for line in error.message.splitlines()]
        raise Misconfigured("\n".join(lines)) from None


def declared_only_text(many: int) -> str:
    if many == 1:
        return "1 tool is trusted on its agent's declaration alone"
    return f"{many:,} tools are trusted on their agents' declaration alone"


async def make_catalog(context: CommandContext, agent: str = "") -> ToolCatalog:
    """The catalog of tools, without tools of MCP servers: only a running server is connected to them."""
    from interlock.app.tool_catalog import ToolCatalog
    from interlock.chat.assistant import build_chat_components
    from interlock.chat.tool_registry import RegisteredTools

    policy = load_source(await current_source(context), context.settings).policy
    registered = RegisteredTools(
        context.settings.actions, build_chat_components(context.settings, context.services.store).tool_registry
    )
    return ToolCatalog(context.services.store, context.workspace, policy, registered.specs(context.workspace), agent)
