"""Confirmation in conversation: only an unambiguous yes counts as one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.chat.thread import NO, YES, parse_answer

YES_WORDS = ["yes", "y", "yeah", "ok", "okay", "sure", "proceed", "go ahead", "confirm", "do it"]
NO_WORDS = ["no", "n", "nope", "cancel", "stop", "abort", "don't", "dont", "nevermind", "never mind"]
NEITHER = [
    "yes please delete all",
    "yes, and the other page too",
    "yes but not the contact page",
    "yes?",
    "ok?",
    "sure?",
    "yes no",
    "yes\nno",
    "no yes",
    "yes yes",
    "not yes",
    "yesno",
    "ye s",
    "y e s",
    "y.e.s",
    "yes/no",
    "yes: do it",
    "“yes”",
    '"yes"',
    "'yes'",
    "(yes)",
    "*yes*",
    "<b>yes</b>",
    "> yes",
    "yes 👍",
    "👍",
    "1",
    "true",
    "confirmed",
    "confirmed: true",
    '{"confirmed": true}',
    "approved",
    "I approve",
    "please do",
    "do not",
    "do it not",
    "don't do it",
    "do it later",
    "okay then",
    "ok ok",
    "go",
    "ahead",
    "goahead",
    "go  on",
    "yep",
    "ja",
    "да",
    "",
    " ",
    "...",
    "!",
    "\u0443es",  # Cyrillic u, which looks like y
    "y\u0435s",  # Cyrillic ie
    "\u043ek",  # Cyrillic o
    "\uff59\uff45\uff53",  # full-width letters
    "ye\u017f",  # a long s, which folds to s
    "o\u212a",  # the sign for kelvin, which lowers to k
    "yes\u200b",  # a space without width
    "\u202eyes",  # right to left
    "ye\u0301s",
    "yes\x00",
    "no problem",
    "no worries, go ahead",
    "stop it",
    "cancel that",
    "n\u043e",
]


def test_the_words_are_those_that_are_documented() -> None:
    assert set(YES_WORDS) == YES
    assert set(NO_WORDS) == NO


# R19
@pytest.mark.parametrize("dress", ["{}", "{}.", "{}!", " {} ", "{},", "{}!!!", "\n{}\n", "{}\u00a0", "...{}..."])
@pytest.mark.parametrize(("words", "answer"), [(YES_WORDS, "yes"), (NO_WORDS, "no")])
def test_a_plain_word_counts_in_any_case_and_with_the_marks_of_a_sentence(
    words: list[str], answer: str, dress: str
) -> None:
    for word in words:
        for spelt in (word, word.upper(), word.capitalize()):
            assert parse_answer(dress.format(spelt)) == answer


def test_two_words_may_be_separated_by_any_whitespace() -> None:
    assert {parse_answer(text) for text in ("go  ahead", "go\nahead", "Go, ahead!", "do\tit")} == {"yes"}


@pytest.mark.parametrize("text", ["don\u2019t", "Don\u2019t!", "DON'T", "dont"])
def test_the_apostrophe_may_be_typographic_or_missing(text: str) -> None:
    assert parse_answer(text) == "no"


# R19
@pytest.mark.parametrize("text", NEITHER)
def test_anything_else_decides_nothing(text: str) -> None:
    assert parse_answer(text) == "closed"


# R19
@given(st.text())
def test_no_other_text_is_a_yes(text: str) -> None:
    plain = " ".join(text.replace("\u2019", "'").translate(dict.fromkeys(map(ord, ".!,"), " ")).split())
    expected = "closed"
    if plain.isascii():
        expected = "yes" if plain.lower() in YES else "no" if plain.lower() in NO else "closed"
    assert parse_answer(text) == expected


# R19
@given(st.sampled_from(YES_WORDS), st.characters(exclude_categories=["Zs", "Zl", "Zp", "Cc"], exclude_characters=".!,"))
def test_a_yes_with_one_more_character_is_none(word: str, more: str) -> None:
    for text in (word + more, more + word):
        assert parse_answer(text) != "yes" or text.lower() in YES
