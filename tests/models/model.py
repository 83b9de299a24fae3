"""A minimal model of one approval: the answer to each operation, and the next state.

Written from the rules and not from the code, and used three times: random programs are compared with it
(tests/models), and recorded histories are checked against it (tests/faults/linearizability.py). Time is one question:
whether the deadline that holds for the present status has passed.
"""

from __future__ import annotations

from typing import NamedTuple

TIMER_ACTOR = "interlock"  # who decides when nobody does
STARTED = ("running", "succeeded", "failed", "unknown")
DECISIONS = ("approve", "edit", "respond", "reject")


class State(NamedTuple):
    """`proposed_args` are the agent's arguments, `args` the current ones; `status` is empty before a proposal."""

    status: str = ""
    version: int = 0
    proposed_args: str = ""
    args: str = ""
    votes: frozenset[str] = frozenset()
    edited: bool = False
    by: str = ""
    fence: int = 0
    quorum: int = 1
    approves_by_silence: bool = False  # silence approves
    runner: str = ""
    expires_at: int | None = None  # None: not known to any caller
    until: int | None = None  # the release, the last start or the lease, whichever the status has
    start_by: int = 0  # past that also an idempotent call is not started again


class Terms(NamedTuple):
    """How a call begins and who may decide; `first_status` is the one that the policy gives it."""

    quorum: int = 1
    first_status: str = "pending"
    by: str = ""
    idempotent: bool = False
    approves_by_silence: bool = False
    deciders: frozenset[str] = frozenset()
    admins: frozenset[str] = frozenset()


class Operation(NamedTuple):
    """`acknowledged_args` is the digest that a person saw; the last two are the current policy's terms for an edit."""

    name: str
    actor: str = ""
    acknowledged_args: str | None = None
    args: str = ""
    fence: int = 0
    ok: bool = True
    quorum: int = 1
    approves_by_silence: bool = True


class ModelAnswer(NamedTuple):
    """`code` is ok or the code of an error; None is what the answer does not say. Deadlines only come from outside."""

    code: str
    status: str | None = None
    version: int | None = None
    args: str | None = None
    by: str | None = None
    fence: int | None = None
    expires_at: int | None = None
    until: int | None = None

    def matches(self, answer: ModelAnswer) -> bool:
        """Whether an answer is the expected one."""
        pairs = zip(self[:6], answer[:6], strict=True)
        return all(heard is None or heard == expected for expected, heard in pairs)


Result = tuple[State, ModelAnswer]


def apply(state: State, op: Operation, terms: Terms, *, late: bool) -> Result:
    if op.name == "propose":
        return _propose(state, op, terms)
    if not state.status:
        return state, ModelAnswer("not_found")
    if op.name == "look":
        return state, _ok_answer(state)
    if op.name == "hear":
        return _agent_check(state, terms, late=late)
    if op.name in DECISIONS:
        return _decide(state, op, terms, late=late)
    if op.name in ("start", "renew", "finish", "abandon"):
        return _run(state, op, terms, late=late)
    others = {"undo": _undo, "cancel": _cancel, "resolve": _resolve, "delegate": _delegate}
    return others[op.name](state, op, terms, late=late)


def expire(state: State) -> State:
    """The state after its deadline; the same one if the status has none."""
    match state.status:
        case "pending" if state.approves_by_silence:
            return _next_version(state, status="approved", by=TIMER_ACTOR, until=None)
        case "pending":
            return _next_version(state, status="expired", by=TIMER_ACTOR)
        case "approved":
            return _next_version(state, status="expired")
        case "running":
            return _next_version(state, status="unknown")
    return state


def deadline(state: State) -> int | None:
    """When the present status expires; None if that is not known, or if it does not."""
    match state.status:
        case "pending":
            return state.expires_at
        case "rejected" if state.until is not None and state.expires_at is not None:
            return min(state.until, state.expires_at)
        case "approved" | "running":
            return state.until
    return None


def _propose(state: State, op: Operation, terms: Terms) -> Result:
    """Only says whether the call is known as it is; how it stands is heard afterwards."""
    if not state.status:
        born = State(
            terms.first_status,
            1,
            op.args,
            op.args,
            by=terms.by,
            quorum=terms.quorum,
            approves_by_silence=terms.approves_by_silence,
        )
        return born, ModelAnswer("ok")
    return state, ModelAnswer("ok" if state.proposed_args == op.args else "call_mismatch")


def _agent_check(state: State, terms: Terms, *, late: bool) -> Result:
    if late and state.status == "pending":
        after = expire(state)
        return after, ModelAnswer("ok", after.status)
    return state, ModelAnswer("ok", _status_for_agent(state, terms, late=late))


def _status_for_agent(state: State, terms: Terms, *, late: bool) -> str:
    """By the clock, whether or not anybody has tidied up yet; approved means: go on and start it."""
    if late and state.status == "running":
        return "approved" if terms.idempotent else "unknown"
    return "expired" if late and state.status == "approved" else state.status


