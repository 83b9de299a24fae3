"""Passwords (argon2 hashes, checked in threads because that is slow on purpose) and sign-in codes by e-mail."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from interlock.core.errors import InvalidRequest, Misconfigured, TooManyRequests
from interlock.runtime.durations import HOUR, MINUTE

if TYPE_CHECKING:
    from argon2 import PasswordHasher
import secrets
from typing import NamedTuple

from interlock.accounts.members import NewSession, start_session
from interlock.core.errors import Unauthenticated
from interlock.core.identity import OneTimeLink
from interlock.core.ledger.event import SYSTEM_ACTOR, Event
from interlock.core.ports import AccountTransaction, User

T = TypeVar("T")
MAX_CONCURRENT = 2  # passwords that are checked at the same time: each takes 19 MiB
MAX_QUEUED = 100  # requests in the queue
MIN_LENGTH = 12
MAX_LENGTH = 1024  # nobody types more, and hashing must not be a way to keep a server busy
TIME_COST, MEMORY_COST, PARALLELISM = (
    2,
    19_456,
    1,
)  # OWASP's for argon2id: 19 MiB, two passes; more memory would let few sign in at once
# Hash of a password that nobody has: checked for unknown names, so that they take as long as others.
DUMMY_HASH = "$argon2id$v=19$m=19456,t=2,p=1$ySINknU8nmlPEl2UM8ld0g$5HqZvEkIBRPqNaHXLLWVbRPoW3loEGLkgNljrrLfjlQ"


class HashingPool:
    """A queue for hashing in threads, a few at a time."""

    def __init__(self) -> None:
        self._semaphore = asyncio.Semaphore(MAX_CONCURRENT)
        self._waiting = 0

    async def __call__(self, work: Callable[..., T], *values: object) -> T:
        if self._waiting >= MAX_QUEUED:
            raise TooManyRequests("Too many sign-ins at once. Try again in a few seconds.", retry_after=5)
        self._waiting += 1
        try:
            async with self._semaphore:
                return await asyncio.to_thread(work, *values)
        finally:
            self._waiting -= 1


def check_password(password: str) -> None:
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise InvalidRequest(f"A password has {MIN_LENGTH} to {MAX_LENGTH} characters. Choose another.")
    if _normalized_bytes(password) is None:
        raise InvalidRequest("The password must be text. Choose another.")


def hash_password(password: str) -> str:
    data = _normalized_bytes(password)
    if data is None:
        raise InvalidRequest("The password must be text. Choose another.")
    return _hasher().hash(data)


def verify_password(password: str, hashed: str) -> bool:
    """Verify a password; takes equally long for an unknown person, a missing password and a wrong one."""
    hasher, data = _hasher(), _normalized_bytes(password[:MAX_LENGTH])
    from argon2.exceptions import Argon2Error, InvalidHashError

    try:
        hasher.verify(hashed or DUMMY_HASH, data or b"")
    except (Argon2Error, InvalidHashError):
        return False
    return bool(hashed) and data is not None and len(password) <= MAX_LENGTH


def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ImportError:
        raise Misconfigured("Passwords need the server's packages. Run: pip install interlock-gate[server]") from None
    return PasswordHasher(TIME_COST, MEMORY_COST, PARALLELISM)


def _normalized_bytes(password: str) -> bytes | None:
    """Normalized, so that a password is the same from every keyboard; None if it holds lone surrogates."""
    try:
        return unicodedata.normalize("NFKC", password).encode()
    except UnicodeEncodeError:
        return None


DIGITS = 8
MAX_ATTEMPTS = 5
CODE_LIFETIME = 10 * MINUTE
MAX_CODES_PER_ADDRESS = 3  # codes sent to one person during a code's lifetime, per requesting address
MAX_CODES_PER_PERSON = (
    12  # over all addresses: the holder of a link must not lock out its person, nor flood their mailbox
)
SESSION_LIFETIME = 8 * HOUR  # milliseconds until the session expires: a mailbox proves less than a password

Digest = Callable[[str], str]


class SignInCode(NamedTuple):
    """A sign-in code; `ticket` goes to the browser, `number` to the e-mail address."""

    ticket: str
    number: str


def make_code_number() -> str:
    return "".join(secrets.choice("0123456789") for _ in range(DIGITS))


def add(tx: AccountTransaction, person: str, code: SignInCode, digest: Digest) -> bool:
    user = tx.user(person)
    if user is None or user.removed_at is not None:
        return False
    link = OneTimeLink(
        workspace="",
        person=person,
        role="",
        teams=frozenset(),
        created_by=SYSTEM_ACTOR,
        expires_at=tx.now + CODE_LIFETIME,
    )
    for each in (_code_secret(code), *_attempt_secrets(code)):
        tx.add_link(digest(each), link)
    tx.append_event(Event("code_created", SYSTEM_ACTOR, {"user": person, "until": link.expires_at}))
    return True


def use(tx: AccountTransaction, person: str, code: SignInCode, digest: Digest, new: NewSession) -> User | None:
    """Use a code; None if it is wrong: then an attempt is used up, and with the last one the code."""
    left = [digest(each) for each in _attempt_secrets(code) if _is_valid(tx, digest(each), person)]
    whole, user = digest(_code_secret(code)), tx.user(person)
    if not left:
        return None
    if not _is_valid(tx, whole, person) or user is None or user.removed_at is not None:
        tx.use_link(left[0])
        return None
    for each in (whole, *left):
        tx.use_link(each)
    return start_session(tx, user, "email", new)


def invalid_code_error() -> Unauthenticated:
    return Unauthenticated("The code is wrong or has expired. Check it, or ask for another.")


def _is_valid(tx: AccountTransaction, digest: str, person: str) -> bool:
    link = tx.link(digest)
    return link is not None and link.person == person and tx.now < link.expires_at


def _code_secret(code: SignInCode) -> str:
    return f"{code.ticket}\ncode {code.number}"


def _attempt_secrets(code: SignInCode) -> list[str]:
    return [f"{code.ticket}\ntry {each}" for each in range(MAX_ATTEMPTS)]
