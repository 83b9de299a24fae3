"""Full-text search: an approval as a document, and a query as required terms."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.approval.approval import STATUSES, DecisionRecord
from interlock.core.approval.vote import Vote
from interlock.core.call import ANY_OWNER, ToolSpec
from interlock.core.canonical import canonical
from interlock.core.errors import InvalidRequest
from interlock.core.ledger.event import Payload, Stored
from interlock.core.policy.policy import Ask, EscalationStep, Stage
from interlock.core.ports import ApprovalQuery
from interlock.core.search import (
    EXACT_TERM_PREFIX,
    MAX_ARGUMENTS,
    MAX_QUERY_WORDS,
    MAX_TEXT_LENGTH,
    MAX_WORD_LENGTH,
    MAX_WORDS,
    SearchTerms,
    make_search_terms,
    matches_query,
    needs_text_search,
    parse_argument_filter,
    search_document,
    split_words,
)
from tests.unit.builders import FINANCE, LEGAL, NOW, any_text, json_values, pending_with_payload

WITH_SECRET = ToolSpec("pay", "write", secret=("key", "/cards/*/number"))
scalars = st.none() | st.booleans() | st.integers(-(10**39), 10**39) | st.floats(allow_nan=False, allow_infinity=False)


def plain_words(stored: Stored) -> list[str]:
    return [word for word in search_document(stored).split(" ") if not word.startswith(EXACT_TERM_PREFIX)]


def exact_words(stored: Stored) -> set[str]:
    return {word for word in search_document(stored).split(" ") if word.startswith(EXACT_TERM_PREFIX)}


def index_finds(stored: Stored, **filters: Any) -> bool:
    """By the words alone, as an index would."""
    wanted = make_search_terms("default", ApprovalQuery(**filters))
    words = search_document(stored).split(" ")
    return (
        set(wanted.words) <= set(words)
        and all(not set(group).isdisjoint(words) for group in wanted.any_of)
        and any(word.startswith(wanted.prefix) for word in words if not word.startswith(EXACT_TERM_PREFIX))
    )


def both_find(stored: Stored, **filters: Any) -> bool:
    """By the words and by the approval itself, which have to agree."""
    found = index_finds(stored, **filters)
    assert found == matches_query(stored, ApprovalQuery(**filters))
    return found


# Words


def test_words_are_runs_of_letters_and_digits_in_lower_case() -> None:
    assert split_words("Pay 12.50€ to create_ISSUE /tmp/x-1!") == [
        "pay",
        "12",
        "50",
        "to",
        "create",
        "issue",
        "tmp",
        "x",
        "1",
    ]


def test_spellings_that_look_the_same_are_one_word() -> None:
    assert split_words("Caf\u00e9") == split_words("CAFE\u0301") == ["caf\u00e9"]
    assert split_words("Straße ﬁne") == ["strasse", "fine"]


def test_every_character_is_a_word_where_no_spaces_part_them() -> None:
    assert split_words("東京へfly") == ["東", "京", "へ", "fly"]


def test_a_long_word_is_cut_and_a_long_text_too() -> None:
    assert split_words("x" * 100) == ["x" * MAX_WORD_LENGTH]
    assert split_words("a " * MAX_TEXT_LENGTH) == ["a"] * (MAX_TEXT_LENGTH // 2)


@given(st.text())
def test_words_of_words_are_the_same_words(text: str) -> None:
    words = split_words(text)
    assert split_words(" ".join(words)) == words
    for word in words:
        assert 0 < len(word) <= MAX_WORD_LENGTH
        assert not set(word) & set(" \"'\\%_:*&|()!§")


# Documents


def test_a_document_holds_what_people_read() -> None:  # R8
    stored = pending_with_payload(
        args={"to": "Bob Miller", "amount": 12.5, "tags": ["urgent", None, True]},
        agent_path=("boss", "helper"),
        thread_id="thread-7",
        sentence="Pay the invoice",
    )
    decided = DecisionRecord("reject", "ann", NOW, reason="Wrong account", comment="see mail")
    stored = stored._replace(approval=replace(stored.approval, decision=decided))
    for word in split_words(
        "pay the invoice wrong account see mail boss helper thread 7 run rita ann bob miller 12 5 urgent"
    ):
        assert word in plain_words(stored)
    assert {"true", "none", "null", "medium"}.isdisjoint(plain_words(stored))


def test_no_secret_becomes_a_word() -> None:
    args = {"to": "ann", "key": "hunter2", "cards": [{"number": "4111", "name": "visa"}]}
    stored = pending_with_payload(spec=WITH_SECRET, args=args)
    text = search_document(stored)
    assert "hunter2" not in text
    assert "4111" not in text
    assert "visa" in plain_words(stored)
    assert not index_finds(stored, arguments=(("key", "hunter2"),))
    assert not index_finds(stored, arguments=(("cards.number", "4111"),))
    assert index_finds(stored, arguments=(("cards.name", "visa"),))


@given(any_text.filter(split_words), json_values)
def test_an_argument_that_is_hidden_is_not_found_by_its_value(secret: str, other: object) -> None:
    stored = pending_with_payload(spec=ToolSpec("pay", secret=("key",)), args={"key": [secret], "other": other})
    without = pending_with_payload(spec=ToolSpec("pay", secret=("key",)), args={"key": ["another"], "other": other})
    assert search_document(stored) == search_document(without)


def test_what_was_erased_is_found_by_what_is_left() -> None:
    stored = pending_with_payload(args={"to": "bob"}, sentence="Pay bob")._replace(payload=Payload())
    assert "bob" not in plain_words(stored)
    assert index_finds(stored, tool="pay", requester="rita")


def test_a_document_is_bounded() -> None:
    many = {f"k{n:04}": f"w{n}" for n in range(1_000)}
    stored = pending_with_payload(args=many | {"a": " ".join(f"v{n}" for n in range(1_000))})
    assert len(plain_words(stored)) == MAX_WORDS
    leaves = {word for word in exact_words(stored) if word.startswith(f"{EXACT_TERM_PREFIX}v")}
    assert len(leaves) == MAX_ARGUMENTS
    assert len(plain_words(pending_with_payload(args=many))) < MAX_WORDS


@given(json_values, any_text)
def test_a_document_is_words_with_single_spaces_between(value: object, sentence: str) -> None:
    words = search_document(pending_with_payload(args={"value": value}, sentence=sentence)).split(" ")
    assert "" not in words
    assert len(set(words)) == len(words)
    for word in words:
        assert word.removeprefix(EXACT_TERM_PREFIX).isalnum()
        assert word == word.casefold()


# Filters


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ({"tool": "pay"}, {"tool": "Pay"}),
        ({"agent": "helper"}, {"agent": "help"}),
        ({"agent": "boss"}, {"agent": "rita"}),
        ({"thread_id": "t1"}, {"thread_id": "t"}),
        ({"run_id": "run"}, {"run_id": "t1"}),
        ({"requester": "rita"}, {"requester": "ann"}),
        ({"priority": "medium"}, {"priority": "high"}),
        ({"person": "rita"}, {"person": "helper"}),
        ({"person": "ann"}, {"person": "an"}),
        ({"person": "bob"}, {"person": "boss"}),
        ({"person": "eve"}, {"person": "run"}),
        ({"statuses": ("pending", "failed")}, {"statuses": ("failed", "succeeded")}),
        ({"arguments": (("to", "ann"),)}, {"arguments": (("to", "ANN"),)}),
        ({"arguments": (("amount", 5),)}, {"arguments": (("amount", "5"),)}),
        ({"arguments": (("amount", 5.0), ("to", "ann"))}, {"arguments": (("amount", 5.0), ("to", "bob"))}),
        ({"tool": "pay", "agent": "helper"}, {"tool": "pay", "agent": "pay"}),
    ],
)
def test_a_filter_meets_exactly_what_it_names(right: dict[str, Any], wrong: dict[str, Any]) -> None:  # R8
    stored = pending_with_payload(agent_path=("boss", "helper"), thread_id="t1")
    vote = Vote("bob", "bob", 0, stored.approval.args_sha256, NOW, "web")
    decided = DecisionRecord("approve", "ann", NOW)
    approval = replace(stored.approval, votes=(vote,), editors=("eve",), decision=decided)
    stored = stored._replace(approval=approval)
    assert both_find(stored, **right)
    assert not both_find(stored, **wrong)


def test_a_team_meets_what_it_may_decide_now_or_once_it_is_escalated() -> None:  # R36
    escalation_step = EscalationStep(1, LEGAL)
    asked = pending_with_payload(Ask("two", (Stage(FINANCE), Stage()), escalation_steps=(escalation_step,)))
    for team in ("finance", "legal"):
        assert matches_query(asked, ApprovalQuery(team=team))
        assert set(make_search_terms("default", ApprovalQuery(team=team)).words) <= set(search_document(asked).split())
    assert not matches_query(asked, ApprovalQuery(team="ops"))
    assert needs_text_search(ApprovalQuery(team="ops"))
    assert not matches_query(pending_with_payload(), ApprovalQuery(team="finance"))


def test_an_argument_is_found_inside_objects_and_lists() -> None:
    stored = pending_with_payload(
        args={"order": {"items": [{"sku": "a1"}, {"sku": "b2"}], "paid": False}, "note": None}
    )
    assert both_find(stored, arguments=(("order.items.sku", "b2"), ("order.paid", False), ("note", None)))
    assert not both_find(stored, arguments=(("order.items", "b2"),))
    assert not both_find(stored, arguments=(("order.paid", 0),))
    assert not both_find(stored, arguments=(("order.items.sku", "c3"),))


@pytest.mark.parametrize(("one", "other"), [(100, 100.0), (10**23, 1e23), (0, -0.0), (1e-7, 0.0000001), (10**22, 1e22)])
def test_one_number_has_one_spelling(one: float, other: float) -> None:
    assert both_find(pending_with_payload(args={"n": one}), arguments=(("n", other),))
    assert both_find(pending_with_payload(args={"n": other}), arguments=(("n", one),))


@given(scalars, scalars)
def test_values_meet_if_and_only_if_they_are_equal(one: object, other: object) -> None:
    same = canonical(one) == canonical(other) if type(one) is type(other) else None
    met = both_find(pending_with_payload(args={"n": one}), arguments=(("n", other),))
    assert same in (None, met)
    assert both_find(pending_with_payload(args={"n": one}), arguments=(("n", one),))


@pytest.mark.parametrize("value", [{}, [], {"a": 1}, (1, 2)])
def test_a_filter_compares_single_values_only(value: object) -> None:
    with pytest.raises(InvalidRequest, match="The argument to is compared with a text"):
        make_search_terms("default", ApprovalQuery(arguments=(("to", value),)))


def test_a_value_that_is_not_json_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        make_search_terms("default", ApprovalQuery(arguments=(("to", float("nan")),)))


@pytest.mark.parametrize(
    ("text", "value"),
    [("to=bob", "bob"), ("amount=5", 5), ('amount="5"', "5"), ("to.name=a=b", "a=b"), ("to=", "")],
)
def test_a_filter_is_typed_as_a_path_and_a_value_that_is_json_if_it_can_be(text: str, value: object) -> None:
    assert parse_argument_filter(text) == (text.partition("=")[0], value)


@pytest.mark.parametrize("text", ["", "to", "=bob", "="])
def test_a_typed_filter_without_a_path_and_an_equals_sign_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not PATH=VALUE"):
        parse_argument_filter(text)


def test_a_call_belongs_to_one_of_the_owners_that_are_asked_for() -> None:  # R18 R66
    stored = pending_with_payload()
    subject = stored.approval.subject._replace(owner="key:k1")
    owned = stored._replace(approval=replace(stored.approval, subject=subject))
    mine, others = frozenset({"key:k1", "agent:a"}), frozenset({"agent:a"})
    assert needs_text_search(ApprovalQuery(owners=mine))
    assert both_find(owned, owners=mine, statuses=("pending", "failed"))
    assert not both_find(owned, owners=mine, statuses=("failed",))
    assert not both_find(owned, owners=others)
    older = stored._replace(approval=replace(stored.approval, subject=subject._replace(owner=ANY_OWNER)))
    assert both_find(older, owners=others), "a call that is older than call ownership is anybody's"
    assert not both_find(stored, owners=mine)  # of a program with the database, which belongs to no key


def test_a_name_that_no_call_can_have_meets_nothing() -> None:
    assert not index_finds(pending_with_payload(), tool="\ud800")


def test_times_bound_the_creation_the_first_included() -> None:
    stored = pending_with_payload()
    at = stored.approval.created_at
    assert matches_query(stored, ApprovalQuery(since=at, until=at + 1))
    assert not matches_query(stored, ApprovalQuery(since=at + 1))
    assert not matches_query(stored, ApprovalQuery(until=at))


def test_words_of_another_workspace_are_never_met() -> None:
    stored = pending_with_payload(workspace="other")
    for filters in ({"tool": "pay"}, {"person": "rita"}, {"arguments": (("to", "ann"),)}, {"text": "ann"}):
        assert not index_finds(stored, **filters)
        assert set(make_search_terms("other", ApprovalQuery(**filters)).words) <= set(
            search_document(stored).split(" ")
        )


# Texts


def test_all_words_of_a_text_have_to_be_there_and_the_last_may_be_a_beginning() -> None:  # R8
    stored = pending_with_payload(sentence="Refund the customer", args={})
    for text in ("refund customer", "Refund, CUSTOMER!", "customer ref", "refund cust", "refund", "re"):
        assert index_finds(stored, text=text), text
    for text in ("refund customers", "ref customer", "refund the ustomer", "und"):
        assert not index_finds(stored, text=text), text


def test_a_single_character_is_a_whole_word() -> None:
    assert make_search_terms("default", ApprovalQuery(text="x")) == SearchTerms(
        (make_search_terms("default", ApprovalQuery(text=" ")).words[0], "x")
    )


def test_a_beginning_never_meets_a_marked_word() -> None:
    assert make_search_terms("default", ApprovalQuery(text="§t5d")).prefix == "t5d"


def test_the_word_that_all_of_a_workspace_have_is_asked_for_only_without_another() -> None:
    for filters in ({"tool": "pay"}, {"arguments": (("to", "ann"),)}, {"tool": "pay", "statuses": ("failed",)}):
        (word,) = make_search_terms("default", ApprovalQuery(**filters)).words
        assert word not in exact_words(pending_with_payload(tool="refund", args={}))
    assert make_search_terms("default", ApprovalQuery(("failed",))).words == ()
    (word,) = make_search_terms("default", ApprovalQuery()).words
    assert word in exact_words(pending_with_payload(tool="refund", args={}))


def test_what_is_typed_twice_is_asked_once() -> None:
    assert (
        make_search_terms("w", ApprovalQuery(text="pay pay pay")).words == make_search_terms("w", ApprovalQuery()).words
    )
    assert make_search_terms("w", ApprovalQuery(text="pay pay pay")).prefix == "pay"


def test_a_text_without_words_or_with_too_many_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no word to search for"):
        make_search_terms("default", ApprovalQuery(text="?!"))
    most = " ".join(f"w{n}" for n in range(MAX_QUERY_WORDS))
    assert len(make_search_terms("default", ApprovalQuery(text=most)).words) == MAX_QUERY_WORDS
    with pytest.raises(InvalidRequest, match=f"at most {MAX_QUERY_WORDS} words"):
        make_search_terms("default", ApprovalQuery(text=f"{most} one"))


@given(st.text().filter(lambda text: 0 < len(set(split_words(text))) <= MAX_QUERY_WORDS))
def test_whatever_is_in_a_sentence_is_found_by_it(text: str) -> None:
    assert index_finds(pending_with_payload(sentence=text), text=text)


# Which lists are searches


@pytest.mark.parametrize(
    "filters",
    [
        {"text": "x"},
        {"person": "x"},
        {"arguments": (("x", 1),)},
        {"tool": "x"},
        {"agent": "x"},
        {"thread_id": "x"},
        {"run_id": "x"},
        {"requester": "x"},
        {"priority": "high"},
        {"statuses": ("succeeded",)},
        {"statuses": ("pending", "failed")},
        {"statuses": ("pending",), "since": 1},
        {"statuses": ("pending",), "until": 0},
    ],
)
def test_what_no_order_answers_is_a_search(filters: dict[str, Any]) -> None:
    assert needs_text_search(ApprovalQuery(**filters))


def test_what_an_order_answers_is_no_search() -> None:
    odd = tuple(status for status in STATUSES if status not in ("pending", "succeeded"))
    for query in (
        ApprovalQuery(),
        ApprovalQuery(("pending",)),
        ApprovalQuery(odd),
        ApprovalQuery(odd[:1], since=1),
        ApprovalQuery(since=1, until=2, text=" "),
    ):
        assert not needs_text_search(query)


def test_a_document_is_bounded_in_words_and_a_word_in_letters() -> None:
    """Plain words come first; marks, which stand for whole values, are not counted among them."""
    args = {"text": " ".join(f"w{number}" for number in range(300)), "long": "x" * 70}
    plain = [
        word
        for word in search_document(pending_with_payload(args=args)).split()
        if not word.startswith(EXACT_TERM_PREFIX)
    ]
    assert len(plain) == 200
    assert split_words("x" * 70) == ["x" * 64]
    assert len(split_words("x " * 3_000)) == 2_000
