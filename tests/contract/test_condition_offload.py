"""Conditions on long arguments are evaluated off the event loop, short ones on it."""

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
from tests.support import BOB, WRITE, approve, call, propose_pending

LONG, SHORT = {"path": "x" * 10_000}, {"path": "x"}
QUESTION = ToolSpec("ask_human", "read", decisions=("respond",))


class ObservedPolicy:
    """A policy whose conditions note whether they run in the thread of the loop."""

    def __init__(self, services: AppServices) -> None:
        self.here: list[bool] = []
        self._loop = threading.get_ident()
        self.policy = Policy((Rule("r", "deny", when=self._note), Rule("s", "deny", when=self._note, shadow=True)))
        services.gate.in_force.set_policy(self.policy)

    def _note(self, _: Facts) -> bool:
        self.here.append(threading.get_ident() == self._loop)
        return False

    def thread_names(self) -> set[bool]:
        ran, self.here = set(self.here), []
        return ran


@pytest.mark.parametrize(("args", "here"), [(LONG, False), (SHORT, True)])
async def test_long_arguments_are_judged_off_the_event_loop(
    services: AppServices, args: dict[str, object], here: bool
) -> None:
    watched = ObservedPolicy(services)
    first = await propose_pending(services, 1, args=args)
    assert watched.thread_names() == {here}
    assert isinstance(await services.gate.ask(call(2, args=args), QUESTION), Waiting)
    assert watched.thread_names() == {here}
    await services.gate.judge(call(3, args=args), WRITE)  # as a quota does
    assert watched.thread_names() == {here}
    services.gate.in_force.set_policy(replace(watched.policy, sha256="other"))
    await approve(services, first)
    assert watched.thread_names() == {here}
    services.gate.in_force.set_policy(replace(watched.policy, sha256="third"))
    await services.gate.start("default", first, "runner")
    assert watched.thread_names() == {here}
    second = await propose_pending(services, 4, args=args)
    watched.thread_names()
    seen = Acknowledgement((await services.store.get("default", second)).approval.args_sha256)
    await services.inbox.decide("default", second, Edit(b'{"path":"%s"}' % (b"y" * len(str(args["path"]))), seen), BOB)
    assert watched.thread_names() == {here}


def condition_that_runs(act: Callable[[], None]) -> Callable[[Facts], bool]:
    """A condition during which something happens."""

    def when(_: Facts) -> bool:
        act()
        return False

    return when


async def test_a_policy_that_changes_while_a_call_is_judged_judges_it_too(services: AppServices) -> None:
    stricter = Policy((Rule("new", "deny", when=lambda _: True),), sha256="new")

    def change() -> None:
        services.gate.in_force.set_policy(stricter)

    services.gate.in_force.set_policy(Policy((Rule("old", "deny", when=condition_that_runs(change)),), sha256="old"))
    outcome = await services.gate.check(call(args=LONG), WRITE)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "The rule 'new' forbids delete_file."


async def test_a_copy_of_the_gate_and_the_inbox_judge_by_the_policy_in_force(services: AppServices) -> None:
    approval_id, copies = await propose_pending(services), (services.gate.for_external(), services.gate.with_fence(1))
    services.gate.in_force.set_policy(Policy((Rule("new", "deny", when=lambda _: True),), sha256="new"))
    for n, gate in enumerate(copies, 2):
        assert isinstance(await gate.check(call(n), WRITE), Refused)
    with pytest.raises(DeniedNow):
        await approve(services, approval_id)


async def test_a_call_judged_with_old_teams_is_judged_again(services: AppServices) -> None:
    approval_id = await propose_pending(services, args=LONG, requester="fay")
    await services.store.put_user("default", User("fay", teams=frozenset({"finance"})), "ada")
    teams: list[object] = []

    def note(facts: Facts) -> bool:
        if not teams:
            services.gate.in_force.invalidate_all()  # as when a person's teams change
        teams.append(facts["teams"])
        return False

    services.gate.in_force.set_policy(Policy((Rule("old", "deny", when=note),), sha256="old"))
    await services.gate.in_force.recheck("default", approval_id)
    await services.store.put_user("default", User("fay", teams=frozenset({"sales"})), "ada")
    await approve(services, approval_id)
    assert [teams[0], teams[-1]] == [["finance"], ["sales"]]
