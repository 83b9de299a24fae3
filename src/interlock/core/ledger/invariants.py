"""Invariants of the ledger: the legal transitions of an approval, replayed from the ledger alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from interlock.core.approval.approval import FINAL_STATUSES, TRANSITIONS
from interlock.core.call import parse_agent_actor
from interlock.core.decision import DIGEST_LENGTH
from interlock.core.freeze import SCOPES, Freeze, FreezeTarget, find_active_freeze, runner_key_id
from interlock.core.ledger.row_digests import CREATION_KINDS

if TYPE_CHECKING:
    from interlock.core.ledger.chain import Entry


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation: an entry, or a field of a row that contradicts the ledger."""

    seq: int
    message: str
    table: str = ""
    row: str = ""
    field: str = ""

    def to_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class ReplayState:
    """The state of one approval by the ledger alone; `first` is its first entry."""

    first: int = 0
    _: KW_ONLY
    status: str = ""
    binding: str = ""
    approved_binding: str = ""
    idempotent: bool = False
    quorum: int = 1
    fence: int = 0
    voters: frozenset[str] = frozenset()
    expires_at: int | None = None
    data_prefix: str = "?"  # start of the data of its next entry, if that is about the same arguments
    agent: str = ""
    tool: str = ""
    first_content: bytes | None = (
        None  # the content of its first entry, while that is stored and the call may still start
    )


# The statuses that each kind of entry leads to.
RESULTING_STATUSES: Mapping[str, tuple[str, ...]] = {
    "proposed": ("pending",),
    "allowed": ("approved",),
    "voted": ("pending",),
    "edited": ("pending",),
    "delegated": ("pending",),
    "reviewer_removed": ("pending",),
    "claimed": ("pending",),
    "released": ("pending",),
    "asked": ("pending",),
    "replied": ("pending",),
    "reminded": ("pending",),
    "escalated": ("pending",),
    "undone": ("pending",),
    "approved": ("approved",),
    "rejected": ("rejected",),
    "responded": ("responded",),
    "expired": ("expired",),
    "lapsed": ("expired",),
    "cancelled": ("cancelled",),
    "started": ("running",),
    "succeeded": ("succeeded",),
    "failed": ("failed",),
    "lost": ("unknown",),
    "resolved": ("succeeded", "failed"),
}
KINDS_WITHOUT_TRANSITION = frozenset(
    {"decision_refused", "finished_late", "commented", "deferred"}
) | {  # a refused attempt, evidence, a comment, a deadline that a freeze paused
    *("delivered", "delivery_parked", "delivery_again")  # notifications of people
}
LEGAL_TRANSITIONS = frozenset(
    (old, kind, new)
    for kind, leads_to in RESULTING_STATUSES.items()
    for new in leads_to
    for old, allowed in TRANSITIONS.items()
    if new in allowed and (kind in CREATION_KINDS) == (old == "")
)
BINDING_PREFIX = '{"binding":"'  # members are sorted, so most data begins with this
BINDING_END = len(BINDING_PREFIX) + DIGEST_LENGTH
KEY_OWNER_PREFIX = (
    "key:"  # prefix of a call's owner if its key is bound to no agent; the first key of its chain follows
)
MAX_CACHED_ENDINGS = 1_000  # different ends of data; there are few, since only the binding varies
Facts = Mapping[str, object]
NO_ENDING: tuple[str, Facts] = ("", {})


