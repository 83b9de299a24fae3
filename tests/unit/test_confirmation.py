"""Confirmation in conversation: only an unambiguous yes counts as one."""

import re

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from interlock.core.chat.thread import (
    AGREEMENTS,
    INSTRUCTIONS,
    NO,
    VERBS,
    YES,
    parse_answer,
    tool_verb,
    yes_sentences,
)

TOOL = "cms_delete_page"

YES_WORDS = ["yes", "y", "yeah", "ok", "okay", "sure", "proceed", "go ahead", "confirm", "do it"]
NO_WORDS = ["no", "n", "nope", "cancel", "stop", "abort", "don't", "dont", "nevermind", "never mind"]
SENTENCES = [
    "yes please",
    "Yes, please.",
    "yes, delete it",
    "Yes! Delete it.",
    "yes please delete it",
    "yes, delete them please",
    "ok go ahead",
    "okay, proceed",
    "sure, do it",
    "sure, delete this!",
    "yeah, confirm",
    "please go ahead",
    "do it, please",
    "y delete that",
]
NEITHER = [
    "please",
    "please please",
    "yes, publish it",
    "yes, remove it",
    "yes, delete",
    "yes, delete it all",
    "yes, delete it?",
    "yes, delete it and the other",
    "yes, and also delete the other",
    "yes, delete the about page",
    "yes, delete everything",
    "yes, don't delete it",
    "yes, delete it later",
    "yes but delete it tomorrow",
    "yes, not it",
    "delete it",
    "please delete it",
    "delete it, yes",
    "do it, yes",
    "yes please please",
    "yes, stop",
    "yes, cancel it",
    "no, delete it",
    "yesterday",
    "yes, it",
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
            assert parse_answer(dress.format(spelt), TOOL) == answer


def test_two_words_may_be_separated_by_any_whitespace() -> None:
    assert {parse_answer(text, TOOL) for text in ("go  ahead", "go\nahead", "Go, ahead!", "do\tit")} == {"yes"}


@pytest.mark.parametrize("text", ["don\u2019t", "Don\u2019t!", "DON'T", "dont"])
def test_the_apostrophe_may_be_typographic_or_missing(text: str) -> None:
    assert parse_answer(text, TOOL) == "no"


# R19
@pytest.mark.parametrize("text", NEITHER)
def test_anything_else_decides_nothing(text: str) -> None:
    assert parse_answer(text, TOOL) == "closed"


# R19
@pytest.mark.parametrize("text", SENTENCES)
def test_a_yes_may_be_polite_and_may_say_again_what_is_confirmed(text: str) -> None:
    assert parse_answer(text, TOOL) == "yes"


# R19
@pytest.mark.parametrize(
    ("tool", "verb"),
    [
        ("cms_delete_page", "delete"),
        ("delete_file", "delete"),
        ("deleteFile", "delete"),
        ("mail-send-draft", "send"),
        ("shop.remove", "remove"),
        ("CREATE", "create"),
        ("cms_archive_post", ""),
        ("undelete_page", ""),
        ("undo_delete", ""),
        ("un_delete", ""),
        ("revert_delete", ""),
        ("restore_delete", ""),
        ("recall_send", ""),
        ("cancel_delete", ""),
        ("stop_publish", ""),
        ("not_remove", ""),
        ("delete_or_publish", ""),
        ("notdelete", ""),
        ("", ""),
    ],
)
def test_the_verb_of_a_tool_is_the_only_one_in_its_name(tool: str, verb: str) -> None:
    assert tool_verb(tool) == verb
    for other in (*VERBS, "archive", "undo"):
        expected = "yes" if other == verb else "closed"
        assert parse_answer(f"yes, {other} it", tool) == expected
        assert parse_answer(f"{other} it", tool) == "closed"  # a new request, maybe about something else


# R19
def test_the_yes_words_are_in_one_class_each() -> None:
    assert set(YES_WORDS) == AGREEMENTS | INSTRUCTIONS
    assert not {*yes_sentences(TOOL)} & NO


VOCABULARY = sorted({word for sentence in yes_sentences("delete") for word in sentence.split()})
AGREEMENT = "(?:yes|y|yeah|ok|okay|sure)"
INSTRUCTION = "(?:go ahead|do it|proceed|confirm)"
AGREED = f"(?:{INSTRUCTION}|delete (?:it|them|this|that))"
YES_PATTERN = re.compile(
    f"{AGREEMENT}(?: please)?(?: {AGREED})?|{AGREEMENT} {AGREED} please|(?:please )?{INSTRUCTION}|{INSTRUCTION} please"
)


# R19
@example(["yes"])
@example(["yes", "delete", "it"])
@example(["delete", "it"])
@given(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6))
def test_of_the_words_of_a_yes_only_the_listed_sentences_are_one(words: list[str]) -> None:
    sentence = " ".join(words)
    assert (parse_answer(sentence, TOOL) == "yes") == (YES_PATTERN.fullmatch(sentence) is not None)


# R19
@given(
    st.sampled_from(sorted(yes_sentences("delete"))),
    st.integers(0, 6),
    st.from_regex(r"[A-Za-z0-9?;:'\"()-]{1,12}", fullmatch=True),
)
def test_a_yes_with_one_more_word_is_none(sentence: str, place: int, word: str) -> None:
    words = sentence.split()
    longer = [*words[:place], word, *words[place:]]
    if word.lower() not in VOCABULARY:
        assert parse_answer(" ".join(longer), TOOL) != "yes"


# Answers that are one or nearly: arbitrary text never is.
NEAR_ANSWERS = st.builds(
    lambda answer, place, more: answer[:place] + more + answer[place:],
    st.sampled_from(sorted({*yes_sentences(TOOL), *NO})),
    st.integers(0, 20),
    st.text("yYn .!,\n?\u2019\u0430", max_size=2),
)


# R19
@example("Yes!")
@example("no, don\u2019t")
@example("y\u0435s")
@given(NEAR_ANSWERS | st.text())
def test_no_other_text_is_a_yes(text: str) -> None:
    plain = " ".join(text.replace("\u2019", "'").translate(dict.fromkeys(map(ord, ".!,"), " ")).split())
    expected = "closed"
    if plain.isascii():
        expected = "yes" if plain.lower() in yes_sentences(TOOL) else "no" if plain.lower() in NO else "closed"
    event(expected)
    assert parse_answer(text, TOOL) == expected


# R19
@given(st.sampled_from(YES_WORDS), st.characters(exclude_categories=["Zs", "Zl", "Zp", "Cc"], exclude_characters=".!,"))
def test_a_yes_with_one_more_character_is_none(word: str, more: str) -> None:
    for text in (word + more, more + word):
        assert parse_answer(text, TOOL) != "yes" or text.lower() in YES
