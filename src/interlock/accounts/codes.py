"""Codes that are sent to somebody's address: whoever enters one in the browser that asked for it is that person.

A code is kept as a one-time link is, by a digest. What is digested also holds a ticket that only that browser has, so
what is kept gives away no code; and there is a further row for each try, so that no number of servers gives more.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import NamedTuple

from interlock.accounts.members import New, enter
from interlock.core.errors import Unauthenticated
from interlock.core.identity import Link
from interlock.core.ledger.event import TIME, Event
from interlock.core.ports import Book, User

DIGITS = 8
TRIES = 5
LIVES = 600_000  # milliseconds
MOST = 3  # codes that one person is sent while one lives, for each address that asks
ALL = 12  # and for all addresses: whoever has a link must not keep its person out, nor fill their mailbox
SESSION = 8 * 3_600_000  # milliseconds that somebody stays signed in: a mailbox proves less than a password

Digest = Callable[[str], str]


class Code(NamedTuple):
    """`ticket` goes to the browser, `number` to the address."""

    ticket: str
    number: str


def number() -> str:
    return "".join(secrets.choice("0123456789") for _ in range(DIGITS))


def add(book: Book, person: str, code: Code, digest: Digest) -> bool:
    user = book.user(person)
    if user is None or user.removed_at is not None:
        return False
    link = Link("", person, "", frozenset(), TIME, book.now + LIVES)
    for each in (_whole(code), *_tries(code)):
        book.add_link(digest(each), link)
    book.tell(Event("code_created", TIME, {"user": person, "until": link.expires_at}))
    return True


def use(book: Book, person: str, code: Code, digest: Digest, new: New) -> User | None:
    """None if it is wrong; then a try is gone, and with the last one the code."""
    left = [digest(each) for each in _tries(code) if _counts(book, digest(each), person)]
    whole, user = digest(_whole(code)), book.user(person)
    if not left:
        return None
    if not _counts(book, whole, person) or user is None or user.removed_at is not None:
        book.spend_link(left[0])
        return None
    for each in (whole, *left):
        book.spend_link(each)
    return enter(book, user, "email", new)


def no_code() -> Unauthenticated:
    return Unauthenticated("The code is wrong, or its time is over. Look again, or ask for another.")


def _counts(book: Book, digest: str, person: str) -> bool:
    link = book.link(digest)
    return link is not None and link.person == person and book.now < link.expires_at


def _whole(code: Code) -> str:
    return f"{code.ticket}\ncode {code.number}"


def _tries(code: Code) -> list[str]:
    return [f"{code.ticket}\ntry {each}" for each in range(TRIES)]