class InvariantChecker:
    """Checker fed with entries in order. Ended approvals are packed into texts: a ledger holds years of them."""

    def __init__(self, violations: list[Violation], *, starts_at_genesis: bool) -> None:
        self.unknown_entries: list[Entry] = []  # entries of approvals that began before the first entry read
        self._entries_to_replay: list[
            Entry
        ] = []  # these and the freezes between them, for the checker of the earlier part
        self._freezes: dict[str, Freeze] = {}  # active freezes
        self._starts_at_genesis = starts_at_genesis
        self._violations = violations
        self._open: dict[str, ReplayState] = {}
        self._ended: dict[str, str] = {}
        self._endings: dict[str, tuple[str, Facts]] = {}

    def __len__(self) -> int:
        return len(self._open) + len(self._ended)

    def __iter__(self) -> Iterator[str]:
        yield from self._open
        yield from self._ended

    def state(self, approval_id: str) -> ReplayState | None:
        ended = self._ended.get(approval_id)
        return self._open.get(approval_id) if ended is None else _unpack(ended)

    def count_statuses(self) -> Mapping[str, int]:
        """How many approvals have each status."""
        ended = (text.partition(" ")[0] for text in self._ended.values())
        return Counter(state.status for state in self._open.values()) + Counter(ended)

    def check(self, entry: Entry) -> None:
        """Check an entry; fast for the usual one: known arguments, a known ending, a legal transition."""
        kind, approval_id, data = entry[3], entry[5], entry[6]
        state = self._open.get(approval_id)
        if state is not None and data.startswith(state.data_prefix):
            status, facts = self._endings.get(data[BINDING_END:], NO_ENDING)
            if (state.status, kind, status) in LEGAL_TRANSITIONS:
                if step := _HANDLERS.get(kind):
                    step(self, entry, facts, state, state.binding)
                state.status = status
                if status in FINAL_STATUSES:
                    del self._open[approval_id]
                    self._ended[approval_id] = _pack(state)
                return
        self._check_slowly(entry)

    def join(self, later: InvariantChecker) -> bool:
        """Join a later part; False if an approval begins in both, which is illegal."""
        if self._freezes or not (_is_disjoint(self, later._open) and _is_disjoint(self, later._ended)):
            return False
        self._open |= later._open
        self._ended |= later._ended
        for entry in later._entries_to_replay:
            (self.check if entry.approval_id else self.apply_freeze)(entry)
        return True

    def apply_freeze(self, entry: Entry) -> None:
        """Apply an entry of the kinds frozen and unfrozen, which are about no approval."""
        facts = _parse_object(entry.data) or {}
        freeze_id, scope, name = (str(facts.get(each, "")) for each in ("freeze", "scope", "name"))
        if not self._starts_at_genesis:
            self._entries_to_replay.append(entry)
        if entry.kind == "unfrozen":
            self._freezes.pop(freeze_id, None)
        elif scope in SCOPES:
            known = Freeze(
                id=freeze_id,
                workspace=entry.workspace,
                scope=scope,  # type: ignore[arg-type]  # one of them
                name=name,
                reason="",
                by=entry.actor,
                at=entry.at,
            )
            self._freezes[freeze_id] = known
        else:
            self._add_violation(entry.seq, "A freeze has an unknown scope.")

    def _check_slowly(self, entry: Entry) -> None:
        facts = _parse_object(entry.data)
        if facts is None:
            self._add_violation(entry.seq, "The data of the entry is not a JSON object.")
            return
        state = self.state(entry.approval_id)
        if state is None:
            if not self._starts_at_genesis and entry.kind not in CREATION_KINDS:
                self.unknown_entries.append(entry._replace(salt=None, content=None))
                self._entries_to_replay.append(self.unknown_entries[-1])
                return
            state = ReplayState(entry.seq)
        elif entry.data.startswith(state.data_prefix):
            self._cache_ending(entry.data[BINDING_END:])
        self._apply_entry(entry, facts, state, str(facts.get("binding", "")))

    def _apply_entry(self, entry: Entry, facts: Facts, state: ReplayState, binding: str) -> None:
        kind, status = entry.kind, facts.get("status")
        if not isinstance(status, str) or status not in RESULTING_STATUSES.get(kind, ()):
            if kind not in KINDS_WITHOUT_TRANSITION or status is not None:
                self._add_violation(entry.seq, f"An entry of the kind {kind} cannot lead to {status}.")
            if kind == "deferred":
                state.expires_at = _number(facts.get("expires_at"))
                self._save_state(entry.approval_id, state)
            return
        if (state.status, kind, status) not in LEGAL_TRANSITIONS:
            self._report_illegal_transition(entry, state.status, status)
        if step := _HANDLERS.get(kind):
            step(self, entry, facts, state, binding)
        if binding != state.binding:
            self._add_violation(
                entry.seq, "The entry is about other arguments than those that were proposed or edited."
            )
        state.status = status
        self._save_state(entry.approval_id, state)

    def _report_illegal_transition(self, entry: Entry, old: str, new: str) -> None:
        if new not in TRANSITIONS[old]:
            self._add_violation(entry.seq, f"{old or 'nothing'} became {new}: that is not a legal transition.")
        if (entry.kind in CREATION_KINDS) == bool(old):
            self._add_violation(entry.seq, "An approval has one proposal, and it comes first.")

    def _cache_ending(self, ending: str) -> None:
        """Cache the few endings that recur after different bindings; none that names a binding itself."""
        facts = _parse_object(BINDING_PREFIX + ending) or {}
        status = facts.get("status")
        names_another = "\\" in ending or '"binding"' in ending
        if len(self._endings) < MAX_CACHED_ENDINGS and not names_another and isinstance(status, str):
            self._endings[ending] = status, facts

    def _save_state(self, approval_id: str, state: ReplayState) -> None:
        if state.status in FINAL_STATUSES:
            self._open.pop(approval_id, None)
            self._ended[approval_id] = _pack(state)
        else:
            self._ended.pop(approval_id, None)
            self._open[approval_id] = state

    def _begin(self, entry: Entry, facts: Facts, state: ReplayState, binding: str) -> None:
        state.idempotent = facts.get("idempotent") is True
        state.quorum = _quorum(facts)
        state.expires_at = _number(facts.get("expires_at"))
        state.agent, state.tool = parse_agent_actor(entry.actor), str(facts.get("tool", ""))
        state.first_content = entry.content
        state.approved_binding = binding if entry.kind == "allowed" else ""
        _set_binding(state, binding)

    def _edit(self, entry: Entry, facts: Facts, state: ReplayState, binding: str) -> None:
        state.voters = frozenset()
        state.quorum = max(state.quorum, _quorum(facts))  # an edit never loosens
        _set_binding(state, binding)

    def _vote(self, entry: Entry, facts: Facts, state: ReplayState, binding: str) -> None:
        state.voters |= {entry.actor}

    def _withdraw(self, entry: Entry, facts: Facts, state: ReplayState, binding: str) -> None:
        """Remove the votes of a person who was removed or has a lower role now."""
        voters = facts.get("voters")
        state.voters -= {str(each) for each in voters} if isinstance(voters, list) else set()

    def _approve(self, entry: Entry, facts: Facts, state: ReplayState, binding: str) -> None:
        state.approved_binding = binding
        if facts.get("by") == "expiry":
            return
        if state.quorum > 1 and (people := len(state.voters | {entry.actor})) < state.quorum:
            self._add_violation(entry.seq, f"Approved by {people} of {state.quorum} people.")
        if state.expires_at is not None and entry.at >= state.expires_at:
            self._add_violation(entry.seq, "Approved after the deadline.")

    def _start(self, entry: Entry, facts: Facts, state: ReplayState, binding: str) -> None:
        fence = facts.get("fence")
        if state.status == "running" and not state.idempotent:
            self._add_violation(entry.seq, "Started a second time, though the tool is not idempotent.")
        if binding != state.approved_binding:
            self._add_violation(entry.seq, "What ran is not what was approved.")
        if fence != state.fence + 1:
            self._add_violation(entry.seq, f"The fence is {fence}; the next one is {state.fence + 1}.")
        state.fence += 1
        if self._freezes and find_active_freeze(self._freezes.values(), _start_target(entry, state)):
            self._add_violation(entry.seq, "Started while it was frozen.")

    def _add_violation(self, seq: int, message: str) -> None:
        self._violations.append(Violation(seq, message))


