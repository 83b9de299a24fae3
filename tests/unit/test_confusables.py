"""Look-alike names: what folds to the same name, and which of those imitate another."""
# R56

from unicodedata import category

import pytest

from interlock.core.confusables import (
    differs_only_in_case,
    escape_non_ascii,
    fold_confusables,
    fold_pattern,
    is_confusable_with,
    looks_like,
    matches_pattern,
    mixed_scripts,
)

SAME = [
    "fund_transfer",
    "Fund_Transfer",
    "FUND_TRANSFER",
    " fund_transfer ",
    "fund_transf\u0435r",  # Cyrillic
    "f\u057dnd_transfer",  # Armenian
    "fund_tr\u03b1nsfer",  # Greek
    "\uff46\uff55\uff4e\uff44_transfer",  # full width
    "fund\u200b_transfer",  # no width
    "fund\u00ad_transfer",
    "fund_transfer\u3164",
    "fund\ufe0f_transfer",
    "\U0001d41fund_transfer",  # mathematical
    "fund_\u1d1bransfer",  # phonetic
    "fund_transfe\ua4e3",  # Lisu
    "fund_tr\u2c81nsfer",  # Coptic
    "fund_tran\U00010448fer",  # Deseret
    "fund_t\uab71ansfer",  # Cherokee, small
    "fund\u02cdtransfer",
    "f\u0332und_transfer",  # a mark that belongs to no letter
]


@pytest.mark.parametrize("name", SAME)
def test_names_that_read_the_same_fold_to_the_same(name: str) -> None:
    assert fold_confusables(name) == "fund_transfer"
    assert fold_confusables(fold_confusables(name)) == fold_confusables(name)


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("\u039d\u039f\u03a1\u0395", "nope"),  # Greek capitals: a nu is an N
        (
            "\u03bd\u03bf\u03c1\u03b5",
            "vop\u03b5",
        ),  # and small ones: a nu is a v
        ("\u0412\u0410\u0421K", "back"),
        ("stra\u00dfe", "strasse"),
        ("caf\u00e9", "caf\u00e9"),
        ("\u652f\u6255", "\u652f\u6255"),
        ("", ""),
    ],
)
def test_letters_that_look_latin_become_latin_and_others_stay(name: str, folded: str) -> None:
    assert fold_confusables(name) == folded


@pytest.mark.parametrize("dash", "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d")
def test_every_dash_is_read_as_a_hyphen(dash: str) -> None:
    assert fold_confusables(f"read{dash}only") == "read-only"
    assert is_confusable_with(f"read{dash}only", "read-only")


@pytest.mark.parametrize("line", "\u02cd\u2017\u203f")
def test_every_low_line_is_read_as_an_underscore(line: str) -> None:
    assert fold_confusables(f"read{line}only") == "read_only"


@pytest.mark.parametrize(
    "unseen",
    ["\x07", "\x7f", "\x85", "\u200b", "\ud800", "\ue000", "\u0378", "\u2028", "\u2029"],
    ids=lambda ch: f"{ord(ch):04x} {category(ch)}",
)
def test_what_is_not_seen_in_a_name_is_not_read(unseen: str) -> None:
    assert fold_confusables(f"fund{unseen}_transfer") == "fund_transfer"
    assert looks_like(f"fund{unseen}_transfer", "fund_transfer")


@pytest.mark.parametrize(("one", "other"), [("l0gin", "1ogin"), ("pay1", "payl"), ("rnail", "mail"), ("pay", "pay_")])
def test_what_only_a_hurried_reader_confuses_stays_apart(one: str, other: str) -> None:
    assert fold_confusables(one) != fold_confusables(other)


@pytest.mark.parametrize("name", [name for name in SAME if name.lower() != "fund_transfer"])
def test_a_name_that_only_looks_the_same_is_an_imitation(name: str) -> None:
    assert is_confusable_with(name, "fund_transfer")
    assert not is_confusable_with(name, "refund")


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("fund_transfer", "fund_transfer"),
        ("Fund_Transfer", "fund_transfer"),
        ("fund_transfer", "FUND_*"),
        ("fund_transf\u0435r", "fund_*"),  # the pattern covers it as it is written
        ("caf\u00e9_open", "CAF\u00c9_*"),
        ("cafe\u0301_open", "caf\u00e9_*"),  # the same letter, written as two characters
    ],
)
def test_case_alone_and_what_a_pattern_covers_as_written_are_no_imitation(name: str, pattern: str) -> None:
    assert not is_confusable_with(name, pattern)


def test_an_imitation_of_a_pattern_is_one() -> None:
    assert is_confusable_with("dr\u043ep_users", "drop_*")
    assert is_confusable_with("drop_users ", "drop_?sers")
    assert not is_confusable_with("dr\u043ep_users", "*")


def test_a_latin_name_imitates_one_of_another_alphabet_too() -> None:
    assert is_confusable_with("cop", "\u0441\u043e\u0440")


