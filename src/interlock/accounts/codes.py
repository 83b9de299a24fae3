"""Codes that are sent to somebody's address: whoever enters one in the browser that asked for it is that person.

A code is kept as a one-time link is, by a digest. What is digested also holds a ticket that only that browser has, so
what is kept gives away no code; and there is a further row for each try, so that no number of servers gives more.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import NamedTuple

from interlock.accounts.members import NewSession, start_session
from interlock.core.errors import Unauthenticated
from interlock.core.identity import OneTimeLink
from interlock.core.ledger.event import SYSTEM_ACTOR, Event
from interlock.core.ports import AccountTransaction, User

DIGITS = 8
MAX_ATTEMPTS = 5
CODE_LIFETIME = 600_000  # milliseconds
MAX_CODES_PER_ADDRESS = 3  # codes that one person is sent while one lives, for each address that asks
MAX_CODES_PER_PERSON = (
    12  # and for all addresses: whoever has a link must not keep its person out, nor fill their mailbox
)
SESSION_LIFETIME = 8 * 3_600_000  # milliseconds that somebody stays signed in: a mailbox proves less than a password

Digest = Callable[[str], str]


class SignInCode(NamedTuple):
    """`ticket` goes to the browser, `number` to the address."""

    ticket: str
    number: str


def make_code_number() -> str:
    return "".join(secrets.choice("0123456789") for _ in range(DIGITS))


def add(book: AccountTransaction, person: str, code: SignInCode, digest: Digest) -> bool:
    user = book.user(person)
    if user is None or user.removed_at is not None:
        return False
    link = OneTimeLink("", person, "", frozenset(), SYSTEM_ACTOR, book.now + CODE_LIFETIME)
    for each in (_code_secret(code), *_attempt_secrets(code)):
        book.add_link(digest(each), link)
    book.tell(Event("code_created", SYSTEM_ACTOR, {"user": person, "until": link.expires_at}))
    return True


def use(book: AccountTransaction, person: str, code: SignInCode, digest: Digest, new: NewSession) -> User | None:
    """None if it is wrong; then a try is gone, and with the last one the code."""
    left = [digest(each) for each in _attempt_secrets(code) if _is_valid(book, digest(each), person)]
    whole, user = digest(_code_secret(code)), book.user(person)
    if not left:
        return None
    if not _is_valid(book, whole, person) or user is None or user.removed_at is not None:
        book.spend_link(left[0])
        return None
    for each in (whole, *left):
        book.spend_link(each)
    return start_session(book, user, "email", new)


def invalid_code_error() -> Unauthenticated:
    return Unauthenticated("The code is wrong, or its time is over. Look again, or ask for another.")


def _is_valid(book: AccountTransaction, digest: str, person: str) -> bool:
    link = book.link(digest)
    return link is not None and link.person == person and book.now < link.expires_at


def _code_secret(code: SignInCode) -> str:
    return f"{code.ticket}\ncode {code.number}"


def _attempt_secrets(code: SignInCode) -> list[str]:
    return [f"{code.ticket}\ntry {each}" for each in range(MAX_ATTEMPTS)]
