"""The gate, the service for agents: check, wait, start, renew, finish, cancel.

It is long because it is everything that an agent may do, in one class over one store.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, assert_never, cast

from interlock.app.policy_in_force import PolicyEpoch, PolicyInForce, RecheckResult
from interlock.core import freeze, grant
from interlock.core.approval import discussion, execute, propose
from interlock.core.approval.approval import Approval, cancel
from interlock.core.approval.discussion import Question
from interlock.core.approval.execute import LateReport
from interlock.core.approval.propose import Proposal
from interlock.core.approval.timers import fire_next_timer
from interlock.core.approval.vote import schema_error, schema_findings
from interlock.core.call import ANY_OWNER, Args, RedactedArgs, ToolCall, ToolSpec, redact
from interlock.core.canonical import read_canonical
from interlock.core.card import Finding
from interlock.core.chat.thread import is_thread_id
from interlock.core.decision import MAX_COMMENT, MAX_MESSAGE
from interlock.core.declared import call_findings, call_sentence, stored_preview
from interlock.core.errors import CallWouldFail, Forbidden, InvalidRequest, NotFound, Problem, Stale, ToolFailed
from interlock.core.fast_dataclasses import fast_replace
from interlock.core.freeze import Freeze
from interlock.core.grant import Amounts, Grant
from interlock.core.ledger.chain import Entry
from interlock.core.ledger.event import Change, Moment, Payload, Stored
from interlock.core.masking import MASK, mask_report, mask_text
from interlock.core.outcome import Outcome, Proceed, Refused, Waiting, approval_outcome
from interlock.core.policy import claims
from interlock.core.policy.claims import FillTerms, Judgement
from interlock.core.policy.policy import SHORT_ARGS, Allow, Ask, Deny, Policy
from interlock.core.ports import (
    ApprovalPage,
    ApprovalQuery,
    Clock,
    ConditionCompiler,
    IsRunnerDead,
    ProposalStep,
    ProposalTransaction,
    ReadGrants,
    StartConditions,
    Store,
    Validator,
)
from interlock.core.preview import Preview, to_preview
from interlock.runtime.offload import OFFLOAD_THRESHOLD

MAX_INLINE_SECRETS = 1_000  # characters of a call with secret arguments that are masked on the event loop
MAX_PREVIEW = 100_000  # characters
NOT_AS_CONFIRMED = (
    "What this call would change is not as it was when the person was asked, or the question could not show it. "
    "Nothing was done. Read it again, and ask the person again."
)
NO_PREVIEW = Preview("")
MAX_CACHED_TOOLS = 1_000  # tools whose grant conditions are cached
ReportStep = Callable[[Approval, Moment, Payload], Change[Approval]]
TextStep = Callable[[Approval, Moment, str], Change[Approval]]
POLL_INTERVAL = 1.0  # seconds: a wake-up is only a hint, so every waiter also polls


class Execution(NamedTuple):
    """The right to run a call once: the stored bytes, and the fence that finish has to show.

    `preview_version` is the version that the preview gave, if people were asked and it gave one.
    """

    approval_id: str
    fence: int
    args: bytes
    idempotency_key: str
    lease_until: int
    preview_version: str = ""


class Gate:
    def __init__(
        self,
        store: Store,
        in_force: PolicyInForce,
        clock: Clock,
        compile_condition: ConditionCompiler,
        validate: Validator,
        is_dead: IsRunnerDead,
        poll_interval: float = POLL_INTERVAL,
    ) -> None:
        self.in_force = in_force
        self.epoch: PolicyEpoch | None = None  # of a copy: what was in force when it was made
        self._poll_interval = poll_interval
        self._store = store
        self._clock = clock
        self._compile_condition = compile_condition
        self._validate = validate
        self._is_dead = is_dead
        self._check_run: Callable[[ToolCall], None] = _accept_any_run
        self._require_visible: Callable[[Approval], Approval] = _accept_any_call
        self._owners: frozenset[str] = frozenset()
        self._fence: int | None = None
        self._confirmed_version: str | None = None
        self._masks_reports = False
        self._late = asyncio.Lock()
        self._grant_conditions: dict[tuple[str, str], Sequence[str]] = {}  # conditions of grants, by workspace and tool

    @property
    def policy(self) -> Policy:
        return self.in_force.policy

    def for_external(self, owners: frozenset[str] | None = None) -> Gate:
        """A gate for external programs, for which the calls of chat threads do not exist.

        With `owners`, nor do calls of other owners.
        """
        gate = self._copy()
        gate._check_run, gate._require_visible = _check_external_run, _require_external
        if owners is not None:
            gate._require_visible, gate._masks_reports = lambda approval: _require_owner(approval, owners), True
            gate._owners = owners
        return gate

    def with_fence(self, fence: int) -> Gate:
        """A gate for the holder of a thread's lease with this fence; after the lease is lost, no proposal is stored."""
        gate = self._copy()
        gate._fence = fence
        return gate

    def with_confirmed_version(self, version: str) -> Gate:
        """A gate for a call that its person confirmed: the version that the question showed holds, not that of now."""
        gate = self._copy()
        gate._confirmed_version = version
        return gate

    def _copy(self) -> Gate:
        """A copy for each request, made before teams and pins are read: if they change later, it caches no verdict.

        So a copy of a copy keeps the epoch. copy.copy takes several times as long.
        """
        gate = Gate.__new__(Gate)
        gate.__dict__.update(self.__dict__)
        gate.epoch = self.epoch or self.in_force.epoch
        return gate

    async def check(
        self,
        call: ToolCall,
        spec: ToolSpec,
        *,
        approval_id: str = "",
        accept_invalid: bool = False,
        fill: FillTerms | None = None,
    ) -> Outcome:
        """Propose a call; a known one gets its existing outcome, regardless of the current policy.

        An `approval_id` is a UUID that the caller chose for it; then a read gets a row as well. With `accept_invalid`,
        a call that does not fit the schema is stored for people to see, flagged, and cannot be approved as it is.
        `fill` fills terms that a rule leaves open. Raises CallWouldFail, on record, instead of asking people about a
        call that its tool's preview knows to fail.
        """
        self._check_run(call)
        in_force = self.in_force
        if in_force.needs_freeze_check(call) and (active_freeze := await in_force.find_freeze(call)) is not None:
            return await self._refuse_frozen(call, spec, active_freeze)
        policy = in_force.epoch.policy  # not by the property, which takes longer
        if len(call.args) <= policy.max_inline_bytes:
            judgement = claims.judge(policy, call, spec, fill)
        else:
            judgement = await self.judge(call, spec, fill)
        if not isinstance(judgement.verdict, Allow) or not judgement.is_read or approval_id or accept_invalid:
            return await self._record(call, spec, judgement, approval_id, accept_invalid=accept_invalid)
        known = await self._find_outcome(call)
        if known is None:
            self._store.count_read(call.workspace, call.tool)
        return known or Proceed(call.args)

    async def ask(self, call: ToolCall, spec: ToolSpec, *, approval_id: str = "") -> Outcome:
        """Ask people a question: the policy may deny it, but the only possible outcome is an answer."""
        self._check_question(call.parsed_args)
        self._check_run(call)
        if (active_freeze := await self.in_force.find_freeze(call)) is not None:
            return await self._refuse_frozen(call, spec, active_freeze)
        judgement = await self.judge(call, spec)
        verdict = judgement.verdict
        if isinstance(verdict, Allow):
            verdict = claims.default_terms(self.policy, call, spec)
        if isinstance(verdict, Ask):
            verdict = replace(verdict, decisions=("respond",), on_expiry="reject")
        return await self._record(call, spec, judgement._replace(verdict=verdict), approval_id)

    async def judge(self, call: ToolCall, spec: ToolSpec, fill: FillTerms | None = None) -> Judgement:
        """Judge a call, in a thread if that could take long, by the policy in force when it is done."""
        policy = self.in_force.policy
        if len(call.args) <= policy.max_inline_bytes:
            return claims.judge(policy, call, spec, fill)
        judgement = await asyncio.to_thread(claims.judge, policy, call, spec, fill)
        return (
            judgement
            if policy is self.in_force.policy
            else await self.judge(fast_replace(call, condition_budgets={}), spec, fill)
        )

    async def get_outcome(self, workspace: str, approval_id: str) -> Outcome:
        """Read the arguments and the result only if the outcome has them: thousands of waiters look again and again."""
        approval = self._require_visible(await self._store.get_approval(workspace, approval_id))
        outcome = self._outcome_without_payload(approval)
        return outcome or await self._resolve_outcome(await self._store.get(workspace, approval_id))

    def _outcome_without_payload(self, approval: Approval) -> Outcome | None:
        """The outcome, unless a timer has to be fired first or it has arguments or a result."""
        now = self._clock()
        approval = self.in_force.defer_approval(approval, now)
        dead = approval.status == "running" and self._is_dead(approval.lease.runner)
        overdue = approval.status == "pending" and now >= approval.deadlines.expires_at
        if dead or overdue:
            return None
        outcome = self.in_force.wait_if_frozen(approval_outcome(approval, Payload(), now), approval)
        return outcome if isinstance(outcome, Waiting | Refused) else None

    async def wait(
        self, workspace: str, approval_id: str, timeout: float | None = None, *, last_seen_question: int | None = None
    ) -> Outcome:
        """Wait for an outcome other than Waiting, or return Waiting after the timeout.

        With `last_seen_question`, the number of the last question that the agent knows, also return when there is a
        newer one.
        """
        deadline = None if timeout is None else self._clock() + int(timeout * 1000)
        async with self._store.watch(workspace, approval_id) as watch:
            while True:
                outcome = await self.get_outcome(workspace, approval_id)
                if not isinstance(outcome, Waiting) or (
                    last_seen_question is not None and max(outcome.questions, default=0) > last_seen_question
                ):
                    return outcome
                now = self._clock()
                if deadline is not None and now >= deadline:
                    return outcome
                marks = [mark for mark in (deadline, outcome.until) if mark is not None]
                pause = min([self._poll_interval, *((mark - now) / 1000 for mark in marks)])
                await watch.wait(max(pause, 0.001))

    async def start(
        self, workspace: str, approval_id: str, runner: str, lease: int = execute.DEFAULT_LEASE, spec_sha256: str = ""
    ) -> Execution:
        """Start a call: one caller wins, the others get an error. A frozen or now denied call does not start."""
        work = partial(self._start, workspace, approval_id, runner, lease, spec_sha256)
        stored = await self.in_force.retry_if_outdated(approval_id, work)
        self.in_force.invalidate(approval_id)  # its judgement is of no further use
        approval, payload = stored
        return Execution(
            approval.id,
            approval.lease.fence,
            payload.args or b"{}",
            approval.id,
            approval.lease.until or 0,
            preview_version=payload.preview_version or "",
        )

    async def _start(self, workspace: str, approval_id: str, runner: str, lease: int, spec_sha256: str) -> Stored:
        recheck = await self.in_force.recheck(workspace, approval_id)
        step = partial(self._start_step, runner, lease, spec_sha256, recheck)
        return await self._store.transition_stored(workspace, approval_id, step)

    def _start_step(
        self,
        runner: str,
        lease: int,
        spec_sha256: str,
        recheck: RecheckResult,
        stored: Stored,
        moment: Moment,
        conditions: StartConditions,
    ) -> Change[Approval]:
        self._require_visible(stored.approval)
        dead = stored.approval.status == "running" and self._is_dead(stored.approval.lease.runner)
        stopped = self.in_force.start_error(stored.approval, runner, conditions, recheck)
        return execute.start(stored, runner, lease, spec_sha256, moment, runner_is_dead=dead, start_error=stopped)

    async def renew(self, workspace: str, approval_id: str, fence: int, lease: int = execute.DEFAULT_LEASE) -> Approval:
        return await self._store.transition(
            workspace,
            approval_id,
            lambda approval, moment: execute.renew(self._require_visible(approval), fence, lease, moment),
        )

    async def finish(self, workspace: str, approval_id: str, fence: int, *, ok: bool, payload: Payload) -> Approval:
        """Finish a call; secret arguments that an external program repeats in its report are masked."""
        try:
            return await self._finish(workspace, approval_id, fence, payload, ok=ok, late=_raise_too_late)
        except _ReportTooLate:
            async with self._late:  # sequentially: each sees what the earlier ones stored
                is_new = await self._new_evidence(workspace, approval_id)
                return await self._finish(workspace, approval_id, fence, payload, ok=ok, late=is_new)

    async def _finish(
        self,
        workspace: str,
        approval_id: str,
        fence: int,
        payload: Payload,
        *,
        ok: bool,
        late: Callable[[LateReport], bool],
    ) -> Approval:
        step = partial(self._finish_step, fence, late, ok=ok)
        if self._masks_reports:
            return await self._run_masked(workspace, approval_id, payload, step)
        return await self._store.transition(workspace, approval_id, partial(step, report=payload))

    def _finish_step(
        self,
        fence: int,
        late: Callable[[LateReport], bool],
        approval: Approval,
        moment: Moment,
        report: Payload,
        *,
        ok: bool,
    ) -> Change[Approval]:
        return execute.finish(self._require_visible(approval), fence, report, moment, ok=ok, late=late)

    async def _say(self, workspace: str, approval_id: str, text: str, limit: int, step: TextStep) -> Approval:
        """Run a step with a text of an agent about a call; its secret arguments are masked, whoever the agent is."""

        def say(approval: Approval, moment: Moment, report: Payload) -> Change[Approval]:
            said = report.error or ""
            return step(approval, moment, MASK if len(text) <= limit < len(said) else said)  # masks can be longer

        return await self._run_masked(workspace, approval_id, Payload(error=text), say)

    async def _run_masked(self, workspace: str, approval_id: str, report: Payload, step: ReportStep) -> Approval:
        """Mask outside the transaction: a program sizes secrets and report, and no transaction must wait for that."""

        async def run(mask: Callable[[Payload], Payload]) -> Approval:
            stored = await self._store.transition_stored(
                workspace,
                approval_id,
                lambda old, moment, _: step(self._require_visible(old.approval), moment, mask(old.payload)),
            )
            return stored.approval

        try:
            return await run(partial(_check_no_secrets, report))
        except _HasSecrets as found:
            args, masked = found.stored.args, await asyncio.to_thread(mask_report, report, found.stored)
        # if the arguments were erased meanwhile, all is masked
        return await run(lambda stored: masked if stored.args == args else mask_report(report, stored))

    async def _new_evidence(self, workspace: str, approval_id: str) -> Callable[[LateReport], bool]:
        """Accept a late report only once, and a few per call: a late runner can repeat it without limit."""
        timeline = await self._store.timeline(workspace, approval_id)
        told = [entry for entry in timeline if entry.kind == "finished_late"]
        known = [(json.loads(each.data)["fence"], json.loads(each.content or "{}")) for each in told]
        return lambda report: len(known) < execute.MAX_LATE_REPORTS and (report.fence, report.content) not in known

    async def abandon(self, workspace: str, approval_id: str, fence: int) -> Approval:
        """Report that the runner was interrupted inside the tool: the outcome is unknown."""
        return await self._store.transition(
            workspace,
            approval_id,
            lambda approval, moment: execute.abandon(self._require_visible(approval), fence, moment),
        )

    async def mark_effect_unknown(self, workspace: str, approval_id: str, fence: int) -> Approval:
        """Report that the tool does not know whether it took effect: a person has to check."""
        return await self._store.transition(
            workspace,
            approval_id,
            lambda approval, moment: execute.report_unknown(self._require_visible(approval), fence, moment),
        )

    async def cancel(self, workspace: str, approval_id: str, actor: str, reason: str = "") -> Approval:
        return await self._say(
            workspace,
            approval_id,
            reason,
            MAX_COMMENT,
            lambda approval, moment, said: cancel(approval, actor, said, moment),
        )

    async def questions(self, workspace: str, approval_id: str) -> Sequence[Question]:
        """Open questions of people to the agent."""
        open_now = self._require_visible(
            (await self._store.get(workspace, approval_id)).approval
        ).discussion.open_questions
        timeline = await self._store.timeline(workspace, approval_id) if open_now else ()
        asked = [Question(json.loads(e.data)["number"], e.actor, _entry_text(e)) for e in timeline if e.kind == "asked"]
        return [question for question in asked if question.number in open_now]

    async def answer(self, workspace: str, approval_id: str, number: int, text: str, agent: str = "") -> Approval:
        actor = f"agent:{agent}" if agent else "agent"
        return await self._say(
            workspace,
            approval_id,
            text,
            MAX_MESSAGE,
            lambda approval, moment, said: discussion.reply(approval, number, said, actor, moment),
        )

    async def agent_comment(self, workspace: str, approval_id: str, text: str, actor: str) -> Approval:
        said = [each for each in await self._store.timeline(workspace, approval_id) if each.kind == "commented"]
        discussion.check_comment_limit(sum(each.actor == actor for each in said), approval_id)
        return await self._say(
            workspace,
            approval_id,
            text,
            discussion.MAX_QUESTION,
            lambda approval, moment, said: discussion.agent_comment(approval, said, actor, moment),
        )

    async def list_calls(self, workspace: str, query: ApprovalQuery) -> ApprovalPage:
        """Calls of the owners that this gate is for, the newest first; a gate without owners lists none."""
        if not self._owners:
            raise Forbidden("Only the calls of an agent's own key are listed here.")
        page = await self._store.list(workspace, replace(query, owners=self._owners))
        return self.in_force.defer_page(page, self._clock())

    async def show_call(self, workspace: str, approval_id: str) -> Stored:
        stored = await self._store.get(workspace, approval_id)
        approval = self.in_force.defer_approval(self._require_visible(stored.approval), self._clock())
        return stored._replace(approval=approval)

    async def find_approval(self, workspace: str, run_id: str, call_id: str) -> Approval | None:
        """The approval of a call, if people were asked about it or it was allowed as a write."""
        found = await self._store.find(workspace, run_id, call_id)
        return None if found is None else found.approval

    async def get_edited_args(self, workspace: str, approval_id: str) -> Args | None:
        """The arguments as people edited them, secrets redacted; None if nobody did."""
        approval, payload = await self._store.get(workspace, approval_id)
        return cast(Args, read_canonical(payload.shown or payload.args or b"{}")) if approval.editors else None

    async def _find_outcome(self, call: ToolCall, approval_id: str = "") -> Outcome | None:
        known = await self._store.find(call.workspace, call.run_id, call.call_id)
        if known is None:
            return None
        propose.check_same_call(known.approval, call, approval_id)
        return await self._resolve_outcome(known)

    def _check_question(self, asked: Args) -> None:
        """Raise InvalidRequest for a question that nobody could answer."""
        schema = asked.get("schema")
        if schema is not None and asked.get("choices") is not None:
            raise InvalidRequest("A question has choices or a schema, not both.")
        if schema is not None:
            self._validate(cast(Args, schema), None)  # raises if the schema itself is wrong

    async def _record(
        self,
        call: ToolCall,
        spec: ToolSpec,
        judgement: Judgement,
        approval_id: str = "",
        *,
        accept_invalid: bool = False,
    ) -> Outcome:
        """Store a proposal; asked and allowed calls are looked up again inside the transaction, all others here."""
        verdict = judgement.verdict
        policy = self.in_force.policy  # the policy and the epoch of the verdict, even if others are in force by the end
        epoch = self.epoch or self.in_force.epoch
        propose.check_approval_id(approval_id)
        schema_errors = self._validate(spec.schema, call.parsed_args) if spec.schema is not None else ()
        if schema_errors or spec.preview is not None or isinstance(verdict, Deny):
            known = await self._find_outcome(call, approval_id)
            if known is not None:
                return known
        if schema_errors and not accept_invalid:
            raise schema_error(schema_errors)
        if schema_errors and isinstance(verdict, Allow):
            verdict = claims.default_terms(policy, call, spec)  # arguments that do not fit are never allowed
        checked = judgement if verdict is judgement.verdict else judgement._replace(verdict=verdict)
        proposal = await self._make_proposal(policy, call, spec, checked, approval_id, schema_errors)
        match verdict:
            case Ask():
                terms = replace(verdict, notes=(*verdict.notes, *judgement.warnings)) if judgement.warnings else verdict
                outcome = await self._begin_asked(proposal, terms, judgement, epoch)
                return _with_warnings(outcome, judgement.warnings)
            case Allow():
                return await self._begin(proposal, lambda moment, _: propose.allow(proposal, verdict, moment), epoch)
            case Deny():
                await self._store.deny(call.workspace, propose.deny(proposal, verdict).events, spec)
                refused = Refused(verdict.reason, "denied", args_sha256=proposal.shown.sha256)
                return _with_warnings(refused, judgement.warnings)
            case _:
                assert_never(verdict)

    async def preview(self, call: ToolCall, spec: ToolSpec) -> Preview:
        """Render the preview for a question to people. Raises CallWouldFail, on record, if there is nothing to ask."""
        try:
            return self._check_confirmed(await _run_preview(spec, call))
        except CallWouldFail as error:
            raise await self._record_failing_call(call, spec, error) from None
        except Exception as error:  # noqa: BLE001  a failed look-up is no reason not to ask
            return Preview(_missing_preview(error), self._confirmed_version or "")

    def _check_confirmed(self, preview: Preview) -> Preview:
        """Raise CallWouldFail if the person confirmed another version of what this preview shows."""
        if self._confirmed_version is None:
            return preview
        if preview.version not in ("", self._confirmed_version):
            raise CallWouldFail(NOT_AS_CONFIRMED)
        return replace(preview, version=self._confirmed_version)

    async def _record_failing_call(self, call: ToolCall, spec: ToolSpec, error: CallWouldFail) -> CallWouldFail:
        """Record a call that is refused before anybody is asked; return the error without secret arguments."""
        judgement = await self.judge(call, spec)
        policy, reason = self.in_force.policy, error.message[:MAX_MESSAGE]
        proposal = await self._make_proposal(policy, call, spec, judgement._replace(verdict=Deny(reason)), "", ())
        if spec.secret:
            reason = await asyncio.to_thread(mask_text, reason, call.args, proposal.shown.data)
        change = propose.deny_by_preview(proposal, judgement.verdict.rule, reason)
        await self._store.deny(call.workspace, change.events, spec)
        return CallWouldFail(reason)

    async def _begin_asked(self, proposal: Proposal, terms: Ask, judgement: Judgement, epoch: PolicyEpoch) -> Outcome:
        """Evaluate the conditions of grants before the transaction; retry if there are new ones by then."""
        place = (proposal.call.workspace, proposal.call.tool)
        conditions = self._grant_conditions.get(place, ())
        while True:
            held = await evaluate_conditions(conditions, judgement, self._compile_condition) if conditions else {}
            try:
                return await self._begin(proposal, partial(ask_people, proposal, terms, judgement, held), epoch)
            except UnevaluatedConditions as unheld:
                if len(self._grant_conditions) >= MAX_CACHED_TOOLS:
                    self._grant_conditions.clear()
                conditions = self._grant_conditions[place] = unheld.conditions

    async def _begin(self, proposal: Proposal, step: ProposalStep, epoch: PolicyEpoch) -> Outcome:
        stored = await self._store.propose(ProposalTransaction(proposal, step, self._fence))
        if stored.approval.id == proposal.id:
            self.in_force.cache_allowed(epoch, stored.approval)
        return await self._resolve_outcome(stored)

    async def _resolve_outcome(self, stored: Stored) -> Outcome:
        """The outcome by the clock; an overdue timer is fired as well."""
        now, approval = self._clock(), stored.approval
        if self.in_force.freezes:
            approval = self.in_force.defer_approval(approval, now)
        dead = approval.status == "running" and self._is_dead(approval.lease.runner)
        if dead and execute.may_restart(approval, now):
            again = Proceed(stored.payload.args or b"{}", approval.id, approval.args_sha256)
            return self.in_force.wait_if_frozen(again, approval)
        overdue = approval.status == "pending" and now >= approval.deadlines.expires_at
        if dead or overdue:
            workspace = approval.subject.workspace
            approval = await self._store.transition(
                workspace, approval.id, lambda current, moment: fire_next_timer(current, moment, runner_is_dead=dead)
            )
            stored = await self._store.get(workspace, approval.id)
        return self.in_force.wait_if_frozen(approval_outcome(approval, stored.payload, now), approval)

    async def _refuse_frozen(self, call: ToolCall, spec: ToolSpec, active_freeze: Freeze) -> Outcome:
        """Refuse a frozen call; a known one gets its existing outcome. Entries for refused reads are rate limited."""
        known = await self._find_outcome(call)
        if known is not None:
            return known
        reason = freeze.freeze_message(active_freeze)
        if spec.effect == "read" and not self.in_force.read_entry_limiter.allow(self._clock()):
            return Refused(reason, "denied")
        return await self._record(call, spec, Judgement(Deny(reason), (call,), (spec.effect,)))

    async def _make_proposal(
        self,
        policy: Policy,
        call: ToolCall,
        spec: ToolSpec,
        judgement: Judgement,
        approval_id: str,
        schema_errors: tuple[Problem, ...],
    ) -> Proposal:
        key = await self._store.secret_key(call.workspace)
        is_small = len(call.args) < OFFLOAD_THRESHOLD
        shown, findings, sentence = (
            _describe_call(call, spec, key) if is_small else await asyncio.to_thread(_describe_call, call, spec, key)
        )
        if spec.secret:
            is_small = len(call.args) + len(call.agent_says) < MAX_INLINE_SECRETS and not spec.declared
            masks = partial(mask_text, call.agent_says, call.args, shown.data)
            call = fast_replace(call, agent_says=masks() if is_small else await asyncio.to_thread(masks))
        if schema_errors:
            findings += schema_findings(schema_errors)
        chance = secrets.token_hex(26)
        preview = NO_PREVIEW
        if spec.preview is not None and isinstance(judgement.verdict, Ask) and not schema_errors:
            preview = await self.preview(call, spec)
        words = (spec, call.args, shown, preview.text)
        return Proposal(
            id=approval_id or uuid7(self._clock(), chance[:20]),
            nonce=chance[20:],
            call=call,
            spec=spec,
            shown=shown,
            sentence=sentence,
            alarms=tuple([finding.id for finding in findings if finding.level == "alarm"]) if findings else (),
            preview=stored_preview(*words) if is_small else await asyncio.to_thread(stored_preview, *words),
            preview_version=preview.version,
            confirmed_version=self._confirmed_version or "",
            policy_sha256=policy.sha256,
            shadows=policy.shadow_verdicts(call, spec)
            if len(call.args) <= policy.max_inline_bytes
            else await asyncio.to_thread(policy.shadow_verdicts, call, spec),
            has_caller_id=bool(approval_id),
            schema_errors=schema_errors,
            effects=judgement.effects,
        )


