"""Authenticated identities, proven by a key or a session: people and agents' programs."""

from __future__ import annotations

import hmac
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

from interlock.core.call import MAX_NAME, MAX_NAMES
from interlock.core.card import escape_invisible
from interlock.core.decision import Reviewer
from interlock.core.errors import Forbidden, InvalidRequest, NotFound, RecentSignInRequired
from interlock.core.ledger.event import SYSTEM_ACTOR

AGENT = "agent"
ADMIN = "admin"
ROLES = (AGENT, "viewer", "reviewer", ADMIN)  # an agent proposes and never decides; viewers only read
RESERVED_ACTORS = frozenset({SYSTEM_ACTOR, "policy"})  # actors of the ledger that are not people
ANY_REQUESTER, NO_REQUESTER = "any", "none"  # a key's requester: any that the call names; nobody
MAX_QUOTA = 10**9
RECENT_SIGN_IN = 300_000  # milliseconds that a sign-in counts as recent
_WORKSPACE = re.compile(r"[a-z0-9-]{1,63}")


@dataclass(frozen=True)
class Principal:
    """A person, or an agent's key, with `name`; `credential` is the id of the key or session.

    An agent's key may be bound: to names of `agents`, to patterns of `tools`, and to a `requester`, which is a person's
    name, "any" (the program authenticates its own users), "none" (it works for nobody) or "" (not bound). `root` is the
    id of the first key of its rotation chain. `per_minute` and `pending` are the key's own quotas; None is the
    server's. `signed_in_at` is for sessions, `address` is the client's if known. `person_role` and `expires_at` are for
    a person's key: the person's own role, which may be higher than the key's, and the key's expiry.
    """

    workspace: str
    name: str
    role: str
    _: KW_ONLY
    teams: frozenset[str] = frozenset()
    via: str = "key"
    credential: str = ""
    agents: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    requester: str = ""
    root: str = ""
    per_minute: int | None = None
    pending: int | None = None
    signed_in_at: int | None = None
    address: str = ""
    person_role: str = ""
    expires_at: int | None = None

    @cached_property
    def owner(self) -> str:
        """The owner of this key's calls: its agent, so that another key of the agent can continue them."""
        return agents_owner(*self.agents) if self.agents else f"key:{self.root or self.credential}"

    @cached_property
    def owners(self) -> frozenset[str]:
        """The owners whose calls this key may read, start and finish."""
        if not self.agents:
            return frozenset((self.owner,))
        return frozenset({self.owner, f"key:{self.root or self.credential}", *map(agents_owner, self.agents)})

    @property
    def is_agent(self) -> bool:
        return self.role == AGENT

    @property
    def actor(self) -> str:
        """The actor name in the ledger."""
        return f"agent:{self.name}" if self.is_agent else self.name

    @property
    def on_behalf_of(self) -> str:
        """The one person that a key may act for; empty if there is none."""
        return "" if self.requester in (ANY_REQUESTER, NO_REQUESTER) else self.requester

    def reviewer(self) -> Reviewer:
        return Reviewer(
            self.name,
            self.role,
            teams=self.teams,
            via=self.via,
            delegations_to_me=(),
            credential=self.credential,
            address=self.address,
        )


