"""Which policy is in force for this workspace: the database's, else the configuration's, else the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from interlock.cli.shared import Desk
from interlock.conditions import compile_condition
from interlock.core.errors import Misconfigured
from interlock.policy_file import Loaded, Names, load_policy, read_policy
from interlock.settings import InlinePolicy, Settings


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a policy, and where it is from."""

    text: str
    origin: str


async def load_current(desk: Desk) -> Loaded:
    """Without a look at who is in which team: a team that emptied must not keep people from deciding."""
    source = await current(desk)
    loaded = load(source, desk.settings)
    desk.parts.inbox.policy = loaded.policy
    return loaded


async def current(desk: Desk) -> Source:
    stored = await desk.parts.store.policy(desk.workspace)
    if stored is None:
        return configured(desk.settings)
    return Source(stored.body, f"version {stored.version} in the database, put there by {stored.author}")


def configured(settings: Settings) -> Source:
    match settings.policy:
        case InlinePolicy(text):
            return Source(text, f"in {settings.file}")
        case Path() as path:
            return Source(read_policy(path), str(path))
        case _:
            return Source("", "the defaults: reads are allowed, all else asks")


def load(source: Source, settings: Settings, names: Names | None = None) -> Loaded:
    """Complaints say in which policy, and each its line."""
    try:
        return load_policy(source.text, compile_condition, names, settings.toggles())
    except Misconfigured as error:
        lines = [f"{source.origin}: {line}" for line in error.message.splitlines()]
        raise Misconfigured("\n".join(lines)) from None
