"""`TestInterlock`: a real store in a temporary folder, a clock that the test moves, and reviewers that it scripts.

The policy, the states and the ledger are the real ones. Only people and time are replaced: as soon as a call asks, the
first answer of the test that matches decides it, as people who may decide under the policy. A call that no answer
matches raises `UnexpectedApproval` instead of waiting.
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from types import TracebackType
from typing import Any, Literal

from interlock.app.bootstrap import AppServices, Toggles, build_services
from interlock.app.inbox import ApprovalDetails
from interlock.core.approval.approval import decision_blockers
from interlock.core.approval.vote import open_stage, total_quorum
from interlock.core.call import DEFAULT_WORKSPACE, QUESTION_TOOL, Args, ToolCall, ToolSpec
from interlock.core.confusables import matches_pattern
from interlock.core.decision import Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.errors import Misconfigured
from interlock.core.outcome import Outcome, Refused, Waiting
from interlock.core.policy.policy import People
from interlock.core.ports import User
from interlock.presenters.approval import shown_args
from interlock.runtime.durations import parse_duration
from interlock.sdk.backend import Backend, ProgramIdentity
from interlock.sdk.embedded import EmbeddedBackend, PolicyOption
from interlock.sdk.interlock import Interlock

MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108  a folder in memory, on Linux
START = datetime(2027, 1, 4, 9, tzinfo=UTC)  # the same in every run of a test
VIA = "test"
AnswerKind = Literal["approve", "edit", "reject", "respond", "expire", "leave"]


class UnexpectedApproval(AssertionError):
    """A call asked people, and no answer of the test matches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """A call that the policy judged; `approval_id` is empty for an allowed read and for a denied call."""

    tool: str
    args: Mapping[str, Any]
    verdict: Literal["allow", "deny", "ask"]
    approval_id: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedDecision:
    """A decision that an answer of the test made; `args` are those that people saw."""

    tool: str
    args: Mapping[str, Any]
    kind: str
    by: str
    approval_id: str
    reason: str = ""


@dataclass(kw_only=True)
class ScriptedAnswer:
    """What people answer to calls that match; `left` is how many more calls it is for, None without a limit."""

    kind: AnswerKind
    tool: str = "*"
    args: Mapping[str, object] = field(default_factory=dict)
    question: str = "*"
    by: str = ""
    left: int | None = None
    make: Callable[[Args, Acknowledgement], Decision] = lambda _, seen: Approve(seen)

    def matches(self, tool: str, args: Args) -> bool:
        if tool == QUESTION_TOOL and not (
            self.kind in ("respond", "expire", "leave") and matches_pattern(str(args.get("question")), self.question)
        ):
            return False
        same = all(name in args and args[name] == value for name, value in self.args.items())
        return self.left != 0 and same and matches_pattern(tool, self.tool)


class MovableClock:
    """A clock that stands still, except for a millisecond with each call, until the test moves it."""

    def __init__(self, now: datetime) -> None:
        self._now = int(now.timestamp() * 1000)

    def __call__(self) -> int:
        return self._now

    def advance_to(self, now: int) -> None:
        self._now = max(self._now, now)