def _describe_call(call: ToolCall, spec: ToolSpec, key: bytes) -> tuple[RedactedArgs, tuple[Finding, ...], str]:
    """A call as people see it: redacted arguments, findings and a sentence."""
    shown = redact(call.args, spec, key)
    return shown, call_findings(spec, shown.value, shown.secrets, shown.data), call_sentence(spec, shown)


class _ReportTooLate(Stale):
    """The runner no longer owns the call: earlier late reports have to be checked."""


class _HasSecrets(Stale):
    """The call has secret arguments, and its report has to be masked outside the transaction."""

    def __init__(self, stored: Payload) -> None:
        super().__init__("This report has to be masked first.")
        self.stored = stored


def _check_no_secrets(report: Payload, stored: Payload) -> Payload:
    if stored.args is not None and stored.shown is not None and (report.error or report.result is not None):
        raise _HasSecrets(stored)
    return mask_report(report, stored)  # everything, if the arguments were erased


def _raise_too_late(_: LateReport) -> bool:
    raise _ReportTooLate("This report is too late.")


def _accept_any_run(_: ToolCall) -> None:
    pass


def _accept_any_call(approval: Approval) -> Approval:
    return approval


def _check_external_run(call: ToolCall) -> None:
    if is_thread_id(call.run_id) or is_thread_id(call.thread_id):
        raise Forbidden("This run or thread belongs to the chat. Choose another name for yours.")


