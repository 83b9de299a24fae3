"""Whether what was recorded can be explained: is there an order of the operations on one approval, each between its
call and its answer, in which a single-threaded model (tests/models/model.py) gives exactly the recorded answers?

The search is that of Wing and Gong, with Lowe's memory of what was tried. From the operations that are left, any may
come next that was called before the earliest answer among them: the order of real time is never broken. Three things
keep it cheap. What leaves the state as it is comes first, since that can never spoil what follows. A set of done
operations with the same state is tried once. And answers carry versions, so that most orders fail at once.

What is not in the history and may still happen:

- An operation without an answer (a killed client, a store that was away) happened at any time after its call, or never.
- Time lapses what is overdue. Deadlines are those that the store itself told; the clock of the store is the machine's,
  so its reading lies between the readings at call and answer. Where both sides of a deadline are possible, both are
  tried; where they are not, a late decision that counts, or an early lapse, has no explanation.
- A killed runner counts as dead from the moment of the kill on.

It never guesses: a history that takes too many steps is reported as such, and not as right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from tests.models.model import ModelAnswer, Operation, State, Terms, apply, deadline, expire

MAX_NODES = 200_000  # steps of one search
NEVER = 1 << 62
AGENTS = ("hear",)  # answered by a reader's clock, which may lag behind the store's


class RecordedOperation(NamedTuple):
    """`called` and `answered` are nanoseconds of one monotonic clock; `early` and `late` milliseconds of the wall's."""

    op: Operation
    called: int
    early: int
    answered: int = NEVER
    late: int = NEVER
    answer: ModelAnswer | None = None  # None is: it was lost


class ApprovalContext(NamedTuple):
    """Facts besides the history: the terms, and when runners were killed."""

    terms: Terms
    killed: Mapping[str, int] = {}


class SearchNode(NamedTuple):
    done: int  # one bit for each operation
    state: State


def find_order(history: Sequence[RecordedOperation], context: ApprovalContext, most: int = MAX_NODES) -> str:
    """Empty if there is an order; else what is wrong, with the history."""
    ordered = sorted(history, key=lambda each: each.called)
    wanted = sum(1 << n for n, each in enumerate(ordered) if each.answer is not None)
    stack, tried, deepest = [SearchNode(0, State())], set[SearchNode](), SearchNode(0, State())
    while stack:
        node = stack.pop()
        if node.done & wanted == wanted:
            return ""
        if node in tried:
            continue
        tried.add(node)
        if len(tried) > most:
            return f"too many orders to try: {describe_failure(ordered, deepest)}"
        deepest = max(deepest, node, key=lambda each: (each.done & wanted).bit_count())
        stack.extend(next_nodes(node, ordered, context))
    return f"no order explains {describe_failure(ordered, deepest)}"


def next_nodes(node: SearchNode, ordered: Sequence[RecordedOperation], context: ApprovalContext) -> list[SearchNode]:
    """Last is what is tried first."""
    found: list[SearchNode] = []
    for number in candidates(node.done, ordered):
        done = node.done | 1 << number
        for state in apply_operation(node.state, ordered[number], context):
            if state == node.state and ordered[number].answer is not None:
                return [SearchNode(done, state)]
            found.append(SearchNode(done, state))
    found.reverse()
    return found


def candidates(done: int, ordered: Sequence[RecordedOperation]) -> Iterator[int]:
    """What can come next, those that were answered first at the front."""
    left = [(each.answered, n) for n, each in enumerate(ordered) if not done >> n & 1]
    left.sort()
    for _, n in left:
        if ordered[n].called <= left[0][0]:
            yield n


def apply_operation(state: State, each: RecordedOperation, context: ApprovalContext) -> Iterator[State]:
    """The states that this operation may leave if it comes next, time's doings before it included."""
    while True:
        for is_late, terms in product(possible_expiries(state, each, context), terms_at(state, each, context.terms)):
            left, answer = apply(state, each.op, terms, late=is_late)
            if each.answer is None:
                if left != state:  # a lost operation that changed nothing need not have happened
                    yield left
            elif answer.matches(each.answer):
                yield with_deadlines(left, each.answer)
        if not may_expire(state, each, context):
            return
        state = expire(state)


def possible_expiries(state: State, each: RecordedOperation, context: ApprovalContext) -> tuple[bool, ...]:
    """On which sides of its deadline the state can have been met."""
    mark = deadline(state)
    dead = state.status == "running" and context.killed.get(state.runner, NEVER) <= each.late
    if state.status not in ("pending", "rejected", "approved", "running"):
        return (False,)
    if mark is None or dead:
        return (False, True)
    if mark > each.late:
        return (False,)
    return (True,) if mark <= each.early and each.op.name not in AGENTS else (False, True)


def terms_at(state: State, each: RecordedOperation, terms: Terms) -> tuple[Terms, ...]:
    """The terms that can have held: past its start deadline an idempotent call is like any other."""
    if not terms.idempotent or state.start_by > each.late:
        return (terms,)
    over = terms._replace(idempotent=False)
    is_surely_over = 0 < state.start_by <= each.early and each.op.name not in AGENTS
    return (over,) if is_surely_over else (terms, over)


def may_expire(state: State, each: RecordedOperation, context: ApprovalContext) -> bool:
    if state.status not in ("pending", "approved", "running"):
        return False
    if state.status == "running":
        if context.terms.idempotent and state.start_by > each.late:
            return False
        if context.killed.get(state.runner, NEVER) <= each.late:
            return True
    return (deadline(state) or 0) <= each.late


def with_deadlines(state: State, answer: ModelAnswer) -> State:
    """Deadlines are taken from the answers: the model has no clock."""
    if answer.expires_at is not None:
        state = state._replace(expires_at=answer.expires_at)
    if answer.until is not None:
        state = state._replace(until=answer.until)
        if state.status == "approved":
            state = state._replace(start_by=answer.until)
    return state


def describe_failure(ordered: Sequence[RecordedOperation], deepest: SearchNode) -> str:
    """The whole history, with what could not be placed marked, and the state that it was to follow."""
    lines = [
        f"{' ' if deepest.done >> n & 1 else '!'} {each.called - ordered[0].called}"
        f"..{'' if each.answered == NEVER else each.answered - ordered[0].called}"
        f" {describe_operation(each.op)} -> {describe_operation(each.answer) if each.answer else 'lost'}"
        for n, each in enumerate(ordered)
    ]
    return "\n".join([f"(after {describe_operation(deepest.state)})", *lines])


def describe_operation(each: Operation | ModelAnswer | State) -> str:
    usual = each._field_defaults
    given = {name: value for name, value in each._asdict().items() if name not in usual or value != usual[name]}
    return " ".join(f"{name}={value}" for name, value in given.items())
