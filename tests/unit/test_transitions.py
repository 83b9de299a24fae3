"""The transition table of an approval, and random histories checked against the invariants."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from interlock.core import errors
from interlock.core.approval import execute
from interlock.core.approval.approval import (
    APPROVED_STATUSES,
    FINAL_STATUSES,
    STATUSES,
    TRANSITIONS,
    Approval,
    cancel,
    decide,
    delegate,
    expire,
    resolve_unknown,
    undo,
)
from interlock.core.approval.execute import abandon, expire_unstarted, finish, mark_unknown, renew, start
from interlock.core.approval.propose import allow, request_approval
from interlock.core.approval.timers import fire_next_timer
from interlock.core.approval.vote import total_quorum
from interlock.core.canonical import canonical, digest
from interlock.core.decision import KINDS, Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.errors import Error
from interlock.core.ledger.chain import Entry, Head, Verifier, make_entry
from interlock.core.ledger.event import Change, Moment, Payload, Stored
from interlock.core.policy.policy import Allow, Ask, EscalationStep, Stage
from tests.hypothesis_profiles import examples
from tests.unit.builders import (
    ADMIN,
    AGENT,
    ALICE,
    ARGS,
    BOB,
    CAROL,
    DAVE,
    FINANCE,
    LEASE,
    LEGAL,
    NOW,
    OTHER_ARGS,
    PAY,
    VIEWER,
    approve,
    at,
    edit,
    pending,
    prepare_edit,
    proposal,
    reject,
    respond,
    start_call,
    store_row,
    users,
)

# --- the table

AFTER_DEADLINE = 10**9  # long after every deadline, release, start-by and lease

Verb = Callable[[Approval], Change[Approval]]


def decide_with(make: Callable[[Approval], Decision], now: int = NOW) -> Verb:
    return lambda a: decide(a, make(a), ALICE, at(now), prepare_edit(a))


def start_verb(now: int, *, dead: bool = False) -> Verb:
    return lambda a: start(store_row(a), "r2", LEASE, "", at(now), runner_is_dead=dead)


def finish_verb(now: int, fence: int = 1, *, ok: bool = True) -> Verb:
    return lambda a: finish(a, fence, Payload(result=b"5"), at(now), ok=ok)


def resolve_verb(*, ok: bool) -> Verb:
    return lambda a: resolve_unknown(a, "I looked.", ALICE, b"5", at(), ok=ok)


VERBS: dict[str, Verb] = {
    "approve": decide_with(approve),
    "edit": decide_with(edit),
    "respond": decide_with(respond),
    "reject": decide_with(reject),
    "late_approve": decide_with(approve, AFTER_DEADLINE),
    "late_edit": decide_with(edit, AFTER_DEADLINE),
    "late_respond": decide_with(respond, AFTER_DEADLINE),
    "late_reject": decide_with(reject, AFTER_DEADLINE),
    "undo": lambda a: undo(a, ALICE, at()),
    "late_undo": lambda a: undo(a, ALICE, at(AFTER_DEADLINE)),
    "delegate": lambda a: delegate(a, users("dave"), ALICE, at()),
    "late_delegate": lambda a: delegate(a, users("dave"), ALICE, at(AFTER_DEADLINE)),
    "cancel": lambda a: cancel(a, "agent", "", at()),
    "tick": lambda a: fire_next_timer(a, at()),
    "late_tick": lambda a: fire_next_timer(a, at(AFTER_DEADLINE)),
    "tick_dead": lambda a: fire_next_timer(a, at(), runner_is_dead=True),
    "expire": lambda a: expire(a, at(AFTER_DEADLINE)),
    "start": start_verb(NOW),
    "late_start": start_verb(AFTER_DEADLINE),
    "start_dead": start_verb(NOW, dead=True),
    "renew": lambda a: renew(a, 1, LEASE, at()),
    "late_renew": lambda a: renew(a, 1, LEASE, at(AFTER_DEADLINE)),
    "finish_ok": finish_verb(NOW),
    "finish_failed": finish_verb(NOW, ok=False),
    "late_finish": finish_verb(AFTER_DEADLINE),
    "strange_finish": finish_verb(NOW, 0),
    "lose": lambda a: mark_unknown(a, at()),
    "abandon": lambda a: abandon(a, 1, at()),
    "lapse": lambda a: expire_unstarted(a, at()),
    "resolve_ok": resolve_verb(ok=True),
    "resolve_failed": resolve_verb(ok=False),
}

# A word is the new status, `=` means that nothing changes; `!X` raises X, or carries it behind a change or evidence:
# C Conflict, D AlreadyDecided, E Expired, L LeaseLost, N NotApproved, S AlreadyStarted. `running*` is idempotent.
TABLE = """
verb           pending    approved  running   running*  rejected unknown   responded expired cancelled succeeded failed
approve        approved   !D        !D        !D        !D       !D        !D        !E      !D        !D        !D
edit           approved   !D        !D        !D        !D       !D        !D        !E      !D        !D        !D
respond        responded  !D        !D        !D        !D       !D        !D        !E      !D        !D        !D
reject         rejected   !D        !D        !D        !D       !D        !D        !E      !D        !D        !D
late_approve   expired!E  !D        !D        !D        !D       !D        !D        !E      !D        !D        !D
late_edit      expired!E  !D        !D        !D        !D       !D        !D        !E      !D        !D        !D
late_respond   expired!E  !D        !D        !D        !D       !D        !D        !E      !D        !D        !D
late_reject    expired!E  !D        !D        !D        !D       !D        !D        !E      !D        !D        !D
undo           !C         !C        !C        !C        pending  !C        !C        !C      !C        !C        !C
late_undo      !C         !C        !C        !C        !E       !C        !C        !C      !C        !C        !C
delegate       pending    !D        !D        !D        !D       !D        !D        !E      !D        !D        !D
late_delegate  expired!E  !D        !D        !D        !D       !D        !D        !E      !D        !D        !D
cancel         cancelled  cancelled !S        !S        !D       !S        !D        !E      =         !S        !S
tick           =          =         =         =         =        =         =         =       =         =         =
late_tick      expired    expired   unknown   unknown   =        =         =         =       =         =         =
tick_dead      =          =         unknown   =         =        =         =         =       =         =         =
expire         expired    =         =         =         =        =         =         =       =         =         =
start          !N         running   !S        !S        !N       !S        !N        !E      !N        !S        !S
late_start     !N         expired!E !S        !S        !N       !S        !N        !E      !N        !S        !S
start_dead     !N         running   !S        running   !N       !S        !N        !E      !N        !S        !S
renew          !L         !L        running   running   !L       !L        !L        !L      !L        !L        !L
late_renew     !L         !L        !L        !L        !L       !L        !L        !L      !L        !L        !L
finish_ok      !C         !C        succeeded succeeded !C       =!L       !C        !C      !C        =         =!L
finish_failed  !C         !C        failed    failed    !C       =!L       !C        !C      !C        =!L       =
late_finish    !C         !C        unknown!L unknown!L !C       =!L       !C        !C      !C        =         =!L
strange_finish !C         !C        !C        !C        !C       !C        !C        !C      !C        !C        !C
lose           =          =         unknown   unknown   =        =         =         =       =         =         =
abandon        =          =         unknown   running   =        =         =         =       =         =         =
lapse          =          expired   =         =         =        =         =         =       =         =         =
resolve_ok     !C         !C        !C        !C        !C       succeeded !C        !C      !C        !C        !C
resolve_failed !C         !C        !C        !C        !C       failed    !C        !C      !C        !C        !C
"""
CODES = {
    "": None,
    "C": errors.Conflict,
    "D": errors.AlreadyDecided,
    "E": errors.Expired,
    "L": errors.LeaseLost,
    "N": errors.NotApproved,
    "S": errors.AlreadyStarted,
}
HEADER, *ROWS = (line.split() for line in TABLE.split("\n") if line)
COLUMNS = HEADER[1:]
CELLS = [(row[0], column, cell) for row in ROWS for column, cell in zip(COLUMNS, row[1:], strict=True)]


def reach_status(column: str) -> Approval:
    """An approval that came to its status by the verbs themselves."""
    again = column.endswith("*")
    waiting = pending(spec=replace(PAY, idempotent=again))
    yes = decide(waiting, approve(waiting), ALICE, at()).state
    running = start_call(yes).state
    lives = {
        "pending": waiting,
        "approved": yes,
        "running": running,
        "rejected": decide(waiting, reject(waiting), ALICE, at()).state,
        "responded": decide(waiting, respond(waiting), ALICE, at()).state,
        "expired": fire_next_timer(waiting, at(AFTER_DEADLINE)).state,
        "cancelled": cancel(waiting, "agent", "", at()).state,
        "succeeded": finish(running, 1, Payload(), at(), ok=True).state,
        "failed": finish(running, 1, Payload(), at(), ok=False).state,
        "unknown": mark_unknown(running, at()).state,
    }
    return lives[column.removesuffix("*")]


def test_the_table_is_whole() -> None:
    assert [row[0] for row in ROWS] == list(VERBS)
    assert {column.removesuffix("*") for column in COLUMNS} == set(STATUSES)
    assert set(TRANSITIONS) == {"", *STATUSES}
    assert {column: reach_status(column).status for column in COLUMNS} == {c: c.removesuffix("*") for c in COLUMNS}


# R46, R47, R5, R14
@pytest.mark.parametrize(("verb", "column", "cell"), CELLS)
def test_every_verb_in_every_status_gives_what_the_table_says(verb: str, column: str, cell: str) -> None:
    approval = reach_status(column)
    status, _, code = cell.partition("!")
    wanted = CODES[code]
    if not status:
        assert wanted is not None
        with pytest.raises(Error) as caught:
            VERBS[verb](approval)
        assert type(caught.value) is wanted
        return
    change = VERBS[verb](approval)
    assert (type(change.error) if change.error else None) is wanted
    if status == "=":
        assert change.state is approval
        assert bool(change.events) is bool(code), "only evidence is kept of what changes nothing"
        return
    assert change.state.status == status
    assert status in TRANSITIONS[approval.status]
    assert change.state.version == approval.version + 1


# R46
def test_every_legal_transition_is_reached_and_no_other() -> None:
    births = {
        ("", request_approval(proposal(), Ask(), at()).state.status),
        ("", allow(proposal(), Allow(), at()).state.status),
    }
    moves = {
        (column.removesuffix("*"), cell.partition("!")[0]) for _, column, cell in CELLS if cell[0] not in {"=", "!"}
    }
    assert births | moves == {(old, new) for old, news in TRANSITIONS.items() for new in news}


def test_what_is_final_has_no_way_out() -> None:
    assert {status for status in STATUSES if not TRANSITIONS[status]} == FINAL_STATUSES


def test_what_no_call_comes_to_without_an_approval_counts_as_approved() -> None:
    reached = {"pending"}
    for _ in STATUSES:
        reached |= {new for old in reached for new in TRANSITIONS[old] if new != "approved"}
    assert {*STATUSES} - reached == APPROVED_STATUSES


# --- random histories

PEOPLE = (ALICE, BOB, CAROL, DAVE, ADMIN, VIEWER, AGENT, Reviewer("rita", "user"))
TERMS = (
    Ask("plain", expires_in=300_000),
    Ask("two", (Stage(FINANCE, 2),), exclude=frozenset({"requester", "editor"}), expires_in=300_000),
    Ask(
        "stages",
        (Stage(FINANCE), Stage(LEGAL)),
        expires_in=300_000,
        escalation_steps=(EscalationStep(9_000, users("dave")),),
        remind=(5_000,),
    ),
    Ask("auto", expires_in=20_000, on_expiry="approve", start_within=30_000),
    Ask("short", decisions=("approve", "edit", "reject"), expires_in=20_000, undo_window=30_000),
)
INPUTS = (ARGS, OTHER_ARGS, {"amount": 10**12})
times = st.sampled_from([1, 1_000, 5_000, 5_000, 20_000, 60_000, 4_000_000])
mostly = st.sampled_from([True] * 9 + [False])
Start = Callable[..., Change[Approval]]


def statuses(*statuses: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Only `wrong_verb` tries a verb in the wrong state, so that histories get further."""
    return precondition(lambda history: history.row is not None and history.row.approval.status in statuses)


