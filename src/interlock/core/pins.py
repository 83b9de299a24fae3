"""Pinned tools: what an admin vouches for of a tool that agents declare, and how a call may declare it otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from interlock.core.call import ToolSpec, parse_spec
from interlock.core.canonical import canonical
from interlock.core.errors import Conflict, InvalidRequest
from interlock.core.names import looks_like, spell_out, without_case
from interlock.core.policy.policy import Policy

MAX_PINS = 10_000  # of a workspace: more would not be read, and their tools would run on their agents' word again
MAX_DECLARED = 1_000  # definitions of one key that are noted of its reads; what it has more of is not listed
MAX_LISTED = 10_000  # definitions in a list, of every key the newest first
OTHER_TOOLS = "(other)"  # reads of the tools beyond those that are counted by name


@dataclass(frozen=True)
class Pin:
    """`definition` is that of a ToolSpec; `agent` is the one whose declaration it was taken from, or empty."""

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
    """All pins of a workspace, found by name; a name that differs in case alone is the same tool."""

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
    """What a pin holds of a definition: nothing of the sentence, the preview or the answers of one call."""
    chosen = effect or spec.effect
    if not chosen:
        raise InvalidRequest(f"Nobody said what {spec.name} does. Give its effect: read, write or destructive.")
    return ToolSpec(spec.name, chosen, schema=spec.schema, secret=spec.secret, idempotent=spec.idempotent)


def check_pin_name(pins: Pins, tool: str) -> None:
    """Raises Conflict where another pin stands for this name already: it could not be said which of them counts."""
    known = pins.find(tool)
    if known is not None and known.tool != tool:
        raise Conflict(f"{known.tool} is pinned, and names that differ in case alone are one tool. Unpin it first.")
    alike = next((pin.tool for pin in pins.items if looks_like(tool, pin.tool)), "")
    if alike:
        raise lookalike_error(tool, alike, "pinned")


def check_pin_limit(pins: Pins, more: int) -> None:
    """Raises Conflict where so many new pins have no room."""
    if len(pins.items) + more > MAX_PINS:
        raise Conflict(
            f"A workspace has at most {MAX_PINS:,} pins; {len(pins.items):,} are there, and {more:,} more were wanted. "
            "Nothing was pinned. Unpin tools that nobody calls any more: interlock tools unpin TOOL"
        )


def lookalike_error(tool: str, known: str, standing: str) -> Conflict:
    """Why a tool is not pinned: a reader would take its name for another that is known."""
    hint = " If that is the wrong one, unpin it first." if standing == "pinned" else ""
    return Conflict(
        f"{spell_out(tool)} looks like {spell_out(known)}, which is {standing}: it is not pinned.{hint}", tool=tool
    )


def spec_differences(pin: ToolSpec, declared: ToolSpec) -> tuple[str, ...]:
    """How a declared definition differs from the pinned one, in words. What is not declared has not changed."""
    return tuple(_spec_differences(pin, declared))


def pin_mismatch_reason(pin: ToolSpec, declared: ToolSpec) -> str:
    """Why a call is asked about whatever the rules say; empty if it declares nothing that differs from the pin."""
    found = spec_differences(pin, declared)
    if not found:
        return ""
    return (
        f"The agent's program declares this tool otherwise than it is pinned: {', '.join(found)}. The call was judged "
        "as pinned, and asks whatever the rules say. If the change is meant, an admin pins the tool again."
    )


def naming_rule_text(policy: Policy, tool: str, agent: str) -> str:
    """Which rule or switch asks or denies and names the tool, so that its effect is looked at by itself; or nothing."""
    rules = (rule for rule in policy.rules if rule.then != "allow" and not rule.shadow)
    rule = next((rule for rule in rules if rule.names_tool(tool)), None)
    if rule is not None:
        return f"the rule {rule.name!r} names it"
    return f"a switch of the agent {agent} names it" if policy.is_switched_on((agent,), tool) else ""


def trusts_declared(policy: Policy) -> bool:
    """Whether the policy takes an agent's word for what a tool does that nobody registered or pinned."""
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