@dataclass(frozen=True, slots=True)
class KeyBindings:
    """Bindings of an agent's key: names of agents, patterns of tools, a requester. Empty is not bound.

    `per_minute` and `pending` are its own quotas: 0 is no limit, None is the server's.
    """

    agents: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    requester: str = ""
    per_minute: int | None = None
    pending: int | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key; `id` is its public part; `person` is its owner, empty for a program that belongs to nobody.

    `person` of an agent's key is the one requester that it is bound to; `requester` can also be "any" or "none".
    `rotated_from` is the key that this one replaces, `root` the first one of that chain, if it is another.
    """

    id: str
    _: KW_ONLY
    workspace: str
    name: str
    role: str
    person: str
    created_by: str
    created_at: int
    used_at: int | None = None
    revoked_at: int | None = None
    agents: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    requester: str = ""
    expires_at: int | None = None
    rotated_from: str = ""
    root: str = ""
    per_minute: int | None = None
    pending: int | None = None

    @property
    def quotas(self) -> dict[str, int]:
        """The key's own quotas, by name; the others are the server's."""
        own = {"per_minute": self.per_minute, "pending": self.pending}
        return {name: limit for name, limit in own.items() if limit is not None}

    @property
    def first_key_id(self) -> str:
        """The id of the first key of its rotation chain."""
        return self.root or self.id

    @property
    def is_unbound(self) -> bool:
        """Whether it is an agent's key that may use any agent's name, or any requester's."""
        return self.role == AGENT and not (self.agents and self.requester)

    def is_valid_at(self, now: int) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class UserSession:
    """A signed-in person; `via` is a password, a link or a provider."""

    workspace: str
    person: str
    via: str
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTimeLink:
    """A link for one sign-in. Without a `person`, the first to open it chooses a name and gets `role` and `teams`."""

    workspace: str
    person: str
    role: str
    teams: frozenset[str]
    created_by: str
    expires_at: int


def agents_owner(*agents: str) -> str:
    r"""The owner of calls of these agents together. `|` in a name is written `\|`: else `a|b` were `a` and `b`."""
    names = [name.replace("\\", "\\\\").replace("|", "\\|") for name in sorted(agents)]
    return f"agent:{'|'.join(names)}"


def check_recent_sign_in(principal: Principal, now: int) -> None:
    """Require a recent sign-in, so that a stolen session creates nothing permanent. Keys have no sign-in to repeat."""
    if principal.via == "web" and now - (principal.signed_in_at or 0) > RECENT_SIGN_IN:
        raise RecentSignInRequired(
            f"This needs a sign-in of the last {RECENT_SIGN_IN // 60_000} minutes. Sign in again with your password, "
            "by a link or through your provider, then repeat it."
        )


def check_own_key(principal: Principal, key: ApiKey) -> None:
    """A key rotates and revokes its person's keys of at most its own role; a session may do so for all of them."""
    if principal.via == "key" and key.id != principal.credential and lesser_role(key.role, principal.role) != key.role:
        raise Forbidden(
            f"You came with a key for a {principal.role}: it cannot rotate or end one for more. Sign in first."
        )


def check_full_rights(principal: Principal) -> None:
    """Require a session, or a key with the person's full role, for changes that affect the person and not one key."""
    if principal.person_role and principal.person_role != principal.role:
        raise Forbidden(
            f"You came with a key for a {principal.role}, and are {principal.person_role} here. Sign in first."
        )


def check_may_delegate(principal: Principal, until: int | None) -> None:
    """Nobody delegates a vote that they do not have, nor for longer than their key lasts."""
    if lesser_role(principal.role, "viewer") == principal.role:
        raise Forbidden("Viewers cannot decide, so they have no delegates. Leave users and teams empty.")
    if until is not None and principal.expires_at is not None and until > principal.expires_at:
        raise Forbidden("Your key expires before that. Name delegates until then at the latest, or sign in first.")


def lesser_role(role: str, other: str) -> str:
    """The role with fewer rights; an unknown role counts as an agent's."""
    return ROLES[min(_rank(role), _rank(other))]


def check_role(role: str) -> None:
    if role not in ROLES:
        raise InvalidRequest(f"There is no role {_shown(role)!r}. It is one of {', '.join(ROLES)}.")


def is_reserved_actor(name: str) -> bool:
    """Whether the ledger uses the name for an actor that is not a person."""
    return name in RESERVED_ACTORS or name.startswith(("agent:", "attempt:", "runner:"))


def check_name(name: str) -> None:
    """Names appear in the ledger and in policies, where they must not look like something else."""
    if not 1 <= len(name) <= MAX_NAME or escape_invisible(name) != name or name != name.strip():
        raise InvalidRequest(f'"{_shown(name)}" cannot be a name: 1 to {MAX_NAME} visible characters, no backslash.')
    if is_reserved_actor(name):
        raise InvalidRequest(f"{name!r} is a name that Interlock uses itself. Choose another.")


def check_names(names: Collection[str]) -> None:
    if len(names) > MAX_NAMES:
        raise InvalidRequest(f"That are {len(names):,} names; there may be {MAX_NAMES}.")
    for name in names:
        check_name(name)


