"""The policy that a process was started with, beside what is in force: an older text does not come back by itself.

A text that was never in force becomes a new version at the start. One that was replaced since stays replaced. Where
another file's text is in force instead, the process judges by both and the stricter verdict holds: nobody said which
of the two files is right. Where a person replaced it, theirs counts alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from interlock.config.models import InlinePolicy, PolicyFile, Settings
from interlock.core.ports import PolicyVersion
from interlock.policy.file import LoadedPolicy, read_policy_file


@dataclass(frozen=True, slots=True)
class ConfiguredPolicy:
    """`origin` is the file that holds the text, or what else it is from; `always` lets it win at every start."""

    text: str
    origin: str
    is_file: bool = True
    always: bool = False

    @property
    def sha256(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    def stale(self, in_force: PolicyVersion | None) -> StalePolicy | None:
        """None where its text is in force, or nothing is."""
        if in_force is None or in_force.sha256 == self.sha256:
            return None
        return StalePolicy(self, in_force.version, in_force.author, both=in_force.source == "file")


@dataclass(frozen=True, slots=True)
class StalePolicy:
    """Another version is in force than the process was started with; `both` if it judges by the two of them."""

    own: ConfiguredPolicy
    version: int
    author: str
    both: bool

    @property
    def message(self) -> str:
        replaced = (
            f"The policy of {self.own.origin} is not in force: version {self.version} by {self.author} replaced it"
        )
        if self.both:
            return f"{replaced}. That is another file's, so this process judges by both and the stricter verdict holds."
        return f"{replaced}, and counts alone."

    @property
    def command(self) -> str:
        """What puts it back."""
        return f"interlock policy put {self.own.origin if self.own.is_file else 'FILE'}"


def read_configured_policy(settings: Settings) -> ConfiguredPolicy | None:
    """What the configuration says; None where it says nothing. Raises Misconfigured for a file that cannot be read."""
    match settings.policy:
        case InlinePolicy(text):
            return ConfiguredPolicy(text, str(settings.file or "the configuration"), is_file=False)
        case PolicyFile(file, apply):
            return ConfiguredPolicy(read_policy_file(file), str(file), always=apply == "always")
        case Path() as path:
            return ConfiguredPolicy(read_policy_file(path), str(path))
        case _:
            return None


def load_effective_policy(
    in_force: PolicyVersion | None, own: ConfiguredPolicy | None, load: Callable[[str], LoadedPolicy]
) -> tuple[LoadedPolicy, StalePolicy | None]:
    """What is in force, and where that is another file's, the process's own policy beside it."""
    loaded, stale = load(in_force.body if in_force else ""), own.stale(in_force) if own else None
    if own is None or stale is None or not stale.both:
        return loaded, stale
    beside = load(own.text).policy
    return replace(loaded, policy=replace(loaded.policy, also=beside)), stale
