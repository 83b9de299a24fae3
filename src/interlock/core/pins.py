"""Pinned tools: definitions that an admin vouches for, and differences to what agents declare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from interlock.core.call import ToolSpec, parse_spec
from interlock.core.canonical import canonical
from interlock.core.confusables import escape_non_ascii, looks_like, without_case
from interlock.core.errors import Conflict, InvalidRequest
from interlock.core.policy.policy import Policy

MAX_PINS = 10_000  # per workspace: more would not be read, and their tools judged by their agents' claims again
MAX_DECLARED = 1_000  # declared definitions stored per key for its reads; further ones are not listed
MAX_LISTED = 10_000  # definitions in a list, newest first for every key
OTHER_TOOLS = "(other)"  # reads of tools beyond those that are counted by name


@dataclass(frozen=True)
class Pin:
    """A pin; `definition` is that of a ToolSpec; `agent` is the one whose declaration it came from, or empty."""

    tool: str
    definition: bytes
    agent: str
    author: str
    at: int

    @cached_property
    def spec(self) -> ToolSpec:
        return parse_spec(self.definition)


@dataclass(frozen=True)
class Pins:
    """All pins of a workspace, by name; a name that differs in case only is the same tool."""

    items: tuple[Pin, ...] = ()

    def find(self, tool: str) -> Pin | None:
        return self.by_name.get(tool) or self._by_case.get(without_case(tool)) if self.items else None

    @cached_property
    def by_name(self) -> dict[str, Pin]:
        return {pin.tool: pin for pin in self.items}

    @cached_property
    def _by_case(self) -> dict[str, Pin]:
        return {without_case(pin.tool): pin for pin in self.items}


def make_pinned_spec(spec: ToolSpec, effect: str = "") -> ToolSpec:
    """The pinned part of a definition: without the sentence, preview and decisions of a single call."""
    chosen = effect or spec.effect
    if not chosen:
        raise InvalidRequest(f"Nobody said what {spec.name} does. Give its effect: read, write or destructive.")
    return ToolSpec(spec.name, chosen, schema=spec.schema, secret=spec.secret, idempotent=spec.idempotent)


def check_pin_name(pins: Pins, tool: str) -> None:
    """Raise Conflict if another pin has this name already, since it would be ambiguous which one counts."""
    known = pins.find(tool)
    if known is not None and known.tool != tool:
        raise Conflict(f"{known.tool} is pinned, and names that differ in case alone are one tool. Unpin it first.")
    alike = next((pin.tool for pin in pins.items if looks_like(tool, pin.tool)), "")
    if alike:
        raise lookalike_error(tool, alike, "pinned")


def check_pin_limit(pins: Pins, more: int) -> None:
    """Raise Conflict if so many new pins exceed the limit."""
    if len(pins.items) + more > MAX_PINS:
        raise Conflict(
            f"A workspace has at most {MAX_PINS:,} pins; {len(pins.items):,} are there, and {more:,} more were wanted. "
            "Nothing was pinned. Unpin tools that nobody calls any more: interlock tools unpin TOOL"
        )


def lookalike_error(tool: str, known: str, standing: str) -> Conflict:
    """The error for a tool that is not pinned because its name looks like a known one."""
    hint = " If that is the wrong one, unpin it first." if standing == "pinned" else ""
    return Conflict(
        f"{escape_non_ascii(tool)} looks like {escape_non_ascii(known)}, which is {standing}: it is not pinned.{hint}",
        tool=tool,
    )


def spec_differences(pin: ToolSpec, declared: ToolSpec) -> tuple[str, ...]:
    """How a declared definition differs from the pinned one, as text. What is not declared has not changed."""
    return tuple(_spec_differences(pin, declared))


def pin_mismatch_reason(pin: ToolSpec, declared: ToolSpec) -> str:
    """Why a call is asked about regardless of the rules; empty if it declares nothing that differs from the pin."""
    found = spec_differences(pin, declared)
    if not found:
        return ""
    return (
        f"The agent's program declares this tool otherwise than it is pinned: {', '.join(found)}. The call was judged "
        "as pinned, and asks regardless of the rules. If the change is meant, an admin pins the tool again."
    )


def naming_rule_text(policy: Policy, tool: str, agent: str) -> str:
    """The rule or switch that asks or denies and names the tool, which is then reviewed and pinned singly; or ""."""
    rules = (rule for rule in policy.rules if rule.then != "allow" and not rule.shadow)
    rule = next((rule for rule in rules if rule.names_tool(tool)), None)
    if rule is not None:
        return f"the rule {rule.name!r} names it"
    return f"a switch of the agent {agent} names it" if policy.is_switched_on((agent,), tool) else ""


def trusts_declared(policy: Policy) -> bool:
    """Whether the policy trusts an agent's claim about the effect of a tool that is not registered or pinned."""
    return policy.defaults.trust_declared and policy.defaults.unknown_tools != "deny"


def _spec_differences(pin: ToolSpec, declared: ToolSpec) -> Iterator[str]:
    if declared.effect and declared.effect != pin.effect:
        yield f"effect {declared.effect} instead of {pin.effect}"
    both = declared.schema is not None and pin.schema is not None
    if both and canonical(declared.schema) != canonical(pin.schema):
        yield "another schema"
    if declared.secret and _secret_pointers(declared) != _secret_pointers(pin):
        yield "other secret fields"
    defines = bool(declared.effect) or declared.schema is not None or declared.idempotent
    if defines and declared.idempotent != pin.idempotent:
        yield "idempotent" if declared.idempotent else "not idempotent"


def _secret_pointers(spec: ToolSpec) -> set[str]:
    """`/a` and plain `a` are the same place."""
    return {pointer.removeprefix("/") for pointer in spec.secret}
