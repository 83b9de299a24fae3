"""The budget of a condition: steps and bytes are counted, and a condition over its budget is not evaluated."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

import cel
import pytest

from interlock.core.call import Caller, ToolCall, ToolSpec, propose
from interlock.core.errors import Misconfigured
from interlock.core.fast_dataclasses import fast_replace
from interlock.core.grant import Grant, covers, covers_all
from interlock.core.policy import claims
from interlock.core.policy.condition_budget import call_budget
from interlock.core.policy.policy import Allow, Ask, Condition, Deny, Policy, Rule, VerdictKind, call_facts
from interlock.policy.conditions import (
    MAX_COMPILE,
    MAX_COST,
    ConditionCost,
    ConditionTooCostly,
    ValueSize,
    compile_condition,
    estimate_pattern,
    is_flat,
    measure_size,
)

# seen(…) is called with what a step looks at, and gives it back. Conditions without it have it taken out.
COSTLY_CONDITIONS = (
    "args.items.filter(i, seen(i).amount > 10).size() > 3",
    "args.items.filter(i, seen(i) != 3).size() > 3",
    "args.items.map(i, seen(i)).size() > 3",
    "args.items.map(i, [seen(i), i, i]).map(j, [seen(j), j]).size() > 1",
    "args.items.map(i, seen(i) + i).map(i, seen(i) + i).map(i, seen(i) + i).size() > 2",
    "args.items.all(i, seen(args.items).size() > 1)",
    "args.items.all(i, i in seen(args.items))",
    "args.items.map(i, seen(args.items)).size() > 1",
    "args.items.map(i, seen(args)).map(j, [seen(j), args]).size() > 1",
    "args.items.all(i, seen(args.items + args.items + args.items).size() > 2)",
    "(args.items + args.items).all(i, seen(i) != 3)",
    "args.all(k, seen(args[k]) != 3)",
    "args.items.all(k, seen(args.items) != 3)",
    "args.items.exists_one(i, seen(i) == args.items)",
    "args.items.all(i, seen(args.text).contains('b') || true)",
    "args.items.all(i, seen(args.text).matches('a*b') || true)",
    "args.items.map(i, seen(args.text) + args.text).map(j, seen(j) + j).size() > 1",
    "args.items.filter(i, {'a': i, 'b': seen(args.items)} != {}).size() > 2",
    "[args.items, args.items].all(i, seen(i).size() > 3)",
    " + ".join(["seen(args.items)"] * 40) + " == []",
    " || ".join(["seen(args.items).size() < 0"] * 40),
    "seen(args.text).size() > 3",
    "seen(args.items) == args.items",
)
STEP_NS, BYTE_NS = 200, 0.5  # what the fastest machine needs for a step and for a byte of it, at least


@cache
def all_shapes() -> tuple[dict[str, object], ...]:
    return tuple(shapes())


def shapes() -> Iterator[dict[str, object]]:
    """Arguments of up to 1 MiB, in all the ways in which they can be large."""
    yield {"items": [3, 4, 5], "text": "aaa"}
    yield {"items": ["x", "y"], "text": "aaa"}
    for count in (3, 300, 1_000, 9_000):
        room = 1_000_000 // count
        items: list[object] = [list(range(count)), ["x" * room] * count, [{}] * count]
        items.append([{"amount": 20, "note": "x" * max(1, room - 30)}] * count)
        items.append([{f"k{number}": number for number in range(min(80, room // 10))}] * count)
        items.append([[1] * min(200, room // 3)] * count)
        items.append({str(number): number for number in range(count)})
        yield from ({"items": each, "text": "a" * (1_000_000 - 3 * count)} for each in items)
    deep: object = 1
    for _ in range(60):
        deep = [deep]
    yield {"items": deep, "text": "a" * 1_000_000}


@pytest.mark.parametrize("source", COSTLY_CONDITIONS)
def test_steps_times_bytes_of_what_is_evaluated_are_bounded(source: str) -> None:
    plain = compile_condition(source.replace("seen(", "("))
    begun = 0
    for args in all_shapes():
        if not can_start(plain, args):
            continue
        begun += 1
        steps, size = count_work(source, args)
        assert steps * STEP_NS + size * BYTE_NS <= MAX_COST, (steps, size)
    assert begun >= 2  # small ones are evaluated


def can_start(when: Condition, args: dict[str, object]) -> bool:
    try:
        when({"args": args})
    except (ConditionTooCostly, ValueError):
        return False
    except Exception:  # noqa: BLE001  of the wrong type: it was begun, and that is what counts
        return True
    return True


def count_work(source: str, args: dict[str, object]) -> tuple[int, int]:
    """How many steps an evaluation takes, and how many bytes it looks at in all of them."""
    sizes: list[int] = []

    def seen(value: object) -> object:
        sizes.append(json_size(value))
        return value

    context = cel.Context()
    context.add_function("seen", seen)
    context.add_variable("args", args)
    with contextlib.suppress(Exception):  # as above: it counts as far as it came
        cel.compile(source).execute(context)
    return len(sizes), sum(sizes)


def json_size(value: object) -> int:
    match value:
        case str():
            return len(value)
        case list():
            return 2 + len(value) * (1 + json_size(value[0])) if value else 2  # all items are alike
        case dict():
            return 2 + sum(3 + len(name) + json_size(inner) for name, inner in value.items())
        case _:
            return 1


BLOCKING_CONDITIONS = "args.items.filter(i, i.amount > 10).size() > 3"  # took seconds over 740 kB
ITEMS = [{"amount": 20, **{f"field_{number}": "x" * 80 for number in range(8)}} for _ in range(990)]


def test_a_condition_that_would_stop_the_server_holds_for_deny_and_ask_and_never_for_allow() -> None:
    call = propose("pay", {"items": ITEMS}, "run", "call")
    assert len(call.args) > 700_000
    when = compile_condition(BLOCKING_CONDITIONS)
    with pytest.raises(ConditionTooCostly, match="50 ms is the most"):
        when(call_facts(call, "write"))
    spec = ToolSpec("pay", "write")
    assert isinstance(Policy((Rule("many", "deny", when=when),)).judge(call, spec), Deny)
    assert isinstance(Policy((Rule("many", "ask", when=when),)).judge(call, ToolSpec("pay", "read")), Ask)
    assert not isinstance(Policy((Rule("many", "allow", when=when),)).judge(call, spec), Allow)


def test_a_grant_with_a_condition_that_would_take_long_covers_nothing() -> None:
    spec = ToolSpec("pay", "write")
    terms = Policy().judge(propose("pay", {}, "run", "call"), spec)
    assert isinstance(terms, Ask)

    when = "args.items.all(i, args.items[0].amount == 20)"
    grant = Grant(
        id="g",
        workspace="default",
        tool="pay",
        spec_sha256=spec.sha256,
        created_by="ann",
        teams=frozenset(),
        role="reviewer",
        created_at=0,
        expires_at=10,
        when=when,
    )

    def covered(items: list[dict[str, object]]) -> bool:
        call = propose("pay", {"items": items}, "run", "call", agent="bob")
        return covers(grant, call, spec, terms, compile_condition, 5)

    assert covered(ITEMS[:5])
    assert not covered(ITEMS)


def test_conditions_on_one_call_share_what_one_may_cost() -> None:
    facts = dict(call_facts(propose("pay", {"items": [[1]] * 4_990}, "run", "call"), "write"))
    one, two, three = (compile_condition(f"args.items.size() < {most}") for most in (3, 4, 5))
    assert one(facts) is False
    assert two(facts) is False
    for _ in range(2):
        with pytest.raises(ConditionTooCostly):
            three(facts)  # as the third rule of a policy: the two before it have had most of the time
    assert one(facts) is False  # is known
    small = compile_condition("args.amount > 5")
    assert [small({**facts, "args": {"amount": 6}}) for _ in range(3)] == [True] * 3  # what is cheap goes on


def test_small_calls_may_be_judged_any_number_of_times() -> None:
    call = propose("pay", {"items": [{"amount": number} for number in range(5)]}, "run", "call")
    facts, when = call_facts(call, "write"), compile_condition(BLOCKING_CONDITIONS)
    assert [when(facts) for _ in range(2_000)] == [False] * 2_000


LONG = "args.items.filter(x, x != 'q').size() > 100000"  # of LIST: false, after a good third of the time
LIST = {"items": ["abcd"] * 600}
UNKNOWN = ToolSpec("run", "write", declared=True)


def remote_call(agents: tuple[str, ...] = ("key",), args: Mapping[str, object] = LIST, **more: object) -> ToolCall:
    """With an ordinary key: it is judged as its program tells it and as the server knows it, for every effect."""
    caller = Caller(owner="key:x", owners=frozenset({"key:x"}), agents=agents, credential="x")
    return propose("run", args, "run", "call", caller=caller, **more)


def rules(*conditions: str, then: VerdictKind = "deny", **more: object) -> Policy:
    named = [(f"r{number}", compile_condition(source)) for number, source in enumerate(conditions)]
    return Policy(tuple(Rule(name, then, tools=("run",), when=when, **more) for name, when in named))  # type: ignore[arg-type]


MANY_RULES = tuple(f"Agent{number}" for number in range(64))


def test_a_condition_is_evaluated_once_for_all_ways_in_which_a_call_can_be_read() -> None:  # R34
    alone, many = remote_call(agent="Bot"), remote_call(MANY_RULES, expires_in=1_000)
    for call in (alone, many):
        assert isinstance(claims.judge(rules(LONG), call, UNKNOWN).verdict, Ask)
        assert isinstance(claims.judge(rules(LONG), call, UNKNOWN).verdict, Ask)  # as the quota and then the gate
    assert len(claims.call_interpretations(many)) == 128
    assert MAX_COST // 3 < call_budget(alone).spent == call_budget(many).spent <= MAX_COST


@pytest.mark.parametrize("agents", [("key",), MANY_RULES])
def test_readings_of_a_call_share_one_time_budget(agents: tuple[str, ...]) -> None:
    for source in (f"effect != '' && {LONG}", f"agent != '' && {LONG}", f"user != 'x' && {LONG}"):
        call = remote_call(agents, agent="Bot" if len(agents) == 1 else "", requester="Ann", aliases=("a@x.example",))
        assert isinstance(claims.judge(rules(source), call, UNKNOWN).verdict, Deny)
        assert call_budget(call).spent <= MAX_COST
        assert not isinstance(claims.judge(rules(source, then="allow"), call, UNKNOWN).verdict, Allow)


def test_other_settings_warnings_shadows_and_grants_have_no_time_of_their_own() -> None:
    silent = rules(f"true || effect == 'x' || {LONG}", then="ask", ask=Ask(on_expiry="approve"))
    shadow = replace(rules(f"tool != 'x' && {LONG}").rules[0], name="s", shadow=True)
    policy = replace(silent, rules=(shadow, *silent.rules))
    call = remote_call(agent="Bot", switch="off")
    judged = claims.judge(policy, call, UNKNOWN)
    assert isinstance(judged.verdict, Ask)
    assert policy.shadow_verdicts(call, UNKNOWN) == (("s", "deny"),)  # the time is up
    when = f"size(teams) == 0 && !({LONG})"
    grant = Grant(
        id="g",
        workspace="default",
        tool="run",
        spec_sha256=UNKNOWN.sha256,
        created_by="ann",
        teams=frozenset(),
        role="admin",
        created_at=0,
        expires_at=10,
        when=when,
    )
    assert not covers_all(grant, judged.interpretations, judged.effects, UNKNOWN, Ask(), compile_condition, 5)
    fresh = fast_replace(call, condition_budgets={})
    assert covers_all(grant, (fresh,), ("write",), UNKNOWN, Ask(), compile_condition, 5)
    assert call_budget(call).spent <= MAX_COST


def test_to_find_that_conditions_take_too_long_takes_of_the_same_time() -> None:
    conditions = [f"args.items.filter(x, x != '{number}').size() > 100000" for number in range(50)]
    large = remote_call(args={"items": [["abcd"] * 8] * 990, "n": list(range(99))})
    policy = rules(*conditions, "args.n.size() == 0", then="allow")
    assert isinstance(claims.judge(policy, large, ToolSpec("run", "write")).verdict, Ask)
    assert call_budget(large).spent >= MAX_COST
    assert isinstance(claims.judge(rules("args.n.size() == 0"), large, ToolSpec("run", "write")).verdict, Deny)
    huge = remote_call(args={"items": [0] * 9_900, "text": "é" * 9})
    longer = [f"[args.items, args.items, args.items].size() > {number}" for number in range(50)]
    claims.judge(rules(*longer, then="allow"), huge, ToolSpec("run", "write"))
    assert call_budget(huge).spent <= MAX_COST + 10_000_000


def test_short_values_may_be_read_often_but_not_without_limit() -> None:
    amount = {"amount": 6}
    few = remote_call(MANY_RULES, amount, expires_in=1_000)
    assert isinstance(claims.judge(rules("args.amount > 9"), few, UNKNOWN).verdict, Ask)
    assert call_budget(few).spent == 10_000  # a hundred are not counted, the others are known from the first of them
    names = remote_call(MANY_RULES, amount, expires_in=1_000)
    assert isinstance(claims.judge(rules("agent == 'x' && args.amount > 5"), names, UNKNOWN).verdict, Ask)
    assert call_budget(names).spent < MAX_COST // 10
    each = rules(*(f"agent + effect == '{number}' && args.amount > 5" for number in range(40)))
    assert isinstance(claims.judge(each, remote_call(MANY_RULES, amount, expires_in=1_000), UNKNOWN).verdict, Deny)


def test_other_arguments_are_another_call() -> None:
    call = remote_call(agent="Bot")
    assert isinstance(claims.judge(rules(f"effect != '' && {LONG}"), call, UNKNOWN).verdict, Deny)
    edited = replace(call, args=b'{"items":["q"]}')
    assert isinstance(claims.judge(rules(f"effect != '' && {LONG}"), edited, UNKNOWN).verdict, Ask)
    facts = call_facts(call, "write")
    assert compile_condition(LONG)({**facts, "args": {"items": ["a"]}}) is False


def test_only_a_policy_with_conditions_is_offloaded() -> None:
    plain = Policy((Rule("r", "deny"),))
    assert plain.max_inline_bytes > 1_000_000
    assert rules(LONG).max_inline_bytes == replace(plain, second_policy=rules(LONG)).max_inline_bytes < 10_000


@pytest.mark.parametrize(
    ("source", "args"),
    [
        ("args.items.all(k, args.items[k] >= 0)", {"items": {str(number): number for number in range(1_001)}}),
        ("args.all(k, true)", {str(number): number for number in range(1_001)}),
        ("args.items.size() > 1", {"items": [0] * 400_000}),
        ("args.items.size() > 1", {"items": [[]] * 300_000}),
        ("args.text.matches('(a|b)*a(a|b){12}c')", {"text": "ab" * 500_000}),
        ("args.items.all(i, args.text.contains(string(i)))", {"items": list(range(500)), "text": "a" * 500_000}),
        ("args.items.map(i, args.text + args.text).size() > 1", {"items": [1] * 500, "text": "a" * 500_000}),
        ("args.items.all(i, !i.matches('[\\\\w.]+@[a-z]+'))", {"items": ["a"] * 500}),
    ],
)
def test_too_much_raises_before_it_begins(source: str, args: dict[str, object]) -> None:
    with pytest.raises((ConditionTooCostly, ValueError)):
        compile_condition(source)({"args": args})


@pytest.mark.parametrize(
    ("source", "args"),
    [
        ("args.items.all(i, i.amount > 10)", {"items": [{"amount": 20, "note": "x" * 400}] * 1_000}),
        ("args.items.filter(i, i.amount > 10).size() > 3", {"items": [{"amount": 20, "note": "x"}] * 200}),
        ("args.items.map(i, i.price * i.count).exists(p, p > 10)", {"items": [{"price": 5, "count": 3}] * 200}),
        ("args.to.exists(a, !a.endsWith('@example.com'))", {"to": ["x@example.org"] * 1_000}),
        ("args.text.contains('b') || args.text.size() > 5", {"text": "a" * 1_000_000}),
        ("args.text.matches('(?i)drop\\\\s+table') || true", {"text": "a" * 100_000}),
        ("args.day.matches('^\\\\d{4}-\\\\d{2}-\\\\d{2}$')", {"day": "2030-01-01"}),
    ],
)
def test_ordinary_conditions_on_large_calls_are_evaluated(source: str, args: dict[str, object]) -> None:
    assert compile_condition(source)({"args": args}) is True


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("args.name.matches(args.pattern)", "needs a text in quotes for matches()"),
        ("args.name.matches('a' + user)", "needs a text in quotes for matches()"),
        ("args.name.matches(r'\\w{100}')", "too large a pattern"),
        ("args.name.matches('(a{1,100}){1,100}')", "too large a pattern"),
        ("args.name.matches('((((((a{10}){10}){10}){10}){10}){10})')", "too large a pattern"),
    ],
)
def test_patterns_from_outside_and_large_ones_refuse_to_load(source: str, words: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        compile_condition(source)
    assert words in caught.value.message


def test_a_pattern_is_counted_by_what_it_repeats() -> None:
    assert estimate_pattern("abc").states == 3
    assert estimate_pattern("(ab){5}c{2,4}d{3,}").states == 10 + 4 + 3
    assert estimate_pattern(r"[a-z\]]{2}").states == 8
    assert estimate_pattern(r"\p{Greek}\.").states == 6
    assert estimate_pattern("(a").states == 1
    assert estimate_pattern(r"\w{100}").compile > MAX_COMPILE > estimate_pattern(r"^\d{4}-\d{2}-\d{2}$").compile


def test_weight_counts_structure_and_text() -> None:
    assert measure_size([{"a": [1, 2.5, None]}]) == ValueSize(4 + 2 + 4 + 3, 4, 3)
    assert measure_size(["abc", "é"]) == ValueSize(4, 7, 0)
    with pytest.raises(OverflowError):
        measure_size([2**63])


def test_flat_values_are_few_and_short() -> None:
    assert is_flat(["abc", 1, 2.5, True], 3)
    assert not is_flat(["abcd"], 3)
    assert not is_flat([[]], 3)
    assert not is_flat([2**63], 3)


def test_the_count_knows_what_a_comprehension_reaches() -> None:
    inside, outside = (
        ConditionCost(text.split(), {}) for text in ("args . all ( i , i > 1 )", "args . all ( i , user > 1 )")
    )
    weight = ValueSize(500, 1_000, 100)
    assert outside.cost(weight) > 3 * inside.cost(weight)