def _decide(state: State, op: Operation, terms: Terms, *, late: bool) -> Result:
    if state.status == "pending" and late:
        after = expire(state)
        return after, _answer_already_decided(after)
    if state.status != "pending":
        return state, _answer_already_decided(state)
    if op.actor not in terms.deciders:
        return state, ModelAnswer("forbidden")
    blind = op.acknowledged_args is None and state.edited and op.name in ("approve", "edit")
    if blind or op.acknowledged_args not in (None, state.args):
        return state, ModelAnswer("digest_mismatch")
    match op.name:
        case "approve":
            return _vote(state, op.actor)
        case "edit":
            fresh = state._replace(args=op.args, votes=frozenset(), edited=True)
            stricter = fresh._replace(
                quorum=max(state.quorum, op.quorum),
                approves_by_silence=state.approves_by_silence and op.approves_by_silence,
            )
            return _vote(stricter, op.actor)
        case "respond":
            return _answer(_next_version(state, status="responded", by=op.actor))
    return _answer(_next_version(state, status="rejected", by=op.actor, until=None))


def _vote(state: State, who: str) -> Result:
    if who in state.votes:
        return _answer(state)
    voted = _next_version(state, votes=state.votes | {who})
    if len(voted.votes) < state.quorum:
        return _answer(voted)
    return _answer(voted._replace(status="approved", by=who, until=None))


def _undo(state: State, op: Operation, terms: Terms, *, late: bool) -> Result:
    if state.status != "rejected":
        return state, ModelAnswer("conflict")
    if op.actor != state.by and op.actor not in terms.admins:
        return state, ModelAnswer("forbidden")
    return (
        (state, ModelAnswer("expired")) if late else _answer(_next_version(state, status="pending", by="", until=None))
    )


def _delegate(state: State, op: Operation, terms: Terms, *, late: bool) -> Result:
    """To somebody who may not decide: it is kept, and gives them no vote."""
    if state.status != "pending" or late:
        after = expire(state) if state.status == "pending" else state
        return after, _answer_already_decided(after)
    return _answer(_next_version(state)) if op.actor in terms.deciders else (state, ModelAnswer("forbidden"))


def _cancel(state: State, op: Operation, terms: Terms, *, late: bool) -> Result:
    """Also after the deadline, as long as nobody has tidied up."""
    if state.status in ("pending", "approved"):
        return _answer(_next_version(state, status="cancelled", by=op.actor))
    if state.status == "cancelled":
        return _answer(state)
    return state, ModelAnswer("already_started") if state.status in STARTED else _answer_already_decided(state)


def _resolve(state: State, op: Operation, terms: Terms, *, late: bool) -> Result:
    if state.status != "unknown":
        return state, ModelAnswer("conflict")
    if op.actor not in terms.deciders:
        return state, ModelAnswer("forbidden")
    return _answer(_next_version(state, status="succeeded" if op.ok else "failed"))


def _run(state: State, op: Operation, terms: Terms, *, late: bool) -> Result:
    if op.name == "start":
        return _start(state, op, terms, late=late)
    mine = state.status == "running" and state.fence == op.fence
    if op.name == "abandon":
        after = _next_version(state, until=None) if terms.idempotent else expire(state)
        return _answer(after if mine else state)
    if op.name == "renew":
        heard = state.runner.replace("attempt:", "runner:")
        return (
            _answer(_next_version(state, until=None, runner=heard))
            if mine and not late
            else (state, ModelAnswer("lease_lost"))
        )
    ended = "succeeded" if op.ok else "failed"
    if state.status == ended and state.fence == op.fence:
        return _answer(state)
    if not 1 <= op.fence <= state.fence:
        return state, ModelAnswer("conflict")
    if mine and not late:
        return _answer(_next_version(state, status=ended))
    lost = mine and not terms.idempotent
    return (expire(state) if lost else state), ModelAnswer("lease_lost")


def _start(state: State, op: Operation, terms: Terms, *, late: bool) -> Result:
    if state.status == "approved" and late:
        return expire(state), ModelAnswer("expired")
    if state.status == "approved" or (state.status == "running" and terms.idempotent and late):
        after = _next_version(state, status="running", fence=state.fence + 1, runner=op.actor, until=None)
        return after, ModelAnswer("ok", args=after.args, fence=after.fence)
    again = state.status == "running" and not late and op.actor == state.runner and op.actor.startswith("attempt:")
    if again:
        return state, ModelAnswer("ok", args=state.args, fence=state.fence)
    if state.status in STARTED:
        return state, ModelAnswer("already_started")
    return state, ModelAnswer("expired" if state.status == "expired" else "not_approved")


def _next_version(state: State, **changes: object) -> State:
    return state._replace(version=state.version + 1, **changes)  # type: ignore[arg-type]


def _answer(state: State) -> Result:
    return state, _ok_answer(state)


def _ok_answer(state: State) -> ModelAnswer:
    return ModelAnswer("ok", state.status, state.version, state.args, state.by, state.fence)


def _answer_already_decided(state: State) -> ModelAnswer:
    """A late decision gets the recorded one and its author."""
    if state.status == "expired":
        return ModelAnswer("expired")
    return ModelAnswer("already_decided", state.status, by=state.by)
