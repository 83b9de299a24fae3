"""Passwords: what is kept of them, and what it takes to check one."""

import pytest

from interlock.accounts.passwords import LONGEST, NOBODY, check_password, hash_password, is_password
from interlock.core.errors import InvalidRequest

PASSWORD = "correct horse battery"


def test_a_password_is_known_by_what_is_kept_of_it() -> None:
    kept = hash_password(PASSWORD)
    assert kept.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert PASSWORD not in kept
    assert kept != hash_password(PASSWORD)
    assert is_password(PASSWORD, kept)
    assert not is_password(PASSWORD + "!", kept)


def test_who_has_no_password_has_no_password() -> None:
    for given in ("", PASSWORD, "x" * LONGEST):
        assert not is_password(given, "")
        assert not is_password(given, NOBODY)
        assert not is_password(given, "not a hash")


def test_what_stands_in_for_nobody_takes_as_long_as_a_password() -> None:
    """By the same parameters, so that a name that is not there cannot be told by its time."""
    assert NOBODY.split("$")[:4] == hash_password(PASSWORD).split("$")[:4]
    assert list(map(len, NOBODY.split("$"))) == list(map(len, hash_password(PASSWORD).split("$")))


def test_half_characters_and_endless_texts_are_no_passwords() -> None:
    kept = hash_password("x" * LONGEST)
    assert not is_password("x" * (LONGEST + 1), kept)
    assert not is_password("\ud800" * 12, kept)
    for bad in ("short", "x" * (LONGEST + 1), "\ud800" * 12):
        with pytest.raises(InvalidRequest):
            check_password(bad)
    with pytest.raises(InvalidRequest):
        hash_password("\ud800" * 12)
    check_password(PASSWORD)
