"""Random operations of people, agents and timers, run against the model and a real system at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from interlock.core.grant import Grant
from tests.faults.histories import short_digest
from tests.models.model import ModelAnswer, Operation, State, Terms, apply, deadline, expire
from tests.models.systems_under_test import (
    LEASE,
    PEOPLE,
    SPECS,
    TOOLS,
    Snapshot,
    SystemUnderTest,
    args_digest,
    spec_for,
)
from tests.support import Clock

SECOND = 1_000
EXPIRES, UNDO, START = 60 * SECOND, 8 * SECOND, 30 * SECOND  # as the policies say
DEFAULTS = "version: 1\ndefaults: {expires_in: 60s, remind: [], undo_window: 8s, start_within: 30s}\nrules:\n"
POLICIES = (
    DEFAULTS + "  - {name: two, tools: [pay], then: ask, quorum: 2}\n  - {name: free, tools: [note], then: allow}\n"
    "  - {name: silent, tools: [post], then: ask, on_expiry: approve}\n"
    "  - {name: never, tools: [wipe], then: deny, reason: Not that.}\n",
    DEFAULTS + "  - {name: both, tools: [put, pay, post], then: ask, quorum: 2}\n",
)
QUORUMS: tuple[dict[str, int], ...] = ({"pay": 2}, {"put": 2, "pay": 2, "post": 2})
DECIDERS = frozenset(PEOPLE)
NOBODY = Terms(deciders=DECIDERS, admins=frozenset({"ada"}))

slots = st.sampled_from([0, 0, 1])
tools = st.sampled_from([*range(len(TOOLS)), 1, 2])
names = st.sampled_from(["ann", "bob", "ann", "ada", "vic"])
acknowledgements = st.sampled_from(["exact"] * 8 + ["none", "old"])
fences = st.sampled_from([0] * 8 + [-1, 1])
dice = st.integers(0, 99)

# What is done next, mostly: histories get further with sensible operations. The numbers are weights.
CHOICES: dict[str, dict[str, int]] = {
    "pending": {"approve": 50, "edit": 14, "reject": 14, "respond": 5, "delegate": 6, "cancel": 3, "propose": 8},
    "approved": {"start": 80, "cancel": 5, "approve": 5, "propose": 10},
    "running": {"finish": 40, "renew": 14, "abandon": 22, "start": 14, "propose": 5, "cancel": 5},
    "rejected": {"undo": 80, "propose": 10, "approve": 10},
    "unknown": {"resolve": 70, "finish": 15, "start": 15},
}
ALL = (
    "approve",
    "edit",
    "reject",
    "respond",
    "delegate",
    "cancel",
    "undo",
    "start",
    "renew",
    "finish",
    "abandon",
    "resolve",
)


class ApprovalMachine(RuleBasedStateMachine):
    """`seen` counts the answers, so that a run can be asked whether it met all of them."""

    def __init__(self, subject: Callable[[], SystemUnderTest], clock: Clock, seen: Counter[str]) -> None:
        super().__init__()
        self.subject, self.clock, self.seen = subject(), clock, seen
        self.states: dict[int, State] = {}
        self.terms: dict[int, Terms] = {}
        self.effects: dict[int, set[tuple[str, int | None]]] = defaultdict(set)
        self.slots: dict[int, int] = {}
        self.policy, self.edits, self.made, self.calls = 0, 0, 0, 0
        self.uses: dict[str, int] = {}  # of the one grant that a tool has at a time
        self.ids: dict[str, str] = {}
        self.makers: dict[str, str] = {}

    def state(self, number: int) -> State:
        return self.states.get(number, State())

    # The two of them do the same

    def run_both(self, number: int, op: Operation) -> ModelAnswer:
        answer = self.subject.perform(number, op)
        expected = self.expect(number, op)
        self.seen[f"{op.name} {answer.code}"] += 1
        assert with_digest(expected).matches(answer._replace(expires_at=None, until=None)), (op, expected, answer)
        return answer

    def expect(self, number: int, op: Operation) -> ModelAnswer:
        if op.name != "propose":
            return self.model(number, op)
        terms = self.verdict(spec_for(number).name)
        if not self.state(number).status and terms is None:
            return ModelAnswer("ok", "denied")
        if not self.state(number).status and terms is not None:
            self.terms[number] = self.use_grant(spec_for(number).name, terms)
        answer = self.model(number, op)
        return self.model(number, Operation("hear")) if answer.code == "ok" else answer

    def model(self, number: int, op: Operation) -> ModelAnswer:
        old = self.state(number)
        terms = self.terms.get(number, NOBODY)
        terms = terms._replace(idempotent=terms.idempotent and self.clock() < old.start_by)
        new, answer = apply(old, op, terms, late=self.is_late(old))
        if new.version != old.version:
            self.states[number] = self.with_deadlines(old, new, op)
            self.seen[new.status] += 1
        return answer

    def is_late(self, state: State) -> bool:
        mark = deadline(state)
        return mark is not None and self.clock() >= mark

    def with_deadlines(self, old: State, new: State, op: Operation) -> State:
        """The deadlines that come with a new status, by the policies above."""
        now = self.clock()
        if not old.status:
            new = new._replace(expires_at=now + EXPIRES)
        if new.status == "approved" and old.status != "approved":
            new = new._replace(start_by=now + START)
        lengths = {"approved": START, "running": 0 if op.name == "abandon" else LEASE, "rejected": UNDO}
        return new._replace(until=now + lengths[new.status]) if new.status in lengths else new

    def verdict(self, tool: str) -> Terms | None:
        """What the policy in force says of a new call; None is: denied."""
        if self.policy == 0 and tool == "wipe":
            return None
        terms = NOBODY._replace(quorum=QUORUMS[self.policy].get(tool, 1), idempotent=SPECS[tool].idempotent)
        if self.policy == 0 and tool == "note":
            return terms._replace(first_status="approved", by="policy")
        return terms._replace(approves_by_silence=self.policy == 0 and tool == "post")

    def use_grant(self, tool: str, terms: Terms) -> Terms:
        if terms.quorum > 1 or terms.first_status == "approved" or not self.uses.get(tool):
            return terms
        self.uses[tool] -= 1
        return terms._replace(first_status="approved", by=self.makers[tool])

    # People, agents and runners

    @initialize()
    def begin(self) -> None:
        self.subject.policy(POLICIES[0])

    @rule(slot=slots, tool=tools, roll=dice, who=names, sight=acknowledgements, off=fences)
    def run_sensible(self, slot: int, tool: int, roll: int, who: str, sight: str, off: int) -> None:
        """A sensible operation: the next step of a call, or a new call once this one has ended."""
        state = self.state(self.slots.get(slot, -1))
        if state.status not in CHOICES:
            self.calls += 1
            self.slots[slot] = self.calls * len(TOOLS) + tool
            self.do("propose", self.slots[slot], who, sight, off)
            return
        choices = CHOICES[state.status]
        names = [name for name, weight in choices.items() for _ in range(weight)]
        self.do(names[roll % len(names)], self.slots[slot], who, sight, off)

    acts_on = run_sensible  # hypothesis takes each rule as often as the others
    acts_again = run_sensible

    @rule(slot=slots, name=st.sampled_from(ALL), who=names, sight=acknowledgements, off=fences)
    def run_any(self, slot: int, name: str, who: str, sight: str, off: int) -> None:
        """Anything, at any time."""
        self.do(name, self.slots.get(slot, 0), who, sight, off)

    def do(self, name: str, number: int, who: str, sight: str, off: int) -> None:
        state = self.state(number)
        seen = {"exact": state.args or "a", "none": None, "old": "nothing"}[sight]
        op = Operation(name, who, ok=sight != "none")
        match name:
            case "propose":
                op = Operation(name, args="b" if sight == "old" else "a")
            case "start":
                op = Operation(name, f"{'attempt:' if who == 'ann' else 'r'}{'1' if off else '2'}")
            case "renew" | "finish" | "abandon":
                op = Operation(name, fence=state.fence + off, ok=who != "ann")
            case "approve" | "reject" | "respond":
                op = op._replace(acknowledged_args=seen)
            case "edit":
                edit = self.edit(number, op._replace(acknowledged_args=seen))
                if edit is None:
                    return
                op = edit
        answer = self.run_both(number, op)
        if answer.code == "ok" and name == "start":
            self.seen["start again"] += answer.fence == state.fence
            self.effects[number].add((op.actor, answer.fence))
            assert len(self.effects[number]) == 1 or spec_for(number).idempotent, "never twice"
            assert len({fence for _, fence in self.effects[number]}) == len(self.effects[number]), "one runner a fence"

    def edit(self, number: int, op: Operation) -> Operation | None:
        """None for an edit that the policy denies: the person gets an error, see tests/contract."""
        self.edits += 1
        now = self.verdict(spec_for(number).name)
        if now is None:
            return None
        free = now.first_status == "approved"
        return op._replace(
            args=f"e{self.edits}",
            quorum=1 if free else now.quorum,
            approves_by_silence=free or now.approves_by_silence,
            ok=True,
        )

    # Time, rules and restarts

    @rule(slot=slots, how=st.sampled_from([-1, 0, 0, 1, START]), roll=dice)
    def wait(self, slot: int, how: int, roll: int) -> None:
        """Waits until just before the next deadline of a call, to it, or past it."""
        mark = deadline(self.state(self.slots.get(slot, -1)))
        if roll < 60 and mark is not None and mark + how > self.clock():
            self.clock.now = mark + how
        else:
            self.clock.advance(roll)

    @rule()
    def sweep(self) -> None:
        self.subject.sweep()
        for number, state in self.states.items():
            self.states[number] = self.expire_due(state, spec_for(number).idempotent)

    def expire_due(self, state: State, idempotent: bool) -> State:
        mark = deadline(state)
        if mark is not None and idempotent and state.status == "running":
            mark = max(mark, state.start_by)
        if state.status == "rejected" or mark is None or self.clock() < mark:
            return state
        return self.expire_due(self.with_deadlines(state, expire(state), Operation("sweep")), idempotent)

    @rule(policy=st.sampled_from([0, 0, 1]))
    def change_policy(self, policy: int) -> None:
        self.policy = policy
        self.subject.policy(POLICIES[policy])

    @rule(tool=st.sampled_from(TOOLS[:3]), uses=st.integers(1, 2), maker=st.sampled_from(["ann", "ada"]))
    def grant(self, tool: str, uses: int, maker: str) -> None:
        if self.uses.get(tool):
            return
        self.made += 1
        self.uses[tool], self.ids[tool], self.makers[tool] = uses, f"g{self.made}", maker
        until = self.clock() + 300 * 24 * 3_600 * SECOND
        draft = Grant(
            id=f"g{self.made}",
            workspace="default",
            tool=tool,
            spec_sha256=SPECS[tool].sha256,
            created_by="",
            teams=frozenset(),
            role="",
            created_at=0,
            expires_at=until,
            max_uses=uses,
        )
        self.subject.grant(draft, maker)

    @precondition(lambda self: any(self.uses.values()))
    @rule()
    def revoke(self) -> None:
        tool = next(tool for tool, left in self.uses.items() if left)
        self.uses[tool] = 0
        self.subject.revoke(self.ids[tool])

    @rule(roll=dice)
    def restart(self, roll: int) -> None:
        if roll < 25:
            self.subject.restart()

    # What always holds

    @invariant()
    def lists_equal_the_model(self) -> None:
        statuses = {number: state.status for number, state in self.states.items()}
        waiting = frozenset(number for number, status in statuses.items() if status == "pending")
        assert self.subject.snapshot() == Snapshot(waiting, Counter(statuses.values()))

    def teardown(self) -> None:
        try:
            assert self.subject.violations() == []
        finally:
            self.subject.close()


def with_digest(answer: ModelAnswer) -> ModelAnswer:
    """The model knows arguments by name; answers have the beginning of their digest."""
    return answer if answer.args is None else answer._replace(args=short_digest(args_digest(answer.args)))