def check_person_name(name: str) -> None:
    """Check a person's name; the reserved requesters "any" and "none" are refused."""
    check_name(name)
    if name in (ANY_REQUESTER, NO_REQUESTER):
        raise InvalidRequest(f"{name!r} is a reserved word for the requester of a key. Choose another name.")


def check_new_person_name(name: str) -> None:
    """A new person has an address of their own, in which a name is one part of the path."""
    check_person_name(name)
    if "/" in name or name in (".", ".."):
        raise InvalidRequest(f"{name!r} cannot be the name of a person: it is a part of a web address. Leave out /.")


def check_bindings(role: str, bindings: KeyBindings) -> None:
    if role != AGENT and bindings != KeyBindings():
        raise InvalidRequest(
            "Only an agent's key is bound to agents, tools or a requester, or has quotas: leave them out."
        )
    check_names(bindings.agents)
    if len(bindings.tools) > MAX_NAMES:
        raise InvalidRequest(f"That are {len(bindings.tools):,} patterns of tools; there may be {MAX_NAMES}.")
    for pattern in bindings.tools:
        if not 1 <= len(pattern) <= MAX_NAME or escape_invisible(pattern) != pattern or pattern != pattern.strip():
            raise InvalidRequest(f'"{_shown(pattern)}" cannot be a pattern of tools, such as send_* or pay.')
    if bindings.requester not in ("", ANY_REQUESTER, NO_REQUESTER):
        check_name(bindings.requester)
    if any(limit is not None and not 0 <= limit <= MAX_QUOTA for limit in (bindings.per_minute, bindings.pending)):
        raise InvalidRequest(f"A quota is a whole number from 0 (no limit) to {MAX_QUOTA:,}.")


def is_name(name: str) -> bool:
    try:
        check_name(name)
    except InvalidRequest:
        return False
    return True


def check_workspace(name: str) -> None:
    if not _WORKSPACE.fullmatch(name):
        raise InvalidRequest(f'"{_shown(name)}" cannot be a workspace: 1 to 63 of a-z, 0-9 and -.')


def check_email(email: str) -> None:
    before, at, after = email.partition("@")
    fits = len(email) <= MAX_NAME and before and after and "@" not in after and escape_invisible(email) == email
    if email and not (at and fits and not any(ch.isspace() for ch in email)):
        raise InvalidRequest(f'"{_shown(email)}" is not an e-mail address, such as ann@example.com.')


def _rank(role: str) -> int:
    return ROLES.index(role) if role in ROLES else 0


def _shown(text: str) -> str:
    """The text, cut to the maximum length of a name, for messages."""
    return escape_invisible(text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}…")


IDENTITY_LINK_TTL = 15 * 60_000  # milliseconds
MAX_TOKEN = 2_000


class IdentityLink(NamedTuple):
    """Proof that its holder is `external_id` on the channel, until `expires_at`."""

    channel: str
    external_id: str
    expires_at: int


def sign_identity_link(key: bytes, workspace: str, identity_link: IdentityLink) -> str:
    body = urlsafe_b64encode(json.dumps(identity_link, separators=(",", ":")).encode()).decode().rstrip("=")
    return f"{body}.{_link_hmac(key, workspace, body)}"


def read_identity_link(key: bytes, workspace: str, token: str, now: int) -> IdentityLink:
    """Verify and parse an identity link; raises NotFound if it is invalid or expired."""
    refusal = NotFound("This link is invalid or expired. Ask for a new one where you got it.")
    body, _, proof = token.partition(".")
    if (
        len(token) > MAX_TOKEN
        or not token.isascii()
        or not hmac.compare_digest(proof, _link_hmac(key, workspace, body))
    ):
        raise refusal
    identity_link = IdentityLink(*json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4))))
    if now >= identity_link.expires_at:
        raise refusal
    return identity_link


def _link_hmac(key: bytes, workspace: str, body: str) -> str:
    return hmac.digest(hmac.digest(key, b"identities", sha256), f"{workspace}\n{body}".encode(), sha256).hex()
