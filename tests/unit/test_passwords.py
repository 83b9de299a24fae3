"""Passwords: their stored form, and checking one."""

import pytest

from interlock.accounts.passwords import DUMMY_HASH, MAX_LENGTH, check_password, hash_password, verify_password
from interlock.core.errors import InvalidRequest

PASSWORD = "correct horse battery"


def test_a_password_is_known_by_what_is_kept_of_it() -> None:
    kept = hash_password(PASSWORD)
    assert kept.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert PASSWORD not in kept
    assert kept != hash_password(PASSWORD)
    assert verify_password(PASSWORD, kept)
    assert not verify_password(PASSWORD + "!", kept)


def test_who_has_no_password_has_no_password() -> None:
    for given in ("", PASSWORD, "x" * MAX_LENGTH):
        assert not verify_password(given, "")
        assert not verify_password(given, DUMMY_HASH)
        assert not verify_password(given, "not a hash")


def test_what_stands_in_for_nobody_takes_as_long_as_a_password() -> None:
    """Uses the same parameters, so that response time does not reveal an unknown name."""
    assert DUMMY_HASH.split("$")[:4] == hash_password(PASSWORD).split("$")[:4]
    assert list(map(len, DUMMY_HASH.split("$"))) == list(map(len, hash_password(PASSWORD).split("$")))


def test_half_characters_and_endless_texts_are_no_passwords() -> None:
    kept = hash_password("x" * MAX_LENGTH)
    assert not verify_password("x" * (MAX_LENGTH + 1), kept)
    assert not verify_password("\ud800" * 12, kept)
    for bad in ("short", "x" * (MAX_LENGTH + 1), "\ud800" * 12):
        with pytest.raises(InvalidRequest):
            check_password(bad)
    with pytest.raises(InvalidRequest):
        hash_password("\ud800" * 12)
    check_password(PASSWORD)