def _require_external(approval: Approval) -> Approval:
    if is_thread_id(approval.subject.run_id):
        raise NotFound("There is no approval with this id.", approval_id=approval.id)
    return approval


def _require_owner(approval: Approval, owners: frozenset[str]) -> Approval:
    """Another agent's call is reported as not found, like an unknown id."""
    owner = approval.subject.owner
    if owner != ANY_OWNER and owner not in owners:
        raise NotFound("There is no approval with this id.", approval_id=approval.id)
    return _require_external(approval)


def _with_warnings(outcome: Outcome, warnings: tuple[str, ...]) -> Outcome:
    if warnings and isinstance(outcome, Proceed | Refused | Waiting):
        return replace(outcome, warnings=warnings)
    return outcome


def _entry_text(entry: Entry) -> str:
    """The text of an entry; empty once it was erased."""
    return "" if entry.content is None else str(json.loads(entry.content)["text"])


def uuid7(now: int, chance: str = "") -> str:
    """A UUIDv7: time-ordered, so that new rows are stored together; 74 random bits, so that it cannot be guessed."""
    stamp, tail = f"{now:012x}", chance or secrets.token_hex(10)
    return f"{stamp[:8]}-{stamp[8:]}-7{tail[:3]}-{_UUID_VARIANT[tail[3]]}{tail[4:7]}-{tail[7:19]}"


