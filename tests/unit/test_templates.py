"""Policy templates: what each allows, asks and denies, with calls that try to evade it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

import interlock.policy.templates
from interlock.core.call import ToolSpec, propose
from interlock.core.errors import NotFound
from interlock.core.policy.claims import judge
from interlock.core.policy.policy import HALF_TIME, Ask, Defaults, People, Policy, Verdict
from interlock.policy.conditions import compile_condition
from interlock.policy.file import KnownNames, load_policy
from interlock.policy.templates import TEMPLATE_NAMES, read_template, template_summary
from tests.hypothesis_profiles import examples
from tests.unit.builders import any_text, json_values

POLICIES = {name: load_policy(read_template(name), compile_condition).policy for name in TEMPLATE_NAMES}
LIMIT = 100
OUR_ACCOUNT = {"currency": "EUR", "recipient": "ann@example.com"}
HUGE_AMOUNT = 10**39
FINANCE = People(teams=frozenset({"finance"}))


def judge_by_template(
    name: str, tool: str, effect: str, args: Any, *, declared: bool = False, **more: object
) -> Verdict:
    spec = ToolSpec(tool, effect, declared=declared)
    return judge(POLICIES[name], propose(tool, args, "run", "call", **{"requester": "rita", **more}), spec).verdict


def money(args: object, tool: str = "fund_transfer", effect: str = "write") -> str:
    """`ask 2` takes two people from finance, `ask 1` one, `ask` anybody."""
    verdict = judge_by_template("money", tool, effect, args)
    if not isinstance(verdict, Ask):
        return verdict.kind
    (stage,) = verdict.stages
    return f"ask {stage.quorum}" if stage.approvers == FINANCE else "ask"


# --- all of them


# R39
@pytest.mark.parametrize("name", TEMPLATE_NAMES)
def test_a_template_loads_without_a_warning_and_says_what_it_is_for(name: str) -> None:
    loaded = load_policy(read_template(name), compile_condition, KnownNames(teams=frozenset({"finance"})))
    assert loaded.warnings == ()
    assert read_template(name).startswith(f"# {template_summary(name)}\n")
    assert template_summary(name).endswith(".")
    assert read_template(name).count("\n#") + read_template(name).count("\n  #") >= 4, "it explains itself"


def test_every_file_of_the_folder_is_a_template() -> None:
    folder = Path(interlock.policy.templates.__file__).parent
    assert sorted(path.stem for path in folder.glob("*.yaml")) == sorted(TEMPLATE_NAMES)


def test_the_documentation_lists_the_templates_as_they_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
    assert [name for name in TEMPLATE_NAMES if f"\n{name:<11}{template_summary(name)}\n" not in page] == []


def test_an_unknown_template_is_told_with_those_that_there_are() -> None:
    with pytest.raises(NotFound) as caught:
        read_template("Money")
    assert caught.value.message == "There is no template 'Money'. There are balanced, strict, read-only, money."


# tool, effect, args → balanced, strict, read-only, money
TABLE = [
    ("get_page", "read", {}, "allow", "allow", "allow", "allow"),
    ("anything", "read", {}, "allow", "allow", "allow", "allow"),
    ("create_page", "write", {}, "ask", "ask", "deny", "ask"),
    ("delete_page", "destructive", {}, "ask", "ask", "deny", "ask"),
    ("drop_table", "destructive", {}, "ask", "ask", "deny", "ask"),
    ("get_page", "", {}, "ask", "deny", "deny", "ask"),
    ("read_everything", "", {}, "ask", "deny", "deny", "ask"),
    ("get_page", "write", {}, "ask", "ask", "deny", "ask"),
    ("list_then_transfer", "write", {"amount": 1, **OUR_ACCOUNT}, "ask", "ask", "deny", "allow"),
    ("pay", "read", {"amount": 5_000, **OUR_ACCOUNT}, "allow", "allow", "allow", "ask"),
    ("create_page", "write", {"approved": True, "effect": "read", "confirmed": "yes"}, "ask", "ask", "deny", "ask"),
    ("*", "", {}, "ask", "deny", "deny", "ask"),
    ("get_*", "", {}, "ask", "deny", "deny", "ask"),
    ("[pay]", "write", {"amount": 1, **OUR_ACCOUNT}, "ask", "ask", "deny", "ask"),
]


# R1, R39
@pytest.mark.parametrize(("tool", "effect", "args", "balanced", "strict", "read_only", "of_money"), TABLE)
def test_what_each_template_makes_of_a_call(
    tool: str, effect: str, args: object, balanced: str, strict: str, read_only: str, of_money: str
) -> None:
    found = {name: judge_by_template(name, tool, effect, args).kind for name in TEMPLATE_NAMES}
    assert found == {"balanced": balanced, "strict": strict, "read-only": read_only, "money": of_money}


# R1
def test_a_tool_that_an_untrusted_program_calls_a_read_passes_only_where_programs_are_believed() -> None:
    found = {name: judge_by_template(name, "get_page", "read", {}, declared=True).kind for name in TEMPLATE_NAMES}
    assert found == {"balanced": "allow", "strict": "deny", "read-only": "deny", "money": "ask"}


# R9
@pytest.mark.parametrize("name", TEMPLATE_NAMES)
@pytest.mark.parametrize("effect", ["write", "destructive", ""])
def test_no_switch_of_an_agent_loosens_a_template(name: str, effect: str) -> None:
    toggles = {"helper": {"tidy_up": False}}
    loose = load_policy(read_template(name), compile_condition, toggles=toggles).policy
    verdict = loose.judge(propose("tidy_up", {}, "run", "call", agent="helper"), ToolSpec("tidy_up", effect))
    assert verdict == judge_by_template(name, "tidy_up", effect, {}, agent="helper")
    assert verdict.kind != "allow"


# --- who is asked


# R48
@pytest.mark.parametrize(
    ("name", "tool", "effect", "quorum", "excluded"),
    [
        ("balanced", "create_page", "write", 1, set()),
        ("balanced", "delete_page", "destructive", 1, {"requester"}),
        ("balanced", "drop_table", "destructive", 2, {"requester"}),
        ("balanced", "delete_all", "destructive", 2, {"requester"}),
        ("balanced", "delete_all_posts", "destructive", 2, {"requester"}),
        ("balanced", "cms_delete_all", "destructive", 2, {"requester"}),
        ("balanced", "list_all", "destructive", 1, {"requester"}),
        ("balanced", "drop_table", "write", 1, set()),
        ("strict", "create_page", "write", 1, {"editor"}),
        ("strict", "delete_page", "destructive", 2, {"requester"}),
        ("money", "delete_page", "destructive", 1, set()),
    ],
)
def test_four_eyes_are_asked_where_it_pays(name: str, tool: str, effect: str, quorum: int, excluded: set[str]) -> None:
    verdict = judge_by_template(name, tool, effect, {})
    assert isinstance(verdict, Ask)
    assert ([stage.quorum for stage in verdict.stages], set(verdict.exclude)) == ([quorum], excluded)


# R5
@pytest.mark.parametrize("name", TEMPLATE_NAMES)
def test_the_templates_give_people_the_time_of_the_defaults_and_remind_them(name: str) -> None:
    assert POLICIES[name].defaults.expires_in == Defaults().expires_in
    assert POLICIES[name].defaults.remind == (HALF_TIME,)


# R1
@pytest.mark.parametrize("name", TEMPLATE_NAMES)
def test_nobody_answering_is_never_a_yes(name: str) -> None:
    asking = [rule.ask.on_expiry for rule in POLICIES[name].rules if rule.then == "ask"]
    assert {*asking, POLICIES[name].defaults.on_expiry} == {"reject"}


def test_read_only_says_why_it_refuses() -> None:
    verdict = judge_by_template("read-only", "create_page", "write", {})
    assert "only read" in str(verdict)


# --- money


# R38, R39, R48
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"amount": 50, **OUR_ACCOUNT}, "allow"),
        ({"amount": 0.01, **OUR_ACCOUNT}, "allow"),
        ({"amount": LIMIT, **OUR_ACCOUNT}, "allow"),
        ({"amount": LIMIT + 0.01, **OUR_ACCOUNT}, "ask 1"),
        ({"amount": 1_000, **OUR_ACCOUNT}, "ask 1"),
        ({"amount": 1_000.01, **OUR_ACCOUNT}, "ask 2"),
        ({"amount": 1e308, **OUR_ACCOUNT}, "ask 2"),
        ({"amount": 2**62, **OUR_ACCOUNT}, "ask 2"),
        # an amount that is none
        ({"amount": HUGE_AMOUNT, **OUR_ACCOUNT}, "deny"),
        ({"amount": -HUGE_AMOUNT, **OUR_ACCOUNT}, "deny"),
        ({"amount": 0, **OUR_ACCOUNT}, "deny"),
        ({"amount": -0.0, **OUR_ACCOUNT}, "deny"),
        ({"amount": -50, **OUR_ACCOUNT}, "deny"),
        ({"amount": "50", **OUR_ACCOUNT}, "deny"),
        ({"amount": "", **OUR_ACCOUNT}, "deny"),
        ({"amount": True, **OUR_ACCOUNT}, "deny"),
        ({"amount": None, **OUR_ACCOUNT}, "deny"),
        ({"amount": [50], **OUR_ACCOUNT}, "deny"),
        ({"amount": {"value": 50}, **OUR_ACCOUNT}, "deny"),
        # no amount, or one by another name
        ({**OUR_ACCOUNT}, "ask 2"),
        ({"Amount": 50, **OUR_ACCOUNT}, "ask 2"),
        ({"payment": {"amount": 50}, **OUR_ACCOUNT}, "ask 2"),
        ({}, "ask 2"),
        # currency
        ({"amount": 50, "recipient": "ann@example.com"}, "ask 1"),
        ({"amount": 50, "currency": "KWD", "recipient": "ann@example.com"}, "ask 2"),
        ({"amount": 50, "currency": "eur", "recipient": "ann@example.com"}, "ask 2"),
        ({"amount": 50, "currency": "EUR ", "recipient": "ann@example.com"}, "ask 2"),
        ({"amount": 50, "currency": ["EUR"], "recipient": "ann@example.com"}, "ask 2"),
        ({"amount": 50, "currency": None, "recipient": "ann@example.com"}, "ask 2"),
        # recipient
        ({"amount": 50, "currency": "EUR"}, "ask 1"),
        ({"amount": 50, "currency": "EUR", "recipient": "eve@elsewhere.example"}, "ask 1"),
        ({"amount": 50, "currency": "EUR", "recipient": "eve@elsewhere.example,ann@example.com"}, "ask 1"),
        ({"amount": 50, "currency": "EUR", "recipient": "eve@elsewhere.example\nann@example.com"}, "ask 1"),
        ({"amount": 50, "currency": "EUR", "recipient": "ann@example.com\n"}, "ask 1"),
        ({"amount": 50, "currency": "EUR", "recipient": "ann@example.com.elsewhere.example"}, "ask 1"),
        ({"amount": 50, "currency": "EUR", "recipient": "ann@exampleXcom"}, "ask 1"),
        ({"amount": 50, "currency": "EUR", "recipient": "\u0430nn@example.com"}, "ask 1"),
        ({"amount": 50, "currency": "EUR", "recipient": ["ann@example.com"]}, "ask 1"),
        ({"amount": 50, "currency": "EUR", "recipient": 7}, "ask 1"),
    ],
)
def test_what_money_makes_of_a_payment(args: dict[str, object], expected: str) -> None:
    assert money(args) == expected


# R38, R39
@pytest.mark.parametrize("tool", ["pay", "pay_invoice", "refund", "refund_order", "fund_transfer", "bank_payment"])
@pytest.mark.parametrize("effect", ["read", "write", "destructive", ""])
def test_a_tool_that_moves_money_is_one_whatever_its_effect_is_said_to_be(tool: str, effect: str) -> None:
    assert money({"amount": 5_000, **OUR_ACCOUNT}, tool, effect) == "ask 2"
    assert money({"amount": 500, **OUR_ACCOUNT}, tool, effect) == "ask 1"
    assert money({"amount": -5, **OUR_ACCOUNT}, tool, effect) == "deny"


# R38, R39
@pytest.mark.parametrize(
    ("tool", "verdict"),
    [
        *(("Pay", "ask 1"), ("PAY", "ask 1"), ("p\u0430y", "deny"), ("pay ", "deny"), ("p\u200bay", "deny")),
        *(("payx", "ask"), ("xrefund", "ask"), ("transferring", "ask"), ("fund_transfers", "ask")),
    ],
)
def test_a_look_alike_of_a_tool_that_moves_money_gets_no_allowance(tool: str, verdict: str) -> None:
    assert money({"amount": 1, **OUR_ACCOUNT}, tool, "write") == verdict
    assert money({"amount": 1, **OUR_ACCOUNT}, tool, "") == verdict


def test_looking_at_payments_needs_name_and_effect() -> None:
    assert money({}, "get_payment", "read") == "allow"
    assert money({}, "transfer_status", "read") == "allow"
    for effect in ("write", "destructive", ""):
        assert money({}, "get_payment", effect) == "ask 2"
    assert money({}, "make_payment", "read") == "ask 2"


def test_the_tools_that_move_money_are_the_same_in_every_rule() -> None:
    lists = [rule.tools for rule in POLICIES["money"].rules if "pay" in rule.tools]
    assert (len(lists), len(set(lists))) == (4, 1)


# --- for any arguments

PAYMENT_TOOLS = st.sampled_from(["pay", "pay_bill", "refund", "transfer", "fund_transfer", "withdraw", "card_payment"])
TOOLS = (
    PAYMENT_TOOLS
    | st.sampled_from(["get_page", "list_all", "create_page", "drop_table"])
    | st.text("abc_*?[]", min_size=1)
)
EFFECTS = st.sampled_from(["write", "destructive", ""])
AMOUNTS = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(1 - 10**40, 10**40 - 1)
    | st.floats(99, 101)
    | json_values
)
PAYMENTS = st.fixed_dictionaries(
    {},
    optional={
        "amount": AMOUNTS,
        "currency": st.sampled_from(["EUR", "USD"]) | json_values,
        "recipient": st.sampled_from(["ann@example.com", "eve@elsewhere.example"]) | json_values,
    },
)
ARGS = st.builds(
    lambda some, payment: {**some, **payment}, st.dictionaries(any_text, json_values, max_size=3), PAYMENTS
)
# Payments that pass or nearly do: arbitrary arguments almost never reach what is asserted of one that passes.
CLOSE_PAYMENTS = st.fixed_dictionaries(
    {
        "amount": st.floats(-1, 200, allow_nan=False) | st.integers(-1, 200) | st.sampled_from([True, "50", [50]]),
        "currency": st.sampled_from(["EUR", "EUR", "EUR", "USD"]),
        "recipient": st.sampled_from(["ann@example.com", "bob@example.com", "eve@elsewhere.example"]),
    },
    optional={"note": json_values},
)
SMALL_PAYMENT = {"amount": 50, **OUR_ACCOUNT}


# R1
@examples(300)
@given(tool=TOOLS, effect=EFFECTS, args=ARGS, declared=st.booleans())
def test_read_only_never_lets_anything_but_a_read_pass(
    tool: str, effect: str, args: dict[str, object], declared: bool
) -> None:
    assert judge_by_template("read-only", tool, effect, args, declared=declared).kind == "deny"
    assert judge_by_template("read-only", tool, "read", args, declared=True).kind == "deny"


# R38, R39, R48
@examples(1_000)
@example(tool="pay", effect="write", args=SMALL_PAYMENT)
@example(tool="refund", effect="", args={"amount": LIMIT, **OUR_ACCOUNT})
@example(tool="transfer", effect="read", args={"amount": 0.01, **OUR_ACCOUNT})
@example(tool="pay", effect="write", args={"amount": LIMIT + 0.01, **OUR_ACCOUNT})
@given(tool=PAYMENT_TOOLS, effect=EFFECTS | st.just("read"), args=CLOSE_PAYMENTS | ARGS)
def test_money_lets_nothing_pass_above_its_limit(tool: str, effect: str, args: dict[str, object]) -> None:
    verdict = money(args, tool, effect)
    event(verdict)
    if verdict == "allow":
        amount = args["amount"]
        assert isinstance(amount, int | float)
        assert not isinstance(amount, bool)
        assert 0 < amount <= LIMIT
        assert (args["currency"], str(args["recipient"]).endswith("@example.com")) == ("EUR", True)


# R38, R39
@examples(300)
@example(tool="pay", effect="write", args=SMALL_PAYMENT)
@example(tool="create_page", effect="write", args=SMALL_PAYMENT)
@given(tool=TOOLS, effect=EFFECTS, args=CLOSE_PAYMENTS | ARGS)
def test_only_money_lets_a_change_pass_and_only_for_its_own_tools(
    tool: str, effect: str, args: dict[str, object]
) -> None:
    for name in TEMPLATE_NAMES:
        passes = judge_by_template(name, tool, effect, args).kind == "allow"
        event(f"{name} passes: {passes}")
        assert not passes or (name == "money" and moves_money(POLICIES["money"], tool))


def moves_money(policy: Policy, tool: str) -> bool:
    (rule,) = [rule for rule in policy.rules if rule.name == "other payments ask finance"]
    ask = Policy((rule,)).judge(propose(tool, {}, "run", "call"), ToolSpec(tool, "write"))
    return isinstance(ask, Ask) and ask.rule == rule.name