class TestInterlock(Interlock):
    """An `Interlock` for one test; `calls` and `decisions` are what happened, in order."""

    __test__ = False  # pytest must not collect it

    def __init__(
        self,
        *,
        policy: PolicyOption = None,
        agent: str = "agent",
        user: str = "user",
        workspace: str = DEFAULT_WORKSPACE,
        tool_approvals: Mapping[str, bool] | None = None,
        now: datetime = START,
    ) -> None:
        """Make a lock; nothing is opened yet. `now` is where the clock stands at first."""
        in_memory = MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK) else None
        folder = mkdtemp(prefix="interlock-test-", dir=in_memory)
        self._delete_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._url = f"sqlite:///{folder}/interlock.db"
        super().__init__(self._url, agent=agent, user=user, workspace=workspace)
        self._clock = MovableClock(now)
        self._script = ReviewScript(self._clock)
        self._policy = policy
        self._scripted = self._scripted_backend(self.program, policy, {agent: dict(tool_approvals or {})})
        self._backend = self._scripted
        self._replaced: list[tuple[Interlock, Backend]] = []

    # Answers: the first that matches decides

    def auto_approve(
        self, tool: str = "*", args: Mapping[str, object] | None = None, *, by: str = "", times: int | None = None
    ) -> None:
        """Approve calls of a tool (a name or a pattern) that have these `args`, among others; `times` limits how many.

        Without `by`, as many people approve as the policy asks for, each of whom may decide.
        """
        self._answer("approve", tool, args, by, times)

    def auto_edit(
        self,
        tool: str,
        changes: Mapping[str, object],
        args: Mapping[str, object] | None = None,
        *,
        by: str = "",
        times: int | None = None,
    ) -> None:
        """Change some arguments, and approve the call as changed."""
        self._answer("edit", tool, args, by, times, make=lambda old, seen: Edit({**old, **changes}, seen))

    def auto_reject(
        self,
        tool: str = "*",
        args: Mapping[str, object] | None = None,
        *,
        reason: str = "",
        by: str = "",
        times: int | None = None,
    ) -> None:
        """Reject; the clock moves past the undo window, after which the agent is told."""
        self._answer("reject", tool, args, by, times, make=lambda _, seen: Reject(reason, seen))

    def answer(
        self, message: object, question: str = "*", *, tool: str = QUESTION_TOOL, by: str = "", times: int | None = None
    ) -> None:
        """Answer a question of `ask` whose text matches the pattern; with `tool`, answer instead of running it.

        A text is a message or a choice; any other value is an answer for the question's schema.
        """
        text = message if isinstance(message, str) else ""
        data = None if isinstance(message, str) else message
        self._answer(
            "respond", tool, None, by, times, question=question, make=lambda _, seen: Respond(text, data, seen)
        )

    def let_expire(
        self, tool: str = "*", args: Mapping[str, object] | None = None, *, times: int | None = None
    ) -> None:
        """Let nobody decide: the clock moves to the deadline of the call."""
        self._answer("expire", tool, args, "", times)

    def leave_pending(
        self, tool: str = "*", args: Mapping[str, object] | None = None, *, times: int | None = None
    ) -> None:
        """Leave calls pending, for a test that decides later, with `decide` or `advance`."""
        self._answer("leave", tool, args, "", times)

    def _answer(
        self,
        kind: AnswerKind,
        tool: str,
        args: Mapping[str, object] | None,
        by: str,
        times: int | None,
        **more: Any,
    ) -> None:
        answer = ScriptedAnswer(kind=kind, tool=tool, args=dict(args or {}), by=by, left=times, **more)
        self._script.answers.append(answer)

    # People and time

    def add_person(self, name: str, *, teams: Sequence[str] = (), role: str = "reviewer", email: str = "") -> None:
        """Add a person to the workspace, for rules that name people or teams, and for `by=`."""
        person = User(name, role, teams=frozenset(teams), email=email)
        self._connect_locked().run(self._scripted.services.store.put_user(self.program.workspace, person, VIA))

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._clock() / 1000, UTC)

    def advance(self, duration: str) -> None:
        """Move the clock, by "90s", "5m", "25h" or "7d", and do what is due then: expire, escalate, lapse leases."""
        self._clock.advance_to(self._clock() + parse_duration(duration))
        self._connect_locked().run(self._scripted.services.worker.sweep())

    # What happened

    @property
    def calls(self) -> Sequence[CheckedCall]:
        return tuple(self._script.calls)

    @property
    def decisions(self) -> Sequence[ScriptedDecision]:
        return tuple(self._script.decisions)

    @property
    def unexpected(self) -> list[str]:
        """What each UnexpectedApproval said; a test that is about one clears it."""
        return self._script.unexpected

    def raise_unexpected(self) -> None:
        """Raise UnexpectedApproval if there was one, which the agent under test may have caught."""
        if self.unexpected:
            raise UnexpectedApproval("\n".join(self.unexpected))

    # Programs that have a lock of their own

    def stand_in_for(self, lock: Interlock) -> None:
        """Let `lock` use the database, clock and answers of this one until this one is closed.

        For programs with a lock at the top of a module: its tools, agent name and policy stay, unless this lock has a
        policy of its own. `lock` must not be open.
        """
        if lock._loop_thread is not None:
            raise Misconfigured("This lock is in use. Let the test replace it before its first call, or close it.")
        old = lock._backend
        policy, toggles = (old._policy, old._toggles) if isinstance(old, EmbeddedBackend) else (None, {})
        lock._backend = self._scripted_backend(lock.program, self._policy or policy, toggles)
        self._replaced.append((lock, old))

    def _scripted_backend(self, program: ProgramIdentity, policy: PolicyOption, toggles: Toggles) -> ScriptedBackend:
        return ScriptedBackend(self._script, build_services(self._url, self._clock), program, policy, toggles)

    # Closing

    def close(self, *, finished: bool = True) -> None:
        """Close this lock and those that it stands in for, and delete the database."""
        while self._replaced:
            lock, old = self._replaced.pop()
            lock.close(finished=finished)
            lock._backend = old
        super().close(finished=finished)
        self._delete_folder()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        super().__exit__(kind, error, at)
        if error is None:
            self.raise_unexpected()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, at)
        if error is None:
            self.raise_unexpected()