_UUID_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))  # the two highest bits are 10


async def render_preview(spec: ToolSpec, call: ToolCall) -> str:
    """The tool's own preview of its effect; a preview that fails must not stop the question."""
    try:
        return (await _run_preview(spec, call)).text
    except Exception as error:  # noqa: BLE001  of any kind: it is the tool's own code
        return _missing_preview(error)


def _missing_preview(error: Exception) -> str:
    """Why there is no preview; of another error than ToolFailed only the type, since its message is not for people."""
    if isinstance(error, ToolFailed):
        return f"This may fail: {error.message[:MAX_MESSAGE]}"
    return f"No preview: {type(error).__name__}."


async def _run_preview(spec: ToolSpec, call: ToolCall) -> Preview:
    if spec.preview is None:
        return NO_PREVIEW
    made = spec.preview(call.parsed_args)
    shown = to_preview(await made if inspect.isawaitable(made) else made)
    return Preview(shown.text[:MAX_PREVIEW], shown.version)


ConditionResults = Mapping[str, bool]  # whether the conditions of grants hold for a call, by their text


class UnevaluatedConditions(Stale):
    """Grants have conditions that were not evaluated; that is not done inside the ledger's transaction."""

    def __init__(self, conditions: Sequence[str]) -> None:
        super().__init__("There are new grants.")
        self.conditions = conditions


