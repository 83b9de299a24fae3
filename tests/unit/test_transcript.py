"""Tool calls of one turn: each gets a unique id, whichever ids the provider gave."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.chat.transcript import MAX_ID, ModelReply, Prompt, ToolRequest, with_unique_ids


def call_ids(*given: str) -> list[str]:
    return [tool_request.id for tool_request in with_unique_ids([ToolRequest(each, "pay", "{}") for each in given])]


def test_a_reply_says_nothing_but_what_it_is_given() -> None:
    assert ModelReply("Hello") == ("Hello", (), "", 0, ())
    assert Prompt("Be brief.", ()).tools == ()
    assert MAX_ID == 150


def test_good_ids_stay_as_they_are() -> None:
    assert call_ids("call_1", "toolu_9", "x" * MAX_ID) == ["call_1", "toolu_9", "x" * MAX_ID]


# R6
def test_the_second_call_with_an_id_gets_another_one() -> None:
    assert call_ids("a", "a", "b") == ["a", "call_0", "b"]
    assert call_ids("call_0", "call_0", "call_0") == ["call_0", "call_1", "call_2"]


def test_ids_that_are_missing_too_long_or_cannot_be_seen_are_replaced() -> None:
    assert call_ids("", "x" * (MAX_ID + 1), "a\nb") == ["call_0", "call_1", "call_2"]


def test_tool_and_arguments_stay() -> None:
    assert with_unique_ids([ToolRequest("", "pay", '{"to": "ann"}')]) == (
        ToolRequest("call_0", "pay", '{"to": "ann"}'),
    )


# R6
@given(st.lists(st.sampled_from(["", "a", "b", "call_0", "call_1", "call_3", "\x7f", "y" * 200]), max_size=12))
def test_no_two_calls_of_a_turn_share_an_id(given_ids: list[str]) -> None:
    made = call_ids(*given_ids)
    assert len(set(made)) == len(given_ids)
    assert all(1 <= len(each) <= MAX_ID and each.isprintable() for each in made)