class ScriptedBackend(EmbeddedBackend):
    """The embedded backend without background tasks, whose approvals are decided by a script as soon as they exist."""

    def __init__(
        self,
        script: ReviewScript,
        app_services: AppServices,
        program: ProgramIdentity,
        policy: PolicyOption,
        toggles: Toggles,
    ) -> None:
        super().__init__(app_services, program, policy, toggles)
        self._script = script

    @property
    def services(self) -> AppServices:
        return self._services

    def background_tasks(self, stop: object) -> Sequence[Coroutine[Any, Any, None]]:
        """None: what is due is done when the test moves the clock."""
        return ()

    async def check(self, call: ToolCall, spec: ToolSpec) -> Outcome:
        self._script.tick()
        return await self._decided(call, await super().check(call, spec))

    async def ask(self, call: ToolCall, spec: ToolSpec) -> Outcome:
        self._script.tick()
        return await self._decided(call, await super().ask(call, spec))

    async def _decided(self, call: ToolCall, outcome: Outcome) -> Outcome:
        self._script.record_call(call, outcome)
        if not isinstance(outcome, Waiting) or outcome.status != "pending":
            return outcome
        try:
            await self._script.review(self._services, call.workspace, outcome.approval_id)
        except UnexpectedApproval as error:
            await self.cancel(outcome.approval_id, "The test has no answer for this call.")
            self._script.unexpected.append(str(error))
            raise
        return await self.wait(outcome.approval_id, 0)


