"""One approval, as small as it can be told: what each operation answers, and what it leaves behind.

Written from the rules and not from the code, and used three times: random programs are compared with it
(tests/models), and recorded histories are checked against it (tests/faults/linearizability.py). Time is one question:
whether the deadline that holds for the present status has passed.
"""

from __future__ import annotations

from typing import NamedTuple

TIME = "interlock"  # who decides when nobody does
STARTED = ("running", "succeeded", "failed", "unknown")
DECISIONS = ("approve", "edit", "respond", "reject")


class State(NamedTuple):
    """`asked` are the arguments of the agent, `args` those that hold; `status` is empty before there is anything."""

    status: str = ""
    version: int = 0
    asked: str = ""
    args: str = ""
    votes: frozenset[str] = frozenset()
    edited: bool = False
    by: str = ""
    fence: int = 0
    quorum: int = 1
    consent: bool = False  # silence approves
    runner: str = ""
    expires_at: int | None = None  # None is: nobody was told
    until: int | None = None  # the release, the last start or the lease, whichever the status has
    start_by: int = 0  # past that also an idempotent call is not started again


class Terms(NamedTuple):
    """How a call begins and who may decide; `born` is the status that the policy gives it."""

    quorum: int = 1
    born: str = "pending"
    by: str = ""
    idempotent: bool = False
    consent: bool = False
    deciders: frozenset[str] = frozenset()
    admins: frozenset[str] = frozenset()


class Op(NamedTuple):
    """`seen` is the digest that a person saw; `quorum` and `consent` are what the policy of now says of an edit."""

    name: str
    who: str = ""
    seen: str | None = None
    args: str = ""
    fence: int = 0
    ok: bool = True
    quorum: int = 1
    consent: bool = True


class Answer(NamedTuple):
    """`code` is ok or the code of an error; None is what the answer does not say. Deadlines only come from outside."""

    code: str
    status: str | None = None
    version: int | None = None
    args: str | None = None
    by: str | None = None
    fence: int | None = None
    expires_at: int | None = None
    until: int | None = None

    def fits(self, told: Answer) -> bool:
        """Whether what was told is what had to be told."""
        pairs = zip(self[:6], told[:6], strict=True)
        return all(heard is None or heard == expected for expected, heard in pairs)


Result = tuple[State, Answer]


def apply(state: State, op: Op, terms: Terms, *, late: bool) -> Result:
    if op.name == "propose":
        return _propose(state, op, terms)
    if not state.status:
        return state, Answer("not_found")
    if op.name == "look":
        return state, _ok(state)
    if op.name == "hear":
        return _hear(state, terms, late=late)
    if op.name in DECISIONS:
        return _decide(state, op, terms, late=late)
    if op.name in ("start", "renew", "finish", "abandon"):
        return _run(state, op, terms, late=late)
    others = {"undo": _undo, "cancel": _cancel, "resolve": _resolve, "delegate": _delegate}
    return others[op.name](state, op, terms, late=late)


def lapse(state: State) -> State:
    """What time does once the deadline has passed; the same state if that is nothing."""
    match state.status:
        case "pending" if state.consent:
            return _next(state, status="approved", by=TIME, until=None)
        case "pending":
            return _next(state, status="expired", by=TIME)
        case "approved":
            return _next(state, status="expired")
        case "running":
            return _next(state, status="unknown")
    return state


def deadline(state: State) -> int | None:
    """When the present status ends by itself; None if nobody was told, or if it does not."""
    match state.status:
        case "pending":
            return state.expires_at
        case "rejected" if state.until is not None and state.expires_at is not None:
            return min(state.until, state.expires_at)
        case "approved" | "running":
            return state.until
    return None


def _propose(state: State, op: Op, terms: Terms) -> Result:
    """Only says whether the call is known as it is; how it stands is heard afterwards."""
    if not state.status:
        born = State(terms.born, 1, op.args, op.args, by=terms.by, quorum=terms.quorum, consent=terms.consent)
        return born, Answer("ok")
    return state, Answer("ok" if state.asked == op.args else "call_mismatch")


def _hear(state: State, terms: Terms, *, late: bool) -> Result:
    if late and state.status == "pending":
        after = lapse(state)
        return after, Answer("ok", after.status)
    return state, Answer("ok", _seen_by_agent(state, terms, late=late))


def _seen_by_agent(state: State, terms: Terms, *, late: bool) -> str:
    """By the clock, whether or not anybody has tidied up yet; approved means: go on and start it."""
    if late and state.status == "running":
        return "approved" if terms.idempotent else "unknown"
    return "expired" if late and state.status == "approved" else state.status