class ApprovalMachine(RuleBasedStateMachine):
    """One approval, a store of one row, and the ledger; `seen` counts what was reached, `start` can be broken."""

    def __init__(self, seen: Counter[str], start_verb: Start) -> None:
        super().__init__()
        self.seen, self.start_verb = seen, start_verb
        self.now = NOW
        self.row: Stored | None = None
        self.entries: list[Entry] = []
        self.head = Head("default")
        self.approved: tuple[str, str] | None = None
        self.fences: list[int] = []
        self.released = False

    # What the store does

    def apply(self, verb: Callable[[Approval, Moment], Change[Approval]], *, behind: bool = False) -> None:
        assert self.row is not None
        old, moment = self.row.approval, Moment(self.now, behind)
        try:
            change = verb(old, moment)
        except Error as error:
            self.seen[type(error).__name__] += 1
            return
        self.record_events(change)
        self.check(old, change, moment)
        kept = self.row.payload
        if change.payload is not None and change.payload.args is not None:
            kept = kept._replace(args=change.payload.args, shown=change.payload.shown)
        self.row = Stored(change.state, kept)

    def record_events(self, change: Change[Approval]) -> None:
        for event in change.events:
            entry = make_entry(event, self.head, self.now, b"salt")
            self.head = Head("default", entry.seq, entry.link, entry.at)
            self.entries.append(entry)
            self.seen[event.kind] += 1

    # The invariants

    def check(self, old: Approval, change: Change[Approval], moment: Moment) -> None:
        new = change.state
        if new is old:
            assert all("status" not in event.data for event in change.events)
            return
        assert new.status in TRANSITIONS[old.status]
        assert new.version == old.version + 1, "the version grows by one with each change"
        assert new.subject == old.subject
        assert new.deadlines.expires_at == old.deadlines.expires_at, "the deadline stays"
        assert total_quorum(new) >= total_quorum(old)
        assert new.terms.exclude >= old.terms.exclude
        assert not self.released, "a rejected call never moves after its release"
        if old.status == "pending" and new.status == "approved":
            self.check_approval(new, change, moment)
        if new.status == "running" and new.lease.fence != old.lease.fence:
            self.check_start(old, new, moment)

    def check_approval(self, new: Approval, change: Change[Approval], moment: Moment) -> None:
        assert not moment.is_clock_behind
        by_time = change.events[-1].data.get("by") == "expiry"
        if by_time:
            assert (new.terms.on_expiry, new.findings.alarms) == ("approve", ())
        else:
            assert moment.now < new.deadlines.expires_at, "never approved at or after the deadline"
            assert (
                len({vote.by for vote in new.votes})
                == len({vote.on_behalf_of for vote in new.votes})
                == total_quorum(new)
            )
            assert {vote.args_sha256 for vote in new.votes} == {new.args_sha256}
            excluded = {"requester": {"rita"}, "editor": set(new.editors)}
            barred = {"vic", "robot"}.union(*(excluded[kind] for kind in new.terms.exclude))
            assert not barred & {vote.by for vote in new.votes}
        self.approved = (new.binding, new.args_sha256)

    def check_start(self, old: Approval, new: Approval, moment: Moment) -> None:
        assert self.row is not None
        assert not moment.is_clock_behind
        assert self.approved is not None, "never running without approved"
        assert (new.binding, digest(self.row.payload.args or b"")) == self.approved, "what starts is what was approved"
        assert self.fences == list(range(1, new.lease.fence)), "one start for each fence"
        self.fences.append(new.lease.fence)
        assert len(self.fences) == 1 or new.subject.idempotent, "started at most once"
        assert old.status == "approved" or new.subject.idempotent

    # The verbs

    @initialize(
        terms=st.sampled_from(TERMS), again=st.booleans(), alarms=st.sampled_from([(), (), ("f1",)]), asked=mostly
    )
    def begin(self, terms: Ask, again: bool, alarms: tuple[str, ...], asked: bool) -> None:
        proposed = proposal(replace(PAY, idempotent=again), alarms=alarms)
        moment = Moment(self.now)
        change = request_approval(proposed, terms, moment) if asked else allow(proposed, Allow("free"), moment)
        assert change.payload is not None
        assert change.state.status in TRANSITIONS[""]
        self.record_events(change)
        self.row = Stored(change.state, change.payload)
        if change.state.status == "approved":
            self.approved = (change.state.binding, change.state.args_sha256)

    @rule(wait=times)
    def wait(self, wait: int) -> None:
        self.now += wait

    @statuses("pending")
    @rule(who=st.sampled_from(PEOPLE), kind=st.sampled_from(KINDS), honest=mostly, behind=mostly.map(lambda x: not x))
    def decides(self, who: Reviewer, kind: str, honest: bool, behind: bool) -> None:
        self.respond_or_reject(kind, who, honest=honest, behind=behind)

    @statuses("pending")
    @rule(who=st.sampled_from(PEOPLE[:4]))
    def approves(self, who: Reviewer) -> None:
        self.respond_or_reject("approve", who, honest=True, behind=False)

    def respond_or_reject(self, kind: str, who: Reviewer, *, honest: bool, behind: bool) -> None:
        def verb(a: Approval, moment: Moment) -> Change[Approval]:
            seen = Acknowledgement(a.args_sha256 if honest else "f" * 64, a.findings.alarms if honest else ())
            decisions = {"approve": Approve(seen), "edit": Edit(b"{}", seen), "reject": Reject("", seen)}
            said: Decision = decisions.get(kind, Respond("no", None, seen))
            return decide(a, said, who, moment, prepare_edit(a))

        self.apply(verb, behind=behind)

    @statuses("pending")
    @rule(
        who=st.sampled_from(PEOPLE[:4]),
        args=st.sampled_from(INPUTS),
        terms=st.sampled_from((None, *TERMS)),
        alarms=st.sampled_from([(), ("f2",)]),
    )
    def edits(self, who: Reviewer, args: object, terms: Ask | None, alarms: tuple[str, ...]) -> None:
        self.apply(lambda a, m: decide(a, edit(a, args, *alarms), who, m, prepare_edit(a, args, terms, *alarms)))

    @statuses("rejected")
    @rule(who=st.sampled_from(PEOPLE), behind=mostly.map(lambda x: not x))
    def undoes(self, who: Reviewer, behind: bool) -> None:
        self.apply(lambda a, m: undo(a, who, m), behind=behind)

    @statuses("pending")
    @rule(who=st.sampled_from(PEOPLE), to=st.sampled_from(PEOPLE))
    def delegates(self, who: Reviewer, to: Reviewer) -> None:
        self.apply(lambda a, m: delegate(a, users(to.name), who, m))

    @statuses("pending", "approved")
    @rule(often=st.integers(0, 9))
    def cancels(self, often: int) -> None:
        if not often:
            self.apply(lambda a, m: cancel(a, "agent", "", m))

    @rule(dead=st.booleans(), behind=mostly.map(lambda x: not x))
    def ticks(self, dead: bool, behind: bool) -> None:
        self.apply(lambda a, m: fire_next_timer(a, m, runner_is_dead=dead), behind=behind)

    @statuses("approved", "running")
    @rule(runner=st.sampled_from(["r1", "r2"]), dead=st.booleans(), behind=mostly.map(lambda x: not x))
    def starts(self, runner: str, dead: bool, behind: bool) -> None:
        assert self.row is not None
        row = self.row
        self.apply(lambda _, m: self.start_verb(row, runner, LEASE, "", m, runner_is_dead=dead), behind=behind)

    @statuses("approved")
    @rule(args=st.sampled_from(INPUTS[1:]))
    def starts_with_other_bytes(self, args: object) -> None:
        assert self.row is not None
        row, data = self.row, canonical(args)
        if digest(data) != row.approval.args_sha256:
            forged = Stored(row.approval, Payload(args=data))
            with pytest.raises((errors.BindingBroken, errors.Expired)):
                state_or_raise(execute.start(forged, "r1", LEASE, "", Moment(self.now), runner_is_dead=False))

    @statuses("running")
    @rule(fence=st.integers(0, 3))
    def renews(self, fence: int) -> None:
        self.apply(lambda a, m: renew(a, fence, LEASE, m))

    @statuses("running", "unknown")
    @rule(back=st.sampled_from([0, 0, 0, 1]), ok=st.booleans())
    def finishes(self, back: int, ok: bool) -> None:
        self.apply(lambda a, m: finish(a, a.lease.fence - back, Payload(result=b"5"), m, ok=ok))

    @statuses("running")
    @rule(often=st.integers(0, 3))
    def abandons(self, often: int) -> None:
        if not often:
            self.apply(lambda a, m: abandon(a, a.lease.fence, m))

    @statuses("unknown")
    @rule(who=st.sampled_from(PEOPLE), ok=st.booleans())
    def resolves(self, who: Reviewer, ok: bool) -> None:
        self.apply(lambda a, m: resolve_unknown(a, "I looked.", who, None, m, ok=ok))

    @rule(verb=st.sampled_from(["approve", "edit", "respond", "reject", "undo", "start", "finish", "cancel", "tick"]))
    def wrong_verb(self, verb: str) -> None:
        assert self.row is not None
        if verb in KINDS:
            self.respond_or_reject(verb, ALICE, honest=True, behind=False)
        elif verb == "start":
            self.starts("r3", dead=True, behind=False)
        elif verb == "finish":
            self.finishes(0, ok=True)
        elif verb == "undo":
            self.undoes(ALICE, behind=False)
        elif self.row.approval.status not in ("pending", "approved"):
            self.apply(lambda a, m: cancel(a, "agent", "", m) if verb == "cancel" else fire_next_timer(a, m))

    @invariant()
    def release_is_a_fact_of_the_clock(self) -> None:
        if self.row is not None and self.row.approval.status == "rejected":
            self.released = self.released or self.now >= (self.row.approval.deadlines.release_at or 0)

    def teardown(self) -> None:
        """The ledger holds the same history, and the verifier finds no violation."""
        if self.row is None:
            return
        verifier = Verifier("default", self.head)
        verifier.feed(self.entries)
        verifier.finish(self.head)
        assert verifier.violations == []
        result = verifier.invariants.state("id")
        assert result is not None
        approval = self.row.approval
        assert (result.status, result.fence, result.binding) == (
            approval.status,
            approval.lease.fence,
            approval.binding,
        )
        self.seen[approval.status] += 1