class ReviewScript:
    """The answers of a test, and a record of what they decided."""

    def __init__(self, clock: MovableClock) -> None:
        self.answers: list[ScriptedAnswer] = []
        self.calls: list[CheckedCall] = []
        self.decisions: list[ScriptedDecision] = []
        self.unexpected: list[str] = []
        self._clock = clock
        self._matching = Lock()  # an agent may call tools in several threads

    def tick(self) -> None:
        """Let a millisecond pass with each call, so that lists have the order in which calls were made."""
        self._clock.advance_to(self._clock() + 1)

    def record_call(self, call: ToolCall, outcome: Outcome) -> None:
        match outcome:
            case Waiting(approval_id):
                checked = CheckedCall(tool=call.tool, args=call.parsed_args, verdict="ask", approval_id=approval_id)
            case Refused(reason, "denied"):
                checked = CheckedCall(tool=call.tool, args=call.parsed_args, verdict="deny", reason=reason)
            case _:
                checked = CheckedCall(
                    tool=call.tool, args=call.parsed_args, verdict="allow", approval_id=outcome.approval_id
                )
        if not checked.approval_id or all(each.approval_id != checked.approval_id for each in self.calls):
            self.calls.append(checked)  # a call that is made again, such as by a run that resumes, is the same

    async def review(self, services: AppServices, workspace: str, approval_id: str) -> None:
        """Let the answers decide, one person after the other, until the call is no longer pending."""
        used: list[ScriptedAnswer] = []
        while (details := await services.inbox.show(workspace, approval_id)).status == "pending":
            answer = self._find(details, used)
            match answer.kind:
                case "leave":
                    return
                case "expire":
                    self._clock.advance_to(details.stored.approval.deadlines.expires_at)
                    await services.worker.sweep()
                    return
                case _:
                    await self._decide(services, details, answer)
            used.append(answer)
        self._clock.advance_to(details.stored.approval.deadlines.release_at or 0)

    def _find(self, details: ApprovalDetails, used: Sequence[ScriptedAnswer]) -> ScriptedAnswer:
        """The first answer that matches, used once for each call; one that names a person decides once."""
        tool, args = details.stored.approval.subject.tool, _args(details)
        with self._matching:
            for answer in self.answers:
                if any(each is answer for each in used):
                    if not answer.by:
                        return answer
                elif answer.matches(tool, args):
                    answer.left = None if answer.left is None else answer.left - 1
                    return answer
        raise UnexpectedApproval(_unexpected_text(details, is_partial=bool(used)))

    async def _decide(self, services: AppServices, details: ApprovalDetails, answer: ScriptedAnswer) -> None:
        approval, args = details.stored.approval, _args(details)
        seen = Acknowledgement(approval.args_sha256, approval.findings.alarms)
        decision = Approve(seen) if answer.kind == "edit" and approval.editors else answer.make(args, seen)
        workspace = approval.subject.workspace
        if answer.by:
            reviewer = await services.inbox.reviewer(workspace, answer.by, VIA)
        else:
            reviewer = _find_reviewer(details, decision, self._clock())
        await services.inbox.decide(workspace, approval.id, decision, reviewer)
        reason = decision.reason if isinstance(decision, Reject) else ""
        self.decisions.append(
            ScriptedDecision(
                tool=approval.subject.tool,
                args=args,
                kind=decision.kind,
                by=reviewer.name,
                approval_id=approval.id,
                reason=reason,
            )
        )


def _args(details: ApprovalDetails) -> Args:
    args = shown_args(details.stored.payload)
    assert isinstance(args, dict)
    return args


def _find_reviewer(details: ApprovalDetails, decision: Decision, now: int) -> Reviewer:
    """Somebody who may decide now: a person that the rule names, or one in the teams that it names."""
    approval = details.stored.approval
    stages = approval.terms.stages
    named = stages[min(open_stage(approval), len(stages) - 1)].approvers or People()
    strangers = [f"reviewer-{number}" for number in range(1, total_quorum(approval) + 2)]
    blocked = ""
    for name in (*sorted(named.users), *strangers):
        reviewer = Reviewer(name, teams=named.teams, via=VIA)
        reason = decision_blockers(approval, reviewer, now)[decision.kind]
        if not reason:
            return reviewer
        blocked = blocked or reason
    raise UnexpectedApproval(f"Nobody can {decision.kind} {_call_text(details)}: {blocked}")


def _unexpected_text(details: ApprovalDetails, *, is_partial: bool) -> str:
    approval = details.stored.approval
    rule = f"the rule {approval.terms.rule!r}" if approval.terms.rule else "the default of the policy"
    if approval.subject.tool == QUESTION_TOOL:
        return f"The test has no answer to the question {_args(details).get('question')!r}. Add: lock.answer(…)"
    if is_partial:
        need = total_quorum(approval)
        return f"{_call_text(details)} needs {need} approvals by {rule}, and the test answers fewer."
    tool = approval.subject.tool
    return (
        f"{_call_text(details)} asks people, by {rule}, and the test has no answer for it. "
        f"Add: lock.auto_approve({tool!r}), lock.auto_reject({tool!r}) or lock.leave_pending({tool!r})."
    )


def _call_text(details: ApprovalDetails) -> str:
    args = ", ".join(f"{name}={value!r}" for name, value in _args(details).items())
    return f"{details.stored.approval.subject.tool}({args})"