@pytest.mark.parametrize(
    ("pattern", "folded"),
    [("Drop_*", "drop_*"), ("DR\u041eP_?x", "drop_?x"), ("*", "*"), ("", ""), ("[AB]c", "[ab]c")],
)
def test_a_pattern_is_folded_around_its_wildcards(pattern: str, folded: str) -> None:
    assert fold_pattern(pattern) == folded


def test_globs_match_whole_names() -> None:
    assert matches_pattern("pay_out", "pay_*")
    assert not matches_pattern("repay_out", "pay_*")
    assert matches_pattern("[ab]", "[ab]")
    assert not matches_pattern("a", "[ab]")


def test_case_is_compared_across_ways_of_writing_a_letter() -> None:
    assert differs_only_in_case("CAF\u00c9", "cafe\u0301")
    assert not differs_only_in_case("p\u0430y", "pay")


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("send", "s\u0435nd", True),
        ("send", "send\u200b", True),
        ("send", " send", True),
        ("send", "\u0405\u0435nd", True),
        ("drop_users", "drop\u2017users", True),
        ("drop_users", "drop\u203fusers", True),
        ("drop_users", "d\u027e\u1d11\u01bf_users", True),
        ("drop_users", "dr\u0275p_users", True),
        ("send", "send", False),
        ("send", "SEND", False),
        ("send", "sand", False),
    ],
)
def test_two_names_look_alike_if_a_reader_takes_one_for_the_other_and_they_are_not_one(
    one: str, other: str, alike: bool
) -> None:
    assert looks_like(one, other) is looks_like(other, one) is alike


def test_a_spelled_name_shows_every_letter_that_is_not_plain() -> None:
    assert escape_non_ascii("s\u0435nd it\u200b\n") == "s\\u{435}nd it\\u{200b}\\u{a}"


@pytest.mark.parametrize(
    ("name", "pattern", "matches"),
    [
        ("pay[eu]", "pay[eu]", True),
        ("paye", "pay[eu]", False),
        ("pay[eu]_now", "pay[eu]_*", True),
        ("paye_now", "pay[eu]_*", False),
        ("pay]", "pay?", True),
        ("[", "[", True),
        ("[x", "[*", True),
        ("payx", "pay[!y]", False),
        ("pay\nnow", "pay*", True),
    ],
)
def test_only_a_star_and_a_question_mark_stand_for_others(name: str, pattern: str, matches: bool) -> None:
    assert matches_pattern(name, pattern) is matches


@pytest.mark.parametrize("name", ["dr\u2c9fp", "dr\U0001042cp", "dr\u07cbp", "dr\u0d20p", "dr\u3007p", "dr\u043ep"])
def test_rings_of_other_scripts_are_read_as_an_o(name: str) -> None:
    assert fold_confusables(name) == "drop"


def test_small_letters_of_another_alphabet_fold_as_its_capitals_do() -> None:
    assert fold_confusables("\u0432\u043e\u0442") == fold_confusables("\u0412\u041e\u0422") == "bot"
    assert fold_confusables("\uab85\uab83") == fold_confusables("\u13b5\u13b3")


@pytest.mark.parametrize(
    "name",
    [
        "l\u00f6schen_alle",
        "nai\u0308ve",
        "\u0443\u0434\u0430\u043b\u0438\u0442\u044c_\u0444\u0430\u0439\u043b",
        "\u0443\u0434\u0430\u043b\u0438\u0442\u044c_file",
        "\u0443\u0434\u0430\u043b\u0438\u0442\u044c.file/x-y z",
        "\u043e\u0431\u02bc\u0454\u043a\u0442",  # with a letter for an apostrophe
        "load\u30c7\u30fc\u30bf",
        "\u652f\u6255api",
        "\ud55c\uad6d\uc5b4api",
        "\u0939\u091f\u093e\u0913\u0967",  # with a digit of its own
        "\u06f3\u062d\u0630\u0641",
        "deploy\U0001f680",
        "drop_users",
    ],
)
def test_names_with_one_alphabet_in_each_word_mix_nothing(name: str) -> None:
    assert mixed_scripts(name) == ""


@pytest.mark.parametrize(
    "name",
    [
        "dr\u2c9fp_users",
        "dr\u0966p_users",  # a digit
        "dr\u0c02p_users",  # a mark
        "dr\u2d54p_users",  # a script that is in no table
        "dr\u3147p_users",  # a part of a Korean syllable
        "dr\u200b\u2d54\u200bp_users",
        "\u0441\u0d20\u0440\u0443",  # no Latin letter at all
        "x\ue000y",
        "\u0443\u0434\u0430\u043b\u0438\u0442\u044cFile",
    ],
)
def test_a_word_of_two_alphabets_is_a_mixture(name: str) -> None:
    assert mixed_scripts(name) != ""


def test_a_mixture_is_told_by_its_characters() -> None:
    assert mixed_scripts("ab_dr\u2c9fp") == r'"dr\u{2c9f}p" has U+2C9F COPTIC SMALL LETTER O'
    assert mixed_scripts("x\ue000y").endswith("has U+E000")