def state_or_raise(change: Change[Approval]) -> Approval:
    """As the store gives it: the error of a change is raised once its events are kept."""
    if change.error is not None:
        raise change.error
    return change.state


EXAMPLES = examples(500, stateful_step_count=30)
STARTED: list[Callable[[ApprovalMachine], None]] = [
    lambda machine: machine.approves(ALICE),
    lambda machine: machine.starts("r1", dead=False, behind=False),
]
LOST = [*STARTED, lambda machine: machine.wait(LEASE), lambda machine: machine.ticks(dead=False, behind=False)]
PLAIN_LIVES: list[list[Callable[[ApprovalMachine], None]]] = [
    [*STARTED, lambda machine: machine.finishes(0, ok=True)],
    [*STARTED, lambda machine: machine.finishes(0, ok=False)],
    [*LOST, lambda machine: machine.finishes(0, ok=True)],
    [*LOST, lambda machine: machine.resolves(BOB, ok=True)],
]


# R46, R47, R48, R49
def test_random_lives_keep_the_laws() -> None:
    """Which lives are drawn depends on the modules that are loaded; what few of them reach is lived once by itself."""
    seen: Counter[str] = Counter()
    for life in PLAIN_LIVES:
        machine = ApprovalMachine(seen, execute.start)
        machine.begin(TERMS[0], again=False, alarms=(), asked=True)
        for step in life:
            step(machine)
        machine.teardown()
    run_state_machine_as_test(lambda: ApprovalMachine(seen, execute.start), settings=EXAMPLES)
    wanted = {"approved", "rejected", "expired", "edited", "voted", "started", "succeeded", "lost", "finished_late"}
    wanted |= {"failed", "resolved"}
    assert wanted <= set(seen), f"never seen: {wanted - set(seen)}"


def restart_any(row: Stored, runner: str, lease: int, spec: str, moment: Moment, **_: bool) -> Change[Approval]:
    """Takes every running call for an idempotent one."""
    if row.approval.status != "running":
        return execute.start(row, runner, lease, spec, moment, runner_is_dead=False)
    fence = row.approval.lease.fence + 1
    return Change(
        replace(row.approval, lease=row.approval.lease._replace(fence=fence), version=row.approval.version + 1)
    )


def start_pending(row: Stored, runner: str, lease: int, spec: str, moment: Moment, **_: bool) -> Change[Approval]:
    """Takes a pending call for an approved one."""
    asked = replace(row.approval, status="approved", deadlines=row.approval.deadlines._replace(start_by=moment.now + 1))
    approval = asked if row.approval.status == "pending" else row.approval
    return execute.start(Stored(approval, row.payload), runner, lease, spec, moment, runner_is_dead=False)


# the red control: the same histories with a broken start
@pytest.mark.parametrize("broken", [restart_any, start_pending])
def test_random_lives_find_a_broken_start(broken: Start) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            lambda: ApprovalMachine(Counter(), broken),
            settings=settings(EXAMPLES, max_examples=1_000, database=None, phases=[Phase.generate]),
        )
