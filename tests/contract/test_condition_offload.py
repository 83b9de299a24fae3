"""Conditions on long arguments are evaluated beside the event loop, and short ones where they are."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.call import ToolSpec
from interlock.core.decision import Acknowledgement, Edit
from interlock.core.errors import DeniedNow
from interlock.core.outcome import Refused, Waiting
from interlock.core.policy.policy import Facts, Policy, Rule
from interlock.core.ports import User
from tests.support import BOB, WRITE, approve, call, pending

LONG, SHORT = {"path": "x" * 10_000}, {"path": "x"}
QUESTION = ToolSpec("ask_human", "read", decisions=("respond",))


class Watched:
    """A policy whose conditions note whether they run in the thread of the loop."""

    def __init__(self, parts: AppServices) -> None:
        self.here: list[bool] = []
        self._loop = threading.get_ident()
        self.policy = Policy((Rule("r", "deny", when=self._note), Rule("s", "deny", when=self._note, shadow=True)))
        parts.gate.in_force.set_policy(self.policy)

    def _note(self, _: Facts) -> bool:
        self.here.append(threading.get_ident() == self._loop)
        return False

    def ran(self) -> set[bool]:
        ran, self.here = set(self.here), []
        return ran


@pytest.mark.parametrize(("args", "here"), [(LONG, False), (SHORT, True)])
async def test_a_call_is_judged_beside_the_loop_if_its_arguments_are_long(
    parts: AppServices, args: dict[str, object], here: bool
) -> None:
    watched = Watched(parts)
    first = await pending(parts, 1, args=args)
    assert watched.ran() == {here}
    assert isinstance(await parts.gate.ask(call(2, args=args), QUESTION), Waiting)
    assert watched.ran() == {here}
    await parts.gate.judge(call(3, args=args), WRITE)  # as a quota does
    assert watched.ran() == {here}
    parts.gate.in_force.set_policy(replace(watched.policy, sha256="other"))
    await approve(parts, first)
    assert watched.ran() == {here}
    parts.gate.in_force.set_policy(replace(watched.policy, sha256="third"))
    await parts.gate.start("default", first, "runner")
    assert watched.ran() == {here}
    second = await pending(parts, 4, args=args)
    watched.ran()
    seen = Acknowledgement((await parts.store.get("default", second)).approval.args_sha256)
    await parts.inbox.decide("default", second, Edit(b'{"path":"%s"}' % (b"y" * len(str(args["path"]))), seen), BOB)
    assert watched.ran() == {here}


def then(act: Callable[[], None]) -> Callable[[Facts], bool]:
    """A condition during which something happens."""

    def when(_: Facts) -> bool:
        act()
        return False

    return when


async def test_a_policy_that_changes_while_a_call_is_judged_judges_it_too(parts: AppServices) -> None:
    stricter = Policy((Rule("new", "deny", when=lambda _: True),), sha256="new")

    def change() -> None:
        parts.gate.in_force.set_policy(stricter)

    parts.gate.in_force.set_policy(Policy((Rule("old", "deny", when=then(change)),), sha256="old"))
    outcome = await parts.gate.check(call(args=LONG), WRITE)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "The rule 'new' forbids delete_file."


async def test_a_copy_of_the_gate_and_the_inbox_judge_by_the_policy_in_force(parts: AppServices) -> None:
    approval_id, copies = await pending(parts), (parts.gate.for_external(), parts.gate.with_fence(1))
    parts.gate.in_force.set_policy(Policy((Rule("new", "deny", when=lambda _: True),), sha256="new"))
    for n, gate in enumerate(copies, 2):
        assert isinstance(await gate.check(call(n), WRITE), Refused)
    with pytest.raises(DeniedNow):
        await approve(parts, approval_id)


async def test_what_was_judged_by_the_teams_of_before_is_judged_again(parts: AppServices) -> None:
    approval_id = await pending(parts, args=LONG, requester="fay")
    await parts.store.put_user("default", User("fay", teams=frozenset({"finance"})), "ada")
    teams: list[object] = []

    def note(facts: Facts) -> bool:
        teams.append(facts["teams"])
        parts.gate.in_force.invalidate_all()  # as when a person's teams change
        return False

    parts.gate.in_force.set_policy(Policy((Rule("old", "deny", when=note),), sha256="old"))
    await parts.gate.in_force.recheck("default", approval_id)
    await parts.store.put_user("default", User("fay", teams=frozenset({"sales"})), "ada")
    await approve(parts, approval_id)
    assert [teams[0], teams[-1]] == [["finance"], ["sales"]]