_HANDLERS: Mapping[str, Callable[[InvariantChecker, Entry, Facts, ReplayState, str], None]] = {
    "proposed": InvariantChecker._begin,
    "allowed": InvariantChecker._begin,
    "edited": InvariantChecker._edit,
    "voted": InvariantChecker._vote,
    "reviewer_removed": InvariantChecker._withdraw,
    "approved": InvariantChecker._approve,
    "started": InvariantChecker._start,
}


def _set_binding(state: ReplayState, binding: str) -> None:
    state.binding = binding
    plain = len(binding) == DIGEST_LENGTH and binding.isalnum()  # needs no escaping in JSON
    state.data_prefix = BINDING_PREFIX + binding if plain else "?"


def _start_target(entry: Entry, state: ReplayState) -> FreezeTarget:
    """The target of a start, as far as the ledger shows it: never more than the program checked, which knew the key."""
    told = _parse_object((state.first_content or b"{}").decode(errors="replace")) or {}
    path, owner = told.get("agent_path"), str(told.get("owner", ""))
    agents = [str(each) for each in path] if isinstance(path, list) else [state.agent] if state.agent else []
    first = owner.removeprefix(KEY_OWNER_PREFIX) if owner.startswith(KEY_OWNER_PREFIX) else ""
    earlier = frozenset({str(told.get("credential", "")), first} - {""})
    return FreezeTarget(entry.workspace, tuple(agents), runner_key_id(entry.actor), state.tool, earlier)


def _pack(state: ReplayState) -> str:
    return f"{state.status} {state.first} {state.fence} {state.binding}"


def _unpack(text: str) -> ReplayState:
    status, first, fence, binding = text.split(" ", 3)
    return ReplayState(int(first), status=status, binding=binding, fence=int(fence))


def _is_disjoint(invariants: InvariantChecker, later: Mapping[str, object]) -> bool:
    return invariants._open.keys().isdisjoint(later) and invariants._ended.keys().isdisjoint(later)


_scan = json.JSONDecoder().raw_decode


def _parse_object(text: str) -> Facts | None:
    try:
        value, end = _scan(text) if text[0] == "{" else (None, 0)
        if end != len(text):  # not the program's own form, which may still be JSON
            value = json.loads(text)
    except (ValueError, IndexError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _quorum(facts: Facts) -> int:
    stages = facts.get("quorum")
    return sum([each for each in stages if isinstance(each, int)]) if isinstance(stages, list) else 1