def _decide(state: State, op: Op, terms: Terms, *, late: bool) -> Result:
    if state.status == "pending" and late:
        after = lapse(state)
        return after, _standing(after)
    if state.status != "pending":
        return state, _standing(state)
    if op.who not in terms.deciders:
        return state, Answer("forbidden")
    blind = op.seen is None and state.edited and op.name in ("approve", "edit")
    if blind or op.seen not in (None, state.args):
        return state, Answer("digest_mismatch")
    match op.name:
        case "approve":
            return _vote(state, op.who)
        case "edit":
            fresh = state._replace(args=op.args, votes=frozenset(), edited=True)
            stricter = fresh._replace(quorum=max(state.quorum, op.quorum), consent=state.consent and op.consent)
            return _vote(stricter, op.who)
        case "respond":
            return _told(_next(state, status="responded", by=op.who))
    return _told(_next(state, status="rejected", by=op.who, until=None))


def _vote(state: State, who: str) -> Result:
    if who in state.votes:
        return _told(state)
    voted = _next(state, votes=state.votes | {who})
    if len(voted.votes) < state.quorum:
        return _told(voted)
    return _told(voted._replace(status="approved", by=who, until=None))


def _undo(state: State, op: Op, terms: Terms, *, late: bool) -> Result:
    if state.status != "rejected":
        return state, Answer("conflict")
    if op.who != state.by and op.who not in terms.admins:
        return state, Answer("forbidden")
    return (state, Answer("expired")) if late else _told(_next(state, status="pending", by="", until=None))


def _delegate(state: State, op: Op, terms: Terms, *, late: bool) -> Result:
    """To somebody who may not decide: it is kept, and gives them no vote."""
    if state.status != "pending" or late:
        after = lapse(state) if state.status == "pending" else state
        return after, _standing(after)
    return _told(_next(state)) if op.who in terms.deciders else (state, Answer("forbidden"))


def _cancel(state: State, op: Op, terms: Terms, *, late: bool) -> Result:
    """Also after the deadline, as long as nobody has tidied up."""
    if state.status in ("pending", "approved"):
        return _told(_next(state, status="cancelled", by=op.who))
    if state.status == "cancelled":
        return _told(state)
    return state, Answer("already_started") if state.status in STARTED else _standing(state)


def _resolve(state: State, op: Op, terms: Terms, *, late: bool) -> Result:
    if state.status != "unknown":
        return state, Answer("conflict")
    if op.who not in terms.deciders:
        return state, Answer("forbidden")
    return _told(_next(state, status="succeeded" if op.ok else "failed"))


def _run(state: State, op: Op, terms: Terms, *, late: bool) -> Result:
    if op.name == "start":
        return _start(state, op, terms, late=late)
    mine = state.status == "running" and state.fence == op.fence
    if op.name == "abandon":
        after = _next(state, until=None) if terms.idempotent else lapse(state)
        return _told(after if mine else state)
    if op.name == "renew":
        heard = state.runner.replace("attempt:", "runner:")
        return _told(_next(state, until=None, runner=heard)) if mine and not late else (state, Answer("lease_lost"))
    ended = "succeeded" if op.ok else "failed"
    if state.status == ended and state.fence == op.fence:
        return _told(state)
    if not 1 <= op.fence <= state.fence:
        return state, Answer("conflict")
    if mine and not late:
        return _told(_next(state, status=ended))
    lost = mine and not terms.idempotent
    return (lapse(state) if lost else state), Answer("lease_lost")


def _start(state: State, op: Op, terms: Terms, *, late: bool) -> Result:
    if state.status == "approved" and late:
        return lapse(state), Answer("expired")
    if state.status == "approved" or (state.status == "running" and terms.idempotent and late):
        after = _next(state, status="running", fence=state.fence + 1, runner=op.who, until=None)
        return after, Answer("ok", args=after.args, fence=after.fence)
    again = state.status == "running" and not late and op.who == state.runner and op.who.startswith("attempt:")
    if again:
        return state, Answer("ok", args=state.args, fence=state.fence)
    if state.status in STARTED:
        return state, Answer("already_started")
    return state, Answer("expired" if state.status == "expired" else "not_approved")


def _next(state: State, **changes: object) -> State:
    return state._replace(version=state.version + 1, **changes)  # type: ignore[arg-type]


def _told(state: State) -> Result:
    return state, _ok(state)


def _ok(state: State) -> Answer:
    return Answer("ok", state.status, state.version, state.args, state.by, state.fence)


def _standing(state: State) -> Answer:
    """Whoever comes later is told what was decided, and by whom."""
    if state.status == "expired":
        return Answer("expired")
    return Answer("already_decided", state.status, by=state.by)
