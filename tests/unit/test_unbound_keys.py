"""Keys bound to nobody while a rule asks or denies by name."""

from dataclasses import replace

import pytest

from interlock.core.identity import ApiKey
from interlock.core.policy.claims import unbound_keys_warning
from interlock.core.policy.policy import Policy, Rule

FREE = ApiKey("ilk_a", workspace="default", name="bot", role="agent", person="", created_by="ada", created_at=0)
BOUND = replace(FREE, agents=("office",), requester="none")
BY_AGENT = Rule("payroll asks", "ask", agents=("payroll",))
BY_PERSON = Rule("not for interns", "deny", teams=frozenset({"interns"}))


def warning(rule: Rule, *keys: ApiKey) -> str:
    return unbound_keys_warning(Policy((rule,)), keys, 10)


@pytest.mark.parametrize(
    ("rule", "key", "loose"),
    [
        (BY_AGENT, FREE, True),
        (BY_AGENT, BOUND, False),
        (BY_AGENT, replace(FREE, requester="none"), True),
        (BY_AGENT, replace(FREE, agents=("office",)), False),
        (BY_PERSON, FREE, True),
        (BY_PERSON, replace(FREE, requester="any"), False),
        (BY_PERSON, replace(FREE, agents=("office",)), True),
        (Rule("by name", "ask", users=("bob",)), FREE, True),
        (Rule("by condition", "ask", source='agent == "payroll"'), FREE, True),
        (Rule("by condition", "deny", source='"interns" in teams'), FREE, True),
        (Rule("anybody", "ask", agents=("*",), users=("*",)), FREE, False),
        (Rule("by tool", "ask", tools=("pay",), source="args.amount > 5.0"), FREE, False),
        (replace(BY_AGENT, then="allow"), FREE, False),
        (replace(BY_AGENT, shadow=True), FREE, False),
        (BY_AGENT, replace(FREE, revoked_at=5), False),
        (BY_AGENT, replace(FREE, expires_at=5), False),
        (BY_AGENT, replace(FREE, role="admin", person="ada"), False),
    ],
)
def test_a_key_is_named_if_a_rule_by_name_cannot_hold_it(rule: Rule, key: ApiKey, loose: bool) -> None:
    assert bool(warning(rule, key)) is loose


def test_the_message_counts_the_keys_and_names_the_rules() -> None:
    one = warning(BY_AGENT, FREE, BOUND)
    assert one.startswith("1 key of an agent is not bound")
    assert "('payroll asks')" in one
    assert "interlock keys create --agent NAME" in one
    many = unbound_keys_warning(Policy(tuple(replace(BY_AGENT, name=f"r{n}") for n in range(5))), [FREE] * 3, 10)
    assert many.startswith("3 keys of agents are not bound")
    assert "('r0', 'r1', 'r2', …)" in many
