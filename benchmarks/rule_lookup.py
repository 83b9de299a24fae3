"""The cost of finding a rule among 10, 1,000 and 10,000, with and without a condition."""

from __future__ import annotations

import time

from interlock.core.call import ToolSpec, propose
from interlock.core.policy.policy import Ask
from interlock.policy.conditions import compile_condition
from interlock.policy.file import load_policy


def policy_text(rules: int, condition: str) -> str:
    lines = ["version: 1", "rules:"]
    for number in range(rules - 1):
        lines += [f"  - name: rule {number}", f"    tools: [tool_{number}, 'group_{number}_*']", "    then: ask"]
    lines += [
        "  - name: the one",
        "    tools: [fund_transfer]",
        *condition.splitlines(),
        "    then: ask",
        "    quorum: 2",
    ]
    return "\n".join(lines)


def measure_load(rules: int) -> float:
    """Seconds to load a policy file in which every rule has a condition."""
    lines = ["version: 1", "rules:"]
    for number in range(rules):
        lines += [
            f"  - name: rule {number}",
            f"    tools: [tool_{number}]",
            f"    when: args.amount > {number}.0",
            "    then: ask",
        ]
    start_time = time.perf_counter()
    load_policy("\n".join(lines), compile_condition)
    return time.perf_counter() - start_time


def measure_judge(rules: int, condition: str = "", count: int = 20_000) -> float:
    """Seconds for one verdict; the call is a new object each time, as in production."""
    policy = load_policy(policy_text(rules, condition), compile_condition).policy
    spec = ToolSpec("fund_transfer", "write")
    calls = [propose("fund_transfer", {"amount": 5, "recipient": "a@b.example"}, "bench", str(n)) for n in range(count)]
    for call in calls:
        call.parsed_args  # noqa: B018  the arguments are parsed once for each call
    policy.judge(calls[0], spec)
    start_time = time.perf_counter()
    for call in calls:
        verdict = policy.judge(call, spec)
    spent = (time.perf_counter() - start_time) / count
    assert isinstance(verdict, Ask)
    return spent