async def evaluate_conditions(
    conditions: Sequence[str], judgement: Judgement, compile_condition: ConditionCompiler
) -> ConditionResults:
    """Evaluate conditions within the call's time budget."""

    def held() -> ConditionResults:
        ways = (judgement.interpretations, judgement.effects, compile_condition)
        return {when: grant.condition_holds(when, *ways) for when in conditions}

    return held() if len(judgement.interpretations[0].args) <= SHORT_ARGS else await asyncio.to_thread(held)


def ask_people(
    proposal: Proposal,
    terms: Ask,
    judgement: Judgement,
    held: ConditionResults,
    moment: Moment,
    grants: ReadGrants,
) -> Change[Approval]:
    """Find a grant in the transaction, so that of two calls that race for the rest of it, one is asked about."""
    doubted = proposal.alarms or moment.is_clock_behind or proposal.call.pre_check.ask_reason
    usable = () if doubted else grants()
    found = find_covering_grant(proposal, terms, judgement, usable, held, moment) if usable else None
    if found is None:
        return propose.request_approval(proposal, terms, moment)
    return propose.allow_by_grant(proposal, terms, found, moment)


def find_covering_grant(
    proposal: Proposal,
    terms: Ask,
    judgement: Judgement,
    grants: Sequence[Grant],
    held: ConditionResults,
    moment: Moment,
) -> Grant | None:
    """Find a grant inside the transaction, with conditions that were evaluated before it."""
    scope = (proposal.spec, terms, moment.now)
    meant = [
        each
        for each in grants
        if all(grant.covers_scope(each, interpretation, *scope) for interpretation in judgement.interpretations)
    ]
    conditions = {each.when for each in meant if each.when}
    if not conditions <= held.keys():
        raise UnevaluatedConditions(sorted(conditions))
    amounts = Amounts(proposal.shown.data)
    holding = (each for each in meant if not each.when or held[each.when])
    return next((each for each in holding if grant.has_budget_for(each, amounts)), None)
