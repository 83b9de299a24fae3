"""Deleting an agent: what depends on it, what becomes of each, and why it cannot be deleted, if so.

Deletion removes the stored settings. An agent of the configuration file or the program, and one that is known from its
calls, remains without them; any other is gone. Nothing else is deleted: conversations stay readable, and keys, rules,
grants and freezes keep naming it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from interlock.chat.agents import AgentOrigin, ResolvedAgent
from interlock.core.card import escape_invisible
from interlock.core.confusables import fold_confusables, matches_pattern
from interlock.core.identity import ApiKey
from interlock.presenters.text import pluralize
from interlock.server.state import ServerState

MAX_NAMED = 5  # names in one sentence
REMAINS: Mapping[AgentOrigin | None, str] = {
    None: "The agent is gone, and its name is free again.",
    "configuration": "It returns to its settings in the configuration file.",
    "built-in": "It returns to its built-in settings.",
    "calls": "It stays in the list, because programs make calls in its name.",
}


@dataclass(frozen=True, kw_only=True)
class AgentDependents:
    """What depends on an agent; `remains_as` is its origin after the deletion, None if nothing of it remains.

    `callers` are agents that may call it, `switches` the tools whose stored switch ends.
    """

    remains_as: AgentOrigin | None
    threads: int
    active_threads: int
    open_calls: int
    callers: Sequence[str]
    switches: Sequence[str]
    keys: Sequence[str]
    rules: Sequence[str]
    grants: int
    blocked: str = ""

    @property
    def leaves_chat(self) -> bool:
        """Whether it cannot be used in the chat any more."""
        return self.remains_as in (None, "calls")

    def consequences(self) -> list[str]:
        """What becomes of each, in sentences for people."""
        return [*self._chat_sentences(), *self._other_sentences()]

    def _chat_sentences(self) -> Iterator[str]:
        yield REMAINS[self.remains_as]
        if not self.leaves_chat:
            yield from ["Its conversations and pending approvals stay as they are."] if self.threads else []
            return
        if self.threads:
            stay = "stays readable, but cannot continue" if self.threads == 1 else "stay readable, but cannot continue"
            yield f"{pluralize(self.threads, 'conversation', 'conversations')} {stay}."
        if self.active_threads:
            yield f"{_of_these(self.active_threads)} at work, and will be ended."
        if self.open_calls:
            are = "is cancelled and does not run" if self.open_calls == 1 else "are cancelled and do not run"
            yield f"{pluralize(self.open_calls, 'pending approval', 'pending approvals')} in its conversations {are}."
        if self.active_threads:
            yield "A call that has already started is not stopped; its result is kept."

    def _other_sentences(self) -> Iterator[str]:
        if self.switches:
            yield (
                f"Its approval {_plural(self.switches, 'switch ends', 'switches end')}: {_named(self.switches)}. "
                "The policy and each tool's default decide then."
            )
        if self.keys:
            yield (
                f"{_counted(self.keys, 'key stays', 'keys stay')} bound to this name: {_named(self.keys)}. To stop "
                "the programs that use them, revoke the keys or freeze the agent."
            )
        if self.rules:
            yield f"{_counted(self.rules, 'policy rule keeps', 'policy rules keep')} naming it: {_named(self.rules)}."
        if self.grants:
            keep = "stays valid" if self.grants == 1 else "stay valid"
            yield f"{pluralize(self.grants, 'grant', 'grants')} for this name {keep} until revoked or expired."


async def find_dependents(
    state: ServerState,
    workspace: str,
    name: str,
    agents: Mapping[str, ResolvedAgent],
    remains_as: AgentOrigin | None,
) -> AgentDependents:
    """Find what depends on an agent; `agents` are all of the workspace."""
    known = agents[name]
    services = await state.workspaces.services(workspace)
    threads = await state.store.threads.count_by_agent(workspace, name)
    callers = sorted(other for other, each in agents.items() if name in each.agent.agents)
    stored = json.loads(known.stored.body) if known.stored else {}
    keys = [key for key in await state.accounts.keys(workspace) if _is_bound(key, name, state.clock())]
    grants = await services.inbox.active_grants(workspace)
    return AgentDependents(
        remains_as=remains_as,
        threads=sum(threads.values()),
        active_threads=sum(count for status, count in threads.items() if status != "idle"),
        open_calls=await state.store.count_open_thread_calls(workspace, name),
        callers=callers,
        switches=sorted(stored.get("tool_approvals", {})),
        keys=sorted(key.name or key.id for key in keys),
        rules=[rule.name for rule in services.loaded_policy.policy.rules if _names(rule.agents, name)],
        grants=sum(_names((grant.agent,), name) for grant in grants),
        blocked=_find_obstacle(name, known.origin, remains_as, callers),
    )


def _find_obstacle(name: str, origin: AgentOrigin, remains_as: AgentOrigin | None, callers: Sequence[str]) -> str:
    """The reason why the agent cannot be deleted; empty if it can."""
    match origin:
        case "configuration":
            return f"{name} is defined in the configuration file. Remove it there and restart the server."
        case "built-in":
            return f"{name} is built in and cannot be deleted."
        case "calls":
            return f"{name} runs outside of Interlock and has no settings here. Freeze it, or revoke its keys."
        case "stored" if callers and remains_as in (None, "calls"):  # an external agent cannot be called
            return f"{_named(callers)} may call {name} as a sub-agent. Remove it from their settings first."
        case _:
            return ""


def _is_bound(key: ApiKey, name: str, now: int) -> bool:
    """Whether a valid key is bound to this name, as names of agents are compared."""
    is_valid = key.revoked_at is None and (key.expires_at is None or key.expires_at > now)
    return is_valid and fold_confusables(name) in map(fold_confusables, key.agents)


def _names(patterns: Sequence[str], name: str) -> bool:
    return any(pattern not in ("", "*") and matches_pattern(name, pattern) for pattern in patterns)


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(escape_invisible(name) for name in names[:MAX_NAMED])
    return shown if len(names) <= MAX_NAMED else f"{shown} and {len(names) - MAX_NAMED:,} more"


def _counted(names: Sequence[str], one: str, many: str) -> str:
    return pluralize(len(names), one, many)


def _plural(names: Sequence[str], one: str, many: str) -> str:
    return one if len(names) == 1 else many


def _of_these(count: int) -> str:
    return "1 of these is" if count == 1 else f"{count:,} of these are"
