"""Per-process caches: interned rows that never change, and the most recently read state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from interlock.core.approval.approval import FINAL_STATUSES, Approval
from interlock.core.errors import StoreUnavailable
from interlock.core.freeze import Freeze
from interlock.core.grant import Grant
from interlock.core.ledger.chain import Head
from interlock.core.ledger.event import Payload
from interlock.core.policy.policy import Ask, parse_terms
from interlock.core.ports import PolicyRevision, User
from interlock.storage.engine.rows import Row

MAX_CACHED_APPROVALS = 4096  # approvals cached between batches
CacheKey = tuple[str, str]


@dataclass
class Interned:
    """Cache of terms and tool definitions that are known to be stored: each is written once and read once."""

    terms: dict[str, Ask] = field(default_factory=dict)
    specs: set[str] = field(default_factory=set)
    tools: set[tuple[str, str, str]] = field(default_factory=set)  # workspace, definition, agent
    saturated_keys: set[CacheKey] = field(
        default_factory=set
    )  # workspaces and keys that have declared the maximum number of tools

    LIMIT = 10_000

    def add(self, terms: Mapping[str, Ask], specs: Iterable[str], tools: Iterable[tuple[str, str, str]]) -> None:
        self.terms.update(terms)
        self.specs.update(specs)
        self.tools.update(tools)
        self.trim()

    def trim(self) -> None:
        """Drop what has grown past the limit; call it after every addition."""
        for known in (self.terms, self.specs, self.tools, self.saturated_keys):
            if len(known) > self.LIMIT:
                known.clear()

    def clear(self) -> None:
        self.terms.clear()
        self.specs.clear()
        self.tools.clear()
        self.saturated_keys.clear()


@dataclass(kw_only=True)
class BatchCache:
    """Cache of state that no other process can have changed since; the store clears it when that no longer holds."""

    approvals: dict[CacheKey, Approval] = field(default_factory=dict)
    heads: dict[str, Head] = field(default_factory=dict)
    grants: dict[CacheKey, tuple[Grant, ...]] = field(default_factory=dict)  # by workspace and tool
    payloads: dict[CacheKey, Payload] = field(default_factory=dict)  # small ones, of cached approvals
    freezes: dict[str, tuple[Freeze, ...]] = field(default_factory=dict)  # open freezes, by workspace
    policy_revisions: dict[str, PolicyRevision] = field(default_factory=dict)  # by workspace
    users: dict[CacheKey, User | None] = field(default_factory=dict)  # recent reviewers, by workspace and name

    MAX_TOOLS = 1_000
    MAX_PAYLOAD_BYTES = 4_096
    MAX_USERS = 1_000

    def clear(self) -> None:
        self.approvals.clear()
        self.heads.clear()
        self.grants.clear()
        self.payloads.clear()
        self.freezes.clear()
        self.policy_revisions.clear()
        self.users.clear()

    def put_approvals(self, changed: Mapping[CacheKey, Approval]) -> None:
        """Cache approvals after a commit; those in a final status are dropped, since they are not needed again."""
        for key, approval in changed.items():
            if approval.status in FINAL_STATUSES or approval.erasure:
                self.approvals.pop(key, None)
                self.payloads.pop(key, None)
            else:
                self.approvals[key] = approval

    def put_payload(self, key: CacheKey, payload: Payload | None) -> None:
        """Cache a complete payload of a cached approval; None if it is only partly known."""
        if payload is None or sum(map(len, filter(None, payload))) > self.MAX_PAYLOAD_BYTES:
            self.payloads.pop(key, None)
        else:
            self.payloads[key] = payload


def intern_terms(sha256: str, found: list[Row], interned: Interned) -> Ask:
    """Parse a row of terms and intern it. Raises StoreUnavailable if it is missing or its digest does not match."""
    if not found:
        raise StoreUnavailable("The terms of an approval are missing from the database. Nothing was run.")
    terms = parse_terms(bytes(found[0][0]))
    if terms.sha256 != sha256:
        raise StoreUnavailable("The terms of an approval were altered in the database. Nothing was run.")
    interned.add({sha256: terms}, (), ())
    return terms
